/* cgraphlua.algo: algorithms on buffers, on the current stream. */
#include "lua/types/types.h"

#include <string.h>


/* The value of an input, which is on top of the stack. */
static void input_read(lua_State *L, cgl_lua *S, cgl_algo_input *input) {
  if (cgl_lua_is(L, -1, CGL_LUA_buffer)) {
    input->value.kind = CGL_ARG_BUFFER;
    input->value.buffer = cgl_lua_peek(L, -1, CGL_LUA_buffer);
    if (!input->value.buffer)
      cgl_lua_raise(L, S, CGL_ERROR_RELEASED, cgl_lua_released_hint,
                    "input '%s' was released", input->name);
  } else if (lua_isboolean(L, -1)) {
    input->value.kind = CGL_ARG_BOOL;
    input->value.boolean = lua_toboolean(L, -1);
  } else if (lua_type(L, -1) == LUA_TSTRING ||
             !cgl_lua_read_number(L, S, lua_gettop(L), &input->value)) {
    cgl_lua_bad(L, S, 2, "input '%s' must be a buffer or a number, got %s",
                input->name, cgl_lua_typename(L, -1));
  }
}


/* The inputs of the table at 2, by name: Lua's own order differs from run to
   run, and kernels are found again by their parameters. */
static size_t inputs_read(lua_State *L, cgl_lua *S,
                          cgl_algo_input inputs[CGL_ALGO_MAX_INPUTS]) {
  size_t n = 0;
  if (!lua_istable(L, 2))
    cgl_lua_bad(L, S, 2, "a table of inputs by name expected, got %s",
                cgl_lua_typename(L, 2));
  for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      cgl_lua_bad(L, S, 2, "an input's name must be a string, got %s",
                  cgl_lua_typename(L, -2));
    if (n == CGL_ALGO_MAX_INPUTS)
      cgl_lua_bad(L, S, 2, "at most %d inputs are possible",
                  CGL_ALGO_MAX_INPUTS);
    cgl_algo_input input = {.name = lua_tostring(L, -2)};
    input_read(L, S, &input);
    size_t at = n++;
    for (; at && strcmp(inputs[at - 1].name, input.name) > 0; at--)
      inputs[at] = inputs[at - 1];
    inputs[at] = input;
  }
  return n;
}


/* The option `name`, or a new buffer of a type and the shape of x. */
static cgl_buffer *out_like(lua_State *L, cgl_lua *S, int options,
                            const char *name, cgl_type type,
                            const cgl_buffer *x) {
  size_t extents[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(x, extents);
  return cgl_lua_buffer_out(L, S, options, name, type, extents, ndims);
}


/* The options `out`, or a new buffer of as many elements as x, and `count`, or
   a new one. */
static cgl_buffer *out_some(lua_State *L, cgl_lua *S, int options,
                            const cgl_buffer *x, cgl_buffer **count) {
  static const size_t one = 1;
  const size_t most = cgl_buffer_count(x);
  cgl_buffer *out =
      cgl_lua_buffer_out(L, S, options, "out", cgl_buffer_type(x), &most, 1);
  *count = cgl_lua_buffer_out(L, S, options, "count", CGL_TYPE_int64, &one, 1);
  return out;
}


static const char *const only_out[] = {"out", NULL};
static const char *const count_and_out[] = {"count", "out", NULL};


/* algo.map(expression, inputs, out) */
static int algo_map(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.map");
  lua_settop(L, 3);
  const char *expression = cgl_lua_read_string(L, S, 1, "the expression", NULL);
  cgl_algo_input inputs[CGL_ALGO_MAX_INPUTS];
  const size_t n = inputs_read(L, S, inputs);
  cgl_buffer *out = cgl_lua_check_buffer(L, S, 3);
  cgl_lua_done(L, S,
               cgl_algo_map(cgl_lua_algo(L, S), cgl_lua_stream(L, S),
                            expression, inputs, n, out));
  return 1;
}


/* algo.reduce(x, reduction [, opts]) */
static int algo_reduce(lua_State *L) {
  static const char *const names[] = {
#define X(name) #name,
      CGL_ALGO_REDUCTIONS(X)
#undef X
          NULL};
  static const char *const known[] = {"axis", "out", "with", NULL};
  cgl_lua *S = cgl_lua_issue(L, "algo.reduce");
  lua_settop(L, 3);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  const cgl_algo_reduction reduction =
      (cgl_algo_reduction)cgl_lua_read_choice(L, S, 2, "the reduction", names);
  cgl_lua_options(L, S, 3, known);
  size_t extents[CGL_MAX_DIMS];
  int ndims = cgl_buffer_shape(x, extents);
  const int axis =
      (int)cgl_lua_option_integer(L, S, 3, "axis", 1, ndims, 0) - 1;
  cgl_buffer *y = cgl_lua_option_object(L, S, 3, "with", CGL_LUA_buffer);
  for (int d = axis; axis >= 0 && d + 1 < ndims; d++)
    extents[d] = extents[d + 1];
  ndims -= 1;
  if (axis < 0 || !ndims)
    extents[0] = (size_t)(ndims = 1);
  cgl_buffer *out = cgl_lua_buffer_out(
      L, S, 3, "out", cgl_algo_reduce_type(reduction, cgl_buffer_type(x)),
      extents, ndims);
  cgl_lua_done(L, S,
               cgl_algo_reduce(cgl_lua_algo(L, S), cgl_lua_stream(L, S),
                               reduction, x, y, axis, out));
  return 1;
}


/* algo.scan(x, kind [, opts]) */
static int algo_scan(lua_State *L) {
  static const char *const names[] = {
#define X(name) #name,
      CGL_ALGO_SCANS(X)
#undef X
          NULL};
  static const char *const known[] = {"exclusive", "out", NULL};
  cgl_lua *S = cgl_lua_issue(L, "algo.scan");
  lua_settop(L, 3);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  const cgl_algo_scan_kind kind =
      (cgl_algo_scan_kind)cgl_lua_read_choice(L, S, 2, "the kind", names);
  cgl_lua_options(L, S, 3, known);
  const bool exclusive = cgl_lua_option_boolean(L, S, 3, "exclusive", false);
  const cgl_type type = cgl_buffer_type(x);
  cgl_buffer *out =
      out_like(L, S, 3, "out",
               kind == CGL_ALGO_SCAN_sum
                   ? cgl_algo_reduce_type(CGL_ALGO_REDUCE_sum, type)
                   : type,
               x);
  cgl_lua_done(L, S,
               cgl_algo_scan(cgl_lua_algo(L, S), cgl_lua_stream(L, S), kind,
                             exclusive, x, out));
  return 1;
}


/* algo.gather(x, indices [, opts]) */
static int algo_gather(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.gather");
  lua_settop(L, 3);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  cgl_buffer *indices = cgl_lua_check_buffer(L, S, 2);
  cgl_lua_options(L, S, 3, only_out);
  cgl_buffer *out = out_like(L, S, 3, "out", cgl_buffer_type(x), indices);
  cgl_lua_done(L, S,
               cgl_algo_gather(cgl_lua_algo(L, S), cgl_lua_stream(L, S), x,
                               indices, out));
  return 1;
}


/* algo.scatter(x, indices, out) */
static int algo_scatter(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.scatter");
  lua_settop(L, 3);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  cgl_buffer *indices = cgl_lua_check_buffer(L, S, 2);
  cgl_buffer *out = cgl_lua_check_buffer(L, S, 3);
  cgl_lua_done(L, S,
               cgl_algo_scatter(cgl_lua_algo(L, S), cgl_lua_stream(L, S), x,
                                indices, out));
  return 1;
}


/* algo.select(x, flags [, opts]): the elements, and their number */
static int algo_select(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.select");
  lua_settop(L, 3);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  cgl_buffer *flags = cgl_lua_check_buffer(L, S, 2);
  cgl_lua_options(L, S, 3, count_and_out);
  cgl_buffer *count, *out = out_some(L, S, 3, x, &count);
  cgl_lua_done(L, S,
               cgl_algo_select(cgl_lua_algo(L, S), cgl_lua_stream(L, S), x,
                               flags, out, count));
  return 2;
}


/* algo.transpose(x [, opts]) */
static int algo_transpose(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.transpose");
  lua_settop(L, 2);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  cgl_lua_options(L, S, 2, only_out);
  size_t extents[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(x, extents);
  const size_t turned[] = {ndims == 2 ? extents[1] : cgl_buffer_count(x),
                           ndims == 2 ? extents[0] : 1};
  cgl_buffer *out =
      cgl_lua_buffer_out(L, S, 2, "out", cgl_buffer_type(x), turned, 2);
  cgl_lua_done(
      L, S,
      cgl_algo_transpose(cgl_lua_algo(L, S), cgl_lua_stream(L, S), x, out));
  return 1;
}


/* algo.sort(x [, opts]) */
static int algo_sort(lua_State *L) {
  static const char *const known[] = {"descending", "out", NULL};
  cgl_lua *S = cgl_lua_issue(L, "algo.sort");
  lua_settop(L, 2);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  cgl_lua_options(L, S, 2, known);
  const bool descending = cgl_lua_option_boolean(L, S, 2, "descending", false);
  cgl_buffer *out = out_like(L, S, 2, "out", cgl_buffer_type(x), x);
  cgl_lua_done(L, S,
               cgl_algo_sort(cgl_lua_algo(L, S), cgl_lua_stream(L, S),
                             descending, x, NULL, out, NULL));
  return 1;
}


/* algo.sort_by_key(keys, values [, opts]): keys and values */
static int algo_sort_by_key(lua_State *L) {
  static const char *const known[] = {"descending", "out", "out_values", NULL};
  cgl_lua *S = cgl_lua_issue(L, "algo.sort_by_key");
  lua_settop(L, 3);
  cgl_buffer *keys = cgl_lua_check_buffer(L, S, 1);
  cgl_buffer *values = cgl_lua_check_buffer(L, S, 2);
  cgl_lua_options(L, S, 3, known);
  const bool descending = cgl_lua_option_boolean(L, S, 3, "descending", false);
  cgl_buffer *out = out_like(L, S, 3, "out", cgl_buffer_type(keys), keys);
  cgl_buffer *out_values =
      out_like(L, S, 3, "out_values", cgl_buffer_type(values), values);
  cgl_lua_done(L, S,
               cgl_algo_sort(cgl_lua_algo(L, S), cgl_lua_stream(L, S),
                             descending, keys, values, out, out_values));
  return 2;
}


/* algo.unique(x [, opts]): the elements, and their number */
static int algo_unique(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.unique");
  lua_settop(L, 2);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  cgl_lua_options(L, S, 2, count_and_out);
  cgl_buffer *count, *out = out_some(L, S, 2, x, &count);
  cgl_lua_done(
      L, S,
      cgl_algo_unique(cgl_lua_algo(L, S), cgl_lua_stream(L, S), x, out, count));
  return 2;
}


/* algo.histogram(x, bins, low, high [, opts]) */
static int algo_histogram(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "algo.histogram");
  lua_settop(L, 5);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  const size_t bins =
      (size_t)cgl_lua_read_integer(L, S, 2, "the number of bins", 1, INT32_MAX);
  const double low = cgl_lua_read_real(L, S, 3, "the lower bound");
  const double high = cgl_lua_read_real(L, S, 4, "the upper bound");
  cgl_lua_options(L, S, 5, only_out);
  cgl_buffer *out =
      cgl_lua_buffer_out(L, S, 5, "out", CGL_TYPE_int64, &bins, 1);
  if (cgl_buffer_count(out) != bins)
    return cgl_lua_bad(L, S, 5, "option 'out' has %lld elements for %lld bins",
                       (long long)cgl_buffer_count(out), (long long)bins);
  cgl_lua_done(L, S,
               cgl_algo_histogram(cgl_lua_algo(L, S), cgl_lua_stream(L, S), x,
                                  low, high, out));
  return 1;
}


void cgl_lua_open_algo(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"map", algo_map},
      {"reduce", algo_reduce},
      {"scan", algo_scan},
      {"gather", algo_gather},
      {"scatter", algo_scatter},
      {"select", algo_select},
      {"transpose", algo_transpose},
      {"sort", algo_sort},
      {"sort_by_key", algo_sort_by_key},
      {"unique", algo_unique},
      {"histogram", algo_histogram},
      {NULL, NULL},
  };
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  lua_setfield(L, -2, "algo");
}
