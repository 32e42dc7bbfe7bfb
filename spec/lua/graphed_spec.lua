-- cg.graphed: a function that captures itself as it is called.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local raises, slips = device.raises, device.slips
local first, full, scaled, bump = device.first, device.full, device.scaled, device.bump

describe("graphed", function()
  teardown(device.nothing_alive)

  -- Counts how often the function itself runs.
  local function counted(fn)
    local count = { runs = 0 }
    return function(...)
      count.runs = count.runs + 1
      return fn(...)
    end, count
  end

  it("captures at the first call, which already counts", function()
    local fn, count = counted(bump)
    local f, graphs = cg.graphed(fn)
    local x = full(1)
    assert.equal(0, #graphs)
    for i = 1, 5 do
      f(x)
      assert.equal(1 + i, first(x))
    end
    assert.equal(1, count.runs)
    assert.equal(1, #graphs)
    assert.equal("kernel", device.kinds(graphs[1]))
  end)

  it("draws what the function would have drawn, call by call", function()
    local function noise(x, rng)
      x:uniform(rng)
      return scaled(x, 2)
    end
    local function draws(fn, seed)
      local rng, x, all = cg.generator(seed), full(0), {}
      for i = 1, 4 do all[i] = table.concat(fn(x, rng):download(), " ") end
      return all
    end
    local eager, replayed = draws(noise, 7), draws(cg.graphed(noise), 7)
    assert.same(eager, replayed)
    assert.not_equal(eager[1], eager[2])
    assert.not_same(eager, draws(cg.graphed(noise), 8))
  end)

  it("captures again for other types, shapes and constants", function()
    local fn, count = counted(function(x, a) return scaled(x, a) end)
    local f, graphs = cg.graphed(fn)
    local x, y = full(1, 8), full(1, 9)
    for _ = 1, 3 do
      assert.equal(2, first(f(x, 2)))
      assert.equal(3, first(f(x, 3)))
      assert.equal(9, #f(y, 3))
    end
    assert.equal(3, count.runs)
    assert.equal(3, #graphs)
  end)

  it("takes one NaN for another, and FFI numbers of two parts by their value", function()
    local ffi = require "ffi"
    local nan = 0 / 0
    for _, make in ipairs {
      function() return nan end,
      function(i) return i % 2 == 0 and nan or -nan end,
      function() return { { a = nan } } end,
      function() return ffi.new("double", nan) end,
      function() return ffi.new("complex", nan, 1) end,
      function() return ffi.new("complex float", 1, 2) end,
      function() return ffi.new("float[2]", nan) end,
    } do
      local fn, count = counted(function(x) bump(x) end)
      local f, graphs = cg.graphed(fn)
      local x = full(0)
      for i = 1, 5 do f(x, make(i)) end
      assert.equal(5, first(x))
      assert.equal(1, count.runs)
      assert.equal(1, #graphs)
    end
    local f, graphs = cg.graphed(function(x, c) x:fill(c.im) end)
    local x = full(0)
    for im = 1, 2 do
      f(x, ffi.new("complex", 0, im))
      assert.equal(im, first(x))
    end
    assert.equal(2, #graphs)
  end)

  it("tells zeros by their sign", function()
    local x = cg.zeros("float", 1)
    local f = cg.graphed(function(a) x:fill(1 / a) end)
    for _, zero in ipairs { 0, -0.0, 0 } do
      f(zero)
      assert.equal(1 / zero, first(x))
    end
  end)

  it("names an argument that was released, and works on with others", function()
    local f = cg.graphed(function(t) bump(t.x) end)
    local x, y = full(1), full(2)
    raises("CGL_ERROR_RELEASED", function()
      local dead = full(0)
      dead:release()
      f { x = dead }
    end, "graphed callable: argument 1.x is a buffer that was released")
    f { x = x }
    x:release()
    raises("CGL_ERROR_RELEASED", function() f { x = x } end,
      "argument 1.x is a buffer that was released")
    f { x = y }
    assert.equal(3, first(y))
    local g = cg.graphed(function(a) a:release() end)
    raises("CGL_ERROR_RELEASED", function() g(full(1)) end,
      "argument 1 is a buffer that was released")
  end)

  it("never writes over a buffer that the function would not write", function()
    local f = cg.graphed(function(x) return scaled(x, 2) end)
    local x, y, z = full(1), full(10), full(100)
    assert.equal(2, first(f(x)))
    assert.equal(20, first(f(y)))
    assert.equal(200, first(f(z)))
    assert.equal(2, first(f(x)))
    assert.same({ 1, 10, 100 }, { first(x), first(y), first(z) })
  end)

  it("copies only the arguments that have moved", function()
    local fn, count = counted(function(x, w)
      local y = scaled(x, 2)
      bump(w)
      return y
    end)
    local f, graphs = cg.graphed(fn)
    local w = full(0)
    f(full(1), w)
    f(full(2), w)
    assert.equal(2, count.runs) -- x got a static buffer
    f(full(3), w)
    f(full(4), w)
    assert.equal(2, count.runs)
    assert.equal(4, first(w))
    assert.equal(1, #graphs)
    local v = full(10)
    f(full(5), v)
    assert.equal(3, count.runs) -- now w has one, too
    f(full(5), v)
    assert.same({ 12, 4 }, { first(v), first(w) })
  end)

  it("takes buffers in turns", function()
    local f = cg.graphed(function(from, to)
      device.kernel "scale":launch(1, 32, from, to, 3, 8)
    end)
    local a, b = full(1), full(0)
    for _ = 1, 3 do
      f(a, b)
      f(b, a)
    end
    assert.equal(729, first(a))
    assert.equal(243, first(b))
  end)

  it("keeps the same memory one where an argument comes twice", function()
    local fn, count = counted(function(a, b)
      bump(a)
      device.kernel "scale":launch(1, 32, a, b, 2, 8)
    end)
    local f = cg.graphed(fn)
    local x, y = full(1), full(10)
    f(x, x)
    f(y, y)
    f(y, y)
    assert.same({ 4, 46 }, { first(x), first(y) })
    assert.equal(2, count.runs) -- one capture for each address
    f(x, y) -- another sharing: the function itself
    assert.same({ 5, 10 }, { first(x), first(y) })
  end)

  it("runs the function where buffers overlap in part", function()
    local fn, count = counted(function(a, b)
      device.kernel "add":launch(1, 32, a, 1, 4)
      device.kernel "add":launch(1, 32, b, 10, 4)
    end)
    local f = cg.graphed(fn)
    local x, y = full(0), full(0)
    f(x:view(1, 4), x:view(3, 4))
    f(x:view(1, 4), x:view(3, 4))
    assert.equal(1, count.runs)
    f(y:view(1, 4), y:view(3, 4))
    assert.same({ 2, 2, 22, 22, 20, 20, 0, 0 }, x:download())
    assert.same({ 1, 1, 11, 11, 10, 10, 0, 0 }, y:download())
  end)

  it("takes tables, whose buffers may move", function()
    local seen
    local f = cg.graphed(function(state)
      seen = state
      bump(state.x)
      return state, { y = scaled(state.x, 2) }
    end)
    local one = { x = full(1), name = "state" }
    local same = f(one)
    assert.is_true(rawequal(one, same))
    assert.equal(one, seen)
    local two = setmetatable({ x = full(10), name = "state" }, { __index = {} })
    local back, result = f(two)
    assert.is_true(rawequal(two, back))
    assert.equal(getmetatable(two), getmetatable(seen))
    assert.equal(11, first(two.x))
    assert.equal(22, first(result.y))
    assert.equal(2, first(one.x))
  end)

  it("runs the function inside a capture", function()
    local x = full(0)
    local f, graphs = cg.graphed(bump)
    local g = cg.capture(function()
      f(x)
      f(x)
    end)
    assert.equal(0, #graphs)
    assert.equal(2, #g:nodes())
    f(x)
    g:replay()
    assert.equal(3, first(x))
    assert.equal("kernel", device.kinds(cg.capture(function() f(x) end)))
  end)

  it("runs the function beyond max_signatures, and says so once", function()
    local fn, count = counted(bump)
    local f, graphs = cg.graphed(fn, { max_signatures = 2 })
    local x = full(0)
    local said = device.logged(function()
      for _ = 1, 2 do
        for a = 1, 4 do f(x, a) end
      end
    end)
    assert.equal(20, first(x))
    assert.equal(2, #graphs)
    assert.equal(2 + 4, count.runs)
    assert.matches("^[^\n]*more than 2 signatures[^\n]*$", said)
    local none = cg.graphed(fn, { max_signatures = 0 })
    none(x, 1)
    assert.equal(21, first(x))
  end)

  it("lets the function set itself up in num_warmup_iters calls", function()
    local table_of
    local fn, count = counted(function(x)
      table_of = table_of or cg.from({ 5, 6, 7, 8, 9, 10, 11, 12 }, "float")
      x:copy(table_of)
      bump(x)
    end)
    local x = full(0)
    local f, graphs = cg.graphed(fn, { num_warmup_iters = 2 })
    for i = 1, 4 do
      x:fill(0)
      f(x)
      assert.equal(6, first(x))
      assert.equal(math.min(i, 3), count.runs)
    end
    assert.equal(1, #graphs)
    table_of = nil
    local cold = cg.graphed(fn)
    raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function() cold(x) end, "upload")
  end)

  it("raises what the function raises, and may be called again", function()
    local bad = true
    local main, x = cg.current_stream(), full(1)
    local f, graphs = cg.graphed(function(a)
      bump(a)
      if bad then error "not yet" end
    end)
    for _ = 1, 20 do
      local _, text = device.fails(f, x)
      assert.matches("not yet", text)
      assert.equal(main, cg.current_stream())
    end
    bad = false
    f(x)
    assert.equal(2, first(x))
    bad = true
    device.fails(f, full(5)) -- while the capture is made anew
    f(x)
    assert.equal(3, first(x))
    assert.equal(1, #graphs)
  end)

  it("does not let the function yield out of its capture", function()
    local f = cg.graphed(function() coroutine.yield() end)
    local ok = coroutine.resume(coroutine.create(f))
    assert.is_false(ok)
    assert.is_false(cg.is_current_stream_capturing())
  end)

  it("allocates from the pool it is given", function()
    local pool = cg.pool()
    local f, graphs = cg.graphed(function(x) return scaled(x, 2) end, { pool = pool })
    f(full(1))
    assert.equal(pool, graphs[1]:pool())
  end)

  it("refuses what is no function and no option", function()
    slips(function() cg.graphed(3) end, "#1 to 'graphed'", "a function expected, got number")
    slips(function() cg.graphed(print, { max = 1 }) end, "#2", 'unknown option "max"',
      "capture_error_mode, keep, max_signatures, num_warmup_iters, pool")
    slips(function() cg.graphed(print, { max_signatures = -1 }) end, "#2", "max_signatures")
    local loop = {}
    loop[1] = loop
    slips(function() cg.graphed(print)(1, loop) end, "#2 to 'graphed callable'",
      "%[1%] is a table that contains itself")
  end)
end)
