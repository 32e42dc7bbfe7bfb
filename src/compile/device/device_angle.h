/* Sines and tangents in float, and the inverses of both kinds, as
   device_elementary.h has the others.
   Angles are counted in quarter turns, whose nearest whole number says which
   function of what remains the result is.
   Invariant: what remains is exact to more than a result's last place, however
   large the argument is. */
#ifdef CGL_ELEMENTARY
#define CGL_ANGLES 1

/* x in quarter turns: the nearest whole number of them stands in the low bits
   of *turn, and what remains, no more than a half, is returned.  2/pi comes in
   two parts of one sign, which keeps that of -0; where x is large, without what
   makes whole turns alone. */
CGL_INLINE double cgl_quarters(float x, int *turn) {
  const double a = (double)x, m = __builtin_fabs(a);
  double high = 0x1.45f306dc9c882p-1, low = 0x1.4a7f09d5f47d5p-54;
  high = m < 0x1p51 ? high : -0x1.1b1bbead603d9p-28;
  low = m < 0x1p51 ? low : 0x1.5f47d4d377037p-82;
  high = m < 0x1p77 ? high : 0x1.4a7f09d5f47d5p-54;
  low = m < 0x1p77 ? low : -0x1.6447e493ad4cep-109;
  high = m < 0x1p103 ? high : -0x1.505c1596447e5p-81;
  low = m < 0x1p103 ? low : 0x1.b14acc9e21c82p-135;
  const double t = __builtin_fma(a, high, CGL_ROUNDER_D);
  const double near = __builtin_fma(a, high, -(t - CGL_ROUNDER_D));
  const double f = __builtin_fma(a, low, near), u = f + CGL_ROUNDER_D;
  *turn = (int)(cgl_double_bits(t) + cgl_double_bits(u));
  return f - (u - CGL_ROUNDER_D);
}
/* The sine and the cosine of f quarter turns, |f| <= 1/2. */
CGL_INLINE void cgl_part_of_turn(float f, float *sine, float *cosine) {
  const float z = f * f;
  float s = 0.000158194177f;
  s = CGL_FMA(s, z, -0.00468126023f);
  s = CGL_FMA(s, z, 0.0796925818f);
  s = CGL_FMA(s, z, -0.645964096f);
  /* pi/2 in two parts of one sign, which keeps that of -0 */
  *sine = CGL_FMA(f, 0x1.921fb4p+0f, f * CGL_FMA(s, z, 0x1.4442d2p-24f));
  float c = -2.48520647e-5f;
  c = CGL_FMA(c, z, 0.000919162843f);
  c = CGL_FMA(c, z, -0.0208634684f);
  c = CGL_FMA(c, z, 0.253669507f);
  c = CGL_FMA(c, z, -1.23370055f);
  *cosine = CGL_FMA(c, z, 1.f);
}
/* The sine and the cosine of x, but for whole quarter turns, which are
   returned. */
CGL_INLINE int cgl_turn_parts(float x, float *sine, float *cosine) {
  int turn;
  cgl_part_of_turn((float)cgl_quarters(x, &turn), sine, cosine);
  return turn;
}
CGL_INLINE float cgl_of_turn(float s, float c, int turn) {
  return cgl_bits_float(cgl_float_bits(turn & 1 ? c : s) ^
                        (int)((unsigned)(turn & 2) << 30));
}
CGL_INLINE float sinf(float x) {
  float s, c;
  const int turn = cgl_turn_parts(x, &s, &c);
  return cgl_of_turn(s, c, turn);
}
CGL_INLINE float cosf(float x) {
  float s, c;
  const int turn = cgl_turn_parts(x, &s, &c);
  return cgl_of_turn(s, c, (int)((unsigned)turn + 1));
}
CGL_INLINE void sincosf(float x, float *sine, float *cosine) {
  float s, c;
  const int turn = cgl_turn_parts(x, &s, &c);
  *sine = cgl_of_turn(s, c, turn);
  *cosine = cgl_of_turn(s, c, (int)((unsigned)turn + 1));
}
CGL_INLINE float tanf(float x) {
  float s, c;
  const bool odd = cgl_turn_parts(x, &s, &c) & 1;
  return (odd ? -c : s) / (odd ? s : c);
}

CGL_INLINE float cgl_fused(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
CGL_INLINE double cgl_fused(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
/* pi/2 in two parts. */
template <class T> struct cgl_quarter {};
template <> struct cgl_quarter<float> {
  static constexpr float high = 0x1.921fb6p+0f, low = -0x1.777a5cp-25f;
};
template <> struct cgl_quarter<double> {
  static constexpr double high = 0x1.921fb54442d18p+0,
                          low = 0x1.1a62633145c07p-54;
};
/* asin(s) = s + s z p, z = s^2 < 0.2925. */
CGL_INLINE float cgl_asin_part(float z) {
  float p = 0.0435540788f;
  p = CGL_FMA(p, z, 0.00998702273f);
  p = CGL_FMA(p, z, 0.0330218561f);
  p = CGL_FMA(p, z, 0.044367712f);
  p = CGL_FMA(p, z, 0.0750129744f);
  return CGL_FMA(p, z, 0.166666463f);
}
CGL_INLINE double cgl_asin_part(double z) {
  double p = 0.045689992009217154;
  p = __builtin_fma(p, z, -0.043211318893897933);
  p = __builtin_fma(p, z, 0.038414059168402383);
  p = __builtin_fma(p, z, -0.0036067483360273031);
  p = __builtin_fma(p, z, 0.012843119834862957);
  p = __builtin_fma(p, z, 0.011006752825252569);
  p = __builtin_fma(p, z, 0.014031870512807399);
  p = __builtin_fma(p, z, 0.017347080585599452);
  p = __builtin_fma(p, z, 0.022372482981658472);
  p = __builtin_fma(p, z, 0.030381932627958734);
  p = __builtin_fma(p, z, 0.044642857396478754);
  p = __builtin_fma(p, z, 0.074999999997263117);
  return __builtin_fma(p, z, 0.16666666666667698);
}
/* The inverse sine of a >= 0, or where that is *far from 0, of
   sqrt((1 - a) / 2), of which twice as much is left to pi/2. */
template <class T> CGL_INLINE T cgl_asin_of(T a, bool *far) {
  *far = a > (T).5405;
  const T z = *far ? cgl_fused(a, (T)-.5, (T).5) : a * a;
  const T s = *far ? (T)__builtin_sqrt(z) : a;
  return cgl_fused(s, z * cgl_asin_part(z), s);
}
template <class T> CGL_INLINE T cgl_asin(T x, T a) {
  typedef cgl_quarter<T> quarter;
  bool far;
  const T p = cgl_asin_of(a, &far);
  return far ? cgl_fused(p, (T)-2, quarter::high) + quarter::low : p;
}
template <class T> CGL_INLINE T cgl_acos(T x, T a) {
  typedef cgl_quarter<T> quarter;
  bool far;
  const T p = cgl_asin_of(a, &far), low = x < 0 ? p : -p;
  const T near = quarter::high + (low + quarter::low);
  const T back = 2 * quarter::high - (2 * p - 2 * quarter::low);
  return far ? x < 0 ? back : 2 * p : near;
}
CGL_INLINE float asinf(float x) {
  return __builtin_copysignf(cgl_asin(x, __builtin_fabsf(x)), x);
}
CGL_INLINE double asin(double x) {
  return __builtin_copysign(cgl_asin(x, __builtin_fabs(x)), x);
}
CGL_INLINE float acosf(float x) {
  return cgl_acos(x, __builtin_fabsf(x));
}
CGL_INLINE double acos(double x) {
  return cgl_acos(x, __builtin_fabs(x));
}

/* atan(t) = t + t z p, z = t^2 <= 1. */
CGL_INLINE float cgl_atan_part(float z) {
  float p = -0.00179362588f;
  p = CGL_FMA(p, z, 0.0109146349f);
  p = CGL_FMA(p, z, -0.0311779249f);
  p = CGL_FMA(p, z, 0.0579577051f);
  p = CGL_FMA(p, z, -0.0840345919f);
  p = CGL_FMA(p, z, 0.109521896f);
  p = CGL_FMA(p, z, -0.142642424f);
  p = CGL_FMA(p, z, 0.199985489f);
  return CGL_FMA(p, z, -0.333332986f);
}
CGL_INLINE double cgl_atan_part(double z) {
  double p = 1.3225176638213589e-05;
  p = __builtin_fma(p, z, -0.00015216212535409438);
  p = __builtin_fma(p, z, 0.00083132888610227716);
  p = __builtin_fma(p, z, -0.0028849420359036457);
  p = __builtin_fma(p, z, 0.0071965564739314954);
  p = __builtin_fma(p, z, -0.013900646475528061);
  p = __builtin_fma(p, z, 0.021984957461984287);
  p = __builtin_fma(p, z, -0.029903953754842276);
  p = __builtin_fma(p, z, 0.036641977843835966);
  p = __builtin_fma(p, z, -0.04219182581768887);
  p = __builtin_fma(p, z, 0.047223237295218844);
  p = __builtin_fma(p, z, -0.052535190354202337);
  p = __builtin_fma(p, z, 0.058805279308000967);
  p = __builtin_fma(p, z, -0.066664040782731485);
  p = __builtin_fma(p, z, 0.076922798419410868);
  p = __builtin_fma(p, z, -0.090909070032246811);
  p = __builtin_fma(p, z, 0.11111111007039452);
  p = __builtin_fma(p, z, -0.14285714282575554);
  p = __builtin_fma(p, z, 0.19999999999951468);
  return __builtin_fma(p, z, -0.33333333333333071);
}
/* The angle of (x, y) where both are no less than 0, and y to the left of it
   where the vector is turned `back`. */
template <class T> CGL_INLINE T cgl_angle(T y, T x, bool back) {
  typedef cgl_quarter<T> quarter;
  const bool steep = y > x;
  const T most = steep ? y : x, least = steep ? x : y;
  T t = least / most;
  t = least == most ? most == 0 ? (T)0 : (T)1 : t;
  const T z = t * t, p = cgl_fused(t, z * cgl_atan_part(z), t);
  const T turns = steep ? (T)1 : back ? (T)2 : (T)0;
  const T part = steep != back ? -p : p;
  return cgl_fused(turns, quarter::high, cgl_fused(turns, quarter::low, part));
}
CGL_INLINE float atan2f(float y, float x) {
  return __builtin_copysignf(
      cgl_angle(__builtin_fabsf(y), __builtin_fabsf(x), cgl_float_bits(x) < 0),
      y);
}
CGL_INLINE double atan2(double y, double x) {
  return __builtin_copysign(cgl_angle(__builtin_fabs(y), __builtin_fabs(x),
                                      cgl_double_bits(x) >> 63 != 0),
                            y);
}
template <class T> CGL_INLINE T cgl_atan(T a) {
  typedef cgl_quarter<T> quarter;
  const bool steep = a > 1;
  const T t = steep ? (T)1 / a : a, z = t * t;
  const T p = cgl_fused(t, z * cgl_atan_part(z), t);
  return steep ? quarter::high - (p - quarter::low) : p;
}
CGL_INLINE float atanf(float x) {
  return __builtin_copysignf(cgl_atan(__builtin_fabsf(x)), x);
}
CGL_INLINE double atan(double x) {
  return __builtin_copysign(cgl_atan(__builtin_fabs(x)), x);
}
#endif
