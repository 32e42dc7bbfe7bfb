-- Every driver call of a job that draws fails once: eagerly, in a capture with
-- a fork and a graph inside, in replays on two streams, in reading, setting and
-- cloning states.  Each time the job is right or raises a clear error, its own
-- generator still gives its sequence, and nothing is left alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local draws = [[
  local source = [=[
    extern "C" __global__ void word(unsigned *out, cgl_philox rng) {
      *out = cgl_random(rng);
    }
  ]=]

  local function drawn(gen, n)
    local list, x = {}, cg.buffer("uint32", 1)
    for i = 1, n do list[i] = x:random(gen):download()[1] end
    return list
  end

  local kept -- the generator of the job underway

  local function job()
    local gen = cg.generator(11)
    kept = gen
    local word, side, other = cg.kernel(source), cg.stream(), cg.stream()
    local b, state = {}, cg.zeros("uint64", 2)
    for i = 1, 6 do b[i] = cg.zeros("uint32", 1) end
    b[1]:random(gen)
    local inner = cg.capture(function() b[4]:random(gen) end)
    local g = cg.capture(function()
      local main = cg.current_stream()
      side:wait(main)
      b[2]:random(gen)
      side:use(function() word:launch(1, 1, b[3], gen) end)
      inner:replay()
      side:use(function() b[5]:random(gen) end)
      main:wait(side)
      gen:get_state(state)
    end)
    other:use(function() g:replay(2) end)
    b[6]:random(gen)
    local list = {}
    for i = 1, 6 do list[i] = b[i]:download()[1] end
    list[7] = gen:get_offset()
    local clone = gen:clone_state()
    clone:set_offset(3)
    list[8] = drawn(clone, 1)[1]
    clone:set_state(state)
    list[9] = clone:get_offset()
    cg.synchronize()
    return list
  end

  local all = drawn(cg.generator(11), 10)
  local should = { all[1], all[6], all[7], all[8], all[9], all[10], 10, all[4], 9 }

  sweep(job, {
    right = function(list)
      for i = 1, 9 do
        if list[i] ~= should[i] then return false, "at " .. i end
      end
      return true
    end,
    after = function(at)
      if not kept then return end
      kept:set_offset(1)
      assert(drawn(kept, 1)[1] == all[2], at .. "the generator lost its sequence")
      assert(kept:get_offset() == 2, at .. "the generator lost its offset")
      kept = nil
    end,
    calls = 60,
    raised = 50,
    names = { "cuLaunchKernel", "cuGraphAddNode", "cuModuleLoadData", "cuModuleGetFunction",
      "cuStreamUpdateCaptureDependencies", "cuStreamGetCaptureInfo", "cuEventRecord",
      "cuMemcpyDtoHAsync", "cuGraphLaunch" },
  })
]]

describe("a failing driver under random draws", function()
  for _, code in ipairs { 2, 999 } do
    it("is reported or survived, and no number is lost, code " .. code, function()
      device.sweep(code, draws)
    end)
  end
end)

describe("random draws in a graph", function()
  it("cost a replay no call of the driver more", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      local gen, x = cg.generator(1), cg.buffer("float", 8)
      local plain = cg.capture(function() x:fill(1) end)
      local drawing = cg.capture(function() x:uniform(gen) x:normal(gen) end)
      local function calls(g, n)
        cg.debug.fault(0)
        local before = cg.debug.fault_count()
        g:replay(n)
        return cg.debug.fault_count() - before
      end
      plain:replay()
      drawing:replay()
      print(calls(plain, 1), calls(drawing, 1), calls(drawing, 100))
      x:uniform(gen) -- one kernel more at the next replay, and only there
      print(calls(drawing, 10), calls(drawing, 10))
    ]], "CGRAPHLUA_FAULT=1")
    assert.equal("", err)
    assert.equal("1\t1\t100\n11\t10\n", out)
    assert.equal(0, status)
  end)

  it("stay registered when a capture does not begin", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      local g, x, gen = cg.graph(), cg.buffer("uint32", 1), cg.generator(1)
      local stream = cg.stream()
      x:random(gen)
      g:register_generator_state(gen)
      gen = nil
      collectgarbage()
      collectgarbage()
      local before, failed, begun = cg.live("buffer"), 0, false
      while not begun do
        cg.debug.fault(failed + 1)
        begun = pcall(stream.use, stream, function() g:capture_begin() end)
        cg.debug.fault(0)
        failed = failed + (begun and 0 or 1)
        if not begun then assert(cg.live("buffer") == before, "its state is gone") end
      end
      g:reset()
      print(failed > 0, before - cg.live("buffer"))
    ]], "CGRAPHLUA_FAULT=1")
    assert.equal("", err)
    assert.equal("true\t1\n", out)
    assert.equal(0, status)
  end)
end)
