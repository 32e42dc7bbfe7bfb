/* Lua values to and from typed elements.
   Numbers are checked against the element type: an integer type takes whole
   numbers of its range, a floating type rounds to nearest even.  64-bit
   integers that a double cannot hold travel as FFI integers, or come in as
   decimal strings. */
#include "core/base/half.h"
#include "lua/values/values.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* Range of an integer type, as doubles; *max is exclusive. */
static void integer_range(cgl_type type, double *min, double *max) {
  bool is_signed = type == CGL_TYPE_int8 || type == CGL_TYPE_int16 ||
                   type == CGL_TYPE_int32 || type == CGL_TYPE_int64;
  int bits = 8 * (int)cgl_type_bytes(type) - is_signed;
  *min = is_signed ? -ldexp(1, bits) : 0;
  *max = ldexp(1, bits);
}


static bool element_store_integer(double x, cgl_type type, void *element,
                                  char reason[CGL_LUA_REASON_ROOM]) {
  double min, max;
  integer_range(type, &min, &max);
  if (!(x >= min && x < max) || x != floor(x)) {
    char number[CGL_LUA_NUMBER_ROOM];
    cgl_lua_number_text(x, number);
    snprintf(reason, CGL_LUA_REASON_ROOM,
             "is %s; %s takes whole numbers from %.0f to %.0Lf", number,
             cgl_type_name(type), min, (long double)max - 1);
    return false;
  }
  if (type == CGL_TYPE_uint64) {
    uint64_t u = (uint64_t)x;
    memcpy(element, &u, sizeof u);
    return true;
  }
  int64_t i = (int64_t)x;
  memcpy(element, &i, cgl_type_bytes(type)); /* little endian */
  return true;
}


static bool element_store_number(double x, cgl_type type, void *element,
                                 char reason[CGL_LUA_REASON_ROOM]) {
  float f = (float)x;
  uint16_t h;
  switch (type) {
  case CGL_TYPE_float:
    memcpy(element, &f, sizeof f);
    return true;
  case CGL_TYPE_double:
    memcpy(element, &x, sizeof x);
    return true;
  case CGL_TYPE_half:
    h = cgl_half_of(x);
    memcpy(element, &h, sizeof h);
    return true;
  case CGL_TYPE_bfloat16:
    h = cgl_bfloat16_of(x);
    memcpy(element, &h, sizeof h);
    return true;
  case CGL_TYPE_bool:
    if (x != 0 && x != 1) {
      char number[CGL_LUA_NUMBER_ROOM];
      cgl_lua_number_text(x, number);
      snprintf(reason, CGL_LUA_REASON_ROOM,
               "is %s; bool takes true, false, 0 and 1", number);
      return false;
    }
    *(uint8_t *)element = x != 0;
    return true;
  default:
    return element_store_integer(x, type, element, reason);
  }
}


/* A 64-bit integer, from an FFI value or a decimal string. */
static bool element_store_int64(cgl_type type, bool is_signed, uint64_t bits,
                                void *element,
                                char reason[CGL_LUA_REASON_ROOM]) {
  bool negative = is_signed && (int64_t)bits < 0;
  if ((type == CGL_TYPE_int64 && (is_signed || bits <= INT64_MAX)) ||
      (type == CGL_TYPE_uint64 && !negative)) {
    memcpy(element, &bits, sizeof bits);
    return true;
  }
  double x = is_signed ? (double)(int64_t)bits : (double)bits;
  return element_store_number(x, type, element, reason);
}


static bool element_store_string(const char *text, cgl_type type, void *element,
                                 char reason[CGL_LUA_REASON_ROOM]) {
  char *end;
  errno = 0;
  uint64_t bits = *text == '-' ? (uint64_t)strtoll(text, &end, 10)
                               : strtoull(text, &end, 10);
  if (type != CGL_TYPE_int64 && type != CGL_TYPE_uint64) {
    snprintf(reason, CGL_LUA_REASON_ROOM, "is a string; %s takes numbers",
             cgl_type_name(type));
    return false;
  }
  if (errno || end == text || *end) {
    snprintf(reason, CGL_LUA_REASON_ROOM, "is \"%.40s\", which is no %s", text,
             cgl_type_name(type));
    return false;
  }
  return element_store_int64(type, *text == '-', bits, element, reason);
}


/* ---- vectors and complex numbers ---- */

size_t cgl_lua_lane_count(lua_State *L, int index) {
  size_t n = lua_objlen(L, index);
  if (n)
    return n;
  lua_pushvalue(L, index);
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1))
    n++;
  lua_pop(L, 1);
  return n;
}


void cgl_lua_lane_push(lua_State *L, int index, int i) {
  static const char *const names[][2] = {
      {"x", "re"}, {"y", "im"}, {"z", NULL}, {"w", NULL}};
  lua_pushvalue(L, index);
  lua_rawgeti(L, -1, i + 1);
  for (int k = 0; k < 2 && lua_isnil(L, -1) && names[i][k]; k++) {
    lua_pop(L, 1);
    lua_pushstring(L, names[i][k]);
    lua_rawget(L, -2);
  }
  lua_remove(L, -2);
}


/* The type is a vector or complex. */
static bool element_read_lanes(lua_State *L, cgl_lua *S, int index,
                               cgl_type type, char *element,
                               char reason[CGL_LUA_REASON_ROOM]) {
  const cgl_type number = cgl_type_number(type);
  const size_t bytes = cgl_type_bytes(number);
  const int lanes = cgl_type_lanes(type);
  const size_t n = cgl_lua_lane_count(L, index);
  if (n != (size_t)lanes) {
    snprintf(reason, CGL_LUA_REASON_ROOM, "has %zu numbers; %s takes %d", n,
             cgl_type_name(type), lanes);
    return false;
  }
  for (int i = 0; i < lanes; i++, element += bytes) {
    cgl_lua_lane_push(L, index, i);
    const bool fits =
        cgl_lua_read_element_if(L, S, lua_gettop(L), number, element, reason);
    lua_pop(L, 1);
    if (!fits) {
      char why[CGL_LUA_REASON_ROOM];
      snprintf(why, sizeof why, "%s", reason);
      snprintf(reason, CGL_LUA_REASON_ROOM, "has a number %d that %.120s",
               i + 1, why);
      return false;
    }
  }
  return true;
}


/* An FFI struct or array, or an FFI complex number, of the element's bytes. */
static bool element_read_bytes(lua_State *L, cgl_lua *S, int index,
                               cgl_type type, void *element,
                               char reason[CGL_LUA_REASON_ROOM]) {
  cgl_arg data;
  cgl_lua_read_cdata(L, S, index, &data);
  const size_t bytes = cgl_type_bytes(type);
  if (data.kind == CGL_ARG_BYTES && data.bytes.size == bytes) {
    memcpy(element, data.bytes.data, bytes);
    return true;
  }
  snprintf(reason, CGL_LUA_REASON_ROOM,
           "is a cdata value of other bytes; %s takes %zu of a struct",
           cgl_type_name(type), bytes);
  return false;
}


static bool type_is_complex(cgl_type type) {
  return type == CGL_TYPE_complex64 || type == CGL_TYPE_complex128;
}


/* What has no number: "nil", "a function value". */
static const char *kind_text(lua_State *L, int type, char text[40]) {
  snprintf(text, 40, "a %s value", lua_typename(L, type));
  return type == LUA_TNONE || type == LUA_TNIL ? "nil" : text;
}


/* The type is a vector or complex. */
static bool element_read_vector(lua_State *L, cgl_lua *S, int index,
                                cgl_type type, char *element,
                                char reason[CGL_LUA_REASON_ROOM]) {
  const cgl_type number = cgl_type_number(type);
  const int t = lua_type(L, index);
  if (t == LUA_TTABLE)
    return element_read_lanes(L, S, index, type, element, reason);
  if (t == CGL_LUA_TCDATA)
    return element_read_bytes(L, S, index, type, element, reason);
  if (t == LUA_TNUMBER && type_is_complex(type)) { /* real */
    memset(element, 0, cgl_type_bytes(type));
    return element_store_number(lua_tonumber(L, index), number, element,
                                reason);
  }
  char text[40];
  snprintf(reason, CGL_LUA_REASON_ROOM, "is %s; %s takes a table of %d numbers",
           kind_text(L, t, text), cgl_type_name(type), cgl_type_lanes(type));
  return false;
}


bool cgl_lua_read_element_if(lua_State *L, cgl_lua *S, int index, cgl_type type,
                             void *element, char reason[CGL_LUA_REASON_ROOM]) {
  int t = lua_type(L, index);
  if (cgl_type_lanes(type) > 1)
    return element_read_vector(L, S, index, type, element, reason);
  if (t == LUA_TNUMBER)
    return element_store_number(lua_tonumber(L, index), type, element, reason);
  if (t == LUA_TBOOLEAN && type == CGL_TYPE_bool) {
    *(uint8_t *)element = (uint8_t)lua_toboolean(L, index);
    return true;
  }
  if (t == LUA_TSTRING)
    return element_store_string(lua_tostring(L, index), type, element, reason);
  cgl_arg x;
  if (cgl_lua_read_number(L, S, index, &x))
    return x.kind == CGL_ARG_NUMBER
               ? element_store_number(x.number, type, element, reason)
               : element_store_int64(type, x.kind == CGL_ARG_INT, x.u, element,
                                     reason);
  char text[40];
  snprintf(reason, CGL_LUA_REASON_ROOM, "is %s; %s takes %s",
           kind_text(L, t, text), cgl_type_name(type),
           type == CGL_TYPE_bool ? "true, false, 0 and 1" : "numbers");
  return false;
}


void cgl_lua_read_element(lua_State *L, cgl_lua *S, int index, cgl_type type,
                          void *element) {
  char reason[CGL_LUA_REASON_ROOM];
  if (!cgl_lua_read_element_if(L, S, index, type, element, reason))
    cgl_lua_bad(L, S, index, "the value %s", reason);
}


/* Whether the table on top is an element: a list of numbers, or {x = 1}. */
static bool list_is_element(lua_State *L) {
  lua_rawgeti(L, -1, 1);
  const bool nested = lua_istable(L, -1) || lua_type(L, -1) == CGL_LUA_TCDATA;
  lua_pop(L, 1);
  return !nested;
}


/* Extents of a list, of its first list, and so on, down to the elements. */
static void list_measure(lua_State *L, cgl_lua *S, int index, cgl_type type,
                         cgl_lua_elements *data) {
  int top = lua_gettop(L);
  const bool tables = cgl_type_lanes(type) > 1;
  data->shape.count = 1;
  lua_pushvalue(L, index);
  while (lua_istable(L, -1) &&
         !(tables && data->shape.ndims && list_is_element(L))) {
    if (data->shape.ndims == CGL_MAX_DIMS)
      cgl_lua_bad(L, S, index, "lists are nested more than %d deep",
                  CGL_MAX_DIMS);
    size_t n = lua_objlen(L, -1);
    data->shape.extents[data->shape.ndims++] = n;
    /* A list may be in another many times over: they take little memory. */
    if (n && data->shape.count > SIZE_MAX / CGL_MAX_ELEMENT_BYTES / n)
      cgl_lua_bad(L, S, index, "the lists have more elements than memory has");
    data->shape.count *= n;
    lua_rawgeti(L, -1, 1);
  }
  lua_settop(L, top);
}


typedef struct list_cursor {
  const cgl_lua_elements *data;
  cgl_type type;
  int argument;   /* stack index, for messages */
  char *to;       /* the next element */
  size_t written; /* elements */
} list_cursor;


/* Stores the list on top of the stack, which is at nesting level `level`. */
static void list_store(lua_State *L, cgl_lua *S, list_cursor *at, int level) {
  size_t n = at->data->shape.extents[level], bytes = cgl_type_bytes(at->type);
  char reason[CGL_LUA_REASON_ROOM];
  bool innermost = level + 1 == at->data->shape.ndims;
  if (!lua_istable(L, -1) || lua_objlen(L, -1) != n)
    cgl_lua_bad(L, S, at->argument,
                "lists at level %d must all have %d elements", level + 1,
                (int)n);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, (int)i);
    if (!innermost) {
      list_store(L, S, at, level + 1);
    } else {
      if (!cgl_lua_read_element_if(L, S, -1, at->type, at->to, reason))
        cgl_lua_bad(L, S, at->argument, "element %lld %s",
                    (long long)at->written + 1, reason);
      at->to += bytes;
      at->written++;
    }
    lua_pop(L, 1);
  }
}


void cgl_lua_read_elements(lua_State *L, cgl_lua *S, int index, cgl_type type,
                           cgl_lua_elements *data) {
  size_t bytes = cgl_type_bytes(type), size = 0;
  memset(data, 0, sizeof *data);
  if (lua_istable(L, index)) {
    list_measure(L, S, index, type, data);
    list_cursor at = {data, type, index, NULL, 0};
    luaL_checkstack(L, CGL_MAX_DIMS + 8, "lists are nested too deep");
    data->bytes = at.to = lua_newuserdata(L, data->shape.count * bytes);
    lua_pushvalue(L, index);
    list_store(L, S, &at, 0);
    lua_pop(L, 1);
    return;
  }
  if (lua_type(L, index) == LUA_TSTRING) {
    data->bytes = lua_tolstring(L, index, &size);
  } else if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_arg c;
    cgl_lua_read_cdata(L, S, index, &c);
    if (c.kind != CGL_ARG_BYTES)
      cgl_lua_bad(L, S, index,
                  "an FFI array expected (a pointer does not know its size; "
                  "give a string, or copy from pinned memory)");
    cgl_lua_cdata_check_type(L, S, index, type);
    data->bytes = c.bytes.data;
    size = c.bytes.size;
  } else {
    cgl_lua_bad(L, S, index, "table, string or FFI array expected, got %s",
                cgl_lua_typename(L, index));
  }
  if (size % bytes)
    cgl_lua_bad(L, S, index, "%lld bytes are no whole number of %s elements",
                (long long)size, cgl_type_name(type));
  data->shape.count = data->shape.extents[0] = size / bytes;
  data->shape.ndims = 1;
}


void cgl_lua_push_element(lua_State *L, cgl_lua *S, cgl_type type,
                          const char *from) {
  const int lanes = cgl_type_lanes(type);
  if (lanes > 1) {
    const cgl_type number = cgl_type_number(type);
    lua_createtable(L, lanes, 0);
    cgl_lua_push_elements(L, S, lua_gettop(L), number, from, (size_t)lanes);
    return;
  }
  switch (type) {
#define NUMBER(type, ctype, value_of) \
  case CGL_TYPE_##type: {             \
    ctype x;                          \
    memcpy(&x, from, sizeof x);       \
    lua_pushnumber(L, value_of(x));   \
    break;                            \
  }
    NUMBER(float, float, )
    NUMBER(double, double, )
    NUMBER(int8, int8_t, )
    NUMBER(uint8, uint8_t, )
    NUMBER(int16, int16_t, )
    NUMBER(uint16, uint16_t, )
    NUMBER(int32, int32_t, )
    NUMBER(uint32, uint32_t, )
    NUMBER(half, uint16_t, cgl_half_value)
    NUMBER(bfloat16, uint16_t, cgl_bfloat16_value)
#undef NUMBER
  case CGL_TYPE_bool:
    lua_pushboolean(L, *from != 0);
    break;
  default: { /* the 64-bit integers */
    uint64_t bits;
    memcpy(&bits, from, sizeof bits);
    cgl_lua_push_int64(L, S, type == CGL_TYPE_int64, bits);
  }
  }
}


void cgl_lua_push_elements(lua_State *L, cgl_lua *S, int index, cgl_type type,
                           const void *bytes, size_t count) {
  const char *from = bytes;
  size_t size = cgl_type_bytes(type);
  for (size_t i = 0; i < count; i++, from += size) {
    cgl_lua_push_element(L, S, type, from);
    lua_rawseti(L, index, (int)(i + 1));
  }
}
