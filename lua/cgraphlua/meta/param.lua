---@meta cgraphlua.param

--- A value that captured launches read again: graphs that use it take a change
--- up at their next replay.
---@class cgraphlua.param
local param = {}

--- Sets the value.  A parameter of several elements takes a list of as many.
---@param value number|boolean|number[]|string|ffi.cdata*
function param:set(value) end

--- The value as it was set last; of several elements a list.
---@return number|boolean|number[]
function param:get() end

---@return cgraphlua.type element type
function param:type() end

---@return string? name
function param:name() end

--- Gives the parameter up.  Graphs that use it keep it.
function param:release() end

return param
