/* What the tests of the host device's graphs share: a device with a few
   kernels, and random numbers that are the same in every run. */
#ifndef CGL_SPEC_GRAPH_SUPPORT_H
#define CGL_SPEC_GRAPH_SUPPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compile/compile.h"
#include "driver/host/calls/calls.h"
#include "driver/host/run/run.h"
#include "tap.h"

static const cgl_driver *cu;
static CUcontext ctx;
static CUmodule module;
static CUfunction mix, put, count, set, meet;

/* mix: v[self] = hash(*round, self, v of its dependencies), so that a node
   that runs before one of them, or not at all, spoils the result. */
static const char graph_kernels[] =
    "typedef unsigned long long u64;\n"
    "struct deps { unsigned n, at[6]; };\n"
    "extern \"C\" __global__ void mix(u64 *v, const u64 *round,\n"
    "                               unsigned self, deps d) {\n"
    "  if (threadIdx.x != 0 || blockIdx.x != 0) return;\n"
    "  u64 h = *round * 0x9e3779b97f4a7c15ull + self;\n"
    "  for (unsigned i = 0; i < d.n; i++)\n"
    "    h = (h ^ v[d.at[i]]) * 0xbf58476d1ce4e5b9ull + (h >> 29);\n"
    "  v[self] = h;\n"
    "}\n"
    "extern \"C\" __global__ void put(u64 *v, unsigned at, u64 value) {\n"
    "  if (threadIdx.x == 0) v[at] = value;\n"
    "}\n"
    "extern \"C\" __global__ void count(u64 *v, unsigned at, u64 by) {\n"
    "  if (threadIdx.x == 0) v[at] += by;\n"
    "}\n"
    "extern \"C\" __global__ void set(u64 handle, u64 *left) {\n"
    "  cudaGraphSetConditional(handle, --*left > 0);\n"
    "}\n"
    "extern \"C\" __global__ void meet(volatile u64 *v, unsigned mine,\n"
    "                                unsigned theirs) {\n"
    "  v[mine] = 1;\n"
    "  for (long i = 0; i < 2000000000 && !v[theirs]; i++) {}\n"
    "  v[mine + 1] = v[theirs];\n"
    "}\n";

typedef struct mix_deps {
  unsigned n, at[6];
} mix_deps;


/* What mix computes. */
static inline uint64_t mix_value(const uint64_t *v, uint64_t round,
                                 unsigned self, const mix_deps *d) {
  uint64_t h = round * 0x9e3779b97f4a7c15u + self;
  for (unsigned i = 0; i < d->n; i++)
    h = (h ^ v[d->at[i]]) * 0xbf58476d1ce4e5b9u + (h >> 29);
  return h;
}


static inline bool graph_open(void) {
  CUdevice device;
  cu = cgl_driver_host();
  cgl_target target = {.format = CGL_IMAGE_HOST, .sm = 90};
  cgl_source source = {.text = graph_kernels,
                       .length = sizeof graph_kernels - 1};
  cgl_image *image = NULL;
  char *message = NULL;
  if (cu->cuInit(0) || cu->cuDeviceGet(&device, 0) ||
      cu->cuDevicePrimaryCtxRetain(&ctx, device) || cu->cuCtxSetCurrent(ctx))
    return false;
  if (cgl_compile(&target, &source, &image, &message) != CGL_COMPILE_OK)
    fprintf(stderr, "%s\n", message != NULL ? message : "no compiler");
  free(message);
  bool loaded = image != NULL && !cu->cuModuleLoadData(&module, image->bytes) &&
                !cu->cuModuleGetFunction(&mix, module, "mix") &&
                !cu->cuModuleGetFunction(&put, module, "put") &&
                !cu->cuModuleGetFunction(&count, module, "count") &&
                !cu->cuModuleGetFunction(&set, module, "set") &&
                !cu->cuModuleGetFunction(&meet, module, "meet");
  cgl_image_free(image);
  return loaded;
}


/* Nothing of the tests may be alive; the last check. */
static inline void graph_close(void) {
  static const char *const kinds[] = {"executables", "graphs", "streams",
                                      "events", "allocations"};
  cu->cuModuleUnload(module);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    tap_ok(cgl_host_live(kinds[i]) == 0, "no %s are left", kinds[i]);
  cu->cuDevicePrimaryCtxRelease(0);
}


static inline CUstream new_stream(void) {
  CUstream s = NULL;
  cu->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
  return s;
}


/* Zeroed words; the device reads and writes host memory as its own. */
static inline uint64_t *new_words(size_t n) {
  CUdeviceptr d = 0;
  if (cu->cuMemAlloc(&d, n * sizeof(uint64_t)) || cu->cuMemsetD32(d, 0, n * 2))
    abort();
  return host_pointer(d);
}


static inline void free_words(uint64_t *v) {
  cu->cuMemFree((CUdeviceptr)(uintptr_t)v);
}


/* One block of 32 threads of a kernel whose parameters are given. */
static inline CUresult launch(CUfunction f, CUstream s, void **params) {
  return cu->cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, s, params, NULL);
}


static inline CUDA_KERNEL_NODE_PARAMS kernel_params(CUfunction f,
                                                    void **params) {
  return (CUDA_KERNEL_NODE_PARAMS){.func = f,
                                   .gridDimX = 1,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 32,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .kernelParams = params};
}


/* xorshift: the same numbers in every run. */
static inline uint32_t random_below(uint64_t *state, uint32_t n) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t)(*state >> 32) % n;
}


/* Resident memory of the process in bytes. */
static inline long resident(void) {
  long size = 0, pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (f != NULL && fscanf(f, "%ld %ld", &size, &pages) != 2)
    pages = 0;
  if (f != NULL)
    fclose(f);
  return pages * sysconf(_SC_PAGESIZE);
}

#endif
