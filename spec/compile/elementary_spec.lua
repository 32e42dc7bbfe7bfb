-- Elementary functions of kernels on the host device: how far they are from
-- the exact value, and that a thread's result does not depend on where it runs.
local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("the elementary functions of a kernel", function()
    pending "are the host device's"
  end)
end

ffi.cdef [[
float expf(float); float logf(float); float erff(float); float sinf(float);
float powf(float, float);
]]

--- name, the same in double, the error allowed in units of the last place.
local functions = {
  { "expf(x)", "exp((double)x)", 1 }, { "exp2f(x)", "exp2((double)x)", 1 },
  { "exp10f(x)", "exp10((double)x)", 1.3 }, { "logf(x)", "log((double)x)", 1 },
  { "log2f(x)", "log2((double)x)", 1.4 }, { "log10f(x)", "log10((double)x)", 1 },
  { "tanhf(x)", "tanh((double)x)", 2.6 }, { "erff(x)", "erf((double)x)", 1.3 },
  { "sinf(x)", "sin((double)x)", 1.9 }, { "cosf(x)", "cos((double)x)", 1.9 },
  { "powf(x, 2.2f)", "pow((double)x, (double)2.2f)", 0.6 },
  { "powf(x, -7.f)", "pow((double)x, -7.)", 0.6 }, { "powf(x, .5f)", "pow((double)x, .5)", 0.6 },
  { "powf(1.7f, x)", "pow((double)1.7f, (double)x)", 0.6 },
}

describe("the elementary functions of a kernel", function()
  teardown(device.nothing_alive)

  it("are as exact as the manual says, for all floats", function()
    local text = {}
    for i, f in ipairs(functions) do
      text[i] = ([[
extern "C" __global__ void k%d(float *error, float *where, unsigned first) {
  float most = 0.f, at = 0.f;
  for (unsigned j = 0; j < 512; j++) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    float x = __uint_as_float(thread * 4294967u + j * 8311u + first);
    float got = %s;
    double wanted = %s;
    float rounded = (float)wanted, up = nextafterf(fabsf(rounded), INFINITY);
    float e;
    if (isnan(got) || isnan(rounded)) e = isnan(got) && isnan(rounded) ? 0.f : 1e30f;
    else if (isinf(got) || isinf(rounded) || isinf(up)) e = got == rounded ? 0.f : 1e30f;
    else e = (float)(fabs(got - wanted) / ((double)up - fabs((double)rounded)));
    if (e > most) most = e, at = x;
  }
  error[blockIdx.x * blockDim.x + threadIdx.x] = most;
  where[blockIdx.x * blockDim.x + threadIdx.x] = at;
}]]):format(i, f[1], f[2])
    end
    -- The reference is the system's.
    local exact = "#define exp cgl_libm_exp\n#define log cgl_libm_log\n" ..
      'extern "C" double cgl_libm_exp(double) __asm__("exp");\n' ..
      'extern "C" double cgl_libm_log(double) __asm__("log");\n'
    local module = cg.module(exact .. table.concat(text, "\n"))
    local error_of, where = cg.zeros("float", 1000), cg.zeros("float", 1000)
    for i, f in ipairs(functions) do
      module:kernel("k" .. i):launch(10, 100, error_of, where, 12345)
      local errors, at = error_of:download(), where:download()
      for k = 1, 1000 do
        if errors[k] > f[3] then
          error(("%s is %g units from the exact value at %a"):format(f[1], errors[k], at[k]), 0)
        end
      end
    end
  end)

  it("have the same bits in every place of every grid", function()
    local k = cg.kernel [[
extern "C" __global__ void k(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = expf(x[i]) + logf(x[i]) * erff(x[i]) + tanhf(x[i]) + sinf(x[i]) + powf(x[i], 1.5f)
      + (float)(exp((double)x[i]) * log((double)x[i]));
}]]
    local n, values = 4099, ffi.new "float[4099]"
    for i = 0, n - 1 do values[i] = 0.01 + i % 7 * 1.37 end
    local x = cg.from(values, "float")
    local first
    for _, shape in ipairs { { 256, n }, { 37, n }, { 1, 71 }, { 1024, 1000 }, { 64, 63 },
      { 128, 4097 } } do
      local y = cg.zeros("float", n)
      k:launch(math.ceil(shape[2] / shape[1]), shape[1], x, y, shape[2])
      local got = y:download()
      first = first or { unpack(got, 1, 7) }
      for i = 1, shape[2] do
        if got[i] ~= first[(i - 1) % 7 + 1] then
          error(("element %d of %d, blocks of %d: %.9g, not %.9g"):format(i, shape[2], shape[1],
            got[i], first[(i - 1) % 7 + 1]), 0)
        end
      end
    end
  end)

  it("are libm's with --precise-math", function()
    local text = [[
extern "C" __global__ void k(const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[5 * i] = expf(x[i]); y[5 * i + 1] = logf(x[i]); y[5 * i + 2] = erff(x[i]);
  y[5 * i + 3] = sinf(x[i]); y[5 * i + 4] = powf(x[i], 2.2f);
}]]
    local values = ffi.new "float[500]"
    for i = 0, 499 do values[i] = 0.013 * (i + 1) end
    local x = cg.from(values, "float")
    local function run(options)
      local y = cg.zeros("float", 2500)
      cg.kernel(text, { options = options }):launch(5, 100, x, y)
      return y:download()
    end
    local precise, plain = run { "--precise-math" }, run {}
    local C, other = ffi.C, 0
    for i = 0, 499 do
      local v = values[i]
      local wanted = { C.expf(v), C.logf(v), C.erff(v), C.sinf(v), C.powf(v, 2.2) }
      for k = 1, 5 do
        assert.equal(wanted[k], precise[5 * i + k])
        other = other + (plain[5 * i + k] ~= wanted[k] and 1 or 0)
      end
    end
    -- The functions that are not libm's exist where a processor fuses.
    local file = io.open "/proc/cpuinfo"
    local fuses = file and (file:read "*a"):find " fma "
    if file then file:close() end
    if fuses then assert.is_true(other > 0) end
  end)
end)
