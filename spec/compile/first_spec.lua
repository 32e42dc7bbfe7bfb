-- What a warp makes of its values by halves, where only its first lane wants it, and
-- conditions that are a warp's, on the host device: as loops, which leave out the other
-- lanes, and as fibers it is the same.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("sums for the first lane", function()
    pending "as loops are the host device's"
  end)
end

local shapes = { { 3, 64 }, { 2, 37 }, { { 2, 2 }, { 32, 3 } }, { 2, { 8, 5, 2 } }, { 1, 1024 },
  { 2, { 64, 2 } }, { 1, 7 }, { 2, { 32, 2, 2 } } }

local function compare(modules, name, body)
  local input = forms.numbers(4096)
  for i, shape in ipairs(shapes) do
    forms.same(modules, name, shape[1], shape[2], body, 4096, input, 3 + i)
  end
end

-- Names of which each stands twice in the next.
local CHAIN = "unsigned h0 = t; "
for i = 1, 30 do
  CHAIN = CHAIN .. ("unsigned h%d = h%d ^ (h%d << %d); "):format(i, i - 1, i - 1, i % 5 + 1)
end
CHAIN = CHAIN .. "T v = x + (T)(h30 % 7u); v += ACROSS(v, 1); put(v);"

-- `x` is a number of the thread's, DOWN(v, d) a shuffle, HALVES a loop of d from 16 to 1;
-- out[at] is the thread's word, and a[i] another that the kernel has.
local bodies = {
  "T v = x; HALVES v += DOWN(v, d); if (lane == 0) put(v);",
  "T v = x; HALVES v = max(v, ACROSS(v, d)); if (lane == 0) put(v);",
  "T v = x; HALVES v += DOWN(v, d); if (threadIdx.x == 0) put(v);",
  "T v = x; HALVES v += DOWN(v, d); if (lane == 1) put(v);",
  "T v = x; HALVES v += DOWN(v, d); put(v);",
  "T v = x; HALVES v += DOWN(v, d); put(__shfl_sync(~0u, v, 0));",
  "T v = x; HALVES v += DOWN(v, d); put(__shfl_sync(~0u, v, n));",
  "T v = x; HALVES v += DOWN(v, d); T w = v; if (lane == 0) put(w); v = x; put(v);",
  "T v = x; HALVES v += DOWN(v, d); T w = v + 1; put(w);",
  "T v = x, w = x * 3; HALVES { v += DOWN(v, d); w += DOWN(w, d); } if (lane == 0) put(v - w);",
  "T v = x; int i = lane; HALVES { T o = DOWN(v, d); int k = DOWN(i, d);" ..
    " if (o > v || (o == v && k < i)) { v = o; i = k; } } if (lane == 0) put(v + (T)i);",
  "T v = x; int i = lane; HALVES { T o = DOWN(v, d); int k = DOWN(i, d);" ..
    " if (o > v) { v = o; i = k; } } if (lane == 0) put(v); put((T)i);",
  "T v = x; int i = t; HALVES { int k = DOWN(i, d); if (a[k] > a[i]) i = k; }" ..
    " if (lane == 0) put(v + (T)i);",
  "T v = x; v += DOWN(v, 16); v += DOWN(v, 8); v += DOWN(v, 4); v += DOWN(v, 2);" ..
    " v += DOWN(v, 1); if (lane == 0) put(v);",
  "T v = x; v += DOWN(v, 16); v += DOWN(v, 4); v += DOWN(v, 8); v += DOWN(v, 2);" ..
    " v += DOWN(v, 1); if (lane == 0) put(v);",
  "T v = x; v += DOWN(v, 8); v += DOWN(v, 8); v += DOWN(v, 1); if (lane == 0) put(v);",
  "T v = x; v += ACROSS(v, 16); v += ACROSS(v, 12); v += ACROSS(v, 3); if (lane == 0) put(v);",
  "T v = x; v += DOWN(v, 16); T w = v; w += DOWN(w, 8); w += DOWN(w, 4);" ..
    " if (lane == 0) put(w); if (lane < 9) put(v);",
  "T v = x; for (int d = 8; d; d /= 2) v += __shfl_down_sync(~0u, v, d, 16); if (!lane) put(v);" ..
    " if (lane == 0) put(v);",
  "T v = x; for (int d = 1; d < 32; d *= 2) v += DOWN(v, d); if (lane == 0) put(v);",
  "T v = x; for (int d = 16; d > 3; d /= 2) v += DOWN(v, d); if (lane == 0) put(v);",
  "T v = x; for (int d = 24; d > 0; d >>= 1) v += DOWN(v, d); if (lane == 0) put(v);",
  "T v = x; for (int d = 12; d > 0; d >>= 1) v += ACROSS(v, d); if (lane == 0) put(v);",
  "T v = x; for (unsigned d = warpSize / 2; d >= 1; d /= 2) v += DOWN(v, d);" ..
    " if (t % 32 == 0) put(v);",
  "T v = x; for (int k = 0; k < n; k++) { HALVES v += DOWN(v, d); if (lane == 0) put(v); }",
  "T v = x; for (int k = 0; k < n; k++) { v = x * k; HALVES v += DOWN(v, d);" ..
    " if (lane == 0) put(v); } put(v);",
  "T v = x, w = 0; for (int k = 0; k < n; k++) { v = x * k; HALVES v += DOWN(v, d); w = v;" ..
    " if (k == 2) break; } if (lane == 0) put(w); if (n > 5) put(w);",
  "T v = x; if (n & 1) { HALVES v += DOWN(v, d); } put(v);",
  "T v = x; put(DOWN(v, 4));", "T v = x, w = x; w += DOWN(v, 8); put(ACROSS(w, 4));",
  "T v = x; HALVES v += DOWN(v, d); for (int k = 4; k < n; k++) { v = x; __syncthreads(); }" ..
    " put(v);",
  "T v = x; for (int k = 0; k < n; k++) { HALVES v += DOWN(v, d); if (k == 1) break; v = x; }" ..
    " put(v);",
  "T v = x; if (warp == 0) { HALVES v += DOWN(v, d); } if (t == 0) put(v);",
  "T v = x; if (n & 1) { HALVES v += DOWN(v, d); } else { HALVES v = max(v, DOWN(v, d)); }" ..
    " if (lane == 0) put(v);",
  "T v = x; HALVES v += DOWN(v, d); if (lane == 0 && t % 32 == 0) part[warp] = v;" ..
    " __syncthreads();" ..
    " v = t < (nt + 31) / 32 ? part[lane] : (T)0;" ..
    " if (warp == 0) { HALVES v += DOWN(v, d); } if (t == 0) put(v);",
  "T v = x; if (n & 1) { HALVES v += DOWN(v, d); } else { v = x * 2; HALVES v += DOWN(v, d); }" ..
    " put(v);",
  "T v = x; for (int k = 0; k < n; k++) { if (k & 1) { v = x; HALVES v += DOWN(v, d); }" ..
    " if (k & 2) { v = x; HALVES v = max(v, DOWN(v, d)); } } if (lane == 0) put(v);",
  -- warps that take a condition together, by their threads' places
  "T v = x; if (threadIdx.x < 32) { HALVES v += DOWN(v, d); put(v); }",
  "T v = x; int k = threadIdx.x; if (k >= 32) { HALVES v += DOWN(v, d); if (lane == 0) put(v); }",
  "T v = x; if (31 < threadIdx.x && n > 4) { HALVES v += DOWN(v, d); } if (lane == 0) put(v);",
  "T v = x; if (64 > t) { HALVES v += DOWN(v, d); } put(v);",
  "T v = x; if (32 <= threadIdx.x || n == 5) v += ACROSS(v, 1); else v += ACROSS(v, 2); put(v);",
  "T v = x; if ((threadIdx.x) <= 31u) { HALVES v += DOWN(v, d); } if (t == 0) put(v);",
  "T v = x; if (t % 32 * 0 + threadIdx.x < 32) v += ACROSS(v, 3); put(v);",
  "T v = x; if (threadIdx.x < 40) { v += __shfl_xor_sync(0xffu << (t & 24), v, 1); v += x; }" ..
    " put(v);",
  "T v = x; if (39 >= threadIdx.x) { v += __shfl_xor_sync(0xffu << (t & 24), v, 1); } put(v);",
  "T v = x; if (56 > threadIdx.x) { v += __shfl_xor_sync(0xffu << (t & 24), v, 1); } put(v);",
  "T v = x; int w = threadIdx.x; if (w / 32 < n - 20) v += ACROSS(v, 1); put(v);",
  "T v = x; int w = threadIdx.x / 32; if (w >= n - 20) v += ACROSS(v, 1); put(v);",
  "T v = x; unsigned char w = threadIdx.x; if (w < 32) v += ACROSS(v, 1); put(v);",
  "T v = x; float w = threadIdx.x; if (w / 32 < 0.5f)" ..
    " v += __shfl_xor_sync(0xffu << (t & 24), v, 1); put(v);",
  "T v = x; bool w = threadIdx.x % 32; if (w == 1) put(v);",
  "T v = x; if (threadIdx.x / 32u == 0 || threadIdx.x >= 64u) v += ACROSS(v, 1); put(v);",
  "T v = x; int g = 0; while (__any_sync(~0u, g < 2) && threadIdx.x < 32) { v += 1; g++; } put(v);",
  -- what a turn of a loop around leaves to the next
  "T now = 0, last = 0, older = 0; for (int k = 0; k < n; k++) { put(older); older = last;" ..
    " last = now; now = x * k; HALVES now += ACROSS(now, d); }",
  "T sum = 0; for (int k = 0; k < n; k++) { T w = x * k; HALVES { T o = DOWN(w, d);" ..
    " w += o + sum; } sum = w; } if (lane == 0) put(sum);",
  "T sum = 0; for (int k = 0; k < n; k++) { T w = x * k; w += DOWN(w, 16); w += sum;" ..
    " w += DOWN(w, 8); w += DOWN(w, 4); sum = w; } if (lane == 0) put(sum);",
  "T c = 0, sum = x; for (int k = 0; k < n; k++) { sum = x * k; HALVES { T y = DOWN(sum, d) - c;" ..
    " T u = sum + y; c = (u - sum) - y; sum = u; } } if (lane == 0) put(sum);",
  "T p = x, q = x * 2; HALVES p += ACROSS(p, d); HALVES q = max(q, ACROSS(q, d));" ..
    " for (int k = 0; k < n; k++) { T u = p; p = q; q = u; __syncwarp(); } put(p);",
  "T p = x, q = x * 2; HALVES p += ACROSS(p, d); HALVES q = max(q, DOWN(q, d));" ..
    " for (int k = 0; k < n; k++) { T u = p; p = q; q = u; __syncwarp(); } if (lane == 0) put(p);",
  -- what lanes that are not wanted must not do
  "unsigned p = a[t] % 1u + t + 100, r = 0; HALVES { unsigned o = DOWN(p, d);" ..
    " r += (unsigned)*(a + (o - p) % 4096u); } if (lane == 0) put((T)(r % 1009));",
  "T v = x; v += ACROSS(v, 2); v += ACROSS(v, 1); keep<unsigned>(&s[t], (unsigned)(long)v);" ..
    " put((T)s[t]);",
  "int p = a[t] % 1u + t + 100, r = 0; HALVES { int o = DOWN(p, d); r += 1000 / (o - p + 1); }" ..
    " if (lane == 0) put((T)r);",
  "int p = a[t] % 1u + t + 100, r = 0; HALVES { int o = DOWN(p, d); r += *(a + (o - p)); }" ..
    " if (lane == 0) put((T)(r % 1009));",
  "T v = x; auto o = DOWN(v, 1); v += o; T y = x * 2; T w = o; if (lane == 0) put(v + w); put(y);",
  -- a row for each warp, of which its lanes take every 32nd place
  "int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; if (row > n) return; T v = x;" ..
    " for (int i = threadIdx.x % 32; i < 90 + n; i += 32) v += (T)(a[row * 7 + i] % 9u);" ..
    " HALVES v += ACROSS(v, d); for (int i = threadIdx.x & 31; i < 90 + n; i += warpSize)" ..
    " if (i == t) put(v + (T)(a[row + i] % 9u));",
  "unsigned row = 3 + threadIdx.x / 32 * 2 - threadIdx.x / 32; T v = x; v += ACROSS(v, 1);" ..
    " for (unsigned i = lane; i < row * 11; i += 32) v += (T)(a[i + row] % 9u); put(v);",
  "T v = x; v += ACROSS(v, 1); for (int i = 40 + threadIdx.x % 32; i < 33 * n; i += 32)" ..
    " { T w = (T)(a[200 - threadIdx.x % 32 + i] % 5u); v += w * w; } v += DOWN(v, 2);" ..
    " int k = n - threadIdx.x / 32; for (int i = lane; i < k * 9; i += 32) v -= (T)i; put(v);",
  "T v = x; if (n + threadIdx.x / 32 * 3 < 9) { v += ACROSS(v, 4); } if (n == 5 && " ..
    "7 - threadIdx.x / 32 > 5) v += ACROSS(v, 8); put(v);",
  "T v = x; v += ACROSS(v, 1); for (int i = lane; i < 70; i += 32) { if (i % 3 == 0) continue;" ..
    " v += (T)(a[i] % 5u); if (v > (T)100) break; } put(v); v += ACROSS(v, 2); put(v);",
  -- what is no lane, and places that are not one behind the other
  "T v = x; v += ACROSS(v, 1);" ..
    " v += (T)(-threadIdx.x % 32 * 3 % 7 + n % 3 - -threadIdx.x / 32 % 5);" ..
    " for (int i = 3 + threadIdx.x & 31; i < 70; i += 32) v += (T)i;" ..
    " for (int i = threadIdx.x & 31 + 3; i < 70; i += 32) v += (T)(i * 2); put(v);",
  "T v = x; v += ACROSS(v, 1); const unsigned char q = threadIdx.x % 32 + 250;" ..
    " for (int i = q; i < 370; i += 32) v += (T)(i % 5);" ..
    " for (long i = threadIdx.x % 32 - 5; i < 70; i += 32) v += (T)i; put(v);",
  "T v = x; v += ACROSS(v, 1);" ..
    " for (unsigned i = threadIdx.x % 32 + 4294967290u; i < 70; i += 32) v += (T)(i % 7);" ..
    " for (int i = threadIdx.x % 32 - 5; i < 70u + n; i += 32) v += (T)i;" ..
    " for (int i = lane; i < 20.5f; i += 32) v += (T)i; put(v);",
  "T v = x; __syncthreads(); for (long i = threadIdx.x - 5; i < 300; i += blockDim.x) v += (T)i;" ..
    " for (int i = threadIdx.x - 5; i < 70u + n; i += blockDim.x) v += (T)i;" ..
    " for (int i = threadIdx.x; i < 1.5 * n; i += blockDim.x) v += (T)i; put(v);",
  -- lanes and warps of sums with the rows
  "const unsigned char row = threadIdx.y * 128; const int w = (threadIdx.x + row) / 32; T v = x;" ..
    " v += ACROSS(v, 1); put(v + (T)w);",
  "bool row = threadIdx.y; const int w = (threadIdx.x + 32 * row) / 32; T v = x;" ..
    " v += ACROSS(v, 1); if (w == 1) v += ACROSS(v, 2); put(v);",
  "unsigned char c = threadIdx.x; int i = c; T v = x + (T)a[i]; v += ACROSS(v, 1); put(v);",
  "auto c = threadIdx.x; int i = c + 3; T v = x + (T)(a[i] % 7u); v += ACROSS(v, 1); put(v);",
  CHAIN,
  "T v = x; int q = (threadIdx.x + 16 * threadIdx.y) % 32; HALVES v += DOWN(v, d);" ..
    " if (q == 0) put(v);",
  "T v = x; int q = (threadIdx.x + 16 * threadIdx.y * threadIdx.z) % 32;" ..
    " HALVES v += DOWN(v, d); if (q == 0) put(v); part[q] = 0;",
  "T v = x; int q = (threadIdx.x + 16 * threadIdx.y * (threadIdx.y + 1)) % 32;" ..
    " HALVES v += DOWN(v, d); if (q == 0) put(v);",
  "T v = x; int q = (threadIdx.x + blockDim.x * threadIdx.y + 64 * blockIdx.x) / 32;" ..
    " HALVES v += DOWN(v, d); put(v + (T)q); if (q == 2) { v = ACROSS(v, 1); } put(v);",
  "T v = x; HALVES v += DOWN(v, d); v = __shfl_sync(~0u, v, 0); HALVES v += DOWN(v, d);" ..
    " if (lane == 0) put(v);",
  "T v = x; HALVES v += DOWN(v, d); HALVES v += DOWN(v, d); if (lane == 0) put(v);",
  "T v = x; HALVES v += DOWN(v, d); v += x; if (lane == 0) put(v);",
  "T v = x; HALVES v += DOWN(v, d); if (lane == 0 && v > (T)3) put(v); if (lane == 0) v = 2;" ..
    " if (lane == 0) put(v);",
  "T v = x; HALVES { v += DOWN(v, d); if (d == 4) put(v); } if (lane == 0) put(v);",
  "T v = x; HALVES { T o = DOWN(v, d); if (lane < d) v += o; } if (lane == 0) put(v);",
  "T v = x; HALVES { T o = DOWN(v, d); s[t] = (unsigned)(long)o; v += o; } put((T)s[t]);",
  "T v = x; auto f = [&](T y) { return v + y; }; HALVES v += DOWN(v, d); put(f(x));",
  "T v = x; T &r = v; HALVES v += DOWN(v, d); put(r);",
  "T v = sum_of(x); if (lane == 0) put(v);", "T v = sum_of(x); put(v);",
  "T v = fold(x, more<T>()); if (lane == 0) put(v);",
  "T v = fold(x, [](T p, T q) { return p > q ? p : q; }); if (lane == 0) put(v);",
  "auto v = x; HALVES v += DOWN(v, d); if (lane == 0) put(v);",
  "T v = x; HALVES v += DOWN(v, d); for (int k = lane; k < 1; k += 32) put(v);",
  "T v = x; HALVES v += DOWN(v, d); put(lane == 0 ? v : (T)1);",
  "T v = x; HALVES v += DOWN(v, d); s[lane == 0 ? t : 1000] = (unsigned)(long)v;" ..
    " __syncthreads(); if (lane == 0) put((T)s[t]);",
  "T v = x; if (t < nt - 1) { v += 1; } HALVES v += DOWN(v, d); if (!(lane == 0)) return; put(v);",
  -- steps that lead back past zero, some threads before the others
  "T v = x; __syncthreads(); const int q = n % 3 - 5;" ..
    " for (unsigned i = threadIdx.x; i < 600u; i += q) v += (T)(i % 7);" ..
    " for (unsigned long i = threadIdx.x; i < 600; i += q + 14) v += (T)i; put(v);",
  "T v = x; v += ACROSS(v, 1); const unsigned q = n % 3 - 5;" ..
    " for (unsigned i = lane + 60; i < 600u; i += q) v += (T)(i % 7);" ..
    " for (int k = 0; k < 2; k++) for (unsigned i = lane; i < 90u; i += q) v += (T)(i + k);" ..
    " put(v);",
}

local prelude = [[
#define DOWN(v, d) __shfl_down_sync(0xffffffffu, v, d)
#define ACROSS(v, d) __shfl_xor_sync(0xffffffffu, v, d)
#define HALVES for (int d = 16; d > 0; d /= 2)
template <class T> __device__ T sum_of(T v) {
  #pragma unroll
  for (int d = warpSize / 2; d > 0; d >>= 1) v += DOWN(v, d);
  return v;
}
template <class T, class F> __device__ T fold(T v, F f) {
  HALVES v = f(v, DOWN(v, d));
  return v;
}
template <class T> __device__ void keep(T *p, T v) { *p = v; }
template <class T> struct more { __device__ T operator()(T a, T b) const { return a + b; } };
]]

-- `lane` is said of the row, or of the block's threads in a line.
local function kernel(name, body, type, lane)
  return ([[
extern "C" __global__ void %s(unsigned *out, const unsigned *a, int n) {
  typedef %s T;
  __shared__ unsigned s[1024]; __shared__ T part[32];
  const int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const int nt = blockDim.x * blockDim.y * blockDim.z, lane = %s, warp = t / 32;
  unsigned at = ((blockIdx.x + gridDim.x * blockIdx.y) * nt + t) %% 4096u;
  const T x = (T)(a[at] %% 1009u);
  s[t] = 7u; s[1000] = 1u;
  if (t < 32) part[t] = 0;
  __syncthreads();
#define put(v) out[at] = out[at] * 5u + (unsigned)(long)(v)
  %s
#undef put
}
]]):format(name, type, lane, body)
end

describe("sums for the first lane", function()
  teardown(device.nothing_alive)

  -- A sanitizer's build has the same kernels.
  local sanitized = (os.getenv "CGRAPHLUA_SANITIZER" or "no") ~= "no"
  local night = forms.level == "-O3"

  --- The bodies of which `of` says so, each with one of the types in turn; at night all
  -- with all.
  local function try(types, level, of)
    local text, names = { prelude }, {}
    for i, body in ipairs(bodies) do
      for k, type in ipairs(types) do
        if night or of(i) and (i + math.floor(i / 5)) % #types == k - 1 then
          local name = ("k%d_%d"):format(i, k)
          names[name] = body
          text[#text + 1] = kernel(name, body, type, i % 5 == 0 and "t % 32" or "threadIdx.x % 32")
        end
      end
    end
    local modules = forms.both(table.concat(text, "\n"), nil, level, "loops")
    for name, body in pairs(names) do compare(modules, name, body) end
  end

  it("are those of fibers", function()
    try({ "float", "int", "double", "unsigned long long", "short" }, "-O0",
      function() return true end)
  end)

  it("are those of fibers in vectors", function()
    if sanitized then return pending "as another build shows it" end
    try({ "float" }, "-O3 -fno-unswitch-loops", function(i) return i % 4 == 0 end)
  end)
end)
