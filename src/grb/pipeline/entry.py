"""Entries: submissions of one name, of which every version is kept and the newest is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from grb.evaluator.board import Board
from grb.evaluator.measurement import Measurement, MethodInfo, submission_label
from grb.pipeline.job import Job

if TYPE_CHECKING:
    from grb.pipeline.record import Record
    from grb.pipeline.store import Store


def record_name(job: Job) -> str:
    """Return the name under which something was submitted."""
    return str(job.spec.params.get("name"))


def entry_label(job: Job) -> str:
    """Return the name of a submission in tables."""
    return submission_label(record_name(job), job.version)


def comparable_name(name: str) -> str:
    """Return a name without what readers overlook: two names that differ only by case or spaces are the same.

    >>> comparable_name("My attack") == comparable_name("myattack")
    True
    """
    return "".join(name.split()).casefold()


def entry_identity(job: Job) -> tuple[str, ...]:
    """Return what all versions of an entry share: kind, dataset, difficulty, and the name as readers see it."""
    return job.kind, job.data.fingerprint, job.mode or "", comparable_name(record_name(job))


def newest_entries(measurements: Mapping[str, Measurement]) -> tuple[dict[str, Measurement], dict[str, int]]:
    """Return the scores without those of submissions that have a newer version, and how many were left out by shown name."""
    newest: dict[tuple[str, ...], MethodInfo] = {}
    for each in measurements.values():
        for identity, method in _submitted(each):
            if identity not in newest or newest[identity].version < method.version:
                newest[identity] = method
    kept: dict[str, Measurement] = {}
    replaced: Counter[str] = Counter()
    for key, each in measurements.items():
        older = [name for name, method in _submitted(each) if method.version < newest[name].version]
        for identity in older:
            replaced[newest[identity].label()] += 1
        if not older:
            kept[key] = each
    return kept, replaced


def _submitted(found: Measurement) -> Iterator[tuple[tuple[str, ...], MethodInfo]]:
    """The submissions behind a score, with what all versions of each share."""
    if found.defense.method.is_submission:
        name = comparable_name(str(found.defense.method.params.get("name")))
        yield ("defense", found.dataset.fingerprint, name), found.defense.method
    if found.attack is not None and found.attack.method.is_submission:
        name = comparable_name(str(found.attack.method.params.get("name")))
        yield ("attack", found.dataset.fingerprint, *found.outcomes, name), found.attack.method


def with_versions(board: Board, replaced: Mapping[str, int]) -> Board:
    """Return a board with a flag for every entry of which older versions are in the store."""
    shown = {*board.attacks, *board.defenses}
    flags = [
        f"{label} is shown as the newest of its versions; {count} scores of older ones stay in the store"
        for label, count in replaced.items()
        if label in shown
    ]
    return replace(board, flags=(*board.flags, *flags))


def usable(store: Store, *, trust_code: bool) -> tuple[list[Record], list[str]]:
    """Return the submissions of a store that may be planned with, and a sentence for each that names code nobody trusts."""
    listed = sorted(store.submitted(), key=lambda each: (record_name(each.job), each.job.version, each.key))
    left_out = [
        f"{entry_label(record.job)} is left out: it is made by '{record.job.sent_code[:60]}', which is imported only if you "
        "trust it (trust_code, --trust-code)"
        for record in listed
        if record.job.sent_code and not trust_code
    ]
    return [record for record in listed if trust_code or not record.job.sent_code], left_out
