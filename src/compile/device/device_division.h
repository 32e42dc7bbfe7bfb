/* Divisions of whole numbers by what many threads share. */

/* A divisor that many threads share, or that a thread has for long: x /
   cgl_over(w) is x / w, of 32 bits by a product in doubles, which loops take in
   vectors as they do not take divisions.  It is exact: the half moves the
   quotient away from whole numbers by at least 2^-33 of it.  Of 0 it gives some
   number. */
template <class T> struct cgl_divisor {
  T value;
  constexpr operator T() const {
    return value;
  }
};
constexpr CGL_INLINE cgl_divisor<int> cgl_over(int by) {
  return {by};
}
constexpr CGL_INLINE cgl_divisor<unsigned> cgl_over(unsigned by) {
  return {by};
}
template <class T> constexpr CGL_INLINE T cgl_over(T by) {
  return by;
}
constexpr CGL_INLINE int cgl_quotient(int x, int by) {
  if (__builtin_constant_p(by))
    return x / by;
  const double d = x;
  return (int)((d + __builtin_copysign(0.5, d)) * (1.0 / (double)by));
}
constexpr CGL_INLINE unsigned cgl_quotient(unsigned x, unsigned by) {
  if (__builtin_constant_p(by))
    return x / by;
  /* signed conversions are what vectors have */
  const double half = 2147483648.0;
  const double over = (double)(int)(x ^ 0x80000000u) + (half + 0.5);
  const double under = (double)(int)(by ^ 0x80000000u) + half;
  const double q = over * (1.0 / under);
#ifdef __clang__ /* whose floor is no constant */
  return (unsigned)(long)q;
#else
  return (unsigned)(int)(__builtin_floor(q) - half) ^ 0x80000000u;
#endif
}
template <class T> struct cgl_number {
  enum { width = 0 };
};
#define CGL_NUMBER(type, bits)          \
  template <> struct cgl_number<type> { \
    enum { width = bits };              \
    typedef type its;                   \
  };
CGL_NUMBER(bool, 32)
CGL_NUMBER(char, 32)
CGL_NUMBER(signed char, 32)
CGL_NUMBER(unsigned char, 32)
CGL_NUMBER(short, 32)
CGL_NUMBER(unsigned short, 32)
CGL_NUMBER(int, 32)
CGL_NUMBER(unsigned, 32)
CGL_NUMBER(long, 64)
CGL_NUMBER(unsigned long, 64)
CGL_NUMBER(long long, 64)
CGL_NUMBER(unsigned long long, 64)
CGL_NUMBER(float, 64)
CGL_NUMBER(double, 64)
#undef CGL_NUMBER
template <class A, class B, class = typename cgl_number<A>::its>
constexpr CGL_INLINE auto operator/(A x, cgl_divisor<B> by) {
  typedef decltype(x / by.value) common;
  if constexpr (cgl_number<A>::width == 32)
    return cgl_quotient((common)x, (common)by.value);
  else
    return x / by.value;
}
template <class A, class B, class = typename cgl_number<A>::its>
constexpr CGL_INLINE auto operator%(A x, cgl_divisor<B> by) {
  typedef decltype(x % by.value) common;
  if constexpr (cgl_number<A>::width == 32)
    return (common)x -
           cgl_quotient((common)x, (common)by.value) * (common)by.value;
  else
    return x % by.value;
}
