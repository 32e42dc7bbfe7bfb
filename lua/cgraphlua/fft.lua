-- cgraphlua.fft: Fourier transforms; the functions are in C.

require "cgraphlua"
local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

-- A misspelt function is an error at its own line; rawget asks without one.
return setmetatable(core.fft, {
  __index = function(fft, name)
    error(string.format("cgraphlua.fft has no '%s'%s", tostring(name),
      type(name) == "string" and core.nearest(name, fft) or ""), 2)
  end,
})
