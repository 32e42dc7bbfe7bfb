-- What transforms cost beside the library's own functions, called by the FFI on
-- the same memory: FFTW with as many threads on the host device, cuFFT on a GPU.
--   cgraphlua bench/fft.lua [--device D] [--quick] [--processor]

local cg = require "cgraphlua"
local fft = require "cgraphlua.fft"
local ffi = require "ffi"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")
local now, median, ratio, rounds = measure.now, measure.median, measure.ratio, measure.rounds

ffi.cdef [[
int fftwf_init_threads(void);
void fftwf_plan_with_nthreads(int n);
void *fftwf_plan_many_dft(int rank, const int *n, int howmany, void *in, const int *inembed,
  int istride, int idist, void *out, const int *onembed, int ostride, int odist, int sign,
  unsigned flags);
void *fftwf_plan_many_dft_r2c(int rank, const int *n, int howmany, void *in, const int *inembed,
  int istride, int idist, void *out, const int *onembed, int ostride, int odist, unsigned flags);
void fftwf_execute(void *plan);
int cufftPlanMany(int *plan, int rank, int *n, int *inembed, int istride, int idist, int *onembed,
  int ostride, int odist, int type, int batch);
int cufftSetStream(int plan, void *stream);
int cufftExecC2C(int plan, void *in, void *out, int direction);
int cufftExecR2C(int plan, void *in, void *out);
]]

local read = measure.arguments(1)
local quick, on_gpu = read.quick, read.on_gpu

local function pointer(buffer)
  return ffi.cast("void *", ffi.cast("uintptr_t", buffer:address()))
end

-- A function that transforms x into y by the library alone.
local floor
if on_gpu then
  local found, lib = pcall(ffi.load, "libcufft.so.12")
  if not found then lib = ffi.load "libcufft.so.11" end
  function floor(x, y, n, batch, real)
    local plan = ffi.new "int[1]"
    local type = real and 0x2a or 0x29
    assert(lib.cufftPlanMany(plan, #n, ffi.new("int[3]", n), nil, 1, 0, nil, 1, 0, type,
      batch) == 0)
    assert(lib.cufftSetStream(plan[0], cg.current_stream():handle()) == 0)
    local from, to, handle = pointer(x), pointer(y), plan[0]
    if real then return function() lib.cufftExecR2C(handle, from, to) end end
    return function() lib.cufftExecC2C(handle, from, to, -1) end
  end
else
  local threads, lib = ffi.load "libfftw3f_threads.so.3", ffi.load "libfftw3f.so.3"
  threads.fftwf_init_threads()
  function floor(x, y, n, batch, real)
    local size = 1
    for _, k in ipairs(n) do size = size * k end
    local half = real and size / n[#n] * (math.floor(n[#n] / 2) + 1) or size
    threads.fftwf_plan_with_nthreads(size * batch < 2 ^ 15 and 1 or cg.device().multiprocessors)
    local from, to, extents = pointer(x), pointer(y), ffi.new("int[3]", n)
    local plan = real
      and lib.fftwf_plan_many_dft_r2c(#n, extents, batch, from, nil, 1, size, to, nil, 1, half, 64)
      or lib.fftwf_plan_many_dft(#n, extents, batch, from, nil, 1, size, to, nil, 1, size, -1, 64)
    return function() lib.fftwf_execute(plan) end
  end
end

-- Microseconds of a call, of `times` that are waited for together.
local function timed(fn, times)
  return function()
    cg.synchronize()
    local start = now()
    fn(times)
    cg.synchronize()
    return (now() - start) / times
  end
end

local function repeated(fn)
  return function(times) for _ = 1, times do fn() end end
end

print(("%s, %s, %s, load %s"):format(cg.device().device, cg.device().name, fft.describe(),
  measure.load()))
print(("%-18s %12s %12s %12s %14s %14s"):format("us of one, float", "library", "called",
  "replayed", "library/called", "/replayed"))

local big = on_gpu and 16 or 1
local cases = {
  { "1-D, 2^20", { 2 ^ 20 }, big },
  { "1-D, 1024", { 1024 }, 1024 * big },
  { "2-D, 1024^2", { 1024, 1024 }, big },
  { "3-D, 128^3", { 128, 128, 128 }, big },
  { "real 1-D, 2^20", { 2 ^ 20 }, big, true },
  { "real 2-D, 1024^2", { 1024, 1024 }, big, true },
}
for _, case in ipairs(cases) do
  local name, n, batch, real = unpack(case, 1, 4)
  local shape = { batch, unpack(n) }
  local x = cg.zeros(real and "float" or "complex64", shape)
  if real then x:uniform() end
  local f = real and fft.rfft or fft.fft
  local y = f(x, { dims = #n })
  local opts = { dims = #n, out = y }
  local g = cg.capture(function() f(x, opts) end)
  local times = on_gpu and 20 or 4
  local library, called, replayed = rounds(quick and 0.1 or 2, {
    timed(repeated(floor(x, y, n, batch, real)), times),
    timed(repeated(function() f(x, opts) end), times),
    timed(function(k) g:replay(k) end, times),
  })
  print(("%-18s %12.1f %12.1f %12.1f %14.2f %14.2f"):format(name, median(library), median(called),
    median(replayed), ratio(library, called), ratio(library, replayed)))
end
