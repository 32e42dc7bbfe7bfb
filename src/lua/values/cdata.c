/* FFI objects, which the Lua half takes apart and makes: C cannot. */
#include "lua/values/values.h"

#include <string.h>


void cgl_lua_ffi(lua_State *L, cgl_lua *S, const char *name) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->ffi_ref);
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    return;
  }
  luaL_error(L, "%s: %s: needs LuaJIT's FFI, which is not there",
             cgl_lua_push_where(L, S), S->operation);
}


void cgl_lua_read_cdata(lua_State *L, cgl_lua *S, int index, cgl_arg *arg) {
  static const char *const kinds[] = {"int", "uint", "number", "pointer",
                                      "bytes"};
  static const cgl_arg_kind args[] = {CGL_ARG_INT, CGL_ARG_UINT, CGL_ARG_NUMBER,
                                      CGL_ARG_ADDRESS, CGL_ARG_BYTES};
  if (index < 0)
    index = lua_gettop(L) + index + 1;
  const char *operation = S->operation;
  cgl_lua_ffi(L, S, "read");
  lua_pushvalue(L, index);
  lua_call(L, 1, 3);
  S->operation = operation;
  *arg = (cgl_arg){.kind = CGL_ARG_INT};
  const char *kind = lua_tostring(L, -3);
  for (int i = 0; i < 5; i++)
    if (kind && !strcmp(kind, kinds[i]))
      arg->kind = args[i];
  const void *payload = lua_topointer(L, -2);
  if (kind && !strcmp(kind, "complex")) { /* its numbers are in the value */
    arg->kind = CGL_ARG_BYTES;
    arg->bytes.data = lua_topointer(L, index);
  } else if (arg->kind == CGL_ARG_NUMBER) {
    arg->number = lua_tonumber(L, -2);
  } else { /* a boxed 64-bit integer, or an address as such */
    memcpy(&arg->u, payload, sizeof arg->u);
  }
  if (arg->kind == CGL_ARG_ADDRESS || arg->kind == CGL_ARG_BYTES)
    cgl_lua_limits_refuse(L, S, "FFI objects but numbers are not taken");
  if (arg->kind == CGL_ARG_BYTES)
    arg->bytes.size = (size_t)lua_tonumber(L, -1);
  lua_pop(L, 3);
}


void cgl_lua_cdata_check_type(lua_State *L, cgl_lua *S, int index,
                              cgl_type type) {
  static const char *const words[CGL_TYPE_COUNT] = {
      [CGL_TYPE_float] = "float", [CGL_TYPE_double] = "double",
      [CGL_TYPE_int16] = "int16", [CGL_TYPE_uint16] = "int16",
      [CGL_TYPE_half] = "int16",  [CGL_TYPE_bfloat16] = "int16",
      [CGL_TYPE_int32] = "int32", [CGL_TYPE_uint32] = "int32",
      [CGL_TYPE_int64] = "int64", [CGL_TYPE_uint64] = "int64",
  };
  const char *operation = S->operation;
  cgl_lua_ffi(L, S, "elements");
  lua_pushvalue(L, index);
  lua_call(L, 1, 1);
  S->operation = operation;
  const char *word = lua_tostring(L, -1);
  const char *wanted = words[cgl_type_number(type)];
  if (word && wanted && strcmp(word, wanted))
    cgl_lua_bad(L, S, index,
                "an FFI array of %s for elements of %s: its bytes would be "
                "taken for other numbers",
                word, cgl_type_name(type));
  lua_pop(L, 1);
}


void cgl_lua_push_int64(lua_State *L, cgl_lua *S, bool is_signed,
                        uint64_t bits) {
  int64_t i = (int64_t)bits;
  if (is_signed ? i >= -CGL_LUA_MAX_WHOLE && i <= CGL_LUA_MAX_WHOLE
                : bits <= (uint64_t)CGL_LUA_MAX_WHOLE) {
    lua_pushnumber(L, is_signed ? (double)i : (double)bits);
    return;
  }
  cgl_lua_ffi(L, S, is_signed ? "int64" : "uint64");
  lua_pushnumber(L, (double)(bits >> 32));
  lua_pushnumber(L, (double)(bits & UINT32_MAX));
  lua_call(L, 2, 1);
}
