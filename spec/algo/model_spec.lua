-- Random programs of algorithms against a model in plain Lua: every function, of
-- all types, on views of every alignment, with NaNs and infinities placed, run
-- eagerly, in a capture and in bodies, each replayed with other contents.
-- CGRAPHLUA_FUZZ_ALGO=200 runs as many programs, of all types.

local cg = require "cgraphlua"
local algo = require "cgraphlua.algo"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

local signed = { int8 = 8, int16 = 16, int32 = 32, int64 = 64 }
local unsigned = { uint8 = 8, uint16 = 16, uint32 = 32, uint64 = 64 }
local reals = { half = true, bfloat16 = true, float = true, double = true }
local numbers = { "float", "double", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                  "uint64", "half", "bfloat16", "bool" }
local others = { "complex64", "complex128", "float2", "double3", "double4", "uchar3", "short3",
                 "uint3", "longlong2" }
local sizes = { 0, 1, 2, 3, 17, 31, 61, 257, 1009, 1024, 1025, 2048, 2049 }
local large = { 65537, 70001, 131101 }

local seed = 1
local function random(n) -- 0 to n - 1
  seed = seed * 16807 % 2147483647
  return math.floor(seed / 7) % n
end
local function pick(list) return list[random(#list) + 1] end

-- ---- values ----

-- "small": sums of squares and products stay exact; "plain": no NaN, none infinite.
local function value(type, how)
  local roll = random(60)
  if type == "bool" then return roll % 2 == 0 end
  if reals[type] then
    local special = how ~= "plain" and ({ 0 / 0, math.huge, -math.huge, -0.0 })[roll + 1]
    return special or roll % 7 - 3
  end
  local bits = signed[type] or unsigned[type]
  local top = 2 ^ math.min(bits - (signed[type] and 1 or 0), 40)
  if how ~= "small" and roll == 0 then return top - 1 end
  if how ~= "small" and roll == 1 and signed[type] then return -top end
  return signed[type] and roll % 7 - 3 or roll % 4
end

local function number(v)
  if type(v) == "boolean" then return v and 1 or 0 end
  return tonumber(v)
end

-- What a result of the type holds of an exact value.
local function stored(type, v)
  if type == "half" and math.abs(v) > 65519 then return v > 0 and math.huge or -math.huge end
  local bits = signed[type] or unsigned[type]
  if not bits or type == "int64" or type == "uint64" and v >= 0 then return v end
  v = v % 2 ^ bits
  return signed[type] and v >= 2 ^ (bits - 1) and v - 2 ^ bits or v
end

local function check(type, wanted, got, what)
  if #wanted ~= #got then error(("%s: %d elements, not %d"):format(what, #got, #wanted)) end
  local slack = (type == "half" or type == "bfloat16") and 2 ^ -8 or 0
  for i = 1, #wanted do
    local a, b = stored(type, number(wanted[i])), number(got[i])
    if not (a == b or a ~= a and b ~= b or math.abs(a - b) <= slack * math.abs(a)
            and math.abs(a) < math.huge) then
      error(("%s, element %d: %s, not %s"):format(what, i, tostring(b), tostring(a)))
    end
  end
end

-- ---- buffers: views with a guard on both sides ----

local function place(type, n, shape)
  local lead = random(4) + 1
  local whole = cg.zeros(type, lead + n + 3)
  local own = { type = type, n = n }
  own.view = n > 0 and whole:view(lead + 1, shape or n) or cg.buffer(type, shape or 0)
  local size = whole.bytes / #whole
  -- The elements as strings of bytes; nothing around them was written.
  function own.bytes()
    local all, list = whole:download "string", {}
    local around = all:sub(1, lead * size) .. all:sub((lead + n) * size + 1)
    assert(n == 0 or around == ("\0"):rep(#around), "elements beside the result were written")
    for i = 1, n do list[i] = all:sub((lead + i - 1) * size + 1, (lead + i) * size) end
    return list
  end
  function own.list()
    own.bytes()
    return n > 0 and own.view:download() or {}
  end
  function own.refill(how)
    own.values = {}
    if reals[type] or signed[type] or unsigned[type] or type == "bool" then
      for i = 1, n do own.values[i] = value(type, how) end
      if n > 0 then own.view:upload(own.values) end
    else
      local bytes = {}
      for i = 1, n * size do bytes[i] = string.char(random(256)) end
      if n > 0 then own.view:upload(table.concat(bytes)) end
    end
  end
  return own
end

-- ---- the functions: each makes { refill, issue, check } ----

local makers = {}

-- a before b, as a sort has them.
local function less(a, b)
  if a ~= a or b ~= b then return a == a end
  return a < b
end

local function equal(a, b) return a == b or a ~= a and b ~= b end

local function reduced(name, list, with)
  local e = { sum = 0, product = 1, any = false, all = true, dot = 0, norm = 0 }
  for i, v in ipairs(list) do
    local x = number(v)
    e.sum, e.product, e.norm = e.sum + x, e.product * x, e.norm + x * x
    e.dot = with and e.dot + x * number(with[i])
    e.any, e.all = e.any or x ~= 0, e.all and x ~= 0
    local first = i == 1
    if first or e.min == e.min and (x ~= x or x < e.min) then e.min, e.argmin = x, i - 1 end
    if first or e.max == e.max and (x ~= x or x > e.max) then e.max, e.argmax = x, i - 1 end
  end
  e.norm = math.sqrt(e.norm)
  return e[name]
end

local function wide(type)
  return reals[type] and type or unsigned[type] and "uint64" or "int64"
end

local function result_type(name, type)
  if name == "min" or name == "max" then return type end
  if name == "argmin" or name == "argmax" then return "int64" end
  if name == "any" or name == "all" then return "bool" end
  return name == "norm" and not reals[type] and "double" or wide(type)
end

function makers.reduce(type, n)
  local name = pick { "sum", "product", "min", "max", "argmin", "argmax", "any", "all", "dot",
                      "norm" }
  local of = { outer = 1, n = n, inner = 1 }
  local shape, axis = { n }, nil
  if random(2) == 0 then
    of.outer, of.inner, axis = random(4), pick { 1, 1, 2, 5, 67 }, 2
    of.n = n > 1009 and 70 or n
    shape = { of.outer, of.n, of.inner }
  end
  if name:find "m[ai][nx]" then
    of.n = math.max(of.n, 1)
    shape[axis or 1] = of.n
  end
  local count, results = of.outer * of.n * of.inner, of.outer * of.inner
  local x, y = place(type, count, shape), name == "dot" and place(type, count, shape)
  local out = place(result_type(name, type), results)
  local call = { what = ("%s of %s {%s}"):format(name, type, table.concat(shape, ", ")) }
  function call.refill()
    for _, b in ipairs { x, y or nil } do
      b.refill((name == "dot" or name == "norm" or name == "sum") and "small" or nil)
    end
    if name == "product" then
      for i, v in ipairs(x.values) do
        if v ~= true and v ~= false and i % 97 ~= 1 and v == v and math.abs(v) > 1 then
          x.values[i] = 1
        end
      end
      if count > 0 then x.view:upload(x.values) end
    end
  end
  function call.issue()
    algo.reduce(x.view, name, { axis = axis, with = y and y.view or nil, out = out.view })
  end
  function call.check(what)
    local wanted = {}
    for r = 0, results - 1 do
      local list, with = {}, y and {}
      for j = 0, of.n - 1 do
        local at = (math.floor(r / of.inner) * of.n + j) * of.inner + r % of.inner + 1
        list[j + 1] = x.values[at]
        if y then with[j + 1] = y.values[at] end
      end
      wanted[r + 1] = reduced(name, list, with)
    end
    check(out.type, wanted, out.list(), what)
  end
  return call
end

function makers.scan(type, n)
  local kind, exclusive = pick { "sum", "min", "max" }, random(2) == 0
  local to = type
  if kind == "sum" and not reals[type] then
    to = random(2) == 0 and wide(type) or pick { "int8", "uint16", "int32", "uint32", "uint64" }
  end
  local x, out = place(type, n), place(to, n)
  local call = { what = ("scan, %s of %d %s%s to %s"):format(kind, n, type,
    exclusive and ", exclusive" or "", to) }
  function call.refill() x.refill "small" end
  function call.issue() algo.scan(x.view, kind, { exclusive = exclusive, out = out.view }) end
  function call.check(what)
    local wanted, sofar = {}, kind == "sum" and 0 or nil
    for i, v in ipairs(x.values) do
      v = number(v)
      local before = sofar
      if kind == "sum" then
        sofar = sofar + v
      elseif not sofar or sofar == sofar and (v ~= v or kind == "min" and v < sofar or
          kind == "max" and v > sofar) then
        sofar = v
      end
      wanted[i] = not exclusive and sofar or before
    end
    local got = out.list()
    if exclusive and kind ~= "sum" and n > 0 then -- what every number beats
      local bits = signed[type] or unsigned[type]
      local worst = reals[type] and math.huge or type == "bool" and 1 or
        signed[type] and 2 ^ (bits - 1) - 1 or 2 ^ bits - 1
      if kind == "max" then
        worst = reals[type] and -math.huge or signed[type] and -worst - 1 or 0
      end
      wanted[1] = got[1]
      assert(number(got[1]) == worst, what .. ": it begins with " .. tostring(got[1]))
    end
    check(to, wanted, got, what)
  end
  return call
end

function makers.sort_by_key(type, n)
  local of, descending, alone = pick(numbers), random(2) == 0, random(3) == 0
  local x, values = place(type, n), place(of, n)
  local out, out_values = place(type, n), place(of, n)
  local call = { what = ("%s of %d %s%s with %s"):format(alone and "sort" or "sort_by_key", n, type,
    descending and ", descending" or "", of) }
  function call.refill()
    x.refill()
    values.refill()
  end
  function call.issue()
    if alone then return algo.sort(x.view, { descending = descending, out = out.view }) end
    algo.sort_by_key(x.view, values.view,
      { descending = descending, out = out.view, out_values = out_values.view })
  end
  function call.check(what)
    local order, keys, moved = {}, {}, {}
    for i = 1, n do order[i] = i end
    table.sort(order, function(i, j)
      local a, b = number(x.values[i]), number(x.values[j])
      if equal(a, b) then return i < j end
      return less(a, b) == not descending
    end)
    for i, from in ipairs(order) do
      keys[i], moved[i] = x.values[from], values.values[from]
    end
    check(type, keys, out.list(), what)
    if not alone then check(of, moved, out_values.list(), what .. ", values") end
  end
  return call
end

function makers.unique(type, n)
  local x, out, count = place(type, n), place(type, n), place("int64", 1)
  local call = { what = ("unique of %d %s"):format(n, type) }
  call.refill = x.refill
  function call.issue() algo.unique(x.view, { out = out.view, count = count.view }) end
  function call.check(what)
    local list, different = {}, {}
    for i, v in ipairs(x.values) do list[i] = number(v) end
    table.sort(list, less)
    for i, v in ipairs(list) do
      if i == 1 or not equal(v, list[i - 1]) then different[#different + 1] = v end
    end
    check("int64", { #different }, count.list(), what .. ", their number")
    local got = out.list()
    for i = #got, #different + 1, -1 do got[i] = nil end
    check(type, different, got, what)
  end
  return call
end

function makers.select(type, n)
  local x, flags, out, count = place(type, n), place("bool", n), place(type, n), place("int64", 1)
  local call = { what = ("select of %d %s"):format(n, type) }
  function call.refill()
    x.refill()
    flags.refill()
  end
  function call.issue() algo.select(x.view, flags.view, { out = out.view, count = count.view }) end
  function call.check(what)
    local from, got, kept = x.bytes(), out.bytes(), 0
    for i, flag in ipairs(flags.values) do
      if flag then
        kept = kept + 1
        assert(from[i] == got[kept], ("%s, element %d"):format(what, kept))
      end
    end
    check("int64", { kept }, count.list(), what .. ", their number")
  end
  return call
end

-- Indices, some of which point to no element; all different when `once`.
local function indices(n, range, once)
  local own = place(pick { "int32", "uint32", "int64", "uint64" }, n)
  function own.refill()
    local list, first = {}, random(range + 1)
    for i = 1, n do
      local at = once and (first + 7919 * i) % 131111 or random(range + 2)
      list[i] = random(9) == 0 and signed[own.type] and -1 - at or at
    end
    own.values = list
    if n > 0 then own.view:upload(list) end
  end
  return own
end

function makers.gather(type, n)
  local range = pick { 0, 1, n, 53 }
  local x, at, out = place(type, range), indices(n, range), place(type, n)
  local call = { what = ("gather %d of %d %s by %s"):format(n, range, type, at.type) }
  function call.refill()
    x.refill()
    at.refill()
  end
  function call.issue() algo.gather(x.view, at.view, { out = out.view }) end
  function call.check(what)
    local from, got = x.bytes(), out.bytes()
    for i, index in ipairs(at.values) do
      local wanted = from[index + 1] or ("\0"):rep(#got[i])
      assert(wanted == got[i], ("%s, element %d"):format(what, i))
    end
  end
  return call
end

function makers.scatter(type, n)
  local range = pick { 0, 1, n, 53 }
  local x, at, out = place(type, n), indices(n, range, true), place(type, range)
  local call = { what = ("scatter %d to %d %s by %s"):format(n, range, type, at.type) }
  function call.refill()
    x.refill()
    at.refill()
    out.refill()
    call.before = out.bytes()
  end
  function call.issue() algo.scatter(x.view, at.view, out.view) end
  function call.check(what)
    local from, got, wanted = x.bytes(), out.bytes(), call.before
    for i, index in ipairs(at.values) do
      if index >= 0 and index < range then wanted[index + 1] = from[i] end
    end
    for i = 1, range do assert(wanted[i] == got[i], ("%s, element %d"):format(what, i)) end
  end
  return call
end

function makers.transpose(type, n)
  local rows = pick { 1, 2, 31, 33, 257 }
  local columns = math.floor(n / rows)
  local x = place(type, rows * columns, { rows, columns })
  local out = place(type, rows * columns, { columns, rows })
  local call = { what = ("transpose of %d x %d %s"):format(rows, columns, type), refill = x.refill }
  function call.issue() algo.transpose(x.view, { out = out.view }) end
  function call.check(what)
    local from, got = x.bytes(), out.bytes()
    for i = 0, rows - 1 do
      for j = 0, columns - 1 do
        assert(from[i * columns + j + 1] == got[j * rows + i + 1],
          ("%s, row %d, column %d"):format(what, i, j))
      end
    end
  end
  return call
end

function makers.histogram(type, n)
  local low, high, bins = pick { -4, -1, 0 }, pick { 1, 3, 4 }, pick { 1, 4, 16, 1024 }
  local x, out = place(type, n), place("int64", bins)
  local call = { what = ("histogram of %d %s, %d bins from %d to %d"):format(n, type, bins, low,
    high), refill = x.refill }
  function call.issue() algo.histogram(x.view, bins, low, high, { out = out.view }) end
  function call.check(what)
    local wanted = {}
    for i = 1, bins do wanted[i] = 0 end
    for _, v in ipairs(x.values) do
      v = number(v)
      if v >= low and v <= high then
        -- The bin whose edges low + b (high - low) / bins are around it.
        local b = math.min(math.floor((v - low) * bins / (high - low)), bins - 1)
        wanted[b + 1] = wanted[b + 1] + 1
      end
    end
    check("int64", wanted, out.list(), what)
  end
  return call
end

-- An expression as text and as a function of the elements and the index.
local function expression(depth)
  local roll = depth > 0 and random(9) or random(4) + 9
  if roll == 9 then return "x", function(x) return x end end
  if roll == 10 then return "y", function(_, y) return y end end
  if roll == 11 then return "2", function() return 2 end end
  if roll == 12 then return "int(i % 5)", function(_, _, i) return i % 5 end end
  local s, f = expression(depth - 1)
  local t, g = expression(depth - 1)
  if roll == 0 then
    local u, h = expression(depth - 1)
    return ("(%s < %s ? %s : %s)"):format(s, t, u, s), function(...)
      if f(...) < g(...) then return h(...) end
      return f(...)
    end
  elseif roll <= 3 then
    return ("(%s - %s)"):format(s, t), function(...) return f(...) - g(...) end
  elseif roll <= 5 then
    return ("(%s * %s)"):format(s, t), function(...) return f(...) * g(...) end
  elseif roll == 6 then
    return ("min(%s, %s)"):format(s, t), function(...)
      local a, b = f(...), g(...)
      return (a < b or a ~= a) and a or b
    end
  elseif roll == 7 then
    return ("max(%s, %s)"):format(s, t), function(...)
      local a, b = f(...), g(...)
      return (a > b or a ~= a) and a or b
    end
  end
  return ("abs(%s)"):format(s), function(...) return math.abs(f(...)) end
end

-- Of integers and bool that fit int, in whose arithmetic C computes.
function makers.map(type, n)
  local fits = { float = true, double = true, half = true, bfloat16 = true, int8 = true,
                 uint8 = true, int16 = true, uint16 = true, int32 = true, bool = true }
  type = fits[type] and type or "int32"
  local to = reals[type] and type or pick { "int32", "double", "int64" }
  local x, y, out = place(type, n), place(type, random(4) == 0 and 1 or n), place(to, n)
  local text, fn = expression(2)
  local call = { what = ("map %s of %d %s to %s"):format(text, n, type, to) }
  function call.refill()
    x.refill "small"
    y.refill "small"
  end
  function call.issue() algo.map(text, { x = x.view, y = y.view }, out.view) end
  function call.check(what)
    local wanted = {}
    for i = 1, n do
      local a, b = number(x.values[i]), number(y.values[y.n == 1 and 1 or i])
      wanted[i] = fn(a, b, i - 1)
    end
    check(to, wanted, out.list(), what)
  end
  return call
end

-- ---- programs ----

local moving = { "gather", "scatter", "select", "transpose" }
local all = { "reduce", "reduce", "scan", "sort_by_key", "unique", "select", "gather", "scatter",
              "transpose", "histogram", "map" }

local function call_make(types, most)
  local name, n = pick(all), pick(random(12) == 0 and large or sizes)
  local type = pick(types)
  for _, m in ipairs(moving) do
    if m == name and random(2) == 0 then type = pick(others) end
  end
  return makers[name](type, math.min(n, most))
end

local function program_run(length, types)
  local calls, flag, turns = {}, cg.from({ true }, "bool"), cg.full("int32", 1, 1)
  for i = 1, length do calls[i] = call_make(types, 131101) end
  local function refill() for _, c in ipairs(calls) do c.refill() end end
  local function issue() for _, c in ipairs(calls) do c.issue() end end
  local function check_all(how)
    for _, c in ipairs(calls) do c.check(c.what .. ", " .. how) end
  end
  refill()
  issue()
  check_all "eager"
  local how = pick { "captured", "in data order", "in a branch", "in a loop" }
  local body = issue
  if how == "in a branch" then body = function() cg.when(flag, issue) end end
  if how == "in a loop" then body = function() cg.times(turns, issue, { max = 2 }) end end
  local g = cg.capture(body, { order = how == "in data order" and "data" or "issue" })
  for turn = 1, 2 do
    refill()
    g:replay()
    check_all(how .. ", replay " .. turn)
  end
end

describe("algorithms", function()
  teardown(device.nothing_alive)

  -- A kernel is compiled for each function and type: few of them by default.
  local rounds = tonumber(os.getenv "CGRAPHLUA_FUZZ_ALGO" or "")
  for round = 1, rounds or 3 do
    it("do what the model does, program " .. round, function()
      seed = 7919 * round
      program_run(rounds and 6 or 8, numbers)
    end)
  end
end)
