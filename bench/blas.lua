-- What cgraphlua.blas adds to its library: matrix products, eager from Lua and
-- from C and replayed, beside the same function of the library called through a
-- pointer to C; and beside peers (bench/blas_peers.py).
--   cgraphlua bench/blas.lua [--device D] [--quick] [--processor] [PEER=FILE...]

local cg = require "cgraphlua"
local blas = require "cgraphlua.blas"
local ffi = require "ffi"

local measure = dofile((arg[0]:match "^.*/" or "./") .. "measure.lua")
local read = measure.arguments(1)
local on_gpu, quick = read.on_gpu, read.quick

ffi.cdef [[
void openblas_set_num_threads(int);
void cblas_sgemm(int, int, int, int, int, int, float, const void *, int, const void *, int, float,
                 void *, int);
void cblas_dgemm(int, int, int, int, int, int, double, const void *, int, const void *, int, double,
                 void *, int);
int cublasCreate_v2(void **);
int cublasSetStream_v2(void *, void *);
int cublasGemmEx(void *, int, int, int, int, int, const void *, const void *, int, int,
                 const void *, int, int, const void *, void *, int, int, int, int);

// As in include/cgraphlua/blas.h.
typedef struct bench_arg { int kind; union { void *pointer; double number; size_t room[2]; }; }
  bench_arg;
typedef struct bench_operands {
  void *a, *b, *c;
  bool transpose_a, transpose_b, conjugate_a, conjugate_b;
  size_t columns[6];
  int precision;
  bool upper, right, unit;
  bench_arg alpha, beta;
} bench_operands;
int cgl_context_open(const char *, void **);
int cgl_stream_create(void *, int, void **);
int cgl_stream_synchronize(void *);
int cgl_buffer_create(void *, void *, int, size_t, void **);
int cgl_type_from_name(const char *);
int cgl_buffer_set_shape(void *, const size_t *, int);
int cgl_buffer_upload(void *, void *, size_t, const void *, size_t);
int cgl_blas_create(void *, void **);
int cgl_blas_issue(void *, void *, int, const bench_operands *);
]]

--- The product by the C API, on a stream of its own: a function that issues it,
-- and one that waits.
local function in_c(type, n, a, b)
  local made = ffi.new "void *[6]" -- context, stream, library, a, b, c
  assert(ffi.C.cgl_context_open(cg.device().device, made) == 0)
  assert(ffi.C.cgl_stream_create(made[0], 0, made + 1) == 0)
  assert(ffi.C.cgl_blas_create(made[0], made + 2) == 0)
  local bytes, kind = a.bytes, ffi.C.cgl_type_from_name(type)
  local room = ffi.new("char[?]", bytes)
  for i = 3, 5 do
    assert(ffi.C.cgl_buffer_create(made[1], nil, kind, n * n, made + i) == 0)
    assert(ffi.C.cgl_buffer_set_shape(made[i], ffi.new("size_t[2]", n, n), 2) == 0)
    local from = i == 3 and a or b
    from:download(room)
    assert(ffi.C.cgl_buffer_upload(made[i], made[1], 0, room, bytes) == 0)
  end
  local operands = ffi.new("bench_operands", { a = made[3], b = made[4], c = made[5] })
  return function() ffi.C.cgl_blas_issue(made[2], made[1], 0, operands) end,
    function() ffi.C.cgl_stream_synchronize(made[1]) end
end

-- plain(type, n, a, b, c): a function that issues one product.
local plain

if on_gpu then
  local found, library
  for _, name in ipairs { "libcublas.so.13", "libcublas.so.12",
                          "/usr/local/cuda/lib64/libcublas.so.13",
                          "/usr/local/cuda/lib64/libcublas.so.12" } do
    found, library = pcall(ffi.load, name)
    if found then break end
  end
  local handle = ffi.new "void *[1]"
  cg.synchronize()
  assert(library.cublasCreate_v2(handle) == 0)
  local stream = cg.current_stream()
  assert(library.cublasSetStream_v2(handle[0], ffi.cast("void *", stream:handle())) == 0)
  local kinds = { float = 0, double = 1, half = 2, bfloat16 = 14 }
  function plain(type, n, a, b, c)
    local kind, twice = kinds[type], type == "double"
    local one = ffi.new(twice and "double[1]" or "float[1]", 1)
    local zero = ffi.new(twice and "double[1]" or "float[1]", 0)
    a, b, c = ffi.cast("void *", a:address()), ffi.cast("void *", b:address()),
      ffi.cast("void *", c:address())
    return function()
      library.cublasGemmEx(handle[0], 0, 0, n, n, n, one, b, kind, n, a, kind, n, zero, c, kind, n,
        twice and 70 or 68, -1)
    end
  end
else
  local library = ffi.load "libopenblas.so.0"
  function plain(type, n, a, b)
    local size = ("%s[?]"):format(type)
    local x, y, z = ffi.new(size, n * n), ffi.new(size, n * n), ffi.new(size, n * n)
    a:download(x)
    b:download(y)
    local gemm = type == "double" and library.cblas_dgemm or library.cblas_sgemm
    return function()
      gemm(101, 111, 111, n, n, n, 1, x, n, y, n, 0, z, n)
    end, function(count) -- the library's own threads; they spin for 2^28 cycles
      library.openblas_set_num_threads(count)
      cg.sleep(0.25)
    end
  end
end

print(("%s, %s, load %s"):format(read.info.device, read.info.name, measure.load()))
print(blas.describe())
print "Products of square matrices: time of one, and plain C's time over it."
local head = ("%-10s %6s %10s %10s %8s %8s %8s"):format("type", "n", "us", "GFLOP/s", "from C",
  "eager", "replay")
for _, peer in ipairs(read.peers) do head = head .. (" %10s"):format(peer.name) end
print(head)

local gen = cg.generator(1)
local types = on_gpu and { "float", "double", "half", "bfloat16" } or { "float", "double" }
for _, type in ipairs(types) do
  for _, n in ipairs(on_gpu and { 128, 512, 2048, 8192 } or quick and { 128, 256 }
                     or { 128, 512, 2048 }) do
    local a, b = cg.buffer(type, { n, n }):uniform(gen), cg.buffer(type, { n, n }):uniform(gen)
    local c = cg.buffer(type, { n, n })
    local issue, threads = plain(type, n, a, b, c)
    local opts = { out = c }
    local g = cg.capture(function() blas.gemm(a, b, opts) end)
    local flops = 2 * n ^ 3
    local count = math.max(1, math.min(1000, math.floor((on_gpu and 1e12 or 2e10) / flops)))
    local function timed(fn, cores, wait)
      wait = wait or cg.synchronize
      return function()
        if threads then threads(cores) end
        wait()
        local start = measure.now()
        fn()
        wait()
        return (measure.now() - start) / count
      end
    end
    local function times(fn)
      return function() for _ = 1, count do fn() end end
    end
    local own, wait = in_c(type, n, a, b)
    local floor, called, eager, replay = measure.rounds(quick and 0.1 or 1, {
      timed(times(issue), read.info.multiprocessors),
      timed(times(own), 1, wait),
      timed(times(function() blas.gemm(a, b, opts) end), 1),
      timed(times(function() g:replay() end), 1),
    })
    local line = ("%-10s %6d %10s %10.0f %8.3f %8.3f %8.3f"):format(type, n,
      measure.number(measure.median(floor)), flops / measure.median(replay) / 1e3,
      measure.ratio(floor, called), measure.ratio(floor, eager), measure.ratio(floor, replay))
    for _, peer in ipairs(read.peers) do
      local us = peer[type .. n]
      line = line .. (" %10s"):format(us and ("%.3f"):format(us / measure.median(replay)) or "-")
    end
    print(line)
  end
end
