"""From a finished score to its measurement: everything a reader of the record needs to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from grb.evaluator.measurement import (
    CORRUPTION,
    AttackInfo,
    DatasetInfo,
    DefenseInfo,
    Knowledge,
    Measurement,
    MethodInfo,
    Outcome,
    TargetInfo,
    pack_bits,
    submission_label,
)
from grb.pipeline.job import Job
from grb.pipeline.record import Record

if TYPE_CHECKING:  # whoever only checks a record needs no torch
    from grb.dataset import Dataset
    from grb.evaluator.scoring import Evaluation

Read = Callable[[str], Record]


def measure(
    job: Job, dataset: Dataset, found: Evaluation, read: Read, targets: TargetInfo | None = None
) -> Measurement:
    """The measurement of a score job.

    Args:
        job: The score job.
        dataset: What it was computed on.
        found: Its scores.
        read: From the key of a job to its record.
        targets: Which of the test nodes it is about; None for all of a difficulty.
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
        dataset_info(job, dataset, targets),
        defense_info(victim),
        attack_info(job, victim, read, dataset),
        outcomes,
        metric=found.primary,
        objective="poisoning" if victim.job.data.edits else "evasion",
        study=job.study,
        threads=job.threads,
        device=job.device,
    )


def dataset_info(job: Job, dataset: Dataset, targets: TargetInfo | None = None) -> DatasetInfo:
    """What a job was computed on, and which of the test nodes it was about."""
    about = dataset.name, job.data.dataset, job.data.fingerprint, dataset.synthetic, dataset.task, job.data.split
    return DatasetInfo(*about, targets)


def method_info(record: Record) -> MethodInfo:
    """The method behind a record of a fit or an attack."""
    job = record.job
    seconds = float(record.result.get("cpu_seconds", record.provenance.get("cpu_seconds", 0.0)))
    card = record.result.get("card")
    title = str(record.result.get("title", ""))
    if isinstance(card, dict):
        title = submission_label(card["name"], job.version)
    return MethodInfo(job.spec.name, dict(job.spec.params), job.seed, job.version, record.key, seconds, title)


def defense_info(record: Record) -> DefenseInfo:
    """The victim behind a score, as the record of its fit describes it."""
    extra, result = record.job.extra, record.result
    return DefenseInfo(
        method_info(record),
        dict(result.get("settings", {})),
        int(result.get("parameters", 0)),
        extra.get("train_mode", "inductive"),
        str(extra.get("validation", "")),
    )


def attack_info(job: Job, victim: Record, read: Read, dataset: Dataset | None = None) -> AttackInfo | None:
    """The attack or perturbation behind a score, as the records of its inputs describe it; None for the clean graph.

    Args:
        job: The score job.
        victim: Record of the victim's fit.
        read: From the key of a job to its record.
        dataset: What it was computed on; without it, ``preset`` is left empty.
    """
    if job.data.perturbations:
        from grb.pipeline.profile_job import column

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
    own = record.job.extra["knowledge"] == "query"
    knowledge: Knowledge = ("query" if own else "white-box") if source == victim.key else "transfer"
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
        "" if dataset is None else _preset(threat, dataset, record.job),
        dict(result.get("passes") or {}),
        tuple(result.get("trials", ())) if knowledge == "white-box" else (),
        result.get("queries"),
    )


def _preset(threat: dict[str, Any], dataset: Dataset, job: Job) -> str:
    from grb.attack.build import preset_name

    return preset_name(threat, dataset, job.mode or "full")
