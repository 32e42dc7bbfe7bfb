-- Functions that synchronize, and what is called by a macro's name, on the host device:
-- in loops they do what they do in fibers.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("functions that synchronize", function()
    pending "as loops are the host device's"
  end)
end


local prelude = [[
#define at(i, j) at[(i) * 4 + (j)]
#define N 64
__shared__ unsigned s[256];
__device__ unsigned folded(unsigned v, unsigned by = 16, unsigned width = 32) {
  return v + __shfl_down_sync(~0u, v, by, width);
}
template <class T> __device__ T turned(T v, int by = 1, T more = T(3)) {
  return __shfl_xor_sync(~0u, v, by) + more;
}
__device__ void prefix(unsigned &v, unsigned part[N], const unsigned table[2]) {
  part[threadIdx.x] = v;
  __syncthreads();
  v += part[0] + table[1];
  __syncthreads();
}
__device__ void placed(unsigned t[][17], unsigned v) {
  t[threadIdx.x & 3][threadIdx.x / 4] = v;
  __syncthreads();
}
__device__ unsigned row(const unsigned (*t)[17], unsigned (&u)[4][17], int k) {
  unsigned v = t[threadIdx.x & 3][(k + threadIdx.x) & 7];
  __syncthreads();
  u[threadIdx.x & 3][threadIdx.x / 4] += v;
  placed(u, u[threadIdx.x & 3][threadIdx.x / 4] + 1u);
  return v;
}
__device__ unsigned early(unsigned v, unsigned f) {
  if (f > 5u) return v;
  v += __shfl_xor_sync(~0u, v, 1);
  if (f == 2u) { v++; return v * 2u; } else if (f == 3u) return v * 3u;
  __syncthreads();
  if (v & 1u) { return v; } else { v /= 2u; }
  return v + 1u;
}
__device__ void leave(unsigned &v, unsigned f) {
  if (f == 3u) return;
  v += 5u;
  __syncthreads();
  if (f == 2u) { v++; return; }
  if (f == 1u) { v += 2u; } else { __syncthreads(); v += s[0]; return; }
  v *= 3u;
}
__device__ unsigned scoped(unsigned x, unsigned f) {
  unsigned k = x;
  if (f > 5u) { return 0u; } else { unsigned k = 5u; f += k; }
  __syncthreads();
  if (f == 7u) return k += 3u, k * 2u;
  return k + f;
}
__device__ void advance(const unsigned *&p) { p += 4; }
template <class T> struct four { typedef uint4 Type; };
template <class T> __device__ typename four<T>::Type tiled(typename four<T>::Type v, int n) {
  typename four<T>::Type sum = {0, 0, 0, 0};
  for (int k = 0; k < n; k++) {
    s[threadIdx.x] = v.x + k;
    __syncthreads();
    sum.y += s[threadIdx.x ^ 1];
    __syncthreads();
  }
  return sum;
}
template <class T> __device__ T either(T v, bool which) {
  if (which) return v + T(1);
  else { return __shfl_xor_sync(~0u, v, 2); }
}
__device__ unsigned summed(unsigned v) {
  for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
  return v;
}
__device__ unsigned plain(unsigned v) { return v * 3u; }
typedef unsigned (*one)(unsigned);
template <one F> __device__ unsigned by(unsigned v, bool more) {
  return F(v) + (more ? 1u : 0u);
}
template <one F> __device__ unsigned by(unsigned v) { return by<F>(v, false) + 2u; }
template <one F = summed> __device__ unsigned usual(unsigned v) { return F(v) + 1u; }
template <unsigned (*F)(unsigned), bool TWICE> __device__ unsigned told(unsigned v) {
  __syncthreads();
  if (TWICE) v = F(v) + (v & 1u);
  return F(v);
}
template <unsigned W, int K> __device__ unsigned sized(unsigned v) {
  const unsigned room[W / 8] = {v, 2u};
  __syncthreads();
  return __shfl_xor_sync(~0u, room[0], W / 4, W) - K + (unsigned)((K - 5) / 2 > 0);
}
struct pair { unsigned a[2]; };
struct own { unsigned a; own *me; __device__ own(unsigned v) : a(v), me(this) {} };
struct rows {
  unsigned a[4], *at;
  __device__ rows() { at = a; for (int k = 0; k < 4; k++) a[k] = threadIdx.x + k; }
};
struct usual_own { unsigned a = 5, *p = &a; };
struct both { int n; rows r; };
union bits { own a; unsigned long long u; __device__ bits(unsigned k) : a(k) {} };
struct refers { unsigned &r; __device__ refers(unsigned &z) : r(z) {}
  __device__ void add(unsigned q) const { r += q; } };
struct plainly { unsigned &r; };
struct writes { unsigned a; __device__ writes(unsigned q, unsigned &z) : a(q) { z += q; } };
struct points { unsigned *r; __device__ void set(unsigned &z) { r = &z; } };
__device__ unsigned *place(unsigned &z) { return &z; }
__device__ points points_of(unsigned &z) { points k; k.r = &z; return k; }
template <class T> __device__ T &same(T &z) { return z; }
__device__ unsigned listed(unsigned k) {
  own w[2] = {k, 3u};
  __syncthreads();
  w[0].a += k;
  __syncthreads();
  return w[0].me->a;
}
struct wide { unsigned a, b, c, d, e; };
__device__ void bump(unsigned *p) { p[1] += 2u; }
__device__ unsigned twice(unsigned x) { x = x * 2u; __syncthreads(); x = x + 1u; return x; }
__device__ unsigned crowd(unsigned x0, unsigned x1, unsigned x2, unsigned &x3, unsigned x4,
  unsigned x5, unsigned x6, unsigned x7, unsigned x8, unsigned x9, unsigned x10, unsigned
  x11, unsigned x12, unsigned x13, unsigned x14, unsigned x15, unsigned x16, unsigned x17,
  unsigned x18, unsigned x19, unsigned x20, unsigned x21, unsigned x22, unsigned x23,
  unsigned x24, unsigned x25, unsigned x26, unsigned x27);
template <class T> struct less { static __device__ bool cmp(T a, T b) { return a < b; } };
template <class T, class U> struct duo {
  T a;
  U b;
  static __device__ bool cmp(T a, T b) { return a > b + U(1); }
};
template <class T, class C> __device__ T swapped(T v, int d, bool up) {
  T o = __shfl_xor_sync(~0u, v, d);
  return C::cmp(v, o) == up ? o : v;
}
template <class T, class C = less<T>> __device__ T sorted(T v) {
  v = swapped<T, C>(v, 1, threadIdx.x & 1);
  return v;
}
template <class T> __device__ bool positive(T v) { v = sorted<T, less<T>>(v); return v > 0; }
template <class A, class B = duo<A, int>, int W = sizeof(B) / 4> __device__ unsigned kept(A v) {
  unsigned a[W] = {};
  B b;
  b.a = v;
  __syncthreads();
  a[W - 1] = b.a;
  return a[v % W] + __shfl_xor_sync(~0u, v, 1);
}
template <class T> struct sum { static __device__ T op(T a, T b) { return a + b; } };
namespace far { template <class T, int K = 2> struct highest {
  static __device__ T pick(T a, T b) { return (a > b ? a : b) + K; }
}; }
template <class T> struct placed_sum {
  static __device__ T op(T a, T b) { return a + b * threadIdx.x; }
};
template <template <class> class F, class T> __device__ T combined(T v) {
  for (int d = 16; d; d >>= 1) v = F<T>::op(v, __shfl_xor_sync(~0u, v, d));
  return v;
}
template <class T, template <class, int> typename F = far::highest, int K = 3>
__device__ T more(T v) {
  __syncthreads();
  return F<T, K>::pick(v, __shfl_xor_sync(~0u, v, 1));
}
template <template <class> class F> __device__ unsigned outer(unsigned v) {
  __syncthreads();
  return combined<F, unsigned>(v) + 1u;
}
enum mode { FIRST, SECOND, LAST = 7 };
enum class kind : unsigned char { FEW, MANY };
typedef enum { OLD, OLDER } age;
namespace deep {
  enum level { LOW, HIGH };
  enum class spot { HERE, THERE };
  constexpr int WIDE = 3;
}
const int most = 512;
constexpr int least(int a, int b) { return a < b ? a : b; }
const int many = least(most, 256);
template <mode M> __device__ unsigned chosen(unsigned v) {
  if (M == FIRST) { __syncthreads(); v += 3u; } else v = __shfl_xor_sync(~0u, v, 1) * M;
  return v;
}
template <kind K, mode M = SECOND> __device__ unsigned picked(unsigned v) {
  if (K == kind::FEW && M != LAST) { __syncthreads(); v += 5u; }
  return chosen<M>(v);
}
template <age A> __device__ unsigned aged(unsigned v) {
  if (A == OLD) { __syncthreads(); v += 7u; }
  return v;
}
template <deep::level L, deep::spot P> __device__ unsigned placed(unsigned v) {
  if (L == deep::LOW) { __syncthreads(); v += 9u; }
  if (P == deep::spot::THERE) { __syncthreads(); v *= 3u; }
  return v;
}
template <unsigned B> __device__ unsigned reduced(unsigned v) {
  if (B >= 512) { v += __shfl_xor_sync(~0u, v, 2); __syncthreads(); }
  if (B >= 256) { __syncthreads(); v += __shfl_xor_sync(~0u, v, 4); }
  return v ^ B;
}
template <long L> __device__ unsigned strided(unsigned v) {
  for (int i = threadIdx.x; i < 64; i += L) v += i * 3;
  __syncthreads();
  for (unsigned i = threadIdx.x + L; i < 64; i += blockDim.x * L) v ^= i;
  int at = threadIdx.x + L;
  __syncthreads();
  return v + at;
}
template <auto L> __device__ unsigned any(unsigned v) {
  if (L > 3) { __syncthreads(); v += 1u; }
  return v + L;
}
]]

local behind = [[

__device__ unsigned crowd(unsigned x0, unsigned x1, unsigned x2, unsigned &x3, unsigned x4,
  unsigned x5, unsigned x6, unsigned x7, unsigned x8, unsigned x9, unsigned x10, unsigned
  x11, unsigned x12, unsigned x13, unsigned x14, unsigned x15, unsigned x16, unsigned x17,
  unsigned x18, unsigned x19, unsigned x20, unsigned x21, unsigned x22, unsigned x23,
  unsigned x24, unsigned x25, unsigned x26, unsigned x27) {
  __syncthreads();
  x3 += __shfl_xor_sync(~0u, x27, 1);
  return x0 * 1u + x1 * 2u + x2 * 3u + x3 * 4u + x4 * 5u + x5 * 6u + x6 * 7u + x7 * 8u +
    x8 * 9u + x9 * 10u + x10 * 11u + x11 * 12u + x12 * 13u + x13 * 14u + x14 * 15u + x15
    * 16u + x16 * 17u + x17 * 18u + x18 * 19u + x19 * 20u + x20 * 21u + x21 * 22u + x22
    * 23u + x23 * 24u + x24 * 25u + x25 * 26u + x26 * 27u + x27 * 28u;
}
]]

local bodies = {
  "out[t] = folded(in[t]) + folded(in[t], 4) * 3u + folded(in[t], 2, 8);",
  "out[t] = turned(in[t]) + turned(in[t], 2) + turned<unsigned>(in[t], 4, 5u);",
  "unsigned v = in[t]; const unsigned table[2] = {3, 4}; prefix(v, s, table); "
    .. "out[t] = v;",
  "unsigned q = twice(t), r = twice(q + f); unsigned v = twice(f); if (v > 2u) __syncthreads(); "
    .. "out[t] = q + r * 3u + v;",
  "s[t] = in[t] & 63u; __syncthreads(); out[t] = early(in[t], f);",
  "s[t] = 7u; unsigned v = in[t]; leave(v, f); out[t] = v + either(v, f > 2u);",
  "out[t] = scoped(t + 100, f);",
  "const unsigned *p = in; __syncthreads(); if (t & 1) advance(p); __syncthreads(); out[t] = *p;",
  "typename four<int>::Type v = {in[t], f, 2, 3}, w = tiled<int>(v, f + 1); out[t] = w.y + v.y;",
  "unsigned v = in[t]; if (summed(v) % 3u == f) v += 3u; else v--; out[t] = v;",
  "unsigned v = in[t]; for (int k = 0; k < 3; k++) if (summed(v) & 1u && k != f) v ^= k + 1; "
    .. "out[t] = v;",
  "out[t] = by<summed>(in[t]) + by<plain>(in[t]); out[t] += by<&summed>(t, f > 2u);",
  "out[t] = usual(in[t]) + usual<plain>(t); out[t] ^= told<summed, true>(t);",
  "out[t] = told<plain, false>(in[t]); out[t] += told<&summed, false>(t);",
  "out[t] = sized<16, -3>(in[t]); out[t] += sized<8 * 4, N / 16>(t) * 5u;",
  "out[t] = told<summed, true>(t) + told<plain, false>(in[t]) * 3u;",
  "unsigned a = told<plain, false>(t), b = folded(told<plain, true>(a), 4, 8); bool c = a < f, "
    .. "d = b > (f); __syncthreads(); out[t] = (a ^ b) + c + d + turned(sized<16, -3>(b), 2);",
  "pair v{{t, f}}; unsigned *p = v.a; __syncthreads(); p[1] += 2u; __syncthreads(); bump(v.a); "
    .. "out[t] = v.a[1] + v.a[0];",
  "wide v{in[t], 2u, f, 4u, 5u}; unsigned *p = &v.b; __syncthreads(); *p += t; __syncthreads(); "
    .. "out[t] = v.a + v.b * v.c;",
  -- numbers of a template that have names
  "out[t] = chosen<FIRST>(in[t]) + chosen<SECOND>(t) * 3u + chosen<LAST>(f) + chosen<(mode)0>(t);",
  "out[t] = picked<kind::FEW>(in[t]) ^ picked<kind::MANY, FIRST>(t); out[t] += "
    .. "picked<kind::FEW, LAST>(f) + aged<OLD>(t) * 3u + aged<OLDER>(f);",
  "out[t] = placed<deep::LOW, deep::spot::HERE>(in[t]) + "
    .. "placed<deep::HIGH, deep::spot::THERE>(t);",
  "out[t] = reduced<many>(in[t]); out[t] += reduced<most>(t); out[t] ^= "
    .. "reduced<least(most, 300)>(t); out[t] *= reduced<many / 2>(f) + "
    .. "reduced<deep::WIDE * 99>(t);",
  "out[t] = strided<most / 32>(in[t]) + strided<deep::WIDE>(t) * 3u + "
    .. "strided<least(most, 2)>(f);",
  "const int m = least(many, 256); unsigned v = reduced<m>(in[t]); constexpr int q = least(m, 6); "
    .. "out[t] = v + strided<q>(t) * 3u + any<4>(t) + any<many>(f) * 5u + "
    .. "any<LAST>(t) * any<2u>(f);",
  -- templates as arguments of templates
  "out[t] = positive(in[t]) + positive((int)in[t]) * 2u;",
  "out[t] = sorted(in[t]) + sorted<unsigned>(t); out[t] += "
    .. "sorted<unsigned, duo<unsigned, int>>(in[t] % 8u) * 3u;",
  "out[t] = kept<unsigned>(in[t]); out[t] ^= kept<unsigned, duo<unsigned, duo<unsigned, int>>>(t);",
  "out[t] = combined<sum, unsigned>(in[t]) + outer<placed_sum>(t) * 3u; out[t] ^= outer<sum>(f);",
  "out[t] = more(in[t]) + more<unsigned, far::highest>(t) * 3u; out[t] += "
    .. "more<unsigned, far::highest, 9>(f);",
  -- as many parameters as there are, of a function behind the kernels
  "unsigned z = f; const unsigned v = crowd(t + 0, t + 1, t + 2, z, t + 4, t + 5, t + "
    .. "6, t + 7, t + 8, t + 9, t + 10, t + 11, t + 12, t + 13, t + 14, t + 15, t + 16, t + "
    .. "17, t + 18, t + 19, t + 20, t + 21, t + 22, t + 23, t + 24, t + 25, t + 26, in[t]); "
    .. "out[t] = v ^ z;",
  -- how many there are
  "constexpr unsigned table[4] = {3, 1, 4, 1}; constexpr int W = sizeof(table) / sizeof(table[0]); "
    .. "unsigned a[W]; for (int k = 0; k < W; k++) a[k] = table[k] * t; __syncthreads(); "
    .. "out[t] = a[f % W];",
  "const unsigned table[3] = {3, 1, 4}; const int W = sizeof(table) / sizeof(*table); "
    .. "__shared__ unsigned own[64]; constexpr auto V = sizeof(own) / sizeof(own[0]) / 16; "
    .. "unsigned a[W + V]; own[t] = in[t]; for (int k = 0; k < W + V; k++) "
    .. "a[k] = table[k % W] * t; __syncthreads(); out[t] = a[f % (W + V)] + own[t ^ 1];",
  "unsigned own[4] = {f, 1, 2, 3}, two[sizeof(own) / sizeof(*own)][2]; wide w; constexpr int "
    .. "V = sizeof(w) / sizeof(w.a), X = sizeof(own[0]) + sizeof(*out) + sizeof(float4); "
    .. "unsigned a[V + X]; for (int k = 0; k < V + X; k++) a[k] = own[k % 4] * t; two[1][1] = t; "
    .. "__syncthreads(); own[1]++; w.b = t; __syncthreads(); "
    .. "out[t] = a[f % (V + X)] + own[f % V % 4] + two[1][1] + w.b;",
  "for (int q = 0; q < 2; q++) { constexpr int W = least(8, 5) + many / 256; unsigned a[W]; "
    .. "for (int k = 0; k < W; k++) a[k] = k * t + q; __syncthreads(); out[t] += a[f % W]; }",
  "constexpr float v[3] = {0.5f, 1, 2}, z = v[1] * 2; constexpr unsigned y = (unsigned)z; "
    .. "unsigned a[y + 1]; a[0] = t; a[y] = t + y; __syncthreads(); "
    .. "out[t] = a[f % 2 * y] + (unsigned)(z + v[f % 3]);",
  -- conditions, and leaving behind them
  "if (summed(in[t]) % 2u) { out[t] = 1u; return; } out[t] = 2u;",
  "if (summed(in[t]) % 3u < f) return; __syncthreads(); if (summed(t) < f * t) { out[t] = 3u; "
    .. "return; } out[t] = t;",
  "out[t] = t; if (f > 2u && f != 5u && summed(in[t]) % 3u == 0u) return; out[t] += 4u;",
  "for (int k = 0; k < 4; k++) if (k > 1 && summed(in[t] + k) % 5u < f) out[t] += k;",
  "if (t < 32 && f != 3u && __any_sync(~0u, in[t] % 7u == f)) { out[t] = 4u; } out[t] += 1u;",
  "if (f > 1u) { if (f < 6u && twice(f) > 5u && twice(t) > 9u) out[t] = 5u; } else out[t] = 7u;",
  -- rows of shared memory
  "__shared__ unsigned table[4][17]; placed(table, t * f); "
    .. "out[t] = row(table, table, f) + table[t & 3][t / 4 ^ 1];",
  -- a reference to one of many, which others say
  "unsigned l[4] = {}; for (int r = 0; r < f; r++) { __syncthreads(); "
    .. "unsigned &q = l[(r + 1) & 3]; q += in[t] + r; __syncthreads(); } "
    .. "out[t] = l[0] + l[1] * 3u + l[2] * 5u + l[3] * 7u;",
  "unsigned l[4] = {}; for (int r = 0; r < f; r++) { __syncthreads(); "
    .. "const unsigned &q = (l)[min(r, 3)]; l[r & 3] += q + t; __syncthreads(); } "
    .. "out[t] = l[0] + l[1] * 3u + l[2] * 5u + l[3] * 7u;",
  -- classes that point into themselves
  "own v(f), w = own(t); auto u = own(t + 1); own q{f}; __syncthreads(); v.a += 3; w.a += 4; "
    .. "u.a += 5; q.a += 6; __syncthreads(); out[t] = v.me->a + w.me->a * 3 + u.me->a + q.me->a;",
  "rows v; both w; __syncthreads(); v.at[1] += 3u; w.r.at[2] += 5u; "
    .. "__syncthreads(); out[t] = v.a[1] + w.r.a[2];",
  "usual_own v, w[3]; __syncthreads(); v.a += t; w[t % 3].a += 2u; __syncthreads(); "
    .. "out[t] = *v.p + *w[t % 3].p * 3u;",
  "for (int k = 0; k < 3; k++) { own v(t + k); __syncthreads(); v.a += 3; out[t] += v.me->a; }",
  "own v[2] = {t, t + 1u}, w[2][2] = {{t, 2u}, {f, 4u}}, u[] = {own(f), own(t)}; "
    .. "__syncthreads(); v[0].a += t; w[1][0].a++; u[1].a += 2u; __syncthreads(); "
    .. "out[t] = v[0].me->a + v[1].me->a * 3u + w[1][0].me->a * 5u + u[1].me->a; "
    .. "out[t] += listed(t);",
  "usual_own v[2] = {}, w[1]{}; bits q(t), z = 4u; __syncthreads(); v[1].a += t; w[0].a += 2u; "
    .. "q.a.a++; z.a.a += t; __syncthreads(); "
    .. "out[t] = *v[1].p + *w[0].p + q.a.me->a * 3u + z.a.me->a;",
  "for (int k = 0; k < 3; k++) { own v[2] = {t, (unsigned)k}; __syncthreads(); v[0].a++; "
    .. "v[1].a += t; __syncthreads(); out[t] = out[t] * 3u + v[0].me->a * v[1].me->a; }",
  -- what a constructor is given by reference
  "unsigned a = 4, b(4), c = 4, d = f, e = 1; refers v(a); v.r += t; plainly{b}.r += t; "
    .. "{ writes w(t, c); __syncthreads(); } writes w = {t, d}; refers u[2] = {e, e}; u[1].add(t); "
    .. "__syncthreads(); if (a > 9) out[t] = a + b * 3u + c * 5u + d * 7u + e;",
  "unsigned z = 0; for (int k = 0; k < 3; k++) { unsigned y = 1; refers v = y; v.add(t); "
    .. "__syncthreads(); z += y; } out[t] = z;",
  "unsigned a = t, b = t, c = t, d = t, e = t, g = t; refers v(a), w = refers(b); points p; "
    .. "p.set(c); points q = points_of(d); unsigned *r = place(e), &s = ++g; __syncthreads(); "
    .. "v.add(1u); w.add(2u); *p.r += 3u; *q.r += 4u; *r += 5u; s += 6u; __syncthreads(); "
    .. "out[t] = a + b * 3u + c * 5u + d * 7u + e * 9u + g * 11u;",
  "pair v = {{t, f}}; unsigned *p = &same<unsigned>(v.a[1]), *q = place(v.a[0]); __syncthreads(); "
    .. "*p += 3u; *q += 5u; __syncthreads(); out[t] = v.a[0] + v.a[1] * 3u;",
  "const unsigned *at = in; unsigned v = at(1, 2); __syncthreads(); v += at(t % 3, 1) + at[t]; "
    .. "out[t] = v;",
}

local function kernel(name, body)
  return ([[extern "C" __global__ void %s(unsigned *out, const unsigned *in, unsigned f) {
    const int t = threadIdx.x; %s }]]):format(name, body)
end

describe("functions that synchronize", function()
  teardown(device.nothing_alive)

  it("do in loops what they do in fibers", function()
    local text = {}
    for k, body in ipairs(bodies) do text[k] = kernel("k" .. k, body) end
    text = prelude .. table.concat(text, "\n") .. behind
    local modules, input = forms.both(text), forms.numbers(64)
    for k, body in ipairs(bodies) do
      assert.same({ "loops" }, { modules[1]:kernel("k" .. k):form() }, body)
      for f = 0, 7 do
        forms.same(modules, "k" .. k, 1, f % 2 == 0 and 64 or 32, body, 64, input, f)
      end
    end
  end)

  it("do so in kernels of templates", function()
    local text = [[
template <class T> __device__ void add(T &a, const T &b) { a += b; }
template <unsigned D> __device__ void above(unsigned &a, unsigned d) { if (a % 4u > D) a += d; }
template <unsigned D> __device__ void both(unsigned &a) {
  __syncthreads();
  above<D>(a, D);
  __syncthreads();
  above<D + 1>(a, D);
}
template <unsigned D, class T, int E>
__global__ void numbered(unsigned *out, const unsigned *in, T f) {
  __shared__ T s[64];
  T v = E;
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  above<D>(s[threadIdx.x], D);
  __syncthreads();
  add(v, D);
  both<D>(v);
  both<1u>(v);
  out[threadIdx.x] = s[threadIdx.x ^ 5] + v * 3u + (f > D ? D : f);
}
constexpr int least(int a, int b) { return a < b ? a : b; }
template <int D, class T> __global__ void sized(unsigned *out, const unsigned *in, unsigned f) {
  constexpr int W = D / 2, V = least(D, 4), X = sizeof(T) / 2;
  unsigned a[W], b[V], c[X], t = threadIdx.x;
  for (int i = 0; i < W; i++) a[i] = in[t] * i;
  for (int i = 0; i < V; i++) b[i] = i + t;
  for (int i = 0; i < X; i++) c[i] = i - t;
  __syncthreads();
  out[t] = a[f % W] + b[f % V] + c[f % X];
}
]]
    local instances = { "numbered<1U, unsigned, 7>", "numbered<0U, unsigned, -7>",
      "sized<12, double>", "sized<2, float>" }
    local modules = forms.both { source = text, file = "k.cu", line = 1, expressions = instances }
    for _, name in ipairs(instances) do
      assert.same({ "loops" }, { modules[1]:kernel(name):form() }, name)
      for f = 0, 3 do forms.same(modules, name, 1, 64, name, 64, forms.numbers(64), f) end
    end
  end)

  it("change in fibers what only the compiler knows that they change", function()
    local takers = [[
struct U { unsigned a; __device__ U(unsigned &z) { a = z; z += threadIdx.x * 3; } };
struct UT { unsigned a; template <class A> __device__ UT(A &z) { a = 1; z += threadIdx.x; } };
struct O { unsigned v; __device__ unsigned operator[](U u) const { return 2; } };
__device__ void takes(int, U u) {}
struct A {
  unsigned v;
  __device__ A(unsigned k) : v(k) {}
  __device__ A &operator<<(unsigned &k) { k += v; return *this; }
  __device__ operator unsigned() const { return v; }
};
struct C {
  unsigned v;
  __device__ C(unsigned &k) : v(1) { k += 3; }
  __device__ C(const unsigned &k) : v(k) {}
};
struct M { unsigned v; __device__ unsigned operator,(unsigned &k) { return k += v + 1; } };
typedef unsigned &named;
__device__ O operator+(O o, unsigned &z) { z += threadIdx.x; return o; }
__device__ O operator-(O o, U u) { return o; }
__device__ O &operator>>(O &o, unsigned &z) { z = o.v + threadIdx.x; return o; }
]]
    local changing, text = {
      "unsigned a = 3, b = 4; ++(t & 1 ? a : b); __syncthreads(); out[t] = a * 70 + b;",
      "unsigned z = 4, y = 6; U u(y); u = z; __syncthreads(); out[t] = u.a + z;",
      "O o{3}; unsigned z = 4; out[t] = o[z]; __syncthreads(); out[t] += z;",
      "O o{3}; unsigned z = f; o + z; __syncthreads(); out[t] = z;",
      "O o{3}; const unsigned s = in[t]; unsigned z = s + 1; o - z; __syncthreads(); out[t] = z;",
      "O o{3}; unsigned z = 4; o >> z; __syncthreads(); out[t] = z;",
      "unsigned z = t; U u = (U)z; __syncthreads(); out[t] = z;",
      "unsigned z = 4; takes(1, (U)z); __syncthreads(); out[t] = z;",
      "O o{3}; out[t] = o[f]; __syncthreads(); out[t] += f;",
      "unsigned z = 4; UT u(z), w = z; __syncthreads(); out[t] = z + u.a + w.a;",
      "unsigned z = 4; auto g = [&]() -> unsigned & { return z; }; g() += t; __syncthreads(); "
        .. "out[t] = z;",
      "A a(t); unsigned k = f; a << k; __syncthreads(); out[t] = k;",
      "A a(t); unsigned k = t; a << k; __syncthreads(); out[t] = k;",
      "A a(t); unsigned k = t; k = __shfl_xor_sync(~0u, k, 1); a << k; out[t] = k;",
      "unsigned k = f; A(t) << k; __syncthreads(); out[t] = k;",
      "unsigned k = f; if (t & 1) { C c(k); } __syncthreads(); out[t] = k;",
      "M m{(unsigned)t}; unsigned k = f; m, k; __syncthreads(); out[t] = k;",
      "unsigned k = t; decltype((k)) r = k; r += 5; __syncthreads(); out[t] = k;",
      "unsigned k = f; decltype((k)) r = k; r = t; __syncthreads(); out[t] = k;",
      "unsigned k = f; named r = k; r = t; __syncthreads(); if (!(threadIdx.y + "
        .. "threadIdx.z)) out[t] = k;",
      "unsigned w = t, k = 0; named r = w; r = f; k = w; __syncthreads(); out[t] = k + w;",
      "using UR = unsigned &; unsigned k = f; UR r = k; r = t; __syncthreads(); out[t] = "
        .. "k;",
      "out[t] = f; __syncthreads(); out[t] += in[t];",
    }, {}
    for k, body in ipairs(changing) do text[k] = kernel("k" .. k, body) end
    local modules = forms.both(takers .. table.concat(text, "\n"))
    for k, body in ipairs(changing) do
      forms.same(modules, "k" .. k, 1, 64, body, 64, forms.numbers(64), 5)
    end
    local _, why = modules[1]:kernel "k3":form()
    assert.equal("the compiler does not take it as loops", why)
    assert.equal("loops", (modules[1]:kernel("k" .. #changing):form()))
  end)

  it("are fibers where a macro would be expanded once more", function()
    local form, why = forms.module_as(nil, "#define again again\n" .. kernel("k",
      "const unsigned again = f; __syncthreads(); out[t] = again;")):kernel("k"):form()
    assert.same({ "fibers", "'again'" }, { form, why })
  end)

  -- Each gives y[i], with n = 40.
  it("are those that C++ calls", function()
    local sum = "{ T s = 0; for (int i = 0; i < n; i++) s += v%s; return s; }"
    local looped = "template <class T> __device__ T g(T v, int n) " .. sum:format ""
    local place = "int i = blockIdx.x * blockDim.x + threadIdx.x; y[i] = "
    local synced = "template <class T> __device__ T g(T v, int n) { __syncthreads(); return v; }"
    for _, case in ipairs {
      { 5, synced .. "template <> __device__ float g<float>(float v, int n) "
        .. "{ __syncthreads(); return v + 1; }", "y[threadIdx.x] = g(1.f, n) + g<float>(2.f, n);" },
      { 14, looped .. "template <> __device__ float g<float>(float v, int n) { return 7; }",
        place .. "g(1.f, n) + g<float>(2.f, n);" },
      { 49, looped .. "__device__ float g(double v, int n) { return 9; }",
        place .. "g(1.0, n) + g(1.f, n);" },
      { 400, "namespace a { __device__ float w = 5; template <class T> __device__ T g(T v, int n) "
        .. sum:format " * w" .. " } __device__ float w = 1; using a::g;", place .. "g(2.f, n);" },
      { 80, "namespace a { " .. looped .. " } using a::g;", place .. "g(2.f, n);" },
    } do
      for _, form in ipairs { "loops", "fibers" } do
        local y = cg.zeros("float", 64)
        forms.module_as(form, case[2] .. " __global__ void k(float *y, int n) {" .. case[3] .. "}")
          :kernel():launch(1, 64, y, 40)
        assert.same({ case[1], case[1] }, { y:download()[1], y:download()[64] }, case[2])
      end
    end
  end)

  it("and kernels have the text that their template has for them", function()
    for _, case in ipairs {
      { "loop", "y[threadIdx.x] = 2;" },
      { "fibers", "__shared__ float s[64]; s[threadIdx.x] = 2; __syncthreads(); "
        .. "y[threadIdx.x] = s[threadIdx.x ^ 1];" },
    } do
      local module = cg.module { expressions = { "k<float>", "k<int>" }, source = [[
        template <class T> __global__ void k(T *y, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          T sum = 0;
          for (int k = 0; k < n; k++) sum += y[k * 64 + i];
          y[i] = sum + 1;
        }
        template <> __global__ void k<float>(float *y, int n) {]] .. case[2] .. "}" }
      for type, value in pairs { int32 = 1, float = 2 } do
        local k, y = module:kernel(("k<%s>"):format(type:gsub("32", ""))), cg.zeros(type, 128)
        assert.equal(case[1], (k:form()))
        k:launch(1, 64, y, 2)
        assert.same({ value, value, 0 }, { y:download()[1], y:download()[64], y:download()[65] })
      end
    end
  end)

  it("are loops in other namespaces where no name is another there", function()
    local sum = [[{ __shared__ float s[64]; s[threadIdx.x] = v%s; __syncthreads(); float r = 0;
      for (int i = 0; i < 64; i++) r += s[i]; __syncthreads(); return r; }]]
    for _, case in ipairs {
      { "loops", "", "struct body { float v, r; };" },
      { "fibers", " * w", "__device__ float w = 3;" },
      { "loops", " * w", "__device__ float s = 3;" }, { "fibers", " * w", "struct w { int v; };" },
    } do
      local k = cg.module { expressions = { "a::k" }, source = "__device__ float w = 1;"
        .. "__device__ float total(float v) " .. sum:format(case[2]) .. "namespace a { " .. case[3]
        .. "__global__ void k(float *y) { y[threadIdx.x] = total(threadIdx.x) + 4; } }" }
        :kernel "a::k"
      local y = cg.zeros("float", 64)
      k:launch(1, 64, y)
      assert.same({ case[1], 2020 }, { (k:form()), y:download()[64] })
    end
  end)
end)
