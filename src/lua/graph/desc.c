/* The options of graphs, as tables and as fields. */
#include "lua/graph/graph.h"

#include <string.h>

/* All options of a graph, in the order of the numbers below. */
static const char *const graph_fields[] = {
    "keep_graph", CGL_LUA_CAPTURE_OPTIONS, "unchecked",
    "unroll",     "programmatic",          NULL};
enum {
  FIELD_KEEP_GRAPH,
  FIELD_POOL,
  FIELD_CAPTURE_ERROR_MODE,
  FIELD_CHECK_INPUT_LIVENESS,
  FIELD_ANNOTATIONS,
  FIELD_ENABLE_ANNOTATIONS,
  FIELD_ORDER,
  FIELD_WIDTH,
  FIELD_MAX_BYTES,
  FIELD_UNCHECKED,
  FIELD_UNROLL,
  FIELD_PROGRAMMATIC
};

static const char *const mode_names[] = {"default", "global", "thread_local",
                                         "relaxed", NULL};
static const char *const order_names[] = {"issue", "data", NULL};
enum { MOST_WIDTH = 1024 };


/* false, true or "nvtx". */
static cgl_annotations annotations_read(lua_State *L, cgl_lua *S, int index) {
  static const char *const names[] = {"nvtx", NULL};
  if (lua_type(L, index) != LUA_TSTRING)
    return cgl_lua_read_boolean(L, S, index, "annotations", false)
               ? CGL_ANNOTATIONS_ON
               : CGL_ANNOTATIONS_OFF;
  cgl_lua_read_choice(L, S, index, "annotations", names);
  return CGL_ANNOTATIONS_NVTX;
}


/* Nothing and false set no bound: 0. */
static uint32_t width_read(lua_State *L, cgl_lua *S, int index) {
  return lua_toboolean(L, index) ? (uint32_t)cgl_lua_read_integer(
                                       L, S, index, "width", 1, MOST_WIDTH)
                                 : 0;
}


/* A number of bytes, or "issue"; or no bound. */
static size_t bytes_read(lua_State *L, cgl_lua *S, int index) {
  static const char *const names[] = {"issue", NULL};
  if (!lua_toboolean(L, index))
    return 0;
  if (lua_type(L, index) != LUA_TSTRING)
    return (size_t)cgl_lua_read_integer(L, S, index, "max_bytes", 1,
                                        CGL_LUA_MAX_WHOLE);
  cgl_lua_read_choice(L, S, index, "max_bytes, unless a number,", names);
  return CGL_BYTES_ISSUE;
}


/* The options of order, in the table on the stack's top. */
static void order_push(lua_State *L, const cgl_graph_desc *desc) {
  cgl_lua_set_text(L, "order", order_names[desc->order]);
  if (desc->width)
    cgl_lua_set_number(L, "width", desc->width);
  if (desc->max_bytes == CGL_BYTES_ISSUE)
    cgl_lua_set_text(L, "max_bytes", "issue");
  else if (desc->max_bytes)
    cgl_lua_set_number(L, "max_bytes", (double)desc->max_bytes);
}


static void annotations_push(lua_State *L, cgl_annotations annotations) {
  if (annotations == CGL_ANNOTATIONS_NVTX)
    lua_pushliteral(L, "nvtx");
  else
    lua_pushboolean(L, annotations == CGL_ANNOTATIONS_ON);
}


/* An option that is on unless it is switched off. */
static void option_read(lua_State *L, cgl_lua *S, int options, const char *name,
                        cgl_option *option) {
  const bool on = *option != CGL_OPTION_OFF;
  if (cgl_lua_option_boolean(L, S, options, name, on) != on)
    *option = on ? CGL_OPTION_OFF : CGL_OPTION_ON;
}


/* Other options let one state hinder others, skip a check, or make nodes. */
static void desc_check_limits(lua_State *L, cgl_lua *S, int options) {
  static const char *const taken[] = {"keep_graph", "check_input_liveness",
                                      "stream", "collect", NULL};
  if (!lua_istable(L, options))
    return;
  for (lua_pushnil(L); lua_next(L, options); lua_pop(L, 1)) {
    const char *name = lua_tostring(L, -2);
    const char *const *t = taken;
    while (*t && strcmp(*t, name))
      t++;
    if (*t)
      continue;
    lua_pushfstring(L, "the option '%s' is not taken", name);
    cgl_lua_limits_raise(L, S, lua_tostring(L, -1));
  }
}


/* Reads the options that are there; true when any of them changes how a capture
   goes.  torch calls annotations enable_annotations. */
static bool desc_read(lua_State *L, cgl_lua *S, int options,
                      cgl_graph_desc *desc) {
  static const char *const names[] = {"enable_annotations", "annotations",
                                      "max_bytes", "width", NULL};
  if (S->limits)
    desc_check_limits(L, S, options);
  const cgl_graph_desc before = *desc;
  cgl_pool *pool = cgl_lua_option_object(L, S, options, "pool", CGL_LUA_pool);
  int mode = cgl_lua_option_choice(L, S, options, "capture_error_mode",
                                   mode_names, -1);
  if (pool)
    desc->pool = pool;
  if (mode >= 0)
    desc->capture_mode = (cgl_capture_mode)mode;
  desc->keep_graph =
      cgl_lua_option_boolean(L, S, options, "keep_graph", desc->keep_graph);
  desc->unchecked =
      cgl_lua_option_boolean(L, S, options, "unchecked", desc->unchecked);
  option_read(L, S, options, "unroll", &desc->unroll);
  option_read(L, S, options, "programmatic", &desc->programmatic);
  desc->order = (cgl_capture_order)cgl_lua_option_choice(
      L, S, options, "order", order_names, (int)desc->order);
  desc->check_input_liveness = cgl_lua_option_boolean(
      L, S, options, "check_input_liveness", desc->check_input_liveness);
  bool changed = pool || mode >= 0 || before.order != desc->order ||
                 before.check_input_liveness != desc->check_input_liveness;
  for (int i = 0; names[i]; i++) {
    if (!cgl_lua_option(L, S, options, names[i]))
      continue;
    S->blame = options;
    if (i < 2)
      desc->annotations = annotations_read(L, S, lua_gettop(L));
    else if (i == 2)
      desc->max_bytes = bytes_read(L, S, lua_gettop(L));
    else
      desc->width = width_read(L, S, lua_gettop(L));
    S->blame = 0;
    lua_pop(L, 1);
    changed = true;
  }
  return changed;
}


cgl_graph *cgl_lua_graph_push(lua_State *L, cgl_lua *S, int options) {
  cgl_graph_desc desc = S->defaults;
  desc.pool = S->pool;
  desc_read(L, S, options, &desc);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_graph **slot = cgl_lua_new_graph(L, S);
  cgl_lua_try(L, S, cgl_graph_create(context, &desc, slot));
  cgl_lua_note_graph(L, S, *slot);
  return *slot;
}


/* cg.defaults([{order=, width=, max_bytes=, plan=}]) changes what new graphs
   have where nothing else is said, and returns it. */
int cgl_lua_graph_defaults(lua_State *L) {
  static const char *const known[] = {"order", "width", "max_bytes", "plan",
                                      NULL};
  cgl_lua *S = cgl_lua_issue(L, "defaults");
  lua_settop(L, 1);
  if (cgl_lua_options(L, S, 1, known)) {
    cgl_graph_desc desc = S->defaults;
    desc_read(L, S, 1, &desc);
    S->plans = cgl_lua_option_boolean(L, S, 1, "plan", S->plans);
    S->defaults = desc;
  }
  lua_createtable(L, 0, 4);
  order_push(L, &S->defaults);
  cgl_lua_set_boolean(L, "plan", S->plans);
  return 1;
}


/* cg.graph{keep_graph=, pool=, capture_error_mode=, unchecked=, unroll=,
   order=, width=, max_bytes=} */
int cgl_lua_graph_new(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph");
  lua_settop(L, 1);
  cgl_lua_options(L, S, 1, graph_fields);
  cgl_lua_graph_push(L, S, 1);
  return 1;
}


/* g:options([{keep_graph=, ...}]) changes the options that are there, and
   returns all. */
static int graph_options(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:options");
  lua_settop(L, 2);
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  if (cgl_lua_options(L, S, 2, graph_fields)) {
    desc_read(L, S, 2, &desc);
    cgl_lua_done(L, S, cgl_graph_set_desc(graph, &desc));
  }
  lua_createtable(L, 0, 10);
  cgl_lua_set_boolean(L, "keep_graph", desc.keep_graph);
  cgl_lua_set_boolean(L, "unchecked", desc.unchecked);
  cgl_lua_set_boolean(L, "unroll", desc.unroll != CGL_OPTION_OFF);
  cgl_lua_set_boolean(L, "programmatic", desc.programmatic != CGL_OPTION_OFF);
  order_push(L, &desc);
  cgl_lua_set_text(L, "capture_error_mode", mode_names[desc.capture_mode]);
  cgl_lua_set_boolean(L, "check_input_liveness", desc.check_input_liveness);
  annotations_push(L, desc.annotations);
  lua_setfield(L, -2, "annotations");
  if (desc.pool) {
    cgl_pool **slot = cgl_lua_new_pool(L, S);
    *slot = cgl_pool_retain(desc.pool);
    lua_setfield(L, -2, "pool");
  }
  return 1;
}


/* g.pool = p, g.capture_error_mode = "...", g.keep_graph = true: the same
   as options with a single option; nil is the default. */
int cgl_lua_graph_newindex(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:options");
  cgl_lua_limits_refuse(L, S, "a graph's options stay as they are");
  lua_settop(L, 3);
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  bool *const flags[] = {[FIELD_KEEP_GRAPH] = &desc.keep_graph,
                         [FIELD_CHECK_INPUT_LIVENESS] =
                             &desc.check_input_liveness,
                         [FIELD_UNCHECKED] = &desc.unchecked,
                         [FIELD_PROGRAMMATIC] = NULL};
  cgl_option *const options[] = {
      [FIELD_UNROLL] = &desc.unroll, [FIELD_PROGRAMMATIC] = &desc.programmatic};
  const int field = cgl_lua_read_choice(L, S, 2, "the field", graph_fields);
  const bool reset = lua_isnil(L, 3);
  if (options[field])
    *options[field] =
        reset || cgl_lua_read_boolean(L, S, 3, graph_fields[field], true)
            ? CGL_OPTION_DEFAULT
            : CGL_OPTION_OFF;
  else if (flags[field])
    *flags[field] = cgl_lua_read_boolean(L, S, 3, graph_fields[field], false);
  else if (field == FIELD_POOL)
    desc.pool = reset ? NULL : cgl_lua_check_pool(L, S, 3);
  else if (field == FIELD_ORDER)
    desc.order = reset ? CGL_ORDER_ISSUE
                       : (cgl_capture_order)cgl_lua_read_choice(
                             L, S, 3, graph_fields[field], order_names);
  else if (field == FIELD_WIDTH)
    desc.width = width_read(L, S, 3);
  else if (field == FIELD_MAX_BYTES)
    desc.max_bytes = bytes_read(L, S, 3);
  else if (field == FIELD_CAPTURE_ERROR_MODE)
    desc.capture_mode = reset ? CGL_CAPTURE_DEFAULT
                              : (cgl_capture_mode)cgl_lua_read_choice(
                                    L, S, 3, graph_fields[field], mode_names);
  else
    desc.annotations = annotations_read(L, S, 3);
  cgl_lua_done(L, S, cgl_graph_set_desc(graph, &desc));
  return 0;
}


void cgl_lua_graph_set_options(lua_State *L, cgl_lua *S, int options,
                               cgl_graph *graph) {
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  if (desc_read(L, S, options, &desc))
    cgl_lua_done(L, S, cgl_graph_set_desc(graph, &desc));
}


const luaL_Reg cgl_lua_graph_desc_methods[] = {{"options", graph_options},
                                               {NULL, NULL}};
