/* cgraphlua.buffer: typed device memory, made from a count, a shape or data;
   filled, copied and read back on the current stream. */
#include "lua/types/types.h"

#include <stdio.h>
#include <string.h>


/* The pool that the option table at `options` names, or the pool in use. */
static cgl_pool *buffer_read_pool(lua_State *L, cgl_lua *S, int options) {
  static const char *const known[] = {"pool", NULL};
  if (lua_gettop(L) < options || lua_isnil(L, options))
    return S->pool;
  cgl_lua_options(L, S, options, known);
  cgl_pool *pool = cgl_lua_option_object(L, S, options, "pool", CGL_LUA_pool);
  return pool ? pool : S->pool;
}


static void buffer_set_shape(lua_State *L, cgl_lua *S, cgl_buffer *buffer,
                             const cgl_lua_shape *shape) {
  if (shape->ndims > 1)
    cgl_lua_done(L, S,
                 cgl_buffer_set_shape(buffer, shape->extents, shape->ndims));
}


/* Pushes a new buffer; the options may be past the top, and are read first. */
static cgl_buffer *buffer_push(lua_State *L, cgl_lua *S, cgl_type type,
                               const cgl_lua_shape *shape, int options) {
  cgl_pool *pool = buffer_read_pool(L, S, options);
  cgl_stream *stream = cgl_lua_stream(L, S);
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  cgl_lua_try(L, S, cgl_buffer_create(stream, pool, type, shape->count, slot));
  buffer_set_shape(L, S, *slot, shape);
  cgl_lua_collect_pace(L, S, shape->count * cgl_type_bytes(type));
  return *slot;
}


/* cg.buffer(type, n | shape [, opts]) */
static int cg_buffer(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer");
  cgl_type type = cgl_lua_read_type(L, S, 1);
  cgl_lua_shape shape;
  uint32_t n;
  shape.ndims = 1;
  if (cgl_lua_read_size(L, 2, &n))
    shape.count = n;
  else
    cgl_lua_read_shape(L, S, 2, &shape);
  buffer_push(L, S, type, &shape, 3);
  return 1;
}


/* cg.zeros(type, n | shape [, opts]) */
static int cg_zeros(lua_State *L) {
  static const char zero[CGL_MAX_ELEMENT_BYTES];
  cgl_lua *S = cgl_lua_issue(L, "zeros");
  cgl_type type = cgl_lua_read_type(L, S, 1);
  cgl_lua_shape shape;
  cgl_lua_read_shape(L, S, 2, &shape);
  cgl_buffer *buffer = buffer_push(L, S, type, &shape, 3);
  cgl_lua_done(L, S, cgl_buffer_fill(buffer, cgl_lua_stream(L, S), zero));
  return 1;
}


/* cg.input(type, n | shape, name [, opts]): zeros */
static int cg_input(lua_State *L) {
  static const char zero[CGL_MAX_ELEMENT_BYTES];
  cgl_lua *S = cgl_lua_issue(L, "input");
  lua_settop(L, 4);
  cgl_type type = cgl_lua_read_type(L, S, 1);
  cgl_lua_shape shape;
  cgl_lua_read_shape(L, S, 2, &shape);
  const char *name = cgl_lua_read_string(L, S, 3, "the name", NULL);
  if (!*name)
    return cgl_lua_bad(L, S, 3, "an input has a name");
  cgl_buffer *buffer = buffer_push(L, S, type, &shape, 4);
  cgl_lua_done(L, S, cgl_buffer_set_input(buffer, name));
  cgl_lua_done(L, S, cgl_buffer_fill(buffer, cgl_lua_stream(L, S), zero));
  return 1;
}


/* cg.full(type, n | shape, value [, opts]) */
static int cg_full(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "full");
  lua_settop(L, 4);
  char value[CGL_MAX_ELEMENT_BYTES];
  cgl_type type = cgl_lua_read_type(L, S, 1);
  cgl_lua_shape shape;
  cgl_lua_read_shape(L, S, 2, &shape);
  cgl_lua_read_element(L, S, 3, type, value);
  cgl_buffer *buffer = buffer_push(L, S, type, &shape, 4);
  cgl_lua_done(L, S, cgl_buffer_fill(buffer, cgl_lua_stream(L, S), value));
  return 1;
}


/* Copies all of the elements, as many as the buffer has. */
static void buffer_upload_all(lua_State *L, cgl_lua *S, cgl_buffer *buffer,
                              const cgl_lua_elements *data) {
  cgl_lua_limits_wait(L, S, cgl_lua_stream(L, S), NULL);
  cgl_lua_done(L, S,
               cgl_buffer_upload(buffer, cgl_lua_stream(L, S), 0, data->bytes,
                                 cgl_buffer_bytes(buffer)));
}


/* cg.from(table | string | cdata, type [, shape [, opts]]) */
static int cg_from(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "from");
  lua_settop(L, 4);
  cgl_type type = cgl_lua_read_type(L, S, 2);
  cgl_lua_elements data;
  cgl_lua_read_elements(L, S, 1, type, &data);
  const size_t count = data.shape.count;
  if (!lua_isnil(L, 3))
    cgl_lua_read_shape(L, S, 3, &data.shape);
  if (data.shape.count != count)
    return cgl_lua_bad(L, S, 3, "the shape has %lld elements, the data %lld",
                       (long long)data.shape.count, (long long)count);
  buffer_upload_all(L, S, buffer_push(L, S, type, &data.shape, 4), &data);
  return 1;
}


/* cg.buffer_from(pointer, type, n): memory that the script does not own */
static int cg_buffer_from(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer_from");
  uint64_t address = cgl_lua_read_address(L, S, 1);
  cgl_type type = cgl_lua_read_type(L, S, 2);
  cgl_lua_shape shape;
  cgl_lua_read_shape(L, S, 3, &shape);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  cgl_lua_done(
      L, S, cgl_buffer_from_address(context, address, type, shape.count, slot));
  buffer_set_shape(L, S, *slot, &shape);
  return 1;
}


/* The host memory that a pointer or an FFI array at 2 and a size at 3 say;
   exactly the buffer's. */
static void *buffer_read_host(lua_State *L, cgl_lua *S,
                              const cgl_buffer *buffer) {
  cgl_lua_limits_refuse(L, S, "an address is not taken");
  if (lua_type(L, 2) != CGL_LUA_TCDATA && lua_type(L, 2) != LUA_TLIGHTUSERDATA)
    cgl_lua_bad(L, S, 2, "a pointer expected before a size, got %s",
                cgl_lua_typename(L, 2));
  cgl_arg array = {.kind = CGL_ARG_NULL};
  if (lua_type(L, 2) == CGL_LUA_TCDATA)
    cgl_lua_read_cdata(L, S, 2, &array);
  const bool is_array = array.kind == CGL_ARG_BYTES;
  void *host = (void *)(is_array ? (uintptr_t)array.bytes.data
                                 : (uintptr_t)cgl_lua_read_address(L, S, 2));
  const size_t bytes = (size_t)cgl_lua_read_integer(
      L, S, 3, "the size in bytes", 0, CGL_LUA_MAX_WHOLE);
  if (bytes != cgl_buffer_bytes(buffer))
    cgl_lua_bad(L, S, 3, "%lld bytes for a buffer of %lld", (long long)bytes,
                (long long)cgl_buffer_bytes(buffer));
  if (is_array && array.bytes.size < bytes)
    cgl_lua_bad(L, S, 2, "%lld bytes of an FFI array of %lld", (long long)bytes,
                (long long)array.bytes.size);
  if (!host && bytes)
    cgl_lua_bad(L, S, 2, "the pointer is NULL");
  return host;
}


/* b:upload(table | string | cdata), b:upload(pointer, bytes) */
static int buffer_upload(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:upload");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  cgl_lua_elements data;
  if (!lua_isnoneornil(L, 3)) {
    data.bytes = buffer_read_host(L, S, buffer);
    data.shape.count = cgl_buffer_count(buffer);
    buffer_upload_all(L, S, buffer, &data);
    lua_settop(L, 1);
    return 1;
  }
  cgl_lua_read_elements(L, S, 2, cgl_buffer_type(buffer), &data);
  if (data.shape.count != cgl_buffer_count(buffer))
    return cgl_lua_bad(L, S, 2, "%lld elements for a buffer of %lld",
                       (long long)data.shape.count,
                       (long long)cgl_buffer_count(buffer));
  buffer_upload_all(L, S, buffer, &data);
  lua_settop(L, 1);
  return 1;
}


/* Into an FFI array of exactly the buffer's bytes; returns the array. */
static int buffer_download_cdata(lua_State *L, cgl_lua *S, cgl_buffer *buffer) {
  cgl_arg data;
  cgl_lua_read_cdata(L, S, 2, &data);
  size_t bytes = cgl_buffer_bytes(buffer);
  if (data.kind != CGL_ARG_BYTES)
    return cgl_lua_bad(L, S, 2,
                       "an FFI array expected (a pointer does not "
                       "know its size: give the bytes after it)");
  if (data.bytes.size != bytes)
    return cgl_lua_bad(L, S, 2, "an array of %lld bytes for a buffer of %lld",
                       (long long)data.bytes.size, (long long)bytes);
  cgl_lua_cdata_check_type(L, S, 2, cgl_buffer_type(buffer));
  cgl_lua_done(L, S,
               cgl_buffer_download(buffer, cgl_lua_stream(L, S), 0,
                                   (void *)(uintptr_t)data.bytes.data, bytes));
  return 1;
}


/* b:download([table | "string" | cdata]), b:download(pointer, bytes) */
static int buffer_download(lua_State *L) {
  static const char *const forms[] = {"string", NULL};
  cgl_lua *S = cgl_lua_issue(L, "buffer:download");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  cgl_lua_limits_wait(L, S, cgl_lua_stream(L, S), NULL);
  if (!lua_isnoneornil(L, 3)) {
    void *host = buffer_read_host(L, S, buffer);
    cgl_lua_done(L, S,
                 cgl_buffer_download(buffer, cgl_lua_stream(L, S), 0, host,
                                     cgl_buffer_bytes(buffer)));
    lua_settop(L, 2);
    return 1;
  }
  lua_settop(L, 2);
  if (lua_type(L, 2) == CGL_LUA_TCDATA)
    return buffer_download_cdata(L, S, buffer);
  bool as_string = lua_type(L, 2) == LUA_TSTRING;
  if (as_string)
    cgl_lua_read_choice(L, S, 2, "the form", forms);
  else if (!lua_isnil(L, 2) && !lua_istable(L, 2))
    return cgl_lua_bad(L, S, 2,
                       "table, \"string\" or FFI array expected, got %s",
                       cgl_lua_typename(L, 2));
  size_t bytes = cgl_buffer_bytes(buffer), count = cgl_buffer_count(buffer);
  void *scratch = lua_newuserdata(L, bytes);
  cgl_lua_done(
      L, S,
      cgl_buffer_download(buffer, cgl_lua_stream(L, S), 0, scratch, bytes));
  if (as_string) {
    lua_pushlstring(L, scratch, bytes);
    return 1;
  }
  if (lua_isnil(L, 2)) {
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    lua_replace(L, 2);
  }
  cgl_lua_push_elements(L, S, 2, cgl_buffer_type(buffer), scratch, count);
  lua_settop(L, 2);
  return 1;
}


/* b:item() */
static int buffer_item(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:item");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  const size_t count = cgl_buffer_count(buffer);
  char value[CGL_MAX_ELEMENT_BYTES];
  if (count != 1)
    return cgl_lua_raise(L, S, CGL_ERROR_INVALID_ARGUMENT,
                         "download reads all elements; view(i, 1):item() reads "
                         "element i",
                         "the buffer has %lld elements, not one",
                         (long long)count);
  cgl_lua_limits_wait(L, S, cgl_lua_stream(L, S), NULL);
  cgl_lua_done(L, S,
               cgl_buffer_download(buffer, cgl_lua_stream(L, S), 0, value,
                                   cgl_buffer_bytes(buffer)));
  cgl_lua_push_element(L, S, cgl_buffer_type(buffer), value);
  return 1;
}


/* b:copy(buffer | pinned) */
static int buffer_copy(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:copy");
  cgl_buffer *to = cgl_lua_check_buffer(L, S, 1);
  cgl_status status;
  if (cgl_lua_is(L, 2, CGL_LUA_pinned))
    status = cgl_buffer_copy_pinned(to, cgl_lua_check_pinned(L, S, 2),
                                    cgl_lua_stream(L, S));
  else
    status = cgl_buffer_copy(to, cgl_lua_check_buffer(L, S, 2),
                             cgl_lua_stream(L, S));
  cgl_lua_done(L, S, status);
  lua_settop(L, 1);
  return 1;
}


/* b:fill(value), a number or a parameter */
static int buffer_fill(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:fill");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  char value[CGL_MAX_ELEMENT_BYTES];
  if (cgl_lua_is(L, 2, CGL_LUA_param)) {
    cgl_lua_done(L, S,
                 cgl_buffer_fill_param(buffer, cgl_lua_stream(L, S),
                                       cgl_lua_check_param(L, S, 2)));
  } else {
    cgl_lua_read_element(L, S, 2, cgl_buffer_type(buffer), value);
    cgl_lua_done(L, S, cgl_buffer_fill(buffer, cgl_lua_stream(L, S), value));
  }
  lua_settop(L, 1);
  return 1;
}


/* The generator before the other arguments, or the default generator; *next is
   the index of the argument after it. */
static cgl_generator *generator_read(lua_State *L, cgl_lua *S, int *next) {
  *next = lua_isnumber(L, 2) || lua_type(L, 2) == CGL_LUA_TCDATA ||
                  cgl_lua_peek(L, 2, CGL_LUA_param)
              ? 2
              : 3;
  if (*next == 2 || lua_isnoneornil(L, 2))
    return cgl_lua_default_generator(L, S);
  return cgl_lua_check_generator(L, S, 2);
}


static cgl_bound number_read(lua_State *L, cgl_lua *S, int index,
                             const char *what, double otherwise) {
  cgl_bound bound = {NULL, otherwise};
  if (lua_type(L, index) == LUA_TUSERDATA)
    bound.param = cgl_lua_check_param(L, S, index);
  else if (!lua_isnoneornil(L, index))
    bound.number = cgl_lua_read_real(L, S, index, what);
  return bound;
}


/* b:uniform and b:normal: two numbers or parameters, 0 and 1 unless
   they are given. */
static int buffer_fill_real(lua_State *L, const char *operation,
                            const char *first, const char *second,
                            cgl_status (*fill)(cgl_buffer *, cgl_generator *,
                                               cgl_stream *, cgl_bound,
                                               cgl_bound)) {
  cgl_lua *S = cgl_lua_issue(L, operation);
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  int at;
  cgl_generator *generator = generator_read(L, S, &at);
  const cgl_bound a = number_read(L, S, at, first, 0),
                  b = number_read(L, S, at + 1, second, 1);
  cgl_lua_done(L, S, fill(buffer, generator, cgl_lua_stream(L, S), a, b));
  lua_settop(L, 1);
  return 1;
}


/* b:uniform([gen,] [low, high]) */
static int buffer_uniform(lua_State *L) {
  return buffer_fill_real(L, "buffer:uniform", "the lower bound",
                          "the upper bound", cgl_buffer_uniform_params);
}


/* b:normal([gen,] [mean, std]) */
static int buffer_normal(lua_State *L) {
  return buffer_fill_real(L, "buffer:normal", "the mean",
                          "the standard deviation", cgl_buffer_normal_params);
}


/* A bound; a 64-bit FFI integer may be past 2^53. */
static __int128 bound_read(lua_State *L, cgl_lua *S, int index,
                           const char *what) {
  cgl_arg x;
  if (cgl_lua_read_number(L, S, index, &x) && x.kind != CGL_ARG_NUMBER)
    return x.kind == CGL_ARG_INT ? (__int128)x.i : (__int128)x.u;
  return cgl_lua_read_integer(L, S, index, what, -CGL_LUA_MAX_WHOLE,
                              CGL_LUA_MAX_WHOLE);
}


/* The number of values from 0 to the type's largest; 0: 2^64. */
static uint64_t type_value_count(cgl_type type) {
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


/* With a parameter among the bounds. */
static int buffer_random_params(lua_State *L, cgl_lua *S, cgl_buffer *buffer,
                                cgl_generator *generator, int at) {
  const bool pair = !lua_isnoneornil(L, at + 1);
  cgl_bound low = {NULL, 0};
  if (pair)
    low = number_read(L, S, at, "the lower bound", 0);
  const cgl_bound high = number_read(L, S, at + pair, "the upper bound", 0);
  cgl_lua_done(L, S,
               cgl_buffer_random_params(buffer, generator, cgl_lua_stream(L, S),
                                        low, high));
  lua_settop(L, 1);
  return 1;
}


/* b:random([gen,] [[low,] high]): whole numbers from low to below high */
static int buffer_random(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:random");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  int at;
  cgl_generator *generator = generator_read(L, S, &at);
  int64_t low = 0;
  uint64_t count = 0;
  cgl_type type = cgl_buffer_type(buffer);
  if (cgl_lua_peek(L, at, CGL_LUA_param) ||
      cgl_lua_peek(L, at + 1, CGL_LUA_param))
    return buffer_random_params(L, S, buffer, generator, at);
  if (lua_isnoneornil(L, at) && lua_isnoneornil(L, at + 1)) {
    if (cgl_type_bytes(type) < 8 || type == CGL_TYPE_int64)
      count = type_value_count(type);
  } else {
    bool pair = !lua_isnoneornil(L, at + 1);
    __int128 first = pair ? bound_read(L, S, at, "the lower bound") : 0;
    __int128 end = bound_read(L, S, at + pair, "the upper bound");
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


/* b:view(first [, count]), first from 1 */
static int buffer_view(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "buffer:view");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  int64_t total = (int64_t)cgl_buffer_count(buffer);
  int64_t first =
      cgl_lua_read_integer(L, S, 2, "the first element", 1, total + 1);
  int64_t count = total - first + 1;
  cgl_lua_shape shape = {.ndims = 1};
  if (lua_istable(L, 3)) {
    cgl_lua_read_shape(L, S, 3, &shape);
    if (shape.count > (size_t)count)
      cgl_lua_bad(L, S, 3, "the shape has more elements than there are");
    count = (int64_t)shape.count;
  } else if (!lua_isnoneornil(L, 3))
    count = cgl_lua_read_integer(L, S, 3, "the number of elements", 0, count);
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  cgl_lua_try(L, S,
              cgl_buffer_view(buffer, (size_t)first - 1, (size_t)count, slot));
  if (shape.ndims > 1)
    cgl_lua_try(L, S, cgl_buffer_set_shape(*slot, shape.extents, shape.ndims));
  cgl_lua_done(L, S, CGL_OK);
  return 1;
}


/* core.renew(buffer [, view]): a view of all of the buffer, in its shape; a
   former view expires, unless it was released. */
static int core_renew(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graphed callable");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  size_t extents[CGL_MAX_DIMS];
  cgl_buffer *const *former = lua_touserdata(L, 2);
  if (former && *former)
    cgl_lua_done(L, S, cgl_buffer_expire(*former));
  const int ndims = cgl_buffer_shape(buffer, extents);
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  cgl_lua_done(L, S,
               cgl_buffer_view(buffer, 0, cgl_buffer_count(buffer), slot));
  cgl_lua_done(L, S, cgl_buffer_set_shape(*slot, extents, ndims));
  return 1;
}


uint64_t cgl_lua_buffer_address(lua_State *L, cgl_lua *S,
                                const cgl_buffer *buffer) {
  uint64_t address = cgl_buffer_address(buffer);
  if (address)
    return address;
  cgl_lua_site(L, S); /* for the failure, if there is one */
  cgl_clear_error();
  cgl_buffer_address(buffer);
  cgl_lua_done(L, S, cgl_last_error()->code);
  return 0;
}


static int buffer_address(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "buffer:address");
  cgl_buffer *buffer = cgl_lua_check_buffer(L, S, 1);
  lua_pushnumber(L, (double)cgl_lua_buffer_address(L, S, buffer));
  return 1;
}


static int buffer_len(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "buffer:length");
  lua_pushnumber(L, (double)cgl_buffer_count(cgl_lua_check_buffer(L, S, 1)));
  return 1;
}


static int buffer_field(lua_State *L, void *object, const char *name) {
  cgl_buffer *buffer = object;
  if (*name == 't') {
    lua_pushstring(L, cgl_type_name(cgl_buffer_type(buffer)));
  } else if (*name == 'b') {
    lua_pushnumber(L, (double)cgl_buffer_bytes(buffer));
  } else {
    size_t extents[CGL_MAX_DIMS];
    int ndims = cgl_buffer_shape(buffer, extents);
    lua_createtable(L, ndims, 0);
    for (int i = 0; i < ndims; i++) {
      lua_pushnumber(L, (double)extents[i]);
      lua_rawseti(L, -2, i + 1);
    }
  }
  return 1;
}


static void buffer_retire(lua_State *L, cgl_lua *S, void *buffer) {
  if (cgl_buffer_is_kept(buffer))
    cgl_lua_site(L, S); /* a liveness check reports it */
  cgl_buffer_retire(buffer);
}


static int buffer_release(lua_State *L) {
  return cgl_lua_release(L, CGL_LUA_buffer, "buffer:release", buffer_retire);
}


static void buffer_describe(void *object, char *text, size_t room) {
  cgl_buffer *buffer = object;
  size_t extents[CGL_MAX_DIMS], used = 0;
  int ndims = cgl_buffer_shape(buffer, extents);
  used += (size_t)snprintf(text, room, "%s[",
                           cgl_type_name(cgl_buffer_type(buffer)));
  for (int i = 0; i < ndims && used < room; i++)
    used += (size_t)snprintf(text + used, room - used, "%s%zu", i ? ", " : "",
                             extents[i]);
  if (used < room)
    snprintf(text + used, room - used, "] at 0x%llx",
             (unsigned long long)cgl_buffer_address(buffer));
}


cgl_buffer *cgl_lua_buffer_out(lua_State *L, cgl_lua *S, int options,
                               const char *name, cgl_type type,
                               const size_t *extents, int ndims) {
  if (cgl_lua_option(L, S, options, name))
    return cgl_lua_check_buffer(L, S, -1);
  size_t count = 1;
  for (int d = 0; d < ndims; d++)
    count *= extents[d];
  cgl_stream *stream = cgl_lua_stream(L, S);
  cgl_buffer **slot = cgl_lua_new_buffer(L, S);
  cgl_lua_try(L, S, cgl_buffer_create(stream, S->pool, type, count, slot));
  if (ndims > 1)
    cgl_lua_done(L, S, cgl_buffer_set_shape(*slot, extents, ndims));
  cgl_lua_collect_pace(L, S, count * cgl_type_bytes(type));
  return *slot;
}


void cgl_lua_open_buffer(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"upload", buffer_upload},
      {"download", buffer_download},
      {"copy", buffer_copy},
      {"fill", buffer_fill},
      {"uniform", buffer_uniform},
      {"normal", buffer_normal},
      {"random", buffer_random},
      {"view", buffer_view},
      {"address", buffer_address},
      {"item", buffer_item},
      {NULL, NULL},
  };
  static const luaL_Reg metamethods[] = {{"__len", buffer_len}, {NULL, NULL}};
  static const luaL_Reg functions[] = {
      {"buffer", cg_buffer}, {"zeros", cg_zeros},
      {"input", cg_input},   {"full", cg_full},
      {"from", cg_from},     {"buffer_from", cg_buffer_from},
      {"renew", core_renew}, {NULL, NULL},
  };
  static const char *const fields[] = {"type", "bytes", "shape", NULL};
  static const cgl_lua_type type = {.kind = CGL_LUA_buffer,
                                    .release = buffer_release,
                                    .methods = methods,
                                    .metamethods = metamethods,
                                    .field = buffer_field,
                                    .fields = fields,
                                    .elements =
                                        "its elements are on the device; "
                                        "buffer:download() reads all of them "
                                        "into a list, and buffer:view(i, 1) "
                                        "is one, to download or to fill",
                                    .describe = buffer_describe,
                                    .functions = functions};
  cgl_lua_register(L, S, &type);
}
