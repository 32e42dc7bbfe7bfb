/* A graph's hooks, destroy callbacks and retained values, for scripts.
   Idea: the functions live in the environment of the graph's userdata, so
   they are collected with it, cycles included; the core gets hooks that carry
   only a number and find the function there.  Such a hook does something only
   within a call that the script itself made (cgl_lua_call): an engine that
   replays the graph from its own threads never enters the script.
   Invariant: what waits for a graph's end is taken out of the environment
   before it is called or dropped, so it happens once; while this state
   captures it is put off, because its work would land in the capture. */
#include "lua/binding.h"

#include <string.h>

enum {
  STACK_ROOM = 10,
  MAX_DEPTH = 100 /* of hooks that call what calls hooks */
};

/* The innermost call of this thread in which hooks may run. */
static __thread cgl_lua_call *calling;


/* ---- hooks ---- */

void cgl_lua_call_begin(lua_State *L, cgl_lua *S, cgl_lua_call *call,
                        cgl_graph *graph, cgl_stream *stream) {
  *call = (cgl_lua_call){.outer = calling,
                         .L = L,
                         .S = S,
                         .graph = graph,
                         .stream = stream,
                         .depth = calling ? calling->depth + 1 : 1};
  cgl_graph_retain(graph);
  calling = call;
}


void cgl_lua_call_end(cgl_lua_call *call, cgl_status status) {
  lua_State *L = call->L;
  calling = call->outer;
  cgl_graph_release(call->graph);
  if (status && call->raised && cgl_last_error()->code == CGL_ERROR_HOOK) {
    lua_settop(L, call->raised);
    lua_error(L);
  }
  if (call->raised)
    lua_settop(L, call->raised - 1);
  cgl_lua_done(L, call->S, status);
}


/* Runs instead of a hook before the C stack is used up. */
static int too_deep(lua_State *L) {
  return luaL_error(L, "hooks call each other more than %d deep", MAX_DEPTH);
}


/* Called by the core; what the function raised stays on the stack. */
static cgl_status run_hook(void *user, cgl_graph *graph) {
  cgl_lua_call *call = calling;
  if (!call || call->graph != graph)
    return CGL_OK;
  lua_State *L = call->L;
  int top = lua_gettop(L);
  if (!lua_checkstack(L, STACK_ROOM))
    return CGL_ERROR_NO_MEMORY;
  lua_getfenv(L, 1);
  lua_rawgeti(L, -1, (int)(intptr_t)user);
  lua_remove(L, -2);
  lua_pushvalue(L, 1);
  if (call->depth > MAX_DEPTH) {
    lua_pushcfunction(L, too_deep);
    lua_replace(L, top + 1);
  }
  if (!cgl_lua_within(L, call->S, call->stream, NULL, 1)) {
    lua_settop(L, top);
    return CGL_OK;
  }
  if (call->raised)
    lua_settop(L, top);
  else
    call->raised = top + 1;
  return CGL_ERROR_HOOK;
}


/* Pushes the environment of the graph at index 1, its own from now on. */
static void push_environment(lua_State *L) {
  cgl_lua_box *box = cgl_lua_box_at(L, 1);
  if (!box->hooked) {
    lua_newtable(L);
    lua_setfenv(L, 1);
    box->hooked = true;
  }
  lua_getfenv(L, 1);
}


/* Pushes the handle of what has number `slot`; id: the core's. */
static int push_handle(lua_State *L, cgl_lua *S, int slot, uint64_t id) {
  lua_createtable(L, 1, 2);
  lua_pushvalue(L, 1);
  lua_rawseti(L, -2, 1);
  cgl_lua_set_number(L, "slot", slot);
  cgl_lua_set_number(L, "id", (double)id);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->handle_ref);
  lua_setmetatable(L, -2);
  return 1;
}


static int add_hook(lua_State *L, const char *operation, cgl_hook_point point) {
  cgl_lua *S = cgl_lua_enter(L, operation);
  lua_settop(L, 2);
  cgl_graph *graph = cgl_lua_check(L, S, 1, CGL_LUA_graph);
  cgl_lua_function(L, S, 2);
  push_environment(L);
  int slot = ++S->last_slot;
  lua_pushvalue(L, 2);
  lua_rawseti(L, 3, slot);
  uint64_t id;
  cgl_status status =
      cgl_graph_add_hook(graph, point, run_hook, (void *)(intptr_t)slot, &id);
  if (status) {
    lua_pushnil(L);
    lua_rawseti(L, 3, slot);
  }
  cgl_lua_done(L, S, status);
  return push_handle(L, S, slot, id);
}


static int on_capture_start(lua_State *L) {
  return add_hook(L, "graph:register_capture_start_hook",
                  CGL_HOOK_CAPTURE_START);
}


static int on_capture_end(lua_State *L) {
  return add_hook(L, "graph:register_capture_end_hook", CGL_HOOK_CAPTURE_END);
}


static int on_instantiate(lua_State *L) {
  return add_hook(L, "graph:register_post_instantiate_hook",
                  CGL_HOOK_INSTANTIATE);
}


static int on_replay_start(lua_State *L) {
  return add_hook(L, "graph:register_replay_start_hook", CGL_HOOK_REPLAY_START);
}


static int on_replay_end(lua_State *L) {
  return add_hook(L, "graph:register_replay_end_hook", CGL_HOOK_REPLAY_END);
}


/* ---- what happens at a graph's end ---- */

/* Appends {slot=, value=, call=, wait=} to the list of what waits. */
static int add_ending(lua_State *L, cgl_lua *S, bool call) {
  lua_settop(L, 3);
  bool wait = cgl_lua_boolean(L, S, 3, "synchronize", false);
  push_environment(L); /* 4 */
  lua_getfield(L, 4, "ends");
  if (lua_isnil(L, 5)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, 5);
    lua_setfield(L, 4, "ends");
  }
  int slot = ++S->last_slot;
  lua_createtable(L, 0, 4);
  cgl_lua_set_number(L, "slot", slot);
  lua_pushvalue(L, 2);
  lua_setfield(L, -2, "value");
  cgl_lua_set_boolean(L, "call", call);
  cgl_lua_set_boolean(L, "wait", wait);
  lua_rawseti(L, 5, (int)lua_objlen(L, 5) + 1);
  return push_handle(L, S, slot, 0);
}


/* g:register_destroy_callback(fn [, synchronize]) */
static int on_destroy(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:register_destroy_callback");
  cgl_lua_check(L, S, 1, CGL_LUA_graph);
  cgl_lua_function(L, S, 2);
  return add_ending(L, S, true);
}


/* g:retain_object(value [, synchronize]) */
static int retain_object(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:retain_object");
  cgl_lua_check(L, S, 1, CGL_LUA_graph);
  if (lua_isnoneornil(L, 2))
    return cgl_lua_bad(L, S, 2, "a value to keep expected, got %s",
                       luaL_typename(L, 2));
  return add_ending(L, S, false);
}


/* Waits for the device called `name`; false when captures do not allow it. */
static bool wait_for(lua_State *L, cgl_lua *S, const char *name) {
  cgl_context *context = NULL;
  cgl_status status = cgl_context_open(name, &context);
  if (!status)
    status = cgl_context_synchronize(context);
  cgl_context_release(context);
  if (status && status != CGL_LUA_CAPTURE_UNDERWAY) {
    lua_pushfstring(L, "graph: before its end: %s", cgl_last_error()->message);
    cgl_lua_log(L, S, lua_tostring(L, -1));
    lua_pop(L, 1);
  }
  return status != CGL_LUA_CAPTURE_UNDERWAY;
}


static bool flag(lua_State *L, const char *name) {
  lua_getfield(L, -1, name);
  bool set = lua_toboolean(L, -1);
  lua_pop(L, 1);
  return set;
}


/* Calls what the list on top has, in order, and empties it; false when the
   rest has to wait for the end of a capture. */
static bool work_off(lua_State *L, cgl_lua *S, const char *device) {
  const int list = lua_gettop(L);
  const int n = (int)lua_objlen(L, list);
  bool waited = false;
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, list, i);
    if (!lua_istable(L, -1)) { /* done before the list was put off */
      lua_pop(L, 1);
      continue;
    }
    if (!waited && flag(L, "wait") && !wait_for(L, S, device)) {
      lua_pop(L, 1);
      return false;
    }
    waited |= flag(L, "wait");
    lua_pushboolean(L, 0);
    lua_rawseti(L, list, i);
    bool call = flag(L, "call");
    lua_getfield(L, -1, "value");
    lua_remove(L, -2);
    if (call && lua_pcall(L, 0, 0, 0)) {
      luaL_callmeta(L, -1, "__tostring");
      const char *text = lua_tostring(L, -1);
      lua_pushfstring(L, "graph: a destroy callback failed: %s",
                      text ? text : luaL_typename(L, -1));
      cgl_lua_log(L, S, lua_tostring(L, -1));
    }
    lua_settop(L, list);
  }
  return true;
}


/* Puts the list on top off: {device=, list=} in the state's own list. */
static void put_off(lua_State *L, cgl_lua *S, const char *device) {
  lua_createtable(L, 0, 2);
  cgl_lua_set_text(L, "device", device);
  lua_pushvalue(L, -2);
  lua_setfield(L, -2, "list");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->ends_ref);
  lua_insert(L, -2);
  lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
  lua_pop(L, 1);
  S->nends++;
}


static bool captures(const cgl_lua *S) {
  return S->stream && cgl_stream_capturing_graph(S->stream);
}


typedef struct burial {
  cgl_lua *S;
  const char *device;
  bool collected;
} burial;


/* 1: the burial, 2: the list */
static int bury(lua_State *L) {
  const burial *b = lua_touserdata(L, 1);
  if ((b->collected && captures(b->S)) || !work_off(L, b->S, b->device))
    put_off(L, b->S, b->device);
  return 0;
}


/* Calls the function with a pointer and what lies above the pointer's place on
   the stack; nothing it meets is raised, and the call underway keeps its
   name. */
static void guarded(lua_State *L, cgl_lua *S) {
  const char *operation = S->operation;
  int blame = S->blame;
  if (lua_pcall(L, 2, 0, 0)) {
    const char *text = lua_tostring(L, -1);
    cgl_lua_log(L, S, text ? text : "graph: no memory at its end");
    lua_pop(L, 1);
  }
  S->operation = operation;
  S->blame = blame;
}


void cgl_lua_bury(lua_State *L, cgl_lua *S, const cgl_graph *graph,
                  bool collected) {
  if (!graph || !cgl_lua_box_at(L, 1)->hooked || !lua_checkstack(L, STACK_ROOM))
    return;
  const cgl_context *context = cgl_graph_context(graph);
  burial b = {S, cgl_context_device(context)->device, collected};
  lua_getfenv(L, 1);
  lua_getfield(L, -1, "ends");
  if (lua_isnil(L, -1)) {
    lua_pop(L, 2);
    return;
  }
  lua_pushnil(L);
  lua_setfield(L, -3, "ends");
  lua_remove(L, -2);
  lua_pushcfunction(L, bury);
  lua_insert(L, -2);
  lua_pushlightuserdata(L, &b);
  lua_insert(L, -2);
  guarded(L, S);
}


/* 1: the state, 2: the lists that were put off */
static int settle(lua_State *L) {
  cgl_lua *S = lua_touserdata(L, 1);
  const int n = (int)lua_objlen(L, 2);
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, 2, i);
    lua_getfield(L, -1, "device");
    lua_getfield(L, -2, "list");
    if (!work_off(L, S, lua_tostring(L, -2)))
      put_off(L, S, lua_tostring(L, -2));
    lua_settop(L, 2);
  }
  return 0;
}


void cgl_lua_settle(lua_State *L, cgl_lua *S) {
  if (!S->nends || captures(S) || !lua_checkstack(L, STACK_ROOM))
    return;
  S->nends = 0;
  lua_pushcfunction(L, settle);
  lua_pushlightuserdata(L, S);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->ends_ref);
  lua_newtable(L);
  lua_rawseti(L, LUA_REGISTRYINDEX, S->ends_ref);
  guarded(L, S);
}


/* ---- handles ---- */

/* Takes the ending with number `slot` out of the list on top. */
static bool remove_ending(lua_State *L, int slot) {
  const int n = lua_istable(L, -1) ? (int)lua_objlen(L, -1) : 0;
  bool found = false;
  for (int i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, i);
    lua_getfield(L, -1, "slot");
    bool same = lua_tointeger(L, -1) == slot;
    lua_pop(L, 2);
    found |= same;
    if (!found)
      continue;
    lua_rawgeti(L, -1, i + 1);
    lua_rawseti(L, -2, i);
  }
  return found;
}


/* handle:remove() */
static int handle_remove(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "hook:remove");
  lua_settop(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->handle_ref);
  if (!lua_istable(L, 1) || !lua_getmetatable(L, 1) || !lua_rawequal(L, 2, 3))
    return cgl_lua_bad(L, S, 1, "cgraphlua.hook expected, got %s",
                       luaL_typename(L, 1));
  lua_rawgeti(L, 1, 1);
  lua_replace(L, 2);
  lua_settop(L, 2);
  const cgl_lua_box *box = cgl_lua_box_at(L, 2);
  bool removed = false;
  if (box && box->object) {
    lua_getfield(L, 1, "id");
    lua_getfield(L, 1, "slot");
    int slot = (int)lua_tointeger(L, -1);
    uint64_t id = (uint64_t)lua_tonumber(L, -2);
    lua_getfenv(L, 2);
    if (id) {
      removed = cgl_graph_remove_hook(box->object, id);
      lua_pushnil(L);
      lua_rawseti(L, -2, slot);
    } else {
      lua_getfield(L, -1, "ends");
      removed = remove_ending(L, slot);
    }
  }
  lua_pushboolean(L, removed);
  return 1;
}


/* A handle does not keep its graph. */
static void open_handles(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {{"remove", handle_remove}, {NULL, NULL}};
  lua_createtable(L, 0, 3);
  cgl_lua_set_text(L, "__mode", "v");
  cgl_lua_set_text(L, "__metatable", "cgraphlua.hook");
  lua_newtable(L);
  cgl_lua_functions(L, methods);
  lua_setfield(L, -2, "__index");
  S->handle_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}


void cgl_lua_open_hooks(lua_State *L, cgl_lua *S) {
  open_handles(L, S);
  lua_newtable(L);
  S->ends_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}


const luaL_Reg cgl_lua_hook_methods[] = {
    {"register_capture_start_hook", on_capture_start},
    {"register_capture_end_hook", on_capture_end},
    {"register_post_instantiate_hook", on_instantiate},
    {"register_replay_start_hook", on_replay_start},
    {"register_replay_end_hook", on_replay_end},
    {"register_destroy_callback", on_destroy},
    {"retain_object", retain_object},
    {NULL, NULL},
};
