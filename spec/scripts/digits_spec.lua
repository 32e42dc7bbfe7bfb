local ffi = require "ffi"
local image = require "cgraphlua.image"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local script = dofile(here .. "/../support/script.lua")
local program = script.program

describe("scripts/digits.lua", function()
  local digits, at = script.tests("digits", before_each, after_each)

  -- A run of few and small steps.
  local function small(...)
    return digits("--epochs", 3, "--hidden", 32, ...)
  end

  local function right(text, name)
    return script.number(text, name .. ".-; ([%d.]+)%% of what was held out")
  end

  -- How much of a part of the picture is near a colour.
  local function painted(img, left, top, width, height, color)
    local n = 0
    for y = top, top + height - 1 do
      for x = left, left + width - 1 do
        local p, off = 3 * (y * img.width + x), 0
        for k = 0, 2 do off = math.max(off, math.abs(img.pixels[p + k] - color[k + 1])) end
        if off < 12 then n = n + 1 end
      end
    end
    return n / (width * height)
  end

  it("learns to read more than 96 of 100 digits that it never saw", function()
    local text = digits("--eager")
    assert.truthy(text:find "1438 images to learn from, 359 held out; 64 %-> 128 %-> 10")
    assert.is_true(right(text, "eager") >= 96)
    assert.is_nil(text:find "captured")
  end)

  it("gives the same losses, bit for bit, with a graph and without", function()
    local text = small()
    assert.truthy(text:find("the losses of both are the same, bit for bit", 1, true))
    assert.truthy(text:find "captured  132 steps, [%d.e+]+ steps/s")
    assert.truthy(text:find "eager     132 steps, [%d.e+]+ steps/s")
    assert.are.equal(right(text, "captured"), right(text, "eager"))
    assert.is_true(right(text, "eager") > 80)
  end)

  it("gives other losses with other seeds, the same ones with the same", function()
    local function picture(seed)
      small("--eager", "--seed", seed)
      return program.read(at "out.png")
    end
    local first = picture(1)
    assert.are.equal(first, picture(1))
    assert.are_not.equal(first, picture(2))
  end)

  it("learns without dropout, and in steps of any size", function()
    assert.is_true(right(small("--dropout", 0), "captured") > 80)
    assert.is_true(right(small("--batch", 100), "eager") > 60)
    assert.truthy(digits("--hidden", 4, "--batch", 1, "--epochs", 1, "--eager"):find "1438 steps")
    assert.truthy(digits("--hidden", 1, "--epochs", 1, "--eager"):find "64 %-> 1 %-> 10")
  end)

  it("draws the losses and the mistakes", function()
    local text = digits("--epochs", 10, "--eager")
    assert.truthy(text:find("wrote " .. at "out.png", 1, true))
    local img = image.read(at "out.png")
    assert.are.same({ 1240, 760, 3 }, { img.width, img.height, img.channels })
    assert.is_true(painted(img, 70, 60, 680, 380, { 20, 90, 180 }) > 0.003) -- the mean loss
    assert.is_true(painted(img, 70, 520, 680, 170, { 200, 45, 45 }) > 0.005) -- the mistakes
    local ink = painted(img, 820, 60, 400, 690, { 25, 25, 25 }) -- the images
    assert.is_true(ink > 0.005 and ink < 0.5)
    assert.is_true(painted(img, 0, 0, 1240, 760, { 252, 252, 250 }) > 0.4)
  end)

  it("draws what did not learn, too", function()
    assert.truthy(small("--rate", 1, "--eager"):find "mistakes")
    assert.are.equal(1240, image.read(at "out.png").width)
  end)

  it("draws losses that are no numbers as gaps", function()
    local chart = dofile(script.folder_of_scripts .. "/lib/chart.lua")
    local function draw(loss)
      local losses = ffi.new("float[100]")
      for i = 0, 99 do losses[i] = loss(i) end
      chart.draw(at "out.png", { losses = losses, steps = 100, epochs = 10, held = 10, side = 8,
        missed = { 9, 9, 8, 8, 8, 8, 8, 8, 8, 8, 8 }, mistakes = {}, images = {} })
      local img, blue = image.read(at "out.png"), { 20, 90, 180 }
      return painted(img, 70, 56, 340, 384, blue), painted(img, 412, 56, 338, 384, blue)
    end
    local left, right_half = draw(function(i) return i < 50 and 1 / (i + 1) or 0 / 0 end)
    assert.is_true(left > 0.002)
    assert.are.equal(0, right_half)
    assert.are.equal(0, (draw(function() return 0 / 0 end)))
    assert.is_true(draw(function() return 1 / 0 end) > 0)
    assert.is_true(draw(function() return 0 end) > 0)
  end)

  it("refuses what makes no sense", function()
    local err = script.complaint("digits", { "--epochs", "0" })
    assert.truthy(err:find "%-%-epochs needs a whole number")
    assert.truthy(script.complaint("digits", { "--dropout", "1" }):find "%-%-dropout needs a num")
    assert.truthy(script.complaint("digits", { "--batch", "1.5" }):find "%-%-batch needs a whole")
    assert.truthy(script.complaint("digits", { "picture.png" }):find "one argument too many")
    err = script.complaint("digits", { "--out", at "none/out.png" })
    assert.truthy(err:find("no folder '" .. at "none/" .. "'", 1, true))
  end)

  it("explains itself", function()
    local text = script.output("digits", { "--help" })
    for _, name in ipairs { "epochs", "batch", "hidden", "rate", "dropout", "seed", "eager",
      "out", "device" } do
      assert.truthy(text:find("--" .. name, 1, true))
    end
  end)

  it("has the digits as they were published", function()
    local counts, n = {}, 0
    for line in io.lines(script.folder_of_scripts .. "/data/digits.txt") do
      local label = line:match "^(%d) [0-9a-g]+$"
      assert.are.equal(66, #line)
      counts[label + 1] = (counts[label + 1] or 0) + 1
      n = n + 1
    end
    assert.are.equal(1797, n)
    assert.are.same({ 178, 182, 177, 183, 181, 182, 181, 179, 174, 180 }, counts)
  end)
end)
