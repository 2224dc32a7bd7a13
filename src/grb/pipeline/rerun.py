"""Recompute what a store has and compare bits: the proof that a number is what its record says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch

from grb.pipeline.store import Record, Store
from grb.pipeline.study import closure
from grb.pipeline.work import Worker

# what a clock says differs from run to run
NOT_COMPARED = frozenset({"seconds", "cpu_seconds"})


@dataclass(frozen=True)
class Comparison:
    """A job that was computed again."""

    key: str
    label: str
    difference: str

    @property
    def equal(self) -> bool:
        return not self.difference


class _Dry(Store):
    """A store that is only read: artefacts are hashed and forgotten."""

    def put(self, data: bytes, suffix: str) -> dict[str, Any]:
        return {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "suffix": suffix}

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
    on_job: Callable[[Comparison], None] = lambda comparison: None,
) -> list[Comparison]:
    """Compute records again, and all that they were made of; every job takes its inputs from the store."""
    jobs = {record.key: record.job for record in store.records()}
    worker = Worker(_Dry(store.path))
    found = []
    order = {"fit": 0, "attack": 1, "score": 2}
    for key in sorted(set(closure(jobs, keys)), key=lambda key: (order[jobs[key].kind], key)):
        before, after = store.read(key), worker.compute(jobs[key])
        comparison = Comparison(key, jobs[key].label, _difference(before, after))
        on_job(comparison)
        found.append(comparison)
    return found


def _difference(before: Record, after: Record) -> str:
    for name, entry in before.objects.items():
        if after.objects.get(name, {}).get("sha256") != entry["sha256"]:
            return f"its {name} have other bytes"
    for name, value in before.result.items():
        if name not in NOT_COMPARED and after.result.get(name) != value:
            return f"its {name} is {str(after.result.get(name))[:60]}, but the record says {str(value)[:60]}"
    return ""
