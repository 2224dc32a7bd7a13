"""How much memory does a defense take on a graph of flickr's size, and which say that it is too large for them?

    python benchmarks/defense_memory.py [flickr] [--defenses rung pro-gnn ...] [--epochs 2] [--table]

The generated graph of flickr's size (89,250 nodes, 449,878 edges, 500 features), the defenses with their own settings but
for the number of epochs: memory does not depend on it. Each is trained, evaluated on the clean graph and on one with the
paper's 600 injected nodes, and differentiated once by the features of all nodes in a process of its own; pro-gnn on the
whole graph, all others inductively. 8 GB are allowed. Adds one line per defense to docs/results/defense-memory.jsonl;
running again goes on.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import torch
from common import TINY, options, peak_gigabytes, sized_dataset, started
from results import Results

import grb
from grb.errors import GRBError
from grb.model.base import prepare
from grb.names import TRANSDUCTIVE, ModelName
from grb.threat import Injection

DEFENSES = {
    "gcn": {},
    "pro-gnn": {},
    "pro-gnn, dense": {"parametrisation": "dense"},
    "gprgnn": {"k": 10},
    "chebnetii": {},
    "rung": {},
    "elasticgnn": {},
    "softmedian": {},
    "softmedian-gdc": {},
    "grand": {},
    "egnnguard": {},
    "gcn-svd": {},
    "gcn-jaccard": {},
    "gcn-detect": {},
    "sgformer": {},
    "gps": {},
    "graphsage+ln+known": {},
    "graphsage+ln+bounded": {},
}
LIMIT = 8.0
FILE = Path(__file__).parent.parent / "docs" / "results" / "defense-memory.jsonl"


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("size", nargs="?", default="flickr")
    parser.add_argument("--defenses", nargs="*", default=list(DEFENSES))
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--table", action="store_true")
    arguments = started(parser)
    results = Results(FILE, ("size", "defense"))
    if arguments.table:
        print(table(results))
        return
    missing = [name for name in arguments.defenses if not results.has(size=arguments.size, defense=name)]
    if len(missing) > 1 and not TINY:
        for name in missing:  # a peak is that of a process
            given = ["--defenses", name, "--epochs", str(arguments.epochs), "--threads", str(arguments.threads)]
            subprocess.run([sys.executable, __file__, arguments.size, *given], check=True)
    else:
        for name in missing:
            run(results, arguments.size, name, arguments.epochs)


def run(results: Results, size: str, name: str, epochs: int) -> None:
    dataset = sized_dataset(size)
    before, start, refused = peak_gigabytes(), time.process_time(), ""
    model_name = name.partition(",")[0]
    seen = "transductive" if ModelName.parse(model_name).base in TRANSDUCTIVE else "inductive"
    try:
        model = grb.train(model_name, dataset, epochs=epochs, train_mode=seen, **DEFENSES[name])
        grb.evaluate(model, dataset)
        limits = Injection.preset(dataset.name, "full")
        grb.evaluate(model, dataset, grb.run_attack("rnd", None, dataset, threat=limits, knowledge="transfer"))
        x = dataset.features.clone().requires_grad_()
        torch.autograd.grad(model(x, prepare(model, dataset.graph.adj)).square().sum(), x)
    except GRBError as error:
        refused = str(error)
    results.add(
        size=size,
        defense=name,
        refused=refused,
        epochs=epochs,
        data_gb=round(before, 2),
        peak_gb=round(peak_gigabytes(), 2),
        cpu_seconds=round(time.process_time() - start, 1),
    )


def table(results: Results) -> str:
    lines = ["| size | defense | GB of the data | GB at most | CPU s | |", "|---" * 6 + "|"]
    for row in sorted(results.rows, key=lambda row: (row["size"], list(DEFENSES).index(row["defense"]))):
        says = (
            f"refused: {row['refused']}" if row["refused"] else "" if row["peak_gb"] <= LIMIT else f"above {LIMIT:g} GB"
        )
        cells = [row[key] for key in ("size", "defense", "data_gb", "peak_gb", "cpu_seconds")]
        lines.append(f"| {' | '.join(map(str, cells))} | {says} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
