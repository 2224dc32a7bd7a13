"""How long does it take to check a submission: on grb-cora (or its size), and with ten million edges?

    OMP_WAIT_POLICY=PASSIVE python benchmarks/submission.py [--edges 10000000]

CPU seconds of ``grb.pipeline.submission.check``, the fastest of three, beside reading the file with numpy alone. The large
one is a modification of a random graph that drops so many edges.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from common import row
from scipy import sparse

import grb
from grb.attack.base import peak_megabytes
from grb.dataset import Dataset
from grb.errors import MissingDataset
from grb.graph import GraphEdit
from grb.pipeline.card import Card
from grb.pipeline.submission import check
from grb.threat import Injection, Modification, Threat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=10_000_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    try:
        dataset = grb.load_dataset("grb-cora")
        limits = Injection.preset("grb-cora", "full")
    except MissingDataset:
        dataset, limits = grb.load_dataset("synth-cora"), Injection.preset("synth-cora", "full")
    edit = grb.run_attack("rnd", None, dataset, threat=limits, seed=0).edit
    measure(dataset.name, dataset, edit, limits)
    large = large_dataset(arguments.edges)
    count = arguments.edges
    changed = Modification(edges=count)
    drop = large.graph.adj.edges()[:, :count]
    measure("10^7 edges" if count == 10**7 else f"{count} edges", large, GraphEdit(large.graph.n, drop=drop), changed)


def large_dataset(edges: int) -> Dataset:
    """A random graph with at least so many edges."""
    n = 500_000
    ends = torch.randint(n, (2, int(1.05 * edges)), generator=torch.Generator().manual_seed(0))
    ends = ends[:, ends[0] != ends[1]].numpy()
    adj = sparse.coo_matrix((np.ones(ends.shape[1], dtype=np.float32), (ends[0], ends[1])), shape=(n, n)).tocsr()
    adj = adj + adj.T
    adj.data[:] = 1.0
    thirds = np.array_split(np.arange(n), 5)
    split = dict(zip(("train", "val", "easy", "medium", "hard"), thirds, strict=True))
    y = np.arange(n) % 2
    return Dataset.from_arrays(adj, np.zeros((n, 1), dtype=np.float32), y, split=split, name="large")


def measure(name: str, dataset: Dataset, edit: GraphEdit, threat: Threat) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = edit.save(Path(folder) / "edit.npz")
        card = Card("bench", "attack", dataset.name)
        seconds = fastest(lambda: check(path, card, dataset, threat))
        reading = fastest(lambda: [np.load(path)[key] for key in ("add", "drop", "new_x", "set_ids", "set_x", "meta")])
        row(
            what="check",
            data=name,
            edges=edit.add.shape[1] + edit.drop.shape[1],
            file_mb=path.stat().st_size / 2**20,
            cpu_s=seconds,
            numpy_cpu_s=reading,
            peak_mb=peak_megabytes(),
        )


def fastest(work: Callable[[], object], repeats: int = 3) -> float:
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


if __name__ == "__main__":
    main()
