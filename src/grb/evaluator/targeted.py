"""Targeted evaluation: how many of some attacked nodes are misclassified, also by their degrees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from grb.attack.base import AttackResult
from grb.attack.targets import DEGREE_BANDS, in_bands
from grb.dataset import Dataset
from grb.errors import DataError
from grb.evaluator.board import Board
from grb.evaluator.measurement import unpack_bits
from grb.evaluator.scoring import Edit, predict_checked
from grb.graph.validate import check_ids


@dataclass(frozen=True)
class BandScore:
    """Targets whose clean degree lies in one band.

    Args:
        low: Lowest degree.
        high: Highest degree; None for no highest.
        targets: Number of targets.
        misclassified: Number of those that do not get their true label.
    """

    low: int
    high: int | None
    targets: int
    misclassified: int

    @property
    def share(self) -> float | None:
        """Fraction of the targets that is misclassified; None without targets."""
        return self.misclassified / self.targets if self.targets else None


@dataclass(frozen=True, eq=False)
class TargetedScore:
    """What became of the targets.

    Args:
        correct: Which targets get their true label, [t].
        bands: The same by clean degree.
    """

    correct: Tensor
    bands: tuple[BandScore, ...]

    @property
    def misclassified(self) -> float:
        """Fraction of the targets that does not get its true label."""
        return 1 - float(self.correct.double().mean())

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        bands = [{"low": b.low, "high": b.high, "targets": b.targets, "share": b.share} for b in self.bands]
        return {"targets": len(self.correct), "misclassified": self.misclassified, "bands": bands}


def board_targets(board: Board, dataset: Dataset, difficulty: str) -> Tensor:
    """Ids of the nodes that a board's scores of a difficulty are about, [t].

    Args:
        board: Whose ``meta`` says which were chosen, if these are not all.
        dataset: The whole dataset that was measured.
        difficulty: Of the test nodes.
    """
    ids, found = dataset.test_ids(difficulty), board.meta.get("targets")
    if not found:
        return ids
    text = found["chosen"].get(difficulty)
    if text is None:
        raise DataError(f"the board of '{board.dataset}' does not say which {difficulty} targets were chosen")
    return ids[torch.from_numpy(unpack_bits(text, len(ids)))]


def score_targets(
    model: nn.Module,
    dataset: Dataset,
    targets: Tensor,
    edit: Edit = None,
    *,
    bands: Sequence[tuple[int, int | None]] = DEGREE_BANDS,
) -> TargetedScore:
    """Share of targets that a model misclassifies, under an edit if there is one; a NaN counts as misclassified.

    Args:
        model: A trained model.
        dataset: The clean dataset with true labels.
        targets: Ids of the attacked nodes, [t].
        edit: Applied to the graph first; a poisoned model is scored under the edit that it was trained on.
        bands: Lowest and highest clean degree of every band.
    """
    ids = check_ids(targets, dataset.graph.n, "the list of targets")
    if not len(ids):
        raise DataError("there are no targets, but at least one is needed")
    if dataset.labels.dim() != 1:
        raise DataError(f"nodes of '{dataset.name}' have several labels, but a target has one label to lose")
    change = edit.edit if isinstance(edit, AttackResult) else edit
    graph = dataset.graph if change is None else dataset.graph.apply(change)
    said = predict_checked(model, graph, dataset).labels[ids]
    correct = said == dataset.labels[ids]
    parts = in_bands(dataset.graph.adj.degrees[ids], bands)
    found = [
        BandScore(low, high, len(part), int((~correct[part]).sum()))
        for (low, high), part in zip(bands, parts, strict=True)
    ]
    return TargetedScore(correct, tuple(found))
