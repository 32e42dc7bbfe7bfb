-- Every driver call of a job of matrices fails once, eagerly and in a capture.
-- Each time the job is right or raises a clear error, and nothing is left alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local there, why = pcall(require("cgraphlua.blas").describe)

local works = [[
  local blas = require "cgraphlua.blas"

  local function job()
    local a, c = cg.full("double", { 4, 4 }, 2), cg.zeros("double", { 4, 4 })
    local sum = cg.zeros("double", 1)
    local function work()
      blas.gemm(a, a, { out = c, beta = 1 })
      blas.dot(a, c, { out = sum })
      blas.scal(c, { alpha = sum })
    end
    work()
    local list = { sum:item() }
    cg.capture(work):replay()
    list[2] = sum:item()
    return list
  end

  sweep(job, {
    right = function(list) return list[1] == 512 and list[2] == 262656 end,
    calls = 30,
    raised = 20,
    names = { "cuGraphInstantiateWithParams", "cuStreamBeginCapture", "cuMemcpyDtoHAsync" },
  })
]]

describe("a failing driver under matrices", function()
  for _, code in ipairs { 2, 999 } do
    it("is reported or survived, code " .. code, function()
      if not there then pending(tostring(why)) end
      device.sweep(code, works)
    end)
  end
end)
