/* cgraphlua.event: a point in a stream, to wait for and to time. */
#include "lua/types/types.h"

#include <stdio.h>

/* cg.event{timing=, external=} */
static int cg_event(lua_State *L) {
  static const char *const known[] = {"timing", "external", NULL};
  cgl_lua *S = cgl_lua_issue(L, "event");
  lua_settop(L, 1);
  cgl_lua_options(L, S, 1, known);
  bool timing = cgl_lua_option_boolean(L, S, 1, "timing", true);
  bool external = cgl_lua_option_boolean(L, S, 1, "external", false);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_event **slot = cgl_lua_new_event(L, S);
  cgl_lua_try(L, S, cgl_event_create(context, timing, slot));
  cgl_event_set_external(*slot, external);
  return 1;
}


bool cgl_lua_event_external(lua_State *L, cgl_lua *S, int index) {
  static const char *const known[] = {"external", NULL};
  cgl_lua_options(L, S, index, known);
  return cgl_lua_option_boolean(L, S, index, "external", false);
}


bool cgl_lua_event_record_options(lua_State *L, cgl_lua *S) {
  lua_settop(L, 3);
  bool left_out = lua_istable(L, 2) && lua_isnil(L, 3);
  bool external = cgl_lua_event_external(L, S, left_out ? 2 : 3);
  if (left_out) {
    lua_pushnil(L);
    lua_replace(L, 2);
  }
  return external;
}


/* e:record([stream] [, {external=}]) */
static int event_record(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:record");
  cgl_event *event = cgl_lua_check_event(L, S, 1);
  bool external = cgl_lua_event_record_options(L, S);
  cgl_stream *stream =
      lua_isnil(L, 2) ? cgl_lua_stream(L, S) : cgl_lua_check_stream(L, S, 2);
  cgl_lua_done(L, S,
               external ? cgl_event_record_external(event, stream)
                        : cgl_event_record(event, stream));
  return 0;
}


static int event_synchronize(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:synchronize");
  cgl_event *event = cgl_lua_check_event(L, S, 1);
  cgl_lua_limits_wait(L, S, NULL, event);
  cgl_lua_done(L, S, cgl_event_synchronize(event));
  return 0;
}


static int event_query(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:query");
  bool done = false;
  cgl_lua_done(L, S, cgl_event_query(cgl_lua_check_event(L, S, 1), &done));
  lua_pushboolean(L, done);
  return 1;
}


/* e:elapsed(later), milliseconds */
static int event_elapsed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:elapsed");
  float ms = 0;
  cgl_lua_done(L, S,
               cgl_event_elapsed(cgl_lua_check_event(L, S, 1),
                                 cgl_lua_check_event(L, S, 2), &ms));
  lua_pushnumber(L, ms);
  return 1;
}


/* The CUevent, for other libraries. */
static int event_handle(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "event:handle");
  lua_pushlightuserdata(L, cgl_event_handle(cgl_lua_check_event(L, S, 1)));
  return 1;
}


static void event_describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%p", object);
}


void cgl_lua_open_event(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"record", event_record}, {"synchronize", event_synchronize},
      {"query", event_query},   {"elapsed", event_elapsed},
      {"handle", event_handle}, {NULL, NULL},
  };
  static const luaL_Reg functions[] = {{"event", cg_event}, {NULL, NULL}};
  static const cgl_lua_type type = {.kind = CGL_LUA_event,
                                    .methods = methods,
                                    .describe = event_describe,
                                    .functions = functions};
  cgl_lua_register(L, S, &type);
}
