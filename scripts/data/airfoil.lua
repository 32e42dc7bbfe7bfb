-- Draws scripts/data/airfoil.png, an obstacle for scripts/lbm.lua:
--   cgraphlua scripts/data/airfoil.lua [out.png]
-- A NACA 4415 airfoil, nose up by 14 degrees, in a channel 4 times as long as
-- high.

local image = require "cgraphlua.image"

local WIDTH, HEIGHT = 960, 240
local CHORD, NOSE_X, NOSE_Y = 220, 180, 90 -- pixels, from the top left
local CAMBER, CAMBER_AT, THICKNESS = 0.04, 0.4, 0.15 -- of the chord: 4415
local ANGLE = math.rad(14)

-- The middle line and half the thickness at x, both in chords.
local function profile(x)
  local camber
  if x < CAMBER_AT then
    camber = CAMBER / CAMBER_AT ^ 2 * (2 * CAMBER_AT * x - x * x)
  else
    camber = CAMBER / (1 - CAMBER_AT) ^ 2 * (1 - 2 * CAMBER_AT + 2 * CAMBER_AT * x - x * x)
  end
  local half = 5 * THICKNESS * (0.2969 * math.sqrt(x) - 0.1260 * x - 0.3516 * x ^ 2
    + 0.2843 * x ^ 3 - 0.1036 * x ^ 4)
  return camber, half
end

local function is_inside(column, line)
  local right, up = (column - NOSE_X) / CHORD, (NOSE_Y - line) / CHORD
  local x = math.cos(ANGLE) * right - math.sin(ANGLE) * up
  local y = math.sin(ANGLE) * right + math.cos(ANGLE) * up
  if x < 0 or x > 1 then
    return false
  end
  local camber, half = profile(x)
  return math.abs(y - camber) < half
end

local img = image.new(WIDTH, HEIGHT, 1)
for line = 0, HEIGHT - 1 do
  for column = 0, WIDTH - 1 do
    img.pixels[line * WIDTH + column] = is_inside(column + 0.5, line + 0.5) and 0 or 255
  end
end
image.write(arg[1] or (arg[0]:match "^.*/" or "") .. "airfoil.png", img)
