-- Several ranks, of which rank 1 does what the word says while the others
-- replay.

local cg = require "cgraphlua"
local ffi = require "ffi"
ffi.cdef "int getpid(void); int kill(int process, int signal);"

local world = cg.ranks { seconds = 60 }
local x, y = cg.full("float", 5, 1), cg.zeros("float", 10)
local graph = cg.capture(function() world:all_reduce(x, x, "max") end)
graph:replay(3)
cg.synchronize()

local word = arg[1]
if word:find "^wait_" then cg.ranks { seconds = 0.5 } end
local function replay()
  for _ = 1, 1e9 do
    graph:replay(10)
    cg.synchronize()
  end
end

if word == "shape" then
  world:all_reduce(world.rank == 1 and y or x)
elseif word == "kind" then
  if world.rank == 1 then world:broadcast(x, 1) else world:barrier() end
elseif world.rank ~= 1 then
  replay()
elseif word == "killed" then
  ffi.C.kill(ffi.C.getpid(), 9)
elseif word == "error" then
  error "rank 1 made a mistake"
elseif word == "exit" then
  os.exit(3)
elseif word == "wait_asleep" then
  cg.sleep(20)
elseif word == "wait_silent" then
  ffi.C.kill(ffi.C.getpid(), 19)
elseif word == "wait_pair" then
  world:recv(x, 0)
  cg.synchronize()
end
