-- cg.compare: one piece of work, run in several ways that must agree.
-- Idea: each way begins with memory of its own, so whatever differs afterwards
-- comes of the way.  The operation to blame is found by halving: the graphs of
-- two ways are replayed with all nodes behind one of them off.

local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

local ORDERS = { eager = true, issue = true, data = true }
local OPTIONS = { orders = true, devices = true, rtol = true, atol = true }

local function bad(text)
  core.bad_argument("compare", 2, text)
end

local function read_tolerance(opts, name)
  local value = opts[name] or 0
  if type(value) ~= "number" or not (value >= 0) then
    bad(("option '%s' must be a number that is not negative, got %s"):format(name,
      tostring(value)))
  end
  return value
end

local function read_options(opts)
  if opts ~= nil and type(opts) ~= "table" then
    bad("a table of options expected, got " .. type(opts))
  end
  opts = opts or {}
  for name in next, opts do
    if not OPTIONS[name] then
      bad(("unknown option '%s'; the options are atol, devices, orders, rtol%s"):format(
        tostring(name), core.nearest(tostring(name), OPTIONS)))
    end
  end
  local orders = opts.orders or { "eager", "issue", "data" }
  if type(orders) ~= "table" or #orders == 0 then
    bad "option 'orders' must be a list of \"eager\", \"issue\" and \"data\""
  end
  for _, order in ipairs(orders) do
    if not ORDERS[order] then
      bad(("an order is \"eager\", \"issue\" or \"data\", not %s"):format(tostring(order)))
    end
  end
  local devices = opts.devices
  if devices ~= nil and (type(devices) ~= "table" or #devices == 0) then
    bad "option 'devices' must be a list of names"
  end
  return orders, devices, read_tolerance(opts, "rtol"), read_tolerance(opts, "atol")
end

-- The names of the buffers, in an order that does not change.
local function sorted_names(buffers)
  local names = {}
  for name, buffer in next, buffers do
    if type(buffer) ~= "userdata" or getmetatable(buffer) ~= "cgraphlua.buffer" then
      core.bad_argument("compare", 1, ("must return a table of buffers, but '%s' is a %s"):format(
        tostring(name), type(buffer)))
    end
    names[#names + 1] = name
  end
  if #names == 0 then
    core.bad_argument("compare", 1, "must return the buffers to compare, at least one")
  end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  return names
end

-- What the work leaves: {names, values by name, nodes}.  `count`: of the graph's
-- nodes, that run; nil: all.
local function run(fn, way, count)
  if way.device then core.set_device(way.device) end
  local work, buffers = fn()
  if type(work) ~= "function" or type(buffers) ~= "table" then
    core.bad_argument("compare", 1,
      "must return a function that issues the work, and a table of buffers")
  end
  local result = { names = sorted_names(buffers), values = {} }
  local graph
  if way.order == "eager" then
    work()
  else
    graph = core.capture(work, { order = way.order })
    result.nodes = graph:nodes()
    for i = (count or #result.nodes) + 1, #result.nodes do graph:set_enabled(i, false) end
    graph:replay()
  end
  core.synchronize()
  for _, name in ipairs(result.names) do result.values[name] = buffers[name]:download() end
  if graph then graph:release() end
  return result
end

-- Whether two elements agree: numbers, lists of them (vectors, complex numbers),
-- or booleans.  The difference of an infinity and a number is within no tolerance.
local function alike(p, q, rtol, atol)
  if type(p) == "table" then
    for k = 1, #p do
      if not alike(p[k], q[k], rtol, atol) then return false end
    end
    return true
  end
  if p == q or (p ~= p and q ~= q) then return true end
  local a, b = tonumber(p), tonumber(q) -- large whole numbers are FFI numbers
  return rtol + atol > 0 and a and math.abs(a) < math.huge and
    math.abs(a - b) <= atol + rtol * math.abs(a)
end

local function element_text(value)
  if type(value) ~= "table" then return tostring(value) end
  local list = {}
  for k = 1, #value do list[k] = tostring(value[k]) end
  return "{" .. table.concat(list, ", ") .. "}"
end

-- The first buffer and element that differ, or nil.
local function difference(a, b, rtol, atol)
  for _, name in ipairs(a.names) do
    local x, y = a.values[name], b.values[name]
    if not y or #x ~= #y then return { buffer = name } end
    for i = 1, #x do
      local p, q = x[i], y[i]
      if not alike(p, q, rtol, atol) then
        return { buffer = name, index = i, wanted = p, got = q }
      end
    end
  end
end

local function way_text(way)
  local text = way.order == "eager" and "outside a capture" or "in " .. way.order .. " order"
  return way.device and text .. " on " .. way.device or text
end

-- The first node after which two ways differ; nil when that cannot be told.
local function find_node(fn, reference, way, rtol, atol)
  local function captured(w)
    return w.order == "eager" and { order = "issue", device = w.device } or w
  end
  local a, b = captured(reference), captured(way)
  local nodes
  local function differ(count)
    local x, y = run(fn, a, count), run(fn, b, count)
    nodes = #x.nodes == #y.nodes and y.nodes
    return nodes and difference(x, y, rtol, atol)
  end
  if not differ() then return nil end
  local low, high = 0, #nodes -- same, different
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if differ(middle) then high = middle else low = middle end
  end
  return high, nodes[high]
end

return function(fn, opts)
  if type(fn) ~= "function" then
    core.bad_argument("compare", 1, "a function expected, got " .. type(fn))
  end
  local orders, devices, rtol, atol = read_options(opts)
  local before = core.device().device
  local function finish(ok, ...)
    if devices then core.set_device(before) end
    if not ok then error(..., 0) end
    return ...
  end
  return finish(pcall(function()
    local reference, wanted
    for _, device in ipairs(devices or { false }) do
      for _, order in ipairs(orders) do
        local way = { order = order, device = device or nil }
        local got = run(fn, way)
        if not reference then reference, wanted = way, got end
        local found = difference(wanted, got, rtol, atol)
        if found then
          found.way, found.reference = way_text(way), way_text(reference)
          local text = ("buffer '%s' differs %s from what it is %s"):format(
            tostring(found.buffer), found.way, found.reference)
          if found.index then
            text = ("%s: element %d is %s, not %s"):format(text, found.index,
              element_text(found.got), element_text(found.wanted))
          end
          local told, index, node = pcall(find_node, fn, reference, way, rtol, atol)
          if told and index then
            found.node, found.name, found.file, found.line = index, node.name, node.file, node.line
            text = ("%s; the first operation after which they differ is %s, number %d, at %s:%d")
              :format(text, node.name, index, node.file, node.line)
          end
          return nil, text, found
        end
      end
    end
    return true
  end))
end
