---@meta cgraphlua.generator

--- Random numbers, Philox4x32-10.  The seed and the offset lie on the device; a
--- graph that draws moves the offset itself, so every replay draws new numbers.
--- Kernels take a generator as a parameter of type cgl_philox.
---@class cgraphlua.generator
local generator = {}

--- Sets the seed, and offset 0.  In a capture only the seed that is set already
--- is accepted, and setting it does nothing.
---@param seed integer|ffi.cdata* 0 .. 2^53, or uint64_t
---@return cgraphlua.generator self
function generator:manual_seed(seed) end

--- The seed in use; uint64_t cdata beyond 2^53.  Waits for the current stream
--- when a copy on the device gave it.
---@return integer|ffi.cdata*
function generator:initial_seed() end

--- Sets a new seed from the system, as manual_seed does, and returns it.
---@return integer
function generator:seed() end

--- How many numbers were taken since the seed was set; waits for the current
--- stream.  Raises inside a capture.
---@return integer
function generator:get_offset() end

--- Sets the offset of the next draw.  Raises inside a capture.
---@param offset integer
---@return cgraphlua.generator self
function generator:set_offset(offset) end

--- Copies the state, seed and offset, into a buffer of two uint64: the given one
--- or a new one.  In a capture every replay copies the state that its draws have
--- reached there.
---@param buffer? cgraphlua.buffer
---@return cgraphlua.buffer buffer
function generator:get_state(buffer) end

--- Copies the state from such a buffer likewise.
---@param buffer cgraphlua.buffer
---@return cgraphlua.generator self
function generator:set_state(buffer) end

--- A generator with a copy of the state, made in the order of the current
--- stream.  In a capture every replay copies the state again; until the first,
--- the clone has seed 0 and offset 0.
---@return cgraphlua.generator
function generator:clone_state() end

--- A generator that shares the state.
---@return cgraphlua.generator
function generator:graphsafe_get_state() end

--- Makes the generator use the state of another from now on, also in captures.
---@param other cgraphlua.generator
---@return cgraphlua.generator self
function generator:graphsafe_set_state(other) end

--- Gives the generator up.  Graphs that draw from its state keep the state.
function generator:release() end

return generator
