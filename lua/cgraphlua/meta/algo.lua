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

--- out[i] = x[indices[i]], counted from 0; 0 where there is no such element.
---@param x cgraphlua.buffer
---@param indices cgraphlua.buffer of int32, uint32, int64 or uint64
---@param opts? {out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer of the indices' shape unless the option names one
function algo.gather(x, indices, opts) end

--- out[indices[i]] = x[i], where there is such an element.  Of equal indices any
--- one may be the last.
---@param x cgraphlua.buffer
---@param indices cgraphlua.buffer of int32, uint32, int64 or uint64
---@param out cgraphlua.buffer
---@return cgraphlua.buffer out
function algo.scatter(x, indices, out) end

--- The elements whose flag is true, in their order, at the beginning of a buffer
--- of the size of `x`, and their number, an int64 on the device.
---@param x cgraphlua.buffer
---@param flags cgraphlua.buffer of bool
---@param opts? {count?: cgraphlua.buffer, out?: cgraphlua.buffer}
---@return cgraphlua.buffer out
---@return cgraphlua.buffer count
function algo.select(x, flags, opts) end

--- The columns of a buffer of two extents as rows.
---@param x cgraphlua.buffer
---@param opts? {out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function algo.transpose(x, opts) end

--- Sorts elements of any type; a NaN is larger than every number.
---@param x cgraphlua.buffer
---@param opts? {descending?: boolean, out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function algo.sort(x, opts) end

--- Sorts keys, and values in the same order; equal keys keep theirs.
---@param keys cgraphlua.buffer
---@param values cgraphlua.buffer
---@param opts? {descending?: boolean, out?: cgraphlua.buffer, out_values?: cgraphlua.buffer}
---@return cgraphlua.buffer keys
---@return cgraphlua.buffer values
function algo.sort_by_key(keys, values, opts) end

--- The different elements, sorted, at the beginning of a buffer of the size of
--- `x`, and their number, an int64 on the device.
---@param x cgraphlua.buffer
---@param opts? {count?: cgraphlua.buffer, out?: cgraphlua.buffer}
---@return cgraphlua.buffer out
---@return cgraphlua.buffer count
function algo.unique(x, opts) end

--- How many elements are in each of the bins that divide `low` to `high` evenly,
--- int64.  The last bin has its upper edge, too; other numbers do not count.
---@param x cgraphlua.buffer
---@param bins integer
---@param low number
---@param high number
---@param opts? {out?: cgraphlua.buffer}
---@return cgraphlua.buffer out a new buffer unless the option names one
function algo.histogram(x, bins, low, high, opts) end

return algo
