-- Sources as NVRTC takes them, on both devices.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")

--- What kernel k writes into eight integers.
local function run(source, type)
  local module = cg.module(source)
  local out = cg.zeros(type or "int32", 8)
  module:kernel "k":launch(1, 1, out)
  return out:download()
end

describe("a source", function()
  teardown(device.nothing_alive)

  it("may narrow constants in braces", function()
    local got = run [[
__constant__ unsigned char tab[] = {0xff, 200, 256};
__constant__ int whole[] = {1.0, 2};
extern "C" __global__ void k(int *p) {
  unsigned u[] = {-1, 2};
  p[0] = tab[1]; p[1] = whole[0] + whole[1]; p[2] = u[0] == 0xffffffffu; p[3] = tab[2];
}]]
    assert.same({ 200, 3, 1, 0 }, { got[1], got[2], got[3], got[4] })
  end)

  it("may define a type with a variable of it", function()
    local module = cg.module [[
__constant__ struct T { int x; } one;
__device__ enum E { A, B } e = B;
__device__ struct __align__(8) Q : T { int y; } pair[2];
struct P { int x; };
__constant__ struct P two = {4}, three[2] = {{5}, {6}};
extern "C" __global__ void k(int *p) { p[0] = one.x; p[1] = e; p[2] = two.x + three[1].x; }]]
    module:global("one", "int32"):fill(7)
    assert.equal(16, module:global("pair", "uint8").bytes)
    local out = cg.zeros("int32", 8)
    module:kernel():launch(1, 1, out)
    local got = out:download()
    assert.same({ 7, 1, 10 }, { got[1], got[2], got[3] })
  end)

  it("knows the types that stand beside kernels", function()
    assert.equal(24, run([[
struct S { cudaStream_t stream; cudaEvent_t event; cudaTextureObject_t image; };
__device__ size_t area(cudaPitchedPtr p, cudaExtent e) { return p.pitch * e.height; }
extern "C" __global__ void k(int *p) { p[0] = sizeof(S); }]])[1])
  end)

  it("may name what the processor's compiler has names for", function()
    assert.equal(9, run([[
#define used 1
#define visibility 1
#define aligned 1
#define told 1
extern "C" __global__ void k(int *p) {
  __shared__ int s[32];
  int linux = 2, unix = 4;
  s[threadIdx.x] = used + aligned;
  __syncthreads();
  p[0] = s[0] + linux + unix + told;
}]])[1])
  end)

  it("moves and forwards values", function()
    assert.equal(5, run([[
template <class T> __device__ T f(T &&a) { return std::forward<T>(a); }
extern "C" __global__ void k(int *p) { int a = 3; p[0] = f(std::move(a)) + f(2); }]])[1])
  end)

  it("may have types of its own under the names of known ones", function()
    local module = cg.module [[
typedef unsigned long long uint64_t;
typedef long long int64_t;
typedef unsigned int uint32_t;
using ulong = unsigned long long;
static_assert(sizeof(ulong) == 8 && sizeof(uint32_t) == 4, "");
__device__ int width(long long) { return 1; }
__device__ int width(long) { return 2; }
extern "C" __global__ void k(uint64_t *p, int64_t by) { p[0] = (1ull << 40) + width(by); }]]
    local out = cg.zeros("uint64", 2)
    module:kernel():launch(1, 1, out, 5)
    assert.equal(2 ^ 40 + 1, tonumber(out:download()[1]))
    assert.equal("uint64_t *", module:kernel():parameters()[1].type)
  end)
end)
