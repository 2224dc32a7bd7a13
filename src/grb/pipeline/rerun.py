"""Recompute what a store has and compare bits: the proof that a number is what its record says."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from grb.errors import IntegrityError
from grb.pipeline.job import KINDS, Job
from grb.pipeline.record import NOT_COMPUTED, Record
from grb.pipeline.store import Store
from grb.pipeline.study import closure
from grb.pipeline.worker import Worker

# what a clock says differs from run to run; which study asked first is no result
NOT_COMPARED = frozenset({"seconds", "cpu_seconds", "study"})


@dataclass(frozen=True)
class Comparison:
    """A job that was computed again."""

    key: str
    label: str
    difference: str

    @property
    def equal(self) -> bool:
        """Whether the recomputed result is the recorded one."""
        return not self.difference


class _Dry(Store):
    """A store that is only read: artefacts are hashed and forgotten."""

    def put(self, data: bytes, suffix: str) -> dict[str, Any]:
        return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "suffix": suffix}

    def take(self, write: Callable[[Path], Any], suffix: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"artefact{suffix}"
            write(path)
            return self.put(path.read_bytes(), suffix)

    def write(self, record: Record) -> None:
        raise AssertionError("a rerun writes nothing")


def choose(store: Store, count: int, *, seed: int) -> list[str]:
    """Keys of random scores, without repetition."""
    scores = [record.key for record in store.records() if record.job.kind == "score"]
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(seed)).tolist()
    return [scores[index] for index in order[:count]]


def rerun(
    store: Store,
    keys: Iterable[str],
    *,
    data_dir: str | None = None,
    trust_code: bool = False,
    on_job: Callable[[Comparison], None] = lambda comparison: None,
) -> list[Comparison]:
    """Compute records again, and all that they were made of; every job takes its inputs from the store.

    Args:
        data_dir: Where the datasets' files are, if not on the usual path.
        trust_code: Whether to import what a record names as ``package.module:Class``. A store may come from anywhere, and
            any function of any installed package can be named.
    """
    jobs = {
        record.key: replace(record.job, data=replace(record.job.data, data_dir=data_dir)) for record in store.records()
    }
    needed = [key for key in set(closure(jobs, keys)) if jobs[key].spec.name not in NOT_COMPUTED]
    wanted = sorted(needed, key=lambda key: (KINDS.index(jobs[key].kind), key))
    for key in wanted if not trust_code else []:
        _check_names(jobs[key])
    worker = Worker(_Dry(store.path))
    found = []
    for key in wanted:
        before, after = store.read(key), worker.compute(jobs[key])
        comparison = Comparison(key, jobs[key].label, _difference(before, after))
        on_job(comparison)
        found.append(comparison)
    return found


def _check_names(job: Job) -> None:
    for name in (job.spec.name, job.data.dataset):
        if ":" in name:
            raise IntegrityError(
                f"record {job.key[:12]} names code '{name[:60]}' instead of a catalogued method; it is imported only if "
                "you trust it (trust_code, --trust-code)"
            )


def _difference(before: Record, after: Record) -> str:
    for name, entry in before.objects.items():
        if after.objects.get(name, {}).get("sha256") != entry["sha256"]:
            return f"other bytes of its {name}{_elsewhere(before, after)}"
    first, second = ({**_flat(each.result), **_flat(each.measurement or {})} for each in (before, after))
    for name in sorted(first.keys() | second.keys()):
        old, new = first.get(name), second.get(name)
        if old != new:
            return f"its {name} is {str(new)[:60]}, but the record says {str(old)[:60]}{_elsewhere(before, after)}"
    return ""


def _flat(values: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """Nested values by their path, as in ``outcomes full changed``, without what clocks say."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in NOT_COMPARED:
            found |= _flat(value, f"{start}{name} ") if isinstance(value, Mapping) else {f"{start}{name}": value}
    return found


def _elsewhere(before: Record, after: Record) -> str:
    """What was different where the record was made: bits are the same only for the same versions and kind of machine."""
    for name in ("torch", "machine", "system"):
        old, new = before.provenance.get(name), after.provenance.get(name)
        if old != new:
            return f" (made with {name} {str(old)[:40]}, here {new})"
    return ""
