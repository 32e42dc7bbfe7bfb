-- A network of one hidden layer that learns to tell images apart, as kernels:
-- what scripts/digits.lua trains.  local network = dofile "scripts/lib/network.lua"
--
-- One step is the kernels of network:step(), in this order:
--   pick      which images the step learns from, and how fast,
--   hidden    the hidden layer: weights, ReLU, dropout,
--   logits    the output layer,
--   softmax   the loss of each image (cross-entropy), and its derivative,
--   back      the derivative of the hidden layer,
--   gradient  of both layers' weights, a thread for each weight,
--   update    of the weights, by Adam,
--   finish    notes the mean loss and counts the step.
-- A step reads everything that changes from one to the next, random numbers
-- included, from the device's memory, so it can be captured once and replayed.
-- Each number is summed by one thread in one order: a step gives the same bits
-- however it is launched.

local cg = require "cgraphlua"
local ffi = require "ffi"

local network = {}
network.__index = network

local source = [=[
#ifndef IN // whoever compiles this gives the sizes
#define IN 64
#define HIDDEN 128
#define OUT 10
#define BATCH 32
#endif

// Weights: from IN inputs (and a constant 1) to HIDDEN units, then from those
// (and a constant 1) to OUT.
#define FIRST ((IN + 1) * HIDDEN)
#define SECOND ((HIDDEN + 1) * OUT)

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
// The rate falls along half a cosine; Adam's correction for its start is in it.
extern "C" __global__ void pick(const int *step, int *rows, float *rate,
                                int count, int half, unsigned seed, float top,
                                int steps)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned place = *step * BATCH + i;
  if (i < BATCH) {
    unsigned pass = place / count;
    rows[i] = permuted(place % count, count, half, mix(seed) + 64 * pass);
  }
  if (i == 0) {
    float t = *step + 1;
    float bend = 0.5f + 0.5f * cosf(3.14159265f * *step / steps);
    *rate = top * bend * sqrtf(1.f - powf(0.999f, t)) / (1.f - powf(0.9f, t));
  }
}

extern "C" __global__ void hidden(const float *images, const int *rows,
                                  const float *weights, float *units,
                                  float keep, cgl_philox rng)
{
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < BATCH * HIDDEN) {
    int unit = t % HIDDEN;
    const float *image = images + rows[t / HIDDEN] * IN;
    float sum = weights[IN * HIDDEN + unit];
    for (int k = 0; k < IN; k++)
      sum += image[k] * weights[k * HIDDEN + unit];
    units[t] = sum > 0.f && cgl_uniform(rng) < keep ? sum / keep : 0.f;
  }
}

extern "C" __global__ void logits(const float *units, const float *weights,
                                  float *out)
{
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < BATCH * OUT) {
    const float *from = units + t / OUT * HIDDEN;
    const float *second = weights + FIRST + t % OUT;
    float sum = second[HIDDEN * OUT];
    for (int j = 0; j < HIDDEN; j++)
      sum += from[j] * second[j * OUT];
    out[t] = sum;
  }
}

// Turns the logits into the derivatives of the mean loss.
extern "C" __global__ void softmax(float *out, const int *rows,
                                   const int *labels, float *losses)
{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < BATCH) {
    float *logit = out + i * OUT;
    int row = rows[i];
    int label = labels[row];
    float most = logit[0], sum = 0.f;
    for (int c = 1; c < OUT; c++)
      most = fmaxf(most, logit[c]);
    for (int c = 0; c < OUT; c++)
      sum += expf(logit[c] - most);
    losses[i] = logf(sum) + most - logit[label];
    for (int c = 0; c < OUT; c++)
      logit[c] = (expf(logit[c] - most) / sum - (c == label)) / BATCH;
  }
}

// A unit that was dropped, or off, is 0 and passes nothing back.
extern "C" __global__ void back(const float *out, const float *weights,
                                const float *units, float *slopes, float keep)
{
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < BATCH * HIDDEN) {
    const float *slope = out + t / HIDDEN * OUT;
    const float *second = weights + FIRST + t % HIDDEN * OUT;
    float sum = 0.f;
    for (int c = 0; c < OUT; c++)
      sum += slope[c] * second[c];
    slopes[t] = units[t] > 0.f ? sum / keep : 0.f;
  }
}

extern "C" __global__ void gradient(const float *images, const int *rows,
                                    const float *units, const float *slopes,
                                    const float *out, float *gradients)
{
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0.f;
  if (t < FIRST) {
    int k = t / HIDDEN, unit = t % HIDDEN;
    for (int i = 0; i < BATCH; i++)
      sum += (k < IN ? images[rows[i] * IN + k] : 1.f) *
             slopes[i * HIDDEN + unit];
    gradients[t] = sum;
  } else if (t < FIRST + SECOND) {
    int unit = (t - FIRST) / OUT, c = (t - FIRST) % OUT;
    for (int i = 0; i < BATCH; i++)
      sum += (unit < HIDDEN ? units[i * HIDDEN + unit] : 1.f) *
             out[i * OUT + c];
    gradients[t] = sum;
  }
}

extern "C" __global__ void update(float *weights, const float *gradients,
                                  float *mean, float *spread,
                                  const float *rate)
{
  int t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t < FIRST + SECOND) {
    float g = gradients[t];
    mean[t] = 0.9f * mean[t] + 0.1f * g;
    spread[t] = 0.999f * spread[t] + 0.001f * g * g;
    weights[t] -= *rate * mean[t] / (sqrtf(spread[t]) + 1e-8f);
  }
}

extern "C" __global__ void finish(int *step, const float *losses,
                                  float *history)
{
  float sum = 0.f;
  for (int i = 0; i < BATCH; i++)
    sum += losses[i];
  history[*step] = sum / BATCH;
  *step += 1;
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
      logit[c] = weights[FIRST + HIDDEN * OUT + c];
    for (int j = 0; j < HIDDEN; j++) {
      float unit = weights[IN * HIDDEN + j];
      for (int k = 0; k < IN; k++)
        unit += images[i * IN + k] * weights[k * HIDDEN + j];
      for (int c = 0; c < OUT; c++)
        logit[c] += fmaxf(unit, 0.f) * weights[FIRST + j * OUT + c];
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
  local weights = ffi.new("float[?]", (inputs + 1) * hidden + (hidden + 1) * classes)
  local at = 0
  local function layer(from, to)
    for _ = 1, from * to do
      local radius = math.sqrt(-2 * math.log(1 - math.random()))
      weights[at] = math.sqrt(2 / from) * radius * math.cos(2 * math.pi * math.random())
      at = at + 1
    end
    at = at + to
  end
  layer(inputs, hidden)
  layer(hidden, classes)
  return weights
end

--- A network for `set`: {inputs, classes, count, images, labels}, images a
-- float array with `inputs` numbers each, labels an int array from 0.
-- opts: hidden, batch, rate, dropout, seed, steps (in all).
function network.new(set, opts)
  local self = setmetatable({ set = set, opts = opts, kernels = {} }, network)
  local module = cg.module(source, { options = {
    "-DIN=" .. set.inputs, "-DOUT=" .. set.classes, "-DHIDDEN=" .. opts.hidden,
    "-DBATCH=" .. opts.batch,
  } })
  for _, name in ipairs(module:kernels()) do
    self.kernels[name] = module:kernel(name)
  end
  local hidden, batch = opts.hidden, opts.batch
  self.start = first_weights(set.inputs, hidden, set.classes, opts.seed)
  self.weights = cg.from(self.start, "float")
  local n = #self.weights
  self.images, self.labels = cg.from(set.images, "float"), cg.from(set.labels, "int32")
  self.gradients, self.mean, self.spread = cg.buffer("float", n), cg.buffer("float", n),
    cg.buffer("float", n)
  self.rows, self.losses, self.rate = cg.buffer("int32", batch), cg.buffer("float", batch),
    cg.buffer("float", 1)
  self.units, self.slopes = cg.buffer("float", { batch, hidden }),
    cg.buffer("float", { batch, hidden })
  self.out = cg.buffer("float", { batch, set.classes })
  self.step_number, self.history = cg.buffer("int32", 1), cg.buffer("float", opts.steps)
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
  self.history:fill(0)
  self.step_number:fill(0)
  self.random:manual_seed(self.opts.seed)
end

--- Issues one step to the current stream.
function network:step()
  local k, opts, set = self.kernels, self.opts, self.set
  local keep = 1 - opts.dropout
  local function run(kernel, threads, ...)
    local block = math.min(threads, 128)
    kernel:launch(math.ceil(threads / block), block, ...)
  end
  local units = opts.batch * opts.hidden
  run(k.pick, opts.batch, self.step_number, self.rows, self.rate, set.count, self.half_bits,
    opts.seed, opts.rate, opts.steps)
  run(k.hidden, units, self.images, self.rows, self.weights, self.units, keep, self.random)
  run(k.logits, opts.batch * set.classes, self.units, self.weights, self.out)
  run(k.softmax, opts.batch, self.out, self.rows, self.labels, self.losses)
  run(k.back, units, self.out, self.weights, self.units, self.slopes, keep)
  run(k.gradient, #self.weights, self.images, self.rows, self.units, self.slopes, self.out,
    self.gradients)
  run(k.update, #self.weights, self.weights, self.gradients, self.mean, self.spread, self.rate)
  run(k.finish, 1, self.step_number, self.losses, self.history)
end

--- The mean loss of every step: a float array and its length.  Waits.
function network:losses_by_step()
  return self.history:download(ffi.new("float[?]", #self.history)), #self.history
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
