local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local program = dofile(here .. "/../support/program.lua")
local run = program.run

describe("the command line", function()
  local at = program.own_folder(before_each, after_each)

  local function script(text)
    local path = at "script.lua"
    program.write(path, text)
    return path
  end

  it("runs a script with its arguments", function()
    local path = script "print(#arg, arg[0], arg[1], select('#', ...), ...)"
    local status, out, err = run { path, "a b", "-x", "" }
    assert.are.equal("3\t" .. path .. "\ta b\t3\ta b\t-x\t\n", out)
    assert.are.equal("", err)
    assert.are.equal(0, status)
  end)

  it("keeps what came before the script at negative indices", function()
    local path = script "print(arg[-1], arg[-2], arg[-3] ~= nil, arg[-4])"
    local _, out = run { "-e", "x = 1", path }
    assert.are.equal("x = 1\t-e\ttrue\tnil\n", out)
  end)

  it("runs chunks and modules in their order", function()
    program.write(at "mine.lua", "print('mine', x) x = 2")
    local _, out = run({ "-ex = 1", "-lmine", "-e", "print(x)" },
      { env = "LUA_PATH=" .. program.quote(at "?.lua;;") })
    assert.are.equal("mine\t1\n2\n", out)
  end)

  it("runs standard input for - and for a pipe", function()
    local _, out = run({ "-", "one" }, { input = "print(arg[0], ...)" })
    assert.are.equal("-\tone\n", out)
    _, out = run({}, { input = "print 'piped'" })
    assert.are.equal("piped\n", out)
  end)

  it("takes what follows -- as a script, whatever its name", function()
    local _, out = program.shell(string.format("cd %s && echo 'print(7)' > -v && %s -- -v", at(),
      program.quote(program.path)))
    assert.are.equal("7\n", out)
  end)

  it("names an unknown option and shows the usage", function()
    for _, option in ipairs { "--frobnicate", "-Z", "-vv", "--devices=host" } do
      local status, out, err = run { option, "script.lua" }
      assert.are.equal(1, status)
      assert.are.equal("", out)
      assert.is_truthy(err:find("cgraphlua: unknown option '" .. option .. "'", 1, true))
      assert.is_truthy(err:find("usage: cgraphlua", 1, true))
    end
  end)

  it("does by -e what LuaJIT's -j and -O do", function()
    local show = "print(jit.status() and 'on' or 'off', (select('#', jit.status())))"
    local _, plain = run { "-e", show }
    local status, out = run { "-e", "jit.off()", "-e", show }
    assert.are.equal(0, status)
    assert.are.equal(plain:gsub("on", "off"), out)
    status, out = run { "-e", "require('jit.opt').start(0)", "-e", show }
    assert.are.equal(0, status)
    assert.is_true(tonumber(out:match "on\t(%d+)") < tonumber(plain:match "on\t(%d+)"))
  end)

  it("names an option without its value", function()
    for _, option in ipairs { "-e", "-l", "--device", "--ranks", "--compile", "--out", "--arch",
                               "--inspect" } do
      local status, _, err = run { option }
      assert.are.equal(1, status)
      assert.is_truthy(err:find("a value is missing after '" .. option .. "'", 1, true))
    end
  end)

  it("gives the script of --compile its name and its own arguments", function()
    local path = script [=[
      print(arg[0], arg[1], arg[2], arg[3], ...)
      require "cgraphlua".module 'extern "C" __global__ void f() {}'
    ]=]
    for _, words in ipairs {
      { "--compile", path, "--out", at "kernels", "a b", "-x" },
      { "--out=" .. at "kernels", "--compile=" .. path, "--", "a b", "-x" },
      { "--device", "host", "--compile", path, "--out", at "kernels", "--", "a b", "-x" },
    } do
      local status, out, err = run(words, { env = "CGRAPHLUA_DEVICE=host" })
      assert.are.equal(path .. "\ta b\t-x\tnil\ta b\t-x\n", out)
      assert.is_truthy(err:find("wrote %d+ compiled images to '" .. at "kernels" .. "'"))
      assert.are.equal(0, status)
    end
  end)

  it("says what --compile needs, before the script runs", function()
    local path = script "print 'it ran'"
    for words, message in pairs {
      [{ "--compile", path }] = "the folder is missing: --compile needs '--out'",
      [{ "-i", "--compile", path, "--out", at "kernels" }] = "--compile does not take '-i'",
      [{ "--out", at "kernels", path }] = "only --compile takes '--out'",
      [{ "--arch", "sm_90", path }] = "only --compile takes '--arch'",
      [{ "--compile", path, "--out", at "kernels", "--arch", "gtx" }] =
        "--arch: 'gtx' is no architecture; sm_90 is one, and compute_90 for PTX",
      [{ "--compile", path, "--out", at "kernels", "--arch", "sm_90a" }] = "'sm_90a' is no",
      [{ "--compile", path, "--out", at "kernels", "--arch", "sm_3" }] = "'sm_3' is no",
    } do
      local status, out, err = run(words)
      assert.are.equal(1, status)
      assert.are.equal("", out)
      assert.is_truthy(err:find(message, 1, true), err)
    end
    -- A library in NVRTC's place that is none.
    local quote = program.quote
    assert.are.equal(0, (program.shell(([[mkdir -p %s &&
      ln -s "$(ldd %s | awk '/libm[.]so/ {print $3}')" %s]]):format(quote(at "cuda/lib64"),
      quote(program.path), quote(at "cuda/lib64/libnvrtc.so.13")))))
    local status, out, err = run({ "--compile", path, "--out", at "kernels", "--arch", "sm_90" },
      { env = "CUDA_HOME=" .. program.quote(at "cuda") })
    assert.are.equal(1, status)
    assert.are.equal("", out)
    assert.is_truthy(err:find("--arch: the NVRTC library lacks nvrtcVersion", 1, true), err)
  end)

  it("lists and replays files of graphs", function()
    local path, bytes = at "graph.cgl", at "bytes"
    local status, out, err = run { "-e", ([=[
      local cg = require "cgraphlua"
      local add = cg.kernel 'extern "C" __global__ void add(int *x, int *y) { *x += 1; *y = *x; }'
      local x, y = cg.zeros("int32", 1), cg.zeros("int32", 1)
      local g = cg.capture(function() add:launch(1, 1, x, y) end)
      g:save(%q, { inputs = { x = x }, outputs = { y = y } })
      cg.save(%q, { a = g, b = g })
    ]=]):format(path, at "two.cgl") }
    assert.are.equal(0, status, out .. err)
    status, out = run { "--inspect", path }
    assert.are.equal(0, status)
    for _, text in ipairs { "graph '': 1 nodes", "kernel add at (command line):4",
                            "input x: 1 of int32", "output y: 1 of int32", "with source" } do
      assert.is_truthy(out:find(text, 1, true), out)
    end
    program.write(bytes, "\100\0\0\0")
    status, out, err = run { path, "3", "--in", "x=" .. bytes, "--out", "y=" .. bytes }
    assert.are.equal(0, status, out .. err)
    assert.are.equal("\103\0\0\0", program.read(bytes))
    assert.are.equal(0, (run { at "two.cgl", "--graph", "b" }))
    for words, why in pairs {
      [{ path, "--out", "z=" .. bytes }] = "the graph's outputs: y",
      [{ path, "--in", "x=" .. path }] = "the input 4",
      [{ path, "--in", "x=" .. at "" }] = at "" .. ": ",
      [{ path, "--out", "y=" .. at "none/y" }] = at "none/y" .. ": ",
      [{ path, "--graph", "q" }] = "one graph, without a name",
      [{ path, "many" }] = "usage:",
      [{ at "two.cgl" }] = "the file's graphs: a, b",
      [{ "--inspect", bytes }] = "no file of graphs",
    } do
      status, out, err = run(words)
      assert.are.equal(1, status, out)
      assert.is_truthy(err:find(why, 1, true), err)
    end
  end)

  it("sets the parameters of a file's graph", function()
    local path, bytes = at "params.cgl", at "bytes"
    local status, out, err = run { "-e", ([=[
      local cg = require "cgraphlua"
      local module = cg.module [[
        #define BOTH(name, type) extern "C" __global__ void name(type *x, type a) { *x = a; }
        BOTH(f1, float) BOTH(f8, double) BOTH(i8, long long) BOTH(u8, unsigned long long)
        BOTH(i1, signed char) BOTH(u1, unsigned char) BOTH(i2, short) BOTH(u2, unsigned short)
        BOTH(i4, int) BOTH(u4, unsigned) BOTH(b, bool)
        extern "C" __global__ void pair(float *x, float2 a) { x[0] = a.x; x[1] = a.y; }
        struct point { float2 at; int n; };
        struct many { float f; point p[2]; };
        extern "C" __global__ void whole(float *x, many s) {
          x[0] = s.f; x[1] = s.p[1].at.y; x[2] = s.p[1].n; x[3] = s.p[0].n;
        }
      ]]
      local outputs, all = {}, {}
      for name, type in pairs { f1 = "float", f8 = "double", i8 = "int64", u8 = "uint64",
          i1 = "int8", u1 = "uint8", i2 = "int16", u2 = "uint16", i4 = "int32", u4 = "uint32",
          b = "bool" } do
        all[name] = cg.param(type, type == "bool" and true or 1, name)
        outputs[name] = cg.zeros(type, 1)
      end
      local two, h = cg.param("float", { 1, 2 }, "two"), cg.param("half", 1, "h")
      outputs.two, outputs.h = cg.zeros("float", 2), cg.zeros("half", 1)
      cg.capture(function()
        for name, param in pairs(all) do module:kernel(name):launch(1, 1, outputs[name], param) end
        module:kernel "pair":launch(1, 1, outputs.two, two)
        local one = { at = { 1, 2 }, n = 3 }
        outputs.s = cg.zeros("float", 4)
        module:kernel "whole":launch(1, 1, outputs.s,
          module:kernel "whole":param("s", { f = 1, p = { one, one } }))
        outputs.h:fill(h)
      end):save(%q, { outputs = outputs })
    ]=]):format(path) }
    assert.are.equal(0, status, out .. err)
    local ffi = require "ffi"
    for name, case in pairs {
      f1 = { "float", "-0.5" }, f8 = { "double", "1e300" },
      i8 = { "int64_t", "-9223372036854775807" },
      u8 = { "uint64_t", "18446744073709551615" }, i1 = { "int8_t", "-128" },
      u1 = { "uint8_t", "255" }, i2 = { "int16_t", "-3" }, u2 = { "uint16_t", "0xffff" },
      i4 = { "int32_t", "-2147483648" }, u4 = { "uint32_t", "4294967295" }, b = { "bool", "false" },
      two = { "float", "3,4.5" },
    } do
      status, out, err = run { path, "--set", name .. "=" .. case[2],
        "--out", name .. "=" .. bytes }
      assert.are.equal(0, status, out .. err)
      local got, i = program.read(bytes), 0
      for word in case[2]:gmatch "[^,]+" do
        local wanted = word ~= "false" and tonumber(word)
        if name == "i8" then wanted = -9223372036854775807LL end
        if name == "u8" then wanted = 18446744073709551615ULL end
        assert.are.equal(ffi.string(ffi.new(case[1] .. "[1]", wanted), ffi.sizeof(case[1])),
          got:sub(1 + i * ffi.sizeof(case[1]), (i + 1) * ffi.sizeof(case[1])), name)
        i = i + 1
      end
      assert.are.equal(#got, i * ffi.sizeof(case[1]))
    end
    status = run { path, "--set", "h=2", "--set", "h=-2", "--out", "h=" .. bytes }
    assert.are.equal(0, status)
    assert.are.equal("\0\192", program.read(bytes))
    status = run { path, "--set", "s.f=0.5", "--set", "s.p.2.n=-8", "--set", "s.p.2.at=4,6",
      "--out", "s=" .. bytes }
    assert.are.equal(0, status)
    assert.are.equal(ffi.string(ffi.new("float[4]", { 0.5, 6, -8, 3 }), 16), program.read(bytes))
    status, out = run { "--inspect", path }
    assert.are.equal(0, status)
    assert.is_truthy(out:find("parameter two: 2 of float", 1, true), out)
    for text, why in pairs {
      ["none=1"] = "parameters: b (bool), f1 (float)",
      ["f1"] = "name=value expected", ["=1"] = "name=value expected",
      ["f1="] = "name=value expected", ["f1=x"] = "'x' is no number", ["f1=1,"] = "'' is no number",
      ["f1=1,2"] = "has 1 elements, got 2", ["two=1"] = "has 2 elements, got 1",
      ["u1=256"] = "uint8", ["i4=1.5"] = "int32", ["u8=-1"] = "uint64",
      ["u8=18446744073709551616"] = "no number", ["b=2"] = "bool",
      ["s=1"] = "s.field=value expected; the fields: f (float), p (a struct)",
      ["s.x=1"] = "s.field=value expected", ["s.p.3.n=1"] = "s.field=value expected",
      ["s.f.x=1"] = "s.field=value expected", ["s.p.1.n=1.5"] = "its field 'p[1].n' is 1.5",
      ["s.p=1"] = "its field 'p' is an array", ["s.=1"] = "s.field=value expected",
    } do
      status, out, err = run { path, "--set", text, "--out", "f1=" .. at "never" }
      assert.are.equal(1, status, text .. out)
      assert.is_truthy(err:find("--set " .. text .. ": ", 1, true), err)
      assert.is_truthy(err:find(why, 1, true), err)
      assert.is_nil(err:find "traceback", err)
      assert.is_nil(io.open(at "never"))
    end
  end)

  it("shows every option in its help", function()
    local status, out = run { "--help" }
    assert.are.equal(0, status)
    for _, option in ipairs { "-e ", "-l ", "-i ", "-v ", "-E ", "--device ", "--plan ",
      "--ranks ", "--compile ", "--out ", "--arch ", "--inspect ", "-- ", "- " } do
      assert.is_truthy(out:find("  " .. option, 1, true), option)
    end
  end)

  it("prints the plan of each graph for --plan", function()
    local path = script [[
local cg = require "cgraphlua"
local x = cg.zeros("float", 64)
cg.capture(function()
  local t = cg.buffer("float", 64)
  t:fill(1)
  x:copy(t)
  t:release()
end, { order = "data" })
local g, e = cg.graph(), cg.event { external = true }
local s = cg.stream()
s:use(function()
  g:capture_begin { order = "data" }
  e:record()
  g:capture_end()
end)
print "done"]]
    local status, out, err = run({ "--plan", path }, { env = "CGRAPHLUA_DEVICE=host" })
    assert.are.equal(0, status)
    assert.are.equal("done\n", out)
    assert.are.equal(([[
plan of the graph captured at PATH:5
  data order: 2 nodes, 1 edges, 1 beside each other, longest path 2
  memory: 512 bytes asked, 512 taken, 512 the least
    PATH:4: 1 of 256 bytes
plan of the graph captured at PATH:13
  data order: 1 nodes, 0 edges, 1 beside each other, longest path 1
  barrier: event:record, node 1, PATH:13: an external event
]]):gsub("PATH", (path:gsub("%%", "%%%%"))), err)
  end)

  it("names its own version, LuaJIT's and every device", function()
    local status, out, err = run { "-v", "--device", "host" }
    assert.are.equal("", err)
    assert.are.equal(0, status)
    assert.is_truthy(out:match "^cgraphlua %d+%.%d+%.%d+\nLuaJIT 2%.1")
    assert.is_truthy(out:match "\nhost: [^\n]*driver %d+%.%d+")
    assert.are.equal(require("cgraphlua").version, out:match "%d+%.%d+%.%d+")
  end)

  it("says which device was meant through CGRAPHLUA_DEVICE", function()
    local _, out = run { "--device=host", "-e", "print(os.getenv 'CGRAPHLUA_DEVICE')" }
    assert.are.equal("host\n", out)
    _, out = run { "--device", "cuda:3", "-e", "print(os.getenv 'CGRAPHLUA_DEVICE')" }
    assert.are.equal("cuda:3\n", out)
  end)

  it("ignores the environment with -E", function()
    local env = "LUA_INIT='print(1)' LUA_PATH='/nowhere/?.lua'"
    local chunk = "print(package.path:find('/nowhere', 1, true) ~= nil)"
    local _, out = run({ "-e", chunk }, { env = env })
    assert.are.equal("1\ntrue\n", out)
    _, out = run({ "-E", "-e", chunk }, { env = env })
    assert.are.equal("false\n", out)
  end)

  it("runs a file for LUA_INIT=@file", function()
    local path = script "print 'first'"
    local _, out = run({ "-e", "print 'then'" }, { env = "LUA_INIT=@" .. path })
    assert.are.equal("first\nthen\n", out)
  end)

  it("finds the Lua half wherever it is started", function()
    local _, out, err = program.shell(string.format(
      "cd / && %s -e 'print(package.searchpath(\"cgraphlua\", package.path))'",
      program.quote(program.path)))
    assert.are.equal("", err)
    assert.is_truthy(out:find "cgraphlua/init.lua\n$")
  end)
end)

describe("a machine without a GPU", function()
  local chunk = "local cg = require 'cgraphlua' cg.device() cg.debug.forget() cg.device()"

  it("is noted in one short line, once", function()
    local status, out, err = run({ "-e", chunk }, { env = "CGRAPHLUA_DEVICE=" })
    assert.are.same({ 0, "" }, { status, out })
    if err == "" then pending "this machine has a GPU" end
    assert.matches("^cgraphlua: no GPU, using the host device: [^\n]*\n$", err)
    assert.is_true(#err < 100, err)
  end)

  it("is not noted where the device was named", function()
    for _, words in ipairs {
      { "--device", "host", "-e", chunk },
      { "-e", "require('cgraphlua').set_device 'host'" },
    } do
      assert.are.same({ 0, "", "" }, { run(words, { env = "CGRAPHLUA_DEVICE=" }) })
    end
    assert.are.same({ 0, "", "" }, { run({ "-e", chunk }, { env = "CGRAPHLUA_DEVICE=host" }) })
  end)
end)

describe("a failing script", function()
  it("is reported with a traceback and exit status 1", function()
    local status, out, err = run { "-e", "local function f() error('no luck') end f()" }
    assert.are.equal(1, status)
    assert.are.equal("", out)
    assert.is_truthy(err:find("cgraphlua: (command line):1: no luck\nstack traceback:\n", 1, true))
    assert.is_truthy(err:find("(command line):1: in function 'f'", 1, true))
  end)

  it("shows what error objects say of themselves", function()
    local make = "error(setmetatable({}, {__tostring = function() return 'spoken' end}))"
    local status, _, err = run { "-e", make }
    assert.are.equal(1, status)
    assert.are.equal("cgraphlua: spoken", err:match "^[^\n]*")
    status, _, err = run { "-e", "error {}" }
    assert.are.equal(1, status)
    assert.are.equal("cgraphlua: (error object is a table value)", err:match "^[^\n]*")
  end)

  it("survives a __tostring that fails itself", function()
    local status, _, err = run {
      "-e",
      "error(setmetatable({}, {__tostring = function() error 'again' end}))",
    }
    assert.are.equal(1, status)
    assert.is_truthy(err:find "^cgraphlua: ")
  end)

  it("says nothing for a nil error object", function()
    local status, out, err = run { "-e", "error()" }
    assert.are.same({ 1, "", "" }, { status, out, err })
  end)

  it("names a missing file and a syntax error", function()
    local status, _, err = run { "/nonexistent/x.lua" }
    assert.are.equal(1, status)
    assert.is_truthy(err:find("cgraphlua: cannot open /nonexistent/x.lua", 1, true))
    status, _, err = run { "-e", "x =" }
    assert.are.equal(1, status)
    assert.is_truthy(err:find("cgraphlua: (command line):1: unexpected symbol", 1, true))
  end)

  it("is told how a kernel's string ended too early", function()
    local folder = program.folder()
    finally(function() program.remove(folder) end)
    local kernel = [=[
local cg = require "cgraphlua"
local k = cg.kernel [[
extern "C" __global__ void k(float *x, const int *i) {
  %s
}]]
]=]
    local function said(line)
      program.write(folder .. "/k.lua", (kernel:gsub("%%s", line)))
      local status, _, err = run { folder .. "/k.lua" }
      assert.are.equal(1, status)
      return err
    end
    for _, line in ipairs { "x[i[0]] = 1;", "float y = x[i[0]];", "x[i[i[0]]] += 1;" } do
      assert.matches("k.lua:%d+: [^\n]*\n  hint: a string from %[%[ ends .*between %[=%[",
        said(line))
    end
    assert.is_nil(said("x[0] = 1; }]] x y [["):find "hint")
  end)

  it("is followed by nothing", function()
    local status, out = run { "-e", "error 'stop'", "-e", "print 'on'" }
    assert.are.same({ 1, "" }, { status, out })
  end)

  it("survives a stack overflow in an error handler", function()
    local status, _, err = run { "-e", "local function f() return 1 + f() end f()" }
    assert.are.equal(1, status)
    assert.is_truthy(err:find("stack overflow", 1, true))
  end)
end)

describe("the exit", function()
  it("has os.exit's status", function()
    assert.are.equal(7, (run { "-e", "os.exit(7)" }))
    assert.are.equal(0, (run { "-e", "os.exit(true)" }))
    assert.are.equal(1, (run { "-e", "os.exit(false)" }))
    assert.are.equal(0, (run { "-e", "os.exit()" }))
    assert.are.equal(3, (run { "-e", "coroutine.wrap(function() os.exit(3) end)()" }))
  end)

  it("runs finalizers, also after os.exit and after an error", function()
    local make = "p = newproxy(true) getmetatable(p).__gc = function() print 'final' end "
    for _, ending in ipairs { "", "os.exit(2)", "error 'x'", "os.exit(2, true)" } do
      local _, out = run { "-e", make .. ending }
      assert.are.equal("final\n", out)
    end
    local _, out = run { "-e", make .. "os.exit(2, false)" }
    assert.are.equal("", out)
  end)

  it("fails when standard output cannot be written", function()
    local status, _, err = program.shell(program.quote(program.path) .. " -e 'print(1)' >/dev/full")
    assert.are.equal(1, status)
    assert.is_truthy(err:find("cannot write to standard output", 1, true))
  end)
end)

describe("busted", function()
  it("runs unmodified, with the exit status of its failures", function()
    local busted = os.getenv "BUSTED"
    if not busted or busted == "" then
      busted = "/usr/bin/busted"
    end
    local folder = program.folder()
    finally(function()
      program.remove(folder)
    end)
    program.write(folder .. "/good_spec.lua",
      "it('is LuaJIT', function() assert.is_table(jit) end)")
    program.write(folder .. "/bad_spec.lua", "it('fails', function() assert.is_nil(jit) end)")
    local status, out = run { busted, "-o", "TAP", folder .. "/good_spec.lua" }
    assert.are.equal(0, status)
    assert.is_truthy(out:find("ok 1 - is LuaJIT", 1, true))
    status, out = run { busted, "-o", "TAP", folder .. "/bad_spec.lua" }
    assert.are.equal(1, status)
    assert.is_truthy(out:find("not ok 1 - fails", 1, true))
    -- busted does not quote what it starts.
    os.execute(string.format("ln -s %s %s/program", program.quote(program.path), folder))
    status, out = program.shell(string.format("%s --lua=%s/program -o TAP %s/good_spec.lua", busted,
      folder, folder))
    assert.are.equal(0, status)
    assert.is_truthy(out:find("ok 1 - is LuaJIT", 1, true))
  end)
end)

describe("the REPL", function()
  local home, term

  before_each(function()
    home = program.folder()
  end)

  after_each(function()
    if term then
      term:close()
      term = nil
    end
    program.remove(home)
  end)

  local lack = program.lacks_terminals()

  local function start()
    if lack then pending(lack) end
    term = program.terminal(string.format("TERM=xterm XDG_STATE_HOME=%s %s", home,
      program.quote(program.path)))
    term:expect "> "
  end

  local function enter(line)
    term:send(line .. "\r")
  end

  it("prints expressions, with and without =", function()
    start()
    enter "= 40 + 2, 'a'"
    term:expect "42\ta"
    enter "6 * 111"
    term:expect "666"
    enter "x = 41; print(x + 1)"
    term:expect "42"
    enter "os.exit(x)"
    term:expect "EXIT=41"
  end)

  it("shows what is in tables", function()
    local status, out, err = run({ "--device", "host", "-i" }, { input = [[
      cg.device()
      x = cg.from({ 1.5, 2 }, "float") print(x:download(), x.shape)
      { a = { "b", { c = { 1 } } }, [2] = true }
      cg.zeros("float", 40):download()
      t = {} t.t = t return t
      setmetatable({}, { __tostring = function() return "own" end })
      cg.buffer
    ]] })
    assert.are.same({ 0, "" }, { status, err })
    assert.matches('\n  device = "host",\n', out)
    assert.is_truthy(out:find("\n{1.5, 2}\t{2}\n", 1, true))
    assert.is_truthy(out:find('\n{[2] = true, a = {"b", {c = {...}}}}\n', 1, true))
    assert.matches("\n{0, 0, [0, ]+%.%.%. %(40 in all%)}\n{t = {%.%.%.}}\nown\nfunction: ", out)
  end)

  it("knows help and exit, and leaves the script's own names alone", function()
    local status, out = run({ "-i" }, { input = "help\nhelp(cg.event())\nexit\nprint 'on'\n" })
    assert.are.equal(0, status)
    assert.matches("^cgraphlua %d.-cg.devices%(%).-Tab completes names", out)
    assert.matches("methods, called with ':':\n  elapsed [%w ]*synchronize[%w ]*\n$", out)
    status, out = run({ "-i", "-e", "exit, help = 7, 8" }, { input = "help, exit\nexit2 = 1" })
    assert.are.same({ 0, "8\t7\n" }, { status, out })
    assert.are.equal(3, (run({ "-i" }, { input = "exit(3)" })))
  end)

  it("completes names with Tab", function()
    if not program.read(program.path):find("/cgraphlua/history", 1, true) then
      pending "this build has no line editing"
    end
    start()
    term:send "cg.is_cur\t"
    term:expect "stream_capturing("
    enter ")"
    term:expect "false"
    enter "word = { alpha = 1, alphabet = 2 }"
    term:send "word.al\t\t"
    term:expect "alpha alphabet"
    enter "bet + 40"
    term:expect "42"
    enter "e = cg.event()"
    term:send "e:sy\t"
    term:expect "nchronize("
    enter ") print('wai' .. 'ted')"
    term:expect "waited"
    -- Between two prompts the terminal takes Ctrl-C for a signal, and drops
    -- what was typed.
    term:expect "> "
    term:send "nothing.there\t"
    term:expect "nothing.there"
    term:send "\3"
    term:expect "^C"
  end)

  it("continues incomplete chunks", function()
    start()
    enter "for i = 1, 3 do"
    term:expect ">> "
    enter "io.write('<', i * 11, '>')"
    term:expect ">> "
    enter "end"
    term:expect "<11><22><33>"
    enter "os.exit(0)"
    term:expect "EXIT=0"
  end)

  it("goes on after errors", function()
    start()
    enter "error('oh' .. ' no')"
    term:expect "oh no"
    term:expect "stack traceback:"
    enter "x y"
    term:expect "'=' expected near 'y'"
    enter "'still' .. 'here'"
    term:expect "stillhere"
  end)

  it("drops the line at Ctrl-C and stops a compiled loop", function()
    start()
    term:send "this is no Lua"
    term:expect "no Lua"
    term:send "\3"
    term:expect "> "
    enter "io.write('go', 'ing') io.flush() while true do end"
    term:expect "going"
    term:send "\3"
    term:expect "interrupted!"
    enter "'al' .. 'ive'"
    term:expect "alive"
  end)

  it("remembers its history from one run to the next", function()
    start()
    enter "print('first' .. 'run')"
    term:expect "firstrun"
    enter "os.exit(0)"
    term:expect "EXIT=0"
    term:close()
    if not program.read(program.path):find("/cgraphlua/history", 1, true) then
      pending "this build has no line editing"
    end
    assert.matches("print%('first'", program.read(home .. "/cgraphlua/history"))
    start()
    term:send "\27[A\27[A\r" -- up, up
    term:expect "firstrun"
  end)
end)

describe("Ctrl-C", function()
  local at = program.own_folder(before_each, after_each)

  -- Runs a chunk with `setting` before the program and a standard input that
  -- never ends.  `line` is what the shell does meanwhile: reach waits until
  -- the chunk has called mark(), signal sends a Ctrl-C.
  local lack = program.lacks_proc()

  local function marked(setting, chunk, line)
    if lack then pending(lack) end
    return program.shell(string.format([[
      cd %s
      rm -f marked input
      mkfifo input
      %s %s -e %s -e %s 0<>input & pid=$!
      ended() { grep -q '^State:.Z' /proc/$pid/status; }
      reach() { until [ -e marked ] || ended; do sleep 0.01; done; }
      signal() { kill -INT $pid; }
      %s
      wait $pid]], at(), setting, program.quote(program.path),
      "'function mark() io.open(\"marked\", \"w\"):close() end'", program.quote(chunk), line))
  end

  local function interrupted(chunk, line)
    -- A shell without job control starts its children with SIGINT ignored.
    return marked("env --default-signal=INT", chunk, line or "reach; sleep 0.1; signal")
  end

  it("ends compiled loops with an error", function()
    for _, loop in ipairs {
      "while true do end",
      "local x = 0 for i = 1, 1e15 do x = x + i end",
      "local t = {} while true do t[#t % 10 + 1] = tostring(#t) end",
      "coroutine.wrap(function() while true do end end)()",
      "require('cgraphlua').sleep(600)",
    } do
      local status, _, err = interrupted("mark() " .. loop)
      assert.are.equal(1, status)
      assert.is_truthy(err:find("interrupted!\nstack traceback:", 1, true), err)
    end
  end)

  -- Work that does not end, on the host device.
  local endless = [[
    local cg = require "cgraphlua"
    cg.set_device "host"
    local x = cg.zeros("int32", 65)
    local function kernel(body)
      return cg.kernel('extern "C" __global__ void endless(volatile int *x) {' .. body .. '}')
    end
    local spin = kernel "while (!x[0]) {}"
    local strip = kernel "int i = threadIdx.x; while (!x[0]) x[i + 1] += 1;"
    local barriers = kernel [=[__shared__ int s[64]; while (!x[0]) {
      s[threadIdx.x] = 1; __syncthreads(); x[1] = s[63 - threadIdx.x]; __syncthreads(); }]=]
    local short = kernel "x[1]++;"
    local function captured(k) return cg.capture(function() k:launch(1, 64, x) end) end
    ]]

  it("ends waits for kernels that do not end", function()
    for work, call in pairs {
      ["spin:launch(1, 1, x) mark() x:download()"] = "buffer:download",
      ["strip:launch(1, 64, x) mark() cg.synchronize()"] = "synchronize",
      ["cg.stream():use(function() captured(barriers):replay() mark() " ..
        "cg.current_stream():synchronize() end)"] = "stream:synchronize",
      ["spin:launch(8, 64, x) local e = cg.event() e:record() mark() e:synchronize()"] =
        "event:synchronize",
    } do
      local status, _, err = interrupted(endless .. work)
      assert.are.equal(1, status)
      assert.is_truthy(
        err:find(":%d+: " .. call .. ": interrupted! kernel endless was aborted"), err)
    end
  end)

  it("ends endless replays", function()
    local status, _, err = interrupted(endless .. "local g = captured(short) mark() g:replay(1e12)")
    assert.are.equal(1, status)
    assert.is_truthy(err:find("interrupted!.*in function 'replay'"), err)
    status, _, err = interrupted(
      endless .. "local g = captured(short) mark() while true do g:replay() end")
    assert.are.equal(1, status)
    assert.is_truthy(err:find("interrupted!", 1, true), err)
  end)

  it("leaves a script that caught the end of a wait alone", function()
    local status, out, err = interrupted(endless .. [[
      local g = captured(spin)
      g:replay()
      local ok, e = pcall(function() mark() x:download() end)
      local n = 0 for i = 1, 1e5 do n = n + i % 2 end
      print(ok, e.name, n)]])
    assert.are.equal("", err)
    assert.are.equal("false\tCGL_ERROR_INTERRUPTED\t50000\n", out)
    assert.are.equal(0, status)
  end)

  it("lets a script clean up", function()
    local status, out, err = interrupted [[
      local ok, why = pcall(function() mark() while true do end end)
      local n = 0 for i = 1, 1e5 do n = n + i % 2 end
      print(ok, why, n)]]
    assert.are.equal("", err)
    assert.are.equal("false\tinterrupted!\t50000\n", (out:gsub("%S+:%d+: ", "")))
    assert.are.equal(0, status)
  end)

  it("ends a script that catches everything", function()
    local status, _, err = interrupted(
      "mark() while true do pcall(function() while true do end end) end")
    assert.are.equal(1, status)
    assert.is_truthy(err:find("interrupted!", 1, true))
  end)

  it("ends the process when it comes twice", function()
    -- Reads a line that never ends: that more than a pipe holds could be
    -- written says that the read has begun, which nothing stops.  The first
    -- one has come when the process does not catch the signal any more.
    local status = interrupted("mark() io.read()", [[
      reach; head -c 100000 /dev/zero >input; signal
      caught() { echo $((0x$(sed -n 's/^SigCgt:[^0-9a-f]*//p' /proc/$pid/status) & 2)); }
      until [ $(caught) = 0 ]; do sleep 0.01; done
      signal]])
    assert.are.equal(130, status)
  end)

  it("stays ignored where it was ignored at the start", function()
    local status, out = marked("", [[
      mark()
      local sent
      repeat sent = io.open "sent" until sent
      sent:close()
      print(1)]], "reach; signal; : >sent")
    assert.are.same({ 0, "1\n" }, { status, out })
  end)
end)
