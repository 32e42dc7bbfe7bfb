local ffi = require "ffi"
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

pcall(ffi.cdef, [[
typedef struct lua_State lua_State;
lua_State *luaL_newstate(void);
void luaL_openlibs(lua_State *L);
int luaL_loadstring(lua_State *L, const char *s);
int lua_pcall(lua_State *L, int nargs, int nresults, int errfunc);
const char *lua_tolstring(lua_State *L, int idx, size_t *len);
void lua_close(lua_State *L);
void lua_pushcclosure(lua_State *L, int (*fn)(lua_State *L), int n);
void lua_setfield(lua_State *L, int idx, const char *k);
int luaopen_cgraphlua_core(lua_State *L);
]])

local GLOBALS = -10002 -- LUA_GLOBALSINDEX

local makers = {
  stream = function() return cg.stream() end,
  event = function() return cg.event() end,
  buffer = function() return cg.buffer("float", 10) end,
  pinned = function() return cg.pinned("float", 10) end,
  module = function() return cg.module(device.source) end,
  compilation = function() return cg.module_async(device.source) end,
  kernel = function() return device.kernel "add" end,
  pool = function() return cg.pool() end,
  graph = function() return cg.graph() end,
  checkpoint = function() return cg.pool():checkpoint() end,
  loop = function() return cg.loop(cg.zeros("bool", 1), function() end) end,
  ranks = function() return cg.ranks() end,
}

-- A chunk of another Lua state of this process; returns what it returns.
local function in_another_state(chunk)
  local L = ffi.C.luaL_newstate()
  ffi.C.luaL_openlibs(L)
  local prelude = ("package.path, package.cpath = %q, %q\n"):format(package.path, package.cpath)
  -- The program has the core built in; a stock LuaJIT loads the library.
  if package.preload["cgraphlua.core"] then
    ffi.C.lua_pushcclosure(L, ffi.C.luaopen_cgraphlua_core, 0)
    ffi.C.lua_setfield(L, GLOBALS, "open_core")
    prelude = prelude .. "package.preload['cgraphlua.core'] = open_core\n"
  end
  local failed = ffi.C.luaL_loadstring(L, prelude .. chunk) ~= 0 or ffi.C.lua_pcall(L, 0, 1, 0) ~= 0
  local text = ffi.C.lua_tolstring(L, -1, nil)
  local result = text ~= nil and ffi.string(text) or "no text"
  ffi.C.lua_close(L)
  assert(not failed, result)
  return result
end

describe("live objects", function()
  teardown(device.nothing_alive)

  it("are none once all was collected", function()
    device.nothing_alive()
  end)

  for noun, make in pairs(makers) do
    it("count a " .. noun .. " until it is released or collected", function()
      device.nothing_alive()
      cg.device()
      local held = make()
      local before = cg.live(noun)
      local more = {}
      for i = 1, 5 do more[i] = make() end
      assert.equal(before + 5, cg.live(noun))
      for i = 1, 2 do more[i]:release() end
      assert.equal(before + 3, cg.live(noun))
      assert.is_truthy(more[3])
      more = nil -- luacheck: ignore
      collectgarbage()
      collectgarbage()
      assert.equal(before, cg.live(noun))
      assert.is_true(cg.live() >= before)
      held:release()
    end)
  end

  it("include what a graph keeps, until the graph goes", function()
    device.nothing_alive()
    local g
    do
      local add, x = device.kernel "add", cg.zeros("float", 4)
      g = cg.capture(function() add:launch(1, 32, x, 1, 4) end)
      x:release()
    end
    assert.equal(1, cg.live "buffer")
    g:replay()
    cg.synchronize()
    g:reset()
    assert.equal(0, cg.live "buffer")
  end)

  it("that die in a capture are let go when it ends", function()
    device.nothing_alive()
    local x = cg.zeros("float", 4)
    local g = cg.graph()
    g:capture(function()
      x:fill(1)
      for _ = 1, 3 do
        cg.module(device.source):release()
        cg.event():release()
      end
    end)
    assert.equal(0, cg.live "module")
    assert.equal(0, cg.live "event")
    g:replay()
    assert.same({ 1, 1, 1, 1 }, x:download())
  end)

  it("end with a process that left them alive", function()
    local status, out, err = device.child([[
      held = { cg.stream(), cg.event(), cg.zeros("float", 100), cg.pinned("float", 5), cg.pool() }
      local x = held[3]
      g = cg.capture(function() x:fill(1) end)
      g:replay(1000)
      io.write "end"
    ]], "CGRAPHLUA_DEVICE=host")
    assert.equal("", err)
    assert.equal("end", out)
    assert.equal(0, status)
  end)

  it("end with os.exit in a capture", function()
    local status, out, err = device.child([[
      local x, s = cg.zeros("float", 100), cg.stream()
      s:use(function()
        cg.capture(function()
          x:fill(1)
          os.exit(3, true)
        end)
      end)
    ]], "CGRAPHLUA_DEVICE=host")
    assert.equal("", err)
    assert.equal("", out)
    assert.equal(3, status)
  end)

  it("end with the Lua state that made them", function()
    device.nothing_alive()
    for _ = 1, 3 do
      assert.equal("9 9", in_another_state [[
        local cg = require "cgraphlua"
        cg.on_log(nil)
        held = { cg.stream(), cg.event(), cg.pinned("float", 5), cg.pool() }
        x = cg.zeros("float", 4)
        g = cg.capture(function() x:fill(9) end)
        g:replay()
        return x:download()[1] .. " " .. x:download()[4]
      ]])
      assert.equal(0, cg.live())
    end
  end)

  it("are told apart by states: each has its own current stream", function()
    local s = cg.stream()
    s:use(function()
      assert.equal("true", in_another_state [[
        local cg = require "cgraphlua"
        cg.on_log(nil)
        return tostring(cg.current_stream() == cg.default_stream())
      ]])
      assert.equal(s, cg.current_stream())
    end)
  end)
end)
