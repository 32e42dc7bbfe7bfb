-- Ranks: the processes of one program, started by Open MPI, on the host device or on
-- a GPU each.
-- The other files of this folder are what they run.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local program = device.program
local quote = program.quote

local support = dofile(here .. "/../support/ranks.lua")
local ranks, lacks = support.run, support.lacks()

local function has(text, pattern)
  assert(text:find(pattern), ("%q is not in: %s"):format(pattern, text))
end

describe("ranks", function()
  teardown(device.nothing_alive)

  describe("of one process", function()
    it("are a world of one, without a library", function()
      local world = cg.ranks()
      assert.same({ 0, 1, 0, "" }, { world.rank, world.size, world.local_rank, world.library })
      assert.equal("cgraphlua.ranks rank 0 of 1", tostring(world))
      assert.equal(1, world:split(4, 7).size)
      assert.is_nil(world:split(-1))
    end)

    it("reduce, move and exchange their own numbers, in captures too", function()
      local world = cg.ranks()
      local x, y, z = cg.from({ 1, 2, 3 }, "float"), cg.zeros("float", 3), cg.zeros("float", 3)
      local g = cg.capture(function()
        world:all_reduce(x, y)
        world:broadcast(y)
        world:exchange { { send = y, to = 0 }, { recv = z, from = 0 } }
        world:barrier()
      end)
      g:replay(2)
      assert.same({ 1, 2, 3 }, z:download())
    end)

    it("refuse what does not fit, at its own line", function()
      local world = cg.ranks()
      local x, y, flags = cg.zeros("float", 4), cg.zeros("float", 3), cg.zeros("bool", 4)
      local function invalid(fn, ...) device.raises("CGL_ERROR_INVALID_ARGUMENT", fn, ...) end
      invalid(function() world:all_reduce(x, y) end, "dst has 3 of float", "ranks_spec.lua:%d")
      invalid(function() world:all_reduce(x, x, "any") end, "float has no such operation")
      invalid(function() world:all_reduce(flags, flags, "sum") end, "any and all reduce bool")
      local z = cg.zeros("complex64", 4)
      invalid(function() world:all_reduce(z, z, "max") end, "complex64 has no such operation")
      world:all_reduce(z)
      invalid(function() world:all_gather(x:view(1, 3), x:view(2, 3)) end, "shares memory")
      invalid(function() world:broadcast(x, 1) end, "rank 1 is none of 1")
      invalid(function() world:reduce(x, nil) end, "dst is missing")
      invalid(function() world:exchange { { send = x, to = 0 } } end, "a send has no other side")
      invalid(function() world:recv(x, 0) end, "rank 0 is this rank itself, and a receive has no")
      invalid(function()
        world:exchange { { send = x, to = 0 }, { recv = y, from = 0 } }
      end, "dst has 3 of float")
      invalid(function() world:exchange { { send = x, to = 0 }, { recv = x, from = 0 } } end,
        "shares memory")
      invalid(function() cg.ranks { seconds = 0 } end, "more than 0")
      device.slips(function() world:all_reduce(x, y, "mean") end, "sum, product")
      device.slips(function() world:exchange { { send = x } } end, "needs a rank as 'to'")
      device.slips(function() world:exchange { { to = 0 } } end, "needs a buffer as send or recv")
      device.slips(function() cg.ranks { second = 1 } end, "second")
    end)

    it("refuse a collective in the body of a conditional", function()
      local world, x, flag = cg.ranks(), cg.zeros("float", 4), cg.full("bool", 1, true)
      local g = cg.capture(function()
        cg.when(flag, function()
          device.raises("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
            function() world:all_reduce(x) end, "conditional")
          x:fill(1)
        end)
      end)
      g:replay()
      assert.equal(1, device.value(x))
    end)

    it("are all of a domain", function()
      local d = cg.domain { shape = { 5, 4, 3 }, halo = 2, periodic = true }
      assert.same({ 0, 5, 12, 0, 0 }, { d.first, d.rows, d.row, d.below, d.above })
      assert.same({ 9, 4, 3 }, d.shape)
      assert.same({ 4, 1 }, { d:inner() })
      assert.same({ 0, 5 }, { d:part(0) })
      assert.same({ 5, 0 }, { d:inner(3) })
      local u, start = d:field "int32", {}
      for i = 1, 60 do start[i] = i end
      d:upload(u, start)
      local g = cg.capture(function() d:exchange(u) end)
      g:replay()
      local rows, wanted = u:download(), { 37, 49, 1, 13, 25, 37, 49, 1, 13 }
      for k, first in ipairs(wanted) do assert.equal(first, rows[(k - 1) * 12 + 1]) end
      assert.same(start, d:gather(u):download())
      assert.same({ 5, 4, 3 }, d:gather(u).shape)
    end)

    it("compute inner rows of a domain beside its exchange", function()
      local d = cg.domain { shape = { 8, 3 }, periodic = true }
      local u, v, seen = d:field "int32", d:field "int32", {}
      local g = cg.capture(function()
        d:overlap({ u }, function(first, rows, border)
          seen[#seen + 1] = { first, rows, border }
          v:view(3 * first + 1, 3 * rows):fill(1)
        end)
      end)
      assert.same({ { 2, 6 }, { 1, 1, 1 }, { 8, 1, 2 } }, seen)
      local after = {}
      for i, node in ipairs(g:nodes()) do after[i] = node.dependencies end
      assert.same({ {}, { 1 }, {}, { 2, 3 }, { 4 } }, after) -- two copies; a fill; two fills
    end)

    it("refuse a domain that makes no sense", function()
      device.slips(function() cg.domain { shape = { 2, 5 }, halo = 3 } end, "2 rows for 1 ranks")
      device.slips(function() cg.domain { shape = {} } end, "1 to 8 extents")
      device.slips(function() cg.domain { shape = { 4, 0.5 } } end, "whole number from 1")
      device.slips(function() cg.domain { shape = { 4 }, halo = -1 } end, "halo")
      device.slips(function() cg.domain { shape = { 4 }, hallo = 1 } end, "did you mean 'halo'")
      device.slips(function() cg.domain() end, "table of options")
      local d = cg.domain { shape = { 4 } }
      device.slips(function() d:exchange(cg.zeros("float", 4)) end, "6 elements expected, got 4")
      device.slips(function() d:transfers(cg.zeros("float", 4)) end, "6 elements expected, got 4")
      device.slips(function() d:part(1) end, "a rank from 0 to 0 expected, got 1")
      device.slips(function() d:inner(0) end, "a margin of 1 or more rows expected")
      device.slips(function() d:overlap({}, print, 1.5) end, "a margin of 1 or more rows expected")
      device.slips(function() d:overlap(1, print) end, "a list of fields expected, got number")
      device.slips(function() d:overlap({}) end, "a function of rows expected, got nil")
    end)

    it("answer a released object", function()
      local world = cg.ranks()
      world:release()
      world:release()
      device.raises("CGL_ERROR_RELEASED", function() world:barrier() end)
    end)
  end)

  if lacks then
    it("of several processes", function() pending(lacks) end)
    return
  end

  for _, n in ipairs(support.possible { 1, 2, 3, 4, 8 }) do
    it(("give on %d what one rank computes"):format(n), function()
      local status, text = ranks(n, "collectives.lua")
      assert(status == 0, text)
      has(text, ("right: %%d%%d%%d%%d checks on %d ranks"):format(n))
    end)
  end

  it("replay often, with eager collectives between replays", function()
    local n = support.on_gpu and 10000 or 500
    local status, text = ranks(support.most > 2 and 3 or 2, "replays.lua " .. n)
    assert(status == 0, text)
    has(text, ("right: %d replays"):format(2 * n))
  end)

  it("exchange buffers of random pairs in random order", function()
    for seed = 1, tonumber(os.getenv "CGRAPHLUA_RANKS_FAILURES") or 2 do
      local status, text = ranks(math.min(2 + seed % 3, support.most), "pairs.lua " .. seed)
      assert(status == 0, text)
      has(text, "right: %d+ transfers")
    end
  end)

  it("name the lines of two ranks that wait for each other", function()
    if support.on_gpu then
      pending "both have issued what the other waits for, and NCCL tells no more"
      return
    end
    local status, text = ranks(3, "pairs.lua 1 cross")
    assert.is_true(status ~= 0 and status ~= 124)
    has(text, "ranks:exchange at %S*pairs.lua:(%d+) has waited 3 s for rank [01], whose last " ..
      "collective was ranks:exchange at %S*pairs.lua:%1")
  end)

  it("divide a grid, and take the same steps in parts as in one piece", function()
    for _, n in ipairs(support.possible { 2, 3 }) do
      local status, text = ranks(n, "domains.lua")
      assert(status == 0, text)
      has(text, "right: 48 grids")
    end
  end)

  -- Ranks, how many things end before the program, and how the program ends.
  for _, case in ipairs {
    { 8, 0, "end" }, { 2, 1, "exit" }, { 3, 0, "open" }, { 2, 2, "open" }, { 4, 3, "world" },
    { 3, 4, "exit" }, { 2, 4, "open" },
  } do
    local n = math.min(case[1], support.most)
    local what = ("%d things before the program: %s"):format(case[2], case[3])
    it(("end on %d ranks in every order, %s"):format(n, what), function()
      local status, text = ranks(n, ("ends.lua %d %s"):format(case[2], case[3]))
      assert(status == 0, text)
      has(text, "right: 144 ends")
    end)
  end

  it("learn what one rank learns with all images of a step", function()
    local status, text = ranks(2, "networks.lua")
    assert(status == 0, text)
    has(text, "right: losses within")
  end)

  local drawn = {
    ["heat.lua --size 50 --steps 100"] = "relative L2 error",
    ["lbm.lua --size 20 --steps 100 --re 10"] = "100 steps",
  }
  for words, said in pairs(drawn) do
    it("draw the picture of one rank: " .. words, function()
      local folder, pictures = program.folder(), {}
      for _, n in ipairs(support.possible { 1, 2, 3 }) do
        local out = ("%s/%d.png"):format(folder, n)
        local status, text = ranks(n, "../../scripts/" .. words .. " --out " .. quote(out))
        assert(status == 0, text)
        has(text, said)
        pictures[n] = assert(program.read(out))
      end
      program.remove(folder)
      for n = 2, #pictures do assert(pictures[1] == pictures[n], n .. " draw another one") end
    end)
  end

  it("agree where CGRAPHLUA_RANKS_CHECK=1 asks", function()
    local status, text = ranks(2, "collectives.lua", "CGRAPHLUA_RANKS_CHECK=1")
    assert(status == 0, text)
  end)

  it("need a launcher that is installed", function()
    local status, _, err = program.shell("PATH=/nowhere " .. quote(program.path) .. " --ranks 2 x")
    assert.is_true(status ~= 0)
    has(err, "install Debian's openmpi%-bin")
    status, _, err = program.shell(quote(program.path) .. " --ranks two x")
    assert.is_true(status ~= 0)
    has(err, "a number from 1 on is needed, not 'two'")
  end)

  it("say what to install without MPI", function()
    local status, text = ranks(2, "ends.lua 0 end", "CGRAPHLUA_MPI=/nowhere/mpi.so")
    assert.is_true(status ~= 0)
    has(text, "CGL_ERROR_NOT_FOUND")
    has(text, "install Debian's openmpi%-bin and libopenmpi%-dev")
  end)
end)
