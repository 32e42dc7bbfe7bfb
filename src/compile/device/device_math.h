/* CUDA's mathematics for the host compiler.
   What the compiler can inline is a builtin; what it cannot is plain arithmetic
   (device_elementary.h and what follows it), or comes from libm.
   Float functions stay in float, names without a suffix are overloaded as in
   CUDA.  The __*f intrinsics are the full functions here: never less exact
   than on a GPU, and not the same last bits. */

/* A value that no later operation may be contracted with. */
#if defined __clang__
#define CGL_EXACT(T, name, arguments, e)        \
  CGL_INLINE T name arguments {                 \
    _Pragma("clang fp contract(off)") return e; \
  }
#elif __GNUC__ >= 12
#define CGL_EXACT(T, name, arguments, e) \
  CGL_INLINE T name arguments {          \
    return __builtin_assoc_barrier(e);   \
  }
#else
#define CGL_EXACT(T, name, arguments, e) \
  CGL_INLINE T name arguments {          \
    T r = e;                             \
    __asm__("" : "+m"(r));               \
    return r;                            \
  }
#endif

template <class T> struct cgl_integer {};
#define CGL_IS_INTEGER(T) \
  template <> struct cgl_integer<T> { typedef double real; };
CGL_IS_INTEGER(bool)
CGL_IS_INTEGER(char)
CGL_IS_INTEGER(signed char)
CGL_IS_INTEGER(unsigned char)
CGL_IS_INTEGER(short)
CGL_IS_INTEGER(unsigned short)
CGL_IS_INTEGER(int)
CGL_IS_INTEGER(unsigned int)
CGL_IS_INTEGER(long)
CGL_IS_INTEGER(unsigned long)
CGL_IS_INTEGER(long long)
CGL_IS_INTEGER(unsigned long long)

/* name for floats and integers. */
#define CGL_OVERLOAD1(name)                                               \
  CGL_INLINE float name(float x) {                                        \
    return name##f(x);                                                    \
  }                                                                       \
  template <class T> CGL_INLINE typename cgl_integer<T>::real name(T x) { \
    return name((double)x);                                               \
  }
/* They come from libm: in float, in double, of two arguments. */
#define CGL_FLOAT1(name) extern "C" float name##f(float) noexcept;
#define CGL_DOUBLE1(name) extern "C" double name(double) noexcept;
#define CGL_BOTH1(name) CGL_FLOAT1(name) CGL_DOUBLE1(name)
#define CGL_BOTH2(name)                            \
  extern "C" float name##f(float, float) noexcept; \
  extern "C" double name(double, double) noexcept;
#define CGL_LIBM1(name) CGL_BOTH1(name) CGL_OVERLOAD1(name)
#define CGL_LIBM2(name) CGL_BOTH2(name) CGL_NAME2(name)
/* Of numbers that are not both float, as C++ has it: double. */
#define CGL_NAME2(name)                                          \
  CGL_INLINE float name(float x, float y) {                      \
    return name##f(x, y);                                        \
  }                                                              \
  template <class A, class B> CGL_INLINE double name(A x, B y) { \
    return name((double)x, (double)y);                           \
  }
#ifndef CGL_ELEMENTARY
CGL_FLOAT1(exp)
CGL_FLOAT1(exp2)
CGL_FLOAT1(exp10)
CGL_FLOAT1(log)
CGL_FLOAT1(log2)
CGL_FLOAT1(log10)
CGL_FLOAT1(tanh)
CGL_FLOAT1(erf)
#endif
#ifndef CGL_POWERS
CGL_DOUBLE1(exp)
CGL_DOUBLE1(exp2)
CGL_DOUBLE1(exp10)
CGL_DOUBLE1(log)
CGL_DOUBLE1(log2)
CGL_DOUBLE1(log10)
CGL_BOTH1(expm1)
CGL_BOTH1(log1p)
CGL_BOTH1(cbrt)
CGL_BOTH2(hypot)
CGL_BOTH2(pow)
#endif
#ifndef CGL_ERF
CGL_DOUBLE1(erf)
#endif
#ifndef CGL_HYPERBOLIC
CGL_DOUBLE1(tanh)
CGL_BOTH1(erfc)
CGL_BOTH1(sinh)
CGL_BOTH1(cosh)
CGL_BOTH1(asinh)
CGL_BOTH1(acosh)
CGL_BOTH1(atanh)
#endif
#ifndef CGL_ANGLES
CGL_FLOAT1(sin)
CGL_FLOAT1(cos)
CGL_FLOAT1(tan)
CGL_BOTH1(asin)
CGL_BOTH1(acos)
CGL_BOTH1(atan)
CGL_BOTH2(atan2)
extern "C" void sincosf(float, float *, float *) noexcept;
#endif
#ifndef CGL_TURNS
CGL_DOUBLE1(sin)
CGL_DOUBLE1(cos)
CGL_DOUBLE1(tan)
extern "C" void sincos(double, double *, double *) noexcept;
#endif
CGL_OVERLOAD1(sin)
CGL_OVERLOAD1(cos)
CGL_OVERLOAD1(tan)
CGL_OVERLOAD1(asin)
CGL_OVERLOAD1(acos)
CGL_OVERLOAD1(atan)
CGL_OVERLOAD1(sinh)
CGL_OVERLOAD1(cosh)
CGL_OVERLOAD1(tanh)
CGL_OVERLOAD1(asinh)
CGL_OVERLOAD1(acosh)
CGL_OVERLOAD1(atanh)
CGL_OVERLOAD1(exp)
CGL_OVERLOAD1(exp2)
CGL_OVERLOAD1(exp10)
CGL_OVERLOAD1(expm1)
CGL_OVERLOAD1(log)
CGL_OVERLOAD1(log2)
CGL_OVERLOAD1(log10)
CGL_OVERLOAD1(log1p)
CGL_OVERLOAD1(cbrt)
CGL_OVERLOAD1(erf)
CGL_OVERLOAD1(erfc)
CGL_NAME2(atan2)
CGL_NAME2(hypot)
CGL_NAME2(pow)
CGL_LIBM1(logb)
CGL_LIBM1(tgamma)
CGL_LIBM1(lgamma)
CGL_LIBM1(j0)
CGL_LIBM1(j1)
CGL_LIBM1(y0)
CGL_LIBM1(y1)
CGL_LIBM2(fmod)
CGL_LIBM2(remainder)
CGL_LIBM2(nextafter)
extern "C" {
double ldexp(double, int) noexcept;
float frexpf(float, int *) noexcept;
double frexp(double, int *) noexcept;
float modff(float, float *) noexcept;
double modf(double, double *) noexcept;
float remquof(float, float, int *) noexcept;
double remquo(double, double, int *) noexcept;
int ilogbf(float) noexcept;
int ilogb(double) noexcept;
float scalblnf(float, long) noexcept;
double scalbln(double, long) noexcept;
float jnf(int, float) noexcept;
double jn(int, double) noexcept;
float ynf(int, float) noexcept;
double yn(int, double) noexcept;
}

/* Functions with instructions of their own: what compilers inline. */
#define CGL_BUILTIN1(name)                                                \
  CGL_INLINE float name##f(float x) {                                     \
    return __builtin_##name##f(x);                                        \
  }                                                                       \
  CGL_INLINE double name(double x) {                                      \
    return __builtin_##name(x);                                           \
  }                                                                       \
  CGL_INLINE float name(float x) {                                        \
    return __builtin_##name##f(x);                                        \
  }                                                                       \
  template <class T> CGL_INLINE typename cgl_integer<T>::real name(T x) { \
    return __builtin_##name((double)x);                                   \
  }
CGL_BUILTIN1(sqrt)
CGL_BUILTIN1(fabs)
CGL_BUILTIN1(floor)
CGL_BUILTIN1(ceil)
CGL_BUILTIN1(trunc)
CGL_BUILTIN1(rint)
CGL_BUILTIN1(nearbyint)

/* In double the product is exact. */
CGL_INLINE float ldexpf(float x, int n) {
  const int most = n < 300 ? n : 300, by = most > -300 ? most : -300;
  const uint64_t power = (uint64_t)(unsigned)(by + 1023) << 52;
  double scale;
  __builtin_memcpy(&scale, &power, sizeof scale);
  return (float)((double)x * scale);
}

#define CGL_BOTH(T, S)                                      \
  CGL_INLINE T copysign##S(T x, T y) {                      \
    return __builtin_copysign##S(x, y);                     \
  }                                                         \
  CGL_INLINE T fma##S(T x, T y, T z) {                      \
    return __builtin_fma##S(x, y, z);                       \
  }                                                         \
  CGL_INLINE T fmin##S(T x, T y) {                          \
    T number = y != y ? x : y;                              \
    return x < number ? x : number;                         \
  }                                                         \
  CGL_INLINE T fmax##S(T x, T y) {                          \
    T number = y != y ? x : y;                              \
    return x > number ? x : number;                         \
  }                                                         \
  CGL_INLINE T fdim##S(T x, T y) {                          \
    return x > y ? x - y : x != x || y != y ? x + y : (T)0; \
  }                                                         \
  CGL_INLINE T rsqrt##S(T x) {                              \
    return (T)1 / __builtin_sqrt##S(x);                     \
  }                                                         \
  CGL_INLINE T rcbrt##S(T x) {                              \
    return (T)1 / cbrt##S(x);                               \
  }                                                         \
  CGL_INLINE T fdivide##S(T x, T y) {                       \
    return x / y;                                           \
  }                                                         \
  CGL_INLINE T scalbn##S(T x, int n) {                      \
    return ldexp##S(x, n);                                  \
  }                                                         \
  CGL_INLINE T saturate##S(T x) {                           \
    return x > 0 ? x < 1 ? x : (T)1 : (T)0;                 \
  }
CGL_BOTH(float, f)
CGL_BOTH(double, )

/* roundf has no instruction: half away from zero, by truncation. */
CGL_INLINE float roundf(float x) {
  return __builtin_truncf(x + __builtin_copysignf(0x1.fffffep-2f, x));
}
CGL_INLINE double round(double x) {
  return __builtin_trunc(x + __builtin_copysign(0x1.fffffffffffffp-2, x));
}
CGL_INLINE float __saturatef(float x) {
  return saturatef(x);
}

#define CGL_MORE(T, S)                                                \
  CGL_INLINE T rhypot##S(T x, T y) {                                  \
    return (T)1 / hypot##S(x, y);                                     \
  }                                                                   \
  CGL_INLINE T norm3d##S(T x, T y, T z) {                             \
    return sqrt##S(x * x + y * y + z * z);                            \
  }                                                                   \
  CGL_INLINE T rnorm3d##S(T x, T y, T z) {                            \
    return rsqrt##S(x * x + y * y + z * z);                           \
  }                                                                   \
  CGL_INLINE T norm4d##S(T x, T y, T z, T w) {                        \
    return sqrt##S(x * x + y * y + z * z + w * w);                    \
  }                                                                   \
  CGL_INLINE T rnorm4d##S(T x, T y, T z, T w) {                       \
    return rsqrt##S(x * x + y * y + z * z + w * w);                   \
  }                                                                   \
  /* n quarter turns and f, all of them exact */                      \
  CGL_INLINE void sincospi##S(T x, T *sine, T *cosine) {              \
    const T turns = 2 * (x - 2 * rint##S(x / 2)), n = rint##S(turns); \
    const bool odd = n * n == 1, back = n * n == 4;                   \
    T s, c;                                                           \
    cgl_part_of_turn(turns - n, &s, &c);                              \
    const T y = odd ? c : s, z = odd ? s : c;                         \
    *sine = y == 0 ? x * 0 : back | (n == -1) ? -y : y;               \
    *cosine = (back | (n == 1) ? -z : z) + 0;                         \
  }                                                                   \
  CGL_INLINE T sinpi##S(T x) {                                        \
    T s, c;                                                           \
    sincospi##S(x, &s, &c);                                           \
    return s;                                                         \
  }                                                                   \
  CGL_INLINE T cospi##S(T x) {                                        \
    T s, c;                                                           \
    sincospi##S(x, &s, &c);                                           \
    return c;                                                         \
  }                                                                   \
  /* exp(x^2) erfc(x), or what that tends to */                       \
  CGL_INLINE T erfcx##S(T x) {                                        \
    const T h = x * x, lost = fma##S(x, x, -h), z = (T)-0.5 / h;      \
    T tail = 1;                                                       \
    for (int k = 27; k > 0; k -= 2)                                   \
      tail = fma##S(k * z, tail, (T)1);                               \
    const T e = exp##S(h) * erfc##S(x);                               \
    const T near = e < (T)__builtin_inf() ? fma##S(e, lost, e) : e;   \
    return x < 9 ? near : (T)(0.5 * M_2_SQRTPI) / x * tail;           \
  }                                                                   \
  CGL_INLINE int isnan(T x) {                                         \
    return x != x;                                                    \
  }                                                                   \
  CGL_INLINE int isinf(T x) {                                         \
    return __builtin_fabs##S(x) == (T)__builtin_inf();                \
  }                                                                   \
  CGL_INLINE int isfinite(T x) {                                      \
    return __builtin_fabs##S(x) < (T)__builtin_inf();                 \
  }                                                                   \
  CGL_INLINE int signbit(T x) {                                       \
    return __builtin_signbit##S(x) != 0;                              \
  }                                                                   \
  CGL_INLINE long lrint##S(T x) {                                     \
    return (long)rint##S(x);                                          \
  }                                                                   \
  CGL_INLINE long long llrint##S(T x) {                               \
    return (long long)rint##S(x);                                     \
  }                                                                   \
  CGL_INLINE long lround##S(T x) {                                    \
    return (long)round##S(x);                                         \
  }                                                                   \
  CGL_INLINE long long llround##S(T x) {                              \
    return (long long)round##S(x);                                    \
  }
#ifndef CGL_ANGLES
CGL_INLINE void cgl_part_of_turn(float f, float *s, float *c) {
  sincosf((float)M_PI_2 * f, s, c);
}
#endif
#ifndef CGL_TURNS
CGL_INLINE void cgl_part_of_turn(double f, double *s, double *c) {
  sincos(M_PI_2 * f, s, c);
}
#endif
CGL_MORE(float, f)
CGL_MORE(double, )

/* a = -x / sqrt(2), and what it lacks weighed by how erfc changes there. */
CGL_INLINE double normcdf(double x) {
  const double a = x * -M_SQRT1_2, b = a > 0 ? a : 0;
  const double lost = fma(x, 4.8336466567264567e-17, fma(x, -M_SQRT1_2, -a));
  const double by = a > 0 && a < 100 ? 2 * b + 1 / (b + .5) : 0;
  return .5 * (erfc(a) * fma(-by, fabs(a) < 100 ? lost : 0, 1.));
}
CGL_INLINE float normcdff(float x) {
  return (float)(.5 * erfc((double)x * -M_SQRT1_2));
}

/* The inverse of erf: a first guess (Winitzki), then Newton's steps. */
static inline double erfinv(double y) {
  const double a = fabs(y);
  if (!(a < 1))
    return copysign(a == 1 ? __builtin_inf() : __builtin_nan(""), y);
  const double l = log(fma(-a, a, 1.)), t = 2 / (M_PI * 0.147) + l / 2;
  double x = sqrt(sqrt(fma(t, t, -l / 0.147)) - t);
  for (int i = 0; i < 4; i++)
    x -= (a > .5 ? (1 - a) - erfc(x) : erf(x) - a) / (M_2_SQRTPI * exp(-x * x));
  return copysign(x, y);
}
CGL_INLINE float erfinvf(float y) {
  return (float)erfinv(y);
}
/* The inverse of erfc, which erfinv does not have in the tail: a guess from
   erfc(x) = exp(-x * x) / (x * sqrt(pi)), then Newton's steps for its
   logarithm. */
static inline double erfcinv(double y) {
  const double tail = y > 1 ? 2 - y : y;
  if (!(tail > 0 && tail < 0.01))
    return tail < 0 ? __builtin_nan("") : erfinv(1 - y);
  const double l = log(tail);
  double x = sqrt(-l - 0.57236494292470008 - log(-l) / 2);
  for (int i = 0; i < 4; i++) {
    const double y0 = erfc(x);
    x += (log(y0) - l) * y0 / (M_2_SQRTPI * exp(-x * x));
  }
  return y > 1 ? -x : x;
}
CGL_INLINE float erfcinvf(float y) {
  return (float)erfcinv(y);
}
CGL_INLINE double normcdfinv(double p) {
  return -M_SQRT2 * erfcinv(2 * p) + 0.; /* no -0 */
}
/* The modified Bessel functions' series, of terms above zero alone. */
static inline double cgl_bessel_i(double x, int order) {
  const double q = x * x / 4;
  double term = order ? x / 2 : 1, sum = term;
  for (int k = 1; k < 2000 && fabs(term) > fabs(sum) * 1e-17; k++) {
    term *= q / ((double)k * (k + order));
    sum += term;
  }
  return sum;
}
CGL_INLINE double cyl_bessel_i0(double x) {
  return cgl_bessel_i(x, 0);
}
CGL_INLINE double cyl_bessel_i1(double x) {
  return cgl_bessel_i(x, 1);
}
CGL_INLINE float cyl_bessel_i0f(float x) {
  return (float)cgl_bessel_i(x, 0);
}
CGL_INLINE float cyl_bessel_i1f(float x) {
  return (float)cgl_bessel_i(x, 1);
}
CGL_INLINE float normcdfinvf(float p) {
  return (float)normcdfinv(p);
}

#define CGL_NAME1(name)            \
  CGL_INLINE float name(float x) { \
    return name##f(x);             \
  }
CGL_NAME1(rsqrt)
CGL_NAME1(rcbrt)
CGL_NAME1(round)
CGL_NAME1(sinpi)
CGL_NAME1(cospi)
CGL_NAME1(normcdf)
CGL_NAME1(erfinv)
CGL_NAME1(erfcinv)
CGL_NAME1(normcdfinv)
CGL_NAME1(erfcx)
CGL_NAME2(copysign)
CGL_NAME2(rhypot)
CGL_NAME2(fmin)
CGL_NAME2(fmax)
CGL_NAME2(fdim)
CGL_INLINE float fma(float x, float y, float z) {
  return fmaf(x, y, z);
}
CGL_INLINE void sincos(float x, float *s, float *c) {
  sincosf(x, s, c);
}
CGL_INLINE void sincospi(float x, float *s, float *c) {
  sincospif(x, s, c);
}
CGL_INLINE float ldexp(float x, int n) {
  return ldexpf(x, n);
}
CGL_INLINE float pow(float x, int n) {
  return powf(x, (float)n);
}
CGL_INLINE double pow(double x, int n) {
  return pow(x, (double)n);
}
CGL_INLINE float powif(float x, int n) {
  return powf(x, (float)n);
}
CGL_INLINE double powi(double x, int n) {
  return pow(x, (double)n);
}

CGL_INLINE int abs(int x) {
  return x < 0 ? -x : x;
}
CGL_INLINE long abs(long x) {
  return x < 0 ? -x : x;
}
CGL_INLINE long long abs(long long x) {
  return x < 0 ? -x : x;
}
CGL_INLINE long labs(long x) {
  return x < 0 ? -x : x;
}
CGL_INLINE long long llabs(long long x) {
  return x < 0 ? -x : x;
}
CGL_INLINE float abs(float x) {
  return fabsf(x);
}
CGL_INLINE double abs(double x) {
  return __builtin_fabs(x);
}
CGL_INLINE float min(float x, float y) {
  return fminf(x, y);
}
CGL_INLINE float max(float x, float y) {
  return fmaxf(x, y);
}
CGL_INLINE double min(double x, double y) {
  return fmin(x, y);
}
CGL_INLINE double max(double x, double y) {
  return fmax(x, y);
}
template <class A, class B> constexpr bool cgl_is_one_type = false;
template <class A> constexpr bool cgl_is_one_type<A, A> = true;
/* Bytes are compared as bytes, 64 in a vector, not as the integers they become.
 */
template <class A, class B>
CGL_INLINE auto min(A x, B y) -> decltype(true ? x + y : y + x) {
  typedef decltype(true ? x + y : y + x) common;
  if constexpr (cgl_is_one_type<A, B>)
    return x < y ? x : y;
  else
    return (common)x < (common)y ? (common)x : (common)y;
}
template <class A, class B>
CGL_INLINE auto max(A x, B y) -> decltype(true ? x + y : y + x) {
  typedef decltype(true ? x + y : y + x) common;
  if constexpr (cgl_is_one_type<A, B>)
    return x > y ? x : y;
  else
    return (common)x > (common)y ? (common)x : (common)y;
}
CGL_INLINE unsigned umin(unsigned x, unsigned y) {
  return x < y ? x : y;
}
CGL_INLINE unsigned umax(unsigned x, unsigned y) {
  return x > y ? x : y;
}

/* ---- intrinsics ---- */
CGL_INLINE float __sinf(float x) {
  return sinf(x);
}
CGL_INLINE float __cosf(float x) {
  return cosf(x);
}
CGL_INLINE float __tanf(float x) {
  return tanf(x);
}
CGL_INLINE float __tanhf(float x) {
  return tanhf(x);
}
CGL_INLINE void __sincosf(float x, float *s, float *c) {
  *s = sinf(x);
  *c = cosf(x);
}
CGL_INLINE float __expf(float x) {
  return expf(x);
}
CGL_INLINE float __exp10f(float x) {
  return exp10f(x);
}
CGL_INLINE float __logf(float x) {
  return logf(x);
}
CGL_INLINE float __log2f(float x) {
  return log2f(x);
}
CGL_INLINE float __log10f(float x) {
  return log10f(x);
}
CGL_INLINE float __powf(float x, float y) {
  return powf(x, y);
}
CGL_INLINE float __fdividef(float x, float y) {
  return x / y;
}
CGL_INLINE float __frsqrt_rn(float x) {
  return 1.0f / __builtin_sqrtf(x);
}

/* Arithmetic with a stated rounding.  _rn is what the machine does; the
   directed ones step from it by the sign of its exact error `e`. */
CGL_INLINE int __float_as_int(float x) {
  int y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
CGL_INLINE unsigned __float_as_uint(float x) {
  return (unsigned)__float_as_int(x);
}
CGL_INLINE float __int_as_float(int x) {
  float y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
CGL_INLINE float __uint_as_float(unsigned x) {
  return __int_as_float((int)x);
}
CGL_INLINE long long __double_as_longlong(double x) {
  long long y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
CGL_INLINE double __longlong_as_double(long long x) {
  double y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
CGL_INLINE int __double2hiint(double x) {
  return (int)(__double_as_longlong(x) >> 32);
}
CGL_INLINE int __double2loint(double x) {
  return (int)__double_as_longlong(x);
}
CGL_INLINE double __hiloint2double(int hi, int lo) {
  return __longlong_as_double(
      (long long)((uint64_t)(unsigned)hi << 32 | (unsigned)lo));
}
