-- Replay loops of small graphs: fewer launches, and nothing else that a script
-- could see.
-- CGRAPHLUA_UNROLL_PROGRAMS sets how many random programs (200),
-- CGRAPHLUA_UNROLL_SEED the first one's seed (1).

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local slips = device.slips

local PROGRAMS = tonumber(os.getenv "CGRAPHLUA_UNROLL_PROGRAMS") or 200
local SEED = tonumber(os.getenv "CGRAPHLUA_UNROLL_SEED") or 1
local N = 32

-- No two of these commute, and none repeats: an operation that is lost, done
-- twice or out of order shows.
local source = [[
extern "C" __global__ void step(int *x, const int *y, int a) {
  unsigned v = x[threadIdx.x];
  x[threadIdx.x] = v * 1664525u + (unsigned)y[threadIdx.x] + a;
}
extern "C" __global__ void fold(int *x, const float *r) {
  unsigned v = x[threadIdx.x];
  x[threadIdx.x] = v * 22695477u + __float_as_int(r[threadIdx.x]);
}
extern "C" __global__ void put(int *x, const int *y) {
  x[threadIdx.x] = y[threadIdx.x] ^ 0x5555;
}
extern "C" __global__ void slow(int *x, int rounds) {
  unsigned v = x[threadIdx.x];
  for (int i = 0; i < rounds; i++) v = v * 69069u + 1;
  x[threadIdx.x] = v;
}]]

describe("graph:replay with unroll", function()
  local step, fold, put, slow

  setup(function()
    local module = cg.module(source)
    step, fold = module:kernel "step", module:kernel "fold"
    put, slow = module:kernel "put", module:kernel "slow"
  end)

  teardown(function()
    step, fold, put, slow = nil, nil, nil, nil
    device.nothing_alive()
  end)

  it("is an option, on by default", function()
    local g = cg.graph()
    assert.is_true(g:options().unroll)
    assert.is_false(g:options { unroll = false }.unroll)
    assert.is_true(g:options { unroll = true }.unroll)
    g.unroll = false
    assert.is_false(g:options().unroll)
    g.unroll = nil
    assert.is_true(g:options().unroll)
    assert.is_false(cg.capture(function() end, { unroll = false }):options().unroll)
    slips(function() cg.graph { unroll = 64 } end, "unroll must be true or false")
    slips(function() g:capture(function() end, { unroll = true }) end, "unknown option")
  end)

  -- In a process of its own, which counts the calls of the driver.  `built` and
  -- `launched` say how many a replay makes at first, and from then on.
  local counting = [[
    cg.on_log(nil)
    local add, x = cg.kernel(source, "add"), cg.zeros("float", 4)
    local function adds(n)
      return function()
        for _ = 1, n do add:launch(1, 32, x, 1, 4) end
      end
    end
    local function captured(n, opts)
      local g = cg.capture(adds(n), opts)
      g:nodes() -- the edges are known from here on
      return g
    end
    local function calls(g, n)
      local before = cg.debug.fault_count()
      g:replay(n)
      return (cg.debug.fault_count() - before)
    end
    local list = {}
    local function say(...)
      for i = 1, select("#", ...) do list[#list + 1] = tostring((select(i, ...))) end
    end
    cg.debug.fault(0)
  ]]

  local function counts(chunk)
    local status, out, err = device.child(counting .. chunk .. "\nprint(table.concat(list, ' '))",
      "CGRAPHLUA_FAULT=1")
    assert.same({ 0, "" }, { status, err })
    return (out:gsub("\n$", ""))
  end

  -- An executable with k nodes takes a graph, the nodes, an instantiation and the
  -- end of the graph.
  local function built(k) return k + 3 end

  it("launches 64 copies of a kernel at once, after 1000 replays", function()
    assert.equal(table.concat({ 999, built(64) + 15 + 40, 15 + 40, 1 + 36, 63, 1, 4000 }, " "),
      counts [[
        local g = captured(1)
        say(calls(g, 999), calls(g, 1000), calls(g, 1000), calls(g, 100), calls(g, 63), calls(g, 1))
        say(x:download()[1] + 4000 - 999 - 2164)
      ]])
  end)

  it("counts loops of 64 replays and more", function()
    assert.equal(table.concat({ 63 * 20, 900, built(64) + 1 + 36, 1 + 36 }, " "), counts [[
      local g, total = captured(1), 0
      for _ = 1, 20 do total = total + calls(g, 63) end
      say(total)
      total = 0
      for _ = 1, 9 do total = total + calls(g, 100) end
      say(total, calls(g, 100), calls(g, 100))
    ]])
  end)

  it("waits for more of them after copies that were hardly used", function()
    assert.equal(table.concat({ 999, built(64) + 1, 1000, built(64) + 55, built(64) + 55 }, " "),
      counts [[
        local g = captured(1)
        say(calls(g, 999), calls(g, 64))
        g:set_params(1, { [2] = 2 })
        say(calls(g, 1000), calls(g, 1000))
        g:set_params(1, { [2] = 3 })
        say(calls(g, 1000))
      ]])
  end)

  it("makes fewer copies of more nodes, and none of a large graph", function()
    assert.equal(table.concat({ built(60) + 83 + 4, built(64) + 250, 1000 }, " "), counts [[
      say(calls(captured(5), 1000), calls(captured(16), 1000), calls(captured(17), 1000))
    ]])
  end)

  -- A child graph is built for its node, and its edges are known.
  it("counts the nodes of child graphs", function()
    local child = 1 + 9 + 1
    assert.equal(table.concat({ built(6 * (child + 1)) + 166 + 4, 1000 }, " "), counts [[
      local function around(n)
        local inner = cg.capture(adds(n))
        return cg.capture(function() inner:replay() end)
      end
      say(calls(around(9), 1000), calls(around(16), 1000))
    ]])
  end)

  it("launches singly what cannot be unrolled", function()
    assert.equal("1000 1000 2000 1000 1000 0", counts [[
      local e = cg.event { external = true }
      local events = cg.capture(function()
        adds(1)()
        e:record()
      end)
      local inner = cg.capture(function() events:replay() end)
      say(calls(events, 1000), calls(inner, 1000))
      local g, hooks = captured(1), 0
      g:replay()
      local hook = g:register_replay_start_hook(function() hooks = hooks + 1 end)
      say(calls(g, 1000) + hooks)
      hook:remove()
      g:raw_cuda_graph_exec()
      say(calls(g, 1000))
      local empty = cg.capture(function() end)
      say(calls(empty, 1000), calls(empty, 0))
    ]])
  end)

  it("makes no copies where a launch is not what replays wait for", function()
    assert.equal("1000 1000 1000 " .. table.concat({ built(64) + 15 + 40, 55 }, " "), counts [[
      local large, bytes = captured(1), cg.zeros("float", 16385)
      large:set_params(1, { grid = 10 ^ 6 })
      say(calls(large, 1000))
      local wide = cg.capture(function() add:launch(10 ^ 6, 32, x, 1, 4) end)
      say(calls(wide, 1000))
      say(calls(cg.capture(function() bytes:fill(1) end), 1000))
      local small = bytes:view(1, 16384)
      local g = cg.capture(function() small:fill(1) end)
      g:nodes()
      say(calls(g, 1000), calls(g, 1000))
    ]])
  end)

  it("makes no copies without the option", function()
    assert.equal("1000", counts [[say(calls(captured(1, { unroll = false }), 1000))]])
  end)

  it("builds anew after a change, and after an instantiation", function()
    local again = built(64) + 15 + 40
    assert.equal(table.concat({ again, again, 55, again, 1000, 55, 9000 }, " "),
      counts [[
        local g = captured(1, { keep_graph = true })
        g:instantiate()
        say(calls(g, 1000))
        g:set_params(1, { [2] = 2 })
        say(calls(g, 1000), calls(g, 1000))
        g:instantiate()
        say(calls(g, 1000))
        g:set_enabled(1, false)
        say(calls(g, 1000))
        g:set_enabled(1, true)
        say(calls(g, 1000), x:download()[1])
      ]])
  end)

  it("is a child graph node per replay in a capture", function()
    local x = cg.zeros("float", 4)
    local add = device.kernel "add"
    local g = cg.capture(function() add:launch(1, 32, x, 1, 4) end, { unroll = true })
    local outer = cg.capture(function() g:replay(300) end)
    assert.equal(300, #outer:nodes())
    outer:replay()
    assert.equal(300, device.first(x))
  end)

  -- An order takes the record of an event, which is made at the first, and a
  -- wait.
  it("orders replays of another executable on another stream, and no others", function()
    local first = built(64) + 16
    assert.equal(table.concat({ first, 16, 1 + 3, 1, 16 + 2, 16, 2, 16 + 2, 1 + 3, 1 }, " "),
      counts [[
        local a, b, g = cg.stream(), cg.stream(), captured(1)
        cg.synchronize()
        local function on(stream, n) stream:use(function() say(calls(g, n)) end) end
        on(a, 1024) on(b, 1024) -- the driver orders an executable after itself
        on(a, 1) on(b, 1)
        on(a, 1024) on(a, 1024)
        on(b, 65) on(a, 1024) on(b, 1)
        local plain = cg.capture(adds(1))
        a:use(function() plain:replay() end)
        b:use(function() say(calls(plain, 1)) end)
      ]])
  end)

  it("keeps the order of replays on several streams", function()
    local streams = { cg.stream(), cg.stream(), cg.current_stream() }
    local function result(unroll)
      local x = cg.zeros("int32", N)
      local g = cg.capture(function()
        step:launch(1, N, x, x, 3)
        slow:launch(1, N, x, 300)
      end, { unroll = unroll })
      local h = cg.capture(function() slow:launch(1, N, x, 300) end)
      for i = 1, 8 do
        streams[i % 3 + 1]:use(function() g:replay(i % 2 == 0 and 1 or 1000 + i) end)
      end
      streams[2]:release()
      streams[2] = cg.stream()
      g:replay(1100)
      cg.synchronize()
      h:replay()
      return device.bits(x)
    end
    assert.equal(result(false), result(true))
  end)

  it("waits for itself without a word in a strict pool", function()
    local x, a, b = cg.zeros("int32", N), cg.stream(), cg.stream()
    local pool = cg.pool { strict = true }
    local g = cg.capture(function() slow:launch(1, N, x, 1000) end, { unroll = true, pool = pool })
    local other = cg.capture(function() slow:launch(1, N, x, 1) end, { pool = pool })
    other:replay()
    cg.synchronize()
    for _ = 1, 3 do
      a:use(function() g:replay(1100) end)
      b:use(function() g:replay() end)
    end
    cg.synchronize()
    local stats = pool:stats()
    assert.same({ 0, 0 }, { stats.ordered, stats.refused })
  end)

  -- ---- random programs: each is run twice, with replay(n) of graphs that are
  -- unrolled, with programmatic edges, and with n single replays of graphs that
  -- are not, with full edges.

  local function random(seed)
    local state = seed * 7919 + 12345
    return function(n)
      state = (state * 1103515245 + 12345) % 2 ^ 31
      return math.floor(state / 65536) % n
    end
  end

  -- What the two runs of a program have of their own.
  local function world_new(seed, unroll)
    local world = { below = random(seed), unroll = unroll, buffers = {}, constants = {},
      gen = cg.generator(seed), reals = cg.zeros("float", N), event = cg.event { external = true },
      streams = { cg.stream(), cg.stream(), cg.current_stream() }, side = cg.stream() }
    for i = 1, 4 do
      world.buffers[i] = cg.full("int32", N, i)
      world.constants[i] = cg.full("int32", N, 10 * i)
    end
    return world
  end

  local function pick(world) return world.buffers[world.below(3) + 1] end

  -- Issues one operation into a capture.  The fourth buffer is the side's; memory
  -- of its own is not for the inner graph, which draws (two of its replays in a
  -- capture with branches would be refused).
  local function issue(world, graph)
    local choice, below = world.below(graph.inner and 11 or 10), world.below
    if choice < 4 then step:launch(1, N, pick(world), pick(world), below(100))
    elseif choice == 4 then pick(world):fill(below(100))
    elseif choice == 5 then
      local to, from = pick(world), pick(world)
      if to ~= from then to:copy(from) end
    elseif choice == 6 then
      world.reals:uniform(world.gen)
      fold:launch(1, N, pick(world), world.reals)
    elseif choice == 7 then
      local main = cg.current_stream()
      world.side:wait(main)
      world.side:use(function() step:launch(1, N, world.buffers[4], world.buffers[4], below(9)) end)
      step:launch(1, N, pick(world), pick(world), 1)
      main:wait(world.side)
    elseif choice == 8 and graph.inner then
      local mine = cg.buffer("int32", N)
      put:launch(1, N, mine, pick(world))
      step:launch(1, N, pick(world), mine, below(100))
    elseif choice == 9 then
      if below(4) == 0 then world.event:record() end
    elseif choice == 10 then graph.inner.g:replay()
    end
  end

  -- A graph with a node that is off cannot be captured into another.
  local function switch_on(graph)
    for node, off in pairs(graph and graph.off or {}) do
      if off then graph.g:set_enabled(node, true) end
    end
    if graph then graph.off = {} end
  end

  local function capture(world, graph)
    switch_on(graph.inner)
    graph.g:capture(function()
      for _ = 1, 1 + world.below(5) do issue(world, graph) end
    end)
    graph.nodes = graph.g:nodes()
    graph.off = {}
  end

  -- Without its put, a graph would read what nobody wrote.
  local never_off = { put = true, advance = true, ["graph:replay"] = true, ["event:record"] = true }
  local counts_of_replays = { 0, 1, 2, 63, 64, 65, 130, 1000 }

  -- One step of a program; `graph` is the outer or the inner one.
  local function act(world, graph)
    local below, g = world.below, graph.g
    local choice = below(16)
    local node = below(#graph.nodes) + 1
    local stream = world.streams[below(3) + 1]
    if choice < 8 then
      local n = counts_of_replays[below(#counts_of_replays) + 1]
      stream:use(function()
        if world.unroll then g:replay(n) else for _ = 1, n do g:replay() end end
      end)
    elseif choice < 11 then
      local of, value = graph.nodes[node], below(100)
      local from = world.constants[below(4) + 1]
      if not of then return
      elseif of.name == "step" then g:set_params(node, { [3] = value })
      elseif of.kind == "memset" then g:set_params(node, { value = value })
      elseif of.kind == "memcpy" then g:set_params(node, { from = from })
      end
    elseif choice == 11 then
      local of = graph.nodes[node]
      if of and not never_off[of.name] then
        graph.off[node] = not graph.off[node]
        g:set_enabled(node, not graph.off[node])
      end
    elseif choice == 12 then
      cg.synchronize() -- another executable is another graph's replay
      g:instantiate()
    elseif choice == 13 then
      switch_on(graph)
      local n = 1 + below(3)
      local h = cg.capture(function() g:replay(n) end)
      cg.synchronize()
      h:replay()
      cg.synchronize()
    elseif choice == 14 then
      cg.synchronize()
      step:launch(1, N, pick(world), pick(world), 7)
      cg.synchronize()
    else
      cg.synchronize()
      g:reset()
      capture(world, graph)
    end
  end

  local function run(seed, unroll)
    local world = world_new(seed, unroll)
    local opts = { keep_graph = true, unroll = unroll, programmatic = unroll,
      unchecked = world.below(4) == 0,
      pool = world.below(2) == 0 and cg.pool() or nil }
    local inner = { g = cg.graph(opts) }
    capture(world, inner)
    local outer = { g = cg.graph(opts), inner = inner }
    capture(world, outer)
    local graphs = { inner, outer, outer }
    for _ = 1, 7 do
      act(world, graphs[world.below(3) + 1])
      -- Different graphs are ordered by the script.
      cg.synchronize()
      local graph = graphs[world.below(3) + 1]
      for _ = 1, 1 + world.below(3) do act(world, graph) end
      cg.synchronize()
    end
    local texts = {}
    for i, b in ipairs(world.buffers) do texts[i] = device.bits(b) end
    return table.concat(texts, "\n")
  end

  it("does what single replays do, in random programs", function()
    for seed = SEED, SEED + PROGRAMS - 1 do
      local expected = run(seed, false)
      assert(run(seed, true) == expected, "the program of seed " .. seed .. " differs")
      if seed % 20 == 0 then collectgarbage() end
    end
  end)
end)
