-- The graphs of scripts: what one process saved, another one without a compiler
-- loads, replays and saves again: the same bytes as the first saves after as
-- many replays.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../../support/program.lua")

local scripts = here .. "/../../../scripts/"

-- Saves the first graph of a script, replays it, saves it again, and is done.
local hook = [[
local cg = require "cgraphlua"
local capture, out, count = cg.capture, os.getenv "SPEC_OUT", 0
cg.capture = function(...)
  local g = capture(...)
  g:save(out .. "0", { sources = false })
  g:replay(2)
  g:save(out .. "1", { sources = false })
  os.exit(0)
end
]]

local again = [[
local cg = require "cgraphlua"
local out = os.getenv "SPEC_OUT"
local g = cg.load(out .. "0")
assert(#g:nodes() > 0)
g:replay(2)
g:save(out .. "2", { sources = false })
]]

local cases = {
  ["heat.lua"] = { "--size", "64" },
  ["lbm.lua"] = { "--steps", "200" },
  ["digits.lua"] = { "--epochs", "1" },
  ["poisson.lua"] = { "--size", "32" },
}

describe("a script's graph, saved by one process and loaded by another", function()
  for script, args in pairs(cases) do
    it("does the same: " .. script, function()
      local folder = program.folder()
      finally(function() program.remove(folder) end)
      local env = "SPEC_OUT=" .. program.quote(folder .. "/g")
      local words = { "-e", hook, scripts .. script }
      for _, arg in ipairs(args) do words[#words + 1] = arg end
      local status, out, err = program.run(words, { env = env })
      assert.are.equal(0, status, out .. err)
      status, out, err = program.run({ "-e", again },
        { env = env .. " CGRAPHLUA_CACHE=off CGRAPHLUA_CXX=/bin/false CUDA_HOME=/nowhere" })
      assert.are.equal(0, status, out .. err)
      local before, first, second =
        program.read(folder .. "/g0"), program.read(folder .. "/g1"), program.read(folder .. "/g2")
      assert.is_true(before ~= first, "the replays changed nothing")
      assert.is_true(first == second, "the loaded graph does something else")
    end)
  end
end)
