/* Shapes of buffers, and sizes of grids and blocks. */
#include "lua/values/values.h"


void cgl_lua_read_shape(lua_State *L, cgl_lua *S, int index,
                        cgl_lua_shape *shape) {
  int type = lua_type(L, index);
  double x = type == LUA_TNUMBER ? lua_tonumber(L, index) : -1;
  shape->ndims = 1;
  if (type != LUA_TTABLE) {
    if (x >= 0 && x <= (double)INT32_MAX && x == (double)(int32_t)x)
      shape->count = (size_t)x; /* nearly always */
    else
      shape->count = (size_t)cgl_lua_read_integer(
          L, S, index, "the number of elements", 0, CGL_LUA_MAX_WHOLE);
    shape->extents[0] = shape->count;
    return;
  }
  size_t n = lua_objlen(L, index);
  if (n < 1 || n > CGL_MAX_DIMS)
    cgl_lua_bad(L, S, index, "a shape has 1 to %d extents, got %d",
                CGL_MAX_DIMS, (int)n);
  shape->ndims = (int)n;
  shape->count = 1;
  for (size_t i = 0; i < n; i++) {
    int64_t extent = 0;
    char text[CGL_LUA_VALUE_ROOM];
    lua_rawgeti(L, index, (int)i + 1);
    if (!cgl_lua_read_whole(L, S, -1, 0, CGL_LUA_MAX_WHOLE, &extent))
      cgl_lua_bad(L, S, index,
                  "extent %d of the shape must be a whole number from 0 to "
                  "%lld, got %s",
                  (int)i + 1, (long long)CGL_LUA_MAX_WHOLE,
                  cgl_lua_value_text(L, S, -1, text));
    lua_pop(L, 1);
    shape->extents[i] = (size_t)extent;
    if (__builtin_mul_overflow(shape->count, (size_t)extent, &shape->count) ||
        shape->count > (size_t)CGL_LUA_MAX_WHOLE)
      cgl_lua_bad(L, S, index, "a shape of more than 2^53 elements");
  }
}


/* A parameter, which was not released; NULL: another value. */
static cgl_param *size_read_param(lua_State *L, cgl_lua *S, int index) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  return box && box->tag - cgl_lua_tags == CGL_LUA_param
             ? cgl_lua_check_param(L, S, index)
             : NULL;
}


/* {x, y, z} and options in `known`, in one pass. */
static void sizes_read_table(lua_State *L, cgl_lua *S, int index,
                             const char *what, uint32_t sizes[3],
                             cgl_param *params[3], const char *const *known) {
  bool given = false;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
    int i = key == 1 || key == 2 || key == 3 ? (int)key - 1 : -1;
    int64_t size = 0;
    char text[CGL_LUA_VALUE_ROOM];
    if (i >= 0 && params)
      params[i] = size_read_param(L, S, lua_gettop(L));
    if (i >= 0 && (!params || !params[i]) &&
        !cgl_lua_read_size(L, -1, &sizes[i])) {
      if (!cgl_lua_read_whole(L, S, -1, 1, UINT32_MAX, &size))
        cgl_lua_bad(L, S, index,
                    "%s.%c must be a whole number from 1 to %u, got %s", what,
                    "xyz"[i], UINT32_MAX, cgl_lua_value_text(L, S, -1, text));
      sizes[i] = (uint32_t)size;
    }
    lua_pop(L, 1);
    if (i < 0 && key)
      cgl_lua_bad(L, S, index, "%s takes at most three sizes: x, y and z",
                  what);
    if (i < 0)
      cgl_lua_option_check_key(L, S, index, known);
    given |= i == 0;
  }
  if (!given)
    cgl_lua_bad(L, S, index,
                "%s.x must be a whole number from 1 to %u, got nil", what,
                UINT32_MAX);
}


void cgl_lua_read_sizes(lua_State *L, cgl_lua *S, int index, const char *what,
                        uint32_t sizes[3], cgl_param *params[3],
                        const char *const *known) {
  sizes[0] = sizes[1] = sizes[2] = 1;
  int type = lua_type(L, index);
  if (type == LUA_TTABLE) {
    sizes_read_table(L, S, index, what, sizes, params, known);
    return;
  }
  if (params && (params[0] = size_read_param(L, S, index)))
    return;
  char text[CGL_LUA_VALUE_ROOM];
  if (type != LUA_TNUMBER && type != CGL_LUA_TCDATA)
    cgl_lua_bad(L, S, index, "%s must be a number or {x, y, z}, got %s", what,
                cgl_lua_value_text(L, S, index, text));
  sizes[0] = (uint32_t)cgl_lua_read_integer(L, S, index, what, 1, UINT32_MAX);
}
