/* The trail: what this thread issued last, for the day a kernel fails.  A
   device reports a failing kernel at some later call, and a GPU does not say
   which kernel it was. */
#include "core/base/base.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 8 };

typedef struct step {
  const char *name; /* interned */
  cgl_site site;
} step;

static _Thread_local step steps[STEPS];
static _Thread_local unsigned taken; /* since the device was last waited for */


void cgl_trail_add(const char *name) {
  step *next = &steps[taken++ % STEPS];
  next->name = name;
  next->site = cgl_site_here;
}


void cgl_trail_clear(void) {
  taken = 0;
}


static bool same(const step *a, const step *b) {
  return a->name == b->name && a->site.file == b->site.file &&
         a->site.line == b->site.line;
}


void cgl_trail_write(char *text, size_t size, const char *told) {
  unsigned count = taken < STEPS ? taken : STEPS;
  /* Where the device named the kernel, only its launches are of interest. */
  bool named = false;
  for (unsigned i = 0; i < count; i++)
    named |= told && strstr(told, steps[(taken - 1 - i) % STEPS].name);
  size_t at = 0;
  text[0] = 0;
  for (unsigned i = 0; i < count && at < size; i++) {
    const step *one = &steps[(taken - 1 - i) % STEPS];
    bool skip = named && !strstr(told, one->name);
    for (unsigned k = 0; k < i; k++)
      skip |= same(one, &steps[(taken - 1 - k) % STEPS]);
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
