"""What a record derives, computed again: a number that contradicts what it was made of was not written by grb.

Nothing here imports torch or runs what a record names.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from grb import serial
from grb.errors import DataError, GRBError, IntegrityError
from grb.evaluator.measurement import CORRUPTION, Measurement, read_outcome
from grb.pipeline.edit_budget import check_edit
from grb.pipeline.entry import entry_identity, record_name
from grb.pipeline.job import Job
from grb.pipeline.measure import attack_info, defense_info
from grb.pipeline.outcome_checks import check_outcome, packed_bits
from grb.pipeline.record import FILE, NOT_COMPUTED, SUBMISSION, Record, is_key, without_clocks
from grb.pipeline.spec import digest
from grb.pipeline.study import StudyInfo

Read = Callable[[str], Record]
Locate = Callable[[Record, str], Path]
MAX_HEADER = 16 * 2**20
# fields of a study that repeat its recipe
_OF_RECIPE = {
    **{name: name for name in ("name", "scenario", "objective", "train_mode", "repeats", "victims", "paper")},
    "difficulties": "modes",
    "quick": "is_quick",
    "training": "training",
}


def check_derived(record: Record, read: Read, locate: Locate) -> list[str]:
    """Compare everything that a record derives with what it derives it from.

    Args:
        record: The record to check.
        read: From the key of a job to its record; may refuse.
        locate: From a record and the name of an artefact to the path of its file.

    Returns:
        One sentence for every contradiction.
    """
    return DerivedChecks(read, locate).check(record)


class DerivedChecks:
    """Checks of many records of one store, which share inputs and must agree with one another.

    Args:
        read: From the key of a job to its record; may refuse.
        locate: From a record and the name of an artefact to the path of its file.
    """

    def __init__(self, read: Read, locate: Locate) -> None:
        self.read, self.locate = read, locate
        self._victims: dict[str, dict[str, Any] | None] = {}
        self._attacks: dict[tuple[str, bool], dict[str, Any] | None] = {}
        self._sources: dict[str, str | None] = {}
        self._checked: dict[str, tuple[str, str]] = {}
        self._studies: dict[str, tuple[str, tuple[str, ...]]] = {}
        self._clean: dict[str, dict[str, tuple[int, int]]] = {}
        self._poisoned: dict[str, bool] = {}
        self._entries: dict[tuple[str, ...], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._names: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
        self._facts: dict[tuple[Any, ...], dict[str, list[str]]] = defaultdict(dict)

    def check(self, record: Record) -> list[str]:
        """Return one sentence for every contradiction in a record; none if it is consistent."""
        self._checked[record.key] = sys.intern(record.job.kind), sys.intern(record.job.data.fingerprint)
        if record.job.spec.name == SUBMISSION:
            identity = entry_identity(record.job)
            self._entries[identity][record.job.version].append(record.key)
            self._names[identity].setdefault(record_name(record.job), record.key)
        checks = {
            "fit": self._check_fit,
            "attack": self._check_attack,
            "score": self._check_score,
            "profile": _check_profile,
            "study": self._check_study,
        }
        try:
            return [*_check_common(record), *checks[record.job.kind](record)]
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, GRBError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            return [f"it is not what a {record.job.kind} gives ({' '.join(reason.split())[:120]})"]

    def disagreements(self) -> Iterator[tuple[str, str]]:
        """Yield key and sentence of every record that contradicts most of its kind."""
        for (what, *_), values in self._facts.items():
            if len(values) < 2:
                continue
            usual = max(values, key=lambda text: len(values[text]))
            for text, keys in values.items():
                if text != usual:
                    other = values[usual][0][:12]
                    for key in keys:
                        yield (
                            key,
                            f"its {what} is {text[:80]}, but record {other} of the same kind says {usual[:80]}",
                        )

        for study, (fingerprint, scores) in self._studies.items():
            for key in scores:  # those that are planned are not there yet
                if self._checked.get(key, ("score", fingerprint)) != ("score", fingerprint):
                    yield study, f"it names record {key[:12]}, which is no score on its dataset"
        for versions in self._entries.values():
            for keys in versions.values():
                for key in keys[1:]:
                    yield key, f"it has the name and version of submission {keys[0][:12]}; boards would mix the two"
        for names in self._names.values():
            first, *others = names
            for name in others:
                yield names[name], f"its name '{name[:64]}' differs from '{first[:64]}' only by case or spaces"

    def _agree(self, record: Record, what: str, about: tuple[Any, ...], value: Any) -> None:
        subject = (what, *about)
        values = self._facts[subject]
        values.setdefault(value if isinstance(value, str) else repr(value), []).append(record.key)

    def _agree_on_dataset(self, record: Record, info: Mapping[str, Any]) -> None:
        about = {name: value for name, value in info.items() if name != "split"}
        self._agree(record, "dataset", (record.job.data.fingerprint,), json.dumps(about, sort_keys=True))

    # scores

    def _check_score(self, record: Record) -> Iterator[str]:
        job, found = record.job, record.measurement
        if found is None or record.result:
            yield "a score holds a measurement and nothing else"
            return
        outcomes = found["outcomes"]
        if found.keys() != _MEASUREMENT or found["format"] != 1:
            Measurement.from_dict(found)
        victim, attack = job.inputs["model"], job.data.edits[-1] if job.data.edits else None
        yield from _differences("defense", self._victim(victim), found["defense"])
        yield from self._compare_attack(job, victim, attack, found["attack"])
        own = {"reference": job.data.dataset, "fingerprint": job.data.fingerprint, "split": job.data.split}
        yield from _differences("dataset", own, {name: found["dataset"][name] for name in own})
        poisoned = self._poisoned.get(victim)
        told = {"threads": job.threads, "device": job.device}
        if poisoned is not None:
            told["objective"] = "poisoning" if poisoned else "evasion"
        yield from _differences("", told, {name: found[name] for name in told})
        self._agree_on_dataset(record, found["dataset"])
        self._agree(record, "metric", (job.data.fingerprint,), found["metric"])
        yield from self._check_outcomes(record, found["metric"], outcomes)

    def _check_outcomes(self, record: Record, metric: str, outcomes: Mapping[str, Any]) -> Iterator[str]:
        job = record.job
        if not outcomes or (job.mode is not None and list(outcomes) != [job.mode]):
            yield f"it has scores of {', '.join(outcomes) or 'nothing'}, but its job is of difficulty {job.mode}"
        wanted = {metric, *job.extra.get("metrics", ())}
        clean = self._clean_bits(job) if job.data.chain else None
        for name, values in outcomes.items():
            outcome = read_outcome(values)
            if outcome.values.keys() != wanted:
                yield f"its metrics are {', '.join(sorted(outcome.values))}, but {', '.join(sorted(wanted))} were asked for"
            bits = packed_bits(outcome.correct, outcome.targets)
            self._agree(record, f"number of {name} targets", (job.data.fingerprint, job.data.split), outcome.targets)
            yield from check_outcome(name, outcome, bits, metric, None if clean is None else clean.get(name))
            if not job.data.chain and outcome.changed:
                yield f"its changed of {name} is {outcome.changed}, but nothing is changed in a clean graph"

    def _victim(self, key: str) -> dict[str, Any] | None:
        if key not in self._victims:
            record = self._get(key)
            self._victims[key] = None if record is None else serial.to_dict(defense_info(record))
            if record is not None:
                self._poisoned[key] = bool(record.job.data.edits)
        return self._victims[key]

    def _compare_attack(self, job: Job, victim: str, attack: str | None, found: Any) -> Iterator[str]:
        if job.data.perturbations:
            yield from _check_perturbation(job, found)
            return
        if attack is None:
            if found is not None:
                yield "it names an attack, but its job is on the clean graph"
            return
        if attack not in self._sources:
            record = self._get(attack)
            self._sources[attack] = None if record is None else record.job.inputs.get("surrogate", "")
        white_box = self._sources[attack] == victim
        if (attack, white_box) not in self._attacks:
            owner = None if self._sources[attack] is None else self._get(victim)
            described = None if owner is None else attack_info(job, owner, self.read)
            self._attacks[attack, white_box] = None if described is None else _without_preset(serial.to_dict(described))
        yield from _differences("attack", self._attacks[attack, white_box], _without_preset(found))

    def _clean_bits(self, job: Job) -> dict[str, tuple[int, int]]:
        """Packed bits and number of targets of the same victim on the clean graph, by difficulty; empty if not there."""
        if job.inputs["model"] not in self._clean:
            extra = {name: value for name, value in job.extra.items() if name == "metrics"}
            alone = replace(job, data=replace(job.data, chain=()), mode=None, seed=0, version=1, extra=extra)
            record = self._get(alone.key)
            outcomes = {} if record is None or record.measurement is None else record.measurement["outcomes"]
            self._clean[job.inputs["model"]] = {
                name: (packed_bits(each["correct"], each["targets"]), each["targets"])
                for name, each in outcomes.items()
            }
        return self._clean[job.inputs["model"]]

    def _get(self, key: str) -> Record | None:
        """A record that is needed here; one that is missing or damaged is reported under its own key."""
        try:
            return self.read(key)
        except (DataError, IntegrityError):
            return None

    # what scores are made of

    def _check_fit(self, record: Record) -> Iterator[str]:
        job, result = record.job, record.result
        if set(record.objects) != {"weights"} or record.measurement is not None:
            yield "a fit holds weights and no measurement"
            return
        header = _safetensors_header(self.locate(record, "weights"))
        held = sum(_numel(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
        if not 0 <= result["parameters"] <= held:
            yield f"its parameters are {result['parameters']}, but its weights have {held} numbers"
        if job.spec.name in NOT_COMPUTED:
            yield from _check_sent(record, "weights")
            return
        yield from _check_meta(job, json.loads(header["__metadata__"]["grb"])["meta"], "weights")
        if not 0 <= result["best_epoch"] <= result["epochs"]:
            yield f"its best epoch is {result['best_epoch']}, but it has {result['epochs']} epochs"
        planned = job.method.get("settings")
        if isinstance(planned, Mapping):
            told = {**planned, **planned.get("params", {})}
            for name, value in result["settings"].items():
                if name not in told:  # at its default, which jobs leave out and which all of them share
                    self._agree(record, f"default of {name}", (planned.get("type"),), value)
                elif told[name] != value:
                    yield f"its setting {name} is {_short(value)}, but its job says {_short(told[name])}"

    def _check_attack(self, record: Record) -> Iterator[str]:
        job, result = record.job, record.result
        if set(record.objects) != {"edit"} or record.measurement is not None:
            yield "an attack holds an edit and no measurement"
            return
        meta, sentences = check_edit(self.locate(record, "edit"), job.extra["threat"], result["budget"])
        yield from sentences
        for name in ("loss", "kept"):
            if len(result[name]) > result["steps"]:
                yield f"it has {len(result[name])} values of {name}, but {result['steps']} steps"
        if job.spec.name in NOT_COMPUTED:
            yield from _check_sent(record, "edit")
        else:
            yield from _check_meta(job, meta, "edit")

    def _check_study(self, record: Record) -> Iterator[str]:
        job, info = record.job, StudyInfo.from_dict(record.result)
        scores = info.scores
        bad = next((key for key in scores if not is_key(key)), None)
        if bad is not None:
            yield f"it names the score '{bad[:40]}', which is no key"
            return
        told = {"name": job.spec.name, **job.spec.params, "reference": job.data.dataset}
        made = {
            "name": info.name,
            "scores": digest(sorted(scores)),
            "title": info.title,
            "reference": info.dataset.reference,
        }
        yield from _differences("study", told, made)
        yield from _differences("fingerprint", job.data.fingerprint, info.dataset.fingerprint)
        self._agree_on_dataset(record, serial.to_dict(info.dataset))
        for name, there in _OF_RECIPE.items() if info.recipe else ():
            yield from _differences(name, info.recipe[there], serial.to_dict(getattr(info, name)))
        self._studies[record.key] = job.data.fingerprint, scores


_MEASUREMENT = frozenset({"format", *Measurement.__dataclass_fields__})


def _check_common(record: Record) -> Iterator[str]:
    for name in ("seconds", "cpu_seconds", "peak_megabytes"):
        value = record.provenance.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            yield f"its {name} are {_short(value)}, but a number of at least 0 is needed"


def _without_preset(attack: Any) -> Any:
    """An attack's description without the name of its limits, which only the dataset tells."""
    return {name: value for name, value in attack.items() if name != "preset"} if isinstance(attack, dict) else attack


def _check_perturbation(job: Job, found: Any) -> Iterator[str]:
    """A perturbation is described without being built: its name may lead to code that nobody trusts."""
    chain = job.data.perturbations
    told = {
        "name": "+".join(spec.name for spec in chain),
        "params": serial.to_dict(chain[0].params) if len(chain) == 1 else {},
        "seed": job.seed,
        "version": job.version,
        "key": "",
    }
    yield from _differences("attack", told, {name: found["method"][name] for name in told})
    yield from _differences("scenario", CORRUPTION, found["scenario"])
    yield from _differences("knowledge", "none", found["knowledge"])
    if not job.third_party_code:
        from grb.pipeline.profile_job import column

        yield from _differences("title", column(chain), found["method"]["title"])


def _check_profile(record: Record) -> Iterator[str]:
    from grb.taxonomy.measurement import ProfileMeasurement

    job, found = record.job, ProfileMeasurement.from_dict(record.measurement)
    made = {
        "reference": found.reference,
        "fingerprint": found.fingerprint,
        "seed": found.seed,
        "perturbations": [{"name": each.name, "params": serial.to_dict(each.params)} for each in found.perturbations],
    }
    told = {
        "reference": job.data.dataset,
        "fingerprint": job.data.fingerprint,
        "seed": job.seed,
        "perturbations": [spec.plain() for spec in job.data.perturbations],
    }
    yield from _differences("profile", told, made)
    if found.split not in (None, job.seed):
        yield f"its split is {found.split}, but its job is run {job.seed}"
    if found.model.casefold() != job.spec.name.casefold() and ":" in job.spec.name:
        yield f"its model is {found.model[:40]}, but its job says {job.spec.name[:40]}"
    if not found.best_epoch < max(found.epochs, 1):
        yield f"its best epoch is {found.best_epoch}, but it has {found.epochs} epochs"
    if found.curve and max(found.curve) > round(found.val_auroc, 5):
        yield f"its best validation AUROC is {found.val_auroc}, but its curve reaches {max(found.curve)}"


def _check_sent(record: Record, name: str) -> Iterator[str]:
    """A submission or a model file: its job names its bytes, and its card what the job is."""
    job = record.job
    yield from _differences("sha256", job.spec.params.get("sha256"), record.objects[name]["sha256"])
    if job.spec.name == FILE:
        return
    card = record.result["card"]
    told = {
        "name": job.spec.params["name"],
        "kind": "attack" if job.kind == "attack" else "defense",
        "dataset": job.data.dataset,
    }
    if job.kind == "attack":
        told |= {"mode": job.mode, "knowledge": job.extra["knowledge"], "scenario": job.extra["threat"]["kind"]}
    assert job.spec.name == SUBMISSION
    yield from _differences("card", told, {each: card[each] for each in told})


def _check_meta(job: Job, meta: Mapping[str, Any], what: str) -> Iterator[str]:
    told = {"fingerprint": job.data.fingerprint, "seed": job.seed}
    yield from _differences(what, told, {name: meta.get(name) for name in told})


def _safetensors_header(path: Path) -> dict[str, Any]:
    with path.open("rb") as stream:
        size = int.from_bytes(stream.read(8), "little")
        if size > MAX_HEADER:
            raise IntegrityError(f"its weights have a header of {size} bytes, but at most {MAX_HEADER} are read")
        header = json.loads(stream.read(size))
    if not isinstance(header, dict):
        raise IntegrityError("its weights have no header")
    return header


def _numel(shape: list[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _differences(what: str, expected: Any, found: Any) -> Iterator[str]:
    """The first place where two plain values differ, as a sentence; nothing is said where nothing is expected."""
    if expected == found or (expected is None and what in ("defense", "attack")):
        return
    # a job that two stores measured keeps one clock when they are merged
    expected, found = without_clocks(expected), without_clocks(found)
    if expected == found:
        return
    path = what
    while isinstance(expected, Mapping) and isinstance(found, Mapping):
        names = [name for name in (*expected, *found) if expected.get(name, _short) != found.get(name, _short)]
        path = f"{path} {names[0]}".strip()
        expected, found = expected.get(names[0]), found.get(names[0])
    yield f"its {path} is {_short(found)}, but what it was made of says {_short(expected)}"


def _short(value: Any) -> str:
    return ascii(value)[:60]
