-- What the algorithms of cgraphlua.algo cost: beside a copy of as many bytes,
-- and on the host device beside the loops of algo_floor.cpp, on as many threads.
--   cgraphlua bench/algo.lua [--device D] [--quick] [--processor] [--floor FLOOR.so]
-- With --processor times are the processor's, for one thread of each on a machine
-- that others use, too.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local ffi = require "ffi"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")
local now, median, ratio, rounds = measure.now, measure.median, measure.ratio, measure.rounds

ffi.cdef [[
void floor_map(const float *x, const float *y, float *out, long n);
float floor_sum(const float *x, long n);
float floor_min(const float *x, long n);
void floor_scan(const float *x, float *out, long n);
void floor_sort(const float *x, float *out, long n);
]]

local read = measure.arguments(1, { ["--floor"] = 1 })
local quick, on_gpu = read.quick, read.on_gpu
local floors = read.own["--floor"] and ffi.load(read.own["--floor"][1])
local n = 2 ^ (on_gpu and 28 or quick and 20 or 24)

local gen = cg.generator(1)
local x, y = cg.buffer("float", n):uniform(gen), cg.buffer("float", n):uniform(gen)
local out, one = cg.buffer("float", n), cg.buffer("float", 1)
local hx, hy, hout
if floors then
  hx, hy, hout = ffi.new("float[?]", n), ffi.new("float[?]", n), ffi.new("float[?]", n)
  x:download(hx)
  y:download(hy)
end

-- Microseconds of a call, waited for.
local function timed(fn)
  return function()
    cg.synchronize()
    local start = now()
    fn()
    cg.synchronize()
    return now() - start
  end
end

print(("%s, %s: %d floats, load %s"):format(cg.device().device, cg.device().name, n,
  measure.load()))
print(("%-12s %10s %10s %12s %12s"):format("", "us", "GB/s", "of a copy", "of plain C"))

local function row(name, bytes, fn, floor)
  local list = { timed(fn), timed(function() out:copy(x) end), floors and timed(floor) or nil }
  local times, copies, plain = rounds(quick and 0.1 or 1, list)
  print(("%-12s %10s %10.2f %11.0f%% %12s"):format(name, measure.number(median(times)),
    bytes / median(times) / 1e3, 100 * bytes / 8 / n / ratio(times, copies),
    plain and ("%.2f"):format(1 / ratio(times, plain)) or "-"))
end

row("map", 12 * n, function() algo.map("a * x + y", { a = 2, x = x, y = y }, out) end,
  function() floors.floor_map(hx, hy, hout, n) end)
row("sum", 4 * n, function() algo.reduce(x, "sum", { out = one }) end,
  function() floors.floor_sum(hx, n) end)
row("min", 4 * n, function() algo.reduce(x, "min", { out = one }) end,
  function() floors.floor_min(hx, n) end)
row("scan", 8 * n, function() algo.scan(x, "sum", { out = out }) end,
  function() floors.floor_scan(hx, hout, n) end)
row("sort", 8 * n, function() algo.sort(x, { out = out }) end,
  function() floors.floor_sort(hx, hout, n) end)
