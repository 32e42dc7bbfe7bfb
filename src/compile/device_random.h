/* Random numbers for kernels: Philox4x32-10 (Salmon, Moraes, Dror and Shaw,
   "Parallel random numbers: as easy as 1, 2, 3").  This text stands in front
   of every source that names cgl_philox, for both compilers.
   Idea: a block of four words is a function of a key, the generator's seed,
   and a counter: the number of the operation that draws (64 bits) and a
   position inside it (64 bits).  So nothing is carried from thread to thread
   and no result depends on a grid or a device.
   In a kernel of the script's the position is the number of the thread in
   the grid (40 bits) and of the draw in the thread (24 bits); a fill's is the
   index of the value, an attempt's number in the topmost eight bits.
   Random123's own header is not used: it is a hundred times this text, and
   wants headers of C that neither compiler is given. */
struct cgl_philox {
  const unsigned long long *state; /* seed and offset; null: read already */
  unsigned long long operation;    /* relative to the offset until then */
  unsigned long long position;
  unsigned long long seed;
};

#define CGL_RANDOM static __device__ __forceinline__

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

/* Box and Muller.  The radius takes its uniform from (0, 1], a half of the
   last place added, so that the logarithm is finite and the tails go as far
   as 32 (53) bits do. */
CGL_RANDOM float2 cgl_normal_pair(unsigned x, unsigned y) {
  const float u =
      fmaf((float)x, 2.3283064365386963e-10f, 1.16415321826934814453125e-10f);
  const float r = sqrtf(-2.f * logf(u));
  float s, c;
  sincospif(2.f * cgl_unit(y), &s, &c);
  return make_float2(r * c, r * s);
}
CGL_RANDOM double2 cgl_normal_pair_double(uint4 v) {
  const double u = fma(cgl_unit_double(v.x, v.y), 1., 5.5511151231257827e-17);
  const double r = sqrt(-2. * log(u));
  double s, c;
  sincospi(2. * cgl_unit_double(v.z, v.w), &s, &c);
  return make_double2(r * c, r * s);
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
