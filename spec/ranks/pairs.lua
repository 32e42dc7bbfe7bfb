-- Sends and receives between random pairs, in random order; the argument is the
-- seed.  With "cross" behind it ranks 0 and 1 then receive before they send.

local cg = require "cgraphlua"
local world = cg.ranks { seconds = 60 }
local seed, cross = tonumber(arg[1]), arg[2] == "cross"
local transfers = 0

-- All ranks draw the same pairs, at most one of each.
local function draw()
  local pairs_ = {}
  for from = 0, world.size - 1 do
    for to = 0, world.size - 1 do
      if math.random() < 0.5 then
        table.insert(pairs_, math.random(#pairs_ + 1),
          { from = from, to = to, size = math.random(0, 3) * 3000, number = math.random(1e6) })
      end
    end
  end
  return pairs_
end

-- This rank's part of the pairs, and what it receives.
local function part(pairs_)
  local list, wanted = {}, {}
  for _, p in ipairs(pairs_) do
    if p.from == world.rank then
      list[#list + 1] = { send = cg.full("int32", p.size, p.number), to = p.to }
    end
    if p.to == world.rank then
      list[#list + 1] = { recv = cg.zeros("int32", p.size), from = p.from }
      wanted[#wanted + 1] = { buffer = list[#list].recv, number = p.number, size = p.size }
    end
  end
  return list, wanted
end

local function check(wanted)
  for _, w in ipairs(wanted) do
    local got = w.buffer:download()
    assert(#got == w.size)
    for _, number in ipairs(got) do assert(number == w.number) end
    transfers = transfers + 1
  end
end

for round = 1, 20 do
  math.randomseed(seed * 1000 + round)
  local all = draw()
  local list, wanted = part(all)
  math.randomseed(seed * 1000 + round * 10 + world.rank) -- each rank has its own order
  for i = #list, 2, -1 do
    local k = math.random(i)
    list[i], list[k] = list[k], list[i]
  end
  if round % 2 == 0 or #list == 0 then
    world:exchange(list)
  else
    cg.capture(function() world:exchange(list) end):replay(3)
  end
  check(wanted)
  -- One after the other, in the order that all ranks know.
  for _, p in ipairs(all) do
    if p.from ~= p.to then
      list, wanted = part { p }
      for _, t in ipairs(list) do
        if t.send then world:send(t.send, t.to) else world:recv(t.recv, t.from) end
      end
      check(wanted)
    end
  end
end

-- The third rank keeps its patience: it must not be the first to say who is missing.
if cross and world.rank < 2 then
  cg.ranks { seconds = 3 }
  local x, other = cg.zeros("int32", 10000), 1 - world.rank
  world:recv(x, other)
  world:send(x, other)
  cg.synchronize()
end
world:barrier()
cg.synchronize()
if world.rank == 0 then print("right: " .. transfers .. " transfers") end
