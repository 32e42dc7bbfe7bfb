-- What a user of torch.cuda.CUDAGraph relies on and no other spec shows.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local raises = device.raises
local ffi = require "ffi"

describe("a graph", function()
  teardown(device.nothing_alive)

  it("captures nothing by being made", function()
    local g = cg.graph { keep_graph = true }
    assert.is_false(g:is_capturing())
    assert.is_false(cg.is_current_stream_capturing())
    for _, method in ipairs { "replay", "instantiate", "pool", "pools", "nodes",
                              "raw_cuda_graph", "raw_cuda_graph_exec" } do
      local e = raises("CGL_ERROR_NOT_CAPTURED", function() g[method](g) end, "hint: ")
      assert.matches("^graph:", e.operation)
    end
  end)

  it("refuses to capture over a kept template that was not instantiated", function()
    local g, x = cg.graph { keep_graph = true }, cg.zeros("float", 1)
    g:capture(function() x:fill(1) end)
    local first = device.line(-1)
    local _, text = device.fails(function() g:capture(function() x:fill(2) end) end)
    assert.is_truthy(text:find("begun at " .. first, 1, true), text)
    g:replay()
    assert.same({ 1 }, x:download())
  end)

  it("refuses to be instantiated, replayed or looked into while it captures", function()
    local g, s, x = cg.graph { keep_graph = true }, cg.stream(), cg.zeros("float", 1)
    cg.synchronize()
    g:capture_begin { stream = s }
    for _, method in ipairs { "instantiate", "replay" } do
      raises("CGL_ERROR_NOT_CAPTURED", function() g[method](g) end, "has not ended yet")
    end
    raises("CGL_ERROR_NOT_CAPTURED", function() g:nodes() end)
    raises("CGL_ERROR_NOT_CAPTURED", function() g:raw_cuda_graph() end)
    s:use(function() x:fill(3) end)
    g:capture_end()
    g:replay()
    assert.same({ 3 }, x:download())
  end)

  it("is replayed on the default stream and on others, in the order of each", function()
    local add, x = device.kernel "add", cg.zeros("float", 1)
    local g = cg.capture(function() add:launch(1, 32, x, 1, 1) end)
    g:replay(2)
    assert.equal(2, x:download()[1])
    local s = cg.stream()
    s:use(function()
      x:fill(10)
      g:replay()
      x:copy(x:view(1, 1))
      g:replay()
      assert.same({ 12 }, x:download())
    end)
  end)

  it("replays without waiting for the work", function()
    local spin, x = device.kernel "spin", cg.zeros("float", 1)
    local g = cg.capture(function() spin:launch(1, 1, x, 2000000) end)
    local s = cg.stream()
    s:use(function() g:replay(20) end)
    assert.is_false(s:query())
    s:synchronize()
    assert.is_true(s:query())
  end)

  it("stays whole when it is reset or dropped while its replays run", function()
    local spin, add = device.kernel "spin", device.kernel "add"
    local x, out, s = cg.zeros("float", 4), cg.pinned("float", 4), cg.stream()
    for i, drop in ipairs {
      function(g) g:reset() end,
      function(g) g:release() end,
      function() end, -- left to the collector
    } do
      x:fill(0)
      cg.synchronize()
      local g = cg.capture(function()
        local scratch = cg.zeros("float", 4)
        spin:launch(1, 1, scratch, 100000)
        scratch:fill(1)
        add:launch(1, 32, scratch, i, 4)
        x:copy(scratch)
      end)
      s:use(function()
        g:replay(10)
        out:copy(x)
      end)
      drop(g)
      g = nil -- luacheck: ignore
      collectgarbage()
      -- What is made now must not be the memory that the replays write to.
      local others = {}
      for k = 1, 20 do others[k] = cg.full("float", 4, -k) end
      s:synchronize()
      assert.same({ 1 + i, 1 + i, 1 + i, 1 + i }, x:download())
      assert.equal(1 + i, out:cdata()[3])
      for k = 1, 20 do assert.equal(-k, others[k]:download()[1]) end
    end
  end)

  it("does not wait for its replays when it is reset or dropped", function()
    local spin = device.kernel "spin"
    local s, out = cg.stream(), cg.zeros("float", 1)
    cg.synchronize()
    for _, drop in ipairs { "reset", "release" } do
      local g = cg.capture(function()
        local scratch = cg.zeros("float", 1)
        spin:launch(1, 1, scratch, 2000000)
        out:copy(scratch)
        scratch:release() -- now the graph alone holds its memory
      end)
      s:use(function() g:replay(20) end)
      g[drop](g)
      assert.is_false(s:query(), drop .. " waited")
      s:synchronize()
      assert.is_true(out:download()[1] > 0)
    end
  end)

  it("hands out driver handles that FFI takes, a new executable at each instantiation", function()
    local g, x = cg.graph { keep_graph = true }, cg.zeros("float", 1)
    g:capture(function() x:fill(1) end)
    local function address(handle) return tonumber(ffi.cast("uintptr_t", handle)) end
    assert.not_equal(0, address(g:raw_cuda_graph()))
    raises("CGL_ERROR_NOT_CAPTURED", function() g:raw_cuda_graph_exec() end, "instantiate")
    g:instantiate()
    local first = address(g:raw_cuda_graph_exec())
    g:instantiate()
    assert.not_equal(0, first)
    assert.not_equal(first, address(g:raw_cuda_graph_exec()))
    g:reset()
    raises("CGL_ERROR_NOT_CAPTURED", function() g:raw_cuda_graph() end)
    raises("CGL_ERROR_NOT_CAPTURED", function() g:raw_cuda_graph_exec() end)
  end)

  it("that cannot end its capture leaves the former stream current", function()
    local before, side, x = cg.current_stream(), cg.stream(), cg.zeros("float", 1)
    for _, capture in ipairs { cg.capture, function(fn) cg.graph():capture(fn) end } do
      raises("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", function()
        capture(function()
          side:wait(cg.current_stream())
          side:use(function() x:fill(2) end)
        end)
      end)
      assert.equal(before, cg.current_stream())
      assert.is_false(cg.is_current_stream_capturing())
    end
  end)

  it("is asked for without opening a device", function()
    local status, out, err = device.child([[
      print(cg.is_current_stream_capturing())
      print(cg.live())
      print((pcall(cg.zeros, "float", 1)))
    ]], "CGRAPHLUA_DEVICE=toaster")
    assert.equal("", err)
    assert.equal("false\n0\nfalse\n", out)
    assert.equal(0, status)
  end)

  it("keeps a pool that outlives its graphs and serves the next", function()
    local handle = cg.graph_pool_handle()
    local x
    for i = 1, 3 do
      local g = cg.capture(function() x = cg.full("float", 4, i) end, { pool = handle })
      assert.equal(handle, g:pool())
      g:replay()
      assert.same({ i, i, i, i }, x:download())
      x = nil
      g = nil -- luacheck: ignore
      collectgarbage()
      collectgarbage()
    end
  end)
end)
