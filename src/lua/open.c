/* Opens the C half of the Lua module; has the functions without a type, and the
   start and end of the state. */
#include "cgraphlua/lua.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <luajit.h>

#include "core/base/object.h"
#include "lua/base/limits.h"
#include "lua/border.h"
#include "lua/graph/graph.h"
#include "lua/restrict.h"
#include "lua/types/types.h"

/* The registry's field with what the host chose: a cgl_lua_desc whose objects
   are owned. */
#define CHOSEN "cgraphlua.chosen"


static void device_push(lua_State *L, const cgl_device_info *info) {
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


/* cg.devices(), all devices of the machine; opens no device */
static int cg_devices(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "devices");
  int n = cgl_device_count();
  lua_createtable(L, n, 0);
  for (int i = 0; i < n; i++) {
    cgl_device_info info;
    cgl_lua_done(L, S, cgl_device_get(i, &info));
    device_push(L, &info);
    lua_rawseti(L, -2, i + 1);
  }
  return 1;
}


/* cg.device(), the current device */
static int cg_device(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "device");
  if (!lua_isnone(L, 1))
    return cgl_lua_bad(L, S, 1, "no argument expected; set_device chooses");
  device_push(L, cgl_context_device(cgl_lua_context(L, S)));
  return 1;
}


/* cg.set_device(name): its default stream is the current stream from now on;
   the first use opens it, and no driver is asked before */
static int cg_set_device(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "set_device");
  char name[sizeof S->device];
  cgl_lua_done(
      L, S,
      cgl_device_name(cgl_lua_read_string(L, S, 1, "the device", NULL), name));
  cgl_stream_release(S->stream);
  S->stream = NULL;
  memcpy(S->device, name, sizeof name);
  return 0;
}


/* Releases all that the state itself and the collector hold of a device. */
static void device_let_go(lua_State *L, cgl_lua *S, const char *device) {
  luaJIT_setmode(L, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_FLUSH);
  cgl_lua_graph_run_deferred(L, S);
  cgl_lua_forget(S, device);
  for (int i = 0; i < 2; i++)
    lua_gc(L, LUA_GCCOLLECT, 0);
  S->operation = "reset_device"; /* finalizers may have called us */
  cgl_lua_entered = S;
}


/* cg.reset_device([device]): the device anew, and its default stream current;
   while the device is in use, only what the state itself held of it goes */
static int cg_reset_device(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "reset_device");
  char device[sizeof S->device];
  const char *name = lua_isnoneornil(L, 1)
                         ? ""
                         : cgl_lua_read_string(L, S, 1, "the device", NULL);
  if (S->scope)
    return cgl_lua_raise(L, S, CGL_ERROR_INVALID_ARGUMENT,
                         "call it outside of use and capture",
                         "a stream or a pool is in use");
  if (!*name && S->stream)
    name = cgl_context_device(cgl_stream_context(S->stream))->device;
  else if (!*name)
    name = S->device;
  if (S->home || S->pool)
    return cgl_lua_raise(L, S, CGL_ERROR_IN_USE,
                         "cgl_device_reset is the host program's to call",
                         "the state has a stream or a pool of its host");
  cgl_lua_done(L, S, cgl_device_name(name, device));
  device_let_go(L, S, *device ? device : NULL);
  if (!S->stream)
    memcpy(S->device, device, sizeof device);
  cgl_lua_site(L, S);
  cgl_lua_done(L, S, cgl_device_reset(device));
  cgl_stream_release(S->stream);
  S->stream = NULL;
  memcpy(S->device, device, sizeof device);
  device_push(L, cgl_context_device(cgl_lua_context(L, S)));
  return 1;
}


/* cg.set_kernel_deadline(seconds): for each launch; 0: no limit */
static int cg_set_kernel_deadline(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "set_kernel_deadline");
  char text[CGL_LUA_VALUE_ROOM];
  const double seconds = lua_tonumber(L, 1);
  if (lua_type(L, 1) != LUA_TNUMBER || !(seconds >= 0 && seconds <= 1e9))
    return cgl_lua_bad(L, S, 1, "seconds from 0 to 1e9 expected, got %s",
                       cgl_lua_value_text(L, S, 1, text));
  cgl_lua_done(L, S,
               cgl_context_set_kernel_deadline(cgl_lua_context(L, S), seconds));
  return 0;
}


/* cg.synchronize(): the streams of this state; cg.synchronize("device"): all of
   the current device; cg.synchronize(name): all of the named one */
static int cg_synchronize(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "synchronize");
  if (lua_isnoneornil(L, 1)) {
    cgl_lua_done(L, S, cgl_lua_wait_streams(L, S));
    cgl_lua_graph_run_deferred(L, S);
    return 0;
  }
  cgl_lua_limits_refuse(L, S, "a state waits for its own work");
  const char *device = cgl_lua_read_string(L, S, 1, "the device", NULL);
  if (strcmp(device, "device")) {
    cgl_lua_done(L, S, cgl_lua_synchronize(device));
    return 0;
  }
  cgl_lua_done(L, S, cgl_context_synchronize(cgl_lua_context(L, S)));
  cgl_lua_graph_run_deferred(L, S);
  return 0;
}


/* cg.mem_get_info() */
static int cg_mem_get_info(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "mem_get_info");
  size_t available, total;
  cgl_lua_done(L, S,
               cgl_context_memory(cgl_lua_context(L, S), &available, &total));
  lua_pushnumber(L, (double)available);
  lua_pushnumber(L, (double)total);
  return 2;
}


/* cg.live([noun]) */
static int cg_live(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "live");
  const char *noun = lua_isnoneornil(L, 1)
                         ? "all"
                         : cgl_lua_read_string(L, S, 1, "the noun", NULL);
  int64_t n = cgl_live(noun);
  if (n < 0)
    return cgl_lua_bad(L, S, 1, "no kind of object is called '%s'", noun);
  lua_pushnumber(L, (double)n);
  return 1;
}


/* cg.on_log(fn [, level]): the function that gets this state's messages from
   that level up; nil for silence, false for the engine's log */
static int cg_on_log(lua_State *L) {
  static const char *const levels[] = {
#define X(name, word) word,
      CGL_LOG_LEVELS(X)
#undef X
          NULL};
  cgl_lua *S = cgl_lua_enter(L, "on_log");
  lua_settop(L, 2);
  if (!lua_isnil(L, 1) && !(lua_isboolean(L, 1) && !lua_toboolean(L, 1)))
    cgl_lua_read_function(L, S, 1);
  const int least = lua_isnil(L, 2)
                        ? CGL_LOG_INFO
                        : cgl_lua_read_choice(L, S, 2, "the level", levels);
  lua_settop(L, 1);
  cgl_lua_log_to(L, S, (cgl_log_level)least);
  return 0;
}


static const char *const error_kinds[] = {"object", "string", NULL};


/* cg.errors([kind]): returns the former kind */
static int cg_errors(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "errors");
  const char *former = error_kinds[S->string_errors];
  if (!lua_isnoneornil(L, 1))
    S->string_errors = cgl_lua_read_choice(L, S, 1, "the kind", error_kinds);
  lua_pushstring(L, former);
  return 1;
}


/* cg.last_error(): the object of the state's last error, or nil */
static int cg_last_error(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "last_error");
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->last_error_ref);
  if (!lua_istable(L, -1))
    lua_pushnil(L);
  return 1;
}


/* cg.clock(): seconds, which never go back */
static int cg_clock(lua_State *L) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  lua_pushnumber(L, (double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
  return 1;
}


/* cg.sleep(seconds); a signal's hook may stop it */
static int cg_sleep(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "sleep");
  char text[CGL_LUA_VALUE_ROOM];
  const double seconds = lua_tonumber(L, 1);
  if (lua_type(L, 1) != LUA_TNUMBER || !(seconds >= 0 && seconds <= 1e9))
    return cgl_lua_bad(L, S, 1, "seconds from 0 to 1e9 expected, got %s",
                       cgl_lua_value_text(L, S, 1, text));
  struct timespec left = {.tv_sec = (time_t)seconds};
  left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
  if (S->limits)
    cgl_lua_limits_sleep(L, S, seconds);
  else
    while (nanosleep(&left, &left) && errno == EINTR)
      cgl_lua_run_debug_hook(L, S);
  return 0;
}


/* cg.debug.fault(k [, code]) */
static int debug_fault(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "debug.fault");
  int64_t k =
      cgl_lua_read_integer(L, S, 1, "the call's number", 0, CGL_LUA_MAX_WHOLE);
  int code = lua_isnoneornil(L, 2)
                 ? 0
                 : (int)cgl_lua_read_integer(L, S, 2, "the code", 0, INT32_MAX);
  cgl_lua_done(L, S, cgl_fault((uint64_t)k, code));
  return 0;
}


/* cg.debug.fault_count(): calls since, and the function that was made to fail,
   or nil */
static int debug_fault_count(lua_State *L) {
  cgl_lua_enter(L, "debug.fault_count");
  const char *hit = NULL;
  lua_pushnumber(L, (double)cgl_fault_count(&hit));
  if (hit)
    lua_pushstring(L, hit);
  else
    lua_pushnil(L);
  return 2;
}


/* core.bad_argument(operation, index, message): raises as the C half does; the
   caller keeps the string `operation` */
static int core_bad_argument(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "bad_argument");
  S->operation = luaL_checkstring(L, 1);
  int index = (int)luaL_checkinteger(L, 2);
  return cgl_lua_bad(L, S, index, "%s", luaL_checkstring(L, 3));
}


/* core.released(operation, message): raises the error of a use after release;
   the caller keeps the string `operation` */
static int core_released(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "released");
  S->operation = luaL_checkstring(L, 1);
  return cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint, "%s",
                       luaL_checkstring(L, 2));
}


/* core.address(buffer): its address, or nil when it was released */
static int core_address(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "address");
  const cgl_lua_box *box = cgl_lua_box_of(L, 1, CGL_LUA_buffer);
  if (box && !box->object)
    return 0;
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  lua_pushnumber(L, (double)cgl_lua_buffer_address(L, S, buffer));
  return 1;
}


/* core.log(message): a warning of the Lua half's own */
static int core_log(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "log");
  cgl_lua_log(L, S, CGL_LOG_WARNING, luaL_checkstring(L, 1));
  return 0;
}


/* core.set_ffi(helpers), called once by the Lua half: functions on LuaJIT's
   FFI */
static int core_set_ffi(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "set_ffi");
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  luaL_unref(L, LUA_REGISTRYINDEX, S->ffi_ref);
  S->ffi_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  return 0;
}


/* cg.debug.forget(): releases the streams and generators that the state holds
   by itself, so that cg.live counts what the script made; the next use makes
   them again */
static int debug_forget(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "debug.forget");
  if (S->scope)
    return cgl_lua_raise(L, S, CGL_ERROR_INVALID_ARGUMENT,
                         "call it outside of use and capture",
                         "a stream or a pool is in use");
  cgl_lua_forget(S, NULL);
  return 0;
}


static void open_debug(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"fault", debug_fault},
      {"fault_count", debug_fault_count},
      {"forget", debug_forget},
      {NULL, NULL},
  };
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  lua_setfield(L, -2, "debug");
}


/* Type names that stay interned, for comparisons by address. */
static void state_keep_type_texts(lua_State *L, cgl_lua *S) {
  for (int type = 0; type < CGL_TYPE_COUNT; type++) {
    lua_pushstring(L, cgl_type_name((cgl_type)type));
    S->type_texts[type] = lua_topointer(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX);
  }
}


/* __gc of the state: lua_close.  C frames of open scopes may still be on the
   stack (os.exit inside a scope), but they will not run again. */
static int state_gc(lua_State *L) {
  cgl_lua *S = lua_touserdata(L, lua_upvalueindex(1));
  if (lua_touserdata(L, 1) != S || S->closed)
    return 0;
  cgl_lua_limits_end(L, S);
  cgl_lua_graph_run_deferred(L, S);
  S->closed = true;
  cgl_lua_log_detach(S);
  for (cgl_lua_scope *scope = S->scope; scope; scope = scope->outer) {
    cgl_stream_release(scope->stream);
    cgl_pool_release(scope->pool);
  }
  cgl_pool_release(S->pool);
  cgl_stream_release(S->home);
  cgl_lua_forget(S, NULL);
  return 0;
}


/* Whether errors are strings: what the host chose (cgl_lua_preload), or else
   the environment. */
static bool state_begins_with_strings(lua_State *L, cgl_lua_errors chosen) {
  const char *text = getenv("CGRAPHLUA_ERRORS");
  if (chosen != CGL_LUA_ERRORS_DEFAULT || !text || !*text)
    return chosen == CGL_LUA_ERRORS_STRING;
  for (int kind = 0; error_kinds[kind]; kind++)
    if (!strcmp(text, error_kinds[kind]))
      return kind;
  return luaL_error(
      L, "CGRAPHLUA_ERRORS must be 'object' or 'string', not '%s'", text);
}


static void state_take_choice(lua_State *L, cgl_lua *S) {
  static const cgl_lua_desc none;
  lua_getfield(L, LUA_REGISTRYINDEX, CHOSEN);
  const cgl_lua_desc *chosen = lua_touserdata(L, -1);
  lua_pop(L, 1); /* the registry keeps it */
  chosen = chosen ? chosen : &none;
  S->string_errors = state_begins_with_strings(L, chosen->errors);
  S->home = chosen->stream ? cgl_stream_retain(chosen->stream) : NULL;
  S->pool = chosen->pool ? cgl_pool_retain(chosen->pool) : NULL;
}


/* Pushes the state, at index 1: the upvalue of every function. */
static cgl_lua *state_push(lua_State *L) {
  cgl_lua *S = lua_newuserdata(L, sizeof *S);
  memset(S, 0, sizeof *S);
  S->operation = "require";
  S->ffi_ref = S->log_ref = LUA_NOREF;
  lua_createtable(L, 0, 2);
  lua_pushvalue(L, -2);
  lua_pushcclosure(L, state_gc, 1);
  lua_setfield(L, -2, "__gc");
  cgl_lua_set_text(L, "__metatable", "cgraphlua.state");
  lua_setmetatable(L, -2);
  if (luaL_loadbuffer(L, "return", 6, "=cgraphlua"))
    lua_error(L);
  S->empty_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  lua_newtable(L);
  lua_createtable(L, 0, 1);
  cgl_lua_set_text(L, "__mode", "k");
  lua_setmetatable(L, -2);
  S->streams_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  state_keep_type_texts(L, S);
  state_take_choice(L, S);
  cgl_lua_log_attach(S);
  return S;
}


int luaopen_cgraphlua_core(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"devices", cg_devices},
      {"device", cg_device},
      {"set_device", cg_set_device},
      {"reset_device", cg_reset_device},
      {"set_kernel_deadline", cg_set_kernel_deadline},
      {"synchronize", cg_synchronize},
      {"mem_get_info", cg_mem_get_info},
      {"live", cg_live},
      {"on_log", cg_on_log},
      {"errors", cg_errors},
      {"last_error", cg_last_error},
      {"hide", cgl_lua_hide},
      {"set_ffi", core_set_ffi},
      {"bad_argument", core_bad_argument},
      {"released", core_released},
      {"address", core_address},
      {"log", core_log},
      {"nearest", cgl_lua_nearest},
      {"clock", cg_clock},
      {"sleep", cg_sleep},
      {NULL, NULL},
  };
  lua_settop(L, 0);
  cgl_lua *S = state_push(L);
  cgl_lua_error_open(L, S);
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  open_debug(L);
#define X(noun) cgl_lua_open_##noun(L, S);
  CGL_LUA_KINDS(X)
#undef X
  cgl_lua_open_border(L, S);
  cgl_lua_restrict_open(L);
  cgl_lua_open_snapshot(L);
  cgl_lua_open_png(L);
  cgl_lua_open_algo(L);
  cgl_lua_open_blas(L);
  cgl_lua_open_fft(L);
  cgl_lua_set_text(L, "version", cgl_version(NULL));
  lua_pushlightuserdata(L, NULL);
  lua_setfield(L, -2, "null");
  cgl_lua_set_number(L, "launched", cgl_ranks_launched());
  return 1;
}


static int choice_gc(lua_State *L) {
  cgl_lua_desc *chosen = lua_touserdata(L, 1);
  cgl_stream_release(chosen->stream);
  cgl_pool_release(chosen->pool);
  *chosen = (cgl_lua_desc){.stream = NULL};
  return 0;
}


static void preload(lua_State *L, const cgl_lua_desc *desc) {
  static const cgl_lua_desc none;
  desc = desc ? desc : &none;
  if (desc->errors > CGL_LUA_ERRORS_STRING)
    luaL_error(L, "cgl_lua_preload: errors: %d is no CGL_LUA_ERRORS_...",
               (int)desc->errors);
  if (desc->pool &&
      (!desc->stream || ((const cgl_object *)desc->pool)->context !=
                            cgl_stream_context(desc->stream)))
    luaL_error(L, "cgl_lua_preload: the pool is %s",
               desc->stream ? "of another device than the stream"
                            : "given without a stream of its device");
  cgl_lua_desc *chosen = lua_newuserdata(L, sizeof *chosen);
  *chosen = (cgl_lua_desc){.errors = desc->errors};
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, choice_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  chosen->stream = desc->stream ? cgl_stream_retain(desc->stream) : NULL;
  chosen->pool = desc->pool ? cgl_pool_retain(desc->pool) : NULL;
  lua_setfield(L, LUA_REGISTRYINDEX, CHOSEN);
  lua_getglobal(L, "package");
  if (!lua_istable(L, -1))
    luaL_error(L, "cgl_lua_preload: open Lua's package library first");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, luaopen_cgraphlua_core);
  lua_setfield(L, -2, "cgraphlua.core");
  lua_pop(L, 2);
}


void cgl_lua_preload(lua_State *L, const cgl_lua_desc *desc) {
  if (desc && desc->restricted)
    luaL_error(L, "cgl_lua_preload: cgl_lua_open makes a restricted state");
  preload(L, desc);
}


void cgl_lua_open(lua_State *L, const cgl_lua_desc *desc) {
  const cgl_lua_limits *limits = desc ? desc->restricted : NULL;
  if (cgl_lua_restrict_push_module(L)) {
    if (limits)
      luaL_error(L, "cgl_lua_open: the state has its limits already");
    return;
  }
  preload(L, desc);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "cgraphlua");
  lua_call(L, 1, 1);
  if (!limits)
    return;
  lua_getfield(L, -1, "restrict");
  cgl_lua_restrict_push_limits(L, limits);
  lua_call(L, 1, 0);
  lua_pop(L, 1);
  cgl_lua_restrict_push_module(L);
}
