-- Programmatic edges: which launches of a capture get one, and that nothing else
-- changes by them.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local slips = device.slips

local N = 64

-- link reads what was written two links ago, when it is given three buffers in
-- turn.
local source = [[
extern "C" __global__ void add(int *x, int a) { x[threadIdx.x] += a; }
extern "C" __global__ void link(int *to, const int *a, const int *b) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = a[gridDim.x * blockDim.x - 1 - i] * 3 + b[i] + 1;
}
#define MAKE(name) extern "C" __global__ void name(int *x) { x[threadIdx.x] *= 3; }
MAKE(made)]]

describe("programmatic edges", function()
  local add, link, x, early

  setup(function()
    local module = cg.module(source)
    add, link = module:kernel "add", module:kernel "link"
    x = cg.zeros("int32", N)
    local g = cg.capture(function() for _ = 1, 2 do add:launch(1, N, x, 1) end end)
    early = g:nodes()[2].programmatic -- needs sm_90
  end)

  teardown(function()
    add, link, x = nil, nil, nil
    device.nothing_alive()
  end)

  -- A letter per node: p for one behind a programmatic edge.
  local function edges(fn, opts)
    local text = {}
    local g = cg.capture(fn, opts)
    for i, node in ipairs(g:nodes()) do text[i] = node.programmatic and "p" or "-" end
    g:replay(3)
    return table.concat(text)
  end

  local function adds(n, grid)
    for _ = 1, n do add:launch(grid or 1, N, x, 1) end
  end

  local function are(wanted, fn, opts)
    assert.equal(early and wanted or wanted:gsub("p", "-"), edges(fn, opts))
  end

  it("are an option, on by default", function()
    assert.is_true(cg.graph():options().programmatic)
    assert.is_false(cg.graph({ programmatic = false }):options().programmatic)
    local g = cg.graph()
    g.programmatic = false
    assert.is_false(g:options().programmatic)
    assert.is_true(g:options { programmatic = true }.programmatic)
    slips(function() cg.graph { programmatic = 1 } end, "programmatic must be true or false")
    are("---", function() adds(3) end, { programmatic = false })
  end)

  it("lead from a kernel to the next on its stream", function()
    are("-pp", function() adds(3) end)
    are("-p----p", function()
      adds(2) x:fill(1) adds(1)
      local y = cg.buffer("int32", N)
      y:copy(x) adds(2)
    end)
  end)

  it("do not follow a grid that the device cannot hold at once", function()
    are("-p-p", function()
      adds(1) adds(1, 10 ^ 6) adds(1) adds(1)
    end)
  end)

  it("do not follow a wait", function()
    local event = cg.event()
    are("-p-p", function()
      adds(2)
      event:record()
      cg.current_stream():wait(event)
      adds(2)
    end)
  end)

  it("are in graphs that fork behind kernels that run alone", function()
    local side, event, y = cg.stream(), cg.event(), cg.zeros("int32", N)
    are("-p---p", function()
      local main = cg.current_stream()
      adds(2)
      side:wait(main)
      side:use(function() x:fill(1) end)
      main:wait(side)
      adds(1) -- after the fill, too
      event:record()
      main:wait(event)
      adds(2)
    end)
    are("-pp---p", function()
      local main = cg.current_stream()
      adds(2)
      side:wait(main)
      adds(1) -- behind the second
      side:use(function() for _ = 1, 2 do add:launch(1, N, y, 1) end end)
      main:wait(side)
      adds(2)
    end)
  end)

  it("do not follow child graphs, and are inside them", function()
    local inner = cg.capture(function() adds(2) end)
    are("-p--", function() adds(2) inner:replay() adds(1) end)
  end)

  it("are in bodies", function()
    local flag = cg.full("int32", 1, 1)
    local g = cg.capture(function()
      adds(1)
      cg.when(flag, function() adds(3) end, { form = "node" })
    end)
    local nodes, got = g:nodes(), {}
    for i, node in ipairs(nodes[#nodes].bodies[1]) do got[i] = node.programmatic end
    assert.same({ false, early, early }, got)
    assert.equal(early, nodes[2].programmatic) -- the kernel that sets the handle
  end)

  it("are in bodies of graphs that fork", function()
    local flag, side, y = cg.full("int32", 1, 1), cg.stream(), cg.zeros("int32", N)
    local g = cg.capture(function()
      local main = cg.current_stream()
      side:wait(main)
      side:use(function() add:launch(1, N, y, 1) end)
      cg.when(flag, function()
        adds(3)
        cg.when(flag, function() adds(2) end, { form = "node" })
      end, { form = "node" })
      main:wait(side)
    end)
    local got = {}
    local function list(nodes)
      for _, node in ipairs(nodes) do
        got[#got + 1] = node.programmatic and "p" or "-"
        for _, body in ipairs(node.bodies or {}) do list(body) end
      end
    end
    list(g:nodes())
    assert.equal(early and "----ppp--p" or "----------", table.concat(got))
    x:fill(0)
    g:replay()
    assert.equal(5, x:download()[1])
  end)

  it("are in data order where nothing runs beside the kernel before", function()
    local data = { order = "data" }
    are("-pp", function() adds(3) end, data)
    are("-p----p", function()
      adds(2) x:fill(1) adds(1)
      local y = cg.buffer("int32", N)
      y:copy(x) adds(2)
    end, data)
    local y, z = cg.zeros("int32", N), cg.zeros("int32", N)
    are("----", function() adds(2) add:launch(1, N, y, 1) adds(1) end, data)
    are("-ppp--p", function()
      adds(2)
      link:launch(1, N, y, x, x) -- both beside each other, behind the second
      link:launch(1, N, z, x, x)
      add:launch(1, N, z, 1)
      link:launch(1, N, x, y, z)
      adds(1)
    end, data)
    are("-p-p", function() adds(1) adds(1, 10 ^ 6) adds(1) adds(1) end, data)
    are("---", function() adds(3) end, { order = "data", programmatic = false })
    for _, forks in ipairs { false, true } do
      local flag = cg.full("int32", 1, 1)
      x:fill(0)
      local g = cg.capture(function()
        if forks then add:launch(1, N, y, 1) end
        cg.when(flag, function() adds(3) end, { form = "node" })
        adds(2)
      end, data)
      local got, inside = {}, {}
      for n, node in ipairs(g:nodes()) do
        got[n] = node.programmatic
        for i, inner in ipairs(node.bodies and node.bodies[1] or {}) do
          inside[i] = inner.programmatic
        end
      end
      local wanted = forks and { false, false, false, false, false }
        or { false, false, false, early }
      assert.same(wanted, got)
      assert.same({ false, early, early }, inside)
      g:replay()
      assert.equal(5, x:download()[1])
    end
    -- Nodes that the capture made, for an event, have the edges of the plan, too.
    local event = cg.event()
    are("-pp", function() adds(2) event:record() adds(1) end, data)
    local gen, r = cg.generator(1), cg.zeros("float", N)
    local shrink = cg.kernel [[
extern "C" __global__ void shrink(float *r) { r[threadIdx.x] *= 0.5f; }]]
    are("-pp-", function()
      shrink:launch(1, N, r)
      r:uniform(gen) -- what moves the generator's offset runs beside the rest
      shrink:launch(1, N, r)
    end, data)
  end)

  it("reach a fill with random numbers", function()
    local gen, r = cg.generator(1), cg.zeros("float", N)
    are("-p-", function()
      adds(1)
      r:uniform(gen)
    end)
    are("-pp-", function() -- the offset moves after both
      adds(1)
      r:uniform(gen)
      r:uniform(gen)
    end)
  end)

  it("see work that others issue into the stream", function()
    are("-p--p", function()
      local stream = cg.current_stream()
      assert(stream:handle() ~= nil) -- from here on the driver is asked
      adds(2) x:fill(1) adds(2)
    end)
  end)

  it("stay when a launch changes", function()
    local y = cg.zeros("int32", 4 * N)
    local z = cg.zeros("int32", 4 * N)
    local g = cg.capture(function()
      link:launch(2, N, y, z, z)
      link:launch(2, N, z, y, y)
    end)
    g:set_params(1, { grid = 4 })
    g:set_params(2, { grid = 4 })
    g:replay()
    assert.equal(early, g:nodes()[2].programmatic)
    assert.same({ 1, 5 }, { y:download()[4 * N], z:download()[4 * N] })
    g:set_enabled(1, false)
    y:fill(2)
    g:replay()
    assert.same({ 2, 9 }, { y:download()[1], z:download()[4 * N] })
    g:set_enabled(1, true)
    g:replay()
    assert.same({ 37, 149 }, { y:download()[1], z:download()[4 * N] })
  end)

  -- ---- results

  local function chain(opts, length, times)
    local size = 4 * N
    local b = {}
    for i = 1, 3 do b[i] = cg.full("int32", size, i) end
    local g = cg.capture(function()
      for i = 0, length - 1 do
        link:launch(4, N, b[i % 3 + 1], b[(i + 1) % 3 + 1], b[(i + 2) % 3 + 1])
      end
    end, opts)
    for _ = 1, times do g:replay() end
    g:replay(times)
    return device.bits(b[1]) .. device.bits(b[2]) .. device.bits(b[3])
  end

  it("order what was written two kernels before, a thousand times", function()
    assert.equal(chain({ programmatic = false, unroll = false }, 9, 1000), chain({}, 9, 1000))
    assert.equal(chain({ programmatic = false, unroll = false }, 3, 1000), chain({}, 3, 1000))
    assert.equal(chain({ programmatic = false, unroll = false }, 9, 1000),
      chain({ order = "data" }, 9, 1000))
  end)

  -- What a kernel promises is constant while it runs, its code may read before it
  -- waits.  The kernels before are slow to write, so that early reads would be wrong.
  it("are not in front of kernels that read what they promise is constant", function()
    local slow = cg.kernel [[
extern "C" __global__ void slow(int *x, int turns) {
  int v = x[0] + 1;
  for (int i = 0; i < turns; i++) v = v * 3 % 65536;
  x[0] = v + turns;
}]]
    local readers = cg.module [[
extern "C" __global__ void promised(const int *__restrict__ p, int *__restrict__ q, int n) {
  for (int i = 0; i < n; i++) q[i] += p[0];
}
extern "C" __global__ void loaded(const int *p, int *q, int n) {
  for (int i = 0; i < n; i++) q[i] += __ldg(p);
}
extern "C" __global__ void plain(const int *p, int *q, int n) {
  for (int i = 0; i < n; i++) q[i] += p[0];
}]]
    local out, one = cg.zeros("int32", 4), cg.zeros("int32", 1)
    local function read(name)
      if name == "map" then
        algo.map("x & 255", { x = x:view(1, 1) }, one)
        readers:kernel "plain":launch(1, 1, one, out, 4)
      else
        readers:kernel(name):launch(1, 1, x:view(1, 1), out, 4)
      end
    end
    for _, name in ipairs { "promised", "loaded", "plain", "map" } do
      local results = {}
      for i, opts in ipairs { { programmatic = false, unroll = false }, {}, { order = "data" } } do
        x:fill(5)
        out:fill(0)
        local g = cg.capture(function()
          for _ = 1, 2 do
            slow:launch(1, 1, x, 100)
            slow:launch(1, 1, x, 2000)
            read(name)
          end
        end, opts)
        for _ = 1, 100 do g:replay() end
        g:replay(100)
        results[i] = { x:download()[1], unpack(out:download()) }
      end
      assert.same(results[1], results[2], name)
      assert.same(results[1], results[3], name)
    end
  end)

  it("fail clearly, or are done without", function()
    device.sweep(2, [[
      local function run()
        local add, x = cg.kernel(source, "add"), cg.zeros("float", 64)
        local g = cg.capture(function()
          for _ = 1, 3 do add:launch(16, 4, x, 1, 64) end
        end)
        g:replay(2)
        cg.synchronize()
        return x:download()[1]
      end
      sweep(run, {
        right = function(sum) return sum == 6, sum end,
        calls = 20,
        raised = 10,
        names = { "cuLaunchKernelEx" },
      })
    ]])
  end)
end)
