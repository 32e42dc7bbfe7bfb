-- Kernels without barriers that look at their neighbours, on the host device:
-- rows of threads inside an array, which run without the questions about its
-- edges, do what threads do one by one.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")
local random_kernels = dofile(here .. "/../support/kernels.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("a kernel with edges", function()
    pending "in rows is the host device's"
  end)
end

local shapes = { { 2, 64 }, { { 3, 2 }, { 37, 3 } }, { { 2, 2, 2 }, { 16, 5, 2 } },
  { { 5, 2 }, { 20, 7 } }, { { 7, 3 }, { 16, 16 } }, { 3, 512 }, { { 2, 9 }, { 1, 8 } } }

-- That the kernel does the same in both modules.
local function compare(modules, name, text)
  local input = forms.numbers(64)
  for i, shape in ipairs(shapes) do
    forms.same(modules, name, shape[1], shape[2], text, 16384, input, 5 + i)
  end
end

-- Statements with one comparison or slide each that must be asked thread by thread, or turn
-- by turn: `a` is what a thread adds up, gx its place along x and n a small number; `half`
-- and `quarter` are parts of 2^32 and `wide` half of it as a long.
local traps = {
  "if (gx - 3 > 100u) a += 5u;",
  "if (gx - 3 == 4294967295u) a += 5u;",
  "if (gx == 9) a += 5u;",
  "if (gx == 9 || blockIdx.x == 1) a += 5u; else a = a * 3u + 1u;",
  "if (gx == 0 || threadIdx.y == 0 || gx == n || blockIdx.y == 1) a = 7u; else a += in[gx & 63];",
  "const int row = blockIdx.y * 4 + threadIdx.y; if (gx != 2 && row != 2 && row != n) a += 11u;",
  "a += in[((unsigned)gx - 3u) % 60u];",
  "a += in[(gx - 3) % 64u];",
  "a += in[(gx - 3) % 63u];",
  "for (int d = 0; d < 5; d += -1 - n % 3) if (gx + d < 1) break; else a = a * 3u + d;",
  "for (int d = 0; d < 3; d += 4294967295u) if (gx + d < 3) break; else a = a * 3u + d;",
  "for (int d = 0; d < 4294967290u; d++) if (gx + d >= 600) { a += d; break; }",
  "for (int d = -2; d <= 2; d++) if (gx + abs(d) > 0) a = a * 3u + d;",
  "for (int d = -2; d <= 2; d++) if (gx + n * abs(d) >= n) a = a * 3u + d;",
  "for (int d = -4; d <= 4; d++) if (gx + d * d * 9 >= 130) a = a * 3u + d;",
  "for (int d = -4; d <= 4; d++) { int at = d * 9; if (gx + at * d >= 130) a = a * 3u + d; }",
  "for (int d = -4; d <= 4; d++) if (gx + d * 9 < 500 + d * d * 9) a = a * 3u + d;",
  "for (int d = 0; d < 2; d++) { int w = d; if (gx + d * 40 < n + 9 + w * 40) a = a * 3u + d; }",
  [[for (int k = 0; k < 2; k++) { int radius = gx & 7;
    for (int d = 0; d < radius; d++) if (gx + d < 516) a = a * 3u + d; }]],
  [[for (int k = 0; k < 3; k++) { int radius = k * 300;
    for (int d = 0; d < radius; d++) if (gx + d < 516) a += d; else break; }]],
  "for (int k = 0; k < 2; k++) { int m(k * 2000); if (gx < m) a += 3u; }",
  "for (int k = 0; k < 2; k++) { int m{k * 2000}; if (gx < m) a += 3u; }",
  "for (int k = 0; k < 2; k++) { int m = k * 2000; m++; if (gx < m) a += 3u; }",
  "for (int k = 0; k < 2; k++) { int n = k * 2000; if (gx < n + 600) a += 3u; }",
  "for (int k = 0; k < 2; k++) { int n{k * -2000}; if (gx < n + 600) a += 3u; }",
  "for (int k = 0; k < 2; k++) { const auto n(k * -2000); if (gx < n + 600) a += 3u; }",
  "for (int k = 0; k < 2; k++) { int gx = k * 900; if (gx < 600) a += 3u; }",
  [[for (int e = 0; e < 3; e++) a += e;
    for (int d = 0, e = 597; d < 6; d++, e++) if (e + gx < 600) a++;]],
  "for (int d = 0, m(-900); d < 6; d++) if (gx < m) a++;",
  [[for (int e = 0; e < 3; e++) if (e + gx < 508) a++;
    for (int e = 0; e < 9; e++) if (e + gx < 508) a++;]],
  "for (int e = 0; e < 9; e++) { int m = e; a += m; } for (int m = 500; gx < m; m /= 2) a++;",
  "for (int d = 0; d <= 2; d++) { int at = gx + d * half; if (at < 0) a += d + 3; }",
  "for (int d = -2; d <= 2; d++) { long far = gx + d - 8u; if (far < 1000) a = a * 5u + d; }",
  "for (int d = 0; d <= 2; d++) { int cut = gx + d * wide; if (cut < 0) a = a * 5u + d; }",
  "for (int d = 0; d <= 4; d++) { int at = gx + d * quarter; if (at < 999) a = a * 3u + d; }",
  "for (int d = 0; d <= 4; d++) if (gx + d * quarter < 999u) a = a * 3u + d;",
  "for (int d = -2; d <= 2; d++) if (gx + d < 999u) a = a * 3u + d;",
  [[for (int d = 0; d < 3; d++) { long at = gx + d * wide;
    a += in[min((int)at, 900) & 63]; }]],
  "for (int d = 0; d < 3; d++) if ((short)(d * 32768) + gx < 0) a = a * 3u + d;",
  "for (int d = 0; d < 3; d++) if ((int)(d * wide) + gx < 0) a = a * 3u + d;",
  "for (int d = -2; d <= 2; d++) { if (gx + d < 600) a = a * 3u + d; d += 500; }",
  "for (int d = -9; d < 10; d += 4) { int at = gx + d; if (at < 0 || at >= 45) continue; a += d; }",
  "for (int d = -9; d < 10; d += 4) a = a * 3u + in[min(max(gx + d, 0), 90) & 63];",
  "for (int d = -9; d < 10; d += 4) a = a * 3u + in[(gx + d + 90) % 90 & 63];",
  "for (int d = -9; d < 10; d++) if (gx + d != 3) a = a * 3u + d;",
  [[for (int d = 5; d < n % 5; d++) if (gx > 900) break; else
    a += in[min(max(gx + d, 0), n) & 63] + in[(gx + d) % n & 63];]],
  "float f = max(gx, 10.5f); a += (unsigned)(f * 2.0f);",
  "for (int d = 0; d < 3; d++) if (gx + 0.4f * d < 20.5f) a = a * 3u + d;",
  "a += in[(gx + 7) % +n];",
  "a += gx % -n;",
  "a += 9000 / (gx + 1) % 7;",
  "a += -gx % n + 7;",
  "a += 7 - gx % n * n;",
  "a += (gx + 9) % (n + 2) * 3 - gx % n;",
  [[for (int d = -1; d < 2; d++) for (int e = d; e < 3; e++)
    if (gx + d - e * 4 >= 2 && gx + d * e < 60) a = a * 3u + in[gx + d * e & 63];]],
  [[for (int d = -9; d < 2; d++) for (int e = d; e < 1; e++) if (gx - e * 4 >= 2) a = a * 3u + e;]],
  "int c = gx; while (c < 90) { if (c & 1) { c += 3; continue; } a = a * 3u + c; c += n; }",
  "int c = gx; while (c < 90) { a = a * 3u + c; c += n; } a ^= c;",
  "int c = gx; while (c < 90) { a = a * 3u + c; c += n; } for (c += 2; c < 200; c += 70) a ^= c;",
  "int c = gx; auto f = [&] { return c; }; while (c < 90) { a = a * 3u + f(); c += n; }",
  "int c = gx, *p = &c; while (c < 90) { a = a * 3u + *p; c += n; }",
  "int c = gx; int &r = c; while (c < 90) { a = a * 3u + r; c += n; }",
  "int c = gx; while (c < 90) { a = a * 3u + c; if (c == 12) break; c += n; }",
  "int c = gx, s = 9; while (c < 90) { int s = n; a = a * 3u + c; c += s; } a += s;",
  "int c = gx; while (c < 90) { int c = 3; a = a * 3u + c; c += n; if (a) break; }",
  "int c = gx; for (int k = 0; k < 3; k++) while (c < 90) { a = a * 3u + c + k; c += 40; break; }",
  "short c = gx; while (c < 90) { a = a * 3u + c; c = c + n; }",
  [[long c = gx; for (int i = c; c < 90; c += n, i = c) {
    a = a * 3u + i; if (i & 4) continue; a++; }]],
  "long c = gx; for (short i = c; c < 90000; c += 30000, i = c) a = a * 3u + i;",
  "for (long c = gx + wide; c < wide + 90; c += n) { int i = c; a = a * 3u + i; }",
  "int c = gx - 500; while (c < n) { a = a * 3u + c; c += blockDim.x; }",
  "unsigned c = gx - 500; while (c < n) { a = a * 3u + c; c += blockDim.x; }",
  "for (unsigned c = gx - 500; c < n; c += blockDim.x) a = a * 3u + c;",
  "for (int c = gx + (half - 40u); c < n; c += quarter) a = a * 3u + c;",
  "int c; for (c = gx; c < 90; c += n) a = a * 3u + c; for (c = 1; c < 9; c += n) a ^= c;",
  [[for (int k = 0; k < 2; k++) { enum { q = 3, w, edge };
    if (gx < edge + 900) a += 3u; }]],
  [[for (int k = 0; k < 2; k++) { struct pair { int u, v; } both = { k * 9, 0 };
    auto [m, edge] = both; if (gx < m + 900) a += 7u; }]],
}
-- The same where a function of the source takes a reference.
local changes = {
  "if (n) { int at = gx; if (i & 1) (unsigned &)at += 900u; if (at < 600) a += 3u; }",
  "if (n) { int at = gx; bump((unsigned &)at, 3u); if (at < 600) a += 5u; }",
  "if (n) { int at = gx; int &r = at; r += i & 1 ? 900 : 0; if (at < 600) a += 7u; }",
  "if (n) { int at = gx; int *p = &at; *p += i & 1 ? 900 : 0; if (at < 600) a++; }",
  "if (n) { int at = gx; unsigned &r = (unsigned &)at; r += i % 2 * 900; if (at < 600) a += 9u; }",
  "if (n) { int at = gx; at += i & 1 ? 900 : 0; if (at < 600) a += 9u; }",
}

describe("a kernel with edges", function()
  teardown(device.nothing_alive)

  -- Kernels of these bodies, in rows for the sake of a first slide, are compared; they are
  -- no strips, as they ask for threadIdx.x.
  local function try(bodies, more)
    local text = { more }
    for k, body in ipairs(bodies) do
      text[#text + 1] = ([[
      extern "C" __global__ void trap%d(unsigned *all, const unsigned *in, int n) {
        int gx = blockIdx.x * blockDim.x + threadIdx.x;
        int gy = blockIdx.y * blockDim.y + threadIdx.y;
        unsigned i = gridDim.x * blockDim.x * (gy + blockIdx.z * gridDim.y * blockDim.y) + gx;
        unsigned a = in[(gx + 3) %% 5000 & 63] + (threadIdx.x & 0u);
        unsigned half = n + 2147483648u - n, quarter = half / 2;
        long wide = half;
        %s
        all[i] = a;
      }]]):format(k, body)
    end
    local modules = forms.both(table.concat(text, "\n"), "plain")
    for k = 1, #bodies do
      assert.equal("loops", (modules[1]:kernel("trap" .. k):form()), bodies[k])
      compare(modules, "trap" .. k, bodies[k])
    end
  end

  it("asks each thread, and each turn of a loop, what differs among them", function()
    try(traps, "constexpr int radius = 3; constexpr int m = 50; constexpr int edge = 30;")
    try(changes, "__device__ void bump(unsigned &x, unsigned by) { x = x * 5u + by; }")
  end)

  it("takes no function of the source for a slide", function()
    try({ "auto q = min(gx, 20); a += in[q & 63] + in[max(gx, 9) & 63];" }, [[
      __device__ int min(int a, int b) { return a % 7 == 3 ? b : a; }
      template <class T> __device__ T max(T a, T b) { return a % 7 == 3 ? b : a; }]])
    try({ [[auto min = [](int i, int k) { return i % 7 == 3 ? k : i; };
      int q = min(gx, 3); a += q; a += in[min(gx, 20) & 63];]] }, "")
  end)

  it("gives in rows what it gives thread by thread, for random kernels", function()
    -- What is an argument may change in every other part.
    forms.random { usual = 60, least = 0.4, against = "plain",
      prelude = function(part) return part % 2 == 1 and random_kernels.plain_prelude or "" end,
      make = function(name, seed, part)
        return random_kernels.window_kernel(name, seed, part % 2 == 1)
      end,
      try = function(modules, name, text)
        assert.equal("loop", (modules[2]:kernel(name):form()))
        compare(modules, name, text)
      end }
  end)
end)
