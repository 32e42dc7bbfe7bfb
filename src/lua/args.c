/* Checked readers.  Lua's own take 1.5, "12" and NaN for a size without a
   word; these say what was expected, the range and what came. */
#include "lua/binding.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_ROOM = 256, VALUE_ROOM = 64 };


void cgl_lua_number_text(double x, char text[CGL_LUA_NUMBER_ROOM]) {
  if (isnan(x))
    x = NAN; /* its sign says nothing */
  snprintf(text, CGL_LUA_NUMBER_ROOM, "%.14g", x);
  if (strtod(text, NULL) != x)
    snprintf(text, CGL_LUA_NUMBER_ROOM, "%.17g", x);
}


static const char *show_cdata(lua_State *L, cgl_lua *S, int index,
                              char text[VALUE_ROOM]) {
  cgl_lua_cdata data;
  cgl_lua_cdata_read(L, S, index, &data);
  if (data.kind == CGL_LUA_CDATA_INT)
    snprintf(text, VALUE_ROOM, "%lld", (long long)data.i);
  else if (data.kind == CGL_LUA_CDATA_UINT)
    snprintf(text, VALUE_ROOM, "%llu", (unsigned long long)data.u);
  else if (data.kind == CGL_LUA_CDATA_NUMBER)
    cgl_lua_number_text(data.number, text);
  else
    return "a cdata";
  return text;
}


/* Shows a value in a message. */
static const char *show(lua_State *L, cgl_lua *S, int index,
                        char text[VALUE_ROOM]) {
  switch (lua_type(L, index)) {
  case LUA_TNUMBER:
    cgl_lua_number_text(lua_tonumber(L, index), text);
    break;
  case LUA_TSTRING:
    snprintf(text, VALUE_ROOM, "\"%.50s\"", lua_tostring(L, index));
    break;
  case LUA_TBOOLEAN:
    return lua_toboolean(L, index) ? "true" : "false";
  case LUA_TNONE:
  case LUA_TNIL:
    return "nil";
  case CGL_LUA_TCDATA:
    return show_cdata(L, S, index, text);
  default:
    snprintf(text, VALUE_ROOM, "a %s", cgl_lua_typename(L, index));
  }
  return text;
}


/* Joins a NULL-terminated list for a message. */
static const char *join(const char *const *names, char text[LIST_ROOM]) {
  size_t used = 0;
  *text = '\0';
  for (; *names && used < LIST_ROOM; names++)
    used += (size_t)snprintf(text + used, LIST_ROOM - used, "%s%s",
                             used ? ", " : "", *names);
  return text;
}


/* A 64-bit FFI integer, or another FFI number, in [min, max]. */
static bool read_whole_cdata(lua_State *L, cgl_lua *S, int index, int64_t min,
                             int64_t max, int64_t *whole) {
  cgl_lua_cdata data;
  cgl_lua_cdata_read(L, S, index, &data);
  switch (data.kind) {
  case CGL_LUA_CDATA_INT:
    *whole = data.i;
    break;
  case CGL_LUA_CDATA_UINT:
    if (data.u > INT64_MAX)
      return false;
    *whole = (int64_t)data.u;
    break;
  case CGL_LUA_CDATA_NUMBER:
    if (!(data.number >= (double)min && data.number <= (double)max))
      return false;
    *whole = (int64_t)data.number;
    return (double)*whole == data.number;
  default:
    return false;
  }
  return *whole >= min && *whole <= max;
}


/* A whole number in [min, max], both at most 2^53 away from 0. */
static bool read_whole(lua_State *L, cgl_lua *S, int index, int64_t min,
                       int64_t max, int64_t *whole) {
  int type = lua_type(L, index);
  if (type == CGL_LUA_TCDATA)
    return read_whole_cdata(L, S, index, min, max, whole);
  if (type != LUA_TNUMBER)
    return false;
  double x = lua_tonumber(L, index);
  if (!(x >= (double)min && x <= (double)max))
    return false;
  *whole = (int64_t)x;
  return (double)*whole == x;
}


int64_t cgl_lua_integer(lua_State *L, cgl_lua *S, int index, const char *what,
                        int64_t min, int64_t max) {
  int64_t whole = 0;
  char text[VALUE_ROOM];
  if (!read_whole(L, S, index, min, max, &whole))
    cgl_lua_bad(L, S, index,
                "%s must be a whole number from %lld to %lld, got %s", what,
                (long long)min, (long long)max, show(L, S, index, text));
  return whole;
}


const char *cgl_lua_string(lua_State *L, cgl_lua *S, int index,
                           const char *what, size_t *bytes) {
  char text[VALUE_ROOM];
  if (lua_type(L, index) != LUA_TSTRING)
    cgl_lua_bad(L, S, index, "%s must be a string, got %s", what,
                show(L, S, index, text));
  size_t length;
  const char *string = lua_tolstring(L, index, &length);
  if (bytes)
    *bytes = length;
  else if (strlen(string) != length)
    cgl_lua_bad(L, S, index, "%s has a zero byte at %d", what,
                (int)strlen(string) + 1);
  return string;
}


void cgl_lua_function(lua_State *L, cgl_lua *S, int index) {
  if (lua_isfunction(L, index))
    return;
  if (luaL_getmetafield(L, index, "__call")) {
    lua_pop(L, 1);
    return;
  }
  char text[VALUE_ROOM];
  cgl_lua_bad(L, S, index, "function expected, got %s",
              show(L, S, index, text));
}


bool cgl_lua_boolean(lua_State *L, cgl_lua *S, int index, const char *what,
                     bool otherwise) {
  char text[VALUE_ROOM];
  if (lua_isnoneornil(L, index))
    return otherwise;
  if (!lua_isboolean(L, index))
    cgl_lua_bad(L, S, index, "%s must be true or false, got %s", what,
                show(L, S, index, text));
  return lua_toboolean(L, index);
}


int cgl_lua_choice(lua_State *L, cgl_lua *S, int index, const char *what,
                   const char *const *names) {
  if (lua_type(L, index) == LUA_TSTRING)
    for (int i = 0; names[i]; i++)
      if (!strcmp(names[i], lua_tostring(L, index)))
        return i;
  char list[LIST_ROOM], text[VALUE_ROOM];
  return cgl_lua_bad(L, S, index, "%s must be one of %s, got %s", what,
                     join(names, list), show(L, S, index, text));
}


cgl_type cgl_lua_type_name(lua_State *L, cgl_lua *S, int index) {
  static const char *const types[] = {
#define X(name, bytes) #name,
      CGL_TYPES(X)
#undef X
          NULL};
  /* Equal strings of Lua are one. */
  const void *text = lua_topointer(L, index);
  if (text == S->type_texts[S->last_type])
    return S->last_type;
  for (int type = 0; text && type < CGL_TYPE_COUNT; type++)
    if (S->type_texts[type] == text)
      return S->last_type = (cgl_type)type;
  return (cgl_type)cgl_lua_choice(L, S, index, "the element type", types);
}


size_t cgl_lua_shape(lua_State *L, cgl_lua *S, int index, size_t *extents,
                     int *ndims) {
  *ndims = 1;
  int type = lua_type(L, index);
  double x = type == LUA_TNUMBER ? lua_tonumber(L, index) : -1;
  if (x >= 0 && x <= (double)INT32_MAX && x == (double)(int32_t)x)
    return extents[0] = (size_t)x; /* nearly always */
  if (type != LUA_TTABLE)
    return extents[0] = (size_t)cgl_lua_integer(
               L, S, index, "the number of elements", 0, CGL_LUA_MAX_WHOLE);
  size_t n = lua_objlen(L, index), count = 1;
  if (n < 1 || n > CGL_MAX_DIMS)
    cgl_lua_bad(L, S, index, "a shape has 1 to %d extents, got %d",
                CGL_MAX_DIMS, (int)n);
  for (size_t i = 0; i < n; i++) {
    int64_t extent = 0;
    char text[VALUE_ROOM];
    lua_rawgeti(L, index, (int)i + 1);
    if (!read_whole(L, S, -1, 0, CGL_LUA_MAX_WHOLE, &extent))
      cgl_lua_bad(L, S, index,
                  "extent %d of the shape must be a whole number from 0 to "
                  "%lld, got %s",
                  (int)i + 1, (long long)CGL_LUA_MAX_WHOLE,
                  show(L, S, -1, text));
    lua_pop(L, 1);
    if (__builtin_mul_overflow(count, (size_t)extent, &count) ||
        count > (size_t)CGL_LUA_MAX_WHOLE)
      cgl_lua_bad(L, S, index, "a shape of more than 2^53 elements");
    extents[i] = (size_t)extent;
  }
  *ndims = (int)n;
  return count;
}


/* Is the key at `index` one of `known`? */
static bool is_known(lua_State *L, int index, const char *const *known) {
  if (lua_type(L, index) == LUA_TSTRING)
    for (; *known; known++)
      if (!strcmp(*known, lua_tostring(L, index)))
        return true;
  return false;
}


static void unknown_key(lua_State *L, cgl_lua *S, int index,
                        const char *const *known) {
  char list[LIST_ROOM], text[VALUE_ROOM];
  if (*known)
    cgl_lua_bad(L, S, index, "unknown option %s; the options are %s",
                show(L, S, -1, text), join(known, list));
  cgl_lua_bad(L, S, index, "unknown option %s; there are no options",
              show(L, S, -1, text));
}


/* {x, y, z} with what is in `known` beside them, in one pass. */
static void read_sizes(lua_State *L, cgl_lua *S, int index, const char *what,
                       uint32_t sizes[3], const char *const *known) {
  bool given = false;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
    int i = key == 1 || key == 2 || key == 3 ? (int)key - 1 : -1;
    int64_t size = 0;
    char text[VALUE_ROOM];
    if (i >= 0 && !cgl_lua_size(L, -1, &sizes[i])) {
      if (!read_whole(L, S, -1, 1, UINT32_MAX, &size))
        cgl_lua_bad(L, S, index,
                    "%s.%c must be a whole number from 1 to %u, got %s", what,
                    "xyz"[i], UINT32_MAX, show(L, S, -1, text));
      sizes[i] = (uint32_t)size;
    }
    lua_pop(L, 1);
    if (i < 0 && !is_known(L, -1, known))
      unknown_key(L, S, index, known);
    given |= i == 0;
  }
  if (!given)
    cgl_lua_bad(L, S, index,
                "%s.x must be a whole number from 1 to %u, got nil", what,
                UINT32_MAX);
}


void cgl_lua_sizes(lua_State *L, cgl_lua *S, int index, const char *what,
                   uint32_t sizes[3], const char *const *known) {
  sizes[0] = sizes[1] = sizes[2] = 1;
  int type = lua_type(L, index);
  if (type == LUA_TTABLE) {
    read_sizes(L, S, index, what, sizes, known);
    return;
  }
  char text[VALUE_ROOM];
  if (type != LUA_TNUMBER && type != CGL_LUA_TCDATA)
    cgl_lua_bad(L, S, index, "%s must be a number or {x, y, z}, got %s", what,
                show(L, S, index, text));
  sizes[0] = (uint32_t)cgl_lua_integer(L, S, index, what, 1, UINT32_MAX);
}


bool cgl_lua_options(lua_State *L, cgl_lua *S, int index,
                     const char *const *known) {
  if (lua_isnoneornil(L, index))
    return false;
  char list[LIST_ROOM], text[VALUE_ROOM];
  if (!lua_istable(L, index))
    cgl_lua_bad(L, S, index, "a table of options (%s) expected, got %s",
                join(known, list), show(L, S, index, text));
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    if (!is_known(L, -1, known))
      unknown_key(L, S, index, known);
  }
  return true;
}


bool cgl_lua_option(lua_State *L, int index, const char *name) {
  if (!lua_istable(L, index))
    return false;
  lua_pushstring(L, name);
  lua_rawget(L, index);
  if (!lua_isnil(L, -1))
    return true;
  lua_pop(L, 1);
  return false;
}


/* Reads one option; what is wrong with it is the table's fault. */
#define READ_OPTION(result, read)       \
  if (cgl_lua_option(L, index, name)) { \
    S->blame = index;                   \
    result = read;                      \
    S->blame = 0;                       \
    lua_pop(L, 1);                      \
  }


bool cgl_lua_option_boolean(lua_State *L, cgl_lua *S, int index,
                            const char *name, bool otherwise) {
  bool value = otherwise;
  READ_OPTION(value, cgl_lua_boolean(L, S, -1, name, otherwise))
  return value;
}


int64_t cgl_lua_option_integer(lua_State *L, cgl_lua *S, int index,
                               const char *name, int64_t min, int64_t max,
                               int64_t otherwise) {
  int64_t value = otherwise;
  READ_OPTION(value, cgl_lua_integer(L, S, -1, name, min, max))
  return value;
}


int cgl_lua_option_choice(lua_State *L, cgl_lua *S, int index, const char *name,
                          const char *const *names, int otherwise) {
  int value = otherwise;
  READ_OPTION(value, cgl_lua_choice(L, S, -1, name, names))
  return value;
}


const char *cgl_lua_option_string(lua_State *L, cgl_lua *S, int index,
                                  const char *name) {
  const char *value = NULL;
  READ_OPTION(value, cgl_lua_string(L, S, -1, name, NULL))
  return value;
}


void *cgl_lua_option_object(lua_State *L, cgl_lua *S, int index,
                            const char *name, cgl_lua_kind kind) {
  void *value = NULL;
  char text[VALUE_ROOM];
  if (cgl_lua_option(L, index, name)) {
    if (!cgl_lua_is(L, -1, kind))
      cgl_lua_bad(L, S, index, "%s: cgraphlua.%s expected, got %s", name,
                  cgl_lua_kind_name(kind), show(L, S, -1, text));
    lua_pop(L, 1);
  }
  READ_OPTION(value, cgl_lua_check(L, S, -1, kind))
  return value;
}


uint64_t cgl_lua_address(lua_State *L, cgl_lua *S, int index) {
  if (lua_type(L, index) == LUA_TLIGHTUSERDATA)
    return (uint64_t)(uintptr_t)lua_touserdata(L, index);
  if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_lua_cdata data;
    cgl_lua_cdata_read(L, S, index, &data);
    if (data.kind == CGL_LUA_CDATA_POINTER)
      return (uint64_t)(uintptr_t)data.address;
    if (data.kind == CGL_LUA_CDATA_UINT)
      return data.u;
  }
  return (uint64_t)cgl_lua_integer(L, S, index, "an address", 0,
                                   CGL_LUA_MAX_WHOLE);
}
