-- Changing the nodes of a captured graph: set_params.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips
local first, adder = device.first, device.adder

local N = 4

-- How many of a kind there are beside those that there are now; the collector
-- stays out of it.
local function counter(noun)
  collectgarbage "stop"
  finally(function() collectgarbage "restart" end)
  local before = cg.live(noun)
  return function() return cg.live(noun) - before end
end

describe("graph:set_params", function()
  teardown(device.nothing_alive)

  it("changes the arguments that are there, for the replays that follow", function()
    local g, x = adder()
    g:replay(2)
    g:set_params(1, { [2] = 10 })
    g:replay(3)
    assert.same({ 32, 32, 32, 32 }, x:download())
    g:set_params(1, { [3] = 2 })
    g:replay()
    assert.same({ 42, 42, 32, 32 }, x:download())
    g:set_params(1, {})
    g:replay()
    assert.same({ 52, 52, 32, 32 }, x:download())
  end)

  it("takes a table again and again", function()
    local g, x = adder()
    local params, sum = { x, 0, N }, 0
    for i = 1, 20 do
      params[2] = i
      g:set_params(1, params)
      g:replay()
      sum = sum + i
    end
    assert.equal(sum, first(x))
  end)

  it("changes the launch, which nodes tells", function()
    local g, x = adder()
    g:set_params(1, { block = 2 })
    g:replay()
    assert.same({ 1, 1, 0, 0 }, x:download())
    g:set_params(1, { [2] = 5, grid = { 3 } })
    g:replay()
    assert.same({ 6, 6, 5, 5 }, x:download())
    local node = g:nodes()[1]
    assert.is_nil(node.type)
    assert.same({ 3, 1, 1 }, node.grid)
    assert.same({ 2, 1, 1 }, node.block)
  end)

  it("changes dynamic shared memory", function()
    local k = cg.kernel [[
      extern "C" __global__ void through(float *x) {
        extern __shared__ float tile[];
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = tile[threadIdx.x ^ 1];
      }]]
    local x = cg.from({ 1, 2, 3, 4 }, "float")
    local g = cg.capture(function() k:launch({ 1, shared = 8 }, 2, x) end)
    g:set_params(1, { block = 4, shared = 16 })
    g:replay()
    assert.same({ 2, 1, 4, 3 }, x:download())
    -- It stays with a change of something else.
    local big = cg.kernel [[
      extern "C" __global__ void ends(float *x, int last) {
        extern __shared__ float tile[];
        tile[last - threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = tile[last - (threadIdx.x ^ 1)];
      }]]
    local h = cg.capture(function() big:launch({ 1, shared = 16 }, 4, x, 3) end)
    h:set_params(1, { shared = 40000 })
    h:set_params(1, { [2] = 9999 })
    h:replay()
    assert.same({ 1, 2, 3, 4 }, x:download())
  end)

  it("leaves the other nodes as they are", function()
    local add, x = device.kernel "add", cg.zeros("float", N)
    local g = cg.capture(function()
      for i = 1, 5 do add:launch(1, 32, x, 10 ^ i, N) end
    end)
    g:set_params(3, { [2] = 0 })
    g:replay()
    assert.equal(110110 + 10 ^ 2 - 100, first(x))
  end)

  it("does not reach replays that were issued before", function()
    local spin, add = device.kernel "spin", device.kernel "add"
    local x, y = cg.zeros("float", 1), cg.zeros("float", 1)
    local g = cg.capture(function()
      spin:launch(1, 1, x, 2e6)
      add:launch(1, 1, y, 1, 1)
    end)
    g:replay()
    g:set_params(2, { [2] = 100 })
    assert.equal(1, first(y))
    g:set_params(1, { [2] = 1 })
    g:replay()
    assert.equal(101, first(y))
  end)

  describe("of buffers", function()
    it("reads and writes the new ones", function()
      local scale = device.kernel "scale"
      local a, b = cg.full("float", N, 3), cg.full("float", N, 5)
      local x, y = cg.zeros("float", N), cg.zeros("float", N)
      local g = cg.capture(function() scale:launch(1, 32, a, x, 2, N) end)
      g:set_params(1, { b, y })
      g:replay()
      assert.equal(0, first(x))
      assert.equal(10, first(y))
      assert.is_false(g:writes(x))
      assert.is_true(g:writes(y))
    end)

    it("keeps the new one alive and lets the old one go", function()
      local g, x = adder()
      local y = cg.zeros("float", N)
      local view = y:view(1, 2)
      local count = counter "buffer"
      x:release()
      assert.equal(0, count())
      g:set_params(1, { view, [3] = 2 })
      assert.equal(-1, count())
      view:release()
      y:release()
      assert.equal(-2, count()) -- the view; what it looks at stays
      g:replay()
      local z = cg.zeros("float", N)
      assert.equal(-1, count())
      g:set_params(1, { z, [3] = N })
      assert.equal(-2, count())
      g:replay()
      assert.equal(1, first(z))
    end)

    it("keeps an old one that another node uses", function()
      local add, x, y = device.kernel "add", cg.zeros("float", N), cg.zeros("float", N)
      local out = cg.pinned("float", N)
      local g = cg.capture(function()
        add:launch(1, 32, x, 1, N)
        out:copy(x)
        add:launch(1, 32, y, 1, N)
        add:launch(1, 32, y, 1, N)
      end)
      local count = counter "buffer"
      g:set_params(1, { y })
      g:set_params(3, { x })
      g:set_params(4, { x })
      g:set_params(1, { x })
      assert.equal(0, count())
      x:release()
      y:release()
      assert.equal(-1, count())
      g:replay(2)
      cg.synchronize()
      assert.equal(4, out:cdata()[0]) -- 1 + 1 + 1, then 1 more before the copy
    end)

    it("goes from one to none and back, and to pinned memory", function()
      local k = cg.kernel [[
        extern "C" __global__ void either(float *x, float *y) {
          if (x) x[0] += 1.f;
          if (y) y[0] += 10.f;
        }]]
      local x, y, p = cg.zeros("float", 1), cg.zeros("float", 1), cg.pinned("float", 1)
      local g = cg.capture(function() k:launch(1, 1, x, cg.null) end)
      g:set_params(1, { cg.null, y })
      assert.is_false(g:writes(x))
      assert.is_true(g:writes(y))
      g:replay()
      for _ = 1, 3 do
        g:set_params(1, { x, cg.null })
        g:set_params(1, { x, y })
        g:set_params(1, { p, cg.null })
        g:set_params(1, { p, y })
      end
      g:replay()
      cg.synchronize()
      assert.same({ 0, 20, 1 }, { first(x), first(y), p:cdata()[0] })
      local count = counter "pinned"
      p:release()
      assert.equal(0, count())
      g:set_params(1, { cg.null, cg.null })
      assert.equal(-1, count())
      g:replay()
      assert.equal(20, first(y))
    end)

    it("goes from none to one in a node that others follow", function()
      local k = cg.kernel [[
        extern "C" __global__ void both(float *x, float *y) {
          if (x) x[0] += 1.f;
          if (y) y[0] += 10.f;
        }]]
      local function one() return cg.zeros("float", 1) end
      local x, y, p, q = one(), one(), one(), one()
      local g = cg.capture(function()
        k:launch(1, 1, cg.null, y)
        k:launch(1, 1, p, q)
      end)
      local count = counter "buffer"
      g:set_params(1, { x })
      p:release()
      y:release()
      local z, v = one(), one()
      g:set_params(1, { z })
      g:set_params(1, { [2] = v })
      -- Only y is used no more: x is the script's, p the second node's.
      assert.equal(1, count())
      g:replay(2)
      assert.same({ 0, 20, 2, 20 }, { first(x), first(q), first(z), first(v) })
      x:release()
      assert.equal(0, count())
      assert.is_true(g:writes(q))
    end)

    it("keeps what its nodes use and nothing else, whatever is exchanged", function()
      local add, random = device.kernel "add", math.random
      math.randomseed(7)
      local count = counter "buffer"
      -- A node is {buffer's number, value}; `ours` are the script's own buffers.
      local nodes, ours, sums, made = {}, {}, {}, 0
      local function make()
        made = made + 1
        ours[made], sums[made] = cg.zeros("float", N), 0
        return made
      end
      for i = 1, 5 do nodes[i] = { make(), i } end
      local g = cg.capture(function()
        for i = 1, 5 do add:launch(1, 32, ours[nodes[i][1]], i, N) end
      end)
      for step = 1, 300 do
        local i, list = random(5), {}
        for number in pairs(ours) do list[#list + 1] = number end
        local number = (#list == 0 or random(4) == 1) and make() or list[random(#list)]
        local whole = random(2) == 1
        nodes[i] = { number, step }
        local memory = whole and ours[number] or ours[number]:view(1, 2)
        g:set_params(i, { memory, step, whole and N or 1 })
        if not whole then memory:release() end
        if random(3) == 1 then
          g:replay()
          for _, node in ipairs(nodes) do sums[node[1]] = sums[node[1]] + node[2] end
        end
        local gone = random(made)
        if ours[gone] then
          assert.equal(sums[gone], first(ours[gone]))
          if random(2) == 1 then
            ours[gone]:release()
            ours[gone] = nil
          end
        end
        local used, n = {}, 0
        for kept in pairs(ours) do used[kept] = true end
        for _, node in ipairs(nodes) do used[node[1]] = true end
        for _ in pairs(used) do n = n + 1 end
        assert.equal(n, count())
      end
    end)

    it("leaves a replay in flight the memory that it uses", function()
      local spin = device.kernel "spin"
      local x, y = cg.zeros("float", 1024), cg.zeros("float", 1024)
      local g = cg.capture(function()
        spin:launch(1, 1, x, 2e6)
        x:fill(7)
      end)
      g:replay()
      g:set_params(1, { y, 1 })
      x:release()
      local other, list = cg.stream(), {}
      other:use(function()
        for i = 1, 8 do list[i] = cg.full("float", 1024, i) end
      end)
      cg.synchronize()
      for i = 1, 8 do assert.equal(i, first(list[i])) end
    end)

    it("checks the inputs that it uses now", function()
      local g, x = adder { check_input_liveness = true }
      local y = cg.zeros("float", N)
      g:set_params(1, { y })
      x:release()
      g:replay()
      assert.equal(1, first(y))
      y:release()
      raises("CGL_ERROR_RELEASED", function() g:replay() end, "1 input of the graph")
    end)

    it("leaves memory of the capture where the capture used it", function()
      local scale = device.kernel "scale"
      local x, other = cg.full("float", N, 2), cg.zeros("float", N)
      local g, y, z = cg.capture(function()
        local y, z = cg.buffer("float", N), cg.buffer("float", N)
        scale:launch(1, 32, x, y, 2, N)
        scale:launch(1, 32, y, z, 2, N)
        return y, z
      end)
      for _, params in ipairs { { [2] = other }, { y }, { [2] = z }, { [2] = cg.null } } do
        raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(1, params) end,
          "the graph's own pool", "before the capture")
      end
      g:set_params(1, { x, y, 3, N })
      g:set_params(2, { y:view(1, 2), z, 5, 2 })
      g:replay()
      assert.same({ 6, 6 }, { y:download()[1], y:download()[4] })
      assert.equal(30, first(z:view(1, 2)))
    end)
  end)

  describe("reaches", function()
    it("the template, for executables that are made later", function()
      local g, x = adder { keep_graph = true }
      g:set_params(1, { [2] = 5 })
      g:replay()
      assert.equal(5, first(x))
      g:set_params(1, { [2] = 7 })
      g:set_params(1, { [3] = 1 })
      g:instantiate()
      g:replay()
      assert.same({ 12, 5 }, { x:download()[1], x:download()[2] })
    end)

    it("graphs that capture it from then on, and not those before", function()
      local g, x = adder()
      local before = cg.capture(function() g:replay(2) end)
      g:set_params(1, { [2] = 10 })
      local after = cg.capture(function() g:replay(2) end)
      g:set_params(1, { [2] = 100 })
      before:replay()
      assert.equal(2, first(x))
      after:replay()
      assert.equal(22, first(x))
      g:replay()
      assert.equal(122, first(x))
    end)

    it("other memory of a graph that another one has captured", function()
      local x, y, z = device.full(1, N), device.full(2, N), cg.zeros("float", N)
      local g = cg.capture(function()
        for _ = 1, 2000 do z:copy(x) end
      end)
      local before = cg.capture(function() g:replay() end)
      g:set_params(2000, { from = y })
      before:replay()
      assert.equal(1, first(z))
      g:replay()
      assert.equal(2, first(z))
    end)

    it("a graph while another one captures", function()
      local g, x = adder()
      local add, y = device.kernel "add", cg.zeros("float", N)
      for _, mode in ipairs { "global", "thread_local", "relaxed" } do
        local h = cg.capture(function()
          add:launch(1, 32, y, 1, N)
          g:set_params(1, { [2] = 4 })
          g:set_enabled(1, false)
          g:set_enabled(1, true)
          add:launch(1, 32, y, 1, N)
        end, { capture_error_mode = mode })
        h:replay()
      end
      g:replay()
      assert.same({ 4, 6 }, { first(x), first(y) })
    end)

    it("a graph from its own hooks", function()
      local g, x = adder()
      local i = 0
      g:register_replay_start_hook(function()
        i = i + 1
        g:set_params(1, { [2] = i })
      end)
      g:replay(4)
      assert.equal(1 + 2 + 3 + 4, first(x))
    end)
  end)

  describe("of a fill", function()
    it("changes the value, of every type", function()
      for _, case in ipairs { { "float", 1, -2.5 }, { "int8", 1, -7 }, { "uint16", 1, 65535 },
                              { "half", 1, 0.5 }, { "bool", false, true }, { "int32", 1, -9 } } do
        local x = cg.zeros(case[1], 3)
        local g = cg.capture(function() x:fill(case[2]) end, { keep_graph = true })
        g:set_params(1, { value = case[3] })
        g:replay()
        assert.same({ case[3], case[3], case[3] }, x:download())
        x:fill(case[2])
        g:instantiate()
        g:replay()
        assert.same({ case[3], case[3], case[3] }, x:download())
      end
    end)

    it("of doubles takes any value, when it was captured with halves that differ", function()
      local x, y = cg.zeros("double", 3), cg.zeros("double", 3)
      local g = cg.capture(function() x:fill(0.1) end)
      assert.equal("memset", device.kinds(g))
      assert.equal("double", g:nodes()[1].type)
      for _, value in ipairs { 2 / 3, 0 } do
        y:fill(7)
        g:set_params(1, { value = value, buffer = y })
        g:replay()
        assert.same({ value, value, value }, y:download())
      end
      assert.same({ 0, 0, 0 }, x:download())
      g:set_params(1, { value = 0.1, buffer = x })
      g:set_enabled(1, false)
      g:set_params(1, { value = 0.3 })
      g:replay()
      assert.same({ 0, 0, 0 }, x:download())
      g:set_enabled(1, true)
      g:replay()
      assert.same({ 0.3, 0.3, 0.3 }, x:download())
      local h = cg.capture(function() x:fill(0) end)
      raises("CGL_ERROR_INVALID_ARGUMENT", function() h:set_params(1, { value = 0.1 }) end,
        "words of 4 bytes, and those of the value differ")
      h:set_params(1, { buffer = y })
      h:replay()
      assert.same({ 0, 0, 0 }, y:download())
    end)

    it("takes a buffer of the same type and count", function()
      local x, y, ints = cg.zeros("float", N), cg.zeros("float", N + 2), cg.zeros("int32", N)
      local g = cg.capture(function() x:fill(3) end)
      for _, other in ipairs { y, ints } do
        raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(1, { buffer = other }) end,
          "cannot take the place of 4 of float")
      end
      g:set_params(1, { buffer = y:view(2, N) })
      g:replay()
      assert.same({ 0, 3, 3, 3, 3, 0 }, y:download())
      assert.equal(0, first(x))
      slips(function() g:set_params(1, { value = "x" }) end)
      slips(function() g:set_params(1, { 3 }) end)
      slips(function() g:set_params(1, { buffer = g }) end)
    end)
  end)

  describe("of a copy", function()
    it("changes what is read and what is written", function()
      local a, b, x, y = cg.full("float", N, 1), cg.full("float", N, 2), cg.zeros("float", N),
        cg.zeros("float", N)
      local g = cg.capture(function() x:copy(a) end, { keep_graph = true })
      for _ = 1, 2 do
        g:set_params(1, { from = b })
        g:replay()
        assert.equal(2, first(x))
        g:set_params(1, { to = y, from = a })
        g:replay()
        assert.same({ 2, 1 }, { first(x), first(y) })
        g:instantiate()
        y:fill(0)
        g:replay()
        assert.equal(1, first(y))
        g:set_params(1, { to = x })
      end
    end)

    it("keeps pinned memory alive, in its place alone", function()
      local x, p, q = cg.full("float", N, 1), cg.pinned("float", N), cg.pinned("float", N)
      local g = cg.capture(function()
        x:copy(p)
        p:copy(x)
      end)
      local count = counter "pinned"
      q:cdata()[0] = 5
      g:set_params(1, { from = q })
      g:replay()
      cg.synchronize()
      assert.equal(5, p:cdata()[0])
      g:set_params(2, { to = q })
      p:release()
      assert.equal(-1, count())
      q:cdata()[0] = 7
      q:release()
      assert.equal(-1, count())
      g:replay()
      assert.equal(7, first(x))
      local y = cg.zeros("float", N)
      raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(1, { from = y }) end,
        "direction")
      raises("CGL_ERROR_INVALID_ARGUMENT", function()
        g:set_params(2, { from = cg.pinned("float", N) })
      end, "direction")
      slips(function() g:set_params(1, { value = 3 }) end)
    end)

    it("leaves memory of the capture where the capture used it", function()
      local x, other = cg.full("float", N, 2), cg.zeros("float", N)
      local g, y = cg.capture(function()
        local y = cg.zeros("float", N)
        y:copy(x)
        return y
      end)
      for i, params in ipairs { { buffer = other }, { to = other } } do
        raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(i, params) end, "own pool")
      end
      raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(2, { from = y }) end, "own pool")
      g:set_params(2, { to = y, from = cg.full("float", N, 9) })
      g:replay()
      assert.equal(9, first(y))
    end)
  end)

  describe("refuses", function()
    it("what a launch would refuse, and changes nothing then", function()
      local g, x = adder()
      local released, ints = cg.zeros("float", N), cg.zeros("int32", N)
      released:release()
      raises("CGL_ERROR_ARGUMENT_TYPE", function() g:set_params(1, { 5 }) end,
        "graph:set_params: argument 1 of add")
      raises("CGL_ERROR_ARGUMENT_TYPE", function() g:set_params(1, { ints, 9 }) end)
      raises("CGL_ERROR_ARGUMENT_RANGE", function() g:set_params(1, { [2] = 9, [3] = 0.5 }) end)
      raises("CGL_ERROR_RELEASED", function() g:set_params(1, { released, 9 }) end)
      raises("CUDA_ERROR_INVALID_VALUE", function() g:set_params(1, { x, 9, block = 1e6 }) end)
      raises("CUDA_ERROR_INVALID_VALUE", function() g:set_params(1, { x, 9, shared = 1e9 }) end)
      slips(function() g:set_params(1, { [4] = 1 }) end, "3 parameters", "key 4")
      slips(function() g:set_params(1, { [1.5] = 1 }) end, "key 1.5")
      slips(function() g:set_params(1, { threads = 1 }) end, "grid, block, shared", "threads")
      slips(function() g:set_params(1, { grid = 0 }) end)
      slips(function() g:set_params(1, { g }) end)
      slips(function() g:set_params(1) end, "table of arguments")
      slips(function() g:set_params("add", {}) end, "whole number")
      g:replay()
      assert.same({ 1, 1, 1, 1 }, x:download())
      assert.same({ 32, 1, 1 }, g:nodes()[1].block)
    end)

    it("nodes of another kind, saying which they are", function()
      local g = adder()
      local gen, y = cg.generator(1), cg.zeros("float", N)
      local out = cg.capture(function()
        g:replay()
        y:uniform(gen)
      end)
      for i, what in ipairs { "graph graph:replay", "kernel uniform_float", "kernel advance" } do
        raises("CGL_ERROR_INVALID_ARGUMENT", function() out:set_params(i, {}) end, what)
      end
      raises("CGL_ERROR_INVALID_ARGUMENT", function() out:set_params(4, {}) end, "3 nodes")
    end)

    it("a graph that holds no capture, or is at it", function()
      local g = cg.graph()
      raises("CGL_ERROR_NOT_CAPTURED", function() g:set_params(1, {}) end)
      g:capture(function()
        local e = raises("CGL_ERROR_NOT_CAPTURED", function() g:set_params(1, {}) end)
        assert.matches("change_spec.lua:%d+$", e.where)
        raises("CGL_ERROR_NOT_CAPTURED", function() g:set_enabled(1, true) end)
      end)
      g:reset()
      raises("CGL_ERROR_NOT_CAPTURED", function() g:set_params(1, {}) end)
      raises("CGL_ERROR_NOT_CAPTURED", function() g:set_enabled(1, true) end)
      g:release()
      raises("CGL_ERROR_RELEASED", function() g:set_params(1, {}) end)
    end)

    it("another generator, and draws on when the argument is left out", function()
      local draw = cg.kernel [[
        extern "C" __global__ void draw(float *x, cgl_philox p) { *x = cgl_uniform(p); }]]
      local gen, x = cg.generator(5), cg.zeros("float", 1)
      local y = cg.zeros("float", 1)
      local g = cg.capture(function() draw:launch(1, 1, x, gen) end)
      raises("CGL_ERROR_ARGUMENT_TYPE", function() g:set_params(1, { y, gen }) end, "generator")
      g:replay()
      g:set_params(1, { y })
      g:replay()
      local same, a, b = cg.generator(5), cg.zeros("float", 1), cg.zeros("float", 1)
      draw:launch(1, 1, a, same)
      draw:launch(1, 1, b, same)
      assert.equal(first(a), first(x))
      assert.equal(first(b), first(y))
    end)
  end)
end)
