--- What a warp makes of its values by halves, for random kernels (kernels.lua): in a loop
-- or by numbers, wanted by the first lane or by all, once or again.
-- `random`, `fresh`, `line` and `value` are the generator's; `v` is a variable of the
-- kernel that has what comes of it, and `deep` counts this within itself.
local function halving(random, fresh, line, d, v, value, deep)
  local function pick(list) return list[random(#list) + 1] end
  local h, at, o = fresh "half", fresh "where", fresh "by"
  local shuffle = pick { "__shfl_down_sync", "__shfl_down_sync", "__shfl_xor_sync" }

  local function turn(e, by)
    local kind, other = random(9), fresh "other"
    local function get(what, width)
      return ("%s(FULL, %s, %s%s)"):format(shuffle, what, by, width or "")
    end
    if kind <= 1 then line(e, "%s += %s;", h, get(h))
    elseif kind == 2 then line(e, "%s = max(%s, %s);", h, h, get(h))
    elseif kind == 3 then line(e, "%s = %s * 3u ^ %s;", h, h, get(h))
    elseif kind == 4 then
      line(e, "unsigned %s = %s; %s = %s > %s ? %s : %s;", other, get(h), h, other, h, other, h)
    elseif kind == 5 then
      line(e, "unsigned %s = %s, %sat = %s;", other, get(h), other, get(at))
      line(e, "if (%s > %s || (%s == %s && %sat < %s)) { %s = %s; %s = %sat; }", other, h, other,
        h, other, at, h, other, at, other)
    elseif kind == 6 then line(e, "%s += %s; %s ^= %s;", h, get(h), at, get(at))
    elseif kind == 7 then line(e, "%s += %s;", h, get(h, pick { ", 32", ", 16", ", 8" }))
    else
      line(e, "unsigned %s = %s;", other, get(h))
      line(e, pick { "if (lane < (unsigned)%s) %s += %s;", "%2$s ^= %3$s + %1$s;",
        "%2$s += in[%3$s & 63u];", "%2$s += %3$s; %2$s ^= " .. get(h) .. ";" }
        :gsub("%%(%d)%$s", function(k) return ({ by, h, other })[tonumber(k)] end), by, h, other)
    end
  end

  line(d, "{ unsigned %s = %s, %s = lane;", h, value(0), at)
  if random(3) > 0 then
    line(d, "  for (%s %s = %s; %s > 0; %s) {", pick { "int", "unsigned" }, o,
      pick { "16", "16", "warpSize / 2", "8", "32 / 2", "12" }, o,
      o .. pick { " >>= 1", " /= 2" })
    turn(d + 2, o)
    if random(4) == 0 then turn(d + 2, o) end
    line(d, "  }")
  else
    for _, by in ipairs { 16, 8, 4, 2, 1 } do
      if random(8) > 0 then turn(d + 1, tostring(by)) end
      if random(12) == 0 then turn(d + 1, tostring(by)) end
    end
  end
  if random(6) == 0 and deep < 2 then
    halving(random, fresh, line, d + 1, pick { h, at, v }, function() return h end, deep + 1)
  end
  for _ = 1, 1 + random(2) do
    local lane = pick { "lane", "threadIdx.x %%%% 32u", "(threadIdx.x & 31u)" }
    local from = pick { h, h, at }
    local copy = fresh "copy"
    line(d + 1, pick {
      "if (lane == 0u) %1$s += %2$s;", "if (lane == 0u) atomicAdd(&out[0], %2$s);",
      "if (threadIdx.x == 0u) %1$s ^= %2$s;", "if (lane == 0u && %2$s > 5u) %1$s += %2$s * 3u;",
      "unsigned %3$s = %2$s; if (lane == 0u) %1$s ^= %3$s;", "%1$s ^= __shfl_sync(FULL, %2$s, 0);",
      "if (lane == 0u) s[t] = %2$s; __syncwarp(); %1$s += s[t];",
      "if (lane == 0u) { %1$s += %2$s; %2$s = 5u; }",
      "if (warp == 0u) if (lane == 0u) %1$s = %2$s;",
      -- and what other lanes see
      "%1$s += %2$s;", "if (lane == 1u) %1$s ^= %2$s;", "unsigned %3$s = %2$s; %1$s ^= %3$s;",
      "%1$s += __shfl_sync(FULL, %2$s, 3);", "if (lane < 2u) %1$s += %2$s;",
      "if (t & 1u) %2$s = 7u; if (lane == 0u) %1$s += %2$s;",
      "%1$s += __reduce_max_sync(FULL, %2$s);",
    }:gsub("lane", lane):gsub("%%(%d)%$s", function(k) return ({ v, from, copy })[tonumber(k)] end))
  end
  line(d, "}")
end

return halving
