-- Predicated bodies: which form a capture takes, what a graph knows of their
-- kernels, and how often they run.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local fails = device.fails

local source = [[
extern "C" __global__ void add(int *x, int a) { *x += a; }
extern "C" __global__ void next(int *x, int *f, int below) { *f = ++*x < below; }
extern "C" __global__ void wide(int *x, int *f, int below) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *f = ++*x < below;
}
extern "C" __global__ void less(int *f, const int *x, int below) { *f = *x < below; }
extern "C" __global__ void small(unsigned char *f, const int *x, int below) { *f = *x < below; }
extern "C" __global__ void ramp(int *t, int n, int a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[i] += i + a;
}
extern "C" __global__ void ends(int *x, const int *t, int n) { *x += t[0] + t[n - 1]; }]]

local module, x, flag
local function launch(name, ...) module:kernel(name):launch(1, 1, ...) end
local function bump(a) return function() launch("add", x, a) end end
local function value() return x:download()[1] end

-- "kernel kernel:predicated conditional:node"
local function forms(g)
  local list = {}
  for i, node in ipairs(g:nodes()) do
    list[i] = node.kind .. (node.form and ":" .. node.form or "")
  end
  return table.concat(list, " ")
end

describe("a predicated body", function()
  setup(function()
    module = cg.module(source)
    x, flag = cg.zeros("int32", 1), cg.zeros("int32", 1)
  end)
  before_each(function()
    x:fill(0)
    flag:fill(1)
  end)
  teardown(function()
    module, x, flag = nil, nil, nil
    device.nothing_alive()
  end)

  -- ---- which form ----

  it("of one kernel is one kernel, which looks at the flag", function()
    local g = cg.capture(function() cg.when(flag, bump(1)) end)
    assert.equal("kernel:predicated", forms(g))
    for i = 1, 3 do
      flag:fill(i % 2)
      g:replay()
    end
    assert.equal(2, value())
  end)

  it("that changes its flag looks at a word that is written before", function()
    local g = cg.capture(function()
      cg.when(flag, function()
        launch("add", flag, -1)
        bump(1)()
      end, bump(10))
    end)
    assert.equal("kernel kernel:predicated kernel:predicated kernel:predicated", forms(g))
    g:replay()
    g:replay()
    assert.equal(11, value())
    assert.equal("when", g:nodes()[1].name)
    assert.same({ 3 }, g:nodes()[4].dependencies)
  end)

  it("that may change its flag by an address looks at a word too", function()
    local pair = cg.kernel [[
      struct pair { int *p; int a; };
      extern "C" __global__ void both(pair q) { *q.p += q.a; }]]
    local scalar = cg.kernel [[
      struct two { int a, b; };
      extern "C" __global__ void sum(int *x, two t) { *x += t.a + t.b; }]]
    for wanted, body in pairs {
      ["kernel kernel:predicated"] = function() pair:launch(1, 1, { p = cg.null, a = 1 }) end,
      ["kernel:predicated"] = function() scalar:launch(1, 1, x, { a = 1, b = 2 }) end,
    } do
      assert.equal(wanted, forms(cg.capture(function() cg.when(flag, body) end)))
    end
  end)

  it("is taken for up to eight kernels, and a node beyond", function()
    local function kernels(n)
      return function() for _ = 1, n do bump(1)() end end
    end
    assert.equal("kernel conditional:node", forms(cg.capture(function()
      cg.when(flag, kernels(9))
    end)))
    assert.equal("kernel conditional:node", forms(cg.capture(function()
      cg.switch(flag, { kernels(4), kernels(5) })
    end)))
    assert.equal("kernel conditional:node", forms(cg.capture(function()
      cg.when(flag, function() module:kernel "add":launch(8192, 1, x, 1) end)
    end)))
    assert.equal(8, #cg.capture(function() cg.when(flag, kernels(8)) end):nodes())
    assert.equal(10, #cg.capture(function()
      cg.when(flag, kernels(10), { form = "predicated" })
    end):nodes())
  end)

  it("is a node when the script says so", function()
    local g = cg.capture(function()
      cg.when(flag, bump(1), { form = "node" })
      cg.switch(flag, { bump(1) }, bump(2), { form = "node" })
      cg.loop(flag, function() launch("add", flag, -1) end, { form = "node" })
    end)
    assert.equal(("kernel conditional:node "):rep(3):sub(1, -2), forms(g))
    g:replay()
    assert.equal(3, value())
  end)

  it("takes the form outside a capture without a word", function()
    cg.when(flag, bump(1), nil, { form = "predicated" })
    cg.switch(flag, { bump(1), bump(2) }, { form = "node" })
    assert.equal(3, value())
    local _, text = fails(cg.when, flag, bump(1), { form = "fast" })
    assert.truthy(text:find "predicated", text)
    _, text = fails(cg.when, flag, bump(1), { max = 1 })
    assert.truthy(text:find "unknown option", text)
  end)

  local function refused(name, body, why)
    it("refuses " .. name .. ", names it, and leaves the capture whole", function()
      local inner, line = body()
      local g = cg.capture(function()
        bump(1)()
        local e = fails(cg.when, flag, inner, { form = "predicated" })
        assert.equal("CGL_ERROR_INVALID_ARGUMENT", e.name)
        assert.truthy(e.message:find(why, 1, true), e.message)
        assert.truthy(e.message:find("predicated_spec.lua:" .. line, 1, true), e.message)
        bump(2)()
      end)
      assert.equal("kernel kernel", forms(g))
      -- By itself it is a node.
      assert.equal("kernel conditional:node", forms(cg.capture(function()
        cg.when(flag, inner)
      end)))
    end)
  end

  local function line() return debug.getinfo(2, "l").currentline end

  refused("a copy with pinned memory", function()
    local p = cg.pinned("int32", 1)
    return function() x:copy(p) end, line()
  end, "buffer:copy")

  it("fills eight bytes whose halves differ", function()
    local yes, y = cg.full("int32", 1, 1), cg.zeros("double", 5)
    local g = cg.capture(function()
      cg.when(yes, function() y:view(2, 3):fill(1 / 3) end, { form = "predicated" })
    end)
    g:replay()
    assert.same({ 0, 1 / 3, 1 / 3, 1 / 3, 0 }, y:download())
  end)
  refused("a replay of a graph", function()
    local g = cg.capture(bump(1))
    return function() g:replay() end, line()
  end, "graph")
  refused("draws", function()
    local u, generator = cg.zeros("float", 8), cg.generator(1)
    return function() u:uniform(generator) end, line()
  end, "draws random numbers")
  refused("a node form inside", function()
    return function() cg.when(flag, bump(1), { form = "node" }) end, line()
  end, "it is a node of its own")
  refused("a loop inside", function()
    return function() cg.times(flag, bump(1)) end, line()
  end, "times")
  refused("a kernel whose module has variables", function()
    local k = cg.kernel [[
      __device__ int count;
      extern "C" __global__ void counts(int *x) { *x = ++count; }]]
    return function() k:launch(1, 1, x) end, line()
  end, "variables")

  -- ---- how often ----

  -- A program of three forms, from x = 0, does the same.
  local function same(start, program)
    local results = {}
    for i, form in ipairs { "eager", "node", "predicated", "automatic" } do
      x:fill(0)
      start()
      local loop
      if i == 1 then
        loop = program "automatic"
      else
        local g = cg.capture(function() loop = program(form) end)
        x:fill(0)
        start()
        g:replay()
        if form == "predicated" then
          assert.equal("predicated", g:nodes()[2].form)
        end
      end
      results[i] = ("%d %d %s"):format(value(), loop:turns(), tostring(loop:exhausted()))
      assert.equal(results[1], results[i], form)
    end
    return results[1]
  end

  local counts = { 0, 1, 21, 22, 31, 32, 33, 97 }

  local bodies = {
    ["of one kernel that changes the flag"] = function(below) launch("next", x, flag, below) end,
    ["of many blocks that change the flag"] = function(below)
      module:kernel "wide":launch(7, 32, x, flag, below)
    end,
    ["of two kernels"] = function(below)
      launch("add", x, 1)
      launch("less", flag, x, below)
    end,
    ["that forks at once"] = function(below, side, y)
      local main = cg.current_stream()
      side:wait(main)
      side:use(function() launch("add", y, 1) end)
      launch("add", x, 1)
      main:wait(side)
      launch("less", flag, x, below)
    end,
    ["with branches in it"] = function(below)
      cg.when(flag, function()
        launch("add", x, 1)
        launch("less", flag, x, below)
      end, bump(1000))
    end,
    ["with memory of its own"] = function(below)
      local t = cg.buffer("int32", 2000)
      module:kernel "ramp":launch(2, 1000, t, 2000, 0)
      t:release()
      launch("next", x, flag, below)
    end,
  }
  for name, body in pairs(bodies) do
    it("turns as often as its flag says, in a loop " .. name, function()
      local side, y = cg.stream(), cg.zeros("int32", 1)
      for _, n in ipairs(counts) do
        for _, max in ipairs { 40, 1000 } do
          local got = same(function() flag:fill(n > 0 and 1 or 0) end, function(form)
            return cg.loop(flag, function() body(n, side, y) end, { form = form, max = max })
          end)
          local turns = math.min(n, max)
          assert.equal(("%d %d %s"):format(turns, turns, tostring(n > max)), got)
        end
      end
    end)
  end

  it("turns as often as a count says", function()
    for _, n in ipairs(counts) do
      local got = same(function() flag:fill(n) end, function(form)
        return cg.times(flag, function()
          launch("add", flag, -1)
          bump(2)()
        end, { form = form, max = 96 })
      end)
      assert.equal(("%d %d %s"):format(2 * math.min(n, 96), math.min(n, 96), tostring(n > 96)), got)
    end
  end)

  it("turns by a flag of every type", function()
    local f = cg.zeros("uint8", 1)
    for _, n in ipairs(counts) do
      assert.equal(("%d %d false"):format(n, n), same(function() f:fill(n > 0 and 1 or 0) end,
        function(form)
          return cg.loop(f, function()
            launch("add", x, 1)
            launch("small", f, x, n)
          end, { form = form })
        end))
    end
  end)

  it("without work turns too", function()
    flag:fill(50)
    local loop
    local g = cg.capture(function()
      loop = cg.times(flag, function() end, { form = "predicated", max = 45 })
    end)
    g:replay()
    assert.equal(45, loop:turns())
    assert.is_true(loop:exhausted())
  end)

  it("counts again in every replay", function()
    local loop
    local g = cg.capture(function()
      loop = cg.loop(flag, function() launch("next", x, flag, 100) end, { max = 33 })
    end)
    for _, turns in ipairs { 33, 33, 33, 1, 0 } do
      g:replay()
      assert.equal(turns, loop:turns())
    end
    assert.is_false(loop:exhausted())
    assert.equal(100, value())
  end)

  it("copies and fills as kernels do", function()
    for _, type in ipairs { "uint8", "int16", "float", "double" } do
      local list = {}
      for i = 1, 5000 do list[i] = i % 100 end
      local from = cg.from(list, type)
      for _, n in ipairs { 1, 3, 16, 17, 4097 } do
        for at = 1, 3 do
          local function body(to)
            return function()
              to:view(at, n):copy(from:view(4 - at, n))
              to:view(at, math.ceil(n / 2)):fill(type == "double" and 0 or 3)
            end
          end
          local eager, captured = cg.zeros(type, 5000), cg.zeros(type, 5000)
          local g = cg.capture(function() cg.when(flag, body(captured)) end)
          assert.equal("kernel:predicated kernel:predicated", forms(g))
          assert.equal("buffer:copy buffer:fill", g:nodes()[1].name .. " " .. g:nodes()[2].name)
          body(eager)()
          g:replay()
          assert.same(eager:download(), captured:download())
        end
      end
    end
  end)

  it("copies and fills again in every turn", function()
    local y = cg.zeros("int32", 1)
    assert.equal("70 70 false", same(function() flag:fill(70) end, function(form)
      return cg.times(flag, function()
        y:copy(x)
        x:fill(9)
        launch("add", y, 1)
        x:copy(y)
      end, { form = form })
    end))
  end)

  -- ---- its kernels are nodes ----

  it("lets its kernels be changed and switched off", function()
    local g = cg.capture(function() cg.when(flag, bump(1)) end)
    g:set_params(1, { [2] = 5 })
    g:replay()
    assert.equal(5, value())
    flag:fill(0)
    g:replay()
    assert.equal(5, value())
    flag:fill(1)
    g:set_enabled(1, false)
    g:replay()
    assert.equal(5, value())
    g:set_enabled(1, true)
    g:set_params(1, { [2] = 2 })
    g:replay()
    assert.equal(7, value())
  end)

  it("does not let its kernels write what they look at", function()
    local g = cg.capture(function() cg.when(flag, bump(1)) end)
    local e = fails(g.set_params, g, 1, { flag })
    assert.truthy(e.message:find("decides whether the kernel runs", 1, true))
    g:replay()
    assert.equal(1, value())
  end)

  it("keeps the kernel that writes its words as it is", function()
    local g = cg.capture(function() cg.when(flag, bump(1), bump(2)) end)
    for _, call in ipairs { "set_enabled", "set_params" } do
      local e = fails(g[call], g, 1, call == "set_params" and {} or false)
      assert.truthy(e.hint:find "stay as they were captured")
    end
  end)

  it("may be in a child graph", function()
    local inner = cg.capture(function() cg.when(flag, bump(1), bump(10)) end)
    local g = cg.capture(function()
      inner:replay()
      launch("add", flag, -1)
      inner:replay()
    end)
    g:replay()
    assert.equal(11, value())
    assert.equal(3, #g:nodes())
  end)

  it("may leave what its kernel writes as it was", function()
    local pool, out = cg.pool()
    local fill = cg.capture(function() out = cg.full("int32", 1, 7) end, { pool = pool })
    local maybe = cg.capture(function()
      cg.when(flag, function() launch("add", out, 1) end)
      launch("ends", x, out, 1)
    end, { pool = pool })
    local e = fails(maybe.replay, maybe)
    assert.equal("CGL_ERROR_ORDER", e.name)
    fill:replay()
    maybe:replay()
    assert.equal(16, value())
  end)

  it("uses memory of the capture, and no other's", function()
    local function part(a)
      return function()
        local t = cg.zeros("int32", 3000)
        module:kernel "ramp":launch(3, 1000, t, 3000, a)
        launch("ends", x, t, 3000)
      end
    end
    flag:fill(1)
    local g = cg.capture(function()
      for a = 1, 4 do cg.when(flag, part(a), part(100 * a), { form = "automatic" }) end
    end)
    g:replay()
    assert.equal(4 * 2999 + 2 * 10, value())
  end)

  it("has its annotations", function()
    local g = cg.capture(function()
      cg.mark_kernels("outer", function()
        cg.when(flag, function() cg.mark_kernels("inner", bump(1)) end)
      end)
    end, { annotations = true })
    assert.equal("inner", g:nodes()[1].label)
    g:clear_annotations()
    assert.is_nil(g:nodes()[1].label)
  end)

  it("says so in the picture", function()
    local path = os.tmpname() .. ".dot"
    for form, wanted in pairs { node = 0, predicated = 1 } do
      cg.capture(function() cg.when(flag, bump(1), { form = form }) end):debug_dump(path)
      assert.equal(wanted, select(2, device.program.read(path):gsub("\\npredicated\"", "")))
    end
    os.remove(path)
  end)

  it("knows its inputs", function()
    local y = cg.full("int32", 1, 3)
    local g = cg.capture(function() cg.when(flag, function() launch("ends", x, y, 1) end) end,
      { check_input_liveness = true })
    g:replay()
    assert.equal(6, value())
    y:release()
    assert.equal("CGL_ERROR_RELEASED", fails(g.replay, g).name)
  end)

  it("runs in long loops of replays", function()
    local g = cg.capture(function() cg.when(flag, bump(1), bump(2)) end)
    g:replay(1000)
    flag:fill(0)
    g:replay(1000)
    assert.equal(3000, value())
  end)
end)
