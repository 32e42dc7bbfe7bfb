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
-- r and p have rows of `pitch` numbers, more than n, and a row more at either
-- end.  What is outside is 0 and stays so: no kernel asks whether a neighbour is
-- inside, and what is left of a row is the end of the row before.

local cg = require "cgraphlua"

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

#define COLUMN (blockIdx.x * blockDim.x + threadIdx.x)
#define ROW (ROWS * (blockIdx.y * blockDim.y + threadIdx.y))
#define FIRST (threadIdx.x + threadIdx.y + blockIdx.x + blockIdx.y == 0)

// x = 0, so r = b; a direction of 0 before the first.
extern "C" __global__ void start(const float *b, float *x, float *r, float *p,
                                 int n, int pitch, float *squares, float *norm,
                                 int *turn)
{
  int column = COLUMN, row = ROW;
  float sum = 0.f;
  if (column < n)
    for (int k = 0; k < ROWS && row + k < n; k++) {
      int i = (row + k + 1) * pitch + column;
      float value = b[(row + k) * n + column];
      r[i] = value;
      x[(row + k) * n + column] = p[i] = 0.f;
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
// arrays, of which the last direction is that of the turn's parity: what is read
// and what is written lie apart, and the compiler may know it.
extern "C" __global__ void direct(const float *__restrict__ r,
                                  const float *__restrict__ p,
                                  float *__restrict__ next, int n, int pitch,
                                  const float *squares, float *products,
                                  float *norm, int *turn, float limit,
                                  int *going)
{
  int column = COLUMN, row = ROW, now = turn[0] + 1, size = (n + 2) * pitch;
  float square = total(squares), b = square / norm[1], sum = 0.f;
  p += now & 1 ? 0 : size;
  next += now & 1 ? size : 0;
  if (column < n) {
    int i = (row + 1) * pitch + column;
    float above = r[i - pitch] + b * p[i - pitch], here = r[i] + b * p[i];
#pragma unroll
    for (int k = 0; k < ROWS; k++, i += pitch)
      if (row + k < n) {
        float left = r[i - 1] + b * p[i - 1], right = r[i + 1] + b * p[i + 1];
        float below = r[i + pitch] + b * p[i + pitch];
        next[i] = here;
        sum += here * (4.f * here - above - below - left - right);
        above = here;
        here = below;
      }
  }
  leave(products, sum);
  if (FIRST) {
    norm[0] = square;
    turn[1] = now;
    *going = square > limit;
  }
}

extern "C" __global__ void advance(float *__restrict__ x, float *__restrict__ r,
                                   const float *__restrict__ p, int n,
                                   int pitch, const float *products,
                                   float *squares, float *norm, int *turn)
{
  int column = COLUMN, row = ROW, now = turn[1];
  float square = norm[0], a = square / total(products), sum = 0.f;
  p += now & 1 ? (n + 2) * pitch : 0;
  if (column < n) {
    int i = (row + 1) * pitch + column;
    float above = p[i - pitch], here = p[i], solution[ROWS], residual[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) // no read waits for a write
      if (row + k < n) {
        solution[k] = x[(row + k) * n + column];
        residual[k] = r[i + k * pitch];
      }
#pragma unroll
    for (int k = 0; k < ROWS; k++, i += pitch)
      if (row + k < n) {
        float below = p[i + pitch];
        float applied = 4.f * here - above - below - p[i - 1] - p[i + 1];
        float rest = residual[k] - a * applied;
        x[(row + k) * n + column] = solution[k] + a * here;
        r[i] = rest;
        sum += rest * rest;
        above = here;
        here = below;
      }
  }
  leave(squares, sum);
  if (FIRST) {
    norm[1] = square;
    turn[0] = now;
  }
}
]=]

-- A thread's rows, and a block's width and depth in threads: few rows where
-- there are few points, so that there are enough blocks; wide blocks where there
-- are many, because a block also reads the columns beside it.
local function shape_for(n)
  if cg.device().device == "host" then
    return 8, n <= 64 and 64 or 256, 1
  end
  if n <= 1024 then
    return n <= 128 and 1 or 4, 64, 4
  end
  return 4, 256, 1
end

--- A solver for n x n unknowns: fill `b`, and find `x`.  opts: rows, wide and
-- deep, instead of shape_for(n).
function conjugate.new(n, opts)
  local self = setmetatable({ n = n, pitch = 32 * math.ceil((n + 1) / 32) }, conjugate)
  local rows, wide, deep = shape_for(n)
  if opts then
    rows, wide, deep = opts.rows, opts.wide, opts.deep
  end
  local module = cg.module(source, { options = {
    "-DROWS=" .. rows, "-DWIDE=" .. wide, "-DDEEP=" .. deep,
  } })
  for _, name in ipairs(module:kernels()) do
    self[name .. "_kernel"] = module:kernel(name)
  end
  self.grid, self.block = { math.ceil(n / wide), math.ceil(n / (rows * deep)) }, { wide, deep }
  self.b, self.x = cg.zeros("float", { n, n }), cg.zeros("float", { n, n })
  self.r = cg.zeros("float", { n + 2, self.pitch })
  self.p = cg.zeros("float", { 2, n + 2, self.pitch })
  local parts = self.grid[1] * self.grid[2]
  self.squares, self.products = cg.buffer("float", parts), cg.buffer("float", parts)
  self.norm, self.turn = cg.buffer("float", 2), cg.buffer("int32", 2)
  self.going = cg.zeros("int32", 1)
  return self
end

function conjugate:issue_direct(limit)
  self.direct_kernel:launch(self.grid, self.block, self.r, self.p, self.p, self.n, self.pitch,
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
    self.pitch, self.products, self.squares, self.norm, self.turn)
  self:issue_direct(limit)
end

--- r.r after the last iteration.  Waits.
function conjugate:residual_squares()
  return self.norm:download()[1]
end

return conjugate
