/* NVRTC, opened when it is first needed. */
#include "backend.h"

cgl_compile_status cgl_nvrtc_identify(cgl_job *job, cgl_text *identity) {
  (void)job;
  (void)identity;
  return CGL_COMPILE_NO_COMPILER;
}
cgl_compile_status cgl_nvrtc_compile(cgl_job *job) {
  (void)job;
  return CGL_COMPILE_NO_COMPILER;
}
