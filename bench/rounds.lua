-- The whole life of graphs, by the hundred thousand in one process: capture,
-- instantiate, replay, reset, capture again, drop.  Neither the process nor the
-- device may hold more memory at the end than after a warm-up.
--   cgraphlua bench/rounds.lua [--device D] [--rounds N]
-- More than GROWTH of resident or DEVICE_GROWTH of device memory is a failure,
-- as are an object that is left and a sum that is wrong.

local cg = require "cgraphlua"
local options = require "cgraphlua.options"

local memory = dofile((arg[0]:match "^.*/" or "./") .. "memory.lua")

local GROWTH = 1        -- MiB: compiled traces, pieces of the heap still in use
local DEVICE_GROWTH = 4 -- MiB: a pool's last segment, a driver's own

local opt = options.read({
  usage = "bench/rounds.lua [options]",
  about = "The life of graphs by the hundred thousand; fails when memory grows.",
  { "rounds", "N", 100000, "graphs made, captured, replayed, reset and dropped", min = 100,
    max = 1e9 },
}, arg)

local add = cg.kernel [[
extern "C" __global__ void add(float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += a;
}]]

local N = 256
local x, side, shared = cg.zeros("float", N), cg.stream(), cg.pool()
local child = cg.capture(function() add:launch(1, N, x, 1, N) end, { keep_graph = true })
local expected = 0 -- what the replays since the last check added

-- Scratch memory and one of: nothing more, a fork and join, a child graph.
local function body(kind)
  local scratch = cg.zeros("float", N * (1 + kind))
  local main = cg.current_stream()
  if kind == 1 then
    side:wait(main)
    side:use(function() add:launch(1, N, scratch, 1, N) end)
  elseif kind == 2 then
    child:replay()
  end
  add:launch(1, N, x, 1, N)
  if kind == 1 then main:wait(side) end
  return kind == 2 and 2 or 1
end

local function round(i)
  local keep = i % 2 == 0
  local g = cg.graph { keep_graph = keep, pool = i % 5 == 0 and shared or nil }
  local kind = i % 3
  for pass = 1, i % 4 == 0 and 2 or 1 do
    if i % 7 == 0 then
      assert(not pcall(g.capture, g, function()
        body(kind)
        error "on purpose"
      end))
    end
    local _, each = g:capture(function() return body(kind) end)
    if keep then
      g:instantiate()
      if pass == 2 then g:instantiate() end
    end
    g:replay(3)
    expected = expected + 3 * each
    if pass == 1 then g:reset() end
  end
  if i % 3 == 0 then g:release() end -- others are left to the collector
end

local function check()
  local value = x:download()[1]
  if value ~= expected then
    error(string.format("the replays added %.0f, not %.0f", value, expected), 0)
  end
  expected = 0
  x:fill(0)
end

local function rounds(first, last)
  for i = first, last do
    round(i)
    if i % 1000 == 0 then check() end
  end
  check()
end

local warm = math.max(math.floor(opt.rounds / 10), 50)
rounds(1, warm)
local start = memory.read()
rounds(warm + 1, opt.rounds)
memory.judge("rounds", opt.rounds .. " rounds", start, GROWTH, DEVICE_GROWTH)
