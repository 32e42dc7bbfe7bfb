---@meta cgraphlua.event

--- A point in a stream, to wait for and to time.
---@class cgraphlua.event
local event = {}

--- Records after what was issued so far on the stream (default: current).
--- With external = true, in a capture, the record is a node of the graph:
--- each replay records the event anew, to be timed and waited for outside.
---@param stream? cgraphlua.stream
---@param opts? { external?: boolean }
---@overload fun(self: cgraphlua.event, opts: { external?: boolean })
function event:record(stream, opts) end

--- Waits for what was issued before the last record.  Raises in a capture.
function event:synchronize() end

--- Is what was issued before the last record done?  Raises in a capture.
---@return boolean
function event:query() end

--- Milliseconds from this event to a later one; both done, both with timing.
---@param later cgraphlua.event
---@return number ms
function event:elapsed(later) end

---@return lightuserdata cuevent for other libraries
function event:handle() end

--- Gives the event up.
function event:release() end

return event
