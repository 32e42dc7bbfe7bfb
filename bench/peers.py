"""What a Python programmer would use instead, on the shapes of bench/ours.lua.

peers.py PEER: torch, cupy, cuda.core, jax, or jax.buffers, which is JAX with
command buffers for loops switched on.  Writes "key microseconds" lines; the keys
are those of ours.lua.  Ends with status 3 when the peer cannot be had.
"""

import os
import statistics
import sys
import time

LINES = (1, 10, 100, 1000)
TICK = """
extern "C" __global__ void tick(float *x, float a)
{
  if (threadIdx.x == 0)
    x[0] += a;
}
"""


def now():
    return time.perf_counter_ns() / 1e3


def row(key, value):
    print(key, f"{value:.4f}", flush=True)


def median_of(count, fn):
    return statistics.median(fn() for _ in range(count))


def replays(n, launch, synchronize):
    """The rows about a graph of n kernels that is ready."""
    often = max(10, min(1000, 20000 // n))

    def call():
        synchronize()
        start = now()
        launch()
        return now() - start

    def both():
        start = now()
        launch()
        synchronize()
        return now() - start

    for _ in range(20):
        launch()
    row(f"line.{n}.call", median_of(often, call))
    row(f"line.{n}.sync", median_of(often, both))
    synchronize()
    start = now()
    for _ in range(often):
        launch()
    synchronize()
    row(f"line.{n}.stream", (now() - start) / often)


def lines(capture, launch, synchronize):
    """The rows about graphs of kernels in a line.

    capture(n) tells the microseconds of the operations and of the whole, and
    the graph; launch(graph) launches it.
    """
    for n in LINES:
        made = [capture(n) for _ in range(7)]
        row(f"line.{n}.capture", statistics.median(m[0] for m in made) / n)
        row(f"line.{n}.whole", statistics.median(m[1] for m in made))

        def first():
            graph = capture(n)[2]
            synchronize()
            start = now()
            launch(graph)
            took = now() - start
            synchronize()
            return took

        row(f"line.{n}.first", median_of(7, first))
        graph = made[-1][2]
        replays(n, lambda: launch(graph), synchronize)


def eager(launch, synchronize, count=2000):
    for _ in range(100):
        launch()
    synchronize()
    start = now()
    for _ in range(500):
        launch()
    row("eager", (now() - start) / 500)
    synchronize()
    start = now()
    for _ in range(count):
        launch()
    synchronize()
    row("eager_done", (now() - start) / count)


def allocations(allocate):
    start = now()
    for _ in range(2000):
        allocate()
    row("alloc", (now() - start) / 2000)


# The training of scripts/digits.lua: shapes, steps that are measured, rate.
INPUTS, HIDDEN, CLASSES, IMAGES, BATCH = 64, 128, 10, 1438, 32
STEPS, RATE, DROPOUT = 2000, 0.01, 0.5


def torch_digits(t):
    """A step as a graph, replayed one after the other."""
    images = t.rand(IMAGES, INPUTS, device="cuda")
    labels = t.randint(CLASSES, (IMAGES,), device="cuda")
    order = t.randint(IMAGES, (STEPS, BATCH), device="cuda")
    at = t.zeros(1, dtype=t.long, device="cuda")
    model = t.nn.Sequential(
        t.nn.Linear(INPUTS, HIDDEN),
        t.nn.ReLU(),
        t.nn.Dropout(DROPOUT),
        t.nn.Linear(HIDDEN, CLASSES),
    ).cuda()
    adam = t.optim.Adam(model.parameters(), lr=RATE, capturable=True, fused=True)
    losses = t.zeros(STEPS, device="cuda")

    def step():
        rows = order[at].view(-1)
        loss = t.nn.functional.cross_entropy(model(images[rows]), labels[rows])
        loss.backward()
        adam.step()
        losses.index_copy_(0, at, loss.detach().view(1))
        at.add_(1).remainder_(STEPS)

    side = t.cuda.Stream()
    side.wait_stream(t.cuda.current_stream())
    with t.cuda.stream(side):
        for _ in range(3):
            adam.zero_grad(set_to_none=True)
            step()
    t.cuda.current_stream().wait_stream(side)
    adam.zero_grad(set_to_none=True)
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        step()

    def steps():
        start = now()
        for _ in range(STEPS):
            graph.replay()
        t.cuda.synchronize()
        return (now() - start) / STEPS

    steps()
    row("digits", median_of(5, steps))


def torch():
    import torch as t

    x = t.zeros(32, device="cuda")
    stream = t.cuda.Stream()

    def capture(n):
        t.cuda.synchronize()
        graph = t.cuda.CUDAGraph()
        with t.cuda.stream(stream):
            start = now()
            graph.capture_begin(capture_error_mode="thread_local")
            began = now()
            for _ in range(n):
                x.add_(1)
            issued = now()
            graph.capture_end()
            return issued - began, now() - start, graph

    def region(n):
        t.cuda.synchronize()
        graph = t.cuda.CUDAGraph()
        start = now()
        with t.cuda.graph(graph):
            for _ in range(n):
                x.add_(1)
        return now() - start

    with t.cuda.stream(stream):
        lines(capture, lambda graph: graph.replay(), stream.synchronize)
    for n in LINES:
        row(f"line.{n}.region", median_of(7, lambda: region(n)))
    eager(lambda: x.add_(1), t.cuda.synchronize)
    allocations(lambda: t.empty(1 << 18, device="cuda"))
    torch_digits(t)


def cupy():
    import cupy as cp

    kernel = cp.RawKernel(TICK, "tick")
    x, one = cp.zeros(32, dtype=cp.float32), cp.float32(1)
    stream = cp.cuda.Stream(non_blocking=True)

    def tick():
        kernel((1,), (32,), (x, one))

    def capture(n):
        start = now()
        stream.begin_capture()
        began = now()
        for _ in range(n):
            tick()
        issued = now()
        graph = stream.end_capture()
        return issued - began, now() - start, graph

    with stream:
        tick()
        stream.synchronize()
        lines(capture, lambda graph: graph.launch(stream), stream.synchronize)
        eager(tick, stream.synchronize)
        allocations(lambda: cp.empty(1 << 18, dtype=cp.float32))


def cuda_core():
    import numpy

    try:
        from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
    except ImportError:
        from cuda.core.experimental import (
            Device,
            LaunchConfig,
            Program,
            ProgramOptions,
            launch,
        )

    device = Device()
    device.set_current()
    stream = device.create_stream()
    program = Program(
        TICK,
        code_type="c++",
        options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"),
    )
    kernel = program.compile("cubin").get_kernel("tick")
    x, one = device.allocate(1024, stream=stream), numpy.float32(1)
    config = LaunchConfig(grid=1, block=32)
    stream.sync()

    def capture(n):
        builder = stream.create_graph_builder()
        start = now()
        builder.begin_building(mode="thread_local")
        began = now()
        for _ in range(n):
            launch(builder, config, kernel, x, one)
        issued = now()
        builder.end_building()
        graph = builder.complete()
        return issued - began, now() - start, graph

    lines(capture, lambda graph: graph.launch(stream), stream.sync)
    eager(lambda: launch(stream, config, kernel, x, one), stream.sync)

    def allocate():
        device.allocate(1 << 20, stream=stream).close(stream)

    allocations(allocate)


def jax_gradients(j, n, iterations):
    """lax.while_loop around conjugate gradients for n x n unknowns."""
    np = j.numpy

    def apply(x):
        padded = np.pad(x, 1)
        return (
            4 * x
            - padded[:-2, 1:-1]
            - padded[2:, 1:-1]
            - padded[1:-1, :-2]
            - padded[1:-1, 2:]
        )

    def going(state):
        return (state[3] > 0) & (state[4] < iterations)

    def iterate(state):
        x, r, p, square, k = state
        q = apply(p)
        a = square / np.vdot(p, q)
        x, r = x + a * p, r - a * q
        next_square = np.vdot(r, r)
        return x, r, r + next_square / square * p, next_square, k + 1

    @j.jit
    def solve(b):
        return j.lax.while_loop(
            going, iterate, (np.zeros_like(b), b, b, np.vdot(b, b), 0)
        )

    b = j.random.uniform(j.random.key(1), (n, n), minval=-1)

    def run():
        start = now()
        made = int(solve(b)[4])
        return (now() - start) / made

    run()
    row(f"gradients.{n}", median_of(5, run))


def jax_digits(j):
    """lax.scan over the steps."""
    np = j.numpy
    keys = j.random.split(j.random.key(1), 5)
    images = j.random.uniform(keys[0], (IMAGES, INPUTS))
    labels = j.random.randint(keys[1], (IMAGES,), 0, CLASSES)
    order = j.random.randint(keys[2], (STEPS, BATCH), 0, IMAGES)
    weights = (
        j.random.normal(keys[3], (INPUTS, HIDDEN)) * 0.18,
        np.zeros(HIDDEN),
        j.random.normal(keys[4], (HIDDEN, CLASSES)) * 0.12,
        np.zeros(CLASSES),
    )

    def loss_of(weights, rows, key):
        units = np.maximum(images[rows] @ weights[0] + weights[1], 0)
        kept = j.random.bernoulli(key, 1 - DROPOUT, units.shape)
        units = np.where(kept, units / (1 - DROPOUT), 0)
        likely = j.nn.log_softmax(units @ weights[2] + weights[3])
        return -likely[np.arange(BATCH), labels[rows]].mean()

    def step(state, rows):
        weights, mean, spread, key, k = state
        key, draw = j.random.split(key)
        loss, slopes = j.value_and_grad(loss_of)(weights, rows, draw)
        mean = j.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        spread = j.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, spread, slopes)
        rate = RATE * np.sqrt(1 - 0.999**k) / (1 - 0.9**k)
        weights = j.tree.map(
            lambda w, m, v: w - rate * m / (np.sqrt(v) + 1e-8), weights, mean, spread
        )
        return (weights, mean, spread, key, k + 1), loss

    zeros = j.tree.map(np.zeros_like, weights)
    train = j.jit(lambda state: j.lax.scan(step, state, order))
    state = (weights, zeros, zeros, keys[0], 1.0)

    def run():
        start = now()
        train(state)[1].block_until_ready()
        return (now() - start) / STEPS

    run()
    row("digits", median_of(5, run))


def jax():
    import jax as j

    for n in (64, 512, 2048):
        jax_gradients(j, n, 1000)
    jax_digits(j)


def jax_buffers():
    os.environ["XLA_FLAGS"] = (
        os.environ.get("XLA_FLAGS", "")
        + " --xla_gpu_enable_command_buffer=+WHILE,+CONDITIONAL"
        + " --xla_gpu_graph_min_graph_size=1"
    )
    jax()


PEERS = {
    "torch": torch,
    "cupy": cupy,
    "cuda.core": cuda_core,
    "jax": jax,
    "jax.buffers": jax_buffers,
}

if __name__ == "__main__":
    try:
        PEERS[sys.argv[1]]()
    except ImportError as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(3)
