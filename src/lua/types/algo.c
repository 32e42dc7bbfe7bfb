/* cgraphlua.algo: algorithms on buffers, on the current stream. */
#include "lua/types/types.h"

#include <string.h>


/* The value of an input, which is on top of the stack. */
static void input_read(lua_State *L, cgl_lua *S, cgl_algo_input *input) {
  if (cgl_lua_is(L, -1, CGL_LUA_buffer)) {
    input->value.kind = CGL_ARG_BUFFER;
    input->value.buffer = cgl_lua_peek(L, -1, CGL_LUA_buffer);
    if (!input->value.buffer)
      cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint,
                    "input '%s' was released", input->name);
  } else if (lua_isboolean(L, -1)) {
    input->value.kind = CGL_ARG_BOOL;
    input->value.boolean = lua_toboolean(L, -1);
  } else if (lua_type(L, -1) == LUA_TSTRING ||
             !cgl_lua_read_number(L, S, lua_gettop(L), &input->value)) {
    cgl_lua_bad(L, S, 2, "input '%s' must be a buffer or a number, got %s",
                input->name, cgl_lua_typename(L, -1));
  }
}


/* The inputs of the table at 2, by name: Lua's own order differs from run to
   run, and kernels are found again by their parameters. */
static size_t inputs_read(lua_State *L, cgl_lua *S,
                          cgl_algo_input inputs[CGL_ALGO_MAX_INPUTS]) {
  size_t n = 0;
  if (!lua_istable(L, 2))
    cgl_lua_bad(L, S, 2, "a table of inputs by name expected, got %s",
                cgl_lua_typename(L, 2));
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      cgl_lua_bad(L, S, 2, "an input's name must be a string, got %s",
                  cgl_lua_typename(L, -2));
    if (n == CGL_ALGO_MAX_INPUTS)
      cgl_lua_bad(L, S, 2, "at most %d inputs are possible",
                  CGL_ALGO_MAX_INPUTS);
    cgl_algo_input input = {.name = lua_tostring(L, -2)};
    input_read(L, S, &input);
    size_t at = n++;
    for (; at && strcmp(inputs[at - 1].name, input.name) > 0; at--)
      inputs[at] = inputs[at - 1];
    inputs[at] = input;
  }
  return n;
}


/* algo.map(expression, inputs, out) */
static int algo_map(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.map");
  lua_settop(L, 3);
  const char *expression = cgl_lua_read_string(L, S, 1, "the expression", NULL);
  cgl_algo_input inputs[CGL_ALGO_MAX_INPUTS];
  const size_t n = inputs_read(L, S, inputs);
  cgl_buffer *out = cgl_lua_check_buffer(L, S, 3);
  cgl_algo *algo = cgl_lua_algo(L, S);
  cgl_lua_done(
      L, S,
      cgl_algo_map(algo, cgl_lua_stream(L, S), expression, inputs, n, out));
  return 1;
}


void cgl_lua_open_algo(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"map", algo_map},
      {NULL, NULL},
  };
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  lua_setfield(L, -2, "algo");
}
