-- What random numbers cost: fills beside the faster of a plain fill of as many
-- bytes and a kernel that stores them, which is what the memory takes; and calls
-- that draw beside the same that do not.
--   cgraphlua bench/random.lua [--device D] [MEBIBYTES]

local cg = require "cgraphlua"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")
local now, median, ratio, rounds = measure.now, measure.median, measure.ratio, measure.rounds

local mebibytes
for i = 1, #arg do
  if arg[i - 1] == "--device" then
    cg.set_device(arg[i])
  elseif arg[i] ~= "--device" then
    mebibytes = assert(tonumber(arg[i]), "bench/random.lua [--device D] [MEBIBYTES]")
  end
end
local on_gpu = cg.device().device ~= "host"
local bytes = (mebibytes or (on_gpu and 1024 or 64)) * 2 ^ 20
local gen = cg.generator(1)

print(("%s, %s: fills of %d MiB"):format(cg.device().device, cg.device().name, bytes / 2 ^ 20))
print(("%-22s %10s %10s %14s"):format("", "GB/s", "ns/value", "of the memory"))

local store = cg.kernel [[
extern "C" __global__ void store(float4 *x, long long n)
{
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] = make_float4(1.f, 2.f, 3.f, 4.f);
}]]
local target = cg.buffer("float", bytes / 4)
local function stores() store:launch(math.ceil(bytes / 4096), 256, target, bytes / 16) end

-- Microseconds of a call, waited for.
local function timed(fn)
  return function()
    cg.synchronize()
    local start = now()
    fn()
    cg.synchronize()
    return now() - start
  end
end

local sizes = { half = 2, float = 4, double = 8, uint8 = 1, int32 = 4, uint64 = 8 }

local function row(type, kind, ...)
  local n = bytes / sizes[type]
  local x, list = cg.buffer(type, n), { ... }
  local function draw() x[kind](x, gen, unpack(list)) end
  draw()
  x:fill(0)
  local random, plain, stored = rounds(0.5,
    { timed(draw), timed(function() x:fill(0) end), timed(stores) })
  local us = median(random)
  print(("%-22s %10.2f %10.4f %13.0f%%"):format(
    type .. " " .. kind .. (list[1] and " below " .. list[1] or ""), bytes / us / 1e3,
    us * 1e3 / n, 100 / math.max(ratio(random, plain), ratio(random, stored))))
  x:release()
end

for _, type in ipairs { "half", "float", "double" } do
  row(type, "uniform")
  row(type, "normal")
end
row("uint8", "random")
row("int32", "random")
row("int32", "random", 1000)
row("uint64", "random")

-- Calls ------------------------------------------------------------------------

local CALLS = 1000
local x = cg.buffer("float", 4)
local module = cg.module [[
extern "C" __global__ void plain(float *x, int n) { x[threadIdx.x] = n; }
extern "C" __global__ void draws(float *x, cgl_philox rng) { x[threadIdx.x] = cgl_uniform(rng); }
]]
local plain, draws = module:kernel "plain", module:kernel "draws"

local function times(fn)
  for _ = 1, CALLS do fn() end
end

-- Microseconds of one call among many; what they issued is not waited for.
local function issued(fn)
  return function()
    cg.synchronize()
    local start = now()
    times(fn)
    local us = (now() - start) / CALLS
    cg.synchronize()
    return us
  end
end

local function captured(fn)
  return function()
    local us
    cg.capture(function()
      local start = now()
      times(fn)
      us = (now() - start) / CALLS
    end)
    return us
  end
end

local function compare(name, with, without)
  local a, b = rounds(0.5, { with, without })
  print(("%-34s %8.3f us, without %8.3f us, ratio %.2f"):format(name, median(a), median(b),
    ratio(a, b)))
end

print()
local function launch_draws() draws:launch(1, 4, x, gen) end
local function launch_plain() plain:launch(1, 4, x, 1) end
compare("launch with a generator", issued(launch_draws), issued(launch_plain))
compare("the same, captured", captured(launch_draws), captured(launch_plain))
compare("uniform, beside a launch", issued(function() x:uniform(gen) end), issued(launch_plain))
local g = cg.capture(launch_draws)
local h = cg.capture(launch_plain)
compare("replay of one launch that draws", issued(function() g:replay() end),
  issued(function() h:replay() end))
