local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local program = device.program
local raises, slips = device.raises, device.slips
local logged, adder = device.logged, device.adder

local modes = { "default", "global", "thread_local", "relaxed" }

describe("graph", function()
  teardown(device.nothing_alive)

  describe("capture", function()
    it("runs nothing, and replay runs all of it", function()
      local g, x = adder()
      assert.same({ 0, 0, 0, 0 }, x:download())
      g:replay()
      g:replay(9)
      g:replay(0)
      assert.same({ 10, 10, 10, 10 }, x:download())
    end)

    it("works in every mode", function()
      for _, mode in ipairs(modes) do
        local g, x = adder { capture_error_mode = mode }
        g:replay(2)
        assert.equal(2, x:download()[1])
        local h = cg.graph()
        h:capture(function() x:fill(9) end, { capture_error_mode = mode })
        h:replay()
        assert.equal(9, x:download()[1])
      end
    end)

    it("returns the graph and what the body returned", function()
      local g, a, b = cg.capture(function() return cg.zeros("float", 2), "two" end)
      assert.matches("^cgraphlua.graph 0x", tostring(g))
      g:replay()
      assert.same({ 0, 0 }, a:download())
      assert.equal("two", b)
      local h = cg.graph()
      local same, c = h:capture(function() return 5 end)
      assert.equal(h, same)
      assert.equal(5, c)
    end)

    it("uses a side stream, or the one given, and puts the current one back", function()
      local before, s = cg.current_stream(), cg.stream()
      cg.capture(function()
        assert.not_equal(before, cg.current_stream())
        assert.is_true(cg.is_current_stream_capturing())
      end)
      cg.capture(function() assert.equal(s, cg.current_stream()) end, { stream = s })
      assert.equal(before, cg.current_stream())
      assert.is_false(cg.is_current_stream_capturing())
    end)

    it("restores everything when the body raises, and its own error is seen", function()
      local before, own = cg.current_stream(), { "mine" }
      local g = cg.graph()
      local x, add = cg.zeros("float", 4), device.kernel "add"
      for _ = 1, 3 do
        local ok, e = pcall(g.capture, g, function()
          add:launch(1, 32, x, 1, 4)
          error(own)
        end)
        assert.is_false(ok)
        assert.equal(own, e)
        assert.equal(before, cg.current_stream())
        assert.is_false(g:is_capturing())
        cg.synchronize()
      end
      g:capture(function() add:launch(1, 32, x, 1, 4) end)
      g:replay()
      assert.same({ 1, 1, 1, 1 }, x:download())
    end)

    it("does not let a coroutine out", function()
      local co = coroutine.create(function()
        cg.capture(function() coroutine.yield() end)
      end)
      local ok, e = coroutine.resume(co)
      assert.is_false(ok)
      assert.matches("attempt to yield", e)
      assert.is_false(cg.is_current_stream_capturing())
      cg.synchronize()
    end)

    it("works inside a coroutine", function()
      local x = cg.zeros("float", 1)
      local co = coroutine.wrap(function()
        coroutine.yield(cg.capture(function() x:fill(8) end))
      end)
      co():replay()
      assert.same({ 8 }, x:download())
    end)

    it("refuses another one inside, and goes on", function()
      local x, inner = cg.zeros("float", 1), nil
      local g = cg.capture(function()
        x:fill(2)
        inner = raises("CGL_ERROR_CAPTURE_STATE", function() cg.capture(function() end) end,
          "capture inside a capture", "hint: .*replay")
      end)
      assert.equal(device.line(-3), inner.where)
      g:replay()
      assert.same({ 2 }, x:download())
    end)

    it("takes a body and known options only", function()
      slips(function() cg.capture() end, "function expected, got nil")
      slips(function() cg.capture(function() end, { mode = 1 }) end, 'unknown option "mode"')
      slips(function() cg.graph():capture(function() end, { keep_graph = true }) end,
        'unknown option "keep_graph"; the options are pool')
      slips(function() cg.capture(function() end, { capture_error_mode = "strict" }) end,
        "one of default, global, thread_local, relaxed", '"strict"')
      slips(function() cg.capture(function() end, { stream = 5 }) end, "cgraphlua.stream expected")
      slips(function() cg.graph { keep_graph = 1 } end, "keep_graph must be true or false")
      slips(function() cg.graph { check_input_liveness = 1 } end, "check_input_liveness")
    end)

    it("warns that an empty one is empty, and where", function()
      local line
      local text = logged(function()
        cg.capture(function() end) line = device.line()
      end)
      assert.matches("empty", text)
      assert.is_truthy(text:find(line, 1, true), text)
    end)
  end)

  describe("capture_begin and capture_end", function()
    it("capture the current stream", function()
      local g, s, x = cg.graph(), cg.stream(), cg.zeros("float", 1)
      cg.synchronize()
      s:use(function()
        g:capture_begin()
        assert.is_true(g:is_capturing())
        assert.is_true(s:is_capturing())
        assert.matches("%(capturing%)", tostring(g))
        x:fill(3)
        g:capture_end()
      end)
      assert.is_false(g:is_capturing())
      g:replay()
      assert.same({ 3 }, x:download())
    end)

    it("capture the stream they were given", function()
      local g, s, x = cg.graph(), cg.stream(), cg.zeros("float", 1)
      cg.synchronize()
      g:capture_begin { stream = s, capture_error_mode = "relaxed" }
      s:use(function() x:fill(4) end)
      g:capture_end()
      g:replay()
      assert.same({ 4 }, x:download())
    end)

    it("refuse the default stream", function()
      raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function() cg.graph():capture_begin() end,
        "default stream", "hint: .*stream of your own")
    end)

    it("refuse a second begin and name the first", function()
      local g, s = cg.graph(), cg.stream()
      g:capture_begin { stream = s }
      local first = device.line(-1)
      local _, text = device.fails(function() g:capture_begin { stream = cg.stream() } end)
      assert.is_truthy(text:find(first, 1, true), text)
      local other = cg.graph()
      raises("CGL_ERROR_CAPTURE_STATE", function() other:capture_begin { stream = s } end,
        "part of a capture already")
      logged(function() g:capture_end() end)
      raises("CGL_ERROR_CAPTURE_STATE", function() g:capture_begin { stream = s } end,
        "holds a capture already", "hint: reset")
    end)

    it("refuse an end without a begin", function()
      local e = raises("CGL_ERROR_CAPTURE_STATE", function() cg.graph():capture_end() end, "begin")
      assert.equal(device.line(-1), e.where)
    end)

    it("are abandoned when the graph is released", function()
      local g, s, x = cg.graph(), cg.stream(), cg.zeros("float", 1)
      cg.synchronize()
      g:capture_begin { stream = s }
      s:use(function() x:fill(4) end)
      g:release()
      assert.is_false(s:is_capturing())
      s:use(function() x:fill(5) end)
      s:synchronize()
      assert.same({ 5 }, x:download())
    end)
  end)

  describe("broken captures", function()
    it("name a synchronize in the body, at its line, and stay whole", function()
      local x = cg.zeros("float", 1)
      for _, wait in ipairs {
        function() cg.synchronize() end,
        function() cg.current_stream():synchronize() end,
        function() cg.current_stream():query() end,
        function() x:download() end,
        function() x:upload { 1 } end,
      } do
        local g = cg.capture(function()
          x:fill(6)
          local e = raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", wait, "capture", "hint: ")
          local line = debug.getinfo(wait, "S").linedefined
          assert.matches("graph_spec.lua:" .. line .. "$", e.where)
        end)
        x:fill(0)
        g:replay()
        assert.same({ 6 }, x:download())
      end
    end)

    it("raise the synchronize out of the body", function()
      local x = cg.zeros("float", 1)
      local e = raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function()
        cg.capture(function()
          x:fill(1)
          cg.synchronize()
        end)
      end)
      assert.equal(device.line(-3), e.where)
      cg.synchronize()
    end)

    it("name an unjoined fork and where it forked", function()
      local x, side = cg.zeros("float", 1), cg.stream()
      local forked
      raises("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", function()
        cg.capture(function()
          x:fill(1)
          side:wait(cg.current_stream()) forked = device.line()
          side:use(function() x:fill(2) end)
        end)
      end, "forked", "graph_spec", "hint: ")
      local _, text = device.fails(function()
        cg.capture(function()
          side:wait(cg.current_stream()) forked = device.line()
          side:use(function() x:fill(2) end)
        end)
      end)
      assert.is_truthy(text:find(forked, 1, true), text)
      side:synchronize()
      side:use(function() x:fill(3) end)
      side:synchronize()
      assert.same({ 3 }, x:download())
    end)

    it("name no fork that was joined, and none that only waited for itself", function()
      local x, y = cg.zeros("float", 1), cg.zeros("float", 1)
      local joined, lost = cg.stream(), cg.stream()
      local early, late, own = cg.event(), cg.event(), cg.event()
      local joined_at, lost_at
      local _, text = device.fails(function()
        cg.capture(function()
          local main = cg.current_stream()
          joined:wait(main) joined_at = device.line()
          lost:wait(main) lost_at = device.line()
          joined:use(function() x:fill(1) end)
          joined:record(early)
          joined:use(function() x:fill(2) end)
          joined:record(late)
          main:wait(late)
          main:wait(early)
          lost:use(function() y:fill(3) end)
          lost:record(own)
          lost:wait(own)
        end)
      end)
      assert.is_truthy(text:find(lost_at, 1, true), text)
      assert.is_nil(text:find(joined_at, 1, true), text)
    end)

    it("do not stop the same graph from capturing afterwards", function()
      local g, x, side = cg.graph(), cg.zeros("float", 1), cg.stream()
      device.fails(function()
        g:capture(function()
          side:wait(cg.current_stream())
          side:use(function() x:fill(2) end)
        end)
      end)
      g:capture(function() x:fill(7) end)
      g:replay()
      assert.same({ 7 }, x:download())
    end)
  end)

  describe("forks and joins", function()
    it("leave the default stream out, and a capture that it would join whole", function()
      local g, s, x, e = cg.graph(), cg.stream(), cg.zeros("float", 1), cg.event()
      cg.synchronize()
      g:capture_begin { stream = s }
      local begun = device.line(-1)
      s:use(function()
        x:fill(4)
        e:record()
      end)
      for _, wait in ipairs { e, s } do
        local _, text = device.fails(function() cg.default_stream():wait(wait) end)
        assert.matches("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", text)
        assert.is_truthy(text:find("begun at " .. begun, 1, true), text)
      end
      g:capture_end()
      g:replay()
      assert.same({ 4 }, x:download())
    end)

    it("become branches", function()
      local side, x, y = cg.stream(), cg.zeros("float", 1), cg.zeros("float", 1)
      local g = cg.capture(function()
        local main = cg.current_stream()
        x:fill(1)
        side:wait(main)
        side:use(function() y:copy(x) end)
        x:fill(2)
        main:wait(side)
        y:copy(x)
      end)
      g:replay()
      assert.same({ 2 }, y:download())
      local nodes = g:nodes()
      assert.equal(4, #nodes)
      assert.same({}, nodes[1].dependencies)
      assert.same({ 1 }, nodes[2].dependencies)
      assert.same({ 1 }, nodes[3].dependencies)
      local last = nodes[4].dependencies
      table.sort(last)
      assert.same({ 2, 3 }, last)
    end)

    it("work through events", function()
      local side, e, done = cg.stream(), cg.event(), cg.event { timing = false }
      local x = cg.zeros("float", 2)
      local g = cg.capture(function()
        e:record()
        side:wait(e)
        side:use(function()
          x:view(1, 1):fill(1)
          done:record()
        end)
        x:view(2, 1):fill(2)
        cg.current_stream():wait(done)
      end)
      g:replay()
      assert.same({ 1, 2 }, x:download())
    end)
  end)

  describe("replay", function()
    it("refuses a graph that was never captured, or was reset", function()
      local e = raises("CGL_ERROR_NOT_CAPTURED", function() cg.graph():replay() end,
        "graph:replay", "hint: capture")
      assert.equal(device.line(-2), e.where)
      local g = adder()
      g:reset()
      raises("CGL_ERROR_NOT_CAPTURED", function() g:replay() end)
      raises("CGL_ERROR_NOT_CAPTURED", function() g:nodes() end)
    end)

    it("refuses counts that are none", function()
      local g, x = adder()
      slips(function() g:replay(1.5) end, "number of replays must be a whole number", "got 1.5")
      slips(function() g:replay(-1) end, "got %-1")
      slips(function() g:replay(0 / 0) end, "nan")
      slips(function() g:replay("2") end, 'got "2"')
      slips(function() g:replay(2 ^ 60) end, "to 9007199254740992")
      assert.equal(0, x:download()[1])
    end)

    it("in one long loop can be stopped by a hook", function()
      local g, x = adder()
      local replay = g.replay
      debug.sethook(function()
        if debug.getinfo(2, "S").source == "=cgraphlua" then error "enough" end
      end, "", 1)
      local ok, e = pcall(replay, g, 2 ^ 30)
      debug.sethook()
      assert.is_false(ok)
      assert.matches("enough", e)
      local n = x:download()[1]
      assert.is_true(n > 0 and n < 2 ^ 30)
    end)

    it("runs on the current stream", function()
      local g, x = adder()
      local s, y = cg.stream(), cg.zeros("float", 4)
      cg.synchronize()
      s:use(function()
        g:replay(5)
        y:copy(x)
      end)
      s:synchronize()
      assert.same({ 5, 5, 5, 5 }, y:download())
    end)

    it("in a capture becomes a child graph", function()
      local inner, x = adder()
      local outer = cg.capture(function()
        x:fill(100)
        inner:replay(3)
      end)
      inner:release()
      collectgarbage()
      outer:replay()
      assert.equal(103, x:download()[1])
      local nodes = outer:nodes()
      assert.equal(4, #nodes)
      assert.equal("graph", nodes[2].kind)
    end)

    it("of a child graph goes on after the child was reset", function()
      local out, inner = cg.zeros("float", 4), cg.graph()
      local outer
      local scale = device.kernel "scale"
      do
        local input = cg.from({ 1, 2, 3, 4 }, "float")
        inner:capture(function()
          local scratch = cg.buffer("float", 4)
          scale:launch(1, 32, input, scratch, 2, 4)
          scale:launch(1, 32, scratch, out, 5, 4)
        end)
        outer = cg.capture(function() inner:replay() end)
        input:release()
      end
      inner:reset()
      inner:capture(function() out:fill(-1) end)
      collectgarbage()
      collectgarbage()
      local junk = {}
      for i = 1, 20 do junk[i] = cg.full("float", 4, -1) end
      assert.equal(20, #junk)
      outer:replay()
      assert.same({ 10, 20, 30, 40 }, out:download())
      inner:release()
      outer:replay(100)
      outer:release()
      collectgarbage()
      cg.synchronize()
    end)

    it("reads what lives only through the graph", function()
      local out = cg.zeros("float", 4)
      local g
      do
        local kernels = cg.module(device.source)
        local scale = kernels:kernel "scale"
        local input = cg.from({ 1, 2, 3, 4 }, "float")
        g = cg.capture(function() scale:launch(1, 32, input, out, 10, 4) end)
        input:release()
        scale:release()
        kernels:release()
      end
      collectgarbage()
      collectgarbage()
      local junk = {}
      for i = 1, 20 do junk[i] = cg.full("float", 4, -1) end
      assert.equal(20, #junk)
      g:replay()
      assert.same({ 10, 20, 30, 40 }, out:download())
    end)

    it("uses memory that was made in the capture", function()
      local scale, x, out = device.kernel "scale", cg.from({ 1, 2 }, "float"), cg.zeros("float", 2)
      local g = cg.capture(function()
        local y = cg.buffer("float", 2)
        scale:launch(1, 32, x, y, 3, 2)
        scale:launch(1, 32, y, out, 2, 2)
      end)
      collectgarbage()
      for _ = 1, 3 do g:replay() end
      assert.same({ 6, 12 }, out:download())
    end)
  end)

  describe("keep_graph", function()
    it("instantiates by hand, or at the first replay", function()
      local g, x = adder { keep_graph = true }
      raises("CGL_ERROR_NOT_CAPTURED", function() g:raw_cuda_graph_exec() end, "instantiate")
      g:instantiate()
      assert.equal("userdata", type(g:raw_cuda_graph_exec()))
      assert.equal("userdata", type(g:raw_cuda_graph()))
      local first = g:raw_cuda_graph_exec()
      g:instantiate()
      assert.not_equal(first, g:raw_cuda_graph_exec())
      g:replay()
      local h, y = adder { keep_graph = true }
      h:replay()
      assert.equal(x:download()[1], y:download()[1])
    end)

    it("runs after the replays of the executable before it, on any stream", function()
      local late = cg.kernel [[
        extern "C" __global__ void late(volatile int *x, int rounds) {
          const int before = *x;
          float v = before;
          for (int i = 0; i < rounds; i++) v = v * 0.5f + 1;
          *x = v < 0 ? 0 : before + 1;
        }]]
      local streams = { cg.stream(), cg.stream(), cg.stream() }
      for _, options in ipairs { { keep_graph = true }, { keep_graph = true, unroll = true } } do
        local x = cg.zeros("int32", 1)
        local g = cg.capture(function() late:launch(1, 1, x, 3000000) end, options)
        for _, s in ipairs(streams) do
          g:instantiate()
          s:use(function() g:replay(2) end)
        end
        for _, s in ipairs(streams) do s:synchronize() end
        assert.equal(6, x:download()[1])
      end
    end)

    it("is needed to instantiate and for the template", function()
      local g = adder()
      raises("CGL_ERROR_CAPTURE_STATE", function() g:instantiate() end, "keep_graph = true")
      raises("CGL_ERROR_CAPTURE_STATE", function() g:raw_cuda_graph() end, "keep_graph = true")
      assert.equal("userdata", type(g:raw_cuda_graph_exec()))
      raises("CGL_ERROR_NOT_CAPTURED", function() cg.graph():instantiate() end)
      raises("CGL_ERROR_NOT_CAPTURED", function() cg.graph():raw_cuda_graph() end)
    end)
  end)

  it("is instantiated in the capture of another, which stays whole", function()
    local kept, x = adder { keep_graph = true }
    local y = cg.zeros("float", 1)
    local g = cg.capture(function()
      y:fill(3)
      kept:instantiate()
      y:fill(4)
    end)
    g:replay()
    kept:replay(2)
    assert.same({ 4 }, y:download())
    assert.equal(2, x:download()[1])
  end)

  describe("reset", function()
    it("lets the graph capture again, and again", function()
      local g, x = adder()
      for i = 1, 5 do
        g:reset()
        g:reset()
        g:capture(function() x:fill(i) end)
        g:replay()
        assert.equal(i, x:download()[1])
      end
    end)

    it("is needed before another capture", function()
      local g = adder()
      raises("CGL_ERROR_CAPTURE_STATE", function() g:capture(function() end) end,
        "holds a capture already", "hint: reset")
      raises("CGL_ERROR_CAPTURE_STATE", function()
        g:capture(function() end, { capture_error_mode = "global" })
      end, "holds a capture already")
    end)
  end)

  describe("nodes", function()
    it("say what, where and after what", function()
      local add, x, y = device.kernel "add", cg.zeros("float", 40), cg.zeros("float", 40)
      local line
      local g = cg.capture(function()
        x:fill(1)
        add:launch({ 2, 1 }, 32, x, 1, 40) line = debug.getinfo(1, "l").currentline
        y:copy(x)
      end)
      local nodes = g:nodes()
      assert.equal(3, #nodes)
      assert.equal("memset kernel memcpy", device.kinds(g))
      assert.equal("add", nodes[2].name)
      assert.same({ 2, 1, 1 }, nodes[2].grid)
      assert.same({ 32, 1, 1 }, nodes[2].block)
      assert.is_nil(nodes[1].grid)
      assert.equal(line, nodes[2].line)
      assert.equal(line - 1, nodes[1].line)
      assert.matches("graph_spec.lua$", nodes[2].file)
      assert.same({ 2 }, nodes[3].dependencies)
      assert.matches("%(3 nodes%)", tostring(g))
    end)

    it("are drawn for Graphviz at any time", function()
      local x = cg.zeros("float", 4)
      local g = cg.capture(function() device.bump(x) x:fill(0) end)
      local folder = program.folder()
      g:enable_debug_mode()
      g:debug_dump(folder .. "/g.dot")
      local text = program.read(folder .. "/g.dot")
      assert.matches("^digraph", text)
      assert.matches("add", text)
      assert.matches("graph_spec.lua:", text)
      assert.matches("device.lua:", text)
      local e = raises("CGL_ERROR_SYSTEM", function() g:debug_dump(folder .. "/no/g.dot") end,
        "g.dot")
      assert.equal(device.line(-2), e.where)
      slips(function() g:debug_dump() end, "the path must be a string")
      raises("CGL_ERROR_NOT_CAPTURED", function() cg.graph():debug_dump(folder .. "/h.dot") end)
      program.remove(folder)
    end)
  end)

  it("that touches nothing is replayed in captures and changed like any other", function()
    local x, pool = cg.zeros("float", 4), cg.pool()
    local k = cg.kernel 'extern "C" __global__ void k() {}'
    for _, opts in ipairs { {}, { pool = pool }, { keep_graph = true }, { annotations = true } } do
      local messages = device.logged(function()
        local empty = cg.capture(function() end, opts)
        local around = cg.capture(function() empty:replay(2) end, opts)
        local beside = cg.capture(function()
          around:replay()
          x:fill(3)
          empty:replay()
        end, opts)
        beside:replay(2)
        local none = cg.capture(function() k:launch(1, 1) end, opts)
        none:set_params(1, { grid = 2 })
        none:replay()
        assert.equal(2, none:nodes()[1].grid[1])
      end)
      assert.matches("empty", messages)
      assert.same({ 3, 3, 3, 3 }, x:download())
    end
  end)

  it("says that it was released", function()
    local g = adder()
    g:replay()
    g:release()
    g:release()
    raises("CGL_ERROR_RELEASED", function() g:replay() end,
      "graph:replay", "this graph was released")
    raises("CGL_ERROR_RELEASED", function() g:capture(function() end) end)
    assert.equal("cgraphlua.graph (released)", tostring(g))
    assert.matches("nothing captured", tostring(cg.graph()))
  end)
end)
