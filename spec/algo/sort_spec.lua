-- algo.sort and algo.sort_by_key: beside what sorted and stable mean.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local reals = { float = true, double = true, half = true, bfloat16 = true }

-- n elements of the type, many of them equal.
local function some(type, n, gen)
  local x = cg.buffer(type, n)
  if reals[type] then return x:normal(gen, 0, 100) end
  return type == "int32" and x:random(gen, -50, 50) or x:random(gen)
end

local function number(v)
  if type(v) == "boolean" then return v and 1 or 0 end
  return v
end

-- keys[i] came from place from[i] of x, in order, equal keys as they stood.
local function check(x, keys, from, descending, what)
  local list, sorted, places = x:download(), keys:download(), from:download()
  for i, at in ipairs(places) do
    assert(sorted[i] == list[at + 1], what)
    local a, b = number(sorted[math.max(i - 1, 1)]), number(sorted[i])
    assert(i == 1 or a == b and places[i - 1] < at or (a < b) == not descending and a ~= b, what)
  end
end

describe("algo.sort", function()
  teardown(device.nothing_alive)

  it("sorts keys of all types, stable, in both directions", function()
    local gen = cg.generator(7)
    for t, type in ipairs { "float", "double", "int8", "uint8", "int16", "uint16", "int32",
                            "uint32", "int64", "uint64", "half", "bfloat16", "bool" } do
      local descending = t % 2 == 0
      for _, n in ipairs { 0, 1, 2, 33, 1009, 1024, 1025, 4097, 8193 } do
        local x = some(type, n, gen)
        local index = algo.map("i", {}, cg.buffer("int32", n))
        local keys, from = algo.sort_by_key(x, index, { descending = descending })
        check(x, keys, from, descending, type .. " " .. n)
      end
    end
  end)

  it("joins many blocks and chunks", function()
    local n = 2 ^ 17 + 1
    for _, descending in ipairs { false, true } do
      local x = some("int32", n, cg.generator(3))
      local index = algo.map("i", {}, cg.buffer("int32", n))
      local keys, from = algo.sort_by_key(x, index, { descending = descending })
      check(x, keys, from, descending, "many")
      local alone = algo.sort(x, { descending = descending })
      assert.is_true(keys:download "string" == alone:download "string")
    end
  end)

  it("puts NaNs beyond infinity, and takes both zeros for equal", function()
    local x = cg.from({ 0 / 0, 0, math.huge, -0.0, -math.huge, 1 }, "double")
    local function text(b) return (table.concat(b:download(), " "):gsub("%-nan", "nan")) end
    assert.equal("-inf 0 -0 1 inf nan", text(algo.sort(x)))
    assert.equal("nan inf 1 0 -0 -inf", text(algo.sort(x, { descending = true })))
  end)

  it("puts NaNs and zeros together for algo.unique, which keeps one of each kind", function()
    local x = cg.from({ 3, 0 / 0, 1, -0.0, 3, 0, 1, 0 / 0, 3 }, "half")
    local out, count = algo.unique(x)
    assert.equal(4, count:item())
    local list = out:download()
    assert.same({ 0, 1, 3 }, { math.abs(list[1]), list[2], list[3] })
    assert.is_true(list[4] ~= list[4])
    for _, n in ipairs { 0, 1 } do
      assert.equal(n, select(2, algo.unique(cg.zeros("int32", n))):item())
    end
    local many = cg.buffer("uint16", 70001):random(cg.generator(2), 1000)
    out, count = algo.unique(many)
    assert.equal(1000, count:item())
    for i, v in ipairs(out:view(1, 1000):download()) do assert.equal(i - 1, v) end
    device.raises("CGL_ERROR_INVALID_ARGUMENT",
      function() algo.unique(many, { out = out:view(1, 7) }) end, "algo.unique", "{7} uint16")
  end)

  it("takes values of every size, and keeps the shape", function()
    local keys = cg.from({ { 3, 1 }, { 2, 0 } }, "uint8")
    for _, type in ipairs { "int8", "half", "int64" } do
      local sorted, values = algo.sort_by_key(keys, cg.from({ 30, 10, 20, 0 }, type))
      assert.same({ 0, 10, 20, 30 }, values:download())
      assert.same({ 2, 2 }, sorted.shape)
    end
  end)

  it("is captured with scratch of the graph's pool, and replays with other keys", function()
    local x, out = cg.from({ 3, 1, 2 }, "int16"), cg.buffer("int16", 3)
    local g = cg.capture(function() algo.sort(x, { out = out }) end)
    local before = cg.default_pool():stats().allocated
    g:replay()
    assert.same({ 1, 2, 3 }, out:download())
    x:upload { 5, -7, 0 }
    g:replay(2)
    assert.same({ -7, 0, 5 }, out:download())
    assert.equal(before, cg.default_pool():stats().allocated)
    assert.is_false(g:writes(x))
  end)

  it("is ordered by its data like any kernel, and can be in a file", function()
    local x, sorted, other = cg.from({ 3, 1, 2 }, "float"), nil, nil
    local g = cg.capture(function()
      sorted, other = algo.sort(x), algo.sort(x, { descending = true })
    end, { order = "data" })
    local plan = g:plan()
    assert.same({}, plan.barriers)
    assert.is_true(plan.width >= 2)
    local path = os.tmpname()
    g:save(path, { inputs = { x = x }, outputs = { up = sorted, down = other } })
    local loaded = cg.load(path)
    os.remove(path)
    loaded.inputs.x:upload { 9, 7, 8 }
    loaded:replay()
    assert.same({ 7, 8, 9 }, loaded.outputs.up:download())
    assert.same({ 9, 8, 7 }, loaded.outputs.down:download())
  end)

  it("refuses results and values that do not fit, with both shapes", function()
    local x = cg.zeros("float", { 2, 3 })
    local function refused(fn, ...) device.raises("CGL_ERROR_INVALID_ARGUMENT", fn, ...) end
    refused(function() algo.sort(x, { out = cg.zeros("float", 5) }) end,
      "keys {2, 3} float, sorted into {5} float")
    refused(function() algo.sort(x, { out = x }) end, "shares memory")
    refused(function() algo.sort_by_key(x, cg.zeros("int8", 5)) end,
      "{5} int8 for keys {2, 3} float")
    refused(function() algo.sort_by_key(x, x, { out_values = cg.zeros("int32", 6) }) end,
      "values {2, 3} float")
    device.slips(function() algo.sort(x, { ascending = true }) end, "ascending")
  end)
end)
