#include "lua/base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lua/base/call.h"

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_lua *open_states; /* under open_lock, as their messages are */


static bool state_is_open(const cgl_lua *S) {
  const cgl_lua *open = open_states;
  while (open && open != S)
    open = open->next_open;
  return open;
}


static void message_queue(void *user, const char *message) {
  (void)user;
  cgl_lua *S = cgl_lua_entered;
  pthread_mutex_lock(&open_lock);
  bool open = S && state_is_open(S);
  if (open && S->log_ref != LUA_NOREF && S->nmessages < CGL_LUA_MESSAGES) {
    char *copy = strdup(message);
    if (copy)
      S->messages[S->nmessages++] = copy;
  }
  pthread_mutex_unlock(&open_lock);
  if (!open)
    fprintf(stderr, "cgraphlua: %s\n", message);
}


void cgl_lua_log_attach(cgl_lua *S) {
  pthread_mutex_lock(&open_lock);
  S->next_open = open_states;
  open_states = S;
  pthread_mutex_unlock(&open_lock);
  cgl_set_log(message_queue, NULL);
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
    free(S->messages[--S->nmessages]);
}


void cgl_lua_log_to(lua_State *L, cgl_lua *S) {
  int former = S->log_ref, next = LUA_NOREF;
  if (lua_isnil(L, -1))
    lua_pop(L, 1);
  else
    next = luaL_ref(L, LUA_REGISTRYINDEX);
  pthread_mutex_lock(&open_lock);
  S->log_ref = next;
  pthread_mutex_unlock(&open_lock);
  luaL_unref(L, LUA_REGISTRYINDEX, former);
  cgl_set_log(message_queue, NULL);
}


/* Moves the waiting messages to `messages`, which has room for all. */
static int messages_take(cgl_lua *S, char **messages) {
  pthread_mutex_lock(&open_lock);
  int n = S->nmessages;
  memcpy(messages, S->messages, sizeof *messages * (size_t)n);
  S->nmessages = 0;
  pthread_mutex_unlock(&open_lock);
  return n;
}


void cgl_lua_log_deliver(lua_State *L, cgl_lua *S) {
  char *messages[CGL_LUA_MESSAGES];
  int n = messages_take(S, messages);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->log_ref);
    lua_pushstring(L, messages[i]);
    free(messages[i]);
    /* A failure of on_log's function does not fail the call that logged. */
    if (lua_pcall(L, 1, 0, 0)) {
      const char *text = lua_tostring(L, -1);
      fprintf(stderr, "cgraphlua: on_log: %s\n", text ? text : "failed");
      lua_pop(L, 1);
    }
  }
}


void cgl_lua_log(lua_State *L, cgl_lua *S, const char *message) {
  cgl_lua_entered = S;
  message_queue(NULL, message);
  cgl_lua_log_deliver(L, S);
}
