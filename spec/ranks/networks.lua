-- Ranks that divide each batch learn as one rank with all of it: the losses of
-- twenty steps agree to a part in 10^5, which leaves room for rounding alone,
-- and all ranks have the same weights, bit for bit.

local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local network = dofile(here .. "/../../scripts/lib/network.lua")
local world = cg.ranks { seconds = 60 }
local alone = world:split(world.rank)

local set = { inputs = 16, classes = 4, count = 61 }
set.images = ffi.new("float[?]", set.count * set.inputs)
set.labels = ffi.new("int32_t[?]", set.count)
for i = 0, set.count - 1 do
  set.labels[i] = i % set.classes
  for k = 0, set.inputs - 1 do
    local mark = k % set.classes == set.labels[i] and 0.5 or 0
    set.images[i * set.inputs + k] = mark + i * k % 7 / 14
  end
end

local STEPS = 20
local function learn(ranks, batch, captured)
  local net = network.new(set, { hidden = 24, batch = batch, rate = 0.01, dropout = 0.5, seed = 3,
    steps = STEPS, ranks = ranks })
  if captured then
    cg.capture(function() net:step() end):replay(STEPS)
  else
    for _ = 1, STEPS do net:step() end
  end
  return net:losses_by_step(), net.weights
end

local most = 0
local BATCH = 7 -- which ranks divide unevenly
local one = learn(alone, BATCH, true)
assert(one[STEPS - 1] == one[STEPS - 1] and one[STEPS - 1] ~= one[0])
for _, captured in ipairs { true, false } do
  local all, weights = learn(world, BATCH, captured)
  for k = 0, STEPS - 1 do
    most = math.max(most, math.abs(all[k] / one[k] - 1))
  end
  local low, high = cg.zeros("float", #weights), cg.zeros("float", #weights)
  world:all_reduce(weights, low, "min")
  world:all_reduce(weights, high, "max")
  assert(low:download "string" == high:download "string", "the ranks' weights differ")
end
assert(most < 1e-5, "the losses differ by " .. most)
local ok, err = pcall(learn, world, world.size - 1)
assert(not ok and tostring(err):find "less than one for each", err)
if world.rank == 0 then print(("right: losses within %.2g"):format(most)) end
