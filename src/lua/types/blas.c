/* cgraphlua.blas: matrices, on the current stream. */
#include "lua/types/types.h"

#include <string.h>


/* ---- operands ---- */

/* alpha or beta: a number, a buffer, or nothing. */
static cgl_arg scalar_option(lua_State *L, cgl_lua *S, int options,
                             const char *name) {
  cgl_arg scalar = {.buffer = NULL};
  if (!cgl_lua_option(L, options, name))
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


/* The operation, with the rest of the call read; the result is on top. */
static int blas_run(lua_State *L, cgl_lua *S, cgl_blas_function function,
                    const cgl_blas_operands *operands) {
  cgl_blas *blas = cgl_lua_blas(L, S);
  cgl_lua_done(L, S,
               cgl_blas_issue(blas, cgl_lua_stream(L, S), function, operands));
  return 1;
}


/* Rows and columns of a matrix, as the option has it. */
static size_t matrix_extent(const cgl_buffer *buffer, bool transposed,
                            bool columns) {
  size_t extents[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(buffer, extents);
  return columns != transposed ? extents[ndims - 1]
         : ndims > 1           ? extents[ndims - 2]
                               : 1;
}


/* ---- functions ---- */

/* blas.gemm(a, b [, opts]) */
static int blas_gemm(lua_State *L) {
  static const char *const known[] = {"alpha",       "beta",        "out",
                                      "transpose_a", "transpose_b", NULL};
  cgl_lua *S = cgl_lua_issue(L, "blas.gemm");
  lua_settop(L, 3);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1),
                         .b = cgl_lua_check_buffer(L, S, 2)};
  cgl_lua_options(L, S, 3, known);
  o.transpose_a = cgl_lua_option_boolean(L, S, 3, "transpose_a", false);
  o.transpose_b = cgl_lua_option_boolean(L, S, 3, "transpose_b", false);
  o.alpha = scalar_option(L, S, 3, "alpha");
  o.beta = scalar_option(L, S, 3, "beta");
  size_t a[CGL_MAX_DIMS], b[CGL_MAX_DIMS];
  const int of_a = cgl_buffer_shape(o.a, a), of_b = cgl_buffer_shape(o.b, b);
  const bool batched = of_a == 3 || of_b == 3;
  const size_t extents[] = {of_a == 3 && *a > 1 ? *a
                            : of_b == 3         ? *b
                                                : 1,
                            matrix_extent(o.a, o.transpose_a, false),
                            matrix_extent(o.b, o.transpose_b, true)};
  o.c = cgl_lua_buffer_out(L, S, 3, "out", cgl_buffer_type(o.a),
                           extents + !batched, 2 + batched);
  return blas_run(L, S, CGL_BLAS_gemm, &o);
}


/* blas.gemv(a, x [, opts]) */
static int blas_gemv(lua_State *L) {
  static const char *const known[] = {"alpha", "beta", "out", "transpose",
                                      NULL};
  cgl_lua *S = cgl_lua_issue(L, "blas.gemv");
  lua_settop(L, 3);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1),
                         .b = cgl_lua_check_buffer(L, S, 2)};
  cgl_lua_options(L, S, 3, known);
  o.transpose_a = cgl_lua_option_boolean(L, S, 3, "transpose", false);
  o.alpha = scalar_option(L, S, 3, "alpha");
  o.beta = scalar_option(L, S, 3, "beta");
  const size_t extents[] = {matrix_extent(o.a, o.transpose_a, false)};
  o.c = cgl_lua_buffer_out(L, S, 3, "out", cgl_buffer_type(o.a), extents, 1);
  return blas_run(L, S, CGL_BLAS_gemv, &o);
}


/* blas.ger(x, y, a [, opts]) */
static int blas_ger(lua_State *L) {
  static const char *const known[] = {"alpha", NULL};
  cgl_lua *S = cgl_lua_issue(L, "blas.ger");
  lua_settop(L, 4);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1),
                         .b = cgl_lua_check_buffer(L, S, 2),
                         .c = cgl_lua_check_buffer(L, S, 3)};
  cgl_lua_options(L, S, 4, known);
  o.alpha = scalar_option(L, S, 4, "alpha");
  lua_settop(L, 3);
  return blas_run(L, S, CGL_BLAS_ger, &o);
}


/* blas.syrk(a [, opts]) */
static int blas_syrk(lua_State *L) {
  static const char zero[CGL_MAX_ELEMENT_BYTES];
  static const char *const known[] = {"alpha",     "beta",  "out",
                                      "transpose", "upper", NULL};
  cgl_lua *S = cgl_lua_issue(L, "blas.syrk");
  lua_settop(L, 2);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1)};
  cgl_lua_options(L, S, 2, known);
  o.transpose_a = cgl_lua_option_boolean(L, S, 2, "transpose", false);
  o.upper = cgl_lua_option_boolean(L, S, 2, "upper", false);
  o.alpha = scalar_option(L, S, 2, "alpha");
  o.beta = scalar_option(L, S, 2, "beta");
  const size_t n = matrix_extent(o.a, o.transpose_a, false);
  const size_t extents[] = {n, n};
  const bool given = cgl_lua_option(L, 2, "out");
  o.c = cgl_lua_buffer_out(L, S, 2, "out", cgl_buffer_type(o.a), extents, 2);
  if (!given) /* the other triangle */
    cgl_lua_done(L, S, cgl_buffer_fill(o.c, cgl_lua_stream(L, S), zero));
  return blas_run(L, S, CGL_BLAS_syrk, &o);
}


/* blas.trsm(a, b [, opts]) */
static int blas_trsm(lua_State *L) {
  static const char *const known[] = {"alpha", "right", "transpose",
                                      "unit",  "upper", NULL};
  cgl_lua *S = cgl_lua_issue(L, "blas.trsm");
  lua_settop(L, 3);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1),
                         .c = cgl_lua_check_buffer(L, S, 2)};
  cgl_lua_options(L, S, 3, known);
  o.right = cgl_lua_option_boolean(L, S, 3, "right", false);
  o.transpose_a = cgl_lua_option_boolean(L, S, 3, "transpose", false);
  o.unit = cgl_lua_option_boolean(L, S, 3, "unit", false);
  o.upper = cgl_lua_option_boolean(L, S, 3, "upper", false);
  o.alpha = scalar_option(L, S, 3, "alpha");
  lua_settop(L, 2);
  return blas_run(L, S, CGL_BLAS_trsm, &o);
}


/* blas.axpy(x, y [, opts]) */
static int blas_axpy(lua_State *L) {
  static const char *const known[] = {"alpha", NULL};
  cgl_lua *S = cgl_lua_issue(L, "blas.axpy");
  lua_settop(L, 3);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1),
                         .c = cgl_lua_check_buffer(L, S, 2)};
  cgl_lua_options(L, S, 3, known);
  o.alpha = scalar_option(L, S, 3, "alpha");
  lua_settop(L, 2);
  return blas_run(L, S, CGL_BLAS_axpy, &o);
}


/* blas.scal(x [, opts]) */
static int blas_scal(lua_State *L) {
  static const char *const known[] = {"alpha", NULL};
  cgl_lua *S = cgl_lua_issue(L, "blas.scal");
  lua_settop(L, 2);
  cgl_blas_operands o = {.c = cgl_lua_check_buffer(L, S, 1)};
  cgl_lua_options(L, S, 2, known);
  o.alpha = scalar_option(L, S, 2, "alpha");
  lua_settop(L, 1);
  return blas_run(L, S, CGL_BLAS_scal, &o);
}


static const char *const only_out[] = {"out", NULL};
static const size_t one = 1;


/* blas.dot(x, y [, opts]) */
static int blas_dot(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "blas.dot");
  lua_settop(L, 3);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1),
                         .b = cgl_lua_check_buffer(L, S, 2)};
  cgl_lua_options(L, S, 3, only_out);
  o.c = cgl_lua_buffer_out(L, S, 3, "out", cgl_buffer_type(o.a), &one, 1);
  return blas_run(L, S, CGL_BLAS_dot, &o);
}


/* blas.nrm2(x [, opts]) */
static int blas_nrm2(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "blas.nrm2");
  lua_settop(L, 2);
  cgl_blas_operands o = {.a = cgl_lua_check_buffer(L, S, 1)};
  cgl_lua_options(L, S, 2, only_out);
  o.c = cgl_lua_buffer_out(L, S, 2, "out", cgl_buffer_type(o.a), &one, 1);
  return blas_run(L, S, CGL_BLAS_nrm2, &o);
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
