---@meta cgraphlua.graph

--- What was issued into a capture; keeps alive what it uses.
---@class cgraphlua.graph
local graph = {}

---@class cgraphlua.begin_options
---@field pool? cgraphlua.pool
---@field capture_error_mode? cgraphlua.capture_error_mode
---@field check_input_liveness? boolean refuse to replay once an input was released by hand
---@field annotations? boolean|"nvtx" note what annotate says; also as ranges for profilers
---@field enable_annotations? boolean|"nvtx" the same, by torch's name
---@field stream? cgraphlua.stream default: the current stream

--- Begins to capture what is issued into the stream.  Raises on the default
--- stream, inside a capture, and when the graph holds one (reset it first).
---@param opts? cgraphlua.begin_options
function graph:capture_begin(opts) end

--- Ends the capture and, unless keep_graph, instantiates; on the stream that
--- it began on.  When a call broke the capture, its error is raised.
function graph:capture_end() end

---@class cgraphlua.region_options: cgraphlua.begin_options
---@field stream? cgraphlua.stream default: the current one, or a side stream for a default one
---@field collect? boolean collect garbage first
---@field trim? boolean return the device pool's free memory first

--- Captures what `fn` issues.  However fn ends, the current stream is put back
--- and no capture is left; its own error is raised on.  fn cannot yield.
---@param fn fun(): ...
---@param opts? cgraphlua.region_options
---@return cgraphlua.graph self
---@return any ... what fn returned
function graph:capture(fn, opts) end

---@return boolean capturing
function graph:is_capturing() end

--- Makes a fresh executable of the kept template.  Raises without keep_graph.
function graph:instantiate() end

--- Launches n times on the current stream, asynchronously; in a capture each
--- becomes a child graph.  Raises CGL_ERROR_NOT_CAPTURED before a capture.
---@param n? integer from 0, default 1
function graph:replay(n) end

--- Drops what was captured; the graph can capture again.
function graph:reset() end

--- The pool of its captures.  Raises before the first.
---@return cgraphlua.pool
function graph:pool() end

--- Does a replay write to the buffer's memory?  Known of what was issued with
--- buffers as arguments; assumed of child graphs and of work of others.
---@param buffer cgraphlua.buffer
---@return boolean writes
function graph:writes(buffer) end

--- Every pool that the capture allocated from, its own first.
---@return cgraphlua.pool[]
function graph:pools() end

--- Changes what the next captures will use, and returns it; refused while the
--- graph captures or holds a capture.  The options can also be assigned as
--- fields; nil is the default.
---@param opts? cgraphlua.graph_options
---@return cgraphlua.graph_options
function graph:options(opts) end

--- The driver's template, until reset or instantiation.  Needs keep_graph.
---@return lightuserdata cugraph
function graph:raw_cuda_graph() end

--- The driver's executable, until reset or instantiation.
---@return lightuserdata cugraphexec
function graph:raw_cuda_graph_exec() end

--- Writes a Graphviz file with kernel names, sizes and script lines; a path
--- that ends in .svg is drawn by Graphviz.
---@param path string
function graph:debug_dump(path) end

--- Does nothing: debug_dump works at any time.  For scripts that call it.
function graph:enable_debug_mode() end

---@class cgraphlua.node
---@field kind string "kernel", "memcpy", "memset", "graph", "event_record", "event_wait", "foreign"
---@field name string the kernel's name, or the operation
---@field file string script file, or ""
---@field line integer script line, or 0
---@field type? string of the elements of a fill or copy
---@field grid? integer[] blocks, of a kernel
---@field block? integer[] threads, of a kernel
---@field enabled boolean replays run it
---@field dependencies integer[] indices in the list
---@field label? string the annotation "label"
---@field annotations? table<string, string|number|boolean>

--- The nodes in the order they were issued.
---@return cgraphlua.node[]
function graph:nodes() end

--- Gives a node other parameters, for replays from now on: a kernel arguments by
--- their number and a launch (grid, block, shared), a fill `buffer` and `value`,
--- a copy `to` and `from`.  What is not in the table stays.  Checked as the call
--- was.  Buffers that captures allocated stay where they are, and so do
--- generators.
---@param node integer index in nodes
---@param params table<integer|string, any>
function graph:set_params(node, params) end

--- Switches a kernel, copy or fill off or on, for replays from now on.
---@param node integer index in nodes
---@param enabled boolean
function graph:set_enabled(node, enabled) end

--- Keeps the state of a generator with the capture.  One that is used in a
--- capture registers itself.
---@param gen cgraphlua.generator
function graph:register_generator_state(gen) end

--- Calls fn(...); what this graph captures meanwhile gets the annotations: a
--- label, or a table.  Nested scopes merge, the inner one wins.  Without the
--- option `annotations`, and outside captures, nothing is noted.
---@param label string|table<string, string|number|boolean>
---@param fn fun(...): ...
---@param ... any
---@return any ... what fn returned
function graph:annotate(label, fn, ...) end

--- Takes the annotations off what was captured so far.
function graph:clear_annotations() end

--- Calls fn(graph) right after each capture has begun, in it.  A hook that
--- raises abandons the capture.  Hooks run in the order of registration.
---@param fn fun(graph: cgraphlua.graph)
---@return cgraphlua.hook
function graph:register_capture_start_hook(fn) end

--- Calls fn(graph) when a capture is whole, before it is instantiated:
--- raw_cuda_graph works in it, with and without keep_graph.
---@param fn fun(graph: cgraphlua.graph)
---@return cgraphlua.hook
function graph:register_capture_end_hook(fn) end

--- Calls fn(graph) after each instantiation.
---@param fn fun(graph: cgraphlua.graph)
---@return cgraphlua.hook
function graph:register_post_instantiate_hook(fn) end

--- Calls fn(graph) before each launch of replay; one that raises aborts it,
--- and no end hook is called.
---@param fn fun(graph: cgraphlua.graph)
---@return cgraphlua.hook
function graph:register_replay_start_hook(fn) end

--- Calls fn(graph) after each launch of replay, also after one that failed.
---@param fn fun(graph: cgraphlua.graph)
---@return cgraphlua.hook
function graph:register_replay_end_hook(fn) end

--- Calls fn() once, when the graph is reset, released or collected.  What it
--- raises goes to on_log's function.
---@param fn fun()
---@param synchronize? boolean wait for the device first
---@return cgraphlua.hook
function graph:register_destroy_callback(fn, synchronize) end

--- Keeps a value until the graph is reset, released or collected.
---@param value any
---@param synchronize? boolean wait for the device first
---@return cgraphlua.hook
function graph:retain_object(value, synchronize) end

--- Gives the graph up; a capture of it that is underway is abandoned.
function graph:release() end

return graph
