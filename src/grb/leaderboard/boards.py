"""The boards of a store: which recipes it has results of, and what they show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grb.errors import DataError, MissingDataset
from grb.evaluator.matrix import CLEAN, Board
from grb.pipeline.job import Job
from grb.pipeline.plan import Study, plan_study
from grb.pipeline.recipe import Recipe, read_recipe, recipe_names
from grb.pipeline.results import board as board_of
from grb.pipeline.store import Store
from grb.pipeline.submission import submissions
from grb.visualise.budget import split_label

RANDOM = "rnd"
# a reported accuracy may be so far from the measured one
REPORTED = 0.02


@dataclass(frozen=True)
class Found:
    """A study that the store has results of, and its board."""

    study: Study
    board: Board


@dataclass(frozen=True)
class _Setting:
    """What a job's key depends on besides its recipe."""

    dataset: str
    threads: int
    device: str


def _ignore(sentence: str) -> None:
    del sentence


def boards_of(
    store: Store,
    recipes: Iterable[str | Path | Recipe] | None = None,
    *,
    data_dir: str | None = None,
    on_skip: Callable[[str], None] = _ignore,
) -> list[Board]:
    """Boards of the recipes that a store has scores of; all that come with grb if none are named.

    Args:
        store: Where the records are.
        recipes: Names, files or recipes; each must have scores. Without any, ``on_skip`` gets a sentence about those
            whose dataset is not on this machine.
        data_dir: Where to look for datasets first.
    """
    return [found.board for found in studies_of(store, recipes, data_dir=data_dir, on_skip=on_skip)]


def studies_of(
    store: Store,
    recipes: Iterable[str | Path | Recipe] | None = None,
    *,
    data_dir: str | None = None,
    on_skip: Callable[[str], None] = _ignore,
) -> list[Found]:
    """As :func:`boards_of`, with the studies, which know the dataset and every job."""
    settings = _settings(store)
    if not settings:
        raise DataError(f"{store.path} has no scores; `grb reproduce synth-cora --store {store.path}` makes some")
    if recipes is None:
        planned = [
            each
            for name in recipe_names()
            for each in _planned(_variants(read_recipe(name)), store, settings, data_dir, on_skip)
        ]
        chosen = _telling(planned)
        if not chosen:
            raise DataError(f"no recipe of grb has scores in {store.path}; name your own with --recipe FILE.yaml")
    else:
        chosen = []
        for source in recipes:
            recipe = source if isinstance(source, Recipe) else read_recipe(source)
            own = _with_scores(recipe, store, settings, data_dir)
            if not own:
                raise DataError(f"{store.path} has no scores of recipe '{recipe.name}'; `grb run` makes them")
            chosen += own
    return [Found(each.study, shown_board(each.study, store)) for each in chosen]


def variant_in(store: Store, recipe: Recipe, *, data_dir: str | None = None) -> Recipe:
    """The recipe, or its quick variant if that is what the store has scores of."""
    own = _with_scores(recipe, store, _settings(store), data_dir)
    return own[0].study.recipe if own else recipe


def _with_scores(recipe: Recipe, store: Store, settings: set[_Setting], data_dir: str | None) -> list[_Planned]:
    """The variants of a recipe that the store has scores of."""
    own = _planned(_variants(recipe), store, settings, data_dir, None)
    return _telling(own) or own[:1]


def shown_board(study: Study, store: Store) -> Board:
    """The board of a study as it is shown: with the specs behind its cells and with what the checks of scores found."""
    board = with_specs(board_of(study, store), study.jobs)
    board = replace(board, flags=(*board.flags, *_told(study, board)))
    return checked(board, {mode: len(study.dataset.test_ids(mode)) for mode in board.modes})


def _told(study: Study, board: Board) -> Iterator[str]:
    """What the cards of submissions own up to, and what they say that was not found here."""
    for label, card in study.cards.items():
        if card.unreliable:
            yield f"{label} is unreliable: {card.unreliable[:200]}"
        for other, share in card.reported.items():
            pair = (label, other) if card.kind == "attack" else (other, label)
            cell = board.cell(*pair, card.mode)
            if cell is not None and abs(cell.accuracy.mean - share) > REPORTED:
                yield (
                    f"{label} reports {100 * share:.1f} % for {other[:60]}, but {100 * cell.accuracy.mean:.1f} % was found"
                )


@dataclass(frozen=True, eq=False)
class _Planned:
    """A study and the scores of attacks that the store has of it."""

    study: Study
    attacked: frozenset[str]
    quick: bool


def _variants(recipe: Recipe) -> list[Recipe]:
    return [recipe, recipe.quickly()]


def _planned(
    variants: Iterable[Recipe],
    store: Store,
    settings: set[_Setting],
    data_dir: str | None,
    on_skip: Callable[[str], None] | None,
) -> list[_Planned]:
    """Studies that the store has scores of; without ``on_skip`` a dataset that is not here is an error."""
    found: list[_Planned] = []
    for number, recipe in enumerate(variants):
        for setting in sorted(settings, key=lambda each: (each.dataset, each.threads, each.device)):
            if setting.dataset != recipe.dataset:
                continue
            try:
                study = plan_study(
                    recipe,
                    threads=setting.threads,
                    device=setting.device,
                    data_dir=data_dir,
                    submitted=submissions(store),
                )
            except MissingDataset as error:
                if on_skip is None:
                    raise
                on_skip(f"recipes on '{recipe.dataset}' are left out: {error}")
                settings -= {each for each in settings if each.dataset == recipe.dataset}  # asked for once is enough
                return found
            measured = {place for place in study.places if store.has(place.score)}
            if measured:
                attacked = frozenset(place.score for place in measured if place.attack != CLEAN)
                found.append(_Planned(study, attacked, number > 0))
    return found


def _telling(planned: Iterable[_Planned]) -> list[_Planned]:
    """Without studies whose scores another one shows: recipes on one dataset share trainings, edits and so scores."""
    listed = list(planned)
    seen: set[str] = set()
    chosen = []
    for each in sorted(listed, key=lambda each: (-len(each.attacked), each.quick)):
        if each.attacked - seen:
            seen |= each.attacked
            chosen.append(each)
    return [each for each in listed if each in chosen]


def _settings(store: Store) -> set[_Setting]:
    """Datasets, threads and devices of all scores; damaged records are skipped here, whoever shows them complains."""
    found = set()
    for key in list(store.keys()):
        try:
            job = json.loads(store.record_path(key).read_bytes())["job"]
            if job["kind"] == "score":
                found.add(_Setting(str(job["data"]["dataset"]), int(job["threads"]), str(job["device"])))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
    return found


def with_specs(board: Board, jobs: Mapping[str, Job]) -> Board:
    """The board with the spec of every victim and attack beside their keys."""

    def told(facts: Mapping[str, Any]) -> dict[str, Any]:
        more = {
            f"{role}_spec": jobs[facts[role]].spec.plain()
            for role in ("victim", "attack")
            if facts.get(role) in jobs and f"{role}_spec" not in facts
        }
        return {**facts, **more}

    cells = (replace(cell, facts=tuple(told(facts) for facts in cell.facts)) for cell in board.cells)
    return replace(board, cells=tuple(cells))


def checked(board: Board, targets: Mapping[str, int]) -> Board:
    """The board with a flag for every pair of scores that do not fit together, see :func:`grb.evaluator.check_scores`.

    Args:
        targets: Number of targets by difficulty; single values have noise through it.
    """
    from grb.evaluator import check_scores

    if any(split_label(attack) for attack in board.attacks):
        return board  # with several budgets a weak attack may only have had a small one
    found = []
    for mode in board.modes:
        for defense in board.defenses:
            cells = [cell for attack in board.attacks if (cell := board.cell(attack, defense, mode)) is not None]
            scores = {cell.attack: cell.values for cell in cells}
            whites = [board.cell(attack, defense, mode, white_box=True) for attack in board.white_box]
            clean, random = (scores.pop(name, None) for name in (CLEAN, RANDOM))
            flags = check_scores(
                clean=clean,
                random=random,
                transfer=scores,
                white_box={cell.attack: cell.values for cell in whites if cell is not None},
                num_targets=targets.get(mode),
                where=f"{defense}, {mode}",
            )
            found += [str(flag) for flag in flags]
    return replace(board, flags=(*board.flags, *found))
