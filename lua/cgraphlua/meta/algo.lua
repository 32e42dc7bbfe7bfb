---@meta cgraphlua.algo

-- Algorithms on buffers: require "cgraphlua.algo".  All run on the current
-- stream, outside captures and in them.

---@class cgraphlua.algo
local algo = {}

--- Sets every element of `out` to the value of an expression of numbers,
--- inputs, functions and the operators of C: "a * x + y".  `i` is the index of
--- the element, from 0.  An input is a number, a boolean, or a buffer with as
--- many elements as `out`, or one; `out` itself may be an input.
---@param expression string
---@param inputs table<string, cgraphlua.buffer|number|boolean|ffi.cdata*>
---@param out cgraphlua.buffer
---@return cgraphlua.buffer out
function algo.map(expression, inputs, out) end

---@alias cgraphlua.reduction
---| "sum" of integers int64 or uint64
---| "product" likewise
---| "min"
---| "max"
---| "argmin" the first index, from 0, int64
---| "argmax" likewise
---| "any" bool: an element is not 0
---| "all" bool: no element is 0
---| "dot" with the buffer of the option `with`
---| "norm" the root of the sum of the squares

--- Reduces a buffer to one element, or along an axis to one each.
---@param x cgraphlua.buffer
---@param reduction cgraphlua.reduction
---@param opts? {axis?: integer, out?: cgraphlua.buffer, with?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function algo.reduce(x, reduction, opts) end

--- The sum, minimum or maximum of the elements up to each place, or before it.
--- Sums of integers are int64 or uint64, or of the type of `out`.
---@param x cgraphlua.buffer
---@param kind "sum"|"min"|"max"
---@param opts? {exclusive?: boolean, out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function algo.scan(x, kind, opts) end

return algo
