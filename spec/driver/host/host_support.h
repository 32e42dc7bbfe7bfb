/* What the tests of the host device's runtime share: the driver, kernels
   compiled once, a gate that holds a stream, and children that run a case of
   their own in a fresh process. */
#ifndef CGL_SPEC_HOST_SUPPORT_H
#define CGL_SPEC_HOST_SUPPORT_H

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compile/compile.h"
#include "driver/host/calls/calls.h"
#include "driver/host/run/run.h"
#include "driver/table.h"
#include "tap.h"

static const cgl_driver *driver;
static CUcontext context;
static CUmodule module;

static const char kernels[] =
    "extern \"C\" {\n"
    "__device__ int counter;\n"
    "__global__ void empty() {}\n"
    "__global__ void put(int *p, long i, int v) { p[i] = v; }\n"
    "__global__ void push(int *p, int v) { *p = *p * 10 + v; }\n"
    "__global__ void add(int *p, int n, int v) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) p[i] += v;\n"
    "}\n"
    "__global__ void hold(volatile int *open) {\n"
    "  open[1] = 1;\n"
    "  while (!*open) {}\n"
    "}\n"
    "__global__ void meet(volatile int *open) {\n"
    "  open[1] = 1;\n"
    "  while (!*open) __syncthreads();\n"
    "}\n"
    "__global__ void say(volatile int *open) {\n"
    "  open[1] = 1;\n"
    "  while (!*open) printf(\"%s\", \"\");\n"
    "}\n"
    "__global__ void total(const int *p, int *out) {\n"
    "  __shared__ int s[256];\n"
    "  int t = threadIdx.x;\n"
    "  s[t] = p[blockIdx.x * 256 + t];\n"
    "  __syncthreads();\n"
    "  for (int d = 128; d; d /= 2) {\n"
    "    if (t < d) s[t] += s[t + d];\n"
    "    __syncthreads();\n"
    "  }\n"
    "  if (t == 0) atomicAdd(out, s[0]);\n"
    "}\n"
    "__global__ void lone(int *p, int n) {\n"
    "  if (blockIdx.x == 37) p[n + 8000] = 1;\n"
    "  else p[blockIdx.x] = 1;\n"
    "}\n"
    "__global__ void divide(int *p) { p[0] = 7 / p[1]; }\n"
    "__global__ void trap() { __trap(); }\n"
    "__global__ void fall(int *p) {\n"
    "  __syncthreads();\n"
    "  if (threadIdx.x == 17) p[16384] = 1;\n"
    "  __syncthreads();\n"
    "}\n"
    "__global__ void apart() {\n"
    "  if (threadIdx.x & 1) __syncthreads();\n"
    "  else __shfl_sync(0xffffffffu, 1, 0);\n"
    "}\n"
    "__device__ int down(volatile int *p, int n) {\n"
    "  volatile int a[64];\n"
    "  a[n & 63] = n;\n"
    "  return *p ? a[n & 7] : down(p, n + 1) + a[n & 31];\n"
    "}\n"
    "__global__ void deep(int *p) { p[1] = down(p, 0); }\n"
    "__global__ void mixed(char a, double b, short c, void *d) {}\n"
    "__global__ void count() { atomicAdd(&counter, 1); }\n"
    "}\n";

/* One check of a driver call's answer. */
static inline bool answers(CUresult expected, CUresult got, const char *call) {
  const char *e = "?", *g = "?";
  driver->cuGetErrorName(expected, &e);
  driver->cuGetErrorName(got, &g);
  return expected == got ? tap_ok(true, "%s", call)
                         : tap_ok(false, "%s: %s, not %s", call, g, e);
}

#define IS(expected, call) answers(CUDA_##expected, driver->call, #call)
/* A call that a test cannot go on without. */
#define DO(call)                                                            \
  do {                                                                      \
    CUresult did = driver->call;                                            \
    if (did != CUDA_SUCCESS) {                                              \
      printf("Bail out! %s:%d %s: %d %s\n", __FILE__, __LINE__, #call, did, \
             driver->failure_text());                                       \
      exit(1);                                                              \
    }                                                                       \
  } while (0)

/* The compiled kernels' image; kept for the life of the process. */
static inline const void *image(void) {
  static cgl_image *made;
  if (made)
    return made->bytes;
  cgl_target target = {.format = CGL_IMAGE_HOST};
  cgl_source source = {
      .text = kernels, .length = strlen(kernels), .file = "host_test"};
  char *message = NULL;
  if (cgl_compile(&target, &source, &made, &message) != CGL_COMPILE_OK) {
    printf("Bail out! the kernels do not compile: %s\n",
           message ? message : "");
    exit(1);
  }
  free(message);
  return made->bytes;
}

static inline void open_device(void) {
  driver = cgl_driver_host();
  DO(cuInit(0));
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  DO(cuModuleLoadData(&module, image()));
}

static inline CUfunction kernel(const char *name) {
  CUfunction f;
  DO(cuModuleGetFunction(&f, module, name));
  return f;
}

static inline CUstream new_stream(unsigned flags) {
  CUstream s;
  DO(cuStreamCreate(&s, flags));
  return s;
}

static inline CUdeviceptr new_memory(size_t bytes) {
  CUdeviceptr p;
  DO(cuMemAlloc(&p, bytes));
  DO(cuMemsetD8(p, 0, bytes));
  return p;
}

static inline int read_int(CUdeviceptr p) {
  int v = -1;
  DO(cuMemcpyDtoH(&v, p, sizeof v));
  return v;
}

static inline CUresult launch(CUfunction f, unsigned grid, unsigned block,
                              CUstream s, void **params) {
  return driver->cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, s, params, NULL);
}

/* *p = *p * 10 + v: the digits tell the order. */
static inline void push(CUdeviceptr p, int v, CUstream s) {
  void *params[] = {&p, &v};
  if (launch(kernel("push"), 1, 1, s, params) != CUDA_SUCCESS)
    tap_ok(false, "push is launched");
}

typedef struct gate {
  atomic_bool open, reached;
} gate;

static inline void gate_wait(void *user) {
  gate *g = user;
  atomic_store(&g->reached, true);
  while (!atomic_load(&g->open))
    usleep(200);
}

/* Holds what is queued on the stream from now on until the gate is open. */
static inline void gate_close(gate *g, CUstream s) {
  atomic_store(&g->open, false);
  atomic_store(&g->reached, false);
  DO(cuLaunchHostFunc(s, gate_wait, g));
}

static inline void gate_open(gate *g) {
  atomic_store(&g->open, true);
}

static inline double seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Runs this program again with `name` as its argument and one variable set;
   true when it ends with status 0. */
static inline bool child(const char *name, const char *variable,
                         const char *value) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    if (variable)
      setenv(variable, value, 1);
    char path[4096] = "";
    if (readlink("/proc/self/exe", path, sizeof path - 1) <= 0) /* no /proc */
      snprintf(path, sizeof path, "%s", program_invocation_name);
    execl(path, path, name, (char *)NULL);
    _exit(127);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* In a child: ends it, saying where, unless the condition holds. */
#define NEED(condition)                                                    \
  do {                                                                     \
    if (!(condition)) {                                                    \
      printf("# %s:%d: not so: %s [%s]\n", __FILE__, __LINE__, #condition, \
             driver->failure_text());                                      \
      exit(1);                                                             \
    }                                                                      \
  } while (0)

typedef struct child_case {
  const char *name;
  void (*run)(void);
} child_case;

/* Runs the case that was asked for, if one was. */
static inline void run_child(int argc, char **argv, const child_case *cases,
                             size_t count) {
  if (argc < 2)
    return;
  for (size_t i = 0; i < count; i++)
    if (!strcmp(cases[i].name, argv[1])) {
      open_device();
      cases[i].run();
      exit(0);
    }
  exit(126);
}

#endif
