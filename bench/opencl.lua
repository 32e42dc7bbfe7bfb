-- bench/host: the host device's kernels beside the same ones under OpenCL on this
-- machine's cores, where POCL or another such device is installed.  The texts are
-- those of plain.cu and spec/compile/barriers.cu, in OpenCL's words; kernels with
-- warp operations are left out.  Speed is OpenCL's time by ours.
--   cgraphlua opencl.lua one    one thread each, by the process's processor time
--   cgraphlua opencl.lua all    all cores, by the clock on the wall

local ffi = require "ffi"
local cg = require "cgraphlua"

local here = arg[0]:match "^.*/" or ""
local measure = dofile(here .. "measure.lua")
local median, ratio, number = measure.median, measure.ratio, measure.number

ffi.cdef [[
int clGetPlatformIDs(unsigned, void **, unsigned *);
int clGetDeviceIDs(void *, uint64_t, unsigned, void **, unsigned *);
int clGetDeviceInfo(void *, unsigned, size_t, void *, size_t *);
void *clCreateContext(const intptr_t *, unsigned, void **, void *, void *, int *);
void *clCreateCommandQueue(void *, void *, uint64_t, int *);
void *clCreateProgramWithSource(void *, unsigned, const char **, const size_t *, int *);
int clBuildProgram(void *, unsigned, void **, const char *, void *, void *);
void *clCreateKernel(void *, const char *, int *);
void *clCreateBuffer(void *, uint64_t, size_t, void *, int *);
int clSetKernelArg(void *, unsigned, size_t, const void *);
int clEnqueueNDRangeKernel(void *, void *, unsigned, const size_t *, const size_t *,
  const size_t *, unsigned, void *, void *);
int clEnqueueReadBuffer(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *);
int clEnqueueWriteBuffer(void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *,
  void *);
int clFinish(void *);
]]
local CPU, USE_HOST_PTR, NAME = 2, 8, 0x102B
local one = arg[1] == "one"

--- The library and the first device that is a CPU, or nothing.
local function open()
  -- The name without a number comes with the headers alone.
  local loaded, cl = pcall(ffi.load, "OpenCL")
  if not loaded then loaded, cl = pcall(ffi.load, "libOpenCL.so.1") end
  local platforms, device, n = ffi.new "void *[8]", ffi.new "void *[1]", ffi.new "unsigned[1]"
  if not loaded or cl.clGetPlatformIDs(8, platforms, n) ~= 0 then return nil end
  for i = 0, math.min(n[0], 8) - 1 do
    if cl.clGetDeviceIDs(platforms[i], CPU, 1, device, nil) == 0 then return cl, device end
  end
end

local cl, device = open()
if not cl then
  print "bench/host, OpenCL: not measured, no OpenCL device for this machine's cores is installed"
  os.exit(0)
end

local function check(code) assert(code == 0, "OpenCL answers " .. code) end

local context = cl.clCreateContext(nil, 1, device, nil, nil, nil)
local queue = cl.clCreateCommandQueue(context, device[0], 0, nil)
cg.set_device "host"

--- A kernel's text in OpenCL's words.
local function translate(text)
  local dynamic = text:match "extern __shared__ float (%w+)%[%];"
  text = text:gsub("extern __shared__ float %w+%[%];", ""):gsub('extern "C" __global__', "__kernel")
  text = text:gsub("__kernel void [%w_]+(%b())", function(parameters)
    local global = parameters:gsub("([%(,]%s*)([%w ]+%*)", "%1__global %2")
    if dynamic then global = global:gsub("%)$", ", __local float *" .. dynamic .. ")") end
    return text:match "__kernel void [%w_]+" .. global
  end)
  text = text:gsub("const unsigned char %*p =", "__global %0"):gsub("__shared__", "__local")
  for cuda, call in pairs { threadIdx = "get_local_id", blockIdx = "get_group_id",
    blockDim = "get_local_size", gridDim = "get_num_groups" } do
    for axis, letter in pairs { [0] = "x", "y", "z" } do
      text = text:gsub(cuda .. "%." .. letter, "(int)" .. call .. "(" .. axis .. ")")
    end
  end
  for cuda, call in pairs { ["__syncthreads%(%)"] = "barrier(CLK_LOCAL_MEM_FENCE)",
    atomicAdd = "atomic_add", make_float4 = "(float4)", rsqrtf = "rsqrt",
    ["#pragma unroll\n"] = "", ["%f[%w]half%f[%W]"] = "other", ["(%l%l%l+)f%(x%["] = "%1(x[" } do
    text = text:gsub(cuda, call)
  end
  return text
end

local sources = {}
do
  local current
  for line in io.lines(here .. "plain.cu") do
    local starts = line:match "^//@ (%S+)$"
    current = starts or current
    if current and not starts then sources[current] = (sources[current] or "") .. line .. "\n" end
  end
  local file = assert(io.open(here .. "../spec/compile/barriers.cu"))
  for text, name in (file:read "*a"):gmatch '(extern "C" __global__ void (%w+).-\n}\n)' do
    sources["barriers " .. name] = text
  end
  file:close()
  for name, call in pairs { expf = "expf(x[i])", logf = "logf(x[i])", erff = "erff(x[i])",
    tanhf = "tanhf(x[i])", sinf = "sinf(x[i])", powf = "powf(x[i], 2.2f)", exp = "exp(x[i])",
    log = "log(x[i])" } do
    sources[name] = ([[
extern "C" __global__ void %s_of(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = %s;
}
]]):format(name, call):gsub("float", name:find "f$" and "float" or "double")
  end
end

local clock = measure.now
if one then
  local time, CLOCK_PROCESS_CPUTIME_ID = ffi.new "struct bench_time", 2
  function clock()
    ffi.C.bench_clock(CLOCK_PROCESS_CPUTIME_ID, time)
    return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) * 1e-3
  end
end

--- The kernel under OpenCL in the same memory, whose pages decide what a cache
-- holds of it: how it is launched.
local function prepare(name, grid, block, arguments)
  local text, entry = translate(sources[name]), sources[name]:match "__global__ void ([%w_]+)"
  local pointer = ffi.new("const char *[1]", { text })
  local program = cl.clCreateProgramWithSource(context, 1, pointer, nil, nil)
  assert(cl.clBuildProgram(program, 1, device, "-cl-mad-enable", nil, nil) == 0, text)
  local kernel, buffers = cl.clCreateKernel(program, entry, nil), {}
  for i, argument in ipairs(arguments) do
    if type(argument) == "number" then
      check(cl.clSetKernelArg(kernel, i - 1, 4, ffi.new("int[1]", argument)))
    else
      local bytes = argument.bytes
      local memory = cl.clCreateBuffer(context, USE_HOST_PTR, bytes, ffi.cast("void *",
        argument.buffer:address()), nil)
      buffers[i] = { memory, bytes }
      check(cl.clSetKernelArg(kernel, i - 1, 8, ffi.new("void *[1]", { memory })))
    end
  end
  if grid.shared then check(cl.clSetKernelArg(kernel, #arguments, grid.shared, nil)) end
  local global, of_block = ffi.new("size_t[3]", 1, 1, 1), ffi.new("size_t[3]", 1, 1, 1)
  for i = 1, 3 do
    of_block[i - 1] = block[i] or 1
    global[i - 1] = (grid[i] or 1) * (block[i] or 1)
  end
  return function()
    check(cl.clEnqueueNDRangeKernel(queue, kernel, 3, nil, global, of_block, 0, nil, nil))
  end, buffers
end

--- Both compute the same, but for a few elements that hang on a rounding; else
-- the translation is at fault.
local function hold(name, argument, memory, run, launch)
  local T = argument.type
  local n = argument.bytes / ffi.sizeof(T)
  local at = ffi.cast(T .. " *", argument.buffer:address())
  local function elements() return ffi.new(T .. "[?]", n) end
  local before, ours, theirs = elements(), elements(), elements()
  ffi.copy(before, at, argument.bytes)
  run()
  ffi.copy(ours, at, argument.bytes)
  check(cl.clEnqueueWriteBuffer(queue, memory[1], 1, 0, memory[2], before, 0, nil, nil))
  launch()
  check(cl.clEnqueueReadBuffer(queue, memory[1], 1, 0, memory[2], theirs, 0, nil, nil))
  local others = 0
  for i = 0, n - 1 do
    local a, b = tonumber(ours[i]), tonumber(theirs[i])
    others = others + (math.abs(a - b) <= 1e-3 * math.max(1, math.abs(a)) and 0 or 1)
  end
  assert(others <= n / 200, ("%s: %d of %d elements differ"):format(name, others, n))
end

local missed, ratios = 0, {}

--- `out` is the argument that it writes.
local function compare(name, grid, block, out, ...)
  local arguments, plain = { ... }, {}
  for i, a in ipairs(arguments) do plain[i] = type(a) == "table" and a.buffer or a end
  local launch, buffers = prepare(name, grid, block, arguments)
  local kernel = cg.module(sources[name]):kernel()
  local graph = cg.capture(function() kernel:launch(grid, block, unpack(plain)) end)
  hold(name, arguments[out], buffers[out], function()
    graph:replay()
    cg.synchronize()
  end, launch)
  local function timed(issue, wait, times)
    return function()
      local start = clock()
      for _ = 1, times do issue() end
      wait()
      return (clock() - start) / times
    end
  end
  local function issue() graph:replay() end
  local took = timed(issue, cg.synchronize, 5)()
  local times = math.max(1, math.min(200, math.floor(4000 / took)))
  local ours, theirs = measure.rounds(0.4, { timed(issue, cg.synchronize, times),
    timed(launch, function() check(cl.clFinish(queue)) end, times) }, 9)
  local speed = ratio(theirs, ours)
  missed = missed + (speed >= 1 and 0 or 1)
  ratios[#ratios + 1] = speed
  print(("  %-20s %-7s %9s us  OpenCL %9s us  speed %6.2f  bar >= 1.00: %s"):format(name,
    kernel:form(), number(median(ours)), number(median(theirs)), speed,
    speed >= 1 and "met" or "MISSED"))
end

local C = { float = "float", double = "double", uint8 = "unsigned char", int32 = "int",
  uint32 = "unsigned" }

local function values(n, type, at)
  type = type or "float"
  local list = ffi.new(C[type] .. "[?]", n)
  for i = 0, n - 1 do
    list[i] = at and at(i) or type == "uint8" and i * 2654435761 % 4294967296 / 65536 % 256
      or (i * 7 % 101 + 1) / 101
  end
  return { buffer = cg.from(list, type), bytes = ffi.sizeof(list), type = C[type] }
end

local function zeros(n, type)
  return values(n, type, function() return 0 end)
end

local text = ffi.new "char[256]"
cl.clGetDeviceInfo(device[0], NAME, 255, text, nil)
print(("bench/host, OpenCL: %s beside %s, %s, load %s at the start"):format(cg.device().name,
  ffi.string(text), one and "one thread each" or "all cores", measure.load()))

cg.stream():use(function()
  local n = 2 ^ 18
  local x, y = values(n), function() return values(n) end
  -- Half of a second cache of 2 MB: of all of it the pages decide how much is at hand.
  local m = n / 2
  compare("saxpy", { m / 256 }, { 256 }, 2, x, y(), m)
  compare("gridstride", { 64 }, { 256 }, 2, x, y(), m)
  compare("constblock", { m / 256 }, { 256 }, 2, x, y(), m)
  compare("reversed", { m / 256 }, { 256 }, 2, x, y(), m)
  compare("rowbias", { 512 }, { 256 }, 3, x, x, y(), 512)
  compare("gray", { 512 / 32, 512 / 8 }, { 32, 8 }, 2, values(3 * n, "uint8"),
    zeros(n, "uint8"), 512)
  compare("matmul", { 24, 24 }, { 16, 16 }, 3, x, x, y(), 384)
  compare("columns", { 8 }, { 64 }, 2, x, y(), 512)
  compare("convolution", { 32, 32 }, { 16, 16 }, 3, x, x, y(), 512, 2)
  compare("bins", { 3 * n / 256 }, { 256 }, 2, values(3 * n, "uint8"), zeros(256, "uint32"), 3 * n)
  compare("stencil", { 2, 16, 16 }, { 32, 4, 4 }, 2, x, y(), 64)
  compare("stride3", { 2, 4, 4 }, { 8, 4, 4 }, 2, x, y(), 64)
  compare("mandelbrot", { 8, 16 }, { 16, 8 }, 1, zeros(128 * 128, "int32"), 128, 200)
  compare("spmv", { 16 }, { 256 }, 5, values(4097, "int32", function(i) return 8 * i end),
    values(4096 * 8, "int32", function(i) return i * 37 % 4096 end), x, x, y(), 4096)
  compare("bodies", { 16 }, { 128 }, 2, x, y(), 2048)
  compare("barriers matmul16", { 24, 24 }, { 16, 16 }, 3, x, x, y(), 384)
  compare("barriers matmul32", { 12, 12 }, { 32, 32 }, 3, x, x, y(), 384)
  compare("barriers tree", { n / 256, shared = 1024 }, { 256 }, 2, x, zeros(n / 256), n)
  compare("barriers doubling", { n / 512 }, { 512 }, 2, x, y(), n)
  compare("barriers updown", { n / 512 }, { 256 }, 2, x, y(), n)
  compare("barriers histogram", { 16 }, { 256 }, 2, values(4 * n, "uint8"), zeros(256, "uint32"),
    4 * n)
  compare("barriers transpose", { 16, 16 }, { 32, 8 }, 2, x, y(), 512)
  compare("barriers bodies", { 8 }, { 256 }, 2, x, y(), 2048)
  for _, name in ipairs { "expf", "logf", "erff", "tanhf", "sinf", "powf", "exp", "log" } do
    local T = name:find "f$" and "float" or "double"
    compare(name, { 64 }, { 256 }, 2, values(16384, T), zeros(16384, T), 16384)
  end
end)
print(("  the median of the ratios: %.2f"):format(median(ratios)))
print("\n" .. measure.verdict(missed))
os.exit(missed == 0 and 0 or 1, true)
