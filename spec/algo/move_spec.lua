-- algo.gather, scatter, select and transpose: beside plain Lua.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local function list(n, f)
  local t = {}
  for i = 1, n do t[i] = f(i) end
  return t
end

describe("algo.gather and algo.scatter", function()
  teardown(device.nothing_alive)

  it("move elements of every size by indices of every type", function()
    for type, indices_of in pairs { int8 = "int32", half = "uint32", float = "int64",
                                    double = "uint64" } do
      for _, index in ipairs { indices_of } do
        local n = 1009
        local at = list(n, function(i) return i * 7 % n end)
        local x = cg.from(list(n, function(i) return i % 100 end), type)
        local indices = cg.from(at, index)
        local out = algo.gather(x, indices)
        for i, v in ipairs(out:download()) do assert.equal((at[i] + 1) % 100, v) end
        assert.equal(device.bits(x), device.bits(algo.scatter(out, indices, cg.zeros(type, n))))
      end
    end
  end)

  it("read 0 and write nothing where there is no such element", function()
    local x, indices = cg.from({ 5, 6, 7 }, "float"), cg.from({ 2, -1, 3, 0 }, "int32", { 2, 2 })
    local out = algo.gather(x, indices)
    assert.same({ 2, 2 }, out.shape)
    assert.same({ 7, 0, 0, 5 }, out:download())
    local to = cg.full("float", 3, 9)
    algo.scatter(cg.from({ 1, 2, 3, 4 }, "float"), indices, to)
    assert.same({ 4, 9, 1 }, to:download())
    assert.equal(0, #algo.gather(x, cg.zeros("int64", 0)))
  end)

  it("refuse other types and sizes, with both", function()
    local x, indices = cg.zeros("float", 3), cg.zeros("int32", 2)
    local function refused(fn, ...) device.raises("CGL_ERROR_INVALID_ARGUMENT", fn, ...) end
    refused(function() algo.gather(x, x) end, "indices of type float")
    refused(function() algo.gather(x, indices, { out = cg.zeros("float", 3) }) end,
      "{3} float for indices of {2} int32")
    refused(function() algo.gather(x, indices, { out = cg.zeros("double", 2) }) end,
      "{3} float do not go to {2} double")
    refused(function() algo.gather(x, indices, { out = x:view(1, 2) }) end, "shares memory")
    refused(function() algo.scatter(x, indices, cg.zeros("float", 9)) end, "{3} float for indices")
    device.slips(function() algo.gather(x, indices, { to = x }) end, "to")
  end)
end)

describe("algo.select", function()
  teardown(device.nothing_alive)

  it("keeps the elements that have a flag, in order, and their number on the device", function()
    for _, n in ipairs { 0, 1, 1000, 70001 } do
      local x = cg.from(list(n, function(i) return i end), "int32")
      local flags = algo.map("x % 3 == 1", { x = x }, cg.buffer("bool", n))
      local out, count = algo.select(x, flags)
      local wanted = math.ceil(n / 3)
      assert.equal(wanted, count:item())
      assert.equal(n, #out)
      for i, v in ipairs(out:download()) do
        if i > wanted then break end
        assert.equal(3 * i - 2, v)
      end
    end
  end)

  it("is captured, and replays with other flags", function()
    local x, flags = cg.from({ 1, 2, 3, 4 }, "double"), cg.full("bool", 4, true)
    local out, count = cg.zeros("double", 4), cg.zeros("int64", 1)
    local g = cg.capture(function() algo.select(x, flags, { out = out, count = count }) end)
    g:replay()
    assert.equal(4, count:item())
    flags:upload { false, true, false, true }
    g:replay()
    assert.equal(2, count:item())
    assert.same({ 2, 4, 3, 4 }, out:download())
  end)

  it("refuses other types and sizes, with both", function()
    local x, flags = cg.zeros("float", 3), cg.zeros("bool", 3)
    local function refused(fn, ...) device.raises("CGL_ERROR_INVALID_ARGUMENT", fn, ...) end
    refused(function() algo.select(x, cg.zeros("int8", 3)) end, "flags of type int8", "algo.map")
    refused(function() algo.select(x, cg.zeros("bool", 4)) end, "{4} bool for flags of {3} float")
    refused(function() algo.select(x, flags, { out = cg.zeros("float", 2) }) end, "{2} float")
    refused(function() algo.select(x, flags, { count = cg.zeros("int32", 1) }) end, "no int64")
    refused(function() algo.select(x, flags, { out = x }) end, "shares memory")
  end)
end)

describe("algo.transpose", function()
  teardown(device.nothing_alive)

  it("makes rows of columns, of every size", function()
    for _, type in ipairs { "uint8", "bfloat16", "int32", "uint64" } do
      for _, shape in ipairs { { 1, 1 }, { 3, 5 }, { 33, 64 }, { 100, 7 }, { 0, 4 } } do
        local rows, columns = unpack(shape)
        local x = cg.from(list(rows * columns, function(i) return i % 251 end), type, shape)
        local out = algo.transpose(x)
        assert.same({ columns, rows }, out.shape)
        assert.equal(device.bits(x), device.bits(algo.transpose(out)))
        local t = out:download()
        for j = 1, columns do
          for i = 1, rows do
            local wanted = type ~= "bfloat16" and ((i - 1) * columns + j) % 251
            assert(not wanted or t[(j - 1) * rows + i] == wanted)
          end
        end
      end
    end
  end)

  it("refuses what has no rows and columns", function()
    local function refused(fn, ...) device.raises("CGL_ERROR_INVALID_ARGUMENT", fn, ...) end
    local x = cg.zeros("float", { 2, 3 })
    refused(function() algo.transpose(cg.zeros("float", 6)) end, "{6} float has no rows")
    refused(function() algo.transpose(x, { out = cg.zeros("float", 5) }) end, "{5} float", "{2, 3}")
    refused(function() algo.transpose(x, { out = x }) end, "shares memory")
  end)
end)
