-- Kernels with barriers whose statements are of a few of a row's threads, on
-- the host device: the loop over those alone does what fibers do.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("statements of a few threads", function()
    pending "as loops are the host device's"
  end)
end

local shapes = { { 2, 64 }, { { 3, 2 }, { 37, 3 } }, { { 2, 2, 2 }, { 16, 5, 2 } },
  { { 3, 2 }, { 16, 16 } }, { 2, 512 }, { { 2, 3 }, { 1, 8 } }, { 1, 2 }, { 2, 1024 } }

local function compare(modules, name, body)
  local input = forms.numbers(4096)
  for i, shape in ipairs(shapes) do
    forms.same(modules, name, shape[1], shape[2], body, 8192, input, 5 + 3 * i, i % 2)
  end
end

-- `x` is the thread's place, `t` its number in the block, `n` a small number, `f` 0 or 1,
-- s[t] the thread's word of shared memory, in[2048 + x] a number beside others.
local statements = {
  "if (x % n == 3) s[t] += 5u;", "if (!(x % (2 * n))) s[t] += 7u;",
  "if (x % -n == 1) s[t] += 7u;", "if (x % un == -1) s[t]++;", "if (x % (n + 2000) == 5) s[t]++;",
  "if (x % n == n) s[t] += 3u;", "if (x % 3 == f && s[t] & 1) s[t] = 9u;",
  "if ((x & n) == 0) s[t] ^= 3u;", "if ((x & (f * 8 + 7)) == 4) s[t] ^= 5u;",
  "if (0 == f && (x & 3) == 0) s[t] ^= 77u;",
  "int i = n * x; if (i < 300) s[t] += in[i];",
  "int i = (x + 1) * 2 * n - 1; if (i <= 300) s[t] += in[i];",
  "unsigned i = un * x - 40u; if (i < 300u) s[t] += in[i];",
  "int i = -n * x; if (i > -100) s[t] += in[2048 + i];",
  "int i = n * x - 300; if (i < 20) s[t] += in[2048 + i]; ",
  "int i = (unsigned)big * x; if (i < 20) s[t] += 11u;",
  "unsigned i = (unsigned)big * x; if (i < 2000000000u) s[t]++;",
  "long i = n * x; if (100 > i) s[t] += in[i];",
  "short i = 9000 * x; if (i < 300) s[t] += 3u;", "char i = n * x; if (i < 30) s[t] += 3u;",
  "int i = n * x; if (i < 900u && 40 < i) s[t] += in[i];",
  "int i = n * x, k = i + f; if (k + 1 < 300) s[t] += in[k];",
  "if (n * x < 100 && n > 9) s[t] += 3u;", "if (x * x < 100) s[t] += 3u;",
  "if (x >= 2 && x < n) s[t] += in[x];", "if (x > n && 30 >= x) s[t] += in[2048 - x];",
  "if (c >= 0 && c < n * 9 && r >= 0 && r < n) s[t] += in[2048 + c];",
  "if (c >= 0 && r < 20) { if (x - 2 >= 0 && x - 2 < 28) s[t] += in[2048 + c] + in[x - 2]; }",
  "if (c >= 0) { unsigned v = in[c]; if (x < 9) s[t] += v; }",
  "if (c >= 0 && in[2048 + c] & 1) s[t] = s[t] * 3u;",
  "if (uc < 60u) s[t] += in[2048 + c];", "if (uc >= 5u && uc <= 4294967290u) s[t] += 3u;",
  "int i = n * x; if (i < 2.5f * n) s[t] += 3u;", "int i = n * x; if (1.5 * n >= i) s[t]++;",
  "if (f && n * x < 100 / f) s[t] += 5u;", "if (f && x % (100 / f) == 3) s[t] += 5u;",
  "if (f && n * x < in[f ? 3 : 1 << 30]) s[t] += 5u;", "if ((x & (0ul - 1)) == f) s[t] += 3u;",
  "if (x % (f - f + 9223372036854775807ull * 2 + 1) == 4) s[t]++;",
  "if ((x) < -1) s[t]++;", "char q = x; int i = q; if (i < 200) s[t] += 3u;",
  "const long y = tx; if (y < n) s[t] += 3u;", "if ((x) % (n - 3) == 1) s[t]++;",
  "unsigned char q = x; if (q % n == 1) s[t]++;", "if (tx < -1) s[t]++;",
  "int i = (char)+(n * x); if (i < 30) s[t] += 3u;",
  "unsigned v = words[t].next(); if (c >= 0 && x < n) s[t] += v;",
  "int v = words[t].next(), i = n * x; if (i < 40) s[t] += v;",
  "unsigned v = add<2>(s[t]); if (x < n && c >= 0) s[t] += v;",
  "if (x < 2.5f * n) s[t] += 3u;", "if (c < 1.5 && x >= 1) s[t] += 9u;",
  "if (x < 20) { if (r > 1) s[t] += 2u; else s[t] += 4u; }",
  "if (x > 20) s[t] += 2u; else if (x > 10) s[t] += 4u;",
  "if (x < n) if (r < 3) s[t] += 2u; else s[t] += 4u;",
  "if (f) s[t] += in[x];",
  "if (f && n > 12) { s[t] += in[x]; } for (int k = 0; k < n; k++) s[t] += k;",
  "for (int k = 0; k < 3; k++) s[t] = s[t] * 3u + k; if (f) s[t] ^= 3u; if (n > 14) s[t]++;",
  "if (n > 1 || f) s[t] += 3u;", "if (x < n || f) s[t] += 3u;", "if (x == n) s[t] += 3u;",
  "unsigned v = s[t]; if (f) v += in[x]; for (int k = 0; k < n; k++) v = v * 3u + k; s[t] = v;",
  "s[t] += in[un + x] + in[tx + un] + in[tx + 2047u];", "if (tx >= un) s[t] += in[tx - un];",
  "if (tx > 2) s[t] += in[tx + 4294967293u];", "s[t] += in[2048 + x - n] + in[c + 2100u];",
  "float v = in[x & 63] * 1e-9f; s[t] += (unsigned)(100.f * fminf(fmaxf(v, 0.5f), 3.f));",
  "if (atomicAdd(&s[t], 3u) != 7u && x == 0) s[t]++;",
  "if (atomicAdd(&s[t], 3u) != 7u && c >= 0 && x < n) s[t] += 5u;",
  "if (words[t].next() && x % n == 2) s[t] += 5u;", "if ((s[t] += 5u) > 3u && x < 20) s[t]++;",
  "int i = n * x; if (s[t]++ != 2u && i < 300) s[t] += in[i];", "if (x < 20 && s[t]++) s[t] ^= 5u;",
  "if (x >= 0) { if (add<3>(s[t]) && c >= 0 && x < 30) s[t] ^= 5u; }",
  "if (x < 40 && x >= 0 && c < 50 && uc != 3u) { int q = x - 1; if (q < 3) s[t] += q; }",
  -- conditions around what a few threads do (split.c)
  "if (c >= 0 && x < 40) { s[t] += in[x]; if (threadIdx.x == 0) s[t] ^= 5u; }",
  "if (c >= 0) { if (x == 0) s[t] ^= 5u; else if (x == n) s[t] += 9u; else s[t]++; }",
  "if (x == 0) { if (f) s[t] += 3u; else s[t] = 9u; } else if (threadIdx.y == 0) s[t] ^= 1u;",
  "if (m < 20) { m += 15; if (x == 1) s[t] += 3u; m += 15; s[t] += m; } s[t] ^= m;",
  "if (x < n) { const int i = 2048 + c; s[t] += in[i]; if (x == 2) s[t] += in[i - 1]; }",
  "if (x < n) { int i = 2048 + c; if (x == 2) s[t] += in[i - 1]; i++; s[t] += in[i]; }",
  "if (c >= 0) { int i = x; { int i = 3; s[t] += i; } if (x == n) s[t] += i; }",
  "if (c >= 0) { s[t]++; unsigned i = s[t]; if (x == 1) s[t] += i; if (i & 1) s[t] ^= 3u; }",
  "if (s[t] & 1) { s[t]++; if (x == 1) s[t] ^= 6u; }",
  "if (r >= 0) { if (threadIdx.y == 0) { if (x == 0) { s[t] ^= 3u; } s[t] += 7u; } a++; }",
  "if (n > 0 && x == 0 && n > 5) s[t] = 5u; else s[t] += 2u;",
  "if (!(n > 0 && x == 0 && f)) s[t] += 2u;", "if ((n > 0 && x == 0 && f) == 0) s[t]++;",
  "const int leader = n > 0 && x == 0 && n > 9; if (leader) s[t] = 5u; else s[t] += 2u;",
  "const int leader = n > 0 && x == 2 && f; if (!leader) s[t] = 5u; a += s[t];",
  "if ((x == 3 && c >= 0) && f) s[t] = 7u;", "if ((x & 31) == 3) s[t] = 7u;",
  "if (x == 0) [[unlikely]] { s[t] = 9u; } else { s[t] += 2u; } a += s[t];",
  "if (x == 0) [[likely]] s[t] = 9u; a += s[t] * 3u;",
  "if (n > 3) { alignas(8) int m = s[t]; s[t] = m + 1; if (x == 0) a += m; }",
  "if (n > 3) { unsigned (*m)[3] = nullptr; s[t] += !m; if (x == 0) a += m == nullptr; }",
  "if (n > 3) { auto [m, q] = split(s[t]); s[t] = m + 1; if (x == 0) a += m * 3 + q; }",
  "if (c >= 0) { int i = c + 2048; s[t] += in[i]; if (x == n) { unsigned i[2] = {x, a}; "
    .. "a += i[0] + i[1]; } if (x == 1) s[t] ^= in[i]; }",
  "if (t == 0 && mark == 0) { set(); if (threadIdx.y == 0) s[t] += 4u; }",
  "if (x != n) { for (int k = 0; k < 3; k++) { if (k == f) continue; s[t] += k; } "
    .. "if (x == 0) s[t] = 1u; }",
}

--- A condition around others, some of which hold for one thread or one row.
local function nested(depth)
  local function pick(list) return list[math.random(#list)] end
  local cond = pick { "x < n * 3", "c >= 0 && c < n * 9", "r >= 0 && x > 2", "x == 0", "x == n",
    "threadIdx.y == 0", "threadIdx.y == blockDim.y - 1", "x == (int)blockDim.x - 1", "f", "n > 9",
    "a & 1u", "s[t] & 1u", "m < 20", "x < n || f", "(x + f) * 2 < n", "uc < 60u", "bump(m) & 4" }
  local lines = {}
  if math.random(4) == 1 then
    lines[1] = pick { "const int i = x + 2048;", "int i = 2 * n + x;", "unsigned i = s[t] & 63u;",
      "int i = x; i += n;", "int m = c;" }
  end
  local own = lines[1] and lines[1]:find " i " and "i" or "x"
  for _ = 1, math.random(3) do
    lines[#lines + 1] = depth < 3 and math.random(2) == 1 and nested(depth + 1)
      or pick { "s[t] += 3u;", "a = a * 3u + in[IX & 1023];", "m += 5;", "s[t] ^= in[IX & 2047];",
        "s[t] += IX;", "a ^= s[t];", "for (int k = 0; k < 2; k++) s[t] = s[t] * 3u + IX;",
        "{ unsigned v = s[t]; a += v * 3u; }", "bump(m);", "" }:gsub("IX", own)
  end
  local text = ("if (%s) { %s }"):format(cond, table.concat(lines, " "))
  if math.random(3) == 1 then
    text = text .. " else " .. (depth < 3 and nested(depth + 1) or "s[t] += 11u;")
  end
  return text
end

local function kernel(name, chosen)
  return ([[
  extern "C" __global__ void %s(unsigned *all, const unsigned *in, int n, int f) {
    __shared__ unsigned s[1024];
    word *const words = (word *)s;
    const int x = threadIdx.x;
    const unsigned tx = threadIdx.x, un = n;
    const int t = x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const int c = blockIdx.x * 28 + threadIdx.x - 2, r = blockIdx.y * 3 + threadIdx.y - 1;
    const unsigned uc = blockIdx.x * 28 + threadIdx.x - 2;
    const int big = 2000000011 + f;
    const int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned a = in[t];
    int m = n;
    mark = 0;
    s[t] = a;
    __syncthreads();
    %s
    all[b * blockDim.x * blockDim.y * blockDim.z + t] = a + s[t] + m;
  }]]):format(name, table.concat(chosen, "\n__syncthreads();\n"))
end

local prelude = [[
  template <int n> __device__ unsigned add(unsigned &x) { return x += n; }
  __device__ int bump(int &x) { return x += 7; }
  struct pair { int low, high; };
  __device__ pair split(int x) { return {x & 15, x >> 4}; }
  __shared__ int mark;
  __device__ void set() { mark = 1; }
  struct word { unsigned at; __device__ unsigned next() { return at += 3u; } };
]]

describe("statements of a few threads", function()
  teardown(device.nothing_alive)

  it("do in loops what they do in fibers", function()
    local text = {}
    for k, s in ipairs(statements) do
      text[k] = kernel("one" .. k, { "{ __syncthreads(); " .. s .. " }" })
    end
    local modules = forms.both(prelude .. table.concat(text, "\n"))
    for k, s in ipairs(statements) do
      assert.equal("loops", (modules[1]:kernel("one" .. k):form()), s)
      compare(modules, "one" .. k, s)
    end
  end)

  it("do so for random rows of them", function()
    forms.random { usual = 60, prelude = prelude, least = 0.95, try = compare,
      make = function(name, seed)
        math.randomseed(seed)
        local chosen = {}
        for k = 1, math.random(2, 5) do
          local s = math.random(2) == 1 and nested(1) or statements[math.random(#statements)]
          if math.random(3) == 1 then
            s = s .. "} __syncthreads(); {" .. statements[math.random(#statements)]
          end
          chosen[k] = math.random(3) == 1
              and "for (int turn = 0; turn < n; turn += 5) { __syncthreads(); " .. s .. " }"
            or "{ __syncthreads(); " .. s .. " }"
        end
        return kernel(name, chosen)
      end }
  end)
end)
