-- What the specs about graphs that share a pool have in common.  Load with
-- dofile; setup(M.open), teardown(M.close).

local cg = require "cgraphlua"

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local device = dofile(here .. "/device.lua")

local N = 1000
local KERNELS = { "plus", "more", "slow" }
local source = [[
extern "C" __global__ void plus(float *y, const float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + a;
}
extern "C" __global__ void more(float *y, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += a;
}
extern "C" __global__ void slow(float *y, float a, int rounds, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = a;
  for (int k = 0; k < rounds; k++) v = v * 0.5f + a * 0.5f;
  y[i] = v;
}]]

local M = { N = N, device = device }

--- Makes the kernels, fields of M under their names.
function M.open()
  local module = cg.module(source)
  for _, name in ipairs(KERNELS) do M[name] = module:kernel(name) end
end

function M.close()
  for _, name in ipairs(KERNELS) do M[name] = nil end
  device.nothing_alive()
end

--- A new buffer of N floats: x + a.
function M.add(x, a)
  local y = cg.buffer("float", N)
  M.plus:over(N)(y, x, a, N)
  return y
end

--- Captures fn into the pool.
function M.capture(pool, fn, opts)
  opts = opts or {}
  opts.pool = pool
  return cg.capture(fn, opts)
end

return M
