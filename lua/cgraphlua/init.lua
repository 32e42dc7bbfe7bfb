-- cgraphlua: capture, instantiate and replay CUDA graphs from Lua.
-- The objects live in C (cgraphlua.core).  This half says what needs LuaJIT's
-- FFI, and keeps the core's own hooks out of what a script sees.  What every
-- name does is in cgraphlua/meta, which editors read too.

-- Sandboxes may hide `jit`; LuaJIT's own functions tell all the same.
if not rawget(_G, "jit") and not tostring(string.byte):find "builtin" then
  error("cgraphlua needs LuaJIT, and this program has " .. _VERSION ..
    ": run the script with luajit or cgraphlua, or build the program with LuaJIT 2.1", 0)
end

local found, core = pcall(require, "cgraphlua.core")
if not found then
  local hidden = tostring(core):find "undefined symbol: lua" and
    "\n  hint: this program hides its LuaJIT: link it with -Wl,-E, or with libcgraphlua-lua.a " ..
    "and call cgl_lua_preload" or ""
  error(core .. hidden, 0)
end

core.hide() -- errors name the script's line, not ours

-- C types of the elements, for pointers into pinned memory.
local element_types = {
  float = "float *", double = "double *", bool = "bool *",
  int8 = "int8_t *", uint8 = "uint8_t *", int16 = "int16_t *", uint16 = "uint16_t *",
  int32 = "int32_t *", uint32 = "uint32_t *", int64 = "int64_t *", uint64 = "uint64_t *",
  half = "uint16_t *", bfloat16 = "uint16_t *",
  complex64 = "complex float *", complex128 = "complex *",
}
for name, number in pairs {
  float = "float", double = "double", char = "int8_t", uchar = "uint8_t", short = "int16_t",
  ushort = "uint16_t", int = "int32_t", uint = "uint32_t", longlong = "int64_t",
  ulonglong = "uint64_t",
} do
  for lanes = 2, 4 do
    local fields = ("x, y, z, w"):sub(1, 3 * lanes - 2)
    element_types[name .. lanes] = ("struct { %s %s; } *"):format(number, fields)
  end
end

-- LuaJIT's names for the numbers of an array, and ours, the same for both
-- signs.  Bytes are missing: they may hold any type.
local array_types = {
  float = "float", double = "double", short = "int16", ["unsigned short"] = "int16",
  int = "int32", ["unsigned int"] = "int32", int64_t = "int64", uint64_t = "int64",
  complex = "double", ["complex float"] = "float",
}

local function ffi_helpers(ffi)
  local int64, uint64 = ffi.typeof "int64_t", ffi.typeof "uint64_t"
  local void = ffi.typeof "const volatile void *"
  local address = ffi.typeof "uintptr_t"
  local helpers = {}

  --- What an FFI object is, for the C side: its kind, its value (64-bit ones
  -- and addresses boxed, to be read from the box), its size in bytes.
  function helpers.read(x)
    if ffi.istype(int64, x) then
      return "int", x, 8
    elseif ffi.istype(uint64, x) then
      return "uint", x, 8
    end
    if ffi.istype("complex", x) or ffi.istype("complex float", x) then
      return "complex", x, ffi.sizeof(x)
    end
    local number = tonumber(x)
    if number then
      return "number", number, 0
    end
    local name = tostring(ffi.typeof(x))
    if name:find "%*>$" or name:find "%(%*%)" then
      return "pointer", uint64(ffi.cast(address, x)), 0
    end
    return "bytes", uint64(ffi.cast(address, ffi.cast(void, x))), ffi.sizeof(x)
  end

  --- The numbers of an FFI array, or nil of bytes, structs and the like.
  function helpers.elements(x)
    local name = tostring(ffi.typeof(x)):match "^ctype<([%a%d_ ]-) ?%["
    return name and array_types[(name:gsub("const ", ""):gsub("volatile ", ""))]
  end

  function helpers.int64(high, low)
    return int64(high) * 2 ^ 32 + int64(low)
  end

  function helpers.uint64(high, low)
    return uint64(high) * 2 ^ 32 + uint64(low)
  end

  --- A typed pointer that keeps `owner` from being collected.
  function helpers.pointer(data, element_type, owner)
    local pointer = ffi.cast(element_types[element_type], data)
    return ffi.gc(pointer, function()
      return owner
    end)
  end

  return helpers
end

local has_ffi, ffi = pcall(require, "ffi")
if has_ffi then
  core.set_ffi(ffi_helpers(ffi))
end

local cg = {}
for name, value in pairs(core) do
  cg[name] = value
end
for _, name in ipairs { "hide", "set_ffi", "bad_argument", "released", "log", "address", "nearest",
                       "png", "renew", "restrict", "run", "check_time",
                       "freeze", "algo", "blas", "fft", "launched" } do
  cg[name] = nil -- between the module's two halves
end

local callables = require "cgraphlua.callables"
cg.graphed = callables.graphed
cg.make_graphed_callables = callables.make_graphed_callables

--- Loads the report's page at its first use.
function cg.memory_report(path)
  return require("cgraphlua.report").write(path)
end

--- Loads the comparison at its first use.
function cg.compare(fn, opts)
  return require "cgraphlua.compare"(fn, opts)
end

--- A grid whose rows are divided among ranks.
function cg.domain(opts)
  return require "cgraphlua.domain"(opts)
end

--- Makes the state a restricted one, for scripts that are loaded afterwards.
function cg.restrict(limits)
  return require("cgraphlua.restricted")(cg, limits)
end

-- A misspelt function is an error at its own line; rawget asks without one.
return setmetatable(cg, {
  __index = function(_, name)
    error(string.format("cgraphlua has no '%s'%s%s", tostring(name),
      rawget(cg, "restrict") and "" or " in a restricted state",
      type(name) == "string" and core.nearest(name, cg) or ""), 2)
  end,
})
