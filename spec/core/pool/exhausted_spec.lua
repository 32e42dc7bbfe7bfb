-- What a pool does before an allocation fails, each promise of the manual's
-- "Out of memory" by itself, on a device of 64 MiB; and what the failure says.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")

local prelude = [[
  cg.on_log(nil)
  cg.set_device "host"
  local MIB = 2 ^ 20
  local function bytes(mib, opts) return cg.buffer("uint8", mib * MIB, opts) end
  -- What fn raised, or "" when it did not.
  local function refused(fn, ...)
    local ok, e = pcall(fn, ...)
    return ok and "" or tostring(e)
  end
]]

local function run(script)
  local status, out, err = device.child(prelude .. script,
    "CGRAPHLUA_DEVICE=host CGRAPHLUA_HOST_GUARD=0 CGRAPHLUA_HOST_MEMORY=64M")
  assert.equal("", err)
  assert.equal(0, status)
  return out
end

describe("before an allocation fails", function()
  teardown(device.nothing_alive)

  it("the pool waits for the device, and uses what is free then", function()
    assert.equal("50331648\n", run [[
      collectgarbage "stop"
      local side, spin = cg.stream(), cg.module(source):kernel "spin"
      side:use(function()
        local x = cg.buffer("float", 12 * MIB)
        spin:launch(1, 1, x, 1e6)
        x:release()
      end)
      print(#bytes(48))]])
  end)

  it("free pages of all pools are returned to the device", function()
    assert.equal("50331648\n50331648\n0\n", run [[
      collectgarbage "stop"
      local one, two = cg.pool(), cg.pool()
      bytes(48, { pool = one }):release()
      local x = bytes(48, { pool = two })
      print(#x)
      x:release()
      print(#bytes(48))
      print(one:stats().reserved + two:stats().reserved)]])
  end)

  it("free pages of all pools are returned in a capture, too", function()
    assert.equal("50331648\n0\n", run [[
      collectgarbage "stop"
      local one = cg.pool()
      bytes(48, { pool = one }):fill(1):release()
      local _, x = cg.capture(function() return bytes(48):fill(1) end)
      print(#x)
      print(one:stats().reserved)]])
  end)

  -- Pages that are in use in part cannot be returned.
  local halves = [[
    collectgarbage "stop"
    local lender = cg.pool { use_on_oom = LENDS }
    local held = {}
    repeat
      local ok, x = pcall(bytes, 1, { pool = lender })
      held[#held + 1] = ok and x or nil
    until not ok
    for i = 1, #held, 2 do held[i]:release() end
    cg.synchronize()
    local before = lender:stats().allocated
  ]]

  it("a pool with use_on_oom lends memory, outside captures", function()
    assert.equal("true\n", run(halves:gsub("LENDS", "true") .. [[
      local x = bytes(1)
      print(lender:stats().allocated == before + #x)]]))
    assert.matches("^buffer: out of device memory", run(halves:gsub("LENDS", "false") .. [[
      io.write((refused(bytes, 1):gsub("^%S+ ", "")))]]))
    assert.matches("out of device memory", run(halves:gsub("LENDS", "true") .. [[
      io.write(refused(cg.capture, function() bytes(1) end))]]))
  end)

  it("the script's garbage is collected", function()
    assert.equal("50331648\n50331648\n", run [[
      collectgarbage "stop"
      bytes(48)
      print(#bytes(48))
      local p = cg.pool { max_bytes = 48 * MIB }
      bytes(48, { pool = p })
      print(#bytes(48, { pool = p }))]])
  end)

  it("the script's garbage is collected in a capture, too", function()
    assert.equal("33554432\n33554432\n33554432\n", run [[
      collectgarbage "stop"
      local function body() return bytes(32):fill(1) end
      bytes(48):fill(1)
      print(#select(2, cg.capture(body)))
      local g = cg.capture(body)
      g:replay(3)
      g = nil
      print(#select(2, cg.capture(body)))
      local g = cg.graph()
      cg.synchronize()
      cg.stream():use(function()
        g:capture_begin()
        print(#body())
        g:capture_end()
      end)]])
  end)

  it("a capture does not wait for memory that work may still use", function()
    local out = run [[
      collectgarbage "stop"
      local side, spin = cg.stream(), cg.module(source):kernel "spin"
      local g = cg.graph()
      side:use(function()
        local x = cg.buffer("float", 12 * MIB)
        spin:launch(1, 1, x, 1e6)
        x:release()
      end)
      cg.stream():use(function()
        g:capture_begin()
        print(refused(bytes, 48))
        g:capture_end()
        g:reset()
        cg.synchronize()
        g:capture_begin()
        print(#bytes(48))
        g:capture_end()
      end)]]
    assert.matches("out of device memory.*\n  50331648 bytes were released and wait for the device",
      out)
    assert.matches("hint: a capture cannot wait for memory that was released: release it, "
      .. "and wait for the device, before the capture begins\n50331648\n$", out)
  end)

  it("the options collect and trim of a capture make room first", function()
    assert.equal("true\ttrue\n", run [[
      collectgarbage "stop"
      for _ = 1, 3 do bytes(16):fill(1) end
      local before = cg.default_pool():stats().reserved
      cg.capture(function() bytes(1) end, { collect = true, trim = true })
      print(before >= 48 * MIB, cg.default_pool():stats().reserved < MIB)]])
  end)
end)

describe("an allocation that failed", function()
  teardown(device.nothing_alive)

  it("counts what waits for the device and for captures", function()
    local out = run [[
      local side, seen = cg.stream(), nil
      local module = cg.module(source)
      cg.capture(function()
        side:use(function()
          local t = {}
          for i = 1, 3 do t[i] = bytes(4):fill(1) end
          for i = 1, 3 do t[i]:release() end
        end)
        module:release()
        seen = refused(bytes, 60)
      end)
      print(seen)
      print(refused(bytes, 65))]]
    assert.matches("\n  12582912 bytes were released and wait for the device"
      .. "\n  1 object that was released is not torn down before captures have ended", out)
    assert.matches("hint: release buffers you no longer need", out)
    assert.matches("hint: check how the size was computed", out)
  end)

  it("says nothing of what does not wait", function()
    local out = run [[
      local x = bytes(40)
      print(refused(bytes, 40), #x)]]
    assert.matches("out of device memory", out)
    assert.is_nil(out:find("wait for", 1, true))
    assert.is_nil(out:find("torn down", 1, true))
  end)

  it("leaves the pool to be used again", function()
    assert.equal("true\ttrue\n", run [[
      local x = bytes(40)
      local first = refused(bytes, 40) ~= ""
      x:release()
      print(first, refused(bytes, 40) == "")]])
  end)
end)
