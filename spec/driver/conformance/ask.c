/* The driver under question, its kernels, and the making of rows. */
#include "driver/conformance/ask.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compile/compile.h"

const cgl_driver *cu;
CUcontext ctx;
CUmodule mod;
CUfunction tick, tock, wide, setc;
CUdeviceptr d;
const void *img;

static CUdevice device;
static cgl_image *image;
static char text[8192];

static const char kernels[] =
    "#ifndef __CGRAPHLUA_HOST__\n"
    "extern \"C\" __device__ __cudart_builtin__ void\n"
    "cudaGraphSetConditional(unsigned long long h, unsigned v);\n"
    "#endif\n"
    "extern \"C\" __global__ void tick(float *x, float a) {\n"
    "  if (threadIdx.x == 0) x[0] += a;\n"
    "}\n"
    "extern \"C\" __global__ void tock(float *x, float a) {\n"
    "  if (threadIdx.x == 0) x[0] *= a;\n"
    "}\n"
    "extern \"C\" __global__ void wide(float *x, float a) {\n"
    "  __shared__ float s[64];\n"
    "  s[threadIdx.x] = a;\n"
    "  __syncthreads();\n"
    "  x[threadIdx.x] = s[63 - threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void setc(unsigned long long h, int *n) {\n"
    "  cudaGraphSetConditional(h, --*n > 0);\n"
    "}\n"
    "#include <assert.h>\n"
    "__device__ int counter[3];\n"
    "extern \"C\" __global__ void count(int n) { counter[0] += n; }\n"
    "extern \"C\" __global__ void mixed(char c, double x, short s,\n"
    "                                 float *p) {\n"
    "  p[0] = (float)(c + x + s);\n"
    "}\n"
    "extern \"C\" __global__ void nothing() {}\n"
    "extern \"C\" __global__ void poke(int *p) { *p = 1; }\n"
    "extern \"C\" __global__ void trap(int n) { if (n) __trap(); }\n"
    "extern \"C\" __global__ void claim(int n) { assert(n == 0); }\n";


static const char *compile(const cgl_driver *driver) {
  static char why[4096];
  int major = 9, minor = 0;
  driver->cuDeviceGetAttribute(
      &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  driver->cuDeviceGetAttribute(
      &minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  cgl_target target = {.format = driver->image_format,
                       .sm = major * 10 + minor};
  cgl_source source = {.text = kernels,
                       .length = sizeof kernels - 1,
                       .file = "conformance.cu",
                       .line = 1};
  char *message = NULL;
  cgl_compile_status status = cgl_compile(&target, &source, &image, &message);
  if (status != CGL_COMPILE_OK)
    snprintf(why, sizeof why, "%s", message != NULL ? message : "compilation");
  free(message);
  return status == CGL_COMPILE_OK ? NULL : why;
}


const char *ask_open(const cgl_driver *driver) {
  if (driver->cuInit(0) != CUDA_SUCCESS ||
      driver->cuDeviceGet(&device, 0) != CUDA_SUCCESS ||
      driver->cuDevicePrimaryCtxRetain(&ctx, device) != CUDA_SUCCESS ||
      driver->cuCtxSetCurrent(ctx) != CUDA_SUCCESS)
    return "no device";
  const char *why = compile(driver);
  if (why != NULL)
    return why;
  img = image->bytes;
  if (driver->cuModuleLoadData(&mod, img) != CUDA_SUCCESS ||
      driver->cuModuleGetFunction(&tick, mod, "tick") != CUDA_SUCCESS ||
      driver->cuModuleGetFunction(&tock, mod, "tock") != CUDA_SUCCESS ||
      driver->cuModuleGetFunction(&wide, mod, "wide") != CUDA_SUCCESS ||
      driver->cuModuleGetFunction(&setc, mod, "setc") != CUDA_SUCCESS)
    return "the kernels do not load";
  if (driver->cuMemAlloc(&d, 1 << 20) != CUDA_SUCCESS ||
      driver->cuMemsetD8(d, 0, 1 << 20) != CUDA_SUCCESS)
    return "no memory";
  cu = track(driver);
  return NULL;
}


void ask_close(void) {
  if (cu != NULL) {
    cu->cuMemFree(d);
    cu->cuModuleUnload(mod);
    cu->cuDevicePrimaryCtxRelease(device);
  }
  cgl_image_free(image);
}


/* ---- rows ---- */

void row(void (*ask)(void), const char *format, ...) {
  char name[256];
  va_list args;
  va_start(args, format);
  vsnprintf(name, sizeof name, format, args);
  va_end(args);
  if (!row_wanted(name))
    return;
  text[0] = '\0';
  ask();
  if (row_alone == NULL)
    track_sweep();
  row_done(name, text);
}


void row_list(const question *questions, size_t count) {
  for (size_t i = 0; i < count; i++)
    row(questions[i].ask, "%s", questions[i].name);
}


static void note(const char *what, const char *answer) {
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, "\t%s=%s", what, answer);
}


void row_take(const char *notes) {
  strncat(text, notes, sizeof text - strlen(text) - 1);
}


void say(const char *what, CUresult answer) {
  const char *name = NULL;
  cu->cuGetErrorName(answer, &name);
  if (name == NULL)
    name = "?";
  else if (strcmp(name, "CUDA_SUCCESS") == 0)
    name = "ok";
  else if (strncmp(name, "CUDA_ERROR_", 11) == 0)
    name += 11;
  note(what, name);
}


void num(const char *what, long value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%ld", value);
  note(what, digits);
}


/* ---- short words ---- */

CUstream NS(void) {
  CUstream s = NULL;
  cu->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
  return s;
}


CUstream BS(void) {
  CUstream s = NULL;
  cu->cuStreamCreate(&s, CU_STREAM_DEFAULT);
  return s;
}


CUevent EV(void) {
  CUevent e = NULL;
  cu->cuEventCreate(&e, CU_EVENT_DEFAULT);
  return e;
}


CUresult Kf(CUfunction f, CUstream s) {
  float a = 1;
  void *p[] = {&d, &a};
  return cu->cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, p, NULL);
}


CUresult K(CUstream s) {
  return Kf(tick, s);
}


long st(CUstream s) {
  CUstreamCaptureStatus status = 9;
  CUresult result = cu->cuStreamIsCapturing(s, &status);
  return result != CUDA_SUCCESS ? -(long)result : (long)status;
}


long cnt(CUgraph g) {
  size_t n = 0;
  if (g == NULL)
    return -1;
  cu->cuGraphGetNodes(g, NULL, &n);
  return (long)n;
}


long edg(CUgraph g) {
  size_t n = 0;
  if (g == NULL)
    return -1;
  cu->cuGraphGetEdges(g, NULL, NULL, NULL, &n);
  return (long)n;
}


CUgraph capn(int n) {
  CUstream s = NS();
  CUgraph g = NULL;
  cu->cuStreamBeginCapture(s, TL);
  for (int i = 0; i < n; i++)
    K(s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuStreamDestroy(s);
  return g;
}


void nodes_of(CUgraph g, CUgraphNode nd[4]) {
  size_t n = 4;
  memset(nd, 0, 4 * sizeof *nd);
  cu->cuGraphGetNodes(g, nd, &n);
}


void clear_ticks(void) {
  cu->cuMemsetD8(d, 0, 64);
  cu->cuCtxSynchronize(); /* the streams do not wait for it */
}


void note_ticks(void) {
  float x = -1;
  cu->cuMemcpyDtoH(&x, d, sizeof x);
  num("ticks", (long)x);
}


CUDA_KERNEL_NODE_PARAMS adding(float *a, void **p) {
  CUDA_KERNEL_NODE_PARAMS kp;
  memset(&kp, 0, sizeof kp);
  p[0] = &d;
  p[1] = a;
  kp.func = tick;
  kp.gridDimX = kp.gridDimY = kp.gridDimZ = 1;
  kp.blockDimX = 32;
  kp.blockDimY = kp.blockDimZ = 1;
  kp.kernelParams = p;
  return kp;
}


CUmemAllocationProp device_prop(void) {
  CUmemAllocationProp prop;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}


static atomic_bool awake = true;


void sleep_on(void) {
  atomic_store(&awake, false);
}


void wake(void) {
  atomic_store(&awake, true);
}


void doze(void *most) {
  struct timespec pause = {0, 30000000};
  int times = most ? *(const int *)most : 300;
  do
    nanosleep(&pause, NULL);
  while (--times > 0 && !atomic_load(&awake));
}
