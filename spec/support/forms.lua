--- Kernels of the host device in two forms, for specs that say that both give the same.
-- CGRAPHLUA_RANDOM_KERNELS=10000 sets how many random kernels a spec tries, and is for
-- nights: then lists of kernels are compiled as a user's are, too.  5001-6000 tries
-- those of that number alone, so that several processes, or nights, share the work.
local cg = require "cgraphlua"
local ffi = require "ffi"

ffi.cdef [[
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
]]

local M = {}

local first_wanted, wanted = (os.getenv "CGRAPHLUA_RANDOM_KERNELS" or ""):match "^(%d-)%-?(%d+)$"
first_wanted, wanted = tonumber(first_wanted) or 1, tonumber(wanted)

--- How much lists of kernels are optimized.  The compiler needs most of a spec's time.
M.level = wanted and "-O3" or "-O0"

--- What fn returns or raises, with a variable of the environment set.
function M.with(variable, value, fn)
  local before = os.getenv(variable)
  ffi.C.setenv(variable, value, 1)
  local ok, result = pcall(fn)
  if before then ffi.C.setenv(variable, before, 1) else ffi.C.unsetenv(variable) end
  if not ok then error(result, 0) end
  return result
end

--- With a compiler that optimizes so much: with "-O0" it takes a tenth of the time.
function M.quickly(level, fn)
  local compiler = os.getenv "CGRAPHLUA_CXX"
  return M.with("CGRAPHLUA_CXX",
    (compiler and compiler ~= "" and compiler or "c++") .. " " .. level, fn)
end

--- The module of a source, or of a table for cg.module, in a form of the host
-- device; nil: as it chooses.
function M.module_as(form, source)
  if type(source) == "string" then source = { source = source, file = "k.cu", line = 1 } end
  local function make() return cg.module(source) end
  return form and M.with("CGRAPHLUA_HOST_KERNELS", form, make) or make()
end

--- A source's modules, as the host device chooses (or in the form `first`) and in the
-- form `second` ("fibers" if not given), compiled at a level (M.level if not given).
function M.both(source, second, level, first)
  return M.quickly(level or M.level, function()
    return { M.module_as(first, source), M.module_as(second or "fibers", source) }
  end)
end

--- n words of which no two are alike.
function M.numbers(n)
  local buffer, values = cg.zeros("uint32", n), {}
  for i = 1, n do values[i] = i * 2654435761 % 4294967296 end
  buffer:upload(values)
  return buffer
end

--- Fails where a kernel of two modules leaves other words in one than in the other;
-- `text` says what it does, and after the words come its further arguments.
function M.same(modules, name, grid, block, text, words, ...)
  local got = {}
  for i, module in ipairs(modules) do
    local out = cg.zeros("uint32", words)
    module:kernel(name):launch(grid, block, out, ...)
    got[i] = out:download()
  end
  for j = 1, words do
    if got[1][j] ~= got[2][j] then
      error(("%s, blocks of %s: word %d is %.0f in the first form, %.0f in the second: %s"):format(
        name, type(block) == "table" and table.concat(block, " x ") or block, j, got[1][j],
        got[2][j], text), 0)
    end
  end
end

--- 1 when the kernel has that form, else 0.  A text as loops that the compiler refuses
-- is a fault of who wrote the text.
function M.count(kernel, form)
  local is, why = kernel:form()
  assert(why ~= "the compiler does not take it as loops", why)
  return is == form and 1 or 0
end

--- Tries random kernels, `usual` of them: `make(name, seed, part)` gives the text of one,
-- and `prelude`, or `prelude(part)`, what those of a part share;
-- `try(modules, name, text)` fails where the two modules do not give the same, the first
-- as the host device chooses or in the form `as`, the second in the form `against`
-- ("fibers").  Fails when less than `least`, a share, have the form `form` ("loops").
-- The first ten, and at night all, are compiled as a user's kernels are, the others do
-- without optimizations.  A part does not depend on how many there are: another build's tests
-- find it compiled.
function M.random(t)
  local first, last_of_all, form = first_wanted, wanted or t.usual, t.form or "loops"
  local many, found = last_of_all - first + 1, 0
  while first <= last_of_all do
    local part = math.max(math.ceil((first - 10) / 30) + 1, 1)
    local last = math.min(30 * part - 20, last_of_all)
    local texts = {}
    for seed = first, last do texts[#texts + 1] = t.make("random" .. seed, seed, part) end
    local prelude = type(t.prelude) == "function" and t.prelude(part) or t.prelude
    local modules = M.both(prelude .. table.concat(texts, "\n"), t.against,
      part == 1 and "-O3" or M.level, t.as)
    for seed = first, last do
      local name = "random" .. seed
      found = found + M.count(modules[1]:kernel(name), form)
      if not t.against then assert(modules[2]:kernel(name):form() == "fibers") end
      t.try(modules, name, texts[seed - first + 1])
    end
    first = last + 1
  end
  -- Of a few, three standard deviations are chance.
  local chance = first_wanted > 1 and 3 * math.sqrt(t.least * (1 - t.least) * many) or 0
  assert(found >= t.least * many - chance, ("%d of %d are %s"):format(found, many, form))
end

return M
