-- Every driver call of graphed callables fails once: each result is right or an
-- error is raised, nothing stays alive, and the next run is right.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

describe("graphed callables with a failing driver", function()
  local job = [[
    local source = [=[
      extern "C" __global__ void twice(const float *x, float *y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) y[i] = 2 * x[i];
      }
      extern "C" __global__ void bump(float *x, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] += 1;
      }
    ]=]
    local function run()
      local m = cg.module(source)
      local twice, bump = m:kernel "twice", m:kernel "bump"
      local function double(t)
        local y = cg.buffer("float", #t.x)
        twice:launch(1, 32, t.x, y, #y)
        return y
      end
      local function more(x) bump:launch(1, 32, x, #x) end
      local x, y = cg.full("float", 16, 3), cg.full("float", 16, 5)
      local list = cg.make_graphed_callables({ double, more }, { { { x = x } }, { x } })
      x:fill(3)
      local got = { list[1]({ x = y }):download()[1] }
      list[2](y)
      got[2] = y:download()[16]
      local f = cg.graphed(more)
      f(x) f(y) f(y)
      got[3], got[4] = x:download()[1], y:download()[1]
      local swap = cg.make_graphed_callables(function(a, b) twice:launch(1, 32, a, b, 16) end,
        { x, y })
      x:fill(3)
      swap(x, y) swap(y, x)
      got[5] = x:download()[2]
      return table.concat(got, " ")
    end
    sweep(run, {
      right = function(got) return got == "10 6 7 8 12", got end,
      calls = 60,
      raised = 40,
    })
  ]]

  for _, code in ipairs { 2, 999 } do
    it("are right or raise, code " .. code, function() device.sweep(code, job) end)
  end
end)
