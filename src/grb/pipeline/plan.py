"""From a recipe to a study: its jobs, and the boards that they make."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from grb.attack.build import build_attack, steps_of
from grb.dataset import Dataset, dataset_reference, load_dataset
from grb.errors import DataError
from grb.evaluator.measurement import DatasetInfo, TargetInfo
from grb.evaluator.scoring import check_metrics
from grb.pipeline.card import Card
from grb.pipeline.entry import entry_label, usable
from grb.pipeline.job import DataRef, Job
from grb.pipeline.planner import Limit, PlannedScore, Planner
from grb.pipeline.recipe import CORRUPTION, Recipe
from grb.pipeline.record import SUBMISSION, Record
from grb.pipeline.spec import canonical_json
from grb.pipeline.store import Store
from grb.pipeline.study import DatasetSize, Part, Study, StudyInfo, closure, recipe_facts


def plan_study(
    recipe: Recipe,
    *,
    threads: int = 1,
    device: str = "cpu",
    data_dir: str | None = None,
    submitted: Iterable[Record] = (),
) -> Study:
    """Plan the jobs of a recipe; every name and parameter in it is checked here, before anything runs.

    Args:
        recipe: What to run.
        threads: Number of torch threads of every job.
        device: Kind of device.
        data_dir: Where to look for the dataset first.
        submitted: Records of submissions (:func:`grb.pipeline.submission.submissions`): those for this dataset and scenario
            join; defenses meet every attack, attacks meet every defense.
    """
    dataset = load_dataset(recipe.dataset, data_dir=data_dir)
    check_metrics(recipe.metrics, dataset)
    reference = dataset_reference(recipe.dataset, dataset)
    data = DataRef(reference, dataset.fingerprint(), data_dir=data_dir)
    common: dict[str, Any] = {"threads": threads, "device": device}
    if dataset.task == "graph":
        jobs, scores = _plan_folds(recipe, dataset, data, common)
        cards: dict[str, Card] = {}
        certificates: list[tuple[str, Limit]] = []
    else:
        planner = Planner(recipe, dataset, data, common)
        joined = planner.joining(submitted)
        victims = {**planner.victims(), **planner.submitted_victims(joined)}
        scores = [*planner.scores(victims), *planner.submitted_attacks(joined, victims)]
        certificates = list(planner.certificates(victims))
        jobs, cards = planner.jobs, {entry_label(job): card for job, card in joined}
    size = DatasetSize(dataset.num_nodes, dataset.num_edges, dataset.num_features)
    ordered = sorted(scores, key=lambda score: score.order)
    return Study(
        recipe.title or recipe.name,
        jobs,
        tuple(dict.fromkeys([*(score.key for score in ordered), *(key for key, _ in certificates)])),
        {reference: size},
        _info(recipe, dataset, reference, scores, cards, certificates),
        {key: _steps(job, dataset) for key, job in jobs.items() if job.kind == "attack"},
    )


def _steps(job: Job, dataset: Dataset) -> int:
    """Number of steps of a planned attack, for estimates; 1 if it has none or was submitted."""
    if job.spec.name == SUBMISSION:
        return 1
    return _built_steps(job.spec.name, dataset.name, canonical_json(job.spec.params))


@cache
def _built_steps(attack: str, dataset: str, params: str) -> int:
    return steps_of(build_attack(attack, dataset, **json.loads(params))) or 1


def _info(
    recipe: Recipe,
    dataset: Dataset,
    reference: str,
    scores: list[PlannedScore],
    cards: Mapping[str, Card],
    certificates: list[tuple[str, Limit]],
) -> StudyInfo:
    limits = list(dict.fromkeys(score.limit for score in scores if not score.clean)) or [None]
    parts = []
    for limit in limits:
        own = {score.key: score.measurements for score in scores if score.clean or score.limit == limit}
        certified = tuple(dict.fromkeys(key for key, under in certificates if under == limit))
        parts.append(Part(tuple(own), sum(own.values()), limit, certified))
    return StudyInfo(
        **recipe_facts(recipe),
        dataset=DatasetInfo(
            dataset.name,
            reference,
            dataset.fingerprint(),
            dataset.synthetic,
            dataset.task,
            targets=TargetInfo(recipe.targets, recipe.seed) if recipe.targets else None,
        ),
        parts=tuple(parts),
        cards={label: card.displayed() for label, card in cards.items()},
        recipe=recipe.to_dict(),
    )


def _plan_folds(
    recipe: Recipe, dataset: Dataset, data: DataRef, common: Mapping[str, Any]
) -> tuple[dict[str, Job], list[PlannedScore]]:
    """Graphs to classify: training r of every victim is on split r and meets the attacks on the test graphs of that split."""
    if recipe.scenario == CORRUPTION:
        raise DataError(
            f"recipe '{recipe.name}' perturbs '{dataset.name}', whose graphs are classified; corruption is for nodes, "
            "`grb taxonomy run` perturbs collections"
        )
    if recipe.objective != "evasion" or recipe.train_mode != "inductive":
        raise DataError(
            f"recipe '{recipe.name}' asks for {recipe.objective} and {recipe.train_mode} training, but the graphs of "
            f"'{dataset.name}' are separate; only evasion and inductive training are possible there"
        )
    if recipe.targets:
        raise DataError(
            f"recipe '{recipe.name}' has targets, which are nodes of one graph, but '{dataset.name}' has graphs to classify; "
            "leave targets out"
        )
    if recipe.certificates:
        raise DataError(
            f"recipe '{recipe.name}' asks for certificates, which are for nodes of one graph, but '{dataset.name}' has graphs "
            "to classify; leave certificates out"
        )
    if dataset.scheme is None and recipe.victims > 1:
        raise DataError(f"dataset '{dataset.name}' has one split, but the recipe asks for victims={recipe.victims}")
    jobs: dict[str, Job] = {}
    scores: list[PlannedScore] = []
    for fold in range(recipe.victims):
        number = None if dataset.scheme is None else fold
        own = dataset if number is None else dataset.with_split(number)
        part = replace(recipe, victims=1, seed=recipe.seed + fold)
        planner = Planner(part, own, replace(data, split=number), common)
        scores += planner.scores(planner.victims())
        jobs |= planner.jobs
    return jobs, scores


def join_submission(
    store: Store, submission: Record, recipe: Recipe, *, data_dir: str | None = None, trust_code: bool = False
) -> tuple[Study, Study]:
    """The study of a recipe with a submission in it, and the part that has to be done for the submission.

    An attack meets the defenses whose weights the store has; a defense meets the attacks whose edits it has, and is
    attacked itself as the recipe's white-box attacks do.
    """
    others = [record for record in usable(store, trust_code=trust_code)[0] if record.key != submission.key]
    study = plan_study(recipe, data_dir=data_dir, submitted=[*others, submission])
    label = entry_label(submission.job)
    if submission.key not in study.jobs:
        raise DataError(
            f"{label} does not fit recipe '{recipe.name}': its dataset, scenario, difficulty or range of features is another"
        )

    def possible(score: str) -> bool:
        needed = set(closure(study.jobs, [score]))
        missing = [key for key in needed if not store.has(key) and key != submission.key]
        return submission.key in needed and all(
            study.jobs[key].kind == "score" or submission.key in study.jobs[key].needs for key in missing
        )

    targets = [score for score in study.targets if possible(score)]
    if not any(study.jobs[score].data.chain for score in targets):
        raise DataError(
            f"{store.path} has nothing of recipe '{recipe.name}' that {label} could meet; "
            "run it first, or name the recipe that was run with --recipe FILE.yaml"
        )
    return study, study.only(targets)
