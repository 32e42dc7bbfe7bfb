local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local numpy = dofile(here .. "/../support/numpy.lua")
local raises, slips = device.raises, device.slips

local found, fft = pcall(require, "cgraphlua.fft")
local there, why = pcall(function() return found and fft.describe() end)

local random = math.random

-- {re, im} pairs of a list of n random complex numbers; `real`: im is 0.
local function numbers(n, real)
  local list = {}
  for i = 1, n do list[i] = { random(-8, 8) / 4, real and 0 or random(-8, 8) / 4 } end
  return list
end

-- Transforms along one extent of {re, im}: outer x n x inner, by the definition.
local function dft_along(x, outer, n, inner, sign)
  local y = {}
  for o = 0, outer - 1 do
    for k = 0, n - 1 do
      for i = 1, inner do
        local re, im = 0, 0
        for j = 0, n - 1 do
          local angle = sign * 2 * math.pi * ((j * k) % n) / n
          local c, s = math.cos(angle), math.sin(angle)
          local v = x[(o * n + j) * inner + i]
          re, im = re + v[1] * c - v[2] * s, im + v[1] * s + v[2] * c
        end
        y[(o * n + k) * inner + i] = { re, im }
      end
    end
  end
  return y
end

local function product(list, from, to)
  local p = 1
  for d = from, to do p = p * list[d] end
  return p
end

-- Over the last `dims` extents; with the norm's factor.
local function dft(x, shape, dims, sign, norm)
  local n = product(shape, #shape - dims + 1, #shape)
  for d = #shape - dims + 1, #shape do
    x = dft_along(x, product(shape, 1, d - 1), shape[d], product(shape, d + 1, #shape), sign)
  end
  local by = norm == "ortho" and 1 / math.sqrt(n)
    or (norm == "forward") == (sign < 0) and 1 / n or 1
  local y = {}
  for i = 1, #x do y[i] = { by * x[i][1], by * x[i][2] } end
  return y
end

local function near(want, got, within)
  assert.equal(#want, #got)
  for i = 1, #want do
    local w, g = want[i], got[i]
    if type(g) == "number" then g = { g, 0 } end
    if not (math.abs(w[1] - g[1]) < within and math.abs(w[2] - g[2]) < within) then
      error(("element %d is %.9g%+.9gi, not %.9g%+.9gi"):format(i, g[1], g[2], w[1], w[2]), 2)
    end
  end
end

-- The first n / 2 + 1 of each row of n.
local function half(x, n)
  local y = {}
  for row = 0, #x / n - 1 do
    for i = 1, math.floor(n / 2) + 1 do y[#y + 1] = x[row * n + i] end
  end
  return y
end

local function halved(shape)
  local list = { unpack(shape) }
  list[#list] = math.floor(list[#list] / 2) + 1
  return list
end

local function firsts(list)
  local y = {}
  for i, v in ipairs(list) do y[i] = v[1] end
  return y
end

-- A view in the middle of a larger buffer, at an address of no alignment.
local function view(data, element_type, n, offset)
  local all = cg.zeros(element_type, n + 3)
  local v = all:view(1 + offset, n)
  if data then v:upload(data) end
  return v, all
end

local within = { float = 2e-4, double = 1e-10 }
local complex_of = { float = "complex64", double = "complex128" }

describe("cgraphlua.fft", function()
  if not there then
    pending("has no library: " .. tostring(why))
    return
  end

  it("is the definition, for random shapes, norms and types", function()
    math.randomseed(7)
    local sizes = { 1, 2, 3, 4, 5, 7, 8, 12, 13 }
    local norms = { "backward", "ortho", "forward" }
    for _ = 1, 60 do
      local shape, total = {}, 1
      for d = 1, random(3) do
        shape[d] = sizes[random(#sizes)]
        if total * shape[d] > 300 then shape[d] = 1 end
        total = total * shape[d]
      end
      local dims, norm = random(#shape), norms[random(3)]
      local number = random(2) == 1 and "float" or "double"
      local tolerance = within[number]
      local x = numbers(total)
      local b = cg.from(x, complex_of[number], shape)
      local want = dft(x, shape, dims, -1, norm)
      local y = fft.fft(b, { dims = dims, norm = norm })
      assert.same(shape, y.shape)
      near(want, y:download(), tolerance)
      near(x, fft.ifft(y, { dims = dims, norm = norm }):download(), tolerance)
      near(dft(x, shape, dims, 1, norm), fft.ifft(b, { dims = dims, norm = norm }):download(),
        tolerance)
      near(x, b:download(), 0 + 1e-30)
      assert.equal(b, fft.fft(b, { dims = dims, norm = norm, out = b }))
      near(want, b:download(), tolerance)

      local r = numbers(total, true)
      local h = fft.rfft(cg.from(firsts(r), number, shape), { dims = dims, norm = norm })
      assert.same(halved(shape), h.shape)
      assert.equal(complex_of[number], h.type)
      local n = shape[#shape]
      near(half(dft(r, shape, dims, -1, norm), n), h:download(), tolerance)
      local before = h:download "string"
      local back = fft.irfft(h, { dims = dims, norm = norm, n = n })
      assert.same({ shape, number }, { back.shape, back.type })
      near(r, back:download(), tolerance)
      assert.equal(before, h:download "string")
    end
  end)

  it("takes views at every address, and writes to nothing else", function()
    for offset = 0, 3 do
      local x = numbers(24)
      local b = view(x, "complex64", 24, offset)
      local y, all = view(nil, "complex64", 24, 3 - offset)
      fft.fft(b, { out = y })
      near(dft(x, { 24 }, 1, -1), y:download(), 2e-4)
      local whole = all:download()
      for i = 1, 27 do
        if i <= 3 - offset or i > 27 - offset then assert.same({ 0, 0 }, whole[i]) end
      end
      local r, back = view(firsts(x), "float", 24, offset), view(nil, "float", 24, offset)
      fft.irfft(fft.rfft(r), { out = back })
      for i, v in ipairs(back:download()) do assert.near(x[i][1], v, 1e-4) end
    end
  end)

  it("is a node of a graph, replayed with what its input holds", function()
    local x, y = cg.buffer("complex128", { 3, 10 }), cg.buffer("complex128", { 3, 10 })
    local back, g
    for _, order in ipairs { "issue", "data" } do
      fft.ifft(fft.fft(x, { out = y }))
      fft.ifft(y, { out = y, dims = 2 })
      g = cg.capture(function()
        fft.fft(x, { out = y })
        back = fft.ifft(y, { norm = "forward" })
        fft.ifft(y, { out = y, dims = 2, norm = "ortho" })
      end, { order = order })
      fft.clear()
      assert.equal(0, fft.plans())
      collectgarbage()
      for _ = 1, 3 do
        local data = numbers(30)
        x:upload(data)
        g:replay(2)
        local want = dft(data, { 3, 10 }, 1, -1)
        near(dft(want, { 3, 10 }, 2, 1, "ortho"), y:download(), 1e-10)
        near(dft(want, { 3, 10 }, 1, 1, "forward"), back:download(), 1e-9)
      end
    end
  end)

  it("runs in branches and in loops", function()
    local x = cg.from({ 1, 2, 3, 4, 5, 6 }, "complex128")
    local flag = cg.from({ 1 }, "int32")
    local times = cg.from({ 3 }, "int32")
    fft.fft(x, { out = x })
    x:upload(cg.from({ 1, 2, 3, 4, 5, 6 }, "complex128"):download "string")
    local g = cg.capture(function()
      cg.when(flag, function() fft.fft(x, { out = x, norm = "ortho" }) end)
      cg.times(times, function() fft.fft(x, { out = x, norm = "ortho" }) end)
    end)
    g:replay()
    near({ { 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, 0 }, { 5, 0 }, { 6, 0 } }, x:download(), 1e-12)
    flag:fill(0)
    times:fill(2)
    g:replay()
    near({ { 1, 0 }, { 6, 0 }, { 5, 0 }, { 4, 0 }, { 3, 0 }, { 2, 0 } }, x:download(), 1e-12)
  end)

  it("stays right over many replays from two streams without plans or room", function()
    local streams = { cg.stream(), cg.stream() }
    local graphs, results, inputs = {}, {}, {}
    for i = 1, 2 do
      inputs[i] = cg.buffer("complex64", { 2, 50 })
      fft.ifft(fft.fft(inputs[i], { dims = 2 }), { dims = 2 })
      graphs[i] = cg.capture(function()
        local spectrum = fft.fft(inputs[i], { dims = 2 })
        results[i] = fft.ifft(spectrum, { dims = 2, out = results[i] })
        spectrum:release()
      end)
    end
    fft.clear()
    local data = { numbers(100), numbers(100) }
    for i = 1, 2 do inputs[i]:upload(data[i]) end
    cg.synchronize()
    for round = 1, 500 do
      for i = 1, 2 do
        streams[i]:use(function() graphs[i]:replay(10) end)
      end
      if round % 100 == 0 then
        cg.synchronize()
        for i = 1, 2 do near(data[i], results[i]:download(), 1e-5) end
        fft.rfft(cg.zeros("float", round))
        fft.clear()
      end
    end
  end)

  it("finds plans again, and holds at most 32", function()
    fft.clear()
    for _ = 1, 3 do fft.fft(cg.zeros("complex64", 16)) end
    assert.equal(1, fft.plans())
    for n = 1, 40 do fft.fft(cg.zeros("complex64", n)) end
    assert.equal(32, fft.plans())
    fft.clear()
  end)

  it("makes no plan in a capture, which goes on without", function()
    fft.clear()
    local x = cg.zeros("complex64", 1009)
    local y = cg.zeros("complex64", 1009)
    local g = cg.capture(function()
      raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function() fft.fft(x, { out = y }) end,
        "make the plan of a new shape", "make this call once before")
      y:fill(2)
    end)
    g:replay()
    assert.same({ 2, 0 }, y:download()[1009])
    assert.equal(0, fft.plans())
  end)

  it("does nothing with no transforms, and refuses transforms of nothing", function()
    assert.equal(0, #fft.fft(cg.buffer("complex64", { 0, 5 })))
    raises("CGL_ERROR_INVALID_ARGUMENT", function() fft.fft(cg.buffer("complex64", { 5, 0 })) end,
      "{5, 0} complex64", "an extent of 0")
    raises("CGL_ERROR_INVALID_ARGUMENT", function() fft.rfft(cg.buffer("float", 0)) end,
      "{0} float")
  end)

  it("says what shapes and types it has", function()
    local z, r = cg.zeros("complex64", { 4, 6 }), cg.zeros("float", { 4, 6 })
    for _, case in ipairs {
      { fft.fft, r, {}, "{4, 6} float into {4, 6} complex64", "fft.rfft takes real numbers" },
      { fft.rfft, z, {}, "{4, 6} complex64 into", "rfft takes float" },
      { fft.irfft, r, {}, "{4, 6} float into {4, 10} float" },
      { fft.fft, z, { out = cg.zeros("complex128", { 4, 6 }) }, "into {4, 6} complex128" },
      { fft.fft, z, { out = cg.zeros("complex64", { 6, 4 }) }, "the same extents" },
      { fft.fft, z, { out = cg.zeros("complex64", 24) }, "as many extents" },
      { fft.rfft, r, { out = cg.zeros("complex64", { 4, 3 }) }, "n / 2 %+ 1" },
      { fft.fft, z:view(1, 10), { out = z:view(2, 10) }, "shares memory" },
      { fft.fft, cg.zeros("int32", 4), {}, "{4} int32" },
    } do
      raises("CGL_ERROR_INVALID_ARGUMENT", function() case[1](case[2], case[3]) end,
        unpack(case, 4))
    end
    slips(function() fft.fft(z, { dims = 3 }) end, "dims")
    slips(function() fft.fft(z, { norm = "none" }) end, "backward, ortho, forward")
    slips(function() fft.irfft(z, { n = 9 }) end, "10 to 11")
    slips(function() fft.fft(z, { axis = 1 }) end, "axis")
    slips(function() fft.fft {} end, "buffer")
    assert.has_error(function() return fft.tff end)
  end)

  it("reports or survives every driver call that fails", function()
    for _, code in ipairs { 2, 999 } do
      device.sweep(code, [[
        local fft = require "cgraphlua.fft"
        local function job()
          local x, out = cg.full("complex64", { 4, 10 }, 1), cg.zeros("float", { 4, 18 })
          local function work()
            local y = fft.fft(x, { dims = 2, norm = "forward" })
            fft.irfft(y, { dims = 2, n = 18, norm = "forward", out = out })
          end
          work()
          local list = { out:download()[1] }
          cg.capture(work):replay()
          list[2] = out:download()[1]
          fft.clear()
          return list
        end
        sweep(job, {
          right = function(list) return list[1] == 1 and list[2] == 1 end,
          calls = 20,
          raised = 15,
          names = { "cuLaunchKernel", "cuModuleGetFunction", "cuMemcpyDtoHAsync" },
        })
      ]])
    end
  end)
end)

-- The transforms of NumPy, of shapes for which the definition takes too long.
describe("cgraphlua.fft beside NumPy", function()
  if not (there and numpy.python) then
    pending(there and numpy.missing or "has no library")
    return
  end
  local script = [[
import sys, numpy as np
for line in sys.stdin:
    name, kind, shape, dims, norm, n, path = line.split()
    x = np.fromfile(path, dtype=kind).reshape([int(k) for k in shape.split("x")])
    axes = range(-int(dims), 0)
    f = getattr(np.fft, name + "n")
    if name == "irfft":
        s = list(x.shape[-int(dims):])
        s[-1] = int(n)
        y = f(x, s=s, axes=axes, norm=norm)
    else:
        y = f(x, axes=axes, norm=norm)
    y.astype({"fft": x.dtype, "ifft": x.dtype, "rfft": "complex64" if kind == "float32"
        else "complex128", "irfft": "float32" if kind == "complex64" else "float64"}[name]
        ).tofile(path)
]]
  local kinds = { float = "float32", double = "float64" }

  it("agrees on primes, large and odd shapes, on NaN and on infinity", function()
    local cases, paths = {}, { os.tmpname(), os.tmpname() }
    local function case(name, number, shape, dims, norm, poison)
      cases[#cases + 1] = { name = name, number = number, shape = shape, dims = dims,
        norm = norm, poison = poison }
    end
    for _, number in ipairs { "float", "double" } do
      case("fft", number, { 1009 }, 1, "backward")
      case("fft", number, { 2 ^ 17 + 1 }, 1, "ortho")
      case("ifft", number, { 3, 101, 64 }, 2, "backward")
      case("fft", number, { 17, 33, 20 }, 3, "forward")
      case("rfft", number, { 2 ^ 17 }, 1, "backward")
      case("rfft", number, { 4, 30, 31 }, 2, "ortho")
      case("irfft", number, { 5, 20, 31 }, 3, "backward")
      case("irfft", number, { 1025 }, 1, "forward")
      case("fft", number, { 4, 16 }, 1, "backward", "nan")
      case("rfft", number, { 4, 16 }, 1, "backward", "inf")
    end
    local generator = cg.generator(3)
    for _, c in ipairs(cases) do
      local complex = c.name ~= "rfft"
      local kind = complex and complex_of[c.number] or kinds[c.number]
      local count = product(c.shape, 1, #c.shape)
      local flat = cg.buffer(c.number, count * (complex and 2 or 1)):normal(generator, 0, 1)
      if c.poison then flat:view(5, 1):fill(c.poison == "nan" and 0 / 0 or 1 / 0) end
      local x = cg.from(flat:download "string", complex and kind or c.number, c.shape)
      local n = 2 * c.shape[#c.shape] - 1
      local f = io.open(paths[1], "wb")
      f:write(x:download "string")
      f:close()
      local run = io.open(paths[2], "w")
      run:write(script)
      run:close()
      local pipe = io.popen(numpy.python .. " " .. paths[2], "w")
      pipe:write(("%s %s %s %d %s %d %s\n"):format(c.name, kind, table.concat(c.shape, "x"),
        c.dims, c.norm, n, paths[1]))
      pipe:close()
      f = io.open(paths[1], "rb")
      local wanted = f:read "*a"
      f:close()
      local opts = { dims = c.dims, norm = c.norm, n = c.name == "irfft" and n or nil }
      local out = fft[c.name](x, opts)
      local g = cg.capture(function() out = fft[c.name](x, opts) end)
      g:replay()
      local got = cg.from(out:download "string", c.number):download()
      local want = cg.from(wanted, c.number):download()
      assert.equal(#want, #got)
      -- Of a complex number whose parts are not both finite, libraries differ in
      -- which: one multiplies by the zeros among the roots, and one leaves them out.
      local worst, most, parts = 0, 0, c.name == "irfft" and 1 or 2
      local function is_finite(list, i)
        for k = i, i + parts - 1 do
          if not (math.abs(list[k]) < 1 / 0) then return false end
        end
        return true
      end
      for i = 1, #want, parts do
        assert.equal(is_finite(want, i), is_finite(got, i), c.name .. ", number " .. i)
        for k = i, is_finite(want, i) and i + parts - 1 or 0 do
          worst = math.max(worst, math.abs(want[k] - got[k]))
          most = math.max(most, math.abs(want[k]))
        end
      end
      assert.is_true(worst <= (c.number == "float" and 1e-5 or 1e-13) * math.max(most, 1),
        ("%s of %s: %g of %g"):format(c.name, table.concat(c.shape, "x"), worst, most))
    end
    for _, path in ipairs(paths) do os.remove(path) end
  end)
end)
