-- Domains: a grid whose slowest extent is divided among ranks.  Each rank has
-- its rows, and on both sides `halo` rows of its neighbours, which an exchange
-- brings.  Rows of a buffer lie one after the other, so that no copy is needed
-- besides.

local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

local domain = {}
domain.__index = domain

local known = { shape = true, halo = true, periodic = true, ranks = true }

local function refuse(message)
  core.bad_argument("domain", 1, message)
end

local function is_whole(x, least)
  return type(x) == "number" and x >= least and x % 1 == 0
end

-- The first row of a rank's part, from 0; of `size`, the number of all rows.
local function first_row(rows, size, rank)
  return math.floor(rows / size) * rank + math.min(rank, rows % size)
end

--- A field of the domain: a buffer of this rank's rows and halos, zeroed.
function domain:field(kind)
  return core.zeros(kind, self.shape)
end

--- The rows of a field that are this rank's own, without halos.
function domain:own(field)
  return field:view(self.halo * self.row + 1, self.rows * self.row)
end

local function check_field(self, field, operation)
  if #field ~= self.shape[1] * self.row then
    core.bad_argument(operation, 1, ("a field of %d elements expected, got %d"):format(
      self.shape[1] * self.row, #field))
  end
end

--- The rows of the whole grid that a rank has: the first, from 0, and how many.
function domain:part(rank)
  if not is_whole(rank, 0) or rank >= self.ranks.size then
    core.bad_argument("domain:part", 1, ("a rank from 0 to %d expected, got %s"):format(
      self.ranks.size - 1, tostring(rank)))
  end
  local first = first_row(self.whole[1], self.ranks.size, rank)
  return first, first_row(self.whole[1], self.ranks.size, rank + 1) - first
end

local function transfers_of(self, operation, ...)
  local n, transfers = self.halo * self.row, {}
  for _, field in ipairs { ... } do
    check_field(self, field, operation)
    local inner = self.rows * self.row
    -- To the rank below first: of two messages between two ranks, the first one
    -- sent is the first one received.
    if self.below and n > 0 then
      transfers[#transfers + 1] = { send = field:view(n + 1, n), to = self.below }
    end
    if self.above and n > 0 then
      transfers[#transfers + 1] = { recv = field:view(n + inner + 1, n), from = self.above }
      transfers[#transfers + 1] = { send = field:view(inner + 1, n), to = self.above }
    end
    if self.below and n > 0 then
      transfers[#transfers + 1] = { recv = field:view(1, n), from = self.below }
    end
  end
  return transfers
end

--- What brings the neighbours' rows into the halos of the fields: a list for
-- ranks:exchange, to which other transfers can be added.
function domain:transfers(...)
  return transfers_of(self, "domain:transfers", ...)
end

--- Brings the neighbours' rows into the halos of the fields, all at once.
function domain:exchange(...)
  self.ranks:exchange(transfers_of(self, "domain:exchange", ...))
end

--- The rows of a field that see no neighbour's: the first, from 0, and how many.
-- `margin` (halo) rows at each side that has a neighbour are none of them.
function domain:inner(margin)
  margin = margin == nil and self.halo or margin
  if not is_whole(margin, self.halo) then
    core.bad_argument("domain:inner", 1, ("a margin of %d or more rows expected, got %s"):format(
      self.halo, tostring(margin)))
  end
  local below, above = self.below and margin or 0, self.above and margin or 0
  return self.halo + below, math.max(0, self.rows - below - above)
end

--- Exchanges a list of fields, and beside that, as a branch of its own, does
-- work(first, rows) on the inner rows; then work(first, rows, border) on what is
-- left, where border is 1 below and 2 above.
function domain:overlap(fields, work, margin)
  if type(fields) ~= "table" then
    core.bad_argument("domain:overlap", 1, "a list of fields expected, got " .. type(fields))
  elseif type(work) ~= "function" then
    core.bad_argument("domain:overlap", 2, "a function of rows expected, got " .. type(work))
  end
  local first, rows = self:inner(margin)
  local last = self.halo + self.rows
  if rows == self.rows then
    return work(first, rows)
  elseif rows == 0 then
    self:exchange(unpack(fields))
    return work(self.halo, self.rows, 1)
  end
  -- The most urgent: the inner rows may fill the device.
  self.side = self.side or core.stream { priority = -1000 }
  local stream = core.current_stream()
  self.side:wait(stream)
  self.side:use(function() self:exchange(unpack(fields)) end)
  work(first, rows)
  stream:wait(self.side)
  if self.below then work(self.halo, first - self.halo, 1) end
  if self.above then work(first + rows, last - first - rows, 2) end
end

--- The whole grid of a field, on the rank `root` (0) alone; nil on the others.
function domain:gather(field, root)
  check_field(self, field, "domain:gather")
  root = root or 0
  local transfers, whole = { { send = self:own(field), to = root } }, nil
  if self.ranks.rank == root then
    whole = core.buffer(field.type, self.whole)
    for r = 0, self.ranks.size - 1 do
      local from, rows = self:part(r)
      transfers[#transfers + 1] = { recv = whole:view(from * self.row + 1, rows * self.row),
                                    from = r }
    end
  end
  self.ranks:exchange(transfers)
  return whole
end

--- Gives each rank its rows of the whole grid, as a list.
function domain:upload(field, values)
  check_field(self, field, "domain:upload")
  local own, from = {}, self.first * self.row
  for i = 1, self.rows * self.row do own[i] = values[from + i] end
  self:own(field):upload(own)
end

--- opts: shape (extents of the whole, the slowest first), halo (1), periodic
-- (false), ranks (cg.ranks()).
return function(opts)
  if type(opts) ~= "table" then
    refuse("a table of options expected, got " .. type(opts))
  end
  for name in pairs(opts) do
    if not known[name] then
      refuse(("unknown option '%s'%s"):format(tostring(name), core.nearest(tostring(name), known)))
    end
  end
  local shape, halo = opts.shape, opts.halo == nil and 1 or opts.halo
  if type(shape) ~= "table" or #shape == 0 or #shape > 8 then
    refuse "shape must be a list of 1 to 8 extents"
  end
  for _, extent in ipairs(shape) do
    if not is_whole(extent, 1) then refuse "an extent must be a whole number from 1" end
  end
  if not is_whole(halo, 0) then refuse "halo must be a whole number of rows from 0" end
  local ranks = opts.ranks or core.ranks()
  local rank, size = ranks.rank, ranks.size
  local least = math.floor(shape[1] / size)
  if least < math.max(halo, 1) then
    refuse(("%d rows for %d ranks leave %d for a rank, which is less than %d"):format(shape[1],
      size, least, math.max(halo, 1)))
  end
  local self = setmetatable({
    ranks = ranks,
    halo = halo,
    whole = shape,
    shape = { unpack(shape) },
    row = 1,
    below = rank > 0 and rank - 1 or opts.periodic and size - 1 or nil,
    above = rank + 1 < size and rank + 1 or opts.periodic and 0 or nil,
  }, domain)
  self.first, self.rows = self:part(rank)
  for d = 2, #shape do self.row = self.row * shape[d] end
  self.shape[1] = self.rows + 2 * halo
  return self
end
