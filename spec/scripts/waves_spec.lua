local image = require "cgraphlua.image"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local script = dofile(here .. "/../support/script.lua")
local program = script.program

describe("scripts/waves.lua", function()
  local there, why = pcall(require("cgraphlua.fft").describe)
  if not there then
    pending("has no library: " .. tostring(why))
    return
  end
  local waves, at = script.tests("waves", before_each, after_each)

  local function error_after(...)
    local text = waves(...)
    assert.is_true(math.abs(script.number(text, "probability ([%d.]+)") - 1) < 1e-5)
    return script.number(text, "relative L2 error (%S+)")
  end

  it("follows the exact solution over a swing", function()
    local text = waves("--size", 64, "--steps", 640)
    assert.truthy(text:find "64 x 64 points, 640 steps, 1.000 of a swing")
    assert.is_true(script.number(text, "relative L2 error (%S+)") < 3e-4)
  end)

  it("is off by as much more as there are more steps", function()
    local one = error_after("--size", 64, "--steps", 80)
    local four = error_after("--size", 64, "--steps", 320)
    assert.is_true(four > 1.5 * one and four < 8 * one)
  end)

  it("rounds steps up to whole replays", function()
    assert.truthy(waves("--size", 32, "--steps", 11):find "32 x 32 points, 20 steps")
  end)

  it("draws two packets, and their fringes where they meet", function()
    local function light(size, x, y)
      local img = image.read(at "out.png")
      assert.same({ size, size, 3 }, { img.width, img.height, img.channels })
      local p = 3 * (y * size + x)
      return img.pixels[p] + img.pixels[p + 1] + img.pixels[p + 2]
    end
    waves("--size", 64, "--steps", 10)
    assert.is_true(light(64, 18, 32) > 300 and light(64, 46, 32) > 300)
    assert.is_true(light(64, 32, 32) < 30 and light(64, 4, 4) < 30)
    waves("--size", 128, "--steps", 160)
    assert.is_true(light(128, 64, 64) > 300 and light(128, 71, 64) > 150)
    assert.is_true(light(128, 67, 64) < light(128, 71, 64))
  end)

  it("writes numbered frames, the last like the picture", function()
    local text = waves("--size", 32, "--steps", 40, "--frames", 4)
    assert.truthy(text:find("wrote " .. at "out-0001.png" .. " to " .. at "out-0004.png", 1, true))
    assert.equal(program.read(at "out-0004.png"), program.read(at "out.png"))
    assert.are_not.equal(program.read(at "out-0001.png"), program.read(at "out.png"))
  end)

  it("refuses what it does not know, and explains itself", function()
    assert.truthy(script.complaint("waves", { "--size", "3" }):find "from 32 to 8192")
    local text = script.output("waves", { "--help" })
    for _, name in ipairs { "size", "steps", "out", "frames", "device" } do
      assert.truthy(text:find("--" .. name, 1, true))
    end
  end)
end)
