-- Ranks of which one fails at a random moment: the others end in time, name it and
-- the line of their last collective, and no process is left.
-- CGRAPHLUA_RANKS_FAILURES=50 asks for as many of each kind and number of ranks.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local support = dofile(here .. "/../support/ranks.lua")

local COUNT = tonumber(os.getenv "CGRAPHLUA_RANKS_FAILURES")
local SEED = tonumber(os.getenv "CGRAPHLUA_RANKS_SEED") or 1
local SECONDS = 20 -- starts, the second that a rank waits, and launchers' own ends

local line = "ranks:all_reduce at %S*fails.lua:20"
local waits = "has waited 1 s for"
local late = waits .. " .*rank R, whose last collective was " .. line
local over = late .. " %(its script has ended%)"
local check = "CGRAPHLUA_RANKS_CHECK=1"
local watch = "CGRAPHLUA_RANKS_WATCH=1"

-- By what the rank R does: what each of the others says.  A rank that waits for
-- R may be told by one that has waited longer.
local kinds = {
  killed = "rank R %(process %d+%) has died; the last collective here: " .. line,
  error = "rank R ended: it failed; the last collective here: " .. line,
  exit = "rank R ended: it failed; the last collective here: " .. line,
  interrupt = "the launcher ends this rank; the last collective here: " .. line,
  wait_asleep = late,
  wait_stopped = line .. " " .. waits .. " .*rank R, which does not answer",
  wait_exit = over,
  wait_exit_open = late,
  wait_over = over,
  wait_missing = late,
  wait_graph = "rank R ended: " .. line .. " " .. waits .. " rank %d",
  wait_pair = "ranks:%a+_?%a* at %S*fails.lua:%d+ " .. waits .. " rank %d",
}
-- What ranks that compare their calls say, each for itself.
local differ = "issues ranks:%S+ .*at %S*fails.lua:%d+, and rank %d issues ranks:%S+ .*at %S*fails"
local compared = { shape = differ, type = differ, kind = differ, wait_graph = differ }

-- Each rank's own lines.
local function lines_of(text, rank)
  local mine = {}
  for said in text:gmatch("%[1," .. rank .. "%]<stderr>:([^\n]*)") do mine[#mine + 1] = said end
  return table.concat(mine, "\n")
end

local function fail(n, word, said, environment)
  local rank, ms = math.random(0, n - 1), math.random(60)
  local began = os.time()
  local name = os.tmpname() -- an argument that no other process has
  local words = ("fails.lua %s %d %d %s"):format(word, rank, ms, name)
  local status, text = support.run(n, words, environment, SECONDS)
  os.remove(name)
  local gone = device.program.shell("for i in $(seq 50); do grep -lsa '[/]" .. name:sub(2) ..
    "' /proc/[0-9]*/cmdline || exit 0; sleep 0.1; done; exit 1")
  assert(gone == 0, "a process is left after: " .. text)
  local what = "%s, rank %d of %d after %d ms, status %d:\n%s"
  text = what:format(word, rank, n, ms, status, text)
  assert(status ~= 0 and status ~= 124 and os.time() - began < SECONDS, text)
  for other = 0, n - 1 do
    if other ~= rank then
      local heard, pattern = lines_of(text, other), said:gsub("R", rank)
      assert(heard:find(pattern), ("%d does not say %q: %s"):format(other, pattern, text))
    end
  end
end

describe("ranks that fail", function()
  teardown(device.nothing_alive)
  local lacks = support.lacks()
  if lacks then
    it("end the others", function() pending(lacks) end)
    return
  end
  math.randomseed(SEED)

  local function each(list, environment, what)
    local words = {}
    for word in pairs(list) do words[#words + 1] = word end
    table.sort(words)
    for i, word in ipairs(words) do
      it(("%s: %s"):format(what, word), function()
        for round = 1, COUNT or 1 do
          for n = 2, math.min(4, support.most) do
            if COUNT or support.on_gpu or n == 2 + (i + round) % 3 then
              fail(n, word, list[word], environment)
            end
          end
        end
      end)
    end
  end
  -- With sanitizers a wait is judged in one of two ways.
  local named = {}
  for word, said in pairs(kinds) do
    named[word] = not (support.sanitized and word:find "^wait_") and said or nil
  end
  each(named, "", "end the others, which name the rank and the line")
  each(compared, check, "are refused where calls are compared")
  -- As on GPUs, whose collectives the host does not see.
  local waiting = {}
  for word, said in pairs(kinds) do waiting[word] = word:find "^wait_" and said end
  if not support.on_gpu then each(waiting, watch, "end the others by what ranks have issued") end
end)
