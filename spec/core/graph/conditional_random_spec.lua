-- Random nests of branches and loops over a few integers, beside a model in
-- plain Lua: what a program does outside a capture, and what its graphs of every
-- form do in replays from different numbers, is what the model does; every loop
-- turned as often as the model's, and was stopped where the model's was.
-- CGRAPHLUA_CONDITIONAL_PROGRAMS sets how many programs (100; the full count is
-- 5000), CGRAPHLUA_CONDITIONAL_SEED the first one's seed (1).

local cg = require "cgraphlua"

local PROGRAMS = tonumber(os.getenv "CGRAPHLUA_CONDITIONAL_PROGRAMS") or 100
local SEED = tonumber(os.getenv "CGRAPHLUA_CONDITIONAL_SEED") or 1
local NUMBERS, MODULUS, DEPTH = 5, 7, 4

local source = [[
#define WRAP(v) (((v) % 7 + 7) % 7 - 1)
extern "C" __global__ void set(int *x, int a) { *x = a; }
extern "C" __global__ void add(int *x, int a) { *x = WRAP(*x + a); }
extern "C" __global__ void mix(int *x, const int *y, int a) { *x = WRAP(*x * a + *y); }
extern "C" __global__ void less(int *x, const int *y, int a) { *x = *y < a; }
extern "C" __global__ void ramp(int *t, const int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) t[i] = *x + i;
}
extern "C" __global__ void ends(int *x, const int *t, int n) { *x = WRAP(t[0] + t[n - 1]); }]]

local kernels

-- As the kernels wrap: from -1 to 5, so that branches see a negative number and
-- one that no body has.
local function wrap(v) return v % MODULUS - 1 end

-- ---- programs --------------------------------------------------------------

-- A statement: { kind, number, ... }; a body is a list of them.
local random, loops
local allowed -- the numbers that the branch of a fork may use

local function any_number() return allowed[random(#allowed)] end

local new_body

local function some_bodies(depth, n)
  local list = {}
  for i = 1, n do list[i] = new_body(depth) end
  return list
end

local function new_loop(kind, depth)
  loops = loops + 1
  return { kind = kind, x = any_number(), max = random(4), id = loops, body = new_body(depth) }
end

local makers = {
  function() return { kind = "set", x = any_number(), a = random(7) - 2 } end,
  function() return { kind = "add", x = any_number(), a = random(5) - 2 } end,
  function() return { kind = "mix", x = any_number(), y = any_number(), a = random(3) } end,
  function() return { kind = "less", x = any_number(), y = any_number(), a = random(6) - 2 } end,
  function() return { kind = "copy", x = any_number(), y = any_number() } end,
  -- a buffer that holds a number across other statements
  function(depth)
    return { kind = "keep", x = any_number(), y = any_number(), n = 1000 * random(400),
             body = new_body(depth), release = random(2) == 1 }
  end,
  -- a buffer from before a loop, which the capture of its body gives back
  function(depth)
    local s = new_loop("hand", depth)
    s.y, s.z, s.n = any_number(), any_number(), 1000 * random(400)
    return s
  end,
  -- two streams beside each other, each with numbers of its own
  function(depth)
    local all, left, right = allowed, {}, {}
    for i, number in ipairs(all) do
      local side = i <= #all / 2 and left or right
      side[#side + 1] = number
    end
    if not left[1] then return { kind = "add", x = any_number(), a = 1 } end
    local s = { kind = "fork" }
    allowed = left
    s.left = new_body(depth)
    allowed = right
    s.right = new_body(depth)
    allowed = all
    return s
  end,
  function(depth)
    return { kind = "when", x = any_number(), bodies = some_bodies(depth, random(2)) }
  end,
  function(depth)
    return { kind = "switch", x = any_number(), bodies = some_bodies(depth, random(4)),
             otherwise = random(2) == 1 and new_body(depth) or nil }
  end,
  function(depth) return new_loop("loop", depth) end,
  function(depth) return new_loop("times", depth) end,
}

function new_body(depth)
  local body = {}
  for i = 1, depth == 1 and 3 + random(4) or random(0, depth < DEPTH and 3 or 2) do
    body[i] = makers[random(depth < DEPTH and #makers or 5)](depth + 1)
  end
  return body
end

-- ---- the model -------------------------------------------------------------

local run_body

local run = {
  set = function(s, x) x[s.x] = s.a end,
  add = function(s, x) x[s.x] = wrap(x[s.x] + s.a) end,
  mix = function(s, x) x[s.x] = wrap(x[s.x] * s.a + x[s.y]) end,
  less = function(s, x) x[s.x] = x[s.y] < s.a and 1 or 0 end,
  copy = function(s, x) x[s.x] = x[s.y] end,
  keep = function(s, x, turned)
    local sum = 2 * x[s.y] + s.n - 1
    run_body(s.body, x, turned)
    x[s.x] = wrap(sum)
  end,
  hand = function(s, x, turned)
    local sum, count = 2 * x[s.y] + s.n - 1, math.max(x[s.x], 0)
    for _ = 1, math.min(count, s.max) do
      x[s.z] = wrap(sum)
      run_body(s.body, x, turned)
    end
    turned[s.id] = math.min(count, s.max) .. tostring(count > s.max)
  end,
  fork = function(s, x, turned)
    run_body(s.left, x, turned)
    run_body(s.right, x, turned)
  end,
  when = function(s, x, turned)
    local body = s.bodies[x[s.x] ~= 0 and 1 or 2]
    if body then run_body(body, x, turned) end
  end,
  switch = function(s, x, turned)
    local body = s.bodies[x[s.x] + 1] or s.otherwise
    if body then run_body(body, x, turned) end
  end,
  loop = function(s, x, turned)
    local turns = 0
    while x[s.x] ~= 0 and turns < s.max do
      turns = turns + 1
      run_body(s.body, x, turned)
    end
    turned[s.id] = turns .. tostring(x[s.x] ~= 0)
  end,
  times = function(s, x, turned)
    local count = math.max(x[s.x], 0)
    for _ = 1, math.min(count, s.max) do run_body(s.body, x, turned) end
    turned[s.id] = math.min(count, s.max) .. tostring(count > s.max)
  end,
}

function run_body(body, x, turned)
  for _, s in ipairs(body) do run[s.kind](s, x, turned) end
end

-- ---- the device ------------------------------------------------------------

local issue_body
local wanted_form -- of the graph that is captured

-- Statements that become kernels, and bodies that are predicated when they are
-- asked to.
local kernels_alone = { set = true, add = true, mix = true, less = true, copy = true }
local predicable = {}

local function all_predicable(list)
  for _, s in ipairs(list or {}) do
    if not kernels_alone[s.kind] and not (predicable[s.kind] and predicable[s.kind](s)) then
      return false
    end
  end
  return true
end

local function branches_predicable(s)
  for _, body in ipairs(s.bodies) do
    if not all_predicable(body) then return false end
  end
  return all_predicable(s.otherwise)
end

predicable = {
  keep = function(s) return all_predicable(s.body) end,
  fork = function(s) return all_predicable(s.left) and all_predicable(s.right) end,
  when = branches_predicable,
  switch = branches_predicable,
}

-- The options of a conditional: predicated where that is possible.
local function options(possible, max)
  return { form = (wanted_form ~= "predicated" or possible) and wanted_form or nil, max = max }
end

-- Streams for forks.  A capture, or a body, has a stream to its end; then others
-- may have it.
local free, taken

local function take_stream()
  local stream = table.remove(free) or cg.stream()
  taken[#taken + 1] = stream
  return stream
end

local function issuer(body, x, made)
  return body and function()
    local before = #taken
    issue_body(body, x, made)
    for i = #taken, before + 1, -1 do
      free[#free + 1], taken[i] = taken[i], nil
    end
  end
end

local function launch(name, ...) kernels:kernel(name):launch(1, 1, ...) end

local function new_ramp(x, n)
  local t = cg.buffer("int32", n)
  kernels:kernel "ramp":launch(n / 1000, 1000, t, x, n)
  return t
end

local issue = {
  set = function(s, x) launch("set", x[s.x], s.a) end,
  add = function(s, x) launch("add", x[s.x], s.a) end,
  mix = function(s, x) launch("mix", x[s.x], x[s.y], s.a) end,
  less = function(s, x) launch("less", x[s.x], x[s.y], s.a) end,
  copy = function(s, x) if s.x ~= s.y then x[s.x]:copy(x[s.y]) end end,
  keep = function(s, x, made)
    local t = new_ramp(x[s.y], s.n)
    issue_body(s.body, x, made)
    launch("ends", x[s.x], t, s.n)
    if s.release then t:release() end
  end,
  hand = function(s, x, made)
    local t = new_ramp(x[s.y], s.n)
    made[s.id] = cg.times(x[s.x], function()
      launch("ends", x[s.z], t, s.n)
      if cg.is_current_stream_capturing() then t:release() end
      issue_body(s.body, x, made)
    end, options(all_predicable(s.body), s.max))
  end,
  fork = function(s, x, made)
    local main, side = cg.current_stream(), take_stream()
    side:wait(main)
    side:use(function() issue_body(s.left, x, made) end)
    issue_body(s.right, x, made)
    main:wait(side)
  end,
  when = function(s, x, made)
    cg.when(x[s.x], issuer(s.bodies[1], x, made), issuer(s.bodies[2], x, made),
      options(branches_predicable(s)))
  end,
  switch = function(s, x, made)
    local list = {}
    for i, body in ipairs(s.bodies) do list[i] = issuer(body, x, made) end
    cg.switch(x[s.x], list, issuer(s.otherwise, x, made), options(branches_predicable(s)))
  end,
  loop = function(s, x, made)
    made[s.id] = cg.loop(x[s.x], issuer(s.body, x, made),
      options(all_predicable(s.body), s.max))
  end,
  times = function(s, x, made)
    made[s.id] = cg.times(x[s.x], issuer(s.body, x, made),
      options(all_predicable(s.body), s.max))
  end,
}

function issue_body(body, x, made)
  for _, s in ipairs(body) do issue[s.kind](s, x, made) end
end

-- ---- both ------------------------------------------------------------------

local function compare(x, made, model, turned, what)
  for i = 1, NUMBERS do
    local got = x[i]:download()[1]
    assert(got == model[i], ("%s: number %d is %d instead of %d"):format(what, i, got, model[i]))
  end
  for id = 1, loops do
    local got = made[id] and made[id]:turns() .. tostring(made[id]:exhausted()) or "0false"
    local wanted = turned[id] or "0false"
    assert(got == wanted, ("%s: loop %d: %s instead of %s"):format(what, id, got, wanted))
  end
end

-- Numbers of a fresh start, in the model and on the device.
local function start(x)
  local model = {}
  for i = 1, NUMBERS do
    model[i] = random(MODULUS) - 2
    x[i]:upload { model[i] }
  end
  return model
end

local function check(seed)
  math.randomseed(seed)
  random, loops, allowed = math.random, 0, {}
  for i = 1, NUMBERS do allowed[i] = i end
  local body, x = new_body(1), {}
  local all = cg.zeros("int32", NUMBERS)
  for i = 1, NUMBERS do x[i] = all:view(i, 1) end
  local turned, made = {}, {}
  local model = start(x)
  run_body(body, model, turned)
  free, taken = {}, {}
  local program = issuer(body, x, made)
  program()
  -- An inner loop that ran in an earlier turn of the outer one has been made
  -- anew since, so the last one made is compared.
  compare(x, made, model, turned, "outside a capture")
  for i, form in ipairs { "automatic", "node", "predicated" } do
    wanted_form, turned, made = form, {}, {}
    local g = cg.capture(issuer(body, x, made))
    for replay = 1, i == 1 and 3 or 2 do
      model = start(x)
      run_body(body, model, turned)
      g:replay()
      compare(x, made, model, turned, form .. ", replay " .. replay)
    end
    g:reset()
  end
  wanted_form = nil
end

describe("random branches and loops", function()
  it("do eagerly and captured what a model in Lua does", function()
    kernels = cg.module(source)
    for seed = SEED, SEED + PROGRAMS - 1 do
      local ok, e = pcall(check, seed)
      assert(ok, ("CGRAPHLUA_CONDITIONAL_SEED=%d: %s"):format(seed, tostring(e)))
    end
  end)
end)
