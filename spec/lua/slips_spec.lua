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
    local status, _, err = device.child("cg.set_device 'host' cg.set_device 'host'", environment)
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
