"""What do the defenses cost: memory and time of the heavy ones at flickr size, adversarial training at cora size?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/defense.py [--part memory] [--part training] [--models gcnguard,r-gcn]

``memory``: GNNGuard, GNN-SVD and RobustGCN (and, with ``--models``, any other) train a few epochs with validation on a
synthetic graph of flickr's size with a random half of its edges, with all, and with random ones up to four times as many,
and are evaluated once. CPU seconds of the fastest epoch and of what comes before the first, memory of the loaded data, and
peak memory from then on. ``bytes_per_edge`` is what each more edge than in the row above added to the peak; growth is
linear if that stays bounded. ``dense_gb`` is one N x N float32 matrix, of which a dense version needs at least one.

``training``: CPU ms of the fastest iteration of adversarial training (Table 5: ten steps of FGSM, then one training step
and validation) beside the fastest plain training epoch of the same model. ``allowed`` is 50 ms for gcn+at, and steps + 2
epochs for every other model. On the true grb-cora where GRB_DATA has it.

Every measurement is a process of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from common import peak_gigabytes, row, sized_arrays, sized_dataset, sized_graph

import grb
from grb.catalogue import entries
from grb.dataset import Dataset
from grb.defense import build_defense
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.graph.memory import keep_memory
from grb.model.base import predict

HEAVY = ("gcnguard", "gatguard", "gcn-svd", "r-gcn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", action="append", choices=("memory", "training"))
    parser.add_argument("--models", default="")
    parser.add_argument("--size", default="flickr", help="of the memory part")
    parser.add_argument("--shares", default="0.5,1,4", help="of the edges in the memory part")
    parser.add_argument("--epochs", type=int, default=2, help="of the memory part")
    parser.add_argument("--rounds", type=int, default=3, help="of plain and adversarial training in turn")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one:
        keep_memory()
        warnings.filterwarnings("ignore")
        part, *rest = arguments.one
        print(json.dumps({"memory": memory, "training": training}[part](*rest)))
        return
    chosen = [name for name in arguments.models.split(",") if name]
    parts = arguments.part or ["memory", "training"]
    if "memory" in parts:
        for name in chosen or HEAVY:
            grow(name, arguments)
    if "training" in parts:
        for name in chosen or entries("model"):
            row(**measured("training", name, arguments.rounds))


def grow(name: str, arguments: argparse.Namespace) -> None:
    before: dict[str, Any] = {}
    for share in arguments.shares.split(","):
        found = measured("memory", name, arguments.size, share, arguments.epochs)
        more = 2**30 * (found["peak_gb"] - before["peak_gb"]) / (found["edges"] - before["edges"]) if before else ""
        row(**found, bytes_per_edge=more)
        before = found


def measured(*what: object) -> dict[str, Any]:
    """The same file in a process of its own, whose peak memory is that of one measurement."""
    command = [sys.executable, __file__, "--one", *map(str, what)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return dict(json.loads(done.stdout))


def memory(name: str, size: str, share: str, epochs: str) -> dict[str, object]:
    dataset = with_edges(size, float(share))
    view = dataset.defender_view()
    clocks: list[float] = []
    defense = build_defense(
        name, dataset.name, epochs=int(epochs) + 1, on_epoch=lambda epoch: clocks.append(time.process_time())
    )
    data, start = forget_peak(), time.process_time()
    model = defense.fit(view, seed=0)
    predict(model, dataset.graph)
    fastest = min(later - earlier for earlier, later in zip(clocks, clocks[1:], strict=False))
    return {
        "size": size,
        "model": name,
        "nodes": dataset.num_nodes,
        "edges": dataset.graph.num_edges,
        "cpu_s_per_epoch": fastest,
        "set_up_cpu_s": max(0.0, clocks[0] - start - fastest),
        "data_gb": data,
        "peak_gb": peak_gigabytes(),
        "dense_gb": 4 * dataset.num_nodes**2 / 2**30,
    }


def forget_peak() -> float:
    """Gigabytes in use; what loading took beyond that is given back and no longer counts as peak (Linux alone can that)."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
    return peak_gigabytes()


def with_edges(size: str, share: float) -> Dataset:
    """The sized dataset with a random share of its edges, or with random ones beside all of its own."""
    arrays = sized_arrays(size)
    split = {part: arrays[f"index_{part}"] for part in ("train", "val")}
    split |= {band: arrays[f"index_test_{band}"] for band in ("easy", "medium", "hard")}
    del arrays
    graph = sized_graph(size)
    edges, generator = graph.adj.edges(), torch.Generator().manual_seed(0)
    order = torch.randperm(graph.num_edges, generator=generator)
    drop = edges[:, order[round(share * graph.num_edges) :]]
    more = torch.randint(graph.n, (2, max(0, round((share - 1) * graph.num_edges))), generator=generator).sort(0).values
    more = more[:, (more[0] < more[1]) & ~graph.adj.has(more)].unique(dim=1)
    graph = graph.apply(GraphEdit(n=graph.n, add=more, drop=drop))
    return Dataset.from_arrays(graph.adj, graph.x, graph.y, split=split, name=f"grb-{size}", feat_norm="arctan")


def training(name: str, rounds: str) -> dict[str, object]:
    try:
        dataset = grb.load_dataset("grb-cora")
    except DataError:
        dataset = sized_dataset("cora")
    plain, adversarial = [], []
    for _ in range(int(rounds)):  # in turn, so that a busy moment of the machine meets both
        plain += iterations(name, dataset, 30)
        adversarial += iterations(f"{name}+at", dataset, 12)
    steps = build_defense(f"{name}+at", dataset.name).attack.steps
    ratio = min(adversarial) / min(plain)
    aim = (1000 * min(adversarial), 50) if name == "gcn" else (ratio, steps + 2)
    return {
        "data": dataset.name,
        "nodes": dataset.num_nodes,
        "model": f"{name}+at",
        "plain_cpu_ms": 1000 * min(plain),
        "cpu_ms_per_iteration": 1000 * min(adversarial),
        "median_ms": 1000 * sorted(adversarial)[len(adversarial) // 2],
        "ratio": ratio,
        "allowed": f"{aim[1]} {'ms' if name == 'gcn' else 'epochs'}",
        "kept": "yes" if aim[0] <= aim[1] else "no",
    }


def iterations(name: str, dataset: Dataset, epochs: int) -> list[float]:
    """CPU seconds of each epoch but the first, without warm-up epochs of adversarial training."""
    clocks: list[float] = []
    extra = {"warm_up": 0} if name.endswith("+at") else {}
    defense = build_defense(
        name, dataset.name, epochs=epochs + 1, on_epoch=lambda epoch: clocks.append(time.process_time()), **extra
    )
    defense.fit(dataset.defender_view(), seed=0)
    return [later - earlier for earlier, later in zip(clocks, clocks[1:], strict=False)]


if __name__ == "__main__":
    main()
