/* Ctrl-C while LuaJIT enters a compiled loop: after each of the instructions
   that lead there, found by stepping through them one at a time, a signal
   still stops the loop. */
#include "cli/interrupt.h"
#include "tap.h"

#include <lauxlib.h>
#include <lualib.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

/* ThreadSanitizer hands signals on when it sees fit. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)

enum {
  TRAP_FLAG = 0x100,
  STEPS = 1000, /* well into the loop */
  STRIDE = 5,
  WATCH_S = 10 /* of processor time; a round takes some 10 ms */
};

/* The loop is compiled anew in each round; `step` is called when that is
   nearly done. */
static const char set_up[] =
    "jit.attach(function(what) if what == 'stop' then step() end end, 'trace')";
static const char loop[] = "jit.flush() while true do end";

static volatile sig_atomic_t steps, target;


/* Goes on step by step until the target, and stops the loop there. */
static void on_step(int signo, siginfo_t *info, void *context) {
  (void)signo;
  (void)info;
  greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
  if (steps++ < target) {
    *flags |= TRAP_FLAG;
  } else {
    *flags &= ~(greg_t)TRAP_FLAG;
    raise(SIGINT); /* blocked here: taken where the step ended */
  }
}


static void on_watch(int signo) {
  (void)signo;
  static const char text[] = "not ok - a loop went on after its Ctrl-C\n";
  if (write(STDOUT_FILENO, text, sizeof text - 1) > 0)
    _exit(1);
}


static int step(lua_State *L) {
  (void)L;
  steps = 0;
  raise(SIGTRAP);
  return 0;
}


static bool is_stopped(lua_State *L, int after) {
  struct itimerval watch = {.it_value.tv_sec = WATCH_S};
  target = after;
  steps = -1;
  setitimer(ITIMER_VIRTUAL, &watch, NULL);
  cgl_interrupt_begin();
  bool failed = luaL_dostring(L, loop);
  bool caught = cgl_interrupt_end();
  bool right = failed && caught && strstr(lua_tostring(L, -1), "interrupted!");
  lua_settop(L, 0);
  return right && steps == after + 1;
}


int main(void) {
  struct sigaction traps = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
  sigemptyset(&traps.sa_mask);
  sigaddset(&traps.sa_mask, SIGINT);
  sigaddset(&traps.sa_mask, SIGALRM);
  sigaction(SIGTRAP, &traps, NULL);
  signal(SIGVTALRM, on_watch);
  signal(SIGINT, SIG_DFL);
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_register(L, "step", step);
  tap_ok(cgl_interrupt_attach(L) && !luaL_dostring(L, set_up),
         "a state can be stopped");
  int wrong = 0, rounds = 0;
  for (int after = 0; after < STEPS; after += STRIDE, rounds++)
    wrong += !is_stopped(L, after);
  tap_ok(wrong == 0, "a loop stops whenever Ctrl-C comes: %d of %d do not",
         wrong, rounds);
  cgl_interrupt_detach();
  lua_close(L);
  return tap_done();
}

#else

int main(void) {
  tap_skip("a loop stops whenever Ctrl-C comes", "no steps are taken here");
  return tap_done();
}

#endif
