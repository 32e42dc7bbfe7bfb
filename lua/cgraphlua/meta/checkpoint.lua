---@meta cgraphlua.checkpoint

--- A note of which blocks of a pool were live: see pool:checkpoint().
---@class cgraphlua.checkpoint
local checkpoint = {}

--- Gives the checkpoint up.  Blocks that it alone kept live are freed.
function checkpoint:release() end

return checkpoint
