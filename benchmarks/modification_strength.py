"""How strong are the modification attacks, white-box on a GCN, paired over seeds?

    GRB_DATA=... python benchmarks/modification_strength.py [grb-cora planetoid-cora planetoid-pubmed] [--seeds 10] [--table]

Every seed trains a new GCN, which every attack then attacks on all test nodes, with 5 % of the edges to change. grb-cora is
trained inductively with the settings of Table 6; Planetoid's graphs transductively on their public split, with two layers
of 64. Adds one line per cell to docs/results/modification-strength.jsonl; running again goes on where it stopped.
``--table`` prints accuracies and paired differences with their 95 % intervals.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from common import options, started
from results import Results
from torch import nn

import grb
from grb.metric import Interval, mean_std, paired_difference
from grb.threat import Modification

RATIO = 0.05
# blocks and rounds that finish in seconds, PR-BCD with the paper's constants; FGA flips eight pairs between two gradients
SETTINGS: dict[str, dict[str, object]] = {
    "rnd-edges": {},
    "dice": {},
    "pr-bcd": {"steps": 60, "search_space_size": 200_000, "lr_factor": 100.0, "refinements": 0, "loss": None},
    "gr-bcd": {"steps": 60, "search_space_size": 200_000},
    "fga": {"refresh": 8},
}
ATTACKS = {
    "grb-cora": ("rnd-edges", "dice", "fga", "gr-bcd", "pr-bcd"),
    "planetoid-cora": ("rnd-edges", "dice", "pr-bcd"),
    "planetoid-pubmed": ("rnd-edges", "dice", "pr-bcd"),
}
# each of the first must leave less than the second
CLAIMS = (("dice", "rnd-edges"), ("fga", "dice"), ("gr-bcd", "dice"), ("pr-bcd", "dice"))
FILE = Path(__file__).parent.parent / "docs" / "results" / "modification-strength.jsonl"


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("datasets", nargs="*", default=list(ATTACKS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--table", action="store_true")
    arguments = started(parser)
    results = Results(FILE, ("dataset", "attack", "seed"))
    if arguments.table:
        print(table(results))
        return
    for name in arguments.datasets:
        dataset = grb.load_dataset(name) if name.startswith("grb-") else planetoid(name)
        for seed in range(arguments.seeds):
            run(results, name, dataset, seed)


def planetoid(name: str) -> grb.Dataset:
    """Read with torch_geometric from Planetoid's raw files below GRB_DATA; rows of features sum to one."""
    from torch_geometric.io import read_planetoid_data

    title = {"planetoid-cora": "Cora", "planetoid-pubmed": "PubMed"}[name]
    folders = [Path(root) / "Planetoid" / title / "raw" for root in os.environ.get("GRB_DATA", "").split(os.pathsep)]
    folder = next((each for each in folders if each.is_dir()), None)
    if folder is None:
        raise SystemExit(f"no Planetoid/{title}/raw below GRB_DATA; put the public files there")
    data = read_planetoid_data(str(folder), title.lower())
    import scipy.sparse as sp

    rows, columns = data.edge_index.numpy()
    adj = sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(data.y),) * 2)
    features = data.x / data.x.sum(1, keepdim=True).clamp_min(1)
    split = {part: data[f"{part}_mask"].nonzero().flatten().numpy() for part in ("train", "val", "test")}
    return grb.Dataset.from_arrays(adj, features, data.y, split=split, name=name)


def run(results: Results, name: str, dataset: grb.Dataset, seed: int) -> None:
    missing = [attack for attack in ATTACKS[name] if not results.has(dataset=name, attack=attack, seed=seed)]
    if not missing:
        return
    model = train(name, dataset, seed)
    clean = score(model, dataset)
    for attack in missing:
        result = grb.run_attack(
            attack, model, dataset, threat=Modification(edge_ratio=RATIO), seed=seed, **SETTINGS[attack]
        )
        results.add(
            dataset=name,
            attack=attack,
            seed=seed,
            settings=SETTINGS[attack],
            clean=clean,
            attacked=score(model, dataset, result),
            edges=result.budget["edges"],
            added=result.edit.add.shape[1],
            cpu_seconds=round(result.cpu_seconds, 3),
            threads=1,
        )


def train(name: str, dataset: grb.Dataset, seed: int) -> nn.Module:
    if name.startswith("grb-"):
        return grb.train("gcn", dataset, seed=seed)
    return grb.train("gcn", dataset, seed=seed, train_mode="transductive", epochs=100, hidden_features=[64])


def score(model: nn.Module, dataset: grb.Dataset, result: object = None) -> float:
    return round(100 * grb.evaluate(model, dataset, result)["full"], 4)


def table(results: Results) -> str:
    lines = [
        "| dataset | attack | seeds | clean | left | edges changed (added) | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, attacks in ATTACKS.items():
        for attack in attacks:
            rows = list(results.select(dataset=name, attack=attack))
            if not rows:
                continue
            mean = {
                key: mean_std([row[key] for row in rows])
                for key in ("clean", "attacked", "edges", "added", "cpu_seconds")
            }
            lines.append(
                f"| {name} | {attack} | {len(rows)} | {mean['clean'].mean:.1f} | {mean['attacked'].mean:.1f} ± "
                f"{mean['attacked'].std:.1f} | {mean['edges'].mean:.0f} ({mean['added'].mean:.0f}) | "
                f"{mean['cpu_seconds'].mean:.1f} |"
            )
    lines += ["", "| dataset | leaves less than | points, 95 % interval |", "|---|---|---|"]
    for name in ATTACKS:
        for strong, weak in CLAIMS:
            found = difference(results, name, strong, weak)
            if found is not None:
                lines.append(
                    f"| {name} | {strong} than {weak} | {found.mean:.2f} ({found.low:.2f} to {found.high:.2f}) |"
                )
    return "\n".join(lines)


def difference(results: Results, name: str, strong: str, weak: str) -> Interval | None:
    """What the weaker attack leaves beyond the stronger one, paired by seed; None without such records."""
    left = [
        {row["seed"]: row["attacked"] for row in results.select(dataset=name, attack=attack)}
        for attack in (weak, strong)
    ]
    seeds = sorted(set(left[0]) & set(left[1]))
    return paired_difference(*([side[seed] for seed in seeds] for side in left)) if seeds else None


if __name__ == "__main__":
    main()
