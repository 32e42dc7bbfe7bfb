#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
template <class G> __device__ int total(const G &g, int *room, int v) {
  const int me = g.thread_rank();
  for (int n = g.size() / 2; n > 0; n /= 2) {
    room[me] = v;
    g.sync();
    if (me < n) v += room[me + n];
    g.sync();
  }
  return v;
}
__device__ unsigned first_one(cg::thread_group g, unsigned v) { g.sync(); return g.thread_rank() == 0 ? v : g.size(); }
extern "C" __global__ void block(int *out, const int *) {
  __shared__ int room[1024];
  cg::thread_block b = cg::this_thread_block();
  int sum = total(b, room, b.thread_rank() + 1);
  const int t = b.thread_rank();
  room[t] = t;
  cg::sync(b);
  out += b.size() * (b.group_index().x + gridDim.x * b.group_index().y) * 8 + t * 8;
  out[0] = sum;
  out[1] = room[b.size() - 1 - t];
  out[2] = b.thread_index().x + 100 * b.thread_index().y + 10000 * b.thread_index().z;
  out[3] = b.group_dim().x + 100 * b.dim_threads().y;
  out[4] = cg::this_grid().thread_rank();
  out[5] = cg::this_grid().size() * 1000 + cg::this_grid().block_rank();
  out[6] = first_one(b, 77);
  out[7] = cg::this_grid().num_blocks() + cg::thread_rank(b) * 1000 + cg::group_size(b);
}
template <int N> __device__ void tiles(int *out, const int *in) {
  cg::thread_block b = cg::this_thread_block();
  auto t = cg::tiled_partition<N>(b);
  int v = in[b.thread_rank()];
  out += 20 * (b.thread_rank() + b.size() * blockIdx.x);
  out[0] = t.thread_rank() + 100 * t.size() + 10000 * t.meta_group_rank() + 1000000 * t.meta_group_size();
  out[1] = t.shfl(v, 1);
  out[2] = t.shfl_up(v, 1);
  out[3] = t.shfl_down(v, 2);
  out[4] = t.shfl_xor(v, 1);
  out[5] = t.any(v % 5 == 0);
  out[6] = t.all(v % 5);
  out[7] = t.ballot(v & 1);
  out[8] = t.match_any(v & 3);
  int same = 0;
  out[9] = t.match_all(v >> 20, same) + same;
  out[10] = cg::reduce(t, v, cg::plus<int>());
  out[11] = cg::reduce(t, v, cg::less<int>());
  out[12] = cg::reduce(t, v, cg::greater<int>());
  out[13] = cg::reduce(t, v, cg::bit_xor<int>());
  out[14] = cg::inclusive_scan(t, v);
  out[15] = cg::exclusive_scan(t, v, cg::plus<int>());
  out[16] = (int)t.shfl((double)v * 0.5, 0);
  out[17] = first_one(t, 99);
  auto h = cg::tiled_partition<N / 2>(t);
  out[18] = h.thread_rank() + 100 * h.size() + 10000 * h.meta_group_rank() + 1000000 * h.meta_group_size();
  auto d = cg::tiled_partition(b, N);
  out[19] = d.thread_rank() + 100 * d.size();
}
extern "C" __global__ void tiles32(int *out, const int *in) { tiles<32>(out, in); }
extern "C" __global__ void tiles8(int *out, const int *in) { tiles<8>(out, in); }
extern "C" __global__ void lanes(int *out, const int *in) {
  const unsigned me = threadIdx.x;
  int v = in[me];
  out += 12 * (me + blockDim.x * blockIdx.x);
  if (me % 3) {
    cg::coalesced_group g = cg::coalesced_threads();
    out[0] = g.size() + 100 * g.thread_rank();
    out[1] = g.shfl(v, 2);
    out[2] = g.shfl_up(v, 1);
    out[3] = g.shfl_down(v, 1);
    out[4] = g.ballot(v & 1);
    out[5] = g.any(v % 9 == 0) + 10 * g.all(v % 9);
    out[6] = cg::reduce(g, v, cg::plus<int>());
    g.sync();
  }
  auto t = cg::tiled_partition<16>(cg::this_thread_block());
  auto p = cg::binary_partition(t, v & 2);
  out[7] = p.size() + 100 * p.thread_rank();
  auto l = cg::labeled_partition(t, v % 3);
  out[8] = l.size() + 100 * l.thread_rank();
  out[9] = cg::reduce(l, v, cg::plus<int>());
  __shared__ int room[64];
  cg::thread_block b = cg::this_thread_block();
  cg::memcpy_async(b, room, in, sizeof(int) * 64);
  cg::wait(b);
  out[10] = room[(me + 1) % 64];
  t.sync();
  out[11] = 0;
}
__device__ int warp_sum(cg::thread_block_tile<32> tile, int v) {
  for (int d = tile.size() / 2; d > 0; d /= 2) v += tile.shfl_down(v, d);
  return v;
}
__device__ int block_sum(const cg::thread_block &cta, int *s, int v) {
  const int t = cta.thread_rank();
  s[t] = v;
  cg::sync(cta);
  for (int n = cta.size() / 2; n > 0; n /= 2) {
    if (t < n) s[t] += s[t + n];
    cta.sync();
  }
  return s[0];
}
extern "C" __global__ void sums(int *out, const int *in) {
  __shared__ int s[1024];
  cg::thread_block cta = cg::this_thread_block();
  cg::thread_block_tile<32> tile32 = cg::tiled_partition<32>(cta);
  unsigned tid = cta.thread_rank(), i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = in[i % 128];
  int all = block_sum(cta, s, v);
  cg::sync(cta);
  v = warp_sum(tile32, v);
  if (tile32.thread_rank() == 0) s[tile32.meta_group_rank()] = v;
  cg::sync(cta);
  if (tid < 32) {
    v = tid < tile32.meta_group_size() ? s[tid] : 0;
    v = warp_sum(tile32, v);
  }
  out[i] = v * 3 + all + tid;
}
extern "C" __global__ void scans(int *out, const int *in) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  auto grid = cg::this_grid();
  const auto i = grid.thread_rank();
  int v = in[i % 128];
  for (int d = 1; d < tile.num_threads(); d *= 2) {
    int other = tile.shfl_up(v, d);
    if (tile.thread_rank() >= d) v += other;
  }
  v += tile.shfl(v, 3) + tile.any(v & 1) + tile.all(v < 100) + tile.shfl_xor(v, 2);
  tile.sync();
  out[i] = v + (int)(grid.size() * 1000) + block.group_index().x * 7 + block.dim_threads().x;
}
extern "C" __global__ void mirror(int *out, const int *in) {
  __shared__ int room[33 * 33];
  const cg::thread_block block = cg::this_thread_block();
  int x = block.thread_index().x, y = block.thread_index().y;
  unsigned t = cg::thread_rank(block);
  room[t] = in[t % 128] + x * y;
  cg::this_thread_block().sync();
  int v = room[block.size() - 1 - t];
  auto w = cg::tiled_partition<32>(cg::this_thread_block());
  unsigned mask = w.ballot(v & 1);
  block.sync();
  out[t + blockIdx.x * block.num_threads()] = v + (int)(mask % 1000) + w.thread_rank();
}
extern "C" __global__ void line(int *out, const int *in) {
  cg::grid_group g = cg::this_grid();
  for (unsigned i = g.thread_rank(); i < 512; i += g.size()) out[i] = in[i % 128] * 2 + i;
}

template <class G> __device__ int parts_of(const G &g) {
  return g.size() + 100 * g.thread_rank() + 10000 * g.meta_group_rank()
    + 1000000 * g.meta_group_size();
}
extern "C" __global__ void parts(int *out, const int *in) {
  const unsigned me = threadIdx.x;
  int v = in[me], same = 0;
  out += 20 * (me + blockDim.x * blockIdx.x);
  cg::thread_block b = cg::this_thread_block();
  auto t = cg::tiled_partition<16>(b);
  out[0] = parts_of(cg::binary_partition(t, v & 2));
  out[1] = parts_of(cg::binary_partition(t, v < 1000));
  out[2] = parts_of(cg::labeled_partition(t, v % 3));
  out[3] = parts_of(cg::labeled_partition(t, (v & 4) != 0));
  out[4] = cg::exclusive_scan(t, v, cg::greater<int>());
  out[5] = cg::inclusive_scan(t, v, cg::bit_or<int>());
  out[6] = (int)(cg::reduce(t, v * 0.25, cg::plus<double>()) * 4);
  out[7] = cg::tiled_partition<1>(b).shfl(v, 0) + parts_of(cg::tiled_partition<1>(b));
  out[8] = cg::tiled_partition<2>(t).shfl_xor(v, 1);
  out[9] = cg::tiled_partition<4>(t).ballot(v & 1);
  if (me % 3) {
    cg::coalesced_group g = cg::coalesced_threads();
    out[10] = parts_of(g);
    out[11] = g.match_any(v & 3);
    out[12] = g.match_all(v >> 20, same) + same;
    out[13] = parts_of(cg::tiled_partition(g, 4));
    out[14] = cg::inclusive_scan(g, v);
    out[15] = cg::exclusive_scan(g, v, cg::plus<int>());
    out[16] = parts_of(cg::binary_partition(g, v & 1));
    out[17] = cg::reduce(cg::labeled_partition(g, v % 4), v, cg::bit_xor<int>());
  }
  auto token = b.barrier_arrive();
  b.barrier_wait(static_cast<cg::thread_block::arrival_token &&>(token));
  __shared__ int room[64];
  cg::memcpy_async(t, room + me / 16 * 16, in + me / 16 * 16, sizeof(int) * 16);
  cg::wait_prior<0>(t);
  out[18] = room[me ^ 5];
  out[19] = cg::group_size(t) * 1000 + cg::thread_rank(t);
}
struct span { float most; int sum; };
__device__ span wider(span a, span b) { return {a.most > b.most ? a.most : b.most, a.sum + b.sum}; }
template <int N> __device__ float mean(const cg::thread_block_tile<N> &t, float v) {
  return cg::reduce(t, v, cg::plus<float>()) / t.size() + t.meta_group_rank();
}
template <class G> __device__ int halved(const G &g, int v) {
  for (int n = g.size() / 2; n > 0; n /= 2) v += g.shfl_down(v, n);
  return v;
}
__device__ int turned(cg::thread_group g, int *room, int v) {
  const unsigned me = g.thread_rank();
  room[me] = v;
  g.sync();
  v = room[(me + g.size() - 1) % g.size()];
  g.sync();
  return v;
}
template <int N> __device__ void collect(int *out, const int *in) {
  namespace c = cooperative_groups;
  __shared__ int room[1024];
  c::thread_block b = c::this_thread_block();
  auto t = c::tiled_partition<N>(b);
  const int v = in[b.thread_rank()];
  out += 20 * (b.thread_rank() + b.size() * blockIdx.x);
  out[0] = c::reduce(t, v, c::plus<int>{});
  out[1] = c::reduce(t, v * 7919u, c::less<unsigned>{});
  out[2] = __float_as_int(c::reduce(t, v * 0.1f, c::plus<float>{}));
  out[3] = (int)(1e5 * c::reduce(t, v / 3.0, c::greater<double>{}));
  out[4] = (int)(c::reduce(t, (long long)v << 20, c::bit_xor<long long>{}) >> 18);
  span s{v * 0.5f, v};
  s = c::reduce(t, s, [](span x, span y) { return wider(x, y); });
  out[5] = (int)(s.most * 2) + 1000 * s.sum;
  out[6] = __float_as_int(c::inclusive_scan(t, v * 0.3f, c::plus<float>{}));
  out[7] = c::exclusive_scan(t, v);
  out[8] = c::inclusive_scan(t, v, [](int x, int y) { return x > y ? x : y; });
  out[9] = t.ballot(v & 1) + t.match_any(v & 3);
  out[10] = __float_as_int(mean<N>(t, v));
  out[11] = halved(t, v + 1);
  out[12] = turned(b, room, v);
  if (b.thread_rank() / 32 % 2 == 0) out[13] = c::reduce(t, v + 5, c::bit_or<int>{});
  int steps = 0;
  int k = c::reduce(t, v, c::greater<int>{});
  for (; k > 40; k /= 2) steps += c::reduce(t, k, c::plus<int>{});
  out[14] = steps;
}
extern "C" __global__ void collect32(int *out, const int *in) { collect<32>(out, in); }
extern "C" __global__ void collect16(int *out, const int *in) { collect<16>(out, in); }
extern "C" __global__ void collect4(int *out, const int *in) { collect<4>(out, in); }
