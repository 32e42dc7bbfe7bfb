-- all_reduce among ranks, eager and replayed, of 1 KiB and of 256 MiB a rank:
--   mpirun -n 2 cgraphlua bench/ranks.lua
-- bench/ranks_floor.c measures the same by plain NCCL.

local cg = require "cgraphlua"
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
