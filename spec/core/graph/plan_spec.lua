-- Data order: what orders two nodes, what is a barrier and why, what a change
-- may not do, and what graph:plan tells.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local slips, fails = device.slips, device.fails

local ffi = require "ffi"

local N = 16

-- Where a buffer lies, as a kernel's argument.
local function address(buffer)
  return ffi.cast("void *", buffer:address())
end

local source = [[
struct pair { float *at; int n; };
struct plain { float a; int n; };
extern "C" __global__ void add(float *y, const float *x, float a) {
  y[threadIdx.x] = x[threadIdx.x] + a;
}
extern "C" __global__ void sum(float *y, const float *a, const float *b) {
  y[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x];
}
extern "C" __global__ void into(pair p, float a) { p.at[threadIdx.x] = a; }
extern "C" __global__ void of(float *y, plain p) { y[threadIdx.x] = p.a; }
extern "C" __global__ void through(float *const *list, float a) { list[0][threadIdx.x] = a; }
extern "C" __global__ void records(plain *list, float a) { list[threadIdx.x].a = a; }
extern "C" __global__ void draw(float *y, cgl_philox r) {
  y[threadIdx.x] = cgl_uniform(r);
}]]

local counting = [[
__device__ int count;
extern "C" __global__ void touch(float *y) { y[threadIdx.x] = atomicAdd(&count, 1); }]]

-- "1:- 2:1 3:1,2": the dependencies of each node.
local function edges(g)
  local list = {}
  for i, node in ipairs(g:nodes()) do
    local from = table.concat(node.dependencies, ",")
    list[i] = i .. ":" .. (from == "" and "-" or from)
  end
  return table.concat(list, " ")
end

local function captured(fn, opts)
  opts = opts or {}
  opts.order = "data"
  return (cg.capture(fn, opts))
end

describe("data order", function()
  local k, x, y, z, w

  setup(function()
    local module = cg.module(source)
    k = {}
    for _, name in ipairs { "add", "sum", "into", "of", "through", "records", "draw" } do
      k[name] = module:kernel(name)
    end
  end)

  before_each(function()
    x, y = cg.full("float", N, 1), cg.full("float", N, 2)
    z, w = cg.full("float", N, 3), cg.full("float", N, 4)
  end)

  after_each(function() x, y, z, w = nil, nil, nil, nil end)

  teardown(function()
    k = nil
    device.nothing_alive()
  end)

  local function add(to, from, a) k.add:launch(1, N, to, from, a or 1) end

  it("is an option, and issue order the default", function()
    local g = cg.graph()
    assert.equal("issue", g:options().order)
    g.order = "data"
    g:options { width = 4 }
    assert.equal("data", g:options().order)
    assert.equal(4, g:options().width)
    g.order, g.width = nil, nil
    assert.equal("issue", g:options().order)
    assert.is_nil(g:options().width)
    slips(function() cg.graph { order = "dates" } end, "order")
    slips(function() cg.graph { width = 0 } end, "width must be a whole number from 1 to 1024")
    slips(function() g:options { width = 1025 } end, "width")
  end)

  it("may be what new graphs have", function()
    assert.same({ order = "issue", plan = false }, cg.defaults())
    cg.defaults { order = "data", width = 7 }
    local g = cg.capture(function()
      add(x, w)
      add(y, w)
    end)
    local issue = cg.capture(function() add(x, w) end, { order = "issue" })
    local early = cg.graph()
    assert.same({ order = "data", width = 7, max_bytes = 4096, plan = false },
      cg.defaults { max_bytes = 4096 })
    slips(function() cg.defaults { order = "none" } end, "order")
    slips(function() cg.defaults { pool = cg.pool() } end, "unknown option \"pool\"")
    slips(function() cg.defaults { width = true } end, "width")
    assert.same({ order = "issue", plan = false },
      cg.defaults { order = "issue", width = false, max_bytes = false })
    assert.equal("1:- 2:-", edges(g))
    assert.equal("issue", issue:options().order)
    assert.same({ "data", 7 }, { early:options().order, early:options().width })
    assert.equal("issue", cg.graph():options().order)
  end)

  it("orders reads after writes and writes after reads, and no more", function()
    local g = captured(function()
      add(x, w) -- 1
      add(y, w) -- 2
      add(z, x) -- 3 reads 1
      k.sum:launch(1, N, w, x, y) -- 4 reads 1, 2, and writes what 1 and 2 read
      z:fill(0) -- 5 overwrites 3
    end)
    assert.equal("1:- 2:- 3:1 4:1,2 5:3", edges(g))
    local plan = g:plan()
    assert.same({ "data", 5, 4, 2, 3, 0 },
      { plan.order, plan.nodes, plan.edges, plan.width, plan.longest, #plan.barriers })
    g:replay()
    assert.equal(5 + 5, w:download()[1])
  end)

  it("tells parts of a buffer apart", function()
    local left, right = x:view(1, N / 2), x:view(N / 2 + 1, N / 2)
    local g = captured(function()
      left:fill(1)
      right:fill(2)
      y:copy(x)
      right:copy(z:view(1, N / 2))
      left:fill(5)
    end)
    assert.equal("1:- 2:- 3:1,2 4:3 5:3", edges(g))
  end)

  it("leaves out an edge that others imply", function()
    local g = captured(function()
      add(y, x)
      add(z, y)
      k.sum:launch(1, N, w, y, z)
      x:fill(0)
    end)
    assert.equal("1:- 2:1 3:2 4:1", edges(g))
  end)

  it("runs as many nodes beside each other as `width` says", function()
    for width = 1, 6 do
      local g = captured(function()
        for i = 1, N do x:view(i, 1):fill(i) end
      end, { width = width })
      local plan = g:plan()
      assert.equal(width, plan.width)
      assert.equal(math.ceil(N / width), plan.longest)
      g:replay()
      assert.equal(N, x:download()[N])
    end
  end)

  it("has draws of one generator side by side, and keeps their sequence", function()
    local gen = cg.generator(7)
    local function draws()
      x:uniform(gen)
      k.draw:launch(1, N, y, gen)
      z:uniform(gen)
    end
    local wanted, got = {}, {}
    for _, list in ipairs { wanted, got } do
      gen:manual_seed(7)
      local g
      if list == got then
        g = captured(draws)
        assert.equal("1:- 2:- 3:- 4:1,2,3", edges(g))
      end
      for _ = 1, 2 do
        if g then g:replay() else draws() end
        for _, b in ipairs { x, y, z } do table.insert(list, device.bits(b)) end
      end
    end
    assert.same(wanted, got)
  end)

  it("keeps the order that events ask for", function()
    local side = cg.stream()
    local g = captured(function()
      local me = cg.current_stream()
      add(x, w)
      side:wait(me)
      side:use(function()
        add(y, w) -- 2: after 1, as the script said
        add(z, w) -- 3: after what the stream waited for
      end)
      me:wait(side)
      w:fill(0)
    end)
    assert.equal("1:- 2:1 3:2 4:3", edges(g))
  end)

  it("knows the edges that events leave among the nodes of one stream", function()
    local side, e = cg.stream(), cg.event()
    -- all on a stream that joins each time: the driver has 1 -> 3, too
    local g = captured(function()
      local me = cg.current_stream()
      for _, part in ipairs { x, y, x } do
        side:wait(me)
        side:use(add, part, part)
        me:wait(side)
      end
    end)
    assert.equal(3, #g:nodes())
    g:replay()
    -- and on one that waits for what it did before
    captured(function()
      local me = cg.current_stream()
      add(x, x)
      e:record(me)
      add(y, y)
      me:wait(e)
      add(x, x)
    end):replay()
    assert.same({ 1 + 4, 2 + 2 }, { x:download()[N], y:download()[1] })
  end)

  it("orders child graphs by what is in them", function()
    local inner = captured(function()
      add(y, x)
      add(z, x)
    end)
    local g = captured(function()
      inner:replay()
      add(w, x)
      inner:replay()
      x:fill(0)
    end)
    assert.equal("1:- 2:- 3:1 4:2,3", edges(g))
  end)

  for form, wanted in pairs {
    node = "1:- 2:- 3:2 4:- 5:4 6:1,3,5",
    predicated = "1:- 2:- 3:- 4:3 5:1,2,4", -- without the node 2
  } do
    it("orders branches and loops by what is in them, form " .. form, function()
      local flag, count = cg.full("int32", 1, 1), cg.full("int32", 1, 3)
      local g = captured(function()
        add(w, x) -- 1
        cg.when(flag, function() add(y, x) end, { form = form }) -- 2, 3
        cg.times(count, function() add(z, z) end, { max = 9, form = form }) -- 4, 5
        k.sum:launch(1, N, w, y, z) -- 6
      end)
      assert.equal(wanted, edges(g))
      g:replay()
      assert.equal(2 + 6, w:download()[1])
    end)
  end

  it("goes by what the script says of a kernel", function()
    local bare = cg.kernel [[
extern "C" __global__ void bare(float *out, float *in, int n) {
  out[threadIdx.x] = in[threadIdx.x] + n;
}]]
    local function twice()
      bare:launch(1, N, y, x, 1)
      bare:launch(1, N, z, x, 2)
    end
    assert.equal("1:- 2:1", edges(captured(twice)))
    assert.equal(bare, bare:effects { ["in"] = "read", out = "write" })
    local g = captured(twice)
    assert.equal("1:- 2:-", edges(g))
    g:replay()
    assert.equal(3, z:download()[1])
    bare:effects { [2] = "update" }
    assert.equal("1:- 2:1", edges(captured(twice)))
    bare:effects { [2] = "declared" }
    assert.equal("1:- 2:1", edges(captured(twice)))
    slips(function() bare:effects { into = "read", out = "write" } end,
      "bare has no parameter 'into': its parameters are out, in, n")
    slips(function() bare:effects { out = "writes" } end, "out: an effect must be one of")
    slips(function() bare:effects { [4] = "read" } end, "bare has no parameter 4, it has 3")
    slips(function() bare:effects { [1.5] = "read" } end, "bare has no parameter 1.5")
    slips(function() bare:effects { [true] = "read" } end, "bare has no parameter")
    slips(function() bare:effects "read" end, "a table of parameters")
    local e = fails(bare.effects, bare, { ["in"] = "read", n = "read" })
    assert.truthy(e.message:find("parameter 3 of bare (int n) is no pointer", 1, true))
    assert.equal("1:- 2:1", edges(captured(twice)), "nothing of a refused table counts")
  end)

  describe("barriers", function()
    local function barrier(fn)
      local g = captured(function()
        add(x, w)
        fn()
        add(y, w)
      end)
      local list = g:plan().barriers
      assert.equal("1:- 2:1 3:2", edges(g))
      assert.equal(1, #list)
      assert.equal(2, list[1].node)
      assert.truthy(list[1].file:find("plan_spec.lua", 1, true))
      return list[1].reason, g
    end

    it("are kernels that take a raw address", function()
      assert.equal("an argument is a raw address",
        barrier(function() add(address(z), w) end))
    end)

    it("are kernels with a struct that holds an address", function()
      local p = ffi.new("struct { void *at; int n; int pad; }", address(z), N)
      local reason, g = barrier(function() k.into:launch(1, N, p, 9) end)
      assert.equal("a struct may hold an address", reason)
      g:replay()
      assert.equal(9, z:download()[1])
    end)

    it("are kernels with buffers that may hold addresses", function()
      local list = cg.from({ tonumber(z:address()) }, "uint64")
      local reason, g = barrier(function() k.through:launch(1, N, list, 8) end)
      assert.equal("a buffer may hold addresses", reason)
      g:replay()
      assert.equal(8, z:download()[1])
      local records = cg.zeros("float", 2 * N)
      assert.equal("a buffer may hold addresses",
        (barrier(function() k.records:launch(1, N, records, 8) end)))
    end)

    it("are kernels of a module with variables", function()
      local touch = cg.kernel(counting)
      assert.equal("the kernel's module has variables",
        (barrier(function() touch:launch(1, N, z) end)))
    end)

    it("are copies of a generator's state, among draws", function()
      local gen, state = cg.generator(5), cg.buffer("uint64", 2)
      local function issue()
        x:uniform(gen)
        gen:get_state(state)
        y:uniform(gen)
        gen:set_state(state)
        z:uniform(gen)
      end
      local g = captured(issue)
      for _, found in ipairs(g:plan().barriers) do
        assert.equal("the state of a generator is copied", found.reason)
      end
      assert.equal(2, #g:plan().barriers)
      gen:manual_seed(5)
      g:replay(2)
      local got = { device.bits(x), device.bits(y), device.bits(z) }
      gen:manual_seed(5)
      for _ = 1, 2 do issue() end
      assert.same({ device.bits(x), device.bits(y), device.bits(z) }, got)
      assert.equal(got[2], got[3])
    end)

    it("are external events", function()
      local e = cg.event { external = true }
      assert.equal("an external event", (barrier(function() e:record() end)))
    end)

    it("are graphs with a barrier in them", function()
      local inner = cg.capture(function() add(address(z), w) end)
      assert.equal("an argument is a raw address", (barrier(function() inner:replay() end)))
    end)

    it("are no kernels with plain structs, and none in issue order", function()
      local p = ffi.new "struct { float a; int n; }"
      local g = captured(function()
        add(x, w)
        k.of:launch(1, N, y, p)
      end)
      assert.equal("1:- 2:-", edges(g))
      assert.same({}, g:plan().barriers)
      local issue = cg.capture(function() add(address(z), w) end)
      assert.same({}, issue:plan().barriers)
      assert.equal("issue", issue:plan().order)
    end)
  end)

  it("takes a change of memory that keeps the order, and refuses another", function()
    local spare = cg.zeros("float", N)
    local g = captured(function()
      add(x, w)
      add(y, z)
    end)
    g:set_params(2, { spare })
    g:set_params(2, { nil, w })
    local e, text = fails(g.set_params, g, 2, { x })
    assert.equal("CGL_ERROR_ORDER", e.name)
    assert.truthy(text:find("kernel add, issued at .*plan_spec.lua:%d+, uses"))
    fails(g.set_params, g, 1, { nil, spare })
    g:set_params(1, { nil, y, 7 })
    g:replay()
    assert.equal(2 + 7, x:download()[1])
    assert.equal(4 + 1, spare:download()[1])
  end)

  it("takes a change between nodes that are ordered", function()
    local g = captured(function()
      add(x, w)
      add(y, x)
    end)
    g:set_params(2, { w })
    g:replay()
    assert.equal(4 + 1 + 1, w:download()[1])
  end)

  it("keeps its edges in clones of the template and in later executables", function()
    local g = captured(function()
      add(x, w)
      add(y, w)
    end, { keep_graph = true })
    g:instantiate()
    g:replay()
    g:instantiate()
    g:replay()
    assert.equal("1:- 2:-", edges(g))
    assert.equal(5, y:download()[1])
  end)

  it("tells of issue order likewise", function()
    local g = cg.capture(function()
      for _ = 1, 3 do add(x, w) end
    end)
    local plan = g:plan()
    assert.same({ "issue", 3, 2, 1, 3 },
      { plan.order, plan.nodes, plan.edges, plan.width, plan.longest })
    local empty = cg.graph()
    local e = fails(empty.plan, empty)
    assert.equal("CGL_ERROR_NOT_CAPTURED", e.name)
  end)

  it("has no edges in an empty capture", function()
    cg.on_log(nil)
    local plan = captured(function() end):plan()
    assert.same({ 0, 0, 0, 0 }, { plan.nodes, plan.edges, plan.width, plan.longest })
  end)
end)

describe("a failing driver, in data order", function()
  for _, code in ipairs { 2, 999 } do
    it("is reported clearly or survived, code " .. code, function()
      device.sweep(code, [[
        local function run()
          local add, x = cg.kernel(source, "add"), cg.zeros("float", 64)
          local g = cg.capture(function()
            for i = 1, 16 do add:launch(1, 4, x:view(4 * i - 3, 4), i, 4) end
            add:launch(2, 32, x, 1, 64)
            local me, side = cg.current_stream(), cg.stream()
            side:wait(me)
            side:use(function() add:launch(1, 4, x, 0, 4) end)
            me:wait(side)
          end, { order = "data" })
          g:replay()
          cg.synchronize()
          return x:download()[64] + g:plan().width
        end

        sweep(run, {
          right = function(sum) return sum == 17 + 16, sum end,
          calls = 50,
          raised = 40,
          names = { "cuGraphGetEdges", "cuGraphRemoveDependencies" },
        })
      ]])
    end)
  end
end)

-- Launches, copies and fills of one stream become nodes when the capture ends,
-- or when it has to know them.
describe("operations whose nodes are made late", function()
  it("blame the line that issued what the driver refuses", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      local add, x = cg.kernel(source, "add"), cg.zeros("float", 8)
      local function try(middle)
        local k, list = 0, {}
        repeat
          k = k + 1
          cg.debug.fault(k, 2)
          local ok, e = pcall(cg.capture, function()
            add:launch(1, 4, x, 1, 4)
            x:view(1, 4):copy(x:view(5, 4)) middle()
            x:fill(3)
          end, { order = "data", keep_graph = true })
          local _, hit = cg.debug.fault_count()
          cg.debug.fault(0)
          if hit == "cuGraphAddNode" then
            list[#list + 1] = e.message:match "broken by (%S+ at %S+)"
              or e.operation .. " at " .. e.where
          end
        until ok and not hit
        print((table.concat(list, ", "):gsub("%S+:", "")))
      end
      local e = cg.event()
      try(function() end)
      try(function() e:record() end)
    ]], "CGRAPHLUA_FAULT=1 CGRAPHLUA_CHECK_BUILD=0")
    local line = tonumber(out:match "at (%d+)")
    assert.equal(("launch at %d, copy at %d, fill at %d\nlaunch at %d, copy at %d\n")
      :format(line, line + 1, line + 2, line, line + 1), out .. err)
    assert.equal(0, status)
  end)
end)
