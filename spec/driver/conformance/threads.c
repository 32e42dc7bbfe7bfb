/* What another thread may do while a stream captures. */
#include "driver/conformance/ask.h"

#include <pthread.h>

typedef struct thread_act {
  const char *name;
  CUresult (*act)(void);
} thread_act;

enum { AS_IT_IS = 3 }; /* the other thread keeps the mode it starts with */

static int mode, thread_mode;
static const thread_act *current;
static CUresult answer;
static CUstream s;
static CUevent ev;
static CUdeviceptr v;


static void *other_thread(void *unused) {
  (void)unused;
  cu->cuCtxSetCurrent(ctx);
  if (thread_mode != AS_IT_IS) {
    CUstreamCaptureMode m = thread_mode;
    cu->cuThreadExchangeStreamCaptureMode(&m);
  }
  answer = current->act();
  return NULL;
}


static void ask_thread(void) {
  CUgraph g = NULL;
  s = NS();
  ev = EV();
  cu->cuMemAlloc(&v, 64);
  cu->cuStreamBeginCapture(s, mode);
  K(s);
  pthread_t thread;
  if (pthread_create(&thread, NULL, other_thread, NULL) == 0)
    pthread_join(thread, NULL);
  say("act", answer);
  num("status", st(s));
  say("end", cu->cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static CUresult mem_alloc(void) {
  CUdeviceptr q;
  return cu->cuMemAlloc(&q, 64);
}


static CUresult mem_free(void) {
  return cu->cuMemFree(v);
}


static CUresult launch(void) {
  return K(s);
}


static CUresult end_capture(void) {
  CUgraph g;
  return cu->cuStreamEndCapture(s, &g);
}


static CUresult synchronize(void) {
  return cu->cuStreamSynchronize(s);
}


static CUresult mem_alloc_host(void) {
  void *p;
  return cu->cuMemAllocHost(&p, 64);
}


static CUresult event_query(void) {
  return cu->cuEventQuery(ev);
}


static CUresult ctx_synchronize(void) {
  return cu->cuCtxSynchronize();
}


static CUresult exchange_mode(void) {
  CUstreamCaptureMode m = GL;
  return cu->cuThreadExchangeStreamCaptureMode(&m);
}


static CUresult own_capture(void) {
  CUstream t = NS();
  CUgraph g;
  CUresult result = cu->cuStreamBeginCapture(t, TL);
  cu->cuStreamEndCapture(t, &g);
  return result;
}


static CUresult memcpy_dtoh(void) {
  char host[64];
  return cu->cuMemcpyDtoH(host, d, 64);
}


static const thread_act acts[] = {
    {"cuMemAlloc", mem_alloc},
    {"cuMemFree", mem_free},
    {"launch into the captured stream", launch},
    {"EndCapture", end_capture},
    {"StreamSynchronize of the captured stream", synchronize},
    {"cuMemAllocHost", mem_alloc_host},
    {"cuEventQuery of an idle event", event_query},
    {"cuCtxSynchronize", ctx_synchronize},
    {"exchange mode", exchange_mode},
    {"begins and ends its own capture", own_capture},
    {"cuMemcpyDtoH", memcpy_dtoh},
};


void ask_threads(int capture_mode, const char *const *mode_names) {
  mode = capture_mode;
  for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
    current = &acts[i];
    thread_mode = AS_IT_IS;
    row(ask_thread, "another thread: %s, capture %s", current->name,
        mode_names[mode]);
    for (thread_mode = 0; i == 0 && thread_mode < AS_IT_IS; thread_mode++)
      row(ask_thread, "another thread: %s, its mode %s, capture %s",
          current->name, mode_names[thread_mode], mode_names[mode]);
  }
}
