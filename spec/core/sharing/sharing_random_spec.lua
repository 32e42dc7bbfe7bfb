-- Random programs of captures, pools, graphs in graphs, branches, views,
-- releases, checkpoints and the script's own work, beside a model that knows
-- only bytes and order: whose data lies in each piece of memory, and what value
-- it has.  What the model calls garbage must be refused; what it calls right
-- must pass, and give the model's values.
-- CGRAPHLUA_SHARING_PROGRAMS sets how many programs (1000; the full count is
-- 50000), CGRAPHLUA_SHARING_SEED the first one's seed (1).

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local PROGRAMS = tonumber(os.getenv "CGRAPHLUA_SHARING_PROGRAMS") or 1000
local SEED = tonumber(os.getenv "CGRAPHLUA_SHARING_SEED") or 1
local UNIT = 32 -- elements that the model tells apart only together
local BYTES = UNIT * 4
local STEPS, CAPTURES = 18, 7
local UNDEFINED = "undefined"

local source = [[
extern "C" __global__ void put(float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a;
}
extern "C" __global__ void add(float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a;
}
extern "C" __global__ void mix(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + a;
}]]

local kernels

-- ---- the model -------------------------------------------------------------

-- A buffer: { handle, id, address, units, born = the capture that allocated
-- it, pool }.  An operation: { kind, to, to_first, from, from_first, n, a }, or
-- { kind = "graph", graph }.  `memory` maps the address of a unit to
-- { id, value }; `written` says which units of which buffer were ever written.
local World = {}
World.__index = World

local function key(buffer, unit) return buffer.id * 4096 + unit end

-- What a run of operations would do: what it would write, and the verdict:
-- "bad" where it reads what is not there any more, "any" where it reads what
-- never was there.
local function run_new(world)
  return {
    world = world, memory = setmetatable({}, { __index = world.memory }),
    written = setmetatable({}, { __index = world.written }), verdict = "right",
    inside = {}, -- written in this replay
  }
end

-- A graph's own pool, which nobody else uses: it is not looked at.
local function is_private(pool) return type(pool) == "table" and not pool.shared end

local function mark(pool) if type(pool) == "table" then pool.shared = true end end

-- Operations of a graph of the pool (nil: of the script) use memory.
local function share(ops, pool)
  for _, op in ipairs(ops) do
    if op.graph then
      mark(op.graph)
      share(op.graph.ops, op.graph.pool or op.graph)
    else
      if op.to.captured and op.to.pool ~= pool then mark(op.to.pool) end
      if pool and op.from and op.from.captured and op.from.pool ~= pool then
        mark(op.from.pool)
      end
    end
  end
end

local function judge(run, verdict)
  if run.verdict ~= "bad" then run.verdict = verdict end
end

local function read(run, buffer, unit, use, own)
  local cell = run.memory[buffer.address + unit * BYTES]
  if cell and cell.id == buffer.id then return cell.value end
  local had = run.written[key(buffer, unit)]
  if not own or use == "const" then
    judge(run, had and not is_private(buffer.pool) and "bad" or "any")
  elseif had and use == "add" or run.inside[key(buffer, unit)] then
    judge(run, "any")
  end
  return UNDEFINED
end

local function write(run, buffer, unit, value)
  run.memory[buffer.address + unit * BYTES] = { id = buffer.id, value = value }
  run.written[key(buffer, unit)], run.inside[key(buffer, unit)] = true, true
end

local function sum(value, a) return value == UNDEFINED and value or value + a end

-- `born`: the capture whose operation it is; nil: the script's own.
local function perform(run, op, born)
  if op.off then return end
  if op.kind == "graph" then
    for _, inner in ipairs(op.graph.ops) do perform(run, inner, op.graph.capture) end
    return
  end
  local values = {}
  for i = 0, op.n - 1 do
    local value = op.a
    if op.from then
      value = read(run, op.from, op.from_first + i, "const", born and op.from.born == born)
      value = sum(value, op.a)
    end
    if op.kind == "add" or op.kind == "put" or op.kind == "mix" then
      local own = born and op.to.born == born
      -- Of the script's own kernels the first may fill a buffer.
      local first = not born and not run.written[key(op.to, op.to_first + i)]
      local before = op.to.captured and not first
          and read(run, op.to, op.to_first + i, op.kind, own)
      if op.kind == "add" then
        if not op.to.captured then before = read(run, op.to, op.to_first + i, "add", true) end
        value = sum(before or UNDEFINED, op.a)
      end
    end
    values[i] = value
  end
  for i = 0, op.n - 1 do write(run, op.to, op.to_first + i, values[i]) end
end

local function commit(run)
  for k, v in pairs(run.memory) do run.world.memory[k] = v end
  for k, v in pairs(run.written) do run.world.written[k] = v end
end

-- The memory that operations touch: key -> true where it is written to.
local function touched(op, into)
  if op.kind == "graph" then
    for _, inner in ipairs(op.graph.ops) do touched(inner, into) end
    return into
  end
  for i = 0, op.n - 1 do
    if op.to.captured then into[op.to.address + (op.to_first + i) * BYTES] = true end
    if op.from and op.from.captured then
      local k = op.from.address + (op.from_first + i) * BYTES
      into[k] = into[k] or false
    end
  end
  return into
end

local function conflict(a, b)
  local x, y = touched(a, {}), touched(b, {})
  for k, writes in pairs(x) do
    if y[k] ~= nil and (writes or y[k]) then return true end
  end
  return false
end

-- ---- programs --------------------------------------------------------------

local function world_new(seed)
  local state = seed * 7919 + 12345
  local world = setmetatable({
    memory = {}, written = {}, buffers = {}, graphs = {}, pools = { cg.pool(), cg.pool() },
    streams = { cg.stream(), cg.stream() }, captures = 0, next_id = 1, log = {},
  }, World)
  function world.below(n)
    state = (state * 1103515245 + 12345) % 2 ^ 31
    return math.floor(state / 65536) % n
  end
  return world
end

function World:say(...) self.log[#self.log + 1] = string.format(...) end

function World:pick(list) return list[self.below(#list) + 1] end

-- A buffer that the capture `born` (nil: none) allocates.
function World:buffer(born, pool)
  local units = (self.below(3) + 1) * 4
  local handle = cg.buffer("float", units * UNIT)
  local buffer = { handle = handle, id = self.next_id, address = handle:address(), units = units,
    born = born, captured = born ~= nil, pool = pool }
  self.next_id = self.next_id + 1
  if born then self:say("b%d = buffer of %d at %d", buffer.id, units, buffer.address % 2 ^ 24)
  else handle:fill(0) for u = 0, units - 1 do
    self.memory[buffer.address + u * BYTES] = { id = buffer.id, value = 0 } end end
  return buffer
end

-- A random operation on some of the buffers.
function World:operation(buffers)
  local to = self:pick(buffers)
  local kind = self:pick { "fill", "copy", "mix", "add", "put", "fill", "mix" }
  local op = { kind = kind, to = to, a = self.below(50) }
  op.n = self.below(3) == 0 and self.below(to.units) + 1 or to.units
  if kind == "copy" or kind == "mix" then
    op.from = self:pick(buffers)
    op.n = math.min(op.n, op.from.units)
    if op.from == to then op.from, op.kind = nil, "fill" end
    if op.kind == "copy" then op.a = 0 end
  end
  op.to_first = self.below(to.units - op.n + 1)
  op.from_first = op.from and self.below(op.from.units - op.n + 1)
  return op
end

function World.issue(op)
  local n = op.n * UNIT
  local function view(buffer, first)
    if first == 0 and op.n == buffer.units then return buffer.handle end
    return buffer.handle:view(first * UNIT + 1, n)
  end
  local to = view(op.to, op.to_first)
  local from = op.from and view(op.from, op.from_first)
  if op.kind == "fill" then to:fill(op.a)
  elseif op.kind == "copy" then to:copy(from)
  elseif op.kind == "mix" then kernels.mix:over(n)(to, from, op.a, n)
  else kernels[op.kind]:over(n)(to, op.a, n) end
end

function World.describe(op)
  if op.kind == "graph" then return "g" .. op.graph.number end
  return string.format("%s b%d[%d,+%d]%s %d", op.kind, op.to.id, op.to_first, op.n,
    op.from and string.format(" b%d[%d]", op.from.id, op.from_first) or "", op.a)
end

-- Whether the memory of a graph was taken back.
local function is_undone(graph)
  if graph.undone then return true end
  for _, op in ipairs(graph.ops) do
    if op.graph and is_undone(op.graph) then return true end
  end
  return false
end

local function of_pool(buffers, pool)
  local list = {}
  for _, b in ipairs(buffers) do
    if b.handle and (pool == nil or b.pool == pool) then list[#list + 1] = b end
  end
  return list
end

-- Captures a random graph; returns what it was refused for, if it was.
function World:capture()
  local pool = self.below(4) > 0 and self:pick(self.pools) or nil
  local graph = { ops = {}, number = #self.graphs + 1, pool = pool,
    capture = self.captures + 1 }
  self.captures = graph.capture
  local sources = of_pool(self.buffers)
  sources[#sources + 1] = self.constant
  local mine, branches = {}, {}
  local forked = self.below(4) == 0
  local side = cg.stream()
  local refusable
  local function issue(op, branch)
    local races = false
    for k, other in ipairs(graph.ops) do
      if branch ~= 0 and branches[k] ~= branch and branches[k] ~= 0 and conflict(op, other) then
        if op.kind ~= "graph" and other.kind ~= "graph" then return end
        races = true
      end
    end
    refusable = refusable or races
    self:say("  %s%s", self.describe(op), races and ", a race" or "")
    graph.ops[#graph.ops + 1], branches[#graph.ops + 1] = op, branch
    if op.graph then op.graph.g:replay() else self.issue(op) end
  end
  local function one(branch)
    local choice = self.below(10)
    if choice < 3 or #mine == 0 then
      local b = self:buffer(graph.capture, pool or graph)
      mine[#mine + 1], sources[#sources + 1] = b, b
      if self.below(4) > 0 then
        local op = { kind = "fill", to = b, to_first = 0, n = b.units, a = self.below(50) }
        return issue(op, branch)
      end
    end
    if choice == 3 and #self.graphs > 0 then
      local inner = self:pick(self.graphs)
      if inner.g and not inner.off and not is_undone(inner) and inner.keep then
        return issue({ kind = "graph", graph = inner }, branch)
      end
    end
    if choice == 4 and #mine > 1 then -- released inside the capture
      local b = table.remove(mine, self.below(#mine) + 1)
      for k, x in ipairs(sources) do if x == b then table.remove(sources, k) break end end
      self:say("  release b%d", b.id)
      b.handle:release()
      b.handle = nil
      return
    end
    if choice == 5 then
      local list = of_pool(sources)
      local b = self:pick(list)
      if b ~= self.constant and b.born ~= graph.capture and self.below(2) == 0 then
        for k, x in ipairs(sources) do if x == b then table.remove(sources, k) break end end
        self:say("  release b%d of another", b.id)
        b.handle:release()
        b.handle = nil
        return
      end
    end
    -- A branch keeps to itself, or the program would race.
    local list = {}
    for _, b in ipairs(sources) do
      if b ~= self.constant then list[#list + 1] = b end
    end
    local op = self:operation(list)
    issue(op, branch)
  end
  self:say("g%d = capture in %s", graph.number,
    pool and "pool " .. (pool == self.pools[1] and 1 or 2) or "a pool of its own")
  local keep = self.below(3) > 0
  graph.keep = keep
  local ok, err = pcall(cg.capture, function()
    local main = cg.current_stream()
    for _ = 1, 1 + self.below(4) do one(0) end
    if forked then
      side:wait(main)
      for _ = 1, 1 + self.below(3) do
        if self.below(2) == 0 then self:say "  on the side" side:use(function() one(2) end)
        else one(1) end
      end
      main:wait(side)
      one(0)
    end
  end, { pool = pool, keep_graph = keep })
  if not ok then
    for _, b in ipairs(mine) do b.handle = nil end
    graph = { ops = graph.ops, capture = graph.capture }
    return graph, err, refusable
  end
  for _, b in ipairs(mine) do self.buffers[#self.buffers + 1] = b end
  graph.g = err
  self.graphs[#self.graphs + 1] = graph
  share(graph.ops, pool or graph)
  return graph, nil, refusable
end

-- Whether the graph reads what it has overwritten itself, whatever was there.
function World.is_hopeless(graph)
  local bad = false
  local at = {} -- address -> id that lies there by the graph's own doing
  local wrote = {}
  local function go(op)
    if op.kind == "graph" then
      for _, inner in ipairs(op.graph.ops) do go(inner) end
      return
    end
    for i = 0, op.n - 1 do
      local function use(b, unit, const)
        if not b.captured then return end
        local there = at[b.address + unit * BYTES]
        if there and there ~= b.id and (const or wrote[key(b, unit)]) then bad = true end
      end
      if op.from then use(op.from, op.from_first + i, true) end
      if op.kind == "add" or op.kind == "put" or op.kind == "mix" then
        use(op.to, op.to_first + i, false)
      end
      if op.to.captured then
        at[op.to.address + (op.to_first + i) * BYTES] = op.to.id
        wrote[key(op.to, op.to_first + i)] = true
      end
    end
  end
  for _, op in ipairs(graph.ops) do go(op) end
  return bad
end

-- Runs it and compares: refused where the model says so, and only there.
function World:try(what, run, fn, also)
  local ok, err = pcall(fn)
  self:say("%s: %s, the model says %s", what, ok and "passed" or err.name, run.verdict)
  if not ok and err.name ~= "CGL_ERROR_ORDER" then error(err, 0) end
  if ok and run.verdict == "bad" then error("garbage without an error: " .. what, 0) end
  if not ok and run.verdict == "right" and not also then
    error("refused what is right: " .. what .. ": " .. tostring(err), 0)
  end
  if ok then commit(run) end
  return ok
end

function World:check_values(buffer)
  if not buffer.handle then return end
  local run = run_new(self)
  local values = {}
  for u = 0, buffer.units - 1 do values[u] = read(run, buffer, u, "const") end
  local got
  cg.synchronize()
  if self:try("download b" .. buffer.id, run, function() got = buffer.handle:download() end) then
    for u = 0, buffer.units - 1 do
      for _, i in ipairs { 1, UNIT } do
        if values[u] ~= UNDEFINED and got[u * UNIT + i] ~= values[u] then
          error(("b%d: unit %d holds %g and not %g"):format(buffer.id, u, got[u * UNIT + i],
            values[u]), 0)
        end
      end
    end
  end
end

-- Whether they use memory of private pools, of which the script makes the
-- order.
local function uses_private(ops)
  for _, op in ipairs(ops) do
    if op.graph and (is_private(op.graph.pool or op.graph) or uses_private(op.graph.ops)) then
      return true
    end
    for _, b in pairs { op.to, op.from } do
      if b.pool and is_private(b.pool) then return true end
    end
  end
end

function World:replay(graph)
  local n = self.below(4) == 0 and 2 or 1
  local run = run_new(self)
  for _ = 1, n do
    run.inside = {}
    for _, op in ipairs(graph.ops) do perform(run, op, graph.capture) end
  end
  if is_undone(graph) then
    local ok, err = pcall(graph.g.replay, graph.g)
    assert(not ok, "a graph of restored memory was replayed")
    assert(err.name == "CGL_ERROR_RELEASED" or err.name == "CGL_ERROR_ORDER", err)
    return
  end
  local stream = self:pick(self.streams)
  local private = is_private(graph.pool or graph) or uses_private(graph.ops)
  if private then cg.synchronize() end
  self:try(("g%d:replay(%d)"):format(graph.number, n), run,
    function() stream:use(function() graph.g:replay(n) end) end)
  if private then cg.synchronize() end
end

function World:eager()
  local list = of_pool(self.buffers)
  if #list == 0 then return end
  local op = self:operation(list)
  local run = run_new(self)
  perform(run, op)
  if uses_private { op } then cg.synchronize() end
  if self:try(self.describe(op), run, function() self.issue(op) end) then share { op } end
end

function World:restore()
  local point = self.point
  self.point = nil
  self:say "restore"
  point.pool:restore(point.checkpoint)
  for _, b in ipairs(self.buffers) do
    if b.pool == point.pool and b.id >= point.id then b.handle = nil end
  end
  for _, g in ipairs(self.graphs) do
    if g.number > point.graphs then
      local function uses(ops)
        for _, op in ipairs(ops) do
          if op.graph and (op.graph.pool == point.pool or uses(op.graph.ops)) then return true end
        end
      end
      if g.pool == point.pool or uses(g.ops) then g.undone = true end
    end
  end
end

-- Memory that graphs may still use, and the next capture may get.
function World:release()
  local list = of_pool(self.buffers)
  if #list == 0 then return end
  local b = self:pick(list)
  self:say("release b%d", b.id)
  b.handle:release()
  b.handle = nil
end

function World:step()
  local choice = self.below(16)
  if choice < 8 and #self.graphs > 0 then
    local graph = self:pick(self.graphs)
    if graph.g then self:replay(graph) end
  elseif choice < 10 then
    self:eager()
  elseif choice < 12 and #self.buffers > 0 then
    self:check_values(self:pick(self.buffers))
  elseif choice == 12 then
    self:release()
  elseif choice == 13 and #self.graphs > 0 then
    local graph = self:pick(self.graphs)
    if graph.g and self.below(2) == 0 then
      self:say("release g%d", graph.number)
      graph.g:release()
      graph.g = nil
    end
  elseif choice == 14 and #self.graphs > 0 then
    self:switch(self:pick(self.graphs))
  elseif choice == 15 then
    if self.point then self:restore()
    else
      local pool = self:pick(self.pools)
      self.point = { pool = pool, checkpoint = pool:checkpoint(), id = self.next_id,
        graphs = #self.graphs }
      self:say("checkpoint of pool %d", pool == self.pools[1] and 1 or 2)
    end
  end
end

-- Switches an operation off, or the one that is off on again.
function World:switch(graph)
  if not graph.g or is_undone(graph) then return end
  local at = graph.off or self.below(#graph.ops) + 1
  local op = graph.ops[at]
  if not op or op.kind == "graph" or op.kind == "copy" then return end
  for _, other in ipairs(self.graphs) do
    for _, o in ipairs(other.ops) do if o.graph == graph then return end end
  end
  self:say("g%d: operation %d is switched", graph.number, at)
  graph.g:set_enabled(at, graph.off ~= nil)
  op.off = not graph.off
  graph.off = not graph.off and at or nil
end

local function program(seed)
  local world = world_new(seed)
  local ok, err = pcall(function()
    world.constant = world:buffer(nil)
    for _ = 1, CAPTURES do
      local graph, refused, refusable = world:capture()
      if refused then
        world:say("refused: %s", tostring(refused))
        if type(refused) ~= "table" or refused.name ~= "CGL_ERROR_ORDER" then error(refused, 0) end
        if not refusable and not world.is_hopeless(graph) then
          error("a capture was refused that is right: " .. tostring(refused), 0)
        end
      elseif refusable then
        error("two branches use one memory at a time, and nobody minds", 0)
      end
      for _ = 1, STEPS / CAPTURES do world:step() end
      for _ = 1, world.below(4) do world:release() end
    end
    for _ = 1, STEPS do world:step() end
    for _, buffer in ipairs(world.buffers) do world:check_values(buffer) end
    cg.synchronize()
  end)
  if not ok then
    error(("program %d: %s\n%s"):format(seed, tostring(err), table.concat(world.log, "\n")), 0)
  end
  return world
end

describe("sharing pools", function()
  setup(function()
    local module = cg.module(source)
    kernels = {}
    for _, name in ipairs { "put", "add", "mix" } do kernels[name] = module:kernel(name) end
  end)

  teardown(function()
    kernels = nil
    device.nothing_alive()
  end)

  it(("is right, or refused, in %d random programs"):format(PROGRAMS), function()
    local refused, passed = 0, 0
    for seed = SEED, SEED + PROGRAMS - 1 do
      for _, line in ipairs(program(seed).log) do
        if line:match "CGL_ERROR_ORDER, the" then refused = refused + 1 end
        if line:match "replay.*passed" then passed = passed + 1 end
      end
      if seed % 50 == 0 then collectgarbage() end
    end
    assert.is_true(refused > PROGRAMS / 2 and passed > PROGRAMS / 2,
      ("%d refused, %d passed"):format(refused, passed))
  end)
end)
