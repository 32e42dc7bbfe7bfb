/* Kernel arguments from Lua values; whether they fit the kernel's parameters
   is for the core to say. */
#include "lua/values/values.h"

#include <stdio.h>

enum { NAME_ROOM = 80 };


/* "argument 3 'n'", as the kernel's parameter list counts and names it. */
static const char *arg_name(const cgl_kernel *kernel, int number,
                            char text[NAME_ROOM]) {
  cgl_param_info info;
  if ((size_t)number > cgl_kernel_param_count(kernel) ||
      cgl_kernel_param(kernel, (size_t)number - 1, &info) || !info.name)
    snprintf(text, NAME_ROOM, "argument %d", number);
  else
    snprintf(text, NAME_ROOM, "argument %d '%.50s'", number, info.name);
  return text;
}


static int arg_refuse(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                      int index, int number) {
  char name[NAME_ROOM];
  return cgl_lua_bad(
      L, S, index,
      "kernel %s is a %s; buffers, pinned memory, generators, "
      "numbers, booleans, strings of bytes and FFI values can be passed",
      arg_name(kernel, number, name), cgl_lua_typename(L, index));
}


/* A buffer, pinned memory or a generator; kernels take no other object. */
static void arg_read_object(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                            int index, int number, cgl_arg *arg) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  const cgl_lua_kind kind =
      box ? (cgl_lua_kind)(box->tag - cgl_lua_tags) : CGL_LUA_KIND_COUNT;
  char name[NAME_ROOM];
  if (kind == CGL_LUA_buffer)
    *arg = (cgl_arg){.kind = CGL_ARG_BUFFER, .buffer = box->object};
  else if (kind == CGL_LUA_pinned)
    *arg = (cgl_arg){.kind = CGL_ARG_PINNED, .pinned = box->object};
  else if (kind == CGL_LUA_generator)
    *arg = (cgl_arg){.kind = CGL_ARG_GENERATOR, .generator = box->object};
  else
    arg_refuse(L, S, kernel, index, number);
  if (!box->object)
    cgl_lua_raise(L, S, CGL_ERROR_RELEASED,
                  "keep a buffer until its last launch, or make a new one",
                  "kernel %s is a %s that was released",
                  arg_name(kernel, number, name), cgl_lua_kind_name(kind));
}


void cgl_lua_read_arg(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
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
    cgl_lua_read_cdata(L, S, index, arg);
    break;
  case LUA_TNIL:
    cgl_lua_bad(L, S, index,
                "kernel %s is nil; pass cg.null for a null pointer",
                arg_name(kernel, number, name));
    break;
  case LUA_TUSERDATA:
    arg_read_object(L, S, kernel, index, number, arg);
    break;
  default:
    arg_refuse(L, S, kernel, index, number);
  }
}
