--- Random kernels, for specs that run them in two forms (forms.lua).
-- A kernel is made from a seed.  All of its arithmetic is on unsigned numbers,
-- every barrier is at a place that all threads of a block (or of a warp) reach
-- together, and what one thread writes another reads behind a barrier, so any
-- form must give the same bits.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local halving = dofile(here .. "/halving.lua")

local M = {}

--- What all kernels of a source share.
M.prelude = [[
#define FULL 0xffffffffu
static const unsigned primes[4] = {2654435761u, 40503u, 2246822519u, 3266489917u};
__device__ unsigned mix(unsigned x) { return (x ^ (x >> 7)) * 2654435761u; }
__device__ void bump(unsigned &x, unsigned by) { x = x * 5u + by; }
__device__ unsigned place() { return threadIdx.x + 3u * threadIdx.y + 7u * blockIdx.x; }
__device__ unsigned warp_sum(unsigned v) {
  for (int o = warpSize / 2; o > 0; o >>= 1) v += __shfl_xor_sync(FULL, v, o);
  return v;
}
__device__ __forceinline__ unsigned warp_top(unsigned v) {
  for (int o = 1; o < 32; o *= 2) {
    unsigned other = __shfl_down_sync(FULL, v, o);
    v = other > v ? other : v;
  }
  return __shfl_sync(FULL, v, 0);
}
__device__ unsigned block_sum(unsigned v, unsigned t, unsigned nthreads) {
  static __shared__ unsigned part[32];
  unsigned lane = t & 31u, warp = t / 32u;
  if (t < 32u) part[t] = 0u;
  __syncthreads();
  v = warp_sum(v);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  unsigned total = 0;
  for (unsigned i = 0; i < (nthreads + 31u) / 32u; i++) total += part[i];
  __syncthreads();
  return total;
}
template <class F> __device__ unsigned call(unsigned v, F f) { return f(v) + 1u; }
template <class T, class F> __device__ T fold(T v, F f) {
  for (int o = 16; o > 0; o /= 2) v = f(v, __shfl_xor_sync(FULL, v, o));
  return v;
}
__shared__ unsigned flag;
__device__ inline int bits(unsigned a) {
  int r = 0, seen = 1;
  while (a > 0u) { r += a & 1u; a >>= 1; seen++; }
  return r + seen % 2;
}
static __device__ int few(const unsigned *a, unsigned n) {
  int sum = 0;
  for (unsigned i = 0; i < n % 5u; ++i) { if (a[i] & 8u) continue; sum += bits(a[i]); }
  return (sum + (int)blockIdx.x) % 4;
}
struct less {
  __device__ unsigned operator()(unsigned a, unsigned b) const { return a < b ? a : b; }
};
struct pair { unsigned a, b; };
__device__ pair twist(pair x, unsigned by) { return {x.b + by, x.a ^ (by >> 3)}; }
template <class T> __device__ T warp_total(T v) {
  for (int o = 16; o > 0; o /= 2) v += __shfl_xor_sync(FULL, v, o);
  return v;
}
template <class T, int N> __device__ T turned(T v) {
  T other = __shfl_sync(FULL, v, (int)((threadIdx.x + N) & 31u));
  return v * (T)N + other;
}
]]

local function generator(seed)
  local state = seed % 2147483646 + 1
  return function(n) -- 0 .. n - 1
    for _ = 1, 3 do state = state * 48271 % 2147483647 end
    return state % n
  end
end

--- Loops over a few neighbours, with the edges of an array: at places that follow
-- gx and gy, which are ints, what comes to `v` is asked for, clamped or wrapped
-- around.  `fresh` makes names, `line` takes a line of the kernel, `changes` may change the
-- argument that stands for its %s.
local function window(random, fresh, line, d, v, changes)
  local function pick(list) return list[random(#list) + 1] end
  local function bound()
    return pick { "n", "n * 9", "64", "90", "(n + 30)", "(int)(w % 90u)", "1000", "7", "n - 1" }
  end
  local from, to = random(6) - 3, random(4)
  local e, f, at = pick { "e", "f", fresh "e" }, fresh "f", fresh "at"
  local kind = pick { "int", "int", "int", "const int", "long", "unsigned" }
  local place = pick { "gx + %s", "%s + gx", "gx - %s", "gx + 2 * %s", "gx + %s - 1", "gx + %s * n",
    "gx - 3 + %s * 5", "gy + %s", "gx + gy * %s", "gx + %s * %s", "gx * %s" }:gsub("%%s", e)
  line(d, "for (int %s = %d; %s %s %s; %s) {", e, from, e, pick { "<", "<=" },
    random(4) == 0 and "n % 5" or tostring(to), pick { e .. "++", "++" .. e, e .. " += 2" })
  local two = random(3) == 0
  if two then
    line(d + 1, "for (int %s = -1; %s < 2; %s++) {", f, f, f)
    place = place .. " + " .. f
  end
  line(d + 1, "%s %s = %s;", kind, at, place)
  if kind ~= "const int" and random(9) == 0 then
    line(d + 1, pick { "%s += 3;", "%s--;", "(unsigned &)%s += 3u;", changes or "%s++;" }, at)
  end
  for _ = 1, 1 + random(2) do
    local k, to_clamp = random(11), pick { at, at, place, at .. " + 1", "(" .. at .. ")" }
    local low, high = pick { "0", "0", "-2", "n", "gy" }, bound()
    if k == 0 then
      local x = fresh "x"
      line(d + 1, "int %s = %s; %s += in[%s & 63] * 3u;", x, pick {
        ("min(max((int)(%s), %s), %s)"):format(to_clamp, low, high),
        ("min(max(%s, %s), %s)"):format(place, low, high) }, v, x)
    elseif k == 1 then
      line(d + 1, "%s ^= in[min(%s, max(%s, %s)) & 63] + 1u;", v, high, place, low)
    elseif k == 2 then line(d + 1, "%s += in[max(%s, %s) & 63] ^ 5u;", v, place, low)
    elseif k == 3 then
      line(d + 1, "%s += in[((%s + %s) %% %s) & 63] * 7u;", v, place, high, pick { "n", "64", "90",
        "(n + 30)", (high:gsub("90u%)", "90u + 1u)")) }) -- not 0
    elseif k == 4 then line(d + 1, "if (%s < %s || %s >= %s) continue;", at, low, at, high)
    elseif k == 5 then
      line(d + 1, "if (%s >= %s && %s < %s && gy < n) %s += in[%s & 63] + %s;", at, low, at, high,
        v, at, e)
    elseif k == 6 then
      line(d + 1, "%s += %s %s %s ? %s : in[%s & 63];", v, to_clamp, pick { "==", ">", "<", "<=" },
        high, e, at)
    elseif k == 7 then
      line(d + 1, "%s += %s != %s ? in[(%s) & 63] : 9u;", v, place, low, place)
    elseif k == 8 then
      line(d + 1, "{ float %s = 0.5f * %s; if (%s < %s) %s++; }", pick { e, fresh "g" }, v,
        e, high, v)
    elseif k == 9 then
      local x = fresh "l"
      line(d + 1, "int %s = %s > 0 ? %s - 1 : n - 1; %s += in[%s & 63];", x, at, at, v, x)
    else line(d + 1, "%s = %s * 3u + %s;", v, v, e)
    end
  end
  line(d, two and "} }" or "}")
end

--- A loop that counts by a variable of its own, in one of the ways that programs are written,
-- and what may keep it from being read as another: `v` adds up what the turns see.  It begins
-- at one of `starts`; `changes` may change the argument that stands for its %s.
local function counting(random, fresh, line, d, v, starts, changes)
  local function pick(list) return list[random(#list) + 1] end
  local at, own, s = fresh "at", fresh "own", fresh "step"
  local kind = pick { "int", "int", "int", "unsigned", "long long", "size_t", "const int" }
  local form = random(7)
  if kind == "const int" then form, kind = 6, "int" end
  local start = pick(starts)
  local bound = pick { "n * 20", "90", "(int)(w % 150u)", "n", "(n * 9)" }
  local step = pick { "blockDim.x * gridDim.x", "blockDim.x * gridDim.x", s, s, "n", "5",
    "__mul24(blockDim.x, gridDim.x)", at .. " / 2 + 1", "blockDim.x" }
  line(d, "{ %s %s = %s;", pick { "int", "const unsigned" }, s,
    pick { "gridDim.x * blockDim.x", "blockDim.x * gridDim.x", "7" })
  d = d + 1
  line(d, pick { "%s %s = %s;", "%s " .. fresh "z" .. " = 3, %s = %s;" }, kind, at, start)
  local before = random(16)
  if before == 0 then line(d, "%s += %s;", v, at)
  elseif before == 1 then line(d, "%s += 1;", at)
  elseif before == 2 then line(d, "auto f%s = [&] { return (unsigned)%s; };", at, at)
  elseif before == 3 then line(d, "%s &r%s = %s;", kind, at, at)
  elseif before == 4 then line(d, "if (%s & 1u) %s += 2;", v, at)
  elseif before == 5 and changes and kind ~= "long long" and kind ~= "size_t" then
    line(d, changes, at)
  end
  local seen = at
  if form == 0 then line(d, "while (%s < %s) {", at, bound)
  elseif form == 1 then line(d, "for (; %s < %s; %s += %s) {", at, bound, at, step)
  elseif form == 2 then
    line(d, "for (%s = %s; %s < %s; %s += %s) {", at, pick(starts), at, bound, at, step)
  elseif form == 3 then
    seen = own
    line(d, "for (%s %s = %s; %s < %s; %s += %s, %s = %s) {", pick { "int", "int", "long" }, own,
      at, at, bound, at, step, own, at)
  elseif form == 4 then line(d, "while (%s < %s) {", at, bound)
  elseif form == 5 then
    line(d, "for (; %s < %s; %s = %s + %s) {", at, bound, at, at, pick { s, "blockDim.x", "9" })
  else
    seen = own
    line(d, "for (int %s = %s; %s < %s; %s += %s) {", own, start, own, bound, own,
      (step:gsub("^at%d+", own)))
  end
  line(d + 1, "%s += in[%s & 63] * 3u + (unsigned)%s;", v, seen, seen)
  local inside = random(16)
  local skip = (form == 0 or form == 4) and "{ " .. at .. " += 3; continue; }" or "continue;"
  if inside == 0 then line(d + 1, "if (in[%s & 63] & 1u) %s", seen, skip)
  elseif inside == 1 then line(d + 1, "if (in[%s & 63] & 4u) break;", seen)
  elseif inside == 2 then line(d + 1, "if (%s & 1u) %s += 2;", v, seen)
  elseif inside == 3 then line(d + 1, "const int %s = 3; %s += %s;", s, v, s)
  elseif inside == 4 and form ~= 0 and form ~= 4 then
    line(d + 1, "const int %s = 3; %s += %s;", at, v, at)
  elseif inside == 5 then line(d + 1, "for (int %s = 0; %s < 3; %s++) %s ^= %s;", s, s, s, v, s)
  elseif inside == 6 and form < 5 then line(d + 1, "%s &q%s = %s; q%s += 1;", kind, at, at, at)
  elseif inside == 7 then
    line(d + 1, "int e%s = 1; while (e%s < 4) { %s ^= e%s; e%s += 2; }", at, at, v, at, at)
  end
  if before == 2 then line(d + 1, "%s ^= f%s();", v, at)
  elseif before == 3 then line(d + 1, "%s ^= r%s;", v, at) end
  if form == 0 then
    line(d + 1, "%s += %s;", at, step)
  elseif form == 4 then line(d + 1, "%s = %s + %s;", at, at, pick { s, "blockDim.x", "9" }) end
  line(d, "}")
  local after = random(10)
  if after == 0 then line(d, "%s ^= (unsigned)%s;", v, at)
  elseif after == 1 then line(d, "%s = 3; %s += %s;", at, v, at)
  elseif after == 2 then line(d, "for (%s = 0; %s < 3; %s += 1) %s ^= %s;", at, at, at, v, at)
  elseif after == 3 then line(d, "while (%s < 1200) { %s ^= %s; %s += 400; }", at, v, at, at) end
  line(d - 1, "}")
end

--- The text of kernel `name` from a seed, and whether a thread may leave early.
function M.kernel(name, seed)
  local random = generator(seed)
  local lines, names = {}, 0
  local V = { "a", "b", "c", "d" }
  local U = { "u", "w" }
  local early = random(4) == 0
  local alone = random(3) == 0 -- no warp's operations

  local function line(depth, ...)
    lines[#lines + 1] = ("  "):rep(depth) .. string.format(...)
  end
  local function fresh(stem)
    names = names + 1
    return stem .. names
  end
  local function pick(list) return list[random(#list) + 1] end

  local uniform, value
  function uniform(depth)
    local k = random(depth > 2 and 4 or 7)
    if k == 0 then return tostring(random(9)) .. "u" end
    if k == 1 then return pick(U) end
    if k == 2 then return "blockIdx.x" end
    if k == 3 then return "(unsigned)n" end
    if k == 4 then return ("(%s + %s)"):format(uniform(depth + 1), uniform(depth + 1)) end
    if k == 5 then return ("(%s ^ %s)"):format(uniform(depth + 1), uniform(depth + 1)) end
    return ("primes[%s & 3u]"):format(uniform(depth + 1))
  end
  function value(depth)
    local k = random(depth > 2 and 4 or 12)
    if k <= 1 then return pick(V) end
    if k == 2 then return "t" end
    if k == 3 then return uniform(2) end
    if k == 4 then return ("(%s + %s)"):format(value(depth + 1), value(depth + 1)) end
    if k == 5 then return ("(%s ^ %s)"):format(value(depth + 1), value(depth + 1)) end
    if k == 6 then return ("(%s * %s)"):format(value(depth + 1), value(depth + 1)) end
    if k == 7 then return ("mix(%s)"):format(value(depth + 1)) end
    if k == 8 then return ("(%s > %s ? %s : %s)"):format(value(depth + 1), value(depth + 1),
      value(depth + 1), value(depth + 1)) end
    if k == 9 then return ("p[%s & 3u]"):format(value(depth + 1)) end
    if k == 10 then return ("in[%s %% 64u]"):format(value(depth + 1)) end
    return pick { "gid", "q.a", "q.b", "place()", "(unsigned)threadIdx.x", "lane", "warp", "row",
      "column" }
  end

  local plain, common, warped

  --- What a thread does by itself.
  function plain(d, deep)
    local k = random(deep > 1 and 7 or 12)
    if k <= 1 then line(d, "%s %s %s;", pick(V), pick { "=", "+=", "^=", "*=" }, value(0))
    elseif k == 2 then line(d, "p[%s & 3u] %s %s;", value(1), pick { "=", "+=" }, value(0))
    elseif k == 3 then line(d, "q.%s = %s;", pick { "a", "b" }, value(0))
    elseif k == 4 then line(d, "bump(%s, %s);", pick(V), value(1))
    elseif k == 5 then line(d, "%s++;", pick(V))
    elseif k == 6 then
      local x = fresh "x"
      line(d, "unsigned %s = %s;", x, value(0))
      line(d, "%s ^= %s * 3u;", pick(V), x)
    elseif k == 7 then
      line(d, "if (%s & 1u) {", value(0))
      plain(d + 1, deep + 1)
      if random(2) == 0 then
        line(d, "} else {")
        plain(d + 1, deep + 1)
      end
      line(d, "}")
    elseif k == 8 then
      local i = pick { "i", "j" }
      line(d, "for (unsigned %s = 0; %s < (%s & 3u); %s++) {", i, i, value(1), i)
      plain(d + 1, deep + 1)
      line(d, "  %s += %s;", pick(V), i)
      if random(3) == 0 then line(d, "  if (%s & 2u) %s;", pick(V), pick { "break",
        "continue" }) end
      line(d, "}")
    elseif k == 10 then
      local v = pick(V)
      line(d, "for (int e = 0; e < %d; e++)", 1 + random(5))
      line(d, "  for (int f = 1; f <= %d; ++f) %s += in[(%s + e * 3 + f) & 63u] ^ e;",
        1 + random(4), v, value(1))
    elseif k == 11 then
      local v = pick(V)
      line(d, "%s ^= call(%s, [&](unsigned z) { if (z & 1u) return %s; %s += z; return %s; });", v,
        value(1), pick(V), pick(V), value(1))
    else
      local op = random(3)
      line(d, "atomic%s(&out[%du + %s %% 3u], %s);", ({ [0] = "Add", "Max", "Xor" })[op], 3 * op,
        value(1), value(1))
    end
  end

  --- What a warp does together.
  function warped(d, deep)
    local k = random(23)
    local v = pick(V)
    if alone then line(d, "%s += lane;", v)
    elseif k > 20 then halving(random, fresh, line, d, v, value, 0)
    elseif k == 17 then
      line(d, "%s ^= fold(%s, [](unsigned a, unsigned b) { return a * 3u ^ b; });", v, value(1))
    elseif k == 18 then line(d, "%s += fold(%s, less());", v, value(1))
    elseif k == 19 then
      local f = fresh "f"
      line(d, "auto %s = [&](unsigned z) { z += __shfl_xor_sync(FULL, z, %d); return z ^ %s; };",
        f, 1 + random(31), pick(V))
      line(d, "%s = %s(%s); %s += %s(%s);", v, f, value(1), pick(V), f, pick(V))
    elseif k == 11 then line(d, "%s += __popc(__match_any_sync(FULL, %s & 3u));", v, value(1))
    -- Who else is together with a lane the language leaves open, and the compiler, which
    -- may write a call twice: the lane itself is.
    elseif k == 12 then line(d, "%s += __activemask() >> lane & 1u;", v)
    elseif k == 13 then
      line(d, "if (lane < 16u) %s += __reduce_add_sync(0xffffu, %s);", v, value(1))
      line(d, "else %s ^= __ballot_sync(0xffff0000u, %s & 1u);", v, value(1))
    elseif k == 14 then line(d, "%s = %s + (__%s_sync(0xffu << (lane & 24u), %s & 1u) ? 5u : 0u);",
      v, pick(V), pick { "any", "all" }, value(1))
    elseif k == 15 then line(d, "%s %s warp_total%s(%s);", v, pick { "+=", "^=", "=" },
      pick { "", "<unsigned>" }, value(1))
    elseif k == 16 then line(d, "%s ^= turned<unsigned, %d>(%s);", v, 1 + random(40), value(1))
    elseif k == 0 then line(d, "%s += __shfl_xor_sync(FULL, %s, %d);", v, pick(V), 2 ^ random(5))
    elseif k == 1 then line(d, "%s ^= __shfl_down_sync(FULL, %s, %s & 15u);", v, value(1),
      uniform(1))
    elseif k == 2 then line(d, "%s = __shfl_up_sync(FULL, %s, %d, %d) + %s;", v, value(1),
      random(9), 2 ^ (2 + random(4)), pick(V))
    elseif k == 3 then line(d, "%s = __shfl_sync(FULL, %s, (int)(%s & 31u));", v, value(1),
      value(1))
    elseif k == 4 then line(d, "%s += __ballot_sync(FULL, %s & 1u);", v, value(1))
    elseif k == 5 then line(d, "if (__%s_sync(FULL, %s & 3u)) %s += 9u;", pick { "any", "all" },
      value(1), v)
    elseif k == 20 then
      line(d, "if ((__shfl_sync(FULL, %s, %d) ^ %s) & 2u) %s += %s;", value(1), random(32),
        value(1), v, value(1))
      if random(2) == 0 then line(d, "else { %s++; s[t] = %s; }", pick(V), v) end
    elseif k == 6 then line(d, "%s = __reduce_%s_sync(FULL, %s);", v, pick { "add", "min", "max",
      "and", "or", "xor" }, pick(V))
    elseif k == 7 then line(d, "%s += warp_%s(%s);", v, pick { "sum", "top" }, value(1))
    elseif k == 8 then
      line(d, "{ unsigned long long wide = ((unsigned long long)%s << 32) | %s;", value(1),
        value(1))
      line(d, "  wide = __shfl_xor_sync(FULL, wide, %d); %s ^= (unsigned)(wide >> 17); }", 1 +
        random(31), v)
    elseif k == 9 and deep < 2 then
      line(d, "if (warp == %s %% 3u) {", uniform(1))
      warped(d + 1, deep + 1)
      plain(d + 1, 1)
      warped(d + 1, deep + 2)
      line(d, "}")
    elseif k == 10 and deep < 2 then
      local r = fresh "r"
      line(d, "for (unsigned %s = warp; %s < %s %% 7u; %s += 2u) {", r, r, uniform(1), r)
      warped(d + 1, deep + 2)
      line(d, "  %s += %s;", v, r)
      line(d, "}")
    else line(d, "__syncwarp();") end
  end

  --- A comparison that most rows of threads have one value of.
  local function edge()
    local at = pick { "gx", "gx - 1", "gx", "gy", "gy + 2", "gc", "gid - 5u", "gid + 4294967290u",
      "blockIdx.x * blockDim.x + threadIdx.x", "gx + (int)(w % 7u)", "(threadIdx.x + u)",
      "5 + gx", "gl", "gl - 4" }
    local bound = pick { "n", "64", "(int)(w % 90u)", "u % 90u", "60.5f", "n * 11 - 3", "n", "1",
      "(int)blockDim.x", "gridDim.x * blockDim.x", "gy" }
    if random(4) == 0 then at, bound = bound, at end
    return at .. pick { " < ", " <= ", " > ", " >= ", " < " } .. bound
  end

  --- Barriers under conditions that are the same for all threads, and take some
  -- looking to be known for that.
  local function controlled(d, deep)
    local kind, v, x, y = random(14), pick(V), fresh "x", fresh "y"
    local function few() return ("(int)(%s %% 4u)"):format(uniform(1)) end
    local function body(more)
      for _ = 1, 1 + random(2) do common(d + 1, deep + 1, true) end
      if more then line(d + 1, more) end
      if random(4) == 0 then
        line(d + 1, "if ((%s + (unsigned)%s) %% 3u == 0u) continue;", uniform(1), x)
        common(d + 1, deep + 1, true)
      end
    end
    --- Changes variable x, or another that all threads share.
    local function changes(e)
      local what = random(8) == 0 and pick(U) or x
      line(e, "%s %s %s;", what, pick { "=", "+=", "^=" }, what == x and few() or uniform(1))
      if random(3) == 0 then plain(e, 1) end
    end
    if kind <= 2 then
      line(d, "int %s = %d;", x, random(3))
      line(d, "if (%s & 1u) {", uniform(0))
      changes(d + 1)
      if random(3) == 0 then
        line(d, "  if (%s & 2u) { %s++; %s += 3u; } else { { %s = 2; } }", uniform(0), x, v, x)
      end
      if random(2) == 0 then
        line(d, "} else {")
        changes(d + 1)
      end
      line(d, "}")
      if kind == 0 then
        line(d, "int %s = %s; if (%s & 1u) %s += 2;", y, x, value(1), y)
        line(d, "%s += (unsigned)%s;", v, y)
      end
      line(d, pick { "if (%s > 1) {", "if (%s & 1) {", "if (!%s) {" }, x)
      common(d + 1, deep + 1, false)
      line(d, "}")
    elseif kind <= 4 then
      line(d, "int %s = 0;", x)
      line(d, "for (unsigned i = %s & 1u; i < %s %% 9u; i++) {", uniform(1), uniform(1))
      line(d, "  %s", pick { "if (in[i] & 4u) continue;", "if (in[i] & in[i + 1] & 12u) break;",
        "if (in[i] & 4u) { " .. x .. " += 2; " .. v .. "++; }", "" })
      line(d, "  %s += in[i] & 1u;", x)
      line(d, "}")
      line(d, "for (int %s = 0; %s < %s %% 4; %s++) {", y, y, x, y)
      x = y
      body()
      line(d, "}")
    elseif kind == 5 then
      line(d, "int %s = %d;", x, random(2))
      line(d, pick { "while (%s++ < %s) {", "while (++%s < %s) {", "for (; %s++ <= %s;) {" }, x,
        few())
      body(random(3) == 0 and ("if (%s & 1u) %s++;"):format(uniform(1), x))
      line(d, "}")
    elseif kind == 6 then
      line(d, pick { "unsigned char %s = %s;", "unsigned %s = %s;", "int %s = %s;" }, x, few())
      line(d, pick { "while (%s-- > 0) {", "for (; %s-- > 0;) {" }, x)
      body()
      line(d, "}")
      line(d, "%s += %s;", v, x)
    elseif kind == 7 then
      line(d, "int %s = %d;", x, random(2))
      line(d, "do {")
      body()
      line(d, pick { "} while (++%s < %s);", "} while (%s++ < %s);" }, x, few())
    elseif kind == 8 then
      line(d, "int %s, %s;", x, y)
      if random(2) == 0 then line(d, "%s = %s = %s, %s++;", x, y, few(), v) end
      line(d, "for (%s = 0, %s = %s; %s < %s; %s++, %s += %s) {", x, y, few(), x, few(), x, y, x)
      body(("%s ^= (unsigned)%s;"):format(v, y))
      line(d, "}")
      line(d, "%s += %s * 3u;", pick(V), x)
    elseif kind == 9 then
      line(d, "bool %s = true; int %s = 0;", y, x)
      line(d, "while (%s) {", y)
      common(d + 1, deep + 1, true)
      line(d, "  if ((%s + (unsigned)%s) %% 3u == 0u) %s = false;", uniform(1), x, y)
      line(d, "  if (%s == 3) break;", pick { x .. "++", "++" .. x })
      common(d + 1, deep + 1, true)
      line(d, "}")
    elseif kind == 10 then
      line(d, "int %s = %s;", x, pick { ("few(in, %s)"):format(uniform(1)),
        ("bits(%s) %% 4"):format(uniform(1)), ("min(few(in, %s), 2)"):format(uniform(1)) })
      line(d, "for (int %s = 0; %s < %s; %s++) {", y, y, x, y)
      body()
      line(d, "}")
      line(d, "%s += few(in, %s);", v, value(1))
    elseif kind == 11 then
      line(d, "enum %s { %s = %d, last%s = %s + 1 };", pick { "", "kind" .. x }, x, random(3), x, x)
      line(d, "constexpr int %s[3] = {%d, %s, last%s};", y, random(3), x, x)
      local i = fresh "i"
      line(d, "for (int %s = 0; %s < %s[%s %% 3u]; %s++) {", i, i, y, uniform(1), i)
      body()
      line(d, "}")
      line(d, "%s += %s[%s %% 3u];", v, y, value(1))
    elseif kind == 12 then
      line(d, "__syncthreads();")
      line(d, "if (t == 0u) flag = %s;", value(1))
      line(d, "__syncthreads();")
      line(d, "if (flag & 1u) {")
      common(d + 1, deep + 1, false)
      line(d, "}")
    else
      line(d, "%s %s = %s;", pick { "auto", "const auto" }, x, few())
      line(d, "for (auto %s = 0; %s < %s; %s++) {", y, y, x, y)
      common(d + 1, deep + 1, true)
      line(d, "}")
      line(d, "%s += %s;", v, x)
    end
  end

  --- What the block does together.
  function common(d, deep, inside)
    if deep < 2 and random(7) == 0 then return controlled(d, deep) end
    local k = random(deep > 1 and 8 or alone and 40 or 36)
    local v = pick(V)
    if k == 33 and random(2) == 0 then
      window(random, fresh, line, d, v, "bump((unsigned &)%s, 3u);")
    elseif k >= 34 then
      local e, most = fresh "e", 1 + random(40)
      local at = pick { "gx", "gy", "t", "gid", "(int)u", "gx * 2", "(int)row", "gy - 3" }
      line(d, "for (int %s = %d; %s < %d; %s) {", e, random(3), e, 4 + most, pick {
        e .. " += " .. 1 + random(8), e .. "++", "++" .. e })
      local own = e
      if random(3) == 0 then
        own = fresh "f"
        line(d, "  const int %s = %s + %s;", own, at, e)
      end
      line(d, "  if (%s %s + %s < %s) {", pick { edge() .. " &&", "", edge() .. " ||" }, at, e,
        pick { "n", "64", "(int)(w % 90u)", "gy", "(int)blockDim.x" })
      line(d, pick { "    s[t] += %s;", "    atomicAdd(&out[%s %% 3u], 1u);",
        "    s[t] ^= in[%s & 63u];", "    " .. v .. " += %s;",
        "    { unsigned own = %s; s[t] += own * 3u; }" },
        pick { "(unsigned)" .. own, "(unsigned)(gx + " .. own .. ")", value(1) })
      line(d, random(3) == 0 and "  } else { s[t] += u; }" or "  }")
      if random(3) == 0 then
        line(d, "  %s", pick { "s[t] += u;", "if (t > 9000u) continue;", v .. "++;" })
      end
      line(d, "}")
      line(d, "%s ^= s[t];", pick(V))
    elseif k == 24 or k == 25 then
      local axis = k == 24 and "y" or "z"
      line(d, "for (unsigned r = threadIdx.%s; r < %du; r += blockDim.%s) {", axis, 1 + random(9),
        axis)
      line(d, "  const unsigned from = r * 5u + %s;", uniform(1))
      line(d, "  for (int at = threadIdx.x%s; at < (int)(%s %% 50u); at += blockDim.x) {",
        pick { "", " + 2", " + r" }, uniform(1))
      line(d, "    int half = at / 2 - 1;")
      line(d, "    %s += half >= 0 ? in[(from + half) & 63u] : r;", v)
      line(d, "    if (half > 3) %s ^= (unsigned)at;", pick(V))
      line(d, "  }")
      line(d, "}")
    elseif k == 26 then
      line(d, "for (int at = threadIdx.y * blockDim.x + threadIdx.x; at < (int)(%s %% 90u); " ..
        "at += blockDim.x * blockDim.y) %s += in[at & 63] + (unsigned)at / 7u;", uniform(1), v)
    elseif k == 27 then
      line(d, "for (unsigned at = column; at < %s %% 90u + row; at += 32u) " ..
        "%s += in[(row * 8u + at) & 63u];", uniform(1), v)
      warped(d, 1)
    elseif k == 30 then line(d, "%s += %s && %s ? in[gx & 63] : %s;", v, edge(), edge(), value(1))
    elseif k == 31 then line(d, "s[t] = %s ? %s : 0u; %s ^= s[t];", edge(), value(1), v)
    elseif k == 32 then
      line(d, "if (%s || !(%s)) %s += %s; else %s ^= gx;", edge(), edge(), v, value(1), pick(V))
      if random(2) == 0 then line(d, "bool %s = %s; %s += %s;", "in" .. names, edge(), v,
        "in" .. names) names = names + 1 end
    elseif k == 33 then
      line(d, "%s += %s ? %s : 3u;", v, edge(), value(1))
      warped(d, 1)
    elseif k == 28 and inside and early then line(d, "if (row %% 5u == %du) return;", random(5))
    elseif k == 0 or k == 1 then
      line(d, "s[t] = %s;", value(0))
      line(d, "__syncthreads();")
      line(d, "%s += s[(t + %s) %% nthreads];", v, uniform(1))
      line(d, "__syncthreads();")
    elseif k == 2 then
      local op, at = pick { "Add", "Xor", "Or", "And", "Max", "Min", "Sub" }, "bins"
      if random(3) == 0 then
        at = fresh "bin"
        line(d, "unsigned *%s = %s;", at, pick { "bins", "&bins[0]", "bins + 0" })
      end
      line(d, pick { "atomic%s(&%s[%s & 15u], %s);", "atomic%s(%s + (%s & 15u), %s);" }, op, at,
        value(1), value(1))
      line(d, "__syncthreads();")
      line(d, "%s ^= bins[%s & 15u];", v, value(1))
      line(d, "__syncthreads();")
    elseif k == 3 then line(d, "%s = %s;", pick(U), uniform(0))
    elseif k == 4 then line(d, "%s += __syncthreads_%s(%s & 1u);", v, pick { "count", "or",
      "and" }, value(1))
    elseif k == 5 then warped(d, 0)
    elseif k == 6 then plain(d, 0)
    elseif k == 7 then
      if early or alone then plain(d, 0)
      else line(d, "%s ^= block_sum(%s, t, nthreads);", v, value(1)) end
    elseif k == 8 or k == 9 then
      local i = pick { "i", "k" }
      line(d, "for (int %s = 0; %s < (int)(%s %% 4u); %s++) {", i, i, uniform(1), i)
      for _ = 1, 1 + random(2) do common(d + 1, deep + 1, true) end
      line(d, "  %s += (unsigned)%s;", v, i)
      line(d, "}")
    elseif k == 10 then
      line(d, "if ((%s & 1u) == 0u) {", uniform(0))
      for _ = 1, 1 + random(2) do common(d + 1, deep + 1, inside) end
      if random(2) == 0 then
        line(d, "} else {")
        common(d + 1, deep + 1, inside)
      end
      line(d, "}")
    elseif k == 11 then
      local i = fresh "m"
      line(d, "int %s = %d;", i, random(3))
      line(d, random(2) == 0 and "while (%s < 3) {" or "do {", i)
      local loop = lines[#lines]
      line(d, "  %s++;", i)
      common(d + 1, deep + 1, true)
      if random(2) == 0 then line(d, "  if ((%s + (unsigned)%s) %% 3u == 0u) %s;", uniform(1), i,
        pick { "break", "continue" }) end
      common(d + 1, deep + 1, true)
      line(d, loop:find "do {" and "} while (%s < 3);" or "}", i)
    elseif k == 12 and random(2) == 0 then -- of arithmetic alone
      local w = pick(V)
      line(d, "for (int e = %d; e %s n; %s) {", random(3), pick { "<", "<=" },
        pick { "e++", "++e", "e += 2" })
      line(d, "  %s = %s * 5u + ((%s >> 3) ^ (unsigned)e);", v, v, w)
      if random(2) == 0 then line(d, "  if (%s & 4u) %s += %s;", v, w, pick(U)) end
      if random(2) == 0 then line(d, "  unsigned z = %s ^ 9u; %s += z %% 7u;", v, w) end
      if random(4) == 0 then line(d, "  if (%s == 77u) break;", v) end
      line(d, "}")
    elseif k == 12 then
      line(d, "for (unsigned at = t; at < %s %% 97u; at += nthreads) %s += in[at %% 64u] ^ at;",
        uniform(0), v)
    elseif k == 13 and random(2) == 0 then
      counting(random, fresh, line, d, v, { "t", "threadIdx.x", "gx", "lane", "gid",
        "threadIdx.x + blockIdx.x * blockDim.x", "u % 99u", "gx + 3" }, "bump((unsigned &)%s, 3u);")
    elseif k == 13 then
      line(d, "for (int at = threadIdx.x; at < (int)(%s %% 97u); at += blockDim.x) { " ..
        "%s += in[at %% 64] * 3u; q.a ^= %s; }",
        uniform(0), v, value(1))
    elseif k == 14 then
      line(d, "if (t == 0u) word = %s;", value(1))
      line(d, "__syncthreads();")
      line(d, "%s = word ^ %s;", pick(U), uniform(1))
      line(d, "__syncthreads();")
    elseif k == 15 then
      line(d, "for (unsigned at = lane; at < %s %% 97u; at += 32u) %s += in[at %% 64u] ^ at;",
        uniform(0), v)
      warped(d, 1)
    elseif k == 18 then
      local f = fresh "f"
      line(d, "auto %s = [&](unsigned z) { %s += z; return z * 3u + %s; };", f, pick(V), pick(V))
      line(d, "%s = %s(%s);", v, f, value(1))
      line(d, "__syncthreads();")
      line(d, "%s ^= %s(%s);", pick(V), f, value(1))
    elseif k == 19 then
      local y = fresh "auto"
      line(d, "auto %s = %s;", y, value(0))
      line(d, "__syncthreads();")
      line(d, "%s += %s;", v, y)
    elseif k == 20 then
      local r = fresh "ref"
      line(d, "unsigned &%s = p[%s & 3u];", r, value(1))
      line(d, "%s += %s;", r, value(1))
      line(d, "__syncthreads();")
      line(d, "%s ^= %s;", r, value(1))
    elseif k == 21 then
      local i = fresh "o"
      line(d, "int %s = 0;", i)
      line(d, "do {")
      line(d, "  %s++;", i)
      common(d + 1, deep + 1, true)
      line(d, "} while (__syncthreads_or(%s & 1u) * 2 > %s);", value(1), i)
    elseif k == 22 then line(d, "q = twist(q, %s);", value(0))
    elseif k == 23 then
      if inside and early then line(d, "if (%s %% 11u == %du) return;", pick { "gid", "a" },
        random(11))
      else line(d, "if ((%s & 15u) == 3u) return;", uniform(1)) end
    elseif k == 16 then
      line(d, "if (t < %s %% 70u) s[t] += %s;", uniform(0), value(1))
      line(d, "__syncthreads();")
    else
      local x = fresh "y"
      line(d, "unsigned %s = %s;", x, random(3) == 0 and pick(U) .. "++" or value(0))
      line(d, "__syncthreads();")
      line(d, "%s += %s;", v, x)
    end
  end

  line(0, 'extern "C" __global__ void %s(unsigned *out, const unsigned *in, int n) {', name)
  line(1, "__shared__ unsigned s[1024], bins[16], word;")
  line(1, "const unsigned nthreads = blockDim.x * blockDim.y * blockDim.z;")
  line(1, "unsigned t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);")
  line(1, "unsigned gid = blockIdx.x * nthreads + t, lane = t & 31u, warp = t / 32u;")
  line(1, "const unsigned row = (blockIdx.x * blockDim.x + threadIdx.x) / 32u,")
  line(1, "  column = (blockIdx.x * blockDim.x + threadIdx.x) & 31u;")
  line(1, "const int bx = blockIdx.x, tx = threadIdx.x;")
  line(1, "int gx = %s, gy = blockIdx.x + threadIdx.y;", pick {
    "blockIdx.x * blockDim.x + threadIdx.x", "bx * blockDim.x + tx",
    "__mul24(bx, blockDim.x) + tx" })
  line(1, "const unsigned char gc = gx; const long gl = gx;")
  line(1, "unsigned a = in[gid %% 64u], b = gid * 3u, c = t + 1u, d = 7u, p[4] = {1u, t, gid, 5u};")
  line(1, "unsigned u = blockIdx.x + 2u, w = (unsigned)n;")
  line(1, "pair q = {t, gid};")
  line(1, "s[t] = t;")
  line(1, "if (t == 0u) word = flag = blockIdx.x;")
  line(1, "for (unsigned i = t; i < 16u; i += nthreads) bins[i] = 0u;")
  line(1, "__syncthreads();")
  if random(5) == 0 then line(1, "n += (int)blockIdx.x;") end
  if early then
    line(1, pick { "if (gid %% 5u == 2u) return;", "if (row == 1u) return;",
      "if (t >= nthreads - 3u) { out[9] = 1u; return; }",
      "if (blockIdx.x == 1u) return;" })
  end
  for _ = 1, 3 + random(5) do common(1, 0, false) end
  line(1, "out[16u + gid * 4u] = a ^ p[0]; out[17u + gid * 4u] = b ^ p[1] ^ lane;")
  line(1, "out[18u + gid * 4u] = c ^ p[2] ^ warp;")
  line(1, "out[19u + gid * 4u] = d ^ p[3] ^ q.a ^ q.b ^ u ^ w;")
  line(0, "}")
  return table.concat(lines, "\n")
end

--- What all kernels of a source without barriers share.
M.plain_prelude = [[
static const unsigned primes[4] = {2654435761u, 40503u, 2246822519u, 3266489917u};
__device__ unsigned mix(unsigned x) { return (x ^ (x >> 7)) * 2654435761u; }
__device__ void bump(unsigned &x, unsigned by) { x = x * 5u + by; }
__device__ unsigned turns(unsigned x) {
  unsigned s = x;
  for (unsigned i = 0; i < (x & 7u); i++) s += primes[i & 3u] ^ i;
  return s;
}
struct pair { unsigned a, b; };
__device__ unsigned total(const unsigned *in, unsigned n, unsigned x) {
  unsigned s = x;
  for (unsigned k = 0; k < n % 13u; k++) s += in[(k + x) & 63u] * (k | 1u);
  return s;
}
__device__ void twist(unsigned &x, unsigned n, unsigned by) {
  for (int k = n % 11u; k > 0; k--) { x = x * 3u + by; if (x & 64u) x ^= k; }
}
template <class T> __device__ T sum_of(const T *in, T x, int n = 9) {
  if (x < 5u) return x;
  T s = 0;
  for (int k = 0; k < (n & 15); ++k) s += in[(x + k) & 63u];
  return s;
}
__device__ unsigned both(const unsigned *in, unsigned n, unsigned x) {
  unsigned s = 0;
  for (unsigned i = n & 3u; i < 6u + (n & 15u); i += 2u) s ^= total(in, i, x) + turns(x ^ i);
  return s;
}
__device__ unsigned first(const unsigned *in, unsigned n, unsigned x) {
  unsigned k = 0;
  for (; k < n % 12u; k++) if (in[k] % 5u == x % 5u) break;
  return k;
}
]]

--- The text of kernel `name` from a seed, without barriers.  A thread reads and
-- writes words of its own, and adds to words of all.
function M.plain_kernel(name, seed)
  local random = generator(seed)
  local lines, names = {}, 0
  local V, U = { "a", "b", "c" }, { "u", "w" }
  local function line(depth, ...)
    lines[#lines + 1] = ("  "):rep(depth) .. string.format(...)
  end
  local function pick(list) return list[random(#list) + 1] end
  local scope = {} -- loop variables that may be named

  local uniform, value
  function uniform(depth)
    local k = random(depth > 2 and 4 or 7)
    if k == 0 then return tostring(random(40)) .. "u" end
    if k == 1 then return #scope > 0 and pick(scope) or pick(U) end
    if k == 2 then return pick { "blockIdx.y", "threadIdx.y", "blockIdx.z", "gridDim.x", "y" } end
    if k == 3 then return pick { "(unsigned)n", pick(U) } end
    if k == 4 then return ("(%s + %s)"):format(uniform(depth + 1), uniform(depth + 1)) end
    if k == 5 then return ("(%s ^ %s)"):format(uniform(depth + 1), uniform(depth + 1)) end
    return ("in[%s & 63u]"):format(uniform(depth + 1))
  end
  function value(depth)
    local k = random(depth > 2 and 4 or 11)
    if k <= 1 then return pick(V) end
    if k == 2 then return "i" end
    if k == 3 then return uniform(2) end
    if k == 4 then return ("(%s + %s)"):format(value(depth + 1), value(depth + 1)) end
    if k == 5 then return ("(%s ^ %s)"):format(value(depth + 1), value(depth + 1)) end
    if k == 6 then return ("(%s * %s)"):format(value(depth + 1), value(depth + 1)) end
    if k == 7 then return ("%s(%s)"):format(pick { "mix", "turns" }, value(depth + 1)) end
    if k == 8 then return ("(%s > %s ? %s : %s)"):format(value(depth + 1), value(depth + 1),
      value(depth + 1), value(depth + 1)) end
    if k == 9 then return ("in[%s %% 64u]"):format(value(depth + 1)) end
    return pick { "q.a", "q.b", "own[1]", "own[2]", "x3", "(unsigned)far",
      "(unsigned)((size_t)blockIdx.x * blockDim.x + threadIdx.x)" }
  end

  local function counts(d)
    local function fresh(stem)
      names = names + 1
      return stem .. names
    end
    counting(random, fresh, line, d, pick(V), { "x", "x", "threadIdx.x + blockIdx.x * blockDim.x",
      "blockIdx.x * blockDim.x + threadIdx.x", "x + 3u", "y", "u % 9u" },
      "bump((unsigned &)%s, 3u);")
  end

  local statements
  local function loop(d, bound, deep)
    names = names + 1
    local i = #scope == 0 and pick { "k" .. names, "j" } or "k" .. names
    local form = random(4)
    if form == 0 then line(d, "for (int %s = 0; %s < (int)(%s %% 23u); %s++) {", i, i, bound, i)
    elseif form == 1 then line(d, "for (unsigned %s = %s %% 5u; %s <= 17u; %s += 3u) {", i, bound,
      i, i)
    elseif form == 2 then line(d, "for (int %s = 18, m%d = 1; %s > (int)(%s %% 19u); %s--) {", i,
      names, i, bound, i)
    else line(d, "for (unsigned %s = 0u; %s < %s %% 31u; ++%s) {", i, i, bound, i) end
    scope[#scope + 1] = ("(unsigned)%s"):format(i)
    statements(d + 1, 1 + random(2), deep + 1)
    scope[#scope] = nil
    if random(8) == 0 then line(d + 1, "if (%s %% 7u == 0u) %s;", random(2) == 0 and value(1) or
      uniform(1), pick { "break", "continue" }) end
    if random(40) == 0 then line(d + 1, "if (%s == 77u) return;", value(1)) end
    line(d, "}")
  end
  function statements(d, count, deep)
    for _ = 1, count do
      local k = random(deep > 2 and 9 or 20)
      if k <= 2 then line(d, "%s %s %s;", pick(V), pick { "=", "+=", "^=", "*=" }, value(0))
      elseif k == 3 then line(d, "q.%s = %s;", pick { "a", "b" }, value(0))
      elseif k == 4 then line(d, "bump(%s, %s);", pick(V), value(1))
      elseif k == 5 then line(d, "own[%d] %s %s;", random(3), pick { "=", "+=", "^=" }, value(0))
      elseif k == 6 then line(d, "%s %s %s;", pick(U), pick { "=", "+=" }, uniform(0))
      elseif k == 7 then line(d, "atomic%s(&all[%d], %s);", pick { "Add", "Xor" }, random(2) + 8,
        value(1))
        lines[#lines] = lines[#lines]:gsub("atomicAdd%(&all%[%d+%]", "atomicAdd(&all[8]")
          :gsub("atomicXor%(&all%[%d+%]", "atomicXor(&all[9]")
      elseif k == 8 and random(2) == 0 then
        names = names + 1
        line(d, "unsigned x%d = x + %s;", 10 + names, uniform(2))
        line(d, "if (x%d > %du && x%d < (unsigned)n * 9u) %s += in[x%d & 63u];", 10 + names,
          random(40), 10 + names, pick(V), 10 + names)
      elseif k == 8 then
        names = names + 1
        line(d, "unsigned x%d = %s;", 10 + names, value(0))
        line(d, "%s ^= x%d * 3u;", pick(V), 10 + names)
      elseif k <= 12 then loop(d, uniform(1), deep)
      elseif k == 13 then loop(d, value(1), deep)
      elseif k == 14 then
        line(d, "if (%s & 1u) {", random(2) == 0 and value(0) or uniform(0))
        statements(d + 1, 1 + random(2), deep + 1)
        if random(2) == 0 then
          line(d, "} else {")
          statements(d + 1, 1, deep + 1)
        end
        line(d, "}")
      elseif k >= 18 and random(3) == 0 then
        line(d, "twist(%s, %s, %s);", pick(V), uniform(1), value(1))
      elseif k >= 18 then
        line(d, "%s %s %s(in, %s) + %s;", pick(V), pick { "=", "+=", "^=" },
          pick { "total", "sum_of", "sum_of<unsigned>", "both", "first" },
          pick { uniform(1) .. ", " .. value(1), value(1) .. ", " .. uniform(1) }, uniform(1))
      elseif k == 15 and random(2) == 0 then counts(d)
      elseif k == 15 then
        names = names + 1
        line(d, "int m%d = %d;", names, random(3))
        local m = names
        line(d, random(2) == 0 and "while (m%d < 4) {" or "while (m%d++ < 3) {", m)
        statements(d + 1, 1, deep + 1)
        line(d, "  m%d++;", m)
        line(d, "}")
      else
        line(d, "{ unsigned &r = %s; r += %s; }", pick(V), value(1))
      end
    end
  end

  line(0, 'extern "C" __global__ void %s(unsigned *all, const unsigned *in, int n) {', name)
  line(1, "unsigned x = blockIdx.x * blockDim.x + threadIdx.x;")
  line(1, pick { "size_t far = (size_t)blockIdx.x * blockDim.x + threadIdx.x;",
    "const long far = ((long)blockDim.x * blockIdx.x) + threadIdx.x;" })
  line(1, "unsigned y = blockIdx.y * blockDim.y + threadIdx.y;")
  line(1, "unsigned i = (y + blockIdx.z * gridDim.y * blockDim.y) * gridDim.x * blockDim.x + x;")
  local guard = random(4)
  if guard == 0 then line(1, "if (x >= (unsigned)n * 7u) return;")
  elseif guard == 1 then line(1, "if (x %% 5u == 3u && x > 60u) { return; }")
  elseif guard == 2 then line(1, "if (x > 2u && y < 5u && x < 90u) {") end
  line(1, "unsigned *own = all + 16 + i * 4u;")
  line(1, "unsigned a = in[i %% 64u], b = i * 3u, c = y + 1u;")
  line(1, "unsigned u = blockIdx.y + 2u, w = (unsigned)n;")
  line(1, "const unsigned x3 = x * 3u;")
  line(1, "pair q = {i, 7u};")
  statements(1, 1 + random(2), 1)
  if random(4) == 0 then counts(1) else loop(1, uniform(1), 0) end
  statements(1, random(2), 1)
  line(1, "own[0] += a ^ q.a; own[1] ^= b + u; own[2] += c ^ w; own[3] = q.b;")
  if guard == 2 then line(1, "}") end
  line(0, "}")
  return table.concat(lines, "\n")
end

--- The text of kernel `name` from a seed, without barriers, whose threads look at
-- their neighbours.  `references`: the function bump of the prelude may be called.
function M.window_kernel(name, seed, references)
  local random = generator(seed)
  local lines, names = {}, 0
  local function line(depth, ...)
    lines[#lines + 1] = ("  "):rep(depth) .. string.format(...)
  end
  local function pick(list) return list[random(#list) + 1] end
  local function fresh(stem)
    names = names + 1
    return stem .. names
  end
  line(0, 'extern "C" __global__ void %s(unsigned *all, const unsigned *in, int n) {', name)
  local dim = pick { "blockDim.x", "blockDim.x", "20" }
  local starts = { "gx", "gx", "i", "gx + 3", "gy", "threadIdx.x + blockIdx.x * blockDim.x",
    "threadIdx.x" }
  if random(3) == 0 then
    line(1, "int tx = threadIdx.x, bx = %s;", pick { "blockIdx.x", "blockIdx.x + 1",
      "blockIdx.x * 3 - 2", "__mul24(blockIdx.x, 3)" })
    line(1, "%s gx = %s;", pick { "int", "int", "const int", "unsigned", "short" }, pick {
      "bx * blockDim.x + tx", "tx + blockDim.x * bx", "bx * blockDim.x + threadIdx.x - 7",
      "__mul24(bx, blockDim.x) + tx", "(blockIdx.y * gridDim.x + bx) * blockDim.x + tx",
      "1 + bx * blockDim.x + tx", "(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + tx + 1",
      "bx * (blockDim.x * 2) + tx", "(bx * blockDim.x + tx) * 2",
      "bx * blockDim.x * 100000000u + tx" })
    -- From -2^31 to n a loop takes minutes.
    if lines[#lines]:find "100000000u" then starts = { "i", "gy", "threadIdx.x" } end
  else
    line(1, "%s gx = blockIdx.x * %s + threadIdx.x;", pick { "int", "int", "const int" }, dim)
  end
  line(1, "int gy = blockIdx.y * blockDim.y + threadIdx.y;")
  line(1, "unsigned i = gridDim.x * blockDim.x * (gy + blockIdx.z * gridDim.y * blockDim.y)")
  line(1, "  + blockIdx.x * blockDim.x + threadIdx.x;")
  line(1, "unsigned w = n * 5u, a = in[i & 63u], b = i;")
  line(1, pick { "if (gx >= n * 9 || gy >= n) return;", "if (gx > n && gy > 3) return;",
    "if (gx %% 5 == 3) return;", "b += 2u;" })
  if random(2) == 0 then
    line(1, "int left = %s, right = %s;", pick { "(gx + n - 1) % n", "gx == 0 ? n - 1 : gx - 1",
      "gx > 0 ? gx - 1 : n * 9 - 1", "max(gx - 1, 0)", "(gx - 1) % 90" },
      pick { "(gx + 1) % (n * 9)", "gx == n - 1 ? 0 : gx + 1", "gx + 1 < 64 ? gx + 1 : 0",
        "min(gx + 1, n * 9 - 1)", "1 + gx >= n * 9 ? 0 : gx + 1" })
    line(1, "a += in[left & 63] * 3u + in[right & 63];")
  end
  local changes = references and "bump((unsigned &)%s, 3u);"
  for _ = 1, 1 + random(3) do
    window(random, fresh, line, 1, pick { "a", "b" }, changes)
  end
  if random(3) == 0 then
    counting(random, fresh, line, 1, pick { "a", "b" }, starts, changes)
  end
  line(1, "all[i] = a; all[8192u + i] = b;")
  line(0, "}")
  return table.concat(lines, "\n")
end

return M
