-- Random programs of sets, changes, captures and replays beside a model that
-- runs every step with what its parameters are at the replay, or, where they
-- follow a buffer, with what that holds then.
-- CGRAPHLUA_PARAM_PROGRAMS sets how many programs (300), CGRAPHLUA_PARAM_SEED
-- the first one's seed (1).

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local PROGRAMS = tonumber(os.getenv "CGRAPHLUA_PARAM_PROGRAMS") or 300
local SEED = tonumber(os.getenv "CGRAPHLUA_PARAM_SEED") or 1
local BUFFERS, PARAMS, ACTIONS = 3, 4, 14

local source = [[
extern "C" __global__ void mix(int *y, int a, int b) { *y = (*y * 3 + a * 7 + b) % 1021; }
struct pair { int a, b; };
extern "C" __global__ void mix_pair(int *y, pair p) { *y = (*y * 3 + p.a * 7 + p.b) % 1021; }
]]

local random = math.random

-- A parameter's place: a number, or the index of a parameter.
local function place()
  return random(3) == 1 and { number = random(99) } or { param = random(PARAMS) }
end

local function value_of(p, at)
  return at.number or (at.follows and p.y[at.follows].value) or p[at.param].value
end

-- Places are what their parameters follow at the call.  A fill does not write to
-- what its value follows.
local function settle(p, steps)
  for _, s in ipairs(steps) do
    for _, name in ipairs { "a", "b" } do
      local at = s[name]
      if at and at.param then at.follows = p[at.param].follows end
    end
    if s.kind == "fill" and s.a.follows == s.y then s.a = { number = 7 } end
    if s.kind == "when" or s.kind == "times" then settle(p, s.steps) end
  end
end

-- What a step does to the model's buffers.
local function run(p, steps)
  for _, s in ipairs(steps) do
    if s.off then
      s = { kind = "off" }
    end
    if s.kind == "mix" then
      p.y[s.y].value = (p.y[s.y].value * 3 + value_of(p, s.a) * 7 + value_of(p, s.b)) % 1021
    elseif s.kind == "pair" then
      p.y[s.y].value = (p.y[s.y].value * 3 + p.pair.value.a * 7 + p.pair.value.b) % 1021
    elseif s.kind == "fill" then
      p.y[s.y].value = value_of(p, s.a)
    elseif s.kind == "graph" then
      run(p, s.steps)
    elseif s.kind == "when" and s.count > 0 then
      run(p, s.steps)
    elseif s.kind == "times" then
      for _ = 1, s.count do run(p, s.steps) end
    end
  end
end

local function copy(steps)
  local list = {}
  for i, s in ipairs(steps) do
    list[i] = {}
    for key, x in pairs(s) do list[i][key] = x end
    if s.steps then list[i].steps = copy(s.steps) end
  end
  return list
end

-- What goes where the place is.
local function arg_of(p, at)
  return at.number or p[at.param].object
end

local function issue(p, steps)
  for _, s in ipairs(steps) do
    if s.kind == "mix" then
      p.mix:launch(1, 1, p.y[s.y].object, arg_of(p, s.a), arg_of(p, s.b))
    elseif s.kind == "pair" then
      p.mix_pair:launch(1, 1, p.y[s.y].object, p.pair.object)
    elseif s.kind == "fill" then
      p.y[s.y].object:fill(arg_of(p, s.a))
    elseif s.kind == "graph" then
      s.child:replay()
    elseif s.kind == "when" then
      cg.when(p.counts[s.count + 1], function() issue(p, s.steps) end, nil, { form = s.form })
    else
      cg.times(p.counts[s.count + 1], function() issue(p, s.steps) end, { form = s.form })
    end
  end
end

local function has(steps, test)
  for _, s in ipairs(steps) do
    if test(s) or (s.steps and has(s.steps, test)) then return true end
  end
end

-- A graph that may be a child: none of its nodes is off or conditional.
local function any_child(p)
  local g = p.graphs[random(#p.graphs)]
  if g and not has(g.steps, function(s) return s.off or s.kind == "when" or s.kind == "times" end)
  then
    return g
  end
end

local function new_steps(p, depth)
  local steps = {}
  for i = 1, random(3) do
    local kind = random(depth < 2 and 7 or 4)
    local g = kind == 5 and #p.graphs > 0 and any_child(p)
    if g then
      steps[i] = { kind = "graph", steps = copy(g.steps), child = g.object }
    elseif kind >= 6 then
      steps[i] = { kind = kind == 6 and "when" or "times", count = random(0, 2),
                   form = random(2) == 1 and "node" or nil, steps = new_steps(p, depth + 1) }
    elseif kind == 1 then
      steps[i] = { kind = "fill", y = random(BUFFERS), a = place() }
    elseif kind == 2 then
      steps[i] = { kind = "pair", y = random(BUFFERS) }
    else
      steps[i] = { kind = "mix", y = random(BUFFERS), a = place(), b = place() }
    end
  end
  return steps
end

-- The steps of a graph whose nodes are known: those before the first that may be
-- several nodes.
local function known(g)
  local n = 0
  for i, s in ipairs(g.steps) do
    if s.kind == "when" or s.kind == "times" then break end
    n = i
  end
  return n
end

local actions = {
  function(p) -- capture
    local g = { steps = new_steps(p, 1) }
    settle(p, g.steps)
    local captured = copy(g.steps)
    g.object = cg.capture(function() issue(p, g.steps) end, {
      keep_graph = random(3) == 1 or nil, order = random(4) == 1 and "data" or nil })
    g.steps = captured
    p.graphs[#p.graphs + 1] = g
  end,
  function(p) -- set
    local param, value = p[random(PARAMS)], random(99)
    assert(param.object:get() == (param.follows and p.y[param.follows] or param).value)
    assert(pcall(param.object.set, param.object, value) == not param.follows)
    if not param.follows then param.value = value end
  end,
  function(p) -- follow
    local param = p[random(PARAMS)]
    param.follows = random(3) > 1 and random(BUFFERS) or nil
    param.object:follow(param.follows and p.y[param.follows].object)
  end,
  function(p) -- set a struct
    p.pair.value = { a = random(99), b = random(99) }
    p.pair.object:set(p.pair.value)
  end,
  function(p, g) -- set by name
    local function sets(at)
      return at and at.param == 1 and not at.follows
    end
    local value = { ["p1"] = random(99) }
    if p[1].follows then
      assert(not pcall(g.object.set, g.object, value))
    elseif has(g.steps, function(s) return sets(s.a) or sets(s.b) end) then
      p[1].value = value["p1"]
      g.object:set(value)
    end
  end,
  function(p, g) -- replay
    local n = random(4) == 1 and (random(3) == 1 and 1100 or random(70)) or random(2)
    g.object:replay(n)
    for _ = 1, n do run(p, g.steps) end
  end,
  function(_, g) -- a number in the place of what is there
    local i = known(g)
    i = i > 0 and random(i) or 0
    local s = g.steps[i]
    if s and s.kind == "fill" and s.a.follows then
      assert(not pcall(g.object.set_params, g.object, i, { value = 3 }))
    elseif s and s.kind == "fill" then
      s.a = { number = random(99) }
      g.object:set_params(i, { value = s.a.number })
    elseif s and s.kind == "mix" then
      local name = random(2) == 1 and "a" or "b"
      s[name] = { number = random(99) }
      g.object:set_params(i, { [name] = s[name].number })
    end
  end,
  function(_, g) -- off and on
    local i = known(g)
    i = i > 0 and random(i) or 0
    local s = g.steps[i]
    if s and s.kind ~= "graph" then
      s.off = not s.off
      g.object:set_enabled(i, not s.off)
    end
  end,
  function(p, g) -- captured again, or given up
    for i, other in ipairs(p.graphs) do
      if other == g then table.remove(p.graphs, i) end
    end
    g.object[random(2) == 1 and "reset" or "release"](g.object)
  end,
  function(p) -- read at the call
    local steps = new_steps(p, 3)
    settle(p, steps)
    issue(p, steps)
    run(p, steps)
  end,
}
-- More of what matters most.
for _, i in ipairs { 1, 2, 2, 2, 3, 4, 6, 6, 6, 6 } do actions[#actions + 1] = actions[i] end

local function program(seed)
  math.randomseed(seed)
  local p = { y = {}, graphs = {}, counts = {}, mix = cg.kernel(source, "mix") }
  p.mix_pair = cg.kernel(source, "mix_pair")
  p.pair = { value = { a = 1, b = 2 } }
  p.pair.object = p.mix_pair:param(2, p.pair.value)
  for i = 1, PARAMS do
    p[i] = { value = i }
    p[i].object = cg.param("int32", i, "p" .. i)
  end
  for i = 1, BUFFERS do
    p.y[i] = { value = i, object = cg.full("int32", 1, i) }
  end
  for i = 0, 2 do p.counts[i + 1] = cg.full("int32", 1, i) end
  actions[1](p)
  for _ = 1, ACTIONS do
    if #p.graphs == 0 then actions[1](p) end
    actions[random(#actions)](p, p.graphs[random(#p.graphs)])
    for i, y in ipairs(p.y) do
      assert(y.object:item() == y.value, ("buffer %d has %s, not %d"):format(i,
        tostring(y.object:item()), y.value))
    end
  end
end

describe("random programs with parameters", function()
  teardown(device.nothing_alive)

  it("leave what the model leaves", function()
    for seed = SEED, SEED + PROGRAMS - 1 do
      local ok, e = pcall(program, seed)
      assert(ok, ("CGRAPHLUA_PARAM_SEED=%d: %s"):format(seed, tostring(e)))
      if seed % 64 == 0 then collectgarbage() end
    end
  end)
end)
