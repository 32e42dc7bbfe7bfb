"""What a Python programmer would use instead, on the shapes of bench/ours.lua.

peers.py PEER: torch, cupy or cuda.core.  Writes "key microseconds" lines; the
keys are those of ours.lua.  Ends with status 3 when the peer cannot be had.
"""

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


PEERS = {"torch": torch, "cupy": cupy, "cuda.core": cuda_core}

if __name__ == "__main__":
    try:
        PEERS[sys.argv[1]]()
    except ImportError as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        sys.exit(3)
