---@meta cgraphlua.param

--- A value that captured launches read again: graphs that use it take a change
--- up at their next replay.
---@class cgraphlua.param
local param = {}

--- Sets the value.  A parameter of several elements takes a list of as many,
--- a struct's a table with a value for every field.
--- Raises CGL_ERROR_INVALID_ARGUMENT while the parameter follows a buffer.
---@param value number|boolean|number[]|table<string, any>|string|ffi.cdata*
function param:set(value) end

--- The value as it was set last; of several elements a list,
--- of a struct whose fields are known a table.  Of a parameter that follows a buffer
--- what that holds, for which it waits: raises inside a capture.
---@return number|boolean|number[]|table<string, any>
function param:get() end

--- From now on launches, fills and captures that use the parameter read it from the
--- buffer when they run; nil ends it.  The buffer has the parameter's type and count:
--- a view of one element for one number.
--- Raises CGL_ERROR_INVALID_ARGUMENT for another buffer, a struct, more than 32 bytes.
---@param buffer? cgraphlua.buffer
---@return cgraphlua.param self
function param:follow(buffer) end

--- The buffer that the parameter follows.
---@return cgraphlua.buffer? buffer
function param:followed() end

---@return cgraphlua.type element type
function param:type() end

---@return string? name
function param:name() end

--- Gives the parameter up.  Graphs that use it keep it.
function param:release() end

return param
