-- The picture of scripts/digits.lua: the loss and the mistakes as they fall, and
-- the images that the network still classifies wrongly.  Lines are smooth; words
-- are in a font of 5 x 7 dots that is drawn below.

local ffi = require "ffi"
local image = require "cgraphlua.image"

local chart = {}

local WIDTH, HEIGHT = 1240, 760
local PAPER, INK, FAINT = { 252, 252, 250 }, { 45, 50, 60 }, { 222, 224, 228 }
local GRAY, BLUE, PALE, RED = { 120, 126, 138 }, { 20, 90, 180 }, { 140, 185, 235 }, { 200, 45, 45 }

-- A hexadecimal pair for each row of a letter, its lowest five bits from the
-- left; one letter a word.
local letters = {
  A = "0e11111f111111", B = "1e11111e11111e", C = "0e11101010110e", D = "1e11111111111e",
  E = "1f10101e10101f", F = "1f10101e101010", G = "0e11101713110e", H = "1111111f111111",
  I = "0e04040404040e", J = "0702020202120c", K = "11121418141211", L = "1010101010101f",
  M = "111b1515111111", N = "11191513111111", O = "0e11111111110e", P = "1e11111e101010",
  Q = "0e11111115120d", R = "1e11111e141211", S = "0f10100e01011e", T = "1f040404040404",
  U = "1111111111110e", V = "11111111110a04", W = "11111115151b11", X = "11110a040a1111",
  Y = "11110a04040404", Z = "1f01020408101f",
  ["0"] = "0e11131519110e", ["1"] = "040c040404040e", ["2"] = "0e11010204081f",
  ["3"] = "1f02040201110e", ["4"] = "02060a121f0202", ["5"] = "1f101e0101110e",
  ["6"] = "0608101e11110e", ["7"] = "1f010204080808", ["8"] = "0e11110e11110e",
  ["9"] = "0e11110f01020c", ["."] = "00000000000c0c", [","] = "000000000c0408",
  ["%"] = "18190204081303", ["-"] = "0000001f000000", [":"] = "000c0c000c0c00",
  [">"] = "0004021f020400", ["("] = "02040808080402", [")"] = "08040202020408",
}

local function new_canvas(width, height)
  local canvas = image.new(width, height, 3)
  for i = 0, width * height - 1 do
    canvas.pixels[3 * i], canvas.pixels[3 * i + 1], canvas.pixels[3 * i + 2] = unpack(PAPER)
  end
  return canvas
end

local function blend(canvas, x, y, color, strength)
  if x < 0 or y < 0 or x >= canvas.width or y >= canvas.height then
    return
  end
  local at = 3 * (y * canvas.width + x)
  for k = 0, 2 do
    local before = canvas.pixels[at + k]
    canvas.pixels[at + k] = before + strength * (color[k + 1] - before) + 0.5
  end
end

local function fill(canvas, x, y, width, height, color)
  for j = y, y + height - 1 do
    for i = x, x + width - 1 do
      blend(canvas, i, j, color, 1)
    end
  end
end

-- Writes at the top left corner; align 0.5 and 1 put the middle and the right
-- end there.
local function write(canvas, x, y, text, color, size, align)
  text = text:upper()
  x = math.floor(x - (align or 0) * (6 * #text - 1) * size + 0.5)
  for i = 1, #text do
    local rows = letters[text:sub(i, i)]
    for row = 0, rows and 6 or -1 do
      local bits = tonumber(rows:sub(2 * row + 1, 2 * row + 2), 16)
      for column = 0, 4 do
        if math.floor(bits / 2 ^ (4 - column)) % 2 == 1 then
          fill(canvas, x + column * size, y + row * size, size, size, color)
        end
      end
    end
    x = x + 6 * size
  end
end

-- A line through points {x, y}, drawn as one piece: where it crosses itself it
-- is no darker.  Points that are no number leave a gap.
local function stroke(canvas, points, thickness, color, strength)
  local width, height = canvas.width, canvas.height
  local cover = ffi.new("float[?]", width * height)
  local radius = thickness / 2
  for n = 1, #points - 1 do
    local ax, ay = points[n][1], points[n][2]
    local dx, dy = points[n + 1][1] - ax, points[n + 1][2] - ay
    local length2 = math.max(1e-9, dx * dx + dy * dy)
    local is_gap = ax + ay + dx + dy ~= ax + ay + dx + dy
    local left = math.max(0, math.floor(math.min(ax, ax + dx) - radius - 1))
    local right = math.min(width - 1, math.ceil(math.max(ax, ax + dx) + radius + 1))
    local top = math.max(0, math.floor(math.min(ay, ay + dy) - radius - 1))
    local bottom = math.min(height - 1, math.ceil(math.max(ay, ay + dy) + radius + 1))
    for y = is_gap and bottom + 1 or top, bottom do
      for x = left, right do
        local px, py = x + 0.5 - ax, y + 0.5 - ay
        local part = math.max(0, math.min(1, (px * dx + py * dy) / length2))
        local off = math.sqrt((px - part * dx) ^ 2 + (py - part * dy) ^ 2)
        local here = math.max(0, math.min(1, radius + 0.5 - off))
        local at = y * width + x
        cover[at] = math.max(cover[at], here)
      end
    end
  end
  for y = 0, height - 1 do
    for x = 0, width - 1 do
      local here = cover[y * width + x]
      if here > 0 then
        blend(canvas, x, y, color, strength * here)
      end
    end
  end
end

-- The frame of a diagram: place() takes a value of each axis to the canvas.
local function diagram(canvas, box, title, last, low, high, to_scale)
  local bottom, top = to_scale(low), to_scale(high)
  local function place(x, y)
    local inside = y < low and low or y > high and high or y
    local part = (to_scale(inside) - bottom) / (top - bottom)
    return { box.x + box.width * x / last, box.y + box.height * (1 - part) }
  end
  write(canvas, box.x, box.y - 26, title, INK, 2)
  return place
end

-- A step of 1, 2 or 5 times a power of ten that divides `range` in at most
-- `parts`.
local function even_step(range, parts)
  local power = 10 ^ math.floor(math.log10(range / parts))
  for _, factor in ipairs { 1, 2, 5, 10 } do
    if range <= parts * power * factor * (1 + 1e-9) then
      return power * factor
    end
  end
end

local function number_text(x)
  return (string.format("%.4f", x):gsub("%.?0+$", ""))
end

local function ticks(canvas, box, place, values, unit)
  for _, value in ipairs(values) do
    local y = math.floor(place(0, value)[2])
    fill(canvas, box.x, y, box.width, 1, FAINT)
    write(canvas, box.x - 10, y - 3, number_text(value) .. (unit or ""), GRAY, 1, 1)
  end
end

local function epochs_below(canvas, box, epochs)
  local step = math.max(1, even_step(epochs, 8))
  for epoch = 0, epochs, step do
    local x = box.x + box.width * epoch / epochs
    fill(canvas, math.floor(x), box.y + box.height, 1, 5, GRAY)
    write(canvas, x, box.y + box.height + 10, number_text(epoch), GRAY, 1, 0.5)
  end
  fill(canvas, box.x, box.y + box.height, box.width, 1, GRAY)
end

-- Powers of ten that the losses lie between, but for single steps far below.
local function decades(means)
  local least, most = math.huge, -math.huge
  for _, mean in ipairs(means) do
    least = mean < least and mean or least
    most = mean > most and mean or most
  end
  if not (least > 0 and most > 0 and most < math.huge) then
    least, most = 0.01, 1 -- the losses are zero, or not finite
  end
  local low = math.max(math.floor(math.log10(least)) - 1, -12)
  return low, math.max(math.ceil(math.log10(most)), low + 2)
end

local function draw_losses(canvas, box, data)
  local losses, steps = data.losses, data.steps
  local means, per_epoch = {}, steps / data.epochs
  for epoch = 1, data.epochs do
    local sum = 0
    for i = (epoch - 1) * per_epoch, epoch * per_epoch - 1 do
      sum = sum + losses[i]
    end
    means[epoch] = sum / per_epoch
  end
  local low, high = decades(means)
  local place = diagram(canvas, box, "loss of a step, and of an epoch (mean)", steps, 10 ^ low,
    10 ^ high, math.log10)
  local values = {}
  for power = low, high do
    values[#values + 1] = 10 ^ power
  end
  ticks(canvas, box, place, values)
  local every, line = {}, {}
  for n = 0, steps - 1 do
    every[n + 1] = place(n + 0.5, losses[n])
  end
  for epoch, mean in ipairs(means) do
    line[epoch] = place((epoch - 0.5) * per_epoch, mean)
  end
  stroke(canvas, every, 1, PALE, 0.8)
  stroke(canvas, line, 3, BLUE, 1)
  epochs_below(canvas, box, data.epochs)
end

local function draw_missed(canvas, box, data)
  local shown, least = {}, math.huge
  for i, missed in ipairs(data.missed) do
    shown[i] = 100 * missed / data.held
    least = math.min(least, shown[i])
  end
  local high = math.max(10, math.min(100, 10 * math.ceil(4 * least / 10))) -- not for the start
  local place = diagram(canvas, box, "held out, mistaken", data.epochs, 0, high, function(x)
    return x
  end)
  local values = {}
  for value = 0, high, even_step(high, 5) do
    values[#values + 1] = value
  end
  ticks(canvas, box, place, values, "%")
  local points = {}
  for i, value in ipairs(shown) do
    points[i] = place(i - 1, value)
  end
  stroke(canvas, points, 3, RED, 1)
  epochs_below(canvas, box, data.epochs)
  write(canvas, box.x + box.width / 2, box.y + box.height + 26, "epochs", GRAY, 1, 0.5)
end

local function draw_mistakes(canvas, x, y, data)
  local side, gap_x, gap_y = data.side, 28, 44
  local zoom, columns, rows = 13, 3, 4
  if #data.mistakes > columns * rows then
    zoom, columns, rows = 9, 4, 5
  end
  local most = columns * rows
  local title = string.format("%d of %d mistaken: label > guess", #data.mistakes, data.held)
  write(canvas, x, y - 26, title, INK, 2)
  for n, mistake in ipairs(data.mistakes) do
    if n > most then
      break
    end
    local left = x + (n - 1) % columns * (side * zoom + gap_x)
    local top = y + math.floor((n - 1) / columns) * (side * zoom + gap_y)
    fill(canvas, left - 1, top - 1, side * zoom + 2, side * zoom + 2, GRAY)
    for row = 0, side - 1 do
      for column = 0, side - 1 do
        local ink = data.images[mistake.image * side * side + row * side + column]
        local shade = 255 - 230 * ink
        fill(canvas, left + column * zoom, top + row * zoom, zoom, zoom, { shade, shade, shade })
      end
    end
    local middle = left + side * zoom / 2
    write(canvas, middle - 24, top + side * zoom + 8, tostring(mistake.label), INK, 2, 0.5)
    write(canvas, middle, top + side * zoom + 8, ">", GRAY, 2, 0.5)
    write(canvas, middle + 24, top + side * zoom + 8, tostring(mistake.guess), RED, 2, 0.5)
  end
  if #data.mistakes > most then
    write(canvas, x, y + rows * (side * zoom + gap_y), string.format("and %d more",
      #data.mistakes - most), GRAY, 1)
  end
end

--- Writes the picture.  data: losses (an array from 0) of `steps` steps in
-- `epochs` epochs; missed (a list: before the first epoch, then after each) of
-- `held` images; mistakes, a list of {image, label, guess}, and the images of
-- side x side numbers from 0 to 1.
function chart.draw(path, data)
  local canvas = new_canvas(WIDTH, HEIGHT)
  draw_losses(canvas, { x = 70, y = 60, width = 680, height = 380 }, data)
  draw_missed(canvas, { x = 70, y = 520, width = 680, height = 170 }, data)
  draw_mistakes(canvas, 820, 60, data)
  image.write(path, canvas)
end

return chart
