---@meta cgraphlua.compilation

--- A module that is compiled while the script goes on: see cg.module_async.
---@class cgraphlua.compilation
local compilation = {}

--- Whether the compile has ended, well or badly.  Never waits.
---@return boolean
function compilation:ready() end

--- Waits for the compile and returns its module.  Raises what cg.module raises.
---@return cgraphlua.module
function compilation:wait() end

--- Gives the compilation up, and ends a compile that is underway.  Its module
--- stays.
function compilation:release() end

return compilation
