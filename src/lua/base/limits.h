/* The limits of a restricted state: how much its scripts may use, and for how
   long.
   Idea: S->limits is NULL in every other state, and what a limit touches asks
   for it once.  What scripts cannot name (src/lua/restrict.c) needs no check;
   here are the doors for what they can: a raw address, an amount, the time.
   Invariants: an amount is noted where it is taken and given back where its
   userdata ends; from the end of the time on every Lua instruction raises, so
   that no pcall outlives it; what a state waits for, it asks for again and
   again, by the clock. */
#ifndef CGL_LUA_LIMITS_H
#define CGL_LUA_LIMITS_H

#include "cgraphlua/lua.h"
#include "lua/base/base.h"
#include "lua/base/object.h"

#define CGL_LUA_MEMORY_LIMIT "restricted: the state's lua_bytes are in use"

typedef char cgl_lua_hash[33];

struct cgl_lua_held {
  cgl_lua_limits most;   /* no field is 0, `kernels` is NULL */
  cgl_lua_hash *kernels; /* owned */
  cgl_lua *S;
  /* in use */
  size_t objects, nodes, pinned;
  size_t capture_nodes; /* of the capture underway */
  bool capturing;
  unsigned issued; /* calls since the state's streams were found idle */
  struct cgl_lua_leaving *leaving; /* released streams that may run still */
  /* the time */
  uint64_t deadline; /* by the monotonic clock, ns; 0: not begun */
  bool over, aborted;
  /* Lua's own memory: its allocator, what it gave, what errors may take more */
  lua_Alloc allocate;
  void *allocator;
  size_t lua_bytes, reserve;
  bool refused; /* it refused some: a collection is due */
};

/* Starts the limits, which are complete, of a state; takes `kernels`, a
   malloc'ed list.  Raises before anything has changed. */
void cgl_lua_limits_begin(lua_State *L, cgl_lua *S, const cgl_lua_limits *most,
                          cgl_lua_hash *kernels);
/* Ends them with the state. */
void cgl_lua_limits_end(lua_State *L, cgl_lua *S);

/* ---- the time ---- */

/* So many seconds from now on. */
void cgl_lua_limits_set_deadline(lua_State *L, cgl_lua *S, double seconds);
/* lua_pcall, with the time of the limits anew; a failure for want of memory
   names the limit. */
int cgl_lua_limits_pcall(lua_State *L, cgl_lua *S, int nargs, int nresults,
                         int handler);
/* Raises when the time is over. */
void cgl_lua_limits_check_time(lua_State *L, cgl_lua *S);
/* Sleeps, until the time is over. */
void cgl_lua_limits_sleep(lua_State *L, cgl_lua *S, double seconds);
/* Isolates a stream of the state's. */
void cgl_lua_limits_isolate(lua_State *L, cgl_lua *S, cgl_stream *stream);
/* A stream of the state's is released: it is waited for with the others. */
void cgl_lua_limits_keep_stream(cgl_lua *S, cgl_stream *stream);
/* Waits, until the time is over, for what was issued: on the stream, or before
   the event's record. */
void cgl_lua_limits_wait(lua_State *L, cgl_lua *S, cgl_stream *stream,
                         cgl_event *event);

/* ---- amounts ---- */

/* A call issues work, or a replay: it counts as a node of a capture; outside of
   captures little of it may pile up. */
void cgl_lua_limits_issue(lua_State *L, cgl_lua *S);
/* Bracket the body of a capture into the graph of `box`. */
void cgl_lua_limits_capture_begin(cgl_lua *S, cgl_lua_box *box);
void cgl_lua_limits_capture_leave(cgl_lua *S);
/* The capture has ended well: raises when the state's graphs have too many
   nodes, and drops the capture then. */
void cgl_lua_limits_capture_end(lua_State *L, cgl_lua *S, cgl_lua_box *box);
/* The capture of the box's graph goes. */
void cgl_lua_limits_discharge(cgl_lua *S, cgl_lua_box *box);
/* Pinned memory of so many bytes is about to be the box's. */
void cgl_lua_limits_take_pinned(lua_State *L, cgl_lua *S, cgl_lua_box *box,
                                size_t bytes);
/* The kernel source may be compiled, or the image loaded. */
bool cgl_lua_limits_allow_kernel(const cgl_lua *S, const void *source,
                                 size_t bytes);

/* ---- doors ---- */

int cgl_lua_limits_raise(lua_State *L, cgl_lua *S, const char *what);
/* Raises "restricted: ..." when the state is: `what` cannot be done there. */
static inline void cgl_lua_limits_refuse(lua_State *L, cgl_lua *S,
                                         const char *what) {
  if (S->limits)
    cgl_lua_limits_raise(L, S, what);
}

/* The text on top without the addresses in it. */
void cgl_lua_limits_hide_addresses(lua_State *L, const cgl_lua *S);

#endif
