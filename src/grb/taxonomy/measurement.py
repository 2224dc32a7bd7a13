"""What one profiling run says, complete in itself: whoever holds it can analyse it without dataset, plan or model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from grb.errors import DataError

FORMAT = 1
TRAINING = "training."
"""Prefix of the columns of training settings in tables of runs."""
SAME_IN_A_PROFILE = ("fingerprint", "model_version")
"""Columns, beside the training settings, whose values all runs of one dataset and model must share."""
SAME_IN_A_CELL = ("perturbation_method", "perturbation_version")
"""Columns whose values all runs of one dataset, model and perturbation must share."""


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
    version: int = 1


@dataclass(frozen=True)
class ProfileMeasurement:
    """One training of a profiling model on a dataset, perturbed or not.

    Args:
        dataset: Title of the dataset in tables.
        reference: What another process finds the dataset by: a catalogue name, an import path, or a file.
        fingerprint: sha256 of the unperturbed dataset.
        task: ``node`` or ``graph``.
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
    """

    dataset: str
    reference: str
    fingerprint: str
    task: str
    split: int | None
    perturbations: tuple[PerturbationInfo, ...]
    perturbation: str
    model: str
    model_version: int
    seed: int
    training: Mapping[str, Any]
    auroc: float
    val_auroc: float
    best_epoch: int
    epochs: int
    stopped: str
    parameters: int
    curve: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values as JSON holds them; :meth:`from_dict` reads them back."""
        values = asdict(self)
        return {
            "format": FORMAT,
            **values,
            "perturbations": list(values["perturbations"]),
            "curve": list(self.curve),
        }

    @classmethod
    def from_dict(cls, values: Any) -> ProfileMeasurement:
        """Read back what :meth:`to_dict` gave; anything else is refused."""
        try:
            given = dict(values)
            if given.pop("format") != FORMAT:
                raise ValueError(f"format {str(values['format'])[:20]}")
            links = tuple(_link(each) for each in given.pop("perturbations"))
            curve = tuple(_fraction(each) for each in given.pop("curve"))
            _check_names(given, _PARSERS)
            return cls(
                **{name: parse(given[name]) for name, parse in _PARSERS.items()}, perturbations=links, curve=curve
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"this is no profiling run of format {FORMAT} ({str(error)[:80]}); `grb taxonomy run` makes new ones"
            ) from None

    def to_row(self) -> dict[str, Any]:
        """Return one flat row of a table of runs, which :func:`grb.taxonomy.read_models` reads."""
        plain = ("dataset", "perturbation", "model", "seed", "auroc", "val_auroc", "best_epoch", "epochs", "stopped")
        return {
            **{name: getattr(self, name) for name in (*plain, "parameters", "reference", "split", *SAME_IN_A_PROFILE)},
            "perturbation_method": "+".join(each.name for each in self.perturbations),
            "perturbation_version": "+".join(str(each.version) for each in self.perturbations),
            **{f"{TRAINING}{name}": value for name, value in self.training.items()},
        }


def _link(values: Any) -> PerturbationInfo:
    _check_names(values, {each.name for each in fields(PerturbationInfo)})
    return PerturbationInfo(
        _text(values["name"]), _text(values["title"]), _mapping(values["params"]), _count(values["version"])
    )


def _check_names(values: Any, names: Any) -> None:
    wrong = sorted(set(values) ^ set(names))
    if wrong:
        raise ValueError(f"field '{wrong[0][:40]}' is {'unknown' if wrong[0] in values else 'missing'}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text expected, got {type(value).__name__}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a whole number of at least 0 expected, got {str(value)[:40]}")
    return value


def _fraction(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1 or not math.isfinite(value):
        raise ValueError(f"a number from 0 to 1 expected, got {str(value)[:40]}")
    return float(value)


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a mapping expected, got {type(value).__name__}")
    return {_text(name): each for name, each in value.items()}


_PARSERS: dict[str, Any] = {
    **dict.fromkeys(("dataset", "reference", "fingerprint", "task", "perturbation", "model", "stopped"), _text),
    **dict.fromkeys(("model_version", "seed", "best_epoch", "epochs", "parameters"), _count),
    **dict.fromkeys(("auroc", "val_auroc"), _fraction),
    "split": lambda value: None if value is None else _count(value),
    "training": _mapping,
}
