-- Replays of a graph with collectives, many of them, without eager collectives
-- between them and with some: all ranks count the same.  The argument is how many.

local cg = require "cgraphlua"
local world = cg.ranks { seconds = 60 }
local many = tonumber(arg[1])
local MODULUS = 9973

local fold = cg.kernel [=[
extern "C" __global__ void fold(int *x, const int *sum, int rank, int modulus) {
  x[threadIdx.x] = (x[threadIdx.x] + sum[threadIdx.x] + rank + 1) % modulus;
}]=]
local x, sum = cg.zeros("int32", 32), cg.zeros("int32", 32)
local wanted = {} -- what each rank has, from 1
for r = 1, world.size do wanted[r] = 0 end

local function total()
  local n = 0
  for r = 1, world.size do n = n + wanted[r] end
  return n
end
local function step()
  world:all_reduce(x, sum)
  fold:launch(1, 32, x, sum, world.rank, MODULUS)
end
local function expect_step()
  local n = total()
  for r = 1, world.size do wanted[r] = (wanted[r] + n + r) % MODULUS end
end
local function check(what)
  for i, value in ipairs(x:download()) do
    assert(value == wanted[world.rank + 1], ("%s: element %d is %d, not %d"):format(what, i - 1,
      value, wanted[world.rank + 1]))
  end
end

local graph = cg.capture(step)
graph:replay(many)
for _ = 1, many do expect_step() end
check "replays alone"
for i = 1, many do
  graph:replay()
  expect_step()
  if i % 3 == 0 then
    step()
    expect_step()
  elseif i % 7 == 0 then
    world:broadcast(x, i % world.size)
    for r = 1, world.size do wanted[r] = wanted[i % world.size + 1] end
  end
end
check "replays with eager collectives between them"
if world.rank == 0 then print(("right: %d replays"):format(2 * many)) end
