"""What a study will cost: measured where this store or this machine has done such jobs, guessed from sizes where not."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from grb.pipeline.guess import CORA_EDGES, guessed_seconds, profiling_epochs, training_epochs
from grb.pipeline.job import Job
from grb.pipeline.job_times import History, JobTime, Past, models_of, name_of, remembered, settings_of, times_of
from grb.pipeline.store import Store
from grb.pipeline.study import DatasetSize, Study

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
class Cost:
    """CPU seconds and megabytes of a job, and whether they come from jobs of the same method."""

    seconds: float
    megabytes: float
    measured: bool


def estimate(study: Study, store: Store) -> list[Line]:
    """CPU seconds, disk and memory of what is not done yet, by kind of job.

    ``measured`` says that every number comes from jobs of the same method and dataset, in this store or, where it has none,
    in any that was run on this machine.
    """
    return lines_of(study, costs_of(study, store))


def lines_of(study: Study, costs: Mapping[str, Cost]) -> list[Line]:
    """The same from costs that are known."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in study.jobs.values():
        groups[job.kind].append(job)
    lines = []
    for kind, jobs in groups.items():
        todo = [costs[job.key] for job in jobs if job.key in costs]
        lines.append(
            Line(
                kind,
                len(jobs),
                len(jobs) - len(todo),
                sum(cost.seconds for cost in todo),
                len(todo) * BYTES[kind],
                max((cost.megabytes for cost in todo), default=0.0),
                all(cost.measured for cost in todo),
            )
        )
    return lines


def seconds_of(study: Study, store: Store) -> dict[str, float]:
    """Estimated CPU seconds of every job that is not done yet, so that progress weighs long jobs more than short ones."""
    return {key: cost.seconds for key, cost in costs_of(study, store).items()}


def costs_of(study: Study, store: Store) -> dict[str, Cost]:
    """What every job that is not done yet will cost, by key."""
    models = models_of(study.jobs.values())
    own = [time for time in times_of(store.records()) if time.dataset in study.sizes]
    elsewhere = [time for time in remembered() if time.dataset in study.sizes]
    histories = [History(own), History(elsewhere)]
    speed = _speed([*own, *elsewhere], study)
    todo = {key: job for key, job in study.jobs.items() if not store.has(key)}
    return {key: _cost(job, study, models, histories, speed) for key, job in todo.items()}


def _cost(
    job: Job, study: Study, models: Mapping[str, str], histories: list[History], speed: Mapping[tuple[str, str], float]
) -> Cost:
    name, settings = name_of(job, models), settings_of(job)
    length = _length(job, study)
    for history in histories:
        past = history.exact.get((name, settings))
        if past is not None:
            seconds = past.each * length if job.kind == "profile" else past.seconds
            return Cost(seconds, past.megabytes, True)
        alike: Past | None = history.loose.get(name)
        if alike is not None:
            return Cost(alike.each * length, alike.megabytes, True)
    size = study.sizes.get(job.data.dataset, UNKNOWN)
    seconds = guessed_seconds(job.kind, job.spec.name, name[3], length, size, job.method)
    megabytes = WORKER_MEGABYTES + size.features * size.nodes * 4 * 6 / 2**20
    return Cost(seconds * speed.get(name[:2], 1.0), megabytes, False)


def _length(job: Job, study: Study) -> float:
    """Epochs or steps that a job is likely to have."""
    if job.kind == "fit":
        return training_epochs(job.method)
    if job.kind == "profile":
        return profiling_epochs(job.method)
    return study.steps.get(job.key, 1) if job.kind == "attack" else 1


def _speed(times: list[JobTime], study: Study) -> dict[tuple[str, str], float]:
    """How many times longer than guessed the known jobs of a dataset and kind took, where settings are no part of the guess."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for time in times:
        if time.kind in ("fit", "attack", "score"):
            size = study.sizes.get(time.dataset, UNKNOWN)
            guess = guessed_seconds(time.kind, time.method, time.about, time.length, size, {})
            found[time.dataset, time.kind].append(time.seconds / guess)
    return {name: statistics.median(ratios) for name, ratios in found.items()}
