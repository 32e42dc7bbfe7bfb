/* The state of one Lua state: where its script is, its current stream and
   pool, its side streams, its log. */
#define _GNU_SOURCE
#include "lua/binding.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state whose function ran last on this thread: it gets what the core
   logs there.  A worker thread has none, and the state may have ended since
   on another thread: it is looked up among those that are open. */
static __thread cgl_lua *entered;

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_lua *open_states; /* under open_lock, as their messages are */


static bool is_open(const cgl_lua *S) {
  const cgl_lua *open = open_states;
  while (open && open != S)
    open = open->next_open;
  return open;
}


/* The core may hold locks while it logs, so messages wait until its call has
   returned. */
static void take_message(void *user, const char *message) {
  (void)user;
  cgl_lua *S = entered;
  pthread_mutex_lock(&open_lock);
  bool open = S && is_open(S);
  if (open && S->log_ref != LUA_NOREF && S->nmessages < CGL_LUA_MESSAGES) {
    char *copy = strdup(message);
    if (copy)
      S->messages[S->nmessages++] = copy;
  }
  pthread_mutex_unlock(&open_lock);
  if (!open)
    fprintf(stderr, "cgraphlua: %s\n", message);
}


/* Moves the waiting messages to `messages`, which has room for all. */
static int take_over(cgl_lua *S, char **messages) {
  pthread_mutex_lock(&open_lock);
  int n = S->nmessages;
  memcpy(messages, S->messages, sizeof *messages * (size_t)n);
  S->nmessages = 0;
  pthread_mutex_unlock(&open_lock);
  return n;
}


void cgl_lua_deliver(lua_State *L, cgl_lua *S) {
  char *messages[CGL_LUA_MESSAGES];
  int n = take_over(S, messages);
  for (int i = 0; i < n; i++) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, S->log_ref);
    lua_pushstring(L, messages[i]);
    free(messages[i]);
    /* A log that fails is no reason for the call that logged to fail. */
    if (lua_pcall(L, 1, 0, 0)) {
      const char *text = lua_tostring(L, -1);
      fprintf(stderr, "cgraphlua: on_log: %s\n", text ? text : "failed");
      lua_pop(L, 1);
    }
  }
}


void cgl_lua_log(lua_State *L, cgl_lua *S, const char *message) {
  entered = S;
  take_message(NULL, message);
  cgl_lua_deliver(L, S);
}


int cgl_lua_on_log(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "on_log");
  if (!lua_isnoneornil(L, 1))
    cgl_lua_function(L, S, 1);
  lua_settop(L, 1);
  int former = S->log_ref;
  int latter = lua_isnil(L, 1) ? LUA_NOREF : luaL_ref(L, LUA_REGISTRYINDEX);
  pthread_mutex_lock(&open_lock);
  S->log_ref = latter;
  pthread_mutex_unlock(&open_lock);
  luaL_unref(L, LUA_REGISTRYINDEX, former);
  cgl_set_log(take_message, NULL);
  return 0;
}


void cgl_lua_forget(cgl_lua *S) {
  cgl_stream_release(S->stream);
  S->stream = NULL;
  while (S->sides) {
    cgl_lua_side *side = S->sides;
    S->sides = side->next;
    cgl_stream_release(side->stream);
    cgl_stream_release(side->plain);
    cgl_context_release(side->context);
    free(side);
  }
  while (S->defaults) {
    cgl_lua_default *d = S->defaults;
    S->defaults = d->next;
    cgl_generator_release(d->generator);
    free(d);
  }
}


/* lua_close: C frames of open scopes may still be there (os.exit inside one),
   but they will not run again. */
static int close_state(lua_State *L) {
  cgl_lua *S = lua_touserdata(L, 1);
  if (S->closed)
    return 0;
  cgl_lua_settle(L, S);
  S->closed = true;
  pthread_mutex_lock(&open_lock);
  for (cgl_lua **link = &open_states; *link; link = &(*link)->next_open)
    if (*link == S) {
      *link = S->next_open;
      break;
    }
  pthread_mutex_unlock(&open_lock);
  for (cgl_lua_scope *scope = S->scope; scope; scope = scope->outer) {
    cgl_stream_release(scope->stream);
    cgl_pool_release(scope->pool);
  }
  cgl_pool_release(S->pool);
  cgl_lua_forget(S);
  for (int i = 0; i < S->nmessages; i++)
    free(S->messages[i]);
  S->nmessages = 0;
  return 0;
}


cgl_lua *cgl_lua_open(lua_State *L) {
  cgl_lua *S = lua_newuserdata(L, sizeof *S);
  memset(S, 0, sizeof *S);
  S->operation = "require";
  S->ffi_ref = S->log_ref = LUA_NOREF;
  lua_createtable(L, 0, 2);
  lua_pushcfunction(L, close_state);
  lua_setfield(L, -2, "__gc");
  lua_pushliteral(L, "cgraphlua.state");
  lua_setfield(L, -2, "__metatable");
  lua_setmetatable(L, -2);
  if (luaL_loadbuffer(L, "return", 6, "=cgraphlua"))
    lua_error(L);
  S->breath_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  for (int type = 0; type < CGL_TYPE_COUNT; type++) {
    lua_pushstring(L, cgl_type_name((cgl_type)type));
    S->type_texts[type] = lua_topointer(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX); /* for as long as the state lives */
  }
  pthread_mutex_lock(&open_lock);
  S->next_open = open_states;
  open_states = S;
  pthread_mutex_unlock(&open_lock);
  cgl_set_log(take_message, NULL);
  return S;
}


cgl_lua *cgl_lua_enter(lua_State *L, const char *operation) {
  cgl_lua *S = lua_touserdata(L, lua_upvalueindex(1));
  S->operation = operation;
  S->blame = 0;
  entered = S;
  if (S->closed)
    luaL_error(L, "%s: cgraphlua has ended with its Lua state", operation);
  return S;
}


cgl_lua *cgl_lua_issue(lua_State *L, const char *operation) {
  cgl_lua *S = cgl_lua_enter(L, operation);
  cgl_lua_site(L, S);
  return S;
}


void cgl_lua_breathe(lua_State *L, cgl_lua *S) {
  if (!lua_gethook(L))
    return;
  const char *operation = S->operation;
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->breath_ref);
  lua_call(L, 0, 0);
  S->operation = operation;
}


static bool is_hidden(const cgl_lua *S, const char *source) {
  for (int i = 0; i < S->nhidden; i++)
    if (S->hidden[i] == source) /* chunk names are interned */
      return true;
  return false;
}


bool cgl_lua_frame(lua_State *L, const cgl_lua *S, lua_Debug *ar) {
  for (int level = 1; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->currentline >= 0 && !is_hidden(S, ar->source))
      return true;
  }
  return false;
}


/* What a message calls the chunk: the whole file name, not Lua's short one. */
static const char *chunk_file(const lua_Debug *ar) {
  if (*ar->source == '@' || *ar->source == '=')
    return ar->source + 1;
  return ar->short_src;
}


/* Kept in the registry, so that the pointer stays this name's. */
static void note_chunk(lua_State *L, cgl_lua *S, const lua_Debug *ar) {
  unsigned i = S->next_site++ % CGL_LUA_SITES;
  lua_pushstring(L, ar->source);
  if (S->sites[i].source)
    lua_rawseti(L, LUA_REGISTRYINDEX, S->sites[i].ref);
  else
    S->sites[i].ref = luaL_ref(L, LUA_REGISTRYINDEX);
  S->sites[i].source = ar->source;
  S->sites[i].file = cgl_site_file();
}


/* Tells the core the line when the frame's file is known. */
static bool set_known(const cgl_lua *S, const lua_Debug *ar) {
  for (int i = 0; i < CGL_LUA_SITES; i++)
    if (ar->source == S->sites[i].source) {
      cgl_set_site(S->sites[i].file, ar->currentline);
      return true;
    }
  return false;
}


void cgl_lua_site(lua_State *L, cgl_lua *S) {
  lua_Debug ar;
  /* Called by the script itself, from a file that is known. */
  if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sl", &ar) &&
      ar.currentline >= 0 && set_known(S, &ar))
    return;
  if (!cgl_lua_frame(L, S, &ar)) {
    cgl_set_site(NULL, 0);
    return;
  }
  if (set_known(S, &ar))
    return;
  cgl_set_site(chunk_file(&ar), ar.currentline);
  note_chunk(L, S, &ar);
}


void cgl_lua_push_where(lua_State *L, const cgl_lua *S) {
  lua_Debug ar;
  if (cgl_lua_frame(L, S, &ar))
    lua_pushfstring(L, "%s:%d", chunk_file(&ar), ar.currentline);
  else
    lua_pushliteral(L, "");
}


int cgl_lua_hide(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "hide");
  lua_Debug ar;
  if (!lua_getstack(L, 1, &ar))
    return 0;
  lua_getinfo(L, "S", &ar);
  if (is_hidden(S, ar.source))
    return 0;
  if (S->nhidden == CGL_LUA_HIDDEN)
    return luaL_error(L, "hide: more than %d files", CGL_LUA_HIDDEN);
  /* Kept in the registry, so that the pointer stays this name's. */
  lua_pushstring(L, ar.source);
  luaL_ref(L, LUA_REGISTRYINDEX);
  S->hidden[S->nhidden++] = ar.source;
  return 0;
}


void cgl_lua_select(lua_State *L, cgl_lua *S, const char *device) {
  cgl_context *context = NULL;
  cgl_stream *stream = NULL;
  cgl_status status = cgl_context_open(device, &context);
  if (!status)
    status = cgl_stream_default(context, &stream);
  cgl_context_release(context); /* the stream holds it */
  cgl_lua_done(L, S, status);
  cgl_stream_release(S->stream);
  S->stream = stream;
}


cgl_stream *cgl_lua_stream(lua_State *L, cgl_lua *S) {
  if (!S->stream)
    cgl_lua_select(L, S, "");
  return S->stream;
}


cgl_context *cgl_lua_context(lua_State *L, cgl_lua *S) {
  return cgl_stream_context(cgl_lua_stream(L, S));
}


static cgl_lua_side *side_of(lua_State *L, cgl_lua *S, cgl_context *context) {
  for (cgl_lua_side *side = S->sides; side; side = side->next)
    if (side->context == context)
      return side;
  cgl_lua_side *side = calloc(1, sizeof *side);
  if (!side)
    cgl_lua_raise(L, S, CGL_ERROR_NO_MEMORY, "", "no memory for a stream");
  side->context = cgl_context_retain(context);
  side->next = S->sides;
  S->sides = side;
  return side;
}


cgl_stream *cgl_lua_side_stream(lua_State *L, cgl_lua *S,
                                cgl_context *context) {
  cgl_lua_side *side = side_of(L, S, context);
  if (!side->stream)
    cgl_lua_done(L, S, cgl_stream_create(context, 0, &side->stream));
  return side->stream;
}


cgl_stream *cgl_lua_stream_of(lua_State *L, cgl_lua *S, cgl_context *context) {
  cgl_stream *current = cgl_lua_stream(L, S);
  if (cgl_stream_context(current) == context)
    return current;
  cgl_lua_side *side = side_of(L, S, context);
  if (!side->plain)
    cgl_lua_done(L, S, cgl_stream_default(context, &side->plain));
  return side->plain;
}


int cgl_lua_within(lua_State *L, cgl_lua *S, cgl_stream *stream, cgl_pool *pool,
                   int nargs) {
  cgl_lua_scope scope = {S->scope, S->stream, S->pool};
  const char *operation = S->operation;
  stream = stream ? stream : S->stream;
  pool = pool ? pool : S->pool;
  S->stream = stream ? cgl_stream_retain(stream) : NULL;
  S->pool = pool ? cgl_pool_retain(pool) : NULL;
  S->scope = &scope;
  int status = lua_pcall(L, nargs, LUA_MULTRET, 0);
  S->scope = scope.outer;
  cgl_stream_release(S->stream);
  cgl_pool_release(S->pool);
  S->stream = scope.stream;
  S->pool = scope.pool;
  S->operation = operation;
  entered = S;
  return status;
}
