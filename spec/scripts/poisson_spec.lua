local cg = require "cgraphlua"
local image = require "cgraphlua.image"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local script = dofile(here .. "/../support/script.lua")
local program = script.program

describe("scripts/poisson.lua", function()
  local poisson, at = script.tests("poisson", before_each, after_each)

  local function iterations(text, how)
    return script.number(text, how .. ": (%d+) iterations")
  end

  it("comes closer to the exact potential by four where points are twice as many", function()
    local function off(n)
      return script.number(poisson("--size", n), "relative L2 error (%S+),")
    end
    local ratio = off(63) / off(127)
    assert.is_true(ratio > 3.7 and ratio < 4.5, tostring(ratio))
  end)

  it("stops on the device at the iteration at which the host stops, with the same bits", function()
    local function run(...)
      local text = poisson("--size", 48, ...)
      return text, program.read(at "out.png")
    end
    local captured, picture = run()
    local eager, same = run "--eager"
    assert.is_true(iterations(captured, "one replay") > 20)
    assert.equal(iterations(captured, "one replay"), iterations(eager, "eager"))
    local last = "relative residual ([^\n]+)\nrelative L2 error ([^\n]+)"
    assert.same({ eager:match(last) }, { captured:match(last) })
    assert.is_true(picture == same)
  end)

  it("reaches the tolerance, with fewer iterations where it is larger", function()
    local before = math.huge
    for _, tolerance in ipairs { 1e-7, 1e-4, 0.1 } do
      local text = poisson("--size", 40, "--tolerance", tolerance)
      assert.is_true(script.number(text, "relative residual (%S+)") <= tolerance)
      assert.is_true(iterations(text, "one replay") < before)
      before = iterations(text, "one replay")
    end
  end)

  it("also lets the host look every few iterations, which makes a few more", function()
    local text = poisson("--size", 40, "--check-every", 7)
    local needed = iterations(text, "one replay")
    assert.equal(7 * math.ceil(needed / 7), iterations(text, "checked by the host every 7"))
  end)

  it("says when the tolerance was not reached", function()
    local text = poisson("--size", 40, "--most", 10)
    assert.equal(10, iterations(text, "one replay"))
    assert.truthy(text:find "the tolerance was not reached in 10 iterations")
  end)

  it("draws the potential: red and blue, and gray at the walls", function()
    poisson("--size", 128)
    local img = image.read(at "out.png")
    assert.same({ 128, 128, 3 }, { img.width, img.height, img.channels })
    local red, blue = 0, 0
    for i = 0, 128 * 128 - 1 do
      local p = img.pixels + 3 * i
      red = red + (p[0] > p[2] + 50 and 1 or 0)
      blue = blue + (p[2] > p[0] + 50 and 1 or 0)
    end
    assert.is_true(red > 100 and blue > 100, red .. " " .. blue)
    assert.is_true(math.abs(img.pixels[0] - img.pixels[2]) < 8)
  end)

  it("refuses what makes no sense, and explains itself", function()
    assert.truthy(script.complaint("poisson", { "--size", 2 }):find "%-%-size needs a whole number")
    assert.truthy(script.complaint("poisson", { "--tolerance", 0 }):find "%-%-tolerance needs")
    assert.truthy(script.complaint("poisson", { "--check-every", 0 }):find "%-%-check%-every needs")
    local text = script.output("poisson", { "--help" })
    for _, name in ipairs { "size", "tolerance", "most", "eager", "check-every", "out",
      "device" } do
      assert.truthy(text:find("--" .. name, 1, true))
    end
  end)
end)

describe("scripts/lib/conjugate.lua", function()
  local conjugate = dofile(script.folder_of_scripts .. "/lib/conjugate.lua")

  it("solves at any size, in any shape of blocks", function()
    for _, case in ipairs {
      { 1, 1, 32, 1 }, { 3, 2, 64, 4 }, { 65, 1, 64, 4 }, { 70, 3, 32, 2 },
      { 33, 8, 256, 1 }, { 64, 4, 32, 2 }, { 50 },
    } do
      local n, rows = unpack(case)
      local solver = conjugate.new(n, rows and { rows = rows, wide = case[3], deep = case[4] })
      solver.b:uniform(cg.generator(5), -1, 1)
      solver:begin(1e-6)
      cg.loop(solver.going, function() solver:iterate(1e-6) end, { max = 2000 })
      assert.is_true(solver:residual_squares() <= 1e-6)
      local b, x, worst = solver.b:download(), solver:solution(), 0
      local function value(i, j)
        return i >= 1 and i <= n and j >= 1 and j <= n and x[(j - 1) * n + i - 1] or 0
      end
      for j = 1, n do
        for i = 1, n do
          worst = math.max(worst, math.abs(4 * value(i, j) - value(i - 1, j) - value(i + 1, j)
            - value(i, j - 1) - value(i, j + 1) - b[(j - 1) * n + i]))
        end
      end
      assert.is_true(worst < 2e-3, string.format("%d: %g", n, worst))
    end
  end)

  it("stays where it is when nothing is left to do", function()
    local solver = conjugate.new(1)
    for _, value in ipairs { 3, 0, 5 } do
      solver.b:fill(value)
      solver:begin(0)
      for _ = 1, 5 do solver:iterate(0) end
      assert.equal(value / 4, solver:solution()[0])
    end
  end)
end)
