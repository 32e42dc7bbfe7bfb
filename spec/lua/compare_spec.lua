-- cg.compare: one piece of work in several ways.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local slips, fails = device.slips, device.fails

local N = 64

local source = [[
extern "C" __global__ void add(float *y, const float *x, float a) {
  y[threadIdx.x] = x[threadIdx.x] + a;
}
// What it says of x is a lie.
extern "C" __global__ void lie(float *y, const float *x, float a) {
  y[threadIdx.x] = x[threadIdx.x] + a;
  ((float *)x)[threadIdx.x] = 100;
}
extern "C" __global__ void both(float *y, float *x, float a) {
  y[threadIdx.x] += x[threadIdx.x] + a;
  x[threadIdx.x] = 100;
}]]

describe("cg.compare", function()
  local add, lie

  setup(function()
    local module = cg.module(source)
    add, lie = module:kernel "add", module:kernel "lie"
  end)

  teardown(function()
    add, lie = nil, nil
    device.nothing_alive()
  end)

  local function right()
    local x, y, z = cg.full("float", N, 1), cg.zeros("float", N), cg.zeros("float", N)
    return function()
      add:launch(1, N, y, x, 1)
      local t = cg.buffer("float", N)
      add:launch(1, N, t, y, 1)
      add:launch(1, N, z, t, 1)
      t:release()
    end, { y = y, z = z }
  end

  it("agrees where all ways do", function()
    assert.is_true(cg.compare(right))
    assert.is_true(cg.compare(right, { orders = { "data" } }))
    assert.is_true(cg.compare(right, { orders = { "issue", "data" }, rtol = 1e-6, atol = 1e-6 }))
    local now = cg.device().device
    assert.is_true(cg.compare(function()
      local kernel, x = cg.kernel(source, "add"), cg.zeros("float", N)
      return function() kernel:launch(1, N, x, x, 3) end, { x }
    end, { devices = { now, now } }))
    assert.equal(now, cg.device().device)
  end)

  -- Two ways that differ for sure: the work counts how often it was issued.
  local function counting(at)
    local calls = 0
    return function()
      local x, y = cg.full("float", N, 1), cg.zeros("float", N)
      calls = calls + 1
      local mine = calls % 2
      return function()
        for i = 1, 7 do add:launch(1, N, y, y, i == at and mine or 1) end
        add:launch(1, N, x, y, 1)
      end, { x = x, y = y }
    end
  end

  it("names the buffer, the element and the operation that differ", function()
    for at = 1, 7 do
      local same, text, found = cg.compare(counting(at), { orders = { "issue", "data" } })
      assert.is_nil(same)
      assert.same({ "x", 1, 8, 7, "in data order", "in issue order", at, "add" }, { found.buffer,
        found.index, found.wanted, found.got, found.way, found.reference, found.node, found.name })
      assert.truthy(text:find("buffer 'x' differs in data order from what it is in issue order: "
        .. "element 1 is 7, not 8; the first operation after which they differ is add, number "
        .. at .. ", at .*compare_spec.lua:%d+"))
    end
  end)

  it("takes differences within the tolerance", function()
    local orders = { "eager", "data" }
    assert.is_true(cg.compare(counting(2), { orders = orders, atol = 1 }))
    assert.is_true(cg.compare(counting(2), { orders = orders, rtol = 0.5 }))
    assert.is_nil((cg.compare(counting(2), { orders = orders, atol = 0.5 })))
  end)

  -- Work that leaves another element in each way.
  local function leaving(type, ...)
    local values, calls = { ... }, 0
    return function()
      local x = cg.buffer(type, 2)
      calls = calls + 1
      local value = values[math.min(calls, #values)]
      return function() x:fill(value) end, { x = x }
    end
  end
  local two = { orders = { "eager", "data" } }

  it("compares vectors and complex numbers by their numbers", function()
    for _, type in ipairs { "complex64", "complex128", "float2", "int2" } do
      assert.is_true(cg.compare(leaving(type, { 1, 2 })), type)
      local same, text, found = cg.compare(leaving(type, { 1, 2 }, { 1, 3 }), two)
      assert.same({ "nil", { 1, 2 }, { 1, 3 } }, { tostring(same), found.wanted, found.got })
      assert.truthy(text:find("element 1 is {1, 3}, not {1, 2}", 1, true))
      assert.is_true(cg.compare(leaving(type, { 1, 2 }, { 1, 3 }),
        { orders = two.orders, atol = 1 }))
    end
  end)

  it("takes no difference from an infinity, and NaN for NaN", function()
    local inf, wide = math.huge, { orders = two.orders, rtol = 0.5, atol = 9 }
    assert.is_nil((cg.compare(leaving("float", inf, 1), wide)))
    assert.is_nil((cg.compare(leaving("float", 1, inf), wide)))
    assert.is_nil((cg.compare(leaving("float", inf, -inf), wide)))
    assert.is_nil((cg.compare(leaving("float", 0 / 0, 1), wide)))
    assert.is_true(cg.compare(leaving("float", inf), wide))
    assert.is_true(cg.compare(leaving("float", 0 / 0), wide))
  end)

  it("takes whole numbers that only FFI numbers hold, and booleans", function()
    assert.is_true(cg.compare(leaving("int64", 2LL ^ 60, 2LL ^ 60 + 1),
      { orders = two.orders, atol = 1 }))
    assert.is_nil((cg.compare(leaving("int64", 5, 2LL ^ 60), { orders = two.orders, rtol = 0.5 })))
    assert.is_nil((cg.compare(leaving("int64", 2LL ^ 60, 2LL ^ 60 + 1), two)))
    assert.is_nil((cg.compare(leaving("bool", true, false), { orders = two.orders, atol = 1 })))
  end)

  describe("in an order that the host device chooses", function()
    local ffi = require "ffi"
    pcall(ffi.cdef, "int setenv(const char *name, const char *value, int replace);")
    teardown(function() ffi.C.setenv("CGRAPHLUA_HOST_ORDER", "", 1) end)

    -- What one of twenty orders shows that a kernel does other than is said of it.
    local function difference(kernel)
      for seed = 1, 20 do
        ffi.C.setenv("CGRAPHLUA_HOST_ORDER", tostring(seed), 1)
        local _, _, found = cg.compare(function()
          local x, y, z = cg.full("float", N, 1), cg.zeros("float", N), cg.zeros("float", N)
          return function()
            add:launch(1, N, y, z, 5)
            kernel:launch(1, N, y, x, 1)
            add:launch(1, N, z, x, 1)
          end, { y = y, z = z }
        end, { orders = { "issue", "data" } })
        if found then return found end
      end
    end

    local function it_on_host(what, fn)
      it(what, function()
        if cg.device().device ~= "host" then
          pending "the order is the host device's choice"
          return
        end
        fn()
      end)
    end

    it_on_host("finds what a kernel writes through a pointer to const", function()
      assert.equal("in data order", difference(lie).way)
    end)

    it_on_host("finds effects that are not so", function()
      local module = cg.module(source)
      assert.is_nil(difference(module:kernel "both"))
      assert.equal("z", difference(module:kernel("both"):effects { x = "read" }).buffer)
    end)
  end)

  it("says what is wrong with what it is given", function()
    slips(function() cg.compare(3) end, "a function expected, got number")
    slips(function() cg.compare(right, 3) end, "a table of options expected, got number")
    slips(function() cg.compare(right, { order = "data" }) end, "unknown option 'order'")
    slips(function() cg.compare(right, { orders = {} }) end, "option 'orders' must be a list")
    slips(function() cg.compare(right, { orders = { "date" } }) end, "not date")
    slips(function() cg.compare(right, { devices = "host" }) end, "option 'devices' must be a list")
    slips(function() cg.compare(right, { rtol = -1 }) end, "option 'rtol' must be a number")
    fails(cg.compare, function() end)
    fails(cg.compare, function() return function() end, {} end)
    fails(cg.compare, function() return function() end, { 1 } end)
    local status, message = pcall(cg.compare, function() error "mine" end)
    assert.is_false(status)
    assert.truthy(tostring(message):find "mine")
  end)
end)
