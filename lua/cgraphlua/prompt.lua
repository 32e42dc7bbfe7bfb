-- What the program's prompt has beyond Lua: the module as `cg`, `help`, `exit`, a
-- print that shows what is in a table, and the completion of names.

local cg = require "cgraphlua"

local prompt = {}

local MOST = 32 -- entries of a table that are shown
local DEEPEST = 3 -- tables in tables
local WIDTH = 78

local plain_print = print

-- Values ---------------------------------------------------------------------

local function is_name(x)
  return type(x) == "string" and x:find "^[%a_][%w_]*$" ~= nil
end

local function by_key(a, b)
  if type(a) ~= type(b) then
    return type(a) < type(b)
  elseif type(a) == "number" or type(a) == "string" then
    return a < b
  end
  return tostring(a) < tostring(b)
end

local show

-- The entries of a table as texts, a list's values first; at most MOST.
local function entries(t, depth, within)
  local list, n = {}, #t
  for i = 1, math.min(n, MOST) do
    list[i] = show(rawget(t, i), depth, within)
  end
  local keys, count = {}, n
  for key in next, t do
    if not (type(key) == "number" and key >= 1 and key <= n and key % 1 == 0) then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, by_key)
  count = count + #keys
  for i = 1, math.min(#keys, MOST - #list) do
    local key = keys[i]
    list[#list + 1] = (is_name(key) and key or "[" .. show(key, DEEPEST, within) .. "]") .. " = "
      .. show(rawget(t, key), depth, within)
  end
  if count > #list then
    list[#list + 1] = string.format("... (%d in all)", count)
  end
  return list
end

local function show_table(t, depth, within)
  if within[t] or depth >= DEEPEST then
    return "{...}"
  end
  within[t] = true
  local list = entries(t, depth + 1, within)
  within[t] = nil
  local line = "{" .. table.concat(list, ", ") .. "}"
  if #line + 2 * depth <= WIDTH or #t > 0 then
    return line
  end
  local indent = ("  "):rep(depth + 1)
  return "{\n" .. indent .. table.concat(list, ",\n" .. indent) .. "\n" .. indent:sub(3) .. "}"
end

function show(value, depth, within)
  if type(value) == "string" and depth > 0 then
    return string.format("%q", value)
  elseif type(value) ~= "table" then
    return tostring(value)
  end
  local meta = getmetatable(value)
  if type(meta) == "table" and rawget(meta, "__tostring") or meta == "cgraphlua.error" then
    return tostring(value)
  end
  return show_table(value, depth, within)
end

--- What the prompt shows for a value.
function prompt.text(value)
  return show(value, 0, {})
end

-- help and exit --------------------------------------------------------------

local help_text = [==[
cgraphlua %s: Lua that captures and replays CUDA graphs.  cg is the module.
  cg.devices()                         the devices of this machine
  x = cg.zeros("float", 8)             memory on the device
  k = cg.kernel [=[extern "C" __global__ void add(float *x, float a) {
    x[threadIdx.x] += a;
  }]=]                                 a kernel in CUDA C
  k:launch(1, 8, x, 0.5)               runs it: blocks, threads, arguments
  g = cg.capture(function() k:launch(1, 8, x, 1) end)
  g:replay(10)                         runs what was captured
  x:download()                         the elements
help(x) lists what an object has.  Tab completes names.  A local lasts for its
line only.  Ctrl-C stops what runs; exit, or Ctrl-D, ends the program.
The manual is doc/manual.md.]==]

local function sorted_names(t, wanted)
  local list = {}
  for key, value in next, t do
    if is_name(key) and wanted(key, value) then
      list[#list + 1] = key
    end
  end
  table.sort(list)
  return list
end

local function any()
  return true
end

-- The names after an object: fields, and methods.
local function names_of(value)
  local meta = debug.getmetatable(value)
  if type(value) == "userdata" and meta and type(meta.methods) == "table" then
    return sorted_names(meta.fields or {}, any), sorted_names(meta.methods, any)
  end
  local index = type(meta) == "table" and rawget(meta, "__index")
  return type(value) == "table" and sorted_names(value, any) or {},
    type(index) == "table" and sorted_names(index, any) or {}
end

-- Words in lines of the terminal's width.
local function folded(words)
  local lines, line = {}, " "
  for _, word in ipairs(words) do
    if #line + #word + 1 > WIDTH then
      lines[#lines + 1], line = line, " "
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function help_on(_, ...)
  if select("#", ...) == 0 then
    plain_print(help_text:format(cg.version))
    return
  end
  local value = ...
  local fields, methods = names_of(value)
  plain_print(tostring(value))
  if #fields > 0 then
    plain_print("fields:\n" .. folded(fields))
  end
  if #methods > 0 then
    plain_print("methods, called with ':':\n" .. folded(methods))
  end
end

local help = setmetatable({}, {
  __call = help_on,
  __tostring = function()
    return help_text:format(cg.version)
  end,
})

local exit = setmetatable({}, {
  __call = function(_, status)
    os.exit(status)
  end,
  __tostring = function()
    return "exit ends the program"
  end,
})

-- print, which knows that exit alone is a wish.
local function print_values(...)
  local texts, n = { ... }, select("#", ...)
  for i = 1, n do
    if rawequal(texts[i], exit) then
      os.exit(0)
    end
    texts[i] = prompt.text(texts[i])
  end
  plain_print(unpack(texts, 1, n))
end

-- Completion -----------------------------------------------------------------

local keywords = {}
for word in ("and break do else elseif end false for function goto if in local nil not or repeat "
  .. "return then true until while"):gmatch "%a+" do
  keywords[word] = true
end

-- The value that a path of names means, without calling anything.
local function value_of(path)
  local value = _G
  for name in path:gmatch "[^.:]+" do
    if type(value) ~= "table" then
      return nil
    end
    value = rawget(value, name)
  end
  return value
end

-- The names that may stand after `path`, and what each means.
local function candidates(path, separator)
  local found = {}
  local function add(t, only_functions)
    for name, value in next, type(t) == "table" and t or {} do
      if is_name(name) and (not only_functions or type(value) == "function") then
        found[name] = value
      end
    end
  end
  if path == "" then
    add(_G)
    add(keywords)
    return found
  end
  local value = value_of(path)
  local meta = debug.getmetatable(value)
  if type(value) == "table" then
    add(value, separator == ":")
  end
  if type(meta) == "table" then
    add(rawget(meta, "__index"), separator == ":")
    if type(value) == "userdata" then
      add(separator == ":" and meta.methods or meta.fields)
    end
  end
  return found
end

local function common_start(names)
  local start = names[1]
  for i = 2, #names do
    while names[i]:sub(1, #start) ~= start do
      start = start:sub(1, -2)
    end
  end
  return start
end

--- For the text before the cursor: what to insert, and the names to choose from
-- when that leaves a choice.
function prompt.complete(before)
  if not before:find "%S" then
    return "  "
  end
  local path, separator, start = before:match "([%a_][%w_.:]*)([.:])([%w_]*)$"
  if not path then
    path, separator, start = "", "", before:match "[%a_][%w_]*$" or ""
    if start == "" then
      return ""
    end
  end
  local found = candidates(path, separator)
  local names = sorted_names(found, function(name)
    return name:sub(1, #start) == start
  end)
  if #names == 0 then
    return ""
  elseif #names == 1 then
    return names[1]:sub(#start + 1) .. (type(found[names[1]]) == "function" and "(" or "")
  end
  local more = common_start(names):sub(#start + 1)
  return more, more == "" and folded(names) or nil
end

--- Puts the prompt's names where a script has none of its own.
function prompt.start()
  for name, value in next, { cg = cg, help = help, exit = exit, quit = exit } do
    if rawget(_G, name) == nil then
      rawset(_G, name, value)
    end
  end
  if print == plain_print then
    rawset(_G, "print", print_values)
  end
end

return prompt
