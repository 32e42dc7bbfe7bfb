-- What memory that graphs share holds: by bytes, not by graphs.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local sharing = dofile(here .. "/../../support/sharing.lua")
local device, capture, N = sharing.device, sharing.capture, sharing.N
local raises, value = device.raises, device.value

-- fills: fills y with 1; reads: copies y to out; y has no handle any more;
-- reuses: fills the same memory with 7.
local function three(pool)
  local s = { out = cg.zeros("float", N) }
  s.fills = capture(pool, function()
    s.y = cg.buffer("float", N)
    s.y:fill(1)
  end, { keep_graph = true })
  s.reads = capture(pool, function() s.out:copy(s.y) end, { keep_graph = true })
  local at = s.y:address()
  s.y:release()
  s.reuses = capture(pool, function()
    local z = cg.buffer("float", N)
    s.reused = z:address() == at
    z:fill(7)
  end, { keep_graph = true })
  return s
end

-- As three, and y keeps its handle: spoils fills memory that y got after its
-- capture had released it.
local function spoiled(pool)
  local s = { out = cg.zeros("float", N) }
  s.spoils = device.scratch(pool, N, { keep_graph = true })
  s.fills = capture(pool, function()
    s.y = cg.buffer("float", N)
    s.y:fill(1)
  end, { keep_graph = true })
  return s
end

describe("memory that graphs share", function()
  setup(sharing.open)
  teardown(sharing.close)

  it("is refused where a graph reads a buffer before it fills it", function()
    local pool, out = cg.pool(), cg.zeros("float", N)
    local g = capture(pool, function()
      local before = cg.buffer("float", N)
      local at = before:address()
      before:fill(30)
      before:release()
      local buffer = cg.buffer("float", N)
      assert.equal(at, buffer:address())
      out:copy(buffer)
      buffer:fill(0)
      buffer:release()
    end)
    local other = device.scratch(pool, N)
    g:replay() -- nothing was ever in it
    raises("CGL_ERROR_ORDER", function() g:replay() end)
    other:release()
  end)

  describe("inside a graph of another pool", function()
    local s

    before_each(function() s = three(cg.pool()) end)
    after_each(function() s = nil end)

    local function around(...)
      local names = { ... }
      return cg.capture(function()
        for _, name in ipairs(names) do s[name]:replay() end
      end)
    end

    it("is right in any order that fills before it reads", function()
      around("fills", "reads"):replay()
      assert.equal(1, value(s.out))
      local all = around("fills", "reads", "reuses")
      s.out:fill(0)
      all:replay(3)
      all:replay()
      assert.equal(1, value(s.out))
      around("fills", "reuses", "fills"):replay()
      s.out:fill(0)
      s.reads:replay()
      assert.equal(1, value(s.out))
    end)

    it("is refused when it was not filled", function()
      raises("CGL_ERROR_ORDER", function() around("reads"):replay() end, "has not filled yet")
    end)

    it("is refused when the graph overwrites it before it reads it", function()
      if not s.reused then return pending "memory is not reused here" end
      local g = around("reuses", "reads")
      s.fills:replay()
      raises("CGL_ERROR_ORDER", function() g:replay() end, "the graph itself, at")
      raises("CGL_ERROR_ORDER", function() around("fills", "reuses", "reads"):replay() end)
    end)

    it("is refused when the second of two replays reads what the first overwrote", function()
      if not s.reused then return pending "memory is not reused here" end
      local g = around("reads", "reuses")
      s.fills:replay()
      raises("CGL_ERROR_ORDER", function() g:replay(2) end, "twice in a row")
      g:replay()
      raises("CGL_ERROR_ORDER", function() g:replay() end, "has overwritten it since")
    end)

    it("is left as the last graph inside leaves it", function()
      if not s.reused then return pending "memory is not reused here" end
      around("reuses", "fills", "reuses"):replay()
      raises("CGL_ERROR_ORDER", function() s.reads:replay() end, "has overwritten it since")
    end)

    it("is refused on two branches at once, two readers are not", function()
      local side = cg.stream()
      local function branches(a, b)
        return cg.capture(function()
          local main = cg.current_stream()
          side:wait(main)
          s[a]:replay()
          side:use(function() s[b]:replay() end)
          main:wait(side)
        end)
      end
      raises("CGL_ERROR_ORDER", function() branches("fills", "fills") end, "another branch")
      raises("CGL_ERROR_ORDER", function() branches("fills", "reads") end, "another branch")
      if s.reused then
        raises("CGL_ERROR_ORDER", function() branches("reads", "reuses") end, "another branch")
      end
      s.fills:replay()
      branches("reads", "reads"):replay()
      assert.equal(1, value(s.out))
    end)

    it("is refused where a branch uses what another fills by a graph", function()
      local side, y = cg.stream(), s.reuses:pool() and nil
      local fills = capture(nil, function()
        y = cg.buffer("float", N)
        y:fill(2)
      end, { keep_graph = true })
      raises("CGL_ERROR_ORDER", function()
        cg.capture(function()
          local main = cg.current_stream()
          side:wait(main)
          side:use(function() fills:replay() end)
          s.out:copy(y)
          main:wait(side)
        end)
      end, "another branch uses")
    end)
  end)

  it("is checked for a reader with a pool of its own", function()
    local s = spoiled(cg.pool())
    local reads = cg.capture(function() s.out:copy(s.y) end)
    raises("CGL_ERROR_ORDER", function() reads:replay() end, "has not filled yet")
    s.fills:replay()
    reads:replay()
    assert.equal(1, value(s.out))
    if device.never_reuses then return end
    s.spoils:replay()
    raises("CGL_ERROR_ORDER", function() reads:replay() end, "has overwritten it since")
  end)

  it("is checked when the writer and the reader have pools of their own", function()
    local y, out = nil, cg.zeros("float", N)
    local fills = cg.capture(function()
      y = cg.buffer("float", N)
      y:fill(1)
    end)
    local reads = cg.capture(function() out:copy(y) end)
    raises("CGL_ERROR_ORDER", function() reads:replay() end, "has not filled yet")
    fills:replay()
    reads:replay()
    assert.equal(1, value(out))
  end)

  it("counts by the bytes of a view", function()
    local pool = cg.pool()
    local s = spoiled(pool)
    if device.never_reuses then return pending "memory is not reused here" end
    local y = s.y
    local part = capture(pool, function() y:view(1, 4):fill(3) end)
    local reads = capture(pool, function() s.out:copy(y) end)
    local head = capture(pool, function() s.out:view(1, 4):copy(y:view(1, 4)) end)
    s.fills:replay()
    part:replay()
    reads:replay()
    local seen = s.out:download()
    assert.same({ 3, 3, 1, 1 }, { seen[1], seen[4], seen[5], seen[N] })
    s.spoils:replay()
    raises("CGL_ERROR_ORDER", function() head:replay() end)
    part:replay()
    head:replay()
    raises("CGL_ERROR_ORDER", function() reads:replay() end, "has overwritten it since")
    raises("CGL_ERROR_ORDER", function() y:download() end)
    assert.equal(3, y:view(1, 4):download()[1])
  end)

  it("is checked when a kernel of the script may read what it writes", function()
    local s = spoiled(cg.pool())
    if device.never_reuses then return pending "memory is not reused here" end
    s.fills:replay()
    s.spoils:replay()
    raises("CGL_ERROR_ORDER", function() sharing.more:over(N)(s.y, 1, N) end,
      "has overwritten it since")
    s.fills:replay()
    sharing.more:over(N)(s.y, 1, N)
    assert.equal(2, value(s.y))
  end)

  it("lets a kernel of the script be the first to fill a buffer", function()
    local pool, y = cg.pool(), nil
    capture(pool, function() y = cg.buffer("float", N) end)
    sharing.plus:over(N)(y, cg.full("float", N, 2), 1, N)
    assert.equal(3, value(y))
  end)

  it("is known when the graphs that filled and overwrote it are gone", function()
    local s = spoiled(cg.pool())
    local pool = s.fills:pool()
    if device.never_reuses then return pending "memory is not reused here" end
    s.fills:replay()
    s.fills:release()
    assert.equal(1, value(s.y))
    s.spoils:replay()
    s.spoils:release()
    local reads = capture(pool, function() s.out:copy(s.y) end)
    raises("CGL_ERROR_ORDER", function() reads:replay() end, "has overwritten it since")
    raises("CGL_ERROR_ORDER", function() s.out:copy(s.y) end, "has overwritten it since")
  end)

  it("holds what was filled, whoever else may fill it by now", function()
    local pool = cg.pool()
    local s = spoiled(pool)
    s.fills:replay()
    s.fills:release()
    capture(pool, function() s.y:fill(9) end)
    local reads = capture(pool, function() s.out:copy(s.y) end)
    reads:replay()
    assert.equal(1, value(s.out))
  end)

  it("is read by a capture that releases it", function()
    local pool = cg.pool()
    local s = spoiled(pool)
    s.y:fill(3)
    local reads = capture(pool, function()
      s.out:copy(s.y)
      s.y:release()
    end)
    reads:replay()
    assert.equal(3, value(s.out))
  end)

  it("is checked for what set_params put in", function()
    local pool = cg.pool()
    local s = spoiled(pool)
    local x, out = cg.full("float", N, 5), cg.zeros("float", N)
    local g = cg.capture(function() out:copy(x) end)
    g:replay()
    g:set_params(1, { from = s.y })
    raises("CGL_ERROR_ORDER", function() g:replay() end, "has not filled yet")
    s.fills:replay()
    g:replay()
    assert.equal(1, value(out))
    if not device.never_reuses then
      s.spoils:replay()
      raises("CGL_ERROR_ORDER", function() g:replay() end, "has overwritten it since")
    end
    g:set_params(1, { from = x })
    g:replay()
    assert.equal(5, value(out))
  end)

  it("is not filled by what is switched off", function()
    local pool = cg.pool()
    local s = spoiled(pool)
    s.fills:set_enabled(1, false)
    s.fills:replay()
    raises("CGL_ERROR_ORDER", function() s.y:download() end, "has not filled")
    s.fills:set_enabled(1, true)
    s.fills:replay()
    s.fills:set_enabled(1, false)
    s.fills:replay()
    assert.equal(1, value(s.y))
  end)

  it("is there while a graph around its own still runs, whoever was released", function()
    local out = cg.zeros("float", N)
    for _ = 1, 20 do
      local inner = cg.capture(function()
        local z = cg.buffer("float", N)
        sharing.slow:over(N)(z, 3, 3000, N)
        out:copy(z)
        z:release()
      end, { keep_graph = true })
      local outer = cg.capture(function() inner:replay() end)
      inner:release()
      cg.synchronize()
      outer:replay(20)
      outer:release()
      collectgarbage()
      cg.buffer("float", N):fill(1)
      cg.synchronize()
      assert.equal(3, value(out))
    end
  end)

  it("orders the script's own work and replays on another stream", function()
    local pool, other = cg.pool(), cg.stream()
    local s = spoiled(pool)
    if device.never_reuses then return pending "memory is not reused here" end
    local slow = capture(pool, function()
      local z = cg.buffer("float", N)
      sharing.slow:over(N)(z, 2, 3000, N)
    end)
    cg.synchronize()
    for _ = 1, 50 do
      s.y:fill(4)
      other:use(function() slow:replay(3) s.spoils:replay() end)
      s.y:fill(5)
      assert.equal(5, value(s.y))
    end
  end)
end)
