-- Elements of several numbers: complex ones and CUDA's vectors.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

-- Name, lanes, the numbers' type, bytes of a number.
local types = { { "complex64", 2, "float", 4 }, { "complex128", 2, "double", 8 } }
for base, of in pairs {
  float = { "float", 4 }, double = { "double", 8 }, char = { "int8", 1 }, uchar = { "uint8", 1 },
  short = { "int16", 2 }, ushort = { "uint16", 2 }, int = { "int32", 4 }, uint = { "uint32", 4 },
  longlong = { "int64", 8 }, ulonglong = { "uint64", 8 },
} do
  for lanes = 2, 4 do types[#types + 1] = { base .. lanes, lanes, of[1], of[2] } end
end

-- Element i of a list whose numbers all differ.
local function element(i, lanes)
  local list = {}
  for k = 1, lanes do list[k] = (4 * i + k) % 100 end
  return list
end

local function elements(n, lanes)
  local list = {}
  for i = 1, n do list[i] = element(i, lanes) end
  return list
end

describe("an element of several numbers", function()
  it("has the size of its numbers, without padding", function()
    for _, t in ipairs(types) do
      local b = cg.zeros(t[1], 3)
      assert.equal(3 * t[2] * t[4], b.bytes)
      assert.equal(t[1], b.type)
      assert.same({ 0, 0, 0, 0 }, { 0, 0, unpack(b:download()[3], 1, 2) })
    end
  end)

  it("goes in and comes back as a list", function()
    for _, t in ipairs(types) do
      local data = elements(7, t[2])
      local b = cg.from(data, t[1])
      assert.same(data, b:download())
      assert.same(data[3], b:view(3, 1):item())
      assert.same(data, cg.from(b:download "string", t[1]):download())
      local flat = cg.from(b:download "string", t[3]):download()
      assert.equal(7 * t[2], #flat)
      assert.equal(data[2][1], flat[t[2] + 1])
      local p = cg.pinned(t[1], 7):copy(b)
      cg.synchronize()
      assert.same(data[7], p:get(7))
      assert.same(data[1], p:set(2, data[1]):get(2))
    end
  end)

  it("goes by the names of its numbers", function()
    assert.same({ { 1, 2 }, { 3, 4 } },
      cg.from({ { x = 1, y = 2 }, { 3, 4 } }, "float2"):download())
    assert.same({ 1, 2, 3, 4 }, cg.full("int4", 1, { w = 4, x = 1, y = 2, z = 3 }):item())
    assert.same({ { 1, 0 }, { 2, 3 }, { 4, 5 } },
      cg.from({ 1, { re = 2, im = 3 }, ffi.new("complex", 4, 5) }, "complex128"):download())
    assert.same({ 4, 5 }, cg.full("complex64", 1, ffi.new("complex float", 4, 5)):item())
    assert.same({ 1, 2, 3 },
      cg.full("float3", 1, ffi.new("struct { float x, y, z; }", 1, 2, 3)):item())
    assert.same({ { 1, 2 }, { 3, 4 } },
      cg.from(ffi.new("float[4]", 1, 2, 3, 4), "complex64"):download())
  end)

  it("gives nested lists a shape of elements", function()
    local b = cg.from({ { { 1, 2 }, { 3, 4 }, { 5, 6 } }, { { 7, 8 }, { 9, 10 }, { 0, 0 } } },
      "float2")
    assert.same({ 2, 3 }, b.shape)
    assert.same({ 9, 10 }, b:download()[5])
  end)

  it("is what FFI code sees in pinned memory", function()
    local z, v = cg.pinned("complex64", 2), cg.pinned("float4", 2)
    z:set(2, { 1, 2 })
    v:set(2, { 1, 2, 3, 4 })
    assert.same({ 1, 2, 4 }, { z:cdata()[1].re, z:cdata()[1].im, v:cdata()[1].w })
    v:cdata()[0].z = 7
    assert.same({ 0, 0, 7, 0 }, v:get(1))
  end)

  it("fills exactly its view, eagerly and at each replay", function()
    for _, t in ipairs(types) do
      local value, other = element(1, t[2]), element(2, t[2])
      for _, n in ipairs { 1, 2, 5, 16, 43 } do
        local all = cg.full(t[1], n + 2, other)
        local b = all:view(2, n)
        local function holds(v)
          local got = all:download()
          assert.same({ other, v, v, other }, { got[1], got[2], got[n + 1], got[n + 2] })
          for i = 3, n do assert.equal(v[t[2]], got[i][t[2]]) end
        end
        b:fill(value)
        holds(value)
        local g = cg.capture(function() b:fill(value) end)
        b:fill(other)
        g:replay()
        holds(value)
        g:set_params(1, { value = other })
        g:replay()
        holds(other)
      end
    end
  end)

  it("fills with a repeated word by a node that takes such words alone", function()
    local b = cg.buffer("float4", 3)
    local g = cg.capture(function() b:fill { 1, 1, 1, 1 } end)
    g:set_params(1, { value = { 2, 2, 2, 2 } })
    g:replay()
    assert.same({ 2, 2, 2, 2 }, b:download()[3])
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(1, { value = { 1, 2, 3, 4 } }) end,
      "words of 4 bytes")
  end)

  it("fills in branches and loops", function()
    local flag = cg.from({ 1 }, "int32")
    for _, t in ipairs(types) do
      local b = cg.zeros(t[1], 9)
      local g = cg.capture(function()
        cg.when(flag, function() b:fill(element(3, t[2])) end)
      end)
      g:replay()
      assert.same(element(3, t[2]), b:download()[9])
    end
  end)

  it("is refused with what is wrong", function()
    for _, case in ipairs {
      { { { 1, 2 }, { 3 } }, "float2", "element 2 has 1 numbers; float2 takes 2" },
      { { { 1, 2 }, { 3, 4, 5 } }, "float2", "element 2 has 3 numbers" },
      { { 1, 2 }, "int2", "element 1 is a number value; int2 takes a table of 2 numbers" },
      { { { 1, 1.5 } }, "int2", "element 1 has a number 2 that is 1.5; int32 takes whole" },
      { { { 1, "a" } }, "complex64", "number 2 that is a string" },
      { { { x = 1, q = 2 } }, "float2", "number 2 that is nil" },
      { { { 300, 0 } }, "uchar2", "number 1 that is 300; uint8 takes" },
      { ffi.new("complex[2]"), "complex64", "an FFI array of double for elements of complex64" },
      { ("x"):rep(13), "float3", "13 bytes are no whole number of float3" },
    } do
      slips(function() cg.from(case[1], case[2]) end, case[3])
    end
    slips(function() cg.full("float2", 1, 0) end, "takes a table")
    slips(function() cg.full("float2", 1, ffi.new("complex", 1)) end, "8")
    slips(function() cg.buffer("float5", 1) end, "float4")
  end)
end)

describe("a kernel with vectors", function()
  local kernel
  local source = [[
  #include <cuComplex.h>
  struct pair { float2 at; int4 w; };
  extern "C" __global__ void k(cuFloatComplex *z, const float3 *p, cuDoubleComplex by,
                               short3 s, pair q) {
    z[0] = cuCaddf(z[0], make_cuComplex(p[1].z, (float)(by.y + s.z + q.at.y + q.w.w)));
  }]]
  local z, p
  before_each(function()
    kernel = kernel or cg.kernel(source)
    z, p = cg.from({ { 1, 2 } }, "complex64"), cg.from({ { 0, 0, 0 }, { 0, 0, 5 } }, "float3")
  end)

  it("takes them as pointers, values and fields of structs", function()
    kernel:launch(1, 1, z, p, { 0, 10 }, { 1, 2, 100 }, { at = { 0, 1000 }, w = { 0, 0, 0, 4 } })
    assert.same({ 6, 1116 }, z:item())
    kernel:launch(1, 1, z, p, { re = 0, im = 1 }, { x = 0, y = 0, z = 1 },
      { at = { x = 0, y = 1 }, w = { x = 0, y = 0, z = 0, w = 1 } })
    assert.same({ 11, 1120 }, z:item())
  end)

  it("takes others in set_params", function()
    local q = { at = { 0, 0 }, w = { 0, 0, 0, 0 } }
    local g = cg.capture(function() kernel:launch(1, 1, z, p, { 0, 1 }, { 0, 0, 0 }, q) end)
    g:replay()
    g:set_params(1, { [3] = { re = 0, im = 3 }, [4] = { x = 0, y = 0, z = 4 } })
    g:replay()
    assert.same({ 11, 10 }, z:item())
  end)

  it("takes no other element type and no other number of numbers", function()
    local q = { at = { 0, 0 }, w = { 0, 0, 0, 0 } }
    local function launch(a, b, by, s)
      return function() kernel:launch(1, 1, a or z, b or p, by or { 0, 0 }, s or { 0, 0, 0 }, q) end
    end
    raises("CGL_ERROR_ARGUMENT_TYPE", launch(nil, cg.zeros("float4", 2)), "a buffer of float4")
    raises("CGL_ERROR_ARGUMENT_TYPE", launch(cg.zeros("complex128", 1)), "a buffer of complex128")
    slips(launch(nil, nil, nil, { 0, 0 }), "is a short3, which takes 3 numbers, got 2")
    slips(launch(nil, nil, nil, { 0, 0, 1.5 }), "takes whole numbers")
    launch(cg.zeros("float2", 1), cg.zeros("float", 6))()
  end)
end)

describe("an algorithm", function()
  it("moves elements of every type", function()
    for _, t in ipairs(types) do
      local data = elements(35, t[2])
      local b = cg.from(data, t[1], { 5, 7 })
      local at = cg.from({ 34, 0, 35 }, "int32")
      local got = algo.gather(b, at):download()
      assert.same({ data[35], data[1] }, { got[1], got[2] })
      assert.equal(0, got[3][t[2]])
      assert.same(data[8], algo.transpose(b):download()[2])
      local out = algo.scatter(algo.gather(b, at), at, cg.zeros(t[1], 35)):download()
      assert.same({ data[1], data[35] }, { out[1], out[35] })
      local chosen, count = algo.select(b, algo.map("i % 2 == 1", {}, cg.buffer("bool", 35)))
      assert.equal(17, count:item())
      assert.same(data[4], chosen:download()[2])
    end
  end)

  it("computes and compares no vectors", function()
    local z, x = cg.zeros("complex64", 4), cg.zeros("float", 4)
    for _, f in ipairs {
      function() algo.reduce(z, "sum") end, function() algo.scan(z, "max") end,
      function() algo.sort(z) end, function() algo.unique(z) end,
      function() algo.map("a", { a = z }, x) end, function() algo.map("a", { a = x }, z) end,
      function() algo.scan(cg.zeros("int32", 4), "sum", { out = z }) end,
    } do
      raises("CGL_ERROR_INVALID_ARGUMENT", f, "elements of complex64 have 2 numbers each")
    end
    raises("CGL_ERROR_INVALID_ARGUMENT", function() algo.sort_by_key(x, cg.zeros("float4", 4)) end,
      "values of float4, of 16 bytes")
    raises("CGL_ERROR_INVALID_ARGUMENT",
      function() cg.when(cg.zeros("int2", 1), function() end) end, "a buffer of 1 int2")
  end)
end)
