---@meta cgraphlua.checkpoint

--- Which blocks of a pool were live at a moment: see pool:checkpoint().
---@class cgraphlua.checkpoint
local checkpoint = {}

--- Lets go of the blocks whose buffers were released since.
function checkpoint:release() end

return checkpoint
