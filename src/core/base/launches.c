/* The latest launches of a thread, for the message of a kernel that failed: a
   device reports the failure at some later call, and a GPU does not say which
   kernel it was. */
#include "core/base/error.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 8 };

typedef struct step {
  const char *name; /* interned */
  cgl_site site;
} step;

static _Thread_local step steps[STEPS];
static _Thread_local unsigned nsteps; /* since the device was last waited for */


void cgl_launches_add(const char *name) {
  step *next = &steps[nsteps++ % STEPS];
  next->name = name;
  next->site = cgl_site_here;
}


void cgl_launches_clear(void) {
  nsteps = 0;
}


static bool step_is_same(const step *a, const step *b) {
  return a->name == b->name && a->site.file == b->site.file &&
         a->site.line == b->site.line;
}


void cgl_launches_write(char *text, size_t size, const char *failure) {
  unsigned count = nsteps < STEPS ? nsteps : STEPS;
  /* Where the device named the kernel, only its launches are of interest. */
  bool named = false;
  for (unsigned i = 0; i < count; i++)
    named |= failure && strstr(failure, steps[(nsteps - 1 - i) % STEPS].name);
  size_t at = 0;
  text[0] = 0;
  for (unsigned i = 0; i < count && at < size; i++) {
    const step *one = &steps[(nsteps - 1 - i) % STEPS];
    bool skip = named && !strstr(failure, one->name);
    for (unsigned k = 0; k < i; k++)
      skip |= step_is_same(one, &steps[(nsteps - 1 - k) % STEPS]);
    if (skip)
      continue;
    int n = snprintf(text + at, size - at, "%s%s", at ? ", " : "", one->name);
    at += n > 0 ? (size_t)n : 0;
    if (one->site.file && at < size) {
      n = snprintf(text + at, size - at, " launched at %s:%d", one->site.file,
                   one->site.line);
      at += n > 0 ? (size_t)n : 0;
    }
  }
}
