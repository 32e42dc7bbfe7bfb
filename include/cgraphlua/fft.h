/* Fourier transforms, by the machine's own library: cuFFT on a GPU, FFTW on the
   host device, opened when a cgl_fft is made.
   Idea: a call issues work on a stream, as launches do, outside captures and in
   them: a node that the recording knows, with what it reads and writes.  What
   the library prepared for a shape, a plan, is found again for the next call.
   Invariants: a graph keeps the plans and the scratch that its transforms use,
   whatever becomes of the cgl_fft; a call whose arguments are refused has
   issued nothing; inputs stay as they are. */
#ifndef CGRAPHLUA_FFT_H
#define CGRAPHLUA_FFT_H

#include "buffer.h"

typedef struct cgl_fft cgl_fft; /* the library, and plans for one device */

/* The transforms, with the names and the meaning of NumPy's:
     fft   complex numbers to as many, with exp(-2 pi i j k / n)
     ifft  back, with exp(+2 pi i j k / n)
     rfft  real numbers; of the last extent n the first n / 2 + 1 results, which
           tell the rest
     irfft back, from n / 2 + 1 complex numbers of the last extent to n */
#define CGL_FFT_FUNCTIONS(X) X(fft) X(ifft) X(rfft) X(irfft)
typedef enum cgl_fft_function {
#define X(name) CGL_FFT_##name,
  CGL_FFT_FUNCTIONS(X)
#undef X
      CGL_FFT_COUNT
} cgl_fft_function;

/* Which results are divided by the number n of points of a transform: those of
   ifft and irfft; all, by the root of n; those of fft and rfft. */
#define CGL_FFT_NORMS(X) X(backward) X(ortho) X(forward)
typedef enum cgl_fft_norm {
#define X(name) CGL_FFT_NORM_##name,
  CGL_FFT_NORMS(X)
#undef X
      CGL_FFT_NORM_COUNT
} cgl_fft_norm;

#define CGL_FFT_MAX_RANK 3
#define CGL_FFT_MAX_PLANS 32 /* that a cgl_fft holds; the least used goes */

/* Opens the library.  One thread at a time may use a cgl_fft.
   CGL_ERROR_NOT_FOUND with what to install */
CGL_API cgl_status cgl_fft_create(cgl_context *context, cgl_fft **fft);
/* Gives it up; graphs keep what they use of it.  NULL is accepted. */
CGL_API void cgl_fft_destroy(cgl_fft *fft);
/* Forgets all plans; waits for the device, where no graph keeps one. */
CGL_API void cgl_fft_clear(cgl_fft *fft);
/* The number of plans that are held. */
CGL_API size_t cgl_fft_plan_count(const cgl_fft *fft);
/* "cuFFT 12.0.0" or "fftw-3.3.10-sse2-avx"; borrowed. */
CGL_API const char *cgl_fft_describe(const cgl_fft *fft);

/* Transforms over the last `rank` extents of `x`, 1 to CGL_FFT_MAX_RANK, once
   for each place of the extents in front.  Elements are complex64 or
   complex128, of the real side float or double.  `out` has the shape that the
   function gives; of irfft it says which n.  fft and ifft may have `x` itself
   as `out`. A plan that is missing is made first; refused with
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while a capture is underway in the
   process.  CGL_ERROR_INVALID_ARGUMENT with both shapes, CGL_ERROR_LIBRARY */
CGL_API cgl_status cgl_fft_issue(cgl_fft *fft, cgl_stream *stream,
                                 cgl_fft_function function, cgl_fft_norm norm,
                                 int rank, cgl_buffer *x, cgl_buffer *out);

#endif
