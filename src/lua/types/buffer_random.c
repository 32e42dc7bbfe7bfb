/* Random numbers for buffers: b:uniform, b:normal and b:random. */
#include "lua/types/types.h"


/* The generator before the other arguments, or the default generator; *next is
   the index of the argument after it. */
static cgl_generator *generator_read(lua_State *L, cgl_lua *S, int *next) {
  *next = lua_isnumber(L, 2) || lua_type(L, 2) == CGL_LUA_TCDATA ? 2 : 3;
  if (*next == 2 || lua_isnoneornil(L, 2))
    return cgl_lua_default_generator(L, S);
  return cgl_lua_check_generator(L, S, 2);
}


static double number_read(lua_State *L, cgl_lua *S, int index, const char *what,
                          double otherwise) {
  cgl_lua_cdata data;
  if (lua_isnoneornil(L, index))
    return otherwise;
  if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_lua_read_cdata(L, S, index, &data);
    if (data.kind == CGL_LUA_CDATA_NUMBER)
      return data.number;
    if (data.kind == CGL_LUA_CDATA_INT)
      return (double)data.i;
    if (data.kind == CGL_LUA_CDATA_UINT)
      return (double)data.u;
  } else if (lua_type(L, index) == LUA_TNUMBER)
    return lua_tonumber(L, index);
  cgl_lua_bad(L, S, index, "%s must be a number, got %s", what,
              luaL_typename(L, index));
  return 0;
}


/* b:uniform and b:normal: two numbers, 0 and 1 unless they are given. */
static int buffer_fill_real(lua_State *L, const char *operation,
                            const char *first, const char *second,
                            cgl_status (*fill)(cgl_buffer *, cgl_generator *,
                                               cgl_stream *, double, double)) {
  cgl_lua *S = cgl_lua_issue(L, operation);
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  int at;
  cgl_generator *generator = generator_read(L, S, &at);
  double a = number_read(L, S, at, first, 0),
         b = number_read(L, S, at + 1, second, 1);
  cgl_lua_done(L, S, fill(buffer, generator, cgl_lua_stream(L, S), a, b));
  lua_settop(L, 1);
  return 1;
}


/* b:uniform([gen,] [low, high]) */
static int buffer_uniform(lua_State *L) {
  return buffer_fill_real(L, "buffer:uniform", "the lower bound",
                          "the upper bound", cgl_buffer_uniform);
}


/* b:normal([gen,] [mean, std]) */
static int buffer_normal(lua_State *L) {
  return buffer_fill_real(L, "buffer:normal", "the mean",
                          "the standard deviation", cgl_buffer_normal);
}


/* A bound; a 64-bit FFI integer may be past 2^53. */
static __int128 bound_read(lua_State *L, cgl_lua *S, int index,
                           const char *what) {
  if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_lua_cdata data;
    cgl_lua_read_cdata(L, S, index, &data);
    if (data.kind == CGL_LUA_CDATA_INT)
      return data.i;
    if (data.kind == CGL_LUA_CDATA_UINT)
      return data.u;
  }
  return cgl_lua_read_integer(L, S, index, what, -CGL_LUA_MAX_WHOLE,
                              CGL_LUA_MAX_WHOLE);
}


/* The number of values from 0 to the type's largest; 0: 2^64. */
static uint64_t type_value_count(cgl_type type) {
  switch (type) {
  case CGL_TYPE_bool:
    return 2;
  case CGL_TYPE_uint64:
    return 0;
  case CGL_TYPE_int8:
  case CGL_TYPE_int16:
  case CGL_TYPE_int32:
  case CGL_TYPE_int64:
    return UINT64_C(1) << (8 * cgl_type_bytes(type) - 1);
  default:
    return UINT64_C(1) << (8 * cgl_type_bytes(type));
  }
}


/* b:random([gen,] [[low,] high]): whole numbers from low to below high */
static int buffer_random(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:random");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  int at;
  cgl_generator *generator = generator_read(L, S, &at);
  int64_t low = 0;
  uint64_t count = 0;
  cgl_type type = cgl_buffer_type(buffer);
  if (lua_isnoneornil(L, at) && lua_isnoneornil(L, at + 1)) {
    if (cgl_type_bytes(type) < 8 || type == CGL_TYPE_int64)
      count = type_value_count(type);
  } else {
    bool pair = !lua_isnoneornil(L, at + 1);
    __int128 first = pair ? bound_read(L, S, at, "the lower bound") : 0;
    __int128 end = bound_read(L, S, at + pair, "the upper bound");
    if (first > INT64_MAX)
      return cgl_lua_bad(L, S, at, "the lower bound must be below 2^63");
    if (end <= first)
      return cgl_lua_bad(L, S, at + pair,
                         "the upper bound, which is not drawn itself, must be "
                         "above the lower one");
    low = (int64_t)first;
    count = (uint64_t)(end - first);
  }
  cgl_lua_done(
      L, S,
      cgl_buffer_random(buffer, generator, cgl_lua_stream(L, S), low, count));
  lua_settop(L, 1);
  return 1;
}


const luaL_Reg cgl_lua_buffer_random_methods[] = {
    {"uniform", buffer_uniform},
    {"normal", buffer_normal},
    {"random", buffer_random},
    {NULL, NULL},
};
