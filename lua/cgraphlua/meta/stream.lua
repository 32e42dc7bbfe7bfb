---@meta cgraphlua.stream

--- An in-order queue of device work.
---@class cgraphlua.stream
local stream = {}

--- Calls fn(...) with this stream current and puts the former one back, also
--- when fn raises.  fn cannot yield.
---@param fn fun(...): ...
---@param ... any
---@return any ... what fn returned
function stream:use(fn, ...) end

--- Waits for all work issued so far.  Raises inside a capture.
function stream:synchronize() end

--- Is all work issued so far done?  Raises inside a capture.
---@return boolean
function stream:query() end

--- Later work of this stream waits for the event's last record, or for all
--- issued so far on the other stream.  In a capture this forks and joins.
---@param event_or_stream cgraphlua.event|cgraphlua.stream
function stream:wait(event_or_stream) end

--- Records the event, or a new one, after what was issued so far.
---@param event? cgraphlua.event
---@return cgraphlua.event
function stream:record(event) end

---@return boolean capturing is the stream part of a capture?
function stream:is_capturing() end

---@return lightuserdata custream for other libraries
function stream:handle() end

--- Gives the stream up; graphs that use it keep it.
function stream:release() end

return stream
