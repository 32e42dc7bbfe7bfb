/* cgraphlua.generator: random numbers, for buffers and for kernels that take a
   cgl_philox.  Every device has a default generator in each Lua state. */
#include "lua/binding.h"

#include <stdio.h>
#include <stdlib.h>

/* What a generator starts from when no seed is given: as torch's. */
static const uint64_t standard_seed = 67280421310721;


static cgl_generator *check(lua_State *L, cgl_lua *S, int index) {
  return cgl_lua_check(L, S, index, CGL_LUA_generator);
}


static uint64_t read_seed(lua_State *L, cgl_lua *S, int index) {
  if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_lua_cdata data;
    cgl_lua_cdata_read(L, S, index, &data);
    if (data.kind == CGL_LUA_CDATA_UINT)
      return data.u;
  }
  return (uint64_t)cgl_lua_integer(L, S, index, "the seed", 0,
                                   CGL_LUA_MAX_WHOLE);
}


/* A number, or uint64_t cdata when no number is exact. */
static void push_uint64(lua_State *L, cgl_lua *S, uint64_t x) {
  if (x <= (uint64_t)CGL_LUA_MAX_WHOLE) {
    lua_pushnumber(L, (double)x);
    return;
  }
  cgl_lua_ffi(L, S, "uint64");
  lua_pushnumber(L, (double)(x >> 32));
  lua_pushnumber(L, (double)(x & UINT32_MAX));
  lua_call(L, 2, 1);
}


static void create(lua_State *L, cgl_lua *S, cgl_context *context,
                   uint64_t seed, cgl_generator **slot) {
  cgl_lua_try(L, S, cgl_generator_create(context, seed, slot));
}


/* The current device's default generator, borrowed. */
static cgl_generator *default_generator(lua_State *L, cgl_lua *S) {
  cgl_context *context = cgl_lua_context(L, S);
  for (cgl_lua_default *d = S->defaults; d; d = d->next)
    if (d->context == context)
      return d->generator;
  cgl_lua_default *made = malloc(sizeof *made);
  if (!made)
    cgl_lua_raise(L, S, CGL_ERROR_NO_MEMORY, "", "no memory for a generator");
  cgl_status status =
      cgl_generator_create(context, standard_seed, &made->generator);
  if (status) {
    free(made);
    cgl_lua_done(L, S, status);
  }
  made->context = context;
  made->next = S->defaults;
  S->defaults = made;
  return made->generator;
}


/* cg.generator([seed]) */
static int new_generator(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator");
  uint64_t seed = lua_isnoneornil(L, 1) ? standard_seed : read_seed(L, S, 1);
  cgl_context *context = cgl_lua_context(L, S);
  create(L, S, context, seed, cgl_lua_new(L, S, CGL_LUA_generator));
  return 1;
}


/* cg.default_generator() */
static int get_default(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "default_generator");
  cgl_generator *generator = default_generator(L, S);
  cgl_generator **slot = cgl_lua_new(L, S, CGL_LUA_generator);
  *slot = cgl_generator_retain(generator);
  return 1;
}


/* cg.manual_seed(seed) returns the default generator. */
static int seed_default(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "manual_seed");
  uint64_t seed = read_seed(L, S, 1);
  cgl_generator *generator = default_generator(L, S);
  cgl_lua_done(
      L, S, cgl_generator_manual_seed(generator, cgl_lua_stream(L, S), seed));
  cgl_generator **slot = cgl_lua_new(L, S, CGL_LUA_generator);
  *slot = cgl_generator_retain(generator);
  return 1;
}


static int generator_manual_seed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:manual_seed");
  cgl_generator *generator = check(L, S, 1);
  uint64_t seed = read_seed(L, S, 2);
  cgl_lua_done(
      L, S, cgl_generator_manual_seed(generator, cgl_lua_stream(L, S), seed));
  lua_settop(L, 1);
  return 1;
}


static int generator_initial_seed(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "generator:initial_seed");
  push_uint64(L, S, cgl_generator_initial_seed(check(L, S, 1)));
  return 1;
}


static int generator_seed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:seed");
  cgl_generator *generator = check(L, S, 1);
  uint64_t seed = 0;
  cgl_lua_done(L, S,
               cgl_generator_seed(generator, cgl_lua_stream(L, S), &seed));
  push_uint64(L, S, seed);
  return 1;
}


static int generator_get_offset(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:get_offset");
  cgl_generator *generator = check(L, S, 1);
  uint64_t offset = 0;
  cgl_lua_done(
      L, S, cgl_generator_get_offset(generator, cgl_lua_stream(L, S), &offset));
  push_uint64(L, S, offset);
  return 1;
}


static int generator_set_offset(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:set_offset");
  cgl_generator *generator = check(L, S, 1);
  int64_t offset = cgl_lua_integer(L, S, 2, "the offset", 0, CGL_LUA_MAX_WHOLE);
  cgl_lua_done(L, S,
               cgl_generator_set_offset(generator, cgl_lua_stream(L, S),
                                        (uint64_t)offset));
  lua_settop(L, 1);
  return 1;
}


static int generator_clone_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:clone_state");
  cgl_generator *generator = check(L, S, 1);
  cgl_stream *stream = cgl_lua_stream(L, S);
  cgl_generator **slot = cgl_lua_new(L, S, CGL_LUA_generator);
  cgl_lua_done(L, S, cgl_generator_clone_state(generator, stream, slot));
  return 1;
}


static int generator_get_state(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "generator:graphsafe_get_state");
  cgl_generator *generator = check(L, S, 1);
  cgl_generator **slot = cgl_lua_new(L, S, CGL_LUA_generator);
  cgl_lua_done(L, S, cgl_generator_graphsafe_get_state(generator, slot));
  return 1;
}


static int generator_set_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:graphsafe_set_state");
  cgl_lua_done(
      L, S, cgl_generator_graphsafe_set_state(check(L, S, 1), check(L, S, 2)));
  lua_settop(L, 1);
  return 1;
}


/* ---- buffers ---- */

/* The generator that stands before the other arguments, or the default one;
 *next is the argument after it. */
static cgl_generator *pick(lua_State *L, cgl_lua *S, int *next) {
  *next = lua_isnumber(L, 2) || lua_type(L, 2) == CGL_LUA_TCDATA ? 2 : 3;
  if (*next == 2 || lua_isnoneornil(L, 2))
    return default_generator(L, S);
  return check(L, S, 2);
}


static double number(lua_State *L, cgl_lua *S, int index, const char *what,
                     double otherwise) {
  cgl_lua_cdata data;
  if (lua_isnoneornil(L, index))
    return otherwise;
  if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_lua_cdata_read(L, S, index, &data);
    if (data.kind == CGL_LUA_CDATA_NUMBER)
      return data.number;
    if (data.kind == CGL_LUA_CDATA_INT)
      return (double)data.i;
    if (data.kind == CGL_LUA_CDATA_UINT)
      return (double)data.u;
  } else if (lua_type(L, index) == LUA_TNUMBER)
    return lua_tonumber(L, index);
  cgl_lua_bad(L, S, index, "%s must be a number, got %s", what,
              luaL_typename(L, index));
  return 0;
}


/* b:uniform and b:normal: two numbers, 0 and 1 unless they are given. */
static int fill_real(lua_State *L, const char *operation, const char *first,
                     const char *second,
                     cgl_status (*fill)(cgl_buffer *, cgl_generator *,
                                        cgl_stream *, double, double)) {
  cgl_lua *S = cgl_lua_issue(L, operation);
  cgl_buffer *buffer = cgl_lua_check(L, S, 1, CGL_LUA_buffer);
  int at;
  cgl_generator *generator = pick(L, S, &at);
  double a = number(L, S, at, first, 0), b = number(L, S, at + 1, second, 1);
  cgl_lua_done(L, S, fill(buffer, generator, cgl_lua_stream(L, S), a, b));
  lua_settop(L, 1);
  return 1;
}


/* b:uniform([gen,] [low, high]) */
int cgl_lua_buffer_uniform(lua_State *L) {
  return fill_real(L, "buffer:uniform", "the lower bound", "the upper bound",
                   cgl_buffer_uniform);
}


/* b:normal([gen,] [mean, std]) */
int cgl_lua_buffer_normal(lua_State *L) {
  return fill_real(L, "buffer:normal", "the mean", "the standard deviation",
                   cgl_buffer_normal);
}


/* A bound, which 64-bit cdata may put past 2^53. */
static __int128 bound(lua_State *L, cgl_lua *S, int index, const char *what) {
  if (lua_type(L, index) == CGL_LUA_TCDATA) {
    cgl_lua_cdata data;
    cgl_lua_cdata_read(L, S, index, &data);
    if (data.kind == CGL_LUA_CDATA_INT)
      return data.i;
    if (data.kind == CGL_LUA_CDATA_UINT)
      return data.u;
  }
  return cgl_lua_integer(L, S, index, what, -CGL_LUA_MAX_WHOLE,
                         CGL_LUA_MAX_WHOLE);
}


/* The number of values from 0 to the type's largest; 0: 2^64. */
static uint64_t count_of(cgl_type type) {
  switch (type) {
  case CGL_TYPE_bool:
    return 2;
  case CGL_TYPE_uint64:
    return 0;
  case CGL_TYPE_int8:
  case CGL_TYPE_int16:
  case CGL_TYPE_int32:
  case CGL_TYPE_int64:
    return UINT64_C(1) << (8 * cgl_type_bytes(type) - 1);
  default:
    return UINT64_C(1) << (8 * cgl_type_bytes(type));
  }
}


/* b:random([gen,] [[low,] high]): whole numbers from low to below high */
int cgl_lua_buffer_random(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:random");
  cgl_buffer *buffer = cgl_lua_check(L, S, 1, CGL_LUA_buffer);
  int at;
  cgl_generator *generator = pick(L, S, &at);
  int64_t low = 0;
  uint64_t count = 0;
  cgl_type type = cgl_buffer_type(buffer);
  if (lua_isnoneornil(L, at) && lua_isnoneornil(L, at + 1)) {
    if (cgl_type_bytes(type) < 8 || type == CGL_TYPE_int64)
      count = count_of(type);
  } else {
    bool pair = !lua_isnoneornil(L, at + 1);
    __int128 first = pair ? bound(L, S, at, "the lower bound") : 0;
    __int128 end = bound(L, S, at + pair, "the upper bound");
    if (first > INT64_MAX)
      return cgl_lua_bad(L, S, at, "the lower bound must be below 2^63");
    if (end <= first)
      return cgl_lua_bad(L, S, at + pair,
                         "the upper bound, which is not drawn itself, must be "
                         "above the lower one");
    low = (int64_t)first;
    count = (uint64_t)(end - first);
  }
  cgl_lua_done(
      L, S,
      cgl_buffer_random(buffer, generator, cgl_lua_stream(L, S), low, count));
  lua_settop(L, 1);
  return 1;
}


/* g:register_generator_state(gen) */
int cgl_lua_graph_register_generator_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:register_generator_state");
  cgl_graph *graph = cgl_lua_check(L, S, 1, CGL_LUA_graph);
  cgl_lua_done(L, S, cgl_graph_register_generator_state(graph, check(L, S, 2)));
  return 0;
}


static void describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%p, seed %llu", object,
           (unsigned long long)cgl_generator_initial_seed(object));
}


void cgl_lua_open_generator(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"manual_seed", generator_manual_seed},
      {"initial_seed", generator_initial_seed},
      {"seed", generator_seed},
      {"get_offset", generator_get_offset},
      {"set_offset", generator_set_offset},
      {"clone_state", generator_clone_state},
      {"graphsafe_get_state", generator_get_state},
      {"graphsafe_set_state", generator_set_state},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"generator", new_generator},
      {"default_generator", get_default},
      {"manual_seed", seed_default},
      {NULL, NULL},
  };
  static const cgl_lua_type type = {.methods = methods, .describe = describe};
  cgl_lua_register(L, S, CGL_LUA_generator, &type);
  cgl_lua_functions(L, functions);
}
