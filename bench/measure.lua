-- What the benches share: a clock, rounds that alternate between the things
-- compared, medians, and lines of a table.
--
-- The machine is never quiet, so what is compared is run in turns, many short
-- rounds of each, and a ratio is the median of the rounds' own ratios: what
-- slows the machine for a while slows both sides of a round.

local ffi = require "ffi"

ffi.cdef [[
struct bench_time { long seconds, nanoseconds; };
int bench_clock(int clock, struct bench_time *time) __asm__("clock_gettime");
]]

local measure = {}

local CLOCK_MONOTONIC, CLOCK_PROCESS = 1, 2
local clock = CLOCK_MONOTONIC
local time = ffi.new "struct bench_time"

--- From now on the processor time of all threads is measured: of one thread it
-- is what its work takes, however many others want the core.
function measure.count_processor()
  clock = CLOCK_PROCESS
end

--- Microseconds since some moment.
function measure.now()
  ffi.C.bench_clock(clock, time)
  return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) * 1e-3
end

local now = measure.now

function measure.median(list)
  local sorted = {}
  for i, value in ipairs(list) do
    sorted[i] = value
  end
  table.sort(sorted)
  local n = #sorted
  return n % 2 == 1 and sorted[(n + 1) / 2] or (sorted[n / 2] + sorted[n / 2 + 1]) / 2
end

--- How long fn takes, in microseconds.
function measure.time(fn)
  local start = now()
  fn()
  return now() - start
end

--- What the clock itself takes, between two readings.
function measure.overhead()
  local list = {}
  for i = 1, 1001 do
    local start = now()
    list[i] = now() - start
  end
  return measure.median(list)
end

--- Calls the functions of a list in turns for about `seconds`, at least
-- `least` rounds (5); each returns a time or how long its work took per
-- operation.  Returns one list of results for each.
function measure.rounds(seconds, functions, least)
  local results = {}
  for i, fn in ipairs(functions) do
    fn() -- warms up
    results[i] = {}
  end
  local start, round = now(), 0
  while round < (least or 5) or now() - start < seconds * 1e6 do
    round = round + 1
    for i, fn in ipairs(functions) do
      results[i][round] = fn()
    end
  end
  return unpack(results)
end

--- The median of a[i] / b[i].
function measure.ratio(a, b)
  local list = {}
  for i = 1, math.min(#a, #b) do
    list[i] = a[i] / b[i]
  end
  return measure.median(list)
end

--- How many others want the cores, "0.31": above a few tenths, what is measured
-- is the competition.
function measure.load()
  local file = io.open "/proc/loadavg"
  local load = file and file:read("*a"):match "^%S+"
  if file then
    file:close()
  end
  return load or "unknown"
end

function measure.verdict(missed)
  return missed == 0 and "every bar is met"
    or missed == 1 and "1 bar is missed" or missed .. " bars are missed"
end

--- Reads what a script hands on, from the argument `first` on, and chooses the
-- device: [--device D] [--quick] [--processor] [PEER=FILE...], where a file has lines of "key
-- number", and the options of `own` with as many values as it says.  Returns
-- the device's description (info, on_gpu), quick, the peers with their numbers,
-- and the values of each option of its own (own).
function measure.arguments(first, own)
  local cg = require "cgraphlua"
  local read = { peers = {}, quick = false, own = {} }
  local i = first
  while arg[i] do
    local option = arg[i]
    local name, path = option:match "^(.-)=(.*)$"
    if option == "--device" then
      i = i + 1
      cg.set_device(arg[i])
    elseif option == "--quick" then
      read.quick = true
    elseif option == "--processor" then
      measure.count_processor()
    elseif own and own[option] then
      read.own[option] = { unpack(arg, i + 1, i + own[option]) }
      i = i + own[option]
    elseif name then
      local peer = { name = name }
      for line in io.lines(path) do
        local key, value = line:match "^(%S+) (%S+)$"
        peer[key or ""] = tonumber(value)
      end
      read.peers[#read.peers + 1] = peer
    else
      error(arg[0] .. " does not know " .. option, 0)
    end
    i = i + 1
  end
  read.info = cg.device()
  read.on_gpu = read.info.device ~= "host"
  return read
end

--- "0.123", "12.3", "1234": three digits or more.
function measure.number(x)
  if not x then
    return "-"
  end
  local digits = x == 0 and 2 or math.max(0, 2 - math.floor(math.log10(math.abs(x))))
  return string.format("%." .. math.min(digits, 4) .. "f", x)
end

return measure
