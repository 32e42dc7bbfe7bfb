-- cgraphlua.algo: algorithms on buffers; the functions are in C.

require "cgraphlua"
local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

-- A misspelt function is an error at its own line; rawget asks without one.
return setmetatable(core.algo, {
  __index = function(algo, name)
    error(string.format("cgraphlua.algo has no '%s'%s", tostring(name),
      type(name) == "string" and core.nearest(name, algo) or ""), 2)
  end,
})
