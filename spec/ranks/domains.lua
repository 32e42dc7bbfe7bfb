-- A grid in parts takes the steps of the grid in one piece: the same bits.

local cg = require "cgraphlua"
local world = cg.ranks { seconds = 60 }

local source = [==[
extern "C" __global__ void step(const float *u, float *v, int first, int rows, int nx) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows * nx) return;
  int y = first + i / nx, x = i % nx, at = y * nx + x;
  v[at] = u[at] + 0.1f * (u[at - nx] + u[at + nx] + u[y * nx + (x + 1) % nx] +
                          u[y * nx + (x + nx - 1) % nx] - 4 * u[at]);
}]==]
local step = cg.kernel(source)

-- With a margin, inner rows are computed beside the exchange.
local function run(group, ny, nx, halo, periodic, order, margin)
  local d = cg.domain { shape = { ny, nx }, halo = halo, periodic = periodic, ranks = group }
  local u, v, start = d:field "float", d:field "float", {}
  for i = 1, ny * nx do start[i] = (i * 37 % 101) / 7 end
  d:upload(u, start)
  local function advance(a, b)
    local function work(first, rows)
      step:over(rows * nx)(a, b, first, rows, nx)
    end
    if margin then
      d:overlap({ a }, work, margin)
    else
      d:exchange(a)
      work(halo, d.rows)
    end
  end
  local graph = cg.capture(function()
    advance(u, v)
    advance(v, u)
  end, { order = order })
  advance(u, v)
  advance(v, u)
  graph:replay(3)
  return d:gather(u)
end

local alone = world:split(world.rank)
local cases = 0
local function same(ny, nx, halo, periodic, order)
  local whole = run(alone, ny, nx, halo, periodic, order)
  for _, margin in ipairs { false, halo, halo + 1 } do
    local parts = run(world, ny, nx, halo, periodic, order, margin)
    assert((parts == nil) == (world.rank ~= 0))
    if parts then
      assert(parts:download "string" == whole:download "string",
        ("%d x %d differs, margin %s"):format(ny, nx, tostring(margin)))
      cases = cases + 1
    end
  end
end

for _, shape in ipairs { { 17, 5, 1 }, { 8, 1, 2 }, { 23, 64, 2 }, { 8, 3, 1 } } do
  for _, periodic in ipairs { false, true } do
    for _, order in ipairs { "issue", "data" } do
      same(shape[1], shape[2], shape[3], periodic, order)
    end
  end
end
local ok, e = pcall(cg.domain, { shape = { 1, 5 }, halo = 3 })
assert(not ok and tostring(e):find "rows for", e)
if world.rank == 0 then print("right: " .. cases .. " grids") end
