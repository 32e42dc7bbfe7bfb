-- Switching the nodes of a captured graph off and on: set_enabled.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips
local first = device.first

local N = 4

describe("graph:set_enabled", function()
  teardown(device.nothing_alive)

  local function three(opts)
    local add = device.kernel "add"
    local x, y = cg.zeros("float", N), cg.zeros("float", N)
    local g = cg.capture(function()
      x:fill(1)
      add:launch(1, 32, x, 10, N)
      y:copy(x)
    end, opts)
    return g, x, y
  end

  it("switches kernels, fills and copies off and on", function()
    local g, x, y = three()
    g:set_enabled(2, false)
    g:replay()
    assert.same({ 1, 1 }, { first(x), first(y) })
    g:set_enabled(2, true)
    g:set_enabled(1, false)
    g:set_enabled(1, false)
    g:replay(2)
    assert.same({ 21, 21 }, { first(x), first(y) })
    g:set_enabled(3, false)
    g:replay()
    assert.same({ 31, 21 }, { first(x), first(y) })
    assert.same({ false, true, false },
      { g:nodes()[1].enabled, g:nodes()[2].enabled, g:nodes()[3].enabled })
  end)

  it("holds for executables that are made later, and under set_params", function()
    local g, x = three { keep_graph = true }
    g:set_enabled(2, false)
    g:set_params(2, { [2] = 100 })
    g:replay()
    assert.equal(1, first(x))
    g:instantiate()
    g:replay()
    assert.equal(1, first(x))
    g:set_enabled(2, true)
    g:replay()
    assert.equal(101, first(x))
    g:reset()
    g:capture(function() x:fill(3) x:fill(4) end)
    g:replay()
    assert.same({ 4, true }, { first(x), g:nodes()[2].enabled })
  end)

  it("keeps what set_params gives a fill that is off", function()
    for _, kind in ipairs { "float", "int16", "uint8" } do
      local x, z = cg.zeros(kind, 1000), cg.zeros(kind, 1000)
      local g = cg.capture(function() x:fill(1) end, { keep_graph = true })
      g:set_enabled(1, false)
      g:set_params(1, { buffer = z, value = 7 })
      g:replay()
      assert.same({ 0, 0 }, { first(x), first(z) })
      g:instantiate()
      g:replay()
      assert.same({ 0, 0 }, { first(x), first(z) })
      g:set_enabled(1, true)
      g:replay()
      assert.same({ 0, 7, 7 }, { first(x), first(z), z:download()[1000] })
    end
  end)

  -- A driver that has a small memset at the end of a graph switched off fails
  -- (CUDA_ERROR_LAUNCH_FAILED) when two launches of the graph are in flight.
  it("leaves replays in flight alone, with fills of all sizes off", function()
    local add = device.kernel "add"
    for _, n in ipairs { 1, 8, 256, 1000, 1024, 5000 } do
      for _, kind in ipairs { "float", "double" } do
        local x, y = cg.zeros("float", n), cg.zeros(kind, n)
        local g = cg.capture(function()
          y:fill(1.5)
          add:launch(math.ceil(n / 32), 32, x, 1, n)
          y:fill(2.5)
        end)
        local nodes = #g:nodes()
        for turn = 1, 40 do
          local node = turn % nodes + 1
          if g:nodes()[node].name ~= "add" then g:set_enabled(node, turn % 8 < 4) end
          for _ = 1, 4 do g:replay() end
        end
        assert.equal(160, first(x))
      end
    end
  end)

  it("is refused as a child graph while a node is off", function()
    local g, x = three()
    g:set_enabled(2, false)
    local h = cg.graph()
    h:capture(function()
      raises("CGL_ERROR_CAPTURE_STATE", function() g:replay() end, "switched off")
      g:set_enabled(2, true)
      g:replay()
    end)
    h:replay()
    assert.equal(11, first(x))
  end)

  it("shows in pictures", function()
    local g = three()
    g:set_enabled(2, false)
    local path = os.tmpname()
    g:debug_dump(path)
    local text = device.program.read(path)
    os.remove(path)
    assert.matches("add[^\n]*switched off", text)
    assert.is_nil(text:match "buffer:fill[^\n]*switched off")
  end)

  it("counts as filling nothing for the graphs of its pool while off", function()
    local pool, add = cg.pool(), device.kernel "add"
    local x = cg.zeros("float", N)
    local function read() x:fill(0) end
    local producer, y = cg.capture(function()
      local y = cg.buffer("float", N)
      y:fill(5)
      return y
    end, { pool = pool })
    local consumer = cg.capture(function()
      read()
      x:copy(y)
      add:launch(1, 32, x, 1, N)
    end, { pool = pool })
    producer:set_enabled(1, false)
    producer:replay()
    raises("CGL_ERROR_ORDER", function() consumer:replay() end, "has not filled yet")
    producer:set_enabled(1, true)
    producer:replay()
    consumer:replay()
    assert.equal(6, first(x))
    producer:set_enabled(1, false) -- what it filled before is there still
    producer:replay()
    consumer:replay()
    assert.equal(6, first(x))
  end)

  it("says nothing of the pool when what is off only reads it", function()
    local pool, out = cg.pool(), cg.zeros("float", N)
    local producer, y = cg.capture(function()
      local y = cg.buffer("float", N)
      y:fill(5)
      out:copy(y)
      return y
    end, { pool = pool })
    local consumer = cg.capture(function() out:copy(y) end, { pool = pool })
    producer:set_enabled(2, false)
    producer:replay()
    assert.equal(0, first(out))
    consumer:replay()
    assert.equal(5, first(out))
  end)

  it("fills again, also what was no other graph's concern so far", function()
    local out = cg.zeros("float", N)
    local producer, y = cg.capture(function()
      local y = cg.buffer("float", N)
      y:fill(5)
      return y
    end)
    producer:set_enabled(1, false)
    producer:replay()
    producer:set_enabled(1, true)
    producer:replay()
    local consumer = cg.capture(function() out:copy(y) end, { pool = producer:pool() })
    consumer:replay()
    assert.equal(5, first(out))
  end)

  it("refuses what cannot be off", function()
    local g = three()
    local gen, y, e = cg.generator(1), cg.zeros("float", N), cg.event { external = true }
    local h = cg.capture(function()
      g:replay()
      e:record()
      y:uniform(gen)
    end)
    for i, what in pairs { "graph:replay", "event:record", [4] = "advance" } do
      raises("CGL_ERROR_INVALID_ARGUMENT", function() h:set_enabled(i, false) end, what)
    end
    h:set_enabled(3, false)
    h:replay()
    assert.equal(0, first(y))
    slips(function() h:set_enabled(3) end, "true or false")
    slips(function() h:set_enabled(0, true) end)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() h:set_enabled(5, true) end, "4 nodes")
  end)
end)
