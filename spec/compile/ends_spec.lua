-- Conditions that end a row's work (src/compile/frontend/ends.c): threads that run up to
-- the end that was found do what threads do that are asked one by one.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")
local cg = require "cgraphlua"

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("a condition that ends a row", function()
    pending "is looked for by the host device"
  end)
end

local prelude = [[
  struct size { int w, h; };
  typedef short small;
  typedef unsigned long far;
  #define WIDTH 70
  #define INSIDE(a, b) ((a) < (b))
  #define IF(c) if c if (sizeof(#c) == 8)
  __device__ int limit = 50;
  __device__ bool is_in(unsigned a, int b) { return (a & 3u) < (unsigned)b; }
  __device__ int drawn(unsigned *out) { atomicAdd(&out[1], 1u); return 40; }
]]

-- x and y are the thread's places, the word of its own is out[2 + x + row * width]; n, m,
-- u, l, f and s are given.  `mark` is the only thing that a thread does: it counts, so that
-- a thread that is run twice or not at all is seen.
local function kernel(name, before, after)
  return ([[
  extern "C" __global__ void %s(unsigned *out, const int *in, int n, int m, unsigned u,
                                long long l, float f, size s) {
    %s
    %s
  }]]):format(name, before, after)
end

local places = "%s x = blockIdx.x * blockDim.x + threadIdx.x; "
  .. "int y = blockIdx.y * blockDim.y + threadIdx.y; "
local mark = "atomicAdd(&out[2 + (unsigned)x + (unsigned)y * gridDim.x * blockDim.x], "
  .. "1u + (unsigned)x * 3u);"

local shapes = { { { 3, 2 }, { 37, 3 } }, { { 2, 5 }, { 64, 1 } }, { { 1, 1 }, { 1, 1 } },
  { { 9, 2 }, { 20, 4 } } }
local values = {
  { 50, 3, 41, 90, 33.5, { 60, 4 } }, { 0, 0, 0, 0, 0, { 0, 0 } },
  { -1, 7, 4294967295, -5, 0 / 0, { -3, 900 } }, { 1000, 1, 111, 2 ^ 40, 1e9, { 111, 6 } },
  { 110, 5, 109, 112, -1, { 1, 1 } },
}

local input = cg.from({ 44, 7, 100, -2 }, "int32")

local function compare(modules, name, text)
  for _, shape in ipairs(shapes) do
    local words = 2 + shape[1][1] * shape[1][2] * shape[2][1] * shape[2][2]
    for _, v in ipairs(values) do
      forms.same(modules, name, shape[1], shape[2], text, words, input, v[1], v[2], v[3], v[4],
        v[5], { w = v[6][1], h = v[6][2] })
    end
  end
end

--- How many conditions of each kernel are asked for a row.
local function count_ends(source, n)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder) == 0)
  forms.with("CGRAPHLUA_HOST_KEEP", folder, function()
    forms.with("CGRAPHLUA_CACHE", "off", function()
      forms.quickly("-O0", function() forms.module_as(nil, source) end)
    end)
  end)
  local file = io.popen("cat " .. folder .. "/*/kernel.cc")
  local text, counts = file:read "*a", {}
  file:close()
  os.execute("rm -r " .. folder)
  for i = 1, n do
    local body = assert(text:match("void written" .. i .. "(%(.-\n  })"))
    counts[i] = select(2, body:gsub("::cgl_within", ""))
  end
  return counts
end

-- How many ends it has, what stands in front, and the rest.
local size_t = places:format "size_t"
local unsigned = places:format "unsigned"
local int = places:format "int"
local written = {
  { 1, size_t, "if (x < n) { MARK }" },
  { 1, size_t, "if (x >= n) return; MARK" },
  { 1, size_t, "if (x >= n) { return; } for (int k = 0; k < 2; k++) MARK" },
  { 1, unsigned, "if (x < u && y < m) MARK" },
  { 1, unsigned, "if (x >= u || y >= m) return; MARK" },
  { 2, unsigned, "if (x >= u) return; if (y >= m) return; MARK" },
  { 3, unsigned, "if (x >= u) return; int z = x * 2; if (y >= m) return; if (x < WIDTH) { MARK }" },
  { 1, unsigned, "if (!(x < u && y < m)) return; MARK" },
  { 1, unsigned, "if (not (x < u and y < m)) return; MARK" },
  { 1, unsigned, "if (n > x) MARK" },
  { 1, unsigned, "if (x <= n / 2) { MARK }" },
  { 1, unsigned, "if (x + 1 < n) { MARK }" },
  { 1, unsigned, "if (x < s.w && y < s.h) { MARK }" },
  { 1, unsigned, "if (x < in[1] * 9) { MARK }" },
  { 1, unsigned, "if (x < min(n, m) + 30) { MARK }" },
  { 1, unsigned, "if (x < limit) { MARK }" },
  { 1, unsigned, "if (x < n || y < m) { MARK }" },
  { 1, unsigned, "if ((x < n && y < m) || x < 9) { MARK }" },
  { 1, unsigned, "if (x > 0 && x < n - 1 && y > 0 && y < m) { MARK }" },
  { 1, unsigned, "if (x < 2 || x >= n || y == 1) return; MARK" },
  { 1, places:format "far", "if (x < l) { MARK }" },
  { 1, places:format "auto", "if (x < l) { MARK }" },
  { 1, places:format "long long", "if (x < f) { MARK }" },
  { 1, int, "if (x < l && y < f) { MARK }" },
  { 1, int, "if (x < f) { MARK }" },
  { 1, int, "if (x >= u) return; if (x & 1) return; MARK" },
  { 1, int, "if (x < (n > 9 ? l : u)) { MARK }" },
  { 1, int .. "float v = in[x & 3];", "if (x < l) { if (v > 9.f) { MARK } }" },
  { 1, "int y = 0; size_t x = (size_t)blockIdx.x * blockDim.x + threadIdx.x;",
    "if (x >= n) return; MARK" },
  { 1, "int y = 0, x = (int)(blockIdx.x * blockDim.x + threadIdx.x);", "if (x < l) MARK" },
  { 1, "int y = 0, x = blockIdx.x * blockDim.x + threadIdx.x;",
    "if (blockIdx.x * blockDim.x + threadIdx.x < n) { MARK }" },
  -- Masks of ints cost nothing.
  { 0, int, "if (x < n && y < m) { MARK }" },
  { 0, int, "if (x >= s.w) return; MARK" },
  -- No ends.
  { 0, unsigned, "if (x < n) { MARK } else out[0] = 1;" },
  { 0, unsigned, "if (x < n) { MARK } MARK" },
  { 0, unsigned, "if (x < n) if (x & 1) { MARK } else out[0] = 1;" },
  { 0, unsigned, "if (x >= n) { MARK return; } MARK" },
  { 1, unsigned, "if (x >= n) return; else MARK" },
  { 0, unsigned, "MARK if (x >= n) return; MARK" },
  { 0, unsigned, "if (x < n && x != 7) { MARK }" },
  { 0, unsigned, "if (x == n || x < 5) { MARK }" },
  { 0, unsigned, "if (x > u) { MARK }" },
  { 0, unsigned, "if (x < n && x > u) { MARK }" },
  { 0, unsigned, "if (x > 9 && x < n) { MARK }" },
  { 0, unsigned, "if (3 < x && x < n) { MARK }" },
  { 0, unsigned, "if (x - 3 < n) { MARK }" },
  { 0, unsigned, "if (x * 3 < n) { MARK }" },
  { 0, unsigned, "if (x % 64 < n) { MARK }" },
  { 0, unsigned, "if ((x < n) == (y < m)) { MARK }" },
  { 0, unsigned, "if ((x < n) ^ 1) { MARK }" },
  { 0, unsigned, "if (x < n & m) { MARK }" },
  { 0, unsigned, "if (x < n ? y < m : x < u) { MARK }" },
  { 0, unsigned, "if (y, x < n) { MARK }" },
  { 0, unsigned, "if (x < m < n) { MARK }" },
  { 0, unsigned, "if (x << 1 < n) { MARK }" },
  { 0, unsigned, "if (-x < n) { MARK }" },
  { 0, unsigned, "if (x < in[x & 3]) { MARK }" },
  { 0, unsigned, "if (x < drawn(out)) { MARK }" },
  { 0, unsigned, "if (is_in(x, n)) { MARK }" },
  { 0, unsigned, "if (x < n--) { MARK }" },
  { 0, unsigned, "if (INSIDE(x, drawn(out))) { MARK }" },
  { 0, places:format "short", "if (x * 1u < u) { MARK }" },
  { 0, places:format "small", "if (x < u) { MARK }" },
  { 0, places:format "unsigned char", "if (x < u) { MARK }" },
  { 0, "int y = 0; unsigned x = (unsigned char)(blockIdx.x * blockDim.x + threadIdx.x);",
    "if (x < u) { MARK }" },
  { 0, unsigned .. "unsigned z = x; z += 5u;", "if (z < u) { MARK }" },
  { 0, unsigned .. "unsigned z = x; unsigned &r = z; r = 3u * (x & 7u);", "if (z < u) { MARK }" },
  { 0, unsigned .. "const auto in_it = [=]() { return x < u; };", "if (in_it()) { MARK }" },
  { 0, unsigned .. "static const int z = 40;", "if (x < z) { MARK }" },
  { 0, unsigned .. "volatile int z = n;", "if (x < z) { MARK }" },
  { 0, unsigned .. "int z = drawn(out);", "if (x < u && z < 99) { MARK }" },
  { 0, unsigned .. "out[0] = 3;", "if (x < u) { MARK }" },
  { 1, unsigned .. "float v = in[x & 3]; if (x >= u) return; else auto v = n;",
    "if (x < v) { MARK }" },
  { 0, unsigned .. "auto z = *in;", "if (x < z) { MARK }" },
  { 1, unsigned, "if (x >= u) return; if (n, y < m) { MARK }" },
  { 1, unsigned, "if (x >= u) return; if (int k = 3; y < m + k) { MARK }" },
  { 0, unsigned, "IF((x < u)) { MARK }" },
  { 0, unsigned .. "{ unsigned x = 3; }", "if (x < u) { MARK }" },
}

describe("a condition that ends a row", function()
  it("is found where it is one, and changes nothing", function()
    local texts = {}
    for i, w in ipairs(written) do
      texts[i] = kernel("written" .. i, w[2], (w[3]:gsub("MARK", function() return mark end)))
    end
    local source = prelude .. table.concat(texts, "\n")
    for i, n in ipairs(count_ends(source, #written)) do
      assert(n == written[i][1], ("%d ends instead of %d: %s"):format(n, written[i][1], texts[i]))
    end
    for _, level in ipairs { "-O0", "-O3" } do
      local modules = forms.both(source, "plain", level)
      for i = 1, #written do compare(modules, "written" .. i, texts[i]) end
    end
  end)

  it("is found beside operators where only numbers are compared", function()
    local before = "__device__ float2 operator+(float2 a, float2 b) "
      .. "{ return make_float2(a.x + b.x, a.y + b.y); }" .. prelude
    local texts = { kernel("written1", unsigned, "if (x < u && y < n) { " .. mark .. "}"),
      kernel("written2", unsigned, "if (x < s.w) { " .. mark .. "}"),
      kernel("written3", unsigned, "if (x < limit) { " .. mark .. "}") }
    assert.same({ 1, 0, 0 }, count_ends(before .. table.concat(texts, "\n"), 3))
  end)

  it("is none in a macro, behind a directive or in a kernel with barriers", function()
    local body = "{ unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = 0;\n%s %s\n  }"
    local head = "extern \"C\" __global__ void written%d(unsigned *out, unsigned n) "
    local source = "#define KERNEL(name) "
      .. 'extern "C" __global__ void name(unsigned *out, unsigned n) '
      .. body:format("if (x < n)", mark):gsub("\n", " ") .. "\nKERNEL(made)\n"
      .. head:format(1) .. body:format("#if 1\nif (x < n)\n#endif\n", mark) .. "\n"
      .. head:format(2) .. body:format("if (x >= n) return; __syncthreads();", mark)
    assert.same({ 0, 0 }, count_ends(source, 2))
    local modules = forms.both(source, "plain")
    for _, name in ipairs { "made", "written1", "written2" } do
      for _, n in ipairs { 0, 5, 77, 200 } do
        forms.same(modules, name, 3, 50, name, 152, n)
      end
    end
  end)

  it("is none by a number or a type that means something else", function()
    local head = 'extern "C" __global__ void written1(unsigned *out, unsigned u) { '
    local tail = mark:gsub("%(unsigned%)y", "0u") .. " } }"
    local sources = {
      "__device__ constexpr unsigned operator\"\"_neg(unsigned long long v) { return 0u - v; }"
        .. head .. "unsigned x = blockIdx.x * blockDim.x + threadIdx.x; if (x + 4_neg < u) { "
        .. tail,
      "typedef unsigned char idx; namespace a { typedef unsigned idx; }" .. head
        .. "idx x = blockIdx.x * blockDim.x + threadIdx.x; if (x < u) { " .. tail,
    }
    for i = 1, 2 do
      assert.same({ 0 }, count_ends(sources[i]:gsub(" }$", "\n  }"), 1))
      local modules = forms.both(sources[i], "plain")
      for _, u in ipairs { 0, 2, 41, 300, 4000 } do
        forms.same(modules, "written1", 40, 100, sources[i], 4002, u)
      end
    end
  end)

  it("is that of the instance's own text and types", function()
    local specialised = [[
      template <class T> __global__ void part(unsigned *out, unsigned u, unsigned v) {
        unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
        if (x >= u) return;
        out[x] += sizeof(T);
      }
      template <> __global__ void part<char>(unsigned *out, unsigned u, unsigned v) {
        unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
        if (x * 3 >= u) return;
        out[x] += 77 + v;
      }]]
    local unlike = [[
      template <class T> __global__ void part(unsigned *out, unsigned u, unsigned v) {
        unsigned x = blockIdx.x * blockDim.x + threadIdx.x;
        if (x >= u) return;
        T z = x;
        if (z >= v) return;
        out[x] += 1;
      }]]
    for _, t in ipairs { { specialised, "part<int>", "part<char>" },
      { unlike, "part<unsigned>", "part<unsigned char>" },
      { unlike, "part<unsigned char>", "part<unsigned>" } } do
      local function make() return cg.module { source = t[1], expressions = { t[2], t[3] } } end
      local modules = { make(), forms.with("CGRAPHLUA_HOST_KERNELS", "plain", make) }
      for i = 2, 3 do
        for _, u in ipairs { 0, 100, 900, 2000 } do
          forms.same(modules, t[i], 10, 100, t[1], 1000, u, 30)
        end
      end
    end
  end)

  it("is one for each instance of a template", function()
    local source = [[
      template <class T, class N> __global__ void part(unsigned *out, N n) {
        T x = blockIdx.x * blockDim.x + threadIdx.x;
        if (x >= n) return;
        out[(unsigned)x & 1023u] += 1u + (unsigned)x;
      }]]
    local names = { "part<int, int>", "part<size_t, int>", "part<short, unsigned>",
      "part<unsigned char, long long>", "part<long, float>", "part<float, double>" }
    local modules = forms.quickly("-O2", function()
      local function make() return cg.module { source = source, expressions = names } end
      return { make(), forms.with("CGRAPHLUA_HOST_KERNELS", "plain", make) }
    end)
    for _, name in ipairs(names) do
      for _, n in ipairs { 0, 1, 77, 100, 128, 400 } do
        forms.same(modules, name, 3, 100, name, 1024, n)
      end
    end
  end)

  it("leaves an error where it is in the script", function()
    local ok, message = pcall(cg.module, { file = "k.cu", line = 1, source =
      "__global__ void k(float *y, unsigned n) {\n"
      .. "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      .. "  if (i < n + nothing) y[i] = 1.f;\n}\n" })
    assert.is_false(ok)
    assert.matches("k.cu:3:15: error: .*nothing", message)
  end)

  it("gives what random conditions give thread by thread", function()
    local function condition(roll, depth)
      local steady = { "n", "m", "u", "l", "f", "s.w", "in[0]", "(n + m)", "n / 2", "WIDTH",
        "y * 9" }
      local place = { "x", "x", "x", "(x)", "x + 3", "z" }
      local k = roll(depth > 0 and 9 or 4)
      if k <= 3 then
        local a, b = place[roll(#place)], steady[roll(#steady)]
        local less, more = roll(2) == 1 and "<" or "<=", roll(2) == 1 and ">" or ">="
        if roll(8) == 1 then return a .. " " .. more .. " " .. b end
        if roll(8) == 1 then return "x " .. more .. " " .. roll(9) end
        if roll(3) == 1 then return b .. " " .. more .. " " .. a end
        return a .. " " .. less .. " " .. b
      elseif k == 4 then
        return "y < " .. steady[roll(#steady)]
      elseif k == 5 then
        return "!(" .. condition(roll, depth - 1) .. ")"
      elseif k == 6 then
        return "(" .. condition(roll, depth - 1) .. ")"
      end
      return condition(roll, depth - 1) .. (k < 9 and " && " or " || ")
        .. condition(roll, depth - 1)
    end
    local types = { "size_t", "unsigned", "int", "long long", "far", "auto", "const unsigned" }
    forms.random { usual = 100, prelude = prelude, form = "loop", least = 0.9, against = "plain",
      make = function(name, seed)
        local state = seed * 7919
        local function roll(n)
          state = (state * 1103515245 + 12345) % 2147483648
          return 1 + math.floor(state / 65536) % n
        end
        local before = places:format(types[roll(#types)]) .. "const auto z = "
          .. (roll(2) == 1 and "x" or "x * 2 + 1") .. "; "
        for _ = 1, roll(3) - 1 do
          before = before .. "if (!(" .. condition(roll, 2) .. ")) return; "
        end
        if roll(2) == 1 then return kernel(name, before, mark) end
        return kernel(name, before, "if (" .. condition(roll, 2) .. ") { " .. mark .. " }")
      end,
      try = compare }
  end)
end)
