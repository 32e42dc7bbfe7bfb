---@meta cgraphlua

-- The functions of the module: what each takes, returns and raises.  Sizes are
-- in elements or bytes as named, times in milliseconds.  Lists count from 1.
-- Every function may raise a cgraphlua.error when the device fails.  Every
-- function raises "bad argument #n to '...'" for a value of the wrong type or
-- range and for an unknown option.
-- The words are those of the glossary in doc/manual.md.

---@class cgraphlua
---@field version string the library's version, "0.1.0"
---@field null lightuserdata a null pointer, as a kernel argument
---@field debug cgraphlua.debug
local cg = {}

---@alias cgraphlua.type
---| "float" 4 bytes
---| "double" 8 bytes
---| "int8"
---| "uint8"
---| "int16"
---| "uint16"
---| "int32"
---| "uint32"
---| "int64" beyond 2^53 as FFI integers
---| "uint64" beyond 2^53 as FFI integers
---| "half" IEEE 754, 2 bytes, rounded to nearest even
---| "bfloat16" 2 bytes, rounded to nearest even
---| "bool" 1 byte
---| "complex64" two floats: {re, im}
---| "complex128" two doubles
---| "float2"
---| "float3"
---| "float4"
---| "double2"
---| "double3"
---| "double4"
---| "char2"
---| "char3"
---| "char4"
---| "uchar2"
---| "uchar3"
---| "uchar4"
---| "short2"
---| "short3"
---| "short4"
---| "ushort2"
---| "ushort3"
---| "ushort4"
---| "int2"
---| "int3"
---| "int4"
---| "uint2"
---| "uint3"
---| "uint4"
---| "longlong2"
---| "longlong3"
---| "longlong4"
---| "ulonglong2"
---| "ulonglong3"
---| "ulonglong4"

--- A vector, {1, 2} or {x = 1, y = 2}, or a complex number, {re, im} or
--- {re = 1, im = 2}.  Read back, it is a list.
---@alias cgraphlua.vector number[]|table<string, number>

--- A number of elements, or 1 to 8 extents with the slowest first: {ny, nx}.
---@alias cgraphlua.shape integer|integer[]

--- Which unsafe calls break a capture that is underway.
---@alias cgraphlua.capture_error_mode
---| "default" the same as "thread_local"
---| "global" unsafe calls of any thread
---| "thread_local" unsafe calls of the capturing thread
---| "relaxed" no call

---@class cgraphlua.device_info
---@field device string what set_device takes: "host", "cuda:0"
---@field name string the device's name in the driver
---@field memory integer bytes
---@field compute string compute capability, "9.0"
---@field driver string driver version, "13.0"
---@field multiprocessors integer
---@field max_threads_per_block integer

-- Devices ------------------------------------------------------------------

--- All devices of the machine, the host device last.  Opens no device, but asks
--- the GPU driver: children that are forked later can use no GPU.
---@return cgraphlua.device_info[]
function cg.devices() end

--- The device of the current stream.  The first call that needs a device
--- opens what CGRAPHLUA_DEVICE names, or the first GPU, or the host device.
---@return cgraphlua.device_info
function cg.device() end

--- Makes the default stream of a device current.  Asks no driver: the first
--- call that needs the device opens it, and raises CGL_ERROR_NO_DEVICE when it
--- is not there.
---@param name string "host", "cuda" or "cuda:N"
function cg.set_device(name) end

--- Gives up a lost device, and opens it anew where the driver can: the host
--- device's can, an H200's cannot, and raises what lost the device.  Raises
--- CGL_ERROR_IN_USE while objects of the device live.
---@param device? string the current device by default
---@return cgraphlua.device_info
function cg.reset_device(device) end

--- Gives each kernel of the current device that begins from now on so many
--- seconds, per launch.  A kernel that runs longer ends with
--- CUDA_ERROR_LAUNCH_TIMEOUT, and the device is lost.  The host device alone.
---@param seconds number 0: no deadline
function cg.set_kernel_deadline(seconds) end

--- Seconds since a moment of the past; never goes back, whatever sets the time.
---@return number seconds
function cg.clock() end

--- Waits for that many seconds; Ctrl-C ends the wait.
---@param seconds number
function cg.sleep(seconds) end

--- Waits for the work of this Lua state, on all of its streams; other threads may
--- capture meanwhile.  "device" waits for all work of the current device instead,
--- and a name for that of the named one; both raise while a capture is underway in
--- the process.
---@param device? string "device", "host", "cuda:N"
function cg.synchronize(device) end

--- The free bytes and the total bytes of the current device's memory.  Memory that
--- pools hold does not count as free.
---@return integer free
---@return integer total
function cg.mem_get_info() end

---@class cgraphlua.snapshot_pool
---@field pool integer
---@field default boolean
---@field stats cgraphlua.pool_stats
---@field segments cgraphlua.segment[]

---@class cgraphlua.memory
---@field device string
---@field free integer bytes of the device
---@field total integer
---@field pools cgraphlua.snapshot_pool[]

--- All pools of the current device as they are now.
---@return cgraphlua.memory
function cg.memory_snapshot() end

--- Starts a new history of allocations.  A number says how many of the latest
--- events it keeps (true, the default: 100000); false ends the history.
---@param events? boolean|integer
function cg.memory_history(events) end

---@class cgraphlua.memory_event
---@field ms number since the history began
---@field pool integer
---@field action "alloc"|"free"
---@field address integer
---@field bytes integer
---@field allocated integer bytes of the pool, after the event
---@field reserved integer bytes of the pool, after the event
---@field where? string the line of the allocation

--- The history, the oldest event first.  The list's field `lost` counts the events
--- that the history no longer has; its field `ms` is the present time.
---@return cgraphlua.memory_event[]
function cg.memory_events() end

--- Writes one self-contained HTML page about the device's memory: pools, segments,
--- the bytes over time when a history was kept, and a table of the holders.
---@param path string
function cg.memory_report(path) end

---@alias cgraphlua.log_level "info"|"warning"|"error"

--- Sets this Lua state's own log: calls `fn` with messages of its calls that are
--- not failures (an empty capture, a compiler's warnings), from `level` up.  nil
--- silences them; false gives them back to the log of the engine that runs the
--- script, or, where it has none, to standard error, as initially.
---@param fn? fun(message: string, level: cgraphlua.log_level)|false
---@param level? cgraphlua.log_level "info" (default): all messages
function cg.on_log(fn, level) end

--- How this state raises failures: as error objects ("object", the default), or
--- as their texts ("string"), for hosts that print strings only.  Returns the
--- former kind; without an argument changes nothing.  CGRAPHLUA_ERRORS has the
--- kind in which a state begins.
---@param kind? "object"|"string"
---@return "object"|"string"
function cg.errors(kind) end

--- The error object of the state's last failure, whether an object or a string
--- was raised; of a bad argument, too.  nil before the first failure.
---@return cgraphlua.error|nil
function cg.last_error() end

--- A token with which another Lua state of the process takes the object, once.
--- Until then the object stays alive, also when this state closes.
---@param object userdata any object of this module
---@return string token
function cg.share(object) end

---@class cgraphlua.limits
---@field kernels? string[] hashes of sources that may be compiled
---@field device_bytes? integer of buffers and captures (256 MiB)
---@field pinned_bytes? integer of pinned memory (64 MiB)
---@field objects? integer alive at a time (4096)
---@field graph_nodes? integer of all graphs (10000)
---@field lua_bytes? integer of Lua's own memory (64 MiB)
---@field seconds? number of a call of `run` (1)
---@field kernel_seconds? number of a kernel or a replay, on the host device (1)

--- Makes the Lua state a restricted one, for good: chunks that are loaded from
--- now on have other globals, and what their host does not trust them with is
--- closed.  `run` calls a function as pcall does, with the state's time anew.
---@param limits? cgraphlua.limits
---@return fun(fn: function, ...): boolean, ... run
function cg.restrict(limits) end

--- The object that a state of the process shared under the token.
---@param token string
---@return any object
function cg.take(token) end

--- The number of live objects of this process, including objects that graphs
--- keep: "all" (default), "context", "stream", "event", "buffer", "pinned",
--- "module", "compilation", "kernel", "pool", "graph", "generator", "checkpoint",
--- "loop" or "ranks".
---@param noun? string
---@return integer
function cg.live(noun) end

-- Streams and events -------------------------------------------------------

--- Creates a stream that does not wait for the default stream.  Priority 0 is the
--- least urgent, negative values are more urgent; values are clamped to the
--- device's range.
---@param opts? {priority?: integer}
---@return cgraphlua.stream
function cg.stream(opts) end

--- The stream to which this Lua state issues its operations.
---@return cgraphlua.stream
function cg.current_stream() end

--- The current device's default stream.  It cannot be captured.
---@return cgraphlua.stream
function cg.default_stream() end

--- Borrows a CUstream of another library, which must outlive the object.
---@param pointer lightuserdata|ffi.cdata*|integer
---@return cgraphlua.stream
function cg.stream_from(pointer) end

--- Is the current stream part of a capture?  Opens no device.
---@return boolean
function cg.is_current_stream_capturing() end

--- Creates an event.  timing = false: cheaper, without elapsed.  external = true:
--- its records and waits in captures are nodes.
---@param opts? {timing?: boolean, external?: boolean}
---@return cgraphlua.event
function cg.event(opts) end

-- Memory -------------------------------------------------------------------

--- Allocates device memory, uninitialized.  In a capture it comes from the graph's
--- pool, unless a pool is named or in use.  Raises CUDA_ERROR_OUT_OF_MEMORY when
--- the allocation fails again after a garbage collection.
---@param type cgraphlua.type
---@param shape cgraphlua.shape
---@param opts? {pool?: cgraphlua.pool}
---@return cgraphlua.buffer
function cg.buffer(type, shape, opts) end

--- Allocates likewise, and fills with zero on the current stream (in a capture: at
--- each replay).
---@param type cgraphlua.type
---@param shape cgraphlua.shape
---@param opts? {pool?: cgraphlua.pool}
---@return cgraphlua.buffer
function cg.zeros(type, shape, opts) end

--- Zeros that are an input: graph:bind puts other buffers in their place.
---@param type cgraphlua.type
---@param shape cgraphlua.shape
---@param name string
---@param opts? {pool?: cgraphlua.pool}
---@return cgraphlua.buffer
function cg.input(type, shape, name, opts) end

--- Allocates likewise, and fills with a value.
---@param type cgraphlua.type
---@param shape cgraphlua.shape
---@param value number|boolean|cgraphlua.vector|ffi.cdata*
---@param opts? {pool?: cgraphlua.pool}
---@return cgraphlua.buffer
function cg.full(type, shape, value, opts) end

--- A buffer with the elements of a list (lists of lists give a shape), of a
--- string of raw bytes, or of an FFI array.  Waits until the data is in the buffer.
--- Raises inside a capture.
---@param data table|string|ffi.cdata*
---@param type cgraphlua.type
---@param shape? cgraphlua.shape as many elements as the data has
---@param opts? {pool?: cgraphlua.pool}
---@return cgraphlua.buffer
function cg.from(data, type, shape, opts) end

--- Borrows device memory of another library, which must outlive the object.
---@param pointer lightuserdata|ffi.cdata*|integer
---@param type cgraphlua.type
---@param shape cgraphlua.shape
---@return cgraphlua.buffer
function cg.buffer_from(pointer, type, shape) end

--- Allocates page-locked host memory, initialized to zero.
---@param type cgraphlua.type
---@param count integer elements
---@return cgraphlua.pinned
function cg.pinned(type, count) end

---@class cgraphlua.pool_options
---@field max_bytes? integer the most memory that it may take from the device
---@field no_split? boolean blocks begin and end with pages, and are not divided
---@field use_on_oom? boolean its free memory serves the device's pool when that fails
---@field strict? boolean replays that would overlap are refused, not ordered

--- Creates a pool of device memory, for captures and buffers.
---@param opts? cgraphlua.pool_options
---@return cgraphlua.pool
function cg.pool(opts) end

--- The same under torch's name.
---@return cgraphlua.pool
function cg.graph_pool_handle() end

--- The current device's own pool, for statistics, snapshots and trimming.  It
--- serves work outside captures.
---@return cgraphlua.pool
function cg.default_pool() end

--- The current device's pool of pinned memory, likewise.
---@return cgraphlua.pool
function cg.pinned_pool() end

-- Parameters --------------------------------------------------------------

--- A value that launches and fills read: outside captures at the call, in graphs
--- again at each replay after a change.
---@param type cgraphlua.type of the kernel's parameter; kernel:param knows it
---@param value number|boolean|number[]|string|ffi.cdata* a list for a vector
---@param name? string for graph:set
---@return cgraphlua.param
function cg.param(type, value, name) end

-- Random numbers ------------------------------------------------------------

--- A generator of the current device.
---@param seed? integer|ffi.cdata* 0 .. 2^53, or uint64_t; default: 67280421310721
---@return cgraphlua.generator
function cg.generator(seed) end

--- The generator of the current device that is used when a call names no generator.
---@return cgraphlua.generator
function cg.default_generator() end

--- Seeds the default generator and returns it.
---@param seed integer|ffi.cdata*
---@return cgraphlua.generator
function cg.manual_seed(seed) end

-- Kernels ------------------------------------------------------------------

---@class cgraphlua.module_options
---@field source? string CUDA C, PTX or a cubin (when the first argument is the table)
---@field file? string path to read, or the source's name in compiler messages
---@field line? integer where in `file` the source starts (default 1)
---@field options? string[] for the compiler, {"-DN=4", "--precise-math"}
---@field expressions? string[] name expressions of templates, {"scale<float, 4>"}

--- Compiles CUDA C (or takes it from the cache on disk) and loads it.  Raises
--- CGL_ERROR_COMPILE with the compiler's text, which names the script's lines.
---@param source string|cgraphlua.module_options
---@param opts? cgraphlua.module_options
---@return cgraphlua.module
function cg.module(source, opts) end

--- Compiles as cg.module does, on another thread, and returns at once.
---@param source string|cgraphlua.module_options
---@param opts? cgraphlua.module_options
---@return cgraphlua.compilation
function cg.module_async(source, opts) end

--- The hash of a kernel's source, by which cg.restrict allows it.
---@param source string
---@return string hash 32 hexadecimal digits
function cg.kernel_hash(source) end

--- Looks for compiled kernels in the folder first, which cgraphlua --compile
--- wrote; nil forgets the folders named before.  For the process.
---@param path? string
function cg.kernels_from(path) end

--- A kernel of a module made of the source alone; a name with "<" is a name
--- expression.
---@param source string|cgraphlua.module_options
---@param name? string not needed when there is one kernel
---@param opts? cgraphlua.module_options
---@return cgraphlua.kernel
---@overload fun(source: string, opts: cgraphlua.module_options): cgraphlua.kernel
function cg.kernel(source, name, opts) end

-- Graphs -------------------------------------------------------------------

---@class cgraphlua.graph_options
---@field keep_graph? boolean keep the template; instantiate by hand or at the first replay
---@field pool? cgraphlua.pool default: the pool in use, else a private pool
---@field capture_error_mode? cgraphlua.capture_error_mode
---@field check_input_liveness? boolean refuse to replay once an input was released by hand
---@field annotations? boolean|"nvtx" record annotations; "nvtx": also as ranges for profilers
---@field enable_annotations? boolean|"nvtx" the same, by torch's name
---@field unchecked? boolean replays neither wait for other graphs of their pool nor are refused
---@field programmatic? boolean a kernel comes to the device while the one before it ends (true)
---@field unroll? boolean replay(n) of a small graph launches copies of it in one executable (true)
---@field order? "issue"|"data" nodes in the order of issue (default), or of what they use
---@field width? integer|false in data order: how many nodes may run beside each other (32)
---@field max_bytes? integer|"issue"|false in data order: the most memory that the capture may take

--- Creates a graph that has captured nothing yet.
---@param opts? cgraphlua.graph_options
---@return cgraphlua.graph
function cg.graph(opts) end

---@class cgraphlua.saved_graph
---@field graph cgraphlua.graph
---@field inputs? table<string, cgraphlua.buffer> buffers that have names in the file
---@field outputs? table<string, cgraphlua.buffer> likewise

--- Writes captured graphs into one file; memory that they share is there once.
---@param path string
---@param graphs table<string, cgraphlua.graph|cgraphlua.saved_graph>
---@param opts? cgraphlua.save_options
function cg.save(path, graphs, opts) end

--- Makes the graphs of a file, without a compiler or a capture: a table by name,
--- or the graph that graph:save wrote.  A file has machine code: load files that
--- you trust.
---@param path string
---@return cgraphlua.graph|table<string, cgraphlua.graph>
function cg.load(path) end

---@class cgraphlua.capture_options: cgraphlua.graph_options
---@field stream? cgraphlua.stream default: a side stream of the device
---@field collect? boolean collect garbage first
---@field trim? boolean return the device pool's free memory first

--- Captures the work that `fn` issues into a new graph.  Afterwards the former
--- stream is current and no stream captures, also when fn raises; the error of fn
--- is raised again.  fn cannot yield.
---@param fn fun(): ...
---@param opts? cgraphlua.capture_options
---@return cgraphlua.graph graph
---@return any ... what fn returned
function cg.capture(fn, opts) end

--- Calls fn(...).  Nodes captured during the call, by the graph that captures the
--- current stream, get the annotations.  See graph:annotate.
---@param label string|table<string, string|number|boolean>
---@param fn fun(...): ...
---@param ... any
---@return any ... what fn returned
function cg.mark_kernels(label, fn, ...) end

-- Ranks -------------------------------------------------------------------------

---@class cgraphlua.ranks_options
---@field seconds? number that a rank waits for another (30)

--- All processes that a launcher started, for buffers of the current device;
--- a world of one without a launcher.
---@param opts? cgraphlua.ranks_options
---@return cgraphlua.ranks
function cg.ranks(opts) end

---@class cgraphlua.domain_options
---@field shape integer[] extents of the whole grid, the slowest first
---@field halo? integer rows of each neighbour (1)
---@field periodic? boolean the first and the last rows are neighbours
---@field ranks? cgraphlua.ranks default: all

---@alias cgraphlua.row_work fun(first: integer, rows: integer, border?: integer)

---@class cgraphlua.domain
---@field first integer this rank's first row in the whole, from 0
---@field rows integer this rank's rows
---@field row integer elements of a row
---@field shape integer[] of a field: this rank's rows, and halos on both sides
---@field whole integer[] extents of the whole grid
---@field halo integer
---@field below? integer the rank of the rows before
---@field above? integer the rank of the rows after
---@field ranks cgraphlua.ranks
---@field field fun(self, type: cgraphlua.type): cgraphlua.buffer zeroed
---@field own fun(self, field: cgraphlua.buffer): cgraphlua.buffer a view without halos
---@field exchange fun(self, ...: cgraphlua.buffer) brings the neighbours' rows into the halos
---@field transfers fun(self, ...: cgraphlua.buffer): cgraphlua.transfer[] what exchange does
---@field part fun(self, rank: integer): integer, integer a rank's first row, from 0, and how many
--- The first row that needs no halo, and how many there are.
---@field inner fun(self, margin?: integer): integer, integer
--- Exchanges beside the work on inner rows, then works on the borders.
---@field overlap fun(self, fields: cgraphlua.buffer[], work: cgraphlua.row_work, margin?: integer)
---@field gather fun(self, field: cgraphlua.buffer, root?: integer): cgraphlua.buffer?
---@field upload fun(self, field: cgraphlua.buffer, values: number[]) of the whole grid

--- A grid whose slowest extent is divided among ranks.
---@param opts cgraphlua.domain_options
---@return cgraphlua.domain
function cg.domain(opts) end

-- Branches and loops --------------------------------------------------------
-- The value is a buffer of one integer or bool.  Outside a capture it is read,
-- which waits for the current stream, and the functions are called.  In a capture
-- each function is called once, and becomes a body of a conditional node, or
-- kernels that look at the value before they run.

---@alias cgraphlua.conditional_form
---| "automatic" # predicated where that is possible and cheaper (default)
---| "node" # a conditional node with bodies
---| "predicated" # kernels that look at a word before they run, else an error

---@class cgraphlua.branch_options
---@field form? cgraphlua.conditional_form in captures

--- Runs `yes` unless the flag is 0, else `no`.  The options may stand in the
--- place of `no`.
---@param flag cgraphlua.buffer|cgraphlua.param
---@param yes fun()
---@param no? fun()|cgraphlua.branch_options
---@param opts? cgraphlua.branch_options
function cg.when(flag, yes, no, opts) end

--- Runs the function of the index, which counts from 0, or else `otherwise`, in
--- whose place the options may stand.
---@param index cgraphlua.buffer|cgraphlua.param
---@param bodies (fun())[]
---@param otherwise? fun()|cgraphlua.branch_options
---@param opts? cgraphlua.branch_options
function cg.switch(index, bodies, otherwise, opts) end

---@class cgraphlua.loop_options
---@field max? integer most turns, from 1, default 2^20
---@field form? cgraphlua.conditional_form in captures

--- Runs the body while the flag, read before each turn, is not 0.
---@param flag cgraphlua.buffer
---@param body fun()
---@param opts? cgraphlua.loop_options
---@return cgraphlua.loop
function cg.loop(flag, body, opts) end

--- Runs the body as often as the count, read once, says.
---@param count cgraphlua.buffer|cgraphlua.param
---@param body fun()
---@param opts? cgraphlua.loop_options
---@return cgraphlua.loop
function cg.times(count, body, opts) end

---@class cgraphlua.graphed_options
---@field pool? cgraphlua.pool where captures allocate (default: see the function)
---@field capture_error_mode? cgraphlua.capture_error_mode
---@field num_warmup_iters? integer runs before the capture (default: see the function)
---@field keep? "error" using a former call's result raises CGL_ERROR_ORDER

--- Captures a function, or each function of a list, with sample arguments, and
--- returns functions that replay instead.  Before the captures each function runs
--- num_warmup_iters times (3) on a side stream.  All captures share one pool.  The
--- samples' buffers, also those in tables, are static buffers: a call with other
--- buffers copies into them, and copies back those that the graph writes to.  All
--- other arguments must be the same as in the samples.  A result is a buffer of
--- the graph; it is overwritten by the next call of its function, or of a function
--- before it in the list.
---@param fns function|function[]
---@param samples any[]|any[][] the arguments, or a list of arguments for each
---@param opts? cgraphlua.graphed_options
---@return function|function[] callables as `fns`: one, or a list
---@return cgraphlua.graph|cgraphlua.graph[] graphs what they replay
function cg.make_graphed_callables(fns, samples, opts) end

---@class cgraphlua.graphed_signatures: cgraphlua.graphed_options
---@field max_signatures? integer how many signatures get a graph (16)

--- A function that does what `fn` does.  It captures at its first call with each
--- signature (the types and shapes of buffers, the values of all other arguments),
--- and replays from then on.  An argument that has come with another address is
--- copied from then on.  Inside a capture, and beyond max_signatures, it runs fn.
--- The first num_warmup_iters (0) calls with each signature run fn, too.
---@param fn function
---@param opts? cgraphlua.graphed_signatures
---@return function callable
---@return cgraphlua.graph[] graphs grows as signatures are captured
function cg.graphed(fn, opts) end

---@class cgraphlua.defaults
---@field order? "issue"|"data"
---@field width? integer|false in data order: how many nodes may run beside each other (32)
---@field max_bytes? integer|"issue"|false in data order: the most memory that a capture may take
---@field plan? boolean print the plan of each graph when its capture has ended

--- What new graphs of the state have where nothing else is said.  Changes the
--- fields that are there, and returns all.
---@param defaults? cgraphlua.defaults
---@return cgraphlua.defaults
function cg.defaults(defaults) end

---@class cgraphlua.compare_options
---@field orders? ("eager"|"issue"|"data")[] ways to run the work (all three)
---@field devices? string[] where to run it (the current device)
---@field rtol? number how much numbers may differ, as a part of them (0)
---@field atol? number and beside that (0)

---@class cgraphlua.difference
---@field buffer integer|string its key in the table
---@field index? integer of the element
---@field wanted? any
---@field got? any
---@field way string what gave it, "in data order on host"
---@field reference string what the first way was
---@field node? integer index of the first node after which they differ
---@field name? string of that node
---@field file? string
---@field line? integer

--- Runs work in several ways, each on memory of its own, and compares what they
--- leave with what the first leaves.  `fn` makes the memory, and returns a function
--- that issues the work and a table of buffers to compare.
---@param fn fun(): function, table<integer|string, cgraphlua.buffer>
---@param opts? cgraphlua.compare_options
---@return true? same nil when they differ
---@return string? text
---@return cgraphlua.difference? difference
function cg.compare(fn, opts) end

-- For tests ----------------------------------------------------------------

---@class cgraphlua.debug
local debug = {}

--- Makes the k-th driver call from now fail; 0 disarms.  Raises unless the
--- process runs with CGRAPHLUA_FAULT=1.
---@param k integer
---@param code? integer a CUresult (default 2, out of memory)
function debug.fault(k, code) end

--- The number of driver calls since cg.debug.fault, and the entry point that was
--- made to fail.
---@return integer calls
---@return string? hit
function debug.fault_count() end

--- Releases the streams that the module itself holds, so that cg.live counts the
--- script's objects alone.  The module makes them again at the next use.
function debug.forget() end

cg.debug = debug
return cg
