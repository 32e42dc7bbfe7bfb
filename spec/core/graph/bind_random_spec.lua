-- Random programs of binds, sets, changes, captures, resets and replays beside a
-- model in which every place of a node names its memory, and the input that it
-- was captured with.
-- CGRAPHLUA_BIND_PROGRAMS sets how many programs (250), CGRAPHLUA_BIND_SEED the
-- first one's seed (1).

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local PROGRAMS = tonumber(os.getenv "CGRAPHLUA_BIND_PROGRAMS") or 250
local SEED = tonumber(os.getenv "CGRAPHLUA_BIND_SEED") or 1
local INPUTS, BUFFERS, N, ACTIONS = 2, 6, 3, 16 -- the first buffers are the inputs

local source = [[
extern "C" __global__ void mix(int *y, const int *x, int a, const int *w) {
  y[threadIdx.x] = (y[threadIdx.x] * 3 + x[threadIdx.x] * 7 + w[threadIdx.x] * 5 + a) % 1021;
}]]

local random = math.random

-- Memory, or a part of it.
local function place(p, first, count)
  local b = random(p.graphs and random(2) == 1 and INPUTS or BUFFERS)
  return { mem = b, input = b <= INPUTS and b or nil, first = first, count = count }
end

local function object_of(p, at)
  local b = p.y[at.mem].object
  return at.count == N and b or b:view(at.first, at.count)
end

local function value_of(p, a)
  return a == 0 and p.param.value or a
end

local function run(p, steps)
  for _, s in ipairs(steps) do
    if s.steps then
      for _ = 1, s.times or 1 do run(p, s.steps) end
    else
      local y, x = p.y[s.y.mem].list, s.x and p.y[s.x.mem].list
      local new = {}
      for i = 0, s.y.count - 1 do
        local to = s.y.first + i
        new[to] = s.kind == "mix" and (y[to] * 3 + x[s.x.first + i] * 7
            + p.y[s.w.mem].list[s.w.first + i] * 5 + value_of(p, s.a)) % 1021
          or s.kind == "copy" and x[s.x.first + i] or value_of(p, s.a)
      end
      for to, v in pairs(new) do y[to] = v end
    end
  end
end

local function copy(steps)
  local list = {}
  for i, s in ipairs(steps) do
    list[i] = {}
    for key, v in pairs(s) do list[i][key] = v end
    for _, key in ipairs { "x", "y", "w" } do
      if s[key] then
        list[i][key] = { mem = s[key].mem, input = s[key].input, first = s[key].first,
                         count = s[key].count }
      end
    end
    if s.steps then list[i].steps = copy(s.steps) end
  end
  return list
end

local function issue(p, steps)
  for _, s in ipairs(steps) do
    local a = s.a == 0 and p.param.object or s.a
    if s.kind == "mix" then
      p.mix:launch(1, s.y.count, object_of(p, s.y), object_of(p, s.x), a,
        object_of(p, s.w))
    elseif s.kind == "copy" then
      object_of(p, s.y):copy(object_of(p, s.x))
    elseif s.kind == "fill" then
      object_of(p, s.y):fill(a)
    elseif s.kind == "graph" then
      s.child:replay()
    else
      cg[s.kind](p.counts[s.times + 1], function() issue(p, s.steps) end,
        s.kind == "when" and { form = s.form } or { form = s.form })
    end
  end
end

local function each(steps, visit)
  for _, s in ipairs(steps) do
    visit(s)
    if s.steps then each(s.steps, visit) end
  end
end

local function conditional(steps)
  local found = false
  each(steps, function(s) found = found or s.kind == "times" end)
  return found
end

local function has_bodies(steps)
  local found = false
  each(steps, function(s) found = found or s.steps ~= nil end)
  return found
end

local function new_steps(p, depth)
  local steps = {}
  for i = 1, random(3) do
    local kind = random(depth < 2 and 8 or 5)
    local g = p.graphs and p.graphs[random(math.max(1, #p.graphs))]
    local count = random(N)
    local first = random(N - count + 1)
    local s = { kind = "mix", a = random(0, 9), y = place(p, first, count),
                x = place(p, random(N - count + 1), count),
                w = place(p, random(N - count + 1), count) }
    -- Blocks of a kernel read what others write, and a copy to itself is none.
    if s.y.mem == s.x.mem or s.y.mem == s.w.mem then s.kind = "fill" end
    if kind == 1 then s.kind = "fill" end
    if kind == 2 and s.kind == "mix" then s.kind = "copy" end
    if s.kind == "fill" then s.x = nil end
    if kind == 6 and g and not conditional(g.steps) then
      s = { kind = "graph", steps = copy(g.steps), child = g.object }
    elseif kind >= 7 then
      s = { kind = "times", times = random(0, 2), form = random(2) == 1 and "node" or nil,
            steps = new_steps(p, depth + 1) }
    end
    steps[i] = s
  end
  return steps
end

-- Whether a launch would read what it writes: only reads and writes of the same
-- elements are the same on every device.
local function meets(steps, input, mem)
  local found = false
  each(steps, function(s)
    if s.x then
      local x = s.x.input == input and mem or s.x.mem
      local y = s.y.input == input and mem or s.y.mem
      local w = s.w.input == input and mem or s.w.mem
      found = found or x == y or w == y
    end
  end)
  return found
end

local actions = {
  function(p) -- capture
    local g = { steps = new_steps(p, 1) }
    g.data, g.kept = random(4) == 1, random(3) == 1
    g.object = cg.capture(function() issue(p, g.steps) end, {
      keep_graph = g.kept, order = g.data and "data" or nil })
    g.steps = copy(g.steps)
    p.graphs[#p.graphs + 1] = g
  end,
  function(p, g) -- bind
    local input, mem = random(INPUTS), random(BUFFERS)
    if not g.object.inputs["x" .. input] or meets(g.steps, input, mem) then return end
    local ok, e = pcall(g.object.bind, g.object, { ["x" .. input] = p.y[mem].object })
    if not ok then
      -- Data and predicated branches order nodes by the bytes that they had.
      assert(e.message:find "no edge orders the two" and (g.data or has_bodies(g.steps)),
        tostring(e))
      p.refused = p.refused + 1
      return
    end
    p.bound = p.bound + 1
    each(g.steps, function(s)
      if s.x and s.x.input == input then s.x.mem = mem end
      if s.y and s.y.input == input then s.y.mem = mem end
      if s.w and s.w.input == input then s.w.mem = mem end
    end)
  end,
  function(p, g) -- replay
    local n = random(8) == 1 and 70 or random(2)
    g.object:replay(n)
    for _ = 1, n do run(p, g.steps) end
  end,
  function(p) -- set
    p.param.value = random(9)
    p.param.object:set(p.param.value)
  end,
  function(p, g) -- other memory in one place
    local s = g.steps[1]
    if s.kind ~= "mix" then return end
    local mem = random(BUFFERS)
    if mem == s.y.mem then return end
    local ok, e = pcall(g.object.set_params, g.object, 1,
      { x = object_of(p, { mem = mem, first = s.x.first, count = s.x.count }) })
    assert(ok or (g.data and tostring(e):find "order"), tostring(e))
    if ok and mem ~= s.x.mem then s.x.mem, s.x.input = mem, nil end
  end,
  function(p, g) -- captured again, or given up
    for i, other in ipairs(p.graphs) do
      if other == g then table.remove(p.graphs, i) end
    end
    g.object[random(2) == 1 and "reset" or "release"](g.object)
  end,
  function(p, g) -- another executable
    if g.kept then g.object:instantiate() end
    p.param.value = random(9)
    p.param.object:set(p.param.value)
  end,
}
for _, i in ipairs { 1, 2, 2, 2, 2, 3, 3, 3, 3 } do actions[#actions + 1] = actions[i] end

local total = { bound = 0, refused = 0 }

local function program(seed)
  math.randomseed(seed)
  local p = { y = {}, graphs = {}, counts = {}, mix = cg.kernel(source), bound = 0, refused = 0 }
  p.param = { value = 1, object = cg.param("int32", 1) }
  for b = 1, BUFFERS do
    p.y[b] = { list = {} }
    for i = 1, N do p.y[b].list[i] = b * 10 + i end
    p.y[b].object = b <= INPUTS and cg.input("int32", N, "x" .. b) or cg.zeros("int32", N)
    p.y[b].object:upload(p.y[b].list)
  end
  for i = 0, 2 do p.counts[i + 1] = cg.full("int32", 1, i) end
  actions[1](p)
  for _ = 1, ACTIONS do
    if #p.graphs == 0 then actions[1](p) end
    actions[random(#actions)](p, p.graphs[random(#p.graphs)])
    for b, y in ipairs(p.y) do
      local is, wanted = table.concat(y.object:download(), " "), table.concat(y.list, " ")
      assert(is == wanted, ("buffer %d has %s, not %s"):format(b, is, wanted))
    end
  end
  total.bound, total.refused = total.bound + p.bound, total.refused + p.refused
end

describe("random programs with inputs", function()
  teardown(device.nothing_alive)

  it("leave what the model leaves", function()
    for seed = SEED, SEED + PROGRAMS - 1 do
      local ok, e = pcall(program, seed)
      assert(ok, ("CGRAPHLUA_BIND_SEED=%d: %s"):format(seed, tostring(e)))
      if seed % 64 == 0 then collectgarbage() end
    end
    assert.is_true(total.bound > PROGRAMS)
    assert.is_true(total.refused > 0)
  end)
end)
