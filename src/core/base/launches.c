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


/* The k-th latest, from 0. */
static const step *step_at(unsigned k) {
  return &steps[(nsteps - 1 - k) % STEPS];
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
    named |= failure && strstr(failure, step_at(i)->name);
  size_t at = 0;
  text[0] = 0;
  for (unsigned i = 0; i < count && at < size; i++) {
    const step *one = step_at(i);
    bool skip = named && !strstr(failure, one->name);
    for (unsigned k = 0; k < i; k++)
      skip |= step_is_same(one, step_at(k));
    if (skip)
      continue;
    at += (size_t)snprintf(text + at, size - at, "%s%s%s%s", at ? ", " : "",
                           one->name, one->site.file ? " launched at " : "",
                           one->site.file ? cgl_site_text(one->site) : "");
  }
}
