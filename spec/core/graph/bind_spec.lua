-- Inputs: buffers that graphs exchange by name.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

local source = [[
extern "C" __global__ void add(float *y, const float *x, float a) {
  y[threadIdx.x] += a * x[threadIdx.x];
}
extern "C" __global__ void both(float *y, const float *a, const float *b) { *y = *a * 10 + *b; }
extern "C" __global__ void fill(float *x, int n) { for (int i = 0; i < n; i++) x[i] = n; }
]]

local module

local function kernel(name)
  module = module or cg.module(source)
  return module:kernel(name)
end

local function text(buffer)
  return table.concat(buffer:download(), " ")
end

-- A graph that adds its input to y.
local function adding(y, x, opts)
  return cg.capture(function() kernel "add":launch(1, #y, y, x, 1) end, opts)
end

describe("graph:bind", function()
  teardown(function()
    module = nil
    device.nothing_alive()
  end)

  it("exchanges an input in every node, views of it at their places", function()
    local x, y, z = cg.input("float", 4, "x"), cg.zeros("float", 4), cg.zeros("float", 4)
    x:upload { 1, 2, 3, 4 }
    local g = cg.capture(function()
      kernel "add":launch(1, 4, y, x, 1)
      kernel "add":launch(1, 2, y:view(1, 2), x:view(3, 2), 10)
      z:copy(x)
      x:view(2, 1):fill(7)
    end)
    g:replay()
    assert.equal("31 42 3 4", text(y))
    assert.equal("1 2 3 4", text(z))
    local b = cg.from({ 5, 6, 7, 8 }, "float")
    g:bind { x = b }
    assert.equal("31 42 3 4", text(y))
    g:replay()
    assert.equal("106 128 10 12", text(y))
    assert.equal("5 6 7 8", text(z))
    assert.equal("5 7 7 8", text(b))
    assert.equal("1 7 3 4", text(x))
    assert.equal(b:address(), g.inputs.x:address())
    g:bind { x = x }
    g:replay(2)
    assert.equal("1 7 3 4", text(z))
  end)

  it("exchanges an input that is several arguments of a launch", function()
    local x, y = cg.input("float", 2, "x"), cg.zeros("float", 1)
    local z, on = cg.zeros("float", 1), cg.full("int32", 1, 1)
    local g = cg.capture(function()
      kernel "both":launch(1, 1, y, x, x:view(2, 1))
      cg.when(on, function() kernel "both":launch(1, 1, z, x:view(2, 1), x) end, nil,
        { form = "node" })
    end)
    for i = 1, 3 do
      g:bind { x = cg.from({ i, i + 4 }, "float") }
      g:replay()
      assert.equal(("%d %d"):format(i * 10 + i + 4, (i + 4) * 10 + i), text(y) .. " " .. text(z))
    end
  end)

  it("takes a view, keeps its root, and lets go of what was bound before", function()
    local x, y = cg.input("float", 2, "x"), cg.zeros("float", 2)
    local g = adding(y, x)
    local pool = cg.pool()
    local big = cg.zeros("float", 4, { pool = pool })
    big:upload { 1, 2, 3, 4 }
    g:bind { x = big:view(2, 2) }
    big:release()
    collectgarbage()
    g:replay()
    assert.equal("2 3", text(y))
    assert.is_true(pool:stats().allocated > 0)
    g:bind { x = x }
    collectgarbage()
    collectgarbage()
    assert.equal(0, pool:stats().allocated)
    g:replay()
    assert.equal("2 3", text(y))
  end)

  it("binds all or nothing", function()
    local a, b, y = cg.input("float", 2, "a"), cg.input("float", 2, "b"), cg.zeros("float", 2)
    local one, four = cg.full("float", 2, 1), cg.zeros("float", 4)
    local g = cg.capture(function()
      kernel "add":launch(1, 2, y, a, 1)
      kernel "add":launch(1, 2, y, b, 1)
    end)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { a = one, b = four } end,
      'the input "b" is 2 float, and the buffer 4 float')
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { a = four, b = one } end)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { a = cg.zeros("int32", 2) } end,
      "2 float, and the buffer 2 int32")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { a = cg.zeros("float", { 2, 1 }) } end,
      "2 x 1 float")
    raises("CGL_ERROR_NOT_FOUND", function() g:bind { a = one, c = one } end,
      'the graph has no input "c"')
    slips(function() g:bind { a = 1 } end, "graph:bind", "'a' is 1, and no buffer")
    slips(function() g:bind { one } end, "the key 1 is no name")
    slips(function() g:bind(one) end, "a table of buffers by name expected")
    slips(function() g:bind() end, "a table of buffers by name expected")
    local gone = cg.zeros("float", 2)
    gone:release()
    raises("CGL_ERROR_RELEASED", function() g:bind { a = one, b = gone } end)
    g:bind {}
    g:replay()
    assert.equal("0 0", text(y))
    g:bind { b = one, a = one }
    g:replay()
    assert.equal("2 2", text(y))
  end)

  it("needs a capture, and names that differ", function()
    local x, again, y = cg.input("float", 2, "x"), cg.input("float", 2, "x"), cg.zeros("float", 2)
    local empty = cg.graph()
    raises("CGL_ERROR_NOT_CAPTURED", function() empty:bind { x = y } end)
    local g = cg.capture(function()
      kernel "add":launch(1, 2, y, x, 1)
      kernel "add":launch(1, 2, y, again, 1)
    end)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { x = y } end,
      '2 inputs of the graph have the name "x"')
    g:reset()
    raises("CGL_ERROR_NOT_CAPTURED", function() g:bind { x = y } end)
    g = cg.capture(function() y:fill(1) end)
    raises("CGL_ERROR_NOT_FOUND", function() g:bind { x = y } end, "has no input")
    assert.same({}, g.inputs)
  end)

  it("refuses an input made in a capture, and one without a name", function()
    raises("CGL_ERROR_INVALID_ARGUMENT", function()
      cg.capture(function() cg.input("float", 2, "x") end)
    end, "before the capture begins")
    slips(function() cg.input("float", 2) end, "the name")
    slips(function() cg.input("float", 2, "") end, "an input has a name")
    slips(function() cg.input("float", 2, "x\0y") end, "zero byte")
    slips(function() cg.input("float", 2, {}) end, "the name")
  end)

  it("refuses memory that the graph's own capture allocated", function()
    local x, y, inner = cg.input("float", 2, "x"), cg.zeros("float", 2), nil
    local g = cg.capture(function()
      inner = cg.full("float", 2, 1)
      kernel "add":launch(1, 2, y, x, 1)
      kernel "add":launch(1, 2, y, inner, 1)
    end)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { x = inner } end,
      "planned by the order")
  end)

  it("leaves a place to which set_params gave other memory", function()
    local x, y, z = cg.input("float", 1, "x"), cg.zeros("float", 1), cg.full("float", 1, 10)
    local g = cg.capture(function()
      kernel "add":launch(1, 1, y, x, 1)
      kernel "add":launch(1, 1, y, x, 1)
    end)
    g:set_params(1, { x = z })
    g:bind { x = cg.full("float", 1, 100) }
    g:replay()
    assert.equal("110", text(y))
    g:bind { x = z }
    g:bind { x = cg.full("float", 1, 1) }
    g:replay()
    assert.equal("121", text(y))
  end)

  it("reaches branches, loops and what decides them, in both forms", function()
    for _, form in ipairs { "automatic", "node", "predicated" } do
      local x, n = cg.input("float", 1, "x"), cg.input("int32", 1, "n")
      local y = cg.zeros("float", 1)
      x:fill(1)
      n:fill(1)
      local g = cg.capture(function()
        cg.when(n, function() kernel "add":launch(1, 1, y, x, 1) end, nil, { form = form })
        cg.times(n, function() kernel "add":launch(1, 1, y, x, 10) end,
          { form = form ~= "predicated" and form or nil })
      end)
      g:replay()
      assert.equal("11", text(y))
      g:bind { x = cg.full("float", 1, 2), n = cg.full("int32", 1, 3) }
      g:replay()
      assert.equal("73", text(y), form)
      g:bind { n = cg.zeros("int32", 1) }
      g:replay(3)
      assert.equal("73", text(y))
    end
  end)

  it("reaches child graphs, which stay by themselves", function()
    local x, y = cg.input("float", 1, "x"), cg.zeros("float", 1)
    local one, ten = cg.full("float", 1, 1), cg.full("float", 1, 10)
    local g = adding(y, x)
    g:bind { x = one }
    local h = cg.capture(function()
      g:replay(2)
      kernel "add":launch(1, 1, y, x, 100)
    end)
    x:fill(1)
    h:replay()
    assert.equal("102", text(y))
    h:bind { x = ten }
    h:replay()
    assert.equal("1122", text(y))
    g:replay()
    assert.equal("1123", text(y))
    local outer = cg.capture(function() h:replay() end)
    g:release()
    h:release()
    outer:replay()
    assert.equal("2143", text(y))
    outer:bind { x = one }
    outer:replay()
    assert.equal("2245", text(y))
  end)

  it("goes with parameters, unrolled replays and executables made later", function()
    local x, y, a = cg.input("float", 1, "x"), cg.zeros("float", 1), cg.param("float", 1, "a")
    local g = cg.capture(function() kernel "add":launch(1, 1, y, x, a) end, { keep_graph = true })
    local one, two = cg.full("float", 1, 1), cg.full("float", 1, 2)
    g:bind { x = one }
    g:replay(3000)
    g:bind { x = two }
    g:set { a = 2 }
    g:replay(3000)
    assert.equal("15000", text(y))
    g:bind { x = one }
    g:instantiate()
    g:replay()
    assert.equal("15002", text(y))
  end)

  it("reaches uploads, downloads and random numbers", function()
    local x, y = cg.input("float", 2, "x"), cg.zeros("float", 2)
    local from, to = cg.pinned("float", 2), cg.pinned("float", 2)
    local gen = cg.generator(1)
    from:set(1, 3)
    from:set(2, 4)
    local g = cg.capture(function()
      x:copy(from)
      kernel "add":launch(1, 2, y, x, 1)
      x:uniform(gen)
      to:copy(x)
    end)
    local b = cg.zeros("float", 2)
    g:bind { x = b }
    g:replay()
    cg.synchronize()
    assert.equal("3 4", text(y))
    assert.equal("0 0", text(x))
    assert.same({ to:get(1), to:get(2) }, b:download())
    assert.is_true(to:get(1) > 0 and to:get(1) < 1)
  end)

  it("refuses, where bytes order nodes, memory that others of them use", function()
    local x, y, z = cg.input("float", 1, "x"), cg.zeros("float", 1), cg.zeros("float", 1)
    local w = cg.input("float", 1, "w")
    local g = cg.capture(function()
      kernel "add":launch(1, 1, y, x, 1)
      w:fill(3)
      kernel "add":launch(1, 1, z, w, 1)
    end, { order = "data" })
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { x = z } end, "no edge orders the two")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:bind { x = w } end, 'input "x"')
    g:bind { x = w, w = x }
    w:fill(5)
    g:replay()
    assert.equal("5 3", text(y) .. " " .. text(z))
    g:bind { x = cg.full("float", 1, 1) }
    g:replay()
    assert.equal("6", text(y))
  end)

  it("counts what is bound, and not what was replaced, as the graph's inputs", function()
    local x, y, b = cg.input("float", 1, "x"), cg.zeros("float", 1), cg.full("float", 1, 1)
    local g = adding(y, x, { check_input_liveness = true })
    g:bind { x = b }
    x:release()
    g:replay()
    assert.equal("1", text(y))
    b:release()
    raises("CGL_ERROR_RELEASED", function() g:replay() end, "1 input of the graph")
  end)

  it("binds inputs of loaded graphs as well, and saves what is bound", function()
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local x, y = cg.zeros("float", { 2, 2 }), cg.zeros("float", { 2, 2 })
    local g = cg.capture(function()
      kernel "add":launch(1, 4, y, x, 1)
      kernel "add":launch(1, 1, y, x:view(4, 1), 10)
    end)
    g:save(path, { inputs = { x = x }, outputs = { y = y } })
    local loaded = cg.load(path)
    local b = cg.from({ 1, 2, 3, 4 }, "float", { 2, 2 })
    loaded:bind { x = b }
    assert.equal(b:address(), loaded.inputs.x:address())
    loaded:replay()
    assert.equal("41 2 3 4", text(loaded.outputs.y))
    raises("CGL_ERROR_INVALID_ARGUMENT", function() loaded:bind { x = cg.zeros("float", 4) } end,
      "2 x 2 float")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() loaded:bind { x = loaded.outputs.y } end,
      "no edge orders")
    loaded:save(path, { inputs = loaded.inputs, outputs = loaded.outputs })
    local again = cg.load(path)
    again:replay()
    assert.equal("82 4 6 8", text(again.outputs.y))
    again:bind { x = cg.zeros("float", { 2, 2 }) }
    again:replay()
    assert.equal("82 4 6 8", text(again.outputs.y))
  end)

  it("says which inputs of a file lie over others", function()
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local x, y = cg.zeros("float", 4), cg.zeros("float", 4)
    local g = adding(y, x)
    g:save(path, { inputs = { x = x, part = x:view(1, 2) } })
    local loaded = cg.load(path)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() loaded:bind { part = cg.zeros("float", 2) } end,
      '"part" together with memory beside it')
  end)

  it("has inputs without elements", function()
    local x = cg.input("float", 0, "x")
    local g = cg.capture(function() kernel "fill":launch(1, 1, x, #x) end)
    g:bind { x = cg.zeros("float", 0) }
    g:replay()
  end)

  it("exchanges any number of inputs at once", function()
    local x, to, y = {}, {}, cg.zeros("float", 1)
    for i = 1, 20 do
      x[i], to["x" .. i] = cg.input("float", 1, "x" .. i), cg.full("float", 1, i)
    end
    local g = cg.capture(function()
      for i = 1, 20 do kernel "add":launch(1, 1, y, x[i], 1) end
    end)
    g:bind(to)
    g:replay()
    assert.equal("210", text(y))
  end)

  for _, form in ipairs { "node", "predicated" } do
    it("exchanges what decides between several bodies, and in loops: " .. form, function()
      local on, i = cg.input("bool", 1, "on"), cg.input("int8", 1, "i")
      local n = cg.input("int64", 1, "n")
      local y, z = cg.zeros("float", 1), cg.zeros("int32", 1)
      local opts = { form = form }
      local g = cg.capture(function()
        cg.when(on, function()
          cg.switch(i, { function() z:fill(1) end, function() z:fill(2) end },
            function() z:fill(3) end, opts)
        end, function() z:fill(4) end, opts)
        cg.loop(n, function()
          y:fill(5)
          n:fill(0)
        end, opts)
      end)
      g:replay()
      assert.equal("4 0", text(z) .. " " .. text(y))
      g:bind { on = cg.full("bool", 1, true), n = cg.full("int64", 1, 2) }
      g:replay()
      assert.equal("1 5", text(z) .. " " .. text(y))
      g:bind { i = cg.full("int8", 1, 1) }
      g:replay()
      assert.equal("2", text(z))
      g:bind { i = cg.full("int8", 1, -1) }
      g:replay()
      assert.equal("3", text(z))
      g:bind { on = on }
      g:replay()
      assert.equal("4", text(z))
    end)

    it("exchanges what decides when bodies were built anew: " .. form, function()
      local x, y, on = cg.input("float", 1, "x"), cg.zeros("float", 1), cg.input("int32", 1, "on")
      local g = cg.capture(function()
        cg.when(on, function() kernel "add":launch(1, 1, y, x, 1) end, { form = form })
      end)
      g:bind { x = cg.full("float", 1, 3) }
      g:replay()
      assert.equal("0", text(y))
      g:bind { on = cg.full("int32", 1, 1) }
      g:replay()
      assert.equal("3", text(y))
      g:bind { on = on }
      g:replay()
      assert.equal("3", text(y))
      g:bind { on = cg.full("int32", 1, 1) }
      local path = os.tmpname()
      finally(function() os.remove(path) end)
      g:save(path, { outputs = { y = y } })
      local loaded = cg.load(path)
      loaded:replay()
      assert.equal("6", text(loaded.outputs.y))
    end)
  end
end)
