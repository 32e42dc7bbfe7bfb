/* A graph's hooks, and the handles of hooks and endings.
   Idea: the functions live in the environment of the graph's userdata; the
   core gets hooks that carry only a number and find the function there.  Such
   a hook runs only within a call that the script itself made
   (cgl_lua_graph_call): an engine that replays the graph from its own threads
   never enters the script. */
#include "lua/graph/graph.h"

enum {
  STACK_ROOM = 10,
  MAX_DEPTH = 100 /* of hooks within hooks */
};

/* Method name, point; g:register_<name>_hook(fn). */
#define HOOKS(X)                            \
  X(capture_start, CGL_HOOK_CAPTURE_START)  \
  X(capture_end, CGL_HOOK_CAPTURE_END)      \
  X(post_instantiate, CGL_HOOK_INSTANTIATE) \
  X(replay_start, CGL_HOOK_REPLAY_START)    \
  X(replay_end, CGL_HOOK_REPLAY_END)

/* The innermost call of this thread in which hooks may run. */
static CGL_THREAD_LOCAL cgl_lua_graph_call *calling;


void cgl_lua_graph_call_begin(lua_State *L, cgl_lua *S,
                              cgl_lua_graph_call *call, cgl_graph *graph,
                              cgl_stream *stream) {
  *call = (cgl_lua_graph_call){.outer = calling,
                               .L = L,
                               .S = S,
                               .graph = graph,
                               .stream = stream,
                               .depth = calling ? calling->depth + 1 : 1};
  cgl_graph_retain(graph);
  calling = call;
}


void cgl_lua_graph_call_end(cgl_lua_graph_call *call, cgl_status status) {
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


/* Runs in the place of a hook that is nested too deep for the C stack. */
static int hook_too_deep(lua_State *L) {
  return luaL_error(L, "hooks call each other more than %d deep", MAX_DEPTH);
}


/* Called by the core; leaves the first error value on the stack. */
static cgl_status hook_run(void *user, cgl_graph *graph) {
  cgl_lua_graph_call *call = calling;
  if (!call || call->graph != graph)
    return CGL_OK;
  lua_State *L = call->L;
  int top = lua_gettop(L);
  if (!lua_checkstack(L, STACK_ROOM))
    return CGL_ERROR_NO_MEMORY;
  lua_getfenv(L, 1);
  lua_rawgeti(L, -1, (int)(intptr_t)user);
  lua_remove(L, -2);
  if (!lua_isfunction(L, -1)) { /* another state's */
    lua_settop(L, top);
    return CGL_OK;
  }
  lua_pushvalue(L, 1);
  if (call->depth > MAX_DEPTH) {
    lua_pushcfunction(L, hook_too_deep);
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


/* Pushes the handle of a hook (id: the core's) or an ending (id: 0). */
static int handle_push(lua_State *L, cgl_lua *S, int slot, uint64_t id) {
  lua_createtable(L, 1, 2);
  lua_pushvalue(L, 1);
  lua_rawseti(L, -2, 1);
  cgl_lua_set_number(L, "slot", slot);
  cgl_lua_set_number(L, "id", (double)id);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->handle_ref);
  lua_setmetatable(L, -2);
  return 1;
}


static int hook_add(lua_State *L, const char *operation, cgl_hook_point point) {
  cgl_lua *S = cgl_lua_enter(L, operation);
  lua_settop(L, 2);
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_lua_read_function(L, S, 2);
  cgl_lua_graph_push_environment(L);
  int slot = cgl_lua_graph_next_slot();
  lua_pushvalue(L, 2);
  lua_rawseti(L, 3, slot);
  uint64_t id;
  cgl_status status =
      cgl_graph_add_hook(graph, point, hook_run, (void *)(intptr_t)slot, &id);
  if (status) {
    lua_pushnil(L);
    lua_rawseti(L, 3, slot);
  }
  cgl_lua_done(L, S, status);
  return handle_push(L, S, slot, id);
}


#define X(name, point)                                          \
  static int graph_register_##name##_hook(lua_State *L) {       \
    return hook_add(L, "graph:register_" #name "_hook", point); \
  }
HOOKS(X)
#undef X


/* g:register_destroy_callback(fn [, synchronize]) */
static int graph_register_destroy_callback(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:register_destroy_callback");
  cgl_lua_check_graph(L, S, 1);
  cgl_lua_read_function(L, S, 2);
  return handle_push(L, S, cgl_lua_graph_add_ending(L, S, true), 0);
}


/* g:retain_object(value [, synchronize]) */
static int graph_retain_object(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:retain_object");
  cgl_lua_check_graph(L, S, 1);
  if (lua_isnoneornil(L, 2))
    return cgl_lua_bad(L, S, 2, "a value to keep expected, got %s",
                       luaL_typename(L, 2));
  return handle_push(L, S, cgl_lua_graph_add_ending(L, S, false), 0);
}


/* A number of the handle at 1. */
static double handle_number(lua_State *L, const char *name) {
  lua_pushstring(L, name);
  lua_rawget(L, 1);
  const double number = lua_tonumber(L, -1);
  lua_pop(L, 1);
  return number;
}


/* hook:remove() */
static int hook_remove(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "hook:remove");
  lua_settop(L, 1);
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->handle_ref);
  if (!lua_istable(L, 1) || !lua_getmetatable(L, 1) || !lua_rawequal(L, 2, 3))
    return cgl_lua_bad(L, S, 1, "cgraphlua.hook expected, got %s",
                       luaL_typename(L, 1));
  lua_rawgeti(L, 1, 1);
  lua_replace(L, 2);
  lua_settop(L, 2);
  cgl_graph *graph = cgl_lua_peek(L, 2, CGL_LUA_graph);
  bool removed = false;
  if (graph) {
    int slot = (int)handle_number(L, "slot");
    uint64_t id = (uint64_t)handle_number(L, "id");
    lua_getfenv(L, 2);
    if (id) {
      removed = cgl_graph_remove_hook(graph, id);
      lua_pushnil(L);
      lua_rawseti(L, -2, slot);
    } else {
      removed = cgl_lua_graph_remove_ending(L, slot);
    }
  }
  lua_pushboolean(L, removed);
  return 1;
}


/* Called for names that a handle does not have; upvalue 2: its methods. */
static int hook_unknown(lua_State *L) {
  lua_settop(L, 2);
  lua_pushvalue(L, lua_upvalueindex(2));
  return cgl_lua_unknown(L, cgl_lua_enter(L, "hook"), "hook", NULL, 3);
}


/* Handles are weak: a handle does not keep its graph. */
void cgl_lua_graph_open_hooks(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {{"remove", hook_remove}, {NULL, NULL}};
  lua_createtable(L, 0, 3);
  cgl_lua_set_text(L, "__mode", "v");
  cgl_lua_set_text(L, "__metatable", "cgraphlua.hook");
  lua_newtable(L);
  cgl_lua_functions(L, methods);
  lua_createtable(L, 0, 1);
  lua_pushvalue(L, 1);
  lua_pushvalue(L, -3);
  lua_pushcclosure(L, hook_unknown, 2);
  lua_setfield(L, -2, "__index");
  lua_setmetatable(L, -2);
  lua_setfield(L, -2, "__index");
  S->handle_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}


const luaL_Reg cgl_lua_graph_hook_methods[] = {
#define X(name, point) \
  {"register_" #name "_hook", graph_register_##name##_hook},
    HOOKS(X)
#undef X
        {"register_destroy_callback", graph_register_destroy_callback},
    {"retain_object", graph_retain_object},
    {NULL, NULL},
};
