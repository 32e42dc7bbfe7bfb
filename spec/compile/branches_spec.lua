-- Conditions and loops around operations of several threads, on the host device: in loops
-- they do what they do in fibers.
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")
local cg = require "cgraphlua"

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("branches of several threads", function()
    pending "as loops are the host device's"
  end)
end


local prelude = [[
__shared__ unsigned s[64];
__device__ unsigned sum(unsigned v) {
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
  return v;
}
__device__ unsigned all(unsigned v) {
  s[threadIdx.x] = v;
  __syncthreads();
  v = s[blockDim.x - 1 - threadIdx.x];
  __syncthreads();
  return v;
}
__device__ bool odd(unsigned v) { return sum(v) & 1; }
__device__ unsigned pick(unsigned v, unsigned f) { return f > 3 ? sum(v) : v + 1; }
__device__ bool both(unsigned v, unsigned f) { return f > 2 && odd(v) || f == 1; }
template <class T> __device__ T deep(T v, int f) {
  return f > 2 ? f > 4 ? sum(v) : all(v) : T(3);
}
]]

-- Behind `&&`, `||` and `?`.
local chosen = {
  "bool a = !(f > 3 || odd(t)), b = !(f > 2 && odd(in[t])); out[t] = a * 2 + b;",
  "unsigned a = 2; if (f & 1) a = !(f > 3 || odd(t)); out[t] = a;",
  "if (!(f > 3 || odd(t))) { out[t] = 3; } else if (!(f & 1 ? odd(in[t]) : odd(t))) out[t] = 5; "
    .. "else out[t] = 7;",
  "for (unsigned k = 0; k < f; k++) if (!(k & 1 || odd(in[t] + k))) out[t] += k; "
    .. "else { out[t] += 3; continue; }",
  "unsigned x = 3, y = x + 1, z = x > f || odd(y + t), q = z ? 3 : y; out[t] = x + y + z + q;",
  "auto x = f > 1 && odd(t), y = f > 2 || odd(in[t]); out[t] = x * 2 + y;",
  "bool b = f > 2 || odd(in[t]); out[t] = b;",
  "bool b = f > 2 && odd(in[t]); out[t] = b;",
  "bool b = f > 2 && odd(in[t]) || odd(t) && f; out[t] = b;",
  "auto b = f > 2 && odd(in[t]); out[t] = b;",
  "int b = f > 2 && sum(in[t]); out[t] = b;",
  "if (f > 2 || odd(in[t])) out[t] = 4; else out[t] = 9;",
  "if (f > 2 && odd(in[t])) out[t] = 4; else out[t] = 9;",
  "if ((f > 2 || odd(in[t])) && f != 5) out[t] = 4; else if (f > 5 ? odd(t) : f & 1) "
    .. "out[t] = 9;",
  "for (unsigned k = 0; k < f; k++) if (k & 1 || odd(in[t] + k)) out[t] += k; else "
    .. "out[t] += 3;",
  "f > 3 ? __syncthreads() : __syncwarp(); out[t] = 1;",
  "f > 3 && odd(t); out[t] = 1; f == 2 || sum(t);",
  "bool b = t < 32 && odd(in[t]); out[t] = b;",
  "if (t < 32 || odd(in[t])) out[t] = 4; else out[t] = 9;",
  "if (__any_sync(~0u, in[t] == 3) || __any_sync(~0u, in[t] == 5)) out[t] = 3; else "
    .. "out[t] = 6;",
  "if (f > 3 && __syncthreads_count(in[t] & 1) > 3) out[t] = 3; else out[t] = all(t);",
}

-- Both sides of a `?` have one type before they are converted to that of the value: it is
-- not known.
local valued = {
  "long long v = f > 3 ? sum(in[t]) : -1; out[t] = (unsigned)(v >> 32) + t;",
  "const unsigned a = 4, v = f > 3 ? 2 : sum(in[t]), w = a + v; out[t] = v + w * 3;",
  "out[t] = f > 3 ? sum(in[t]) : 2;",
  "unsigned v = f > 3 ? sum(in[t]) : 2; out[t] = v;",
  "const unsigned v = (f > 3 ? 2 : sum(in[t])); __syncthreads(); out[t] = v;",
  "unsigned v = f > 3 ? f > 4 ? all(in[t]) : 4 : sum(in[t]); out[t] = v;",
  "out[t] += f & 1 ? sum(in[t]) : f & 2 ? all(t) : 7;",
  "out[t] = pick(in[t], f) + both(in[t], f);",
  "out[t] = deep(in[t], f);",
  "unsigned *p = out + t; *p = f > 3 ? sum(in[t]) : 2;",
  "out[f > 3 ? t : 63 - t] = f > 2 ? sum(in[t]) : 5;",
  "unsigned v = t < 32 ? sum(in[t]) : 3; out[t] = v;",
  "unsigned v = t >> 5 == f ? sum(in[t]) : 3; out[t] = v;",
  "do { out[t] += f > 3 ? sum(in[t]) : 2; if (f) f--; } while (f > 2);",
  "while (f > 2) { f -= f & 1 || odd(t) ? 1 : 2; out[t]++; }",
  "float v = f > 3 ? (float)sum(in[t]) : 2.5f; out[t] = v * 2;",
  "const unsigned *p = f > 3 ? in + (sum(t) & 1) : in; out[t] = p[t];",
  "unsigned v = 3; v = f > 3 ? sum(v + t) : v; v += f > 2 ? all(v) : 1; out[t] = v;",
  "{ unsigned v = f > 3 ? sum(in[t]) : 2; out[t] = v; } { unsigned v = f > 1 ? "
    .. "all(in[t]) : 2; out[t] += v; }",
  "if (f == 2) return; out[t] = f & 1 ? sum(t) : all(t);",
  "out[t] = __syncthreads_or(in[t] & 1) || f > 3 ? sum(t) : 1;",
  "unsigned n = f, k = 0; while (k < 3 && n) { k++; n = k > 1 ? sum(n) & 3 : n; } out[t] "
    .. "= n;",
  "struct P { unsigned a; } p = {3}; p.a = f > 3 ? sum(t) : 7; out[t] = p.a;",
  "unsigned a[2] = {1, 2}; a[f & 1] = f > 3 ? sum(t) : 7; __syncthreads(); out[t] = a[0] "
    .. "+ a[1] * 3;",
}

-- Left by a warp, or by some of its lanes.
local left = {
  "unsigned n = 0; for (int i = 0; i < 3; i++) { if (f == 1) break; __syncwarp(); if "
    .. "(t & 1) continue; n++; } out[t] = n;",
  "unsigned n = 0; for (int i = 0; i < 3; i++) { if (f == 1) continue; __syncwarp(); "
    .. "if (t & 1) continue; n++; } out[t] = n;",
  "unsigned n = 0, i = 0; while (i++ < 3) { n++; if (i < 5) { if (f == 1) break; } "
    .. "__shfl_xor_sync(~0u, n, 1); if (t & 1) continue; n++; } out[t] = n;",
  "unsigned n = 0; for (int i = 0; i < 3; i++) { if (__any_sync(~0u, in[t] % 5 == f)) "
    .. "break; n += __shfl_xor_sync(~0u, n + t, 1); if (t % 5 == i) { n++; continue; } n += "
    .. "7; } out[t] = n;",
  "unsigned n = 0; for (int i = 0; i < 3; i++) { __syncwarp(); n++; if (t & 32) break; "
    .. "if (t & 1) continue; n += 4; } out[t] = n;",
  "unsigned n = 0; for (int i = 0; i < 3; i++) { n += __popc(__ballot_sync(~0u, t & "
    .. "1)); if (t & 1) { n++; if (f == 9) break; continue; } n += 4; } out[t] = n;",
  "unsigned n = 0; for (int i = 0; i < 3; i++) { n += __popc(__ballot_sync(~0u, t & "
    .. "1)); if (t & 1) continue; n += 4; if (f) continue; n++; } out[t] = n;",
  "unsigned n = 0; for (int i = 0; i < 3; i++) { n += __popc(__ballot_sync(~0u, t & "
    .. "1)); for (int j = 0; j < 2; j++) { n += __shfl_xor_sync(~0u, n, 1); if (f == 1) "
    .. "break; if (t & 1) continue; n++; } if (f == 2) break; if (t & 2) continue; n += 3; "
    .. "} out[t] = n;",
  "int lane = t & 31; unsigned i; while (true) { if (lane == 0) i = atomicAdd(out + 63, "
    .. "1u); i = __shfl_sync(~0u, i, 0); if (i >= 9) break; out[i] = 5; }",
  "unsigned v = in[t], n = 0; for (int k = 0; k < 10; k++) { unsigned w = sum(v + k); if "
    .. "(w % 7 == f) break; n += w; } out[t] = n;",
  "unsigned v = in[t], n = 0; for (int k = 0; k < 10; k++) { unsigned w = sum(v + k); if "
    .. "(w % 3 == f) continue; n += w; } out[t] = n;",
  "unsigned v = in[t], n = 0; for (int k = 0; k < 10; k++) { unsigned w = sum(v + k); if "
    .. "(w % 3 == f) { n++; continue; } else if (w % 11 == 4) { n += 100; break; } n += w; n "
    .. "^= sum(n); } out[t] = n;",
  "unsigned n = 0; int k; for (k = 0; k < 10; k++) { unsigned w = sum(in[t] + k); if (w "
    .. "% 7 == f) break; n += w; } out[t] = n * 16 + k;",
  "unsigned n = 0, k = 0; do { unsigned w = sum(in[t] + k); if (w % 7 == f) break; n += "
    .. "w; } while (++k < 5); out[t] = n;",
  "unsigned n = 0, k = 0; do { unsigned w = sum(in[t] + k); if (w % 7 == f) continue; n "
    .. "+= w; } while (++k < 5); out[t] = n;",
  "unsigned n = 0; for (int k = 0; k < 6; k++) { for (int j = 0; j < 4; j++) { unsigned "
    .. "w = sum(in[t] + k * j); if (w % 5 == f) break; if (w % 3 == 1) continue; n += w; } if "
    .. "(sum(n) % 4 == f) break; n++; } out[t] = n;",
  "unsigned n = 0; for (int k = 0; k < 6; k++) { if (t < 32) { unsigned w = sum(in[t] + "
    .. "k); if (w % 5 == f) break; n += w; } n++; } out[t] = n;",
  "unsigned n = 0; for (int k = 0; k < 6; k++) { unsigned w = __shfl_xor_sync(~0u, "
    .. "in[t], 1); if ((t & 31) < 32) { if (sum(w + k) % 5 == f) { n += 3; break; } n += w; } "
    .. "n++; } out[t] = n;",
  "unsigned n = 0; for (int k = 0; k < 6; k++) { unsigned m = __ballot_sync(~0u, in[t] & "
    .. "1); if (sum(m + k) % 6 == f) { out[t] = n; return; } n += m; } out[t] = n + 1;",
  "unsigned n = 0; for (;;) { n++; unsigned w = sum(in[t] + n); if (w % 3 == 0 || n > 9) "
    .. "break; } out[t] = n;",
  "unsigned n = 0; while (n < 10) { n++; if (sum(n) % 2) { if (sum(in[t] + n) % 3 == f) "
    .. "continue; } n += 1; } out[t] = n;",
  "unsigned n = 0; for (int k = 0; k < 6; k++) { unsigned m = __activemask(); if ((t & "
    .. "31) > 20 - k) break; n += __popc(m); } out[t] = n;",
  "unsigned n = 0; for (int k = 0; k < 6; k++) { if ((t & 31) == k) continue; "
    .. "__syncwarp(__activemask()); n += k; } out[t] = n;",
  "unsigned n = 0; for (int k = 0; k < 6; k++) { unsigned m = __ballot_sync(~0u, (t & "
    .. "31) < 16); if ((t & 31) >= 16) continue; n += __shfl_xor_sync(0xffffu, in[t], 1) + m; "
    .. "} out[t] = n;",
  "int lane = t & 31; unsigned i = 0; for (;;) { if (lane == 0) i = atomicAdd(out + 63, "
    .. "1u); i = __shfl_sync(~0u, i, 0); if (i >= 9) return; out[i] = 5; }",
  "int lane = t & 31; unsigned i = 0; do { if (lane == 0) i = atomicAdd(out + 63, 1u); i "
    .. "= __shfl_sync(~0u, i, 0); if (i < 9) out[i] = 5; } while (i < 9);",
  "int lane = t & 31; unsigned n = in[t] % 7; n = __shfl_sync(~0u, n, 0); for (unsigned "
    .. "k = 0; k < n; k++) out[t] += __shfl_xor_sync(~0u, in[t], 1);",
  "int lane = t & 31; unsigned n = __reduce_max_sync(~0u, in[t] % 7); for (unsigned k = "
    .. "0; k < n; k++) out[t] += __shfl_xor_sync(~0u, in[t], 1);",
  "unsigned n = __ballot_sync(~0u, in[t] & 1); while (n) { int j = __ffs(n) - 1; out[t] "
    .. "+= __shfl_sync(~0u, in[t], j); n &= n - 1; }",
  "auto v = __shfl_xor_sync(~0u, in[t], 1); __syncthreads(); out[t] = v;",
  "auto v = in[t] + __shfl_xor_sync(~0u, in[t], 1), w = __ballot_sync(~0u, in[t] & 1); "
    .. "__syncthreads(); out[t] = v + w;",
}

local function kernel(name, body)
  return ([[extern "C" __global__ void %s(unsigned *out, const unsigned *in, unsigned f) {
    const int t = threadIdx.x; %s }]]):format(name, body)
end

local function compare(bodies, form, blocks)
  local text = {}
  for k, body in ipairs(bodies) do text[k] = kernel("k" .. k, body) end
  local modules, input = forms.both(prelude .. table.concat(text, "\n")), forms.numbers(64)
  for k, body in ipairs(bodies) do
    assert.equal(form, (modules[1]:kernel("k" .. k):form()), body)
    for f = 0, 6 do
      for _, block in ipairs(blocks) do
        forms.same(modules, "k" .. k, 1, block, body, 64, input, f)
      end
    end
  end
end

describe("branches of several threads", function()
  teardown(device.nothing_alive)

  it("choose in loops what they choose in fibers", function()
    compare(chosen, "loops", { 64, 32 })
  end)
  it("are fibers where a type decides what is chosen", function()
    compare(valued, "fibers", { 64 })
  end)
  it("leave loops as in fibers", function() compare(left, "loops", { 64, 32 }) end)

  it("end a warp's loop that nothing but its return ends", function()
    local text = kernel("k", "for (;;) { unsigned i = 0; if (t % 32 == 0) i = atomicAdd(out, 1u); "
      .. "if (__shfl_sync(~0u, i, 0) > f) return; out[t] += t > 0; }")
    for _, form in ipairs { "loops", "fibers" } do
      local module, out = forms.module_as(form, text), cg.zeros("uint32", 64)
      module:kernel "k":launch(1, 64, out, forms.numbers(64), 9)
      assert.equal(12, out:download()[1], form)
    end
  end)
end)
