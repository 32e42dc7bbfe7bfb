/* The watch on kernels that do not end: deadlines, and the abort of a device.
   A kernel publishes its deadline in its fault frame (guard.c); the watcher, a
   thread, sleeps until the earliest, and interrupts what runs beyond.
   Invariant: the watcher sleeps without a time only after it has said so in
   `idle` and then found no deadline; a kernel that has published its deadline
   reads `idle` afterwards. */
#define _GNU_SOURCE
#include "driver/host/run/run.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

/* An abort waits for kernels that are away from their own code. */
enum { ABORT_TRIES = 1000, NAME_TRIES = 200 };

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t wake; /* by CLOCK_MONOTONIC */
  pthread_t thread;
  bool started, ending, isolating; /* under the mutex */
  atomic_bool idle;                /* the watcher found no deadline */
  atomic_bool aborted;
  _Atomic uint64_t ns; /* that a launch may run; 0: no limit */
} watch = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
atomic_bool host_watch_on;


static struct timespec moment(uint64_t ns) {
  return (struct timespec){(time_t)(ns / 1000000000u),
                           (long)(ns % 1000000000u)};
}


static void *watcher_main(void *unused) {
  pthread_mutex_lock(&watch.mutex);
  while (!watch.ending) {
    atomic_store(&watch.idle, true);
    uint64_t next = host_guard_interrupt();
    if (!next) {
      pthread_cond_wait(&watch.wake, &watch.mutex);
      continue;
    }
    atomic_store(&watch.idle, false);
    struct timespec until = moment(next);
    pthread_cond_timedwait(&watch.wake, &watch.mutex, &until);
  }
  pthread_mutex_unlock(&watch.mutex);
  return unused;
}


/* Under the mutex; false: there is no thread.  The program's signals stay with
   its own threads. */
static bool watcher_start(void) {
  if (watch.started || watch.ending)
    return watch.started;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  watch.started = !pthread_create(&watch.thread, NULL, watcher_main, NULL);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return watch.started;
}


static bool watch_set(double seconds) {
  pthread_mutex_lock(&watch.mutex);
  bool done = !(seconds > 0) || watcher_start();
  if (done) {
    double ns = seconds * 1e9;
    atomic_store(&watch.ns, seconds > 0 ? ns < 1 ? 1 : (uint64_t)ns : 0);
    if (atomic_load(&watch.ns)) /* stays: a former deadline still holds */
      atomic_store(&host_watch_on, true);
    if (watch.started)
      pthread_cond_signal(&watch.wake);
  }
  pthread_mutex_unlock(&watch.mutex);
  return done;
}


static void watch_set_up(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&watch.wake, &attributes);
  pthread_condattr_destroy(&attributes);
  watch_set(host_device_kernel_seconds());
}


void host_watch_begin(void) {
  pthread_once(&once, watch_set_up);
}


CUresult host_watch_set(double seconds) {
  host_worker_count(); /* the end of the process is prepared */
  host_watch_begin();
  return watch_set(seconds) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}


CUresult host_watch_enable(void) {
  host_worker_count();
  host_watch_begin();
  pthread_mutex_lock(&watch.mutex);
  bool done = watcher_start();
  if (done) {
    watch.isolating = true;
    atomic_store(&host_watch_on, true);
  }
  pthread_mutex_unlock(&watch.mutex);
  return done ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}


void host_watch_limit(host_limits *limits, const host_isolation *isolation) {
  uint64_t begin = 0;
  limits->ns = atomic_load(&watch.ns);
  if (isolation) {
    uint64_t own = atomic_load(&isolation->ns);
    if (own && (!limits->ns || own < limits->ns)) {
      limits->ns = own;
      begin = atomic_load(&isolation->began);
    }
    limits->stopped = &isolation->failed;
  }
  limits->deadline = limits->ns ? (begin ? begin : host_now()) + limits->ns : 0;
}


bool host_watch_due(uint64_t deadline) {
  return host_watch_aborted() || (deadline && host_now() >= deadline);
}


bool host_watch_aborted(void) {
  return atomic_load(&watch.aborted);
}


void host_watch_note(void) {
  if (!atomic_load(&watch.idle))
    return;
  pthread_mutex_lock(&watch.mutex);
  pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.mutex);
}


/* Whether a kernel was running that has to end; the watcher, which would end it
   as well, waits for the mutex. */
static bool watch_set_aborted(bool aborted) {
  pthread_mutex_lock(&watch.mutex);
  atomic_store(&watch.aborted, aborted);
  atomic_store(&host_watch_on,
               aborted || watch.isolating || atomic_load(&watch.ns));
  const bool running = aborted && host_guard_interrupt();
  pthread_mutex_unlock(&watch.mutex);
  return running;
}


/* A kernel enters its frame and then reads the flag, without a fence: the nap
   is long enough for every thread to see the flag, or its frame to be seen. */
void host_watch_abort(void) {
  const struct timespec nap = {0, 1000000};
  bool running = watch_set_aborted(true);
  for (int i = 0; i < ABORT_TRIES; i++) {
    nanosleep(&nap, NULL);
    if (!host_guard_interrupt())
      break;
    running = true;
  }
  /* A kernel that ended gives its name to the failure. */
  for (int i = 0; i < NAME_TRIES && running && !host_failed(); i++)
    nanosleep(&nap, NULL);
  host_fail(CUDA_ERROR_LAUNCH_TIMEOUT, "the device was aborted");
}


void host_watch_reset(void) {
  watch_set_aborted(false);
}


void host_watch_end(void) {
  pthread_mutex_lock(&watch.mutex);
  bool join = watch.started;
  watch.started = false;
  watch.ending = true;
  if (join)
    pthread_cond_signal(&watch.wake);
  pthread_mutex_unlock(&watch.mutex);
  if (join)
    pthread_join(watch.thread, NULL);
}
