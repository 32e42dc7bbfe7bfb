-- A program may have a locale whose numbers have a decimal comma; what is written
-- and read keeps the point.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local program = device.program

describe("a locale with a decimal comma", function()
  local at = program.own_folder(before_each, after_each)

  -- Runs a chunk under it; true when this machine has such a locale.
  local function under(chunk, environment)
    if program.shell("test -e /usr/share/i18n/locales/de_DE || exit 9\n"
        .. "localedef -c -i de_DE -f UTF-8 " .. at "de_DE") > 1 then
      return false
    end
    return true, device.child([[
      cg.on_log(nil)
      assert(os.setlocale "de_DE")
      local ffi = require "ffi"
      ffi.cdef "int snprintf(char *, size_t, const char *, ...);"
      local text = ffi.new "char[10]"
      ffi.C.snprintf(text, 10, "%.1f", 0.5)
      assert(ffi.string(text) == "0,5")
    ]] .. chunk, "LOCPATH=" .. at() .. " " .. (environment or ""))
  end

  local function prints(expected, chunk, environment)
    local there, status, out, err = under(chunk, environment)
    if not there then pending "the source of the locale de_DE is not here (Debian: locales)" end
    assert.same({ 0, expected, "" }, { status, out, err })
  end

  it("has no say in messages", function()
    prints("got 1.5\nis 0.5\n0.25 to 0.125\nkey 1.5\n", [[
      local function said(pattern, fn, ...)
        print(tostring(select(2, pcall(fn, ...))):match(pattern))
      end
      local k = cg.kernel(source, "add")
      local x = cg.zeros("float", 1)
      said("got [%d.,]+", cg.buffer, "float", 1.5)
      said("is 0[.,]5", k.launch, k, 1, 1, x, 1, 0.5)
      said("[%d.,]+ to [%d.,]+", x.uniform, x, 0.25, 0.125)
      local g = cg.capture(function() k:launch(1, 1, x, 1, 1) end)
      said("key [%d.,]+", g.set_params, g, 1, { [1.5] = 1 })]])
  end)

  it("has no say in options, kernels and settings", function()
    prints("1.5\t0.5\t12.0\n", [[
      local options = require "cgraphlua.options"
      local opt = options.parse({ usage = "locale", { "x", "X", nil, "" } }, { "--x=1.5" })
      local k = cg.kernel [=[extern "C" __global__ void k(float *x) { x[0] = 0.5f; }]=]
      local x = cg.zeros("float", 1)
      k:launch(1, 1, x)
      print(opt.x, x:download()[1], ("%.1f"):format(cg.device().memory / 2^20))]],
      "CGRAPHLUA_HOST_MEMORY=0.01171875G CGRAPHLUA_CACHE=off CGRAPHLUA_DEVICE=host")
  end)

  it("has no say in pictures and reports", function()
    prints("true\ttrue\tnil\n", ([[
      local x = cg.zeros("float", 5000)
      local g = cg.capture(function()
        cg.mark_kernels({ label = "a", part = 0.5 }, function() x:fill(1) end)
      end, { annotations = true })
      local function text(path) return io.open(path):read "*a" end
      g:debug_dump("%s")
      cg.memory_history(true)
      local y = cg.zeros("float", 300000)
      cg.memory_report("%s")
      print(text("%s"):find("part=0.5", 1, true) ~= nil, text("%s"):find "held by buffers" ~= nil,
        text("%s"):find "%%d,%%d+ MiB")
    ]]):format(at "g.dot", at "r.html", at "g.dot", at "r.html", at "r.html"))
  end)
end)
