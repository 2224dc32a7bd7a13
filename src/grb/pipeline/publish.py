"""Making a published bundle: the records of one study with all that they need, and the list of what is in it.

The same store gives the same bytes. Whoever publishes verifies the whole store first; a study that lacks scores is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from grb.artefacts import Bundle, PublishedEdit, PublishedModel, check_name
from grb.atomic import size_of, write_atomic
from grb.errors import DataError, IntegrityError
from grb.evaluator.board import CLEAN, Board
from grb.evaluator.measurement import MethodInfo
from grb.pipeline import gate
from grb.pipeline.attestation import attestations, read_envelope
from grb.pipeline.bundle import opened, pack
from grb.pipeline.job import Job
from grb.pipeline.record import NOT_COMPUTED, Record
from grb.pipeline.results import build_boards
from grb.pipeline.store import Store
from grb.pipeline.study import StudyInfo

Scores = Mapping[str, Mapping[str, float]]
# of scores in the list, which is for reading; records have all digits
DIGITS = 6


def publish(store: Store, name: str, folder: str | Path, lists: str | Path, *, recipe: str | None = None) -> Bundle:
    """Write ``FOLDER/NAME.zip`` and its list ``LISTS/NAME.json`` from a store.

    Args:
        store: A store with a study whose scores are all there; signed, if the bundle should be.
        name: Name of the bundle.
        folder: Where the bundle is written.
        lists: Where its list is written.
        recipe: Name of the study, where the store has several; then only what it needs is published.

    Returns:
        The list.
    """
    check_name(name)
    if problems := store.verify(on_record=gate.admit):
        raise IntegrityError(f"{store.path} is not published: {problems[0].message} ({len(problems)} problems)")
    key, info, alone = _study(store, recipe)
    target = Path(folder) / f"{name}.zip"
    count = pack(store, target, None if alone else [key, *info.measured])
    with opened(target) as inside:  # what a reader would refuse is not published
        records = list(inside.records())
        signers = {read_envelope(data)[1].signer for _, data in attestations(inside)}
    clean, worst = _scores(records, info)
    models = _distinct(name, _models(records, info, clean, worst))
    made = Bundle(
        name=name,
        title=info.title,
        recipe=info.name,
        dataset=info.dataset.name,
        fingerprint=info.dataset.fingerprint,
        bytes=size_of(target),
        sha256=hashlib.sha256(target.read_bytes()).hexdigest(),
        records=count,
        difficulties=info.difficulties,
        models=_ordered(models, info.difficulties[-1]),
        edits=tuple(sorted(_distinct(name, _edits(records, info)), key=lambda each: each.title)),
        signed_by=tuple(sorted(signers)),
    )
    write_list(Bundle.from_dict(made.to_dict()), Path(lists) / f"{name}.json")
    return made


def write_list(bundle: Bundle, path: Path) -> None:
    """Write the list of a bundle with one line per model and edit, so that a change of one is a change of one line."""
    values = bundle.to_dict()
    listed = {key: values.pop(key) for key in ("models", "edits")}
    head = json.dumps(values, indent=1, ensure_ascii=True)[:-2]
    rows = [
        f' "{key}": [\n' + ",\n".join(f"  {json.dumps(each)}" for each in found) + "\n ]"
        for key, found in listed.items()
    ]
    write_atomic(path, (",\n".join([head, *rows]) + "\n}\n").encode())


def _study(store: Store, recipe: str | None) -> tuple[str, StudyInfo, bool]:
    """Key and content of the study that is published, and whether it is the only one of its store.

    Of several plans of one recipe, as with more trainings later, it is the largest.
    """
    found = {each.key: StudyInfo.from_dict(each.result) for each in store.records() if each.job.kind == "study"}
    chosen = {key: info for key, info in found.items() if recipe in (None, info.name)}
    names = sorted({info.name for info in chosen.values()})
    if len(names) != 1:
        raise DataError(
            f"{store.path} has {len(names)} studies to publish ({', '.join(names) or 'none'}); name one with --recipe"
            if names
            else f"{store.path} has no study {recipe or 'to publish'}; `grb run RECIPE --store {store.path}` makes one"
        )
    key, info = max(chosen.items(), key=lambda pair: (len(pair[1].measured), pair[0]))
    missing = sum(not store.has(each) for each in info.measured)
    if missing:
        raise DataError(
            f"{missing} of {len(info.measured)} scores of '{info.name}' are not in {store.path} yet; "
            "`grb run` with the same store makes them"
        )
    return key, info, len(found) == 1


def _scores(records: Iterable[Record], info: StudyInfo) -> tuple[Scores, Scores]:
    """Clean and worst accuracy of every training by key and difficulty, as the board of the study has them."""
    boards = build_boards(records, [info.name])
    clean: dict[str, dict[str, float]] = defaultdict(dict)
    worst: dict[str, dict[str, float]] = defaultdict(dict)
    for board in boards[:1]:
        for key, difficulty, value in _cells(board, clean_only=True):
            clean[key][difficulty] = round(value, DIGITS)
        for key, difficulty, value in _cells(board, clean_only=False):
            if len(boards) == 1:  # a study that varies a limit has a worst case for each of its values
                worst[key][difficulty] = round(min(value, worst[key].get(difficulty, 1.0)), DIGITS)
    return clean, worst


def _cells(board: Board, *, clean_only: bool) -> Iterator[tuple[str, str, float]]:
    """Key of the training, difficulty and score of every run; without clean ones alone, of defenses with a worst case."""
    for cell in board.cells:
        complete = "worst_case" in board.by_defense[cell.difficulty].get(cell.defense, {})
        if cell.attack == CLEAN if clean_only else complete:
            for run, value in zip(cell.metadata, cell.values, strict=True):
                yield str(run["victim"]), cell.difficulty, value


def _models(records: Iterable[Record], info: StudyInfo, clean: Scores, worst: Scores) -> Iterator[PublishedModel]:
    for record in records:
        job = record.job
        if job.kind != "fit" or job.data.chain or job.spec.name in NOT_COMPUTED:
            continue  # a model that was trained on an attacked graph has no name of its own
        weights = record.objects["weights"]
        yield PublishedModel(
            name=_label(job, info.training),
            seed=job.seed,
            key=record.key,
            sha256=weights["sha256"],
            bytes=weights["bytes"],
            parameters=record.result["parameters"],
            clean=clean.get(record.key, {}),
            worst_case=worst.get(record.key, {}),
        )


def _edits(records: Iterable[Record], info: StudyInfo) -> Iterator[PublishedEdit]:
    jobs = {record.key: record.job for record in records}
    for record in records:
        job = record.job
        if job.kind != "attack" or job.spec.name in NOT_COMPUTED:
            continue
        source = jobs.get(job.inputs.get("surrogate", ""))
        edit = record.objects["edit"]
        yield PublishedEdit(
            name=_label(job, info.attack),
            seed=job.seed,
            key=record.key,
            sha256=edit["sha256"],
            bytes=edit["bytes"],
            difficulty=job.mode or info.difficulties[-1],
            knowledge=job.extra.get("knowledge", "none"),
            labels=job.extra.get("labels", "predicted"),
            model="" if source is None else _label(source, info.training),
            training=None if source is None else source.seed,
        )


def _label(job: Job, common: Mapping[str, Any]) -> str:
    return MethodInfo(job.spec.name, dict(job.spec.params)).label(common)


def _distinct(bundle: str, found: Iterable[Any]) -> list[Any]:
    """All of them, if no two have one name: a reader could not say which is meant."""
    listed = list(found)
    seen: set[str] = set()
    for each in listed:
        if each.title in seen:
            raise DataError(
                f"two artefacts of '{bundle}' would be called '{each.title}'; publish a study without variations"
            )
        seen.add(each.title)
    return listed


def _ordered(models: list[PublishedModel], difficulty: str) -> tuple[PublishedModel, ...]:
    """The most robust first by the mean over its trainings, those without a worst case last."""
    worst: dict[str, list[float]] = defaultdict(list)
    for each in models:
        if difficulty in each.worst_case:
            worst[each.name].append(each.worst_case[difficulty])
    means = {name: sum(values) / len(values) for name, values in worst.items()}

    def place(model: PublishedModel) -> tuple[Any, ...]:
        return not model.clean, -means.get(model.name, 0.0), model.name, model.seed

    return tuple(sorted(models, key=place))
