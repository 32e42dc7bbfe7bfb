/* The latest launches of a thread, for the message of a kernel that failed: a
   device reports the failure at some later call, and a GPU does not say which
   kernel it was. */
#include "core/base/error.h"

#include <stdio.h>
#include <string.h>


void cgl_launches_add(const char *name) {
  cgl_thread *thread = cgl_thread_own();
  const unsigned next = thread->nlaunches++ % CGL_LATEST_LAUNCHES;
  thread->launches[next].name = name;
  thread->launches[next].site = thread->site;
}


void cgl_launches_clear(void) {
  cgl_thread_own()->nlaunches = 0;
}


typedef struct step {
  const char *name;
  cgl_site site;
} step;


/* The k-th latest, from 0. */
static step step_at(const cgl_thread *thread, unsigned k) {
  const unsigned at = (thread->nlaunches - 1 - k) % CGL_LATEST_LAUNCHES;
  return (step){thread->launches[at].name, thread->launches[at].site};
}


static bool step_is_same(step a, step b) {
  return a.name == b.name && a.site.file == b.site.file &&
         a.site.line == b.site.line;
}


void cgl_launches_write(char *text, size_t size, const char *failure) {
  const cgl_thread *thread = cgl_thread_own();
  unsigned count = thread->nlaunches;
  if (count > CGL_LATEST_LAUNCHES)
    count = CGL_LATEST_LAUNCHES;
  /* Where the device named the kernel, only its launches are of interest. */
  bool named = false;
  for (unsigned i = 0; i < count; i++)
    named |= failure && strstr(failure, step_at(thread, i).name);
  size_t at = 0;
  text[0] = 0;
  for (unsigned i = 0; i < count && at < size; i++) {
    const step one = step_at(thread, i);
    bool skip = named && !strstr(failure, one.name);
    for (unsigned k = 0; k < i; k++)
      skip |= step_is_same(one, step_at(thread, k));
    if (skip)
      continue;
    at += (size_t)snprintf(text + at, size - at, "%s%s%s%s", at ? ", " : "",
                           one.name, one.site.file ? " launched at " : "",
                           one.site.file ? cgl_site_text(one.site) : "");
  }
}
