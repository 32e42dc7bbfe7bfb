-- What the arguments of a graphed callable look like: buffers, constants, and
-- tables of them, read once at the capture and compared with at every call.
-- A plan has a node for each argument; plan.leaves lists those of buffers.
-- The comparison makes no tables, and reads the type and shape of a buffer once.

local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

local has_ffi, ffi = pcall(require, "ffi")

local structure = {
  CALL = "graphed callable", -- what messages call the functions made here
}

local weak_keys = { __mode = "k" }

local function is_buffer(x)
  return type(x) == "userdata" and getmetatable(x) == "cgraphlua.buffer"
end

structure.is_buffer = is_buffer

local function shape_text(shape)
  return "{" .. table.concat(shape, ", ") .. "}"
end

local function key_text(key)
  if type(key) == "string" and key:find "^[%a_][%w_]*$" then
    return "." .. key
  end
  return "[" .. (type(key) == "string" and string.format("%q", key) or tostring(key)) .. "]"
end

local function value_text(x)
  if is_buffer(x) then
    return "a buffer"
  elseif type(x) == "string" then
    return #x > 40 and string.format("%q...", x:sub(1, 40)) or string.format("%q", x)
  elseif type(x) == "number" then
    return string.format("%.17g", x)
  end
  return type(x) == "table" and "a table" or tostring(x)
end

-- Numbers before words before the rest, so that the order of a plan is fixed.
local function by_key(a, b)
  local first, second = type(a), type(b)
  if first ~= second then
    return first < second
  elseif first == "number" or first == "string" then
    return a < b
  end
  return tostring(a) < tostring(b)
end

-- The bytes of an FFI struct, array or complex number: its contents, not its
-- identity, are what a capture keeps.
local function content(x)
  if type(x) ~= "cdata" or not has_ffi then
    return nil
  end
  local name = tostring(ffi.typeof(x))
  if name:find "^ctype<complex" then
    x = ffi.new(ffi.typeof("$[1]", ffi.typeof(x)), x)
  elseif tonumber(x) then
    return nil
  end
  local size = ffi.sizeof(x)
  if not size or name:find "%*>$" or name:find "%(%*%)" then
    return nil
  end
  return name .. ffi.string(x, size)
end

local function add(plan, node)
  plan.count = plan.count + 1
  node.index, node.argument = plan.count, plan.argument
  return node
end

--- The address of the buffer that stands where the leaf is; raises when it was
-- released, naming the argument.  purpose: " to capture with", or nothing.
function structure.address(leaf, buffer, operation, purpose)
  local address = core.address(buffer)
  if not address then
    core.released(operation, string.format("argument %d%s%s is a buffer that was released",
      leaf.argument, leaf.path, purpose or ""))
  end
  return address
end

local function read(plan, value, path, within)
  if is_buffer(value) then
    local leaf = add(plan, { kind = "buffer", path = path })
    structure.address(leaf, value, plan.operation, plan.purpose)
    leaf.type, leaf.count, leaf.shape, leaf.bytes = value.type, #value, value.shape, value.bytes
    leaf.known = setmetatable({ [value] = true }, weak_keys)
    plan.leaves[#plan.leaves + 1] = leaf
    return leaf
  elseif type(value) ~= "table" then
    return { kind = "constant", path = path, value = value, content = content(value) }
  end
  if within[value] then
    return nil, path
  end
  within[value] = true
  local node = add(plan, { kind = "table", path = path, children = {} })
  local keys = {}
  for key in next, value do
    keys[#keys + 1] = key
  end
  table.sort(keys, by_key)
  for i, key in ipairs(keys) do
    local child, wrong = read(plan, rawget(value, key), path .. key_text(key), within)
    if not child then
      return nil, wrong
    end
    child.key = key
    node.children[i] = child
  end
  within[value] = nil
  return node
end

--- The plan of n arguments; nil, the argument's number and what is wrong when
-- a table contains itself.  Raises for a buffer that was released, in the
-- words of structure.address.
function structure.read(n, args, operation, purpose)
  local plan = { n = n, count = 0, leaves = {}, operation = operation, purpose = purpose }
  for i = 1, n do
    plan.argument = i
    local node, wrong = read(plan, args[i], "", {})
    if not node then
      return nil, i, wrong == "" and "the table contains itself"
        or wrong .. " is a table that contains itself"
    end
    plan[i] = node
  end
  return plan
end

local function same_shape(a, b)
  if #a ~= #b then
    return false
  end
  for i = 1, #a do
    if a[i] ~= b[i] then
      return false
    end
  end
  return true
end

-- What is different about a value that stands where a buffer stood, or nil.
local function other_buffer(leaf, value)
  if not is_buffer(value) then
    return string.format("captured with a buffer of %s, got %s", leaf.type, value_text(value))
  end
  structure.address(leaf, value, structure.CALL)
  if value.type ~= leaf.type then
    return string.format("captured with elements of %s, got %s", leaf.type, value.type)
  elseif #value ~= leaf.count then
    return string.format("captured with %d elements, got %d", leaf.count, #value)
  elseif not same_shape(value.shape, leaf.shape) then
    return string.format("captured with the shape %s, got %s", shape_text(leaf.shape),
      shape_text(value.shape))
  end
  return nil
end

local function same_constant(node, value)
  local kept = node.value
  if node.content then
    return content(value) == node.content
  end
  if value ~= kept then
    return value ~= value and kept ~= kept
  end
  -- What divides by them tells zeros apart.
  return type(value) ~= "number" or type(kept) ~= "number" or value ~= 0 or 1 / value == 1 / kept
end

local function take(node, value, given)
  local kind = node.kind
  if kind == "buffer" then
    if not node.known[value] then
      if other_buffer(node, value) then
        return false
      end
      node.known[value] = true
    end
  elseif kind == "table" then
    if type(value) ~= "table" then
      return false
    end
    local children, n = node.children, 0
    for i = 1, #children do
      if not take(children[i], rawget(value, children[i].key), given) then
        return false
      end
    end
    for _ in next, value do
      n = n + 1
    end
    if n ~= #children then
      return false
    end
  else
    return same_constant(node, value)
  end
  given[node.index] = value
  return true
end

--- Do the arguments fit the plan?  Puts their buffers and tables into `given`
-- by their nodes' index.
function structure.take(plan, given, ...)
  local n = plan.n
  if select("#", ...) ~= n then
    return false
  end
  for i = 1, n do
    if not take(plan[i], (select(i, ...)), given) then
      return false
    end
  end
  return true
end

-- What is different, with the path to it; nil when nothing is.
local function difference(node, value)
  local prefix = node.path == "" and "" or node.path .. ": "
  if node.kind == "buffer" then
    local wrong = other_buffer(node, value)
    return wrong and prefix .. wrong
  elseif node.kind == "constant" then
    if same_constant(node, value) then
      return nil
    elseif node.content then
      return prefix .. "the FFI object holds other bytes than it was captured with"
    end
    return string.format("%scaptured with %s, got %s; a value that changes belongs in a buffer",
      prefix, value_text(node.value), value_text(value))
  elseif type(value) ~= "table" then
    return string.format("%scaptured with a table, got %s", prefix, value_text(value))
  end
  local known = {}
  for _, child in ipairs(node.children) do
    local wrong = difference(child, rawget(value, child.key))
    if wrong then
      return wrong
    end
    known[child.key] = true
  end
  for key in next, value do
    if not known[key] then
      return string.format("%s%s was not there at the capture", node.path, key_text(key))
    end
  end
  return nil
end

--- For arguments that do not fit: the argument's number, and what is different.
function structure.explain(plan, ...)
  local n = select("#", ...)
  for i = 1, math.min(n, plan.n) do
    local wrong = difference(plan[i], (select(i, ...)))
    if wrong then
      return i, wrong
    end
  end
  return math.min(n, plan.n) + 1,
    string.format("captured with %d argument%s, got %d", plan.n, plan.n == 1 and "" or "s", n)
end

local function replace(node, value, by)
  if node.kind == "buffer" then
    return by(node, value)
  elseif node.kind == "constant" then
    return value
  end
  local copy
  for _, child in ipairs(node.children) do
    local before = rawget(value, child.key)
    local after = replace(child, before, by)
    if not rawequal(before, after) then
      if not copy then
        copy = {}
        for key, x in next, value do
          copy[key] = x
        end
        setmetatable(copy, getmetatable(value))
      end
      rawset(copy, child.key, after)
    end
  end
  return copy or value
end

--- The arguments with by(leaf, buffer) in the place of each buffer; tables in
-- which something was replaced are copies.
function structure.replace(plan, args, by)
  local list = {}
  for i = 1, plan.n do
    list[i] = replace(plan[i], args[i], by)
  end
  return list
end

return structure
