-- Graphs and groups that end in every order, then a program that keeps some.

local cg = require "cgraphlua"
local world = cg.ranks { seconds = 60 }

local function make(k)
  local of = world:split((world.rank + k) % 2, -world.rank)
  local x = cg.zeros("int32", 3)
  local graph = cg.capture(function()
    x:fill(1)
    of:all_reduce(x)
  end, { order = k % 2 == 0 and "data" or nil })
  graph:replay()
  assert(x:download()[1] == of.size)
  return { graph = graph, group = of, buffer = x }
end

local ends = 0
for _, order in ipairs {
  { "graph", "group", "buffer" }, { "graph", "buffer", "group" }, { "group", "graph", "buffer" },
  { "group", "buffer", "graph" }, { "buffer", "graph", "group" }, { "buffer", "group", "graph" },
} do
  local made = make(ends)
  made.graph:replay(2) -- still under way
  for _, name in ipairs(order) do made[name]:release() end
  ends = ends + 1
end
world:barrier()
local first = world.rank == 0
local kept = make(1)
world:release()
kept.graph:replay(3)
kept.group:release()
kept.graph:replay() -- and the program ends with it
if first then print("right: " .. ends .. " ends") end
