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

-- The errors allowed, in units of the last place: in float and in double, of one argument and
-- of two.
local bounds = {
  exp = { 1, 1 }, exp2 = { 1, 1 }, exp10 = { 1, 1 }, expm1 = { 1, 1 }, log = { 1, 1 },
  log2 = { 1.1, 1 }, log10 = { 1, 1 }, log1p = { 1, 1 }, cbrt = { 1, 1 }, sin = { 1.4, 1 },
  cos = { 1.4, 1 }, tan = { 3.2, 2.3 }, asin = { 1.4, 1.7 }, acos = { 1.2, 1.3 },
  atan = { 1.4, 1.7 }, sinh = { 1.6, 1.2 }, cosh = { 1.4, 1.2 }, tanh = { 2.6, 1.4 },
  asinh = { 1.4, 1.4 }, acosh = { 1.9, 1.9 }, atanh = { 1.9, 1.9 }, erf = { 1.3, 1.2 },
  erfc = { 2.5, 3 },
}
local bounds_of_two = { atan2 = { 1.6, 1.8 }, hypot = { 1, 1 }, pow = { 0.6, 1.1 } }

local measure = [[
template <class T> __device__ float error_of(T got, long double wanted) {
  T rounded = (T)wanted, up = nextafter(fabs(rounded), (T)INFINITY);
  if (isnan(got) || isnan(rounded)) return isnan(got) && isnan(rounded) ? 0.f : 1e30f;
  if (isinf(got) || isinf(rounded) || isinf(up)) return got == rounded ? 0.f : 1e30f;
  if (got == 0 && rounded == 0) return signbit(got) == signbit(rounded) ? 0.f : 1e30f;
  long double e = ((long double)got - wanted) / ((long double)up - fabs(rounded));
  return (float)(e < 0 ? -e : e);
}
__device__ unsigned long long mix(unsigned long long h) {
  h = (h ^ h >> 31) * 0x9e3779b97f4a7c15ull;
  h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9ull;
  return h ^ h >> 32;
}
__constant__ double places[] = { 0., -0., 1., -1., .5, -.5, 2., 3., -3., 1e-42, -1e-42, 1e-310,
  128., -150., 1024., -1075., 20.5, 1e300, 35184372088832., INFINITY, -INFINITY, NAN };
/* Any number, one of those whose exponent is small, or one of the places. */
__device__ void number(float &x, unsigned long long h) {
  unsigned bits = (unsigned)(h >> 32);
  if (h % 4) bits = (bits & 0x807fffffu) | (unsigned)(118 + (h >> 8) % 18) << 23;
  x = h % 64 == 7 ? (float)places[h / 64 % 22] : __uint_as_float(bits);
}
__device__ void number(double &x, unsigned long long h) {
  unsigned long long bits = mix(h);
  if (h % 4) bits = (bits & 0x800fffffffffffffull) | (1014 + (h >> 8) % 18) << 52;
  x = h % 64 == 7 ? places[h / 64 % 22] : __longlong_as_double(bits);
}
]]

local template = [[
extern "C" long double NAMEl(ARGUMENTS);
extern "C" __global__ void NAME_KIND(float *error, double *where, unsigned first) {
  float most = 0.f;
  double at = 0., at_other = 0.;
  for (unsigned j = 0; j < 512; j++) {
    unsigned long long h = (blockIdx.x * blockDim.x + threadIdx.x) * 512ull + j + first;
    KIND x, z;
    number(x, mix(h));
    number(z, mix(h + 0x100000000ull));
    float e = error_of(NAME(VALUES), NAMEl(VALUES));
    if (e > most) most = e, at = x, at_other = z;
  }
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  error[i] = most;
  where[2 * i] = at;
  where[2 * i + 1] = at_other;
}
]]

describe("the elementary functions of a kernel", function()
  teardown(device.nothing_alive)

  local function check(list, arguments, values)
    local names, text = {}, { measure }
    for name in pairs(list) do names[#names + 1] = name end
    table.sort(names)
    for _, name in ipairs(names) do
      for _, kind in ipairs { "float", "double" } do
        text[#text + 1] = template:gsub("%u%u%u%u+", { NAME = name, KIND = kind,
          ARGUMENTS = arguments, VALUES = values })
          :gsub("NAME_KIND", name .. "_" .. kind):gsub("NAMEl", name .. "l")
      end
    end
    local module = cg.module(table.concat(text, "\n"))
    local error_of, where = cg.zeros("float", 400), cg.zeros("double", 800)
    for _, name in ipairs(names) do
      for k, kind in ipairs { "float", "double" } do
        module:kernel(name .. "_" .. kind):launch(4, 100, error_of, where, 12345)
        local errors, at = error_of:download(), where:download()
        for i = 1, 400 do
          if errors[i] > list[name][k] then
            error(("%s of %s is %g units from the exact value at %a, %a"):format(name, kind,
              errors[i], at[2 * i - 1], at[2 * i]), 0)
          end
        end
      end
    end
  end

  it("are as exact as the manual says, for all numbers", function()
    check(bounds, "long double", "x")
  end)

  it("are so of two arguments", function()
    check(bounds_of_two, "long double, long double", "x, z")
  end)

  it("give what a GPU gives where they are delicate", function()
    local rows = { -- recorded from an H200
      { "sinpi(3.)", 0 }, { "sinpi(-150.)", -0. }, { "cospi(.5)", 0 }, { "cospif(-.5f)", 0 },
      { "sinpif(-5.723117920871866e+29f)", -0. }, { "cospif(20.5f)", 0 },
      { "cospif(-398.4999694824219f)", 9.58738019107841e-05 },
      { "normcdf(-36.2240550636149)", 1.2730511312688052e-287 },
      { "normcdf(97.01794374968385)", 1 },
      { "normcdff(-12.017008781433105f)", 1.4462696582051938e-33 }, { "normcdfinv(.5)", 0 },
      { "erfinv(3.180359829496248e-278)", 2.8185205135279175e-278 },
      { "erfcinv(-5.8051021755794323e-297)", 0 / 0 }, { "erfinv(1.)", math.huge },
      { "erfcinv(0.9991349202333565)", 0.0007666571320681196 },
      { "erfcx(9.003224012257993)", 0.062285679117318984 },
      { "erfcxf(-8.438027381896973f)", 1.6708214373331921e31 },
    }
    local lines = {}
    for i, row in ipairs(rows) do lines[i] = ("y[%d] = %s;"):format(i - 1, row[1]) end
    for _, options in ipairs { {}, { "--precise-math" } } do
      local y = cg.zeros("double", #rows)
      cg.kernel(('extern "C" __global__ void k(double *y) { %s }'):format(table.concat(lines, " ")),
        { options = options }):launch(1, 1, y)
      for i, got in ipairs(y:download()) do
        local wanted, near = rows[i][2], rows[i][1]:find "f%(" and 1e-6 or 2e-14
        local same = wanted ~= wanted and got ~= got
          or got == wanted and (got ~= 0 or 1 / got == 1 / wanted)
          or math.abs(got / wanted - 1) < near
        assert.is_true(same, ("%s is %.17g, not %.17g"):format(rows[i][1], got, wanted))
      end
    end
  end)

  it("take numbers of several types, and results by address", function()
    local y = cg.zeros("double", 14)
    cg.kernel [[
#include <cuComplex.h>
extern "C" __global__ void k(double *y) {
  float f = .5f, s, c;
  double d = .25;
  int i = 3;
  y[0] = hypot(i, 4); y[1] = fmod(7, i); y[2] = pow(2, i); y[3] = fmax(f, d); y[4] = fmin(i, d);
  y[5] = copysign(i, -1.f); y[6] = fdim(f, d); y[7] = cuCabsf(make_cuFloatComplex(3, 4));
  sincospi(f, &s, &c); y[8] = s; y[9] = c; y[10] = pow(f, 2); y[11] = remainder(f, i);
  sincos(f, &s, &c); y[12] = s == sinf(f) && c == cosf(f);
  y[13] = sizeof atan2(f, d) + sizeof exp(f);
}]]:launch(1, 1, y)
    assert.same({ 5, 1, 8, 0.5, 0.25, -3, 0.25, 5, 1, 0, 0.25, 0.5, 1, 12 }, y:download())
  end)

  it("have the same bits in every place of every grid", function()
    local k = cg.kernel [[
template <class T> __device__ T all_of(T x, T z) {
  T a = exp(x) + exp2(z) * exp10(z) - expm1(z) + log(x) * log2(x) + log10(x) * log1p(x);
  a += sin(x) * cos(x) + tan(z) + asin(z) * acos(z) + atan(x) - atan2(x, z) + cbrt(x) * hypot(x, z);
  a += sinh(x) - cosh(z) + tanh(z) * asinh(x) + acosh(1 + x) * atanh(z / 4) + pow(x, z);
  return a + erf(z) * erfc(x) + sin(x * (T)1e17);
}
extern "C" __global__ void k(const float *x, double *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = all_of(x[i], 0.0625f * x[i]) + all_of((double)x[i], 0.0625 * x[i]);
}]]
    local n, values = 4099, ffi.new "float[4099]"
    for i = 0, n - 1 do values[i] = 0.01 + i % 7 * 1.37 end
    local x = cg.from(values, "float")
    local first
    for _, shape in ipairs { { 256, n }, { 37, n }, { 1, 71 }, { 1024, 1000 }, { 64, 63 },
      { 128, 4097 } } do
      local y = cg.zeros("double", n)
      k:launch(math.ceil(shape[2] / shape[1]), shape[1], x, y, shape[2])
      local got = y:download()
      first = first or { unpack(got, 1, 7) }
      for i = 1, shape[2] do
        if got[i] ~= first[(i - 1) % 7 + 1] then
          error(("element %d of %d, blocks of %d: %.17g, not %.17g"):format(i, shape[2], shape[1],
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
