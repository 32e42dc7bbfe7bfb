local image = require "cgraphlua.image"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local script = dofile(here .. "/../support/script.lua")

describe("scripts/nbody.lua", function()
  local nbody, at = script.tests("nbody", before_each, after_each)

  local function drift(text)
    return script.number(text, "relative energy drift (%S+)")
  end

  local function period(text)
    return script.number(text, "Earth's period ([%d.]+) days")
  end

  it("keeps the energy and the year", function()
    local text = nbody()
    assert.truthy(text:find "10 bodies, 366.5 days from J2000.0 in steps of 0.5")
    assert.is_true(drift(text) < 1e-6)
    assert.is_true(math.abs(period(text) - 365.256363) < 0.01)
  end)

  it("keeps them over twenty years", function()
    local text = nbody("--years", 20, "--step", 1)
    assert.is_true(drift(text) < 1e-6)
    assert.is_true(math.abs(period(text) - 365.256363) < 0.01)
  end)

  it("is of fourth order in the step", function()
    local rough, fine = drift(nbody("--step", 4)), drift(nbody("--step", 2))
    assert.is_true(rough / fine > 10 and rough / fine < 30)
  end)

  it("moves asteroids without being moved by them", function()
    local alone, crowded = nbody(), nbody("--asteroids", 300)
    assert.truthy(crowded:find "310 bodies")
    assert.are.equal(period(alone), period(crowded))
    assert.are.equal(drift(alone), drift(crowded))
  end)

  it("draws the Sun in the middle and the planets' tracks", function()
    nbody()
    local img = image.read(at "out.png")
    assert.are.same({ 1000, 1000, 3 }, { img.width, img.height, img.channels })
    local p = 3 * (500 * 1000 + 500)
    assert.is_true(img.pixels[p] > 200 and img.pixels[p + 1] > 200)
    local lit = 0
    for i = 0, 1000 * 1000 - 1 do
      if img.pixels[3 * i] > 60 then
        lit = lit + 1
      end
    end
    assert.is_true(lit > 5000 and lit < 100000)
  end)

  it("refuses what makes no sense", function()
    local err = script.complaint("nbody", { "--years", "0" })
    assert.truthy(err:find "%-%-years needs a whole number")
    assert.truthy(script.complaint("nbody", { "--step", "nan" }):find "%-%-step needs a number")
    assert.truthy(script.complaint("nbody", { "extra" }):find "one argument too many")
  end)
end)
