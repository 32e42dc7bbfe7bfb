/* erf in double, from a table. */
#ifdef CGL_ELEMENTARY
#define CGL_ERF 1

#ifdef __clang__ /* does not compute erf while it compiles */
#define CGL_FOLDED
#else
#define CGL_FOLDED constexpr
#endif
/* erf and its slope at multiples of 1/128, as far as 6. */
struct cgl_erf_table {
  double value[1024], slope[1024];
  CGL_FOLDED cgl_erf_table() : value(), slope() {
    for (int i = 0; i <= 768; i++) {
      const double r = i / 128.;
      value[i] = __builtin_erf(r);
      slope[i] = M_2_SQRTPI * __builtin_exp(-r * r);
    }
  }
};
static const CGL_FOLDED cgl_erf_table cgl_erf_places;
/* From the place r at or below |x|, with d = |x| - r and s = r d: the integral
   of exp(-2 r u - u^2) from 0 to d is d times a series in s and d^2. */
CGL_INLINE double erf(double x) {
  const double y = __builtin_fabs(x);
  const double t = (y - 0x1p-8) + 0x1.8p45, r = t - 0x1.8p45;
  const uint64_t at = cgl_double_bits(t) & 1023;
  const double d = y - r, s = r * d, q = d * d;
  double a = __builtin_fma(s, -0.0446855233, 2 / 15.);
  a = __builtin_fma(a, s, -1 / 3.);
  a = __builtin_fma(a, s, 2 / 3.);
  a = __builtin_fma(a, s, -1.);
  double b = __builtin_fma(s, 0.222369191, -.4);
  b = __builtin_fma(b, s, .5);
  b = __builtin_fma(b, s, -1 / 3.);
  double c = __builtin_fma(s, 0.0762278977, -1 / 6.);
  c = __builtin_fma(q, -0.0237408184, __builtin_fma(c, s, .1));
  const double p = __builtin_fma(q, __builtin_fma(q, c, b), s * a);
  const double v =
      __builtin_fma(__builtin_fma(p, d, d), cgl_erf_places.slope[at],
                    cgl_erf_places.value[at]);
  return __builtin_copysign(y > 6. ? 1. : v, x);
}
#endif
