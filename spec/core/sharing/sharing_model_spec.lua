-- Random captures that read what earlier ones left and drop some of it, then
-- random replays and writes of the script, beside a model of who wrote last to
-- each address and of what every buffer should hold.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, value = device.raises, device.value

local N = 64
local GRAPHS, REPLAYS, ROUNDS = 10, 80, 12
local source = [[
extern "C" __global__ void mix(float *y, const float *x0, const float *x1, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a + 0.25f * x0[i] + 0.125f * x1[i];
}]]

-- Graphs of one pool, each a list of its operations, and the buffers that the
-- script still holds in the end: { buffer, address } each.
local function random_graphs(mix, below)
  local pool, graphs, live = cg.pool(), {}, {}

  local function operation(number)
    local b = cg.buffer("float", N)
    local y = { buffer = b, address = b:address() }
    local x0, x1 = live[below(#live + 1) + 1], live[below(#live + 1) + 1]
    x0, x1 = x0 or x1 or y, x1 or x0 or y
    if x0 == y then b:fill(number) end
    local a = below(100)
    mix:over(N)(b, x0.buffer, x1.buffer, a, N)
    return { y = y, x0 = x0, x1 = x1, a = a, fills = x0 == y and number }
  end

  for number = 1, GRAPHS do
    local ops, scratch = {}, {}
    local g = cg.capture(function()
      for i = 1, 2 + below(4) do
        ops[i] = operation(number)
        local kept = below(2) == 0 and live or scratch
        kept[#kept + 1] = ops[i].y
        if below(3) == 0 and #scratch > 0 then table.remove(scratch).buffer:release() end
      end
    end, { pool = pool })
    for _, one in ipairs(scratch) do one.buffer:release() end
    graphs[number] = { g = g, ops = ops }
    while #live > 4 or (#live > 1 and below(3) == 0) do
      table.remove(live, below(#live) + 1).buffer:release()
    end
  end
  return graphs, live
end

-- Is there what a graph reads and does not make itself?
local function is_there(graph, last)
  local made = {}
  for _, op in ipairs(graph.ops) do
    for _, x in ipairs { op.x0, op.x1 } do
      if x ~= op.y and not made[x] and last[x.address] ~= x then return false end
    end
    made[op.y] = true
  end
  return true
end

describe("sharing a pool", function()
  teardown(device.nothing_alive)

  it("refuses exactly what a model of memory says is not there", function()
    local mix = cg.module(source):kernel "mix"
    local state = 12345
    local function below(n)
      state = (state * 1103515245 + 12345) % 2 ^ 31
      return math.floor(state / 65536) % n
    end
    local refused, passed = 0, 0
    for _ = 1, ROUNDS do
      local graphs, live = random_graphs(mix, below)
      local last, value_of = {}, {} -- who wrote last to an address; what a buffer holds
      for _ = 1, REPLAYS do
        local graph = graphs[below(GRAPHS) + 1]
        if below(8) == 0 and #live > 0 then
          local one = live[below(#live) + 1]
          one.buffer:fill(3)
          last[one.address], value_of[one] = one, 3
        end
        if is_there(graph, last) then
          graph.g:replay()
          passed = passed + 1
          for _, op in ipairs(graph.ops) do
            if op.fills then value_of[op.y] = op.fills end
            value_of[op.y] = op.a + 0.25 * value_of[op.x0] + 0.125 * value_of[op.x1]
            last[op.y.address] = op.y
          end
        else
          raises("CGL_ERROR_ORDER", function() graph.g:replay() end)
          refused = refused + 1
        end
        for _, one in ipairs(live) do
          if last[one.address] == one then
            assert.is_true(math.abs(value(one.buffer) - value_of[one]) < 1e-3)
          elseif value_of[one] then
            raises("CGL_ERROR_ORDER", function() one.buffer:download() end)
          end
        end
      end
    end
    assert.is_true(refused > 100 and passed > 100)
  end)
end)
