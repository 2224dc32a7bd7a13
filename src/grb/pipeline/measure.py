"""From a finished score to its measurement: everything a reader of the record needs to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grb.attack.build import preset_name
from grb.dataset import Dataset
from grb.evaluator.measurement import (
    AttackInfo,
    DatasetInfo,
    DefenseInfo,
    Knowledge,
    Measurement,
    MethodInfo,
    Outcome,
    pack_bits,
)
from grb.evaluator.scoring import Evaluation
from grb.pipeline.job import Job
from grb.pipeline.profile_job import column
from grb.pipeline.recipe import CORRUPTION
from grb.pipeline.record import Record

Read = Callable[[str], Record]


def measure(job: Job, dataset: Dataset, found: Evaluation, read: Read) -> Measurement:
    """The measurement of a score job.

    Args:
        job: The score job.
        dataset: What it was computed on.
        found: Its scores.
        read: From the key of a job to its record.
    """
    victim = read(job.inputs["model"])
    outcomes = {
        name: Outcome(
            {metric: values[name] for metric, values in found.values.items()},
            found.changed[name],
            len(found.correct[name]),
            pack_bits(found.correct[name].numpy()),
            found.invalid[name],
        )
        for name in found.correct
    }
    return Measurement(
        DatasetInfo(
            dataset.name, job.data.dataset, job.data.fingerprint, dataset.synthetic, dataset.task, job.data.split
        ),
        _defense(victim),
        _attack(job, dataset, victim, read),
        outcomes,
        metric=found.primary,
        objective="poisoning" if victim.job.data.edits else "evasion",
        study=job.study,
        threads=job.threads,
        device=job.device,
    )


def method_info(record: Record) -> MethodInfo:
    """The method behind a record of a fit or an attack."""
    job = record.job
    seconds = float(record.result.get("cpu_seconds", record.provenance.get("cpu_seconds", 0.0)))
    card = record.result.get("card")
    title = f"{card['name']} (submitted)" if isinstance(card, dict) else str(record.result.get("title", ""))
    return MethodInfo(job.spec.name, dict(job.spec.params), job.seed, job.version, record.key, seconds, title)


def _defense(record: Record) -> DefenseInfo:
    extra, result = record.job.extra, record.result
    return DefenseInfo(
        method_info(record),
        dict(result.get("settings", {})),
        int(result.get("parameters", 0)),
        extra.get("train_mode", "inductive"),
        str(extra.get("validation", "")),
    )


def _attack(job: Job, dataset: Dataset, victim: Record, read: Read) -> AttackInfo | None:
    if job.data.perturbations:
        chain = job.data.perturbations
        params: dict[str, Any] = dict(chain[0].params) if len(chain) == 1 else {}
        name = "+".join(spec.name for spec in chain)
        return AttackInfo(
            MethodInfo(name, params, job.seed, job.version, title=column(chain)), CORRUPTION, knowledge="none"
        )
    if not job.data.edits:
        return None
    record = read(job.data.edits[-1])
    source = record.job.inputs.get("surrogate")
    knowledge: Knowledge = "white-box" if source == victim.key else "transfer"
    result, threat = record.result, dict(record.job.extra["threat"])
    return AttackInfo(
        method_info(record),
        str(threat["kind"]),
        knowledge,
        None if source is None else method_info(read(source)),
        threat,
        dict(result["budget"]),
        record.job.extra.get("labels", "predicted"),
        int(result["steps"]),
        float(record.provenance["peak_megabytes"]),
        int(record.objects["edit"]["bytes"]),
        tuple(map(str, result["notes"])),
        preset_name(threat, dataset, record.job.mode or "full"),
    )
