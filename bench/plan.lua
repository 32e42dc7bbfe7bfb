-- Data order beside issue order: what a capture costs, what its memory takes, and
-- what a replay gains.
--
--   cgraphlua bench/plan.lua [--device D] [--quick]

local cg = require "cgraphlua"

local here = arg[0]:match "^.*/" or ""
local measure = dofile(here .. "measure.lua")
local read = measure.arguments(1)
local shapes = dofile(here .. "../spec/support/shapes.lua")
local patches = dofile(here .. "../scripts/lib/patches.lua")
local median, ratio, number, now = measure.median, measure.ratio, measure.number, measure.now
local seconds = read.quick and 0.1 or 1

print(read.info.name .. ", load " .. measure.load())

-- The median of what issue order and data order take, and of their ratio.
local function compare(label, unit, issue, data)
  local a, b = measure.rounds(seconds, { issue, data })
  print(("%-44s issue %8s, data %8s %s, %s times"):format(label, number(median(a)),
    number(median(b)), unit, number(ratio(b, a))))
end

-- Captures -------------------------------------------------------------------

local touch = cg.kernel [[
extern "C" __global__ void touch(float *x) { x[threadIdx.x] += 1; }]]

local function capture(order, n, parts)
  local x, views = cg.zeros("float", 32 * parts), {}
  for i = 1, parts do views[i] = x:view(32 * i - 31, 32) end
  return function()
    local start = now()
    local g = cg.capture(function()
      for i = 1, n do touch:launch(1, 32, views[i % parts + 1]) end
    end, { order = order, keep_graph = true })
    local time = (now() - start) / n
    g:release()
    return time
  end
end

-- The same with a buffer for each pair of nodes.
local function capture_buffers(order, n)
  local x = cg.zeros("float", 32)
  return function()
    local start = now()
    local g = cg.capture(function()
      for _ = 1, n / 2 do
        local t = cg.buffer("float", 32)
        t:copy(x)
        touch:launch(1, 32, t)
        t:release()
      end
    end, { order = order, keep_graph = true })
    local time = (now() - start) / n
    g:release()
    return time
  end
end

for _, n in ipairs { 1000, 10000, read.quick and 20000 or 100000 } do
  for _, parts in ipairs { 1, 16, 512 } do
    compare(("capture of %d nodes, %d independent"):format(n, parts), "us a node",
      capture("issue", n, parts), capture("data", n, parts))
  end
end
compare("capture of 1000 nodes and 500 buffers", "us a node",
  capture_buffers("issue", 1000), capture_buffers("data", 1000))

-- Memory ---------------------------------------------------------------------

local function plan_memory(name, run)
  local function plan(order, most)
    return cg.capture(run, { order = order, max_bytes = most }):plan()
  end
  local issue, data = plan "issue", plan "data"
  local bound = plan("data", issue.bytes)
  print(("%-12s %7d bytes asked; issue %d; data %d of least %d, path %d -> %d; in no more than"
    .. " issue %d of least %d, path %d"):format(name, data.bytes_asked, issue.bytes, data.bytes,
    data.bytes_least, issue.longest, data.longest, bound.bytes, bound.bytes_least, bound.longest))
end
shapes.each(1024, plan_memory)

-- The same in MiB, and in captures of PyTorch: its allocator's blocks have at least
-- 512 bytes, its segments 2 MiB.
local MIB = 2 ^ 20

-- The trace of a shape's memory, as bench/traces has them.
local function write_trace(path, run)
  local file, numbers, count = assert(io.open(path, "w")), {}, 0
  function shapes.on_memory(buffer, bytes)
    local address = buffer:address()
    if bytes then
      count = count + 1
      numbers[address] = count
      file:write(("a %d %d\n"):format(count, bytes))
    elseif numbers[address] then
      file:write(("f %d\n"):format(numbers[address]))
      numbers[address] = nil
    end
  end
  cg.graph():capture(run, { order = "issue" })
  shapes.on_memory = nil
  file:close()
end

if read.on_gpu then
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder) == 0)
  shapes.each(MIB / 4, function(name, run)
    plan_memory(name, run)
    write_trace(("%s/%s.txt"):format(folder, name), run)
  end)
  io.stdout:flush()
  os.execute(("python3 %spool_peers.py torch.graph %s"):format(here, folder))
  os.execute("rm -r " .. folder)
end

-- Replays --------------------------------------------------------------------

local stream = cg.current_stream()

local function replays(graph, times)
  return function()
    stream:synchronize()
    local start = now()
    graph:replay(times)
    stream:synchronize()
    return (now() - start) / times
  end
end

local function compare_replays(label, width, fn)
  local function captured(order)
    return replays(cg.capture(fn, { order = order, width = width }), read.quick and 1 or 5)
  end
  compare(label, "us", captured "issue", captured "data")
end

local spin = cg.kernel [[
extern "C" __global__ void spin(float *x, int n) {
  float a = x[threadIdx.x];
  for (int i = 0; i < n; i++) a = a * 0.999f + 1;
  x[threadIdx.x] = a;
}]]
local parts = {}
for i = 1, 32 do parts[i] = cg.zeros("float", 32) end
compare_replays("32 independent kernels of one block", 32, function()
  for _, x in ipairs(parts) do spin:launch(1, 32, x, 20000) end
end)
local list = patches.new()
compare_replays("64 simulations (scripts/ensemble.lua)", 64, function() patches.step(list) end)
shapes.each(64 * 1024, function(name, run)
  compare_replays("the shape " .. name .. ", kernels of one block", nil, run)
end)
