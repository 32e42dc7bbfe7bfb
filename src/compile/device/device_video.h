/* CUDA's SIMD intrinsics for the host compiler: an unsigned holds two numbers
   of 16 bits or four of 8. */
template <class T, class F>
CGL_INLINE unsigned cgl_lanes(unsigned a, unsigned b, F f) {
  constexpr unsigned bits = 8 * sizeof(T), mask = (1u << bits) - 1;
  unsigned r = 0;
  for (unsigned i = 0; i < 32; i += bits)
    r |= ((unsigned)f((T)(a >> i), (T)(b >> i)) & mask) << i;
  return r;
}
#define CGL_LANES_OF(name, T, e)                        \
  CGL_INLINE unsigned name(unsigned a, unsigned b) {    \
    return cgl_lanes<T>(a, b, [](int x, int y) -> int { \
      (void)y;                                          \
      return e;                                         \
    });                                                 \
  }
#define CGL_LANES(name, S, e)          \
  CGL_LANES_OF(name##2, S##int16_t, e) \
  CGL_LANES_OF(name##4, S##int8_t, e)
#define CGL_LANES_COMPARE(op, S, word)        \
  CGL_LANES(__vcmp##word, S, x op y ? -1 : 0) \
  CGL_LANES(__vset##word, S, x op y)
#define CGL_LANES_ALONE(name, S, e)         \
  CGL_LANES(cgl_of##name, S, e)             \
  CGL_INLINE unsigned name##2(unsigned a) { \
    return cgl_of##name##2(a, 0);           \
  }                                         \
  CGL_INLINE unsigned name##4(unsigned a) { \
    return cgl_of##name##4(a, 0);           \
  }
CGL_LANES(__vadd, u, x + y)
CGL_LANES(__vsub, u, x - y)
CGL_LANES(__vabsdiffu, u, x > y ? x - y : y - x)
CGL_LANES(__vabsdiffs, , x > y ? x - y : y - x)
CGL_LANES(__vmaxu, u, x > y ? x : y)
CGL_LANES(__vmaxs, , x > y ? x : y)
CGL_LANES(__vminu, u, x < y ? x : y)
CGL_LANES(__vmins, , x < y ? x : y)
CGL_LANES(__vavgu, u, (x + y + 1) >> 1)
CGL_LANES(__vhaddu, u, (x + y) >> 1)
CGL_LANES_ALONE(__vneg, , -x)
CGL_LANES_ALONE(__vabs, , x < 0 ? -x : x)
CGL_LANES_COMPARE(==, u, eq)
CGL_LANES_COMPARE(!=, u, ne)
CGL_LANES_COMPARE(>, u, gtu)
CGL_LANES_COMPARE(>=, u, geu)
CGL_LANES_COMPARE(<, u, ltu)
CGL_LANES_COMPARE(<=, u, leu)
CGL_LANES_COMPARE(>, , gts)
CGL_LANES_COMPARE(>=, , ges)
CGL_LANES_COMPARE(<, , lts)
CGL_LANES_COMPARE(<=, , les)
/* The sum of the differences. */
#define CGL_LANES_SUM(name, differences)                             \
  CGL_INLINE unsigned name##2(unsigned a, unsigned b) {              \
    const unsigned d = differences##2(a, b);                         \
    return (d & 0xffff) + (d >> 16);                                 \
  }                                                                  \
  CGL_INLINE unsigned name##4(unsigned a, unsigned b) {              \
    const unsigned d = differences##4(a, b);                         \
    return (d & 255) + (d >> 8 & 255) + (d >> 16 & 255) + (d >> 24); \
  }
CGL_LANES_SUM(__vsadu, __vabsdiffu)
CGL_LANES_SUM(__vsads, __vabsdiffs)
