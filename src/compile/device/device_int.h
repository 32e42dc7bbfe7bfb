/* CUDA's integer and rounding intrinsics for the host compiler. */
CGL_INLINE int __popc(unsigned x) {
  return __builtin_popcount(x);
}
CGL_INLINE int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
CGL_INLINE int __clz(int x) {
  return x ? __builtin_clz((unsigned)x) : 32;
}
CGL_INLINE int __clzll(long long x) {
  return x ? __builtin_clzll((unsigned long long)x) : 64;
}
CGL_INLINE int __ffs(int x) {
  return __builtin_ffs(x);
}
CGL_INLINE int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
CGL_INLINE unsigned __brev(unsigned x) {
  x = (x & 0x55555555u) << 1 | (x >> 1 & 0x55555555u);
  x = (x & 0x33333333u) << 2 | (x >> 2 & 0x33333333u);
  x = (x & 0x0f0f0f0fu) << 4 | (x >> 4 & 0x0f0f0f0fu);
  return __builtin_bswap32(x);
}
CGL_INLINE unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 |
         __brev((unsigned)(x >> 32));
}
CGL_INLINE unsigned __byte_perm(unsigned x, unsigned y, unsigned s) {
  const uint64_t bytes = (uint64_t)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned choice = s >> (4 * i);
    unsigned byte = (unsigned)(bytes >> (8 * (choice & 7))) & 255;
    if (choice & 8)
      byte = byte & 128 ? 255 : 0;
    r |= byte << (8 * i);
  }
  return r;
}
CGL_INLINE int __mulhi(int x, int y) {
  return (int)((long long)x * y >> 32);
}
CGL_INLINE unsigned __umulhi(unsigned x, unsigned y) {
  return (unsigned)((unsigned long long)x * y >> 32);
}
CGL_INLINE long long __mul64hi(long long x, long long y) {
  return (long long)((__int128)x * y >> 64);
}
CGL_INLINE unsigned long long __umul64hi(unsigned long long x,
                                         unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
CGL_INLINE int __mul24(int x, int y) {
  const long long a = (int)((unsigned)x << 8) >> 8;
  return (int)(a * ((int)((unsigned)y << 8) >> 8));
}
CGL_INLINE unsigned __umul24(unsigned x, unsigned y) {
  return (x & 0xffffff) * (y & 0xffffff);
}
CGL_INLINE unsigned __sad(int x, int y, unsigned z) {
  return z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x);
}
CGL_INLINE unsigned __usad(unsigned x, unsigned y, unsigned z) {
  return z + (x > y ? x - y : y - x);
}
CGL_INLINE int __hadd(int x, int y) {
  return (int)(((long long)x + y) >> 1);
}
CGL_INLINE int __rhadd(int x, int y) {
  return (int)(((long long)x + y + 1) >> 1);
}
CGL_INLINE unsigned __uhadd(unsigned x, unsigned y) {
  return (unsigned)(((unsigned long long)x + y) >> 1);
}
CGL_INLINE unsigned __urhadd(unsigned x, unsigned y) {
  return (unsigned)(((unsigned long long)x + y + 1) >> 1);
}
CGL_INLINE unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((uint64_t)hi << 32 | lo) << (n & 31) >> 32);
}
CGL_INLINE unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) {
  return (unsigned)(((uint64_t)hi << 32 | lo) >> (n & 31));
}
CGL_INLINE unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n) {
  return n >= 32 ? lo : __funnelshift_l(lo, hi, n);
}
CGL_INLINE unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n) {
  return n >= 32 ? hi : __funnelshift_r(lo, hi, n);
}
CGL_INLINE int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8)
    c += (int)(signed char)(a >> i) * (int)(signed char)(b >> i);
  return c;
}
CGL_INLINE unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8)
    c += (a >> i & 255) * (b >> i & 255);
  return c;
}
/* Of a, two numbers of 16 bits; of b, two of 8, from bit `shift` on. */
template <class S, class B, class I>
CGL_INLINE I cgl_dp2a(I a, I b, I c, int shift) {
  return c + (I)(S)a * (I)(B)(b >> shift) +
         (I)(S)(a >> 16) * (I)(B)(b >> (shift + 8));
}
CGL_INLINE int __dp2a_lo(int a, int b, int c) {
  return cgl_dp2a<short, signed char>(a, b, c, 0);
}
CGL_INLINE int __dp2a_hi(int a, int b, int c) {
  return cgl_dp2a<short, signed char>(a, b, c, 16);
}
CGL_INLINE unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return cgl_dp2a<unsigned short, unsigned char>(a, b, c, 0);
}
CGL_INLINE unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) {
  return cgl_dp2a<unsigned short, unsigned char>(a, b, c, 16);
}
/* The place of the nth bit of the mask that is set, from `base` on: upwards, or
   downwards for n < 0; all ones when there is none. */
CGL_INLINE unsigned __fns(unsigned mask, unsigned base, int n) {
  const int step = n < 0 ? -1 : 1;
  int left = n < 0 ? -n : n ? n : 1;
  for (unsigned at = base; at < 32; at += (unsigned)step) {
    if (mask >> at & 1 && --left == 0)
      return at;
    if (!n)
      break;
  }
  return ~0u;
}

/* Float to integer saturates and takes NaN to zero, as on a GPU (a 64-bit
   target takes NaN to its smallest value). */
template <class I, class F> CGL_INLINE I cgl_convert(F x) {
  constexpr bool is_signed = (I)-1 < (I)0;
  constexpr int bits = (int)sizeof(I) * 8;
  constexpr I least = is_signed ? (I)((I)1 << (bits - 1)) : (I)0;
  constexpr I most = (I)~least;
  constexpr I none = bits == 64 ? (I)((uint64_t)1 << 63) : (I)0;
  const F top = (F)((uint64_t)1 << (bits - 1)) * (is_signed ? 1 : 2);
  const F low = is_signed ? -top : (F)0;
  return x != x ? none : x >= top ? most : x < low ? least : (I)x;
}
#define CGL_TO_INTEGER(from, F, S, to, I)         \
  CGL_INLINE I __##from##2##to##_rn(F x) {        \
    return cgl_convert<I>(__builtin_rint##S(x));  \
  }                                               \
  CGL_INLINE I __##from##2##to##_rz(F x) {        \
    return cgl_convert<I>(__builtin_trunc##S(x)); \
  }                                               \
  CGL_INLINE I __##from##2##to##_ru(F x) {        \
    return cgl_convert<I>(__builtin_ceil##S(x));  \
  }                                               \
  CGL_INLINE I __##from##2##to##_rd(F x) {        \
    return cgl_convert<I>(__builtin_floor##S(x)); \
  }
CGL_TO_INTEGER(float, float, f, int, int)
CGL_TO_INTEGER(float, float, f, uint, unsigned)
CGL_TO_INTEGER(float, float, f, ll, long long)
CGL_TO_INTEGER(float, float, f, ull, unsigned long long)
CGL_TO_INTEGER(double, double, , int, int)
CGL_TO_INTEGER(double, double, , uint, unsigned)
CGL_TO_INTEGER(double, double, , ll, long long)
CGL_TO_INTEGER(double, double, , ull, unsigned long long)

/* The neighbour of x towards +infinity (up) or -infinity. */
template <class F, class I> CGL_INLINE F cgl_next(F x, int up) {
  I bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  if (x != x || x == (up ? (F)__builtin_inf() : -(F)__builtin_inf()))
    return x;
  if (x == 0)
    bits = up ? (I)1 : (I)((I)1 | (I)1 << (sizeof(I) * 8 - 1));
  else
    bits += (x > 0) == (up != 0) ? 1 : -1;
  __builtin_memcpy(&x, &bits, sizeof bits);
  return x;
}
/* r rounded again in the direction asked for; e has the sign of exact - r. */
template <class F, class I> CGL_INLINE F cgl_up(F r, F e) {
  return e > 0 ? cgl_next<F, I>(r, 1) : r;
}
template <class F, class I> CGL_INLINE F cgl_down(F r, F e) {
  return e < 0 ? cgl_next<F, I>(r, 0) : r;
}
template <class F, class I> CGL_INLINE F cgl_zero(F r, F e) {
  return r > 0 ? cgl_down<F, I>(r, e) : cgl_up<F, I>(r, e);
}

#define CGL_ARITHMETIC(P, F, I, S)                      \
  CGL_EXACT(F, P##add_rn, (F x, F y), x + y)            \
  CGL_EXACT(F, P##sub_rn, (F x, F y), x - y)            \
  CGL_EXACT(F, P##mul_rn, (F x, F y), x *y)             \
  CGL_INLINE F P##div_rn(F x, F y) {                    \
    return x / y;                                       \
  }                                                     \
  CGL_INLINE F P##rcp_rn(F x) {                         \
    return (F)1 / x;                                    \
  }                                                     \
  CGL_INLINE F P##sqrt_rn(F x) {                        \
    return __builtin_sqrt##S(x);                        \
  }                                                     \
  CGL_INLINE F cgl_add_error(F x, F y, F r) {           \
    const F b = P##sub_rn(r, x), a = P##sub_rn(r, b);   \
    return P##add_rn(P##sub_rn(x, a), P##sub_rn(y, b)); \
  }                                                     \
  CGL_INLINE F cgl_mul_error(F x, F y, F r) {           \
    return __builtin_fma##S(x, y, -r);                  \
  }                                                     \
  CGL_INLINE F cgl_div_error(F x, F y, F r) {           \
    const F e = __builtin_fma##S(-r, y, x);             \
    return y < 0 ? -e : e;                              \
  }                                                     \
  CGL_INLINE F cgl_sqrt_error(F x, F r) {               \
    return __builtin_fma##S(-r, r, x);                  \
  }                                                     \
  CGL_DIRECTED(P, F, I, ru, cgl_up)                     \
  CGL_DIRECTED(P, F, I, rd, cgl_down)                   \
  CGL_DIRECTED(P, F, I, rz, cgl_zero)
#define CGL_DIRECTED(P, F, I, D, step)            \
  CGL_INLINE F P##add_##D(F x, F y) {             \
    const F r = P##add_rn(x, y);                  \
    return step<F, I>(r, cgl_add_error(x, y, r)); \
  }                                               \
  CGL_INLINE F P##sub_##D(F x, F y) {             \
    return P##add_##D(x, -y);                     \
  }                                               \
  CGL_INLINE F P##mul_##D(F x, F y) {             \
    const F r = P##mul_rn(x, y);                  \
    return step<F, I>(r, cgl_mul_error(x, y, r)); \
  }                                               \
  CGL_INLINE F P##div_##D(F x, F y) {             \
    const F r = x / y;                            \
    return step<F, I>(r, cgl_div_error(x, y, r)); \
  }                                               \
  CGL_INLINE F P##rcp_##D(F x) {                  \
    return P##div_##D((F)1, x);                   \
  }                                               \
  CGL_INLINE F P##sqrt_##D(F x) {                 \
    const F r = P##sqrt_rn(x);                    \
    return step<F, I>(r, cgl_sqrt_error(x, r));   \
  }
CGL_ARITHMETIC(__f, float, int, f)
CGL_ARITHMETIC(__d, double, long long, )
CGL_INLINE float __fmaf_rn(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
CGL_INLINE double __fma_rn(double x, double y, double z) {
  return __builtin_fma(x, y, z);
}

/* x * y + z rounded again: the product and the sum, each with its error. */
CGL_INLINE float cgl_fma_error(float x, float y, float z, float r) {
  const float p = __fmul_rn(x, y), s = __fadd_rn(p, z);
  return __fadd_rn(__fsub_rn(s, r),
                   __fadd_rn(cgl_add_error(p, z, s), cgl_mul_error(x, y, p)));
}
CGL_INLINE double cgl_fma_error(double x, double y, double z, double r) {
  const double p = __dmul_rn(x, y), s = __dadd_rn(p, z);
  return __dadd_rn(__dsub_rn(s, r),
                   __dadd_rn(cgl_add_error(p, z, s), cgl_mul_error(x, y, p)));
}
#define CGL_DIRECTED_FMA(name, F, I, D, step)        \
  CGL_INLINE F name##_##D(F x, F y, F z) {           \
    const F r = name##_rn(x, y, z);                  \
    return step<F, I>(r, cgl_fma_error(x, y, z, r)); \
  }
#define CGL_DIRECTED_FMAS(name, F, I)        \
  CGL_DIRECTED_FMA(name, F, I, ru, cgl_up)   \
  CGL_DIRECTED_FMA(name, F, I, rd, cgl_down) \
  CGL_DIRECTED_FMA(name, F, I, rz, cgl_zero)
CGL_DIRECTED_FMAS(__fmaf, float, int)
CGL_DIRECTED_FMAS(__fma, double, long long)

#define CGL_FROM(name, I, to, F, B, D, step)       \
  CGL_INLINE F __##name##2##to##_##D(I x) {        \
    const F r = (F)x;                              \
    const __int128 e = (__int128)x - (__int128)r;  \
    return step<F, B>(r, (F)(e > 0) - (F)(e < 0)); \
  }
#define CGL_TO_FLOAT(name, I)                        \
  CGL_INLINE float __##name##2float_rn(I x) {        \
    return (float)x;                                 \
  }                                                  \
  CGL_INLINE double __##name##2double_rn(I x) {      \
    return (double)x;                                \
  }                                                  \
  CGL_FROM(name, I, float, float, int, ru, cgl_up)   \
  CGL_FROM(name, I, float, float, int, rd, cgl_down) \
  CGL_FROM(name, I, float, float, int, rz, cgl_zero)
#define CGL_TO_DOUBLE(name, I)                               \
  CGL_FROM(name, I, double, double, long long, ru, cgl_up)   \
  CGL_FROM(name, I, double, double, long long, rd, cgl_down) \
  CGL_FROM(name, I, double, double, long long, rz, cgl_zero)
CGL_TO_FLOAT(int, int)
CGL_TO_FLOAT(uint, unsigned)
CGL_TO_FLOAT(ll, long long)
CGL_TO_FLOAT(ull, unsigned long long)
CGL_TO_DOUBLE(ll, long long)
CGL_TO_DOUBLE(ull, unsigned long long)
CGL_INLINE float __double2float_rn(double x) {
  return (float)x;
}
CGL_INLINE float __double2float_ru(double x) {
  const float r = (float)x;
  return cgl_up<float, int>(r, (float)(x > r) - (float)(x < r));
}
CGL_INLINE float __double2float_rd(double x) {
  const float r = (float)x;
  return cgl_down<float, int>(r, (float)(x > r) - (float)(x < r));
}
CGL_INLINE float __double2float_rz(double x) {
  const float r = (float)x;
  return cgl_zero<float, int>(r, (float)(x > r) - (float)(x < r));
}
