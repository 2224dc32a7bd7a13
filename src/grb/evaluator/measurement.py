"""Measurements: what one score says, complete in itself. Whoever holds one can show it without dataset, plan or model."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from grb.errors import DataError, IntegrityError

FORMAT = 1
Knowledge = Literal["none", "transfer", "white-box"]
Objective = Literal["evasion", "poisoning"]
TrainMode = Literal["inductive", "transductive"]
Labels = Literal["predicted", "true"]
KNOWLEDGE: tuple[str, ...] = get_args(Knowledge)
OBJECTIVES: tuple[str, ...] = get_args(Objective)
TRAIN_MODES: tuple[str, ...] = get_args(TrainMode)
# name of the method of a job that nobody computed: its artefact was submitted
SUBMISSION = "submission"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class DatasetInfo:
    """Which dataset was measured.

    Args:
        name: The name that tables show.
        reference: What another process finds it by: a catalogue name, an import path, or a file.
        fingerprint: sha256 of graph, features and split.
        synthetic: Whether it is generated.
        task: ``node`` or ``graph``.
        split: Number of the split or fold; None for a dataset with one split.
    """

    name: str
    reference: str
    fingerprint: str
    synthetic: bool = False
    task: str = "node"
    split: int | None = None


@dataclass(frozen=True)
class MethodInfo:
    """A method as it was run: a defense, or the part of an attack that is its own.

    Args:
        name: Catalogue name, import path, or ``submission``.
        params: Everything that differs from the preset.
        seed: Random seed.
        version: Version of the method; scores of different versions never share a cell.
        key: Job that made its artefact; empty for a perturbation, which has none.
        cpu_seconds: CPU time of that job.
        title: Name for tables where it is not made of ``name`` and ``params``: a submission's, a perturbation's.
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    version: int = 1
    key: str = ""
    cpu_seconds: float = 0.0
    title: str = ""

    @property
    def is_submission(self) -> bool:
        """Whether it was sent by somebody instead of computed."""
        return self.name == SUBMISSION

    def label(self, common: Mapping[str, Any] | None = None) -> str:
        """Short and unique within a study: the name, and what differs from the study's common settings.

        >>> MethodInfo("fgsm", {"iterations": 50, "step": 0.1}).label({"iterations": 50})
        'fgsm(step=0.1)'
        """
        if self.title:
            return self.title
        shared = common or {}
        own = {key: value for key, value in self.params.items() if key not in shared or shared[key] != value}
        return self.name + (f"({', '.join(f'{key}={value}' for key, value in sorted(own.items()))})" if own else "")


@dataclass(frozen=True)
class AttackInfo:
    """An attack, or a perturbation of the corruption track, behind a score.

    Args:
        method: What was run.
        scenario: ``injection``, ``modification`` or ``corruption``.
        knowledge: ``white-box`` if the victim's own gradients were used, ``transfer`` if not, ``none`` for a perturbation.
        surrogate: The model whose gradients a transfer attack used; None if it needs none.
        threat: The threat model as plain values; empty for a perturbation.
        budget: What the edit uses of it.
        labels: Labels in the attack's loss: ``predicted`` (the paper's attacker) or ``true``.
        steps: Number of steps.
        peak_megabytes: Peak memory of the attack.
        edit_bytes: Size of the stored edit.
        notes: What the attack reported.
    """

    method: MethodInfo
    scenario: str
    knowledge: Knowledge = "transfer"
    surrogate: MethodInfo | None = None
    threat: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    labels: Labels = "predicted"
    steps: int = 0
    peak_megabytes: float = 0.0
    edit_bytes: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DefenseInfo:
    """The victim behind a score.

    Args:
        method: What was trained.
        settings: Training settings and constructor arguments with every preset filled in.
        parameters: Number of weights.
        train_mode: ``inductive`` (no test node is seen in training) or ``transductive`` (no test label is seen).
        validation: Graph of the validation score under poisoning: ``attacked`` or ``clean``; empty otherwise.
    """

    method: MethodInfo
    settings: Mapping[str, Any] = field(default_factory=dict)
    parameters: int = 0
    train_mode: TrainMode = "inductive"
    validation: str = ""


@dataclass(frozen=True)
class Outcome:
    """Scores on the targets of one difficulty.

    Args:
        values: Every metric as a fraction, by name.
        changed: Fraction of targets whose prediction differs from that on the clean graph (Eq. 1 of the GRB paper).
        targets: Number of targets.
        correct: Which targets get all their true labels, packed by :func:`pack_bits`.
        invalid: Number of targets for which the model gives NaN; they count as wrong.
    """

    values: Mapping[str, float]
    changed: float
    targets: int
    correct: str
    invalid: int = 0

    def bits(self) -> Array:
        """Which targets get all their true labels, [targets]."""
        return unpack_bits(self.correct, self.targets)


@dataclass(frozen=True)
class Measurement:
    """One victim on the clean graph or under one edit.

    Args:
        dataset: What was measured on.
        defense: Who was measured.
        attack: What the victim met; None for the clean graph.
        outcomes: Scores by difficulty.
        metric: The metric that ranks: ``accuracy``, or ``micro-f1`` where items have several labels.
        objective: ``evasion`` (trained before the attack) or ``poisoning`` (trained on the attacked graph).
        study: Name of the study that first asked for it.
        threads: Number of torch threads; results depend on it in the last bits.
        device: Kind of device.
    """

    dataset: DatasetInfo
    defense: DefenseInfo
    attack: AttackInfo | None
    outcomes: Mapping[str, Outcome]
    metric: str = "accuracy"
    objective: Objective = "evasion"
    study: str = ""
    threads: int = 1
    device: str = "cpu"

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; :meth:`from_dict` reads it back."""
        return {"format": FORMAT, **_to_dict(self)}

    @classmethod
    def from_dict(cls, values: Any) -> Measurement:
        """Back from :meth:`to_dict`; anything else is refused."""
        try:
            if values["format"] != FORMAT:
                raise ValueError(f"format {values['format']}")
            return cls(
                dataset=_dataset(values["dataset"]),
                defense=_defense(values["defense"]),
                attack=None if values["attack"] is None else _attack(values["attack"]),
                outcomes={_text(name): _outcome(each) for name, each in values["outcomes"].items()},
                metric=_text(values["metric"]),
                objective=_one_of(values["objective"], OBJECTIVES),
                study=_text(values["study"]),
                threads=_count(values["threads"]),
                device=_text(values["device"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"this is no measurement of format {FORMAT} ({str(error)[:80]})") from None


def _to_dict(value: Any) -> Any:
    """Nested frozen dataclasses as plain values; faster than dataclasses.asdict, which copies deeply."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _to_dict(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {key: _to_dict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_dict(item) for item in value]
    return value


# reading back: a record may come from anywhere


def _dataset(values: Mapping[str, Any]) -> DatasetInfo:
    return DatasetInfo(
        _text(values["name"]),
        _text(values["reference"]),
        _text(values["fingerprint"]),
        _boolean(values["synthetic"]),
        _one_of(values["task"], ("node", "graph")),
        None if values["split"] is None else _count(values["split"]),
    )


def _method(values: Mapping[str, Any]) -> MethodInfo:
    return MethodInfo(
        _text(values["name"]),
        _mapping(values["params"]),
        _count(values["seed"]),
        _count(values["version"]),
        _text(values["key"]),
        _number(values["cpu_seconds"]),
        _text(values["title"]),
    )


def _attack(values: Mapping[str, Any]) -> AttackInfo:
    return AttackInfo(
        _method(values["method"]),
        _text(values["scenario"]),
        _one_of(values["knowledge"], KNOWLEDGE),
        None if values["surrogate"] is None else _method(values["surrogate"]),
        _mapping(values["threat"]),
        {_text(name): _number(value) for name, value in values["budget"].items()},
        _one_of(values["labels"], get_args(Labels)),
        _count(values["steps"]),
        _number(values["peak_megabytes"]),
        _count(values["edit_bytes"]),
        tuple(_text(note) for note in values["notes"]),
    )


def _defense(values: Mapping[str, Any]) -> DefenseInfo:
    return DefenseInfo(
        _method(values["method"]),
        _mapping(values["settings"]),
        _count(values["parameters"]),
        _one_of(values["train_mode"], TRAIN_MODES),
        _text(values["validation"]),
    )


def _outcome(values: Mapping[str, Any]) -> Outcome:
    shares = {_text(name): _number(value) for name, value in values["values"].items()}
    found = Outcome(
        shares,
        _fraction(values["changed"]),
        _count(values["targets"]),
        _text(values["correct"]),
        _count(values["invalid"]),
    )
    if found.invalid > found.targets:
        raise ValueError(f"{found.invalid} of {found.targets} targets invalid")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text expected, got {type(value).__name__}")
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"true or false expected, got {type(value).__name__}")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a whole number of at least 0 expected, got {str(value)[:40]}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"a finite number expected, got {str(value)[:40]}")
    return float(value)


def _fraction(value: Any) -> float:
    number = _number(value)
    if not 0 <= number <= 1:
        raise ValueError(f"a fraction from 0 to 1 expected, got {number}")
    return number


def _mapping(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"a mapping expected, got {type(value).__name__}")
    return dict(value)


def _one_of(value: Any, allowed: Sequence[str]) -> Any:
    if value not in allowed:
        raise ValueError(f"{str(value)[:40]} is none of {', '.join(allowed)}")
    return value


def pack_bits(bits: Any) -> str:
    """Booleans as short text: packed, compressed, base64.

    >>> unpack_bits(pack_bits(np.array([True, False, True])), 3).tolist()
    [True, False, True]
    """
    return base64.b64encode(zlib.compress(np.packbits(np.asarray(bits, dtype=bool)).tobytes(), 9)).decode()


def unpack_bits(text: str, count: int) -> Array:
    """Back from :func:`pack_bits`, [count]; text of another length is refused before it is expanded."""
    try:
        packed = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), (count + 7) // 8 + 1)
    except (TypeError, ValueError, zlib.error) as error:
        raise IntegrityError(f"these are no packed bits ({str(error)[:60]}); remove the record and run again") from None
    if len(packed) != (count + 7) // 8:
        raise IntegrityError(f"{len(packed)} bytes hold no {count} bits; the record is of other targets")
    return np.unpackbits(np.frombuffer(packed, dtype=np.uint8), count=count).astype(bool)
