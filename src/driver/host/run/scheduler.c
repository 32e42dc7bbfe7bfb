/* Workers: threads that run tasks and help with parallel loops.
   A worker takes a task first and helps with an open loop otherwise; with
   neither it stays awake for HOST_SPIN_NS and then sleeps.  There are at most
   `limit` of them; a worker inside a user's callback does not count, so that
   another worker may take its place, and surplus workers end.
   Invariant: every queued task is seen.  A worker that stops spinning reads
   `pending` afterwards; a thread that raises `pending` reads `spinning`
   afterwards, and wakes or starts workers if there are too few. */
#define _GNU_SOURCE
#include "driver/host/run/run.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_NS = 250000000 }; /* the end of the process waits so long */

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t wake;  /* a token was given */
  pthread_cond_t ended; /* a worker ended */
  host_task *head[2], *tail[2];
  _Atomic unsigned limit;    /* 0: not set up */
  bool spin;                 /* more than one core: waiting awake makes sense */
  unsigned alive;            /* threads */
  unsigned blocked;          /* of them in a callback */
  unsigned sleeping;         /* on `wake`, without a token */
  unsigned tokens;           /* given, not yet taken */
  pid_t process;             /* whose threads they are */
  _Atomic unsigned pending;  /* tasks queued */
  _Atomic unsigned spinning; /* idle workers that are awake */
} sched = {.mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
           .wake = PTHREAD_COND_INITIALIZER,
           .ended = PTHREAD_COND_INITIALIZER};


/* 1 + the worker's number; 0 on other threads. */
static unsigned worker_self(void) {
  return host_thread_here ? host_thread_here->worker : 0;
}


unsigned host_worker_number(void) {
  const unsigned self = worker_self();
  return self ? self - 1 : 0;
}


bool host_task_waiting(void) {
  return atomic_load_explicit(&sched.pending, memory_order_relaxed) != 0;
}


/* Cores the process may use. */
static unsigned core_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return (unsigned)CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (unsigned)n : 1;
}


static unsigned worker_limit(void) {
  unsigned n = host_device_threads();
  if (n == 0)
    n = core_count();
  return n > HOST_MAX_WORKERS ? HOST_MAX_WORKERS : n;
}


/* Workers must be gone before static data is torn down; one that hangs in a
   kernel is left behind. */
static void shut_down(void) {
  if (sched.process && getpid() != sched.process)
    return;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += EXIT_NS;
  if (end.tv_nsec >= 1000000000) {
    end.tv_nsec -= 1000000000;
    end.tv_sec++;
  }
  pthread_mutex_lock(&sched.mutex);
  host_stop();
  pthread_cond_broadcast(&sched.wake);
  while (sched.alive > (worker_self() != 0))
    if (pthread_cond_timedwait(&sched.ended, &sched.mutex, &end))
      break;
  pthread_mutex_unlock(&sched.mutex);
  host_watch_end();
}


/* Under the mutex, once. */
static void set_up(void) {
  unsigned limit = worker_limit();
  sched.spin = limit > 1 && core_count() > 1;
  atexit(shut_down);
  /* Workers and signal handlers outlive a dlclose of the library we are in. */
  Dl_info info;
  if (dladdr((void *)(uintptr_t)set_up, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  atomic_store(&sched.limit, limit);
}


unsigned host_worker_count(void) {
  unsigned limit = atomic_load_explicit(&sched.limit, memory_order_acquire);
  if (limit)
    return limit;
  pthread_mutex_lock(&sched.mutex);
  if (!atomic_load(&sched.limit))
    set_up();
  pthread_mutex_unlock(&sched.mutex);
  return atomic_load(&sched.limit);
}


static host_task *pop_task(void) {
  host_task *task = NULL;
  if (!atomic_load(&sched.pending))
    return NULL;
  pthread_mutex_lock(&sched.mutex);
  for (int i = 0; i < 2 && !task; i++) {
    task = sched.head[i];
    if (!task)
      continue;
    sched.head[i] = task->next;
    if (!task->next)
      sched.tail[i] = NULL;
    atomic_fetch_sub(&sched.pending, 1);
  }
  pthread_mutex_unlock(&sched.mutex);
  return task;
}


static bool spawn_worker(void);


/* Under the mutex: sees to it that `wanted` workers are awake and idle, as
   far as the limit lets; the number of sleepers that were given a token and
   are to be signalled, best after the mutex has been given back. */
static unsigned rouse_workers(unsigned wanted) {
  unsigned signals = 0;
  unsigned awake = atomic_load(&sched.spinning) + sched.tokens;
  for (; awake < wanted; awake++) {
    if (sched.sleeping) {
      sched.sleeping--;
      sched.tokens++;
      signals++;
    } else if (sched.alive - sched.blocked >= atomic_load(&sched.limit) ||
               !spawn_worker()) {
      break;
    }
  }
  return signals;
}


static void signal_workers(unsigned count) {
  while (count--)
    pthread_cond_signal(&sched.wake);
}


unsigned host_worker_spinning(void) {
  return atomic_load_explicit(&sched.spinning, memory_order_relaxed);
}


void host_worker_wake(unsigned count) {
  pthread_mutex_lock(&sched.mutex);
  unsigned signals = rouse_workers(count);
  pthread_mutex_unlock(&sched.mutex);
  signal_workers(signals);
}


/* The caller is not spinning any more: queued tasks need another worker. */
static void hand_over(void) {
  unsigned pending = atomic_load(&sched.pending);
  if (pending)
    host_worker_wake(pending);
}


/* Waits awake until there may be a task; helps with loops meanwhile.  False
   when the time is up. */
static bool spin_idle(void) {
  host_spinner spinner = {0};
  bool found = false;
  atomic_fetch_add(&sched.spinning, 1);
  while (!found && !host_stopping() && host_spin(&spinner)) {
    found = atomic_load_explicit(&sched.pending, memory_order_relaxed) != 0;
    if (found || !host_parallel_open())
      continue;
    atomic_fetch_sub(&sched.spinning, 1);
    hand_over();
    if (host_parallel_help())
      spinner = (host_spinner){0};
    atomic_fetch_add(&sched.spinning, 1);
  }
  atomic_fetch_sub(&sched.spinning, 1);
  return found;
}


/* Sleeps until there may be something to do; false: the worker is one too
   many, or the process ends. */
static bool sleep_idle(void) {
  bool stay = true;
  pthread_mutex_lock(&sched.mutex);
  if (sched.alive - sched.blocked > atomic_load(&sched.limit)) {
    stay = false;
  } else if (!atomic_load(&sched.pending)) {
    sched.sleeping++;
    while (!sched.tokens && !host_stopping())
      pthread_cond_wait(&sched.wake, &sched.mutex);
    if (sched.tokens)
      sched.tokens--;
    else
      sched.sleeping--;
  }
  pthread_mutex_unlock(&sched.mutex);
  return stay && !host_stopping();
}


static void *worker_main(void *argument) {
  host_thread_adopt(argument);
  host_guard_thread_enter();
  do {
    host_task *task;
    while (!host_stopping() && (task = pop_task()))
      task->run(task);
    if (host_parallel_help() || (sched.spin && spin_idle()))
      continue;
    if (!sleep_idle())
      break;
  } while (!host_stopping());
  host_guard_thread_leave();
  pthread_mutex_lock(&sched.mutex);
  sched.alive--;
  pthread_cond_broadcast(&sched.ended);
  pthread_mutex_unlock(&sched.mutex);
  hand_over();
  return NULL;
}


/* Under the mutex.  Scripts' signals stay with the threads of the program. */
static bool spawn_worker(void) {
  host_thread *own = host_thread_new();
  if (own)
    own->guard = host_guard_new();
  if (!own || !own->guard) {
    free(own);
    return false;
  }
  own->worker = sched.alive + 1;
  sigset_t all, old;
  sigfillset(&all);
  static const int kept[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    sigdelset(&all, kept[i]);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  int failed = pthread_create(&thread, &attributes, worker_main, own);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  if (!failed) {
    sched.alive++;
    sched.process = getpid();
  } else {
    free(own->guard);
    free(own);
  }
  return !failed;
}


void host_task_submit(host_task *task) {
  int queue = task->priority < 0 ? 0 : 1;
  task->next = NULL;
  host_worker_count();
  pthread_mutex_lock(&sched.mutex);
  if (sched.tail[queue])
    sched.tail[queue]->next = task;
  else
    sched.head[queue] = task;
  sched.tail[queue] = task;
  unsigned pending = atomic_fetch_add(&sched.pending, 1) + 1;
  unsigned signals = rouse_workers(pending);
  pthread_mutex_unlock(&sched.mutex);
  signal_workers(signals);
}


void host_callback_begin(void) {
  host_check_enter_callback();
  if (!worker_self())
    return;
  pthread_mutex_lock(&sched.mutex);
  sched.blocked++;
  unsigned signals = rouse_workers(atomic_load(&sched.pending));
  pthread_mutex_unlock(&sched.mutex);
  signal_workers(signals);
}


void host_callback_end(void) {
  host_check_leave_callback();
  if (!worker_self())
    return;
  pthread_mutex_lock(&sched.mutex);
  sched.blocked--;
  pthread_mutex_unlock(&sched.mutex);
}
