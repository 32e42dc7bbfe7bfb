-- Water in a LÖVE game: its surface moves on the GPU, or on the CPU where there
-- is none, and the game draws it.  Drops fall by themselves and where the mouse
-- is pressed.
--   love .                    play
--   love . --shot FILE N      saves frame N as a PPM picture, and ends
-- The steps of a frame are captured once; a frame is one replay and one copy of
-- the pixels into the picture that LÖVE draws.

local ffi = require "ffi"
local cg = require "cgraphlua"

local WIDTH, HEIGHT, STEPS = 320, 240, 6

local water = cg.module [=[
// The height of the water after a step, from those of the two steps before.
extern "C" __global__ void step(float *next, const float *now, const float *before,
                                int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int i = y * width + x;
  float around = now[i - 1] + now[i + 1] + now[i - width] + now[i + width];
  next[i] = 0.998f * (now[i] + (now[i] - before[i]) + 0.4f * (0.25f * around - now[i]));
}

extern "C" __global__ void drop(float *height, const int *at, int width, int rows) {
  int dx = (int)threadIdx.x - 8, dy = (int)threadIdx.y - 8;
  int x = at[0] + dx, y = at[1] + dy;
  float near = 1 - (dx * dx + dy * dy) / 64.f;
  if (at[2] && near > 0 && x > 0 && y > 0 && x < width - 1 && y < rows - 1)
    height[y * width + x] -= near * near;
}

// Light from the upper left, as pixels: red first, opaque.
extern "C" __global__ void shade(unsigned *pixels, const float *now, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int i = y * width + x;
  float slope = x && y ? now[i] - now[i - 1] + now[i] - now[i - width] : 0;
  float light = 0.5f + 2 * slope;
  light = light < 0 ? 0 : light > 1 ? 1 : light;
  unsigned r = 30 + 150 * light, g = 80 + 160 * light, b = 140 + 115 * light;
  pixels[i] = r | g << 8 | b << 16 | 255u << 24;
}
]=]
local step, drop, shade = water:kernel "step", water:kernel "drop", water:kernel "shade"

local surface = {}
for i = 1, 3 do surface[i] = cg.zeros("float", { HEIGHT, WIDTH }) end
local at = cg.pinned("int32", 3) -- column, row, whether a drop falls there
local drops, pixels = cg.zeros("int32", 3), cg.buffer("uint32", { HEIGHT, WIDTH })

local grid, block = { math.ceil(WIDTH / 16), math.ceil(HEIGHT / 16) }, { 16, 16 }
local frame = cg.capture(function()
  drops:copy(at)
  drop:launch(1, { 16, 16 }, surface[1], drops, WIDTH, HEIGHT)
  local before, now, next = surface[3], surface[1], surface[2]
  for _ = 1, STEPS do
    step:launch(grid, block, next, now, before, WIDTH, HEIGHT)
    before, now, next = now, next, before
  end
  assert(now == surface[1], "a multiple of three steps ends where it began")
  shade:launch(grid, block, pixels, now, WIDTH, HEIGHT)
end)

local picture, image, frames, shot = nil, nil, 0, {}

function love.load(args)
  if args[1] == "--shot" then shot = { path = args[2], at = tonumber(args[3]) } end
  love.graphics.setDefaultFilter("linear", "linear")
  picture = love.image.newImageData(WIDTH, HEIGHT)
  image = love.graphics.newImage(picture)
end

function love.update()
  frames = frames + 1
  local x, y = (frames * 97) % WIDTH, (frames * 61) % HEIGHT
  local falls = frames % 20 == 1
  if not shot.path and love.mouse.isDown(1) then
    x, y, falls = love.mouse.getX() / 2, love.mouse.getY() / 2, true
  end
  local p = at:cdata()
  p[0], p[1], p[2] = x, y, falls and 1 or 0
  frame:replay()
  pixels:download(ffi.cast("void *", picture:getFFIPointer()), WIDTH * HEIGHT * 4)
end

local function save(data)
  local file = assert(io.open(shot.path, "wb"))
  file:write(("P6 %d %d 255\n"):format(data:getDimensions()))
  file:write((data:getString():gsub("(...).", "%1")))
  file:close()
  love.event.quit()
end

function love.draw()
  image:replacePixels(picture)
  love.graphics.draw(image, 0, 0, 0, love.graphics.getWidth() / WIDTH,
    love.graphics.getHeight() / HEIGHT)
  if frames == shot.at then love.graphics.captureScreenshot(save) end
end
