"""What a study will cost: measured where the store has jobs of the same kind, guessed from sizes where not."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from grb.attack.build import build_attack, steps_of
from grb.names import ModelName
from grb.pipeline.job import Job
from grb.pipeline.plan import Study
from grb.pipeline.spec import canonical_json
from grb.pipeline.store import SUBMISSION, Record, Store

# CPU seconds at the size of grb-cora (5,429 edges), measured on one core; a guess for everything else
FIT, ADVERSARIAL, ATTACK_STEP, SCORE = 15.0, 60.0, 0.012, 0.02
CORA_EDGES = 5_429
BYTES = {"fit": 400_000, "attack": 30_000, "score": 3_000, "profile": 4_000}


@dataclass(frozen=True)
class Line:
    """All jobs of one kind."""

    kind: str
    jobs: int
    cached: int
    seconds: float
    bytes: int
    megabytes: float
    measured: bool


def estimate(study: Study, store: Store) -> list[Line]:
    """CPU seconds, disk and memory of what is not done yet, by kind of job.

    ``measured`` tells that every number comes from jobs of the same method and dataset in this store.
    """
    history = _history(store, study.dataset.name)
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in study.jobs.values():
        groups[job.kind].append(job)
    size = max(study.dataset.num_edges / CORA_EDGES, 0.1)
    base = 450.0 + study.dataset.graph.num_features * study.dataset.num_nodes * 4 * 6 / 2**20
    lines = []
    for kind, jobs in groups.items():
        todo = [job for job in jobs if not store.has(job.key)]
        known = [history.get((job.kind, job.spec.name)) for job in todo]
        seconds = [_seconds(job, past, size) for job, past in zip(todo, known, strict=True)]
        lines.append(
            Line(
                kind,
                len(jobs),
                len(jobs) - len(todo),
                sum(seconds),
                len(todo) * BYTES[kind],
                max((_megabytes(past, base) for past in known), default=0.0),
                all(past is not None for past in known),
            )
        )
    return lines


def seconds_of(study: Study, store: Store) -> dict[str, float]:
    """Estimated CPU seconds of every job that is not done yet, for a progress bar that knows long jobs from short ones."""
    history = _history(store, study.dataset.name)
    size = max(study.dataset.num_edges / CORA_EDGES, 0.1)
    return {
        key: _seconds(job, history.get((job.kind, job.spec.name)), size)
        for key, job in study.jobs.items()
        if not store.has(key)
    }


History = Mapping[tuple[str, str], tuple[float, float]]
"""CPU seconds (of an attack, per step) and megabytes of the jobs of a kind and method."""


def _history(store: Store, dataset: str) -> History:
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for key in store.keys():  # noqa: SIM118 - a store is no mapping
        record = store.read(key)
        if record.job.data.dataset == dataset:
            found[record.job.kind, record.job.spec.name].append(record)
    return {
        name: (
            statistics.median(float(record.provenance["cpu_seconds"]) / _steps_of(record.job) for record in records),
            max(float(record.provenance["peak_megabytes"]) for record in records),
        )
        for name, records in found.items()
    }


def _seconds(job: Job, past: tuple[float, float] | None, size: float) -> float:
    if past is not None:
        return past[0] * _steps_of(job)
    if job.kind == "fit":
        return size * (ADVERSARIAL if ModelName.parse(job.spec.name).adversarial else FIT)
    if job.kind == "attack":
        return size * ATTACK_STEP * _steps_of(job)
    return size * SCORE


def _steps_of(job: Job) -> int:
    """Steps of an attack, whose time goes with them; 1 for everything else, and for an edit that was sent."""
    if job.kind != "attack" or job.spec.name == SUBMISSION:
        return 1
    return _steps(job.spec.name, job.data.dataset, canonical_json(job.spec.params))


@cache
def _steps(attack: str, dataset: str, params: str) -> int:
    """Of an attack as it is built: a job leaves out what is at its default."""
    found = steps_of(build_attack(attack, dataset, **json.loads(params)))
    return 1 if found is None else found


def _megabytes(past: tuple[float, float] | None, base: float) -> float:
    return past[1] if past is not None else base
