-- Random programs in data order beside a model that knows which numbers an
-- operation reads and writes: replays leave what the same calls leave outside a
-- capture, and two nodes are ordered exactly when numbers lead from one to the
-- other (with events, draws and few lanes: at least then).  No edge is implied
-- by others, and none is programmatic behind a node that others may run beside.
-- Three of four programs run on the host device as one line, in an order that the
-- edges allow and nothing else decides.  Programs are one graph or
-- two, of pools of their own or of one; between replays parameters are set, and
-- nodes get other numbers or are switched off.
-- CGRAPHLUA_PLAN_PROGRAMS sets how many programs (2000, with sanitizers and on a
-- GPU 400; the full count is 100000), CGRAPHLUA_PLAN_SEED the first one's seed (1).

local ffi = require "ffi"
local cg = require "cgraphlua"
local algo, blas, fft = require "cgraphlua.algo", require "cgraphlua.blas", require "cgraphlua.fft"

ffi.cdef "int setenv(const char *name, const char *value, int replace);"

local slow = (os.getenv "CGRAPHLUA_SANITIZER" or "no") ~= "no" or cg.device().device ~= "host"
local PROGRAMS = tonumber(os.getenv "CGRAPHLUA_PLAN_PROGRAMS") or slow and 400 or 2000
local SEED = tonumber(os.getenv "CGRAPHLUA_PLAN_SEED") or 1
local BUFFERS, COUNT = 4, 8

local source = [[
#include <cuComplex.h>
extern "C" __global__ void step(int *x, const int *y, int a, int n) {
  for (int i = 0; i < n; i++) x[i] = x[i] * 1664525u + (unsigned)y[i] + a;
}
extern "C" __global__ void put(int *x, const int *y, const int *z, int n) {
  for (int i = 0; i < n; i++) x[i] = y[i] * 3 + z[n - 1 - i];
}
extern "C" __global__ void take(int *x, int *y, int n) {
  for (int i = 0; i < n; i++) x[i] = y[i] ^ i;
}
extern "C" __global__ void turn(cuFloatComplex *z, const float2 *w, int n) {
  for (int i = 0; i < n; i++) {
    z[i].x = 0.5f * z[i].x - 0.25f * w[i].y;
    z[i].y = 0.5f * z[i].y + 0.25f * w[i].x;
  }
}]]

local step, put, take, turn
local has_blas, has_fft = pcall(blas.describe), pcall(fft.describe)
local random

-- ---- programs --------------------------------------------------------------

-- All of a buffer of 16 floats, or of 8 complex numbers.
local FLOATS, OTHER = { b = "f", first = 1, count = 16 }, { b = "g", first = 1, count = 16 }
local COMPLEX, TURNED = { b = "z", first = 1, count = 8 }, { b = "w", first = 1, count = 8 }

local function shaped(part, ...)
  return { b = part.b, first = 1, count = { ... } }
end

-- What libraries do with buffers that nothing else uses; what is not ours comes
-- last, and cannot be predicated on a GPU.
local calls = {
  function(at) algo.map("a * 0.5 + b", { a = at(FLOATS), b = at(OTHER) }, at(OTHER)) end,
  function(at) algo.scan(at(FLOATS), "max", { out = at(OTHER) }) end,
  function(at) algo.sort(at(OTHER), { out = at(FLOATS) }) end,
  function(at)
    local m = algo.reduce(at(FLOATS), "max")
    algo.map("a + m", { a = at(OTHER), m = m }, at(OTHER))
    m:release()
  end,
  function(at) at(COMPLEX):copy(at(TURNED)) end,
  function(at) turn:launch(1, 1, at(COMPLEX), at(TURNED), 8) end,
  function(at) turn:launch(1, 1, at(TURNED):view(3, 5), at(COMPLEX):view(1, 5), 5) end,
  has_blas and function(at)
    blas.gemm(at(shaped(FLOATS, 4, 4)), at(shaped(FLOATS, 4, 4)),
      { out = at(shaped(OTHER, 4, 4)), alpha = 0.25, beta = 0.5 })
  end,
  has_blas and function(at)
    blas.axpy(at(FLOATS):view(1, 5), at(OTHER):view(4, 5), { alpha = 0.5 })
  end,
  has_blas and function(at)
    local d = blas.dot(at(OTHER), at(OTHER))
    blas.scal(at(FLOATS), { alpha = d })
    algo.map("min(max(x, -1), 1)", { x = at(FLOATS) }, at(FLOATS))
    d:release()
  end,
  has_fft and function(at) fft.fft(at(COMPLEX), { out = at(COMPLEX), norm = "ortho" }) end,
  has_fft and function(at) fft.ifft(at(TURNED), { out = at(COMPLEX), norm = "ortho" }) end,
  has_fft and function(at)
    local half = fft.rfft(at(FLOATS):view(1, 8), { norm = "ortho" })
    at(TURNED):view(2, 5):copy(half)
    half:release()
  end,
}
local OURS = 7
for i = 16, OURS + 1, -1 do
  if not calls[i] then table.remove(calls, i) end
end

local function form_of(...)
  for _, op in ipairs { ... } do
    if op.foreign then return nil end
  end
  return random(2) == 1 and "node" or "predicated"
end

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
    local op = { a = random(9), reads = { x, y }, writes = { x } }
    function op.run(at)
      if not op.off then step:launch(1, 1, at(x), at(y), op.now or op.a, x.count) end
    end
    return op
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
  function(_, _, state)
    local x, a = part(), random(3) == 1 and state.params[random(2)] or random(99)
    return { reads = {}, writes = { x }, run = function(at) at(x):fill(a) end }
  end,
  function()
    local x = part()
    local y = part(x.count, x.b)
    return { reads = { y }, writes = { x }, run = function(at) at(x):copy(at(y)) end }
  end,
  -- a parameter, and a pointer that is not to const and only read
  function(_, _, state)
    local x, p = part(), state.params[random(2)]
    local y = part(x.count, x.b)
    if random(2) == 1 then
      return {
        reads = { y },
        writes = { x },
        run = function(at) take:launch(1, 1, at(x), at(y), x.count) end,
      }
    end
    return {
      reads = { x, y },
      writes = { x },
      run = function(at) step:launch(1, 1, at(x), at(y), p, x.count) end,
    }
  end,
  -- libraries and other types
  function(_, _, state)
    state.loose = true
    local i = random(#calls)
    return { reads = {}, writes = {}, run = calls[i], foreign = i > OURS }
  end,
  -- temporaries, of which later ones may have the bytes of earlier ones
  function(_, _, state)
    local x = part()
    local y = part(x.count, x.b)
    local sizes, shown, other = {}, random(6) == 1, random(4) == 1
    for i = 1, random(3) do sizes[i] = x.count + random(0, 300) end
    state.loose = true
    return {
      early = { y },
      reads = {},
      writes = { x },
      run = function(at)
        local from = at(y)
        for _, size in ipairs(sizes) do
          local t = other and state.pool:use(cg.buffer, "int32", size) or cg.buffer("int32", size)
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
    local f, x = part(1), makers[random(7)](inner, gen, state)
    local form = form_of(x)
    return {
      early = { f },
      reads = x.reads,
      writes = x.writes,
      run = function(at) cg.when(at(f), function() x.run(at) end, { form = form }) end,
    }
  end,
  -- turns that a number counts, and one of two bodies
  function(inner, gen, state)
    state.loose = true
    local f = part(1)
    local x, y = makers[random(6)](inner, gen, state), makers[random(6)](inner, gen, state)
    local form, turns = form_of(x, y), random(2) == 1
    return {
      reads = {},
      writes = {},
      run = function(at)
        local n = cg.buffer("int32", 1)
        algo.map("x & 3", { x = at(f) }, n)
        if turns then
          cg.times(n, function() x.run(at) end, { max = 3, form = form })
        else
          cg.switch(n, { function() x.run(at) end, function() y.run(at) end }, nil, { form = form })
        end
        n:release()
      end,
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

local function check_edges(nodes, sets)
  for i, node in ipairs(nodes) do
    local before = node.dependencies[1]
    for k = 1, node.programmatic and #nodes or 0 do
      if #node.dependencies ~= 1 or not (k == before or sets[k][before] or sets[before][k]) then
        error(("node %d comes early, and %d runs beside the one before it"):format(i, k), 0)
      end
    end
    for _, a in ipairs(node.dependencies) do
      for _, b in ipairs(node.dependencies) do
        if a ~= b and sets[b][a] then
          error(("edge %d -> %d is implied"):format(a, i), 0)
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

local function check_order(ops, nodes, sets, exact)
  local all = {} -- uses of numbers, as they were issued
  for i, e in ipairs(ends(ops, nodes)) do
    local op, before, reads = ops[i], {}, ops[i].reads
    if e.first ~= e.last then
      table.insert(all, { node = e.first, reads = op.early or {}, writes = {}, before = {} })
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
          error(("nothing orders %d before %d"):format(a.node, b.node), 0)
        end
      end
      if b.before[a.node] then
        for k in pairs(a.before) do b.before[k] = true end
      end
    end
    for n in pairs(exact and sets[b.node] or {}) do
      if not b.before[n] then
        error(("%d comes before %d for nothing"):format(n, b.node), 0)
      end
    end
  end
end

-- ---- a program -------------------------------------------------------------

local function make(seed)
  math.randomseed(seed)
  random = math.random
  local state = { depth = 0, side = cg.stream(), pool = cg.pool(), made = 0, open = {}, held = {} }
  state.params = { cg.param("int32", 0), cg.param("int32", 0) }
  local gen = cg.generator(seed)
  local kinds = random(3) == 1 and 5 or #makers
  local ops = {}
  for i = 1, random(4, 24) do ops[i] = makers[random(kinds)](nil, gen, state) end
  -- By replay: the parameters, and an operation that changes.
  local changes = {}
  for r = 1, random(3) do
    local at = random(#ops)
    changes[r] = { random(99), random(99), op = r > 1 and ops[at].a and at,
      a = random(9), off = random(3) == 1 }
  end
  return ops, state, gen, changes
end

local function hex(text)
  return (text:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local function contents(buffers, state)
  local list = {}
  for i, b in ipairs(buffers) do list[i] = table.concat(b:download(), " ") end
  for _, b in ipairs { "f", "g", "z", "w" } do
    table.insert(list, b .. " " .. hex(buffers[b]:download "string"))
  end
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
  local f, z = {}, {}
  for i = 1, 16 do f[i] = i * 3 % 16 / 16 end
  for i = 1, 8 do z[i] = { i / 8, 1 - i / 4 } end
  buffers.f, buffers.g = cg.from(f, "float"), cg.full("float", 16, 0.5)
  buffers.z, buffers.w = cg.from(z, "complex64"), cg.full("complex64", 8, { 0, 1 })
  return buffers, function(p) return buffers[p.b]:view(p.first, p.count) end
end

-- One graph, or two that share a pool, of operations `from` to `to` each.
local function captures(ops, at, opts)
  local graphs, from = {}, 1
  local cut = #ops > 1 and random(4) == 1 and random(#ops - 1) or #ops
  opts.pool = random(3) == 1 and cg.pool() or nil
  for _, to in ipairs { cut, #ops } do
    if to >= from then
      local half = { ops = {} }
      for i = from, to do table.insert(half.ops, ops[i]) end
      half.graph = cg.capture(function()
        for i, op in ipairs(half.ops) do cg.mark_kernels(tostring(i), op.run, at) end
      end, opts)
      table.insert(graphs, half)
      for i, op in ipairs(half.ops) do op.half, op.label = half, i end
    end
    from = to + 1
  end
  return graphs
end

local function node_of(op)
  for n, node in ipairs(op.half.graph:nodes()) do
    if node.label == tostring(op.label) then return n end
  end
end

local function change_graph(op, change)
  local n = node_of(op)
  op.half.graph:set_params(n, { a = change.a })
  op.half.graph:set_enabled(n, not change.off)
end

local function set(params, values)
  params[1]:set(values[1])
  params[2]:set(values[2])
end

local function run_eager(ops, state, changes)
  local buffers, at = fresh()
  for _, change in ipairs(changes) do
    set(state.params, change)
    if change.op then
      local op = ops[change.op]
      op.now, op.off = change.a, change.off
    end
    for _, op in ipairs(ops) do op.run(at) end
  end
  for _, op in ipairs(ops) do op.now, op.off = nil, nil end
  return contents(buffers, state)
end

local function run(seed)
  local ops, state, gen, changes = make(seed)
  local stream = cg.stream()
  local width = random(3) == 1 and random(5) or 1024
  local bounds = { "issue", nil, nil }

  gen:manual_seed(seed)
  local wanted = stream:use(run_eager, ops, state, changes)

  local buffers, at = fresh()
  state.held = {}
  gen:manual_seed(seed)
  ffi.C.setenv("CGRAPHLUA_HOST_ORDER", seed % 4 > 0 and tostring(seed) or "", 1)
  for _, op in ipairs(ops) do
    if op.prepare then op.prepare(at) end
  end
  local most = bounds[random(3)]
  local graphs = captures(ops, at,
    { order = "data", width = width, max_bytes = most, annotations = true })
  stream:use(function()
    for _, change in ipairs(changes) do
      set(state.params, change)
      if change.op then change_graph(ops[change.op], change) end
      for _, half in ipairs(graphs) do half.graph:replay() end
    end
    local got = contents(buffers, state)
    if got ~= wanted then error(got .. "\nwanted " .. wanted, 0) end
  end)
  for _, half in ipairs(graphs) do
    local nodes = half.graph:nodes()
    local sets = ancestors(nodes)
    check_edges(nodes, sets)
    check_order(half.ops, nodes, sets, width == 1024 and not most and not state.loose)
    local plan = half.graph:plan()
    if plan.bytes_least > plan.bytes or plan.bytes > plan.bytes_asked then
      error(("of %d bytes at least %d, taken %d"):format(plan.bytes_asked, plan.bytes_least,
        plan.bytes), 0)
    end
    half.graph:release()
  end
end

describe("random programs in data order", function()
  teardown(function() ffi.C.setenv("CGRAPHLUA_HOST_ORDER", "", 1) end)

  it("leave what they leave outside a capture, in the order that numbers ask for", function()
    local module = cg.module(source)
    step, put = module:kernel "step", module:kernel "put"
    take, turn = module:kernel("take"):effects { x = "write", y = "read" }, module:kernel "turn"
    local _, at = fresh()
    for _, call in ipairs(calls) do call(at) end -- libraries make their plans
    for seed = SEED, SEED + PROGRAMS - 1 do
      local ok, e = pcall(run, seed)
      if not ok then error(("seed %d: %s"):format(seed, tostring(e)), 0) end
      if seed % 64 == 0 then collectgarbage() end
    end
    assert.is_true(PROGRAMS > 0)
  end)
end)
