-- Runs the programs of scripts/ on small problems.  Load with dofile.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/program.lua")

local M = { program = program }

M.folder_of_scripts = here .. "/../../scripts"

--- Runs scripts/<name>.lua on the specs' device (the host device, unless
-- $CGRAPHLUA_DEVICE names another); returns exit status, output, errors.
function M.run(name, args)
  local words = { M.folder_of_scripts .. "/" .. name .. ".lua" }
  for _, word in ipairs(args) do
    words[#words + 1] = tostring(word)
  end
  local device = os.getenv "CGRAPHLUA_DEVICE" or "host"
  return program.run(words, { env = "CGRAPHLUA_DEVICE=" .. program.quote(device) })
end

--- Runs it and wants success without a word on standard error.
function M.output(name, args)
  local status, out, err = M.run(name, args)
  if status ~= 0 or err ~= "" then
    error(string.format("%s.lua ended with status %d\n%s%s", name, status, out, err), 2)
  end
  return out
end

--- What the tests of scripts/<name>.lua share: a function that runs it as
-- M.output does, to a picture "out.png", and program.own_folder's.
function M.tests(name, before_each, after_each)
  local at = program.own_folder(before_each, after_each)
  return function(...)
    return M.output(name, { "--out", at "out.png", ... })
  end, at
end

--- Runs it and wants it to fail; returns what it said.
function M.complaint(name, args)
  local status, out, err = M.run(name, args)
  if status ~= 1 then
    error(string.format("%s.lua ended with status %d\n%s%s", name, status, out, err), 2)
  end
  return err
end

--- The number that a pattern captures in a text.
function M.number(text, pattern)
  local word = text:match(pattern)
  if not tonumber(word) then
    error("no number for '" .. pattern .. "' in:\n" .. text, 2)
  end
  return tonumber(word)
end

return M
