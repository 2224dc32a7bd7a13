"""Recompute what a store has and compare bits: the proof that a number is what its record says."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from grb.errors import IntegrityError
from grb.evaluator.certified import CertifiedOutcome
from grb.pipeline import gate
from grb.pipeline.job import KINDS
from grb.pipeline.outcome_checks import packed_bits
from grb.pipeline.provenance import other_environment
from grb.pipeline.record import NOT_COMPARED, NOT_COMPUTED, Record, without_clocks
from grb.pipeline.store import Store
from grb.pipeline.study import closure
from grb.pipeline.worker import Worker

# another CPU, library or number of threads may round otherwise: so much of a score may differ then, and of a training
SCORE_TOLERANCE = 0.01
BITS_TOLERANCE = 0.02
TRAINING_TOLERANCE = 0.05
# as JSON within the JSON of a file's header; compared are bytes, so that no second key of the same name hides behind it
_VERSION = re.compile(rb'\\"version\\": \\"[^"\\]{1,40}\\"')
Verdict = Literal["equal", "rounding", "different"]


@dataclass(frozen=True)
class Comparison:
    """A job that was computed again.

    Args:
        key: Key of the record.
        label: What it is, in a few words.
        difference: What was found to differ; empty if every bit is equal.
        verdict: ``equal``; ``rounding`` if the record was made in another environment (CPU, versions, threads) and differs
            within the tolerances; ``different`` otherwise, which is how a forged record shows.
        scores: For a score, what the record claims and what was found here, by difficulty.
    """

    key: str
    label: str
    difference: str
    verdict: Verdict = "equal"
    scores: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def equal(self) -> bool:
        """Whether every bit is equal."""
        return not self.difference


class _Dry(Store):
    """A store that is only read: artefacts are hashed and forgotten; of weights, also what they hold is hashed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.contents: dict[str, str] = {}

    def put(self, data: bytes, suffix: str) -> dict[str, Any]:
        sha256 = hashlib.sha256(data).hexdigest()
        if suffix == ".safetensors":
            self.contents[sha256] = _content(data)
        return {"sha256": sha256, "bytes": len(data), "suffix": suffix}

    def take(self, write: Callable[[Path], Any], suffix: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"artefact{suffix}"
            write(path)
            return self.put(path.read_bytes(), suffix)

    def write(self, record: Record) -> None:
        raise AssertionError("a rerun writes nothing")


def choose(store: Store, count: int, *, seed: int) -> list[str]:
    """Return the keys of random scores and certificates, without repetition; a sample that a forger predicts proves nothing.

    Args:
        store: The store.
        count: Number of them; all if there are fewer.
        seed: Random seed of the sample; take one that nobody could know when the records were written.
    """
    scores = [record.key for record in store.records() if record.job.kind in ("score", "certify")]
    order = torch.randperm(len(scores), generator=torch.Generator().manual_seed(seed)).tolist()
    return [scores[index] for index in order[:count]]


def rerun(
    store: Store,
    keys: Iterable[str],
    *,
    data_dir: str | None = None,
    trust_code: bool = False,
    on_job: Callable[[Comparison], None] = lambda comparison: None,
) -> list[Comparison]:
    """Compute records again, and all that they were made of; every job takes its inputs from the store.

    Args:
        data_dir: Where the datasets' files are, if not on the usual path.
        trust_code: Whether to import what a record names as ``package.module:Class``. A store may come from anywhere, and
            any function of any installed package can be named.
    """
    jobs = {
        record.key: replace(record.job, data=replace(record.job.data, data_dir=data_dir)) for record in store.records()
    }
    needed = sorted(set(closure(jobs, keys)), key=lambda key: (KINDS.index(jobs[key].kind), key))
    for key in needed:  # also what is not computed again, but used: a submitted model may name code
        gate.admit(store.read(key), trust_code=trust_code)
    wanted = [key for key in needed if jobs[key].spec.name not in NOT_COMPUTED]
    dry = _Dry(store.path)
    worker = Worker(dry)
    found = []
    for key in wanted:
        before, after = store.read(key), worker.compute(jobs[key])
        comparison = compare(before, _in_the_same_file(before, after, dry))
        on_job(comparison)
        found.append(comparison)
    return found


def _in_the_same_file(before: Record, after: Record, dry: _Dry) -> Record:
    """The record computed again, with the file of the old one where both hold the same weights.

    A file of weights names the version of grb that wrote it, so that the same weights are other bytes after an update.
    """
    same = {
        name: entry
        for name, entry in before.objects.items()
        if (made := after.objects.get(name)) is not None
        and made["sha256"] != entry["sha256"]
        and made["sha256"] in dry.contents
        and dry.contents[made["sha256"]] == _content(dry.load(before, name))
    }
    return replace(after, objects={**after.objects, **same}) if same else after


def _content(data: bytes) -> str:
    """The sha256 of a safetensors file without the version of grb that wrote it and the padding that depends on it."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = _VERSION.sub(b"", data[8:end], count=1).rstrip(b" ")
    return hashlib.sha256(hashlib.sha256(header).digest() + data[end:]).hexdigest()


def compare(before: Record, after: Record) -> Comparison:
    """Compare a record with the same job computed again."""
    difference = _difference(before, after)
    verdict: Verdict = "equal"
    if difference:
        other = other_environment(before.provenance, after.provenance)
        verdict = "rounding" if other and _within_tolerance(before, after) else "different"
        difference += f" (made with {other})" if other else ""
    return Comparison(before.key, before.job.label, difference, verdict, dict(_scores(before, after)))


def _difference(before: Record, after: Record) -> str:
    for name, entry in before.objects.items():
        if after.objects.get(name, {}).get("sha256") != entry["sha256"]:
            return f"other bytes of its {name}"
    first, second = ({**_flat(each.result), **_flat(each.measurement or {})} for each in (before, after))
    for name in sorted(first.keys() | second.keys()):
        old, new = first.get(name), second.get(name)
        if old != new:
            return f"its {name} is {str(new)[:60]}, but the record says {str(old)[:60]}"
    return ""


def _flat(values: Mapping[str, Any], start: str = "") -> dict[str, Any]:
    """Nested values by their path, as in ``outcomes full changed``, without what is not compared."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name not in NOT_COMPARED:
            nested = isinstance(value, Mapping)
            found |= _flat(value, f"{start}{name} ") if nested else {f"{start}{name}": without_clocks(value)}
    return found


def _scores(before: Record, after: Record) -> Iterator[tuple[str, tuple[float, float]]]:
    if before.job.kind == "score" and before.measurement and after.measurement:
        metric = after.measurement["metric"]
        for name, outcome in after.measurement["outcomes"].items():
            claimed = before.measurement.get("outcomes", {}).get(name, {}).get("values", {}).get(metric)
            if isinstance(claimed, int | float):
                yield name, (float(claimed), outcome["values"][metric])


def _within_tolerance(before: Record, after: Record) -> bool:
    """Whether rounding on another machine explains a difference; a result that has other parts is never explained."""
    try:
        if before.job.kind == "fit":
            old, new = before.result, after.result
            near = abs(old["val_score"] - new["val_score"]) <= TRAINING_TOLERANCE
            return near and all(old[name] == new[name] for name in ("parameters", "settings"))
        if before.job.kind == "attack":
            return bool(before.result["budget"] == after.result["budget"])
        if before.job.kind == "certify":
            return _near_certificates(*(CertifiedOutcome.from_dict(each.result) for each in (before, after)))
        if before.job.kind == "score":
            return _near_scores(before.measurement or {}, after.measurement or {})
        return abs((before.measurement or {})["auroc"] - (after.measurement or {})["auroc"]) <= TRAINING_TOLERANCE
    except (KeyError, TypeError, AttributeError, IntegrityError):
        return False


def _near_certificates(old: CertifiedOutcome, new: CertifiedOutcome) -> bool:
    same = all(getattr(old, name) == getattr(new, name) for name in ("certificate", "targets", "refusal", "unit"))
    return same and abs(old.accuracy() - new.accuracy()) <= SCORE_TOLERANCE


def _near_scores(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    before, after = without_clocks(before), without_clocks(after)
    if any(before[name] != after[name] for name in after if name != "outcomes"):
        return False
    if before["outcomes"].keys() != after["outcomes"].keys():
        return False
    for name, new in after["outcomes"].items():
        old = before["outcomes"][name]
        if old["targets"] != new["targets"] or old["values"].keys() != new["values"].keys():
            return False
        pairs = [
            (old["changed"], new["changed"]),
            *((old["values"][each], new["values"][each]) for each in new["values"]),
        ]
        bits = packed_bits(old["correct"], old["targets"]) ^ packed_bits(new["correct"], new["targets"])
        if (
            max(abs(one - two) for one, two in pairs) > SCORE_TOLERANCE
            or bits.bit_count() > BITS_TOLERANCE * new["targets"]
        ):
            return False
    return True
