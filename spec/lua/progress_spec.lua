local progress = require "cgraphlua.progress"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")

local loop = [[
  local bar = require("cgraphlua.progress").new { total = 50, label = "work", unit = "rows" }
  for i = 1, 50 do bar:update(i) end
  bar:finish() bar:finish()
  print "done"]]

local lack = program.lacks_terminals()

describe("progress", function()
  it("is silent in a pipe", function()
    local status, out, err = program.run { "-e", loop }
    assert.are.same({ 0, "done\n", "" }, { status, out, err })
  end)

  it("is drawn on a terminal, and ends with its line", function()
    if lack then pending(lack) end
    local term = program.terminal(string.format("TERM=xterm %s -e %s", program.quote(program.path),
      program.quote(loop)))
    finally(function()
      term:close()
    end)
    local seen = term:expect "EXIT=0"
    assert.is_truthy(seen:find("work [####", 1, true))
    assert.is_truthy(seen:find("100%", 1, true))
    assert.is_truthy(seen:find "rows/s  took 00:00[^\n]*\n[^\n]*done")
  end)

  it("is silent on a terminal that cannot go back", function()
    if lack then pending(lack) end
    local term = program.terminal(string.format("TERM=dumb %s -e %s", program.quote(program.path),
      program.quote(loop)))
    finally(function()
      term:close()
    end)
    local seen = term:expect "EXIT=0"
    assert.is_nil(seen:find("work", 1, true))
  end)

  it("goes on below when the terminal becomes narrower", function()
    if lack then pending(lack) end
    local term = program.terminal(string.format("TERM=xterm %s -e %s", program.quote(program.path),
      program.quote [[
        local bar = require("cgraphlua.progress").new { total = 2, label = "work" }
        bar:update(1)
        os.execute "stty cols 40 <&2"
        require("cgraphlua").sleep(0.15)
        bar:update(2)
        bar:finish()]]))
    finally(function() term:close() end)
    local seen = term:expect "EXIT=0"
    local first, second = seen:match "^\r(.-)\27%[K\r?\n(.-)\27%[K"
    assert.equal(99, #first)
    assert.is_true(#second > 30 and #second <= 39)
  end)

  it("shows part, rate and time left", function()
    local bar = progress.new { total = 4000, label = "lbm", enabled = false }
    bar:update(1000)
    local text = bar:text(70, 10)
    assert.are.equal(70, #text)
    assert.is_truthy(text:find("^lbm %[#+ +%]  25%%  100 steps/s  left 00:30$"))
    bar:update(4000)
    assert.is_truthy(bar:text(70, 10):find("100%%  400 steps/s  took 00:10$"))
  end)

  it("counts by itself, and without a total", function()
    local bar = progress.new { enabled = false }
    for _ = 1, 1500 do
      bar:update()
    end
    assert.are.equal(1500, bar.done)
    assert.are.equal("1.50k steps  150/s  00:10", bar:text(80, 10))
  end)

  it("fits any width and any state", function()
    local bar = progress.new { total = 10, label = "a label", enabled = false }
    for width = 0, 100 do
      for _, done in ipairs { 0, 3, 10, 11 } do
        bar:update(done)
        assert.is_true(#bar:text(width, 0) <= width)
        assert.is_true(#bar:text(width, 1e9) <= width)
      end
    end
    assert.is_truthy(progress.new({ total = 0 }):text(80, 1):find("100%", 1, true))
  end)

  it("refuses a total that is no count", function()
    for _, total in ipairs { -1, 0 / 0, "many" } do
      assert.has_error(function()
        progress.new { total = total }
      end, "progress.new: total must be a number from 0, got " .. tostring(total))
    end
  end)

  it("refuses options that it does not know", function()
    assert.has_error(function() progress.new { totl = 5 } end,
      "progress.new: unknown option 'totl'; did you mean 'total'?")
    assert.has_error(function() progress.new(5) end,
      "progress.new: a table of options expected, got number")
  end)

  it("names the script's line when a method is called wrongly", function()
    local bar = progress.new { total = 5, enabled = false }
    for _, wrong in ipairs {
      { bar.update, "self", 1 }, { bar.finish, 1 }, { bar.update, bar, "many" }, { bar.text, bar },
    } do
      local ok, why = pcall(function() local r = wrong[1](wrong[2], wrong[3]) return r end)
      assert.is_false(ok)
      assert.matches("^%S*progress_spec.lua:%d+: ", why)
    end
  end)

  it("makes no garbage in a loop", function()
    local bar = progress.new { total = 1e6, enabled = false }
    jit.off() -- a trace that is compiled is garbage, too
    collectgarbage()
    collectgarbage "stop"
    local before = collectgarbage "count"
    for i = 1, 1e5 do bar:update(i) end
    local after = collectgarbage "count"
    collectgarbage "restart"
    jit.on()
    assert.equal(1e5, bar.done)
    assert.is_true(after - before < 1, after - before)
  end)
end)
