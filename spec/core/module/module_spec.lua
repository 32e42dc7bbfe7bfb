local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local program = device.program
local raises, slips = device.raises, device.slips

describe("module", function()
  local folder

  before_each(function() folder = program.folder() end)
  after_each(function() program.remove(folder) end)
  teardown(device.nothing_alive)

  it("lists its kernels in source order", function()
    local m = cg.module(device.source)
    assert.same({ "add", "scale", "spin" }, m:kernels())
    assert.matches("^cgraphlua.module 0x%x+ %(add, ...%)$", tostring(m))
    assert.equal("spin", m:kernel "spin":name())
  end)

  it("keeps no file open", function()
    if program.lacks_proc() then
      pending(program.lacks_proc())
      return
    end
    local status, out, err = device.child([[
      local function open() -- files of this process, once popen closed its end
        local list = io.popen "sleep 0.1; ls /proc/$PPID/fd"
        local _, n = list:read "*a":gsub("\n", "")
        list:close()
        return n
      end
      local text = 'extern "C" __global__ void k%d(int *p) { p[0] = %d; }'
      local keep, x = {}, cg.zeros("int32", 1)
      keep[1] = cg.kernel(text:format(1, 1))
      local before = open()
      for i = 2, 12 do keep[i] = cg.kernel(text:format(i, i)) end
      print(open() - before)
      for i = 1, 12 do keep[i]:launch(1, 1, x) assert(x:download()[1] == i) end
    ]], "CGRAPHLUA_DEVICE=host")
    assert.equal("", err)
    assert.equal("0\n", out)
    assert.equal(0, status)
  end)

  it("says what is there when a kernel is not", function()
    local m = cg.module(device.source)
    raises("CGL_ERROR_NOT_FOUND", function() m:kernel "sub" end, "sub", "add", "scale", "spin")
    slips(function() m:kernel(5) end, "the name must be a string")
  end)

  it("lives as long as its kernels", function()
    local k = cg.module(device.source):kernel "add"
    local x = cg.zeros("float", 1)
    collectgarbage()
    collectgarbage()
    k:launch(1, 1, x, 1, 1)
    assert.same({ 1 }, x:download())
  end)

  it("says that a source ends too early", function()
    raises("CGL_ERROR_COMPILE", function()
      cg.module 'extern "C" __global__ void open(int *x) {\n  *x = 1;\n'
    end, "error: .*expected a? ?['\"]}['\"]")
  end)

  describe("from a file", function()
    it("compiles it and names its lines", function()
      local path = folder .. "/good.cu"
      program.write(path, device.source)
      assert.same({ "add", "scale", "spin" }, cg.module({ file = path }):kernels())
      assert.equal("add", cg.kernel({ file = path }, "add"):name())
      path = folder .. "/bad.cu"
      program.write(path, 'extern "C" __global__ void f(int *x) {\n  *x = nothing;\n}\n')
      raises("CGL_ERROR_COMPILE", function() cg.module { file = path } end,
        "bad%.cu[:(]2", "nothing")
    end)

    it("finds what it includes beside it, or beside the script", function()
      program.write(folder .. "/value.h", "#define VALUE 5\n")
      program.write(folder .. "/k.cu",
        '#include "value.h"\nextern "C" __global__ void put(int *x) { *x = VALUE; }\n')
      local x = cg.zeros("int32", 1)
      cg.kernel({ file = folder .. "/k.cu" }):launch(1, 1, x)
      assert.same({ 5 }, x:download())
      program.write(folder .. "/main.lua", [[
        local cg, x = require "cgraphlua", nil
        x = cg.zeros("int32", 1)
        local text = '#include "value.h"\n' ..
          'extern "C" __global__ void put(int *x) { *x = 1 + VALUE; }'
        cg.kernel(text):launch(1, 1, x)
        print(x:download()[1])
      ]])
      local status, out, err = program.run { folder .. "/main.lua" }
      assert.equal(0, status, err)
      assert.equal("6\n", out)
    end)

    it("says that it cannot be read", function()
      local path = folder .. "/none.cu"
      local e = raises("CGL_ERROR_SYSTEM", function() cg.module { file = path } end,
        "none.cu", "No such file", "hint: ")
      assert.equal(device.line(-2), e.where)
      raises("CGL_ERROR_SYSTEM", function() cg.module { file = folder } end, "cannot read")
    end)

    it("refuses images that the device cannot run", function()
      local path = folder .. "/k.cubin"
      program.write(path, "\127ELF" .. ("\0"):rep(60))
      local e = device.fails(function() cg.module { file = path } end)
      assert.equal("table", type(e))
      assert.matches("^CUDA_ERROR_", e.name)
    end)
  end)

  describe("variables", function()
    it("are buffers that keep the module", function()
      local m = cg.module [[
        __device__ int counters[3] = {1, 2, 3};
        extern "C" __global__ void up() { counters[threadIdx.x] += 10; }
      ]]
      local counters, up = m:global("counters", "int32"), m:kernel "up"
      m:release()
      collectgarbage()
      assert.equal(3, #counters)
      up:launch(1, 3)
      assert.same({ 11, 12, 13 }, counters:download())
      counters:upload { 5, 5, 5 }
      up:launch(1, 1)
      assert.same({ 15, 5, 5 }, counters:download())
    end)

    it("are named", function()
      local m = cg.module "__device__ int counter; extern \"C\" __global__ void up() { counter++; }"
      raises("CGL_ERROR_NOT_FOUND", function() m:global("conter", "int32") end, "conter")
      slips(function() m:global("counter", "integer") end, "element type must be one of")
      raises("CGL_ERROR_INVALID_ARGUMENT", function() m:global("counter", "double") end, "counter")
    end)
  end)

  it("refuses what is no source or option", function()
    slips(function() cg.module() end, "the source must be a string, got nil")
    slips(function() cg.module {} end, "source or file must be given")
    slips(function() cg.module { path = "x" } end, 'unknown option "path"')
    slips(function() cg.module(device.source, { line = 0 }) end,
      "line must be a whole number from 1")
    slips(function() cg.module { file = 5 } end, "file must be a string")
    slips(function() cg.module(device.source, { expressions = { 1 } }) end, "expressions%[1%]")
  end)

  describe("cache", function()
    local chunk = [[
      cg.on_log(function(message) print("log: " .. message) end)
      local k = cg.kernel 'extern "C" __global__ void put(int *x) { *x = 12; }'
      local x = cg.zeros("int32", 1)
      k:launch(1, 1, x)
      print(x:download()[1])
    ]]

    it("is mended when an entry is damaged", function()
      local environment = "XDG_CACHE_HOME=" .. folder
      local status, out = device.child(chunk, environment)
      assert.equal(0, status)
      assert.matches("12\n$", out)
      local _, list = program.shell("find " .. folder .. " -type f")
      local n = 0
      for path in list:gmatch "[^\n]+" do
        n = n + 1
        local text = program.read(path)
        program.write(path, text:sub(1, math.floor(#text / 2)) .. ("x"):rep(50))
      end
      assert.is_true(n > 0)
      for _ = 1, 2 do
        status, out = device.child(chunk, environment)
        assert.equal(0, status)
        assert.matches("12\n$", out)
      end
    end)

    it("that cannot be written is said, and not missed", function()
      program.write(folder .. "/cgraphlua", "a file where a folder should be")
      local status, out = device.child(chunk, "XDG_CACHE_HOME=" .. folder)
      assert.equal(0, status)
      assert.matches("log: .*cache", out)
      assert.matches("12\n$", out)
    end)
  end)

  it("says that it was released", function()
    local m = cg.module(device.source)
    m:release()
    raises("CGL_ERROR_RELEASED", function() m:kernel "add" end, "this module was released")
    raises("CGL_ERROR_RELEASED", function() m:kernels() end)
    assert.equal("cgraphlua.module (released)", tostring(m))
  end)
end)
