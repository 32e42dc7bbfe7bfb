-- The first graph that a script captures, replayed in issue order and in data order.
--
--   cgraphlua bench/orders.lua SCRIPT [ARGUMENTS...]
--
-- Its replays take turns where the script would have begun with them, and the script
-- ends there.  Scripts that count their replays need arguments that leave room for so
-- many: --epochs 5000 of digits, --years 2000 of nbody, --steps 2000000 of lbm.

local cg = require "cgraphlua"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")
local median, number, now = measure.median, measure.number, measure.now
local script = assert(arg[1], "bench/orders.lua SCRIPT [ARGUMENTS...]")
local SECONDS, LEAST = 1, 0.01 -- of all rounds, and of one run

local function run_of(graph, times)
  return function()
    cg.synchronize()
    local start = now()
    graph:replay(times)
    cg.synchronize()
    return (now() - start) / times
  end
end

local capture = cg.capture
function cg.capture(fn, opts) -- luacheck: ignore 122
  local graphs, plans = {}, {}
  for i, order in ipairs { "issue", "data" } do
    local mine = { order = order }
    for name, value in pairs(opts or {}) do
      if name ~= "order" then mine[name] = value end
    end
    graphs[i] = capture(fn, mine)
    plans[i] = graphs[i]:plan()
  end
  local once = run_of(graphs[1], 1)
  once()
  local times = math.max(1, math.ceil(LEAST * 1e6 / once()))
  local issue, data = measure.rounds(SECONDS,
    { run_of(graphs[1], times), run_of(graphs[2], times) })
  print(("%-14s %5d nodes, path %5d and %5d: %9s us in issue order, %9s in data, %.3f as fast")
    :format(script:match "[^/]*$", plans[1].nodes, plans[1].longest, plans[2].longest,
      number(median(issue)), number(median(data)), measure.ratio(issue, data)))
  os.exit(0, true)
end

arg = { [0] = script, unpack(arg, 2) } -- luacheck: ignore 121
dofile(script)
