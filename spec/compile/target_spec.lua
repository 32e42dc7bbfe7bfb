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

  it("reach a thread's own variables without a call", function()
    if not x86() then return end
    local _, version = program.shell((os.getenv "CGRAPHLUA_CXX" or "c++") .. " --version")
    if version:find "clang" or program.shell "command -v readelf" ~= 0 then
      return pending "this needs g++ and readelf"
    end
    local status, _, err = device.child([==[
      cg.module [=[
        __device__ __noinline__ int place() { return blockIdx.x * blockDim.x + threadIdx.x; }
        extern "C" __global__ void fibers(float *x, int n) {
          __shared__ float tile[256];
          extern __shared__ float more[];
          for (int i = 0; i < n; i++) {
            if (threadIdx.x < n) tile[threadIdx.x] = more[i] + x[place()];
            if (n) __syncthreads();
            x[place()] += tile[(threadIdx.x + i) % 256];
          }
        }
        extern "C" __global__ void loops(float *x) {
          __shared__ float tile[256];
          tile[threadIdx.x] = x[threadIdx.x];
          __syncthreads();
          x[threadIdx.x] = tile[255 - threadIdx.x];
        }
        extern "C" __global__ void loop(float *x) { x[place()] = 1; }
      ]=]
    ]==], environment() .. " CGRAPHLUA_HOST_KEEP=" .. quote(at "."))
    assert.equal(0, status, err)
    local images = quote(at ".") .. "/cgraphlua-*/kernel.so"
    local _, names = program.shell("readelf --dyn-syms -W " .. images)
    assert.is_truthy(names:find "cgl_host_module")
    assert.is_nil(names:find "__tls_get_addr")
  end)
end)
