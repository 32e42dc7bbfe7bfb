-- Sums that no thread reads are gathered on the host device: what comes out is
-- what every addition for itself gives.
local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local module_as = dofile(here .. "/../support/forms.lua").module_as

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("a sum that no thread reads", function()
    pending "is gathered on the host device"
  end)
end

local source = [=[
#define PLACE int i = blockIdx.x * blockDim.x + threadIdx.x
// Where a number adds, and what: anywhere, few places far apart, or one place.
__device__ inline unsigned mix(unsigned x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  return x ^ x >> 15;
}
extern "C" __global__ void flat(int *to, unsigned *other, unsigned long long *wide,
    unsigned places, unsigned step, int n) {
  PLACE;
  if (i >= n) return;
  unsigned m = mix(i + 1);
  atomicAdd(&to[m % places * step], (int)(m >> 8) - (1 << 23));
  if (m % 3 == 0)
    atomicAdd(other + m / 3 % places * step, m);
  for (int k = 0; k < (int)(m % 4); k++)
    atomicAdd(&wide[(m + k) % places * step], 0x100000001ull * k + m);
}
extern "C" __global__ void blocks(int *to, unsigned *other, unsigned long long *wide,
    unsigned places, unsigned step, int n) {
  __shared__ unsigned all[2];
  PLACE;
  if (threadIdx.x < 2) all[threadIdx.x] = 0;
  __syncthreads();
  unsigned m = mix(i + 1);
  if (i < n) {
    atomicAdd(&all[m % 2], m % 100);
    atomicAdd(&to[m % places * step], (int)(m >> 8) - (1 << 23));
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    atomicAdd(&wide[threadIdx.x % places * step], all[threadIdx.x]);
    atomicAdd(other, all[threadIdx.x]);
  }
}
template <class T> __global__ void any(T *to, const T *v, int places, int n) {
  PLACE;
  if (i < n) atomicAdd(&to[i % places], v[i % 7]);
}
]=]

local function mix(x)
  local u = ffi.new("uint32_t[1]", x)
  u[0] = bit.bxor(u[0], bit.rshift(u[0], 16))
  u[0] = ffi.cast("uint64_t", u[0]) * 0x7feb352dULL
  u[0] = bit.bxor(u[0], bit.rshift(u[0], 15))
  return tonumber(u[0])
end

--- What `flat` and `blocks` add, one addition after the other.
local function model(kernel, shape, n)
  local length = shape.places * shape.step
  local to, other, wide = ffi.new("int32_t[?]", length), ffi.new("uint32_t[?]", length),
    ffi.new("uint64_t[?]", length)
  local function at(m) return m % shape.places * shape.step end
  local all = { [0] = 0, 0 }
  for i = 0, n - 1 do
    local m = mix(i + 1)
    to[at(m)] = to[at(m)] + (math.floor(m / 256) - 2 ^ 23)
    if kernel == "flat" then
      if m % 3 == 0 then other[at(math.floor(m / 3))] = other[at(math.floor(m / 3))] + m end
      for k = 0, m % 4 - 1 do
        wide[at((m + k) % 2 ^ 32)] = wide[at((m + k) % 2 ^ 32)] + 0x100000001ULL * k + m
      end
    else
      all[m % 2] = all[m % 2] + m % 100
    end
  end
  if kernel == "blocks" then
    for k = 0, 1 do
      wide[at(k)] = wide[at(k)] + all[k]
      other[0] = other[0] + all[k]
    end
  end
  return to, other, wide
end

describe("a sum that no thread reads", function()
  teardown(device.nothing_alive)

  local shapes = {
    { places = 1, step = 1 }, { places = 8, step = 512 }, { places = 256, step = 1 },
    { places = 600, step = 3 }, { places = 5000, step = 7 }, { places = 40, step = 2048 },
  }

  it("gives what its additions give, in every form of the kernel", function()
    for form in ("auto plain fibers"):gmatch "%a+" do
      local module = module_as(form ~= "auto" and form or nil, source)
      for _, name in ipairs { "flat", "blocks" } do
        for s, shape in ipairs(shapes) do
          for _, launch in ipairs { { 1, 1 }, { 3, 37 }, { 70, 96 } } do
            local n = launch[1] * launch[2] - launch[1]
            local length = shape.places * shape.step
            local to, other, wide = cg.zeros("int32", length), cg.zeros("uint32", length),
              cg.zeros("uint64", length)
            module:kernel(name):launch(launch[1], launch[2], to, other, wide, shape.places,
              shape.step, n)
            local wto, wother, wwide = model(name, shape, n)
            local gto, gother, gwide = to:download(), other:download(), wide:download()
            for i = 1, length do
              if gto[i] ~= wto[i - 1] or gother[i] ~= wother[i - 1] or
                gwide[i] ~= wwide[i - 1] then
                error(("%s as %s, shape %d, %d x %d: place %d"):format(name, form, s, launch[1],
                  launch[2], i), 0)
              end
            end
          end
        end
      end
    end
  end)

  it("is what it is for every type that atomicAdd takes", function()
    for type, word in pairs { int = "int32", ["unsigned"] = "uint32", float = "float",
      double = "double", ["unsigned long long"] = "uint64" } do
      local expression = "any<" .. type .. ">"
      local k = cg.module { source = source, expressions = { expression } }:kernel(expression)
      local v, to = cg.from({ 1, 2, 3, 4, 5, 6, 7 }, word), cg.zeros(word, 3)
      k:launch(7, 9, to, v, 3, 63)
      local got = to:download()
      for i = 1, 3 do assert.equal(84, tonumber(got[i])) end
    end
  end)

  it("of several parts is made part by part", function()
    local k = cg.kernel [[
      #include <stdint.h>
      #include <cuda_fp16.h>
      #include <cuda_bf16.h>
      extern "C" __global__ void k(float *o, float *work) {
        const int t = threadIdx.x;
        float2 *a = (float2 *)work;
        float4 *b = (float4 *)(work + 4);
        __half2 *h = (__half2 *)(work + 8);
        __nv_bfloat162 *n = (__nv_bfloat162 *)(work + 9);
        atomicAdd(a, make_float2(1, t));
        const float4 was = atomicAdd(b, make_float4(1, t, 2, 2 * t));
        atomicAdd(h, __floats2half2_rn(1, t % 4));
        atomicAdd(n, __floats2bfloat162_rn(1, 2));
        if (was.x == UINT64_C(0x1f00000000) >> 32) o[10] += was.z;
        __syncthreads();
        if (t == 0) {
          o[0] = a->x; o[1] = a->y; o[2] = b->x; o[3] = b->y; o[4] = b->z; o[5] = b->w;
          o[6] = __low2float(*h); o[7] = __high2float(*h);
          o[8] = __low2float(*n); o[9] = __high2float(*n);
        }
      }]]
    local o = cg.zeros("float", 11)
    k:launch(1, 64, o, cg.zeros("float", 10))
    assert.same({ 64, 2016, 64, 2016, 128, 4032, 64, 96, 64, 128, 62 }, o:download())
  end)

  it("is made anew by every replay, and beside others on other streams", function()
    local k = cg.module(source):kernel "flat"
    local shape, n = { places = 100, step = 1 }, 5000
    local to, other, wide = cg.zeros("int32", 100), cg.zeros("uint32", 100),
      cg.zeros("uint64", 100)
    local g = cg.capture(function()
      local a, b = cg.stream(), cg.stream()
      local start = cg.event()
      start:record()
      for _, s in ipairs { a, b } do
        s:wait(start)
        s:use(function() k:launch(50, 100, to, other, wide, 100, 1, n) end)
        cg.current_stream():wait(s)
      end
    end)
    g:replay(3)
    local wto, wother, wwide = model("flat", shape, n)
    local gto, gother, gwide = to:download(), other:download(), wide:download()
    for i = 1, 100 do
      assert.equal(bit.tobit(6 * wto[i - 1]), gto[i])
      assert.equal(6 * wother[i - 1] % 2 ^ 32, gother[i])
      assert.is_true(6ULL * wwide[i - 1] == gwide[i])
    end
  end)

  it("is forgotten with the kernel that an error ended", function()
    local status, out, err = device.child([==[
      local source = [=[
        extern "C" __global__ void fails(int *to, int *far, int n) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          atomicAdd(&to[i % 8], 1);
          if (i == n) atomicAdd(&far[1l << 40], 1);
        }
      ]=]
      local function fail()
        local k = cg.kernel(source)
        local to = cg.zeros("int32", 8)
        k:launch(4, 64, to, to, 256)
        print(unpack(to:download()))
        k:launch(4, 64, to, to, 100)
        local ok, e = pcall(cg.synchronize)
        print(ok, e.name, e.message:match "fails")
      end
      for _ = 1, 3 do
        fail()
        collectgarbage()
        cg.reset_device()
      end
    ]==], "CGRAPHLUA_DEVICE=host")
    assert.equal("", err)
    assert.equal((("32\t"):rep(7) .. "32\nfalse\tCUDA_ERROR_ILLEGAL_ADDRESS\tfails\n"):rep(3), out)
    assert.equal(0, status)
  end)
end)
