"""Both jobs of the house side by side: what a dataset loses without structure or features, and what attacks on them cost.

A profile says what is lost when a model is *trained* on a perturbed dataset, a score what is lost when a *trained* model meets
an attacked graph. Both are records of one store, so they can be laid side by side.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grb.errors import DataError
from grb.evaluator.board import Estimate, estimate_of
from grb.pipeline.store import Record, Store
from grb.taxonomy.profile import ORIGINAL

# perturbations that take the features away, and those that take the structure
FEATURES = ("NoNodeFtrs", "NodeDeg", "RandFtrs")
STRUCTURE = ("NoEdges", "FullyConn", "RandRewire", "Frag-k1", "Frag-k2", "Frag-k3", "FiedlerFrag")
# what an attack may change
CHANGES = ("features", "edges", "injection")
# by which limits attacks of a kind differ
LIMITS = {"features": ("feature_nodes",), "edges": ("edges", "edge_ratio"), "injection": ("nodes", "edges_per_node")}


@dataclass(frozen=True)
class Strongest:
    """The attack of its kind that costs the victims most, and what it costs: accuracy, as a share, over victims and repeats."""

    attack: str
    lost: Estimate


@dataclass(frozen=True)
class CrossRow:
    """One dataset.

    Args:
        dataset: Its name.
        mode: Test nodes that the attacks were scored on; empty if there are no attacks.
        sensitivity: Share of the AUROC that is lost without ``features`` and without ``structure``, mean over the
            perturbations of the kind; what was not run is missing.
        attacks: The strongest attack that changes ``features``, ``edges`` or adds nodes (``injection``).
    """

    dataset: str
    mode: str
    sensitivity: Mapping[str, Estimate]
    attacks: Mapping[str, Strongest]

    def as_dict(self) -> dict[str, Any]:
        """Flat, for tables and JSON."""
        values: dict[str, Any] = {"dataset": self.dataset, "mode": self.mode}
        for kind, value in self.sensitivity.items():
            values |= {f"auroc_lost_{kind}": value.mean, f"auroc_lost_{kind}_std": value.std}
        for change, found in self.attacks.items():
            values |= {f"attack_{change}": found.attack, f"accuracy_lost_{change}": found.lost.mean}
            values |= {f"accuracy_lost_{change}_std": found.lost.std}
        return values


def cross_view(store: Store, *, model: str = "gcn", mode: str = "full") -> list[CrossRow]:
    """One row for every dataset of a store that has profiles or scores under attack, by name.

    Args:
        store: With the runs of ``grb taxonomy run`` and of any recipe.
        model: Profiling model whose runs count.
        mode: Test nodes whose scores count.
    """
    records = {record.key: record for record in store.records()}
    sensitivities = _sensitivities(records.values(), model)
    attacks = _attacks(records, mode)
    names = sorted({*sensitivities, *attacks})
    if not names:
        raise DataError(
            f"{store.path} has neither runs of the taxonomy with {model} nor scores on {mode} test nodes; "
            "`grb taxonomy run` and `grb run` make them"
        )
    return [
        CrossRow(name, mode if name in attacks else "", sensitivities.get(name, {}), attacks.get(name, {}))
        for name in names
    ]


def _sensitivities(records: Iterable[Record], model: str) -> dict[str, dict[str, Estimate]]:
    """``[dataset][kind]``; run by run, so that the spread is that of whole runs."""
    aurocs: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record.job.kind == "profile" and record.result["model"] == model:
            name = str(record.result["perturbation"])
            aurocs[record.job.data.dataset][record.job.seed][name] = float(record.result["auroc"])
    found: dict[str, dict[str, Estimate]] = {}
    for dataset, runs in aurocs.items():
        own = {}
        for kind, names in (("features", FEATURES), ("structure", STRUCTURE)):
            lost = {(0, seed): share for seed, run in runs.items() if (share := _lost(run, names)) is not None}
            if lost:
                own[kind] = estimate_of(lost)
        if own:
            found[dataset] = own
    return found


def _lost(run: Mapping[str, float], names: Iterable[str]) -> float | None:
    """Mean share of the AUROC that one run loses under some perturbations; None if it has none of them."""
    # variants such as "RandFtrs (gtaxogym)" are of the same kind
    there = [auroc for name, auroc in run.items() if name.partition(" (")[0] in names]
    if not there or not run.get(ORIGINAL):
        return None
    return 1 - statistics.mean(there) / run[ORIGINAL]


def _attacks(records: Mapping[str, Record], mode: str) -> dict[str, dict[str, Strongest]]:
    """``[dataset][change]``."""
    scores = [record for record in records.values() if record.job.kind == "score" and not record.job.data.perturbations]
    clean = {
        record.job.inputs["model"]: record.result["accuracy"][mode]
        for record in scores
        if not record.job.data.edits and mode in record.result["accuracy"]
    }
    losses: dict[tuple[str, str], dict[str, dict[tuple[int, int], float]]] = defaultdict(lambda: defaultdict(dict))
    for record in scores:
        victim, edits = record.job.inputs["model"], record.job.data.edits
        if len(edits) != 1 or mode not in record.result["accuracy"] or victim not in clean or edits[0] not in records:
            continue
        attack = records[edits[0]]
        change = _change(attack)
        if change:
            runs = losses[record.job.data.dataset, change][_limited(attack, change)]
            # by victim, so that the interval is one over victims
            runs[list(clean).index(victim), len(runs)] = clean[victim] - record.result["accuracy"][mode]
    found: dict[str, dict[str, Strongest]] = defaultdict(dict)
    for (dataset, change), by_attack in losses.items():
        strongest = max(by_attack, key=lambda name: (statistics.mean(by_attack[name].values()), name))
        found[dataset][change] = Strongest(strongest, estimate_of(by_attack[strongest]))
    return {name: {change: own[change] for change in CHANGES if change in own} for name, own in found.items()}


def _limited(attack: Record, change: str) -> str:
    """An attack with what it knows and may change: other limits are another attack."""
    limits = {key: value for key, value in sorted(attack.job.extra["threat"].items()) if key in LIMITS[change]}
    told = ", ".join(f"{key}={value:g}" for key, value in limits.items())
    return ", ".join(part for part in (attack.job.spec.label, attack.job.extra["knowledge"], told) if part)


def _change(attack: Record) -> str:
    """What an edit changes; empty for one that changes nothing, or several things."""
    used = attack.result.get("budget", {})
    if used.get("nodes"):
        return "injection"
    edges, features = bool(used.get("edges")), bool(used.get("feature_nodes"))
    if edges == features:
        return ""
    return "edges" if edges else "features"
