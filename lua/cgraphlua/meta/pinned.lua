---@meta cgraphlua.pinned

--- Page-locked host memory, initialized to zero.  #pinned is the number of
--- elements.
---@class cgraphlua.pinned
---@field type cgraphlua.type
---@field bytes integer
---@operator len: integer
local pinned = {}

--- A pointer to the elements, from 0, that keeps the memory from being collected.
--- It must not be used after release().  half and bfloat16 are uint16_t.
---@return ffi.cdata*
function pinned:cdata() end

--- An element, counted from 1.
---@param i integer
---@return number|boolean|number[]|ffi.cdata*
function pinned:get(i) end

--- Sets an element, counted from 1.
---@param i integer
---@param value number|boolean|string|cgraphlua.vector|ffi.cdata*
---@return cgraphlua.pinned self
function pinned:set(i, value) end

--- Copies all of a buffer of the same type and count, asynchronously on the
--- current stream.
---@param source cgraphlua.buffer
---@return cgraphlua.pinned self
function pinned:copy(source) end

--- Gives the memory up.  It is freed when no graph uses it.
function pinned:release() end

return pinned
