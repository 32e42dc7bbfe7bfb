-- Memory that only garbage holds: how much it may be while no script calls the
-- collector.  Every script runs in a process of its own, where the collector
-- has its usual pace.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local prelude = [[
  local function used()
    local free, total = cg.mem_get_info()
    return (total - free) / 1e6
  end
  -- The most MB held beyond what is held at first.
  local function most(rounds, round)
    local before, peak = used(), 0
    for i = 1, rounds do
      round(i)
      if i % 4 == 0 then peak = math.max(peak, used() - before) end
    end
    return peak
  end
]]

-- What the script prints, in a process of its own.
local function run(script, memory)
  local status, out, err = device.child(prelude .. script,
    "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_GUARD=0 CGRAPHLUA_HOST_MEMORY=" .. (memory or "8G"))
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

local function number(script, memory)
  return tonumber(run(script, memory)) or error "no number"
end

describe("garbage", function()
  teardown(device.nothing_alive)

  it("of 30000 captures holds less than 100 MB", function()
    assert.is_true(number [[
      local x = cg.zeros("float", 16)
      print(most(30000, function(i)
        local g = cg.capture(function()
          local t = cg.buffer("float", 1000)
          t:fill(i)
          x:fill(i)
        end)
        if i % 3 == 0 then g:replay() end
      end))]] < 100)
  end)

  it("of captures holds less than 100 MB beside what is alive", function()
    assert.is_true(number [[
      local alive = { cg.zeros("uint8", 200e6) }
      for i = 1, 100 do
        alive[#alive + 1] = cg.capture(function() cg.buffer("float", 1000):fill(i) end)
      end
      print(most(3000, function()
        cg.capture(function() cg.buffer("uint8", 3e6):fill(1) end)
      end))
      assert(#alive == 101)]] < 100)
  end)

  it("of captures in coroutines holds less than 100 MB", function()
    assert.is_true(number [[
      local function rounds()
        for _ = 1, 1000 do
          cg.capture(function() cg.buffer("uint8", 2e6):fill(1) end)
          coroutine.yield()
        end
      end
      local a, b = coroutine.wrap(rounds), coroutine.wrap(rounds)
      print(most(1000, function() a() b() end))]] < 100)
  end)

  it("of matrix products, captured and replayed, holds less than 100 MB", function()
    assert.is_true(number [[
      local product = cg.kernel [=[
      extern "C" __global__ void product(const float *a, const float *b, float *c, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n * n) return;
        float sum = 0;
        for (int k = 0; k < n; k++) sum += a[i / n * n + k] * b[k * n + i % n];
        c[i] = sum;
      }]=]
      local n = 32
      local a, b = cg.full("float", n * n, 1), cg.full("float", n * n, 2)
      print(most(100, function()
        local g, c = cg.capture(function()
          local room = cg.buffer("uint8", 8e6) -- as a library's workspace
          room:fill(0)
          local c = cg.buffer("float", { n, n })
          product:launch(n * n / 64, 64, a, b, c, n)
          return c
        end)
        g:replay()
        assert(c:download()[1] == 64)
      end))]] < 100)
  end)

  it("of buffers holds little of the device", function()
    assert.is_true(number [[
      for _ = 1, 20000 do cg.buffer("uint8", 1e6) end
      print(cg.default_pool():stats().reserved_peak / 1e6)]] < 150)
  end)

  it("of buffers in a pool of the script's holds little of it", function()
    assert.is_true(number [[
      local pool = cg.pool()
      for _ = 1, 20000 do cg.buffer("uint8", 1e6, { pool = pool }) end
      print(pool:stats().reserved_peak / 1e6)]] < 150)
  end)

  it("of pinned memory holds little of the machine", function()
    assert.is_true(number [[
      for _ = 1, 4000 do
        local p = cg.pinned("uint8", 1e6)
        p:cdata()[0] = 1
      end
      print(cg.pinned_pool():stats().reserved_peak / 1e6)]] < 300)
  end)

  it("of one capture serves that capture again", function()
    assert.is_true(number [[
      local x = cg.zeros("float", 16)
      local g = cg.capture(function()
        for i = 1, 2000 do
          cg.buffer("uint8", 1e6):fill(i % 100)
          x:fill(i)
        end
      end)
      print(g:pool():stats().reserved / 1e6)]] < 150)
  end)

  it("is found inside a capture, on a device that is full of it", function()
    assert.equal("300\n", run([[
      for i = 1, 300 do
        local g = cg.capture(function() cg.buffer("uint8", 4 * 2^20):fill(1) end)
        if i % 2 == 0 then g:replay() end
      end
      print(300)]], "256M"))
    assert.equal("8388608\n", run([[
      collectgarbage "stop"
      local _, t = cg.capture(function()
        for _ = 1, 64 do cg.buffer("uint8", 8 * 2^20):fill(1) end
        return cg.buffer("uint8", 8 * 2^20)
      end)
      print(#t)]], "256M"))
  end)

  it("waits for a script that stopped the collector", function()
    assert.equal("500\ttrue\n", run [[
      collectgarbage "stop"
      for i = 1, 500 do cg.capture(function() cg.buffer("float", 1):fill(i) end) end
      local before = cg.live "graph"
      collectgarbage "restart"
      for i = 1, 100 do cg.capture(function() cg.buffer("float", 1):fill(i) end) end
      print(before, cg.live "graph" < 200)]])
  end)

  -- Collections are counted by a finalizer that renews itself.
  local counting = [[
    local collections = 0
    local function count()
      local proxy = newproxy(true)
      getmetatable(proxy).__gc = function()
        collections = collections + 1
        count()
      end
    end
    collectgarbage()
    count()
  ]]

  it("that scripts release themselves costs no collections", function()
    assert.is_true(number(counting .. [[
      local held = {}
      for _ = 1, 200 do
        for k = 1, 100 do held[k] = cg.buffer("uint8", 4e6) end
        for k = 1, 100 do held[k]:release() end
      end
      print(collections)]]) < 60)
    assert.is_true(number(counting .. [[
      for _ = 1, 2000 do
        local g = cg.capture(function()
          local t = cg.buffer("uint8", 4e6)
          t:fill(1)
          t:release()
        end)
        g:release()
      end
      print(collections)]]) < 60)
  end)

  it("costs fewer collections the more is alive", function()
    assert.is_true(number(counting .. [[
      local alive = {}
      for k = 1, 400 do alive[k] = cg.buffer("uint8", 10e6) end
      print(collections)]]) < 45)
  end)

  it("is collected while finalizers of the script allocate", function()
    assert.equal("true\tbuffer\n", run [[
      local made, name = 0, nil
      local function litter()
        local proxy = newproxy(true)
        getmetatable(proxy).__gc = function()
          made = made + 1
          for _ = 1, 10 do cg.buffer("uint8", 20e6) end
          pcall(cg.zeros, "none", 1)
          if made < 100 then litter() end
        end
      end
      litter()
      for _ = 1, 300 do
        local ok, e = pcall(cg.buffer, "uint8", 2e6, { pool = 1 })
        name = e:match "'(%w+)'"
        cg.buffer("uint8", 2e6)
        assert(not ok)
      end
      print(made > 3, name)]])
  end)

  it("keeps its error when a finalizer raises", function()
    assert.matches("on purpose", run [[
      local ok, e = pcall(function()
        for i = 1, 1000 do
          local proxy = newproxy(true)
          getmetatable(proxy).__gc = function() error("on purpose", 0) end
          proxy = nil
          cg.buffer("uint8", 4e6)
        end
      end)
      print(e)
      for _ = 1, 1000 do pcall(cg.buffer, "uint8", 4e6) end]])
  end)
end)

describe("pinned memory", function()
  teardown(device.nothing_alive)

  it("that no work uses serves again in a capture", function()
    assert.is_true(number [[
      local x = cg.zeros("uint8", 1e6)
      cg.capture(function()
        for _ = 1, 200 do cg.pinned("uint8", 1e6):release() end
        x:fill(1)
      end)
      print(cg.pinned_pool():stats().reserved / 1e6)]] < 5)
  end)

  it("that work may still use does not", function()
    local x, p = cg.zeros("uint8", 1e6), cg.pinned("uint8", 1e6)
    cg.synchronize()
    local side = cg.stream()
    local address = tonumber(require "ffi".cast("intptr_t", p:cdata()))
    cg.capture(function()
      side:use(function() x:copy(p) end)
      p:release()
      local q = cg.pinned("uint8", 1e6)
      assert.is_true(address ~= tonumber(require "ffi".cast("intptr_t", q:cdata())))
      q:release()
    end)
    cg.synchronize()
  end)
end)
