/* Elementary functions as plain arithmetic, for processors that fuse a
   multiplication with an addition (CGL_ELEMENTARY).
   A call of libm's stands in the way of vectors, and libm's vector functions
   have other bits than the scalar ones, so that a result would depend on where
   a loop's last vector ends.  These are inline and without branches: a loop
   over threads vectorizes them like its own arithmetic, and a thread gets the
   same bits wherever it runs.
   Invariant: every product that meets a sum is an explicit fma, so that
   nothing is left for the compiler to fuse.  Errors against the exact value,
   in units of the last place, are held by spec/compile/elementary_spec.lua.
   Polynomials are minimax.
   The others stand in device_power.h, device_hyperbolic.h, device_angle.h,
   device_turn.h and device_erf.h, of which a source has those that it needs
   (see compile/host/functions.c). */
#if defined __FMA__ || defined __aarch64__
#define CGL_ELEMENTARY 1

CGL_INLINE int cgl_float_bits(float x) {
  int y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
CGL_INLINE float cgl_bits_float(int x) {
  float y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
CGL_INLINE uint64_t cgl_double_bits(double x) {
  uint64_t y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
CGL_INLINE double cgl_bits_double(uint64_t x) {
  double y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
#define CGL_FMA(a, b, c) __builtin_fmaf(a, b, c)

/* Added to a small number, these leave its nearest integer in the low bits. */
#define CGL_ROUNDER 12582912.f          /* 1.5 * 2^23 */
#define CGL_ROUNDER_D 6755399441055744. /* 1.5 * 2^52 */

/* 2^n p, where n stands in the low bits of t; two steps, so that only the
   second rounds. */
CGL_INLINE float cgl_scale(float p, float t) {
  const int n = cgl_float_bits(t) - cgl_float_bits(CGL_ROUNDER), half = n >> 1;
  return p * cgl_bits_float((int)((unsigned)(half + 127) << 23)) *
         cgl_bits_float((int)((unsigned)(n - half + 127) << 23));
}
/* The same where p and the result are normal. */
CGL_INLINE float cgl_scale_normal(float p, float t) {
  return cgl_bits_float(
      (int)((unsigned)cgl_float_bits(p) + ((unsigned)cgl_float_bits(t) << 23)));
}
/* e^r - 1 for |r| <= ln(2) / 2. */
CGL_INLINE float cgl_exp_part(float r) {
  float q = 0.00138145536f;
  q = CGL_FMA(q, r, 0.0083687449f);
  q = CGL_FMA(q, r, 0.0416683905f);
  q = CGL_FMA(q, r, 0.166665204f);
  q = CGL_FMA(q, r, 0.499999934f);
  return CGL_FMA(q, r * r, r);
}
/* 2^n p: n + 254 stands in the low bits of t and about half of n, and 127, in
   those of `half`; only the second product rounds. */
CGL_INLINE float cgl_scale_by(float p, float t, float half) {
  const unsigned h = (unsigned)cgl_float_bits(half);
  const unsigned rest = (unsigned)cgl_float_bits(t) - h;
  return p * cgl_bits_float((int)(h << 23)) * cgl_bits_float((int)(rest << 23));
}
CGL_INLINE float expf(float x) {
  const float rounder = CGL_ROUNDER + 254.f;
  const float t = CGL_FMA(x, 1.44269504f, rounder);
  const float half = CGL_FMA(x, 0.721347523f, CGL_ROUNDER + 127.f);
  const float n = t - rounder;
  const float r = CGL_FMA(n, 1.9046543e-9f, CGL_FMA(n, -0.693147182f, x));
  float q = 0.0013834742f;
  q = CGL_FMA(q, r, 0.008368952f);
  q = CGL_FMA(q, r, 0.041668165f);
  q = CGL_FMA(q, r, 0.16666521f);
  q = CGL_FMA(q, r, 0.49999994f);
  q = CGL_FMA(q, r, 1.f);
  float p = cgl_scale_by(CGL_FMA(q, r, 1.f), t, half);
  p = x > 89.f ? __builtin_inff() : p;
  return x < -104.f ? 0.f : p;
}
CGL_INLINE float exp10f(float x) {
  const float rounder = CGL_ROUNDER + 254.f;
  const float t = CGL_FMA(x, 3.32192809f, rounder);
  const float half = CGL_FMA(x, 1.66096405f, CGL_ROUNDER + 127.f);
  const float n = t - rounder;
  const float r = CGL_FMA(n, 1.43209889e-8f, CGL_FMA(n, -0.30103001f, x));
  float q = 0.2057092f;
  q = CGL_FMA(q, r, 0.5418402f);
  q = CGL_FMA(q, r, 1.1713178f);
  q = CGL_FMA(q, r, 2.0346563f);
  q = CGL_FMA(q, r, 2.6509485f);
  q = CGL_FMA(q, r, 2.3025851f);
  float p = cgl_scale_by(CGL_FMA(q, r, 1.f), t, half);
  p = x > 39.f ? __builtin_inff() : p;
  return x < -46.f ? 0.f : p;
}
CGL_INLINE float exp2f(float x) {
  x = x < -151.f ? -151.f : x;
  const float rounder = CGL_ROUNDER + 254.f, t = x + rounder;
  const float half = CGL_FMA(x, .5f, CGL_ROUNDER + 127.f);
  const float r = x - (t - rounder);
  float q = 0.00015313883f;
  q = CGL_FMA(q, r, 0.0013390838f);
  q = CGL_FMA(q, r, 0.009618619f);
  q = CGL_FMA(q, r, 0.055503618f);
  q = CGL_FMA(q, r, 0.24022646f);
  q = CGL_FMA(q, r, 0.6931472f);
  const float p = cgl_scale_by(CGL_FMA(q, r, 1.f), t, half);
  return x > 129.f ? __builtin_inff() : p;
}

/* x = 2^e m, sqrt(1/2) <= m < sqrt(2), for what is positive and finite; gives m
   and 2^23 e. */
CGL_INLINE float cgl_split(float x, float *e) {
  const unsigned root = 0x3f3504f3, same = (unsigned)cgl_float_bits(x);
  const unsigned many = (unsigned)cgl_float_bits(x * 0x1p23f) - (23u << 23);
  const unsigned bits = (int)same < 0x800000 ? many : same;
  const unsigned whole = (bits - root) & 0xff800000u;
  *e = (float)(int)whole;
  return cgl_bits_float((int)(bits - whole));
}
/* Less than every logarithm of a finite x, and x itself if it is infinite. */
CGL_INLINE float cgl_below_log(float x) {
  return CGL_FMA(x, 0x1p-121f, -200.f);
}
CGL_INLINE double cgl_below_log(double x) {
  return __builtin_fma(x, 0x1p-1017, -2000.);
}
/* The logarithm `r` of x, but for zero, the infinite and what has none. */
template <class T> CGL_INLINE T cgl_log_ends(T x, T r) {
  const T least = cgl_below_log(x);
  r = r > least ? r : least;
  return x > 0 ? r : x == 0 ? -(T)__builtin_inf() : (T)__builtin_nan("");
}
CGL_INLINE float logf(float x) {
  float e;
  const float t = cgl_split(x, &e) - 1.f;
  float p = -0.07724164f;
  p = CGL_FMA(p, t, 0.12939705f);
  p = CGL_FMA(p, t, -0.1322546f);
  p = CGL_FMA(p, t, 0.14176464f);
  p = CGL_FMA(p, t, -0.16609697f);
  p = CGL_FMA(p, t, 0.20002179f);
  p = CGL_FMA(p, t, -0.25001612f);
  p = CGL_FMA(p, t, 0.33333325f);
  p = CGL_FMA(p, t, -0.49999988f);
  p = CGL_FMA(p, t * t, t);
  return cgl_log_ends(x, CGL_FMA(e, 0.693147182f * 0x1p-23f, p));
}
CGL_INLINE float log2f(float x) {
  float e;
  const float t = cgl_split(x, &e) - 1.f;
  float p = -0.11093335f;
  p = CGL_FMA(p, t, 0.18602085f);
  p = CGL_FMA(p, t, -0.190719f);
  p = CGL_FMA(p, t, 0.20462805f);
  p = CGL_FMA(p, t, -0.23964056f);
  p = CGL_FMA(p, t, 0.28856352f);
  p = CGL_FMA(p, t, -0.3606969f);
  p = CGL_FMA(p, t, 0.48089844f);
  p = CGL_FMA(p, t, -0.72134733f);
  p = CGL_FMA(p, t, -0.05730496f);
  return cgl_log_ends(x, CGL_FMA(e, 0x1p-23f, CGL_FMA(t, 1.5f, p * t)));
}
CGL_INLINE float log10f(float x) {
  float e;
  const float t = cgl_split(x, &e) - 1.f;
  float p = -0.033527344f;
  p = CGL_FMA(p, t, 0.05629097f);
  p = CGL_FMA(p, t, -0.05747911f);
  p = CGL_FMA(p, t, 0.06154621f);
  p = CGL_FMA(p, t, -0.07212741f);
  p = CGL_FMA(p, t, 0.08686994f);
  p = CGL_FMA(p, t, -0.10858099f);
  p = CGL_FMA(p, t, 0.14476475f);
  p = CGL_FMA(p, t, -0.21714719f);
  p = CGL_FMA(p, t, -0.003205518f);
  const float low = e * (0.000248745664f * 0x1p-23f);
  p = CGL_FMA(t, 0.4375f, CGL_FMA(p, t, low));
  return cgl_log_ends(x, CGL_FMA(e, 0.30078125f * 0x1p-23f, p));
}

/* e / (e + 2) with e = exp(2 |x|) - 1. */
CGL_INLINE float tanhf(float x) {
  float y = 2.f * __builtin_fabsf(x);
  y = y > 20.f ? 20.f : y;
  const float t = CGL_FMA(y, 1.44269504f, CGL_ROUNDER), n = t - CGL_ROUNDER;
  const float r = CGL_FMA(n, 1.9046543e-9f, CGL_FMA(n, -0.693147182f, y));
  const float s = cgl_scale_normal(1.f, t);
  const float e = CGL_FMA(s, cgl_exp_part(r), s - 1.f);
  return __builtin_copysignf(e / (e + 2.f), x);
}
/* x + x p(x^2), or 1 - exp(-|x| q(|x|)). */
CGL_INLINE float erff(float x) {
  const float z = x * x;
  float p = -0.000586207142f;
  p = CGL_FMA(p, z, 0.00496750447f);
  p = CGL_FMA(p, z, -0.0267488625f);
  p = CGL_FMA(p, z, 0.112813206f);
  p = CGL_FMA(p, z, -0.376124459f);
  p = CGL_FMA(p, z, 0.128379142f);
  const float a = __builtin_fabsf(x), y = a > 4.f ? 4.f : a;
  float q = 1.0838641e-5f;
  q = CGL_FMA(q, y, -0.0003188857f);
  q = CGL_FMA(q, y, 0.00362658101f);
  q = CGL_FMA(q, y, -0.0237286018f);
  q = CGL_FMA(q, y, 0.106198181f);
  q = CGL_FMA(q, y, 0.635174618f);
  q = CGL_FMA(q, y, 0.12864278f);
  /* q(y) - 1, and then the y that was left out; far from any denormal */
  const float w = -CGL_FMA(q, y, y);
  const float t = CGL_FMA(w, 1.44269504f, CGL_ROUNDER), n = t - CGL_ROUNDER;
  const float r = CGL_FMA(n, 1.9046543e-9f, CGL_FMA(n, -0.693147182f, w));
  const float far = 1.f - cgl_scale_normal(1.f + cgl_exp_part(r), t);
  return a > 0.93f ? __builtin_copysignf(far, x) : CGL_FMA(p, x, x);
}
#endif
