/* The parameters of a graph, by name. */
#include "lua/graph/graph.h"
#include "lua/types/types.h"

#include <string.h>


/* Pushes the uses of the graph as a userdata, and returns them. */
static cgl_graph_param_use *uses_push(lua_State *L, cgl_lua *S,
                                      cgl_graph *graph, size_t *n) {
  cgl_lua_done(L, S, cgl_graph_params_used(graph, NULL, 0, n));
  cgl_graph_param_use *uses = lua_newuserdata(L, *n * sizeof *uses + 1);
  const size_t room = *n;
  cgl_lua_done(L, S, cgl_graph_params_used(graph, uses, room, n));
  return uses;
}


/* Pushes {node =, argument =, body =, follows =, kind =, name =, file =, line
 * =}.
 */
static void use_push(lua_State *L, const cgl_graph_param_use *use) {
  static const char *const extents[] = {"grid.x", "grid.y", "grid.z"};
  lua_createtable(L, 0, 8);
  cgl_lua_set_number(L, "node", (double)use->node + 1);
  if (use->argument < CGL_ARGUMENT_GRID)
    cgl_lua_set_number(L, "argument", (double)use->argument + 1);
  else
    cgl_lua_set_text(L, "argument", extents[use->argument - CGL_ARGUMENT_GRID]);
  cgl_lua_set_boolean(L, "body", use->body);
  cgl_lua_set_boolean(L, "follows", use->follows);
  cgl_lua_set_text(L, "kind", use->kind);
  cgl_lua_set_text(L, "name", use->name);
  cgl_lua_set_text(L, "file", use->file);
  cgl_lua_set_number(L, "line", use->line);
}


/* Pushes the entry of a parameter, without uses. */
static void param_push(lua_State *L, cgl_lua *S, cgl_param *param) {
  lua_createtable(L, 0, 5);
  cgl_param **slot = cgl_lua_new_param(L, S);
  *slot = cgl_param_retain(param);
  lua_setfield(L, -2, "param");
  if (*cgl_param_name(param))
    cgl_lua_set_text(L, "name", cgl_param_name(param));
  cgl_lua_set_text(L, "type", cgl_type_name(cgl_param_type(param)));
  cgl_lua_set_fields(L, &(cgl_lua_fields){.param = param});
  cgl_lua_param_push(L, S, param);
  lua_setfield(L, -2, "value");
  lua_newtable(L);
  lua_setfield(L, -2, "uses");
}


/* g:params(): a list of {param =, name =, type =, value =, follows =, uses =},
   in the order of their first uses */
static int graph_params(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:params");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  size_t n;
  int count = 0;
  const cgl_graph_param_use *uses = uses_push(L, S, graph, &n);
  lua_newtable(L); /* the list */
  lua_newtable(L); /* entries by parameter */
  for (size_t i = 0; i < n; i++) {
    lua_pushlightuserdata(L, uses[i].param);
    lua_rawget(L, -2);
    if (lua_isnil(L, -1)) {
      lua_pop(L, 1);
      param_push(L, S, uses[i].param);
      lua_pushvalue(L, -1);
      lua_rawseti(L, -4, ++count);
      lua_pushlightuserdata(L, uses[i].param);
      lua_pushvalue(L, -2);
      lua_rawset(L, -4);
    }
    if (uses[i].follows)
      cgl_lua_set_boolean(L, "follows", true);
    lua_getfield(L, -1, "uses");
    use_push(L, &uses[i]);
    lua_rawseti(L, -2, (int)lua_objlen(L, -2) + 1);
    lua_pop(L, 2);
  }
  lua_pop(L, 1);
  return 1;
}


/* The parameter that the key below the top names. */
static cgl_param *param_find(lua_State *L, cgl_lua *S, cgl_graph *graph) {
  char text[CGL_LUA_VALUE_ROOM], near[CGL_LUA_GUESS_ROOM];
  cgl_param *param = NULL;
  if (lua_type(L, -2) != LUA_TSTRING)
    cgl_lua_bad(L, S, 2, "names of parameters are strings, got %s",
                cgl_lua_value_text(L, S, -2, text));
  const char *name = lua_tostring(L, -2);
  /* Parameters without a name have an empty one. */
  const cgl_status status = *name && strlen(name) == lua_objlen(L, -2)
                                ? cgl_graph_param(graph, name, &param)
                                : CGL_ERROR_NOT_FOUND;
  if (status != CGL_ERROR_NOT_FOUND) {
    cgl_lua_done(L, S, status);
    return param;
  }
  size_t n;
  const cgl_graph_param_use *uses = uses_push(L, S, graph, &n);
  cgl_lua_guess guess = {name, NULL, 0};
  for (size_t i = 0; i < n; i++)
    cgl_lua_guess_try(&guess, cgl_param_name(uses[i].param));
  cgl_lua_raise(L, S, CGL_ERROR_NOT_FOUND, "graph:params lists them",
                "the graph uses no parameter \"%s\"%s", name,
                cgl_lua_guess_text(&guess, near));
  return NULL;
}


/* g:set{name = value, ...}: all, or none */
static int graph_set(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:set");
  cgl_set_site(NULL, 0);
  lua_settop(L, 2);
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  if (!lua_istable(L, 2))
    cgl_lua_bad(L, S, 2, "a table of values by name expected, got %s",
                cgl_lua_typename(L, 2));
  S->blame = 2;
  for (int set = 0; set < 2; set++)
    for (lua_pushnil(L); lua_next(L, 2); lua_settop(L, 3)) {
      S->blamed = NULL;
      cgl_param *param = param_find(L, S, graph);
      S->blamed = lua_tostring(L, -2);
      cgl_lua_param_read(L, S, lua_gettop(L), param, set);
    }
  S->blame = 0;
  return 0;
}


const luaL_Reg cgl_lua_graph_param_methods[] = {
    {"params", graph_params},
    {"set", graph_set},
    {NULL, NULL},
};
