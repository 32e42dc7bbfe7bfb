/* Images that a program is shipped with. */
#include "core/module/module.h"

#include <string.h>


cgl_status cgl_kernels_from(const char *folder) {
  int error = cgl_compile_from(folder);
  if (!error)
    return CGL_OK;
  cgl_fail(CGL_ERROR_SYSTEM, "kernels_from", "cannot look into '%s': %s",
           folder, strerror(error));
  return cgl_fail_hint("name the folder that cgraphlua --compile wrote");
}


/* Fails with the text, which is freed. */
static cgl_status kernels_fail(cgl_compile_status answer, cgl_text *why,
                               const char *operation, const char *hint) {
  static const cgl_status codes[] = {[CGL_COMPILE_OK] = CGL_OK,
                                     [CGL_COMPILE_REFUSED] = CGL_ERROR_COMPILE,
                                     [CGL_COMPILE_NO_COMPILER] =
                                         CGL_ERROR_NO_COMPILER,
                                     [CGL_COMPILE_SYSTEM] = CGL_ERROR_SYSTEM};
  if (answer != CGL_COMPILE_OK) {
    cgl_fail(codes[answer], operation, "%s",
             why->data ? why->data : "not enough memory");
    cgl_fail_hint("%s", hint);
  }
  cgl_text_free(why);
  return codes[answer];
}


cgl_status cgl_kernels_collect(const char *const *archs, size_t narchs) {
  cgl_text why = {0};
  return kernels_fail(cgl_compile_collect(archs, narchs, &why), &why,
                      "kernels_collect",
                      "name architectures that NVRTC compiles for, as sm_90");
}


cgl_status cgl_kernels_write(const char *folder, size_t *count) {
  cgl_text why = {0};
  size_t n = 0;
  cgl_compilations_finish();
  cgl_compile_status answer = cgl_compile_write(folder, &n, &why);
  if (count)
    *count = n;
  return kernels_fail(answer, &why, "kernels_write", "nothing was written");
}
