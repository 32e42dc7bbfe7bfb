-- algo.reduce: beside plain Lua.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local types = { "float", "double", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                "uint64", "half", "bfloat16", "bool" }
local reductions = { "sum", "product", "min", "max", "argmin", "argmax", "any", "all", "norm" }

local function number(v)
  if type(v) == "boolean" then return v and 1 or 0 end
  return tonumber(v)
end

-- The reductions of list[first], list[first + step], ..., n of them.
local function expected(list, first, step, n)
  local e = { sum = 0, product = 1, any = false, all = true, norm = 0, dot = 0 }
  for j = 0, n - 1 do
    local v = number(list[first + j * step])
    e.sum, e.product, e.dot = e.sum + v, e.product * v, e.dot + v * v
    e.any, e.all = e.any or v ~= 0, e.all and v ~= 0
    if not e.min or v < e.min then e.min, e.argmin = v, j end
    if not e.max or v > e.max then e.max, e.argmax = v, j end
  end
  e.norm = math.sqrt(e.dot)
  return e
end

-- Small whole numbers, with a sign where the type has one.
local function values(type, n)
  local list = {}
  for i = 1, n do
    local v = i * 7919 % 101 % 4 -- 0 to 3
    if type == "bool" then
      list[i] = v > 1
    else
      list[i] = type:find "^u" and v or v - 1
    end
  end
  return list
end

local function near(wanted, got, what, precision)
  if type(wanted) == "boolean" then return assert.equal(wanted, got, what) end
  got = number(got)
  assert(math.abs(wanted - got) <= (precision or 0) * math.abs(wanted),
    ("%s: %s, not %s"):format(what, tostring(got), tostring(wanted)))
end

describe("algo.reduce", function()
  teardown(device.nothing_alive)

  it("reduces all types, of sizes from one to many blocks", function()
    for t, type in ipairs(types) do
      local name = ({ "sum", "min", "argmax" })[t % 3 + 1]
      for _, n in ipairs { 1, 2, 31, 257, 1009, 4097 } do
        local list = values(type, n)
        near(expected(list, 1, 1, n)[name], algo.reduce(cg.from(list, type), name):item(),
          name .. " of " .. type, 2 ^ -8)
      end
    end
  end)

  it("has every reduction", function()
    for type, names in pairs { float = reductions, uint8 = { "sum", "max", "argmin" } } do
      for _, n in ipairs { 1, 37 } do
        local list = values(type, n)
        list[n] = type == "uint8" and 9 or -9 -- the extreme is at the end
        local x, e = cg.from(list, type), expected(list, 1, 1, n)
        for _, name in ipairs(names) do
          near(e[name], algo.reduce(x, name):item(), name .. " of " .. type, 2 ^ -10)
        end
      end
    end
    local x = cg.from({ 3, -4 }, "int16")
    assert.equal(25, algo.reduce(x, "dot", { with = x }):item())
  end)

  it("reduces along every axis, in blocks, threads and several passes", function()
    local shapes = { { 5, 7 }, { 40, 3, 2 }, { 3, 300 }, { 2, 70000 }, { 70000, 2 }, { 1, 6 } }
    for _, shape in ipairs(shapes) do
      local n = 1
      for _, extent in ipairs(shape) do n = n * extent end
      local list = values("int32", n)
      local x = cg.from(list, "int32", shape)
      for axis, extent in ipairs(shape) do
        local inner = 1
        for d = axis + 1, #shape do inner = inner * shape[d] end
        for _, name in ipairs { "sum", "argmax" } do
          local out = algo.reduce(x, name, { axis = axis })
          local left = {}
          for d, e in ipairs(shape) do left[#left + 1] = d ~= axis and e or nil end
          assert.same(left, out.shape)
          for i, v in ipairs(out:download()) do
            local c = (i - 1) % inner
            local first = (i - 1 - c) * extent + c + 1
            near(expected(list, first, inner, extent)[name], v,
              name .. " " .. table.concat(shape, " ") .. " along " .. axis)
          end
        end
      end
    end
  end)

  it("gives the types of NumPy, and 64 bits for sums of integers", function()
    local wanted = {
      sum = { float = "float", half = "half", int8 = "int64", uint8 = "uint64", bool = "int64" },
      min = { bool = "bool" }, argmax = { float = "int64" }, norm = { int32 = "double" },
    }
    for name, rows in pairs(wanted) do
      for from, to in pairs(rows) do
        assert.equal(to, algo.reduce(cg.full(from, 3, from == "bool" or 1), name).type)
      end
    end
    local big = cg.from({ 2 ^ 31 - 1, 2 ^ 31 - 1, 2 ^ 31 - 1 }, "int32")
    assert.equal(3 * (2 ^ 31 - 1), algo.reduce(big, "sum"):item())
    assert.equal("18446744073709551615ULL",
      tostring(algo.reduce(cg.from({ 0, "18446744073709551615" }, "uint64"), "max"):item()))
    assert.equal(0, algo.reduce(cg.from({ 2 ^ 24, 1, -2 ^ 24 }, "float"), "argmax"):item())
  end)

  it("keeps a NaN and infinities, wherever they are", function()
    for _, at in ipairs { 1, 20, 40 } do
      local list = {}
      for i = 1, 40 do list[i] = i end
      list[at] = 0 / 0
      local x = cg.from(list, "float")
      for _, name in ipairs { "sum", "product", "min", "max", "norm" } do
        local v = algo.reduce(x, name):item()
        assert(v ~= v, name)
      end
      assert.equal(at - 1, algo.reduce(x, "argmin"):item())
      assert.equal(at - 1, algo.reduce(x, "argmax"):item())
      list[at] = -math.huge
      x:upload(list)
      assert.equal(-math.huge, algo.reduce(x, "min"):item())
      assert.equal(-math.huge, algo.reduce(x, "sum"):item())
    end
    local all = cg.full("float", 3, math.huge)
    assert.equal(math.huge, algo.reduce(all, "min"):item())
    assert.equal(0, algo.reduce(all, "argmin"):item())
  end)

  it("reduces nothing to what changes nothing, but finds no least of nothing", function()
    local x = cg.zeros("float", 0)
    for name, wanted in pairs { sum = 0, product = 1, any = false, all = true, norm = 0 } do
      assert.equal(wanted, algo.reduce(x, name):item())
    end
    for _, name in ipairs { "min", "max", "argmin", "argmax" } do
      device.raises("CGL_ERROR_INVALID_ARGUMENT", function() algo.reduce(x, name) end, "{0} float")
    end
    local none = cg.zeros("float", { 0, 3 })
    assert.equal(0, #algo.reduce(none, "min", { axis = 2 }))
    assert.same({ 0, 0, 0 }, algo.reduce(none, "sum", { axis = 1 }):download())
  end)

  it("sums the ends of small types, of views that begin anywhere", function()
    for type, ends in pairs { int8 = { -128, 127 }, uint8 = { 255 }, int16 = { -32768, 32767 },
                              uint16 = { 65535 }, bool = { true } } do
      for _, v in ipairs(ends) do
        local x, n = cg.full(type, 70020, v), 70003
        for first = 1, 17, 8 do
          assert.equal(n * (v == true and 1 or v),
            tonumber(algo.reduce(x:view(first, n), "sum"):item()))
        end
      end
    end
  end)

  it("gives the same bits for views, copies and replays of the same numbers", function()
    local n = 300007
    local all = cg.buffer("float", n + 1):uniform(cg.generator(1), -1, 1)
    local part, copy = all:view(2), cg.buffer("float", n)
    copy:copy(part)
    local out
    for _, name in ipairs { "sum", "norm" } do
      local bits = device.bits(algo.reduce(part, name))
      assert.equal(bits, device.bits(algo.reduce(copy, name)))
      local g = cg.capture(function() out = algo.reduce(copy, name) end)
      for _ = 1, 3 do
        g:replay()
        assert.equal(bits, device.bits(out))
      end
    end
  end)

  it("is captured with scratch of the graph's pool, and replays with other contents", function()
    local x, out = cg.full("int32", 2 ^ 20 + 1, 1), cg.zeros("int64", 1)
    local pool = cg.pool()
    local g = cg.capture(function() algo.reduce(x, "sum", { out = out }) end, { pool = pool })
    local before = cg.default_pool():stats().allocated
    g:replay()
    assert.equal(2 ^ 20 + 1, out:item())
    x:fill(3)
    g:replay()
    assert.equal(3 * (2 ^ 20 + 1), out:item())
    assert.is_true(g:writes(out))
    assert.is_false(g:writes(x))
    assert.is_true(pool:stats().allocations > 0)
    assert.equal(before, cg.default_pool():stats().allocated)
  end)

  it("ends a loop from its body", function()
    local x, more = cg.full("float", 1000, 64), cg.from({ true }, "bool")
    local total = cg.buffer("float", 1)
    local g = cg.capture(function()
      cg.loop(more, function()
        algo.map("x / 2", { x = x }, x)
        algo.reduce(x, "max", { out = total })
        algo.map("m > 1", { m = total }, more)
      end)
    end)
    g:replay()
    assert.equal(1, device.value(x))
  end)

  it("refuses results and pairs that do not fit, with both shapes", function()
    local x = cg.zeros("int32", { 2, 3 })
    local function refused(opts, name, ...)
      device.raises("CGL_ERROR_INVALID_ARGUMENT", function() algo.reduce(x, name, opts) end, ...)
    end
    refused({ out = cg.zeros("int32", 1) }, "sum", "{2, 3} int32 gives 1 int64", "is {1} int32")
    refused({ out = cg.zeros("int64", 3), axis = 2 }, "sum", "gives 2 int64", "{3} int64")
    refused({ out = x:view(1, 1) }, "min", "shares memory")
    refused({ with = cg.zeros("int32", 6) }, "dot", "{2, 3} int32 and {6} int32")
    refused({ with = x }, "sum", "second buffer")
    refused(nil, "dot", "two buffers")
    device.slips(function() algo.reduce(x, "total") end, "the reduction")
    device.slips(function() algo.reduce(x, "sum", { axis = 3 }) end, "axis")
    device.slips(function() algo.reduce(x, "sum", { axes = 1 }) end, "axes")
    device.slips(function() algo.reduce(3, "sum") end, "buffer")
  end)
end)
