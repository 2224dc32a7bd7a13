"""The gate: whatever enters a store or is about to count passes here, on every way in.

=====================  ==================================================================================================
way in                 what is checked
=====================  ==================================================================================================
submit                 :func:`snapshot` (bytes read once), card, :func:`check_edit` or :func:`check_model_params`
store copy (merge)     ``Store.verify`` of the source, :func:`admit`, artefacts by sha256, what every record derives
published names        the sha256 of the bundle, then ``Store.verify`` and :func:`admit` of what is asked for
store verify           :func:`check_schema`, artefacts by sha256, what every record derives; nothing is imported
store verify --rerun   :func:`admit` of every record that is computed again, then every bit of it
Dask results           the key that was asked for, :func:`admit`, artefacts by sha256, what the record derives
ls, boards, inputs     :func:`check_schema`, by ``Store.read``; ``Store.write`` refuses what could not be read again
before a job           :func:`check_job`, inputs of its own dataset, split and difficulty
before a score         :func:`check_edit` against the threat model of the job, :func:`check_model_params`, private copies
plug-ins               :func:`check_edit` on a copy of the threat model that the plug-in never held; their records again, by the
                       process that never ran them
=====================  ==================================================================================================

``docs/trust.md`` has the whole table.
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb import serial
from grb.atomic import size_of
from grb.entries import entries
from grb.errors import DataError, GRBError, IntegrityError
from grb.evaluator.measurement import Measurement
from grb.metric.names import ALIASES, METRICS
from grb.names import is_import_path
from grb.pipeline.card import card_from
from grb.pipeline.job import Job
from grb.pipeline.record import CLOCKS, SUBMISSION, Record
from grb.pipeline.study import StudyInfo
from grb.pipeline.true_labels import check_true_labels
from grb.serial import Count
from grb.threat import threat_from_dict

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.graph import GraphEdit

# a job of ours has threads as machines do
MAX_THREADS = 1024
MAX_SEED = 2**63 - 1
MAX_NAME = 2_000
# layers, hops, heads and the like; parameters that are sizes are limited by the weights in the file
MAX_REPEATS = 100
WIDTHS = frozenset({"in_features", "out_features", "hidden_features", "rank", "neighbours", "learnt_pairs"})
MAX_ARTEFACT = 2**30
# a metric of one class, as in recall:1; any other name with a colon is an import path, also one whose module is all that exists
_DAY = re.compile(r"[0-9]{4}-[01][0-9]-[0-3][0-9]")
_METRIC_OF_CLASS = re.compile(r"([^:]+):[0-9]{1,9}")
# kinds of jobs that are about targets
AIMED = frozenset({"attack", "score", "certify"})
DEVICES = frozenset({"cpu", "cuda", "mps", "xpu"})


@dataclass(frozen=True)
class FitResult:
    """What the record of a fit holds."""

    parameters: Count
    epochs: Count = 0
    best_epoch: int = 0
    val_score: float | None = None
    stopped: str = ""
    settings: Mapping[str, Any] | None = None
    notes: tuple[str, ...] = ()
    card: Mapping[str, Any] | None = None
    model: str = ""
    title: str = ""


@dataclass(frozen=True)
class AttackOutcome:
    """What the record of an attack holds."""

    budget: Mapping[str, float]
    steps: Count
    notes: tuple[str, ...]
    seconds: float
    cpu_seconds: float
    planned_steps: Count = 1
    loss: tuple[float, ...] = ()
    kept: tuple[float, ...] = ()
    passes: Mapping[str, Count] | None = None
    trials: tuple[Mapping[str, Any], ...] = ()
    envelope: str = ""
    card: Mapping[str, Any] | None = None
    queries: Count | None = None


def check_schema(record: Record, shared: dict[Any, Any] | None = None) -> Record:
    """Refuse a record that does not hold what its kind holds: fields, types, threads, clocks.

    Its size and depth were limited when its bytes were read.

    Args:
        record: The record; what :func:`content_of` gives is kept with it.
        shared: What was read before, where there are many (:meth:`grb.evaluator.measurement.Measurement.from_dict`).
    """
    try:
        check_job(record.job)
        content_of(record, shared)
        for name in CLOCKS & record.provenance.keys():
            value = record.provenance[name]
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise DataError(f"{name} is {str(value)[:40]}, but a finite number of at least 0 is needed")
        date = record.provenance.get("date", "2000-01-01")
        if not isinstance(date, str) or not _DAY.fullmatch(date):
            raise DataError(f"date is {str(date)[:40]}, but a day such as 2026-01-31 is needed")
    except GRBError as error:
        reason = " ".join(str(error).split())[:300]
        raise IntegrityError(
            f"record {record.key[:12]} is not what grb writes: {reason}; remove it and run again"
        ) from None
    return record


def content_of(record: Record, shared: dict[Any, Any] | None = None) -> Any:
    """Read what the job of a record gave, once, as the value of its kind; anything else is refused.

    Args:
        record: The record.
        shared: What was read before, where there are many.
    """
    held = vars(record)
    if "content" not in held:
        held["content"] = _read_content(record, shared)
    return held["content"]


def _read_content(record: Record, shared: dict[Any, Any] | None) -> Any:
    kind = record.job.kind
    if kind == "score":
        found = Measurement.from_dict(record.measurement, shared)
        for name, outcome in found.outcomes.items():
            if found.metric not in outcome.values:
                raise DataError(f"it is ranked by {found.metric[:40]}, but has none for {name[:40]} targets")
        return found
    if kind == "certify":
        from grb.evaluator.certified import CertifiedOutcome

        return CertifiedOutcome.from_dict(record.result)
    if kind == "profile":
        from grb.taxonomy.measurement import ProfileMeasurement  # imports much more than most records need

        return ProfileMeasurement.from_dict(record.measurement)
    if kind == "study":
        info = StudyInfo.from_dict(record.result)
        for card in info.cards.values():  # authors are shown as one text
            card_from({**card, "authors": [card["authors"]] if "authors" in card else []})
        return info
    if record.result.get("card") is not None:
        card_from(record.result["card"])
    if kind == "fit":
        return serial.from_dict(FitResult, record.result, "the result of a fit")
    attacked = serial.from_dict(AttackOutcome, record.result, "the result of an attack")
    allowed = record.job.extra.get("threat", {}).get("queries")
    if attacked.queries is None and record.job.extra.get("knowledge") == "query":
        raise DataError("its attack asks its victim, but it does not say how often")
    if attacked.queries is not None and record.job.extra.get("knowledge") != "query":
        raise DataError(f"its attack asked {attacked.queries} times, but it is none that may ask")
    if attacked.queries is not None and (not isinstance(allowed, int) or attacked.queries > allowed):
        raise DataError(
            f"its attack asked {attacked.queries} times, but its threat model allows {allowed or 0} queries"
        )
    return attacked


def check_job(job: Job) -> None:
    """Refuse a job that no plan of grb has: too many threads, a strange device, limits that are none, two edits."""
    if not 1 <= job.threads <= MAX_THREADS:
        raise DataError(f"it asks for {job.threads} threads, but 1 to {MAX_THREADS} are possible")
    if not 0 <= job.seed <= MAX_SEED or job.version < 1:
        raise DataError(f"its seed is {job.seed} and its version {job.version}")
    if job.device not in DEVICES:
        raise DataError(f"its device is '{job.device[:20]}'")
    for name in (job.data.dataset, job.spec.name, *(spec.name for spec in job.data.perturbations)):
        if len(name) > MAX_NAME:
            raise DataError(f"it names something with {len(name)} characters")
    if job.kind == "profile" and job.data.edits:
        raise DataError("a profile is of a perturbed dataset, not of an attacked one; score the edit instead")
    if len(job.data.chain) > 1 and job.data.edits:
        raise DataError(
            f"its data is changed {len(job.data.chain)} times, but by at most one edit or by perturbations, so that limits hold"
        )
    if job.kind == "certify" and job.data.chain:
        raise DataError("a certificate is of the clean graph, but its data is changed")
    check_target_rule(job)
    if job.kind in ("attack", "certify"):
        threat_from_dict(job.extra.get("threat", {}))
    labels = job.extra.get("labels", "predicted")
    if labels not in ("predicted", "true"):
        raise DataError(f"its attack aims at {str(labels)[:20]} labels, but 'predicted' or 'true' is needed")
    if labels == "true":
        check_true_labels(job.spec.name, str(job.extra.get("knowledge")))


def check_target_rule(job: Job) -> None:
    """Refuse a choice of targets that no recipe makes: of a training, without a seed or number, or without its model."""
    own, chooser = job.data.targets, "targets" in job.inputs
    if own is None:
        if chooser:
            raise DataError("it has a model that chooses targets, but no rule by which")
        return
    if job.kind not in AIMED or job.data.perturbations or job.spec.name == SUBMISSION:
        raise DataError(
            f"it is a {job.kind} of {own.rule[:40]} targets, but only attacks and what they lead to have such"
        )
    if not own.rule or len(own.rule) > MAX_NAME or not 0 <= own.seed <= MAX_SEED:
        raise DataError(f"its targets are '{own.rule[:40]}' of seed {own.seed}")
    if own.by_margins != chooser:
        raise DataError(
            f"its targets are {own.rule[:40]}, which {'need a' if own.by_margins else 'need no'} model to choose"
        )


def named_code(job: Job) -> list[str]:
    """All code that a job names anywhere: dataset, chain, method, metrics, parameters at any depth.

    A name of the catalogue is not code. An import path is, also one into grb: any function of any package can be named.
    """
    methods = ((kind, job.spec.name) for kind in ("model", "attack", "certificate"))
    named = [("dataset", job.data.dataset), *methods]
    return _codes([job.to_dict()["data"], job.spec.to_dict(), dict(job.extra)], named)


def recipe_code(recipe: Mapping[str, Any]) -> list[str]:
    """All code that a recipe names anywhere, as :func:`named_code`; whoever plans it runs that.

    Args:
        recipe: As a study of a store holds it.
    """
    named, stack = [("dataset", recipe.get("dataset"))], [recipe]
    while stack:
        values = stack.pop()
        stack += [each for each in values.values() if isinstance(each, Mapping)]
        for kind, role in (
            ("model", "defenses"),
            ("model", "surrogates"),
            ("attack", "attacks"),
            ("attack", "white_box"),
            ("certificate", "certificates"),
        ):
            listed = values.get(role)
            for each in listed if isinstance(listed, list | tuple) else ():
                named.append((kind, each.get("name") if isinstance(each, Mapping) else each))
    return _codes([recipe], [(kind, name) for kind, name in named if isinstance(name, str)])


def _codes(values: list[Any], named: Iterable[tuple[str, str]]) -> list[str]:
    """Import paths anywhere in values, and the plug-ins that names lead to."""
    catalogued = {
        entry.target
        for kind in ("dataset", "model", "attack", "perturbation", "certificate")
        for entry in entries(kind).values()
    }
    found = []
    while values:
        item = values.pop()
        if isinstance(item, Mapping):
            values += item.values()
        elif isinstance(item, list | tuple):
            values += item
        elif isinstance(item, str):
            found += [part for part in item.split("+") if _is_code(part) and part not in catalogued]
    for kind, name in named:
        known = entries(kind).get(name)  # a plug-in's name leads to the plug-in
        if known is not None and not known.target.startswith("grb."):
            found.append(known.target)
    return sorted(set(found))


def _is_code(text: str) -> bool:
    """Whether a text is an import path: importing its module is enough to run it, whatever is said behind the colon."""
    metric = _METRIC_OF_CLASS.fullmatch(text)
    return is_import_path(text) and (metric is None or metric[1].lower().replace("_", "-") not in {*METRICS, *ALIASES})


def admit(record: Record, *, trust_code: bool = False) -> Record:
    """Let a record in that may come from anywhere.

    Args:
        record: As it was read; its bytes were compared with its key and hash.
        trust_code: Whether it may name code; any function of any installed package can be named.
    """
    check_schema(record)
    if trust_code:
        return record
    recipe = record.result.get("recipe") if record.job.kind == "study" else None
    check_names(named_code(record.job), record.job.data.dataset, f"record {record.key[:12]}")
    if isinstance(recipe, Mapping) and recipe:
        check_recipe(recipe, f"record {record.key[:12]}")
    return record


def check_recipe(recipe: Mapping[str, Any], what: str) -> None:
    """Refuse a recipe that names code or a file of data; it stands in a store, which may come from anywhere."""
    check_names(recipe_code(recipe), str(recipe.get("dataset")), what)


def check_names(code: list[str], dataset: str, what: str) -> None:
    """Refuse code, and a file as dataset, of an untrusted author.

    Args:
        code: What :func:`named_code` or :func:`recipe_code` found.
        dataset: Name of the dataset.
        what: What names them, for the refusal.
    """
    if code:
        raise IntegrityError(
            f"{what} names code '{code[0][:60]}' instead of a catalogued method; it is used only if you "
            "trust it (trust_code, --trust-code)"
        )
    if ("/" in dataset or "\\" in dataset) and not is_import_path(dataset):
        raise IntegrityError(
            f"{what} names the file '{dataset[:60]}' as its dataset; it is read only if you trust it "
            "(trust_code, --trust-code)"
        )


# artefacts


@dataclass(frozen=True)
class Snapshot:
    """A file as it was read: nobody else can change what is checked and used from now on."""

    path: Path
    data: bytes
    sha256: str


@contextmanager
def snapshot(path: str | Path) -> Iterator[Snapshot]:
    """Read a file once; checks and use see the same bytes, in a private copy that ends with the context."""
    source = Path(path)
    try:
        size = size_of(source)
        if size > MAX_ARTEFACT:
            raise DataError(f"{source} has more than {MAX_ARTEFACT} bytes, which no submission needs")
        with source.open("rb") as stream:
            data = stream.read(MAX_ARTEFACT + 1)
    except OSError as error:
        raise DataError(f"cannot read {source}: {error.strerror}; check the path") from None
    with tempfile.TemporaryDirectory(prefix="grb-gate-") as folder:
        copy = Path(folder) / source.name
        copy.write_bytes(data)
        yield Snapshot(copy, data, hashlib.sha256(data).hexdigest())


def check_edit(edit: GraphEdit, job: Job, dataset: Dataset) -> dict[str, float]:
    """Count an edit against the threat model of the attack job that made it; the budget it uses.

    The threat model is read from the job's values, so that no method has ever held this object.
    """
    threat = threat_from_dict(dict(job.extra["threat"]))
    targets = dataset.test_ids(job.mode or "full")
    return {name: float(value) for name, value in threat.check(dataset.graph, edit, targets).items()}


def check_model_params(params: Mapping[str, Any], what: object) -> None:
    """Refuse a submitted model that repeats something very often: that costs time which no weight pays for."""
    for key, value in params.items():
        count = len(value) if isinstance(value, list | tuple) else value
        if isinstance(count, int) and count > MAX_REPEATS and (count is not value or key not in WIDTHS):
            found = f"{count} numbers as {key}" if count is not value else f"{key}={count}"
            raise DataError(f"{what} asks for {found}, but at most {MAX_REPEATS} are allowed in a submission")


def is_submitted(record: Record) -> bool:
    """Whether a record's artefact was submitted instead of computed."""
    return record.job.spec.name == SUBMISSION
