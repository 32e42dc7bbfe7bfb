-- The sum of the whole numbers up to n, by a graph that is captured once in each
-- worker and replayed for each request.
local cg = require "cgraphlua"

local MOST = 65536

local sum = cg.kernel [=[
extern "C" __global__ void sum(unsigned long long *total, const int *n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x + 1;
  if (i <= *n) atomicAdd(total, (unsigned long long)i);
}]=]

local wanted, n = cg.pinned("int32", 1), cg.zeros("int32", 1)
local total = cg.zeros("uint64", 1)
local graph = cg.capture(function()
  n:copy(wanted)
  total:fill(0)
  sum:over(MOST)(total, n)
end)

return function(count)
  if count < 0 or count > MOST then return "n goes from 0 to " .. MOST end
  wanted:cdata()[0] = count
  graph:replay()
  return total:download()[1]
end
