"""What a study will cost: measured where the store has jobs of the same kind, guessed from sizes where not."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from grb.names import ModelName
from grb.pipeline.job import Job
from grb.pipeline.record import SUBMISSION, Record
from grb.pipeline.store import Store
from grb.pipeline.study import DatasetSize, Study

# CPU seconds at the size of grb-cora (5,429 edges), measured on one core; a guess for everything else
FIT, ADVERSARIAL, ATTACK_STEP, SCORE = 15.0, 60.0, 0.012, 0.02
CORA_EDGES = 5_429
SAMPLE = 0.006
# CPU seconds of a profiling epoch per node and convolution, measured on ENZYMES
EPOCH = 4e-6
BYTES = {"fit": 400_000, "attack": 30_000, "score": 3_000, "certify": 15_000, "profile": 4_000}
# megabytes of a worker before it loads any data
WORKER_MEGABYTES = 450.0
UNKNOWN = DatasetSize(0, CORA_EDGES, 0)


@dataclass(frozen=True)
class Line:
    """All jobs of one kind: how many, how many are done, and what the rest will take."""

    kind: str
    jobs: int
    cached: int
    seconds: float
    bytes: int
    megabytes: float
    measured: bool


@dataclass(frozen=True)
class Past:
    """What jobs of one kind, method and dataset took: CPU seconds (of an attack, per step) and peak megabytes."""

    seconds: float
    megabytes: float


def estimate(study: Study, store: Store) -> list[Line]:
    """CPU seconds, disk and memory of what is not done yet, by kind of job.

    ``measured`` says that every number comes from jobs of the same method and dataset in this store.
    """
    history = _history(study, store)
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in study.jobs.values():
        groups[job.kind].append(job)
    lines = []
    for kind, jobs in groups.items():
        todo = [job for job in jobs if not store.has(job.key)]
        known = [history.get(_method(job)) for job in todo]
        seconds = [_seconds(job, past, study) for job, past in zip(todo, known, strict=True)]
        megabytes = [_megabytes(job, past, study) for job, past in zip(todo, known, strict=True)]
        lines.append(
            Line(
                kind,
                len(jobs),
                len(jobs) - len(todo),
                sum(seconds),
                len(todo) * BYTES[kind],
                max(megabytes, default=0.0),
                all(past is not None for past in known),
            )
        )
    return lines


def seconds_of(study: Study, store: Store) -> dict[str, float]:
    """Estimated CPU seconds of every job that is not done yet, so that progress weighs long jobs more than short ones."""
    history = _history(study, store)
    todo = {key: job for key, job in study.jobs.items() if not store.has(key)}
    return {key: _seconds(job, history.get(_method(job)), study) for key, job in todo.items()}


def _method(job: Job) -> tuple[str, str, str]:
    return job.data.dataset, job.kind, job.spec.name


def _history(study: Study, store: Store) -> Mapping[tuple[str, str, str], Past]:
    found: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in store.records():
        if record.job.data.dataset in study.sizes and record.job.kind in BYTES:
            found[_method(record.job)].append(record)
    return {
        name: Past(
            statistics.median(map(_seconds_per_step, records)),
            max(float(record.provenance["peak_megabytes"]) for record in records),
        )
        for name, records in found.items()
    }


def _seconds_per_step(record: Record) -> float:
    return float(record.provenance["cpu_seconds"]) / int(record.result.get("planned_steps", 1))


def _seconds(job: Job, past: Past | None, study: Study) -> float:
    if past is not None:
        return past.seconds * study.steps.get(job.key, 1)
    size = study.sizes.get(job.data.dataset, UNKNOWN)
    scale = max(size.edges / CORA_EDGES, 0.1)
    if job.kind == "fit":
        adversarial = job.spec.name != SUBMISSION and ModelName.parse(job.spec.name).adversarial
        return scale * (ADVERSARIAL if adversarial else FIT)
    if job.kind == "attack":
        return scale * ATTACK_STEP * study.steps.get(job.key, 1)
    if job.kind == "certify":  # a forward pass per vote of a smoothed model, or per group
        return scale * SAMPLE * int(job.method.get("samples", job.method.get("groups", 30)))
    if job.kind == "profile":
        epochs = min(job.method.get("epochs", 300), 2 * job.method.get("patience", 10**9))
        return EPOCH * size.nodes * job.method.get("depth", 5) * epochs
    return scale * SCORE


def _megabytes(job: Job, past: Past | None, study: Study) -> float:
    if past is not None:
        return past.megabytes
    size = study.sizes.get(job.data.dataset, UNKNOWN)
    return WORKER_MEGABYTES + size.features * size.nodes * 4 * 6 / 2**20
