-- Heat spreading through a plate, dT/dt = laplace(T), whose edges are held.
--
--   cgraphlua scripts/heat.lua                  a sine mode, and its error
--   cgraphlua scripts/heat.lua photo.png        a picture: white is 1, black 0
--   mpirun -n 4 cgraphlua scripts/heat.lua      the rows in four parts
--
-- The plate is N x N points a distance h apart.  Without a picture it is the
-- unit square, cold at its edges, and starts as sin(pi x) sin(pi y), which
-- decays as exp(-2 pi^2 t): the script prints how far off it ended.
--
-- Twenty time steps are captured once, as a graph; a run replays that graph.
-- With --until the graph is a loop of them, which the device ends where the plate
-- has come to rest.

local cg = require "cgraphlua"
local ffi = require "ffi"
local image = require "cgraphlua.image"
local options = require "cgraphlua.options"
local progress = require "cgraphlua.progress"

local STEPS_PER_REPLAY = 20 -- even: the field ends in the buffer it began in
local RATIO = 0.2 -- dt / h^2; the explicit scheme is stable up to 1/4

local opt = options.read({
  usage = "scripts/heat.lua [image.png] [options]",
  about = "Heat spreading from a picture, or from a sine mode whose decay is known.",
  arguments = { "image" },
  { "size", "N", nil, "points on a side (512; a picture: its own width)", min = 3, max = 16384 },
  { "steps", "N", nil, "time steps, rounded up to 20s (as size^2, 20000 at 512; a picture: 2000)",
    min = 1, max = 1e9 },
  { "until", "X", nil, "end when the last step of 20 changes no point by more than X",
    min = 1e-7, max = 1 },
  { "out", "OUT", "heat.png", "the picture to write" },
  { "frames", "N", 0, "also write N numbered pictures on the way", min = 0, max = 9999 },
}, arg)
if opt["until"] and opt.frames > 0 then
  error("--frames shows a run on its way, and --until is one replay: leave one of them out", 0)
end

local ranks = cg.ranks()
if opt["until"] and ranks.size > 1 then
  error("--until is a loop that the device ends, and no collective can be in such a loop", 0)
end
local first_rank = ranks.rank == 0
local print = first_rank and print or function() end

local source = [=[
#ifndef ROWS // whoever compiles this says how many rows a thread goes down
#define ROWS 4
#endif

extern "C" __global__ void sine(float *t, int nx, int ny)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y;
  if (x < nx) {
    float edge = x == 0 || y == 0 || x == nx - 1 || y == ny - 1 ? 0.f : 1.f;
    t[y * nx + x] = edge * sinf(3.14159265f * x / (nx - 1)) *
                    sinf(3.14159265f * y / (ny - 1));
  }
}

// Going down its column a thread reads each number of it once.  What a row needs is
// read before the row above it is written: for all that the compiler knows, a store
// changes what is still to be read.  (__restrict__ would say that it does not, but
// also that nobody writes it while the kernel runs, and then no kernel could begin
// early.)
extern "C" __global__ void spread(const float *t, float *next, int nx, int ny,
                                  float ratio)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = 1 + ROWS * blockIdx.y, i = y * nx + x;
  if (x > 0 && x < nx - 1) {
#if ROWS > 1
    if (y + ROWS >= ny) { // fewer rows are left
      for (; y < ny - 1; y++, i += nx)
        next[i] = t[i] + ratio * (t[i - 1] + t[i + 1] + t[i - nx] + t[i + nx] -
                                  4.f * t[i]);
      return;
    }
#endif
    float above = t[i - nx], here = t[i], below = t[i + nx];
    float left = t[i - 1], right = t[i + 1];
#pragma unroll
    for (int k = 0; k < ROWS; k++, i += nx) {
      float now = here + ratio * (left + right + above + below - 4.f * here);
      if (k + 1 < ROWS) {
        above = here;
        here = below;
        below = t[i + 2 * nx];
        left = t[i + nx - 1];
        right = t[i + nx + 1];
      }
      next[i] = now;
    }
  }
}

// Where a step changed a point by more than `most`, the plate is not at rest.
extern "C" __global__ void compare(const float *t, const float *last, int n,
                                   float most, int *moving)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int more = __syncthreads_or(i < n && fabsf(t[i] - last[i]) > most);
  if (threadIdx.x == 0 && more)
    *moving = 1;
}
]=]

-- The picture as numbers from 0 to 1, at the size asked for.
local function picture(path, size)
  local img = image.read(path)
  if size then
    img = image.resize(img, size, math.max(3, math.floor(img.height * size / img.width + 0.5)))
  end
  if img.width < 3 or img.height < 3 then
    error(path .. " is smaller than 3 x 3: there is nothing between its edges", 0)
  end
  local values, n = image.values(img)
  local field = ffi.new("float[?]", n)
  for i = 0, n - 1 do
    field[i] = values[i]
  end
  return field, img.width, img.height
end

local start, nx, ny
if opt.image then
  start, nx, ny = picture(opt.image, opt.size)
else
  nx, ny = opt.size or 512, opt.size or 512
end

-- On a GPU four rows a thread keep enough reads in flight for its memory; a small
-- field rather has a thread for each point.  A CPU reads fastest what follows in
-- memory, row after row.
-- The points that move are divided; around each part lie its neighbours' rows, or
-- the plate's edges.
local part = cg.domain { shape = { ny - 2, nx }, halo = 1, ranks = ranks }
local part_ny = part.shape[1]
local rows = (cg.device().device == "host" or part_ny <= 256) and 1 or part_ny <= 512 and 2 or 4
local module = cg.module(source, { options = { "-DROWS=" .. rows } })
local spread = module:kernel "spread"

local block = 256
local columns = math.ceil(nx / block)

local whole = cg.zeros("float", { ny, nx })
if start then
  whole:upload(start)
else
  module:kernel("sine"):launch({ columns, ny }, block, whole, nx, ny)
end
local a, b = part:field "float", part:field "float"
a:copy(whole:view(part.first * nx + 1, #a))
b:copy(a) -- both hold the edges, which no step writes

-- The rows that see no other part's are computed while those travel.
local function step(from, to)
  part:overlap({ from }, function(first, count)
    local around, n = (first - 1) * nx + 1, (count + 2) * nx
    spread:launch({ columns, math.ceil(count / rows) }, block, from:view(around, n),
      to:view(around, n), nx, count + 2, RATIO)
  end)
end

local function twenty_steps()
  for _ = 1, STEPS_PER_REPLAY / 2 do
    step(a, b)
    step(b, a)
  end
end

-- All points, on the first rank.
local host = ffi.new("float[?]", nx * ny)
local function field()
  local inner = part:gather(a)
  if inner then
    whole:view(nx + 1, #inner):copy(inner)
    whole:download(host) -- waits for what was issued before
  end
  return inner and host
end

local function draw(path)
  if not field() then return end
  image.write(path, image.map(host, nx, ny, { colormap = "inferno", min = 0, max = 1 }))
end

local function numbered(k)
  local stem = opt.out:gsub("%.png$", "")
  return string.format("%s-%04d.png", stem, k)
end

-- By default the mode falls to three quarters, whatever the size.
local default_steps = opt["until"] and 1e9 or opt.image and 2000 or 20000 * (nx / 512) ^ 2
local replays = math.ceil((opt.steps or default_steps) / STEPS_PER_REPLAY)
local frames = math.min(opt.frames, replays)

local function run_all()
  local graph = cg.capture(twenty_steps)
  local pauses = math.min(replays, frames > 0 and frames or 50)
  local bar = progress.new { total = replays * STEPS_PER_REPLAY, label = "heat" }
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
  return done
end

-- The device looks at the plate after every twenty steps.
local function run_until(most)
  local compare, moving = module:kernel "compare", cg.full("int32", 1, 1)
  local n, loop = #a, nil
  local graph = cg.capture(function()
    loop = cg.loop(moving, function()
      twenty_steps()
      moving:fill(0)
      compare:launch(math.ceil(n / block), block, a, b, n, most, moving)
    end, { max = replays })
  end)
  graph:replay()
  return loop:turns(), loop:exhausted()
end

cg.synchronize()
local turns, moving
if opt["until"] then
  turns, moving = run_until(opt["until"])
else
  turns = run_all()
end
local steps = turns * STEPS_PER_REPLAY

draw(opt.out)
print(string.format("%d x %d points, %d steps", nx, ny, steps))
if opt["until"] then
  print(moving and "not at rest yet" or "at rest")
end

if not first_rank then return end
local t = host -- draw gathered it
if opt.image then
  local low, high, sum = math.huge, -math.huge, 0
  for i = 0, nx * ny - 1 do
    low, high, sum = math.min(low, t[i]), math.max(high, t[i]), sum + t[i]
  end
  print(string.format("temperature from %.4f to %.4f, mean %.4f", low, high, sum / (nx * ny)))
else
  local h = 1 / (nx - 1)
  local decay = math.exp(-2 * math.pi ^ 2 * steps * RATIO * h * h)
  local off, all = 0, 0
  for y = 0, ny - 1 do
    for x = 0, nx - 1 do
      local exact = decay * math.sin(math.pi * x * h) * math.sin(math.pi * y * h)
      off = off + (t[y * nx + x] - exact) ^ 2
      all = all + exact ^ 2
    end
  end
  print(string.format("the mode fell to %.6f of its height", decay))
  if decay > 1e-6 then
    print(string.format("relative L2 error %.3g", math.sqrt(off / all)))
  else
    print "too little is left of it to compare"
  end
end
if frames > 0 then
  print(string.format("wrote %s to %s", numbered(1), numbered(frames)))
end
print("wrote " .. opt.out)
