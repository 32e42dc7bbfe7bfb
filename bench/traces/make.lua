-- Writes the four traces beside it, the same every time:
--   luajit make.lua
-- or one other of each kind, which the pools were not tuned on, to a folder:
--   luajit make.lua FOLDER SEED
-- A line is "a NUMBER BYTES", an allocation, or "f NUMBER", its end.  All are
-- of one stream.  They say what programs ask for, not how an allocator rounds.

local here = arg[0]:match "^.*/" or "./"
local KIB, MIB = 2 ^ 10, 2 ^ 20

local folder, seed = arg[1] or here, tonumber(arg[2] or 1)
local stored = not arg[1]

-- The stored traces' number, or one of another's.
local function either(value, least, most)
  if stored then return value end
  -- A generator of its own: the traces' must not be disturbed.
  seed = (seed * 1103515245 + 12345) % 2 ^ 31
  return least + math.floor(seed / 2 ^ 31 * (most - least + 1))
end

local state = 1
local function below(n)
  state = (state * 1103515245 + 12345) % 2 ^ 31
  return math.floor(state / 2 ^ 31 * n)
end

local file, number
local function open(name)
  file = assert(io.open(folder .. "/" .. name .. ".txt", "w"))
  number, state = 0, either(1, 2, 2 ^ 20)
end

local function take(bytes)
  number = number + 1
  file:write(string.format("a %d %d\n", number, math.max(1, math.floor(bytes))))
  return number
end

local function drop(id) file:write("f ", id, "\n") end

-- A transformer's training steps: parameters, gradients and moments that stay,
-- activations that live from the forward to the backward pass, and workspace.
local function transformer()
  open "transformer"
  local layers, tokens, heads = either(12, 6, 16), 1024 * either(4, 2, 5), either(16, 8, 20)
  local width, length = 64 * heads, 256 * either(4, 2, 6)
  for _ = 1, layers do
    for _, parameters in ipairs { 3 * width * width, width * width, 8 * width * width,
                                  4 * width } do
      take(2 * parameters)
      take(4 * parameters)
      take(4 * parameters)
    end
  end
  local short = either(75, 40, 95) / 100
  for step = 1, 4 do
    local saved, batch = {}, tokens * (step == 3 and short or 1)
    local x = take(2 * batch * width)
    for layer = 1, layers do
      local kept = { x }
      local function keep(bytes)
        local id = take(bytes)
        kept[#kept + 1] = id
        return id
      end
      keep(4 * batch)
      keep(2 * batch * width)
      keep(6 * batch * width)
      local scores = take(2 * batch / length * heads * length * length)
      local workspace = take(8 * MIB + 512 * layer)
      keep(4 * batch * heads)
      drop(scores)
      drop(workspace)
      keep(2 * batch * width)
      keep(8 * batch * width)
      local activated = take(8 * batch * width)
      kept[#kept + 1] = activated
      x = take(2 * batch * width)
      saved[layer] = kept
    end
    local logits = take(2 * batch * 8192)
    local loss = take(4)
    local grad = take(2 * batch * width)
    drop(logits)
    drop(x)
    local grads = {}
    for layer = layers, 1, -1 do
      local kept = saved[layer]
      for i = #kept, 1, -1 do
        local temporary = take(i % 2 == 0 and 8 * batch * width or 2 * batch * width)
        if i == 4 then grads[#grads + 1] = take(2 * 12 * width * width) end
        drop(kept[i])
        drop(temporary)
      end
      local lower = take(2 * batch * width)
      drop(grad)
      grad = lower
    end
    drop(grad)
    drop(loss)
    for _, id in ipairs(grads) do
      local moment = take(4 * 12 * width * width)
      drop(moment)
      drop(id)
    end
  end
  file:close()
end

-- A game's frames: meshes and textures that stream in and out, render targets
-- that stay, and what each frame takes and drops.
local function frame()
  open "frame"
  local targets = { 3840 * 2160 * 8, 3840 * 2160 * 4, 1920 * 1080 * 8, 4096 * 4096 * 4,
                    960 * 540 * 8 }
  for _, bytes in ipairs(targets) do take(bytes) end
  local textures, each, small = either(6, 2, 8), either(5, 2, 12), either(50, 20, 70)
  local resident, oldest = {}, 1
  local function stream_in()
    local kind = below(10)
    local side = 2 ^ (8 + below(4))
    local bytes = kind < textures and side * side * 4 * 4 / 3
      or kind < 9 and (16 + below(2000)) * KIB or 64 + below(64 * KIB)
    resident[#resident + 1] = take(bytes)
  end
  for _ = 1, 300 do stream_in() end
  for _ = 1, 60 do
    local transient = {}
    for i = 1, 60 do
      local size = below(100)
      transient[#transient + 1] = take(size < small and 256 + below(16 * KIB)
        or size < 90 and (16 + below(1000)) * KIB or (1 + below(12)) * MIB)
      if i % 3 == 0 then drop(table.remove(transient, 1 + below(#transient))) end
    end
    for _ = 1, each do
      drop(resident[oldest])
      resident[oldest] = nil
      oldest = oldest + 1
      stream_in()
    end
    for i = #transient, 1, -1 do drop(transient[i]) end
  end
  file:close()
end

-- Sizes and lifetimes that have nothing to do with each other.
local function random()
  open "random"
  local live, bytes, total = {}, {}, 0
  local octaves, most = either(17, 12, 18), either(400, 100, 1000)
  for _ = 1, 6000 do
    local size = math.floor(512 * 2 ^ (below(1000 * octaves) / 1000))
    while total + size > 1024 * MIB or #live > most do
      local id = table.remove(live, 1 + below(#live))
      total = total - bytes[id]
      drop(id)
    end
    local id = take(size)
    live[#live + 1], bytes[id], total = id, size, total + size
  end
  file:close()
end

-- What fragments: much of one size, every other one dropped, and larger ones.
local function halves()
  open "halves"
  local ids, bytes, size = {}, 0, either(8, 1, 10) * MIB / 2 + either(0, 0, 3) * 100 * KIB
  local nth = either(2, 2, 4)
  for _ = 1, 256 do
    ids[#ids + 1] = take(size)
    bytes = bytes + size
  end
  for _ = 1, 3 do
    local kept, freed = {}, 0
    for i, id in ipairs(ids) do
      if i % nth == 0 then
        kept[#kept + 1] = id
      else
        drop(id)
        freed = freed + size
      end
    end
    size = size * 2
    local count = math.floor(freed / size)
    for _ = 1, count do kept[#kept + 1] = take(size) end
    local larger = {}
    for _, id in ipairs(kept) do larger[#larger + 1] = id end
    ids = {}
    for i = #larger - count + 1, #larger do ids[#ids + 1] = larger[i] end
  end
  file:close()
end

transformer()
frame()
random()
halves()
