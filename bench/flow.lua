-- The rows of bench/run about branches, loops and replay loops, and about the
-- programs that stand on them.  ours.lua calls this file with what both use:
-- the floor, what is known of the device, and the functions of the table.

local cg = require "cgraphlua"
local ffi = require "ffi"

local bench = ...

local counting = [==[
// Counts `turns` down, and starts again after the last.
static __device__ int counted(int *left, int turns)
{
  *left = *left > 1 ? *left - 1 : turns;
  return *left != turns;
}
]==]

local source = counting .. [==[
extern "C" __global__ void tick(float *x, float a)
{
  if (threadIdx.x == 0)
    x[0] += a;
}

extern "C" __global__ void touch(float *x, float a)
{
  x[blockIdx.x * blockDim.x + threadIdx.x] += a;
}

extern "C" __global__ void turn(int *left, int *going, int turns)
{
  *going = counted(left, turns);
}
]==]

-- Of the floor, which sets the handles of its nodes itself.
local setters = counting .. [==[
#ifndef __CGRAPHLUA_HOST__
extern "C" __device__ __cudart_builtin__ void
cudaGraphSetConditional(unsigned long long handle, unsigned value);
#endif

extern "C" __global__ void set(unsigned long long handle, const int *flag)
{
  cudaGraphSetConditional(handle, *flag);
}

extern "C" __global__ void turn_and_set(unsigned long long handle, int *left,
                                        int turns)
{
  cudaGraphSetConditional(handle, counted(left, turns));
}
]==]

local floor, stream, now, measure = bench.floor, bench.stream, bench.now, bench.measure
local quick, on_gpu, seconds = bench.quick, bench.on_gpu, bench.seconds
local row, say, verdict, heading = bench.row, bench.say, bench.verdict, bench.heading
local median, number, rounds = measure.median, measure.number, measure.rounds

local module = cg.module(source)
local tick, touch, turn = module:kernel "tick", module:kernel "touch", module:kernel "turn"
local data = cg.zeros("float", 32)
local flag, left = cg.zeros("int32", 1), cg.zeros("int32", 1)

local function add_tick()
  tick:launch(1, 32, data, 1)
end

-- A function that replays `graph` so often, and returns the time of one replay.
local function replays(graph, count)
  return function()
    stream:synchronize()
    local start = now()
    for _ = 1, count do
      graph:replay()
    end
    stream:synchronize()
    return (now() - start) / count
  end
end

local function repeated(n, fn)
  return cg.capture(function()
    for _ = 1, n do fn() end
  end)
end

local function scaled(list, by, less)
  local result = {}
  for i, value in ipairs(list) do
    result[i] = (value - (less and less[i] or 0)) * by
  end
  return result
end

-- Branches --------------------------------------------------------------------

local N, OFTEN = 16, quick and 5 or 100 -- branches in a line, replays

-- What a branch adds to the ticks before it: more than nothing when it is
-- skipped, and than another tick when it is taken.
local function branches()
  heading "A tick if the device says so, 16 in a line"
  floor.floor_prepare_branches(N, flag:address())
  local ours = repeated(N, function()
    add_tick()
    cg.when(flag, add_tick)
  end)
  local once, twice = repeated(N, add_tick), repeated(2 * N, add_tick)
  local function line(key, label, value, without, bar)
    flag:fill(value)
    stream:synchronize()
    local c, lua, plain = rounds(seconds, {
      function() return floor.floor_stream(OFTEN) end, replays(ours, OFTEN),
      replays(without, OFTEN),
    })
    row(key, label, scaled(c, 1 / N, plain), scaled(lua, 1 / N, plain), { most = bar })
  end
  line("when.skipped", "a branch that is skipped, beyond no kernel", 0, once, 1.0)
  line("when.taken", "a branch that is taken, beyond the kernel", 1, twice, 1.2)
  floor.floor_drop()
end

-- Loops -------------------------------------------------------------------------

local TURNS = quick and 100 or 1000

-- A loop around so many kernels, of which the last counts the turns down to
-- where the next run begins.
local function loop_around(kernels)
  local going, loop = cg.full("int32", 1, 1), nil
  local function body()
    for _ = 2, kernels do add_tick() end
    turn:launch(1, 1, left, going, TURNS)
  end
  local ours = cg.capture(function()
    going:fill(1)
    loop = cg.loop(going, body)
  end)
  local straight = cg.capture(body)
  left:fill(TURNS)
  stream:synchronize()
  floor.floor_prepare_loop(kernels, left:address(), TURNS)
  local c, lua, plain = rounds(seconds, {
    function() return floor.floor_stream(1) end, replays(ours, 1),
    function()
      stream:synchronize()
      local start = now()
      straight:replay(TURNS)
      stream:synchronize()
      return now() - start
    end,
  })
  floor.floor_drop()
  if loop:turns() ~= TURNS then
    error(string.format("%d turns instead of %d", loop:turns(), TURNS), 0)
  end
  local many = kernels == 1 and "one kernel" or kernels .. " kernels"
  row("turns." .. kernels, "a loop around " .. many, scaled(c, 1 / TURNS),
    scaled(lua, 1 / TURNS), { most = kernels == 1 and 1.2 or nil })
  row("straight." .. kernels, "g:replay(n) of " .. many .. ", no condition", nil,
    scaled(plain, 1 / TURNS))
  if kernels > 1 and on_gpu then
    local share = measure.ratio(lua, plain)
    say("%-42s %30.3f  %s", "  the loop / without a condition", share,
      verdict("<= 1.25 x", share <= 1.25))
  end
end

-- Replay loops --------------------------------------------------------------------

local COUNT, BLOCK = 1000, 256
local PLAIN = { unroll = false, programmatic = false } -- as plain C would capture

-- A graph as the library replays it, and without each of its two means, beside a
-- loop of cuGraphLaunch in plain C; and what the first call takes longer than a
-- later one, with the memory that it takes.
local function forms_of(key, label, body, bars)
  local plain = cg.capture(body, PLAIN)
  local exec = plain:raw_cuda_graph_exec()
  local function line(form, opts)
    local graph = cg.capture(body, opts)
    local function loop()
      stream:synchronize()
      local start = now()
      graph:replay(COUNT)
      stream:synchronize()
      return (now() - start) / COUNT
    end
    replays(graph, 20)()
    local free = cg.mem_get_info()
    local first = loop()
    local bytes = free - cg.mem_get_info()
    local c, lua = rounds(seconds / 2, {
      function() return floor.floor_loop(exec, COUNT) end, loop,
    })
    row(key .. form, label .. form, c, lua, not opts and bars or nil)
    if not opts then
      say("  the first call takes %s us longer, and %.0f KiB of the device's memory",
        number(math.max(0, (first - median(lua)) * COUNT)), bytes / 1024)
    end
    graph:release()
  end
  line ""
  line(", programmatic = false", { programmatic = false })
  line(", unroll = false", { unroll = false })
  plain:release()
end

local function replay_loops()
  heading("g:replay(" .. COUNT .. ") until done, per replay")
  for _, grid in ipairs(on_gpu and { 1, 32, 132, 1056, 16384 } or { 1, 32 }) do
    local x = cg.zeros("float", grid * BLOCK)
    forms_of("loop." .. grid, "one kernel of " .. grid .. (grid == 1 and " block" or " blocks"),
      function() touch:launch(grid, BLOCK, x, 1) end,
      { ratio = 1 / 0.98 })
  end
  for _, n in ipairs(on_gpu and { 64, 256, 512 } or { 64 }) do
    forms_of("loop.heat" .. n, string.format("two steps of heat, %d x %d", n, n),
      bench.heat_steps(n), { ratio = n == 256 and 1 / 1.7 or 1 / 0.98 })
  end
end

-- Programs ----------------------------------------------------------------------------

local scripts = bench.here .. "../scripts/lib/"

-- A function that solves as a host has to that looks at the residual every so
-- many iterations, and returns how long it took.
local function host_checked(solver, limit, every)
  local begin = cg.capture(function() solver:begin(limit) end)
  local going = cg.pinned("int32", 1)
  local some = cg.capture(function()
    for _ = 1, every do solver:iterate(limit) end
    going:copy(solver.going)
  end)
  return function()
    stream:synchronize()
    local start = now()
    begin:replay()
    repeat
      some:replay()
      stream:synchronize()
    until going:get(1) == 0
    return now() - start
  end
end

-- Conjugate gradients to a tolerance, as one replay and as a host does it.
local function gradients(n, bar)
  local solver = dofile(scripts .. "conjugate.lua").new(n)
  solver.b:uniform(cg.generator(1), -1, 1)
  solver:begin(0)
  local limit = solver:residual_squares() * 1e-10
  local loop
  local function solve()
    solver:begin(limit)
    loop = cg.loop(solver.going, function() solver:iterate(limit) end)
  end
  solve()
  local wanted = loop:turns()
  local runs = { replays(cg.capture(solve), 1) }
  local everies = quick and { 16 } or { 1, 4, 8, 16, 32, 64, 128 }
  for i, every in ipairs(everies) do
    runs[i + 1] = host_checked(solver, limit, every)
  end
  local results = { rounds(seconds, runs) }
  runs[1]()
  if loop:turns() ~= wanted then
    error(string.format("%d iterations, and eagerly %d", loop:turns(), wanted), 0)
  end
  row("gradients." .. n, string.format("%d x %d, %d iterations in one replay", n, n, wanted),
    nil, scaled(results[1], 1 / wanted), { most = bar })
  local best = 2
  for i = 3, #results do
    best = median(results[i]) < median(results[best]) and i or best
  end
  local gain = measure.ratio(results[best], results[1])
  say("%-42s %9s %9s %6.3f  %s", string.format("  the host looks every %d, the best of %d",
    everies[best - 1], #everies), "-", number(median(results[best]) / wanted), gain,
    on_gpu and verdict(">= 1.30 x", gain >= 1.3) or "")
end

-- Training as scripts/digits.lua does it; what is in the images does not matter
-- here.
local function digits()
  heading "Training a network (scripts/digits.lua), a step"
  local network = dofile(scripts .. "network.lua")
  local inputs, images = 64, 1438
  local set = { inputs = inputs, classes = 10, count = images,
    images = ffi.new("float[?]", images * inputs), labels = ffi.new("int32_t[?]", images) }
  for i = 0, images * inputs - 1 do
    set.images[i] = i * 0.618 % 1
  end
  for i = 0, images - 1 do
    set.labels[i] = i % 10
  end
  local STEPS = quick and 300 or 2000
  local net = network.new(set, { hidden = 128, batch = 32, rate = 0.01, dropout = 0.5, seed = 1,
    steps = STEPS })
  local step = cg.capture(function() net:step() end)
  local function train()
    net:reset()
    stream:synchronize()
    local start = now()
    step:replay(STEPS)
    stream:synchronize()
    return (now() - start) / STEPS
  end
  local each = rounds(seconds, { train })
  row("digits", string.format("64 -> 128 -> 10, 32 images: %.0f a second", 1e6 / median(each)),
    nil, each, { most = 12.5 })
end

local context = bench.get_proc()
local setting, template = cg.module(setters), { keep_graph = true }
local sets = cg.capture(function()
  setting:kernel "set":launch(1, 1, 0, flag)
end, template)
local turns = cg.capture(function()
  setting:kernel "turn_and_set":launch(1, 1, 0, left, 1)
end, template)
local lacking = floor.floor_open_control(context, sets:raw_cuda_graph(), turns:raw_cuda_graph())
if lacking == nil then
  branches()
  heading(TURNS .. " turns, until done, per turn")
  loop_around(1)
  loop_around(8)
else
  say("\nno branches and loops: the driver has no %s", ffi.string(lacking))
end
replay_loops()
if lacking == nil then
  heading "Conjugate gradients (scripts/poisson.lua), an iteration"
  gradients(64, 7)
  if on_gpu then
    gradients(512, 9)
    gradients(2048, 42)
  end
end
digits()
