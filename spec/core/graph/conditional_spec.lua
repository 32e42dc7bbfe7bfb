-- Branches and loops: the same program outside a capture and in a graph, what
-- bodies take and refuse, their memory, and what graphs with them know.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local fails = device.fails

local source = [[
extern "C" __global__ void add(int *x, int a) { *x += a; }
extern "C" __global__ void sum(int *x, const int *t) { *x += *t; }
extern "C" __global__ void less(int *f, const int *x, int a) { *f = *x < a; }
extern "C" __global__ void put(int *t, int a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[i] = a;
}]]

local module, x, flag, event, external

local function launch(name, ...) module:kernel(name):launch(1, 1, ...) end
local function bump(a) return function() launch("add", x, a) end end
local function put(t, a) module:kernel "put":launch(#t / 1000, 1000, t, a, #t) end
local function value() return x:download()[1] end

-- What a program leaves in x when it starts from 0, outside a capture and as a
-- graph; both must be the same.
local function result(program)
  x:fill(0)
  program()
  local eager = value()
  local g = cg.capture(program)
  x:fill(0)
  g:replay()
  assert.equal(eager, value())
  g:reset()
  return eager
end

describe("a conditional", function()
  setup(function()
    module = cg.module(source)
    x, flag = cg.zeros("int32", 1), cg.zeros("int32", 1)
    event, external = cg.event(), cg.event { external = true }
  end)
  before_each(function()
    x:fill(0)
    flag:fill(1)
  end)
  teardown(function()
    module, x, flag, event, external = nil, nil, nil, nil, nil
    device.nothing_alive()
  end)

  it("when runs one of two functions", function()
    local function both() cg.when(flag, bump(1), bump(10)) end
    assert.equal(1, result(both))
    flag:fill(0)
    assert.equal(10, result(both))
    assert.equal(0, result(function() cg.when(flag, bump(1)) end))
  end)

  it("when takes every integer type, and bool", function()
    for _, type in ipairs { "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                            "uint64" } do
      local f = cg.zeros(type, 1)
      local function both() cg.when(f, bump(1), bump(10)) end
      assert.equal(10, result(both))
      f:fill(type == "bool" and true or 2)
      assert.equal(1, result(both))
    end
  end)

  it("switch counts from 0, and has a default", function()
    for index, wanted in pairs { [0] = 1, [1] = 10, [2] = 100, [-1] = 100, [70000] = 100 } do
      flag:upload { index }
      assert.equal(wanted, result(function() cg.switch(flag, { bump(1), bump(10) }, bump(100)) end))
      assert.equal(wanted % 100, result(function() cg.switch(flag, { bump(1), bump(10) }) end))
    end
  end)

  it("loop looks before each turn, and says how often it turned", function()
    local loop
    local function count(limit, max)
      return function()
        launch("less", flag, x, limit)
        loop = cg.loop(flag, function()
          launch("add", x, 1)
          launch("less", flag, x, limit)
        end, { max = max })
      end
    end
    assert.equal(7, result(count(7)))
    assert.equal(0, result(count(0)))
    assert.equal(0, loop:turns())
    assert.equal(5, result(count(7, 5)))
    local g = cg.capture(count(7, 5))
    assert.equal(0, loop:turns())
    x:fill(0)
    g:replay()
    assert.equal(5, loop:turns())
    assert.is_true(loop:exhausted())
    g:replay()
    assert.equal(2, loop:turns())
    assert.is_false(loop:exhausted())
  end)

  it("times reads its count once, and takes none for a negative one", function()
    local loop
    local function times(n, max)
      flag:upload { n }
      return function()
        loop = cg.times(flag, function()
          bump(1)()
          flag:fill(100)
        end, { max = max })
        flag:fill(n)
      end
    end
    assert.equal(3, result(times(3)))
    assert.is_false(loop:exhausted())
    assert.equal(0, result(times(-2)))
    assert.equal(2, result(times(3, 2)))
    assert.is_true(loop:exhausted())
  end)

  it("turns 2^20 times at most unless it is told otherwise", function()
    local loop
    local g = cg.capture(function() loop = cg.loop(flag, function() end) end)
    g:replay()
    assert.equal(2 ^ 20, loop:turns())
    assert.is_true(loop:exhausted())
  end)

  it("nests at will", function()
    flag:fill(3)
    assert.equal(3 * 3 * 11, result(function()
      cg.times(flag, function()
        cg.times(flag, function()
          cg.when(flag, function()
            bump(1)()
            cg.switch(flag, { bump(1000) }, bump(10))
          end)
        end)
      end)
    end))
  end)

  it("draws new numbers every turn", function()
    local u, three = cg.zeros("float", 8), cg.from({ 3 }, "int32")
    local function program(generator)
      u:uniform(generator)
      cg.times(three, function() u:uniform(generator) end)
      u:uniform(generator)
    end
    local a, b = cg.generator(5), cg.generator(5)
    local g = cg.capture(function() program(a) end)
    for _ = 1, 2 do
      g:replay()
      local captured = u:download()
      program(b)
      assert.same(u:download(), captured)
    end
    assert.equal(10, a:get_offset())
  end)

  it("may replay graphs in a body", function()
    flag:fill(4)
    local inner = cg.capture(function()
      local t = cg.zeros("int32", 1)
      launch("add", t, 5)
      launch("sum", x, t)
    end)
    assert.equal(40, result(function() cg.times(flag, function() inner:replay(2) end) end))
  end)

  it("forks and joins inside a body", function()
    local side, y = cg.stream(), cg.zeros("int32", 1)
    assert.equal(3, result(function()
      cg.when(flag, function()
        local main = cg.current_stream()
        side:wait(main)
        side:use(function() y:fill(2) end)
        bump(1)()
        main:wait(side)
        launch("sum", x, y)
      end)
    end))
  end)

  -- ---- memory ----

  it("keeps memory that is older than a loop's body for the next turn", function()
    flag:fill(3)
    local g = cg.capture(function()
      local t = cg.full("int32", 600000, 5) -- more than a half of a page
      cg.times(flag, function()
        launch("sum", x, t)
        t:release()
        for a = 1, 3 do
          local u = cg.buffer("int32", 600000)
          put(u, 100 * a)
          u:release()
        end
      end)
    end)
    g:replay()
    assert.equal(15, value())
  end)

  local at = {}

  -- A function that fills much memory, gives it back, and notes where it was.
  local function temporary(name)
    return function()
      local t = cg.buffer("int32", 1500000)
      at[name] = t:address()
      put(t, 1)
      t:release()
    end
  end

  it("gives a body no memory of another stream that may run beside it", function()
    local side = cg.stream()
    cg.capture(function()
      local main = cg.current_stream()
      side:wait(main)
      side:use(temporary "side")
      cg.when(flag, temporary "body")
      main:wait(side)
      cg.when(flag, temporary "later")
    end)
    assert.not_equal(at.side, at.body)
    assert.is_true(device.never_reuses or at.later == at.side or at.later == at.body)
  end)

  it("keeps apart what a stream had in one body and has in another", function()
    local side, inner = cg.stream(), cg.stream()
    local function forked(name)
      return function()
        local main = cg.current_stream()
        inner:wait(main)
        inner:use(temporary(name))
        main:wait(inner)
      end
    end
    cg.capture(function()
      local main = cg.current_stream()
      side:wait(main)
      cg.when(flag, forked "one")
      side:use(function() cg.when(flag, forked "two") end)
      main:wait(side)
    end)
    assert.not_equal(at.one, at.two)
  end)

  if not device.never_reuses then
    it("gives the bodies of one branch the same memory", function()
      cg.capture(function()
        cg.when(flag, temporary "yes", temporary "no")
        temporary "after"()
      end)
      assert.equal(at.yes, at.no)
      assert.equal(at.yes, at.after)
    end)
  end

  it("shares a pool with other graphs", function()
    local pool, out = cg.pool()
    local fill = cg.capture(function() out = cg.full("int32", 1, 7) end, { pool = pool })
    local maybe = cg.capture(function()
      cg.when(flag, function() out:fill(9) end)
      launch("sum", x, out)
    end, { pool = pool })
    -- The branch may not be taken: what was there before is needed.
    local e = fails(maybe.replay, maybe)
    assert.equal("CGL_ERROR_ORDER", e.name)
    fill:replay()
    maybe:replay()
    flag:fill(0)
    fill:replay()
    maybe:replay()
    assert.equal(16, value())
  end)

  -- ---- what a graph knows ----

  it("is a kernel and a node with bodies", function()
    local g = cg.capture(function()
      cg.when(flag, function()
        bump(1)()
        cg.times(flag, bump(2))
      end, function() end)
    end)
    local nodes = g:nodes()
    assert.equal("kernel conditional", device.kinds(g))
    assert.equal("when", nodes[2].name)
    assert.same({ 1 }, nodes[2].dependencies)
    local yes, no = unpack(nodes[2].bodies)
    assert.equal(0, #no)
    assert.equal("add times times", yes[1].name .. " " .. yes[2].name .. " " .. yes[3].name)
    assert.same({ 2 }, yes[3].dependencies)
    assert.equal("add", yes[3].bodies[1][1].name)
    assert.is_nil(nodes[1].bodies)
  end)

  it("has its bodies' annotations, and boxes in the picture", function()
    local g = cg.capture(function()
      cg.mark_kernels("outer", function()
        cg.when(flag, function()
          cg.mark_kernels("inner", bump(1))
          bump(2)()
        end, { form = "node" })
      end)
    end, { annotations = true })
    local body = g:nodes()[2].bodies[1]
    assert.equal("inner", body[1].label)
    assert.equal("outer", body[2].label)
    local path = os.tmpname() .. ".dot"
    g:debug_dump(path)
    local text = device.program.read(path)
    os.remove(path)
    assert.truthy(text:find "subgraph clusterb1" and text:find "inner")
    g:clear_annotations()
    assert.is_nil(g:nodes()[2].bodies[1][1].label)
  end)

  it("may write what its bodies write", function()
    local y = cg.zeros("int32", 1)
    local g = cg.capture(function() cg.when(flag, bump(1)) end)
    assert.is_true(g:writes(x))
    assert.is_false(g:writes(flag))
    assert.is_false(g:writes(y))
  end)

  it("knows the inputs of its bodies", function()
    local y = cg.full("int32", 1, 3)
    local g = cg.capture(function() cg.when(flag, function() launch("sum", x, y) end) end,
      { check_input_liveness = true })
    g:replay()
    y:release()
    assert.equal("CGL_ERROR_RELEASED", fails(g.replay, g).name)
  end)

  it("is instantiated again, one executable at a time", function()
    local g = cg.graph { keep_graph = true }
    g:capture(function() cg.when(flag, bump(1)) end)
    for _ = 1, 3 do
      g:instantiate()
      g:replay()
    end
    assert.equal(3, value())
  end)

  it("runs in every replay of a long loop of replays", function()
    local g = cg.capture(function() cg.when(flag, bump(1)) end)
    g:replay(1000)
    assert.equal(1000, value())
  end)

  it("refuses changes of its nodes, and to be a child graph", function()
    local g = cg.capture(function() cg.when(flag, bump(1), { form = "node" }) end)
    for node = 1, 2 do
      local e = fails(g.set_enabled, g, node, false)
      assert.truthy(e.hint:find "stay as they were captured")
      e = fails(g.set_params, g, node, {})
      assert.equal("CGL_ERROR_INVALID_ARGUMENT", e.name)
    end
    local e = fails(cg.capture, function() g:replay() end)
    assert.equal("CGL_ERROR_CAPTURE_STATE", e.name)
    assert.truthy(e.message:find "conditional nodes")
  end)

  -- ---- what is refused ----

  local function refused(name, body, why)
    it("refuses " .. name .. " where it is issued, and leaves the capture whole", function()
      local g = cg.capture(function()
        bump(1)()
        local inner = body(cg.current_stream())
        local e = fails(function() cg.when(flag, inner) end)
        assert.truthy(e.where:find("conditional_spec.lua", 1, true))
        assert.truthy(tostring(e):find(why, 1, true), tostring(e))
        bump(2)()
      end)
      g:replay()
      assert.equal(3, value())
      assert.equal(2, #g:nodes())
    end)
  end

  refused("copies that wait", function() return function() x:upload { 1 } end end, "a capture runs")
  refused("synchronization", function() return function() cg.synchronize() end end,
    "this thread captures")
  refused("external events", function() return function() external:record() end end, "cannot hold")
  refused("waits for external events", function()
    return function() cg.current_stream():wait(external) end
  end, "cannot hold")
  refused("events from outside", function(outer)
    outer:record(event)
    return function() cg.current_stream():wait(event) end
  end, "recorded outside the body")
  refused("joins that leave the body", function(outer)
    return function()
      cg.current_stream():record(event)
      outer:wait(event)
    end
  end, "around a body")
  refused("forks without a join", function()
    local side = cg.stream()
    return function()
      side:wait(cg.current_stream())
      side:use(bump(1))
    end
  end, "never joined")
  refused("work on the stream around", function(outer) return function() outer:use(bump(1)) end end,
    "around a body")
  refused("memory of the stream around", function(outer)
    return function() outer:use(function() cg.buffer("int32", 1) end) end
  end, "around a body")
  refused("captures", function()
    return function() cg.graph():capture_begin { stream = cg.stream() } end
  end, "inside the body")
  refused("a loop's numbers", function()
    return function() cg.loop(flag, function() end):turns() end
  end, "a capture runs")

  it("refuses what is no value, no function or no bound", function()
    for _, bad in ipairs { cg.zeros("float", 1), cg.zeros("int32", 2), cg.zeros("int32", 0) } do
      assert.equal("CGL_ERROR_INVALID_ARGUMENT", fails(cg.when, bad, bump(1)).name)
    end
    for _, call in ipairs {
      { cg.when, 1, bump(1) }, { cg.when, flag }, { cg.when, flag, bump(1), 5 },
      { cg.switch, flag, {} }, { cg.switch, flag, bump(1) }, { cg.switch, flag, { 1 } },
      { cg.loop, flag, bump(1), { max = 0 } }, { cg.loop, flag, bump(1), { most = 1 } },
      { cg.times, flag, nil },
    } do
      local _, text = fails(unpack(call, 1, 4))
      assert.truthy(text:find "bad argument" or text:find "'most'", text)
    end
    for _, call in ipairs { { cg.when, bump(1) }, { cg.switch, { bump(1) } } } do
      local _, text = fails(call[1], flag, call[2], { most = 1 })
      assert.truthy(text:find "bad argument #3" and text:find '"most"', text)
      _, text = fails(call[1], flag, call[2], bump(1), { most = 1 })
      assert.truthy(text:find "bad argument #4", text)
    end
    assert.equal(0, value())
  end)

  it("ends with the capture when a body raises", function()
    local own = {}
    for _, form in ipairs {
      function(f) cg.when(flag, f) end, function(f) cg.when(flag, function() end, f) end,
      function(f) cg.switch(flag, { bump(1) }, f) end, function(f) cg.loop(flag, f) end,
      function(f) cg.times(flag, function() cg.when(flag, f) end) end,
    } do
      local e = fails(cg.capture, function()
        bump(1)()
        form(function()
          local t = cg.zeros("int32", 100)
          launch("sum", x, t)
          error(own)
        end)
      end)
      assert.equal(own, e)
      assert.is_false(cg.is_current_stream_capturing())
    end
    assert.equal(1, result(bump(1)))
  end)

  it("raises in a body outside a capture as it is", function()
    local own = {}
    assert.equal(own, (fails(cg.loop, flag, function() error(own) end)))
  end)

  it("does not yield", function()
    local co = coroutine.wrap(function()
      cg.capture(function() cg.when(flag, coroutine.yield) end)
    end)
    assert.truthy(select(2, fails(co)):find "yield")
    assert.is_false(cg.is_current_stream_capturing())
  end)

  it("outlives a graph that is given up inside", function()
    for _, give_up in ipairs { "reset", "release" } do
      local g = cg.graph()
      fails(g.capture, g, function()
        cg.times(flag, function() cg.when(flag, function() g[give_up](g) end) end)
      end)
      assert.is_false(cg.is_current_stream_capturing())
    end
    assert.equal(1, result(bump(1)))
    local g = cg.graph()
    local e = fails(g.capture, g, function() cg.when(flag, function() g:capture_end() end) end)
    assert.equal("CGL_ERROR_CAPTURE_STATE", e.name)
  end)
end)
