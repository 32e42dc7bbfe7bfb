-- The Solar System under its own gravity, from J2000.0 on.
--
--   cgraphlua scripts/nbody.lua                      one year
--   cgraphlua scripts/nbody.lua --years 200 --asteroids 5000
--
-- Units are au and days, in the ecliptic of J2000.  A fourth-order symplectic
-- step (Yoshida, Physics Letters A 150 (1990)) is captured as a graph; a run
-- replays it.  The Sun and the planets attract every body.  The asteroids are
-- invented, and attract no body.
--
-- The script prints how far the total energy strayed, and how long the Earth
-- (with the Moon: their barycentre) takes to come back to the same direction
-- from the Sun, beside the sidereal year.

local cg = require "cgraphlua"
local ffi = require "ffi"
local image = require "cgraphlua.image"
local options = require "cgraphlua.options"
local progress = require "cgraphlua.progress"

-- Keplerian elements at J2000.0 (JD 2451545.0) from E. M. Standish, "Keplerian
-- Elements for Approximate Positions of the Major Planets", JPL, table 1 (valid
-- 1800 to 2050): a in au, e, and in degrees the inclination, the mean longitude
-- and the longitudes of perihelion and node.  GM in km^3/s^2 is of the planet
-- with its moons: JPL's DE440, R. S. Park et al., Astronomical Journal 161
-- (2021).
local SUN_GM = 132712440041.279419
local PLANETS = {
  { "Mercury", 22031.868551, 0.38709927, 0.20563593, 7.00497902, 252.25032350, 77.45779628,
    48.33076593, color = { 181, 169, 156 } },
  { "Venus", 324858.592, 0.72333566, 0.00677672, 3.39467605, 181.97909950, 131.60246718,
    76.67984255, color = { 240, 208, 130 } },
  { "Earth", 398600.435507 + 4902.800118, 1.00000261, 0.01671123, -0.00001531, 100.46457166,
    102.93768193, 0, color = { 110, 170, 255 } },
  { "Mars", 42828.375816, 1.52371034, 0.09339410, 1.84969142, -4.55343205, -23.94362959,
    49.55953891, color = { 240, 110, 70 } },
  { "Jupiter", 126712764.1, 5.20288700, 0.04838624, 1.30439695, 34.39644051, 14.72847983,
    100.47390909, color = { 222, 176, 140 } },
  { "Saturn", 37940584.8418, 9.53667594, 0.05386179, 2.48599187, 49.95424423, 92.59887831,
    113.66242448, color = { 235, 215, 160 } },
  { "Uranus", 5794556.4, 19.18916464, 0.04725744, 0.77263783, 313.23810451, 170.95427630,
    74.01692503, color = { 150, 225, 225 } },
  { "Neptune", 6836527.10058, 30.06992276, 0.00859048, 1.77004347, -55.12002969, 44.96476227,
    131.78422574, color = { 100, 130, 250 } },
  { "Pluto", 975.5, 39.48211675, 0.24882730, 17.14001206, 238.92903833, 224.06891629,
    110.30393684, color = { 205, 170, 185 } },
}
local EARTH = 3
local SIDEREAL_YEAR = 365.256363 -- days, at J2000.0; IERS
local AU, DAY = 149597870.7, 86400 -- in km and s; IAU 2012

local opt = options.read({
  usage = "scripts/nbody.lua [options]",
  about = "The Solar System from J2000.0: energy drift, the Earth's period, the orbits.",
  { "years", "N", 1, "how long", min = 1, max = 10000 },
  { "step", "X", 0.5, "days in a time step", min = 1e-3, max = 4 },
  { "asteroids", "N", 0, "massless bodies between Mars and Jupiter", min = 0, max = 1e6 },
  { "out", "OUT", "nbody.png", "the picture to write" },
}, arg)

local source = [=[
// x, y and z of all bodies follow each other in one array, so do velocities.
extern "C" __global__ void drift(double *x, const double *v, int n, double h)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] += h * v[i];
}

// The first `heavy` bodies pull.
extern "C" __global__ void kick(const double *x, double *v, const double *gm,
                                int n, int heavy, double h)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double ax = 0, ay = 0, az = 0;
    for (int j = 0; j < heavy; j++) {
      double dx = x[j] - x[i];
      double dy = x[n + j] - x[n + i];
      double dz = x[2 * n + j] - x[2 * n + i];
      double r2 = dx * dx + dy * dy + dz * dz;
      double pull = j == i ? 0. : gm[j] / (r2 * sqrt(r2));
      ax += pull * dx;
      ay += pull * dy;
      az += pull * dz;
    }
    v[i] += h * ax;
    v[n + i] += h * ay;
    v[2 * n + i] += h * az;
  }
}

// Sample number *sample: x, y, z and vx, vy, vz of the heavy bodies.
extern "C" __global__ void record(const double *x, const double *v, int n,
                                  int heavy, const int *sample,
                                  double *history)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < heavy) {
    double *to = history + (size_t)6 * heavy * *sample + 6 * i;
    for (int k = 0; k < 3; k++) {
      to[k] = x[k * n + i];
      to[3 + k] = v[k * n + i];
    }
  }
}

extern "C" __global__ void tick(int *sample)
{
  *sample += 1;
}
]=]

local function gm_of(km3_per_s2)
  return km3_per_s2 * DAY ^ 2 / AU ^ 3
end

-- A point of an ellipse about the Sun and the velocity there: a, e, the
-- angles in radians, gm of both bodies.
local function on_ellipse(a, e, inclination, mean_anomaly, argument, node, gm)
  local anomaly = mean_anomaly + e * math.sin(mean_anomaly) -- Kepler's equation, by Newton
  for _ = 1, 20 do
    anomaly = anomaly
      - (anomaly - e * math.sin(anomaly) - mean_anomaly) / (1 - e * math.cos(anomaly))
  end
  local c, s = math.cos(anomaly), math.sin(anomaly)
  local minor = math.sqrt(1 - e * e)
  local rate = math.sqrt(gm / a ^ 3) / (1 - e * c)
  local function rotated(x, y)
    local cw, sw, ci = math.cos(argument), math.sin(argument), math.cos(inclination)
    local cn, sn = math.cos(node), math.sin(node)
    local along, across = cw * x - sw * y, sw * x + cw * y
    return { cn * along - sn * ci * across, sn * along + cn * ci * across,
      math.sin(inclination) * across }
  end
  return rotated(a * (c - e), a * minor * s), rotated(-a * s * rate, a * minor * c * rate)
end

local function planet_at(planet, mean_longitude, gm)
  local _, _, a, e, inclination, _, perihelion, node = unpack(planet)
  return on_ellipse(a, e, math.rad(inclination), math.rad(mean_longitude - perihelion),
    math.rad(perihelion - node), math.rad(node), gm)
end

-- Masses (as GM), positions and velocities about the common barycentre.
local function solar_system(asteroids)
  local heavy = #PLANETS + 1
  local n = heavy + asteroids
  local gm, x, v = { gm_of(SUN_GM) }, ffi.new("double[?]", 3 * n), ffi.new("double[?]", 3 * n)
  local function place(body, position, velocity)
    for k = 0, 2 do
      x[k * n + body], v[k * n + body] = position[k + 1], velocity[k + 1]
    end
  end
  for i, planet in ipairs(PLANETS) do
    gm[i + 1] = gm_of(planet[2])
    place(i, planet_at(planet, planet[6], gm[1] + gm[i + 1]))
  end
  math.randomseed(1801) -- Ceres was found on the first day of that year
  for i = heavy, n - 1 do
    local function angle()
      return 2 * math.pi * math.random()
    end
    place(i, on_ellipse(2.1 + 1.2 * math.random(), 0.2 * math.random(), 0.25 * math.random(),
      angle(), angle(), angle(), gm[1]))
  end
  local total = 0
  for i = 1, heavy do
    total = total + gm[i]
  end
  for k = 0, 2 do
    local center, motion = 0, 0
    for i = 1, heavy do
      center, motion = center + gm[i] * x[k * n + i - 1], motion + gm[i] * v[k * n + i - 1]
    end
    for i = 0, n - 1 do
      x[k * n + i], v[k * n + i] = x[k * n + i] - center / total, v[k * n + i] - motion / total
    end
  end
  return n, heavy, gm, x, v
end

-- The energy of one sample, times the constant of gravity.
local function energy(history, sample, gm)
  local heavy = #gm
  local base, sum = 6 * heavy * sample, 0
  for i = 0, heavy - 1 do
    local p = base + 6 * i
    sum = sum
      + 0.5 * gm[i + 1] * (history[p + 3] ^ 2 + history[p + 4] ^ 2 + history[p + 5] ^ 2)
    for j = 0, i - 1 do
      local q = base + 6 * j
      sum = sum - gm[i + 1] * gm[j + 1] / math.sqrt((history[p] - history[q]) ^ 2
        + (history[p + 1] - history[q + 1]) ^ 2 + (history[p + 2] - history[q + 2]) ^ 2)
    end
  end
  return sum
end

-- How long, in samples, the Earth takes for `turns` turns about the Sun.
local function time_of_turns(history, samples, heavy, turns)
  local turned, before, first = 0, nil, nil
  for s = 0, samples - 1 do
    local sun = 6 * heavy * s
    local earth = sun + 6 * EARTH
    local longitude = math.atan2(history[earth + 1] - history[sun + 1],
      history[earth] - history[sun])
    first = first or longitude
    local now = longitude - first + 2 * math.pi * turned
    if before and now < before - math.pi then
      turned, now = turned + 1, now + 2 * math.pi
    end
    if before and now >= 2 * math.pi * turns then
      return s - 1 + (2 * math.pi * turns - before) / (now - before)
    end
    before = now
  end
  return nil
end

-- A square picture of the ecliptic from the north; distances to the power 0.4,
-- so that Mercury and Pluto both have room.
local function new_sky(size)
  local sky = image.new(size, size, 3)
  local function dab(x, y, radius, color, strength)
    local r = math.sqrt(x * x + y * y)
    local scale = r > 0 and 0.5 * size * (r / 50) ^ 0.4 / r or 0
    local px, py = 0.5 * size + scale * x, 0.5 * size - scale * y
    for j = math.max(0, math.floor(py - radius)), math.min(size - 1, math.ceil(py + radius)) do
      for i = math.max(0, math.floor(px - radius)), math.min(size - 1, math.ceil(px + radius)) do
        local cover = radius + 0.5 - math.sqrt((i + 0.5 - px) ^ 2 + (j + 0.5 - py) ^ 2)
        cover = strength * math.max(0, math.min(1, cover))
        for k = 0, 2 do
          local at = 3 * (j * size + i) + k
          sky.pixels[at] = sky.pixels[at] + cover * (color[k + 1] - sky.pixels[at])
        end
      end
    end
  end
  return sky, dab
end

local function draw(path, history, samples, x, n, heavy)
  local sky, dab = new_sky(1000)
  for i = heavy, n - 1 do
    dab(x[i], x[n + i], 0.5, { 150, 150, 150 }, 0.5)
  end
  for i, planet in ipairs(PLANETS) do
    for degree = 0, 360, 0.25 do
      local p = planet_at(planet, degree, 1)
      dab(p[1], p[2], 0.6, { 110, 110, 125 }, 0.4)
    end
    local every = math.max(1, math.floor(samples / 4000))
    for s = 0, samples - 1, every do
      local sun = 6 * heavy * s
      dab(history[sun + 6 * i] - history[sun], history[sun + 6 * i + 1] - history[sun + 1], 1,
        planet.color, 0.4)
    end
  end
  local last = 6 * heavy * (samples - 1)
  for i, planet in ipairs(PLANETS) do
    dab(history[last + 6 * i], history[last + 6 * i + 1], 4.5, planet.color, 1)
  end
  dab(0, 0, 9, { 255, 240, 190 }, 1)
  image.write(path, sky)
end

local n, heavy, gm, x0, v0 = solar_system(opt.asteroids)
local steps = math.ceil((opt.years * SIDEREAL_YEAR + 1) / opt.step)
local steps_per_sample = math.ceil(steps / 20000)
local samples = math.ceil(steps / steps_per_sample) + 1

local module = cg.module(source)
local drift, kick = module:kernel "drift", module:kernel "kick"
local record, tick = module:kernel "record", module:kernel "tick"
local x, v, masses = cg.from(x0, "double"), cg.from(v0, "double"), cg.from(gm, "double")
local sample, history = cg.zeros("int32", 1), cg.zeros("double", samples * 6 * heavy)

local function step(h)
  local outer = 1 / (2 - 2 ^ (1 / 3))
  local inner = 1 - 2 * outer
  local before, block = 0, 128
  for _, part in ipairs { outer, inner, outer } do
    drift:launch(math.ceil(3 * n / block), block, x, v, 3 * n, 0.5 * (before + part) * h)
    kick:launch(math.ceil(n / block), block, x, v, masses, n, heavy, part * h)
    before = part
  end
  drift:launch(math.ceil(3 * n / block), block, x, v, 3 * n, 0.5 * before * h)
end

local function keep_sample()
  record:launch(1, 32, x, v, n, heavy, sample, history)
  tick:launch(1, 1, sample)
end

keep_sample()
local graph = cg.capture(function()
  for _ = 1, steps_per_sample do
    step(opt.step)
  end
  keep_sample()
end)

local bar = progress.new { total = samples - 1, label = "orbits", unit = "samples" }
local pauses, done = math.min(samples - 1, 50), 0
for k = 1, pauses do
  local target = math.floor((samples - 1) * k / pauses)
  graph:replay(target - done)
  done = target
  cg.synchronize()
  bar:update(done)
end
bar:finish()

local past = history:download(ffi.new("double[?]", #history))
local first, strayed = energy(past, 0, gm), 0
for s = 1, samples - 1 do
  strayed = math.max(strayed, math.abs(energy(past, s, gm) / first - 1))
end
local days = (samples - 1) * steps_per_sample * opt.step
print(string.format("%d bodies, %.1f days from J2000.0 in steps of %g", n, days, opt.step))
print(string.format("relative energy drift %.3g", strayed))
local turns = time_of_turns(past, samples, heavy, opt.years)
if turns then
  local period = turns * steps_per_sample * opt.step / opt.years
  print(string.format("the Earth's period %.4f days, the sidereal year %.4f: %.4f apart", period,
    SIDEREAL_YEAR, math.abs(period - SIDEREAL_YEAR)))
end
draw(opt.out, past, samples, x:download(ffi.new("double[?]", 3 * n)), n, heavy)
print("wrote " .. opt.out)
