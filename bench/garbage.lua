-- What dropped objects cost: rounds that leave their graphs and buffers to the
-- collector.  Prints the time of a round and the most device memory held
-- beyond what was alive at first; more than BAR is a failure.
--   cgraphlua bench/garbage.lua [--device D] [--rounds N]
-- To compare two builds, run each in turns and take medians.

local cg = require "cgraphlua"
local options = require "cgraphlua.options"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")

local BAR = 100 -- MB
local PASSES = 5

local opt = options.read({
  usage = "bench/garbage.lua [options]",
  about = "Rounds that leave graphs and buffers to the collector.",
  { "rounds", "N", 30000, "rounds of each kind", min = 100, max = 1e9 },
}, arg)

local x = cg.zeros("float", 1024)

local kinds = {
  { "capture with a temporary of 4 KB", 1, function(i)
    cg.capture(function()
      local t = cg.buffer("float", 1000)
      t:fill(i)
    end)
  end },
  { "capture with a temporary of 1 MB, replay", 1, function(i)
    local g = cg.capture(function()
      local t = cg.buffer("float", 250000)
      t:fill(i)
      x:fill(i)
    end)
    g:replay()
  end },
  { "buffer of 1 MB", 1, function() cg.buffer("float", 250000) end },
  { "buffer of 4 KB", 10, function() cg.buffer("float", 1000) end },
  { "pinned memory of 64 KB", 1, function() cg.pinned("float", 16000) end },
}

local function used()
  local free, total = cg.mem_get_info()
  return (total - free) / 1e6
end

-- The most MB held beyond what is alive.
local function peak(count, round)
  for _ = 1, 2 do
    collectgarbage()
    cg.synchronize()
  end
  local alive, most = used(), 0
  for i = 1, count do
    round(i)
    most = math.max(most, used() - alive)
  end
  return most
end

-- The median time of a round, in microseconds.
local function time(count, round)
  local times = {}
  for pass = 1, PASSES do
    local start = measure.now()
    for i = 1, count do round(i) end
    times[pass] = (measure.now() - start) / count
  end
  table.sort(times)
  return times[math.ceil(PASSES / 2)]
end

local failed = false
for _, kind in ipairs(kinds) do
  local name, often, round = unpack(kind)
  local count = math.ceil(opt.rounds * often / PASSES)
  local most = peak(count, round)
  print(("%-42s %8.2f us a round, %6.1f MB beyond what is alive"):format(name,
    time(count, round), most))
  failed = failed or most > BAR
end
if failed then
  io.stderr:write(("garbage: more than %d MB beyond what is alive\n"):format(BAR))
  os.exit(1, true)
end
