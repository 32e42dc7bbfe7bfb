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

/* Not static where a compiler warns of unused static functions. */
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
   that normals are the same bits everywhere.  Minimax polynomials, their
   coefficients in decimal: hexadecimal ones would need C++17. */
CGL_RANDOM float cgl_ln(float u) {
  const int bits = __float_as_int(u) - 0x3f3504f3; /* the root of 1/2 */
  const float e = (float)(bits >> 23);
  const float t = __int_as_float((bits & 0x7fffff) + 0x3f3504f3) - 1.f;
  const float z = t * t;
  float p = -0.0763446391f;
  p = fmaf(p, t, 0.127654716f);
  p = fmaf(p, t, -0.13161993f);
  p = fmaf(p, t, 0.142013624f);
  p = fmaf(p, t, -0.166231453f);
  p = fmaf(p, t, 0.200012356f);
  p = fmaf(p, t, -0.250008255f);
  p = fmaf(p, t, 0.333333313f);
  p = fmaf(e, 0.0017409306f, fmaf(-.5f, z, z * t * p));
  return fmaf(e, 0.69140625f, t + p);
}
CGL_RANDOM double cgl_ln_double(double u) {
  const long long root = 0x3fe6a09e667f3bcdll;
  const long long bits = __double_as_longlong(u) - root;
  const double e = (double)(int)(bits >> 52);
  const double t = __longlong_as_double((bits & 0xfffffffffffffll) + root) - 1.;
  const double s = t / (2. + t), z = s * s, h = .5 * t * t;
  double p = 0.1479906635613752;
  p = fma(p, z, 0.1531375574002551);
  p = fma(p, z, 0.1818357516594204);
  p = fma(p, z, 0.22222198378477342);
  p = fma(p, z, 0.28571428744141264);
  p = fma(p, z, 0.3999999999940749);
  p = fma(p, z, 0.6666666666666735);
  /* ln(1 + t) = t - (h - s (h + z p)) */
  p = fma(s, fma(z, p, h), e * 1.8206359985041462e-09);
  p = fma(-.5 * t, t, p); /* -h, written so that nothing is left to fuse */
  return fma(e, 0.6931471787393093, t + p);
}
CGL_RANDOM float2 cgl_turn(float f) {
  const float z = f * f;
  float s = 41.4875793f, c = 59.2459755f;
  s = fmaf(s, z, -76.6983795f);
  s = fmaf(s, z, 81.6052094f);
  s = fmaf(s, z, -41.3417015f);
  s = fmaf(f, 6.28318548f, f * fmaf(s, z, -1.74845553e-07f));
  c = fmaf(c, z, -85.4437408f);
  c = fmaf(c, z, 64.9393234f);
  c = fmaf(c, z, -19.7392082f);
  return make_float2(fmaf(c, z, 1.f), s);
}
CGL_RANDOM double2 cgl_turn_double(double f) {
  const double z = f * f;
  double s = -0.7116988796881173, c = -1.6970200771667352;
  s = fma(s, z, 3.8197917987518952);
  s = fma(s, z, -15.094640489595728);
  s = fma(s, z, 42.058693930003514);
  s = fma(s, z, -76.70585975300453);
  s = fma(s, z, 81.60524927607496);
  s = fma(s, z, -41.34170224039976);
  s = fma(f, 6.283185307179586, f * fma(s, z, 2.4492935982947064e-16));
  c = fma(c, z, 7.903101637926033);
  c = fma(c, z, -26.426251140429926);
  c = fma(c, z, 60.244641331611696);
  c = fma(c, z, -85.45681720654005);
  c = fma(c, z, 64.93939402266801);
  c = fma(c, z, -19.739208802178716);
  return make_double2(fma(c, z, 1.), s);
}

/* Box and Muller's pair.  The radius takes its uniform from (0, 1], half a
   last place added, so that the tails go as far as 32 (53) bits do; the angle
   is a number of quarter turns, 0 to 4, and at most an eighth. */
CGL_RANDOM float2 cgl_normal_pair(unsigned x, unsigned y) {
  const float u = fmaf((float)x, 2.32830644e-10f, 1.16415322e-10f);
  const float r = sqrtf(-2.f * cgl_ln(u));
  const int bits = (int)(y >> 8), quarter = (bits + 0x200000) >> 22;
  const float2 a = cgl_turn((float)(bits - (quarter << 22)) * 5.96046448e-08f);
  const float c = quarter & 1 ? a.y : a.x, s = quarter & 1 ? a.x : a.y;
  return make_float2((quarter + 1) & 2 ? -r * c : r * c,
                     quarter & 2 ? -r * s : r * s);
}
CGL_RANDOM double2 cgl_normal_pair_double(uint4 v) {
  const unsigned long long x = ((unsigned long long)v.y << 32 | v.x) >> 11;
  const long long y = (long long)(((unsigned long long)v.w << 32 | v.z) >> 11);
  const double u =
      fma((double)x, 1.1102230246251565e-16, 5.551115123125783e-17);
  const double r = sqrt(-2. * cgl_ln_double(u));
  const long long quarter = (y + (1ll << 50)) >> 51;
  const double2 a =
      cgl_turn_double((double)(y - (quarter << 51)) * 1.1102230246251565e-16);
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
