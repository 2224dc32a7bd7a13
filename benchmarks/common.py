"""Parts that the benchmarks share: graphs of the GRB datasets' sizes, timing, CSV rows."""

from __future__ import annotations

import argparse
import csv
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from scalable import SIZES, named_graph
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from grb.dataset.dataset import Dataset
from grb.dataset.registry import home
from grb.graph import Graph, adjacency_from_csr
from grb.graph.files import read_npz, write_npz
from grb.graph.memory import keep_memory
from grb.model.build import build, settings

# for smoke tests, see tiny.py
TINY = bool(os.environ.get("GRB_BENCH_TINY"))


def sized_graph(name: str) -> Graph:
    """A synthetic graph of a GRB dataset's size, kept in the cache because the large ones take half a minute."""
    arrays = sized_arrays(name)
    n = len(arrays["labels"])
    adj, _ = adjacency_from_csr(arrays["indptr"], arrays["indices"], None, (n, n))
    return Graph(adj, torch.from_numpy(arrays["features"]), torch.from_numpy(arrays["labels"]))


def sized_dataset(name: str) -> Dataset:
    arrays = sized_arrays(name)
    split = {part: arrays[f"index_{part}"] for part in ("train", "val")}
    split |= {band: arrays[f"index_test_{band}"] for band in ("easy", "medium", "hard")}
    graph = sized_graph(name)
    del arrays
    return Dataset.from_arrays(graph.adj, graph.x, graph.y, split=split, name=f"grb-{name}", feat_norm="arctan")


def sized_arrays(name: str) -> dict[str, object]:
    path = home() / "benchmarks" / f"{name}.npz"
    if not path.exists():
        write_npz(path, vars(named_graph(name)))
    return read_npz(path)


def best(run: Callable[[], object], repeats: int = 10, *, cpu: bool = False) -> float:
    """Seconds of the fastest of several runs after one to warm up; noise only ever adds."""
    clock = time.process_time if cpu else time.perf_counter
    run()
    seconds = []
    for _ in range(repeats):
        start = clock()
        run()
        seconds.append(clock() - start)
    return min(seconds)


@lru_cache(maxsize=1)
def gemm_rate() -> float:
    """GFLOP/s of a large product of dense matrices in this run, the bound of everything that is made of smaller ones."""
    size = 64 if TINY else 1024
    a, b = torch.ones(size, size), torch.ones(size, size)
    return 2 * size**3 / best(lambda: a @ b, 10, cpu=True) / 1e9


def gemm_bound(run: Callable[[], object]) -> float:
    """Milliseconds of CPU time that the dense products of a run take at the rate of :func:`gemm_rate`, per core."""
    with _Products() as products:
        run()
    return products.flops / gemm_rate() / 1e6


class _Products(TorchDispatchMode):
    """Counts the operations of dense products; torch's own counter fails where gradients of leaves are asked for."""

    flops = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten.mm.default, torch.ops.aten.addmm.default):
            left, right = args[-2:]
            self.flops += 2 * left.shape[0] * left.shape[1] * right.shape[1]
        return func(*args, **(kwargs or {}))


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


@lru_cache(maxsize=1)
def _basis() -> dict[str, object]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return {"commit": commit.stdout.strip() or "unknown", "machine": f"{platform.machine()}-{os.cpu_count()}cpu"}


_header: list[str] = []


def row(**fields: object) -> None:
    """One CSV row on stdout, with a header whenever the columns change."""
    full = {**_basis(), "threads": torch.get_num_threads(), **fields}
    writer = csv.writer(sys.stdout)
    if list(full) != _header:
        _header[:] = list(full)
        writer.writerow(_header)
    writer.writerow([f"{value:.4g}" if isinstance(value, float) else value for value in full.values()])
    sys.stdout.flush()


def options(documentation: str | None) -> argparse.ArgumentParser:
    """A parser with the options that benchmarks share; :func:`started` reads it."""
    parser = argparse.ArgumentParser(description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--fresh-memory", action="store_true", help="without grb.graph.memory.keep_memory")
    return parser


def started(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options given, with torch set up by them."""
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if not arguments.fresh_memory:
        keep_memory()
    warnings.filterwarnings("ignore")
    return arguments


def untrained(name: str, dataset: Dataset) -> nn.Module:
    """A model with random weights, which take as long as trained ones."""
    model = build(
        settings(name, dataset.name), dataset.num_features, dataset.num_classes, torch.Generator().manual_seed(0)
    )
    return model.eval().requires_grad_(False)


def sizes_from_arguments(default: str) -> list[str]:
    """Names of sizes given on the command line, or the default ones."""
    chosen = [argument for argument in sys.argv[1:] if argument in SIZES]
    return chosen or default.split()


if TINY:
    import tiny

    tiny.shrink()
