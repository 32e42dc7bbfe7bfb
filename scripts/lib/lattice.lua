-- A D2Q9 lattice Boltzmann solver, captured as a graph: what scripts/lbm.lua
-- runs.  local lattice = dofile "scripts/lib/lattice.lua"
--
-- Units are the lattice's: cells and steps.  f[q] holds the population that
-- moves along direction q, less its value at rest, so that single precision
-- is enough.  A step is these kernels:
--   links    writes what enters a cell from a wall, the inflow or the
--            obstacle into the slot from which that cell will read it,
--   flux,    do so for the end of a channel, whose pressure is 0 but lets
--   outlet   sound leave (links notes for them how much flows out of each row),
--   collide  reads each cell's nine populations from its neighbours, relaxes
--            them (incompressible and regularised: of what is out of balance
--            only shear stress survives, so that sound dies out) and writes
--            them to the other buffer.
-- So no cell needs to know the kind of its neighbour.  Curved walls follow Bouzidi,
-- Firdaouss and Lallemand, Physics of Fluids 13 (2001), quadratic.
--
-- On a GPU the first cell of each row lies at a multiple of LINE floats, as many as
-- its memory moves at once; without it a step takes a third longer.  Cell x of row r
-- has the index r * pitch + LINE + x, and so have those beside the box (x = -1).
--
-- The rows of a channel are divided among ranks; row r of a part is row y of the
-- channel, r = y - first + HALO.  Links read two rows beyond their cell.  While ranks
-- exchange these rows, each goes on with cells that do not need them: those MARGIN
-- rows inside, as a step also writes the row beside a cell.

local cg = require "cgraphlua"
local ffi = require "ffi"
local progress = require "cgraphlua.progress"

local lattice = {}

local STEPS_PER_REPLAY = 10 -- even: the flow ends in the buffer it began in
local HALO, MARGIN = 2, 3 -- rows
local COLUMNS = 256 -- threads of a block that collides
local MOST_TRANSFERS = 64 -- of an exchange
local SUMS = 64 -- threads that share a sum, and leave it in as many parts

local source = [=[
#ifndef LINE // whoever compiles this gives it
#define LINE 32
#endif

// f[place.x] = weight.xyz * f[place.yzw] + weight.w; and, by `rows` more threads,
// the flow out of each row from `row` on.
extern "C" __global__ void links(float *f, const int4 *place,
                                 const float4 *weight, int n,
                                 const float *fluid, float *outflow, int nx,
                                 int row, int rows, int pitch, int cells)
{
  int l = blockIdx.x * blockDim.x + threadIdx.x;
  if (l < n) {
    int4 at = place[l];
    float4 w = weight[l];
    f[at.x] = w.x * f[at.y] + w.y * f[at.z] + w.z * f[at.w] + w.w;
  } else if (l < n + rows) {
    int i = (row + l - n) * pitch + LINE + nx - 1;
    float u = f[cells + i] - f[3 * cells + i] + f[5 * cells + i] -
              f[6 * cells + i] - f[7 * cells + i] + f[8 * cells + i];
    outflow[l - n] = fluid[i] * u;
  }
}

// The sum of the flows, as one for each thread.
extern "C" __global__ void flux(const float *outflow, int ny, float *sums)
{
  float sum = 0.f;
  for (int y = threadIdx.x; y < ny; y += blockDim.x)
    sum += outflow[y];
  sums[threadIdx.x] = sum;
}

// Populations 3, 6 and 7 come back from beyond the last column, at the pressure
// of a sound wave that leaves: sqrt(3) times the mean speed above `speed`.  The
// first of the rows is the channel's row `first`, of ny.
extern "C" __global__ void outlet(float *f, int nx, int row, int rows,
                                  int first, int ny, int pitch, int cells,
                                  const float *sums, int n_sums, float speed)
{
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    int y = first + r;
    float total = 0.f;
    for (int k = 0; k < n_sums; k++)
      total += sums[k];
    int i = (row + r) * pitch + LINE + nx - 1;
    float f1 = f[cells + i], f2 = f[2 * cells + i], f3 = f[3 * cells + i];
    float f4 = f[4 * cells + i], f5 = f[5 * cells + i], f6 = f[6 * cells + i];
    float f7 = f[7 * cells + i], f8 = f[8 * cells + i];
    float u = f1 - f3 + f5 - f7 - f6 + f8;
    float v = f2 - f4 + f5 - f7 + f6 - f8;
    float e = 1.7320508f * (total / ny - speed) - 1.5f * (u * u + v * v);
    f[3 * cells + i + 1] = -f1 + 2.f / 9.f * (e + 4.5f * u * u);
    if (y > 0)
      f[6 * cells + i + 1 - pitch] =
          -f8 + 1.f / 18.f * (e + 4.5f * (v - u) * (v - u));
    if (y < ny - 1)
      f[7 * cells + i + 1 + pitch] =
          -f5 + 1.f / 18.f * (e + 4.5f * (u + v) * (u + v));
  }
}

extern "C" __global__ void collide(const float *f, float *g, const float *fluid,
                                   int nx, int row, int pitch, int cells,
                                   float omega)
{
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = row + blockIdx.y;
  if (x < nx) {
    int i = y * pitch + LINE + x;
    float f0 = f[i];
    float f1 = f[cells + i - 1], f3 = f[3 * cells + i + 1];
    float f2 = f[2 * cells + i - pitch], f4 = f[4 * cells + i + pitch];
    float f5 = f[5 * cells + i - pitch - 1], f7 = f[7 * cells + i + pitch + 1];
    float f6 = f[6 * cells + i - pitch + 1], f8 = f[8 * cells + i + pitch - 1];

    float p = f0 + f1 + f2 + f3 + f4 + f5 + f6 + f7 + f8;
    float u = f1 - f3 + f5 - f7 - f6 + f8;
    float v = f2 - f4 + f5 - f7 + f6 - f8;
    float keep = 1.f - omega;
    float shear = keep * 0.5f * (f1 + f3 - f2 - f4 - u * u + v * v);
    float xx = u * u + shear, yy = v * v - shear;
    float xy = u * v + keep * (f5 + f7 - f6 - f8 - u * v);

    // Nothing moves in a solid cell.
    float e = fluid[i] * (p - 1.5f * (xx + yy));
    float a = fluid[i] / 9.f, b = fluid[i] / 36.f;
    float e1 = e / 9.f, e5 = e / 36.f;
    g[i] = 4.f / 9.f * e;
    g[cells + i] = e1 + a * (4.5f * xx + 3.f * u);
    g[2 * cells + i] = e1 + a * (4.5f * yy + 3.f * v);
    g[3 * cells + i] = e1 + a * (4.5f * xx - 3.f * u);
    g[4 * cells + i] = e1 + a * (4.5f * yy - 3.f * v);
    g[5 * cells + i] = e5 + b * (4.5f * (xx + yy + 2.f * xy) + 3.f * (u + v));
    g[6 * cells + i] = e5 + b * (4.5f * (xx + yy - 2.f * xy) + 3.f * (v - u));
    g[7 * cells + i] = e5 + b * (4.5f * (xx + yy + 2.f * xy) - 3.f * (u + v));
    g[8 * cells + i] = e5 + b * (4.5f * (xx + yy - 2.f * xy) - 3.f * (v - u));
  }
}

// The momentum that the obstacle's links exchange in this step, as one sum
// for each thread: always added in the same order, on every device.
extern "C" __global__ void force(const float *f, const int4 *place, int n,
                                 int cells, const int *sample, float *history)
{
  const int cx[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
  const int cy[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
  int t = threadIdx.x;
  float fx = 0.f, fy = 0.f;
  for (int l = t; l < n; l += blockDim.x) {
    int4 at = place[l];
    int q = at.x / cells;
    float exchanged = f[at.x] + f[at.y];
    fx -= cx[q] * exchanged;
    fy -= cy[q] * exchanged;
  }
  float *sum = history + 2 * (*sample * blockDim.x + t);
  sum[0] = fx;
  sum[1] = fy;
}

extern "C" __global__ void tick(int *sample)
{
  *sample += 1;
}

extern "C" __global__ void velocity(const float *f, float *u, float *v, int n,
                                    int cells)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    u[i] = f[cells + i] - f[3 * cells + i] + f[5 * cells + i] -
           f[7 * cells + i] - f[6 * cells + i] + f[8 * cells + i];
    v[i] = f[2 * cells + i] - f[4 * cells + i] + f[5 * cells + i] -
           f[7 * cells + i] + f[6 * cells + i] - f[8 * cells + i];
  }
}
]=]

local CX = { [0] = 0, 1, 0, -1, 0, 1, -1, -1, 1 }
local CY = { [0] = 0, 0, 1, 0, -1, 1, 1, -1, -1 }
local OPPOSITE = { [0] = 0, 3, 4, 1, 2, 7, 8, 5, 6 }
local WEIGHT = { [0] = 4 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 9, 1 / 36, 1 / 36, 1 / 36, 1 / 36 }

lattice.CX, lattice.CY, lattice.STEPS_PER_REPLAY = CX, CY, STEPS_PER_REPLAY

-- A flow in a box of nx x ny cells, described by a table of functions:
--   solid(x, y)        is the cell part of the obstacle? (cells count from 0)
--   cut(x, y, q)       how far from the cell along q the obstacle's surface is,
--                      in links; 1/2 when left out
--   inflow(y)          speed at height y, which makes it a channel with walls
--                      and an outlet; without it the box is periodic
--   ranks              of a channel, who have its rows: cg.ranks()
--   start(x, y)        pressure (as density) and velocity at a cell's middle
--   line               LINE: 32; 1 on the host device, where less memory is faster
function lattice.flow(nx, ny, viscosity, case)
  local line = case.line or cg.device().device == "host" and 1 or 32
  local pitch = line * math.ceil((nx + 2) / line)
  local part = cg.domain { shape = { ny, pitch }, halo = HALO, ranks = case.ranks }
  local flow = { nx = nx, ny = ny, line = line, pitch = pitch, part = part,
    cells = part.shape[1] * pitch + line }
  if part.ranks.size > 1 and not case.inflow then
    error("a periodic box has no parts", 0)
  end
  if 9 * flow.cells >= 2 ^ 31 then
    error(string.format("%d x %d cells are more than the kernels can count", nx, ny), 0)
  end
  local solid = case.solid or function()
    return false
  end
  local function index(q, x, y)
    return q * flow.cells + (y - part.first + HALO) * pitch + line + x
  end
  local function open(x, y)
    return x >= 0 and x < nx and y >= 0 and y < ny and not solid(x, y)
  end

  -- Links by the rows of their cells: inner ones, then those of either border.
  local inner, inner_rows = part:inner(MARGIN)
  local links, surface = { [0] = {}, {}, {} }, {}
  local function add_link(y, link)
    local row = y - part.first + HALO
    local border = (row < inner or inner_rows == 0) and 1 or row < inner + inner_rows and 0 or 2
    table.insert(links[border], link)
  end
  local function surface_link(x, y, q)
    local back, at = OPPOSITE[q], index(q, x, y)
    local link = { index(back, x + CX[q], y + CY[q]), at, at, at, 1, 0, 0, 0 }
    local d = case.cut and case.cut(x, y, q) or 0.5
    local x1, y1, x2, y2 = x - CX[q], y - CY[q], x - 2 * CX[q], y - 2 * CY[q]
    if d ~= 0.5 and open(x1, y1) and open(x2, y2) then
      if d < 0.5 then
        link[3], link[4] = index(q, x1, y1), index(q, x2, y2)
        link[5], link[6], link[7] = d * (1 + 2 * d), 1 - 4 * d * d, -d * (1 - 2 * d)
      else
        link[3], link[4] = index(back, x, y), index(back, x1, y1)
        link[5], link[6] = 1 / (d * (2 * d + 1)), (2 * d - 1) / d
        link[7] = -(2 * d - 1) / (2 * d + 1)
      end
    end
    surface[#surface + 1] = link
    add_link(y, link)
  end
  local function border_link(x, y, q)
    local back, to_x, to_y, at = OPPOSITE[q], x + CX[q], y + CY[q], index(q, x, y)
    local added = 0
    if not case.inflow then -- what leaves at one side comes in at the other
      at = index(back, to_x % nx, to_y % ny)
    elseif to_y >= 0 and to_y < ny then
      if to_x >= nx then
        return -- the outlet's
      end
      added = -6 * WEIGHT[q] * CX[q] * case.inflow(y + 0.5 + 0.5 * CY[q])
    end
    add_link(y, { index(back, to_x, to_y), at, at, at, 1, 0, 0, added })
  end

  local f = ffi.new("float[?]", 9 * flow.cells)
  local fluid = ffi.new("float[?]", flow.cells)
  for y = part.first, part.first + part.rows - 1 do
    for x = 0, nx - 1 do
      if not solid(x, y) then
        fluid[index(0, x, y)] = 1
        local p, u, v = case.start(x + 0.5, y + 0.5)
        for q = 0, 8 do
          local c = CX[q] * u + CY[q] * v
          f[index(q, x, y)] = WEIGHT[q] * (p + 3 * c + 4.5 * c * c - 1.5 * (u * u + v * v))
          local to_x, to_y = x + CX[q], y + CY[q]
          if to_x < 0 or to_x >= nx or to_y < 0 or to_y >= ny then
            border_link(x, y, q)
          elseif solid(to_x, to_y) then
            surface_link(x, y, q)
          end
        end
      end
    end
  end

  local function upload(list, kind, first)
    local values = ffi.new(kind == "int32" and "int[?]" or "float[?]", math.max(4, 4 * #list))
    for l, link in ipairs(list) do
      for k = 0, 3 do
        values[4 * (l - 1) + k] = link[first + k]
      end
    end
    return cg.from(values, kind)
  end
  flow.module = cg.module(source, { options = { "-DLINE=" .. line } })
  flow.links = {}
  for border = 0, 2 do
    local list = links[border]
    flow.links[border] = { count = #list, place = upload(list, "int32", 1),
      weight = upload(list, "float", 5) }
  end
  flow.surface, flow.surface_links = upload(surface, "int32", 1), #surface
  flow.has_obstacle = case.solid ~= nil
  flow.fluid = cg.from(fluid, "float")
  flow.f = cg.from(f, "float")
  flow.g = cg.zeros("float", 9 * flow.cells)
  flow.is_channel, flow.solid, flow.speed = case.inflow ~= nil, solid, 0
  for y = 0, ny - 1 do
    flow.speed = flow.speed + (case.inflow and case.inflow(y + 0.5) or 0) / ny
  end
  flow.omega = 1 / (3 * viscosity + 0.5)
  return flow
end

-- Runs at least `steps` steps and returns how many they were, and the forces
-- on the obstacle along x and y after every STEPS_PER_REPLAY of them.
function lattice.run(flow, steps, label)
  local kernel = {}
  for _, name in ipairs { "links", "flux", "outlet", "collide", "force", "tick" } do
    kernel[name] = flow.module:kernel(name)
  end
  local replays = math.ceil(steps / STEPS_PER_REPLAY)
  local samples = flow.has_obstacle and replays or 0
  local history = cg.zeros("float", math.max(1, samples) * 2 * SUMS)
  local sample, sums = cg.zeros("int32", 1), cg.zeros("float", SUMS)
  local part, nx, ny, pitch, cells = flow.part, flow.nx, flow.ny, flow.pitch, flow.cells
  local outflow = cg.zeros("float", ny)
  local own_outflow = outflow:view(part.first + 1, part.rows)
  local moving = { [flow.f] = {}, [flow.g] = {} } -- what crosses rows
  for buffer, planes in pairs(moving) do
    for q = 1, 8 do
      if CY[q] ~= 0 then
        planes[#planes + 1] = buffer:view(q * cells + flow.line, part.shape[1] * pitch)
      end
    end
  end

  local function link(from, border, rows)
    local links = flow.links[border]
    if links.count + rows > 0 then
      kernel.links:launch(math.ceil((links.count + rows) / 128), 128, from, links.place,
        links.weight, links.count, flow.fluid, own_outflow, nx, HALO, rows, pitch, cells)
    end
  end
  local function outlet(from, row, rows)
    kernel.outlet:launch(math.ceil(rows / 32), 32, from, nx, row, rows, part.first + row - HALO,
      ny, pitch, cells, sums, SUMS, flow.speed)
  end
  -- The columns from `first` to before `last`.
  local function collide(from, to, row, rows, first, last)
    local function shifted(buffer)
      return first > 0 and buffer:view(first + 1, #buffer - first) or buffer
    end
    if last > first and rows > 0 then
      kernel.collide:launch({ math.ceil((last - first) / COLUMNS), rows }, COLUMNS, shifted(from),
        shifted(to), shifted(flow.fluid), last - first, row, pitch, cells, flow.omega)
    end
  end
  local function alone(from, to)
    link(from, 0, flow.is_channel and part.rows or 0)
    if flow.is_channel then
      kernel.flux:launch(1, SUMS, outflow, ny, sums)
      outlet(from, HALO, part.rows)
    end
    collide(from, to, HALO, part.rows, 0, nx)
  end

  -- With neighbours: a branch, more urgent than the inner rows, does all that waits
  -- for other ranks.  It begins before them, as they fill the device.  Only the last
  -- columns see what flows out.
  local inner, inner_rows = part:inner(MARGIN)
  local last_columns = COLUMNS * (math.ceil(nx / COLUMNS) - 1)
  local side, known = cg.stream { priority = -1000 }, cg.event()
  local function border(from, to, number, row, rows)
    link(from, number, 0)
    outlet(from, row, rows)
    collide(from, to, row, rows, 0, nx)
  end
  -- Brings the neighbours' rows, and how much flows out of all rows, which it returns.
  -- One exchange is faster than two collectives; many ranks need more than it takes.
  local all_outflow = cg.zeros("float", ny)
  local function exchange(from)
    local transfers, ranks = part:transfers(unpack(moving[from])), part.ranks
    if #transfers + 2 * ranks.size > MOST_TRANSFERS then
      ranks:all_reduce(outflow, all_outflow) -- of one rank's numbers and zeros
      ranks:exchange(transfers)
      return all_outflow
    end
    for r = 0, ranks.size - 1 do
      if r ~= ranks.rank then
        local first, rows = part:part(r)
        transfers[#transfers + 1] = { send = own_outflow, to = r }
        transfers[#transfers + 1] = { recv = outflow:view(first + 1, rows), from = r }
      end
    end
    ranks:exchange(transfers)
    return outflow
  end
  local function beside(from, to)
    local stream = cg.current_stream()
    kernel.links:launch(math.ceil(part.rows / 128), 128, from, flow.links[0].place,
      flow.links[0].weight, 0, flow.fluid, own_outflow, nx, HALO, part.rows, pitch, cells)
    side:wait(stream)
    side:use(function()
      kernel.flux:launch(1, SUMS, exchange(from), ny, sums)
      if inner_rows > 0 then outlet(from, inner, inner_rows) end
      known:record()
      if inner_rows == 0 then
        border(from, to, 1, HALO, part.rows)
      else
        if part.below then border(from, to, 1, HALO, inner - HALO) end
        local above = inner + inner_rows
        if part.above then border(from, to, 2, above, HALO + part.rows - above) end
      end
    end)
    link(from, 0, 0)
    collide(from, to, inner, inner_rows, 0, last_columns)
    stream:wait(known)
    collide(from, to, inner, inner_rows, last_columns, nx)
    stream:wait(side)
  end
  local step = part.ranks.size > 1 and beside or alone
  local graph = cg.capture(function()
    for _ = 1, STEPS_PER_REPLAY / 2 do
      step(flow.f, flow.g)
      step(flow.g, flow.f)
    end
    if samples > 0 then -- the last step's links are still in g
      kernel.force:launch(1, SUMS, flow.g, flow.surface, flow.surface_links, cells, sample,
        history)
      kernel.tick:launch(1, 1, sample)
    end
  end)

  -- A row of cells that is checked for instability: growing values soon spread
  -- to it.
  local row = flow.f:view((HALO + math.floor(part.rows / 2)) * pitch + flow.line + 1, nx)
  local bar = progress.new { total = replays * STEPS_PER_REPLAY, label = label }
  local pauses, done = math.min(replays, 50), 0
  for k = 1, pauses do
    local target = math.floor(replays * k / pauses)
    graph:replay(target - done)
    done = target
    for _, value in ipairs(row:download()) do -- waits for the replays
      if not (math.abs(value) < 1) then
        bar:finish()
        error(string.format("the flow became unstable within %d steps: take more cells"
          .. " or a lower Reynolds number", done * STEPS_PER_REPLAY), 0)
      end
    end
    bar:update(done * STEPS_PER_REPLAY)
  end
  bar:finish()

  part.ranks:all_reduce(history)
  local parts, drag, lift = history:download(), {}, {}
  for s = 1, samples do
    local fx, fy = 0, 0
    for i = 2 * SUMS * (s - 1) + 1, 2 * SUMS * s, 2 do
      fx, fy = fx + parts[i], fy + parts[i + 1]
    end
    drag[s], lift[s] = fx, fy
  end
  return replays * STEPS_PER_REPLAY, drag, lift
end

-- The velocity at (x, y), cells from 0: two functions, over what the flow is now.
-- Rank 0 alone has them; every rank calls this.
function lattice.velocities(flow)
  local u, v = cg.buffer("float", flow.cells), cg.buffer("float", flow.cells)
  flow.module:kernel("velocity"):over(flow.cells)(flow.f, u, v, flow.cells, flow.cells)
  local function at(buffer)
    local whole = flow.part:gather(buffer:view(flow.line, flow.part.shape[1] * flow.pitch))
    if not whole then
      return nil
    end
    local values, pitch = whole:download(ffi.new("float[?]", #whole)), flow.pitch
    return function(x, y)
      return values[y * pitch + 1 + x]
    end
  end
  return at(u), at(v)
end

return lattice
