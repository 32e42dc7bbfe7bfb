/* cgraphlua.blas: matrices, on the current stream. */
#include "lua/types/types.h"

#include <string.h>


/* ---- operands ---- */

/* alpha or beta: a number, a buffer, or nothing. */
static cgl_arg scalar_option(lua_State *L, cgl_lua *S, int options,
                             const char *name) {
  cgl_arg scalar = {.buffer = NULL};
  if (!cgl_lua_option(L, S, options, name))
    return scalar;
  if (cgl_lua_is(L, -1, CGL_LUA_buffer))
    scalar.buffer = cgl_lua_check_buffer(L, S, lua_gettop(L));
  else if (lua_type(L, -1) == LUA_TNUMBER)
    scalar = (cgl_arg){.kind = CGL_ARG_NUMBER, .number = lua_tonumber(L, -1)};
  else
    cgl_lua_bad(L, S, options,
                "option '%s' must be a number or a buffer, got %s", name,
                cgl_lua_typename(L, -1));
  lua_pop(L, 1);
  return scalar;
}


/* {first, count}, from 1: columns of a buffer's rows. */
static cgl_blas_columns columns_option(lua_State *L, cgl_lua *S, int options,
                                       const char *name) {
  cgl_blas_columns some = {0, 0};
  if (!cgl_lua_option(L, S, options, name))
    return some;
  const int at = lua_gettop(L);
  if (!lua_istable(L, at) || lua_objlen(L, at) != 2)
    cgl_lua_bad(L, S, options,
                "option '%s' must be a list of two, the first column and their "
                "number",
                name);
  lua_rawgeti(L, at, 1);
  lua_rawgeti(L, at, 2);
  some.first =
      (size_t)cgl_lua_read_integer(L, S, at + 1, name, 1, INT32_MAX) - 1;
  some.count = (size_t)cgl_lua_read_integer(L, S, at + 2, name, 1, INT32_MAX);
  lua_settop(L, at - 1);
  return some;
}


/* A call as it begins: its buffers are the first arguments, the operands that
   `given` names ("ab"), the options follow.  What the function has not, its
   options do not name. */
static cgl_lua *blas_begin(lua_State *L, const char *name, const char *given,
                           const char *const *known, cgl_blas_operands *o) {
  cgl_lua *S = cgl_lua_issue(L, name);
  const int options = (int)strlen(given) + 1;
  lua_settop(L, options);
  *o = (cgl_blas_operands){.a = NULL};
  for (int i = 1; i < options; i++)
    *(given[i - 1] == 'a'   ? &o->a
      : given[i - 1] == 'b' ? &o->b
                            : &o->c) = cgl_lua_check_buffer(L, S, i);
  cgl_lua_options(L, S, options, known);
  o->transpose_a =
      cgl_lua_option_boolean(L, S, options, "transpose_a", false) ||
      cgl_lua_option_boolean(L, S, options, "transpose", false);
  o->transpose_b = cgl_lua_option_boolean(L, S, options, "transpose_b", false);
  o->upper = cgl_lua_option_boolean(L, S, options, "upper", false);
  o->right = cgl_lua_option_boolean(L, S, options, "right", false);
  o->unit = cgl_lua_option_boolean(L, S, options, "unit", false);
  o->alpha = scalar_option(L, S, options, "alpha");
  o->beta = scalar_option(L, S, options, "beta");
  return S;
}


/* Issues it.  c is one of `given`, or on top of the stack. */
static int blas_end(lua_State *L, cgl_lua *S, cgl_blas_function function,
                    const char *given, const cgl_blas_operands *o) {
  const char *c = strchr(given, 'c');
  if (c)
    lua_pushvalue(L, (int)(c - given) + 1);
  cgl_blas *blas = cgl_lua_blas(L, S);
  cgl_lua_done(L, S, cgl_blas_issue(blas, cgl_lua_stream(L, S), function, o));
  return 1;
}


/* Rows or columns of a matrix, as the options have it. */
static size_t matrix_extent(const cgl_buffer *buffer, bool transposed,
                            bool columns, size_t some) {
  size_t extents[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(buffer, extents);
  return columns != transposed ? (some ? some : extents[ndims - 1])
         : ndims > 1           ? extents[ndims - 2]
                               : 1;
}


/* ---- functions ---- */

/* blas.gemm(a, b [, opts]) */
static int blas_gemm(lua_State *L) {
  static const char *const known[] = {
      "alpha",       "beta",        "columns_a",   "columns_b",
      "columns_out", "conjugate_a", "conjugate_b", "out",
      "precision",   "transpose_a", "transpose_b", NULL};
  static const char *const precisions[] = {
#define X(name) #name,
      CGL_BLAS_PRECISIONS(X)
#undef X
          NULL};
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, "blas.gemm", "ab", known, &o);
  o.conjugate_a = cgl_lua_option_boolean(L, S, 3, "conjugate_a", false);
  o.conjugate_b = cgl_lua_option_boolean(L, S, 3, "conjugate_b", false);
  o.precision = (cgl_blas_precision)cgl_lua_option_choice(
      L, S, 3, "precision", precisions, CGL_BLAS_PRECISION_ieee);
  o.columns_a = columns_option(L, S, 3, "columns_a");
  o.columns_b = columns_option(L, S, 3, "columns_b");
  o.columns_c = columns_option(L, S, 3, "columns_out");
  if (o.columns_c.count && !cgl_lua_option(L, S, 3, "out"))
    cgl_lua_bad(L, S, 3,
                "option 'columns_out' is of the option 'out', which "
                "is not there");
  size_t a[CGL_MAX_DIMS], b[CGL_MAX_DIMS];
  const int of_a = cgl_buffer_shape(o.a, a), of_b = cgl_buffer_shape(o.b, b);
  const bool batched = of_a == 3 || of_b == 3;
  const size_t extents[] = {
      of_a == 3 && *a != 1 ? *a
      : of_b == 3          ? *b
                           : 1,
      matrix_extent(o.a, o.transpose_a, false, o.columns_a.count),
      matrix_extent(o.b, o.transpose_b, true, o.columns_b.count)};
  o.c = cgl_lua_buffer_out(L, S, 3, "out", cgl_buffer_type(o.a),
                           extents + !batched, 2 + batched);
  return blas_end(L, S, CGL_BLAS_gemm, "ab", &o);
}


/* blas.gemv(a, x [, opts]) */
static int blas_gemv(lua_State *L) {
  static const char *const known[] = {"alpha", "beta", "out", "transpose",
                                      NULL};
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, "blas.gemv", "ab", known, &o);
  const size_t n = matrix_extent(o.a, o.transpose_a, false, 0);
  o.c = cgl_lua_buffer_out(L, S, 3, "out", cgl_buffer_type(o.a), &n, 1);
  return blas_end(L, S, CGL_BLAS_gemv, "ab", &o);
}


/* blas.syrk(a [, opts]) */
static int blas_syrk(lua_State *L) {
  static const char zero[CGL_MAX_ELEMENT_BYTES];
  static const char *const known[] = {"alpha",     "beta",  "out",
                                      "transpose", "upper", NULL};
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, "blas.syrk", "a", known, &o);
  const size_t n = matrix_extent(o.a, o.transpose_a, false, 0);
  const size_t extents[] = {n, n};
  const bool given = cgl_lua_option(L, S, 2, "out");
  o.c = cgl_lua_buffer_out(L, S, 2, "out", cgl_buffer_type(o.a), extents, 2);
  if (!given) /* the other triangle */
    cgl_lua_done(L, S, cgl_buffer_fill(o.c, cgl_lua_stream(L, S), zero));
  return blas_end(L, S, CGL_BLAS_syrk, "a", &o);
}


/* Those that change an argument. */

static const char *const only_alpha[] = {"alpha", NULL};


/* blas.ger(x, y, a [, opts]) */
static int blas_ger(lua_State *L) {
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, "blas.ger", "abc", only_alpha, &o);
  return blas_end(L, S, CGL_BLAS_ger, "abc", &o);
}


/* blas.trsm(a, b [, opts]) */
static int blas_trsm(lua_State *L) {
  static const char *const known[] = {"alpha", "right", "transpose",
                                      "unit",  "upper", NULL};
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, "blas.trsm", "ac", known, &o);
  return blas_end(L, S, CGL_BLAS_trsm, "ac", &o);
}


/* blas.axpy(x, y [, opts]) */
static int blas_axpy(lua_State *L) {
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, "blas.axpy", "ac", only_alpha, &o);
  return blas_end(L, S, CGL_BLAS_axpy, "ac", &o);
}


/* blas.scal(x [, opts]) */
static int blas_scal(lua_State *L) {
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, "blas.scal", "c", only_alpha, &o);
  return blas_end(L, S, CGL_BLAS_scal, "c", &o);
}


/* Those of one number. */
static int blas_sum(lua_State *L, const char *name, const char *given,
                    cgl_blas_function function) {
  static const char *const only_out[] = {"out", NULL};
  static const size_t one = 1;
  cgl_blas_operands o;
  cgl_lua *S = blas_begin(L, name, given, only_out, &o);
  o.c = cgl_lua_buffer_out(L, S, (int)strlen(given) + 1, "out",
                           cgl_buffer_type(o.a), &one, 1);
  return blas_end(L, S, function, given, &o);
}


/* blas.dot(x, y [, opts]) */
static int blas_dot(lua_State *L) {
  return blas_sum(L, "blas.dot", "ab", CGL_BLAS_dot);
}


/* blas.nrm2(x [, opts]) */
static int blas_nrm2(lua_State *L) {
  return blas_sum(L, "blas.nrm2", "a", CGL_BLAS_nrm2);
}


/* blas.describe() */
static int blas_describe(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "blas.describe");
  lua_pushstring(L, cgl_blas_describe(cgl_lua_blas(L, S)));
  return 1;
}


void cgl_lua_open_blas(lua_State *L) {
  static const luaL_Reg functions[] = {
#define X(name) {#name, blas_##name},
      CGL_BLAS_FUNCTIONS(X)
#undef X
          {"describe", blas_describe},
      {NULL, NULL},
  };
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  lua_setfield(L, -2, "blas");
}
