#include "cli/interrupt.h"

#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

#include <lauxlib.h>
#include <luajit.h>

#include "cgraphlua.h"

enum { IDLE, ARMED, GRACE, FINAL };

enum {
  TICK_NS = 5 * 1000 * 1000,
  GRACE_TICKS = 100, /* half a second for clean-up code */
  UNSURE_TICKS = 20  /* then the flag is raised wherever the thread is */
};

/* Code of a loaded object, from its first to its last executable byte. */
typedef struct code_range {
  uintptr_t inside; /* an address in the object that is looked for */
  uintptr_t first, end;
} code_range;

/* Written by the Lua thread and by handlers that run on it. */
static struct {
  lua_State *L;
  bool ignored; /* SIGINT was ignored when we came, and stays so */
  pthread_t thread;
  timer_t timer;
  struct sigaction luajit;      /* LuaJIT's own SIGPROF handler */
  code_range runtime[2];        /* LuaJIT's code, and memcpy's */
  volatile sig_atomic_t stage;  /* IDLE, ARMED, GRACE, FINAL */
  volatile sig_atomic_t grace;  /* ticks left in GRACE */
  volatile sig_atomic_t unsure; /* ticks that found no good moment */
  volatile sig_atomic_t caught; /* a Ctrl-C came since the last begin */
  uint64_t waits;               /* cgl_waits_stopped, at the last begin */
} stop;


bool cgl_interrupt_left_work(void) {
  return cgl_waits_stopped() != stop.waits;
}


/* A wait that was given up has raised already.  Clean-up code may wait. */
static void raise_stop(lua_State *L, lua_Debug *ar) {
  (void)ar;
  if (stop.stage == ARMED) {
    lua_sethook(L, NULL, 0, 0);
    stop.grace = GRACE_TICKS;
    stop.stage = GRACE;
    cgl_waits_stop(false);
    if (cgl_interrupt_left_work())
      return;
  }
  luaL_error(L, "interrupted!");
}


/* Where the signal found the thread; 0: this machine is not known here. */
static uintptr_t interrupted_at(const void *context) {
  const ucontext_t *at = context;
#if defined(__x86_64__)
  return (uintptr_t)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (uintptr_t)at->uc_mcontext.pc;
#else
  (void)at;
  return 0;
#endif
}


/* The thread may be where LuaJIT rewrites its dispatch table. */
static bool may_be_dispatching(uintptr_t pc) {
  bool there = !pc;
  for (int i = 0; i < 2; i++)
    there |= pc >= stop.runtime[i].first && pc < stop.runtime[i].end;
  return there;
}


/* Makes the next interpreted instruction raise, and compiled loops leave
   for the interpreter.  The signal may have interrupted LuaJIT writing its
   dispatch table, which it then completes over ours.  Setting the hook again
   repairs that, raising the profiler's flag again does not: the flag waits
   until the thread is elsewhere. */
static void stop_arm(int signo, siginfo_t *info, void *context) {
  lua_sethook(stop.L, NULL, 0, 0);
  lua_sethook(stop.L, raise_stop, LUA_MASKCOUNT, 1);
  if (may_be_dispatching(interrupted_at(context)) &&
      ++stop.unsure < UNSURE_TICKS)
    return;
  stop.unsure = 0;
  if (stop.luajit.sa_flags & SA_SIGINFO)
    stop.luajit.sa_sigaction(signo, info, context);
  else if (stop.luajit.sa_handler != SIG_DFL &&
           stop.luajit.sa_handler != SIG_IGN)
    stop.luajit.sa_handler(signo);
}


static void run_timer(long ns) {
  struct itimerspec spec = {{0, ns}, {0, ns}};
  timer_settime(stop.timer, 0, &spec, NULL);
}


/* SIGINT asks the script to stop; SIGALRM asks again. */
static void on_signal(int signo, siginfo_t *info, void *context) {
  if (!pthread_equal(pthread_self(), stop.thread)) {
    pthread_kill(stop.thread, signo);
    return;
  }
  if (signo == SIGINT) {
    signal(SIGINT, SIG_DFL);
    cgl_waits_stop(true);
    stop.caught = 1;
    stop.unsure = 0;
    stop.stage = ARMED;
    run_timer(TICK_NS);
  } else if (stop.stage == GRACE && --stop.grace == 0) {
    stop.stage = FINAL;
    cgl_waits_stop(true);
  }
  if (stop.stage == ARMED || stop.stage == FINAL)
    stop_arm(SIGPROF, info, context);
}


static void signal_handle(int signo) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, SIGINT);
  sigaddset(&action.sa_mask, SIGALRM);
  sigaction(signo, &action, NULL);
}


static void no_sample(void *data, lua_State *L, int samples, int vmstate) {
  (void)data;
  (void)L;
  (void)samples;
  (void)vmstate;
}


/* Fills in the ranges of the runtime that lie in this object. */
static int find_code(struct dl_phdr_info *object, size_t size, void *unused) {
  (void)size;
  (void)unused;
  code_range code = {.first = UINTPTR_MAX};
  for (int i = 0; i < object->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
      continue;
    uintptr_t first = object->dlpi_addr + part->p_vaddr;
    code.first = first < code.first ? first : code.first;
    code.end =
        first + part->p_memsz > code.end ? first + part->p_memsz : code.end;
  }
  for (int i = 0; i < 2; i++) {
    code.inside = stop.runtime[i].inside;
    if (code.inside >= code.first && code.inside < code.end)
      stop.runtime[i] = code;
  }
  return 0;
}


bool cgl_interrupt_attach(lua_State *L) {
  struct sigaction before;
  struct sigevent event;
  memset(&event, 0, sizeof event);
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  if (timer_create(CLOCK_MONOTONIC, &event, &stop.timer))
    return false;
  stop.ignored =
      !sigaction(SIGINT, NULL, &before) && before.sa_handler == SIG_IGN;
  stop.L = L;
  stop.thread = pthread_self();
  luaJIT_profile_start(L, "li10", no_sample, NULL);
  struct itimerval off;
  memset(&off, 0, sizeof off);
  setitimer(ITIMER_PROF, &off, NULL);
  sigaction(SIGPROF, NULL, &stop.luajit);
  stop.runtime[0].inside = (uintptr_t)lua_sethook;
  stop.runtime[1].inside = (uintptr_t)memcpy;
  dl_iterate_phdr(find_code, NULL);
  return true;
}


void cgl_interrupt_begin(void) {
  stop.caught = 0;
  stop.stage = IDLE;
  if (!stop.L || stop.ignored)
    return;
  cgl_waits_stop(false);
  stop.waits = cgl_waits_stopped();
  signal_handle(SIGALRM);
  signal_handle(SIGINT);
}


bool cgl_interrupt_end(void) {
  if (stop.L && !stop.ignored) {
    signal(SIGINT, SIG_DFL);
    if (stop.caught) {
      stop.stage = IDLE;
      run_timer(0);
      lua_sethook(stop.L, NULL, 0, 0);
      cgl_waits_stop(false);
    }
  }
  return stop.caught;
}


void cgl_interrupt_detach(void) {
  if (!stop.L)
    return;
  if (stop.caught)
    cgl_waits_stop(true);
  luaJIT_profile_stop(stop.L);
  timer_delete(stop.timer);
  stop.L = NULL;
}
