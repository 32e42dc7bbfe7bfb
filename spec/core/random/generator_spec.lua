-- Random numbers: what a generator gives, and that captures, replays and eager
-- draws make one sequence.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local raises, slips = device.raises, device.slips
local bits = device.bits

-- The next `n` values of a generator, eagerly, four at a time.
local function draw(gen, n)
  local x, list = cg.buffer("uint32", 4), {}
  for i = 1, n do list[i] = table.concat(x:random(gen):download(), " ") end
  return list
end

-- What seed 7 gives from the first number on.
local sequence

local function expected(from, to)
  sequence = sequence or draw(cg.generator(7), 40)
  return { unpack(sequence, from, to) }
end

-- A graph that fills `n` buffers, and what they hold.
local function drawing(gen, n, opts)
  local t = {}
  for i = 1, n do t[i] = cg.zeros("uint32", 4) end
  local g = cg.capture(function()
    for i = 1, n do t[i]:random(gen) end
  end, opts)
  return g, function()
    local list = {}
    for i = 1, n do list[i] = table.concat(t[i]:download(), " ") end
    return list
  end
end

local source = [[
extern "C" __global__ void words(uint4 *out, int n, cgl_philox rng) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = cgl_random4(rng);
}
extern "C" __global__ void two(uint4 *out, cgl_philox a, cgl_philox b) {
  int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = cgl_random4(a);
  out[i + 1] = cgl_random4(b);
}
extern "C" __global__ void block(float *out, cgl_philox rng) {
  __shared__ float sum[64];
  int t = threadIdx.x;
  sum[t] = cgl_uniform(rng);
  for (int half = 32; half; half /= 2) {
    __syncthreads();
    if (t < half) sum[t] += sum[t + half];
  }
  out[blockIdx.x * 64 + t] = cgl_uniform(rng) + 0 * sum[0];
}
extern "C" __global__ void second(float *out, cgl_philox rng) {
  cgl_uniform(rng);
  out[blockIdx.x * 64 + threadIdx.x] = cgl_uniform(rng);
}
extern "C" __global__ void stride(float *out, int n, cgl_philox rng) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = cgl_uniform(rng);
}
extern "C" __global__ void plain(float *out, int n, int threads, cgl_philox rng) {
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = t; i < n; i += threads)
    out[i] = cgl_uniform(rng);
}
]]

describe("a generator", function()
  teardown(device.nothing_alive)

  it("starts from its seed, and again from the same", function()
    local gen = cg.generator(7)
    assert.equal(7, gen:initial_seed())
    assert.same(expected(1, 3), draw(gen, 3))
    assert.equal(3, gen:get_offset())
    assert.equal(gen, gen:manual_seed(7))
    assert.equal(0, gen:get_offset())
    assert.same(expected(1, 3), draw(gen, 3))
    gen:manual_seed(8)
    assert.are_not.same(expected(1, 3), draw(gen, 3))
  end)

  it("goes to an offset", function()
    local gen = cg.generator(7)
    gen:set_offset(5)
    assert.equal(5, gen:get_offset())
    assert.same(expected(6, 7), draw(gen, 2))
    assert.equal(7, gen:get_offset())
    gen:set_offset(2 ^ 53)
    draw(gen, 1)
    assert.equal(tostring(2 ^ 53 + 1 ~= gen:get_offset()), "true") -- cdata
    assert.equal("9007199254740993ULL", tostring(gen:get_offset()))
  end)

  it("takes a seed of 64 bits and a fresh one of the system's", function()
    local gen = cg.generator(0xffffffffffffffffULL)
    assert.equal("18446744073709551615ULL", tostring(gen:initial_seed()))
    local seed = gen:seed()
    assert.equal(seed, gen:initial_seed())
    assert.is_true(seed >= 0 and seed < 2 ^ 53 and seed == math.floor(seed))
    assert.are_not.equal(seed, gen:seed())
  end)

  it("is there by default, one for each device", function()
    assert.equal(cg.default_generator(), cg.manual_seed(7))
    assert.same(expected(1, 2), draw(nil, 2))
    assert.equal(67280421310721, cg.generator():initial_seed())
  end)

  it("refuses what is no seed, no offset and no generator", function()
    slips(function() cg.generator(-1) end, "seed must be a whole number")
    slips(function() cg.generator(1.5) end, "1.5")
    slips(function() cg.generator(0 / 0) end, "nan")
    slips(function() cg.generator "7" end)
    slips(function() cg.generator(1):set_offset(-1) end)
    slips(function() cg.generator(1):graphsafe_set_state(3) end)
    slips(function() cg.zeros("float", 1):uniform(cg.stream()) end, "cgraphlua.generator expected")
    local gen = cg.generator(1)
    gen:release()
    raises("CGL_ERROR_RELEASED", function() gen:get_offset() end, "this generator was released")
    raises("CGL_ERROR_RELEASED", function() cg.zeros("float", 1):uniform(gen) end)
    assert.matches("released", tostring(gen))
  end)
end)

describe("a capture that draws", function()
  teardown(device.nothing_alive)

  it("has one node for each draw and one for each state", function()
    local a, b = cg.generator(1), cg.generator(2)
    local x = cg.buffer("float", 100)
    local g = cg.capture(function()
      x:uniform(a)
      x:normal(a)
      x:uniform(b)
      x:fill(1)
    end)
    local names = {}
    for i, node in ipairs(g:nodes()) do names[i] = node.name end
    table.sort(names, function(p, q) return p < q end)
    assert.same({ "advance", "advance", "buffer:fill", "normal_float", "uniform_float",
                  "uniform_float" }, names)
    assert.equal(0, a:get_offset())
  end)

  it("replays with fresh numbers, eager draws in between: one sequence", function()
    local gen = cg.generator(7)
    local g, values = drawing(gen, 2)
    g:replay()
    assert.same(expected(1, 2), values())
    assert.same(expected(3, 3), draw(gen, 1))
    g:replay()
    assert.same(expected(4, 5), values())
    assert.same(expected(6, 8), draw(gen, 3))
    g:replay(3)
    assert.same(expected(13, 14), values())
    assert.equal(14, gen:get_offset())
  end)

  it("takes a seed or an offset that was set between replays", function()
    local gen = cg.generator(1)
    local g, values = drawing(gen, 2)
    g:replay(5)
    gen:manual_seed(7)
    g:replay()
    assert.same(expected(1, 2), values())
    gen:set_offset(10)
    g:replay()
    assert.same(expected(11, 12), values())
  end)

  it("refuses to reseed, or to read and set the offset", function()
    local gen, x = cg.generator(3), cg.buffer("float", 4)
    cg.capture(function()
      x:uniform(gen)
      for _, fn in ipairs {
        function() gen:manual_seed(4) end, function() gen:seed() end,
        function() gen:get_offset() end, function() gen:set_offset(0) end,
      } do
        raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", fn, "capture that draws from this")
      end
      assert.equal(gen, gen:manual_seed(3))
      local other = cg.generator(5)
      raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", function() other:manual_seed(4) end,
        "current stream captures")
    end):replay()
    assert.equal(1, gen:get_offset())
    gen:manual_seed(4)
  end)

  it("refuses so on the streams that do not capture, too", function()
    local gen, x, s, g = cg.generator(3), cg.zeros("float", 4), cg.stream(), cg.graph()
    g:capture_begin { stream = s }
    s:use(function() x:uniform(gen) end)
    for _, change in ipairs {
      function() gen:manual_seed(4) end,
      function() gen:seed() end,
      function() gen:set_offset(4) end,
      function() gen:get_offset() end,
    } do
      raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", change,
        "a capture that draws from this generator is underway")
    end
    gen:manual_seed(3) -- is no change
    g:capture_end()
    gen:manual_seed(4)
    assert.equal(0, gen:get_offset())
  end)

  it("uses several generators, each in its own sequence", function()
    local a, b = cg.generator(7), cg.generator(7)
    b:set_offset(20)
    local x, y = cg.buffer("uint32", 4), cg.buffer("uint32", 4)
    local g = cg.capture(function()
      x:random(a)
      y:random(b)
      x:random(a)
    end)
    g:replay(2)
    assert.same(expected(4, 4), { table.concat(x:download(), " ") })
    assert.same(expected(22, 22), { table.concat(y:download(), " ") })
    assert.equal(4, a:get_offset())
    assert.equal(22, b:get_offset())
  end)

  it("draws on streams that fork and join", function()
    local gen = cg.generator(7)
    local x, y, z = cg.buffer("uint32", 4), cg.buffer("uint32", 4), cg.buffer("uint32", 4)
    local side = cg.stream()
    local g = cg.capture(function()
      local main = cg.current_stream()
      x:random(gen)
      side:wait(main)
      side:use(function() y:random(gen) end)
      z:random(gen)
      main:wait(side)
    end)
    g:replay(2)
    local got = {}
    for i, b in ipairs { x, y, z } do got[i] = table.concat(b:download(), " ") end
    assert.same(expected(4, 6), got)
    assert.equal(6, gen:get_offset())
  end)

  it("captures again after a reset, and instantiates a kept template twice", function()
    local gen = cg.generator(7)
    local g, values = drawing(gen, 1, { keep_graph = true })
    g:replay()
    g:instantiate()
    g:replay()
    assert.same(expected(2, 2), values())
    g:reset()
    local x = cg.buffer("uint32", 4)
    g:capture(function()
      x:random(gen)
      x:random(gen)
    end)
    g:replay()
    assert.same(expected(4, 4), { table.concat(x:download(), " ") })
  end)

  it("keeps what it draws from", function()
    local g, values
    do
      local gen = cg.generator(7)
      g, values = drawing(gen, 1)
      gen:release()
    end
    collectgarbage()
    g:replay(2)
    assert.same(expected(2, 2), values())
  end)

  it("forgets the draws of a capture that failed", function()
    local gen, x = cg.generator(7), cg.buffer("uint32", 4)
    local g = cg.graph()
    device.fails(function()
      g:capture(function()
        x:random(gen)
        error "enough"
      end)
    end)
    gen:set_offset(4)
    assert.same(expected(5, 5), draw(gen, 1))
    g:capture(function() x:random(gen) end)
    g:replay()
    assert.same(expected(6, 6), { table.concat(x:download(), " ") })
  end)

  it("knows generators that were registered, and those that were not", function()
    local gen = cg.generator(7)
    local g, x = cg.graph(), cg.buffer("uint32", 4)
    g:register_generator_state(gen)
    g:capture(function() x:random(gen) end)
    g:replay()
    assert.same(expected(1, 1), { table.concat(x:download(), " ") })
    g:register_generator_state(cg.generator(1))
    g:replay()
    assert.same(expected(2, 2), { table.concat(x:download(), " ") })
    slips(function() g:register_generator_state(1) end)
  end)

  it("is preceded by what a hook of its replay draws", function()
    local gen = cg.generator(7)
    local g, values = drawing(gen, 1)
    local hooked
    g:register_replay_start_hook(function() hooked = draw(gen, 1) end)
    for round = 0, 2 do
      g:replay()
      assert.same(expected(2 * round + 1, 2 * round + 1), hooked)
      assert.same(expected(2 * round + 2, 2 * round + 2), values())
    end
  end)

  it("may make a generator, or use the default one first", function()
    cg.debug.forget()
    local x, y, gen = cg.buffer("uint32", 4), cg.buffer("uint32", 4)
    local g = cg.capture(function()
      gen = cg.generator(7)
      x:random(gen)
      y:random()
    end)
    g:replay(2)
    assert.same(expected(2, 2), { table.concat(x:download(), " ") })
    assert.equal(2, cg.default_generator():get_offset())
  end)
end)

describe("states", function()
  teardown(device.nothing_alive)

  it("are cloned with their offset, and go on alone", function()
    local gen = cg.generator(7)
    draw(gen, 2)
    local clone = gen:clone_state()
    assert.same(expected(3, 5), draw(gen, 3))
    assert.same(expected(3, 4), draw(clone, 2))
    assert.equal(7, clone:initial_seed())
  end)

  it("are cloned inside a capture, where the draws stand there", function()
    local gen = cg.generator(7)
    local x, y, z = cg.buffer("uint32", 4), cg.buffer("uint32", 4), cg.buffer("uint32", 4)
    local clone
    local g = cg.capture(function()
      x:random(gen)
      clone = gen:clone_state()
      y:random(gen)
      z:random(clone)
    end)
    local function words(b) return { table.concat(b:download(), " ") } end
    g:replay()
    assert.same({ expected(1, 1), expected(2, 2), expected(2, 2) },
      { words(x), words(y), words(z) })
    assert.same({ 2, 2, 7 }, { gen:get_offset(), clone:get_offset(), clone:initial_seed() })
    gen:set_offset(10)
    clone:manual_seed(1) -- the replay copies the other one's
    g:replay(2)
    assert.same({ expected(13, 13), expected(14, 14), expected(14, 14) },
      { words(x), words(y), words(z) })
    assert.same(expected(15, 15), draw(clone, 1))
    clone:set_offset(2) -- of the seed that the device gave
    assert.same(expected(3, 3), draw(clone, 1))
  end)

  it("are read and set on the device, eagerly and in replays", function()
    local gen, other = cg.generator(7), cg.generator(9)
    draw(gen, 3)
    local state = gen:get_state()
    assert.same({ 7, 3 }, state:download())
    other:set_state(state)
    assert.matches("its seed on the device", tostring(other))
    assert.same({ 7, 3 }, { other:initial_seed(), other:get_offset() })
    assert.matches("seed 7", tostring(other))
    local x, kept = cg.buffer("uint32", 4), cg.buffer("uint64", 2)
    local inner = cg.capture(function()
      other:set_state(state)
      x:random(other)
    end)
    local g = cg.capture(function()
      inner:replay()
      assert.equal(kept, other:get_state(kept))
      x:random(other)
    end)
    other:manual_seed(4)
    g:replay(3)
    assert.same({ { 7, 4 }, 7, 5 }, { kept:download(), other:initial_seed(), other:get_offset() })
    assert.same(expected(5, 5), { table.concat(x:download(), " ") })
    g:replay()
    other:seed() -- known again
    assert.is_nil(tostring(other):match "device")
  end)

  it("say what a state is copied from and to", function()
    local gen = cg.generator(7)
    local three = cg.buffer("uint64", 3)
    device.raises("CGL_ERROR_INVALID_ARGUMENT", function() gen:get_state(three) end,
      "a state is 2 elements of uint64, not 3 of uint64")
    device.raises("CGL_ERROR_INVALID_ARGUMENT", function() gen:set_state(cg.buffer("float", 2)) end,
      "not 2 of float")
    local b = cg.buffer("uint64", 2)
    b:release()
    device.raises("CGL_ERROR_RELEASED", function() gen:set_state(b) end)
    assert.equal(0, gen:get_offset())
  end)

  it("are shared by generators", function()
    local gen = cg.generator(7)
    local same = gen:graphsafe_get_state()
    assert.same(expected(1, 1), draw(gen, 1))
    assert.same(expected(2, 2), draw(same, 1))
    assert.same(expected(3, 3), draw(gen, 1))
    same:manual_seed(9)
    assert.equal(9, gen:initial_seed())
  end)

  it("are switched inside a capture", function()
    local gen, other = cg.generator(7), cg.generator(7)
    other:set_offset(20)
    local own = gen:graphsafe_get_state()
    local x, y, z = cg.buffer("uint32", 4), cg.buffer("uint32", 4), cg.buffer("uint32", 4)
    local g = cg.capture(function()
      x:random(gen)
      gen:graphsafe_set_state(other)
      y:random(gen)
      gen:graphsafe_set_state(own)
      z:random(gen)
    end)
    g:replay(2)
    local got = {}
    for i, b in ipairs { x, y, z } do got[i] = table.concat(b:download(), " ") end
    assert.same({ expected(3, 3)[1], expected(22, 22)[1], expected(4, 4)[1] }, got)
    assert.equal(4, gen:get_offset())
    assert.equal(22, other:get_offset())
  end)

  it("are used in the order of the streams that draw", function()
    local gen = cg.generator(7)
    local a, b = cg.stream(), cg.stream()
    local spin, busy = device.kernel "spin", cg.zeros("float", 1)
    local x, y, z = cg.buffer("uint32", 4), cg.buffer("uint32", 4), cg.buffer("uint32", 4)
    local g = cg.capture(function()
      spin:launch(1, 1, busy, 300000)
      x:random(gen)
    end)
    for round = 0, 2 do
      a:use(function() g:replay() end)
      b:use(function() y:random(gen) end)
      z:random(gen)
      cg.synchronize()
      local got = {}
      for i, buffer in ipairs { x, y, z } do got[i] = table.concat(buffer:download(), " ") end
      assert.same(expected(3 * round + 1, 3 * round + 3), got)
    end
  end)

  it("are in order too when the stream before captures by now", function()
    local gen = cg.generator(7)
    local a, x, y = cg.stream(), cg.buffer("uint32", 4), cg.buffer("uint32", 4)
    local spin, busy = device.kernel "spin", cg.zeros("float", 1)
    local g, h = drawing(gen, 1), cg.graph { capture_error_mode = "relaxed" }
    a:use(function()
      spin:launch(1, 1, busy, 300000)
      g:replay()
      h:capture_begin()
      busy:fill(0)
    end)
    x:random(gen)
    a:use(function()
      y:random(gen)
      h:capture_end()
    end)
    assert.same(expected(2, 2), { table.concat(x:download(), " ") })
    h:replay()
    assert.same(expected(3, 3), { table.concat(y:download(), " ") })
  end)
end)

describe("a graph inside a capture", function()
  teardown(device.nothing_alive)

  it("shares no number with what is drawn around it", function()
    local gen = cg.generator(7)
    local inner, inside = drawing(gen, 2)
    local b = {}
    for i = 1, 4 do b[i] = cg.zeros("uint32", 4) end
    local side = cg.stream()
    local g = cg.capture(function()
      local main = cg.current_stream()
      side:wait(main)
      b[1]:random(gen)
      side:use(function() b[2]:random(gen) end)
      inner:replay()
      side:use(function() b[3]:random(gen) end)
      main:wait(side)
      inner:replay()
      b[4]:random(gen)
    end)
    for round = 0, 2 do
      g:replay()
      local got = {}
      for i = 1, 4 do got[i] = table.concat(b[i]:download(), " ") end
      local all = expected(8 * round + 1, 8 * round + 8)
      assert.same({ all[1], all[2], all[5], all[8] }, got)
      assert.same({ all[6], all[7] }, inside())
    end
    assert.equal(24, gen:get_offset())
  end)

  it("draws when nothing else in the capture does", function()
    local gen = cg.generator(7)
    local inner, inside = drawing(gen, 1)
    local g = cg.capture(function() inner:replay(3) end)
    local outer = cg.capture(function()
      g:replay()
      inner:replay()
    end)
    inner:reset()
    outer:replay(2)
    assert.same(expected(8, 8), inside())
    assert.same(expected(9, 9), draw(gen, 1))
    outer:replay()
    assert.same(expected(13, 13), inside())
  end)
end)

describe("a kernel with a cgl_philox", function()
  local m
  setup(function() m = cg.module(source) end)
  teardown(function()
    m = nil
    device.nothing_alive()
  end)

  it("draws a number of its own in every launch", function()
    local gen, words = cg.generator(7), m:kernel "words"
    local x = cg.buffer("uint32", 4)
    -- A thread's first block is a fill's first: both are at position 0.
    words:launch(1, 1, x, 1, gen)
    assert.same(expected(1, 1), { table.concat(x:download(), " ") })
    local g = cg.capture(function() words:launch(1, 1, x, 1, gen) end)
    g:replay(2)
    assert.same(expected(3, 3), { table.concat(x:download(), " ") })
    assert.same(expected(4, 4), draw(gen, 1))
    g:replay()
    assert.same(expected(5, 5), { table.concat(x:download(), " ") })
  end)

  it("gives every thread other numbers, whatever the grid", function()
    local words = m:kernel "words"
    local x, seen = cg.buffer("uint32", 4 * 4096), {}
    words:launch(64, 64, x, 4096, cg.generator(1))
    local first = x:download()
    for i = 1, #first, 4 do
      local key = table.concat(first, " ", i, i + 3)
      assert.is_nil(seen[key])
      seen[key] = true
    end
    words:launch({ 2, 1, 1 }, { 64, 1, 1 }, x, 128, cg.generator(1))
    assert.same({ unpack(first, 1, 512) }, { unpack(x:download(), 1, 512) })
  end)

  it("takes a number for each of its generators", function()
    local two, gen = m:kernel "two", cg.generator(7)
    local x = cg.buffer("uint32", 8)
    local function run()
      two:launch(1, 1, x, gen, gen:graphsafe_get_state())
    end
    local function got()
      local t = x:download()
      return { table.concat(t, " ", 1, 4), table.concat(t, " ", 5, 8) }
    end
    run()
    assert.same(expected(1, 2), got())
    cg.capture(run):replay(2)
    assert.same(expected(5, 6), got())
    assert.equal(6, gen:get_offset())
  end)

  it("draws by thread across barriers too", function()
    local x, y = cg.buffer("float", 128), cg.buffer("float", 128)
    m:kernel "block":launch(2, 64, x, cg.generator(5))
    m:kernel "second":launch(2, 64, y, cg.generator(5))
    assert.same(y:download(), x:download())
  end)

  it("has functions for every kind of number", function()
    local gen = cg.generator(5)
    local kernel = cg.kernel [[
      extern "C" __global__ void kinds(float *f, double *d, unsigned *u, int n, cgl_philox rng) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i >= n) return;
        float4 a = cgl_uniform4(rng), b = cgl_normal4(rng);
        f[8 * i] = a.x, f[8 * i + 1] = a.y, f[8 * i + 2] = a.z, f[8 * i + 3] = a.w;
        f[8 * i + 4] = b.x, f[8 * i + 5] = b.y, f[8 * i + 6] = b.z, f[8 * i + 7] = b.w;
        d[3 * i] = cgl_uniform_double(rng);
        d[3 * i + 1] = cgl_normal_double(rng);
        d[3 * i + 2] = cgl_normal(rng);
        u[3 * i] = cgl_below(rng, 10);
        u[3 * i + 1] = cgl_below(rng, 3u << 30);
        u[3 * i + 2] = cgl_random(rng);
      }]]
    local n = 20000
    local f, d = cg.buffer("float", 8 * n), cg.buffer("double", 3 * n)
    local u = cg.buffer("uint32", 3 * n)
    kernel:over(n)(f, d, u, n, gen)
    local function mean(list, first, step)
      local sum = 0
      for i = first, #list, step do sum = sum + list[i] end
      return sum / (#list / step)
    end
    local fs, ds, us = f:download(), d:download(), u:download()
    -- Five deviations of each mean.
    for i = 1, 4 do assert.near(0.5, mean(fs, i, 8), 5 * 0.2887 / n ^ 0.5) end
    for i = 5, 8 do assert.near(0, mean(fs, i, 8), 5 / n ^ 0.5) end
    assert.near(0.5, mean(ds, 1, 3), 5 * 0.2887 / n ^ 0.5)
    assert.near(0, mean(ds, 2, 3), 5 / n ^ 0.5)
    assert.near(0, mean(ds, 3, 3), 5 / n ^ 0.5)
    assert.near(4.5, mean(us, 1, 3), 5 * 2.8723 / n ^ 0.5)
    assert.near(0.5, mean(us, 2, 3) / (3 * 2 ^ 30), 5 * 0.2887 / n ^ 0.5)
    assert.near(0.5, mean(us, 3, 3) / 2 ^ 32, 5 * 0.2887 / n ^ 0.5)
    for i = 1, #us, 3 do assert.is_true(us[i] < 10 and us[i + 1] < 3 * 2 ^ 30) end
    -- The same bits on every device, and however the compiler fuses.
    assert.equal("3f441768 3d8ec288 3f7bd62c 3f7739e2 3f4f0911 3f9abe97 3f45227a 3f37d8fc",
      bits(f:view(1, 8)))
    assert.equal("3fe60ac68d5ed695 3fe9c26e2415c638 3fe4189160000000", bits(d:view(1, 3)))
    assert.equal("00000005 bf04a200 a323fc06", bits(u:view(1, 3)))
  end)

  it("draws by thread in a grid-stride loop too", function()
    local x, y = cg.buffer("float", 1000), cg.buffer("float", 1000)
    m:kernel "stride":launch(2, 32, x, 1000, cg.generator(5))
    m:kernel "plain":launch(2, 32, y, 1000, 64, cg.generator(5))
    assert.same(y:download(), x:download())
  end)

  it("refuses anything else for it, and a generator elsewhere", function()
    local words, x = m:kernel "words", cg.buffer("uint32", 4)
    local gen = cg.generator(1)
    raises("CGL_ERROR_ARGUMENT_TYPE", function() words:launch(1, 1, x, 1, 7) end,
      "cgl_philox rng", "wants a generator, not a number")
    raises("CGL_ERROR_ARGUMENT_TYPE",
      function() words:launch(1, 1, x, 1, ("x"):rep(32)) end, "wants a generator, not bytes")
    raises("CGL_ERROR_ARGUMENT_TYPE", function() words:launch(1, 1, x, gen, gen) end,
      "argument 2 of words %(int n%) is a generator")
    raises("CGL_ERROR_ARGUMENT_TYPE", function() words:launch(1, 1, gen, 1, gen) end)
    assert.equal(0, gen:get_offset())
    gen:release()
    raises("CGL_ERROR_RELEASED", function() words:launch(1, 1, x, 1, gen) end, "argument 3 'rng'")
  end)
end)
