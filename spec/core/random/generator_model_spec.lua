-- Random programs of draws against a model: a state is a seed and a count, and
-- whatever draws, in whatever graph and on whatever stream, takes the next.

local cg = require "cgraphlua"
local bit = require "bit"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

-- The first word of an operation, computed here.
local function word(seed, operation)
  local c = { 0, 0, operation % 2 ^ 32, math.floor(operation / 2 ^ 32) }
  local k0, k1 = seed % 2 ^ 32, math.floor(seed / 2 ^ 32)
  for _ = 1, 10 do
    local p, q = 0xd2511f53ULL * c[1], 0xcd9e8d57ULL * c[3]
    c = {
      bit.bxor(tonumber(bit.rshift(q, 32)), c[2], k0) % 2 ^ 32, tonumber(q % 2ULL ^ 32),
      bit.bxor(tonumber(bit.rshift(p, 32)), c[4], k1) % 2 ^ 32, tonumber(p % 2ULL ^ 32),
    }
    k0, k1 = (k0 + 0x9e3779b9) % 2 ^ 32, (k1 + 0xbb67ae85) % 2 ^ 32
  end
  return c[1]
end

describe("generators", function()
  local kernel
  setup(function()
    kernel = cg.kernel [[
      extern "C" __global__ void word(unsigned *x, cgl_philox rng) { *x = cgl_random(rng); }
    ]]
  end)
  teardown(function()
    kernel = nil
    device.nothing_alive()
  end)

  -- One program; `random(n)` is from 1 to n.
  local function program(random)
    local states, gens, streams, graphs, targets = {}, {}, {}, {}, {}
    for i = 1, 3 do
      states[i] = { seed = random(2 ^ 31) * 3, count = 0 }
      states[i].saved = { seed = random(100), count = random(100) }
      states[i].saved.buffer =
        cg.from({ states[i].saved.seed, states[i].saved.count }, "uint64")
      gens[i] = { state = states[i], object = cg.generator(states[i].seed) }
      streams[i] = cg.stream()
    end
    gens[4] = { state = states[1], object = gens[1].object:graphsafe_get_state() }

    local function target()
      local t = { buffer = cg.buffer("uint32", 1) }
      targets[#targets + 1] = t
      return t
    end

    -- The model: what a target holds when all is done.
    local function take(state, t)
      t.expected = word(state.seed, state.count)
      state.count = state.count + 1
    end
    local function copy(from, to) to.seed, to.count = from.seed, from.count end
    local function run(items)
      for _, item in ipairs(items) do
        if item.items then run(item.items)
        elseif item.from then copy(item.from, item.to)
        else take(item.state, item.target) end
      end
    end
    -- Saves the generator's state, goes back to what was saved, or clones it;
    -- the item.  A state has its own buffer, so that its order is the buffer's.
    local function move(gen)
      local state, what = gen.state, random(3)
      local saved = state.saved
      if saved and what == 1 then
        assert.equal(saved.buffer, gen.object:get_state(saved.buffer))
        return { from = state, to = saved }
      elseif saved and what == 2 then
        gen.object:set_state(saved.buffer)
        return { from = saved, to = state }
      end
      local clone = { object = gen.object:clone_state() }
      clone.state = { seed = 0, count = 0 } -- until a replay, when captured
      gens[random(4)] = clone
      return { from = state, to = clone.state }
    end

    local function issue(gen, t)
      if random(2) == 1 then
        t.buffer:random(gen.object, 2 ^ 32)
      else
        kernel:launch(1, 1, t.buffer, gen.object)
      end
    end

    local function capture()
      local g = { items = {} }
      -- Made outside: a capture's own memory is not to be read afterwards.
      local room = {}
      for i = 1, 8 do room[i] = target() end
      local side = streams[random(3)]
      local forked
      g.object = cg.capture(function()
        local main = cg.current_stream()
        for i = 1, random(8) do
          local on = main
          if random(3) == 1 then
            if not forked then side:wait(main) end
            forked, on = true, side
          end
          on:use(function()
            local child = #graphs > 0 and random(4) == 1 and graphs[random(#graphs)]
            if child then
              child.object:replay()
              g.items[#g.items + 1] = child
            elseif random(4) == 1 then
              g.items[#g.items + 1] = move(gens[random(4)])
            else
              local gen, t = gens[random(4)], room[i]
              issue(gen, t)
              g.items[#g.items + 1] = { state = gen.state, target = t }
            end
          end)
        end
        if forked then main:wait(side) end
      end)
      graphs[#graphs + 1] = g
    end

    local actions = {
      capture,
      function()
        local gen, t = gens[random(4)], target()
        streams[random(3)]:use(function() issue(gen, t) end)
        take(gen.state, t)
      end,
      function()
        if #graphs == 0 then return end
        local g, n = graphs[random(#graphs)], random(3)
        streams[random(3)]:use(function() g.object:replay(n) end)
        for _ = 1, n do run(g.items) end
      end,
      function()
        local gen, seed = gens[random(4)], random(2 ^ 31)
        gen.object:manual_seed(seed)
        gen.state.seed, gen.state.count = seed, 0
      end,
      function()
        local gen = gens[random(4)]
        gen.object:set_offset(random(2 ^ 40))
        gen.state.count = gen.object:get_offset()
      end,
      function()
        local gen, other = gens[random(4)], gens[random(4)]
        gen.object:graphsafe_set_state(other.object)
        gen.state = other.state
      end,
      function()
        streams[random(3)]:use(function() run { move(gens[random(4)]) } end)
      end,
    }
    local often = { 1, 2, 2, 3, 3, 3, 4, 5, 6, 7 }
    for _ = 1, 40 do actions[often[random(#often)]]() end
    cg.synchronize()
    local drawn = 0
    for _, t in ipairs(targets) do
      if t.expected then
        drawn = drawn + 1
        assert.equal(t.expected, t.buffer:download()[1])
      end
    end
    for _, gen in ipairs(gens) do
      assert.same({ gen.state.seed, gen.state.count },
        { gen.object:initial_seed(), gen.object:get_offset() })
    end
    return drawn
  end

  it("count as the model does in forty random programs", function()
    local seed = 20261120
    local function random(n)
      seed = (seed * 16807) % 2147483647
      return seed % n + 1
    end
    local drawn = 0
    for _ = 1, 40 do drawn = drawn + program(random) end
    assert.is_true(drawn > 500)
  end)
end)
