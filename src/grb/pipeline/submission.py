"""What others send: an edit or weights with a card; nothing of it is believed before it is checked."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from grb.dataset import Dataset
from grb.dataset.partition import DIFFICULTIES
from grb.errors import DataError, UnknownName
from grb.graph import GraphEdit
from grb.graph.edit import MAX_EDIT_BYTES
from grb.graph.files import read_npz, write_npz
from grb.pipeline.job import DataRef, Job
from grb.pipeline.recipe import SCENARIOS
from grb.pipeline.spec import Spec
from grb.pipeline.store import SUBMISSION, Record, Store
from grb.pipeline.strict import parse_mapping, read_text
from grb.pipeline.work import provenance, threat_values
from grb.threat import Threat, injected_degrees

# short enough to be read before anything is known about it
MAX_CARD = 64 * 2**10
MAX_TEXT = 2_000
MAX_AUTHORS = 100
_NAMES = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,63}")
_SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class Card:
    """What its authors say about an entry.

    Args:
        name: As it appears on the board.
        kind: ``attack`` (an edit as npz) or ``defense`` (weights as safetensors).
        dataset: What it was made for.
        mode: Difficulty of an attack's targets.
        scenario: Whose limits an attack keeps.
        authors: Who made it.
        link: Where it is described; http or https.
        about: What it does.
        knowledge: What an attack used: ``white-box``, ``transfer`` or ``none``.
        cost: What it took, e.g. ``cpu_seconds``.
        reported: Accuracy as its authors found it: by defense of an attack, by attack of a defense.
        unreliable: Why nobody should rely on it; empty if there is nothing to say.
    """

    name: str
    kind: Literal["attack", "defense"]
    dataset: str
    mode: str = "full"
    scenario: str = "injection"
    authors: tuple[str, ...] = ()
    link: str = ""
    about: str = ""
    knowledge: Literal["white-box", "transfer", "none"] = "transfer"
    cost: Mapping[str, float] = field(default_factory=dict)
    reported: Mapping[str, float] = field(default_factory=dict)
    unreliable: str = ""

    def __post_init__(self) -> None:
        if not _NAMES.fullmatch(self.name):
            raise DataError(
                f"the card's name is {_short(self.name)}, but 1 to 64 letters, digits, spaces and . _ + - are needed"
            )
        if not re.fullmatch(
            r"[a-z0-9][a-z0-9._-]{0,63}", self.dataset
        ):  # neither a path nor code that a card could have run
            raise DataError(
                f"the card's dataset is {_short(self.dataset)}, but a name as in `grb ls datasets` is needed"
            )
        _check_one_of("kind", self.kind, ("attack", "defense"))
        _check_one_of("mode", self.mode, DIFFICULTIES)
        _check_one_of("scenario", self.scenario, SCENARIOS)
        _check_one_of("knowledge", self.knowledge, ("white-box", "transfer", "none"))
        if self.link and not re.fullmatch(r"https?://[^\s<>\"']{1,500}", self.link):
            raise DataError(
                f"the card's link is {_short(self.link)}, but an address with http:// or https:// is needed"
            )
        if len(self.authors) > MAX_AUTHORS:
            raise DataError(f"the card names {len(self.authors)} authors, but at most {MAX_AUTHORS} are read")
        for name, value in self.cost.items():
            if value < 0:
                raise DataError(f"the card's cost {_short(name)} is {value}, but must not be negative")
        for share in self.reported.values():
            if not 0 <= share <= 1:
                raise DataError(f"the card reports an accuracy of {share}, but a share from 0 to 1 is needed")

    @property
    def label(self) -> str:
        """Never the name of a method of ours."""
        return f"{self.name} (submitted)"

    def shown(self) -> dict[str, Any]:
        """What a board tells of it."""
        values = {name: value for name, value in asdict(self).items() if value not in ("", (), {})}
        return {**values, **({"authors": ", ".join(self.authors)} if self.authors else {})}


@dataclass(frozen=True, eq=False)
class Checked:
    """A submission that keeps the rules.

    Args:
        card: What its authors say.
        sha256: Of the file.
        data: Its bytes as they enter the store.
        job: Under which job they do.
        result: What was counted.
        notes: What a reader should know; none of it is forbidden.
    """

    card: Card
    sha256: str
    data: bytes
    job: Job
    result: Mapping[str, Any]
    notes: tuple[str, ...]


def read_card(path: str | os.PathLike[str]) -> Card:
    """A card from a YAML or JSON file with a strict schema."""
    return parse_card(read_text(Path(path), most=MAX_CARD, what="cards"))


def parse_card(text: str) -> Card:
    values = parse_mapping(text, "the card")
    known = [each.name for each in fields(Card)]
    for key in values:
        if key not in known:
            raise UnknownName("key of a card", str(key)[:80], known, advice=f"Allowed: {', '.join(known)}.")
    for key in ("name", "kind", "dataset"):
        if key not in values:
            raise DataError(f"the card has no {key}; name, kind and dataset are needed")
    return Card(**{key: _value(key, value) for key, value in values.items()})


def _value(key: str, value: Any) -> Any:
    """One value of a card, of the type that its key asks for."""
    if key in ("cost", "reported"):
        if not isinstance(value, Mapping):
            raise DataError(f"the card's {key} is {_short(value)}, but a mapping of names to numbers is needed")
        found = {}
        for name, number in value.items():
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise DataError(f"the card's {key} of {_short(name)} is {_short(number)}, but a number is needed")
            found[_text(f"a name in {key}", name)[:80]] = float(number)
        return found
    if key == "authors":
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise DataError(f"the card's authors are {_short(value)}, but a list of names is needed")
        return tuple(_text("an author", name)[:200] for name in value)
    return _text(key, value)


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise DataError(f"the card's {what} is {_short(value)}, but text is needed")
    if len(value) > MAX_TEXT or any(ord(letter) < 32 and letter not in "\n\t" for letter in value):
        raise DataError(
            f"the card's {what} has {len(value)} characters, but at most {MAX_TEXT} printable ones are read"
        )
    return value


def _check_one_of(key: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise UnknownName(f"{key} of a card", str(value)[:80], allowed, advice=f"Allowed: {', '.join(allowed)}.")


def _an(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


# checking


def check(path: str | os.PathLike[str], card: Card, dataset: Dataset, threat: Threat) -> Checked:
    """Everything that the rules ask of a submission; refuses the first thing that is wrong.

    Args:
        path: The edit (npz) or the weights (safetensors).
        card: Beside it.
        dataset: The one that the card names.
        threat: The limits of an attack.
    """
    if card.dataset != dataset.name:
        raise DataError(f"the card is for dataset '{card.dataset[:60]}', but this is '{dataset.name}'")
    if dataset.task == "graph":
        raise DataError(f"'{dataset.name}' has graphs to classify, in folds; submissions are for datasets of nodes")
    path = Path(path)
    wanted = ".npz" if card.kind == "attack" else ".safetensors"
    if path.suffix != wanted and path.suffix in (".npz", ".safetensors"):
        raise DataError(f"the card is of {_an(card.kind)}, which is a {wanted} file, but {path} is another")
    before = _sha256(path)
    checked = (
        _check_attack(path, card, dataset, threat) if card.kind == "attack" else _check_defense(path, card, dataset)
    )
    if not before == checked.sha256 == hashlib.sha256(checked.data).hexdigest():
        raise DataError(f"{path} was changed while it was checked; check it again")
    return checked


def _check_attack(path: Path, card: Card, dataset: Dataset, threat: Threat) -> Checked:
    targets = dataset.test_ids(card.mode)
    edit, meta = GraphEdit.load_with_meta(path)
    _check_basis(path, meta, dataset)
    _check_normal(path, edit)
    budget = threat.check(dataset.graph, edit, targets)
    notes = [*_cast(path), *_harmless(edit, targets)]
    job = Job(
        "attack",
        Spec(SUBMISSION, {"name": card.name, "sha256": _sha256(path)}),
        DataRef(dataset.name, dataset.fingerprint()),
        mode=card.mode,
        extra={"threat": threat_values(threat), "knowledge": card.knowledge},
    )
    result = {
        "budget": {name: float(value) for name, value in budget.items()},
        "steps": 0,
        "loss": [],
        "kept": [],
        "seconds": 0.0,
        "cpu_seconds": float(card.cost.get("cpu_seconds", 0.0)),
        "notes": notes,
    }
    return Checked(card, _sha256(path), path.read_bytes(), job, result, tuple(notes))


def _check_defense(path: Path, card: Card, dataset: Dataset) -> Checked:
    from grb.evaluator.checks import check_model
    from grb.model.base import predict
    from grb.trainer.checkpoint import load_model_with_meta

    model, meta = load_model_with_meta(path)
    _check_basis(path, meta, dataset)
    try:
        logits = predict(model, dataset.graph)
    except (RuntimeError, ValueError, IndexError) as error:
        raise DataError(f"{path} does not run on '{dataset.name}' ({' '.join(str(error).split())[:120]})") from None
    if logits.shape != (dataset.graph.n, dataset.num_classes) or not torch.isfinite(logits).all():
        raise DataError(
            f"{path} gives outputs of shape {list(logits.shape)}, but finite ones of shape "
            f"[{dataset.graph.n}, {dataset.num_classes}] are needed"
        )
    notes = [str(flag) for flag in check_model(model, dataset)]
    job = Job(
        "fit",
        Spec(SUBMISSION, {"name": card.name, "sha256": _sha256(path)}),
        DataRef(dataset.name, dataset.fingerprint()),
    )
    parameters = sum(parameter.numel() for parameter in model.parameters())
    result = {"epochs": 0, "best_epoch": 0, "val_score": 0.0, "parameters": parameters, "notes": notes}
    return Checked(card, _sha256(path), path.read_bytes(), job, result, tuple(notes))


def _check_basis(path: Path, meta: Mapping[str, Any], dataset: Dataset) -> None:
    """A file that says which graph it is of must be of this one."""
    own = {"dataset": dataset.name, "fingerprint": dataset.fingerprint()}
    for key, wanted in own.items():
        told = meta.get(key)
        if told is not None and told != wanted:
            raise DataError(f"{path} says {key} {_short(told)}, but '{dataset.name}' has {_short(wanted)}")


def _check_normal(path: Path, edit: GraphEdit) -> None:
    for rows in (edit.new_x, edit.set_x):
        if rows is not None and ((rows != 0) & (rows.abs() < _SMALLEST)).any():
            raise DataError(f"{path} has features too small for float32 (denormals); use zero, or --fix")


def _cast(path: Path) -> Iterator[str]:
    """Arrays that are wider than what is used."""
    arrays = read_npz(path, max_bytes=MAX_EDIT_BYTES)
    for name in ("new_x", "set_x"):
        if arrays[name].dtype != np.float32:
            yield f"{name} is {arrays[name].dtype} and is read as float32"


def _harmless(edit: GraphEdit, targets: torch.Tensor) -> Iterator[str]:
    if edit.is_empty:
        yield "it changes nothing"
        return
    if edit.num_new:
        if alone := int((injected_degrees(edit) == 0).sum()):
            yield f"{alone} of {edit.num_new} injected nodes have no edge"
        ends = edit.add[edit.add < edit.base]
        if len(ends) and not torch.isin(ends, targets).any():
            yield "no injected node is joined with a target"


def _sha256(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_EDIT_BYTES:
            raise DataError(f"{path} has more than {MAX_EDIT_BYTES} bytes, which no submission needs")
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            while block := stream.read(2**20):
                digest.update(block)
        return digest.hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None


# mending


def mended(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> list[str]:
    """Write an edit anew without loops, repeated edges and denormals; what was mended, in words."""
    arrays = dict(read_npz(path, max_bytes=MAX_EDIT_BYTES))
    said: list[str] = []
    for name in ("add", "drop"):
        pairs = arrays.get(name)
        if pairs is None or pairs.ndim != 2 or pairs.shape[0] != 2 or pairs.dtype.kind not in "iu":
            continue
        loops = pairs[0] == pairs[1]
        if loops.any():
            said.append(f"{int(loops.sum())} loops left out of {name}")
        kept = np.sort(pairs[:, ~loops].astype(np.int64), axis=0)
        arrays[name] = np.unique(kept, axis=1)
        if again := kept.shape[1] - arrays[name].shape[1]:
            said.append(f"{again} edges that {name} names twice left out")
    for name in ("new_x", "set_x"):
        rows = arrays.get(name)
        if rows is None or rows.dtype.kind != "f":
            continue
        rows = rows.astype(np.float32)
        tiny = (rows != 0) & (np.abs(rows) < _SMALLEST)
        if tiny.any():
            rows = np.where(tiny, np.float32(0), rows)
            said.append(f"{int(tiny.sum())} denormals of {name} set to zero")
        if rows.dtype != arrays[name].dtype:
            said.append(f"{name} stored as float32")
        arrays[name] = rows
    write_npz(target, arrays)
    return said


# in a store


def add(store: Store, checked: Checked) -> Record:
    """Keep a checked submission; another one under its name is refused."""
    for record in submissions(store):
        same = record.job.kind == checked.job.kind and record.job.mode == checked.job.mode
        named = record.job.spec.params.get("name") == checked.card.name
        if not (same and named and record.job.data.dataset == checked.card.dataset):
            continue
        if record.key != checked.job.key:
            raise DataError(
                f"the store has another {checked.card.kind} called '{checked.card.name}'; choose a new name"
            )
        if card_of(record) != checked.card:
            raise DataError(
                f"the store has '{checked.card.name}' with another card; give it a new name or the old card"
            )
        return record
    record = record_of(checked)
    for entry in record.objects.values():
        store.put(checked.data, entry["suffix"])
    store.write(record)
    return record


def record_of(checked: Checked) -> Record:
    """The record of a submission, wherever it will be kept."""
    name, suffix = ("edit", ".npz") if checked.card.kind == "attack" else ("weights", ".safetensors")
    objects = {name: {"sha256": checked.sha256, "bytes": len(checked.data), "suffix": suffix}}
    card = json.loads(json.dumps(asdict(checked.card), allow_nan=False))
    return Record(checked.job.key, checked.job, {**checked.result, "card": card}, objects, provenance(0.0, 0.0))


def submissions(store: Store) -> list[Record]:
    """All of a store, by name."""
    return sorted(store.submitted(), key=lambda record: (str(record.job.spec.params.get("name")), record.key))


def card_of(record: Record) -> Card:
    """The card of a submission in a store, checked again: the store may have come from anywhere."""
    return parse_card(json.dumps(record.result["card"]))
