/* cgraphlua.fft: transforms, on the current stream. */
#include "lua/types/types.h"


/* fft.fft(x [, opts]) and the others */
static int fft_run(lua_State *L, const char *operation,
                   cgl_fft_function function) {
  static const char *const known[] = {"dims", "norm", "out", NULL};
  static const char *const known_of_irfft[] = {"dims", "n", "norm", "out",
                                               NULL};
  static const char *const norms[] = {
#define X(name) #name,
      CGL_FFT_NORMS(X)
#undef X
          NULL};
  cgl_lua *S = cgl_lua_issue(L, operation);
  lua_settop(L, 2);
  cgl_buffer *x = cgl_lua_check_buffer(L, S, 1);
  const bool back = function == CGL_FFT_irfft;
  cgl_lua_options(L, S, 2, back ? known_of_irfft : known);
  size_t extents[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(x, extents);
  const int rank = (int)cgl_lua_option_integer(
      L, S, 2, "dims", 1, ndims < CGL_FFT_MAX_RANK ? ndims : CGL_FFT_MAX_RANK,
      1);
  const cgl_fft_norm norm = (cgl_fft_norm)cgl_lua_option_choice(
      L, S, 2, "norm", norms, CGL_FFT_NORM_backward);
  size_t *last = &extents[ndims - 1];
  if (function == CGL_FFT_rfft)
    *last = *last / 2 + 1;
  if (back) {
    const int64_t n = *last ? 2 * (int64_t)(*last - 1) : 0;
    *last = (size_t)cgl_lua_option_integer(L, S, 2, "n", n, n + 1, n);
  }
  const cgl_type type = cgl_buffer_type(x);
  const bool twice = type == CGL_TYPE_double || type == CGL_TYPE_complex128;
  const cgl_type real = twice ? CGL_TYPE_double : CGL_TYPE_float;
  const cgl_type complex = twice ? CGL_TYPE_complex128 : CGL_TYPE_complex64;
  cgl_fft *fft = cgl_lua_fft(L, S);
  cgl_buffer *out =
      cgl_lua_buffer_out(L, S, 2, "out", back ? real : complex, extents, ndims);
  cgl_lua_done(
      L, S,
      cgl_fft_issue(fft, cgl_lua_stream(L, S), function, norm, rank, x, out));
  return 1;
}


#define X(name)                                      \
  static int fft_##name(lua_State *L) {              \
    return fft_run(L, "fft." #name, CGL_FFT_##name); \
  }
CGL_FFT_FUNCTIONS(X)
#undef X


/* fft.clear() */
static int fft_clear(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "fft.clear");
  cgl_fft_clear(cgl_lua_fft(L, S));
  return 0;
}


/* fft.plans() */
static int fft_plans(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "fft.plans");
  lua_pushnumber(L, (double)cgl_fft_plan_count(cgl_lua_fft(L, S)));
  return 1;
}


/* fft.describe() */
static int fft_describe(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "fft.describe");
  lua_pushstring(L, cgl_fft_describe(cgl_lua_fft(L, S)));
  return 1;
}


void cgl_lua_open_fft(lua_State *L) {
  static const luaL_Reg functions[] = {
#define X(name) {#name, fft_##name},
      CGL_FFT_FUNCTIONS(X)
#undef X
          {"clear", fft_clear},
      {"plans", fft_plans},
      {"describe", fft_describe},
      {NULL, NULL},
  };
  lua_newtable(L);
  cgl_lua_functions(L, functions);
  lua_setfield(L, -2, "fft");
}
