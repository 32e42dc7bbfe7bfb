-- all_reduce among ranks, eager and replayed, of 1 KiB and of 256 MiB a rank; then
-- steps of scripts/lbm.lua's channel, alone and with as many rows on each rank:
--   mpirun -n 2 cgraphlua bench/ranks.lua
-- bench/ranks_floor.c measures the same all_reduce by plain NCCL.

local cg = require "cgraphlua"
local here = arg[0]:match "^.*/" or ""
local lattice = dofile(here .. "../scripts/lib/lattice.lua")
local world = cg.ranks()
local on_gpu = cg.device().device ~= "host"

-- The least time of five, in microseconds a call.
local function least(n, work)
  local best = math.huge
  for _ = 1, 5 do
    cg.synchronize()
    local begun = cg.clock()
    work(n)
    cg.synchronize()
    best = math.min(best, (cg.clock() - begun) / n)
  end
  return best * 1e6
end

for _, case in ipairs { { 256, on_gpu and 2000 or 200 }, { on_gpu and 2 ^ 26 or 2 ^ 20, 20 } } do
  local count, n = case[1], case[2]
  local x = cg.zeros("float", count)
  local graph = cg.capture(function() world:all_reduce(x) end)
  local eager = least(n, function(times)
    for _ = 1, times do world:all_reduce(x) end
  end)
  local single = least(n, function(times)
    for _ = 1, times do graph:replay() end
  end)
  local many = least(n, function(times) graph:replay(times) end)
  if world.rank == 0 then
    print(("cgraphlua: all_reduce of %d bytes on %d ranks, %s: eager %.2f us, replayed %.2f us, "
      .. "replay(n) %.2f us"):format(4 * count, world.size, world.library, eager, single, many))
  end
end

-- Microseconds a step of a channel whose rows are a group's, from two runs that
-- differ in their steps alone.
local function lbm_step(group, nx, ny, steps)
  local flow = lattice.flow(nx, ny, 0.02, {
    ranks = group,
    inflow = function() return 0.05 end,
    start = function() return 0, 0.05, 0 end,
  })
  local function seconds(n)
    world:barrier()
    cg.synchronize()
    local begun = cg.clock()
    lattice.run(flow, n)
    cg.synchronize()
    return cg.clock() - begun
  end
  seconds(steps) -- first uses
  local best = math.huge
  for _ = 1, 3 do best = math.min(best, (seconds(5 * steps) - seconds(steps)) / (4 * steps)) end
  return best * 1e6
end

local alone = world:split(world.rank)
local nx, steps = on_gpu and 4096 or 256, on_gpu and 600 or 200
for _, ny in ipairs(on_gpu and { 1024, 2048, 4096 } or { 128 }) do
  local one = lbm_step(alone, nx, ny, steps)
  local all = lbm_step(world, nx, ny * world.size, steps)
  if world.rank == 0 then
    print(("cgraphlua: lbm, %d x %d cells a rank: alone %.1f us a step, on %d ranks %.1f us, weak "
      .. "scaling %.3f"):format(nx, ny, one, world.size, all, one / all))
  end
end
