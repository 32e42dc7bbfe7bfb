-- Kernels that do not end, and a device that was lost: deadlines, reset_device.
-- Each in a process of its own on the host device, which a script can lose.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

-- Kernels `hang`, of which each thread waits for x[0], and `bump`.  `lose`
-- calls a function, which must lose the device; returns its error.
local head = [=[
cg.on_log(print)
local kernels = [[
extern "C" __global__ void hang(volatile int *x) { while (!*x) {} }
extern "C" __global__ void bump(int *x) { x[threadIdx.x] += 1; }]]
local function lose(fn)
  local ok, e = pcall(fn)
  assert(not ok and e.name == "CUDA_ERROR_LAUNCH_TIMEOUT", tostring(e))
  return e
end
local function hang_once()
  local m, x = cg.module(kernels), cg.zeros("int32", 1)
  m:kernel "hang":launch(1, 1, x)
  cg.synchronize()
end
local function bumped()
  local bump, x = cg.module(kernels):kernel "bump", cg.zeros("int32", 64)
  local g = cg.capture(function() bump:launch(1, 64, x) end)
  g:replay(10)
  return x:download()[64]
end
local function line() return debug.getinfo(2, "l").currentline end
]=]

local function child(chunk, environment)
  local status, out, err = device.child(head .. chunk,
    "CGRAPHLUA_DEVICE=host " .. (environment or ""))
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

describe("a kernel that does not end", function()
  it("fails at its deadline, by its name and the line of its launch", function()
    assert.equal("true\ttrue\ttrue\n", child [=[
      cg.set_kernel_deadline(0.1)
      local hang, x = cg.module(kernels):kernel "hang", cg.zeros("int32", 1)
      hang:launch(100, 64, x) local at = line()
      local e = lose(cg.synchronize)
      print(e.message:find("kernel hang did not end within 0.1 s", 1, true) ~= nil,
        e.message:find("hang launched at [^ ]+:" .. at .. "$") ~= nil,
        e.hint:find "reset_device" ~= nil)
    ]=])
  end)

  it("has the deadline of the environment", function()
    local out = child("print(lose(hang_once).message)", "CGRAPHLUA_KERNEL_SECONDS=0.05")
    assert.matches("within 0.05 s", out)
  end)

  it("has no deadline that is none", function()
    assert.matches("%$CGRAPHLUA_KERNEL_SECONDS is 'soon', which is not a valid number of seconds",
      child("cg.zeros('float', 1)", "CGRAPHLUA_KERNEL_SECONDS=soon"))
    for _, value in ipairs { "", "0" } do
      assert.equal("10\n", child("print(bumped())", "CGRAPHLUA_KERNEL_SECONDS=" .. value))
    end
    slips(function() cg.set_kernel_deadline() end, "seconds from 0 to 1e9")
    slips(function() cg.set_kernel_deadline(-1) end, "got %-1")
    slips(function() cg.set_kernel_deadline(0 / 0) end, "seconds from 0")
    slips(function() cg.set_kernel_deadline "2" end, 'got "2"')
  end)

  it("ends in a graph, and takes the rest of the replays along", function()
    assert.equal("true\t0\ttrue\n", child [=[
      cg.set_kernel_deadline(0.1)
      local m, x, y = cg.module(kernels), cg.zeros("int32", 64), cg.pinned("int32", 64)
      local hang, bump = m:kernel "hang", m:kernel "bump"
      local g = cg.capture(function()
        hang:launch(4, 64, x) g_line = line()
        bump:launch(1, 64, x)
        y:copy(x)
      end)
      local e = lose(function()
        g:replay(1e6)
        cg.synchronize()
      end)
      local place = e.message:match "hang %([^ ]+:(%d+)%)"
      print(place == tostring(g_line), y:cdata()[0], lose(function() g:replay() end).name == e.name)
    ]=])
  end)

  it("is not one of many short ones", function()
    assert.equal("true\n", child [=[
      local bump, x = cg.module(kernels):kernel "bump", cg.zeros("int32", 64)
      local g = cg.capture(function()
        for _ = 1, 1000 do bump:launch(1, 64, x) end
      end)
      g:replay()
      cg.synchronize()
      cg.set_kernel_deadline(0.5)
      local begin, n = cg.clock(), 1
      repeat
        g:replay(100)
        cg.synchronize()
        n = n + 100
      until cg.clock() - begin > 1
      print(x:download()[64] == 1000 * n)
    ]=])
  end)

  it("fails in every form, and its device serves again", function()
    local out = child([=[
      local ffi = require "ffi"
      ffi.cdef "int setenv(const char *, const char *, int);"
      -- A form, what is asked for it, and what goes on for years.
      local endless = "for (long k = 0; k < n; k++) "
      for _, case in ipairs {
        { "fibers", "fibers", "__syncthreads(); while (!x[0]) __syncthreads();" },
        { "fibers", "fibers", "__syncthreads(); if (threadIdx.x == 7) while (!x[0]) {}" },
        { "fibers", "fibers", "while (!x[0]) __shfl_xor_sync(~0u, x[0], 1);" },
        { "loops", "", endless .. "{ __syncthreads(); y[threadIdx.x] += 1; }" },
        { "loops", "", "__syncthreads(); while (!x[threadIdx.x]) {}" },
        { "strips", "", "int i = blockIdx.x * blockDim.x + threadIdx.x; float s = 0;" .. endless ..
          "s += y[k % 64 * 64 + i % 64]; y[i] = s;" },
        { "loop", "plain", "int i = blockIdx.x * blockDim.x + threadIdx.x; while (!x[i]) {}" },
        { "loop", "plain", "for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; " ..
          "i += gridDim.x * blockDim.x) y[i % 64] += 1;" },
      } do
        ffi.C.setenv("CGRAPHLUA_HOST_KERNELS", case[2], 1)
        cg.set_kernel_deadline(0.1)
        do
          local k = cg.kernel('extern "C" __global__ void k(volatile int *x, float *y, long n) { '
            .. case[3] .. " }")
          k:launch(2, 64, cg.zeros("int32", 128), cg.zeros("float", 64 * 64), 2 ^ 53)
          local e = lose(cg.synchronize)
          print(k:form(), e.message:match "kernel k did not end within 0.1 s" or e.message)
        end
        cg.reset_device()
        assert(bumped() == 10)
        cg.reset_device()
      end
    ]=])
    local expected = {}
    for form in ("fibers fibers fibers loops loops strips loop loop"):gmatch "%a+" do
      expected[#expected + 1] = form .. "\tkernel k did not end within 0.1 s\n"
    end
    assert.equal(table.concat(expected), out)
  end)

  it("runs on when the deadline was taken away", function()
    assert.equal("false\ttrue\n", child [=[
      cg.set_kernel_deadline(0.02)
      cg.set_kernel_deadline(0)
      local hang, side = cg.module(kernels):kernel "hang", cg.stream()
      local x = cg.pinned("int32", 1)
      local open = cg.buffer_from(x:cdata(), "int32", 1)
      x:cdata()[0] = 0
      side:use(function() hang:launch(1, 1, open) end)
      cg.sleep(0.1)
      print(side:query(), (pcall(function()
        x:cdata()[0] = 1
        side:synchronize()
      end)))
    ]=])
  end)

  it("has no deadline on a GPU", function()
    if cg.device().device == "host" then
      pending "the machine has no GPU"
      return
    end
    raises("CUDA_ERROR_NOT_SUPPORTED", function() cg.set_kernel_deadline(1) end,
      "the host device can")
  end)
end)

describe("cg.reset_device", function()
  it("makes a lost device usable again, time after time", function()
    assert.equal(("host\t10\n"):rep(5) .. "0\n", child [=[
      for i = 1, 5 do
        cg.set_kernel_deadline(0.05)
        lose(hang_once)
        lose(cg.stream)
        local d = cg.reset_device(i % 2 == 0 and "host" or nil)
        cg.set_kernel_deadline(0)
        print(d.device, bumped())
      end
      collectgarbage()
      collectgarbage()
      cg.debug.forget()
      print(cg.live "all")
    ]=])
  end)

  it("ends every other loss as well", function()
    assert.equal("CUDA_ERROR_ILLEGAL_ADDRESS\nCUDA_ERROR_LAUNCH_FAILED\n10\n", child [=[
      local function fail(source, n)
        local e = select(2, pcall(function()
          local k, x = cg.kernel(source), cg.zeros("int32", 4)
          k:launch(1, n, x)
          cg.synchronize()
        end))
        print(e.name)
        cg.reset_device()
      end
      fail('extern "C" __global__ void stray(int *x) { x[1l << 40] = 1; }', 1)
      fail([[extern "C" __global__ void apart(int *x) {
        if (threadIdx.x & 1) __syncthreads();
        else __shfl_sync(0xffffffffu, 1, 0);
      }]], 32)
      print(bumped())
    ]=])
  end)

  it("is refused while objects live, with their kinds and lines", function()
    local out = child [=[
      cg.set_kernel_deadline(0.05)
      local x, g, s = cg.zeros("float", 100), cg.graph(), cg.stream() local at = line()
      local y = x:view(1, 10)
      lose(hang_once)
      local ok, e = pcall(cg.reset_device)
      print(ok, e.name, e.message:find("2 buffers", 1, true) ~= nil,
        e.message:find("1 graph", 1, true) ~= nil, e.message:find("1 stream,", 1, true) ~= nil,
        e.message:find("in 1 buffer made at [^ ]+:" .. at) ~= nil)
      lose(cg.synchronize)
      for _, object in ipairs { x, y, g, s } do object:release() end
      cg.reset_device()
      print(bumped())
    ]=]
    assert.equal("false\tCGL_ERROR_IN_USE\ttrue\ttrue\ttrue\ttrue\n10\n", out)
  end)

  it("is refused in a capture and in stream:use, which go on", function()
    assert.equal("CGL_ERROR_IN_USE\nCUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED\n" ..
      "CGL_ERROR_INVALID_ARGUMENT\n4\n", child [=[
      local x, s = cg.zeros("int32", 4), cg.stream()
      print(select(2, pcall(cg.reset_device)).name)
      local g = cg.graph()
      s:use(function() g:capture_begin() end)
      print(select(2, pcall(cg.reset_device)).name)
      s:use(function()
        x:fill(4)
        print(select(2, pcall(cg.reset_device)).name)
        g:capture_end()
      end)
      g:replay()
      print(x:download()[1])
    ]=])
  end)

  it("keeps the current device when it is refused", function()
    assert.equal("host\nhost\n", child [=[
      cg.set_device "host"
      local x = cg.zeros("float", 1)
      pcall(cg.reset_device)
      print(cg.device().device)
      x:release()
      print(cg.reset_device().device)
    ]=])
  end)

  it("resets a device that was not lost, or never opened", function()
    assert.equal("10\n10\n", child [=[
      cg.reset_device()
      print(bumped())
      cg.reset_device "host"
      print(bumped())
    ]=])
  end)

  it("is refused for what is no device", function()
    raises("CGL_ERROR_NO_DEVICE", function() cg.reset_device "gpu" end, '"gpu" is not a device')
    slips(function() cg.reset_device(5) end, "the device must be a string, got 5")
  end)

  it("says so when the driver does not open the device again", function()
    assert.equal("CUDA_ERROR_LAUNCH_FAILED\ttrue\ttrue\n10\n", child([=[
        cg.set_kernel_deadline(0.02)
        for k = 1, 200 do
          lose(hang_once)
          cg.debug.fault(k, 719)
          local ok, e = pcall(cg.reset_device)
          local _, hit = cg.debug.fault_count()
          cg.debug.fault(0)
          if hit == "cuDevicePrimaryCtxRetain" then
            print(e.name, e.message:find "does not open it again in this process" ~= nil,
              e.hint:find "end the process" ~= nil)
            break
          end
          assert(hit)
          if not ok then cg.reset_device() end
          cg.set_kernel_deadline(0.02)
        end
        cg.reset_device()
        cg.set_kernel_deadline(0)
        print(bumped())
      ]=], "CGRAPHLUA_FAULT=1"))
  end)

  it("fails cleanly at every driver call, and works thereafter", function()
    assert.equal("swept\n", child([=[
      local most
      for k = 1, 200 do
        cg.set_kernel_deadline(0.02)
        lose(hang_once)
        cg.debug.fault(k, 999)
        local ok, e = pcall(cg.reset_device)
        local calls, hit = cg.debug.fault_count()
        cg.debug.fault(0)
        assert(ok or type(e) == "table" and #e.message > 0, tostring(e))
        if not ok then cg.reset_device() end
        cg.set_kernel_deadline(0)
        assert(bumped() == 10)
        if not hit then
          most = k
          break
        end
      end
      assert(most and most > 5, most)
      collectgarbage()
      collectgarbage()
      cg.debug.forget()
      assert(cg.live "all" == 0)
      print "swept"
    ]=], "CGRAPHLUA_FAULT=1"))
  end)
end)
