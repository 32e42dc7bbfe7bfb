local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises, slips = device.raises, device.slips

local MIB = 2 ^ 20

describe("pool", function()
  teardown(device.nothing_alive)

  it("counts what is in use, and the most that was", function()
    local p = cg.pool()
    assert.same({
      reserved = 0, reserved_peak = 0, allocated = 0, allocated_peak = 0,
      allocations = 0, frees = 0, segments = 0, ordered = 0, refused = 0, executables = 0,
    }, p:stats())
    local a = cg.buffer("uint8", MIB, { pool = p })
    local b = cg.buffer("uint8", 2 * MIB, { pool = p })
    local s = p:stats()
    assert.equal(2, s.allocations)
    assert.is_true(s.allocated >= 3 * MIB and s.reserved >= s.allocated)
    assert.is_true(s.segments >= 1)
    a:release()
    b:release()
    cg.synchronize()
    s = p:stats()
    assert.equal(2, s.frees)
    assert.equal(0, s.allocated)
    assert.is_true(s.allocated_peak >= 3 * MIB)
    assert.matches("^cgraphlua.pool 0x%x+ %(0 of %d+ bytes in use%)$", tostring(p))
  end)

  it("gives what is free back to the device", function()
    local p = cg.pool()
    local a = cg.buffer("uint8", 30 * MIB, { pool = p })
    local b = cg.buffer("uint8", MIB, { pool = p })
    cg.synchronize()
    a:release()
    cg.synchronize()
    assert.is_true(p:trim() >= 30 * MIB)
    b:fill(1)
    assert.equal(1, b:download()[1])
    assert.equal(0, p:trim())
  end)

  it("serves a block again that was released", function()
    local p, seen = cg.pool(), {}
    for _ = 1, 10 do
      local b = cg.buffer("float", 1000, { pool = p })
      seen[b:address()] = true
      b:release()
    end
    local n = 0
    for _ in pairs(seen) do n = n + 1 end
    assert.equal(1, n)
  end)

  it("is a graph's own, or shared by several", function()
    local shared = cg.graph_pool_handle()
    local function body() return cg.zeros("float", 100) end
    local g = cg.capture(body, { pool = shared })
    local h = cg.graph { pool = shared }
    h:capture(body)
    assert.equal(shared, g:pool())
    assert.equal(shared, h:pool())
    assert.is_true(shared:stats().allocations >= 2)
    local own = cg.capture(body)
    assert.not_equal(shared, own:pool())
    local late = cg.graph()
    raises("CGL_ERROR_NOT_CAPTURED", function() late:pool() end, "hint: ")
    late:capture(body, { pool = shared })
    assert.equal(shared, late:pool())
  end)

  it("outlives its object while a buffer uses it", function()
    local p = cg.pool()
    local b = cg.full("float", 10, 3, { pool = p })
    p:release()
    collectgarbage()
    assert.equal(3, b:download()[10])
  end)

  it("keeps what a dead graph's body returned", function()
    local x = cg.full("float", 4, 2)
    local g, out = cg.capture(function()
      local y = cg.buffer("float", 4)
      y:copy(x)
      return y
    end)
    g:replay()
    g:release()
    collectgarbage()
    collectgarbage()
    local junk = {}
    for i = 1, 20 do junk[i] = cg.full("float", 4, -1) end
    assert.equal(20, #junk)
    assert.same({ 2, 2, 2, 2 }, out:download())
  end)

  describe("use", function()
    it("routes what is made inside, and nests", function()
      local p, q = cg.pool(), cg.pool()
      local a, b, c = p:use(function(n)
        local inner = q:use(function() return cg.buffer("float", n) end)
        return cg.buffer("float", n), inner, cg.capture(function() cg.zeros("float", 1) end)
      end, 100)
      assert.equal(2, p:stats().allocations)
      assert.equal(1, q:stats().allocations)
      assert.equal(p, c:pool())
      assert.equal(100, #a + #b - 100)
      cg.buffer("float", 1)
      assert.equal(2, p:stats().allocations)
    end)

    it("is left when the function raises", function()
      local p = cg.pool()
      assert.equal("x", (device.fails(p.use, p, error, "x")))
      cg.buffer("float", 1)
      assert.equal(0, p:stats().allocations)
    end)
  end)

  it("keeps the scratch memory of a capture from trim until the graph is reset", function()
    local scale, x = device.kernel "scale", cg.from({ 1, 2, 3, 4 }, "float")
    local out = cg.zeros("float", 4)
    local g = cg.capture(function()
      local scratch = cg.buffer("float", 4)
      scale:launch(1, 32, x, scratch, 2, 4)
      scale:launch(1, 32, scratch, out, 5, 4)
    end)
    collectgarbage()
    collectgarbage()
    local p = g:pool()
    assert.equal(0, p:stats().allocated)
    assert.equal(0, p:trim())
    g:replay()
    assert.same({ 10, 20, 30, 40 }, out:download())
    g:reset()
    assert.is_true(p:trim() > 0)
    assert.equal(0, p:stats().reserved)
  end)

  describe("while a graph lives", function()
    -- Scales x by 2 and 5 into out, through memory that is dropped in between.
    local function through_scratch(x, out, opts)
      local scale = device.kernel "scale"
      local address
      local g = cg.capture(function()
        local scratch = cg.buffer("float", #x)
        address = scratch:address()
        scale:launch(1, 32, x, scratch, 2, #x)
        scale:launch(1, 32, scratch, out, 5, #x)
        scratch:release()
      end, opts)
      return g, address
    end

    it("gives what its capture dropped to captures only", function()
      local p = cg.pool()
      local x, out = cg.from({ 1, 2, 3, 4 }, "float"), cg.zeros("float", 4)
      local g, address = through_scratch(x, out, { pool = p })
      local held = {}
      for i = 1, 20 do
        cg.synchronize()
        held[i] = cg.full("float", 4, i, { pool = p })
        assert.not_equal(address, held[i]:address())
      end
      g:replay()
      assert.same({ 10, 20, 30, 40 }, out:download())
      for i = 1, 20 do assert.same({ i, i, i, i }, held[i]:download()) end
    end)

    it("gives that to others when no graph uses it any more", function()
      if device.never_reuses then return pending "memory is not reused here" end
      local p = cg.pool()
      local x, out = cg.from({ 1, 2, 3, 4 }, "float"), cg.zeros("float", 4)
      local g, address = through_scratch(x, out, { pool = p })
      local held = cg.full("float", 4, 1, { pool = p })
      g:replay()
      local h, again = through_scratch(out, x, { pool = p })
      assert.equal(address, again)
      g:reset()
      h:replay()
      assert.same({ 100, 200, 300, 400 }, x:download())
      -- Whether one of many new buffers lies there.
      local function is_given_away()
        cg.synchronize()
        local many, found = {}, false
        for i = 1, 100 do
          many[i] = cg.full("float", 4, 1, { pool = p })
          found = found or many[i]:address() == address
        end
        for i = 1, 100 do many[i]:release() end
        return found
      end
      assert.is_false(is_given_away())
      assert.equal(0, p:trim())
      h:reset()
      assert.is_true(is_given_away() or p:trim() > 0)
      assert.same({ 1, 1, 1, 1 }, held:download())
    end)

    it("does not give away what its body returned and the script dropped", function()
      local p, x = cg.pool(), cg.from({ 1, 2 }, "float")
      local g, y = cg.capture(function()
        local y = cg.buffer("float", 2)
        y:copy(x)
        return y
      end, { pool = p })
      local address = y:address()
      y:release()
      cg.synchronize()
      local b = cg.full("float", 2, 9, { pool = p })
      assert.not_equal(address, b:address())
      g:replay()
      assert.same({ 9, 9 }, b:download())
    end)

    it("keeps the buffers of its pool that were made outside captures", function()
      local p, out = cg.pool(), cg.zeros("float", 4)
      local x = cg.full("float", 4, 2, { pool = p })
      local g = through_scratch(x, out, { pool = p })
      x:release()
      local junk = {}
      for i = 1, 20 do
        cg.synchronize()
        junk[i] = cg.full("float", 4, -1, { pool = p })
      end
      g:replay()
      assert.same({ 20, 20, 20, 20 }, out:download())
      assert.equal(20, #junk)
    end)
  end)

  it("serves graphs of growing sizes from little more than the largest takes alone", function()
    if device.never_reuses then return pending "memory is not reused here" end
    local function body(n)
      return function()
        local x = cg.zeros("uint8", n * MIB)
        for _ = 1, 3 do
          local y = cg.zeros("uint8", n * MIB)
          y:copy(x)
          x:release()
          x = y
        end
        x:release()
      end
    end
    local function reserved(from, to)
      local p, graphs = cg.pool(), {}
      for n = from, to do graphs[n] = cg.capture(body(n), { pool = p }) end
      for n = from, to do graphs[n]:replay() end
      cg.synchronize()
      return p:stats().reserved
    end
    assert.is_true(reserved(1, 11) <= 1.05 * reserved(11, 11))
  end)

  it("can be trimmed after a capture that failed", function()
    local p = cg.pool()
    local g = cg.graph { pool = p } -- which lives on
    device.fails(function()
      g:capture(function()
        cg.buffer("float", 4)
        error "no"
      end)
    end)
    collectgarbage()
    collectgarbage()
    assert.is_true(p:trim() > 0)
    assert.equal(0, p:stats().reserved)
    g:capture(function() cg.zeros("float", 4) end)
    g:replay()
  end)

  it("refuses options and arguments it does not know", function()
    slips(function() cg.pool { size = 1 } end,
      'unknown option "size"; the options are max_bytes, no_split, use_on_oom, strict')
    slips(function() cg.pool { max_bytes = 0 } end, "max_bytes")
    slips(function() cg.pool { max_bytes = 0 / 0 } end, "max_bytes")
    slips(function() cg.pool { no_split = 1 } end, "no_split")
    slips(function() cg.pool():use() end, "function expected")
    slips(function() cg.graph { pool = 1 } end, "cgraphlua.pool expected")
    slips(function() cg.capture(function() end, { pool = cg.stream() }) end,
      "cgraphlua.pool expected")
  end)

  it("takes no more than its max_bytes, and says who holds them", function()
    local p = cg.pool { max_bytes = 8 * MIB }
    local a = cg.buffer("uint8", 6 * MIB, { pool = p })
    local line = debug.getinfo(1, "l").currentline - 1
    local e = raises("CUDA_ERROR_OUT_OF_MEMORY", function()
      cg.buffer("uint8", 4 * MIB, { pool = p })
    end, "max_bytes")
    assert.matches("the pool may take 8388608 bytes", e.message, 1, true)
    assert.matches("6291456 bytes in 1 buffer made at .-pool_spec.lua:" .. line, e.message)
    a:release()
    assert.equal(8 * MIB, #cg.buffer("uint8", 8 * MIB, { pool = p }))
    assert.equal(8 * MIB, p:stats().reserved)
  end)

  it("collects garbage before it fails", function()
    local p = cg.pool { max_bytes = 8 * MIB }
    for _ = 1, 20 do cg.buffer("uint8", 5 * MIB, { pool = p }) end
    assert.equal(20, p:stats().allocations)
  end)

  it("gives blocks pages of their own when they are not to be split", function()
    local p = cg.pool { no_split = true }
    local a, b = cg.buffer("int8", 1, { pool = p }), cg.buffer("int8", 1, { pool = p })
    assert.is_true(math.abs(a:address() - b:address()) >= 2 * MIB)
  end)

  it("says that it was released", function()
    local p = cg.pool()
    p:release()
    raises("CGL_ERROR_RELEASED", function() p:stats() end, "this pool was released")
    raises("CGL_ERROR_RELEASED", function() cg.buffer("float", 1, { pool = p }) end,
      "argument 3 has a pool that was released")
  end)

  it("raises out of memory, and goes on when something was released", function()
    local status, out, err = device.child([[
      local held = {}
      local ok, e
      repeat
        ok, e = pcall(cg.buffer, "uint8", 16 * 2^20)
        held[#held + 1] = ok and e or nil
      until not ok
      print(e.name, #held >= 8 and #held <= 16)
      for _, b in ipairs(held) do b:release() end
      held = nil
      local b = cg.zeros("uint8", 100 * 2^20)
      print(#b)
    ]], "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_MEMORY=256M")
    assert.equal("", err)
    assert.equal("CUDA_ERROR_OUT_OF_MEMORY\ttrue\n104857600\n", out)
    assert.equal(0, status)
  end)

  it("refuses every size that no machine has, also with a free block at hand", function()
    for power = 38, 53 do
      for _, count in ipairs { 2 ^ power, 1.5 * 2 ^ (power - 1), 2 ^ power - 1 } do
        cg.zeros("uint8", 4096):release()
        raises("CUDA_ERROR_OUT_OF_MEMORY", function() cg.buffer("double", count):fill(0) end)
        if power > 42 then -- less may be there to lock
          cg.pinned("uint8", 4096):release()
          device.lacks("pinned", function() cg.pinned("double", count) end)
        end
      end
    end
    assert.same({ 3 }, cg.full("uint8", 1, 3):download())
  end)

  it("lists the largest pools first when memory lacks, and leaves out the small", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      cg.set_device "host"
      local held = {}
      for i = 1, 8 do
        held[i] = cg.buffer("uint8", (i * 3 % 8 + 1) * 2 ^ 21, { pool = cg.pool() })
      end
      collectgarbage()
      print(select(2, pcall(cg.buffer, "uint8", 2 ^ 25)).message)]],
      "CGRAPHLUA_HOST_MEMORY=96M")
    assert.equal("", err)
    assert.equal(0, status)
    local sizes = {}
    for bytes, used in out:gmatch "\n  pool [^\n]-: (%d+) bytes, (%d+) of them in use" do
      -- The device's own may hold what it got before memory lacked.
      if used ~= "0" then sizes[#sizes + 1] = bytes / 2 ^ 21 end
    end
    assert.same({ 8, 7, 6, 5, 4 }, sizes)
    assert.matches("\n  and 3 smaller pools\n", out)
  end)

  it("tells a capture that lacks memory which is in use to release some", function()
    local status, out, err = device.child([[
      cg.on_log(nil)
      cg.set_device "host"
      local held = cg.zeros("uint8", 40 * 2 ^ 20)
      local ok, e = pcall(cg.capture, function() cg.zeros("uint8", 2 ^ 25) end)
      print(ok, e.name, e.hint, #held)]], "CGRAPHLUA_HOST_MEMORY=64M")
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("^false\tCUDA_ERROR_OUT_OF_MEMORY\trelease buffers you no longer need", out)
  end)
end)

describe("the pools that a device has", function()
  teardown(device.nothing_alive)

  it("are the same object at every call, and their own", function()
    local own, pinned = cg.default_pool(), cg.pinned_pool()
    assert.equal(own, cg.default_pool())
    assert.equal(pinned, cg.pinned_pool())
    assert.is_true(own ~= pinned)
    assert.equal(own:snapshot().pool, cg.default_pool():snapshot().pool)
  end)

  it("count what buffers and pinned memory take", function()
    local own, pinned = cg.default_pool(), cg.pinned_pool()
    local a, b = own:stats(), pinned:stats()
    local x, p = cg.buffer("uint8", 2 ^ 20), cg.pinned("uint8", 2 ^ 20)
    assert.is_true(own:stats().allocated - a.allocated >= 2 ^ 20)
    assert.is_true(pinned:stats().allocated - b.allocated >= 2 ^ 20)
    assert.equal(a.allocations + 1, own:stats().allocations)
    assert.equal(b.allocations + 1, pinned:stats().allocations)
    x:release()
    p:release()
    assert.equal(a.allocated, own:stats().allocated)
    assert.equal(b.allocated, pinned:stats().allocated)
    assert.is_true(pinned:stats().allocated_peak >= 2 ^ 20)
  end)

  it("return what is free", function()
    for _, pool in ipairs { cg.default_pool(), cg.pinned_pool() } do
      cg.buffer("uint8", 2 ^ 22):release()
      cg.pinned("uint8", 2 ^ 22):release()
      local before = pool:stats().reserved
      local bytes = pool:trim()
      assert.is_true(device.never_reuses or bytes >= 2 ^ 22)
      assert.equal(before - bytes, pool:stats().reserved)
    end
  end)

  it("serve buffers that name the default pool, in captures, too", function()
    local pool = cg.default_pool()
    local x = cg.buffer("float", 8, { pool = pool }):fill(3)
    local g, y = cg.capture(function()
      return cg.buffer("float", 8, { pool = pool }):fill(4)
    end)
    g:replay()
    pool:use(function() assert.equal(4, cg.zeros("float", 1):copy(y:view(1, 1)):download()[1]) end)
    assert.equal(3, x:download()[8])
  end)

  it("serve nothing else", function()
    local refused = "serves"
    for _, pool in ipairs { cg.default_pool(), cg.pinned_pool() } do
      raises("CGL_ERROR_INVALID_ARGUMENT", function() cg.graph { pool = pool } end, refused)
      raises("CGL_ERROR_INVALID_ARGUMENT", function()
        cg.capture(function() end, { pool = pool })
      end, refused)
      raises("CGL_ERROR_INVALID_ARGUMENT", function()
        cg.graph():options { pool = pool }
      end, refused)
      raises("CGL_ERROR_INVALID_ARGUMENT", function() pool:checkpoint() end, refused)
    end
    raises("CGL_ERROR_INVALID_ARGUMENT", function()
      cg.buffer("float", 1, { pool = cg.pinned_pool() })
    end, "pinned memory only")
  end)

  it("keep their device, and end with it", function()
    local status, out, err = device.child([[
      local pool, pinned = cg.default_pool(), cg.pinned_pool()
      cg.buffer("float", 1000)
      cg.debug.forget()
      collectgarbage()
      print(cg.live "context", pool:stats().allocations, pinned:stats().allocations)
      pool:release()
      pinned:release()
      cg.debug.forget()
      print(cg.live "context", cg.live())]], "CGRAPHLUA_DEVICE=host")
    assert.equal("", err)
    assert.equal("1\t1\t0\n0\t0\n", out)
    assert.equal(0, status)
  end)
end)
