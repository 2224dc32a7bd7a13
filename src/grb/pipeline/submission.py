"""What others send: an edit or weights with a card; nothing of it is believed before it is checked."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from grb.atomic import size_of
from grb.catalogue import canonical
from grb.dataset import Dataset, load_dataset
from grb.errors import BudgetError, DataError, GRBError
from grb.evaluator.board import CLEAN
from grb.graph import GraphEdit
from grb.graph.edit import MAX_EDIT_BYTES
from grb.graph.files import read_npz, write_npz
from grb.names import ModelName
from grb.pipeline.card import Card, card_from, short
from grb.pipeline.entry import entry_identity, record_name, usable
from grb.pipeline.executor import Limits
from grb.pipeline.gate import check_model_params, check_names, snapshot
from grb.pipeline.isolation import call_isolated
from grb.pipeline.job import DataRef, Job
from grb.pipeline.spec import Spec
from grb.pipeline.store import SUBMISSION, Record, Store
from grb.pipeline.worker import provenance
from grb.threat import Threat, injected_degrees

_SMALLEST = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, eq=False)
class Checked:
    """A submission that keeps the rules.

    Args:
        card: What its authors say.
        sha256: sha256 of the file.
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


# checking


def _an(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def check(
    path: str | os.PathLike[str],
    card: Card,
    dataset: Dataset,
    threat: Threat | Sequence[Threat],
    *,
    limits: Limits | None = None,
    data_dir: str | None = None,
    trust_code: bool = False,
) -> Checked:
    """Everything that the rules ask of a submission; refuses the first thing that is wrong.

    Args:
        path: The edit (npz) or the weights (safetensors).
        card: Beside it.
        dataset: The one that the card names.
        threat: The limits of an attack; of several the first that it keeps is recorded, so the narrowest comes first.
        limits: Limits of the process in which a defense is run, which loads the dataset by its name; without any it is run in
            this process, for which its authors should be known.
        data_dir: Where that process looks for the dataset first.
        trust_code: Whether the code that a card names (``module``) may be imported and run.
    """
    if card.dataset != dataset.name:
        raise DataError(f"the card is for dataset '{card.dataset[:60]}', but this is '{dataset.name}'")
    if dataset.task == "graph":
        raise DataError(f"'{dataset.name}' has graphs to classify, in folds; submissions are for datasets of nodes")
    if _is_ours(card.name):
        raise DataError(f"the card's name is '{card.name}', which is grb's own; choose another")
    path = Path(path)
    wanted = ".npz" if card.kind == "attack" else ".safetensors"
    if path.suffix != wanted and path.suffix in (".npz", ".safetensors"):
        raise DataError(f"the card is of {_an(card.kind)}, which is a {wanted} file, but {path} is another")
    with snapshot(path) as taken, _named(taken.path, path):
        if card.kind == "attack":
            return _check_attack(taken.path, card, dataset, threat if isinstance(threat, Sequence) else [threat])
        if card.module and not trust_code:
            check_names([card.module], dataset.name, "the card")
        return _check_defense(taken.path, card, dataset, limits, data_dir)


@contextmanager
def _named(copy: Path, path: Path) -> Iterator[None]:
    """Refusals name the file that was given, not the private copy that is checked."""
    try:
        yield
    except (DataError, BudgetError) as error:
        if type(error) not in (DataError, BudgetError):
            raise
        raise type(error)(str(error).replace(str(copy), str(path))) from None


def _is_ours(name: str) -> bool:
    """Whether a method of the catalogue has this name, in any spelling."""
    for find in (partial(canonical, "attack"), partial(canonical, "defense"), ModelName.parse):
        with suppress(GRBError):
            find(name)
            return True
    return name.casefold() == CLEAN


def _check_attack(path: Path, card: Card, dataset: Dataset, threats: Sequence[Threat]) -> Checked:
    targets = dataset.test_ids(card.mode)
    edit, meta = GraphEdit.load_with_meta(path)
    _check_basis(path, meta, dataset)
    if meta.get("labels", "predicted") != "predicted":
        raise DataError(
            f"{path} was made by an attack on true labels, which no attacker has; submit one that aims at predicted labels"
        )
    _check_normal(path, edit)
    threat, budget = _first_kept(threats, dataset, edit, targets)
    notes = [*_cast(path), *_harmless(edit, targets)]
    job = Job(
        "attack",
        Spec(SUBMISSION, {"name": card.name, "sha256": _sha256(path)}),
        DataRef(dataset.name, dataset.fingerprint()),
        mode=card.mode,
        extra={"threat": threat.to_dict(), "knowledge": card.knowledge},
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


def _first_kept(
    threats: Sequence[Threat], dataset: Dataset, edit: GraphEdit, targets: torch.Tensor
) -> tuple[Threat, dict[str, float]]:
    """The first limits that an edit keeps, and what it uses of them; the refusal is that of the last ones."""
    for threat in threats[:-1]:
        with suppress(BudgetError):
            return threat, threat.check(dataset.graph, edit, targets)
    return threats[-1], threats[-1].check(dataset.graph, edit, targets)


def _check_defense(path: Path, card: Card, dataset: Dataset, limits: Limits | None, data_dir: str | None) -> Checked:
    if limits is None:
        parameters, notes = _tried(path, dataset, card.module)
    else:
        parameters, notes, found = call_isolated(
            _tried_by_name, path, dataset.name, data_dir, card.module, limits=limits, what=str(path)
        )
        if found != dataset.fingerprint():
            raise DataError(f"'{dataset.name}' is another dataset in a new process; say where it is with --data-dir")
    code = {"module": card.module} if card.module else {}
    job = Job(
        "fit",
        Spec(SUBMISSION, {"name": card.name, "sha256": _sha256(path), **code}),
        DataRef(dataset.name, dataset.fingerprint()),
    )
    result = {"epochs": 0, "best_epoch": 0, "val_score": 0.0, "parameters": parameters, "notes": notes}
    return Checked(card, _sha256(path), path.read_bytes(), job, result, tuple(notes))


def _tried_by_name(path: Path, dataset: str, data_dir: str | None, module: str) -> tuple[int, list[str], str]:
    found = load_dataset(dataset, data_dir=data_dir)
    return *_tried(path, found, module), found.fingerprint()


def _tried(path: Path, dataset: Dataset, module: str = "") -> tuple[int, list[str]]:
    """The number of a model's parameters, and what the checks say; this is where what was sent is run."""
    from grb.evaluator.sanity_checks import check_model
    from grb.model.base import predict
    from grb.trainer.checkpoint import check_logits, load_model_with_meta, named_code

    if module and named_code(path) != module:
        raise DataError(
            f"the card names '{module[:60]}', but {path} names {short(named_code(path) or 'a model of grb')}; name the code "
            "that it was exported with (grb.export_model)"
        )
    model, meta = load_model_with_meta(path, trusted=module or None)
    _check_basis(path, meta, dataset)
    if not module:
        check_model_params(model.params, path)
    try:
        logits = predict(model, dataset.graph)
    except (RuntimeError, ValueError, IndexError) as error:
        raise DataError(f"{path} does not run on '{dataset.name}' ({' '.join(str(error).split())[:120]})") from None
    if logits.shape != (dataset.graph.n, dataset.num_classes) or not torch.isfinite(logits).all():
        raise DataError(
            f"{path} gives outputs of shape {list(logits.shape)}, but finite ones of shape "
            f"[{dataset.graph.n}, {dataset.num_classes}] are needed"
        )
    if module:
        check_logits(path, model, dataset)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return parameters, [str(flag) for flag in check_model(model, dataset)]


def _check_basis(path: Path, meta: Mapping[str, Any], dataset: Dataset) -> None:
    """A file that says which graph it is of must be of this one."""
    own = {"dataset": dataset.name, "fingerprint": dataset.fingerprint()}
    for key, wanted in own.items():
        recorded = meta.get(key)
        if recorded is not None and recorded != wanted:
            raise DataError(f"{path} says {key} {short(recorded)}, but '{dataset.name}' has {short(wanted)}")


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
        if isolated := int((injected_degrees(edit) == 0).sum()):
            yield f"{isolated} of {edit.num_new} injected nodes have no edge"
        ends = edit.add[edit.add < edit.base]
        if len(ends) and not torch.isin(ends, targets).any():
            yield "no injected node is joined with a target"


def _sha256(path: Path) -> str:
    try:
        if size_of(path) > MAX_EDIT_BYTES:
            raise DataError(f"{path} has more than {MAX_EDIT_BYTES} bytes, which no submission needs")
        digest = hashlib.sha256()
        with path.open("rb") as stream:
            while block := stream.read(2**20):
                digest.update(block)
        return digest.hexdigest()
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; check the path") from None


# mending


def repaired(path: str | os.PathLike[str], target: str | os.PathLike[str]) -> list[str]:
    """Write an edit anew without loops, repeated edges and denormals; what was repaired, in words."""
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
    """Keep a checked submission; under a name that the store has, it becomes the entry's next version."""
    checked = as_version(store, checked)
    record = record_of(checked)
    if store.has(record.key):
        return store.read(record.key)
    for entry in record.objects.values():
        store.put(checked.data, entry["suffix"])
    store.write(record)
    return record


def as_version(store: Store, checked: Checked) -> Checked:
    """Return a checked submission as the version of its entry that it is in a store: the next one, or the one it was before.

    A name that differs only by case or spaces, or that other authors have, is refused.
    """
    own, version = checked.card, 1
    for record in submissions(store):
        if entry_identity(record.job) != entry_identity(checked.job):
            continue
        card, what = card_of(record), f"the store has another {own.kind} called '{record_name(record.job)[:64]}'"
        if card.name != own.name:
            raise DataError(f"{what}, which differs only by case or spaces; use that spelling or choose a new name")
        if card.authors != own.authors:
            raise DataError(f"{what} by other authors; choose a new name")
        if card == own and record.job.spec.params.get("sha256") == checked.sha256:
            return replace(checked, job=replace(checked.job, version=record.job.version))
        version = max(version, record.job.version + 1)
    return replace(checked, job=replace(checked.job, version=version))


def newest_versions(records: Iterable[Record]) -> list[Record]:
    """Return only the newest version of every entry."""
    listed = list(records)
    newest: dict[tuple[str, ...], int] = {}
    for record in listed:
        identity = entry_identity(record.job)
        newest[identity] = max(record.job.version, newest.get(identity, 0))
    return [record for record in listed if record.job.version == newest[entry_identity(record.job)]]


def record_of(checked: Checked) -> Record:
    """The record of a submission, wherever it will be kept."""
    name, suffix = ("edit", ".npz") if checked.card.kind == "attack" else ("weights", ".safetensors")
    objects = {name: {"sha256": checked.sha256, "bytes": len(checked.data), "suffix": suffix}}
    card = json.loads(json.dumps(asdict(checked.card), allow_nan=False))
    card_from(card)  # made in Python, it may hold what could not be read again
    return Record(checked.job.key, checked.job, {**checked.result, "card": card}, objects, provenance(0.0, 0.0))


def submissions(store: Store) -> list[Record]:
    """Return the submissions of a store by name and version."""
    return usable(store, trust_code=True)[0]


def card_of(record: Record) -> Card:
    """The card of a submission in a store, checked again: the store may have come from anywhere."""
    return card_from(record.result.get("card"))
