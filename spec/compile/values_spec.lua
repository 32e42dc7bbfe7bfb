-- Variables of kernels with barriers on the host device: which are all threads'
-- in common, however they begin; as loops and as fibers.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local module_as = dofile(here .. "/../support/forms.lua").module_as

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("a kernel's variables", function()
    pending "are kept apart on the host device alone"
  end)
end

--- The kernel k(unsigned *x, const int n) runs as loops, and leaves what it does as fibers.
local function assert_loops(source, block, n)
  local got = {}
  for i, form in ipairs { "loops", "fibers" } do
    local kernel, x = module_as(form, source):kernel(), cg.zeros("uint32", 64)
    assert.same(form, (kernel:form()), select(2, kernel:form()))
    kernel:launch(1, block, x, n)
    got[i] = x:download()
  end
  assert.same(got[2], got[1])
end

describe("a kernel's variables", function()
  teardown(device.nothing_alive)

  it("begin in brackets or braces as behind an =", function()
    assert_loops([[
      extern "C" __global__ void k(unsigned *x, const int n) {
        constexpr int W{4 * 16}; const int odd(W / 2 - 1), none{};
        __shared__ int s[W], rows[W / 2][odd];
        int t{(int)threadIdx.x}, b(t & 3), c{}, d = 2, *p{&s[0]}, i{n};
        auto u{t * 3u}; auto v(b + 1.5f); unsigned char few{(unsigned char)(t * 9)};
        p[t] = t + u; rows[t / 2][t % odd] = few;
        __syncthreads();
        for (int k{1}, all(W); k < all; k *= 2) {
          c += s[(t + k) & (W - 1)];
          __syncthreads();
          p[t] += c;
          __syncthreads();
        }
        for (; i > none; --i) {
          float w{v};
          int lane(t % 32);
          w += s[lane ^ i];
          __syncthreads();
          v += w;
        }
        x[t] = c + d + (unsigned)v + few * 5 + u + *(p + t) + rows[odd - t / 2][(W - 1 - t) % odd];
        auto f([=](int a) { return a + b; });
        __syncthreads();
        x[t] = f(x[t]);
      }]], 64, 5)
  end)

  it("are made once for each thread", function()
    for _, members in ipairs { "unsigned r; __device__ S() { r = threadIdx.x; }",
      "unsigned r = threadIdx.x * 7;", "unsigned r; __device__ S() { r = threadIdx.x ^ 5u; }" } do
      assert_loops(([[
        struct S { %s };
        struct T { S s; int k = 3; };
        struct pair { unsigned r, q; };
        extern "C" __global__ void k(unsigned *x, const int n) {
          __syncthreads();
          S s;
          T t;
          pair p;
          p.r = n;
          __syncthreads();
          p.q = p.r + threadIdx.x;
          x[threadIdx.x] = s.r + t.s.r * t.k + p.q;
        }]]):format(members), 64, 5)
    end
  end)

  it("end where their source does, inside of a block", function()
    local rests = { "if (x[i]) {", "while (i < 3) {", "{", "do {", "if (i) ; else {", "",
      "if (x[i]) { x", "while (i < 3) { i", "{ x", "do { i", "if (i) ; else { i" }
    for _, rest in ipairs(rests) do
      local ok, e = pcall(module_as, nil, [[
        extern "C" __global__ void k(int *x) {
          int i = 0;
          __syncthreads();
          for (int j = 0; j < 3; j++) { ]] .. rest)
      assert.is_false(ok, rest)
      assert.equal("CGL_ERROR_COMPILE", e.name)
    end
  end)

  it("are common where functions of what is common are all they are", function()
    assert_loops([[
      extern "C" __global__ void k(unsigned *x, const int n) {
        __shared__ float s[16][16];
        const int tx = threadIdx.x, ty = threadIdx.y;
        s[ty][tx] = tx * 3 + ty;
        __syncthreads();
        for (int i = 1; i <= __log2f(16); i++) {
          int power = __powf(2, i);
          if (ty % power == 0) s[ty][tx] += s[ty + power / 2][tx];
          __syncthreads();
        }
        float turns = fmaf(sinf(n), 0.25f, 3) + floorf(cosf(n)) + __float_as_int(1.f) % 3;
        while (turns > rintf(0.5f)) {
          const float other = s[ty][15 - tx];
          __syncthreads();
          s[ty][tx] += other;
          turns -= fabs(exp2f(round(tanhf(n))) - 1.5);
          __syncthreads();
        }
        if (ty < 4) x[ty * 16 + tx] = s[ty][tx];
      }]], { 16, 16 }, 5)
    assert_loops([[
      __device__ int round(int *a) { return a[0]++; }
      __device__ float log2(const float *a) { return a[1]; }
      extern "C" __global__ void k(unsigned *x, const int n) {
        __shared__ float s[64];
        s[threadIdx.x] = threadIdx.x;
        __syncthreads();
        for (int i = 0; i < n; i++) {
          float a = log2(s);
          __syncthreads();
          s[threadIdx.x] += a;
          __syncthreads();
        }
        int own = threadIdx.x;
        if (threadIdx.x < 5 && round(&own) > 2) s[threadIdx.x] += own;
        if (round(&own) < 9 && threadIdx.x == 3) s[threadIdx.x] += own;
        x[threadIdx.x] = s[threadIdx.x] + own * 3;
      }]], 64, 5)
  end)
end)
