---@meta cgraphlua.buffer

--- Typed device memory.  #b is the number of elements.
---@class cgraphlua.buffer
---@field type cgraphlua.type
---@field bytes integer
---@field shape integer[] a new list each time; {#b} unless a shape was given
---@operator len: integer
local buffer = {}

--- Copies from a list (of lists), a string of raw bytes or an FFI array with
--- exactly as many elements, and waits.  Raises inside a capture.
---@param data table|string|ffi.cdata*
---@return cgraphlua.buffer self
function buffer:upload(data) end

--- Waits for the current stream and returns the elements: a flat list, or
--- with "string" the raw bytes, or the list or FFI array given, filled.
--- 64-bit integers beyond 2^53 are FFI integers.  Raises inside a capture.
---@param into? table|"string"|ffi.cdata*
---@return table|string|ffi.cdata*
function buffer:download(into) end

--- Copies all of `source`, which has the same type and count, asynchronously
--- on the current stream.
---@param source cgraphlua.buffer|cgraphlua.pinned
---@return cgraphlua.buffer self
function buffer:copy(source) end

--- Sets every element, asynchronously on the current stream.
---@param value number|boolean|ffi.cdata*
---@return cgraphlua.buffer self
function buffer:fill(value) end

--- Fills with random numbers from [low, high): buffers of float, double, half
--- and bfloat16.  The first argument may be left out, or nil: the device's
--- default generator.
---@param gen? cgraphlua.generator
---@param low? number default: 0
---@param high? number default: 1
---@return cgraphlua.buffer self
---@overload fun(self, low: number, high: number): cgraphlua.buffer
function buffer:uniform(gen, low, high) end

--- The same, normally distributed.
---@param gen? cgraphlua.generator
---@param mean? number default: 0
---@param std? number standard deviation, default: 1
---@return cgraphlua.buffer self
---@overload fun(self, mean: number, std: number): cgraphlua.buffer
function buffer:normal(gen, mean, std) end

--- Whole numbers from low to below high, every one alike: buffers of integers
--- and bool.  One bound is the upper one; none: up to the type's largest.
---@param gen? cgraphlua.generator
---@param low? integer|ffi.cdata* default: 0
---@param high? integer|ffi.cdata*
---@return cgraphlua.buffer self
---@overload fun(self, low: integer, high: integer): cgraphlua.buffer
function buffer:random(gen, low, high) end

--- Elements first .. first + count - 1 (count from 1) of the same memory,
--- which the view keeps.
---@param first integer
---@param count? integer default: to the end
---@return cgraphlua.buffer
function buffer:view(first, count) end

---@return integer address on the device
function buffer:address() end

--- Gives the memory back, when no graph or view uses it.  The collector sees
--- no device memory, and a compiled loop may hold what it used: release what
--- is big.
function buffer:release() end

return buffer
