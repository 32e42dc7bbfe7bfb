-- cgraphlua.blas: beside plain Lua, in whole numbers, which every type has
-- exactly.

local cg = require "cgraphlua"
local blas = require "cgraphlua.blas"
local fft = require "cgraphlua.fft"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local numpy = dofile(here .. "/../support/numpy.lua")

local there, why = pcall(blas.describe)
local on_host = cg.device().device == "host"
local reals = { "float", "double" }
local all = on_host and reals or { "float", "double", "half", "bfloat16" }

local function test(name, fn)
  it(name, function()
    if not there then pending(tostring(why)) end
    fn()
  end)
end

-- ---- the model: matrices are {rows = m, columns = n, at = {...}} ----

local seed = 1
local function random(most)
  seed = seed * 16807 % 2147483647
  return seed % (2 * most + 1) - most
end

local function matrix(m, n, make)
  local x = { rows = m, columns = n, at = {} }
  for i = 1, m do
    for j = 1, n do x.at[(i - 1) * n + j] = make and make(i, j) or random(3) end
  end
  return x
end

local function at(x, i, j) return x.at[(i - 1) * x.columns + j] end

local function turned(x, turn)
  return turn and matrix(x.columns, x.rows, function(i, j) return at(x, j, i) end) or x
end

-- alpha a b + beta c; of c nothing is read without beta.
local function product(a, b, alpha, beta, c)
  return matrix(a.rows, b.columns, function(i, j)
    local sum = 0
    for k = 1, a.columns do sum = sum + at(a, i, k) * at(b, k, j) end
    return alpha * sum + (beta == 0 and 0 or beta * at(c, i, j))
  end)
end

local function buffer(x, type, shape)
  local made = cg.buffer(type, shape or { x.rows, x.columns })
  if #x.at > 0 then made:upload(x.at) end
  return made
end

local function same(wanted, got, what)
  local list = got:download()
  assert.equal(#wanted.at, #list, what)
  for i, v in ipairs(wanted.at) do
    if v ~= list[i] and (v == v or list[i] == list[i]) then
      error(("%s, element %d: %s, not %s"):format(what, i, tostring(list[i]), tostring(v)), 2)
    end
  end
end

local function refused(pattern, fn, ...)
  local ok, e = pcall(fn, ...)
  assert.is_false(ok)
  assert.equal("CGL_ERROR_INVALID_ARGUMENT", e.name)
  assert.is_truthy(e.message:find(pattern, 1, true), e.message)
  assert.is_truthy(e.where:find("blas_spec.lua", 1, true))
  assert.is_true(#e.hint > 0)
end

local sizes = { { 1, 1, 1 }, { 2, 3, 5 }, { 0, 3, 2 }, { 3, 0, 2 }, { 3, 2, 0 }, { 1, 17, 1 },
                { 31, 1, 7 }, { 64, 64, 64 }, { 37, 131, 29 } }

describe("cgraphlua.blas", function()
  teardown(device.nothing_alive)

  test("says which library it is, and how it computes", function()
    assert.is_truthy(blas.describe():find(on_host and "OpenBLAS" or "cuBLAS", 1, true))
    assert.is_truthy(blas.describe():find "float")
  end)

  test("multiplies matrices of all types and shapes, as they are and transposed", function()
    for _, type in ipairs(all) do
      for _, s in ipairs(sizes) do
        for turns = 0, 3 do
          local of_a, of_b = turns % 2 == 1, turns >= 2
          local a = matrix(s[1], s[3])
          local b, c = matrix(s[3], s[2]), matrix(s[1], s[2])
          local out = buffer(c, type)
          local opts = { transpose_a = of_a, transpose_b = of_b, out = out, alpha = 2, beta = -1 }
          local x, y = buffer(turned(a, of_a), type), buffer(turned(b, of_b), type)
          assert.equal(out, blas.gemm(x, y, opts))
          local what = ("%s %dx%dx%d, %d"):format(type, s[1], s[2], s[3], turns)
          same(product(a, b, 2, -1, c), out, what)
          opts = { transpose_a = of_a, transpose_b = of_b }
          same(product(a, b, 1, 0), blas.gemm(x, y, opts), what)
        end
      end
    end
  end)

  test("multiplies batches, and one matrix with each of a batch", function()
    for _, type in ipairs(all) do
      for which = 0, 2 do
        local batch, x, y, wanted = 5, { at = {} }, { at = {} }, { at = {} }
        for i = 1, batch do
          local a = (which ~= 1 or i == 1) and matrix(3, 7) or x.last
          local b = (which ~= 2 or i == 1) and matrix(7, 2) or y.last
          x.last, y.last = a, b
          for _, pair in ipairs { { x, a, which ~= 1 or i == 1 }, { y, b, which ~= 2 or i == 1 },
                                  { wanted, product(a, b, 1, 0), true } } do
            for _, v in ipairs(pair[3] and pair[2].at or {}) do
              table.insert(pair[1].at, v)
            end
          end
        end
        local out = blas.gemm(
          buffer(x, type, which == 1 and { 3, 7 } or { batch, 3, 7 }),
          buffer(y, type, which == 2 and { 1, 7, 2 } or { batch, 7, 2 }))
        assert.same({ batch, 3, 2 }, out.shape)
        same(wanted, out, type .. which)
      end
    end
    assert.equal(0, #blas.gemm(cg.buffer("float", { 0, 3, 2 }), cg.buffer("float", { 0, 2, 3 })))
  end)

  test("has the other functions, of both reals", function()
    for _, type in ipairs(reals) do
      for _, s in ipairs { { 1, 1 }, { 2, 5 }, { 37, 131 }, { 1, 300 }, { 129, 1 } } do
        local m, n = s[1], s[2]
        local a, x, y, row = matrix(m, n), matrix(n, 1), matrix(m, 1), matrix(1, n)
        local what = ("%s %dx%d"):format(type, m, n)
        local A, X, Y = buffer(a, type), buffer(x, type, n), buffer(y, type, m)
        same(product(a, x, 1, 0), blas.gemv(A, X), "gemv " .. what)
        local z = buffer(x, type, n)
        blas.gemv(A, Y, { transpose = true, out = z, alpha = 2, beta = 3 })
        same(product(turned(a, true), y, 2, 3, x), z, "gemv transposed " .. what)

        local sum = matrix(m, n, function(i, j) return at(a, i, j) - at(y, i, 1) * at(x, j, 1) end)
        local B = buffer(a, type)
        assert.equal(B, blas.ger(Y, X, B, { alpha = -1 }))
        same(sum, B, "ger " .. what)

        z:fill(1)
        assert.equal(z, blas.axpy(X, z, { alpha = 4 }))
        same(matrix(n, 1, function(i) return 4 * at(x, i, 1) + 1 end), z, "axpy " .. what)
        blas.scal(z, { alpha = -0.5 })
        same(matrix(n, 1, function(i) return -2 * at(x, i, 1) - 0.5 end), z, "scal " .. what)
        same(product(row, x, 1, 0), blas.dot(buffer(row, type), X), "dot " .. what)
        local root = math.sqrt(product(turned(x, true), x, 1, 0).at[1])
        assert.is_true(math.abs(blas.nrm2(X):item() - root) <= 1e-6 * root)
      end
    end
  end)

  test("sums over nothing", function()
    for _, type in ipairs(reals) do
      local nan, none = 0 / 0, cg.buffer(type, 0)
      for _, turn in ipairs { false, true } do
        local a = cg.buffer(type, turn and { 0, 3 } or { 3, 0 })
        local y = cg.full(type, 3, nan)
        same({ at = { 0, 0, 0 } }, blas.gemv(a, none, { out = y, transpose = turn }), "gemv")
        y:fill(2)
        blas.gemv(a, none, { out = y, transpose = turn, beta = 3 })
        same({ at = { 6, 6, 6 } }, y, "gemv")
        local c = cg.full(type, { 3, 3 }, 2)
        same({ at = { 1, 2, 2, 1, 1, 2, 1, 1, 1 } },
          blas.syrk(a, { out = c, beta = 0.5, transpose = turn }), "syrk")
      end
      local one = cg.full(type, 1, nan)
      same({ at = { 0 } }, blas.dot(none, none, { out = one }), "dot")
      one:fill(nan)
      same({ at = { 0 } }, blas.nrm2(none, { out = one }), "nrm2")
      assert.equal(0, #blas.scal(none))
      assert.equal(0, #blas.axpy(none, cg.buffer(type, 0)))
      assert.equal(0, #blas.ger(none, one, cg.buffer(type, { 0, 1 })))
      assert.equal(0, #blas.trsm(one:view(1, { 1, 1 }), cg.buffer(type, { 1, 0 })))
    end
  end)

  test("adds products to one triangle, and leaves the other", function()
    for _, type in ipairs(reals) do
      for which = 0, 3 do
        local upper, turn = which % 2 == 1, which >= 2
        local a, c = matrix(19, 7), matrix(19, 19)
        local full = product(a, turned(a, true), 2, 3, c)
        local wanted = matrix(19, 19, function(i, j)
          local inside = i == j or (j > i) == upper
          return at(inside and full or c, i, j)
        end)
        local out = buffer(c, type)
        local x = buffer(turned(a, turn), type)
        blas.syrk(x, { out = out, alpha = 2, beta = 3, upper = upper, transpose = turn })
        same(wanted, out, type .. which)
        full = product(a, turned(a, true), 1, 0)
        wanted = matrix(19, 19, function(i, j)
          return (i == j or (j > i) == upper) and at(full, i, j) or 0
        end)
        same(wanted, blas.syrk(x, { upper = upper, transpose = turn }), "alone")
      end
    end
  end)

  test("solves with triangles on both sides", function()
    for _, type in ipairs(reals) do
      for which = 0, 15 do
        local upper, turn = which % 2 == 1, which % 4 >= 2
        local right, unit = which % 8 >= 4, which >= 8
        local n, other = 9, 150
        local whole = matrix(n, n, function(i, j)
          return i == j and 2 ^ (i % 3) or i % 2 == j % 3 and 1 or 0
        end)
        local a = matrix(n, n, function(i, j)
          if i == j then return unit and 1 or at(whole, i, j) end
          return (j > i) == upper and at(whole, i, j) or 0
        end)
        local x = right and matrix(other, n) or matrix(n, other)
        local by = turned(a, turn)
        local b = right and product(x, by, 1, 0) or product(by, x, 1, 0)
        local B = buffer(b, type)
        assert.equal(B, blas.trsm(buffer(whole, type), B, {
          right = right, upper = upper, transpose = turn, unit = unit, alpha = 2 }))
        same(matrix(x.rows, x.columns, function(i, j) return 2 * at(x, i, j) end), B,
          type .. which)
      end
    end
  end)

  test("keeps NaN and infinities where they are", function()
    local nan, inf = 0 / 0, math.huge
    for _, type in ipairs(all) do
      local a, b = matrix(3, 4), matrix(4, 3)
      a.at[5], b.at[3] = nan, inf
      local got = blas.gemm(buffer(a, type), buffer(b, type)):download()
      for j = 4, 6 do assert.is_true(got[j] ~= got[j]) end
      assert.is_true(got[1] == got[1] and math.abs(got[1]) < 100)
      assert.is_true(got[3] ~= got[3] or math.abs(got[3]) == inf)
      -- What is written without beta is not read.
      local out = cg.full(type, { 3, 3 }, nan)
      local c, d = matrix(3, 4), matrix(4, 3)
      same(product(c, d, 1, 0), blas.gemm(buffer(c, type), buffer(d, type), { out = out }), type)
      same(product(c, matrix(4, 1, function() return 1 end), 1, 0),
        blas.gemv(buffer(c, "float"), cg.full("float", 4, 1), { out = cg.full("float", 3, nan) }),
        "gemv")
    end
  end)

  test("reads alpha and beta on the device", function()
    for _, type in ipairs(all) do
      local wide = type == "double" and type or "float"
      local a, b, c = matrix(5, 4), matrix(4, 6), matrix(5, 6)
      local A, B = buffer(a, type), buffer(b, type)
      local alpha, beta = cg.full(wide, 1, 2), cg.full(wide, 1, -1)
      for _, opts in ipairs { { alpha = alpha, beta = beta }, { alpha = 2, beta = beta },
                              { alpha = alpha, beta = -1 } } do
        opts.out = buffer(c, type)
        same(product(a, b, 2, -1, c), blas.gemm(A, B, opts), type)
      end
      local out = buffer(c, type)
      local g = cg.capture(function() blas.gemm(A, B, { alpha = alpha, out = out }) end)
      alpha:fill(3)
      g:replay()
      same(product(a, b, 3, 0), out, type)
    end
  end)

  test("works on views", function()
    local long = cg.zeros("float", 100)
    long:upload(matrix(1, 100).at)
    local list = long:download()
    local a, b = matrix(3, 4), matrix(4, 2)
    for i = 1, 12 do a.at[i] = list[7 + i] end
    for i = 1, 8 do b.at[i] = list[50 + i] end
    same(product(a, b, 1, 0), blas.gemm(long:view(8, { 3, 4 }), long:view(51, { 4, 2 })), "views")
    blas.axpy(long:view(1, 10), long:view(91, 10))
    same(matrix(1, 10, function(_, j) return list[j] + list[90 + j] end), long:view(91, 10), "axpy")
  end)

  test("agrees with NumPy in numbers that are not whole", function()
    if not numpy.python then return pending(numpy.missing) end
    local folder = device.program.folder()
    local function save(name, x)
      device.program.write(folder .. "/" .. name, x:download "string")
    end
    local gen = cg.generator(7)
    local a, b = cg.buffer("float", { 131, 257 }), cg.buffer("float", { 257, 63 })
    local half, t = cg.buffer("double", { 61, 61 }), cg.buffer("double", { 61, 40 })
    for _, x in ipairs { a, b, half, t } do x:uniform(gen) end
    blas.axpy(cg.full("double", 61, 9), half:view(1, 61)) -- far from singular
    for i = 2, 61 do blas.axpy(cg.full("double", 1, 9), half:view(i * 62 - 61, 1)) end
    save("a", a)
    save("b", b)
    save("half", half)
    save("t", t)
    save("ab", blas.gemm(a, b))
    save("aa", blas.syrk(a))
    save("norm", blas.nrm2(a))
    save("solved", blas.trsm(half, t))
    local status, out = device.program.shell(("cd %s && %s -c %s 2>&1"):format(
      device.program.quote(folder), numpy.python, device.program.quote [[
import numpy as np
def load(name, *shape, type="f4"): return np.fromfile(name, type).reshape(shape).astype("f8")
a, b = load("a", 131, 257), load("b", 257, 63)
half, t = load("half", 61, 61, type="f8"), load("t", 61, 40, type="f8")
def off(x, y): return np.abs(x - y).max() / np.abs(y).max()
assert off(load("ab", 131, 63), a @ b) < 1e-5
assert off(load("aa", 131, 131), np.tril(a @ a.T)) < 1e-5
assert off(load("norm", 1), np.linalg.norm(a)) < 1e-5
assert off(load("solved", 61, 40, type="f8"), np.linalg.solve(np.tril(half), t)) < 1e-9
print("same")
]]))
    device.program.remove(folder)
    assert(status == 0 and out == "same\n", out)
  end)

  test("refuses what does not fit, with the shapes", function()
    local a, b = cg.zeros("float", { 2, 3 }), cg.zeros("float", { 4, 5 })
    local v = cg.zeros("float", 3)
    refused("a of {2, 3} float, b of {4, 5} float, the result of {2, 5} float", blas.gemm, a, b)
    refused("a transposed, of {2, 3} float", blas.gemm, a, b, { transpose_a = true })
    refused("different types", blas.gemm, a, cg.zeros("double", { 3, 2 }))
    refused("neither reals nor complex", blas.gemm, cg.zeros("int32", { 2, 3 }),
      cg.zeros("int32", { 3, 2 }))
    refused("do not fit", blas.gemm, v, v)
    refused("do not fit", blas.gemm, cg.zeros("float", { 2, 2, 3 }), cg.zeros("float", { 3, 3, 2 }))
    refused("do not fit", blas.gemm, cg.zeros("float", { 1, 1, 2, 3 }), a)
    refused("shares memory", blas.gemm, cg.zeros("float", { 2, 2 }), b:view(1, { 2, 2 }),
      { out = b:view(3, { 2, 2 }) })
    refused("do not fit", blas.gemv, a, cg.zeros("float", 2))
    refused("do not fit", blas.gemv, a, v, { transpose = true })
    refused("do not fit", blas.ger, v, v, a)
    refused("do not fit", blas.axpy, v, cg.zeros("float", 4))
    refused("shares memory", blas.axpy, v, v)
    refused("do not fit", blas.dot, v, cg.zeros("float", 4))
    refused("do not fit", blas.nrm2, v, { out = cg.zeros("float", 2) })
    refused("do not fit", blas.syrk, a, { out = cg.zeros("float", { 3, 3 }) })
    refused("do not fit", blas.trsm, a, a)
    refused("do not fit", blas.trsm, cg.zeros("float", { 3, 3 }), a)
    refused("16-bit elements", blas.dot, cg.zeros("half", 3), cg.zeros("half", 3))
    refused("alpha is {2} float", blas.scal, v, { alpha = cg.zeros("float", 2) })
    refused("beta is {1} double", blas.gemv, a, v, { beta = cg.zeros("double", 1) })
    refused("alpha is {1} float", blas.scal, v, { alpha = v:view(1, 1) })
    local ok, e = pcall(blas.scal, v, { alpha = "2" })
    assert.is_truthy(not ok and e:find "'alpha' must be a number or a buffer, got string")
    assert.has_error(function() blas.gemm(a, b, { transpose = true }) end)
    assert.has_error(function() return blas.gem end)
    if on_host then
      refused("no gemm of 16-bit elements", blas.gemm, cg.zeros("half", { 2, 2 }),
        cg.zeros("half", { 2, 2 }))
    end
    -- A capture stays whole.
    local g = cg.capture(function()
      pcall(blas.gemm, a, b)
      blas.scal(v)
    end)
    assert.equal(1, #g:nodes())
  end)
end)

-- gemm of complex numbers, of columns, and in other precisions, in whole numbers;
-- complex elements are {re, im}.
describe("blas.gemm", function()
  teardown(device.nothing_alive)

  local both = { "complex64", "complex128" }

  local function entry(type)
    return type:find "complex" and { random(3), random(3) } or random(3)
  end
  local function parts(v)
    if type(v) == "table" then return v[1], v[2] end
    return v, 0
  end

  -- A matrix of some columns of the rows of a buffer, perhaps with a batch.
  local function wide(type, batch, rows, columns, turn)
    local m = { batch = batch, rows = rows, columns = columns, type = type, list = {} }
    local r, c = turn and columns or rows, turn and rows or columns
    local first = (random(2) + 2) % 4
    local width = first + c + random(1) + 1
    for i = 1, (batch or 1) * r * width do m.list[i] = entry(type) end
    m.buffer = cg.buffer(type, batch and { batch, r, width } or { r, width })
    if #m.list > 0 then m.buffer:upload(m.list) end
    m.option = c > 0 and { first + 1, c } or nil
    function m.place(b, i, j)
      if turn then i, j = j, i end
      return ((batch and batch > 1 and b or 0) * r + i) * width + first + j + 1
    end
    return m
  end

  -- The elements of c's buffer after 2 a b + beta c.
  local function expected(a, b, c, opts)
    local wanted = {}
    for i, v in ipairs(c.list) do wanted[i] = v end
    for which = 0, (c.batch or 1) - 1 do
      for i = 0, c.rows - 1 do
        for j = 0, c.columns - 1 do
          local re, im = 0, 0
          for k = 0, a.columns - 1 do
            local x, u = parts(a.list[a.place(which, i, k)])
            local y, v = parts(b.list[b.place(which, k, j)])
            if opts.conjugate_a then u = -u end
            if opts.conjugate_b then v = -v end
            re, im = re + x * y - u * v, im + x * v + u * y
          end
          local place = c.place(which, i, j)
          local p, q = parts(c.list[place])
          re, im = 2 * re + opts.beta * p, 2 * im + opts.beta * q
          wanted[place] = c.type:find "complex" and { re, im } or re
        end
      end
    end
    return wanted
  end

  local function same_list(wanted, got, what)
    assert.equal(#wanted, #got)
    for i, v in ipairs(wanted) do
      local p, q = parts(v)
      local x, y = parts(got[i])
      if p ~= x or q ~= y then
        error(("%s, element %d: %g %+gi, not %g %+gi"):format(what, i, x, y, p, q))
      end
    end
  end

  local batches = { {}, { 3, 3 }, { 1, 2 }, { nil, 2 }, { 2 }, { 0, 0 } }

  -- Outside a capture in even rounds, else in one, with other contents then.
  local function round_run(round, type, m, n, k)
    local of = batches[round % 6 + 1]
    local opts = { alpha = 2, beta = round % 3 - 1, transpose_a = random(1) > 0,
                   transpose_b = random(1) > 0 }
    opts.conjugate_a = opts.transpose_a and random(1) > 0
    opts.conjugate_b = opts.transpose_b and random(1) > 0
    local a = wide(type, of[1], m, k, opts.transpose_a)
    local b = wide(type, of[2], k, n, opts.transpose_b)
    local c = wide(type, of[1] ~= 1 and of[1] or of[2], m, n)
    opts.out, opts.columns_a, opts.columns_b, opts.columns_out =
      c.buffer, a.option, b.option, c.option
    local function issue() blas.gemm(a.buffer, b.buffer, opts) end
    if round % 2 == 0 then
      issue()
    else
      local g = cg.capture(issue, { order = round % 4 == 1 and "data" or "issue" })
      for i = 1, #a.list do a.list[i] = entry(type) end
      if #a.list > 0 then a.buffer:upload(a.list) end
      g:replay()
    end
    same_list(expected(a, b, c, opts), #c.list > 0 and c.buffer:download() or {},
      ("%d: %s %dx%dx%d"):format(round, type, m, n, k))
  end

  test("multiplies columns of wider rows, complex numbers and conjugates, and writes no others",
    function()
      local types = { "float", "double", "complex64", "complex128" }
      if not on_host then types[5], types[6] = "half", "bfloat16" end
      for round = 1, 40 * #types do
        local m, n, k = random(4) + 5, random(4) + 5, random(3) + 4
        if round % 100 == 0 then m, n, k = 131, 67, 31 end
        round_run(round, types[math.floor(round / 5) % #types + 1], m, n, k)
      end
    end)

  test("sums complex numbers over nothing, and gives results of no elements", function()
    for _, type in ipairs(both) do
      local c = cg.full(type, { 2, 3 }, { 1, 2 })
      local a, b = cg.buffer(type, { 2, 0 }), cg.buffer(type, { 0, 3 })
      blas.gemm(a, b, { out = c, beta = 3 })
      same_list({ { 3, 6 }, { 3, 6 }, { 3, 6 }, { 3, 6 }, { 3, 6 }, { 3, 6 } }, c:download(), type)
      assert.same({ 0, 0 }, blas.gemm(b, cg.buffer(type, { 3, 0 })).shape)
    end
    assert.same({ 0, 2, 3 },
      blas.gemm(cg.buffer("float", { 0, 2, 5 }), cg.buffer("float", { 5, 3 })).shape)
  end)

  test("makes a result of the columns' size", function()
    local a, b = cg.full("float", { 2, 9 }, 1), cg.full("float", { 2, 5 }, 2)
    local c = blas.gemm(a, b, { columns_a = { 3, 4 }, columns_b = { 1, 2 }, transpose_a = true })
    assert.same({ 4, 2 }, c.shape)
    assert.equal(4, device.value(c))
  end)

  test("reads alpha and beta of complex numbers on the device", function()
    for _, type in ipairs(both) do
      local a, b = cg.full(type, { 1, 2 }, { 1, 1 }), cg.full(type, { 2, 1 }, { 0, 1 })
      local c, i = cg.full(type, { 1, 1 }, { 3, 4 }), cg.full(type, 1, { 0, 1 })
      blas.gemm(a, b, { out = c, alpha = i, beta = 2 }) -- i (-2 + 2i) + 6 + 8i
      same_list({ { 4, 6 } }, c:download(), type)
      blas.gemm(a, b, { out = c, alpha = 3, beta = i }) -- -6 + 6i + i (4 + 6i)
      same_list({ { -12, 10 } }, c:download(), type)
    end
  end)

  test("takes a precision by name", function()
    for _, type in ipairs { "float", "complex64" } do
      local a = cg.full(type, { 40, 40 }, 2)
      for _, precision in ipairs { "ieee", "tf32" } do
        assert.equal(160, (parts(blas.gemm(a, a, { precision = precision }):download()[7])))
      end
    end
    assert.is_truthy(on_host or blas.describe():find("TF32", 1, true))
  end)

  test("refuses what the libraries do not do", function()
    local a, z = cg.zeros("float", { 4, 6 }), cg.zeros("complex64", { 4, 4 })
    local d = cg.zeros("double", { 2, 2 })
    refused("not transposed", blas.gemm, z, z, { conjugate_a = true })
    refused("a of {4, 4} complex64, b of {4, 6} float", blas.gemm, z, a)
    refused("only blas.gemm takes complex", blas.gemv, z, cg.zeros("complex64", 4))
    refused("a precision", blas.gemm, d, d, { precision = "tf32" })
    refused("a of {4, 6} float (3 columns from 4)", blas.gemm, a, cg.zeros("float", { 3, 2 }),
      { columns_a = { 5, 3 } })
    refused("do not fit", blas.gemm, a, cg.zeros("float", { 3, 2 }), { columns_a = { 8, 3 } })
    refused("alpha is {1} float, for operands of complex64", blas.gemm, z, z,
      { alpha = cg.zeros("float", 1) })
    refused("shares memory", blas.gemm, a, cg.zeros("float", { 6, 2 }),
      { out = a, columns_out = { 1, 2 } })
    for _, opts in ipairs { { precision = "fast" }, { columns_a = 3 }, { columns_a = { 1 } },
                            { columns_b = { 0, 2 } }, { columns_b = { 1, 0 } },
                            { columns_a = { "x", 1 } }, { columns_out = { 1, 2 } },
                            { conjugate_a = 1 } } do
      device.slips(function() blas.gemm(a, a, opts) end, (next(opts)))
    end
  end)
end)

describe("cgraphlua.blas in a capture", function()
  teardown(device.nothing_alive)

  -- c = a b; sum = c c; c = c + sum of c, as a vector.
  local function job(n)
    local J = { a = matrix(n, n), b = matrix(n, n) }
    J.A, J.B = buffer(J.a, "double"), buffer(J.b, "double")
    J.C, J.sum = cg.zeros("double", { n, n }), cg.zeros("double", 1)
    function J.work()
      blas.gemm(J.A, J.B, { out = J.C })
      blas.dot(J.C, J.A, { out = J.sum })
      blas.axpy(J.A, J.C, { alpha = J.sum })
    end
    function J.check(what)
      local c = product(J.a, J.b, 1, 0)
      local sum = 0
      for i, v in ipairs(c.at) do sum = sum + v * J.a.at[i] end
      same({ at = { sum } }, J.sum, what)
      same(matrix(n, n, function(i, j) return at(c, i, j) + sum * at(J.a, i, j) end), J.C, what)
    end
    return J
  end

  test("is a node with a name and a line, replayed with what is there then", function()
    local J = job(40)
    local g = cg.capture(J.work)
    local nodes = g:nodes()
    local names = {}
    for i, node in ipairs(nodes) do
      names[i] = node.name:gsub("^blas%.", "")
      assert.is_truthy(node.file:find("blas_spec.lua", 1, true))
    end
    assert.is_truthy((" " .. table.concat(names, " ") .. " "):find " gemm dot .*axpy ")
    for turn = 1, 3 do
      g:replay()
      J.check("replay " .. turn)
      J.a = matrix(40, 40)
      J.A:upload(J.a.at)
    end
    J.C:fill(0)
    g:replay(2000)
    J.check "replay(2000)"
  end)

  test("makes the library ready in a capture", function()
    local status, out, err = device.child [[
      local blas = require "cgraphlua.blas"
      local a, c = cg.full("float", { 64, 64 }, 2), cg.zeros("float", { 64, 64 })
      local g = cg.capture(function() blas.gemm(a, a, { out = c }) end)
      g:replay()
      print(c:view(4096, 1):item())
    ]]
    assert(status == 0 and out == "256\n", out .. err)
  end)

  test("is ordered by data", function()
    for _, order in ipairs { "issue", "data" } do
      local one, two = job(17), job(23)
      local g = cg.capture(function()
        one.work()
        two.work()
      end, { order = order })
      g:replay(3)
      one.check(order)
      two.check(order)
      assert.equal(0, #g:plan().barriers)
      -- cuBLAS's scratch serves one call after the other.
      if order == "data" and on_host then assert.is_true(g:plan().width >= 2) end
    end
  end)

  test("stands in branches and loops", function()
    local J = job(9)
    local count, total = cg.zeros("double", 4), cg.full("double", 4, 1)
    local flag = cg.from({ true }, "bool")
    local g = cg.capture(function()
      cg.when(flag, J.work)
      cg.times(cg.full("int32", 1, 3), function() blas.axpy(total, count) end, { max = 5 })
    end)
    g:replay()
    J.check "branch"
    same({ at = { 3, 3, 3, 3 } }, count, "loop")
    flag:fill(false)
    J.C:fill(7)
    g:replay(2)
    same(matrix(9, 9, function() return 7 end), J.C, "a branch that is not taken")
    same({ at = { 9, 9, 9, 9 } }, count, "loop")
  end)

  -- Random programs have the bits of their calls outside captures.
  test("does in captures what it does outside", function()
    local n = 7
    for round = 1, 12 do
      local first, steps = {}, {}
      for i = 1, 4 do first[i] = matrix(n, n) end
      for i = 1, 8 do
        local to = (random(100) + 100) % 4 + 1
        steps[i] = { (random(100) + 100) % 5, to, to % 4 + 1, (to + 1) % 4 + 1 }
      end
      local function run(how)
        local x, sum = {}, cg.full("double", 1, 1)
        for i = 1, 4 do x[i] = buffer(first[i], "double") end
        how(function()
          for _, s in ipairs(steps) do
            local to, a, b = x[s[2]], x[s[3]], x[s[4]]
            if s[1] == 0 then blas.gemm(a, b, { out = to, alpha = 2 ^ -6 }) end
            if s[1] == 1 then blas.gemm(a, b, { out = to, alpha = 2 ^ -6, beta = sum }) end
            if s[1] == 2 then blas.axpy(a, to, { alpha = 0.25 }) end
            if s[1] == 3 then blas.syrk(a, { out = to, alpha = 2 ^ -6, beta = 0.5 }) end
            if s[1] == 4 then
              blas.nrm2(a, { out = sum })
              blas.scal(to, { alpha = 0.5 })
            end
          end
        end)
        local bits = {}
        for i = 1, 4 do bits[i] = device.bits(x[i]) end
        return table.concat(bits, "\n")
      end
      local wanted = run(function(program) program() end)
      for name, how in pairs {
        issue = function(program) cg.capture(program):replay() end,
        data = function(program) cg.capture(program, { order = "data" }):replay() end,
        branch = function(program)
          local flag = cg.from({ true }, "bool")
          cg.capture(function() cg.when(flag, program) end):replay()
        end,
      } do
        assert(wanted == run(how), ("round %d, %s"):format(round, name))
      end
    end
  end)

  test("goes into graphs inside graphs", function()
    local J = job(11)
    local inner = cg.capture(J.work)
    local outer = cg.capture(function() inner:replay() end)
    outer:replay(2)
    J.check "child"
  end)

  test("serves two graphs at once, a thousand times", function()
    local n = 33
    local one, two = job(n), job(n)
    local s, t = cg.stream(), cg.stream()
    local g, h = cg.capture(one.work), cg.capture(two.work)
    cg.synchronize()
    for _ = 1, 1000 do
      s:use(function() g:replay() end)
      t:use(function() h:replay() end)
    end
    cg.synchronize()
    one.check "one"
    two.check "two"
  end)

  -- Products before and after transforms of four elements, which are exact, in
  -- whole numbers.  What replays is not what made the graphs ready: the handles
  -- serve other graphs between, and no plan is kept.
  test("replays products and transforms from two streams, whatever the handles do between",
    function()
      if not pcall(fft.describe) then return pending "there is no library of transforms" end
      local n = 24
      local function chain(type)
        local J = { a = matrix(n, n), b = matrix(n, 4) }
        J.A, J.B = buffer(J.a, type), buffer(J.b, type)
        J.stream, J.out = cg.stream(), cg.zeros(type, { n, 4 })
        function J.work()
          local spectrum = fft.fft(blas.gemm(J.A, J.B), { dims = 1 })
          blas.gemm(J.A, spectrum, { out = J.out, transpose_a = true })
        end
        function J.refill()
          J.a = matrix(n, n)
          J.A:upload(J.a.at)
        end
        -- Each row x, y, z, w of a' a b, transformed.
        function J.check(what)
          local rows, got = product(turned(J.a, true), product(J.a, J.b, 1, 0), 1, 0),
            J.out:download()
          for i = 1, n do
            local x, y, z, w = unpack(rows.at, 4 * i - 3, 4 * i)
            local wanted = { { x + y + z + w, 0 }, { x - z, w - y }, { x - y + z - w, 0 },
                             { x - z, y - w } }
            for k = 1, 4 do
              local re, im = unpack(got[4 * (i - 1) + k])
              assert(re == wanted[k][1] and im == wanted[k][2], ("%s, row %d"):format(what, i))
            end
          end
        end
        return J
      end
      local jobs, graphs = { chain "complex64", chain "complex128" }, {}
      for i, J in ipairs(jobs) do
        J.work()
        graphs[i] = cg.capture(J.work)
      end
      local others = { chain "complex128", chain "complex64" }
      for round = 1, 2000 do
        for i, J in ipairs(jobs) do
          J.stream:use(function() graphs[i]:replay(5) end)
        end
        if round % 100 == 0 then
          local other = others[round / 100 % 2 + 1]
          other.work() -- makes the plan that a capture cannot
          local g = cg.capture(other.work)
          g:replay(3)
          cg.synchronize()
          other.check("other " .. round)
          g:release()
          for i, J in ipairs(jobs) do
            J.check(("graph %d, round %d"):format(i, round))
            J.refill()
          end
          cg.synchronize()
          fft.clear()
        end
      end
    end)

  test("keeps what it uses", function()
    local J = job(5)
    local g = cg.capture(J.work)
    J.A:release()
    J.B:release()
    collectgarbage()
    g:replay()
    J.check "later"
  end)
end)
