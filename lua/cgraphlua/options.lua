--- The command line of a script.
-- local opt = options.read({
--   usage = "heat.lua [image.png] [options]",
--   about = "Heat spreading through a plate.",
--   arguments = { "image" },                  -- what may stand without a name
--   { "size", "N", 512, "cells on a side", min = 8, max = 4096 },
--   { "out", "OUT", "heat.png", "the picture to write" },
--   { "verify", nil, nil, "compare with what is known" },
-- }, arg)
-- An option's second word says what it takes: "N" a whole number and "X" any
-- number (from min to max), nothing a switch, any other word a text; OUT is a
-- file to write, whose folder must be there.  Values follow their option or
-- are joined to it: --size 64, --size=64.  --help and --device are in every
-- script.

local core = require "cgraphlua.core"

local options = {}

local common = {
  { "device", "DEVICE", nil, "host, cuda or cuda:N" },
  { "help", nil, nil, "this text" },
}

-- Raises at the line of the script that gave the options, or the words.
local function check(spec, words)
  if type(spec) ~= "table" or type(spec.usage) ~= "string" then
    error("options: a table with a usage (a text) expected, got " ..
      (type(spec) == "table" and "one without" or type(spec)), 3)
  end
  for i, entry in ipairs(spec) do
    if type(entry) ~= "table" or type(entry[1]) ~= "string" or type(entry[4]) ~= "string" then
      error(("options: option %d must be { name, what it takes or nil, default, help }")
        :format(i), 3)
    end
  end
  if type(words) ~= "table" then
    error("options: a list of words expected, as arg is, got " .. type(words), 3)
  end
  for i = 1, #words do
    if type(words[i]) ~= "string" then
      error(("options: word %d must be a text, got %s"):format(i, tostring(words[i])), 3)
    end
  end
end

local function all_options(spec)
  local list = {}
  for _, entry in ipairs(spec) do
    list[#list + 1] = entry
  end
  for _, entry in ipairs(common) do
    list[#list + 1] = entry
  end
  return list
end

local function find_option(spec, name)
  for _, entry in ipairs(all_options(spec)) do
    if entry[1] == name then
      return entry
    end
  end
  return nil
end

-- "--size" for "--sise": what a message says after an unknown option.
local function nearest_option(spec, word)
  local words = {}
  for _, entry in ipairs(all_options(spec)) do
    words["--" .. entry[1]] = true
  end
  return core.nearest(word, words)
end

local function range_text(entry)
  if entry.min and entry.max then
    return string.format(" from %.14g to %.14g", entry.min, entry.max)
  elseif entry.min then
    return string.format(" of at least %.14g", entry.min)
  elseif entry.max then
    return string.format(" of at most %.14g", entry.max)
  end
  return ""
end

-- The value that `text` means for an option; nil and what is wrong.
local function option_value(entry, text)
  local kind = entry[2]
  if kind ~= "N" and kind ~= "X" then
    if text == "" then
      return nil, string.format("--%s needs a value (%s), got an empty one", entry[1], kind)
    elseif kind == "OUT" then
      local folder = text:match "^.*/" or "./"
      local there = io.open(folder .. ".")
      if not there then
        return nil, string.format("--%s: there is no folder '%s' to write in", entry[1], folder)
      end
      there:close()
      there = io.open(text .. "/.")
      if there then
        there:close()
        return nil, string.format("--%s: '%s' is a folder", entry[1], text)
      end
      -- Before the work is done, not after it.
      local is_picture = type(entry[3]) == "string" and entry[3]:lower():find "%.png$"
      local wrong = is_picture and core.png.name_defect(text)
      if wrong then
        return nil, string.format("--%s: %s", entry[1], wrong)
      end
    end
    return text
  end
  local x = tonumber(text)
  local good = x and x == x and math.abs(x) < math.huge
    and x >= (entry.min or -math.huge) and x <= (entry.max or math.huge)
    and (kind == "X" or x % 1 == 0)
  if not good then
    return nil, string.format("--%s needs a %s%s, got '%s'", entry[1],
      kind == "N" and "whole number" or "number", range_text(entry), text)
  end
  return x
end

--- The usage text, one line for each option.
function options.usage(spec)
  check(spec, {})
  local lines = { "usage: cgraphlua " .. spec.usage }
  if spec.about then
    lines[#lines + 1] = spec.about
  end
  for _, entry in ipairs(all_options(spec)) do
    local name = "--" .. entry[1] .. (entry[2] and " " .. entry[2] or "")
    local default = entry[3] ~= nil and string.format(" (%s)", tostring(entry[3])) or ""
    lines[#lines + 1] = string.format("  %-16s %s%s", name, entry[4], default)
  end
  return table.concat(lines, "\n")
end

--- Reads a list of words.  Returns a table by option and argument name, with
-- the defaults of what was not given; or nil and what is wrong.
function options.parse(spec, words)
  check(spec, words)
  local opt, given, places = {}, {}, spec.arguments or {}
  for _, entry in ipairs(all_options(spec)) do
    opt[entry[1]] = entry[3]
  end
  local i, place, only_arguments = 1, 0, false
  while i <= #words do
    local word = words[i]
    local name, joined = word:match "^%-%-([^=]+)=?(.*)$"
    if word == "--" and not only_arguments then
      only_arguments = true
    elseif name and not only_arguments then
      local entry = find_option(spec, name)
      if not entry then
        return nil, "unknown option --" .. name .. nearest_option(spec, "--" .. name)
      elseif given[name] then
        return nil, string.format("--%s is given twice", name)
      end
      given[name] = true
      local has_value = word:find("=", 1, true) ~= nil
      if not entry[2] then
        if has_value then
          return nil, string.format("--%s takes no value", name)
        end
        opt[name] = true
      else
        if not has_value then
          i = i + 1
          joined = words[i]
        end
        if not joined then
          return nil, string.format("--%s needs a value (%s)", name, entry[2])
        end
        local wrong
        opt[name], wrong = option_value(entry, joined)
        if wrong then
          return nil, wrong
        end
      end
    elseif word:find "^%-." and not only_arguments then
      return nil, string.format("unknown option %s", word)
    else
      place = place + 1
      if not places[place] then
        return nil, string.format("'%s' is one argument too many", word)
      end
      opt[places[place]] = word
    end
    i = i + 1
  end
  return opt
end

--- For a script's first lines: reads its words, and ends the program after
-- --help (status 0), or with the usage and then the reason after a wrong word
-- (status 1).
-- --device becomes the current device.
function options.read(spec, words)
  check(spec, words)
  local opt, wrong = options.parse(spec, words)
  if not opt then
    io.stderr:write(options.usage(spec), "\n", (spec.usage:match "^%S+"), ": ", wrong, "\n")
    os.exit(1)
  end
  if opt.help then
    print(options.usage(spec))
    os.exit(0)
  end
  if opt.device then
    core.hide() -- a failure names the script's line
    require("cgraphlua").set_device(opt.device)
  end
  return opt
end

return options
