/* Libraries that algorithms call. */
#include "algo/library.h"
#include "compile/base/base.h"
#include "core/base/error.h"

#include <dlfcn.h>
#include <pthread.h>


static cgl_status library_fill(const cgl_algo_library *library, void **table,
                               const char *operation) {
  void *opened = cgl_library_open(library->files, library->of_toolkit);
  if (!opened) {
    cgl_fail(CGL_ERROR_NOT_FOUND, operation, "%s (%s) was not found",
             library->title, library->files[0]);
    return cgl_fail_hint("install it: %s", library->package);
  }
  size_t n = 0;
  for (; library->symbols[n]; n++)
    if (!dlsym(opened, library->symbols[n])) {
      dlclose(opened);
      cgl_fail(CGL_ERROR_NOT_FOUND, operation, "%s has no function %s",
               library->title, library->symbols[n]);
      return cgl_fail_hint("install a newer one: %s", library->package);
    }
  for (size_t i = 0; i < n; i++)
    table[i] = dlsym(opened, library->symbols[i]);
  return CGL_OK;
}


cgl_status cgl_algo_library_open(const cgl_algo_library *library, void **table,
                                 const char *operation) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  const cgl_status status =
      *table ? CGL_OK : library_fill(library, table, operation);
  pthread_mutex_unlock(&lock);
  return status;
}
