"""``grb figures``: the papers' figures, and a few more, from the results of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output
from grb.cli.leaderboard import FILES, boards_at
from grb.cli.options import Difficulty, Json, Recipes, StoreArgument, check_directory, store_at
from grb.errors import DataError, GRBError, UnknownName
from grb.names import is_import_path

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from grb.dataset import Dataset
    from grb.evaluator.board import Board
    from grb.pipeline.store import Store

KINDS = ("png", "svg", "pdf")


@dataclass(frozen=True)
class Result:
    """The boards of one study (several if it sweeps a limit), and the store behind them; None for boards from a file."""

    boards: tuple[Board, ...]
    store: Store | None = None

    @property
    def board(self) -> Board:
        """The first board."""
        return self.boards[0]

    def records(self) -> Store:
        """The store; refused for boards from a file."""
        if self.store is None:
            raise DataError("this figure needs the store, but a file of boards has none")
        return self.store

    def dataset(self) -> Dataset:
        """The dataset behind the boards, whose nodes are attacked; refused if it is not on this machine."""
        from grb.dataset import load_dataset

        if self.board.meta.get("task") == "graph":
            raise DataError(f"it shows nodes that are attacked, but '{self.board.dataset}' has graphs to classify")
        reference = str(self.board.meta.get("reference") or self.board.dataset)
        if is_import_path(reference):
            raise DataError(f"it needs the dataset '{reference[:60]}', which is code; draw it from Python")
        return load_dataset(reference)


Drawn = Iterator[tuple[str, "Figure"]]


def figures(
    store: StoreArgument = None,
    written: Annotated[Path, typer.Option("-o", "--output", help="The directory.")] = Path("figures"),
    kind: Annotated[str, typer.Option("--format", help="File format: png, svg or pdf.")] = "png",
    dpi: Annotated[int, typer.Option(help="Dots per inch of a PNG.")] = 300,
    only: Annotated[
        list[str] | None, typer.Option("--only", help="One of the figures below, again for more; all if not given.")
    ] = None,
    recipe: Recipes = None,
    difficulty: Difficulty = None,
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
      queries            accuracy over the number of queries, of a recipe that sweeps it
      gains              effect of layer norm and adversarial training (Figures 10 and 11)
      process            how attacks proceed, step by step
      degree-accuracy    accuracy by the degree of the target
      unnoticeability    homophily, degree and features before and after an edit, and AUROC of detectors
      bracket            what is certified and what attacks left, over the budget

    \b
    Figures that need no results, drawn if --only asks for them:
      perturbations      one graph under the thirteen perturbations (Figure 2 of the taxonomy paper)
      diagrams           the scenario, how a score is made, layer normalisation

    \b
    Examples:
      grb figures results -o figures
      grb figures results --recipe budget-grb-cora --only budget --format pdf
      grb figures --only perturbations --only diagrams
    """
    from grb.leaderboard.text import slug

    wanted = _chosen(only)
    if kind not in KINDS:
        raise UnknownName("format", kind, KINDS, advice=f"Allowed: {', '.join(KINDS)}.")
    if not 30 <= dpi <= 1200:
        raise DataError(f"--dpi is {dpi}, but a number from 30 to 1200 is needed")
    check_directory(written, written)
    alone = [name for name in wanted if name in ALONE]
    made = [_save(figure, written / f"{part}.{kind}", dpi, as_json) for name in alone for part, figure in ALONE[name]()]
    skipped: list[dict[str, str]] = []
    wanted = [name for name in wanted if name not in ALONE]
    results = _results(store, recipe) if wanted else []
    for result in results:
        title = str(result.board.meta.get("recipe") or result.board.dataset)
        targets = _mode(result.board, difficulty)
        for name in wanted if only else _suitable(result, wanted):
            try:
                for part, figure in FIGURES[name](result, targets):
                    made.append(_save(figure, written / f"{slug(title)}-{part}.{kind}", dpi, as_json))
            except GRBError as error:  # a dataset that is not on this machine is no reason to draw nothing
                skipped.append({"figure": name, "board": title, "reason": str(error)})
    if as_json:
        output.print_json({"files": [str(path) for path in made], "skipped": skipped})
    else:
        for each in skipped:
            output.echo(f"not drawn: {each['figure']} of {each['board']}: {each['reason']}")
    if not made:
        raise DataError("none of these figures can be drawn from these results")


def _chosen(only: Sequence[str] | None) -> list[str]:
    for name in only or ():
        if name not in FIGURES and name not in ALONE:
            known = [*FIGURES, *ALONE]
            raise UnknownName("figure", name, known, advice=f"Allowed: {', '.join(known)}.")
    return list(dict.fromkeys(only)) if only else list(FIGURES)


def _suitable(result: Result, wanted: list[str]) -> list[str]:
    """Figures that say something about a study: one that varies a limit ranks nobody, and others do not vary any."""
    swept = {board.limit[0] for board in result.boards if board.limit is not None}
    certified = any(board.meta.get("certificates") for board in result.boards)
    fits = {"bracket": certified, "budget": bool(swept), "queries": "queries" in swept}
    return [name for name in wanted if fits.get(name, not swept)]


def _results(source: Path | None, recipes: Sequence[str] | None) -> list[Result]:
    """Boards by study."""
    store = None if source is not None and source.suffix in FILES else store_at(source)
    found: dict[tuple[str, str], list[Board]] = {}
    for board in boards_at(source, recipes):
        suffix = "" if board.limit is not None else str(len(found))
        found.setdefault((str(board.meta.get("recipe")), suffix), []).append(board)
    return [Result(tuple(boards), store) for boards in found.values()]


def _mode(board: Board, difficulty: str | None) -> str:
    from grb.leaderboard.table import chosen_difficulty

    return chosen_difficulty(board, difficulty)


def _save(figure: Figure, path: Path, dpi: int, as_json: bool) -> Path:
    from grb.visualise import save

    done = save(figure, path, dpi=dpi)
    if not as_json:
        output.echo(f"written to {done}")
    return done


def _degrees(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    yield "fig04-degrees", visualise.draw_degrees(visualise.degrees(result.dataset()))


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

    data = visualise.sweeps(result.boards, difficulty)
    yield "fig08-limits-models", visualise.draw_models(data)
    yield "fig09-limits-attacks", visualise.draw_attacks(data)


def _queries(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    curves = visualise.query_curves(result.boards, difficulty)
    yield (
        "queries",
        visualise.draw_query_curves(curves, title=f"Accuracy over queries, {result.board.dataset}, {difficulty}"),
    )


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

    strips = visualise.process(result.board, result.records(), difficulty)
    yield "process", visualise.draw_process(strips, title=f"Attack process, {result.board.dataset}, {difficulty}")


def _degree_accuracy(result: Result, difficulty: str) -> Drawn:
    from grb import visualise
    from grb.evaluator.targeted import board_targets

    dataset = result.dataset()
    correct = visualise.measured_correct(result.board, result.records(), difficulty)
    degrees = dataset.graph.adj.degrees[board_targets(result.board, dataset, difficulty)].numpy()
    order = [name for name in result.board.attacks if name in correct]
    listed = {name: correct[name] for name in order}
    data = visualise.degree_accuracy(degrees, listed, dataset=dataset.name, difficulty=difficulty)
    yield "degree-accuracy", visualise.draw_degree_accuracy(data)


def _unnoticeability(result: Result, difficulty: str) -> Drawn:
    from grb import visualise
    from grb.graph import GraphEdit

    dataset, store = result.dataset(), result.records()
    found = {}
    for attack in result.board.attacks[:MAX_EDITS]:
        cells = (result.board.cell(attack, defense, difficulty) for defense in result.board.defenses)
        keys = [metadata["attack"] for cell in cells if cell for metadata in cell.metadata if "attack" in metadata]
        if keys:
            edit = GraphEdit.load(store.find(store.read(keys[0]), "edit"))
            detected = visualise.detections(dataset, edit)
            found[attack] = visualise.unnoticeability(dataset.graph, edit, detected=detected)
    title = f"What attacks leave to notice, {dataset.name}, {difficulty}"
    yield "unnoticeability", visualise.draw_unnoticeability(found, title=title)


def _bracket(result: Result, difficulty: str) -> Drawn:
    from grb import visualise

    found = visualise.board_brackets(result.boards, difficulty)
    if not found:
        raise DataError(f"the board of {result.board.dataset} has no certificate of a defense itself")
    title = f"Certified and attacked, {result.board.dataset}, {difficulty}"
    yield "bracket", visualise.draw_bracket(found, title=title)


def _perturbations() -> Drawn:
    import torch

    from grb import visualise
    from grb.dataset import load_dataset

    ball = visualise.ball(load_dataset("synth-tiny").graph, NODES_SHOWN)
    data = visualise.perturbation_gallery(ball, generator=torch.Generator().manual_seed(0))
    yield "perturbations", visualise.draw_gallery(data)


def _diagrams() -> Drawn:
    from grb import visualise

    yield "scenario", visualise.draw_scenario()
    yield "framework", visualise.draw_framework()
    yield "layer-norm", visualise.draw_layer_norm()


# large enough for every perturbation to do something, small enough for a panel
NODES_SHOWN = 40
# as many edits as fit on a page
MAX_EDITS = 6
FIGURES: dict[str, Callable[[Result, str], Drawn]] = {
    "degrees": _degrees,
    "rankings": _rankings,
    "difficulty": _difficulty,
    "budget": _budget,
    "queries": _queries,
    "gains": _gains,
    "process": _process,
    "degree-accuracy": _degree_accuracy,
    "unnoticeability": _unnoticeability,
    "bracket": _bracket,
}
# figures that need no results
ALONE: dict[str, Callable[[], Drawn]] = {"perturbations": _perturbations, "diagrams": _diagrams}
