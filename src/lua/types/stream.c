/* cgraphlua.stream: an in-order queue of device work. */
#include "lua/types/types.h"

#include <stdio.h>

/* cg.stream{priority=} */
static int cg_stream(lua_State *L) {
  static const char *const known[] = {"priority", NULL};
  cgl_lua *S = cgl_lua_issue(L, "stream");
  lua_settop(L, 1);
  cgl_lua_options(L, S, 1, known);
  int priority =
      (int)cgl_lua_option_integer(L, S, 1, "priority", INT32_MIN, INT32_MAX, 0);
  if (priority < 0)
    cgl_lua_limits_refuse(L, S, "its streams go before no others");
  cgl_context *context = cgl_lua_context(L, S);
  cgl_stream **slot = cgl_lua_new_stream(L, S);
  cgl_lua_try(L, S, cgl_stream_create(context, priority, slot));
  cgl_lua_limits_isolate(L, S, *slot);
  cgl_lua_note_stream(L, S);
  return 1;
}


static int cg_current_stream(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "current_stream");
  cgl_stream *stream = cgl_lua_stream(L, S);
  cgl_stream **slot = cgl_lua_new_stream(L, S);
  *slot = cgl_stream_retain(stream);
  if (!cgl_stream_is_default(stream))
    cgl_lua_note_stream(L, S);
  return 1;
}


static int cg_default_stream(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "default_stream");
  cgl_context *context = cgl_lua_context(L, S);
  cgl_stream **slot = cgl_lua_new_stream(L, S);
  cgl_lua_done(L, S, cgl_stream_default(context, slot));
  return 1;
}


/* cg.stream_from(pointer) */
static int cg_stream_from(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "stream_from");
  void *handle = (void *)(uintptr_t)cgl_lua_read_address(L, S, 1);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_stream **slot = cgl_lua_new_stream(L, S);
  cgl_lua_done(L, S, cgl_stream_from_handle(context, handle, slot));
  cgl_lua_note_stream(L, S);
  return 1;
}


static int cg_is_current_stream_capturing(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "is_current_stream_capturing");
  bool capturing = false;
  if (S->stream)
    cgl_lua_done(L, S, cgl_stream_is_capturing(S->stream, &capturing));
  lua_pushboolean(L, capturing);
  return 1;
}


/* s:use(fn, ...) */
static int stream_use(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "stream:use");
  cgl_stream *stream = cgl_lua_check_stream(L, S, 1);
  cgl_lua_read_function(L, S, 2);
  if (cgl_lua_within(L, S, stream, NULL, lua_gettop(L) - 2))
    return lua_error(L);
  return lua_gettop(L) - 1;
}


static int stream_synchronize(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "stream:synchronize");
  cgl_stream *stream = cgl_lua_check_stream(L, S, 1);
  cgl_lua_limits_wait(L, S, stream, NULL);
  cgl_lua_done(L, S, cgl_stream_synchronize(stream));
  return 0;
}


static int stream_query(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "stream:query");
  bool done = false;
  cgl_lua_done(L, S, cgl_stream_query(cgl_lua_check_stream(L, S, 1), &done));
  lua_pushboolean(L, done);
  return 1;
}


/* s:wait(event_or_stream [, {external=}]) */
static int stream_wait(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "stream:wait");
  lua_settop(L, 3);
  cgl_stream *stream = cgl_lua_check_stream(L, S, 1);
  bool external = cgl_lua_event_external(L, S, 3);
  cgl_status status;
  if (external)
    status =
        cgl_stream_wait_event_external(stream, cgl_lua_check_event(L, S, 2));
  else if (cgl_lua_is(L, 2, CGL_LUA_stream))
    status = cgl_stream_wait_stream(stream, cgl_lua_check_stream(L, S, 2));
  else if (cgl_lua_is(L, 2, CGL_LUA_event))
    status = cgl_stream_wait_event(stream, cgl_lua_check_event(L, S, 2));
  else
    return cgl_lua_bad(L, S, 2, "event or stream expected, got %s",
                       cgl_lua_typename(L, 2));
  cgl_lua_done(L, S, status);
  return 0;
}


/* s:record([event] [, {external=}]) returns the event; makes it when it is
   left out. */
static int stream_record(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "stream:record");
  cgl_stream *stream = cgl_lua_check_stream(L, S, 1);
  bool external = cgl_lua_event_record_options(L, S);
  if (lua_isnil(L, 2)) {
    cgl_event **slot = cgl_lua_new_event(L, S);
    cgl_lua_done(L, S,
                 cgl_event_create(cgl_stream_context(stream), true, slot));
    lua_replace(L, 2);
  }
  cgl_event *event = cgl_lua_check_event(L, S, 2);
  cgl_lua_done(L, S,
               external ? cgl_event_record_external(event, stream)
                        : cgl_event_record(event, stream));
  lua_settop(L, 2);
  return 1;
}


static int stream_is_capturing(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "stream:is_capturing");
  bool capturing = false;
  cgl_lua_done(
      L, S, cgl_stream_is_capturing(cgl_lua_check_stream(L, S, 1), &capturing));
  lua_pushboolean(L, capturing);
  return 1;
}


/* The CUstream, for other libraries. */
static int stream_handle(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "stream:handle");
  lua_pushlightuserdata(L, cgl_stream_handle(cgl_lua_check_stream(L, S, 1)));
  return 1;
}


static void stream_retire(lua_State *L, cgl_lua *S, void *stream) {
  (void)L;
  cgl_lua_limits_keep_stream(S, stream);
}


static int stream_release(lua_State *L) {
  return cgl_lua_release(L, CGL_LUA_stream, "stream:release", stream_retire);
}


static void stream_describe(void *object, char *text, size_t room) {
  cgl_stream *stream = object;
  const cgl_device_info *info = cgl_context_device(cgl_stream_context(stream));
  if (cgl_stream_is_default(stream))
    snprintf(text, room, "default of %s", info->device);
  else
    snprintf(text, room, "%p of %s", object, info->device);
}


void cgl_lua_open_stream(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"use", stream_use},       {"synchronize", stream_synchronize},
      {"query", stream_query},   {"wait", stream_wait},
      {"record", stream_record}, {"is_capturing", stream_is_capturing},
      {"handle", stream_handle}, {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"stream", cg_stream},
      {"current_stream", cg_current_stream},
      {"default_stream", cg_default_stream},
      {"stream_from", cg_stream_from},
      {"is_current_stream_capturing", cg_is_current_stream_capturing},
      {NULL, NULL},
  };
  static const cgl_lua_type type = {.kind = CGL_LUA_stream,
                                    .methods = methods,
                                    .describe = stream_describe,
                                    .functions = functions,
                                    .release = stream_release,
                                    .collect = stream_retire};
  cgl_lua_register(L, S, &type);
}
