"""``grb figures``: the papers' figures, and a few more, from the results of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output
from grb.cli.leaderboard import Recipes, Source, boards_at, found_at
from grb.cli.options import DataDir, Json, check_directory
from grb.errors import DataError, UnknownName

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grb.evaluator.board import Board
    from grb.pipeline.plan import Study
    from grb.pipeline.store import Store

KINDS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Result:
    """One board, with its study and store where it comes from a store."""

    board: Board
    study: Study | None = None
    store: Store | None = None

    def needed(self) -> tuple[Study, Store]:
        """The study and the store; refused for boards from a file."""
        if self.study is None or self.store is None:
            raise DataError("this figure needs the store and the dataset, and a file of boards has neither")
        return self.study, self.store


Drawn = Iterator[tuple[str, "Figure"]]


def figures(
    store: Source = None,
    written: Annotated[Path, typer.Option("-o", "--output", help="The directory.")] = Path("figures"),
    kind: Annotated[str, typer.Option("--format", help="png, svg or pdf.")] = "png",
    dpi: Annotated[int, typer.Option(help="Dots per inch of a PNG.")] = 300,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="One of the figures below, again for more; all if not given.")
    ] = None,
    recipe: Recipes = None,
    difficulty: Annotated[
        str | None, typer.Option(help="Difficulty of figures that show one; the last if not given.")
    ] = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Draw what the results of a store show; figures that a board has no data for are left out with a reason.

    Boards that vary a limit get the figures of the limits, all others the rest, unless --only asks for more.

    \b
    Figures:
      degrees            degree and difficulty of the dataset (Figure 4 of the paper)
      rankings           vanilla and defended models (Figures 5 and 6)
      difficulty         effect of the difficulty (Figure 7)
      budget             effect of the limits (Figures 8 and 9), of a recipe with a sweep
      gains              effect of layer norm and adversarial training (Figures 10 and 11)
      process            how attacks proceed, step by step
      degree-accuracy    accuracy by the degree of the target
      unnoticeability    homophily, degree and features before and after an edit

    \b
    Examples:
      grb figures results -o figures
      grb figures results --recipe budget-grb-cora --only budget --format pdf
    """
    from grb.leaderboard.text import slug

    wanted = _chosen(only)
    if kind not in KINDS:
        raise UnknownName("format", kind, KINDS, advice=f"Allowed: {', '.join(KINDS)}.")
    if not 30 <= dpi <= 1200:
        raise DataError(f"--dpi is {dpi}, but a number from 30 to 1200 is needed")
    check_directory(written, written)
    results = _results(store, recipe, data_dir)
    made: list[Path] = []
    skipped: list[dict[str, str]] = []
    for result in results:
        title = str(result.board.meta.get("recipe") or result.board.dataset)
        for name in wanted if only else _telling(result.board, wanted):
            try:
                for part, figure in FIGURES[name](result, _mode(result.board, difficulty)):
                    made.append(_save(figure, written / f"{slug(title)}-{part}.{kind}", dpi, as_json))
            except DataError as error:
                skipped.append({"figure": name, "board": title, "reason": str(error)})
    if as_json:
        output.print_json({"files": [str(path) for path in made], "skipped": skipped})
    else:
        for each in skipped:
            output.say(f"not drawn: {each['figure']} of {each['board']}: {each['reason']}")
    if not made:
        raise DataError("none of these figures can be drawn from these results")


def _chosen(only: Sequence[str] | None) -> list[str]:
    for name in only or ():
        if name not in FIGURES:
            raise UnknownName("figure", name, FIGURES, advice=f"Allowed: {', '.join(FIGURES)}.")
    return list(dict.fromkeys(only)) if only else list(FIGURES)


def _telling(board: Board, wanted: list[str]) -> list[str]:
    """Figures that say something about a board: one that varies a limit ranks nobody, and others do not vary any."""
    from grb.visualise.budget import split_label

    swept = any(split_label(attack) for attack in board.attacks)
    return [name for name in wanted if (name == "budget") == swept]


def _results(source: Path | None, recipes: Sequence[str] | None, data_dir: Path | None) -> list[Result]:
    if source is not None and source.suffix == ".json":
        return [Result(board) for board in boards_at(source, recipes, data_dir)]
    from grb.cli.run_options import store_at

    place = store_at(source)
    return [Result(found.board, found.study, place) for found in found_at(source, recipes, data_dir)]


def _mode(board: Board, difficulty: str | None) -> str:
    from grb.leaderboard.table import chosen_mode

    return chosen_mode(board, difficulty)


def _save(figure: Figure, path: Path, dpi: int, as_json: bool) -> Path:
    from grb.visualise import save

    done = save(figure, path, dpi=dpi)
    if not as_json:
        output.say(f"written to {done}")
    return done


def _of_nodes(result: Result) -> tuple[Study, Store]:
    """What a figure of targets that are nodes needs."""
    study, store = result.needed()
    if study.dataset.task == "graph":
        raise DataError(f"it shows nodes that are attacked, but '{study.dataset.name}' has graphs to classify")
    return study, store


def _degrees(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    yield "fig04-degrees", visualise.draw_degrees(visualise.degrees(_of_nodes(result)[0].dataset))


def _rankings(result: Result, difficulty: str) -> Drawn:
    from grb import visualise
    from grb.visualise.rankings import Kind

    board = result.board
    kinds: tuple[tuple[str, Kind, str], ...] = (
        ("fig05-vanilla", "vanilla", "Ranking of vanilla models"),
        ("fig06-defended", "defended", "Ranking of defended models"),
    )
    drawn = 0
    for name, kind, title in kinds:
        try:
            data = [visualise.ranking(board, each, kind) for each in board.difficulties]
        except DataError:
            continue
        drawn += 1
        yield name, visualise.draw_rankings(data, title=f"{title}, {board.scenario}")
    if not drawn:
        raise DataError(f"the board of {board.dataset} ranks no models")


def _difficulty(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    yield "fig07-difficulty", visualise.draw_difficulty(visualise.difficulty(result.board))


def _budget(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    data = visualise.sweeps(result.board, difficulty)
    yield "fig08-limits-models", visualise.draw_models(data)
    yield "fig09-limits-attacks", visualise.draw_attacks(data)


def _gains(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    reasons = []
    for number, suffix in ((10, "ln"), (11, "at")):
        try:
            data = visualise.gains(result.board, suffix, difficulty)
        except DataError as error:
            reasons.append(str(error))
            continue
        yield f"fig{number}-gain-{suffix}", visualise.draw_gains(data)
    if len(reasons) == 2:
        raise DataError(f"the board of {result.board.dataset} has no model both without and with '+ln' or '+at'")


def _process(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    strips = visualise.process(result.board, result.needed()[1], difficulty)
    yield "process", visualise.draw_process(strips, title=f"Attack process, {result.board.dataset}, {difficulty}")


def _degree_accuracy(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    study, store = _of_nodes(result)
    correct = visualise.measured_correct(study, store, difficulty)
    degrees = study.dataset.graph.adj.degrees[study.dataset.test_ids(difficulty)].numpy()
    order = [name for name in result.board.attacks if name in correct]
    listed = {name: correct[name] for name in order}
    data = visualise.degree_accuracy(degrees, listed, dataset=study.dataset.name, difficulty=difficulty)
    yield "degree-accuracy", visualise.draw_degree_accuracy(data)


def _unnoticeability(result: Result, difficulty: str) -> Drawn:
    from grb import visualise
    from grb.graph import GraphEdit

    study, store = _of_nodes(result)
    found = {}
    for attack in result.board.attacks[:MAX_EDITS]:
        cells = (result.board.cell(attack, defense, difficulty) for defense in result.board.defenses)
        keys = [metadata["attack"] for cell in cells if cell for metadata in cell.metadata if "attack" in metadata]
        if keys:
            edit = GraphEdit.load(store.find(store.read(keys[0]), "edit"))
            found[attack] = visualise.unnoticeability(study.dataset.graph, edit)
    title = f"What attacks leave to notice, {study.dataset.name}, {difficulty}"
    yield "unnoticeability", visualise.draw_unnoticeability(found, title=title)


# as many edits as fit on a page
MAX_EDITS = 6
FIGURES: dict[str, Callable[[Result, str], Drawn]] = {
    "degrees": _degrees,
    "rankings": _rankings,
    "difficulty": _difficulty,
    "budget": _budget,
    "gains": _gains,
    "process": _process,
    "degree-accuracy": _degree_accuracy,
    "unnoticeability": _unnoticeability,
}
