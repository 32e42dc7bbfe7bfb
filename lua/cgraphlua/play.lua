-- What `cgraphlua FILE [n] [options]` does with a file of graphs.
-- Raw bytes go into inputs and come out of outputs, as they lie in memory.

local usage = "usage: cgraphlua FILE [n] [--graph name] [--in name=file] [--out name=file]"

local function fail(...)
  error(string.format(...), 0)
end

local function read(path)
  local file, why = io.open(path, "rb")
  local bytes = file and file:read "*a" or fail("%s", why)
  file:close()
  return bytes
end

local function write(path, bytes)
  local file, why = io.open(path, "wb")
  local done = file and file:write(bytes)
  if file then done, why = file:close() and done, "cannot be written" end
  if not done then fail("%s: %s", path, why) end
end

-- The buffer that an option's "name=file" names, and the file.
local function named(buffers, kind, text)
  local name, path = text:match "^([^=]*)=(.+)$"
  local known = {}
  for key in pairs(buffers) do known[#known + 1] = key end
  table.sort(known)
  if not name or not buffers[name] then
    fail("--%s %s: name=file expected; the graph's %s are: %s", kind, text,
      kind == "in" and "inputs" or "outputs", table.concat(known, ", "))
  end
  return buffers[name], path
end

-- Count of replays, and the options in their order.
local function parse(args)
  local n, opts, i = 1, { graph = {}, ["in"] = {}, out = {} }, 1
  if args[1] and args[1]:find "^%d+$" then n, i = tonumber(args[1]), 2 end
  while args[i] do
    local list = opts[args[i]:match "^%-%-(%a+)$"]
    if not list or not args[i + 1] then fail("%s: '%s'", usage, args[i]) end
    list[#list + 1] = args[i + 1]
    i = i + 2
  end
  return n, opts
end

local function choose(loaded, name)
  if type(loaded) ~= "table" then return loaded end
  local known = {}
  for key in pairs(loaded) do known[#known + 1] = key end
  table.sort(known)
  local graph = loaded[name or known[2] == nil and known[1]]
  return graph or
    fail("--graph name expected; the file's graphs are: %s", table.concat(known, ", "))
end

return function(path, ...)
  local cg = require "cgraphlua"
  local n, opts = parse { ... }
  local graph = choose(cg.load(path), opts.graph[1])
  for _, text in ipairs(opts["in"]) do
    local buffer, from = named(graph.inputs, "in", text)
    local bytes = read(from)
    if #bytes ~= buffer.bytes then
      fail("--in %s: the file has %d bytes, the input %d", text, #bytes, buffer.bytes)
    end
    buffer:upload(bytes)
  end
  graph:replay(n)
  cg.synchronize()
  for _, text in ipairs(opts.out) do
    local buffer, to = named(graph.outputs, "out", text)
    write(to, buffer:download "string")
  end
end
