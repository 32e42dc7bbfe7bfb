---@meta cgraphlua.event

--- A point in a stream, for waiting and for timing.
---@class cgraphlua.event
local event = {}

--- Records the event after the work issued so far on the stream (default: the
--- current stream).  With external = true, in a capture, the record is a node:
--- each replay records the event again, for waits and timing from outside.
---@param stream? cgraphlua.stream
---@param opts? { external?: boolean }
---@overload fun(self: cgraphlua.event, opts: { external?: boolean })
function event:record(stream, opts) end

--- Waits for the work issued before the last record.  Raises inside a capture.
function event:synchronize() end

--- Is the work issued before the last record done?  Raises inside a capture.
---@return boolean
function event:query() end

--- Milliseconds from this event to a later event.  Both events must have timing
--- and be done.
---@param later cgraphlua.event
---@return number ms
function event:elapsed(later) end

---@return lightuserdata cuevent for other libraries
function event:handle() end

--- Gives the event up.
function event:release() end

return event
