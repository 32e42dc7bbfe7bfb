"""Traces by other allocators.

pool_peers.py PEER FOLDER: torch, torch.expandable (its expandable segments),
torch.graph (all traces of the folder, each in a capture) or cupy, and where the
traces are.
Writes "key value" lines: latency in microseconds, and for each trace the most
bytes that were reserved.  The keys are those of pool.lua.
"""

import os
import sys
import time

TRACES = ("transformer", "frame", "random", "halves")


def trace(name):
    with open(os.path.join(sys.argv[2], name + ".txt"), encoding="ascii") as file:
        for line in file:
            words = line.split()
            yield words[0] == "a", int(words[1]), int(words[-1])


def replay(name, allocate):
    held = {}
    for is_new, number, size in trace(name):
        if is_new:
            held[number] = allocate(size)
        else:
            del held[number]


def latency(key, allocate, size, count=20000):
    best = None
    for _ in range(5):
        start = time.perf_counter_ns()
        for _ in range(count):
            allocate(size)
        took = (time.perf_counter_ns() - start) / 1e3 / count
        best = took if best is None else min(best, took)
    print(key, f"{best:.4f}", flush=True)


def latencies(allocate):
    latency("latency.small", allocate, 4096)
    latency("latency.large", allocate, 1 << 20)


def torch():
    import torch as t

    def allocate(size):
        return t.empty(size, dtype=t.uint8, device="cuda")

    latencies(allocate)
    for name in TRACES:
        t.cuda.synchronize()
        t.cuda.empty_cache()
        t.cuda.reset_peak_memory_stats()
        replay(name, allocate)
        print(f"reserved.{name}", t.cuda.max_memory_reserved(), flush=True)


def torch_graph():
    import torch as t

    for file in sorted(os.listdir(sys.argv[2])):
        name = file[: -len(".txt")]
        t.cuda.synchronize()
        t.cuda.empty_cache()
        reserved, allocated = t.cuda.memory_reserved(), t.cuda.memory_allocated()
        t.cuda.reset_peak_memory_stats()
        graph = t.cuda.CUDAGraph()
        with t.cuda.graph(graph):
            replay(name, lambda n: t.empty(n, dtype=t.uint8, device="cuda"))
        print(
            f"{name:12} PyTorch's capture: {t.cuda.max_memory_reserved() - reserved} bytes",
            f"reserved, {t.cuda.max_memory_allocated() - allocated} in use at most",
            flush=True,
        )
        del graph


def cupy():
    import cupy as cp

    pool = cp.cuda.MemoryPool()
    latencies(pool.malloc)
    for name in TRACES:
        cp.cuda.Device().synchronize()
        pool.free_all_blocks()
        most = 0

        def allocate(size):
            nonlocal most
            block = pool.malloc(size)
            most = max(most, pool.total_bytes())
            return block

        replay(name, allocate)
        print(f"reserved.{name}", most, flush=True)


def main():
    if sys.argv[1] == "torch.expandable":
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    peers = {
        "torch": torch,
        "torch.expandable": torch,
        "torch.graph": torch_graph,
        "cupy": cupy,
    }
    peers[sys.argv[1]]()


main()
