---@meta cgraphlua.kernel

--- A kernel of a module.
---@class cgraphlua.kernel
local kernel = {}

--- Thread blocks, or threads per thread block: a number, or {x, y, z} with 1 for
--- an absent extent.
---@alias cgraphlua.sizes integer|integer[]

--- Thread blocks, and bytes of dynamic shared memory.
---@class cgraphlua.grid
---@field [1] integer|cgraphlua.param
---@field [2]? integer|cgraphlua.param
---@field [3]? integer|cgraphlua.param
---@field shared? integer bytes

--- An argument of a kernel: buffers and pinned memory for pointers (cg.null for a
--- null pointer), generators for cgl_philox, numbers, booleans, 64-bit FFI
--- integers, lists of numbers for vectors, tables with a value for every field for
--- structs, FFI structs and strings of exactly a parameter's bytes for values.
---@alias cgraphlua.argument
---| number
---| number[]
---| table<string, any>
---| boolean
---| string
---| lightuserdata
---| ffi.cdata*
---| cgraphlua.buffer
---| cgraphlua.pinned
---| cgraphlua.generator
---| cgraphlua.param

--- Launches the kernel on the current stream.  Raises CGL_ERROR_ARGUMENT_COUNT,
--- _TYPE and _RANGE before the driver sees the launch, so a capture stays whole.
---@param grid cgraphlua.sizes|cgraphlua.grid|cgraphlua.param replays read parameters again
---@param block cgraphlua.sizes
---@param ... cgraphlua.argument
function kernel:launch(grid, block, ...) end

--- A function that launches at least n threads in one dimension, in thread blocks
--- of block_size() threads.  The kernel compares its index with n.
---@param n integer|cgraphlua.param
---@return fun(...: cgraphlua.argument)
function kernel:over(n) end

---@return string name
function kernel:name() end

--- Says what the kernel does with the memory of parameters, by name or number, in
--- launches from now on.  Captures in data order go by it.
---@param effects table<string|integer, "read"|"write"|"update"|"declared">
---@return cgraphlua.kernel self
function kernel:effects(effects) end

---@return integer threads per thread block with good occupancy
function kernel:block_size() end

---@class cgraphlua.parameter
---@field type string as the source or the compiler spells it, "const float *"
---@field name string
---@field pointer boolean
---@field readonly boolean a pointer to const
---@field bytes integer
---@field fields? cgraphlua.field[] of a struct that may be given as a table

---@class cgraphlua.field
---@field type string as the source spells it, of an array's elements
---@field name string
---@field pointer boolean
---@field offset integer bytes from the beginning of the struct
---@field bytes integer of the value, or of each element of an array
---@field shape? integer[] extents of an array
---@field fields? cgraphlua.field[] of a struct in the struct

---@return cgraphlua.parameter[]
function kernel:parameters() end

--- A parameter to stand for one of the kernel's: of its very type, and of a
--- struct with its fields.
---@param parameter integer|string the kernel's, by number or name
---@param value number|boolean|table|string|ffi.cdata* as a launch takes it
---@param name? string for graph:set; default: the kernel's
---@return cgraphlua.param
function kernel:param(parameter, value, name) end

--- How the device runs the kernel: "device" on a GPU; on the host device "loop"
--- or "strips" without barriers, "loops" between barriers, or "fibers", which is
--- slow.
---@return "device"|"loop"|"strips"|"loops"|"fibers" form
---@return string|nil why what of the source makes it run as fibers
---@return integer|nil line the line of its file
function kernel:form() end

---@class cgraphlua.kernel_info
---@field name string
---@field form "device"|"loop"|"loops"|"fibers"
---@field why? string what of the source makes it run as fibers
---@field line? integer the line of its file

--- What is known of how the kernel runs, in a table.
---@return cgraphlua.kernel_info
function kernel:info() end

--- Gives the kernel up.  Graphs that launch it keep it.
function kernel:release() end

return kernel
