/* Random numbers for kernels: Philox4x32-10 (Salmon, Moraes, Dror and Shaw,
   "Parallel random numbers: as easy as 1, 2, 3").  This text stands in front
   of every source that names cgl_philox, for both compilers.
   Idea: a block of four words is a function of a key, the generator's seed,
   and a counter: the number of the operation that draws (64 bits) and a
   position inside it (64 bits).  So nothing is carried from thread to thread
   and no result depends on a grid or a device.  In a kernel of the script's
   the position is the number of the thread in the grid (40 bits) and of the
   draw in the thread (24 bits); a fill's is the index of the value, an
   attempt's number in the topmost eight bits.
   Random123's own header is not used: it includes <iostream>, <algorithm> and
   the compiler's intrinsics, which neither compiler is given here. */
struct cgl_philox {
  const unsigned long long *state; /* seed and offset; null: read already */
  unsigned long long operation;    /* relative to the offset until then */
  unsigned long long position;
  unsigned long long seed;
};

/* Not static where a compiler warns of static functions nobody calls. */
#ifdef __CUDACC_RTC__
#define CGL_RANDOM __device__ __forceinline__
#else
#define CGL_RANDOM static __device__ __forceinline__
#endif

#define CGL_PHILOX_ROUND(i)                               \
  {                                                       \
    const unsigned long long p = 0xd2511f53ull * x;       \
    const unsigned long long q = 0xcd9e8d57ull * z;       \
    x = (unsigned)(q >> 32) ^ y ^ (k0 + (i)*0x9e3779b9u); \
    z = (unsigned)(p >> 32) ^ w ^ (k1 + (i)*0xbb67ae85u); \
    y = (unsigned)q;                                      \
    w = (unsigned)p;                                      \
  }

CGL_RANDOM uint4 cgl_philox4x32(unsigned long long position,
                                unsigned long long operation,
                                unsigned long long seed) {
  const unsigned k0 = (unsigned)seed, k1 = (unsigned)(seed >> 32);
  unsigned x = (unsigned)position, y = (unsigned)(position >> 32);
  unsigned z = (unsigned)operation, w = (unsigned)(operation >> 32);
  CGL_PHILOX_ROUND(0)
  CGL_PHILOX_ROUND(1)
  CGL_PHILOX_ROUND(2)
  CGL_PHILOX_ROUND(3)
  CGL_PHILOX_ROUND(4)
  CGL_PHILOX_ROUND(5)
  CGL_PHILOX_ROUND(6)
  CGL_PHILOX_ROUND(7)
  CGL_PHILOX_ROUND(8)
  CGL_PHILOX_ROUND(9)
  return make_uint4(x, y, z, w);
}

/* [0, 1): 24 and 53 bits, exactly. */
CGL_RANDOM float cgl_unit(unsigned x) {
  return (float)(x >> 8) * 5.9604644775390625e-8f;
}
CGL_RANDOM double cgl_unit_double(unsigned x, unsigned y) {
  const unsigned long long bits = ((unsigned long long)y << 32 | x) >> 11;
  return (double)bits * 1.1102230246251565e-16;
}

/* Natural logarithm of a normal number up to 1, sine and cosine of f turns,
   |f| <= 1/8.  Of our own, from operations that every device rounds alike, so
   that normals are the same bits everywhere; minimax polynomials. */
CGL_RANDOM float cgl_ln(float u) {
  const int bits = __float_as_int(u) - 0x3f3504f3; /* the root of 1/2 */
  const float e = (float)(bits >> 23);
  const float t = __int_as_float((bits & 0x7fffff) + 0x3f3504f3) - 1.f;
  const float z = t * t;
  float p = -0x1.38b528p-4f;
  p = fmaf(p, t, 0x1.056fd6p-3f);
  p = fmaf(p, t, -0x1.0d8ec0p-3f);
  p = fmaf(p, t, 0x1.22d80ap-3f);
  p = fmaf(p, t, -0x1.547128p-3f);
  p = fmaf(p, t, 0x1.99a014p-3f);
  p = fmaf(p, t, -0x1.00022ap-2f);
  p = fmaf(p, t, 0x1.555554p-2f);
  p = fmaf(e, 0x1.c85fe0p-10f, fmaf(-.5f, z, z * t * p));
  return fmaf(e, 0x1.62p-1f, t + p);
}
CGL_RANDOM double cgl_ln_double(double u) {
  const long long root = 0x3fe6a09e667f3bcdll;
  const long long bits = __double_as_longlong(u) - root;
  const double e = (double)(int)(bits >> 52);
  const double t = __longlong_as_double((bits & 0xfffffffffffffll) + root) - 1.;
  const double s = t / (2. + t), z = s * s, h = .5 * t * t;
  double p = 0x1.2f15baa0e024ep-3;
  p = fma(p, z, 0x1.39a02f06965c6p-3);
  p = fma(p, z, 0x1.74664d74f75fep-3);
  p = fma(p, z, 0x1.c71c51c676770p-3);
  p = fma(p, z, 0x1.249249423e453p-2);
  p = fma(p, z, 0x1.999999997f8a8p-2);
  p = fma(p, z, 0x1.5555555555593p-1);
  /* ln(1 + t) = t - (h - s (h + z p)) */
  p = fma(s, fma(z, p, h), e * 0x1.f473de6af278fp-30);
  p = fma(-.5 * t, t, p); /* -h, written so that nothing is left to fuse */
  return fma(e, 0x1.62e42fep-1, t + p);
}
CGL_RANDOM float2 cgl_turn(float f) {
  const float z = f * f;
  float s = 0x1.4be690p+5f, c = 0x1.d9f7c2p+5f;
  s = fmaf(s, z, -0x1.32cb24p+6f);
  s = fmaf(s, z, 0x1.466bbcp+6f);
  s = fmaf(s, z, -0x1.4abbcep+5f);
  s = fmaf(f, 0x1.921fb6p+2f, f * fmaf(s, z, -0x1.777a5cp-23f));
  c = fmaf(c, z, -0x1.55c664p+6f);
  c = fmaf(c, z, 0x1.03c1dep+6f);
  c = fmaf(c, z, -0x1.3bd3ccp+4f);
  return make_float2(fmaf(c, z, 1.f), s);
}
CGL_RANDOM double2 cgl_turn_double(double f) {
  const double z = f * f;
  double s = -0x1.6c63cba9b8799p-1, c = -0x1.b26fe86416267p+0;
  s = fma(s, z, 0x1.e8eef00a958e4p+1);
  s = fma(s, z, -0x1.e3074b7df61d5p+3);
  s = fma(s, z, 0x1.50783485eeb5ep+5);
  s = fma(s, z, -0x1.32d2cce62ade5p+6);
  s = fma(s, z, 0x1.466bc6775aadbp+6);
  s = fma(s, z, -0x1.4abbce625be53p+5);
  s = fma(f, 0x1.921fb54442d18p+2, f * fma(s, z, 0x1.1a62633145c07p-52));
  c = fma(c, z, 0x1.f9cc6acff6ce6p+2);
  c = fma(c, z, -0x1.a6d1ecb74077cp+4);
  c = fma(c, z, 0x1.e1f50683b42d5p+5);
  c = fma(c, z, -0x1.55d3c7e3c95bcp+6);
  c = fma(c, z, 0x1.03c1f081b5ab0p+6);
  c = fma(c, z, -0x1.3bd3cc9be45dep+4);
  return make_double2(fma(c, z, 1.), s);
}

/* Box and Muller's pair.  The radius takes its uniform from (0, 1], half a
   last place added, so that the tails go as far as 32 (53) bits do; the angle
   is a number of quarter turns, 0 to 4, and at most an eighth. */
CGL_RANDOM float2 cgl_normal_pair(unsigned x, unsigned y) {
  const float u = fmaf((float)x, 0x1p-32f, 0x1p-33f);
  const float r = sqrtf(-2.f * cgl_ln(u));
  const int bits = (int)(y >> 8), quarter = (bits + 0x200000) >> 22;
  const float2 a = cgl_turn((float)(bits - (quarter << 22)) * 0x1p-24f);
  const float c = quarter & 1 ? a.y : a.x, s = quarter & 1 ? a.x : a.y;
  return make_float2((quarter + 1) & 2 ? -r * c : r * c,
                     quarter & 2 ? -r * s : r * s);
}
CGL_RANDOM double2 cgl_normal_pair_double(uint4 v) {
  const unsigned long long x = ((unsigned long long)v.y << 32 | v.x) >> 11;
  const long long y = (long long)(((unsigned long long)v.w << 32 | v.z) >> 11);
  const double u = fma((double)x, 0x1p-53, 0x1p-54);
  const double r = sqrt(-2. * cgl_ln_double(u));
  const long long quarter = (y + (1ll << 50)) >> 51;
  const double2 a = cgl_turn_double((double)(y - (quarter << 51)) * 0x1p-53);
  const double c = quarter & 1 ? a.y : a.x, s = quarter & 1 ? a.x : a.y;
  return make_double2((quarter + 1) & 2 ? -r * c : r * c,
                      quarter & 2 ? -r * s : r * s);
}

/* ---- what a kernel calls ---- */

CGL_RANDOM uint4 cgl_random4(cgl_philox &rng) {
  if (rng.state) {
    const unsigned long long block =
        blockIdx.x +
        (unsigned long long)gridDim.x *
            (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z);
    const unsigned thread =
        threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
    rng.position = (block * threads + thread) << 24;
    rng.seed = rng.state[0];
    rng.operation += rng.state[1];
    rng.state = 0;
  }
  return cgl_philox4x32(rng.position++, rng.operation, rng.seed);
}
CGL_RANDOM unsigned cgl_random(cgl_philox &rng) {
  return cgl_random4(rng).x;
}
CGL_RANDOM float cgl_uniform(cgl_philox &rng) {
  return cgl_unit(cgl_random4(rng).x);
}
CGL_RANDOM float4 cgl_uniform4(cgl_philox &rng) {
  const uint4 v = cgl_random4(rng);
  return make_float4(cgl_unit(v.x), cgl_unit(v.y), cgl_unit(v.z),
                     cgl_unit(v.w));
}
CGL_RANDOM double cgl_uniform_double(cgl_philox &rng) {
  const uint4 v = cgl_random4(rng);
  return cgl_unit_double(v.x, v.y);
}
CGL_RANDOM float cgl_normal(cgl_philox &rng) {
  const uint4 v = cgl_random4(rng);
  return cgl_normal_pair(v.x, v.y).x;
}
CGL_RANDOM float4 cgl_normal4(cgl_philox &rng) {
  const uint4 v = cgl_random4(rng);
  const float2 a = cgl_normal_pair(v.x, v.y), b = cgl_normal_pair(v.z, v.w);
  return make_float4(a.x, a.y, b.x, b.y);
}
CGL_RANDOM double cgl_normal_double(cgl_philox &rng) {
  return cgl_normal_pair_double(cgl_random4(rng)).x;
}
/* Each of 0 .. n - 1 alike; 0 for 2^32.  Lemire's method: the words that
   would favour some values are thrown away. */
CGL_RANDOM unsigned cgl_below(cgl_philox &rng, unsigned n) {
  const uint4 v = cgl_random4(rng);
  if (!n)
    return v.x;
  unsigned long long m = (unsigned long long)v.x * n;
  if ((unsigned)m < n) {
    const unsigned rejected = -n % n;
    while ((unsigned)m < rejected)
      m = (unsigned long long)cgl_random4(rng).x * n;
  }
  return (unsigned)(m >> 32);
}
