-- Every driver call fails once while parameters change: a replay that is refused
-- leaves what the next one takes up, and nothing stays alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local changes = [[
  local scaling = "struct s { float by; int n[2]; };" ..
    'extern "C" __global__ void scale(float *w, s s) { w[0] = s.by * (s.n[0] + s.n[1]); }'
  local function run()
    local add, x, y = cg.kernel(source, "add"), cg.zeros("float", 4), cg.zeros("double", 4)
    local z, on = cg.zeros("float", 4), cg.full("int32", 1, 1)
    local a, b = cg.param("float", 1, "a"), cg.param("double", 1)
    local scale, w = cg.kernel(scaling), cg.zeros("float", 1)
    local s = scale:param("s", { by = 1, n = { 1, 2 } })
    local blocks = cg.param("int32", 1, "blocks")
    local d, low = cg.zeros("float", 4), cg.param("float", 3, "low")
    local g = cg.capture(function()
      add:launch(blocks, 4, x, a, 4)
      y:fill(b)
      z:fill(a)
      scale:launch(1, 1, w, s)
      d:uniform(low, low)
    end, { keep_graph = true })
    local h = cg.capture(function()
      g:replay()
      cg.when(on, function() add:launch(blocks, 4, x, a, 4) end, nil, { form = "node" })
    end)
    g:replay()
    a:set(10)
    b:set(0.1)
    g:replay()
    h:replay()
    g:set { a = 100, s = { by = 2, n = { 3, 4 } }, low = 7, blocks = 2 }
    if not pcall(g.replay, g) then g:replay() end
    h:replay()
    g:instantiate()
    g:replay()
    return { x:download()[1], y:download()[1], z:download()[1], w:download()[1], d:download()[4] }
  end

  sweep(run, {
    right = function(r)
      return r[1] == 431 and r[2] == 0.1 and r[3] == 100 and r[4] == 14 and r[5] == 7,
        table.concat(r, " ")
    end,
    calls = 30,
    raised = 20,
    names = { "cuGraphExecKernelNodeSetParams", "cuGraphExecNodeSetParams", "cuGraphNodeSetParams",
      "cuGraphAddNode" },
  })
]]

local follows = [[
  local function run()
    local add, x, y = cg.kernel(source, "add"), cg.zeros("float", 4), cg.zeros("float", 4)
    local from = cg.full("float", 1, 1)
    local a = cg.param("float", 1, "a"):follow(from)
    local g = cg.capture(function()
      add:launch(1, 1, from, 1, 1)
      add:launch(1, 4, x, a, 4)
      y:fill(a)
    end)
    g:replay()
    add:launch(1, 4, x, a, 4)
    g:set_params(2, { a = 10 })
    g:replay()
    local value = a:get()
    a:follow(nil)
    return { x:download()[1], y:download()[4], value }
  end

  sweep(run, {
    right = function(r)
      return r[1] == 14 and r[2] == 3 and r[3] == 3, table.concat(r, " ")
    end,
    calls = 15,
    raised = 10,
    names = { "cuModuleGetFunction", "cuGraphExecKernelNodeSetParams", "cuLaunchKernel" },
  })
]]

describe("a failing driver, while parameters change", function()
  for _, code in ipairs { 2, 1, 999 } do
    it("is reported clearly or survived, code " .. code, function()
      device.sweep(code, changes)
    end)

    it("is reported while they follow a buffer, code " .. code, function()
      device.sweep(code, follows)
    end)
  end
end)
