-- Functions that run as graphs: captured once, replayed at every call.
-- A captured function reads its arguments where they were at the capture, the
-- static buffers.  A call with buffers at other addresses copies them there
-- first, and copies back those that the graph writes to, so that the caller's
-- buffers hold what the function itself would have left in them.
-- Two ways to get one: make_graphed_callables captures at once, on samples,
-- which are the static buffers from then on; graphed captures at the first
-- call with the buffers of that call, and gives an argument a static buffer of
-- its own as soon as it comes with another address, so that no buffer of the
-- caller is written over.

local core = require "cgraphlua.core"
local structure = require "cgraphlua.structure"

core.hide() -- errors name the script's line

local bad_argument = core.bad_argument
local callables = {}

local GRAPHED, MAKE, CALL = "graphed", "make_graphed_callables", structure.CALL
local MODES = { default = true, global = true, thread_local = true, relaxed = true }

local weak_values = { __mode = "v" }

local function pack(...)
  return { n = select("#", ...), ... }
end

local function is_callable(x)
  if type(x) == "function" then
    return true
  end
  local meta = type(x) == "table" and getmetatable(x)
  return type(meta) == "table" and meta.__call ~= nil
end

-- Options ------------------------------------------------------------------

local function is_count(x, highest)
  return type(x) == "number" and x >= 0 and x <= highest and x % 1 == 0
end

-- The options, checked, with defaults for those of `numbers` that are absent.
local function read_options(operation, index, opts, numbers)
  local read = {}
  for name, default in next, numbers do
    read[name] = default
  end
  if opts == nil then
    return read
  elseif type(opts) ~= "table" then
    bad_argument(operation, index, "a table of options expected, got " .. type(opts))
  end
  for name, value in next, opts do
    if numbers[name] then
      if not is_count(value, 1e6) then
        bad_argument(operation, index, string.format(
          "option '%s' must be a whole number from 0 to 1000000, got %s", name, tostring(value)))
      end
    elseif name == "pool" then
      if type(value) ~= "userdata" or getmetatable(value) ~= "cgraphlua.pool" then
        bad_argument(operation, index, "option 'pool' must be a pool, got " .. type(value))
      end
    elseif name == "keep" then
      if value ~= "error" then
        bad_argument(operation, index, "option 'keep' must be \"error\", got " .. tostring(value))
      end
    elseif name == "capture_error_mode" then
      if not MODES[value] then
        bad_argument(operation, index, "option 'capture_error_mode' must be one of default, "
          .. "global, thread_local, relaxed, got " .. tostring(value))
      end
    else
      local known, set = { "capture_error_mode", "keep", "pool" }, {}
      for other in next, numbers do
        known[#known + 1] = other
      end
      table.sort(known)
      for _, other in ipairs(known) do
        set[other] = true
      end
      bad_argument(operation, index, string.format("unknown option %s; the options are %s%s",
        type(name) == "string" and string.format("%q", name) or tostring(name),
        table.concat(known, ", "), core.nearest(tostring(name), set)))
    end
    read[name] = value
  end
  return read
end

-- Results ------------------------------------------------------------------

-- How to return a result at every call: an argument as the caller's own, a
-- table as a new table, a buffer as a new view with `keep`, any other value as it
-- is.  A view holds a buffer's memory even when the script releases the buffer.
local function read_result(state, value, arguments, tables)
  local index = arguments[value]
  if index then
    return { kind = "argument", index = index }
  elseif structure.is_buffer(value) then
    state.held[#state.held + 1] = value:view(1)
    return { kind = state.keep and "result" or "value", value = value }
  elseif type(value) ~= "table" then
    return { kind = "value", value = value }
  elseif tables[value] then
    return tables[value]
  end
  local node = { kind = "table", fields = {}, meta = getmetatable(value) }
  tables[value], state.has_tables = node, true
  for key, x in next, value do
    node.fields[key] = read_result(state, x, arguments, tables)
  end
  return node
end

local function produce(node, given, made)
  if node.kind == "argument" then
    return given[node.index]
  elseif node.kind == "value" then
    return node.value
  elseif node.kind == "result" then
    node.last = core.renew(node.value, node.last)
    return node.last
  elseif made[node] then
    return made[node]
  end
  local t = {}
  made[node] = t
  for key, field in next, node.fields do
    t[key] = produce(field, given, made)
  end
  return setmetatable(t, node.meta)
end

local function emptied(out, ...)
  for i = 1, select("#", ...) do
    out[i] = nil
  end
  return ...
end

-- The results of a call, without a new table unless there are tables in them.
local function results(state)
  local nodes, out = state.results, state.out
  local made = state.has_tables and {}
  for i = 1, nodes.n do
    out[i] = produce(nodes[i], state.given, made)
  end
  return emptied(out, unpack(out, 1, nodes.n))
end

-- Captures -----------------------------------------------------------------

local function meet(a, a_bytes, b, b_bytes)
  return a_bytes > 0 and b_bytes > 0 and a < b + b_bytes and b < a + a_bytes
end

-- Notes which pairs of static buffers share memory, and how far apart.
local function find_overlaps(leaves)
  local overlaps = {}
  for i = 2, #leaves do
    for j = 1, i - 1 do
      local a, b = leaves[i], leaves[j]
      if meet(a.address, a.bytes, b.address, b.bytes) then
        overlaps[#overlaps + 1] = { a = a, b = b, apart = a.address - b.address }
        a.shares = a.shares or {}
        a.shares[b] = true
        b.shares = b.shares or {}
        b.shares[a] = true
      end
    end
  end
  return overlaps
end

-- Puts buffers of the graph in the place of those in `own`, a single buffer for
-- all appearances of the same memory.
local function own_arguments(plan, args, own)
  local made = {}
  return structure.replace(plan, args, function(leaf, buffer)
    if not own[leaf] then
      return buffer
    end
    local key = string.format("%.0f %s %d", core.address(buffer), leaf.type, leaf.count)
    made[key] = made[key] or core.buffer(leaf.type, leaf.shape)
    return made[key]
  end)
end

-- Captures fn(args) as a state to call: `own` is the set of leaves that get
-- static buffers of the graph; with `keep`, a result of a former call raises.
local function capture(fn, plan, args, own, opts, keep)
  local used = args
  local captured = pack(core.capture(function()
    if next(own) then
      used = own_arguments(plan, args, own)
    end
    return fn(unpack(used, 1, plan.n))
  end, opts))
  local state = {
    plan = plan, graph = captured[1], own = own, held = {}, writes = false, keep = keep,
    given = setmetatable({}, weak_values), out = {}, has_tables = false,
  }
  local arguments, tables = {}, {}
  assert(structure.take(plan, state.given, unpack(used, 1, plan.n)))
  for index, value in next, state.given do
    arguments[value] = index
  end
  for _, leaf in ipairs(plan.leaves) do
    local buffer = state.given[leaf.index]
    leaf.address = structure.address(leaf, buffer, CALL)
    leaf.static, leaf.shares = buffer:view(1), nil
    leaf.written = state.graph:writes(buffer)
    state.writes = state.writes or leaf.written
  end
  state.overlaps = find_overlaps(plan.leaves)
  state.results = { n = captured.n - 1 }
  for i = 2, captured.n do
    state.results[i - 1] = read_result(state, captured[i], arguments, tables)
  end
  return state
end

-- Calls --------------------------------------------------------------------

-- The addresses of the buffers given now, and how many are not static buffers.
local function locate(state)
  local given, leaves, moved = state.given, state.plan.leaves, 0
  for i = 1, #leaves do
    local leaf = leaves[i]
    local address = structure.address(leaf, given[leaf.index], CALL)
    leaf.at = leaf.bytes > 0 and address or leaf.address
    if leaf.at ~= leaf.address then
      moved = moved + 1
    end
  end
  return moved
end

-- Buffers that share memory where those of the capture did not, or do not
-- where those did: then the graph does not do what the function would.
-- Returns the leaf and what is wrong with it.
local function other_sharing(state)
  for _, pair in ipairs(state.overlaps) do
    if pair.a.at - pair.b.at ~= pair.apart then
      return pair.a, string.format("it shared memory with argument %d at the capture, "
        .. "and does not in the same way now", pair.b.argument)
    end
  end
  local leaves = state.plan.leaves
  for i = 1, state.writes and #leaves or 0 do
    local a = leaves[i]
    for j = 1, a.at ~= a.address and #leaves or 0 do
      local b = leaves[j]
      if i ~= j and (a.written or b.written) and not (a.shares and a.shares[b])
        and meet(a.at, a.bytes, b.at, b.bytes) then
        return a, string.format("it shares memory with argument %d, which is written to, "
          .. "and did not at the capture", b.argument)
      end
    end
  end
  return nil
end

-- Would copying into the static buffers change what is still to be copied?
local function needs_staging(state)
  local leaves = state.plan.leaves
  for i = 1, #leaves do
    local a = leaves[i]
    for j = 1, a.at ~= a.address and #leaves or 0 do
      local b = leaves[j]
      if b.at ~= b.address and meet(a.at, a.bytes, b.address, b.bytes) then
        return true
      end
    end
  end
  return false
end

-- Some of the buffers given are static buffers of other arguments, as when two
-- are swapped: all go through copies, and all are put back.
local function replay_staged(state, moved)
  local given, copies = state.given, {}
  for i, leaf in ipairs(moved) do
    copies[i] = core.buffer(leaf.type, leaf.count):copy(given[leaf.index]:view(1))
  end
  for i, leaf in ipairs(moved) do
    leaf.static:copy(copies[i])
  end
  state.graph:replay()
  for i, leaf in ipairs(moved) do
    if leaf.written then
      copies[i]:copy(leaf.static)
    end
  end
  for i, leaf in ipairs(moved) do
    given[leaf.index]:copy(copies[i])
    copies[i]:release()
  end
end

local function replay_with_copies(state)
  local given, leaves = state.given, state.plan.leaves
  if needs_staging(state) then
    local moved = {}
    for _, leaf in ipairs(leaves) do
      if leaf.at ~= leaf.address then
        moved[#moved + 1] = leaf
      end
    end
    return replay_staged(state, moved)
  end
  for i = 1, #leaves do
    local leaf = leaves[i]
    if leaf.at ~= leaf.address then
      leaf.static:copy(given[leaf.index])
    end
  end
  state.graph:replay()
  for i = 1, state.writes and #leaves or 0 do
    local leaf = leaves[i]
    if leaf.written and leaf.at ~= leaf.address then
      given[leaf.index]:copy(leaf.static)
    end
  end
end

-- make_graphed_callables ---------------------------------------------------

local function new_callable(state)
  return function(...)
    if not structure.take(state.plan, state.given, ...) then
      bad_argument(CALL, structure.explain(state.plan, ...))
    end
    if locate(state) == 0 then
      state.graph:replay()
    else
      local leaf, wrong = other_sharing(state)
      if leaf then
        bad_argument(CALL, leaf.argument, leaf.path .. (leaf.path == "" and "" or ": ") .. wrong)
      end
      replay_with_copies(state)
    end
    return results(state)
  end
end

-- A function with its samples, or a list of both, as lists.
local function read_jobs(fns, samples)
  if is_callable(fns) then
    if type(samples) ~= "table" then
      bad_argument(MAKE, 2, "the arguments to capture with expected, as a list, got "
        .. type(samples))
    end
    return { fns }, { samples }, true
  elseif type(fns) ~= "table" or #fns == 0 then
    bad_argument(MAKE, 1, "a function or a list of functions expected, got "
      .. (type(fns) == "table" and "an empty list" or type(fns)))
  elseif type(samples) ~= "table" or #samples ~= #fns then
    bad_argument(MAKE, 2, string.format("a list of %d lists of arguments expected, got %s", #fns,
      type(samples) == "table" and #samples or type(samples)))
  end
  for i, fn in ipairs(fns) do
    if not is_callable(fn) then
      bad_argument(MAKE, 1, string.format("function %d of the list is a %s", i, type(fn)))
    elseif type(samples[i]) ~= "table" then
      bad_argument(MAKE, 2, string.format("the arguments of function %d must be a list, got %s", i,
        type(samples[i])))
    end
  end
  return fns, samples, false
end

local function read_plan(args, operation, index)
  local plan, argument, wrong = structure.read(args.n or #args, args, operation,
    index and " to capture with")
  if not plan then
    bad_argument(operation, index or argument, index
      and string.format("argument %d to capture with: %s", argument, wrong) or wrong)
  end
  return plan
end

local function warm_up(fns, samples, plans, rounds, side)
  local current = core.current_stream()
  side:wait(current)
  local ok, why = pcall(side.use, side, function()
    for i, fn in ipairs(fns) do
      for _ = 1, rounds do
        fn(unpack(samples[i], 1, plans[i].n))
      end
    end
  end)
  current:wait(side) -- for what a function issued before it failed, too
  if not ok then
    error(why, 0)
  end
end

--- Captures a function, or a list of functions that share a pool, each with
-- its sample arguments.  What it takes and returns is in cgraphlua/meta.
function callables.make_graphed_callables(fns, samples, opts)
  local list, lists, single = read_jobs(fns, samples)
  opts = read_options(MAKE, 3, opts, { num_warmup_iters = 3 })
  local plans = {}
  for i, args in ipairs(lists) do
    plans[i] = read_plan(args, MAKE, 2)
  end
  if core.is_current_stream_capturing() then
    core.capture(list[1]) -- raises: a capture inside a capture
  end
  local side = core.stream()
  if opts.num_warmup_iters > 0 then
    warm_up(list, lists, plans, opts.num_warmup_iters, side)
  end
  local how = {
    pool = opts.pool or core.pool(), capture_error_mode = opts.capture_error_mode, stream = side,
  }
  local made, graphs = {}, {}
  for i, fn in ipairs(list) do
    local state = capture(fn, plans[i], lists[i], {}, how, opts.keep)
    made[i], graphs[i] = new_callable(state), state.graph
  end
  if single then
    return made[1], graphs[1]
  end
  return made, graphs
end

-- graphed ------------------------------------------------------------------

-- The signature that the arguments fit: the last, an earlier or a new
-- signature; nil when there are too many.
local function find_signature(self, ...)
  for _, state in ipairs(self.signatures) do
    if structure.take(state.plan, state.given, ...) then
      return state
    end
  end
  if #self.signatures >= self.opts.max_signatures then
    if not self.warned then
      self.warned = true
      core.log(string.format("graphed: the function was called with more than %d "
        .. "signatures; other calls run it without a graph (a value that changes belongs in a "
        .. "buffer)", self.opts.max_signatures))
    end
    return nil
  end
  local plan = read_plan(pack(...), CALL)
  local state = { plan = plan, given = setmetatable({}, weak_values), calls = 0 }
  assert(structure.take(plan, state.given, ...))
  return state
end

-- Captures a signature, or captures it again because arguments came with other
-- addresses than before: those get static buffers of the graph.
local function capture_signature(self, former, ...)
  local plan = read_plan(pack(...), CALL)
  local own = {}
  for i, leaf in ipairs(former.graph and former.plan.leaves or {}) do
    if former.own[leaf] or leaf.at ~= leaf.address then
      own[plan.leaves[i]] = true
    end
  end
  local state = capture(self.fn, plan, pack(...), own, self.how, self.opts.keep)
  state.place = former.place or #self.signatures + 1
  self.signatures[state.place], self.graphs[state.place] = state, state.graph
  if former.graph then
    former.graph:release()
  end
  structure.take(plan, state.given, ...)
  return state
end

-- Has a buffer moved whose argument has no static buffer of its own yet?
local function strays(state)
  for _, leaf in ipairs(state.plan.leaves) do
    if leaf.at ~= leaf.address and not state.own[leaf] then
      return true
    end
  end
  return false
end

-- Partly overlapping buffers cannot all have static buffers of their own.
local function overlap_partly(state)
  for _, pair in ipairs(state.overlaps) do
    if pair.apart ~= 0 or pair.a.bytes ~= pair.b.bytes or pair.a.type ~= pair.b.type then
      return true
    end
  end
  return false
end

local function call_graphed(self, ...)
  local state = self.last
  if not (state and structure.take(state.plan, state.given, ...)) then
    state = find_signature(self, ...)
    if not state then
      return self.fn(...)
    end
  end
  if not state.graph then
    if state.calls < self.opts.num_warmup_iters then
      state.calls, state.place = state.calls + 1, state.place or #self.signatures + 1
      self.signatures[state.place] = state
      return self.fn(...)
    end
    state = capture_signature(self, state, ...)
  end
  self.last = state
  if locate(state) > 0 then
    if other_sharing(state) then
      return self.fn(...)
    elseif strays(state) then
      if overlap_partly(state) then
        return self.fn(...)
      end
      state = capture_signature(self, state, ...)
      self.last = state
      locate(state)
    end
    replay_with_copies(state)
  else
    state.graph:replay()
  end
  return results(state)
end

--- A function that does what `fn` does, as a graph for each kind of arguments.
function callables.graphed(fn, opts)
  if not is_callable(fn) then
    bad_argument(GRAPHED, 1, "a function expected, got " .. type(fn))
  end
  opts = read_options(GRAPHED, 2, opts, { num_warmup_iters = 0, max_signatures = 16 })
  local self = {
    fn = fn, opts = opts, signatures = {}, graphs = {},
    how = { pool = opts.pool, capture_error_mode = opts.capture_error_mode },
  }
  return function(...)
    if core.is_current_stream_capturing() then
      return fn(...)
    end
    return call_graphed(self, ...)
  end, self.graphs
end

return callables
