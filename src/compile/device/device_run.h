/* From a kernel to the row of the export table that runs its blocks.
   A flat kernel (see reach.c) runs as ONE loop over the threads of a row of
   blocks: g / blockDim.x and g % blockDim.x fold back to g, so the user's
   index is the induction variable and the compiler vectorises the kernel as
   it would a loop written by hand.  The other kernels run block by block; those
   with barriers as loops (see compile/loops), or else at the first barrier the
   runtime turns the block into fibers.
   Invariant: index variables are stored after the last opaque call before
   the loop, and nothing in the loop reloads them. */
#ifdef __clang__
#define CGL_UNORDERED _Pragma("clang loop vectorize(assume_safety)")
#else
#define CGL_UNORDERED _Pragma("GCC ivdep")
#endif

template <unsigned... I> struct cgl_list {};
template <unsigned N, unsigned... I>
struct cgl_count : cgl_count<N - 1, N - 1, I...> {};
template <unsigned... I> struct cgl_count<0, I...> {
  typedef cgl_list<I...> list;
};

/* The first `count` threads of each row from block (bi, bj) on: y runs through
   `rows` rows of blocks, z is fixed.  One thread's rows come together, so that
   what is asked of its place along x is asked once. */
template <auto K, class... A>
static __attribute__((noinline, flatten)) void
cgl_column(const cgl_host_dims *d, unsigned bi, unsigned bj, unsigned rows,
           unsigned bk, unsigned z, uint64_t count, A... a) {
  const unsigned bx = d->block[0], by = d->block[1];
  gridDim = {d->grid[0], d->grid[1], d->grid[2]};
  blockDim = {bx, by, d->block[2]};
  cgl_end = 0;
  unsigned b = bi, t = 0;
  for (uint64_t i = 0; i < count; i++) {
    unsigned j = bj, y = 0;
    for (unsigned left = rows * by; left; left--) {
      blockIdx = {b, j, bk};
      threadIdx = {t, y, z};
      K(a...);
      if (++y == by)
        y = 0, j++;
    }
    if (++t == bx)
      t = 0, b++;
  }
  /* Nobody asks again: a loop in which nothing is left is none. */
  blockIdx = threadIdx = {0, 0, 0};
}

/* Shorter rows cost less with masks than what to look for their ends takes. */
enum { CGL_LONG_ROW = 64 };

/* Is thread i of the row in front of the row's end? */
template <auto K, class... A>
CGL_INLINE bool cgl_is_inside(unsigned bx, int i, A... a) {
  blockIdx.x = (unsigned)i / bx;
  threadIdx.x = (unsigned)i % bx;
  cgl_end = CGL_END_SOUGHT;
  cgl_inside = false;
  K(a...);
  cgl_end = 0;
  return cgl_inside;
}

/* The first thread of [start, end) that is not, or `end`. */
template <auto K, class... A>
CGL_INLINE int cgl_stop(unsigned bx, int start, int end, A... a) {
  long inside = start - 1L, outside = end;
  for (long at = end - 1L; inside + 1 < outside;) {
    const bool first = outside == end && end - start > 2;
    if (cgl_is_inside<K, A...>(bx, (int)at, a...))
      inside = at;
    else
      outside = at;
    at = first ? start : inside + (outside - inside) / 2;
  }
  return (int)outside;
}

/* Threads [from, end) of each row of `rows` rows of blocks, z fixed.  y counts
   rows of threads as i counts threads: what a kernel computes from it goes from
   row to row by additions.  The first FEW threads (16 of a very long row, where
   64-byte alignment pays for them) run outside the loop, so that x >= FEW is
   known inside it and guards of stencils fold.  Threads are unordered, which
   the pragma says; the ordered form is for kernels with local arrays that stay
   in memory, which all threads of the loop share (see generate.c, which finds
   the functions by ID). */
#define CGL_ROW(name, PRAGMA, ...)                                        \
  template <int ID, auto K, unsigned BX, int FEW, bool ENDS, class... A>  \
  static __attribute__((noinline, flatten __VA_ARGS__)) void name(        \
      const cgl_host_dims *d, unsigned bi, unsigned bj, unsigned rows,    \
      unsigned bk, unsigned z, const int from, const int end, A... a) {   \
    const unsigned bx = BX ? BX : d->block[0], by = d->block[1];          \
    CGL_ASSUME(bx >= 1 && bx <= 1024)                                     \
    const int few = end - from >= 8192 ? 16 : FEW;                        \
    const int start = few < end - from ? from + few : end;                \
    cgl_column<K, A...>(d, bi, bj, rows, bk, z, (uint64_t)(start - from), \
                        a...);                                            \
    gridDim = {d->grid[0], d->grid[1], d->grid[2]};                       \
    blockDim = {bx, by, d->block[2]};                                     \
    if (start >= end)                                                     \
      return;                                                             \
    CGL_ASSUME(cgl_is_small(gridDim, blockDim))                           \
    if (start < FEW)                                                      \
      __builtin_unreachable();                                            \
    const int first = (int)(bj * by), last = first + (int)(rows * by);    \
    CGL_ASSUME(first >= 0 && by >= 1 && by <= 1024)                       \
    for (int y = first; y < last; y++) {                                  \
      blockIdx = {0, (unsigned)y / by, bk};                               \
      threadIdx = {0, (unsigned)y % by, z};                               \
      int stop = end;                                                     \
      if constexpr (ENDS)                                                 \
        stop = cgl_stop<K, A...>(bx, start, end, a...);                   \
      PRAGMA for (int i = start; i < stop; i++) {                         \
        blockIdx.x = (unsigned)i / bx;                                    \
        threadIdx.x = (unsigned)i % bx;                                   \
        cgl_end = ENDS ? CGL_END_KNOWN : 0;                               \
        K(a...);                                                          \
        cgl_end = 0;                                                      \
        threadIdx.x = 0;                                                  \
        blockIdx.x = 0;                                                   \
      }                                                                   \
    }                                                                     \
  }
CGL_ROW(cgl_row, CGL_UNORDERED)
CGL_ROW(cgl_row_ordered, )
/* Kernels that add up rows of memory (see frontend/rows.c). */
#ifdef __clang__
#define CGL_NO_VECTORS
#else
#define CGL_NO_VECTORS , optimize("no-tree-vectorize")
#endif
CGL_ROW(cgl_row_scalar, , CGL_NO_VECTORS)

enum {
  CGL_FLAT = 1,
  CGL_ORDERED = 2,
  CGL_BARRIERS = 4,
  CGL_STRIDE = 8,
  CGL_LOOPS_MODE = 16,
  CGL_STRIPS = 32,
  CGL_ROWS = 64,
  CGL_ENDS = 128
};

/* Threads [from, end) of one row of the grid, one after the other. */
template <auto K, class... A>
static __attribute__((noinline, flatten)) void
cgl_few(const cgl_host_dims *d, unsigned bj, unsigned bk, unsigned y,
        unsigned z, int from, int end, A... a) {
  const unsigned bx = d->block[0];
  gridDim = {d->grid[0], d->grid[1], d->grid[2]};
  blockDim = {bx, d->block[1], d->block[2]};
  for (int i = from; i < end; i++) {
    blockIdx = {(unsigned)i / bx, bj, bk};
    threadIdx = {(unsigned)i % bx, y, z};
    K(a...);
  }
}

/* Threads [from, end) of each of the rows, 32 at a time (see compile/loops).
   What a strip does not take, threads with others between them that leave, is
   left to the kernel itself. */
template <auto K, class L, class... A>
static void cgl_strips(const cgl_host_dims *d, unsigned bj, unsigned rows,
                       unsigned bk, unsigned z, int from, int end, A... a) {
  const uint3 grid = {d->grid[0], d->grid[1], d->grid[2]};
  const uint3 block = {d->block[0], d->block[1], d->block[2]};
  for (unsigned y = 0, left = rows * block.y; left; y++, left--) {
    if (y == block.y)
      y = 0, bj++;
    const uint3 at = {0, bj, bk};
    for (int i = from, n; i < end; i += n) {
      n = end - i < 32 ? end - i : 32;
      if ((n < 32 ||
           L::template run<true, A...>(grid, block, at, i, y, z, 32u, a...)) &&
          L::template run<false, A...>(grid, block, at, i, y, z, (unsigned)n,
                                       a...))
        cgl_few<K, A...>(d, bj, bk, y, z, i, i + n, a...);
    }
  }
}

template <int ID, auto K, int MODE, class L, unsigned BX, int FEW, class... A,
          unsigned... I>
static void cgl_run_flat(void *const *p, const cgl_host_dims *d, uint64_t first,
                         uint64_t last, void (*)(A...), cgl_list<I...>) {
  const unsigned gx = d->grid[0], gy = d->grid[1], bx = d->block[0];
  for (uint64_t b = first; b < last;) {
    const uint64_t row = b / gx, left = last - b;
    const unsigned x0 = (unsigned)(b % gx);
    const unsigned n = left < gx - x0 ? (unsigned)left : gx - x0;
    const unsigned bj = (unsigned)(row % gy), bk = (unsigned)(row / gy);
    /* Few rows at a time: their first threads come before the rest. */
    const unsigned most = gy - bj < 64 ? gy - bj : 64;
    const uint64_t whole = x0 || left < gx ? 1 : left / gx;
    const unsigned rows = whole < most ? (unsigned)whole : most;
    const uint64_t from = (uint64_t)x0 * bx, to = from + (uint64_t)n * bx;
    for (unsigned z = 0; z < d->block[2]; z++)
      /* The second, which the first implies, tells the compiler that places
         are no less than 0. */
      if ((uint64_t)gx * bx > 0x7fffffff || to > 0x7fffffff)
        cgl_column<K, A...>(d, x0, bj, rows, bk, z, to - from, *(A *)p[I]...);
      else if constexpr ((MODE & CGL_STRIPS) != 0)
        cgl_strips<K, L, A...>(d, bj, rows, bk, z, (int)from, (int)to,
                               *(A *)p[I]...);
      else if constexpr ((MODE & CGL_ORDERED) != 0)
        cgl_row_ordered<ID, K, BX, FEW, false, A...>(
            d, x0, bj, rows, bk, z, (int)from, (int)to, *(A *)p[I]...);
      else if constexpr ((MODE & CGL_ROWS) != 0)
        cgl_row_scalar<ID, K, BX, FEW, false, A...>(
            d, x0, bj, rows, bk, z, (int)from, (int)to, *(A *)p[I]...);
      else if ((MODE & CGL_ENDS) != 0 && to - from >= CGL_LONG_ROW)
        cgl_row<ID, K, BX, FEW, (MODE & CGL_ENDS) != 0, A...>(
            d, x0, bj, rows, bk, z, (int)from, (int)to, *(A *)p[I]...);
      else
        cgl_row<ID, K, BX, FEW, false, A...>(d, x0, bj, rows, bk, z, (int)from,
                                             (int)to, *(A *)p[I]...);
    b += (uint64_t)n * rows;
  }
}

enum { CGL_NEAR_BLOCKS = 0x80000000 / 1024 - 1 };
/* One block, thread by thread.  Places along x are an int's: then what is
   computed of them without a sign, in whatever words, does not wrap around, and
   the compiler sees neighbours. */
#define CGL_BLOCK(name, PRAGMA)                                                \
  template <int ID, auto K, class... A>                                        \
  static __attribute__((noinline, flatten)) void name(                         \
      const cgl_host_dims *d, unsigned bi, unsigned bj, unsigned bk, A... a) { \
    const unsigned bx = d->block[0];                                           \
    CGL_ASSUME(bx >= 1 && bx <= 1024 && bi < CGL_NEAR_BLOCKS)                  \
    gridDim = {d->grid[0], d->grid[1], d->grid[2]};                            \
    blockDim = {bx, d->block[1], d->block[2]};                                 \
    for (unsigned z = 0; z < d->block[2]; z++)                                 \
      for (unsigned y = 0; y < d->block[1]; y++) {                             \
        blockIdx = {bi, bj, bk};                                               \
        threadIdx = {0, y, z};                                                 \
        PRAGMA for (unsigned x = 0; x < bx; x++) {                             \
          CGL_ASSUME(x < 1024)                                                 \
          threadIdx.x = x;                                                     \
          K(a...);                                                             \
          threadIdx.x = 0;                                                     \
        }                                                                      \
      }                                                                        \
  }
CGL_BLOCK(cgl_block, CGL_UNORDERED)
CGL_BLOCK(cgl_block_ordered, )

template <int ID, auto K, int MODE, class... A, unsigned... I>
static void cgl_run_nested(void *const *p, const cgl_host_dims *d,
                           uint64_t first, uint64_t last, void (*)(A...),
                           cgl_list<I...>) {
  const unsigned gx = d->grid[0], gy = d->grid[1];
  for (uint64_t b = first; b < last; b++) {
    const unsigned bi = (unsigned)(b % gx), bj = (unsigned)(b / gx % gy);
    const unsigned bk = (unsigned)(b / gx / gy);
    if (bi >= CGL_NEAR_BLOCKS)
      for (unsigned z = 0; z < d->block[2]; z++)
        cgl_column<K, A...>(d, bi, bj, 1, bk, z, d->block[0], *(A *)p[I]...);
    else if constexpr ((MODE & CGL_ORDERED) != 0)
      cgl_block_ordered<ID, K, A...>(d, bi, bj, bk, *(A *)p[I]...);
    else
      cgl_block<ID, K, A...>(d, bi, bj, bk, *(A *)p[I]...);
  }
}

/* A kernel whose grid-stride loop was rewritten (see stride.c): one call for
   all threads of a run of blocks.  Those threads take cgl_span iterations in
   a row, from cgl_first on, and again every cgl_pace.  A row of iterations
   holds each thread once, so within it, and only there, all are unordered. */
static __thread long cgl_first, cgl_span, cgl_pace;
/* at + n, or the bound when that is nearer; at is below the bound. */
template <class T> CGL_INLINE T cgl_step(T at, long n, T bound) {
  return (unsigned long)(bound - at) <= (unsigned long)n ? bound : (T)(at + n);
}
template <int ID, auto K, class... A>
static __attribute__((noinline, flatten)) void
cgl_stride(const cgl_host_dims *d, unsigned x0, unsigned n, unsigned bj,
           unsigned bk, unsigned y, unsigned z, A... a) {
  const long bx = d->block[0];
  gridDim = {d->grid[0], d->grid[1], d->grid[2]};
  blockDim = {d->block[0], d->block[1], d->block[2]};
  blockIdx = {x0, bj, bk};
  threadIdx = {0, y, z};
  cgl_first = x0 * bx;
  cgl_span = n * bx;
  cgl_pace = d->grid[0] * bx;
  K(a...);
}

template <int ID, auto K, class... A, unsigned... I>
static void cgl_run_stride(void *const *p, const cgl_host_dims *d,
                           uint64_t first, uint64_t last, void (*)(A...),
                           cgl_list<I...>) {
  const unsigned gx = d->grid[0], gy = d->grid[1];
  for (uint64_t b = first; b < last;) {
    const uint64_t row = b / gx;
    const unsigned x0 = (unsigned)(b % gx);
    const unsigned n = last - b < gx - x0 ? (unsigned)(last - b) : gx - x0;
    for (unsigned z = 0; z < d->block[2]; z++)
      for (unsigned y = 0; y < d->block[1]; y++)
        cgl_stride<ID, K, A...>(d, x0, n, (unsigned)(row % gy),
                                (unsigned)(row / gy), y, z, *(A *)p[I]...);
    b += n;
  }
}

template <class... A> constexpr unsigned cgl_arity(void (*)(A...)) {
  return sizeof...(A);
}

static __thread uint3 cgl_starting; /* the next thread of the block */
template <auto K, class... A, unsigned... I>
CGL_INLINE void cgl_run_thread(void *const *p, void (*)(A...), cgl_list<I...>) {
  threadIdx = cgl_starting;
  if (++cgl_starting.x == blockDim.x) {
    cgl_starting.x = 0;
    if (++cgl_starting.y == blockDim.y) {
      cgl_starting.y = 0;
      cgl_starting.z++;
    }
  }
  K(*(A *)p[I]...);
}
template <auto K> static __attribute__((flatten)) void cgl_thunk(void *p) {
  cgl_run_thread<K>((void *const *)p, K,
                    typename cgl_count<cgl_arity(K)>::list());
}

/* A kernel with barriers whose threads are fibers. */
template <auto K>
static void cgl_run_barriers(void *const *p, const cgl_host_dims *d,
                             uint64_t first, uint64_t last) {
  const unsigned gx = d->grid[0], gy = d->grid[1];
  const unsigned n = d->block[0] * d->block[1] * d->block[2];
  gridDim = {gx, gy, d->grid[2]};
  blockDim = {d->block[0], d->block[1], d->block[2]};
  for (uint64_t b = first; b < last; b++) {
    blockIdx = {(unsigned)(b % gx), (unsigned)(b / gx % gy),
                (unsigned)(b / gx / gy)};
    cgl_starting = {0, 0, 0};
    cgl_runtime.block(cgl_thunk<K>, (void *)p, n);
  }
}

/* A kernel with barriers whose threads run in loops between them (see
   compile/loops): L::run runs one block. */
template <class L, class... A, unsigned... I>
static void cgl_run_loops(void *const *p, const cgl_host_dims *d,
                          uint64_t first, uint64_t last, void (*)(A...),
                          cgl_list<I...>) {
  const unsigned gx = d->grid[0], gy = d->grid[1];
  const uint3 grid = {gx, gy, d->grid[2]};
  const uint3 block = {d->block[0], d->block[1], d->block[2]};
  uint3 at = {(unsigned)(first % gx), (unsigned)(first / gx % gy),
              (unsigned)(first / gx / gy)};
  gridDim = grid;
  blockDim = block;
  for (uint64_t b = first; b < last; b++) {
    blockIdx = at;
    L::template run<A...>(grid, block, at, *(A *)p[I]...);
    if (++at.x == gx) {
      at.x = 0;
      if (++at.y == gy) {
        at.y = 0;
        at.z++;
      }
    }
  }
}

/* A thread's first use of its variables may overwrite registers that a compiler
   takes to be kept there (glibc before 2.40): so it is here, where none is in
   use. */
static __attribute__((noinline)) void cgl_wake() {
  static __thread char any;
  __asm__ volatile("" : : "r"(&any));
}

/* BX: the blocks' width that the kernel's text names; blocks of that width are
   as good as a flat kernel's, whose index folds back to the loop's.
   FEW: the numbers that the text compares places with are no larger. */
template <int ID, auto K, int MODE, class L, unsigned BX, int FEW>
static __attribute__((noinline)) void
cgl_run_awake(void *const *p, const cgl_host_dims *d, uint64_t first,
              uint64_t last) {
  typedef typename cgl_count<cgl_arity(K)>::list list;
  cgl_end = 0;
  if constexpr (MODE == CGL_BARRIERS)
    cgl_run_barriers<K>(p, d, first, last);
  else if constexpr (MODE == CGL_LOOPS_MODE)
    /* for its type alone: what names K has it compiled, too */
    cgl_run_loops<L>(p, d, first, last, (decltype(K))nullptr, list());
  else if constexpr (MODE == CGL_STRIDE)
    cgl_run_stride<ID, K>(p, d, first, last, K, list());
  else if constexpr ((MODE & CGL_FLAT) != 0)
    cgl_run_flat<ID, K, MODE, L, 0, FEW>(p, d, first, last, K, list());
  else {
    if constexpr (BX != 0)
      if (d->block[0] == BX)
        return cgl_run_flat<ID, K, MODE, L, BX, FEW>(p, d, first, last, K,
                                                     list());
    cgl_run_nested<ID, K, MODE>(p, d, first, last, K, list());
  }
}

template <int ID, auto K, int MODE, class L, unsigned BX, int FEW>
static void cgl_run(void *const *p, const cgl_host_dims *d, uint64_t first,
                    uint64_t last) {
  cgl_wake();
#ifdef CGL_WITH_SUMS
  cgl_forget_sums();
#endif
  cgl_run_awake<ID, K, MODE, L, BX, FEW>(p, d, first, last);
#ifdef CGL_WITH_SUMS
  cgl_put_sums();
#endif
}

template <class F> struct cgl_parameters;
template <class... A> struct cgl_parameters<void (*)(A...)> {
  static constexpr uint32_t count = sizeof...(A);
  static constexpr uint32_t size[] = {(uint32_t)sizeof(A)..., 0};
  static constexpr uint32_t align[] = {(uint32_t)alignof(A)..., 0};
};

template <int ID, auto K, int MODE, class L = void, unsigned BX = 0,
          int FEW = 1>
constexpr cgl_host_kernel cgl_export(const char *name, uint32_t max_threads) {
  typedef cgl_parameters<decltype(K)> parameters;
  constexpr uint32_t flags =
      (MODE & CGL_BARRIERS ? (uint32_t)CGL_HOST_KERNEL_BARRIERS : 0u) |
      (MODE & CGL_LOOPS_MODE ? (uint32_t)CGL_HOST_KERNEL_LOOPS : 0u) |
      (MODE & (CGL_FLAT | CGL_STRIDE) ? (uint32_t)CGL_HOST_KERNEL_FLAT : 0u);
  return {name,
          cgl_run<ID, K, MODE, L, BX, FEW>,
          parameters::size,
          parameters::align,
          parameters::count,
          max_threads,
          0,
          flags};
}

static void cgl_init(const cgl_host_runtime *runtime) {
  cgl_runtime = *runtime;
}
