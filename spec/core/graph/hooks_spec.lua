-- Hooks along a graph's life, destroy callbacks, retained values.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips
local logged = device.logged

local log

-- A function that notes its name.
local function note(name)
  return function() log[#log + 1] = name end
end

local function adder(opts)
  local add, x = device.kernel "add", cg.zeros("float", 4)
  local g = cg.graph(opts)
  return g, x, function() add:launch(1, 32, x, 1, 4) end
end

describe("a graph's hooks", function()
  before_each(function() log = {} end)
  teardown(device.nothing_alive)

  it("run at their points, in the order they were registered", function()
    local g, x, body = adder()
    g:register_replay_end_hook(note "replay end")
    g:register_replay_start_hook(note "replay start")
    g:register_replay_start_hook(note "replay start again")
    g:register_post_instantiate_hook(note "instantiate")
    g:register_capture_end_hook(note "capture end")
    g:register_capture_start_hook(note "capture start")
    g:capture(function()
      note "body" ()
      body()
    end)
    assert.same({ "capture start", "body", "capture end", "instantiate" }, log)
    log = {}
    g:replay(2)
    local once = { "replay start", "replay start again", "replay end" }
    assert.same({ once[1], once[2], once[3], once[1], once[2], once[3] }, log)
    log = {}
    g:replay(0)
    assert.same({}, log)
    assert.equal(2, x:download()[1])
  end)

  it("run with capture_begin and capture_end, and stay through a reset", function()
    local g, x, body = adder { keep_graph = true }
    local s = cg.stream()
    g:register_capture_start_hook(note "start")
    g:register_capture_end_hook(note "end")
    g:register_post_instantiate_hook(note "instantiate")
    for _ = 1, 2 do
      s:use(function()
        g:capture_begin()
        body()
        g:capture_end()
      end)
      assert.same({ "start", "end" }, log)
      g:instantiate()
      g:replay()
      assert.same({ "start", "end", "instantiate" }, log)
      g:instantiate()
      assert.equal(4, #log)
      cg.synchronize()
      g:reset()
      log = {}
    end
    assert.equal(2, x:download()[1])
  end)

  it("get the graph", function()
    local g, _, body = adder()
    local seen
    for _, method in ipairs { "register_capture_start_hook", "register_capture_end_hook",
      "register_post_instantiate_hook", "register_replay_start_hook",
      "register_replay_end_hook" } do
      g[method](g, function(...) seen = { select("#", ...), (...) } end)
      if not method:find "replay" then
        g:reset()
        g:capture(body)
      end
      g:replay()
      assert.same({ 1, g }, seen)
      seen = nil
    end
  end)

  it("at the start of a capture issue into it", function()
    local g, x, body = adder()
    local s = cg.stream()
    g:register_capture_start_hook(function()
      assert.equal(s, cg.current_stream())
      x:fill(10)
    end)
    g:capture(body, { stream = s })
    assert.equal(2, #g:nodes())
    g:replay(3)
    assert.equal(11, x:download()[1])
  end)

  it("at the end of a capture see the template, kept or not", function()
    for _, keep in ipairs { false, true } do
      local g, _, body = adder { keep_graph = keep }
      g:register_capture_end_hook(function()
        assert.equal("userdata", type(g:raw_cuda_graph()))
        assert.equal(1, #g:nodes())
        raises("CGL_ERROR_NOT_CAPTURED", function() g:raw_cuda_graph_exec() end)
        note "seen" ()
      end)
      g:capture(body)
      if not keep then
        raises("CGL_ERROR_CAPTURE_STATE", function() g:raw_cuda_graph() end)
      end
    end
    assert.same({ "seen", "seen" }, log)
  end)

  it("after an instantiation and before a replay see the executable", function()
    local g, _, body = adder { keep_graph = true }
    local execs = {}
    local function see() execs[#execs + 1] = g:raw_cuda_graph_exec() end
    g:register_post_instantiate_hook(see)
    g:register_replay_start_hook(see)
    g:capture(body)
    assert.equal(0, #execs)
    g:replay()
    assert.equal(2, #execs)
    assert.equal(execs[1], execs[2])
  end)

  it("are removed by their handle, once", function()
    local g, _, body = adder()
    g:capture(body)
    local a = g:register_replay_start_hook(note "a")
    local b = g:register_replay_start_hook(note "b")
    g:register_replay_end_hook(note "c")
    g:replay()
    assert.is_true(a:remove())
    assert.is_false(a:remove())
    g:replay()
    assert.same({ "a", "b", "c", "b", "c" }, log)
    assert.is_true(b:remove())
    g:release()
    assert.is_false(b:remove())
  end)

  it("may remove themselves and add others while they run", function()
    local g, x, body = adder()
    g:capture(body)
    local own
    own = g:register_replay_start_hook(function()
      note "once" ()
      own:remove()
      g:register_replay_start_hook(note "later")
    end)
    g:register_replay_start_hook(note "always")
    g:replay()
    assert.same({ "once", "always" }, log)
    log = {}
    g:replay()
    assert.same({ "always", "later" }, log)
    assert.equal(2, x:download()[1])
  end)

  describe("that fail", function()
    it("at the start abort the launch, without an end", function()
      local g, x, body = adder()
      g:capture(body)
      local own = { "mine" }
      g:register_replay_start_hook(note "first")
      local bad = g:register_replay_start_hook(function() error(own) end)
      g:register_replay_start_hook(note "never")
      g:register_replay_end_hook(note "never")
      local ok, e = pcall(g.replay, g, 5)
      assert.is_false(ok)
      assert.equal(own, e)
      assert.same({ "first" }, log)
      assert.equal(0, x:download()[1])
      bad:remove()
      g:replay()
      assert.equal(1, x:download()[1])
    end)

    it("at the end raise after the launch, and all others run", function()
      local g, x, body = adder()
      g:capture(body)
      g:register_replay_end_hook(function() error("at the end", 0) end)
      g:register_replay_end_hook(note "second")
      g:register_replay_end_hook(function() error("third", 0) end)
      local ok, e = pcall(g.replay, g)
      assert.is_false(ok)
      assert.equal("at the end", e)
      assert.same({ "second" }, log)
      assert.equal(1, x:download()[1])
    end)

    it("at the end do not hide why the launch failed", function()
      local status, out, err = device.child([[
        cg.on_log(nil)
        local x = cg.zeros("float", 4)
        local g = cg.capture(function() x:fill(1) end)
        g:replay()
        g:register_replay_start_hook(function()
          x:fill(0)
          cg.debug.fault(1, 719)
        end)
        g:register_replay_end_hook(function()
          pcall(cg.buffer, "float", 2 ^ 45)
        end)
        local line = debug.getinfo(1, "l").currentline + 1
        local ok, e = pcall(function() g:replay() end)
        cg.debug.fault(0)
        print(ok, e.name, e.operation, e.message:match "cuGraphLaunch",
          e.where:match "%d+$" == tostring(line))]], "CGRAPHLUA_FAULT=1")
      assert.equal("", err)
      assert.equal(0, status)
      assert.equal("false\tCUDA_ERROR_LAUNCH_FAILED\tgraph:replay\tcuGraphLaunch\ttrue\n", out)
    end)

    it("at the start of a capture abandon it", function()
      local g, x, body = adder()
      local bad = g:register_capture_start_hook(function()
        x:fill(1)
        error "no"
      end)
      local before = cg.current_stream()
      assert.matches("no", (device.fails(g.capture, g, note "body")))
      assert.same({}, log)
      assert.is_false(g:is_capturing())
      assert.equal(before, cg.current_stream())
      assert.is_false(cg.is_current_stream_capturing())
      bad:remove()
      g:capture(body)
      g:replay()
      assert.equal(1, x:download()[1])
    end)

    it("at the end of a capture, or at an instantiation, leave nothing captured", function()
      for _, method in ipairs { "register_capture_end_hook", "register_post_instantiate_hook" } do
        local g, x, body = adder()
        local bad = g[method](g, function() cg.graph():replay() end)
        raises("CGL_ERROR_NOT_CAPTURED", function() g:capture(body) end)
        raises("CGL_ERROR_NOT_CAPTURED", function() g:replay() end)
        bad:remove()
        g:capture(body)
        g:replay()
        assert.equal(1, x:download()[1])
      end
    end)

    it("at an instantiation by hand leave the template to try again", function()
      local g, x, body = adder { keep_graph = true }
      g:capture(body)
      local bad = g:register_post_instantiate_hook(function() error "no" end)
      for _, method in ipairs { g.instantiate, g.replay } do
        local _, text = device.fails(method, g)
        assert.matches(": no$", text)
      end
      raises("CGL_ERROR_NOT_CAPTURED", function() g:raw_cuda_graph_exec() end)
      bad:remove()
      g:replay()
      assert.equal(1, x:download()[1])
    end)

    it("by yielding are errors like others", function()
      local g, x, body = adder()
      g:capture(body)
      g:register_replay_start_hook(coroutine.yield)
      local thread = coroutine.create(function() g:replay() end)
      local ok, e = coroutine.resume(thread)
      assert.is_false(ok)
      assert.matches("yield", e)
      assert.equal(0, x:download()[1])
    end)
  end)

  it("that replay their own graph end in an error, not in a crash", function()
    local g, x, body = adder()
    g:capture(body)
    g:register_replay_start_hook(function() g:replay() end)
    assert.matches("more than 100 deep", (device.fails(g.replay, g)))
    assert.equal(0, x:download()[1])
  end)

  it("that reset or release their graph leave a clear error", function()
    local g, _, body = adder()
    g:capture(body)
    g:register_replay_start_hook(function() g:reset() end)
    raises("CGL_ERROR_NOT_CAPTURED", function() g:replay() end)
    -- What a capture and a replay raise when the hook ends their graph.
    local gone, state, none = "CGL_ERROR_RELEASED", "CGL_ERROR_CAPTURE_STATE",
      "CGL_ERROR_NOT_CAPTURED"
    for method, names in pairs {
      register_capture_start_hook = { reset = state, release = gone },
      register_capture_end_hook = { reset = state, release = gone },
      register_post_instantiate_hook = { reset = none, release = gone },
      register_replay_start_hook = { reset = none },
      register_replay_end_hook = { reset = none },
    } do
      for _, ending in ipairs { "reset", "release" } do
        local h, _, again = adder()
        h[method](h, function() h[ending](h) end)
        local function both()
          h:capture(again)
          h:replay(2)
        end
        if names[ending] then
          raises(names[ending], both)
        else
          both()
        end
        assert.is_false(cg.is_current_stream_capturing())
      end
    end
  end)

  it("run for a replay inside a capture, and may replay other graphs", function()
    local inner, x, body = adder()
    inner:capture(body)
    local other, y, more = adder()
    other:capture(more)
    inner:register_replay_start_hook(function() other:replay() end)
    local outer = cg.capture(function() inner:replay(2) end)
    assert.equal(4, #outer:nodes())
    outer:replay()
    assert.equal(2, x:download()[1])
    assert.equal(2, y:download()[1])
  end)

  it("refuse what is no function, and say which graph was released", function()
    local g = cg.graph()
    slips(function() g:register_replay_start_hook() end, "function expected")
    slips(function() g:register_destroy_callback(5) end, "function expected")
    slips(function() g:retain_object() end, "a value to keep")
    slips(function() g:retain_object({}, "yes") end, "synchronize")
    slips(function() g:register_replay_end_hook(print).remove({}) end, "cgraphlua.hook expected")
    local hook = g:register_replay_end_hook(print)
    local function says(pattern, fn)
      local _, text = device.fails(fn)
      assert.matches("^[^\n]*hooks_spec.lua:%d+: " .. pattern .. "$", text)
    end
    for _, handle in ipairs { hook, g:register_destroy_callback(print), g:retain_object {} } do
      says("a hook has no method 'remov'; did you mean 'remove'%?", function() handle:remov() end)
      says("a hook has no method 'something_else'", function() return handle.something_else end)
      says("a hook cannot be indexed with a number", function() return handle[3] end)
    end
    assert.is_true(hook:remove())
    g:release()
    raises("CGL_ERROR_RELEASED", function() g:register_replay_start_hook(print) end)
    raises("CGL_ERROR_RELEASED", function() g:retain_object {} end)
  end)
end)

describe("what waits for a graph's end", function()
  before_each(function() log = {} end)
  teardown(device.nothing_alive)

  it("is called once, in order, on reset, on release and on collection", function()
    for _, ending in ipairs { "reset", "release", "collect" } do
      local g, _, body = adder()
      g:capture(body)
      g:replay()
      for i = 1, 3 do g:register_destroy_callback(note(i)) end
      assert.same({}, log)
      if ending == "reset" then
        g:reset()
        assert.same({ 1, 2, 3 }, log)
        g:reset()
        g:release()
      elseif ending == "release" then
        g:release()
        assert.same({ 1, 2, 3 }, log)
        g:release()
      end
      g, body = nil, nil -- luacheck: ignore
      collectgarbage()
      collectgarbage()
      assert.same({ 1, 2, 3 }, log)
      log = {}
    end
  end)

  it("belongs to one capture: the next one has its own", function()
    local g, _, body = adder()
    g:capture(body)
    g:register_destroy_callback(note "first")
    g:reset()
    g:capture(body)
    g:register_destroy_callback(note "second")
    g:reset()
    assert.same({ "first", "second" }, log)
    g:register_destroy_callback(note "without a capture")
    g:reset()
    assert.equal(3, #log)
  end)

  it("is called once when a graph that was never captured is reset, also from inside", function()
    local g, calls = cg.graph(), 0
    g:register_destroy_callback(function()
      calls = calls + 1
      if calls < 3 then g:reset() end
    end)
    g:reset()
    assert.equal(1, calls)
    g:reset()
    assert.equal(1, calls)
  end)

  it("goes on when a callback fails, and says so through the log", function()
    local g = cg.graph()
    g:register_destroy_callback(note(1))
    g:register_destroy_callback(function() error "broken" end)
    g:register_destroy_callback(function() cg.graph():replay() end)
    g:register_destroy_callback(coroutine.yield)
    g:register_destroy_callback(note(2))
    local said = logged(function() g:reset() end)
    assert.same({ 1, 2 }, log)
    assert.matches("a destroy callback failed: .*broken", said)
    assert.matches("never captured", said)
  end)

  it("sees a graph that is released, and registers nothing more on it", function()
    for _, ending in ipairs { "release", "collect" } do
      do
        local g = cg.graph()
        g:register_destroy_callback(function()
          note(tostring(g)) ()
          g:register_destroy_callback(note "never")
        end)
        g:register_destroy_callback(note "last")
        if ending == "release" then g:release() end
      end
      collectgarbage()
      collectgarbage()
      assert.same({ "cgraphlua.graph (released)", "last" }, log)
      log = {}
    end
    local g = cg.graph()
    g:register_destroy_callback(function() g:register_destroy_callback(note "next") end)
    g:reset()
    assert.same({}, log)
    g:reset()
    assert.same({ "next" }, log)
  end)

  it("is removed by its handle", function()
    local g = cg.graph()
    local kept = setmetatable({ {} }, { __mode = "v" })
    local one = g:register_destroy_callback(note(1))
    g:register_destroy_callback(note(2))
    local two = g:retain_object(kept[1])
    assert.is_true(one:remove())
    assert.is_false(one:remove())
    collectgarbage()
    assert.is_not_nil(kept[1])
    assert.is_true(two:remove())
    collectgarbage()
    assert.is_nil(kept[1])
    g:reset()
    assert.same({ 2 }, log)
    assert.is_false(two:remove())
  end)

  it("keeps a value until the graph's capture goes", function()
    for _, ending in ipairs { "reset", "release" } do
      local g, _, body = adder()
      g:capture(body)
      local kept = setmetatable({ {}, {} }, { __mode = "v" })
      g:retain_object(kept[1])
      g:retain_object(kept[2], true)
      collectgarbage()
      assert.is_not_nil(kept[1])
      assert.is_not_nil(kept[2])
      g:replay()
      g[ending](g)
      collectgarbage()
      assert.is_nil(kept[1])
      assert.is_nil(kept[2])
    end
  end)

  it("waits for the device first when asked to", function()
    local x, spin = cg.zeros("float", 1), device.kernel "spin"
    local g = cg.capture(function() spin:launch(1, 1, x, 3000000) end)
    local done = cg.event { timing = false }
    local states = {}
    g:register_destroy_callback(function() states[1] = done:query() end, true)
    g:replay()
    done:record()
    g:reset()
    assert.same({ true }, states)
  end)

  it("may hold its own graph: the cycle is collected", function()
    local weak = setmetatable({}, { __mode = "k" })
    do
      local g, _, body = adder()
      g:capture(body)
      g:register_replay_start_hook(function() return g end)
      g:retain_object { g }
      g:register_destroy_callback(function()
        log[#log + 1] = tostring(g):match "cgraphlua.graph"
      end)
      g:replay()
      weak[g] = true
    end
    cg.synchronize()
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(weak))
    assert.same({ "cgraphlua.graph" }, log)
  end)

  it("of a graph collected inside a capture is put off until the capture has ended", function()
    local x = cg.zeros("float", 4)
    local function leave()
      local g = cg.graph()
      g:register_destroy_callback(function()
        log[#log + 1] = tostring(cg.is_current_stream_capturing())
        x:fill(7)
      end)
      g:register_destroy_callback(note "last")
    end
    local g = cg.capture(function()
      x:fill(1)
      leave()
      collectgarbage()
      collectgarbage()
      x:fill(2)
    end)
    assert.same({ "false", "last" }, log)
    assert.equal(2, #g:nodes())
    assert.equal(7, x:download()[1])
    log = {}
    local _, text = device.fails(cg.capture, function()
      leave()
      collectgarbage()
      collectgarbage()
      error "no"
    end)
    assert.matches(": no$", text)
    assert.same({ "false", "last" }, log)
  end)

  it("that wants to wait is put off when the script ends a graph inside a capture", function()
    local g = cg.graph()
    g:register_destroy_callback(note "at once")
    g:register_destroy_callback(note "waited", true)
    g:register_destroy_callback(note "after")
    cg.capture(function()
      cg.zeros("float", 1)
      g:reset()
      assert.same({ "at once" }, log)
    end)
    assert.same({ "at once", "waited", "after" }, log)
  end)

  it("is called when the program ends", function()
    local status, out, err = device.child [[
      local g = cg.capture(function() cg.zeros("float", 4) end)
      g:register_destroy_callback(function() print "first" end)
      g:register_destroy_callback(function() print(tostring(g)) end)
      g:register_destroy_callback(function() error "swallowed" end)
      keep = g
      g:replay()
    ]]
    assert.equal(0, status)
    assert.matches("^first\ncgraphlua.graph", out)
    assert.matches("cgraphlua: graph: a destroy callback failed: [^\n]*swallowed\n$", err)
  end)

  it("are added, called and removed by the ten thousand, in any order", function()
    local n, x = 50000, cg.zeros("float", 1)
    local g = cg.capture(function() x:fill(1) end)
    local calls, hooks = {}, {}
    for i = 1, n do
      hooks[i] = g:register_replay_start_hook(function() calls[#calls + 1] = i end)
    end
    g:replay()
    assert.equal(n, #calls)
    for i = n, 4, -1 do assert.is_true(hooks[i]:remove()) end
    assert.is_true(hooks[2]:remove())
    assert.is_false(hooks[2]:remove())
    calls = {}
    g:replay()
    assert.same({ 1, 3 }, calls)
    for i = 1, n do
      hooks[i] = g:register_destroy_callback(function() calls[#calls + 1] = i end)
    end
    for i = 1, n do
      if i % 10000 ~= 0 then assert.is_true(hooks[i]:remove()) end
    end
    assert.is_false(hooks[1]:remove())
    assert.is_true(hooks[20000]:remove())
    g:reset()
    assert.same({ 1, 3, 10000, 30000, 40000, 50000 }, calls)
  end)
end)
