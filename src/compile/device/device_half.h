/* half and bfloat16 for the host compiler: stored as 16 bits, computed in
   float, rounded once per operation to nearest even, as a GPU rounds.  The
   conversions are integer arithmetic without branches, which compilers
   vectorise and every CPU has. */
CGL_INLINE float cgl_half_to_float(uint16_t h) {
  const unsigned bits = (h & 0x7fffu) << 13;
  /* 2^112 moves half's exponent to float's and normalises subnormals */
  const float scaled = __int_as_float((int)bits) * 0x1p112f;
  const unsigned special = bits >= 0x0f800000u ? bits | 0x7f800000u : 0;
  const unsigned value = special ? special : __float_as_uint(scaled);
  return __uint_as_float(value | (unsigned)(h & 0x8000) << 16);
}
CGL_INLINE uint16_t cgl_float_to_half(float f) {
  const unsigned all = __float_as_uint(f), x = all & 0x7fffffffu;
  const unsigned normal = (x - 0x38000000u + 0xfff + (x >> 13 & 1)) >> 13;
  /* below 2^-14 an addition rounds at the last subnormal bit */
  const unsigned small =
      __float_as_uint(__uint_as_float(x) + 0.5f) - 0x3f000000u;
  unsigned r = x < 0x38800000u ? small : normal;
  r = x >= 0x477ff000u ? 0x7c00 : r;
  r = x > 0x7f800000u ? 0x7fff : r;
  return (uint16_t)(r | (x > 0x7f800000u ? 0 : all >> 16 & 0x8000));
}
CGL_INLINE float cgl_bfloat_to_float(uint16_t b) {
  return __uint_as_float((unsigned)b << 16);
}
CGL_INLINE uint16_t cgl_float_to_bfloat(float f) {
  const unsigned x = __float_as_uint(f);
  const unsigned r = (x + 0x7fff + (x >> 16 & 1)) >> 16;
  return (uint16_t)((x & 0x7fffffffu) > 0x7f800000u ? 0x7fff : r);
}
/* Two roundings would not equal one: this one goes to odd. */
CGL_INLINE float cgl_to_odd(double x) {
  const float r = (float)x;
  const unsigned bits = __float_as_uint(r);
  const double back = r;
  if (back == x || x != x || bits & 1)
    return r;
  const int away = (back < x) == (x > 0);
  return __uint_as_float(away ? bits + 1 : bits - 1);
}

#define CGL_SMALL_FLOAT(H, to, from)                                  \
  struct __attribute__((aligned(2))) H {                              \
    uint16_t __x;                                                     \
    H() = default;                                                    \
    H(float f) : __x(from(f)) {                                       \
    }                                                                 \
    H(double f) : __x(from(cgl_to_odd(f))) {                          \
    }                                                                 \
    H(int i) : __x(from(cgl_to_odd((double)i))) {                     \
    }                                                                 \
    H(unsigned i) : __x(from(cgl_to_odd((double)i))) {                \
    }                                                                 \
    H(long long i) : __x(from(cgl_to_odd((double)i))) {               \
    }                                                                 \
    H(unsigned long long i) : __x(from(cgl_to_odd((double)i))) {      \
    }                                                                 \
    operator float() const {                                          \
      return to(__x);                                                 \
    }                                                                 \
    H &operator+=(H b) {                                              \
      return *this = H(to(__x) + to(b.__x));                          \
    }                                                                 \
    H &operator-=(H b) {                                              \
      return *this = H(to(__x) - to(b.__x));                          \
    }                                                                 \
    H &operator*=(H b) {                                              \
      return *this = H(to(__x) * to(b.__x));                          \
    }                                                                 \
    H &operator/=(H b) {                                              \
      return *this = H(to(__x) / to(b.__x));                          \
    }                                                                 \
    H &operator++() {                                                 \
      return *this += H(1.0f);                                        \
    }                                                                 \
    H &operator--() {                                                 \
      return *this -= H(1.0f);                                        \
    }                                                                 \
  };                                                                  \
  struct __attribute__((aligned(4))) H##2 {                           \
    H x, y;                                                           \
    H##2() = default;                                                 \
    H##2(H a, H b) : x(a), y(b) {                                     \
    }                                                                 \
  };                                                                  \
  CGL_INLINE H operator+(H a, H b) {                                  \
    return H((float)a + (float)b);                                    \
  }                                                                   \
  CGL_INLINE H operator-(H a, H b) {                                  \
    return H((float)a - (float)b);                                    \
  }                                                                   \
  CGL_INLINE H operator*(H a, H b) {                                  \
    return H((float)a * (float)b);                                    \
  }                                                                   \
  CGL_INLINE H operator/(H a, H b) {                                  \
    return H((float)a / (float)b);                                    \
  }                                                                   \
  CGL_INLINE H operator-(H a) {                                       \
    a.__x ^= 0x8000;                                                  \
    return a;                                                         \
  }                                                                   \
  CGL_INLINE H operator+(H a) {                                       \
    return a;                                                         \
  }                                                                   \
  CGL_SMALL_COMPARE(H, ==, __heq)                                     \
  CGL_SMALL_COMPARE(H, !=, __hneu)                                    \
  CGL_INLINE bool __hne(H a, H b) {                                   \
    return a < b || a > b;                                            \
  }                                                                   \
  CGL_SMALL_COMPARE(H, <, __hlt)                                      \
  CGL_SMALL_COMPARE(H, <=, __hle)                                     \
  CGL_SMALL_COMPARE(H, >, __hgt)                                      \
  CGL_SMALL_COMPARE(H, >=, __hge)                                     \
  CGL_INLINE H __hadd(H a, H b) {                                     \
    return a + b;                                                     \
  }                                                                   \
  CGL_INLINE H __hsub(H a, H b) {                                     \
    return a - b;                                                     \
  }                                                                   \
  CGL_INLINE H __hmul(H a, H b) {                                     \
    return a * b;                                                     \
  }                                                                   \
  CGL_INLINE H __hdiv(H a, H b) {                                     \
    return a / b;                                                     \
  }                                                                   \
  CGL_INLINE H __hneg(H a) {                                          \
    return -a;                                                        \
  }                                                                   \
  CGL_INLINE H __habs(H a) {                                          \
    a.__x &= 0x7fff;                                                  \
    return a;                                                         \
  }                                                                   \
  CGL_INLINE H __hfma(H a, H b, H c) {                                \
    return H((double)(float)a * (double)(float)b + (double)(float)c); \
  }                                                                   \
  CGL_INLINE H __hmax(H a, H b) {                                     \
    return H(fmaxf(a, b));                                            \
  }                                                                   \
  CGL_INLINE H __hmin(H a, H b) {                                     \
    return H(fminf(a, b));                                            \
  }                                                                   \
  CGL_INLINE bool __hisnan(H a) {                                     \
    return isnan((float)a);                                           \
  }                                                                   \
  CGL_INLINE int __hisinf(H a) {                                      \
    return isinf((float)a) ? (float)a > 0 ? 1 : -1 : 0;               \
  }                                                                   \
  CGL_SMALL_PAIR(H, __hadd2, __hadd)                                  \
  CGL_SMALL_PAIR(H, __hsub2, __hsub)                                  \
  CGL_SMALL_PAIR(H, __hmul2, __hmul)                                  \
  CGL_SMALL_PAIR(H, __h2div, __hdiv)                                  \
  CGL_SMALL_PAIR(H, __hmax2, __hmax)                                  \
  CGL_SMALL_PAIR(H, __hmin2, __hmin)                                  \
  CGL_SMALL_PAIR(H, operator+, __hadd)                                \
  CGL_SMALL_PAIR(H, operator-, __hsub)                                \
  CGL_SMALL_PAIR(H, operator*, __hmul)                                \
  CGL_SMALL_PAIR(H, operator/, __hdiv)                                \
  CGL_SMALL_CHANGE(H, +, __hadd2)                                     \
  CGL_SMALL_CHANGE(H, -, __hsub2)                                     \
  CGL_SMALL_CHANGE(H, *, __hmul2)                                     \
  CGL_SMALL_CHANGE(H, /, __h2div)                                     \
  CGL_SMALL_BOTH(H, ==, eq)                                           \
  CGL_SMALL_BOTH(H, !=, neu)                                          \
  CGL_SMALL_BOTH(H, <, lt)                                            \
  CGL_SMALL_BOTH(H, <=, le)                                           \
  CGL_SMALL_BOTH(H, >, gt)                                            \
  CGL_SMALL_BOTH(H, >=, ge)                                           \
  CGL_SMALL_TRUTHS(H, ne)                                             \
  CGL_SMALL_ALONE(H, __habs2, __habs)                                 \
  CGL_SMALL_ALONE(H, __hneg2, __hneg)                                 \
  CGL_SMALL_ALONE(H, operator-, __hneg)                               \
  CGL_INLINE H __hfma_relu(H a, H b, H c) {                           \
    const H r = __hfma(a, b, c);                                      \
    return __hisnan(r) ? r : r > H(0.0f) ? r : H(0.0f);               \
  }                                                                   \
  CGL_INLINE H##2 __hfma2_relu(H##2 a, H##2 b, H##2 c) {              \
    return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)};  \
  }                                                                   \
  CGL_INLINE H##2 __lowhigh2highlow(H##2 a) {                         \
    return {a.y, a.x};                                                \
  }                                                                   \
  CGL_INLINE H##2 __hfma2(H##2 a, H##2 b, H##2 c) {                   \
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};            \
  }                                                                   \
  CGL_SMALL_MATH(H, hsqrt, sqrtf)                                     \
  CGL_SMALL_MATH(H, hrsqrt, rsqrtf)                                   \
  CGL_SMALL_MATH(H, hexp, expf)                                       \
  CGL_SMALL_MATH(H, hexp2, exp2f)                                     \
  CGL_SMALL_MATH(H, hexp10, exp10f)                                   \
  CGL_SMALL_MATH(H, hlog, logf)                                       \
  CGL_SMALL_MATH(H, hlog2, log2f)                                     \
  CGL_SMALL_MATH(H, hlog10, log10f)                                   \
  CGL_SMALL_MATH(H, hsin, sinf)                                       \
  CGL_SMALL_MATH(H, hcos, cosf)                                       \
  CGL_SMALL_MATH(H, htanh, tanhf)                                     \
  CGL_SMALL_MATH(H, hfloor, floorf)                                   \
  CGL_SMALL_MATH(H, hceil, ceilf)                                     \
  CGL_SMALL_MATH(H, htrunc, truncf)                                   \
  CGL_SMALL_MATH(H, hrint, rintf)                                     \
  CGL_SMALL_MATH(H, hrcp, 1.0f /)                                     \
  CGL_SMALL_ALONE(H, h2sqrt, hsqrt)                                   \
  CGL_SMALL_ALONE(H, h2rsqrt, hrsqrt)                                 \
  CGL_SMALL_ALONE(H, h2exp, hexp)                                     \
  CGL_SMALL_ALONE(H, h2exp2, hexp2)                                   \
  CGL_SMALL_ALONE(H, h2exp10, hexp10)                                 \
  CGL_SMALL_ALONE(H, h2log, hlog)                                     \
  CGL_SMALL_ALONE(H, h2log2, hlog2)                                   \
  CGL_SMALL_ALONE(H, h2log10, hlog10)                                 \
  CGL_SMALL_ALONE(H, h2sin, hsin)                                     \
  CGL_SMALL_ALONE(H, h2cos, hcos)                                     \
  CGL_SMALL_ALONE(H, h2floor, hfloor)                                 \
  CGL_SMALL_ALONE(H, h2ceil, hceil)                                   \
  CGL_SMALL_ALONE(H, h2trunc, htrunc)                                 \
  CGL_SMALL_ALONE(H, h2rint, hrint)                                   \
  CGL_SMALL_ALONE(H, h2rcp, hrcp)
#define CGL_SMALL_ALONE(H, name, one) \
  CGL_INLINE H##2 name(H##2 a) {      \
    return {one(a.x), one(a.y)};      \
  }
#define CGL_SMALL_CHANGE(H, op, name)                 \
  CGL_INLINE H##2 &operator op##=(H##2 & a, H##2 b) { \
    return a = name(a, b);                            \
  }
/* One for each of the two that is true. */
#define CGL_SMALL_TRUTHS(H, word)                      \
  CGL_INLINE H##2 __h##word##2(H##2 a, H##2 b) {       \
    return {H(__h##word(a.x, b.x) ? 1.0f : 0.0f),      \
            H(__h##word(a.y, b.y) ? 1.0f : 0.0f)};     \
  }                                                    \
  CGL_INLINE bool __hb##word##2(H##2 a, H##2 b) {      \
    return __h##word(a.x, b.x) && __h##word(a.y, b.y); \
  }
#define CGL_SMALL_BOTH(H, op, word)             \
  CGL_SMALL_TRUTHS(H, word)                     \
  CGL_INLINE bool operator op(H##2 a, H##2 b) { \
    return __hb##word##2(a, b);                 \
  }
#define CGL_SMALL_COMPARE(H, op, name)    \
  CGL_INLINE bool operator op(H a, H b) { \
    return (float)a op(float) b;          \
  }                                       \
  CGL_INLINE bool name(H a, H b) {        \
    return (float)a op(float) b;          \
  }
#define CGL_SMALL_PAIR(H, name, one)       \
  CGL_INLINE H##2 name(H##2 a, H##2 b) {   \
    return {one(a.x, b.x), one(a.y, b.y)}; \
  }
#define CGL_SMALL_MATH(H, name, f) \
  CGL_INLINE H name(H a) {         \
    return H(f((float)a));         \
  }
CGL_SMALL_FLOAT(__half, cgl_half_to_float, cgl_float_to_half)
CGL_SMALL_FLOAT(__nv_bfloat16, cgl_bfloat_to_float, cgl_float_to_bfloat)
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define CGL_SMALL_NAMES(H, word, Pair)                      \
  CGL_INLINE float __##word##2float(H a) {                  \
    return (float)a;                                        \
  }                                                         \
  CGL_INLINE H __float2##word(float a) {                    \
    return H(a);                                            \
  }                                                         \
  CGL_INLINE H __float2##word##_rn(float a) {               \
    return H(a);                                            \
  }                                                         \
  CGL_INLINE H __double2##word(double a) {                  \
    return H(a);                                            \
  }                                                         \
  CGL_INLINE H __int2##word##_rn(int a) {                   \
    return H(a);                                            \
  }                                                         \
  CGL_INLINE H __uint2##word##_rn(unsigned a) {             \
    return H(a);                                            \
  }                                                         \
  CGL_INLINE int __##word##2int_rn(H a) {                   \
    return (int)rintf((float)a);                            \
  }                                                         \
  CGL_INLINE int __##word##2int_rz(H a) {                   \
    return (int)(float)a;                                   \
  }                                                         \
  CGL_INLINE unsigned short __##word##_as_ushort(H a) {     \
    return a.__x;                                           \
  }                                                         \
  CGL_INLINE short __##word##_as_short(H a) {               \
    return (short)a.__x;                                    \
  }                                                         \
  CGL_INLINE H __ushort_as_##word(unsigned short a) {       \
    H r;                                                    \
    r.__x = a;                                              \
    return r;                                               \
  }                                                         \
  CGL_INLINE H __short_as_##word(short a) {                 \
    return __ushort_as_##word((unsigned short)a);           \
  }                                                         \
  CGL_INLINE Pair __floats2##word##2_rn(float a, float b) { \
    return {H(a), H(b)};                                    \
  }                                                         \
  CGL_INLINE Pair __float2##word##2_rn(float a) {           \
    return {H(a), H(a)};                                    \
  }                                                         \
  CGL_INLINE Pair __float22##word##2_rn(float2 a) {         \
    return {H(a.x), H(a.y)};                                \
  }                                                         \
  CGL_INLINE float2 __##word##22float2(Pair a) {            \
    return {(float)a.x, (float)a.y};                        \
  }                                                         \
  CGL_INLINE Pair __##word##2##word##2(H a) {               \
    return {a, a};                                          \
  }                                                         \
  CGL_INLINE Pair __halves2##word##2(H a, H b) {            \
    return {a, b};                                          \
  }                                                         \
  CGL_INLINE Pair make_##word##2(H a, H b) {                \
    return {a, b};                                          \
  }                                                         \
  CGL_INLINE H __low2##word(Pair a) {                       \
    return a.x;                                             \
  }                                                         \
  CGL_INLINE H __high2##word(Pair a) {                      \
    return a.y;                                             \
  }                                                         \
  CGL_INLINE Pair __low2##word##2(Pair a) {                 \
    return {a.x, a.x};                                      \
  }                                                         \
  CGL_INLINE Pair __high2##word##2(Pair a) {                \
    return {a.y, a.y};                                      \
  }                                                         \
  CGL_INLINE Pair __lows2##word##2(Pair a, Pair b) {        \
    return {a.x, b.x};                                      \
  }                                                         \
  CGL_INLINE Pair __highs2##word##2(Pair a, Pair b) {       \
    return {a.y, b.y};                                      \
  }                                                         \
  CGL_INLINE float __low2float(Pair a) {                    \
    return (float)a.x;                                      \
  }                                                         \
  CGL_INLINE float __high2float(Pair a) {                   \
    return (float)a.y;                                      \
  }
CGL_SMALL_NAMES(__half, half, __half2)
CGL_SMALL_NAMES(__nv_bfloat16, bfloat16, __nv_bfloat162)

#ifdef CGL_WITH_ATOMICS
#define CGL_SMALL_ATOMIC(H, PAIR)                                            \
  CGL_INLINE H atomicAdd(H *p, H v) {                                        \
    uint16_t *bits = &p->__x, old = __atomic_load_n(bits, __ATOMIC_RELAXED); \
    H was, made;                                                             \
    do {                                                                     \
      was.__x = old;                                                         \
      made = was + v;                                                        \
    } while (!__atomic_compare_exchange_n(                                   \
        bits, &old, made.__x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));    \
    return was;                                                              \
  }                                                                          \
  CGL_INLINE PAIR atomicAdd(PAIR *p, PAIR v) {                               \
    v.x = atomicAdd(&p->x, v.x);                                             \
    v.y = atomicAdd(&p->y, v.y);                                             \
    return v;                                                                \
  }
CGL_SMALL_ATOMIC(__half, __half2)
CGL_SMALL_ATOMIC(__nv_bfloat16, __nv_bfloat162)
#endif
