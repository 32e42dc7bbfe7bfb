-- Runs scripts of spec/ranks on several ranks, started by Open MPI.
-- Load with dofile.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/program.lua")
local quote = program.quote

local M = {}

local on_gpu = cg.device().device ~= "host"
M.on_gpu = on_gpu

--- As many ranks as tests may start: one for each GPU, or more than there are cores.
M.most = on_gpu and #cg.devices() - 1 or 8

-- Each rank takes the GPU of its index.  Ranks of a sanitized build: MPI never frees
-- what it keeps.
local environment = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " ..
  "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 " ..
  (on_gpu and "env -u CGRAPHLUA_DEVICE " or "env CGRAPHLUA_DEVICE=host ")

--- Why there are no ranks here, or nil.
function M.lacks()
  if M.most < 2 then return "ranks on GPUs need two of them" end
  if os.execute "command -v mpirun >/dev/null 2>&1" ~= 0 then
    return "there is no mpirun: install openmpi-bin"
  end
  local status = program.shell(environment .. quote(program.path) .. " --ranks 2 -e " ..
    quote "require('cgraphlua').ranks()" .. " 2>&1 | grep -q 'cannot be opened'")
  return status == 0 and "cgraphlua was built without MPI: install libopenmpi-dev" or nil
end

--- Whether this is a sanitizer's build, whose tests repeat those of a plain one.
M.sanitized = (os.getenv "CGRAPHLUA_SANITIZER" or "no") ~= "no"

--- Those of the numbers of ranks that tests may start; three at most with sanitizers.
function M.possible(numbers)
  local list, most = {}, M.sanitized and math.min(3, M.most) or M.most
  for _, n in ipairs(numbers) do
    if n <= most then list[#list + 1] = n end
  end
  return list
end

--- Runs a script of spec/ranks, with its arguments, on n ranks, at most so many
-- seconds (60); its status, 124 when it was ended, and all that the ranks said.
function M.run(n, words, env, seconds)
  local line = "%s %s timeout -k 1 %d %s --ranks %d %s/../ranks/%s"
  local status, out, err = program.shell(line:format(environment, env or "", seconds or 60,
    quote(program.path), n, quote(here), words))
  return status, out .. err
end

return M
