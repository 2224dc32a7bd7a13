"""Who may aim at true labels: the evaluator's own white-box attacks, and nobody else."""

from __future__ import annotations

from grb.entries import entries
from grb.errors import DataError


def check_true_labels(attack: str, knowledge: str) -> None:
    """Refuse true labels to whoever is not the evaluator: to attacks of others, submissions, and attacks on a surrogate."""
    entry = entries("attack").get(attack)
    if entry is None or not entry.target.startswith("grb."):
        raise DataError(
            f"attack '{attack[:40]}' is not in grb's own catalogue, and only attacks that are may aim at true labels; "
            "aim at predicted ones"
        )
    if knowledge != "white-box":
        raise DataError(
            f"attack '{attack[:40]}' may aim at true labels on the victim itself, not on a surrogate or without a model; "
            "attack the victim white-box, or aim at predicted labels"
        )
