/* Shared libraries, opened when they are needed. */
#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "compile/base/base.h"


static void *library_open_in(const char *folder, const char *const *names) {
  void *library = NULL;
  for (; *names && !library; names++) {
    char *path = *folder ? cgl_format("%s/%s", folder, *names) : strdup(*names);
    if (path)
      library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    free(path);
  }
  return library;
}


static void *library_open_below(const char *home, const char *const *names) {
  static const char *const parts[] = {
      "lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"};
  void *library = NULL;
  for (size_t i = 0; i < sizeof parts / sizeof *parts && !library; i++) {
    char *folder = cgl_format("%s/%s", home, parts[i]);
    if (folder)
      library = library_open_in(folder, names);
    free(folder);
  }
  return library;
}


void *cgl_library_open(const char *const *names, bool of_toolkit) {
  static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
  void *library = NULL;
  for (size_t i = 0; i < 2 && of_toolkit && !library; i++) {
    const char *home = getenv(variables[i]);
    if (home && *home)
      library = library_open_below(home, names);
  }
  if (!library)
    library = library_open_in("", names);
  if (library || !of_toolkit)
    return library;
  library = library_open_below("/usr/local/cuda", names);
  glob_t found;
  if (!library && glob("/usr/local/cuda-*", 0, NULL, &found) == 0) {
    for (size_t i = found.gl_pathc; i-- > 0 && !library;)
      library = library_open_below(found.gl_pathv[i], names);
    globfree(&found);
  }
  return library;
}
