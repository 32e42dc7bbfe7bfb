---@meta cgraphlua.ranks

-- Ranks are counted from 0.  Collectives run on the current stream, outside
-- captures and in them; every rank of the group calls them, in the same order.

---@alias cgraphlua.ranks_operation
---| "sum" of numbers, the default
---| "product" of numbers
---| "min" of numbers
---| "max" of numbers
---| "any" of bool
---| "all" of bool

--- A group of processes, a device each: see cg.ranks().
---@class cgraphlua.ranks
---@field rank integer this process's index in the group
---@field size integer ranks in the group
---@field local_rank integer this process's index on its machine
---@field library string what moves the elements; "" for one rank
local ranks = {}

---@class cgraphlua.transfer
---@field send? cgraphlua.buffer goes to the rank `to`
---@field to? integer
---@field recv? cgraphlua.buffer comes from the rank `from`
---@field from? integer

--- Divides the group: ranks of one color are a group, in order of key.  nil for
--- a color of -1.
---@param color integer
---@param key? integer
---@return cgraphlua.ranks?
function ranks:split(color, key) end

--- Combines the elements of all ranks; `dst` may be `src`, as it is when left out.
---@param src cgraphlua.buffer
---@param dst? cgraphlua.buffer
---@param operation? cgraphlua.ranks_operation
function ranks:all_reduce(src, dst, operation) end

--- The same for one rank, which alone needs `dst`.
---@param src cgraphlua.buffer
---@param dst? cgraphlua.buffer
---@param operation? cgraphlua.ranks_operation
---@param root? integer 0 when left out
function ranks:reduce(src, dst, operation, root) end

--- Gives all ranks what `root` has.
---@param buffer cgraphlua.buffer
---@param root? integer 0 when left out
function ranks:broadcast(buffer, root) end

--- Writes the elements of all ranks one after the other.
---@param src cgraphlua.buffer
---@param dst cgraphlua.buffer of `size` times as many elements
function ranks:all_gather(src, dst) end

--- Combines the elements of all ranks, and gives each rank its part.
---@param src cgraphlua.buffer of `size` times as many elements
---@param dst cgraphlua.buffer
---@param operation? cgraphlua.ranks_operation
function ranks:reduce_scatter(src, dst, operation) end

--- Part i of `src` goes to rank i, whose part it becomes in `dst`.
---@param src cgraphlua.buffer
---@param dst cgraphlua.buffer of the same size
function ranks:all_to_all(src, dst) end

--- Sends a buffer to a rank that receives it.
---@param buffer cgraphlua.buffer
---@param to integer
function ranks:send(buffer, to) end

--- Receives a buffer that a rank sends.
---@param buffer cgraphlua.buffer
---@param from integer
function ranks:recv(buffer, from) end

--- Sends and receives, all at once.
---@param transfers cgraphlua.transfer[]
function ranks:exchange(transfers) end

--- What comes after it on the stream begins when all ranks have come so far.
function ranks:barrier() end

--- Gives the group up; graphs that use it keep it.
function ranks:release() end

return ranks
