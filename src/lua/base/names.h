/* What a script may have meant by a name that is not there.
   Of the names that there are, the nearest counts, when few letters have to be
   changed for it; upper and lower case do not count. */
#ifndef CGL_LUA_NAMES_H
#define CGL_LUA_NAMES_H

#include "lua/base/base.h"

enum { CGL_LUA_GUESS_ROOM = 64 };

/* Begins with {name}; `nearest` is borrowed, and NULL until a name is near. */
typedef struct cgl_lua_guess {
  const char *name;
  const char *nearest;
  int distance; /* of `nearest` */
} cgl_lua_guess;

/* Compares with one of the names that there are. */
void cgl_lua_guess_try(cgl_lua_guess *guess, const char *candidate);
/* Compares with the string keys of the table at `index`. */
void cgl_lua_guess_try_keys(lua_State *L, cgl_lua_guess *guess, int index);
/* "; did you mean 'NAME'?", or "" when no name is near. */
const char *cgl_lua_guess_text(const cgl_lua_guess *guess,
                               char text[CGL_LUA_GUESS_ROOM]);
/* The same of the string at `index` (any other value: "") and a list that ends
   with NULL. */
const char *cgl_lua_guess_of(lua_State *L, int index, const char *const *names,
                             char text[CGL_LUA_GUESS_ROOM]);
/* nearest(name, names): the same text, of the string keys of a table. */
int cgl_lua_nearest(lua_State *L);

#endif
