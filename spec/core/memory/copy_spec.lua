local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local program, raises = device.program, device.raises

local MIB = 2 ^ 20

-- Bytes that differ from their neighbours, and from those a page away.
local function pattern(bytes, seed)
  local x = cg.buffer("uint8", bytes)
  return x:random(cg.generator(seed), 0, 256)
end

-- What the nodes of a graph copy, as its picture says it.
local function sizes(graph)
  local folder, list = program.folder(), {}
  graph:debug_dump(folder .. "/g.dot")
  for size in program.read(folder .. "/g.dot"):gmatch "memcpy of ([^\\]+)" do
    list[#list + 1] = size
  end
  program.remove(folder)
  return list
end

describe("a captured copy", function()
  teardown(device.nothing_alive)

  it("is a node below 4 MiB, and one of whole pages", function()
    for _, bytes in ipairs { 1, 4 * MIB - 1, 4 * MIB, 5 * MIB + 4096 } do
      local from, to = pattern(bytes, 1), cg.zeros("uint8", bytes)
      local g = cg.capture(function() to:copy(from) end)
      assert.equal(1, #g:nodes())
      g:replay()
      assert.is_true(to:download "string" == from:download "string")
    end
  end)

  it("of more than whole pages has another node for the rest", function()
    local from, to = pattern(4 * MIB + 4097, 1), cg.zeros("uint8", 4 * MIB + 4097)
    local g = cg.capture(function() to:copy(from) end)
    assert.same({ "4.0 MiB", "1 B" }, sizes(g))
    assert.same({ 1 }, g:nodes()[2].dependencies)
    g:replay()
    assert.is_true(to:download "string" == from:download "string")
  end)

  it("has a node before the first line that both sides reach together", function()
    local n = 4 * MIB + 300
    local from, to = pattern(n, 1), cg.zeros("uint8", n)
    for _, case in ipairs {
      { 5, 5, { "124 B", "4.0 MiB", "172 B" } }, -- four bytes past a line, both
      { 133, 5, { "124 B", "4.0 MiB", "44 B" } },
      { 1, 5, { "4.0 MiB", "296 B" } }, -- at different places: no line for both
    } do
      to:fill(0)
      local count = n - math.max(case[1], case[2]) + 1
      local there, here_ = from:view(case[1], count), to:view(case[2], count)
      local g = cg.capture(function() here_:copy(there) end)
      assert.same(case[3], sizes(g))
      g:replay()
      local text = to:download "string"
      assert.is_true(text:sub(case[2], case[2] + count - 1) == there:download "string")
      assert.equal(("\0"):rep(case[2] - 1), text:sub(1, case[2] - 1))
      assert.equal(("\0"):rep(n - case[2] - count + 1), text:sub(case[2] + count))
    end
  end)

  it("has nodes of at most 256 MiB", function()
    local from, to = cg.buffer("double", 64 * MIB + 1), cg.buffer("double", 64 * MIB + 1)
    local g = cg.capture(function() to:copy(from) end)
    assert.same({ "256 MiB", "256 MiB", "8 B" }, sizes(g))
    for i, node in ipairs(g:nodes()) do
      assert.same({ "memcpy", "buffer:copy", "double" }, { node.kind, node.name, node.type })
      assert.same({ i > 1 and i - 1 or nil }, node.dependencies)
    end
  end)

  it("outside a capture, or with pinned memory, is never divided", function()
    local n = 4 * MIB + 1
    local pinned, x, y = cg.pinned("uint8", n), pattern(n, 1), cg.zeros("uint8", n)
    local g = cg.capture(function()
      pinned:copy(x)
      y:copy(pinned)
    end)
    assert.equal(2, #g:nodes())
    g:replay()
    assert.is_true(y:download "string" == x:download "string")
    y:fill(0)
    y:copy(x)
    assert.is_true(y:download "string" == x:download "string")
  end)

  describe("of several nodes", function()
    local n = 4 * MIB + 300
    local a, b, to, other

    before_each(function()
      a, b = pattern(n, 1), pattern(n, 2)
      to, other = cg.zeros("uint8", n), cg.zeros("uint8", n)
    end)

    after_each(function()
      a, b, to, other = nil, nil, nil, nil
    end)

    local function text(buffer) return buffer:download "string" end

    it("takes other memory for each of them, all of it", function()
      for _, keep in ipairs { true, false } do
        local g = cg.capture(function() to:copy(a) end, { keep_graph = keep })
        assert.equal(2, #g:nodes())
        raises("CGL_ERROR_INVALID_ARGUMENT", function()
          g:set_params(2, { from = b:view(4 * MIB + 1) })
        end, "300 elements of uint8 cannot take the place of 4194604 of uint8")
        for i = 1, 2 do g:set_params(i, { from = b, to = other }) end
        g:replay()
        assert.is_true(text(other) == text(b))
        assert.is_nil(text(to):find "[^%z]")
        for i = 1, 2 do g:set_params(i, { from = a }) end
        if keep then g:instantiate() end
        g:replay()
        assert.is_true(text(other) == text(a))
        assert.is_true(g:writes(other))
        assert.is_false(g:writes(to))
        other:fill(0)
      end
    end)

    it("runs those that are enabled", function()
      local g = cg.capture(function() to:copy(a) end)
      g:set_enabled(1, false)
      g:replay()
      assert.is_true(text(to) == ("\0"):rep(4 * MIB) .. text(a):sub(4 * MIB + 1))
    end)

    it("copies memory of the capture", function()
      local x, y
      local g = cg.capture(function()
        x = cg.buffer("uint8", n)
        x:copy(a)
        y = cg.buffer("uint8", n)
        y:copy(x)
        to:copy(y)
      end)
      assert.equal(6, #g:nodes())
      g:replay()
      assert.is_true(text(to) == text(a))
      local parent = cg.capture(function()
        g:replay()
        other:copy(to)
      end)
      a:copy(b)
      parent:replay()
      assert.is_true(text(other) == text(b))
    end)
  end)
end)
