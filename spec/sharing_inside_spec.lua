-- Graphs that share a pool and are replayed into captures: what the graph
-- around them takes on, and where they are refused.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/support/device.lua")
local raises, value = device.raises, device.value

local N = 1000

local plus, more
local source = [[
extern "C" __global__ void plus(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + a;
}
extern "C" __global__ void more(float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a;
}]]

local function add(x, a)
  local y = cg.buffer("float", N)
  plus:over(N)(y, x, a, N)
  return y
end

local function capture(pool, fn, opts)
  opts = opts or {}
  opts.pool = pool
  return cg.capture(fn, opts)
end

describe("a graph that shares a pool, inside another graph,", function()
  setup(function()
    local m = cg.module(source)
    plus, more = m:kernel "plus", m:kernel "more"
  end)
  teardown(function()
    plus, more = nil, nil
    device.nothing_alive()
  end)

  it("counts as part of it", function()
    local pool = cg.pool()
    local x = cg.full("float", N, 1)
    local inner, c = capture(pool, function() return add(x, 1) end, { keep_graph = true })
    local outer = capture(nil, function() inner:replay() end)
    local reads, e = capture(pool, function() return add(c, 3) end)
    raises("CGL_ERROR_ORDER", function() reads:replay() end)
    outer:replay()
    reads:replay()
    assert.equal(5, value(e))
  end)

  it("fills for a graph of the same pool", function()
    local pool = cg.pool()
    local x = cg.full("float", N, 1)
    local inner, c = capture(pool, function() return add(x, 1) end, { keep_graph = true })
    local outer, e = capture(pool, function()
      inner:replay()
      return add(c, 3)
    end)
    outer:replay()
    assert.equal(5, value(e))
    x:fill(2)
    outer:replay(2)
    assert.equal(6, value(e))
  end)

  it("finds what the graph around it fills", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local inner, e = capture(pool, function() return add(c, 3) end, { keep_graph = true })
    local outer = capture(pool, function()
      c:fill(4)
      inner:replay()
    end)
    raises("CGL_ERROR_ORDER", function() inner:replay() end, "has not filled yet")
    outer:replay()
    assert.equal(7, value(e))
    first:replay()
    inner:replay()
    assert.equal(5, value(e))
  end)

  it("may be one of many, of several pools", function()
    local pools, inner, out = { cg.pool(), cg.pool() }, {}, {}
    for i = 1, 4 do
      inner[i], out[i] = capture(pools[i % 2 + 1], function()
        return add(cg.full("float", N, i), 1)
      end, { keep_graph = true })
    end
    local outer = cg.capture(function()
      for i = 1, 4 do inner[i]:replay() end
    end)
    outer:replay()
    for i = 1, 4 do assert.equal(i + 1, value(out[i])) end
  end)

  it("needs what it updates", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local inner = capture(pool, function() more:over(N)(c, 10, N) end, { keep_graph = true })
    local outer = capture(pool, function() inner:replay() end)
    raises("CGL_ERROR_ORDER", function() outer:replay() end, "has not filled yet")
    local part = capture(pool, function()
      c:view(1, N / 2):fill(7)
      inner:replay()
    end)
    raises("CGL_ERROR_ORDER", function() part:replay() end, "has not filled yet")
    first:replay()
    outer:replay()
    assert.equal(12, value(c))
    part:replay()
    assert.same({ 17, 22 }, { c:view(1, 1):download()[1], c:view(N, 1):download()[1] })
  end)

  it("is refused where two branches would use one memory", function()
    local pool = cg.pool()
    local scratch = capture(pool, function()
      add(cg.full("float", N, 1), 1):release()
    end, { keep_graph = true })
    local g, side = cg.graph { pool = pool }, cg.stream()
    raises("CGL_ERROR_ORDER", function()
      g:capture(function()
        side:wait(cg.current_stream())
        side:use(function() scratch:replay() end)
        scratch:replay()
        cg.current_stream():wait(side)
      end)
    end, "another branch", "hint: ")
    g:capture(function()
      side:wait(cg.current_stream())
      side:use(function() scratch:replay() end)
      cg.current_stream():wait(side)
      scratch:replay()
    end)
    g:replay()
  end)

  it("is refused where a later branch gets its memory", function()
    local pool, side = cg.pool(), cg.stream()
    local inner, at = device.scratch(pool, N, { keep_graph = true })
    local reused
    local function body(joined)
      return function()
        side:wait(cg.current_stream())
        side:use(function() inner:replay() end)
        if joined then cg.current_stream():wait(side) end
        local y = cg.buffer("float", N)
        reused = y:address() == at
        y:fill(3)
        if not joined then cg.current_stream():wait(side) end
        return y
      end
    end
    if not device.never_reuses then
      raises("CGL_ERROR_ORDER", function() capture(pool, body(false)) end)
      assert.is_true(reused)
    end
    local g, y = capture(pool, body(true), { keep_graph = true })
    g:replay(3)
    assert.equal(3, value(y))
    y:fill(0)
    local around = capture(pool, function() g:replay() end)
    around:replay()
    assert.equal(3, value(y))
  end)

  it("is refused where it overwrites what the capture still needs", function()
    local pool = cg.pool()
    local inner, at = device.scratch(pool, N, { keep_graph = true })
    local reused
    local function body()
      local y = cg.buffer("float", N)
      reused = y:address() == at
      y:fill(3)
      inner:replay()
      return add(y, 1)
    end
    if device.never_reuses then return pending "memory is not reused here" end
    raises("CGL_ERROR_ORDER", function() capture(pool, body) end, "overwrites")
    assert.is_true(reused)
  end)

  it("may overwrite what the capture is done with", function()
    local pool, sum = cg.pool(), cg.buffer("float", N)
    local inner, at = device.scratch(pool, N, { keep_graph = true })
    local reused
    local g = capture(pool, function()
      local y = cg.buffer("float", N)
      reused = y:address() == at
      y:fill(3)
      plus:over(N)(sum, y, 1, N)
      inner:replay()
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.is_true(reused)
    g:replay(2)
    assert.equal(4, value(sum))
  end)

  it("is refused where it overwrites what the capture reads of another", function()
    local pool = cg.pool()
    local scratch, at = device.scratch(pool, N, { keep_graph = true })
    local fills, c = capture(pool, function()
      local y = cg.buffer("float", N)
      y:fill(2)
      return y
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    local reads, e = capture(pool, function() return add(c, 3) end, { keep_graph = true })
    assert.equal(at, c:address())
    raises("CGL_ERROR_ORDER", function()
      capture(pool, function()
        scratch:replay()
        return add(c, 3)
      end)
    end, "overwrites", "made at [^ ]*sharing_inside_spec.lua:%d+", "hint: .*last use")
    raises("CGL_ERROR_ORDER", function()
      capture(pool, function()
        scratch:replay()
        reads:replay()
      end)
    end, "overwrites")
    local both = capture(pool, function()
      reads:replay()
      scratch:replay()
    end)
    fills:replay()
    both:replay()
    assert.equal(5, value(e))
    raises("CGL_ERROR_ORDER", function() both:replay() end, "something else")
  end)

  it("is refused where it overwrites what another one in the capture reads", function()
    local pool = cg.pool()
    local fills, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local reads, e = capture(pool, function() return add(c, 3) end, { keep_graph = true })
    local at = c:address()
    c:release()
    local scratch, where = device.scratch(pool, N, { keep_graph = true })
    if device.never_reuses then return pending "memory is not reused here" end
    assert.equal(at, where)
    raises("CGL_ERROR_ORDER", function()
      capture(pool, function()
        scratch:replay()
        reads:replay()
      end)
    end, "overwrites")
    raises("CGL_ERROR_ORDER", function()
      capture(pool, function()
        fills:replay()
        scratch:replay()
        reads:replay()
      end)
    end, "overwrites")
    local both = capture(pool, function()
      fills:replay()
      reads:replay()
      scratch:replay()
    end)
    both:replay(2)
    assert.equal(5, value(e))
  end)
end)
