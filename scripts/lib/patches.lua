-- Sixty-four patches of the Gray-Scott model with different parameters, each so
-- small that one block computes it.  local patches = dofile "scripts/lib/patches.lua"

local cg = require "cgraphlua"
local ffi = require "ffi"

local patches = { rows = 8, side = 48, steps = 20 } -- steps: of a launch

local ROWS, SIDE, THREADS = patches.rows, patches.side, 256
local F, K = { 0.018, 0.062 }, { 0.055, 0.066 }

local step = cg.kernel([=[
// STEPS steps of one patch, whose edges meet; .x is U, .y is V.
extern "C" __global__ void grow(float2 *field, float f, float k)
{
  __shared__ float2 patch[2][SIDE * SIDE];
  for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
    patch[0][i] = field[i];
  for (int n = 0; n < STEPS; n++) {
    __syncthreads();
    const float2 *p = patch[n % 2];
    for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x) {
      int x = i % SIDE, y = i / SIDE;
      int west = i - x + (x + SIDE - 1) % SIDE, east = i - x + (x + 1) % SIDE;
      int north = (y + SIDE - 1) % SIDE * SIDE + x, south = (y + 1) % SIDE * SIDE + x;
      float u = p[i].x, v = p[i].y, made = u * v * v;
      float du = p[west].x + p[east].x + p[north].x + p[south].x - 4.f * u;
      float dv = p[west].y + p[east].y + p[north].y + p[south].y - 4.f * v;
      float2 next;
      next.x = u + 0.2f * du - made + f * (1.f - u);
      next.y = v + 0.1f * dv + made - (f + k) * v;
      patch[(n + 1) % 2][i] = next;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < SIDE * SIDE; i += blockDim.x)
    field[i] = patch[STEPS % 2][i];
}]=], "grow", { options = { "-DSIDE=" .. SIDE, "-DSTEPS=" .. patches.steps } })

-- Everywhere U alone, but for a square of V in the middle, which is not quite
-- symmetric.
local start = ffi.new("float[?]", 2 * SIDE * SIDE)
for y = 0, SIDE - 1 do
  for x = 0, SIDE - 1 do
    local inside = math.abs(x - SIDE / 2) < 6 and math.abs(y - SIDE / 2) < 5
    local i = 2 * (y * SIDE + x)
    start[i] = inside and 0.5 or 1
    start[i + 1] = inside and 0.25 + 0.01 * ((3 * x + 5 * y) % 7) or 0
  end
end

local function between(range, part)
  return range[1] + (range[2] - range[1]) * part / (ROWS - 1)
end

--- New patches, row after row: a list of {field =, f =, k =}, where a field has
-- U and V of each point.
function patches.new()
  local list = {}
  for row = 0, ROWS - 1 do
    for column = 0, ROWS - 1 do
      table.insert(list, {
        field = cg.from(start, "float", 2 * SIDE * SIDE),
        f = between(F, row),
        k = between(K, column),
      })
    end
  end
  return list
end

--- Issues patches.steps steps of each, one patch after the other.
function patches.step(list)
  for _, patch in ipairs(list) do
    step:launch(1, THREADS, patch.field, patch.f, patch.k)
  end
end

return patches
