local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local slips = device.slips

describe("a slip", function()
  teardown(device.nothing_alive)

  local function body() end

  it("is blamed on the argument where the script has it", function()
    local x = cg.zeros("float", 1)
    slips(function() cg.capture(body, { stream = x }) end, "bad argument #2 to 'capture'")
    slips(function() cg.capture(body, { trim = 1 }) end, "bad argument #2 to 'capture'")
    slips(function() cg.graph():capture(body, { stream = x }) end,
      "bad argument #2 to 'graph:capture'")
    slips(function() cg.kernel(device.source, { options = "-g" }) end,
      "bad argument #2 to 'kernel'")
    slips(function() cg.kernel(device.source, "add", { options = "-g" }) end,
      "bad argument #3 to 'kernel'")
    slips(function() cg.kernel({ source = device.source, options = "-g" }, "add") end,
      "bad argument #1 to 'kernel'")
  end)

  it("names the option that holds the wrong object", function()
    local x = cg.zeros("float", 1)
    slips(function() cg.buffer("float", 1, { pool = x }) end,
      "pool: cgraphlua%.pool expected, got a cgraphlua%.buffer")
    slips(function() cg.capture(body, { stream = 5 }) end,
      "stream: cgraphlua%.stream expected, got 5")
  end)

  it("tells objects of this module from other userdata", function()
    local x, g = cg.zeros("float", 1), cg.graph()
    slips(function() g.replay(x) end, "cgraphlua%.graph expected, got cgraphlua%.buffer")
    slips(function() g.replay(io.stdout) end, "cgraphlua%.graph expected, got userdata")
    slips(function() x:copy(g) end, "cgraphlua%.buffer expected, got cgraphlua%.graph")
    slips(function() cg.stream():wait(x) end, "event or stream expected, got cgraphlua%.buffer")
    slips(function() cg.from(x, "float") end, "FFI array expected, got cgraphlua%.buffer")
  end)

  it("does no harm as an argument too many", function()
    local g = cg.capture(function() cg.zeros("float", 1) end)
    assert.equal(g:pool(), g:pools(1, {}, print)[1])
    for _, name in ipairs { "nodes", "plan", "params", "options", "pools", "is_capturing" } do
      local wanted = g[name](g)
      assert.same(type(wanted), type(g[name](g, nil, 1, {}, print)), name)
    end
  end)

  it("shows FFI numbers, and NaN without a sign", function()
    slips(function() cg.buffer("float", -1LL) end, "got %-1%)")
    slips(function() cg.graph():replay(18446744073709551615ULL) end, "got 18446744073709551615%)")
    slips(function() cg.buffer("float", ffi.new("double", 1.5)) end, "got 1%.5%)")
    slips(function() cg.buffer("float", 0 / 0) end, "got nan%)")
    slips(function() cg.buffer("float", -(0 / 0)) end, "got nan%)")
  end)

  it("is an FFI number that is too large, whatever it would be cut to", function()
    local x, add = cg.zeros("float", 1), device.kernel "add"
    slips(function() add:launch(4294967297LL, 1, x, 1, 1) end, "got 4294967297%)")
    slips(function() add:launch(1, { 1, 4294967297LL }, x, 1, 1) end, "got 4294967297%)")
    slips(function() add:launch(1, { 1, 0 }, x, 1, 1) end, "block%.y must be .* got 0%)")
    slips(function() cg.stream { priority = 18446744073709551615ULL } end,
      "got 18446744073709551615%)")
    slips(function() cg.buffer("float", 9007199254740993LL) end, "got 9007199254740993%)")
    slips(function() cg.buffer("float", { 2 ^ 33, 2 ^ 33 }) end, "more than 2%^53 elements")
    slips(function() cg.buffer("float", { 2 ^ 40, 2 ^ 40 }) end, "more than 2%^53 elements")
  end)

  it("in a region that ends its own capture is told what a region does", function()
    local x = cg.zeros("float", 1)
    for _, ending in ipairs { "capture_end", "reset" } do
      local g = cg.graph()
      local e = device.raises("CGL_ERROR_CAPTURE_STATE", function()
        g:capture(function()
          x:fill(1)
          g[ending](g)
        end)
      end, "its capture ended at [^\n]*slips_spec")
      assert.matches("a region ends its own", e.hint)
    end
  end)

  it("is a text with a zero byte where C ends it", function()
    local x = cg.zeros("float", 1)
    local path = os.tmpname()
    local g = cg.capture(function()
      slips(function() cg.mark_kernels("a\0b", body) end, "zero byte at 2")
      slips(function() cg.mark_kernels({ key = "ab\0" }, body) end, "zero byte at 3")
      slips(function() cg.mark_kernels({ ["\0"] = 1 }, body) end, "zero byte at 1")
      x:fill(1)
    end)
    slips(function() g:debug_dump(path .. "\0.dot") end, "the path has a zero byte")
    assert.equal(0, io.open(path):seek "end")
    os.remove(path)
    slips(function() cg.kernel(device.source, "add\0ition") end, "the name has a zero byte at 4")
    slips(function() cg.set_device "host\0" end, "the device has a zero byte at 5")
  end)
end)


describe("a name that is not there", function()
  teardown(device.nothing_alive)

  -- fn raises a string with the script's line and the pattern.
  local function says(pattern, fn)
    local e, text = device.fails(fn)
    assert.equal("string", type(e))
    assert.matches("^[^\n]*slips_spec.lua:%d+: " .. pattern, text)
  end

  it("is told with the nearest one, for every kind of object", function()
    for noun, make in pairs(device.objects) do
      local kind = (noun:match "^[aeiou]" and "an " or "a ") .. noun
      says(kind .. " has no method.* 'relase'; did you mean 'release'%?$",
        function() make():relase() end)
      says(kind .. " has no method.* 'something_else'$",
        function() return make().something_else end)
      if noun ~= "graph" then
        says(kind .. " has no fields to assign$", function() make().something = 1 end)
      end
    end
    local b = cg.zeros("float", 1)
    says("a buffer has no method or field 'tpye'; did you mean 'type'", function()
      return b.tpye
    end)
    says("a buffer has no method or field 'Download'; did you mean 'download'", function()
      return b.Download
    end)
  end)

  it("costs a method that is there no call", function()
    local meta = debug.getmetatable(cg.stream())
    assert.equal("table", type(meta.__index))
    assert.equal(meta.methods, meta.__index)
    assert.equal("function", type(rawget(meta.__index, "synchronize")))
  end)

  it("of the module, an option or a choice is told likewise", function()
    says("cgraphlua has no 'bufer'; did you mean 'buffer'%?$", function()
      return cg.bufer("float", 1)
    end)
    says("cgraphlua has no '1'$", function() return cg[1] end)
    assert.is_nil(rawget(cg, "bufer"))
    slips(function() cg.stream { prioriy = 1 } end,
      "unknown option \"prioriy\"; the options are priority; did you mean 'priority'%?%)$")
    slips(function() cg.buffer("flaot", 1) end, "got \"flaot\"; did you mean 'float'%?%)$")
    slips(function() cg.graphed(print, { max_signature = 1 }) end, "did you mean 'max_signatures'")
    slips(function() cg.stream { colour = 1 } end, "the options are priority%)$")
  end)
end)


describe("a call", function()
  teardown(device.nothing_alive)

  it("of a method without its object names the colon", function()
    local x = cg.zeros("float", 1)
    slips(function() x.download() end, "calling 'buffer:download' on bad self "
      .. "%(cgraphlua.buffer expected, got no value; write object:download%(...%), with ':'")
    slips(function() x.fill(3) end, "got number; write object:fill%(...%)")
  end)

  it("of the module's functions with a colon names the point", function()
    local e = device.fails(function() cg:zeros("float", 1) end)
    assert.matches("slips_spec.lua:%d+: calling 'zeros' with ':' %(write cg.zeros", e)
    assert.matches("write cg.capture%(", (device.fails(function() cg:capture(print) end)))
  end)

  it("of a kernel or a graph names the method", function()
    local add, g = device.kernel "add", cg.graph()
    assert.matches("slips_spec.lua:%d+: a kernel is not a function: kernel:launch%(grid, block",
      (device.fails(function() add(1, 2) end)))
    assert.matches("a graph is not a function: graph:replay", (device.fails(function() g() end)))
    slips(function() cg.capture(add) end, "function expected, got a cgraphlua.kernel")
    slips(function() cg.capture(5ULL) end, "function expected, got 5")
    slips(function() cg.switch(cg.zeros("int32", 1), { print, 3 }) end,
      "#2 to 'switch'", "function 2 of the list is 3")
  end)

  it("of kernel:over(n) counts its own arguments", function()
    local run, x = device.kernel "add":over(4), cg.zeros("float", 4)
    slips(function() run(nil, 1, 4) end, "bad argument #1 to 'over%(n%)' %(kernel argument 1 'x'")
    slips(function() run(x, 1, print) end, "bad argument #3 to 'over%(n%)' %(kernel argument 3 'n'")
  end)
end)


describe("metamethods that debug reaches", function()
  it("check what they are called with", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      local x, other = cg.zeros("float", 4), { newproxy(true), io.stdout, cg.stream(), {}, 5 }
      local g = cg.capture(function() x:fill(1) end)
      local meta = {}
      for _, object in ipairs { x, cg.stream(), g, cg.pinned("float", 1), cg.generator() } do
        meta[#meta + 1] = debug.getmetatable(object)
      end
      local _, state = debug.getupvalue(cg.buffer, 1)
      meta[#meta + 1] = debug.getmetatable(state)
      for _, mt in ipairs(meta) do
        for name, fn in pairs(mt) do
          for i = 1, type(fn) == "function" and #other or 0 do
            if mt ~= debug.getmetatable(other[i]) then
              pcall(fn, other[i], "bytes", 1)
              pcall(fn, other[i], other[i])
              pcall(fn)
            end
          end
        end
      end
      local hook = g:register_destroy_callback(function() end)
      hook[1], hook.id = x, 7
      print(pcall(hook.remove, hook))
      print(x:download()[1], #x, tostring(x):match "float")]])
    assert.same({ 0, "true\tfalse\n0\t4\tfloat\n", "" }, { status, out, err })
  end)
end)


describe("cg.clock and cg.sleep", function()
  it("count seconds", function()
    local before = cg.clock()
    cg.sleep(0.03)
    local passed = cg.clock() - before
    assert.is_true(passed >= 0.03 and passed < 10, passed)
    cg.sleep(0)
    for _, wrong in ipairs { -1, 0 / 0, "1", 1 / 0 } do
      slips(function() cg.sleep(wrong) end, "seconds from 0 to 1e9 expected")
    end
  end)
end)


describe("bytes that stand for other numbers", function()
  local kernel
  setup(function()
    kernel = cg.kernel [[
    struct pair { int a, b; };
    extern "C" __global__ void k(float *out, int n, double d, pair p, float2 v) {
      out[0] = n; out[1] = d; out[2] = p.b; out[3] = v.y;
    }]]
  end)
  teardown(function()
    kernel = nil
    device.nothing_alive()
  end)

  local function launch(out, n, d, p, v)
    kernel:launch(1, 1, out, n, d, p or ffi.new("int[2]", 5, 6), v or ffi.new("float[2]", 7, 8))
  end

  it("are no number of a kernel", function()
    local out = cg.zeros("float", 4)
    local function refused(pattern, ...)
      local given = { ... }
      device.raises("CGL_ERROR_ARGUMENT_TYPE", function() launch(out, unpack(given)) end, pattern)
    end
    refused("argument 2 of k %(int n%) wants a whole number, not bytes", "1000", 1)
    refused("argument 3 of k %(double d%) wants a number, not bytes", 1, "12345678")
    refused("argument 3 of k %(double d%) wants a number, not bytes", 1, ffi.new("float[2]"))
    refused("argument 3 of k %(double d%) wants a number, not bytes", 1,
      ffi.new("complex", 1, 2))
    assert.same({ 0, 0, 0, 0 }, out:download())
  end)

  it("are not a struct's when they are an address", function()
    local out, p = cg.zeros("float", 4), ffi.new("int[2]", 5, 6)
    device.raises("CGL_ERROR_ARGUMENT_TYPE", function()
      launch(out, 1, 2, ffi.cast("int *", p))
    end, "argument 4 of k %(pair p%) wants its bytes, not an address")
    launch(out, 1, 2, p, ffi.new("complex float", 7, 9))
    assert.same({ 1, 2, 6, 9 }, out:download())
  end)

  it("are no elements of a buffer", function()
    local doubles, ints = ffi.new("double[4]", 1), ffi.new("const int[4]", 1)
    slips(function() cg.from(doubles, "float") end, "FFI array of double for elements of float")
    slips(function() cg.from(ints, "float") end, "FFI array of int32 for elements of float")
    local b = cg.full("float", 4, 3)
    slips(function() b:upload(ints) end, "FFI array of int32 for elements of float")
    slips(function() b:download(ffi.new "int[2][2]") end,
      "FFI array of int32 for elements of float")
    slips(function() b:fill(ffi.new("complex", 1, 2)) end, "float takes numbers")
    assert.same({ 3, 3, 3, 3 }, b:download())
    -- Either sign, bytes and structs.
    assert.same({ 1, 1, 1, 1 }, cg.from(ints, "uint32"):download())
    b:upload(ffi.new("struct { float x, y; }[2]", { { 1, 2 }, { 3, 4 } }))
    local bytes = b:download(ffi.new "uint8_t[16]")
    assert.same({ 1, 2, 3, 4 }, cg.from(bytes, "float"):download())
  end)
end)


describe("what the environment says", function()
  local function opened(environment)
    local status, _, err = device.child(("cg.set_device 'host' cg.device() "):rep(2), environment)
    assert.equal(0, status)
    return err
  end

  it("is told to be ignored when it means nothing", function()
    local err = opened "CGRAPHLUA_HOST_MEMORY=64Mx CGRAPHLUA_HOST_THREADS=-1"
    local _, said = err:gsub("%$CGRAPHLUA_HOST_MEMORY is '64Mx', which is not a valid size", "")
    assert.equal(1, said)
    _, said = err:gsub("%$CGRAPHLUA_HOST_THREADS is '%-1', which is not a valid thread count", "")
    assert.equal(1, said)
    assert.equal("", opened "CGRAPHLUA_HOST_MEMORY=64M CGRAPHLUA_HOST_THREADS=1")
    assert.equal("", opened "CGRAPHLUA_HOST_MEMORY= CGRAPHLUA_HOST_THREADS=")
  end)

  it("may name a file for the cache's folder, which costs one line", function()
    local status, out, err = device.child([[
      local k = cg.kernel 'extern "C" __global__ void k(float *x) { *x = 5; }'
      local x = cg.zeros("float", 1)
      k:launch(1, 1, x)
      print(x:download()[1])]], "CGRAPHLUA_CACHE=/dev/null")
    assert.equal(0, status)
    assert.equal("5\n", out)
    assert.matches("'/dev/null' is no folder[^\n]*\n$", err)
    assert.is_nil(err:find("\n\n", 1, true))
  end)
end)
