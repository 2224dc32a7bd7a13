"""How near are our sensitivity profiles to the published ones, and is each dataset placed in its published group?

    python benchmarks/taxonomy.py STORE [--model gcn]

STORE has runs of ``grb taxonomy run``. One row per cell: the AUROC that is left in per cent of the unperturbed one, ours with
the 95 % interval of our mean beside the published one. Then the correlation of all log2 ratios, pooled over datasets, and for
every dataset where it is placed with its own published row left out. FiedlerFrag was published by another definition and does
not count.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from common import row

from grb import metric, taxonomy
from grb.pipeline import Store
from grb.pipeline.profiles import published_names
from grb.taxonomy.profile import ORIGINAL
from grb.taxonomy.read import from_rows

IGNORED = "FiedlerFrag"


def runs_of(path: Path, model: str) -> list[dict[str, object]]:
    found = [record.result for record in Store(path).records() if record.job.kind == "profile"]
    return [run for run in found if run["model"] == model]


def cells(runs: list[dict[str, object]]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = {}
    for run in published_names(runs):
        found.setdefault((run["dataset"], run["perturbation"]), []).append(run["auroc"])
    return found


def compare(runs: list[dict[str, object]], dataset: str, theirs: taxonomy.Profiles) -> list[tuple[float, float]]:
    """Rows of one dataset; pairs of log2 ratios, ours and the published."""
    own = {name: values for (where, name), values in cells(runs).items() if where == dataset}
    original = float(np.mean(own[ORIGINAL]))
    published = theirs.row(dataset)
    base = theirs.original[theirs.datasets.index(dataset)]
    row(question="auroc", dataset=dataset, perturbation=ORIGINAL, runs=len(own[ORIGINAL]), ours=100 * original,
        low="", high="", published=100 * float(base))  # fmt: skip
    pairs = []
    for name, values in own.items():
        if name == ORIGINAL or name not in published or np.isnan(published[name]):
            continue
        mean = metric.confidence_interval(values)
        low, high = (100 * end / original if np.isfinite(end) else "" for end in (mean.low, mean.high))
        row(question="left", dataset=dataset, perturbation=name, runs=len(values), ours=100 * mean.mean / original,
            low=low, high=high, published=100 * 2 ** published[name])  # fmt: skip
        if name != IGNORED:
            pairs.append((float(np.log2(mean.mean / original)), float(published[name])))
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("store", type=Path)
    parser.add_argument("--model", default="gcn")
    given = parser.parse_args()
    runs = runs_of(given.store, given.model)
    pooled: list[tuple[float, float]] = []
    for kind in ("inductive", "transductive"):
        reference = taxonomy.published(kind)
        here = [name for name in reference.profiles.datasets if any(run["dataset"] == name for run in runs)]
        for name in here:
            own = [run for run in runs if run["dataset"] == name]
            if len({run["perturbation"] for run in own}) < 4:
                continue
            pooled += compare(own, name, reference.profiles)
            (profiles,) = from_rows(published_names(own), given.store).values()
            found = taxonomy.place(profiles, kind, dataset=name, without=name, draws=200)
            right = reference.groups[found.nearest.dataset] == reference.groups[name]
            row(question="place", dataset=name, nearest=found.nearest.dataset, group=found.group,
                sure=found.probability[found.group], published=reference.groups[name], nearest_in_group=right)  # fmt: skip
    if len(pooled) > 2:
        ours, theirs = np.array(pooled).T
        row(
            question="pooled correlation of log2 ratios",
            cells=len(pooled),
            ours=float(np.corrcoef(ours, theirs)[0, 1]),
            limit=0.8,
        )


if __name__ == "__main__":
    main()
