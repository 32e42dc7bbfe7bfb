-- Shared memory on the host device: how it is declared, as loops and as fibers.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local module_as = dofile(here .. "/../support/forms.lua").module_as

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("shared memory", function()
    pending "is the device's own where there is one"
  end)
end

describe("shared memory", function()
  teardown(device.nothing_alive)

  -- To nvcc the word is an attribute in front of others, to g++ a specifier.
  it("is aligned behind the word as in front of it", function()
    local declarations = { -- of four bytes
      "__shared__ alignas(64) unsigned char s[4];",
      "__shared__ alignas(8) alignas(64) unsigned char s[4];",
      "__shared__ alignas(sizeof(T) *\n(8)) unsigned char s[4];",
      "__shared__ alignas(T) alignas(V) static unsigned char s[4];",
      "__shared__ alignas(64) struct { unsigned char a[5]; } all; unsigned char *s = all.a;",
      "alignas(16) __shared__ alignas(64) volatile unsigned char s[4];",
      "__shared__ alignas(64) extern unsigned char s[];",
      "SCRATCH(64, unsigned char, s[4]);",
      "__shared__ alignas(V) unsigned char rows[2][64], s[4]; rows[t & 1][t] = 1;",
    }
    local source, lines = [[
      #define SCRATCH(n, T, what) \
        __shared__ alignas( \
            n) T what
      struct alignas(64) V { int a; };
]], {}
    for _, declaration in ipairs(declarations) do
      for _, barrier in ipairs { "__syncthreads();", "" } do
        local n = #lines + 1
        local upto = source .. ([[
          template <class T> __device__ void body%d(int *o) {
            int t = threadIdx.x;
            __shared__ char odd;
            odd = 1;
            %s
            int line = ]]):format(n, declaration)
        lines[n] = 1 + select(2, upto:gsub("\n", ""))
        source = upto .. ([[__LINE__;
            s[t] = t + odd;
            %s
            o[t] = s[t] + (int)((size_t)&s[0] %% 64) * 100 + line * 10000;
          }
          extern "C" __global__ void k%d(int *o) { body%d<double>(o); }
]]):format(barrier, n, n)
      end
    end
    local o = cg.zeros("int32", 4)
    for _, form in ipairs { "loops", "fibers" } do
      local module = module_as(form, source)
      for n, line in ipairs(lines) do
        local kernel = module:kernel("k" .. n)
        local wanted = n % 2 == 1 and form or "loop"
        assert.equal(wanted, (kernel:form()), declarations[math.ceil(n / 2)])
        kernel:launch({ 1, shared = 4 }, 4, o)
        for t, got in ipairs(o:download()) do
          assert.equal(line * 10000 + t, got, declarations[math.ceil(n / 2)])
        end
      end
    end
  end)

  -- g++ forgets a name that __asm__ gives to what a template declares.
  it("is one memory where it is dynamic, also where a template declares it", function()
    local declarations = { -- and what gives the array
      { "template <class T> struct S { __device__ operator const T *() const {" ..
        "extern __shared__ int m[]; return (T *)m; } };", "(int *)(const int *)S<int>()" },
      { "template <class T> struct S { __device__ T *get() {\n" ..
        "extern __shared__ __align__(sizeof(T)) unsigned char m[]; return (T *)m; } };",
        "S<int>().get()" },
      { "namespace a { template <class T> struct S { struct in { __device__ T *get() {" ..
        "extern __align__(16) __shared__\nvolatile T m[]; return (T *)m; } }; }; }",
        "a::S<int>::in().get()" },
      { "template <class T> struct S; template <> struct S<int> { __device__ int *get() {" ..
        "extern __shared__ int m[]; return m; } };", "S<int>().get()" },
      { "template <class T> __device__ T *get(int n) { if (n > 0) {" ..
        "extern __shared__ T m[][8]; return &m[0][0]; } return 0; }", "get<int>(3)" },
      { "struct S { __device__ int *get() { extern __shared__ int m[]; return m; } };",
        "S().get()" },
    }
    for _, form in ipairs { "loops", "fibers" } do
      for _, barrier in ipairs { "__syncthreads();", "" } do
        for _, d in ipairs(declarations) do
          local kernel = module_as(form, ([[
            %s
            extern "C" __global__ void k(int *x) {
              int *s = %s;
              s[threadIdx.x] = 7 * threadIdx.x + __LINE__;
              %s
              x[threadIdx.x] = s[%s];
            }]]):format(d[1], d[2], barrier, barrier == "" and "threadIdx.x" or
            "blockDim.x - 1 - threadIdx.x")):kernel()
          local x, last = cg.zeros("int32", 32), barrier == "" and 0 or 31
          local line = select(2, d[1]:gsub("\n", "")) + 4
          kernel:launch({ 1, shared = 128 }, 32, x)
          local got = x:download()
          assert.same({ 7 * last + line, 7 * (31 - last) + line }, { got[1], got[32] }, d[1])
        end
      end
    end
  end)

  -- Under t > c a compiler knows that t is 0xffffffff, and may take the address of s[t] out
  -- of the loop: it is 16 GB from s, which no linker writes down for thread_local memory.
  it("is written down however far from it no thread ever goes", function()
    local source = [[
      extern "C" __global__ void far(unsigned *out, int n) {
        __shared__ unsigned s[64];
        unsigned t = threadIdx.x + blockDim.x * threadIdx.y;
        unsigned gid = blockIdx.x * blockDim.x + t;
        unsigned c = t + 1u, u = blockIdx.x + 2u;
        for (int i = 0; i < 6; i++) {
          if (n > 9 || i < n)
            atomicAdd(&out[(gid ^ (t > c ? c : gid)) % 3u], 1u);
          else
            s[t] += u;
        }
        out[1 + gid] = u;
      }]]
    for _, form in ipairs { "loops", "fibers" } do
      local out = cg.zeros("uint32", 65)
      module_as(form, source):kernel():launch(1, { 32, 2 }, out, 6)
      local wanted = { 384 }
      for i = 2, 65 do wanted[i] = 2 end
      assert.same(wanted, out:download(), form)
    end
  end)
end)
