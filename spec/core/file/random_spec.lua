-- Random graphs, those of conditional_random_spec and plan_random_spec, saved
-- before each replay, loaded, and replayed beside the graph: both then save the
-- same bytes, so the same nodes did the same to the same memory.  Graphs of
-- libraries cannot all be saved.
-- CGRAPHLUA_SAVE_PROGRAMS sets how many programs of each (10).

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local cg = require "cgraphlua"
local program = dofile(here .. "/../../support/program.lua")

local PROGRAMS = os.getenv "CGRAPHLUA_SAVE_PROGRAMS" or "10"
local capture, getenv = cg.capture, os.getenv
local folder, compared, refused
-- Of the operations in the two specs, these are calls of libraries, and the
-- kernels of algo.sort and of transforms on the host device.
local libraries = {
  ["another library does its work"] = true,
  ["a buffer may hold addresses"] = true,
}

local options = { sources = false }

-- A graph whose replays are compared.
local function watched(g)
  local proxy = {}
  function proxy.replay(_, n)
    if cg.is_current_stream_capturing() then return g:replay(n) end
    local before, after, again = folder .. "/before", folder .. "/after", folder .. "/again"
    local ok, e = pcall(g.save, g, before, options)
    if not ok then
      assert(tostring(e):find "cannot be in a file", tostring(e))
      local why = tostring(e):match "in a file: ([^%[]*) %["
      refused = refused + (libraries[why] and 0 or 1)
      return g:replay(n)
    end
    local loaded = cg.load(before)
    loaded:save(again, options)
    assert(program.read(before) == program.read(again), "what was loaded is another graph")
    loaded:replay(n)
    g:replay(n)
    g:save(after, options)
    loaded:save(again, options)
    assert(program.read(after) == program.read(again), "what was loaded does something else")
    loaded:release()
    compared = compared + 1
  end
  return setmetatable(proxy, { __index = function(_, name)
    return function(_, ...) return g[name](g, ...) end
  end })
end

describe("random graphs in files", function()
  setup(function()
    folder, compared, refused = program.folder(), 0, 0
    cg.capture = function(...) return watched(capture(...)) end -- luacheck: ignore 122
  end)
  teardown(function()
    cg.capture = capture -- luacheck: ignore 122
    program.remove(folder)
  end)
  os.getenv = function(name) -- luacheck: ignore 122
    return name:find "^CGRAPHLUA_.*_PROGRAMS$" and PROGRAMS or getenv(name)
  end
  for _, name in ipairs { "conditional_random_spec", "plan_random_spec" } do
    local chunk = assert(loadfile(here .. "/../graph/" .. name .. ".lua"))
    setfenv(chunk, getfenv(1))() -- with busted's words
  end
  os.getenv = getenv -- luacheck: ignore 122

  it("were compared", function()
    assert.is_true(compared >= tonumber(PROGRAMS))
    assert.are.equal(0, refused)
  end)
end)
