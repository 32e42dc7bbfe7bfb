-- Graphs, groups, buffers and handles of the world that end in every order,
-- released or collected, with work under way; then the program ends while some
-- are left.  Arguments: how many of the last case's things end before the
-- program does, and how the program ends.

local cg = require "cgraphlua"
local ENDS = { "graph", "group", "buffer", "world" }
local left, how = tonumber(arg[1]), arg[2]
local world = cg.ranks { seconds = 60 }

local function orders_of(names)
  if #names == 0 then return { {} } end
  local all = {}
  for i, name in ipairs(names) do
    local others = { unpack(names) }
    table.remove(others, i)
    for _, order in ipairs(orders_of(others)) do
      table.insert(order, 1, name)
      all[#all + 1] = order
    end
  end
  return all
end

-- Ways to issue: eager, or a graph that is replayed.
local ways = {
  eager = function(step)
    return { replay = function(_, n) for _ = 1, n do step() end end, release = function() end }
  end,
  issue = function(step) return cg.capture(step) end,
  data = function(step) return cg.capture(step, { order = "data" }) end,
}

local function make(way, color)
  local made = {
    world = cg.ranks(),
    group = world:split((world.rank + color) % 2, -world.rank),
    buffer = cg.zeros("int32", 3),
  }
  local function step()
    made.buffer:fill(1)
    made.group:all_reduce(made.buffer)
    made.world:broadcast(made.buffer)
  end
  local wanted = cg.zeros("int32", 1) -- what rank 0's group has
  made.graph = way(step)
  made.graph:replay(1)
  wanted:fill(made.group.size)
  world:broadcast(wanted)
  assert(made.buffer:download()[1] == wanted:download()[1])
  return made
end

-- Each thing ends, and is not used again.
local finish = {
  release = function(made, name) made[name]:release() end,
  collect = function(made, name)
    made[name] = nil
    collectgarbage()
    collectgarbage()
  end,
}

local function settle()
  cg.synchronize()
  jit.flush() -- compiled loops hold the objects that they used
  for _ = 1, 3 do collectgarbage() end
  return cg.live()
end

local ends = 0
make(ways.issue, 0) -- what stays from first uses is there
local before = settle()
for _, way in pairs { "eager", "issue", "data" } do
  for _, finishing in ipairs { "release", "collect" } do
    for _, order in ipairs(orders_of(ENDS)) do
      local made = make(ways[way], ends)
      made.graph:replay(2) -- still under way
      for _, name in ipairs(order) do finish[finishing](made, name) end
      ends = ends + 1
    end
  end
end
world:barrier()
local after = settle()
assert(after == before, ("%d objects are left"):format(after - before))
if world.rank == 0 then print("right: " .. ends .. " ends") end
local kept = make(ways.issue, 1)
kept.graph:replay(3)
for i = 1, left do finish.release(kept, ({ "group", "world", "buffer", "graph" })[i]) end
if how == "world" then world:release() end
if how == "exit" then os.exit(0) end
if how == "open" then os.exit(0, false) end
