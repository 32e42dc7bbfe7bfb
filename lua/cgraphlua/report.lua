-- A page about a device's memory: pools, segments, the bytes over time when
-- a history was kept, and who holds what.  The page has no outside references.

local core = require "cgraphlua.core"
local page = require "cgraphlua.report_page"

core.hide() -- errors name the script's line

local report = {}

local OPERATION = "memory_report"
local STATES = { live = 0, scratch = 1, pending = 2, free = 3, unmapped = 4 }
local BUCKETS = 800 -- of the timeline

-- Text -----------------------------------------------------------------------

-- Bytes that are no UTF-8 become question marks: browsers would guess.
local function utf8(text)
  return (text:gsub("[\128-\255]+", function(run)
    return (run:gsub("[\194-\244]?[\128-\191]*", function(c)
      local first, n = c:byte(), #c
      local wanted = first and (first < 194 and 0 or first < 224 and 2 or first < 240 and 3 or 4)
      if n == 0 or n == wanted then return c end
      return ("?"):rep(n)
    end):gsub("[\192\193\245-\255]", "?"))
  end))
end

local function html(text)
  return (utf8(text):gsub("[&<>\"']", {
    ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;",
  }))
end

-- A JSON string that may stand inside a script element.
local function json_string(text)
  local escaped = utf8(text):gsub('[%c\127"\\<>&]', function(c)
    return ("\\u%04x"):format(c:byte())
  end)
  return '"' .. escaped .. '"'
end

local function json(value)
  local kind = type(value)
  if kind == "string" then
    return json_string(value)
  elseif kind == "number" then
    return value % 1 == 0 and ("%.0f"):format(value) or ("%.6g"):format(value)
  end
  local out = {}
  if #value > 0 or next(value) == nil then
    for i = 1, #value do out[i] = json(value[i]) end
    return "[" .. table.concat(out, ",") .. "]"
  end
  for k, v in next, value do out[#out + 1] = json_string(k) .. ":" .. json(v) end
  table.sort(out)
  return "{" .. table.concat(out, ",") .. "}"
end

local function size(n)
  local units = { "B", "KiB", "MiB", "GiB", "TiB" }
  local i = 1
  while n >= 1024 and i < #units do n, i = n / 1024, i + 1 end
  return ((i > 1 and n < 10) and "%.2f %s" or (i > 1 and n < 100) and "%.1f %s" or "%.0f %s")
    :format(n, units[i])
end

-- What the page shows ----------------------------------------------------------

-- The table of lines, each written once; -1 is no line.
local function new_lines()
  local lines, index = {}, {}
  return lines, function(where)
    if not where then return -1 end
    if not index[where] then
      lines[#lines + 1] = where
      index[where] = #lines - 1
    end
    return index[where]
  end
end

-- When the allocation that is at (pool, address) now was made.
local function allocation_times(events)
  local born = {}
  for _, event in ipairs(events) do
    born[event.pool .. ":" .. event.address] = event.action == "alloc" and event.ms or nil
  end
  return born
end

local function pool_of(picture, line_of, born, now)
  local pool = {
    name = ("pool %d%s"):format(picture.pool, picture.default and " (the device's)" or ""),
    reserved = picture.stats.reserved, segments = {},
  }
  local bytes = { live = 0, scratch = 0, pending = 0, free = 0, unmapped = 0 }
  for i, segment in ipairs(picture.segments) do
    local blocks = {}
    for k, b in ipairs(segment.blocks) do
      local birth = b.state == "live" and born[picture.pool .. ":" .. b.address]
      blocks[k] = { STATES[b.state], b.bytes, b.requested or 0, line_of(b.where), b.number or 0,
        birth and now - birth or -1 }
      bytes[b.state] = bytes[b.state] + b.bytes
    end
    pool.segments[i] =
      { address = segment.address, bytes = segment.bytes, mapped = segment.mapped, blocks = blocks }
  end
  return pool, bytes
end

-- The bytes of all pools over time, in at most BUCKETS points
-- {ms, least, most, last, reserved, events, line, bytes of the largest event}.
local function timeline(events, line_of)
  local points = {}
  if #events == 0 then return points end
  local allocated, reserved = {}, {}
  local total, total_reserved = 0, 0
  -- What pools held before their first event.
  for _, e in ipairs(events) do
    if not allocated[e.pool] then
      allocated[e.pool] = e.allocated + (e.action == "alloc" and -e.bytes or e.bytes)
      reserved[e.pool] = e.reserved
      total, total_reserved = total + allocated[e.pool], total_reserved + e.reserved
    end
  end
  local from = events[1].ms
  local width = math.max(events.ms - from, 1e-6) / BUCKETS
  local point, bucket
  for _, e in ipairs(events) do
    local at = math.floor((e.ms - from) / width)
    if at ~= bucket then
      bucket = at
      point = { e.ms, total, total, total, total_reserved, 0, -1, 0 }
      points[#points + 1] = point
    end
    total = total + e.allocated - allocated[e.pool]
    total_reserved = total_reserved + e.reserved - reserved[e.pool]
    allocated[e.pool], reserved[e.pool] = e.allocated, e.reserved
    point[2], point[3] = math.min(point[2], total), math.max(point[3], total)
    point[4], point[5], point[6] = total, total_reserved, point[6] + 1
    if e.bytes > point[8] then point[7], point[8] = line_of(e.where), e.bytes end
  end
  return points
end

local function tile(name, value)
  return ('<div class="tile"><b>%s</b>%s</div>\n'):format(html(value), html(name))
end

local function pool_row(pool, stats)
  return ("<tr><td>%s</td>" .. ('<td class="n">%s</td>'):rep(9) .. "</tr>\n"):format(
    html(pool.name), size(stats.reserved), size(stats.reserved_peak), size(stats.allocated),
    size(stats.allocated_peak), stats.allocations, stats.frees, size(stats.executables),
    stats.ordered, stats.refused)
end

local function history_line(events, points)
  if #events == 0 then
    return "No history was kept: call cg.memory_history(true) before what is to be seen."
  end
  local most, reserved, lost = 0, 0, ""
  for _, p in ipairs(points) do
    most, reserved = math.max(most, p[3]), math.max(reserved, p[5])
  end
  if events.lost > 0 then lost = (" (%d earlier ones did not fit)"):format(events.lost) end
  return ("%d events in %.3g s%s. Area: in buffers, at most %s. Dashed: reserved, at most %s.")
    :format(#events, (events.ms - events[1].ms) / 1000, lost, size(most), size(reserved))
end

--- The page as a string, from cg.memory_snapshot() and cg.memory_events().
function report.page(memory, events)
  local lines, line_of = new_lines()
  local born = allocation_times(events)
  local data = { pools = {}, points = timeline(events, line_of), lines = lines, now = events.ms }
  local rows, sums = {}, { live = 0, scratch = 0, pending = 0, free = 0, unmapped = 0 }
  local reserved = 0
  for i, picture in ipairs(memory.pools) do
    local bytes
    data.pools[i], bytes = pool_of(picture, line_of, born, events.ms)
    rows[i] = pool_row(data.pools[i], picture.stats)
    for state, n in next, bytes do sums[state] = sums[state] + n end
    reserved = reserved + picture.stats.reserved
  end
  local parts = {
    device = html(memory.device),
    about = html(("%s free of %s; written %s by cgraphlua %s"):format(size(memory.free),
      size(memory.total), os.date "%Y-%m-%d %H:%M:%S", core.version)),
    tiles = table.concat {
      tile("reserved by pools", size(reserved)), tile("held by buffers", size(sums.live)),
      tile("scratch of graphs", size(sums.scratch)), tile("pending", size(sums.pending)),
      tile("free in pools", size(sums.free)),
    },
    pools = table.concat(rows),
    history = html(history_line(events, data.points)),
    data = json(data),
  }
  return (page:gsub("%$%((%w+)%)", parts))
end

--- cg.memory_report(file)
function report.write(path)
  if type(path) ~= "string" then
    core.bad_argument(OPERATION, 1, "a path expected, got " .. type(path))
  end
  local text = report.page(core.memory_snapshot(), core.memory_events())
  local file, why = io.open(path, "wb")
  if file then
    local written
    written, why = file:write(text)
    local closed, other = file:close()
    if written and closed then return end
    why = ("%s: %s"):format(path, why or other)
  end
  error(("memory_report: cannot write %s"):format(why or path), 2)
end

return report
