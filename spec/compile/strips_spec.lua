-- Kernels without barriers on the host device: in strips of 32 threads they do
-- what they do thread by thread.
-- CGRAPHLUA_KERNELS=10000 sets how many random kernels are tried (100).
local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local random_kernels = dofile(here .. "/../support/kernels.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then return end

ffi.cdef [[
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
]]

local function module_as(form, source)
  if form then ffi.C.setenv("CGRAPHLUA_HOST_KERNELS", form, 1) end
  local ok, result = pcall(cg.module, { source = source, file = "k.cu", line = 1 })
  ffi.C.unsetenv "CGRAPHLUA_HOST_KERNELS"
  if not ok then error(result, 0) end
  return result
end

describe("a kernel without barriers", function()
  teardown(device.nothing_alive)

  it("gives in strips what it gives thread by thread, for random kernels", function()
    local shapes = { { 1, 64 }, { { 3, 2 }, { 37, 3 } }, { { 2, 2, 2 }, { 8, 5 } }, { 5, 20 },
      { { 1, 3 }, 250 } }
    local many = tonumber(os.getenv "CGRAPHLUA_KERNELS") or 100
    local input, values, strips = cg.zeros("uint32", 64), {}, 0
    for i = 1, 64 do values[i] = i * 2654435761 % 4294967296 end
    input:upload(values)
    for first = 1, many, 25 do
      local text = { random_kernels.plain_prelude }
      for seed = first, first + 24 do
        text[#text + 1] = random_kernels.plain_kernel("run" .. seed, seed)
      end
      text = table.concat(text, "\n")
      local modules = { module_as(nil, text), module_as("plain", text) }
      for seed = first, first + 24 do
        local name, got = "run" .. seed, {}
        strips = strips + (modules[1]:kernel(name):form() == "strips" and 1 or 0)
        assert.equal("loop", (modules[2]:kernel(name):form()))
        for i, shape in ipairs(shapes) do
          for m, module in ipairs(modules) do
            local out = cg.zeros("uint32", 16 + 4 * 2000)
            module:kernel(name):launch(shape[1], shape[2], out, input, 5 + i)
            got[m] = out:download()
          end
          for j = 1, #got[1] do
            if got[1][j] ~= got[2][j] then
              error(("%s, shape %d: word %d is %d in strips, %d thread by thread"):format(name, i,
                j, got[1][j], got[2][j]), 0)
            end
          end
        end
      end
    end
    assert.is_true(strips >= 0.4 * many, strips .. " of " .. many .. " run in strips")
  end)
end)
