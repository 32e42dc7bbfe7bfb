/* What a call works on when the script names nothing: the current stream and
   its device, the pool in use, and the streams and generators that the state
   keeps for each device.  All are made at their first use. */
#ifndef CGL_LUA_CURRENT_H
#define CGL_LUA_CURRENT_H

#include "lua/base/base.h"

/* The default seed of generators, the same as torch's. */
#define CGL_LUA_STANDARD_SEED UINT64_C(67280421310721)

/* Makes the default stream of the device that set_device named current, which
   opens the device; without one the host's stream, or else that of the default
   device. */
void cgl_lua_select(lua_State *L, cgl_lua *S);

/* The current stream, borrowed; opens its device at the first use. */
static inline cgl_stream *cgl_lua_stream(lua_State *L, cgl_lua *S) {
  if (!S->stream)
    cgl_lua_select(L, S);
  return S->stream;
}

/* The device of the current stream, borrowed. */
cgl_context *cgl_lua_context(lua_State *L, cgl_lua *S);
/* Notes the stream userdata on top, for cgl_lua_wait_streams. */
void cgl_lua_note_stream(lua_State *L, const cgl_lua *S);
/* Waits for the streams of this state: those that scripts hold, those that the
   state keeps for its devices, and the devices' default streams. */
cgl_status cgl_lua_wait_streams(lua_State *L, cgl_lua *S);
/* Calls a function for each stream of this state, but no default stream; takes
   little of the stack, and never raises but for want of memory. */
void cgl_lua_each_stream(lua_State *L, const cgl_lua *S,
                         void (*visit)(cgl_stream *stream));
/* Opens a device and waits for all of its work. */
cgl_status cgl_lua_synchronize(const char *device);
/* What the state keeps for a device, made at its first use; borrowed. */
cgl_lua_device *cgl_lua_device_of(lua_State *L, cgl_lua *S,
                                  cgl_context *context);
/* The stream that captures on a device use, borrowed. */
cgl_stream *cgl_lua_side_stream(lua_State *L, cgl_lua *S, cgl_context *context);
/* The current stream when it is of this device, else the device's default
   stream; borrowed. */
cgl_stream *cgl_lua_stream_on(lua_State *L, cgl_lua *S, cgl_context *context);
/* The default generator of the current device, borrowed. */
cgl_generator *cgl_lua_default_generator(lua_State *L, cgl_lua *S);
/* The kernels of algorithms on the current device, borrowed. */
cgl_algo *cgl_lua_algo(lua_State *L, cgl_lua *S);
/* The library of matrices of the current device, borrowed. */
cgl_blas *cgl_lua_blas(lua_State *L, cgl_lua *S);
/* The library of transforms of the current device, borrowed. */
cgl_fft *cgl_lua_fft(lua_State *L, cgl_lua *S);
/* Releases the current stream and all that is kept for devices, of the named
   device alone unless it is NULL; the next use makes them again. */
void cgl_lua_forget(cgl_lua *S, const char *device);

/* Calls the function below `nargs` arguments in a scope with `stream` (NULL:
   the current stream) and `pool` (NULL: the pool in use) current, and restores
   both; returns lua_pcall's status. */
int cgl_lua_within(lua_State *L, cgl_lua *S, cgl_stream *stream, cgl_pool *pool,
                   int nargs);

#endif
