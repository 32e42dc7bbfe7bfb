-- What a start costs: a program that compiles, captures and replays, beside one
-- that loads what the first one saved, each in processes of their own.
--   cgraphlua bench/files.lua [--device D] [--rounds N]
-- Milliseconds from the first use of the device, whose opening is a row of its
-- own, to the end of the first replay; the least of N rounds (5).

local program, arguments = arg[-1], { device = "host", rounds = "5" }
for i = 1, #arg, 2 do
  local name = arg[i]:match "^%-%-(%a+)$"
  if not arguments[name] or not arg[i + 1] then
    error("usage: cgraphlua bench/files.lua [--device D] [--rounds N]", 0)
  end
  arguments[name] = arg[i + 1]
end

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder) == 0)

local opened = [[
local cg = require "cgraphlua"
local path, count = %q, %d
local start = cg.clock()
cg.zeros("float", 1):download()
local open = cg.clock()
]]

local report = [[
cg.synchronize()
print((open - start) * 1e3, (cg.clock() - open) * 1e3)
]]

-- A step of a stencil, twenty times, in `count` graphs.
local made = opened .. [[
local step = cg.kernel '
extern "C" __global__ void step(const float *u, float *v, int n, float r) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && x < n - 1 && y > 0 && y < n - 1)
    v[y * n + x] = u[y * n + x] + r * (u[y * n + x - 1] + u[y * n + x + 1] +
                   u[(y - 1) * n + x] + u[(y + 1) * n + x] - 4 * u[y * n + x]);
}'
local u, v, graphs = cg.zeros("float", { 64, 64 }), cg.zeros("float", { 64, 64 }), {}
for i = 1, count do
  graphs["graph" .. i] = cg.capture(function()
    for _ = 1, 10 do
      step:launch({ 2, 8 }, { 32, 8 }, u, v, 64, i / count / 5)
      step:launch({ 2, 8 }, { 32, 8 }, v, u, 64, i / count / 5)
    end
  end)
end
graphs.graph1:replay()
]] .. report .. "cg.save(path, graphs)"
made = made:gsub("kernel '", "kernel [=[\n"):gsub("}'", "}]=]")

local loaded = opened .. [[
cg.load(path).graph1:replay()
]] .. report

local function run(text, count, env)
  local script = folder .. "/script.lua"
  local file = assert(io.open(script, "w"))
  file:write(text:format(folder .. "/graphs.cgl", count))
  file:close()
  local pipe = io.popen(("%s %s --device %s %s"):format(env, program, arguments.device, script))
  local open, time = pipe:read("*a"):match "(%S+)%s+(%S+)"
  pipe:close()
  return tonumber(open), assert(tonumber(time), "the program failed")
end

local cache = "CGRAPHLUA_CACHE=" .. folder .. "/cache"
local rows = {
  { "compile, capture, first replay", made, cache, "rm -rf " .. folder .. "/cache" },
  { "the same, kernels from the cache", made, cache },
  { "load, first replay", loaded, "CGRAPHLUA_CACHE=off" },
}
for _, count in ipairs { 1, 256 } do
  local least
  for _, row in ipairs(rows) do
    local time, open = math.huge, math.huge
    for _ = 1, tonumber(arguments.rounds) do
      os.execute(row[4] or "true")
      local o, t = run(row[2], count, row[3])
      time, open = math.min(time, t), math.min(open, o)
    end
    least = least or time
    print(("%3d graphs of 20 nodes  %-34s %9.2f ms  %5.1f x  (device opened in %.1f ms)")
      :format(count, row[1], time, least / time, open))
  end
end
os.execute("rm -rf " .. folder)
