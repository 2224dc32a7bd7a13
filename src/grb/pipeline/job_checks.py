"""Checks of perturbed scores and of profiles against the jobs that they are of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from grb import serial
from grb.evaluator.measurement import CORRUPTION
from grb.pipeline.artefact_checks import differences
from grb.pipeline.gate import content_of
from grb.pipeline.job import Job
from grb.pipeline.record import Record


def check_perturbation(job: Job, found: Any) -> Iterator[str]:
    """A perturbation is described without being built: its name may lead to code that nobody trusts."""
    chain = job.data.perturbations
    expected = {
        "name": "+".join(spec.name for spec in chain),
        "params": serial.to_dict(chain[0].params) if len(chain) == 1 else {},
        "seed": job.seed,
        "version": job.version,
        "key": "",
    }
    yield from differences("attack", expected, {name: found["method"][name] for name in expected})
    yield from differences("scenario", CORRUPTION, found["scenario"])
    yield from differences("knowledge", "none", found["knowledge"])
    if not job.third_party_code:
        from grb.pipeline.profile_job import column

        yield from differences("title", column(chain), found["method"]["title"])


def check_profile(record: Record) -> Iterator[str]:
    """Yield a sentence for everything that a profile says and its job contradicts."""
    job, found = record.job, content_of(record)
    made = {
        "reference": found.reference,
        "fingerprint": found.fingerprint,
        "seed": found.seed,
        "perturbations": [{"name": each.name, "params": serial.to_dict(each.params)} for each in found.perturbations],
    }
    expected = {
        "reference": job.data.dataset,
        "fingerprint": job.data.fingerprint,
        "seed": job.seed,
        "perturbations": [spec.to_dict() for spec in job.data.perturbations],
    }
    yield from differences("profile", expected, made)
    if found.split not in (None, job.seed):
        yield f"its split is {found.split}, but its job is run {job.seed}"
    if found.model.casefold() != job.spec.name.casefold() and ":" in job.spec.name:
        yield f"its model is {found.model[:40]}, but its job says {job.spec.name[:40]}"
    if not found.best_epoch < max(found.epochs, 1):
        yield f"its best epoch is {found.best_epoch}, but it has {found.epochs} epochs"
    if found.curve and max(found.curve) > round(found.val_auroc, 5):
        yield f"its best validation AUROC is {found.val_auroc}, but its curve reaches {max(found.curve)}"
