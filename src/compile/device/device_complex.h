/* Complex numbers for kernels, with the names and the meaning of CUDA's
   cuComplex.h, which NVRTC may be without.  This text stands in front of every
   source that includes it, for both compilers; an element of complex64 is a
   cuFloatComplex, one of complex128 a cuDoubleComplex. */
#define CU_COMPLEX_H_ /* CUDA's own has nothing to add */

#ifdef __CUDACC_RTC__
#define CGL_COMPLEX __device__ __forceinline__
#else
#define CGL_COMPLEX static __device__ __forceinline__
#endif

typedef float2 cuFloatComplex;
typedef float2 cuComplex;
typedef double2 cuDoubleComplex;

/* C: the type; T: of its parts; f: what its functions end on.  A quotient's
   denominator is scaled, so that it does not overflow. */
#define CGL_COMPLEX_OF(C, T, f, make)                                    \
  CGL_COMPLEX C make(T re, T im) {                                       \
    C z;                                                                 \
    z.x = re;                                                            \
    z.y = im;                                                            \
    return z;                                                            \
  }                                                                      \
  CGL_COMPLEX T cuCreal##f(C a) {                                        \
    return a.x;                                                          \
  }                                                                      \
  CGL_COMPLEX T cuCimag##f(C a) {                                        \
    return a.y;                                                          \
  }                                                                      \
  CGL_COMPLEX C cuConj##f(C a) {                                         \
    return make(a.x, -a.y);                                              \
  }                                                                      \
  CGL_COMPLEX C cuCadd##f(C a, C b) {                                    \
    return make(a.x + b.x, a.y + b.y);                                   \
  }                                                                      \
  CGL_COMPLEX C cuCsub##f(C a, C b) {                                    \
    return make(a.x - b.x, a.y - b.y);                                   \
  }                                                                      \
  CGL_COMPLEX C cuCmul##f(C a, C b) {                                    \
    return make(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);           \
  }                                                                      \
  CGL_COMPLEX C cuCdiv##f(C a, C b) {                                    \
    const T scale = 1 / (fabs(b.x) + fabs(b.y));                         \
    const T c = b.x * scale, d = b.y * scale;                            \
    const T over = scale / (c * c + d * d);                              \
    return make((a.x * c + a.y * d) * over, (a.y * c - a.x * d) * over); \
  }                                                                      \
  CGL_COMPLEX T cuCabs##f(C a) {                                         \
    return hypot##f(a.x, a.y);                                           \
  }                                                                      \
  CGL_COMPLEX C cuCfma##f(C a, C b, C c) {                               \
    return cuCadd##f(cuCmul##f(a, b), c);                                \
  }
CGL_COMPLEX_OF(cuFloatComplex, float, f, make_cuFloatComplex)
CGL_COMPLEX_OF(cuDoubleComplex, double, , make_cuDoubleComplex)

CGL_COMPLEX cuComplex make_cuComplex(float re, float im) {
  return make_cuFloatComplex(re, im);
}
CGL_COMPLEX cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
  return make_cuDoubleComplex(a.x, a.y);
}
CGL_COMPLEX cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_cuFloatComplex((float)a.x, (float)a.y);
}
