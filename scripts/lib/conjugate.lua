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

local cg = require "cgraphlua"

local conjugate = {}
conjugate.__index = conjugate

local WIDE, DEEP = 64, 4 -- the threads of a block

local source = [=[
#ifndef ROWS // whoever compiles this says how many rows a thread goes down
#define ROWS 4
#endif
#define WIDE 64
#define DEEP 4
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

static __device__ float at(const float *v, int n, int x, int y)
{
  return x >= 0 && x < n && y >= 0 && y < n ? v[y * n + x] : 0.f;
}

// Reads ROWS numbers of a column from row y on, and applies the operator.
static __device__ void read(const float *v, int n, int x, int y, float *here,
                            float *applied)
{
  float above = at(v, n, x, y - 1), now = at(v, n, x, y);
#pragma unroll
  for (int k = 0; k < ROWS; k++) {
    float below = at(v, n, x, y + k + 1);
    here[k] = now;
    applied[k] = 4.f * now - above - below - at(v, n, x - 1, y + k) -
                 at(v, n, x + 1, y + k);
    above = now;
    now = below;
  }
}

#define COLUMN (blockIdx.x * blockDim.x + threadIdx.x)
#define ROW (ROWS * (blockIdx.y * blockDim.y + threadIdx.y))
#define FIRST (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0)

// x = 0, so r = b; a direction of 0 before the first.
extern "C" __global__ void start(const float *b, float *x, float *r, float *p,
                                 int n, float *squares, float *norm, int *turn)
{
  int column = COLUMN, row = ROW;
  float sum = 0.f;
  if (FIRST) {
    norm[1] = INFINITY;
    turn[0] = 0;
  }
  for (int k = 0; k < ROWS && row + k < n; k++)
    if (column < n) {
      int i = (row + k) * n + column;
      r[i] = b[i];
      x[i] = p[i] = 0.f;
      sum += b[i] * b[i];
    }
  leave(squares, sum);
}

// `norm` (r.r) and `turn` (how many directions there were) are pairs: `direct`
// reads one of each and writes the other, `advance` the reverse, so that no
// block reads what another one writes.  Of the two arrays in p the last
// direction is that of the turn's parity.  What a thread can read before it
// knows the sum, it reads first.
extern "C" __global__ void direct(const float *__restrict__ r, float *p, int n,
                                  const float *squares, float *products,
                                  float *norm, int *turn, float limit,
                                  int *going)
{
  int column = COLUMN, row = ROW, now = turn[0] + 1;
  const float *last = p + (now & 1 ? 0 : (size_t)n * n);
  float *next = p + (now & 1 ? (size_t)n * n : 0);
  float residual[ROWS], applied[ROWS], old[ROWS], old_applied[ROWS], sum = 0.f;
  read(r, n, column, row, residual, applied);
  read(last, n, column, row, old, old_applied);
  float square = total(squares), b = square / norm[1];
#pragma unroll
  for (int k = 0; k < ROWS; k++)
    if (column < n && row + k < n) {
      float direction = residual[k] + b * old[k];
      next[(row + k) * n + column] = direction;
      sum += direction * (applied[k] + b * old_applied[k]);
    }
  leave(products, sum);
  if (FIRST) {
    norm[0] = square;
    turn[1] = now;
    *going = square > limit;
  }
}

extern "C" __global__ void advance(float *x, float *r,
                                   const float *__restrict__ p, int n,
                                   const float *products, float *squares,
                                   float *norm, int *turn)
{
  int column = COLUMN, row = ROW, now = turn[1];
  float direction[ROWS], applied[ROWS], solution[ROWS], residual[ROWS];
  read(p + (now & 1 ? (size_t)n * n : 0), n, column, row, direction, applied);
#pragma unroll
  for (int k = 0; k < ROWS; k++)
    if (column < n && row + k < n) {
      solution[k] = x[(row + k) * n + column];
      residual[k] = r[(row + k) * n + column];
    }
  float square = norm[0], a = square / total(products), sum = 0.f;
#pragma unroll
  for (int k = 0; k < ROWS; k++)
    if (column < n && row + k < n) {
      float rest = residual[k] - a * applied[k];
      x[(row + k) * n + column] = solution[k] + a * direction[k];
      r[(row + k) * n + column] = rest;
      sum += rest * rest;
    }
  leave(squares, sum);
  if (FIRST) {
    norm[1] = square;
    turn[0] = now;
  }
}
]=]

-- Rows that a thread goes down: few where there are few points, so that there
-- are enough blocks; many where there are many, so that the parts are few.
local function rows_for(n)
  if cg.device().device == "host" then
    return 16
  end
  return n <= 512 and 1 or n <= 1024 and 4 or 8
end

--- A solver for n x n unknowns: fill `b`, and find `x`.  opts.rows: instead of
-- rows_for(n).
function conjugate.new(n, opts)
  local self = setmetatable({ n = n }, conjugate)
  local rows = opts and opts.rows or rows_for(n)
  local module = cg.module(source, { options = { "-DROWS=" .. rows } })
  for _, name in ipairs(module:kernels()) do
    self[name .. "_kernel"] = module:kernel(name)
  end
  self.grid = { math.ceil(n / WIDE), math.ceil(n / (rows * DEEP)) }
  self.block = { WIDE, DEEP }
  self.b, self.x = cg.zeros("float", { n, n }), cg.zeros("float", { n, n })
  self.r, self.p = cg.buffer("float", { n, n }), cg.buffer("float", { 2 * n, n })
  local parts = self.grid[1] * self.grid[2]
  self.squares, self.products = cg.buffer("float", parts), cg.buffer("float", parts)
  self.norm, self.turn = cg.buffer("float", 2), cg.buffer("int32", 2)
  self.going = cg.zeros("int32", 1)
  return self
end

function conjugate:issue_direct(limit)
  self.direct_kernel:launch(self.grid, self.block, self.r, self.p, self.n, self.squares,
    self.products, self.norm, self.turn, limit, self.going)
end

--- Issues what comes before the first iteration.
function conjugate:begin(limit)
  self.start_kernel:launch(self.grid, self.block, self.b, self.x, self.r, self.p, self.n,
    self.squares, self.norm, self.turn)
  self:issue_direct(limit)
end

--- Issues one iteration, which leaves in `going` whether r.r is above `limit`.
function conjugate:iterate(limit)
  self.advance_kernel:launch(self.grid, self.block, self.x, self.r, self.p, self.n,
    self.products, self.squares, self.norm, self.turn)
  self:issue_direct(limit)
end

--- r.r after the last iteration.  Waits.
function conjugate:residual_squares()
  return self.norm:download()[1]
end

return conjugate
