"""Sensitivity to perturbations and to attacks: what a dataset loses without structure or features, and what
attacks on them cost.

A profile says what is lost when a model is *trained* on a perturbed dataset, a score what is lost when a *trained* model meets
an attacked graph.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from grb.errors import DataError
from grb.metric.summary import MeanStd
from grb.taxonomy.profile import ORIGINAL
from grb.taxonomy.read import choose_runs

# perturbations that take the features away, and those that take the structure
FEATURES = ("NoNodeFtrs", "NodeDeg", "RandFtrs")
STRUCTURE = ("NoEdges", "FullyConn", "RandRewire", "Frag-k1", "Frag-k2", "Frag-k3", "FiedlerFrag")
# what an attack may change
CHANGES = ("features", "edges", "injection")
# by which limits attacks of a kind differ
LIMITS = {"features": ("feature_nodes",), "edges": ("edges", "edge_ratio"), "injection": ("nodes", "edges_per_node")}


@dataclass(frozen=True)
class StrongestAttack:
    """The attack of its kind that costs the victims most: its name, and the accuracy lost as a fraction."""

    attack: str
    lost: MeanStd


@dataclass(frozen=True)
class AttackSensitivity:
    """One dataset under perturbations and under attacks.

    Args:
        dataset: Reference of the dataset.
        difficulty: Test nodes that the attacks were scored on; empty if there are no attacks.
        sensitivity: Fraction of the AUROC that is lost without ``features`` and without ``structure``, mean over the
            perturbations of the kind; what was not run is missing.
        attacks: The strongest attack that changes ``features``, ``edges`` or adds nodes (``injection``).
    """

    dataset: str
    difficulty: str
    sensitivity: Mapping[str, MeanStd]
    attacks: Mapping[str, StrongestAttack]

    def to_dict(self) -> dict[str, Any]:
        """Return flat values, for tables and JSON."""
        values: dict[str, Any] = {"dataset": self.dataset, "difficulty": self.difficulty}
        for kind, lost in self.sensitivity.items():
            values |= {f"auroc_lost_{kind}": lost.mean, f"auroc_lost_{kind}_std": lost.std}
        for change, found in self.attacks.items():
            values |= {f"attack_{change}": found.attack, f"accuracy_lost_{change}": found.lost.mean}
            values |= {f"accuracy_lost_{change}_std": found.lost.std}
        return values


def attack_sensitivity(
    runs: Iterable[Mapping[str, Any]],
    scores: Iterable[Mapping[str, Any]],
    *,
    model: str = "gcn",
    difficulty: str = "full",
    where: Mapping[str, str] | None = None,
    source: object = "the store",
) -> list[AttackSensitivity]:
    """Compare what datasets lose under perturbations with what they lose under attacks, one row per dataset, by name.

    Args:
        runs: Profiling runs, as :meth:`ProfileMeasurement.to_row` gives them.
        scores: Score measurements as JSON values, as ``grb.evaluator.Measurement.to_dict`` gives them.
        model: Profiling model whose runs count.
        difficulty: Test nodes whose scores count.
        where: Use only runs with these values of columns, as in :func:`grb.taxonomy.read.from_rows`.
        source: Where runs and scores come from, for messages.
    """
    own = [dict(run) for run in runs if run["model"] == model]
    lost = _sensitivities(choose_runs(own, source, where=where)) if own else {}
    attacks = _attacks([each for each in scores if difficulty in each["outcomes"]], difficulty)
    names = sorted({*lost, *attacks})
    if not names:
        raise DataError(
            f"{source} has neither profiling runs with {model} nor scores on {difficulty} test nodes; "
            "`grb taxonomy run` and `grb run` make them"
        )
    return [
        AttackSensitivity(name, difficulty if name in attacks else "", lost.get(name, {}), attacks.get(name, {}))
        for name in names
    ]


def _mean_std(values: Iterable[float]) -> MeanStd:
    numbers = np.array(list(values), dtype=float)
    return MeanStd(float(numbers.mean()), float(numbers.std()))


def _sensitivities(runs: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, MeanStd]]:
    """``[dataset][kind]``; run by run, so that the spread is that of whole runs."""
    aurocs: dict[str, dict[int, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for run in runs:
        aurocs[run["reference"]][run["seed"]][run["perturbation"]] = run["auroc"]
    found: dict[str, dict[str, MeanStd]] = {}
    for dataset, by_seed in aurocs.items():
        for kind, names in (("features", FEATURES), ("structure", STRUCTURE)):
            lost = [fraction for own in by_seed.values() if (fraction := _lost(own, names)) is not None]
            if lost:
                found.setdefault(dataset, {})[kind] = _mean_std(lost)
    return found


def _lost(run: Mapping[str, float], names: Iterable[str]) -> float | None:
    """Mean fraction of the AUROC that one run loses under some perturbations; None if it has none of them."""
    # variants such as "RandFtrs (gtaxogym)" are of the same kind
    there = [auroc for name, auroc in run.items() if name.partition(" (")[0] in names]
    if not there or not run.get(ORIGINAL):
        return None
    return 1 - statistics.mean(there) / run[ORIGINAL]


def _attacks(scores: Iterable[Mapping[str, Any]], difficulty: str) -> dict[str, dict[str, StrongestAttack]]:
    """``[dataset][change]``."""
    accuracy = [(each, each["outcomes"][difficulty]["values"]["accuracy"]) for each in scores]
    clean = {each["defense"]["method"]["key"]: value for each, value in accuracy if each["attack"] is None}
    losses: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for each, value in accuracy:
        victim, attack = each["defense"]["method"]["key"], each["attack"]
        if attack is None or victim not in clean or not (change := _change(attack["budget"])):
            continue
        losses[each["dataset"]["reference"], change][_limited(attack, change)].append(clean[victim] - value)
    found: dict[str, dict[str, StrongestAttack]] = defaultdict(dict)
    for (dataset, change), by_attack in losses.items():
        strongest = max(by_attack, key=lambda name: (statistics.mean(by_attack[name]), name))
        found[dataset][change] = StrongestAttack(strongest, _mean_std(by_attack[strongest]))
    return {name: {change: own[change] for change in CHANGES if change in own} for name, own in found.items()}


def _limited(attack: Mapping[str, Any], change: str) -> str:
    """Name an attack with what it knows and may change: other limits are another attack."""
    method, params = attack["method"], attack["method"]["params"]
    label = method["title"] or method["name"] + (
        f"({', '.join(f'{key}={value}' for key, value in sorted(params.items()))})" if params else ""
    )
    limits = [f"{key}={value:g}" for key, value in sorted(attack["threat"].items()) if key in LIMITS[change]]
    version = [f"version {method['version']}"] if method["version"] > 1 else []
    return ", ".join([label, *filter(None, [attack["knowledge"]]), *limits, *version])


def _change(used: Mapping[str, float]) -> str:
    """What an edit changes; empty for one that changes nothing, or several things."""
    if used.get("nodes"):
        return "injection"
    edges, features = bool(used.get("edges")), bool(used.get("feature_nodes"))
    if edges == features:
        return ""
    return "edges" if edges else "features"
