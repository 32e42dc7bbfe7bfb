/* Workers: threads that run tasks and share parallel loops.
   A worker takes a task first and helps with an open loop otherwise; with
   neither it stays awake for HOST_SPIN_NS and then sleeps.  At most `limit`
   workers run at a time; one that is inside a user's callback does not count,
   so another may stand in. */
#define _GNU_SOURCE
#include "driver/host/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SLOTS = 32 };
/* A loop whose rest is shorter than this stays on its worker; a sleeping
   worker is woken for no less than the second. */
enum { SHARE_NS = 3000, WAKE_NS = 12000, CHUNK_NS = 2000 };
/* How long a loop must be for each helper, and the trial that tells it. */
enum { HELPER_NS = 4000, TRIAL_NS = 800 };
enum { EXIT_NS = 250000000 }; /* the end of the process waits so long */

/* One open parallel loop, on its caller's stack.  The index space is cut in
   one slot per worker, so that a loop repeated over the same data meets it in
   the same core's cache; who has finished his own slot takes from others. */
typedef struct job {
  void (*body)(void *context, uint64_t first, uint64_t last);
  void *context;
  uint64_t chunk; /* least items per claim */
  unsigned nslots;
  _Atomic unsigned helpers; /* others inside; falls to 0 as their last act */
  struct job *next;
  bool open;      /* linked in sched.jobs */
  unsigned seats; /* how many more helpers it has use for; under the mutex */
  struct {
    _Alignas(64) _Atomic uint64_t at;
    uint64_t end;
  } slot[MAX_SLOTS];
} job;

static struct {
  pthread_mutex_t mutex;
  pthread_cond_t wake;   /* a token was given */
  pthread_cond_t joined; /* a helper left, or a worker ended */
  host_task *head[2], *tail[2];
  job *jobs;
  unsigned limit;    /* workers that may run at a time; 0: not set up */
  bool spin;         /* more than one core: waiting awake makes sense */
  unsigned alive;    /* threads */
  unsigned running;  /* inside a task or a loop, not in a callback */
  unsigned sleeping; /* on `wake`, without a token */
  unsigned tokens;   /* given, not yet taken */
  unsigned spinning; /* idle but awake */
  unsigned joining;  /* callers on `joined` */
  pid_t process;
  _Atomic unsigned pending; /* tasks queued + loops open */
  atomic_bool stop;
} sched = {.mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
           .wake = PTHREAD_COND_INITIALIZER,
           .joined = PTHREAD_COND_INITIALIZER};

static pthread_mutex_t api_mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
/* 1 + the worker's number; 0 on other threads. */
static _Thread_local unsigned self;


void host_lock(void) {
  pthread_mutex_lock(&api_mutex);
}


void host_unlock(void) {
  pthread_mutex_unlock(&api_mutex);
}


bool host_on_worker(void) {
  return self != 0;
}


bool host_stopping(void) {
  return atomic_load_explicit(&sched.stop, memory_order_relaxed);
}


bool host_tasks_waiting(void) {
  return atomic_load_explicit(&sched.pending, memory_order_relaxed) != 0;
}


unsigned host_core_count(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
    return (unsigned)CPU_COUNT(&set);
  long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n > 0 ? (unsigned)n : 1;
}


static unsigned worker_limit(void) {
  const char *text = getenv("CGRAPHLUA_HOST_THREADS");
  unsigned long n = text ? strtoul(text, NULL, 10) : 0;
  if (n == 0)
    n = host_core_count();
  return n > HOST_MAX_WORKERS ? HOST_MAX_WORKERS : (unsigned)n;
}


/* Workers must be gone before static data is torn down; one that hangs in a
   kernel is left behind. */
static void shut_down(void) {
  if (getpid() != sched.process)
    return;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += EXIT_NS;
  if (end.tv_nsec >= 1000000000) {
    end.tv_nsec -= 1000000000;
    end.tv_sec++;
  }
  pthread_mutex_lock(&sched.mutex);
  atomic_store(&sched.stop, true);
  pthread_cond_broadcast(&sched.wake);
  sched.joining++;
  while (sched.alive > (self != 0))
    if (pthread_cond_timedwait(&sched.joined, &sched.mutex, &end))
      break;
  sched.joining--;
  pthread_mutex_unlock(&sched.mutex);
}


/* Under the mutex, once. */
static void set_up(void) {
  sched.limit = worker_limit();
  sched.spin = sched.limit > 1 && host_core_count() > 1;
  sched.process = getpid();
  atexit(shut_down);
  /* Workers and signal handlers outlive a dlclose of the library we are in. */
  Dl_info info;
  if (dladdr((void *)(uintptr_t)set_up, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}


unsigned host_worker_count(void) {
  pthread_mutex_lock(&sched.mutex);
  if (!sched.limit)
    set_up();
  unsigned limit = sched.limit;
  pthread_mutex_unlock(&sched.mutex);
  return limit;
}


static host_task *pop_task(void) {
  for (int i = 0; i < 2; i++) {
    host_task *task = sched.head[i];
    if (!task)
      continue;
    sched.head[i] = task->next;
    if (!task->next)
      sched.tail[i] = NULL;
    atomic_fetch_sub(&sched.pending, 1);
    return task;
  }
  return NULL;
}


static bool claim(job *j, unsigned slot, uint64_t *first, uint64_t *last) {
  uint64_t end = j->slot[slot].end;
  uint64_t at = atomic_load_explicit(&j->slot[slot].at, memory_order_relaxed);
  uint64_t n;
  do {
    if (at >= end)
      return false;
    n = (end - at) / 4;
    if (n < j->chunk)
      n = j->chunk;
    if (n > end - at)
      n = end - at;
  } while (!atomic_compare_exchange_weak_explicit(&j->slot[slot].at, &at,
                                                  at + n, memory_order_relaxed,
                                                  memory_order_relaxed));
  *first = at;
  *last = at + n;
  return true;
}


/* Runs chunks until none is left to claim. */
static void work_on(job *j) {
  unsigned mine = (self ? self - 1 : 0) % j->nslots;
  uint64_t first, last;
  for (unsigned i = 0; i < j->nslots; i++) {
    unsigned slot = (mine + i) % j->nslots;
    while (claim(j, slot, &first, &last))
      j->body(j->context, first, last);
  }
}


/* Under the mutex: nobody need look at the loop any more. */
static void close_job(job *j) {
  if (!j->open)
    return;
  job **link = &sched.jobs;
  while (*link != j)
    link = &(*link)->next;
  *link = j->next;
  j->open = false;
  atomic_fetch_sub(&sched.pending, 1);
}


/* Under the mutex: waits awake, then asleep, until there may be work. */
static void idle(void) {
  if (sched.spin) {
    sched.spinning++;
    pthread_mutex_unlock(&sched.mutex);
    host_spinner spinner = {0};
    /* All that spin see new work at once: they try for the lock, so as not to
       queue up for it behind each other. */
    while (!(atomic_load_explicit(&sched.pending, memory_order_relaxed) &&
             pthread_mutex_trylock(&sched.mutex) == 0))
      if (host_stopping() || !host_spin(&spinner)) {
        pthread_mutex_lock(&sched.mutex);
        break;
      }
    sched.spinning--;
    if (atomic_load(&sched.pending) && sched.running < sched.limit)
      return;
  }
  sched.sleeping++;
  while (!sched.tokens && !host_stopping())
    pthread_cond_wait(&sched.wake, &sched.mutex);
  if (sched.tokens)
    sched.tokens--;
  else
    sched.sleeping--;
}


/* Under the mutex: one turn of a worker; false when there was nothing. */
static bool take_turn(void) {
  if (sched.running >= sched.limit)
    return false;
  host_task *task = pop_task();
  job *j = task ? NULL : sched.jobs;
  if (!task && !j)
    return false;
  sched.running++;
  if (j) {
    atomic_fetch_add(&j->helpers, 1);
    if (--j->seats == 0)
      close_job(j);
  }
  pthread_mutex_unlock(&sched.mutex);
  if (task)
    task->run(task);
  else
    work_on(j);
  pthread_mutex_lock(&sched.mutex);
  sched.running--;
  if (j)
    close_job(j); /* what was left has been claimed */
  if (j && atomic_fetch_sub(&j->helpers, 1) == 1 && sched.joining)
    pthread_cond_broadcast(&sched.joined);
  return true;
}


static void *worker_main(void *argument) {
  self = (unsigned)(uintptr_t)argument;
  host_guard_thread_enter();
  pthread_mutex_lock(&sched.mutex);
  while (!host_stopping())
    if (!take_turn())
      idle();
  pthread_mutex_unlock(&sched.mutex);
  host_guard_thread_leave();
  pthread_mutex_lock(&sched.mutex);
  sched.alive--;
  pthread_cond_broadcast(&sched.joined);
  pthread_mutex_unlock(&sched.mutex);
  return NULL;
}


/* Under the mutex.  Scripts' signals stay with the threads of the program. */
static bool spawn(void) {
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
  int failed = pthread_create(&thread, &attributes, worker_main,
                              (void *)(uintptr_t)(sched.alive + 1));
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  if (!failed)
    sched.alive++;
  return !failed;
}


/* Under the mutex: sees to it that someone will look at what was queued.  True:
   a sleeper has been given a token and is to be signalled, best after the
   mutex has been given back. */
static bool rouse(void) {
  unsigned pending = atomic_load(&sched.pending);
  unsigned awake = sched.spinning + sched.tokens;
  if (pending <= awake || sched.running + awake >= sched.limit)
    return false;
  if (!sched.sleeping) {
    spawn();
    return false;
  }
  sched.sleeping--;
  sched.tokens++;
  return true;
}


void host_task_submit(host_task *task) {
  int queue = task->priority < 0 ? 0 : 1;
  task->next = NULL;
  pthread_mutex_lock(&sched.mutex);
  if (!sched.limit)
    set_up();
  if (sched.tail[queue])
    sched.tail[queue]->next = task;
  else
    sched.head[queue] = task;
  sched.tail[queue] = task;
  atomic_fetch_add(&sched.pending, 1);
  bool signal = rouse();
  pthread_mutex_unlock(&sched.mutex);
  if (signal)
    pthread_cond_signal(&sched.wake);
}


void host_worker_yield(void) {
  if (!self)
    return;
  pthread_mutex_lock(&sched.mutex);
  sched.running--;
  bool signal = rouse();
  pthread_mutex_unlock(&sched.mutex);
  if (signal)
    pthread_cond_signal(&sched.wake);
}


void host_worker_return(void) {
  if (!self)
    return;
  pthread_mutex_lock(&sched.mutex);
  sched.running++;
  pthread_mutex_unlock(&sched.mutex);
}


/* Opens the loop to others.  `rest` is the time it would take alone. */
static void publish(job *j, uint64_t rest) {
  pthread_mutex_lock(&sched.mutex);
  j->next = sched.jobs;
  j->open = true;
  sched.jobs = j;
  atomic_fetch_add(&sched.pending, 1);
  unsigned woken = 0;
  for (unsigned i = sched.spinning; rest >= WAKE_NS && i < j->seats; i++) {
    if (sched.running + sched.spinning + sched.tokens >= sched.limit)
      break;
    if (sched.sleeping) {
      sched.sleeping--;
      sched.tokens++;
      woken++;
    } else if (!spawn()) {
      break;
    }
  }
  pthread_mutex_unlock(&sched.mutex);
  while (woken--)
    pthread_cond_signal(&sched.wake);
}


/* No one enters any more; waits for those inside. */
static void close_and_join(job *j) {
  pthread_mutex_lock(&sched.mutex);
  close_job(j);
  pthread_mutex_unlock(&sched.mutex);
  host_spinner spinner = {0};
  while (atomic_load(&j->helpers)) {
    if (host_spin(&spinner))
      continue;
    pthread_mutex_lock(&sched.mutex);
    sched.joining++;
    while (atomic_load(&j->helpers))
      pthread_cond_wait(&sched.joined, &sched.mutex);
    sched.joining--;
    pthread_mutex_unlock(&sched.mutex);
  }
}


/* Runs growing pieces until they tell how long the rest would take alone:
 *done items took *took ns. */
static void try_out(uint64_t count, uint64_t chunk,
                    void (*body)(void *, uint64_t, uint64_t), void *context,
                    uint64_t *done, uint64_t *took) {
  uint64_t start = host_now();
  *done = *took = 0;
  while (*done < count && *took < TRIAL_NS) {
    uint64_t n = chunk < count - *done ? chunk : count - *done;
    body(context, *done, *done + n);
    *done += n;
    *took = host_now() - start;
    chunk *= 4;
  }
}


/* Cuts [0, count) in a slot per participant; [0, done) has been run. */
static void cut(job *j, uint64_t count, uint64_t done) {
  uint64_t from = 0;
  for (unsigned i = 0; i < j->nslots; i++) {
    uint64_t to = from + (count - from) / (j->nslots - i);
    uint64_t at = from < done ? done : from;
    atomic_init(&j->slot[i].at, at < to ? at : to);
    j->slot[i].end = to;
    from = to;
  }
}


void host_parallel_for(uint64_t count, uint64_t chunk,
                       void (*body)(void *context, uint64_t first,
                                    uint64_t last),
                       void *context) {
  if (chunk < 1)
    chunk = 1;
  if (count <= chunk || sched.limit < 2) {
    if (count)
      body(context, 0, count);
    return;
  }
  uint64_t done, took;
  try_out(count, chunk, body, context, &done, &took);
  double each = (double)took / (double)done;
  double rest = each * (double)(count - done);
  if (rest < SHARE_NS) {
    if (done < count)
      body(context, done, count);
    return;
  }
  job j; /* most of its slots are not even touched */
  j.body = body;
  j.context = context;
  atomic_init(&j.helpers, 0);
  double least = CHUNK_NS / each;
  j.chunk = least > (double)chunk ? (uint64_t)least : chunk;
  unsigned most = (sched.limit < MAX_SLOTS ? sched.limit : MAX_SLOTS) - 1;
  double seats = 1 + rest / HELPER_NS;
  j.seats = seats < most ? (unsigned)seats : most;
  j.nslots = j.seats + 1;
  cut(&j, count, done);
  publish(&j, (uint64_t)rest);
  work_on(&j);
  close_and_join(&j);
}
