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
   Polynomials are minimax. */
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
CGL_INLINE float expf(float x) {
  x = x > 89.f ? 89.f : x;
  x = x < -104.f ? -104.f : x;
  const float t = CGL_FMA(x, 1.44269504f, CGL_ROUNDER), n = t - CGL_ROUNDER;
  const float r = CGL_FMA(n, 1.9046543e-9f, CGL_FMA(n, -0.693147182f, x));
  return cgl_scale(1.f + cgl_exp_part(r), t);
}
CGL_INLINE float exp10f(float x) {
  x = x > 39.f ? 39.f : x;
  x = x < -46.f ? -46.f : x;
  const float t = CGL_FMA(x, 3.32192809f, CGL_ROUNDER), n = t - CGL_ROUNDER;
  const float r = CGL_FMA(n, 1.43209889e-8f, CGL_FMA(n, -0.30103001f, x));
  return cgl_scale(
      1.f + cgl_exp_part(CGL_FMA(r, 2.30258512f, r * -3.19754435e-8f)), t);
}
CGL_INLINE float exp2f(float x) {
  x = x > 129.f ? 129.f : x;
  x = x < -151.f ? -151.f : x;
  const float t = x + CGL_ROUNDER, r = x - (t - CGL_ROUNDER);
  float q = 0.000153533363f;
  q = CGL_FMA(q, r, 0.00133989009f);
  q = CGL_FMA(q, r, 0.00961843762f);
  q = CGL_FMA(q, r, 0.0555033241f);
  q = CGL_FMA(q, r, 0.240226479f);
  q = CGL_FMA(q, r, 0.693147203f);
  return cgl_scale(CGL_FMA(q, r, 1.f), t);
}

/* x = 2^e (1 + t), sqrt(1/2) <= 1 + t < sqrt(2), and ln(1 + t) - t is
   returned; for what is positive and finite. */
CGL_INLINE float cgl_log_parts(float x, float *exponent, float *part) {
  const bool small = x < 0x1p-126f;
  const int root = 0x3f3504f3;
  const int bits = cgl_float_bits(small ? x * 0x1p23f : x) - root;
  const float e = (float)(bits >> 23) - (small ? 23.f : 0.f);
  const float t = cgl_bits_float((bits & 0x7fffff) + root) - 1.f;
  const float z = t * t;
  float p = -0.0763443743f;
  p = CGL_FMA(p, t, 0.127654715f);
  p = CGL_FMA(p, t, -0.131620055f);
  p = CGL_FMA(p, t, 0.142013624f);
  p = CGL_FMA(p, t, -0.166231436f);
  p = CGL_FMA(p, t, 0.200012361f);
  p = CGL_FMA(p, t, -0.250008268f);
  p = CGL_FMA(p, t, 0.333333317f);
  *exponent = e;
  *part = t;
  return CGL_FMA(-.5f, z, z * t * p);
}
/* The logarithm `r` of x, but for zero, the infinite and what has none. */
template <class T> CGL_INLINE T cgl_log_ends(T x, T r) {
  const T infinite = (T)__builtin_inf();
  r = x > 0 ? r : (T)__builtin_nan("");
  r = x == 0 ? -infinite : r;
  return x == infinite ? x : r;
}
CGL_INLINE float logf(float x) {
  float e, t;
  const float rest = cgl_log_parts(x, &e, &t);
  const float low = CGL_FMA(e, 0.0017409306f, rest);
  return cgl_log_ends(x, CGL_FMA(e, 0.69140625f, t + low));
}
CGL_INLINE float log2f(float x) {
  float e, t;
  const float rest = cgl_log_parts(x, &e, &t);
  float r = CGL_FMA(t, 0.442695041f, rest * 0.442695041f);
  r = r + rest + t;
  return cgl_log_ends(x, r + e);
}
CGL_INLINE float log10f(float x) {
  float e, t;
  const float rest = cgl_log_parts(x, &e, &t);
  float r = (rest + t) * 0.000700731903f;
  r = CGL_FMA(e, 0.000248745664f, r);
  r = CGL_FMA(rest, 0.43359375f, r);
  r = CGL_FMA(t, 0.43359375f, r);
  return cgl_log_ends(x, CGL_FMA(e, 0.30078125f, r));
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

/* ---- in double ---- */

/* 2^n is the product of both; n stands in the low bits of t.  Kept above zero,
   because not all vectors have signed shifts of 64 bits. */
CGL_INLINE double cgl_power_of_2(double t, int second) {
  const uint64_t n = cgl_double_bits(t) - 0x4338000000000000ull + 2048;
  const uint64_t half = n >> 1;
  return cgl_bits_double(((second ? n - half : half) - 1) << 52);
}
/* x = 2^e m, sqrt(1/2) <= m < sqrt(2), for what is positive and normal. */
CGL_INLINE double cgl_split(double x, double *e) {
  const uint64_t root = 0x3fe6a09e667f3bcdull, one = 0x3ff0000000000000ull;
  const uint64_t bits = cgl_double_bits(x) - root + one;
  *e = cgl_bits_double((bits >> 52) + 0x4338000000000000ull) -
       (CGL_ROUNDER_D + 1023.);
  return cgl_bits_double((bits & 0xfffffffffffffull) + root);
}
CGL_INLINE double exp(double x) {
  x = x > 710. ? 710. : x;
  x = x < -746. ? -746. : x;
  const double t = __builtin_fma(x, 1.4426950408889634, CGL_ROUNDER_D);
  const double n = t - CGL_ROUNDER_D;
  double r = __builtin_fma(n, -0.6931471805599453, x);
  r = __builtin_fma(n, -2.3190468138462996e-17, r);
  double q = 2.49999659533704169e-8;
  q = __builtin_fma(q, r, 2.76303063548814723e-7);
  q = __builtin_fma(q, r, 2.75575869775402864e-6);
  q = __builtin_fma(q, r, 0.0000248014929496395564);
  q = __builtin_fma(q, r, 0.000198412695055737984);
  q = __builtin_fma(q, r, 0.00138888889437596);
  q = __builtin_fma(q, r, 0.0083333333334950706);
  q = __builtin_fma(q, r, 0.0416666666665297312);
  q = __builtin_fma(q, r, 0.166666666666664114);
  q = __builtin_fma(q, r, 0.500000000000001067);
  q = __builtin_fma(q, r * r, r);
  return (1. + q) * cgl_power_of_2(t, 0) * cgl_power_of_2(t, 1);
}
CGL_INLINE double log(double x) {
  const bool small = x < 0x1p-1022;
  double e, m = cgl_split(small ? x * 0x1p54 : x, &e);
  e -= small ? 54. : 0.;
  const double t = m - 1., s = t / (2. + t), z = s * s, h = .5 * t * t;
  double p = 0.147975117250452281;
  p = __builtin_fma(p, z, 0.1531390283408348);
  p = __builtin_fma(p, z, 0.181835697569727415);
  p = __builtin_fma(p, z, 0.222221984756173136);
  p = __builtin_fma(p, z, 0.285714287432669566);
  p = __builtin_fma(p, z, 0.399999999994110673);
  p = __builtin_fma(p, z, 0.66666666666667349);
  /* ln(1 + t) = t - (h - s (h + z p)) */
  p = __builtin_fma(s, __builtin_fma(z, p, h), e * 1.8206359985041462e-09);
  p = __builtin_fma(-.5 * t, t, p);
  return cgl_log_ends(x, __builtin_fma(e, 0.6931471787393093, t + p));
}
/* 2^(y log2 |x|), which double makes exact to the last place. */
CGL_INLINE float powf(float x, float y) {
  const double a = (double)__builtin_fabsf(x), infinite = __builtin_inf();
  double e, m = cgl_split(a, &e);
  const double s = (m - 1.) / (m + 1.), z = s * s;
  double p = 0.28292090594736906;
  p = __builtin_fma(p, z, 0.31990432209829333);
  p = __builtin_fma(p, z, 0.41220928387140034);
  p = __builtin_fma(p, z, 0.57707794207509592);
  p = __builtin_fma(p, z, 0.96179669411425474);
  p = __builtin_fma(p, z, 2.8853900817778496);
  double l = __builtin_fma(p, s, e);
  l = a < infinite ? l : a;
  l = a == 0 ? -infinite : l;
  double w = (double)y * l;
  w = y == 0 || l == 0 ? 0. : w;
  w = w > 200. ? 200. : w;
  w = w < -200. ? -200. : w;
  const double t = w + CGL_ROUNDER_D, r = w - (t - CGL_ROUNDER_D);
  double q = 1.3178927837309248e-6;
  q = __builtin_fma(q, r, 1.5309179766698403e-5);
  q = __builtin_fma(q, r, 0.00015403825642998826);
  q = __builtin_fma(q, r, 0.001333345477374996);
  q = __builtin_fma(q, r, 0.0096181286156515943);
  q = __builtin_fma(q, r, 0.05550410935353883);
  q = __builtin_fma(q, r, 0.24022650698113286);
  q = __builtin_fma(q, r, 0.6931471805481916);
  q = __builtin_fma(q, r, 1.);
  const float u =
      (float)cgl_bits_double(cgl_double_bits(q) + (cgl_double_bits(t) << 52));
  const float h = .5f * y;
  const bool whole = __builtin_truncf(y) == y, odd = __builtin_truncf(h) != h;
  const int sign = cgl_float_bits(x) & (int)0x80000000;
  const float v = whole & odd ? cgl_bits_float(cgl_float_bits(u) ^ sign) : u;
  const bool none = (x < 0) & (a < infinite) & !whole;
  return none ? __builtin_nanf("") : x == 1.f ? 1.f : v;
}

/* x = 2^k y, y whole where k is not zero.  2^k 2/pi modulo 4 is the window from
   bit k on of a long 2/pi, and its first 29 bits times y are exact, so that the
   quarter turns of any x come out to the last place. */
static const uint64_t cgl_two_over_pi[] = {
    0x28be60db9391054aull, 0xbe60db9391054a7full, 0x60db9391054a7f09ull,
    0xdb9391054a7f09d5ull, 0x9391054a7f09d5f4ull, 0x91054a7f09d5f47dull,
    0x054a7f09d5f47d4dull, 0x4a7f09d5f47d4d37ull, 0x7f09d5f47d4d3770ull,
    0x09d5f47d4d377036ull, 0xd5f47d4d377036d8ull, 0xf47d4d377036d8a5ull,
    0x7d4d377036d8a566ull, 0x4d377036d8a5664full, 0x377036d8a5664f10ull,
    0x7036d8a5664f10e4ull, 0x36d8a5664f10e410ull,
};
CGL_INLINE float cgl_turn_of(float x, int quarter) {
  const int bits = cgl_float_bits(x), e = (bits >> 23 & 255) - 127;
  const int k = e > 23 ? e - 23 : 0, from = k >> 3, shift = k & 7;
  const double y = (double)cgl_bits_float(
      e > 23 ? (bits & (int)0x807fffff) | 0x4b000000 : bits);
  const uint64_t high = cgl_two_over_pi[from] << shift >> 35;
  const uint64_t low = cgl_two_over_pi[from + 3] << shift << 5 >> 12;
  const double a = cgl_bits_double(high | 0x4180000000000000ull) - 0x1p25;
  const double b = cgl_bits_double(low | 0x3e40000000000000ull) - 0x1p-27;
  const double p = y * a, t = p + CGL_ROUNDER_D;
  const float f = (float)__builtin_fma(y, b, p - (t - CGL_ROUNDER_D));
  const float z = f * f;
  float s = 0.000158194177f;
  s = CGL_FMA(s, z, -0.00468126023f);
  s = CGL_FMA(s, z, 0.0796925818f);
  s = CGL_FMA(s, z, -0.645964096f);
  s = CGL_FMA(f, 1.57079637f, f * CGL_FMA(s, z, -4.37113883e-8f));
  float c = -2.48520647e-5f;
  c = CGL_FMA(c, z, 0.000919162843f);
  c = CGL_FMA(c, z, -0.0208634684f);
  c = CGL_FMA(c, z, 0.253669507f);
  c = CGL_FMA(c, z, -1.23370055f);
  c = CGL_FMA(c, z, 1.f);
  const int turn = (int)cgl_double_bits(t) + quarter;
  const float r = cgl_bits_float(cgl_float_bits(turn & 1 ? c : s) ^
                                 (int)((unsigned)(turn & 2) << 30));
  return e < 128 ? r : __builtin_nanf("");
}
CGL_INLINE float sinf(float x) {
  return cgl_turn_of(x, 0);
}
CGL_INLINE float cosf(float x) {
  return cgl_turn_of(x, 1);
}
CGL_INLINE void sincosf(float x, float *s, float *c) {
  *s = cgl_turn_of(x, 0);
  *c = cgl_turn_of(x, 1);
}
#endif
