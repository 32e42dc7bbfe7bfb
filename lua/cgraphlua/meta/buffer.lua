---@meta cgraphlua.buffer

--- Typed device memory.  #buffer is the number of elements.
---@class cgraphlua.buffer
---@field type cgraphlua.type
---@field bytes integer
---@field shape integer[] a new list each time; {#b} unless a shape was given
---@operator len: integer
local buffer = {}

--- Copies data into the buffer, and waits: a list (of lists), a string of raw
--- bytes or an FFI array, with exactly as many elements as the buffer; or host
--- memory at a pointer or in an FFI array, of the buffer's bytes.  Raises inside a capture.
---@param data table|string|ffi.cdata*
---@return cgraphlua.buffer self
---@overload fun(self, pointer: ffi.cdata*|lightuserdata, bytes: integer): cgraphlua.buffer
function buffer:upload(data) end

--- Waits for the current stream and returns the elements: without an argument
--- as a new flat list, with "string" as raw bytes, with a list or an FFI array
--- in that, with a pointer and the buffer's bytes in the host memory there.
--- 64-bit integers beyond 2^53 are FFI integers.  Raises inside a capture.
---@param into? table|"string"|ffi.cdata*
---@return table|string|ffi.cdata*
---@overload fun(self, pointer: ffi.cdata*|lightuserdata, bytes: integer): ffi.cdata*|lightuserdata
function buffer:download(into) end

--- Waits for the current stream and returns the only element of a buffer of one.
--- Raises inside a capture.
---@return number|boolean|number[]|ffi.cdata*
function buffer:item() end

--- Copies all of `source`, of the same type and count, asynchronously on the
--- current stream.
---@param source cgraphlua.buffer|cgraphlua.pinned
---@return cgraphlua.buffer self
function buffer:copy(source) end

--- Sets every element to a value, asynchronously on the current stream.
---@param value number|boolean|cgraphlua.vector|ffi.cdata*|cgraphlua.param
---@return cgraphlua.buffer self
function buffer:fill(value) end

--- Fills the buffer with uniform numbers from [low, high).  The type is float,
--- double, half or bfloat16, or one of several of them.  Without a generator, or
--- with nil, it draws from the device's default generator.
---@param gen? cgraphlua.generator
---@param low? number|cgraphlua.param default: 0
---@param high? number|cgraphlua.param default: 1
---@return cgraphlua.buffer self
---@overload fun(self, low: number|cgraphlua.param, high: number|cgraphlua.param): cgraphlua.buffer
function buffer:uniform(gen, low, high) end

--- Fills the buffer likewise with normally distributed numbers.
---@param gen? cgraphlua.generator
---@param mean? number|cgraphlua.param default: 0
---@param std? number|cgraphlua.param standard deviation, default: 1
---@return cgraphlua.buffer self
---@overload fun(self, mean: number|cgraphlua.param, std: number|cgraphlua.param): cgraphlua.buffer
function buffer:normal(gen, mean, std) end

--- Fills the buffer, of integers, int4 or bool, with whole numbers from low to below
--- high, each with equal probability.  A single bound is the upper bound.
--- Without bounds the numbers go up to the largest of the type.  Between bounds of
--- which one is a parameter there are at most 2^32 numbers.
---@param gen? cgraphlua.generator
---@param low? integer|ffi.cdata*|cgraphlua.param default: 0
---@param high? integer|ffi.cdata*|cgraphlua.param
---@return cgraphlua.buffer self
---@overload fun(self, low: integer|cgraphlua.param, high: integer|cgraphlua.param): self
function buffer:random(gen, low, high) end

--- A buffer over the elements first .. first + count - 1 of the same memory,
--- counted from 1.  The view keeps the memory alive.
---@param first integer
---@param count? integer|integer[] a count or a shape; default: to the end
---@return cgraphlua.buffer
function buffer:view(first, count) end

---@return integer address on the device
function buffer:address() end

--- Gives the buffer up.  Its memory is freed when no graph or view uses it.  The
--- collector does not see device memory, and a compiled loop may hold objects
--- that it used: release large buffers.
function buffer:release() end

return buffer
