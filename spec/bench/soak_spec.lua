-- bench/soak.lua and bench/rounds.lua on a smaller scale: memory stays flat over captures and
-- replays, and nothing is left alive.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")
local soak = here .. "/../../bench/soak.lua"
local rounds = here .. "/../../bench/rounds.lua"

-- Sanitizers keep freed memory for themselves.
local sanitized = (os.getenv "CGRAPHLUA_SANITIZER" or "no") ~= "no"

local lack = program.lacks_proc() -- memory is measured there

local function run(...)
  if lack then pending(lack) end
  local device = os.getenv "CGRAPHLUA_DEVICE" or "host"
  return program.run({ soak, "--device", device, ... })
end

describe("a soak", function()
  it("leaves memory flat", function()
    if sanitized then
      pending "a sanitizer keeps freed memory"
      return
    end
    local status, out, err = run("--captures", "1000", "--replays", "100000")
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("resident memory [%d.]+ MiB, then [%d.]+ MiB %([-+][%d.]+%)", out)
  end)

  it("adds up what the replays did and leaves no object alive", function()
    local status, out, err = run("--captures", "20", "--replays", "1000")
    assert.matches("live objects %+0", out .. err)
    assert(status == 0 or sanitized, err)
  end)

  it("leaves memory flat over the whole life of graphs", function()
    if lack then pending(lack) end
    local device = os.getenv "CGRAPHLUA_DEVICE" or "host"
    local status, out, err = program.run { rounds, "--device", device, "--rounds", "5000" }
    assert.matches("live objects %+0", out .. err)
    if sanitized then return end
    assert.equal("", err)
    assert.equal(0, status)
    local growth = out:match "device memory [%d.]+ MiB, then [%d.]+ MiB %(([-+][%d.]+)%)"
    assert(tonumber(growth) <= 4, out)
  end)

  it("refuses counts that make no sense", function()
    local status, _, err = run("--captures", "1")
    assert.equal(1, status)
    assert.matches("%-%-captures needs a whole number", err)
  end)
end)
