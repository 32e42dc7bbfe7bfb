-- Conjugate gradients for the five-point Laplacian, as kernels: what
-- scripts/poisson.lua solves with.  local conjugate = dofile "scripts/lib/conjugate.lua"
--
-- The n x n unknowns x satisfy A x = b: four times a point, less its four
-- neighbours; 0 outside.  Hestenes and Stiefel's method (1952) without a
-- preconditioner, in two kernels an iteration:
--   advance   x += a p, r -= a Ap, with a = r.r / p.Ap;  sums up r.r
--   direct    p = r + b p, with b = r.r / (r.r before);  sums up p.Ap, and says
--             whether r.r is still above the limit
-- A sum over all points is ready when every block of a kernel has ended: each
-- block leaves its part of it, and each block of the next kernel adds up all
-- parts, in one order.  So the bits are the same in every run.  Ap is formed
-- twice instead of kept.  An iteration reads and writes eight numbers a point.
--
-- x, r and p have rows of `pitch` numbers, more than n, a row more before the
-- first, and enough behind the last for whole blocks.  What is outside is 0 and
-- stays so: no kernel asks whether a neighbour is inside, and left of a row is
-- the end of the row before.

local cg = require "cgraphlua"
local ffi = require "ffi"

local conjugate = {}
conjugate.__index = conjugate

local source = [=[
#ifndef ROWS // whoever compiles this says how many rows a thread goes down,
#define ROWS 4
#define WIDE 64 // and how many threads a block has, side by side
#define DEEP 4  // and one below the other
#endif
#define WARPS (WIDE * DEEP / 32)

static __device__ float block_sum(float value)
{
  __shared__ float sums[WARPS];
  int thread = threadIdx.y * WIDE + threadIdx.x;
  for (int lane = 16; lane > 0; lane /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, lane);
  __syncthreads(); // `sums` of the call before was read
  if (thread % 32 == 0)
    sums[thread / 32] = value;
  __syncthreads();
  value = 0.f;
  for (int warp = 0; warp < WARPS; warp++)
    value += sums[warp];
  return value;
}

// The sum of the parts that the blocks of the kernel before left.
static __device__ float total(const float *parts)
{
  int count = gridDim.x * gridDim.y;
  float sum = 0.f;
  for (int i = threadIdx.y * WIDE + threadIdx.x; i < count; i += WIDE * DEEP)
    sum += parts[i];
  return block_sum(sum);
}

static __device__ void leave(float *parts, float value)
{
  float sum = block_sum(value);
  if (threadIdx.x == 0 && threadIdx.y == 0)
    parts[blockIdx.y * gridDim.x + blockIdx.x] = sum;
}

// Reads ROWS numbers of a column from v[i] on, and applies A.
static __device__ void read(const float *v, int i, int pitch, float *here,
                            float *applied)
{
  float above = v[i - pitch], now = v[i];
#pragma unroll
  for (int k = 0; k < ROWS; k++, i += pitch) {
    float below = v[i + pitch];
    here[k] = now;
    applied[k] = 4.f * now - above - below - v[i - 1] - v[i + 1];
    above = now;
    now = below;
  }
}

#define COLUMN (blockIdx.x * blockDim.x + threadIdx.x)
#define ROW_OF(block) (ROWS * ((block) * blockDim.y + threadIdx.y))
#define FIRST (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0)

// x = 0, so r = b; a direction of 0 before the first.
extern "C" __global__ void start(const float *b, float *x, float *r, float *p,
                                 int n, int pitch, float *squares, float *norm,
                                 int *turn)
{
  int column = COLUMN, row = ROW_OF(blockIdx.y);
  float sum = 0.f;
  if (column < n)
    for (int k = 0; k < ROWS && row + k < n; k++) {
      int i = (row + k + 1) * pitch + column;
      float value = b[(row + k) * n + column];
      r[i] = value;
      x[i] = p[i] = 0.f;
      sum += value * value;
    }
  leave(squares, sum);
  if (FIRST) {
    norm[1] = INFINITY;
    turn[0] = 0;
  }
}

// `norm` (r.r) and `turn` (how many directions there were) are pairs: `direct`
// reads one of each and writes the other, `advance` the reverse, so that no
// block reads what another one writes.  `p` and `next` are both the same two
// arrays of `size` numbers, of which the last direction is that of the turn's
// parity: what is read and what is written lie apart, and the compiler may know
// it.
extern "C" __global__ void direct(const float * r,
                                  const float * p,
                                  float * next, int pitch, int size,
                                  const float *squares, float *products,
                                  float *norm, int *turn, float limit,
                                  int *going)
{
  float residual[ROWS], applied[ROWS], last[ROWS], last_applied[ROWS];
  int i = (ROW_OF(blockIdx.y) + 1) * pitch + COLUMN, now = turn[0] + 1;
  float square = total(squares), b = norm[1] > 0.f ? square / norm[1] : 0.f;
  read(r, i, pitch, residual, applied);
  read(p + (now & 1 ? 0 : size), i, pitch, last, last_applied);
  float sum = 0.f;
  next += now & 1 ? size : 0;
#pragma unroll
  for (int k = 0; k < ROWS; k++) { // outside, everything is 0
    float direction = residual[k] + b * last[k];
    next[i + k * pitch] = direction;
    sum += direction * (applied[k] + b * last_applied[k]);
  }
  leave(products, sum);
  if (FIRST) {
    norm[0] = square;
    turn[1] = now;
    *going = square > limit;
  }
}

// From the last row to the first: what `direct` touched last is in the cache.
extern "C" __global__ void advance(float *x, float *r, const float *p, int n,
                                   int pitch, int size, const float *products,
                                   float *squares, float *norm, int *turn)
{
  float direction[ROWS], applied[ROWS], solution[ROWS], residual[ROWS];
  int column = COLUMN, row = ROW_OF(gridDim.y - 1 - blockIdx.y);
  int i = (row + 1) * pitch + column, now = turn[1];
  read(p + (now & 1 ? size : 0), i, pitch, direction, applied);
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    solution[k] = x[i + k * pitch];
    residual[k] = r[i + k * pitch];
  }
  float square = norm[0], product = total(products);
  float a = square > 0.f ? square / product : 0.f, sum = 0.f;
#pragma unroll
  for (int k = 0; k < ROWS; k++)
    if (column < n && row + k < n) {
      float rest = residual[k] - a * applied[k];
      x[i + k * pitch] = solution[k] + a * direction[k];
      r[i + k * pitch] = rest;
      sum += rest * rest;
    }
  leave(squares, sum);
  if (FIRST) {
    norm[1] = square;
    turn[0] = now;
  }
}
]=]

-- A thread's rows, and a block's width and depth in threads: few rows where
-- there are few points, so that there are enough blocks, and many where there are
-- many, so that there are few parts to add up.
local function shape_for(n)
  if cg.device().device == "host" then
    return { rows = 8, wide = n <= 64 and 64 or 256, deep = 1 }
  elseif n <= 128 then
    return { rows = 1, wide = 32, deep = 4 }
  end
  return { rows = n <= 1024 and 4 or 8, wide = 256, deep = 1 }
end

--- A solver for n x n unknowns: fill `b`.  `shape`: instead of shape_for(n).
function conjugate.new(n, shape)
  shape = shape or shape_for(n)
  local rows, wide, deep = shape.rows, shape.wide, shape.deep
  local across, down = math.ceil(n / wide), math.ceil(n / (rows * deep))
  local pitch = math.max(32 * math.ceil((n + 1) / 32), across * wide)
  local height = down * rows * deep + 2
  local self = setmetatable({ n = n, pitch = pitch, size = height * pitch,
    grid = { across, down }, block = { wide, deep } }, conjugate)
  local module = cg.module(source, { options = {
    "-DROWS=" .. rows, "-DWIDE=" .. wide, "-DDEEP=" .. deep,
  } })
  for _, name in ipairs(module:kernels()) do
    self[name .. "_kernel"] = module:kernel(name)
  end
  self.b, self.x = cg.zeros("float", { n, n }), cg.zeros("float", { height, pitch })
  self.r, self.p = cg.zeros("float", { height, pitch }), cg.zeros("float", { 2, height, pitch })
  self.squares, self.products = cg.buffer("float", across * down),
    cg.buffer("float", across * down)
  self.norm, self.turn = cg.buffer("float", 2), cg.buffer("int32", 2)
  self.going = cg.zeros("int32", 1)
  return self
end

function conjugate:issue_direct(limit)
  self.direct_kernel:launch(self.grid, self.block, self.r, self.p, self.p, self.pitch, self.size,
    self.squares, self.products, self.norm, self.turn, limit, self.going)
end

--- Issues what comes before the first iteration.
function conjugate:begin(limit)
  self.start_kernel:launch(self.grid, self.block, self.b, self.x, self.r, self.p, self.n,
    self.pitch, self.squares, self.norm, self.turn)
  self:issue_direct(limit)
end

--- Issues one iteration, which leaves in `going` whether r.r is above `limit`.
function conjugate:iterate(limit)
  self.advance_kernel:launch(self.grid, self.block, self.x, self.r, self.p, self.n,
    self.pitch, self.size, self.products, self.squares, self.norm, self.turn)
  self:issue_direct(limit)
end

--- The n x n numbers of x: a float array.  Waits.
function conjugate:solution()
  local n, all = self.n, self.x:download(ffi.new("float[?]", self.size))
  local x = ffi.new("float[?]", n * n)
  for row = 0, n - 1 do
    ffi.copy(x + row * n, all + (row + 1) * self.pitch, 4 * n)
  end
  return x
end

--- r.r after the last iteration.  Waits.
function conjugate:residual_squares()
  return self.norm:download()[1]
end

return conjugate
