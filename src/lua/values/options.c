/* Tables of options, checked for unknown names. */
#include "lua/values/values.h"

#include <string.h>


/* The bit of a name; others share it.  A call has one option or two of the
   dozen that it asks for, and each question costs a string of Lua. */
static uint64_t name_bit(const char *name) {
  return UINT64_C(1) << ((7 * (unsigned char)name[0] + strlen(name)) & 63);
}


static bool key_is_known(lua_State *L, int index, const char *const *known) {
  if (lua_type(L, index) != LUA_TSTRING)
    return false;
  const char *key = lua_tostring(L, index);
  while (*known && strcmp(*known, key) != 0)
    known++;
  return *known;
}


void cgl_lua_option_check_key(lua_State *L, cgl_lua *S, int index,
                              const char *const *known) {
  if (key_is_known(L, -1, known))
    return;
  char list[CGL_LUA_LIST_ROOM], text[CGL_LUA_VALUE_ROOM];
  char guess[CGL_LUA_GUESS_ROOM];
  if (*known)
    cgl_lua_bad(L, S, index, "unknown option %s; the options are %s%s",
                cgl_lua_value_text(L, S, -1, text),
                cgl_lua_list_text(known, list),
                cgl_lua_guess_of(L, -1, known, guess));
  cgl_lua_bad(L, S, index, "unknown option %s; there are no options",
              cgl_lua_value_text(L, S, -1, text));
}


bool cgl_lua_options(lua_State *L, cgl_lua *S, int index,
                     const char *const *known) {
  if (lua_isnoneornil(L, index))
    return false;
  char list[CGL_LUA_LIST_ROOM], text[CGL_LUA_VALUE_ROOM];
  if (!lua_istable(L, index))
    cgl_lua_bad(L, S, index, "a table of options (%s) expected, got %s",
                cgl_lua_list_text(known, list),
                cgl_lua_value_text(L, S, index, text));
  uint64_t seen = 0;
  lua_pushnil(L);
  while (lua_next(L, index)) {
    lua_pop(L, 1);
    cgl_lua_option_check_key(L, S, index, known);
    seen |= name_bit(lua_tostring(L, -1));
  }
  S->options = index;
  S->options_seen = seen;
  return true;
}


bool cgl_lua_option(lua_State *L, cgl_lua *S, int index, const char *name) {
  if (S->options == index && !(S->options_seen & name_bit(name)))
    return false;
  if (!lua_istable(L, index))
    return false;
  lua_pushstring(L, name);
  lua_rawget(L, index);
  if (!lua_isnil(L, -1))
    return true;
  lua_pop(L, 1);
  return false;
}


/* Reads the option `name` if it is there; errors name the table's argument. */
#define READ_OPTION(result, read)          \
  if (cgl_lua_option(L, S, index, name)) { \
    const int blame = S->blame;            \
    S->blame = blame ? blame : index;      \
    result = read;                         \
    S->blame = blame;                      \
    lua_pop(L, 1);                         \
  }


bool cgl_lua_option_boolean(lua_State *L, cgl_lua *S, int index,
                            const char *name, bool otherwise) {
  bool value = otherwise;
  READ_OPTION(value, cgl_lua_read_boolean(L, S, -1, name, otherwise))
  return value;
}


int64_t cgl_lua_option_integer(lua_State *L, cgl_lua *S, int index,
                               const char *name, int64_t min, int64_t max,
                               int64_t otherwise) {
  int64_t value = otherwise;
  READ_OPTION(value, cgl_lua_read_integer(L, S, -1, name, min, max))
  return value;
}


int cgl_lua_option_choice(lua_State *L, cgl_lua *S, int index, const char *name,
                          const char *const *names, int otherwise) {
  int value = otherwise;
  READ_OPTION(value, cgl_lua_read_choice(L, S, -1, name, names))
  return value;
}


const char *cgl_lua_option_string(lua_State *L, cgl_lua *S, int index,
                                  const char *name) {
  const char *value = NULL;
  READ_OPTION(value, cgl_lua_read_string(L, S, -1, name, NULL))
  return value;
}


void *cgl_lua_option_object(lua_State *L, cgl_lua *S, int index,
                            const char *name, cgl_lua_kind kind) {
  void *value = NULL;
  char text[CGL_LUA_VALUE_ROOM];
  if (cgl_lua_option(L, S, index, name)) {
    if (!cgl_lua_is(L, -1, kind))
      cgl_lua_bad(L, S, index, "%s: cgraphlua.%s expected, got %s", name,
                  cgl_lua_kind_name(kind), cgl_lua_value_text(L, S, -1, text));
    lua_pop(L, 1);
  }
  READ_OPTION(value, cgl_lua_check(L, S, -1, kind))
  return value;
}
