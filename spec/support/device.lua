-- What the specs of the Lua module share.  Load with dofile: specs run from
-- any folder.  Under CGRAPHLUA_DEVICE=cuda the same specs test a GPU.

local cg = require "cgraphlua"
local assert = require "luassert"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/program.lua")

local M = { program = program }

cg.on_log(nil)

--- Kernels that most specs need.
M.source = [[
extern "C" __global__ void add(float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += a;
}
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
extern "C" __global__ void spin(float *x, int n) {
  float v = x[0];
  for (int i = 0; i < n; i++) v = v * 0.999f + 1.f;
  x[0] = v;
}
]]

--- Memory that was freed is never handed out again: under this setting, and
-- nowhere else, each block has pages of its own.
M.never_reuses = os.getenv "CGRAPHLUA_HOST_GUARD" == "1"

local module

--- A kernel of the source above.
function M.kernel(name)
  module = module or cg.module(M.source)
  return module:kernel(name)
end

--- By noun: a function that makes an object of the kind.
M.objects = {
  stream = function() return cg.stream() end,
  event = function() return cg.event() end,
  buffer = function() return cg.zeros("float", 1) end,
  pinned = function() return cg.pinned("float", 1) end,
  module = function() return cg.module(M.source) end,
  compilation = function() return cg.module_async(M.source) end,
  kernel = function() return M.kernel "add" end,
  pool = function() return cg.pool() end,
  graph = function() return cg.graph() end,
  generator = function() return cg.generator() end,
  checkpoint = function() return cg.pool():checkpoint() end,
  loop = function() return cg.loop(cg.zeros("bool", 1), function() end) end,
  param = function() return cg.param("float", 1, "a") end,
  ranks = function() return cg.ranks() end,
}

--- A buffer of n floats (8), all `value`.
function M.full(value, n)
  return cg.full("float", n or 8, value)
end

--- y = a * x in a new buffer.
function M.scaled(x, a)
  local y = cg.buffer("float", #x)
  M.kernel "scale":launch(1, 32, x, y, a, #x)
  return y
end

--- Adds a (1) to each of up to 32 elements in place.
function M.bump(x, a)
  M.kernel "add":launch(1, 32, x, a or 1, #x)
end

--- A graph that adds 1 to a buffer of four zeros, and the buffer.
function M.adder(opts)
  local add, x = M.kernel "add", cg.zeros("float", 4)
  return cg.capture(function() add:launch(1, 32, x, 1, 4) end, opts), x
end

--- A graph of the pool that fills n floats which it gives back, and where they
-- were.
function M.scratch(pool, n, opts)
  opts = opts or {}
  opts.pool = pool
  return cg.capture(function()
    local x = cg.buffer("float", n)
    x:fill(1)
    local address = x:address()
    x:release()
    return address
  end, opts)
end

--- The first element of a buffer.
function M.first(x)
  return x:download()[1]
end

--- The value that all elements of a buffer have.
function M.value(x)
  local t = x:download()
  for i = 2, #t do assert(t[i] == t[1], "element " .. i .. " differs") end
  return t[1]
end

--- A buffer's elements in hex, the most significant digit first.
function M.bits(x)
  local size, list = x.bytes / #x, {}
  local bytes = x:download "string"
  for i = 1, #bytes, size do
    list[#list + 1] = bytes:sub(i, i + size - 1):reverse():gsub(".", function(c)
      return ("%02x"):format(c:byte())
    end)
  end
  return table.concat(list, " ")
end

--- The kinds of a graph's nodes, in one string.
function M.kinds(g)
  local list = {}
  for i, node in ipairs(g:nodes()) do list[i] = node.kind end
  return table.concat(list, " ")
end

--- Calls fn, which must raise; returns the error value and its text.
function M.fails(fn, ...)
  local ok, e = pcall(fn, ...)
  assert(not ok, "an error was expected, and none was raised")
  return e, tostring(e)
end

--- The messages that fn caused, in one string.
function M.logged(fn)
  local list = {}
  cg.on_log(function(message) list[#list + 1] = message end)
  local ok, e = pcall(fn)
  cg.on_log(nil)
  assert(ok, e)
  return table.concat(list, "\n")
end

--- The caller's "file:line", moved by `offset` lines.
function M.line(offset)
  local info = debug.getinfo(2, "Sl")
  return info.source:sub(2) .. ":" .. info.currentline + (offset or 0)
end

--- fn raises an error object with this name (of its .name) and the patterns
-- in its text; returns the object.
function M.raises(name, fn, ...)
  local e, text = M.fails(fn)
  assert(type(e) == "table" and e.name == name,
    string.format("%s expected, got: %s", name, text))
  for _, pattern in ipairs { ... } do
    assert(text:find(pattern), string.format("%q is not in: %s", pattern, text))
  end
  return e
end

--- fn asks for more memory than any machine has: the driver refuses it, in
-- whatever words, the error is clear, the device works on and no `noun` is left.
function M.lacks(noun, fn)
  collectgarbage()
  collectgarbage()
  local before = cg.live(noun)
  local e, text = M.fails(fn)
  assert(type(e) == "table" and tostring(e.name):find "^CUDA_ERROR_",
    "a refusal of the driver expected, got: " .. text)
  assert(#e.message > 0 and e.where ~= "" and text:find(e.message, 1, true), "unclear: " .. text)
  assert.equal(before, cg.live(noun))
  cg.synchronize()
end

--- fn raises a "bad argument" string with the patterns in it.
function M.slips(fn, ...)
  local e, text = M.fails(fn)
  assert(type(e) == "string", "a string expected, got: " .. text)
  local where = text:match "^[^\n]+:%d+: bad argument #%d+ to '" or
    text:match "^[^\n]+:%d+: calling '%S+' on bad self"
  assert(where, "no argument error: " .. text)
  for _, pattern in ipairs { ... } do
    assert(text:find(pattern), string.format("%q is not in: %s", pattern, text))
  end
end

local nouns = { "stream", "event", "buffer", "pinned", "module", "compilation", "kernel", "pool",
                "graph", "generator" }

local function take(...)
  return select("#", ...)
end

local function check_alive()
  collectgarbage()
  collectgarbage()
  cg.debug.forget()
  local alive = {}
  for _, noun in ipairs(nouns) do
    if cg.live(noun) ~= 0 then
      alive[#alive + 1] = cg.live(noun) .. " " .. noun
    end
  end
  assert(#alive == 0, "still alive: " .. table.concat(alive, ", "))
  assert.equal(0, cg.live "all")
end

--- Collects all that the script dropped; nothing may stay alive.
function M.nothing_alive()
  module = nil
  jit.flush() -- compiled loops hold the objects that they used
  -- Frames to come mark whatever calls long gone left in their slots.
  take(unpack({}, 1, 250))
  return check_alive()
end

-- A sweep lets go of everything some hundred times, and a GPU takes a tenth
-- of a second to make its context anew: such a child holds on to it itself.
local hold = [[
do
  local ordinal = (os.getenv "CGRAPHLUA_DEVICE" or ""):match "^cuda:?(%d*)$"
  if ordinal then
    local ffi = require "ffi"
    ffi.cdef "int cuInit(unsigned); int cuDevicePrimaryCtxRetain(void **, int);"
    local cuda = ffi.load "libcuda.so.1"
    assert(cuda.cuInit(0) == 0)
    assert(cuda.cuDevicePrimaryCtxRetain(ffi.new "void *[1]", tonumber(ordinal) or 0) == 0)
  end
end
]]

--- Runs a chunk in a process of its own with the environment ("A=1 B=2");
-- returns status, output and errors.  It has the kernels above as `source`.
function M.child(chunk, environment)
  local path = os.tmpname()
  local held = (environment or ""):find("CGRAPHLUA_FAULT=1", 1, true) and hold or ""
  local source = ("%q"):format(M.source):gsub("\\\n", "\\n") -- in one line
  program.write(path, "local cg, source = require 'cgraphlua', " .. source .. "\n" .. held .. chunk)
  local status, out, err = program.run({ path }, { env = environment })
  os.remove(path)
  return status, out, err
end

--- Runs a chunk that sweeps a job (sweep.lua), each driver call failing with
-- `code`; it must end well.  The job's own calls alone: graphs are not built once
-- more to be compared.
function M.sweep(code, chunk)
  local status, out, err = M.child(("cg.on_log(nil)\nlocal sweep = dofile(%q)(cg, %d)\n"):format(
    here .. "/sweep.lua", code) .. chunk .. "\nprint 'swept'",
    "CGRAPHLUA_FAULT=1 CGRAPHLUA_CHECK_BUILD=0")
  assert(status == 0 and out == "swept\n" and err == "",
    ("the sweep ended with status %d\n%s%s"):format(status, out, err))
end

return M
