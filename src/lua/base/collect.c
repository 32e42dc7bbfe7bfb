#include "lua/base/collect.h"

#include <limits.h>

#include "lua/base/call.h"
#include "lua/base/current.h"

#define MIB ((size_t)1 << 20)
#define ROOM (64 * MIB) /* the least growth between two collections */
enum {
  OUT_OF_MEMORY = 2, /* CUDA_ERROR_OUT_OF_MEMORY */
  SHARE = 8,         /* of the device's memory, the most growth */
  ALIVE = 4,         /* of what was left, the growth when that is more */
  HEAP = 8,          /* times Lua's own memory, likewise */
  STEPS = 32,        /* of a collection, about */
  DECAY = 8
};


bool cgl_lua_collected(lua_State *L, cgl_lua *S, cgl_status status) {
  if (status != OUT_OF_MEMORY && status != CGL_ERROR_NO_MEMORY)
    return false;
  cgl_lua_collect(L, S);
  return true;
}


/* Finalizers of the script may have called us. */
static void call_restore(lua_State *L, cgl_lua *S, const char *operation) {
  S->operation = operation;
  S->blame = 0;
  cgl_lua_entered = S;
  cgl_lua_site(L, S);
}


/* Twice: what a weak table keeps for a pointer that is garbage (pinned:cdata)
   is found only when the pointer is gone. */
void cgl_lua_collect(lua_State *L, cgl_lua *S) {
  const char *operation = S->operation;
  lua_gc(L, LUA_GCCOLLECT, 0);
  lua_gc(L, LUA_GCCOLLECT, 0);
  call_restore(L, S, operation);
  for (cgl_lua_device *device = S->devices; device; device = device->next) {
    device->left = cgl_context_held(device->context);
    device->next_step = 0;
  }
}


/* By how much the memory held may grow until a collection has ended.  A
   collection costs as much as Lua's own memory is large. */
static size_t device_room(const cgl_lua_device *device, size_t heap) {
  size_t room = ROOM;
  size_t most = cgl_context_device(device->context)->memory / SHARE;
  if (room < device->left / ALIVE)
    room = device->left / ALIVE;
  if (room < HEAP * heap)
    room = HEAP * heap;
  return room < most ? room : most;
}


/* Two collections in a row tell what is alive: the first may have begun before
   the garbage was. */
static void collection_ended(cgl_lua_device *device, size_t held,
                             size_t start) {
  if (held >= start && ++device->ended < 2)
    return;
  device->left = held;
  device->ended = 0;
}


/* A step for a device whose objects hold `held` bytes; false when a finalizer
   made the state forget the device. */
static bool device_step(lua_State *L, const cgl_lua *S, cgl_lua_device *device,
                        size_t held) {
  const unsigned forgets = S->forgets;
  const size_t heap = (size_t)lua_gc(L, LUA_GCCOUNT, 0) << 10;
  const size_t room = device_room(device, heap),
               start = device->left + room / 2;
  if (held < start) {
    device->next_step = device->stepped = start;
    return true;
  }
  const size_t grown = held > device->stepped ? held - device->stepped : 0;
  const bool late = held >= device->left + room;
  const int length =
      late ? INT_MAX
           : (int)(2 * (double)grown / (double)room * (double)heap / 1024);
  do {
    const bool ended = lua_gc(L, LUA_GCSTEP, length);
    if (S->forgets != forgets)
      return false;
    held = cgl_context_held(device->context);
    if (ended)
      collection_ended(device, held, start);
  } while (late && device->ended);
  device->stepped = held;
  device->next_step = held + room / STEPS;
  return true;
}


void cgl_lua_collect_step(lua_State *L, cgl_lua *S) {
  const char *operation = S->operation;
  S->allocated = 0;
  cgl_lua_device_of(L, S, cgl_lua_context(L, S));
  for (cgl_lua_device *device = S->devices; device; device = device->next) {
    size_t held = cgl_context_held(device->context);
    if (held < device->next_step)
      continue;
    if (!lua_gc(L, LUA_GCISRUNNING, 0)) /* stopped, or in a finalizer */
      return;
    const bool there = device_step(L, S, device, held);
    call_restore(L, S, operation);
    if (!there)
      return;
  }
}


/* The graphs of former captures may be gone; what the last collection left may
   have been released. */
void cgl_lua_collect_after(lua_State *L, cgl_lua *S) {
  for (cgl_lua_device *device = S->devices; device; device = device->next) {
    size_t held = cgl_context_held(device->context);
    if (held < device->left) {
      device->left -= (device->left - held) / DECAY;
      device->next_step = 0;
    }
  }
  cgl_lua_collect_step(L, S);
}
