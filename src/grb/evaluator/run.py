"""One line of a board, before lines become cells and summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grb.evaluator.measurement import Array, Knowledge, Labels


@dataclass(frozen=True)
class Run:
    """One score of one victim on the targets of one difficulty: a line of a :class:`~grb.evaluator.Measurement`.

    Args:
        attack: Name of the column; ``none`` for the clean graph.
        defense: Name of the row.
        difficulty: Which targets.
        repeat: Random seed of the attack; 0 for the clean graph.
        victim: Random seed of the victim's training.
        score: The metric that ranks, as a fraction.
        changed: Fraction of targets whose prediction the edit changes (Eq. 1 of the GRB paper).
        knowledge: ``transfer`` (made without the victim), ``query`` (by its answers), ``white-box`` (with its gradients) or
            ``none``.
        correct: Which targets get their true label, [t]; for the worst case per node.
        metadata: Whatever else the record says: keys, seeds, seconds, budget.
        is_submission: Whether the edit was submitted: then it counts in the worst case of a defense only, so that it can
            lower a score but never raise one.
        metrics: All metrics as fractions, by name.
        labels: Labels that the attack aims at: ``predicted``, or ``true`` in the evaluator's worst case.
        battery: Name and version of the ensemble that made the edit: then it counts in the worst case only, as the edits of
            nobody but the evaluator.
    """

    attack: str
    defense: str
    difficulty: str
    repeat: int
    victim: int
    score: float
    changed: float
    knowledge: Knowledge = "transfer"
    correct: Array | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_submission: bool = False
    metrics: Mapping[str, float] = field(default_factory=dict)
    labels: Labels = "predicted"
    battery: str = ""
