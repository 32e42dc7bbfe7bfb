-- algo.map: expressions for every element, beside plain Lua.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

-- n numbers f(1) .. f(n) of a type.
local function numbers(type, n, f)
  local list = {}
  for i = 1, n do list[i] = f(i) end
  return cg.from(list, type), list
end

describe("algo.map", function()
  teardown(device.nothing_alive)

  it("computes every element, of sizes from none to many blocks", function()
    for _, n in ipairs { 0, 1, 31, 257, 1009, 4096, 2 ^ 16 + 1 } do
      local x, list = numbers("float", n, function(i) return i % 91 end)
      local y, out = cg.full("float", n, 10), cg.buffer("float", n)
      assert.equal(out, algo.map("a * x + y", { a = 0.5, x = x, y = y }, out))
      for i, v in ipairs(out:download()) do assert.equal(0.5 * list[i] + 10, v) end
    end
  end)

  it("takes all types, and converts as C does", function()
    for _, type in ipairs { "float", "double", "int8", "uint8", "int16", "uint16", "int32",
                            "uint32", "int64", "uint64", "half", "bfloat16" } do
      local x, out = numbers(type, 100, function(i) return i end), cg.buffer(type, 100)
      algo.map("x + (x > 50)", { x = x }, out)
      for i, v in ipairs(out:download()) do
        local wanted = i + (i > 50 and 1 or 0)
        assert.equal(wanted, tonumber(v), type)
      end
    end
    local flags = cg.buffer("bool", 3)
    algo.map("x > 1 && !isnan(x)", { x = cg.from({ 1, 2, 0 / 0 }, "float") }, flags)
    assert.same({ false, true, false }, flags:download())
    local whole = cg.buffer("int32", 2)
    algo.map("k * x / 2", { k = 3, x = cg.from({ 3, 2 ^ 24 + 1 }, "int32") }, whole)
    assert.same({ 4, (3 * (2 ^ 24 + 1) - 1) / 2 }, whole:download())
  end)

  it("has the functions and operators of C, min and max that keep a NaN, and i", function()
    local x = cg.from({ 4, 9, 0 / 0, -1 }, "double")
    local function values(text)
      return algo.map(text, { x = x }, cg.buffer("double", 4)):download()
    end
    assert.same({ 2, 3 }, { unpack(values "sqrt(x)", 1, 2) })
    assert.same({ 4, 5 }, { unpack(values "min(x, 5)", 1, 2) })
    local most = values "max(x, 5)"
    assert.is_true(most[3] ~= most[3] and most[4] == 5)
    assert.same({ 0, 1, 2, 3 }, values "i")
    assert.same({ 16, 81, 1 }, (function(t) return { t[1], t[2], t[4] } end)(values "pow(x, 2.0)"))
    assert.equal(1, values "x < 0 ? -x : 0"[4])
    assert.equal(1, values "abs(x)"[4])
    assert.equal(2.5e-3, values "0 * i + 2.5e-3"[1])
    assert.equal(4, values "- -x"[1])
  end)

  it("has every function, of floats, doubles and integers", function()
    local text = "0"
    for name in ("asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp10 exp2 expm1 fabs "
      .. "floor isfinite isinf isnan log1p rint round sin sinh sqrt tan tanh trunc"):gmatch "%w+" do
      text = text .. " + " .. name .. "(x)"
    end
    text = text .. " + acos(x + 1) + acosh(x + 1) + log(x + 1) + log2(x + 1) + log10(x + 1) "
      .. "+ rsqrt(x + 1) + atan2(x, 1) + copysign(x, x) + fmod(x, 2) + hypot(x, 0) + pow(x, 2) "
      .. "+ fma(x, x, x)"
    -- At 0: cos, cosh, erfc, exp, exp10, exp2, isfinite and rsqrt are 1.
    for _, type in ipairs { "float", "double", "int32" } do
      local out = algo.map(text, { x = cg.zeros(type, 1) }, cg.buffer("double", 1))
      assert(math.abs(out:item() - 8) < 1e-6, type)
    end
  end)

  it("computes floats as floats", function()
    local x, out = cg.from({ 0.1 }, "float"), cg.buffer("bool", 1)
    algo.map("x == 0.1", { x = x }, out)
    assert.is_true(out:item())
  end)

  it("reads one element for all, and writes to an input and to views", function()
    local x, s = cg.from({ 1, 2, 3, 4, 5 }, "float"), cg.from({ 10 }, "float")
    algo.map("x / s", { x = x, s = s }, x)
    assert.same({ 0.5 }, { (x:view(5, 1):item()) })
    algo.map("2 * x", { x = x:view(1, 2) }, x:view(4, 2))
    assert.equal(device.bits(cg.from({ 0.1, 0.2, 0.3, 0.2, 0.4 }, "float")), device.bits(x))
  end)

  it("is captured with what it reads and writes, and replays with other contents", function()
    local x, out, y = cg.full("float", 1000, 1), nil, cg.buffer("float", 1000)
    local g = cg.capture(function()
      out = cg.buffer("float", 1000)
      algo.map("x + 1", { x = x }, out)
      algo.map("out * k", { out = out, k = 3 }, y)
    end)
    assert.equal("kernel kernel", device.kinds(g))
    assert.is_true(g:writes(y))
    assert.is_false(g:writes(x))
    g:replay()
    assert.equal(6, device.value(y))
    x:fill(4)
    g:replay()
    assert.equal(15, device.value(y))
  end)

  it("runs in the body of a loop that it ends itself", function()
    local x, more = cg.from({ 1 }, "float"), cg.from({ true }, "bool")
    local g = cg.capture(function()
      cg.loop(more, function()
        algo.map("2 * x", { x = x }, x)
        algo.map("x < 100", { x = x }, more)
      end)
    end)
    g:replay()
    assert.equal(128, x:item())
  end)

  it("refuses what is no expression of its inputs, at the script's line", function()
    local x = cg.zeros("float", { 2, 3 })
    for text, pattern in pairs {
      ["x = 1"] = "has a '='", ["x; y"] = "has a ';'", ["x)"] = "has a '%)'",
      ["(x"] = "ends too early",
      ["y"] = "'y', which is neither", ["2x"] = "has a 'x'", ["x[0]"] = "has a '%['",
      ['"x"'] = "has a '\"'", ["asm(x)"] = "'asm', which is neither", ["1.2.3"] = "has a '%.'",
    } do
      device.raises("CGL_ERROR_INVALID_ARGUMENT", function() algo.map(text, { x = x }, x) end,
        pattern, "map_spec.lua:%d+: algo.map")
    end
    device.raises("CGL_ERROR_COMPILE", function() algo.map("x % x", { x = x }, x) end,
      'the expression "x %% x"')
    device.raises("CGL_ERROR_COMPILE", function() algo.map("x + ", { x = x }, x) end)
  end)

  it("refuses inputs of other shapes, with both, and what overlaps", function()
    local x = cg.zeros("float", { 2, 3 })
    device.raises("CGL_ERROR_INVALID_ARGUMENT",
      function() algo.map("y", { y = cg.zeros("half", 4) }, x) end,
      "input 'y' is {4} half, and the result {2, 3} float")
    device.raises("CGL_ERROR_INVALID_ARGUMENT",
      function() algo.map("y", { y = x:view(1, 3) }, x:view(2, 3)) end, "'y' overlaps")
    device.raises("CGL_ERROR_INVALID_ARGUMENT", function() algo.map("i", { i = x }, x) end,
      "cannot have the name 'i'")
    device.raises("CGL_ERROR_INVALID_ARGUMENT",
      function() algo.map("x", { ["x y"] = x }, x) end, "cannot have the name 'x y'")
    local gone = cg.zeros("float", 6)
    gone:release()
    device.raises("CGL_ERROR_RELEASED", function() algo.map("y", { y = gone }, x) end, "'y'")
    device.slips(function() algo.map("y", { y = "1" }, x) end, "input 'y' must be a buffer")
    device.slips(function() algo.map("1", 3, x) end, "table of inputs")
    device.slips(function() algo.map("1", { 3 }, x) end, "name must be a string")
    local many = {}
    for i = 1, 17 do many["x" .. i] = i end
    device.slips(function() algo.map("x1", many, x) end, "at most 16")
  end)

  it("leaves a capture whole when it is refused", function()
    local x = cg.zeros("float", 8)
    local g = cg.capture(function()
      assert.is_false(pcall(algo.map, "y", { x = x }, x))
      algo.map("x + 1", { x = x }, x)
    end)
    g:replay(2)
    assert.equal(2, device.value(x))
  end)

  it("names the nearest function", function()
    local _, text = device.fails(function() return algo.mapp end)
    assert.matches("no 'mapp'; did you mean 'map'", text)
  end)
end)

describe("buffer:item", function()
  teardown(device.nothing_alive)

  it("is the only element, and refuses several", function()
    assert.equal(7, cg.full("int8", 1, 7):item())
    assert.is_true(cg.full("bool", 1, true):item())
    assert.equal("9007199254740993LL", tostring(cg.from({ "9007199254740993" }, "int64"):item()))
    device.raises("CGL_ERROR_INVALID_ARGUMENT", function() cg.zeros("float", 3):item() end,
      "has 3 elements, not one", "view%(i, 1%):item")
    device.raises("CGL_ERROR_INVALID_ARGUMENT", function() cg.zeros("float", 0):item() end)
  end)
end)
