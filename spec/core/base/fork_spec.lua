-- A device that was opened before a fork, in the child.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

-- child(fn) forks, runs fn in the child, which then ends as a program does, and
-- returns how the child ended: "exit 0", "signal 14" for one that hangs.
local head = [=[
local ffi = require "ffi"
cg.on_log(nil)
ffi.cdef "int fork(void); int waitpid(int, int *, int); unsigned alarm(unsigned);"
local function child(fn)
  io.stdout:flush()
  local pid = ffi.C.fork()
  if pid == 0 then
    ffi.C.alarm(20)
    local ok, e = pcall(fn)
    if not ok then io.stderr:write("child: ", tostring(e), "\n") end
    collectgarbage()
    collectgarbage()
    os.exit(ok and 0 or 1, true)
  end
  local status = ffi.new "int[1]"
  ffi.C.waitpid(pid, status, 0)
  local signal = status[0] % 128
  return signal == 0 and "exit " .. math.floor(status[0] / 256) or "signal " .. signal
end
]=]

-- What the parent's threads had in hand looks lost in the child.
local environment = "ASAN_OPTIONS=" .. device.program.quote((os.getenv "ASAN_OPTIONS" or "")
  .. ":detect_leaks=0")

--- Runs the chunk in a process of its own; returns what it printed.
local function forks(chunk, more)
  local status, out, err = device.child(head .. chunk, environment .. " " .. (more or ""))
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

describe("fork", function()
  teardown(device.nothing_alive)

  it("before a device is opened leaves the child all of it", function()
    assert.equal("4\nexit 0\n4\n", forks [=[
      local function work()
        local x = cg.full("float", 4, 3)
        cg.module(source):kernel "add":launch(1, 32, x, 1, 4)
        cg.synchronize()
        print(x:download()[1])
        io.stdout:flush()
      end
      print(child(work))
      work()]=])
  end)

  it("after a device was opened has every call refused at once, and says what to do", function()
    local out = forks [=[
      local add = cg.module(source):kernel "add"
      local x, pinned = cg.zeros("float", 4), cg.pinned("float", 4)
      local stream, event = cg.stream(), cg.event()
      local g = cg.capture(function() add:launch(1, 32, x, 1, 4) end)
      g:replay(3)
      event:record()
      local compilation, underway = cg.module_async(source), cg.module_async(source .. os.time())
      local limits = cg.device().device == "host" or nil -- no GPU has deadlines
      print(child(function()
        for name, fn in pairs {
          buffer = function() cg.buffer("float", 4) end,
          zeros = function() cg.zeros("float", 1000) end,
          download = function() x:download() end,
          upload = function() x:upload { 1, 2, 3, 4 } end,
          fill = function() x:fill(1) end,
          launch = function() add:launch(1, 32, x, 1, 4) end,
          replay = function() g:replay() end,
          capture = function() cg.capture(function() add:launch(1, 32, x, 1, 4) end) end,
          synchronize = function() cg.synchronize() end,
          named = function() cg.synchronize(cg.device().device) end,
          stream = function() cg.stream() end,
          wait = function() stream:synchronize() end,
          event = function() event:synchronize() end,
          module = function() cg.module(source):kernel "add" end,
          compilation = function() compilation:wait() end,
          underway = function()
            assert(underway:ready(), "a loop until it is ready ends")
            underway:wait()
          end,
          pinned = function() cg.pinned("float", 4) end,
          memory = function() cg.mem_get_info() end,
          open = function()
            cg.set_device(cg.device().device)
            cg.device()
          end,
          reset = function() cg.reset_device() end,
          deadline = limits and function() cg.set_kernel_deadline(1) end,
        } do
          local ok, e = pcall(fn)
          assert(not ok and e.name == "CUDA_ERROR_NOT_INITIALIZED" and e.code == 3 and
            e.message:find("the device was opened before fork", 1, true) and
            e.hint:find("open the device in the worker", 1, true) and e.where:find ":%d+$",
            name .. ": " .. tostring(e))
        end
      end))
      g:replay(2)
      print(x:download()[1])]=]
    assert.equal("exit 0\n5\n", out)
  end)

  it("after a device was opened lets the child release, collect and exit in silence", function()
    assert.equal("exit 0\nexit 0\n7\ndestroyed\n", forks [=[
      local add = cg.module(source):kernel "add"
      local x = cg.full("float", 4, 7)
      local streams, kept = {}, {}
      for i = 1, 4 do streams[i] = cg.stream() end
      local g = cg.capture(function()
        add:launch(1, 32, x, 0, 4)
        kept[1] = cg.zeros("float", 1000000)
      end)
      g:register_destroy_callback(function() print "destroyed" end, true)
      g:replay(10)
      local function drop()
        for _, stream in ipairs(streams) do stream:release() end
        g:release()
        x:release()
        add, g, x, streams, kept = nil, nil, nil, nil, nil
        collectgarbage()
      end
      print(child(drop))
      print(child(function() end))
      g:replay(1)
      print(x:download()[1])]=])
  end)

  it("while other threads of the host device work leaves the child no lock that is held", function()
    assert.equal("20\n", forks [=[
      local add = cg.module(source):kernel "spin"
      local x = cg.zeros("float", 4)
      local well = 0
      for i = 1, 20 do
        for k = 1, 20 do add:launch(1, 32, x, 2000) end
        if child(function()
          assert(not pcall(x.download, x))
          x:release()
        end) == "exit 0" then well = well + 1 end
      end
      print(well)]=])
  end)

  it("keeps children off the memory of the host device", function()
    if cg.device().device ~= "host" then return end
    assert.equal("signal 11\n1\n", forks [=[
      local x = cg.full("float", 4, 1)
      local at = ffi.cast("float *", ffi.cast("uintptr_t", x:address()))
      ffi.cdef "void *signal(int, void *);"
      print(child(function()
        ffi.C.signal(11, nil) -- a sanitizer has a handler of its own
        at[0] = 2
      end))
      print(x:download()[1])]=])
  end)

  it("is not minded by a device that was only named: no driver was asked", function()
    local out = forks([=[
      cg.debug.fault(1)
      cg.set_device "host"
      print(cg.debug.fault_count())
      print(child(function()
        print((select(2, pcall(cg.device)).message))
        print(cg.debug.fault_count())
        print(cg.device().device)
      end))]=], "CGRAPHLUA_FAULT=1")
    assert.matches("^0\tnil\n[^\n]*cuInit[^\n]*\n1\tcuInit\nhost\nexit 0\n$", out)
  end)

  -- A library in the place of NVIDIA's, which says when it is opened.
  it("opens no driver of a GPU for its name", function()
    local folder, quote = device.program.folder(), device.program.quote
    device.program.write(folder .. "/driver.c", [[
      #include <unistd.h>
      int cuGetProcAddress_v2(void) { return 1; }
      __attribute__((constructor)) static void say(void) {
        if (write(1, "opened\n", 7) != 7) _exit(9);
      }]])
    local at = quote(folder)
    if device.program.shell("cc -shared -fPIC " .. at .. "/driver.c -o " .. at
      .. "/libcuda.so.1") ~= 0 then
      device.program.remove(folder)
      pending "no C compiler, or none for libraries"
      return
    end
    local out = forks([=[
      io.stdout:setvbuf "no"
      cg.set_device "cuda:1"
      cg.set_device "cuda"
      cg.on_log(nil)
      cg.errors "string"
      print "named"
      print(child(function()
        print(pcall(cg.zeros, "float", 4))
      end))
      cg.set_device "host"
      cg.zeros("float", 4):download()
      print "worked"
      cg.devices()]=], "LD_LIBRARY_PATH=" .. at)
    device.program.remove(folder)
    assert.matches("^named\nopened\nfalse\t[^\n]*there is no cuda:0: the NVIDIA driver.-"
      .. "\nexit 0\nworked\nopened\n$", out)
  end)

  it("lets the child open a device that the parent only listed and named", function()
    if cg.device().device ~= "host" then return end
    assert.equal("exit 0\n", forks [=[
      cg.devices()
      cg.set_device "host"
      print(child(function()
        assert(cg.full("float", 4, 3):download()[4] == 3)
      end))]=])
  end)
end)
