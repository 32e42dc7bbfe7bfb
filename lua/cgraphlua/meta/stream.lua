---@meta cgraphlua.stream

--- A queue of operations that run in order.
---@class cgraphlua.stream
local stream = {}

--- Calls fn(...) with this stream current.  Afterwards the former stream is
--- current again, also when fn raises.  fn cannot yield.
---@param fn fun(...): ...
---@param ... any
---@return any ... what fn returned
function stream:use(fn, ...) end

--- Waits for all work issued so far.  Raises inside a capture.
function stream:synchronize() end

--- Is all work issued so far done?  Raises inside a capture.
---@return boolean
function stream:query() end

--- Makes later work of this stream wait for the event's last record, or for all
--- work issued so far on the other stream.  In a capture this forks and joins.
--- With external = true the wait is a node of the graph being captured.
---@param event_or_stream cgraphlua.event|cgraphlua.stream
---@param opts? { external?: boolean }
function stream:wait(event_or_stream, opts) end

--- Records the event, or a new event, after the work issued so far.
---@param event? cgraphlua.event
---@param opts? { external?: boolean } true: a node of the graph being captured
---@return cgraphlua.event
---@overload fun(self: cgraphlua.stream, opts: { external?: boolean }): cgraphlua.event
function stream:record(event, opts) end

---@return boolean capturing is the stream part of a capture?
function stream:is_capturing() end

---@return lightuserdata custream for other libraries
function stream:handle() end

--- Gives the stream up.  Graphs that use it keep it.
function stream:release() end

return stream
