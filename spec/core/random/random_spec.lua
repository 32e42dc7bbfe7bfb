-- What fills give: the same bits everywhere, the ranges that were asked for,
-- and numbers that pass for random.  Seeds are fixed: a test that passes once
-- passes always.

local cg = require "cgraphlua"
local bit = require "bit"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips
local bits = device.bits

local function checksum(buffer)
  local bytes, sum = buffer:download "string", 0
  for i = 1, #bytes do sum = bit.tobit(bit.bxor(bit.rol(sum, 5), bytes:byte(i)) + i) end
  return bit.tohex(sum)
end

local function fill(kind, type, n, seed, ...)
  local b = cg.buffer(type, n)
  return b[kind](b, cg.generator(seed), ...)
end

-- Pearson's statistic of counts that should be equal.
local function chi_square(counts, n)
  local sum, expected = 0, n / #counts
  for _, c in ipairs(counts) do sum = sum + (c - expected) ^ 2 / expected end
  return sum
end

-- The value that it exceeds with probability 0.001, by Wilson and Hilferty.
local function chi_limit(freedom)
  return freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ^ 3
end

local function flat(buckets, n, bucket)
  local counts = {}
  for i = 1, buckets do counts[i] = 0 end
  for i = 1, n do
    local b = bucket(i) + 1
    counts[b] = counts[b] + 1
  end
  local x = chi_square(counts, n)
  assert(x < chi_limit(buckets - 1), ("chi-square %.1f of %d buckets"):format(x, buckets))
end

-- Kolmogorov's and Smirnov's distance from a distribution, times the root of
-- n; above 1.95 with probability 0.001.
local function follows(values, distribution)
  table.sort(values)
  local n, distance = #values, 0
  for i, v in ipairs(values) do
    local f = distribution(v)
    distance = math.max(distance, math.abs(f - i / n), math.abs(f - (i - 1) / n))
  end
  assert(distance * math.sqrt(n) < 1.95, ("distance %.4f"):format(distance))
end

-- The normal distribution, to 1e-12: Marsaglia's series, and his fraction.
local function normal(x)
  if x < -7 then return 0 end
  if x > 7 then return 1 end
  local sum, term, k = x, x, 1
  while math.abs(term) > 1e-15 * math.abs(sum) do
    k = k + 2
    term = term * x * x / k
    sum = sum + term
  end
  return 0.5 + sum * math.exp(-x * x / 2) / math.sqrt(2 * math.pi)
end

describe("a fill", function()
  teardown(device.nothing_alive)

  it("gives these bits on every device", function()
    local function first(kind, type, ...)
      return bits(fill(kind, type, 4, 2026, ...))
    end
    assert.equal("3edcb650 3f05b7be 3f33ceb6 3e97d37e",
      first("uniform", "float"))
    assert.equal("3fad4c58 4011a326 408301c6 bba39400",
      first("uniform", "float", -3, 7.1))
    assert.equal("3fe0b6f7cb6dcb65 3fd2fa6fcb2cf3ac 3fd653c35abf3ffc 3fea2fd2e48e0257",
      first("uniform", "double"))
    assert.equal("40023464e1a86e5e bf74728561b25400 3fe0c09a8a45cfec 40150f93da267c8e",
      first("uniform", "double", -3, 7.1))
    assert.equal("36e6 382e 399e 34bf",
      first("uniform", "half"))
    assert.equal("be0d 3d37 3ecf bed0",
      first("uniform", "bfloat16", -1, 1))
    assert.equal("bfa46b50 be39cf95 be781b5c 3f4e0e6b",
      first("normal", "float"))
    assert.equal("bfd506419e6c8a78 3ff1760a347c2e7e 3fe3555a859a6dcd bff51cc1982c1f1e",
      first("normal", "double"))
    assert.equal("bd23 b1ce b3c1 3a70",
      first("normal", "half"))
    assert.equal("3fae 3ff4 3ff0 401a",
      first("normal", "bfloat16", 2, 0.5))
    assert.equal("6e5b28e3 85b7be5b b3ceb6b8 4be9bf2c",
      first("random", "uint32"))
    assert.equal("f2 04 28 d7",
      first("random", "int8", -100, 100))
    assert.equal("0004 0005 0007 0002",
      first("random", "int16", 0, 10))
    assert.equal("19b1bc53 1f2232e8 29dd5c55 39d85133",
      first("random", "int32", -5, 1e9))
    assert.equal("42dbdf2db72d9471 25f4df9659e75b5c 2ca786b57e7ffa87 68bf4b9238095e80",
      first("random", "int64"))
    assert.equal("0010b6f7cb6dcb65 00097d37e59679d6 000b29e1ad5f9ffe 001a2fd2e48e0257",
      first("random", "uint64", 0, 2 ^ 53))
    assert.equal("00 01 01 00",
      first("random", "bool"))
  end)

  it("gives these bits far on too", function()
    local function sum(kind, type, ...)
      return checksum(fill(kind, type, 100003, 2026, ...))
    end
    assert.equal("870bc5ff", sum("uniform", "float"))
    assert.equal("3545da54", sum("uniform", "float", -3, 7.1))
    assert.equal("bb8ec834", sum("uniform", "double"))
    assert.equal("6e983ff4", sum("uniform", "double", -3, 7.1))
    assert.equal("c7288733", sum("uniform", "half"))
    assert.equal("527ad91b", sum("uniform", "bfloat16", -1, 1))
    assert.equal("37a6329e", sum("normal", "float"))
    assert.equal("63153f7f", sum("normal", "double"))
    assert.equal("0fdd09c8", sum("normal", "half"))
    assert.equal("bde0fd65", sum("normal", "bfloat16", 2, 0.5))
    assert.equal("2cc80ceb", sum("random", "uint32"))
    assert.equal("1d57a92d", sum("random", "int8", -100, 100))
    assert.equal("7da0e694", sum("random", "int16", 0, 10))
    assert.equal("a2f5c7c6", sum("random", "int32", -5, 1e9))
    assert.equal("5d597f0b", sum("random", "int64"))
    assert.equal("a91fbf62", sum("random", "uint64", 0, 2 ^ 53))
    assert.equal("d6d29ebe", sum("random", "bool"))
  end)

  it("is the beginning of a longer one, and leaves its neighbours alone", function()
    for _, type in ipairs { "uint8", "half", "float", "double", "int64" } do
      local kind = type:find "int" and "random" or "uniform"
      local long = fill(kind, type, 40, 5):download()
      for n = 1, 9 do
        local b = cg.full(type, 40, 7)
        local v = b:view(4, n) -- at addresses of every alignment
        assert.equal(v, v[kind](v, cg.generator(5)))
        local got = b:download()
        for i = 1, 40 do
          assert.equal(i > 3 and i <= 3 + n and long[i - 3] or tonumber(got[i]) == 7 and got[i],
            got[i], type .. " " .. n .. " " .. i)
        end
      end
    end
  end)

  it("of nothing takes no number", function()
    local gen = cg.generator(5)
    cg.buffer("float", 0):uniform(gen)
    assert.equal(0, gen:get_offset())
  end)

  it("takes the generator first, nil or nothing for the default one", function()
    local x = cg.buffer("float", 3)
    local function seeded(...)
      cg.manual_seed(3)
      return bits(x:uniform(...))
    end
    local expected = bits(x:uniform(cg.generator(3), 2, 4))
    assert.equal(expected, seeded(2, 4))
    assert.equal(expected, seeded(nil, 2, 4))
    assert.equal(expected, seeded(cg.default_generator(), 2, 4))
    assert.equal(bits(x:uniform(cg.generator(3))), seeded())
  end)

  it("draws every number of vectors and of complex ones", function()
    for several, kind in pairs { float4 = { "float", 4 }, float3 = { "float", 3 },
        complex64 = { "float", 2 }, complex128 = { "double", 2 }, double3 = { "double", 3 },
        int4 = { "int32", 4 }, uchar3 = { "uint8", 3 }, ulonglong2 = { "uint64", 2 } } do
      for _, n in ipairs { 0, 1, 7, 1001 } do
        local x, plain = cg.buffer(several, n), cg.buffer(kind[1], n * kind[2])
        for _, draw in ipairs(kind[1]:find "int" and { "random" } or { "uniform", "normal" }) do
          plain[draw](plain, cg.generator(9), 1, 90)
          x[draw](x, cg.generator(9), 1, 90)
          assert.equal(plain:download "string", x:download "string", several)
        end
      end
    end
    local x, low = cg.buffer("float2", 50), cg.param("float", 0, "low")
    local g = cg.capture(function() x:uniform(cg.generator(2), low, 8) end)
    g:set { low = 7 }
    g:replay()
    for _, pair in ipairs(x:download()) do
      assert.is_true(pair[1] >= 7 and pair[2] >= 7 and pair[2] < 8)
    end
  end)

  it("refuses types, ranges and numbers that do not fit", function()
    local gen, f, i = cg.generator(1), cg.buffer("float", 4), cg.buffer("int8", 4)
    local function wrong(...) raises("CGL_ERROR_INVALID_ARGUMENT", ...) end
    wrong(function() i:uniform(gen) end, "buffer of int8 cannot hold")
    wrong(function() i:normal(gen) end)
    wrong(function() f:random(gen) end, "buffer:uniform")
    wrong(function() f:uniform(gen, 1, 0) end, "1 to 0 is no range of float")
    wrong(function() f:uniform(gen, 0 / 0, 1) end)
    wrong(function() f:uniform(gen, 0, math.huge) end)
    wrong(function() f:uniform(gen, -3e38, 3e38) end, "difference is finite")
    wrong(function() f:uniform(gen, 0, 1e39) end)
    wrong(function() cg.buffer("half", 1):uniform(gen, 0, 65520) end)
    wrong(function() cg.buffer("double", 1):uniform(gen, -1.7e308, 1.7e308) end)
    wrong(function() f:normal(gen, 0, -1) end, "not negative")
    wrong(function() f:normal(gen, 0 / 0) end)
    wrong(function() i:random(gen, 0, 129) end, "does not fit a buffer of int8")
    wrong(function() i:random(gen, -129, 0) end)
    wrong(function() cg.buffer("bool", 1):random(gen, 0, 3) end)
    wrong(function() cg.buffer("uint64", 1):random(gen, -1, 3) end)
    slips(function() i:random(gen, 3, 3) end, "must be above the lower one")
    slips(function() i:random(gen, 0.5, 3) end, "must be a whole number")
    slips(function() i:random(gen, 0, 2 ^ 54) end)
    slips(function() f:uniform(gen, "0", 1) end, "lower bound must be a number")
    slips(function() f:uniform(gen, 0, {}) end)
    assert.equal(0, gen:get_offset())
  end)
end)

describe("uniform", function()
  teardown(device.nothing_alive)

  it("stays at or above the lower bound and below the upper one", function()
    for _, case in ipairs {
      { "float", 0, 1 }, { "float", 1, 1 + 2 ^ -22 }, { "float", -1, 2 ^ -30 },
      { "float", 16777214, 16777216 }, { "float", -2 ^ -149, 0 }, { "double", 1, 1 + 2 ^ -51 },
      { "double", -3, -2 }, { "half", 0, 1 }, { "half", 1, 1.00390625 }, { "half", -8, 8 },
      { "half", 2046, 2048 }, { "bfloat16", 0, 1 }, { "bfloat16", -1, 1 },
      { "bfloat16", 128, 130 },
    } do
      local type, low, high = unpack(case)
      local least, most = math.huge, -math.huge
      for _, v in ipairs(fill("uniform", type, 20000, 9, low, high):download()) do
        least, most = math.min(least, v), math.max(most, v)
      end
      local what = table.concat(case, " ")
      assert(least >= low and most < high, what .. ": " .. least .. " " .. most)
      assert(least < low + (high - low) / 2, what)
      assert(most >= low + (high - low) / 2 or type == "float" and low == -2 ^ -149, what)
    end
  end)

  it("is the bound when there is only one", function()
    assert.same({ 2.5, 2.5, 2.5 }, fill("uniform", "float", 3, 1, 2.5, 2.5):download())
  end)

  it("rounds its bounds to the type", function()
    local low = fill("uniform", "half", 1, 1, 0.1, 0.1):download()[1]
    assert.equal(0.0999755859375, low)
    for _, v in ipairs(fill("uniform", "half", 4096, 1, 0.1, 0.1001):download()) do
      assert.is_true(v >= low and v < 0.1001)
    end
  end)

  it("is uniform", function()
    for i, type in ipairs { "float", "double" } do
      follows(fill("uniform", type, 100000, i, -2, 3):download(), function(x)
        return (x + 2) / 5
      end)
    end
    local h = fill("uniform", "half", 100000, 3):download()
    flat(16, #h, function(i) return math.floor(h[i] * 16) end)
  end)

  it("has no pattern from value to value, from number to number, from seed to seed", function()
    local x = fill("uniform", "float", 80000, 4):download()
    flat(64, 40000, function(i)
      return 8 * math.floor(8 * x[2 * i - 1]) + math.floor(8 * x[2 * i])
    end)
    local gen = cg.generator(5)
    local a = cg.buffer("float", 40000):uniform(gen):download()
    local b = cg.buffer("float", 40000):uniform(gen):download()
    flat(64, 40000, function(i) return 8 * math.floor(8 * a[i]) + math.floor(8 * b[i]) end)
    local c = fill("uniform", "float", 40000, 6):download()
    local d = fill("uniform", "float", 40000, 7):download()
    flat(64, 40000, function(i) return 8 * math.floor(8 * c[i]) + math.floor(8 * d[i]) end)
  end)
end)

describe("normal", function()
  teardown(device.nothing_alive)

  it("is normal", function()
    for i, type in ipairs { "float", "double" } do
      follows(fill("normal", type, 100000, 10 + i):download(), normal)
      follows(fill("normal", type, 100000, 20 + i, 5, 0.25):download(), function(x)
        return normal((x - 5) / 0.25)
      end)
    end
  end)

  it("has a mean, a deviation, tails, and pairs that do not know each other", function()
    local n = 200000
    local x = fill("normal", "float", n, 31):download()
    local mean, square, product, far = 0, 0, 0, 0
    for i = 1, n do
      mean = mean + x[i] / n
      square = square + x[i] ^ 2 / n
      far = far + (math.abs(x[i]) > 3 and 1 or 0)
    end
    for i = 1, n, 2 do product = product + x[i] * x[i + 1] / (n / 2) end
    assert.near(0, mean, 4 / math.sqrt(n))
    assert.near(1, square, 4 * math.sqrt(2 / n))
    assert.near(0, product, 4 / math.sqrt(n / 2))
    assert.near(0.0026998 * n, far, 4 * math.sqrt(0.0027 * n))
  end)

  it("is the mean when it does not deviate", function()
    assert.same({ -3, -3, -3 }, fill("normal", "half", 3, 1, -3, 0):download())
  end)
end)

describe("random", function()
  teardown(device.nothing_alive)

  it("gives every value alike", function()
    for i, case in ipairs {
      { "int8", -3, 4 }, { "uint8", 0, 256 }, { "int16", -50, 50 }, { "uint16", 7, 1007 },
      { "int32", 0, 3 }, { "uint32", 10, 16 }, { "int64", -500, 500 }, { "uint64", 0, 64 },
    } do
      local type, low, high = unpack(case)
      local x = fill("random", type, 100000, 40 + i, low, high):download()
      flat(high - low, #x, function(k) return tonumber(x[k]) - low end)
    end
    local b = fill("random", "bool", 100000, 50):download()
    flat(2, #b, function(k) return b[k] and 1 or 0 end)
  end)

  it("gives every value alike where a third of all words is thrown away", function()
    local n, count = 90000, 3 * 2 ^ 30
    local x = fill("random", "uint32", n, 61, count):download()
    flat(48, n, function(i) return math.floor(x[i] / count * 48) end)
    -- A plain product would give some values twice as often as others.
    flat(3, n, function(i) return x[i] % 3 end)
  end)

  it("gives more than 2^32 values alike", function()
    local n = 60000
    local x = fill("random", "int64", n, 62, -2 ^ 40, 2 ^ 41):download()
    flat(48, n, function(i) return math.floor((x[i] + 2 ^ 40) / (3 * 2 ^ 40) * 48) end)
    flat(3, n, function(i) return (x[i] + 2 ^ 40) % 3 end)
    x = fill("random", "uint64", n, 63, 6 * 2ULL ^ 61):download()
    flat(3, n, function(i) return tonumber(x[i] % 3ULL) end)
    flat(48, n, function(i) return tonumber(x[i] / (2ULL ^ 58)) end)
  end)

  it("goes up to the type's largest unless told", function()
    for type, limit in pairs { int8 = 128, uint8 = 256, int16 = 32768, uint16 = 65536,
                               int32 = 2 ^ 31, uint32 = 2 ^ 32 } do
      local x = fill("random", type, 20000, 70):download()
      flat(16, #x, function(i) return math.floor(x[i] / limit * 16) end)
    end
    local x = fill("random", "uint64", 20000, 71):download()
    flat(16, #x, function(i) return tonumber(bit.rshift(x[i] + 0ULL, 60)) end)
    x = fill("random", "int64", 20000, 72):download()
    flat(16, #x, function(i) return tonumber(bit.rshift(x[i] + 0LL, 59)) end)
    for _, v in ipairs(fill("random", "int8", 1000, 1, 5):download()) do
      assert.is_true(v >= 0 and v < 5)
    end
    assert.same({ -7, -7 }, fill("random", "int32", 2, 1, -7, -6):download())
  end)
end)
