-- bench/host: what the host device costs.  Kernels beside the same loops in
-- plain C (host_floor.c), graphs per node, the calls from Lua.
-- Run by bench/host, which builds the two shared objects and names them.

local ffi = require "ffi"
local cg = require "cgraphlua"

local measure = dofile((arg[0]:match "^.*/" or "") .. "measure.lua")
local now, median, ratio, rounds = measure.now, measure.median, measure.ratio, measure.rounds
local number = measure.number

cg.set_device "host"
local cores = cg.device().multiprocessors

local module = cg.module [==[
extern "C" __global__ void saxpy(const float *x, float *y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 1e-6f * x[i] + y[i];
}

extern "C" __global__ void line(const float *x, float *y, int n)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > 0 && i < n - 1)
    y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

extern "C" __global__ void plane(const float *x, float *y, int nx, int ny)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i > 0 && i < nx - 1 && j > 0 && j < ny - 1) {
    int k = j * nx + i;
    y[k] = 0.2f * (x[k] + x[k - 1] + x[k + 1] + x[k - nx] + x[k + nx]);
  }
}

// The pull of the first m bodies on each of n.
extern "C" __global__ void bodies(const float4 *p, float4 *a, int n, int m)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float x = 0.f, y = 0.f, z = 0.f;
    for (int j = 0; j < m; j++) {
      float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
      float r2 = dx * dx + dy * dy + dz * dz + 1e-3f;
      float inverse = rsqrtf(r2);
      float pull = p[j].w * inverse * inverse * inverse;
      x += pull * dx;
      y += pull * dy;
      z += pull * dz;
    }
    a[i] = make_float4(x, y, z, 0.f);
  }
}

extern "C" __global__ void nothing() {}

extern "C" __global__ void spin(float *x, int n)
{
  float v = x[0];
  for (int i = 0; i < n; i++)
    v = v * 0.999f + 1.f;
  x[0] = v;
}

extern "C" __global__ void six(float *x, const float *y, int n, float a, float b, int k) {}
]==]

-- Lines of the table --------------------------------------------------------

local missed = 0

local function verdict(bar, met)
  missed = missed + (met and 0 or 1)
  return string.format("bar %s: %s", bar, met and "met" or "MISSED")
end

local function line(what, value, unit, remark)
  print(string.format("  %-36s %9s %-4s %s", what, number(value), unit, remark or ""))
end

-- Kernels beside loops ------------------------------------------------------

ffi.cdef [[
void floor_saxpy(const float *x, float *y, int n);
void floor_line(const float *x, float *y, int n);
void floor_plane(const float *x, float *y, int nx, int ny);
void floor_bodies(const float *p, float *a, int n, int m);
int usleep(unsigned microseconds);
]]
local all, one = ffi.load(arg[1]), ffi.load(arg[2])

-- One kernel over two arrays of `floats` values, the numbers after the block
-- its other arguments: ours, C on all cores and C on one, all on the device's
-- own memory, which this process can reach.
local function compare(what, name, floats, grid, block, ...)
  local values = ffi.new("float[?]", floats)
  for i = 0, floats - 1 do
    values[i] = (i * 7 % 101) / 101
  end
  local dx, dy = cg.from(values, "float"), cg.from(values, "float")
  local x, y = ffi.cast("float *", dx:address()), ffi.cast("float *", dy:address())
  local kernel, sizes = module:kernel(name), { ... }
  local on_all, on_one = all["floor_" .. name], one["floor_" .. name]
  -- Rounds of some milliseconds: what waking threads takes is in them once.
  local once = math.huge
  for _, run in ipairs { on_all, on_all, on_one, on_one } do
    once = math.min(once, measure.time(function() run(x, y, unpack(sizes)) end))
  end
  local times = math.max(1, math.min(1000, math.floor(4000 / once)))
  local graph = cg.capture(function()
    for _ = 1, times do
      kernel:launch(grid, block, dx, dy, unpack(sizes))
    end
  end)
  local a, b = sizes[1], sizes[2]
  local function c(run)
    return function()
      local start = now()
      if b then
        for _ = 1, times do
          run(x, y, a, b)
        end
      else
        for _ = 1, times do
          run(x, y, a)
        end
      end
      return (now() - start) / times
    end
  end
  local ours, every, single = rounds(1, {
    function()
      ffi.C.usleep(2000) -- until OpenMP's threads sleep
      local start = now()
      graph:replay()
      cg.synchronize()
      return (now() - start) / times
    end,
    c(on_all), c(on_one),
  })
  local speed = ratio(every, ours)
  line(what, median(ours), "us", string.format("C: all cores %7s, one %7s  speed %.2f  %s",
    number(median(every)), number(median(single)), speed, verdict(">= 0.80", speed >= 0.8)))
end

local function kernels()
  print "A kernel in a graph, beside the same loop in C on all cores"
  for _, n in ipairs { 65536, 2 ^ 20, 2 ^ 24 } do
    compare("saxpy, n = " .. n, "saxpy", n, n / 256, 256, n)
  end
  for _, n in ipairs { 65536, 2 ^ 20, 2 ^ 24 } do
    compare("1-D stencil, n = " .. n, "line", n, n / 256, 256, n)
  end
  for _, n in ipairs { 256, 1024, 4096 } do
    for _, block in ipairs { { 256, 1 }, { 32, 8 } } do
      compare(string.format("2-D stencil, %d^2, blocks %d x %d", n, block[1], block[2]), "plane",
        n * n, { n / block[1], n / block[2] }, block, n, n)
    end
  end
  local n = 65536
  compare("n-body, n = " .. n .. " of 1024 each", "bodies", 4 * n, n / 256, 256, n, 1024)
end

-- Graphs ---------------------------------------------------------------------

-- The time of fn() and what it issued, until all of it is done.
local function until_done(fn)
  local start = now()
  fn()
  cg.synchronize()
  return now() - start
end

local function replays()
  print "\nReplay of n empty kernels in a line, per node"
  local kernel = module:kernel "nothing"
  for _, n in ipairs { 1, 10, 100, 1000 } do
    local graph = cg.capture(function()
      for _ = 1, n do
        kernel:launch(1, 32)
      end
    end)
    local count = math.max(10, 10000 / n)
    local every = rounds(0.5, {
      function() return until_done(function() graph:replay(count) end) / count end,
    })
    local each = median(every) / n
    line("n = " .. n, each, "us", string.format("replay %s us%s", number(each * n),
      n == 1000 and "  " .. verdict("<= 0.5 us", each <= 0.5) or ""))
  end
end

local function branches()
  print "\nTwo independent branches of four kernels of one thread each"
  local kernel, work = module:kernel "spin", 200000
  local x, y, other = cg.zeros("float", 1), cg.zeros("float", 1), cg.stream()
  local function four(buffer)
    for _ = 1, 4 do
      kernel:launch(1, 1, buffer, work)
    end
  end
  local single = cg.capture(function() four(x) end)
  local in_line = cg.capture(function()
    four(x)
    four(y)
  end)
  local forked = cg.capture(function()
    local main = cg.current_stream()
    other:wait(main)
    four(x)
    other:use(four, y)
    main:wait(other)
  end)
  local function run(graph)
    return function() return until_done(function() graph:replay() end) end
  end
  local one_branch, both_in_line, two = rounds(1, { run(single), run(in_line), run(forked) })
  local busy = ratio(both_in_line, two)
  line("one branch", median(one_branch), "us")
  line("both in a line", median(both_in_line), "us")
  line("both as branches", median(two), "us", string.format("%.2f x one, line / branches %.2f  %s",
    ratio(two, one_branch), busy, cores > 1 and verdict(">= 1.6", busy >= 1.6) or "one core"))
end

-- Calls from Lua --------------------------------------------------------------

-- Time per call of `count` calls, with the clock's own taken off; what they
-- issued is waited for outside.
local function per_call(count, fn)
  local overhead = measure.overhead()
  return function()
    cg.synchronize()
    local start = now()
    for _ = 1, count do
      fn()
    end
    return (now() - start - overhead) / count
  end
end

local function captures()
  print "\nCapture from Lua, per operation (1000 of them, the recording on)"
  local empty, six = module:kernel "nothing", module:kernel "six"
  local x, y = cg.zeros("float", 64), cg.zeros("float", 64)
  local stream = cg.current_stream()
  local function captured(fn)
    return function()
      local graph = cg.graph { keep_graph = true }
      graph:capture_begin { stream = stream }
      local start = now()
      for _ = 1, 1000 do
        fn()
      end
      local took = now() - start
      graph:capture_end()
      graph:release()
      return took / 1000
    end
  end
  local none, arguments, copies = rounds(1, {
    captured(function() empty:launch(1, 32) end),
    captured(function() six:launch(1, 32, x, y, 64, 0.5, 2, 3) end),
    captured(function() y:copy(x) end),
  })
  line("a launch without arguments", median(none), "us")
  line("a launch with six", median(arguments), "us")
  line("a copy", median(copies), "us")
end

local function calls()
  print "\nCalls from Lua, asynchronous (what is issued runs meanwhile)"
  local kernel = module:kernel "nothing"
  local graph = cg.capture(function() kernel:launch(1, 32) end)
  local nothing, one_call, many, eager = rounds(1, {
    per_call(1000, function() graph:replay(0) end),
    per_call(100, function() graph:replay() end),
    function() return until_done(function() graph:replay(1000) end) / 1000 end,
    per_call(100, function() kernel:launch(1, 32) end),
  })
  line("g:replay(0), the call alone", median(nothing), "us")
  line("g:replay(), one empty kernel", median(one_call), "us")
  line("g:replay(1000), per replay, done", median(many), "us")
  line("k:launch(1, 32), eager", median(eager), "us")
end

-- A frame of 1920 x 1080 pixels to and from memory of the program's own, as an
-- engine asks for it, beside memcpy from the device's memory, which this process
-- can reach.
local function frames()
  print "\nA frame of 1920 x 1080 pixels, 4 bytes each, to the program"
  local n = 1920 * 1080
  local bytes = 4 * n
  local frame = cg.full("uint32", n, 0xff00ff)
  local there = ffi.new("uint32_t[?]", n)
  local pointer = ffi.cast("void *", there)
  local from = ffi.cast("const void *", frame:address())
  local down, up, copied = rounds(1, {
    per_call(10, function() frame:download(pointer, bytes) end),
    per_call(10, function() frame:upload(pointer, bytes) end),
    per_call(10, function() ffi.copy(pointer, from, bytes) end),
  })
  assert(there[n - 1] == 0xff00ff)
  line("memcpy", median(copied), "us")
  line("frame:download(pointer, bytes)", median(down), "us",
    string.format("%.2f x memcpy", ratio(down, copied)))
  line("frame:upload(pointer, bytes)", median(up), "us",
    string.format("%.2f x memcpy", ratio(up, copied)))
end

print(string.format("bench/host: %s, load %s at the start", cg.device().name, measure.load()))
cg.stream():use(function()
  kernels()
  replays()
  branches()
  captures()
  calls()
  frames()
end)
print("\n" .. measure.verdict(missed))
os.exit(missed == 0 and 0 or 1, true)
