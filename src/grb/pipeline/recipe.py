"""Recipes: which defenses meet which attacks on which dataset, as data with a strict schema."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from grb.dataset.registry import DIFFICULTIES, FRESH
from grb.errors import DataError, UnknownName
from grb.evaluator.measurement import CORRUPTION, OBJECTIVES, TRAIN_MODES
from grb.metric.names import Metric
from grb.names import MEMORY, TRANSDUCTIVE, ModelName, target_rule
from grb.pipeline.safe_yaml import first_duplicate, parse_mapping, read_text
from grb.pipeline.spec import Spec

SCENARIOS = ("injection", "modification")
# present in every table: the graph-free floor and the undefended model
BASELINES = ("gcn", "mlp")
# and in tables of injections where the defender has seen neighbours of the targets: what memory of them is worth
MEMORY_BASELINE = "gcn+ln+known"
_CHOICES = {
    "scenario": (*SCENARIOS, CORRUPTION),
    "objective": OBJECTIVES,
    "train_mode": TRAIN_MODES,
    "validation": ("attacked", "clean"),
    "worst_case": ("", "standard"),
}
# of the key `graph`: which graph of a dataset is attacked
GRAPHS = ("published", "fresh")
MAX_BYTES = 2**20
# repeats or trainings of one study; more would be planned for ever
MAX_COUNT = 10_000


@dataclass(frozen=True)
class Recipe:
    """One study.

    Args:
        name: Short name, by default the file's.
        dataset: What is attacked.
        scenario: ``injection``, ``modification`` or ``corruption``, whose attacks are perturbations of the taxonomy.
        title: One human-readable line.
        defenses: Victims; GCN and MLP join if they are missing.
        memory: Whether a model that hears known nodes only (``gcn+ln+known``) joins boards of injections, where the defender
            knows neighbours of the targets: no injection changes what it says.
        attacks: Run on each surrogate and scored on every victim (transfer).
        white_box: Attacks that are also run on every victim itself.
        surrogates: Models whose gradients transfer attacks use.
        modes: Difficulties.
        repeats: Draws of surrogate and edges per attack (10 in the paper).
        white_box_repeats: The same for white-box attacks.
        victims: Trainings of each victim (1 in the paper).
        seed: First seed.
        training: Changes for every training, e.g. ``epochs``.
        iterations: Number of iterations of every iterative attack, if not the paper's.
        threat: Changes of the paper's limits, e.g. ``nodes``.
        sweep: Limits that are varied one at a time, e.g. ``nodes: [10, 20, 40]``; every value has a board of its own.
        objective: ``evasion`` (victims are trained before the attack) or ``poisoning`` (on the attacked graph).
        train_mode: ``inductive`` (no test node is seen in training) or ``transductive`` (no test label is seen).
        validation: Under poisoning, the graph on which the best epoch is chosen: ``attacked`` or ``clean``.
        metrics: Metrics beside the one that ranks, e.g. ``macro-f1`` or ``recall:1``.
        certificates: Certificates of every victim (``grb ls certificates``), under the limits that attacks have; one that
            cannot speak about a victim or the scenario says so in its record.
        targets: Which test nodes of every difficulty are attacked and scored: ``random=20``, ``degrees=5`` (of every band),
            ``margin-low=10``, ``margin-high=10`` or ``nettack=40`` by the margins of the first surrogate, ``class=NAME``, or a
            feature column; empty for all of them.
        worst_case: ``standard`` to attack every victim with the standard ensemble (:mod:`grb.attack.auto`), aimed at predicted
            and at true labels, and to replay the edits that it finds on all victims; empty for no worst case.
        paper: Which published table is shown beside ours; none if empty.
        quick: Changes of this recipe for ``--quick``.
        is_quick: Whether these changes were made; not for files.
    """

    name: str
    dataset: str
    scenario: str = "injection"
    title: str = ""
    defenses: tuple[Spec, ...] = ()
    memory: bool = True
    attacks: tuple[Spec, ...] = ()
    white_box: tuple[Spec, ...] = ()
    surrogates: tuple[Spec, ...] = (Spec("gcn"),)
    modes: tuple[str, ...] = DIFFICULTIES
    repeats: int = 10
    white_box_repeats: int = 1
    victims: int = 1
    seed: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)
    iterations: int | None = None
    threat: Mapping[str, Any] = field(default_factory=dict)
    sweep: Mapping[str, Sequence[float]] = field(default_factory=dict)
    paper: str = ""
    objective: str = "evasion"
    train_mode: str = "inductive"
    validation: str = "attacked"
    metrics: tuple[str, ...] = ()
    certificates: tuple[Spec, ...] = ()
    targets: str = ""
    worst_case: str = ""
    quick: Mapping[str, Any] = field(default_factory=dict)
    is_quick: bool = False

    def __post_init__(self) -> None:
        for name in ("repeats", "victims", "white_box_repeats"):
            _check_count(name, getattr(self, name), least=1, most=MAX_COUNT)
        _check_count("seed", self.seed, least=0)
        if self.iterations is not None:
            _check_count("iterations", self.iterations, least=1)
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise UnknownName(name, str(value), allowed, advice=f"Allowed: {', '.join(allowed)}.")
        self._check_objective()
        self._check_memory()
        self._check_transductive()
        self._check_targets()
        for metric in self.metrics:
            Metric.parse(metric)
        for mode in self.modes:
            if mode not in DIFFICULTIES:
                raise UnknownName("difficulty", str(mode), DIFFICULTIES, advice=f"Allowed: {', '.join(DIFFICULTIES)}.")
        if not self.modes or not self.surrogates:
            raise DataError("a recipe needs at least one of modes and surrogates")
        for name in ("modes", "metrics", *_SPECS):
            again = first_duplicate(each if isinstance(each, str) else each.label for each in getattr(self, name))
            if again is not None:
                raise DataError(f"{name} of recipe '{self.name}' names '{again}' twice; once is enough")
        for limit, values in self.sweep.items():
            if not _numbers(values):
                raise DataError(f"sweep of {limit} is {values!r}, but a list of numbers as in [10, 20] is needed")

    def _check_objective(self) -> None:
        if self.scenario == CORRUPTION and self.white_box:
            raise DataError(
                f"recipe '{self.name}' asks for white_box attacks, but under corruption nobody attacks; leave white_box out"
            )
        if self.worst_case and (self.scenario == CORRUPTION or self.objective == "poisoning"):
            raise DataError(
                f"recipe '{self.name}' asks for a worst_case, which is of victims that were trained before an attack; leave "
                "worst_case out"
            )
        if self.certificates and (self.scenario == CORRUPTION or self.objective == "poisoning"):
            raise DataError(
                f"recipe '{self.name}' asks for certificates, which are of victims that were trained before an attack; leave "
                "certificates out"
            )
        if self.objective == "evasion":
            return
        if self.scenario == CORRUPTION:
            raise DataError(
                f"recipe '{self.name}' asks for poisoning by corruption; `grb taxonomy run` trains on perturbed data"
            )
        if self.white_box:
            raise DataError(
                f"recipe '{self.name}' asks for white_box attacks, but under poisoning a victim is trained after the attack; "
                "leave white_box out"
            )
        if self.scenario == "injection" and self.train_mode == "inductive":
            raise DataError(
                f"recipe '{self.name}' injects poison, which inductive training never sees; add 'train_mode: transductive'"
            )

    def _check_memory(self) -> None:
        """Refuse models that hear known nodes only where every original node is known."""
        if self.train_mode != "transductive" or self.scenario != "injection" or self.objective != "evasion":
            return
        for spec in self.defenses:
            if ModelName.parse(spec.name).wrapper in MEMORY:
                raise DataError(
                    f"recipe '{self.name}' has '{spec.name}', which knows every original node in transductive training, so "
                    "that an injection board would say nothing about it; leave train_mode out"
                )

    def _check_transductive(self) -> None:
        """Refuse models that are tied to their training graph where training does not see the test graph."""
        for spec in self.defenses:
            if self.train_mode == "inductive" and ModelName.parse(spec.name).base in TRANSDUCTIVE:
                raise DataError(
                    f"recipe '{self.name}' has '{spec.name}', which learns weights for the edges of its training graph and "
                    "says nothing of nodes that it never met; add 'train_mode: transductive'"
                )

    def _check_targets(self) -> None:
        """Refuse targets where nobody attacks, and a rule without a number."""
        if self.targets and self.scenario == CORRUPTION:
            raise DataError(f"recipe '{self.name}' has targets, but under corruption nobody attacks; leave targets out")
        target_rule(self.targets)

    def quickly(self) -> Recipe:
        """The recipe with its ``quick`` changes; its title says so."""
        return replace(self.changed(**self.quick), title=f"{self.title or self.name} (quick)", is_quick=True)

    def to_dict(self) -> dict[str, Any]:
        """As a file would say it; :func:`recipe_from_dict` reads it back."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        specs = {name: [{"name": spec.name, **spec.params} for spec in values[name]] for name in _SPECS}
        lists = {name: list(values[name]) for name in ("modes", "metrics")}
        mappings = {name: dict(values[name]) for name in _MAPPINGS}
        whole = {**values, **specs, **lists, **mappings}
        return {name: value for name, value in whole.items() if value is not None}

    def changed(self, **changes: Any) -> Recipe:
        """With other values, given as a recipe's file gives them; None keeps ours."""
        given = {key: value for key, value in changes.items() if value is not None}
        return replace(self, **_fields(given, f"recipe '{self.name}'"))


def read_recipe(source: str | Path) -> Recipe:
    """A recipe by its name (``grb ls recipes``) or from a YAML file; unknown keys are refused."""
    text, name = _text(source)
    return parse_recipe(text, name=name)


def parse_recipe(text: str, *, name: str) -> Recipe:
    """A recipe from YAML text."""
    given = _on_graph({"name": name, **parse_mapping(text, f"recipe '{name}'")})
    if not isinstance(given.get("dataset"), str):
        raise DataError(f"recipe '{name}' names no dataset; add a line such as 'dataset: synth-cora'")
    recipe = Recipe(**_fields(given, f"recipe '{name}'"))
    recipe.quickly()  # refuses what is wrong in there before anybody asks for it
    return recipe


def recipe_from_dict(values: Mapping[str, Any]) -> Recipe:
    """Back from :meth:`Recipe.to_dict`, with all the checks of a file."""
    given = _on_graph(values)
    is_quick = bool(given.pop("is_quick", False))
    return replace(Recipe(**_fields(given, f"recipe '{given.get('name')}'")), is_quick=is_quick)


def recipe_names() -> list[str]:
    """Names of the recipes that come with grb."""
    folder = resources.files("grb").joinpath("pipeline").joinpath("recipes")
    return sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir() if entry.name.endswith(".yaml"))


def _text(source: str | Path) -> tuple[str, str]:
    path = Path(source)
    if path.suffix in (".yaml", ".yml"):
        return read_text(path, max_bytes=MAX_BYTES, what="recipes"), path.stem
    name = str(source)
    if name not in recipe_names():
        raise UnknownName(
            "recipe",
            name,
            recipe_names(),
            advice="A custom recipe is a file that ends in .yaml; `grb ls recipes` shows ours.",
        )
    return resources.files("grb").joinpath("pipeline").joinpath("recipes").joinpath(f"{name}.yaml").read_text(
        "utf-8"
    ), name


_SPECS = ("defenses", "attacks", "white_box", "surrogates", "certificates")
_COUNTS = ("repeats", "white_box_repeats", "victims", "seed", "iterations")
_TEXTS = (
    "name",
    "dataset",
    "scenario",
    "title",
    "paper",
    "objective",
    "train_mode",
    "validation",
    "targets",
    "worst_case",
)
_MAPPINGS = ("training", "threat", "sweep", "quick")


def _on_graph(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without the key ``graph``: ``fresh`` stands for the dataset with whole communities cut off as the test graph."""
    rest = dict(given)
    asked = rest.pop("graph", None)
    if asked is None:
        return rest
    where = f"recipe '{rest.get('name')}'"
    if asked not in GRAPHS:
        raise DataError(f"graph of {where} is {asked!r}, but {' or '.join(GRAPHS)} is needed")
    name = rest.get("dataset")
    if asked == "published" or name in FRESH:
        if asked == "published" and name in FRESH:
            raise DataError(f"{where} asks for the published graph of '{name}', which is fresh; name '{FRESH[name]}'")
        return rest
    if rest.get("scenario", "injection") != "injection":
        raise DataError(f"{where} asks for a fresh graph, which is a scenario of injection; leave graph out")
    twins = {known: fresh for fresh, known in FRESH.items()}
    if name not in twins:
        raise DataError(f"dataset '{name}' of {where} has no fresh graph; {', '.join(twins)} have one")
    return {**rest, "dataset": twins[name]}


def _fields(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    known = [each.name for each in dataclasses.fields(Recipe) if each.name != "is_quick"]
    fields: dict[str, Any] = {}
    for key, value in given.items():
        if key not in known:
            raise UnknownName("recipe key", str(key), known, advice=f"Allowed in {where}: {', '.join(known)}.")
        if key in _SPECS:
            fields[key] = tuple(Spec.of(item) for item in _listed(key, value))
        elif key in ("modes", "metrics"):
            fields[key] = tuple(str(item) for item in _listed(key, value))
        elif key in _COUNTS and (isinstance(value, bool) or not isinstance(value, int)):
            raise DataError(f"{key} of {where} is {value!r}, but a whole number is needed")
        elif key == "memory" and not isinstance(value, bool):
            raise DataError(f"memory of {where} is {value!r}, but true or false is needed")
        elif key in _TEXTS and not isinstance(value, str):
            raise DataError(f"{key} of {where} is {value!r}, but text is needed")
        elif key in _MAPPINGS and not isinstance(value, Mapping):
            raise DataError(f"{key} of {where} is {value!r}, but a mapping as in {{name: value}} is needed")
        else:
            fields[key] = value
    return fields


def _listed(key: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise DataError(f"{key} is {value!r}, but a list as in [gcn, gat] is needed")
    return value


def _numbers(values: Any) -> bool:
    """Whether this is a list of finite numbers, and not empty."""
    if not isinstance(values, Sequence) or not values or {type(value) for value in values} - {int, float}:
        return False
    return all(map(math.isfinite, values))


def _check_count(name: str, value: Any, *, least: int, most: int = 2**63 - 1) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise DataError(f"{name} is {value!r}, but a whole number of at least {least} is needed")
    if value > most:
        raise DataError(f"{name} is {value}, but at most {most} can be planned")
