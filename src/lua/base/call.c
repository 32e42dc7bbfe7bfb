#include "lua/base/call.h"
#include "lua/base/limits.h"

CGL_THREAD_LOCAL cgl_lua *cgl_lua_entered;


cgl_lua *cgl_lua_issue(lua_State *L, const char *operation) {
  cgl_lua *S = cgl_lua_enter(L, operation);
  cgl_lua_site(L, S);
  if (S->limits)
    cgl_lua_limits_issue(L, S);
  return S;
}


void cgl_lua_run_debug_hook(lua_State *L, cgl_lua *S) {
  cgl_lua_limits_check_time(L, S);
  if (!lua_gethook(L))
    return;
  const char *operation = S->operation;
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->empty_ref);
  lua_call(L, 0, 0);
  S->operation = operation;
}


static bool chunk_is_hidden(const cgl_lua *S, const char *source) {
  for (int i = 0; i < S->nhidden; i++)
    if (S->hidden[i] == source) /* chunk names are interned */
      return true;
  return false;
}


bool cgl_lua_frame(lua_State *L, const cgl_lua *S, lua_Debug *ar) {
  for (int level = 1; lua_getstack(L, level, ar); level++) {
    lua_getinfo(L, "Sl", ar);
    if (ar->currentline >= 0 && !chunk_is_hidden(S, ar->source))
      return true;
  }
  return false;
}


/* The whole file name, where Lua's short_src may be cut. */
static const char *chunk_file(const lua_Debug *ar) {
  if (*ar->source == '@' || *ar->source == '=')
    return ar->source + 1;
  return ar->short_src;
}


/* Keeps the chunk's name in the registry, so that its address is not reused. */
static void site_note(lua_State *L, cgl_lua *S, const lua_Debug *ar) {
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
static bool site_set_known(const cgl_lua *S, const lua_Debug *ar) {
  for (int i = 0; i < CGL_LUA_SITES; i++)
    if (ar->source == S->sites[i].source) {
      cgl_set_site(S->sites[i].file, ar->currentline);
      return true;
    }
  return false;
}


void cgl_lua_site(lua_State *L, cgl_lua *S) {
  lua_Debug ar;
  /* The fast path: the script itself calls, from a file that is known. */
  if (lua_getstack(L, 1, &ar) && lua_getinfo(L, "Sl", &ar) &&
      ar.currentline >= 0 && site_set_known(S, &ar))
    return;
  if (!cgl_lua_frame(L, S, &ar)) {
    cgl_set_site(NULL, 0);
    return;
  }
  if (site_set_known(S, &ar))
    return;
  cgl_set_site(chunk_file(&ar), ar.currentline);
  site_note(L, S, &ar);
}


const char *cgl_lua_push_where(lua_State *L, const cgl_lua *S) {
  lua_Debug ar;
  if (cgl_lua_frame(L, S, &ar))
    return lua_pushfstring(L, "%s:%d", chunk_file(&ar), ar.currentline);
  lua_pushliteral(L, "");
  return "";
}


int cgl_lua_hide(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "hide");
  lua_Debug ar;
  if (!lua_getstack(L, 1, &ar))
    return 0;
  lua_getinfo(L, "S", &ar);
  if (chunk_is_hidden(S, ar.source))
    return 0;
  if (S->nhidden == CGL_LUA_HIDDEN)
    return luaL_error(L, "hide: more than %d files", CGL_LUA_HIDDEN);
  /* Kept in the registry, so that its address is not reused. */
  lua_pushstring(L, ar.source);
  luaL_ref(L, LUA_REGISTRYINDEX);
  S->hidden[S->nhidden++] = ar.source;
  return 0;
}
