---@meta cgraphlua.hook

--- A registered hook or callback.
---@class cgraphlua.hook
local hook = {}

--- Takes it back; false when it was gone already.  Does not keep the graph.
---@return boolean removed
function hook:remove() end

return hook
