-- What branches and loops cost in their two forms, beside the same kernels
-- without a condition.
--   cgraphlua bench/control.lua [--device D] [--turns N]

local cg = require "cgraphlua"
local options = require "cgraphlua.options"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")

local opt = options.read({
  usage = "bench/control.lua [options]",
  about = "What branches and loops cost in their two forms, in microseconds.",
  { "turns", "N", 20001, "turns of the long loops", min = 10, max = 1e9 },
}, arg)

local kernels = cg.module [[
extern "C" __global__ void work(float *x) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  x[i] = x[i] * 1.0001f + 0.5f;
}
extern "C" __global__ void last(float *x, int *left, int *flag) {
  x[threadIdx.x] = x[threadIdx.x] * 1.0001f + 0.5f;
  if (threadIdx.x == 0) *flag = --*left > 0;
}]]

local x = cg.zeros("float", 32 * 128)
local left, flag = cg.zeros("int32", 1), cg.zeros("int32", 1)
local forms = { "node", "predicated" }

-- A function that launches so many small kernels.
local function work(n)
  return function()
    for _ = 1, n do kernels:kernel "work":launch(32, 128, x) end
  end
end

-- The same, of which the last counts down.
local function counting(n)
  return function()
    work(n - 1)()
    kernels:kernel "last":launch(1, 32, x, left, flag)
  end
end

-- Microseconds of a call and of what it issues, the median of five.
local function timed(prepare, call)
  local list = {}
  for i = 1, 5 do
    prepare()
    cg.synchronize()
    list[i] = measure.time(function()
      call()
      cg.synchronize()
    end)
  end
  return measure.median(list)
end

-- Microseconds of a replay among many.
local function per_replay(g)
  local count = math.max(math.floor(opt.turns / 10), 10)
  return timed(function() g:replay(10) end, function() g:replay(count) end) / count
end

local function row(name, ...)
  local text = { ("%-40s"):format(name) }
  for _, us in ipairs { ... } do text[#text + 1] = ("%12.2f"):format(us) end
  print(table.concat(text))
end

local function head(title, ...)
  print(("\n%-40s" .. ("%12s"):rep(select("#", ...))):format(title, ...))
end

print(("%s, %s: microseconds"):format(cg.device().device, cg.device().name))

head("a turn of a long loop", "node", "predicated", "no loop")
for _, n in ipairs { 1, 2, 4, 8, 12 } do
  local us = {}
  for i, form in ipairs(forms) do
    local loop
    local g = cg.capture(function()
      loop = cg.loop(flag, counting(n), { form = form, max = opt.turns })
    end)
    us[i] = timed(function()
      left:fill(opt.turns)
      flag:fill(1)
    end, function() g:replay() end) / opt.turns
    assert(loop:turns() == opt.turns)
  end
  row(n .. (n == 1 and " kernel" or " kernels"), us[1], us[2],
    per_replay(cg.capture(counting(n))))
end

head("a loop of few turns, 2 kernels each", "node", "predicated")
for _, turns in ipairs { 0, 1, 4, 16, 64 } do
  local us = {}
  for i, form in ipairs(forms) do
    us[i] = per_replay(cg.capture(function()
      left:fill(turns)
      flag:fill(turns > 0 and 1 or 0)
      cg.loop(flag, counting(2), { form = form })
    end))
  end
  row(turns .. " turns", us[1], us[2])
end

-- What the function adds to two kernels.
local two = per_replay(cg.capture(work(2)))
local function between(body)
  return per_replay(cg.capture(function()
    work(1)()
    body()
    work(1)()
  end)) - two
end

head("a branch between two kernels", "node", "predicated", "no branch")
for _, n in ipairs { 1, 2, 4, 5, 6, 8 } do
  for taken = 0, 1 do
    local us = {}
    local value = cg.full("int32", 1, taken)
    for i, form in ipairs(forms) do
      us[i] = between(function() cg.when(value, work(n), { form = form }) end)
    end
    us[3] = taken == 1 and between(work(n)) or 0
    row(("%d kernel%s, %s"):format(n, n == 1 and "" or "s", taken == 1 and "taken" or "skipped"),
      unpack(us))
  end
end

head("a kernel by its blocks of 256 threads", "skipped", "taken", "no branch")
local wide = cg.buffer("float", 2 ^ 22)
for _, blocks in ipairs { 1, 256, 1024, 4096, 16384 } do
  local function body() kernels:kernel "work":launch(blocks, 256, wide) end
  local us = {}
  for taken = 0, 1 do
    local value = cg.full("int32", 1, taken)
    us[taken + 1] = between(function() cg.when(value, body, { form = "predicated" }) end)
  end
  row(blocks .. " blocks", us[1], us[2], between(body))
end
