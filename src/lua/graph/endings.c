/* What happens at the end of a graph: destroy callbacks and retained values.
   Idea: they live in the environment of the graph's userdata, so they are
   collected with it, cycles included.
   Invariant: an ending is taken out of its list before it runs, so it runs
   once; while this state captures, endings are deferred, because their work
   would land in the capture. */
#include "lua/graph/graph.h"

enum { STACK_ROOM = 10 };


void cgl_lua_graph_push_environment(lua_State *L) {
  cgl_lua_box *box = cgl_lua_box_at(L, 1);
  if (!box->hooked) {
    lua_newtable(L);
    lua_setfenv(L, 1);
    box->hooked = true;
  }
  lua_getfenv(L, 1);
}


/* Of the process, because states may have hooks on one graph. */
int cgl_lua_graph_next_slot(void) {
  static atomic_int last;
  return atomic_fetch_add(&last, 1) + 1;
}


/* Appends {slot=, value=, call=, wait=} to the environment's list. */
int cgl_lua_graph_add_ending(lua_State *L, cgl_lua *S, bool call) {
  lua_settop(L, 3);
  bool wait = cgl_lua_read_boolean(L, S, 3, "synchronize", false);
  cgl_lua_graph_push_environment(L); /* 4 */
  lua_getfield(L, 4, "endings");
  if (lua_isnil(L, 5)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, 5);
    lua_setfield(L, 4, "endings");
  }
  int slot = cgl_lua_graph_next_slot();
  lua_createtable(L, 0, 4);
  cgl_lua_set_number(L, "slot", slot);
  lua_pushvalue(L, 2);
  lua_setfield(L, -2, "value");
  cgl_lua_set_boolean(L, "call", call);
  cgl_lua_set_boolean(L, "wait", wait);
  lua_rawseti(L, 5, (int)lua_objlen(L, 5) + 1);
  return slot;
}


/* The slot of entry i in the list on top: a removed ending leaves its slot. */
static int ending_slot(lua_State *L, int i) {
  lua_rawgeti(L, -1, i);
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "slot");
    lua_remove(L, -2);
  }
  int slot = (int)lua_tointeger(L, -1);
  lua_pop(L, 1);
  return slot;
}


/* Counts one more removed ending in the list on top, of n entries; drops the
   removed when they are more than the others. */
static void endings_count_removed(lua_State *L, int n) {
  lua_getfield(L, -1, "removed");
  int removed = (int)lua_tointeger(L, -1) + 1, kept = 0;
  lua_pop(L, 1);
  for (int i = 1; 2 * removed > n && i <= n; i++) {
    lua_rawgeti(L, -1, i);
    lua_pushnil(L);
    lua_rawseti(L, -3, i);
    if (lua_istable(L, -1))
      lua_rawseti(L, -2, ++kept);
    else
      lua_pop(L, 1);
  }
  cgl_lua_set_number(L, "removed", 2 * removed > n ? 0 : removed);
}


bool cgl_lua_graph_remove_ending(lua_State *L, int slot) {
  lua_getfield(L, -1, "endings");
  const int n = lua_istable(L, -1) ? (int)lua_objlen(L, -1) : 0;
  int low = 1, high = n + 1;
  while (low < high) { /* slots ascend */
    int middle = (low + high) / 2;
    if (ending_slot(L, middle) < slot)
      low = middle + 1;
    else
      high = middle;
  }
  bool found = false;
  if (low <= n && ending_slot(L, low) == slot) {
    lua_rawgeti(L, -1, low);
    found = lua_istable(L, -1);
    lua_pop(L, 1);
  }
  if (found) {
    lua_pushinteger(L, slot);
    lua_rawseti(L, -2, low);
    endings_count_removed(L, n);
  }
  lua_pop(L, 1);
  return found;
}


/* Waits for the device called `name`; false when captures do not allow it. */
static bool device_wait(lua_State *L, cgl_lua *S, const char *name) {
  cgl_status status = cgl_lua_synchronize(name);
  if (status && status != CGL_LUA_CAPTURE_UNDERWAY) {
    lua_pushfstring(L, "graph: before its end: %s", cgl_last_error()->message);
    cgl_lua_log(L, S, CGL_LOG_ERROR, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  return status != CGL_LUA_CAPTURE_UNDERWAY;
}


static bool ending_flag(lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  bool set = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return set;
}


/* Runs the list of endings on top, in order, and empties it; false when the
   rest has to wait for the end of a capture. */
static bool endings_run(lua_State *L, cgl_lua *S, const char *device) {
  const int list = lua_gettop(L);
  const int n = (int)lua_objlen(L, list);
  bool waited = false;
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, list, i);
    if (!lua_istable(L, -1)) { /* run before the list was deferred */
      lua_pop(L, 1);
      continue;
    }
    if (!waited && ending_flag(L, "wait") && !device_wait(L, S, device)) {
      lua_pop(L, 1);
      return false;
    }
    waited |= ending_flag(L, "wait");
    lua_pushboolean(L, 0);
    lua_rawseti(L, list, i);
    bool call = ending_flag(L, "call");
    lua_getfield(L, -1, "value");
    lua_remove(L, -2);
    if (call && lua_pcall(L, 0, 0, 0)) {
      luaL_callmeta(L, -1, "__tostring");
      const char *text = lua_tostring(L, -1);
      lua_pushfstring(L, "graph: a destroy callback failed: %s",
                      text ? text : luaL_typename(L, -1));
      cgl_lua_log(L, S, CGL_LOG_ERROR, lua_tostring(L, -1));
    }
    lua_settop(L, list);
  }
  return true;
}


/* Appends {device=, list=} to the state's list, for the list on top. */
static void endings_defer(lua_State *L, cgl_lua *S, const char *device) {
  lua_createtable(L, 0, 2);
  cgl_lua_set_text(L, "device", device);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "list");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->endings_ref);
  lua_insert(L, -2);
  lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
  lua_pop(L, 1);
  S->nendings++;
}


/* The deferred endings, too, are the parent's. */
static bool state_is_forked(const cgl_lua *S) {
  return S->devices && cgl_context_is_forked(S->devices->context);
}


static bool state_is_capturing(const cgl_lua *S) {
  return S->stream && cgl_stream_capturing_graph(S->stream);
}


typedef struct endings_call {
  cgl_lua *S;
  const char *device;
  bool collected;
} endings_call;


/* 1: the endings_call, 2: the list */
static int endings_run_or_defer(lua_State *L) {
  const endings_call *call = lua_touserdata(L, 1);
  if ((call->collected && state_is_capturing(call->S)) ||
      !endings_run(L, call->S, call->device))
    endings_defer(L, call->S, call->device);
  return 0;
}


/* Calls the function below its two arguments; an error is logged, and the call
   underway keeps its name. */
static void call_guarded(lua_State *L, cgl_lua *S) {
  const char *operation = S->operation;
  int blame = S->blame;
  if (lua_pcall(L, 2, 0, 0)) {
    const char *text = lua_tostring(L, -1);
    cgl_lua_log(L, S, CGL_LOG_ERROR,
                text ? text : "graph: no memory at its end");
    lua_pop(L, 1);
  }
  S->operation = operation;
  S->blame = blame;
}


void cgl_lua_graph_run_endings(lua_State *L, cgl_lua *S, const cgl_graph *graph,
                               bool collected) {
  if (!graph || !cgl_lua_box_at(L, 1)->hooked || !lua_checkstack(L, STACK_ROOM))
    return;
  const cgl_context *context = cgl_graph_context(graph);
  if (cgl_context_is_forked(context)) /* the graph's end is the parent's */
    return;
  endings_call call = {S, cgl_context_device(context)->device, collected};
  lua_getfenv(L, 1);
  lua_getfield(L, -1, "endings");
  if (lua_isnil(L, -1)) {
    lua_pop(L, 2);
    return;
  }
  lua_pushnil(L);
  lua_setfield(L, -3, "endings");
  lua_remove(L, -2);
  lua_pushcfunction(L, endings_run_or_defer);
  lua_insert(L, -2);
  lua_pushlightuserdata(L, &call);
  lua_insert(L, -2);
  call_guarded(L, S);
}


/* 1: the state, 2: the deferred lists */
static int endings_run_deferred(lua_State *L) {
  cgl_lua *S = lua_touserdata(L, 1);
  const int n = (int)lua_objlen(L, 2);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 2, i);
    lua_getfield(L, -1, "device");
    lua_getfield(L, -2, "list");
    if (!endings_run(L, S, lua_tostring(L, -2)))
      endings_defer(L, S, lua_tostring(L, -2));
    lua_settop(L, 2);
  }
  return 0;
}


void cgl_lua_graph_run_deferred(lua_State *L, cgl_lua *S) {
  if (!S->nendings || state_is_forked(S) || state_is_capturing(S) ||
      !lua_checkstack(L, STACK_ROOM))
    return;
  S->nendings = 0;
  lua_pushcfunction(L, endings_run_deferred);
  lua_pushlightuserdata(L, S);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->endings_ref);
  lua_newtable(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, S->endings_ref);
  call_guarded(L, S);
}


void cgl_lua_graph_open_endings(lua_State *L, cgl_lua *S) {
  lua_newtable(L);
  S->endings_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}
