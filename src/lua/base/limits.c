#include "lua/base/limits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <luajit.h>

#include "lua/base/collect.h"
#include "lua/base/current.h"
#include "lua/base/error.h"

typedef struct cgl_lua_held held;

enum {
  INSTRUCTIONS = 1000, /* between two looks at the clock */
  PILE = 64,           /* calls that may be underway on a stream */
  PAGE = 4096,         /* pinned memory is counted in pages */
  RESERVE = 256 << 10, /* bytes of Lua's memory for errors and clean-up */
  PAUSE = 125          /* percent: garbage does not take the limit's place */
};
#define SHORT_NAP 20000    /* ns */
#define LONG_NAP 1000000   /* ns */
#define SECOND 1000000000u /* ns */


static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}


/* ---- Lua's own memory ---- */

static void *allocate(void *user, void *block, size_t size, size_t wanted) {
  held *h = user;
  if (wanted > size &&
      h->lua_bytes + (wanted - size) > h->most.lua_bytes + h->reserve) {
    h->refused = true;
    return NULL;
  }
  void *got = h->allocate(h->allocator, block, size, wanted);
  if (got || !wanted)
    h->lua_bytes += wanted - size;
  return got;
}


/* The limits of the state that runs, without a value on its stack. */
static held *held_of(lua_State *L) {
  void *user;
  return lua_getallocf(L, &user) == allocate ? user : NULL;
}


/* ---- the time ---- */

static void abort_stream(cgl_stream *stream) {
  (void)cgl_stream_abort(stream); /* a GPU's driver cannot */
}


static void renew_stream(cgl_stream *stream) {
  (void)cgl_stream_renew(stream);
}


/* A released stream, on the list of those that may run still. */
typedef struct cgl_lua_leaving {
  struct cgl_lua_leaving *next;
  cgl_stream *stream; /* owned */
} leaving;


void cgl_lua_limits_keep_stream(cgl_lua *S, cgl_stream *stream) {
  leaving *l =
      S->limits && !cgl_stream_is_default(stream) ? malloc(sizeof *l) : NULL;
  if (!l)
    return;
  *l = (leaving){S->limits->leaving, cgl_stream_retain(stream)};
  S->limits->leaving = l;
}


static void leaving_drop(held *h) {
  leaving *l = h->leaving;
  h->leaving = l->next;
  cgl_stream_release(l->stream);
  free(l);
}


static void streams_abort(lua_State *L, const held *h) {
  cgl_lua_each_stream(L, h->S, abort_stream);
  for (const leaving *l = h->leaving; l; l = l->next)
    abort_stream(l->stream);
}


/* Every instruction raises from now on; what the state's streams run ends. */
static void time_end(lua_State *L, held *h) {
  h->over = true;
  h->reserve = RESERVE;
  if (!h->aborted && lua_checkstack(L, LUA_MINSTACK)) {
    streams_abort(L, h);
    h->aborted = true;
  }
  luaL_error(L, "restricted: the time is over (seconds = %f)", h->most.seconds);
}


static void on_instructions(lua_State *L, lua_Debug *ar);


/* The first look begins the time, when the host did not. */
static void time_look(lua_State *L, held *h) {
  const uint64_t time = now();
  if (!h->deadline)
    h->deadline = time + (uint64_t)(h->most.seconds * SECOND);
  if (h->refused) { /* by garbage, perhaps */
    h->refused = false;
    lua_gc(L, LUA_GCCOLLECT, 0);
  }
  if (!h->over && time < h->deadline)
    return;
  if (!h->over)
    lua_sethook(L, on_instructions, LUA_MASKCOUNT, 1);
  time_end(L, h);
}


static void on_instructions(lua_State *L, lua_Debug *ar) {
  (void)ar;
  held *h = held_of(L);
  if (h)
    time_look(L, h);
}


static void time_nap(lua_State *L, held *h) {
  time_look(L, h);
  nanosleep(&(struct timespec){0, LONG_NAP / 10}, NULL);
}


/* A released stream that failed is idle: nobody asks for its failure. */
static bool stream_is_busy(cgl_stream *stream) {
  bool done = true;
  return !cgl_stream_query(stream, &done) && !done;
}


/* Waits for all that the state has issued. */
static void streams_drain(lua_State *L, held *h) {
  cgl_lua_wait_streams(L, h->S);
  while (h->leaving) {
    if (stream_is_busy(h->leaving->stream))
      time_nap(L, h);
    else
      leaving_drop(h);
  }
  h->issued = 0;
}


void cgl_lua_limits_check_time(lua_State *L, cgl_lua *S) {
  if (S->limits)
    time_look(L, S->limits);
}


void cgl_lua_limits_set_deadline(lua_State *L, cgl_lua *S, double seconds) {
  held *h = S->limits;
  (void)lua_checkstack(L, LUA_MINSTACK);
  cgl_lua_each_stream(L, S, renew_stream);
  while (h->aborted && h->leaving)
    leaving_drop(h);
  h->deadline = now() + (uint64_t)(seconds * SECOND);
  h->over = h->aborted = false;
  h->reserve = 0;
  lua_sethook(L, on_instructions, LUA_MASKCOUNT, INSTRUCTIONS);
}


void cgl_lua_limits_sleep(lua_State *L, cgl_lua *S, double seconds) {
  const uint64_t end = now() + (uint64_t)(seconds * SECOND);
  for (uint64_t at = now(); at < end; at = now()) {
    const uint64_t left = end - at;
    time_look(L, S->limits);
    nanosleep(&(struct timespec){0, left < LONG_NAP ? (long)left : LONG_NAP},
              NULL);
  }
}


int cgl_lua_limits_pcall(lua_State *L, cgl_lua *S, int nargs, int nresults,
                         int handler) {
  cgl_lua_limits_set_deadline(L, S, S->limits->most.seconds);
  const int status = lua_pcall(L, nargs, nresults, handler);
  if (!status)
    return status;
  /* What the script left would stand in the way of who called it. */
  S->limits->reserve = RESERVE;
  lua_gc(L, LUA_GCCOLLECT, 0);
  if (status == LUA_ERRMEM) {
    lua_pop(L, 1);
    lua_pushliteral(L, "not enough memory: " CGL_LUA_MEMORY_LIMIT);
  }
  S->limits->reserve = 0;
  return status;
}


void cgl_lua_limits_isolate(lua_State *L, cgl_lua *S, cgl_stream *stream) {
  if (!S->limits)
    return;
  cgl_status status =
      cgl_stream_isolate(stream, S->limits->most.kernel_seconds);
  if (status != CGL_LUA_NOT_SUPPORTED)
    cgl_lua_done(L, S, status);
}


void cgl_lua_limits_wait(lua_State *L, cgl_lua *S, cgl_stream *stream,
                         cgl_event *event) {
  if (!S->limits || S->limits->capturing)
    return;
  long nap = SHORT_NAP;
  for (;;) {
    bool done = true;
    cgl_lua_done(L, S,
                 event ? cgl_event_query(event, &done)
                       : cgl_stream_query(stream, &done));
    if (done)
      return;
    time_look(L, S->limits);
    nanosleep(&(struct timespec){0, nap}, NULL);
    nap = 2 * nap < LONG_NAP ? 2 * nap : LONG_NAP;
  }
}


/* ---- amounts ---- */

static int quota_fail(lua_State *L, cgl_lua *S, const char *name, size_t most) {
  return cgl_lua_raise(L, S, CGL_ERROR_RESTRICTED,
                       "release what is not needed, or ask the host for more",
                       "restricted: the state may have %zu %s", most, name);
}


void cgl_lua_limits_issue(lua_State *L, cgl_lua *S) {
  held *h = S->limits;
  h->reserve = h->over ? RESERVE : 0;
  time_look(L, h);
  if (h->capturing) {
    if (h->nodes + ++h->capture_nodes > h->most.graph_nodes)
      quota_fail(L, S, "graph_nodes", h->most.graph_nodes);
  } else if (++h->issued >= PILE) {
    streams_drain(L, h);
  }
}


void cgl_lua_limits_discharge(cgl_lua *S, cgl_lua_box *box) {
  if (S->limits)
    S->limits->nodes -= box->charge;
  box->charge = 0;
}


void cgl_lua_limits_capture_begin(cgl_lua *S, cgl_lua_box *box) {
  held *h = S->limits;
  if (!h)
    return;
  cgl_lua_limits_discharge(S, box);
  h->capture_nodes = 0;
  h->capturing = true;
}


/* Clean-up may take more of Lua's memory. */
void cgl_lua_limits_capture_leave(cgl_lua *S) {
  if (!S->limits)
    return;
  S->limits->capturing = false;
  S->limits->reserve = RESERVE;
}


void cgl_lua_limits_capture_end(lua_State *L, cgl_lua *S, cgl_lua_box *box) {
  held *h = S->limits;
  size_t n = 0;
  if (!h)
    return;
  if (box->object && cgl_graph_node_count(box->object, &n))
    n = 0;
  if (h->nodes + n > h->most.graph_nodes) {
    (void)cgl_graph_reset(box->object);
    quota_fail(L, S, "graph_nodes", h->most.graph_nodes);
  }
  box->charge = (uint32_t)n;
  h->nodes += n;
}


static bool pinned_fits(const held *h, size_t bytes) {
  return bytes <= h->most.pinned_bytes &&
         h->pinned <= h->most.pinned_bytes - bytes;
}


void cgl_lua_limits_take_pinned(lua_State *L, cgl_lua *S, cgl_lua_box *box,
                                size_t bytes) {
  held *h = S->limits;
  if (!h)
    return;
  if (!pinned_fits(h, bytes))
    cgl_lua_collect(L, S);
  if (!pinned_fits(h, bytes))
    quota_fail(L, S, "pinned_bytes", h->most.pinned_bytes);
  box->charge = (uint32_t)((bytes + PAGE - 1) / PAGE);
  h->pinned += (size_t)box->charge * PAGE;
}


void cgl_lua_limits_count(lua_State *L, cgl_lua *S, cgl_lua_box *box) {
  held *h = S->limits;
  if (h->objects >= h->most.objects)
    cgl_lua_collect(L, S);
  if (h->objects >= h->most.objects)
    quota_fail(L, S, "objects", h->most.objects);
  h->objects++;
  box->counted = true;
}


void cgl_lua_limits_discount(cgl_lua *S, cgl_lua_box *box) {
  held *h = S->limits;
  if (!h) /* its state has ended */
    return;
  h->objects -= box->counted;
  if (box->tag == &cgl_lua_tags[CGL_LUA_pinned])
    h->pinned -= (size_t)box->charge * PAGE;
  else
    h->nodes -= box->charge;
  box->counted = false;
  box->charge = 0;
}


bool cgl_lua_limits_allow_kernel(const cgl_lua *S, const void *source,
                                 size_t bytes) {
  const held *h = S->limits;
  cgl_lua_hash hash;
  cgl_module_hash(source, bytes, hash);
  for (size_t i = 0; i < h->most.nkernels; i++)
    if (!strcmp(h->kernels[i], hash))
      return true;
  return false;
}


/* ---- doors ---- */

int cgl_lua_limits_raise(lua_State *L, cgl_lua *S, const char *what) {
  return cgl_lua_raise(L, S, CGL_ERROR_RESTRICTED,
                       "the manual's page on trust lists what there is",
                       "restricted: %s", what);
}


void cgl_lua_limits_hide_addresses(lua_State *L, const cgl_lua *S) {
  luaL_Buffer out;
  if (!S->limits || !strstr(lua_tostring(L, -1), "0x"))
    return;
  const char *at = lua_tostring(L, -1);
  luaL_buffinit(L, &out);
  while (*at) {
    luaL_addchar(&out, *at);
    if (*at++ != '0' || *at != 'x')
      continue;
    luaL_addstring(&out, "x...");
    for (at++; isxdigit((unsigned char)*at); at++) {
    }
  }
  luaL_pushresult(&out);
  lua_remove(L, -2);
}


/* ---- begin and end ---- */

void cgl_lua_limits_begin(lua_State *L, cgl_lua *S, const cgl_lua_limits *most,
                          cgl_lua_hash *kernels) {
  lua_gc(L, LUA_GCCOLLECT, 0);
  const size_t used = ((size_t)lua_gc(L, LUA_GCCOUNT, 0) << 10) +
                      (size_t)lua_gc(L, LUA_GCCOUNTB, 0);
  if (used + RESERVE > most->lua_bytes) {
    free(kernels);
    cgl_lua_raise(L, S, CGL_ERROR_INVALID_ARGUMENT, "allow more lua_bytes",
                  "the state has %zu of its %zu lua_bytes already", used,
                  most->lua_bytes);
  }
  held *h = calloc(1, sizeof *h);
  if (!h) {
    free(kernels);
    cgl_lua_raise(L, S, CGL_ERROR_NO_MEMORY, "", "no memory for the limits");
    return;
  }
  h->most = *most;
  h->most.kernels = NULL;
  h->kernels = kernels;
  h->S = S;
  S->limits = h;
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_FLUSH);
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);
  lua_gc(L, LUA_GCSETPAUSE, PAUSE);
  h->lua_bytes = used;
  h->allocate = lua_getallocf(L, &h->allocator);
  lua_setallocf(L, allocate, h);
  lua_sethook(L, on_instructions, LUA_MASKCOUNT, INSTRUCTIONS);
}


/* LuaJIT frees its allocator only when it is the state's at the end. */
void cgl_lua_limits_end(lua_State *L, cgl_lua *S) {
  held *h = S->limits;
  if (!h)
    return;
  lua_sethook(L, NULL, 0, 0);
  lua_setallocf(L, h->allocate, h->allocator);
  streams_abort(L, h);
  while (h->leaving)
    leaving_drop(h);
  S->limits = NULL;
  free(h->kernels);
  free(h);
}
