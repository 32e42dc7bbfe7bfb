-- bench/run: graph work from plain C (floor.c), from Lua, and, as it was told
-- by peers.py, from Python.  Run by bench/run:
--   cgraphlua ours.lua FLOOR.so RESULTS-FOLDER [--device D] [--quick] [PEER=FILE...]
-- C and Lua take turns, round by round; ratios are the medians of the rounds'
-- own.  Times are in microseconds.  The bars are for a GPU, whose driver takes
-- longer than the host device does.

local ffi = require "ffi"
local cg = require "cgraphlua"

local here = arg[0]:match "^.*/" or "./"
local measure = dofile(here .. "measure.lua")
local median, ratio, rounds, number = measure.median, measure.ratio, measure.rounds, measure.number

-- Command line ------------------------------------------------------------------

local library, folder, given = arg[1], arg[2], measure.arguments(3)
local info, on_gpu, quick, peers = given.info, given.on_gpu, given.quick, given.peers
local seconds = quick and 0.05 or 0.7

-- The floor -----------------------------------------------------------------------

ffi.cdef [[
double floor_now(void);
const char *floor_open(void *get_proc, void *ticks, void *spins_graph, uint64_t buffer,
                       int spin_count);
void floor_prepare(const char *shape, int n);
void floor_drop(void);
double floor_capture(int n);
double floor_whole(int n);
double floor_instantiate(void);
double floor_first(void);
double floor_call(int count);
double floor_calls(int count);
double floor_sync(int count);
double floor_stream(int count);
double floor_loop(void *loop, int count);
double floor_set_params(int count);
double floor_set_call(int count);
double floor_alloc(int count);
double floor_eager(int count);
double floor_eager_done(int count);
const char *floor_open_control(void *get_proc, void *sets, void *turns);
void floor_prepare_branches(int n, uint64_t flag);
void floor_prepare_loop(int kernels, uint64_t left, int turns);
int cgl_context_open(const char *device, void **context);
const void *cgl_context_driver(const void *context);
]]
local floor = ffi.load(library)

-- cuGetProcAddress is the third row of the driver table.
local function get_proc()
  local context = ffi.new "void *[1]"
  assert(ffi.C.cgl_context_open(info.device, context) == 0)
  return ffi.cast("void *const *", ffi.C.cgl_context_driver(context[0]))[2]
end

local SPINS = on_gpu and 20000 or 500 -- some 45 us of a GPU
local module = cg.module [==[
extern "C" __global__ void tick(float *x, float a)
{
  if (threadIdx.x == 0)
    x[0] += a;
}

extern "C" __global__ void spin(float *x, int n)
{
  float v = x[threadIdx.x];
  for (int i = 0; i < n; i++)
    v = v * 1.0001f + 0.5f;
  x[threadIdx.x] = v;
}
]==]
local tick, spin = module:kernel "tick", module:kernel "spin"
local data, pinned = cg.zeros("float", 2 ^ 18), cg.pinned("float", 64)
local near, far = data:view(1, 64), data:view(1025, 64)
local lanes = {}
for i = 1, 32 do
  lanes[i] = data:view((i - 1) * 1024 + 1, 32)
end

local stream = cg.stream()
local sides = {}
for i = 1, 32 do
  sides[i] = cg.stream()
end

do
  local template = { keep_graph = true }
  local ticks = cg.capture(function() tick:launch(1, 32, data, 0) end, template)
  local spins = cg.capture(function() spin:launch(1, 32, data, 1) end, template)
  local lacking = floor.floor_open(get_proc(), ticks:raw_cuda_graph(), spins:raw_cuda_graph(),
    data:address(), SPINS)
  if lacking ~= nil then
    error("the driver has no " .. ffi.string(lacking), 0)
  end
end

-- The same from Lua -----------------------------------------------------------------

local now = function()
  return floor.floor_now()
end

local overhead
do
  local list = {}
  for i = 1, 5000 do
    local start = now()
    list[i] = now() - start
  end
  overhead = median(list)
end

local shapes = {
  line = function() tick:launch(1, 32, data, 1) end,
  memset = function()
    near:fill(1)
    tick:launch(1, 32, data, 1)
  end,
  copy = function()
    far:copy(near)
    tick:launch(1, 32, data, 1)
  end,
  pinned = function()
    near:copy(pinned)
    tick:launch(1, 32, data, 1)
  end,
  spins = function(i) spin:launch(1, 32, lanes[i], SPINS) end,
}

local function issue(shape, n)
  if shape == "branches" then
    local fork = cg.current_stream():record()
    for i = 1, n do
      sides[i]:wait(fork)
      sides[i]:use(shapes.spins, i)
    end
    for i = 1, n do
      stream:wait(sides[i])
    end
    return
  end
  local one = shapes[shape]
  for i = 1, n do
    one(i)
  end
end

-- Captures on `stream`, which is current; the region form would use its own.
local function captured(shape, n, keep, order)
  local graph = cg.graph { keep_graph = keep, order = order }
  graph:capture_begin()
  issue(shape, n)
  graph:capture_end()
  return graph
end

local graph -- that the rows below measure
local amount = cg.param("float", 1)
local live -- as the graph, with a parameter in its first kernel
local samples = {}

local ours = {}

function ours.capture(n)
  local made = cg.graph { keep_graph = true }
  made:capture_begin()
  local start = now()
  for _ = 1, n do
    tick:launch(1, 32, data, 1)
  end
  local took = now() - start
  made:capture_end()
  made:release()
  return took / n
end

function ours.whole(n)
  local start = now()
  local made = cg.graph()
  made:capture_begin()
  for _ = 1, n do
    tick:launch(1, 32, data, 1)
  end
  made:capture_end()
  local took = now() - start
  stream:synchronize()
  made:release()
  return took
end

function ours.region(n)
  local start = now()
  local made = cg.capture(function()
    for _ = 1, n do
      tick:launch(1, 32, data, 1)
    end
  end)
  local took = now() - start
  stream:synchronize()
  made:release()
  return took
end

-- The clock is read once more: this is no loop that LuaJIT has compiled, where
-- reading it takes its least.
function ours.first(n)
  local made = captured("line", n)
  stream:synchronize()
  local before = now()
  local start = now()
  made:replay()
  local took = now() - start - (start - before)
  stream:synchronize()
  made:release()
  return took
end

function ours.instantiate(kept)
  local start = now()
  kept:instantiate()
  local took = now() - start
  stream:synchronize()
  return took
end

function ours.call(count)
  for i = 1, count do
    stream:synchronize()
    local start = now()
    graph:replay()
    samples[i] = now() - start - overhead
  end
  stream:synchronize()
  samples[count + 1] = nil
  return median(samples)
end

function ours.calls(count)
  stream:synchronize()
  local start = now()
  for _ = 1, count do
    graph:replay()
  end
  local took = now() - start
  stream:synchronize()
  return took / count
end

function ours.sync(count)
  stream:synchronize()
  for i = 1, count do
    local start = now()
    graph:replay()
    stream:synchronize()
    samples[i] = now() - start - overhead
  end
  samples[count + 1] = nil
  return median(samples)
end

function ours.stream(count)
  stream:synchronize()
  local start = now()
  for _ = 1, count do
    graph:replay()
  end
  stream:synchronize()
  return (now() - start) / count
end

function ours.loop(count)
  stream:synchronize()
  local start = now()
  graph:replay(count)
  stream:synchronize()
  return (now() - start) / count
end

-- Another number for the first kernel, and nothing else.
function ours.set_params(count)
  local params = {}
  local start = now()
  for i = 1, count do
    params[2] = i
    graph:set_params(1, params)
  end
  return (now() - start) / count
end

-- Another number for the first kernel by a parameter, and a replay.
function ours.set_call(count)
  for i = 1, count do
    stream:synchronize()
    local start = now()
    amount:set(i)
    live:replay()
    samples[i] = now() - start - overhead
  end
  stream:synchronize()
  samples[count + 1] = nil
  return median(samples)
end

-- Another buffer, which the graph has to keep, and to let the last one go.
function ours.set_buffer(count)
  local two = { cg.buffer("float", 64), cg.buffer("float", 64) }
  local params = {}
  local start = now()
  for i = 1, count do
    params[1] = two[i % 2 + 1]
    graph:set_params(1, params)
  end
  local took = now() - start
  graph:set_params(1, { data })
  return took / count
end

function ours.alloc(count)
  local start = now()
  for _ = 1, count do
    cg.buffer("float", 2 ^ 18):release()
  end
  return (now() - start) / count
end

function ours.eager(count)
  stream:synchronize()
  local start = now()
  for _ = 1, count do
    tick:launch(1, 32, data, 1)
  end
  local took = now() - start
  stream:synchronize()
  return took / count
end

function ours.eager_done(count)
  stream:synchronize()
  local start = now()
  for _ = 1, count do
    tick:launch(1, 32, data, 1)
  end
  stream:synchronize()
  return (now() - start) / count
end

-- The table ------------------------------------------------------------------------

local out = {}
local function say(...)
  local text = string.format(...)
  out[#out + 1] = text
  print(text)
  io.flush()
end

local missed = 0
local function verdict(text, met)
  missed = missed + (met and 0 or 1)
  return text .. (met and " met" or " MISSED")
end

local function heading(title)
  local names = {}
  for i, peer in ipairs(peers) do
    names[i] = string.format("%9s", peer.name)
  end
  say("\n%-42s %9s %9s %6s %s  bar", title, "C", "Lua", "ratio", table.concat(names, " "))
end

-- One line: the rounds of C and of Lua (either may be missing), the bar on the
-- ratio (at most), a bar of its own on Lua's time (at most) and how many times
-- faster than each peer it has to be.
local function row(key, label, c, lua, bars)
  bars = bars or {}
  local r = c and lua and ratio(lua, c)
  local mine = lua and median(lua)
  local columns, words = {}, {}
  for i, peer in ipairs(peers) do
    columns[i] = string.format("%9s", number(peer[key]))
  end
  if bars.ratio and on_gpu then
    words[#words + 1] = verdict(string.format("<= %.2f x", bars.ratio), r <= bars.ratio)
  end
  if bars.most and on_gpu then
    words[#words + 1] = verdict(string.format("<= %.2f us", bars.most), mine <= bars.most)
  end
  for _, peer in ipairs(peers) do
    if bars.faster and peer[key] then
      words[#words + 1] = verdict(string.format("%.1f x %s", bars.faster, peer.name),
        mine * bars.faster <= peer[key])
    end
  end
  say("%-42s %9s %9s %6s %s  %s", label, number(c and median(c)), number(mine),
    r and string.format("%.3f", r) or "-", table.concat(columns, " "), table.concat(words, ", "))
end

local function prepare(shape, n)
  collectgarbage()
  floor.floor_prepare(shape, n)
  graph = captured(shape, n)
  ours.stream(3)
end

local function drop()
  floor.floor_drop()
  graph:release()
  graph = nil
end

-- How often a graph of n kernels is launched for one result.
local function often(n, most)
  return math.max(quick and 3 or 10, math.min(most, math.floor(20000 / n)))
end

local function lines()
  for _, n in ipairs { 1, 10, 100, 1000, 10000 } do
    heading(string.format("%d kernel%s in a line", n, n == 1 and "" or "s"))
    local key = "line." .. n .. "."
    local function pair(name, label, bars, floor_name, a, b)
      local c, lua = rounds(seconds, {
        function() return floor["floor_" .. (floor_name or name)](a) end,
        function() return ours[name](b or a) end,
      })
      row(key .. name, label, c, lua, bars)
    end
    pair("capture", "capture, per operation", n == 1000 and { most = 0.40 }, nil, n)
    pair("whole", "capture and instantiate",
      n == 100 and { ratio = 1.4, faster = 2.5 }, nil, n)
    local region = rounds(seconds / 2, { function() return ours.region(n) end })
    row(key .. "region", "the same as a region, cg.capture(fn)", nil, region)
    prepare("line", n)
    local kept = captured("line", n, true)
    local c, lua = rounds(seconds, {
      function() return floor.floor_instantiate() end,
      function() return ours.instantiate(kept) end,
    })
    row(key .. "instantiate", "instantiate", c, lua)
    kept:release()
    if n <= 1000 then
      local first, mine = rounds(seconds, {
        function() return floor.floor_first() end,
        function() return ours.first(n) end,
      })
      row(key .. "first", "first replay, the call", first, mine, n == 100 and { ratio = 1.1 })
    end
    pair("call", "g:replay(), the call alone", n == 1 and { ratio = 1.05 }, nil, often(n, 200))
    if n <= 100 then
      pair("calls", "g:replay(), 50 calls in a row", nil, nil, 50)
    end
    pair("sync", "g:replay() and synchronize", n == 1 and { ratio = 1.02 }, nil, often(n, 200))
    pair("stream", "g:replay() back to back, until done", n == 1 and { ratio = 1.02 }, nil,
      often(n, 1000))
    -- Where a C loop of cuGraphLaunch takes 1.5 us.
    pair("loop", "g:replay(n) in one call, until done", n == 1 and { most = 0.55, ratio = 1.01 },
      "stream", often(n, 1000))
    pair("set_params", "another number for one kernel", nil, nil, 1000)
    live = cg.graph()
    live:capture_begin()
    tick:launch(1, 32, data, amount)
    issue("line", n - 1)
    live:capture_end()
    pair("set_call", "a parameter set and g:replay(), both calls", nil, nil, often(n, 200))
    live:release()
    pair("set_buffer", "another buffer for one kernel", nil, "set_params", 1000)
    drop()
  end
end

local function others()
  heading "Other shapes, one replay of many, until done"
  -- With a bar, ours is the plain sequence in data order.
  local function pair(shape, n, label, count, bars)
    prepare(shape, n)
    if bars then
      graph:release()
      graph = captured("spins", n, false, "data")
    end
    local c, lua = rounds(seconds, {
      function() return floor.floor_stream(count) end,
      function() return ours.stream(count) end,
    })
    row(bars and "data" or shape, label, c, lua, bars)
    drop()
  end
  pair("memset", 1, "a memset and a kernel", 500)
  pair("copy", 1, "a copy on the device and a kernel", 500)
  pair("pinned", 1, "a copy from pinned memory and a kernel", 500)
  pair("spins", 32, "32 long kernels in a line", 5)
  pair("branches", 32, "32 long kernels as branches", 5)
  pair("branches", 32, "32 long kernels in data order", 5, { ratio = 1.15 })

  heading "Without a graph"
  local function plain(name, label, count, bars)
    local c, lua = rounds(seconds, {
      function() return floor["floor_" .. name](count) end,
      function() return ours[name](count) end,
    })
    row(name, label, c, lua, bars)
  end
  plain("eager", "k:launch(...), the call", 500, { ratio = 1.10 })
  plain("eager_done", "k:launch(...) in a row, until done", 2000)
  plain("alloc", "1 MiB allocated and freed", 500)
end

-- Whole programs -----------------------------------------------------------------------

-- The time of one call of fn(count), by the difference of two counts.
local function slope(fn, few, many)
  fn(few)
  local list = {}
  for i = 1, quick and 1 or 5 do
    list[i] = (measure.time(function() fn(many) end) - measure.time(function() fn(few) end))
      / (many - few)
  end
  return median(list)
end

-- What memory moves at, in GB/s read and written, by the ways there are to copy
-- so many bytes, `off` bytes into the one buffer and `other` into the other:
-- there and back, so that each copy waits for the last.  The kernel copies
-- multiples of 16 bytes at multiples of 16 alone.
local float4 = cg.kernel [=[
extern "C" __global__ void float4_copy(const unsigned char *from, unsigned char *to,
                                       long long n)
{
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    ((float4 *)to)[i] = ((const float4 *)from)[i];
}]=]

-- GB/s of `moved` bytes by fn, eagerly and in a graph, both many times over.
local function rates_of(moved, many, fn)
  local function rate(run)
    return moved / (slope(run, 1, quick and 2 or 11) / many) * 1e-3
  end
  local all = cg.capture(function()
    for _ = 1, many do fn() end
  end)
  return rate(function(times)
    for _ = 1, times * many do fn() end
    cg.synchronize()
  end), rate(function(times)
    all:replay(times)
    cg.synchronize()
  end)
end

local function copy_rates(bytes, off, other)
  local room = bytes + math.max(off, other)
  local a, b = cg.buffer("uint8", room), cg.buffer("uint8", room)
  a:fill(15)
  b:fill(25)
  local x, y = a:view(off + 1, bytes), b:view(other + 1, bytes)
  local many = math.max(1, math.min(100, math.floor(2 ^ 26 / bytes)))
  local rates = {}
  rates.copy, rates.node = rates_of(4 * bytes, many, function()
    y:copy(x)
    x:copy(y)
  end)
  if bytes % 16 + off % 16 + other % 16 == 0 then
    local grid = math.ceil(bytes / 4096)
    rates.kernel, rates.kernel_node = rates_of(4 * bytes, many, function()
      float4:launch(grid, 256, x, y, bytes / 16)
      float4:launch(grid, 256, y, x, bytes / 16)
    end)
  end
  a:release()
  b:release()
  return rates
end

-- Captured copies beside the better of what an eager one and a kernel of float4
-- move: a graph should not cost what it is there to save.
local function copies()
  say("\n%-42s %9s %9s %9s %9s %6s  bar", "A copy on the device, GB/s read and written", "eager",
    "float4", "captured", "f4 node", "ratio")
  local sizes = on_gpu and not quick and { 2 ^ 12, 2 ^ 14, 2 ^ 16, 2 ^ 18, 2 ^ 20, 2 ^ 22, 2 ^ 24,
    2 ^ 26, 2 ^ 28, 2 ^ 29, 2 ^ 30, 2 ^ 31, 2 ^ 32 } or { 2 ^ 12, 2 ^ 22, 2 ^ 26 }
  local function line(bytes, label, more, off, other)
    local r = copy_rates(bytes + more, off, other)
    local share = r.node / math.max(r.copy, r.kernel or 0)
    local text = bytes < 2 ^ 20 and bytes / 2 ^ 10 .. " KiB" or bytes / 2 ^ 20 .. " MiB"
    say("%-42s %9s %9s %9s %9s %6.3f  %s", text .. label, number(r.copy),
      r.kernel and number(r.kernel) or "-", number(r.node),
      r.kernel and number(r.kernel_node) or "-", share,
      on_gpu and verdict(">= 0.97 x", share >= 0.97) or "")
    collectgarbage()
  end
  for _, bytes in ipairs(sizes) do line(bytes, "", 0, 0, 0) end
  sizes = on_gpu and { 2 ^ 20, 2 ^ 22, 2 ^ 24, 2 ^ 28, 2 ^ 30 } or { 2 ^ 22, 2 ^ 24 }
  for _, bytes in ipairs(sizes) do
    line(bytes, " and 16 bytes", 16, 0, 0)
    line(bytes, ", 16 bytes off", 0, 16, 16)
    line(bytes, " and 1 byte, 1 byte off", 1, 1, 1)
    line(bytes, ", one 4 bytes off", 0, 0, 4)
    line(bytes, ", one 1 byte off", 0, 1, 0)
  end
end

-- Fills of eight-byte elements, by whether one word is written again and again.
local function fills()
  say("\n%-42s %9s %9s %9s %9s %6s  bar", "A fill of doubles, GB/s written", "0 eager", "eager",
    "0 graph", "graph", "ratio")
  for _, count in ipairs { 2 ^ 9, 2 ^ 15, 2 ^ 18, 2 ^ 21, on_gpu and 2 ^ 26 or nil } do
    local x = cg.buffer("double", count)
    local many = math.max(1, math.min(100, math.floor(2 ^ 24 / count)))
    local zero, zeros = rates_of(8 * count, many, function() x:fill(0) end)
    local one, ones = rates_of(8 * count, many, function() x:fill(1 / 3) end)
    say("%-42s %9s %9s %9s %9s %6.3f  %s", number(count) .. " of 1/3, beside 0", number(zero),
      number(one), number(zeros), number(ones), ones / zeros,
      on_gpu and verdict(">= 0.97 x", ones / zeros >= 0.97) or "")
    x:release()
  end
end

local function whole_line(label, roof, sites, bytes_per_site, each, bar)
  local rate = sites * bytes_per_site / each * 1e-3
  local share = rate / roof
  say("%-42s %9s us/step, %s million sites/s, %s GB/s, %.0f%% of the roof  %s", label,
    number(each), number(sites / each), number(rate), 100 * share,
    on_gpu and verdict(string.format(">= %d%%", 100 * bar), share >= bar) or "")
end

-- scripts/heat.lua's kernel: returns a function that launches two time steps.
local function heat_steps(n)
  local file = assert(io.open(here .. "../scripts/heat.lua"))
  local source = file:read("*a"):match "local source = %[=%[(.-)%]=%]"
  file:close()
  -- as the script chooses them
  local rows = (not on_gpu or n <= 256) and 1 or n <= 512 and 2 or 4
  local spread = cg.module(source, { options = { "-DROWS=" .. rows } }):kernel "spread"
  local a, b = cg.zeros("float", { n, n }), cg.zeros("float", { n, n })
  local grid = { math.ceil(n / 256), math.ceil((n - 2) / rows) }
  return function()
    spread:launch(grid, 256, a, b, n, n, 0.2)
    spread:launch(grid, 256, b, a, n, n, 0.2)
  end
end

-- The graph of scripts/heat.lua.
local function heat(roof, n)
  local two = heat_steps(n)
  local steps = cg.capture(function()
    for _ = 1, 10 do two() end
  end)
  local each = slope(function(count)
    steps:replay(count)
    cg.synchronize()
  end, 1, quick and 2 or 6) / 20
  whole_line(string.format("heat, %d x %d", n, n), roof, n * n, 8, each, 0.85)
end

-- scripts/lib/lattice.lua as it is: a channel without an obstacle.
local function lbm(roof, nx, ny)
  local lattice = dofile(here .. "../scripts/lib/lattice.lua")
  local flow = lattice.flow(nx, ny, 0.05, {
    inflow = function(y) return 0.3 * y * (ny - y) / (ny * ny) end,
    start = function(_, y) return 0, 0.3 * y * (ny - y) / (ny * ny), 0 end,
  })
  local steps = lattice.STEPS_PER_REPLAY
  local each = slope(function(count) lattice.run(flow, count * steps, "") end, 50,
    quick and 60 or 350) / steps -- both with as many looks at the flow
  whole_line(string.format("lbm, %d x %d", nx, ny), roof, nx * ny, 76, each, 0.8)
end

local function programs()
  local large = on_gpu and not quick
  local r = copy_rates(large and 2 ^ 30 or 2 ^ 26, 0, 0)
  local roof = math.max(r.copy, r.node, r.kernel, r.kernel_node)
  say("\nWhole programs; the roof is what the best copy moves: %s GB/s, read and written",
    number(roof))
  heat(roof, large and 8192 or 1024)
  collectgarbage()
  lbm(roof, large and 4096 or 512, large and 1024 or 256)
  if large then
    lbm(roof, 8192, 2048)
  end
end

-- Run --------------------------------------------------------------------------------------

local date = os.date "%Y-%m-%d"
say("bench/run, %s: %s, driver %s%s", date, info.name, info.driver, quick and ", quick" or "")
say("cgraphlua %s; microseconds, medians; ratio: Lua / C, of rounds in turn; load %s", cg.version,
  measure.load())
stream:use(function()
  lines()
  others()
  assert(loadfile(here .. "flow.lua")) {
    floor = floor, get_proc = get_proc, stream = stream, now = now, measure = measure,
    quick = quick, on_gpu = on_gpu, seconds = seconds, here = here,
    row = row, say = say, verdict = verdict, heading = heading, heat_steps = heat_steps,
  }
  copies()
  fills()
  programs()
end)
say("\n%s", on_gpu and measure.verdict(missed) or "no GPU, so no bars")

local path = string.format("%s/%s-%s%s.txt", folder, date,
  info.name:lower():gsub("%b()", ""):gsub("%W+", "-"):gsub("^%-", ""):gsub("%-$", ""),
  quick and "-quick" or "")
local file = assert(io.open(path, "w"))
file:write(table.concat(out, "\n"), "\n")
file:close()
print("saved as " .. path)
os.exit(missed == 0 and 0 or 1, true)
