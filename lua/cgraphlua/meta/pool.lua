---@meta cgraphlua.pool

--- An allocator of device memory, for the captures and buffers that name it.
---@class cgraphlua.pool
local pool = {}

--- Calls fn(...).  Buffers and graphs that fn makes use this pool.
---@param fn fun(...): ...
---@param ... any
---@return any ... what fn returned
function pool:use(fn, ...) end

---@class cgraphlua.pool_stats
---@field reserved integer bytes taken from the device
---@field reserved_peak integer
---@field allocated integer bytes in live blocks
---@field allocated_peak integer
---@field allocations integer since the pool was made
---@field frees integer
---@field segments integer now
---@field ordered integer replays that waited for another graph of the pool
---@field refused integer replays refused with CGL_ERROR_ORDER
---@field executables integer bytes of live executables that were made while a history was kept

---@return cgraphlua.pool_stats
function pool:stats() end

---@class cgraphlua.block
---@field address integer
---@field bytes integer
---@field state "live"|"free"|"pending"|"scratch"|"unmapped"
---@field stream? integer serial of the block's stream
---@field requested? integer bytes asked for, of a live block
---@field number? integer of the allocation
---@field in_capture? boolean allocated while the stream captured
---@field where? string the script's "file:line" that allocated it

---@class cgraphlua.segment
---@field address integer
---@field bytes integer of address space that has been used
---@field mapped integer bytes of device memory behind it
---@field blocks cgraphlua.block[] by address; they cover the segment

--- The pool's segments and blocks as they are now.
---@return { pool: integer, segments: cgraphlua.segment[] }
function pool:snapshot() end

--- Waits for the device and returns every page without a live block to it.
--- Scratch blocks stay while a graph of the pool lives.  Raises while a capture is
--- underway.
---@return integer bytes
function pool:trim() end

--- Notes which blocks are live.  These blocks stay live while the checkpoint
--- lives, even when their buffers are released.  Raises while a capture into the
--- pool is underway.
---@return cgraphlua.checkpoint
function pool:checkpoint() end

--- Takes back the blocks that were allocated since the checkpoint.  Using their
--- buffers, or replaying graphs captured into the pool since, raises
--- CGL_ERROR_RELEASED.  Raises while a capture into the pool is underway.
---@param checkpoint cgraphlua.checkpoint of this pool
---@return cgraphlua.pool self
function pool:restore(checkpoint) end

--- Gives the pool up.  It lives while a block or a graph uses it.
function pool:release() end

return pool
