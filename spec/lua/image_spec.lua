local ffi = require "ffi"
local image = require "cgraphlua.image"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")

-- The bytes of a picture, as a list from 1.
local function listed(img)
  local list = {}
  for i = 1, img.width * img.height * img.channels do
    list[i] = img.pixels[i - 1]
  end
  return list
end

local function message_of(f, ...)
  local ok, why = pcall(f, ...)
  assert.is_false(ok)
  return why
end

describe("image files", function()
  local folder, path

  before_each(function()
    folder = program.folder()
    path = folder .. "/picture.png"
  end)

  after_each(function()
    program.remove(folder)
  end)

  -- A PNG signature, an IHDR with its checksum, and the start of an IDAT.
  local function header(width, height)
    local function big(x)
      return string.char(bit.band(bit.rshift(x, 24), 255), bit.band(bit.rshift(x, 16), 255),
        bit.band(bit.rshift(x, 8), 255), bit.band(x, 255))
    end
    local chunk = "IHDR" .. big(width) .. big(height) .. "\8\2\0\0\0"
    local crc = -1
    for i = 1, #chunk do
      crc = bit.bxor(crc, chunk:byte(i))
      for _ = 1, 8 do
        crc = bit.bxor(bit.rshift(crc, 1), bit.band(crc, 1) == 1 and 0xedb88320 or 0)
      end
    end
    return "\137PNG\r\n\26\n" .. big(13) .. chunk .. big(bit.bnot(crc)) .. "\0\0\1\0IDAT"
  end

  it("come back as they were written, in every kind", function()
    for channels = 1, 4 do
      local img = image.new(7, 5, channels)
      for i = 0, 7 * 5 * channels - 1 do
        img.pixels[i] = (i * 37 + channels) % 256
      end
      image.write(path, img)
      local back = image.read(path)
      assert.are.same({ 7, 5, channels }, { back.width, back.height, back.channels })
      assert.are.same(listed(img), listed(back))
    end
  end)

  it("take their pixels from a string, an array or a pointer", function()
    local text = string.char(1, 2, 3, 4, 5, 6)
    local array = ffi.new("uint8_t[6]", { 1, 2, 3, 4, 5, 6 })
    for _, pixels in ipairs { text, array, ffi.cast("uint8_t *", array) } do
      image.write(path, { width = 2, height = 1, channels = 3, pixels = pixels })
      assert.are.same({ 1, 2, 3, 4, 5, 6 }, listed(image.read(path)))
    end
  end)

  it("are smaller with more compression", function()
    local img = image.new(200, 200, 3)
    image.write(path, img, { compression = 0 })
    local plain = #program.read(path)
    image.write(path, img, { compression = 9 })
    assert.is_true(#program.read(path) < plain / 10)
    assert.is_truthy(message_of(image.write, path, img, { compression = 10 }):find "from 0 to 9")
  end)

  it("leave the old file alone when the new one cannot be written", function()
    program.write(path, "old")
    local img = { width = 2, height = 2, channels = 3, pixels = "short" }
    assert.is_truthy(message_of(image.write, path, img):find "hold 5 bytes, but 2 x 2 x 3 needs 12")
    assert.are.equal("old", program.read(path))
    image.write(path, image.new(1, 1))
    assert.are.equal(1, image.read(path).width)
    local _, names = program.shell("ls " .. folder)
    assert.are.equal("picture.png\n", names)
  end)

  it("go through links and never replace a device", function()
    program.shell(string.format("ln -s %s %s/link.png", path, folder))
    program.write(path, "")
    image.write(folder .. "/link.png", image.new(3, 1))
    assert.are.equal(3, image.read(path).width)
    local why = message_of(image.write, "/dev/full", image.new(200, 200))
    assert.is_truthy(why:find("/dev/full: No space", 1, true))
    assert.are.equal(0, (program.shell "test -c /dev/full"))
  end)

  it("say why they cannot be read, with the script's line", function()
    assert.is_truthy(message_of(function()
      image.read(folder .. "/none.png")
    end):find "image_spec%.lua:%d+: image%.read: .*/none%.png: No such file or directory$")
    assert.is_truthy(message_of(image.read, folder):find "Is a directory$")
    program.write(path, "")
    assert.is_truthy(message_of(image.read, path):find "the file is empty$")
    program.write(path, ("GIF89a"):rep(100))
    assert.is_truthy(message_of(image.read, path):find "not a PNG file$")
    assert.is_truthy(message_of(image.read, 12):find "a path expected, got number")
  end)

  it("say so when they are truncated, wherever that is", function()
    local img = image.new(40, 40, 3)
    for i = 0, 40 * 40 * 3 - 1 do
      img.pixels[i] = (i * i * 31) % 251
    end
    image.write(path, img)
    local whole = program.read(path)
    for length = 9, #whole - 1, 13 do
      program.write(path, whole:sub(1, length))
      assert.is_truthy(message_of(image.read, path):find "truncated")
    end
  end)

  it("say so when they are damaged", function()
    image.write(path, image.new(40, 40, 3))
    local whole = program.read(path)
    local middle = whole:find("IDAT", 1, true) + 8
    program.write(path, whole:sub(1, middle) .. "\0\255\0\255" .. whole:sub(middle + 5))
    assert.is_truthy(message_of(image.read, path):find("picture.png: ", 1, true))
  end)

  it("are refused when they are too large, saying how to read them", function()
    program.write(path, header(20000, 10))
    local why = message_of(image.read, path)
    assert.is_truthy(why:find("20000 x 10, larger than 16384 on a side", 1, true))
    assert.is_truthy(why:find("pass {max_size = 20000}", 1, true))
    assert.is_truthy(message_of(image.read, path, { max_size = 20000 }):find "truncated")
    assert.is_truthy(message_of(image.read, path, { max_size = 0 }):find "max_size must be")
    assert.is_truthy(message_of(image.read, path, { max_size = 0 / 0 }):find "max_size must be")
  end)

  it("say why they cannot be written", function()
    local img = image.new(1, 1)
    assert.is_truthy(message_of(image.write, folder .. "/no/where.png", img):find "No such file")
    assert.is_truthy(message_of(image.write, folder, img):find "Is a directory")
    assert.is_truthy(message_of(image.write, path, 3):find "a picture .* expected, got number")
    for _, name in ipairs { "x.jpg", "x.y.JPEG", "x.tiff" } do
      assert.matches("image_spec.lua:%d+: image.write: '" .. name .. "' would be a PNG file",
        message_of(function() image.write(name, img) end))
    end
    for _, bad in ipairs { 0, -1, 1.5, 0 / 0, math.huge, "x" } do
      local why = message_of(image.write, path,
        { width = bad, height = 1, channels = 1, pixels = "" })
      assert.is_truthy(why:find "width and height must be whole numbers")
    end
  end)

  it("are not read or written with options that nobody knows", function()
    local img = image.new(1, 1)
    local function refused(text, fn)
      assert.matches("^%S*image_spec.lua:%d+: " .. text, message_of(fn))
    end
    refused("image.write: unknown option 'compresion'; the options are compression", function()
      image.write(path, img, { compresion = 9 })
    end)
    refused("image.write: a table of options expected, got number", function()
      image.write(path, img, 9)
    end)
    assert.is_nil(io.open(path))
    image.write(path, img, { compression = 0 })
    refused("image.read: unknown option 'maxsize'; the options are max_size", function()
      image.read(path, { maxsize = 100 })
    end)
    refused("image.read: unknown option '1'", function() image.read(path, { 100 }) end)
    refused("image.read: a table of options expected, got number", function()
      image.read(path, 100)
    end)
    assert.equal(1, image.read(path, { max_size = 100 }).width)
  end)

  it("do not leak when they fail", function()
    program.write(path, header(3000, 3000))
    for _ = 1, 2000 do
      message_of(image.read, path)
      message_of(image.read, folder .. "/none.png")
    end
    local _, open = program.shell("ls -l /proc/$PPID/fd | grep -c " .. folder)
    assert.are.equal("0\n", open)
  end)
end)

describe("image.map", function()
  it("gives lightness as a straight line of the value", function()
    -- OKLab's lightness of an sRGB colour.
    local function lightness(r, g, b)
      local function linear(v)
        v = v / 255
        return v <= 0.04045 and v / 12.92 or ((v + 0.055) / 1.055) ^ 2.4
      end
      r, g, b = linear(r), linear(g), linear(b)
      local l = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ^ (1 / 3)
      local m = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ^ (1 / 3)
      local s = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ^ (1 / 3)
      return 0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s
    end
    local values = {}
    for i = 0, 64 do
      values[i + 1] = i
    end
    for _, name in ipairs { "viridis", "inferno", "gray" } do
      local p = image.map(values, 65, 1, { colormap = name }).pixels
      local first = lightness(p[0], p[1], p[2])
      local last = lightness(p[192], p[193], p[194])
      assert.is_true(last - first > 0.6)
      for i = 0, 64 do
        local expected = first + (last - first) * i / 64
        local got = lightness(p[3 * i], p[3 * i + 1], p[3 * i + 2])
        -- Near black, a byte is a big step.
        local tolerance = expected < 0.2 and 0.06 or 0.015
        assert.is_true(math.abs(got - expected) < tolerance, name .. " at " .. i)
      end
    end
  end)

  it("takes tables from 1 and FFI arrays from 0", function()
    local a = image.map({ 1, 2, 3, 4 }, 2, 2)
    local b = image.map(ffi.new("float[4]", { 1, 2, 3, 4 }), 2, 2)
    local c = image.map(ffi.new("int64_t[4]", { 1, 2, 3, 4 }), 2, 2)
    assert.are.same(listed(a), listed(b))
    assert.are.same(listed(a), listed(c))
  end)

  it("puts the first row at the bottom when asked", function()
    local up = image.map({ 0, 0, 1, 1 }, 2, 2, { colormap = "gray" })
    local down = image.map({ 0, 0, 1, 1 }, 2, 2, { colormap = "gray", flip = true })
    assert.are.equal(0, up.pixels[0])
    assert.are.equal(255, down.pixels[0])
    assert.are.equal(0, down.pixels[6])
  end)

  it("clamps to its range and marks what is no number", function()
    local nan = 0 / 0
    local img = image.map({ -5, 5, nan, 1 / 0 }, 4, 1,
      { colormap = "gray", min = 0, max = 1, invalid = { 1, 2, 3 } })
    assert.are.same({ 0, 0, 0, 255, 255, 255, 1, 2, 3, 255, 255, 255 }, listed(img))
  end)

  it("finds its range among finite values, and takes a flat field", function()
    local img = image.map({ 0, 1, 1 / 0, -1 / 0 }, 4, 1, { colormap = "gray" })
    assert.are.same({ 0, 0, 0, 255, 255, 255, 255, 255, 255, 0, 0, 0 }, listed(img))
    local flat = image.map({ 3, 3 }, 2, 1, { colormap = "gray" })
    assert.are.equal(flat.pixels[0], flat.pixels[3])
    assert.is_number(image.map({ 0 / 0 }, 1, 1).pixels[0])
  end)

  it("shows the sign in coolwarm", function()
    local p = image.map({ -1, 0, 0.5 }, 3, 1, { colormap = "coolwarm", symmetric = true }).pixels
    assert.is_true(p[2] > p[0] + 60) -- blue below
    assert.is_true(math.abs(p[3] - p[5]) < 8) -- no colour in the middle
    assert.is_true(p[6] > p[8] + 60) -- red above
  end)

  it("names the maps when one is unknown", function()
    local why = message_of(image.map, { 1 }, 1, 1, { colormap = "jet" })
    assert.is_truthy(why:find("no colour map 'jet'; there are coolwarm, gray, inferno, viridis", 1,
      true))
  end)

  it("refuses too few values and absurd sizes", function()
    assert.matches("4 values expected %(2 rows of 2%), got 2 values",
      message_of(image.map, { 1, 2 }, 2, 2))
    assert.matches("got 5 values", message_of(image.map, { 1, 2, 3, 4, 5 }, 2, 2))
    assert.matches("got 5 values", message_of(image.map, ffi.new "float[5]", 2, 2))
    assert.matches("got string", message_of(image.map, "1234", 2, 2))
    assert.is_truthy(message_of(image.map, {}, 0, 2):find "width and height must be")
    assert.is_truthy(message_of(image.map, {}, 0 / 0, 2):find "width and height must be")
    assert.is_truthy(message_of(image.map, ffi.new "float[3]", 2, 2):find "got 3 values")
    assert.is_truthy(message_of(image.map, {}, 2 ^ 20, 2 ^ 20):find "more than 268435456 pixels")
    assert.is_truthy(message_of(image.new, 2 ^ 20, 2 ^ 20):find "more than 268435456 pixels")
    assert.is_truthy(message_of(image.resize, image.new(1, 1), 2 ^ 20, 2 ^ 20):find "more than")
  end)

  it("takes booleans of a buffer, and says which value is no number", function()
    local cg = require "cgraphlua"
    local b = cg.from({ true, false }, "bool")
    assert.are.same({ 255, 255, 255, 0, 0, 0 }, listed(image.map(b, 2, 1, { colormap = "gray" })))
    assert.is_truthy(message_of(image.map, { 1, "x" }, 2, 1):find "value 2 is no number: x")
    b:release()
    local e = message_of(function() image.map(b, 2, 1) end)
    assert.matches("image_spec.lua:%d+$", e.where)
  end)

  it("takes pinned memory, and the rows that a buffer has", function()
    local cg = require "cgraphlua"
    local p = cg.pinned("float", 2)
    p:cdata()[0] = 1
    assert.are.same({ 255, 255, 255, 0, 0, 0 }, listed(image.map(p, 2, 1, { colormap = "gray" })))
    assert.matches("3 values expected %(1 rows of 3%), got 2 values",
      message_of(image.map, p, 3, 1))
    local b = cg.zeros("float", { 2, 3 })
    assert.are.equal(3, image.map(b, 3, 2).width)
    assert.are.equal(6, image.map(cg.zeros("float", 6), 2, 3).width * 3)
    assert.matches("%(3 rows of 2%), got a buffer of 2 rows of 3", message_of(image.map, b, 2, 3))
    assert.matches("got userdata", message_of(image.map, cg.stream(), 2, 3))
  end)

  it("takes an infinite value in a flat field", function()
    local p = image.map({ 1 / 0, 3 }, 2, 1, { colormap = "gray" }).pixels
    assert.are.equal(p[0], p[3])
  end)

  it("refuses options that it does not know or cannot use", function()
    local function with(opts)
      return message_of(function() image.map({ 1, 2 }, 2, 1, opts) end)
    end
    assert.matches("image_spec.lua:%d+: image.map: unknown option 'colourmap'; the options are "
      .. "colormap, flip, invalid, max, min, symmetric; did you mean 'colormap'%?$",
      with { colourmap = "gray" })
    assert.matches("a table of options expected, got number", with(5))
    assert.matches("min must be a finite number, got .*nan", with { min = 0 / 0 })
    assert.matches("max must be a finite number, got inf", with { max = 1 / 0 })
    for _, wrong in ipairs { 5, { 1, 2 }, { 1, 2, 300 }, { 1, 2, 0 / 0 } } do
      assert.matches("invalid must be {red, green, blue}", with { invalid = wrong })
    end
  end)
end)

describe("image.gray", function()
  it("weighs the colours and lays alpha over black", function()
    local img = { width = 4, height = 1, channels = 4 }
    img.pixels = string.char(255, 255, 255, 255, 255, 0, 0, 255, 0, 255, 0, 255, 255, 255, 255, 51)
    assert.are.same({ 255, 54, 182, 51 }, listed(image.gray(img)))
    local values, n = image.values(img)
    assert.are.equal(4, n)
    assert.are.equal(1, values[0])
    assert.are.equal(0.2, values[3])
  end)
end)

describe("image.resize", function()
  it("keeps a flat colour flat, at any size", function()
    local img = image.new(9, 6, 3)
    ffi.fill(img.pixels, 9 * 6 * 3, 77)
    for _, size in ipairs { { 3, 2 }, { 20, 31 }, { 9, 6 }, { 1, 1 } } do
      local out = image.resize(img, size[1], size[2])
      for _, v in ipairs(listed(out)) do
        assert.are.equal(77, v)
      end
    end
  end)

  it("keeps the mean when it shrinks and the ends when it grows", function()
    local img = image.new(64, 1, 1)
    for i = 0, 63 do
      img.pixels[i] = i % 2 * 200
    end
    for _, v in ipairs(listed(image.resize(img, 8, 1))) do
      assert.is_true(math.abs(v - 100) <= 8)
    end
    local two = { width = 2, height = 1, channels = 1, pixels = "\0\200" }
    assert.are.same({ 0, 50, 150, 200 }, listed(image.resize(two, 4, 1)))
  end)

  it("does not let transparent pixels colour their neighbours", function()
    local img = { width = 2, height = 1, channels = 4 }
    img.pixels = string.char(0, 255, 0, 0, 255, 0, 0, 255)
    local out = image.resize(img, 1, 1)
    assert.are.same({ 255, 0, 0, 128 }, listed(out))
  end)
end)
