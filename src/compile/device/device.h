/* CUDA C for the host compiler: types, indices, barriers, atomics.
   This text and its neighbours (device_math.h, device_half.h, device_run.h)
   are embedded in the library and stand in front of every kernel source that
   is compiled for the host device, after kernel_abi.h.  They include nothing:
   a standard header would cost more than compiling the kernel.
   Invariant: threadIdx and its like have internal linkage and their address
   is never taken, so no store can alias them and they live in registers. */
#define CGL_INLINE static inline __attribute__((always_inline))
#define CGL_ASSUME(c) \
  if (!(c))           \
    __builtin_unreachable();

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if !__has_builtin(__builtin_assume)
#define __builtin_assume(c) ((c) ? (void)0 : __builtin_unreachable())
#endif

/* names that are not the compiler's in CUDA C */
#undef linux
#undef unix
#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0
#define __CUDA_ARCH__ 900
#define __CGRAPHLUA_HOST__ 1
#define __device__
#define __host__
#define __global__
#define __constant__ __attribute__((used))
#define __managed__
#define __grid_constant__
#define __shared__ thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))

/* What {1, 2, 3} is; NVRTC has it without a header, too. */
#define _INITIALIZER_LIST
namespace std {
template <class T> class initializer_list {
  const T *cgl_first = nullptr;
  __SIZE_TYPE__ cgl_count = 0;

public:
  typedef T value_type;
  typedef const T &reference, &const_reference;
  typedef __SIZE_TYPE__ size_type;
  typedef const T *iterator, *const_iterator;
  constexpr initializer_list() noexcept {
  }
  constexpr size_type size() const noexcept {
    return cgl_count;
  }
  constexpr const T *begin() const noexcept {
    return cgl_first;
  }
  constexpr const T *end() const noexcept {
    return cgl_first + cgl_count;
  }
};
template <class T> constexpr const T *begin(initializer_list<T> l) noexcept {
  return l.begin();
}
template <class T> constexpr const T *end(initializer_list<T> l) noexcept {
  return l.end();
}
} // namespace std

template <class T> struct cgl_unbound { typedef T type; };
template <class T> struct cgl_unbound<T &> { typedef T type; };
template <class T> struct cgl_unbound<T &&> { typedef T type; };
/* Likewise. */
namespace std {
template <class T>
constexpr typename ::cgl_unbound<T>::type &&move(T &&value) noexcept {
  return static_cast<typename ::cgl_unbound<T>::type &&>(value);
}
template <class T>
constexpr T &&forward(typename ::cgl_unbound<T>::type &value) noexcept {
  return static_cast<T &&>(value);
}
template <class T>
constexpr T &&forward(typename ::cgl_unbound<T>::type &&value) noexcept {
  return static_cast<T &&>(value);
}
} // namespace std

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long clock_t;
typedef unsigned long long cudaGraphConditionalHandle;

/* What sources have beside their kernels; NVRTC knows these names, too. */
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct cudaArray *cudaArray_t;
typedef unsigned long long cudaTextureObject_t, cudaSurfaceObject_t;
struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};

#define CGL_VECTOR(T, N, A2, A4)                    \
  struct N##1 {                                     \
    T x;                                            \
  };                                                \
  struct __attribute__((aligned(A2))) N##2 {        \
    T x, y;                                         \
  };                                                \
  struct N##3 {                                     \
    T x, y, z;                                      \
  };                                                \
  struct __attribute__((aligned(A4))) N##4 {        \
    T x, y, z, w;                                   \
  };                                                \
  CGL_INLINE N##1 make_##N##1(T x) {                \
    return {x};                                     \
  }                                                 \
  CGL_INLINE N##2 make_##N##2(T x, T y) {           \
    return {x, y};                                  \
  }                                                 \
  CGL_INLINE N##3 make_##N##3(T x, T y, T z) {      \
    return {x, y, z};                               \
  }                                                 \
  CGL_INLINE N##4 make_##N##4(T x, T y, T z, T w) { \
    return {x, y, z, w};                            \
  }
CGL_VECTOR(int, int, 8, 16)
CGL_VECTOR(unsigned int, uint, 8, 16)
CGL_VECTOR(float, float, 8, 16)
CGL_VECTOR(double, double, 16, 16)
#ifdef CGL_WITH_VECTORS
CGL_VECTOR(signed char, char, 2, 4)
CGL_VECTOR(unsigned char, uchar, 2, 4)
CGL_VECTOR(short, short, 4, 8)
CGL_VECTOR(unsigned short, ushort, 4, 8)
CGL_VECTOR(long, long, 16, 16)
CGL_VECTOR(unsigned long, ulong, 16, 16)
CGL_VECTOR(long long, longlong, 16, 16)
CGL_VECTOR(unsigned long long, ulonglong, 16, 16)
#endif

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int a = 1, unsigned int b = 1, unsigned int c = 1)
      : x(a), y(b), z(c) {
  }
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {
  }
  constexpr operator uint3() const {
    return uint3{x, y, z};
  }
};

static __thread uint3 threadIdx, blockIdx, blockDim, gridDim;
extern "C" __thread char cgl_dynamic_shared[]; /* where it is used */
/* blockIdx.x * blockDim.x + threadIdx.x with casts to types C in it.  Where no
   thread's place is past an int's the compiler sees the loop's variable in it
   (see device_run.h), as it does without them. */
CGL_INLINE bool cgl_is_small(uint3 grid, uint3 block) {
  return (unsigned long)grid.x * block.x <= 0x7fffffff;
}
/* Is T a whole number that holds every such place? */
template <class T> constexpr bool cgl_holds_places = false;
template <> constexpr bool cgl_holds_places<int> = true;
template <> constexpr bool cgl_holds_places<unsigned> = true;
template <> constexpr bool cgl_holds_places<long> = true;
template <> constexpr bool cgl_holds_places<unsigned long> = true;
template <> constexpr bool cgl_holds_places<long long> = true;
template <> constexpr bool cgl_holds_places<unsigned long long> = true;
template <class... C, class T> CGL_INLINE T cgl_placed(T place) {
  if constexpr ((cgl_holds_places<C> && ...))
    if (cgl_is_small(gridDim, blockDim))
      return (T)(blockIdx.x * blockDim.x + threadIdx.x);
  return place;
}
/* The same of a row of blocks that are so wide. */
template <class... C, class T, class W>
CGL_INLINE T cgl_placed(W width, T place) {
  return width == (W)blockDim.x ? cgl_placed<C...>(place) : place;
}
/* The same in a strip, whose places are all within an int's. */
template <class... C, class T> CGL_INLINE T cgl_strip_place(T place) {
  static_assert((cgl_holds_places<C> && ...), "places in a narrow type");
  return place;
}
/* What is asked of a row's threads (see frontend/ends.c): where they end, or
   nothing, as all are in front of it. */
enum { CGL_END_SOUGHT = 1, CGL_END_KNOWN = 2 };
static __thread int cgl_end;
static __thread bool cgl_inside; /* the answer */
CGL_INLINE bool cgl_within(bool holds) {
  return cgl_end == CGL_END_KNOWN || holds;
}
/* The last condition: a thread that is asked does nothing else. */
CGL_INLINE bool cgl_within_last(bool holds) {
  if (cgl_end != CGL_END_SOUGHT)
    return cgl_within(holds);
  cgl_inside = holds;
  return false;
}
static cgl_host_runtime cgl_runtime;
static constexpr int warpSize = 32;

CGL_INLINE unsigned cgl_tid() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

/* Other threads of the block run inside the call and change threadIdx. */
CGL_INLINE void __syncthreads() {
  const uint3 mine = threadIdx;
  cgl_runtime.barrier();
  threadIdx = mine;
}
CGL_INLINE void __barrier_sync(unsigned) {
  __syncthreads();
}

#ifdef CGL_WITH_WARP
CGL_INLINE int __syncthreads_count(int p) {
  const uint3 mine = threadIdx;
  const unsigned n = cgl_runtime.count(p);
  threadIdx = mine;
  return (int)n;
}
CGL_INLINE int __syncthreads_or(int p) {
  return __syncthreads_count(p) != 0;
}
CGL_INLINE int __syncthreads_and(int p) {
  return __syncthreads_count(!p) == 0;
}

CGL_INLINE const uint64_t *cgl_warp(unsigned mask, uint64_t value) {
  const uint3 mine = threadIdx;
  const uint64_t *all = cgl_runtime.warp(mask, value);
  threadIdx = mine;
  return all;
}
CGL_INLINE unsigned __activemask() {
  const uint3 mine = threadIdx;
  const unsigned mask = cgl_runtime.active();
  threadIdx = mine;
  return mask;
}
CGL_INLINE void __syncwarp(unsigned mask = ~0u) {
  cgl_warp(mask, 0);
}
template <class T> CGL_INLINE T cgl_shuffle(unsigned mask, T v, int source) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  __builtin_memcpy(&bits, &v, sizeof v);
  bits = cgl_warp(mask, bits)[source];
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
CGL_INLINE int cgl_lane() {
  return (int)(cgl_tid() & 31);
}
template <class T>
CGL_INLINE T __shfl_sync(unsigned mask, T v, int s, int width = 32) {
  const int lane = cgl_lane();
  return cgl_shuffle(mask, v, (lane & ~(width - 1)) | (s & (width - 1)));
}
template <class T>
CGL_INLINE T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32) {
  const int lane = cgl_lane(), s = (lane & (width - 1)) - (int)d;
  return cgl_shuffle(mask, v, s < 0 ? lane : lane - (int)d);
}
template <class T>
CGL_INLINE T __shfl_down_sync(unsigned mask, T v, unsigned d, int width = 32) {
  const int lane = cgl_lane(), s = (lane & (width - 1)) + (int)d;
  return cgl_shuffle(mask, v, s >= width ? lane : lane + (int)d);
}
template <class T>
CGL_INLINE T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32) {
  const int lane = cgl_lane(), s = lane ^ x;
  const int outside = (s & ~(width - 1)) > (lane & ~(width - 1));
  return cgl_shuffle(mask, v, outside ? lane : s & 31);
}
CGL_INLINE unsigned cgl_members(unsigned mask) {
  const uint64_t *all = cgl_warp(mask, 1);
  unsigned members = 0;
  for (int i = 0; i < 32; i++)
    members |= (unsigned)(mask >> i & 1 & all[i]) << i;
  return members;
}
/* Bit 1 of what a lane deposits says that it took part; an exited lane's
   stale value must not count. */
CGL_INLINE unsigned __ballot_sync(unsigned mask, int p) {
  const uint64_t *all = cgl_warp(mask, p != 0);
  unsigned votes = 0;
  for (int i = 0; i < 32; i++)
    votes |= (unsigned)(mask >> i & 1 & all[i]) << i;
  return votes;
}
CGL_INLINE int __any_sync(unsigned mask, int p) {
  return __ballot_sync(mask, p) != 0;
}
CGL_INLINE int __all_sync(unsigned mask, int p) {
  return __ballot_sync(mask, !p) == 0;
}
CGL_INLINE int __uni_sync(unsigned mask, int p) {
  const unsigned votes = __ballot_sync(mask, p);
  return votes == 0 || votes == cgl_members(mask);
}
template <class T> CGL_INLINE unsigned __match_any_sync(unsigned mask, T v) {
  uint64_t bits = 0;
  static_assert(sizeof(T) <= 8, "a match compares at most 8 bytes");
  __builtin_memcpy(&bits, &v, sizeof v);
  const unsigned members = cgl_members(mask);
  const uint64_t *all = cgl_warp(mask, bits);
  unsigned same = 0;
  for (int i = 0; i < 32; i++)
    same |= (unsigned)(members >> i & 1 && all[i] == bits) << i;
  return same;
}
template <class T>
CGL_INLINE unsigned __match_all_sync(unsigned mask, T v, int *p) {
  const unsigned members = cgl_members(mask), same = __match_any_sync(mask, v);
  *p = same == members;
  return *p ? members : 0;
}
#define CGL_REDUCE(name, T, expression)                \
  CGL_INLINE T name(unsigned mask, T v) {              \
    const unsigned members = cgl_members(mask);        \
    const uint64_t *all = cgl_warp(mask, (uint64_t)v); \
    T a = v;                                           \
    int first = 1;                                     \
    for (int i = 0; i < 32; i++)                       \
      if (members >> i & 1) {                          \
        const T b = (T)all[i];                         \
        a = first ? b : (expression);                  \
        first = 0;                                     \
      }                                                \
    return a;                                          \
  }
CGL_REDUCE(__reduce_add_sync, unsigned, a + b)
CGL_REDUCE(__reduce_add_sync, int, (int)((unsigned)a + (unsigned)b))
CGL_REDUCE(__reduce_min_sync, unsigned, a < b ? a : b)
CGL_REDUCE(__reduce_min_sync, int, a < b ? a : b)
CGL_REDUCE(__reduce_max_sync, unsigned, a > b ? a : b)
CGL_REDUCE(__reduce_max_sync, int, a > b ? a : b)
CGL_REDUCE(__reduce_and_sync, unsigned, a &b)
CGL_REDUCE(__reduce_or_sync, unsigned, a | b)
CGL_REDUCE(__reduce_xor_sync, unsigned, a ^ b)
#endif

CGL_INLINE void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
CGL_INLINE void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
CGL_INLINE void __threadfence_block() {
  __asm__ volatile("" ::: "memory");
}

#ifdef CGL_WITH_ATOMICS
/* Changes *p to f(*p) in one step and returns what was there. */
template <class T, class F> CGL_INLINE T cgl_change(T *p, F f) {
  T old, made;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do
    made = f(old);
  while (!__atomic_compare_exchange(p, &old, &made, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED));
  return old;
}
/* As a word what was there stays in a register: g++ leaves a float in memory,
   which threads that are unordered may not have (see host/amend.c). */
#define CGL_CHANGE(T, word)                                      \
  template <class F> CGL_INLINE T cgl_change(T *p, F f) {        \
    T was;                                                       \
    const word old = cgl_change((word *)p, [f](word w) -> word { \
      T made;                                                    \
      __builtin_memcpy(&made, &w, sizeof made);                  \
      made = f(made);                                            \
      __builtin_memcpy(&w, &made, sizeof w);                     \
      return w;                                                  \
    });                                                          \
    __builtin_memcpy(&was, &old, sizeof was);                    \
    return was;                                                  \
  }
CGL_CHANGE(float, unsigned)
CGL_CHANGE(double, unsigned long)
#define CGL_ATOMIC(name, T, ...)                                             \
  CGL_INLINE T name(T *p, T v){__VA_ARGS__} CGL_INLINE T name##_block(T *p,  \
                                                                      T v) { \
    return name(p, v);                                                       \
  }                                                                          \
  CGL_INLINE T name##_system(T *p, T v) {                                    \
    return name(p, v);                                                       \
  }
#define CGL_FETCH(name, T, op) \
  CGL_ATOMIC(name, T, return __atomic_fetch_##op(p, v, __ATOMIC_RELAXED);)
#define CGL_LOOP(name, T, e) \
  CGL_ATOMIC(name, T, return cgl_change(p, [v](T o) -> T { return e; });)
#define CGL_FETCHES(T)         \
  CGL_FETCH(atomicAdd, T, add) \
  CGL_FETCH(atomicAnd, T, and) \
  CGL_FETCH(atomicOr, T, or)   \
  CGL_FETCH(atomicXor, T, xor)
#define CGL_LIMITS(T)                   \
  CGL_LOOP(atomicMin, T, o < v ? o : v) \
  CGL_LOOP(atomicMax, T, o > v ? o : v)
#define CGL_SWAPS(T)             \
  CGL_ATOMIC(atomicExch, T, T o; \
             __atomic_exchange(p, &v, &o, __ATOMIC_RELAXED); return o;)
#define CGL_CAS(T)                                                 \
  CGL_INLINE T atomicCAS(T *p, T c, T v) {                         \
    __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_RELAXED, \
                                __ATOMIC_RELAXED);                 \
    return c;                                                      \
  }                                                                \
  CGL_INLINE T atomicCAS_block(T *p, T c, T v) {                   \
    return atomicCAS(p, c, v);                                     \
  }                                                                \
  CGL_INLINE T atomicCAS_system(T *p, T c, T v) {                  \
    return atomicCAS(p, c, v);                                     \
  }
CGL_FETCHES(int)
CGL_FETCHES(unsigned int)
CGL_FETCHES(unsigned long long)
CGL_FETCH(atomicSub, int, sub)
CGL_FETCH(atomicSub, unsigned int, sub)
CGL_LOOP(atomicAdd, float, o + v)
CGL_LOOP(atomicAdd, double, o + v)
/* Each part in a step of its own. */
CGL_ATOMIC(atomicAdd, float2, v.x = atomicAdd(&p->x, v.x);
           v.y = atomicAdd(&p->y, v.y); return v;)
CGL_ATOMIC(atomicAdd, float4, v.x = atomicAdd(&p->x, v.x);
           v.y = atomicAdd(&p->y, v.y); v.z = atomicAdd(&p->z, v.z);
           v.w = atomicAdd(&p->w, v.w); return v;)
CGL_LIMITS(int)
CGL_LIMITS(unsigned int)
CGL_LIMITS(long long)
CGL_LIMITS(unsigned long long)
CGL_LOOP(atomicInc, unsigned int, o >= v ? 0 : o + 1)
CGL_LOOP(atomicDec, unsigned int, o == 0 || o > v ? v : o - 1)
CGL_SWAPS(int)
CGL_SWAPS(unsigned int)
CGL_SWAPS(unsigned long long)
CGL_SWAPS(float)
CGL_CAS(int)
CGL_CAS(unsigned int)
CGL_CAS(unsigned long long)
CGL_CAS(unsigned short)
#endif

extern "C" {
int printf(const char *, ...);
int snprintf(char *, size_t, const char *, ...) noexcept;
void *memcpy(void *, const void *, size_t) noexcept;
void *memset(void *, int, size_t) noexcept;
}

CGL_INLINE void __trap() {
  cgl_runtime.abort(719, "__trap");
}
CGL_INLINE void __brkpt() {
}
CGL_INLINE void __nanosleep(unsigned) {
}
static __attribute__((noinline, cold, noreturn, unused)) void
cgl_assert(const char *what, const char *file, int line, const char *function) {
  static __thread char text[512];
  snprintf(text, sizeof text,
           "%s:%d: %s: block: [%u,%u,%u], thread: [%u,%u,%u] "
           "Assertion `%s` failed.",
           file, line, function, blockIdx.x, blockIdx.y, blockIdx.z,
           threadIdx.x, threadIdx.y, threadIdx.z, what);
  cgl_runtime.abort(710, text);
}
/* The kernel's name, in what a kernel becomes. */
static constexpr const char *cgl_kernel_name = nullptr;
#define assert(e)                           \
  ((e) ? (void)0                            \
       : cgl_assert(#e, __FILE__, __LINE__, \
                    cgl_kernel_name ? cgl_kernel_name : __func__))

CGL_INLINE void cudaGraphSetConditional(cudaGraphConditionalHandle handle,
                                        unsigned value) {
  cgl_runtime.set_conditional(handle, value);
}

CGL_INLINE long long clock64() {
#if defined __x86_64__
  return (long long)__builtin_ia32_rdtsc();
#elif defined __aarch64__
  long long ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}
CGL_INLINE clock_t clock() {
  return (clock_t)clock64();
}

#define CGL_LOAD(name)                               \
  template <class T> CGL_INLINE T name(const T *p) { \
    return *p;                                       \
  }
CGL_LOAD(__ldg)
CGL_LOAD(__ldcg)
CGL_LOAD(__ldca)
CGL_LOAD(__ldcs)
CGL_LOAD(__ldlu)
CGL_LOAD(__ldcv)
#define CGL_STORE(name)                                \
  template <class T> CGL_INLINE void name(T *p, T v) { \
    *p = v;                                            \
  }
CGL_STORE(__stwb)
CGL_STORE(__stcg)
CGL_STORE(__stcs)
CGL_STORE(__stwt)
