-- The shared library in programs that open it late: a host that set little
-- thread-local storage aside, and a process that has a copy already.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")

local library = (os.getenv "PWD" or ".") .. "/.libs/libcgraphlua.so"
local found = io.open(library)
if found then found:close() end
local test = found and it or function(name)
  pending(name .. " (this build has no shared library)")
end

describe("the shared library", function()
  local at = program.own_folder(before_each, after_each)

  test("takes less than 64 bytes of static thread-local storage", function()
    local status, out = program.shell("readelf -lW " .. program.quote(library))
    assert.equal(0, status)
    local bytes = out:match "%s+TLS%s+%S+%s+%S+%s+%S+%s+%S+%s+(0x%x+)"
    assert.is_true(bytes == nil or tonumber(bytes) < 64, bytes)
  end)

  test("opens several times where the loader set nothing aside for it, and each copy works",
    function()
      local copies = {}
      for i = 1, 4 do
        copies[i] = at("copy" .. i .. ".so")
        program.write(copies[i], program.read(library))
      end
      program.write(at "script.lua", [=[
        local sum = 0
        for i, path in ipairs(arg) do
          local cg = assert(package.loadlib(path, "luaopen_cgraphlua_core"))()
          local x = cg.zeros("float", 4)
          local g = cg.capture(function() x:fill(i) end)
          g:replay(2)
          sum = sum + x:download()[4]
        end
        print(sum)]=])
      local status, out, err = program.run({ at "script.lua", unpack(copies) }, {
        env = "CGRAPHLUA_DEVICE=host GLIBC_TUNABLES=glibc.rtld.optional_static_tls=0" })
      assert.equal("", err)
      assert.equal("10\n", out)
      assert.equal(0, status)
    end)
end)
