-- Loops that the threads of a strip leave one by one (src/compile/loops/lanes.c) give
-- what each thread gives alone.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("loops that threads leave one by one", function()
    pending "strips are the host device's"
  end)
end

local shapes = { { 3, 64 }, { { 2, 3 }, { 20, 4 } }, { 1, 1 }, { 2, 250 }, { { 5, 2 }, { 7, 3 } } }

local function compare(modules, name, text)
  local input = forms.numbers(64)
  for i, shape in ipairs(shapes) do
    forms.same(modules, name, shape[1], shape[2], text, 512, input, 3 + 7 * i)
  end
end

-- Products of floats are exact in all of them, so that it does not matter how the
-- compiler contracts them.
local function kernel(name, body, guard)
  return ([[
  extern "C" __global__ void %s(unsigned *out, const unsigned *in, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int j = blockIdx.y * blockDim.y + threadIdx.y;
    %s
    unsigned a = in[i & 63], b = in[(i + 9 * j) & 63];
    int c = 0, k = j;
    float x = (float)(a & 255u) * 0.5f, y = 1.f;
    float2 p = make_float2(0.f, x);
    %s
    out[j * gridDim.x * blockDim.x + i] = a ^ b * 3u ^ (unsigned)(c * 5 + k * 7) ^
      (unsigned)x ^ (unsigned)(p.x + p.y + y + 4096.f);
  }]]):format(name, guard or "", body)
end

local prelude = [[
  __device__ unsigned mix(unsigned v) { return (v ^ (v >> 9)) * 40503u; }
  __device__ unsigned either(unsigned u, unsigned v) { if (u & 8u) return mix(v); return u; }
  __device__ unsigned third(unsigned v) { return v / 3u; }
  __device__ unsigned fifth(unsigned v) { for (int k = 0; k < 5; k++) v = v * 3u + k; return v; }
  __device__ float halved(float v) { const float w = 2.f; return v / w; }
  __device__ void bump(unsigned &v) { v = v * 3u + 1u; }
  __device__ float2 operator+(float2 u, float2 v) { return make_float2(u.x + v.x, u.y + v.y); }
  __device__ int changed, known = 5;
  __device__ unsigned counted() { changed = 3; return 1u; }
  __device__ struct { int n; } both;
]]

-- A body, the form it runs in (strips where none is said), and what it is.
local written = {
  { "while (c < n && (a & 7u) != 3u) { a = a * 5u + b; c++; }" },
  { "while (c < 40) { c++; if ((a & 15u) == 2u) continue; a = a * 5u + b; if (b > a) break; "
    .. "b ^= a; }" },
  { "for (int m = 0; m < (int)(a & 31u); m++) { b = b * 3u + m; if (b & 64u) { a ^= b; "
    .. "continue; } else if (m > 9) break; k += m; }" },
  { "for (c = 20; c > (int)(b & 15u); --c) a ^= b + c;" },
  { "for (int m = 0, l = n; m < l; m++, l--) { if (a % 2u) break; a = a * 3u; }", "loop" },
  { "do { a = a * 7u + 1u; c++; } while (c < 30 && (a & 48u));" },
  { "do { c++; if (a & 1u) { a ^= 6u; continue; } a = a * 7u + 1u; } "
    .. "while (c < 30 && (a & 48u));" },
  { "for (;;) { if (c++ > 33) break; a = a * 3u + b; if ((a & 3u) == 1u) break; }" },
  { "while (true) { if (c++ > 33) break; { unsigned a = b * 3u; if (a & 1u) b ^= a; } "
    .. "a = a * 3u + b; if ((a & 3u) == 1u) { k = 9; break; } else { k += 2; } }" },
  { "for (int m = 0; m < n; m++) { do { a = a * 1664525u + 1013904223u; c++; } while (a >> 30); "
    .. "if (a & 64u) k++; }" },
  { "for (int m = 0; m < n; m++) { while (a & 3u) { a = a * 5u + 1u; if (c++ > 99) break; } }" },
  { "if (n > 11) while ((a & 7u) && c < 20) { a = a * 3u; c++; } else k = 3;" },
  { "if (a & 1u) while ((a & 14u) && c < 20) { a = a * 3u; c++; }", "loop" },
  { "while (c++ < 20 && x > 3.f) { x = (float)(a & 127u) * 0.5f; a = a * 3u + 1u; }" },
  { "while (p.x < 9.f && c < 50) { p.x += 1.f; p.y = fmaxf(p.y, x); a ^= b << 3; if (x > 60.f) "
    .. "x = 1.f; c++; }" },
  { "while (c < 20) { const float2 q = make_float2(x, p.y); y = q.x > 9.f ? 3.f : q.y; a ^= 7u; "
    .. "if (sqrtf(y) > 4.f) break; c++; }" },
  { "while (c < 25) { a = a * 3u + (unsigned)(x / 2.f); c += 1 + (a & 1u); }" },
  { "while (a > 5u && c < 99) { a /= 3u; b ^= a; c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = mix(a); c++; }" },
  { "while (c < 40 && (a & 7u)) { a = either(mix(a), b); p = p + make_float2(1.f, x); c++; }" },
  { "while (c < 40 && (a & 7u)) { a = third(mix(a)); c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = fifth(a); c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { bump(a); c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u + counted(); c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u + (unsigned)halved(x); c++; }" },
  { "while (c < 40 && (a & 7u)) { a = a * in[c]; c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { unsigned *q = &a; *q = a * 3u; c++; }", "loop" },
  { "const unsigned &r = in[i & 7]; while (c < 40 && (a & 7u)) { a = a * 3u + r; c++; }", "loop" },
  { "volatile int v = 3; while (c < 40 && (a & 7u)) { a = a * 3u + v; c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u; c++; if (c == 33) return; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u; switch (a & 3u) { case 0: c++; } c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u + known; c++; }" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u; changed = c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u; ++changed; c++; }", "loop" },
  { "while (c < 40 && (a & 7u)) { a = a * 3u; both.n = c++; }", "loop" },
  -- A counter that all threads share.
  { "for (int m = 0; m < n; m++, x += 1.f) { y = x > 9.f ? 2.f : y; }", "loop" },
  { "int m = 0; for (y = x; m < n; m++) { y = y > 9.f ? y - 8.f : y + 1.f; }", "loop" },
  { "int m = 0; for (; m < n; x += 2.f, ++m) { const int d = n * 3; a = a * 3u + d; }", "loop" },
  { "while (c < 40) { const int d = n * 3; a = a * 3u + d; if (a & 8u) break; c++; }" },
  { "while (float t = floorf(x)) { x = x * 0.5f; a = a * 3u + (unsigned)t; }", "loop" },
  { "int &r = c; float &q = x; while (x > 1.f) { x *= 0.5f; c++; } r += 5; q += 1.f;", "loop" },
  -- What all lanes would pay for, though few take the branch.
  { "while (c < 40) { if (x > 120.f) y = sinf(x) > 2.f ? 1.f : 3.f; a = a * 3u; "
    .. "c += 1 + (a & 1u); }", "loop" },
  { "while (c < 40) { y = x > 120.f ? expf(9.f) * 0.f : 3.f; a = a * 3u; c += 1 + (a & 1u); }",
    "loop" },
  { "while (c < 40) { y = expf(x * 0.f); a = a * 3u; c += 1 + (a & 1u); }" },
  { "while (c < 40) { if (b > a) x = fminf(x, y); a = mix(a); c += 1 + (a & 1u); }" },
  -- Loops that the compiler counts, or writes out.
  { "while (b) { b &= b - 1u; c++; }", "loop" },
  { "while (x > 1.f && c < 3) { x = 0.5f; c++; }", "loop" },
  { "while (c < (int)(a & 63u)) { c += 2; k += 3; }", "loop" },
}

describe("loops that threads leave one by one", function()
  teardown(device.nothing_alive)

  it("give what each thread gives alone", function()
    local texts = {}
    for i, one in ipairs(written) do texts[i] = kernel("written" .. i, one[1]) end
    for i, guard in ipairs { "if (i >= n) return;", "if (i > 5 * n || j > 3) return;",
      "if (i < 7) return;", "if ((in[i & 63] & 3u) == 1u) return;" } do
      texts[#texts + 1] = kernel("guarded" .. i, written[i][1], guard)
    end
    local modules = forms.both(prelude .. table.concat(texts, "\n"), "plain", nil, "loops")
    for i, text in ipairs(texts) do
      local name = i <= #written and "written" .. i or "guarded" .. i - #written
      assert.equal(written[i] and written[i][2] or "strips",
        (modules[1]:kernel(name):form()), text)
      assert.equal("loop", (modules[2]:kernel(name):form()))
      compare(modules, name, text)
    end
  end)

  it("do so in random kernels", function()
    local random = math.random
    local function of(list) return list[random(#list)] end
    local function condition()
      return of { "a & 1u", "(b & 6u) == 2u", "k < n", "x > 30.f", "a >> 5 < b", "c > 9",
        "p.x < 9.f && x > 3.f", "(a & 8u) || b > a", "!(b & 1u)", "y != x" }
    end
    local function statement(depth, jumps)
      local kind = random(depth > 0 and 14 or 9)
      if kind <= 9 then
        return ({ "a = a * 3u + b;", "b ^= a >> 3;", "a ^= b << 1;", "k += 2;", "k ^= (int)a;",
          "x = (float)(a & 255u) * 0.5f;", "p.x += 1.f;", "p.y = x - (float)(b & 31u);",
          "y = x > p.y ? 1.f : 0.f;" })[kind]
      elseif kind == 10 then
        return ("{ unsigned t = a ^ b; b += t; if (%s) t = 3u; a ^= t; }"):format(condition())
      elseif kind == 11 then
        return ("a = %s ? a : b;"):format(condition())
      elseif kind == 12 and jumps then
        return ("if (%s) %s;"):format(condition(), of { "break", "continue" })
      elseif kind == 13 and jumps then
        return ("if (%s) { %s %s; } else %s"):format(condition(), statement(0), of { "break",
          "continue" }, statement(depth - 1, jumps))
      end
      return ("if (%s) { %s %s } else { %s }"):format(condition(), statement(depth - 1, jumps),
        statement(0), statement(depth - 1, jumps))
    end
    local function body(jumps)
      local all = { "a = a * 5u + 1u;" }
      for i = 2, random(2, 5) do all[i] = statement(2, jumps) end
      return table.concat(all, " ")
    end
    local function loop()
      local kind, jumps = random(6), random(3) > 1
      if kind == 1 then
        return ("c = 0; while (c < 40 && (%s)) { c++; %s }"):format(condition(), body(jumps))
      elseif kind == 2 then
        return ("for (int m = 0; m < (int)(%s & 31u) && (%s); m++) { %s }"):format(
          of { "a", "b" }, condition(), body(jumps))
      elseif kind == 3 then
        return ("for (c = 0; c < 60; c++) { %s if (%s) break; }"):format(body(jumps), condition())
      elseif kind == 4 then
        return ("c = 0; do { c++; %s } while (c < 40 && (%s));"):format(body(jumps), condition())
      elseif kind == 5 then
        return ("c = 0; while (true) { if (c++ > 33) break; %s }"):format(body(jumps))
      end
      return ("for (%s; m < n + 9; %s) { %s }"):format(
        of { "int m = k & 7", "int m = 0", "int m = 0, d = k", "int m = (a ^= b, 3)" },
        of { "m += 2", "m++, x += 1.f", "b += 3u, ++m", "++m, c--" }, body(jumps))
    end
    forms.random { usual = 40, prelude = prelude, form = "strips", least = 0.9, against = "plain",
      as = "loops", try = compare,
      make = function(name, seed)
        math.randomseed(seed)
        local all = {}
        for i = 1, random(3) do
          local one = loop()
          all[i] = of { one, one, "for (int o = 0; o < n; o++) { %s }", "if (n > 11) { %s }" }
            :gsub("%%s", function() return one end) .. " " .. statement(1)
        end
        return kernel(name, table.concat(all, "\n    "), of { "", "if (i >= n * 5) return;",
          "if (i >= n) return;", "if (in[i & 63] & 4u) return;" })
      end }
  end)
end)
