#include "lua/restrict.h"

#include <stdlib.h>
#include <string.h>

#include "lua/base/limits.h"
#include "lua/border.h"
#include "lua/values/values.h"

/* The registry's field with the module's table of a restricted state. */
#define MODULE "cgraphlua.restricted"
#define MIB ((size_t)1 << 20)
#define MOST_SECONDS 1e9

/* Amounts of cgl_lua_limits: name, default. */
#define AMOUNTS(X)           \
  X(device_bytes, 256 * MIB) \
  X(pinned_bytes, 64 * MIB)  \
  X(objects, 4096)           \
  X(graph_nodes, 10000)      \
  X(lua_bytes, 64 * MIB)
#define TIMES(X) \
  X(seconds, 1)  \
  X(kernel_seconds, 1)

/* The arguments of core.restrict. */
enum { LIMITS = 1, GLOBALS, STRINGS, METHODS, MODULE_TABLE };


/* ---- limits ---- */

void cgl_lua_restrict_push_limits(lua_State *L, const cgl_lua_limits *limits) {
  lua_newtable(L);
#define X(name, otherwise) \
  if (limits->name)        \
    cgl_lua_set_number(L, #name, (double)limits->name);
  AMOUNTS(X)
  TIMES(X)
#undef X
  lua_createtable(L, (int)limits->nkernels, 0);
  for (size_t i = 0; i < limits->nkernels; i++) {
    lua_pushstring(L, limits->kernels[i]);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "kernels");
}


static double seconds_read(lua_State *L, cgl_lua *S, const char *name,
                           double otherwise) {
  if (!cgl_lua_option(L, S, LIMITS, name))
    return otherwise;
  const double seconds = lua_tonumber(L, -1);
  if (lua_type(L, -1) != LUA_TNUMBER ||
      !(seconds > 0 && seconds <= MOST_SECONDS))
    cgl_lua_bad(L, S, LIMITS, "option '%s' must be seconds up to 1e9", name);
  lua_pop(L, 1);
  return seconds;
}


static bool is_hash(const char *text) {
  return strlen(text) == sizeof(cgl_lua_hash) - 1 &&
         strspn(text, "0123456789abcdef") == sizeof(cgl_lua_hash) - 1;
}


/* Checks the list of kernels, which is on top; returns its length. */
static size_t kernels_check(lua_State *L, cgl_lua *S) {
  if (!lua_istable(L, -1))
    cgl_lua_bad(L, S, LIMITS, "option 'kernels' must be a list of hashes");
  const size_t n = lua_objlen(L, -1);
  for (size_t i = 1; i <= n; i++) {
    lua_rawgeti(L, -1, (int)i);
    if (lua_type(L, -1) != LUA_TSTRING || !is_hash(lua_tostring(L, -1)))
      cgl_lua_bad(L, S, LIMITS,
                  "option 'kernels': entry %d is no hash of cg.kernel_hash",
                  (int)i);
    lua_pop(L, 1);
  }
  return n;
}


/* The list of kernels as C has it (malloc'ed), or NULL without memory. */
static cgl_lua_hash *kernels_copy(lua_State *L, size_t n) {
  cgl_lua_hash *kernels = calloc(n + 1, sizeof *kernels);
  for (size_t i = 0; kernels && i < n; i++) {
    lua_rawgeti(L, -1, (int)i + 1);
    memcpy(kernels[i], lua_tostring(L, -1), sizeof *kernels);
    lua_pop(L, 1);
  }
  return kernels;
}


static void limits_read(lua_State *L, cgl_lua *S, cgl_lua_limits *limits) {
  static const char *const known[] = {"kernels",
#define X(name, otherwise) #name,
                                      AMOUNTS(X) TIMES(X)
#undef X
                                          NULL};
  cgl_lua_options(L, S, LIMITS, known);
#define X(name, otherwise)                                              \
  limits->name = (size_t)cgl_lua_option_integer(L, S, LIMITS, #name, 1, \
                                                CGL_LUA_MAX_WHOLE, otherwise);
  AMOUNTS(X)
#undef X
#define X(name, otherwise) limits->name = seconds_read(L, S, #name, otherwise);
  TIMES(X)
#undef X
}


/* ---- the state ---- */

static void state_check(lua_State *L, cgl_lua *S) {
  if (S->limits)
    cgl_lua_limits_raise(L, S, "the state has its limits already");
  if (!lua_pushthread(L) || S->scope)
    cgl_lua_raise(L, S, CGL_ERROR_INVALID_ARGUMENT,
                  "call it in the main thread, outside of use and capture",
                  "a coroutine, a stream or a pool is in use");
  lua_pop(L, 1);
}


/* Leaves the methods of a kind that the set on top has. */
static void methods_cut(lua_State *L, const cgl_lua *S, cgl_lua_kind kind) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, S->metatable_refs[kind]);
  lua_getfield(L, -1, "methods");
  for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
    lua_pushvalue(L, -2);
    lua_rawget(L, -6);
    const bool stays = lua_toboolean(L, -1);
    lua_pop(L, 1);
    if (!stays) { /* a field that is there may be cleared meanwhile */
      lua_pushvalue(L, -2);
      lua_pushnil(L);
      lua_rawset(L, -5);
    }
  }
  lua_pop(L, 2);
}


static void all_methods_cut(lua_State *L, const cgl_lua *S) {
  for (int kind = 0; kind < CGL_LUA_KIND_COUNT; kind++) {
    lua_getfield(L, METHODS, cgl_lua_kind_name((cgl_lua_kind)kind));
    if (!lua_istable(L, -1)) { /* then nothing is allowed */
      lua_pop(L, 1);
      lua_newtable(L);
    }
    methods_cut(L, S, (cgl_lua_kind)kind);
    lua_pop(L, 1);
  }
}


/* Strings find their methods in STRINGS; chunks that are loaded from now on,
   and coroutines that are made, have GLOBALS. */
static void globals_exchange(lua_State *L) {
  lua_pushliteral(L, "");
  if (!lua_getmetatable(L, -1)) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setmetatable(L, -3);
  }
  lua_pushvalue(L, STRINGS);
  lua_setfield(L, -2, "__index");
  cgl_lua_set_text(L, "__metatable", "string");
  lua_pop(L, 2);
  lua_pushvalue(L, MODULE_TABLE);
  lua_setfield(L, LUA_REGISTRYINDEX, MODULE);
  lua_pushvalue(L, GLOBALS);
  lua_replace(L, LUA_GLOBALSINDEX);
}


/* From now on the stream is the state's. */
static void state_use_own(cgl_lua *S, cgl_stream *stream, cgl_pool *pool) {
  cgl_stream_release(S->stream);
  cgl_stream_release(S->home);
  S->stream = cgl_stream_retain(stream);
  S->home = cgl_stream_retain(stream);
  if (!S->pool)
    S->pool = cgl_pool_retain(pool);
  *S->device = '\0';
}


/* core.restrict(limits, globals, strings, methods, module) */
static int core_restrict(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "restrict");
  cgl_lua_limits limits = {.nkernels = 0};
  lua_settop(L, MODULE_TABLE);
  state_check(L, S);
  limits_read(L, S, &limits);
  if (!cgl_lua_option(L, S, LIMITS, "kernels"))
    lua_newtable(L);
  limits.nkernels = kernels_check(L, S);
  const int list = lua_gettop(L);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_stream **stream = cgl_lua_new_stream(L, S);
  cgl_pool **pool = cgl_lua_new_pool(L, S);
  const cgl_pool_desc desc = {.max_bytes = limits.device_bytes};
  cgl_lua_done(L, S, cgl_stream_create(context, 0, stream));
  if (!S->pool)
    cgl_lua_done(L, S, cgl_pool_create(context, &desc, pool));
  const cgl_status status = cgl_stream_isolate(*stream, limits.kernel_seconds);
  if (status != CGL_LUA_NOT_SUPPORTED)
    cgl_lua_done(L, S, status);
  lua_pushvalue(L, list);
  cgl_lua_limits_begin(L, S, &limits, kernels_copy(L, limits.nkernels));
  all_methods_cut(L, S);
  state_use_own(S, *stream, *pool);
  globals_exchange(L);
  return 0;
}


/* core.run(fn, ...), for who restricted the state: as pcall, with the time
   anew; what comes after it is the caller's own, without a limit of time */
static int core_run(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "run");
  cgl_lua_read_function(L, S, 1);
  if (!S->limits)
    return luaL_error(L, "run: the state is not restricted");
  const int nargs = lua_gettop(L) - 1;
  const bool well = !cgl_lua_limits_pcall(L, S, nargs, LUA_MULTRET, 0);
  cgl_lua_limits_set_deadline(L, S, MOST_SECONDS);
  lua_pushboolean(L, well);
  lua_insert(L, 1);
  return lua_gettop(L);
}


/* core.check_time() */
static int core_check_time(lua_State *L) {
  cgl_lua_limits_check_time(L, cgl_lua_enter(L, "check_time"));
  return 0;
}


/* ---- frozen tables ---- */

static int frozen_assign(lua_State *L) {
  return luaL_error(L, "restricted: '%s' is not assigned to",
                    lua_isstring(L, 2) ? lua_tostring(L, 2) : "it");
}


/* core.freeze(table): a userdata that shows the table's fields, and takes no
   assignment, raw or not */
static int core_freeze(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_newuserdata(L, 1);
  lua_createtable(L, 0, 3);
  lua_pushvalue(L, 1);
  lua_setfield(L, -2, "__index");
  lua_pushcfunction(L, frozen_assign);
  lua_setfield(L, -2, "__newindex");
  cgl_lua_set_text(L, "__metatable", "frozen");
  lua_setmetatable(L, -2);
  return 1;
}


void cgl_lua_restrict_open(lua_State *L) {
  static const luaL_Reg functions[] = {{"restrict", core_restrict},
                                       {"run", core_run},
                                       {"check_time", core_check_time},
                                       {"freeze", core_freeze},
                                       {NULL, NULL}};
  cgl_lua_functions(L, functions);
}


/* ---- for the host ---- */

bool cgl_lua_restrict_push_module(lua_State *L) {
  lua_getfield(L, LUA_REGISTRYINDEX, MODULE);
  if (!lua_isnil(L, -1))
    return true;
  lua_pop(L, 1);
  return false;
}


void cgl_lua_set_deadline(lua_State *L, double seconds) {
  cgl_lua *S = cgl_lua_border_state(L);
  if (!S || !S->limits)
    luaL_error(L, "cgl_lua_set_deadline: the state is not restricted");
  else if (!(seconds >= 0 && seconds <= MOST_SECONDS))
    luaL_error(L, "cgl_lua_set_deadline: %f seconds are not in 0..1e9",
               seconds);
  else
    cgl_lua_limits_set_deadline(
        L, S, seconds > 0 ? seconds : S->limits->most.seconds);
}


int cgl_lua_pcall(lua_State *L, int nargs, int nresults, int handler) {
  cgl_lua *S = cgl_lua_border_state(L);
  return S && S->limits ? cgl_lua_limits_pcall(L, S, nargs, nresults, handler)
                        : lua_pcall(L, nargs, nresults, handler);
}
