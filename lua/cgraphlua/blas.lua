-- cgraphlua.blas: matrix products and their relatives; the functions are in C.

require "cgraphlua"
local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

-- A misspelt function is an error at its own line; rawget asks without one.
return setmetatable(core.blas, {
  __index = function(blas, name)
    error(string.format("cgraphlua.blas has no '%s'%s", tostring(name),
      type(name) == "string" and core.nearest(name, blas) or ""), 2)
  end,
})
