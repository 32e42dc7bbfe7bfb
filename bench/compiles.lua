-- bench/host: how long kernels with barriers take to compile for the host
-- device, each in a source of its own and with an empty cache, as loops and as
-- fibers.  Times are the compiler's processor time.

local ffi = require "ffi"
local cg = require "cgraphlua"

local here = arg[0]:match "^.*/" or ""

ffi.cdef [[
struct compiles_usage { long user_s, user_us, system_s, system_us, rest[14]; };
int getrusage(int who, struct compiles_usage *usage);
int setenv(const char *name, const char *value, int replace);
]]

local RUSAGE_CHILDREN = -1
local usage = ffi.new "struct compiles_usage"

local function now()
  ffi.C.getrusage(RUSAGE_CHILDREN, usage)
  return tonumber(usage.user_s + usage.system_s) +
    tonumber(usage.user_us + usage.system_us) * 1e-6
end

cg.set_device "host"
ffi.C.setenv("CGRAPHLUA_CACHE", "off", 1)

local function compile(form, text, expression)
  ffi.C.setenv("CGRAPHLUA_HOST_KERNELS", form, 1)
  local start = now()
  cg.module { source = text, options = { "-I" .. here }, expressions = { expression } }
  return now() - start
end

local missed = false
for _, file in ipairs { "barriers.cu", "corpus.cu" } do
  local text = assert(io.open(here .. "../spec/compile/" .. file)):read "*a"
  local names, total, worst, slowest, plain = {}, 0, 0, "", 0
  for name in text:gmatch 'extern "C" __global__ void ([%w_]+)' do names[#names + 1] = name end
  for expression in text:gmatch "//@ (%S+<%S*>)" do names[#names + 1] = expression end
  for _, name in ipairs(names) do
    local own = text:gsub('extern "C" __global__ void ([%w_]+)%b()%s*%b{}', function(other)
      if other ~= name then return "" end
    end)
    local expression = name:find "<" and name or nil
    local seconds = compile("loops", own, expression)
    total, plain = total + seconds, plain + compile("fibers", own, expression)
    if seconds > worst then worst, slowest = seconds, name end
  end
  missed = missed or worst > 2 or total / #names > 0.5
  print(string.format("  %-12s %d kernels: mean %.2f s as loops, %.2f s as fibers; the longest " ..
    "%s, %.2f s; bars 0.5 s and 2 s: %s", file, #names, total / #names, plain / #names, slowest,
    worst, (worst > 2 or total / #names > 0.5) and "MISSED" or "met"))
end
os.exit(missed and 1 or 0, true)
