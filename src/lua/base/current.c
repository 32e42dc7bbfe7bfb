#include "lua/base/current.h"

#include <stdlib.h>
#include <string.h>

#include "lua/base/call.h"
#include "lua/base/error.h"
#include "lua/base/limits.h"
#include "lua/base/object.h"


void cgl_lua_select(lua_State *L, cgl_lua *S) {
  if (S->home && !*S->device) {
    S->stream = cgl_stream_retain(S->home);
    return;
  }
  cgl_context *context = NULL;
  cgl_stream *stream = NULL;
  cgl_status status = cgl_context_open(S->device, &context);
  if (!status)
    status = cgl_stream_default(context, &stream);
  cgl_context_release(context); /* the stream holds it */
  cgl_lua_done(L, S, status);
  S->stream = stream;
}


cgl_context *cgl_lua_context(lua_State *L, cgl_lua *S) {
  return cgl_stream_context(cgl_lua_stream(L, S));
}


void cgl_lua_note_stream(lua_State *L, const cgl_lua *S) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->streams_ref);
  lua_pushvalue(L, -2);
  lua_pushboolean(L, 1);
  lua_rawset(L, -3);
  lua_pop(L, 1);
}


/* The default stream that the state keeps for a device, borrowed. */
static cgl_stream *device_default_stream(lua_State *L, cgl_lua *S,
                                         cgl_lua_device *device) {
  if (!device->default_stream)
    cgl_lua_done(L, S,
                 cgl_stream_default(device->context, &device->default_stream));
  return device->default_stream;
}


/* Lists up to `room` of the state's streams; returns how many there are. */
static size_t streams_list(lua_State *L, const cgl_lua *S, cgl_stream **list,
                           size_t room) {
  size_t n = 0;
  if (S->home && n++ < room)
    list[n - 1] = S->home;
  for (cgl_lua_device *device = S->devices; device; device = device->next) {
    cgl_stream *kept[] = {device->default_stream, device->side_stream};
    for (int i = 0; i < 2; i++)
      if (kept[i] && n++ < room)
        list[n - 1] = kept[i];
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->streams_ref);
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    lua_pop(L, 1);
    cgl_stream *stream = cgl_lua_peek(L, -1, CGL_LUA_stream);
    if (stream && n++ < room)
      list[n - 1] = stream;
  }
  lua_pop(L, 1);
  return n;
}


void cgl_lua_each_stream(lua_State *L, const cgl_lua *S,
                         void (*visit)(cgl_stream *stream)) {
  if (S->home)
    visit(S->home);
  for (cgl_lua_device *device = S->devices; device; device = device->next)
    if (device->side_stream)
      visit(device->side_stream);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->streams_ref);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    cgl_stream *stream = cgl_lua_peek(L, -2, CGL_LUA_stream);
    if (stream && !cgl_stream_is_default(stream))
      visit(stream);
  }
  lua_pop(L, 1);
}


/* A restricted state waits by the clock, for its own streams. */
static void streams_wait_restricted(lua_State *L, cgl_lua *S) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->streams_ref);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    cgl_stream *stream = cgl_lua_peek(L, -2, CGL_LUA_stream);
    if (stream)
      cgl_lua_limits_wait(L, S, stream, NULL);
  }
  lua_pop(L, 1);
  cgl_lua_limits_wait(L, S, S->home, NULL);
}


cgl_status cgl_lua_wait_streams(lua_State *L, cgl_lua *S) {
  if (S->limits) {
    streams_wait_restricted(L, S);
    return CGL_OK;
  }
  cgl_lua_device_of(L, S, cgl_lua_context(L, S));
  for (cgl_lua_device *device = S->devices; device; device = device->next)
    device_default_stream(L, S, device);
  /* The allocation may collect streams, and finalizers may make some. */
  const size_t room = streams_list(L, S, NULL, 0);
  cgl_stream **list = lua_newuserdata(L, room * sizeof *list);
  const size_t n = streams_list(L, S, list, room);
  cgl_status status = cgl_streams_synchronize(list, n < room ? n : room);
  lua_pop(L, 1);
  return status;
}


cgl_status cgl_lua_synchronize(const char *device) {
  cgl_context *context = NULL;
  cgl_status status = cgl_context_open(device, &context);
  if (!status)
    status = cgl_context_synchronize(context);
  cgl_context_release(context);
  return status;
}


cgl_lua_device *cgl_lua_device_of(lua_State *L, cgl_lua *S,
                                  cgl_context *context) {
  for (cgl_lua_device *device = S->devices; device; device = device->next)
    if (device->context == context)
      return device;
  cgl_lua_device *device = calloc(1, sizeof *device);
  if (!device)
    cgl_lua_raise(L, S, CGL_ERROR_NO_MEMORY, "", "no memory for a device");
  device->context = cgl_context_retain(context);
  device->next = S->devices;
  return S->devices = device;
}


cgl_stream *cgl_lua_side_stream(lua_State *L, cgl_lua *S,
                                cgl_context *context) {
  cgl_lua_device *device = cgl_lua_device_of(L, S, context);
  if (!device->side_stream) {
    cgl_lua_done(L, S, cgl_stream_create(context, 0, &device->side_stream));
    cgl_lua_limits_isolate(L, S, device->side_stream);
  }
  return device->side_stream;
}


cgl_stream *cgl_lua_stream_on(lua_State *L, cgl_lua *S, cgl_context *context) {
  cgl_stream *current = cgl_lua_stream(L, S);
  if (cgl_stream_context(current) == context)
    return current;
  return device_default_stream(L, S, cgl_lua_device_of(L, S, context));
}


cgl_generator *cgl_lua_default_generator(lua_State *L, cgl_lua *S) {
  cgl_context *context = cgl_lua_context(L, S);
  cgl_lua_device *device = cgl_lua_device_of(L, S, context);
  if (!device->generator)
    cgl_lua_done(L, S,
                 cgl_generator_create(context, CGL_LUA_STANDARD_SEED,
                                      &device->generator));
  return device->generator;
}


cgl_algo *cgl_lua_algo(lua_State *L, cgl_lua *S) {
  cgl_context *context = cgl_lua_context(L, S);
  cgl_lua_device *device = cgl_lua_device_of(L, S, context);
  if (!device->algo)
    cgl_lua_done(L, S, cgl_algo_create(context, &device->algo));
  return device->algo;
}


cgl_blas *cgl_lua_blas(lua_State *L, cgl_lua *S) {
  cgl_context *context = cgl_lua_context(L, S);
  cgl_lua_device *device = cgl_lua_device_of(L, S, context);
  if (!device->blas)
    cgl_lua_done(L, S, cgl_blas_create(context, &device->blas));
  return device->blas;
}


cgl_fft *cgl_lua_fft(lua_State *L, cgl_lua *S) {
  cgl_context *context = cgl_lua_context(L, S);
  cgl_lua_device *device = cgl_lua_device_of(L, S, context);
  if (!device->fft)
    cgl_lua_done(L, S, cgl_fft_create(context, &device->fft));
  return device->fft;
}


static bool context_is_of(cgl_context *context, const char *device) {
  return !device || !strcmp(cgl_context_device(context)->device, device);
}


void cgl_lua_forget(cgl_lua *S, const char *name) {
  if (S->stream && context_is_of(cgl_stream_context(S->stream), name)) {
    cgl_stream_release(S->stream);
    S->stream = NULL;
  }
  S->forgets++;
  for (cgl_lua_device **link = &S->devices; *link;) {
    cgl_lua_device *device = *link;
    if (!context_is_of(device->context, name)) {
      link = &device->next;
      continue;
    }
    *link = device->next;
    cgl_stream_release(device->side_stream);
    cgl_stream_release(device->default_stream);
    cgl_generator_release(device->generator);
    cgl_algo_destroy(device->algo);
    cgl_blas_destroy(device->blas);
    cgl_fft_destroy(device->fft);
    cgl_context_release(device->context);
    free(device);
  }
}


int cgl_lua_within(lua_State *L, cgl_lua *S, cgl_stream *stream, cgl_pool *pool,
                   int nargs) {
  cgl_lua_scope scope = {S->scope, S->stream, S->pool,
                         S->scope ? S->scope->depth + 1 : 1};
  const char *operation = S->operation;
  if (scope.depth > CGL_LUA_SCOPES) {
    lua_pop(L, nargs + 1);
    const char *where = cgl_lua_push_where(L, S);
    lua_pushfstring(L, "%s%s%s: stack overflow (%d scopes in one another)",
                    where, *where ? ": " : "", operation, CGL_LUA_SCOPES);
    return LUA_ERRRUN;
  }
  stream = stream ? stream : S->stream;
  pool = pool ? pool : S->pool;
  S->stream = stream ? cgl_stream_retain(stream) : NULL;
  S->pool = pool ? cgl_pool_retain(pool) : NULL;
  S->scope = &scope;
  int status = lua_pcall(L, nargs, LUA_MULTRET, 0);
  S->scope = scope.outer;
  cgl_stream_release(S->stream);
  cgl_pool_release(S->pool);
  S->stream = scope.stream;
  S->pool = scope.pool;
  S->operation = operation;
  cgl_lua_entered = S;
  return status;
}
