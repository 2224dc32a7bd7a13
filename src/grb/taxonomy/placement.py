"""What placing a dataset among the published ones gives: neighbours, group, marks, sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from grb.taxonomy.calibration import Calibration

# deviations from the mean of the published datasets from which a perturbation sets a dataset apart
APART = 1.0


class Neighbour(NamedTuple):
    """A published dataset and how near it is.

    Args:
        dataset: Name of the published dataset.
        group: Published group of that dataset.
        distance: Euclidean distance between the two profiles.
        nearest: Fraction of the draws in which no other dataset is nearer.
    """

    dataset: str
    group: str
    distance: float
    nearest: float


class Mark(NamedTuple):
    """Effect of one perturbation on the dataset, compared with the published ones.

    Args:
        perturbation: Name of the perturbation.
        ratio: AUROC that is left, as a fraction of the unperturbed one.
        low: Lower end of its 95 % interval; None if nothing is known about its spread.
        high: Upper end of that interval.
        published: Mean fraction over all published datasets.
        group: Mean fraction over those of the group that was found, or of the nearest one's if it fits nowhere.
        deviations: How many standard deviations of the published log2 ratios the dataset is away from their mean.
        sure: Whether the whole interval lies on one side of the published mean.
    """

    perturbation: str
    ratio: float
    low: float | None
    high: float | None
    published: float
    group: float
    deviations: float
    sure: bool


@dataclass(frozen=True, eq=False)
class Placement:
    """Where a dataset belongs among the published ones.

    Args:
        dataset: Name of the dataset.
        reference: ``inductive`` or ``transductive``.
        model: Model of the published profiles.
        group: The most probable published group; None if it fits nowhere.
        probability: Calibrated probability of every group, the largest first; empty if it fits nowhere.
        neighbours: All published datasets, the nearest first.
        marks: All perturbations that were compared, those that set it apart most first.
        calibration: Width, doubt and fence behind the probabilities.
        messages: What that means.
        notes: What a reader should know about the numbers.
    """

    dataset: str
    reference: str
    model: str
    group: str | None
    probability: Mapping[str, float]
    neighbours: tuple[Neighbour, ...]
    marks: tuple[Mark, ...]
    calibration: Calibration
    messages: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether a published dataset is near enough to speak of a group."""
        return self.group is not None

    @property
    def nearest(self) -> Neighbour:
        """The nearest published dataset."""
        return self.neighbours[0]

    @property
    def apart(self) -> tuple[Mark, ...]:
        """The perturbations under which it surely differs from most published datasets."""
        return tuple(mark for mark in self.marks if mark.sure and abs(mark.deviations) >= APART)

    def rows(self) -> list[dict[str, Any]]:
        """Return the neighbours as JSON values."""
        return [neighbour._asdict() for neighbour in self.neighbours]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, for JSON."""
        return {
            "dataset": self.dataset,
            "reference": self.reference,
            "model": self.model,
            "fits": self.fits,
            "group": self.group,
            "probability": dict(self.probability),
            "neighbours": self.rows(),
            "perturbations": [mark._asdict() for mark in self.marks],
            "apart": [mark.perturbation for mark in self.apart],
            "calibration": self.calibration._asdict(),
            "messages": list(self.messages),
            "notes": list(self.notes),
        }

    def text(self) -> str:
        """Return the answer in sentences."""
        return "\n".join([*self.messages, *(f"Note: {note}." for note in self.notes)])
