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

return algo
