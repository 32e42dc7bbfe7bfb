-- Two quantum particles' waves in a bowl, i dpsi/dt = -laplace(psi) / 2 + V psi.
--
--   cgraphlua scripts/waves.lua
--
-- The bowl is V = (x^2 + y^2) / 2 on a periodic square of N x N points.  Two wave
-- packets start at its sides and swing through each other; where they meet they
-- interfere.  The exact solution is known: packets of constant shape whose
-- centres move as a pendulum does.  The script prints how far off it ended.
--
-- A time step multiplies by a phase for V, in space, and by a phase for the
-- laplacian, of the Fourier transform.  Ten of them are captured once, as a
-- graph; a run replays that graph.

local cg = require "cgraphlua"
local fft = require "cgraphlua.fft"
local ffi = require "ffi"
local image = require "cgraphlua.image"
local options = require "cgraphlua.options"
local progress = require "cgraphlua.progress"

local STEPS_PER_REPLAY = 10
local DT = math.pi / 320 -- 160 steps are a quarter of a swing
local SIDE = 16 -- of the square

local opt = options.read({
  usage = "scripts/waves.lua [options]",
  about = "Two wave packets in a bowl, by Fourier transforms, beside the exact solution.",
  arguments = {},
  { "size", "N", 256, "points on a side", min = 32, max = 8192 },
  { "steps", "N", 160, "time steps, rounded up to 10s; 640 are a whole swing", min = 1, max = 1e7 },
  { "out", "OUT", "waves.png", "the picture to write: the density" },
  { "frames", "N", 0, "also write N numbered pictures on the way", min = 0, max = 9999 },
}, arg)

-- Where a packet starts, and how fast it moves there: x, y, px, py.
local packets = { { 3.5, 0, 0, 0.5 }, { -3.5, 0, 0, -0.5 } }

local module = cg.module [=[
#include <cuComplex.h>
#define AT const int i = blockIdx.x * blockDim.x + threadIdx.x; \
           const int x = i % n, y = i / n; if (i >= n * n) return

__device__ cuDoubleComplex turned(cuDoubleComplex z, double angle, double by)
{
  double s, c;
  sincos(angle, &s, &c);
  return cuCmul(z, make_cuDoubleComplex(by * c, by * s));
}

// Adds a packet: at and speed are those of its centre.
extern "C" __global__ void packet(cuDoubleComplex *psi, int n, double h,
                                  double2 at, double2 speed)
{
  AT;
  const double a = (x - n / 2) * h - at.x, b = (y - n / 2) * h - at.y;
  const double height = exp(-(a * a + b * b) / 2) / sqrt(2 * 3.14159265358979323846);
  const double angle = speed.x * (a + at.x / 2) + speed.y * (b + at.y / 2);
  psi[i] = cuCadd(psi[i], turned(make_cuDoubleComplex(height, 0), angle, 1));
}

extern "C" __global__ void bowl(cuDoubleComplex *psi, int n, double h, double dt)
{
  AT;
  const double a = (x - n / 2) * h, b = (y - n / 2) * h;
  psi[i] = turned(psi[i], -dt * (a * a + b * b) / 2, 1);
}

// The transform's numbers stand for waves of 0, 1, ... and back to -1 lengths.
// Divided by their number here, they need no division after the inverse.
extern "C" __global__ void drift(cuDoubleComplex *psi, int n, double k, double dt)
{
  AT;
  const double a = k * (x < n / 2 ? x : x - n), b = k * (y < n / 2 ? y : y - n);
  psi[i] = turned(psi[i], -dt * (a * a + b * b) / 2, 1.0 / n / n);
}

extern "C" __global__ void density(const cuDoubleComplex *psi, float *out, int n)
{
  AT;
  out[y * n + x] = (float)(psi[i].x * psi[i].x + psi[i].y * psi[i].y);
}
]=]
local packet, bowl = module:kernel "packet", module:kernel "bowl"
local drift, density = module:kernel "drift", module:kernel "density"

local n = opt.size
local h, block = SIDE / n, 256
local grid = math.ceil(n * n / block)
local psi = cg.zeros("complex128", { n, n })
local picture = cg.buffer("float", { n, n })

local there = { dims = 2, out = psi }
local back = { dims = 2, out = psi, norm = "forward" } -- divides by nothing

local function ten_steps()
  bowl:launch(grid, block, psi, n, h, DT / 2)
  for k = 1, STEPS_PER_REPLAY do
    fft.fft(psi, there)
    drift:launch(grid, block, psi, n, 2 * math.pi / SIDE, DT)
    fft.ifft(psi, back)
    bowl:launch(grid, block, psi, n, h, k < STEPS_PER_REPLAY and DT or DT / 2)
  end
end

-- Adds the packets as they are at a time.
local function add_packets(to, t)
  local c, s = math.cos(t), math.sin(t)
  for _, p in ipairs(packets) do
    packet:launch(grid, block, to, n, h, { p[1] * c + p[3] * s, p[2] * c + p[4] * s },
      { p[3] * c - p[1] * s, p[4] * c - p[2] * s })
  end
end

local host = ffi.new("float[?]", n * n)
local function draw(path)
  density:launch(grid, block, psi, picture, n)
  image.write(path, image.map(picture:download(host), n, n, { colormap = "inferno", min = 0 }))
end

local function numbered(k)
  return string.format("%s-%04d.png", (opt.out:gsub("%.png$", "")), k)
end

-- Plans are made outside captures: at the first calls.
fft.fft(psi, there)
fft.ifft(psi, back)
add_packets(psi, 0)
local graph = cg.capture(ten_steps)

local replays = math.ceil(opt.steps / STEPS_PER_REPLAY)
local steps = replays * STEPS_PER_REPLAY
local frames = math.min(opt.frames, replays)
local pauses = math.min(replays, frames > 0 and frames or 50)
local bar = progress.new { total = steps, label = "waves" }
local done = 0
for k = 1, pauses do
  local target = math.floor(replays * k / pauses)
  graph:replay(target - done)
  done = target
  if frames > 0 then
    draw(numbered(k))
  else
    cg.synchronize()
  end
  bar:update(done * STEPS_PER_REPLAY)
end
bar:finish()

draw(opt.out)
local time = steps * DT
print(string.format("%d x %d points, %d steps, %.3f of a swing", n, n, steps,
  time / (2 * math.pi)))

-- The exact solution, whose waves have turned by e^(-it) besides.
local exact = cg.zeros("complex128", { n, n })
add_packets(exact, time)
local a, b = ffi.new("double[?]", 2 * n * n), ffi.new("double[?]", 2 * n * n)
psi:download(a)
exact:download(b)
local c, s = math.cos(time), -math.sin(time)
local off, all, norm = 0, 0, 0
for i = 0, 2 * n * n - 2, 2 do
  local re, im = b[i] * c - b[i + 1] * s, b[i] * s + b[i + 1] * c
  off = off + (a[i] - re) ^ 2 + (a[i + 1] - im) ^ 2
  all = all + re ^ 2 + im ^ 2
  norm = norm + a[i] ^ 2 + a[i + 1] ^ 2
end
print(string.format("probability %.9f", norm * h * h))
print(string.format("relative L2 error %.3g", math.sqrt(off / all)))
if frames > 0 then
  print(string.format("wrote %s to %s", numbered(1), numbered(frames)))
end
print("wrote " .. opt.out)
