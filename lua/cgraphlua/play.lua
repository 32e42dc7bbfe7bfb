-- What `cgraphlua FILE [n] [options]` does with a file of graphs.
-- Raw bytes go into inputs and come out of outputs, as they lie in memory.

local usage = "usage: cgraphlua FILE [n] [--graph name] [--set name=value] [--in name=file] " ..
  "[--out name=file]"

-- What is wrong with the command, not with the program: told without a traceback.
local Mistake = {}

local function fail(...)
  error(setmetatable({ text = string.format(...) }, Mistake), 0)
end

local function fail_file(path, why)
  fail("%s", why:find(path, 1, true) and why or path .. ": " .. why)
end

local function read(path)
  local file, why = io.open(path, "rb")
  local bytes
  if file then
    bytes, why = file:read "*a"
    file:close()
  end
  return bytes or fail_file(path, why or "cannot be read")
end

local function write(path, bytes)
  local file, why = io.open(path, "wb")
  local done = file and file:write(bytes)
  if file then done, why = file:close() and done, "cannot be written" end
  if not done then fail_file(path, why) end
end

-- What is in a table by name, in words.
local function names(known)
  local list = {}
  for key, value in pairs(known) do
    list[#list + 1] = type(value) == "string" and key .. " (" .. value .. ")" or key
  end
  table.sort(list)
  return list[1] and table.concat(list, ", ") or "none"
end

-- The buffer that an option's "name=file" names, and the file.
local function named(buffers, kind, text)
  local name, path = text:match "^([^=]*)=(.+)$"
  if not name or not buffers[name] then
    fail("--%s %s: name=file expected; the graph's %s: %s", kind, text,
      kind == "in" and "inputs" or "outputs", names(buffers))
  end
  return buffers[name], path
end

-- A number, true or false; a whole number too large for a double as a 64-bit one.
local function element(text)
  local value = tonumber(text)
  if value and math.abs(value) >= 2 ^ 53 and text:find "^%-?%d+$" then
    local whole = loadstring("return " .. text .. (text:find "^%-" and "LL" or "ULL"))
    value = whole and whole()
    if not tostring(value):find(text, 1, true) then return nil end
  end
  if text == "true" or text == "false" then return text == "true" end
  return value
end

-- What a list of parameters or fields takes, by name: "2 of float", "a struct".
local function takes(list)
  local known = {}
  for _, x in ipairs(list) do
    local count = type(x.value) == "table" and #x.value .. " of " or ""
    if x.name then known[x.name] = x.fields and "a struct" or count .. x.type end
  end
  return known
end

-- The parameter of a name, or the one whose field "name.field" names: then also
-- the table with the field, and its key, which are nil where there is no such field.
local function find(graph, name)
  for _, param in ipairs(graph:params()) do
    local rest = param.name and name:sub(#param.name + 1)
    if param.name == name then return param end
    if param.fields and name:sub(1, #param.name) == param.name and rest:find "^%." then
      local value, inside, last = param.value, nil, nil
      for key in rest:gmatch "%.([^.]*)" do
        inside, last = value, tonumber(key) or key
        value = type(value) == "table" and value[last]
      end
      if value == nil or type(inside) ~= "table" then return param end
      return param, inside, last
    end
  end
end

-- Gives a parameter of the graph the value of "name=value" or "name=value,value",
-- or one of its fields that of "name.field=value".
local function set(graph, text)
  local name, list = text:match "^([^=]*)=(.+)$"
  local param, inside, key
  if name then param, inside, key = find(graph, name) end
  if not param or (param.fields and not inside) then
    fail("--set %s: %s expected; the %s: %s", text,
      param and param.name .. ".field=value" or "name=value",
      param and "fields" or "graph's parameters",
      names(takes(param and param.fields or graph:params())))
  end
  local what, values = takes({ param })[param.name], {}
  for word in (list .. ","):gmatch "%s*([^,]*)%s*," do
    local value = element(word)
    if value == nil then fail("--set %s: '%s' is no number for %s", text, word, what) end
    values[#values + 1] = value
  end
  local value = values[2] == nil and values[1] or values
  if inside then inside[key], value = value, param.value end
  local done, why = pcall(graph.set, graph, { [param.name] = value })
  if done then return end
  why = tostring(why.message or why)
  fail("--set %s: %s (%s)", text, why:match "bad argument .- %((.*)%)$" or why, what)
end

-- Count of replays, and the options in their order.
local function parse(args)
  local n, opts, i = 1, { graph = {}, set = {}, ["in"] = {}, out = {} }, 1
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
  if type(loaded) ~= "table" then
    return name and fail("--graph %s: the file has one graph, without a name", name) or loaded
  end
  local first = next(loaded)
  if not name and not next(loaded, first) then name = first end
  return loaded[name or false] or
    fail("--graph name expected; the file's graphs: %s", names(loaded))
end

local function play(path, ...)
  local cg = require "cgraphlua"
  local n, opts = parse { ... }
  local read_well, loaded = pcall(cg.load, path)
  if not read_well then fail("%s", loaded.message or loaded) end
  local graph = choose(loaded, opts.graph[1])
  for _, text in ipairs(opts["in"]) do
    local buffer, from = named(graph.inputs, "in", text)
    local bytes = read(from)
    if #bytes ~= buffer.bytes then
      fail("--in %s: the file has %d bytes, the input %d", text, #bytes, buffer.bytes)
    end
    buffer:upload(bytes)
  end
  for _, text in ipairs(opts.set) do set(graph, text) end
  graph:replay(n)
  cg.synchronize()
  for _, text in ipairs(opts.out) do
    local buffer, to = named(graph.outputs, "out", text)
    write(to, buffer:download "string")
  end
end

-- Returns what is wrong with the command, or nothing.
return function(...)
  local done, why = pcall(play, ...)
  if done then return nil end
  return getmetatable(why) == Mistake and why.text or error(why, 0)
end
