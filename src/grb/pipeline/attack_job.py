"""What an attack job gets beyond its method, and what its record keeps of the way to the edit."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from grb.attack.auto.ensemble import EdgeAutoAttack, GraphAutoAttack
from grb.dataset import Dataset
from grb.errors import DataError
from grb.pipeline.job import Job
from grb.pipeline.spec import digest

# points of a loss or accuracy trace that a record keeps
TRACE = 50


def stream_seed(job: Job) -> int:
    """Seed of an attack's random numbers: the job's own, mixed with the name of its stream if it has one."""
    stream = job.extra.get("stream")
    return job.seed if stream is None else int(digest({"stream": stream, "seed": job.seed})[:15], 16)


def true_labels(job: Job, dataset: Dataset, attack: Any) -> Tensor | None:
    """Labels of the targets for the evaluator's own ensemble; no other attack may aim at them."""
    if job.extra.get("labels", "predicted") == "predicted":
        return None
    if type(attack) not in (GraphAutoAttack, EdgeAutoAttack):
        raise DataError(f"attack '{job.spec.name}' may not aim at true labels; that is for the evaluator's ensemble")
    return dataset.labels[dataset.test_ids(job.mode or "full")]


def trace(values: list[float]) -> list[float]:
    """At most :data:`TRACE` points of a history, first and last among them; None stands for what is not finite."""
    if len(values) > TRACE:
        values = [values[round(index * (len(values) - 1) / (TRACE - 1))] for index in range(TRACE)]
    return [round(float(value), 6) for value in values if np.isfinite(value)]
