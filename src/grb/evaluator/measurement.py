"""Measurements: what one score says, complete in itself. Whoever holds one can show it without dataset, plan or model."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from grb import serial
from grb.errors import DataError, IntegrityError
from grb.evaluator.score_checks import Flag
from grb.serial import LARGEST, Count, Fraction

FORMAT = 1
Knowledge = Literal["none", "transfer", "query", "white-box"]
Objective = Literal["evasion", "poisoning"]
TrainMode = Literal["inductive", "transductive"]
Labels = Literal["predicted", "true"]
OBJECTIVES: tuple[str, ...] = get_args(Objective)
TRAIN_MODES: tuple[str, ...] = get_args(TrainMode)
# the standard attack ensemble of every scenario, which measures the worst case
ENSEMBLES = {"injection": "auto", "modification": "auto-edges"}
# name of the method of a job that nobody computed: its artefact was submitted
SUBMISSION = "submission"
# scenario without an attacker: victims of the clean graph are scored on perturbed ones
CORRUPTION = "corruption"
Array = np.ndarray[Any, Any]


def submission_label(name: str, version: int = 1) -> str:
    """Return the name of a submission in tables, which is never that of a method of grb.

    >>> submission_label("mine"), submission_label("mine", 2)
    ('mine (submitted)', 'mine (submitted, version 2)')
    """
    return f"{name} (submitted)" if version == 1 else f"{name} (submitted, version {version})"


@dataclass(frozen=True)
class TargetInfo:
    """Which test nodes were attacked and scored, where these are not all of a difficulty.

    Args:
        rule: How they were declared: ``random=20``, ``class=1``, ``margin-low=10``.
        seed: Random seed of the choice.
        chosen: By difficulty, which of its test nodes they are, packed by :func:`pack_bits`; empty in a study, which is planned
            before anything is chosen.
    """

    rule: str
    seed: Count = 0
    chosen: Mapping[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The rule, with its seed if that is not the first.

        >>> TargetInfo("random=20").label, TargetInfo("degrees=5", 3).label
        ('random=20', 'degrees=5 seed 3')
        """
        return self.rule if not self.seed else f"{self.rule} seed {self.seed}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"rule": self.rule, "seed": self.seed, "chosen": dict(self.chosen)}


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
        targets: Which test nodes were attacked and scored; None for all of a difficulty.
    """

    name: str
    reference: str
    fingerprint: str
    synthetic: bool = False
    task: Literal["node", "graph"] = "node"
    split: Count | None = None
    targets: TargetInfo | None = None
    OMITTED = ("targets",)  # no field: without an annotation


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
    seed: Count = 0
    version: Count = 1
    key: str = ""
    cpu_seconds: float = 0.0
    title: str = ""

    @property
    def is_submission(self) -> bool:
        """Whether it was submitted instead of computed."""
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
        knowledge: ``white-box`` if the victim's own gradients were used, ``query`` if it was asked, ``transfer`` if neither,
            ``none`` for a perturbation.
        surrogate: The model whose gradients a transfer attack used; None if it needs none.
        threat: The threat model as JSON values; empty for a perturbation.
        budget: What the edit uses of it.
        labels: Labels in the attack's loss: ``predicted`` (the paper's attacker) or ``true``.
        steps: Number of steps.
        peak_megabytes: Peak memory of the attack.
        edit_bytes: Size of the stored edit.
        notes: What the attack reported.
        preset: Which preset the threat model is: ``paper`` (Table 12 as printed), ``data`` (the same with the range of the
            data's own features), ``default`` or ``custom``; empty in records that do not say it, and for a perturbation.
        passes: Number of ``forward`` and ``backward`` passes.
        trials: Attempts of an ensemble on the victim itself, in their order: name, level, CPU seconds, passes, fraction of
            targets that kept the label aimed at; only where the victim is the one that was attacked.
        queries: Number of times that the victim was asked; None where the attack could not ask.
    """

    method: MethodInfo
    scenario: str
    knowledge: Knowledge = "transfer"
    surrogate: MethodInfo | None = None
    threat: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, float] = field(default_factory=dict)
    labels: Labels = "predicted"
    steps: Count = 0
    peak_megabytes: float = 0.0
    edit_bytes: Count = 0
    notes: tuple[str, ...] = ()
    preset: str = ""
    passes: Mapping[str, Count] = field(default_factory=dict)
    trials: tuple[Mapping[str, Any], ...] = ()
    queries: Count | None = None


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
    parameters: Count = 0
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
    changed: Fraction
    targets: Count
    correct: str
    invalid: Count = 0

    def __post_init__(self) -> None:
        if self.invalid > self.targets:
            raise DataError(f"{self.invalid} of {self.targets} targets are invalid, which cannot be")

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
        flags: What the checks of the model found; those of :mod:`grb.evaluator.blind` take it its rank.
    """

    dataset: DatasetInfo
    defense: DefenseInfo
    attack: AttackInfo | None
    outcomes: Mapping[str, Outcome]
    metric: str = "accuracy"
    objective: Objective = "evasion"
    study: str = ""
    threads: Count = 1
    device: str = "cpu"
    flags: tuple[Flag, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; :meth:`from_dict` reads it back."""
        return serial.to_versioned(self, FORMAT)

    @classmethod
    def from_dict(cls, values: Any, shared: dict[Any, Any] | None = None) -> Measurement:
        """Back from :meth:`to_dict`; anything else is refused.

        Args:
            values: Plain values.
            shared: Descriptions of datasets, defenses and attacks that were read before; measurements that say the same share
                them, which saves time and memory where there are many.
        """
        what = f"a measurement of format {FORMAT}"
        given = dict(values) if type(values) is dict or isinstance(values, Mapping) else {}
        if given.pop("format", None) != FORMAT:
            raise DataError(f"this is not {what}")
        if shared is None:
            return serial.from_dict(cls, given, what)
        outcomes = given.get("outcomes")
        if not (_PARTS.keys() <= given.keys() and isinstance(outcomes, dict)):
            return serial.from_dict(cls, given, what)  # says what is wrong
        for name, kind in _PARTS.items():
            given[name] = _read_shared(kind, given[name], what, shared)
        given["outcomes"] = {str(name): read_outcome(each) for name, each in outcomes.items()}
        own = {name: value for name, value in given.items() if name not in _SHARED}
        known = shared.get(cls)
        if known is None or known[0] != own:  # the rest is the same in most of them
            made = serial.from_dict(cls, {**_NOTHING, **own}, what)
            known = shared[cls] = own, {name: getattr(made, name) for name in made.__dataclass_fields__}
        measurement = object.__new__(cls)  # every field was read: setting them one by one takes a tenth of all the time
        vars(measurement).update(known[1], **{name: given[name] for name in _SHARED})
        return measurement


_TYPES = {"values": dict, "changed": float, "targets": int, "correct": str, "invalid": int}
_NOTHING: dict[str, Any] = {
    "dataset": {"name": "", "reference": "", "fingerprint": ""},
    "defense": {"method": {"name": ""}},
    "attack": None,
    "outcomes": {},
}


def read_outcome(values: Any) -> Outcome:
    """Read an outcome as :func:`grb.serial.from_dict` does, at once where every value has its usual type."""
    usual = isinstance(values, dict) and {name: type(value) for name, value in values.items()} == _TYPES
    if (
        usual
        and {*map(type, values["values"].values())} == {float}
        and 0 <= values["invalid"] <= values["targets"] <= LARGEST
    ):
        made = Outcome(**values)
        if 0 <= made.changed <= 1 and all(map(math.isfinite, made.values.values())):
            return made
    return serial.from_dict(Outcome, values, "an outcome")


_PARTS: dict[str, Any] = {"dataset": DatasetInfo, "defense": DefenseInfo, "attack": AttackInfo}
_SHARED = frozenset(_NOTHING)


def _read_shared(kind: Any, values: Any, what: str, shared: dict[Any, Any]) -> Any:
    """A description, or the equal one that was read before; what its key says is not enough."""
    if values is None and kind is AttackInfo:
        return None
    method = values.get("method") if type(values) is dict else None
    key = method.get("key") if type(method) is dict else None
    about = kind, key if type(key) is str else ""
    known = shared.get(about)
    if known is not None and known[0] == values:
        return known[1]
    made = serial.from_dict(kind, values, what)
    shared[about] = values, made
    return made


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
