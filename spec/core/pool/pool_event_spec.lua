-- Memory that one stream freed and another may have at once, because events
-- prove that its use is over.  All of it while a capture is underway elsewhere:
-- then no pool can wait for the device, and nothing but the proof is left.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local PAGE = 2 ^ 21 -- a block of it leaves nothing over for others

describe("pool, by events", function()
  local a, b, c = cg.stream(), cg.stream(), cg.stream()

  teardown(function()
    a, b, c = nil, nil, nil
    device.nothing_alive()
  end)

  -- Runs fn while a capture is underway that has nothing to do with it.
  local function without_waiting(fn)
    local e
    cg.capture(function()
      local x = cg.zeros("float", 1)
      local ok
      ok, e = pcall(fn)
      e = not ok and e or nil
      x:release()
    end)
    if e then error(e, 0) end
  end

  local function on(stream, pool)
    return stream:use(function() return cg.buffer("uint8", PAGE, { pool = pool }) end)
  end

  -- Where a block lay that stream `a` filled and freed.
  local function freed(pool)
    local x = on(a, pool)
    a:use(function() x:fill(1) end)
    local address = x:address()
    x:release()
    return address
  end

  local function is_served(stream, pool, address)
    local x = on(stream, pool)
    stream:use(function() x:fill(2) end)
    local same = x:address() == address
    x:release()
    return same
  end

  -- Whether `stream` gets what `a` freed, after order() and without a wait.
  local function serves(stream, pool, order)
    local answer
    without_waiting(function()
      local address = freed(pool)
      order()
      answer = is_served(stream, pool, address)
    end)
    return answer
  end

  it("serves a stream that waited for an event after the free", function()
    if device.never_reuses then return pending "memory is not reused here" end
    local p, e = cg.pool(), cg.event()
    assert.is_true(serves(b, p, function()
      a:record(e)
      b:wait(e)
    end))
    assert.equal(PAGE, p:stats().reserved)
  end)

  it("serves one that waited for the other stream", function()
    if device.never_reuses then return pending "memory is not reused here" end
    assert.is_true(serves(b, cg.pool(), function() b:wait(a) end))
  end)

  it("serves one that comes after the other by way of a third", function()
    if device.never_reuses then return pending "memory is not reused here" end
    assert.is_true(serves(c, cg.pool(), function()
      b:wait(a)
      c:wait(b)
    end))
  end)

  it("serves nobody else", function()
    assert.is_false(serves(b, cg.pool(), function() c:wait(a) end))
  end)

  it("does not take an event before the free for a proof", function()
    local p, e = cg.pool(), cg.event()
    without_waiting(function()
      local x = on(a, p)
      a:record(e)
      a:use(function() x:fill(1) end)
      local address = x:address()
      x:release()
      b:wait(e)
      assert.is_false(is_served(b, p, address))
    end)
  end)

  it("does not serve a stream that the other one waited for", function()
    assert.is_false(serves(b, cg.pool(), function() a:wait(b) end))
  end)

  describe("of a block that a second stream used", function()
    -- Where a block lay that `a` made and `b` used; `order` is called with the
    -- buffer after that and before it is released.
    local function used(pool, order)
      local x = on(a, pool)
      b:wait(a)
      b:use(function() x:fill(3) end)
      order(x)
      local address = x:address()
      x:release()
      return address
    end

    it("serves the first stream when it waited for the second", function()
      if device.never_reuses then return pending "memory is not reused here" end
      local p, e = cg.pool(), cg.event()
      without_waiting(function()
        assert.is_true(is_served(a, p, used(p, function() a:wait(b) end)))
        local address = used(p, function()
          b:record(e)
          a:wait(e)
        end)
        c:wait(a)
        assert.is_true(is_served(c, p, address))
      end)
    end)

    it("serves nobody when it did not", function()
      local p, q = cg.pool(), cg.pool()
      without_waiting(function()
        assert.is_false(is_served(a, p, used(p, function() end)))
        assert.is_false(is_served(a, q, used(q, function(x)
          a:wait(b)
          b:use(function() x:fill(4) end)
        end)))
      end)
    end)

    it("serves nobody when others may use the second by its handle", function()
      local p, shown = cg.pool(), cg.stream()
      shown:handle()
      without_waiting(function()
        local x = on(a, p)
        local address = x:address()
        shown:wait(a)
        shown:use(function() x:fill(4) end)
        a:wait(shown)
        x:release()
        assert.is_false(is_served(a, p, address))
      end)
    end)

    it("does not take the wait of another stream for one", function()
      local p = cg.pool()
      without_waiting(function()
        local address = used(p, function() c:wait(b) end)
        assert.is_false(is_served(a, p, address))
        assert.is_false(is_served(c, p, address))
      end)
    end)
  end)

  describe("of a block that two other streams used", function()
    local function use(stream, x)
      stream:use(function() x:fill(4) end)
    end

    -- The same as above, with `c` after or beside `b`, as order() makes it.
    local function used(pool, order)
      local x = on(a, pool)
      b:wait(a)
      c:wait(a)
      use(b, x)
      order(x)
      local address = x:address()
      x:release()
      return address
    end

    it("serves the first stream when the third came after the second", function()
      if device.never_reuses then return pending "memory is not reused here" end
      local p = cg.pool()
      without_waiting(function()
        assert.is_true(is_served(a, p, used(p, function(x)
          c:wait(b)
          use(c, x)
          a:wait(c)
        end)))
      end)
    end)

    it("serves it when it waited for one before the other began", function()
      if device.never_reuses then return pending "memory is not reused here" end
      local p = cg.pool()
      without_waiting(function()
        assert.is_true(is_served(a, p, used(p, function(x)
          a:wait(b)
          use(c, x)
          a:wait(c)
        end)))
      end)
    end)

    it("serves nobody when it waited for one of them, or for neither", function()
      local orders = {
        function(x) -- beside each other
          use(c, x)
          a:wait(c)
        end,
        function(x) -- the second again, after the third has waited for it
          c:wait(b)
          use(c, x)
          use(b, x)
          a:wait(c)
        end,
        function(x) -- the third after the second, and nobody after that
          c:wait(b)
          use(c, x)
          a:wait(b)
        end,
      }
      without_waiting(function()
        for _, order in ipairs(orders) do
          local p = cg.pool()
          local address = used(p, order)
          assert.is_false(is_served(a, p, address))
          assert.is_false(is_served(c, p, address))
        end
      end)
    end)
  end)

  it("serves everybody when the host waited for an event after the free", function()
    if device.never_reuses then return pending "memory is not reused here" end
    local p, e = cg.pool(), cg.event()
    local address = freed(p)
    a:record(e)
    e:synchronize()
    without_waiting(function() assert.is_true(is_served(b, p, address)) end)
    local q = cg.pool()
    address = freed(q)
    a:synchronize()
    without_waiting(function() assert.is_true(is_served(c, q, address)) end)
  end)

  it("serves a capture only what the host waited for", function()
    if device.never_reuses then return pending "memory is not reused here" end
    local p, e = cg.pool(), cg.event()
    -- The capture begins on a stream that comes after `a`; its replays may not.
    local function capture(address)
      local g, x = cg.graph()
      b:use(function()
        g:capture_begin()
        x = cg.buffer("uint8", PAGE, { pool = p })
        x:fill(1)
        g:capture_end()
      end)
      return x:address() == address
    end
    local address = freed(p)
    b:wait(a)
    assert.is_false(capture(address))
    a:record(e)
    e:synchronize()
    assert.is_true(capture(address))
  end)

  it("serves nobody what replays of a dead graph may still use", function()
    local pool = cg.pool()
    -- Too little to wait for the device.
    local function small()
      return a:use(function() return cg.buffer("uint8", 2 ^ 16, { pool = pool }) end)
    end
    for _, exchanged in ipairs { false, true } do
      local x, y = small(), small()
      local address = x:address()
      local g = cg.capture(function() (exchanged and y or x):fill(1) end, { stream = a })
      if exchanged then g:set_params(1, { buffer = x }) end
      b:use(function() g:replay() end)
      x:release()
      g:release()
      assert.not_equal(address, small():address())
      y:release()
    end
  end)

  it("keeps what the first stream wrote until it is read", function()
    local p, e = cg.pool(), cg.event()
    local add, out = device.kernel "add", cg.zeros("float", 64)
    cg.synchronize()
    for i = 1, 200 do
      local from = i % 2 == 0 and a or b
      local to = i % 2 == 0 and b or a
      from:use(function()
        local x = cg.full("float", 64, i, { pool = p })
        add:launch(1, 64, x, 1, 64)
        out:copy(x)
        x:release()
      end)
      from:record(e)
      to:wait(e)
      to:use(function()
        local y = cg.full("float", 64, -1, { pool = p })
        y:release()
      end)
      assert.equal(i + 1, from:use(function() return out:download()[64] end))
    end
  end)
end)
