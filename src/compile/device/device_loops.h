/* What kernels that run as loops need (see compile/loops): masks of the
   threads of a block, and warp operations on arrays of 32 values. */
#if defined CGL_UNSWITCHED && !defined __clang__
/* Unswitched as the other kernels of the source, it may take minutes. */
#define CGL_LOOPS \
  __attribute__((noinline, flatten, optimize("no-unswitch-loops")))
#else
#define CGL_LOOPS __attribute__((noinline, flatten))
#endif

#define CGL_PRAGMA(words) _Pragma(#words)
#ifdef __clang__
#define CGL_UNROLL(n) CGL_PRAGMA(unroll n)
#else
#define CGL_UNROLL(n) CGL_PRAGMA(GCC unroll n)
#endif

#define CGL_TURN __asm__ volatile("" ::: "memory");

/* A strip: 32 threads in a row from cgl_wx on (see compile/loops/strip.c), or
   with cgl_whole false, those of them from cgl_f up to cgl_m. */
#define CGL_STRIP_BEGIN                                            \
  constexpr unsigned cgl_n = 32;                                   \
  const uint3 blockIdx = {0, cgl_where.y, cgl_where.z};            \
  const uint3 threadIdx = {0, cgl_wy, cgl_wz};                     \
  CGL_ASSUME(cgl_wx >= 0 && blockDim.x >= 1 && blockDim.x <= 1024) \
  if constexpr (cgl_whole)                                         \
    cgl_f = 0, cgl_m = 32;
#define CGL_STRIP_LANE                                          \
  const unsigned cgl_i = (unsigned)(cgl_wx + (int)cgl_l);       \
  const uint3 threadIdx = {cgl_i % blockDim.x, cgl_wy, cgl_wz}; \
  const uint3 blockIdx = {cgl_i / blockDim.x, cgl_where.y, cgl_where.z};
CGL_INLINE bool cgl_every(const int *on, unsigned from, unsigned to) {
  int every = 1;
  for (unsigned i = from; i < to; i++)
    every &= on[i];
  return every;
}
/* Leaves out threads at both ends; are the others in a row? */
CGL_INLINE bool cgl_trim(const int *on, unsigned &from, unsigned &to) {
  while (from < to && !on[from])
    from++;
  while (from < to && !on[to - 1])
    to--;
  return cgl_every(on, from, to);
}
/* Ends here when a whole strip is not whole, or the threads that go on are not
   in a row. */
#define CGL_STRIP_GUARD(on)          \
  if constexpr (cgl_whole) {         \
    if (!cgl_every(on, 0, 32))       \
      return 1;                      \
  } else {                           \
    if (!cgl_trim(on, cgl_f, cgl_m)) \
      return 1;                      \
    if (cgl_f == cgl_m)              \
      return 0;                      \
  }
/* Opens a block for the threads that are on, when they are in a row. */
#define CGL_STRIP_TRIM(on)                   \
  unsigned cgl_from = cgl_f, cgl_to = cgl_m; \
  if (cgl_trim(on, cgl_from, cgl_to)) {      \
    const unsigned cgl_f = cgl_from, cgl_m = cgl_to;

template <class T> T &cgl_any_of(); /* for types only */
template <class T> T cgl_copy_of(T);

/* What the room for a thread's variable begins at a multiple of.  Compilers
   take members that stand 2, 3, 4, 8 or 16 apart in vectors, and no others. */
template <class T> constexpr size_t cgl_apart() {
  constexpr size_t n = sizeof(T);
  return n <= 16 || n > 64 ? alignof(T) : n <= 32 ? 32 : 64;
}
/* Room for a thread's variable, which is not constructed with the room. */
template <class T> union alignas(cgl_apart<T>()) cgl_raw {
  T value;
  cgl_raw() {
  }
};
template <class T,
          bool PLAIN = __is_trivial(T) && sizeof(T) % cgl_apart<T>() == 0>
struct cgl_slot {
  typedef T type;
};
template <class T> struct cgl_slot<T, false> { typedef cgl_raw<T> type; };
template <class T> using cgl_place = typename cgl_slot<T>::type;
template <class T> CGL_INLINE T &cgl_at(T &slot) {
  return slot;
}
template <class T> CGL_INLINE T &cgl_at(cgl_raw<T> &slot) {
  return slot.value;
}
/* A variable is constructed where it is kept. */
struct cgl_there {};
inline void *operator new(unsigned long, void *p, cgl_there) noexcept {
  return p;
}
/* An array can be, as a member. */
template <class T> struct cgl_row_of { T value; };
/* A variable is declared without an initializer. */
template <class T> CGL_INLINE void cgl_begin(T &x) {
  if constexpr (!__is_trivial(T))
    ::new ((void *)&x, cgl_there()) T;
}
template <class T, size_t N> CGL_INLINE void cgl_begin(T (&x)[N]) {
  if constexpr (!__is_trivial(T))
    for (size_t i = 0; i < N; i++)
      cgl_begin(x[i]);
}

/* 2^20 / n and a little more: t < 1024 times that is 2^20 times the quotient,
   and a rest that is left out; no loop over threads divides. */
CGL_INLINE unsigned cgl_reciprocal(unsigned n) {
  return (1u << 20) / n + 1;
}
/* Thread t, by the reciprocals of the block's sizes. */
CGL_INLINE uint3 cgl_thread_at(unsigned t, unsigned bx, unsigned by,
                               unsigned over_x, unsigned over_y) {
  const unsigned row = t * over_x >> 20, z = row * over_y >> 20;
  return {t - row * bx, row - z * by, z};
}
/* Does any of n threads take part? */
CGL_INLINE bool cgl_some(const int *mask, unsigned n) {
  int some = 0;
  for (unsigned i = 0; i < n; i++)
    some |= mask[i];
  return some != 0;
}
CGL_INLINE unsigned cgl_bits(const int *mask, unsigned n) {
  unsigned bits = 0;
  for (unsigned i = 0; i < n; i++)
    bits |= (unsigned)(mask[i] != 0) << i;
  return bits;
}
CGL_INLINE unsigned cgl_low_bits(unsigned n) {
  return n >= 32 ? ~0u : (1u << n) - 1;
}
/* What is seldom run is no part of the kernel, whose compile it would slow. */
#define CGL_APART static __attribute__((noinline, unused))
/* Called where only seldom blocks come: what they alone run is then compiled
   to be short, which is quick. */
static __attribute__((cold, noinline, unused)) void cgl_seldom(void) {
  __asm__("");
}
CGL_APART void cgl_miss(unsigned here, unsigned alive, unsigned threads) {
  char why[160];
  snprintf(why, sizeof why,
           "divergent barrier: of the block's %u threads %d of a warp's %d "
           "came to a warp operation",
           threads, __builtin_popcount(here), __builtin_popcount(alive));
  cgl_runtime.abort(719, why);
}
/* All lanes that have not left the kernel must have come. */
CGL_INLINE void cgl_meet(unsigned here, unsigned alive, unsigned threads) {
  if (here != alive)
    cgl_miss(here, alive, threads);
}
/* All lanes of the masks that lanes give must have come. */
CGL_INLINE void cgl_meet_masks(const unsigned *masks, unsigned here,
                               unsigned alive, unsigned threads) {
  unsigned all = 0;
  for (int i = 0; i < 32; i++)
    all |= here >> i & 1 ? masks[i] : 0;
  if (all & alive & ~here)
    cgl_meet(here, all & alive, threads);
}
/* Its address is in a register, and not asked for again and again. */
CGL_INLINE void *cgl_hidden(void *p) {
  __asm__("" : "+r"(p));
  return p;
}
/* Sizes and indices without overflow; may 1024 threads from the sum on have
   their index in an int? */
struct cgl_sizes {
  long x, y, z;
  cgl_sizes(uint3 v) : x(v.x), y(v.y), z(v.z) {
  }
};
template <bool INT, class S> CGL_INLINE bool cgl_fits(S sum) {
  const long from = INT && sizeof sum == 4 ? (long)(int)sum : (long)sum;
  return from >= (INT ? -0x7fffffff : 0) && from < 0x7fffffff - 1024;
}
/* A subscript, the sum of an index and the rest, for thread x of a row up to
   `last`.  Where the sum has 32 bits without a sign it wraps around: for all
   threads of the row or for none, as the last one tells, since else the first
   ones are past what an array holds.
   FIT: `wide` is the index, and that and 1024 more fit in an int. */
template <bool SHARED, unsigned FIT, class I, class T>
CGL_INLINE auto cgl_near(long wide, I index, T rest, long x, long last) {
  if constexpr (!FIT)
    return index + rest;
  else if constexpr (sizeof(T) > 4)
    return wide + (long)rest;
  else if constexpr (SHARED || (T)-1 < (T)0 || sizeof(T) < 4)
    return wide + (int)rest;
  else {
    const long first = wide - x + (int)rest;
    return first + (first + last < 0 ? 1l << 32 : 0) + x;
  }
}
/* What a sum of an index and the rest is that `value` holds, for thread x of a
   row: in 64 bits, where that differs for no place in an array. */
template <bool FIT, class T>
CGL_INLINE long cgl_beside(long wide, T rest, int value, long x) {
  if constexpr (!FIT || sizeof(T) != 4 || (T)0.5 != (T)0)
    return value;
  else if constexpr ((T)-1 < (T)0)
    return wide + (int)rest;
  else
    return (int)((unsigned)(wide - x) + rest) + x;
}
/* The first thread of a row.  A thread is numbered in 64 bits, in which the
   compiler knows that the numbers of a row do not wrap around. */
#define CGL_ROW_FIRST (long)((cgl_z * cgl_by + cgl_y) * cgl_bx)
/* How many of `most` values from `at` on are below the bound. */
template <class T, class B>
CGL_INLINE unsigned cgl_left(T at, B bound, unsigned most) {
  if constexpr ((B)0.5 != (B)0) {
    const B rest = bound - (B)at;
    const unsigned n = rest < (B)most ? (unsigned)rest : most;
    return n + (n < most && (B)n < rest);
  }
  const unsigned long left = (unsigned long)(bound - at);
  return left < most ? (unsigned)left : most;
}
/* Are numbers from `first` on, up to n more, not all of a type? */
template <class T> CGL_INLINE bool cgl_wraps(T first, unsigned n) {
  constexpr T most = (T)-1 > (T)0 ? (T)-1 : (T)(~0ul >> (65 - 8 * sizeof(T)));
  return (unsigned long)most - (unsigned long)first < n;
}
/* Are what the threads of a row begin with, `sum` in the first, not numbers one
   behind the other: as the sum's type has them, the variable's, or the one in
   which they are compared with the bound?  Or does a step lead back, past 0, in
   some threads before the others? */
template <class T, class S, class B, class D>
CGL_INLINE bool cgl_goes_apart(T first, S sum, B, D step, unsigned n) {
  typedef decltype(T() + B()) common;
  return cgl_wraps(first, n) || cgl_wraps(sum, n) ||
         (!((T)-1 < (T)0) && (T)step > (T)-1 / 2) ||
         ((T)-1 < (T)0 && !((common)-1 < (common)0) && first < 0 &&
          (unsigned long)-(long)first <= n);
}
/* What a loop below a bound of type B has in thread x of a row.  A row begins
   at no less than 0 where B is not long; below an int it ends in the range of
   one, and the compiler sees neighbours in what it becomes as an int, too. */
template <class B, class T> CGL_INLINE T cgl_walked(T base, unsigned x) {
  if constexpr (sizeof(T) > 4 && sizeof(B) == 4 && (B)-1 < (B)0 &&
                (B)0.5 == (B)0 && (T)-1 < (T)0)
    return (T)((int)base + (int)x);
  else
    return base + (T)x;
}
/* How many of the values from 0 on, of type T, are below the bound. */
template <class T, class B>
CGL_INLINE unsigned cgl_limit(T, B bound, unsigned most) {
  typedef decltype(T() + B()) common;
  const common c = (common)bound;
  if (!(c > 0))
    return 0; /* or no number */
  const unsigned n = c < (common)most ? (unsigned)c : most;
  return n + ((common)n < c && n < most);
}
/* What grows by 1 from thread to thread, and whether it did from the first
   thread of a row to the last one, without wrapping around. */
template <class T> CGL_INLINE long cgl_place_of(T x) {
  return sizeof x == 8 && (T)-1 > (T)0 && (long)x < 0 ? __LONG_MAX__ : (long)x;
}
CGL_INLINE bool cgl_grows(long first, long last, unsigned threads) {
  return (unsigned long)last - (unsigned long)first == threads;
}
/* The same of a as it is compared with b, where what is negative may become
   large. */
template <class A, class B> CGL_INLINE long cgl_place_beside(A a, B) {
  return cgl_place_of((decltype(true ? A() : B()))a);
}
/* How many of the numbers from `first` on are below the bound, or NEXT, up to
   it; up to 1024. */
template <bool NEXT> CGL_INLINE unsigned cgl_numbers(long first, long bound) {
  const unsigned long n =
      bound < first ? 0 : (unsigned long)bound - (unsigned long)first;
  return n >= 1024 ? 1024 : (unsigned)n + (NEXT && bound >= first);
}
/* The threads of a row of last + 1 for which a place is LESS than the bound, or
   is not, are from *from to *to; false: the place did not grow by 1 from thread
   to thread. */
template <bool LESS, bool NEXT, class A, class B>
CGL_INLINE bool cgl_edge(long first, unsigned last, A a, B b, unsigned *from,
                         unsigned *to) {
  typedef decltype(true ? A() : B()) common;
  const unsigned n = cgl_numbers<NEXT>(first, cgl_place_beside(b, a));
  if (LESS && n < *to)
    *to = n;
  if (!LESS && n > *from)
    *from = n;
  return (common)0.5 == (common)0 &&
         cgl_grows(first, cgl_place_beside(a, b), last);
}
/* Is a, as it is compared with b, the number that it is without an end to what
   its type holds? */
template <class A, class B> CGL_INLINE bool cgl_is_exact(A a, B, double exact) {
  return exact > -0x1p53 && exact < 0x1p53 &&
         (double)(decltype(true ? A() : B()))a == exact;
}
/* Does a slide stand *by whole numbers behind what it follows? */
template <class T, class F>
CGL_INLINE bool cgl_slides(long *by, T slide, F followed) {
  const long to = cgl_place_of(slide), from = cgl_place_of(followed);
  *by = (long)((unsigned long)to - (unsigned long)from);
  return (T)0.5 == (T)0 && to != __LONG_MAX__ && from != __LONG_MAX__;
}
/* A slide that is what it follows and a number. */
template <class R, class T> CGL_INLINE R cgl_slid(T followed, long by) {
  return (R)followed + (R)by;
}
/* On which side of b is a? */
template <class A, class B> CGL_INLINE int cgl_side_of(A a, B b) {
  return (a > b) - (a < b);
}
/* Which of `most` threads from `from` on is the one; a number below `most`
   where none is. */
template <class T>
CGL_INLINE unsigned cgl_one(T which, unsigned from, unsigned most) {
  const unsigned long at = (unsigned long)which - from;
  return at < most ? (unsigned)at : 0;
}
/* The first thread x of a row for which x % by == rest, and how many on the
   next is.  BITS: for which (x & by) == rest, or all threads. */
template <bool BITS, class X, class B, class R>
CGL_INLINE unsigned cgl_every(unsigned *each, X, B by, R rest) {
  typedef decltype(X() + B()) common;
  typedef decltype(common() + R()) compared;
  unsigned long n = (unsigned long)(common)by;
  const long from = cgl_place_of((compared)rest);
  *each = 1;
  if (BITS) {
    if (n > 1023 || n & (n + 1))
      return 0;
    n++;
  } else if ((common)by < 0)
    n = -n;
  if (from < 0 || (unsigned long)from >= n)
    return 1024; /* none */
  *each = n < 1024 ? (unsigned)n : 1024;
  return from < 1024 ? (unsigned)from : 1024;
}
/* What grows by one number from thread to thread, as it is compared with b;
   LONG_MAX where that is no whole number, or might have wrapped around more
   than once. */
template <class A, class B> CGL_INLINE long cgl_place_exact(A a, B b) {
  typedef decltype(true ? A() : B()) common;
  return sizeof(A) == 4 && (common)0.5 == (common)0 ? cgl_place_beside(a, b)
                                                    : __LONG_MAX__;
}
/* How many of a row's n threads are below the bound, as the first two and the
   last of them tell: it did not wrap around if they are in one line. */
CGL_INLINE unsigned cgl_until(const long *seen, long bound, bool equal,
                              unsigned n) {
  const long by = seen[1] - seen[0];
  if (seen[0] == __LONG_MAX__ || seen[1] == __LONG_MAX__ ||
      seen[2] == __LONG_MAX__ || by <= 0 ||
      seen[2] - seen[0] != by * (long)(n - 1))
    return n;
  if (bound < seen[0])
    return 0;
  const unsigned long left =
                          (unsigned long)bound - (unsigned long)seen[0] + equal,
                      most = (left + (unsigned long)by - 1) / (unsigned long)by;
  return most < n ? (unsigned)most : n;
}
#define CGL_PLAIN(name, e)                                                   \
  template <class T, class V> CGL_INLINE T cgl_plain_##name(T *p, V given) { \
    const T o = *p, v = (T)given;                                            \
    *p = (T)(e);                                                             \
    return o;                                                                \
  }
CGL_PLAIN(atomicAdd, o + v)
CGL_PLAIN(atomicSub, o - v)
CGL_PLAIN(atomicMin, o < v ? o : v)
CGL_PLAIN(atomicMax, o > v ? o : v)
CGL_PLAIN(atomicAnd, o &v)
CGL_PLAIN(atomicOr, o | v)
CGL_PLAIN(atomicXor, o ^ v)
CGL_PLAIN(atomicExch, v)
CGL_PLAIN(atomicInc, o >= v ? 0 : o + 1)
CGL_PLAIN(atomicDec, o == 0 || o > v ? v : o - 1)
#undef CGL_PLAIN
template <class T, class C, class V>
CGL_INLINE T cgl_plain_atomicCAS(T *p, C c, V v) {
  const T o = *p;
  if (o == (T)c)
    *p = (T)v;
  return o;
}

enum { cgl_of_index, cgl_of_up, cgl_of_down, cgl_of_xor };
/* The lane that a shuffle reads. */
template <int OP> CGL_INLINE int cgl_source(int lane, int d, int width = 32) {
  const int base = lane & ~(width - 1), inner = lane & (width - 1);
  if (OP == cgl_of_index)
    return base | (d & (width - 1));
  if (OP == cgl_of_up)
    return inner - d < 0 ? lane : lane - d;
  if (OP == cgl_of_down)
    return inner + d >= width ? lane : lane + d;
  const int s = lane ^ d;
  return (s & ~(width - 1)) > base ? lane : s & 31;
}
/* The same for a vector of lanes. */
template <int OP, class V>
CGL_INLINE V cgl_sources(const V lane, int d, int width) {
  const V base = lane & ~(width - 1), inner = lane & (width - 1);
  if (OP == cgl_of_index)
    return base | (d & (width - 1));
  if (OP == cgl_of_up)
    return inner - d < 0 ? lane : lane - d;
  if (OP == cgl_of_down)
    return inner + d >= width ? lane : lane + d;
  const V s = lane ^ d;
  return (s & ~(width - 1)) > base ? lane : s & 31;
}
/* The bytes of a vector that can be permuted; 0: there is none. */
#if defined __AVX512F__ && !defined __clang__
enum { cgl_vector_bytes = 64 };
#elif defined __AVX2__ && !defined __clang__
enum { cgl_vector_bytes = 32 };
#else
enum { cgl_vector_bytes = 0 };
#endif
template <int BYTES> constexpr auto cgl_integer_of() {
  if constexpr (BYTES == 4)
    return 0;
  else
    return 0L;
}
/* 0, 1, 2, ...: written as a constant, so that the sources at a constant
   distance are constants, too. */
template <class V> CGL_INLINE V cgl_line() {
  constexpr int each = sizeof(V) / sizeof(V{}[0]);
  if constexpr (each == 4)
    return V{0, 1, 2, 3};
  else if constexpr (each == 8)
    return V{0, 1, 2, 3, 4, 5, 6, 7};
  else
    return V{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
}
/* What the lanes of vector K and those behind it get.  With a constant distance
   all but one or two of the sources vanish. */
template <int K, class V>
CGL_INLINE V cgl_permuted(const V *all, const V source) {
  constexpr int each = sizeof(V) / sizeof(all[0][0]), vectors = 32 / each;
  if constexpr (vectors == 2)
    return __builtin_shuffle(all[0], all[1], source);
  const V own = __builtin_shuffle(all[K], source);
  if constexpr (K + 1 < vectors) {
    const V rest = cgl_permuted<K + 1>(all, source);
    return source < (K + 1) * each ? own : rest;
  }
  return own;
}
template <int OP, int K, class T, class V>
CGL_INLINE void cgl_permute(T *to, const V *all, const V line, int d,
                            int width) {
  const V got = cgl_permuted<0>(all, cgl_sources<OP>(line, d, width));
  __builtin_memcpy(to, &got, sizeof got);
  constexpr int each = sizeof(V) / sizeof(T);
  if constexpr ((K + 1) * each < 32)
    cgl_permute<OP, K + 1>(to + each, all, line + each, d, width);
}
/* KNOWN: the distance is a constant when loops are unrolled. */
template <int OP, bool KNOWN, class T>
CGL_INLINE void cgl_move(T *to, const T *from, int d, int width = 32) {
  if constexpr ((sizeof(T) == 4 || sizeof(T) == 8) && cgl_vector_bytes &&
                (KNOWN || 8 * sizeof(T) <= cgl_vector_bytes)) {
    typedef decltype(cgl_integer_of<sizeof(T)>()) element;
    typedef element lanes __attribute__((vector_size(cgl_vector_bytes)));
    lanes cgl_q_all[32 * sizeof(T) / cgl_vector_bytes]; /* see generate.c */
    __builtin_memcpy(cgl_q_all, from, sizeof cgl_q_all);
    cgl_permute<OP, 0>(to, cgl_q_all, cgl_line<lanes>(), d, width);
  } else
    for (int i = 0; i < 32; i++)
      to[i] = from[cgl_source<OP>(i, d, width)];
}
/* How many lanes are gone over where those below d are wanted: a vector has no
   fewer. */
CGL_INLINE unsigned cgl_lanes(int d) {
  constexpr int least = cgl_vector_bytes ? cgl_vector_bytes / 4 : 4;
  return d < least ? least : d < 32 ? (unsigned)d : 32;
}
/* A move down or across d where only lanes below d are wanted: what the others
   get is of no use. */
template <int OP, bool KNOWN, class T>
CGL_INLINE void cgl_move_first(T *to, const T *from, int d, int width = 32) {
  if constexpr ((sizeof(T) == 4 || sizeof(T) == 8) && cgl_vector_bytes) {
    typedef decltype(cgl_integer_of<sizeof(T)>()) element;
    typedef element lanes __attribute__((vector_size(cgl_vector_bytes)));
    constexpr int each = cgl_vector_bytes / sizeof(T);
    const int part = width < each ? width : each;
    if (2 * d <= part && !(d & (d - 1))) {
      for (int i = 0; i < cgl_vector_bytes / 4; i += each) {
        lanes cgl_q_own;
        __builtin_memcpy(&cgl_q_own, from + i, sizeof cgl_q_own);
        cgl_q_own = __builtin_shuffle(
            cgl_q_own, cgl_sources<cgl_of_xor>(cgl_line<lanes>(), d, part));
        __builtin_memcpy(to + i, &cgl_q_own, sizeof cgl_q_own);
      }
      return;
    }
  }
  cgl_move<OP, KNOWN>(to, from, d, width);
}
template <int OP, class T>
CGL_APART void cgl_move_apart(T *to, const T *from, int d, int width = 32) {
  cgl_move<OP, false>(to, from, d, width);
}

/* The lanes that have a lane's value. */
template <class T>
CGL_APART void cgl_match(unsigned *to, const T *from, unsigned here,
                         const unsigned *masks) {
  static_assert(sizeof(T) <= 8, "a match compares at most 8 bytes");
  for (int i = 0; i < 32; i++) {
    unsigned same = 0;
    for (int k = 0; k < 32; k++)
      same |= (unsigned)!__builtin_memcmp(&from[i], &from[k], sizeof(T)) << k;
    to[i] = same & here & (masks ? masks[i] : ~0u);
  }
}

#define CGL_FOLD(name, expression)                                     \
  template <class T> CGL_INLINE T name(const T *all, unsigned lanes) { \
    T a = T();                                                         \
    bool first = true;                                                 \
    for (int i = 0; i < 32; i++)                                       \
      if (lanes >> i & 1) {                                            \
        const T b = all[i];                                            \
        a = first ? b : (T)(expression);                               \
        first = false;                                                 \
      }                                                                \
    return a;                                                          \
  }
CGL_FOLD(cgl_fold_add, (unsigned)a + (unsigned)b)
CGL_FOLD(cgl_fold_min, a < b ? a : b)
CGL_FOLD(cgl_fold_max, a > b ? a : b)
CGL_FOLD(cgl_fold_and, a &b)
CGL_FOLD(cgl_fold_or, a | b)
CGL_FOLD(cgl_fold_xor, a ^ b)
/* What each lane gets by its mask. */
template <class T, T (*FOLD)(const T *, unsigned)>
CGL_APART void cgl_folds(T *to, const T *from, unsigned here,
                         const unsigned *masks) {
  for (int i = 0; i < 32; i++)
    to[i] =
        i && masks[i] == masks[i - 1] ? to[i - 1] : FOLD(from, here & masks[i]);
}
