"""How long jobs took: in a store, and on this machine, so that the plan of a new store is no guess."""

from __future__ import annotations

import contextlib
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from grb.atomic import write_atomic
from grb.dataset import registry
from grb.errors import GRBError
from grb.pipeline.job import Job
from grb.pipeline.record import Record
from grb.pipeline.spec import digest

KINDS = ("fit", "attack", "score", "certify", "profile")
FORMAT = 1
# what is kept of one method with the same settings, and of all methods
LATEST, METHODS = 5, 3_000
Name = tuple[str, str, str, str]


@dataclass(frozen=True)
class JobTime:
    """One job that was done.

    Args:
        dataset: What it worked on.
        kind: Of the job.
        method: Name of its method.
        about: Name of the model that it attacked, scored or certified; empty if it is unknown.
        settings: Digest of whatever else says how much there is to do.
        seconds: CPU seconds.
        length: Epochs of a training or a profiling run that were done, planned steps of an attack, 1 of anything else.
        megabytes: Peak memory.
    """

    dataset: str
    kind: str
    method: str
    about: str
    settings: str
    seconds: float
    length: float
    megabytes: float


@dataclass(frozen=True)
class Past:
    """Median CPU seconds of some jobs, the same per epoch or step, and the most memory that one took."""

    seconds: float
    each: float
    megabytes: float


def models_of(jobs: Iterable[Job]) -> dict[str, str]:
    """Names of the models that are trained, by the keys of their jobs."""
    return {job.key: job.spec.name for job in jobs if job.kind == "fit"}


def name_of(job: Job, models: Mapping[str, str]) -> Name:
    """Dataset, kind, method and the model that a job is about."""
    role = "surrogate" if job.kind == "attack" else "model"
    return job.data.dataset, job.kind, job.spec.name, models.get(job.inputs.get(role, ""), "")


def settings_of(job: Job) -> str:
    """What is the same for jobs with the same amount of work."""
    if job.kind == "score":  # there are many, and digests take time
        return job.mode or ""
    told: dict[str, Any] = {"params": job.spec.params, "mode": job.mode, "threads": job.threads, "extra": job.extra}
    return digest(told)[:16]


def times_of(records: Iterable[Record]) -> list[JobTime]:
    """What records say of their jobs."""
    listed = [record for record in records if record.job.kind in KINDS]
    models = models_of(record.job for record in listed)
    return [
        JobTime(
            *name_of(record.job, models),
            settings_of(record.job),
            float(record.provenance["cpu_seconds"]),
            _length(record),
            float(record.provenance["peak_megabytes"]),
        )
        for record in listed
    ]


def _length(record: Record) -> float:
    if record.job.kind == "profile" and record.measurement is not None:
        return float(max(int(record.measurement["epochs"]), 1))
    found = record.result.get("epochs" if record.job.kind == "fit" else "planned_steps", 1)
    return float(max(int(found or 1), 1))


class History:
    """Times of jobs by method, with the same settings or with any."""

    def __init__(self, times: Iterable[JobTime]) -> None:
        self.exact: dict[tuple[Name, str], Past] = {}
        self.loose: dict[Name, Past] = {}
        self.times = list(times)
        same: dict[tuple[Name, str], list[JobTime]] = defaultdict(list)
        alike: dict[Name, list[JobTime]] = defaultdict(list)
        for time in self.times:
            name = (time.dataset, time.kind, time.method, time.about)
            same[name, time.settings].append(time)
            alike[name].append(time)
        self.exact = {key: _past(found) for key, found in same.items()}
        self.loose = {name: _past(found) for name, found in alike.items()}


def _past(times: list[JobTime]) -> Past:
    return Past(
        statistics.median(time.seconds for time in times),
        statistics.median(time.seconds / time.length for time in times),
        max(time.megabytes for time in times),
    )


def _path() -> Path:
    return registry.home() / "job-times.json"


def remembered() -> list[JobTime]:
    """What this machine remembers of jobs of any store; nothing if the file is missing or damaged."""
    try:
        held = json.loads(_path().read_bytes())
        if held["format"] != FORMAT:
            return []
        return [JobTime(*map(str, row[:5]), *map(float, row[5:])) for row in held["times"] if len(row) == 8]  # type: ignore[arg-type]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def remember(records: Iterable[Record]) -> None:
    """Keep the times of jobs that were just done on this machine, the latest of every method and settings."""
    new = times_of(records)
    if not new:
        return
    latest: dict[tuple[str, ...], list[JobTime]] = {}
    for time in (*remembered(), *new):
        key = (time.dataset, time.kind, time.method, time.about, time.settings)
        found = [*latest.pop(key, []), time][-LATEST:]  # popped, so that what was done last stands last
        latest[key] = found
    kept = [time for found in list(latest.values())[-METHODS:] for time in found]
    rows = [[value if isinstance(value, str) else round(value, 4) for value in astuple(time)] for time in kept]
    with contextlib.suppress(GRBError, OSError):  # without it the next plan is a guess
        write_atomic(_path(), json.dumps({"format": FORMAT, "times": rows}).encode())
