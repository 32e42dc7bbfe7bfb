/* Fences: one-shot completions that threads and tasks wait for. */
#define _GNU_SOURCE
#include "driver/host/run/run.h"
#include "driver/waits.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PENDING, AWAITED, DONE };

struct host_fence {
  _Atomic uint32_t refs;
  _Atomic uint32_t state;     /* a futex: PENDING, AWAITED (a thread sleeps) */
  uint64_t time;              /* written before DONE */
  _Atomic(host_task *) tasks; /* newest first; `closed` once signalled */
};

/* Stands in `tasks` of a signalled fence. */
static host_task closed;


/* Sleeps while *word == value, and the time is not over (NULL: no time). */
static void futex_wait(_Atomic uint32_t *word, uint32_t value,
                       const struct timespec *time) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, time, NULL, 0);
}


/* Wakes all sleepers. */
static void futex_wake(_Atomic uint32_t *word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}


host_fence *host_fence_create(void) {
  host_fence *fence = malloc(sizeof *fence);
  if (!fence)
    return NULL;
  atomic_init(&fence->refs, 1);
  atomic_init(&fence->state, PENDING);
  fence->time = 0;
  atomic_init(&fence->tasks, NULL);
  return fence;
}


host_fence *host_fence_retain(host_fence *fence) {
  if (fence)
    atomic_fetch_add_explicit(&fence->refs, 1, memory_order_relaxed);
  return fence;
}


void host_fence_release(host_fence *fence) {
  if (fence &&
      atomic_fetch_sub_explicit(&fence->refs, 1, memory_order_acq_rel) == 1)
    free(fence);
}


bool host_fence_done(const host_fence *fence) {
  return atomic_load_explicit(&fence->state, memory_order_acquire) == DONE;
}


uint64_t host_fence_time(const host_fence *fence) {
  return host_fence_done(fence) ? fence->time : 0;
}


void host_fence_signal(host_fence *fence) {
  fence->time = host_now();
  uint32_t state = atomic_exchange(&fence->state, DONE);
  if (state == AWAITED)
    futex_wake(&fence->state);
  host_task *task = atomic_exchange(&fence->tasks, &closed), *first = NULL;
  while (task) { /* the list is newest first; serve the oldest first */
    host_task *next = task->next;
    task->next = first;
    first = task;
    task = next;
  }
  while (first) {
    task = first;
    first = task->next;
    host_task_submit(task);
  }
}


bool host_fence_then(host_fence *fence, host_task *task) {
  host_task *head = atomic_load(&fence->tasks);
  do {
    if (head == &closed)
      return false;
    task->next = head;
  } while (!atomic_compare_exchange_weak(&fence->tasks, &head, task));
  return true;
}


/* The fence is signalled soon after. */
static void wait_give_up(void) {
  if (host_failed() == CUDA_SUCCESS)
    host_watch_abort();
}


void host_fence_wait(host_fence *fence) {
  const struct timespec look = {0, 20000000}; /* for a wait to be given up */
  host_spinner spinner = {0};
  do {
    if (host_fence_done(fence))
      return;
  } while (host_spin(&spinner));
  uint32_t state = PENDING;
  if (!atomic_compare_exchange_strong(&fence->state, &state, AWAITED) &&
      state == DONE)
    return;
  const bool polls = atomic_load(&cgl_driver_waits) != CGL_WAITS_BLOCK;
  while (!host_fence_done(fence)) {
    futex_wait(&fence->state, AWAITED, polls ? &look : NULL);
    if (polls && !host_fence_done(fence) && cgl_driver_waits_stop())
      wait_give_up();
  }
}
