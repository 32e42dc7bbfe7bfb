local cg = require "cgraphlua"
local image = require "cgraphlua.image"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local script = dofile(here .. "/../support/script.lua")
local program = script.program

describe("scripts/heat.lua", function()
  local heat, at = script.tests("heat", before_each, after_each)

  -- Writes a gray picture whose value at (x, y) is f(x, y).
  local function picture(width, height, f)
    local img = image.new(width, height, 1)
    for y = 0, height - 1 do
      for x = 0, width - 1 do
        img.pixels[y * width + x] = f(x, y)
      end
    end
    image.write(at "in.png", img)
    return at "in.png"
  end

  it("follows the exact decay of a sine mode", function()
    local text = heat("--size", 128, "--steps", 3000)
    assert.truthy(text:find "128 x 128 points, 3000 steps")
    local height = script.number(text, "the mode fell to ([%d.]+)")
    local exact = math.exp(-2 * math.pi ^ 2 * 3000 * 0.2 / 127 ^ 2)
    assert.is_true(math.abs(height - exact) < 1e-6)
    assert.is_true(script.number(text, "relative L2 error (%S+)") < 1e-4)
  end)

  it("stays close to it at the size's own number of steps", function()
    local text = heat("--size", 64)
    assert.truthy(text:find "64 x 64 points, 320 steps")
    assert.is_true(math.abs(script.number(text, "fell to ([%d.]+)") - 0.73) < 0.02)
    assert.is_true(script.number(text, "relative L2 error (%S+)") < 1e-3)
  end)

  it("does not compare with what has vanished", function()
    local text = heat("--size", 16, "--steps", 20000)
    assert.truthy(text:find "too little is left of it to compare")
    assert.is_nil(text:find "L2 error")
  end)

  it("rounds steps up to whole replays", function()
    assert.truthy(heat("--size", 16, "--steps", 21):find "16 x 16 points, 40 steps")
  end)

  it("ends at rest: where the largest change of a step falls below what --until says", function()
    -- A step takes 1 - lambda of the mode's height: 4.1e-4 in step 580, 3.8e-4 in step 600.
    local lambda = 1 - 8 * 0.2 * math.sin(math.pi / 64) ^ 2
    local most = math.sqrt(lambda ^ 579 * lambda ^ 599) * (1 - lambda)
    local text = heat("--size", 33, "--until", most)
    assert.truthy(text:find "33 x 33 points, 600 steps\nat rest\n")
    local ended = program.read(at "out.png")
    assert.truthy(heat("--size", 33, "--steps", 600):find "33 x 33 points, 600 steps\nthe mode")
    assert.equal(ended, program.read(at "out.png"))
  end)

  it("ends after --steps where it is not at rest before", function()
    local text = heat("--size", 33, "--until", 1e-5, "--steps", 100)
    assert.truthy(text:find "33 x 33 points, 100 steps\nnot at rest yet\n")
  end)

  it("comes to rest between the edges of a picture", function()
    local path = picture(24, 24, function(x)
      return x < 12 and 255 or 51
    end)
    local text = heat(path, "--until", 1e-6)
    assert.truthy(text:find "steps\nat rest\ntemperature from 0.2000 to 1.0000")
  end)

  it("takes --until or --frames", function()
    local err = script.complaint("heat", { "--until", 0.1, "--frames", 2 })
    assert.truthy(err:find "leave one of them")
  end)

  it("draws the mode: hot in the middle, cold at the edge", function()
    heat("--size", 65, "--steps", 100)
    local img = image.read(at "out.png")
    assert.are.same({ 65, 65, 3 }, { img.width, img.height, img.channels })
    local function light(x, y)
      local p = 3 * (y * 65 + x)
      return img.pixels[p] + img.pixels[p + 1] + img.pixels[p + 2]
    end
    assert.is_true(light(32, 32) > light(32, 16))
    assert.is_true(light(32, 16) > light(8, 8))
    assert.is_true(light(8, 8) > light(0, 0))
    assert.are.equal(light(16, 32), light(48, 32)) -- it stays symmetric
    assert.are.equal(light(16, 32), light(32, 16))
  end)

  -- A step as it is written down, a thread to a point.
  local plain = [[
extern "C" __global__ void spread(const float *t, float *next, int nx, int ny,
                                  float ratio)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y;
  if (x > 0 && x < nx - 1 && y > 0 && y < ny - 1) {
    int i = y * nx + x;
    next[i] = t[i] + ratio * (t[i - 1] + t[i + 1] + t[i - nx] + t[i + nx] -
                              4.f * t[i]);
  }
}]]

  it("steps to the same bits, however many rows a thread goes down", function()
    local source = program.read(script.folder_of_scripts .. "/heat.lua")
      :match "local source = %[=%[(.-)%]=%]"
    for _, size in ipairs { { 3, 3 }, { 5, 6 }, { 300, 11 }, { 33, 64 } } do
      local nx, ny = unpack(size)
      local t = cg.buffer("float", { ny, nx }):uniform(cg.generator(1))
      local function after(kernel, rows)
        local next = cg.zeros("float", { ny, nx })
        kernel:launch({ math.ceil(nx / 256), rows }, 256, t, next, nx, ny, 0.2)
        return next:download "string"
      end
      local wanted = after(cg.module(plain):kernel "spread", ny)
      for _, rows in ipairs { 1, 2, 3, 4, 8 } do
        local module = cg.module(source, { options = { "-DROWS=" .. rows } })
        assert.is_true(wanted == after(module:kernel "spread", math.ceil((ny - 2) / rows)),
          string.format("%d x %d, %d rows", nx, ny, rows))
      end
    end
  end)

  it("spreads a picture without leaving its range", function()
    local path = picture(48, 32, function(x)
      return x < 24 and 255 or 51
    end)
    local text = heat(path, "--steps", 200)
    assert.truthy(text:find "48 x 32 points, 200 steps")
    assert.are.equal(0.2, script.number(text, "temperature from ([%d.]+)"))
    assert.are.equal(1, script.number(text, "to ([%d.]+), mean"))
    assert.is_true(math.abs(script.number(text, "mean ([%d.]+)") - 0.6) < 1e-3)
  end)

  it("takes the picture at another size", function()
    local path = picture(40, 20, function()
      return 128
    end)
    assert.truthy(heat(path, "--size", 20, "--steps", 1):find "20 x 10 points")
  end)

  it("writes numbered frames, the last like the picture", function()
    local text = heat("--size", 32, "--steps", 200, "--frames", 4)
    assert.truthy(text:find("wrote " .. at "out-0001.png" .. " to " .. at "out-0004.png", 1, true))
    local pictures = {}
    for k = 1, 4 do
      pictures[k] = program.read(at(string.format("out-%04d.png", k)))
    end
    assert.are_not.equal(pictures[1], pictures[2])
    assert.are.equal(pictures[4], program.read(at "out.png"))
    assert.is_nil(io.open(at "out-0005.png"))
  end)

  it("says what is wrong with a picture, and which line read it", function()
    local missing = script.complaint("heat", { at "none.png" })
    assert.truthy(missing:find "heat%.lua:%d+: .*none%.png")
    local path = picture(64, 64, function(x, y)
      return (x * y) % 256
    end)
    local bytes = program.read(path)
    program.write(path, bytes:sub(1, #bytes / 2))
    assert.truthy(script.complaint("heat", { path }):find "heat%.lua:%d+: .*in%.png")
    picture(20000, 1, function()
      return 0
    end)
    assert.truthy(script.complaint("heat", { path }):find "heat%.lua:%d+: .*20000")
    picture(2, 2, function()
      return 0
    end)
    assert.truthy(script.complaint("heat", { path }):find "smaller than 3 x 3")
  end)

  it("refuses what it does not know, with its usage", function()
    local err = script.complaint("heat", { "--sise", "9" })
    assert.matches("^usage: cgraphlua scripts/heat.lua", err)
    assert.matches("unknown option %-%-sise; did you mean '%-%-size'%?\n$", err)
    err = script.complaint("heat", { "--steps", "many" })
    assert.truthy(err:find "%-%-steps needs a whole number")
    err = script.complaint("heat", { "--device", "abacus" })
    assert.truthy(err:find "heat%.lua:%d+: .*abacus")
  end)

  it("names the folder that is not there before it computes", function()
    local err = script.complaint("heat", { "--size", 16, "--out", at "none/heat.png" })
    assert.truthy(err:find("no folder '" .. at "none/" .. "'", 1, true))
  end)

  it("is silent on standard error, and takes a device", function()
    local text = heat("--size", 16, "--steps", 20, "--device", "host")
    assert.truthy(text:find("wrote " .. at "out.png", 1, true))
  end)

  it("explains itself", function()
    local text = script.output("heat", { "--help" })
    for _, name in ipairs { "size", "steps", "until", "out", "frames", "device" } do
      assert.truthy(text:find("--" .. name, 1, true))
    end
  end)
end)
