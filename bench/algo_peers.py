# Calls on a thousand floats in PyTorch's graphs, for bench/algo.lua: lines of
# "name, microseconds" for one replay of a graph of one call, and, with 100
# behind the name, for one of a hundred calls in a graph.
#   python3 bench/algo_peers.py torch > FILE

import statistics
import time

import torch as t

N = 1000
x = t.rand(N, device="cuda")
a, b = t.rand(32, 32, device="cuda"), t.rand(32, 32, device="cuda")
z = t.view_as_complex(t.rand(N, 2, device="cuda"))
out, matrix, flag = t.empty_like(x), t.empty_like(a), x > 0.5

CALLS = {
    "sum": lambda: x.sum(),
    "min": lambda: x.min(),
    "argmin": lambda: x.argmin(),
    "norm": lambda: x.norm(),
    "any": lambda: flag.any(),
    "scan": lambda: t.cumsum(x, 0, out=out),
    "sort": lambda: t.sort(x),
    "histogram": lambda: t.histc(x, 64, 0, 1),
    "map": lambda: t.add(x, out, alpha=2, out=out),
    "gemm": lambda: t.mm(a, b, out=matrix),
    "fft": lambda: t.fft.fft(z),
}


def median_of(call, count):
    side = t.cuda.Stream()
    with t.cuda.stream(side):  # loads code, makes plans
        for _ in range(3):
            call()
    side.synchronize()
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        for _ in range(count):
            call()
    times = []
    for _ in range(9):
        t.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(2000 // count):
            graph.replay()
        t.cuda.synchronize()
        times.append((time.perf_counter() - start) / 2000 * 1e6)
    return statistics.median(times[2:])


for name, call in CALLS.items():
    for count in 1, 100:
        try:
            print(name + ("100" if count > 1 else ""), median_of(call, count))
        except RuntimeError as error:
            import sys

            print(name, error, file=sys.stderr)
