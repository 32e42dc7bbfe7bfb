local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local program, raises, quote = device.program, device.raises, device.program.quote

local host = cg.device().device == "host"

-- A source that no cache has.
local made = 0
local function source(body)
  made = made + 1
  return ("// %d %s\nextern \"C\" __global__ void put(int *x) { %s }"):format(
    made, tostring(cg.clock()), body or "*x = 1;")
end

describe("cg.module_async", function()
  local at = program.own_folder(before_each, after_each)

  after_each(device.nothing_alive)

  it("returns before the module is compiled", function()
    local start = cg.clock()
    local c = cg.module_async(source())
    local returned = cg.clock() - start
    assert.is_false(c:ready())
    local m = c:wait()
    assert.is_true(returned < (cg.clock() - start) / 2)
    assert.is_true(c:ready())
    local x = cg.zeros("int32", 1)
    m:kernel "put":launch(1, 1, x)
    assert.same({ 1 }, x:download())
  end)

  it("waits for the same module each time", function()
    local c = cg.module_async { source = source(), options = { "-DUNUSED" } }
    local m = c:wait()
    assert.equal(m, c:wait())
    local modules = cg.live "module"
    c:wait()
    assert.equal(modules, cg.live "module")
    c:release()
    assert.same({ "put" }, m:kernels())
  end)

  it("is ready by itself", function()
    local c = cg.module_async(source())
    local deadline = cg.clock() + 60
    while not c:ready() and cg.clock() < deadline do cg.sleep(0.005) end
    assert.is_true(c:ready())
    assert.is_truthy(tostring(c):find("(ready)", 1, true))
  end)

  it("takes many at once", function()
    local all = {}
    for i = 1, 8 do all[i] = cg.module_async(source("*x = " .. i .. ";")) end
    local x = cg.zeros("int32", 1)
    for i = 8, 1, -1 do
      all[i]:wait():kernel():launch(1, 1, x)
      assert.same({ i }, x:download())
    end
  end)

  it("raises at the line that waits what the compiler said, each time", function()
    local c = cg.module_async(source "*x = nothing;")
    for _ = 1, 2 do
      local line
      local e = raises("CGL_ERROR_COMPILE", function() line = device.line() c:wait() end, "nothing")
      assert.equal(line, e.where)
      assert.equal("compilation:wait", e.operation)
    end
    assert.is_true(c:ready())
    assert.equal(0, cg.live "module")
  end)

  it("refuses what cg.module refuses, at its own line", function()
    device.slips(function() cg.module_async() end, "the source")
    device.slips(function() cg.module_async(source(), { nope = 1 }) end, "nope")
    device.slips(function() cg.module_async { options = {} } end, "source or file")
    raises("CGL_ERROR_SYSTEM", function() cg.module_async { file = at "none.cu" } end, "none.cu")
    assert.equal(0, cg.live "compilation")
  end)

  it("does not read its strings after it returned", function()
    local text, option = source "*x = N;", "-DN=" .. #at()
    local c = cg.module_async(text, { options = { option }, file = at "name.cu" })
    text, option = nil, nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    local x = cg.zeros("int32", 1)
    c:wait():kernel():launch(1, 1, x)
    assert.same({ #at() }, x:download())
  end)

  it("can be waited for in a capture", function()
    local c, x = cg.module_async(source "*x += 1;"), cg.zeros("int32", 1)
    local g = cg.capture(function() c:wait():kernel():launch(1, 1, x) end)
    c:release()
    g:replay(3)
    assert.same({ 3 }, x:download())
  end)

  it("can be released before it is ready, and in the queue", function()
    local first, second = cg.module_async(source()), cg.module_async(source())
    local third = cg.module_async(source "*x = 3;")
    second:release()
    first:release()
    raises("CGL_ERROR_RELEASED", function() first:wait() end, "this compilation was released")
    local x = cg.zeros("int32", 1)
    third:wait():kernel():launch(1, 1, x)
    assert.same({ 3 }, x:download())
  end)

  describe("with a compiler that hangs", function()
    -- A compiler that tells its process and works for a minute.
    local function slow()
      program.write(at "cxx", ([[#!/bin/sh
case "$*" in *--version*) echo 'g++ 12.2.0'; exit ;; esac
echo $$ >%s
sleep 60
]]):format(quote(at "pid")))
      assert(os.execute("chmod +x " .. quote(at "cxx") .. "; mkdir -p " .. quote(at "tmp")) == 0)
      -- A state that is not closed leaves what it has.
      return "ASAN_OPTIONS=detect_leaks=0 CGRAPHLUA_CACHE=off TMPDIR=" .. quote(at "tmp") ..
        " CGRAPHLUA_CXX=" .. quote(at "cxx")
    end

    local function run(ending)
      local environment = slow()
      os.remove(at "pid")
      local start = cg.clock()
      local status, out, err = device.child(([[
        local c = cg.module_async(source)
        while not io.open(%q) do cg.sleep(0.01) end
        cg.sleep(0.05)
        print(c:ready())
        %s
      ]]):format(at "pid", ending), environment)
      assert.equal("false\n", out, err)
      assert.is_true(cg.clock() - start < 30)
      local pid = program.read(at "pid"):match "%d+"
      assert.is_true(program.shell("kill -0 " .. pid) ~= 0, "the compiler still runs")
      assert.equal("", select(2, program.shell("ls -A " .. quote(at "tmp"))))
      return status, err
    end

    it("is ended by a release", function()
      if not host then pending "NVRTC is no process" return end
      assert.equal(0, (run "c:release() c = nil"))
    end)

    it("is ended with the state", function()
      if not host then pending "NVRTC is no process" return end
      assert.equal(0, (run ""))
      assert.equal(5, (run "os.exit(5)"))
      assert.equal(5, (run "os.exit(5, false)"))
      local status, err = run "error 'enough'"
      assert.equal(1, status)
      assert.is_truthy(err:find("enough", 1, true))
    end)
  end)
end)
