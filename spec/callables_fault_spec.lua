-- Every driver call of graphed callables fails once: each result is right or an
-- error is raised, nothing stays alive, and the next run is right.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/support/device.lua")

describe("graphed callables with a failing driver", function()
  -- Each k-th driver call fails; every result is right or an error is raised,
  -- nothing stays alive, and the next run is right.
  local sweep = [[
    cg.on_log(nil)
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
    local function alive()
      collectgarbage()
      collectgarbage()
      cg.debug.forget()
      return cg.live()
    end
    local should = "10 6 7 8 12"
    assert(run() == should, run())
    assert(alive() == 0, "alive before")
    local k, raised = 0, 0
    repeat
      k = k + 1
      cg.debug.fault(k, CODE)
      local ok, e = pcall(run)
      local _, hit = cg.debug.fault_count()
      cg.debug.fault(0)
      local at = "call " .. k .. " (" .. tostring(hit) .. "): "
      assert(alive() == 0, at .. "something stays alive")
      if ok then
        assert(e == should, at .. e)
      else
        raised = raised + 1
        assert(hit and type(e) == "table" and e.where ~= "", at .. tostring(e))
      end
      local again, why = pcall(run)
      assert(again and why == should, at .. "and then " .. tostring(why))
      assert(alive() == 0, at .. "something stays alive later")
    until not hit
    print(k > 60, raised > 40)
  ]]

  for _, code in ipairs { 2, 999 } do
    it("are right or raise, code " .. code, function()
      local status, out, err = device.child(("local CODE = %d\n"):format(code) .. sweep,
        "CGRAPHLUA_FAULT=1")
      assert.equal("", err)
      assert.equal("true\ttrue\n", out)
      assert.equal(0, status)
    end)
  end
end)
