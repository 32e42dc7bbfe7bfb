-- Kernels without barriers on the host device: in strips of 32 threads they do
-- what they do thread by thread.
local cg = require "cgraphlua"
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/../support/device.lua")
local forms = dofile(here .. "/../support/forms.lua")
local random_kernels = dofile(here .. "/../support/kernels.lua")

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("a kernel without barriers", function()
    pending "in strips is the host device's"
  end)
end


describe("a kernel without barriers", function()
  teardown(device.nothing_alive)

  it("gives in strips what it gives thread by thread, for random kernels", function()
    local shapes = { { 1, 64 }, { { 3, 2 }, { 37, 3 } }, { { 2, 2, 2 }, { 8, 5 } }, { 5, 20 },
      { { 1, 3 }, 250 } }
    local input = forms.numbers(64)
    forms.random { usual = 60, prelude = random_kernels.plain_prelude, form = "strips",
      least = 0.4, against = "plain", make = random_kernels.plain_kernel,
      try = function(modules, name, text)
        assert.equal("loop", (modules[2]:kernel(name):form()))
        for i, shape in ipairs(shapes) do
          forms.same(modules, name, shape[1], shape[2], text, 16 + 4 * 2000, input, 5 + i)
        end
      end }
  end)

  it("adds up rows whose ends are in memory", function()
    local k = cg.kernel [=[
      extern "C" __global__ void rows(const int *row, const int *column, const float *value,
          const float *x, float *y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n) {
          float sum = 0.f;
          for (int k = row[i]; k < row[i + 1]; k++)
            sum += value[k] * x[column[k]];
          y[i] = sum;
        }
      }]=]
    local row, column, value, x, want = { 0 }, {}, {}, {}, {}
    for i = 1, 50 do x[i] = i % 7 - 3 end
    for i = 1, 100 do
      want[i] = 0
      for _ = 1, i * 13 % 41 do
        local at = #column + 1
        column[at], value[at] = at * 11 % 50, at % 5 - 2
        want[i] = want[i] + value[at] * x[column[at] + 1]
      end
      row[i + 1] = #column
    end
    local y = cg.zeros("float", 100)
    for _, block in ipairs { 1, 32, 100, 128 } do
      y:fill(9)
      k:launch(math.ceil(100 / block), block, cg.from(row, "int32"), cg.from(column, "int32"),
        cg.from(value, "float"), cg.from(x, "float"), y, 100)
      assert.same(want, y:download())
    end
  end)

  it("is compiled with its guards in its loops when the compiler takes too long", function()
    local folder = device.program.folder()
    local compiler = folder .. "/slow"
    device.program.write(compiler, [[#!/bin/sh
case $* in *max-unswitch*) echo "c++: CPU time limit exceeded" >&2; exit 1;; esac
exec c++ "$@"
]])
    assert.equal(0, os.execute("chmod +x " .. compiler))
    local made = forms.with("CGRAPHLUA_CXX", compiler, function()
      return forms.module_as(nil, [[
extern "C" __global__ void guarded(int *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += i;
}]])
    end)
    device.program.remove(folder)
    local x = cg.zeros("int32", 5)
    made:kernel("guarded"):launch(1, 32, x, 4)
    assert.same({ 0, 1, 2, 3, 0 }, x:download())
  end)

  local source = [==[
extern "C" __global__ void product(const float *A, const float *B, float *C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && col < n) {
    float sum = 0.f;
    for (int k = 0; k < n; k++) sum += A[row * n + k] * B[k * n + col];
    C[row * n + col] = sum;
  }
}
extern "C" __global__ void columns(const float *x, const float *, float *y, int n) {
  int c = threadIdx.x + blockIdx.x * blockDim.x;
  if (c >= n) return;
  float s = 0.f;
  for (int r = 0; r < n; r++) s += x[r * n + c];
  if (blockIdx.y == 0 && threadIdx.y == 0) y[c] = s;
}
extern "C" __global__ void convolution(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
  int r = n / 20;
  if (i >= n || j >= n) return;
  float s = 0.f;
  for (int dy = -r; dy <= r; dy++)
    for (int dx = -r; dx <= r; dx++) {
      int xx = i + dx, yy = j + dy;
      if (xx >= 0 && xx < n && yy >= 0 && yy < n) s += x[yy * n + xx] * k[(dy + r) * 9 + dx + r];
    }
  y[j * n + i] = s;
}
__device__ float dot_of(const float *A, const float *B, int row, int col, int n) {
  float sum = 0.f;
  for (int k = 0; k < n; k++) sum += A[row * n + k] * B[k * n + col];
  return sum;
}
extern "C" __global__ void dots(const float *A, const float *B, float *C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && col < n) C[row * n + col] = dot_of(A, B, row, col, n);
}
template <class T> __device__ void column(const T *x, T *y, int n) {
  int c = threadIdx.x + blockIdx.x * blockDim.x;
  if (c >= n) return;
  T s = 0;
  for (int r = 0; r < n; r++) s += x[r * n + c];
  if (blockIdx.y == 0 && threadIdx.y == 0) y[c] = s;
}
extern "C" __global__ void column_of(const float *x, const float *, float *y, int n) {
  column<float>(x, y, n);
}
__device__ float upto(const float *x, int c, int most) {
  float s = 0;
  for (int r = 0; r < most; r++) s += x[r];
  return s;
}
extern "C" __global__ void headed(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
  if (i >= n || j >= n) return;
  float s = 0;
  for (int m = 0; m < n; m++) s += k[m * n + i];
  for (int m = 0; m < (int)upto(x, i, i % 5) % 7; m++) s += 1.f;
  y[j * n + i] = s;
}
__device__ float advance(float &s, int n) {
  for (int k = 0; k < n; k++) s += k;
  return s;
}
extern "C" __global__ void sequence(const float *x, const float *, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
  if (i >= n || j >= n) return;
  float s = x[i];
  y[j * n + i] = advance(s, n) - 2.f * advance(s, n);
}
extern "C" __global__ void some(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
  if (i >= n || j >= n) return;
  float s = x[i];
  if (s > 4.f) s = upto(k, i, n);
  y[j * n + i] = s;
}
extern "C" __global__ void gaps(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, j = threadIdx.y + blockIdx.y * blockDim.y;
  if (i % 7 == 3 || i >= n || j >= n) return;
  float s = x[i];
  for (int m = 0; m < j; m++) s += k[m] * y[j * n + i];
  y[j * n + i] = s;
}
extern "C" __global__ void counted(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  if (atomicAdd((unsigned *)&y[9000], 1u) > 4000000000u || i >= n) return;
  for (int m = 0; m < n; m++) if (threadIdx.y + blockIdx.y == 0) y[i] += k[m];
}
extern "C" __global__ void rows(const float *x, const float *k, float *y, int n) {
  if (blockIdx.x >= n) return;
  for (int c = threadIdx.x; c < n; c += blockDim.x) {
    float v = x[blockIdx.x * n + c] + k[c];
    y[blockIdx.x * n + c] = v > 3.f ? v : 2.f * v;
  }
}
extern "C" __global__ void width(const float *x, const float *k, float *y, int n) {
  int tid = threadIdx.x, i = tid + blockIdx.x * 16;
  if (i < n) y[i] = x[i] + k[i];
}
extern "C" __global__ void fixed(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  int row = (blockIdx.y * blockDim.y + threadIdx.y) * n;
  for (int m = 0; m < 9; m++) if (i < n) y[row + i] += x[i] + k[m];
}
extern "C" __global__ void whiles(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  while (i < n) {
    y[i] = x[i] + k[i];
    i += blockDim.x * gridDim.x;
  }
}
extern "C" __global__ void outside(const float *x, const float *k, float *y, int n) {
  unsigned tid = threadIdx.x, i = blockIdx.x * blockDim.x + tid;
  const unsigned all = blockDim.x * gridDim.x;
  for (; i < n; i += all) y[i] = x[i] + k[i];
}
extern "C" __global__ void older(const float *x, const float *k, float *y, int n) {
  int i, step = __mul24(blockDim.x, gridDim.x);
  for (i = __mul24(blockIdx.x, blockDim.x) + threadIdx.x; i < n; i += step) y[i] = x[i] + k[i];
  for (i = threadIdx.x; i < n; i += blockDim.x) if (blockIdx.x == 0) y[n + i] = x[i];
}
#define KERNEL_LOOP(i, n, index) \
  long long the_index = blockIdx.x * blockDim.x + threadIdx.x; \
  for (index i = the_index; the_index < (n); the_index += blockDim.x * gridDim.x, i = the_index)
extern "C" __global__ void copies(const float *x, const float *k, float *y, int n) {
  KERNEL_LOOP(i, n, int) {
    if (k[i] == 3.f) continue;
    y[i] = x[i] + k[i];
  }
}
extern "C" __global__ void copies_whole(const float *x, const float *k, float *y, int n) {
  KERNEL_LOOP(i, n, int) { y[i] = x[i] + k[i]; }
}
extern "C" __global__ void skips(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  while (i < n) {
    if (k[i] == 3.f) { i++; continue; }
    y[i] = x[i] + k[i];
    i += 2;
  }
}
extern "C" __global__ void hides(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, step = 2;
  while (i < n) {
    const int step = 4;
    y[i] = x[i] + k[i];
    i += step;
  }
  if (blockIdx.y + threadIdx.y + i % step == 0) y[n] = step;
}
extern "C" __global__ void behind(const float *x, const float *k, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x, from = i;
  while (i < n) {
    y[i] = x[i] + k[i];
    i += blockDim.x * gridDim.x;
  }
  y[4096 + from] = i;
}
extern "C" __global__ void places(const float *x, const float *k, float *y, int n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + k[i];
}
extern "C" __global__ void parts(const float *x, const float *k, float *y, int n) {
  int tx = threadIdx.x, bx = blockIdx.x;
  int i = bx * blockDim.x + tx;
  if (i < n) y[i] = x[i] + k[i];
}
extern "C" __global__ void shifted(const float *x, const float *k, float *y, int n) {
  const int i = 1 + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i - 1] + k[i];
}
extern "C" __global__ void twice(const float *x, const float *k, float *y, int n) {
  int i = blockIdx.x * (blockDim.x * 2) + threadIdx.x, j = i + blockDim.x;
  if (i < n) y[i] = x[i] + k[i];
  if (j < n) y[j] = x[j] + 2 * k[j];
}
extern "C" __global__ void flat_grid(const float *x, const float *k, float *y, int n) {
  int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n * n) y[i] = x[i] + k[i];
}
extern "C" __global__ void small_product(const float *x, const float *k, float *y, int n) {
  int i = __mul24(blockIdx.x, blockDim.x) + threadIdx.x;
  if (i < n) y[i] = x[i] + k[i];
}
extern "C" __global__ void tiles(const float *x, const float *k, float *y, int n) {
  for (int b = blockIdx.x; b < 20 * n; b += gridDim.x) {
    const int i = b * blockDim.x + threadIdx.x;
    if (i < n * n) y[i] = x[i] + k[i];
  }
}
extern "C" __global__ void tiles_by_size_t(const float *x, const float *k, float *y, int n) {
  for (size_t tile = blockIdx.x; tile < 20 * n; tile += gridDim.x) {
    unsigned i = threadIdx.x + blockDim.x * tile;
    if (i < n * n) y[i] = x[i] + k[i % n];
  }
}
extern "C" __global__ void tiles_with_more(const float *x, const float *k, float *y, int n) {
  for (int b = blockIdx.x; b < 20 * n; b += gridDim.x) {
    int i = b * blockDim.x + threadIdx.x;
    if (i >= n * n) continue;
    y[i] = x[i] + k[b];
  }
}
extern "C" __global__ void place_sums(const float *x, const float *, float *y, int n) {
  long long c = ((long long)blockDim.x * blockIdx.x) + threadIdx.x;
  if (c >= n) return;
  float s = 0.f;
  for (int r = 0; r < n; r++) s += x[r * n + c];
  y[c] = s;
}
]==]

  it("runs in the form that suits it, with the results of plain threads", function()
    local wanted = { product = "strips", columns = "strips", convolution = "strips",
      dots = "strips", column_of = "strips", headed = "strips", some = "loop",
      sequence = "loop",
      gaps = "strips", counted = "loop", rows = "loops", width = "loop", fixed = "loop",
      whiles = "loops", outside = "loops", older = "loops", copies = "loop",
      copies_whole = "loops", skips = "loop", hides = "loop", behind = "loop",
      places = "loop", place_sums = "strips", parts = "loops", shifted = "loops",
      twice = "loops", flat_grid = "loops", small_product = "loops", tiles = "loops",
      tiles_by_size_t = "loops", tiles_with_more = "loop" }
    local modules = { forms.module_as(nil, source), forms.module_as("plain", source) }
    local values = ffi.new "float[9216]"
    for i = 0, 9215 do values[i] = i * 7 % 16 end -- sums of products of these are exact
    local x, k = cg.from(values, "float"), cg.from(values, "float")
    for name, form in pairs(wanted) do
      assert.equal(form, (modules[1]:kernel(name):form()), name)
      assert.equal("loop", (modules[2]:kernel(name):form()), name)
      for _, shape in ipairs { { 96, { 16, 16 } }, { 83, { 32, 8 } }, { 41, { 7, 5 } } } do
        local n, got = shape[1], {}
        for m, module in ipairs(modules) do
          local y = cg.full("float", 9216, 1)
          module:kernel(name):launch({ 100, math.ceil(n / shape[2][2]) }, shape[2], x, k, y, n)
          got[m] = y:download()
        end
        for i = 1, 9216 do
          if got[1][i] ~= got[2][i] then
            error(("%s of %d: element %d is %g, not %g"):format(name, n, i, got[1][i], got[2][i]),
              0)
          end
        end
      end
    end
  end)
end)
