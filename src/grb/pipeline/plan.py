"""A study: the jobs of a recipe, and where each measurement lies in the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch

from grb.attack.build import build_attack, default_threat_model
from grb.catalogue import resolve, spelling
from grb.dataset import Dataset, load_dataset
from grb.defense import build_defense
from grb.errors import DataError, UnknownName
from grb.evaluator.matrix import CLEAN
from grb.model.build import build
from grb.names import ModelName
from grb.perturb import build_perturbation
from grb.pipeline.card import Card
from grb.pipeline.job import DataRef, Job
from grb.pipeline.profile_job import column, corruption_spec
from grb.pipeline.recipe import BASELINES, CORRUPTION, Recipe
from grb.pipeline.spec import Spec, plain
from grb.pipeline.store import Record, Store
from grb.pipeline.submission import card_of
from grb.threat import Threat, threat_from_dict

# surrogates are other models than any victim, also where both are a GCN
SURROGATE_SEED = 1000


@dataclass(frozen=True)
class Place:
    """Where one measurement of a study lies: which score job, and what it measures."""

    score: str
    attack: str
    defense: str
    repeat: int
    victim: int
    knowledge: str
    surrogate: str
    modes: tuple[str, ...]
    outside: bool = False


@dataclass(frozen=True)
class Study:
    """All jobs of a recipe, inputs before users, and the places of their measurements.

    Args:
        cards: Of submissions, by the name that they have in it.
    """

    recipe: Recipe
    dataset: Dataset
    jobs: Mapping[str, Job]
    places: tuple[Place, ...]
    cards: Mapping[str, Card] = field(default_factory=dict)

    def shard(self, index: int, count: int) -> Study:
        """Every ``count``-th block of measurements with all jobs that they need, beginning with 1."""
        if not (count >= 1 and 1 <= index <= count):
            raise DataError(f"the shard is {index}/{count}, but it must be from 1/{count} to {count}/{count}")
        # neighbours share an edit, so that blocks keep the attacks of a shard its own
        ordered = sorted(self.places, key=lambda place: (place.repeat, place.attack, place.knowledge, place.score))
        size = -(-len(ordered) // count)
        chosen = ordered[(index - 1) * size : index * size]
        needed = set(closure(self.jobs, [place.score for place in chosen]))
        return replace(
            self,
            jobs={key: job for key, job in self.jobs.items() if key in needed},
            places=tuple(place for place in self.places if place.score in needed),
        )


def closure(jobs: Mapping[str, Job], keys: Iterable[str]) -> Iterator[str]:
    """Keys and everything that they need."""
    seen: set[str] = set()
    stack = list(keys)
    while stack:
        key = stack.pop()
        if key not in seen:
            seen.add(key)
            yield key
            if key not in jobs:
                raise DataError(f"job {key[:12]} is needed, but is not there; run the recipe that makes it")
            stack.extend(jobs[key].needs)


def plan_study(
    recipe: Recipe,
    *,
    threads: int = 1,
    device: str = "cpu",
    data_dir: str | None = None,
    submitted: Iterable[Record] = (),
) -> Study:
    """The jobs of a recipe; every name and parameter in it is checked here, before anything runs.

    Args:
        submitted: Records of submissions (:func:`grb.pipeline.submission.submissions`): those for this dataset and scenario
            join; defenses meet every attack, attacks meet every defense.
    """
    dataset = load_dataset(recipe.dataset, data_dir=data_dir)
    if dataset.task == "graph":
        return _plan_folds(recipe, dataset, threads, device, data_dir)
    planner = _Planner(recipe, dataset, threads, device, data_dir)
    joined = planner.joining(submitted)
    victims = {**planner.victims(), **planner.submitted_victims(joined)}
    places = [
        *planner.clean(victims),
        *(planner.corruption(victims) if recipe.scenario == CORRUPTION else planner.transfer(victims)),
        *planner.white_box(victims),
        *planner.submitted_attacks(joined, victims),
    ]
    return Study(recipe, dataset, planner.jobs, tuple(places), {card.label: card for _, card in joined})


def _plan_folds(recipe: Recipe, dataset: Dataset, threads: int, device: str, data_dir: str | None) -> Study:
    """Graphs to classify: training r of every victim is on split r and meets the attacks on the test graphs of that split."""
    if recipe.scenario == CORRUPTION:
        raise DataError(
            f"recipe '{recipe.name}' perturbs '{dataset.name}', whose graphs are classified; corruption is for nodes, "
            "`grb taxonomy run` perturbs collections"
        )
    if dataset.scheme is None and recipe.victims > 1:
        raise DataError(f"dataset '{dataset.name}' has one split, but the recipe asks for victims={recipe.victims}")
    jobs: dict[str, Job] = {}
    places: list[Place] = []
    for fold in range(recipe.victims):
        number = None if dataset.scheme is None else fold
        own = dataset if number is None else dataset.with_split(number)
        planner = _Planner(replace(recipe, victims=1, seed=recipe.seed + fold), own, threads, device, data_dir, number)
        victims = planner.victims()
        found = [*planner.clean(victims), *planner.transfer(victims), *planner.white_box(victims)]
        places += [replace(place, victim=fold) for place in found]
        jobs |= planner.jobs
    return Study(recipe, dataset, jobs, tuple(places))


def joined(store: Store, submission: Record, recipe: Recipe, *, data_dir: str | None = None) -> tuple[Study, Study]:
    """The study of a recipe with a submission in it, and the part that has to be done for the submission.

    An attack meets the defenses whose weights the store has; a defense meets the attacks whose edits it has, and is
    attacked itself as the recipe's white-box attacks do.
    """
    others = [record for record in store.submitted() if record.key != submission.key]
    study = plan_study(recipe, data_dir=data_dir, submitted=[*others, submission])
    label = card_of(submission).label
    if submission.key not in study.jobs:
        raise DataError(f"{label} does not fit recipe '{recipe.name}': its dataset, scenario or difficulty is another")

    def possible(place: Place) -> bool:
        missing = [key for key in closure(study.jobs, [place.score]) if not store.has(key) and key != submission.key]
        return all(study.jobs[key].kind == "score" or submission.key in study.jobs[key].needs for key in missing)

    places = tuple(place for place in study.places if label in (place.attack, place.defense) and possible(place))
    opponents = {place.defense if place.outside else place.attack for place in places} - {CLEAN}
    if not opponents:
        raise DataError(
            f"{store.path} has nothing of recipe '{recipe.name}' that {label} could meet; "
            "run it first, or name the recipe that was run with --recipe FILE.yaml"
        )
    needed = set(closure(study.jobs, [place.score for place in places]))
    jobs = {key: job for key, job in study.jobs.items() if key in needed}
    return study, replace(study, jobs=jobs, places=places)


class _Planner:
    def __init__(
        self,
        recipe: Recipe,
        dataset: Dataset,
        threads: int,
        device: str,
        data_dir: str | None,
        split: int | None = None,
    ) -> None:
        self.recipe, self.dataset = recipe, dataset
        self.data = DataRef(dataset.name, dataset.fingerprint(), data_dir=data_dir, split=split)
        self.common: dict[str, Any] = {"threads": threads, "device": device}
        self.jobs: dict[str, Job] = {}
        self.built: dict[str, tuple[Spec, Any, int]] = {}
        self.limits: dict[str, list[tuple[str, Threat]]] = {}
        self.modes = tuple(mode for mode in recipe.modes if len(dataset.split.test.get(mode, ())))
        if not self.modes:
            raise DataError(f"dataset '{dataset.name}' has no test nodes of {', '.join(recipe.modes)}")

    def add(self, job: Job) -> str:
        self.jobs[job.key] = job
        return job.key

    def victims(self) -> dict[tuple[str, int], str]:
        """Keys of all trainings by defense and number; the slowest first, so that no worker is left alone with one."""
        recipe = self.recipe
        listed = {spec.label: spec for spec in map(self.model, [*recipe.defenses, *map(Spec, BASELINES)])}.values()
        ordered = sorted(listed, key=lambda spec: not ModelName.parse(spec.name).adversarial)
        return {
            (spec.label, number): self.fit(spec, recipe.seed + number)
            for number in range(recipe.victims)
            for spec in ordered
        }

    def model(self, spec: Spec) -> Spec:
        """Under the catalogue's own spelling, so that an alias is the same job; on graphs, models of nodes are pooled."""
        return replace(spec, name=str(ModelName.parse(spec.name).for_task(self.dataset.task)))

    def joining(self, submitted: Iterable[Record]) -> list[tuple[Job, Card]]:
        """Submissions that this board can show."""
        found = [(record.job, card_of(record)) for record in submitted]
        return [
            (job, card)
            for job, card in found
            if job.data.fingerprint == self.data.fingerprint
            and (card.kind == "defense" or (card.scenario == self.recipe.scenario and card.mode in self.modes))
        ]

    def submitted_victims(self, joined: Iterable[tuple[Job, Card]]) -> dict[tuple[str, int], str]:
        return {(card.label, 0): self.add(job) for job, card in joined if card.kind == "defense"}

    def submitted_attacks(
        self, joined: Iterable[tuple[Job, Card]], victims: Mapping[tuple[str, int], str]
    ) -> Iterator[Place]:
        for job, card in joined:
            if card.kind == "attack":
                edit = self.add(job)
                for (defense, number), victim in victims.items():
                    key = self.score(victim, edit, card.mode)
                    yield Place(key, card.label, defense, 0, number, "transfer", "", (card.mode,), outside=True)

    def fit(self, spec: Spec, seed: int) -> str:
        whole, method, version = self.method("fit", spec)
        return self.add(Job("fit", whole, self.data, method, seed=seed, version=version, **self.common))

    def method(self, kind: str, spec: Spec) -> tuple[Spec, Any, int]:
        """A spec with the recipe's changes, what it builds as plain values, and its version; made once per spec."""
        known = self.built.get(f"{kind} {spec.label}")
        if known is not None:
            return known
        if kind == "fit":
            params = {**self.recipe.training, **spec.params}
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
            plain(built),
            _version({maker, type(built), type(getattr(built, "attack", None))}),
        )
        self.built[f"{kind} {spec.label}"] = found
        return found

    def clean(self, victims: Mapping[tuple[str, int], str]) -> Iterator[Place]:
        for (defense, number), model in victims.items():
            key = self.score(model, None, None)
            yield Place(key, CLEAN, defense, 0, number, "none", "", self.modes)

    def corruption(self, victims: Mapping[tuple[str, int], str]) -> Iterator[Place]:
        """Every victim on every perturbed graph; random perturbations are drawn once per repeat."""
        for spec in map(corruption_spec, self.recipe.attacks):
            built = build_perturbation(spec.name, **spec.params)
            data, method = self.data.perturbed(spec), {"perturbation": plain(built)}
            for repeat in range(self.recipe.repeats if built.random else 1):
                for (defense, number), victim in victims.items():
                    job = Job(
                        "score",
                        Spec("score"),
                        data,
                        inputs={"model": victim},
                        seed=self.recipe.seed + repeat,
                        version=built.version,
                        extra=method,
                        **self.common,
                    )
                    yield Place(self.add(job), column((spec,)), defense, repeat, number, "none", "", self.modes)

    def transfer(self, victims: Mapping[tuple[str, int], str]) -> Iterator[Place]:
        recipe = self.recipe
        attacks, surrogates = [*map(_attack, recipe.attacks)], [*map(self.model, recipe.surrogates)]
        several = len(surrogates) > 1
        needs = {spec.label: getattr(resolve("attack", spec.name), "needs_model", True) for spec in attacks}
        for repeat in range(recipe.repeats):
            for surrogate in surrogates if any(needs.values()) else surrogates[:1]:
                model = self.fit(surrogate, recipe.seed + SURROGATE_SEED + repeat) if any(needs.values()) else ""
                for spec in attacks:
                    needs_model = needs[spec.label]
                    if not needs_model and surrogate is not surrogates[0]:
                        continue
                    named = f"{spec.label} from {surrogate.label}" if several and needs_model else spec.label
                    for mode in self.modes:
                        for label, threat in self.threats(mode):
                            edit = self.attack(spec, model if needs_model else None, mode, threat, repeat, "transfer")
                            title = f"{named} {label}".strip()
                            for (defense, number), victim in victims.items():
                                key = self.score(victim, edit, mode)
                                source = surrogate.label if needs_model else ""
                                yield Place(key, title, defense, repeat, number, "transfer", source, (mode,))

    def white_box(self, victims: Mapping[tuple[str, int], str]) -> Iterator[Place]:
        for repeat in range(self.recipe.white_box_repeats if self.recipe.white_box else 0):
            for spec in map(_attack, self.recipe.white_box):
                for (defense, number), victim in victims.items():
                    for mode in self.modes:
                        threat = self.threat(mode)
                        edit = self.attack(spec, victim, mode, threat, repeat, "white-box")
                        key = self.score(victim, edit, mode)
                        yield Place(key, spec.label, defense, repeat, number, "white-box", defense, (mode,))

    def threats(self, mode: str) -> list[tuple[str, Threat]]:
        """The limits, alone or with one of them varied; each with the words that tell it apart."""
        if mode not in self.limits:
            self.limits[mode] = self._threats(mode)
        return self.limits[mode]

    def _threats(self, mode: str) -> list[tuple[str, Threat]]:
        if not self.recipe.sweep:
            return [("", self.threat(mode))]
        return [
            (f"{name}={value:g}", _with(self.threat(mode), {name: value}))
            for name, values in self.recipe.sweep.items()
            for value in values
        ]

    def threat(self, mode: str) -> Threat:
        """The limits without any variation."""
        return _with(default_threat_model(self.recipe.scenario, self.dataset, mode), self.recipe.threat)

    def attack(self, spec: Spec, model: str | None, mode: str, threat: Threat, repeat: int, knowledge: str) -> str:
        whole, method, version = self.method("attack", spec)
        job = Job(
            "attack",
            whole,
            self.data,
            method,
            inputs={"surrogate": model} if model else {},
            mode=mode,
            seed=self.recipe.seed + repeat,
            version=version,
            extra={"threat": threat.to_dict(), "knowledge": knowledge if model else "none"},
            **self.common,
        )
        return self.add(job)

    def score(self, model: str, edit: str | None, mode: str | None) -> str:
        data = self.data if edit is None else self.data.with_edit(edit)
        return self.add(Job("score", Spec("score"), data, inputs={"model": model}, mode=mode, **self.common))


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


def _with(threat: Threat, changes: Mapping[str, Any]) -> Threat:
    if not changes:
        return threat
    known = [each.name for each in fields(threat)]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise UnknownName("limit", unknown[0], known, advice=f"Allowed: {', '.join(known)}.")
    values = threat.to_dict()
    if "edges" in changes:  # instead of a share of them
        values.pop("edge_ratio", None)
    return threat_from_dict({**values, **changes})
