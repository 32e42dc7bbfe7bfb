local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
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

  it("measures nothing before both ends are there", function()
    local spin, x = device.kernel "spin", cg.zeros("float", 1)
    local first, last = cg.event(), cg.event()
    first:record()
    first:synchronize()
    spin:launch(1, 1, x, 2e7)
    last:record()
    raises("CUDA_ERROR_NOT_READY", function() first:elapsed(last) end, "not done yet",
      "hint: synchronize the later event")
    raises("CUDA_ERROR_NOT_READY", function() last:elapsed(first) end, "not done yet")
    last:synchronize()
    assert.is_true(first:elapsed(last) > 0)
  end)

  it("that was never recorded does not measure", function()
    local first, last = cg.event(), cg.event()
    first:record()
    raises("CUDA_ERROR_INVALID_HANDLE", function() first:elapsed(last) end,
      "later event was never recorded")
  end)

  it("that was never recorded is nothing to wait for, in a capture too", function()
    local never, x = cg.event(), cg.zeros("float", 1)
    local g = cg.capture(function()
      cg.current_stream():wait(never)
      x:fill(2)
    end)
    g:replay()
    assert.equal(1, #g:nodes())
    assert.equal(2, device.first(x))
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

  describe("external, in a capture", function()
    local spin

    before_each(function() spin = device.kernel "spin" end)
    after_each(function() spin = nil end)

    it("is recorded by every replay, and times what lies between", function()
      local a, first, last = cg.zeros("float", 1), cg.event { external = true }, cg.event()
      local g = cg.capture(function()
        first:record()
        spin:launch(1, 1, a, 1000000)
        assert.equal(last, cg.current_stream():record(last, { external = true }))
      end)
      raises("CUDA_ERROR_INVALID_HANDLE", function() first:elapsed(last) end,
        "no replay", "replay the graph")
      for _ = 1, 2 do
        g:replay()
        last:synchronize()
        assert.is_true(first:query() and last:query())
        local ms = first:elapsed(last)
        assert.is_true(ms > 0.05 and ms < 10000, ms)
      end
      g:replay(20)
      last:synchronize()
      assert.is_true(first:elapsed(last) > 0)
    end)

    it("is a node of the graph, with its line", function()
      local e, x = cg.event(), cg.zeros("float", 4)
      local line
      local g = cg.capture(function()
        x:fill(1)
        e:record(nil, { external = true }) line = debug.getinfo(1, "l").currentline
        cg.current_stream():wait(e, { external = true })
      end)
      local nodes = g:nodes()
      assert.equal(3, #nodes)
      assert.equal("memset event_record event_wait", device.kinds(g))
      assert.equal(line, nodes[2].line)
      assert.same({ 1 }, nodes[2].dependencies)
      g:replay()
      assert.equal(1, x:download()[1])
    end)

    it("is recorded on the current stream, and anew, when only options are given", function()
      local e, x, made = cg.event(), cg.zeros("float", 4), nil
      local g = cg.capture(function()
        e:record { external = true }
        x:fill(1)
        made = cg.current_stream():record { external = true }
      end)
      assert.equal("event_record memset event_record", device.kinds(g))
      g:replay()
      made:synchronize()
      assert.is_true(e:elapsed(made) >= 0)
      e:record {}
      cg.current_stream():record({}):synchronize()
      assert.is_true(e:query())
    end)

    it("is kept by the graph", function()
      local g = cg.capture(function()
        cg.event { external = true }:record()
        cg.event():record(cg.current_stream(), { external = true })
      end)
      collectgarbage()
      collectgarbage()
      assert.equal(2, cg.live "event")
      g:replay(3)
      cg.synchronize()
      g:release()
      assert.equal(0, cg.live "event")
    end)

    it("waits for the last record of somebody else", function()
      local gate = cg.event { external = true, timing = false }
      local s = cg.stream()
      local a, b = cg.zeros("float", 1), cg.zeros("float", 1)
      local g = cg.capture(function()
        cg.current_stream():wait(gate)
        b:copy(a)
      end)
      for i = 1, 5 do
        s:use(function()
          spin:launch(1, 1, a, 300000)
          a:fill(i)
          gate:record()
        end)
        g:replay()
        assert.equal(i, b:download()[1])
        s:synchronize()
      end
    end)

    it("refuses to wait for a place in the graph of a capture that is over", function()
      local e, x, external = cg.event(), cg.zeros("float", 1), { external = true }
      local function wait() cg.current_stream():wait(e, external) end
      local function fails()
        e:record()
        error "on purpose"
      end
      for _, body in ipairs { function() e:record() end, fails } do
        pcall(cg.capture, body)
        local g = cg.capture(function()
          x:fill(3)
          raises("CUDA_ERROR_INVALID_VALUE", wait, "a capture that has ended", "external = true")
        end)
        g:replay()
        assert.equal(3, x:download()[1])
        assert.equal("memset", device.kinds(g))
        e:record()
        assert.equal("event_wait", device.kinds(cg.capture(wait)))
        cg.capture(function() e:record(nil, external) end)
        assert.equal("event_wait", device.kinds(cg.capture(wait)))
      end
      local other, side = cg.graph(), cg.stream()
      other:capture_begin { stream = side, capture_error_mode = "relaxed" }
      side:record(e)
      assert.equal("event_wait", device.kinds(cg.capture(wait)))
      side:wait(e, external)
      other:capture_end()
      assert.equal("event_wait", device.kinds(other))
    end)

    it("goes with forks, which it is not", function()
      local side, e, x = cg.stream(), cg.event { external = true }, cg.zeros("float", 2)
      local fork = cg.event()
      local g = cg.capture(function()
        fork:record()
        side:wait(fork)
        side:use(function()
          x:view(1, 1):fill(1)
          e:record()
        end)
        cg.current_stream():wait(side)
      end)
      g:replay()
      e:synchronize()
      assert.equal(1, x:download()[1])
      assert.equal(2, #g:nodes())
    end)

    it("is refused outside of captures, and of another kind of value", function()
      local e, s = cg.event(), cg.stream()
      local external = { external = true }
      raises("CUDA_ERROR_ILLEGAL_STATE", function() e:record(s, external) end, "does not capture")
      raises("CUDA_ERROR_ILLEGAL_STATE", function() s:record(e, external) end, "leave external out")
      raises("CUDA_ERROR_ILLEGAL_STATE", function() s:wait(e, external) end)
      slips(function() s:wait(s, external) end, "cgraphlua.event expected")
      slips(function() e:record(s, { outside = true }) end, "#2 to 'event:record'", "outside")
      slips(function() e:record({ outside = true }) end, "#1 to 'event:record'", "outside")
      slips(function() s:record({ outside = true }) end, "#1 to 'stream:record'", "outside")
      slips(function() e:record({}, {}) end, "cgraphlua.stream expected, got table")
      slips(function() s:record({}, {}) end, "cgraphlua.event expected, got table")
      slips(function() s:wait(external) end, "event or stream expected")
      slips(function() e:record(s, { external = 1 }) end, "external")
      local out = cg.event { external = true }
      out:record()
      out:synchronize()
      s:wait(out)
      assert.is_true(out:query())
    end)
  end)
end)
