// The kernels behind cgl_buffer_uniform, cgl_buffer_normal and
// cgl_buffer_random, the two that look after a generator's state, those that
// read the values of branches and loops, and those that do copies and fills in
// predicated bodies.
// A fill takes one number of the state; a thread does one position of it, a
// block of four 32-bit words: value i of a type of up to 32 bits is made of
// word i % 4 of position i / 4, a double and a 64-bit integer of the words
// 2 (i % 2) and the next of position i / 2.  Compiled with --fmad=false, one
// part at a time (-DSTATE, -DCONDITIONAL, -DMOVE, -DUNIFORM, -DNORMAL,
// -DRANDOM).

typedef unsigned long long u64;

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

// What kernels that a macro makes begin with; the compiler's own wait is not put
// into macros (compile/nvrtc).
#if defined __CUDACC_RTC__ && __CUDA_ARCH__ >= 900
#define WAIT                                                      \
  asm volatile("griddepcontrol.launch_dependents;\n"              \
               "griddepcontrol.wait; // cgraphlua" ::: "memory")
#else
#define WAIT
#endif

#ifdef CONDITIONAL
#ifdef __CUDACC_RTC__
extern "C" __device__ __cudart_builtin__ void
cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value);
#endif

// The value of an integer of `type` bytes, plus 16 when it has a sign.
INSIDE u64 integer_at(const char *at, u64 type) {
  switch (type) {
  case 1: return *(const unsigned char *)at;
  case 2: return *(const unsigned short *)at;
  case 4: return *(const unsigned *)at;
  case 17: return (u64)(long long)*(const signed char *)at;
  case 18: return (u64)(long long)*(const short *)at;
  case 20: return (u64)(long long)*(const int *)at;
  }
  return *(const u64 *)at;
}

// By the lowest byte of `form`, before its node: 0 WHEN, 1 SWITCH of `max`
// bodies, 2 LOOP, 3 TIMES; at the end of its body: 4 LOOP, 5 TIMES.  Above it:
// how many predicated turns the body of a loop has, 0 for one that just runs.
// A loop's state is its id, the turns so far, whether it was stopped, and the
// most turns; then, as two words, how many turns the body may run now, and how
// many of a LOOP's have begun.
extern "C" __global__ void set_conditional(u64 handle, const char *value,
                                           u64 type, u64 form, u64 *state,
                                           u64 id, u64 max) {
  const u64 v = integer_at(value, type), each = form >> 8;
  unsigned *turn = (unsigned *)(state + 4);
  u64 go = v != 0;
  form &= 0xff;
  if (form == 1) {
    go = v < max ? v : max;
  } else if (form == 2 || form == 3) {
    const u64 wanted = type > 16 && (long long)v < 0 ? 0 : v;
    state[0] = id;
    state[1] = 0;
    state[2] = form == 3 && wanted > max;
    state[3] = form == 3 && wanted < max ? wanted : max;
    go = form == 3 ? state[3] != 0 : go;
  } else if (form > 3) {
    state[1] += !each ? 1 : turn[form == 5 ? 0 : 1];
    const bool last = state[1] >= state[3];
    if (form == 4 && go && last) state[2] = 1;
    go = last ? 0 : form == 5 ? 1 : go;
  }
  if (each) {
    const u64 left = state[3] - state[1];
    turn[0] = (unsigned)(left < each ? left : each);
    turn[1] = 0;
  }
  cudaGraphSetConditional(handle, (unsigned)go);
}

// A word for each of n bodies, 1 for the one that runs; all 0 when the word
// `around`, if there is one, is not more than `turn`.  `form`: 0 WHEN, 1 SWITCH,
// 3 SWITCH whose last body runs for any other value.
extern "C" __global__ void set_words(const unsigned *around, u64 turn,
                                     const char *value, u64 type, u64 form,
                                     u64 n, unsigned *words) {
  const u64 v = integer_at(value, type);
  const bool on = !around || *around > turn;
  const u64 which = form == 0 ? v == 0 : form == 3 && v >= n ? n - 1 : v;
  for (u64 i = 0; i < n; i++) words[i] = on && i == which;
}

// Begins a LOOP's predicated turn `number`: state as two words.
extern "C" __global__ void set_turn(const char *value, u64 type, unsigned *turn,
                                    u64 number) {
  if (turn[0] > number && integer_at(value, type))
    turn[1] = (unsigned)number + 1;
}
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

template <class T, int N> struct __align__(N * sizeof(T)) lanes { T at[N]; };

// out[N p + i] = value(words, p).at[i]; the first thread does what is left over
// after whole positions too.
template <int N, class T, class F>
INSIDE void fill(T *out, u64 n, GENERATOR, F value) {
  const int x = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  const u64 seed = state[0], operation = state[1] + number;
  if (x < WHOLE(n, N)) {
    const lanes<T, N> q =
        value(cgl_philox4x32(ROW + x, operation, seed), ROW + x);
    T *to = out + N * ROW;
#ifndef __CGRAPHLUA_HOST__
    if (((u64)out & (sizeof q - 1)) == 0) {
      ((lanes<T, N> *)to)[x] = q;
    } else
#endif
      for (int i = 0; i < N; i++) to[(long long)N * x + i] = q.at[i];
  }
  if (x == 0 && blockIdx.y == 0 && n % N) {
    const lanes<T, N> q =
        value(cgl_philox4x32(n / N, operation, seed), n / N);
    for (int i = 0; i < N - 1; i++)
      if (i < (int)(n % N)) out[n / N * N + i] = q.at[i];
  }
}

// One value of each word.
template <class T, class F> INSIDE lanes<T, 4> each(uint4 v, F value) {
  return {value(v.x, 0), value(v.y, 1), value(v.z, 2), value(v.w, 3)};
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

#define UP_TO_32_BITS(X)             \
  X(float, float, float_bits)        \
  X(half, unsigned short, half_bits) \
  X(bfloat16, unsigned short, bfloat16_bits)

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
    WAIT;                                                                   \
    fill<4>(out, n, state, number, [=](uint4 v, u64) {                      \
      return each<T>(v, [=](unsigned word, int) {                           \
        return round(between(word, low, span, last));                       \
      });                                                                   \
    });                                                                     \
  }
UP_TO_32_BITS(KERNEL)

extern "C" __global__ void uniform_double(double *out, u64 n, GENERATOR,
                                          double low, double span,
                                          double last) {
  fill<2>(out, n, state, number, [=](uint4 v, u64) -> lanes<double, 2> {
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
    WAIT;                                                                   \
    fill<4>(out, n, state, number, [=](uint4 v, u64) -> lanes<T, 4> {       \
      const float2 a = cgl_normal_pair(v.x, v.y);                           \
      const float2 b = cgl_normal_pair(v.z, v.w);                           \
      return {round(mean + deviation * a.x), round(mean + deviation * a.y), \
              round(mean + deviation * b.x), round(mean + deviation * b.y)};\
    });                                                                     \
  }
UP_TO_32_BITS(KERNEL)

extern "C" __global__ void normal_double(double *out, u64 n, GENERATOR,
                                         double mean, double deviation,
                                         double unused) {
  fill<2>(out, n, state, number, [=](uint4 v, u64) -> lanes<double, 2> {
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
INSIDE unsigned word_of(uint4 v, unsigned lane, unsigned) {
  return lane == 0 ? v.x : lane == 1 ? v.y : lane == 2 ? v.z : v.w;
}
INSIDE u64 word_of(uint4 v, unsigned lane, u64) {
  return lane ? (u64)v.w << 32 | v.z : (u64)v.y << 32 | v.x;
}
INSIDE unsigned high(unsigned a, unsigned b) { return (u64)a * b >> 32; }
INSIDE u64 high(u64 a, u64 b) { return __umul64hi(a, b); }

template <class W>
static __device__ __noinline__ W again(GENERATOR, u64 p, unsigned lane, W count,
                                       W rejected) {
  W word = 0;
  for (u64 attempt = 1; attempt < 256; attempt++) {
    word = word_of(
        cgl_philox4x32(attempt << 56 | p, state[1] + number, state[0]), lane,
        count);
    if (word * count >= rejected) break;
  }
  return high(word, count);
}
template <class W>
INSIDE W fair(GENERATOR, u64 p, unsigned lane, W word, W count, W rejected) {
  if (word * count >= rejected) return high(word, count);
  return again(state, number, p, lane, count, rejected);
}
// 2^32 values are all words; other powers of two reject none.
INSIDE u64 plain(unsigned word, u64 count) {
  return word * (count & 0xffffffff) >> 32 | (count >> 32 ? word : 0);
}

#define KERNEL(bits, T)                                                     \
  extern "C" __global__ void random_##bits(T *out, u64 n, GENERATOR,        \
                                           u64 low, u64 count,              \
                                           u64 rejected) {                  \
    WAIT;                                                                   \
    const unsigned c = (unsigned)count, r = (unsigned)rejected;             \
    if (r)                                                                  \
      fill<4>(out, n, state, number, [=](uint4 v, u64 p) {                  \
        return each<T>(v, [=](unsigned word, unsigned lane) {               \
          return (T)(low + fair(state, number, p, lane, word, c, r));       \
        });                                                                 \
      });                                                                   \
    else                                                                    \
      fill<4>(out, n, state, number, [=](uint4 v, u64) {                    \
        return each<T>(v, [=](unsigned word, unsigned) {                    \
          return (T)(low + plain(word, count));                             \
        });                                                                 \
      });                                                                   \
  }
KERNEL(8, unsigned char)
KERNEL(16, unsigned short)
KERNEL(32, unsigned)
KERNEL(64, u64)

// More than 2^32 values: 64 bits for each; all words with a count of 0.
extern "C" __global__ void random_wide(u64 *out, u64 n, GENERATOR, u64 low,
                                       u64 count, u64 rejected) {
  fill<2>(out, n, state, number, [=](uint4 v, u64 p) -> lanes<u64, 2> {
    const u64 a = word_of(v, 0, count), b = word_of(v, 1, count);
    if (!count) return {low + a, low + b};
    return {low + fair(state, number, p, 0, a, count, rejected),
            low + fair(state, number, p, 1, b, count, rejected)};
  });
}
#endif
