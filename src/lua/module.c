/* The C half of the Lua module: luaopen_cgraphlua_core and what belongs to no
   object. */
#include "lua/binding.h"
#include "lua/image.h"

#include <string.h>


static void push_device(lua_State *L, const cgl_device_info *info) {
  lua_createtable(L, 0, 7);
  cgl_lua_set_text(L, "device", info->device);
  cgl_lua_set_text(L, "name", info->name);
  cgl_lua_set_number(L, "memory", (double)info->memory);
  lua_pushfstring(L, "%d.%d", info->compute[0], info->compute[1]);
  lua_setfield(L, -2, "compute");
  lua_pushfstring(L, "%d.%d", info->driver_version / 1000,
                  info->driver_version % 1000 / 10);
  lua_setfield(L, -2, "driver");
  cgl_lua_set_number(L, "multiprocessors", info->multiprocessors);
  cgl_lua_set_number(L, "max_threads_per_block", info->max_threads_per_block);
}


/* cg.devices(), all of the machine; opens none of them */
static int devices(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "devices");
  int n = cgl_device_count();
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    cgl_device_info info;
    cgl_lua_done(L, S, cgl_device_get(i, &info));
    push_device(L, &info);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}


/* cg.device(), the current one */
static int device(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "device");
  if (!lua_isnone(L, 1))
    return cgl_lua_bad(L, S, 1, "no argument expected; set_device chooses");
  push_device(L, cgl_context_device(cgl_lua_context(L, S)));
  return 1;
}


/* cg.set_device(name): its default stream becomes the current stream */
static int set_device(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "set_device");
  cgl_lua_select(L, S, cgl_lua_string(L, S, 1, "the device", NULL));
  push_device(L, cgl_context_device(cgl_lua_context(L, S)));
  return 1;
}


/* cg.synchronize([device]) */
static int synchronize(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "synchronize");
  if (lua_isnoneornil(L, 1)) {
    cgl_lua_done(L, S, cgl_context_synchronize(cgl_lua_context(L, S)));
    cgl_lua_settle(L, S);
    return 0;
  }
  cgl_context *context = NULL;
  cgl_status status =
      cgl_context_open(cgl_lua_string(L, S, 1, "the device", NULL), &context);
  if (!status)
    status = cgl_context_synchronize(context);
  cgl_context_release(context);
  cgl_lua_done(L, S, status);
  return 0;
}


/* cg.mem_get_info() */
static int mem_get_info(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "mem_get_info");
  size_t available, total;
  cgl_lua_done(L, S,
               cgl_context_memory(cgl_lua_context(L, S), &available, &total));
  lua_pushnumber(L, (double)available);
  lua_pushnumber(L, (double)total);
  return 2;
}


/* cg.live([noun]) */
static int live(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "live");
  const char *noun =
      lua_isnoneornil(L, 1) ? "all" : cgl_lua_string(L, S, 1, "the noun", NULL);
  int64_t n = cgl_live(noun);
  if (n < 0)
    return cgl_lua_bad(L, S, 1, "no kind of object is called '%s'", noun);
  lua_pushnumber(L, (double)n);
  return 1;
}


/* cg.debug.fault(k [, code]) */
static int fault(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "debug.fault");
  int64_t k =
      cgl_lua_integer(L, S, 1, "the call's number", 0, CGL_LUA_MAX_WHOLE);
  int code = lua_isnoneornil(L, 2)
                 ? 0
                 : (int)cgl_lua_integer(L, S, 2, "the code", 0, INT32_MAX);
  cgl_lua_done(L, S, cgl_fault((uint64_t)k, code));
  return 0;
}


/* cg.debug.fault_count(): calls since, and what was made to fail */
static int fault_count(lua_State *L) {
  cgl_lua_enter(L, "debug.fault_count");
  const char *hit = NULL;
  lua_pushnumber(L, (double)cgl_fault_count(&hit));
  if (hit)
    lua_pushstring(L, hit);
  else
    lua_pushnil(L);
  return 2;
}


/* core.slip(operation, index, message): a slip of the Lua half's caller,
   raised as the C half raises its own; `operation` is a literal there */
static int slip(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "slip");
  S->operation = luaL_checkstring(L, 1);
  int index = (int)luaL_checkinteger(L, 2);
  return cgl_lua_bad(L, S, index, "%s", luaL_checkstring(L, 3));
}


/* core.released(operation, message): raises the error of a use after release;
   `operation` is a literal there */
static int released(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "released");
  S->operation = luaL_checkstring(L, 1);
  return cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint, "%s",
                       luaL_checkstring(L, 2));
}


/* core.address(buffer): its address, or nil when it was released */
static int address(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "address");
  const cgl_lua_box *box = cgl_lua_box_at(L, 1);
  if (box && box->tag == &cgl_lua_tags[CGL_LUA_buffer] && !box->object)
    return 0;
  cgl_buffer *buffer = cgl_lua_check(L, S, 1, CGL_LUA_buffer);
  lua_pushnumber(L, (double)cgl_buffer_address(buffer));
  return 1;
}


/* core.log(message): what is no failure, for on_log's function */
static int log_message(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "log");
  luaL_checkstring(L, 1);
  lua_settop(L, 1);
  if (S->log_ref == LUA_NOREF)
    return 0;
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->log_ref);
  lua_insert(L, 1);
  /* A log that fails is no reason for the call that logged to fail. */
  lua_pcall(L, 1, 0, 0);
  return 0;
}


/* core.set_ffi(helpers), once, by the Lua half: what needs LuaJIT's FFI */
static int set_ffi(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "set_ffi");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  luaL_unref(L, LUA_REGISTRYINDEX, S->ffi_ref);
  S->ffi_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}


/* cg.debug.forget(): gives up the streams that the state holds by itself, so
   that cg.live counts what the script made; they come back at the next use */
static int forget(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "debug.forget");
  if (S->scope)
    return cgl_lua_raise(L, S, CGL_ERROR_INVALID_ARGUMENT,
                         "call it outside of use and capture",
                         "a stream or a pool is in use");
  cgl_lua_forget(S);
  return 0;
}


static void open_debug(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"fault", fault},
      {"fault_count", fault_count},
      {"forget", forget},
      {NULL, NULL},
  };
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  lua_setfield(L, -2, "debug");
}


LUA_API CGL_API int luaopen_cgraphlua_core(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"devices", devices},           {"device", device},
      {"set_device", set_device},     {"live", live},
      {"mem_get_info", mem_get_info}, {"hide", cgl_lua_hide},
      {"set_ffi", set_ffi},           {"slip", slip},
      {"log", log_message},           {"synchronize", synchronize},
      {"on_log", cgl_lua_on_log},     {"released", released},
      {"address", address},           {NULL, NULL},
  };
  lua_settop(L, 0);
  cgl_lua *S = cgl_lua_open(L); /* index 1, the upvalue of every function */
  cgl_lua_open_errors(L, S);
  cgl_lua_open_hooks(L, S);
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  open_debug(L);
#define X(noun) cgl_lua_open_##noun(L, S);
  CGL_LUA_KINDS(X)
#undef X
  cgl_lua_open_memory(L, S);
  cgl_lua_set_text(L, "version", CGL_VERSION);
  lua_pushlightuserdata(L, NULL);
  lua_setfield(L, -2, "null");
  cgl_image_open(L);
  lua_setfield(L, -2, "png");
  return 1;
}
