-- Waves around an island, for engine.c, whose first lines say what a script is.
-- The waves are slower where the water is shallow, so they bend towards the
-- shore.  Change a number while the engine plays: the water goes on as it was.

local cg = require "cgraphlua"

local WIDTH, HEIGHT, pixels, pointer = ... -- what the engine hands over
local STEPS = 6                            -- per frame: a multiple of three

local compiling = cg.module_async [=[
// The depth of the sea, 1 far from the island; below 0 it is land.
extern "C" __global__ void shape(float *depth, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  float u = (x - 0.56f * width) / height, v = (y - 0.5f * height) / height;
  float around = atan2f(v, u), away = sqrtf(u * u + v * v);
  float shore = 0.17f + 0.03f * sinf(3 * around + 1) + 0.02f * sinf(7 * around);
  float d = 4 * (away - shore);
  depth[y * width + x] = d > 1 ? 1 : d > -0.3f ? d : -0.3f - 0.1f * (d + 0.3f) * (d + 0.3f);
}

// The height of the water after a step, from those of the two steps before.
extern "C" __global__ void step(float *next, const float *now, const float *before,
                                const float *depth, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  int i = y * width + x;
  float d = depth[i], c = now[i];
  float around = now[i - 1] + now[i + 1] + now[i - width] + now[i + width];
  float kept = d < 0.2f ? 0.9f : 0.998f; // waves die on the beach
  next[i] = d <= 0 ? 0 : c + kept * (c - before[i]) + 0.3f * d * (around - 4 * c);
}

// A stone, where the pointer is pressed or, every 40th frame, somewhere.
extern "C" __global__ void stone(float *water, const int *pointer, int width, int height) {
  int x0 = pointer[0], y0 = pointer[1], frame = pointer[3];
  bool falls = pointer[2];
  if (frame % 40 == 1 && !falls)
    x0 = frame * 97 % width, y0 = frame * 61 % height, falls = true;
  int dx = (int)threadIdx.x - 16, dy = (int)threadIdx.y - 16;
  int x = x0 + dx, y = y0 + dy;
  float near = 1 - (dx * dx + dy * dy) / 256.f;
  if (falls && near > 0 && x > 0 && y > 0 && x < width - 1 && y < height - 1)
    water[y * width + x] -= 0.7f * near * near;
}

__device__ float mix(float a, float b, float t) { return a + (b - a) * t; }
__device__ unsigned byte(float x) { return 255 * (x < 0 ? 0 : x > 1 ? 1 : x); }

// Light from the upper left, as pixels: blue in the lowest byte.
extern "C" __global__ void shade(unsigned *pixels, const float *now, const float *depth,
                                 int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= width || y >= height) return;
  int i = y * width + x;
  bool inside = x && y;
  float d = depth[i], r, g, b, slope;
  if (d > 0) {
    slope = inside ? 2 * now[i] - now[i - 1] - now[i - width] : 0;
    float t = sqrtf(d), glint = slope > 0.06f ? 3 * (slope - 0.06f) : 0;
    r = mix(0.45f, 0.05f, t) + slope + glint;
    g = mix(0.75f, 0.30f, t) + 1.5f * slope + glint;
    b = mix(0.70f, 0.50f, t) + 1.5f * slope + glint;
  } else {
    slope = inside ? 4 * (depth[i - 1] + depth[i - width] - 2 * d) : 0;
    float t = d < -0.15f ? 1 : d / -0.15f; // from sand to grass
    r = mix(0.90f, 0.35f, t) + slope;
    g = mix(0.80f, 0.55f, t) + slope;
    b = mix(0.55f, 0.25f, t) + slope;
  }
  pixels[i] = 255u << 24 | byte(r) << 16 | byte(g) << 8 | byte(b);
}
]=]

local water -- the surface in three steps, which the next version goes on with

local script = {}

function script.ready()
  return compiling:ready()
end

function script.start(token)
  water = token and cg.take(token) or cg.zeros("float", 3 * WIDTH * HEIGHT)
  local module = compiling:wait()
  local step, stone, shade = module:kernel "step", module:kernel "stone", module:kernel "shade"
  local grid, block = { math.ceil(WIDTH / 32), math.ceil(HEIGHT / 8) }, { 32, 8 }
  local depth, drop = cg.buffer("float", WIDTH * HEIGHT), cg.zeros("int32", #pointer)
  module:kernel("shape"):launch(grid, block, depth, WIDTH, HEIGHT)
  local surface = {}
  for i = 1, 3 do surface[i] = water:view((i - 1) * WIDTH * HEIGHT + 1, WIDTH * HEIGHT) end
  return (cg.capture(function()
    drop:copy(pointer)
    stone:launch(1, { 32, 32 }, surface[1], drop, WIDTH, HEIGHT)
    local before, now, next = surface[3], surface[1], surface[2]
    for _ = 1, STEPS do
      step:launch(grid, block, next, now, before, depth, WIDTH, HEIGHT)
      before, now, next = now, next, before
    end
    shade:launch(grid, block, pixels, now, depth, WIDTH, HEIGHT)
  end))
end

function script.keep()
  return cg.share(water)
end

return script
