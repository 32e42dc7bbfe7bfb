-- What a script says about the operations of a capture.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

local on = { annotations = true }

-- The labels of a graph's nodes; "-" for none.
local function labels(g)
  local list = {}
  for i, node in ipairs(g:nodes()) do list[i] = node.label or "-" end
  return table.concat(list, " ")
end

describe("annotations", function()
  local x

  before_each(function() x = cg.zeros("float", 4) end)
  after_each(function() x = nil end)
  teardown(device.nothing_alive)

  it("label what is captured in their scope, launches, fills and copies", function()
    local add, y, p = device.kernel "add", cg.zeros("float", 4), cg.pinned("float", 4)
    local g = cg.graph(on)
    g:capture(function()
      x:fill(1)
      g:annotate("first", function()
        add:launch(1, 32, x, 1, 4)
        y:copy(x)
        y:fill(2)
      end)
      g:annotate("second", function() p:copy(y) end)
      x:fill(3)
    end)
    assert.equal("- first first first second -", labels(g))
    local node = g:nodes()[2]
    assert.same({ label = "first" }, node.annotations)
    assert.is_nil(g:nodes()[1].annotations)
    g:replay()
    assert.equal(3, x:download()[1])
  end)

  it("may be a table of texts, numbers and booleans", function()
    local g = cg.graph(on)
    g:capture(function()
      g:annotate({ phase = "backward", layer = 3, frozen = false, last = true },
        function() x:fill(1) end)
      g:annotate({ label = "named", bytes = 2 ^ 40 }, function() x:fill(1) end)
    end)
    local nodes = g:nodes()
    assert.same({ phase = "backward", layer = 3, frozen = false, last = true },
      nodes[1].annotations)
    assert.is_nil(nodes[1].label)
    assert.same({ label = "named", bytes = 2 ^ 40 }, nodes[2].annotations)
    assert.equal("named", nodes[2].label)
  end)

  it("of nested scopes merge, and the inner one wins", function()
    local g = cg.graph(on)
    g:capture(function()
      g:annotate({ label = "outer", layer = 1, phase = "forward" }, function()
        x:fill(1)
        g:annotate({ layer = 2 }, function()
          x:fill(1)
          g:annotate("inner", function() x:fill(1) end)
        end)
        x:fill(1)
      end)
    end)
    local nodes = g:nodes()
    assert.equal("outer outer inner outer", labels(g))
    assert.same({ label = "outer", layer = 1, phase = "forward" }, nodes[1].annotations)
    assert.same({ label = "outer", layer = 2, phase = "forward" }, nodes[2].annotations)
    assert.same({ label = "inner", layer = 2, phase = "forward" }, nodes[3].annotations)
    assert.same(nodes[1].annotations, nodes[4].annotations)
  end)

  it("pass arguments and results through", function()
    local g = cg.graph(on)
    local function same(...) return select("#", ...), ... end
    g:capture(function()
      assert.same({ 3, 1, nil, "c" }, { g:annotate("a", same, 1, nil, "c") })
      assert.same({ 0 }, { g:annotate("a", same) })
    end)
    assert.same({ 1, 5 }, { cg.mark_kernels("a", same, 5) })
  end)

  it("end with their function, also when it raises", function()
    local g = cg.graph(on)
    local own = {}
    g:capture(function()
      local ok, e = pcall(g.annotate, g, "broken", function()
        x:fill(1)
        error(own)
      end)
      assert.is_false(ok)
      assert.equal(own, e)
      x:fill(1)
    end)
    assert.equal("broken -", labels(g))
    assert.matches("yield", (device.fails(g.annotate, g, "a", coroutine.yield)))
  end)

  it("go with the forks of a capture", function()
    local g, side = cg.graph(on), cg.stream()
    local y = cg.zeros("float", 4)
    g:capture(function()
      g:annotate("both", function()
        side:wait(cg.current_stream())
        side:use(function() y:fill(1) end)
        x:fill(1)
        cg.current_stream():wait(side)
      end)
    end)
    assert.equal("both both", labels(g))
  end)

  it("are noted only when the graph asks for it", function()
    for _, off in ipairs { {}, { annotations = false }, { enable_annotations = false } } do
      local g = cg.graph(off)
      local ran
      g:capture(function()
        g:annotate("lost", function()
          x:fill(1)
          ran = true
        end)
      end)
      assert.is_true(ran)
      assert.equal("-", labels(g))
      assert.is_nil(g:nodes()[1].annotations)
    end
  end)

  it("are an option of graphs and captures, under torch's name too", function()
    local function body() cg.mark_kernels("a", function() x:fill(1) end) end
    assert.equal("a", labels(cg.capture(body, on)))
    assert.equal("a", labels(cg.capture(body, { enable_annotations = true })))
    assert.equal("a", labels(cg.graph():capture(body, on)))
    local g, s = cg.graph(), cg.stream()
    g:capture_begin { stream = s, enable_annotations = true }
    s:use(body)
    g:capture_end()
    assert.equal("a", labels(g))
    assert.is_true(g:options().annotations)
    local h = cg.graph()
    h.annotations = true
    assert.equal("a", labels(h:capture(body)))
    slips(function() cg.graph { annotations = "yes" } end, "nvtx", '"yes"')
    slips(function() cg.graph { enable_annotations = 1 } end, "annotations")
  end)

  it("by cg.mark_kernels go to the graph that captures the current stream", function()
    local ran = 0
    cg.mark_kernels("outside", function() ran = ran + 1 end)
    local g = cg.capture(function()
      cg.mark_kernels({ label = "inside" }, function() x:fill(1) end)
    end, on)
    assert.equal(1, ran)
    assert.equal("inside", labels(g))
  end)

  it("outside a capture, or of a graph that does not capture, change nothing", function()
    local g, h = cg.graph(on), cg.graph(on)
    g:annotate("early", function() x:fill(1) end)
    g:capture(function()
      h:annotate("another graph's", function() x:fill(2) end)
    end)
    g:annotate("late", function() x:fill(3) end)
    assert.equal("-", labels(g))
    assert.equal(3, x:download()[1])
  end)

  it("stay with their graph when others capture, until it captures anew", function()
    local g, h = cg.graph(on), cg.graph(on)
    g:capture(function() g:annotate("mine", function() x:fill(1) end) end)
    h:capture(function() h:annotate("other", function() x:fill(1) end) end)
    g:replay()
    assert.equal("mine", labels(g))
    g:reset()
    g:capture(function() x:fill(1) end)
    assert.equal("-", labels(g))
    assert.equal("other", labels(h))
  end)

  it("are cleared when asked to", function()
    local g = cg.graph(on)
    g:capture(function()
      g:annotate("gone", function() x:fill(1) end)
      g:clear_annotations()
      g:annotate("kept", function() x:fill(1) end)
    end)
    assert.equal("- kept", labels(g))
    g:clear_annotations()
    assert.equal("- -", labels(g))
  end)

  it("survive a capture that ends inside them, or breaks", function()
    local g, s = cg.graph(on), cg.stream()
    s:use(function()
      g:capture_begin()
      g:annotate("cut", function()
        x:fill(1)
        g:capture_end()
      end)
      assert.equal("cut", labels(g))
      g:reset()
      g:capture_begin()
      g:annotate("lost", function() g:reset() end)
      g:capture_begin()
      x:fill(1)
      g:capture_end()
    end)
    assert.equal("-", labels(g))
    g:annotate("a", function() g:release() end)
    local h = cg.graph(on)
    raises("CGL_ERROR_RELEASED", function()
      h:capture(function() h:annotate("b", function() h:release() end) end)
    end, "released in its own capture")
    collectgarbage()
  end)

  it("label the replay of another graph as one", function()
    local inner = cg.capture(function()
      cg.mark_kernels("inner", function() x:fill(1) end)
    end, on)
    local outer = cg.graph(on)
    outer:capture(function()
      outer:annotate("outer", function() inner:replay() end)
    end)
    assert.equal("outer", labels(outer))
    assert.equal("inner", labels(inner))
  end)

  it("refuse what cannot be one", function()
    local g = cg.graph(on)
    slips(function() g:annotate(5, print) end, "a label or a table")
    slips(function() g:annotate("a") end, "function expected")
    slips(function() g:annotate({ 5 }, print) end, "names of annotations must be strings")
    slips(function() g:annotate({ a = print }, print) end, "annotation 'a' must be")
    local many = {}
    for i = 1, 33 do many["k" .. i] = i end
    slips(function() g:annotate(many, print) end, "more than 32")
    slips(function() cg.mark_kernels(nil, print) end, "a label or a table")
    g:release()
    raises("CGL_ERROR_RELEASED", function() g:annotate("a", print) end)
  end)

  it("hold many and long texts", function()
    local g, long = cg.graph(on), ("x"):rep(10000)
    g:capture(function()
      for i = 1, 200 do
        g:annotate({ label = "step " .. i, text = long }, function() x:fill(i) end)
      end
    end)
    local nodes = g:nodes()
    assert.equal("step 117", nodes[117].label)
    assert.equal(long, nodes[200].annotations.text)
  end)

  it("and other scopes in one another end in a stack overflow", function()
    local status, out, err = device.child [[
      cg.on_log(nil)
      local g, stream, pool = cg.graph { annotations = true }, cg.stream(), cg.pool()
      local function marked() cg.mark_kernels("x", marked) end
      local function used() stream:use(used) end
      local function pooled() pool:use(function() stream:use(pooled) end) end
      local function annotated() g:annotate({ a = 1, b = "c" }, annotated) end
      for _, fn in ipairs { marked, used, pooled, annotated } do
        print(select(2, pcall(fn)):match "stack overflow")
      end
      print(select(2, pcall(g.capture, g, annotated)):match "stack overflow")
      -- A deep script is no endless one.
      local function deep(n) return n == 0 and "deep" or stream:use(deep, n - 1) end
      print(deep(900))]]
    assert.same({ 0, ("stack overflow\n"):rep(5) .. "deep\n", "" }, { status, out, err })
  end)

  it("name ranges for profilers where the build has them", function()
    local ok, e = pcall(cg.graph, { annotations = "nvtx" })
    if not ok then
      assert.equal("CGL_ERROR_NOT_FOUND", e.name)
      assert.matches("nvToolsExt.h", e.message)
      return
    end
    local g = e
    assert.equal("nvtx", g:options().annotations)
    g:capture(function() g:annotate("ranged", function() x:fill(4) end) end)
    g:replay(3)
    assert.equal("ranged", labels(g))
    assert.equal(4, x:download()[1])
  end)
end)
