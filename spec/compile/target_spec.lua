-- Which instructions kernels of the host device may use.

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local program = device.program
local quote = program.quote

describe("a kernel's instructions", function()
  local at = program.own_folder(before_each, after_each)

  -- Prints the words that the compiler defines for them.
  local chunk = [==[
    local k = cg.kernel [=[
      extern "C" __global__ void k(float *x, const float *y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) x[i] = sqrtf(y[i] * 2.f + 1.5f) + (float)(i * 3);
      #ifdef __AVX__
        if (i == 0) x[0] = 256.f;
      #endif
      #ifdef __AVX512F__
        if (i == 0) x[0] = 512.f;
      #endif
      }]=]
    local x, y = cg.zeros("float", 4096), cg.zeros("float", 4096)
    k:over(4096)(x, y, 4096)
    print(math.floor(x:download()[1]))
  ]==]

  local function x86()
    local here_too = jit.arch == "x64" and program.shell "command -v c++" == 0
    if not here_too then pending "this needs x86-64 and a C++ compiler" end
    return here_too
  end

  local function environment(cxx)
    return "CGRAPHLUA_DEVICE=host CGRAPHLUA_CACHE=" .. quote(at "cache") ..
      (cxx and " CGRAPHLUA_CXX=" .. quote(cxx) or "")
  end

  it("are those that CGRAPHLUA_CXX says", function()
    if not x86() then return end
    assert.same({ 0, "1\n", "" }, { device.child(chunk, environment "c++ -march=x86-64") })
    assert.same({ 0, "1\n", "" }, { device.child(chunk, environment "c++ -O2 -march=nehalem") })
  end)

  it("can all be run where the process sees less than the machine has", function()
    if not x86() then return end
    if program.shell "command -v valgrind" ~= 0 then
      return pending "valgrind is not here"
    elseif os.getenv "CGRAPHLUA_SANITIZER" ~= nil and os.getenv "CGRAPHLUA_SANITIZER" ~= "no" then
      return pending "valgrind runs no sanitizers"
    end
    program.write(at "run.lua", "local cg = require 'cgraphlua'\n" .. chunk)
    local status, out, err = program.shell(("%s valgrind -q --error-exitcode=0 %s %s"):format(
      environment(), quote(program.path), quote(at "run.lua")))
    assert.equal(0, status, err)
    assert.is_true(out == "256\n" or out == "1\n", out)
  end)
end)
