-- Every driver call of captures, instantiations, replays, resets and pools
-- fails once, in jobs that use them in different ways: each time the job is
-- right or raises a clear error, the former stream is current, nothing
-- captures, nothing is left alive, and the same job then succeeds.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

-- What follows a job, which fills `x` and returns what must be in it.
local common = [[
  local function attempt()
    local kernel = cg.kernel(source, "add")
    local x = cg.zeros("float", 8)
    local function add(value) kernel:launch(1, 8, x, value, 8) end
    local expected = job(x, add)
    local t = x:download()
    for i = 1, 8 do
      if t[i] ~= expected then return t[i] .. " instead of " .. expected end
    end
    return "right"
  end

  sweep(attempt, {
    right = function(answer) return answer == "right", answer end,
    calls = 10,
    raised = 10,
    names = { NAMES },
  })
]]

local jobs = {
  ["keeping the template"] = { [[
    local function job(x, add)
      local g = cg.graph { keep_graph = true }
      g:capture(function() add(1) end)
      g:instantiate()
      g:replay(2)
      g:instantiate()
      g:replay()
      assert(#g:nodes() == 1)
      g:reset()
      g:capture(function() add(10) add(10) end)
      g:replay()
      g:reset()
      return 23
    end
  ]], { "cuGraphInstantiateWithParams", "cuStreamEndCapture", "cuGraphLaunch",
        "cuGraphGetEdges" } },

  ["with two captures at once"] = { [[
    local function job(x, add)
      local s, t = cg.stream(), cg.stream()
      local a, b = cg.graph(), cg.graph()
      cg.synchronize()
      a:capture_begin { stream = s }
      b:capture_begin { stream = t }
      s:use(function() add(1) end)
      t:use(function() add(2) end)
      a:capture_end()
      t:use(function() add(2) end)
      b:capture_end()
      a:replay()
      b:replay(2)
      return 9
    end
  ]], { "cuStreamBeginCapture", "cuStreamEndCapture" } },

  ["with child graphs and forks"] = { [[
    local function job(x, add)
      local side, done = cg.stream(), cg.event()
      local inner = cg.capture(function() add(1) end)
      local outer = cg.capture(function()
        local main = cg.current_stream()
        inner:replay(2)
        side:wait(main)
        side:use(function()
          local scratch = cg.full("float", 8, 5)
          inner:replay()
          done:record()
        end)
        main:wait(done)
        add(1)
      end)
      inner:reset()
      outer:replay(3)
      return 12
    end
  ]], { "cuGraphAddNode", "cuStreamUpdateCaptureDependencies", "cuEventRecord",
        "cuStreamWaitEvent" } },

  ["with pools"] = { [[
    local function job(x, add)
      local p, q = cg.pool(), cg.pool()
      local function body()
        local scratch = cg.zeros("float", 1000)
        q:use(function() cg.zeros("float", 1000):copy(scratch) end)
        add(1)
      end
      local a = cg.capture(body, { pool = p })
      local b = cg.capture(body, { pool = p, trim = true, collect = true })
      assert(#a:pools() == 2)
      a:replay()
      b:replay()
      a, b = nil
      collectgarbage()
      p:trim()
      return 2
    end
  ]], { "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemAddressReserve" } },

  ["after captures that failed"] = { [[
    local function job(x, add)
      local side, own = cg.stream(), {}
      local function fails(fn, ...)
        local ok, e = pcall(fn, ...)
        assert(not ok)
        if e ~= own and type(e) == "table" then error(e) end -- the fault
      end
      local g = cg.graph()
      fails(g.capture, g, function() add(1) error(own) end)
      fails(g.capture, g, function()
        side:wait(cg.current_stream())
        side:use(function() add(1) error(own) end)
      end)
      g:capture_begin { stream = side }
      side:use(function() add(1) end)
      g:reset()
      fails(cg.capture, function()
        cg.default_stream():use(function()
          cg.capture(function() add(1) error(own) end, { stream = side })
        end)
      end)
      g:capture(function() add(4) end)
      g:replay()
      return 4
    end
  ]], { "cuStreamEndCapture", "cuGraphDestroy" } },
}

describe("a failing driver, in a job", function()
  for name, job in pairs(jobs) do
    for _, code in ipairs { 2, 900, 999 } do
      it(name .. ", is reported or survived, code " .. code, function()
        local names = "'" .. table.concat(job[2], "', '") .. "'"
        device.sweep(code, job[1] .. common:gsub("NAMES", names))
      end)
    end
  end
end)
