-- Kernels that were compiled on one machine and run on another, which has no
-- compiler: here a process that finds none.

local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local program = device.program
local quote = program.quote

local host = cg.device().device == "host"
local arch = "sm_" .. cg.device().compute:gsub("%.", "")

-- A template with an option, a plain kernel and random fills.
local game = [==[
local cg = require "cgraphlua"
cg.on_log(function(message) io.stderr:write(message, "\n") end)
local scale = cg.kernel([=[
template <typename T, int N> __global__ void scale(T *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = N * x[i] + OFFSET;
}]=], "scale<float, 3>", { options = { "-DOFFSET=1" } })
local x = cg.full("float", 100, 2)
scale:launch(4, 32, x, 100)
local named = cg.module([=[
extern "C" __global__ void name(int *out) { *out = LEVEL; }
]=], { options = { "-DLEVEL=" .. (arg[1] or 1) } }):kernel()
local out = cg.zeros("int32", 1)
named:launch(1, 1, out)
cg.manual_seed(1)
local y = cg.zeros("float", 4)
y:uniform()
print(x:download()[100], out:download()[1], y:download()[4])
]==]

-- Says for which level it was compiled.
local level = [==[
local cg = require "cgraphlua"
local out = cg.zeros("int32", 1)
cg.kernel([=[
extern "C" __global__ void level(int *out) {
#ifdef __AVX2__
  *out = 3;
#else
  *out = 1;
#endif
}]=]):launch(1, 1, out)
print(out:download()[1])
]==]

describe("shipped kernels", function()
  local at = program.own_folder(before_each, after_each)

  -- Runs "game/main.lua" where no compiler is; returns status, output, errors.
  local function play(environment, script)
    return program.run({ script or at "game/main.lua" }, { env = table.concat({
      "PATH=/nonexistent CGRAPHLUA_CXX=/nonexistent", "CUDA_HOME=" .. quote(at "cuda"),
      "CGRAPHLUA_CACHE=" .. quote(at "empty"), "CGRAPHLUA_DEVICE=" .. cg.device().device,
      environment or "" }, " ") })
  end

  local function from_folder(more)
    return "CGRAPHLUA_KERNELS=" .. quote(at "kernels") .. " " .. (more or "")
  end

  local function compile(script, ...)
    local words = { "--compile", script or at "game/main.lua", "--out", at "kernels", ... }
    if not host then
      table.insert(words, 3, "--arch=" .. arch)
    end
    return program.run(words)
  end

  local function files(pattern)
    local _, text = program.shell("cd " .. quote(at "kernels") .. " 2>&1 && ls -A")
    local list = {}
    for name in text:gmatch "[^\n]+" do
      if name:find(pattern or "%.kernel$") then list[#list + 1] = name end
    end
    return list
  end

  before_each(function()
    assert(os.execute("mkdir " .. quote(at "game")) == 0)
    program.write(at "game/main.lua", game)
    -- A library that is found, and is no NVRTC.
    assert(os.execute(("mkdir -p %s && ln -s $(ldd %s | awk '/libm[.]so/ {print $3}') %s"):format(
      quote(at "cuda/lib64"), quote(program.path), quote(at "cuda/lib64/libnvrtc.so.13"))) == 0)
  end)

  it("run without a compiler, and nothing is written", function()
    local status, out, err = compile()
    assert.equal(0, status, err)
    assert.is_truthy(err:find("wrote %d+ compiled images to"))
    assert.is_true(#files() >= 8)
    local played, text, errors = play(from_folder())
    assert.equal("", errors)
    assert.equal(0, played)
    assert.equal(out, text)
    assert.equal(1, (program.shell("test -e " .. quote(at "empty"))))
  end)

  it("are needed where there is no compiler, and the error says how to make them", function()
    local status, _, err = play()
    assert.equal(1, status)
    assert.is_truthy(err:find("CGL_ERROR_NO_COMPILER", 1, true))
    assert.is_truthy(err:find("cgraphlua --compile", 1, true))
    assert.is_truthy(err:find("main.lua:3", 1, true))
    assert.equal(0, (compile()))
    program.write(at "game/main.lua", (game:gsub("%-DOFFSET=1", "-DOFFSET=2")))
    status, _, err = play(from_folder())
    assert.equal(1, status)
    assert.is_truthy(err:find("no shipped image of this source can be used, from: '" ..
      at "kernels", 1, true))
  end)

  it("are found by cg.kernels_from, before those of the environment", function()
    assert.equal(0, (compile()))
    program.write(at "game/main.lua",
      ("require 'cgraphlua'.kernels_from(%q)\n"):format(at "kernels") .. game)
    local status, _, err = play("CGRAPHLUA_KERNELS=/nonexistent:" .. quote(at()))
    assert.equal(0, status, err)
    device.raises("CGL_ERROR_SYSTEM", function() cg.kernels_from(at "nowhere") end,
      "cannot look into", "nowhere", "shipped_spec%.lua:")
    device.raises("CGL_ERROR_SYSTEM", function() cg.kernels_from(at "game/main.lua") end,
      "Not a directory")
    device.slips(function() cg.kernels_from() end, "the folder")
    device.slips(function() cg.kernels_from {} end, "the folder")
    cg.kernels_from(at())
    cg.kernels_from(nil)
  end)

  it("do not depend on where the script and its headers stand", function()
    local text = [==[
local cg = require "cgraphlua"
local x, here = cg.zeros("int32", 1), arg[0]:match "^(.*)/"
cg.kernel('#include "value.h"\nextern "C" __global__ void put(int *x) { *x = VALUE; }',
  { options = { "-I" .. here .. "/headers" } }):launch(1, 1, x)
print(x:download()[1])
]==]
    program.write(at "game/main.lua", text)
    assert(os.execute("mkdir " .. quote(at "game/headers")) == 0)
    program.write(at "game/headers/value.h", "#define VALUE 7\n")
    local status, out, err = compile()
    assert.equal(0, status, err)
    assert.equal("7\n", out)
    -- The header is not there.
    assert(os.execute("mkdir " .. quote(at "player")) == 0)
    program.write(at "player/main.lua", text)
    status, out, err = play(from_folder(), at "player/main.lua")
    assert.equal(0, status, err)
    assert.equal("7\n", out)
    -- It is there, and as it was.
    assert(os.execute("cp -r " .. quote(at "game/headers") .. " " .. quote(at "player")) == 0)
    assert.equal(0, (play(from_folder(), at "player/main.lua")))
    -- It is another.
    program.write(at "player/headers/value.h", "#define VALUE 8\n")
    status, out, err = play(from_folder(), at "player/main.lua")
    assert.equal(1, status)
    assert.equal("", out)
    assert.is_truthy(err:find("player/headers/value.h' has changed since it was compiled", 1, true))
    -- With a compiler it is compiled, and the log says why.
    status, out, err = program.run({ at "player/main.lua" }, { env = from_folder() })
    assert.equal(0, status)
    assert.equal("8\n", out)
    assert.is_truthy(err:find("has changed since it was compiled", 1, true))
  end)

  it("refuse two modules that only their headers tell apart", function()
    for name, value in pairs { a = 1, b = 2 } do
      assert(os.execute("mkdir " .. quote(at(name))) == 0)
      program.write(at(name .. "/value.h"), "#define VALUE " .. value .. "\n")
      program.write(at(name .. "/k.cu"),
        '#include "value.h"\nextern "C" __global__ void put(int *x) { *x = VALUE; }\n')
    end
    program.write(at "game/main.lua", ([==[
local cg = require "cgraphlua"
cg.module { file = %q }
cg.module { file = %q }
]==]):format(at "a/k.cu", at "b/k.cu"))
    local status, _, err = compile()
    assert.equal(1, status)
    assert.is_truthy(err:find("main.lua:3:", 1, true))
    assert.is_truthy(err:find("headers that differ", 1, true))
    assert.same({}, files())
  end)

  it("are not written when the script fails, or asks for a failure", function()
    for _, ending in ipairs { "error 'no'", "os.exit(3)", "os.exit(false)" } do
      program.write(at "game/main.lua", game .. ending .. "\n")
      local status = compile()
      assert.is_true(status ~= 0, ending)
      assert.equal(1, (program.shell("test -e " .. quote(at "kernels"))), ending)
    end
    program.write(at "game/main.lua", game .. "os.exit(0)\n")
    assert.equal(0, (compile()))
    assert.is_true(#files() >= 8)
  end)

  it("are not written when a source fails for one of the targets", function()
    if not host then pending "the levels are the host device's" return end
    program.write(at "game/main.lua", [==[
local cg = require "cgraphlua"
print(pcall(cg.module, [=[
#if defined __x86_64__ && !defined __AVX2__
#error no old processor
#endif
extern "C" __global__ void f() {}]=]))
]==])
    local status, out, err = compile()
    if out:find "^false.*no compiler" then return end
    assert.equal(1, status)
    assert.is_truthy(err:find("no kernels were written: .*for x86%-64:.*no old processor"))
    assert.same({}, files())
  end)

  it("are none of a script without kernels", function()
    program.write(at "game/main.lua", "print 'nothing'")
    local status, _, err = compile()
    assert.equal(1, status)
    assert.is_truthy(err:find("compiled no kernels", 1, true))
    assert.same({}, files())
  end)

  it("are written whole, or the folder is as it was", function()
    program.write(at "kernels", "a file")
    local status, _, err = compile()
    assert.equal(1, status)
    assert.is_truthy(err:find("cannot write to", 1, true))
    assert.equal("a file", program.read(at "kernels"))
    os.remove(at "kernels")
    assert.equal(0, (compile()))
    assert.same(files(), files "") -- no temporary files
    -- A folder may hold the kernels of several scripts.
    local before = #files()
    program.write(at "game/main.lua", game .. "cg.module 'extern \"C\" __global__ void f() {}'")
    assert.equal(0, (compile()))
    assert.is_true(#files() > before)
  end)

  it("include modules that were compiled off the main thread", function()
    program.write(at "game/main.lua", [==[
local cg = require "cgraphlua"
wait = cg.module_async 'extern "C" __global__ void f(int *x) { *x = 4; }'
if arg[1] then print(#wait:wait():kernels()) end
]==])
    assert.equal(0, (compile(nil, "--")))
    assert.is_true(#files() > 0)
    program.write(at "game/main.lua", "arg[1] = 1\n" .. program.read(at "game/main.lua"))
    local status, out, err = play(from_folder())
    assert.equal(0, status, err)
    assert.equal("1\n", out)
  end)

  describe("of the host device", function()
    it("are for the newest level that is allowed", function()
      if not host or jit.arch ~= "x64" then pending "the levels are those of x86-64" return end
      program.write(at "game/main.lua", level)
      assert.equal(0, (compile()))
      assert.equal(1, #files "%.x86%-64%.kernel$")
      assert.equal(1, #files "%.x86%-64%-v3%.kernel$")
      local _, flags = program.shell "grep -m1 ^flags /proc/cpuinfo"
      local status, out, err = play(from_folder())
      assert.equal(0, status, err)
      assert.equal(flags:find " avx2 " and "3\n" or "1\n", out)
      status, out = play(from_folder "CGRAPHLUA_HOST_LEVEL=x86-64")
      assert.equal(0, status)
      assert.equal("1\n", out)
      status, out, err = play(from_folder "CGRAPHLUA_HOST_LEVEL=z80")
      assert.equal(0, status)
      assert.is_truthy(err:find("CGRAPHLUA_HOST_LEVEL is 'z80', which is no level; these are: " ..
        "x86-64-v3 x86-64", 1, true))
      assert.equal(flags:find " avx2 " and "3\n" or "1\n", out)
    end)
  end)

  describe("that are damaged", function()
    local one

    before_each(function()
      program.write(at "game/main.lua", level)
      assert.equal(0, (compile()))
      for _, name in ipairs(files()) do
        if name ~= files(host and "%.x86%-64%.kernel$" or arch)[1] then
          os.remove(at("kernels/" .. name))
        end
      end
      assert.equal(1, #files())
      one = at("kernels/" .. files()[1])
      assert.equal(0, (play(from_folder())))
    end)

    -- The file holds `bytes` now; the error says why it is not used.
    local function refuses(bytes, why)
      program.write(one, bytes)
      local status, _, err = play(from_folder())
      assert.equal(1, status, why)
      assert.is_truthy(err:find("CGL_ERROR_NO_COMPILER", 1, true))
      assert.is_truthy(err:find(one .. "' is not used: it " .. why, 1, true), why .. "\n" .. err)
    end

    it("are not believed, and the error says which and why", function()
      local bytes = program.read(one)
      refuses("", "is empty")
      refuses(bytes:sub(1, 20), "is truncated")
      refuses(bytes:sub(1, -2), "is truncated")
      refuses(bytes .. "x", "is damaged")
      refuses("print 'a script'" .. bytes, "holds no compiled kernel")
      refuses(bytes:sub(1, 8) .. "\99" .. bytes:sub(10), "was written by another version")
      for _, at_byte in ipairs { 13, 60, 70, 100, 1000, #bytes - 3 } do
        local changed = string.char((bytes:byte(at_byte) + 1) % 256)
        refuses(bytes:sub(1, at_byte - 1) .. changed .. bytes:sub(at_byte + 1), at_byte > 40 and
          at_byte <= 56 and "holds the image of another" or "is damaged")
      end
    end)

    it("or another target's are compiled anew where there is a compiler", function()
      program.write(at "game/other.lua", (level:gsub("= 3", "= 4")))
      assert.equal(0, (compile(at "game/other.lua")))
      for _, name in ipairs(files(host and "%.x86%-64%.kernel$" or arch)) do
        local path = at("kernels/" .. name)
        if path ~= one then os.rename(path, one) end
      end
      refuses(program.read(one), "holds the image of another source, or for another device")
      local status, _, err = program.run({ at "game/main.lua" }, { env = from_folder() })
      assert.equal(0, status, err)
      assert.is_truthy(err:find("holds the image of another source", 1, true))
    end)

    it("or are no files at all do not stop the search", function()
      local good = program.read(one)
      os.remove(one)
      assert(os.execute("mkfifo " .. quote(one)) == 0)
      local status, _, err = play(from_folder())
      assert.equal(1, status)
      assert.is_truthy(err:find("is no regular file", 1, true))
      assert(os.execute("mkdir " .. quote(at "second")) == 0)
      program.write(at("second/" .. files()[1]), good)
      status, _, err = play("CGRAPHLUA_KERNELS=" .. quote(at "kernels" .. ":" .. at "second"))
      assert.equal(0, status, err)
    end)

    it("but links to whole ones are taken, whoever owns the folder", function()
      assert(os.execute(("mv %s %s && ln -s %s %s && chmod 777 %s"):format(quote(one),
        quote(at "elsewhere"), quote(at "elsewhere"), quote(one), quote(at "kernels"))) == 0)
      local status, _, err = play(from_folder())
      assert.equal(0, status, err)
    end)
  end)
end)
