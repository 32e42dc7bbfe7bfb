---@meta cgraphlua.graph

--- The nodes and edges that a capture recorded.  A graph keeps alive what it
--- uses.
---@class cgraphlua.graph
---@field inputs table<string, cgraphlua.buffer> what is in the places of its inputs, by name
---@field outputs table<string, cgraphlua.buffer> of a loaded graph, by name
local graph = {}

---@class cgraphlua.save_options
---@field keep? "contents"|"zero" what memory is loaded with (default: what it holds now)
---@field devices? string[] further devices: "host", "sm_90", "compute_90"
---@field sources? boolean the text of kernels too (default true)

---@class cgraphlua.graph_save_options: cgraphlua.save_options
---@field inputs? table<string, cgraphlua.buffer> buffers that have names in the file
---@field outputs? table<string, cgraphlua.buffer> likewise

--- Writes the captured graph into a file that cg.load reads: nodes, kernels,
--- memory, generators and parameters.  Waits for the device.  Raises, with the node's line,
--- for what cannot be in a file.
---@param path string
---@param opts? cgraphlua.graph_save_options
function graph:save(path, opts) end

---@class cgraphlua.begin_options
---@field pool? cgraphlua.pool
---@field capture_error_mode? cgraphlua.capture_error_mode
---@field check_input_liveness? boolean refuse to replay once an input was released by hand
---@field annotations? boolean|"nvtx" record annotations; "nvtx": also as ranges for profilers
---@field enable_annotations? boolean|"nvtx" the same, by torch's name
---@field stream? cgraphlua.stream default: the current stream

--- Begins to capture the work that is issued into the stream.  Raises on the
--- default stream, when the stream or the graph is capturing, and when the graph
--- holds a capture (reset it first).
---@param opts? cgraphlua.begin_options
function graph:capture_begin(opts) end

--- Ends the capture, with the stream current on which it began.  Without
--- keep_graph, also instantiates the graph.  When a call broke the
--- capture, the error of that call is raised.
function graph:capture_end() end

---@class cgraphlua.region_options: cgraphlua.begin_options
---@field stream? cgraphlua.stream default: the current one, or a side stream for a default one
---@field collect? boolean collect garbage first
---@field trim? boolean return the device pool's free memory first

--- Captures the work that `fn` issues.  Afterwards the former stream is current
--- and no stream captures, also when fn raises; the error of fn is raised again.
--- fn cannot yield.
---@param fn fun(): ...
---@param opts? cgraphlua.region_options
---@return cgraphlua.graph self
---@return any ... what fn returned
function graph:capture(fn, opts) end

---@return boolean capturing
function graph:is_capturing() end

--- Makes a new executable of the kept template.  Raises without keep_graph.
function graph:instantiate() end

--- Launches the graph n times on the current stream, asynchronously; in a
--- capture each launch is a child graph node.  Raises CGL_ERROR_NOT_CAPTURED
--- without a capture.  Unless the option `unroll` is false, long loops of a small
--- graph launch copies of it in one executable.
---@param n? integer from 0, default 1
function graph:replay(n) end

--- Drops the capture; the graph can capture again.
function graph:reset() end

--- The pool of the graph's captures.  Raises without a capture.
---@return cgraphlua.pool
function graph:pool() end

--- May a replay write to the buffer's memory?  This is known for operations whose
--- arguments are buffers, in child graphs too, and assumed for foreign nodes.
---@param buffer cgraphlua.buffer
---@return boolean writes
function graph:writes(buffer) end

--- Every pool from which the capture allocated, the graph's own first.
---@return cgraphlua.pool[]
function graph:pools() end

--- Changes options for the next captures, and returns all options.  Refused while
--- the graph captures or holds a capture.  Options can also be assigned as
--- fields; nil is the default.
---@param opts? cgraphlua.graph_options
---@return cgraphlua.graph_options
function graph:options(opts) end

--- The driver's template, borrowed until reset.  Needs keep_graph.
---@return lightuserdata cugraph
function graph:raw_cuda_graph() end

--- The driver's executable, borrowed until reset or instantiation.
---@return lightuserdata cugraphexec
function graph:raw_cuda_graph_exec() end

--- Writes a Graphviz file with kernel names, sizes and script lines.  For a path
--- that ends in .svg, Graphviz draws an SVG file.
---@param path string
function graph:debug_dump(path) end

--- Does nothing: debug_dump works at any time.  For scripts that call it.
function graph:enable_debug_mode() end

---@class cgraphlua.node
---@field kind string "kernel", "memcpy", "conditional", "foreign" and others: see the manual
---@field name string the kernel's name, or the operation
---@field file string script file, or ""
---@field line integer script line, or 0
---@field type? string of the elements of a fill or copy
---@field grid? integer[] blocks, of a kernel
---@field block? integer[] threads, of a kernel
---@field programmatic boolean a kernel that comes to the device while the one before it ends
---@field enabled boolean replays run the node
---@field dependencies integer[] indices in the list
---@field form? "predicated"|"node" of branches and loops, "following" of kernels: see the manual
---@field bodies? cgraphlua.node[][] of a conditional node: the nodes of each body
---@field label? string the annotation "label"
---@field annotations? table<string, string|number|boolean>

--- The nodes in the order they were issued.
---@return cgraphlua.node[]
function graph:nodes() end

---@class cgraphlua.barrier
---@field node integer index in graph:nodes()
---@field name string
---@field file string script file, or ""
---@field line integer script line, or 0
---@field reason string why its memory is not known

---@class cgraphlua.plan_memory
---@field file string script file, or ""
---@field line integer script line, or 0
---@field at integer bytes from the lowest; buffers whose bytes overlap share them
---@field bytes integer
---@field temporary boolean the capture released it, and nobody has its address

---@class cgraphlua.plan
---@field order "issue"|"data"
---@field nodes integer
---@field edges integer
---@field width integer the most nodes that are as far from the start
---@field longest integer nodes on the longest path
---@field bytes_asked integer of the buffers that the capture made and used
---@field bytes integer that they take
---@field bytes_least integer the least that the edges allow
---@field memory cgraphlua.plan_memory[] those buffers
---@field barriers cgraphlua.barrier[] in data order: nodes that all others are ordered by

--- How the nodes are ordered.
---@return cgraphlua.plan
function graph:plan() end

--- What the graph uses, in the order of the first uses.
---@return cgraphlua.param_info[]
function graph:params() end

---@class cgraphlua.param_info
---@field param cgraphlua.param
---@field name? string
---@field type cgraphlua.type
---@field value number|boolean|number[]|table<string, any> as it was set last
---@field fields? cgraphlua.field[] of a struct's, as kernel:parameters has them
---@field follows? boolean true: a buffer, in some of the uses
---@field uses cgraphlua.param_use[]

---@class cgraphlua.param_use
---@field node integer index in nodes
---@field argument integer|string of the kernel; of a fill 1; of a draw 1 or 2; "grid.x" to "grid.z"
---@field body boolean it stands in a body or a child graph of the node
---@field follows boolean it is read from a buffer (param:follow)
---@field kind string
---@field name string
---@field file string
---@field line integer

--- Sets the graph's parameters of these names: all, or none when a name or a value
--- is refused.
---@param values table<string, any>
function graph:set(values) end

--- Puts buffers of the same types and shapes in the places of inputs (cg.input), from
--- the next replay on: all or none.
---@param inputs table<string, cgraphlua.buffer>
function graph:bind(inputs) end

--- Changes the parameters of a node for replays that are issued from now on: of a
--- kernel the arguments by number or by the parameter's name in the source, `grid`,
--- `block` and `shared`; of a fill `buffer`
--- and `value`; of a copy `to` and `from`, of which a node takes its part.
--- Parameters that the table does not name keep their value.  They are checked as
--- the original call checks them.  Generators, and buffers that captures allocated,
--- cannot be changed.
---@param node integer index in nodes
---@param params table<integer|string, any>
function graph:set_params(node, params) end

--- Enables or disables a kernel, a copy or a fill, for replays that are issued
--- from now on.
---@param node integer index in nodes
---@param enabled boolean
function graph:set_enabled(node, enabled) end

--- Keeps the state of a generator with the capture.  A generator that is used in
--- a capture registers itself.
---@param gen cgraphlua.generator
function graph:register_generator_state(gen) end

--- Calls fn(...).  Nodes that this graph captures during the call get the
--- annotations: a label, or a table.  Nested scopes merge; the inner scope's
--- values are used.  Without the option `annotations`, and outside captures,
--- nothing is recorded.
---@param label string|table<string, string|number|boolean>
---@param fn fun(...): ...
---@param ... any
---@return any ... what fn returned
function graph:annotate(label, fn, ...) end

--- Removes the annotations from the nodes captured so far.
function graph:clear_annotations() end

--- Calls fn(graph) right after each capture has begun; work that fn issues is
--- captured.  A hook that raises abandons the capture.  Hooks run in the order of
--- registration.
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

--- Calls fn(graph) before each launch of replay.  A hook that raises aborts the
--- launch, and no replay end hook is called.
---@param fn fun(graph: cgraphlua.graph)
---@return cgraphlua.hook
function graph:register_replay_start_hook(fn) end

--- Calls fn(graph) after each launch of replay, also after a failed launch.
---@param fn fun(graph: cgraphlua.graph)
---@return cgraphlua.hook
function graph:register_replay_end_hook(fn) end

--- Calls fn() once, when the graph is reset, released or collected.  An error of
--- fn goes to on_log's function.
---@param fn fun()
---@param synchronize? boolean wait for the device first
---@return cgraphlua.hook
function graph:register_destroy_callback(fn, synchronize) end

--- Keeps a value until the graph is reset, released or collected.
---@param value any
---@param synchronize? boolean wait for the device first
---@return cgraphlua.hook
function graph:retain_object(value, synchronize) end

--- Gives the graph up.  A capture of it that is underway is abandoned.
function graph:release() end

return graph
