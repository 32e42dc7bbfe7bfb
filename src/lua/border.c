#include "lua/border.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cgraphlua/lua.h"
#include "core/base/fork.h"
#include "lua/base/current.h"
#include "lua/base/error.h"
#include "lua/base/object.h"
#include "lua/values/values.h"

static const char state_key; /* its address is the key in the registry */


/* ---- from and to C ---- */

cgl_lua *cgl_lua_border_state(lua_State *L) {
  lua_pushlightuserdata(L, (void *)(uintptr_t)&state_key);
  lua_rawget(L, LUA_REGISTRYINDEX);
  cgl_lua *S = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return S;
}


static cgl_lua *state_of(lua_State *L) {
  cgl_lua *S = cgl_lua_border_state(L);
  if (S)
    return S;
  lua_getglobal(L, "require");
  lua_pushliteral(L, "cgraphlua");
  lua_call(L, 1, 0);
  S = cgl_lua_border_state(L);
  if (!S)
    luaL_error(L, "the script has another copy of cgraphlua than its host: "
                  "call cgl_lua_preload before the script requires it");
  return S;
}


/* Adds a reference. */
static void object_keep(cgl_lua_kind kind, void *object) {
  switch (kind) {
#define X(noun)                  \
  case CGL_LUA_##noun:           \
    cgl_##noun##_retain(object); \
    break;
    CGL_LUA_KINDS(X)
#undef X
  case CGL_LUA_KIND_COUNT:
    break;
  }
}


/* Pushes the graph's userdata, if the state has one; else pushes nothing. */
static bool graph_push_known(lua_State *L, const cgl_lua *S, void *graph) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->graphs_ref);
  lua_pushlightuserdata(L, graph);
  lua_rawget(L, -2);
  lua_remove(L, -2);
  if (cgl_lua_peek(L, -1, CGL_LUA_graph) == graph)
    return true;
  lua_pop(L, 1);
  return false;
}


/* Makes the userdata on top, which is `box` and new, that of an object whose
   reference it takes over; or puts the graph's former userdata there. */
static void box_fill(lua_State *L, cgl_lua *S, cgl_lua_box *box,
                     cgl_lua_kind kind, void *object) {
  if (kind == CGL_LUA_graph && graph_push_known(L, S, object)) {
    cgl_lua_limits_discount(S, box);
    lua_remove(L, -2);
    cgl_lua_drop(kind, object);
    return;
  }
  box->object = object;
  box->tag = &cgl_lua_tags[kind];
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->metatable_refs[kind]);
  lua_setmetatable(L, -2);
  if (kind == CGL_LUA_graph)
    cgl_lua_note_graph(L, S, object);
  if (kind == CGL_LUA_stream)
    cgl_lua_note_stream(L, S);
}


/* A restricted state has streams and a pool of its own only, whose failures and
   bytes are its own. */
static void border_check(lua_State *L, const cgl_lua *S, cgl_lua_kind kind) {
  if (S->limits && (kind == CGL_LUA_stream || kind == CGL_LUA_pool))
    luaL_error(L, "restricted: a %s of another state is not taken",
               cgl_lua_kind_name(kind));
}


static void host_push(lua_State *L, cgl_lua_kind kind, void *object) {
  luaL_checkstack(L, LUA_MINSTACK, "cgraphlua");
  if (!object) {
    lua_pushnil(L);
    return;
  }
  cgl_lua *S = state_of(L);
  border_check(L, S, kind);
  cgl_lua_box *box = lua_newuserdata(L, sizeof *box);
  *box = (cgl_lua_box){0};
  object_keep(kind, object);
  box_fill(L, S, box, kind, object);
}


#define X(noun)                                              \
  void cgl_lua_push_##noun(lua_State *L, cgl_##noun *noun) { \
    host_push(L, CGL_LUA_##noun, noun);                      \
  }                                                          \
                                                             \
                                                             \
  cgl_##noun *cgl_lua_to_##noun(lua_State *L, int index) {   \
    return cgl_lua_peek(L, index, CGL_LUA_##noun);           \
  }
CGL_LUA_KINDS(X)
#undef X


/* ---- from state to state ---- */

typedef struct shared {
  struct shared *next;
  uint64_t number; /* random */
  cgl_lua_kind kind;
  void *object; /* owned */
} shared;

static shared *shared_list; /* under the lock */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(shared_lock)

enum { TOKEN_ROOM = 64 };


static void token_write(const shared *entry, char text[TOKEN_ROOM]) {
  snprintf(text, TOKEN_ROOM, "cgraphlua.%s:%016llx",
           cgl_lua_kind_name(entry->kind), (unsigned long long)entry->number);
}


/* cg.share(object): a token with which another state of the process takes the
   object, once */
static int cg_share(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "share");
  const cgl_lua_box *box = cgl_lua_box_at(L, 1);
  if (!box)
    return cgl_lua_bad(L, S, 1, "an object expected, got %s",
                       cgl_lua_typename(L, 1));
  const cgl_lua_kind kind = (cgl_lua_kind)(box->tag - cgl_lua_tags);
  void *object = cgl_lua_check(L, S, 1, kind);
  char text[TOKEN_ROOM];
  shared *entry = malloc(sizeof *entry);
  if (!entry)
    return cgl_lua_raise(L, S, CGL_ERROR_NO_MEMORY, "",
                         "no memory for a token");
  *entry = (shared){.kind = kind, .object = object};
  if (getrandom(&entry->number, sizeof entry->number, 0) !=
      (ssize_t)sizeof entry->number) {
    free(entry);
    return cgl_lua_raise(L, S, CGL_ERROR_SYSTEM, "",
                         "the system gives no random numbers: %s",
                         strerror(errno));
  }
  token_write(entry, text);
  object_keep(kind, object);
  pthread_mutex_lock(&shared_lock);
  entry->next = shared_list;
  shared_list = entry;
  pthread_mutex_unlock(&shared_lock);
  lua_pushstring(L, text);
  return 1;
}


static bool token_is_of(const char *token, cgl_lua_kind kind) {
  const char *name = cgl_lua_kind_name(kind);
  const size_t n = sizeof "cgraphlua." - 1, length = strlen(name);
  return strlen(token) > n + length && !strncmp(token + n, name, length) &&
         token[n + length] == ':';
}


/* Takes the entry with this token out of the list; NULL: there is none. */
static shared *shared_take(const char *token) {
  char text[TOKEN_ROOM];
  pthread_mutex_lock(&shared_lock);
  shared **at = &shared_list;
  for (; *at; at = &(*at)->next) {
    token_write(*at, text);
    if (!strcmp(text, token))
      break;
  }
  shared *entry = *at;
  if (entry)
    *at = entry->next;
  pthread_mutex_unlock(&shared_lock);
  return entry;
}


/* cg.take(token): the object that a state of the process shared */
static int cg_take(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "take");
  const char *token = cgl_lua_read_string(L, S, 1, "the token", NULL);
  for (int kind = 0; kind < CGL_LUA_KIND_COUNT; kind++)
    if (token_is_of(token, (cgl_lua_kind)kind))
      border_check(L, S, (cgl_lua_kind)kind);
  cgl_lua_box *box = lua_newuserdata(L, sizeof *box); /* it may raise */
  *box = (cgl_lua_box){0};
  if (S->limits)
    cgl_lua_limits_count(L, S, box);
  shared *entry = shared_take(token);
  if (!entry)
    cgl_lua_limits_discount(S, box);
  if (!entry)
    return cgl_lua_raise(L, S, CGL_ERROR_INVALID_ARGUMENT,
                         "a token is taken once; share the object again for "
                         "another state",
                         "no object waits under the token '%.60s'", token);
  const shared was = *entry;
  free(entry);
  box_fill(L, S, box, was.kind, was.object);
  return 1;
}


void cgl_lua_open_border(lua_State *L, cgl_lua *S) {
  static const luaL_Reg functions[] = {
      {"share", cg_share}, {"take", cg_take}, {NULL, NULL}};
  cgl_lua_functions(L, functions);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  cgl_lua_set_text(L, "__mode", "v");
  lua_setmetatable(L, -2);
  S->graphs_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_pushlightuserdata(L, (void *)(uintptr_t)&state_key);
  lua_pushvalue(L, 1);
  lua_rawset(L, LUA_REGISTRYINDEX);
}
