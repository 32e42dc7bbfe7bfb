/* cgraphlua.param: a value that captured launches read again. */
#include "lua/types/types.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 4096 };


/* Whether the value is one element: of a vector's type, a list of numbers.  A
   number's text is refused as one, and not taken for bytes. */
static bool value_is_element(lua_State *L, cgl_lua *S, int index,
                             cgl_type type) {
  cgl_arg x;
  const int kind = lua_type(L, index);
  if (kind == LUA_TNUMBER)
    return true;
  const bool wide = type == CGL_TYPE_int64 || type == CGL_TYPE_uint64;
  if (kind == LUA_TTABLE && cgl_type_lanes(type) > 1) {
    lua_rawgeti(L, index, 1);
    const int first = lua_type(L, -1);
    lua_pop(L, 1);
    return first != LUA_TTABLE && first != CGL_LUA_TCDATA;
  }
  if (kind == LUA_TSTRING)
    return wide || type == CGL_TYPE_bool ||
           (cgl_type_bytes(type) > 1 && lua_isnumber(L, index));
  return kind != LUA_TTABLE &&
         (kind != CGL_LUA_TCDATA || cgl_type_lanes(type) > 1 ||
          cgl_lua_read_number(L, S, index, &x));
}


/* The value at `index`: an element, or a list or bytes of them; borrowed from
   there, from `element` or from what was pushed. */
static cgl_lua_elements values_read(lua_State *L, cgl_lua *S, int index,
                                    cgl_type type,
                                    char element[CGL_MAX_ELEMENT_BYTES]) {
  cgl_lua_elements values = {.bytes = element, .shape = {.count = 1}};
  if (value_is_element(L, S, index, type))
    cgl_lua_read_element(L, S, index, type, element);
  else
    cgl_lua_read_elements(L, S, index, type, &values);
  if (type == CGL_TYPE_uint8 && values.shape.count > 1)
    cgl_lua_limits_refuse(L, S, "bytes are not taken: they may be addresses");
  return values;
}


/* cg.param(type, value [, name]) */
static int cg_param(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "param");
  char element[CGL_MAX_ELEMENT_BYTES];
  lua_settop(L, 3);
  const cgl_type type = cgl_lua_read_type(L, S, 1);
  const cgl_lua_elements values = values_read(L, S, 2, type, element);
  const char *name =
      lua_isnil(L, 3) ? NULL : cgl_lua_read_string(L, S, 3, "the name", NULL);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_param **slot = cgl_lua_new_param(L, S);
  cgl_lua_try(L, S,
              cgl_param_create(context, type, values.shape.count, values.bytes,
                               name, slot));
  return 1;
}


void cgl_lua_param_read(lua_State *L, cgl_lua *S, int index, cgl_param *param,
                        bool set) {
  char element[CGL_MAX_ELEMENT_BYTES];
  const size_t count = cgl_param_count(param);
  cgl_arg whole;
  if (lua_istable(L, index) &&
      cgl_lua_read_struct(L, S, &(cgl_lua_fields){.param = param}, index,
                          &whole)) {
    if (set)
      cgl_lua_done(L, S, cgl_param_set(param, whole.bytes.data));
    return;
  }
  const cgl_lua_elements values =
      values_read(L, S, index, cgl_param_type(param), element);
  if (values.shape.count != count)
    cgl_lua_bad(L, S, index, "the parameter%s%s has %d elements, got %d",
                *cgl_param_name(param) ? " " : "", cgl_param_name(param),
                (int)count, (int)values.shape.count);
  if (set)
    cgl_lua_done(L, S, cgl_param_set(param, values.bytes));
}


/* Pushes elements that the parameter may have. */
static void values_push(lua_State *L, cgl_lua *S, const cgl_param *param,
                        const char *bytes) {
  const size_t count = cgl_param_count(param);
  if (cgl_param_field_count(param)) {
    cgl_lua_push_struct(L, S, &(cgl_lua_fields){.param = param}, bytes);
    return;
  }
  if (count == 1) {
    cgl_lua_push_element(L, S, cgl_param_type(param), bytes);
    return;
  }
  lua_createtable(L, (int)count, 0);
  cgl_lua_push_elements(L, S, lua_gettop(L), cgl_param_type(param), bytes,
                        count);
}


void cgl_lua_param_push(lua_State *L, cgl_lua *S, const cgl_param *param) {
  char bytes[MOST_BYTES];
  cgl_param_get(param, bytes);
  values_push(L, S, param, bytes);
}


/* Pushes the buffer that the parameter follows; in the slot NULL: none. */
static cgl_buffer **followed_push(lua_State *L, cgl_lua *S, cgl_param *param) {
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  *slot = cgl_param_followed(param);
  return slot;
}


/* p:set(value); a number goes the short way */
static int param_set(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "param:set");
  const cgl_lua_box *box = cgl_lua_box_of(L, 1, CGL_LUA_param);
  cgl_set_site(NULL, 0);
  if (box && box->object && lua_type(L, 2) == LUA_TNUMBER &&
      cgl_param_count(box->object) == 1) {
    char element[CGL_MAX_ELEMENT_BYTES];
    cgl_lua_read_element(L, S, 2, cgl_param_type(box->object), element);
    cgl_lua_done(L, S, cgl_param_set(box->object, element));
    return 0;
  }
  lua_settop(L, 2);
  cgl_lua_param_read(L, S, 2, cgl_lua_check_param(L, S, 1), true);
  return 0;
}


/* p:get(): of a parameter that follows a buffer, what that holds */
static int param_get(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "param:get");
  cgl_param *param = cgl_lua_check_param(L, S, 1);
  cgl_buffer **followed = followed_push(L, S, param);
  char bytes[MOST_BYTES];
  if (!*followed) {
    cgl_lua_param_push(L, S, param);
    return 1;
  }
  cgl_lua_limits_wait(L, S, cgl_lua_stream(L, S), NULL);
  cgl_lua_done(L, S,
               cgl_buffer_download(*followed, cgl_lua_stream(L, S), 0, bytes,
                                   cgl_buffer_bytes(*followed)));
  values_push(L, S, param, bytes);
  return 1;
}


/* p:follow(buffer | nil) */
static int param_follow(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "param:follow");
  cgl_param *param = cgl_lua_check_param(L, S, 1);
  if (lua_gettop(L) < 2)
    cgl_lua_bad(L, S, 2, "a buffer expected, or nil for an end");
  cgl_buffer *buffer = lua_isnil(L, 2) ? NULL : cgl_lua_check_buffer(L, S, 2);
  cgl_lua_done(L, S, cgl_param_follow(param, buffer));
  lua_settop(L, 1);
  return 1;
}


/* p:followed(): the buffer, or nil */
static int param_followed(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "param:followed");
  if (!*followed_push(L, S, cgl_lua_check_param(L, S, 1)))
    lua_pushnil(L);
  return 1;
}


static int param_type(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "param:type");
  lua_pushstring(L,
                 cgl_type_name(cgl_param_type(cgl_lua_check_param(L, S, 1))));
  return 1;
}


/* p:name(), nil without one */
static int param_name(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "param:name");
  const char *name = cgl_param_name(cgl_lua_check_param(L, S, 1));
  if (*name)
    lua_pushstring(L, name);
  else
    lua_pushnil(L);
  return 1;
}


static void param_describe(void *object, char *text, size_t room) {
  const cgl_param *param = object;
  const char *name = cgl_param_name(param);
  snprintf(text, room, "%s%s%d %s", name, *name ? ", " : "",
           (int)cgl_param_count(param), cgl_type_name(cgl_param_type(param)));
}


void cgl_lua_open_param(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"set", param_set},
      {"get", param_get},
      {"follow", param_follow},
      {"followed", param_followed},
      {"type", param_type},
      {"name", param_name},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {{"param", cg_param}, {NULL, NULL}};
  static const cgl_lua_type type = {.kind = CGL_LUA_param,
                                    .methods = methods,
                                    .describe = param_describe,
                                    .functions = functions};
  cgl_lua_register(L, S, &type);
}
