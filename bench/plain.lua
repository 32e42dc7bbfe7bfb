-- bench/host: kernels without barriers on the host device, beside the same work
-- in plain C (plain_floor.c), and elementary functions beside -ffast-math loops
-- (functions_floor.c), on one thread each.  The clock is the process's processor
-- time, which other programs do not change.
-- Run by bench/host, which builds the shared objects and names them.

local ffi = require "ffi"
local cg = require "cgraphlua"

local here = arg[0]:match "^.*/" or ""
local measure = dofile(here .. "measure.lua")
local median, ratio, number = measure.median, measure.ratio, measure.number

ffi.cdef [[
void floor_saxpy(const float *x, float *y, int n);
void floor_reversed(const float *x, float *y, int n);
void floor_rowbias(const float *x, const float *bias, float *y, int n);
void floor_gray(const unsigned char *rgb, unsigned char *out, int n);
void floor_matmul(const float *A, const float *B, float *C, int n);
void floor_columns(const float *x, float *y, int n);
void floor_convolution(const float *x, const float *k, float *y, int n, int r);
void floor_bins(const unsigned char *in, unsigned *bins, int n);
void floor_stencil(const float *in, float *out, int n);
void floor_mandelbrot(int *out, int n, int limit);
void floor_spmv(const int *row, const int *column, const float *value, const float *x,
  float *y, int n);
void floor_bodies(const float *p, float *a, int n);
]]
local floor, functions = ffi.load(arg[1]), ffi.load(arg[2])

cg.set_device "host"

-- A source a kernel, as scripts have them: what is compiled beside a kernel may
-- choose the compiler's options for it.
local sources, current = {}, nil
for line in io.lines(here .. "plain.cu") do
  local starts = line:match "^//@ (%S+)$"
  current = starts or current
  if current and not starts then sources[current] = (sources[current] or "") .. line .. "\n" end
end

local CLOCK_PROCESS_CPUTIME_ID = 2
local time = ffi.new "struct bench_time"

local function now()
  ffi.C.bench_clock(CLOCK_PROCESS_CPUTIME_ID, time)
  return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) * 1e-3
end

local function pointer(buffer, type)
  return ffi.cast((type or "float") .. " *", buffer:address())
end

local function values(n, type)
  local list = ffi.new((type == "uint8" and "unsigned char" or type == "int32" and "int" or type or
    "float") .. "[?]", n)
  for i = 0, n - 1 do
    list[i] = type == "uint8" and i * 2654435761 % 4294967296 / 65536 % 256 or (i * 7 % 101) / 101
  end
  return cg.from(list, type or "float")
end

local missed = 0

--- `arguments` are the kernel's, `plain` calls the loop.
local function compare(name, bar, kernel, grid, block, arguments, plain)
  -- Rounds of some milliseconds: what waking a thread takes is in them once.
  plain()
  local times = math.max(1, math.min(200, math.floor(4000 / measure.time(plain))))
  local function timed(fn, last)
    return function()
      local start = now()
      for _ = 1, times do fn() end
      last()
      return (now() - start) / times
    end
  end
  local graph = cg.capture(function() kernel:launch(grid, block, unpack(arguments)) end)
  local ours, c = measure.rounds(0.5, {
    timed(function() graph:replay() end, cg.synchronize),
    timed(plain, function() end),
  }, 15)
  local speed = ratio(c, ours)
  local met = speed >= bar
  missed = missed + (met and 0 or 1)
  print(string.format("  %-12s %-7s %9s us  C %9s us  speed %5.2f  bar >= %.2f: %s", name,
    kernel:form(), number(median(ours)), number(median(c)), speed, bar, met and "met" or "MISSED"))
end

print(string.format("bench/host, without barriers: %s, one thread, load %s at the start",
  cg.device().name, measure.load()))

cg.stream():use(function()
  local n = 2 ^ 18
  local x, y = values(n), values(n)
  local px, py = pointer(x), pointer(y)
  local function line(name, bar, grid, block, arguments, plain)
    compare(name, bar, cg.kernel(sources[name]), grid, block, arguments, plain)
  end
  local function saxpy() floor.floor_saxpy(px, py, n) end
  line("saxpy", 0.8, n / 256, 256, { x, y, n }, saxpy)
  line("gridstride", 0.8, 64, 256, { x, y, n }, saxpy)
  line("while", 0.8, 64, 256, { x, y, n }, saxpy)
  line("size_t", 0.8, n / 256, 256, { x, y, n }, saxpy)
  line("constblock", 0.8, n / 256, 256, { x, y, n }, saxpy)
  line("reversed", 0.8, n / 256, 256, { x, y, n }, function() floor.floor_reversed(px, py, n) end)
  line("rowbias", 0.5, 512, 256, { x, x, y, 512 },
    function() floor.floor_rowbias(px, px, py, 512) end)
  local rgb, out = values(3 * n, "uint8"), values(n, "uint8")
  local prgb, pout = pointer(rgb, "unsigned char"), pointer(out, "unsigned char")
  line("gray", 0.8, { 512 / 32, 512 / 8 }, { 32, 8 }, { rgb, out, 512 },
    function() floor.floor_gray(prgb, pout, 512) end)
  local z = values(n)
  local pz = pointer(z)
  line("matmul", 0.1, { 384 / 16, 384 / 16 }, { 16, 16 }, { x, y, z, 384 },
    function() floor.floor_matmul(px, py, pz, 384) end)
  line("products", 0.1, { 384 / 16, 384 / 16 }, { 16, 16 }, { x, y, z, 384 },
    function() floor.floor_matmul(px, py, pz, 384) end)
  line("columns", 0.5, 512 / 64, 64, { x, y, 512 }, function() floor.floor_columns(px, py, 512) end)
  line("convolution", 0.5, { 512 / 16, 512 / 16 }, { 16, 16 }, { x, z, y, 512, 2 },
    function() floor.floor_convolution(px, pz, py, 512, 2) end)
  local bins = cg.zeros("uint32", 256)
  local pbins = pointer(bins, "unsigned")
  line("bins", 0.8, 3 * n / 256, 256, { rgb, bins, 3 * n },
    function() floor.floor_bins(prgb, pbins, 3 * n) end)
  line("stencil", 0.8, { 2, 16, 16 }, { 32, 4, 4 }, { x, y, 64 },
    function() floor.floor_stencil(px, py, 64) end)
  line("stride3", 0.5, { 2, 4, 4 }, { 8, 4, 4 }, { x, y, 64 }, saxpy)
  local set = cg.zeros("int32", 128 * 128)
  local pset = pointer(set, "int")
  line("mandelbrot", 2, { 8, 16 }, { 16, 8 }, { set, 128, 200 },
    function() floor.floor_mandelbrot(pset, 128, 200) end)
  local rows, columns = ffi.new("int[4097]"), ffi.new("int[?]", 4096 * 8)
  for i = 0, 4096 do rows[i] = 8 * i end
  for i = 0, 4096 * 8 - 1 do columns[i] = i * 37 % 4096 end
  local row, column = cg.from(rows, "int32"), cg.from(columns, "int32")
  local prow, pcolumn = pointer(row, "int"), pointer(column, "int")
  line("spmv", 0.8, 16, 256, { row, column, x, z, y, 4096 },
    function() floor.floor_spmv(prow, pcolumn, px, pz, py, 4096) end)
  line("bodies", 0.8, 2048 / 128, 128, { x, y, 2048 },
    function() floor.floor_bodies(px, py, 2048) end)

  print "  elementary functions, C with -ffast-math"
  local m = 16384
  for _, f in ipairs { { "expf", 0.8 }, { "logf", 0.8 }, { "erff", 0.8 }, { "tanhf", 0.5 },
    { "sinf", 0.2 }, { "tanf", 0.3 }, { "asinf", 0.5 }, { "atan2f", 0.5 }, { "sinhf", 0.5 },
    { "erfcf", 0.5 }, { "cbrtf", 0.5 }, { "hypotf", 0.4 }, { "powf", 0.4 }, { "exp", 0.8 },
    { "log", 0.8 }, { "erf", 0.8 }, { "sin", 0.4 }, { "atan2", 0.5 }, { "tanh", 0.5 },
    { "cbrt", 0.5 }, { "pow", 0.5 } } do
    local T = f[1]:match "f$" and f[1] ~= "erf" and "float" or "double"
    ffi.cdef(("void floor_%s(const %s *x, %s *y, int n);"):format(f[1], T, T))
    local list = ffi.new(T .. "[?]", m)
    for i = 0, m - 1 do list[i] = (i * 7 % 101 + 1) / 101 end
    local from, to = cg.from(list, T), cg.zeros(T, m)
    local two = f[1]:match "^pow" or f[1]:match "2" or f[1]:match "^hypot"
    local call = f[1] .. (two and ("(x[i], (%s)2.2)"):format(T) or "(x[i])")
    local text = [[
extern "C" __global__ void function(const T *x, T *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = CALL;
}]]
    local loop, a, b = functions["floor_" .. f[1]], pointer(from, T), pointer(to, T)
    compare(f[1], f[2], cg.kernel((text:gsub("CALL", call):gsub("T ", T .. " "))), m / 256, 256,
      { from, to, m }, function() loop(a, b, m) end)
  end
end)
print("\n" .. measure.verdict(missed))
os.exit(missed == 0 and 0 or 1, true)
