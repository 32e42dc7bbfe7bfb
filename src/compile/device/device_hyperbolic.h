/* The error functions, the hyperbolic ones and their inverses, as
   device_elementary.h has the others. */
#ifdef CGL_ELEMENTARY
#define CGL_HYPERBOLIC 1

/* ---- in float ---- */

/* exp(-x^2) q / (|x| + 2.5), with x^2 in two parts. */
CGL_INLINE float erfcf(float x) {
  const float a = __builtin_fabsf(x), y = a > 10.5f ? 10.5f : a;
  const float d = y + 2.5f, u = 1.f / d, v = u - 0.1624366194009781f;
  float q = -440.810852f;
  q = CGL_FMA(q, v, 29.1143093f);
  q = CGL_FMA(q, v, 271.680573f);
  q = CGL_FMA(q, v, -44.5521507f);
  q = CGL_FMA(q, v, -73.9856873f);
  q = CGL_FMA(q, v, -9.05778885f);
  q = CGL_FMA(q, v, 21.0362568f);
  q = CGL_FMA(q, v, 18.453907f);
  q = CGL_FMA(q, v, 9.09724808f);
  q = CGL_FMA(q, v, 3.2573607f);
  q = CGL_FMA(q, v, 0.917818964f);
  const float w = y * y, low = CGL_FMA(y, y, -w);
  const float t = CGL_FMA(w, -1.44269504f, CGL_ROUNDER), n = t - CGL_ROUNDER;
  /* the part of u that it lacks, weighed by how q u changes with u */
  const float e = CGL_FMA(y - (d - 2.5f), -u, CGL_FMA(d, -u, 1.f));
  float r = CGL_FMA(n, -1.42860677e-6f, -low);
  r = CGL_FMA(e, CGL_FMA(u, 4.97f, 0.83f), r);
  r += CGL_FMA(n, -0.693145752f, -w);
  const float m = q * u;
  const float p =
      cgl_scale(m + CGL_FMA(cgl_exp_part(r), m, CGL_FMA(q, u, -m)), t);
  return x < 0.f ? 2.f - p : p;
}

/* y = n ln(2) + r: cosh(r) - 1 and sinh(r), and a quarter of 2^n and of 2^-n;
   half the sine and cosine of y follow without a division. */
CGL_INLINE void cgl_sinh_parts(float y, float *c, float *s, float *up,
                               float *down) {
  y = y > 89.6f ? 89.6f : y;
  const float t = CGL_FMA(y, 1.44269504f, CGL_ROUNDER), n = t - CGL_ROUNDER;
  const float r = CGL_FMA(n, 1.9046543e-9f, CGL_FMA(n, -0.693147182f, y));
  const float z = r * r, top = CGL_ROUNDER + 64.f, l = t > top ? top : t;
  float p = 0.00139354379f;
  p = CGL_FMA(p, z, 0.0416664593f);
  p = CGL_FMA(p, z, 0.5f);
  *c = p * z;
  float q = 0.00019974068f;
  q = CGL_FMA(q, z, 0.00833317544f);
  q = CGL_FMA(q, z, 0.166666672f);
  *s = CGL_FMA(q, z * r, r);
  const unsigned quarter = 0x3e800000;
  *up = cgl_bits_float((int)(((unsigned)cgl_float_bits(t) << 23) + quarter));
  *down = cgl_bits_float((int)(quarter - ((unsigned)cgl_float_bits(l) << 23)));
}
CGL_INLINE float sinhf(float x) {
  const float a = __builtin_fabsf(x);
  float c, s, up, down;
  cgl_sinh_parts(a, &c, &s, &up, &down);
  const float difference = up - down, lost = up - difference - down;
  const float r = CGL_FMA(s, up + down, CGL_FMA(c, difference, lost));
  const float y = 2.f * (difference + r);
  return __builtin_copysignf(a < 0x1p-13f ? a : y, x);
}
CGL_INLINE float coshf(float x) {
  float c, s, up, down;
  cgl_sinh_parts(__builtin_fabsf(x), &c, &s, &up, &down);
  const float r = CGL_FMA(s, up - down, c * (up + down)) + down;
  return 2.f * (up + r);
}

/* The y whose sinh and cosh are given, plus `more` ln(2).
   sinh + cosh = 2^e m, and y / 2 = e ln(2) / 2 + atanh((m - 1) / (m + 1)),
   where m - 1 becomes the sine and m + 1 the cosine plus 1 if e is zero. */
CGL_INLINE float cgl_area(float sine, float cosine, float rest, float more) {
  const unsigned root = 0x3f3504f3, one = 0x3f800000;
  const float sum = sine + cosine;
  const unsigned bits = (unsigned)cgl_float_bits(sum) - root + one;
  const float power = cgl_bits_float((int)(bits & 0x7f800000));
  const float e = (float)(((int)bits >> 23) - 127);
  const bool near = power == 1.f;
  const float a = near ? 0.f : cosine - power, part = a + sine;
  const float b = near ? cosine : sum, whole = b + power;
  const float half = .5f * whole, over = 1.f / half;
  const float d = part * over, z = d * d;
  /* what the quotient, both sums and the cosine lost */
  float low = CGL_FMA(-half, d, part) + (sine - (part - a));
  low = CGL_FMA(b - (whole - power), -.5f * d, low);
  low = CGL_FMA(near ? 0.f : over, .9f * rest, low);
  float p = 0.00233365688f;
  p = CGL_FMA(p, z, 0.0124929948f);
  p = CGL_FMA(p, z, 0.0833334699f);
  const float k = e + more;
  p = CGL_FMA(p, d * z, k * -1.9046543e-9f);
  p = CGL_FMA(low, over, p);
  return CGL_FMA(k, 0.693147182f, d + p);
}
CGL_INLINE float asinhf(float x) {
  const float a = __builtin_fabsf(x), infinite = __builtin_inff();
  const bool far = a > 0x1p30f;
  const float h = .125f * a, b = far ? 1.f : a;
  const float c = __builtin_sqrtf(CGL_FMA(b, b, 1.f));
  const float rest = CGL_FMA(b, b, CGL_FMA(-c, c, 1.f));
  const float y = cgl_area(far ? h : a, far ? h : c, rest, far ? 3.f : 0.f);
  return __builtin_copysignf(a < infinite ? y : a, x);
}
CGL_INLINE float acoshf(float x) {
  const bool far = x > 0x1p30f;
  const float h = .125f * x, t = x - 1.f;
  const float s = __builtin_sqrtf(CGL_FMA(t, t, t + t));
  const float y = cgl_area(far ? h : s, far ? h : x, 0.f, far ? 3.f : 0.f);
  return x < __builtin_inff() ? x < 1.f ? __builtin_nanf("") : y : x;
}
/* (1 + x) / (1 - x) = 2^e m, and y = e ln(2) / 2 + atanh((m - 1) / (m + 1)),
   which is a quotient of x, or of 1 - x where that is exact. */
CGL_INLINE float atanhf(float x) {
  const float a = __builtin_fabsf(x), b = 1.f - a;
  const unsigned bits = ((unsigned)cgl_float_bits(1.f + a) -
                         (unsigned)cgl_float_bits(b) + 0x400000u) &
                        0x7f800000u;
  const float power = cgl_bits_float((int)(bits + 0x3f800000u));
  const float e = .5f * (float)((int)bits >> 23);
  const bool near = a < .5f;
  const float f = near ? a : -b;
  const float part = CGL_FMA(f, 1.f + power, near ? 1.f - power : 2.f);
  const float whole = CGL_FMA(f, 1.f - power, near ? 1.f + power : 2.f);
  const float d = part / whole, z = d * d;
  float p = 0.152009264f;
  p = CGL_FMA(p, z, 0.199779451f);
  p = CGL_FMA(p, z, 0.333334833f);
  p = CGL_FMA(p, d * z, e * -1.9046543e-9f);
  const float y = CGL_FMA(e, 0.693147182f, d + p);
  const float end = a == 1.f ? __builtin_inff() : __builtin_nanf("");
  return __builtin_copysignf(a < 1.f ? y : end, x);
}

/* ---- in double ---- */

/* a + b x + c x^2 + d x^3, where y = x^2: not a long chain. */
CGL_INLINE double cgl_cubic(double x, double y, double a, double b, double c,
                            double d) {
  return __builtin_fma(__builtin_fma(d, x, c), y, __builtin_fma(b, x, a));
}
/* (e^r - 1 - r) / r^2 for |r| <= ln(2) / 2. */
CGL_INLINE double cgl_exp_rest(double r) {
  const double r2 = r * r, r4 = r2 * r2;
  double q = __builtin_fma(r, 2.5162128505429617e-08, 2.762872102408054e-07);
  q = __builtin_fma(q, r4,
                    cgl_cubic(r, r2, 0.0013888888937166988,
                              0.00019841269989978054, 2.4801498537775513e-05,
                              2.755711407224542e-06));
  q = __builtin_fma(q, r4,
                    cgl_cubic(r, r2, 0.5000000000000007, 0.16666666666666696,
                              0.0416666666665595, 0.008333333333292095));
  return q;
}
/* 2^n, where n stands in the low bits of t and 2^n is normal. */
CGL_INLINE double cgl_normal_power_of_2(double t) {
  return cgl_bits_double((cgl_double_bits(t) + 1023) << 52);
}
/* 2^n is the product of both; n stands in the low bits of t.  Kept above zero,
   because not all vectors have signed shifts of 64 bits. */
CGL_INLINE double cgl_power_of_2(double t, int second) {
  const uint64_t n = cgl_double_bits(t) - 0x4338000000000000ull + 2048;
  const uint64_t half = n >> 1;
  return cgl_bits_double(((second ? n - half : half) - 1) << 52);
}
/* exp(-x^2) q / (|x| + 3.5), with x^2 in two parts. */
CGL_INLINE double erfc(double x) {
  const double a = __builtin_fabs(x), y = a > 28. ? 28. : a;
  const double d = y + 3.5, u = 1. / d, v = u - 0.09066363636363636;
  const double v2 = v * v, v4 = v2 * v2;
  double q = cgl_cubic(v, v2, 323009845.1435921, -1510902148.9716256,
                       2663055555.3559155, -1787442982.6595364);
  q = __builtin_fma(q, v4,
                    cgl_cubic(v, v2, -78519.01244659579, -4933485.292105248,
                              -8544603.480354466, 21062914.872376118));
  q = __builtin_fma(q, v4,
                    cgl_cubic(v, v2, -40164.277319424946, -38129.40738076667,
                              173651.4739012186, 633943.7961014259));
  q = __builtin_fma(q, v4,
                    cgl_cubic(v, v2, 1895.0535619684454, 3401.117533181656,
                              2240.5770542885416, -10346.008175932173));
  q = __builtin_fma(q, v4,
                    cgl_cubic(v, v2, 17.610847326517273, 70.33030291484353,
                              248.95111037891343, 759.497700139393));
  q = __builtin_fma(q, v, 3.9768144916287835);
  q = __builtin_fma(q, v, 0.8193334344401204);
  const double w = y * y, low = __builtin_fma(y, y, -w);
  const double t = __builtin_fma(w, -1.4426950408889634, CGL_ROUNDER_D);
  const double n = t - CGL_ROUNDER_D;
  /* the part of u that it lacks, weighed by how q u changes with u */
  const double e = __builtin_fma(y - (d - 3.5), -u, __builtin_fma(d, -u, 1.));
  double r = __builtin_fma(n, -5.497923018708371e-14, -low);
  r = __builtin_fma(e, __builtin_fma(u, 11.2, 0.76), r);
  r += __builtin_fma(n, -0.6931471805598903, -w);
  const double m = q * u;
  r = __builtin_fma(cgl_exp_rest(r), r * r, r);
  r = m + __builtin_fma(r, m, __builtin_fma(q, u, -m));
  const double p = r * cgl_power_of_2(t, 0) * cgl_power_of_2(t, 1);
  return x < 0. ? 2. - p : p;
}
/* e / (e + 2) with e = exp(2 |x|) - 1. */
CGL_INLINE double tanh(double x) {
  double y = 2. * __builtin_fabs(x);
  y = y > 40. ? 40. : y;
  const double t = __builtin_fma(y, 1.4426950408889634, CGL_ROUNDER_D);
  const double n = t - CGL_ROUNDER_D;
  const double m = __builtin_fma(n, -0.6931471805598903, y);
  const double r = __builtin_fma(n, -5.497923018708371e-14, m);
  const double z = r * r, rest = cgl_exp_rest(r), p = __builtin_fma(rest, z, r);
  const double s = cgl_normal_power_of_2(t), e = __builtin_fma(s, p, s - 1.);
  const double d = e + 2., q = e / d;
  /* what p, e, d and the quotient lost; 1 / (e + 2) = (1 - q) / 2 */
  double low = __builtin_fma(n, -5.497923018708371e-14, m - r);
  low += __builtin_fma(rest, z, r - p);
  low = __builtin_fma(s, low, __builtin_fma(s, p, s - 1. - e));
  double lost = __builtin_fma(-q, d, e) + low;
  lost = __builtin_fma(-q, e - (d - 2.) + low, lost);
  lost = y > 36. ? 0. : lost;
  return __builtin_copysign(__builtin_fma(lost, __builtin_fma(q, -.5, .5), q),
                            x);
}

/* As in float, but with r and sinh(r) - r. */
CGL_INLINE void cgl_sinh_parts(double y, double *r, double *c, double *s,
                               double *up, double *down) {
  y = y > 710.6 ? 710.6 : y;
  const double t = __builtin_fma(y, 1.4426950408889634, CGL_ROUNDER_D);
  const double n = t - CGL_ROUNDER_D;
  const double m = __builtin_fma(n, -0.6931471805598903, y);
  const double h = __builtin_fma(n, -5.497923018708371e-14, m);
  const double low = __builtin_fma(n, -5.497923018708371e-14, m - h);
  const double z = h * h, top = CGL_ROUNDER_D + 64., l = t > top ? top : t;
  double p = 2.763148329138438e-07;
  p = __builtin_fma(p, z, 2.480148937070797e-05);
  p = __builtin_fma(p, z, 0.0013888888947577447);
  p = __builtin_fma(p, z, 0.04166666666651319);
  p = __builtin_fma(p, z, 0.5000000000000013);
  *c = p * z;
  double q = 2.5109148148884077e-08;
  q = __builtin_fma(q, z, 2.7557243909416164e-06);
  q = __builtin_fma(q, z, 0.00019841269886403408);
  q = __builtin_fma(q, z, 0.00833333333332153);
  q = __builtin_fma(q, z, 0.16666666666666677);
  *s = __builtin_fma(q, z * h, low);
  *r = h;
  *up = cgl_bits_double((cgl_double_bits(t) + 1021) << 52);
  *down = cgl_bits_double((1021 - cgl_double_bits(l)) << 52);
}
CGL_INLINE double sinh(double x) {
  const double a = __builtin_fabs(x);
  double r, c, s, up, down;
  cgl_sinh_parts(a, &r, &c, &s, &up, &down);
  const double sum = up + down, difference = up - down;
  const double lost = up - difference - down;
  s = __builtin_fma(r, sum,
                    __builtin_fma(s, sum, __builtin_fma(c, difference, lost)));
  const double y = 2. * (difference + s);
  return __builtin_copysign(a < 0x1p-28 ? a : y, x);
}
CGL_INLINE double cosh(double x) {
  double r, c, s, up, down;
  cgl_sinh_parts(__builtin_fabs(x), &r, &c, &s, &up, &down);
  const double difference = up - down;
  s = __builtin_fma(s, difference, c * (up + down));
  return 2. * (up + (__builtin_fma(r, difference, s) + down));
}

CGL_INLINE double cgl_area(double sine, double cosine, double rest,
                           double more) {
  const uint64_t root = 0x3fe6a09e667f3bcdull, one = 0x3ff0000000000000ull;
  const double sum = sine + cosine;
  const uint64_t bits = cgl_double_bits(sum) - root + one;
  const double power = cgl_bits_double(bits & 0x7ff0000000000000ull);
  const double e = cgl_bits_double((bits >> 52) + 0x4338000000000000ull) -
                   (CGL_ROUNDER_D + 1023.);
  const bool near = power == 1.;
  const double a = near ? 0. : cosine - power, part = a + sine;
  const double b = near ? cosine : sum, whole = b + power;
  const double half = .5 * whole, over = 1. / half;
  const double d = part * over, z = d * d;
  /* what the quotient, both sums and the cosine lost */
  double low = __builtin_fma(-half, d, part) + (sine - (part - a));
  low = __builtin_fma(b - (whole - power), -.5 * d, low);
  low = __builtin_fma(near ? 0. : over, .9 * rest, low);
  double p = 4.515404973073705e-06;
  p = __builtin_fma(p, z, 1.869389445280844e-05);
  p = __builtin_fma(p, z, 8.878693737624952e-05);
  p = __builtin_fma(p, z, 0.00043402731572540884);
  p = __builtin_fma(p, z, 0.002232142870504682);
  p = __builtin_fma(p, z, 0.012499999999816994);
  p = __builtin_fma(p, z, 0.08333333333333418);
  const double k = e + more;
  p = __builtin_fma(p, d * z, k * 2.3190468138462996e-17);
  p = __builtin_fma(low, over, p);
  return __builtin_fma(k, 0.6931471805599453, d + p);
}
CGL_INLINE double asinh(double x) {
  const double a = __builtin_fabs(x), infinite = __builtin_inf();
  const bool far = a > 0x1p60;
  const double h = .125 * a, b = far ? 1. : a;
  const double c = __builtin_sqrt(__builtin_fma(b, b, 1.));
  const double rest = __builtin_fma(b, b, __builtin_fma(-c, c, 1.));
  const double y = cgl_area(far ? h : a, far ? h : c, rest, far ? 3. : 0.);
  return __builtin_copysign(a < infinite ? y : a, x);
}
CGL_INLINE double acosh(double x) {
  const bool far = x > 0x1p60;
  const double h = .125 * x, t = x - 1.;
  const double s = __builtin_sqrt(__builtin_fma(t, t, t + t));
  const double y = cgl_area(far ? h : s, far ? h : x, 0., far ? 3. : 0.);
  return x < __builtin_inf() ? x < 1. ? __builtin_nan("") : y : x;
}
CGL_INLINE double atanh(double x) {
  const double a = __builtin_fabs(x), b = 1. - a;
  const uint64_t bits =
      (cgl_double_bits(1. + a) - cgl_double_bits(b) + 0x8000000000000ull) &
      0x7ff0000000000000ull;
  const double power = cgl_bits_double(bits + 0x3ff0000000000000ull);
  const double e =
      cgl_bits_double((bits >> 52) + 0x4338000000000000ull) - CGL_ROUNDER_D;
  const bool near = a < .5;
  const double f = near ? a : -b;
  const double part = __builtin_fma(f, 1. + power, near ? 1. - power : 2.);
  const double whole = __builtin_fma(f, 1. - power, near ? 1. + power : 2.);
  const double d = part / whole, z = d * d;
  double p = 0.077086733431218;
  p = __builtin_fma(p, z, 0.07621902648568694);
  p = __builtin_fma(p, z, 0.09093339153257929);
  p = __builtin_fma(p, z, 0.11111065276941556);
  p = __builtin_fma(p, z, 0.14285714746796627);
  p = __builtin_fma(p, z, 0.1999999999780406);
  p = __builtin_fma(p, z, 0.3333333333333687);
  p = __builtin_fma(p, d * z, e * 1.1595234069231498e-17);
  const double y = __builtin_fma(e, 0.34657359027997264, d + p);
  const double end = a == 1. ? __builtin_inf() : __builtin_nan("");
  return __builtin_copysign(a < 1. ? y : end, x);
}
#endif
