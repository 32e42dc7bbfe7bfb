-- bench/pool: allocation from Lua and by the driver's own pool, and what peers
-- told (pool_peers.py).  Run by bench/pool:
--   cgraphlua pool.lua RESULTS-FOLDER [--device D] [--quick]
--     [--others SEED FOLDER] [PEER=FILE...]
-- Times are microseconds; the driver is called through FFI, so that its times
-- are those of C.  Memory is the most that was reserved over the most that was
-- asked for and not yet given back, on the traces of bench/traces, or on others of
-- another folder, made from a seed.  Ends with 1 when a bar is missed; the bar on
-- time is for a GPU.

local ffi = require "ffi"
local cg = require "cgraphlua"

local here = arg[0]:match "^.*/" or "./"
local measure = dofile(here .. "measure.lua")
local median, rounds, number, now = measure.median, measure.rounds, measure.number, measure.now

local MIB = 2 ^ 20
local TRACES = {
  { name = "transformer", label = "a transformer's steps", most = 1.05 },
  { name = "frame", label = "a game's frames", most = 1.05 },
  { name = "random", label = "random sizes and lifetimes", most = 1.15 },
  { name = "halves", label = "half freed, then larger", most = 1.15 },
}

-- Command line ------------------------------------------------------------------

local folder, given = arg[1], measure.arguments(2, { ["--others"] = 2 })
local info, on_gpu, quick, peers = given.info, given.on_gpu, given.quick, given.peers
local seed, traces = unpack(given.own["--others"] or { nil, here .. "traces" }, 1, 2)
local seconds = quick and 0.05 or 0.5

-- The table ------------------------------------------------------------------------

local lines, missed = {}, 0
local function say(format, ...)
  lines[#lines + 1] = format:format(...)
  print(lines[#lines])
end

local function row(label, ours, driver, key, bar, within)
  local others = {}
  for _, peer in ipairs(peers) do
    others[#others + 1] = ("%10s"):format(number(peer[key]))
  end
  missed = missed + (within == false and 1 or 0)
  say("%-34s %10s %10s%s  %s", label, number(ours), number(driver), table.concat(others),
    bar and ("%s: %s"):format(bar, within and "met" or "MISSED") or "")
end

-- The driver's own pool ---------------------------------------------------------------

ffi.cdef [[
int cgl_context_open(const char *device, void **context);
const void *cgl_context_driver(const void *context);
typedef int (*bench_get_proc)(const char *name, void **entry, int version, uint64_t flags,
                              void *status);
typedef int (*bench_alloc)(uint64_t *address, size_t bytes, void *stream);
typedef int (*bench_free)(uint64_t address, void *stream);
typedef int (*bench_pool)(void **pool, int device);
typedef int (*bench_attribute)(void *pool, int attribute, uint64_t *value);
typedef int (*bench_trim)(void *pool, size_t bytes);
]]

local driver = {}
do
  local context = ffi.new "void *[1]"
  assert(ffi.C.cgl_context_open(info.device, context) == 0)
  local rows = ffi.cast("void *const *", ffi.C.cgl_context_driver(context[0]))
  local get_proc = ffi.cast("bench_get_proc", rows[2]) -- the table's third
  local function entry(name, kind)
    local found = ffi.new "void *[1]"
    assert(get_proc(name, found, 12000, 0, nil) == 0, name)
    return ffi.cast(kind, found[0])
  end
  local alloc = entry("cuMemAllocAsync", "bench_alloc")
  local free = entry("cuMemFreeAsync", "bench_free")
  local get = entry("cuMemPoolGetAttribute", "bench_attribute")
  local set = entry("cuMemPoolSetAttribute", "bench_attribute")
  local trim = entry("cuMemPoolTrimTo", "bench_trim")
  local pool, address, value = ffi.new "void *[1]", ffi.new "uint64_t[1]", ffi.new "uint64_t[1]"
  local index = tonumber(info.device:match "%d+$" or 0)
  local THRESHOLD, RESERVED_HIGH = 4, 6
  local stream = ffi.cast("void *", 2) -- the thread's own default stream

  cg.synchronize() -- makes the context current
  assert(entry("cuDeviceGetDefaultMemPool", "bench_pool")(pool, index) == 0)
  value[0] = -1ULL
  assert(set(pool[0], THRESHOLD, value) == 0)

  function driver.take(bytes)
    if alloc(address, bytes, stream) ~= 0 then error "cuMemAllocAsync failed" end
    return address[0]
  end

  function driver.drop(block) free(block, stream) end

  function driver.begin()
    cg.synchronize()
    trim(pool[0], 0)
    value[0] = 0
    assert(set(pool[0], RESERVED_HIGH, value) == 0)
  end

  function driver.most()
    assert(get(pool[0], RESERVED_HIGH, value) == 0)
    return tonumber(value[0])
  end

  function driver.latency(bytes, count)
    local start = now()
    for _ = 1, count do
      alloc(address, bytes, stream)
      free(address[0], stream)
    end
    local took = (now() - start) / count
    cg.synchronize()
    return took
  end
end

-- Ours ----------------------------------------------------------------------------------

local ours = {}

function ours.latency(bytes, count)
  local start = now()
  for _ = 1, count do
    cg.buffer("uint8", bytes):release()
  end
  return (now() - start) / count
end

function ours.begin() ours.pool = cg.pool() end

function ours.take(bytes) return cg.buffer("uint8", bytes, { pool = ours.pool }) end

function ours.drop(buffer) buffer:release() end

function ours.most() return ours.pool:stats().reserved_peak end

-- Replays a trace; the most bytes that were reserved, and that were asked for.
local function replay(name, allocator)
  local held, sizes, live, peak = {}, {}, 0, 0
  allocator.begin()
  for line in io.lines(traces .. "/" .. name .. ".txt") do
    local kind, id, bytes = line:match "^(%a) (%d+) ?(%d*)$"
    if kind == "a" then
      sizes[id] = tonumber(bytes)
      held[id] = allocator.take(sizes[id])
      live = live + sizes[id]
      peak = math.max(peak, live)
    else
      allocator.drop(held[id])
      held[id], live = nil, live - sizes[id]
    end
  end
  local most = allocator.most()
  for _, block in pairs(held) do allocator.drop(block) end
  return most, peak
end

-- Eleven graphs with chains of temporaries, each larger than the one before, in one
-- pool, and the largest in a pool alone.
local function shared()
  local function body(n)
    return function()
      local x = cg.zeros("uint8", n * MIB)
      for _ = 1, 4 do
        local y = cg.zeros("uint8", n * MIB)
        y:copy(x)
        x:release()
        x = y
      end
      x:release()
    end
  end
  local function reserved(from, to)
    local pool, graphs = cg.pool(), {}
    for n = from, to do
      graphs[#graphs + 1] = cg.capture(body(8 * n), { pool = pool })
    end
    for _, graph in ipairs(graphs) do graph:replay() end
    cg.synchronize()
    return pool:stats().reserved
  end
  return reserved(1, 11) / reserved(11, 11)
end

-- Run --------------------------------------------------------------------------------------

local date = os.date "%Y-%m-%d"
say("bench/pool, %s: %s, driver %s, load %s%s", date, info.name, info.driver, measure.load(),
  quick and ", quick" or "")
local names = {}
for _, peer in ipairs(peers) do names[#names + 1] = ("%10.9s"):format(peer.name) end
say("%-34s %10s %10s%s", "", "cgraphlua", "driver", table.concat(names))
say "Allocated and freed, us"
for _, size in ipairs { { "small", 4096, "4 KiB" }, { "large", MIB, "1 MiB" } } do
  local count = quick and 200 or 2000
  local mine, floor = rounds(seconds, {
    function() return ours.latency(size[2], count) end,
    function() return driver.latency(size[2], count) end,
  })
  local within = nil
  if on_gpu then within = median(mine) <= 0.2 end
  row(size[3], median(mine), median(floor), "latency." .. size[1], on_gpu and "<= 0.2", within)
end

say("Reserved at most over asked for at most%s",
  seed and ", other traces, from seed " .. seed or "")
for _, trace in ipairs(TRACES) do
  local mine, peak = replay(trace.name, ours)
  ours.pool = nil
  collectgarbage()
  local floor = replay(trace.name, driver)
  local bar = trace.most
  for _, peer in ipairs(peers) do
    local key = "reserved." .. trace.name
    if peer[key] then
      peer[key] = peer[key] / peak
      if peer.name == "torch" then bar = math.min(bar, peer[key]) end
    end
  end
  row(("%s, %.0f MiB"):format(trace.label, peak / MIB), mine / peak, floor / peak,
    "reserved." .. trace.name, "<= " .. number(bar), mine / peak <= bar)
end

local share = shared()
row("eleven graphs, over the largest's", share, nil, "", "<= 1.05", share <= 1.05)
say("%s", measure.verdict(missed))

local name = ("%s/%s-pool%s-%s.txt"):format(folder, date, seed and "-others-" .. seed or "",
  info.name:lower():gsub("[^%w]+", "-"):gsub("^%-", ""):gsub("%-$", ""))
local file = assert(io.open(name, "w"))
file:write(table.concat(lines, "\n"), "\n")
file:close()
print("saved in " .. name)
os.exit(missed == 0 and 0 or 1, true)
