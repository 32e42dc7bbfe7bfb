/* Lua's collector and device memory, which the collector does not see.
   Idea: what objects hold of a device (cgl_context_held) counts like memory of
   Lua's own.  A collection is due when it has grown by `room` since the last
   one; from half of that on, every allocation makes a step that is as long as
   what was allocated, so that the collection ends in time.
   Invariant: a step is made where a binding function holds nothing that a
   finalizer may release, never in a finalizer, and never while the script has
   stopped the collector. */
#ifndef CGL_LUA_COLLECT_H
#define CGL_LUA_COLLECT_H

#include "lua/base/base.h"
#include "lua/base/error.h"

/* Collects all garbage. */
void cgl_lua_collect(lua_State *L, cgl_lua *S);
/* After an allocation that failed for memory: collects all garbage and returns
   true, for a second try. */
bool cgl_lua_collected(lua_State *L, cgl_lua *S, cgl_status status);
/* Much was allocated: makes a step for each device for which one is due. */
__attribute__((cold)) void cgl_lua_collect_step(lua_State *L, cgl_lua *S);
/* After a capture. */
void cgl_lua_collect_after(lua_State *L, cgl_lua *S);

/* After an allocation of `bytes` on the current device. */
static inline void cgl_lua_collect_pace(lua_State *L, cgl_lua *S,
                                        size_t bytes) {
  S->allocated += bytes;
  if (S->allocated >= CGL_LUA_UNSEEN)
    cgl_lua_collect_step(L, S);
}

/* Makes a core call, with such a second try; raises its failure. */
#define cgl_lua_try(L, S, call)                  \
  do {                                           \
    cgl_status tried = (call);                   \
    if (tried && cgl_lua_collected(L, S, tried)) \
      tried = (call);                            \
    cgl_lua_done(L, S, tried);                   \
  } while (0)

#endif
