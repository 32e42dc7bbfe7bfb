-- Every driver call fails once in a run with hooks, external events,
-- annotations, checked inputs and pictures: each failure is raised or survived,
-- hooks stay balanced, callbacks come once, nothing is left alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/support/device.lua")

local chunk = [[
  cg.on_log(nil)
  local source = [=[
    extern "C" __global__ void twice(float *x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) x[i] *= 2.f;
    }
  ]=]
  local path = os.tmpname()
  local begun, ended, gone, finished

  local function run()
    begun, ended, gone, finished = 0, 0, 0, false
    local twice = cg.kernel(source)
    local x = cg.from({ 1, 2, 3, 4 }, "float")
    local first, last = cg.event { external = true }, cg.event { external = true }
    local g = cg.graph { keep_graph = true, annotations = true, check_input_liveness = true }
    g:register_capture_start_hook(function() x:fill(1) end)
    g:register_capture_end_hook(function() assert(g:raw_cuda_graph()) end)
    g:register_post_instantiate_hook(function() assert(g:raw_cuda_graph_exec()) end)
    g:register_replay_start_hook(function() begun = begun + 1 end)
    g:register_replay_end_hook(function() ended = ended + 1 end)
    g:register_destroy_callback(function() gone = gone + 1 end, true)
    g:retain_object({}, true)
    local side = cg.stream()
    side:handle() -- others may issue into it
    g:capture(function()
      first:record()
      cg.mark_kernels({ label = "twice", n = 4 }, function()
        twice:launch(1, 32, x, 4)
        cg.mark_kernels("again", function() twice:launch(1, 32, x, 4) end)
      end)
      cg.current_stream():wait(first)
      last:record()
    end, { stream = side })
    g:debug_dump(path)
    g:replay(3)
    last:synchronize()
    local ms = first:elapsed(last)
    assert(ms >= 0)
    local values = x:download()
    g:reset()
    finished = true
    return values
  end

  local function right(t)
    return type(t) == "table" and t[1] == 4 and t[4] == 4
  end

  local function alive()
    collectgarbage()
    collectgarbage()
    cg.debug.forget()
    return cg.live()
  end

  assert(right(run()))
  assert(begun == 3 and ended == 3 and gone == 1)
  assert(alive() == 0)
  local k, raised, names = 0, 0, {}
  repeat
    k = k + 1
    cg.debug.fault(k, CODE)
    local ok, e = pcall(run)
    local _, hit = cg.debug.fault_count()
    cg.debug.fault(0)
    local said = " after call " .. k .. " (" .. tostring(hit) .. "): " .. tostring(e)
    assert(begun == ended, "unbalanced hooks" .. said)
    assert(alive() == 0, "something left alive" .. said)
    assert(gone <= 1, "called twice" .. said)
    assert(gone == 1 or not finished, "never called" .. said)
    if hit then
      names[hit] = true
      if ok then
        assert(right(e), "wrong result" .. said)
      else
        raised = raised + 1
        assert(type(e) == "table" and e.name and e.where ~= "", "no clear error" .. said)
      end
    else
      assert(ok, "failed without a fault" .. said)
    end
    assert(right(run()), "broken" .. said)
    assert(alive() == 0, "left alive by the run" .. said)
  until not hit
  os.remove(path)
  print(k > 30, raised > 20, names.cuEventRecordWithFlags, names.cuStreamWaitEvent,
    names.cuGraphGetEdges, names.cuEventElapsedTime, names.cuGraphLaunch)
]]

describe("a failing driver, with everything that looks at graphs", function()
  for _, code in ipairs { 2, 1, 999 } do
    it("is reported clearly or survived, code " .. code, function()
      local status, out, err = device.child(
        ("local CODE = %d\n"):format(code) .. chunk, "CGRAPHLUA_FAULT=1")
      assert.equal("", err)
      assert.equal("true\ttrue\ttrue\ttrue\ttrue\ttrue\ttrue\n", out)
      assert.equal(0, status)
    end)
  end
end)
