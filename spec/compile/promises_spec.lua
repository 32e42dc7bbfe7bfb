-- What the manual's "What the host device compiles" promises, word by word:
-- promises.cu names each word, here it is run.  The same holds on a GPU.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local raises = device.raises
local host = not (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda"

local module

local function run(name, grid, block, ...)
  module:kernel(name):launch(grid, block, ...)
end

--- A pair of rows, of which each number is close to its neighbour.
local function assert_close(wanted, got, within)
  assert.equal(#wanted, #got)
  for i = 1, #wanted do
    local a, b = wanted[i], got[i]
    if not (a ~= a and b ~= b) and a ~= b then
      assert.is_true(math.abs(a - b) <= within * math.max(1, math.abs(a)),
        ("number %d is %.17g, not %.17g"):format(i, b, a))
    end
  end
end

describe("what the manual promises of kernels:", function()
  setup(function()
    module = cg.module { file = here .. "/promises.cu", expressions = { "outer::language" } }
  end)
  teardown(function()
    module = nil
    device.nothing_alive()
  end)

  it("C++17, and C++20 when it is asked for", function()
    local o = cg.zeros("float", 5)
    run("outer::language", 1, 1, o)
    assert.same({ 22, 6.5, 46, 13, 6 }, o:download())
    local text = [[
      template <class T> concept small = sizeof(T) <= 4;
      __device__ consteval int answer() { return 42; }
      template <small T> __global__ void k(T *o) { *o = answer() + (__cplusplus > 201703L); }]]
    for _, option in ipairs { "-std=c++20", "--std=c++20" } do
      local x = cg.zeros("int32", 1)
      cg.kernel(text, "k<int>", { options = { option } }):launch(1, 1, x)
      assert.same({ 43 }, x:download())
    end
    raises("CGL_ERROR_COMPILE", function() cg.kernel(text, "k<int>") end)
  end)

  it("built-in variables, launch bounds, device and constant variables", function()
    local o = cg.zeros("int32", 64)
    module:global("table", "int32"):upload { 5, 60, 7, 8 }
    run("bounded", { 2, 1, 1 }, { 4, 4, 4 }, o)
    local want = {}
    for t = 0, 63 do want[t + 1] = 63 - t + 60 + 32 end
    assert.same(want, o:download())
    local written = module:global("written", "int32"):download()[1]
    assert.is_true(written == 4 or written == 5)
    raises("CUDA_ERROR_INVALID_VALUE", function() run("bounded", 1, 65, o) end)
  end)

  it("227 KiB of shared memory, and no more", function()
    local o, n = cg.zeros("int32", 1), 232448 / 4
    run("largest", { 1, shared = 232448 }, 1024, o, n)
    local sum = 0 -- each thread's sum is taken by itself
    for t = 0, 1023 do
      local own = 0
      for i = t, n - 1, 1024 do own = own + (n - 1 - i) end
      sum = sum + own % 1000003
    end
    assert.same({ sum }, o:download())
    raises("CUDA_ERROR_INVALID_VALUE",
      function() run("largest", { 1, shared = 232449 }, 1024, o, n) end)
  end)

  it("48 KiB of static shared memory, and no more", function()
    raises("CGL_ERROR_COMPILE", function()
      cg.kernel [=[extern "C" __global__ void k(int *p) {
        __shared__ int a[12289]; a[threadIdx.x] = p[0]; __syncthreads(); p[0] = a[p[1]]; }]=]
    end, "shared")
  end)

  it("barriers, shuffles, votes, matches and reductions", function()
    local o = cg.zeros("int64", 64 * 20)
    run("collectives", 1, 64, o)
    local got = o:download()
    for t = 0, 63 do
      local lane = t % 32
      local want = { 5, 1, 2, 31, math.max(lane - 1, 0), math.min(lane + 1, 31), 31 - lane,
        lane - lane % 8 + 3, 1, 0xaaaaaaaa, lane < 16 and 0xffff or 0xffff0000, 1, 3, 992, 13,
        37, 63 + 0xffffffff, 1, 4, lane % 16 < 2 and lane or lane - 2 }
      for i = 1, 20 do
        assert.equal(want[i], tonumber(got[t * 20 + i]), ("thread %d, row %d"):format(t, i - 1))
      end
    end
  end)

  it("atomics of every type and scope", function()
    local i, u, l = cg.zeros("int32", 9), cg.zeros("uint32", 11), cg.zeros("uint64", 8)
    local s, f, d = cg.zeros("int64", 2), cg.zeros("float", 2), cg.zeros("double", 1)
    local h = cg.zeros("uint16", 1)
    i:upload { 0, 0, 0, 0, 0, 7, 0, 0, 0 }
    u:upload { 0, 5, 0, 9, 0, 7, 0, 0, 0, 0, 0 }
    l:upload { 0, 0, 9, 0, 7, 0, 0, 0 }
    run("atomics", 1, 1, i, u, l, s, f, d, h)
    assert.same({ 3, -3, 9, -4, 4, 6, 6, 6, 3 }, i:download())
    assert.same({ 3, 2, 9, 4, 4, 6, 6, 6, 3, 1, 7 }, u:download())
    local longs = {}
    for k, v in ipairs(l:download()) do longs[k] = tonumber(v) end
    assert.same({ 3, 9, 4, 4, 6, 6, 6, 3 }, longs)
    longs = s:download()
    assert.same({ -4, 4 }, { tonumber(longs[1]), tonumber(longs[2]) })
    assert.same({ 1.5, 9 }, f:download())
    assert.same({ 1.5 }, d:download())
    assert.same({ 3 }, h:download())
  end)

  it("vector types, half and bfloat16", function()
    local o, h = cg.zeros("int32", 1), cg.zeros("float", 5)
    run("vectors", 1, 1, o, h)
    assert.same({ 12 * 6 + 7 * 4 }, o:download())
    assert_close({ 1.5 * 2 + 1.5 - 2 / 1.5, 4.5, 5, 1.5 + 4, 4.5 + 2 }, h:download(), 4e-3)
  end)

  it("mathematics, in float as in double", function()
    local count = cg.zeros("int32", 1)
    run("counts", 1, 1, count)
    local n = count:download()[1]
    local x, y = cg.zeros("float", 2), cg.zeros("double", 2)
    local a, b = cg.zeros("float", n), cg.zeros("double", n)
    for _, pair in ipairs { { 0.5, 2.25 }, { 0.125, -3.75 }, { 0.9375, 10.5 } } do
      x:upload(pair)
      y:upload(pair)
      run("of_float", 1, 1, a, x)
      run("of_double", 1, 1, b, y)
      assert_close(b:download(), a:download(), 1e-4)
    end
    -- Some numbers by themselves, so that no error is in both.
    y:upload { 0.5, 2.25 }
    run("of_double", 1, 1, b, y)
    local got = b:download()
    assert_close({ math.acos(0.5), math.asin(0.5), math.atan(0.5) },
      { got[1], got[2], got[3] }, 1e-15)
    assert_close({ 1.0634833707413236, 0.25789430539089632, 0.52049987781304654,
        0.47950012218695346, 0.47693627620446987, 0.61569034419292587, 0.47693627620446987 },
      { got[11], got[12], got[13], got[14], got[15], got[16], got[17] }, 1e-14)
  end)

  it("the inverse of erfc, into its tail", function()
    local k = cg.kernel [[extern "C" __global__ void k(double *o, const double *x) {
      for (int i = 0; i < 4; i++) o[i] = erfc(erfcinv(x[i])) / x[i];
      o[4] = normcdf(normcdfinv(x[1])) / x[1]; }]]
    local x, o = cg.zeros("double", 4), cg.zeros("double", 5)
    x:upload { 1e-3, 1e-30, 1e-200, 1.75 }
    k:launch(1, 1, o, x)
    assert_close({ 1, 1, 1, 1, 1 }, o:download(), 1e-11)
  end)

  it("the fast forms, close to the others", function()
    local o, x = cg.zeros("float", 28), cg.full("float", 1, 0.75)
    run("fast", 1, 1, o, x)
    local got, a, b = o:download(), {}, {}
    for i = 1, 28, 2 do
      a[#a + 1], b[#b + 1] = got[i + 1], got[i]
    end
    assert_close(a, b, 1e-5)
  end)

  it("numbers of 8 and 16 bits in a word", function()
    local o = cg.zeros("uint32", 65)
    run("lanes", 1, 1, o, 0x80ff017f, 0x017f81ff)
    assert.same({
      2189329278, 2172551806, 2139127680, 2139127936, 2139127936, 2139127936, 2155904896,
      2172682368, 2164228607, 2164228607, 25100671, 25100671, 25100671, 25100671, 2164228607,
      2164228607, 1094664639, 1103053247, 1094664639, 1086276031, 0, 0, 4294967295,
      4294967295, 4294901760, 4294901760, 65535, 65535, 4294901760, 4294901760, 65535, 65535,
      65535, 65535, 4294901760, 4294901760, 65535, 65535, 4294901760, 4294901760, 65536,
      16842752, 65536, 16842752, 2130837121, 2147614593, 2130772351, 2147549567, 65536, 511,
      65536, 513, 4128775, 4357639, 16135, 81671, 0, 8, 4, 31, 16, 5, 8, 4294967295,
      4294967295
    }, o:download())
  end)

  it("such numbers that end at their limits, and the best of several", function()
    local o = cg.zeros("uint32", 50)
    run("best", 1, 1, o, 0x80ff7f7f, 0x8001017f, 0x00ff8080)
    assert.same({
      2147516415, 2147516287, 4294934782, 4294934782, 16678400, 16678400, 16678400,
      16678400, 2155888767, 2147500159, 2130804607, 2130804607, 2130804865, 2130805121,
      16744576, 16810238, 0, 16744576, 16810238, 2164227967, 16810238, 16744319, 16810238,
      32639, 16744319, 16777216, 2164228224, 16810238, 2164227968, 2164227968, 2164227968,
      2164227968, 2147549567, 16744576, 0, 0, 16744576, 16744576, 16744576, 2147582080,
      16744576, 383, 0, 16711680, 16712063, 16744576, 2147549567, 2147549567, 2147549567,
      2147549567
    }, o:download())
  end)

  it("pairs of halves", function()
    local o = cg.zeros("float", 41)
    run("pairs", 1, 1, o, 1.5, -4)
    assert.same({
      0, 0, -0.25, 0.25, 2, 2, 0.5, 0.5, 1.5, 1.5, -4, -4, 1.5, -4, -4, 4, -4, 1.5, 1.5, 4,
      -1.5, 4, 1, 0, 0, 0, 1, 1, 0, 0, -2.5, 0, 5.5, -8, -6, -16, -0.375, -1, -1.5, 4, 73
    }, o:download())
  end)

  it("integer intrinsics", function()
    local o = cg.zeros("int64", 27)
    run("integers", 1, 1, o, 0x00ff0123, -40, 0x0123456700ff0000LL)
    local got = {}
    for i, v in ipairs(o:download()) do got[i] = tonumber(v) end
    assert.same({
      3296788224, 140189667254848, 16712190, 8, 7, 4, 17, 2464, 16711971, 1745352713, 77, -18,
      -17, 8355988, 8355989, -200, 83559855, -1, 4080, 4886718208, 4886718208, 12, 20, 52,
      16711973, 79, 32783 }, got)
  end)

  it("directed rounding brackets the exact number", function()
    local x, y = cg.full("float", 1, 1.1), cg.full("double", 1, 1.1)
    local o = cg.zeros("double", 57)
    run("rounding", 1, 1, o, x, y)
    local got = o:download()
    for i = 1, 56, 4 do
      local rn, rz, ru, rd = got[i], got[i + 1], got[i + 2], got[i + 3]
      assert.is_true(rd <= rn and rn <= ru and rd < ru, "operation " .. (i + 3) / 4)
      assert.equal(rd, rz, "operation " .. (i + 3) / 4) -- all are positive
      assert.is_true(ru - rd <= ru * (i <= 28 and 2e-7 or 4e-16), "operation " .. (i + 3) / 4)
    end
  end)

  it("conversions, in all four ways", function()
    local x, y = cg.full("float", 1, -2.5), cg.full("double", 1, -3.5)
    local o = cg.zeros("double", 71)
    run("conversions", 1, 1, o, x, y)
    local f = 2 ^ 31 - 128
    local want = {
      -2, -2, -2, -3, 2, 2, 3, 2, -2, -2, -2, -3, 2, 2, 3, 2,
      -4, -3, -3, -4, 4, 3, 4, 3, -4, -3, -3, -4, 4, 3, 4, 3,
      -3.5, -3.5, -3.5, -3.5,
      2 ^ 31 - 128, f, 2 ^ 31, f,
      2 ^ 32 - 256 + 128 < 2 ^ 32 and 2 ^ 32 or 0, 2 ^ 32 - 256, 2 ^ 32, 2 ^ 32 - 256,
      2 ^ 63, 2 ^ 63 - 2 ^ 39, 2 ^ 63, 2 ^ 63 - 2 ^ 39,
      2 ^ 64, 2 ^ 64 - 2 ^ 40, 2 ^ 64, 2 ^ 64 - 2 ^ 40,
      2 ^ 63, 2 ^ 63 - 1024, 2 ^ 63, 2 ^ 63 - 1024,
      2 ^ 64, 2 ^ 64 - 2048, 2 ^ 64, 2 ^ 64 - 2048,
      -7, 7, 0x3f800000, 0x40000000, 3, 4, 0x4014000000000000, 6, 0x401c0000,
      0x66666666, 8 }
    want[37] = 2 ^ 31 - 128 -- 0x7fffff81 is one above a float
    want[41] = 2 ^ 32 - 256 + 256 * (0x81 > 0x80 and 1 or 0)
    local got = o:download()
    assert.equal(#want, #got)
    for i = 1, #want do
      assert.equal(want[i], got[i], "number " .. i)
    end
  end)

  it("cached loads and stores, fences and clocks", function()
    local o, x = cg.zeros("float", 7), cg.full("float", 8, 1)
    run("loads", 1, 1, o, x)
    assert.same({ 6, 1, 2, 3, 4, 1, 1 }, o:download())
  end)

  it("what the headers of C define", function()
    local o = cg.zeros("double", 15)
    run("limits", 1, 1, o)
    assert.same({ 2147483647, -2147483648, 4294967295, -128, 65535, 3.4028234663852886e38,
      2 ^ -23, 2 ^ -52, 2.2250738585072014e-308, 17, 1, math.pi, 8, 1, 1 }, o:download())
  end)

  it("every header that is built in, from a script", function()
    for _, name in ipairs { "cuda_fp16.h", "cuda_bf16.h", "cuda_runtime.h", "cuda_runtime_api.h",
      "cuda.h", "device_launch_parameters.h", "vector_types.h", "vector_functions.h",
      "math_constants.h", "device_functions.h", "math.h", "cmath", "stdint.h", "cstdint",
      "stddef.h", "cstddef", "stdio.h", "cstdio", "assert.h", "cassert", "float.h", "cfloat",
      "limits.h", "climits", "stdbool.h", "stdlib.h", "cstdlib", "string.h", "cstring" } do
      assert.has_no.errors(function()
        cg.module("#include <" .. name .. '>\n#include "' .. name .. '"\n' ..
          'extern "C" __global__ void k(uint8_t *x, size_t n) {}\n', { options = {} })
      end, name)
    end
  end)

  it("assert, unless -DNDEBUG, and __trap", function()
    local text = '#include <assert.h>\nextern "C" __global__ void k(int *o) ' ..
      "{ assert(o[0] == 1); o[0] = 2; }"
    local o = cg.zeros("int32", 1)
    cg.kernel(text, "k", { options = { "-DNDEBUG" } }):launch(1, 1, o)
    assert.same({ 2 }, o:download())
    for name, code in pairs { asserts = "CUDA_ERROR_ASSERT", traps = "CUDA_ERROR_LAUNCH_FAILED" } do
      local status, out = device.child(([[
        local m = cg.module { file = %q, expressions = { "outer::language" } }
        local o = cg.full("int32", 1, 7)
        m:kernel(%q):launch(1, 1, o)
        print(select(2, pcall(cg.synchronize)).name)]]):format(here .. "/promises.cu", name))
      assert.equal(0, status)
      if host then
        assert.matches(code, out)
      else -- a GPU calls a trap an illegal instruction or a failed launch
        assert.matches("CUDA_ERROR", out)
      end
    end
  end)

  it("--fmad=false rounds a product before the sum", function()
    local text = 'extern "C" __global__ void k(float *o, const float *x) ' ..
      "{ o[0] = x[0] * x[1] + x[2]; }"
    local x, o = cg.zeros("float", 3), cg.zeros("float", 1)
    x:upload { 1 + 2 ^ -12, 1 + 2 ^ -12, -1 - 2 ^ -11 }
    cg.kernel(text):launch(1, 1, o, x)
    assert.same({ 2 ^ -24 }, o:download())
    cg.kernel(text, "k", { options = { "--fmad=false" } }):launch(1, 1, o, x)
    assert.same({ 0 }, o:download())
  end)

  describe("what the host device does not compile is an error:", function()
    local texts = {
      ["inline PTX"] = 'int v; asm volatile("mov.u32 %%0, %%%%laneid;" : "=r"(v)); o[0] = v;',
      ["textures"] = "o[0] = (int)tex1Dfetch<float>((cudaTextureObject_t)0, 0);",
      ["surfaces"] = "surf1Dwrite(1.f, (cudaSurfaceObject_t)0, 0);",
      ["launches in kernels"] = "k<<<1, 1>>>(o);",
      ["malloc"] = "o[0] = malloc(16) != nullptr;",
      ["new"] = "int *p = new int[o[1]]; o[0] = p[o[2]]; p[o[3]] = 1; o[4] = (int)(long)p;",
      ["tensor cores"] = "nvcuda::wmma::fill_fragment(o, 0);",
      ["cooperative groups"] = "auto b = cooperative_groups::this_thread_block(); b.sync();",
      ["clusters"] = "o[0] = __cluster_dims_is_specified();",
      ["the standard library"] = "std::vector<int> v; o[0] = (int)v.size();",
    }
    for what, body in pairs(texts) do
      it(what, function()
        if not host then
          return pending "a GPU's compiler knows more of them"
        end
        raises("CGL_ERROR_COMPILE", function()
          cg.kernel('extern "C" __global__ void k(int *o) { ' .. body .. " }")
        end)
      end)
    end
  end)
end)
