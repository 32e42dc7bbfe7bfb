-- Sixty-four small simulations with different parameters, from one plain loop.
--
--   cgraphlua scripts/ensemble.lua                    in data order: side by side
--   cgraphlua scripts/ensemble.lua --order issue      one after the other
--
-- Each is a patch of the Gray-Scott model of two chemicals (J. E. Pearson,
-- Science 261 (1993) 189): U is fed at rate F, V dies at rate F + k, and
-- U + 2V -> 3V.  F grows from patch to patch downwards, k to the right.  A patch
-- is so small that one block computes it, and a GPU has room for many.  The loop
-- issues them one after the other; no two use the same memory, so that in data
-- order the graph runs them side by side.

local cg = require "cgraphlua"
local ffi = require "ffi"
local image = require "cgraphlua.image"
local options = require "cgraphlua.options"
local progress = require "cgraphlua.progress"

local opt = options.read({
  usage = "scripts/ensemble.lua [options]",
  about = "Sixty-four patches of the Gray-Scott model, each with parameters of its own.",
  { "steps", "N", 4000, "time steps, rounded up to 40s", min = 1, max = 1e7 },
  { "order", "ORDER", "data", "data: side by side; issue: one after the other" },
  { "out", "OUT", "ensemble.png", "the picture to write" },
}, arg)
if opt.order ~= "data" and opt.order ~= "issue" then
  error("--order is data or issue, not " .. opt.order, 0)
end

local here = arg[0]:match "^.*/" or ""
local patches = dofile(here .. "lib/patches.lua")
local ROWS, SIDE, STEPS = patches.rows, patches.side, patches.steps
local list = patches.new()

local graph = cg.capture(function()
  for _ = 1, 2 do
    patches.step(list)
  end
end, { order = opt.order, width = #list })

local replays = math.ceil(opt.steps / (2 * STEPS))
local pauses = math.min(replays, 50)
local bar = progress.new { total = replays * 2 * STEPS, label = "ensemble" }
local done = 0
for k = 1, pauses do
  local target = math.floor(replays * k / pauses)
  graph:replay(target - done)
  cg.synchronize()
  done = target
  bar:update(done * 2 * STEPS)
end
bar:finish()

-- V of all patches in one field, with a line between them.
local edge = ROWS * (SIDE + 1) + 1
local all = ffi.new("float[?]", edge * edge)
local alive = 0
for i, patch in ipairs(list) do
  local row, column = math.floor((i - 1) / ROWS), (i - 1) % ROWS
  local field, most = patch.field:download(ffi.new("float[?]", 2 * SIDE * SIDE)), 0
  for y = 0, SIDE - 1 do
    for x = 0, SIDE - 1 do
      local v = field[2 * (y * SIDE + x) + 1]
      most = math.max(most, v)
      all[(1 + row * (SIDE + 1) + y) * edge + 1 + column * (SIDE + 1) + x] = v
    end
  end
  alive = alive + (most > 0.05 and 1 or 0)
end
image.write(opt.out, image.map(all, edge, edge, { colormap = "viridis", min = 0, max = 0.45 }))

local plan = graph:plan()
print(string.format("%d simulations of %d x %d points, %d steps", #list, SIDE, SIDE,
  replays * 2 * STEPS))
print(string.format("%d nodes, %d of them beside each other, the longest path %d", plan.nodes,
  plan.width, plan.longest))
print(string.format("V lives in %d of them", alive))
print("wrote " .. opt.out)
