-- Every driver call fails once while a graph with every kind of branch and loop
-- is captured, instantiated and replayed: each failure is clear, nothing is left
-- alive, and the same job then succeeds.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local forms = [[
  local function run()
    local add, x = cg.kernel(source, "add"), cg.zeros("float", 4)
    local one, three = cg.from({ 1 }, "uint8"), cg.from({ 3 }, "int32")
    local generator, u = cg.generator(1), cg.zeros("float", 4)
    local inner = cg.capture(function() add:launch(1, 4, x, 1000, 4) end)
    local function bump(a) return function() add:launch(1, 4, x, a, 4) end end
    local loop
    local g = cg.graph { keep_graph = true }
    g:capture(function()
      cg.when(one, bump(1), bump(5))
      cg.switch(three, { bump(1), bump(2) }, function()
        local t = cg.zeros("float", 4)
        add:launch(1, 4, t, 1, 4)
        inner:replay()
      end)
      loop = cg.loop(one, function()
        cg.times(three, function()
          u:uniform(generator)
          bump(10)()
        end)
        one:fill(0)
      end, { max = 5 })
    end)
    g:instantiate()
    g:replay()
    assert(#g:nodes() == 7 and loop:turns() == 1 and not loop:exhausted())
    one:fill(1)
    g:instantiate()
    g:replay()
    return x:download()[1]
  end

  sweep(run, {
    right = function(sum) return sum == 2062, sum end,
    calls = 100,
    raised = 50,
    names = { "cuGraphConditionalHandleCreate", "cuGraphAddNode", "cuStreamBeginCapture",
      "cuStreamEndCapture", "cuStreamUpdateCaptureDependencies", "cuGraphInstantiateWithParams" },
  })
]]

local predicated = [[
  local function run()
    local add, x = cg.kernel(source, "add"), cg.zeros("float", 4)
    local one, three = cg.from({ 1 }, "uint8"), cg.from({ 3 }, "int32")
    local function bump(a) return function() add:launch(1, 4, x, a, 4) end end
    local form, loop = { form = "predicated" }, nil
    local g = cg.capture(function()
      cg.when(three, bump(1), form)
      loop = cg.loop(one, function()
        cg.when(one, function()
          local t = cg.buffer("float", 4)
          t:copy(x)
          t:fill(0)
          cg.switch(three, { bump(10) }, bump(100), form)
        end, bump(5), form)
      end, { form = "predicated", max = 2 })
      cg.times(three, bump(1000), form)
    end)
    g:replay()
    assert(#g:nodes() == 5 and loop:turns() == 2 and loop:exhausted())
    return x:download()[1]
  end

  sweep(run, {
    right = function(sum) return sum == 3201, sum end,
    calls = 100,
    raised = 50,
    names = { "cuGraphConditionalHandleCreate", "cuGraphAddNode", "cuStreamBeginCapture",
      "cuModuleGetFunction", "cuFuncGetAttribute", "cuStreamUpdateCaptureDependencies" },
  })
]]

-- Bodies that hold a graph and nothing else.
local children = [[
  local function run()
    local x, one = cg.zeros("float", 4), cg.from({ 1 }, "uint8")
    local inner = cg.capture(function() x:fill(3) end)
    local g = cg.capture(function()
      cg.when(one, function() inner:replay() end)
      cg.switch(one, { function() end, function() inner:replay() end })
    end)
    g:replay()
    return x:download()[1]
  end

  sweep(run, {
    right = function(first) return first == 3, first end,
    calls = 40,
    raised = 20,
    names = { "cuGraphGetEdges", "cuGraphAddNode" },
  })
]]

describe("a failing driver, while branches and loops are captured", function()
  for _, code in ipairs { 2, 900, 999 } do
    it("is reported clearly or survived, code " .. code, function()
      device.sweep(code, forms)
    end)
    it("is reported clearly or survived where bodies are graphs, code " .. code, function()
      device.sweep(code, children)
    end)
    it("is reported clearly or survived where bodies are predicated, code " .. code, function()
      device.sweep(code, predicated)
    end)
  end
end)
