-- Restricted states: what scripts try that their host does not trust.  The
-- state is opened as an engine opens it, through C; this spec's own state is
-- the engine's, and its graph replays after every attack.

local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

ffi.cdef [[
typedef struct lua_State lua_State;
typedef struct spec_limits {
  const char *const *kernels;
  size_t nkernels, device_bytes, pinned_bytes, objects, graph_nodes, lua_bytes;
  double seconds, kernel_seconds;
} spec_limits;
typedef struct spec_desc {
  int errors;
  void *stream, *pool;
  const spec_limits *restricted;
} spec_desc;
lua_State *luaL_newstate(void);
void luaL_openlibs(lua_State *L);
void lua_close(lua_State *L);
void lua_settop(lua_State *L, int top);
int luaL_loadbuffer(lua_State *L, const char *text, size_t bytes, const char *name);
int luaL_callmeta(lua_State *L, int index, const char *name);
const char *lua_tolstring(lua_State *L, int index, size_t *bytes);
void lua_pushstring(lua_State *L, const char *text);
void lua_setfield(lua_State *L, int index, const char *name);
int lua_pcall(lua_State *L, int nargs, int nresults, int handler);
void cgl_lua_open(lua_State *L, const spec_desc *desc);
int cgl_lua_pcall(lua_State *L, int nargs, int nresults, int handler);
void cgl_lua_set_deadline(lua_State *L, double seconds);
]]
local C, GLOBALS = ffi.C, -10002

local source = device.source .. [[
extern "C" __global__ void hang(volatile int *x) { while (!*x) {} }
struct two { float *p; long n; };
extern "C" __global__ void through(two s) { if (s.n) s.p[0] = 7; }
]]

local function text_of(L, status)
  if status ~= 0 and C.luaL_callmeta(L, -1, "__tostring") ~= 0 then
    return ffi.string(C.lua_tolstring(L, -1, nil))
  end
  local text = C.lua_tolstring(L, -1, nil)
  return text ~= nil and ffi.string(text) or nil
end

local function set_text(L, name, text)
  C.lua_pushstring(L, text)
  C.lua_setfield(L, GLOBALS, name)
end

--- A restricted state; its globals `source` and `cg` are there.
local function open(limits)
  local L = C.luaL_newstate()
  C.luaL_openlibs(L)
  local path = ("package.path = %q"):format(package.path)
  assert(C.luaL_loadbuffer(L, path, #path, "=path") == 0 and C.lua_pcall(L, 0, 0, 0) == 0)
  local hash = cg.kernel_hash(source)
  local kernels = ffi.new("const char *[1]", { hash })
  limits.kernels, limits.nkernels = kernels, 1
  local most = ffi.new("spec_limits", limits)
  C.cgl_lua_open(L, ffi.new("spec_desc", { restricted = most }))
  C.lua_setfield(L, GLOBALS, "cg")
  set_text(L, "source", source)
  return L
end

--- Calls a chunk there: true and its result, or false and the error's text.
-- seconds: instead of the state's own.
local function call(L, chunk, seconds)
  C.lua_settop(L, 0)
  local status = C.luaL_loadbuffer(L, chunk, #chunk, "=mod")
  if status == 0 and seconds then
    C.cgl_lua_set_deadline(L, seconds)
    status = C.lua_pcall(L, 0, 1, 0)
  elseif status == 0 then
    status = C.cgl_lua_pcall(L, 0, 1, 0)
  end
  return status == 0, text_of(L, status)
end

-- Two states: in one a script reaches the end of its time and nothing else, in
-- the other its other limits, on a slow machine too.
local SHORT, LONG = { seconds = 0.15, kernel_seconds = 60 }, { seconds = 60, kernel_seconds = 0.5 }
local LIMITS = {
  device_bytes = 2 ^ 24, pinned_bytes = 2 ^ 20,
  objects = 200, graph_nodes = 100, lua_bytes = 2 ^ 24,
}

local OVER, MEMORY = "the time is over", "not enough memory: restricted: the state's lua_bytes"

-- What each attack raises; `nothing` is for those that find nothing: they
-- assert it themselves.
local nothing = false
local attacks = {
  -- compile, include, files
  { "compile a source of its own", "cg.kernel(source .. ' ')", "not among those" },
  { "compile with an option", "cg.kernel(source, 'add', { options = { '-DX=1' } })",
    "without options" },
  { "include by an option", "cg.module(source, { options = { '-include', '/etc/passwd' } })",
    "without options" },
  { "name an expression", "cg.module(source, { expressions = { 'x>(0)' } })", "without options" },
  { "make a template's name", "cg.kernel(source, 'scale<(0)); int x(')", "without options" },
  { "compile a file", "cg.module { file = '/dev/zero' }", "without options" },
  { "name the source like a file", "cg.module(source, { file = '/dev/zero' })",
    "without options" },
  { "include", "cg.kernel '#include \"/etc/passwd\"'", "not among those" },
  { "incbin", "cg.kernel 'asm(\".incbin \\\\\"/etc/passwd\\\\\"\");'", "not among those" },
  { "load machine code", "cg.module('\\127ELF' .. ('x'):rep(100))", "not among its kernels" },
  { "load PTX", "cg.module '.version 7.0\\n.target sm_90'", "not among its kernels" },
  { "choose where kernels come from", "cg.kernels_from '/tmp'", "has no 'kernels_from'" },
  { "compile in the background", "cg.module_async(source)", "has no 'module_async'" },
  { "open files", "assert(not io and not dofile and not loadfile)", nothing },
  { "run programs", "assert(not os.execute and not os.remove and not os.rename)", nothing },
  { "look around", "assert(not os.getenv and not os.tmpname and not os.exit)", nothing },
  { "require a module", "require 'ffi'", "no module 'ffi'" },
  { "require by another type", "require(setmetatable({}, { __eq = rawequal }))", "no module" },
  { "reach package", "assert(not package and not module and require 'cgraphlua' == cg)", nothing },
  { "write a picture", "require 'cgraphlua.image'", "no module" },
  { "write a report", "cg.memory_report '/tmp/x'", "has no 'memory_report'" },
  { "save a graph", "cg.graph():save '/tmp/x'", "no method or field 'save'" },
  { "save graphs", "cg.save('/tmp/x', {})", "has no 'save'" },
  { "load graphs", "cg.load '/tmp/x'", "has no 'load'" },
  { "dump a graph", "cg.graph():debug_dump '/tmp/x'", "no method or field 'debug_dump'" },
  -- addresses and handles
  { "make a parameter of bytes", "cg.param('uint8', { 1, 2, 3, 4, 5, 6, 7, 8 })",
    "bytes are not taken" },
  { "make a parameter of a string", "cg.param('uint8', ('x'):rep(8))", "bytes are not taken" },
  { "get an address", "cg.zeros('float', 1):address()", "no method or field 'address'" },
  { "get a handle", "cg.stream():handle()", "no method 'handle'" },
  { "get a driver's graph", "cg.graph():raw_cuda_graph()", "no method or field 'raw_cuda_graph'" },
  { "get an FFI pointer", "cg.pinned('float', 1):cdata()", "no method or field 'cdata'" },
  { "make a buffer of an address", "cg.buffer_from(4096, 'float', 1)", "has no 'buffer_from'" },
  { "make a stream of an address", "cg.stream_from(4096)", "has no 'stream_from'" },
  { "give a number for a pointer", "cg.kernel(source, 'add'):launch(1, 1, 4096, 1, 1)",
    "ARGUMENT_TYPE" },
  { "give an integer for a pointer", "cg.kernel(source, 'add'):launch(1, 1, 4096ULL, 1, 1)",
    "ARGUMENT_TYPE" },
  { "give bytes for a pointer", "cg.kernel(source, 'add'):launch(1, 1, ('\\1'):rep(8), 1, 1)",
    "bytes are not taken" },
  { "give bytes for a struct", "cg.kernel(source, 'through'):launch(1, 1, ('\\1'):rep(16))",
    "bytes are not taken" },
  { "give a complex number for a struct", "cg.kernel(source, 'through'):launch(1, 1, 4e-310i)",
    "FFI objects" },
  { "give an address in a struct",
    "cg.kernel(source, 'through'):launch(1, 1, { p = 4096, n = 1 })", "address in a struct" },
  { "give an address in a struct's parameter",
    "cg.kernel(source, 'through'):param(1, { p = 4096, n = 1 })", "address in a struct" },
  { "give bytes to a struct's parameter",
    "cg.kernel(source, 'through'):param(1, ('\\1'):rep(16))", "bytes are not taken" },
  { "give a null pointer", "cg.kernel(source, 'add'):launch(1, 1, cg.null, 1, 1)",
    "has no 'null'" },
  { "set an address in a graph", [[
    local add, x = cg.kernel(source, 'add'), cg.zeros('float', 1)
    local g = cg.capture(function() add:launch(1, 1, x, 1, 1) end)
    g:set_params(1, { ('\1'):rep(8) })]], "bytes are not taken" },
  { "upload from an address", "cg.zeros('float', 1):upload(4096, 4)", "address is not taken" },
  { "download to a constant", "cg.zeros('float', 4):download(1i)", "FFI objects" },
  { "see addresses in texts", [[
    for _, x in ipairs { {}, print, cg.zeros('float', 1), cg.stream(), cg, math,
                         coroutine.create(print), cg.graph(), cg.generator() } do
      for _, text in ipairs { tostring(x), ('%s'):format(x), string.format('%s', x) } do
        assert(not text:find '0x%x', text)
      end
    end
    assert(not pcall(string.format, '%p', {}) and not pcall(string.format, '%%%-9p', {}))]],
    nothing },
  { "see addresses in errors", [[
    local ok, e = pcall(cg.buffer, 'float', 2 ^ 40)
    assert(not ok and not tostring(e):find '0x%x')
    assert(not tostring(cg.last_error()):find '0x%x')]], nothing },
  { "ask for snapshots", "cg.memory_snapshot()", "has no 'memory_snapshot'" },
  { "read past pinned memory", "cg.pinned('float', 4):get(5)", "from 1 to 4" },
  { "write before pinned memory", "cg.pinned('float', 4):set(0, 1)", "from 1 to 4" },
  { "build lists that overflow", [[
    local a = {} for i = 1, 2 ^ 11 do a[i] = 0 end
    for _ = 1, 5 do local b = {} for i = 1, 2 ^ 11 do b[i] = a end a = b end
    cg.from(a, 'double')]], "more elements than memory" },
  -- metatables and frozen tables
  { "assign to string", "string.rep = print", "'rep' is not assigned to" },
  { "assign to string's methods", "getmetatable('').__index.rep = print", "index" },
  { "rawset a library", "rawset(string, 'rep', print)", "table expected" },
  { "insert into a library", "table.insert(math, print)", "table expected" },
  { "assign to the module", "cg.buffer = print", "'buffer' is not assigned to" },
  { "assign a global of Lua's", "pcall = print", "'pcall' is not assigned to" },
  { "rawset a global of Lua's", "rawset(_G, 'pcall', print)", "'pcall' is not assigned to" },
  { "see metatables", [[
    for _, x in ipairs { '', cg, math, _G, cg.zeros('float', 1), cg.graph(), cg.event() } do
      assert(type(getmetatable(x)) == 'string')
    end]], nothing },
  { "set metatables", [[
    for _, x in ipairs { '', cg, math, _G, cg.zeros('float', 1) } do
      assert(not pcall(setmetatable, x, {}))
    end]], nothing },
  { "change an error's metatable", [[
    local ok, e = pcall(cg.buffer, 'float', 2 ^ 40)
    assert(type(getmetatable(e)) == 'string' and not pcall(setmetatable, e, {}))]], nothing },
  -- ffi, jit, debug, bytecode
  { "find ffi, jit, debug", "assert(not ffi and not jit and not debug and not newproxy)", nothing },
  { "find environments", "assert(not getfenv and not setfenv and not gcinfo)", nothing },
  { "dump a function", "assert(not string.dump and not (''):dump())", "dump" },
  { "load bytecode", "assert(load('\\27LJ\\2'))", "wrong mode" },
  { "load bytecode in pieces",
    "local n = 0 assert(load(function() n = n + 1 return ('\\27LJ\\2'):sub(n, n) end))",
    "wrong mode" },
  { "load in another mode", "load('return 1', 'x', 'b')", "only text" },
  { "load the old globals", "assert(load 'return io or debug or ffi'() == nil)", nothing },
  { "name a chunk like a file", [[
    local f = load('error \'here\'', '@/etc/passwd')
    local ok, e = pcall(f)
    assert(e == '(load):1: here' and not ok, e)]], nothing },
  { "reach FFI through an integer", [[
    assert(getmetatable(1LL) == 'ffi' and not pcall(function() return (1LL).x end))
    assert(not ffi and not pcall(require, 'ffi'))]], nothing },
  { "restrict again", "cg.restrict {}", "has no 'restrict'" },
  { "stop the collector", "collectgarbage 'stop'", "collectgarbage takes" },
  -- callbacks
  { "register a hook", "cg.graph():register_replay_start_hook(print)", "no method" },
  { "register the end of a graph", "cg.graph():register_destroy_callback(print)", "no method" },
  { "listen to the log", "cg.on_log(print)", "has no 'on_log'" },
  { "make calls of the driver fail", "cg.debug.fault(1)", "has no 'debug'" },
  { "lift the deadline of kernels", "cg.set_kernel_deadline(0)", "has no 'set_kernel_deadline'" },
  { "reset the device", "cg.reset_device()", "has no 'reset_device'" },
  { "wait for the device", "cg.synchronize 'device'", "its own work" },
  { "guess a token", "cg.take 'cgraphlua.buffer:0000000000000000'", "no object waits" },
  { "take a stream", "cg.take 'cgraphlua.stream:0000000000000000'", "of another state" },
  { "share", "cg.share(cg.zeros('float', 1))", "has no 'share'" },
  { "take over a capture's mode", "cg.capture(print, { capture_error_mode = 'global' })",
    "'capture_error_mode' is not taken" },
  { "skip checks of a graph", "cg.graph { unchecked = true }", "'unchecked' is not taken" },
  { "unroll a graph", "cg.graph { unroll = true }", "'unroll' is not taken" },
  { "change options of a graph", "cg.graph().unchecked = true", "stay as they are" },
  { "trim pools", "cg.capture(print, { trim = true })", "'trim' is not taken" },
  { "leave a capture open", "cg.graph():capture_begin()", "no method or field 'capture_begin'" },
  { "make a pool", "cg.pool()", "has no 'pool'" },
  { "go before others", "cg.stream { priority = -5 }", "go before no others" },
  -- endless Lua
  { "loop", "while true do end", OVER },
  { "loop in pcall", "while true do pcall(function() while true do end end) end", OVER },
  { "recur in pcall", "local function f() pcall(f) pcall(f) return f() end f()", OVER },
  { "loop in xpcall's handler", "xpcall(error, function() while true do end end) while true do end",
    OVER },
  { "loop in xpcall's handler, at the end of the time", [[
    xpcall(function() while true do end end, function() while true do end end)
    while true do end]], OVER },
  { "find a pattern that takes years", "('a'):rep(60):find(('a*'):rep(25) .. 'b')", OVER },
  { "match one", "('a'):rep(60):match(('a?'):rep(60) .. ('a'):rep(61))", OVER },
  { "iterate over one", "for _ in ('a'):rep(60):gmatch(('a-'):rep(25) .. 'b') do end", OVER },
  { "replace one", "('a'):rep(60):gsub(('(a*)'):rep(25) .. '%1b', '')", OVER },
  { "find one in a number", "string.find(11111111111111, ('1*'):rep(20) .. 'b')", OVER },
  { "loop in a coroutine", "coroutine.wrap(function() while true do end end)()", OVER },
  { "loop in many coroutines", [[
    while true do
      coroutine.resume(coroutine.create(function() while true do end end))
    end]], OVER },
  { "loop in a metamethod", [[
    local t = setmetatable({}, { __index = function() while true do end end })
    pcall(function() return t.x end) return t.x]], OVER },
  { "loop in a comparison of sort", "table.sort({ 1, 2, 3 }, function() while true do end end)",
    OVER },
  { "loop in gsub", "('x'):gsub('x', function() while true do end end)", OVER },
  { "loop in load", "load(function() while true do end end) while true do end", OVER },
  { "loop in __tostring",
    "tostring(setmetatable({}, { __tostring = function() while true do end end }))", OVER },
  { "loop in a capture", "cg.capture(function() while true do end end)", OVER },
  { "loop in a graphed function",
    "cg.graphed(function(x) while true do end end)(cg.zeros('float', 1))", OVER },
  { "loop in use", "cg.stream():use(function() while true do end end)", OVER },
  { "catch the end in a capture", [[
    cg.capture(function() while true do pcall(cg.zeros, 'float', 1) end end)]], OVER },
  { "sleep", "cg.sleep(1e9)", OVER },
  { "recur", "local function f() return 1 + f() end f()", "stack overflow" },
  { "find by force", "('a'):rep(2 ^ 22):find(('a'):rep(2 ^ 21) .. 'b', 1, true)", "too long" },
  -- endless device work
  { "run a kernel that does not end",
    "cg.kernel(source, 'hang'):launch(1, 1, cg.zeros('int32', 1)) cg.synchronize()",
    "LAUNCH_TIMEOUT" },
  { "run many of them", [[
    local hang, x = cg.kernel(source, 'hang'), cg.zeros('int32', 1)
    while true do
      local s = cg.stream()
      s:use(function() hang:launch(1, 1, x) end)
      s = nil collectgarbage()
    end]], OVER },
  { "replay without end", [[
    local x = cg.zeros('float', 8)
    cg.capture(function() x:fill(1) end):replay(2 ^ 53)]], OVER },
  { "launch without end", [[
    local x = cg.zeros('float', 8)
    while true do x:fill(1) end]], OVER },
  { "wait for an event that waits", [[
    local hang, e = cg.kernel(source, 'hang'), cg.event()
    hang:launch(1, 1, cg.zeros('int32', 1))
    e:record() e:synchronize() cg.synchronize()]], "LAUNCH_TIMEOUT" },
  { "launch a huge grid", [[
    local add, x = cg.kernel(source, 'add'), cg.zeros('float', 1)
    add:launch({ 2 ^ 31 - 1, 65535, 65535 }, 1024, x, 1, 1)
    cg.synchronize()]], "LAUNCH_TIMEOUT" },
  { "replay into a capture", [[
    local x = cg.zeros('float', 8)
    local g = cg.capture(function() x:fill(1) end)
    cg.capture(function() for _ = 1, 50 do g:replay() end end)]], "into a capture" },
  -- amounts
  { "make a huge buffer", "cg.buffer('float', 2 ^ 40)", "device_bytes" },
  { "fill the device", "local t = {} for i = 1, 1e6 do t[i] = cg.buffer('float', 2 ^ 18) end",
    "device_bytes" },
  { "fill the device in captures", [[
    local t = {}
    for i = 1, 1e6 do
      t[i] = cg.capture(function() cg.zeros('float', 2 ^ 18):view(1) end)
    end]], "restricted: the state may have" },
  { "pin huge memory", "cg.pinned('float', 2 ^ 40)", "pinned_bytes" },
  { "pin much memory", "local t = {} for i = 1, 1e6 do t[i] = cg.pinned('float', 2 ^ 13) end",
    "pinned_bytes" },
  { "make a million objects", "local t = {} for i = 1, 1e6 do t[i] = cg.event() end",
    "200 objects" },
  { "make a million views", [[
    local x, t = cg.zeros('float', 8), {}
    for i = 1, 1e6 do t[i] = x:view(1, 1) end]], "200 objects" },
  { "capture a million nodes",
    "local x = cg.zeros('float', 8) cg.capture(function() while true do x:fill(1) end end)",
    "graph_nodes" },
  { "capture many graphs", [[
    local x, t = cg.zeros('float', 8), {}
    for i = 1, 1e6 do
      t[i] = cg.capture(function() for _ = 1, 10 do x:fill(1) end end)
    end]], "graph_nodes" },
  { "repeat a string", "('x'):rep(2 ^ 30)", MEMORY },
  { "grow a string", "local s = 'x' while true do s = s .. s end", MEMORY },
  { "grow a table", "local t = {} while true do t[#t + 1] = {} end", MEMORY },
  { "load without end", "assert(load(function() return 'x = 1 ' end))", MEMORY },
  { "make coroutines", "local t = {} while 1 do t[#t + 1] = coroutine.create(print) end", MEMORY },
}

-- What is open; a name that is not here is closed.
local open_names = {
  _G = "_G _VERSION assert bit cg collectgarbage coroutine error getmetatable ipairs load "
    .. "loadstring math next os pairs pcall print rawequal rawget rawset require select "
    .. "setmetatable string table tonumber tostring type unpack xpcall",
  bit = "arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex",
  coroutine = "create isyieldable resume running status wrap yield",
  math = "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max "
    .. "min modf pi pow rad random randomseed sin sinh sqrt tan tanh",
  os = "clock date difftime time",
  string = "byte char find format gmatch gsub len lower match rep reverse sub upper",
  table = "concat insert maxn move remove sort",
  cg = "buffer capture clock current_stream default_generator device event from full generator "
    .. "graph graphed input is_current_stream_capturing kernel kernel_hash last_error manual_seed "
    .. "module param pinned sleep stream synchronize take version zeros",
  stream = "is_capturing query record release synchronize use wait",
  event = "elapsed query record release synchronize",
  buffer = "copy download fill item normal random release uniform upload view",
  pinned = "copy get release set",
  module = "global kernel kernels release",
  kernel = "block_size effects form launch name over param parameters release",
  graph = "bind capture instantiate is_capturing nodes params register_generator_state release "
    .. "replay reset set set_enabled set_params writes",
  param = "get name release set type",
  generator = "clone_state get_offset get_state graphsafe_get_state graphsafe_set_state "
    .. "initial_seed manual_seed release seed set_offset set_state",
}

local makes = {
  stream = "cg.stream()", event = "cg.event()", buffer = "cg.zeros('float', 1)",
  pinned = "cg.pinned('float', 1)", module = "cg.module(source)",
  kernel = "cg.kernel(source, 'add')", graph = "cg.graph()", generator = "cg.generator()",
  param = "cg.param('float', 1)",
}

-- All names there are: of a library, the module, or a kind's methods.
local function all_names(where)
  local names, from = {}, where == "cg" and cg or _G[where]
  if where == "_G" then
    from = { io = 1, debug = 1, ffi = 1, jit = 1, package = 1, cg = 1 }
    for name in pairs(_G) do from[name] = 1 end
  elseif makes[where] then
    from = debug.getmetatable(device.objects[where]()).methods
  end
  for name in pairs(from) do
    if type(name) == "string" and name:find "^[%a_][%w_]*$" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

describe("a restricted state", function()
  local L, short, graph, numbers
  local replays = 0

  -- The engine's graph adds 1 to its numbers.
  local function engine_works()
    graph:replay(3)
    replays = replays + 3
    assert.equal(replays, device.value(numbers))
  end

  setup(function()
    for name, value in pairs(LIMITS) do SHORT[name], LONG[name] = value, value end
    L, short = open(LONG), open(SHORT)
    graph, numbers = device.adder()
  end)

  teardown(function()
    C.lua_close(L)
    C.lua_close(short)
    graph, numbers = nil, nil
    device.nothing_alive()
  end)

  it("does its work", function()
    assert(call(L, [[
      local add = cg.kernel(source, 'add')
      local x = cg.zeros('float', 8)
      local g = cg.capture(function() add:launch(1, 8, x, 2, 8) end)
      g:replay(10)
      assert(x:download()[8] == 20)
      g:set_params(1, { [2] = 1 })
      g:replay()
      assert(x:download()[8] == 21)
      local pinned = cg.pinned('float', 8)
      pinned:copy(x)
      cg.synchronize()
      assert(pinned:get(1) == 21 and pinned.type == 'float')
      pinned:set(1, 5)
      x:copy(pinned)
      assert(x:download()[1] == 5)
      local s, e = cg.stream(), cg.event()
      s:use(function() x:fill(1) e:record(s) end)
      e:synchronize()
      local double = cg.graphed(function(y) add:launch(1, 8, y, 1, 8) return y end)
      for i = 1, 3 do double(x) end
      assert(x:download()[2] == 4)
      x:uniform(cg.generator(7))
      words = { coroutine.wrap(function(a) coroutine.yield(a) end)(1), pcall(error, 'x') }
      assert(#words == 3 and tostring(2) == '2' and ('%d %s'):format(2, 'x') == '2 x')
      assert(load 'return 1 + 1'() == 2 and require 'cgraphlua' == cg)]]))
  end)

  for where, names in pairs(open_names) do
    it("has of " .. where .. " what is listed, and nothing else", function()
      local ok, found = call(L, ([[
        local x, found = %s, {}
        for name in ("%s"):gmatch "%%S+" do
          local there, value = pcall(function() return x[name] end)
          if there and value ~= nil then found[#found + 1] = name end
        end
        return table.concat(found, " ")]]):format(makes[where] or where,
          table.concat(all_names(where), " ")))
      assert(ok, found)
      assert.equal(names, found)
    end)
  end

  it("counts what it takes of other states among its objects", function()
    local event, tokens = cg.event(), {}
    for i = 1, 300 do tokens[i] = cg.share(event) end
    set_text(L, "tokens", table.concat(tokens, " "))
    local ok, text = call(L, [[
      local taken = {}
      for token in tokens:gmatch "%S+" do taken[#taken + 1] = cg.take(token) end]])
    assert.is_false(ok)
    assert(text:find("200 objects", 1, true), text)
    local left = 0
    for _, token in ipairs(tokens) do left = left + (pcall(cg.take, token) and 1 or 0) end
    assert.is_true(left >= 100)
    assert(call(L, "collectgarbage() for i = 1, 1000 do pcall(cg.take, 'none') end"))
    assert(call(L, "local t = {} for i = 1, 100 do t[i] = cg.event() end"))
  end)

  it("is what a script makes of its own with cg.restrict", function()
    local status, out, errors = device.child [==[
      cg.on_log(nil)
      for _, bad in ipairs { 1, { nope = 1 }, { objects = 0 }, { seconds = -1 }, { lua_bytes = 1 },
                             { kernels = { "x" } }, { kernels = 1 } } do
        assert(not pcall(cg.restrict, bad))
      end
      assert(not pcall(coroutine.wrap(function() cg.restrict {} end)))
      local g, x = cg.graph, cg.zeros("float", 1)
      local run = cg.restrict { seconds = 0.1 }
      print(run(function() return 1, 2 end))
      local ok, e = run(loadstring "while true do end")
      print(ok, e:match "the time is over")
      print(run(error, "x"))
      run(loadstring [[local t = {}
        while true do pcall(function() while true do t[#t + 1] = {} end end) end]])
      print(#("x"):rep(2 ^ 24))
      print(io ~= nil, loadstring "return io == nil"())
      print(pcall(require "cgraphlua.restricted", cg))]==]
    assert.equal("", errors)
    local expected = "true\t1\t2\nfalse\tthe time is over\nfalse\tx\n16777216\ntrue\ttrue\nfalse\t"
    assert.equal(expected, out:sub(1, #expected))
    assert(out:find "limits already", out)
    assert.equal(0, status)
  end)

  it("runs the kernels that are shipped, without a compiler", function()
    local program = device.program
    local folder = program.folder()
    local function path(name) return folder .. "/" .. name end
    local own = ("local own = %q\n"):format(
      'extern "C" __global__ void nine(int *x) { *x = 9; }')
    program.write(path "ship.lua", own .. 'require "cgraphlua".kernel(own)')
    program.write(path "play.lua", own .. [[
      local run = require "cgraphlua".restrict { seconds = 60 }
      print(run(loadstring [=[
        local cg, source = require "cgraphlua", ...
        local x = cg.zeros("int32", 1)
        cg.kernel(source):launch(1, 1, x)
        return x:download()[1], (pcall(cg.kernel, source .. " "))
      ]=], own))]])
    assert.equal(0, (program.run { "--device", "host", "--compile", path "ship.lua", "--out",
                                   path "kernels" }))
    local status, out, errors = program.run({ "--device", "host", path "play.lua" },
      { env = "CGRAPHLUA_CACHE=off CGRAPHLUA_CXX=/none CGRAPHLUA_KERNELS="
        .. program.quote(path "kernels") })
    program.remove(folder)
    assert.equal("true\t9\tfalse\n", out)
    assert.equal("", errors)
    assert.equal(0, status)
  end)

  for _, attack in ipairs(attacks) do
    local name, chunk, expected = unpack(attack)
    -- Kernels that do not end lose a GPU.
    local test = expected == "LAUNCH_TIMEOUT" or chunk:find "'hang'"
    test = test and cg.device().device ~= "host" and pending or it
    test("lets no script " .. name, function()
      local state = expected == OVER and short or L
      local ok, text = call(state, chunk)
      if expected == nothing then
        assert(ok, text)
      else
        assert.is_false(ok)
        assert(text:find(expected, 1, true), text)
      end
      engine_works()
      ok, text = call(state, "collectgarbage() return cg.full('float', 1, 3):download()[1]", 60)
      assert(ok, text)
      assert.equal("3", text)
    end)
  end
end)
