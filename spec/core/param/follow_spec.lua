-- Parameters that follow a buffer: kernels and fills read them when they run.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local first, raises = device.first, device.raises

local source = [[
struct body { float x; int n; };
extern "C" __global__ void set(float *y, float a) { *y = a; }
extern "C" __global__ void add(float *y, float a) { *y += a; }
extern "C" __global__ void each(float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a;
}
extern "C" __global__ void sum(float *y, float a, int b, float c) { *y = a * 100 + b * 10 + c; }
extern "C" __global__ void vec(float *y, float4 v) {
  y[0] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;
}
extern "C" __global__ void pair(double *y, double2 v) { *y = v.x - v.y; }
extern "C" __global__ void whole(float *y, body b) { *y = b.x * b.n; }
extern "C" __global__ void down(int *n) { *n -= 1; }
extern "C" __global__ void doubled(float *x) { *x *= 2; }
/* Every thread adds what the parameter was before any of them began. */
extern "C" __global__ void grow(float *y, float a) { atomicAdd(y, a); }
]]

local module

local function kernel(name)
  module = module or cg.module(source)
  return module:kernel(name)
end

-- A parameter that follows an element of a buffer, which is the second result.
local function following(type, value, name)
  local b = cg.full(type, 3, value)
  local element = b:view(2, 1)
  return cg.param(type, 0, name):follow(element), element
end

local function refused(...)
  return raises("CGL_ERROR_INVALID_ARGUMENT", ...)
end

describe("param:follow", function()
  teardown(function()
    module = nil
    device.nothing_alive()
  end)

  it("has kernels and fills read numbers of every type when they run", function()
    local of = { half = "__half", bfloat16 = "__nv_bfloat16", int8 = "signed char",
                 uint8 = "unsigned char", int16 = "short", uint16 = "unsigned short", int32 = "int",
                 uint32 = "unsigned", int64 = "long long", uint64 = "unsigned long long" }
    for _, type in ipairs { "float", "double", "int8", "uint8", "int16", "uint16", "int32",
                            "uint32", "int64", "uint64", "half", "bfloat16", "bool" } do
      local c = of[type] or type
      local k = cg.kernel(('#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n' ..
        'extern "C" __global__ void put(%s *y, char pad, %s a) { *y = a; }'):format(c, c))
      local one, two = 100, 7
      if type == "bool" then one, two = true, false end
      local p, element = following(type, one)
      local y, z = cg.zeros(type, 1), cg.zeros(type, 5)
      local g = cg.capture(function()
        k:launch(1, 1, y, 1, p)
        z:fill(p)
      end)
      g:replay()
      assert.equal(tostring(one), tostring(y:item()), type)
      assert.equal(tostring(one), tostring(z:download()[5]), type)
      element:fill(two)
      g:replay()
      assert.equal(tostring(two), tostring(y:item()), type)
      assert.equal(tostring(two), tostring(z:download()[1]), type)
      assert.equal(tostring(two), tostring(p:get()), type)
    end
  end)

  it("takes vectors, by a parameter of the type or of as many numbers", function()
    local y, d = cg.zeros("float", 1), cg.zeros("double", 1)
    local from = cg.from({ 1, 2, 3, 4, 5, 6, 7, 8 }, "float")
    local v = cg.from({ { 1, 2, 3, 4 }, { 5, 6, 7, 8 } }, "float4")
    local p = cg.param("float", { 0, 0, 0, 0 }):follow(from:view(5, 4))
    local q = cg.param("float4", { 0, 0, 0, 0 }):follow(v:view(1, 1))
    local r = cg.param("double", { 0, 0 }):follow(cg.from({ 9, 4 }, "double"))
    local z = cg.zeros("float4", 3)
    local g = cg.capture(function()
      kernel "vec":launch(1, 1, y, p)
      kernel "pair":launch(1, 1, d, r)
      z:fill(q)
    end)
    g:replay()
    assert.same({ 8765, 5 }, { first(y), first(d) })
    assert.same({ 5, 6, 7, 8 }, p:get())
    kernel "vec":launch(1, 1, y, q)
    assert.equal(4321, first(y))
    assert.equal(4, z:download()[3][4])
    refused(function() p:follow(from:view(2, 4)) end, "no multiple", "multiple of its count")
  end)

  it("fills with elements of every size", function()
    for _, type in ipairs { "uchar2", "uchar3", "uchar4", "short3", "half2", "float2", "float3",
                            "float4", "double3", "double4" } do
      local ok, b = pcall(cg.zeros, type, 2)
      if ok then
        local n = tonumber(type:match "%d$")
        local value = {}
        for i = 1, n do value[i] = 10 * i + 1 end
        b:fill(value)
        local p = cg.param(type, value):follow(b:view(2, 1))
        for i = 1, n do value[i] = value[i] + 1 end
        b:fill(value)
        local z = cg.zeros(type, 37)
        z:view(2, 35):fill(p)
        local list = z:download()
        assert.same(value, { unpack(list[2], 1, n) }, type)
        assert.same(value, { unpack(list[36], 1, n) }, type)
        assert.equal(0, list[1][1] + list[37][n])
      end
    end
  end)

  it("takes two in a kernel, and one twice", function()
    local y = cg.zeros("float", 1)
    local a, x = following("float", 1)
    local b, n = following("int32", 2)
    local g = cg.capture(function() kernel "sum":launch(1, 1, y, a, b, a) end)
    g:replay()
    assert.equal(121, first(y))
    x:fill(3)
    n:fill(4)
    g:replay()
    assert.equal(343, first(y))
  end)

  it("is read after the nodes before it, in both orders", function()
    for _, order in ipairs { "issue", "data" } do
      local y = cg.zeros("float", 300)
      local a, x = following("float", 1)
      local g = cg.capture(function()
        kernel "doubled":launch(1, 1, x)
        kernel "each":launch(3, 128, y, a, 300)
        kernel "doubled":launch(1, 1, x)
        y:view(1, 10):fill(a)
      end, { order = order })
      g:replay()
      assert.same({ 4, 2 }, { first(y), y:download()[300] }, order)
      g:replay(40)
      assert.equal(first(x), first(y))
      local nodes = g:nodes()
      assert.equal("following", nodes[2].form)
      assert.same({ 1 }, nodes[2].dependencies)
      assert.same({ 2 }, nodes[3].dependencies)
    end
  end)

  it("is read before the kernel writes to it", function()
    local x = cg.full("float", 1, 3)
    local a = cg.param("float", 0):follow(x)
    local g = cg.capture(function() kernel "grow":launch(1, 256, x, a) end)
    g:replay()
    assert.equal(3 * 257, first(x))
    refused(function() kernel "grow":launch(2, 128, x, a) end, "argument 2 of grow",
      "argument 1 may write", "one block")
    refused(function()
      cg.capture(function() kernel "grow":launch(cg.param("int32", 1), 8, x, a) end)
    end, "argument 1 may write")
    refused(function() g:set_params(1, { grid = 2 }) end, "it has one block")
    local b = cg.full("float", 1, 1)
    local h = cg.capture(function() kernel "each":launch(2, 8, b, a, 1) end)
    refused(function() h:set_params(1, { y = x }) end, "a parameter of the launch follows")
    refused(function() x:fill(a) end, "would write to the buffer")
    local f = cg.capture(function() b:fill(a) end)
    refused(function() f:set_params(1, { buffer = x }) end, "would write to the buffer")
    refused(function() f:set_params(1, { value = 3 }) end, "write the value to the buffer")
  end)

  it("reads at the launch's turn outside captures", function()
    local y = cg.zeros("float", 1)
    local a, x = following("float", 1)
    for i = 1, 20 do
      x:fill(i)
      kernel "add":launch(1, 1, y, a)
    end
    assert.equal(210, first(y))
  end)

  it("is what a body changed, in every turn of a loop", function()
    local y = cg.zeros("float", 1)
    local a, x = following("float", 1)
    local n = cg.zeros("int32", 1)
    local g = cg.capture(function()
      n:fill(5)
      cg.loop(n, function()
        kernel "add":launch(1, 1, y, a)
        kernel "doubled":launch(1, 1, x)
        kernel "down":launch(1, 1, n)
      end, { max = 10 })
      cg.times(cg.full("int32", 1, 2), function() y:fill(a) end)
      cg.when(n, function() end, function() kernel "add":launch(1, 1, y, a) end)
    end)
    g:replay()
    assert.equal(64, first(y))
    x:fill(1)
    g:replay()
    assert.equal(64, first(y))
    refused(function()
      cg.capture(function()
        cg.times(n, function() kernel "add":launch(1, 1, y, a) end, { form = "predicated" })
      end)
    end, "cannot be predicated", "follows a buffer")
    refused(function()
      cg.capture(function()
        cg.times(n, function() y:fill(a) end, { form = "predicated" })
      end)
    end, "cannot be predicated", "follows a buffer")
  end)

  it("decides branches", function()
    local y = cg.zeros("float", 1)
    local p, flag = following("int32", 0)
    local g = cg.capture(function()
      cg.when(p, function() kernel "add":launch(1, 1, y, 1) end)
    end)
    g:replay()
    flag:fill(1)
    g:replay(3)
    assert.equal(3, first(y))
  end)

  it("is in child graphs, and in executables of many turns", function()
    local y = cg.zeros("float", 1)
    local a, x = following("float", 1)
    local child = cg.capture(function() kernel "add":launch(1, 1, y, a) end)
    local kept = cg.capture(function() child:replay() end, { keep_graph = true })
    local g = cg.capture(function()
      child:replay()
      kernel "doubled":launch(1, 1, x)
    end)
    g:replay(4)
    assert.equal(15, first(y))
    child:replay(2000)
    assert.equal(15 + 16 * 2000, first(y))
    kept:instantiate()
    y:fill(0)
    kept:replay()
    assert.equal(16, first(y))
    assert.is_true(g:params()[1].uses[1].body)
  end)

  it("ends in a node that is given a number", function()
    local y = cg.zeros("float", 1)
    local a, x = following("float", 1)
    local b = following("int32", 2)
    local g = cg.capture(function() kernel "sum":launch(1, 1, y, a, b, a) end)
    g:set_params(1, { a = 7 })
    g:replay()
    assert.equal(721, first(y))
    x:fill(3)
    g:replay()
    assert.equal(723, first(y))
    assert.equal(1, #g:params()[2].uses)
    refused(function() g:set_params(1, { c = a }) end, "is a parameter")
    local other = cg.zeros("float", 1)
    g:set_params(1, { y = other })
    g:replay()
    assert.equal(723, first(other))
  end)

  it("is listed by graph:params, and not set", function()
    local y = cg.zeros("float", 1)
    local a, x = following("float", 1, "a")
    local b = cg.param("int32", 5, "b")
    local g = cg.capture(function() kernel "sum":launch(1, 1, y, a, b, 2) end)
    local list = g:params()
    assert.is_true(list[1].follows)
    assert.is_true(list[1].uses[1].follows)
    assert.is_nil(list[2].follows)
    assert.is_false(list[2].uses[1].follows)
    refused(function() g:set { a = 2 } end, "follows a buffer")
    refused(function() a:set(2) end, "the parameter a follows a buffer", "param:follow%(nil%)")
    g:set { b = 6 }
    g:replay()
    assert.equal(162, first(y))
    assert.equal(1, a:get())
    assert.equal(tostring(x:address()), tostring(a:followed():address()))
  end)

  it("ends for what comes later, and changes no graph", function()
    local y = cg.zeros("float", 1)
    local a = cg.param("float", 5, "a")
    local before = cg.capture(function() kernel "set":launch(1, 1, y, a) end)
    local x = cg.full("float", 1, 1)
    assert.equal(a, a:follow(x))
    local g = cg.capture(function() kernel "set":launch(1, 1, y, a) end)
    before:replay()
    assert.equal(5, first(y))
    a:follow(cg.full("float", 1, 2))
    local h = cg.capture(function() kernel "set":launch(1, 1, y, a) end)
    a:follow(nil)
    assert.is_nil(a:followed())
    assert.equal(5, a:get())
    a:set(6)
    g:replay()
    assert.equal(1, first(y))
    h:replay()
    assert.equal(2, first(y))
    before:replay()
    assert.equal(6, first(y))
    kernel "set":launch(1, 1, y, a)
    assert.equal(6, first(y))
  end)

  it("keeps what it follows", function()
    local a = cg.param("float", 0):follow(cg.full("float", 1, 4))
    local y = cg.zeros("float", 1)
    collectgarbage()
    collectgarbage()
    local g = cg.capture(function() kernel "set":launch(1, 1, y, a) end)
    a:release()
    collectgarbage()
    g:replay()
    assert.equal(4, first(y))
    local x = cg.full("float", 1, 4)
    local b = cg.param("float", 0, "b"):follow(x)
    x:release()
    raises("CGL_ERROR_RELEASED", function() kernel "set":launch(1, 1, y, b) end,
      "parameter b follows was released")
    raises("CGL_ERROR_RELEASED", function() y:fill(b) end, "was released")
  end)

  it("moves with memory that the capture plans", function()
    local y = cg.zeros("float", 1)
    local a = cg.param("float", 0)
    local g = cg.capture(function()
      local t = cg.buffer("float", 4000)
      t:fill(1)
      kernel "add":launch(1, 1, t, 1)
      t:release()
      local x = cg.buffer("float", 4000)
      x:fill(3)
      a:follow(x:view(7, 1))
      kernel "set":launch(1, 1, y, a)
      a:follow(nil)
      x:release()
      local z = cg.buffer("float", 4000)
      z:fill(9)
      z:release()
    end, { order = "data" })
    g:replay(2)
    assert.equal(3, first(y))
  end)

  it("follows an input to what is bound in its place", function()
    local y = cg.zeros("float", 1)
    local x = cg.input("float", 4, "x")
    x:fill(1)
    local a = cg.param("float", 0):follow(x:view(3, 1))
    local g = cg.capture(function()
      kernel "set":launch(1, 1, y, a)
      kernel "add":launch(1, 1, y, a)
    end)
    local f = cg.capture(function() y:fill(a) end)
    g:replay()
    assert.equal(2, first(y))
    local other = cg.from({ 1, 2, 30, 4 }, "float")
    g:bind { x = other }
    f:bind { x = other }
    g:replay()
    assert.equal(60, first(y))
    f:replay()
    assert.equal(30, first(y))
    g:bind { x = x }
    g:replay()
    assert.equal(2, first(y))
  end)

  it("refuses what is bound where the value could not be read", function()
    local x, y = cg.input("float", 8, "x"), cg.input("float", 8, "y")
    local from = cg.zeros("float", 16)
    local a = cg.param("float", 0):follow(x:view(5, 1))
    local v = cg.param("float", { 0, 0, 0, 0 }):follow(x:view(5, 4))
    local function bound(fn, ...)
      local g, args = cg.capture(fn), { ... }
      g:bind { x = from:view(1, 8), y = from:view(9, 8) }
      g:replay()
      refused(function() g:bind { x = from:view(1, 8), y = from:view(1, 8) } end, unpack(args))
      refused(function() g:bind { y = from:view(1, 8) } end, unpack(args))
    end
    bound(function() kernel "each":launch(2, 4, y, a, 8) end, "the kernel each at",
      "written to while it is read")
    bound(function() y:fill(a) end, "follows a buffer that would be written")
    bound(function()
      cg.times(cg.full("int32", 1, 1), function() y:fill(a) end)
    end, "follows a buffer that would be written")
    local h = cg.capture(function() kernel "vec":launch(1, 1, y, v) end)
    h:bind { x = from:view(5, 8) }
    refused(function() h:bind { x = from:view(4, 8) } end, "read there as a whole")
    local one = cg.capture(function() kernel "grow":launch(1, 8, x, a) end)
    one:bind { x = from:view(2, 8) }
    one:replay()
  end)

  it("is in files", function()
    local path = os.tmpname()
    local y = cg.zeros("float", 8)
    local x = cg.full("float", 1, 1)
    local a, b = cg.param("float", 0, "a"):follow(x), cg.param("int32", 3, "b")
    local g = cg.capture(function()
      kernel "doubled":launch(1, 1, x)
      kernel "sum":launch(1, 1, y, a, b, a)
      y:view(2, 7):fill(a)
    end)
    for _ = 1, 2 do
      g:save(path, { outputs = { y = y }, inputs = { x = x } })
      g = cg.load(path)
      g:set { b = 5 }
      x = cg.full("float", 1, 2)
      g:bind { x = x }
      g:replay()
      y = g.outputs.y
      assert.same({ 4 * 101 + 50, 4 }, { y:download()[1], y:download()[8] })
      local list = g:params()
      assert.is_true(list[1].follows)
      assert.equal(3, #list[1].uses)
      refused(function() g:set { a = 2 } end, "follows a buffer")
    end
    os.remove(path)
  end)

  it("refuses what is wanted before the work runs", function()
    local y = cg.zeros("float", 8)
    local n = following("int32", 2, "n")
    local f = following("float", 1, "f")
    refused(function() kernel "set":launch(n, 1, y, 1) end, "parameter n follows a buffer",
      "wanted before the work runs")
    refused(function() kernel "each":over(n)(y, 1, n) end, "wanted before")
    refused(function() y:uniform(0, f) end, "wanted before")
    refused(function() cg.capture(function() y:normal(f, 1) end) end, "wanted before")
  end)

  it("refuses other buffers, structs and what is large", function()
    local a = cg.param("float", 1, "a")
    refused(function() a:follow(cg.zeros("float", 2)) end, "parameter a has 1 float",
      "the buffer 2 float")
    refused(function() a:follow(cg.zeros("int32", 1)) end, "the buffer 1 int32")
    device.slips(function() a:follow(3) end, "buffer")
    device.slips(function() a:follow() end, "nil for an end")
    local s = kernel "whole":param("b", { x = 1, n = 2 })
    refused(function() s:follow(cg.zeros("uint8", 8)) end, "is a struct",
      "give the kernel the buffer")
    local t = {}
    for i = 1, 40 do t[i] = i end
    refused(function() cg.param("float", t):follow(cg.zeros("float", 40)) end, "more than 32 bytes")
    assert.is_nil(a:followed())
    assert.equal(1, a:get())
  end)

  it("refuses kernels that have no such form, in the capture's line", function()
    local a = following("float", 1)
    local y = cg.zeros("float", 1)
    local k = cg.kernel([[__device__ int count;
      extern "C" __global__ void counts(float *y, float a) { *y = a + count; }]])
    local e = refused(function() k:launch(1, 1, y, a) end, "argument 2 of counts",
      "its module has variables")
    assert.truthy(e.where:find "follow_spec")
    local g = cg.capture(function()
      assert.is_false(pcall(k.launch, k, 1, 1, y, a))
      kernel "set":launch(1, 1, y, a)
    end)
    g:replay()
    assert.equal(1, first(y))
  end)
end)
