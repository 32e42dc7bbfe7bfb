/* The types of the module, a file each: a userdata type's checks, functions
   and methods, in the order of its method table; and what scripts see of
   memory (snapshot.c), of PNG files (png.c), of algorithms (algo.c) and of
   matrices (blas.c). Each open function adds the type's metatable, and its
   functions to the module's table, which is on top of the stack; the state's
   userdata is at index 1. */
#ifndef CGL_LUA_TYPES_H
#define CGL_LUA_TYPES_H

#include "lua/values/values.h"

void cgl_lua_open_stream(lua_State *L, cgl_lua *S);
void cgl_lua_open_event(lua_State *L, cgl_lua *S);
void cgl_lua_open_buffer(lua_State *L, cgl_lua *S);
void cgl_lua_open_pinned(lua_State *L, cgl_lua *S);
void cgl_lua_open_module(lua_State *L, cgl_lua *S);
void cgl_lua_open_compilation(lua_State *L, cgl_lua *S);
void cgl_lua_open_kernel(lua_State *L, cgl_lua *S);
void cgl_lua_open_pool(lua_State *L, cgl_lua *S);
void cgl_lua_open_checkpoint(lua_State *L, cgl_lua *S);
void cgl_lua_open_generator(lua_State *L, cgl_lua *S);
void cgl_lua_open_param(lua_State *L, cgl_lua *S);
void cgl_lua_open_ranks(lua_State *L, cgl_lua *S);
void cgl_lua_open_snapshot(lua_State *L);
void cgl_lua_open_png(lua_State *L);
void cgl_lua_open_algo(lua_State *L);
void cgl_lua_open_blas(lua_State *L);
void cgl_lua_open_fft(lua_State *L);

/* The address of a buffer; raises when a restored pool took the memory back. */
uint64_t cgl_lua_buffer_address(lua_State *L, cgl_lua *S,
                                const cgl_buffer *buffer);

/* Reads a value for the parameter, and with `set` sets it. */
void cgl_lua_param_read(lua_State *L, cgl_lua *S, int index, cgl_param *param,
                        bool set);
/* Pushes a number, or a list of them. */
void cgl_lua_param_push(lua_State *L, cgl_lua *S, const cgl_param *param);

/* Pushes the option `name`, or a new buffer of the type and shape, on the
   current stream; both after the options were read. */
cgl_buffer *cgl_lua_buffer_out(lua_State *L, cgl_lua *S, int options,
                               const char *name, cgl_type type,
                               const size_t *extents, int ndims);

/* The option `external` of a record or a wait, from a table or nothing. */
bool cgl_lua_event_external(lua_State *L, cgl_lua *S, int index);
/* The same for record([object] [, opts]); leaves nil at 2 when the object is
   left out. */
bool cgl_lua_event_record_options(lua_State *L, cgl_lua *S);

/* pool:snapshot, and the table of pool:stats. */
int cgl_lua_pool_snapshot(lua_State *L);
void cgl_lua_pool_push_stats(lua_State *L, const cgl_pool_stats *stats);

#endif
