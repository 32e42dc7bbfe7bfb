local image = require "cgraphlua.image"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local script = dofile(here .. "/../support/script.lua")

-- How far a value lies outside an interval, as a part of the nearer end.
local function beyond(value, low, high)
  return math.max(low - value, value - high, 0) / (value < low and low or high)
end

describe("scripts/lbm.lua", function()
  local lbm, at = script.tests("lbm", before_each, after_each)

  -- Writes a white picture with the dark box [x1, x2) x [y1, y2).
  local function box(width, height, x1, y1, x2, y2)
    local img = image.new(width, height, 1)
    for y = 0, height - 1 do
      for x = 0, width - 1 do
        local dark = x >= x1 and x < x2 and y >= y1 and y < y2
        img.pixels[y * width + x] = dark and 20 or 240
      end
    end
    image.write(at "in.png", img)
    return at "in.png"
  end

  local function benchmark(resolution)
    local text = lbm("--verify", "--resolution", resolution)
    return {
      strouhal = beyond(script.number(text, "Strouhal number +([%d.]+)"), 0.295, 0.305),
      drag = beyond(script.number(text, "largest drag +([%d.]+)"), 3.22, 3.24),
      lift = beyond(script.number(text, "largest lift +([%d.]+)"), 0.99, 1.01),
      decay = script.number(text, "exact %S+, ([%d.]+)%% off") / 100,
    }
  end

  it("meets the published numbers, and comes closer with more cells", function()
    local coarse, fine = benchmark(10), benchmark(20)
    assert.is_true(coarse.strouhal < 0.03 and coarse.drag < 0.08 and coarse.decay < 0.01)
    assert.is_true(fine.strouhal < 0.03 and fine.drag < 0.05 and fine.decay < 0.01)
    assert.is_true(fine.lift < 0.02)
    assert.is_true(fine.strouhal <= coarse.strouhal)
    assert.is_true(fine.drag < coarse.drag)
  end)

  it("draws the vorticity about the obstacle", function()
    local path = box(96, 32, 20, 12, 28, 20)
    local text = lbm(path, "--size", 32, "--steps", 2000, "--re", 20)
    assert.truthy(text:find("channel: 96 x 32 cells, the obstacle 8 high, Re 20", 1, true))
    local img = image.read(at "out.png")
    assert.are.equal(3, img.width / img.height)
    local zoom = img.width / 96
    local function color(x, y)
      local p = 3 * (math.floor((y + 0.5) * zoom) * img.width + math.floor((x + 0.5) * zoom))
      return img.pixels[p], img.pixels[p + 1], img.pixels[p + 2]
    end
    assert.are.same({ 50, 50, 50 }, { color(24, 16) }) -- inside
    local r, _, b = color(24, 11) -- clockwise above: blue
    assert.is_true(b > r + 50)
    r, _, b = color(24, 20) -- the other way round below: red
    assert.is_true(r > b + 50)
  end)

  it("begins rows and directions at a line of memory, with the same numbers", function()
    local lattice = dofile(script.folder_of_scripts .. "/lib/lattice.lua")
    local function flow(nx, line)
      local made = lattice.flow(nx, 16, 0.05, {
        line = line,
        solid = function(x, y) return x == 8 and y > 4 and y < 9 end,
        inflow = function(y) return 0.3 * y * (16 - y) / 256 end,
        start = function(_, y) return 0.01, 0.3 * y * (16 - y) / 256, 0 end,
      })
      local _, drag, lift = lattice.run(made, 40, "")
      local u, v = lattice.velocities(made)
      local text = {}
      for x = 0, nx - 1 do
        for y = 0, 15 do
          text[#text + 1] = string.format("%.9g %.9g", u(x, y), v(x, y))
        end
      end
      return made, table.concat(text, "\n"), { drag, lift }
    end
    for _, nx in ipairs { 16, 30, 31, 33 } do
      local made, numbers, forces = flow(nx, 32)
      assert.is_true(made.pitch >= nx + 2 and made.pitch % 32 == 0 and made.cells % 32 == 0)
      local first = made.f:address() / 4 + made.pitch + made.line -- of row 0
      assert.equal(0, first % 32)
      local _, same, forces_too = flow(nx, 1)
      assert.equal(numbers, same)
      assert.same(forces, forces_too)
      assert.is_nil(numbers:find "nan")
    end
  end)

  it("has a steady, symmetric wake at a low Reynolds number", function()
    local path = box(96, 32, 20, 12, 28, 20)
    local text = lbm(path, "--size", 32, "--steps", 6000, "--re", 10)
    assert.truthy(text:find "no regular vortices")
    assert.is_true(script.number(text, "drag up to ([%d.]+)") > 1)
    assert.is_true(math.abs(script.number(text, "lift up to (%S+),")) <= 0.001)
  end)

  it("names a Strouhal number only of vortices that are shed", function()
    local off_center = box(96, 32, 20, 8, 28, 16)
    for _, words in ipairs {
      { off_center, "--size", 32, "--steps", 6000, "--re", 10 }, -- a steady lift
      { off_center, "--size", 32, "--steps", 300, "--re", 20 }, -- the start alone
      { "--size", 48, "--steps", 2000, "--re", 30 }, -- swings that die away
    } do
      local text = lbm(unpack(words))
      assert.matches("no regular vortices", text)
      assert.is_nil(text:find "Strouhal")
    end
  end)

  it("says which options do nothing together", function()
    local text = lbm("--size", 32, "--steps", 10, "--re", 10, "--resolution", 30)
    assert.matches("^note: %-%-resolution does nothing without %-%-verify\n", text)
    text = lbm("in.png", "--verify", "--resolution", 10, "--re", 10, "--steps", 5)
    assert.matches("^note: the picture, %-%-re, %-%-steps do nothing with %-%-verify\n", text)
  end)

  it("says why a picture is no channel", function()
    local function complaint(...)
      return script.complaint("lbm", { box(...), "--steps", 10, "--out", at "out.png" })
    end
    assert.truthy(complaint(64, 32, 0, 8, 8, 16):find "dark at its left edge")
    assert.truthy(complaint(64, 32, 0, 0, 0, 0):find "no dark part")
    assert.truthy(complaint(4, 64, 1, 8, 2, 16):find "too narrow")
    local err = script.complaint("lbm", { at "none.png" })
    assert.truthy(err:find "lbm%.lua:%d+: .*none%.png")
  end)

  it("notices a flow that it cannot follow", function()
    local status, text, err = script.run("lbm",
      { "--size", 32, "--re", 2e4, "--out", at "out.png" })
    assert.are.equal(1, status)
    assert.truthy(text:find "note: boundary layers are thinner than a cell; %-%-re 40 is")
    assert.truthy(err:find "the flow became unstable within %d+ steps")
    assert.is_nil(io.open(at "out.png"))
  end)

  it("refuses a resolution that does not fit the channel", function()
    local err = script.complaint("lbm", { "--verify", "--resolution", 25 })
    assert.truthy(err:find "multiple of 10")
  end)
end)
