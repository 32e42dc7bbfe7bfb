local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local numpy = dofile(here .. "/../support/numpy.lua")
local raises, slips = device.raises, device.slips

-- By looking at every edge.
local function counted(list, bins, low, high)
  local step, counts = (high - low) / bins, {}
  for i = 1, bins do
    local from, to = low + (i - 1) * step, low + i * step
    counts[i] = 0
    for _, x in ipairs(list) do
      if x >= from and (x < to or (i == bins and x <= high)) and x <= high then
        counts[i] = counts[i] + 1
      end
    end
  end
  return counts
end

describe("algo.histogram", function()
  it("counts every type by bins", function()
    local gen = cg.generator(5)
    for _, t in ipairs { "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
      "half", "bfloat16", "float", "double" } do
      local real = t == "half" or t == "bfloat16" or t == "float" or t == "double"
      for _, n in ipairs { 0, 1, 7, 601 } do
        local x = cg.buffer(t, n)
        if real then x:uniform(gen, 0, 100) else x:random(gen, 0, 100) end
        local list = x:download()
        for _, bins in ipairs { 1, 3, 10 } do
          assert.same(counted(list, bins, 0, 100), algo.histogram(x, bins, 0, 100):download())
          assert.same(counted(list, bins, 12.5, 37.1),
            algo.histogram(x, bins, 12.5, 37.1):download())
        end
      end
    end
    local flags = cg.from({ true, false, false }, "bool")
    assert.same({ 2, 1 }, algo.histogram(flags, 2, 0, 1):download())
  end)

  it("gives a number on an edge to the bin above, and to the last one", function()
    local list = {}
    for i = 0, 30 do list[#list + 1] = i / 10 end
    local x = cg.from(list, "double")
    assert.same(counted(list, 30, 0, 3), algo.histogram(x, 30, 0, 3):download())
    assert.same({ 1, 2 }, algo.histogram(cg.from({ 0, 1, 2, 3, -1 }, "int32"), 2, 0, 2):download())
  end)

  it("does not count NaNs, infinities and what is outside", function()
    local x = cg.from({ 0 / 0, 1 / 0, -1 / 0, 5, -5, 0.5, -0.0 }, "float")
    assert.same({ 1, 1 }, algo.histogram(x, 2, 0, 1):download())
  end)

  it("counts many elements by few bins and by many", function()
    local n = 2 ^ 20 + 1
    local x = algo.map("i % 10007", {}, cg.buffer("int32", n))
    for _, bins in ipairs { 1, 10007, 100 } do
      local sum, counts = 0, algo.histogram(x, bins, 0, 10007):download()
      for i = 1, bins do sum = sum + counts[i] end
      assert.equal(n, sum)
      if bins == 10007 then
        for i = 1, bins do
          assert.equal(math.floor((n - i) / 10007) + 1, counts[i])
        end
      end
    end
  end)

  it("is part of graphs, on what the elements are then", function()
    local x, out = cg.zeros("float", 1000):view(7, 500), cg.buffer("int64", 4)
    local g = cg.capture(function() algo.histogram(x, 4, 0, 4, { out = out }) end)
    for k = 0, 3 do
      x:fill(k + 0.5)
      g:replay(3)
      local want = { 0, 0, 0, 0 }
      want[k + 1] = 500
      assert.same(want, out:download())
    end
  end)

  it("says what it was given", function()
    local x = cg.zeros("float", 4)
    local function call(...)
      local args = { ... }
      return function() algo.histogram(x, unpack(args, 1, 4)) end
    end
    raises("CGL_ERROR_INVALID_ARGUMENT", call(4, 1, 1), "1 to 1 is no range")
    raises("CGL_ERROR_INVALID_ARGUMENT", call(4, 0, 1 / 0), "no range")
    raises("CGL_ERROR_INVALID_ARGUMENT", call(4, 0, 0 / 0), "no range")
    raises("CGL_ERROR_INVALID_ARGUMENT", call(4, 0, 1, { out = cg.zeros("int32", 4) }),
      "{4} float counted into {4} int32")
    raises("CGL_ERROR_INVALID_ARGUMENT",
      function() algo.histogram(cg.zeros("float2", 4), 4, 0, 1) end, "float2 have 2 numbers")
    slips(call(0, 0, 1), "the number of bins")
    slips(call(4, "0", 1), "the lower bound")
    slips(call(4, 0, 1, { out = cg.zeros("int64", 5) }), "5 elements for 4 bins")
  end)

  it("agrees with NumPy", function()
    if not numpy.python then return pending(numpy.missing) end
    local path = os.tmpname()
    for _, case in ipairs { { "float", "float32", 1009, 37, -3.1, 2.7 },
      { "double", "float64", 2 ^ 17 + 1, 1000, -1, 1 }, { "int32", "int32", 4001, 9, -50, 1e9 } } do
      local t, kind, n, bins, low, high = unpack(case)
      local x = cg.buffer(t, n)
      if t == "int32" then
        x:random(cg.generator(1), -1000, 2 ^ 31 - 1)
      else
        x:normal(cg.generator(1))
        x:view(3, 1):fill(0 / 0)
      end
      local f = io.open(path, "wb")
      f:write(x:download "string")
      f:close()
      local pipe = io.popen(("%s -c 'import numpy as np; x = np.fromfile(\"%s\", \"%s\"); "
        .. "print(*np.histogram(x[~np.isnan(x)].astype(\"float64\"), %d, (%.17g, %.17g))[0])'")
        :format(numpy.python, path, kind, bins, low, high))
      local wanted = pipe:read "*l"
      pipe:close()
      assert.equal(wanted, table.concat(algo.histogram(x, bins, low, high):download(), " "))
    end
    os.remove(path)
  end)
end)
