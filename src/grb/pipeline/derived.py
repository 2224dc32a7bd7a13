"""What a record derives, computed again: a number that contradicts what it was made of was not written by grb.

Nothing here imports torch or runs what a record names.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

from grb import serial
from grb.errors import DataError, GRBError, IntegrityError
from grb.evaluator.certified import CertifiedOutcome, broken, may_be_certain
from grb.evaluator.measurement import AttackInfo, DatasetInfo, DefenseInfo, Measurement, Outcome
from grb.pipeline.artefact_checks import (
    Artefacts,
    check_attack,
    check_meta,
    check_sent,
    differences,
    safetensors_header,
    short,
)
from grb.pipeline.card import card_from
from grb.pipeline.certificate_checks import check_certificate, check_study_limits
from grb.pipeline.entry import entry_identity, entry_label, record_name
from grb.pipeline.gate import content_of
from grb.pipeline.job import Job, TargetRule
from grb.pipeline.job_checks import (
    check_dataset_name,
    check_input,
    check_perturbation,
    check_profile,
    describe_dataset,
    without_preset,
)
from grb.pipeline.measure import attack_info, defense_info
from grb.pipeline.outcome_checks import check_outcome, count_bits, packed_bits
from grb.pipeline.recipe import recipe_from_dict
from grb.pipeline.record import NOT_COMPUTED, SUBMISSION, Record, is_key, read_json
from grb.pipeline.spec import digest
from grb.pipeline.study import StudyInfo, recipe_facts
from grb.pipeline.study_checks import check_limits, check_roles

Read = Callable[[str], Record]
# fields of a measurement, all of which grb writes
_WRITTEN = {each.name for each in fields(Measurement)}


def check_derived(record: Record, read: Read, artefacts: Artefacts) -> list[str]:
    """Compare everything that a record derives with what it derives it from.

    Args:
        record: The record to check.
        read: From the key of a job to its record; may refuse.
        artefacts: Content of its artefacts by name.

    Returns:
        One sentence for every contradiction.
    """
    return DerivedChecks(read).check(record, artefacts)


class DerivedChecks:
    """Checks of many records of one store, which share inputs and must agree with one another.

    Args:
        read: From the key of a job to its record; may refuse.
    """

    def __init__(self, read: Read) -> None:
        self.read = read
        self._victims: dict[str, dict[str, Any] | None] = {}
        self._attacks: dict[tuple[str, bool], dict[str, Any] | None] = {}
        self._sources: dict[str, str | None] = {}
        self._checked: dict[str, tuple[Any, ...]] = {}
        self._studies: dict[str, StudyInfo] = {}
        self._limits: dict[str, AttackInfo] = {}
        self._modes: dict[str, str] = {}
        self._cards: dict[str, Mapping[str, Any]] = {}
        self._clean: dict[tuple[Any, ...], dict[str, tuple[int, int]]] = {}
        self._poisoned: dict[str, bool] = {}
        self._certified: dict[str, CertifiedOutcome] = {}
        self._scored: dict[str, Measurement] = {}
        self._right: set[tuple[Any, ...]] = set()
        self._groups: dict[tuple[Any, ...], tuple[Measurement, list[str]]] = {}
        self._compared: dict[Hashable, Any] = {}
        self._inputs: dict[str, Job | None] = {}
        self._roles: dict[str, tuple[AttackInfo | None, DefenseInfo, str]] = {}
        self._threats: dict[str, tuple[AttackInfo, tuple[str, str, str]]] = {}
        self._entries: dict[tuple[str, ...], dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        self._names: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
        self._facts: dict[tuple[Any, ...], dict[str, list[str]]] = defaultdict(dict)

    def check(self, record: Record, artefacts: Artefacts) -> list[str]:
        """Return one sentence for every contradiction in a record; none if it is consistent.

        Args:
            record: The record.
            artefacts: Content of its artefacts by name.
        """
        data = record.job.data
        self._checked[record.key] = sys.intern(record.job.kind), sys.intern(data.fingerprint), data.targets
        if record.job.spec.name == SUBMISSION:
            identity = entry_identity(record.job)
            self._entries[identity][record.job.version].append(record.key)
            self._names[identity].setdefault(record_name(record.job), record.key)
            with suppress(GRBError):  # without a card it is reported below
                self._cards[entry_label(record.job)] = card_from(record.result.get("card")).displayed()
        kind = record.job.kind
        try:
            if kind == "fit":
                return list(self._check_fit(record, artefacts))
            if kind == "attack":
                return list(self._check_attack(record, artefacts))
            if artefacts:
                return [f"it has artefacts, but a {kind} holds none"]
            checks = {
                "score": self._check_score,
                "certify": self._check_certified,
                "profile": check_profile,
                "study": self._check_study,
            }
            return list(checks[kind](record))
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, GRBError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            return [f"it is not what a {kind} gives ({' '.join(reason.split())[:120]})"]

    def disagreements(self) -> Iterator[tuple[str, str]]:
        """Yield key and sentence of every record that contradicts most of its kind."""
        self._agree_in_groups()
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

        for study, info in self._studies.items():
            for sentence in self._check_parts(info):
                yield study, sentence
        self._read_certified_scores()
        yield from broken(self._certified, self._scored)
        for versions in self._entries.values():
            for keys in versions.values():
                for key in keys[1:]:
                    yield key, f"it has the name and version of submission {keys[0][:12]}; boards would mix the two"
        for names in self._names.values():
            first, *others = names
            for name in others:
                yield names[name], f"its name '{name[:64]}' differs from '{first[:64]}' only by case or spaces"

    def _check_parts(self, info: StudyInfo) -> Iterator[str]:
        """A study against the records that it names; those that are planned are not there yet."""
        targets = info.dataset.targets and TargetRule(info.dataset.targets.rule, info.dataset.targets.seed)
        kind = "score", info.dataset.fingerprint, targets
        for key in info.scores:
            if self._checked.get(key, kind) != kind:
                yield f"it names record {key[:12]}, which is no score on its dataset and targets"
        certified = "certify", info.dataset.fingerprint, targets
        for key in info.certificates:
            if self._checked.get(key, certified) != certified:
                yield f"it names record {key[:12]}, which is no certificate on its dataset and targets"
        for label, card in info.cards.items():
            yield from differences("card", self._cards.get(label, card), card)
        yield from check_roles(info, [self._roles[key] for key in info.scores if key in self._roles])
        yield from check_limits(info, self._limits, self._modes)
        yield from check_study_limits(info, self._certified, self._limits, self._modes)

    def _read_certified_scores(self) -> None:
        """Take along the scores of models that have a certificate and a name that does not tell it, such as submissions."""
        certain = {each.defense.method.key for each in self._certified.values() if not each.refusal}
        for key, (_, defense, _) in self._roles.items():
            record = self._get(key) if defense.method.key in certain and key not in self._scored else None
            if record is not None:
                self._scored[key] = content_of(record)

    def _agree(self, record: Record, what: str, about: tuple[Any, ...], value: Any) -> None:
        subject = (what, *about)
        values = self._facts[subject]
        values.setdefault(value if isinstance(value, str) else repr(value), []).append(record.key)

    def _limits_of(self, job: Job, attack: AttackInfo) -> tuple[str, str, str]:
        """Which limits an attack has, as text; scores under one edit share the description."""
        known = self._threats.get(attack.method.key)
        if known is None or known[0] is not attack:
            text = repr(sorted(attack.threat.items()))
            known = self._threats[attack.method.key] = attack, (job.data.fingerprint, job.mode or "", text)
        return known[1]

    # scores

    def _check_score(self, record: Record) -> Iterator[str]:
        job, found = record.job, record.measurement
        if found is None or record.result:
            yield "a score holds a measurement and nothing else"
            return
        if not found.keys() >= _WRITTEN:
            yield f"it is not what a score gives (it has no {min(_WRITTEN - found.keys())})"
        content: Measurement = content_of(record)
        if may_be_certain(content.defense.method.name):
            self._scored[record.key] = content
        own, info = job.data, content.dataset
        edits = own.edits
        victim, attack = job.inputs["model"], edits[-1] if edits else None
        if not self._is_known(job, "model", victim):
            yield from self._check_input(job, "model", victim)
        if attack is not None and not self._is_known(job, "edit", attack):
            yield from self._check_input(job, "edit", attack)
        if self._compared.get(victim) is not content.defense:
            yield from self._once(victim, content.defense, lambda: self._compare_defense(victim, found["defense"]))
        if own.chain or content.attack is not None:
            yield from self._compare_attack(job, victim, attack, content.attack, found["attack"])
        if content.attack is not None and attack is not None:
            self._limits[record.key], self._modes[record.key] = content.attack, sys.intern(job.mode or "")
            if content.attack.preset:
                self._agree(record, "preset", self._limits_of(job, content.attack), content.attack.preset)
        if (own.dataset, own.fingerprint, own.split) != (info.reference, info.fingerprint, info.split):
            expected = {"reference": own.dataset, "fingerprint": own.fingerprint, "split": own.split}
            yield from differences("dataset", expected, {name: found["dataset"][name] for name in expected})
        yield from self._check_targets(record, info, content.outcomes)
        self._roles[record.key] = content.attack, content.defense, content.objective
        poisoned = self._poisoned.get(victim)
        objective = content.objective if poisoned is None else "poisoning" if poisoned else "evasion"
        if (job.threads, job.device, objective) != (content.threads, content.device, content.objective):
            made = {"threads": job.threads, "device": job.device, "objective": objective}
            yield from differences("", made, {name: getattr(content, name) for name in made})
        about = own.fingerprint, own.split, own.targets
        if self._compared.get(about) is not info:
            yield from self._once(about, info, lambda: check_dataset_name(info))
        self._group(record, content)
        yield from self._check_outcomes(record, content.metric, content.outcomes)

    def _check_targets(self, record: Record, info: DatasetInfo, counts: Mapping[str, Any]) -> Iterator[str]:
        """Compare the choice of targets with the job's, and with how many nodes were scored; all of one choice agree."""
        rule, found = record.job.data.targets, info.targets
        if (None if found is None else (found.rule, found.seed)) != (None if rule is None else (rule.rule, rule.seed)):
            yield f"its targets are {short(found and found.label)}, but its job says {short(rule and rule.rule)}"
        if found is None:
            return
        for mode, each in counts.items():
            chosen = found.chosen.get(mode)
            if chosen is None or count_bits(chosen) != each.targets:
                yield f"it has {each.targets} {mode[:20]} targets, but the choice of them is of others"
        about = record.job.data.fingerprint, record.job.data.split, *_aim(record.job)
        self._agree(record, "choice of targets", about, sorted(found.chosen.items()))

    def _is_known(self, job: Job, role: str, key: str) -> bool:
        """Whether an input was found to be right for such a job before, as it is for most of them."""
        return _input_of(job, role, key) in self._right

    def _group(self, record: Record, content: Measurement) -> None:
        """Note what scores have to agree about; most say the same, so it is noted once for all of them."""
        data, info = record.job.data, content.dataset
        targets = tuple((name, outcome.targets) for name, outcome in content.outcomes.items())
        about = data.fingerprint, (data.split, *_aim(record.job)), id(info), content.metric, targets
        group = self._groups.get(about)
        if group is None:
            group = self._groups[about] = content, []
        group[1].append(record.key)

    def _agree_in_groups(self) -> None:
        for (fingerprint, split, _, metric, targets), (content, keys) in self._groups.items():
            facts: list[tuple[Any, ...]] = [("dataset", fingerprint), ("task", fingerprint), ("metric", fingerprint)]
            values = [describe_dataset(content.dataset), content.dataset.task, metric]
            facts += [(f"number of {name} targets", fingerprint, split) for name, _ in targets]
            values += [repr(count) for _, count in targets]
            for subject, value in zip(facts, values, strict=True):
                self._facts[subject].setdefault(value, []).extend(keys)
        self._groups.clear()

    def _check_input(self, job: Job, role: str, key: str) -> list[str]:
        if key not in self._inputs:
            record = self._get(key)
            self._inputs[key] = None if record is None else record.job
        given = self._inputs[key]
        sentences = [] if given is None else list(check_input(job, role, given))
        if not sentences:
            self._right.add(_input_of(job, role, key))
        return sentences

    def _check_inputs(self, job: Job) -> Iterator[str]:
        for role, key in (*job.inputs.items(), *(("edit", edit) for edit in job.data.edits)):
            yield from self._check_input(job, role, key)

    def _check_certified(self, record: Record) -> Iterator[str]:
        job, content = record.job, content_of(record)
        if record.measurement is not None:
            yield "a certificate holds a result and nothing else"
            return
        victim = job.inputs["model"]
        found = record.result
        yield from self._check_inputs(job)
        yield from self._once(victim, content.defense, lambda: self._compare_defense(victim, found["defense"]))
        expected = {
            "certificate": job.spec.name,
            "params": serial.to_dict(job.spec.params),
            "mode": job.mode,
            "threat": serial.to_dict(job.extra["threat"]),
        }
        yield from differences("certificate", expected, {name: found[name] for name in expected})
        own, info = job.data, content.dataset
        if (own.dataset, own.fingerprint, own.split) != (info.reference, info.fingerprint, info.split):
            yield "its dataset is another than its job's"
        yield from self._check_targets(record, info, {content.mode: content})
        self._agree(record, "dataset", (own.fingerprint,), describe_dataset(info))
        about = own.fingerprint, (own.split, *_aim(job))
        self._agree(record, f"number of {content.mode} targets", about, content.targets)
        yield from check_certificate(job, content)
        if not content.refusal:  # where it depends on the graph, it is the same for all certificates
            limits = repr(sorted(expected["threat"].items()))
            own_budget = own.fingerprint, own.split, *_aim(job), job.mode, content.unit, limits
            self._agree(record, "budget", own_budget, content.budget)
        self._certified[record.key] = content

    def _once(self, about: Hashable, content: Any, compare: Callable[[], Iterator[str]]) -> Iterator[str]:
        """What a comparison finds, unless it found nothing for this very description, which records of one store share."""
        if about not in self._compared or self._compared[about] is not content:
            sentences = list(compare())
            if not sentences:
                self._compared[about] = content
            yield from sentences

    def _compare_defense(self, victim: str, found: Any) -> Iterator[str]:
        if victim not in self._victims:
            record = self._get(victim)
            self._victims[victim] = None if record is None else serial.to_dict(defense_info(record))
            if record is not None:
                self._poisoned[victim] = bool(record.job.data.edits)
        return differences("defense", self._victims[victim], found)

    def _check_outcomes(self, record: Record, metric: str, outcomes: Mapping[str, Outcome]) -> Iterator[str]:
        job = record.job
        if not outcomes or (job.mode is not None and list(outcomes) != [job.mode]):
            yield f"it has scores of {', '.join(outcomes) or 'nothing'}, but its job is of difficulty {job.mode}"
        wanted = {metric, *job.extra.get("metrics", ())}
        clean = self._clean_bits(job) if job.data.chain else None
        for name, outcome in outcomes.items():
            if outcome.values.keys() != wanted:
                yield f"its metrics are {', '.join(sorted(outcome.values))}, but {', '.join(sorted(wanted))} were asked for"
            bits = packed_bits(outcome.correct, outcome.targets)
            yield from check_outcome(name, outcome, bits, metric, None if clean is None else clean.get(name))
            if not job.data.chain and outcome.changed:
                yield f"its changed of {name} is {outcome.changed}, but nothing is changed in a clean graph"

    def _compare_attack(
        self, job: Job, victim: str, attack: str | None, content: AttackInfo | None, found: Any
    ) -> Iterator[str]:
        if job.data.perturbations:
            yield from check_perturbation(job, found)
            return
        if attack is None:
            if found is not None:
                yield "it names an attack, but its job is on the clean graph"
            return
        if attack not in self._sources:
            record = self._get(attack)
            self._sources[attack] = None if record is None else record.job.inputs.get("surrogate", "")
        white_box = self._sources[attack] == victim
        about = attack, white_box
        if about not in self._attacks:
            owner = None if self._sources[attack] is None else self._get(victim)
            described = None if owner is None else attack_info(job, owner, self.read)
            self._attacks[about] = None if described is None else without_preset(serial.to_dict(described))
        yield from self._once(
            about, content, lambda: differences("attack", self._attacks[about], without_preset(found))
        )

    def _clean_bits(self, job: Job) -> dict[str, tuple[int, int]]:
        """Packed bits and number of targets of the same victim on the clean graph, by difficulty; empty if not there."""
        about = job.inputs["model"], *_aim(job)
        if about not in self._clean:
            extra = {name: value for name, value in job.extra.items() if name == "metrics"}
            unchained = replace(job, data=replace(job.data, chain=()), mode=None, seed=0, version=1, extra=extra)
            record = self._get(unchained.key)
            outcomes = {} if record is None or record.measurement is None else record.measurement["outcomes"]
            self._clean[about] = {
                name: (packed_bits(each["correct"], each["targets"]), each["targets"])
                for name, each in outcomes.items()
            }
        return self._clean[about]

    def _get(self, key: str) -> Record | None:
        """A record that is needed here; one that is missing or damaged is reported under its own key."""
        try:
            return self.read(key)
        except (DataError, IntegrityError):
            return None

    # what scores are made of

    def _check_fit(self, record: Record, artefacts: Artefacts) -> Iterator[str]:
        job, result = record.job, record.result
        yield from self._check_inputs(job)
        if set(artefacts) != {"weights"} or record.measurement is not None:
            yield "a fit holds weights and no measurement"
            return
        header = safetensors_header(artefacts["weights"])
        held = sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
        if held > len(artefacts["weights"]):
            yield f"its weights say that they are {held} numbers, but have {len(artefacts['weights'])} bytes"
        if not 0 <= result["parameters"] <= held:
            yield f"its parameters are {result['parameters']}, but its weights have {held} numbers"
        if job.spec.name in NOT_COMPUTED:
            yield from check_sent(record, "weights")
            return
        if result.get("title") or result.get("card") is not None:
            yield f"it calls itself {short(result.get('title') or 'submitted')}, but is a training of {job.spec.name[:40]}"
        yield from check_meta(job, read_json(header["__metadata__"]["grb"].encode())["meta"], "weights")
        if not 0 <= result["best_epoch"] <= result["epochs"]:
            yield f"its best epoch is {result['best_epoch']}, but it has {result['epochs']} epochs"
        planned = job.method.get("settings")
        if isinstance(planned, Mapping):
            expected = {**planned, **planned.get("params", {})}
            for name, value in result["settings"].items():
                if name not in expected:  # at its default, which jobs leave out and which all of them share
                    self._agree(record, f"default of {name}", (planned.get("type"),), value)
                elif expected[name] != value:
                    yield f"its setting {name} is {short(value)}, but its job says {short(expected[name])}"

    def _check_attack(self, record: Record, artefacts: Artefacts) -> Iterator[str]:
        job, result = record.job, record.result
        yield from self._check_inputs(job)
        nodes = yield from check_attack(record, artefacts)
        if nodes is None:
            return
        self._agree(record, "number of nodes", (job.data.fingerprint,), nodes)
        # only an edit of a collection counts graphs
        self._agree(record, "task", (job.data.fingerprint,), "graph" if "graphs" in result["budget"] else "node")
        if job.spec.name not in NOT_COMPUTED:
            if result.get("card") is not None:
                yield "it has a card, but nobody submitted it"
            method = digest([job.spec.to_dict(), dict(job.method)])
            self._agree(record, "number of planned steps", (method,), result.get("planned_steps", 1))

    def _check_study(self, record: Record) -> Iterator[str]:
        job, info = record.job, content_of(record)
        bad = next((key for key in info.measured if not is_key(key)), None)
        if bad is not None:
            yield f"it names the record '{bad[:40]}', which is no key"
            return
        expected = {"name": job.spec.name, **job.spec.params, "reference": job.data.dataset}
        made = {
            "name": info.name,
            "scores": digest(sorted(info.measured)),
            "title": info.title,
            "reference": info.dataset.reference,
        }
        yield from differences("study", expected, made)
        yield from differences("fingerprint", job.data.fingerprint, info.dataset.fingerprint)
        yield from check_dataset_name(info.dataset)
        self._agree(record, "dataset", (job.data.fingerprint,), describe_dataset(info.dataset))
        self._agree(record, "task", (job.data.fingerprint,), info.dataset.task)
        if info.recipe:
            for name, value in recipe_facts(recipe_from_dict(info.recipe)).items():
                yield from differences(name, serial.to_dict(value), serial.to_dict(getattr(info, name)))
        targets = info.dataset.targets
        if info.recipe and (targets.rule if targets else "") != info.recipe.get("targets", ""):
            yield f"its targets are {short(targets and targets.rule)}, but its recipe says {short(info.recipe.get('targets'))}"
        if info.paper not in ("", info.dataset.name):
            yield f"it is compared with the paper's table of {short(info.paper)}, but is of {short(info.dataset.name)}"
        self._studies[record.key] = info


def _aim(job: Job) -> tuple[TargetRule | None, str | None]:
    """How the targets of a job were chosen among the test nodes of its difficulty."""
    return job.data.targets, job.inputs.get("targets")


def _input_of(job: Job, role: str, key: str) -> tuple[Any, ...]:
    """An input of a job with all that it is compared with."""
    return role, key, job.kind, job.data.fingerprint, job.data.split, *_aim(job), job.mode
