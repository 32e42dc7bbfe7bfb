-- Graphs in files that call libraries for matrices and transforms.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local cg = require "cgraphlua"
local device = dofile(here .. "/../../support/device.lua")
local program = device.program
local random = math.random

local blas, fft = require "cgraphlua.blas", require "cgraphlua.fft"
local folder = program.own_folder(before_each, after_each)
local on_host = cg.device().device == "host"

local function has(library, title)
  local there, why = pcall(library.describe)
  if not there then pending(title .. ": " .. tostring(why)) end
  return there
end

local function numbers(type, ...)
  local buffer = cg.zeros(type, { ... })
  buffer:uniform(-1, 1, cg.generator(random(1000)))
  return buffer
end

-- Calls of every function, over buffers of their own; the names of what they write.
local function products(type, m)
  local a, b, c = numbers(type, 2, m, m), numbers(type, 2, m, m), numbers(type, 2, m, m)
  local t, u = numbers(type, m, m), numbers(type, m, m)
  local x, y, one = numbers(type, m), numbers(type, m), numbers(type, 1)
  t:fill(2)
  return {
    function() blas.gemm(a, b, { out = c, beta = 0.5, transpose_b = true }) end,
    function() blas.gemm(a, b, { out = c, alpha = one }) end,
    function() blas.gemv(t, x, { out = y }) end,
    function() blas.ger(x, y, u, { alpha = 0.25 }) end,
    function() blas.syrk(t, { out = u }) end,
    function() blas.trsm(t, u, { upper = true }) end,
    function() blas.axpy(x, y) end,
    function() blas.scal(y, { alpha = 0.5 }) end,
    function() blas.dot(x, y, { out = one }) end,
    function() blas.nrm2(x, { out = one }) end,
  }, { c = c, u = u, y = y, one = one }
end

local function transforms(twice, m)
  local real, complex = twice and "double" or "float", twice and "complex128" or "complex64"
  local n = 2 * m
  local r, back = numbers(real, 3, n), cg.zeros(real, { 3, n })
  local z, w = cg.zeros(complex, { 3, m + 1 }), cg.zeros(complex, { 3, m + 1 })
  return {
    function() fft.rfft(r, { out = z }) end,
    function() fft.irfft(z, { out = back, n = n }) end,
    function() fft.fft(z, { out = w }) end,
    function() fft.ifft(w, { out = w }) end,
    function() fft.fft(z, { out = w, dims = 2, norm = "ortho" }) end,
    function() fft.irfft(w, { out = back, dims = 2, n = n }) end,
  }, { z = z, w = w, back = back }
end

describe("graphs that call libraries", function()
  -- A graph of calls in some order, loaded in another process.
  local function same(steps, outputs, opts)
    for _, step in ipairs(steps) do step() end -- plans are made before captures
    local order = {}
    for _, step in ipairs(steps) do table.insert(order, random(#order + 1), step) end
    local child = cg.capture(order[1])
    local g = cg.capture(function()
      for _, step in ipairs(order) do step() end
      child:replay()
    end, opts)
    g:save(folder "calls.cgl", { outputs = outputs, sources = false })
    g:save(folder "plain.cgl", { sources = false })
    g:replay(2)
    local status, out, err = program.run({ "-e", ([=[
      local cg, folder = require "cgraphlua", %q
      local g = cg.load(folder .. "calls.cgl")
      g:save(folder .. "again.cgl", { sources = false })
      g:replay(2)
      for name, buffer in pairs(g.outputs) do
        local file = io.open(folder .. name, "wb")
        file:write(buffer:download "string")
        file:close()
      end
    ]=]):format(folder "") }, { env = "CGRAPHLUA_CACHE=off" })
    assert.are.equal(0, status, out .. err)
    assert.is_true(program.read(folder "plain.cgl") == program.read(folder "again.cgl"))
    for name, buffer in pairs(outputs) do
      assert.is_true(buffer:download "string" == program.read(folder(name)), name)
    end
  end

  it("do the same in another process: matrices", function()
    if not on_host then pending "calls of cuBLAS are refused" return end
    if not has(blas, "OpenBLAS") then return end
    for i, m in ipairs { 1, 7, 130 } do
      local steps, outputs = products(i % 2 == 0 and "double" or "float", m)
      same(steps, outputs, i == 3 and { order = "data" } or nil)
    end
  end)

  it("do the same in another process: transforms", function()
    if not on_host then pending "calls of cuFFT are refused" return end
    if not has(fft, "FFTW") then return end
    for i, m in ipairs { 1, 7, 64 } do
      local steps, outputs = transforms(i % 2 == 0, m)
      same(steps, outputs, i == 3 and { order = "data" } or nil)
    end
  end)

  it("are listed with their libraries, and are no files for GPUs", function()
    if not on_host or not has(blas, "OpenBLAS") then return end
    local x = cg.full("float", 4, 3)
    local g = cg.capture(function() blas.scal(x, { alpha = 2 }) end)
    g:save(folder "calls.cgl", { outputs = { x = x }, devices = { "host" } })
    local status, out = program.run { "--inspect", folder "calls.cgl" }
    assert.are.equal(0, status)
    assert.is_truthy(out:find("library: OpenBLAS, version 1", 1, true), out)
    local e = device.fails(g.save, g, folder "no.cgl", { devices = { "host", "sm_90" } })
    assert.is_truthy(e.message:find "kernel scal at .*libraries_spec.lua:%d+.*for GPUs, too",
      e.message)
    -- What is in the libraries' place is none.
    for _, name in ipairs { "libopenblas.so.0", "libopenblas.so" } do
      program.write(folder(name), "no library")
    end
    local code = ("require('cgraphlua').load(%q)"):format(folder "calls.cgl")
    local err
    status, out, err = program.run({ "-e", code },
      { env = "LD_LIBRARY_PATH=" .. program.quote(folder "") })
    assert.are.equal(1, status, out)
    assert.is_truthy(err:find "OpenBLAS.*was not found", err)
    assert.is_truthy(err:find "libopenblas0", err)
  end)

  it("are refused on a GPU, where another library does the work", function()
    if on_host then pending "the host device calls OpenBLAS and FFTW in kernels" return end
    if not has(blas, "cuBLAS") then return end
    local x = cg.full("float", 4, 3)
    blas.scal(x, { alpha = 2 })
    local g = cg.capture(function() blas.scal(x, { alpha = 2 }) end)
    local e = device.fails(g.save, g, folder "no.cgl")
    assert.is_truthy(e.message:find("another library does its work", 1, true), e.message)
  end)

  it("leave nothing behind when a driver call fails", function()
    if not on_host or not has(blas, "OpenBLAS") or not has(fft, "FFTW") then return end
    device.sweep(1, ([[
      local path = %q
      local blas, fft = require "cgraphlua.blas", require "cgraphlua.fft"
      sweep(function()
        local x, z = cg.full("float", 4, 1), cg.zeros("complex64", 4)
        fft.fft(z, { out = z })
        z:fill(1)
        local g = cg.capture(function()
          blas.scal(x, { alpha = 2 })
          fft.fft(z, { out = z })
        end)
        g:save(path, { outputs = { x = x, z = z } })
        g:release()
        local loaded = cg.load(path)
        loaded:replay()
        local sum = loaded.outputs.x:download()[1] + loaded.outputs.z:download()[1][1]
        return sum == 6 and "right" or tostring(sum)
      end, {
        right = function(answer) return answer == "right", answer end,
        calls = 20,
        raised = 15,
        names = { "cuModuleLoadData", "cuGraphInstantiateWithParams", "cuMemcpyDtoHAsync" },
      })
    ]]):format(folder "swept.cgl"))
  end)
end)
