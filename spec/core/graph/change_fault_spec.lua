-- Every driver call fails once while nodes of a graph are changed, switched off
-- and on: each change is made whole or not at all.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local changes = [[
  local function run()
    local add, x, y = cg.kernel(source, "add"), cg.zeros("float", 4), cg.zeros("float", 4)
    local z, w, v = cg.zeros("float", 4), cg.zeros("float", 4), cg.zeros("float", 4)
    local g = cg.capture(function()
      add:launch(1, 4, x, 1, 4)
      add:launch(1, 4, x, 1, 4)
      z:fill(1)
      w:copy(z)
    end, { keep_graph = true })
    g:set_params(1, { [2] = 10 })
    g:replay()
    g:set_params(2, { y, 5 })
    g:set_params(3, { value = 7, buffer = v })
    g:set_params(4, { from = v })
    g:set_enabled(1, false)
    g:instantiate()
    g:replay()
    g:set_enabled(1, true)
    g:set_params(1, { [2] = 100 })
    local h = cg.capture(function() g:replay() end)
    h:replay()
    assert(w:download()[1] == 7)
    return x:download()[1] * 1000 + y:download()[1]
  end

  sweep(run, {
    right = function(sum) return sum == 111010, sum end,
    calls = 30,
    raised = 20,
    names = { "cuGraphExecKernelNodeSetParams", "cuGraphNodeSetParams", "cuGraphNodeSetEnabled",
      "cuGraphExecNodeSetParams" },
  })
]]

describe("a failing driver, while nodes are changed", function()
  for _, code in ipairs { 2, 1, 999 } do
    it("is reported clearly or survived, code " .. code, function()
      device.sweep(code, changes)
    end)
  end
end)
