-- A network of one hidden layer that learns to tell images apart, as kernels:
-- what scripts/digits.lua trains.  local network = dofile "scripts/lib/network.lua"
--
-- One step is the kernels of network:step(), in this order:
--   hidden    the hidden layer of each image: weights and ReLU; and the rate,
--   output    a block for each image: dropout, the output layer, softmax, the
--             loss (cross-entropy), its derivatives by what both layers give,
--             and which image is the next,
--   learn     a thread for each weight: its derivative, and its update by Adam.
-- A step reads everything that changes from one to the next, random numbers
-- included, from the device's memory, so it can be captured once and replayed.
-- Sums are formed in one order: a step gives the same bits however it is launched.
--
-- Ranks divide the images of each step.  Then learn is two kernels, `derive` and
-- `update`, with the sum over the ranks between them: the same numbers are added
-- as by one rank, in another order.

local cg = require "cgraphlua"
local ffi = require "ffi"

local network = {}
network.__index = network

local THREADS = 128 -- as in the source
local BLOCK = 64 -- threads of a block that goes along a row of weights

local source = [=[
#ifndef IN // whoever compiles this gives the sizes
#define IN 64
#define HIDDEN 128
#define OUT 10
#define BATCH 32
#define FIRST 0 // of the batch's images, this rank's: FIRST .. FIRST + COUNT - 1
#define COUNT BATCH
#endif

// Weights are rows of WIDTH: a row for each input (and a constant 1) with its
// weights to the hidden units and one that stays 0; then a row for each class,
// with its weights from the hidden units (and a constant 1).  So a weight's
// derivative is the sum over a batch of what belongs to its row times what
// belongs to its column.
#define WIDTH (HIDDEN + 1)
#define ROWS (IN + 1 + OUT)
#define SECOND ((IN + 1) * WIDTH)

// The threads of an image in `output`, and how many share the sum of a class.
#define THREADS 128
#define PARTS (THREADS / OUT)

static __device__ unsigned mix(unsigned x)
{
  x = (x ^ (x >> 16)) * 0x9e3779b1u;
  x = (x ^ (x >> 13)) * 0x85ebca77u;
  return x ^ (x >> 16);
}

// A permutation of 0 .. count - 1, another one for every key: a Feistel cipher
// on 2 * half bits, again and again until the value falls inside.
static __device__ unsigned permuted(unsigned place, unsigned count,
                                    unsigned half, unsigned key)
{
  unsigned mask = (1u << half) - 1;
  do {
    unsigned left = place >> half, right = place & mask;
    for (unsigned round = 0; round < 6; round++) {
      unsigned next = left ^ (mix(right + mix(key + round)) & mask);
      left = right;
      right = next;
    }
    place = left << half | right;
  } while (place >= count);
  return place;
}

// Steps go through the images pass by pass, each pass in an order of its own.
static __device__ int picked(int step, int i, int count, int half,
                             unsigned seed)
{
  unsigned place = step * BATCH + i;
  unsigned pass = place / count;
  return permuted(place % count, count, half, mix(seed) + 64 * pass);
}

// Before the first step: its images, and what no step changes.
extern "C" __global__ void start(int *picks, float *rows, float *units,
                                 float *slopes, int count, int half,
                                 unsigned seed)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < BATCH) {
    picks[i] = picked(0, i, count, half, seed);
    rows[i * ROWS + IN] = units[i * WIDTH + HIDDEN] = 1.f;
    slopes[i * WIDTH + HIDDEN] = 0.f;
  }
}

// The rate falls along half a cosine; Adam's correction for its start is in it.
static __device__ float rate_at(int step, int steps, float top)
{
  float bend = 0.5f + 0.5f * cosf(3.14159265f * step / steps);
  return top * bend * sqrtf(1.f - powf(0.999f, step + 1)) /
         (1.f - powf(0.9f, step + 1));
}

extern "C" __global__ void hidden(const float *images, const int *picks,
                                  const float *weights, float *units,
                                  float top, int steps, int *step, float *rate)
{
  int unit = blockIdx.x * blockDim.x + threadIdx.x, i = FIRST + blockIdx.y;
  if (unit < HIDDEN) {
    const float *image = images + picks[i] * IN;
    float sum = weights[IN * WIDTH + unit];
    for (int k = 0; k < IN; k++)
      sum += image[k] * weights[k * WIDTH + unit];
    units[i * WIDTH + unit] = fmaxf(sum, 0.f);
    if (unit == 0 && i == FIRST) {
      *rate = rate_at(*step, steps, top);
      *step += 1;
    }
  }
}

// `rows` gets what belongs to the rows of weights: the image, and the
// derivatives of the mean loss by the logits.  `units` and `slopes`, the
// derivatives by the units, are for the columns.
extern "C" __global__ void
output(const float *images, const int *labels, int count, int half,
       unsigned seed, const float *weights, float keep, const int *step,
       int *picks, float *units, float *rows, float *slopes, float *losses,
       cgl_philox rng)
{
  __shared__ float kept[HIDDEN], part[PARTS * OUT], logit[OUT], power[OUT],
      slope[OUT];
  const float *second = weights + SECOND;
  int t = threadIdx.x, i = blockIdx.x;
#if COUNT < BATCH // a block for others' images too, so that dropout is the same
  if (i < FIRST || i >= FIRST + COUNT)
    return;
#endif
  int pick = picks[i], label = labels[pick];
  for (int j = t; j < HIDDEN; j += THREADS) {
    float unit = units[i * WIDTH + j];
    kept[j] = cgl_uniform(rng) < keep ? unit / keep : 0.f;
    units[i * WIDTH + j] = kept[j];
  }
  for (int k = t; k < IN; k += THREADS)
    rows[i * ROWS + k] = images[pick * IN + k];
  __syncthreads();
  float sum = 0.f;
  if (t < PARTS * OUT) {
    for (int j = t % PARTS; j < HIDDEN; j += PARTS)
      sum += kept[j] * second[t / PARTS * WIDTH + j];
    part[t] = sum;
  }
  __syncthreads();
  if (t < OUT) {
    sum = second[t * WIDTH + HIDDEN];
    for (int k = 0; k < PARTS; k++)
      sum += part[t * PARTS + k];
    logit[t] = sum;
  }
  __syncthreads();
  float most = logit[0];
  if (t < OUT) {
    for (int c = 1; c < OUT; c++)
      most = fmaxf(most, logit[c]);
    power[t] = expf(logit[t] - most);
  }
  __syncthreads();
  if (t < OUT) {
    sum = 0.f;
    for (int c = 0; c < OUT; c++)
      sum += power[c];
    slope[t] = (power[t] / sum - (t == label)) / BATCH;
    rows[i * ROWS + IN + 1 + t] = slope[t];
    if (t == label)
      losses[(*step - 1) * BATCH + i] = logf(sum) + most - logit[t];
  }
  if (t == THREADS - 1) // a thread that would wait
    picks[i] = picked(*step, i, count, half, seed);
  __syncthreads();
  // A unit that was dropped, or off, is 0 and passes nothing back.
  for (int j = t; j < HIDDEN; j += THREADS) {
    sum = 0.f;
    for (int c = 0; c < OUT; c++)
      sum += slope[c] * second[c * WIDTH + j];
    slopes[i * WIDTH + j] = kept[j] > 0.f ? sum / keep : 0.f;
  }
}

// The derivative of the loss by a weight: this rank's images' part of it.
static __device__ float derivative(const float *rows, const float *units,
                                   const float *slopes, int row, int column)
{
  const float *from = row > IN ? units : slopes;
  float g = 0.f;
  for (int i = FIRST; i < FIRST + COUNT; i++)
    g += rows[i * ROWS + row] * from[i * WIDTH + column];
  return g;
}

static __device__ void move(int t, float g, float rate, float *weights,
                            float *mean, float *spread)
{
  mean[t] = 0.9f * mean[t] + 0.1f * g;
  spread[t] = 0.999f * spread[t] + 0.001f * g * g;
  weights[t] -= rate * mean[t] / (sqrtf(spread[t]) + 1e-8f);
}

extern "C" __global__ void learn(const float *rows, const float *units,
                                 const float *slopes, const float *rate,
                                 float *weights, float *mean, float *spread)
{
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column < WIDTH)
    move(row * WIDTH + column, derivative(rows, units, slopes, row, column),
         *rate, weights, mean, spread);
}

extern "C" __global__ void derive(const float *rows, const float *units,
                                  const float *slopes, float *derivatives)
{
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (column < WIDTH)
    derivatives[row * WIDTH + column] =
        derivative(rows, units, slopes, row, column);
}

extern "C" __global__ void update(const float *derivatives, const float *rate,
                                  float *weights, float *mean, float *spread)
{
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < ROWS * WIDTH)
    move(t, derivatives[t], *rate, weights, mean, spread);
}

// Without dropout, a thread for each image: the most likely class, and how
// likely it is.
extern "C" __global__ void classify(const float *images, int count,
                                    const float *weights, int *guesses,
                                    float *likely)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    float logit[OUT], sum = 0.f;
    for (int c = 0; c < OUT; c++)
      logit[c] = weights[SECOND + c * WIDTH + HIDDEN];
    for (int j = 0; j < HIDDEN; j++) {
      float unit = weights[IN * WIDTH + j];
      for (int k = 0; k < IN; k++)
        unit += images[i * IN + k] * weights[k * WIDTH + j];
      for (int c = 0; c < OUT; c++)
        logit[c] += fmaxf(unit, 0.f) * weights[SECOND + c * WIDTH + j];
    }
    int best = 0;
    for (int c = 1; c < OUT; c++)
      best = logit[c] > logit[best] ? c : best;
    for (int c = 0; c < OUT; c++)
      sum += expf(logit[c] - logit[best]);
    guesses[i] = best;
    likely[i] = 1.f / sum;
  }
}
]=]

-- Normal numbers with the spread that keeps the size of what passes a layer of
-- ReLU units (He and others, 2015); the constants' weights are 0.
local function first_weights(inputs, hidden, classes, seed)
  math.randomseed(seed)
  local width = hidden + 1
  local weights = ffi.new("float[?]", (inputs + 1 + classes) * width)
  local function normal(spread)
    local radius = math.sqrt(-2 * math.log(1 - math.random()))
    return spread * radius * math.cos(2 * math.pi * math.random())
  end
  for k = 0, inputs - 1 do
    for unit = 0, hidden - 1 do
      weights[k * width + unit] = normal(math.sqrt(2 / inputs))
    end
  end
  for unit = 0, hidden - 1 do
    for c = 0, classes - 1 do
      weights[(inputs + 1 + c) * width + unit] = normal(math.sqrt(2 / hidden))
    end
  end
  return weights
end

--- A network for `set`: {inputs, classes, count, images, labels}, images a
-- float array with `inputs` numbers each, labels an int array from 0.
-- opts: hidden, batch, rate, dropout, seed, steps (in all), ranks (cg.ranks()).
function network.new(set, opts)
  local ranks = opts.ranks or cg.ranks()
  local self = setmetatable({ set = set, opts = opts, kernels = {}, ranks = ranks }, network)
  if opts.batch < ranks.size then
    error(("%d images a step are less than one for each of %d ranks"):format(opts.batch,
      ranks.size), 0)
  end
  local first = math.floor(opts.batch * ranks.rank / ranks.size)
  self.count = math.floor(opts.batch * (ranks.rank + 1) / ranks.size) - first
  local module = cg.module(source, { options = {
    "-DIN=" .. set.inputs, "-DOUT=" .. set.classes, "-DHIDDEN=" .. opts.hidden,
    "-DBATCH=" .. opts.batch, "-DFIRST=" .. first, "-DCOUNT=" .. self.count,
  } })
  for _, name in ipairs(module:kernels()) do
    self.kernels[name] = module:kernel(name)
  end
  local hidden, batch = opts.hidden, opts.batch
  self.start = first_weights(set.inputs, hidden, set.classes, opts.seed)
  self.weights = cg.from(self.start, "float")
  self.images, self.labels = cg.from(set.images, "float"), cg.from(set.labels, "int32")
  self.mean, self.spread = cg.buffer("float", #self.weights), cg.buffer("float", #self.weights)
  self.derivatives = ranks.size > 1 and cg.buffer("float", #self.weights)
  self.rows = cg.buffer("float", { batch, set.inputs + 1 + set.classes })
  self.units, self.slopes = cg.buffer("float", { batch, hidden + 1 }),
    cg.buffer("float", { batch, hidden + 1 })
  self.picks, self.step_number = cg.buffer("int32", batch), cg.buffer("int32", 1)
  self.rate, self.losses = cg.buffer("float", 1), cg.buffer("float", { opts.steps, batch })
  self.random = cg.generator(opts.seed)
  self.half_bits = 1
  while 4 ^ self.half_bits < set.count do
    self.half_bits = self.half_bits + 1
  end
  self:reset()
  return self
end

--- Restores the state before the first step.
function network:reset()
  self.weights:upload(self.start)
  self.mean:fill(0)
  self.spread:fill(0)
  self.losses:fill(0)
  self.step_number:fill(0)
  self.random:manual_seed(self.opts.seed)
  self.kernels.start:over(self.opts.batch)(self.picks, self.rows, self.units, self.slopes,
    self.set.count, self.half_bits, self.opts.seed)
end

--- Issues one step to the current stream.
function network:step()
  local k, opts, set = self.kernels, self.opts, self.set
  local function columns(n)
    return math.ceil(n / BLOCK)
  end
  k.hidden:launch({ columns(opts.hidden), self.count }, BLOCK, self.images, self.picks,
    self.weights, self.units, opts.rate, opts.steps, self.step_number, self.rate)
  k.output:launch(opts.batch, THREADS, self.images, self.labels, set.count,
    self.half_bits, opts.seed, self.weights, 1 - opts.dropout, self.step_number,
    self.picks, self.units, self.rows, self.slopes, self.losses, self.random)
  local grid = { columns(opts.hidden + 1), set.inputs + 1 + set.classes }
  if self.ranks.size == 1 then
    k.learn:launch(grid, BLOCK, self.rows, self.units, self.slopes, self.rate, self.weights,
      self.mean, self.spread)
    return
  end
  k.derive:launch(grid, BLOCK, self.rows, self.units, self.slopes, self.derivatives)
  self.ranks:all_reduce(self.derivatives)
  k.update:over(#self.weights)(self.derivatives, self.rate, self.weights, self.mean, self.spread)
end

--- The mean loss of every step: a float array and its length.  Waits; every rank
--- calls it, after all steps.
function network:losses_by_step()
  self.ranks:all_reduce(self.losses) -- 0 for others' images
  local batch, steps = self.opts.batch, self.opts.steps
  local all, mean = self.losses:download(ffi.new("float[?]", #self.losses)),
    ffi.new("float[?]", steps)
  for k = 0, steps - 1 do
    local sum = 0
    for i = k * batch, (k + 1) * batch - 1 do
      sum = sum + all[i]
    end
    mean[k] = sum / batch
  end
  return mean, steps
end

--- A function that returns the class that the network gives to each image of
-- `set`: a list of classes, and a list of their probabilities.  Waits.
function network:classifier(set)
  local images = cg.from(set.images, "float")
  local guesses, likely = cg.buffer("int32", set.count), cg.buffer("float", set.count)
  local over = self.kernels.classify:over(set.count)
  return function()
    over(images, set.count, self.weights, guesses, likely)
    return guesses:download(), likely:download()
  end
end

return network
