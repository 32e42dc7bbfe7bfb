/* The 16-bit floating types, from and to doubles.
   Here alone, so that an argument of a kernel and an element of a buffer round
   alike; not every compiler has _Float16. */
#ifndef CGL_BASE_HALF_H
#define CGL_BASE_HALF_H

#include <math.h>
#include <stdint.h>

/* Rounds to nearest even, once, with so many bits of fraction and exponent;
   what is too large becomes infinite. */
static inline uint16_t cgl_half_round(double x, int fraction, int exponent) {
  const int bias = (1 << (exponent - 1)) - 1;
  const uint32_t infinite = ((1u << exponent) - 1) << fraction;
  uint16_t sign = signbit(x) ? 0x8000 : 0;
  if (isnan(x))
    return (uint16_t)(sign | infinite | 1u << (fraction - 1));
  x = fabs(x);
  if (isinf(x) || x == 0)
    return (uint16_t)(sign | (isinf(x) ? infinite : 0));
  int e = ilogb(x);
  if (e < 1 - bias)
    e = 1 - bias; /* subnormal: no hidden bit in what follows */
  if (e > bias)
    return (uint16_t)(sign | infinite);
  uint32_t bits = (uint32_t)rint(ldexp(x, fraction - e));
  bits += (uint32_t)(e + bias - 1) << fraction; /* the hidden bit carries */
  return (uint16_t)(sign | (bits < infinite ? bits : infinite));
}


static inline double cgl_half_expand(uint16_t bits, int fraction,
                                     int exponent) {
  const int bias = (1 << (exponent - 1)) - 1, top = (1 << exponent) - 1;
  int e = bits >> fraction & top;
  int m = bits & ((1 << fraction) - 1);
  double x = m ? NAN : INFINITY;
  if (e == 0)
    x = ldexp(m, 1 - bias - fraction);
  else if (e < top)
    x = ldexp(m | 1 << fraction, e - bias - fraction);
  return bits & 0x8000 ? -x : x;
}


static inline uint16_t cgl_half_of(double x) {
  return cgl_half_round(x, 10, 5);
}


static inline uint16_t cgl_bfloat16_of(double x) {
  return cgl_half_round(x, 7, 8);
}


static inline double cgl_half_value(uint16_t bits) {
  return cgl_half_expand(bits, 10, 5);
}


static inline double cgl_bfloat16_value(uint16_t bits) {
  return cgl_half_expand(bits, 7, 8);
}

#endif
