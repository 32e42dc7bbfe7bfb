// The kernels behind cgl_buffer_uniform, cgl_buffer_normal and
// cgl_buffer_random, and the two that look after a generator's state.
// A fill takes one number of the state; a thread does one position of it, a
// block of four 32-bit words: value i of a type of up to 32 bits is made of
// word i % 4 of position i / 4, a double and a 64-bit integer of the words
// 2 (i % 2) and the next of position i / 2.  Compiled with --fmad=false, one
// part at a time (-DSTATE, -DUNIFORM, -DNORMAL, -DRANDOM); without one, all.

typedef unsigned long long u64;

#if !defined STATE && !defined UNIFORM && !defined NORMAL && !defined RANDOM
#define STATE
#define UNIFORM
#define NORMAL
#define RANDOM
#endif

#ifdef STATE
extern "C" __global__ void set(u64 *state, u64 seed, u64 offset) {
  state[0] = seed;
  state[1] = offset;
}
extern "C" __global__ void advance(u64 *state, u64 count, u64 unused) {
  state[1] += count;
}
#endif

/* As CGL_RANDOM: not static, for compilers that warn of unused functions. */
#ifdef __CUDACC_RTC__
#define INSIDE __device__ __forceinline__
#else
#define INSIDE static __device__ __forceinline__
#endif

// Not a cgl_philox: the host's compiler runs threads side by side only when no
// parameter is a struct.
#define GENERATOR const u64 *state, u64 number

// Rows of 2^30 positions, along y.
#define ROW ((u64)blockIdx.y << 30)

// Whole positions of this row: int, so that the host's compiler can split its
// loop over x there.
#define WHOLE(n, each) \
  ((int)(n / each - ROW < 0x40000000 ? n / each - ROW : 0x40000000))

template <class T> struct __align__(4 * sizeof(T)) quad { T x, y, z, w; };
template <class T> struct __align__(2 * sizeof(T)) pair { T x, y; };

// out[4 p + i] = value(words, p)'s i-th; the first thread does what is left
// over after whole positions too.
template <class T, class F>
INSIDE void fill4(T *out, u64 n, GENERATOR, F value) {
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const u64 seed = state[0], operation = state[1] + number;
  if (x < WHOLE(n, 4)) {
    const quad<T> q =
        value(cgl_philox4x32(ROW + x, operation, seed), ROW + x);
    T *to = out + 4 * ROW;
#ifndef __CGRAPHLUA_HOST__
    if (((u64)out & (sizeof q - 1)) == 0) {
      ((quad<T> *)to)[x] = q;
    } else
#endif
    {
      to[4ll * x] = q.x;
      to[4ll * x + 1] = q.y;
      to[4ll * x + 2] = q.z;
      to[4ll * x + 3] = q.w;
    }
  }
  if (x == 0 && blockIdx.y == 0 && n % 4) {
    const quad<T> q = value(cgl_philox4x32(n / 4, operation, seed), n / 4);
    out += n / 4 * 4;
    out[0] = q.x;
    if (n % 4 > 1) out[1] = q.y;
    if (n % 4 > 2) out[2] = q.z;
  }
}

// The same with two values of a position.
template <class T, class F>
INSIDE void fill2(T *out, u64 n, GENERATOR, F value) {
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const u64 seed = state[0], operation = state[1] + number;
  if (x < WHOLE(n, 2)) {
    const pair<T> q =
        value(cgl_philox4x32(ROW + x, operation, seed), ROW + x);
    T *to = out + 2 * ROW;
#ifndef __CGRAPHLUA_HOST__
    if (((u64)out & (sizeof q - 1)) == 0) {
      ((pair<T> *)to)[x] = q;
    } else
#endif
    {
      to[2ll * x] = q.x;
      to[2ll * x + 1] = q.y;
    }
  }
  if (x == 0 && blockIdx.y == 0 && n % 2)
    out[n - 1] = value(cgl_philox4x32(n / 2, operation, seed), n / 2).x;
}

// Rounded to nearest, ties to even; no 16-bit type is needed for it.
INSIDE unsigned short half_bits(float x) {
  const unsigned bits = __float_as_uint(x), sign = bits >> 16 & 0x8000;
  const unsigned size = bits & 0x7fffffff;
  if (size >= 0x47800000)  // 65536 and above
    return (unsigned short)(sign | (size > 0x7f800000 ? 0x7e00 : 0x7c00));
  if (size < 0x38800000) {  // below the least normal number: count 2^-24
    const float units = __uint_as_float(size) * 16777216.f + 8388608.f;
    return (unsigned short)(sign | (__float_as_uint(units) & 0xffff));
  }
  const unsigned rounded = size - 0x38000000 + 0xfff + (size >> 13 & 1);
  return (unsigned short)(sign | rounded >> 13);
}
INSIDE unsigned short bfloat16_bits(float x) {
  const unsigned bits = __float_as_uint(x);
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
INSIDE float float_bits(float x) { return x; }

#ifdef UNIFORM
// Never above `last`, the largest value below the upper bound.
INSIDE float between(unsigned word, float low, float span, float last) {
  const float x = low + span * cgl_unit(word);
  return x < last ? x : last;
}

#define KERNEL(name, T, round)                                              \
  extern "C" __global__ void uniform_##name(T *out, u64 n, GENERATOR,       \
                                            float low, float span,          \
                                            float last) {                   \
    fill4(out, n, state, number, [=](uint4 v, u64) -> quad<T> {             \
      return {round(between(v.x, low, span, last)),                         \
              round(between(v.y, low, span, last)),                         \
              round(between(v.z, low, span, last)),                         \
              round(between(v.w, low, span, last))};                        \
    });                                                                     \
  }
KERNEL(float, float, float_bits)
KERNEL(half, unsigned short, half_bits)
KERNEL(bfloat16, unsigned short, bfloat16_bits)

extern "C" __global__ void uniform_double(double *out, u64 n, GENERATOR,
                                          double low, double span,
                                          double last) {
  fill2(out, n, state, number, [=](uint4 v, u64) -> pair<double> {
    const double a = low + span * cgl_unit_double(v.x, v.y);
    const double b = low + span * cgl_unit_double(v.z, v.w);
    return {a < last ? a : last, b < last ? b : last};
  });
}
#undef KERNEL
#endif

#ifdef NORMAL
#define KERNEL(name, T, round)                                              \
  extern "C" __global__ void normal_##name(T *out, u64 n, GENERATOR,        \
                                           float mean, float deviation,     \
                                           float unused) {                  \
    fill4(out, n, state, number, [=](uint4 v, u64) -> quad<T> {             \
      const float2 a = cgl_normal_pair(v.x, v.y);                           \
      const float2 b = cgl_normal_pair(v.z, v.w);                           \
      return {round(mean + deviation * a.x), round(mean + deviation * a.y), \
              round(mean + deviation * b.x), round(mean + deviation * b.y)};\
    });                                                                     \
  }
KERNEL(float, float, float_bits)
KERNEL(half, unsigned short, half_bits)
KERNEL(bfloat16, unsigned short, bfloat16_bits)

extern "C" __global__ void normal_double(double *out, u64 n, GENERATOR,
                                         double mean, double deviation,
                                         double unused) {
  fill2(out, n, state, number, [=](uint4 v, u64) -> pair<double> {
    const double2 a = cgl_normal_pair_double(v);
    return {mean + deviation * a.x, mean + deviation * a.y};
  });
}
#undef KERNEL
#endif

#ifdef RANDOM
// low + [0, count): Lemire's method.  A word whose product's lower half is
// below `rejected` would favour some values; the value then takes its word of
// the next attempt's block.  That is seldom, and kept out of the way.
static __device__ __noinline__ u64 again(GENERATOR, u64 p, unsigned lane,
                                         unsigned count, unsigned rejected) {
  u64 m = 0;
  for (u64 attempt = 1; attempt < 256; attempt++) {
    const uint4 v =
        cgl_philox4x32(attempt << 56 | p, state[1] + number, state[0]);
    m = (u64)(lane == 0   ? v.x
              : lane == 1 ? v.y
              : lane == 2 ? v.z
                          : v.w) *
        count;
    if ((unsigned)m >= rejected) break;
  }
  return m;
}
INSIDE u64 fair(GENERATOR, u64 p, unsigned lane, unsigned word, unsigned count,
                unsigned rejected) {
  const u64 m = (u64)word * count;
  if ((unsigned)m >= rejected) return m >> 32;
  return again(state, number, p, lane, count, rejected) >> 32;
}
// 2^32 values are all words; other powers of two reject none.
INSIDE u64 plain(unsigned word, u64 count) {
  return word * (count & 0xffffffff) >> 32 | (count >> 32 ? word : 0);
}

#define KERNEL(bits, T)                                                     \
  extern "C" __global__ void random_##bits(T *out, u64 n, GENERATOR,        \
                                           u64 low, u64 count,              \
                                           u64 rejected) {                  \
    const unsigned c = (unsigned)count, r = (unsigned)rejected;             \
    if (r)                                                                  \
      fill4(out, n, state, number, [=](uint4 v, u64 p) -> quad<T> {         \
        return {(T)(low + fair(state, number, p, 0, v.x, c, r)),            \
                (T)(low + fair(state, number, p, 1, v.y, c, r)),            \
                (T)(low + fair(state, number, p, 2, v.z, c, r)),            \
                (T)(low + fair(state, number, p, 3, v.w, c, r))};           \
      });                                                                   \
    else                                                                    \
      fill4(out, n, state, number, [=](uint4 v, u64) -> quad<T> {           \
        return {(T)(low + plain(v.x, count)), (T)(low + plain(v.y, count)), \
                (T)(low + plain(v.z, count)), (T)(low + plain(v.w, count))};\
      });                                                                   \
  }
KERNEL(8, unsigned char)
KERNEL(16, unsigned short)
KERNEL(32, unsigned)
KERNEL(64, u64)

// More than 2^32 values: 64 bits for each.
INSIDE u64 word_of(uint4 v, unsigned lane) {
  return lane ? (u64)v.w << 32 | v.z : (u64)v.y << 32 | v.x;
}
static __device__ __noinline__ u64 again_wide(GENERATOR, u64 p, unsigned lane,
                                              u64 count, u64 rejected) {
  u64 word = 0;
  for (u64 attempt = 1; attempt < 256; attempt++) {
    word = word_of(
        cgl_philox4x32(attempt << 56 | p, state[1] + number, state[0]), lane);
    if (word * count >= rejected) break;
  }
  return __umul64hi(word, count);
}
INSIDE u64 fair_wide(GENERATOR, u64 p, unsigned lane, u64 word, u64 count,
                     u64 rejected) {
  if (!count) return word;
  if (word * count >= rejected) return __umul64hi(word, count);
  return again_wide(state, number, p, lane, count, rejected);
}

extern "C" __global__ void random_wide(u64 *out, u64 n, GENERATOR, u64 low,
                                       u64 count, u64 rejected) {
  fill2(out, n, state, number, [=](uint4 v, u64 p) -> pair<u64> {
    return {low + fair_wide(state, number, p, 0, word_of(v, 0), count,
                            rejected),
            low + fair_wide(state, number, p, 1, word_of(v, 1), count,
                            rejected)};
  });
}
#endif
