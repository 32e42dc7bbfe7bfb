---@meta cgraphlua.generator

--- Random numbers, Philox4x32-10, whose seed and offset lie on the device: a
--- graph that draws moves the offset itself, so every replay draws anew.
--- Kernels take one as a parameter of type cgl_philox.
---@class cgraphlua.generator
local generator = {}

--- Starts over with this seed, at offset 0.  In a capture only the seed that
--- is set already is taken, and does nothing.
---@param seed integer|ffi.cdata* 0 .. 2^53, or uint64_t
---@return cgraphlua.generator self
function generator:manual_seed(seed) end

--- The seed in use; uint64_t cdata beyond 2^53.
---@return integer|ffi.cdata*
function generator:initial_seed() end

--- Sets a fresh seed of the system's, as manual_seed, and returns it.
---@return integer
function generator:seed() end

--- Numbers taken since the seed; waits for the current stream.  Raises in a
--- capture.
---@return integer
function generator:get_offset() end

--- Goes on from this offset.  Raises in a capture.
---@param offset integer
---@return cgraphlua.generator self
function generator:set_offset(offset) end

--- A generator with a copy of the state as it is now; waits for the current
--- stream.  Raises in a capture.
---@return cgraphlua.generator
function generator:clone_state() end

--- A generator that shares the state.
---@return cgraphlua.generator
function generator:graphsafe_get_state() end

--- Uses the state of another generator from now on, in a capture too.
---@param other cgraphlua.generator
---@return cgraphlua.generator self
function generator:graphsafe_set_state(other) end

--- Gives the generator up; graphs that draw from its state keep that.
function generator:release() end

return generator
