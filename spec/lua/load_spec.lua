-- The shared libraries in programs that open them late: a host that set little
-- thread-local storage aside, and a process that has a copy already.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")

local folder = (os.getenv "PWD" or ".") .. "/.libs"
local core, module = folder .. "/libcgraphlua.so", folder .. "/libcgraphlua-lua.so"
local found = io.open(core)
if found then found:close() end
local test = found and it or function(name)
  pending(name .. " (this build has no shared library)")
end

--- The bytes of static thread-local storage that a library takes.
local function static_bytes(path)
  local status, out = program.shell("readelf -lW " .. program.quote(path))
  assert.equal(0, status)
  return tonumber(out:match "%s+TLS%s+%S+%s+%S+%s+%S+%s+%S+%s+(0x%x+)" or 0)
end

describe("the shared library", function()
  local at = program.own_folder(before_each, after_each)

  test("takes less than 64 bytes of static thread-local storage, with the module", function()
    local bytes = static_bytes(core) + static_bytes(module)
    assert.is_true(bytes < 64, bytes .. " bytes")
  end)

  test("opens several times where the loader set nothing aside for it, and each copy works",
    function()
      local copies = {}
      for i = 1, 4 do
        copies[i] = at("copy" .. i .. ".so")
        program.write(copies[i], program.read(core))
      end
      program.write(at "script.lua", [=[
        local ffi = require "ffi"
        ffi.cdef "int cgl_context_open(const char *, void **); int cgl_context_synchronize(void *);"
        local sum = 0
        for i = 2, #arg do
          local copy, context = ffi.load(arg[i]), ffi.new "void *[1]"
          sum = sum + copy.cgl_context_open("host", context)
          sum = sum + copy.cgl_context_synchronize(context[0])
        end
        print(sum)
        local cg = assert(package.loadlib(arg[1], "luaopen_cgraphlua_core"))()
        local x = cg.zeros("float", 4)
        local g = cg.capture(function() x:fill(7) end)
        g:replay(2)
        print(x:download()[4])]=])
      local path = folder .. ":" .. (os.getenv "LD_LIBRARY_PATH" or "")
      local status, out, err = program.run({ at "script.lua", module, unpack(copies) }, {
        env = "CGRAPHLUA_DEVICE=host GLIBC_TUNABLES=glibc.rtld.optional_static_tls=0 "
          .. "LD_LIBRARY_PATH=" .. program.quote(path) })
      assert.equal("", err)
      assert.equal("0\n7\n", out)
      assert.equal(0, status)
    end)
end)
