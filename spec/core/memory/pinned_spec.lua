local ffi = require "ffi"
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

describe("pinned", function()
  teardown(device.nothing_alive)

  it("is zero at first and knows its type and bytes", function()
    local p = cg.pinned("double", 3)
    local x = p:cdata()
    assert.equal(0, x[0] + x[1] + x[2])
    assert.equal("double", p.type)
    assert.equal(24, p.bytes)
    assert.equal(3, #p)
    assert.matches("^cgraphlua.pinned double%[3%] at 0x", tostring(p))
  end)

  it("gives pointers to its element type", function()
    local names = {
      float = "float", double = "double", int8 = "int8_t", uint8 = "uint8_t", int16 = "int16_t",
      uint16 = "uint16_t", int32 = "int32_t", uint32 = "uint32_t", int64 = "int64_t",
      uint64 = "uint64_t", half = "uint16_t", bfloat16 = "uint16_t", bool = "bool",
    }
    for type, name in pairs(names) do
      assert.is_true(ffi.istype(ffi.typeof(name .. " *"), cg.pinned(type, 2):cdata()), type)
    end
  end)

  it("has its elements from 1, without a pointer", function()
    local p = cg.pinned("int16", 3)
    assert.equal(p, p:set(1, -5):set(3, 7))
    assert.same({ -5, 0, 7 }, { p:get(1), p:get(2), p:get(3) })
    assert.equal(7, p:cdata()[2])
    for _, i in ipairs { 0, 4, -1, 1.5 } do
      device.slips(function() p:get(i) end, "the element must be a whole number from 1 to 3")
      device.slips(function() p:set(i, 1) end, "the element must be a whole number from 1 to 3")
    end
    device.slips(function() p:set(1, 40000) end, "int16 takes whole numbers")
    device.slips(function() p:set(1, "x") end, "int16 takes numbers")
    device.slips(function() cg.pinned("float", 0):get(1) end, "element")
  end)

  it("copies to and from buffers", function()
    local p, q, b = cg.pinned("float", 4), cg.pinned("float", 4), cg.zeros("float", 4)
    local x, y = p:cdata(), q:cdata()
    for i = 0, 3 do x[i] = i + 1 end
    assert.equal(b, b:copy(p))
    assert.equal(q, q:copy(b))
    cg.synchronize()
    assert.same({ 1, 2, 3, 4 }, { y[0], y[1], y[2], y[3] })
  end)

  it("feeds a replay with what it holds then", function()
    local p, q, b = cg.pinned("float", 2), cg.pinned("float", 2), cg.zeros("float", 2)
    local x, y, add = p:cdata(), q:cdata(), device.kernel "add"
    local g = cg.capture(function()
      b:copy(p)
      add:launch(1, 32, b, 10, 2)
      q:copy(b)
    end)
    for i = 1, 3 do
      x[0], x[1] = i, -i
      g:replay()
      cg.synchronize()
      assert.same({ 10 + i, 10 - i }, { y[0], y[1] })
    end
  end)

  it("serves again once it was released and the device waited for", function()
    local address = function(p) return tonumber(ffi.cast("intptr_t", p:cdata())) end
    local seen, count = {}, 0
    for i = 1, 50 do
      local p = cg.pinned("float", 300000)
      local x = p:cdata()
      assert.equal(0, x[0] + x[299999])
      x[0], x[299999] = i, i
      if not seen[address(p)] then count = count + 1 end
      seen[address(p)] = true
      p:release()
      cg.synchronize()
    end
    assert.is_true(count < 10)
  end)

  -- Memory that is free goes to one of them.
  local function fifty_more()
    local others = {}
    for i = 1, 50 do
      cg.synchronize()
      others[i] = cg.pinned("float", 1000)
      others[i]:cdata()[999] = -1
    end
    return others
  end

  it("is not given away while a graph copies from it", function()
    local p, b = cg.pinned("float", 1000), cg.zeros("float", 1000)
    p:cdata()[999] = 7
    local g = cg.capture(function() b:copy(p) end)
    p:release()
    fifty_more()
    g:replay()
    assert.equal(7, b:download()[1000])
  end)

  it("is not given away while a graph copies to it", function()
    local p, b = cg.pinned("float", 1000), cg.full("float", 1000, 7)
    local g = cg.capture(function() p:copy(b) end)
    p:release()
    local others = fifty_more()
    g:replay()
    cg.synchronize()
    for i = 1, 50 do assert.equal(-1, others[i]:cdata()[999]) end
  end)

  it("lives while its pointer does", function()
    device.nothing_alive() -- nor in a compiled loop of those above
    local x = cg.pinned("int32", 1000):cdata()
    for i = 0, 999 do x[i] = i end
    collectgarbage()
    collectgarbage()
    assert.equal(1, cg.live "pinned")
    assert.equal(999, x[999])
    x = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.equal(0, cg.live "pinned")
  end)

  it("can be a kernel's pointer", function()
    local p, add = cg.pinned("float", 2), device.kernel "add"
    add:launch(1, 32, p, 3, 2)
    cg.synchronize()
    assert.equal(3, p:cdata()[1])
  end)

  it("refuses what is no type, count or buffer", function()
    slips(function() cg.pinned("floats", 1) end, "element type must be one of")
    slips(function() cg.pinned("float", 1.5) end, "number of elements must be")
    slips(function() cg.pinned("float", 1):copy(cg.pinned("float", 1)) end,
      "cgraphlua.buffer expected")
    raises("CGL_ERROR_INVALID_ARGUMENT", function()
      cg.pinned("float", 1):copy(cg.zeros("float", 2))
    end, "2 elements of float into 1")
    raises("CGL_ERROR_INVALID_ARGUMENT", function()
      cg.zeros("int32", 1):copy(cg.pinned("float", 1))
    end, "float into 1 of int32")
  end)

  it("is refused when the machine has less", function()
    -- By the driver, and past 2^48 bytes before it is asked.
    for power = 43, 50 do
      device.lacks("pinned", function() cg.pinned("float", 2 ^ power) end)
    end
    assert.equal(0, cg.pinned("float", 4):cdata()[3])
  end)

  it("says that it was released", function()
    local p = cg.pinned("float", 1)
    p:release()
    raises("CGL_ERROR_RELEASED", function() p:cdata() end, "this pinned was released")
    raises("CGL_ERROR_RELEASED", function() cg.zeros("float", 1):copy(p) end,
      "argument 1 is a pinned")
    assert.equal("cgraphlua.pinned (released)", tostring(p))
  end)
end)
