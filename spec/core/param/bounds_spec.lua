-- Parameters as the bounds of draws: low and high, mean and deviation.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

local COUNT = 37

-- What eager draws of numbers leave, beginning with the seed.
local function eager(type, seed, draws)
  local generator, x = cg.generator(seed), cg.zeros(type, COUNT)
  for _, draw in ipairs(draws) do x[draw[1]](x, generator, draw[2], draw[3]) end
  return x:download()
end

-- A graph that draws once with parameters that begin as 0 and 1.
local function drawing(type, method, of, opts)
  local generator, x = cg.generator(5), cg.zeros(type, COUNT)
  local a, b = cg.param(of, 0, "a"), cg.param(of, 1, "b")
  local g = cg.capture(function() x[method](x, generator, a, b) end, opts)
  return g, x, a, b
end

describe("a parameter as a bound", function()
  teardown(device.nothing_alive)

  for _, type in ipairs { "float", "double", "half", "bfloat16" } do
    for _, method in ipairs { "uniform", "normal" } do
      it(("gives %s of %s what the number gives"):format(method, type), function()
        local g, x, a, b = drawing(type, method, "double")
        g:replay()
        assert.same(eager(type, 5, { { method, 0, 1 } }), x:download())
        a:set(1.25)
        b:set(3.3)
        g:replay()
        assert.same(eager(type, 5, { { method, 0, 1 }, { method, 1.25, 3.3 } }), x:download())
        g:set { a = 7, b = 7 }
        g:replay()
        assert.same(eager(type, 5, { { method, 0, 1 }, { method, 0, 1 }, { method, 7, 7 } }),
          x:download())
      end)
    end
  end

  for _, type in ipairs { "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                          "uint64" } do
    it(("gives random of %s what the number gives"):format(type), function()
      local g, x, a, b = drawing(type, "random", "double")
      g:replay()
      assert.same(eager(type, 5, { { "random", 0, 1 } }), x:download())
      a:set(3)
      b:set(103)
      g:replay()
      assert.same(eager(type, 5, { { "random", 0, 1 }, { "random", 3, 103 } }), x:download())
      g:set { a = 0, b = 128 }
      g:replay()
      assert.same(eager(type, 5, { { "random", 0, 1 }, { "random", 0, 1 }, { "random", 0, 128 } }),
        x:download())
    end)
  end

  it("is whole, and the largest that the type has", function()
    local x, high = cg.zeros("int64", COUNT), cg.param("int64", "9223372036854775807")
    local low = cg.param("int64", "9223372036854775806")
    local g = cg.capture(function() x:random(cg.generator(5), low, high) end)
    g:replay()
    assert.equal("9223372036854775806LL", tostring(x:download()[COUNT]))
    local y, n = cg.zeros("uint32", COUNT), cg.param("double", 2 ^ 32)
    cg.manual_seed(5)
    y:random(n)
    assert.same(eager("uint32", 5, { { "random" } }), y:download())
    local bits, two = cg.zeros("bool", COUNT), cg.param("int32", 2, "two")
    local h = cg.capture(function() bits:random(two) end)
    h:set { two = 1 }
    h:replay()
    assert.same({ false }, { bits:download()[COUNT] })
    for _, wrong in ipairs { 0, -1, 3 } do
      h:set { two = wrong }
      raises("CGL_ERROR_INVALID_ARGUMENT", function() h:replay() end,
        "no range of whole numbers of bool", "the draw captured at .*bounds_spec.lua")
    end
    n:set(2.5)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() y:random(n) end, "0 to below 2.5 is no range")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() x:random(-2 ^ 33, n) end, "up to 2^32 numbers")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() cg.zeros("float", 2):random(n) end,
      "does not hold whole numbers")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() x:uniform(n, 2) end, "cannot hold such numbers")
  end)

  it("may be of any type of numbers", function()
    for _, of in ipairs { "float", "half", "bfloat16", "int8", "uint8", "int16", "uint16", "int32",
                          "uint32", "int64", "uint64" } do
      local g, x = drawing("float", "uniform", of)
      g:set { b = 6, a = of:find "^u" and 2 or -2 }
      g:replay()
      assert.same(eager("float", 5, { { "uniform", of:find "^u" and 2 or -2, 6 } }), x:download())
    end
  end)

  it("stands beside a number, and without a generator", function()
    local x, high = cg.zeros("float", COUNT), cg.param("float", 1, "high")
    cg.manual_seed(5)
    x:uniform(high, 2)
    assert.same(eager("float", 5, { { "uniform", 1, 2 } }), x:download())
    cg.manual_seed(5)
    local g = cg.capture(function() x:uniform(-1, high) end)
    g:set { high = 4 }
    g:replay()
    assert.same(eager("float", 5, { { "uniform", -1, 4 } }), x:download())
    assert.equal(2, g:params()[1].uses[1].argument)
  end)

  it("refuses a replay with what is no range, and the next one looks again", function()
    local g, x, a, b = drawing("float", "uniform", "float")
    g:replay()
    a:set(2)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:replay() end, "2 to 1 is no range of float",
      "the draw captured at .*bounds_spec.lua:21", "the lower one first")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() g:replay(3) end, "no range")
    b:set(3)
    g:replay()
    assert.same(eager("float", 5, { { "uniform", 0, 1 }, { "uniform", 2, 3 } }), x:download())
    local h, y = drawing("half", "normal", "double")
    h:set { a = 1e6 }
    raises("CGL_ERROR_INVALID_ARGUMENT", function() h:replay() end, "no distribution of half")
    h:set { a = 0, b = -1 }
    raises("CGL_ERROR_INVALID_ARGUMENT", function() h:replay() end, "not negative")
    h:set { b = 2 }
    h:replay()
    assert.same(eager("half", 5, { { "normal", 0, 2 } }), y:download())
  end)

  it("refuses a draw that its value cannot have, and parameters of several numbers", function()
    local x, two = cg.zeros("float", COUNT), cg.param("float", 2)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() x:uniform(two, 1) end, "2 to 1 is no range")
    for _, p in ipairs { cg.param("float", { 1, 2 }), cg.param("float2", { 1, 2 }),
                         cg.param("bool", true) } do
      raises("CGL_ERROR_ARGUMENT_TYPE", function() x:uniform(0, p) end, "one number is wanted")
    end
    raises("CGL_ERROR_INVALID_ARGUMENT", function() cg.zeros("int32", 1):uniform(two, 3) end)
    slips(function() x:uniform(0, x) end)
  end)

  it("has a change in copies of an unrolled loop, in child graphs and in bodies", function()
    local g, x, a, b = drawing("float", "uniform", "float", { keep_graph = true })
    g:replay(70)
    b:set(9)
    g:replay(70)
    local draws = {}
    for i = 1, 140 do draws[i] = { "uniform", 0, i > 70 and 9 or 1 } end
    assert.same(eager("float", 5, draws), x:download())
    local on, n = cg.full("int32", 1, 1), 140
    local around = cg.capture(function()
      g:replay()
      cg.when(on, function() g:replay() end, nil, { form = "node" })
    end)
    for _, low in ipairs { -3, 2 } do
      a:set(low)
      around:replay()
      draws[n + 1], draws[n + 2] = { "uniform", low, 9 }, { "uniform", low, 9 }
      n = n + 2
      assert.same(eager("float", 5, draws), x:download())
    end
    a:set(10)
    raises("CGL_ERROR_INVALID_ARGUMENT", function() around:replay() end, "10 to 9 is no range")
  end)

  it("leaves what eager draws leave, whatever is set between replays", function()
    math.randomseed(1)
    for round = 1, 60 do
      local x, y, v = cg.zeros("float", COUNT), cg.zeros("half", COUNT), { 0, 1, 2 }
      local mine, twin = cg.generator(round), cg.generator(round)
      local ex, ey = cg.zeros("float", COUNT), cg.zeros("half", COUNT)
      local p = { cg.param("float", 0), cg.param("int32", 1), cg.param("double", 2) }
      local fixed = math.random(3, 9)
      local function draw(generator, a, b, of)
        a:uniform(generator, of[1], of[2])
        b:normal(generator, of[2], of[3])
        a:normal(generator, fixed, of[3])
        b:uniform(generator, of[1], fixed)
      end
      local g = cg.capture(function() draw(mine, x, y, p) end,
        { order = math.random(2) == 1 and "data" or nil, keep_graph = true })
      for _ = 1, 8 do
        local i, n = math.random(3), math.random(6) == 1 and 70 or math.random(2)
        v[i] = i == 1 and -math.random(0, 99) / 4 or math.random(0, 3)
        p[i]:set(v[i])
        if math.random(3) > 1 then
          g:replay(n)
          for _ = 1, n do draw(twin, ex, ey, v) end
          assert.same(ex:download(), x:download())
          assert.same(ey:download(), y:download())
        end
        if math.random(8) == 1 then g:instantiate() end
      end
    end
  end)

  it("is a parameter in graphs from files, and checked there", function()
    local path = os.tmpname()
    finally(function() os.remove(path) end)
    for method, type in pairs { uniform = "double", normal = "double", random = "int64" } do
      local g, x = drawing(type, method, "float", { order = "data" })
      g:set { b = 4 }
      g:save(path, { outputs = { x = x } })
      local loaded = cg.load(path)
      loaded:replay()
      assert.same(eager(type, 5, { { method, 0, 4 } }), loaded.outputs.x:download())
      loaded:set { a = -1, b = 2 }
      loaded:replay()
      assert.same(eager(type, 5, { { method, 0, 4 }, { method, -1, 2 } }),
        loaded.outputs.x:download())
      loaded:set { b = -2 }
      raises("CGL_ERROR_INVALID_ARGUMENT", function() loaded:replay() end, "no ")
    end
  end)
end)
