/* Memory as tables: snapshots of a pool and of all pools, and the history of
   allocations. */
#include "lua/types/types.h"

#include <stdlib.h>

enum { HISTORY_EVENTS = 100000, HISTORY_MAX = 1 << 24 };


/* ---- C memory that the collector frees, errors or not ---- */

typedef struct holder {
  void *memory;
  void (*free)(void *memory);
} holder;


static int holder_gc(lua_State *L) {
  holder *held = lua_touserdata(L, 1);
  if (held->memory)
    held->free(held->memory);
  held->memory = NULL;
  return 0;
}


static holder *holder_push(lua_State *L, void (*free_function)(void *)) {
  holder *held = lua_newuserdata(L, sizeof *held);
  held->memory = NULL;
  held->free = free_function;
  lua_createtable(L, 0, 1);
  lua_pushcfunction(L, holder_gc);
  lua_setfield(L, -2, "__gc");
  lua_setmetatable(L, -2);
  return held;
}


static void where_set(lua_State *L, const char *file, int line) {
  if (!*file)
    return;
  lua_pushfstring(L, "%s:%d", file, line);
  lua_setfield(L, -2, "where");
}


/* ---- snapshots ---- */

static void block_push(lua_State *L, const cgl_block_info *block) {
  lua_createtable(L, 0, 8);
  cgl_lua_set_number(L, "address", (double)block->address);
  cgl_lua_set_number(L, "bytes", (double)block->bytes);
  cgl_lua_set_text(L, "state", cgl_block_state_name(block->state));
  if (block->stream)
    cgl_lua_set_number(L, "stream", (double)block->stream);
  if (block->state != CGL_BLOCK_live)
    return;
  cgl_lua_set_number(L, "requested", (double)block->requested);
  cgl_lua_set_number(L, "number", (double)block->number);
  cgl_lua_set_boolean(L, "in_capture", block->in_capture);
  where_set(L, block->file, block->line);
}


/* Pushes a list of segments, each with a list of its blocks. */
static void segments_push(lua_State *L, const cgl_snapshot *snapshot) {
  const cgl_block_info *block = snapshot->blocks;
  const cgl_block_info *end = block + snapshot->nblocks;
  lua_createtable(L, (int)snapshot->nsegments, 0);
  for (size_t i = 0; i < snapshot->nsegments; i++) {
    lua_createtable(L, 0, 4);
    cgl_lua_set_number(L, "address", (double)snapshot->segments[i].address);
    cgl_lua_set_number(L, "bytes", (double)snapshot->segments[i].bytes);
    cgl_lua_set_number(L, "mapped", (double)snapshot->segments[i].mapped);
    lua_newtable(L);
    for (int n = 1; block < end && block->segment == i; block++, n++) {
      block_push(L, block);
      lua_rawseti(L, -2, n);
    }
    lua_setfield(L, -2, "blocks");
    lua_rawseti(L, -2, (int)i + 1);
  }
}


static void snapshot_free(void *snapshot) {
  cgl_snapshot_free(snapshot);
}


int cgl_lua_pool_snapshot(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "pool:snapshot");
  cgl_pool *pool = cgl_lua_check_pool(L, S, 1);
  holder *held = holder_push(L, snapshot_free);
  cgl_snapshot *snapshot = NULL;
  cgl_status status = cgl_pool_snapshot(pool, &snapshot);
  held->memory = snapshot;
  cgl_lua_done(L, S, status);
  lua_createtable(L, 0, 2);
  cgl_lua_set_number(L, "pool", (double)cgl_pool_id(pool));
  segments_push(L, snapshot);
  lua_setfield(L, -2, "segments");
  return 1;
}


void cgl_lua_pool_push_stats(lua_State *L, const cgl_pool_stats *stats) {
  lua_createtable(L, 0, 12);
#define FIELD(name) cgl_lua_set_number(L, #name, (double)stats->name);
  FIELD(reserved)
  FIELD(reserved_peak)
  FIELD(allocated)
  FIELD(allocated_peak)
  FIELD(allocations)
  FIELD(frees)
  FIELD(segments)
  FIELD(ordered)
  FIELD(refused)
  FIELD(executables)
#undef FIELD
}


static void memory_free(void *memory) {
  cgl_memory_snapshot_free(memory);
}


/* cg.memory_snapshot(): all pools of the current device */
static int cg_memory_snapshot(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "memory_snapshot");
  cgl_context *context = cgl_lua_context(L, S);
  holder *held = holder_push(L, memory_free);
  cgl_memory_snapshot *memory = NULL;
  cgl_status status = cgl_context_snapshot(context, &memory);
  held->memory = memory;
  cgl_lua_done(L, S, status);
  lua_createtable(L, 0, 4);
  const cgl_device_info *info = cgl_context_device(context);
  cgl_lua_set_text(L, "device", info->device);
  cgl_lua_set_number(L, "free", (double)memory->device_free);
  cgl_lua_set_number(L, "total", (double)memory->device_total);
  lua_createtable(L, (int)memory->npools, 0);
  for (size_t i = 0; i < memory->npools; i++) {
    const cgl_pool_picture *picture = &memory->pools[i];
    lua_createtable(L, 0, 4);
    cgl_lua_set_number(L, "pool", (double)picture->id);
    cgl_lua_set_boolean(L, "default", picture->is_default);
    cgl_lua_pool_push_stats(L, &picture->stats);
    lua_setfield(L, -2, "stats");
    segments_push(L, picture->snapshot);
    lua_setfield(L, -2, "segments");
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "pools");
  return 1;
}


/* ---- the history ---- */

/* cg.memory_history(true | n | false) */
static int cg_memory_history(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "memory_history");
  size_t events = HISTORY_EVENTS;
  if (lua_type(L, 1) == LUA_TBOOLEAN || lua_isnoneornil(L, 1))
    events = cgl_lua_read_boolean(L, S, 1, "the history", true) ? events : 0;
  else
    events = (size_t)cgl_lua_read_integer(L, S, 1, "the number of events", 0,
                                          HISTORY_MAX);
  cgl_lua_done(L, S, cgl_memory_history(events));
  return 0;
}


/* cg.memory_events(): a list, the oldest first, and how many were lost */
static int cg_memory_events(lua_State *L) {
  cgl_lua_issue(L, "memory_events");
  size_t n = cgl_memory_events(NULL, 0, NULL, NULL);
  holder *held = holder_push(L, free);
  cgl_memory_event *events = held->memory = malloc((n + 1) * sizeof *events);
  if (!events)
    return luaL_error(L, "not enough memory");
  uint64_t lost = 0;
  double ms = 0;
  n = cgl_memory_events(events, n ? n : 1, &lost, &ms);
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    lua_createtable(L, 0, 8);
    cgl_lua_set_number(L, "ms", events[i].ms);
    cgl_lua_set_number(L, "pool", (double)events[i].pool);
    cgl_lua_set_text(L, "action", events[i].freed ? "free" : "alloc");
    cgl_lua_set_number(L, "address", (double)events[i].address);
    cgl_lua_set_number(L, "bytes", (double)events[i].bytes);
    cgl_lua_set_number(L, "allocated", (double)events[i].allocated);
    cgl_lua_set_number(L, "reserved", (double)events[i].reserved);
    where_set(L, events[i].file, events[i].line);
    lua_rawseti(L, -2, (int)i + 1);
  }
  cgl_lua_set_number(L, "lost", (double)lost);
  cgl_lua_set_number(L, "ms", ms);
  return 1;
}


void cgl_lua_open_snapshot(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"memory_snapshot", cg_memory_snapshot},
      {"memory_history", cg_memory_history},
      {"memory_events", cg_memory_events},
      {NULL, NULL},
  };
  cgl_lua_functions(L, functions);
}
