-- Captures whose temporary memory is worth planning: a step of a transformer, a
-- U-shaped network, the passes of a game's frame, and a tree of reductions.
-- Each is a function that issues its work; sizes are counts of floats.

local cg = require "cgraphlua"

local shapes = {}

-- While it is a function: told of new buffers, with their bytes, and of their ends.
shapes.on_memory = nil

-- Reads all of both inputs, as far as they reach, and writes all of its result.
local mix = cg.kernel [[
extern "C" __global__ void mix(float *y, const float *a, const float *b, int n, int na, int nb) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = a[i % na] * 0.5f + b[i % nb] + 1;
}]]

-- A new buffer of `n`, made of one or two others.
local function make(n, a, b)
  b = b or a
  local y = cg.buffer("float", n)
  if shapes.on_memory then shapes.on_memory(y, 4 * n) end
  mix:launch(1, 32, y, a, b, n, #a, #b)
  return y
end

local function into(y, a, b)
  b = b or a
  mix:launch(1, 32, y, a, b, #y, #a, #b)
end

local function drop(...)
  for _, b in ipairs { ... } do
    if shapes.on_memory then shapes.on_memory(b) end
    b:release()
  end
end

-- Attention by heads, then a perceptron, in each of two layers.
function shapes.transformer(unit, x, result)
  local own = false
  for _ = 1, 2 do
    local q, k, v = make(4 * unit, x), make(4 * unit, x), make(4 * unit, x)
    local heads = {}
    for h = 1, 4 do
      local qh, kh = q:view((h - 1) * unit + 1, unit), k:view((h - 1) * unit + 1, unit)
      local vh = v:view((h - 1) * unit + 1, unit)
      local scores = make(2 * unit, qh, kh)
      local weights = make(2 * unit, scores)
      drop(scores)
      heads[h] = make(unit, weights, vh)
      drop(weights, qh, kh, vh)
    end
    drop(q, k, v)
    local left, right = make(2 * unit, heads[1], heads[2]), make(2 * unit, heads[3], heads[4])
    drop(unpack(heads))
    local joined = make(4 * unit, left, right)
    drop(left, right)
    local hidden = make(16 * unit, joined)
    local active = make(16 * unit, hidden)
    drop(hidden)
    local out = make(4 * unit, active, joined)
    drop(active, joined)
    if own then drop(x) end
    x, own = out, true
  end
  into(result, x)
  drop(x)
end

-- Down by halves, up again beside what was kept on the way.
function shapes.unet(unit, x, result)
  local kept, at = {}, make(32 * unit, x)
  for level = 1, 4 do
    local n = 32 * unit / 2 ^ level
    local wide = make(#at, at)
    kept[level] = make(#at, wide)
    drop(at, wide)
    at = make(n, kept[level])
  end
  for level = 4, 1, -1 do
    local up = make(#kept[level], at)
    local both = make(#kept[level], up, kept[level])
    drop(at, up, kept[level])
    at = both
  end
  into(result, at)
  drop(at)
end

-- Shadows of three lights, what is seen, light, bloom, the picture.
function shapes.frame(unit, x, result)
  local shadows = {}
  for light = 1, 3 do shadows[light] = make(8 * unit, x) end
  local depth = make(4 * unit, x)
  local normals, albedo = make(4 * unit, depth, x), make(8 * unit, depth, x)
  local occlusion = make(2 * unit, depth, normals)
  local lit = make(8 * unit, albedo, occlusion)
  drop(albedo, occlusion)
  for light = 1, 3 do
    local one = make(8 * unit, shadows[light], normals)
    local sum = make(8 * unit, lit, one)
    drop(shadows[light], one, lit)
    lit = sum
  end
  drop(normals, depth)
  local bright = make(2 * unit, lit)
  local small = make(unit, bright)
  drop(bright)
  local bloom = make(2 * unit, small)
  drop(small)
  into(result, lit, bloom)
  drop(lit, bloom)
end

-- Sums of pairs of sums, 32 leaves.
function shapes.tree(unit, x, result)
  local function sum(level)
    if level == 0 then return make(unit, x) end
    local a, b = sum(level - 1), sum(level - 1)
    local y = make(unit, a, b)
    drop(a, b)
    return y
  end
  local root = sum(5)
  into(result, root)
  drop(root)
end

-- "name", and what issues it on new buffers of the size: (run, result).
function shapes.each(unit, fn)
  for _, name in ipairs { "transformer", "unet", "frame", "tree" } do
    local x, result = cg.full("float", 4 * unit, 0.25), cg.zeros("float", 4 * unit)
    fn(name, function() shapes[name](unit, x, result) end, result)
  end
end

return shapes
