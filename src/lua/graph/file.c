/* Graphs in files: g:save, cg.save, cg.load, and the buffers that have names
   there. */
#include "lua/graph/graph.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 16 };


/* ---- saving ---- */

/* How many keys the table has, all of them texts that a file can have; it is
   argument `index`, or an option there. */
static size_t names_count(lua_State *L, cgl_lua *S, int table, int index,
                          const char *what) {
  char text[CGL_LUA_VALUE_ROOM];
  size_t n = 0, length = 0;
  for (lua_pushnil(L); lua_next(L, table); n++) {
    lua_pop(L, 1);
    const char *name =
        lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : NULL;
    if (!name || !length || strlen(name) != length)
      cgl_lua_bad(L, S, index,
                  "%s: the key %s is no name: texts without zero bytes are",
                  what, cgl_lua_value_text(L, S, -1, text));
  }
  return n;
}


static int named_compare(const void *a, const void *b) {
  return strcmp(((const cgl_named_buffer *)a)->name,
                ((const cgl_named_buffer *)b)->name);
}


/* The buffers by name of the table on top, which is of argument `index`; the
   list is a userdata that stays on the stack. */
static cgl_named_buffer *read_buffers(lua_State *L, cgl_lua *S, int index,
                                      const char *what, size_t *n) {
  char text[CGL_LUA_VALUE_ROOM];
  const int table = lua_gettop(L);
  *n = 0;
  if (!lua_istable(L, table))
    cgl_lua_bad(L, S, index, "%s: a table of buffers by name expected, got %s",
                what, cgl_lua_value_text(L, S, table, text));
  const size_t count = names_count(L, S, table, index, what);
  cgl_named_buffer *list = lua_newuserdata(L, (count + 1) * sizeof *list);
  const int blame = S->blame;
  S->blame = blame ? blame : index;
  lua_pushnil(L);
  while (lua_next(L, table)) {
    if (!cgl_lua_is(L, -1, CGL_LUA_buffer))
      cgl_lua_bad(L, S, index, "%s: '%s' is %s, and no buffer", what,
                  lua_tostring(L, -2), cgl_lua_value_text(L, S, -1, text));
    list[*n] =
        (cgl_named_buffer){lua_tostring(L, -2), cgl_lua_check_buffer(L, S, -1)};
    ++*n;
    lua_pop(L, 1);
  }
  S->blame = blame;
  return list;
}


/* The buffers of an option "inputs" or "outputs" of the table at `index`. */
static const cgl_named_buffer *read_named(lua_State *L, cgl_lua *S, int index,
                                          const char *what, size_t *n) {
  *n = 0;
  luaL_checkstack(L, LUA_MINSTACK, "too many graphs");
  if (!cgl_lua_option(L, S, index, what))
    return NULL;
  cgl_named_buffer *list = read_buffers(L, S, index, what, n);
  qsort(list, *n, sizeof *list, named_compare);
  return list;
}


/* What goes for the whole file, from the options at `index`; the list of
   devices is a userdata that stays on the stack. */
static cgl_save_desc read_desc(lua_State *L, cgl_lua *S, int index) {
  static const char *const keeps[] = {"contents", "zero", NULL};
  char text[CGL_LUA_VALUE_ROOM];
  cgl_save_desc desc = {
      .keep = (cgl_save_keep)cgl_lua_option_choice(L, S, index, "keep", keeps,
                                                   CGL_SAVE_CONTENTS),
      .no_sources = !cgl_lua_option_boolean(L, S, index, "sources", true)};
  if (!cgl_lua_option(L, S, index, "devices"))
    return desc;
  const int table = lua_gettop(L);
  const size_t n = lua_istable(L, table) ? lua_objlen(L, table) : 0;
  size_t entries = 0;
  if (lua_istable(L, table))
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1))
      entries++;
  if (!lua_istable(L, table) || n > MOST_DEVICES || entries != n)
    cgl_lua_bad(L, S, index, "devices: a list of up to %d expected, got %s",
                MOST_DEVICES, cgl_lua_value_text(L, S, table, text));
  const char **list = lua_newuserdata(L, (MOST_DEVICES + 1) * sizeof *list);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, table, (int)i + 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      cgl_lua_bad(L, S, index,
                  "devices: \"host\" or \"sm_90\" expected, got %s",
                  cgl_lua_value_text(L, S, -1, text));
    list[i] = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  desc.devices = list;
  desc.ndevices = n;
  return desc;
}


/* The graph on top, or a table of it with its names. */
static cgl_save_graph read_graph(lua_State *L, cgl_lua *S, const char *name) {
  static const char *const known[] = {"graph", "inputs", "outputs", NULL};
  char text[CGL_LUA_VALUE_ROOM];
  const int index = lua_gettop(L);
  cgl_save_graph graph = {.name = name};
  if (cgl_lua_is(L, index, CGL_LUA_graph)) {
    graph.graph = cgl_lua_check_graph(L, S, index);
    return graph;
  }
  if (!lua_istable(L, index))
    cgl_lua_bad(L, S, 2, "'%s' is %s, and no graph", name,
                cgl_lua_value_text(L, S, index, text));
  cgl_lua_options(L, S, index, known);
  graph.graph = cgl_lua_option_object(L, S, index, "graph", CGL_LUA_graph);
  if (!graph.graph)
    cgl_lua_bad(L, S, 2, "'%s' has no graph", name);
  graph.inputs = read_named(L, S, index, "inputs", &graph.ninputs);
  graph.outputs = read_named(L, S, index, "outputs", &graph.noutputs);
  return graph;
}


/* g:save(path [, options]) */
static int graph_save(lua_State *L) {
  static const char *const known[] = {"inputs",  "outputs", "keep",
                                      "devices", "sources", NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph:save");
  lua_settop(L, 3);
  cgl_save_graph graph = {.graph = cgl_lua_check_graph(L, S, 1)};
  const char *path = cgl_lua_read_string(L, S, 2, "the path", NULL);
  cgl_lua_options(L, S, 3, known);
  graph.inputs = read_named(L, S, 3, "inputs", &graph.ninputs);
  graph.outputs = read_named(L, S, 3, "outputs", &graph.noutputs);
  const cgl_save_desc desc = read_desc(L, S, 3);
  cgl_lua_done(L, S, cgl_graph_save(&graph, 1, path, &desc));
  return 0;
}


static int graphs_compare(const void *a, const void *b) {
  return strcmp(((const cgl_save_graph *)a)->name,
                ((const cgl_save_graph *)b)->name);
}


/* cg.save(path, graphs [, options]) */
static int save(lua_State *L) {
  static const char *const known[] = {"keep", "devices", "sources", NULL};
  char text[CGL_LUA_VALUE_ROOM];
  cgl_lua *S = cgl_lua_issue(L, "save");
  lua_settop(L, 3);
  const char *path = cgl_lua_read_string(L, S, 1, "the path", NULL);
  if (!lua_istable(L, 2))
    cgl_lua_bad(L, S, 2, "a table of graphs by name expected, got %s",
                cgl_lua_value_text(L, S, 2, text));
  cgl_lua_options(L, S, 3, known);
  const cgl_save_desc desc = read_desc(L, S, 3);
  size_t n = names_count(L, S, 2, 2, "the graphs");
  cgl_save_graph *graphs = lua_newuserdata(L, (n + 1) * sizeof *graphs);
  lua_newtable(L); /* keeps the lists of buffers */
  const int lists = lua_gettop(L);
  n = 0;
  S->blame = 2;
  lua_pushnil(L);
  while (lua_next(L, 2)) {
    const int value = lua_gettop(L);
    graphs[n++] = read_graph(L, S, lua_tostring(L, value - 1));
    while (lua_gettop(L) > value)
      lua_rawseti(L, lists, (int)lua_objlen(L, lists) + 1);
    lua_pop(L, 1);
  }
  S->blame = 0;
  qsort(graphs, n, sizeof *graphs, graphs_compare);
  cgl_lua_done(L, S, cgl_graph_save(graphs, n, path, &desc));
  return 0;
}


/* ---- loading ---- */

/* cg.load(path): a graph, or a table of them by name.  The userdata are there
   before the graphs, which an error would lose. */
static int load(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "load");
  lua_settop(L, 1);
  const char *path = cgl_lua_read_string(L, S, 1, "the path", NULL);
  cgl_context *context = cgl_lua_context(L, S);
  size_t n = 1, count = 0;
  cgl_graph **graphs = NULL;
  while (count < n) { /* usually there is one */
    lua_settop(L, 1);
    graphs = lua_newuserdata(L, n * sizeof(cgl_graph *));
    lua_createtable(L, 0, (int)n); /* 3: the result */
    lua_createtable(L, (int)n, 0); /* 4: the userdata */
    for (size_t i = 0; i < n; i++) {
      cgl_lua_new_graph(L, S);
      lua_rawseti(L, 4, (int)i + 1);
    }
    const size_t room = n;
    cgl_lua_done(L, S,
                 cgl_graph_load_all(context, path, NULL, graphs, room, &n));
    count = n <= room ? n : 0;
  }
  for (size_t i = 0; i < count; i++) {
    lua_rawgeti(L, 4, (int)i + 1);
    cgl_lua_box_at(L, -1)->object = graphs[i];
    cgl_lua_note_graph(L, S, graphs[i]);
    if (count == 1 && !*cgl_graph_saved_name(graphs[i]))
      return 1;
    lua_setfield(L, 3, cgl_graph_saved_name(graphs[i]));
  }
  lua_settop(L, 3);
  return 1;
}


/* ---- inputs ---- */

/* g:bind{name = buffer, ...}: all, or none */
static int graph_bind(lua_State *L) {
  char near[CGL_LUA_GUESS_ROOM];
  cgl_lua *S = cgl_lua_enter(L, "graph:bind");
  cgl_set_site(NULL, 0);
  lua_settop(L, 2);
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  size_t n;
  const cgl_named_buffer *list = read_buffers(L, S, 2, "the inputs", &n);
  for (size_t i = 0; i < n && cgl_graph_input_name(graph, 0); i++) {
    if (cgl_graph_input(graph, list[i].name))
      continue;
    cgl_lua_guess guess = {list[i].name, NULL, 0};
    const char *name;
    for (size_t k = 0; (name = cgl_graph_input_name(graph, k)); k++)
      cgl_lua_guess_try(&guess, name);
    cgl_lua_raise(L, S, CGL_ERROR_NOT_FOUND, "graph.inputs has them",
                  "the graph has no input \"%s\"%s", list[i].name,
                  cgl_lua_guess_text(&guess, near));
  }
  cgl_lua_done(L, S, cgl_graph_bind(graph, list, n));
  return 0;
}


const char *const cgl_lua_graph_file_fields[] = {"inputs", "outputs", NULL};


/* g.inputs and g.outputs: a table of buffers by name. */
int cgl_lua_graph_file_field(lua_State *L, void *object, const char *name) {
  cgl_lua *S = cgl_lua_enter(L, "graph");
  cgl_graph *graph = object;
  const bool output = *name == 'o';
  const char *key;
  lua_newtable(L);
  for (size_t i = 0; (key = output ? cgl_graph_output_name(graph, i)
                                   : cgl_graph_input_name(graph, i));
       i++) {
    cgl_buffer **slot = cgl_lua_new_buffer(L, S);
    *slot = cgl_buffer_retain(output ? cgl_graph_output(graph, key)
                                     : cgl_graph_input(graph, key));
    lua_setfield(L, -2, key);
  }
  return 1;
}


const luaL_Reg cgl_lua_graph_file_methods[] = {
    {"save", graph_save}, {"bind", graph_bind}, {NULL, NULL}};
const luaL_Reg cgl_lua_graph_file_functions[] = {
    {"save", save}, {"load", load}, {NULL, NULL}};
