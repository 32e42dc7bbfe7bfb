-- Random programs in data order beside a model that knows which numbers an
-- operation reads and writes: replays leave what the same calls leave outside a
-- capture, and two nodes are ordered exactly when numbers lead from one to the
-- other (with events, draws and few lanes: at least then).  No edge is implied
-- by others.  Three of four programs run on the host device as one line, in an
-- order that the edges allow and nothing else decides.
-- CGRAPHLUA_PLAN_PROGRAMS sets how many programs (400; the full count is
-- 100000), CGRAPHLUA_PLAN_SEED the first one's seed (1).

local ffi = require "ffi"
local cg = require "cgraphlua"

ffi.cdef "int setenv(const char *name, const char *value, int replace);"

local PROGRAMS = tonumber(os.getenv "CGRAPHLUA_PLAN_PROGRAMS") or 400
local SEED = tonumber(os.getenv "CGRAPHLUA_PLAN_SEED") or 1
local BUFFERS, COUNT = 4, 8

local source = [[
extern "C" __global__ void step(int *x, const int *y, int a, int n) {
  for (int i = 0; i < n; i++) x[i] = x[i] * 1664525u + (unsigned)y[i] + a;
}
extern "C" __global__ void put(int *x, const int *y, const int *z, int n) {
  for (int i = 0; i < n; i++) x[i] = y[i] * 3 + z[n - 1 - i];
}]]

local step, put
local random

-- ---- programs --------------------------------------------------------------

-- A part of a buffer: { buffer, first, count }.
local function part(count, but)
  local b = random(BUFFERS)
  while b == but do b = random(BUFFERS) end
  count = count or random(COUNT)
  return { b = b, first = random(COUNT - count + 1), count = count }
end

-- Each maker gives what is read and written, and how it is issued.  An operation
-- may be two nodes: `early` is what the first of them reads, all else is the
-- last one's.
local makers
makers = {
  function()
    local x = part()
    local y = part(x.count, x.b)
    local a = random(9)
    return {
      reads = { x, y },
      writes = { x },
      run = function(at) step:launch(1, 1, at(x), at(y), a, x.count) end,
    }
  end,
  function()
    local x = part()
    local y, z = part(x.count, x.b), part(x.count, x.b)
    return {
      reads = { x, y, z },
      writes = { x },
      run = function(at) put:launch(1, 1, at(x), at(y), at(z), x.count) end,
    }
  end,
  function()
    local x, a = part(), random(99)
    return { reads = {}, writes = { x }, run = function(at) at(x):fill(a) end }
  end,
  function()
    local x = part()
    local y = part(x.count, x.b)
    return { reads = { y }, writes = { x }, run = function(at) at(x):copy(at(y)) end }
  end,
  -- temporaries, of which later ones may have the bytes of earlier ones
  function(_, _, state)
    local x = part()
    local y = part(x.count, x.b)
    local sizes, shown = {}, random(6) == 1
    for i = 1, random(3) do sizes[i] = x.count + random(0, 300) end
    state.loose = true
    return {
      early = { y },
      reads = {},
      writes = { x },
      run = function(at)
        local from = at(y)
        for _, size in ipairs(sizes) do
          local t = cg.buffer("int32", size)
          local whole = t:view(1, x.count)
          if shown then t:address() end
          put:launch(1, 1, whole, from, from, x.count)
          from:release()
          t:release()
          from = whole
        end
        at(x):copy(from)
        from:release()
      end,
    }
  end,
  function(_, gen, state)
    local x = part()
    state.loose = true
    return { reads = {}, writes = { x }, run = function(at) at(x):random(gen, 0, 1000) end }
  end,
  -- memory that a later operation uses and releases, or that outlives the capture
  function(_, _, state)
    local y, size = part(), random(0, 300)
    state.made, state.loose = state.made + 1, true
    local id = state.made
    table.insert(state.open, { id = id, count = y.count })
    return {
      early = { y },
      reads = {},
      writes = {},
      run = function(at)
        local t = cg.buffer("int32", y.count + size)
        state.held[id] = t
        put:launch(1, 1, t, at(y), at(y), y.count)
        if size > 0 then t:view(y.count + 1, size):fill(id) end
      end,
    }
  end,
  function(_, _, state)
    if #state.open == 0 then return makers[1]() end
    local held = table.remove(state.open, random(#state.open))
    local x = part(held.count)
    return {
      reads = {},
      writes = { x },
      run = function(at)
        local t = state.held[held.id]
        step:launch(1, 1, at(x), t, held.id, held.count)
        t:release()
        state.held[held.id] = nil
      end,
    }
  end,
  -- a graph that was captured before
  function(inner, gen, state)
    if state.depth > 0 then return makers[1]() end
    local ops = {}
    for i = 1, random(3) do ops[i] = makers[random(4)](inner, gen, state) end
    local g
    local op = { reads = {}, writes = {} }
    for _, o in ipairs(ops) do
      for _, p in ipairs(o.reads) do table.insert(op.reads, p) end
      for _, p in ipairs(o.writes) do table.insert(op.writes, p) end
    end
    op.run = function(at)
      if not cg.is_current_stream_capturing() then
        for _, o in ipairs(ops) do o.run(at) end
        return
      end
      g:replay()
    end
    op.prepare = function(at)
      g = cg.capture(function()
        for _, o in ipairs(ops) do o.run(at) end
      end, { order = random(2) == 1 and "data" or "issue" })
    end
    return op
  end,
  -- a branch on a number: its words may have the bytes of an earlier one's
  function(inner, gen, state)
    state.loose = true
    local f, x = part(1), makers[random(5)](inner, gen, state)
    return {
      early = { f },
      reads = x.reads,
      writes = x.writes,
      run = function(at) cg.when(at(f), function() x.run(at) end) end,
    }
  end,
  -- work on another stream, which joins at once or stays beside
  function(inner, gen, state)
    local x = makers[random(4)](inner, gen, state)
    state.loose = true
    return {
      reads = x.reads,
      writes = x.writes,
      run = function(at)
        local me, side = cg.current_stream(), state.side
        side:wait(me)
        side:use(function() x.run(at) end)
        me:wait(side)
      end,
    }
  end,
}

local function overlap(a, b)
  for _, p in ipairs(a) do
    for _, q in ipairs(b) do
      local apart = p.first >= q.first + q.count or q.first >= p.first + p.count
      if p.b == q.b and not apart then return true end
    end
  end
  return false
end

-- ---- looking at the graph --------------------------------------------------

-- By node: the set of nodes that precede it.
local function ancestors(nodes)
  local sets = {}
  local function of(i)
    if sets[i] then return sets[i] end
    local set = {}
    sets[i] = set
    for _, d in ipairs(nodes[i].dependencies) do
      set[d] = true
      for k in pairs(of(d)) do set[k] = true end
    end
    return set
  end
  for i = 1, #nodes do of(i) end
  return sets
end

local function check_edges(nodes, sets, text)
  for i, node in ipairs(nodes) do
    for _, a in ipairs(node.dependencies) do
      for _, b in ipairs(node.dependencies) do
        if a ~= b and sets[b][a] then
          error(("%s: edge %d -> %d is implied"):format(text, a, i), 0)
        end
      end
    end
  end
end

-- By operation: its first and its last node.
local function ends(ops, nodes)
  local list = {}
  for i = 1, #ops do list[i] = {} end
  for n, node in ipairs(nodes) do
    local e = list[tonumber(node.label)]
    if e then
      e.first, e.last = e.first or n, n
    end
  end
  return list
end

local function check_order(ops, nodes, sets, exact, text)
  local all = {} -- uses of numbers, as they were issued
  for i, e in ipairs(ends(ops, nodes)) do
    local op, before, reads = ops[i], {}, ops[i].reads
    if e.first ~= e.last then
      table.insert(all, { node = e.first, reads = op.early, writes = {}, before = {} })
      before[e.first] = true
    else -- a branch whose one kernel looks at the number itself
      reads = {}
      for _, list in ipairs { op.early or {}, op.reads } do
        for _, p in ipairs(list) do table.insert(reads, p) end
      end
    end
    table.insert(all, { node = e.last, reads = reads, writes = op.writes, before = before })
  end
  for j, b in ipairs(all) do
    for i = 1, j - 1 do
      local a = all[i]
      local reads = overlap(a.reads, b.writes)
      if reads or overlap(a.writes, b.writes) or overlap(a.writes, b.reads) then
        b.before[a.node] = true
        if not sets[b.node][a.node] then
          error(("%s: nothing orders %d before %d"):format(text, a.node, b.node), 0)
        end
      end
      if b.before[a.node] then
        for k in pairs(a.before) do b.before[k] = true end
      end
    end
    for n in pairs(exact and sets[b.node] or {}) do
      if not b.before[n] then
        error(("%s: %d comes before %d for nothing"):format(text, n, b.node), 0)
      end
    end
  end
end

-- ---- a program -------------------------------------------------------------

local function make(seed)
  math.randomseed(seed)
  random = math.random
  local state = { depth = 0, side = cg.stream(), made = 0, open = {}, held = {} }
  local gen = cg.generator(seed)
  local kinds = random(3) == 1 and 4 or #makers
  local ops = {}
  for i = 1, random(4, 24) do ops[i] = makers[random(kinds)](nil, gen, state) end
  return ops, state, gen
end

local function contents(buffers, state)
  local list = {}
  for i, b in ipairs(buffers) do list[i] = table.concat(b:download(), " ") end
  for id = 1, state.made do
    local b = state.held[id]
    table.insert(list, b and table.concat(b:download(), " ") or "-")
  end
  return table.concat(list, "\n")
end

local function fresh()
  local buffers = {}
  for b = 1, BUFFERS do
    local values = {}
    for i = 1, COUNT do values[i] = b * 100 + i end
    buffers[b] = cg.from(values, "int32")
  end
  return buffers, function(p) return buffers[p.b]:view(p.first, p.count) end
end

local function run(seed)
  local ops, state, gen = make(seed)
  local text = ("seed %d"):format(seed)
  local stream = cg.stream()
  local width = random(3) == 1 and random(5) or 1024
  local replays = random(3)

  local wanted
  do
    local buffers, at = fresh()
    gen:manual_seed(seed)
    stream:use(function()
      for _ = 1, replays do
        for _, op in ipairs(ops) do op.run(at) end
      end
      wanted = contents(buffers, state)
    end)
  end

  local buffers, at = fresh()
  state.held = {}
  gen:manual_seed(seed)
  ffi.C.setenv("CGRAPHLUA_HOST_ORDER", seed % 4 > 0 and tostring(seed) or "", 1)
  for _, op in ipairs(ops) do
    if op.prepare then op.prepare(at) end
  end
  local g = cg.capture(function()
    for i, op in ipairs(ops) do cg.mark_kernels(tostring(i), op.run, at) end
  end, { order = "data", width = width, annotations = true })
  stream:use(function()
    for _ = 1, replays do g:replay() end
    local got = contents(buffers, state)
    if got ~= wanted then error(("%s: %s\nwanted %s"):format(text, got, wanted), 0) end
  end)
  local nodes = g:nodes()
  local sets = ancestors(nodes)
  check_edges(nodes, sets, text)
  check_order(ops, nodes, sets, width == 1024 and not state.loose, text)
  local plan = g:plan()
  assert(plan.bytes_least <= plan.bytes and plan.bytes <= plan.bytes_asked, text)
  g:release()
end

describe("random programs in data order", function()
  teardown(function() ffi.C.setenv("CGRAPHLUA_HOST_ORDER", "", 1) end)

  it("leave what they leave outside a capture, in the order that numbers ask for", function()
    local module = cg.module(source)
    step, put = module:kernel "step", module:kernel "put"
    for seed = SEED, SEED + PROGRAMS - 1 do
      run(seed)
      if seed % 64 == 0 then collectgarbage() end
    end
    assert.is_true(PROGRAMS > 0)
  end)
end)
