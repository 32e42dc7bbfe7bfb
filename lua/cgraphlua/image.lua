--- Pictures: PNG in and out, colour maps, gray, resizing.
-- A picture is a table {width, height, channels, pixels}: pixels is an FFI
-- array of bytes (a string is taken too), rows from the top, `channels`
-- bytes a pixel: 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA.

local ffi = require "ffi"
local colormap = require "cgraphlua.colormap"
local core = require "cgraphlua.core"
local png = core.png

core.hide() -- errors name the script's line

local image = {}

local MAX_SIZE = 16384
local MAX_PIXELS = MAX_SIZE ^ 2
local bytes = ffi.typeof "uint8_t[?]"
local doubles = ffi.typeof "double[?]"

-- Raises at the caller of the public function.
local function fail(...)
  error(string.format(...), 3)
end

-- Raises unless `opts` is nil or a table of known options, at the caller of the
-- public function.
local function check_options(operation, opts, known)
  if opts == nil then
    return
  elseif type(opts) ~= "table" then
    error(("%s: a table of options expected, got %s"):format(operation, type(opts)), 3)
  end
  for name in pairs(opts) do
    if not known[name] then
      local list = {}
      for other in pairs(known) do
        list[#list + 1] = other
      end
      table.sort(list)
      error(("%s: unknown option '%s'; the options are %s%s"):format(operation, tostring(name),
        table.concat(list, ", "), core.nearest(tostring(name), known)), 3)
    end
  end
end

local function is_count(x, highest)
  return type(x) == "number" and x >= 1 and x <= highest and x % 1 == 0
end

-- The reason why no picture has this size, or nil.
local function extent_defect(width, height)
  if not is_count(width, 2 ^ 20) or not is_count(height, 2 ^ 20) then
    return string.format("width and height must be whole numbers from 1 to 1048576, got %s x %s",
      tostring(width), tostring(height))
  elseif width * height > MAX_PIXELS then
    return string.format("%d x %d are more than %d pixels", width, height, MAX_PIXELS)
  end
  return nil
end

-- The reason why `img` has no picture's size, or nil.
local function size_defect(img)
  if type(img) ~= "table" then
    return "a picture {width, height, channels, pixels} expected, got " .. type(img)
  end
  local wrong = extent_defect(img.width, img.height)
  if not wrong and not is_count(img.channels, 4) then
    wrong = "channels must be 1, 2, 3 or 4, got " .. tostring(img.channels)
  end
  return wrong
end

-- The reason why `img` is no picture, or nil.
local function picture_defect(img)
  local wrong = size_defect(img)
  if wrong then
    return wrong
  end
  local n = img.width * img.height * img.channels
  local pixels = img.pixels
  local have
  if type(pixels) == "string" then
    have = #pixels
  elseif type(pixels) == "cdata" then
    have = ffi.sizeof(pixels)
    -- A pointer has no length: the caller answers for it.
    if pcall(ffi.typeof, pixels) and tostring(ffi.typeof(pixels)):find("%*>$") then
      have = n
    end
  else
    return "pixels must be a string or an FFI array of bytes, got " .. type(pixels)
  end
  if have < n then
    return string.format("pixels hold %d bytes, but %d x %d x %d needs %d", have, img.width,
      img.height, img.channels, n)
  end
  return nil
end

-- Raises unless `img` is a picture, at the caller of the public function `name`.
local function check_picture(name, img)
  local wrong = picture_defect(img)
  if wrong then
    error(("image.%s: %s"):format(name, wrong), 3)
  end
end

-- The same for a width and a height.
local function check_extent(name, width, height)
  local wrong = extent_defect(width, height)
  if wrong then
    error(("image.%s: %s"):format(name, wrong), 3)
  end
end

-- The pixels of a checked picture, to index from 0.
local function indexable(img)
  if type(img.pixels) == "string" then
    return ffi.cast("const uint8_t *", img.pixels)
  end
  return img.pixels
end

--- A black (and transparent) picture.
function image.new(width, height, channels)
  channels = channels or 3
  local wrong = size_defect { width = width, height = height, channels = channels }
  if wrong then
    fail("image.new: %s", wrong)
  end
  local pixels = bytes(width * height * channels)
  local img = { width = width, height = height, channels = channels, pixels = pixels }
  return img
end

local read_options = { max_size = true }

--- Reads a PNG file of any kind as 8-bit gray or RGB, with alpha where the
-- file has it.  opts.max_size: the largest side accepted (16384).
function image.read(path, opts)
  check_options("image.read", opts, read_options)
  local max_size = opts and opts.max_size or MAX_SIZE
  if type(path) ~= "string" then
    fail("image.read: a path expected, got %s", type(path))
  end
  if not is_count(max_size, 2 ^ 20) then
    fail("image.read: max_size must be a whole number from 1 to 1048576, got %s",
      tostring(max_size))
  end
  local width, height, channels, pixels = png.read(path, max_size)
  if not width then
    fail("image.read: %s: %s", path, height)
  end
  local array = bytes(#pixels)
  ffi.copy(array, pixels, #pixels)
  return { width = width, height = height, channels = channels, pixels = array }
end

local write_options = { compression = true }

--- Writes a PNG file; it is there whole or not at all.
-- opts.compression: 0 (fast) to 9 (small), 6.
function image.write(path, img, opts)
  check_options("image.write", opts, write_options)
  local compression = opts and opts.compression or 6
  if type(path) ~= "string" then
    fail("image.write: a path expected, got %s", type(path))
  end
  local wrong = png.name_defect(path)
  if wrong then
    fail("image.write: %s", wrong)
  end
  check_picture("write", img)
  if not (compression == 0 or is_count(compression, 9)) then
    fail("image.write: compression must be a whole number from 0 to 9, got %s",
      tostring(compression))
  end
  local n = img.width * img.height * img.channels
  local pixels = img.pixels
  if type(pixels) == "string" then
    pixels = pixels:sub(1, n)
  else
    pixels = ffi.string(pixels, n)
  end
  local ok, why = png.write(path, img.width, img.height, img.channels, pixels, compression)
  if not ok then
    fail("image.write: %s: %s", path, why)
  end
end

-- The number of elements in an FFI array; a pointer's is unknown.
local function length(array)
  local element = tostring(ffi.typeof(array)):match "^ctype<([%a%d_ ]-) ?%["
  return element and ffi.sizeof(array) / ffi.sizeof(element) or math.huge
end

-- `values`, width x height of them, as an FFI array or a list and the index of
-- its first element; buffers are downloaded.  Or nil and what there is instead.
local function numbers(values, width, height)
  local n = width * height
  local kind = type(values) == "userdata" and getmetatable(values)
  if kind == "cgraphlua.buffer" then
    local shape = values.shape
    if #shape == 2 and #values == n and shape[1] ~= height then
      return nil, string.format("a buffer of %d rows of %d", shape[1], shape[2])
    end
    values = values:download(values.type == "bool" and bytes(#values) or nil)
  elseif kind == "cgraphlua.pinned" then
    if #values ~= n then
      return nil, string.format("%d values", #values)
    end
    values = values:cdata()
  end
  local have = type(values)
  if have == "cdata" or have == "table" then
    local count = have == "cdata" and length(values) or #values
    if count == n or count == math.huge then -- a pointer's caller answers for it
      return values, have == "cdata" and 0 or 1
    end
    have = string.format("%d values", count)
  end
  return nil, have
end

-- The smallest and largest number among finite values; nil and the place of a
-- value that is no number at all.
local function extent(values, first, n)
  local low, high = math.huge, -math.huge
  for i = first, first + n - 1 do
    local x = tonumber(values[i])
    if not x then
      return nil, i - first + 1
    end
    if x < low and x > -math.huge then
      low = x
    end
    if x > high and x < math.huge then
      high = x
    end
  end
  if low > high then
    return 0, 1
  end
  return low, high
end

local map_options = { colormap = true, min = true, max = true, symmetric = true, flip = true,
                      invalid = true }

-- Refuses wrong values of image.map's options; raises at its caller.
local function check_map_values(opts)
  for _, name in ipairs { "min", "max" } do
    local x = opts[name]
    if x ~= nil and not (type(x) == "number" and math.abs(x) < math.huge) then
      error(("image.map: %s must be a finite number, got %s"):format(name, tostring(x)), 3)
    end
  end
  for i = 1, opts.invalid and 3 or 0 do
    local x = type(opts.invalid) == "table" and opts.invalid[i]
    if type(x) ~= "number" or not (x >= 0 and x <= 255) then
      error("image.map: invalid must be {red, green, blue}, each from 0 to 255", 3)
    end
  end
end

-- The values that get the first and the last colour; raises at its caller's.
local function map_range(array, first, n, opts)
  local least, most = extent(array, first, n)
  if not least then
    error(("image.map: value %d is no number: %s"):format(most,
      tostring(array[first + most - 1])), 3)
  end
  local low, high = opts.min or least, opts.max or most
  if opts.symmetric then
    high = math.max(math.abs(low), math.abs(high))
    low = -high
  end
  return low, high
end

--- Draws a field of width x height values (row by row) through a colour map.
-- values: a Lua table from 1, an FFI array or pointer from 0, or a buffer.
-- opts: colormap ("viridis"), min and max (the field's own), symmetric
-- (min = -max, for signed fields), flip (the first row at the bottom),
-- invalid ({r, g, b} of values that are no number, {128, 128, 128}).
function image.map(values, width, height, opts)
  check_options("image.map", opts, map_options)
  opts = opts or {}
  check_map_values(opts)
  check_extent("map", width, height)
  local n = width * height
  local array, first = numbers(values, width, height)
  if not array then
    fail("image.map: %d values expected (%d rows of %d), got %s", n, height, width, first)
  end
  local name = opts.colormap or "viridis"
  local red, green, blue = colormap.table(name)
  if not red then
    fail("image.map: no colour map '%s'; there are %s", tostring(name),
      table.concat(colormap.names(), ", "))
  end
  local low, high = map_range(array, first, n, opts)
  local top = colormap.size - 1
  local scale = high > low and top / (high - low) or 0
  local invalid = opts.invalid or { 128, 128, 128 }
  local pixels = bytes(3 * n)
  for y = 0, height - 1 do
    local from = first + y * width
    local to = 3 * width * (opts.flip and height - 1 - y or y)
    for x = 0, width - 1 do
      local v = tonumber(array[from + x])
      local p = to + 3 * x
      if v == v then
        local at = scale > 0 and (v - low) * scale or top / 2
        local i = math.floor(math.max(0, math.min(top, at)) + 0.5)
        pixels[p], pixels[p + 1], pixels[p + 2] = red[i], green[i], blue[i]
      else
        pixels[p], pixels[p + 1], pixels[p + 2] = invalid[1], invalid[2], invalid[3]
      end
    end
  end
  return { width = width, height = height, channels = 3, pixels = pixels }
end

--- The picture in gray: one channel, Rec. 709 luma; alpha is laid over black.
function image.gray(img)
  check_picture("gray", img)
  local n, c = img.width * img.height, img.channels
  local from, to = indexable(img), bytes(img.width * img.height)
  for i = 0, n - 1 do
    local p = i * c
    local v = from[p]
    if c >= 3 then
      v = 0.2126 * v + 0.7152 * from[p + 1] + 0.0722 * from[p + 2]
    end
    if c % 2 == 0 then
      v = v * from[p + c - 1] / 255
    end
    to[i] = math.floor(v + 0.5)
  end
  return { width = img.width, height = img.height, channels = 1, pixels = to }
end

--- The gray picture as numbers from 0 to 1: an FFI array of doubles, from 0,
-- and its length.
function image.values(img)
  check_picture("values", img)
  local n = img.width * img.height
  local gray, values = image.gray(img).pixels, doubles(n)
  for i = 0, n - 1 do
    values[i] = gray[i] / 255
  end
  return values, n
end

-- For each of `to` samples: where its triangle filter starts among `from`
-- samples, and its weights.  Shrinking widens the filter, so that every
-- sample counts.
local function filter(from, to)
  local ratio = from / to
  local radius = math.max(1, ratio)
  local starts, weights = {}, {}
  for i = 0, to - 1 do
    local center = (i + 0.5) * ratio - 0.5
    local low = math.max(0, math.ceil(center - radius))
    local high = math.min(from - 1, math.floor(center + radius))
    local w, sum = {}, 0
    for k = low, high do
      local weight = 1 - math.abs(k - center) / radius
      w[#w + 1] = weight
      sum = sum + weight
    end
    for k = 1, #w do
      w[k] = w[k] / sum
    end
    starts[i], weights[i] = low, w
  end
  return starts, weights
end

-- Resamples `lines` lines of `from` samples that lie `step` apart.
local function resample(input, output, lines, line_in, line_out, step, from, to)
  local starts, weights = filter(from, to)
  for line = 0, lines - 1 do
    local base_in, base_out = line_in(line), line_out(line)
    for i = 0, to - 1 do
      local w, p, sum = weights[i], base_in + starts[i] * step, 0
      for k = 1, #w do
        sum = sum + w[k] * input[p + (k - 1) * step]
      end
      output[base_out + i * step] = sum
    end
  end
end

--- The picture at another size, smooth both ways (bilinear when enlarged,
-- area-weighted when shrunk); colours count by their alpha.
function image.resize(img, width, height)
  check_picture("resize", img)
  check_extent("resize", width, height)
  local c, w, h = img.channels, img.width, img.height
  local has_alpha = c % 2 == 0
  local from, source = indexable(img), doubles(w * h * c)
  for i = 0, w * h * c - 1 do
    source[i] = from[i]
    if has_alpha and i % c ~= c - 1 then
      source[i] = source[i] * from[i - i % c + c - 1] / 255
    end
  end
  local wide, out = doubles(width * h * c), doubles(width * height * c)
  resample(source, wide, h * c, function(line)
    return math.floor(line / c) * w * c + line % c
  end, function(line)
    return math.floor(line / c) * width * c + line % c
  end, c, w, width)
  resample(wide, out, width * c, function(line)
    return line
  end, function(line)
    return line
  end, width * c, h, height)
  local pixels = bytes(width * height * c)
  for i = 0, width * height * c - 1 do
    local v = out[i]
    local alpha = has_alpha and out[i - i % c + c - 1] or 255
    if has_alpha and i % c ~= c - 1 then
      v = alpha > 0 and v * 255 / alpha or 0
    end
    pixels[i] = math.max(0, math.min(255, math.floor(v + 0.5)))
  end
  return { width = width, height = height, channels = c, pixels = pixels }
end

--- The names of the colour maps that image.map takes.
function image.colormaps()
  return colormap.names()
end

return image
