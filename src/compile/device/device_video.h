/* CUDA's SIMD intrinsics for the host compiler: an unsigned holds two numbers
   of 16 bits, four of 8 or one. */
template <class T, class F>
CGL_INLINE unsigned cgl_lanes(unsigned a, unsigned b, F f) {
  constexpr unsigned bits = 8 * sizeof(T), mask = ~0u >> (32 - bits);
  unsigned r = 0;
  for (unsigned i = 0; i < 32; i += bits)
    r |= ((unsigned)f((T)(a >> i), (T)(b >> i)) & mask) << i;
  return r;
}
template <class T> CGL_INLINE int cgl_clamped(int v) {
  constexpr int bits = 8 * sizeof(T), none = (T)-1 > 0;
  constexpr int high = (1 << (bits - 1 + none)) - 1, low = none ? 0 : ~high;
  return v < low ? low : v > high ? high : v;
}
#define CGL_LANES_OF(name, T, e)                        \
  CGL_INLINE unsigned name(unsigned a, unsigned b) {    \
    typedef T cgl_lane;                                 \
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
CGL_LANES(__vavgs, , (x + y + (x + y >= 0)) >> 1)
CGL_LANES(__vhaddu, u, (x + y) >> 1)
CGL_LANES(__vaddss, , cgl_clamped<cgl_lane>(x + y))
CGL_LANES(__vaddus, u, cgl_clamped<cgl_lane>(x + y))
CGL_LANES(__vsubss, , cgl_clamped<cgl_lane>(x - y))
CGL_LANES(__vsubus, u, cgl_clamped<cgl_lane>(x - y))
CGL_LANES_ALONE(__vneg, , -x)
CGL_LANES_ALONE(__vnegss, , cgl_clamped<cgl_lane>(-x))
CGL_LANES_ALONE(__vabs, , x < 0 ? -x : x)
CGL_LANES_ALONE(__vabsss, , cgl_clamped<cgl_lane>(x < 0 ? -x : x))
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

/* For dynamic programming: the best of two or three numbers, or of a sum and
   another; `_relu`: and of 0. */
#define CGL_BEST(word, op, T, V, kind)                                    \
  CGL_INLINE V cgl_##word##_##kind(V a, V b) {                            \
    return (V)cgl_lanes<T>((unsigned)a, (unsigned)b,                      \
                           [](T x, T y) -> T { return x op y ? x : y; }); \
  }                                                                       \
  CGL_INLINE V __vi##word##3_##kind(V a, V b, V c) {                      \
    return cgl_##word##_##kind(cgl_##word##_##kind(a, b), c);             \
  }                                                                       \
  CGL_INLINE V __viadd##word##_##kind(V a, V b, V c) {                    \
    const unsigned sum =                                                  \
        cgl_lanes<T>((unsigned)a, (unsigned)b, [](T x, T y) -> unsigned { \
          return (unsigned)x + (unsigned)y;                               \
        });                                                               \
    return cgl_##word##_##kind((V)sum, c);                                \
  }
#define CGL_BEST_OR_0(word, V, kind)                           \
  CGL_INLINE V __vi##word##_##kind##_relu(V a, V b) {          \
    return cgl_max_##kind(cgl_##word##_##kind(a, b), 0);       \
  }                                                            \
  CGL_INLINE V __vi##word##3_##kind##_relu(V a, V b, V c) {    \
    return cgl_max_##kind(__vi##word##3_##kind(a, b, c), 0);   \
  }                                                            \
  CGL_INLINE V __viadd##word##_##kind##_relu(V a, V b, V c) {  \
    return cgl_max_##kind(__viadd##word##_##kind(a, b, c), 0); \
  }
/* Says whether it is the first. */
#define CGL_BEST_FIRST(word, op, T, S, letter)                              \
  CGL_INLINE T __vib##word##_##letter##32(T a, T b, bool *first) {          \
    *first = a op b;                                                        \
    return *first ? a : b;                                                  \
  }                                                                         \
  CGL_INLINE unsigned __vib##word##_##letter##16x2(unsigned a, unsigned b,  \
                                                   bool *high, bool *low) { \
    *high = (S)(a >> 16) op(S)(b >> 16);                                    \
    *low = (S)a op(S) b;                                                    \
    return ((*high ? a : b) & 0xffff0000) | ((*low ? a : b) & 0xffff);      \
  }
#define CGL_BEST_OF(word, op)                   \
  CGL_BEST(word, op, int, int, s32)             \
  CGL_BEST(word, op, unsigned, unsigned, u32)   \
  CGL_BEST(word, op, int16_t, unsigned, s16x2)  \
  CGL_BEST(word, op, uint16_t, unsigned, u16x2) \
  CGL_BEST_FIRST(word, op, int, int16_t, s)     \
  CGL_BEST_FIRST(word, op, unsigned, uint16_t, u)
CGL_BEST_OF(max, >=)
CGL_BEST_OF(min, <=)
CGL_BEST_OR_0(max, int, s32)
CGL_BEST_OR_0(max, unsigned, s16x2)
CGL_BEST_OR_0(min, int, s32)
CGL_BEST_OR_0(min, unsigned, s16x2)
