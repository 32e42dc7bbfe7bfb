-- Every driver call of a job of algorithms fails once, eagerly and in a capture.
-- Each time the job is right or raises a clear error, and nothing is left alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local works = [[
  local algo = require "cgraphlua.algo"

  local function job()
    local n = 70000
    local x, out = cg.full("int32", n, 2), cg.zeros("int64", 1)
    local function work()
      algo.map("x + 1", { x = x }, x)
      local upto = algo.scan(x, "sum")
      algo.reduce(upto, "max", { out = out })
      algo.sort(x)
    end
    work()
    local list = { out:item() }
    cg.capture(work):replay()
    list[2] = out:item()
    return list
  end

  sweep(job, {
    right = function(list)
      return list[1] == 3 * 70000 and list[2] == 4 * 70000
    end,
    calls = 40,
    raised = 30,
    names = { "cuLaunchKernel", "cuModuleLoadData", "cuModuleGetFunction", "cuMemcpyDtoHAsync" },
  })
]]

describe("a failing driver under algorithms", function()
  for _, code in ipairs { 2, 999 } do
    it("is reported or survived, code " .. code, function()
      device.sweep(code, works)
    end)
  end
end)
