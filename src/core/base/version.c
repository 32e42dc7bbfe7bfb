#include "core/base/base.h"


const char *cgl_version(int numbers[3]) {
  if (numbers) {
    numbers[0] = CGL_VERSION_MAJOR;
    numbers[1] = CGL_VERSION_MINOR;
    numbers[2] = CGL_VERSION_PATCH;
  }
  return CGL_VERSION;
}
