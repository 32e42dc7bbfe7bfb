local ffi = require "ffi"
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

local kinds = [[
struct pair { int x; float y; };
extern "C" __global__ void bytes(signed char a, unsigned char b, short c, unsigned short d,
                                 int *out) {
  out[0] = a; out[1] = b; out[2] = c; out[3] = d;
}
extern "C" __global__ void words(int a, unsigned int b, long long c, unsigned long long d,
                                 long long *out) {
  out[0] = a; out[1] = b; out[2] = c; out[3] = (long long)d;
}
extern "C" __global__ void reals(float a, double b, double *out) { out[0] = a; out[1] = b; }
extern "C" __global__ void truth(bool a, bool b, int *out) { out[0] = a; out[1] = b; }
extern "C" __global__ void whole(pair p, float *out) { out[0] = p.x; out[1] = p.y; }
extern "C" __global__ void maybe(const int *p, int *out) { out[0] = p ? p[0] : -1; }
]]

local module
local function of(name)
  module = module or cg.module(kinds)
  return module:kernel(name)
end

describe("kernel", function()
  teardown(function()
    module = nil
    device.nothing_alive()
  end)

  describe("made from source", function()
    it("needs no name when there is one", function()
      local k = cg.kernel [[extern "C" __global__ void lonely(int *x) { *x = 42; }]]
      local x = cg.zeros("int32", 1)
      k:launch(1, 1, x)
      assert.same({ 42 }, x:download())
      assert.equal("lonely", k:name())
      assert.equal("cgraphlua.kernel lonely", tostring(k))
    end)

    it("needs one when there are several, and names them", function()
      raises("CGL_ERROR_INVALID_ARGUMENT", function() cg.kernel(device.source) end,
        "add", "scale", "spin")
      raises("CGL_ERROR_NOT_FOUND", function() cg.kernel(device.source, "ad") end,
        '"?ad"?', "scale")
      assert.equal("scale", cg.kernel(device.source, "scale"):name())
    end)

    it("names the script's line of a slip in the source", function()
      local first = debug.getinfo(1, "l").currentline + 2
      local text = [[
        extern "C" __global__ void broken(float *x) {
          x[0] = 1.f
        }
      ]]
      local e = raises("CGL_ERROR_COMPILE", function() cg.kernel(text) end)
      local file = debug.getinfo(1, "S").source:sub(2)
      local line = tonumber(e.message:match("kernel_spec%.lua[:(](%d+)"))
      assert.is_truthy(e.message:find(file, 1, true), e.message)
      -- Compilers blame the line of the semicolon or the one after it.
      assert.is_true(line == first + 1 or line == first + 2, e.message)
      assert.equal(device.line(-6), e.where)
    end)

    it("names who asked for a source made at run time", function()
      local e = raises("CGL_ERROR_COMPILE", function()
        cg.kernel(('extern "C" __global__ void %s(int *x) { *x = ; }'):format "made")
      end)
      assert.matches("kernel_spec", e.message)
      assert.equal(device.line(-3), e.where)
    end)

    it("takes compiler options, and a name for the source", function()
      local x = cg.zeros("int32", 1)
      local source = [[extern "C" __global__ void put(int *x) { *x = VALUE; }]]
      cg.kernel(source, { options = { "-DVALUE=5" } }):launch(1, 1, x)
      assert.same({ 5 }, x:download())
      cg.kernel(source, "put", { options = { "-DVALUE=6" } }):launch(1, 1, x)
      assert.same({ 6 }, x:download())
      raises("CGL_ERROR_COMPILE", function() cg.kernel(source, { file = "mine.cu", line = 70 }) end,
        "mine%.cu[:(]70")
    end)

    it("instantiates templates by name expression", function()
      local source = [[
        template <typename T, int N> __global__ void times(T *x) { x[threadIdx.x] *= N; }
      ]]
      local x = cg.from({ 1, 2 }, "float")
      cg.kernel(source, "times<float, 3>"):launch(1, 2, x)
      assert.same({ 3, 6 }, x:download())
      local m = cg.module(source, { expressions = { "times<int, 2>", "times<double, 5>" } })
      local y, z = cg.from({ 7 }, "int32"), cg.from({ 7 }, "double")
      m:kernel "times<int, 2>":launch(1, 1, y)
      m:kernel "times<double, 5>":launch(1, 1, z)
      assert.same({ 14, 35 }, { y:download()[1], z:download()[1] })
      for _, others in ipairs { {}, { "times<int, 2>" }, { "times<int, 4>" } } do
        y:fill(1)
        cg.kernel(source, "times<int, 4>", { expressions = others }):launch(1, 1, y)
        assert.same({ 4 }, y:download())
      end
      local e = raises("CGL_ERROR_INVALID_ARGUMENT", function() cg.kernel(source) end)
      assert.matches("name expression", e.hint)
    end)

    it("refuses what is no source, name or option", function()
      slips(function() cg.kernel(5) end, "the source must be a string, got 5")
      slips(function() cg.kernel() end, "the source must be a string, got nil")
      slips(function() cg.kernel("x", 5) end, "the name must be a string, got 5")
      slips(function() cg.kernel(device.source, "add", { flags = {} }) end,
        'unknown option "flags"')
      slips(function() cg.kernel(device.source, { options = "-g" }) end, "options must be a list")
      slips(function() cg.kernel(device.source, { options = { 1 } }) end,
        "options%[1%] must be a string")
      slips(function() cg.kernel("int x;\0int y;") end, "zero byte at 7")
    end)
  end)

  it("lists its parameters as the source has them", function()
    local list = device.kernel "scale":parameters()
    assert.equal(4, #list)
    assert.same({ "x", "y", "a", "n" }, { list[1].name, list[2].name, list[3].name, list[4].name })
    assert.is_true(list[1].pointer and list[1].readonly)
    assert.is_true(list[2].pointer and not list[2].readonly)
    assert.is_false(list[3].pointer)
    assert.same({ 8, 8, 4, 4 }, { list[1].bytes, list[2].bytes, list[3].bytes, list[4].bytes })
    assert.matches("const float", list[1].type)
    assert.equal("int", list[4].type)
  end)

  describe("launch", function()
    it("takes sizes as numbers and lists", function()
      local k = cg.kernel [[
        extern "C" __global__ void sizes(int *x) {
          if (threadIdx.x + threadIdx.y + threadIdx.z) return;
          if (blockIdx.x + blockIdx.y + blockIdx.z) return;
          x[0] = gridDim.x; x[1] = gridDim.y; x[2] = gridDim.z;
          x[3] = blockDim.x; x[4] = blockDim.y; x[5] = blockDim.z;
        }]]
      local x = cg.zeros("int32", 6)
      k:launch(3, 4, x)
      assert.same({ 3, 1, 1, 4, 1, 1 }, x:download())
      k:launch({ 2, 3 }, { 4, 1, 2 }, x)
      assert.same({ 2, 3, 1, 4, 1, 2 }, x:download())
      k:launch({ 2, 3, 4, shared = 64 }, { 5 }, x)
      assert.same({ 2, 3, 4, 5, 1, 1 }, x:download())
    end)

    it("gives dynamic shared memory", function()
      local k = cg.kernel [[
        extern "C" __global__ void reverse(const int *x, int *y) {
          extern __shared__ int t[];
          t[threadIdx.x] = x[threadIdx.x];
          __syncthreads();
          y[threadIdx.x] = t[blockDim.x - 1 - threadIdx.x];
        }]]
      local x, y = cg.from({ 1, 2, 3, 4 }, "int32"), cg.zeros("int32", 4)
      k:launch({ 1, shared = 16 }, 4, x, y)
      assert.same({ 4, 3, 2, 1 }, y:download())
    end)

    it("refuses sizes that are none", function()
      local k, x = device.kernel "add", cg.zeros("float", 1)
      local function go(grid, block) k:launch(grid, block, x, 1, 1) end
      slips(function() go(nil, 1) end, "#1.*grid must be a number or {x, y, z}, got nil")
      slips(function() go(1, "32") end, '#2.*block must be a number or {x, y, z}, got "32"')
      slips(function() go(0, 1) end, "grid must be a whole number from 1 to 4294967295, got 0")
      slips(function() go(1.5, 1) end, "got 1.5")
      slips(function() go(0 / 0, 1) end, "grid must be a whole number")
      slips(function() go({ 1, 0.5 }, 1) end, "grid.y must be a whole number", "got 0.5")
      slips(function() go({}, 1) end, "grid.x must be")
      slips(function() go({ 1, 1, 1, 1 }, 1) end, "grid takes at most three sizes: x, y and z")
      slips(function() go({ 1, shard = 1 }, 1) end,
        'unknown option "shard"; the options are shared')
      slips(function() go(1, { 1, shared = 1 }) end, 'stand with the grid')
      slips(function() go({ 1, shared = -1 }, 1) end, "shared must be a whole number from 0")
      local _, text = device.fails(go, 1, 2048)
      assert.matches("2048", text)
    end)

    it("takes every kind of number", function()
      local out = cg.zeros("int32", 4)
      of "bytes":launch(1, 1, -128, 255, -32768, 65535, out)
      assert.same({ -128, 255, -32768, 65535 }, out:download())
      local long = cg.zeros("int64", 4)
      of "words":launch(1, 1, -2 ^ 31, 2 ^ 32 - 1, -2 ^ 53, 2 ^ 53, long)
      assert.same({ -2 ^ 31, 2 ^ 32 - 1, -2 ^ 53, 2 ^ 53 }, long:download())
      local real = cg.zeros("double", 2)
      of "reals":launch(1, 1, 0.5, 0.1, real)
      assert.same({ 0.5, 0.1 }, real:download())
      local truth = cg.zeros("int32", 2)
      of "truth":launch(1, 1, true, false, truth)
      assert.same({ 1, 0 }, truth:download())
    end)

    it("takes 64-bit FFI integers exactly", function()
      local out = cg.zeros("int64", 4)
      of "words":launch(1, 1, 1LL, 2ULL, 9007199254740993LL, 0x7fffffffffffffffULL, out)
      local list = out:download()
      assert.is_true(list[3] == 9007199254740993LL and list[4] == 0x7fffffffffffffffLL)
      raises("CGL_ERROR_ARGUMENT_RANGE", function()
        of "words":launch(1, 1, 2147483648LL, 0, 0, 0, out)
      end, "argument 1")
    end)

    it("takes structs by value, as FFI structs and as bytes", function()
      local out = cg.zeros("float", 2)
      local pair = ffi.new("struct { int x; float y; }", 3, 0.5)
      of "whole":launch(1, 1, pair, out)
      assert.same({ 3, 0.5 }, out:download())
      local list = ffi.new("struct { int x; float y; }[2]", { { 1, 1 }, { 8, 0.25 } })
      of "whole":launch(1, 1, list[1], out)
      assert.same({ 8, 0.25 }, out:download())
      of "whole":launch(1, 1, ffi.string(list, 8), out)
      assert.same({ 1, 1 }, out:download())
      raises("CGL_ERROR_ARGUMENT_TYPE", function() of "whole":launch(1, 1, list, out) end, "16")
      raises("CGL_ERROR_ARGUMENT_TYPE", function() of "whole":launch(1, 1, 3, out) end,
        "argument 1")
    end)

    it("takes null and raw addresses for pointers", function()
      local x, out = cg.from({ 77 }, "int32"), cg.zeros("int32", 1)
      of "maybe":launch(1, 1, cg.null, out)
      assert.same({ -1 }, out:download())
      of "maybe":launch(1, 1, ffi.cast("int *", x:address()), out)
      assert.same({ 77 }, out:download())
      raises("CGL_ERROR_ARGUMENT_TYPE", function() of "maybe":launch(1, 1, x:address(), out) end,
        "argument 1")
    end)

    it("checks the number of arguments", function()
      local k, x = device.kernel "add", cg.zeros("float", 1)
      local e = raises("CGL_ERROR_ARGUMENT_COUNT", function() k:launch(1, 1, x, 1) end,
        "add takes 3 arguments, 2 were given")
      assert.equal(device.line(-2), e.where)
      raises("CGL_ERROR_ARGUMENT_COUNT", function() k:launch(1, 1, x, 1, 1, 1) end, "4 were given")
      raises("CGL_ERROR_ARGUMENT_COUNT", function() k:launch(1, 1) end, "0 were given")
      local many = {}
      for i = 1, 300 do many[i] = i end
      slips(function() k:launch(1, 1, unpack(many)) end, "more than 256 kernel arguments")
    end)

    it("checks their types", function()
      local k, x = device.kernel "add", cg.zeros("float", 1)
      raises("CGL_ERROR_ARGUMENT_TYPE", function() k:launch(1, 1, 1, 1, 1) end,
        "argument 1", "'?x'?")
      raises("CGL_ERROR_ARGUMENT_TYPE", function() k:launch(1, 1, x, x, 1) end, "argument 2")
      raises("CGL_ERROR_ARGUMENT_TYPE", function() k:launch(1, 1, x, "1", 1) end, "argument 2")
      raises("CGL_ERROR_ARGUMENT_TYPE", function() k:launch(1, 1, cg.zeros("double", 1), 1, 1) end,
        "argument 1", "double", "float")
    end)

    it("names the argument that is nil, a table or an object", function()
      local k, x = device.kernel "add", cg.zeros("float", 1)
      slips(function() k:launch(1, 1, x, nil, 1) end, "argument 2 'a' is nil; it is a float")
      slips(function() k:launch(1, 1, nil, 1, 1) end, "argument 1 'x' is nil; pass cg.null")
      slips(function() k:launch(1, 1, x, {}, 1) end, "argument 2 'a' is a table")
      slips(function() k:launch(1, 1, cg.stream(), 1, 1) end,
        "argument 1 'x' is a cgraphlua.stream")
      slips(function() k:launch(1, 1, x, 1, print) end, "argument 3 'n' is a function")
    end)

    it("of 16-bit floating types round once, as elements of buffers do", function()
      local k = cg.kernel [[
        extern "C" __global__ void put(__half *h, __half a, __nv_bfloat16 *b, __nv_bfloat16 c) {
          *h = a;
          *b = c;
        }]]
      local h, b = cg.zeros("half", 1), cg.zeros("bfloat16", 1)
      for _, x in ipairs { 1 + 2 ^ -8 + 2 ^ -30, 1 + 2 ^ -11 + 2 ^ -40, -65519, 65520,
                           2 ^ -25 + 2 ^ -60, 3.4e38, -0.1 } do
        k:launch(1, 1, h, x, b, x)
        assert.same(cg.from({ x }, "half"):download(), h:download())
        assert.same(cg.from({ x }, "bfloat16"):download(), b:download())
      end
    end)

    it("say what to do", function()
      local add, x = device.kernel "add", cg.zeros("float", 1)
      for _, args in ipairs { { 1, 1, 1 }, { x, x, 1 }, { x, 1, x }, { x, 1, 2 ^ 31 },
                              { x, 1, 0.5 }, { x, "abc", 1 }, { x, 1 } } do
        local e = device.fails(function() add:launch(1, 1, unpack(args)) end)
        assert.matches("%w", e.hint, e.message)
      end
    end)

    it("checks their range", function()
      local k, x = device.kernel "add", cg.zeros("float", 1)
      local out = cg.zeros("int32", 4)
      raises("CGL_ERROR_ARGUMENT_RANGE", function() k:launch(1, 1, x, 1, 2 ^ 31) end, "argument 3")
      raises("CGL_ERROR_ARGUMENT_RANGE", function() k:launch(1, 1, x, 1, 0.5) end, "argument 3")
      raises("CGL_ERROR_ARGUMENT_RANGE", function() k:launch(1, 1, x, 1, 0 / 0) end, "argument 3")
      raises("CGL_ERROR_ARGUMENT_RANGE", function() of "bytes":launch(1, 1, 128, 0, 0, 0, out) end,
        "argument 1")
      raises("CGL_ERROR_ARGUMENT_RANGE", function() of "bytes":launch(1, 1, 0, -1, 0, 0, out) end,
        "argument 2")
    end)

    it("refuses a released buffer by its place", function()
      local k, x = device.kernel "add", cg.zeros("float", 1)
      x:release()
      local e = raises("CGL_ERROR_RELEASED", function() k:launch(1, 1, x, 1, 1) end,
        "argument 1 'x' is a buffer that was released")
      assert.equal(device.line(-2), e.where)
    end)

    it("that is refused leaves the capture whole", function()
      local k, x = device.kernel "add", cg.zeros("float", 4)
      local g = cg.capture(function()
        k:launch(1, 32, x, 1, 4)
        raises("CGL_ERROR_ARGUMENT_COUNT", function() k:launch(1, 32, x, 1) end)
        raises("CUDA_ERROR_INVALID_VALUE", function() k:launch(1, 2048, x, 1, 4) end, "2048")
        raises("CUDA_ERROR_INVALID_VALUE", function()
          k:launch({ 1, shared = 2 ^ 30 }, 32, x, 1, 4)
        end, "shared memory")
        raises("CGL_ERROR_ARGUMENT_RANGE", function() k:launch(1, 32, x, 1, 2 ^ 40) end)
        k:launch(1, 32, x, 1, 4)
      end)
      assert.equal(2, #g:nodes())
      g:replay()
      assert.same({ 2, 2, 2, 2 }, x:download())
    end)

    it("keeps arguments alive until it ran", function()
      local spin, add = device.kernel "spin", device.kernel "add"
      local out = cg.zeros("float", 1)
      for _ = 1, 20 do
        local x = cg.zeros("float", 1000)
        spin:launch(1, 1, x, 10000)
        x:release()
      end
      collectgarbage()
      add:launch(1, 1, out, 1, 1)
      assert.same({ 1 }, out:download())
    end)
  end)

  describe("over", function()
    it("launches at least n threads", function()
      local add = device.kernel "add"
      for _, n in ipairs { 1, 31, 32, 33, 1000, 100000 } do
        local x = cg.zeros("float", n)
        add:over(n)(x, 2, n)
        local list = x:download()
        assert.equal(2, list[1])
        assert.equal(2, list[n])
      end
      assert.is_true(add:block_size() >= 32)
    end)

    it("can be kept and called again, into a capture too", function()
      local n = 100
      local x = cg.zeros("float", n)
      local go = device.kernel "add":over(n)
      collectgarbage()
      go(x, 1, n)
      local g = cg.capture(function() go(x, 1, n) end)
      g:replay(3)
      assert.equal(4, x:download()[n])
      local e = raises("CGL_ERROR_ARGUMENT_COUNT", function() go(x) end)
      assert.equal(device.line(-1), e.where)
    end)

    it("refuses counts that are none", function()
      local add = device.kernel "add"
      slips(function() add:over(0) end, "number of threads must be a whole number from 1", "got 0")
      slips(function() add:over() end, "got nil")
      slips(function() add:over(1.5) end, "got 1.5")
      slips(function() add:over(2 ^ 53) end, "more than 2147483647 blocks")
    end)
  end)

  it("takes lists of numbers for vectors", function()
    local k = cg.kernel [=[
    struct pair { int a, b; };
    extern "C" __global__ void v(float *x, const float4 a, short2 b, double2 c, pair p) {
      x[0] = a.x; x[1] = a.w; x[2] = b.y; x[3] = c.x;
    }]=]
    local x, pair = cg.zeros("float", 4), ("\0"):rep(8)
    k:launch(1, 1, x, { 1, 2, 3, 4 }, { 5, -6 }, { 0.5, 0 }, pair)
    assert.same({ 1, 4, -6, 0.5 }, x:download())
    local run = k:over(1)
    slips(function() run(x, { 1, 2, 3 }, { 5, 6 }, { 7, 0 }, pair) end, "argument #2 to 'over",
      "kernel argument 2 'a' is a const float4, which takes 4 numbers, got 3")
    slips(function() run(x, { 1, 2, 3, 4 }, { 5, 2 ^ 15 }, { 7, 0 }, pair) end,
      "argument #3 to 'over", "int16 takes whole numbers")
    slips(function() run(x, { 1, 2, 3, 4 }, { 5, 6 }, { 7, 0 }, { 8, 9 }) end,
      "argument #5 to 'over", "argument 5 'p' is a struct, whose fields go by name: 'a', 'b'")
    slips(function() run({ 1 }, { 1, 2, 3, 4 }, { 5, 6 }, { 7, 0 }, pair) end, "cg.from")
    local g = cg.capture(function() run(x, { 1, 2, 3, 4 }, { 5, 6 }, { 7, 0 }, pair) end)
    g:set_params(1, { [2] = { 10, 20, 30, 40 }, [3] = { 50, 60 }, [4] = { 70, 0 } })
    g:replay()
    assert.same({ 10, 40, 60, 70 }, x:download())
    slips(function() g:set_params(1, { [3] = { 1, 2, 3 } }) end,
      "argument #2 to 'graph:set_params'", "takes 2 numbers, got 3")
  end)

  describe("with a struct", function()
    local source = [=[
    struct box { float low[3]; short n; };
    enum mode : unsigned char { off, on };
    struct settings {
      double dt;
      const float *table;
      box boxes[2][2];
      float4 v;
      mode m;
      bool b;
      unsigned long long big;
      struct { int x, y; } last;
      __device__ double twice() const { return 2 * dt; }
    };
    typedef settings other;
    extern "C" __global__ void show(double *o, const other s) {
      o[0] = s.twice(); o[1] = s.table ? s.table[1] : -1; o[2] = s.boxes[1][0].low[2];
      o[3] = s.boxes[0][1].n; o[4] = s.v.w; o[5] = s.m + 10 * s.b; o[6] = s.big >> 32;
      o[7] = s.last.y;
    }
    template <class T> struct pair { T a, b; };
    extern "C" __global__ void others(pair<int> p, const box *b) {}]=]
    local show, o, s

    before_each(function()
      show, o = cg.kernel(source, "show"), cg.zeros("double", 8)
      local function box(i) return { low = { i, i + 1, i + 2 }, n = -i } end
      s = {
        dt = 0.25, table = cg.null, boxes = { { box(1), box(2) }, { box(3), box(4) } },
        v = { 1, 2, 3, 4 }, m = 1, b = true, big = 5 * 2ULL ^ 32, last = { x = 6, y = 7 },
      }
    end)

    after_each(function() show, o, s = nil, nil, nil end)

    it("takes a table", function()
      show:launch(1, 1, o, s)
      assert.same({ 0.5, -1, 5, -2, 4, 11, 5, 7 }, o:download())
      local table = cg.from({ 8, 9 }, "float")
      s.table, s.b, s.big = ffi.cast("float *", table:address()), 0, "8589934592"
      show:over(1)(o, s)
      assert.same({ 0.5, 9, 5, -2, 4, 1, 2, 7 }, o:download())
    end)

    it("has its padding zeroed, as an FFI struct has", function()
      local k = cg.kernel [=[
        struct gap { char c; double d; short s; };
        extern "C" __global__ void bytes(unsigned char *o, gap g) {
          for (unsigned i = 0; i < sizeof g; i++) o[i] = ((const unsigned char *)&g)[i];
        }]=]
      local x = cg.zeros("uint8", 24)
      k:launch(1, 1, x, { c = 1, d = 0, s = 2 })
      local wanted = cg.zeros("uint8", 24):download()
      wanted[1], wanted[17] = 1, 2
      assert.same(wanted, x:download())
    end)

    it("takes tables in captures and set_params", function()
      local g = cg.capture(function() show:launch(1, 1, o, s) end)
      s.last.y, s.dt = 70, 4
      g:replay()
      assert.same({ 0.5, 7 }, { o:download()[1], o:download()[8] })
      g:set_params(1, { [2] = s })
      g:replay()
      assert.same({ 8, 70 }, { o:download()[1], o:download()[8] })
      s.dt = nil
      slips(function() g:set_params(1, { [2] = s }) end, "argument #2 to 'graph:set_params'",
        "kernel argument 2 's' lacks 'dt'")
      g:replay()
      assert.equal(8, o:download()[1])
    end)

    it("is the same from the cache, without a compiler", function()
      local folder = os.tmpname()
      os.remove(folder)
      for _, environment in ipairs { "", " PATH=/nowhere" } do
        local status, out, err = device.child(([[
          local k = cg.kernel(%q, "show")
          print(#k:parameters()[2].fields, k:parameters()[2].fields[3].fields[1].name)
          print(pcall(k.launch, k, 1, 1, cg.zeros("double", 8), {}))]]):format(source),
          "CGRAPHLUA_CACHE=" .. folder .. environment)
        assert.equal(0, status, err)
        assert.matches("^8\tlow\nfalse\t[^\n]*lacks 'dt', 'table', ", out)
      end
      os.execute("rm -r " .. folder)
    end)

    it("lists its fields", function()
      local fields = show:parameters()[2].fields
      assert.same({ type = "box", name = "boxes", pointer = false, offset = 16, bytes = 16,
        shape = { 2, 2 }, fields = {
          { type = "float", name = "low", pointer = false, offset = 0, bytes = 4, shape = { 3 } },
          { type = "short", name = "n", pointer = false, offset = 12, bytes = 2 } } }, fields[3])
      assert.same({ type = "const float *", name = "table", pointer = true, offset = 8, bytes = 8 },
        fields[2])
      assert.is_nil(show:parameters()[1].fields)
    end)

    it("refuses tables that are no such struct", function()
      local function refused(change, ...)
        change()
        slips(function() show:launch(1, 1, o, s) end, "argument #4 to 'kernel:launch'",
          "kernel argument 2 's'", ...)
      end
      refused(function() s.dtt = 1 end, "has no field 'dtt'; did you mean 'dt'%?")
      refused(function() s.dtt, s.nothing_like_it = nil, 1 end,
        "no field 'nothing_like_it'; its fields are 'dt', 'table', 'boxes', 'v', 'm', 'b', 'big'")
      refused(function() s.nothing_like_it, s.dt, s.m = nil, nil, nil end,
        "lacks 'dt', 'm'; every field needs a value")
      refused(function() s.dt, s.m = 1, 256 end, "its field 'm' is 256; uint8 takes whole numbers")
      refused(function() s.m, s[1] = 1, 5 end, "is a struct, whose fields go by name: 'dt', ",
        "got the key 1")
      refused(function() s[1], s.boxes[2][1].low[3] = nil, "x" end,
        "its field 'boxes%[2%]%[1%]%.low%[3%]' is a string; float takes numbers")
      refused(function() s.boxes[2][1].low = { 1, 2 } end,
        "'boxes%[2%]%[1%]%.low' is an array, which takes a list of 3, got 2")
      refused(function() s.boxes[2][1] = { low = { 1, 2, 3 }, n = 1, N = 2 } end,
        "'boxes%[2%]%[1%]' has no field 'N'; did you mean 'n'%?")
      refused(function() s.boxes[2] = 5 end, "'boxes%[2%]' is an array, .*got number")
      refused(function() s.boxes[2] = { 1, 2 } end,
        "'boxes%[2%]%[1%]' is a struct, which takes a table with 'low', 'n', got number")
      refused(function() s.boxes[2] = s.boxes[1]; s.v = { 1, 2, 3 } end,
        "'v' is a float4, which takes a list of 4, got 3")
      refused(function() s.v = { 1, 2, 3, true } end, "'v%[4%]' is a boolean value")
      refused(function() s.v, s.table = { 1, 2, 3, 4 }, o end,
        "'table' is a const float %*; it takes cg.null or an FFI pointer, got cgraphlua.buffer")
      refused(function() s.table = { 1 } end, "'table' is a const float %*; .*got table")
      s.table = cg.null
      show:launch(1, 1, o, s)
    end)

    it("whose layout is not known takes no table", function()
      local k = cg.kernel(source, "others")
      slips(function() k:launch(1, 1, { a = 1, b = 2 }, cg.null) end,
        "kernel argument 1 'p' is a table; .*ffi.cdef and ffi.new")
      slips(function() k:launch(1, 1, ("\0"):rep(8), { low = { 1, 2, 3 }, n = 1 }) end,
        "kernel argument 2 'b' is a table; .*ffi.new")
    end)
  end)

  it("says that it was released", function()
    local k = cg.kernel(device.source, "add")
    local go = k:over(1)
    k:release()
    raises("CGL_ERROR_RELEASED", function() k:launch(1, 1) end, "this kernel was released")
    raises("CGL_ERROR_RELEASED", function() go(1) end, "this kernel was released")
    assert.equal("cgraphlua.kernel (released)", tostring(k))
  end)

  describe("with a grid-stride loop", function()
    local helpers = [[
      static __device__ float next(unsigned *s) { return (float)(s[0] = s[0] * 5 + 1 & 1023); }
      struct Sum {
        float s = 0.f;
        __device__ float operator()(float v) { return s += v; }
        __device__ float operator<<(float v) { return s += v; }
        __device__ float *self() { return &s; }
      };
      ]]
    --- The loop stands in the text itself: one from a macro is left as it is.
    local function looped(text)
      return (text:gsub("LOOP", "for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; " ..
        "i += gridDim.x * blockDim.x)"))
    end
    local states = {
      ["a pointer"] = "float s = 0.f; float *p = &s; LOOP { p[0] += x[i]; y[i] = p[0]; }",
      ["a pointer that a function takes"] =
        "unsigned state = 1; unsigned *s = &state; LOOP y[i] = next(s);",
      ["a call operator"] = "Sum sum = Sum(); LOOP y[i] = sum(x[i]);",
      ["a shift operator"] = "Sum sum = Sum(); LOOP y[i] = sum << x[i];",
      ["a type that is not named"] = "auto sum = Sum(); LOOP y[i] = sum(x[i]);",
      ["a pointer from an object"] =
        "Sum sum = Sum(); float *p = sum.self(); LOOP { p[0] += x[i]; y[i] = p[0]; }",
      ["a cast pointer"] = "const float t = 0.f; const float *q = &t; float *w = (float *)q; " ..
        "LOOP { w[0] = w[0] + x[i]; y[i] = w[0]; }",
      ["a reference"] = "float s = 0.f; LOOP { float &r = s; r += x[i]; y[i] = r; }",
      ["a reference in parentheses"] =
        "float s = 0.f; LOOP { float &r(s); r += x[i]; y[i] = r; }",
      ["a forwarding reference"] = "float s = 0.f; LOOP { auto &&r = s; r += x[i]; y[i] = r; }",
      ["parentheses"] = "float s = 0.f; LOOP { (s) += x[i]; y[i] = s; }",
      ["a choice"] =
        "float u = 0.f; LOOP { (n ? u : u) += x[i]; y[i] = u; }",
      ["a cast to a reference"] = "float s = 0.f; LOOP { (float &)s += x[i]; y[i] = s; }",
      ["a lambda"] = "float s = 0.f; LOOP { [&](float v) { (s) += v; }(x[i]); y[i] = s; }",
      ["an increment"] = "int s = 0; LOOP { ++(s); y[i] = s; }",
    }
    for what, body in pairs(states) do
      it("keeps what a thread hands on, by " .. what .. ", in the thread", function()
        local n = 1000
        local x = cg.full("float", n, 1)
        local function run(first)
          local y = cg.zeros("float", n)
          cg.kernel(looped(helpers ..
            'extern "C" __global__ void k(const float *x, float *y, int n) {' ..
            first .. body .. "\n}")):launch(4, 32, x, y, n)
          return y:download()
        end
        assert.same(run "__syncthreads();", run "")
      end)
    end

    local around = {
      ["a loop over rows"] = "for (int c = blockIdx.y * blockDim.y + threadIdx.y; c < 5; " ..
        "c += gridDim.y * blockDim.y) LOOP y[c * n + i] = y[c * n + i] * 3 + x[i] + c;",
      ["loops over planes and rows"] = "for (int d = 0; d < 2; d++) { int first = 2 * d; " ..
        "for (int c = blockIdx.y * blockDim.y + threadIdx.y; c < 2; c += 4) { " ..
        "int at = (first + c) * n; LOOP y[at + i] += x[i] + d; } }",
      ["a loop by thread"] = "for (int c = threadIdx.x; c < 40; c += 32) " ..
        "LOOP y[i + n * threadIdx.y] += c;",
      ["a loop by thread to a bound"] = "for (int c = 0; c < threadIdx.x; c += 1) " ..
        "LOOP y[i + n * threadIdx.y] += c;",
      ["a loop in steps by thread"] = "for (int c = 0; c < 40; c += 1 + threadIdx.x) " ..
        "LOOP y[i + n * threadIdx.y] += c;",
      ["a loop with more in it"] = "for (int c = 0; c < 3; c++) { " ..
        "LOOP y[i + n * threadIdx.y] += c; if (c == 1) y[threadIdx.x + 4 * n] = c; }",
      ["a loop, and a sum through it"] = "float s = 0.f; for (int c = 0; c < 3; c++) " ..
        "LOOP { s += x[i]; y[i + n * threadIdx.y] = s; }",
      ["a loop that counts it"] = "int s = 0; for (int c = 0; c < 3; c += 1 + 0 * s++) " ..
        "LOOP y[i + n * threadIdx.y] += c;",
    }
    for what, body in pairs(around) do
      it("gives the same inside " .. what, function()
        local n = 1000
        local x = cg.full("float", n, 1)
        local function run(first)
          local y = cg.zeros("float", 5 * n)
          cg.kernel(looped('extern "C" __global__ void k(const float *x, float *y, int n) {' ..
            first .. body .. "\n}")):launch({ 4, 1 }, { 32, 2 }, x, y, n)
          return y:download()
        end
        assert.same(run "__syncthreads();", run "")
      end)
    end

    it("is one loop inside loops over planes and rows", function()
      if cg.device().device ~= "host" then return pending "this needs the host device" end
      local k = cg.kernel(looped('extern "C" __global__ void k(const float *x, float *y, int n) {'
        .. around["loops over planes and rows"] .. "\n}"))
      assert.equal("loop", (k:form()))
    end)

    it("counts once per thread what stands in front of the loop", function()
      local k = cg.kernel(looped [[
        extern "C" __global__ void k(int *count, float *y, int n) {
          int mine = atomicAdd(count, 1);
          LOOP y[i] = mine >= 0;
        }]])
      local count, y = cg.zeros("int32", 1), cg.zeros("float", 1000)
      k:launch(4, 32, count, y, 1000)
      assert.same({ 128 }, count:download())
    end)

    it("keeps to each instance's own type", function()
      local text = helpers .. [[
        template <class T> __global__ void k(T add, const float *x, float *y, int n) {
          LOOP y[i] = add + x[i];
        }
        static __device__ float operator+(Sum &s, float v) { return s.s += v; }]]
      local x, y = cg.full("float", 1000, 1), cg.zeros("float", 1000)
      local m = cg.module { source = looped(text), expressions = { "k<float>", "k<Sum>" } }
      m:kernel "k<float>":launch(4, 32, 2, x, y, 1000)
      assert.equal(3, device.value(y))
      m:kernel "k<Sum>":launch(4, 32, ffi.new("float[1]", 0), x, y, 1000)
      local got = y:download()
      assert.same({ 1, 1, 2, 8 }, { got[1], got[128], got[129], got[1000] })
    end)
  end)

  it("whose frame is larger than its stack says so, and harms no neighbour", function()
    local chunk = [[
      local text = ('extern "C" __global__ void k(int *bad, int off) {' ..
        ' volatile int a[30000]; volatile int mine[64]; int t = threadIdx.x;' ..
        ' for (int i = 0; i < 64; i++) mine[i] = t;' ..
        ' for (int i = 0; i < 64; i++) a[off + i] = 1000 + t;' ..
        ' __syncthreads(); int wrong = 0;' ..
        ' for (int i = 0; i < 64; i++) wrong += (mine[i] != t) + (a[off + i] != 1000 + t);' ..
        ' bad[t] = wrong; }')
      local k, b = cg.kernel(text), cg.zeros("int32", 64)
      k:launch(1, 64, b, 11648)
      print(select(2, pcall(b.download, b)).message:match "overflowed its stack")
    ]]
    -- What the compiler said of it as loops is not kept with its image.
    local cache = device.program.folder()
    for _ = 1, 2 do
      assert.same({ 0, "overflowed its stack\n", "" }, { device.child(chunk,
        "CGRAPHLUA_DEVICE=host CGRAPHLUA_CACHE=" .. device.program.quote(cache)) })
    end
    device.program.remove(cache)
  end)

  it("takes what a computed type wants", function()
    local k = cg.kernel [[
      template <class T> struct pick { typedef T type; };
      #if defined __GNUC__ || defined __CUDACC_RTC__
      typedef float real;
      #else
      typedef int real;
      #endif
      extern "C" __global__ void k(decltype(1.0f) a, pick<double>::type b, real c, float *o) {
        o[0] = a; o[1] = b; o[2] = c;
      }]]
    local o = cg.zeros("float", 3)
    k:launch(1, 1, 1.5, 2.5, 3.5, o)
    assert.same({ 1.5, 2.5, 3.5 }, o:download())
    raises("CGL_ERROR_ARGUMENT_TYPE",
      function() k:launch(1, 1, "four", 2.5, 3.5, o) end, "decltype")
  end)

  it("that writes outside ends as an illegal address, and the process lives", function()
    local status, out, err = device.child([[
      local k = cg.kernel 'extern "C" __global__ void stray(float *x) { x[16] = 1.f; }'
      local x = cg.zeros("float", 16)
      k:launch(1, 1, x)
      local ok, e = pcall(cg.synchronize)
      print(ok, e.name, e.message:match "stray")
    ]], "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_GUARD=1")
    assert.equal("", err)
    assert.equal("false\tCUDA_ERROR_ILLEGAL_ADDRESS\tstray\n", out)
    assert.equal(0, status)
  end)
end)
