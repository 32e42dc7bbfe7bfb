// The kernels of copies and fills that the driver is slow at.  A thread writes
// 16 bytes that begin at a multiple of 16, so that a warp writes whole lines;
// those at the ends that are not all to be written, it writes one by one.
// Compiled one part at a time (-DCOPY, -DFILL, -DFILL=12 for elements of 12
// bytes, and -DFROM=12 where the kernel reads the element from memory).

typedef unsigned long long u64;

// The first of the 16 bytes of a thread; the first thread's begin a line.
#define PLACE(to) \
  (((u64)(to) & ~127ull) + 16 * ((u64)blockIdx.x * blockDim.x + threadIdx.x))

#ifdef COPY
#ifdef __CUDACC_RTC__
#define INSIDE __device__ __forceinline__
#else
#define INSIDE static __device__ __forceinline__
#endif

// Words s / 4 to s / 4 + 4 of the eight in a and b, s % 4 bytes on.
INSIDE uint4 shifted(uint4 a, uint4 b, unsigned s) {
  const unsigned bits = 8 * (s % 4);
  if (s & 8) {
    a.x = a.z; a.y = a.w; a.z = b.x; a.w = b.y; b.x = b.z; b.y = b.w;
  }
  if (s & 4) {
    a.x = a.y; a.y = a.z; a.z = a.w; a.w = b.x; b.x = b.y;
  }
  return make_uint4(__funnelshift_r(a.x, a.y, bits),
                    __funnelshift_r(a.y, a.z, bits),
                    __funnelshift_r(a.z, a.w, bits),
                    __funnelshift_r(a.w, b.x, bits));
}

// Reads whole 16 bytes at multiples of 16, of which at least one is to be
// copied.
extern "C" __global__ void copy(char *to, const char *from, u64 bytes) {
  const u64 at = PLACE(to), first = (u64)to, end = first + bytes;
  if (at >= first && at + 16 <= end) {
    const u64 read = (u64)from + (at - first);
    const uint4 *words = (const uint4 *)(read & ~15ull);
    const unsigned s = read & 15;
    *(uint4 *)at = s ? shifted(words[0], words[1], s) : words[0];
  } else if (at + 16 > first && at < end) {
    for (u64 i = at < first ? first : at; i < at + 16 && i < end; i++)
      *(char *)i = from[i - first];
  }
}
#endif

#ifdef FROM
#if 8 % FROM
#define FILL FROM
#else
#define FILL 1
#endif
#endif

#if FILL == 1
#ifdef FROM
extern "C" __global__ void fill(char *to, const unsigned char *from,
                                u64 bytes) {
  u64 value = 0;
  for (int i = 0; i < 8; i++)
    value |= (u64)from[i % FROM] << 8 * i;
#else
// `value` is eight bytes, again and again from the first byte on.
extern "C" __global__ void fill(char *to, u64 value, u64 bytes) {
#endif
  const u64 at = PLACE(to), first = (u64)to, end = first + bytes;
  if (at >= first && at + 16 <= end) {
    const unsigned bits = 8 * ((at - first) % 8);
    const u64 word = bits ? value >> bits | value << (64 - bits) : value;
    *(ulonglong2 *)at = make_ulonglong2(word, word);
  } else if (at + 16 > first && at < end) {
    for (u64 i = at < first ? first : at; i < at + 16 && i < end; i++)
      *(char *)i = (char)(value >> 8 * ((i - first) % 8));
  }
}
#endif

#if FILL > 1
#if FILL % 4
typedef unsigned char part;
#else
typedef unsigned part;
#endif
enum { PARTS = FILL / sizeof(part), EACH = 16 / sizeof(part) };
struct element { part at[PARTS]; };

// A thread writes 16 bytes, wherever they begin.
#ifdef FROM
extern "C" __global__ void fill(char *to, const element *from, u64 bytes) {
  const element value = *from;
#else
extern "C" __global__ void fill(char *to, element value, u64 bytes) {
#endif
  const u64 i = 16 * ((u64)blockIdx.x * blockDim.x + threadIdx.x);
  const unsigned first = i / sizeof(part) % PARTS;
  if (i + 16 <= bytes && (u64)to % sizeof(part) == 0) {
    for (unsigned k = 0; k < EACH; k++)
      ((part *)(to + i))[k] = value.at[(first + k) % PARTS];
  } else {
    for (u64 c = i; c < i + 16 && c < bytes; c++)
      to[c] = (char)(value.at[c / sizeof(part) % PARTS] >>
                     8 * (c % sizeof(part)));
  }
}
#endif
