-- Restricted states, for scripts that their host does not trust: what a script
-- may name.  A name that is not listed is closed, a new one too.
-- The script's globals are a table of its own.  Behind it stand the names of
-- `globals` and the libraries, which it cannot change: libraries are userdata,
-- so that rawset and table.insert do not reach them.  What Lua's own functions
-- would let through is held back by the functions here: bytecode, addresses,
-- the collector's brakes.

local core = require "cgraphlua.core"
local patterns = require "cgraphlua.patterns"

core.hide() -- errors name the script's line

local MOST_STEPS = 2 ^ 32 -- of a search

local function set(names)
  local found = {}
  for name in names:gmatch "%S+" do
    found[name] = true
  end
  return found
end

local globals = set [[assert error getmetatable ipairs next pairs rawequal rawget select
  setmetatable tonumber type unpack]]

local libraries = {
  bit = set "arshift band bnot bor bswap bxor lshift rol ror rshift tobit tohex",
  coroutine = set "create isyieldable running status wrap yield",
  math = set [[abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10
    max min modf pi pow rad random randomseed sin sinh sqrt tan tanh]],
  os = set "clock date difftime time",
  string = set "byte char find gmatch gsub len lower match rep reverse sub upper",
  table = set "concat insert maxn move remove sort",
}

local module = set [[buffer capture clock current_stream default_generator device event from full
  generator graph graphed input is_current_stream_capturing kernel kernel_hash last_error
  manual_seed module param pinned sleep stream synchronize take version zeros]]

local methods = {
  stream = set "is_capturing query record release synchronize use wait",
  event = set "elapsed query record release synchronize",
  buffer = set "copy download fill item normal random release uniform upload view",
  pinned = set "copy get release set",
  module = set "global kernel kernels release",
  compilation = set "ready release",
  kernel = set "block_size effects form launch name over param parameters release",
  pool = set "release",
  graph = set [[bind capture instantiate is_capturing nodes params register_generator_state release
    replay reset set set_enabled set_params writes]],
  param = set "get name release set type",
  generator = set [[clone_state get_offset get_state graphsafe_get_state graphsafe_set_state
    initial_seed manual_seed release seed set_offset set_state]],
  checkpoint = set "release",
  ranks = set "release",
}

-- Copies the fields that are listed.
local function choose(from, names)
  local chosen = {}
  for name in pairs(names) do
    chosen[name] = from[name]
  end
  return chosen
end

-- Lua's own functions, held back ---------------------------------------------

local error, select, tostring, type = error, select, tostring, type
local find, format, gsub, match = string.find, string.format, string.gsub, string.match

-- tostring without the address of a table, a function and the like.
local function text_of(x)
  local text = tostring(x)
  local kind = type(x)
  if kind == "string" or kind == "number" or type(text) ~= "string" then
    return text
  end
  local word = match(text, "^(.-): 0x%x+$")
  return word or text
end

local function safe_format(pattern, ...)
  if find(gsub(tostring(pattern), "%%%%", ""), "%%[-+ #%d.]*p") then
    error("restricted: string.format: '%p' would show an address", 2)
  end
  local values, n = { ... }, select("#", ...)
  for i = 1, n do
    local kind = type(values[i])
    if kind ~= "string" and kind ~= "number" and kind ~= "nil" and kind ~= "boolean"
      and kind ~= "cdata" then
      values[i] = text_of(values[i])
    end
  end
  return format(pattern, unpack(values, 1, n))
end

-- A plain search of a long text for a long text would take hours, and nothing can
-- end it.
local function safe_find(text, pattern, ...)
  if #tostring(text) * #tostring(pattern) > MOST_STEPS then
    error("restricted: string.find: the texts are too long: it would take too much time", 2)
  end
  return patterns.find(text, pattern, ...)
end

-- After a caught error.  LuaJIT has no room for a hook at the end of the stack, so
-- that scripts which overflow it again and again would not see the clock.  A state
-- without memory says which limit it was.
local function caught(ok, e, ...)
  if ok then
    return ok, e, ...
  end
  core.check_time()
  if e == "not enough memory" then
    return ok, "not enough memory: restricted: the state's lua_bytes are in use"
  end
  return ok, e, ...
end

-- A handler that Lua calls where the error is would see no hook: it is called
-- after.
local function handled(handler, ok, ...)
  if ok then
    return ok, ...
  end
  return false, (select(2, pcall(handler, ...)))
end

local function safe_xpcall(f, handler, ...)
  return handled(handler, caught(pcall(f, ...)))
end

local function catching(call)
  return function(...)
    return caught(call(...))
  end
end

-- Chunks are text.  Their name is ours: the core keeps each name that it meets, and a
-- file's name would be read.
local function safe_load(load, scope)
  return function(chunk, _, mode, environment)
    if mode ~= nil and mode ~= "t" then
      error("restricted: load: only text is loaded, mode \"t\"", 2)
    end
    return caught(load(chunk, "=(load)", "t", environment == nil and scope or environment))
  end
end

local collections = { collect = true, count = true, step = true }

local function safe_collect(collect)
  return function(what, ...)
    what = what == nil and "collect" or what
    if not collections[what] then
      error("restricted: collectgarbage takes \"collect\", \"step\" and \"count\"", 2)
    end
    return collect(what, ...)
  end
end

local function safe_print(print)
  return function(...)
    local texts = { ... }
    for i = 1, select("#", ...) do
      texts[i] = text_of(texts[i])
    end
    return print(unpack(texts, 1, select("#", ...)))
  end
end

-- The globals ------------------------------------------------------------------

-- What stands behind the script's globals, and the methods of strings.
local function make_standard(scope, cg)
  local standard = choose(_G, globals)
  local kept = {}
  for name, names in pairs(libraries) do
    kept[name] = choose(_G[name], names)
  end
  kept.string.format = safe_format
  kept.string.find = safe_find
  kept.string.gmatch, kept.string.gsub = patterns.gmatch, patterns.gsub
  kept.string.match = patterns.match
  kept.coroutine.resume = catching(coroutine.resume)
  for name, fields in pairs(kept) do
    standard[name] = core.freeze(fields)
  end
  standard.pcall, standard.xpcall = catching(pcall), safe_xpcall
  standard.tostring, standard.collectgarbage = text_of, safe_collect(collectgarbage)
  standard.load = safe_load(load, scope)
  standard.loadstring = standard.load
  standard._G, standard._VERSION = scope, _VERSION
  function standard.require(name)
    if name == "cgraphlua" then
      return cg
    end
    error(format("restricted: require: there is no module '%s' but cgraphlua", text_of(name)), 2)
  end
  return standard, kept.string
end

-- Assigns what is not standard, however it is asked.
local function protect(scope, standard)
  local rawset = rawset
  local function assign(t, key, value)
    if t == scope and key ~= nil and standard[key] ~= nil then
      error(format("restricted: '%s' is not assigned to", text_of(key)), 2)
    end
    return rawset(t, key, value)
  end
  standard.rawset = assign
  setmetatable(scope, { __index = standard, __newindex = assign, __metatable = "frozen" })
end

--- Restricts the state whose module `cg` is; the limits are those of
-- cgl_lua_limits.  Returns a function that calls another as pcall does, with the
-- state's time anew.
return function(cg, limits)
  local scope, frozen = {}, core.freeze(cg)
  local standard, strings = make_standard(scope, frozen)
  protect(scope, standard)
  scope.print = safe_print(print)
  core.restrict(limits or {}, scope, strings, methods, frozen)
  for name in pairs(cg) do
    if not module[name] then
      cg[name] = nil
    end
  end
  return core.run
end
