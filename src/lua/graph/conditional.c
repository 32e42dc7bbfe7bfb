/* Branches and loops: cg.when, cg.switch, cg.loop, cg.times, and what a loop
   reports.
   The bodies are called from C, as the body of a capture is, so that a
   coroutine cannot leave one half way. */
#include "lua/graph/graph.h"

#include <stdio.h>

enum { BODY_ROOM = 20 }; /* of the Lua stack */


/* The body that `function`, an index, is: abandons all when it raises. */
static void body_call(lua_State *L, cgl_lua *S, cgl_conditional *conditional,
                      int function, cgl_stream *stream) {
  const int top = lua_gettop(L);
  lua_pushvalue(L, function);
  if (cgl_lua_within(L, S, stream, NULL, 0)) {
    cgl_lua_site(L, S);
    cgl_clear_error();
    cgl_conditional_abandon(conditional);
    lua_error(L);
  }
  lua_settop(L, top);
  cgl_lua_site(L, S);
}


/* The parameter at 1 fills a buffer in its place, in a graph at each replay. */
static cgl_buffer *value_fill(lua_State *L, cgl_lua *S) {
  cgl_param *param = cgl_lua_check_param(L, S, 1);
  cgl_stream *stream = cgl_lua_stream(L, S);
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  cgl_lua_try(
      L, S, cgl_buffer_create(stream, S->pool, cgl_param_type(param), 1, slot));
  lua_replace(L, 1);
  cgl_lua_done(L, S, cgl_buffer_fill_param(*slot, stream, param));
  return *slot;
}


/* Runs or captures the conditional, whose body number i is the function at
   index `first` + i.  *loop (NULL: none) gets what a loop reports. */
static void conditional_run(lua_State *L, cgl_lua *S,
                            cgl_conditional_desc *desc, int first,
                            cgl_loop **loop) {
  luaL_checkstack(L, BODY_ROOM, "too many conditionals in one another");
  if (!desc->value)
    desc->value = value_fill(L, S);
  cgl_conditional *conditional = NULL;
  cgl_lua_done(L, S,
               cgl_conditional_begin(cgl_lua_stream(L, S), desc, &conditional));
  if (loop)
    *loop = cgl_loop_retain(cgl_conditional_loop(conditional));
  cgl_status status;
  cgl_stream *stream;
  int body;
  while (!(status = cgl_conditional_next(conditional, &body, &stream)) &&
         body >= 0)
    body_call(L, S, conditional, first + body, stream);
  if (status)
    cgl_conditional_abandon(conditional);
  else
    status = cgl_conditional_end(conditional);
  cgl_lua_done(L, S, status);
}


/* Reads the options at `index`. */
static void options_read(lua_State *L, cgl_lua *S, int index,
                         cgl_conditional_desc *desc) {
  static const char *const known[] = {"form", NULL},
                           *const loops[] = {"form", "max", NULL},
                           *const forms[] = {"automatic", "node", "predicated",
                                             NULL};
  const bool loop = desc->kind >= CGL_CONDITIONAL_LOOP;
  if (!cgl_lua_options(L, S, index, loop ? loops : known))
    return;
  desc->form = (cgl_conditional_form)cgl_lua_option_choice(
      L, S, index, "form", forms, CGL_CONDITIONAL_AUTOMATIC);
  if (loop)
    desc->max = (uint64_t)cgl_lua_option_integer(
        L, S, index, "max", 1, CGL_LUA_MAX_WHOLE, CGL_CONDITIONAL_MAX);
}


/* The function before the options of a branch may be left out: then these are
   the script's third argument, which is to blame. */
static void branch_read_options(lua_State *L, cgl_lua *S,
                                cgl_conditional_desc *desc) {
  lua_settop(L, 4);
  if (lua_istable(L, 3) && lua_isnil(L, 4)) {
    lua_pushnil(L);
    lua_insert(L, 3);
    lua_settop(L, 4);
    S->blame = 3;
  }
  options_read(L, S, 4, desc);
  S->blame = 0;
}


/* The buffer that decides, at 1; NULL: a parameter does. */
static cgl_buffer *value_read(lua_State *L, cgl_lua *S) {
  if (!cgl_lua_is(L, 1, CGL_LUA_param))
    return cgl_lua_check_buffer(L, S, 1);
  const cgl_param *param = cgl_lua_check_param(L, S, 1);
  const cgl_type type = cgl_param_type(param);
  if (cgl_param_count(param) != 1 || cgl_type_lanes(type) != 1 ||
      type == CGL_TYPE_float || type == CGL_TYPE_double ||
      type == CGL_TYPE_half || type == CGL_TYPE_bfloat16)
    cgl_lua_bad(L, S, 1,
                "a parameter of one integer or bool expected, got %d %s",
                (int)cgl_param_count(param), cgl_type_name(type));
  return NULL;
}


/* cg.when(flag, then [, else] [, {form=}]) */
static int cg_when(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "when");
  cgl_conditional_desc desc = {.kind = CGL_CONDITIONAL_WHEN,
                               .value = value_read(L, S)};
  branch_read_options(L, S, &desc);
  desc.nbodies = lua_isnil(L, 3) ? 1 : 2;
  for (size_t i = 0; i < desc.nbodies; i++)
    cgl_lua_read_function(L, S, 2 + (int)i);
  conditional_run(L, S, &desc, 2, NULL);
  return 0;
}


/* cg.switch(index, {f, ...} [, default] [, {form=}]) */
static int cg_switch(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "switch");
  cgl_conditional_desc desc = {.kind = CGL_CONDITIONAL_SWITCH,
                               .value = value_read(L, S)};
  if (!lua_istable(L, 2) || !lua_objlen(L, 2))
    cgl_lua_bad(L, S, 2, "a list of functions expected, got %s",
                lua_istable(L, 2) ? "an empty table" : luaL_typename(L, 2));
  branch_read_options(L, S, &desc);
  desc.otherwise = !lua_isnil(L, 3);
  const int n = (int)lua_objlen(L, 2);
  luaL_checkstack(L, n + BODY_ROOM, "too many functions");
  if (desc.otherwise)
    cgl_lua_read_function(L, S, 3);
  for (int i = 1; i <= n; i++) {
    char text[CGL_LUA_VALUE_ROOM];
    lua_rawgeti(L, 2, i);
    if (!cgl_lua_read_callable(L, 4 + i))
      cgl_lua_bad(L, S, 2, "function %d of the list is %s", i,
                  cgl_lua_value_text(L, S, 4 + i, text));
  }
  if (desc.otherwise)
    lua_pushvalue(L, 3);
  desc.nbodies = (size_t)n + desc.otherwise;
  conditional_run(L, S, &desc, 5, NULL);
  return 0;
}


static int loop_run(lua_State *L, cgl_lua *S, cgl_conditional_kind kind) {
  lua_settop(L, 3);
  cgl_conditional_desc desc = {.kind = kind,
                               .value = kind == CGL_CONDITIONAL_TIMES
                                            ? value_read(L, S)
                                            : cgl_lua_check_buffer(L, S, 1)};
  cgl_lua_read_function(L, S, 2);
  options_read(L, S, 3, &desc);
  cgl_loop **loop = cgl_lua_new_loop(L, S);
  conditional_run(L, S, &desc, 2, loop);
  return 1;
}


/* cg.loop(flag, body [, {max=, form=}]) */
static int cg_loop(lua_State *L) {
  return loop_run(L, cgl_lua_issue(L, "loop"), CGL_CONDITIONAL_LOOP);
}


/* cg.times(count, body [, {max=, form=}]) */
static int cg_times(lua_State *L) {
  return loop_run(L, cgl_lua_issue(L, "times"), CGL_CONDITIONAL_TIMES);
}


/* ---- what a loop reports ---- */

static uint64_t loop_read(lua_State *L, cgl_lua *S, bool *exhausted) {
  uint64_t turns;
  cgl_loop *loop = cgl_lua_check_loop(L, S, 1);
  cgl_lua_done(L, S,
               cgl_loop_read(loop, cgl_lua_stream(L, S), &turns, exhausted));
  return turns;
}


static int loop_turns(lua_State *L) {
  bool exhausted;
  cgl_lua *S = cgl_lua_issue(L, "loop:turns");
  lua_pushnumber(L, (double)loop_read(L, S, &exhausted));
  return 1;
}


static int loop_exhausted(lua_State *L) {
  bool exhausted;
  cgl_lua *S = cgl_lua_issue(L, "loop:exhausted");
  loop_read(L, S, &exhausted);
  lua_pushboolean(L, exhausted);
  return 1;
}


static void loop_describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%p", object);
}


void cgl_lua_open_loop(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"turns", loop_turns}, {"exhausted", loop_exhausted}, {NULL, NULL}};
  static const luaL_Reg functions[] = {{"when", cg_when},
                                       {"switch", cg_switch},
                                       {"loop", cg_loop},
                                       {"times", cg_times},
                                       {NULL, NULL}};
  static const cgl_lua_type type = {.kind = CGL_LUA_loop,
                                    .methods = methods,
                                    .functions = functions,
                                    .describe = loop_describe};
  cgl_lua_register(L, S, &type);
}
