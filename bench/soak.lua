-- Captures and replays by the thousand in one process: its memory must not
-- grow, nor may an object be left.
--   cgraphlua bench/soak.lua [--device D] [--captures N] [--replays N]
-- Resident memory is read from /proc/self/statm after a warm-up and at the end,
-- when all garbage is collected and malloc has given back what it only kept;
-- more than GROWTH between the two is a failure.  A GPU's driver goes on filling
-- stores of its own for some thousand captures, so the warm-up has that many;
-- bench/rounds.lua, which leaves the host device's memory out,
-- holds both to less.

local ffi = require "ffi"
local cg = require "cgraphlua"
local options = require "cgraphlua.options"

local WARM_UP = 5000 -- captures, at least; more are a tenth of the work

local opt = options.read({
  usage = "bench/soak.lua [options]",
  about = "Captures and replays by the thousand; fails when memory grows.",
  { "captures", "N", 10000, "graphs captured, replayed and dropped", min = 10, max = 1e9 },
  { "replays", "N", 1000000, "replays in all", min = 10, max = 1e12 },
}, arg)

-- MiB: compiled traces, pieces of the heap still in use, memory of the host
-- device that is touched bit by bit; and a GPU's driver holds up to 3 MiB more or
-- less at any moment, however many the captures.
local GROWTH = 4

ffi.cdef "int malloc_trim(size_t pad);"

-- Resident memory in MiB.
local function resident()
  collectgarbage()
  collectgarbage()
  pcall(function() ffi.C.malloc_trim(0) end) -- glibc has it
  local file = assert(io.open "/proc/self/statm")
  local pages = file:read("*a"):match "^%d+ (%d+)"
  file:close()
  return tonumber(pages) * 4096 / 2 ^ 20
end

local module = cg.module [[
extern "C" __global__ void add(float *x, float a, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += a;
}
]]
local add = module:kernel "add"
local N = 256
local x = cg.zeros("float", N)
local stream, other = cg.stream(), cg.stream()
local pinned = cg.pinned("float", N)

-- One of each: kernels, scratch memory, a copy, a fill, a fork and a join, a
-- child graph.
local function capture(child)
  return (cg.capture(function()
    local main = cg.current_stream()
    local scratch = cg.zeros("float", N)
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

local expected = 0

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
      cg.synchronize()
    end
  end
  cg.synchronize()
end

local function check()
  local value = x:download()[1]
  if value ~= expected % 2 ^ 24 and expected < 2 ^ 24 then
    error(string.format("the replays added %.0f, not %.0f", value, expected), 0)
  end
end

local start, objects
stream:use(function()
  local warm_up = math.max(WARM_UP, math.ceil(opt.captures / 10))
  work(warm_up, math.ceil(warm_up / opt.captures * opt.replays))
  check()
  start, objects = resident(), cg.live()
  work(opt.captures, opt.replays)
  check()
end)
local finish = resident()
local left = cg.live() - objects
print(string.format("%d captures, %d replays: resident memory %.1f MiB, then %.1f MiB (%+.2f);"
  .. " live objects %+d", opt.captures, opt.replays, start, finish, finish - start, left))
if finish - start > GROWTH or left > 0 then
  io.stderr:write(string.format("soak: more than %d MiB, or an object, is left behind\n", GROWTH))
  os.exit(1, true)
end
