"""What a certificate says: which predictions hold, against how much, with what certainty, and of which model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from grb.certificate.confidence import Bools, Ints
from grb.errors import GRBError

# a budget that no adversary exceeds: the certificate holds for any number of changes
UNLIMITED = 2**31 - 1
INJECTED, EDGES, HIJACKED = "injected nodes", "changed edges", "hijacked nodes"


class NotCertifiable(GRBError):
    """A model or threat model that a certificate cannot speak about; the sentence says why."""


@dataclass(frozen=True, eq=False)
class CertifiedResult:
    """A certificate of one model on the targets of one dataset.

    Args:
        certificate: Name of the certificate.
        model: Which model is certified, in words: the smoothed or voting one, never the model inside.
        dataset: Name of the dataset.
        mode: Difficulty of the targets.
        threat: The threat model that was asked about, as ``to_dict()`` gives it.
        unit: What is counted: injected nodes, changed edges or hijacked nodes.
        budget: Number of units that the threat model allows.
        budgets: Largest number of units that every target's prediction survives, [t]; -1 where the model abstains.
        correct: Whether the prediction on the clean graph is right, [t].
        samples: Number of votes; 0 if nothing was sampled.
        confidence: Probability that all statements hold together; 1 if nothing was sampled.
        collective: Right predictions that are left at least after any one edit of the whole budget; None if not computed.
        notes: Remarks.
        own_model: Whether the certified model is the one that was given; False if a vote or smoothing was put around it.
        seconds: CPU seconds that it took.
    """

    certificate: str
    model: str
    dataset: str
    mode: str
    threat: Mapping[str, Any]
    unit: str
    budget: int
    budgets: Ints
    correct: Bools
    samples: int = 0
    confidence: float = 1.0
    collective: int | None = None
    notes: tuple[str, ...] = ()
    own_model: bool = True
    seconds: float = field(default=0.0, compare=False)

    @property
    def deterministic(self) -> bool:
        """Whether the certificate holds with certainty."""
        return self.samples == 0

    @property
    def abstained(self) -> Bools:
        """Where the model does not commit itself, [t]; counts as wrong."""
        return self.budgets < 0

    @property
    def certified(self) -> Bools:
        """Whether a prediction survives the threat model, right or wrong, [t]."""
        return self.budgets >= self.budget

    @property
    def clean_accuracy(self) -> float:
        """Accuracy of the certified model on the clean graph; abstentions count as wrong."""
        return self.accuracy_at(0)

    @property
    def certified_ratio(self) -> float:
        """Share of predictions that survive the threat model, right or wrong."""
        return float(self.certified.mean()) if len(self.budgets) else 0.0

    @property
    def certified_accuracy(self) -> float:
        """Accuracy that no edit within the threat model can undercut: the better of both ways to count."""
        own = self.accuracy_at(self.budget)
        together = 0.0 if self.collective is None else self.collective / max(len(self.correct), 1)
        return max(own, together)

    def accuracy_at(self, budget: int) -> float:
        """Share of targets that are right and survive this number of units, each by itself."""
        if not len(self.budgets):
            return 0.0
        return float((self.correct & (self.budgets >= max(budget, 0))).mean())

    def curve(self, budgets: Sequence[int]) -> dict[int, float]:
        """Certified accuracy over the budget."""
        return {budget: self.accuracy_at(budget) for budget in budgets}

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it, in the order of the targets."""
        return {
            "certificate": self.certificate,
            "model": self.model,
            "dataset": self.dataset,
            "mode": self.mode,
            "threat": dict(self.threat),
            "unit": self.unit,
            "budget": self.budget,
            "clean_accuracy": self.clean_accuracy,
            "certified_accuracy": self.certified_accuracy,
            "certified_ratio": self.certified_ratio,
            "collective": self.collective,
            "abstained": int(self.abstained.sum()),
            "samples": self.samples,
            "confidence": self.confidence,
            "notes": list(self.notes),
            "own_model": self.own_model,
            "budgets": [int(value) for value in np.minimum(self.budgets, UNLIMITED)],
            "correct": [bool(value) for value in self.correct],
        }
