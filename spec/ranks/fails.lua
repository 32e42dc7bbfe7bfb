-- Several ranks, one of which does what the word says in the midst of replays.
-- Arguments: the word, that rank, and milliseconds until then.

local cg = require "cgraphlua"
local ffi = require "ffi"
ffi.cdef [[
int getpid(void); int getppid(void); int kill(int process, int signal);
typedef struct { uint64_t value; int signal, notify; char rest[48]; } spec_event;
typedef struct { long s, ns, first_s, first_ns; } spec_time;
int timer_create(int clock, spec_event *event, void **timer);
int timer_settime(void *timer, int flags, const spec_time *time, spec_time *before);
]]

local word, failing, ms = arg[1], tonumber(arg[2]), tonumber(arg[3])
local world = cg.ranks { seconds = 60 }
local fails = world.rank == failing
local x, y = cg.full("float", 5, 1), cg.zeros("float", 10)
local z = cg.zeros("double", 5)

local function step() world:all_reduce(x, x, "max") end -- line 20
local graph = cg.capture(function()
  step()
  if fails and word == "wait_graph" then step() end
end)
if word ~= "wait_graph" then graph:replay(3) end
cg.synchronize()
world:barrier()
cg.synchronize()
if word:find "^wait_" then cg.ranks { seconds = 1 } end

-- Sends this rank a signal, whatever its threads do then.
local function signal_later(signal)
  local timer = ffi.new "void *[1]"
  assert(ffi.C.timer_create(1, ffi.new("spec_event", { signal = signal }), timer) == 0)
  local time = ffi.new("spec_time", { first_ns = ms * 1e6 + 1 })
  assert(ffi.C.timer_settime(timer[0], 0, time, nil) == 0)
end

local function replay(n)
  for _ = 1, n do
    graph:replay(10)
    cg.synchronize()
  end
end

-- What the failing rank does; the others replay.
local acts = {
  error = function() error "this rank made a mistake" end,
  exit = function() os.exit(3) end,
  wait_asleep = function() cg.sleep(20) end,
  wait_exit = function()
    graph:replay(7) -- under way
    os.exit(0)
  end,
  wait_exit_open = function() os.exit(0, false) end,
  wait_pair = function()
    world:recv(x, (failing + 1) % world.size)
    cg.synchronize()
  end,
  wait_missing = function()
    graph:replay(9)
    cg.synchronize()
    replay(50)
  end,
  interrupt = function()
    ffi.C.kill(ffi.C.getppid(), 2)
    replay(1e9)
  end,
}

if fails and word == "killed" then signal_later(9) end
if fails and word == "wait_stopped" then signal_later(19) end
if word == "shape" or word == "type" or word == "kind" then
  local other = ({ shape = y, type = z })[word]
  replay(ms)
  if fails and word == "kind" then
    world:broadcast(x, failing)
  else
    world:all_reduce(fails and other or x)
  end
elseif word == "wait_graph" then
  replay(ms)
elseif not fails or not acts[word] and word ~= "wait_over" then
  replay(1e9)
else
  replay(ms)
  if acts[word] then acts[word]() end
end
