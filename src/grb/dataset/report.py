"""What is in a dataset, what was wrong with it, and how it was cleaned: one value for a table, for JSON and for tests."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.dataset.cleaning import Cleaned, CleaningOptions, Problem, edge_facts, find_problems, missing_features
from grb.dataset.dataset import Dataset
from grb.dataset.raw_arrays import RawArrays, is_values
from grb.dataset.suspicions import suspicions
from grb.graph import CSR

QUANTILES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
# a class with fewer members is hardly learnt, and may be missing in a part of a split
FEW = 10
# a thousand steps of 0.01
WIDE = 10.0


@dataclass(frozen=True)
class Report:
    """Facts of a dataset after cleaning, and the problems that were found.

    Args:
        name: Name of the dataset.
        input: Counts of the raw arrays: edges listed, self-loops, listed again, one-way, NaN.
        facts: Facts of the graph that models see; empty if the input was refused.
        problems: What has more than one remedy, and the one that was taken.
        warnings: What has no remedy here, but is worth knowing.
        notes: What reading has decided.
    """

    name: str
    input: dict[str, Any]
    facts: dict[str, Any]
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether there is a dataset to use."""
        return bool(self.facts)

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        listed = [{**asdict(problem), "instead": list(problem.others)} for problem in self.problems]
        return {
            "name": self.name,
            "ok": self.ok,
            "input": self.input,
            "facts": self.facts,
            "problems": listed,
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def report(cleaned: Cleaned, dataset: Dataset | None = None) -> Report:
    """Report on cleaned arrays, and on the dataset that :meth:`Dataset.from_raw` makes of them."""
    raw, dataset = cleaned.raw, dataset or Dataset.from_raw(cleaned.arrays)
    facts = _facts(dataset, raw)
    return Report(
        dataset.name,
        _input(raw),
        facts,
        cleaned.problems,
        tuple(_warnings(facts, dataset, cleaned)),
        tuple(raw.notes),
    )


def refused(raw: RawArrays, options: CleaningOptions) -> Report:
    """Report on arrays that an option refuses, so that there is no dataset."""
    return Report(raw.name, _input(raw), {}, find_problems(raw, options), (), tuple(raw.notes))


def _input(raw: RawArrays) -> dict[str, Any]:
    weights = None
    if raw.weights is not None and len(raw.weights):
        weights = [float(np.min(raw.weights)), float(np.max(raw.weights))]
    return {"nodes": raw.n, **edge_facts(raw), "weights": weights, "missing_features": missing_features(raw)}


def _facts(dataset: Dataset, raw: RawArrays) -> dict[str, Any]:
    graph, labels = dataset.graph, dataset.labels
    degrees = graph.adj.degrees.double()
    sizes = component_sizes(dataset)
    facts: dict[str, Any] = {
        "task": task_of(dataset),
        "graphs": graph.num_graphs,
        "nodes": graph.n,
        "edges": graph.num_edges,
        "components": len(sizes),
        "largest_component": int(sizes.max()) if len(sizes) else 0,
        "isolated_nodes": int((degrees == 0).sum()),
        "degree_quantiles": quantiles(degrees),
        "features": graph.num_features,
        "feature_range": [round(end, 6) for end in dataset.feature_range],
        "zero_features": round(1 - _nonzero(graph.x) / max(graph.n * graph.num_features, 1), 4),
        "constant_columns": _constant_columns(graph.x),
        "classes": dataset.num_classes,
        "class_counts": _class_counts(dataset, raw),
    }
    if is_values(labels):
        facts["values"] = [round(float(end), 6) for end in (labels.min(), labels.max())]
    elif labels.dim() == 1 and len(labels) == graph.n:
        facts["homophily"] = homophily(dataset)
    facts["split"] = {
        "train": dataset.num_train,
        "val": dataset.num_val,
        **{part: len(ids) for part, ids in dataset.split.test.items()},
    }
    facts["splitting"] = dataset.scheme.description if dataset.scheme is not None else "one split, from its files"
    return facts


def task_of(dataset: Dataset) -> str:
    """What is asked of a dataset, in words."""
    return f"{'predict values of' if is_values(dataset.labels) else 'classify'} {dataset.task}s"


def component_sizes(dataset: Dataset) -> np.ndarray:
    """Number of nodes of every connected component."""
    from scipy.sparse.csgraph import connected_components

    if not dataset.num_nodes:
        return np.zeros(0, dtype=np.int64)
    return np.bincount(connected_components(dataset.adj, directed=False)[1])


def mean_degrees(dataset: Dataset) -> dict[str, float | None]:
    """Mean number of neighbours of all nodes and of each part of the split; None where a part is empty."""
    degrees = dataset.graph.adj.degrees.double()
    parts = {"train": dataset.index_train, "val": dataset.index_val, **dataset.split.test}
    if dataset.graph.ptr is not None:  # a split of a collection names graphs
        owner = dataset.graph.owner
        parts = {part: torch.isin(owner, ids).nonzero().flatten() for part, ids in parts.items()}
    means = {part: float(degrees[ids].mean()) if len(ids) else None for part, ids in parts.items()}
    return {"all": float(degrees.mean()), **means}


def quantiles(degrees: Tensor) -> dict[str, float]:
    """Degrees at some ranks, so that a hub and a tail of leaves both show."""
    if not len(degrees):
        return {}
    found = np.quantile(degrees.numpy(), QUANTILES)
    return {f"{100 * rank:g} %": round(float(value), 4) for rank, value in zip(QUANTILES, found, strict=True)}


def homophily(dataset: Dataset) -> float | None:
    r"""Fraction of edges whose ends have the same class, :math:`|\{(u, v) : y_u = y_v\}| / |E|`; hidden labels left out."""
    labels = dataset.labels
    ends = labels[dataset.graph.adj.edges()]
    known = (ends >= 0).all(0)
    return round(float((ends[0] == ends[1])[known].double().mean()), 6) if known.any() else None


def _class_counts(dataset: Dataset, raw: RawArrays) -> dict[str, int]:
    labels = dataset.labels
    if is_values(labels):
        return {}
    if labels.dim() == 2:
        return {str(column): int((labels[:, column] == 1).sum()) for column in range(labels.shape[1])}
    counts = labels[labels >= 0].bincount(minlength=dataset.num_classes).tolist()
    names = raw.classes or [str(number) for number in range(len(counts))]
    return {str(name): count for name, count in zip(names, counts, strict=False)}


def _nonzero(x: Tensor | CSR) -> int:
    return x.pattern.entries if isinstance(x, CSR) else int(torch.count_nonzero(x))


def _constant_columns(x: Tensor | CSR) -> int:
    if isinstance(x, CSR):
        used = torch.bincount(x.pattern.indices.long(), minlength=x.shape[1])
        return int((used == 0).sum())
    return int((x == x[:1]).all(0).sum()) if len(x) else 0


def _warnings(facts: dict[str, Any], dataset: Dataset, cleaned: Cleaned) -> list[str]:
    warnings = []
    few = [name for name, count in facts["class_counts"].items() if count < FEW]
    if few and dataset.labels.dim() == 1:
        warnings.append(
            f"{len(few)} of {dataset.num_classes} classes have fewer than {FEW} members: {', '.join(few[:5])}"
        )
    if dataset.task == "node" and dataset.graph.ptr is None and dataset.labels.dim() == 1 and facts["class_counts"]:
        seen = set(dataset.labels[dataset.index_train].tolist())
        absent = sorted(set(range(dataset.num_classes)) - seen)
        if absent:
            warnings.append(f"no training node has class {', '.join(map(str, absent[:5]))}")
    if facts["constant_columns"] and dataset.num_features > 1:
        warnings.append(f"{facts['constant_columns']} of {dataset.num_features} features are the same for all nodes")
    warnings += suspicions(dataset)
    low, high = facts["feature_range"]
    if high - low > WIDE:
        warnings.append(
            f"features reach from {low:g} to {high:g}, far for the step of 0.01 that FGSM and PGD take by default; "
            "feat_norm=arctan brings them into -1 to 1 as in the papers, or give the attack a step"
        )
    if dataset.num_classes < 2 and dataset.labels.dim() == 1 and not is_values(dataset.labels):
        warnings.append("there is one class only, so that there is nothing to learn")
    weights = None if cleaned.options.weights == "drop" else cleaned.raw.weights
    weightless = 0 if weights is None else int((np.asarray(weights) == 0).sum())
    if weightless:
        warnings.append(f"{weightless} listed edges have weight 0, so that they are no edges")
    if not dataset.num_edges:
        warnings.append("there are no edges")
    return warnings
