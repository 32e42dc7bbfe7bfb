-- What the algorithms of cgraphlua.algo cost: beside a copy of as many bytes, and
-- beside a floor on the same device: the loops of algo_floor.cpp on as many threads,
-- or CUB (algo_floor.cu).  And what calls on a thousand elements take in graphs,
-- beside peers' (algo_peers.py).
--   cgraphlua bench/algo.lua [--device D] [--quick] [--processor] [--floor FLOOR.so]
--                            [PEER=FILE...]
-- With --processor times are the processor's, for one thread of each on a machine
-- that others use, too.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local ffi = require "ffi"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")
local now, median, ratio, rounds = measure.now, measure.median, measure.ratio, measure.rounds

local read = measure.arguments(1, { ["--floor"] = 1 })
local quick, on_gpu = read.quick, read.on_gpu
local floors = read.own["--floor"] and ffi.load(read.own["--floor"][1])
local seconds = quick and 0.1 or 1

if floors and on_gpu then
  for c, name in pairs { float = "float", double = "double", int32_t = "int32" } do
    local text = [[
    void floor_sum_N(const T *x, void *out, long n);
    void floor_min_N(const T *x, T *out, long n);
    void floor_scan_N(const T *x, T *out, long n);
    void floor_sort_N(const T *x, T *out, long n);
    void floor_pairs_N(const T *x, T *out, const int *values, int *out_values, long n);
    ]]
    ffi.cdef((text:gsub("_N", "_" .. name):gsub("T%f[%W]", c)))
  end
  ffi.cdef "void floor_wait(void);"
elseif floors then
  ffi.cdef [[
  void floor_map(const float *x, const float *y, float *out, long n);
  float floor_sum(const float *x, long n);
  float floor_min(const float *x, long n);
  void floor_scan(const float *x, float *out, long n);
  void floor_sort(const float *x, float *out, long n);
  ]]
end

local function wait()
  cg.synchronize()
  if on_gpu and floors then
    floors.floor_wait()
  end
end

-- Microseconds of a call, waited for.
local function timed(fn)
  return function()
    wait()
    local start = now()
    fn()
    wait()
    return now() - start
  end
end

print(("%s, %s, load %s"):format(cg.device().device, cg.device().name, measure.load()))
print(("%-16s %10s %10s %10s %12s %12s"):format("", "elements", "us", "GB/s", "of a copy",
  on_gpu and "of CUB" or "of plain C"))

-- One row: what fn takes, which moves so many bytes, with a copy of x to out in turns.
local function row(name, n, bytes, x, out, fn, floor)
  local list = { timed(fn), timed(function() out:copy(x) end), floors and floor and timed(floor) }
  local times, copies, plain = rounds(seconds, list)
  print(("%-16s %10d %10s %10.2f %11.0f%% %12s"):format(name, n, measure.number(median(times)),
    bytes / median(times) / 1e3, 100 * bytes / (2 * out.bytes) / ratio(times, copies),
    plain and ("%.2f"):format(1 / ratio(times, plain)) or "-"))
end

-- The functions of a floor for one type; on a GPU it takes addresses.
local function floor_of(type, x, out, n)
  if not floors then
    return {}
  end
  if not on_gpu then
    local from, to, y = ffi.new("float[?]", n), ffi.new("float[?]", n), ffi.new("float[?]", n, 1)
    x:download(from)
    return {
      map = function() floors.floor_map(from, y, to, n) end,
      sum = function() floors.floor_sum(from, n) end,
      min = function() floors.floor_min(from, n) end,
      scan = function() floors.floor_scan(from, to, n) end,
      sort = function() floors.floor_sort(from, to, n) end,
    }
  end
  local c = ffi.typeof((type == "int32" and "int32_t" or type) .. " *")
  local one = cg.buffer("int64", 1)
  local from, to = ffi.cast(c, x:address()), ffi.cast(c, out:address())
  local result = { keep = { one } }
  for _, kind in ipairs { "sum", "min", "scan", "sort" } do
    local call = floors["floor_" .. kind .. "_" .. type]
    local single = kind == "sum" or kind == "min"
    local where = single and ffi.cast(c, one:address()) or to
    result[kind] = function() call(from, where, n) end
  end
  local values, moved = cg.buffer("int32", n):fill(1), cg.buffer("int32", n)
  result.values, result.moved = values, moved
  local v, m = ffi.cast("int *", values:address()), ffi.cast("int *", moved:address())
  local call = floors["floor_pairs_" .. type]
  result.pairs = function() call(from, to, v, m, n) end
  return result
end

-- The rows of one type and size; sums of integers are of 8 bytes each.
local function rows(type, n)
  local gen = cg.generator(1)
  local x, out = cg.buffer(type, n), cg.buffer(type, n)
  if type == "int32" then
    x:random(gen)
  else
    x:uniform(gen)
  end
  local size = x.bytes / n
  local floor = floor_of(type, x, out, n)
  local function name(what) return type == "float" and what or what .. " " .. type end
  if type == "float" then
    local y = cg.buffer("float", n):fill(1)
    row("map", n, 12 * n, x, out, function()
      algo.map("a * x + y", { a = 2, x = x, y = y }, out)
    end, floor.map)
  end
  for _, kind in ipairs { "sum", "min" } do
    local one = algo.reduce(x, kind)
    row(name(kind), n, size * n, x, out, function() algo.reduce(x, kind, { out = one }) end,
      floor[kind])
  end
  row(name "scan", n, 2 * size * n, x, out, function() algo.scan(x, "sum", { out = out }) end,
    floor.scan)
  row(name "sort", n, 2 * size * n, x, out, function() algo.sort(x, { out = out }) end, floor.sort)
  if floor.pairs then
    local values, moved = floor.values, floor.moved
    row(name "sort_by_key", n, 2 * (size + 4) * n, x, out, function()
      algo.sort_by_key(x, values, { out = out, out_values = moved })
    end, floor.pairs)
  end
end

if on_gpu then
  for _, n in ipairs { 2 ^ 24, 2 ^ 27 } do
    for _, type in ipairs { "float", "double", "int32" } do
      rows(type, n)
      collectgarbage()
    end
  end
else
  rows("float", quick and 2 ^ 20 or 2 ^ 24)
end


-- ---- calls on a thousand elements ----

local n = 1000
local gen = cg.generator(1)
local x, out = cg.buffer("float", n):uniform(gen), cg.buffer("float", n)
local one, place = cg.buffer("float", 1), cg.buffer("int64", 1)
local any, flags, bins = cg.buffer("bool", 1), cg.zeros("bool", n), cg.buffer("int64", 64)
local small = {
  { "sum", function() algo.reduce(x, "sum", { out = one }) end },
  { "min", function() algo.reduce(x, "min", { out = one }) end },
  { "argmin", function() algo.reduce(x, "argmin", { out = place }) end },
  { "norm", function() algo.reduce(x, "norm", { out = one }) end },
  { "any", function() algo.reduce(flags, "any", { out = any }) end },
  { "scan", function() algo.scan(x, "sum", { out = out }) end },
  { "sort", function() algo.sort(x, { out = out }) end },
  { "histogram", function() algo.histogram(x, 64, 0, 1, { out = bins }) end },
  { "map", function() algo.map("2 * x + y", { x = x, y = out }, out) end },
}
local found, blas = pcall(require, "cgraphlua.blas")
if found and pcall(blas.describe) then
  local a, b = cg.buffer("float", { 32, 32 }):uniform(gen), cg.buffer("float", { 32, 32 })
  small[#small + 1] = { "gemm", function() blas.gemm(a, a, { out = b }) end }
end
local fft
found, fft = pcall(require, "cgraphlua.fft")
if found and pcall(fft.describe) then
  local z, spectrum = cg.zeros("complex64", n), cg.buffer("complex64", n)
  small[#small + 1] = { "fft", function() fft.fft(z, { out = spectrum }) end }
end

print(("%d elements: us of a call, by replay(%d) of a graph of one, and in a graph of a hundred;")
  :format(n, 2000))
print "and how many times as long a peer's graphs take."
local head = ("%-16s %10s %10s"):format("", "one", "hundred")
for _, peer in ipairs(read.peers) do
  head = head .. (" %10s %10s"):format(peer.name, "hundred")
end
print(head)
for _, call in ipairs(small) do
  local name, fn = unpack(call)
  fn()
  local times = {}
  for i, count in ipairs { 1, 100 } do
    local g = cg.capture(function()
      for _ = 1, count do fn() end
    end)
    times[i] = median((rounds(seconds, { timed(function() g:replay(2000 / count) end) }))) / 2000
    g:release()
  end
  local line = ("%-16s %10.2f %10.2f"):format(name, times[1], times[2])
  for _, peer in ipairs(read.peers) do
    for i, behind in ipairs { "", "100" } do
      local us = peer[name .. behind]
      line = line .. (" %10s"):format(us and ("%.2f"):format(us / times[i]) or "-")
    end
  end
  print(line)
end
