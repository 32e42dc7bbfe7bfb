-- cg.make_graphed_callables, and the graph:writes that it stands on.

local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local raises, slips = device.raises, device.slips
local first, full, scaled, bump = device.first, device.full, device.scaled, device.bump

-- Kinds of the nodes that a call becomes in a capture.
local function kinds(fn, ...)
  local n, args = select("#", ...), { ... }
  return device.kinds(cg.capture(function() fn(unpack(args, 1, n)) end))
end

describe("graph:writes", function()
  teardown(device.nothing_alive)

  it("tells what a replay writes to from what it reads", function()
    local x, y, z = full(1), full(2), full(3)
    local g = cg.capture(function()
      device.kernel "scale":launch(1, 32, x, y, 2, 8)
    end)
    assert.is_false(g:writes(x))
    assert.is_true(g:writes(y))
    assert.is_true(g:writes(y:view(8)))
    assert.is_false(g:writes(y:view(8, 0)))
    assert.is_false(g:writes(z))
  end)

  it("knows fills and copies, and looks at the part that is touched", function()
    local x, y = full(1), full(2)
    local g = cg.capture(function()
      x:view(1, 4):fill(0)
      y:view(5, 4):copy(x:view(5, 4))
    end)
    assert.is_true(g:writes(x))
    assert.is_false(g:writes(x:view(5, 4)))
    assert.is_false(g:writes(y:view(1, 4)))
    assert.is_true(g:writes(y:view(8, 1)))
  end)

  it("looks into child graphs, and into theirs", function()
    local x = full(1)
    local inner = cg.capture(function() x:fill(1) end)
    local middle = cg.capture(function() inner:replay() end)
    local outer = cg.capture(function() middle:replay() end)
    assert.is_true(outer:writes(x))
    assert.is_true(outer:writes(x:view(3, 1)))
    assert.is_false(outer:writes(full(2)))
  end)

  it("needs a capture and a buffer", function()
    local x = full(1)
    raises("CGL_ERROR_NOT_CAPTURED", function() cg.graph():writes(x) end, "graph:writes")
    slips(function() cg.capture(function() x:fill(0) end):writes(3) end, "buffer expected")
  end)
end)

describe("make_graphed_callables", function()
  teardown(device.nothing_alive)

  it("gives one function that replays, and its graph", function()
    local runs, x = 0, full(3)
    local f, g = cg.make_graphed_callables(function(a)
      runs = runs + 1
      return scaled(a, 2)
    end, { x })
    assert.equal(4, runs) -- three to warm up, one for the capture
    assert.equal(6, first(f(x)))
    x:fill(5)
    assert.equal(10, first(f(x)))
    assert.equal(4, runs)
    assert.equal("kernel", device.kinds(g))
  end)

  it("warms up as often as told, on a stream of its own", function()
    local streams = {}
    local main, x = cg.current_stream(), full(1)
    local function note(a)
      streams[#streams + 1] = cg.current_stream()
      bump(a)
    end
    cg.make_graphed_callables(note, { x }, { num_warmup_iters = 2 })
    assert.equal(3, #streams)
    for _, s in ipairs(streams) do assert.not_equal(main, s) end
    assert.equal(3, first(x)) -- the capture itself ran nothing
    cg.make_graphed_callables(note, { x }, { num_warmup_iters = 0 })
    assert.equal(4, #streams)
    assert.equal(3, first(x))
    assert.equal(main, cg.current_stream())
  end)

  it("warms up after what was issued before, and before what comes after", function()
    local k = cg.kernel [[
      extern "C" __global__ void late(float *x, int n) {
        float v = 0.f;
        for (int i = 0; i < n; i++) v = v * 0.5f + 1.f;
        x[threadIdx.x] = v;
      }]]
    local x, y, z = full(0), full(0), full(0)
    cg.synchronize()
    k:launch(1, 8, x, 3e7)
    cg.make_graphed_callables(function(a) y:copy(a) end, { x }, { num_warmup_iters = 1 })
    assert.equal(2, first(y))
    device.fails(cg.make_graphed_callables, function()
      k:launch(1, 8, z, 3e7)
      error "no"
    end, {})
    assert.equal(2, first(z))
  end)

  it("captures a list in its order, into one pool", function()
    local x, order = full(1), {}
    local function times(a)
      return function(b)
        order[#order + 1] = a
        return scaled(b, a)
      end
    end
    local pool = cg.pool()
    local list, graphs = cg.make_graphed_callables({ times(2), times(3) }, { { x }, { x } },
      { num_warmup_iters = 1, pool = pool })
    assert.same({ 2, 3, 2, 3 }, order) -- all warm up before the first capture
    assert.equal(2, #list)
    assert.equal(2, first(list[1](x)))
    assert.equal(3, first(list[2](x)))
    assert.equal(graphs[1]:pool(), graphs[2]:pool())
    assert.equal(pool, graphs[1]:pool())
    list, graphs = cg.make_graphed_callables({ times(4), times(5) }, { { x }, { x } })
    assert.equal(4, first(list[1](x)))
    assert.equal(graphs[1]:pool(), graphs[2]:pool())
  end)

  it("chains: a result may be the sample of the next", function()
    local x = full(1)
    local double, g1 = cg.make_graphed_callables(function(a) return scaled(a, 2) end, { x })
    local triple, g2 = cg.make_graphed_callables(function(a) return scaled(a, 3) end,
      { double(x) })
    for i = 1, 5 do
      x:fill(i)
      assert.equal(6 * i, first(triple(double(x))))
    end
    assert.equal(1, #g1:nodes())
    assert.equal(1, #g2:nodes())
  end)

  it("chains in one pool, and each may be called by itself", function()
    local x, pool = full(1), cg.pool()
    local function two_steps(a)
      return scaled(scaled(a, 2), 3)
    end
    local f = cg.make_graphed_callables(two_steps, { x }, { pool = pool })
    local between = f(x)
    local g = cg.make_graphed_callables(two_steps, { between }, { pool = pool })
    assert.equal(36, first(g(f(x))))
    local other = full(5)
    assert.equal(30, first(g(other)))
    assert.equal(30, first(g(between))) -- where the call before put it
    assert.equal(30, first(f(other)))
    assert.equal(180, first(g(between)))
  end)

  it("takes functions without buffers, and callable tables", function()
    local x = full(0)
    local f = cg.make_graphed_callables(setmetatable({}, {
      __call = function(_, a) bump(x, a) end,
    }), { 2 })
    local before = first(x)
    f(2)
    assert.equal(before + 2, first(x))
    local none = cg.make_graphed_callables(function() return "done", nil, 3 end, {})
    assert.same({ n = 3, "done", nil, 3 }, { n = select("#", none()), none() })
  end)

  it("passes nil arguments when the samples say how many", function()
    local x = full(1)
    local f = cg.make_graphed_callables(function(a, b, c)
      return scaled(c, 2), a, b
    end, { nil, nil, x, n = 3 })
    assert.equal(2, first((f(nil, nil, x))))
    slips(function() f(nil, 1, x) end, "#2", "captured with nil, got 1")
  end)

  it("keeps what it needs when the script lets go", function()
    local f
    do
      local x = full(4)
      f = cg.make_graphed_callables(function(a) return scaled(a, 2) end, { x })
      x:release()
    end
    collectgarbage()
    collectgarbage()
    local junk = {}
    for i = 1, 20 do junk[i] = full(-1) end
    assert.equal(20, #junk)
    local y = full(7)
    assert.equal(14, first(f(y)))
  end)

  it("keeps nothing that it was only called with", function()
    local f = cg.make_graphed_callables(function(a, t)
      bump(a)
      return t.y
    end, { full(1), { y = full(2) } })
    local g = cg.graphed(bump)
    g(full(1))
    g(full(1))
    local function settled()
      jit.flush()
      collectgarbage()
      collectgarbage()
      cg.synchronize()
      return cg.live "buffer"
    end
    local before = settled()
    for i = 1, 20 do
      f(full(i), { y = full(i) })
      g(full(i))
    end
    assert.equal(before, settled())
  end)

  it("makes no garbage when the buffers stay", function()
    local x, y = full(1), { y = full(2) }
    local f = cg.make_graphed_callables(function(a, t)
      bump(a)
      return t.y
    end, { x, y })
    local g = cg.graphed(function(a, t)
      bump(a)
      return t.y
    end)
    local function rounds(n)
      for _ = 1, n do
        f(x, y)
        g(x, y)
      end
    end
    jit.off() -- a trace that is compiled is garbage, too
    rounds(200)
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    rounds(200)
    local after = collectgarbage "count"
    collectgarbage "restart"
    jit.on()
    assert.is_true(after - before < 4, after - before) -- a table each were 12 and more
    assert.equal(1 + 800 + 3, first(x))
  end)

  it("says that its graph was released", function()
    local x = full(1)
    local f, g = cg.make_graphed_callables(bump, { x })
    g:release()
    raises("CGL_ERROR_RELEASED", function() f(x) end, "graph:replay")
    local h, graphs = cg.graphed(bump)
    h(x)
    graphs[1]:release()
    raises("CGL_ERROR_RELEASED", function() h(x) end, "graph:replay")
  end)

  it("takes kernels and other objects as constants", function()
    local x, add = full(1), device.kernel "add"
    local f = cg.make_graphed_callables(function(kernel, a)
      kernel:launch(1, 32, a, 1, 8)
    end, { add, x }, { num_warmup_iters = 0 })
    f(add, x)
    assert.equal(2, first(x))
    slips(function() f(device.kernel "scale", x) end, "#1", "captured with cgraphlua.kernel add")
  end)

  describe("with other buffers than the samples'", function()
    it("copies those and no others", function()
      local x, y = full(1), full(2)
      local f = cg.make_graphed_callables(function(a, b)
        local sum = scaled(a, 1)
        bump(sum, 1)
        return sum, scaled(b, 1)
      end, { x, y })
      assert.equal("graph", kinds(f, x, y))
      assert.equal("memcpy graph", kinds(f, full(3), y))
      assert.equal("memcpy graph", kinds(f, x, full(3)))
      assert.equal("memcpy memcpy graph", kinds(f, full(3), full(4)))
      local a, b = f(full(10), full(20))
      assert.equal(11, first(a))
      assert.equal(20, first(b))
      assert.equal(10, first(x)) -- the static buffers hold what came last
    end)

    it("sees that another object lies at the same address", function()
      local x = full(1, 16)
      local f = cg.make_graphed_callables(function(a) return scaled(a, 2) end, { x:view(9, 8) })
      assert.equal("graph", kinds(f, x:view(9, 8)))
      assert.equal("memcpy graph", kinds(f, x:view(1, 8)))
    end)

    it("copies back what the graph writes to", function()
      local x, y = full(1), full(100)
      local f = cg.make_graphed_callables(bump, { x })
      f(y)
      f(y)
      assert.equal(102, first(y))
      assert.equal("memcpy graph memcpy", kinds(f, y))
      local g = cg.make_graphed_callables(function(from, to)
        device.kernel "scale":launch(1, 32, from, to, 3, 8)
      end, { x, full(0) })
      local result = full(0)
      g(full(5), result)
      assert.same({ 15, 15, 15, 15, 15, 15, 15, 15 }, result:download())
    end)

    it("may be given its static buffers in another order", function()
      local x, y = full(0), full(0)
      local f = cg.make_graphed_callables(function(from, to)
        device.kernel "scale":launch(1, 32, from, to, 3, 8)
      end, { x, y })
      x:fill(1)
      for _ = 1, 2 do
        f(x, y)
        f(y, x)
      end
      assert.equal(81, first(x))
      assert.equal(27, first(y))
      x:fill(1)
      local g = cg.capture(function()
        f(x, y)
        f(y, x)
      end)
      g:replay(2)
      assert.equal(81, first(x))
      assert.equal(27, first(y))
    end)

    it("may be given a part that overlaps its static buffer", function()
      local base = cg.from({ 1, 2, 3, 4, 5, 6, 7, 8, 9 }, "float")
      local f = cg.make_graphed_callables(function(a) return scaled(a, 10) end,
        { base:view(1, 8) })
      assert.same({ 20, 30, 40, 50, 60, 70, 80, 90 }, f(base:view(2, 8)):download())
      assert.same({ 2, 3, 4, 5, 6, 7, 8, 9 }, base:view(2, 8):download())
    end)

    it("refuses buffers that share memory in another way", function()
      local x, y, z = full(1), full(2), full(3)
      local function both(a, b)
        bump(a)
        device.kernel "add":launch(1, 32, b, 2, 8)
      end
      local f = cg.make_graphed_callables(both, { x, y })
      slips(function() f(z, z) end, "#1", "shares memory with argument 2", "written")
      local g = cg.make_graphed_callables(both, { z, z })
      slips(function() g(x, y) end, "shared memory with argument 1 at the capture")
      local before = first(x)
      g(x, x)
      assert.equal(before + 3, first(x))
      -- Written through the one that moved, or through the one that did not.
      local s, t = full(1), full(2)
      local h = cg.make_graphed_callables(function(a, b)
        device.kernel "scale":launch(1, 32, a, b, 2, 8)
      end, { s, t })
      slips(function() h(t, t) end, "#1", "shares memory with argument 2", "written")
      slips(function() h(s, s) end, "#2", "shares memory with argument 1", "written")
      local w = cg.full("float", 12, 1)
      slips(function() h(w:view(1, 8), w:view(5, 8)) end, "shares memory")
      -- Harmless when nothing is written.
      local reads = cg.make_graphed_callables(function(a, b)
        return scaled(a, 2), scaled(b, 3)
      end, { full(1), full(1) })
      local p, q = reads(z, z)
      assert.equal(1.5, first(q) / first(p))
    end)

    it("works on any stream, in its order", function()
      local f = cg.make_graphed_callables(function(a) return scaled(a, 2) end, { full(1) })
      local s, y = cg.stream(), full(21)
      cg.synchronize()
      local result
      s:use(function()
        bump(y, 1)
        result = f(y)
      end)
      s:synchronize()
      assert.equal(44, first(result))
    end)
  end)

  describe("with tables", function()
    it("takes them apart and puts results together", function()
      local layer = { w = full(2), parts = { full(3), full(4) }, name = "first", [10] = true }
      local f = cg.make_graphed_callables(function(l)
        return { w = scaled(l.w, 2), [1] = { scaled(l.parts[2], 2), l.name } }, l
      end, { layer })
      local other = { w = full(10), parts = { layer.parts[1], full(20) }, name = "first",
        [10] = true }
      assert.equal("memcpy memcpy graph", kinds(f, other))
      local result, same = f(other)
      assert.equal(20, first(result.w))
      assert.equal(40, first(result[1][1]))
      assert.equal("first", result[1][2])
      assert.equal(other, same) -- an argument comes back as the caller's own
      result.w = nil
      assert.equal(20, first(f(other).w)) -- a result's table is a new one
    end)

    it("keeps metatables, and tables that appear twice", function()
      local class = { __index = { answer = 42 } }
      local f = cg.make_graphed_callables(function(object)
        local t = setmetatable({ x = object.x }, class)
        t.self = t
        return t, t
      end, { setmetatable({ x = full(1) }, class) })
      local mine = { x = full(2) }
      local a, b = f(mine)
      assert.equal(a, b)
      assert.equal(a, a.self)
      assert.equal(42, a.answer)
      assert.is_true(rawequal(mine.x, a.x))
    end)

    it("takes one that is there twice", function()
      local t = { x = full(1) }
      local f = cg.make_graphed_callables(function(_, list) return scaled(list[2].x, 3) end,
        { t, { t, t } })
      local mine = { x = full(2) }
      assert.equal(6, first(f(mine, { mine, mine })))
    end)

    it("says where one is different", function()
      local f = cg.make_graphed_callables(function(t) bump(t.a.b[2]) end,
        { { a = { b = { 1, full(1) } }, ["two words"] = 2 } })
      local function wrong(t, ...)
        slips(function() f(t) end, "#1 to 'graphed callable'", ...)
      end
      wrong({ a = { b = { 1, full(1, 9) } }, ["two words"] = 2 }, "%.a%.b%[2%]", "8 elements")
      wrong({ a = { b = { 2, full(1) } }, ["two words"] = 2 }, "%.a%.b%[1%]", "with 1, got 2")
      wrong({ a = { b = { 1, full(1) } } }, '%["two words"%]', "with 2, got nil")
      wrong({ a = 1, ["two words"] = 2 }, "%.a: captured with a table, got 1")
      wrong({ a = { b = { 1, full(1), 3 } }, ["two words"] = 2 }, "%.a%.b%[3%] was not there")
      local loop = {}
      loop.loop = { loop }
      slips(function() cg.make_graphed_callables(print, { 1, loop }) end, "#2 to 'make_",
        "argument 2", "%.loop%[1%]", "contains itself")
    end)
  end)

  describe("arguments", function()
    local f
    before_each(function()
      f = cg.make_graphed_callables(function(a, b) return scaled(a, b) end,
        { cg.full("float", { 2, 4 }, 1), 3 })
    end)
    after_each(function() f = nil end)

    it("are counted", function()
      slips(function() f() end, "#1", "captured with 2 arguments, got 0")
      slips(function() f(cg.full("float", { 2, 4 }, 1)) end, "#2", "2 arguments, got 1")
      slips(function() f(nil, 3) end, "#1", "captured with a buffer of float, got nil")
      slips(function() f(cg.full("float", { 2, 4 }, 1), 3, 4) end, "#3",
        "captured with 2 arguments, got 3")
    end)

    it("are compared by type, count and shape", function()
      slips(function() f(cg.full("double", { 2, 4 }, 1), 3) end, "#1",
        "elements of float, got double")
      slips(function() f(full(1, 9), 3) end, "#1", "with 8 elements, got 9")
      slips(function() f(full(1, 8), 3) end, "#1", "shape {2, 4}, got {8}")
      slips(function() f(cg.full("float", { 4, 2 }, 1), 3) end, "{2, 4}, got {4, 2}")
      slips(function() f(cg.pinned("float", 8), 3) end, "#1", "a buffer of float, got")
    end)

    it("that are constants are compared by value", function()
      local x = cg.full("float", { 2, 4 }, 1)
      slips(function() f(x, 4) end, "#2", "captured with 3, got 4", "belongs in a buffer")
      slips(function() f(x, "3") end, '#2', 'captured with 3, got "3"')
      assert.equal(3, first(f(x, 3)))
      local nan = 0 / 0
      local g = cg.make_graphed_callables(function() end, { nan })
      g(-nan)
      slips(function() g(1) end, "got 1")
    end)

    it("that are FFI objects are compared by their bytes", function()
      local point = ffi.new("float[2]", 1, 2)
      local g = cg.make_graphed_callables(function(_, n) return n end, { point, 7LL })
      assert.equal(7LL, g(ffi.new("float[2]", 1, 2), 7LL))
      slips(function() g(ffi.new("float[2]", 1, 3), 7LL) end, "#1", "other bytes")
      point[0] = 9
      slips(function() g(point, 7LL) end, "#1", "other bytes")
      slips(function() g(ffi.new("float[2]", 1, 2), 8LL) end, "#2", "with 7LL, got 8LL")
      local h = cg.make_graphed_callables(function() bump(full(1)) end, { ffi.new "float[2]" })
      h(ffi.new "float[2]")
      slips(function() h(ffi.new "int[2]") end, "#1", "other bytes")
    end)

    it("may be empty", function()
      local g, graph = cg.make_graphed_callables(function(a, b)
        bump(b)
        return a
      end, { cg.buffer("int8", 0), full(1) })
      local empty = cg.buffer("int8", 0)
      assert.is_true(rawequal(empty, (g(empty, full(1)))))
      assert.equal(1, #graph:nodes())
      -- Nothing lies inside what is written, wherever it lies.
      local x = full(3)
      local h = cg.make_graphed_callables(function(a, b)
        bump(b)
        return a
      end, { full(1):view(3, 0), full(1) })
      h(x:view(4, 0), x)
      assert.equal(4, first(x))
    end)

    it("that were released are refused by their place", function()
      local x, dead = cg.full("float", { 2, 4 }, 1), cg.zeros("float", { 2, 4 })
      f(x, 3)
      x:release()
      dead:release()
      for _, buffer in ipairs { x, dead } do -- one that it knows, and one that it does not
        local e = raises("CGL_ERROR_RELEASED", function() f(buffer, 3) end,
          "graphed callable: argument 1 is a buffer that was released", "hint: ")
        assert.matches("callables_spec.lua:%d+$", e.where)
      end
      raises("CGL_ERROR_RELEASED", function()
        cg.make_graphed_callables(bump, { 1, { a = { dead } } })
      end, "make_graphed_callables: argument 2.a%[1%] to capture with is a buffer")
    end)

    it("that were released are refused within tables", function()
      local x, y = full(1), full(2)
      local g = cg.make_graphed_callables(function(a, t) a:copy(t.from[1]) end,
        { x, { from = { y } } })
      local dead = full(3)
      dead:release()
      raises("CGL_ERROR_RELEASED", function() g(x, { from = { dead } }) end,
        "argument 2.from%[1%] is a buffer that was released")
      y:release()
      raises("CGL_ERROR_RELEASED", function() g(x, { from = { y } }) end,
        "argument 2.from%[1%] is a buffer that was released")
      g(x, { from = { full(4) } })
      assert.equal(4, first(x))
    end)

    it("that are zero have a sign", function()
      local x = cg.zeros("float", 1)
      local g = cg.make_graphed_callables(function(a) x:fill(1 / a) end, { 0 })
      g(0)
      assert.equal(math.huge, first(x))
      slips(function() g(-0.0) end, "captured with 0, got %-0")
    end)
  end)

  describe("itself", function()
    it("refuses what is no function, no list, no option", function()
      local make = cg.make_graphed_callables
      slips(function() make(3, {}) end, "#1", "a function or a list of functions", "got number")
      slips(function() make({}, {}) end, "#1", "an empty list")
      slips(function() make({ print, 4 }, { {}, {} }) end, "#1", "function 2 of the list")
      slips(function() make(print) end, "#2", "got nil")
      slips(function() make({ print, print }, { {} }) end, "#2", "list of 2 lists", "got 1")
      slips(function() make({ print }, { 5 }) end, "#2", "arguments of function 1")
      slips(function() make(print, {}, 6) end, "#3", "table of options", "got number")
      slips(function() make(print, {}, { warmup = 1 }) end, "#3", 'unknown option "warmup"',
        "capture_error_mode, keep, num_warmup_iters, pool")
      slips(function() make(print, {}, { num_warmup_iters = -1 }) end, "#3", "whole number")
      slips(function() make(print, {}, { num_warmup_iters = 0 / 0 }) end, "#3", "whole number")
      slips(function() make(print, {}, { num_warmup_iters = 1.5 }) end, "got 1.5")
      slips(function() make(print, {}, { pool = 1 }) end, "'pool' must be a pool")
      slips(function() make(print, {}, { capture_error_mode = "none" }) end, "thread_local")
    end)

    it("is refused inside a capture, which stays whole", function()
      local x, ran = full(1), false
      local g = cg.capture(function()
        bump(x)
        raises("CGL_ERROR_CAPTURE_STATE", function()
          cg.make_graphed_callables(function() ran = true end, {})
        end, "a capture inside a capture")
        bump(x)
      end)
      assert.is_false(ran)
      g:replay()
      assert.equal(3, first(x))
    end)

    it("raises what the function raises, and puts everything back", function()
      local main, x = cg.current_stream(), full(1)
      for _, round in ipairs { 1, 4 } do -- while warming up, in the capture
        local n, e = 0, { "mine" }
        local ok, got = pcall(cg.make_graphed_callables, { bump, function(a)
          n = n + 1
          bump(a)
          if n == round then error(e) end
        end }, { { x }, { x } })
        assert.is_false(ok)
        assert.equal(e, got)
        assert.equal(main, cg.current_stream())
        assert.is_false(cg.is_current_stream_capturing())
      end
      local e = raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function()
        cg.make_graphed_callables(function() x:download() end, {})
      end)
      assert.equal(device.line(-2), e.where)
      x:fill(1)
      local f = cg.make_graphed_callables(bump, { x }, { num_warmup_iters = 0 })
      f(x)
      assert.equal(2, first(x))
    end)
  end)

  describe("with keep = \"error\"", function()
    local function doubler()
      return cg.kernel [[extern "C" __global__ void twice(float *y, const float *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = 2 * x[i];
      }]]
    end

    it("raises when the result of a former call is used", function()
      local twice, calls = doubler(), 0
      local function fn(x)
        calls = calls + 1
        local y = cg.buffer("float", { 2, 3 })
        twice:over(6)(y, x, 6)
        return y, { inner = y }, x
      end
      local x = cg.full("float", 6, 1)
      for _, make in ipairs {
        function() return (cg.make_graphed_callables(fn, { x }, { keep = "error" })) end,
        function() return (cg.graphed(fn, { keep = "error" })) end,
      } do
        local f = make()
        local at = debug.getinfo(1, "l").currentline + 1
        local y, t, same = f(x)
        assert.equal(x, same)
        assert.same({ 2, 3 }, y.shape)
        assert.equal(2, y:download()[1])
        local part = y:view(1, 2)
        x:fill(2)
        local z = f(x)
        for _, use in ipairs {
          function() y:download() end, function() y:fill(0) end, function() y:view(1) end,
          function() y:address() end, function() cg.buffer("float", 6):copy(y:view(1)) end,
          function() twice:over(6)(x, y, 6) end, function() t.inner:download() end,
          function() f(y:view(1)) end,
        } do
          raises("CGL_ERROR_ORDER", use, "spec.lua:" .. at .. " was overwritten by the call at "
            .. "[^ ]*spec.lua:" .. at + 6, "hint: copy a result")
        end
        assert.equal(4, z:download()[6])
        assert.equal(4, part:download()[1]) -- a view of the script's own
        x:fill(1)
      end
      assert.is_true(calls >= 2)
    end)

    it("takes a result as an argument, and lets results be released", function()
      local twice = doubler()
      local x = cg.full("float", 6, 1)
      local f = cg.make_graphed_callables(function(a)
        local y = cg.buffer("float", 6)
        twice:over(6)(y, a, 6)
        return y
      end, { x }, { keep = "error" })
      local y = f(f(f(x)))
      assert.equal(8, y:download()[1])
      y:release()
      assert.equal(2, f(cg.full("float", 6, 1)):download()[1])
    end)

    it("takes no other word", function()
      local err = select(2, pcall(cg.graphed, print, { keep = true }))
      assert.matches("option 'keep' must be \"error\", got true", tostring(err))
    end)
  end)
end)
