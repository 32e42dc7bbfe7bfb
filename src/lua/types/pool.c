/* cgraphlua.pool: device memory shared by the captures and buffers that name
   it. */
#include "lua/types/types.h"

#include <stdio.h>

static int pool_push(lua_State *L, cgl_lua *S, const cgl_pool_desc *desc) {
  cgl_lua_limits_refuse(L, S, "the state has one pool");
  cgl_context *context = cgl_lua_context(L, S);
  cgl_pool **slot = cgl_lua_new_pool(L, S);
  cgl_lua_try(L, S, cgl_pool_create(context, desc, slot));
  return 1;
}


/* cg.pool([opts]) */
static int cg_pool(lua_State *L) {
  static const char *const known[] = {"max_bytes", "no_split", "use_on_oom",
                                      "strict", NULL};
  cgl_lua *S = cgl_lua_issue(L, "pool");
  cgl_lua_options(L, S, 1, known);
  cgl_pool_desc desc = {
      .max_bytes = (size_t)cgl_lua_option_integer(L, S, 1, "max_bytes", 1,
                                                  CGL_LUA_MAX_WHOLE, 0),
      .no_split = cgl_lua_option_boolean(L, S, 1, "no_split", false),
      .use_on_oom = cgl_lua_option_boolean(L, S, 1, "use_on_oom", false),
      .strict = cgl_lua_option_boolean(L, S, 1, "strict", false)};
  return pool_push(L, S, &desc);
}


static int cg_graph_pool_handle(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph_pool_handle");
  return pool_push(L, S, NULL);
}


/* A pool that each device has. */
static int pool_push_own(lua_State *L, const char *operation,
                         cgl_pool *(*own)(cgl_context *)) {
  cgl_lua *S = cgl_lua_issue(L, operation);
  cgl_lua_limits_refuse(L, S, "the state has one pool");
  cgl_context *context = cgl_lua_context(L, S);
  cgl_pool **slot = cgl_lua_new_pool(L, S);
  cgl_pool *pool = own(context);
  if (!pool)
    return cgl_lua_fail(L, S);
  *slot = cgl_pool_retain(pool);
  return 1;
}


static int cg_default_pool(lua_State *L) {
  return pool_push_own(L, "default_pool", cgl_context_pool);
}


static int cg_pinned_pool(lua_State *L) {
  return pool_push_own(L, "pinned_pool", cgl_context_pinned_pool);
}


/* pool:use(fn, ...) */
static int pool_use(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pool:use");
  cgl_pool *pool = cgl_lua_check_pool(L, S, 1);
  cgl_lua_read_function(L, S, 2);
  if (cgl_lua_within(L, S, NULL, pool, lua_gettop(L) - 2))
    return lua_error(L);
  return lua_gettop(L) - 1;
}


static int pool_stats(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "pool:stats");
  cgl_pool_stats stats;
  cgl_pool_get_stats(cgl_lua_check_pool(L, S, 1), &stats);
  cgl_lua_pool_push_stats(L, &stats);
  return 1;
}


/* pool:trim(), the bytes that went back to the device */
static int pool_trim(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pool:trim");
  size_t bytes = 0;
  cgl_lua_done(L, S, cgl_pool_trim(cgl_lua_check_pool(L, S, 1), &bytes));
  lua_pushnumber(L, (double)bytes);
  return 1;
}


/* pool:checkpoint() */
static int pool_checkpoint(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pool:checkpoint");
  cgl_pool *pool = cgl_lua_check_pool(L, S, 1);
  cgl_checkpoint **slot = cgl_lua_new_checkpoint(L, S);
  cgl_lua_done(L, S, cgl_pool_checkpoint(pool, slot));
  return 1;
}


/* pool:restore(checkpoint) */
static int pool_restore(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pool:restore");
  cgl_pool *pool = cgl_lua_check_pool(L, S, 1);
  cgl_checkpoint *checkpoint = cgl_lua_check_checkpoint(L, S, 2);
  cgl_lua_done(L, S, cgl_pool_restore(pool, checkpoint));
  lua_settop(L, 1);
  return 1;
}


static void checkpoint_describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%p", object);
}


void cgl_lua_open_checkpoint(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {{NULL, NULL}};
  static const cgl_lua_type type = {.kind = CGL_LUA_checkpoint,
                                    .methods = methods,
                                    .describe = checkpoint_describe};
  cgl_lua_register(L, S, &type);
}


static void pool_describe(void *object, char *text, size_t room) {
  cgl_pool_stats stats;
  cgl_pool_get_stats(object, &stats);
  snprintf(text, room, "%p (%zu of %zu bytes in use)", object, stats.allocated,
           stats.reserved);
}


void cgl_lua_open_pool(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"use", pool_use},
      {"stats", pool_stats},
      {"snapshot", cgl_lua_pool_snapshot},
      {"trim", pool_trim},
      {"checkpoint", pool_checkpoint},
      {"restore", pool_restore},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"pool", cg_pool},
      {"graph_pool_handle", cg_graph_pool_handle},
      {"default_pool", cg_default_pool},
      {"pinned_pool", cg_pinned_pool},
      {NULL, NULL},
  };
  static const cgl_lua_type type = {.kind = CGL_LUA_pool,
                                    .methods = methods,
                                    .describe = pool_describe,
                                    .functions = functions};
  cgl_lua_register(L, S, &type);
}
