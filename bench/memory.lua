-- What bench/soak.lua and bench/rounds.lua share: what the process and its
-- device hold when all is quiet, and the judgement at the end.

local ffi = require "ffi"
local cg = require "cgraphlua"

local memory = {}

ffi.cdef "int malloc_trim(size_t pad);"

-- Resident MiB, but for the memory of the host device: that is the device's,
-- and it is touched bit by bit.
local function resident()
  local total, counts = 0, true
  for line in io.lines "/proc/self/smaps" do
    if line:match "^%x+%-%x+ " then
      counts = not line:find("cgraphlua-memory", 1, true)
    elseif counts then
      total = total + (tonumber(line:match "^Rss:%s*(%d+)") or 0)
    end
  end
  return total / 1024
end

--- MiB of the process and of the device, and the number of live objects, when
-- all garbage is collected, the device has been waited for and malloc has
-- given back what it only kept.
function memory.read()
  for _ = 1, 2 do
    collectgarbage()
    cg.synchronize()
  end
  pcall(function() ffi.C.malloc_trim(0) end) -- glibc has it
  local free, total = cg.mem_get_info()
  return { resident = resident(), device = (total - free) / 2 ^ 20, live = cg.live() }
end

--- Says what was done and what has changed since `start`; ends the process with
-- 1 when the process or the device holds more MiB than the bars allow, or an
-- object is left.
function memory.judge(name, done, start, resident_bar, device_bar)
  local finish = memory.read()
  local function change(what) return finish[what] - start[what] end
  print(("%s: resident memory %.1f MiB, then %.1f MiB (%+.2f); "
    .. "device memory %.1f MiB, then %.1f MiB (%+.2f); live objects %+d"):format(done,
    start.resident, finish.resident, change "resident",
    start.device, finish.device, change "device", change "live"))
  if change "resident" > resident_bar or change "device" > device_bar or change "live" > 0 then
    io.stderr:write(("%s: more than %d MiB, or %d MiB of the device, or an object is left behind\n")
      :format(name, resident_bar, device_bar))
    os.exit(1, true)
  end
end

return memory
