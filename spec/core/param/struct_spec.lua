-- Parameters that stand for structs: set, read and listed by field.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local first, raises, slips = device.first, device.raises, device.slips

local source = [[
struct box { float3 low, high; };
struct settings { float dt; int n; box walls[2]; short grid[2][3]; const float *table; };
struct pair { float dt; int n; };
struct other { int n; float dt; };
extern "C" __global__ void take(float *y, settings s) {
  y[0] = s.dt * s.n;
  y[1] = s.walls[1].high.z;
  y[2] = s.grid[1][2];
  y[3] = s.table ? 1 : 0;
}
extern "C" __global__ void walls(float *y, box b) { y[0] = b.low.z; y[1] = b.high.z; }
extern "C" __global__ void times(float *y, pair p) { y[0] = p.dt * p.n; }
extern "C" __global__ void add(float *y, float a, pair p) { y[0] += a * p.dt * p.n; }
extern "C" __global__ void swapped(float *y, other o) { y[0] = o.dt; }
extern "C" __global__ void vec(float *y, float4 v, long n) { y[0] = v.x + v.w + n; }
]]

local module

local function kernel(name)
  module = module or cg.module(source)
  return module:kernel(name)
end

local function settings(dt, n, z, last)
  return {
    dt = dt, n = n, table = cg.null, grid = { { 1, 2, 3 }, { 4, 5, last } },
    walls = {
      { low = { 0, 0, 0 }, high = { 1, 1, 1 } },
      { low = { 2, 2, 2 }, high = { 3, 3, z } },
    },
  }
end

describe("a parameter for a struct", function()
  teardown(function()
    module = nil
    device.nothing_alive()
  end)

  it("is set and read by field, wherever these lie", function()
    local y = cg.zeros("float", 4)
    local p = kernel "take":param("s", settings(0.5, 4, 7, -6))
    assert.equal("s", p:name())
    assert.same(settings(0.5, 4, 7, -6), p:get())
    local g = cg.capture(function() kernel "take":launch(1, 1, y, p) end)
    g:replay()
    assert.same({ 2, 7, -6, 0 }, y:download())
    p:set(settings(2, 8, 9, 11))
    g:replay()
    assert.same({ 16, 9, 11, 0 }, y:download())
    g:set { s = settings(1, 3, 5, 4) }
    kernel "take":launch(1, 1, y, p)
    assert.same({ 3, 5, 4, 0 }, y:download())
    assert.same(settings(1, 3, 5, 4), g:params()[1].value)
  end)

  it("refuses what a launch refuses, by field, and stays as it was", function()
    local y = cg.zeros("float", 1)
    local p = kernel "times":param(2, { dt = 1, n = 2 }, "half")
    local q = kernel "take":param(2, settings(1, 1, 1, 1))
    local g = cg.capture(function()
      kernel "times":launch(1, 1, y, p)
    end)
    slips(function() p:set { dt = 1 } end, "the parameter half lacks 'n'; every field needs")
    slips(function() p:set { dt = 1, n = 2, m = 3 } end, "the parameter half has no field 'm'")
    slips(function() p:set { dt = 1, n = 1.5 } end, "its field 'n' is 1.5")
    slips(function() p:set { 1, 2 } end, "fields go by name: 'dt', 'n'")
    slips(function() p:set(3) end)
    slips(function() p:set "short" end)
    slips(function() g:set { half = { n = 1 } } end, "graph:set", "lacks 'dt'")
    local wrong = settings(1, 1, 1, 1)
    wrong.walls[2].high[3] = "x"
    slips(function() q:set(wrong) end, "its field 'walls%[2%].high%[3%]'")
    slips(function() kernel "times":param("p", { dt = 1 }) end, "kernel argument 2 'p' lacks 'n'")
    assert.same({ dt = 1, n = 2 }, p:get())
    assert.same(settings(1, 1, 1, 1), q:get())
  end)

  it("is set with others, or none is", function()
    local y = cg.zeros("float", 1)
    local a, p = cg.param("float", 1, "a"), kernel "add":param("p", { dt = 1, n = 2 })
    local g = cg.capture(function() kernel "add":launch(1, 1, y, a, p) end)
    slips(function() g:set { a = 2, p = { dt = 3 } } end, "the parameter p lacks 'n'")
    slips(function() g:set { a = "x", p = { dt = 3, n = 4 } } end)
    assert.equal(1, a:get())
    assert.same({ dt = 1, n = 2 }, p:get())
    g:set { a = 2, p = { dt = 3, n = 4 } }
    g:replay()
    assert.equal(24, first(y))
  end)

  it("takes the struct's bytes, too", function()
    local y, p = cg.zeros("float", 1), kernel "times":param("p", { dt = 1, n = 1 })
    local ffi = require "ffi"
    p:set(ffi.new("struct { float dt; int n; }", 0.5, 6))
    assert.same({ dt = 0.5, n = 6 }, p:get())
    p:set("\0\0\0\64" .. "\3\0\0\0")
    kernel "times":launch(1, 1, y, p)
    assert.equal(6, first(y))
  end)

  it("stands in every kernel that takes the same fields, and in no other", function()
    local y, p = cg.zeros("float", 1), kernel "times":param("p", { dt = 2, n = 3 })
    kernel "add":launch(1, 1, y, 1, p)
    assert.equal(6, first(y))
    raises("CGL_ERROR_ARGUMENT_TYPE", function() kernel "swapped":launch(1, 1, y, p) end,
      "argument 2 of swapped", "a struct with other fields")
    raises("CGL_ERROR_ARGUMENT_TYPE", function() kernel "take":launch(1, 1, y, p) end, "8 uint8")
    local bytes = cg.param("uint8", ("\0"):rep(8))
    kernel "swapped":launch(1, 1, y, bytes)
    assert.equal(0, first(y))
  end)

  it("outlives the kernel that it was made with", function()
    local p = cg.kernel(source, "times"):param("p", { dt = 2, n = 3 })
    collectgarbage()
    collectgarbage()
    p:set { dt = 1, n = 1 }
    assert.same({ dt = 1, n = 1 }, p:get())
  end)

  it("is in bodies of both forms and in child graphs", function()
    for _, form in ipairs { "node", "predicated" } do
      local y, on = cg.zeros("float", 1), cg.full("int32", 1, 1)
      local p = kernel "add":param("p", { dt = 1, n = 1 })
      local child = cg.capture(function() kernel "add":launch(1, 1, y, 10, p) end,
        { keep_graph = true })
      local g = cg.capture(function()
        child:replay()
        cg.when(on, function() kernel "add":launch(1, 1, y, 1, p) end, nil, { form = form })
      end)
      g:replay()
      assert.equal(11, first(y))
      g:set { p = { dt = 2, n = 3 } }
      g:replay()
      assert.equal(77, first(y))
    end
  end)

  it("is listed with its fields", function()
    local y, p = cg.zeros("float", 1), kernel "times":param("p", { dt = 1, n = 2 })
    local g = cg.capture(function() kernel "times":launch(1, 1, y, p) end)
    local entry = g:params()[1]
    assert.same({ dt = 1, n = 2 }, entry.value)
    assert.same(kernel "times":parameters()[2].fields, entry.fields)
    assert.equal("uint8", entry.type)
  end)

  it("knows its fields in a graph from a file", function()
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local y = cg.zeros("float", 2)
    local p = kernel "walls":param("b", { low = { 1, 2, 3 }, high = { 4, 5, 6 } })
    local g = cg.capture(function() kernel "walls":launch(1, 1, y, p) end)
    g:save(path, { outputs = { y = y } })
    local loaded = cg.load(path)
    assert.same({ low = { 1, 2, 3 }, high = { 4, 5, 6 } }, loaded:params()[1].value)
    loaded:set { b = { low = { 7, 8, 9 }, high = { x = 0, y = 1, z = 2 } } }
    loaded:replay()
    assert.same({ 9, 2 }, loaded.outputs.y:download())
    slips(function() loaded:set { b = { low = { 1, 2, 3 } } } end, "the parameter b lacks 'high'")
    loaded:save(path)
    loaded = cg.load(path)
    assert.same({ low = { 7, 8, 9 }, high = { 0, 1, 2 } }, loaded:params()[1].value)
  end)
end)

describe("kernel:param", function()
  teardown(function()
    module = nil
    device.nothing_alive()
  end)

  it("has the very type of a number and of a vector", function()
    local y = cg.zeros("float", 1)
    local v = kernel "vec":param("v", { x = 1, y = 2, z = 3, w = 4 })
    local n = kernel "vec":param(3, 5, "n")
    assert.equal("float4", v:type())
    assert.equal("int64", n:type())
    kernel "vec":launch(1, 1, y, v, n)
    assert.equal(10, first(y))
    v:set { 2, 0, 0, 0 }
    kernel "vec":launch(1, 1, y, v, n)
    assert.equal(7, first(y))
  end)

  it("refuses pointers, and what the kernel does not take", function()
    local y = cg.zeros("float", 1)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() kernel "vec":param("y", y) end,
      "argument 1 of vec", "no number and no struct", "cg.input")
    raises("CGL_ERROR_ARGUMENT_RANGE", function() kernel "vec":param("n", 1.5) end,
      "argument 3 of vec")
    slips(function() kernel "vec":param("m", 1) end, "vec has no parameter 'm'")
    slips(function() kernel "vec":param(4, 1) end, "vec has no parameter 4")
    slips(function() kernel "vec":param("v", { 1, 2 }) end, "takes 4 numbers, got 2")
    slips(function() kernel "vec":param("n") end, "is nil")
    slips(function() kernel "vec":param("n", 1, {}) end, "the name")
  end)
end)
