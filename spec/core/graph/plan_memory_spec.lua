-- Data order: where temporary memory of a capture lies, which is decided after
-- the edges are known.

local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local fails, slips = device.fails, device.slips

ffi.cdef "int setenv(const char *name, const char *value, int replace);"

local N, UNIT = 128, 512 -- floats, and their bytes

describe("memory in data order", function()
  local shapes, add, x, y, z

  setup(function()
    shapes = dofile(here .. "/../../support/shapes.lua")
    add = cg.kernel [[
extern "C" __global__ void add(float *y, const float *x, float a) {
  y[threadIdx.x] = x[threadIdx.x] + a;
}]]
  end)

  before_each(function()
    x, y, z = cg.full("float", N, 1), cg.full("float", N, 2), cg.full("float", N, 3)
  end)

  after_each(function() x, y, z = nil, nil, nil end)

  teardown(function()
    ffi.C.setenv("CGRAPHLUA_HOST_ORDER", "", 1)
    add, shapes = nil, nil
    device.nothing_alive()
  end)

  local function put(to, from, a) add:launch(1, N, to, from, a) end

  -- to = from + 3, through a buffer that lives so long
  local function through(to, from)
    local t = cg.buffer("float", N)
    put(t, from, 1)
    put(to, t, 2)
    t:release()
  end

  local function captured(fn, opts)
    opts = opts or {}
    opts.order = opts.order or "data"
    return (cg.capture(fn, opts))
  end

  local function dependencies(g)
    local list = {}
    for i, node in ipairs(g:nodes()) do list[i] = node.dependencies end
    return list
  end

  it("orders nothing by memory that served before", function()
    local function two()
      through(y, x)
      through(z, x)
    end
    local g = captured(two)
    assert.same({ {}, { 1 }, {}, { 3 } }, dependencies(g))
    g:replay(2)
    assert.equal(4, y:download()[N])
    assert.equal(4, z:download()[1])
    local plan = g:plan()
    assert.same({ 2 * UNIT, 2 * UNIT, 2 * UNIT },
      { plan.bytes_asked, plan.bytes, plan.bytes_least })
    local issue = captured(two, { order = "issue" }):plan()
    assert.same({ 2 * UNIT, UNIT, UNIT },
      { issue.bytes_asked, issue.bytes, issue.bytes_least })
  end)

  it("shares bytes between buffers whose uses the edges order", function()
    local g = captured(function()
      through(y, x)
      through(z, y)
      through(x, z)
    end)
    local plan = g:plan()
    assert.same({ 3 * UNIT, UNIT, UNIT }, { plan.bytes_asked, plan.bytes, plan.bytes_least })
    assert.equal(3, #plan.memory)
    for i, m in ipairs(plan.memory) do
      assert.same({ 0, UNIT, true }, { m.at, m.bytes, m.temporary })
      assert.truthy(m.file:find("plan_memory_spec.lua", 1, true))
      assert.equal(plan.memory[1].line, m.line, i)
    end
    for _ = 1, 3 do g:replay() end
    assert.equal(1 + 3 * 9, x:download()[7])
  end)

  it("lets a line take what its order allows, of every size", function()
    for _, sizes in ipairs { { 1 }, { 1, 1 }, { 7, 1000, 13, 131, 1 }, { 1000, 1, 1000, 1 } } do
      local at = cg.full("float", 1024, 0)
      local want = #sizes
      local g = captured(function()
        local from = at
        for _, n in ipairs(sizes) do
          local t = cg.buffer("float", n)
          add:launch(1, 1, t, from, 1)
          if from ~= at then from:release() end
          from = t
        end
        add:launch(1, 1, at, from, 0)
        from:release()
      end)
      g:replay()
      assert.equal(want, at:download()[1])
      local plan = g:plan()
      assert.equal(plan.bytes_least, plan.bytes)
    end
  end)

  it("keeps the place of what the script still holds", function()
    local kept, view
    local g = captured(function()
      through(y, x)
      kept = cg.buffer("float", N)
      put(kept, y, 5)
      local whole = cg.buffer("float", 2 * N)
      whole:fill(3)
      view = whole:view(N + 1, N)
      whole:release()
      through(z, kept)
    end)
    g:replay()
    assert.equal(4 + 5, kept:download()[1])
    assert.equal(3, view:download()[N])
    assert.equal(9 + 3, z:download()[1])
    put(kept, kept, 1) -- the script's own work, then the graph again
    assert.equal(10, kept:download()[1])
    g:replay()
    assert.equal(12, z:download()[1])
    local held = 0
    for _, m in ipairs(g:plan().memory) do held = held + (m.temporary and 0 or 1) end
    assert.equal(2, held)
    g:release()
    assert.equal(9, kept:download()[1])
  end)

  it("keeps the place of what the script took the address of", function()
    local address
    local g = captured(function()
      local t = cg.buffer("float", N)
      address = t:address()
      put(t, x, 1)
      put(y, t, 2)
      t:release()
      through(z, y)
    end)
    g:replay()
    assert.equal(1 + 3 + 3, z:download()[1])
    assert.is_false(g:plan().memory[1].temporary)
    assert.is_true(g:plan().memory[2].temporary)
    assert.equal(2, cg.buffer_from(address, "float", N):download()[1])
  end)

  it("serves branches and loops", function()
    local flag, count = cg.full("int32", 1, 1), cg.full("int32", 1, 3)
    for _, form in ipairs { "node", "predicated" } do
      local g = captured(function()
        through(y, x)
        cg.when(flag, function() through(y, y) end, { form = form })
        cg.times(count, function() through(z, z) end, { max = 5, form = form })
        through(x, y)
      end)
      x:fill(1)
      z:fill(0)
      g:replay()
      assert.equal(1 + 9, x:download()[3])
      assert.equal(9, z:download()[4])
      assert.is_true(g:plan().bytes >= UNIT)
    end
  end)

  it("lies apart from what only bodies use", function()
    local flag, big = cg.full("int32", 1, 1), cg.full("float", 64 * N, 3)
    for _, form in ipairs { "node", "predicated" } do
      local g = captured(function()
        cg.when(flag, function()
          local t = cg.buffer("float", 64 * N)
          t:copy(big)
          big:copy(t)
          t:release()
        end, { form = form })
        through(y, x) -- no edge leads here from the branch
      end)
      assert.is_true(g:plan().bytes >= 64 * UNIT + UNIT)
      g:replay()
      assert.equal(4, y:download()[1])
      assert.equal(3, big:download()[1])
    end
  end)

  it("serves graphs in graphs, and graphs of one pool", function()
    local pool = cg.pool()
    local inner = captured(function() through(y, x) end, { pool = pool })
    local outer = captured(function()
      inner:replay()
      through(z, y)
      inner:replay()
    end, { pool = pool })
    local other = captured(function() through(x, z) end, { pool = pool })
    for _ = 1, 2 do
      outer:replay()
      other:replay()
    end
    assert.equal(1 + 3 + 3 + 3 + 9, x:download()[1])
    inner:release()
    outer:replay()
    assert.equal(19 + 3, y:download()[1])
  end)

  it("is apart from what bodies and graphs of the pool released: nothing orders the two", function()
    local flag, pool, w = cg.full("int32", 1, 1), cg.pool(), cg.full("float", N, 5)
    local function inner(order)
      local g = captured(function() through(y, x) end, { pool = pool, order = order })
      return function() g:replay() end
    end
    local firsts = { inner "issue", inner "data" }
    for _, form in ipairs { "node", "predicated" } do
      for _, branch in ipairs { "when", "times" } do
        firsts[#firsts + 1] = function()
          cg[branch](flag, function() through(y, x) end, { form = form })
        end
      end
    end
    for seed = 1, 6 do
      ffi.C.setenv("CGRAPHLUA_HOST_ORDER", tostring(seed), 1)
      for i, first in ipairs(firsts) do
        x:fill(1)
        z:fill(0)
        local g = captured(function()
          first()
          through(z, w)
        end, { pool = pool })
        g:replay()
        assert.same({ i, 8, 4 }, { i, z:download()[1], y:download()[N] })
      end
    end
  end)

  it("can be changed where it is the script's", function()
    local g = captured(function()
      local t = cg.buffer("float", N)
      put(t, x, 1)
      put(y, t, 2)
      t:release()
    end)
    g:set_params(2, { z, nil, 5 })
    g:replay()
    assert.equal(1 + 1 + 5, z:download()[1])
    assert.equal(2, y:download()[1])
  end)

  describe("with max_bytes", function()
    local function many()
      for i = 1, 8 do
        local part = z:view(i, 1)
        local t = cg.buffer("float", N)
        put(t, x, i)
        add:launch(1, 1, part, t, 0)
        t:release()
      end
    end

    it("runs fewer nodes beside each other until it fits", function()
      local before
      for most = 8, 1, -1 do
        local g = captured(many, { max_bytes = most * UNIT })
        local plan = g:plan()
        assert.is_true(plan.bytes <= most * UNIT)
        assert.is_true(not before or plan.width <= before)
        before = plan.width
        z:fill(0)
        g:replay()
        assert.equal(1 + 8, z:download()[8])
      end
      assert.equal(1, before)
    end)

    it("is refused by how much it cannot", function()
      local e, text = fails(captured, many, { max_bytes = UNIT - 12 })
      assert.equal("CUDA_ERROR_OUT_OF_MEMORY", e.name)
      assert.truthy(text:find("takes 512 bytes .* which is 12 more than max_bytes"))
      local kept
      e = fails(captured, function()
        kept = cg.buffer("float", 2 * N)
        kept:fill(1)
        many()
      end, { max_bytes = 2 * UNIT })
      assert.truthy(e.message:find("takes 1536 bytes", 1, true))
      kept:release()
    end)

    it("takes what issue order takes, by its name", function()
      local g = captured(many, { max_bytes = "issue" })
      assert.equal(UNIT, g:plan().bytes)
      g:replay()
      assert.equal(1 + 8, z:download()[8])
      -- what the script holds counts too, and all of it fits by staying
      local kept
      g = captured(function()
        many()
        kept = cg.buffer("float", 3 * N)
        put(kept, x, 1)
        many()
      end, { max_bytes = "issue" })
      assert.equal(captured(many, { order = "issue" }):plan().bytes + 3 * UNIT, g:plan().bytes)
      g:replay()
      assert.equal(2, kept:download()[1])
      kept:release()
    end)

    it("is what issue order takes or a part of the device, where nothing is said", function()
      local bytes = math.floor(cg.device().memory / 40)
      local function fills()
        for _ = 1, 8 do
          local t = cg.buffer("uint8", bytes)
          t:fill(0)
          t:release()
        end
      end
      local plan = captured(fills):plan()
      assert.is_true(plan.bytes <= cg.device().memory / 16)
      assert.is_true(plan.width > 1 and plan.width < 8)
      assert.equal(1, captured(fills, { max_bytes = "issue" }):plan().width)
    end)

    it("gives no longer path to more memory", function()
      local parts = {}
      for i = 1, 8 do parts[i] = cg.zeros("float", N) end
      for seed = 1, 12 do
        local state = seed * 7919
        local function random(n)
          state = (state * 1103515245 + 12345) % 2147483648
          return math.floor(state / 65536) % n + 1
        end
        local program = {}
        for i = 1, 40 do program[i] = { random(8), random(8), N * random(8), random(4) } end
        local function run()
          local held = {}
          for _, p in ipairs(program) do
            local t = cg.buffer("float", p[3])
            put(t, parts[p[1]], 1)
            table.insert(held, t)
            if #held > p[4] then
              local first = table.remove(held, 1)
              put(parts[p[2]], first, 1)
              first:release()
            end
          end
          for _, t in ipairs(held) do t:release() end
        end
        local least, before = captured(run, { max_bytes = "issue" }):plan()
        for part = 8, 40, 4 do
          local most = math.floor(least.bytes * part / 8)
          local plan = captured(run, { max_bytes = most }):plan()
          assert.is_true(plan.bytes <= most)
          assert.is_true(plan.longest <= (before or least.longest), ("seed %d: %d after %d"):format(
            seed, plan.longest, before or least.longest))
          before = plan.longest
        end
      end
    end)

    it("and a pool that has less, too, so that what fits in issue order fits", function()
      local UNITS = 4096
      local function large()
        for i = 1, 8 do
          local t = cg.buffer("float", UNITS * N)
          put(t, x, i)
          add:launch(1, 1, z:view(i, 1), t, 0)
          t:release()
        end
      end
      local seen = {}
      for units = 1, 8 do
        local pool = cg.pool { max_bytes = units * UNITS * UNIT }
        for _, most in ipairs { false, "issue", 8 * UNITS * UNIT } do
          local g = captured(large, { pool = pool, max_bytes = most or nil })
          local plan = g:plan()
          assert.is_true(plan.bytes <= units * UNITS * UNIT)
          seen[plan.width] = true
          z:fill(0)
          g:replay()
          for i = 1, 8 do assert.equal(1 + i, z:download()[i]) end
          g:release()
        end
        pool:release()
      end
      assert.is_true(seen[1] and seen[2] and seen[8])
      local e = fails(captured, large, { pool = cg.pool { max_bytes = UNITS } })
      assert.equal("CUDA_ERROR_OUT_OF_MEMORY", e.name)
    end)

    it("is an option", function()
      local g = cg.graph { order = "data", max_bytes = 4096 }
      assert.equal(4096, g:options().max_bytes)
      g.max_bytes = nil
      assert.is_nil(g:options().max_bytes)
      g.max_bytes = "issue"
      assert.equal("issue", g:options().max_bytes)
      assert.equal("issue", g:options({ max_bytes = "issue" }).max_bytes)
      slips(function() g.max_bytes = "all" end, "max_bytes")
      slips(function() cg.graph { max_bytes = 0 } end, "max_bytes")
      slips(function() g:options { max_bytes = "all" } end, "max_bytes")
    end)
  end)

  it("takes hardly more than the edges allow, and where asked no more than issue order", function()
    local seen = 0
    shapes.each(256, function(name, run, result)
      run()
      local wanted = device.bits(result)
      local issue = captured(run, { order = "issue" }):plan()
      for _, opts in ipairs { {}, { max_bytes = issue.bytes }, { max_bytes = "issue" },
        { width = 1 }, { width = 1, max_bytes = "issue" }, { width = 4 }, { width = 7 },
        { width = 16 } } do
        local g = captured(run, opts)
        local plan = g:plan()
        assert.is_true(plan.bytes <= 1.05 * plan.bytes_least, name)
        assert.is_true(plan.longest <= issue.longest, name)
        assert.is_true(not opts.max_bytes or plan.bytes <= issue.bytes, name)
        result:fill(0)
        g:replay()
        assert.equal(wanted, device.bits(result), name)
      end
      seen = seen + 1
    end)
    assert.equal(4, seen)
  end)
end)

-- Nodes are made at the end; or, behind an event, at once, and then changed.
local ways = {
  [""] = { "cuGraphAddNode" },
  ["cg.event():record()"] = {
    "cuGraphAddNode", "cuStreamUpdateCaptureDependencies", "cuGraphRemoveDependencies",
    "cuGraphNodeSetParams",
  },
}

describe("a failing driver, with memory in data order", function()
  for event, names in pairs(ways) do
    for _, code in ipairs { 2, 999 } do
      it("is reported clearly or survived, code " .. code .. " " .. event, function()
        device.sweep(code, ([[
          local function run()
            local add, x = cg.kernel(source, "add"), cg.zeros("float", 64)
            local g = cg.capture(function()
              for i = 1, 4 do
                local t = cg.buffer("float", 1024 * 1024)
                add:launch(1, 4, x:view(4 * i - 3, 4), i, 4)
                add:launch(1, 4, t, i, 4)
                t:release()
                if i == 2 then EVENT end
              end
            end, { order = "data" })
            g:replay()
            cg.synchronize()
            return x:download()[16] + #g:plan().memory
          end

          sweep(run, {
            right = function(sum) return sum == 4 + 4, sum end,
            calls = 40,
            raised = 30,
            names = { "NAMES" },
          })
        ]]):gsub("EVENT", event):gsub("NAMES", (table.concat(names, '", "'))))
      end)
    end
  end
end)
