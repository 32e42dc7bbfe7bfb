/* FFTW, on the host device: a kernel of one thread calls it, so that a
   transform is a node like any other.  Large ones are divided among FFTW's own
   threads, where its library of threads is installed. Plans are FFTW's
   estimates: the same for the same shape, so that results have the same bits
   from run to run. */
#include "algo/fft.h"
#include "algo/library.h"
#include "compile/base/base.h"
#include "core/base/context.h"
#include "core/base/error.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Of fftw3.h. */
enum {
  FORWARD = -1,
  BACKWARD = 1,
  DESTROY_INPUT = 1 << 0,
  UNALIGNED = 1 << 1,
  PRESERVE_INPUT = 1 << 4,
  ESTIMATE = 1 << 6
};
/* Fewer points are one thread's. */
enum { LEAST_OF_THREADS = 1 << 15 };

typedef struct fftw_dim {
  ptrdiff_t n, is, os;
} fftw_dim;
typedef void execute_function(void *plan, void *in, void *out);

typedef struct fftw_table {
  void *(*plan_dft)(int, const fftw_dim *, int, const fftw_dim *, void *,
                    void *, int, unsigned);
  void *(*plan_real[2])(int, const fftw_dim *, int, const fftw_dim *, void *,
                        void *, unsigned); /* r2c, c2r */
  execute_function *execute[3];            /* c2c, r2c, c2r */
  void (*destroy_plan)(void *);
  const char *version;
} fftw_table;

#define FFTW_SYMBOLS(p)                                                       \
  {                                                                           \
    p "_plan_guru64_dft", p "_plan_guru64_dft_r2c", p "_plan_guru64_dft_c2r", \
        p "_execute_dft", p "_execute_dft_r2c", p "_execute_dft_c2r",         \
        p "_destroy_plan", p "_version", NULL                                 \
  }

/* For float, for double. */
static const char *const symbols[2][9] = {FFTW_SYMBOLS("fftwf"),
                                          FFTW_SYMBOLS("fftw")};
static const char *const files[2][2] = {{"libfftw3f.so.3", NULL},
                                        {"libfftw3.so.3", NULL}};
static const char *const thread_files[2][2] = {{"libfftw3f_threads.so.3", NULL},
                                               {"libfftw3_threads.so.3", NULL}};
static const char *const packages[2] = {
    "libfftw3-single3 on Debian, fftw elsewhere",
    "libfftw3-double3 on Debian, fftw elsewhere"};

/* Plans are made and ended under the lock: FFTW's planner has one state.  What
   is opened is written once. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fftw_table tables[2];
static void (*set_threads[2])(int); /* NULL: without threads */


/* Under the lock. */
static void threads_open(int twice) {
  void *opened = cgl_library_open(thread_files[twice], false);
  const char *init = twice ? "fftw_init_threads" : "fftwf_init_threads";
  const char *set =
      twice ? "fftw_plan_with_nthreads" : "fftwf_plan_with_nthreads";
  int (*start)(void) = NULL;
  void (*plan_with)(int) = NULL;
  if (!opened)
    return;
  *(void **)&start = dlsym(opened, init);
  *(void **)&plan_with = dlsym(opened, set);
  if (start && plan_with && start())
    set_threads[twice] = plan_with;
}


/* Under the lock. */
static cgl_status table_open(int twice, const char *operation) {
  const cgl_algo_library library = {.files = files[twice],
                                    .title = "FFTW",
                                    .package = packages[twice],
                                    .symbols = symbols[twice]};
  if (tables[twice].plan_dft)
    return CGL_OK;
  cgl_status status =
      cgl_algo_library_open(&library, (void **)&tables[twice], operation);
  if (!status)
    threads_open(twice);
  return status;
}


/* ---- plans ---- */

/* Under the lock; NULL when FFTW makes none. */
static void *plan_new(const cgl_fft_key *key, const fftw_dim *dims,
                      const fftw_dim *batch, unsigned flags) {
  const fftw_table *table = &tables[key->twice];
  /* Estimates look at where arrays are and not into them. */
  void *const in = (void *)((uintptr_t)1 << 20);
  void *const out = key->in_place ? in : (void *)((uintptr_t)1 << 50);
  if (key->function < CGL_FFT_rfft)
    return table->plan_dft(key->rank, dims, 1, batch, in, out,
                           key->function == CGL_FFT_fft ? FORWARD : BACKWARD,
                           flags);
  return table->plan_real[key->function == CGL_FFT_irfft](
      key->rank, dims, 1, batch, in, out, flags);
}


static cgl_status fftw_make(cgl_fft_plan *plan, const char *operation) {
  const cgl_fft_key *key = &plan->key;
  int64_t real, complex;
  fftw_dim dims[CGL_FFT_MAX_RANK];
  cgl_fft_sizes(key, &real, &complex);
  const bool from_real = key->function == CGL_FFT_rfft;
  const fftw_dim batch = {key->batch, from_real ? real : complex,
                          from_real ? complex : real};
  int64_t of_real = 1, of_complex = 1;
  for (int d = key->rank; d-- > 0;) {
    dims[d] = (fftw_dim){key->n[d], from_real ? of_real : of_complex,
                         from_real ? of_complex : of_real};
    of_real *= key->n[d];
    of_complex *= d + 1 == key->rank && key->function >= CGL_FFT_rfft
                      ? cgl_fft_half(key->n[d])
                      : key->n[d];
  }
  const unsigned input = key->function == CGL_FFT_irfft && key->rank > 1
                             ? DESTROY_INPUT
                         : key->in_place ? 0
                                         : PRESERVE_INPUT;
  const int workers = cgl_context_device(plan->object.context)->multiprocessors;
  pthread_mutex_lock(&lock);
  cgl_status status = table_open(key->twice, operation);
  if (!status) {
    if (set_threads[key->twice])
      set_threads[key->twice](real * key->batch < LEAST_OF_THREADS ? 1
                                                                   : workers);
    plan->call.execute =
        tables[key->twice].execute[key->function < CGL_FFT_rfft
                                       ? 0
                                       : key->function - CGL_FFT_rfft + 1];
    plan->call.plans[0] = plan_new(key, dims, &batch, ESTIMATE | input);
    plan->call.plans[1] =
        plan_new(key, dims, &batch, ESTIMATE | UNALIGNED | input);
  }
  pthread_mutex_unlock(&lock);
  if (!status && !(plan->call.plans[0] && plan->call.plans[1]))
    status = cgl_fail(CGL_ERROR_LIBRARY, operation,
                      "FFTW made no plan for such a shape");
  return status;
}


static void fftw_end(cgl_fft_plan *plan) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < 2; i++)
    if (plan->call.plans[i])
      tables[plan->key.twice].destroy_plan(plan->call.plans[i]);
  pthread_mutex_unlock(&lock);
}


/* ---- calls ---- */

static cgl_status fftw_run(cgl_fft *fft, cgl_stream *stream, cgl_fft_plan *plan,
                           cgl_buffer *in, cgl_buffer *out,
                           const char *operation) {
  const cgl_fft_key *key = &plan->key;
  const char *name = key->in_place ? "transform_in_place"
                     : key->function == CGL_FFT_irfft && key->rank > 1
                         ? "transform_over"
                         : "transform";
  cgl_kernel *kernel;
  cgl_buffer *call = NULL;
  cgl_status status = cgl_algo_kernel(fft->algo, CGL_ALGO_fft, name,
                                      key->twice ? "\n#define T double\n"
                                                 : "\n#define T float\n",
                                      operation, &kernel);
  if (!status) /* with which a graph keeps the plan */
    status = cgl_fft_plan_memory(plan, &call);
  if (status)
    return status;
  const cgl_launch one = {.grid = {1}, .block = {1}};
  const cgl_arg args[] = {cgl_algo_memory(call), cgl_algo_memory(in),
                          cgl_algo_memory(out)};
  status = cgl_kernel_launch(kernel, stream, &one, args, key->in_place ? 2 : 3);
  cgl_buffer_release(call);
  return status;
}


cgl_status cgl_fft_open_host(cgl_fft *fft) {
  static const cgl_fft_library fftw = {fftw_make, fftw_run, fftw_end, false};
  pthread_mutex_lock(&lock);
  /* One of the two does to begin with. */
  cgl_status status = table_open(1, "fft");
  if (status)
    status = table_open(0, "fft");
  pthread_mutex_unlock(&lock);
  if (status)
    return status;
  fft->library = &fftw;
  snprintf(fft->description, sizeof fft->description, "%s%s",
           tables[tables[1].plan_dft != NULL].version,
           set_threads[0] || set_threads[1] ? ", with threads" : "");
  return CGL_OK;
}
