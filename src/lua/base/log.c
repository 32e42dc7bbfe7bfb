#include "lua/base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fork.h"
#include "lua/base/call.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(open_lock)
static cgl_lua *open_states; /* under open_lock, as their messages are */


static bool state_is_open(const cgl_lua *S) {
  const cgl_lua *open = open_states;
  while (open && open != S)
    open = open->next_open;
  return open;
}


/* Under open_lock: keeps the message for the state's function. */
static void message_queue(cgl_lua *S, const char *message,
                          cgl_log_level level) {
  if (S->log_ref == LUA_NOREF || level < S->log_least ||
      S->nmessages == CGL_LUA_MESSAGES)
    return;
  char *copy = strdup(message);
  if (copy) {
    S->messages[S->nmessages].text = copy;
    S->messages[S->nmessages++].level = level;
  }
}


static bool message_take(const char *message, cgl_log_level level, bool last) {
  cgl_lua *S = cgl_lua_entered;
  pthread_mutex_lock(&open_lock);
  bool open = S && state_is_open(S);
  bool own = open && S->log_own;
  if (own)
    message_queue(S, message, level);
  pthread_mutex_unlock(&open_lock);
  if (open && !own && last)
    fprintf(stderr, "cgraphlua: %s\n", message);
  return own || (open && last);
}


void cgl_lua_log_attach(cgl_lua *S) {
  pthread_mutex_lock(&open_lock);
  S->next_open = open_states;
  open_states = S;
  pthread_mutex_unlock(&open_lock);
  cgl_log_serve_scripts(message_take);
}


void cgl_lua_log_detach(cgl_lua *S) {
  pthread_mutex_lock(&open_lock);
  cgl_lua **link = &open_states;
  while (*link && *link != S)
    link = &(*link)->next_open;
  if (*link)
    *link = S->next_open;
  pthread_mutex_unlock(&open_lock);
  while (S->nmessages)
    free(S->messages[--S->nmessages].text);
}


void cgl_lua_log_to(lua_State *L, cgl_lua *S, cgl_log_level least) {
  int former = S->log_ref, next = LUA_NOREF;
  bool own = lua_isnil(L, -1) || lua_toboolean(L, -1);
  if (lua_toboolean(L, -1))
    next = luaL_ref(L, LUA_REGISTRYINDEX);
  else
    lua_pop(L, 1);
  pthread_mutex_lock(&open_lock);
  while (next == LUA_NOREF && S->nmessages)
    free(S->messages[--S->nmessages].text);
  S->log_ref = next;
  S->log_own = own;
  S->log_least = least;
  pthread_mutex_unlock(&open_lock);
  luaL_unref(L, LUA_REGISTRYINDEX, former);
}


void cgl_lua_log_deliver(lua_State *L, cgl_lua *S) {
  struct {
    char *text;
    cgl_log_level level;
  } messages[CGL_LUA_MESSAGES];
  _Static_assert(sizeof messages == sizeof S->messages, "the same entries");
  pthread_mutex_lock(&open_lock);
  const int n = S->nmessages;
  memcpy(messages, S->messages, sizeof messages);
  S->nmessages = 0;
  pthread_mutex_unlock(&open_lock);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->log_ref);
    lua_pushstring(L, messages[i].text);
    lua_pushstring(L, cgl_log_level_name(messages[i].level));
    free(messages[i].text);
    /* A failure of on_log's function does not fail the call that logged. */
    if (lua_pcall(L, 2, 0, 0)) {
      const char *text = lua_tostring(L, -1);
      fprintf(stderr, "cgraphlua: on_log: %s\n", text ? text : "failed");
      lua_pop(L, 1);
    }
  }
}


void cgl_lua_log(lua_State *L, cgl_lua *S, cgl_log_level level,
                 const char *message) {
  cgl_lua_entered = S;
  cgl_log(S->stream ? cgl_stream_context(S->stream) : NULL, level, "%s",
          message);
  cgl_lua_log_deliver(L, S);
}
