/* cgraphlua.ranks: the processes of a program, and their collectives. */
#include "lua/types/types.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const char *const operations[] = {
#define X(name) #name,
    CGL_RANKS_OPERATIONS(X)
#undef X
        NULL};


/* cg.ranks([opts]): the world */
static int cg_ranks(lua_State *L) {
  static const char *const known[] = {"seconds", NULL};
  cgl_lua *S = cgl_lua_issue(L, "ranks");
  lua_settop(L, 1);
  cgl_lua_options(L, S, 1, known);
  if (cgl_lua_option(L, S, 1, "seconds")) {
    if (lua_type(L, -1) != LUA_TNUMBER)
      return cgl_lua_bad(L, S, 1, "seconds must be a number, got %s",
                         cgl_lua_typename(L, -1));
    cgl_lua_done(L, S, cgl_ranks_set_seconds(lua_tonumber(L, -1)));
  }
  cgl_context *context = cgl_lua_context(L, S);
  cgl_ranks **slot = cgl_lua_new_ranks(L, S);
  cgl_lua_done(L, S, cgl_ranks_open(context, slot));
  return 1;
}


/* The index of a rank at `index`, or `otherwise`. */
static int rank_read(lua_State *L, cgl_lua *S, int index, const char *what,
                     int otherwise) {
  return lua_isnil(L, index) && otherwise >= 0
             ? otherwise
             : (int)cgl_lua_read_integer(L, S, index, what, 0, INT_MAX);
}


static cgl_ranks_operation operation_read(lua_State *L, cgl_lua *S, int index) {
  return lua_isnil(L, index) ? CGL_RANKS_sum
                             : (cgl_ranks_operation)cgl_lua_read_choice(
                                   L, S, index, "the operation", operations);
}


/* The buffer at `index`, or `otherwise` for nil. */
static cgl_buffer *buffer_read(lua_State *L, cgl_lua *S, int index,
                               cgl_buffer *otherwise) {
  return lua_isnil(L, index) ? otherwise : cgl_lua_check_buffer(L, S, index);
}


/* world:split(color [, key]) */
static int ranks_split(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:split");
  lua_settop(L, 3);
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  const int color =
      (int)cgl_lua_read_integer(L, S, 2, "the color", -1, INT_MAX);
  const int key =
      lua_isnil(L, 3)
          ? 0
          : (int)cgl_lua_read_integer(L, S, 3, "the key", INT_MIN, INT_MAX);
  cgl_ranks **slot = cgl_lua_new_ranks(L, S);
  cgl_lua_done(L, S, cgl_ranks_split(ranks, color, key, slot));
  if (!*slot)
    lua_pushnil(L);
  return 1;
}


/* world:all_reduce(src [, dst [, operation]]) */
static int ranks_all_reduce(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:all_reduce");
  lua_settop(L, 4);
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  cgl_buffer *src = cgl_lua_check_buffer(L, S, 2);
  cgl_buffer *dst = buffer_read(L, S, 3, src);
  const cgl_ranks_operation operation = operation_read(L, S, 4);
  cgl_lua_done(
      L, S,
      cgl_ranks_all_reduce(ranks, cgl_lua_stream(L, S), operation, src, dst));
  return 0;
}


/* world:reduce(src, dst [, operation [, root]]) */
static int ranks_reduce(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:reduce");
  lua_settop(L, 5);
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  cgl_buffer *src = cgl_lua_check_buffer(L, S, 2);
  cgl_buffer *dst = buffer_read(L, S, 3, NULL);
  const cgl_ranks_operation operation = operation_read(L, S, 4);
  const int root = rank_read(L, S, 5, "the root", 0);
  cgl_lua_done(
      L, S,
      cgl_ranks_reduce(ranks, cgl_lua_stream(L, S), operation, root, src, dst));
  return 0;
}


/* world:broadcast(buffer [, root]) */
static int ranks_broadcast(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:broadcast");
  lua_settop(L, 3);
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 2);
  const int root = rank_read(L, S, 3, "the root", 0);
  cgl_lua_done(L, S,
               cgl_ranks_broadcast(ranks, cgl_lua_stream(L, S), root, buffer));
  return 0;
}


/* world:all_gather(src, dst) */
static int ranks_all_gather(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:all_gather");
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  cgl_buffer *src = cgl_lua_check_buffer(L, S, 2);
  cgl_buffer *dst = cgl_lua_check_buffer(L, S, 3);
  cgl_lua_done(L, S,
               cgl_ranks_all_gather(ranks, cgl_lua_stream(L, S), src, dst));
  return 0;
}


/* world:reduce_scatter(src, dst [, operation]) */
static int ranks_reduce_scatter(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:reduce_scatter");
  lua_settop(L, 4);
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  cgl_buffer *src = cgl_lua_check_buffer(L, S, 2);
  cgl_buffer *dst = cgl_lua_check_buffer(L, S, 3);
  const cgl_ranks_operation operation = operation_read(L, S, 4);
  cgl_lua_done(L, S,
               cgl_ranks_reduce_scatter(ranks, cgl_lua_stream(L, S), operation,
                                        src, dst));
  return 0;
}


/* world:all_to_all(src, dst) */
static int ranks_all_to_all(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:all_to_all");
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  cgl_buffer *src = cgl_lua_check_buffer(L, S, 2);
  cgl_buffer *dst = cgl_lua_check_buffer(L, S, 3);
  cgl_lua_done(L, S,
               cgl_ranks_all_to_all(ranks, cgl_lua_stream(L, S), src, dst));
  return 0;
}


/* world:barrier() */
static int ranks_barrier(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:barrier");
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  cgl_lua_done(L, S, cgl_ranks_barrier(ranks, cgl_lua_stream(L, S)));
  return 0;
}


/* A send or a receive of one buffer. */
static int transfer_one(lua_State *L, const char *operation, bool send) {
  cgl_lua *S = cgl_lua_issue(L, operation);
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  const cgl_ranks_transfer transfer = {
      .buffer = cgl_lua_check_buffer(L, S, 2),
      .peer = rank_read(L, S, 3, "the other rank", -1),
      .send = send};
  cgl_lua_done(L, S,
               cgl_ranks_exchange(ranks, cgl_lua_stream(L, S), &transfer, 1));
  return 0;
}


/* world:send(buffer, to), world:recv(buffer, from) */
static int ranks_send(lua_State *L) {
  return transfer_one(L, "ranks:send", true);
}


static int ranks_recv(lua_State *L) {
  return transfer_one(L, "ranks:recv", false);
}


/* {send = buffer, to = rank} or {recv = buffer, from = rank}, on top. */
static void transfer_read(lua_State *L, cgl_lua *S, int number,
                          cgl_ranks_transfer *transfer) {
  const int at = lua_gettop(L);
  if (!lua_istable(L, at))
    cgl_lua_bad(L, S, 2, "transfer %d must be a table, got %s", number,
                cgl_lua_typename(L, at));
  lua_getfield(L, at, "send");
  transfer->send = !lua_isnil(L, -1);
  if (!transfer->send)
    lua_getfield(L, at, "recv");
  transfer->buffer = cgl_lua_peek(L, -1, CGL_LUA_buffer);
  if (!transfer->buffer)
    cgl_lua_bad(L, S, 2, "transfer %d needs a buffer as send or recv", number);
  lua_getfield(L, at, transfer->send ? "to" : "from");
  int64_t peer;
  if (!cgl_lua_read_whole(L, S, lua_gettop(L), 0, INT_MAX, &peer))
    cgl_lua_bad(L, S, 2, "transfer %d needs a rank as '%s'", number,
                transfer->send ? "to" : "from");
  transfer->peer = (int)peer;
  lua_settop(L, at);
}


/* world:exchange{transfer, ...} */
static int ranks_exchange(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "ranks:exchange");
  cgl_ranks_transfer transfers[CGL_RANKS_MAX_TRANSFERS];
  lua_settop(L, 2);
  cgl_ranks *ranks = cgl_lua_check_ranks(L, S, 1);
  if (!lua_istable(L, 2))
    return cgl_lua_bad(L, S, 2, "a list of transfers expected, got %s",
                       cgl_lua_typename(L, 2));
  const size_t n = lua_objlen(L, 2);
  if (n > CGL_RANKS_MAX_TRANSFERS)
    return cgl_lua_bad(L, S, 2, "at most %d transfers are possible",
                       CGL_RANKS_MAX_TRANSFERS);
  for (size_t i = 0; i < n; i++) {
    lua_rawgeti(L, 2, (int)i + 1);
    transfer_read(L, S, (int)i + 1, &transfers[i]);
    lua_pop(L, 1);
  }
  cgl_lua_done(L, S,
               cgl_ranks_exchange(ranks, cgl_lua_stream(L, S), transfers, n));
  return 0;
}


static const char *const fields[] = {"rank", "size", "local_rank", "library",
                                     NULL};


static int ranks_field(lua_State *L, void *object, const char *name) {
  const cgl_ranks *ranks = object;
  if (!strcmp(name, "rank"))
    lua_pushinteger(L, cgl_ranks_rank(ranks));
  else if (!strcmp(name, "size"))
    lua_pushinteger(L, cgl_ranks_size(ranks));
  else if (!strcmp(name, "local_rank"))
    lua_pushinteger(L, cgl_ranks_local_rank());
  else if (!strcmp(name, "library"))
    lua_pushstring(L, cgl_ranks_library(ranks));
  else
    return 0;
  return 1;
}


static void ranks_describe(void *object, char *text, size_t room) {
  snprintf(text, room, "rank %d of %d", cgl_ranks_rank(object),
           cgl_ranks_size(object));
}


void cgl_lua_open_ranks(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"split", ranks_split},
      {"all_reduce", ranks_all_reduce},
      {"reduce", ranks_reduce},
      {"broadcast", ranks_broadcast},
      {"all_gather", ranks_all_gather},
      {"reduce_scatter", ranks_reduce_scatter},
      {"all_to_all", ranks_all_to_all},
      {"send", ranks_send},
      {"recv", ranks_recv},
      {"exchange", ranks_exchange},
      {"barrier", ranks_barrier},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {{"ranks", cg_ranks}, {NULL, NULL}};
  static const cgl_lua_type type = {.kind = CGL_LUA_ranks,
                                    .methods = methods,
                                    .functions = functions,
                                    .field = ranks_field,
                                    .fields = fields,
                                    .describe = ranks_describe};
  cgl_lua_register(L, S, &type);
}
