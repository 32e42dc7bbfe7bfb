/* Ranges for profilers, through NVIDIA's NVTX, which is headers alone: a
   profiler brings the library that takes the calls, and without one they do
   nothing.  A build without the headers has no ranges. */
#include "core/base/error.h"

#ifdef CGL_NVTX

#include <pthread.h>
#include <nvtx3/nvToolsExt.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static nvtxDomainHandle_t domain;


static void nvtx_make_domain(void) {
  domain = nvtxDomainCreateA("cgraphlua");
}


bool cgl_nvtx_available(void) {
  return true;
}


void cgl_nvtx_push(const char *name) {
  pthread_once(&once, nvtx_make_domain);
  nvtxEventAttributes_t attributes = {0};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain, &attributes);
}


void cgl_nvtx_pop(void) {
  nvtxDomainRangePop(domain);
}

#else

bool cgl_nvtx_available(void) {
  return false;
}


void cgl_nvtx_push(const char *name) {
  (void)name;
}


void cgl_nvtx_pop(void) {
}

#endif
