/* cgraphlua.pinned: page-locked host memory, which copies reach without
   waiting and FFI code reads and writes in place. */
#include "lua/binding.h"

#include <stdio.h>

static cgl_pinned *check(lua_State *L, cgl_lua *S, int index) {
  return cgl_lua_check(L, S, index, CGL_LUA_pinned);
}


static size_t size(const cgl_pinned *pinned) {
  return cgl_pinned_count(pinned) * cgl_type_bytes(cgl_pinned_type(pinned));
}


/* cg.pinned(type, n) */
static int new_pinned(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pinned");
  cgl_type type = cgl_lua_type_name(L, S, 1);
  size_t count = (size_t)cgl_lua_integer(L, S, 2, "the number of elements", 0,
                                         CGL_LUA_MAX_WHOLE);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_pinned **slot = cgl_lua_new(L, S, CGL_LUA_pinned);
  cgl_lua_try(L, S, cgl_pinned_create(context, type, count, slot));
  return 1;
}


/* p:cdata(), an FFI pointer to the element type that keeps p from being
   collected */
static int pinned_cdata(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pinned:cdata");
  cgl_pinned *pinned = check(L, S, 1);
  lua_settop(L, 1);
  cgl_lua_ffi(L, S, "pointer");
  lua_pushlightuserdata(L, cgl_pinned_data(pinned));
  lua_pushstring(L, cgl_type_name(cgl_pinned_type(pinned)));
  lua_pushvalue(L, 1);
  lua_call(L, 3, 1);
  return 1;
}


/* p:copy(buffer) */
static int pinned_copy(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pinned:copy");
  cgl_pinned *to = check(L, S, 1);
  cgl_buffer *from = cgl_lua_check(L, S, 2, CGL_LUA_buffer);
  cgl_lua_done(L, S, cgl_pinned_copy(to, from, cgl_lua_stream(L, S)));
  lua_settop(L, 1);
  return 1;
}


static int pinned_len(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pinned:length");
  lua_pushnumber(L, (double)cgl_pinned_count(check(L, S, 1)));
  return 1;
}


static int field(lua_State *L, cgl_lua *S, void *object, const char *name) {
  (void)S;
  if (*name == 't')
    lua_pushstring(L, cgl_type_name(cgl_pinned_type(object)));
  else
    lua_pushnumber(L, (double)size(object));
  return 1;
}


static void describe(void *object, char *text, size_t room) {
  cgl_pinned *pinned = object;
  snprintf(text, room, "%s[%zu] at %p", cgl_type_name(cgl_pinned_type(pinned)),
           cgl_pinned_count(pinned), cgl_pinned_data(pinned));
}


void cgl_lua_open_pinned(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"cdata", pinned_cdata}, {"copy", pinned_copy}, {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__len", pinned_len}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"pinned", new_pinned}, {NULL, NULL}};
  static const char *const fields[] = {"type", "bytes", NULL};
  static const cgl_lua_type type = {.methods = methods,
                                    .metamethods = metamethods,
                                    .field = field,
                                    .fields = fields,
                                    .describe = describe};
  cgl_lua_register(L, S, CGL_LUA_pinned, &type);
  cgl_lua_functions(L, functions);
}
