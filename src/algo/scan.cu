// Running sums, minima and maxima.  In front stand X, the elements' type;
// NUMBER, what they are computed as; R, the results' type; the operation; WORST,
// what every number beats; and TILE, the elements of a block of 512 threads.

#if defined(MIN)
INSIDE NUMBER start() { return WORST; }
INSIDE NUMBER join(NUMBER a, NUMBER b) { return (a < b) | (a != a) ? a : b; }
#elif defined(MAX)
INSIDE NUMBER start() { return WORST; }
INSIDE NUMBER join(NUMBER a, NUMBER b) { return (a > b) | (a != a) ? a : b; }
#else
INSIDE NUMBER start() { return 0; }
INSIDE NUMBER join(NUMBER a, NUMBER b) { return a + b; }
#endif

#ifndef __CGRAPHLUA_HOST__

// One pass over the elements.  Blocks begin in the order of their numbers, so
// those before a block are underway.  A block takes a tile, and publishes its
// sum; 1024 tiles are a group, whose last tile publishes the sum up to its end.
// The sum before a tile is joined from that of the group before and those of the
// tiles before in its group, in an order that the tile's number fixes: the same
// bits in every run.
// state: a place for each tile, then for each group, which the caller sets to 0:
// 32 bits of the number in each word, beside a 1, so that a word is whole when
// it is seen.

enum { THREADS = 512, EACH = TILE / THREADS, GROUP = 1024 };
enum { WORDS = sizeof(NUMBER) / 4 };
#define PLACE(i) ((i) + (i) / 32) /* without conflicts of banks */

INSIDE void publish(u64 *place, NUMBER value) {
  unsigned bits[WORDS];
  memcpy(bits, &value, sizeof value);
  for (int w = 0; w < WORDS; w++)
    ((volatile u64 *)place)[w] = (u64)1 << 32 | bits[w];
}

INSIDE NUMBER await(const u64 *place) {
  unsigned bits[WORDS];
  for (int w = 0; w < WORDS; w++) {
    u64 seen;
    do seen = ((const volatile u64 *)place)[w];
    while (!(seen >> 32));
    bits[w] = (unsigned)seen;
  }
  NUMBER value;
  memcpy(&value, bits, sizeof value);
  return value;
}

INSIDE NUMBER shuffle_up(NUMBER a, int by) {
  return __shfl_up_sync(0xffffffff, a, by);
}

// What stands before the thread's own number in its block; *all: the block's.
INSIDE NUMBER scan_block(NUMBER own, NUMBER *warps, NUMBER *all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  NUMBER sum = own;
  for (int by = 1; by < 32; by *= 2) {
    const NUMBER before = shuffle_up(sum, by);
    if (lane >= by) sum = join(before, sum);
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  NUMBER before = start();
  *all = start();
#pragma unroll
  for (int w = 0; w < THREADS / 32; w++) {
    if (w == warp) before = *all;
    *all = join(*all, warps[w]);
  }
  sum = shuffle_up(sum, 1);
  __syncthreads();
  return lane ? join(before, sum) : before;
}

extern "C" __global__ void __launch_bounds__(512, 3)
scan(const X *x, R *out, u64 *state, i64 n, i64 tiles, int exclusive) {
  __shared__ NUMBER places[TILE + TILE / 32];
  __shared__ NUMBER warps[THREADS / 32];
  __shared__ NUMBER base, before_tile;
  const int t = threadIdx.x;
  const i64 tile = (i64)blockIdx.y * gridDim.x + blockIdx.x;
  if (tile >= tiles) return;
  const i64 first = tile * TILE;
  const int width = n - first < TILE ? (int)(n - first) : TILE;
  X elements[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (k * THREADS + t < width) elements[k] = x[first + k * THREADS + t];
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int i = k * THREADS + t;
    places[PLACE(i)] = i < width ? (NUMBER)get(elements[k]) : start();
  }
  __syncthreads();
  NUMBER sum = start();
#pragma unroll
  for (int k = 0; k < EACH; k++) sum = join(sum, places[PLACE(t * EACH + k)]);
  NUMBER all, before = scan_block(sum, warps, &all);
  if (tiles > 1) {
    u64 *groups = state + tiles * WORDS;
    const i64 group = tile / GROUP;
    if (t == 0) publish(state + tile * WORDS, all);
    NUMBER others = start(), lower;
    for (int i = t; i < tile % GROUP; i += THREADS)
      others = join(others, await(state + (group * GROUP + i) * WORDS));
    if (t == THREADS - 1)
      base = group ? await(groups + (group - 1) * WORDS) : start();
    scan_block(others, warps, &lower);
    if (t == 0) {
      if (tile % GROUP == GROUP - 1)
        publish(groups + group * WORDS, join(base, join(lower, all)));
      before_tile = join(base, lower);
    }
    __syncthreads();
    before = join(before_tile, before);
  }
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    NUMBER *place = &places[PLACE(t * EACH + k)];
    const NUMBER upto = join(before, *place);
    *place = exclusive ? before : upto;
    before = upto;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int i = k * THREADS + t;
    if (i < width) out[first + i] = put<R>::of(places[PLACE(i)]);
  }
}

#else

// A thread for each chunk: the chunks' sums, what stands before each chunk, and
// then the elements once more.

#define CHUNK ((i64)blockIdx.y * gridDim.x + blockIdx.x)

extern "C" __global__ void sums(const X *x, NUMBER *parts, i64 n, i64 chunk) {
  const i64 first = CHUNK * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  NUMBER lanes[32];
  for (int k = 0; k < 32; k++) lanes[k] = start();
  i64 j = first;
  for (; j + 32 <= end; j += 32)
    for (int k = 0; k < 32; k++)
      lanes[k] = join(lanes[k], (NUMBER)get(x[j + k]));
  for (int k = 0; j + k < end; k++)
    lanes[k] = join(lanes[k], (NUMBER)get(x[j + k]));
  for (int w = 16; w; w /= 2)
    for (int k = 0; k < w; k++) lanes[k] = join(lanes[k], lanes[k + w]);
  parts[CHUNK] = lanes[0];
}

extern "C" __global__ void offsets(NUMBER *parts, i64 chunks) {
  NUMBER before = start();
  for (i64 i = 0; i < chunks; i++) {
    const NUMBER upto = join(before, parts[i]);
    parts[i] = before;
    before = upto;
  }
}

extern "C" __global__ void scan(const X *x, R *out, const NUMBER *parts, i64 n,
                                i64 chunk, int exclusive) {
  const i64 first = CHUNK * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  NUMBER before = parts ? parts[CHUNK] : start();
  for (i64 j = first; j < end; j++) {
    const NUMBER upto = join(before, (NUMBER)get(x[j]));
    out[j] = put<R>::of(exclusive ? before : upto);
    before = upto;
  }
}

#endif
