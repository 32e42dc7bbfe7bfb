local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/support/device.lua")
local raises, slips = device.raises, device.slips

describe("event", function()
  teardown(device.nothing_alive)

  it("measures milliseconds between two records", function()
    local first, last = cg.event(), cg.event()
    local a, spin = cg.zeros("float", 1), device.kernel "spin"
    first:record()
    spin:launch(1, 1, a, 1000000)
    last:record()
    last:synchronize()
    local ms = first:elapsed(last)
    assert.is_true(ms > 0.05 and ms < 10000, ms)
    assert.is_true(last:elapsed(first) < 0)
  end)

  it("is done when it was never recorded, or after synchronize", function()
    local e = cg.event()
    assert.is_true(e:query())
    e:record(cg.stream())
    e:synchronize()
    assert.is_true(e:query())
  end)

  it("is not done before the work is", function()
    local s, e = cg.stream(), cg.event { timing = false }
    local a, spin = cg.zeros("float", 1), device.kernel "spin"
    cg.synchronize()
    s:use(function() spin:launch(1, 1, a, 20000000) end)
    e:record(s)
    assert.is_false(e:query())
    e:synchronize()
    assert.is_true(e:query())
  end)

  it("without timing does not measure", function()
    local first, last = cg.event { timing = false }, cg.event()
    first:record()
    last:record()
    last:synchronize()
    raises("CUDA_ERROR_INVALID_HANDLE", function() first:elapsed(last) end,
      "without timing", "hint: .*timing = true")
  end)

  it("that was never recorded does not measure", function()
    local first, last = cg.event(), cg.event()
    first:record()
    raises("CUDA_ERROR_INVALID_HANDLE", function() first:elapsed(last) end,
      "later event was never recorded")
  end)

  it("recorded in a capture stands for no moment", function()
    local e = cg.event()
    cg.capture(function() e:record() end)
    raises("CUDA_ERROR_CAPTURED_EVENT", function() e:query() end, "inside a capture")
    raises("CUDA_ERROR_CAPTURED_EVENT", function() e:synchronize() end, "inside a capture")
    e:record()
    e:synchronize()
  end)

  it("refuses what is no option, stream or event", function()
    slips(function() cg.event { timing = 1 } end, "timing must be true or false, got 1")
    slips(function() cg.event { time = true } end, 'unknown option "time"')
    slips(function() cg.event():record(1) end, "cgraphlua.stream expected, got number")
    slips(function() cg.event():elapsed(1) end, "cgraphlua.event expected")
  end)

  it("says that it was released", function()
    local e = cg.event()
    assert.matches("^cgraphlua.event 0x", tostring(e))
    e:release()
    raises("CGL_ERROR_RELEASED", function() e:record() end,
      "event:record", "this event was released")
    assert.equal("cgraphlua.event (released)", tostring(e))
  end)

  it("hands its handle out", function()
    assert.equal("userdata", type(cg.event():handle()))
  end)
end)
