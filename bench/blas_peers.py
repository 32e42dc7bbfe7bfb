# Square matrix products of CuPy and PyTorch, for bench/blas.lua: lines of "type
# and size, microseconds" for a product replayed from a graph of one.
#   python3 bench/blas_peers.py torch|cupy > FILE

import statistics
import sys
import time


def median_of(replay, synchronize, n):
    count = int(max(1, min(1000, 1e12 / (2 * n**3))))
    times = []
    for _ in range(9):
        synchronize()
        start = time.perf_counter()
        for _ in range(count):
            replay()
        synchronize()
        times.append((time.perf_counter() - start) / count * 1e6)
    return statistics.median(times[2:])


def torch(sizes):
    import torch as t

    types = {"float": t.float32, "double": t.float64, "half": t.float16, "bfloat16": t.bfloat16}
    for name, type in types.items():
        for n in sizes:
            a, b = (t.rand(n, n, dtype=type, device="cuda") for _ in range(2))
            c = t.empty_like(a)
            t.matmul(a, b, out=c)
            g = t.cuda.CUDAGraph()
            with t.cuda.graph(g):
                t.matmul(a, b, out=c)
            print(name + str(n), median_of(g.replay, t.cuda.synchronize, n))


def cupy(sizes):
    import cupy as cp

    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        for name, type in {"float": "f4", "double": "f8", "half": "f2"}.items():
            for n in sizes:
                a, b = (cp.random.rand(n, n).astype(type) for _ in range(2))
                c = cp.empty_like(a)
                print(
                    name + str(n),
                    median_of(lambda: cp.matmul(a, b, out=c), stream.synchronize, n),
                )


{"torch": torch, "cupy": cupy}[sys.argv[1]]([128, 512, 2048, 8192])
