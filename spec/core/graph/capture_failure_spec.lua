-- A capture may fail anywhere.  Afterwards the former stream is current, no
-- stream captures, buffers come from the device's pool again, nothing is left
-- alive and the next capture is right; the script sees the first failure.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises = device.raises

-- Fails unless all is as a capture that failed has to leave it.
local function intact(before, ...)
  assert.equal(before, cg.current_stream())
  assert.is_false(cg.is_current_stream_capturing())
  for _, stream in ipairs { ... } do
    assert.is_false(stream:is_capturing())
    stream:synchronize()
  end
  cg.synchronize() -- refused while anything captures
  local x = cg.zeros("float", 4)
  local add = device.kernel "add"
  local g = cg.capture(function()
    local scratch = cg.zeros("float", 4)
    add:launch(1, 32, scratch, 2, 4)
    x:copy(scratch)
  end)
  x:fill(0)
  g:replay(2)
  assert.same({ 2, 2, 2, 2 }, x:download())
end

-- Calls fn, which must raise; returns what it raised, and what was logged.
local function failure(fn)
  local e
  local log = device.logged(function() e = device.fails(fn) end)
  return e, log
end

-- Runs a chunk that may make driver calls fail; it prints what it found.
local function child(chunk)
  local status, out, err = device.child([[
    cg.on_log(nil)
    local x, s = cg.zeros("float", 4), cg.stream()
    cg.on_log(function(message) print("log: " .. message) end)
    local same = cg.stream_from(s:handle()) -- knows nothing of captures on s
    cg.synchronize()
    local function show(e) print((tostring(e):gsub("[^ \n]*/", ""):gsub("0x%x+", "0x"))) end
    local function whole()
      cg.debug.fault(0)
      assert(not s:is_capturing())
      local g = cg.capture(function() x:fill(5) end, { stream = s })
      g:replay()
      assert(x:download()[4] == 5)
      g, x, s, same = nil
      collectgarbage() collectgarbage()
      cg.debug.forget()
      print("alive", cg.live())
    end
  ]] .. chunk, "CGRAPHLUA_FAULT=1")
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

describe("a capture that fails", function()
  teardown(device.nothing_alive)

  describe("in its body", function()
    it("raises on whatever the body raised", function()
      local before, x = cg.current_stream(), cg.zeros("float", 1)
      for _, value in ipairs { "text", 5, { "mine" }, setmetatable({}, { __index = {} }), false } do
        local e, log = failure(function()
          cg.capture(function()
            x:fill(1)
            error(value, 0)
          end)
        end)
        assert.equal(value, e)
        assert.equal("", log)
        intact(before)
      end
      assert.is_nil((failure(function() cg.capture(function() error() end) end)))
    end)

    it("raises the failure of an operation, with its line and nothing after it", function()
      local before, x = cg.current_stream(), cg.zeros("float", 1)
      local e = raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function()
        cg.capture(function()
          x:fill(1)
          x:download()
        end)
      end)
      assert.equal(device.line(-3), e.where)
      assert.equal("", e.also)
      intact(before)
    end)

    it("for lack of memory can go on with less", function()
      local before = cg.current_stream()
      local e = raises("CUDA_ERROR_OUT_OF_MEMORY", function()
        cg.capture(function() cg.buffer("float", 2 ^ 45) end)
      end)
      assert.equal(device.line(-2), e.where)
      intact(before)
      local x
      local g = cg.capture(function()
        raises("CUDA_ERROR_OUT_OF_MEMORY", function() cg.buffer("float", 2 ^ 45) end)
        x = cg.full("float", 4, 3)
      end)
      g:replay()
      assert.same({ 3, 3, 3, 3 }, x:download())
    end)

    it("for lack of memory finds first what only garbage graphs hold", function()
      local status, out, err = device.child([[
        cg.on_log(nil)
        local MIB = 2 ^ 20
        collectgarbage "stop"
        local x = cg.zeros("float", 4)
        for _ = 1, 3 do -- dropped, with 64 MiB of scratch memory each
          local g = cg.capture(function()
            local a, b = cg.buffer("uint8", 32 * MIB), cg.zeros("uint8", 32 * MIB)
            a:copy(b)
            a:release()
            b:release()
          end)
          g:replay()
        end
        local y
        local g = cg.capture(function()
          x:fill(2)
          y = cg.zeros("uint8", 160 * MIB)
          x:fill(3)
        end)
        g:replay()
        print(x:download()[4], #y, #g:nodes())
      ]], "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_MEMORY=288M")
      assert.equal("", err)
      assert.equal("3\t167772160\t3\n", out)
      assert.equal(0, status)
    end)

    it("for lack of memory lets dead graphs go in mid-capture, which stays whole", function()
      local out = child [[
        for _, mode in ipairs { "global", "thread_local", "relaxed" } do
          local spare = cg.capture(function() cg.zeros("float", 100) end)
          spare:replay()
          local before, after
          local g = cg.capture(function()
            x:fill(1)
            spare = nil
            collectgarbage() collectgarbage()
            before = cg.live "graph"
            cg.debug.fault(1, 2)
            cg.buffer("uint8", 64 * 2 ^ 20)
            after = cg.live "graph"
            x:fill(7)
          end, { stream = s, capture_error_mode = mode })
          g:replay()
          print(mode, before > after, x:download()[1], #g:nodes())
        end
        whole()
      ]]
      assert.equal("global\ttrue\t7\t2\nthread_local\ttrue\t7\t2\nrelaxed\ttrue\t7\t2\n" ..
        "alive\t0\n", out)
    end)

    it("between a fork and its join frees both streams", function()
      local before, side, x = cg.current_stream(), cg.stream(), cg.zeros("float", 1)
      local e = failure(function()
        cg.capture(function()
          side:wait(cg.current_stream())
          side:use(function()
            x:fill(1)
            x:download()
          end)
        end)
      end)
      assert.equal("buffer:download", e.operation)
      assert.equal("", e.also)
      intact(before, side)
    end)

    it("within stream:use and pool:use puts all of them back", function()
      local before, s, p = cg.current_stream(), cg.stream(), cg.pool()
      local own = { "mine" }
      assert.equal(own, failure(function()
        s:use(function()
          p:use(function()
            cg.capture(function()
              s:use(function() p:use(function() error(own) end) end)
            end)
          end)
        end)
      end))
      local reserved = p:stats().reserved
      intact(before, s)
      assert.equal(reserved, p:stats().reserved)
    end)

    it("no longer takes buffers from its pool", function()
      local p = cg.pool()
      failure(function()
        cg.capture(function()
          cg.buffer("float", 100)
          error "enough"
        end, { pool = p })
      end)
      local n = p:stats().allocations
      assert.is_true(n > 0)
      cg.buffer("float", 100)
      cg.capture(function() cg.zeros("float", 100) end)
      assert.equal(n, p:stats().allocations)
    end)

    it("by a stack overflow or a hook is one like any other", function()
      local before, x = cg.current_stream(), cg.zeros("float", 1)
      local function deep() return 1 + deep() end
      assert.matches("stack overflow", failure(function()
        cg.capture(function()
          x:fill(1)
          deep()
        end)
      end))
      intact(before)
      assert.matches("stopped", failure(function()
        cg.capture(function()
          debug.sethook(function()
            debug.sethook()
            error "stopped"
          end, "l")
          x:fill(1)
          x:fill(2)
        end)
      end))
      intact(before)
    end)

    it("in a capture within a capture ends both", function()
      local before, s, x = cg.current_stream(), cg.stream(), cg.zeros("float", 1)
      local own = { "mine" }
      assert.equal(own, failure(function()
        cg.capture(function()
          x:fill(1)
          cg.default_stream():use(function()
            cg.capture(function()
              assert.is_true(cg.is_current_stream_capturing())
              error(own)
            end, { stream = s })
          end)
        end)
      end))
      intact(before, s)
    end)

    it("in an inner capture leaves the outer one whole", function()
      local before, s = cg.current_stream(), cg.stream()
      local x, y = cg.zeros("float", 1), cg.zeros("float", 1)
      local g = cg.capture(function()
        x:fill(1)
        cg.default_stream():use(function()
          failure(function()
            cg.capture(function()
              y:fill(9)
              error "inner"
            end, { stream = s })
          end)
        end)
        assert.is_true(cg.is_current_stream_capturing())
        y:copy(x)
      end)
      g:replay()
      assert.same({ 1 }, y:download())
      assert.equal(2, #g:nodes())
      intact(before, s)
    end)
  end)

  describe("because its coroutine stops", function()
    it("says so at a yield out of the region", function()
      local before = cg.current_stream()
      local ok, e = coroutine.resume(coroutine.create(function()
        cg.capture(coroutine.yield)
      end))
      assert.is_false(ok)
      assert.matches("attempt to yield", e)
      intact(before)
    end)

    it("is abandoned when the coroutine that began it is collected", function()
      local before, s, x = cg.current_stream(), cg.stream(), cg.zeros("float", 1)
      cg.synchronize()
      local thread = coroutine.create(function()
        local g = cg.graph()
        g:capture_begin { stream = s }
        s:use(function() x:fill(1) end)
        coroutine.yield()
        g:capture_end()
      end)
      assert(coroutine.resume(thread))
      assert.is_true(s:is_capturing())
      thread = nil -- luacheck: ignore
      collectgarbage()
      collectgarbage()
      intact(before, s)
      assert.same({ 0 }, x:download())
    end)
  end)

  describe("because something of it goes", function()
    it("is abandoned when the collector gets the graph", function()
      local before, s, x = cg.current_stream(), cg.stream(), cg.zeros("float", 1)
      cg.synchronize()
      cg.graph():capture_begin { stream = s }
      s:use(function() x:fill(1) end)
      collectgarbage()
      collectgarbage()
      intact(before, s)
    end)

    it("says that the graph was released in it", function()
      local before, x, g = cg.current_stream(), cg.zeros("float", 1), cg.graph()
      local e = raises("CGL_ERROR_RELEASED", function()
        g:capture(function()
          x:fill(1)
          g:release()
          collectgarbage()
          x:fill(2)
        end)
      end, "released in its own capture")
      assert.equal(device.line(-7), e.where)
      intact(before)
      assert.same({ 0 }, x:download())
      local own = { "mine" }
      local h = cg.graph()
      assert.equal(own, failure(function()
        h:capture(function()
          h:release()
          error(own)
        end)
      end))
      intact(before)
    end)

    it("names the line that reset the graph, or ended its capture", function()
      local before, x, line = cg.current_stream(), cg.zeros("float", 1), nil
      for _, stop in ipairs { "reset", "capture_end" } do
        local g = cg.graph()
        local e, text = device.fails(function()
          g:capture(function()
            x:fill(1)
            g[stop](g) line = device.line()
          end)
        end)
        assert.equal("CGL_ERROR_CAPTURE_STATE", e.name)
        assert.is_truthy(text:find("ended at " .. line, 1, true), text)
        intact(before)
      end
    end)

    it("does not fail when only its stream or its pool was released", function()
      local before, s, p = cg.current_stream(), cg.stream(), cg.pool()
      local x
      local g = cg.capture(function()
        x = cg.zeros("float", 4)
        s:release()
        p:release()
        collectgarbage()
        x:fill(6)
      end, { stream = s, pool = p })
      p, s = nil, nil -- luacheck: ignore
      collectgarbage()
      g:replay()
      assert.same({ 6, 6, 6, 6 }, x:download())
      intact(before)
    end)

    it("stays quiet when the process ends in it", function()
      for _, last in ipairs { "os.exit(3)", "os.exit(3, true)", "error('last words')" } do
        local status, out, err = device.child([[
          cg.on_log(nil)
          local x, s = cg.zeros("float", 4), cg.stream()
          local inner = cg.graph()
          cg.capture(function()
            x:fill(1)
            inner:capture_begin { stream = s }
            s:use(function()
              x:fill(2)
              ]] .. last .. [[ end)
          end)
        ]])
        assert.equal("", out)
        if last:find "exit" then
          assert.equal(3, status)
          assert.equal("", err)
        else
          assert.equal(1, status)
          assert.matches("last words", err)
        end
      end
    end)
  end)

  describe("to begin", function()
    it("changes nothing", function()
      local before, s, x = cg.current_stream(), cg.stream(), cg.zeros("float", 1)
      local ran = false
      local function body() ran = true end
      raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function()
        cg.capture(body, { stream = cg.default_stream() })
      end, "default stream")
      local g = cg.graph()
      g:capture_begin { stream = s }
      raises("CGL_ERROR_CAPTURE_STATE", function() cg.capture(body, { stream = s }) end)
      s:use(function() x:fill(3) end)
      g:capture_end()
      raises("CGL_ERROR_CAPTURE_STATE", function() g:capture(body) end)
      g:replay()
      assert.same({ 3 }, x:download())
      assert.is_false(ran)
      intact(before, s)
    end)

    it("because its pool serves another one names both lines", function()
      local before, s, t, p = cg.current_stream(), cg.stream(), cg.stream(), cg.pool()
      local a, b = cg.graph { pool = p }, cg.graph { pool = p }
      a:capture_begin { stream = s }
      local first = device.line(-1)
      local e, text = device.fails(function() b:capture_begin { stream = t } end)
      assert.equal("CGL_ERROR_CAPTURE_STATE", e.name)
      assert.equal(device.line(-2), e.where)
      assert.is_truthy(text:find("begun at " .. first, 1, true), text)
      assert.matches("two captures into one pool", text)
      s:use(function() cg.zeros("float", 4) end)
      a:capture_end()
      b:capture_begin { stream = t }
      t:use(function() cg.zeros("float", 4) end)
      b:capture_end()
      a:replay()
      b:replay()
      intact(before, s, t)
    end)
  end)

  describe("by a call that the driver alone could refuse", function()
    it("names the last line that was fine when the call was not its own", function()
      local before, s, x = cg.current_stream(), cg.stream(), cg.zeros("float", 1)
      local same, fine = cg.stream_from(s:handle()), nil
      local e, text = device.fails(function()
        cg.capture(function()
          x:fill(1) fine = device.line()
          assert.is_false((pcall(same.synchronize, same)))
        end, { stream = s, capture_error_mode = "relaxed" })
      end)
      assert.equal("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", e.name)
      assert.is_truthy(text:find("outside cgraphlua, after " .. fine, 1, true), text)
      intact(before, s)
      -- An operation that comes to it says the same, at its own line.
      local late
      e, text = device.fails(function()
        cg.capture(function()
          x:fill(1) fine = device.line()
          assert.is_false((pcall(same.synchronize, same)))
          late = device.line() x:fill(2)
        end, { stream = s, capture_error_mode = "relaxed" })
      end)
      assert.equal(late, e.where)
      assert.equal("buffer:fill", e.operation)
      assert.is_truthy(text:find("outside cgraphlua, after " .. fine, 1, true), text)
      assert.matches("^graph:capture_abandon: .*CUDA_ERROR_STREAM_CAPTURE_INVALIDATED 901", e.also)
      assert.matches("\n  then: graph:capture_abandon", text)
      intact(before, s)
    end)

    it("shows that call's failure first, and the end's after it", function()
      local out = child [[
        local ok, e = pcall(cg.capture, function()
          cg.debug.fault(1, 2)
          pcall(x.fill, x, 1) LINE = debug.getinfo(1, "l").currentline
          pcall(same.synchronize, same) -- now the driver is against it too
        end, { stream = s, capture_error_mode = "relaxed" })
        print(ok, e.name, e.code, e.operation, e.where:match "%d+$" == tostring(LINE))
        print(e.message:match "cuMemset", #e.hint > 0)
        print(e.also)
        whole()
      ]]
      assert.equal("false\tCUDA_ERROR_OUT_OF_MEMORY\t2\tbuffer:fill\ttrue\n" ..
        "cuMemset\ttrue\n" ..
        "graph:capture_end: the call broke the capture " ..
        "[CUDA_ERROR_STREAM_CAPTURE_INVALIDATED 901]\nalive\t0\n", out)
    end)

    it("shows the first of several", function()
      local out = child [[
        local line
        local ok, e = pcall(cg.capture, function()
          cg.debug.fault(1, 2)
          pcall(x.fill, x, 1) line = debug.getinfo(1, "l").currentline
          cg.debug.fault(1, 700)
          pcall(x.fill, x, 2)
          pcall(same.synchronize, same)
        end, { stream = s, capture_error_mode = "relaxed" })
        print(ok, e.name, e.where:match "%d+$" == tostring(line))
        whole()
      ]]
      assert.equal("false\tCUDA_ERROR_OUT_OF_MEMORY\ttrue\nalive\t0\n", out)
    end)

    it("says nothing of what broke the graph's capture before", function()
      local out = child [[
        local g = cg.graph { capture_error_mode = "relaxed" }
        pcall(g.capture, g, function()
          cg.debug.fault(1, 2)
          pcall(x.fill, x, 1)
          pcall(same.synchronize, same)
        end, { stream = s })
        local ok, e = pcall(g.capture, g, function()
          x:fill(1)
          pcall(same.synchronize, same)
        end, { stream = s })
        print(ok, e.name, e.message:match "outside cgraphlua")
        g = nil
        whole()
      ]]
      assert.equal("false\tCUDA_ERROR_STREAM_CAPTURE_INVALIDATED\toutside cgraphlua\nalive\t0\n",
        out)
    end)

    it("names it in an operation that comes later", function()
      local out = child [[
        local ok, e = pcall(cg.capture, function()
          cg.debug.fault(1, 2)
          pcall(x.fill, x, 1) LINE = debug.getinfo(1, "l").currentline
          pcall(same.synchronize, same)
          x:fill(2)
        end, { stream = s, capture_error_mode = "relaxed" })
        print(ok, e.name, e.message:match "broken by buffer:fill at .*:(%d+)" == tostring(LINE),
          e.where:match "%d+$" == tostring(LINE + 2))
        whole()
      ]]
      assert.equal("false\tCUDA_ERROR_STREAM_CAPTURE_INVALIDATED\ttrue\ttrue\nalive\t0\n", out)
    end)
  end)

  describe("and whose end fails too", function()
    it("hangs that on an error object, logs it beside any other value", function()
      local out = child [[
        local e = select(2, pcall(function() cg.buffer("float", 2 ^ 45) end))
        for _, value in ipairs { e, e, "text", { also = "mine" } } do
          local ok, seen = pcall(cg.capture, function()
            x:fill(1)
            cg.debug.fault(1, 999) -- the end of the capture
            error(value, 0)
          end, { stream = s })
          print(ok, rawequal(seen, value), type(seen) == "table" and seen.also)
        end
        e = nil
        whole()
      ]]
      local text = "graph:capture_abandon: unknown error (cuStreamEndCapture) " ..
        "[CUDA_ERROR_UNKNOWN 999]"
      assert.equal("false\ttrue\t" .. text .. "\n" ..
        "false\ttrue\t" .. text .. "; " .. text .. "\n" ..
        "log: " .. text .. "\nfalse\ttrue\tfalse\n" ..
        "log: " .. text .. "\nfalse\ttrue\tmine\nalive\t0\n", out)
    end)

    it("at the end itself or at instantiation leaves the graph empty", function()
      local out = child [[
        for k, entry in ipairs { "cuStreamEndCapture", "cuGraphInstantiateWithParams" } do
          local g, line = cg.graph()
          for nth = 1, 20 do
            local ok, e = pcall(g.capture, g, function()
              x:fill(1)
              cg.debug.fault(nth, 2)
            end, { stream = s })
            local _, hit = cg.debug.fault_count()
            cg.debug.fault(0)
            if ok then g:reset() end
            if hit == entry then
              print(entry, ok, e.name, e.message:match(entry) == entry, #e.where > 0, e.also,
                g:is_capturing(), tostring(g):match "nothing captured")
              break
            end
          end
          g:capture(function() x:fill(2) end)
          g:replay()
          assert(x:download()[1] == 2)
        end
        whole()
      ]]
      local expected = {}
      for i, entry in ipairs { "cuStreamEndCapture", "cuGraphInstantiateWithParams" } do
        expected[i] = entry .. "\tfalse\tCUDA_ERROR_OUT_OF_MEMORY\ttrue\ttrue\t\tfalse\t" ..
          "nothing captured\n"
      end
      assert.equal(table.concat(expected) .. "alive\t0\n", out)
    end)
  end)
end)
