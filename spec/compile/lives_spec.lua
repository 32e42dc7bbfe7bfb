-- Variables that are given values anew, and conditions by which threads leave, on the
-- host device: what loops make of them gives what fibers, which leave the text as it is,
-- give.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("variables that are given values anew", function()
    pending "as loops are the host device's"
  end)
end

local shapes = { { 2, 64 }, { { 3, 2 }, { 37, 3 } }, { 1, 1 }, { 2, 256 } }

local function compare(modules, name, text)
  local input = forms.numbers(1024)
  for i, shape in ipairs(shapes) do
    forms.same(modules, name, shape[1], shape[2], text, 1024, input, 3 + i, i % 2)
  end
end

local function kernel(name, body)
  return ([[
  extern "C" __global__ void %s(unsigned *all, const unsigned *in, int n, int f) {
    __shared__ unsigned s[256];
    const int x = threadIdx.x;
    const int t = x + blockDim.x * threadIdx.y;
    const int place = (blockIdx.x + gridDim.x * blockIdx.y) * blockDim.x * blockDim.y + t;
    s[t] = in[t];
    all[place] = 1u;
    __syncthreads();
    %s
  }]]):format(name, body)
end

local prelude = [[
  #define WAIT(c) if (c) { __syncthreads(); s[t] += 3u; }
  __device__ void wait(bool c) { if (c) __syncthreads(); }
  template <int N, bool B> __device__ int plain(int x) { return B ? x * N + 1 : x; }
  __device__ void bump(unsigned &x) { x = x * 5u + 1u; }
  __device__ unsigned twice(unsigned x) { x = x * 2u; __syncthreads(); x = x + 1u; return x; }
]]

-- Kernels as they are written, and the form that they run in.
local written = {
  { "int k = x, i; s[t] += k; __syncthreads(); for (k = 0; k < n; k++) { s[t] += k; "
    .. "__syncthreads(); } for (i = 2; i < n; i *= 2) { if (x % i == 0) s[t] ^= i; "
    .. "__syncthreads(); } if (x) for (i = 0; i < n; i++) all[place] += s[t] + i;" },
  { "unsigned least, change; do { least = s[0]; __syncthreads(); change = s[t] & 7u; "
    .. "if (change > least) least = change; s[t] = s[t] / 2u; __syncthreads(); least = s[0]; "
    .. "__syncthreads(); } while (least > 3u); all[place] = s[t] + least;" },
  { "if (place < n * 20) { s[t] += 3u; __syncthreads(); all[place] = s[0] + s[t]; }" },
  { "if (x < n) { s[t] += 3u; __syncthreads(); all[place] = s[t]; } else all[place] = 7u;" },
  { "if (f) { if (x < n) { s[t] += 3u; __syncthreads(); all[place] = s[0]; } all[place] += t; }" },
  { "if (x < n) { int k = 3; __syncthreads(); s[t] += k; } { int k = 4; all[place] = k + s[t]; "
    .. "} if (t == 0) all[place] += 9u;" },
  { "int k; if (x < n) { k = 1; __syncthreads(); s[t] += k; __syncthreads(); all[place] = s[0]; }"
    .. " k = x; all[place] += k;" },
  { "n = n * 2; s[t] += n; __syncthreads(); n = x; s[t] += n; for (n = 0; n < 3; n++) { "
    .. "s[t] += n; __syncthreads(); } all[place] = s[t];" },
  { "unsigned k = twice(x); s[t] += k; k = twice(f); if (k > 2u) __syncthreads(); "
    .. "all[place] = k + s[0];" },
  { "int k = x; s[t] += k; k = n; if (k > 4) { __syncthreads(); s[t] += 2u; } k++; "
    .. "while (k > 5) { k--; __syncthreads(); } all[place] = s[t] + k;" },
  { "int i, j = x; for (i = 0, j = 1; i < n; i++, j *= 2) { s[t] += j; __syncthreads(); } "
    .. "all[place] = s[t] + i;" },
  -- what is no new value, or another variable
  { "int k = t; s[t] = k; __syncthreads(); k = plain<3, true>(k); all[place] = s[t] + k;" },
  { "int a = 1, b = 2; all[place] = a + b; a = t; b = 3 * t; int &r = t < 16 ? a : b; r = 100; "
    .. "a = a + 1; b = b + 1; r += 5; __syncthreads(); all[place] += a * 1000 + b + r;" },
  { "unsigned a = 1; int &r = reinterpret_cast<int &>(a); __syncthreads(); a = t + 7; "
    .. "all[place] = r;" },
  { "int k = 3; __syncthreads(); k = t; { decltype(x + 1) k = 4; k = 5; s[t] = k; } "
    .. "{ [[maybe_unused]] int k = 4; k = 5; s[t] += k; } all[place] = k + s[t];" },
  { "int k = 3; __syncthreads(); k = t; for (int i = k, k = 0; k < 3; k++) s[t] += i + k; "
    .. "all[place] = k + s[t];" },
  { "int a = 1, b = 0; __syncthreads(); t > 10 ? b = 4, a = 9 : (b = 2); __syncthreads(); "
    .. "all[place] = a + b * 100;" },
  { "int k = 3, k__l1 = 4; __syncthreads(); k = t + 7; all[place] = k + k__l1 * 100;" },
  { "if (t < 40) { if (x < n) { s[t] += 1; __syncthreads(); all[place] = 5; } int n = t; s[t] = n;"
    .. " } all[place] += n + s[t];" },
  { "unsigned a[4] = {1, 2}, b[2] = {3u, (unsigned)t}, *p = a; p[0] = b[1]; __syncthreads(); "
    .. "all[place] = p[0] + a[1];" },
  { "if (x < n) { for (int k = 0; k < n; k++) { if (s[t] & 1u) __syncthreads(); } }", "fibers" },
  { "if (x < n) __syncthreads(); s[t]++; __syncthreads(); all[place] = s[t];", "fibers" },
  { "wait(x < n); wait(x < n + 1); all[place] = s[t];", "fibers" },
  { "WAIT(n > x) WAIT(n > x + 1) all[place] = s[t];", "fibers" },
  { "auto g = [&](bool c) { if (c) __syncthreads(); }; g(x < n); all[place] = 3u;", "fibers" },
}

-- ---- random kernels ----

local function pick(list) return list[math.random(#list)] end

local names = { "a", "b", "c", "d" }

local function expression()
  return (pick { "V", "W", "V + W", "V * 3u", "x", "(unsigned)n", "5u", "in[V & 63u]", "s[t]",
    "V ^ (W >> 3)", "(V & 1u ? W : 7u)", "place + V", "f + V" }
    :gsub("[VW]", function() return pick(names) end))
end

local function condition(same)
  if same then return pick { "n > 4", "f", "!f", "n > 1", "n & 1" } end
  return (pick { "V & 1u", "x < n", "V > W", "f", "s[t] & 2u", "x == 3", "V != 0u" }
    :gsub("[VW]", function() return pick(names) end))
end

local block

--- One statement; `same`: all threads come here together, `loop`: in one of those with
-- no barrier, that it may leave; `depth`: of blocks.
local function statement(same, loop, depth)
  local v, w = pick(names), pick(names)
  local count = "k" .. depth
  local kind = math.random(depth < 4 and 26 or 15)
  if kind <= 4 then return v .. " = " .. expression() .. ";" end
  if kind == 5 then return v .. pick { " += ", " ^= ", " *= " } .. expression() .. ";" end
  if kind == 6 then return pick { v .. "++;", "++" .. v .. ";", "bump(" .. v .. ");" } end
  if kind == 7 then return ("s[t] = s[t] * 3u + %s;"):format(v) end
  if kind == 8 then return ("%s = %s, %s = %s + 1u;"):format(v, expression(), w, v) end
  if kind == 9 then return ("%s = %s = %s;"):format(v, w, expression()) end
  if kind == 10 then return ("if ((%s = %s) & 1u) s[t] += %s;"):format(v, expression(), v) end
  if kind == 11 then return ("{ unsigned %s = %s; s[t] += %s; %s = 3u; s[t] ^= %s; }"):format(
    v, w == v and "4u" or w, v, v, v) end
  if kind == 12 then return ("switch (%s & 3u) { case 0: %s = 5u; break; case 1: %s += 2u; "
    .. "default: %s = %s; }"):format(v, w, v, pick(names), expression()) end
  if kind == 13 and loop then
    return ("if (%s) %s;"):format(condition(), pick { "break", "continue" })
  end
  if kind == 14 and same then
    return ("__syncthreads(); %s = s[0] & 1u; __syncthreads();"):format(v)
  end
  if kind == 15 then return ("{ const unsigned q = %s; auto g = [=](unsigned z) { return z + q; }; "
    .. "%s = g(%s); }"):format(v, w, expression()) end
  if kind == 16 then return ("{ unsigned *p = &%s; *p += 3u; %s = *p; }"):format("e", v) end
  if kind <= 19 then
    local cond = condition(same and math.random(2) == 1)
    local still = same and (cond == "f" or cond == "!f" or cond:find "^n ") and true
    local text = ("if (%s) %s"):format(cond, block(still, loop, depth + 1))
    if math.random(2) == 1 then text = text .. " else " .. block(still, loop, depth + 1) end
    return text
  end
  local still = same and math.random(2) == 1
  local most = still and pick { "3", "n" } or pick { "3", "n", "(x & 3)" }
  local body = block(still, not still, depth + 1)
  local turn = math.random(5)
  if turn == 1 then
    return ("%s = %s; while (%s > 0) { %s--; %s }"):format(count,
      still and pick { "3", "n" } or "x & 3", count, count, body)
  elseif turn == 2 then
    return ("%s = 0; do { %s++; %s } while (%s < %s);"):format(count, count, body, count, most)
  elseif turn == 3 then
    return ("for (%s = 0, %s = 9u; %s < %s; %s++) %s"):format(count, v, count, most, count, body)
  elseif turn == 4 then
    return ("for (int %s = 0; %s < %s; %s++) %s"):format(count, count, most, count, body)
  end
  return ("for (%s = 0; %s < %s; %s++) %s s[t] += %s;"):format(count, count, most, count, body,
    count)
end

function block(same, loop, depth)
  local lines = {}
  if math.random(4) == 1 then
    lines[1] = ("unsigned z%d = %s;"):format(depth, expression())
  end
  for _ = 1, math.random(1, 4) do lines[#lines + 1] = statement(same, loop, depth) end
  if lines[1] and lines[1]:find "^unsigned z" then
    lines[#lines + 1] = ("s[t] += zQ; zQ = 3u; s[t] ^= zQ;"):gsub("Q", depth)
  end
  return "{ " .. table.concat(lines, " ") .. " }"
end

local function random_body()
  local lines = { "unsigned a, b = x, c, d = n, e = f; int k0, k1 = x, k2, k3 = place, k4;" }
  for _, v in ipairs { "a", "c", "k0", "k2", "k4" } do
    lines[#lines + 1] = v .. " = " .. pick { "x", "n", "3" } .. ";"
  end
  if math.random(3) == 1 then lines[#lines + 1] = "if (s[t] % 5u == 0u) return;" end
  for _ = 1, math.random(3, 7) do lines[#lines + 1] = statement(true, false, 0) end
  local last = "all[place] = a + b * 3u + c * 5u + d * 7u + e + s[t] + k0 + k1 + k2 + k3 + k4;"
  local tail = math.random(4)
  if tail == 1 then
    last = ("if (%s) { %s __syncthreads(); a = s[0]; __syncthreads(); %s }"):format(
      condition(), statement(true, false, 1), last)
  elseif tail == 2 then
    last = ("if (%s) { __syncthreads(); %s } else { %s = 4u; } %s"):format(condition(),
      statement(true, false, 1), pick(names), last)
  end
  lines[#lines + 1] = last
  return table.concat(lines, "\n    ")
end

describe("variables that are given values anew", function()
  teardown(device.nothing_alive)

  it("have the values in loops that they have in fibers", function()
    local text = {}
    for k, w in ipairs(written) do text[k] = kernel("one" .. k, w[1]) end
    local modules = forms.both(prelude .. table.concat(text, "\n"))
    for k, w in ipairs(written) do
      assert.equal(w[2] or "loops", (modules[1]:kernel("one" .. k):form()), w[1])
      if not w[2] then compare(modules, "one" .. k, w[1]) end
    end
  end)

  it("have them in random kernels", function()
    forms.random { usual = 80, prelude = prelude, least = 0.8, try = compare,
      make = function(name, seed)
        math.randomseed(seed)
        return kernel(name, random_body())
      end }
  end)
end)
