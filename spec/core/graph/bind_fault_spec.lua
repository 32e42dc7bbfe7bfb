-- Every driver call fails once while inputs are exchanged: a replay that is
-- refused leaves what the next one takes up, and nothing stays alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local changes = [[
  local function run()
    local add, y = cg.kernel(source, "add"), cg.zeros("float", 4)
    local x, z = cg.input("float", 4, "x"), cg.zeros("float", 4)
    local one, ten = cg.full("float", 4, 1), cg.full("float", 4, 10)
    local on = cg.full("int32", 1, 1)
    local g = cg.capture(function()
      add:launch(1, 4, x, 1, 4)
      z:copy(x)
    end, { keep_graph = true })
    local h = cg.capture(function()
      g:replay()
      cg.when(on, function() add:launch(1, 4, x, 1, 4) end, nil, { form = "node" })
    end)
    g:replay()
    g:bind { x = one }
    if not pcall(g.replay, g) then g:replay() end
    h:bind { x = ten }
    if not pcall(h.replay, h) then h:replay() end
    h:replay()
    g:instantiate()
    g:replay()
    return { one:download()[1], ten:download()[1], z:download()[1], x:download()[1] }
  end

  sweep(run, {
    right = function(r)
      return r[1] == 3 and r[2] == 14 and r[3] == 3 and r[4] == 1, table.concat(r, " ")
    end,
    calls = 30,
    raised = 20,
    names = { "cuGraphExecKernelNodeSetParams", "cuGraphExecNodeSetParams", "cuGraphNodeSetParams",
      "cuGraphAddNode" },
  })
]]

describe("a failing driver, while inputs are exchanged", function()
  for _, code in ipairs { 2, 1, 999 } do
    it("is reported clearly or survived, code " .. code, function()
      device.sweep(code, changes)
    end)
  end
end)
