#include "lua/base/names.h"

#include <stdio.h>
#include <string.h>

enum {
  LONGEST = 40,    /* names are shorter */
  MANY_CHANGES = 3 /* more letters make another word */
};


static int letter_lower(char c) {
  return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}


static int least_of(int a, int b, int c) {
  int least = a < b ? a : b;
  return least < c ? least : c;
}


/* How many letters to insert, leave out, replace or exchange with the next. */
static int name_distance(const char *a, const char *b) {
  int rows[3][LONGEST + 1];
  int *former = rows[0], *last = rows[1], *row = rows[2];
  for (int j = 0; b[j]; j++)
    last[j + 1] = j + 1;
  last[0] = 0;
  for (int i = 0; a[i]; i++) {
    row[0] = i + 1;
    for (int j = 0; b[j]; j++) {
      int same = letter_lower(a[i]) == letter_lower(b[j]);
      row[j + 1] = least_of(row[j] + 1, last[j + 1] + 1, last[j] + !same);
      if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j] &&
          former[j - 1] + 1 < row[j + 1])
        row[j + 1] = former[j - 1] + 1;
    }
    int *next = former;
    former = last;
    last = row;
    row = next;
  }
  return last[strlen(b)];
}


void cgl_lua_guess_try(cgl_lua_guess *guess, const char *candidate) {
  size_t n = strlen(guess->name);
  if (n > LONGEST || strlen(candidate) > LONGEST)
    return;
  int distance = name_distance(guess->name, candidate);
  int most = n < MANY_CHANGES * 3 ? (int)(n + 1) / 3 : MANY_CHANGES;
  if (distance > most || (guess->nearest && distance >= guess->distance))
    return;
  guess->nearest = candidate;
  guess->distance = distance;
}


void cgl_lua_guess_try_keys(lua_State *L, cgl_lua_guess *guess, int index) {
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
    if (lua_type(L, -2) == LUA_TSTRING)
      cgl_lua_guess_try(guess, lua_tostring(L, -2));
}


const char *cgl_lua_guess_text(const cgl_lua_guess *guess,
                               char text[CGL_LUA_GUESS_ROOM]) {
  *text = '\0';
  if (guess->nearest)
    snprintf(text, CGL_LUA_GUESS_ROOM, "; did you mean '%s'?", guess->nearest);
  return text;
}


const char *cgl_lua_guess_of(lua_State *L, int index, const char *const *names,
                             char text[CGL_LUA_GUESS_ROOM]) {
  cgl_lua_guess guess = {.name = ""};
  if (lua_type(L, index) == LUA_TSTRING)
    guess.name = lua_tostring(L, index);
  for (; *names; names++)
    cgl_lua_guess_try(&guess, *names);
  return cgl_lua_guess_text(&guess, text);
}


int cgl_lua_nearest(lua_State *L) {
  char text[CGL_LUA_GUESS_ROOM];
  cgl_lua_guess guess = {.name = luaL_checkstring(L, 1)};
  luaL_checktype(L, 2, LUA_TTABLE);
  cgl_lua_guess_try_keys(L, &guess, 2);
  lua_pushstring(L, cgl_lua_guess_text(&guess, text));
  return 1;
}
