-- Kernels that have functions of their own for some widths of a block, and runs
-- that only the first warp has an effect in, on the host device: in blocks of
-- every shape they do what fibers do.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("shapes of blocks", function()
    pending "as loops are the host device's"
  end)
end

local shapes = { { 3, 256 }, { 3, 32 }, { 2, 64 }, { 2, 128 }, { 2, 100 }, { 2, 512 }, { 2, 1024 },
  { 2, 1 }, { 2, { 64, 2 } }, { 2, { 32, 8 } }, { 2, { 16, 16 } }, { 2, { 256, 1, 2 } },
  { 2, { 256, 2 } }, { { 1, 2 }, 256 } }

-- What a loop over halves or doubles begins with, lasts for and does; T is the type of d, N
-- a number, W the width of a block.
local headers = {
  "T d = W / 2; d > 0; d /= 2", "T d = W / 2; d > 0; d >>= 1", "T d = W >> 1; d; d = d / 2",
  "T d = W / 2; d > 16; d /= 2", "T d = W; d > 1; d >>= 1", "T d = 1; d < W; d *= 2",
  "T d = 1; d < W; d <<= 1", "T d = 1; W > d; d = d * 2", "T d = N / 2; d > 0; d /= 2",
  "T d = 1; d < N; d *= 2", "T d = 3; d < W; d *= 3", "T d = 1; d <= W / 4; d *= 2",
  "T d = (W + 1) / 2; d > 0; d /= 2", "T d = W - 1; d > 0; d >>= 1", "T d = 1; d < n; d *= 2",
  "T d = n; d > 0; d /= 2",
}
local bodies = {
  "if (t < d && t + d < all) s[t] += s[t + d];", "if (t < d && t + d < 1024) s[t] ^= s[t + d];",
  "unsigned v = t >= d ? s[t - d] : 1u; __syncthreads(); s[t] = s[t] * 3u + v;",
  "int i = 2 * d * t; if (i + d < all) s[i] += s[i + d];",
  "if (t % (2 * d) == 0 && t + d < all) s[t] += s[t + d];",
  "int i = (t + 1) * 2 * d - 1; if (i < all) s[i] += s[i - d];",
  "a += s[(t + d) & 1023]; __syncthreads(); if (t == d) s[t] = 5u;",
  "if (d == 4) continue; s[t] += d; a ^= s[t];", "if (d == 8) break; a = a * 5u + s[t ^ 1];",
  "unsigned v = s[(t + d) % all]; __syncthreads(); if (v > s[t]) s[t] = v;",
  "for (int q = 0; q < 2; q++) { a += s[t ^ q]; __syncthreads(); s[t] += d + q; __syncthreads(); }",
}
-- Of the first warp alone, or of others too.
local runs = {
  "unsigned v = x < (int)W / 32 ? s[x] : 0u; if (x / 32 == 0) v = sum(v); if (x == 0) a += v;",
  "if (warp == 0) a += sum(s[t]);", "if (x < 32) { unsigned v = sum(s[t]); if (x == 0) a = v; }",
  "unsigned v = s[t]; if (warp == 0) v += sum(v); a += v;",
  "unsigned v = s[t]; if (warp == 1) v += sum(v); if (x == 40) a += v;",
  "unsigned v = s[t]; if (warp == 0) { v += sum(v); s[t] = v; } if (x < 4) a ^= v;",
  "if (x < 64) a += sum(s[t]);", "if (atomicAdd(&s[t], 3u) != 7u && warp == 0) a += sum(s[t]);",
  "unsigned v = s[t]++; if (warp == 0) v = sum(v); if (x == 1) a += v;",
  "unsigned v = s[t]; if (warp < 1) v = sum(v); if (lane == 0) a += v;",
  "unsigned v = s[t]; if (warp == 0 && n > 6) v = sum(v); if (x == 0 && n > 9) a += v;",
  "if (threadIdx.x < -1) a += sum(s[t]);", "if (x < -1) a += sum(s[t]); s[t] ^= a;",
  "if (threadIdx.x / 32 <= 0) a += sum(s[t]);", "if (!warp && x != 3) a ^= s[t] + sum(1);",
  "for (int q = 0; q < 3; q++) { auto v = s[t]; if (warp == 0) v += sum(v); if (x == q) a ^= v; }",
  "unsigned v = s[t]; if (warp == 0) v = sum(v); n += v > 5u; if (x == 0) a ^= v;",
  "unsigned v = 1; if (lane == 0 || warp == 0) v = s[t]; if (warp == 0) v = sum(v); a += v;",
}

-- Branches on what a barrier gives.
local branches = {
  "if (__syncthreads_and(t < 31)) { r += 100; } o[i] = r;",
  "if (__syncthreads_or(t < 31)) r += 100; o[i] = r;",
  "if (__syncthreads_and(t < 31)) r += 100; __syncthreads(); o[i] = r;",
  "if (__syncthreads_and(t < 31)) o[i] = 5;",
  "if (__syncthreads_or(t > 31) && t < 5) r += 100; else r = 3; o[i] = r;",
  "if (__syncthreads_count(t & 1) > 3) { int q = t; q *= 3; r += q; } o[i] = r;",
  "if (__syncthreads_count(t & 1) > 3 && t != 4) { int q = t; r += q * 3; } o[i] = r;",
  "if (__syncthreads_count(r) < 3) { __syncthreads(); r = 4; } else r = 7; o[i] = r;",
  "for (int k = 0; k < 3; k++) if (__syncthreads_or(t == 40 + k)) r += k + 1; o[i] = r;",
  "for (int k = 0; k < 3; k++) { if (__syncthreads_or(t == 40 + k)) break; r += k + 1; } o[i] = r;",
  "for (int k = 0; k < 3; k++) { if (__syncthreads_or(t == 40 + k)) continue; r += k; } o[i] = r;",
  "while (__syncthreads_or(r < 3)) { r++; if (__syncthreads_and(r == 3)) r += 100; } o[i] = r;",
  "if (__syncthreads_or(t > 100)) return; o[i] = t;",
  "if (__syncthreads_or(t > 40)) if (t & 1) r = 3; o[i] = r + t;",
}

-- How a tile's size may be told: what stands in front of the kernel, in it, and the size.
local sizes = {
  { "", "", "16" }, { "\n#define TILE 16\n", "", "TILE" }, { "constexpr int T = 16;", "", "T" },
  { "enum { T = 8 };", "", "T" }, { "static const unsigned T = 30, R = 1;", "", "2 * R + T" },
  { "", "constexpr int T = 16;", "T + 2" }, { "", "const int T = 16, U = T / 2;", "(U)" },
  { "", "enum { T = 32 };", "T" }, { "constexpr int T = 8;", "constexpr int T = 4 * 8;", "T" },
  { "namespace c { constexpr int T = 16; }", "", "c::T" }, { "", "", "sizeof(int) * 4" },
  { "struct C { static constexpr int T = 32; };", "", "C::T + 1" }, { "", "", "N * 8" },
  { "template <int M> constexpr int twice = 2 * M;", "", "twice<N * 4>" },
  { "constexpr int twice(int a) { return 2 * a; }", "using T = int;", "twice(T(8))" },
  { "", "const int T{16}; const int U(T);", "U" }, { "", "constexpr int t[] = { 3, 16 };", "t[1]" },
}

local function kernel(name, chosen, random)
  local types = { "int", "unsigned", "short", "long", "unsigned short" }
  local text = table.concat(chosen, "\n__syncthreads();\n")
    :gsub("T d", types[random(#types)] .. " d")
    :gsub("%f[%w]W%f[%W]", "blockDim.x"):gsub("%f[%w]N%f[%W]", tostring(2 ^ random(3, 9)))
  return ([[
  extern "C" __global__ void %s(unsigned *out, const unsigned *in, int n) {
    __shared__ unsigned s[%s];
    const int x = threadIdx.x, lane = x %% 32, warp = x / 32;
    const int t = x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int all = blockDim.x * blockDim.y * blockDim.z;
    const int b = blockIdx.x + gridDim.x * blockIdx.y;
    unsigned a = in[t];
    for (int i = t; i < 1024; i += all) s[i] = in[i] ^ b;
    __syncthreads();
    %s
    __syncthreads();
    out[b * all + t] = a + 3u * s[t];
  }]]):format(name, random(2) == 1 and "1024" or "4 * 256", text)
end

local prelude = [[
  __device__ unsigned sum(unsigned v) {
    for (int o = 16; o > 0; o /= 2) v += __shfl_down_sync(__activemask(), v, o);
    return v;
  }
]]

-- Whole warps of a row alone may take shuffles.
local function has_whole_warps(shape)
  local block = shape[2]
  return (type(block) == "table" and block[1] or block) % 32 == 0
end

local function compare(modules, name, text)
  local input = forms.numbers(4096)
  for i, shape in ipairs(shapes) do
    if has_whole_warps(shape) or not text:find "sum%(" then
      forms.same(modules, name, shape[1], shape[2], text, 4096, input, 5 + i)
    end
  end
end

describe("shapes of blocks", function()
  teardown(device.nothing_alive)

  it("give what fibers give", function()
    forms.random { usual = 40, prelude = prelude, least = 0.97, try = compare,
      make = function(name, seed)
        math.randomseed(seed)
        local random, chosen = math.random, {}
        for k = 1, random(1, 3) do
          chosen[k] = random(3) == 1 and "{ " .. runs[random(#runs)] .. " }"
            or ("for (%s) { %s __syncthreads(); }"):format(headers[random(#headers)],
              bodies[random(#bodies)])
        end
        return kernel(name, chosen, random)
      end }
  end)

  it("know tiles, however their size is told", function()
    local text = {}
    for k, size in ipairs(sizes) do
      text[k] = ([[
  namespace own%d { %s
  template <int N> __global__ void tile(unsigned *out, const unsigned *in, int n) {
    %s
    __shared__ unsigned s[%s][33];
    const unsigned x = threadIdx.x, y = threadIdx.y, all = sizeof s / sizeof s[0];
    for (int i = 0; i < 3; i++) {
      if (y < all) s[y][x %% 33] = in[y * blockDim.x + x] + i;
      __syncthreads();
      if (x < all && x < blockDim.y && y < blockDim.x) n += s[x][y] * (i + 1) + all;
      __syncthreads();
    }
    out[y * blockDim.x + x] = n;
  } }]]):format(k, size[1], size[2], size[3])
    end
    local expressions = {}
    for k = 1, #sizes do expressions[k] = ("own%d::tile<2>"):format(k) end
    local modules = forms.both({ source = table.concat(text, "\n"), expressions = expressions },
      nil, "-O0", "loops")
    local input = forms.numbers(1024)
    for k, size in ipairs(sizes) do
      assert.equal("loops", (modules[1]:kernel(expressions[k]):form()), size[3])
      for _, block in ipairs { { 16, 16 }, { 32, 8 }, { 8, 8 }, { 32, 32 }, { 12, 5 }, { 32 } } do
        forms.same(modules, expressions[k], 1, block, size[3], 1024, input, k)
      end
    end
  end)

  it("take branches on what a barrier gives", function()
    local text = {}
    for k, body in ipairs(branches) do
      text[k] = ('extern "C" __global__ void branch%d(unsigned *o) { const int t = threadIdx.x; ' ..
        'const int i = blockIdx.x * blockDim.x + t; int r = 0; %s }'):format(k, body)
    end
    local modules = forms.both(table.concat(text, "\n"))
    for k, body in ipairs(branches) do
      for _, threads in ipairs { 31, 32, 64, 100, 256 } do
        forms.same(modules, "branch" .. k, 2, threads, body, 512)
      end
    end
  end)
end)
