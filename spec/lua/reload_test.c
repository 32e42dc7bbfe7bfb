/* A process that lives long: a script that is loaded again and again, and
   threads whose states open, work and die.  What the process has must not grow:
   allocated bytes, resident memory, descriptors, threads, mappings.  The C half
   alone is loaded, as in states_test.
     reload_test [reloads [seconds]]   default: 200 reloads, threads for 3 s;
                                       CGRAPHLUA_SOAK=1: 1000 and 60 s */
#define _GNU_SOURCE
#include "cgraphlua.h"
#include "cgraphlua/lua.h"
#include "tap.h"

#include <dirent.h>
#include <lauxlib.h>
#include <lualib.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 16, TOKEN_ROOM = 64 };

/* Sanitizers have a heap of their own, and keep freed memory for a while. */
#pragma weak __sanitizer_get_current_allocated_bytes
size_t __sanitizer_get_current_allocated_bytes(void);

/* A version of a script: takes what the one before it kept, works with an
   object of every kind, and keeps something for the next. */
static const char version[] =
    "local cg, token, careless = require 'cgraphlua.core', ...\n"
    "cg.on_log(function() end)\n"
    "local later = cg.module_async [[\n"
    "  extern \"C\" __global__ void inc(float *x, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) x[i] += 1.f;\n"
    "  }]]\n"
    "local n = 4096\n"
    "local x = token and cg.take(token) or cg.zeros('float', n)\n"
    "local scratch, kept = cg.buffer('float', n), cg.pinned('float', n)\n"
    "local pool, gen, side, done = cg.pool(), cg.generator(7), cg.stream(), "
    "cg.event()\n"
    "local inc = later:wait():kernel 'inc'\n"
    "local before, replayed = x:download()[n], 0\n"
    "local g = cg.capture(function()\n"
    "  local noise = cg.buffer('float', n)\n"
    "  noise:uniform(gen)\n"
    "  inc:launch(n / 128, 128, x, n)\n"
    "  scratch:copy(x)\n"
    "end, { pool = pool })\n"
    "g:register_replay_start_hook(function() replayed = replayed + 1 end)\n"
    "g:register_destroy_callback(function() end)\n"
    "side:wait(cg.current_stream())\n"
    "side:use(function() for _ = 1, 3 do g:replay() end done:record() end)\n"
    "done:synchronize()\n"
    "kept:copy(scratch)\n"
    "cg.synchronize()\n"
    "assert(replayed == 3 and x:download()[n] == before + 3, 'replays')\n"
    "local ok, e = pcall(cg.take, 'nothing')\n"
    "assert(not ok and e.name == 'CGL_ERROR_INVALID_ARGUMENT', e)\n"
    "if careless then\n" /* nothing of this is ended before the state closes */
    "  cg.module_async('extern \"C\" __global__ void v' .. careless .. '() "
    "{}')\n"
    "  cg.take(cg.share(scratch))\n"
    "  local open = cg.graph()\n"
    "  open:capture_begin { stream = side }\n"
    "  side:use(function() x:fill(0) end)\n"
    "  coroutine.wrap(function() coroutine.yield(open) end)()\n"
    "end\n"
    "return cg.share(x)\n";

typedef struct usage {
  size_t allocated, resident; /* bytes */
  int descriptors, threads, mappings;
} usage;

static atomic_long lives, mistakes;
static atomic_bool ending;


static int count_entries(const char *folder) {
  DIR *dir = opendir(folder);
  int n = 0;
  while (dir && readdir(dir))
    n++;
  if (dir)
    closedir(dir);
  return n;
}


static usage usage_now(void) {
  usage u = {.descriptors = count_entries("/proc/self/fd"),
             .threads = count_entries("/proc/self/task")};
  FILE *file = fopen("/proc/self/maps", "r");
  for (int c; file && (c = getc(file)) != EOF;)
    u.mappings += c == '\n';
  if (file)
    fclose(file);
  file = fopen("/proc/self/statm", "r");
  size_t total, pages = 0;
  if (file) {
    if (fscanf(file, "%zu %zu", &total, &pages) != 2)
      pages = 0;
    fclose(file);
  }
  u.resident = pages * (size_t)sysconf(_SC_PAGESIZE);
  u.allocated = __sanitizer_get_current_allocated_bytes
                    ? __sanitizer_get_current_allocated_bytes()
                    : mallinfo2().uordblks;
  return u;
}


static void print_usage(const char *when, const usage *u) {
  printf("# %s: %zu KB allocated, %zu KB resident, %d descriptors, %d threads, "
         "%d mappings\n",
         when, u->allocated / 1024, u->resident / 1024, u->descriptors,
         u->threads, u->mappings);
}


/* Runs a version in a state of its own, on `stream` (NULL: the default);
   `token` is what it takes, and then what it keeps. */
static bool live(cgl_stream *stream, char token[TOKEN_ROOM], long careless) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  cgl_lua_preload(L, &(cgl_lua_desc){.stream = stream});
  int failed = luaL_loadstring(L, version);
  lua_pushstring(L, *token ? token : NULL);
  if (careless)
    lua_pushinteger(L, careless);
  else
    lua_pushnil(L);
  failed = failed || lua_pcall(L, 2, 1, 0);
  if (failed && luaL_callmeta(L, -1, "__tostring"))
    lua_replace(L, -2);
  if (failed)
    printf("# %s\n", lua_tostring(L, -1));
  snprintf(token, TOKEN_ROOM, "%s", failed ? "" : lua_tostring(L, -1));
  lua_close(L);
  return !failed;
}


/* Takes what the last version kept. */
static bool drop(const char *token) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  cgl_lua_preload(L, NULL);
  lua_pushstring(L, token);
  lua_setglobal(L, "token");
  int failed = luaL_dostring(L, "require 'cgraphlua.core'.take(token)");
  lua_close(L);
  return !failed;
}


/* NVIDIA's driver keeps 280 bytes of every module that it has loaded, and for
   a while its allocations fill glibc's arenas (580.159.04: 21 MB after 1,700
   threads, 28 MB after 10,000). */
enum { MODULES = 3, KEPT = 288, FILLED = 40 << 20 }; /* MODULES: of a life */

static bool on_gpu(void) {
  const char *device = getenv("CGRAPHLUA_DEVICE");
  return device && !strncmp(device, "cuda", 4);
}


/* Most that a process may have more of after `count` lives than before: glibc
   and LuaJIT give memory back in pieces. */
static void check_flat(const char *what, usage before, usage after,
                       long count) {
  const bool sanitized = __sanitizer_get_current_allocated_bytes;
  const size_t kept = on_gpu() ? (size_t)count * MODULES * KEPT : 0;
  const size_t filled = on_gpu() ? FILLED : 0;
  print_usage("before", &before);
  print_usage("after", &after);
  tap_ok(after.allocated < before.allocated + kept + (64 << 10),
         "%s: no bytes stay allocated", what);
  tap_ok(after.descriptors == before.descriptors, "%s: no descriptors", what);
  tap_ok(after.threads == before.threads, "%s: no threads", what);
  if (sanitized) /* its own mappings and memory grow */
    return;
  tap_ok(after.mappings < before.mappings + 32, "%s: no mappings", what);
  tap_ok(after.resident < before.resident + filled + (4 << 20),
         "%s: no resident memory", what);
}


/* An engine that loads its script again and again, on one stream. */
static void check_reloads(long reloads) {
  cgl_context *context = NULL;
  cgl_stream *stream = NULL;
  char token[TOKEN_ROOM] = "";
  if (!tap_ok(!cgl_context_open(NULL, &context) &&
                  !cgl_stream_create(context, 0, &stream),
              "an engine's device and stream"))
    return;
  usage before = {0};
  long good = 0;
  for (long i = 1; i <= reloads; i++) {
    good += live(stream, token, i % 10 == 5 ? i : 0);
    if (i == reloads / 4)
      before = usage_now();
  }
  tap_ok(good == reloads, "%ld of %ld versions went on", good, reloads);
  check_flat("reloads", before, usage_now(), reloads - reloads / 4);
  tap_ok(drop(token), "the last one's is taken");
  cgl_stream_release(stream);
  cgl_context_release(context);
}


static void *life_run(void *unused) {
  char token[TOKEN_ROOM] = "";
  (void)unused;
  const bool good = live(NULL, token, 0) && live(NULL, token, 0) && drop(token);
  if (!good)
    atomic_fetch_add(&mistakes, 1);
  atomic_fetch_add(&lives, 1);
  return NULL;
}


/* One thread after the other. */
static void *slot_run(void *unused) {
  pthread_t thread;
  while (!atomic_load(&ending) &&
         !pthread_create(&thread, NULL, life_run, NULL))
    pthread_join(thread, NULL);
  return unused;
}


static void run_threads(double seconds) {
  pthread_t threads[THREADS];
  atomic_store(&ending, false);
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, slot_run, NULL);
  usleep((useconds_t)(seconds * 1e6));
  atomic_store(&ending, true);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
}


/* Nobody else holds the device: it opens and closes with them. */
static void check_threads(double seconds) {
  run_threads(seconds / 3);
  usage before = usage_now();
  const long begun = atomic_load(&lives);
  run_threads(seconds * 2 / 3);
  tap_ok(!atomic_load(&mistakes), "%ld threads opened, worked and died",
         atomic_load(&lives));
  check_flat("threads", before, usage_now(), atomic_load(&lives) - begun);
}


int main(int argc, char **argv) {
  const char *soak = getenv("CGRAPHLUA_SOAK");
  const bool much = soak && !strcmp(soak, "1");
  check_reloads(argc > 1 ? atol(argv[1]) : much ? 1000 : 200);
  check_threads(argc > 2 ? atof(argv[2]) : much ? 60 : 3);
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end");
  return tap_done();
}
