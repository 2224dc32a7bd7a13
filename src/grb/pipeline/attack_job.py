"""What an attack job gets beyond its method, and what its record keeps of the way to the edit."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from grb.dataset import Dataset
from grb.errors import DataError
from grb.pipeline.job import Job
from grb.pipeline.spec import digest
from grb.pipeline.true_labels import check_true_labels

# points of a loss or accuracy trace that a record keeps
TRACE = 50


def stream_seed(job: Job) -> int:
    """Seed of an attack's random numbers: the job's own, mixed with the name of its stream if it has one."""
    stream = job.extra.get("stream")
    return job.seed if stream is None else int(digest({"stream": stream, "seed": job.seed})[:15], 16)


def true_labels(job: Job, dataset: Dataset, attack: Any) -> Tensor | None:
    """Labels of the targets for the evaluator's own white-box attacks; no other attack may aim at them."""
    if job.extra.get("labels", "predicted") == "predicted":
        return None
    check_true_labels(job.spec.name, str(job.extra.get("knowledge")))
    if not type(attack).__module__.startswith("grb.attack."):
        raise DataError(f"attack '{job.spec.name}' is no attack of grb; only those may aim at true labels")
    return dataset.labels[dataset.test_ids(job.mode or "full")]


def trace(values: list[float]) -> list[float]:
    """At most :data:`TRACE` points of a history, first and last among them; None stands for what is not finite."""
    if len(values) > TRACE:
        values = [values[round(index * (len(values) - 1) / (TRACE - 1))] for index in range(TRACE)]
    return [round(float(value), 6) for value in values if np.isfinite(value)]
