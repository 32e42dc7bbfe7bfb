-- Captures and replays by the thousand in one process: its memory must not
-- grow, nor may an object be left.
--   cgraphlua bench/soak.lua [--device D] [--captures N] [--replays N]
-- Memory is read after a warm-up and at the end; more than GROWTH of resident or
-- DEVICE_GROWTH of device memory between the two is a failure.  A GPU's driver
-- goes on filling stores of its own for some thousand captures, so the warm-up
-- has that many.

local cg = require "cgraphlua"
local options = require "cgraphlua.options"

local memory = dofile((arg[0]:match "^.*/" or "./") .. "memory.lua")

local WARM_UP = 5000 -- captures, at least; more are a tenth of the work

local opt = options.read({
  usage = "bench/soak.lua [options]",
  about = "Captures and replays by the thousand; fails when memory grows.",
  { "captures", "N", 10000, "graphs captured, replayed and dropped", min = 10, max = 1e9 },
  { "replays", "N", 1000000, "replays in all", min = 10, max = 1e12 },
}, arg)

-- MiB: compiled traces and pieces of the heap still in use; a GPU's driver
-- itself holds up to 3 MiB more or less at any moment, however many the captures.
local GROWTH = cg.device().device == "host" and 1 or 4
local DEVICE_GROWTH = 4 -- MiB: a pool's last segment, a driver's own

local module = cg.module [[
extern "C" __global__ void add(double *x, double a, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += a;
}
]]
local add = module:kernel "add"
local N = 256
local x = cg.zeros("double", N)
local stream, other = cg.stream(), cg.stream()
local pinned = cg.pinned("double", N)

-- One of each: kernels, scratch memory, a copy, a fill, a fork and a join, a
-- child graph.
local function capture(child)
  return (cg.capture(function()
    local main = cg.current_stream()
    local scratch = cg.zeros("double", N)
    other:wait(main)
    other:use(function()
      add:launch(1, N, scratch, 1, N)
    end)
    add:launch(1, N, x, 1, N)
    main:wait(other)
    scratch:copy(x)
    pinned:copy(scratch)
    if child then
      child:replay()
    end
  end))
end

local child = cg.capture(function()
  add:launch(1, N, x, -1, N)
end, { keep_graph = true })

local expected = 0 -- what the replays since the last check added

local function check()
  local value = x:download()[1]
  if value ~= expected then
    error(("the replays added %.0f, not %.0f"):format(value, expected), 0)
  end
  expected = 0
  x:fill(0)
end

-- Captures `captures` graphs and spreads `replays` over them; every third is
-- left to the collector, every fifth raises in its capture first.
local function work(captures, replays)
  local done = 0
  for i = 1, captures do
    local with_child = i % 2 == 0
    if i % 5 == 0 then
      assert(not pcall(cg.capture, function()
        add:launch(1, N, x, 1, N)
        error "on purpose"
      end))
    end
    local graph = capture(with_child and child)
    local count = math.floor(replays * i / captures) - done
    done = done + count
    graph:replay(count - math.min(count, 3))
    for _ = 1, math.min(count, 3) do
      graph:replay()
    end
    expected = expected + (with_child and 0 or count)
    if i % 3 ~= 0 then
      stream:synchronize()
      graph:release()
    end
    if i % 100 == 0 then
      check()
    end
  end
  check()
end

local start
stream:use(function()
  local warm_up = math.max(WARM_UP, math.ceil(opt.captures / 10))
  work(warm_up, math.ceil(warm_up / opt.captures * opt.replays))
  start = memory.read()
  work(opt.captures, opt.replays)
end)
memory.judge("soak", ("%d captures, %d replays"):format(opt.captures, opt.replays), start, GROWTH,
  DEVICE_GROWTH)
