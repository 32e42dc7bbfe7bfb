-- Every driver call fails once in a run with hooks, external events,
-- annotations, checked inputs and pictures: each failure is raised or survived,
-- hooks stay balanced, callbacks come once, nothing is left alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local chunk = [[
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

  sweep(run, {
    right = function(t) return t[1] == 4 and t[4] == 4 end,
    after = function(at, ok)
      assert(begun == ended, at .. "unbalanced hooks")
      assert(not ok or begun == 3, at .. "hooks were left out")
    end,
    gone = function(at)
      assert(gone <= 1, at .. "called twice")
      assert(gone == 1 or not finished, at .. "never called")
    end,
    calls = 30,
    raised = 20,
    names = { "cuEventRecordWithFlags", "cuStreamWaitEvent", "cuGraphGetEdges",
      "cuEventElapsedTime", "cuGraphLaunch" },
  })
  os.remove(path)
]]

describe("a failing driver, with everything that looks at graphs", function()
  for _, code in ipairs { 2, 1, 999 } do
    it("is reported clearly or survived, code " .. code, function() device.sweep(code, chunk) end)
  end
end)
