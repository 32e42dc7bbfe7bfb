/* Checked readers.  Lua's own take 1.5, "12" and NaN for a size without an
   error; these say what was expected, the range and what came. */
#include "lua/values/values.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compile/base/base.h"


void cgl_lua_number_text(double x, char text[CGL_LUA_NUMBER_ROOM]) {
  if (isnan(x))
    x = NAN; /* its sign says nothing */
  cgl_format_number(text, CGL_LUA_NUMBER_ROOM, x);
}


bool cgl_lua_read_number(lua_State *L, cgl_lua *S, int index, cgl_arg *x) {
  const int type = lua_type(L, index);
  if (type == CGL_LUA_TCDATA) {
    cgl_lua_read_cdata(L, S, index, x);
  } else if (type == LUA_TNUMBER) {
    x->kind = CGL_ARG_NUMBER;
    x->number = lua_tonumber(L, index);
  } else {
    return false;
  }
  return x->kind == CGL_ARG_NUMBER || x->kind == CGL_ARG_INT ||
         x->kind == CGL_ARG_UINT;
}


const char *cgl_lua_value_text(lua_State *L, cgl_lua *S, int index,
                               char text[CGL_LUA_VALUE_ROOM]) {
  cgl_arg x;
  if (cgl_lua_read_number(L, S, index, &x)) {
    if (x.kind == CGL_ARG_NUMBER)
      cgl_lua_number_text(x.number, text);
    else if (x.kind == CGL_ARG_INT)
      snprintf(text, CGL_LUA_VALUE_ROOM, "%lld", (long long)x.i);
    else
      snprintf(text, CGL_LUA_VALUE_ROOM, "%llu", (unsigned long long)x.u);
    return text;
  }
  switch (lua_type(L, index)) {
  case LUA_TSTRING:
    snprintf(text, CGL_LUA_VALUE_ROOM, "\"%.50s\"", lua_tostring(L, index));
    break;
  case LUA_TBOOLEAN:
    return lua_toboolean(L, index) ? "true" : "false";
  case LUA_TNONE:
  case LUA_TNIL:
    return "nil";
  default:
    snprintf(text, CGL_LUA_VALUE_ROOM, "a %s", cgl_lua_typename(L, index));
  }
  return text;
}


const char *cgl_lua_list_text(const char *const *names,
                              char text[CGL_LUA_LIST_ROOM]) {
  size_t used = 0;
  *text = '\0';
  for (; *names && used < CGL_LUA_LIST_ROOM; names++)
    used += (size_t)snprintf(text + used, CGL_LUA_LIST_ROOM - used, "%s%s",
                             used ? ", " : "", *names);
  return text;
}


bool cgl_lua_read_whole(lua_State *L, cgl_lua *S, int index, int64_t min,
                        int64_t max, int64_t *whole) {
  cgl_arg x;
  if (!cgl_lua_read_number(L, S, index, &x))
    return false;
  if (x.kind == CGL_ARG_NUMBER) {
    if (!(x.number >= (double)min && x.number <= (double)max))
      return false;
    *whole = (int64_t)x.number;
    return (double)*whole == x.number;
  }
  *whole = x.i;
  return *whole >= min && *whole <= max &&
         (x.kind == CGL_ARG_INT || x.u <= INT64_MAX);
}


int64_t cgl_lua_read_integer(lua_State *L, cgl_lua *S, int index,
                             const char *what, int64_t min, int64_t max) {
  int64_t whole = 0;
  char text[CGL_LUA_VALUE_ROOM];
  if (!cgl_lua_read_whole(L, S, index, min, max, &whole))
    cgl_lua_bad(L, S, index,
                "%s must be a whole number from %lld to %lld, got %s", what,
                (long long)min, (long long)max,
                cgl_lua_value_text(L, S, index, text));
  return whole;
}


double cgl_lua_read_real(lua_State *L, cgl_lua *S, int index,
                         const char *what) {
  cgl_arg x;
  if (!cgl_lua_read_number(L, S, index, &x))
    cgl_lua_bad(L, S, index, "%s must be a number, got %s", what,
                luaL_typename(L, index));
  return x.kind == CGL_ARG_NUMBER ? x.number
         : x.kind == CGL_ARG_INT  ? (double)x.i
                                  : (double)x.u;
}


const char *cgl_lua_read_string(lua_State *L, cgl_lua *S, int index,
                                const char *what, size_t *bytes) {
  char text[CGL_LUA_VALUE_ROOM];
  if (lua_type(L, index) != LUA_TSTRING)
    cgl_lua_bad(L, S, index, "%s must be a string, got %s", what,
                cgl_lua_value_text(L, S, index, text));
  size_t length;
  const char *string = lua_tolstring(L, index, &length);
  if (bytes)
    *bytes = length;
  else if (strlen(string) != length)
    cgl_lua_bad(L, S, index, "%s has a zero byte at %d", what,
                (int)strlen(string) + 1);
  return string;
}


/* Every cdata has a __call, which most refuse only when they are called. */
bool cgl_lua_read_callable(lua_State *L, int index) {
  if (lua_isfunction(L, index))
    return true;
  if (lua_type(L, index) == CGL_LUA_TCDATA || cgl_lua_box_at(L, index) ||
      !luaL_getmetafield(L, index, "__call"))
    return false;
  lua_pop(L, 1);
  return true;
}


void cgl_lua_read_function(lua_State *L, cgl_lua *S, int index) {
  if (cgl_lua_read_callable(L, index))
    return;
  char text[CGL_LUA_VALUE_ROOM];
  cgl_lua_bad(L, S, index, "function expected, got %s",
              cgl_lua_value_text(L, S, index, text));
}


bool cgl_lua_read_boolean(lua_State *L, cgl_lua *S, int index, const char *what,
                          bool otherwise) {
  char text[CGL_LUA_VALUE_ROOM];
  if (lua_isnoneornil(L, index))
    return otherwise;
  if (!lua_isboolean(L, index))
    cgl_lua_bad(L, S, index, "%s must be true or false, got %s", what,
                cgl_lua_value_text(L, S, index, text));
  return lua_toboolean(L, index);
}


int cgl_lua_read_choice(lua_State *L, cgl_lua *S, int index, const char *what,
                        const char *const *names) {
  if (lua_type(L, index) == LUA_TSTRING)
    for (int i = 0; names[i]; i++)
      if (!strcmp(names[i], lua_tostring(L, index)))
        return i;
  char list[CGL_LUA_LIST_ROOM], text[CGL_LUA_VALUE_ROOM];
  char guess[CGL_LUA_GUESS_ROOM];
  return cgl_lua_bad(L, S, index, "%s must be one of %s, got %s%s", what,
                     cgl_lua_list_text(names, list),
                     cgl_lua_value_text(L, S, index, text),
                     cgl_lua_guess_of(L, index, names, guess));
}


cgl_type cgl_lua_read_type(lua_State *L, cgl_lua *S, int index) {
  static const char *const types[] = {
#define X(name, bytes, number, lanes) #name,
      CGL_TYPES(X)
#undef X
          NULL};
  /* Lua keeps equal strings at the same address. */
  const void *text = lua_topointer(L, index);
  if (text == S->type_texts[S->last_type])
    return S->last_type;
  for (int type = 0; text && type < CGL_TYPE_COUNT; type++)
    if (S->type_texts[type] == text)
      return S->last_type = (cgl_type)type;
  return (cgl_type)cgl_lua_read_choice(L, S, index, "the element type", types);
}


uint64_t cgl_lua_read_address(lua_State *L, cgl_lua *S, int index) {
  cgl_lua_limits_refuse(L, S, "an address is not taken");
  if (lua_type(L, index) == LUA_TLIGHTUSERDATA)
    return (uint64_t)(uintptr_t)lua_touserdata(L, index);
  if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_arg data;
    cgl_lua_read_cdata(L, S, index, &data);
    if (data.kind == CGL_ARG_ADDRESS)
      return data.address;
    if (data.kind == CGL_ARG_UINT)
      return data.u;
  }
  return (uint64_t)cgl_lua_read_integer(L, S, index, "an address", 0,
                                        CGL_LUA_MAX_WHOLE);
}
