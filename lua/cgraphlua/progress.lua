--- A progress bar on standard error: drawn on a terminal, silent in a pipe.
-- local bar = progress.new { total = 1000, label = "steps" }
-- bar:update(done) as often as you like; it looks at the clock and redraws
-- at most ten times a second.  bar:finish() leaves the last state standing.

local ffi = require "ffi"
local core = require "cgraphlua.core"

local now = core.clock

local progress = {}
progress.__index = progress

pcall(ffi.cdef, "struct cgl_winsize { unsigned short rows, columns, width, height; };")
pcall(ffi.cdef, "int ioctl(int fd, unsigned long request, ...);")
pcall(ffi.cdef, "int isatty(int fd);")

local STDERR, TIOCGWINSZ = 2, 0x5413
local INTERVAL = 0.1 -- seconds between two drawings

-- Of several ranks, the first draws.
local function is_terminal()
  return core.launched <= 0 and ffi.C.isatty(STDERR) == 1 and os.getenv "TERM" ~= "dumb"
end

local function columns()
  local size = ffi.new "struct cgl_winsize"
  if ffi.C.ioctl(STDERR, TIOCGWINSZ, size) == 0 and size.columns > 0 then
    return size.columns
  end
  return 80
end

local function duration(seconds)
  if not (seconds < 360000) then
    return "--:--"
  end
  seconds = math.floor(seconds + 0.5)
  local hours, minutes = math.floor(seconds / 3600), math.floor(seconds / 60) % 60
  if hours > 0 then
    return string.format("%d:%02d:%02d", hours, minutes, seconds % 60)
  end
  return string.format("%02d:%02d", minutes, seconds % 60)
end

local function amount(x)
  local units = { "", "k", "M", "G", "T" }
  local unit = 1
  while x >= 1000 and unit < #units do
    x, unit = x / 1000, unit + 1
  end
  return string.format(x >= 100 and "%.0f%s" or x >= 10 and "%.1f%s" or "%.2f%s", x, units[unit])
end

local known = { total = true, label = true, unit = true, enabled = true }

--- A bar for `total` steps.  opts: total (nil when not known), label, unit
-- ("steps"), enabled (true: draw even in a pipe, false: never).
function progress.new(opts)
  if opts ~= nil and type(opts) ~= "table" then
    error("progress.new: a table of options expected, got " .. type(opts), 2)
  end
  opts = opts or {}
  for name in pairs(opts) do
    if not known[name] then
      error(("progress.new: unknown option '%s'%s"):format(tostring(name),
        core.nearest(tostring(name), known)), 2)
    end
  end
  local total = opts.total
  if total ~= nil and (type(total) ~= "number" or not (total >= 0)) then
    error("progress.new: total must be a number from 0, got " .. tostring(total), 2)
  end
  local drawn = opts.enabled
  if drawn == nil then
    drawn = is_terminal()
  end
  return setmetatable({
    total = total,
    label = opts.label,
    unit = opts.unit or "steps",
    done = 0,
    drawn = drawn,
    started = now(),
    next_draw = 0,
    shown = 0, -- bytes of the text on the screen
    finished = false,
  }, progress)
end

-- Raises at the line that called the method.
local function check(self, method, name, number)
  if getmetatable(self) ~= progress then
    error(("progress: write bar:%s(...) of a progress.new, with ':'"):format(method), 3)
  elseif type(number) ~= "number" then
    error(("bar:%s: %s must be a number, got %s"):format(method, name, tostring(number)), 3)
  end
end

--- The bar's text at a width, without control characters.
function progress:text(width, elapsed)
  check(self, "text", "the width", width)
  check(self, "text", "the time", elapsed)
  local rate = elapsed > 0 and self.done / elapsed or 0
  local left = self.label and self.label .. " " or ""
  if not self.total then
    return string.format("%s%s %s  %s/s  %s", left, amount(self.done), self.unit, amount(rate),
      duration(elapsed)):sub(1, width)
  end
  local part = self.total > 0 and math.min(1, self.done / self.total) or 1
  local remaining = part >= 1 and elapsed or (self.total - self.done) / rate
  local right = string.format(" %3d%%  %s %s/s  %s %s", math.floor(100 * part), amount(rate),
    self.unit, part >= 1 and "took" or "left", duration(remaining))
  local room = width - #left - #right - 2
  if room < 4 then
    return (left .. right):sub(1, width)
  end
  local filled = math.floor(part * room)
  return left .. "[" .. ("#"):rep(filled) .. (" "):rep(room - filled) .. "]" .. right
end

-- A terminal that became narrower shows what was drawn on several lines, or cut:
-- those are left, and the bar goes on below.
local function draw(self, time)
  local width = columns() - 1
  local text = self:text(width, time - self.started)
  io.stderr:write(self.shown > width and "\n" or "\r", text, "\27[K")
  io.stderr:flush()
  self.shown = #text
  self.next_draw = now() + INTERVAL
end

--- Says that `done` steps are done in all (one more when left out).
function progress:update(done)
  check(self, "update", "the number of steps", done or 0)
  self.done = done or self.done + 1
  if not self.drawn or self.finished then
    return
  end
  local time = now()
  if time >= self.next_draw then
    draw(self, time)
  end
end

--- Draws the end and goes to the next line; once.
function progress:finish()
  check(self, "finish", "", 0)
  if self.finished then
    return
  end
  self.finished = true
  if self.drawn then
    draw(self, now())
    io.stderr:write "\n"
  end
end

return progress
