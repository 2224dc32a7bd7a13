"""What the steps of an audit share: the model, the targets, what counts, and what was done before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from grb._version import __version__
from grb.auditing import curve
from grb.auditing.cache import Cache
from grb.auditing.victim import Victim, answers
from grb.dataset import Dataset
from grb.errors import GRBError
from grb.graph import GraphEdit
from grb.metric import Metric

VERSION = 3


@dataclass(frozen=True, eq=False)
class Steps:
    """What all steps share."""

    victim: Victim
    dataset: Dataset
    whole: Dataset
    scored: Dataset
    metric: Metric
    metrics: Mapping[str, Metric]
    effort: str
    seed: int
    cache: Cache
    say: Callable[[str], None]
    queries: int | None = None

    def key(self, **parts: Any) -> dict[str, Any]:
        """All that a step depends on."""
        return {
            "version": VERSION,
            "grb": __version__,
            "model": self.victim.fingerprint,
            "dataset": self.dataset.fingerprint(),
            "metric": self.metric.name,
            "effort": self.effort,
            "seed": self.seed,
            "threads": torch.get_num_threads(),
            **parts,
        }

    def labels(self) -> Tensor:
        """True labels of the targets."""
        return self.dataset.labels[self.dataset.index_test]

    def values(self, logits: Tensor) -> dict[str, float]:
        """All metrics that are defined: on the targets, or on all test nodes where the leading metric chose the targets."""
        ids = self.scored.index_test
        rows, y = logits[ids], self.scored.labels[ids]
        found = {}
        for name, metric in self.metrics.items():
            try:
                found[name] = curve.value_of(metric, rows, y)
            except GRBError:
                if name == self.metric.name:
                    raise
        return found

    def logits(self, edit: GraphEdit) -> Tensor:
        """What the model says of all original nodes under an edit."""
        changed = self.dataset.graph.apply(edit)
        return answers(self.victim.model, changed, self.dataset)[: self.dataset.num_nodes].clone()
