/* Changes of the nodes of a captured graph.  A call that changes numbers only
   makes no Lua object and looks up no line: scripts may make it before every
   replay. */
#include "lua/graph/graph.h"

#include <string.h>


/* The graph at 1, and the index of the node that is named at 2. */
static cgl_graph *node_read(lua_State *L, cgl_lua *S, size_t *node) {
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  *node =
      (size_t)cgl_lua_read_integer(L, S, 2, "the node", 1, CGL_LUA_MAX_WHOLE) -
      1;
  return graph;
}


/* Reads the value on top of the stack as argument `key`. */
static void arg_read(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                     double key, cgl_arg *args) {
  int n = (int)cgl_kernel_param_count(kernel);
  int number = key >= 1 && key <= n ? (int)key : 0;
  if (!number || number != key)
    cgl_lua_bad(L, S, 3, "%s has %d parameters, and there is a key %.14g",
                cgl_kernel_name(kernel), n, key);
  if (args[number - 1].kind != CGL_ARG_SAME)
    cgl_lua_bad(L, S, 3,
                "argument %d of %s is given twice, by its number and "
                "by its name",
                number, cgl_kernel_name(kernel));
  cgl_lua_read_arg(L, S, kernel, lua_gettop(L), number, &args[number - 1]);
}


static const char *const launch_keys[] = {"grid", "block", "shared", NULL};


/* The number of the parameter that the key below the top names; 0: the key is
   one of the launch's. */
static int name_read(lua_State *L, cgl_lua *S, const cgl_kernel *kernel) {
  char text[CGL_LUA_VALUE_ROOM], list[CGL_LUA_GUESS_ROOM];
  const bool word = lua_type(L, -2) == LUA_TSTRING;
  const char *key = word ? lua_tostring(L, -2) : "";
  cgl_lua_guess guess = {key, NULL, 0};
  cgl_param_info info = {.name = ""};
  const int n = (int)cgl_kernel_param_count(kernel);
  for (int i = 0; word && launch_keys[i]; i++) {
    if (!strcmp(launch_keys[i], key))
      return 0;
    cgl_lua_guess_try(&guess, launch_keys[i]);
  }
  for (int i = 0; word && i < n; i++) {
    cgl_lua_done(L, S, cgl_kernel_param(kernel, (size_t)i, &info));
    if (*info.name && !strcmp(info.name, key))
      return i + 1;
    if (*info.name)
      cgl_lua_guess_try(&guess, info.name);
  }
  return cgl_lua_bad(
      L, S, 3, "%s has no parameter %s%s; other keys are grid, block, shared%s",
      cgl_kernel_name(kernel), cgl_lua_value_text(L, S, -2, text),
      n && !*info.name ? ": it comes from a ready image, which names none, so "
                         "parameters go by number"
                       : "",
      cgl_lua_guess_text(&guess, list));
}


/* Reads the arguments in the table at 3; true when it has other keys, too. */
static bool args_read(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                      cgl_arg *args) {
  size_t n = cgl_kernel_param_count(kernel);
  bool more = false;
  S->blame = 3;
  for (size_t i = 0; i < n; i++)
    args[i].kind = CGL_ARG_SAME;
  luaL_checkstack(L, (int)n + LUA_MINSTACK, "too many parameters");
  for (lua_pushnil(L); lua_next(L, 3); lua_pop(L, 1)) {
    const double key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2)
                                                      : name_read(L, S, kernel);
    if (!key && lua_type(L, -2) != LUA_TNUMBER) {
      more = true;
      continue;
    }
    const bool list = lua_istable(L, -1);
    arg_read(L, S, kernel, key, args);
    if (list) { /* the bytes in its place stay, below the key */
      lua_pushvalue(L, -1);
      lua_insert(L, -3);
    }
  }
  S->blame = 0;
  return more;
}


static void sizes_read(lua_State *L, cgl_lua *S, const char *name,
                       uint32_t sizes[3]) {
  static const char *const none[] = {NULL};
  if (!cgl_lua_option(L, S, 3, name))
    return;
  S->blame = 3;
  cgl_lua_read_sizes(L, S, lua_gettop(L), name, sizes, NULL, none);
  S->blame = 0;
  lua_pop(L, 1);
}


/* What the launch of the node becomes: grid, block and shared of the table at
   3, where they are there. */
static void launch_read(lua_State *L, cgl_lua *S, cgl_graph *graph, size_t node,
                        cgl_launch *launch) {
  cgl_node_info info;
  cgl_lua_done(L, S, cgl_graph_node(graph, node, &info));
  memcpy(launch->grid, info.grid, sizeof launch->grid);
  memcpy(launch->block, info.block, sizeof launch->block);
  launch->shared_bytes = (uint32_t)cgl_lua_option_integer(
      L, S, 3, "shared", 0, UINT32_MAX, info.shared_bytes);
  sizes_read(L, S, "grid", launch->grid);
  sizes_read(L, S, "block", launch->block);
}


static void node_set_kernel(lua_State *L, cgl_lua *S, cgl_graph *graph,
                            size_t node, const cgl_kernel *kernel) {
  cgl_arg args[CGL_LUA_MAX_ARGS];
  cgl_launch launch;
  bool relaunch = args_read(L, S, kernel, args);
  if (relaunch)
    launch_read(L, S, graph, node, &launch);
  cgl_lua_done(L, S,
               cgl_graph_set_params(graph, node, relaunch ? &launch : NULL,
                                    args, cgl_kernel_param_count(kernel)));
}


static void node_set_fill(lua_State *L, cgl_lua *S, cgl_graph *graph,
                          size_t node, cgl_type type) {
  static const char *const known[] = {"buffer", "value", NULL};
  cgl_lua_options(L, S, 3, known);
  cgl_buffer *buffer = cgl_lua_option_object(L, S, 3, "buffer", CGL_LUA_buffer);
  char element[CGL_MAX_ELEMENT_BYTES];
  bool changes = cgl_lua_option(L, S, 3, "value");
  S->blame = 3;
  if (changes)
    cgl_lua_read_element(L, S, lua_gettop(L), type, element);
  S->blame = 0;
  cgl_lua_done(
      L, S, cgl_graph_set_fill(graph, node, buffer, changes ? element : NULL));
}


/* A buffer or pinned memory; borrowed from the table at 3. */
static cgl_arg memory_read(lua_State *L, cgl_lua *S, const char *name) {
  cgl_arg arg = {.kind = CGL_ARG_SAME};
  if (!cgl_lua_option(L, S, 3, name))
    return arg;
  bool pinned = cgl_lua_is(L, lua_gettop(L), CGL_LUA_pinned);
  lua_pop(L, 1);
  if (pinned) {
    arg.kind = CGL_ARG_PINNED;
    arg.pinned = cgl_lua_option_object(L, S, 3, name, CGL_LUA_pinned);
  } else {
    arg.kind = CGL_ARG_BUFFER;
    arg.buffer = cgl_lua_option_object(L, S, 3, name, CGL_LUA_buffer);
  }
  return arg;
}


static void node_set_copy(lua_State *L, cgl_lua *S, cgl_graph *graph,
                          size_t node) {
  static const char *const known[] = {"to", "from", NULL};
  cgl_lua_options(L, S, 3, known);
  const cgl_arg to = memory_read(L, S, "to"), from = memory_read(L, S, "from");
  cgl_lua_done(L, S, cgl_graph_set_copy(graph, node, &to, &from));
}


/* g:set_params(node, {[i] = value, name = value, grid =, block =, shared =}) of
   a kernel, {buffer =, value =} of a fill, {to =, from =} of a copy; what is
   not there stays. */
static int graph_set_params(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:set_params");
  cgl_set_site(NULL, 0);
  lua_settop(L, 3);
  size_t node;
  cgl_graph *graph = node_read(L, S, &node);
  if (!lua_istable(L, 3))
    cgl_lua_bad(L, S, 3, "a table of arguments expected, got %s",
                luaL_typename(L, 3));
  cgl_kernel *kernel;
  cgl_node_info info = {.kind = "kernel"};
  cgl_lua_done(L, S, cgl_graph_node_kernel(graph, node, &kernel));
  if (!kernel)
    cgl_lua_done(L, S, cgl_graph_node(graph, node, &info));
  if (kernel)
    node_set_kernel(L, S, graph, node, kernel);
  else if (!strcmp(info.kind, "memset"))
    node_set_fill(L, S, graph, node, info.type);
  else if (!strcmp(info.kind, "memcpy"))
    node_set_copy(L, S, graph, node);
  else /* refused, with what it is */
    cgl_lua_done(L, S, cgl_graph_set_params(graph, node, NULL, NULL, 0));
  return 0;
}


/* g:set_enabled(node, boolean) */
static int graph_set_enabled(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:set_enabled");
  cgl_set_site(NULL, 0);
  lua_settop(L, 3);
  size_t node;
  cgl_graph *graph = node_read(L, S, &node);
  if (!lua_isboolean(L, 3))
    cgl_lua_bad(L, S, 3, "true or false expected, got %s", luaL_typename(L, 3));
  cgl_lua_done(L, S, cgl_graph_set_enabled(graph, node, lua_toboolean(L, 3)));
  return 0;
}


const luaL_Reg cgl_lua_graph_set_methods[] = {
    {"set_params", graph_set_params},
    {"set_enabled", graph_set_enabled},
    {NULL, NULL},
};
