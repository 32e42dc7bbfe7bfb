/* cgraphlua.kernel: launched on the current stream with checked arguments.
   Lua values become kernel arguments here; whether they fit the parameters
   is the core's to say. */
#include "lua/binding.h"

#include <stdio.h>
#include <string.h>

enum { NAME_ROOM = 80 };

static inline cgl_kernel *check(lua_State *L, cgl_lua *S, int index) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  if (box && box->tag == &cgl_lua_tags[CGL_LUA_kernel] && box->object)
    return box->object;
  return cgl_lua_check(L, S, index, CGL_LUA_kernel); /* which says why */
}


/* "argument 3 'n'", as the kernel's parameter list counts and names it. */
static const char *argument_name(const cgl_kernel *kernel, int number,
                                 char text[NAME_ROOM]) {
  cgl_param_info info;
  if ((size_t)number > cgl_kernel_param_count(kernel) ||
      cgl_kernel_param(kernel, (size_t)number - 1, &info) || !info.name)
    snprintf(text, NAME_ROOM, "argument %d", number);
  else
    snprintf(text, NAME_ROOM, "argument %d '%.50s'", number, info.name);
  return text;
}


static void read_cdata(lua_State *L, cgl_lua *S, int index, cgl_arg *arg) {
  cgl_lua_cdata data;
  cgl_lua_cdata_read(L, S, index, &data);
  switch (data.kind) {
  case CGL_LUA_CDATA_INT:
    arg->kind = CGL_ARG_INT;
    arg->i = data.i;
    break;
  case CGL_LUA_CDATA_UINT:
    arg->kind = CGL_ARG_UINT;
    arg->u = data.u;
    break;
  case CGL_LUA_CDATA_NUMBER:
    arg->kind = CGL_ARG_NUMBER;
    arg->number = data.number;
    break;
  case CGL_LUA_CDATA_POINTER:
    arg->kind = CGL_ARG_ADDRESS;
    arg->address = (uint64_t)(uintptr_t)data.address;
    break;
  case CGL_LUA_CDATA_BYTES:
    arg->kind = CGL_ARG_BYTES;
    arg->bytes.data = data.address;
    arg->bytes.size = data.size;
    break;
  }
}


static int not_an_argument(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                           int index, int number) {
  char name[NAME_ROOM];
  return cgl_lua_bad(
      L, S, index,
      "kernel %s is a %s; buffers, pinned memory, generators, "
      "numbers, booleans, strings of bytes and FFI values can be passed",
      argument_name(kernel, number, name), cgl_lua_typename(L, index));
}


/* A buffer, pinned memory or a generator; no other object has a meaning for a
 * kernel. */
static void read_object(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                        int index, int number, cgl_arg *arg) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  if (box && box->tag == &cgl_lua_tags[CGL_LUA_buffer])
    arg->kind = CGL_ARG_BUFFER;
  else if (box && box->tag == &cgl_lua_tags[CGL_LUA_pinned])
    arg->kind = CGL_ARG_PINNED;
  else if (box && box->tag == &cgl_lua_tags[CGL_LUA_generator])
    arg->kind = CGL_ARG_GENERATOR;
  else
    not_an_argument(L, S, kernel, index, number);
  void *object = box->object;
  char name[NAME_ROOM];
  if (!object)
    cgl_lua_raise(L, S, CGL_ERROR_RELEASED,
                  "keep a buffer until its last launch, or make a new one",
                  "kernel %s is a %s that was released",
                  argument_name(kernel, number, name),
                  arg->kind == CGL_ARG_BUFFER      ? "buffer"
                  : arg->kind == CGL_ARG_GENERATOR ? "generator"
                                                   : "pinned");
  if (arg->kind == CGL_ARG_BUFFER)
    arg->buffer = object;
  else if (arg->kind == CGL_ARG_GENERATOR)
    arg->generator = object;
  else
    arg->pinned = object;
}


void cgl_lua_argument(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                      int index, int number, cgl_arg *arg) {
  char name[NAME_ROOM];
  switch (lua_type(L, index)) {
  case LUA_TNUMBER:
    arg->kind = CGL_ARG_NUMBER;
    arg->number = lua_tonumber(L, index);
    break;
  case LUA_TBOOLEAN:
    arg->kind = CGL_ARG_BOOL;
    arg->boolean = lua_toboolean(L, index);
    break;
  case LUA_TSTRING:
    arg->kind = CGL_ARG_BYTES;
    arg->bytes.data = lua_tolstring(L, index, &arg->bytes.size);
    break;
  case LUA_TLIGHTUSERDATA:
    arg->address = (uint64_t)(uintptr_t)lua_touserdata(L, index);
    arg->kind = arg->address ? CGL_ARG_ADDRESS : CGL_ARG_NULL;
    break;
  case CGL_LUA_TCDATA:
    read_cdata(L, S, index, arg);
    break;
  case LUA_TNIL:
    cgl_lua_bad(L, S, index,
                "kernel %s is nil; pass cg.null for a null pointer",
                argument_name(kernel, number, name));
    break;
  case LUA_TUSERDATA:
    read_object(L, S, kernel, index, number, arg);
    break;
  default:
    not_an_argument(L, S, kernel, index, number);
  }
}


/* What most arguments are; false leaves it to cgl_lua_argument. */
static inline bool read_buffer(lua_State *L, int index, cgl_arg *arg) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  if (!box || box->tag != &cgl_lua_tags[CGL_LUA_buffer] || !box->object)
    return false;
  arg->kind = CGL_ARG_BUFFER;
  arg->buffer = box->object;
  return true;
}


/* Launches with the values from `first` to the top of the stack. */
static void launch(lua_State *L, cgl_lua *S, cgl_kernel *kernel,
                   const cgl_launch *shape, int first) {
  cgl_arg args[CGL_LUA_MAX_ARGS];
  int n = lua_gettop(L) - first + 1;
  if (n > CGL_LUA_MAX_ARGS)
    cgl_lua_bad(L, S, first + CGL_LUA_MAX_ARGS, "more than %d kernel arguments",
                CGL_LUA_MAX_ARGS);
  for (int i = 0; i < n; i++)
    if (!read_buffer(L, first + i, &args[i]))
      cgl_lua_argument(L, S, kernel, first + i, i + 1, &args[i]);
  cgl_lua_done(
      L, S,
      cgl_kernel_launch(kernel, cgl_lua_stream(L, S), shape, args, (size_t)n));
}


/* k:launch(grid, block, ...); grid may carry shared=, the bytes of dynamic
   shared memory. */
static int kernel_launch(lua_State *L) {
  static const char *const grid_keys[] = {"shared", NULL};
  static const char *const block_keys[] = {NULL};
  cgl_lua *S = cgl_lua_issue(L, "kernel:launch");
  cgl_kernel *kernel = check(L, S, 1);
  cgl_launch shape = {{1, 1, 1}, {1, 1, 1}, 0};
  if (!cgl_lua_size(L, 2, &shape.grid[0])) {
    cgl_lua_sizes(L, S, 2, "grid", shape.grid, grid_keys);
    shape.shared_bytes =
        (uint32_t)cgl_lua_option_integer(L, S, 2, "shared", 0, UINT32_MAX, 0);
  }
  if (!cgl_lua_size(L, 3, &shape.block[0]))
    cgl_lua_sizes(L, S, 3, "block", shape.block, block_keys);
  launch(L, S, kernel, &shape, 4);
  return 0;
}


/* What k:over(n) returned, called; upvalue 2: the kernel, 3: blocks, 4:
   threads. */
static int launch_over(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel:over");
  cgl_kernel *kernel = *(cgl_kernel **)lua_touserdata(L, lua_upvalueindex(2));
  if (!kernel)
    return cgl_lua_raise(L, S, CGL_ERROR_RELEASED,
                         "keep a kernel until its last launch",
                         "this kernel was released");
  cgl_launch shape = {{(uint32_t)lua_tonumber(L, lua_upvalueindex(3)), 1, 1},
                      {(uint32_t)lua_tonumber(L, lua_upvalueindex(4)), 1, 1},
                      0};
  launch(L, S, kernel, &shape, 1);
  return 0;
}


/* k:over(n) */
static int kernel_over(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel:over");
  cgl_kernel *kernel = check(L, S, 1);
  int64_t n =
      cgl_lua_integer(L, S, 2, "the number of threads", 1, CGL_LUA_MAX_WHOLE);
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
  lua_pushnumber(L, (double)blocks);
  lua_pushnumber(L, (double)block);
  lua_pushcclosure(L, launch_over, 4);
  return 1;
}


static int kernel_name(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "kernel:name");
  lua_pushstring(L, cgl_kernel_name(check(L, S, 1)));
  return 1;
}


/* k:block_size(), threads per block with good occupancy */
static int kernel_block_size(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "kernel:block_size");
  uint32_t block = 0;
  cgl_lua_done(L, S, cgl_kernel_block_size(check(L, S, 1), &block));
  lua_pushnumber(L, block);
  return 1;
}


/* k:parameters(), as the source declares them */
static int kernel_parameters(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "kernel:parameters");
  const cgl_kernel *kernel = check(L, S, 1);
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
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}


static void describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%s", cgl_kernel_name(object));
}


void cgl_lua_open_kernel(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"launch", kernel_launch},
      {"over", kernel_over},
      {"name", kernel_name},
      {"block_size", kernel_block_size},
      {"parameters", kernel_parameters},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {{NULL, NULL}};
  static const cgl_lua_type type = {.methods = methods, .describe = describe};
  cgl_lua_register(L, S, CGL_LUA_kernel, &type);
  cgl_lua_functions(L, functions);
}
