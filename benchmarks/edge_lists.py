"""How long does it take to read a million edges from CSV files, to make a dataset of them, and to report on it?

    python benchmarks/edge_lists.py

CPU seconds of the fastest of several runs, on 100,000 nodes with one feature: nodes that are numbered, or named.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from common import TINY, best, row

from grb.dataset import folder
from grb.dataset.cleaning import clean
from grb.dataset.report import report

NODES, EDGES, REPEATS = (100, 1_000, 1) if TINY else (100_000, 1_000_000, 3)


def write(place: Path, prefix: str) -> None:
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, NODES, (EDGES, 2)).tolist()
    (place / "edges.csv").write_text("\n".join(f"{prefix}{u},{prefix}{v}" for u, v in pairs))
    labels = rng.integers(0, 5, NODES).tolist()
    (place / "nodes.csv").write_text("\n".join(f"{prefix}{i},{i % 7},{label}" for i, label in enumerate(labels)))


def main() -> None:
    for kind, prefix in (("numbers", ""), ("names", "node")):
        with tempfile.TemporaryDirectory() as name:
            write(Path(name), prefix)
            raw = folder.from_csv(name)
            read = best(lambda name=name: folder.from_csv(name), REPEATS, cpu=True)
        cleaned = clean(raw)
        row(
            nodes=kind,
            edges=EDGES,
            read_s=round(read, 2),
            make_s=round(best(lambda raw=raw: clean(raw), REPEATS, cpu=True), 2),
            report_s=round(best(lambda cleaned=cleaned: report(cleaned), REPEATS, cpu=True), 2),
        )


if __name__ == "__main__":
    main()
