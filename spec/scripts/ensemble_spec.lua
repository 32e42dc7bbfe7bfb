local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local script = dofile(here .. "/../support/script.lua")
local program = script.program

describe("scripts/ensemble.lua", function()
  local ensemble, at = script.tests("ensemble", before_each, after_each)

  it("runs all simulations beside each other, and draws what issue order draws", function()
    local text = ensemble("--steps", 401)
    assert.truthy(text:find "64 simulations of 48 x 48 points, 440 steps")
    assert.truthy(text:find "128 nodes, 64 of them beside each other, the longest path 2\n")
    local lives = script.number(text, "V lives in (%d+)")
    assert.is_true(lives > 32 and lives < 64)
    local drawn = program.read(at "out.png")
    text = ensemble("--steps", 401, "--order", "issue")
    assert.truthy(text:find "128 nodes, 1 of them beside each other, the longest path 128\n")
    assert.equal(drawn, program.read(at "out.png"))
    assert.not_equal(drawn, (ensemble("--steps", 400) and program.read(at "out.png")))
  end)

  it("names what it cannot do", function()
    assert.truthy(script.complaint("ensemble", { "--steps", "0" })
      :find "--steps needs a whole number from 1")
    assert.truthy(script.complaint("ensemble", { "--order", "random" })
      :find "--order is data or issue, not random")
  end)
end)
