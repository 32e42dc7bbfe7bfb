-- What grows with what is there: the time of each of so many forks and joins
-- of one capture, with scratch from stream to stream, and of each of so many
-- hooks of one graph.  Of eight times as many, each should take as long.
--   cgraphlua bench/growth.lua [--device D] [--most N]

local cg = require "cgraphlua"
local options = require "cgraphlua.options"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")

local PASSES = 5

local opt = options.read({
  usage = "bench/growth.lua [options]",
  about = "Times per fork and join, and per hook, of few and of many.",
  { "most", "N", 10000, "how many at the most", min = 80, max = 1e6 },
}, arg)

local function forks(n)
  local y, side = cg.zeros("float", 4), cg.stream()
  cg.capture(function()
    local main = cg.current_stream()
    for _ = 1, n do
      local x = cg.buffer("float", 4)
      x:fill(1)
      side:wait(main)
      side:use(function() y:copy(x) end)
      main:wait(side)
      x:release()
    end
  end):release()
end

local function hooks(n)
  local x, list = cg.zeros("float", 4), {}
  local g = cg.capture(function() x:fill(1) end)
  for i = 1, n do list[i] = g:register_replay_start_hook(function() end) end
  g:replay()
  for i = n, 1, -1 do list[i]:remove() end
  g:release()
end

for _, kind in ipairs { { "fork and join", forks }, { "hook", hooks } } do
  local few, many = {}, {}
  for pass = 1, PASSES do
    for times, n in pairs { [few] = opt.most / 8, [many] = opt.most } do
      times[pass] = measure.time(function() kind[2](math.floor(n)) end) / n
    end
  end
  print(("%-16s %8.2f us each of %d, %8.2f us each of %d"):format(kind[1],
    measure.median(few), opt.most / 8, measure.median(many), opt.most))
end
