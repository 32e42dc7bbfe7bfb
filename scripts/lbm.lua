-- Flow through a channel past whatever a picture draws: D2Q9 lattice Boltzmann.
--
--   cgraphlua scripts/lbm.lua                     past a cylinder
--   cgraphlua scripts/lbm.lua obstacle.png        past the picture's dark parts
--   cgraphlua scripts/lbm.lua --verify            against published numbers
--   mpirun -n 2 cgraphlua scripts/lbm.lua         the rows in two parts
--
-- Units are cells and steps.  The inflow is a parabola of mean speed SPEED; the
-- Reynolds number counts that speed and the obstacle's height.  The solver, and
-- the graph that it captures, are in scripts/lib/lattice.lua.
--
-- --verify is benchmark 2D-2 of M. Schaefer and S. Turek, "Benchmark
-- Computations of Laminar Flow Around a Cylinder" (1996): a channel of
-- 2.2 x 0.41, a cylinder of diameter 0.1 at (0.2, 0.2), mean speed 1, Re = 100.
-- The published intervals are theirs.  Beside it, the decay of Taylor-Green
-- vortices in a periodic box, whose rate is known exactly.

local cg = require "cgraphlua"
local ffi = require "ffi"
local image = require "cgraphlua.image"
local options = require "cgraphlua.options"
local lattice = dofile((arg[0]:match "^.*/" or "") .. "lib/lattice.lua")

local SPEED = 0.05 -- cells per step; that of sound is 0.577

local spec = {
  usage = "scripts/lbm.lua [obstacle.png] [options]",
  about = "Flow past the dark parts of a picture (or a cylinder); draws the vorticity.",
  arguments = { "obstacle" },
  { "re", "X", 150, "Reynolds number", min = 0.1, max = 1e5 },
  { "size", "N", 160, "cells across the channel", min = 16, max = 4096 },
  { "steps", "N", 20000, "time steps, rounded up to 10s", min = 1, max = 2e6 },
  { "out", "OUT", "lbm.png", "the picture to write" },
  { "verify", nil, nil, "compare with published numbers instead" },
  { "resolution", "N", 20, "with --verify: cells across the cylinder, a multiple of 10",
    min = 10, max = 400 },
}
local opt = options.read(spec, arg)
local ranks = cg.ranks()
local print = ranks.rank == 0 and print or function() end

-- What was asked for beside an option that has no use for it.
local function note_unused(names, why)
  local unused = opt.obstacle and names.obstacle and { "the picture" } or {}
  for _, entry in ipairs(spec) do
    if names[entry[1]] and opt[entry[1]] ~= entry[3] then
      unused[#unused + 1] = "--" .. entry[1]
    end
  end
  if #unused > 0 then
    print(string.format("note: %s %s nothing %s", table.concat(unused, ", "),
      #unused > 1 and "do" or "does", why))
  end
end

-- A channel whose inflow is a parabola and which starts as that parabola.
local function channel(nx, ny, viscosity, solid, cut)
  local function inflow(y)
    return 6 * SPEED * y * (ny - y) / (ny * ny)
  end
  return lattice.flow(nx, ny, viscosity, {
    ranks = ranks,
    solid = solid,
    cut = cut,
    inflow = inflow,
    start = function(x, y)
      return 36 * SPEED * viscosity / (ny * ny) * (nx - x), inflow(y), 0
    end,
  })
end

-- Where a cylinder is, as lattice.flow asks: solid(x, y) and cut(x, y, q).
local function cylinder(center_x, center_y, diameter)
  local r2 = 0.25 * diameter ^ 2
  local function solid(x, y)
    return (x + 0.5 - center_x) ^ 2 + (y + 0.5 - center_y) ^ 2 < r2
  end
  local function cut(x, y, q)
    local cx, cy = lattice.CX[q], lattice.CY[q]
    local dx, dy = x + 0.5 - center_x, y + 0.5 - center_y
    local a, b = cx * cx + cy * cy, dx * cx + dy * cy
    return (-b - math.sqrt(b * b - a * (dx * dx + dy * dy - r2))) / a
  end
  return solid, cut
end

-- A channel of `ny` rows after a picture: its columns, how many rows the dark
-- parts span, and solid(x, y).
local function drawn(path, ny)
  local img = image.gray(image.read(path))
  local nx = math.floor(img.width * ny / img.height + 0.5)
  if nx < 16 then
    error(path .. " is too narrow for a channel, whose flow goes from left to right", 0)
  end
  local function solid(x, y)
    local column = math.floor((x + 0.5) * img.width / nx)
    local line = math.floor((ny - y - 0.5) * img.height / ny)
    return img.pixels[line * img.width + column] < 128
  end
  local low, high = math.huge, -math.huge
  for y = 0, ny - 1 do
    if solid(0, y) then
      error(path .. " is dark at its left edge, where the flow comes in", 0)
    end
    for x = 0, nx - 1 do
      if solid(x, y) then
        low, high = math.min(low, y), math.max(high, y)
      end
    end
  end
  if high < low then
    error(path .. " has no dark part, so there is nothing for the flow to pass", 0)
  end
  return nx, high - low + 1, solid
end

-- Writes the vorticity, in units of SPEED / height, as blue and red.
local function draw(flow, height, path)
  local u, v = lattice.velocities(flow)
  if ranks.rank > 0 then
    return
  end
  local nx, ny = flow.nx, flow.ny
  local curl = ffi.new("double[?]", nx * ny)
  for y = 0, ny - 1 do
    local below, above = math.max(0, y - 1), math.min(ny - 1, y + 1)
    for x = 0, nx - 1 do
      local left, right = math.max(0, x - 1), math.min(nx - 1, x + 1)
      curl[y * nx + x] = flow.solid(x, y) and 0 / 0
        or (v(right, y) - v(left, y) - u(x, above) + u(x, below)) * 0.5 * height / SPEED
    end
  end
  local picture = image.map(curl, nx, ny,
    { colormap = "coolwarm", min = -5, max = 5, flip = true, invalid = { 50, 50, 50 } })
  local zoom = math.max(1, math.floor(1280 / nx))
  image.write(path, image.resize(picture, zoom * nx, zoom * ny))
  print("wrote " .. path)
end

-- The mean distance between the rises of a series through its mean, each after
-- a deep fall; nil when there are fewer than three.
local function period(series, first)
  local mean, least = 0, math.huge
  for s = first, #series do
    mean, least = mean + series[s] / (#series - first + 1), math.min(least, series[s])
  end
  local rises, fallen = {}, false
  for s = first, #series - 1 do
    fallen = fallen or series[s] < 0.5 * (mean + least)
    if fallen and series[s] < mean and series[s + 1] >= mean then
      rises[#rises + 1] = s + (mean - series[s]) / (series[s + 1] - series[s])
      fallen = false
    end
  end
  return #rises >= 3 and (rises[#rises] - rises[1]) / (#rises - 1) or nil
end

-- The distance between the largest and the smallest value from `first` to `last`.
local function swing(series, first, last)
  local low, high = math.huge, -math.huge
  for s = first, last do
    low, high = math.min(low, series[s]), math.max(high, series[s])
  end
  return high - low
end

-- Does the lift swing, beside the drag, and no less at the end than before?  A
-- wake that is steady, or about to be, sheds no vortices.
local function sheds(lift, first, most_drag)
  local middle = math.floor((first + #lift) / 2)
  local late = swing(lift, middle + 1, #lift)
  return late > 0.01 * most_drag and late > 0.7 * swing(lift, first, middle)
end

-- From the forces of a run, those after sample `first`: the Strouhal number
-- (nil without vortices) and the largest drag and lift coefficients.
local function coefficients(drag, lift, first, height)
  local most_drag, most_lift = -math.huge, -math.huge
  for s = first, #drag do
    most_drag, most_lift = math.max(most_drag, drag[s]), math.max(most_lift, lift[s])
  end
  local between = sheds(lift, first, most_drag) and period(lift, first)
  local strouhal = between and height / (SPEED * between * lattice.STEPS_PER_REPLAY)
  local unit = 0.5 * SPEED ^ 2 * height
  return strouhal, most_drag / unit, most_lift / unit
end

local function compare(name, value, low, high)
  local beyond = math.max(low - value, value - high, 0)
  print(string.format("%-16s %.4f  published %.3f to %.3f, %s", name, value, low, high,
    beyond == 0 and "inside"
      or string.format("%.2f%% off", 100 * beyond / (value < low and low or high))))
end

local function verify_cylinder(cells, path)
  local nx, ny, viscosity = 22 * cells, 41 * cells / 10, SPEED * cells / 100
  local flow = channel(nx, ny, viscosity, cylinder(2 * cells, 2 * cells, cells))
  local second = 10 * cells / SPEED -- of the benchmark, in steps
  print(string.format("cylinder: %d x %d cells, %d across it", nx, ny, cells))
  local _, drag, lift = lattice.run(flow, 7 * second, "cylinder")
  local first = #drag - math.floor(2 * second / lattice.STEPS_PER_REPLAY)
  local strouhal, most_drag, most_lift = coefficients(drag, lift, first, cells)
  if not strouhal then
    error("no vortices were shed", 0)
  end
  compare("Strouhal number", strouhal, 0.295, 0.305)
  compare("largest drag", most_drag, 3.22, 3.24)
  compare("largest lift", most_lift, 0.99, 1.01)
  draw(flow, cells, path)
end

local function verify_decay(cells)
  local n, viscosity = 4 * cells, SPEED * cells / 100
  local k = 2 * math.pi / n
  local flow = lattice.flow(n, n, viscosity, {
    ranks = ranks:split(ranks.rank), -- each computes all of it
    start = function(x, y)
      return -0.75 * SPEED ^ 2 * (math.cos(2 * k * x) + math.cos(2 * k * y)),
        -SPEED * math.cos(k * x) * math.sin(k * y), SPEED * math.sin(k * x) * math.cos(k * y)
    end,
  })
  local function energy()
    local u, v = lattice.velocities(flow)
    local sum = 0
    for y = 0, n - 1 do
      for x = 0, n - 1 do
        sum = sum + u(x, y) ^ 2 + v(x, y) ^ 2
      end
    end
    return sum
  end
  local exact = 4 * viscosity * k * k -- of the energy
  print(string.format("Taylor-Green vortices: %d x %d cells", n, n))
  lattice.run(flow, 0.2 / exact, "start")
  local before = energy()
  local steps = lattice.run(flow, 2 / exact, "vortices")
  local rate = math.log(before / energy()) / steps
  print(string.format("decay rate       %.6g  exact %.6g, %.3f%% off", rate, exact,
    100 * math.abs(rate / exact - 1)))
end

if opt.verify then
  if opt.resolution % 10 ~= 0 then
    error("--resolution must be a multiple of 10: the channel is 4.1 cylinders high", 0)
  end
  note_unused({ obstacle = true, re = true, size = true, steps = true }, "with --verify")
  verify_cylinder(opt.resolution, opt.out)
  verify_decay(opt.resolution)
  return
end

note_unused({ resolution = true }, "without --verify")
local nx, ny, height, solid, cut = 4 * opt.size, opt.size, opt.size / 5
if opt.obstacle then
  nx, height, solid = drawn(opt.obstacle, ny)
else -- a little below the middle, so that vortices start by themselves
  solid, cut = cylinder(0.8 * ny, 0.49 * ny, height)
end
local flow = channel(nx, ny, SPEED * height / opt.re, solid, cut)
print(string.format("channel: %d x %d cells, the obstacle %g high, Re %g", nx, ny, height, opt.re))
if opt.re > height ^ 2 then
  print(string.format("note: boundary layers are thinner than a cell; --re %d is what this"
    .. " size resolves", height ^ 2))
end
local steps, drag, lift = lattice.run(flow, opt.steps, "flow")
local strouhal, most_drag, most_lift = coefficients(drag, lift, math.ceil(#drag / 2), height)
print(string.format("%d steps; in the second half: drag up to %.3f, lift up to %.3f, %s", steps,
  most_drag, most_lift, strouhal and string.format("Strouhal number %.3f", strouhal)
    or "no regular vortices"))
draw(flow, height, opt.out)
