"""What a study will cost: measured where the store has jobs of the same kind, guessed from sizes where not."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grb.names import ModelName
from grb.pipeline.job import Job
from grb.pipeline.record import SUBMISSION, Record
from grb.pipeline.store import Store
from grb.pipeline.study import DatasetSize, Study

# CPU seconds at the size of grb-cora (5,429 edges), measured on one core; a guess for everything else
FIT, ADVERSARIAL, ATTACK_STEP, SCORE = 15.0, 60.0, 0.012, 0.02
CORA_EDGES = 5_429
# of the standard ensembles against a GCN, and how much longer other victims take
ENSEMBLE = {"auto": 20.0, "auto-edges": 60.0}
SLOW_VICTIM = {
    "gatguard": 14.0,
    "gat": 7.0,
    "softmedian": 7.0,
    "egnnguard": 5.0,
    "gcnguard": 5.0,
    "gcn-svd": 4.0,
    "r-gcn": 3.0,
    "tagcn": 3.0,
}
SLOW_PREPROCESSING = 2.5
SAMPLE = 0.006
# CPU seconds of a profiling epoch: per step, per node and convolution (of collections, and of single graphs, which train on all
# nodes), and per entry of the adjacency and convolution
EPOCH_STEP = 7e-3
EPOCH_NODE = {"collection": 1.9e-6, "single": 2.8e-6}
EPOCH_ENTRY = 4.4e-8
# how much longer other convolutions take than GCN's
EPOCH_MODEL = {"gin": 1.6, "gin-2l": 1.6, "chebnet": 1.6, "gatedgcn": 5.0, "transformer": 4.0, "gine": 2.5}
# epochs until a training ends early, as multiples of its patience
EPOCHS_OF_PATIENCE = 5
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
    """CPU seconds (of an attack, per step) and peak megabytes of jobs of one kind, method, dataset and attacked model."""

    seconds: float
    megabytes: float


def estimate(study: Study, store: Store) -> list[Line]:
    """CPU seconds, disk and memory of what is not done yet, by kind of job.

    ``measured`` says that every number comes from jobs of the same method and dataset in this store.
    """
    history, models = _history(study, store), _models(study.jobs.values())
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in study.jobs.values():
        groups[job.kind].append(job)
    lines = []
    for kind, jobs in groups.items():
        todo = [job for job in jobs if not store.has(job.key)]
        known = [history.get(_method(job, models)) for job in todo]
        seconds = [_seconds(job, past, study, models) for job, past in zip(todo, known, strict=True)]
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
    history, models = _history(study, store), _models(study.jobs.values())
    todo = {key: job for key, job in study.jobs.items() if not store.has(key)}
    return {key: _seconds(job, history.get(_method(job, models)), study, models) for key, job in todo.items()}


def _models(jobs: Iterable[Job]) -> dict[str, str]:
    """Names of the models that are trained, by the keys of their jobs."""
    return {job.key: job.spec.name for job in jobs if job.kind == "fit"}


def _method(job: Job, models: Mapping[str, str]) -> tuple[str, str, str, str]:
    attacked = models.get(job.inputs.get("surrogate", ""), "") if job.kind == "attack" else ""
    return job.data.dataset, job.kind, job.spec.name, attacked


def _history(study: Study, store: Store) -> Mapping[tuple[str, str, str, str], Past]:
    records = [
        record for record in store.records() if record.job.data.dataset in study.sizes and record.job.kind in BYTES
    ]
    models = _models(record.job for record in records)
    found: dict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        found[_method(record.job, models)].append(record)
    return {
        name: Past(
            statistics.median(map(_seconds_per_step, records)),
            max(float(record.provenance["peak_megabytes"]) for record in records),
        )
        for name, records in found.items()
    }


def _seconds_per_step(record: Record) -> float:
    """CPU seconds per step of an attack, per epoch of a profiling run, whose settings say its length, and per other job."""
    steps = int(record.result.get("planned_steps", 1))
    if record.job.kind == "profile" and record.measurement is not None:
        steps = max(int(record.measurement["epochs"]), 1)
    return float(record.provenance["cpu_seconds"]) / steps


def _seconds(job: Job, past: Past | None, study: Study, models: Mapping[str, str]) -> float:
    if past is not None:
        return past.seconds * (_epochs(job.method) if job.kind == "profile" else study.steps.get(job.key, 1))
    size = study.sizes.get(job.data.dataset, UNKNOWN)
    scale = max(size.edges / CORA_EDGES, 0.1)
    if job.kind == "fit":
        adversarial = job.spec.name != SUBMISSION and ModelName.parse(job.spec.name).adversarial
        return scale * (ADVERSARIAL if adversarial else FIT)
    if job.kind == "attack" and job.spec.name in ENSEMBLE:
        return scale * ENSEMBLE[job.spec.name] * _slower(models.get(job.inputs.get("surrogate", ""), SUBMISSION))
    if job.kind == "attack":
        return scale * ATTACK_STEP * study.steps.get(job.key, 1)
    if job.kind == "certify":  # a forward pass per vote of a smoothed model, or per group
        return scale * SAMPLE * int(job.method.get("samples", job.method.get("groups", 30)))
    if job.kind == "profile":
        return _profiling_seconds(job.method, job.spec.name, size)
    return scale * SCORE


def _slower(victim: str) -> float:
    """How many times longer than a GCN a model is attacked."""
    if victim == SUBMISSION:
        return 1.0
    name = ModelName.parse(victim)
    return SLOW_VICTIM.get(name.base, 1.0) * (SLOW_PREPROCESSING if name.preprocess else 1.0)


def _profiling_seconds(method: Mapping[str, Any], model: str, size: DatasetSize) -> float:
    """CPU seconds of one profiling run; settings that a method does not say have the defaults of collections."""
    kind = "collection" if method.get("batch_norm", True) else "single"
    steps = max(size.graphs / method.get("batch", 64), 1)
    layers = method.get("depth", 5) * EPOCH_MODEL.get(model.casefold(), 1.0)
    epoch = EPOCH_STEP * steps + layers * (EPOCH_NODE[kind] * size.nodes + 2 * EPOCH_ENTRY * size.edges)
    return float(_epochs(method) * epoch)


def _epochs(method: Mapping[str, Any]) -> int:
    """Number of epochs that a profiling run is likely to have."""
    return int(min(method.get("epochs", 300), EPOCHS_OF_PATIENCE * (method.get("patience") or 10**9)))


def _megabytes(job: Job, past: Past | None, study: Study) -> float:
    if past is not None:
        return past.megabytes
    size = study.sizes.get(job.data.dataset, UNKNOWN)
    return WORKER_MEGABYTES + size.features * size.nodes * 4 * 6 / 2**20
