-- The potential of charges in a box whose walls are grounded: -laplace(u) = f.
--
--   cgraphlua scripts/poisson.lua
--   cgraphlua scripts/poisson.lua --size 1024 --check-every 32
--
-- The box is the unit square, with N x N unknowns inside; a charge is a Gaussian,
-- so that the exact potential is a sum of sines.  Conjugate gradients solve the
-- five-point scheme (lib/conjugate.lua).  How many iterations it takes nobody
-- knows before: cg.loop is captured with the rest, and the device itself stops
-- it when the residual is small enough.  So a solution is one replay.
--
-- --check-every K also solves as a host has to without such a loop: it replays K
-- iterations, waits, reads the residual, and goes on or stops.

local cg = require "cgraphlua"
local ffi = require "ffi"
local image = require "cgraphlua.image"
local options = require "cgraphlua.options"
local here = arg[0]:match "^.*/" or ""
local conjugate = dofile(here .. "lib/conjugate.lua")

local opt = options.read({
  usage = "scripts/poisson.lua [options]",
  about = "The potential of charges in a grounded box, by conjugate gradients in one replay.",
  { "size", "N", 512, "unknowns on a side", min = 3, max = 8192 },
  { "tolerance", "X", 1e-5, "of the residual, relative to the right side", min = 1e-9, max = 0.5 },
  { "most", "N", 100000, "iterations that may be made", min = 1, max = 1e9 },
  { "eager", nil, nil, "launch every kernel, and look at every residual; no graph" },
  { "check-every", "N", nil, "also have the host look, every N iterations", min = 1, max = 1000 },
  { "out", "OUT", "poisson.png", "the picture to write" },
}, arg)

-- x, y, charge
local CHARGES = {
  { 0.28, 0.30, 1 }, { 0.46, 0.24, -1 }, { 0.66, 0.33, 1 }, { 0.75, 0.55, -1 },
  { 0.62, 0.74, 1 }, { 0.41, 0.72, -1 }, { 0.27, 0.55, 0.6 }, { 0.50, 0.49, -0.6 },
}
local SPREAD = 0.025 -- of a charge
local MODES = 80 -- sines along x and y; those left out are below 1e-8

local n = opt.size
local h = 1 / (n + 1)

-- h^2 times the charges' density, and the sum of its squares.
local function right_side()
  local b, sum = ffi.new("float[?]", n * n), 0
  for j = 0, n - 1 do
    for i = 0, n - 1 do
      local density = 0
      for _, charge in ipairs(CHARGES) do
        local dx, dy = (i + 1) * h - charge[1], (j + 1) * h - charge[2]
        density = density + charge[3] * math.exp(-(dx * dx + dy * dy) / (2 * SPREAD * SPREAD))
      end
      local value = ffi.cast("float", h * h * density / (2 * math.pi * SPREAD * SPREAD))
      b[j * n + i], sum = value, sum + tonumber(value) ^ 2
    end
  end
  return b, sum
end

-- The exact potential where the unknowns are: each sine of the charges, divided
-- by its eigenvalue.
local function exact_potential()
  local sines = ffi.new("double[?]", MODES * n)
  for m = 1, MODES do
    for i = 1, n do
      sines[(m - 1) * n + i - 1] = math.sin(m * math.pi * i * h)
    end
  end
  local function coefficient(k, m)
    local sum = 0
    for _, charge in ipairs(CHARGES) do
      sum = sum + charge[3] * math.sin(k * math.pi * charge[1]) * math.sin(m * math.pi * charge[2])
    end
    local squares = math.pi ^ 2 * (k * k + m * m)
    return 4 * sum * math.exp(-squares * SPREAD ^ 2 / 2) / squares
  end
  local u, along = ffi.new("double[?]", n * n), ffi.new("double[?]", n)
  for k = 1, MODES do
    ffi.fill(along, ffi.sizeof(along))
    for m = 1, MODES do
      local c = coefficient(k, m)
      for j = 0, n - 1 do
        along[j] = along[j] + c * sines[(m - 1) * n + j]
      end
    end
    for j = 0, n - 1 do
      for i = 0, n - 1 do
        u[j * n + i] = u[j * n + i] + along[j] * sines[(k - 1) * n + i]
      end
    end
  end
  return u
end

-- The potential in colours, with lines of equal potential.
local function draw(path, u)
  local LEVELS = 36
  local most = 0
  for i = 0, n * n - 1 do
    most = math.max(most, math.abs(u[i]))
  end
  local picture = image.map(u, n, n, { colormap = "coolwarm", symmetric = true })
  local function level(i, j)
    return math.floor(LEVELS * (0.5 + 0.5 * u[j * n + i] / most))
  end
  for j = 0, n - 2 do
    for i = 0, n - 2 do
      local here_level = level(i, j)
      if here_level ~= level(i + 1, j) or here_level ~= level(i, j + 1) then
        for k = 3 * (j * n + i), 3 * (j * n + i) + 2 do
          picture.pixels[k] = 0.6 * picture.pixels[k]
        end
      end
    end
  end
  image.write(path, picture)
end

local b, b_squares = right_side()
local limit = opt.tolerance ^ 2 * b_squares
local solver = conjugate.new(n)
solver.b:upload(b)

-- Runs fn, which returns the number of iterations, and reports.
local function timed(name, fn)
  local before, after = cg.event(), cg.event()
  cg.synchronize()
  before:record()
  local iterations = fn()
  after:record()
  after:synchronize()
  local each = before:elapsed(after) / math.max(1, iterations)
  print(string.format("%s: %d iterations, %.4g us each; relative residual %.3g", name,
    iterations, 1000 * each, math.sqrt(solver:residual_squares() / b_squares)))
  return iterations
end

local loop
local function solve()
  solver:begin(limit)
  loop = cg.loop(solver.going, function()
    solver:iterate(limit)
  end, { max = opt.most })
end

print(string.format("%d x %d unknowns, tolerance %g", n, n, opt.tolerance))
if opt.eager then
  timed("eager", function()
    solve()
    return loop:turns()
  end)
else
  local graph = cg.capture(solve)
  timed("one replay", function()
    graph:replay()
    return loop:turns()
  end)
end
local reached = not loop:exhausted()

local u = solver:solution()
local exact = exact_potential()
local off, all = 0, 0
for i = 0, n * n - 1 do
  off, all = off + (u[i] - exact[i]) ^ 2, all + exact[i] ^ 2
end
if reached then
  print(string.format("relative L2 error %.3g, of the scheme and of the iteration",
    math.sqrt(off / all)))
else
  print(string.format("the tolerance was not reached in %d iterations: relative L2 error %.3g",
    opt.most, math.sqrt(off / all)))
end

if opt["check-every"] then
  local every = opt["check-every"]
  local begin = cg.capture(function()
    solver:begin(limit)
  end)
  local going = cg.pinned("int32", 1)
  local some = cg.capture(function()
    for _ = 1, every do
      solver:iterate(limit)
    end
    going:copy(solver.going)
  end)
  timed("checked by the host every " .. every, function()
    local iterations = 0
    begin:replay()
    repeat
      some:replay()
      cg.current_stream():synchronize()
      iterations = iterations + every
    until going:get(1) == 0 or iterations >= opt.most
    return iterations
  end)
end

draw(opt.out, u)
print("wrote " .. opt.out)
