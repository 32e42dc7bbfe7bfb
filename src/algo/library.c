/* Libraries that algorithms call. */
#include "algo/library.h"
#include "compile/base/base.h"
#include "core/base/error.h"

#include <dlfcn.h>


cgl_status cgl_algo_library_open(const cgl_algo_library *library, void **table,
                                 const char *operation) {
  void *opened = cgl_library_open(library->files, library->of_toolkit);
  if (!opened) {
    cgl_fail(CGL_ERROR_NOT_FOUND, operation, "%s (%s) was not found",
             library->title, library->files[0]);
    return cgl_fail_hint("install it: %s", library->package);
  }
  for (size_t i = 0; library->symbols[i]; i++)
    if (!(table[i] = dlsym(opened, library->symbols[i]))) {
      dlclose(opened);
      cgl_fail(CGL_ERROR_NOT_FOUND, operation, "%s has no function %s",
               library->title, library->symbols[i]);
      return cgl_fail_hint("install a newer one: %s", library->package);
    }
  return CGL_OK;
}
