-- Every driver call fails once: the k-th call of a run that builds, captures
-- and replays a small diffusion, for every k until none is left to fail.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local diffusion = [[
  local N = 64
  local source = [=[
    extern "C" __global__ void spread(const float *t, float *next, int n, float r) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i > 0 && i < n - 1) next[i] = t[i] + r * (t[i - 1] - 2.f * t[i] + t[i + 1]);
    }
  ]=]

  -- What the run should give, computed here.
  local function expected(steps)
    local t = {}
    for i = 1, N do t[i] = i == N / 2 and 1024 or 0 end
    for _ = 1, steps do
      local next = { t[1], [N] = t[N] }
      for i = 2, N - 1 do next[i] = t[i] + 0.25 * (t[i - 1] - 2 * t[i] + t[i + 1]) end
      t = next
    end
    return t
  end

  local function run()
    local spread = cg.kernel(source)
    local list = {}
    for i = 1, N do list[i] = i == N / 2 and 1024 or 0 end
    local a, out = cg.from(list, "float"), cg.pinned("float", N)
    local b = cg.zeros("float", N)
    local side, e = cg.stream(), cg.event()
    local g = cg.capture(function()
      local scratch = cg.buffer("float", N)
      spread:launch(2, 32, a, b, N, 0.25)
      side:wait(cg.current_stream())
      side:use(function() scratch:fill(7) e:record() end)
      spread:launch({ 2 }, { 32 }, b, a, N, 0.25)
      cg.current_stream():wait(e)
    end)
    g:replay(3)
    out:copy(a)
    cg.synchronize()
    return { a:download(), out }
  end

  local should = expected(6)
  local function check(results)
    local t, pinned = results[1], results[2]:cdata()
    for i = 1, N do
      local right = math.abs(t[i] - should[i]) <= 1e-3 and t[i] == pinned[i - 1]
      if not right then return false, "at " .. i end
    end
    return true
  end

  sweep(run, {
    right = check,
    calls = 30,
    raised = 20,
    names = { "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchKernel", "cuMemsetD32Async",
      "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync", "cuMemHostAlloc", "cuMemAddressReserve",
      "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuStreamCreateWithPriority",
      "cuStreamBeginCapture", "cuStreamEndCapture", "cuStreamWaitEvent", "cuEventCreate",
      "cuEventRecord", "cuGraphInstantiateWithParams", "cuGraphLaunch" },
  })
]]

describe("a failing driver", function()
  for _, code in ipairs { 2, 1, 999 } do
    it("is reported clearly or survived, and the process goes on, code " .. code, function()
      device.sweep(code, diffusion)
    end)
  end

  it("is only there when the process asks for it", function()
    local status, out = device.child([[
      local ok, e = pcall(cg.debug.fault, 1)
      print(ok, e.name, e.hint:match "CGRAPHLUA_FAULT=1")
    ]], "CGRAPHLUA_FAULT=")
    assert.equal(0, status)
    assert.equal("false\tCGL_ERROR_INVALID_ARGUMENT\tCGRAPHLUA_FAULT=1\n", out)
  end)

  it("counts calls", function()
    local status, out = device.child([[
      cg.on_log(nil)
      local x = cg.zeros("float", 1)
      cg.debug.fault(0)
      local before = cg.debug.fault_count()
      x:fill(1)
      local after, hit = cg.debug.fault_count()
      print(before, after > 0, hit)
      print(pcall(cg.debug.fault, -1))
    ]], "CGRAPHLUA_FAULT=1")
    assert.equal(0, status)
    assert.matches("^0\ttrue\tnil\nfalse\t.*call's number must be a whole number", out)
  end)
end)
