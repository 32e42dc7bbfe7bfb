-- Lua's string patterns, matched in Lua: find, match, gmatch and gsub with the
-- results of the string library's.
-- Idea: nothing ends a search of the string library, and some take years.  Here a
-- hook sees the clock.  What surely ends soon is left to the string library.

local core = require "cgraphlua.core"

core.hide() -- errors name the script's line

local byte, char, sub = string.byte, string.char, string.sub
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub
local error, format, tonumber, tostring = error, string.format, tonumber, tostring
local type, unpack, concat = type, unpack, table.concat
local floor, log = math.floor, math.log

local OPEN, POSITION = -1, -2 -- ends of captures

local patterns = {
  soon = 26, -- log2 of the steps that the string library may take
}

local function fail(text)
  error("malformed pattern (" .. text .. ")", 0)
end

local function text_of(x)
  return type(x) == "number" and tostring(x) or x
end

-- Patterns ---------------------------------------------------------------------

-- Finds the bytes that an item of a pattern stands for: a letter, a class, a set.
local function read_set(item)
  local text, set = item.text, {}
  if text == "." or #text > 1 then
    for b = 0, 255 do
      set[b] = find(char(b), "^" .. text) ~= nil
    end
  else
    set[byte(text)] = true
  end
  item.set = set
end

-- Where the set that begins at `at` ends.
local function set_end(pattern, at)
  at = at + 1
  if sub(pattern, at, at) == "^" then
    at = at + 1
  end
  repeat
    if at > #pattern then fail "missing ']'" end
    at = at + (sub(pattern, at, at) == "%" and 2 or 1)
  until sub(pattern, at, at) == "]"
  return at
end

-- The item at `at`, and where the next begins.
local function read_item(pattern, at)
  local c = sub(pattern, at, at)
  if c == "(" then
    local position = sub(pattern, at + 1, at + 1) == ")"
    return { kind = "open", stop = position and POSITION or OPEN }, at + (position and 2 or 1)
  elseif c == ")" then
    return { kind = "close" }, at + 1
  elseif c == "$" and at == #pattern then
    return { kind = "end" }, at + 1
  end
  local last = at
  if c == "%" then
    local class = sub(pattern, at + 1, at + 1)
    if class == "" then
      fail "ends with '%'"
    elseif class == "b" then
      if at + 3 > #pattern then error("unbalanced pattern", 0) end
      local first, stop = byte(pattern, at + 2, at + 3)
      return { kind = "balance", first = first, last = stop }, at + 4
    elseif class == "f" then
      if sub(pattern, at + 2, at + 2) ~= "[" then
        error("missing '[' after '%f' in pattern", 0)
      end
      last = set_end(pattern, at + 2)
      return { kind = "frontier", text = sub(pattern, at + 2, last) }, last + 1
    elseif find(class, "%d") then
      return { kind = "back", capture = tonumber(class) }, at + 2
    end
    last = at + 1
  elseif c == "[" then
    last = set_end(pattern, at)
  end
  local many = match(sub(pattern, last + 1, last + 1), "[*+?-]")
  return { kind = "one", text = sub(pattern, at, last), many = many }, last + (many and 2 or 1)
end

local function read_pattern(pattern, at)
  local items = {}
  while at <= #pattern do
    items[#items + 1], at = read_item(pattern, at)
  end
  return items
end

-- log2 of the most steps that a search may take.  A repetition multiplies them by
-- the text's length when something behind it may fail.
local function bits_of(items, length, anchored)
  local bits, power, may_fail = 0, anchored and 0 or 1, false
  for i = #items, 1, -1 do
    local item = items[i]
    local many = item.kind == "one" and item.many
    if item.kind == "balance" or item.kind == "back" then
      power, may_fail = power + 1, true
    elseif many == "?" then
      bits = bits + 1
    elseif many then
      power = power + (may_fail and 1 or 0)
      may_fail = may_fail or many == "+"
    elseif item.kind ~= "open" and item.kind ~= "close" then
      may_fail = true
    end
  end
  return bits + power * log(length + 1) / log(2)
end

-- Matching ---------------------------------------------------------------------

local attempt

local function capture(m, kind, item, i, at)
  local k
  if kind == "open" then
    k = m.level + 1
    if k > 32 then error("too many captures", 0) end
    m.level, m.first[k], m.stop[k] = k, at, item.stop
  else
    k = m.level
    while k > 0 and m.stop[k] ~= OPEN do
      k = k - 1
    end
    if k == 0 then error("invalid pattern capture", 0) end
    m.stop[k] = at
  end
  local last = attempt(m, i + 1, at)
  if not last and kind == "open" then
    m.level = k - 1
  elseif not last then
    m.stop[k] = OPEN
  end
  return last
end

local function repeated(m, item, i, at)
  local text, set, many = m.text, item.set, item.many
  if many == "-" then
    while true do
      local last = attempt(m, i + 1, at)
      if last or not set[byte(text, at)] then return last end
      at = at + 1
    end
  end
  local most = at
  while set[byte(text, most)] do
    most = most + 1
    if many == "?" then break end
  end
  for from = most, many == "+" and at + 1 or at, -1 do
    local last = attempt(m, i + 1, from)
    if last then return last end
  end
end

local function balance_end(text, item, at)
  if byte(text, at) ~= item.first then return end
  local depth = 1
  for i = at + 1, #text do
    local b = byte(text, i)
    if b == item.last then
      depth = depth - 1
      if depth == 0 then return i + 1 end
    elseif b == item.first then
      depth = depth + 1
    end
  end
end

local function back_end(m, item, at)
  local k = item.capture
  if k == 0 or k > m.level or m.stop[k] == OPEN then
    error("invalid capture index", 0)
  end
  if m.stop[k] == POSITION then return end
  local before = sub(m.text, m.first[k], m.stop[k] - 1)
  if sub(m.text, at, at + #before - 1) == before then return at + #before end
end

-- The items from i on, from `at` on: where the match ends, or nil.
function attempt(m, i, at)
  local items, text = m.items, m.text
  for k = i, #items do
    local item = items[k]
    local kind = item.kind
    if kind == "one" and item.many then
      return repeated(m, item, k, at)
    elseif kind == "one" then
      if not item.set[byte(text, at)] then return end
      at = at + 1
    elseif kind == "open" or kind == "close" then
      return capture(m, kind, item, k, at)
    elseif kind == "end" then
      if at <= #text then return end
    elseif kind == "frontier" then
      if item.set[byte(text, at - 1) or 0] or not item.set[byte(text, at) or 0] then return end
    else
      at = (kind == "balance" and balance_end(text, item, at))
        or (kind == "back" and back_end(m, item, at))
      if not at then return end
    end
  end
  return at
end

-- A match that begins at `at`; where it ends, or nil.
local function match_at(m, at)
  m.level = 0
  return attempt(m, 1, at)
end

-- The captures of a match, as values; all of it without any, when `whole`.
local function captures(m, from, last, whole)
  local values = {}
  for k = 1, m.level do
    local stop = m.stop[k]
    if stop == OPEN then error("unfinished capture", 0) end
    values[k] = stop == POSITION and m.first[k] or sub(m.text, m.first[k], stop - 1)
  end
  if m.level == 0 and whole then
    values[1] = sub(m.text, from, last - 1)
  end
  return values
end

-- Repetitions, and what else may take steps, at most: without reading the pattern.
local function count_parts(pattern)
  local _, many = gsub(pattern, "[*+?-]", "")
  local _, others = gsub(pattern, "%%[b%d]", "")
  return many + others
end

-- The search for a pattern in a text; nil when the string library ends it soon.
local function search(text, pattern, anchors)
  if type(text) ~= "string" or type(pattern) ~= "string"
    or (count_parts(pattern) + 1) * log(#text + 1) / log(2) <= patterns.soon then
    return
  end
  local anchored = anchors and byte(pattern) == 94 -- '^'
  local items = read_pattern(pattern, anchored and 2 or 1)
  if bits_of(items, #text, anchored) <= patterns.soon then
    return
  end
  for i = 1, #items do
    if items[i].text then
      read_set(items[i])
    end
  end
  return { items = items, text = text, anchored = anchored, first = {}, stop = {}, level = 0 }
end

-- The first match from `at` on: where it begins and ends.
local function first_match(m, at)
  for from = at, m.anchored and at or #m.text + 1 do
    local last = match_at(m, from)
    if last then return from, last end
  end
end

local function start_of(text, init)
  init = init == nil and 1 or floor(tonumber(init) or 1)
  if init < 0 then
    init = #text + init + 1
  end
  return init < 1 and 1 or init > #text + 1 and #text + 1 or init
end

-- The functions ------------------------------------------------------------------

function patterns.find(text, pattern, init, plain)
  text, pattern = text_of(text), text_of(pattern)
  local m = not plain and search(text, pattern, true)
  if not m then
    return find(text, pattern, init, plain)
  end
  local from, last = first_match(m, start_of(text, init))
  if from then
    return from, last - 1, unpack(captures(m, from, last, false))
  end
end

function patterns.match(text, pattern, init)
  text, pattern = text_of(text), text_of(pattern)
  local m = search(text, pattern, true)
  if not m then
    return match(text, pattern, init)
  end
  local from, last = first_match(m, start_of(text, init))
  if from then
    return unpack(captures(m, from, last, true))
  end
end

function patterns.gmatch(text, pattern)
  text, pattern = text_of(text), text_of(pattern)
  local m, at = search(text, pattern, false), 1
  if not m then
    return gmatch(text, pattern)
  end
  return function()
    local from, last = first_match(m, at)
    if not from then
      at = #text + 2
      return
    end
    at = last == from and last + 1 or last
    return unpack(captures(m, from, last, true))
  end
end

-- What takes the place of a match.
local function replacement(m, with, kind, from, last)
  local found = captures(m, from, last, true)
  local value
  if kind == "table" then
    value = with[found[1]]
  elseif kind == "function" then
    value = with(unpack(found))
  else
    return (gsub(with, "%%(.)", function(c)
      if c == "0" then return sub(m.text, from, last - 1) end
      local k = match(c, "%d")
      if k and found[tonumber(k)] == nil then error("invalid capture index", 0) end
      return k and tostring(found[tonumber(k)]) or c
    end))
  end
  if not value then
    return sub(m.text, from, last - 1)
  elseif type(value) ~= "string" and type(value) ~= "number" then
    error(format("invalid replacement value (a %s)", type(value)), 0)
  end
  return value
end

function patterns.gsub(text, pattern, with, most)
  text, pattern = text_of(text), text_of(pattern)
  local m = search(text, pattern, true)
  local kind = type(with)
  if not m or not (kind == "string" or kind == "number" or kind == "table"
    or kind == "function") then
    return gsub(text, pattern, with, most)
  end
  most = most == nil and #text + 1 or tonumber(most) or 0
  with = text_of(with)
  local parts, at, count = {}, 1, 0
  while count < most do
    local last = match_at(m, at)
    if last then
      count = count + 1
      parts[#parts + 1] = replacement(m, with, kind, at, last)
    end
    if last and last > at then
      at = last
    elseif at <= #text then
      parts[#parts + 1] = sub(text, at, at)
      at = at + 1
    else
      break
    end
    if m.anchored then break end
  end
  parts[#parts + 1] = sub(text, at)
  return concat(parts), count
end

return patterns
