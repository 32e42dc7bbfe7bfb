-- Cooperative groups: on every device what CUDA's own header gives on a GPU, and on the
-- host device the same as loops and as fibers.
local cg = require "cgraphlua"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")
local host = not (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda"

local file = here .. "/groups.cu"

-- One number for all that a launch wrote, in the order in which it lies: what CUDA 13.0's
-- cooperative_groups.h gives on an H200.  Grid and block, words and the number.
local recorded = {
  { "block", { 2, 2 }, 64, 2048, 14164084 },
  { "tiles32", 2, 64, 2560, 7221880 },
  { "tiles8", 2, 64, 2560, 12578354 },
  { "block", { 2, 2 }, 128, 4096, 8510900 },
  { "tiles32", 2, 128, 5120, 13283226 },
  { "tiles8", 2, 128, 5120, 10785016 },
  { "block", { 2, 2 }, 32, 1024, 1697268 },
  { "tiles32", 2, 32, 1280, 8667158 },
  { "tiles8", 2, 32, 1280, 14171212 },
  { "block", 4, { 8, 4, 2 }, 2048, 9786996 },
  { "tiles8", 2, { 8, 8 }, 2560, 12578354 },
  { "lanes", 2, 64, 1536, 15590346 },
  { "parts", 2, 64, 2560, 10941152 },
  { "sums", 2, 64, 1024, 14003055 },
  { "sums", 2, 128, 1024, 14240006 },
  { "sums", 2, 32, 1024, 6521613 },
  { "sums", 2, 256, 1024, 1514598 },
  { "scans", 2, 64, 1024, 7598538 },
  { "scans", 2, 128, 1024, 7832468 },
  { "scans", 2, 32, 1024, 9966870 },
  { "scans", 2, 256, 1024, 2983720 },
  { "scans", 2, { 32, 4 }, 1024, 16589716 },
  { "scans", 2, { 16, 4 }, 1024, 1399242 },
  { "mirror", 2, 64, 1024, 8270878 },
  { "mirror", 2, 128, 1024, 13241926 },
  { "mirror", 2, 32, 1024, 14144222 },
  { "mirror", 2, 256, 1024, 5725324 },
  { "mirror", 2, { 32, 4 }, 1024, 14435206 },
  { "mirror", 2, { 16, 4 }, 1024, 3897918 },
  { "line", 2, 64, 1024, 10189592 },
  { "line", 2, 128, 1024, 10189592 },
  { "line", 2, 32, 1024, 10189592 },
  { "line", 2, 256, 1024, 10189592 },
  { "line", 2, { 32, 4 }, 1024, 10189592 },
  { "line", 2, { 16, 4 }, 1024, 10189592 },
  { "collect32", 2, 64, 5120, 3629652 },
  { "collect32", 2, 128, 5120, 14013370 },
  { "collect32", 2, 32, 5120, 11803796 },
  { "collect32", 2, { 8, 4, 2 }, 5120, 3629652 },
  { "collect32", 2, { 16, 4 }, 5120, 3629652 },
  { "collect16", 2, 64, 5120, 8802294 },
  { "collect16", 2, 128, 5120, 12500882 },
  { "collect16", 2, 32, 5120, 14938734 },
  { "collect16", 2, { 8, 4, 2 }, 5120, 8802294 },
  { "collect16", 2, { 16, 4 }, 5120, 8802294 },
  { "collect16", 2, 48, 5120, 12885912 },
  { "collect4", 2, 64, 5120, 16260978 },
  { "collect4", 2, 128, 5120, 14415430 },
  { "collect4", 2, 32, 5120, 3598 },
  { "collect4", 2, { 8, 4, 2 }, 5120, 16260978 },
  { "collect4", 2, { 16, 4 }, 5120, 16260978 },
  { "collect4", 2, 48, 5120, 15283108 },
  { "collect4", 2, 100, 5120, 7070328 },
}

local function input()
  local values = {}
  for i = 1, 128 do values[i] = i * 7919 % 97 end
  return cg.from(values, "int32")
end

local function number_of(kernel, grid, block, words, x)
  local out, number = cg.zeros("int32", words), 0
  kernel:launch(grid, block, out, x)
  for _, v in ipairs(out:download()) do number = (number * 33 + v % 65536) % 16777216 end
  return number
end

--- The kernels of groups.cu in a form of the host device.  With optimizations the
-- compiler needs a quarter of a minute for them.
local function groups_as(form)
  return forms.quickly(forms.level, function() return forms.module_as(form, { file = file }) end)
end

describe("cooperative groups", function()
  teardown(device.nothing_alive)

  for _, form in ipairs(host and { "loops", "fibers" } or { "device" }) do
    it("give what CUDA's give, as " .. form, function()
      local module = host and groups_as(form) or cg.module { file = file }
      local x = input()
      for _, row in ipairs(recorded) do
        assert.equal(row[5], number_of(module:kernel(row[1]), row[2], row[3], row[4], x),
          row[1] .. " " .. row[4])
      end
    end)
  end

  if not host then return end

  it("are read as what they are made of", function()
    local module = groups_as "loops"
    for _, name in ipairs { "sums", "scans", "mirror", "line", "collect32", "collect16",
      "collect4" } do
      assert.same({ "loops" }, { module:kernel(name):form() }, name)
    end
    for _, name in ipairs { "block", "tiles32", "tiles8", "lanes", "parts" } do
      assert.same({ "fibers", "cooperative groups" },
        { unpack({ module:kernel(name):form() }, 1, 2) }, name)
    end
  end)

  --- How the kernel k with this body runs, and why.
  local function form_of(body, more)
    local form, why = cg.kernel("#include <cooperative_groups.h>\n" .. (more or
      "namespace cg = cooperative_groups;\n") .. ([[
      extern "C" __global__ void k(unsigned *x, int n) {
        __shared__ unsigned s[64];
        s[threadIdx.x] = n;
        %s
      }]]):format(body)):form()
    return why and form .. ": " .. why or form
  end

  it("are known by whatever name they have", function()
    for _, body in ipairs {
      "auto b = cg::this_thread_block(); b.sync(); x[0] = s[b.thread_rank() ^ 1];",
      "const auto b = cg::this_thread_block(); cg::sync(b); x[b.size()] = s[0];",
      "cg::thread_block b = cg::this_thread_block(); { cg::thread_block b = "
        .. "cooperative_groups::this_thread_block(); b.sync(); } cg::sync(b); x[n] = s[0];",
      "cg::this_thread_block().sync(); x[cg::this_thread_block().thread_rank()] = s[3];",
      "cg::sync(cg::this_thread_block()); x[cg::this_grid().thread_rank()] = s[3];",
      "auto t = cg::tiled_partition<4>(cg::this_thread_block()); t.sync(); "
        .. "x[n] = t.shfl_xor(s[3], 1) + t.meta_group_rank();",
      "for (auto t = cg::tiled_partition<32>(cg::this_thread_block()); n > 0; n--) "
        .. "{ x[n] = t.ballot(s[n]); }",
      "using T = cg::thread_block_tile<8>; T t = cg::tiled_partition<(8)>("
        .. "::cg::this_thread_block()); x[n] = t.shfl(s[3], 1);",
      "using cg::this_thread_block; auto b = this_thread_block(); b.sync(); x[n] = s[1];",
      "auto g = cg::coalesced_threads(); g.sync(); x[g.thread_rank()] = s[0];",
      "const cg::coalesced_group g = cg::coalesced_threads(); x[g.shfl(n, 1)] = g.size();",
    } do
      assert.equal("loops", form_of(body), body)
    end
    for _, body in ipairs {
      "f(cg::this_thread_block(), s);",
      "auto b = cg::this_thread_block(); if (n) f(b, s); f(b, s);",
      "auto t = cg::tiled_partition<8>(cg::this_thread_block()); f(t, s);",
      "constexpr int N = 8; auto t = cg::tiled_partition<N>(cg::this_thread_block()); f(t, s);",
      "auto t = cg::tiled_partition(cg::this_thread_block(), 8); w(t, s);",
      "cg::thread_group t = cg::this_thread_block(); w(t, s); cg::sync(t);",
    } do
      assert.equal("loops", form_of(body, [[
        namespace cg = cooperative_groups;
        template <class G> __device__ void f(G g, unsigned *s) { g.sync(); s[g.thread_rank()]++; }
        __device__ void w(const cg::thread_group &g, unsigned *s) { g.sync(); s[g.size()]++; }]]),
        body)
    end
    assert.equal("loops", form_of("thread_block b = this_thread_block(); sync(b); x[n] = s[1];",
      "using namespace cooperative_groups;\n"))
    assert.equal("loops", form_of("auto b = cg::this_thread_block(); all(b, s); x[n] = s[1];", [[
      namespace cg = cooperative_groups;
      __device__ void all(const cg::thread_block &b, unsigned *s) {
        cg::sync(b);
        s[b.thread_rank()]++;
        b.sync();
      }]]))
  end)

  it("run as fibers where they are not understood", function()
    for _, body in ipairs {
      "auto g = cg::coalesced_threads(), h = g; h.sync(); x[g.thread_rank()] = s[0];",
      "auto g = cg::coalesced_threads(); x[g.match_any(s[0])] = s[0];",
      "auto g = cg::coalesced_threads(); x[n] = cg::tiled_partition<4>(g).thread_rank();",
      "cg::thread_group g = cg::this_thread_block(); g = cg::coalesced_threads(); g.sync();",
      "auto b = cg::this_thread_block(), c = b; c.sync(); x[n] = s[0];",
      "auto b = cg::this_thread_block(); b.sync(); cg::thread_group(b).sync(); x[n] = 1;",
      "auto t = cg::tiled_partition<16>(cg::tiled_partition<32>(cg::this_thread_block())); "
        .. "x[n] = t.meta_group_rank();",
    } do
      assert.equal("fibers: cooperative groups", form_of(body), body)
    end
    assert.equal("fibers: an operator or a constructor that synchronizes",
      form_of("sync q; x[n] = q(n);", "struct sync { __device__ int operator()(int v) "
        .. "{ __syncthreads(); return v; } };"))
    assert.equal("fibers: cooperative groups", form_of("auto b = cg::this_thread_block(); f(b); "
      .. "f(cg::tiled_partition<4>(b));", [[
      namespace cg = cooperative_groups;
      template <class G> __device__ void f(G g) { g.sync(); }]]))
  end)

  it("leave other names alone", function()
    assert.equal("loops", form_of([[
      list sync; sync.put(3);
      auto b = cg::this_thread_block();
      for (int size = 1; size < 8; size++) { b.sync(); s[b.thread_rank()] += size; }
      { int b = n; x[b] = s[1]; } [](int b) { return b; }(n);
      x[n & 3] = sync.n;]], [[
      namespace cg = cooperative_groups;
      struct list { int n; __device__ void put(int k) { n = k; } };
      __device__ int reduce(int n) { return n & 3; }]]))
  end)

  it("give as loops what they give as fibers, whatever else has their names", function()
    local cases = {
      { "B; auto t = cg::tiled_partition<32>(b); x[i] = cg::reduce(t, i, cg::plus<unsigned>());",
        "__device__ int reduce(int a) { return a; } enum { sync = 1 };" },
      { "auto t = cg::tiled_partition<8>(cg::this_thread_block()); x[i] = f(t, i);",
        "template <class G> __device__ int f(G g, int v) { return g.template shfl<int>(v, 0); }" },
      { "B; constexpr int M = 8; auto t = cg::tiled_partition<M>(b); "
        .. "{ unsigned M = i; x[i] = t.shfl_xor(M, 1) + 100 * t.thread_rank() + M; }" },
      { "B; x[i] = f(cg::tiled_partition<8>(b), i) + n;", "constexpr unsigned W = 8; __device__ "
        .. "unsigned f(cg::thread_block_tile<W> t, unsigned W) { return t.shfl_xor(W, 1); }" },
      { "B; x[i] = thread_rank(b) + n;",
        "__device__ unsigned thread_rank(cg::thread_block b) { return 100 + threadIdx.x; }" },
      { "B; auto sync = [&](cg::thread_block g) { s[i] += 5; }; sync(b); x[i] = s[i];" },
      { "B; auto t = cg::tiled_partition<32>(b); long long r = t.any(1) - 2; x[i] = r >> 32;" },
      { "B; auto t = cg::tiled_partition<32>(b); x[i] = t.any(1ll << (32 + i % 2)) "
        .. "+ 2 * t.all(0.5f + i) + 4 * t.all(0.5) + 8 * __syncthreads_or(1ll << 32);" },
      { "B; constexpr size_t N = 8; auto t = cg::tiled_partition<N>(b); "
        .. "long long v = t.thread_rank() - 1; x[i] = v >> 32;" },
      { "B; auto g = cg::this_grid(); long long v = cg::thread_rank(g) - 1; x[i] = v >> 32;" },
      { "B; cg::thread_block_tile<8> t = cg::tiled_partition<8>(b); "
        .. "t = cg::tiled_partition<8>(cg::tiled_partition<32>(b)); x[i] = t.meta_group_rank();" },
      { "B; auto t = cg::tiled_partition<8>(b); x[i] = h(t) + 10 * h(b) + "
        .. "100 * is<decltype(b)>::v + 1000 * is<cg::thread_block>::v;",
        "template <class G> struct is { static const int v = 1; }; "
        .. "template <> struct is<cg::thread_block> { static const int v = 2; }; "
        .. "template <class G> __device__ int h(const G &g) { return is<G>::v; }" },
      { "B; auto t = cg::tiled_partition<16>(b); constexpr unsigned N = t.size(); "
        .. "x[i] = t.shfl_down(i, 3) * N + t.ballot(i & 1);" },
      { "B; auto t = cg::tiled_partition(cg::coalesced_threads(), 4); x[i] = t.shfl(i, 1);" },
      { "constexpr int N = 16; auto t = cg::tiled_partition<N / 2>(cg::this_thread_block()); "
        .. "{ int M = 1, N = 2; x[i] = t.shfl(i, 1) + N + M + t.size(); }" },
      { "auto t = cg::tiled_partition<8>(cg::this_thread_block()); quad q{i, 2, 3, 1.5}; "
        .. "q = t.shfl(q, (i + 1) % 8); q = t.shfl_down(q, 2); x[i] = q.a + q.b + 4 * q.d;",
        "struct quad { unsigned a, b, c; double d; };" },
      { "B; auto t = cg::tiled_partition<32>(b); unsigned v = i; int row = 4 - "
        .. "t.meta_group_rank(); v += t.shfl_xor(v, 1); for (int k = t.thread_rank(); "
        .. "k < 50 + row * n; k += t.size()) v = v * 3 + s[(k + row) & 63]; "
        .. "v += t.shfl_down(v, 1); "
        .. "if (t.meta_group_rank() == 0) v += cg::reduce(t, v, cg::plus<unsigned>()); x[i] = v;" },
      { "B; x[i] = h(b) + i;",
        "template <class G> struct is { static const int v = 1; }; "
        .. "template <> struct is<cg::thread_block> { static const int v = 2; }; "
        .. "template <class G> __device__ int h(const G &g) { g.sync(); return is<G>::v; }" },
      { "auto t = cg::tiled_partition<8>(cg::tiled_partition<32>(cg::this_thread_block())); "
        .. "x[i] = h(t);",
        "template <class G> __device__ int h(const G &g) { return g.meta_group_rank(); }" },
      { "B; x[i] = h(b, i) + h<int>(b, i) + pick<cg::thread_block>(b, i);",
        "template <class T, class G> __device__ T h(const G &g, T v) { g.sync(); return v / 2; } "
        .. "template <class G> __device__ int pick(G g, int v) { return g.thread_rank() + v; }" },
      { "auto t = cg::tiled_partition<4>(cg::this_thread_block()); "
        .. "x[i] = cg::reduce(t, i % 7, [n](unsigned a, unsigned b) { return a * n + b; }) + "
        .. "cg::exclusive_scan(t, i & 3, cg::bit_xor<unsigned>());" },
      { "auto t = cg::tiled_partition<16>(cg::this_thread_block()); auto most = "
        .. "[&](float a, float b) { return a > b ? a : b; }; float m = i * 0.1f; "
        .. "for (int k = 0; k < n; k++) m += cg::reduce(t, m * k, most) - s[k]; x[i] = m;" },
      { "auto t = cg::tiled_partition<32>(cg::this_thread_block()); quad q{i, n, 3, i * i}; "
        .. "q = cg::reduce(t, q, plus()); x[i] = q.a + q.b * q.c - q.d;",
        "struct quad { unsigned a, b, c; double d; }; struct plus { __device__ quad operator()("
        .. "quad x, const quad &y) const { return {x.a + y.a, x.b ^ y.b, x.c * y.c, "
        .. "x.d + y.d}; } };" },
      { "blk b = cg::this_thread_block(); b.sync(); x[i] = s[i ^ 1];",
        "typedef cg::thread_block blk;" },
      { "B; auto t = cg::tiled_partition<16>(b); auto u = cg::tiled_partition<4>(b); "
        .. "x[i] = h(t, i) * 3 + h(u, i) + cg::reduce(u, i, cg::plus<unsigned>());",
        "template <class G> __device__ unsigned g(G g, unsigned v) { return cg::reduce(g, v, "
        .. "cg::plus<unsigned>()) + g.shfl_down(v, g.size() / 2); } template <class G> "
        .. "__device__ unsigned h(const G &t, unsigned v) { t.sync(); return g(t, v) + v; }" },
      { "if (i & 1) { auto g = cg::coalesced_threads(); x[i] = g.size() + g.thread_rank() + "
        .. "g.ballot(s[i] & 4) + g.any(s[i] == 3) + g.all(s[i] > 3); g.sync(); } else { auto h = "
        .. "cg::coalesced_threads(); x[i] = h.shfl(s[i], 3) + h.shfl_up(s[i], 2) * 3 + "
        .. "h.shfl_down(s[i], h.num_threads() / 2) * 5; }" },
      { "if (i % 3) x[1 + inc(x) % 60] = 1;",
        "__device__ unsigned inc(unsigned *at) { auto g = cg::coalesced_threads(); unsigned r; "
        .. "if (g.thread_rank() == 0) r = atomicAdd(at, g.size()); "
        .. "return g.thread_rank() + g.shfl(r, 0); }" },
      { "for (unsigned k = 0; k < (i & 3); k++) { auto g = cg::coalesced_threads(); x[i] += "
        .. "g.size() * (k + 1) + g.shfl(i, k); } if (i < 10) return; auto g = "
        .. "cg::coalesced_threads(); quad q{g.thread_rank(), 2.5}; q = g.shfl(q, 1); "
        .. "{ unsigned g = 4; x[i] += g; } x[i] += q.a * q.b;",
        "struct quad { unsigned a; double b; };" },
      { "struct W { unsigned a; __device__ unsigned shfl(unsigned v, int) { return v + a; } }; "
        .. "W w{3}; __syncthreads(); x[i] = w.shfl(i, 4) + f(cg::tiled_partition<8>("
        .. "cg::this_thread_block()), i);", "using W = cg::thread_block_tile<8>; "
        .. "__device__ unsigned f(const W &w, unsigned v) { return w.shfl_xor(v, 3); }" },
      { "cg::thread_block_tile<32> w = cg::tiled_partition<32>(cg::this_thread_block()); "
        .. "sum<unsigned, 32> q(w); x[i] = q(i * 3);",
        "template <class T, int N> struct sum { cg::thread_block_tile<N> w; __device__ sum("
        .. "cg::thread_block_tile<N> g) : w(g) {} __device__ T operator()(T v) { for (int d = "
        .. "N / 2; d; d /= 2) v += w.shfl_xor(v, d); return v; } };" },
    }
    local head = "#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n"
      .. "namespace cg = cooperative_groups;\n"
      .. "#define B auto b = cg::this_thread_block(); b.sync()\n"
    for k, case in ipairs(cases) do
      local modules = forms.both(head .. (case[2] or "") .. ([[
        extern "C" __global__ void k(unsigned *x, int n) {
          __shared__ unsigned s[64];
          const unsigned i = threadIdx.x;
          for (unsigned j = i; j < 64; j += blockDim.x) s[j] = n + j;
          %s
        }]]):format(case[1]))
      forms.same(modules, "k", 1, 64, case[1], 64, 5)
      forms.same(modules, "k", 1, 40, case[1], 64, k)
    end
  end)

  it("say that a grid cannot wait", function()
    local ok, e = pcall(cg.kernel, [[
      #include <cooperative_groups.h>
      extern "C" __global__ void k(int *x) { cooperative_groups::this_grid().sync(); }]])
    assert.is_false(ok)
    assert.is_truthy(e.message:find("a grid cannot wait", 1, true), e.message)
  end)
end)
