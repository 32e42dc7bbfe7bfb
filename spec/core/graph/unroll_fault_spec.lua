-- Every driver call of unrolled replay loops fails once: a call that builds the
-- copies is done without, in silence; any other raises a clear error, or the
-- loop is right.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local loops = [[
  local function run()
    local add, x = cg.kernel(source, "add"), cg.zeros("float", 4)
    local a, b = cg.stream(), cg.stream()
    cg.synchronize()
    local g = cg.capture(function()
      for _ = 1, 12 do add:launch(1, 4, x, 1, 4) end
    end, { unroll = true })
    a:use(function() g:replay(1000) end)
    g:set_params(1, { [2] = 2 })
    b:use(function() g:replay(1001) end)
    a:use(function() g:replay() end)
    cg.synchronize()
    return x:download()[1]
  end

  sweep(run, {
    right = function(sum) return sum == 1000 * 12 + 1002 * 13, sum end,
    calls = 130,
    raised = 100,
    names = { "cuGraphAddNode", "cuGraphGetEdges", "cuGraphInstantiateWithParams",
      "cuGraphLaunch", "cuLaunchKernelEx" },
  })
]]

describe("a failing driver, in unrolled loops", function()
  for _, code in ipairs { 2, 999 } do
    it("is reported clearly or survived, code " .. code, function()
      device.sweep(code, loops)
    end)
  end

  it("is not heard of while copies are built, and single launches go on", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      local add, x = cg.kernel(source, "add"), cg.zeros("float", 4)
      local silent, raised, k, hit = {}, nil, 0
      repeat
        k = k + 1
        local g = cg.capture(function() add:launch(1, 4, x, 1, 4) end, { unroll = true })
        g:replay()
        g:set_params(1, { [2] = 2 })
        x:fill(0)
        cg.debug.fault(k, 2)
        local ok, e = pcall(g.replay, g, 1024)
        hit = select(2, cg.debug.fault_count())
        cg.debug.fault(0)
        cg.synchronize()
        if ok and hit then
          silent[hit] = true
          assert(x:download()[1] == 2048)
          x:fill(0)
          g:replay(1024) -- not tried again
          assert(x:download()[1] == 2048)
        elseif hit then
          assert(hit == "cuGraphLaunch" and e.name == "CUDA_ERROR_OUT_OF_MEMORY")
          assert(x:download()[1] == 2 * 64 * (raised or 0))
          raised = (raised or 0) + 1
        end
      until not hit
      local names = {}
      for name in pairs(silent) do names[#names + 1] = name end
      table.sort(names)
      print(raised, table.concat(names, " "))
    ]], "CGRAPHLUA_FAULT=1 CGRAPHLUA_CHECK_BUILD=0")
    assert.same({ 0, "" }, { status, err })
    assert.equal("16\tcuGraphAddNode cuGraphCreate " ..
      "cuGraphDestroy cuGraphGetEdges " ..
      "cuGraphInstantiateWithParams\n", out)
  end)
end)
