-- A network learns to read handwritten digits: 64 pixels, one hidden layer, ten
-- classes.
--
--   cgraphlua scripts/digits.lua              captured and eager, both timed
--   cgraphlua scripts/digits.lua --eager      without a graph
--   mpirun -n 4 cgraphlua scripts/digits.lua  four ranks, a part of each batch each
--
-- The digits are scripts/data/digits.txt, whose source is beside it.  Every
-- fifth image is held out, and shown to the network only to count mistakes.
-- A step of training, the choice of its images and dropout included, is three
-- kernels that need nothing from the host: it is captured once, and an
-- epoch is one call of replay.  The same steps launched one by one give the
-- same losses, bit for bit, and the script fails if they do not.  Ranks learn the
-- same weights together, with the losses of one rank but for rounding.

local cg = require "cgraphlua"
local ffi = require "ffi"
local options = require "cgraphlua.options"
local progress = require "cgraphlua.progress"
local here = arg[0]:match "^.*/" or ""
local chart = dofile(here .. "lib/chart.lua")
local network = dofile(here .. "lib/network.lua")

local SIDE, CLASSES = 8, 10
local HELD_OUT = 5 -- every fifth image is held out

local opt = options.read({
  usage = "scripts/digits.lua [options]",
  about = "Learns to read handwritten digits, as a graph and without; draws losses and mistakes.",
  { "epochs", "N", 60, "passes over the images", min = 1, max = 10000 },
  { "batch", "N", 32, "images a step", min = 1, max = 1024 },
  { "hidden", "N", 128, "hidden units", min = 1, max = 4096 },
  { "rate", "X", 0.01, "learning rate at the start", min = 1e-6, max = 1 },
  { "dropout", "X", 0.5, "part of the hidden units that a step leaves out", min = 0, max = 0.9 },
  { "seed", "N", 1, "of weights, order and dropout", min = 0, max = 2147483647 },
  { "eager", nil, nil, "launch every kernel of every step; no graph" },
  { "out", "OUT", "digits.png", "the picture to write" },
}, arg)

-- The images as two sets: to learn from, and held out.
local function read_digits(path)
  local learn = { inputs = SIDE * SIDE, classes = CLASSES, list = {} }
  local held = { inputs = SIDE * SIDE, classes = CLASSES, list = {} }
  local number = 0
  for line in io.lines(path) do
    if line:find "^%d " then
      number = number + 1
      local set = number % HELD_OUT == 0 and held or learn
      set.list[#set.list + 1] = line
    end
  end
  for _, set in ipairs { learn, held } do
    set.count = #set.list
    set.images = ffi.new("float[?]", set.count * set.inputs)
    set.labels = ffi.new("int32_t[?]", set.count)
    for i, line in ipairs(set.list) do
      set.labels[i - 1] = tonumber(line:sub(1, 1))
      for k = 1, set.inputs do
        local ink = tonumber(line:sub(k + 2, k + 2), 17)
        set.images[(i - 1) * set.inputs + k - 1] = ink / 16
      end
    end
  end
  return learn, held
end

local ranks = cg.ranks()
local first_rank = ranks.rank == 0
local print = first_rank and print or function() end
local learn, held = read_digits(here .. "data/digits.txt")
local steps_per_epoch = math.max(1, math.floor(learn.count / opt.batch))
local steps = opt.epochs * steps_per_epoch
local net = network.new(learn, {
  hidden = opt.hidden, batch = opt.batch, rate = opt.rate, dropout = opt.dropout, seed = opt.seed,
  steps = steps, ranks = ranks,
})
local classify = net:classifier(held)

-- The held-out images that the network classifies wrongly, the most confident
-- mistakes first.
local function mistakes()
  local guesses, likely = classify()
  local list = {}
  for i = 1, held.count do
    if guesses[i] ~= held.labels[i - 1] then
      list[#list + 1] = { image = i - 1, label = held.labels[i - 1], guess = guesses[i],
        likely = likely[i] }
    end
  end
  table.sort(list, function(a, b)
    return a.likely > b.likely or (a.likely == b.likely and a.image < b.image)
  end)
  return list
end

-- Trains from the start, one epoch per call of `epoch`, and returns the results.
-- Only the steps are timed.
local function train(name, epoch)
  net:reset()
  cg.synchronize()
  local before, after = cg.event(), cg.event()
  local bar = progress.new { total = steps, label = name, unit = "steps" }
  local result = { name = name, missed = { #mistakes() }, milliseconds = 0 }
  for k = 1, opt.epochs do
    before:record()
    epoch()
    after:record()
    after:synchronize()
    result.milliseconds = result.milliseconds + before:elapsed(after)
    result.missed[k + 1] = #mistakes()
    bar:update(k * steps_per_epoch)
  end
  bar:finish()
  result.losses = net:losses_by_step()
  result.mistakes = mistakes()
  return result
end

local function eager()
  for _ = 1, steps_per_epoch do
    net:step()
  end
end

local function tell(result)
  print(string.format("%-8s  %d steps, %.4g steps/s; %.2f%% of what was held out is right, "
    .. "%d mistakes", result.name, steps, steps / result.milliseconds * 1000,
    100 - 100 * #result.mistakes / held.count, #result.mistakes))
end

print(string.format("%d images to learn from, %d held out; %d -> %d -> %d, %d at a time",
  learn.count, held.count, learn.inputs, opt.hidden, CLASSES, opt.batch))

local result
if opt.eager then
  result = train("eager", eager)
  tell(result)
else
  local graph = cg.capture(function()
    net:step()
  end)
  result = train("captured", function()
    graph:replay(steps_per_epoch)
  end)
  tell(result)
  local other = train("eager", eager)
  tell(other)
  local bytes = ffi.sizeof(result.losses)
  if ffi.string(result.losses, bytes) ~= ffi.string(other.losses, bytes) then
    error("the losses of both runs are not the same", 0)
  end
  print("the losses of both are the same, bit for bit")
end

if not first_rank then return end
chart.draw(opt.out, {
  losses = result.losses, steps = steps, epochs = opt.epochs,
  missed = result.missed, held = held.count, side = SIDE, images = held.images,
  mistakes = result.mistakes,
})
print("wrote " .. opt.out)
