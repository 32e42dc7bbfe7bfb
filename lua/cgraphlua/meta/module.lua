---@meta cgraphlua.module

--- Compiled kernels.
---@class cgraphlua.module
local module = {}

--- A kernel by name or name expression.  Raises CGL_ERROR_NOT_FOUND.
---@param name? string not needed when there is one kernel
---@return cgraphlua.kernel
function module:kernel(name) end

---@return string[] names of the kernels, in source order
function module:kernels() end

--- A __device__ or __constant__ variable as a buffer that keeps the module
--- alive.
---@param name string
---@param type cgraphlua.type
---@return cgraphlua.buffer
function module:global(name, type) end

--- Gives the module up.  Its kernels and graphs keep it.
function module:release() end

return module
