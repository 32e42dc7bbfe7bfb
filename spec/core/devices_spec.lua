-- Two devices in one script: everything belongs to the device it was made on,
-- and works there whichever is current.  On a machine with a GPU the host
-- device is the second one.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local raises = device.raises

local N = 1000

-- Of the device that is current.
local function add_kernel()
  return cg.kernel(device.source, "add")
end

describe("a second device", function()
  local first, second = cg.device().device, nil
  for _, d in ipairs(cg.devices()) do
    if d.device ~= first then second = second or d.device end
  end

  if not second then
    pending "the machine has one device only"
    return
  end

  -- A spec of two devices; the first is current when it begins and ends.
  local function on_two(name, fn)
    it(name, function()
      local ok, e = pcall(fn)
      cg.set_device(first)
      assert(ok, tostring(e))
    end)
  end

  -- Calls fn while the second device is current.
  local function there(fn)
    cg.set_device(second)
    local results = { fn() }
    cg.set_device(first)
    return unpack(results)
  end

  on_two("draws what the first one draws", function()
    local function draw()
      local gen = cg.generator(11)
      local u, z = cg.buffer("float", N), cg.buffer("float", N)
      local g = cg.capture(function()
        u:uniform(gen)
        z:normal(gen)
      end)
      g:replay(3)
      return u:download "string" .. z:download "string", gen:get_offset()
    end
    local here_bits, here_offset = draw()
    local there_bits, there_offset = there(draw)
    assert.equal(6, here_offset)
    assert.equal(6, there_offset)
    assert.is_true(here_bits == there_bits, "the bits differ")
  end)

  on_two("has a default generator of its own", function()
    local mine, other = cg.default_generator(), there(cg.default_generator)
    assert.not_equal(mine, other)
    local x = cg.zeros("float", 4)
    raises("CGL_ERROR_WRONG_DEVICE", function() x:uniform(other) end, first, second)
  end)

  on_two("runs graphs of its own pools whichever is current", function()
    local x, g, pool = there(function()
      local add, x, pool = add_kernel(), cg.zeros("float", N), cg.pool()
      local g = cg.capture(function()
        local scratch = cg.buffer("float", N)
        scratch:fill(2)
        add:over(N)(scratch, 1, N)
        add:over(N)(x, 1, N)
        x:copy(scratch)
        add:over(N)(x, 1, N)
      end, { pool = pool })
      return x, g, pool
    end)
    g:replay(7)
    assert.equal(first, cg.device().device)
    assert.is_true(pool:stats().reserved > 0)
    assert.same({ 4, 4 }, { unpack(there(function() return x:download() end), N - 1, N) })
  end)

  on_two("orders graphs that share a pool there", function()
    local first_graph, second_graph, x, y = there(function()
      local pool = cg.pool()
      local x, y = cg.full("float", N, 1), cg.zeros("float", N)
      local t
      local a = cg.capture(function()
        t = cg.buffer("float", N)
        t:copy(x)
      end, { pool = pool })
      local b = cg.capture(function() y:copy(t) end, { pool = pool })
      return a, b, x, y
    end)
    raises("CGL_ERROR_ORDER", function() second_graph:replay() end, "has not filled yet")
    first_graph:replay()
    second_graph:replay()
    there(function()
      assert.same({ 1 }, { y:download()[N] })
      x:fill(5)
    end)
    first_graph:replay()
    second_graph:replay()
    assert.equal(5, there(function() return y:download()[N] end))
  end)

  on_two("trains a graphed function there", function()
    there(function()
      local add = add_kernel()
      local calls = 0
      local step, graphs = cg.graphed(function(x)
        calls = calls + 1
        add:over(N)(x, 1, N)
        return x
      end)
      local x = cg.zeros("float", N)
      for _ = 1, 5 do step(x) end
      assert.equal(5, x:download()[N])
      assert.equal(1, calls)
      assert.equal(1, #graphs)
    end)
  end)

  on_two("does not capture into the first one's pool", function()
    local pool = cg.pool()
    there(function()
      raises("CGL_ERROR_WRONG_DEVICE", function()
        cg.capture(function() end, { pool = pool })
      end, first, second)
    end)
    -- The pool is as good as before.
    local x
    local g = cg.capture(function() x = cg.full("float", 4, 3) end, { pool = pool })
    g:replay()
    assert.same({ 3, 3, 3, 3 }, x:download())
  end)

  on_two("does not launch with the first one's buffers", function()
    local x = cg.zeros("float", N)
    there(function()
      local add = add_kernel()
      raises("CGL_ERROR_WRONG_DEVICE", function() add:over(N)(x, 1, N) end, first, second)
      -- Nor in a capture, which takes no harm.
      local y, g = cg.zeros("float", N), cg.graph()
      g:capture(function()
        raises("CGL_ERROR_WRONG_DEVICE", function() add:over(N)(x, 1, N) end)
        add:over(N)(y, 1, N)
      end)
      g:replay(2)
      assert.equal(2, y:download()[N])
    end)
    assert.equal(0, x:download()[N])
  end)

  on_two("captures at the same time as the first one", function()
    local x, add = cg.zeros("float", N), add_kernel()
    local y, add_there, h = there(function()
      return cg.zeros("float", N), add_kernel(), cg.graph()
    end)
    cg.synchronize()
    local g = cg.capture(function()
      add:over(N)(x, 1, N)
      h:capture(function() add_there:over(N)(y, 2, N) end)
      add:over(N)(x, 1, N)
    end)
    h:replay(3)
    g:replay(3)
    assert.equal(6, x:download()[N])
    assert.equal(6, there(function() return y:download()[N] end))
  end)

  on_two("gives its memory back by itself", function()
    local before = there(function() return cg.pool() end)
    local x = there(function()
      return before:use(function() return cg.zeros("float", 8 * 2^20) end)
    end)
    assert.is_true(before:stats().reserved >= 32 * 2^20)
    x:release()
    there(cg.synchronize)
    before:trim()
    assert.equal(0, before:stats().reserved)
  end)
end)
