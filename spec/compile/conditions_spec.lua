-- Barriers under conditions that all threads share: kernels whose conditions can be
-- known for that run as loops and give what they give as fibers, and those that
-- cannot stay fibers.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")
local module_as, quickly = forms.module_as, forms.quickly

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("conditions around barriers", function()
    pending "become loops on the host device alone"
  end)
end

local prelude = [[
__shared__ bool last;
__shared__ volatile bool raw;
__device__ int calls;
__device__ int ones(int a) { int r = 0; while (a > 0) { r += a & 1; a >>= 1; } return r; }
__device__ inline int halved(int n) { return n / 2 + ones(n) - ones(n); }
static __device__ int odd(const unsigned *a, int n) {
  int r = 0, seen = 0;
  for (int i = 0; i < n; i++, seen++) { if (a[i] % 3 == 0) continue; r += a[i] & 1; }
  return r + seen - n;
}
__device__ int at() { return threadIdx.x; }
__device__ int of_thread(int n) { return n + at() * 0; }
__device__ int counted(int n) { atomicAdd(&calls, 1); return n; }
__device__ int written(unsigned *o, int n) { o[200] = n; return n; }
__device__ int referred(int n, int &m) { m = 5; return n; }
__device__ int twofold(float n) { return n; }
__device__ int twofold(int n) { return n + threadIdx.x * 0; }
__device__ int kept(int n) { static int all = 3; return n + all; }
]]

-- A barrier in a loop or branch: what one thread writes another reads.
local function meet(e, more)
  return ("{ s[t] = x[t] + (%s); __syncthreads(); o[t] += s[(t + 1) %% blockDim.x]; %s " ..
    "__syncthreads(); }"):format(e, more or "")
end

local known = {
  ["assignments joined by commas"] = "int i, tile; for (i = 0, tile = 0; i < n; i += 4, tile++) " ..
    meet "i * tile" .. " o[t] += i + tile;",
  ["a chain of assignments"] = "int lo, hi; lo = hi = n; while (lo > 0) " .. meet("lo", "lo " ..
    "-= 2;") ..
    " o[t] += hi;",
  ["a number set under a condition"] = "int k = 0; if (n > 5) k = 3; if (k) " .. meet "k",
  ["a number set with what a thread does"] = "int k = 0; if (n > 5) { if (n > 9) k = 3; else " ..
    "k += n;" ..
    "o[t] = k; } else { { k = blockDim.x; } k--; } while (k > 0) " .. meet("k", "k -= 7;"),
  ["a bisection"] = "int lo = 0, hi = 64; while (hi - lo > 1) { int mid = (hi + lo) / 2;" ..
    "int c = __syncthreads_count(x[t] < mid * 100u); if (c > n / 2) hi = mid; else lo = mid; }" ..
    "o[t] = hi + lo;",
  ["a flag from memory"] = "bool go = true; int turns = 0; while (go) " .. meet("turns",
    "if (x[turns] > 3000 || turns > n) go = false; turns++;") .. "o[t] += turns;",
  ["k++ in a while"] = "int k = 0; while (k++ < n) " .. meet "k" .. "o[t] += k;",
  ["++k in a do"] = "int k = 0; do { " .. meet "k" .. " if (k == 7) continue; o[t]++; }" ..
    "while (++k < n); o[t] += k;",
  ["a parameter that counts down"] = "while (n--) { if (n == 4) continue; " .. meet "n" .. " }" ..
    "o[t] += n;",
  ["k-- of a for"] = "for (unsigned q = n; q-- > 0;) { if (q == 4) continue; " .. meet "q" .. " }",
  ["k-- that wraps around"] = "unsigned char q = 3; while (q-- > 0) " .. meet "q" .. "o[t] += q;",
  ["k++ in a condition that leaves"] = "int k = 0; for (;;) " .. meet("k", "if (k++ == n) " ..
    "break;") ..
    "o[t] += k;",
  ["an assignment in a condition"] = "int k = n, m; while ((m = k - 2) > 0) " .. meet("k + m",
    "k = m;") .. "o[t] += k;",
  ["a condition that is an assignment"] = "int k = n * 5; while (k -= 5) " .. meet "k",
  ["a pointer's steps"] = "const unsigned *p = x, *end = x + n; while (p++ < end) " .. meet "*p",
  ["k++ in a declaration"] = "int k = 0; while (k < n) { int j = k++; " .. meet "j" .. " }",
  ["a sum"] = "int sum = 0; for (int i = 0; i < n; i++) { if (x[i] == 0) continue;" ..
    "sum += x[i] % 3; if (sum > 9) break; } for (int k = 0; k < sum; k++) " .. meet "k",
  ["a power of two"] = "int b = 1; while (b < n) b <<= 1; for (int k = b; k > 0; k /= 2) " ..
    meet "k",
  ["numbers between operations of warps"] = "int k = 0; unsigned v = x[t];" ..
    "v += __shfl_xor_sync(~0u, v, 1); if (n > 3) k += 2; v += __shfl_xor_sync(~0u, v, 2); k++;" ..
    "if (n > 4) { k++; } v ^= __shfl_xor_sync(~0u, v, 4); while (k > 0) " .. meet("v + k",
    "if (n > 2) k--; k--;"),
  ["a function"] = "int k = halved(n); for (int i = 0; i < k; i++) " .. meet "i",
  ["a function that reads"] = "for (int i = 0; i < odd(x, n); i++) " .. meet "i",
  ["an auto"] = "auto k = n / 2; const auto m = blockDim.x; for (auto i = 0; i < k + m / 16; " ..
    "i++) " ..
    meet "i",
  ["an enum"] = "while (n-- > 8) { enum kind { N = 4, M = N + 2 }; constexpr int L[2] = {N, M};" ..
    "for (int i = 0; i < L[n & 1]; i++) " .. meet "i + N" .. " }",
  ["a shared flag of the file"] = "if (t == 0) last = n > 5; __syncthreads(); if (last) " ..
    meet "n",
  ["a shuffle in a condition"] = "unsigned v = x[t]; if (__shfl_sync(~0u, v, 0) > 300) v += 5;" ..
    "else { v++; o[t] = v; } " .. meet "v",
  ["a vote of some lanes in a condition"] = "unsigned v = x[t]; if (t % 32 < 16) {" ..
    "if (__any_sync(0xffffu, v > 6000)) v += 5; } " .. meet "v",
}

local barrier = "__syncthreads() under a condition that depends on the thread"
local refused = {
  ["a number set under a thread's condition"] = "int k = 0; if (x[t] != 12345) k = 3; if (k) " ..
    meet "k",
  ["a thread's number set under a condition"] = "int k = 0; if (n > 5) k = t - t + 3; if (k) " ..
    meet "k",
  ["a thread's loop"] = "int k = 0; for (int i = 0; i < n + (x[t] - x[t]); i++) k++;" ..
    "for (int i = 0; i < k; i++) " .. meet "i",
  ["a loop that a thread leaves"] = "int k = 0; for (int i = 0; i < n; i++) {" ..
    "if (x[t] == 987654) break; k++; } for (int i = 0; i < k; i++) " .. meet "i",
  ["a loop that a thread goes on with"] = "int k = 0; for (int i = 0; i < n; i++) {" ..
    "if (x[t] == 987654) continue; k++; } for (int i = 0; i < k; i++) " .. meet "i",
  ["both sides of a condition, one a thread's"] = "int k = 0; if (n > 5) k = 3; else if (x[t] " ..
    "== " ..
    "987654) k = 2; if (k) " .. meet "k",
  ["k++ of a thread's number"] = "int k = t - t; while (k++ < n) " .. meet "k",
  ["k++ that may not happen"] = "int k = 0; while (n > 0 && k++ < n) " .. meet "k",
  ["k++ of a number with an address"] = "int k = 0, *p = &k; while (k++ < n) " .. meet "*p",
  ["k++ of a number with a reference"] = "int k = 0, &r = k; while (k++ < n) " .. meet "r",
  ["a function of the thread"] = "int k = of_thread(n); for (int i = 0; i < k; i++) " .. meet "i",
  ["a function that counts its calls"] = "int k = counted(n); for (int i = 0; i < k; i++) " ..
    meet "i",
  ["a function that writes"] = "int k = written(o, n); for (int i = 0; i < k; i++) " .. meet "i",
  ["a function with a reference"] = "int m = 0, k = referred(n, m); for (int i = 0; i < k; i++) " ..
    meet "i + m",
  ["a function that is overloaded"] = "int k = twofold(n); for (int i = 0; i < k; i++) " ..
    meet "i",
  ["a function that keeps something"] = "int k = kept(n); for (int i = 0; i < k; i++) " .. meet "i",
  ["an auto of a thread"] = "auto k = n / 2 + t - t; for (int i = 0; i < k; i++) " .. meet "i",
  ["a volatile flag"] = "if (t == 0) raw = n > 5; __syncthreads(); if (raw) " .. meet "n",
  ["an atomic"] = "int k = 0; if (atomicAdd(&o[200], 0u) == 0u) k = 3; if (k) " .. meet "k",
  ["what a lambda sets"] = "int k = 0; auto f = [&]() { k = 3; }; f(); if (k) " .. meet "k",
}

--- The kernels of a table in a form, and their names in order; `last`: what ends them.
local function kernels_of(list, form, last)
  local names, text = {}, { prelude }
  for name in pairs(list) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do
    text[#text + 1] = ([[
extern "C" __global__ void k%d(unsigned *o, const unsigned *x, int n) {
  __shared__ unsigned s[128]; unsigned t = threadIdx.x; %s
}]]):format(i, list[name] .. (last or ""))
  end
  return quickly("-O1", function() return module_as(form, table.concat(text, "\n")) end), names
end

describe("conditions around barriers", function()
  teardown(device.nothing_alive)

  local words = {}
  for i = 1, 256 do words[i] = i * 7919 % 6400 end

  local function assert_same(list)
    local x, o = cg.from(words, "uint32"), cg.zeros("uint32", 256)
    local loops, names = kernels_of(list, "loops")
    local fibers = kernels_of(list, "fibers")
    for i, name in ipairs(names) do
      for _, n in ipairs { 1, 3, 6, 10, 13 } do
        for _, block in ipairs { 32, 48, 96, 37 } do
          local got = {}
          for k, module in ipairs { loops, fibers } do
            o:fill(0)
            module:kernel("k" .. i):launch(1, block, o, x, n)
            got[k] = o:download "string"
          end
          assert(got[1] == got[2], ("%s: n %d, %d threads"):format(name, n, block))
        end
      end
    end
  end

  it("are known to be the same for all threads", function()
    local module, names = kernels_of(known, "loops")
    for i, name in ipairs(names) do
      assert.same({ "loops" }, { module:kernel("k" .. i):form() }, name)
    end
    assert_same(known)
  end)

  it("are not taken for that", function()
    -- with a barrier behind them, or threads would leave by them
    local module, names = kernels_of(refused, "loops", " __syncthreads();")
    for i, name in ipairs(names) do
      local form, why = module:kernel("k" .. i):form()
      assert.same({ "fibers", barrier }, { form, why }, name)
    end
  end)
end)
