local ffi = require "ffi"
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

local bytes_of = {
  float = 4, double = 8, int8 = 1, uint8 = 1, int16 = 2, uint16 = 2, int32 = 4, uint32 = 4,
  int64 = 8, uint64 = 8, half = 2, bfloat16 = 2, bool = 1,
}

-- Smallest and largest of the integer types that a double holds.
local range_of = {
  int8 = { -2 ^ 7, 2 ^ 7 - 1 }, uint8 = { 0, 2 ^ 8 - 1 },
  int16 = { -2 ^ 15, 2 ^ 15 - 1 }, uint16 = { 0, 2 ^ 16 - 1 },
  int32 = { -2 ^ 31, 2 ^ 31 - 1 }, uint32 = { 0, 2 ^ 32 - 1 },
  int64 = { -2 ^ 53, 2 ^ 53 }, uint64 = { 0, 2 ^ 53 },
}

local function round_trip(list, type)
  return cg.from(list, type):download()
end

describe("buffer", function()
  teardown(device.nothing_alive)

  describe("made from a count or a shape", function()
    it("knows its type, bytes, length and shape", function()
      for type, bytes in pairs(bytes_of) do
        local b = cg.buffer(type, 6)
        assert.equal(type, b.type)
        assert.equal(6 * bytes, b.bytes)
        assert.equal(6, #b)
        assert.same({ 6 }, b.shape)
        assert.matches("^cgraphlua.buffer " .. type .. "%[6%] at 0x", tostring(b))
      end
      local b = cg.zeros("float", { 3, 4 })
      assert.equal(12, #b)
      assert.same({ 3, 4 }, b.shape)
      assert.matches("float%[3, 4%]", tostring(b))
    end)

    it("may be empty", function()
      local b = cg.zeros("float", 0)
      assert.equal(0, #b)
      assert.same({}, b:download())
      assert.same({}, cg.from({}, "int32"):download())
    end)

    it("is zero, or the value given", function()
      assert.same({ 0, 0, 0 }, cg.zeros("double", 3):download())
      assert.same({ 2.5, 2.5 }, cg.full("float", 2, 2.5):download())
      assert.same({ true, true }, cg.full("bool", 2, true):download())
      assert.same({ -7, -7, -7 }, cg.full("int64", 3, -7):download())
      assert.same({ 0.1, 0.1, 0.1 }, cg.full("double", { 3, 1 }, 0.1):download())
    end)

    it("refuses types and sizes that are none", function()
      slips(function() cg.buffer("flaot", 1) end,
        "element type must be one of float, double", '"flaot"')
      slips(function() cg.buffer(nil, 1) end, "element type", "got nil")
      slips(function() cg.buffer("float", 1.5) end, "number of elements must be a whole", "got 1.5")
      slips(function() cg.buffer("float", -1) end, "from 0 to", "got %-1")
      slips(function() cg.buffer("float", 0 / 0) end, "whole number", "nan")
      slips(function() cg.buffer("float", "3") end, 'got "3"')
      slips(function() cg.buffer("float", {}) end, "1 to 8 extents, got 0")
      slips(function() cg.buffer("float", { 2, "x" }) end, "extent 2 of the shape", 'got "x"')
      slips(function() cg.buffer("float", { 2 ^ 40, 2 ^ 40 }) end, "more than 2%^53 elements")
      slips(function() cg.buffer("float", 1, { pol = 1 }) end, 'unknown option "pol".*pool')
      slips(function() cg.buffer("float", 1, { pool = 1 }) end, "#3.*cgraphlua.pool expected")
      slips(function() cg.full("uint8", 1, 256) end, "uint8 takes whole numbers from 0 to 255")
    end)

    it("names an absurd size and the line that asked for it", function()
      for _, count in ipairs { 2 ^ 45, 2 ^ 53 } do
        local e = raises("CUDA_ERROR_OUT_OF_MEMORY", function()
          cg.buffer("double", count)
        end, string.format("%d bytes", 8 * count), "hint: ")
        assert.equal(device.line(-2), e.where)
      end
    end)
  end)

  describe("made from data", function()
    it("returns what it was given, for every type", function()
      for type in pairs(bytes_of) do
        local list = type == "bool" and { true, false, true } or { 0, 1, 100 }
        assert.same(list, round_trip(list, type), type)
      end
      for type, range in pairs(range_of) do
        assert.same(range, round_trip(range, type), type)
      end
      assert.same({ 0.5, -1e300 }, round_trip({ 0.5, -1e300 }, "double"))
      assert.same({ 0.5, 1 / 0 }, round_trip({ 0.5, 1 / 0 }, "float"))
    end)

    it("takes lists of lists as a shape", function()
      local b = cg.from({ { 1, 2, 3 }, { 4, 5, 6 } }, "float")
      assert.same({ 2, 3 }, b.shape)
      assert.same({ 1, 2, 3, 4, 5, 6 }, b:download())
      assert.same({ 1, 2, 2 }, cg.from({ { { 1, 2 }, { 3, 4 } } }, "int8").shape)
    end)

    it("takes a shape for a flat list", function()
      assert.same({ 2, 2 }, cg.from({ 1, 2, 3, 4 }, "half", { 2, 2 }).shape)
      slips(function() cg.from({ 1, 2, 3 }, "half", { 2, 2 }) end,
        "shape has 4 elements, the data 3")
    end)

    it("refuses ragged lists", function()
      slips(function() cg.from({ { 1, 2 }, { 3 } }, "float") end,
        "level 2 must all have 2 elements")
      slips(function() cg.from({ { 1, 2 }, 3 }, "float") end, "level 2")
      local loop = {}
      loop[1] = loop
      slips(function() cg.from(loop, "float") end, "nested more than 8 deep")
    end)

    it("refuses lists in one another whose elements no memory holds", function()
      local list = {}
      for i = 1, 2 ^ 11 do list[i] = 0 end
      for _ = 1, 5 do
        local outer = {}
        for i = 1, 2 ^ 11 do outer[i] = list end
        list = outer
      end
      slips(function() cg.from(list, "double") end, "more elements than memory has")
    end)

    it("takes strings as raw bytes", function()
      assert.same({ 1, 2, 255 }, cg.from("\1\2\255", "uint8"):download())
      assert.same({ 513 }, cg.from("\1\2", "uint16"):download())
      slips(function() cg.from("\1\2\3", "uint16") end, "3 bytes are no whole number of uint16")
    end)

    it("takes FFI arrays and structs", function()
      assert.same({ 1.5, 2.5 }, cg.from(ffi.new("float[2]", 1.5, 2.5), "float"):download())
      assert.same({ 9, 8, 7 }, cg.from(ffi.new("int[?]", 3, 9, 8, 7), "int32"):download())
      local pairs_of_ints = ffi.new "struct { int x, y; }[2]"
      pairs_of_ints[1].x, pairs_of_ints[1].y = 5, 6
      assert.same({ 0, 0, 5, 6 }, cg.from(pairs_of_ints, "int32"):download())
      assert.same({ 5, 6 }, cg.from(pairs_of_ints[1], "int32"):download())
      slips(function() cg.from(ffi.cast("float *", pairs_of_ints), "float") end,
        "pointer does not know its size")
    end)

    it("names the element that does not fit", function()
      slips(function() cg.from({ 1, 2, 1.5 }, "int32") end,
        "element 3 is 1.5; int32 takes whole numbers")
      slips(function() cg.from({ 1, 0 / 0 }, "int8") end, "element 2 is %-?nan")
      slips(function() cg.from({ 300 }, "uint8") end, "element 1 is 300.*from 0 to 255")
      slips(function() cg.from({ { 1, 2 }, { 3, -1 } }, "uint16") end, "element 4 is %-1")
      slips(function() cg.from({ 2 ^ 63 }, "int64") end,
        "element 1 is 9.2.*to 9223372036854775807%)")
      slips(function() cg.from({ 1, "x" }, "float") end,
        "element 2 is a string; float takes numbers")
      slips(function() cg.from({ {}, 1 }, "float") end, "level 2")
      slips(function() cg.from({ print }, "float") end, "element 1 is a function value")
      slips(function() cg.from({ 2 }, "bool") end, "element 1 is 2; bool takes")
      slips(function() cg.from({ true }, "int8") end, "element 1 is a boolean")
      slips(function() cg.from(5, "int8") end, "table, string or FFI array expected, got number")
    end)
  end)

  describe("of 64-bit integers", function()
    it("keeps what a double cannot hold", function()
      local list = { 9007199254740993LL, -9223372036854775807LL - 1, 5 }
      local back = round_trip(list, "int64")
      assert.is_true(back[1] == 9007199254740993LL)
      assert.is_true(back[2] == -9223372036854775807LL - 1)
      assert.equal(5, back[3])
      assert.equal("cdata", type(back[1]))
      assert.is_true(ffi.istype("int64_t", back[1]))
      back = round_trip({ 18446744073709551615ULL }, "uint64")
      assert.is_true(ffi.istype("uint64_t", back[1]))
      assert.is_true(back[1] == 18446744073709551615ULL)
    end)

    it("takes decimal strings", function()
      assert.is_true(round_trip({ "9007199254740993" }, "int64")[1] == 9007199254740993LL)
      assert.is_true(round_trip({ "18446744073709551615" }, "uint64")[1] == 18446744073709551615ULL)
      assert.same({ -3 }, round_trip({ "-3" }, "int64"))
      slips(function() cg.from({ "12x" }, "int64") end, 'is "12x", which is no int64')
      slips(function() cg.from({ "99999999999999999999" }, "uint64") end, "which is no uint64")
      slips(function() cg.from({ "-1" }, "uint64") end, "uint64 takes whole numbers from 0")
      slips(function() cg.from({ 18446744073709551615ULL }, "int64") end, "int64 takes whole")
    end)

    it("takes FFI integers for other types, in range", function()
      assert.same({ 7, 8 }, round_trip({ 7LL, 8ULL }, "uint8"))
      assert.same({ 7, 2 }, round_trip({ ffi.new("int", 7), ffi.new("float", 2) }, "float"))
      slips(function() cg.from({ 300LL }, "uint8") end, "element 1 is 300")
    end)
  end)

  describe("of 16-bit floating types", function()
    it("rounds to nearest even", function()
      -- half has 10 fraction bits: 1 + 2^-11 lies between two of them.
      assert.same({ 1, 1 + 2 ^ -9, 1 + 2 ^ -10, -1 }, round_trip(
        { 1 + 2 ^ -11, 1 + 3 * 2 ^ -11, 1 + 2 ^ -11 + 2 ^ -40, -1 - 2 ^ -11 }, "half"))
      -- bfloat16 has 7.
      assert.same({ 1, 1 + 2 ^ -6, 1 + 2 ^ -7 }, round_trip(
        { 1 + 2 ^ -8, 1 + 3 * 2 ^ -8, 1 + 2 ^ -8 + 2 ^ -30 }, "bfloat16"))
    end)

    it("knows the ends of the range", function()
      assert.same({ 65504, 1 / 0, 65504, 2 ^ -24, 0, 2 ^ -14, -1 / 0 }, round_trip(
        { 65504, 65520, 65519.99, 2 ^ -24, 2 ^ -25, 2 ^ -14, -1e10 }, "half"))
      assert.same({ 2 ^ -24, 1023 * 2 ^ -24 },
        round_trip({ 1.5 * 2 ^ -25, 1023 * 2 ^ -24 }, "half"))
      assert.same({ 2 ^ -133, 2 ^ 127, 1 / 0 },
        round_trip({ 2 ^ -133, 2 ^ 127, 2 ^ 128 }, "bfloat16"))
      for _, type in ipairs { "half", "bfloat16", "float", "double" } do
        local x = round_trip({ 0 / 0, -0.0 }, type)
        assert.is_true(x[1] ~= x[1], type)
        assert.equal(-1 / 0, 1 / x[2], type)
      end
    end)

    it("round-trips every half there is", function()
      local bits = ffi.new "uint16_t[65536]"
      for i = 0, 65535 do bits[i] = i end
      local b = cg.from(bits, "half")
      local numbers = b:download()
      assert.equal(ffi.string(bits, 131072):sub(1, 31744 * 2),
        cg.from(numbers, "half"):download("string"):sub(1, 31744 * 2))
    end)
  end)

  describe("transfers", function()
    it("takes a pointer and its size", function()
      local b, host = cg.from({ 1, 2, 3 }, "float"), ffi.new("float[3]")
      local pointer = ffi.cast("void *", host)
      assert.equal(pointer, b:download(pointer, 12))
      assert.same({ 1, 3 }, { host[0], host[2] })
      host[1] = 7
      assert.equal(b, b:upload(ffi.cast("const float *", host), 12))
      assert.same({ 1, 7, 3 }, b:download())
      local array = ffi.new("float[?]", 4, { 4, 5, 6, 9 })
      assert.equal(b, b:upload(array, 12))
      host[1] = 0
      assert.equal(host, b:download(host, 12))
      assert.same({ 4, 5, 6 }, { host[0], host[1], host[2] })
      b:upload(ffi.new("float[3]", { 1, 7, 3 }), 12)
      host[0], host[1] = 1, 7
      for _, method in ipairs { "upload", "download" } do
        slips(function() b[method](b, pointer, 8) end, "8 bytes for a buffer of 12")
        slips(function() b[method](b, 4096, 12) end, "a pointer expected before a size, got number")
        slips(function() b[method](b, ffi.cast("void *", nil), 12) end, "the pointer is NULL")
        slips(function() b[method](b, ffi.new "float[2]", 12) end, "12 bytes of an FFI array of 8")
        slips(function() b[method](b, pointer, -1) end, "the size in bytes")
        slips(function() b[method](b, pointer) end, "")
        cg.capture(function()
          raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function() b[method](b, pointer, 12) end)
        end)
      end
      assert.same({ 1, 7, 3 }, b:download())
      assert.equal(pointer, cg.buffer("float", 0):download(pointer, 0))
    end)

    it("upload replaces all elements and returns the buffer", function()
      local b = cg.zeros("int16", 3)
      assert.equal(b, b:upload { 4, 5, 6 })
      assert.same({ 4, 5, 6 }, b:download())
      b:upload "\1\0\2\0\3\0"
      assert.same({ 1, 2, 3 }, b:download())
      slips(function() b:upload { 1, 2 } end, "2 elements for a buffer of 3")
      slips(function() b:upload "\0\0" end, "1 elements for a buffer of 3")
      slips(function() b:upload(ffi.new "int16_t[4]") end, "4 elements for a buffer of 3")
      slips(function() b:upload() end, "table, string or FFI array expected")
    end)

    it("download gives a list, a string, or fills what it was given", function()
      local b = cg.from({ 1, 2, 3 }, "uint16")
      assert.equal("\1\0\2\0\3\0", b:download "string")
      local list, array = {}, ffi.new "uint16_t[3]"
      assert.equal(list, b:download(list))
      assert.same({ 1, 2, 3 }, list)
      assert.equal(array, b:download(array))
      assert.equal(3, array[2])
      slips(function() b:download "text" end, 'one of string, got "text"')
      slips(function() b:download(5) end, "FFI array expected, got number")
      slips(function() b:download(ffi.new "uint16_t[4]") end, "8 bytes for a buffer of 6")
      slips(function() b:download(ffi.cast("uint16_t *", array)) end, "does not know its size")
    end)

    it("copy needs the same type and count", function()
      local a, b = cg.from({ 1, 2 }, "float"), cg.zeros("float", 2)
      assert.equal(b, b:copy(a))
      assert.same({ 1, 2 }, b:download())
      raises("CGL_ERROR_INVALID_ARGUMENT", function() b:copy(cg.zeros("float", 3)) end,
        "cannot copy 3 elements of float into 2 of float", "view")
      raises("CGL_ERROR_INVALID_ARGUMENT", function() b:copy(cg.zeros("int32", 2)) end)
      slips(function() b:copy { 1, 2 } end, "cgraphlua.buffer expected, got table")
    end)

    it("fill sets every element", function()
      local b = cg.buffer("double", 5)
      assert.equal(b, b:fill(1 / 3))
      assert.same({ 1 / 3, 1 / 3, 1 / 3, 1 / 3, 1 / 3 }, b:download())
      local c = cg.buffer("uint64", 2):fill(0x0123456789abcdefULL)
      assert.is_true(c:download()[2] == 0x0123456789abcdefULL)
      slips(function() b:fill "x" end, "the value is a string")
      slips(function() b:fill() end, "the value is nil; double takes numbers")
    end)
  end)

  describe("view", function()
    it("shares the memory of its part", function()
      local b = cg.from({ 1, 2, 3, 4, 5 }, "int32")
      local v = b:view(2, 3)
      assert.same({ 2, 3, 4 }, v:download())
      assert.equal(b:address() + 4, v:address())
      v:fill(0)
      assert.same({ 1, 0, 0, 0, 5 }, b:download())
      assert.same({ 0, 5 }, b:view(4):download())
      assert.equal(0, #b:view(6))
    end)

    it("has a shape of its own", function()
      local b = cg.from({ 1, 2, 3, 4, 5, 6, 7 }, "int32")
      local v = b:view(2, { 3, 2 })
      assert.same({ { 3, 2 }, { 2, 3, 4, 5, 6, 7 } }, { v.shape, v:download() })
      assert.same({ 7 }, b:view(1, { 7 }).shape)
      assert.same({ 0, 3 }, b:view(8, { 0, 3 }).shape)
      slips(function() b:view(3, { 3, 2 }) end, "more elements than there are")
      slips(function() b:view(1, { 2, -1 }) end, "-1")
    end)

    it("keeps the memory when the buffer is gone", function()
      local v = cg.from({ 1, 2, 3 }, "float"):view(3)
      collectgarbage()
      collectgarbage()
      assert.same({ 3 }, v:download())
      local b = cg.from({ 4, 5 }, "float")
      local w = b:view(1, 1):view(1, 1)
      b:release()
      assert.same({ 4 }, w:download())
    end)

    it("stays inside the buffer", function()
      local b = cg.zeros("float", 4)
      slips(function() b:view(0) end, "first element must be a whole number from 1 to 5, got 0")
      slips(function() b:view(6) end, "got 6")
      slips(function() b:view(3, 3) end,
        "number of elements must be a whole number from 0 to 2, got 3")
      slips(function() b:view(1.5) end, "got 1.5")
    end)
  end)

  it("borrows an address", function()
    local b = cg.zeros("float", 4)
    local other = cg.buffer_from(b:address(), "float", { 2, 2 })
    other:fill(3)
    assert.same({ 3, 3, 3, 3 }, b:download())
    assert.same({ 2, 2 }, other.shape)
  end)

  it("of another device is refused by name", function()
    local names = {}
    for i, d in ipairs(cg.devices()) do names[i] = d.device end
    if #names < 2 then
      pending "the machine has one device only"
      return
    end
    local before = cg.device().device
    cg.set_device(names[1])
    local b = cg.zeros("float", 4)
    cg.synchronize()
    cg.set_device(names[2])
    local e = raises("CGL_ERROR_WRONG_DEVICE", function() b:fill(1) end, names[1], names[2])
    assert.equal(device.line(-1), e.where)
    cg.set_device("host")
    if names[1] ~= "host" then
      raises("CGL_ERROR_WRONG_DEVICE", function() cg.zeros("float", 4):copy(b) end)
    end
    cg.set_device(before)
  end)

  -- The first two GPUs; waits for some when there are fewer.
  local function two_gpus()
    local gpus = {}
    for _, d in ipairs(cg.devices()) do
      if d.device ~= "host" then gpus[#gpus + 1] = d.device end
    end
    if #gpus < 2 then pending "the machine has fewer than two GPUs" end
    return gpus[1], gpus[2]
  end

  it("of one GPU is copied to another, and a graph replays on its own", function()
    local one, two = two_gpus()
    local before = cg.device().device
    local source = [[extern "C" __global__ void twice(int *x, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) x[i] *= 2;
    }]]
    local n = 1000000
    cg.set_device(one)
    local a = cg.full("int32", n, 3)
    local twice = cg.kernel(source)
    local g = cg.capture(function() twice:over(n)(a, n) end)
    cg.set_device(two)
    local b = cg.zeros("int32", n)
    cg.set_device(one)
    g:replay(2)
    b:copy(a) -- on a stream of the source's device
    a:fill(0)
    cg.synchronize()
    cg.set_device(two)
    assert.equal(12, b:download()[n])
    local back = cg.kernel(source)
    back:over(n)(b, n)
    a:copy(b) -- on a stream of this device
    b:release()
    cg.synchronize()
    cg.set_device(one)
    assert.equal(24, a:download()[1])
    cg.set_device(before)
  end)

  it("of one GPU is copied to another also where it shares pages", function()
    local one, two = two_gpus()
    local before = cg.device().device
    local n = 3 * 2 ^ 18 -- floats: a page and a half
    cg.set_device(two)
    local small, large = cg.zeros("float", n), cg.zeros("float", 2 * n)
    cg.synchronize()
    cg.set_device(one)
    local pool, blocks = cg.pool(), {}
    for i = 1, 6 do blocks[i] = cg.full("float", n, i, { pool = pool }) end
    small:copy(blocks[1]) -- from here on the other may reach the pool
    blocks[2]:release()
    blocks[5]:release()
    cg.synchronize()
    local reserved = pool:stats().reserved
    local stitched = cg.full("float", 2 * n, 100, { pool = pool })
    assert.equal(reserved, pool:stats().reserved)
    large:copy(stitched)
    small:copy(blocks[6])
    cg.synchronize()
    cg.set_device(two)
    local got = large:download()
    for _, at in ipairs { 1, n / 2, n, n + 1, 3 * n / 2, 2 * n } do assert.equal(100, got[at]) end
    assert.equal(6, small:download()[1])
    large:fill(7)
    stitched:copy(large)
    cg.synchronize()
    cg.set_device(one)
    got = stitched:download()
    for _, at in ipairs { 1, n / 2, n, n + 1, 3 * n / 2, 2 * n } do assert.equal(7, got[at]) end
    for _, i in ipairs { 1, 3, 4, 6 } do
      got = blocks[i]:download()
      assert.equal(i, got[1])
      assert.equal(i, got[n])
    end
    cg.set_device(before)
  end)

  describe("released", function()
    it("says so, whatever is asked of it", function()
      local b = cg.zeros("float", 4)
      b:release()
      b:release()
      local e = raises("CGL_ERROR_RELEASED", function() b:download() end,
        "buffer:download", "this buffer was released", "hint: keep")
      assert.equal(device.line(-2), e.where)
      assert.equal(-2, e.code)
      raises("CGL_ERROR_RELEASED", function() return #b end)
      raises("CGL_ERROR_RELEASED", function() return b.shape end, "'shape' of a buffer")
      raises("CGL_ERROR_RELEASED", function() cg.zeros("float", 4):copy(b) end,
        "argument 1 is a buffer")
      assert.equal("cgraphlua.buffer (released)", tostring(b))
      device.fails(function() return b.nothing end)
    end)

    it("gives its memory back to the next", function()
      local status, out, err = device.child([[
        for i = 1, 200 do
          local b = cg.zeros("uint8", 40 * 2^20)
          b:release()
        end
        for i = 1, 50 do cg.zeros("uint8", 100 * 2^20) end -- collected in time
        cg.synchronize()
        print "done"
      ]], "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_MEMORY=256M")
      assert.equal("", err)
      assert.equal("done\n", out)
      assert.equal(0, status)
    end)
  end)

  it("says how elements are read and written", function()
    local b, p = cg.zeros("float", 1), cg.pinned("float", 1)
    assert.is_function(b.upload)
    local function says(fn, pattern) assert.matches(pattern, select(2, device.fails(fn))) end
    says(function() return b[1] end,
      "buffer_spec.lua:%d+: a buffer cannot be indexed with a number.*download%(%).*view%(i, 1%)")
    says(function() b[1] = 2 end, "a buffer cannot be assigned to by index.*to fill")
    says(function() b.type = "int8" end, "a buffer has no fields to assign")
    says(function() return p[0] end, "pinned:cdata%(%)%[i%]")
    says(function() return b[{}] end, "a buffer cannot be indexed with a table")
  end)
end)
