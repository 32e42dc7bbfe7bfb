/* cgraphlua.event: a point in a stream, to wait for and to time. */
#include "lua/binding.h"

#include <stdio.h>

static cgl_event *check(lua_State *L, cgl_lua *S, int index) {
  return cgl_lua_check(L, S, index, CGL_LUA_event);
}


/* cg.event{timing=, external=} */
static int new_event(lua_State *L) {
  static const char *const known[] = {"timing", "external", NULL};
  cgl_lua *S = cgl_lua_issue(L, "event");
  lua_settop(L, 1);
  cgl_lua_options(L, S, 1, known);
  bool timing = cgl_lua_option_boolean(L, S, 1, "timing", true);
  bool external = cgl_lua_option_boolean(L, S, 1, "external", false);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_event **slot = cgl_lua_new(L, S, CGL_LUA_event);
  cgl_lua_try(L, S, cgl_event_create(context, timing, slot));
  cgl_event_set_external(*slot, external);
  return 1;
}


bool cgl_lua_external(lua_State *L, cgl_lua *S, int index) {
  static const char *const known[] = {"external", NULL};
  cgl_lua_options(L, S, index, known);
  return cgl_lua_option_boolean(L, S, index, "external", false);
}


bool cgl_lua_external_record(lua_State *L, cgl_lua *S) {
  lua_settop(L, 3);
  bool alone = lua_istable(L, 2) && lua_isnil(L, 3);
  bool external = cgl_lua_external(L, S, alone ? 2 : 3);
  if (alone) {
    lua_pushnil(L);
    lua_replace(L, 2);
  }
  return external;
}


/* e:record([stream] [, {external=}]) */
static int event_record(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:record");
  cgl_event *event = check(L, S, 1);
  bool external = cgl_lua_external_record(L, S);
  cgl_stream *stream = lua_isnil(L, 2) ? cgl_lua_stream(L, S)
                                       : cgl_lua_check(L, S, 2, CGL_LUA_stream);
  cgl_lua_done(L, S,
               external ? cgl_event_record_external(event, stream)
                        : cgl_event_record(event, stream));
  return 0;
}


static int event_synchronize(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:synchronize");
  cgl_lua_done(L, S, cgl_event_synchronize(check(L, S, 1)));
  return 0;
}


static int event_query(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:query");
  bool done = false;
  cgl_lua_done(L, S, cgl_event_query(check(L, S, 1), &done));
  lua_pushboolean(L, done);
  return 1;
}


/* e:elapsed(later), milliseconds */
static int event_elapsed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "event:elapsed");
  float ms = 0;
  cgl_lua_done(L, S, cgl_event_elapsed(check(L, S, 1), check(L, S, 2), &ms));
  lua_pushnumber(L, ms);
  return 1;
}


/* The CUevent, for other libraries. */
static int event_handle(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "event:handle");
  lua_pushlightuserdata(L, cgl_event_handle(check(L, S, 1)));
  return 1;
}


static void describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%p", object);
}


void cgl_lua_open_event(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"record", event_record}, {"synchronize", event_synchronize},
      {"query", event_query},   {"elapsed", event_elapsed},
      {"handle", event_handle}, {NULL, NULL},
  };
  static const luaL_Reg functions[] = {{"event", new_event}, {NULL, NULL}};
  static const cgl_lua_type type = {.methods = methods, .describe = describe};
  cgl_lua_register(L, S, CGL_LUA_event, &type);
  cgl_lua_functions(L, functions);
}
