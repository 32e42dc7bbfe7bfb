-- Places of an array that are 0 or 1 by a comparison, on the host device: g++'s
-- vectorizer may take such a place for a mask, in which true is -1, or fail.
local cg = require "cgraphlua"

if (os.getenv "CGRAPHLUA_DEVICE" or "host"):find "cuda" then
  return describe("places that are comparisons", function()
    pending "a fault of a C++ compiler, which a GPU's kernels do not meet"
  end)
end

-- What one thread of i (t in its block, w = b[i]) takes, as CUDA C and as Lua;
-- a[0] and a[1] are in reach, and what lies around them is not to be seen.
local forms = {
  { "a[i > 1]", function(v) return v.i > 1 end },
  { "a[i > 1 && i < n - 3]", function(v) return v.i > 1 and v.i < v.n - 3 end },
  { "a[1 - (i >= n / 2)]", function(v) return v.i < math.floor(v.n / 2) end },
  { "a[!(i > 1)]", function(v) return v.i <= 1 end },
  { "a[w > 3 && w < 20]", function(v) return v.w > 3 and v.w < 20 end },
  { "a[(w > 3) | (t == 2)]", function(v) return v.w > 3 or v.t == 2 end },
  { "a[(blockIdx.x == 0) && (t > 1)]", function(v) return v.i == v.t and v.t > 1 end },
  { "a[w & 1]", function(v) return v.w % 2 == 1 end },
  { "a[t < 4 && t > 1] + 0", function(v) return v.t < 4 and v.t > 1 end },
  { "a[w > 9 ? 1 : 0]", function(v) return v.w > 9 end },
  { "*(a + (w > 9 || t > 3))", function(v) return v.w > 9 or v.t > 3 end },
}

-- How the place and the value come to where they are used.
local ways = {
  "o[i] = (int)VALUE;",
  "int k = 0; if (PLACE) k = 1; o[i] = (int)a[k];",
  "bool k = PLACE; o[i] = (int)a[k];",
  "short k = PLACE; if (i < n) o[i] = (int)a[k];",
  "unsigned long long k = PLACE; o[i] = (int)a[k];",
  "int2 k = make_int2(PLACE, 1); o[i] = (int)a[k.x];",
  "bool k[2] = {true, bool(PLACE)}; o[i] = (int)a[k[1]];",
  "o[i] = 0; for (int j = i; j < n; j += n) o[j] += (int)a[PLACE];",
  "o[i] = 0; for (int j = 0; j < 1; ++j) { int k = PLACE; o[i] += (int)a[k]; }",
  "__syncthreads(); bool k = PLACE; o[i] = (int)a[k];",
  "__shared__ int s[64]; int k = PLACE; s[t] = k; __syncthreads(); o[i] = (int)a[s[t]];",
  "__shared__ T s[2]; if (t < 2) s[t] = a[t]; __syncthreads(); o[i] = (int)s[PLACE];",
}
local types = { "int", "float", "double", "short", "unsigned char" }
local n = 61

-- One kernel of each way; the types take turns.
local function source(f)
  local out = {}
  -- the place alone: what stands between the form's brackets, or behind a +
  local text = forms[f][1]
  local place = text:match "^a%[(.*)%]" or text:match "^%*%(a %+ (.*)%)$"
  for y, way in ipairs(ways) do
    local body = way:gsub("PLACE", function() return "(" .. place .. ")" end)
      :gsub("VALUE", function() return "(" .. text .. ")" end)
    out[y] = ([[
extern "C" __global__ void k%d(int *o, const %s *a, const int *b, int n) {
  typedef %s T;
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  if (%s) { int w = b[i < n ? i : 0]; (void)w; %s }
}]]):format(y, types[(f + y) % #types + 1], types[(f + y) % #types + 1],
      way:find "__syncthreads" and "true" or "i < n", body)
  end
  return table.concat(out, "\n")
end

describe("places that are comparisons", function()
  local names = { int = "int32", float = "float", double = "double", short = "int16",
    ["unsigned char"] = "uint8" }
  local blocks, input = { { 8, 8 }, { 1, 64 } }, {}
  for i = 1, 64 do input[i] = i * 7 % 31 end

  for f, form in ipairs(forms) do
    it("are 0 and 1: " .. form[1], function()
      local b, module = cg.from(input, "int32"), cg.module(source(f))
      for y, way in ipairs(ways) do
        local type = types[(f + y) % #types + 1]
        local around = cg.from({ 101, 101, 101, 101, 10, 20, 101, 101 }, names[type])
        for _, block in ipairs(blocks) do
          local o = cg.zeros("int32", 64)
          module:kernel("k" .. y):launch(block[1], block[2], o, around:view(5, 2), b, n)
          local got = o:download()
          for i = 0, n - 1 do
            local v = { i = i, t = i % block[2], n = n, w = input[i + 1] }
            local want = form[2](v) and 20 or 10
            if got[i + 1] ~= want then
              error(("%s, %s, block of %d: thread %d has %s, not %d"):format(way, type,
                block[2], i, tostring(got[i + 1]), want), 0)
            end
          end
        end
      end
    end)
  end
end)
