---@meta cgraphlua.hook

--- A registered hook or callback.
---@class cgraphlua.hook
local hook = {}

--- Removes the hook; false when it was removed already.  The handle does not keep
--- the graph alive.
---@return boolean removed
function hook:remove() end

return hook
