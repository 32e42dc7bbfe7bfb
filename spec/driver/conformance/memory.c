/* Memory, launches, modules and events outside captures. */
#include "driver/conformance/ask.h"


static void memory(void) {
  CUdeviceptr q = 0;
  S(cuMemAlloc(&q, 0));
  S(cuMemAlloc(&q, 1ull << 50));
  S(cuMemFree(0));
  cu->cuMemAlloc(&q, 64);
  S(cuMemFree(q));
  S(cuMemFree(q));
  S(cuMemAllocAsync(&q, 0, 0));
  S(cuMemAllocAsync(&q, 1ull << 50, 0));
}


static void launch(void) {
  float a = 1;
  void *p[] = {&d, &a};
  /* clang-format off */
  S(cuLaunchKernel(tick, 1,1,1, 1025,1,1, 0, 0, p, 0));
  S(cuLaunchKernel(tick, 0,1,1, 32,1,1, 0, 0, p, 0));
  S(cuLaunchKernel(tick, 1,1,1, 32,1,1, 1 << 20, 0, p, 0));
  S(cuLaunchKernel(tick, 1,70000,1, 32,1,1, 0, 0, p, 0));
  S(cuLaunchKernel(tick, 1,1,1, 1,1,65, 0, 0, p, 0));
  /* clang-format on */
}


static void module(void) {
  CUmodule x;
  CUfunction f;
  CUdeviceptr q;
  size_t b;
  S(cuModuleLoadData(&x, "not an image at all"));
  S(cuModuleGetFunction(&f, mod, "nope"));
  S(cuModuleGetGlobal(&q, &b, mod, "nope"));
}


static void events(void) {
  float ms;
  CUevent ev = EV(), ev2 = EV(), nt;
  S(cuEventElapsedTime(&ms, ev, ev2));
  cu->cuEventCreate(&nt, CU_EVENT_DISABLE_TIMING);
  cu->cuEventRecord(nt, NULL);
  cu->cuEventRecord(ev, NULL);
  cu->cuCtxSynchronize();
  S(cuEventElapsedTime(&ms, ev, nt));
  S(cuEventQuery(ev2));
  S(cuEventSynchronize(ev2));
}


static void context(void) {
  S(cuCtxSynchronize());
}


static const question questions[] = {
    {"memory: alloc of zero, of 2^50, free of null, free twice", memory},
    {"launch: bad block, zero grid, too much shared memory, null function",
     launch},
    {"module: not an image, missing function, missing global", module},
    {"events: elapsed before record, disabled timing, destroyed stream",
     events},
    {"context after all this", context},
};


void ask_memory(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
