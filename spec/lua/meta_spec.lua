-- The annotations in lua/cgraphlua/meta and the live tables name the same
-- functions and fields, both ways.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local folder = here .. "/../../lua/cgraphlua/meta/"

-- What a file declares: fields of its first class, functions with the
-- parameters of their signature and those annotated.
local function read_meta(name)
  local meta = { fields = {}, functions = {}, class = nil }
  local class, params, described = nil, {}, false
  for line in device.program.read(folder .. name .. ".lua"):gmatch "([^\n]*)\n" do
    local doc = line:match "^%-%-%-(.*)"
    if doc then
      class = doc:match "^@class ([%w_.]+)" or class
      meta.class = meta.class or class
      local field = doc:match "^@field ([%w_]+)"
      if field and class == meta.class then meta.fields[field] = true end
      local param = doc:match "^@param ([%w_.]+)%??"
      if param then params[#params + 1] = param end
      described = described or doc:match "%S" ~= nil
    else
      local owner, fn, list = line:match "^function ([%w_]+)[.:]([%w_]+)%((.*)%) end$"
      if fn then
        meta.functions[owner == "debug" and "debug." .. fn or fn] =
          { list = list, params = table.concat(params, ", "), described = described }
      end
      params, described = {}, false
    end
  end
  return meta
end

local function sorted(set)
  local names = {}
  for name in pairs(set) do names[#names + 1] = name end
  table.sort(names)
  return names
end

describe("annotations", function()
  teardown(device.nothing_alive)

  for kind, make in pairs(device.objects) do
    it("name the methods and fields of a " .. kind, function()
      local meta = read_meta(kind)
      local live = debug.getmetatable(make())
      assert.equal("cgraphlua." .. kind, meta.class)
      assert.equal(meta.class, live.__metatable)
      assert.same(sorted(live.methods), sorted(meta.functions))
      assert.same(sorted(live.fields), sorted(meta.fields))
    end)

    it("describe every method of a " .. kind .. " and its parameters", function()
      for name, fn in pairs(read_meta(kind).functions) do
        assert.is_true(fn.described, name)
        assert.equal(fn.list, fn.params, name)
      end
    end)
  end

  it("name the functions and fields of the module", function()
    local meta, functions, fields = read_meta "cgraphlua", {}, {}
    for name, value in pairs(cg) do
      (type(value) == "function" and functions or fields)[name] = true
    end
    for name in pairs(cg.debug) do functions["debug." .. name] = true end
    assert.same(sorted(functions), sorted(meta.functions))
    assert.same(sorted(fields), sorted(meta.fields))
    for name, fn in pairs(meta.functions) do
      assert.is_true(fn.described, name)
      assert.equal(fn.list, fn.params, name)
    end
  end)

  for _, module in ipairs { "algo", "blas", "fft" } do
    it("name the functions of cgraphlua." .. module, function()
      local meta = read_meta(module)
      assert.same(sorted(require("cgraphlua." .. module)), sorted(meta.functions))
      for name, fn in pairs(meta.functions) do
        assert.is_true(fn.described, name)
        assert.equal(fn.list, fn.params, name)
      end
    end)
  end

  it("name the fields of an error, a device and a node", function()
    local _, e = pcall(cg.set_device, "nothing")
    assert.same(sorted(e), sorted(read_meta("error").fields))
    local text = device.program.read(folder .. "cgraphlua.lua")
    for name in pairs(cg.device()) do
      assert.is_truthy(text:find("---@field " .. name .. " ", 1, true), name)
    end
    local add, x = device.kernel "add", cg.zeros("float", 1)
    local g = cg.capture(function() add:launch(1, 1, x, 1, 1) end)
    text = device.program.read(folder .. "graph.lua")
    for name in pairs(g:nodes()[1]) do
      local optional = (name == "grid" or name == "block") and "?" or ""
      assert.is_truthy(text:find("---@field " .. name .. optional .. " ", 1, true), name)
    end
    text = device.program.read(folder .. "pool.lua")
    for name in pairs(cg.pool():stats()) do
      assert.is_truthy(text:find("---@field " .. name .. " ", 1, true), name)
    end
    text = device.program.read(folder .. "kernel.lua")
    for name in pairs(add:parameters()[1]) do
      assert.is_truthy(text:find("---@field " .. name .. " ", 1, true), name)
    end
  end)

  it("know the element types and the options that are taken", function()
    local text = device.program.read(folder .. "cgraphlua.lua")
    local _, message = pcall(cg.buffer, "none", 1)
    local n = 0
    for name in message:match("one of (.*), got"):gmatch "[%w_]+" do
      assert.is_truthy(text:find('---| "' .. name .. '"', 1, true), name)
      n = n + 1
    end
    assert.equal(45, n)
    for _, case in ipairs {
      { cg.stream, { nope = 1 } }, { cg.event, { nope = 1 } }, { cg.graph, { nope = 1 } },
      { cg.module, { nope = 1 } }, { cg.capture, print, { nope = 1 } },
    } do
      _, message = pcall(unpack(case))
      for name in message:match("options are (.*)%)"):gmatch "[%w_]+" do
        assert.is_truthy(text:find("[{ ]" .. name .. "%?:?"), name)
      end
    end
  end)
end)
