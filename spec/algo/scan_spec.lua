-- algo.scan: beside plain Lua.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local function number(v)
  if type(v) == "boolean" then return v and 1 or 0 end
  return tonumber(v)
end

local joins = {
  sum = function(a, b) return a + b end,
  min = math.min,
  max = math.max,
}

-- Compares with the scan of a list, from what stands before the first.
local function check(list, start, kind, exclusive, out, precision)
  local before = start
  for i, v in ipairs(out:download()) do
    local upto = joins[kind](before, number(list[i]))
    local wanted = exclusive and before or upto
    if math.abs(wanted - number(v)) > (precision or 0) * math.abs(wanted) then
      error(("%s %d: %s, not %s"):format(kind, i, tostring(v), wanted))
    end
    before = upto
  end
end

local function values(type, n)
  local list = {}
  for i = 1, n do
    if type == "bool" then list[i] = i % 7 < 3 else list[i] = i * 7919 % 101 % 4 end
  end
  return list
end

describe("algo.scan", function()
  teardown(device.nothing_alive)

  it("sums all types, inclusive and exclusive, of sizes from none to many blocks", function()
    for _, type in ipairs { "float", "double", "int8", "uint8", "int16", "uint16", "int32",
                            "uint32", "int64", "uint64", "half", "bfloat16", "bool" } do
      for _, n in ipairs { 0, 1, 31, 1009, 2048, 2049, 4097 } do
        local list = values(type, n)
        local x = cg.from(list, type)
        for _, exclusive in ipairs { false, true } do
          check(list, 0, "sum", exclusive, algo.scan(x, "sum", { exclusive = exclusive }),
            type == "bfloat16" and 2 ^ -8 or type == "half" and 2 ^ -11)
        end
      end
    end
  end)

  it("joins blocks and chunks in order", function()
    for _, type in ipairs { "int32", "double" } do
      local list = values(type, 2 ^ 18 + 1)
      local x = cg.from(list, type)
      check(list, 0, "sum", false, algo.scan(x, "sum"))
      check(list, 0, "sum", true, algo.scan(x, "sum", { exclusive = true }))
    end
    local list = {}
    for i = 1, 2 ^ 17 + 5 do list[i] = i * 7919 % 100003 end
    local x = cg.from(list, "int32")
    check(list, -math.huge, "max", false, algo.scan(x, "max"))
    check(list, 2 ^ 31 - 1, "min", true, algo.scan(x, "min", { exclusive = true }))
  end)

  it("joins more blocks than one looks back at, of views and beside them", function()
    local n = 2 ^ 21 + 2 ^ 13 + 5
    for _, type in ipairs { "int32", "double" } do
      local x = cg.full(type, n + 1, 1)
      for first = 1, 2 do
        local part = x:view(first, n)
        local places = algo.scan(part, "sum", { exclusive = true })
        local wrong = algo.map("x != i", { x = places }, cg.buffer("bool", n))
        assert.is_false(algo.reduce(wrong, "any"):item())
      end
    end
  end)

  it("begins exclusive minima and maxima with what every number beats", function()
    local x = cg.from({ 3, 5, 4 }, "float")
    assert.same({ -math.huge, 3, 5 }, algo.scan(x, "max", { exclusive = true }):download())
    assert.same({ math.huge, 3, 3 }, algo.scan(x, "min", { exclusive = true }):download())
    local bytes = cg.from({ 3, 5 }, "uint8")
    assert.same({ 0, 3 }, algo.scan(bytes, "max", { exclusive = true }):download())
    for type, ends in pairs { int8 = { -128, 127 }, int16 = { -32768, 32767 },
                              int32 = { -2 ^ 31, 2 ^ 31 - 1 }, bool = { false, true } } do
      local one = cg.zeros(type, 1)
      assert.equal(ends[1], algo.scan(one, "max", { exclusive = true }):item())
      assert.equal(ends[2], algo.scan(one, "min", { exclusive = true }):item())
    end
  end)

  it("keeps a NaN from its place on", function()
    local list = algo.scan(cg.from({ 1, 0 / 0, 3 }, "half"), "max"):download()
    assert.equal(1, list[1])
    assert.is_true(list[2] ~= list[2] and list[3] ~= list[3])
  end)

  it("sums integers in 64 bits, or in those of the result", function()
    local x = cg.from({ 200, 100 }, "uint8")
    assert.equal("uint64", algo.scan(x, "sum").type)
    assert.same({ 200, 300 }, algo.scan(x, "sum"):download())
    assert.same({ 200, 44 }, algo.scan(x, "sum", { out = cg.buffer("uint8", 2) }):download())
    assert.same({ 200, 300 }, algo.scan(x, "sum", { out = cg.buffer("int32", 2) }):download())
  end)

  it("writes to the very buffer, and gives the same bits for views and replays", function()
    local n = 200003
    local all = cg.buffer("float", n + 1):uniform(cg.generator(1), -1, 1)
    local part, copy = all:view(2), cg.buffer("float", n)
    copy:copy(part)
    local bits, out = algo.scan(part, "sum"):download "string", nil
    local g = cg.capture(function() out = algo.scan(copy, "sum") end)
    for _ = 1, 3 do
      g:replay()
      assert.is_true(bits == out:download "string")
    end
    algo.scan(copy, "sum", { out = copy })
    assert.is_true(bits == copy:download "string")
  end)

  it("is captured, also in a loop's body, with scratch of the graph's pool", function()
    local x, count = cg.full("int32", 70000, 1), cg.from({ 2 }, "int32")
    local g = cg.capture(function()
      cg.times(count, function() algo.scan(x, "sum", { out = x }) end)
    end)
    local before = cg.default_pool():stats().allocated
    g:replay()
    assert.equal(70000 * 70001 / 2 % 2 ^ 32, x:view(70000):item() % 2 ^ 32)
    assert.equal(before, cg.default_pool():stats().allocated)
  end)

  it("refuses results that do not fit, with both shapes", function()
    local x = cg.zeros("float", { 2, 3 })
    local function refused(out, ...)
      device.raises("CGL_ERROR_INVALID_ARGUMENT", function() algo.scan(x, "sum", { out = out }) end,
        ...)
    end
    refused(cg.zeros("double", 6), "{2, 3} float cannot be scanned into {6} double")
    refused(cg.zeros("float", 5), "{5} float")
    local all = cg.zeros("float", 10)
    device.raises("CGL_ERROR_INVALID_ARGUMENT",
      function() algo.scan(all:view(1, 5), "sum", { out = all:view(2, 5) }) end, "overlaps")
    device.raises("CGL_ERROR_INVALID_ARGUMENT", function()
      algo.scan(cg.zeros("int32", 3), "max", { out = cg.zeros("int64", 3) })
    end, "of int32")
    device.slips(function() algo.scan(x, "mean") end, "the kind")
  end)

  it("compiles for small types without a warning", function()
    assert.same({ 0, "255 7 65535 7\n", "" }, { device.child([=[
      local cg, algo = require "cgraphlua", require "cgraphlua.algo"
      local of = {}
      for i, type in ipairs { "uint8", "uint16" } do
        local least = algo.scan(cg.full(type, 2, 7), "min", { exclusive = true })
        of[i] = table.concat(least:download(), " ")
      end
      print(table.concat(of, " "))]=], "CGRAPHLUA_DEVICE=host CGRAPHLUA_CACHE=off") })
  end)
end)
