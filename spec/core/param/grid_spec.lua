-- Parameters as grids: extents, and the number of threads that a grid holds.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local first, raises, slips = device.first, device.raises, device.slips

-- y[0 .. 2]: blocks along x, y and z; y[3]: launches.
local source = [[
extern "C" __global__ void shape(int *y) {
  if (blockIdx.x || blockIdx.y || blockIdx.z || threadIdx.x) return;
  y[0] = gridDim.x; y[1] = gridDim.y; y[2] = gridDim.z; y[3] += 1;
}
extern "C" __global__ void add(int *y, int n, int a) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a;
}
extern "C" __global__ void ones(int *y) { atomicAdd(y, 1); }
]]

local module

local function kernel(name)
  module = module or cg.module(source)
  return module:kernel(name)
end

local function shape_of(y)
  local t = y:download()
  return { t[1], t[2], t[3] }
end

describe("a parameter as a grid", function()
  teardown(function()
    module = nil
    device.nothing_alive()
  end)

  it("is each extent, alone or beside numbers", function()
    local y, n, m = cg.zeros("int32", 4), cg.param("int32", 2, "n"), cg.param("uint64", 3, "m")
    for _, case in ipairs {
      { n, { 2, 1, 1 }, { 5, 1, 1 } }, { { n }, { 2, 1, 1 }, { 5, 1, 1 } },
      { { 4, n }, { 4, 2, 1 }, { 4, 5, 1 } }, { { n, 7, m }, { 2, 7, 3 }, { 5, 7, 6 } },
      { { m, n, n, shared = 64 }, { 3, 2, 2 }, { 6, 5, 5 } },
    } do
      n:set(2)
      m:set(3)
      kernel "shape":launch(case[1], 32, y)
      assert.same(case[2], shape_of(y))
      local g = cg.capture(function() kernel "shape":launch(case[1], 32, y) end)
      y:fill(0)
      g:replay()
      assert.same(case[2], shape_of(y))
      n:set(5)
      m:set(6)
      g:replay()
      assert.same(case[3], shape_of(y))
      assert.same(case[3], g:nodes()[1].grid)
    end
  end)

  it("runs as many blocks, larger and smaller", function()
    local y, n = cg.zeros("int32", 1), cg.param("int32", 1, "n")
    local g = cg.capture(function() kernel "ones":launch(n, 4, y) end)
    local sum = 0
    for _, blocks in ipairs { 1, 300, 2, 17, 1 } do
      g:set { n = blocks }
      g:replay()
      sum = sum + 4 * blocks
      assert.equal(sum, first(y))
    end
  end)

  it("is the number of threads, which the kernel may take as well", function()
    local size = kernel "add":block_size()
    local y, n = cg.zeros("int32", 5 * size), cg.param("int32", 10, "n")
    local over = kernel "add":over(n)
    local g = cg.capture(function() over(y, n, 1) end)
    local sums = {}
    for i = 1, 5 * size do sums[i] = 0 end
    for _, count in ipairs { 10, 3 * size, 3 * size + 1, 0, 1, 5 * size } do
      n:set(count)
      g:replay()
      assert.equal(math.max(math.ceil(count / size), 1), g:nodes()[1].grid[1])
      over(y, n, 2)
      for i = 1, count do sums[i] = sums[i] + 3 end
      assert.same(sums, y:download())
    end
  end)

  it("refuses what is no grid, and the next replay looks again", function()
    local y, n = cg.zeros("int32", 4), cg.param("double", 2, "n")
    local g = cg.capture(function() kernel "shape":launch({ 1, n }, 1, y) end)
    for _, wrong in ipairs { 0, -1, 1.5, 65536, 1e300, 0 / 0 } do
      n:set(wrong)
      raises("CGL_ERROR_INVALID_ARGUMENT", function() g:replay() end,
        "blocks along y of the grid of shape", "captured at .*grid_spec.lua:93; 1 to 65535")
      raises("CGL_ERROR_INVALID_ARGUMENT", function() kernel "shape":launch({ 1, n }, 1, y) end,
        "blocks along y of the grid of shape; 1 to")
      n:set(3)
      g:replay()
      assert.same({ 1, 3, 1 }, shape_of(y))
    end
    local threads = cg.param("int32", -1)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() kernel "add":over(threads)(y, 1, 1) end,
      "%-1 threads along x")
    raises("CGL_ERROR_ARGUMENT_TYPE", function()
      kernel "shape":launch(cg.param("int32", { 1, 2 }), 1, y)
    end, "one number is wanted")
    slips(function() kernel "shape":launch(1, cg.param("int32", 1), y) end, "block must be")
    slips(function() kernel "shape":launch({ 1, y }, 1, y) end, "grid.y must be")
    local gone = cg.param("int32", 1)
    local over = kernel "add":over(gone)
    gone:release()
    raises("CGL_ERROR_RELEASED", function() over(y, 1, 1) end)
    raises("CGL_ERROR_RELEASED", function() kernel "shape":launch(gone, 1, y) end)
  end)

  it("is listed with its uses, and stays one when set_params changes the rest", function()
    local y, n = cg.zeros("int32", 64), cg.param("int32", 4, "n")
    local g = cg.capture(function()
      kernel "add":over(n)(y, n, 1)
      kernel "shape":launch({ 1, 1, n }, 1, y)
    end)
    local uses = g:params()[1].uses
    assert.same({ 2, "grid.x", "grid.z" }, { uses[1].argument, uses[2].argument, uses[3].argument })
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(2, { grid = 3 }) end,
      "the grid of the launch of shape is a parameter")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(1, { block = 3 }) end)
    g:set_params(1, { a = 5, n = 2 })
    g:set { n = 9 }
    g:replay()
    local t = y:download()
    assert.same({ 1, 1, 9, 1 }, { t[1], t[2], t[3], t[4] })
    y:fill(0)
    g:set_enabled(2, false)
    g:replay()
    assert.same({ 5, 5, 0 }, { unpack(y:download(), 1, 3) })
    assert.equal(2, #g:params()[1].uses)
  end)

  it("has a change in copies of an unrolled loop, in child graphs and in bodies", function()
    local y, n = cg.zeros("int32", 1), cg.param("int32", 1, "n")
    local g = cg.capture(function() kernel "ones":launch(n, 2, y) end, { keep_graph = true })
    g:replay(70)
    n:set(3)
    g:replay(70)
    assert.equal(70 * 2 + 70 * 6, first(y))
    local on = cg.full("int32", 1, 1)
    local around = cg.capture(function()
      g:replay()
      cg.when(on, function() kernel "ones":launch(n, 2, y) end, nil, { form = "node" })
    end)
    y:fill(0)
    around:replay()
    assert.equal(12, first(y))
    n:set(40)
    around:replay()
    assert.equal(12 + 160, first(y))
    n:set(0)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() around:replay() end, "0 blocks along x")
  end)

  it("makes a body a node's, and is refused where the script asks for the other form", function()
    local y, n, on = cg.zeros("int32", 1), cg.param("int32", 1, "n"), cg.full("int32", 1, 1)
    local function body() kernel "ones":launch(n, 1, y) end
    local g = cg.capture(function() cg.when(on, body) end)
    n:set(6)
    g:replay()
    assert.equal(6, first(y))
    raises("CGL_ERROR_INVALID_ARGUMENT", function()
      cg.capture(function() cg.when(on, body, nil, { form = "predicated" }) end)
    end, "its grid is a parameter")
  end)

  it("is a parameter in graphs from files", function()
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    local x, y, n = cg.zeros("int32", 1000), cg.zeros("int32", 4), cg.param("int32", 2, "n")
    local g = cg.capture(function()
      kernel "add":over(n)(x, n, 1)
      kernel "shape":launch({ n, 2 }, 1, y)
    end, { order = "data" })
    g:save(path, { outputs = { x = x, y = y } })
    local loaded = cg.load(path)
    loaded:set { n = 700 }
    loaded:replay()
    assert.same({ 700, 2, 1 }, shape_of(loaded.outputs.y))
    assert.equal(1, loaded.outputs.x:download()[700])
    assert.equal(0, loaded.outputs.x:download()[701])
    loaded:save(path, { outputs = loaded.outputs })
    loaded = cg.load(path)
    loaded:replay()
    assert.same({ 700, 2, 1 }, shape_of(loaded.outputs.y))
    loaded:set { n = -1 }
    raises("CGL_ERROR_INVALID_ARGUMENT", function() loaded:replay() end)
  end)

  it("leaves what eager launches leave, whatever is set between replays", function()
    math.randomseed(1)
    for _ = 1, 60 do
      local x, twin = cg.zeros("int32", 600), cg.zeros("int32", 600)
      local p = { cg.param("int32", 5), cg.param("int64", 2), cg.param("int32", 1) }
      local function step(y, of)
        kernel "add":launch(of[2], 64, y, of[1], 1)
        kernel "add":over(of[1])(y, of[1], of[3])
        kernel "ones":launch({ of[2], 2, of[2] }, 3, y)
      end
      local g = cg.capture(function() step(x, p) end,
        { order = math.random(2) == 1 and "data" or nil, keep_graph = true })
      local v = { 5, 2, 1 }
      for _ = 1, 8 do
        local i, n = math.random(3), math.random(6) == 1 and 70 or math.random(2)
        v[i] = i == 1 and math.random(600) or math.random(9)
        p[i]:set(v[i])
        if math.random(3) > 1 then
          g:replay(n)
          for _ = 1, n do step(twin, v) end
          assert.same(twin:download(), x:download())
        end
        if math.random(8) == 1 then g:instantiate() end
      end
    end
  end)
end)
