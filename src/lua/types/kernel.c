/* cgraphlua.kernel: launched on the current stream with checked arguments. */
#include "lua/types/types.h"

#include <stdio.h>
#include <string.h>

/* Reads a live buffer, which most arguments are; false for other values. */
static inline bool arg_read_buffer(lua_State *L, int index, cgl_arg *arg) {
  arg->buffer = cgl_lua_peek(L, index, CGL_LUA_buffer);
  arg->kind = CGL_ARG_BUFFER;
  return arg->buffer;
}


/* Launches with the values from `first` to the top of the stack. */
static void kernel_launch_with(lua_State *L, cgl_lua *S, cgl_kernel *kernel,
                               const cgl_launch *shape,
                               const cgl_grid_params *grid, int first) {
  cgl_arg args[CGL_LUA_MAX_ARGS];
  int n = lua_gettop(L) - first + 1;
  if (n > CGL_LUA_MAX_ARGS)
    cgl_lua_bad(L, S, first + CGL_LUA_MAX_ARGS, "more than %d kernel arguments",
                CGL_LUA_MAX_ARGS);
  for (int i = 0; i < n; i++)
    if (!arg_read_buffer(L, first + i, &args[i]))
      cgl_lua_read_arg(L, S, kernel, first + i, i + 1, &args[i]);
  cgl_lua_done(L, S,
               cgl_kernel_launch_params(kernel, cgl_lua_stream(L, S), shape,
                                        grid, args, (size_t)n));
}


/* k:launch(grid, block, ...); grid may carry shared=, the bytes of
   dynamic shared memory. */
static int kernel_launch(lua_State *L) {
  static const char *const grid_keys[] = {"shared", NULL};
  static const char *const block_keys[] = {NULL};
  cgl_lua *S = cgl_lua_issue(L, "kernel:launch");
  cgl_kernel *kernel = cgl_lua_peek(L, 1, CGL_LUA_kernel);
  if (!kernel)
    cgl_lua_check_kernel(L, S, 1); /* raises */
  cgl_launch shape = {{1, 1, 1}, {1, 1, 1}, 0};
  cgl_grid_params grid = {{NULL, NULL, NULL}, NULL};
  bool params = false;
  if (!cgl_lua_read_size(L, 2, &shape.grid[0])) {
    cgl_lua_read_sizes(L, S, 2, "grid", shape.grid, grid.extents, grid_keys);
    params = grid.extents[0] || grid.extents[1] || grid.extents[2];
    shape.shared_bytes =
        (uint32_t)cgl_lua_option_integer(L, S, 2, "shared", 0, UINT32_MAX, 0);
  }
  if (lua_istable(L, 3)) {
    lua_getfield(L, 3, "shared");
    if (!lua_isnil(L, -1))
      return cgl_lua_bad(L, S, 3,
                         "the bytes of shared memory stand with the grid: "
                         "{blocks, shared = bytes}");
    lua_pop(L, 1);
  }
  if (!cgl_lua_read_size(L, 3, &shape.block[0]))
    cgl_lua_read_sizes(L, S, 3, "block", shape.block, NULL, block_keys);
  kernel_launch_with(L, S, kernel, &shape, params ? &grid : NULL, 4);
  return 0;
}


/* The function that k:over(n) returns; upvalue 2: the kernel, 3: blocks, or the
   parameter n, 4: threads per block. */
static int kernel_launch_over(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "over(n)"); /* no method: 1 is the first */
  cgl_kernel *kernel = *(cgl_kernel **)lua_touserdata(L, lua_upvalueindex(2));
  if (!kernel)
    return cgl_lua_raise(L, S, CGL_ERROR_RELEASED,
                         "keep a kernel until its last launch",
                         "this kernel was released");
  const bool fixed = lua_isnumber(L, lua_upvalueindex(3));
  const cgl_grid_params grid = {
      .threads =
          fixed ? NULL : cgl_lua_peek(L, lua_upvalueindex(3), CGL_LUA_param)};
  if (!fixed && !grid.threads)
    return cgl_lua_raise(L, S, CGL_ERROR_RELEASED,
                         "keep a parameter until its last launch",
                         "the parameter of the grid was released");
  cgl_launch shape = {
      {fixed ? (uint32_t)lua_tonumber(L, lua_upvalueindex(3)) : 1, 1, 1},
      {(uint32_t)lua_tonumber(L, lua_upvalueindex(4)), 1, 1},
      0};
  kernel_launch_with(L, S, kernel, &shape, fixed ? NULL : &grid, 1);
  return 0;
}


/* k:over(n), of a number or a parameter */
static int kernel_over(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel:over");
  cgl_kernel *kernel = cgl_lua_check_kernel(L, S, 1);
  const bool fixed = !cgl_lua_peek(L, 2, CGL_LUA_param);
  int64_t n = fixed ? cgl_lua_read_integer(L, S, 2, "the number of threads", 1,
                                           CGL_LUA_MAX_WHOLE)
                    : INT32_MAX;
  uint32_t block = 1;
  cgl_lua_done(L, S, cgl_kernel_block_size(kernel, &block));
  if (n < block)
    block = (uint32_t)n;
  int64_t blocks = (n + block - 1) / block;
  if (blocks > INT32_MAX)
    return cgl_lua_bad(L, S, 2, "%lld threads are more than %d blocks of %u",
                       (long long)n, INT32_MAX, block);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, 1);
  if (fixed)
    lua_pushnumber(L, (double)blocks);
  else
    lua_pushvalue(L, 2);
  lua_pushnumber(L, (double)block);
  lua_pushcclosure(L, kernel_launch_over, 4);
  return 1;
}


static int kernel_name(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "kernel:name");
  lua_pushstring(L, cgl_kernel_name(cgl_lua_check_kernel(L, S, 1)));
  return 1;
}


/* k:block_size(), threads per block with good occupancy */
static int kernel_block_size(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel:block_size");
  uint32_t block = 0;
  cgl_lua_done(L, S,
               cgl_kernel_block_size(cgl_lua_check_kernel(L, S, 1), &block));
  lua_pushnumber(L, block);
  return 1;
}


/* k:form(): its word; of fibers also why, and the line */
static int kernel_form(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "kernel:form");
  const char *why;
  int line;
  cgl_form form = cgl_kernel_form(cgl_lua_check_kernel(L, S, 1), &why, &line);
  lua_pushstring(L, cgl_form_name(form));
  if (!why)
    return 1;
  lua_pushstring(L, why);
  lua_pushnumber(L, line);
  return 3;
}


/* k:info(): a table of name, form and, of fibers, why and line */
static int kernel_info(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "kernel:info");
  cgl_kernel_facts facts;
  cgl_kernel_info(cgl_lua_check_kernel(L, S, 1), &facts);
  lua_createtable(L, 0, 4);
  lua_pushstring(L, facts.name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, cgl_form_name(facts.form));
  lua_setfield(L, -2, "form");
  if (facts.why) {
    lua_pushstring(L, facts.why);
    lua_setfield(L, -2, "why");
    lua_pushnumber(L, facts.line);
    lua_setfield(L, -2, "line");
  }
  return 1;
}


/* k:parameters(), as the source declares them */
static int kernel_parameters(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "kernel:parameters");
  const cgl_kernel *kernel = cgl_lua_check_kernel(L, S, 1);
  size_t n = cgl_kernel_param_count(kernel);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    cgl_param_info info;
    cgl_lua_done(L, S, cgl_kernel_param(kernel, i, &info));
    lua_createtable(L, 0, 5);
    cgl_lua_set_text(L, "type", info.type);
    cgl_lua_set_text(L, "name", info.name);
    cgl_lua_set_boolean(L, "pointer", info.pointer);
    cgl_lua_set_boolean(L, "readonly", info.readonly);
    cgl_lua_set_number(L, "bytes", (double)info.bytes);
    cgl_lua_set_fields(L, &(cgl_lua_fields){.kernel = kernel, .index = i});
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}


static const char *const effect_names[] = {"declared", "read", "write",
                                           "update", NULL};


/* The parameter that the value at `at` names, from 0. */
static size_t parameter_read(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                             int at) {
  const size_t n = cgl_kernel_param_count(kernel);
  cgl_param_info info;
  char names[CGL_LUA_LIST_ROOM] = "";
  if (lua_type(L, at) == LUA_TNUMBER) {
    const double index = lua_tonumber(L, at);
    if (index >= 1 && index <= (double)n && index == (double)(size_t)index)
      return (size_t)index - 1;
    cgl_lua_bad(L, S, 2, "%s has no parameter %g, it has %d",
                cgl_kernel_name(kernel), index, (int)n);
  }
  const char *name = lua_type(L, at) == LUA_TSTRING ? lua_tostring(L, at) : "";
  for (size_t i = 0, used = 0; i < n; i++) {
    cgl_lua_done(L, S, cgl_kernel_param(kernel, i, &info));
    if (*name && !strcmp(info.name, name))
      return i;
    if (*info.name && used < sizeof names)
      used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
                               used ? ", " : "", info.name);
  }
  cgl_lua_bad(L, S, 2, "%s has no parameter '%s': its parameters are %s",
              cgl_kernel_name(kernel), name, *names ? names : "not named");
  return 0;
}


/* k:param(parameter, value [, name]) */
static int kernel_param(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel:param");
  cgl_kernel *kernel = cgl_lua_check_kernel(L, S, 1);
  lua_settop(L, 4);
  const size_t index = parameter_read(L, S, kernel, 2);
  const char *name =
      lua_isnil(L, 4) ? NULL : cgl_lua_read_string(L, S, 4, "the name", NULL);
  cgl_arg value;
  cgl_lua_read_arg(L, S, kernel, 3, (int)index + 1, &value);
  cgl_param **slot = cgl_lua_new_param(L, S);
  cgl_lua_try(L, S, cgl_kernel_param_create(kernel, index, &value, name, slot));
  return 1;
}


/* k:effects{out = "write", x = "read"}; returns k */
static int kernel_effects(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel:effects");
  cgl_kernel *kernel = cgl_lua_check_kernel(L, S, 1);
  lua_settop(L, 2);
  if (!lua_istable(L, 2))
    return cgl_lua_bad(L, S, 2,
                       "a table of parameters and what the kernel does with "
                       "their memory expected, got %s",
                       luaL_typename(L, 2));
  S->blame = 2;
  for (int set = 0; set < 2; set++) /* all are checked before one is set */
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
      S->blamed = NULL;
      const size_t index = parameter_read(L, S, kernel, lua_gettop(L) - 1);
      cgl_param_info info;
      cgl_lua_done(L, S, cgl_kernel_param(kernel, index, &info));
      S->blamed = *info.name ? info.name : NULL;
      const int effect =
          cgl_lua_read_choice(L, S, lua_gettop(L), "an effect", effect_names);
      if (set || !info.pointer)
        cgl_lua_done(L, S,
                     cgl_kernel_set_effect(kernel, index, (cgl_effect)effect));
    }
  S->blame = 0;
  lua_settop(L, 1);
  return 1;
}


static void kernel_describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%s", cgl_kernel_name(object));
}


void cgl_lua_open_kernel(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"launch", kernel_launch},
      {"over", kernel_over},
      {"name", kernel_name},
      {"block_size", kernel_block_size},
      {"parameters", kernel_parameters},
      {"param", kernel_param},
      {"effects", kernel_effects},
      {"form", kernel_form},
      {"info", kernel_info},
      {NULL, NULL},
  };
  static const cgl_lua_type type = {
      .kind = CGL_LUA_kernel,
      .methods = methods,
      .describe = kernel_describe,
      .calls = "kernel:launch(grid, block, ...) or kernel:over(n)(...) "
               "launches it"};
  cgl_lua_register(L, S, &type);
}
