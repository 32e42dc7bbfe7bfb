-- bench/host: kernels with barriers on the host device, as loops and as fibers,
-- beside the same work in plain C (barriers_floor.c), on one thread each.  The
-- clock is the process's processor time, which other programs do not change.
-- Run by bench/host, which builds the shared object and names it.

local ffi = require "ffi"
local cg = require "cgraphlua"

local here = arg[0]:match "^.*/" or ""
local measure = dofile(here .. "measure.lua")
local median, ratio, number = measure.median, measure.ratio, measure.number

ffi.cdef [[
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
void floor_matmul16(const float *A, const float *B, float *C, int n);
void floor_matmul32(const float *A, const float *B, float *C, int n);
void floor_tree(const float *in, float *out, int n);
void floor_shuffles(const float *in, float *out, int n);
void floor_gridwise(const float *in, float *out, int n);
void floor_doubling(const float *in, float *out, int n);
void floor_updown(const float *in, float *out, int n);
void floor_histogram(const unsigned char *in, unsigned *bins, int n);
void floor_transpose(const float *in, float *out, int n);
void floor_bodies(const float *p, float *a, int n);
void floor_softmax(const float *in, float *out, int columns, int rows);
void floor_rowbias(const float *in, float *out, const float *bias, int columns, int rows);
]]
local floor = ffi.load(arg[1])

cg.set_device "host"

local forms, compiled = {}, {}
for _, form in ipairs { "loops", "fibers" } do
  ffi.C.setenv("CGRAPHLUA_HOST_KERNELS", form, 1)
  local start = measure.now()
  forms[form] = cg.module { file = here .. "../spec/compile/barriers.cu" }
  compiled[form] = measure.now() - start
end

ffi.C.unsetenv "CGRAPHLUA_HOST_KERNELS"

-- Without a barrier, and in a source of its own: what is compiled beside such a
-- kernel is compiled as that one wants it.
local bias = cg.kernel [==[
extern "C" __global__ void rowbias(const float *in, float *out, const float *bias, int columns)
{
  int row = blockIdx.x;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    float v = in[row * columns + c] + bias[c];
    out[row * columns + c] = v > 0.f ? v : 0.01f * v;
  }
}
]==]

local CLOCK_PROCESS_CPUTIME_ID = 2
local time = ffi.new "struct bench_time"

local function now()
  ffi.C.bench_clock(CLOCK_PROCESS_CPUTIME_ID, time)
  return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) * 1e-3
end

local function floats(n)
  local values = ffi.new("float[?]", n)
  for i = 0, n - 1 do values[i] = (i * 7 % 101) / 101 end
  return cg.from(values, "float")
end

local function pointer(buffer, type)
  return ffi.cast((type or "float") .. " *", buffer:address())
end

local missed = 0

-- What fn takes, by the process's processor time; `times` of them in a row, which
-- `last` ends: a round of some milliseconds has in it once what waking a thread
-- takes.
local function timed(times, fn, last)
  return function()
    local start = now()
    for _ = 1, times do fn() end
    if last then last() end
    return (now() - start) / times
  end
end

-- `arguments` are the kernel's, `plain` calls the loop.
local function compare(name, bar, grid, block, arguments, plain)
  local function kernel_of(form)
    return name == "rowbias" and bias or forms[form]:kernel(name)
  end
  plain()
  local times = math.max(1, math.min(200, math.floor(4000 / measure.time(plain))))
  local function run(form, n)
    local kernel = kernel_of(form)
    local graph = cg.capture(function() kernel:launch(grid, block, unpack(arguments)) end)
    return timed(n, function() graph:replay() end, cg.synchronize)
  end
  local loops, c = measure.rounds(0.5, { run("loops", times), timed(times, plain) }, 15)
  local fibers, again = measure.rounds(0.3, { run("fibers", 1), timed(times, plain) }, 3)
  local speed = ratio(c, loops)
  local met = speed >= bar
  missed = missed + (met and 0 or 1)
  print(string.format("  %-10s %-7s %9s us  C %9s us  speed %5.2f  fibers %6.4f  bar >= %.2f: %s",
    name, kernel_of("loops"):form(), number(median(loops)), number(median(c)), speed,
    ratio(again, fibers), bar, met and "met" or "MISSED"))
end

-- What a thread costs as a fiber: one barrier against none, and each one more.
-- The kernels do next to nothing else.
local turns = [==[
#define TURNS(name, body)                               \
  extern "C" __global__ void name(float *x, int n)      \
  {                                                     \
    int i = blockIdx.x * blockDim.x + threadIdx.x;      \
    float v = x[i];                                     \
    for (int k = 0; k < n; k++) { v += 1.f; body; }     \
    x[i] = v;                                           \
  }
TURNS(barriers, __syncthreads())
TURNS(exchanges, v = __shfl_xor_sync(~0u, v, 1))
]==]

local function fibers()
  ffi.C.setenv("CGRAPHLUA_HOST_KERNELS", "fibers", 1)
  local module = cg.module(turns)
  ffi.C.unsetenv "CGRAPHLUA_HOST_KERNELS"
  local n = 2 ^ 17
  local x = cg.zeros("float", n)
  local function line(what, kernel, threads, enter_bar, switch_bar)
    local function run(count)
      return function()
        return timed(1, function() kernel:launch(n / threads, threads, x, count) end,
          cg.synchronize)() * 1e3 / n
      end
    end
    local none, one, nine = measure.rounds(0.3, { run(0), run(1), run(9) }, 15)
    local each = (median(nine) - median(one)) / 8
    local enter = median(one) - median(none) - each
    local met = (not enter_bar or enter <= enter_bar) and (not switch_bar or each <= switch_bar)
    missed = missed + (met and 0 or 1)
    print(string.format("  %-9s blocks of %4d  entering %5s ns, each %5s ns per thread%s", what,
      threads, number(enter), number(each),
      enter_bar and string.format("  bars %d and %d: %s", enter_bar, switch_bar,
        met and "met" or "MISSED") or ""))
  end
  print "  fibers: entering is what one barrier costs beyond each further one"
  for _, threads in ipairs { 64, 256, 1024 } do
    line("barriers", module:kernel "barriers", threads, 20, 4)
    line("exchanges", module:kernel "exchanges", threads)
  end
end

print(string.format("bench/host, barriers: %s, one thread, load %s at the start",
  cg.device().name, measure.load()))
print(string.format("  compiling all kernels as loops took %.1f s, as fibers %.1f s",
  compiled.loops / 1e6, compiled.fibers / 1e6))

cg.stream():use(function()
  local n = 384
  local A, B, C = floats(n * n), floats(n * n), floats(n * n)
  local a, b, c = pointer(A), pointer(B), pointer(C)
  compare("matmul16", 0.5, { n / 16, n / 16 }, { 16, 16 }, { A, B, C, n },
    function() floor.floor_matmul16(a, b, c, n) end)
  compare("matmul32", 0.5, { n / 32, n / 32 }, { 32, 32 }, { A, B, C, n },
    function() floor.floor_matmul32(a, b, c, n) end)
  local m = 2 ^ 18
  local x, y = floats(m), floats(m)
  local px, py = pointer(x), pointer(y)
  compare("tree", 0.3, { m / 256, shared = 1024 }, 256, { x, y, m },
    function() floor.floor_tree(px, py, m) end)
  compare("shuffles", 0.3, m / 256, 256, { x, y, m },
    function() floor.floor_shuffles(px, py, m) end)
  compare("gridwise", 0.5, 8, 256, { x, y, m }, function() floor.floor_gridwise(px, py, m) end)
  compare("doubling", 0.3, m / 512, 512, { x, y, m },
    function() floor.floor_doubling(px, py, m) end)
  compare("updown", 0.3, m / 512, 256, { x, y, m }, function() floor.floor_updown(px, py, m) end)
  local bytes = ffi.new("unsigned char[?]", 4 * m)
  for i = 0, 4 * m - 1 do bytes[i] = i * 2654435761 % 4294967296 / 65536 % 256 end
  local text, bins = cg.from(bytes, "uint8"), cg.zeros("uint32", 256)
  local ptext, pbins = pointer(text, "unsigned char"), pointer(bins, "unsigned")
  compare("histogram", 0.5, 16, 256, { text, bins, 4 * m },
    function() floor.floor_histogram(ptext, pbins, 4 * m) end)
  compare("transpose", 0.3, { 512 / 32, 512 / 32 }, { 32, 8 }, { x, y, 512 },
    function() floor.floor_transpose(px, py, 512) end)
  compare("bodies", 0.5, 2048 / 256, 256, { floats(2048 * 4), y, 2048 },
    function() floor.floor_bodies(px, py, 2048) end)
  compare("softmax", 0.5, 256, 256, { x, y, 1024 },
    function() floor.floor_softmax(px, py, 1024, 256) end)
  compare("rowbias", 0.5, 256, 256, { x, y, floats(1024), 1024 },
    function() floor.floor_rowbias(px, py, px, 1024, 256) end)
  fibers()
end)
print("\n" .. measure.verdict(missed))
os.exit(missed == 0 and 0 or 1, true)
