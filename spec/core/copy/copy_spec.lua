local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises = device.raises

ffi.cdef [[
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
]]

local MIB = 2 ^ 20

-- Bytes that differ from their neighbours, and from those a page away.
local function pattern(bytes, seed)
  local x = cg.buffer("uint8", bytes)
  return x:random(cg.generator(seed), 0, 256)
end

local function text(buffer) return buffer:download "string" end

-- `to`, full of zeros, has `copied` from byte `first` on, and nothing else.
local function holds(to, first, copied)
  local whole = text(to)
  assert.is_true(whole:sub(first, first + #copied - 1) == copied)
  assert.is_nil(whole:sub(1, first - 1):find "[^%z]")
  assert.is_nil(whole:sub(first + #copied):find "[^%z]")
end

local function copies()
  local n = 70000
  local a, b, to, other

  before_each(function()
    a, b = pattern(n, 1), pattern(n, 2)
    to, other = cg.zeros("uint8", n), cg.zeros("uint8", n)
  end)

  after_each(function() a, b, to, other = nil, nil, nil, nil end)

  it("copy all bytes and no others, wherever they begin and end", function()
    for _, case in ipairs {
      { 1, 1, 70000 }, { 1, 1, 65536 }, { 2, 2, 65537 }, { 129, 1, 65551 }, { 17, 17, 65552 },
      { 16, 1, 65553 }, { 1, 2, 65567 }, { 5, 133, 69632 }, { 9, 1, 66003 }, { 4, 9, 67001 },
      { 128, 128, 66000 }, { 7, 1, 65663 }, { 1, 14, 68000 }, { 3, 12, 65540 },
      { 100, 112, 65665 },
    } do
      local first, from, count = unpack(case)
      to:fill(0)
      local source = a:view(from, count)
      local g = cg.capture(function() to:view(first, count):copy(source) end)
      assert.equal("memcpy", device.kinds(g))
      g:replay(2)
      holds(to, first, text(source))
    end
  end)

  it("are copies", function()
    local g = cg.capture(function() to:copy(a) end)
    local node = g:nodes()[1]
    assert.same({ "memcpy", "buffer:copy", "uint8" }, { node.kind, node.name, node.type })
    assert.same({ true, false, false }, { g:writes(to), g:writes(a), g:writes(b) })
  end)

  it("take other memory, at another place", function()
    for _, keep in ipairs { true, false } do
      local g = cg.capture(function() to:view(1, 69000):copy(a:view(1, 69000)) end,
        { keep_graph = keep })
      raises("CGL_ERROR_INVALID_ARGUMENT", function() g:set_params(1, { from = b:view(69001) }) end,
        "1000 elements of uint8 cannot take the place of 69000 of uint8")
      g:set_params(1, { from = b:view(4, 69000), to = other:view(9, 69000) })
      g:replay()
      holds(other, 9, text(b:view(4, 69000)))
      holds(to, 1, "")
      g:set_params(1, { from = a:view(11, 69000) })
      if keep then g:instantiate() end
      g:replay()
      holds(other, 9, text(a:view(11, 69000)))
      assert.same({ true, false }, { g:writes(other), g:writes(to) })
      other:fill(0)
    end
  end)

  it("are switched off and on", function()
    local g = cg.capture(function()
      to:copy(a)
      other:view(2):copy(b:view(1, n - 1))
    end)
    g:set_enabled(1, false)
    g:set_params(1, { from = b })
    g:replay(2)
    holds(to, 1, "")
    holds(other, 2, text(b:view(1, n - 1)))
    g:set_enabled(1, true)
    g:set_enabled(2, false)
    other:fill(0)
    g:replay()
    holds(to, 1, text(b))
    holds(other, 1, "")
  end)

  it("copy memory of the capture, in graphs inside graphs and in bodies", function()
    local x, y
    local g = cg.capture(function()
      x = cg.buffer("uint8", n)
      x:copy(a)
      y = cg.buffer("uint8", n)
      y:view(2):copy(x:view(1, n - 1))
      to:view(1, n - 1):copy(y:view(2))
    end)
    g:replay()
    assert.is_true(text(to):sub(1, n - 1) == text(a):sub(1, n - 1))
    local flag = cg.full("int32", 1, 1)
    local parent = cg.capture(function()
      g:replay()
      cg.when(flag, function() other:view(2):copy(to:view(1, n - 1)) end)
    end)
    a:copy(b)
    parent:replay()
    assert.is_true(text(other):sub(2) == text(b):sub(1, n - 1))
  end)

  it("run in order on every stream", function()
    local s = cg.stream { priority = -1 }
    local g = cg.capture(function()
      for i = 1, 20 do
        to:view(i, 69000):copy(a:view(1, 69000))
        a:view(1, 69000):copy(to:view(i, 69000))
      end
    end, { stream = s })
    local before = text(a:view(1, 69000))
    s:use(function() g:replay() end)
    s:synchronize()
    assert.is_true(text(to:view(20, 69000)) == before)
  end)
end

describe("captured copies", function()
  teardown(device.nothing_alive)

  copies()

  it("are one node of any size", function()
    for _, bytes in ipairs { 1, 4 * MIB - 1, 4 * MIB, 5 * MIB + 4097 } do
      local from, to = pattern(bytes, 1), cg.zeros("uint8", bytes)
      local g = cg.capture(function() to:copy(from) end)
      assert.equal(1, #g:nodes())
      g:replay()
      assert.is_true(text(to) == text(from))
    end
  end)

  it("of pinned memory are the driver's", function()
    local n = 4 * MIB + 1
    local pinned, x, y = cg.pinned("uint8", n), pattern(n, 1), cg.zeros("uint8", n)
    local g = cg.capture(function()
      pinned:copy(x)
      y:copy(pinned)
    end)
    assert.equal(2, #g:nodes())
    g:replay()
    assert.is_true(text(y) == text(x))
  end)
end)

describe("captured copies by a kernel", function()
  setup(function() ffi.C.setenv("CGRAPHLUA_COPY_KERNEL", "1", 1) end)
  teardown(function()
    ffi.C.unsetenv "CGRAPHLUA_COPY_KERNEL"
    device.nothing_alive()
  end)

  copies()
end)

describe("fills of eight bytes", function()
  teardown(device.nothing_alive)

  it("write all elements and no other bytes, at any address and in graphs", function()
    local bytes = cg.zeros("uint8", 1000)
    local value = ffi.string(ffi.new("double[1]", 1 / 3), 8)
    for _, case in ipairs { { 1, 1 }, { 8, 2 }, { 8, 33 }, { 120, 40 }, { 4, 7 }, { 3, 50 } } do
      local offset, count = unpack(case)
      local x = cg.buffer_from(bytes:address() + offset, "double", count)
      local g = cg.capture(function() x:fill(1 / 3) end)
      for _, fill in ipairs { function() x:fill(1 / 3) end, function() g:replay() end } do
        bytes:fill(0)
        fill()
        holds(bytes, offset + 1, value:rep(count))
      end
    end
  end)
end)

describe("where nothing compiles", function()
  it("fills are the driver's, and a captured one that it cannot do is refused", function()
    local status, out, err = device.child([=[
      local x, y = cg.full("double", 9000, 1 / 3), cg.full("int64", 9, -2)
      local z = cg.zeros("double", 9000)
      print(x:download()[9000] == 1 / 3, y:download()[1])
      local g = cg.capture(function()
        local ok, e = pcall(x.fill, x, 1 / 3)
        print(ok, e.name)
        z:view(2):copy(x:view(1, 8999))
        y:fill(0)
      end)
      y:fill(5)
      g:replay()
      print(#g:nodes(), y:download()[9], z:download()[9000] == 1 / 3)
    ]=], "CGRAPHLUA_DEVICE=host CGRAPHLUA_CXX=no-such-compiler CGRAPHLUA_CACHE=off " ..
      "CGRAPHLUA_COPY_KERNEL=1")
    assert.equal("", err)
    assert.equal("true\t-2\nfalse\tCGL_ERROR_NO_COMPILER\n2\t0\ttrue\n", out)
    assert.equal(0, status)
  end)
end)
