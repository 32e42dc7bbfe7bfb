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

  it("hide others as long as the statement whose header they stand in", function()
    for _, body in ipairs {
      "if (unsigned v = t & 1) { x[t + 32] = v; } else { v = 2; x[t + 32] = v; }",
      "if (unsigned v = t & 1) x[t + 32] = v; v += 3;",
      "if (unsigned v = t & 1) x[t + 32] = v; else v = 2;",
      "if (unsigned k = s[t ^ 1]; k & 1) { v += k; } else if (unsigned v = k & 2) {} "
        .. "else { v ^= k; x[t + 32] = v; }",
      "if (float v = t & 1) {} else if (v == 0) { v = 2.5f; x[t + 32] = v * 2; }",
      "if (unsigned v = s[t ^ 1] & 1; v) { x[t + 32] = v; } else { v += 2; x[t + 32] += v; }",
      "if (unsigned a = 3, v = t & 1; a > v) x[t + 32] += v; else v = 4; v++;",
      "if (bool v = t & 1) s[t] = 3; else if (bool y = !v) s[t] = y + 2 * v; else s[t] = 9;",
      "while (unsigned v = s[t] & 7) { s[t] -= v & 1 ? 1 : 2; if (v == 4) break; }",
      "for (; unsigned v = s[t] & 7;) s[t] -= v & 1 ? 1 : 2; v++;",
      "switch (unsigned v = s[t] & 3) { case 1: s[t] += v; break; case 2: v = 9; s[t] += v; } v++;",
    } do
      assert_loops(([[
        extern "C" __global__ void k(unsigned *x, const int n) {
          __shared__ unsigned s[32];
          unsigned t = threadIdx.x, v = t;
          s[t] = t;
          __syncthreads();
          %s
          __syncthreads();
          x[t] = v + s[t ^ 1] * 64;
        }]]):format(body), 32, 5)
    end
  end)

  it("may have the names of kernels", function()
    local module = module_as(nil, [[
      extern "C" __global__ void sum(float *y) {
        __shared__ float s[32]; s[threadIdx.x] = y[threadIdx.x];
        __syncthreads();
        y[threadIdx.x] = s[threadIdx.x ^ 1];
      }
      extern "C" __global__ void i(float *y) { __syncthreads(); *y = 1.f; }
      extern "C" __global__ void columns(float *y, const float *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        float sum = 0;
        for (int k = 0; k < n; k++) sum += x[k * 32 + i];
        y[i] = sum;
      }]])
    assert.equal("strips", (module:kernel("columns"):form()))
    assert.equal("loops", (module:kernel("sum"):form()))
    local y, x = cg.zeros("float", 32), cg.full("float", 96, 2)
    module:kernel("columns"):launch(1, 32, y, x, 3)
    assert.same({ 6, 6 }, { y:download()[1], y:download()[32] })
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
