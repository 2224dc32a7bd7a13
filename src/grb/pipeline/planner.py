"""The planner of one split of one dataset: victims, attacks and scores of a recipe as jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

import torch

from grb.attack.build import build_attack, default_threat_model
from grb.attack.targets import with_declared_targets
from grb.catalogue import resolve, spelling
from grb.certificate import build_certificate
from grb.dataset import Dataset
from grb.defense import build_defense
from grb.errors import DataError
from grb.evaluator.measurement import ENSEMBLES
from grb.model.build import build
from grb.names import ModelName
from grb.perturb import build_perturbation
from grb.pipeline.card import Card
from grb.pipeline.entry import entry_label
from grb.pipeline.gate import snapshot
from grb.pipeline.job import DataRef, Job, TargetRule
from grb.pipeline.profile_job import corruption_spec
from grb.pipeline.recipe import BASELINES, CORRUPTION, MEMORY_BASELINE, Recipe
from grb.pipeline.record import Record
from grb.pipeline.spec import Spec, jsonable
from grb.pipeline.submission import card_of, newest_versions
from grb.threat import FeatureLimits, Threat, change_threat, threat_from_dict, threat_within

# surrogates are other models than any victim, also where both are a GCN
SURROGATE_SEED = 1000
# what +at is trained against on boards of changed edges (Gosch et al. 2023)
EDGE_OPPONENT = "pr-bcd"
Victims = Mapping[tuple[str, int], str]
Limit = tuple[str, float] | None
# parameter of a defense that was trained outside: its file, as grb.export_model writes it
WEIGHTS = "weights"


@dataclass(frozen=True)
class PlannedScore:
    """A planned score: its job, and where it stands; ``order`` keeps scores of one edit together."""

    key: str
    order: tuple[int, str, str, str]
    limit: Limit = None
    clean: bool = False
    measurements: int = 1


class Planner:
    """Plans one split of one dataset.

    Args:
        recipe: What to plan.
        dataset: With the split that is planned.
        data: How jobs name it.
        common: Fields of every job.
    """

    def __init__(self, recipe: Recipe, dataset: Dataset, data: DataRef, common: Mapping[str, Any]) -> None:
        self.recipe, self.dataset, self.data = recipe, dataset, data
        self.aimed = data  # of attacks, scores and certificates; trainings know nothing of targets
        if recipe.targets:
            self.dataset = dataset = with_declared_targets(dataset, recipe.targets, None, seed=recipe.seed)
            self.aimed = replace(data, targets=TargetRule(recipe.targets, recipe.seed))
        # attacks of one seed that wire alike share their edges in the paper's boards; where the worst case leads, they do not
        self.own_draws = bool(recipe.worst_case)
        self.common = {**common, "study": recipe.name}
        self.jobs: dict[str, Job] = {}
        self.built: dict[str, tuple[Spec, Any, int]] = {}
        self.modes = tuple(mode for mode in recipe.modes if len(dataset.split.test.get(mode, ())))
        if not self.modes:
            raise DataError(f"dataset '{dataset.name}' has no test nodes of {', '.join(recipe.modes)}")
        self.limits = {mode: list(self._threats(mode)) for mode in self.modes} if recipe.scenario != CORRUPTION else {}
        self.training: dict[str, Any] = {}
        if recipe.train_mode != "inductive":
            self.training["train_mode"] = recipe.train_mode

    def add(self, job: Job) -> str:
        """Add a job to the plan and return its key."""
        self.jobs[job.key] = job
        return job.key

    def scores(self, victims: Victims) -> list[PlannedScore]:
        """All scores of the recipe, without those of submitted attacks."""
        attacked = {CORRUPTION: self.corruption}.get(self.recipe.scenario, self.transfer)
        if self.recipe.scenario != CORRUPTION:
            for spec in map(_attack, (*self.recipe.attacks, *self.recipe.white_box)):
                self.check_objective(spec)
        return [*self.clean(victims), *attacked(victims), *self.white_box(victims), *self.worst_case(victims)]

    # victims

    def victims(self) -> dict[tuple[str, int], str]:
        """Keys of all trainings by defense and number; the slowest first, so that no worker is left alone with one."""
        listed = self.defenses()
        ordered = sorted(listed, key=lambda spec: not ModelName.parse(spec.name).adversarial)
        return {
            (spec.label, number): self.fit(spec, self.recipe.seed + number)
            for number in range(self.recipe.victims)
            for spec in ordered
            if number == 0 or WEIGHTS not in spec.params  # one that was trained outside is one model
        }

    def defenses(self) -> list[Spec]:
        """Every victim of the recipe once, the baselines among them."""
        given = [*self.recipe.defenses, *map(Spec, (*BASELINES, *self._memory()))]
        return list({spec.label: spec for spec in map(self.model, given)}.values())

    def _memory(self) -> tuple[str, ...]:
        """The model that hears known nodes only, where it says what memory of the training graph is worth.

        Where a defender knows neighbours of the targets and the attacker injects nodes, no injection changes what it says.
        """
        recipe, dataset = self.recipe, self.dataset
        injected = recipe.scenario == "injection" and recipe.objective == "evasion" and recipe.train_mode == "inductive"
        if not recipe.memory or not injected or dataset.task != "node" or dataset.graph.ptr is not None:
            return ()
        remembered = torch.zeros(dataset.num_nodes, dtype=torch.bool)
        remembered[torch.cat([dataset.index_train, dataset.index_val])] = True
        ends = remembered[dataset.graph.adj.edges()]
        return (MEMORY_BASELINE,) if bool((ends[0] != ends[1]).any()) else ()

    def model(self, spec: Spec) -> Spec:
        """Under the catalogue's own spelling, so that an alias is the same job; on graphs, models of nodes are pooled."""
        return replace(spec, name=str(ModelName.parse(spec.name).for_task(self.dataset.task)))

    def joining(self, submitted: Iterable[Record]) -> list[tuple[Job, Card]]:
        """Submissions that this board can show."""
        found = [(record.job, card_of(record)) for record in newest_versions(submitted)]
        return [
            (job, card)
            for job, card in found
            if job.data.fingerprint == self.data.fingerprint
            and self.recipe.objective == "evasion"
            and (card.kind == "defense" or (card.scenario == self.recipe.scenario and card.mode in self.modes))
            and (card.kind == "defense" or not self.recipe.targets)  # whoever sent it aimed at all
            and (card.kind == "defense" or self.allowed(job, card.mode))
        ]

    def allowed(self, job: Job, mode: str) -> list[Limit]:
        """The boards of this study whose limits a submitted edit keeps: its recorded limits must lie within theirs."""
        given = threat_from_dict(job.extra["threat"])
        return [limit for limit, threat in self.limits[mode] if threat_within(given, threat)]

    def submitted_victims(self, joined: Iterable[tuple[Job, Card]]) -> dict[tuple[str, int], str]:
        """Keys of submitted models by name; each was trained once, outside."""
        return {(entry_label(job), 0): self.add(job) for job, card in joined if card.kind == "defense"}

    def submitted_attacks(self, joined: Iterable[tuple[Job, Card]], victims: Victims) -> Iterator[PlannedScore]:
        """Scores of every victim under every submitted edit."""
        for job, card in joined:
            if card.kind == "attack":
                edit = self.add(job)
                for (defense, _), victim in victims.items():
                    key = self.score(victim, edit, card.mode, f"{defense} under {entry_label(job)}")
                    for limit in self.allowed(job, card.mode):
                        yield PlannedScore(key, (0, entry_label(job), "", edit), limit)

    @property
    def varied(self) -> list[Limit]:
        """The varied limits; one None without a sweep."""
        swept = [(name, float(value)) for name, values in self.recipe.sweep.items() for value in values]
        return [*swept] or [None]

    def fit(self, spec: Spec, seed: int, edit: str | None = None) -> str:
        """Plan a training: on the clean graph, or under poisoning on the attacked one; weights of a file are not trained."""
        if WEIGHTS in spec.params:
            return self.add(self._given(spec, seed, edit))
        whole, method, version = self.method("fit", spec)
        extra = self.training if edit is None else {**self.training, "validation": self.recipe.validation}
        data = self.data if edit is None else self.data.with_edit(edit)
        own: dict[str, Any] = {"seed": seed, "version": version, "extra": extra, "title": spec.label}
        return self.add(Job("fit", whole, data, method, **own, **self.common))

    def _given(self, spec: Spec, seed: int, edit: str | None) -> Job:
        """The job of a model that was trained outside: its key follows from the bytes of its file."""
        name, others = ModelName.parse(spec.name), sorted(set(spec.params) - {WEIGHTS})
        if not name.has_import_path or name.has_training_options or others:
            raise DataError(
                f"defense '{spec.label[:80]}' has weights, which are for package.module:function alone, the code that "
                "grb.export_model named; leave the rest out"
            )
        if edit is not None:
            raise DataError(f"defense '{spec.name}' has weights, but under poisoning victims are trained; leave it out")
        path = Path(str(spec.params[WEIGHTS]))
        with snapshot(path) as taken:
            extra = {**self.training, "sha256": taken.sha256, "path": str(path)}
        shown = replace(spec, params={WEIGHTS: path.name})  # where it lies is nobody's business on a board
        return Job("fit", shown, self.data, seed=seed, extra=extra, title=shown.label, **self.common)

    def method(self, kind: str, spec: Spec) -> tuple[Spec, Any, int]:
        """A spec with the recipe's changes, what it builds as JSON values, and its version; made once per spec."""
        known = self.built.get(f"{kind} {spec.label}")
        if known is not None:
            return known
        if kind == "fit":
            params = self.opponent(spec) | {**self.recipe.training, **spec.params}
            built: Any = build_defense(spec.name, self.dataset.name, **params)
            # made and thrown away: it refuses what the model does not take
            build(built.settings, self.dataset.graph.num_features, self.dataset.num_classes, torch.Generator())
            maker = resolve("model", ModelName.parse(spec.name).architecture)
        else:
            params = dict(spec.params)
            if self.recipe.iterations is not None and _iterative(spec, self.dataset.name):
                params.setdefault("iterations", self.recipe.iterations)
            built = build_attack(spec.name, self.dataset.name, **params)
            maker = resolve("attack", spec.name)
        found = (
            Spec(spec.name, params),
            jsonable(built),
            _version({maker, type(built), type(getattr(built, "attack", None))}),
        )
        self.built[f"{kind} {spec.label}"] = found
        return found

    def opponent(self, spec: Spec) -> dict[str, Any]:
        """What ``+at`` is trained against where edges are changed and nobody says otherwise: changed edges."""
        named = {*self.recipe.training, *spec.params} & {"attack", "start", "threat"}
        plain = ModelName.parse(spec.name).adversarial_training == "at"
        return {"attack": EDGE_OPPONENT} if plain and self.recipe.scenario == "modification" and not named else {}

    def check_objective(self, spec: Spec) -> None:
        """Refuse an attack that poisons training data in a recipe whose victims are trained before it."""
        wanted = str(getattr(resolve("attack", spec.name), "objective", "evasion"))
        if wanted == "poisoning" and self.recipe.objective != "poisoning":
            raise DataError(
                f"attack '{spec.name}' poisons training data, but recipe '{self.recipe.name}' scores victims that were "
                "trained before the attack; add 'objective: poisoning' so that they are trained on the attacked graph"
            )

    # scores

    def clean(self, victims: Victims) -> Iterator[PlannedScore]:
        """Every victim on the clean graph."""
        for (defense, _), model in victims.items():
            key = self.score(model, None, None, defense)
            yield PlannedScore(key, (0, "", "", model), clean=True, measurements=len(self.modes))

    def corruption(self, victims: Victims) -> Iterator[PlannedScore]:
        """Every victim on every perturbed graph; random perturbations are drawn once per repeat."""
        for spec in map(corruption_spec, self.recipe.attacks):
            built = build_perturbation(spec.name, **spec.params)
            data, method = self.data.perturbed(spec), {"perturbation": jsonable(built), **self.metrics}
            for repeat in range(self.recipe.repeats if built.random else 1):
                for (defense, _), victim in victims.items():
                    job = Job(
                        "score",
                        Spec("score"),
                        data,
                        title=defense,
                        inputs={"model": victim},
                        seed=self.recipe.seed + repeat,
                        version=built.version,
                        extra=method,
                        **self.common,
                    )
                    yield PlannedScore(self.add(job), (repeat, spec.label, "", victim), measurements=len(self.modes))

    def transfer(self, victims: Victims) -> Iterator[PlannedScore]:
        """Every victim under edits that were made without it."""
        for repeat, source, spec, mode, (limit, threat) in self.attacks():
            edit = self.attack(spec, source, mode, threat, repeat, "transfer")
            order = (repeat, spec.label, "transfer", edit)
            trained = victims if self.recipe.objective == "evasion" else self.poisoned(edit)
            for (defense, _), victim in trained.items():
                yield PlannedScore(self.score(victim, edit, mode, f"{defense} under {spec.label}"), order, limit)

    def attacks(self) -> Iterator[tuple[int, str | None, Spec, str, tuple[Limit, Threat]]]:
        """Repeat, key of the surrogate, attack, difficulty and limits of every transfer attack."""
        recipe = self.recipe
        attacks, surrogates = [*map(_attack, recipe.attacks)], [*map(self.model, recipe.surrogates)]
        needs = {spec.label: getattr(resolve("attack", spec.name), "needs_model", True) for spec in attacks}
        for repeat in range(recipe.repeats):
            for number, surrogate in enumerate(surrogates if any(needs.values()) else surrogates[:1]):
                model = self.fit(surrogate, recipe.seed + SURROGATE_SEED + repeat) if any(needs.values()) else None
                for spec in attacks:
                    if number and not needs[spec.label]:
                        continue  # once is enough without a model
                    source = model if needs[spec.label] else None
                    for mode in self.modes:
                        for varied in self.limits[mode]:
                            yield repeat, source, spec, mode, varied

    def poisoned(self, edit: str) -> dict[tuple[str, int], str]:
        """Every victim trained on the attacked graph."""
        numbers = range(self.recipe.victims)
        return {
            (spec.label, number): self.fit(spec, self.recipe.seed + number, edit)
            for number in numbers
            for spec in self.defenses()
        }

    def white_box(self, victims: Victims) -> Iterator[PlannedScore]:
        """Every victim under edits that were made with its own gradients, or by asking it where the limits have queries."""
        for repeat in range(self.recipe.white_box_repeats if self.recipe.white_box else 0):
            for spec in map(_attack, self.recipe.white_box):
                for (defense, _), victim in victims.items():
                    for mode in self.modes:
                        for limit, threat in self.limits[mode]:
                            knowledge = "white-box" if threat.queries is None else "query"
                            edit = self.attack(spec, victim, mode, threat, repeat, knowledge)
                            key = self.score(victim, edit, mode, f"{defense} under {spec.label} ({knowledge})")
                            yield PlannedScore(key, (repeat, spec.label, knowledge, key), limit)

    def worst_case(self, victims: Victims) -> Iterator[PlannedScore]:
        """Every victim under the ensemble's edits of itself and of the other victims of the same number.

        The ensemble aims at predicted labels, and once more at true ones, where it starts with the first edit.
        """
        if not self.recipe.worst_case:
            return
        spec = Spec(ENSEMBLES[self.recipe.scenario])
        single = self.dataset.graph.y is not None and self.dataset.graph.y.dim() == 1
        for mode in self.modes:
            for limit, threat in self.limits[mode]:
                edits: dict[tuple[str, int], list[str]] = {}
                for source, victim in victims.items():
                    edits[source] = [self.attack(spec, victim, mode, threat, 0, "white-box")]
                    if single:
                        first = {"pool": edits[source][0]}
                        edits[source].append(self.attack(spec, victim, mode, threat, 0, "white-box", "true", first))
                for (defense, number), victim in victims.items():
                    for (source_name, other), found in edits.items():
                        for edit in found if other == number else ():
                            title = f"{defense} under {spec.name} of {source_name}"
                            order = (0, spec.label, "worst-case", edit)
                            yield PlannedScore(self.score(victim, edit, mode, title), order, limit)

    def certificates(self, victims: Victims) -> Iterator[tuple[str, Limit]]:
        """Keys of the certificates of every victim, and the varied limit that each is under."""
        for spec in self.recipe.certificates:
            own = replace(spec, name=spelling("certificate", spec.name))
            for (defense, _), victim in victims.items():
                for mode in self.modes:
                    for limit, threat in self.limits[mode]:
                        yield self.certify(own, victim, mode, threat, f"{defense} by {own.label}"), limit

    def certify(self, spec: Spec, model: str, mode: str, threat: Threat, title: str) -> str:
        """Plan the certificate of a trained model and return its key."""
        built = build_certificate(spec.name, **spec.params)
        job = Job(
            "certify",
            spec,
            self.aimed,
            jsonable(built),
            inputs={"model": model, **self.choosing()},
            mode=mode,
            seed=self.recipe.seed,
            version=_version({type(built)}),
            extra={"threat": threat.to_dict()},
            title=title,
            **self.common,
        )
        return self.add(job)

    def _threats(self, mode: str) -> Iterator[tuple[Limit, Threat]]:
        """The limits, alone or with one of them varied."""
        threat = recipe_threat(self.recipe, self.dataset, mode)
        for limit in self.varied:
            if limit is None:
                yield None, threat
            else:
                yield limit, change_threat(threat, {limit[0]: _number(limit[1])})

    def attack(
        self,
        spec: Spec,
        model: str | None,
        mode: str,
        threat: Threat,
        repeat: int,
        knowledge: str,
        labels: str = "predicted",
        pool: Mapping[str, str] | None = None,
    ) -> str:
        """Plan an attack on the model of a job, or without one, and return its key.

        Args:
            spec: The attack.
            model: Key of the fit of the victim or surrogate.
            mode: Difficulty.
            threat: What is allowed.
            repeat: Number of the repeat, which is added to the recipe's seed.
            knowledge: ``white-box`` or ``transfer``.
            labels: Labels that it aims at; ``true`` is for the evaluator's own white-box attacks.
            pool: Keys of attacks whose edits the ensemble starts with, by role.
        """
        whole, method, version = self.method("attack", spec)
        extra: dict[str, Any] = {"threat": threat.to_dict(), "knowledge": knowledge if model else "none"}
        if labels != "predicted":
            extra["labels"] = labels
        if self.own_draws:
            extra["stream"] = spec.label
        job = Job(
            "attack",
            whole,
            self.aimed,
            method,
            inputs={**({"surrogate": model} if model else {}), **(pool or {}), **self.choosing()},
            mode=mode,
            seed=self.recipe.seed + repeat,
            version=version,
            extra=extra,
            title=spec.label,
            **self.common,
        )
        return self.add(job)

    @property
    def metrics(self) -> dict[str, Any]:
        """Part of a score's key only if the recipe asks for more than the metric that ranks."""
        return {"metrics": list(self.recipe.metrics)} if self.recipe.metrics else {}

    def choosing(self) -> dict[str, str]:
        """The model whose margins choose the targets, as an input: the first surrogate's first training."""
        if self.aimed.targets is None or not self.aimed.targets.by_margins:
            return {}
        return {"targets": self.fit(self.model(self.recipe.surrogates[0]), self.recipe.seed + SURROGATE_SEED)}

    def score(self, model: str, edit: str | None, mode: str | None, title: str) -> str:
        """Plan a score and return its key."""
        data = self.aimed if edit is None else self.aimed.with_edit(edit)
        inputs = {"model": model, **self.choosing()}
        own: dict[str, Any] = {"inputs": inputs, "mode": mode, "extra": self.metrics, "title": title}
        return self.add(Job("score", Spec("score"), data, **own, **self.common))


def recipe_threat(recipe: Recipe, dataset: Dataset, mode: str) -> Threat:
    """The threat model of a recipe on the targets of a difficulty, without any variation."""
    changes = dict(recipe.threat)
    named: FeatureLimits = "paper"
    if changes.get("feature_range") in get_args(FeatureLimits):
        named = changes.pop("feature_range")
    return change_threat(default_threat_model(recipe.scenario, dataset, mode, named), changes)


def _attack(spec: Spec) -> Spec:
    return replace(spec, name=spelling("attack", spec.name))


def _version(parts: Iterable[Any]) -> int:
    """Of a method with all its parts: higher when one of theirs is raised."""
    return 1 + sum(getattr(part, "version", 1) - 1 for part in parts)


def _iterative(spec: Spec, dataset: str) -> bool:
    try:
        build_attack(spec.name, dataset, iterations=1)
    except DataError:
        return False
    return True


def _number(value: float) -> float | int:
    return int(value) if float(value).is_integer() else value
