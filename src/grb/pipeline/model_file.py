"""Model files as inputs of jobs: the bytes of a file enter a store as the record of a training that nobody repeats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grb.model.base import GraphModel
from grb.pipeline.job import DataRef, Job
from grb.pipeline.provenance import provenance
from grb.pipeline.record import FILE, Record
from grb.pipeline.spec import Spec
from grb.pipeline.store import Store


def add_model_file(store: Store, path: Path, model: GraphModel, meta: Mapping[str, Any], data: DataRef) -> Job:
    """Put a model file into a store, and return the job that stands for it.

    The key follows from the file's bytes and the dataset; nothing that the file says is imported or run, now or later.

    Args:
        store: The store that gets the record and the bytes.
        path: The file.
        model: The model that was read from it.
        meta: What the file says about its training.
        data: The dataset it is used on.
    """
    weights = store.put(path.read_bytes(), ".safetensors")
    seed = meta.get("seed")
    extra = {"train_mode": "transductive"} if meta.get("train_mode") == "transductive" else {}
    job = Job(
        "fit",
        Spec(FILE, {"sha256": weights["sha256"]}),
        data,
        seed=seed if isinstance(seed, int) and seed >= 0 else 0,
        extra=extra,
        title=path.name,
    )
    if not store.has(job.key):
        result = {
            "title": path.stem,
            "model": model.title,
            "parameters": model.num_parameters,
            "settings": dict(model.params),
        }
        store.write(Record(job.key, job, result, {"weights": weights}, provenance(0.0, 0.0)))
    return job
