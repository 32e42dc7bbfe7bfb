/* Kernel arguments from Lua values; whether they fit the kernel's parameters
   is for the core to say. */
#include "lua/values/values.h"

#include <stdio.h>
#include <string.h>


const char *cgl_lua_arg_name(const cgl_kernel *kernel, int number,
                             char text[CGL_LUA_ARG_NAME_ROOM]) {
  cgl_param_info info;
  if ((size_t)number > cgl_kernel_param_count(kernel) ||
      cgl_kernel_param(kernel, (size_t)number - 1, &info) || !info.name)
    snprintf(text, CGL_LUA_ARG_NAME_ROOM, "argument %d", number);
  else
    snprintf(text, CGL_LUA_ARG_NAME_ROOM, "argument %d '%.50s'", number,
             info.name);
  return text;
}


/* Only pointers may be null. */
static void arg_refuse_nil(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                           int index, int number) {
  cgl_param_info info = {.pointer = true};
  char name[CGL_LUA_ARG_NAME_ROOM];
  if ((size_t)number <= cgl_kernel_param_count(kernel))
    cgl_lua_done(L, S, cgl_kernel_param(kernel, (size_t)number - 1, &info));
  cgl_lua_arg_name(kernel, number, name);
  if (!info.pointer && info.type)
    cgl_lua_bad(L, S, index, "kernel %s is nil; it is a %s", name, info.type);
  cgl_lua_bad(L, S, index, "kernel %s is nil; pass cg.null for a null pointer",
              name);
}


/* A list of numbers for a vector; its bytes take the list's place on the
   stack. */
static void arg_read_list(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                          int index, int number, cgl_arg *arg) {
  cgl_param_info info = {.lanes = 0};
  char name[CGL_LUA_ARG_NAME_ROOM];
  if ((size_t)number <= cgl_kernel_param_count(kernel))
    cgl_lua_done(L, S, cgl_kernel_param(kernel, (size_t)number - 1, &info));
  const size_t got = cgl_lua_lane_count(L, index);
  if (info.pointer || info.lanes < 2 || info.element == CGL_TYPE_COUNT)
    cgl_lua_bad(
        L, S, index,
        "kernel %s is a table; lists of numbers go to vectors (float4), "
        "structs go as FFI structs: ffi.cdef and ffi.new, and lists "
        "of elements as buffers: cg.from",
        cgl_lua_arg_name(kernel, number, name));
  if (got != (size_t)info.lanes)
    cgl_lua_bad(L, S, index,
                "kernel %s is a %s, which takes %d numbers, got %d",
                cgl_lua_arg_name(kernel, number, name), info.type, info.lanes,
                (int)got);
  char bytes[CGL_MAX_ELEMENT_BYTES];
  const size_t size = cgl_type_bytes(info.element);
  const int blame = S->blame;
  S->blame = blame ? blame : index;
  for (int i = 0; i < info.lanes; i++) {
    cgl_lua_lane_push(L, index, i);
    cgl_lua_read_element(L, S, lua_gettop(L), info.element,
                         bytes + (size_t)i * size);
    lua_pop(L, 1);
  }
  S->blame = blame;
  lua_pushlstring(L, bytes, (size_t)info.lanes * size);
  lua_replace(L, index);
  arg->kind = CGL_ARG_BYTES;
  arg->bytes.data = lua_tolstring(L, index, &arg->bytes.size);
}


static int arg_refuse(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                      int index, int number) {
  char name[CGL_LUA_ARG_NAME_ROOM];
  return cgl_lua_bad(
      L, S, index,
      "kernel %s is a %s; buffers, pinned memory, generators, parameters, "
      "numbers, booleans, strings of bytes and FFI values can be passed",
      cgl_lua_arg_name(kernel, number, name), cgl_lua_typename(L, index));
}


/* A buffer, pinned memory, a parameter or a generator; kernels take no other
 * object. */
static void arg_read_object(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                            int index, int number, cgl_arg *arg) {
  const cgl_lua_box *box = cgl_lua_box_at(L, index);
  const cgl_lua_kind kind =
      box ? (cgl_lua_kind)(box->tag - cgl_lua_tags) : CGL_LUA_KIND_COUNT;
  char name[CGL_LUA_ARG_NAME_ROOM];
  if (kind == CGL_LUA_buffer)
    *arg = (cgl_arg){.kind = CGL_ARG_BUFFER, .buffer = box->object};
  else if (kind == CGL_LUA_pinned)
    *arg = (cgl_arg){.kind = CGL_ARG_PINNED, .pinned = box->object};
  else if (kind == CGL_LUA_param)
    *arg = (cgl_arg){.kind = CGL_ARG_PARAM, .param = box->object};
  else if (kind == CGL_LUA_generator)
    *arg = (cgl_arg){.kind = CGL_ARG_GENERATOR, .generator = box->object};
  else
    arg_refuse(L, S, kernel, index, number);
  if (!box->object)
    cgl_lua_raise(L, S, CGL_ERROR_RELEASED,
                  "keep a buffer until its last launch, or make a new one",
                  "kernel %s is a %s that was released",
                  cgl_lua_arg_name(kernel, number, name),
                  cgl_lua_kind_name(kind));
}


void cgl_lua_read_arg(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                      int index, int number, cgl_arg *arg) {
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
    cgl_lua_limits_refuse(L, S, "bytes are not taken: they may be addresses");
    arg->kind = CGL_ARG_BYTES;
    arg->bytes.data = lua_tolstring(L, index, &arg->bytes.size);
    break;
  case LUA_TLIGHTUSERDATA:
    cgl_lua_limits_refuse(L, S, "an address is not taken");
    arg->address = (uint64_t)(uintptr_t)lua_touserdata(L, index);
    arg->kind = arg->address ? CGL_ARG_ADDRESS : CGL_ARG_NULL;
    break;
  case CGL_LUA_TCDATA:
    cgl_lua_read_cdata(L, S, index, arg);
    break;
  case LUA_TNIL:
    arg_refuse_nil(L, S, kernel, index, number);
    break;
  case LUA_TUSERDATA:
    arg_read_object(L, S, kernel, index, number, arg);
    break;
  case LUA_TTABLE:
    if (!cgl_lua_read_struct(
            L, S,
            &(cgl_lua_fields){.kernel = kernel, .index = (size_t)number - 1},
            index, arg))
      arg_read_list(L, S, kernel, index, number, arg);
    break;
  default:
    arg_refuse(L, S, kernel, index, number);
  }
}
