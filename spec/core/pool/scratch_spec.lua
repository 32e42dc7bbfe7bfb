-- Scratch memory inside captures: on one stream, and on branches.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local value = device.value

local N, SHOWN = 600000, 1000 -- more than a page, so that none is left over

-- Bytes of the pool that buffers of a capture ever used at once.
local function peak(pool)
  return pool:stats().allocated_peak
end

describe("scratch of a capture", function()
  teardown(device.nothing_alive)

  -- fn(main, left, right, run) in a capture; run(stream, v) fills a buffer on
  -- that stream, passes it on to a result of its own and drops it, and returns
  -- its address.
  local function forked(fn)
    local pool, left, right = cg.pool(), cg.stream(), cg.stream()
    local results, values = {}, {}
    for i = 1, 8 do results[i] = cg.zeros("float", SHOWN) end
    local function run(stream, v)
      values[#values + 1] = v
      return stream:use(function()
        local b = cg.buffer("float", N)
        local address = b:address()
        b:fill(v)
        local shown = b:view(N - SHOWN, SHOWN)
        results[#values]:copy(shown)
        shown:release() -- it keeps its buffer
        b:release()
        return address
      end)
    end
    local g = cg.capture(function() fn(cg.current_stream(), left, right, run) end, { pool = pool })
    return g, pool, results, values
  end

  local function right_over_many_replays(g, results, values)
    for _ = 1, 20 do
      for i = 1, #values do results[i]:fill(-1) end
      g:replay(5)
      cg.synchronize()
      for i, v in ipairs(values) do assert.equal(v, value(results[i])) end
    end
  end

  it("serves again on its stream at once", function()
    local a, b
    local g, pool, results, values = forked(function(main, _, _, run)
      a, b = run(main, 1), run(main, 2)
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.equal(a, b)
    assert.is_true(peak(pool) < 2 * 4 * N)
    right_over_many_replays(g, results, values)
  end)

  it("does not serve a parallel branch", function()
    local a, b
    local g, _, results, values = forked(function(main, left, right, run)
      left:wait(main)
      right:wait(main)
      a = run(left, 1)
      b = run(right, 2)
      main:wait(left)
      main:wait(right)
    end)
    assert.not_equal(a, b)
    right_over_many_replays(g, results, values)
  end)

  it("serves whoever comes after the join", function()
    local a, b, c, d
    local g, _, results, values = forked(function(main, left, right, run)
      left:wait(main)
      a = run(left, 1)
      main:wait(left)
      b = run(main, 2)
      right:wait(main)
      c = run(right, 3)
      main:wait(right)
      d = run(main, 4)
    end)
    if device.never_reuses then return pending "memory is not reused here" end
    assert.equal(a, b)
    assert.equal(a, c)
    assert.equal(a, d)
    right_over_many_replays(g, results, values)
  end)

  it("of two joined branches serves after the join", function()
    local addresses = {}
    local g, pool, results, values = forked(function(main, left, right, run)
      for round = 0, 1 do
        left:wait(main)
        right:wait(main)
        addresses[#addresses + 1] = run(left, 1 + 2 * round)
        addresses[#addresses + 1] = run(right, 2 + 2 * round)
        main:wait(left)
        main:wait(right)
      end
    end)
    right_over_many_replays(g, results, values)
    if device.never_reuses then return pending "memory is not reused here" end
    table.sort(addresses)
    assert.equal(addresses[1], addresses[2])
    assert.equal(addresses[3], addresses[4])
    assert.not_equal(addresses[2], addresses[3])
    -- Two at once at the most, however many rounds there are.
    assert.is_true(pool:stats().reserved < 4 * 4 * N + 2 ^ 21)
  end)

  -- Random work on branches that wait for one another: whoever gets memory comes
  -- after all who had it.
  it("comes after every former use, however branches wait for one another", function()
    local seed = 7
    local function random(n)
      seed = (seed * 16807) % 2147483647
      return seed % n + 1
    end
    local reused = 0
    for _ = 1, 10 do
      local uses = {} -- by address: the nodes that used it, in order
      local g = cg.capture(function()
        local main, streams, node = cg.current_stream(), {}, 0
        for i = 1, 11 do -- more than there is room for what was asked last
          streams[i] = cg.stream()
          streams[i]:wait(main)
        end
        streams[12] = main
        for _ = 1, 150 do
          local s, other = streams[random(12)], streams[random(12)]
          if random(3) > 1 and s ~= other then s:wait(other) end
          s:use(function()
            local x = cg.buffer("float", 64 * random(2))
            local at = x:address()
            uses[at] = uses[at] or {}
            local former = uses[at]
            x:fill(1)
            node = node + 1
            former[#former + 1] = { x, node }
            if random(2) == 1 then
              other:wait(s)
              other:use(function() x:fill(2) end)
              node = node + 1
              former[#former + 1] = { x, node }
            end
            x:release()
          end)
        end
        for i = 1, 11 do main:wait(streams[i]) end
      end)
      local nodes, before = g:nodes(), {}
      for i, node in ipairs(nodes) do
        before[i] = {}
        for _, d in ipairs(node.dependencies) do
          before[i][d] = true
          for k in pairs(before[d]) do before[i][k] = true end
        end
      end
      for _, list in pairs(uses) do
        for i = 2, #list do
          for k = 1, i - 1 do
            if list[k][1] ~= list[i][1] then
              reused = reused + 1
              assert.is_true(before[list[i][2]][list[k][2]])
            end
          end
        end
      end
    end
    if not device.never_reuses then assert.is_true(reused > 1000, reused) end
  end)

  it("is found beside a thousand forks and joins", function()
    local y, side = cg.zeros("float", 4), cg.stream()
    local g = cg.capture(function()
      local main = cg.current_stream()
      for _ = 1, 1000 do
        local x = cg.zeros("float", 4)
        side:wait(main)
        side:use(function() y:copy(x) end)
        main:wait(side)
        x:release()
      end
    end)
    if not device.never_reuses then assert.equal(512, peak(g:pool())) end
  end)
end)
