-- The collector runs as often as it can while captures are underway and
-- objects of every kind die: no capture may notice.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

describe("the collector", function()
  local pause, multiplier

  before_each(function()
    pause = collectgarbage("setpause", 0)
    multiplier = collectgarbage("setstepmul", 1000)
  end)

  after_each(function()
    collectgarbage("setpause", pause)
    collectgarbage("setstepmul", multiplier)
  end)

  teardown(device.nothing_alive)

  -- Objects of every kind that nobody holds; an executable graph among them.
  local function litter(spare)
    cg.buffer("float", 1000)
    cg.event()
    cg.stream()
    cg.pool()
    cg.module(device.source):kernel "scale"
    cg.graph()
    spare[#spare] = nil -- an instantiated graph and its memory
  end

  for _, mode in ipairs { "global", "thread_local", "relaxed" } do
    it("does not break a capture in mode " .. mode, function()
      local add, x = device.kernel "add", cg.zeros("float", 8)
      local spare = {}
      for i = 1, 30 do
        local y = cg.zeros("float", 4)
        spare[i] = cg.capture(function() y:fill(i) end)
      end
      local OPERATIONS = 30
      for round = 1, 3 do
        x:fill(0)
        local g = cg.capture(function()
          for i = 1, OPERATIONS do
            add:launch(1, 32, x, 1, 8)
            if i % 3 == 0 then litter(spare) end
            collectgarbage "step"
            if i % 10 == 0 then collectgarbage() end
          end
        end, { capture_error_mode = mode })
        assert.equal(OPERATIONS, #g:nodes())
        g:replay(2)
        assert.equal(2 * OPERATIONS, x:download()[8], "round " .. round)
      end
    end)
  end

  it("does not break a capture when it only steps at allocations", function()
    local add, x = device.kernel "add", cg.zeros("float", 1)
    for _ = 1, 20 do
      local g = cg.capture(function()
        for i = 1, 100 do
          add:launch({ 1, 1, 1 }, { 32 }, x, 1, 1)
          local _ = { tostring(i), cg.event { timing = false } }
        end
      end)
      g:replay()
    end
    assert.same({ 2000 }, x:download())
  end)

  it("frees the operands of a graph only after its last replay", function()
    local out = cg.zeros("float", 256)
    local scale = device.kernel "scale"
    for i = 1, 50 do
      local g = cg.capture(function()
        scale:launch(2, 128, cg.buffer("float", 256):fill(i), out, 2, 256)
      end)
      collectgarbage()
      g:replay(3)
      g = nil -- luacheck: ignore
      collectgarbage()
      assert.equal(2 * i, out:download()[256])
    end
  end)

  it("finalizes what a script's own finalizers still use", function()
    local status, out, err = device.child([[
      local x = cg.zeros("float", 4)
      local proxy = newproxy(true)
      getmetatable(proxy).__gc = function()
        local ok, e = pcall(x.download, x)
        io.write(ok and "ok" or tostring(e), "\n")
      end
      proxy = nil
      collectgarbage()
      collectgarbage()
      last = newproxy(true)
      getmetatable(last).__gc = getmetatable(last).__gc or function()
        io.write(tostring((pcall(cg.zeros, "float", 1))), "\n")
      end
    ]], "CGRAPHLUA_DEVICE=host")
    assert.equal("", err)
    assert.matches("^ok\n", out)
    assert.equal(0, status)
  end)

  it("finds memory that only garbage holds", function()
    local status, out, err = device.child([[
      collectgarbage "stop"
      for _ = 1, 64 do cg.zeros("uint8", 32 * 2^20) end
      for _ = 1, 64 do
        local x = cg.zeros("uint8", 32 * 2^20)
        cg.capture(function() x:fill(1) end) -- the graph keeps x
      end
      print(#cg.zeros("uint8", 100 * 2^20))
    ]], "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_MEMORY=256M")
    assert.equal("", err)
    assert.equal("104857600\n", out)
    assert.equal(0, status)
  end)
end)
