-- check_input_liveness: a replay refuses to use memory that the script gave up.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

local check = { check_input_liveness = true }

-- A graph that doubles x into y.
local function doubler(x, y, opts)
  local scale = device.kernel "scale"
  return cg.capture(function() scale:launch(1, 32, x, y, 2, #y) end, opts or check)
end

local function dead(g, n, ...)
  return raises("CGL_ERROR_RELEASED", function() g:replay() end,
    ("^.-%d inputs? of the graph"):format(n), ...)
end

describe("check_input_liveness", function()
  teardown(device.nothing_alive)

  it("lets a graph replay whose inputs live", function()
    local x, y = cg.from({ 1, 2 }, "float"), cg.zeros("float", 2)
    local g = doubler(x, y)
    g:replay(3)
    assert.same({ 2, 4 }, y:download())
    cg.zeros("float", 4):release()
    g:replay()
  end)

  it("refuses a replay once an input was released, and says where", function()
    local x, y = cg.zeros("float", 3), cg.zeros("float", 3)
    local made = debug.getinfo(1, "l").currentline - 1
    local g = doubler(x, y)
    g:replay()
    x:release()
    local function replay() g:replay() end
    local e = raises("CGL_ERROR_RELEASED", replay, "1 input of the graph",
      "a buffer of 3 float", "hint: release what a graph uses after its last replay")
    local lines = {}
    for _, word in ipairs { "created", "captured", "released" } do
      local at = e.message:match("\n.-" .. word .. " at [^\n]-liveness_spec.lua:(%d+)")
      lines[#lines + 1] = at - made
    end
    assert.same({ 0, 4 }, { lines[1], lines[3] })
    assert.is_true(lines[2] < 0) -- in doubler, above
    assert.equal(made + 5, tonumber(e.where:match "%d+$"))
    dead(g, 1)
    assert.same({ 0, 0, 0 }, y:download())
  end)

  it("is off unless asked for: the graph keeps what it uses", function()
    local x, y = cg.from({ 1, 2 }, "float"), cg.zeros("float", 2)
    local g = doubler(x, y, {})
    x:release()
    collectgarbage()
    g:replay()
    assert.same({ 2, 4 }, y:download())
    assert.is_false(g:options().check_input_liveness)
  end)

  it("does not mind what the collector takes: the graph keeps it", function()
    local y = cg.zeros("float", 2)
    local g = doubler(cg.from({ 1, 2 }, "float"), y)
    collectgarbage()
    collectgarbage()
    g:replay()
    assert.same({ 2, 4 }, y:download())
  end)

  it("counts all and shows five", function()
    local add, list = device.kernel "add", {}
    for i = 1, 8 do list[i] = cg.zeros("float", i) end
    local g = cg.capture(function()
      for i = 1, 8 do add:launch(1, 32, list[i], 1, i) end
    end, check)
    for i = 1, 8 do list[i]:release() end
    local e = dead(g, 8, "were released", "a buffer of 1 float", "a buffer of 5 float",
      "and 3 more")
    assert.is_nil(e.message:find("a buffer of 6 float", 1, true))
    local _, n = e.message:gsub("created at", "")
    assert.equal(5, n)
  end)

  it("watches memory that the capture writes, too", function()
    local x, y = cg.zeros("float", 2), cg.zeros("float", 2)
    local g = doubler(x, y)
    y:release()
    dead(g, 1)
    local to = cg.zeros("float", 2)
    g = cg.capture(function() to:fill(1) end, check)
    to:release()
    dead(g, 1)
  end)

  it("watches borrowed addresses", function()
    local x, y = cg.from({ 3 }, "float"), cg.zeros("float", 1)
    local lent = cg.buffer_from(x:address(), "float", 1)
    local g = doubler(lent, y)
    g:replay()
    assert.same({ 6 }, y:download())
    lent:release()
    dead(g, 1, "a borrowed buffer of 1 float")
    assert.same({ 3 }, x:download())
  end)

  it("watches pinned memory", function()
    local p, y = cg.pinned("float", 4), cg.zeros("float", 4)
    local g = cg.capture(function() y:copy(p) end, check)
    g:replay()
    cg.synchronize()
    p:release()
    dead(g, 1, "pinned memory of 4 float")
  end)

  it("takes a view for its buffer", function()
    local base, y = cg.from({ 1, 2, 3, 4 }, "float"), cg.zeros("float", 2)
    local view = base:view(2, 2)
    local g = doubler(view, y)
    view:release()
    g:replay()
    assert.same({ 4, 6 }, y:download())
    base:release()
    dead(g, 1, "a buffer of 4 float")
  end)

  it("lets a view hold its buffer's memory", function()
    local base, y = cg.from({ 1, 2, 3, 4 }, "float"), cg.zeros("float", 2)
    local view, other = base:view(2, 2), base:view(1, 1)
    local g = doubler(view, y)
    base:release()
    g:replay()
    view:release()
    g:replay()
    assert.same({ 4, 6 }, y:download())
    other:release()
    dead(g, 1)
    -- The buffer goes before the capture, its view after.
    base = cg.from({ 1, 2, 3, 4 }, "float")
    view = base:view(2, 2)
    base:release()
    g = doubler(view, y)
    g:replay()
    view:release()
    dead(g, 1, "released at [^\n]*liveness_spec.lua")
  end)

  it("exempts what the capture itself allocates", function()
    local x, out = cg.from({ 1, 2 }, "float"), nil
    local scale = device.kernel "scale"
    local g = cg.capture(function()
      local scratch = cg.buffer("float", 2)
      scale:launch(1, 32, x, scratch, 2, 2)
      out = cg.buffer("float", 2)
      scale:launch(1, 32, scratch, out, 2, 2)
      scratch:release()
    end, check)
    g:replay()
    assert.same({ 4, 8 }, out:download())
    out:release()
    g:replay()
    cg.synchronize()
  end)

  it("exempts blocks of a pool that captures share", function()
    local pool = cg.pool()
    local x, made, y = cg.from({ 1, 2 }, "float"), nil, cg.zeros("float", 2)
    local scale = device.kernel "scale"
    local g1 = cg.capture(function()
      made = cg.buffer("float", 2)
      scale:launch(1, 32, x, made, 2, 2)
    end, { pool = pool })
    local g2 = doubler(made, y, { pool = pool, check_input_liveness = true })
    made:release()
    g1:replay()
    g2:replay()
    assert.same({ 4, 8 }, y:download())
  end)

  it("exempts empty buffers, and what other streams touch", function()
    local x, y, z = cg.from({ 1, 2 }, "float"), cg.zeros("float", 2), cg.zeros("float", 2)
    local empty, side = cg.buffer("float", 0), cg.stream()
    local scale = device.kernel "scale"
    local g = cg.capture(function()
      scale:launch(1, 32, x, y, 2, 2)
      scale:launch(1, 32, empty, y, 2, 0)
      side:use(function() z:fill(5) end)
    end, check)
    empty:release()
    z:release()
    g:replay()
    assert.same({ 2, 4 }, y:download())
  end)

  it("exempts a module's variables, which live with the module", function()
    local m = cg.module [[
      __device__ float a[2];
      extern "C" __global__ void put(float *y) { y[0] = a[0]; }
    ]]
    local a, y, put = m:global("a", "float"), cg.zeros("float", 2), m:kernel "put"
    a:upload { 5, 6 }
    local g = cg.capture(function()
      y:copy(a)
      put:launch(1, 1, y)
    end, check)
    a:release()
    m:release()
    g:replay()
    assert.same({ 5, 6 }, y:download())
  end)

  it("watches the inputs of graphs within the graph", function()
    local x, y = cg.from({ 1, 2 }, "float"), cg.zeros("float", 2)
    local inner = doubler(x, y, {})
    local middle = cg.capture(function() inner:replay(2) end)
    local outer = cg.capture(function() middle:replay() end, check)
    inner:reset()
    middle:release()
    outer:replay()
    assert.same({ 2, 4 }, y:download())
    x:release()
    dead(outer, 1, "a buffer of 2 float")
  end)

  it("starts anew with the next capture", function()
    local x, y = cg.zeros("float", 2), cg.zeros("float", 2)
    local g = doubler(x, y)
    x:release()
    dead(g, 1)
    g:reset()
    local z, scale = cg.from({ 1, 2 }, "float"), device.kernel "scale"
    g:capture(function() scale:launch(1, 32, z, y, 3, 2) end)
    g:replay()
    assert.same({ 3, 6 }, y:download())
    z:release()
    dead(g, 1)
  end)

  it("notices a release between the use and the end of the capture", function()
    local x, y = cg.zeros("float", 2), cg.zeros("float", 2)
    local scale = device.kernel "scale"
    local g = cg.capture(function()
      scale:launch(1, 32, x, y, 2, 2)
      x:release()
    end, check)
    dead(g, 1)
  end)

  it("notices what a start hook releases, and lets end hooks run", function()
    local x, y = cg.zeros("float", 2), cg.zeros("float", 2)
    local g, ended = doubler(x, y), 0
    g:register_replay_start_hook(function() x:release() end)
    g:register_replay_end_hook(function() ended = ended + 1 end)
    dead(g, 1)
    assert.equal(1, ended)
  end)

  it("is an option of graphs and captures, and a field", function()
    local x, y = cg.zeros("float", 2), cg.zeros("float", 2)
    local scale = device.kernel "scale"
    local function body() scale:launch(1, 32, x, y, 2, 2) end
    local graphs = {
      cg.graph(check):capture(body),
      cg.graph():capture(body, check),
      cg.capture(body, check),
    }
    local g, s = cg.graph(), cg.stream()
    g:capture_begin { stream = s, check_input_liveness = true }
    s:use(body)
    g:capture_end()
    graphs[#graphs + 1] = g
    local h = cg.graph()
    h.check_input_liveness = true
    graphs[#graphs + 1] = h:capture(body)
    x:release()
    for _, each in ipairs(graphs) do
      assert.is_true(each:options().check_input_liveness)
      dead(each, 1)
    end
    slips(function() cg.graph { check_input_liveness = "yes" } end, "check_input_liveness")
  end)
end)
