-- Snapshots of pools, the history of allocations, and the page about both.
-- Where Chromium is installed the page is also loaded and clicked.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../../support/device.lua")
local slips, line = device.slips, device.line

local KIB = 1024

local function live_blocks(segments)
  local live = {}
  for _, segment in ipairs(segments) do
    for _, block in ipairs(segment.blocks) do
      if block.state == "live" then live[#live + 1] = block end
    end
  end
  return live
end

local function scratch_file(suffix)
  local name = os.tmpname()
  os.remove(name)
  return name .. (suffix or "")
end

describe("pool:snapshot", function()
  teardown(device.nothing_alive)

  it("shows each buffer's block, with the line that allocated it", function()
    local pool = cg.pool()
    local a = cg.buffer("float", 1000, { pool = pool })
    local at = line(-1)
    local b = cg.buffer("uint8", 5, { pool = pool })
    local snapshot = pool:snapshot()
    local live = live_blocks(snapshot.segments)
    assert.equal(2, #live)
    table.sort(live, function(x, y) return x.requested > y.requested end)
    assert.equal(at, live[1].where)
    assert.equal(4000, live[1].requested)
    assert.equal(5, live[2].requested)
    assert.is_true(live[1].bytes >= 4000 and live[1].address <= a:address())
    assert.is_false(live[1].in_capture)
    b:release()
    assert.equal(1, #live_blocks(pool:snapshot().segments))
  end)

  it("covers every segment with blocks", function()
    local pool, held = cg.pool(), {}
    for i = 1, 40 do held[i] = cg.buffer("uint8", i * 700, { pool = pool }) end
    for i = 1, 40, 3 do held[i]:release() end
    local segments = pool:snapshot().segments
    assert.is_true(#segments > 0)
    for _, segment in ipairs(segments) do
      local next_address = segment.address
      for _, block in ipairs(segment.blocks) do
        assert.equal(next_address, block.address)
        next_address = next_address + block.bytes
      end
      assert.equal(segment.address + segment.bytes, next_address)
      assert.not_equal("unmapped", segment.blocks[#segment.blocks].state)
    end
  end)

  it("tells what a capture dropped from what is free", function()
    local pool = cg.pool()
    local g = cg.capture(function() cg.zeros("float", 1000):release() end, { pool = pool })
    local function states()
      local set = {}
      for _, segment in ipairs(pool:snapshot().segments) do
        for _, block in ipairs(segment.blocks) do set[block.state] = true end
      end
      return set
    end
    assert.is_true(states().scratch)
    g:release()
    assert.is_nil(states().scratch)
  end)
end)

describe("cg.memory_history", function()
  teardown(function()
    cg.memory_history(false)
    device.nothing_alive()
  end)

  it("keeps nothing unless it is asked to", function()
    cg.memory_history(false)
    cg.buffer("float", 10):release()
    local events = cg.memory_events()
    assert.equal(0, #events)
    assert.equal(0, events.lost)
  end)

  it("tells allocations and frees in their order", function()
    local pool = cg.pool()
    cg.memory_history(true)
    local b = cg.buffer("float", 1000, { pool = pool })
    local at = line(-1)
    b:release()
    local events = cg.memory_events()
    assert.equal(2, #events)
    assert.equal("alloc", events[1].action)
    assert.equal("free", events[2].action)
    for i = 1, 2 do
      assert.equal(at, events[i].where)
      assert.is_true(events[i].bytes >= 4000)
      assert.equal(pool:snapshot().pool, events[i].pool)
    end
    assert.equal(events[1].bytes, events[1].allocated)
    assert.equal(0, events[2].allocated)
    assert.is_true(events[1].ms <= events[2].ms and events[2].ms <= events.ms)
  end)

  it("keeps the latest events and counts the others", function()
    cg.memory_history(10)
    for _ = 1, 25 do cg.buffer("float", 1):release() end
    local events = cg.memory_events()
    assert.equal(10, #events)
    assert.equal(40, events.lost)
    assert.equal("free", events[10].action)
    cg.memory_history(11)
    for _ = 1, 8 do cg.buffer("float", 1):release() end
    events = cg.memory_events()
    assert.equal(11, #events)
    assert.equal("free", events[1].action)
    for i = 2, 11 do
      assert.equal(i % 2 == 0 and "alloc" or "free", events[i].action)
      assert.is_true(events[i - 1].ms <= events[i].ms)
    end
    cg.memory_history(true)
    assert.equal(0, #cg.memory_events())
  end)

  it("refuses sizes that make no sense", function()
    slips(function() cg.memory_history(-1) end, "number of events")
    slips(function() cg.memory_history(1.5) end, "number of events")
    slips(function() cg.memory_history(2 ^ 40) end, "number of events")
    slips(function() cg.memory_history "x" end, "number of events")
  end)
end)

describe("cg.memory_snapshot", function()
  teardown(device.nothing_alive)

  it("shows all pools of the device", function()
    local pool = cg.pool()
    local b = cg.buffer("float", 1000, { pool = pool })
    local memory = cg.memory_snapshot()
    assert.is_true(memory.total >= memory.free and memory.free > 0)
    local defaults, found = 0, nil
    for _, picture in ipairs(memory.pools) do
      defaults = defaults + (picture.default and 1 or 0)
      if picture.pool == pool:snapshot().pool then found = picture end
    end
    assert.equal(1, defaults)
    assert.same(pool:stats(), found.stats)
    assert.equal(1, #live_blocks(found.segments))
    assert.equal(4000, b.bytes)
  end)
end)

describe("cg.memory_report", function()
  local path
  before_each(function() path = scratch_file ".html" end)
  after_each(function() os.remove(path) end)
  teardown(function()
    cg.memory_history(false)
    device.nothing_alive()
  end)

  local function written()
    cg.memory_report(path)
    return device.program.read(path)
  end

  it("writes one page without outside references", function()
    local b = cg.buffer("float", 1000)
    local text = written()
    assert.matches("^<!doctype html>", text)
    assert.matches("</html>%s*$", text)
    for tag in text:gmatch "<[^>]+>" do
      assert.is_nil(tag:match "%s[hH][rR][eE][fF]=" or tag:match "%s[sS][rR][cC]=", tag)
    end
    assert.is_nil(text:find("@import", 1, true) or text:find("url(", 1, true))
    -- The one address in it is a name: that of SVG.
    for address in text:gmatch "https?://[%w./]+" do
      assert.equal("http://www.w3.org/2000/svg", address)
    end
    assert.truthy(text:find(line():match "[^/]+:%d+$":gsub(":%d+$", ""), 1, true))
    assert.equal(1000, #b)
  end)

  it("says where no history was kept how to keep one", function()
    cg.memory_history(false)
    assert.truthy(written():find("cg.memory_history(true)", 1, true))
  end)

  it("escapes what names and lines contain", function()
    local name = "@/<b>&\"'</script>\\\1\255\226\128.\128\129.\195\164.lua"
    local code = "local b = require('cgraphlua').buffer('float', 7) return b"
    local b = assert(loadstring(code, name))()
    local text = written()
    assert.is_nil(text:find("</script>\\", 1, true))
    assert.is_nil(text:find("<b>&", 1, true))
    local escaped = [[\u003cb\u003e\u0026\u0022'\u003c/script\u003e\u005c\u0001?]]
    assert.truthy(text:find(escaped, 1, true))
    assert.matches("%?%.%?%?%.\195\164%.lua", text)
    local scripts = 0
    for _ in text:gmatch "</script>" do scripts = scripts + 1 end
    assert.equal(2, scripts)
    assert.equal(7, #b)
  end)

  it("stays small when much has happened", function()
    cg.memory_history(50000)
    for _ = 1, 20000 do cg.buffer("float", 1):release() end
    assert.is_true(#written() < 400 * KIB)
    cg.memory_history(false)
  end)

  -- The data of a page, as Lua values; no string in it may have brackets.
  local function data_of(page)
    local text = page:match '<script type="application/json" id="data">(.-)</script>'
    text = text:gsub("%[", "{"):gsub("%]", "}"):gsub('("[^"]*"):', "[%1]=")
    return assert(loadstring("return " .. text))()
  end

  it("tells bytes, lines and ages as they were", function()
    local function stats(reserved)
      return { reserved = reserved, reserved_peak = 1536, allocated = 640, allocated_peak = 15360,
        allocations = 9, frees = 8, executables = 3 * 2 ^ 20, ordered = 7, refused = 6 }
    end
    local function block(state, bytes, address, where)
      return { state = state, bytes = bytes, address = address, where = where, requested = 200,
        number = 5 }
    end
    local memory = {
      device = "host", free = 2 ^ 30, total = 2 ^ 31,
      pools = {
        { pool = 3, default = true, stats = stats(2048), segments = { {
          address = 4096, bytes = 2048, mapped = 1024, blocks = {
            block("live", 256, 4096, "a:1"), block("live", 256, 8192, "d:4"),
            block("free", 512, 9000), block("scratch", 64, 9512), block("pending", 32, 9576),
          },
        } } },
        { pool = 4, stats = stats(4096), segments = { {
          address = 65536, bytes = 128, mapped = 128, blocks = { block("live", 128, 65536, "c:3") },
        } } },
      },
    }
    local function event(ms, pool, action, bytes, allocated, reserved, address, where)
      return { ms = ms, pool = pool, action = action, bytes = bytes, allocated = allocated,
        reserved = reserved, address = address, where = where }
    end
    -- The first three are too close to be told apart.
    local events = { ms = 100, lost = 5,
      event(10, 3, "alloc", 256, 512, 1024, 4096, "a:1"),
      event(10.05, 3, "alloc", 512, 1024, 2048, 8192, "b:2"),
      event(10.08, 3, "free", 512, 512, 2048, 8192, "b:2"),
      event(50, 4, "alloc", 128, 128, 4096, 65536, "c:3"),
    }
    local text = require "cgraphlua.report".page(memory, events)
    local data = data_of(text)
    assert.same({ "a:1", "b:2", "c:3", "d:4" }, data.lines)
    -- {ms, least, most, last, reserved, events, line, bytes of the largest event}
    assert.same({ { 10, 256, 1024, 512, 6144, 3, 1, 512 }, { 50, 512, 640, 640, 6144, 1, 2, 128 } },
      data.points)
    -- {state, bytes, requested, line, number, age}
    assert.same({ { 0, 256, 200, 0, 5, 90 }, { 0, 256, 200, 3, 5, -1 }, { 3, 512, 200, -1, 5, -1 },
      { 1, 64, 200, -1, 5, -1 }, { 2, 32, 200, -1, 5, -1 } }, data.pools[1].segments[1].blocks)
    assert.same({ 0, 128, 200, 2, 5, 50 }, data.pools[2].segments[1].blocks[1])
    assert.equal(100, data.now)
    for _, tile in ipairs { "6.00 KiB</b>reserved by pools", "640 B</b>held by buffers",
      "64 B</b>scratch of graphs", "32 B</b>pending", "512 B</b>free in pools" } do
      assert.truthy(text:find("<b>" .. tile, 1, true), tile)
    end
    local row = '<tr><td>pool 3 (the device&#39;s)</td><td class="n">2.00 KiB</td>' ..
      '<td class="n">1.50 KiB</td><td class="n">640 B</td><td class="n">15.0 KiB</td>' ..
      '<td class="n">9</td><td class="n">8</td><td class="n">3.00 MiB</td><td class="n">7</td>' ..
      '<td class="n">6</td></tr>'
    assert.truthy(text:find(row, 1, true))
    assert.truthy(text:find("4 events in 0.09 s (5 earlier ones did not fit). Area: in buffers, " ..
      "at most 1.00 KiB. Dashed: reserved, at most 6.00 KiB.", 1, true))
  end)

  it("says what it cannot write", function()
    slips(function() cg.memory_report() end, "a path expected, got nil")
    local _, text = device.fails(function() cg.memory_report "/no/such/folder/report.html" end)
    assert.matches("^[^\n]*report_spec.lua:%d+: .*cannot write /no/such/folder/report.html", text)
    _, text = device.fails(function() cg.memory_report "/dev/full" end)
    assert.matches("cannot write /dev/full: No space", text)
  end)

  -- The page as a browser leaves it after `script` has run.
  local function browse(script)
    local browser
    for _, name in ipairs { "chromium", "chromium-browser", "google-chrome" } do
      local found = os.execute("command -v " .. name .. " >/dev/null 2>&1") == 0
      browser = browser or found and name
    end
    if not browser then return nil end
    local text = written()
    local file = assert(io.open(path, "w"))
    file:write((text:gsub("</body>", function() return "<script>" .. script .. "</script>" end)))
    file:close()
    local profile = scratch_file()
    local pipe = assert(io.popen(("timeout 60 %s --headless --no-sandbox --disable-gpu " ..
      "--user-data-dir=%s --dump-dom file://%s 2>/dev/null"):format(browser, profile, path)))
    local dom = pipe:read "*a"
    pipe:close()
    os.execute("rm -rf " .. profile)
    return dom
  end

  local function holders(dom)
    local rows = {}
    for row in dom:match('id="holders">.-<tbody>(.-)</tbody>'):gmatch "<tr>(.-)</tr>" do
      local cells = {}
      for cell in row:gmatch "<td[^>]*>(.-)</td>" do cells[#cells + 1] = cell end
      rows[#rows + 1] = cells
    end
    return rows
  end

  it("shows and sorts who holds what in a browser", function()
    cg.memory_history(true)
    local pool, held = cg.pool(), {}
    for i = 1, 3 do held[i] = cg.buffer("uint8", i * 4096, { pool = pool }) end
    held[4] = cg.buffer("uint8", 65536, { pool = pool })
    local dom = browse [[document.getElementById('filter').value = 'report_spec.lua';
      document.getElementById('filter').dispatchEvent(new Event('input'));]]
    cg.memory_history(false)
    if not dom then return pending "no Chromium here" end
    if device.never_reuses then return pending "blocks are pages here" end
    assert.truthy(dom:find('data-ready="yes"', 1, true))
    assert.truthy(dom:find("<rect", 1, true))
    assert.truthy(dom:find('class="edge"', 1, true))
    local rows = holders(dom)
    assert.is_true(#rows >= 4)
    assert.equal("64.0 KiB", rows[1][1])
    assert.matches("report_spec.lua:%d+", rows[1][3])
    assert.matches("ms$", rows[1][5])
    -- A click sorts the other way, another groups by line.
    rows = holders(browse [[document.querySelector('[data-key=bytes] button').click();
      const box = document.getElementById('lines'); box.click();
      document.getElementById('filter').value = 'report_spec.lua';
      document.getElementById('filter').dispatchEvent(new Event('input'));]])
    local by_line
    for i, cells in ipairs(rows) do
      if cells[2] == "3" then by_line = cells end
      assert.is_true(i == 1 or rows[i - 1][1] ~= "64.0 KiB")
    end
    assert.equal("24.0 KiB", by_line[1])
    assert.equal(4, #held)
  end)
end)
