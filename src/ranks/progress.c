/* The progress thread: MPI's calls, and ranks that fail or do not come. */
#define _GNU_SOURCE
#include "ranks/ranks.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  IDLE_NS = 20 * 1000 * 1000, /* between looks for messages without requests */
  NAP_NS = 100 * 1000,        /* between tests of requests that take long */
  YIELDS = 2000,              /* tests before the first nap */
  LOOKS = 16,                 /* a look for messages every so many tests */
  TEXT = 160,                 /* a collective and its line */
  LINE = 480                  /* what is known of a failure */
};

typedef enum message_kind {
  HELLO,  /* this is my process */
  ASK,    /* how far are you in this group? */
  ANSWER, /* so far */
  FAILED  /* I end with an error */
} message_kind;

typedef struct message {
  message_kind kind;
  int process;           /* of HELLO */
  uint64_t machine;      /* of HELLO */
  uint64_t group;        /* of ASK and ANSWER */
  uint64_t number;       /* of ANSWER: collectives begun in the group */
  cgl_watch_state watch; /* of ANSWER */
  char text[LINE]; /* of ANSWER: the last collective; of FAILED: what is known
                      of the failure */
} message;

/* How many collectives a group has begun here. */
typedef struct count {
  struct count *next;
  uint64_t group, number;
} count;

/* What is known of another rank. */
typedef struct peer {
  int process; /* 0: on another machine, or not known yet */
  bool heard;  /* answered since the last question */
  uint64_t number;
  cgl_watch_state watch;
  char text[TEXT];
} peer;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t submitted, done;
  cgl_progress *first, **end; /* submitted */
  _Atomic double seconds;
  /* The last collective.  A reader beside a writer may mix two. */
  _Atomic(const char *) operation, file;
  atomic_int line;
  atomic_bool leaving, failing; /* the process ends */
  const cgl_mpi *mpi;
  int rank, size, process;
  bool watches_all; /* collectives are none of the thread's to judge */
  char library[80];
  /* The thread's own. */
  cgl_progress *active;
  count *counts;
  peer *peers;
  const void *asked; /* the request or group that the question is about */
  bool watch_asked;  /* it is a group */
  double asked_at, looked_at;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .submitted = PTHREAD_COND_INITIALIZER,
           .done = PTHREAD_COND_INITIALIZER,
           .end = &world.first,
           .seconds = 30};

static volatile sig_atomic_t terminated;


static double clock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}


static void nap(long ns) {
  const struct timespec time = {0, ns};
  nanosleep(&time, NULL);
}


/* ---- the end of the process ---- */

/* "broadcast at step.lua:9", or "nothing". */
static void last_write(char *text) {
  const char *operation = world.operation;
  const cgl_site site = {world.file, world.line};
  snprintf(text, TEXT, "%s%s%s", operation ? operation : "none",
           operation ? " at " : "", operation ? cgl_site_text(site) : "");
}


static void message_to_all(const message *m) {
  for (int i = 0; i < world.size; i++)
    if (i != world.rank)
      world.mpi->post(i, m, sizeof *m);
}


/* Tells the other ranks, gives them the time to say so, and ends all. */
static void all_end(const char *text) {
  message m = {.kind = FAILED}, ignored;
  int from;
  snprintf(m.text, sizeof m.text, "%s", text);
  message_to_all(&m);
  for (int i = 0; i < 30; i++) {
    while (world.mpi->poll(&from, &ignored, sizeof ignored))
      ;
    nap(10 * 1000 * 1000);
  }
  world.mpi->abort();
  _exit(1);
}


static void die(const char *text) {
  if (!ftrylockfile(stdout)) {
    fflush(stdout);
    funlockfile(stdout);
  }
  fprintf(stderr, "cgraphlua: [%d] %s\n", world.rank, text);
  fflush(stderr);
  all_end(text);
}


/* Another rank failed, and ends this one: only a word is left. */
static void die_with(const char *text) {
  char last[TEXT], line[2 * LINE];
  last_write(last);
  snprintf(line, sizeof line, "%s; the last collective here: %s", text, last);
  if (!ftrylockfile(stdout)) {
    fflush(stdout);
    funlockfile(stdout);
  }
  fprintf(stderr, "cgraphlua: [%d] %s\n", world.rank, line);
  fflush(stderr);
  nap(100 * 1000 * 1000);
  _exit(1);
}


static void on_terminate(int signal_) {
  (void)signal_;
  terminated = 1;
}


/* ---- other processes of the machine ---- */

static uint64_t text_hash(uint64_t hash, const void *bytes, size_t n) {
  const unsigned char *from = bytes;
  for (size_t i = 0; i < n; i++)
    hash = (hash ^ from[i]) * UINT64_C(0x100000001b3);
  return hash;
}


/* Processes with the same number see each other's numbers. */
static uint64_t machine_number(void) {
  char name[256] = "", space[64] = "";
  gethostname(name, sizeof name - 1);
  const ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
  const uint64_t hash =
      text_hash(UINT64_C(0xcbf29ce484222325), name, strlen(name));
  return text_hash(hash, space, n > 0 ? (size_t)n : 0);
}


static bool process_is_gone(int process) {
  char path[40], text[256];
  if (kill(process, 0) && errno == ESRCH)
    return true;
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  FILE *file = fopen(path, "r");
  const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file)
    fclose(file);
  text[n] = 0;
  const char *state = strrchr(text, ')');
  return state && (state[2] == 'Z' || state[2] == 'X');
}


/* Ends this process when another one of the machine has ended. */
static void peers_look(void) {
  char text[2 * TEXT];
  for (int i = 0; i < world.size; i++)
    if (world.peers[i].process && process_is_gone(world.peers[i].process)) {
      snprintf(text, sizeof text, "rank %d (process %d) has died", i,
               world.peers[i].process);
      die_with(text);
    }
}


/* ---- messages ---- */

static uint64_t *count_of(uint64_t group) {
  count *c = world.counts;
  while (c && c->group != group)
    c = c->next;
  if (!c && (c = calloc(1, sizeof *c))) {
    c->group = group;
    c->next = world.counts;
    world.counts = c;
  }
  static uint64_t spare;
  return c ? &c->number : &spare;
}


static void message_take(int from, const message *m) {
  message answer = {.kind = ANSWER, .group = m->group};
  char text[LINE + 40];
  peer *other = &world.peers[from];
  switch (m->kind) {
  case HELLO:
    other->process = m->machine == machine_number() ? m->process : 0;
    break;
  case ASK:
    answer.number = *count_of(m->group);
    cgl_watch_lock();
    answer.watch = cgl_watch_tell(m->group, from, clock_now(), world.seconds);
    cgl_watch_unlock();
    last_write(answer.text);
    if (world.leaving)
      strncat(answer.text, " (its script has ended)",
              TEXT - strlen(answer.text) - 1);
    world.mpi->post(from, &answer, sizeof answer);
    break;
  case ANSWER:
    other->heard = true;
    other->number = m->number;
    other->watch = m->watch;
    memcpy(other->text, m->text, TEXT);
    break;
  case FAILED:
    snprintf(text, sizeof text, "rank %d ended: %.*s", from, LINE, m->text);
    die_with(text);
  }
}


/* ---- requests that take too long ---- */

/* What the host asks aside of the group's calls is counted by itself. */
static uint64_t request_group(const cgl_progress *request) {
  return request->group->id ^ (request->call.aside ? UINT64_C(1) << 63 : 0);
}


static bool request_concerns(const cgl_progress *request, int index) {
  const cgl_mpi_call *call = &request->call;
  bool concerns = call->what != CGL_EXCHANGE;
  for (size_t i = 0; i < call->ntransfers; i++)
    concerns |= call->transfers[i].peer == index;
  return concerns && request->group->members[index] != world.rank;
}


static void rank_ask(int rank, uint64_t group) {
  const message m = {.kind = ASK, .group = group};
  world.peers[rank].heard = false;
  world.mpi->post(rank, &m, sizeof m);
}


static void request_ask(const cgl_progress *request) {
  for (int i = 0; i < request->group->size; i++)
    if (request_concerns(request, i))
      rank_ask(request->group->members[i], request_group(request));
  world.asked = request;
  world.asked_at = clock_now();
}


/* Ranks that a call waits for, in a message. */
typedef struct missing {
  char text[6 * TEXT];
  int length, begin; /* the text is empty while they are the same */
} missing;


static void missing_begin(missing *m, const char *what) {
  m->length = m->begin =
      snprintf(m->text, sizeof m->text, "%s has waited %g s for", what,
               (double)world.seconds);
}


static void missing_add(missing *m, int rank) {
  const peer *other = &world.peers[rank];
  if (m->length < (int)sizeof m->text - 2 * TEXT)
    m->length += snprintf(m->text + m->length, TEXT + 60, "%s rank %d, %s%.*s",
                          m->length == m->begin ? "" : " and", rank,
                          other->heard ? "whose last collective was "
                                       : "which does not answer",
                          TEXT, other->heard ? other->text : "");
}


/* Once the others have answered, or have had the time: who is missing?  When
   all have come, it takes long, and goes on. */
static void request_judge(cgl_progress *request) {
  const cgl_group *group = request->group;
  char what[TEXT];
  missing m;
  bool all = true;
  snprintf(what, sizeof what, "%s at %s", request->operation,
           cgl_site_text(request->site));
  missing_begin(&m, what);
  for (int i = 0; i < group->size; i++) {
    const peer *other = &world.peers[group->members[i]];
    if (!request_concerns(request, i))
      continue;
    all &= other->heard;
    if (!other->heard || request->call.what == CGL_EXCHANGE ||
        other->number < request->number)
      missing_add(&m, group->members[i]);
  }
  if (!all && clock_now() < world.asked_at + 1)
    return;
  world.asked = NULL;
  request->due = clock_now() + world.seconds;
  if (m.length != m.begin)
    die(m.text);
}


/* ---- the device's work that takes too long ---- */

static void watch_ask(const cgl_watch *w) {
  for (int i = 0; i < w->group->size; i++)
    if (cgl_watch_concerns(w, i))
      rank_ask(w->group->members[i], w->group->watched_as);
  world.asked = w;
  world.asked_at = clock_now();
}


/* Whether a rank waits for this one, or for one that does, and so on. */
static bool watch_leads_back(int rank) {
  for (int steps = 0; steps < world.size && rank != world.rank; steps++) {
    if (rank < 0 || rank >= world.size || !world.peers[rank].heard)
      return false;
    rank = world.peers[rank].watch.lacks;
  }
  return rank == world.rank;
}


/* Is a rank missing that has issued less than this one waits for?  One that
   waits itself may be late, and go on, unless it waits for this one. */
static bool watch_misses(cgl_watch *w, int member) {
  const int rank = w->group->members[member];
  const cgl_watch_state *theirs = &world.peers[rank].watch;
  if (!cgl_watch_lacks(w, member, theirs))
    return false;
  w->lacks = rank;
  return theirs->idle || watch_leads_back(rank);
}


/* Who keeps the host's call waiting? */
static void watch_judge(cgl_watch *w) {
  char last[TEXT];
  missing m;
  bool all = true;
  last_write(last);
  missing_begin(&m, last);
  w->lacks = -1;
  for (int i = 0; i < w->group->size; i++) {
    const int rank = w->group->members[i];
    if (!cgl_watch_concerns(w, i))
      continue;
    all &= world.peers[rank].heard;
    if (!world.peers[rank].heard || watch_misses(w, i))
      missing_add(&m, rank);
  }
  if (!all && clock_now() < world.asked_at + 1)
    return;
  world.asked = NULL;
  w->due = clock_now() + (world.seconds < 1 ? world.seconds : 1);
  if (m.length != m.begin)
    die(m.text);
}


static void watch_look(double now) {
  cgl_watch_lock();
  cgl_watch *late = cgl_watch_late(now, world.seconds);
  if (world.watch_asked && world.asked != late)
    world.asked = NULL;
  if (late && world.asked == late)
    watch_judge(late);
  else if (late && !world.asked)
    watch_ask(late);
  world.watch_asked = late && world.asked == late;
  cgl_watch_unlock();
}


/* Messages, and the signs of processes that have died. */
static void world_look(void) {
  message m;
  int from;
  const double now = clock_now();
  while (world.mpi->poll(&from, &m, sizeof m))
    message_take(from, &m);
  if (now - world.looked_at < 0.1 && !terminated)
    return;
  world.looked_at = now;
  peers_look();
  watch_look(now);
  if (terminated) {
    nap(20 * 1000 * 1000); /* who died may still be on its way out */
    while (world.mpi->poll(&from, &m, sizeof m))
      message_take(from, &m);
    peers_look();
    die_with("the launcher ends this rank");
  }
}


/* ---- requests ---- */

static void request_end(cgl_progress *request) {
  pthread_mutex_lock(&world.lock);
  request->done = true;
  pthread_cond_broadcast(&world.done);
  pthread_mutex_unlock(&world.lock);
}


/* What MPI refuses, it has no way back from.  It may be that a rank ends, which
   then says so itself; else ranks issue different calls, and answer which. */
static void request_die(const cgl_progress *request, const char *failed) {
  char text[LINE];
  int n = snprintf(text, sizeof text, "%s at %s: %s", request->operation,
                   cgl_site_text(request->site), failed);
  if (request->group)
    request_ask(request);
  for (int i = 0; i < 30; i++) {
    world_look();
    nap(10 * 1000 * 1000);
  }
  for (int i = 0; request->group && i < request->group->size; i++) {
    const peer *other = &world.peers[request->group->members[i]];
    if (request_concerns(request, i) && other->heard && n < LINE - TEXT)
      n += snprintf(text + n, LINE - (size_t)n,
                    "; rank %d's last collective was %.*s",
                    request->group->members[i], TEXT, other->text);
  }
  die(text);
}


static void request_begin(cgl_progress *request) {
  const char *failed;
  if (request->kind == CGL_PROGRESS_CALL && !request->call.aside)
    cgl_progress_note(request->operation, request->site);
  if (request->group && request->call.what != CGL_EXCHANGE)
    request->number = ++*count_of(request_group(request));
  request->begun = true;
  request->due = clock_now() + world.seconds;
  failed = world.mpi->begin(&request->call, &request->request);
  if (failed)
    request_die(request, failed);
}


/* Whether the request has ended. */
static bool request_test(cgl_progress *request) {
  const char *failed = NULL;
  if (!world.mpi->test(request->request, &failed)) {
    if (!request->group || world.watches_all || clock_now() < request->due)
      return false;
    if (world.asked == request)
      request_judge(request);
    else if (!world.asked)
      request_ask(request);
    return false;
  }
  if (world.asked == request)
    world.asked = NULL;
  if (failed)
    request_die(request, failed);
  /* All ranks are here: the split does not wait. */
  if (request->kind == CGL_PROGRESS_SPLIT)
    request->split.group = world.mpi->split(
        request->group->number, request->split.color, request->split.key,
        &request->split.rank, &request->split.size);
  return true;
}


/* Takes what was submitted, in its order; waits when there is nothing. */
static void requests_take(void) {
  pthread_mutex_lock(&world.lock);
  if (!world.first && !world.active && !world.failing) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += IDLE_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&world.submitted, &world.lock, &until);
  }
  cgl_progress **end = &world.active;
  while (*end)
    end = &(*end)->next;
  *end = world.first;
  world.first = NULL;
  world.end = &world.first;
  pthread_mutex_unlock(&world.lock);
  for (cgl_progress *r = world.active; r; r = r->next)
    if (!r->begun)
      request_begin(r);
}


/* Returns true when all ranks have come to the end of the program. */
static bool requests_test(void) {
  bool over = false;
  /* MPI tests nothing after its end. */
  for (cgl_progress **at = &world.active; *at && !over;) {
    cgl_progress *request = *at;
    if (!request_test(request)) {
      at = &request->next;
      continue;
    }
    *at = request->next;
    over |= request->kind == CGL_PROGRESS_END;
    if (request->kind == CGL_PROGRESS_END)
      world.mpi->finalize();
    request_end(request);
  }
  return over;
}


static void world_work(void) {
  unsigned tests = 0;
  bool over = false;
  while (!over) {
    requests_take();
    over = requests_test();
    tests = world.active ? tests + 1 : 0;
    if (!over && tests % LOOKS == 0) {
      world_look();
      if (world.failing)
        all_end("it failed");
    }
    if (tests > YIELDS)
      nap(NAP_NS);
    else if (tests)
      sched_yield();
  }
}


/* ---- start and end ---- */

typedef struct start {
  const char *failed;
  bool done;
} start;


static void *progress_main(void *argument) {
  start *started = argument;
  const char *failed = world.mpi->start(&world.rank, &world.size, world.library,
                                        sizeof world.library);
  if (!failed &&
      !(world.peers = calloc((size_t)world.size, sizeof *world.peers)))
    failed = "no memory for the ranks";
  pthread_mutex_lock(&world.lock);
  started->failed = failed;
  started->done = true;
  pthread_cond_broadcast(&world.done);
  pthread_mutex_unlock(&world.lock);
  if (failed)
    return NULL;
  const message hello = {
      .kind = HELLO, .process = getpid(), .machine = machine_number()};
  message_to_all(&hello);
  world_work();
  return NULL;
}


/* The process exits, or is about to. */
static void progress_end(int status, void *unused) {
  (void)unused;
  if (getpid() != world.process)
    return;
  fflush(stdout);
  cgl_progress request = {.kind = CGL_PROGRESS_END,
                          .call = {.what = CGL_BARRIER, .group = CGL_MPI_END},
                          .operation = "the end of the script"};
  world.leaving = true;
  world.failing = status != 0;
  while (world.failing) /* the progress thread ends the process */
    pause();
  /* Other ranks wait for collectives under way. */
  cgl_context_synchronize_all();
  cgl_progress_do(&request);
}


void cgl_ranks_fail(void) {
  progress_end(1, NULL);
}


static void signal_take(void) {
  struct sigaction action, before;
  if (sigaction(SIGTERM, NULL, &before) || before.sa_handler != SIG_DFL)
    return;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_terminate;
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, NULL);
}


static void seconds_read(void) {
  const char *text = getenv("CGRAPHLUA_RANKS_SECONDS");
  const double seconds = text ? strtod(text, NULL) : 0;
  if (seconds > 0)
    world.seconds = seconds;
}


static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;


static cgl_status world_start(const char *operation) {
  start started = {NULL, false};
  pthread_t thread;
  sigset_t all, before;
  world.mpi = cgl_launcher_open_mpi(operation);
  if (!world.mpi)
    return CGL_ERROR_NOT_FOUND;
  seconds_read();
  world.watches_all = cgl_watch_is_for_all();
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = pthread_create(&thread, NULL, progress_main, &started);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed)
    return cgl_fail(CGL_ERROR_SYSTEM, operation, "no thread for MPI: %s",
                    strerror(failed));
  pthread_detach(thread);
  pthread_mutex_lock(&world.lock);
  while (!started.done)
    pthread_cond_wait(&world.done, &world.lock);
  pthread_mutex_unlock(&world.lock);
  if (started.failed)
    return cgl_fail(CGL_ERROR_SYSTEM, operation, "MPI does not start: %s",
                    started.failed);
  world.process = getpid();
  signal_take();
  on_exit(progress_end, NULL);
  return CGL_OK;
}


cgl_status cgl_progress_start(int *rank, int *size) {
  cgl_status status = CGL_OK;
  pthread_mutex_lock(&start_lock);
  if (!world.process)
    status = world_start("ranks");
  *rank = world.rank;
  *size = world.size;
  pthread_mutex_unlock(&start_lock);
  return status;
}


void cgl_progress_do(cgl_progress *request) {
  pthread_mutex_lock(&world.lock);
  request->next = NULL;
  *world.end = request;
  world.end = &request->next;
  pthread_cond_signal(&world.submitted);
  while (!request->done)
    pthread_cond_wait(&world.done, &world.lock);
  pthread_mutex_unlock(&world.lock);
}


const char *cgl_progress_library(void) {
  return world.library;
}


void cgl_progress_set_seconds(double seconds) {
  world.seconds = seconds;
}


void cgl_progress_note(const char *operation, cgl_site site) {
  atomic_store_explicit(&world.operation, operation, memory_order_relaxed);
  atomic_store_explicit(&world.file, site.file, memory_order_relaxed);
  atomic_store_explicit(&world.line, site.line, memory_order_relaxed);
}
