"""What one profiling run says, complete in itself: whoever holds it can analyse it without dataset, plan or model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from grb import serial
from grb.errors import DataError
from grb.serial import Count, Fraction

FORMAT = 1
TRAINING = "training."
"""Prefix of the columns of training settings in tables of runs."""
SAME_IN_A_PROFILE = ("fingerprint", "model_version")
"""Columns, in addition to the training settings, whose values all runs of one dataset and model must share."""
SAME_IN_A_CELL = ("perturbation_method", "perturbation_version")
"""Columns whose values all runs of one dataset, model and perturbation must share."""


def link_title(title: str) -> str:
    """How tables call a dataset whose edges are predicted: its profile is another than that of its labels."""
    return f"{title} (links)"


@dataclass(frozen=True)
class PerturbationInfo:
    """One perturbation of a chain.

    Args:
        name: Catalogue name or import path.
        title: Name in tables: the paper's, and whatever differs from its default.
        params: Everything that differs from its default.
        version: Version of the method; runs of different versions never share a cell.
    """

    name: str
    title: str
    params: Mapping[str, Any] = field(default_factory=dict)
    version: Count = 1


@dataclass(frozen=True)
class ProfileMeasurement:
    """One training of a profiling model on a dataset, perturbed or not.

    Args:
        dataset: Title of the dataset in tables.
        reference: What another process finds the dataset by: a catalogue name, an import path, or a file.
        fingerprint: sha256 of the unperturbed dataset.
        task: ``node`` or ``graph``, whose labels are predicted, or ``link``.
        split: Number of the split or fold; None for a dataset with one split.
        perturbations: Perturbations in the order in which they were applied; empty for the unperturbed dataset.
        perturbation: Name of the whole chain in tables; ``-`` for the unperturbed dataset.
        model: Catalogue name or import path of the profiling model.
        model_version: Version of the model.
        seed: Random seed of weights, batches and perturbation.
        training: All settings of model and training: epochs, patience, lr, batch, depth, width, ...
        auroc: Test AUROC of the first epoch with the best validation AUROC.
        val_auroc: That validation AUROC.
        best_epoch: That epoch, counted from 0.
        epochs: Number of epochs that were run.
        stopped: Why the training ended, as a sentence.
        parameters: Number of weights.
        curve: Validation AUROCs over the training, at most 50 of them.
        complementarity: Mode complementarity of the unperturbed dataset; None in runs of perturbed ones.
        notes: What was done other than asked for, in sentences: a rewiring that could not move enough edges.
    """

    dataset: str
    reference: str
    fingerprint: str
    task: str
    split: Count | None
    perturbations: tuple[PerturbationInfo, ...]
    perturbation: str
    model: str
    model_version: Count
    seed: Count
    training: Mapping[str, Any]
    auroc: Fraction
    val_auroc: Fraction
    best_epoch: Count
    epochs: Count
    stopped: str
    parameters: Count
    curve: tuple[Fraction, ...] = ()
    complementarity: Fraction | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values as JSON holds them; :meth:`from_dict` reads them back."""
        return {"format": FORMAT, **serial.to_dict(self)}

    @classmethod
    def from_dict(cls, values: Any) -> ProfileMeasurement:
        """Read back what :meth:`to_dict` gave; anything else is refused."""
        what = f"a profiling run of format {FORMAT}; `grb taxonomy run` makes new ones"
        if not isinstance(values, Mapping) or values.get("format") != FORMAT:
            raise DataError(f"this is not {what}")
        return serial.from_dict(cls, {name: each for name, each in values.items() if name != "format"}, what)

    def to_row(self) -> dict[str, Any]:
        """Return one flat row of a table of runs, which :func:`grb.taxonomy.read_models` reads."""
        plain = ("dataset", "perturbation", "model", "seed", "auroc", "val_auroc", "best_epoch", "epochs", "stopped")
        return {
            **{name: getattr(self, name) for name in (*plain, "parameters", "reference", "split", *SAME_IN_A_PROFILE)},
            "perturbation_method": "+".join(each.name for each in self.perturbations),
            "perturbation_version": "+".join(str(each.version) for each in self.perturbations),
            **{f"{TRAINING}{name}": value for name, value in self.training.items()},
            **({} if self.complementarity is None else {"complementarity": self.complementarity}),
            **({"notes": "; ".join(self.notes)} if self.notes else {}),
        }
