"""Studies: the jobs that belong together, and what a reader has to know to show their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from grb import serial
from grb.errors import DataError
from grb.evaluator.measurement import CORRUPTION, DatasetInfo
from grb.pipeline.job import DataRef, Job
from grb.pipeline.record import Record
from grb.pipeline.spec import Spec, digest
from grb.serial import Count

if TYPE_CHECKING:
    from grb.pipeline.recipe import Recipe

FORMAT = 1


@dataclass(frozen=True)
class Part:
    """Scores that stand on one board.

    Args:
        scores: Keys of the score jobs.
        planned: How many measurements they are, each of one difficulty.
        limit: The varied limit and its value if the study sweeps one; scores of different budgets are never mixed.
        certificates: Keys of the jobs that certify its defenses.
    """

    scores: tuple[str, ...]
    planned: Count = 0
    limit: tuple[str, float] | None = None
    certificates: tuple[str, ...] = ()


@dataclass(frozen=True)
class StudyInfo:
    """What a board shows besides its numbers, and which scores belong to it; kept in the store as a record.

    Args:
        name: Name of the recipe.
        title: Heading of its board.
        dataset: What is measured on.
        scenario: ``injection``, ``modification`` or ``corruption``.
        difficulties: In the order of the tables.
        parts: Boards of the study: one, or one for every value of a swept limit.
        objective: ``evasion`` or ``poisoning``.
        train_mode: ``inductive`` or ``transductive``.
        repeats: Random draws of every attack.
        victims: Trainings of every victim.
        training: Settings that all trainings share and that no label repeats.
        attack: The same for attacks.
        surrogates: Labels of the surrogates; the column of an attack names its own if there are several.
        paper: Which published table is compared with.
        quick: Whether it is the recipe's small variant.
        cards: What the authors of submissions say, by label.
        recipe: The recipe with every change made to it, so that it can be planned again.
    """

    name: str
    title: str
    dataset: DatasetInfo
    scenario: str
    difficulties: tuple[str, ...]
    parts: tuple[Part, ...]
    objective: str = "evasion"
    train_mode: str = "inductive"
    repeats: int = 1
    victims: int = 1
    training: Mapping[str, Any] = field(default_factory=dict)
    attack: Mapping[str, Any] = field(default_factory=dict)
    surrogates: tuple[str, ...] = ()
    paper: str = ""
    quick: bool = False
    cards: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    recipe: Mapping[str, Any] = field(default_factory=dict)

    @property
    def scores(self) -> tuple[str, ...]:
        """Keys of all scores, each once."""
        return tuple(dict.fromkeys(key for part in self.parts for key in part.scores))

    @property
    def certificates(self) -> tuple[str, ...]:
        """Keys of all certificates, each once."""
        return tuple(dict.fromkeys(key for part in self.parts for key in part.certificates))

    @property
    def measured(self) -> tuple[str, ...]:
        """Keys of all scores and certificates."""
        return (*self.scores, *self.certificates)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it; :meth:`from_dict` reads it back."""
        return serial.to_versioned(self, FORMAT)

    @classmethod
    def from_dict(cls, values: Any) -> StudyInfo:
        """Back from :meth:`to_dict`; anything else is refused."""
        return serial.from_versioned(cls, values, FORMAT, "a study")


@dataclass(frozen=True)
class DatasetSize:
    """How large a dataset is, for estimates of cost; a single graph is one of ``graphs``."""

    nodes: int
    edges: int
    features: int
    graphs: int = 1


@dataclass(frozen=True)
class Study:
    """Jobs that belong together: of a recipe, or of a taxonomy profiling.

    Args:
        title: One line about it.
        jobs: All jobs by key, inputs before users.
        targets: Keys of the jobs that are wanted for themselves; neighbours share inputs, so that a shard of neighbours
            repeats little work of the others.
        sizes: Sizes of the datasets by reference.
        info: What a board needs; None for a profiling, whose records say it all.
        steps: Number of steps of every attack, for estimates.
    """

    title: str
    jobs: Mapping[str, Job]
    targets: tuple[str, ...]
    sizes: Mapping[str, DatasetSize] = field(default_factory=dict)
    info: StudyInfo | None = None
    steps: Mapping[str, int] = field(default_factory=dict)

    def shard(self, index: int, count: int) -> Study:
        """The ``index``-th of ``count`` blocks of targets with all jobs that they need, beginning with 1."""
        if not (count >= 1 and 1 <= index <= count):
            raise DataError(f"the shard is {index}/{count}, but it must be from 1/{count} to {count}/{count}")
        size = -(-len(self.targets) // count)
        return self.only(self.targets[(index - 1) * size : index * size])

    def only(self, targets: Iterable[str]) -> Study:
        """The study with some of its targets and all jobs that they need; what its boards should show stays."""
        chosen = tuple(targets)
        needed = set(closure(self.jobs, chosen))
        return replace(self, jobs={key: job for key, job in self.jobs.items() if key in needed}, targets=chosen)

    def record(self, provenance: Mapping[str, Any]) -> Record | None:
        """The record by which a store knows which of its scores make a board; None if there is no board."""
        if self.info is None:
            return None
        data = DataRef(self.info.dataset.reference, self.info.dataset.fingerprint)
        # the keys of what is measured stand for the recipe, the methods' versions, threads, device and submissions
        spec = Spec(self.info.name, {"scores": digest(sorted(self.info.measured)), "title": self.info.title})
        job = Job("study", spec, data)
        return Record(job.key, job, self.info.to_dict(), {}, dict(provenance))


def recipe_facts(recipe: Recipe) -> dict[str, Any]:
    """What a study repeats of its recipe, by the names of :class:`StudyInfo`."""
    names = {spec.label for spec in recipe.surrogates}
    return {
        "name": recipe.name,
        "title": recipe.title or recipe.name,
        "scenario": recipe.scenario,
        "difficulties": recipe.modes,
        "objective": recipe.objective,
        "train_mode": recipe.train_mode,
        "repeats": recipe.repeats,
        "victims": recipe.victims,
        "training": dict(recipe.training),
        "attack": {} if recipe.iterations is None else {"iterations": recipe.iterations},
        "surrogates": tuple(sorted(names)) if recipe.scenario != CORRUPTION else (),
        "paper": recipe.paper,
        "quick": recipe.is_quick,
    }


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
