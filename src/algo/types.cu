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
