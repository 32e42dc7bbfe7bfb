/* What a rank has issued, and whether it waits for it: collectives that the
   device does by itself, as NCCL's, are no requests of the progress thread. */
#include "ranks/ranks.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ENDED = 64 /* groups that are remembered */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by the lock. */
static cgl_watch *first;
static cgl_group *ended[ENDED]; /* references; a ring */
static size_t nended;
static uint64_t worlds; /* that were opened: by all ranks, in the same order */


bool cgl_watch_is_for_all(void) {
  const char *wish = getenv("CGRAPHLUA_RANKS_WATCH");
  return wish && strcmp(wish, "1") == 0;
}


void cgl_watch_begin(cgl_watch *w, cgl_group *group,
                     const cgl_context *context) {
  *w = (cgl_watch){.group = group, .context = context, .lacks = -1};
  pthread_mutex_lock(&lock);
  group->watched_as = group->id ? group->id : ++worlds;
  w->next = first;
  first = w;
  pthread_mutex_unlock(&lock);
}


void cgl_watch_end(cgl_watch *w) {
  pthread_mutex_lock(&lock);
  cgl_watch **at = &first;
  while (*at && *at != w)
    at = &(*at)->next;
  if (*at)
    *at = w->next;
  cgl_group **last = &ended[nended++ % ENDED];
  cgl_ranks_drop_group(*last);
  *last = w->group;
  atomic_fetch_add(&w->group->references, 1);
  pthread_mutex_unlock(&lock);
}


void cgl_watch_count(cgl_group *group, const cgl_mpi_call *call,
                     uint64_t times) {
  cgl_issued *issued = group->issued;
  for (size_t i = 0; i < call->ntransfers; i++) {
    const cgl_mpi_transfer *t = &call->transfers[i];
    atomic_fetch_add_explicit(t->send ? &issued->with[t->peer].sent
                                      : &issued->with[t->peer].received,
                              times, memory_order_relaxed);
  }
  if (call->what != CGL_EXCHANGE)
    atomic_fetch_add_explicit(&issued->collectives, times,
                              memory_order_relaxed);
  atomic_fetch_add_explicit(&issued->calls, times, memory_order_relaxed);
}


/* ---- the progress thread's ---- */

void cgl_watch_lock(void) {
  pthread_mutex_lock(&lock);
}


void cgl_watch_unlock(void) {
  pthread_mutex_unlock(&lock);
}


static bool is_blocked(const cgl_watch *w) {
  return atomic_load_explicit(&w->context->blocked, memory_order_relaxed);
}


cgl_watch *cgl_watch_late(double now, double seconds) {
  cgl_watch *late = NULL;
  for (cgl_watch *w = first; w; w = w->next) {
    const uint64_t calls =
        atomic_load_explicit(&w->group->issued->calls, memory_order_relaxed);
    const uint64_t steps = calls + atomic_load_explicit(&w->context->unblocked,
                                                        memory_order_relaxed);
    if (steps != w->steps || !w->since) {
      w->steps = steps;
      w->since = now;
      w->due = 0;
      w->lacks = -1;
    }
    if (!late && calls && is_blocked(w) && now - w->since >= seconds &&
        now >= w->due)
      late = w;
  }
  return late;
}


/* The group, or NULL; *w: NULL when it has ended. */
static const cgl_group *find_group(uint64_t id, const cgl_watch **w) {
  for (*w = first; *w; *w = (*w)->next)
    if ((*w)->group->watched_as == id)
      return (*w)->group;
  for (size_t i = 0; i < ENDED; i++)
    if (ended[i] && ended[i]->watched_as == id)
      return ended[i];
  return NULL;
}


cgl_watch_state cgl_watch_tell(uint64_t id, int rank, double now,
                               double seconds) {
  const cgl_watch *w;
  const cgl_group *group = find_group(id, &w);
  int member = 0;
  while (group && member < group->size && group->members[member] != rank)
    member++;
  if (!group || member == group->size)
    return (cgl_watch_state){.known = false};
  const cgl_issued *issued = group->issued;
  const bool blocked = w && is_blocked(w);
  const cgl_watch *any = first;
  while (any && (any->lacks < 0 || !is_blocked(any)))
    any = any->next;
  return (cgl_watch_state){
      .known = true,
      .collectives = atomic_load(&issued->collectives),
      .sent = atomic_load(&issued->with[member].sent),
      .received = atomic_load(&issued->with[member].received),
      .idle = !w || (!blocked && now - w->since >= seconds),
      .lacks = any ? any->lacks : -1};
}


bool cgl_watch_concerns(const cgl_watch *w, int member) {
  const cgl_issued *issued = w->group->issued;
  return member != w->group->rank &&
         (atomic_load(&issued->collectives) ||
          atomic_load(&issued->with[member].sent) ||
          atomic_load(&issued->with[member].received));
}


bool cgl_watch_lacks(const cgl_watch *w, int member,
                     const cgl_watch_state *theirs) {
  const cgl_issued *issued = w->group->issued;
  return theirs->known &&
         (theirs->collectives < atomic_load(&issued->collectives) ||
          theirs->received < atomic_load(&issued->with[member].sent) ||
          theirs->sent < atomic_load(&issued->with[member].received));
}
