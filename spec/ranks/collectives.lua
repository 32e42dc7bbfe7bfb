-- Every rank runs this: each collective, with each type, in and outside of
-- captures, gives what one rank computes from all ranks' numbers.

local cg = require "cgraphlua"
local world = cg.ranks { seconds = 60 }
local checks = 0
cg.on_log(nil)

local types = { "float", "double", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                "uint64", "half", "bfloat16", "bool" }
local counts = { 0, 1, 5, 257 }

-- What rank r has at place i, from 0: another number than its neighbours, and so
-- small that every type holds the products of eight ranks.
local function number_at(kind, r, i)
  if kind == "bool" then
    return (i + r) % 3 == 0
  end
  return (i * 7 + r * 5) % (kind == "int8" and 2 or 3) + 1
end

local function values(kind, r, n)
  local list = {}
  for i = 1, n do list[i] = number_at(kind, r, i - 1) end
  return list
end

local function fresh(kind, list)
  local buffer = cg.zeros(kind, #list)
  if #list > 0 then buffer:upload(list) end
  return buffer
end

local function check(what, buffer, wanted)
  checks = checks + 1
  local got = buffer:download()
  for i = 1, #wanted do
    local x = got[i]
    if type(x) == "cdata" then x = tonumber(x) end
    if x ~= wanted[i] then
      error(("%s, rank %d of %d: element %d is %s, not %s"):format(what, world.rank, world.size,
        i - 1, tostring(x), tostring(wanted[i])), 0)
    end
  end
end

local combine = {
  sum = function(a, b) return a + b end,
  product = function(a, b) return a * b end,
  min = math.min,
  max = math.max,
  any = function(a, b) return a or b end,
  all = function(a, b) return a and b end,
}

-- The reduction of all ranks' numbers.
local function reduced(group, kind, op, n)
  local list = values(kind, group.members[1], n)
  for k = 2, #group.members do
    for i = 1, n do
      list[i] = combine[op](list[i], number_at(kind, group.members[k], i - 1))
    end
  end
  return list
end

local function part(list, first, n)
  local out = {}
  for i = 1, n do out[i] = list[first + i] end
  return out
end

-- Does the work at once, in a replay, and in three replays of one call; outputs
-- are cleared before each.
local function each_way(name, work, outputs, verify)
  local function clear()
    for _, x in ipairs(outputs) do if #x > 0 then x:fill(0) end end
  end
  clear()
  work()
  verify(name)
  for _, order in ipairs { "issue", "data" } do
    local graph = cg.capture(work, { order = order })
    for _, n in ipairs { 1, 3 } do
      clear()
      graph:replay(n)
      verify(("%s, %d replays in order of %s"):format(name, n, order))
    end
    graph:release()
  end
end

local function reductions(group, kind, op, n)
  local me, size = group.ranks.rank, group.ranks.size
  local x = fresh(kind, values(kind, world.rank, n))
  local whole = fresh(kind, values(kind, world.rank, n * size))
  local all, one, scattered = cg.zeros(kind, n), cg.zeros(kind, n), cg.zeros(kind, n)
  local name = ("%s of %d %s"):format(op, n, kind)
  each_way(name, function()
    group.ranks:all_reduce(x, all, op)
    group.ranks:reduce(x, me == size - 1 and one or nil, op, size - 1)
    group.ranks:reduce_scatter(whole, scattered, op)
  end, kind == "bool" and {} or { all, one, scattered }, function(way)
    check("all_reduce, " .. way, all, reduced(group, kind, op, n))
    if me == size - 1 then check("reduce, " .. way, one, reduced(group, kind, op, n)) end
    check("reduce_scatter, " .. way, scattered,
      part(reduced(group, kind, op, n * size), me * n, n))
  end)
end

local function moves(group, kind, n)
  local ranks, members = group.ranks, group.members
  local me, size = ranks.rank, ranks.size
  local x = fresh(kind, values(kind, world.rank, n))
  local whole = fresh(kind, values(kind, world.rank, n * size))
  local gathered, swapped = cg.zeros(kind, n * size), cg.zeros(kind, n * size)
  local told, left, right = cg.zeros(kind, n), cg.zeros(kind, n), cg.zeros(kind, n)
  local before, after = (me - 1) % size, (me + 1) % size
  local name = ("%d %s"):format(n, kind)
  each_way(name, function()
    ranks:all_gather(x, gathered)
    if me == 0 then told:copy(x) end
    ranks:broadcast(told, 0)
    ranks:all_to_all(whole, swapped)
    ranks:exchange {
      { send = x, to = before }, { send = x, to = after },
      { recv = right, from = after }, { recv = left, from = before },
    }
    ranks:barrier()
  end, kind == "bool" and {} or { gathered, told, swapped, left, right }, function(way)
    local all, parts = {}, {}
    for _, r in ipairs(members) do
      for i = 0, n - 1 do
        all[#all + 1] = number_at(kind, r, i)
        parts[#parts + 1] = number_at(kind, r, me * n + i)
      end
    end
    check("all_gather, " .. way, gathered, all)
    check("broadcast, " .. way, told, values(kind, members[1], n))
    check("all_to_all, " .. way, swapped, parts)
    check("exchange, " .. way, left, values(kind, members[before + 1], n))
    check("exchange, " .. way, right, values(kind, members[after + 1], n))
  end)
end

local everyone = { ranks = world, members = {} }
for r = 0, world.size - 1 do everyone.members[r + 1] = r end

-- Ranks of one parity, in reverse.
local half = { ranks = world:split(world.rank % 2, -world.rank), members = {} }
for r = world.size - 1, 0, -1 do
  if r % 2 == world.rank % 2 then half.members[#half.members + 1] = r end
end
assert(world:split(-1) == nil)
assert(half.ranks.size == #half.members and half.members[half.ranks.rank + 1] == world.rank)

local on_gpu = cg.device().device ~= "host"
for _, kind in ipairs(types) do
  local narrow = kind == "int16" or kind == "uint16"
  for _, n in ipairs(counts) do
    if kind == "bool" then
      reductions(everyone, kind, "any", n)
      reductions(everyone, kind, "all", n)
    elseif not (on_gpu and narrow) then -- NCCL has no such reductions
      for _, op in ipairs { "sum", "product", "min", "max" } do
        reductions(everyone, kind, op, n)
      end
    end
    moves(everyone, kind, n)
  end
  reductions(half, kind, kind == "bool" and "any" or "max", 5)
  moves(half, kind, 5)
end

-- In place, and beside other work on two streams of one capture.
local x, y = cg.full("float", 100, world.rank + 1), cg.zeros("float", 100)
local side = cg.stream()
local both = cg.capture(function()
  world:all_reduce(x, x, "max")
  local fork = cg.event()
  fork:record()
  side:wait(fork)
  side:use(function()
    y:fill(world.rank)
    world:all_reduce(y)
  end)
  world:broadcast(x, 0)
  cg.current_stream():wait(side)
end)
both:replay(2)
check("in place", x, { world.size })
check("on a side stream", y, { world.size * (world.size - 1) / 2 })

-- Elements of several numbers: each number by itself.
local function check_pairs(what, buffer, wanted)
  local flat = {}
  for _, element in ipairs(buffer:download()) do
    for _, number in ipairs(element) do flat[#flat + 1] = number end
  end
  check(what, { download = function() return flat end }, wanted)
end
local z = cg.from({ { 1, world.rank }, { 2, 3 } }, "complex64")
local triple = cg.full("int3", 1, { world.rank, 7, -world.rank })
local sums, all = cg.zeros("complex64", 2), cg.zeros("int3", world.size)
each_way("several numbers", function()
  world:all_reduce(z, sums)
  world:all_gather(triple, all)
end, {}, function(way)
  local n, wanted = world.size, {}
  check_pairs("complex sums, " .. way, sums, { n, n * (n - 1) / 2, 2 * n, 3 * n })
  for r = 0, n - 1 do
    for _, number in ipairs { r, 7, -r } do wanted[#wanted + 1] = number end
  end
  check_pairs("vectors, " .. way, all, wanted)
end)

-- A file cannot hold what another library does.
if world.size > 1 then
  local ok, err = pcall(both.save, both, os.tmpname())
  checks = checks + 1
  assert(not ok and err.message:find("another library does its work", 1, true), tostring(err))
end

-- Sends to the next rank, one after the other.
if world.size > 1 then
  local a, b = cg.full("int32", 3, world.rank), cg.zeros("int32", 3)
  if world.rank % 2 == 0 and world.rank + 1 < world.size then
    world:send(a, world.rank + 1)
    world:recv(b, world.rank + 1)
    check("recv", b, { world.rank + 1, world.rank + 1, world.rank + 1 })
  elseif world.rank % 2 == 1 then
    world:recv(b, world.rank - 1)
    world:send(a, world.rank - 1)
    check("recv", b, { world.rank - 1 })
  end
end

-- A rank's own sends have their receives in the same exchange.
local mine, got = cg.full("int32", 2, world.rank), cg.zeros("int32", 2)
local neighbour = (world.rank + 1) % world.size
for _, slip in ipairs {
  function() world:send(mine, world.rank) end,
  function() world:recv(got, world.rank) end,
  function()
    world:exchange { { send = mine, to = world.rank }, { recv = got, from = neighbour } }
  end,
} do
  local ok, err = pcall(slip)
  checks = checks + 1
  assert(world.size == 1 or not ok and err.message:find("no other side", 1, true), tostring(err))
end
world:exchange { { send = mine, to = world.rank }, { recv = got, from = world.rank } }
check("its own", got, { world.rank, world.rank })

world:barrier()
cg.synchronize()
if world.rank == 0 then
  print(("right: %d checks on %d ranks, %s"):format(checks, world.size, world.library))
end
