/* cgraphlua.generator: random numbers, for buffers and for kernels that take a
   cgl_philox.  Every device has a default generator in each Lua state. */
#include "core/random/random.h"
#include "lua/types/types.h"

#include <stdio.h>

static uint64_t seed_read(lua_State *L, cgl_lua *S, int index) {
  cgl_arg x;
  if (cgl_lua_read_number(L, S, index, &x) && x.kind == CGL_ARG_UINT)
    return x.u;
  return (uint64_t)cgl_lua_read_integer(L, S, index, "the seed", 0,
                                        CGL_LUA_MAX_WHOLE);
}


static int default_generator_push(lua_State *L, cgl_lua *S) {
  cgl_generator *generator = cgl_lua_default_generator(L, S);
  cgl_generator **slot = cgl_lua_new_generator(L, S);
  *slot = cgl_generator_retain(generator);
  return 1;
}


/* cg.generator([seed]) */
static int cg_generator(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator");
  uint64_t seed =
      lua_isnoneornil(L, 1) ? CGL_LUA_STANDARD_SEED : seed_read(L, S, 1);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_generator **slot = cgl_lua_new_generator(L, S);
  cgl_lua_try(L, S, cgl_generator_create(context, seed, slot));
  return 1;
}


/* cg.default_generator() */
static int cg_default_generator(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "default_generator");
  return default_generator_push(L, S);
}


/* cg.manual_seed(seed) returns the default generator. */
static int cg_manual_seed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "manual_seed");
  uint64_t seed = seed_read(L, S, 1);
  cgl_generator *generator = cgl_lua_default_generator(L, S);
  cgl_lua_done(
      L, S, cgl_generator_manual_seed(generator, cgl_lua_stream(L, S), seed));
  return default_generator_push(L, S);
}


static int generator_manual_seed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:manual_seed");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  uint64_t seed = seed_read(L, S, 2);
  cgl_lua_done(
      L, S, cgl_generator_manual_seed(generator, cgl_lua_stream(L, S), seed));
  lua_settop(L, 1);
  return 1;
}


static int generator_initial_seed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:initial_seed");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  uint64_t seed = 0;
  cgl_lua_limits_wait(L, S, cgl_lua_stream(L, S), NULL);
  cgl_lua_done(
      L, S, cgl_generator_initial_seed(generator, cgl_lua_stream(L, S), &seed));
  cgl_lua_push_int64(L, S, false, seed);
  return 1;
}


static int generator_seed(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:seed");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  uint64_t seed = 0;
  cgl_lua_limits_wait(L, S, cgl_lua_stream(L, S), NULL);
  cgl_lua_done(L, S,
               cgl_generator_seed(generator, cgl_lua_stream(L, S), &seed));
  cgl_lua_push_int64(L, S, false, seed);
  return 1;
}


static int generator_get_offset(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:get_offset");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  uint64_t offset = 0;
  cgl_lua_limits_wait(L, S, cgl_lua_stream(L, S), NULL);
  cgl_lua_done(
      L, S, cgl_generator_get_offset(generator, cgl_lua_stream(L, S), &offset));
  cgl_lua_push_int64(L, S, false, offset);
  return 1;
}


static int generator_set_offset(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:set_offset");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  int64_t offset =
      cgl_lua_read_integer(L, S, 2, "the offset", 0, CGL_LUA_MAX_WHOLE);
  cgl_lua_done(L, S,
               cgl_generator_set_offset(generator, cgl_lua_stream(L, S),
                                        (uint64_t)offset));
  lua_settop(L, 1);
  return 1;
}


/* gen:get_state([buffer]) returns the buffer, or a new one. */
static int generator_get_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:get_state");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  cgl_stream *stream = cgl_lua_stream(L, S);
  lua_settop(L, 2);
  if (lua_isnil(L, 2)) {
    cgl_buffer **slot = cgl_lua_new_buffer(L, S);
    cgl_lua_try(L, S,
                cgl_buffer_create(stream, S->pool, CGL_TYPE_uint64, 2, slot));
    lua_replace(L, 2);
  }
  cgl_lua_done(L, S,
               cgl_generator_get_state(generator, stream,
                                       cgl_lua_check_buffer(L, S, 2)));
  return 1;
}


static int generator_set_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:set_state");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  cgl_buffer *from = cgl_lua_check_buffer(L, S, 2);
  cgl_lua_done(L, S,
               cgl_generator_set_state(generator, cgl_lua_stream(L, S), from));
  lua_settop(L, 1);
  return 1;
}


static int generator_clone_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:clone_state");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  cgl_stream *stream = cgl_lua_stream(L, S);
  cgl_generator **slot = cgl_lua_new_generator(L, S);
  cgl_lua_done(L, S, cgl_generator_clone_state(generator, stream, slot));
  return 1;
}


static int generator_graphsafe_get_state(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "generator:graphsafe_get_state");
  cgl_generator *generator = cgl_lua_check_generator(L, S, 1);
  cgl_generator **slot = cgl_lua_new_generator(L, S);
  cgl_lua_done(L, S, cgl_generator_graphsafe_get_state(generator, slot));
  return 1;
}


static int generator_graphsafe_set_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "generator:graphsafe_set_state");
  cgl_lua_done(
      L, S,
      cgl_generator_graphsafe_set_state(cgl_lua_check_generator(L, S, 1),
                                        cgl_lua_check_generator(L, S, 2)));
  lua_settop(L, 1);
  return 1;
}


static void generator_describe(void *object, char *text, size_t room) {
  const cgl_random_state *state = ((const cgl_generator *)object)->state;
  if (state->unread)
    snprintf(text, room, "%p, its seed on the device", object);
  else
    snprintf(text, room, "%p, seed %llu", object,
             (unsigned long long)state->seed);
}


void cgl_lua_open_generator(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"manual_seed", generator_manual_seed},
      {"initial_seed", generator_initial_seed},
      {"seed", generator_seed},
      {"get_offset", generator_get_offset},
      {"set_offset", generator_set_offset},
      {"get_state", generator_get_state},
      {"set_state", generator_set_state},
      {"clone_state", generator_clone_state},
      {"graphsafe_get_state", generator_graphsafe_get_state},
      {"graphsafe_set_state", generator_graphsafe_set_state},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"generator", cg_generator},
      {"default_generator", cg_default_generator},
      {"manual_seed", cg_manual_seed},
      {NULL, NULL},
  };
  static const cgl_lua_type type = {.kind = CGL_LUA_generator,
                                    .methods = methods,
                                    .describe = generator_describe,
                                    .functions = functions};
  cgl_lua_register(L, S, &type);
}
