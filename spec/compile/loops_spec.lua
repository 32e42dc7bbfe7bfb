-- Kernels with barriers on the host device: as loops they do what they do as
-- fibers, and what is not understood runs as fibers and says why.
local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")
local random_kernels = dofile(here .. "/../support/kernels.lua")
local host = not (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda"

local with, module_as = forms.with, forms.module_as

local function as(form, fn)
  return with("CGRAPHLUA_HOST_KERNELS", form, fn)
end

--- The only kernel of a source, and how it runs: its form, why and where.
local function form_of(source)
  return module_as("loops", source):kernel():form()
end

local function threads_of(shape)
  local n = 1
  for _, x in ipairs(type(shape) == "table" and shape or { shape }) do n = n * x end
  return n
end

--- Fails when a kernel of two modules leaves different words.
local function assert_same(name, modules, grid, block, words, ...)
  forms.same(modules, name, grid, block, "loops and fibers", words, ...)
end

if not host then
  describe("kernels with barriers", function()
    it("run as the GPU runs them", function()
      local k = cg.kernel [[extern "C" __global__ void k() { __syncthreads(); }]]
      assert.same({ "device" }, { k:form() })
    end)
  end)
  return
end

describe("kernels with barriers as loops", function()
  teardown(device.nothing_alive)

  it("give what textbook kernels give as fibers", function()
    -- A product that lives across a barrier is rounded there, or not.
    local source = { file = here .. "/barriers.cu", options = { "--fmad=false" } }
    local loops, fibers = module_as("loops", source), module_as("fibers", source)
    local function values(n)
      local list = {}
      for i = 1, n do list[i] = i * 7 % 64 end -- sums of these are exact
      return cg.from(list, "float")
    end
    local a, b = values(96 * 96), values(96 * 96)
    -- name, grid, block, is the result first?, arguments with 0 for the result
    local cases = {
      { "matmul16", { 6, 6 }, { 16, 16 }, a, b, 0, 90 },
      { "matmul32", { 3, 3 }, { 32, 32 }, a, b, 0, 96 },
      { "tree", { 9, shared = 512 }, 128, a, 0, 1100 },
      { "shuffles", 9, 128, a, 0, 1100 },
      { "gridwise", 3, 64, a, 0, 9000 },
      { "doubling", 3, 512, a, 0, 1400 },
      { "updown", 3, 256, a, 0, 1536 },
      { "histogram", 3, 256, cg.from(ffi.new("unsigned char[9000]", 7), "uint8"), 0, 9000 },
      { "transpose", { 3, 3 }, { 32, 8 }, a, 0, 96 },
      { "bodies", 4, 256, a, 0, 1024 },
      { "softmax", 9, 96, a, 0, 100 },
    }
    for _, case in ipairs(cases) do
      local name, got = case[1], {}
      assert.equal("loops", (loops:kernel(name):form()))
      assert.equal("fibers", (fibers:kernel(name):form()))
      for i, module in ipairs { loops, fibers } do
        local out, arguments = cg.zeros(name == "histogram" and "uint32" or "float", 96 * 96), {}
        for k = 4, #case do arguments[k - 3] = case[k] == 0 and out or case[k] end
        module:kernel(name):launch(case[2], case[3], unpack(arguments))
        got[i] = out:download()
      end
      for k, wanted in ipairs(got[2]) do
        if wanted ~= got[1][k] then
          error(("%s: element %d is %.9g as loops, %.9g as fibers"):format(name, k, got[1][k],
            wanted), 0)
        end
      end
    end
  end)

  -- What the code of loops was or is written with.
  local names = { "A", "BX", "BY", "BZ", "WHOLE", "a", "at", "b", "fits", "g", "n", "run" }

  local function sums(declared, form)
    local sum = table.concat(names, " + ")
    local module = module_as(form, declared .. [[

      extern "C" __global__ void meet(float *out_) {
        __shared__ float s_[64];
        s_[threadIdx.x] = threadIdx.x;
        __syncthreads();
        out_[threadIdx.x] = s_[63 - threadIdx.x] + ]] .. sum .. [[;
      }
      extern "C" __global__ void alone(float *out_, const float *in_, int length_) {
        int t_ = blockIdx.x * blockDim.x + threadIdx.x;
        float sum_ = 0;
        for (int i_ = 0; i_ < length_; i_++) sum_ += in_[i_] * (]] .. sum .. [[);
        if (t_ < length_) out_[t_] = sum_;
      }]])
    local meet, alone = module:kernel "meet", module:kernel "alone"
    local out, ones = cg.zeros("float", 64), cg.full("float", 64, 1)
    meet:launch(1, 64, out)
    local first = out:download()
    alone:launch(1, 64, out, ones, 64)
    return { meet:form(), alone:form(), first[1], first[64], out:download()[7] }
  end

  it("leave the names of a source to it, macros and constants", function()
    local macros, constants = {}, {}
    for i, name in ipairs(names) do
      macros[i] = ("#define %s %d"):format(name, 2 ^ i)
      constants[i] = ("constexpr int %s = %d;"):format(name, 2 ^ i)
    end
    local all = 2 ^ (#names + 1) - 2
    local axes = "\n#define y 3\n#define z 4"
    for _, list in ipairs { macros, constants } do
      local declared = table.concat(list, "\n") .. (list == macros and axes or "")
      local got = sums(declared, "loops")
      assert.are.same({ "loops", got[2], 63 + all, all, 64 * all }, got)
      assert.is_truthy(got[2] == "strips" or got[2] == "loop", got[2])
    end
  end)

  it("give every thread what an initializer changes, and what a variable was", function()
    local source = [[
      extern "C" __global__ void f(unsigned *x, int n) {
        __shared__ int s[64];
        int m = n, before = m++, t = threadIdx.x;
        s[t] = before;
        float v = t;
        __syncthreads();
        auto read = [&](int i) { return s[i] + (int)v; };
        v = s[63 - t] + read(t);
        __syncthreads();
        int w = t, old = w;
        w = old + __shfl_xor_sync(~0u, w, 1);
        __syncthreads();
        w = w * 3;
        x[t] = m * 1000000 + (int)v * 1000 + w + old;
      }]]
    assert_same("f", { module_as("loops", source), module_as("fibers", source) }, 1, 64, 64, 5)
    assert.are.equal("loops", form_of(source))
  end)

  it("change what a reference stands for, and an array without a size", function()
    local source = [[
      __global__ void k(unsigned *all) {
        __shared__ unsigned s[64];
        int i = threadIdx.x, at = i, to = i, &r = at;
        r += i & 1 ? 900 : 0;
        int own[] = {i, 3, i * i}, rows[][2] = {{1, i}, {i + 2, 4}}, one[] = {7};
        unsigned &q = (unsigned &)to;
        q += i & 3 ? 70 : 0;
        s[i] = at + to;
        __syncthreads();
        all[i] = s[63 - i] + at * 3 + to + own[i % 3] + rows[i % 2][i & 1] * 64;
        own[i % 3] += one[0];
        __syncthreads();
        all[i] += own[i % 3] * 8 + sizeof own + sizeof rows;
      }]]
    local modules = { module_as("loops", source), module_as("fibers", source) }
    assert.equal("loops", (modules[1]:kernel():form()))
    assert_same("k", modules, 1, 64, 64)
  end)

  it("declare a type where they declare variables of it", function()
    local declarations = {
      "__shared__ struct { unsigned a[32]; int n; } s;",
      "__shared__ union { unsigned a[32]; int n[32]; } s, u; u.n[threadIdx.x] = 9;",
      "static __shared__ struct __align__(32) A { unsigned a[32]; } s; __shared__ A other;",
      "struct alignas(16) A { unsigned a[33]; }; __shared__ A s;",
      "typedef struct { unsigned a[32]; } A; __shared__ A s;",
      "enum class E : unsigned char { one = 1, two } e = E::two;" ..
        "__shared__ struct { unsigned a[32]; } s; s.a[threadIdx.x] = (unsigned)e;",
      "const struct { int a; float b; } c = { 3, 2.5f };" ..
        "__shared__ struct { unsigned a[32]; } s; s.a[threadIdx.x] = c.b;",
      "struct { unsigned v; } own, *p = &own; p->v = 3 * threadIdx.x;" ..
        "__shared__ struct { unsigned a[32]; } s; s.a[31 - threadIdx.x] = own.v;" ..
        "__syncthreads(); x[64 + threadIdx.x] = s.a[threadIdx.x] + p->v; __syncthreads();",
      "__shared__ struct { struct { unsigned a[32]; } in;" ..
        "__device__ unsigned *a() { return in.a; } } q; struct { unsigned *a; } s = { q.a() };",
    }
    local text = {}
    for k, declaration in ipairs(declarations) do
      text[k] = ([[
        extern "C" __global__ void k%d(unsigned *x) {
          %s
          s.a[threadIdx.x] = threadIdx.x * threadIdx.x;
          __syncthreads();
          x[threadIdx.x] = s.a[31 - threadIdx.x];
          x[32 + threadIdx.x] = sizeof s;
        }]]):format(k, declaration)
    end
    local source = table.concat(text, "\n")
    local modules = { module_as("loops", source), module_as("fibers", source) }
    for k = 1, #declarations do
      assert_same("k" .. k, modules, 1, 32, 96)
      assert.are.equal("loops", (modules[1]:kernel("k" .. k):form()))
    end
  end)

  it("take pointers and references to arrays across barriers", function()
    local bodies = {
      "unsigned (*cur)[18] = A; unsigned (*next)[18] = B; for (int k = 0; k < n; k++) {" ..
        "if (t < 18) for (int i = 0; i < 4; i++)" ..
        "next[i][t] = cur[(i + 1) & 3][(t + 1) % 18] + k;" ..
        "__syncthreads(); unsigned (*other)[18] = cur; cur = next; next = other; }" ..
        "o[t] = cur[t & 3][t % 18];",
      "unsigned (&r)[18] = A[t & 3]; o[t] = r[t % 18]; __syncthreads(); A[0][t % 18] = 5;" ..
        "__syncthreads(); o[t] += r[t % 18];",
      "const unsigned (*p)[4] = (const unsigned (*)[4])x; o[t] = p[t / 4][t & 3] + p[0][1];",
      "unsigned m[3][2] = {{t, 1}, {2, x[t]}, {n, 5}}; unsigned (*p)[2] = m; p++;" ..
        "B[0][t % 18] = 3; __syncthreads(); p[1][0] += 3; o[t] = m[2][0] + p[0][1] + B[0][t % 18];",
      "unsigned m[3][2] = {{t, 1}, {2, x[t]}, {n, 5}}; unsigned (&p)[2] = m[t % 3];" ..
        "B[0][t % 18] = 3; __syncthreads(); p[0] += 3; o[t] = m[2][0] + p[0] + B[0][t % 18];",
      "for (int i = 0; i < n; i++) { unsigned (*c)[18] = A + (i & 1);" ..
        "if (t < 18) c[0][t] = i + x[t]; __syncthreads(); o[t] += c[0][(t + 1) % 18];" ..
        "__syncthreads(); }",
    }
    local text, words = {}, {}
    for i = 1, 128 do words[i] = i * 7919 % 6400 end
    for k, body in ipairs(bodies) do
      text[k] = ([[
        extern "C" __global__ void k%d(unsigned *o, const unsigned *x, int n) {
          __shared__ unsigned A[4][18], B[4][18];
          unsigned t = threadIdx.x;
          if (t < 18) for (int i = 0; i < 4; i++) A[i][t] = x[t] + i;
          __syncthreads();
          %s
        }]]):format(k, body)
    end
    local source = table.concat(text, "\n")
    local modules = { module_as("loops", source), module_as("fibers", source) }
    for k = 1, #bodies do
      assert.equal("loops", (modules[1]:kernel("k" .. k):form()))
      for _, threads in ipairs { 128, 40 } do
        assert_same("k" .. k, modules, 1, threads, 128, cg.from(words, "uint32"), 5)
      end
    end
  end)

  -- In shared memory no locked operation is needed; in global memory it is.
  it("count in shared memory, however it is named, and outside of it", function()
    local bodies = {
      "atomicAdd(h[t / 32] + x[t] % 32, 1u); atomicAdd(h[0] + 3, t); atomicMax(g + 4, x[t]);",
      "unsigned *mine = h[t / 32]; atomicMax(mine + 5, x[t]); atomicMin(&mine[6], t);" ..
        "atomicSub(&mine[7], 3u); atomicXor(&mine[8], x[t]); atomicAnd(&mine[9], x[t]);" ..
        "atomicOr(mine + (x[t] & 1) + 10, x[t]); atomicInc(&mine[12], 7u);" ..
        "atomicDec(&mine[13], 5u); atomicCAS(&mine[14], 0u, 7u); atomicExch(&mine[15], 8u);",
      "unsigned *p = h[0]; p = &o[130]; atomicAdd(&p[3], 1u); if (n > 3) p = h[1];" ..
        "atomicAdd(&p[4], 1u);",
      "if (t == 0) a.p = o + 140; __syncthreads(); atomicAdd(&a.p[3], 1u); atomicAdd(a.p, 1u);",
      "if (t < 8) b.a[t] = 1; __syncthreads(); atomicAdd(&b.a[t % 8], 1u);" ..
        "atomicAdd(b.a + 2, 1u); __syncthreads(); o[150 + t % 8] = b.a[t % 8];",
      "float *f = (float *)h[0]; if (t == 0) *f = 0; __syncthreads(); atomicMax(f, (float)x[t]);",
    }
    local text = { [[
      struct holder { unsigned *p; int n; };
      struct bins { unsigned a[8]; int n; };
      __shared__ unsigned g[8];
      __device__ float atomicMax(float *p, float v) {
        int old = *(int *)p;
        while (__int_as_float(old) < v) old = atomicCAS((int *)p, old, __float_as_int(v));
        return __int_as_float(old);
      }]] }
    for k, body in ipairs(bodies) do
      text[k + 1] = ([[
        extern "C" __global__ void k%d(unsigned *o, const unsigned *x, int n) {
          __shared__ unsigned h[4][32]; __shared__ holder a; __shared__ bins b;
          unsigned t = threadIdx.x;
          for (int i = t; i < 128; i += blockDim.x) h[i / 32][i %% 32] = 0;
          if (t < 8) g[t] = 0;
          __syncthreads();
          %s
          __syncthreads();
          o[t] += h[t / 32][t %% 32] + g[t %% 8];
        }]]):format(k, body)
    end
    local source = table.concat(text, "\n")
    local modules, words = { module_as("loops", source), module_as("fibers", source) }, {}
    for i = 1, 128 do words[i] = i * 7919 % 6400 end
    for k = 1, #bodies do
      assert.equal("loops", (modules[1]:kernel("k" .. k):form()))
      for _, threads in ipairs { 128, 96, 40 } do
        assert_same("k" .. k, modules, 1, threads, 160, cg.from(words, "uint32"), 3)
        assert_same("k" .. k, modules, 1, threads, 160, cg.from(words, "uint32"), 4)
      end
    end
  end)

  -- A divisor that is a parameter divides by a product, one from memory as C does.
  it("divide exactly, whatever divides", function()
    local types = { -- of what is divided: its name for C, for buffers, and its range
      { "int", "int32", -2 ^ 31 + 1, 2 ^ 32 - 1 }, { "unsigned", "uint32", 0, 2 ^ 32 },
      { "short", "int16", -2 ^ 15, 2 ^ 16 }, { "unsigned char", "uint8", 0, 2 ^ 8 },
      { "long long", "int64", -2 ^ 45, 2 ^ 46 },
    }
    local divisors = {
      int = { 1, 2, 3, 7, 34, 49, 103, 1000, 65537, 16777217, 2 ^ 31 - 1, -1, -3, -2 ^ 31 + 1 },
      unsigned = { 1, 2, 3, 10, 49, 103, 255, 65535, 8388607, 2 ^ 31, 3000000001, 2 ^ 32 - 1 },
    }
    local n, cases, text = 4096, {}, {}
    for divisor in pairs(divisors) do
      for _, type in ipairs(types) do
        for _, barrier in ipairs { "", "__syncthreads();" } do
          cases[#cases + 1] = { divisor, type }
          text[#text + 1] = ([[
            extern "C" __global__ void k<K>(const <X> *x, const <D> *from, unsigned *wrong, int n,
                                            <D> d) {
              int i = blockIdx.x * blockDim.x + threadIdx.x;
              <B>
              if (i >= n) return;
              <D> by = *from; // no constant, so divided by as it stands
              const bool same = x[i] / d == x[i] / by && x[i] % d == x[i] % by &&
                3 + x[i] / d % d == 3 + x[i] / by % by && 7.5f / d == 7.5f / by;
              if (!same) wrong[i] = <K>;
            }]]):gsub("<(.)>", { K = #cases, X = type[1], D = divisor, B = barrier })
        end
      end
    end
    local module, wrong = cg.module(table.concat(text, "\n")), cg.zeros("uint32", n)
    for k, case in ipairs(cases) do
      local _, name, least, range = unpack(case[2])
      local list = {}
      for i = 1, n do
        local near = i < 600 and (i % 40 - 20) * (i < 300 and 1 or 2 ^ (i % 31)) or
          i < 1600 and i * (i < 1100 and 49 or 103) -- x * (1 / x) is not 1
        list[i] = ((near or i * 2654435761 * 65537) - least) % range + least
      end
      local x = cg.from(list, name)
      for _, d in ipairs(divisors[case[1]]) do
        local from = cg.from({ d }, case[1] == "int" and "int32" or "uint32")
        module:kernel("k" .. k):launch(n / 256, 256, x, from, wrong, n, d)
      end
    end
    for i, k in ipairs(wrong:download()) do
      if k ~= 0 then error(("element %d of kernel %d"):format(i, k)) end
    end
  end)

  it("give what the corpus gives as fibers", function()
    local file, cases, instances, fibers = here .. "/corpus.cu", {}, {}, {}
    for row in io.lines(file) do
      local name, shape = row:match "^//@ (%S+) (.*)$"
      if name then
        local n = {}
        for x in shape:gmatch "%d+" do n[#n + 1] = tonumber(x) end
        cases[#cases + 1] = { name = name, grid = { n[1], n[2], shared = n[5] },
          block = { n[3], n[4] } }
        if name:find "<" then instances[#instances + 1] = name end
      end
    end
    local source = { file = file, options = { "--fmad=false" }, expressions = instances }
    local modules = forms.both(source, nil, nil, "loops")
    local words, floats = 4096, {}
    local numbers = {}
    for i = 1, words do floats[i], numbers[i] = i * 37 % 101 / 16 - 3, i * 7919 % 97 end
    local x, k = cg.from(floats, "float"), cg.from(numbers, "int32")
    for _, case in ipairs(cases) do
      local got = {}
      for i, module in ipairs(modules) do
        local y, m = cg.zeros("float", words), cg.zeros("int32", words)
        module:kernel(case.name):launch(case.grid, case.block, x, y, k, m, words)
        got[i] = { y:download(), m:download() }
      end
      assert.same(got[2], got[1], case.name)
      local info = modules[1]:kernel(case.name):info()
      if info.form ~= "loops" then fibers[#fibers + 1] = case.name .. ": " .. info.why end
    end
    assert.is_true(#cases >= 40)
    assert.is_true(#fibers < 0.05 * #cases, table.concat(fibers, "\n"))
  end)

  it("give what random kernels give as fibers", function()
    local shapes = {
      { 1, 64 }, { 3, 37 }, { 2, { 8, 5, 2 } }, { 2, { 32, 3 } }, { 1, 250 }, { 2, { 48, 2 } },
      { 2, { 7, 9 } }, { 1, 33 },
    }
    local sanitized = (os.getenv "CGRAPHLUA_SANITIZER" or "no") ~= "no"
    local input = forms.numbers(64)
    -- Of 40 two more or less are chance.
    forms.random { usual = sanitized and 40 or 300, prelude = random_kernels.prelude, as = "loops",
      least = sanitized and 0.9 or 0.951, make = random_kernels.kernel,
      try = function(modules, name)
        for i, shape in ipairs(shapes) do
          assert_same(name, modules, shape[1], shape[2],
            16 + 4 * shape[1] * threads_of(shape[2]), input, 5 + i)
        end
      end }
  end)
end)

describe("what a thread hands on across a barrier", function()
  local helpers = [[
__device__ float next(unsigned *s) { return (float)(s[0] = s[0] * 5 + 1 & 1023); }
struct Sum {
  float s = 0.f;
  __device__ float operator()(float v) { return s += v; }
  __device__ float operator<<(float v) { return s += v; }
  __device__ float *self() { return &s; }
  __device__ void add(float v) { s += v; }
};
__device__ void more(float &a, float b) { a += b; }
]]
  local states = {
    ["a pointer"] = "float s = 0.f; float *p = &s; LOOP { *p += X; SYNC Y = *p; }",
    ["a pointer that a function takes"] =
      "unsigned state = 1; unsigned *s = &state; LOOP { SYNC Y = next(s); }",
    ["a call operator"] = "Sum sum = Sum(); LOOP { SYNC Y = sum(X); }",
    ["a shift operator"] = "Sum sum; SYNC LOOP { Y = sum << X; SYNC }",
    ["a method"] = "Sum sum; SYNC LOOP { sum.add(X); SYNC Y = sum.s; }",
    ["a reference parameter"] = "float s = 0.f; LOOP { more(s, X); SYNC Y = s; }",
    ["a pointer from an object"] =
      "Sum sum = Sum(); float *p = sum.self(); LOOP { *p += X; SYNC Y = *p; }",
    ["a cast pointer"] = "const float t = 0.f; const float *q = &t; float *w = (float *)q; " ..
      "LOOP { w[0] = w[0] + X; SYNC Y = w[0]; }",
    ["a reference"] = "float s = 0.f; LOOP { SYNC { float &r = s; r += X; Y = r; } }",
    ["a reference in parentheses"] =
      "float s = 0.f; LOOP { SYNC { float &r(s); r += X; Y = r; } }",
    ["a forwarding reference"] = "float s = 0.f; LOOP { SYNC { auto &&r = s; r += X; Y = r; } }",
    ["parentheses"] = "float s = 0.f; LOOP { SYNC (s) += X; Y = s; }",
    ["a choice"] = "float u = 0.f; LOOP { SYNC (n ? u : u) += X; Y = u; }",
    ["a cast to a reference"] = "float s = 0.f; LOOP { SYNC (float &)s += X; Y = s; }",
    ["an increment"] = "int s = 0; LOOP { ++(s); SYNC Y = s; }",
    ["a parameter"] = "LOOP { n += (int)X; SYNC Y = n; }",
    ["an array"] = "float s[3] = {1.f, 2.f, 3.f}; LOOP { s[j % 3] += X; SYNC Y = s[1]; }",
    ["a name used twice"] = "for (int i = 0; i < 3; i++) { SYNC } LOOP { SYNC int i = j; " ..
      "for (int j = 0; j < 3; j++) i += j; Y = i; }",
  }
  local words = { LOOP = "for (int j = 0; j < 4; j++)", SYNC = "__syncthreads();",
    X = "x[threadIdx.x * 4 + j]", Y = "y[threadIdx.x * 4 + j]" }
  local numbers = {}
  for i = 1, 400 do numbers[i] = i % 13 end

  it("is the thread's own", function()
    local text, names = { helpers }, {}
    for what, body in pairs(states) do
      names[#names + 1] = what
      text[#text + 1] = ('extern "C" __global__ void k%d(const float *x, float *y, int n) { %s }')
        :format(#names, (body:gsub("%u+", words)))
    end
    text = table.concat(text, "\n")
    local loops, fibers = module_as("loops", text), module_as("fibers", text)
    local x = cg.from(numbers, "float")
    for i, what in ipairs(names) do
      local a, b = cg.zeros("float", 400), cg.zeros("float", 400)
      assert.equal("loops", (loops:kernel("k" .. i):form()))
      loops:kernel("k" .. i):launch(1, 100, x, a, 3)
      fibers:kernel("k" .. i):launch(1, 100, x, b, 3)
      assert.same(b:download(), a:download(), what)
    end
  end)
end)

describe("a kernel that cannot be split", function()
  local refused = {
    { "__syncthreads() under a condition that depends on the thread", 3, [[
extern "C" __global__ void k(int *x) {
  int t = threadIdx.x;
  if (t < 32)
    __syncthreads();
  x[t] = __syncthreads_count(t);
}]] },
    { "a loop around a barrier, left on a condition that depends on the thread", 3, [[
extern "C" __global__ void k(int *x) {
  for (int i = 0; i < 4; i++) {
    if (x[threadIdx.x]) break;
    __syncthreads();
  }
}]] },
    { "__syncthreads() under a condition that depends on the thread", 2, [[
extern "C" __global__ void k(int *x) {
  for (int i = 0; i < x[threadIdx.x]; i++) {
    __syncthreads();
  }
}]] },
    { "'goto'", 4, [[
extern "C" __global__ void k(int *x) {
  __syncthreads();
  if (x[0])
    goto end;
  x[threadIdx.x] = 1;
end:;
}]] },
    { "a lambda without a name, which synchronizes", 4, [[
template <class F> __device__ int call(F f) { return f(2); }
extern "C" __global__ void k(int *x) {
  __syncthreads();
  x[threadIdx.x] = call([&](int i) { return __shfl_xor_sync(~0u, i, 1); });
}]] },
    { "a lambda with a copy of 'v', which changes", 3, [[
extern "C" __global__ void k(int *x) {
  int v = x[threadIdx.x];
  auto f = [=](int i) { return i * v; };
  __syncthreads();
  v = 2;
  __syncthreads();
  x[threadIdx.x] = f(3) + v;
}]] },
    { "'mutable'", 3, [[
extern "C" __global__ void k(int *x) {
  __syncthreads();
  auto f = [i = 0]() mutable { return i++; };
  x[f()] = f();
}]] },
    { "a switch around a barrier, or that continues a loop with one", 2, [[
extern "C" __global__ void k(int *x) {
  switch (x[0]) {
  case 1: __syncthreads();
  }
}]] },
    { "'__match_all_sync'", 3, [[
extern "C" __global__ void k(int *x) {
  int same;
  __match_all_sync(~0u, x[0], &same);
}]] },
    { "an operation of several threads behind '||'", 2, [[
extern "C" __global__ void k(int *x) {
  if (2 * (x[0] || __any_sync(~0u, x[threadIdx.x])) > x[2]) x[1] = 2;
}]] },
    { "a call of 'sum', which synchronizes and is overloaded or a member", 4, [[
__device__ int sum(int v) { return v + __shfl_xor_sync(~0u, v, 1); }
__device__ float sum(float v) { return v + __shfl_xor_sync(~0u, v, 1); }
extern "C" __global__ void k(int *x) {
  x[threadIdx.x] = sum(x[threadIdx.x]);
}]] },
    { "a call of 'sum', a template whose argument 'T' is not written", 4, [[
template <class T> struct box { T v; };
template <class T> __device__ T sum(box<T> b) { return b.v + __shfl_xor_sync(~0u, b.v, 1); }
extern "C" __global__ void k(int *x) {
  x[threadIdx.x] = sum(box<int>{x[threadIdx.x]});
}]] },
    { "a call of 'part', which synchronizes and returns before its end", 6, [[
__device__ int part(int v) {
  for (int i = 1; i < 4; i++) if (v) return i;
  return __shfl_xor_sync(~0u, v, 1);
}
extern "C" __global__ void k(int *x) {
  x[threadIdx.x] = part(x[threadIdx.x]);
}]] },
    { "'r', of a type not written out, that lives across a barrier", 2, [[
extern "C" __global__ void k(int *x) {
  auto &r = x[threadIdx.x];
  r = 1;
  __syncthreads();
  r += 2;
}]] },
    { "a warp operation in the else of a condition that depends on the thread", 3, [[
extern "C" __global__ void k(int *x) {
  int v = threadIdx.x;
  if (v % 2) v = __shfl_xor_sync(~0u, v, 2);
  else v = __shfl_xor_sync(~0u, v, 4);
  x[threadIdx.x] = v;
}]] },
    { "$CGRAPHLUA_HOST_KERNELS asks for them", 1 },
  }

  it("runs as fibers, and says why and where", function()
    for _, case in ipairs(refused) do
      if case[3] then
        assert.same({ "fibers", case[1], case[2] }, { form_of(case[3]) })
      end
    end
    local source = [[extern "C" __global__ void k() { __syncthreads(); }]]
    assert.same({ "fibers", refused[#refused][1], 1 }, { module_as("fibers",
      source):kernel():form() })
    assert.same({ "loops" }, { form_of(source) })
    assert.same({ "loop" }, { form_of [[extern "C" __global__ void k() {}]] })
  end)

  it("is not changed by a shift, and by an operator >> of its own", function()
    local source = [[%s
      __device__ void exchange(int &a, int &b) { int c = a; a = b; b = c; }
      extern "C" __global__ void sorts(int *keys) {
        __shared__ int s[64];
        int key = keys[threadIdx.x], t = threadIdx.x;
        for (int bit = 0; bit < 3; bit++) {
          __syncthreads();
          s[t] = key >> bit & 1;
          __syncthreads();
          int before = 0, zeros = 0;
          for (int i = 0; i < 64; i++) {
            zeros += !s[i];
            before += i < t && s[i] == s[t];
          }
          int to = s[t] ? zeros + before : before;
          __syncthreads();
          s[to] = key;
          __syncthreads();
          key = s[t];
        }
        exchange(key, keys[t]);
      }
      extern "C" __global__ void draws(int *numbers) {
        int seed = 3, step = 1, t = threadIdx.x;
        for (int i = 0; i < 4; i++) {
          __syncthreads();
          %s
          if (step > 4) __syncthreads();
        }
        numbers[t] = step;
      }]]
    local read = "struct reader { int *seed; };" ..
      "__device__ void operator>>(reader r, int &to) { to = *r.seed = *r.seed * 5 + 1; }"
    local cases = { { "", "step += seed >> i;" }, { read, "reader r = {&seed}; r >> step;" } }
    for _, case in ipairs(cases) do
      local text, got = source:format(case[1], case[2]), {}
      local loops, fibers = module_as("loops", text), module_as("fibers", text)
      for i, module in ipairs { loops, fibers } do
        local keys, numbers = cg.zeros("int32", 64), cg.zeros("int32", 64)
        local list = {}
        for k = 1, 64 do list[k] = k * 37 % 8 end
        keys:upload(list)
        module:kernel "sorts":launch(1, 64, keys)
        module:kernel "draws":launch(1, 64, numbers)
        got[i] = { keys:download(), numbers:download() }
      end
      assert.same(got[2], got[1])
      assert.equal(0, got[1][1][1])
      assert.equal(7, got[1][1][64])
      if case[1] == "" then
        assert.same({ "loops", "loops" }, { (loops:kernel "sorts":form()),
          (loops:kernel "draws":form()) })
      end
    end
  end)

  it("does not take the others of its source with it", function()
    -- What the splitter takes and the compiler does not.
    local module = module_as("loops", [[
extern "C" __global__ void odd(int *x) {
  struct pair { int a; };
  __syncthreads();
  { struct pair { int b; }; pair p = {1}; x[threadIdx.x] = p.b; __syncthreads(); }
}
extern "C" __global__ void even(int *x) { __syncthreads(); x[threadIdx.x] = 1; }]])
    local odd = module:kernel("odd"):info()
    assert.same({ name = "odd", form = "fibers", line = 1,
      why = "the compiler does not take it as loops" }, odd)
    assert.same({ name = "even", form = "loops" }, module:kernel("even"):info())
  end)

  it("is not decided by what other kernels of its source call", function()
    local module = module_as("loops", [[
struct Scan {
  int *a;
  __device__ int next(int v) { a[threadIdx.x] = v; __syncthreads(); return a[threadIdx.x ^ 1]; }
};
extern "C" __global__ void calls(int *x) {
  __shared__ int s[64];
  Scan scan = {s};
  x[threadIdx.x] = scan.next(x[threadIdx.x]);
}
template <class T> __device__ bool inside(T i, T from, T n) {
  if (i < n && from < n) return true;
  return (i == from && from == n);
}
extern "C" __global__ void windows(int *x, int n) {
  __shared__ int s[64];
  for (int from = 0; from < n / 16; from += 7) {
    s[threadIdx.x] = inside((int)threadIdx.x, from, n) ? x[threadIdx.x] : 0;
    __syncthreads();
    x[threadIdx.x] += s[threadIdx.x ^ 1];
    __syncthreads();
  }
}]])
    assert.same({ name = "calls", form = "fibers", line = 8,
      why = "a call of 'next', a member or of a namespace, which synchronizes" },
      module:kernel("calls"):info())
    assert.same({ name = "windows", form = "loops" }, module:kernel("windows"):info())
  end)

  it("runs as fibers when its compile as loops takes too long", function()
    local lines = {}
    for i = 1, 90 do
      lines[i] = ("v += __shfl_xor_sync(~0u, v * %d, %d); if (threadIdx.x & %d) v ^= x[v & 7];")
        :format(i, i % 31 + 1, i)
    end
    local source = 'extern "C" __global__ void k(int *x) { int v = x[threadIdx.x];' ..
      table.concat(lines, "\n") .. "x[threadIdx.x] = v; }"
    local info = with("CGRAPHLUA_HOST_COMPILE_SECONDS", "1", function()
      return module_as("loops", source):kernel():info()
    end)
    assert.same({ name = "k", form = "fibers", line = 1,
      why = "as loops its compile takes too long" }, info)
  end)

  it("is named in the log when it is asked for", function()
    local said = {}
    cg.on_log(function(text) said[#said + 1] = text end)
    as("why", function()
      cg.module { source = refused[1][3], file = "step.cu", line = 10 }
      cg.module [[extern "C" __global__ void k() { __syncthreads(); }]]
    end)
    cg.on_log(nil)
    assert.same({ "step.cu:12: kernel k runs as fibers: " .. refused[1][1] }, said)
  end)
end)

describe("what goes wrong in a kernel", function()
  --- The name and message of the error that a launch ends with; what it breaks
  -- is a process of its own.
  local function error_of(form, source, block)
    local status, out, err = device.child(([[
      local ffi = require "ffi"
      ffi.cdef "int setenv(const char *, const char *, int);"
      ffi.C.setenv("CGRAPHLUA_HOST_KERNELS", %q, 1)
      ffi.C.setenv("CGRAPHLUA_KERNEL_SECONDS", "1", 1)
      local kernel, x = cg.kernel(%q), cg.zeros("int32", 1024)
      print(kernel:form())
      kernel:launch(1, %d, x)
      local _, e = pcall(cg.synchronize)
      print(e.name, e.message)]]):format(form, source, block))
    assert.equal(0, status, err)
    assert.equal(form, out:match "^%w+")
    return out:match "\n(%S+)%s+(.*)"
  end

  it("has the same name as loops and as fibers", function()
    local cases = {
      { [[extern "C" __global__ void k(int *x) {
  __syncthreads();
  assert(threadIdx.x != 40);
  x[threadIdx.x] = 1;
}]], 64, "thread: [40,0,0]" },
      { [[extern "C" __global__ void k(int *x) {
  x[threadIdx.x] = 1;
  __syncthreads();
  if (x[threadIdx.x] && threadIdx.x == 3) __trap();
}]], 64, "__trap" },
      { [[extern "C" __global__ void k(int *x) {
  if (threadIdx.x < 5) x[threadIdx.x] = __shfl_xor_sync(~0u, x[threadIdx.x], 1);
  __syncthreads();
}]], 64, "divergent barrier" },
      { [[extern "C" __global__ void k(int *x) {
  if (threadIdx.x < 8) x[threadIdx.x] = __shfl_sync(0xffffu, x[threadIdx.x], 1);
  __syncthreads();
}]], 64, "divergent barrier" },
      { [[extern "C" __global__ void k(int *x) {
  x[threadIdx.x] = 1;
  __syncthreads();
  if (x[threadIdx.x] == 1) x[threadIdx.x * 100000000ll] = 5;
}]], 64, "near no allocation" },
      { [[__device__ int deep(int n, int *x) {
  int a[256];
  a[n & 255] = n + x[n & 7];
  return x[0] == 77 ? a[3] : deep(n + 1, x) + a[(n * 3) & 255];
}
extern "C" __global__ void k(int *x) {
  x[threadIdx.x] = 1;
  __syncthreads();
  x[threadIdx.x] = deep(threadIdx.x, x);
}]], 64, "overflowed its stack" },
      { [[extern "C" __global__ void k(int *x) {
  while (x[0] == 0) __syncthreads();
}]], 64, "did not end within" },
    }
    for _, case in ipairs(cases) do
      local wanted, fibers = error_of("fibers", case[1], case[2])
      local name, loops = error_of("loops", case[1], case[2])
      assert.equal(wanted, name)
      assert.is_truthy(loops:find(case[3], 1, true), loops)
      assert.is_truthy(fibers:find(case[3], 1, true), fibers)
    end
  end)

  it("does no harm to the process when it overruns an array of its own", function()
    local status, out, err = device.child [=[
      local text = [[
extern "C" __global__ void over(float *o, int at) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t % 32] = t;
  __syncthreads();
  s[at + t] = 1.5f;
  __syncthreads();
  o[t] = s[t % 32];
}
extern "C" __global__ void next(float *o) {
  __shared__ float s[64];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  o[threadIdx.x] = s[63 - threadIdx.x];
}]]
      local function try(name, ...)
        local module, o = cg.module(text), cg.zeros("float", 64)
        module:kernel(name):launch(40, 64, o, ...)
        local ok, got = pcall(o.download, o)
        return ok and got[1] or got.name .. got.message:match ": kernel over ([^,]*)"
      end
      for _, at in ipairs { 100, 1000, 10000, 100000, 1000000, 4000000 } do
        print(try("over", at))
        collectgarbage()
        collectgarbage()
        cg.reset_device()
        assert(try "next" == 63)
      end]=]
    local said = "CUDA_ERROR_ILLEGAL_ADDRESSran past the end of an array of its own\n"
    assert.same({ 0, said:rep(6) }, { status, out }, err)
  end)

  it("does no harm to the process when it overruns one by little", function()
    local status, out, err = device.child([=[
      local text = [[
extern "C" __global__ void over(unsigned *o, int at) {
  __shared__ unsigned s[32];
  int t = threadIdx.x;
  s[t % 32] = t;
  __syncthreads();
  if (t < 2) s[at + t] = 2147483647u;
  __syncthreads();
  o[t] = s[t % 32];
}]]
      for at = 32, 90, 2 do
        local module, o = cg.module(text), cg.zeros("uint32", 64)
        module:kernel "over":launch(40, 64, o, at)
        if not pcall(cg.synchronize) then
          module, o = nil, nil
          collectgarbage()
          collectgarbage()
          cg.reset_device()
        end
      end
      print "lives"]=], "CGRAPHLUA_KERNEL_SECONDS=0.2")
    assert.same({ 0, "lives\n" }, { status, out }, err)
  end)

  it("is named by the line of the source when it does not compile", function()
    local ok, e = pcall(module_as, "loops", { source = [[extern "C" __global__ void k(int *x) {
  __syncthreads();
  x[threadIdx.x] = nothing;
}]], file = "step.cu", line = 5 })
    assert.is_false(ok)
    assert.equal("CGL_ERROR_COMPILE", e.name)
    assert.is_truthy(e.message:find("step.cu:7", 1, true), e.message)
  end)
end)
