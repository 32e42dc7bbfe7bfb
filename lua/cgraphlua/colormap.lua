--- Colour maps for cgraphlua.image.
-- Each map is a path through OKLCh (lightness, chroma, hue: Björn Ottosson's
-- OKLab in polar form), given by a few points and drawn smoothly between
-- them.  Lightness is a straight line of the value (for coolwarm: two lines
-- that meet in the middle), so that equal steps of a field look equally big
-- and survive a gray print.  The names say which known maps they resemble;
-- the colours are our own.

local colormap = {}

local SIZE = 256

-- lightness: {at 0, at 1} or {at 0, at 1/2, at 1}; chroma and hue (degrees):
-- evenly spaced points.
local paths = {
  viridis = {
    lightness = { 0.28, 0.92 },
    chroma = { 0.125, 0.115, 0.095, 0.15, 0.185 },
    hue = { 312, 272, 205, 150, 106 },
  },
  inferno = {
    lightness = { 0.03, 0.97 },
    chroma = { 0.015, 0.155, 0.185, 0.175, 0.10 },
    hue = { 280, 312, 372, 413, 462 },
  },
  coolwarm = {
    lightness = { 0.42, 0.95, 0.42 },
    chroma = { 0.17, 0.10, 0.0, 0.10, 0.17 },
    sides = { 262, 27 }, -- one hue for each side of the middle
  },
  gray = {
    lightness = { 0, 1 },
    chroma = { 0, 0 },
    hue = { 0, 0 },
  },
}

-- Catmull-Rom through evenly spaced points.
local function smooth(points, t)
  local n = #points
  local x = t * (n - 1)
  local i = math.min(math.floor(x), n - 2)
  local u = x - i
  local b, c = points[i + 1], points[i + 2]
  local a = points[i] or 2 * b - c
  local d = points[i + 3] or 2 * c - b
  return b + 0.5 * u * (c - a + u * (2 * a - 5 * b + 4 * c - d + u * (3 * (b - c) + d - a)))
end

local function straight(points, t)
  local n = #points
  local x = t * (n - 1)
  local i = math.min(math.floor(x), n - 2)
  return points[i + 1] + (x - i) * (points[i + 2] - points[i + 1])
end

-- OKLab to linear sRGB.
local function linear(lightness, a, b)
  local l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ^ 3
  local m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ^ 3
  local s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ^ 3
  return 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s
end

local function inside(r, g, b)
  local lowest, highest = -1e-4, 1 + 1e-4
  return math.min(r, g, b) >= lowest and math.max(r, g, b) <= highest
end

-- The sRGB byte of a linear intensity.
local function encode(x)
  x = math.max(0, math.min(1, x))
  x = x <= 0.0031308 and 12.92 * x or 1.055 * x ^ (1 / 2.4) - 0.055
  return math.floor(255 * x + 0.5)
end

-- The colour at t; chroma that sRGB cannot show is given up, lightness and
-- hue are kept.
local function color(path, t)
  local lightness = straight(path.lightness, t)
  local chroma = math.max(0, smooth(path.chroma, t))
  local hue = math.rad(path.sides and path.sides[t < 0.5 and 1 or 2] or smooth(path.hue, t))
  local r, g, b = linear(lightness, chroma * math.cos(hue), chroma * math.sin(hue))
  if not inside(r, g, b) then
    local low, high = 0, chroma
    for _ = 1, 24 do
      local middle = 0.5 * (low + high)
      r, g, b = linear(lightness, middle * math.cos(hue), middle * math.sin(hue))
      if inside(r, g, b) then
        low = middle
      else
        high = middle
      end
    end
    r, g, b = linear(lightness, low * math.cos(hue), low * math.sin(hue))
  end
  return encode(r), encode(g), encode(b)
end

local tables = {}

--- The names of all maps, in order.
function colormap.names()
  local names = {}
  for name in pairs(paths) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- Three lists of `colormap.size` bytes (red, green, blue) for a map's name,
-- from 0; nil for a name that is not there.
function colormap.table(name)
  local path = paths[name]
  if not path then
    return nil
  end
  if not tables[name] then
    local red, green, blue = {}, {}, {}
    for i = 0, SIZE - 1 do
      red[i], green[i], blue[i] = color(path, i / (SIZE - 1))
    end
    tables[name] = { red, green, blue }
  end
  return unpack(tables[name])
end

colormap.size = SIZE

return colormap
