---@meta cgraphlua.param

--- A value that captured launches read again: graphs that use it take a change
--- up at their next replay.
---@class cgraphlua.param
local param = {}

--- Sets the value.  A parameter of several elements takes a list of as many,
--- a struct's a table with a value for every field.
---@param value number|boolean|number[]|table<string, any>|string|ffi.cdata*
function param:set(value) end

--- The value as it was set last; of several elements a list,
--- of a struct whose fields are known a table.
---@return number|boolean|number[]|table<string, any>
function param:get() end

---@return cgraphlua.type element type
function param:type() end

---@return string? name
function param:name() end

--- Gives the parameter up.  Graphs that use it keep it.
function param:release() end

return param
