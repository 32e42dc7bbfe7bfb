/* Cooperative groups for kernels, with the names and the meaning of CUDA's
   cooperative_groups.h, which NVRTC may be without: the block, tiles of at most
   a warp, the lanes that are together, and the grid, which cannot wait.  This
   text stands in front of every source that includes the header, for both
   compilers. */
#define _COOPERATIVE_GROUPS_H_ /* CUDA's own has nothing to add */
#define _COOPERATIVE_GROUPS_REDUCE_H_
#define _COOPERATIVE_GROUPS_SCAN_H_
#define _CG_REDUCE_H
#define _CG_SCAN_H

#define CGL_GROUP __device__ __forceinline__

#define CGL_COUNTED(count, rank)            \
  CGL_GROUP static unsigned num_threads() { \
    return count;                           \
  }                                         \
  CGL_GROUP static unsigned size() {        \
    return count;                           \
  }                                         \
  CGL_GROUP static unsigned thread_rank() { \
    return rank;                            \
  }

namespace cooperative_groups {

CGL_GROUP unsigned cgl_rank() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

CGL_GROUP unsigned cgl_threads() {
  return blockDim.x * blockDim.y * blockDim.z;
}

/* The lanes of `mask` below the calling one. */
CGL_GROUP unsigned cgl_below(unsigned mask) {
  return mask & ((1u << (cgl_rank() & 31)) - 1);
}

/* The bits of `mask` that `members` has, side by side. */
CGL_GROUP unsigned cgl_packed(unsigned mask, unsigned members) {
  unsigned bits = 0;
  for (unsigned n = 0; members; n++, members &= members - 1)
    bits |= (mask >> (__ffs((int)members) - 1) & 1u) << n;
  return bits;
}

/* Shuffles of anything: numbers as they are, classes word by word. */
enum cgl_way { cgl_index, cgl_up, cgl_down, cgl_xor };

template <bool Class> struct cgl_shuffles {
  template <int Way, class T>
  CGL_GROUP static T run(unsigned mask, T v, unsigned by, int width) {
    return Way == cgl_index  ? __shfl_sync(mask, v, (int)by, width)
           : Way == cgl_up   ? __shfl_up_sync(mask, v, by, width)
           : Way == cgl_down ? __shfl_down_sync(mask, v, by, width)
                             : __shfl_xor_sync(mask, v, (int)by, width);
  }
};

template <> struct cgl_shuffles<true> {
  template <int Way, class T>
  CGL_GROUP static T run(unsigned mask, T v, unsigned by, int width) {
    unsigned words[(sizeof(T) + 3) / 4] = {};
    memcpy(words, &v, sizeof(T));
    for (unsigned i = 0; i < (sizeof(T) + 3) / 4; i++)
      words[i] = cgl_shuffles<false>::run<Way>(mask, words[i], by, width);
    memcpy((void *)&v, words, sizeof(T));
    return v;
  }
};

template <int Way, class T>
CGL_GROUP T cgl_shuffle(unsigned mask, T v, unsigned by, int width) {
  return cgl_shuffles<__is_class(T)>::template run<Way>(mask, v, by, width);
}

struct thread_block {
  CGL_COUNTED(cgl_threads(), cgl_rank())
  CGL_GROUP static dim3 group_index() {
    return dim3(blockIdx.x, blockIdx.y, blockIdx.z);
  }
  CGL_GROUP static dim3 thread_index() {
    return dim3(threadIdx.x, threadIdx.y, threadIdx.z);
  }
  CGL_GROUP static dim3 dim_threads() {
    return dim3(blockDim.x, blockDim.y, blockDim.z);
  }
  CGL_GROUP static dim3 group_dim() {
    return dim_threads();
  }
  CGL_GROUP static void sync() {
    __syncthreads();
  }
  struct arrival_token {};
  CGL_GROUP static arrival_token barrier_arrive() {
    return arrival_token();
  }
  CGL_GROUP static void barrier_wait(arrival_token) {
    __syncthreads();
  }
};

CGL_GROUP thread_block this_thread_block() {
  return thread_block();
}

struct grid_group {
  CGL_GROUP static unsigned long long num_blocks() {
    return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
  }
  CGL_GROUP static unsigned long long block_rank() {
    return blockIdx.x +
           (unsigned long long)gridDim.x *
               (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
  }
  CGL_GROUP static dim3 block_index() {
    return thread_block::group_index();
  }
  CGL_GROUP static dim3 dim_blocks() {
    return dim3(gridDim.x, gridDim.y, gridDim.z);
  }
  CGL_GROUP static dim3 group_dim() {
    return dim_blocks();
  }
  CGL_GROUP static unsigned long long num_threads() {
    return num_blocks() * cgl_threads();
  }
  CGL_GROUP static unsigned long long size() {
    return num_threads();
  }
  CGL_GROUP static unsigned long long thread_rank() {
    return block_rank() * cgl_threads() + cgl_rank();
  }
  CGL_GROUP static bool is_valid() {
    return false;
  }
  template <int N = 0> CGL_GROUP static void sync() {
    static_assert(N, "a grid cannot wait: use one kernel before and one after");
  }
};

CGL_GROUP grid_group this_grid() {
  return grid_group();
}

/* ---- groups of a warp's lanes ---- */

/* Lanes that are side by side: `Size` of them, from a multiple of it on. */
template <unsigned Size, class Parent = void> struct thread_block_tile {
  static_assert(Size && Size <= 32 && !(Size & (Size - 1)),
                "a tile has 1, 2, 4, 8, 16 or 32 threads");
  CGL_GROUP static constexpr unsigned num_threads() {
    return Size;
  }
  CGL_GROUP static constexpr unsigned size() {
    return Size;
  }
  CGL_GROUP static unsigned thread_rank() {
    return cgl_rank() & (Size - 1);
  }
  unsigned cgl_meta_rank, cgl_meta_size;
  CGL_GROUP thread_block_tile()
      : cgl_meta_rank(cgl_rank() / Size),
        cgl_meta_size((cgl_threads() + Size - 1) / Size) {
  }
  CGL_GROUP thread_block_tile(unsigned rank, unsigned count)
      : cgl_meta_rank(rank), cgl_meta_size(count) {
  }
  template <class P>
  CGL_GROUP thread_block_tile(const thread_block_tile<Size, P> &other)
      : cgl_meta_rank(other.cgl_meta_rank), cgl_meta_size(other.cgl_meta_size) {
  }
  CGL_GROUP unsigned meta_group_rank() const {
    return cgl_meta_rank;
  }
  CGL_GROUP unsigned meta_group_size() const {
    return cgl_meta_size;
  }
  CGL_GROUP static unsigned cgl_first() {
    return cgl_rank() & 31 & ~(Size - 1);
  }
  CGL_GROUP static unsigned cgl_mask() {
    return (Size == 32 ? ~0u : (1u << Size % 32) - 1) << cgl_first();
  }
  CGL_GROUP static void sync() {
    __syncwarp(cgl_mask());
  }
  template <class T> CGL_GROUP static T shfl(T v, int rank) {
    return cgl_shuffle<cgl_index>(cgl_mask(), v, (unsigned)rank, Size);
  }
  template <class T> CGL_GROUP static T shfl_up(T v, unsigned by) {
    return cgl_shuffle<cgl_up>(cgl_mask(), v, by, Size);
  }
  template <class T> CGL_GROUP static T shfl_down(T v, unsigned by) {
    return cgl_shuffle<cgl_down>(cgl_mask(), v, by, Size);
  }
  template <class T> CGL_GROUP static T shfl_xor(T v, unsigned by) {
    return cgl_shuffle<cgl_xor>(cgl_mask(), v, by, Size);
  }
  CGL_GROUP static int any(int p) {
    return __any_sync(cgl_mask(), p);
  }
  CGL_GROUP static int all(int p) {
    return __all_sync(cgl_mask(), p);
  }
  CGL_GROUP static unsigned ballot(int p) {
    return (__ballot_sync(cgl_mask(), p) & cgl_mask()) >> cgl_first();
  }
  template <class T> CGL_GROUP static unsigned match_any(T v) {
    return (__match_any_sync(cgl_mask(), v) & cgl_mask()) >> cgl_first();
  }
  template <class T> CGL_GROUP static unsigned match_all(T v, int &same) {
    return (__match_all_sync(cgl_mask(), v, &same) & cgl_mask()) >> cgl_first();
  }
};

/* Lanes of any places, in their order. */
struct coalesced_group {
  unsigned cgl_members, cgl_meta_rank, cgl_meta_size;
  CGL_GROUP explicit coalesced_group(unsigned members, unsigned rank = 0,
                                     unsigned count = 1)
      : cgl_members(members), cgl_meta_rank(rank), cgl_meta_size(count) {
  }
  CGL_GROUP unsigned cgl_mask() const {
    return cgl_members;
  }
  CGL_GROUP unsigned num_threads() const {
    return (unsigned)__popc(cgl_members);
  }
  CGL_GROUP unsigned size() const {
    return num_threads();
  }
  CGL_GROUP unsigned thread_rank() const {
    return (unsigned)__popc(cgl_below(cgl_members));
  }
  CGL_GROUP unsigned meta_group_rank() const {
    return cgl_meta_rank;
  }
  CGL_GROUP unsigned meta_group_size() const {
    return cgl_meta_size;
  }
  CGL_GROUP void sync() const {
    __syncwarp(cgl_members);
  }
  /* The lane of the n-th member. */
  CGL_GROUP int cgl_lane(unsigned n) const {
    unsigned rest = cgl_members;
    while (n--)
      rest &= rest - 1;
    return __ffs((int)rest) - 1;
  }
  template <class T> CGL_GROUP T shfl(T v, unsigned rank) const {
    return cgl_shuffle<cgl_index>(cgl_members, v,
                                  (unsigned)cgl_lane(rank % num_threads()), 32);
  }
  template <class T> CGL_GROUP T shfl_up(T v, unsigned by) const {
    const unsigned own = thread_rank();
    return shfl(v, own >= by ? own - by : own);
  }
  template <class T> CGL_GROUP T shfl_down(T v, unsigned by) const {
    const unsigned own = thread_rank();
    return shfl(v, own + by < num_threads() ? own + by : own);
  }
  CGL_GROUP int any(int p) const {
    return __any_sync(cgl_members, p);
  }
  CGL_GROUP int all(int p) const {
    return __all_sync(cgl_members, p);
  }
  CGL_GROUP unsigned ballot(int p) const {
    return cgl_packed(__ballot_sync(cgl_members, p), cgl_members);
  }
  template <class T> CGL_GROUP unsigned match_any(T v) const {
    return cgl_packed(__match_any_sync(cgl_members, v), cgl_members);
  }
  template <class T> CGL_GROUP unsigned match_all(T v, int &same) const {
    return cgl_packed(__match_all_sync(cgl_members, v, &same), cgl_members);
  }
};

CGL_GROUP coalesced_group coalesced_threads() {
  return coalesced_group(__activemask());
}

/* Any of these, by what it does. */
struct thread_group {
  unsigned cgl_members; /* 0: the block */
  CGL_GROUP thread_group(thread_block) : cgl_members(0) {
  }
  CGL_GROUP thread_group(const coalesced_group &g)
      : cgl_members(g.cgl_members) {
  }
  template <unsigned Size, class P>
  CGL_GROUP thread_group(const thread_block_tile<Size, P> &g)
      : cgl_members(g.cgl_mask()) {
  }
  CGL_GROUP unsigned long long num_threads() const {
    return cgl_members ? (unsigned)__popc(cgl_members) : cgl_threads();
  }
  CGL_GROUP unsigned long long size() const {
    return num_threads();
  }
  CGL_GROUP unsigned long long thread_rank() const {
    return cgl_members ? (unsigned)__popc(cgl_below(cgl_members)) : cgl_rank();
  }
  CGL_GROUP void sync() const {
    if (cgl_members)
      __syncwarp(cgl_members);
    else
      __syncthreads();
  }
};

template <unsigned Size, class P>
CGL_GROUP thread_block_tile<Size, P> tiled_partition(const P &parent) {
  return thread_block_tile<Size, P>(parent.thread_rank() / Size,
                                    (parent.num_threads() + Size - 1) / Size);
}

/* `size` divides a warp. */
CGL_GROUP thread_group tiled_partition(const thread_group &parent,
                                       unsigned size) {
  const unsigned first = parent.thread_rank() / size * size;
  unsigned members = 0, rest = parent.cgl_members;
  if (!rest)
    return coalesced_group((size < 32 ? (1u << size) - 1 : ~0u) << first % 32);
  for (unsigned n = 0; rest; n++, rest &= rest - 1)
    if (n >= first && n < first + size)
      members |= rest & (0u - rest);
  return coalesced_group(members);
}

CGL_GROUP coalesced_group tiled_partition(const coalesced_group &parent,
                                          unsigned size) {
  if (parent.size() <= size)
    return parent;
  return coalesced_group(
      tiled_partition(thread_group(parent), size).cgl_members,
      parent.thread_rank() / size, (parent.size() + size - 1) / size);
}

template <class G>
CGL_GROUP coalesced_group binary_partition(const G &group, bool p) {
  const unsigned mask = group.cgl_mask();
  const unsigned with = __ballot_sync(mask, p) & mask;
  return with == mask || !with ? coalesced_group(mask)
                               : coalesced_group(p ? with : mask & ~with, p, 2);
}

/* In the order of their first lanes. */
template <class G, class T>
CGL_GROUP coalesced_group labeled_partition(const G &group, T label) {
  const unsigned mask = group.cgl_mask();
  const unsigned members = __match_any_sync(mask, label) & mask;
  const unsigned first = members & (0u - members);
  const unsigned leaders =
      __ballot_sync(mask, first == 1u << (cgl_rank() & 31)) & mask;
  return coalesced_group(members, (unsigned)__popc(leaders & (first - 1)),
                         (unsigned)__popc(leaders));
}

template <class G>
CGL_GROUP coalesced_group labeled_partition(const G &group, bool label) {
  return binary_partition(group, label);
}

template <class G> CGL_GROUP void sync(const G &group) {
  group.sync();
}

template <class G>
CGL_GROUP auto thread_rank(const G &group) -> decltype(group.thread_rank()) {
  return group.thread_rank();
}

template <class G>
CGL_GROUP auto group_size(const G &group) -> decltype(group.num_threads()) {
  return group.num_threads();
}

/* ---- what a group makes of its values ---- */

#define CGL_GROUP_OPERATOR(name, result)     \
  template <class T> struct name {           \
    CGL_GROUP T operator()(T a, T b) const { \
      return result;                         \
    }                                        \
  };
CGL_GROUP_OPERATOR(plus, a + b)
CGL_GROUP_OPERATOR(less, b < a ? b : a)
CGL_GROUP_OPERATOR(greater, a < b ? b : a)
CGL_GROUP_OPERATOR(bit_and, a &b)
CGL_GROUP_OPERATOR(bit_xor, a ^ b)
CGL_GROUP_OPERATOR(bit_or, a | b)
#undef CGL_GROUP_OPERATOR

/* By halves: every lane gets the same. */
template <unsigned Size, class P, class T, class F>
CGL_GROUP T reduce(const thread_block_tile<Size, P> &tile, T v, F op) {
  for (unsigned by = Size / 2; by; by /= 2)
    v = op(v, tile.shfl_xor(v, by));
  return v;
}

template <class T, class F>
CGL_GROUP T reduce(const coalesced_group &group, T v, F op) {
  T all = group.shfl(v, 0);
  for (unsigned i = 1; i < group.num_threads(); i++)
    all = op(all, group.shfl(v, i));
  return all;
}

template <class G, class T, class F>
CGL_GROUP T inclusive_scan(const G &group, T v, F op) {
  for (unsigned by = 1; by < group.num_threads(); by *= 2) {
    const T other = group.shfl_up(v, by);
    if (group.thread_rank() >= by)
      v = op(other, v);
  }
  return v;
}

template <class G, class T> CGL_GROUP T inclusive_scan(const G &group, T v) {
  return inclusive_scan(group, v, plus<T>());
}

/* The first gets T(). */
template <class G, class T, class F>
CGL_GROUP T exclusive_scan(const G &group, T v, F op) {
  const T before = group.shfl_up(inclusive_scan(group, v, op), 1);
  return group.thread_rank() ? before : T();
}

template <class G, class T> CGL_GROUP T exclusive_scan(const G &group, T v) {
  return exclusive_scan(group, v, plus<T>());
}

/* The group copies `bytes`; what it wrote is there after wait(group). */
template <class G, class T>
CGL_GROUP void memcpy_async(const G &group, T *to, const T *from,
                            unsigned long bytes) {
  for (unsigned long i = group.thread_rank(); i < bytes / sizeof(T);
       i += group.num_threads())
    to[i] = from[i];
}

template <class G> CGL_GROUP void wait(const G &group) {
  group.sync();
}

template <int Stages, class G> CGL_GROUP void wait_prior(const G &group) {
  group.sync();
}

} // namespace cooperative_groups

/* What is passed where a variable was, when it is read as what it is made of
   (frontend/groups.c). */
typedef cooperative_groups::thread_block cgl_group_block;
typedef cooperative_groups::grid_group cgl_group_grid;
template <unsigned Size>
using cgl_group_tile = cooperative_groups::thread_block_tile<Size>;
template <unsigned Size>
using cgl_group_block_tile =
    cooperative_groups::thread_block_tile<Size,
                                          cooperative_groups::thread_block>;

/* The size of a tile of that type. */
template <class G> __device__ constexpr unsigned cgl_group_threads() {
  return G::num_threads();
}

/* Of the lanes that were active together: the lane of a member, of one as many
   ranks above or below another, and what a vote says by rank. */
CGL_GROUP int cgl_group_lane(unsigned members, unsigned rank) {
  return cooperative_groups::coalesced_group(members).cgl_lane(
      rank % (unsigned)__popc(members));
}
CGL_GROUP int cgl_group_up(unsigned members, unsigned own, unsigned by) {
  return cgl_group_lane(members, own >= by ? own - by : own);
}
CGL_GROUP int cgl_group_down(unsigned members, unsigned own, unsigned by) {
  const unsigned count = (unsigned)__popc(members);
  return cgl_group_lane(members, own + by < count ? own + by : own);
}
CGL_GROUP unsigned cgl_group_packed(unsigned members, unsigned lanes) {
  return cooperative_groups::cgl_packed(lanes, members);
}

/* A scan's operator where none is given. */
struct cgl_group_plus {
  template <class T> CGL_GROUP T operator()(T a, T b) const {
    return a + b;
  }
};

#undef CGL_COUNTED
#undef CGL_GROUP
