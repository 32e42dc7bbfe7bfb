/* Transforms: what the checks (fft.c) ask of the libraries, FFTW (fftw.c) and
   cuFFT (cufft.c).
   Invariant: a plan belongs to nobody: the cgl_fft holds a reference, and so
   does every graph with a transform of it.  Its end waits for the device. */
#ifndef CGL_ALGO_FFT_H
#define CGL_ALGO_FFT_H

#include "algo/algo.h"
#include "core/base/object.h"

/* What a plan is for; compared byte by byte. */
typedef struct cgl_fft_key {
  cgl_fft_function function;
  int twice; /* double */
  int in_place;
  int rank;
  int64_t n[CGL_FFT_MAX_RANK]; /* of the real side; the slowest first, then 0 */
  int64_t batch;
} cgl_fft_key;

/* What a kernel of the host device reads (fft.cu). */
typedef struct cgl_fft_call {
  void (*execute)(void *plan, void *in, void *out);
  void *plans[2]; /* for addresses that are multiples of 64, for any */
} cgl_fft_call;

typedef struct cgl_fft_plan cgl_fft_plan;

/* A library.  `make` fills a plan in and `end` gives up what is there of it. */
typedef struct cgl_fft_library {
  cgl_status (*make)(cgl_fft_plan *plan, const char *operation);
  cgl_status (*run)(cgl_fft *fft, cgl_stream *stream, cgl_fft_plan *plan,
                    cgl_buffer *in, cgl_buffer *out, const char *operation);
  void (*end)(cgl_fft_plan *plan);
  bool pairs; /* real numbers begin where complex ones could */
} cgl_fft_library;

struct cgl_fft_plan {
  cgl_object object;
  cgl_fft_key key;
  const cgl_fft_library *library;
  cgl_fft_plan *next; /* of the cgl_fft, the last used first */
  cgl_fft_call call;  /* FFTW */
  int handle;         /* cuFFT; 0: none */
  size_t workspace;   /* cuFFT: bytes of scratch of a call */
};

struct cgl_fft {
  cgl_algo *algo;
  cgl_context *context; /* retained */
  const cgl_fft_library *library;
  cgl_fft_plan *plans;
  size_t nplans;
  char description[100];
};

/* Elements of the last extent on the complex side. */
static inline int64_t cgl_fft_half(int64_t n) {
  return n / 2 + 1;
}
/* Elements of one transform on the real and on the complex side; the same for
   fft and ifft. */
static inline void cgl_fft_sizes(const cgl_fft_key *key, int64_t *real,
                                 int64_t *complex) {
  *real = *complex = 1;
  for (int d = 0; d < key->rank; d++) {
    *real *= key->n[d];
    *complex *= d + 1 == key->rank && key->function >= CGL_FFT_rfft
                    ? cgl_fft_half(key->n[d])
                    : key->n[d];
  }
}

/* A buffer of the plan's `call`, which keeps the plan: for FFTW's kernels. */
cgl_status cgl_fft_plan_memory(cgl_fft_plan *plan, cgl_buffer **memory);

/* Open the library.  CGL_ERROR_NOT_FOUND */
cgl_status cgl_fft_open_host(cgl_fft *fft);
cgl_status cgl_fft_open_cuda(cgl_fft *fft);

#endif
