"""Checks of jobs against their inputs, and of perturbed scores and profiles against the jobs that they are of."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from grb import serial
from grb.entries import entries
from grb.evaluator.measurement import CORRUPTION, DatasetInfo
from grb.pipeline.artefact_checks import differences, short
from grb.pipeline.gate import content_of
from grb.pipeline.job import Job
from grb.pipeline.record import Record

# kind of the job behind every input
_KINDS = {"model": "fit", "surrogate": "fit", "targets": "fit"}


def check_inputs(job: Job, read: Callable[[str], Record]) -> Iterator[str]:
    """Yield a sentence for every input that is not what a plan of grb gives a job.

    A victim of another split has seen today's test nodes in training, and an edit for other targets has other limits: every
    record by itself is what the code computes, and together they are no result.

    Args:
        job: The job.
        read: From the key of an input to its record; may refuse.
    """
    for role, key in (*job.inputs.items(), *(("edit", edit) for edit in job.data.edits)):
        yield from check_input(job, role, read(key).job)


def check_input(job: Job, role: str, given: Job) -> Iterator[str]:
    """Yield a sentence if one input is not what a plan of grb gives a job; its role is ``edit`` for a link of the chain."""
    kind = _KINDS.get(role, "attack")
    if given.kind != kind:
        yield f"its {role} is a {given.kind}, but a {kind} is needed"
    elif (given.data.fingerprint, given.data.split) != (job.data.fingerprint, job.data.split):
        yield f"its {role} is of another split or dataset than the {job.kind} itself"
    elif kind == "fit" and given.data.targets is not None:
        yield f"its {role} is of {given.data.targets.rule[:40]} targets, but a training has none"
    elif kind == "attack" and job.kind != "fit" and _aim(given) != _aim(job):
        yield f"its {role} is for other targets than the {job.kind} itself"
    elif kind == "attack" and job.mode is not None and given.mode != job.mode:
        yield f"its {role} is for {str(given.mode)[:20]} targets, but the {job.kind} is of {job.mode[:20]} ones"


def _aim(job: Job) -> tuple[object, str | None]:
    """How the targets of a job were chosen among the test nodes of its difficulty."""
    return job.data.targets, job.inputs.get("targets")


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
    if found.split not in (None, job.number_of("split")):
        yield f"its split is {found.split}, but its job is run {job.seed}"
    if found.training.get("vary", "all") != job.extra.get("vary", "all"):
        yield f"its runs vary {str(found.training.get('vary', 'all'))[:20]}, but its job varies {job.extra.get('vary', 'all')}"
    if found.model.casefold() != job.spec.name.casefold() and ":" in job.spec.name:
        yield f"its model is {found.model[:40]}, but its job says {job.spec.name[:40]}"
    if not found.best_epoch < max(found.epochs, 1):
        yield f"its best epoch is {found.best_epoch}, but it has {found.epochs} epochs"
    if found.curve and max(found.curve) > round(found.val_auroc, 5):
        yield f"its best validation AUROC is {found.val_auroc}, but its curve reaches {max(found.curve)}"


def check_dataset_name(info: DatasetInfo) -> Iterator[str]:
    """Yield a sentence if a dataset of the catalogue is called by the name of another."""
    catalogue = entries("dataset")
    if info.name != info.reference and info.name in catalogue and info.reference in catalogue:
        yield f"it calls its dataset {short(info.name)}, which is another one than {short(info.reference)}"


def describe_dataset(info: DatasetInfo) -> str:
    """All that scores on one dataset say of it, whatever its split and their targets."""
    own = {name: value for name, value in serial.to_dict(info).items() if name not in ("split", "targets")}
    return json.dumps(own, sort_keys=True)


def without_preset(attack: Any) -> Any:
    """An attack's description without the name of its limits, which only the dataset tells."""
    return {name: value for name, value in attack.items() if name != "preset"} if isinstance(attack, dict) else attack
