/* Sines and tangents in double, behind those in float (device_angle.h).
   Beyond 2^45 they are libm's: a branch, which no loop in vectors may have.  So
   a loop over threads asks for them once for a whole vector, by functions that
   g++ knows as a function's forms for vectors. */
#ifdef CGL_ELEMENTARY
#define CGL_TURNS 1

/* The sine and the cosine of r and what it lacks, r^2 < 0.64. */
CGL_INLINE void cgl_sine_parts(double r, double rest, double *sine,
                               double *cosine) {
  const double z = r * r;
  double s = 1.5890139609038617e-10;
  s = __builtin_fma(s, z, -2.5050643914571032e-8);
  s = __builtin_fma(s, z, 2.755731296754178e-6);
  s = __builtin_fma(s, z, -0.00019841269827737291);
  s = __builtin_fma(s, z, 0.0083333333333198527);
  s = __builtin_fma(s, z, -0.16666666666666621);
  double c = -1.1354298667015632e-11;
  c = __builtin_fma(c, z, 2.0875619380262091e-9);
  c = __builtin_fma(c, z, -2.7557313583674961e-7);
  c = __builtin_fma(c, z, 2.4801587286806011e-5);
  c = __builtin_fma(c, z, -0.0013888888888869814);
  c = __builtin_fma(c, z, 0.041666666666666574);
  const double h = .5 * z, w = 1. - h;
  *sine = r + __builtin_fma(z * r, s, __builtin_fma(-h, rest, rest));
  *cosine = w + __builtin_fma(z * z, c, __builtin_fma(-r, rest, (1. - w) - h));
}
CGL_INLINE void cgl_part_of_turn(double f, double *sine, double *cosine) {
  /* no product, which a sum could take in */
  const double r = __builtin_fma(f, 0x1.921fb54442d18p+0, 0.);
  const double lost = __builtin_fma(f, 0x1.921fb54442d18p+0, -r);
  cgl_sine_parts(r, __builtin_fma(f, 0x1.1a62633145c07p-54, lost), sine,
                 cosine);
}
/* The sine and the cosine of x, |x| < 2^45, but for whole quarter turns, which
   are returned: pi/2 in three parts, and what remains in two, r and `rest`. */
CGL_INLINE uint64_t cgl_turn_parts(double x, double *sine, double *cosine) {
  const double t = __builtin_fma(x, 0x1.45f306dc9c883p-1, CGL_ROUNDER_D);
  const double n = t - CGL_ROUNDER_D;
  const double a = __builtin_fma(n, -0x1.921fb54442d18p+0, x);
  const double p = __builtin_fma(n, 0x1.1a62633145c07p-54, 0.), r = a - p;
  const double lost = __builtin_fma(n, 0x1.1a62633145c07p-54, -p);
  const double rest =
      __builtin_fma(n, 0x1.f1976b7ed8fbcp-110, ((a - r) - p) - lost);
  cgl_sine_parts(r, rest, sine, cosine);
  return cgl_double_bits(t);
}
CGL_INLINE double cgl_of_turn(double s, double c, uint64_t turn) {
  return cgl_bits_double(cgl_double_bits(turn & 1 ? c : s) ^ (turn & 2) << 62);
}
/* What libm has for a larger argument: a loop over threads asks for it once for
   a vector of them, by the functions that follow. */
enum { cgl_far_sin, cgl_far_cos, cgl_far_tan };
extern "C" double cgl_libm_sin(double) noexcept __asm__("sin");
extern "C" double cgl_libm_cos(double) noexcept __asm__("cos");
extern "C" double cgl_libm_tan(double) noexcept __asm__("tan");
static __attribute__((noinline, cold)) double cgl_find_far(double x,
                                                           double which) {
  return which == cgl_far_sin   ? cgl_libm_sin(x)
         : which == cgl_far_cos ? cgl_libm_cos(x)
                                : cgl_libm_tan(x);
}
#if defined __x86_64__ && !defined __clang__
extern "C" __attribute__((simd("notinbranch"), const, nothrow)) double
cgl_far(double x, double near, double which);
#define CGL_FAR(name, type)                                \
  extern "C" __attribute__((noinline, externally_visible)) \
  type cgl_##name(type, type, type) __asm__(#name);        \
  type cgl_##name(type x, type near, type which)
CGL_FAR(cgl_far, double) {
  return __builtin_fabs(x) < 0x1p45 ? near : cgl_find_far(x, which);
}
static __attribute__((noinline, cold)) void
cgl_find_fars(double *near, const double *x, const double *which, int n) {
  for (int i = 0; i < n; i++)
    near[i] = cgl_cgl_far(x[i], near[i], which[i]);
}
template <class V> CGL_INLINE V cgl_each_far(V x, V near, V which) {
  constexpr int n = sizeof x / sizeof x[0];
  const auto small = (x < 0x1p45) & (x > -0x1p45);
  long every = -1;
  for (int i = 0; i < n; i++)
    every &= small[i];
  if (__builtin_expect(!every, 0))
    cgl_find_fars((double *)&near, (const double *)&x, (const double *)&which,
                  n);
  return near;
}
#define CGL_FARS(isa, n)                                                \
  typedef double cgl_doubles_##isa __attribute__((vector_size(8 * n))); \
  CGL_FAR(_ZGV##isa##N##n##vvv_cgl_far, cgl_doubles_##isa) {            \
    return cgl_each_far(x, near, which);                                \
  }
CGL_FARS(b, 2)
#ifdef __AVX__
CGL_FARS(c, 4)
#endif
#ifdef __AVX2__
CGL_FARS(d, 4)
#endif
#ifdef __AVX512F__
CGL_FARS(e, 8)
#endif
#else
CGL_INLINE double cgl_far(double x, double near, double which) {
  return __builtin_fabs(x) < 0x1p45 ? near : cgl_find_far(x, which);
}
#endif
CGL_INLINE double sin(double x) {
  double s, c;
  const uint64_t turn = cgl_turn_parts(x, &s, &c);
  return cgl_far(x, x == 0 ? x : cgl_of_turn(s, c, turn), cgl_far_sin);
}
CGL_INLINE double cos(double x) {
  double s, c;
  const uint64_t turn = cgl_turn_parts(x, &s, &c);
  return cgl_far(x, cgl_of_turn(s, c, turn + 1), cgl_far_cos);
}
CGL_INLINE void sincos(double x, double *sine, double *cosine) {
  *sine = sin(x);
  *cosine = cos(x);
}
CGL_INLINE double tan(double x) {
  double s, c;
  const bool odd = cgl_turn_parts(x, &s, &c) & 1;
  return cgl_far(x, x == 0 ? x : (odd ? -c : s) / (odd ? s : c), cgl_far_tan);
}
#endif
