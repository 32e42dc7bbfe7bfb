/* cgraphlua.pinned: page-locked host memory.  Copies from and to it do not
   wait, and FFI code reads and writes it in place. */
#include "lua/types/types.h"

#include <stdio.h>

static size_t pinned_bytes(const cgl_pinned *pinned) {
  return cgl_pinned_count(pinned) * cgl_type_bytes(cgl_pinned_type(pinned));
}


/* cg.pinned(type, n) */
static int cg_pinned(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pinned");
  cgl_type type = cgl_lua_read_type(L, S, 1);
  size_t count = (size_t)cgl_lua_read_integer(L, S, 2, "the number of elements",
                                              0, CGL_LUA_MAX_WHOLE);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_pinned **slot = cgl_lua_new_pinned(L, S);
  cgl_lua_limits_take_pinned(L, S, cgl_lua_box_at(L, -1),
                             count * cgl_type_bytes(type));
  cgl_lua_try(L, S, cgl_pinned_create(context, type, count, slot));
  cgl_lua_collect_pace(L, S, pinned_bytes(*slot));
  return 1;
}


/* p:cdata(), an FFI pointer to the element type that keeps p from being
   collected */
static int pinned_cdata(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pinned:cdata");
  cgl_pinned *pinned = cgl_lua_check_pinned(L, S, 1);
  lua_settop(L, 1);
  cgl_lua_ffi(L, S, "pointer");
  lua_pushlightuserdata(L, cgl_pinned_data(pinned));
  lua_pushstring(L, cgl_type_name(cgl_pinned_type(pinned)));
  lua_pushvalue(L, 1);
  lua_call(L, 3, 1);
  return 1;
}


/* The element that the number at 2 says, from 1. */
static char *pinned_element(lua_State *L, cgl_lua *S, cgl_pinned *pinned) {
  const int64_t i = cgl_lua_read_integer(L, S, 2, "the element", 1,
                                         (int64_t)cgl_pinned_count(pinned));
  return (char *)cgl_pinned_data(pinned) +
         (size_t)(i - 1) * cgl_type_bytes(cgl_pinned_type(pinned));
}


/* p:get(i) */
static int pinned_get(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pinned:get");
  cgl_pinned *pinned = cgl_lua_check_pinned(L, S, 1);
  cgl_lua_push_element(L, S, cgl_pinned_type(pinned),
                       pinned_element(L, S, pinned));
  return 1;
}


/* p:set(i, value) */
static int pinned_set(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pinned:set");
  cgl_pinned *pinned = cgl_lua_check_pinned(L, S, 1);
  char *element = pinned_element(L, S, pinned);
  cgl_lua_read_element(L, S, 3, cgl_pinned_type(pinned), element);
  lua_settop(L, 1);
  return 1;
}


/* p:copy(buffer) */
static int pinned_copy(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pinned:copy");
  cgl_pinned *to = cgl_lua_check_pinned(L, S, 1);
  cgl_buffer *from = cgl_lua_check_buffer(L, S, 2);
  cgl_lua_done(L, S, cgl_pinned_copy(to, from, cgl_lua_stream(L, S)));
  lua_settop(L, 1);
  return 1;
}


static int pinned_len(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pinned:length");
  lua_pushnumber(L, (double)cgl_pinned_count(cgl_lua_check_pinned(L, S, 1)));
  return 1;
}


static int pinned_field(lua_State *L, void *object, const char *name) {
  if (*name == 't')
    lua_pushstring(L, cgl_type_name(cgl_pinned_type(object)));
  else
    lua_pushnumber(L, (double)pinned_bytes(object));
  return 1;
}


static void pinned_retire(lua_State *L, cgl_lua *S, void *pinned) {
  cgl_lua_site(L, S);
  cgl_pinned_retire(pinned);
}


static int pinned_release(lua_State *L) {
  return cgl_lua_release(L, CGL_LUA_pinned, "pinned:release", pinned_retire);
}


static void pinned_describe(void *object, char *text, size_t room) {
  cgl_pinned *pinned = object;
  snprintf(text, room, "%s[%zu] at %p", cgl_type_name(cgl_pinned_type(pinned)),
           cgl_pinned_count(pinned), cgl_pinned_data(pinned));
}


void cgl_lua_open_pinned(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {{"cdata", pinned_cdata},
                                     {"get", pinned_get},
                                     {"set", pinned_set},
                                     {"copy", pinned_copy},
                                     {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__len", pinned_len}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"pinned", cg_pinned}, {NULL, NULL}};
  static const char *const fields[] = {"type", "bytes", NULL};
  static const cgl_lua_type type = {
      .kind = CGL_LUA_pinned,
      .release = pinned_release,
      .methods = methods,
      .metamethods = metamethods,
      .field = pinned_field,
      .fields = fields,
      .elements =
          "pinned:get(i) is an element, from 1; pinned:cdata()[i], from 0",
      .describe = pinned_describe,
      .functions = functions};
  cgl_lua_register(L, S, &type);
}
