// What stands in front of every algorithm's kernels: the element types, and the
// numbers that their elements are computed as.  The 16-bit types are computed
// as float, rounded to nearest even when they are stored.  Nothing is included,
// because NVRTC may be there without the toolkit's headers.

typedef unsigned long long u64;
typedef long long i64;

#ifdef __CUDACC_RTC__
#define INSIDE __device__ __forceinline__
#else
#define INSIDE static __device__ __forceinline__
#endif

#ifdef __CGRAPHLUA_HOST__
typedef __half half_t;
typedef __nv_bfloat16 bfloat16_t;
INSIDE float get(half_t x) { return __half2float(x); }
INSIDE float get(bfloat16_t x) { return __bfloat162float(x); }
INSIDE half_t half_of(float x) { return __float2half_rn(x); }
INSIDE bfloat16_t bfloat16_of(float x) { return __float2bfloat16_rn(x); }
#else
struct half_t { unsigned short bits; };
struct bfloat16_t { unsigned short bits; };
INSIDE float get(half_t x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
INSIDE float get(bfloat16_t x) {
  return __uint_as_float((unsigned)x.bits << 16);
}
INSIDE half_t half_of(float x) {
  half_t y;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
  return y;
}
INSIDE bfloat16_t bfloat16_of(float x) {
  const unsigned bits = __float_as_uint(x);
  bfloat16_t y;
  y.bits = x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return y;
}
#endif

template <class T> struct number { typedef T type; };
template <> struct number<half_t> { typedef float type; };
template <> struct number<bfloat16_t> { typedef float type; };

template <class T> INSIDE T get(T x) { return x; }

template <class T> struct put {
  template <class N> static __device__ __forceinline__ T of(N x) {
    return (T)x;
  }
};
template <> struct put<half_t> {
  template <class N> static __device__ __forceinline__ half_t of(N x) {
    return half_of((float)x);
  }
};
template <> struct put<bfloat16_t> {
  template <class N> static __device__ __forceinline__ bfloat16_t of(N x) {
    return bfloat16_of((float)x);
  }
};

// A NaN among the two is the result, as in NumPy.
template <class A, class B> INSIDE auto least(A a, B b) -> decltype(a + b) {
  return a < b || a != a ? a : b;
}
template <class A, class B> INSIDE auto greatest(A a, B b) -> decltype(a + b) {
  return a > b || a != a ? a : b;
}

template <class A> INSIDE A absolute(A a) { return a < 0 ? -a : a; }
INSIDE float absolute(float a) { return fabsf(a); }
INSIDE double absolute(double a) { return fabs(a); }

// Functions of reals compute a float, when one of their arguments is a float and
// none a double, else a double.
template <class T> struct is { enum { FLOAT = 0, DOUBLE = 0 }; };
template <> struct is<float> { enum { FLOAT = 1, DOUBLE = 0 }; };
template <> struct is<double> { enum { FLOAT = 0, DOUBLE = 1 }; };
template <bool> struct pick { typedef double type; };
template <> struct pick<true> { typedef float type; };
template <class A, class B = A, class C = B> struct real {
  typedef typename pick<(is<A>::FLOAT || is<B>::FLOAT || is<C>::FLOAT) &&
                        !is<A>::DOUBLE && !is<B>::DOUBLE &&
                        !is<C>::DOUBLE>::type type;
};
#define OF_ONE(f)                                                        \
  template <class A>                                                     \
  INSIDE auto m_##f(A a) -> decltype(f((typename real<A>::type)a)) {     \
    return f((typename real<A>::type)a);                                 \
  }
#define OF_TWO(f)                                                        \
  template <class A, class B>                                            \
  INSIDE typename real<A, B>::type m_##f(A a, B b) {                     \
    typedef typename real<A, B>::type number;                            \
    return f((number)a, (number)b);                                      \
  }
OF_ONE(acos) OF_ONE(acosh) OF_ONE(asin) OF_ONE(asinh) OF_ONE(atan)
OF_ONE(atanh) OF_ONE(cbrt) OF_ONE(ceil) OF_ONE(cos) OF_ONE(cosh) OF_ONE(erf)
OF_ONE(erfc) OF_ONE(exp) OF_ONE(exp10) OF_ONE(exp2) OF_ONE(expm1) OF_ONE(fabs)
OF_ONE(floor) OF_ONE(isfinite) OF_ONE(isinf) OF_ONE(isnan) OF_ONE(log)
OF_ONE(log10) OF_ONE(log1p) OF_ONE(log2) OF_ONE(rint) OF_ONE(round)
OF_ONE(rsqrt) OF_ONE(sin) OF_ONE(sinh) OF_ONE(sqrt) OF_ONE(tan) OF_ONE(tanh)
OF_ONE(trunc)
OF_TWO(atan2) OF_TWO(copysign) OF_TWO(fmod) OF_TWO(hypot) OF_TWO(pow)
template <class A, class B, class C>
INSIDE typename real<A, B, C>::type m_fma(A a, B b, C c) {
  typedef typename real<A, B, C>::type number;
  return fma((number)a, (number)b, (number)c);
}
