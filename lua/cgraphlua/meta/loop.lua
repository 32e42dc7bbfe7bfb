---@meta cgraphlua.loop

--- What a loop reports: see cg.loop() and cg.times().
---@class cgraphlua.loop
local loop = {}

--- How often the body ran when the loop ran last; 0 before that.  Waits for the
--- current stream, on which the graph was replayed.
---@return integer turns
function loop:turns() end

--- Was the loop that ran last stopped by its `max`?  Waits likewise.
---@return boolean exhausted
function loop:exhausted() end

--- Gives the loop up; graphs that have it go on turning.
function loop:release() end

return loop
