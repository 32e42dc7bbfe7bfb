-- Graphs that share a pool: what is ordered, what is refused, what passes.
-- CGRAPHLUA_SHARING_ROUNDS sets how often the overlap is tried (400; the full
-- count is 10000).
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local sharing = dofile(here .. "/../../support/sharing.lua")
local device, add, capture, N = sharing.device, sharing.add, sharing.capture, sharing.N
local raises, line, value = device.raises, device.line, device.value

local ROUNDS = tonumber(os.getenv "CGRAPHLUA_SHARING_ROUNDS") or 400

-- torch's own case.  The third capture gets the memory of c.
local function three(pool)
  local c, d, e, f
  local a = cg.full("float", N, 5)
  local g = {}
  local at = line(3)
  g[1], c, d = capture(pool, function()
    local b = cg.buffer("float", N)
    b:copy(a)
    return add(b, 1), add(b, 2)
  end)
  g[2], e = capture(pool, function() return add(c, 3) end)
  local address = c:address()
  c:release()
  g[3], f = capture(pool, function() return add(d, 4) end)
  return g, e, f, address == f:address(), at
end

describe("sharing a pool", function()
  setup(sharing.open)
  teardown(sharing.close)

  it("is right in the order of capture", function()
    local g, e, f = three(cg.pool())
    for _ = 1, 3 do
      for i = 1, 3 do g[i]:replay() end
      assert.equal(9, value(e))
      assert.equal(11, value(f))
    end
  end)

  it("refuses a graph whose input another has overwritten", function()
    local g, e, f, reused = three(cg.pool())
    if device.never_reuses then return pending "memory is not reused here" end
    assert.is_true(reused)
    g[1]:replay()
    g[3]:replay()
    local err = raises("CGL_ERROR_ORDER", function() g[2]:replay() end,
      "%.lua:%d+%) a buffer made at [^ ]*%.lua:%d+, but the graph captured at",
      "has overwritten it since",
      "hint: replay the graph captured at [^ ]*sharing_spec.lua:%d+ first")
    assert.matches("sharing_spec.lua:%d+$", err.where)
    assert.equal(11, value(f))
    -- Refused before it was launched, and right again in the right order.
    for i = 1, 3 do g[i]:replay() end
    assert.equal(9, value(e))
  end)

  it("names both graphs, the buffer and the operations", function()
    local pool = cg.pool()
    local x = cg.full("float", N, 1)
    local y
    local made = line(2)
    local first = cg.capture(function()
      y = cg.buffer("float", N)
      y:copy(x)
    end, { pool = pool })
    local read = line(1)
    local second = cg.capture(function() cg.buffer("float", N):copy(y) end, { pool = pool })
    y:release()
    local third_at = line(1)
    local third = cg.capture(function() cg.buffer("float", N):fill(7) end, { pool = pool })
    first:replay()
    third:replay()
    if device.never_reuses then return pending "memory is not reused here" end
    local _, text = device.fails(second.replay, second)
    for _, at in ipairs { made, read, third_at } do
      assert.truthy(text:find(at, 1, true), at .. " is not in: " .. text)
    end
  end)

  it("refuses a graph before the one that fills its input", function()
    local g, e = three(cg.pool())
    raises("CGL_ERROR_ORDER", function() g[2]:replay() end, "has not filled yet")
    g[1]:replay()
    g[2]:replay()
    assert.equal(9, value(e))
  end)

  it("lets graphs of pools of their own be replayed in any order", function()
    for _, order in ipairs { { 1, 2, 3 }, { 1, 3, 2 }, { 3, 1, 2 } } do
      local g, e, f = three(nil)
      g[1]:replay() -- fills what the others read
      for _ = 1, 2 do
        e:fill(0)
        f:fill(0)
        for _, i in ipairs(order) do g[i]:replay() end
        assert.equal(9, value(e))
        assert.equal(11, value(f))
      end
    end
  end)

  it("lets graphs that pass no data be replayed in any order, and repeated", function()
    local pool = cg.pool()
    local x, out, g = cg.full("float", N, 1), {}, {}
    for i = 1, 5 do
      out[i] = cg.buffer("float", N)
      g[i] = capture(pool, function() out[i]:copy(add(add(x, i), i)) end)
    end
    for _, order in ipairs { { 1, 2, 3, 4, 5 }, { 5, 4, 3, 2, 1 }, { 3, 3, 1, 5, 3 } } do
      for _, i in ipairs(order) do g[i]:replay(2) end
    end
    for i = 1, 5 do assert.equal(1 + 2 * i, value(out[i])) end
    assert.equal(0, pool:stats().refused)
  end)

  it("knows what was replayed before the pool was shared", function()
    local s, t = cg.stream(), cg.stream()
    local x = cg.full("float", N, 1)
    local first, c = capture(nil, function() return add(x, 1) end)
    cg.synchronize()
    s:use(function() first:replay(200) end)
    local second, e = capture(first:pool(), function() return add(c, 3) end)
    t:use(function() second:replay() end)
    cg.synchronize()
    assert.equal(5, value(e))
    s:use(function() first:replay(200) end)
    t:use(function() second:replay() end)
    cg.synchronize()
    assert.equal(5, value(e))
  end)

  it("knows what the script wrote before the pool was shared", function()
    local first, c = capture(nil, function() return add(cg.full("float", N, 1), 1) end)
    c:fill(4)
    local second, e = capture(first:pool(), function() return add(c, 3) end)
    second:replay()
    assert.equal(7, value(e))
  end)

  it("takes what the script writes for filled", function()
    local pool = cg.pool()
    local g, e
    local first, c = capture(pool, function() return add(cg.zeros("float", N), 1) end)
    g, e = capture(pool, function() return add(c, 3) end)
    raises("CGL_ERROR_ORDER", function() g:replay() end)
    local values = {}
    for i = 1, N do values[i] = 9 end
    c:upload(values)
    g:replay()
    assert.equal(12, value(e))
    c:fill(4)
    g:replay()
    assert.equal(7, value(e))
    sharing.plus:over(N)(c, cg.full("float", N, 1), 1, N)
    g:replay()
    assert.equal(5, value(e))
    first:replay()
    g:replay()
    assert.equal(4, value(e))
  end)

  it("takes what a graph writes in place for filled", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local doubles = capture(pool, function() sharing.plus:over(N)(c, c, 10, N) end)
    local last, e = capture(pool, function() return add(c, 100) end)
    raises("CGL_ERROR_ORDER", function() doubles:replay() end)
    first:replay()
    doubles:replay(2)
    last:replay()
    assert.equal(122, value(e))
  end)

  it("takes what a kernel may write for what it may read", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local bumps = capture(pool, function() sharing.more:over(N)(c, 10, N) end)
    raises("CGL_ERROR_ORDER", function() bumps:replay() end, "has not filled yet")
    first:replay()
    bumps:replay(2)
    assert.equal(22, value(c))
  end)

  it("lets a kernel write what nobody has filled, and nothing that was lost", function()
    local pool, where = cg.pool(), nil
    local scratch = capture(pool, function()
      local t = cg.zeros("float", N)
      where = t:address()
      t:release()
    end)
    local _, c = capture(pool, function() return cg.buffer("float", N) end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.equal(where, c:address())
    local bumps = capture(pool, function() sharing.more:over(N)(c, 10, N) end)
    scratch:replay()
    bumps:replay()
    assert.equal(10, value(c))
    c:fill(4)
    bumps:replay()
    assert.equal(14, value(c))
    scratch:replay()
    raises("CGL_ERROR_ORDER", function() bumps:replay() end, "has overwritten it since")
  end)

  it("says whether the script or a graph has overwritten what is read", function()
    local pool, y = cg.pool(), nil
    local first, c = capture(pool, function()
      local b = cg.buffer("float", N)
      b:fill(1)
      return b
    end)
    local reads = capture(pool, function() cg.buffer("float", N):copy(c) end)
    local where = c:address()
    c:release()
    local third = capture(pool, function()
      y = cg.buffer("float", N)
      y:fill(2)
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.equal(where, y:address())
    first:replay()
    local at = line(1)
    y:fill(3)
    local function refused()
      return raises("CGL_ERROR_ORDER", function() reads:replay() end).message
    end
    assert.truthy(refused():find("the script's own work at " .. at, 1, true))
    third:replay()
    assert.matches("but the graph captured at [^ ]*%.lua:%d+ has overwritten it", refused())
    third:reset()
    assert.matches("but the graph captured at [^ ]*%.lua:%d+ has overwritten it", refused())
    y:fill(3)
    assert.matches("but the script's own work at", refused())
    first:replay()
    reads:replay()
  end)

  it("takes what a graph fills in part for what it needs", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local front, back = c:view(1, N / 2), c:view(N / 2 + 1)
    for _, part in ipairs { front, back } do
      local g = capture(pool, function()
        part:fill(7)
        cg.buffer("float", N):copy(c)
      end)
      raises("CGL_ERROR_ORDER", function() g:replay() end, "has not filled yet")
    end
    local both = capture(pool, function() c:fill(7) end)
    both:replay()
    assert.equal(7, value(c))
    first:replay()
    assert.equal(2, value(c))
  end)

  it("knows that random numbers need nothing of what was there", function()
    local pool, gen = cg.pool(), cg.generator(1)
    local _, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local g, e = capture(pool, function()
      c:uniform(5, 6, gen)
      return add(c, 3)
    end)
    g:replay()
    for _, v in ipairs(e:download()) do assert.is_true(v >= 8 and v <= 9) end
  end)

  it("refuses two replays in a row of a graph that overwrites its own input", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local where = c:address()
    local reused
    local g, e = capture(pool, function()
      local y = add(c, 1)
      c:release()
      local z = add(y, 1)
      reused = z:address() == where
      return z
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.is_true(reused)
    first:replay()
    raises("CGL_ERROR_ORDER", function() g:replay(2) end, "twice in a row")
    g:replay()
    assert.equal(4, value(e))
    raises("CGL_ERROR_ORDER", function() g:replay() end)
    first:replay()
    g:replay()
    assert.equal(4, value(e))
  end)

  it("refuses what a graph has written to and then overwritten", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local reads, e = capture(pool, function() return add(c, 3) end)
    local where, reused = c:address(), nil
    local g = capture(pool, function()
      sharing.more:over(N)(c, 10, N)
      local y = add(c, 1)
      c:release()
      reused = add(y, 1):address() == where
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.is_true(reused)
    first:replay()
    g:replay()
    raises("CGL_ERROR_ORDER", function() reads:replay() end, "has overwritten it since")
    first:replay()
    reads:replay()
    assert.equal(5, value(e))
  end)

  it("refuses what nobody filled, and the graph that would have is gone", function()
    local g = three(cg.pool())
    g[1]:release()
    for i = 2, 3 do
      raises("CGL_ERROR_ORDER", function() g[i]:replay() end, "has not filled yet")
    end
  end)

  it("refuses to read on the host what a replay has overwritten", function()
    local pool = cg.pool()
    local first, where = device.scratch(pool, N)
    local second, y = capture(pool, function()
      local b = cg.buffer("float", N)
      b:fill(2)
      return b
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.equal(where, y:address())
    raises("CGL_ERROR_ORDER", function() y:download() end, "has not filled the buffer")
    first:replay()
    raises("CGL_ERROR_ORDER", function() y:download() end, "has overwritten it")
    second:replay()
    assert.equal(2, value(y))
    first:replay()
    raises("CGL_ERROR_ORDER", function() y:download() end, "has overwritten it since")
    raises("CGL_ERROR_ORDER", function() cg.buffer("float", N):copy(y) end)
    raises("CGL_ERROR_ORDER", function() cg.pinned("float", N):copy(y) end)
    raises("CGL_ERROR_ORDER", function() sharing.plus:over(N)(cg.buffer("float", N), y, 1, N) end)
    second:replay()
    assert.equal(2, value(y))
  end)

  it("leaves an unchecked graph alone, and the others checked", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local free = capture(pool, function() return add(c, 3) end, { unchecked = true })
    local bound = capture(pool, function() return add(c, 3) end)
    free:replay()
    raises("CGL_ERROR_ORDER", function() bound:replay() end)
    first:replay()
    bound:replay()
    assert.is_true(free:options().unchecked)
    assert.is_false(bound:options().unchecked)
  end)

  it("ends what came since a checkpoint that is restored", function()
    local pool = cg.pool()
    local first, c = capture(pool, function() return add(cg.full("float", N, 1), 1) end)
    local cp = pool:checkpoint()
    local second, e = capture(pool, function() return add(c, 3) end)
    first:replay()
    second:replay()
    e:fill(3)
    assert.equal(2, value(c))
    pool:restore(cp)
    raises("CGL_ERROR_RELEASED", function() second:replay() end, "taken back when its pool was")
    raises("CGL_ERROR_RELEASED", function() e:download() end)
    raises("CGL_ERROR_RELEASED", function() sharing.plus:over(N)(c, e, 1, N) end)
    e:release()
    local third, f = capture(pool, function() return add(c, 5) end)
    first:replay()
    third:replay()
    assert.equal(7, value(f))
  end)

  it("knows after a restore what was overwritten before", function()
    local pool = cg.pool()
    local first, where = device.scratch(pool, N)
    local _, y = capture(pool, function() return cg.buffer("float", N) end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.equal(where, y:address())
    y:fill(2)
    local cp = pool:checkpoint()
    pool:restore(cp)
    assert.equal(2, value(y))
    first:replay()
    pool:restore(cp)
    raises("CGL_ERROR_ORDER", function() y:download() end, "has overwritten it since")
    y:fill(3)
    assert.equal(3, value(y))
  end)

  it("forgets a graph that is reset, not what it did", function()
    local g, e, _, reused = three(cg.pool())
    if device.never_reuses then return pending "memory is not reused here" end
    assert.is_true(reused)
    for _, i in ipairs { 1, 3, 1 } do g[i]:replay() end
    g[1]:reset()
    g[2]:replay()
    assert.equal(9, value(e))
    g[3]:replay()
    g[3]:release()
    raises("CGL_ERROR_ORDER", function() g[2]:replay() end)
  end)

  describe("on two streams", function()
    -- Two graphs that fill the same scratch memory slowly, each with its own
    -- value, and copy it out: run at once they would spoil each other.
    local function pair(pool)
      local out, g = {}, {}
      for i = 1, 2 do
        out[i] = cg.zeros("float", N)
        g[i] = capture(pool, function()
          local y = cg.buffer("float", N)
          sharing.slow:over(N)(y, i, 3000, N)
          out[i]:copy(y)
          y:release()
        end)
      end
      return g, out, { cg.stream(), cg.stream() }
    end

    it("makes a replay wait for the last one of its pool", function()
      local pool = cg.pool()
      local g, out, s = pair(pool)
      cg.synchronize()
      for _ = 1, ROUNDS do
        for i = 1, 2 do s[i]:use(function() g[i]:replay() end) end
      end
      cg.synchronize()
      for i = 1, 2 do assert.equal(i, value(out[i])) end
      assert.is_true(pool:stats().ordered > 0)
    end)

    it("makes it wait for those from before the pool was shared", function()
      local s, t, x = cg.stream(), cg.stream(), cg.full("float", N, 1)
      local first, c = cg.graph(), nil
      local function body()
        c = cg.buffer("float", N)
        sharing.slow:over(N)(c, 2, 3000, N)
      end
      first:capture(body)
      s:use(function() first:replay() end)
      first:reset() -- and with it goes its pool
      first:capture(body)
      s:use(function() first:replay() end)
      cg.synchronize()
      s:use(function() first:replay(200) end)
      -- By hand: a region waits for the device before it begins.
      local pool, e = first:pool(), nil
      local second = cg.graph { pool = pool }
      t:use(function()
        second:capture_begin()
        e = add(x, 3)
        second:capture_end()
        second:replay()
      end)
      assert.equal(1, pool:stats().ordered)
      cg.synchronize()
      assert.equal(2, value(c))
      assert.equal(4, value(e))
    end)

    it("makes it wait for a graph around it", function()
      local s, t = cg.stream(), cg.stream()
      local inner, c = capture(nil, function()
        local y = cg.buffer("float", N)
        sharing.slow:over(N)(y, 2, 3000, N)
        return y
      end, { keep_graph = true })
      local outer = cg.capture(function() inner:replay() end)
      inner:instantiate()
      cg.synchronize()
      s:use(function() outer:replay(200) end)
      t:use(function() inner:replay() end)
      assert.equal(1, inner:pool():stats().ordered)
      cg.synchronize()
      assert.equal(2, value(c))
    end)

    it("checks every round", function()
      local pool = cg.pool()
      local g, out, s = pair(pool)
      local seen = { cg.pinned("float", N), cg.pinned("float", N) }
      local wrong = 0
      for _ = 1, ROUNDS do
        for i = 1, 2 do
          out[i]:fill(0)
          s[i]:wait(cg.current_stream())
          s[i]:use(function()
            g[i]:replay()
            seen[i]:copy(out[i])
          end)
        end
        cg.synchronize()
        for i = 1, 2 do
          for k = 0, N - 1 do wrong = wrong + (seen[i]:cdata()[k] == i and 0 or 1) end
        end
      end
      assert.equal(0, wrong)
    end)

    it("says so once", function()
      local said = device.logged(function()
        local g, _, s = pair(cg.pool())
        for _ = 1, 4 do
          for i = 1, 2 do s[i]:use(function() g[i]:replay(50) end) end
        end
        cg.synchronize()
      end)
      local _, times = said:gsub("share a pool", "")
      assert.equal(1, times)
      assert.matches("%.lua:%d+ was made to wait for the graph captured at [^ ]*%.lua:%d+", said)
    end)

    it("asks for no wait where there is an order already", function()
      local pool = cg.pool()
      local g, out, s = pair(pool)
      local e = cg.event { timing = false }
      for _ = 1, 20 do
        s[1]:use(function() g[1]:replay() end)
        s[1]:record(e)
        s[2]:wait(e)
        s[2]:use(function() g[2]:replay() end)
        s[1]:wait(s[2])
      end
      s[1]:use(function() g[1]:replay() end)
      s[1]:synchronize()
      s[2]:use(function() g[2]:replay() end)
      cg.synchronize()
      s[1]:use(function() g[1]:replay() end)
      assert.equal(0, pool:stats().ordered)
      cg.synchronize()
      for i = 1, 2 do assert.equal(i, value(out[i])) end
    end)

    it("refuses to overlap when the pool is strict", function()
      local pool = cg.pool { strict = true }
      local g, out, s = pair(pool)
      local ok, err = true, nil
      for _ = 1, 20 do
        s[1]:use(function() g[1]:replay(200) end)
        ok, err = pcall(s[2].use, s[2], function() g[2]:replay() end)
        if not ok then break end
      end
      assert.is_false(ok)
      assert.equal("CGL_ERROR_ORDER", err.name)
      assert.matches("may still run .* which is strict", tostring(err))
      -- Nothing was launched, and with an order it passes.
      s[2]:wait(s[1])
      s[2]:use(function() g[2]:replay() end)
      s[2]:synchronize()
      s[1]:use(function() g[1]:replay() end)
      cg.synchronize()
      for i = 1, 2 do assert.equal(i, value(out[i])) end
      assert.equal(0, pool:stats().ordered)
      assert.equal(1, pool:stats().refused)
    end)

    it("lets one graph be replayed on two streams: the driver orders it", function()
      local pool = cg.pool()
      local g, out, s = pair(pool)
      for _ = 1, 20 do
        for i = 1, 2 do s[i]:use(function() g[1]:replay() end) end
      end
      cg.synchronize()
      assert.equal(0, pool:stats().ordered)
      assert.equal(1, value(out[1]))
    end)

    it("remembers a stream that was released", function()
      local pool = cg.pool()
      local g, out = pair(pool)
      for _ = 1, 10 do
        for i = 1, 2 do
          local s = cg.stream()
          s:use(function() g[i]:replay(3) end)
          s:release()
        end
      end
      cg.synchronize()
      for i = 1, 2 do assert.equal(i, value(out[i])) end
    end)

    it("waits for the device when an engine's stream is gone", function()
      local pool = cg.pool()
      local g, out, s = pair(pool)
      for _ = 1, 5 do
        local borrowed = cg.stream_from(s[1]:handle())
        borrowed:use(function() g[1]:replay(20) end)
        borrowed:release()
        collectgarbage()
        s[2]:use(function() g[2]:replay() end)
      end
      cg.synchronize()
      for i = 1, 2 do assert.equal(i, value(out[i])) end
    end)

    it("orders replays on a stream that captures by now", function()
      local pool = cg.pool()
      local g, out, s = pair(pool)
      local x = cg.zeros("float", 1)
      s[1]:use(function() g[1]:replay(20) end)
      local other = cg.graph()
      s[1]:use(function() other:capture_begin { stream = s[1] } end)
      x:fill(1)
      s[2]:use(function() g[2]:replay() end)
      s[1]:use(function() other:capture_end() end)
      cg.synchronize()
      for i = 1, 2 do assert.equal(i, value(out[i])) end
    end)
  end)

  it("stays right when the pool is trimmed", function()
    local pool = cg.pool()
    local g, e, f = three(pool)
    for _ = 1, 3 do
      cg.synchronize()
      pool:trim()
      for i = 1, 3 do g[i]:replay() end
      assert.equal(9, value(e))
      assert.equal(11, value(f))
    end
  end)
end)
