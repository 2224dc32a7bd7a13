"""``grb run``: carry out a recipe; running again resumes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output, run_options
from grb.cli.options import Json

if TYPE_CHECKING:
    from grb.pipeline import Recipe, Store


def run(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (`grb ls recipes`) or a YAML file.")],
    store: run_options.StoreDir = None,
    quick: run_options.Quick = False,
    victims: run_options.Victims = None,
    repeats: run_options.Repeats = None,
    modes: run_options.Modes = None,
    shard: run_options.Shard = None,
    workers: run_options.Workers = None,
    timeout: run_options.Timeout = None,
    memory: run_options.Memory = None,
    dask: run_options.Dask = None,
    as_json: Json = False,
) -> None:
    """Train what is missing, attack, score, and show the leaderboard; running again resumes.

    Ctrl-C (or SIGTERM) once lets running jobs finish, twice stops now; nothing that was done is lost.

    \b
    Examples:
      grb run synth-cora
      grb run my-recipe.yaml --store results --workers 2
      grb run grb-cora --shard 1/4
      grb run grb-cora --dask tcp://127.0.0.1:8786
    """
    made = run_options.chosen(recipe, quick=quick, victims=victims, repeats=repeats, modes=modes)
    finish(recipe, made, run_options.store_at(store), shard, workers, timeout, memory, dask, as_json)


def finish(
    source: str,
    recipe: Recipe,
    store: Store,
    shard: str | None,
    workers: int | None,
    timeout: float | None,
    memory: float | None,
    dask: str | None,
    as_json: bool,
) -> None:
    """Run a recipe and show what came of it; ends the command with its exit code."""
    from grb.cli.leaderboard import show_board
    from grb.leaderboard.boards import shown_board
    from grb.pipeline import plan_study, recipe_names
    from grb.pipeline.submission import submissions

    study = plan_study(recipe, submitted=submissions(store))
    outcome = run_options.carry_out(
        run_options.part(study, shard),
        store,
        workers=workers,
        timeout=timeout,
        memory=memory,
        cluster=dask,
        as_json=as_json,
    )
    if any(store.has(place.score) for place in study.places):
        show_board(shown_board(study, store), as_json=as_json)
    output.say(f"{outcome.done} jobs done, {outcome.cached} were there already; store: {store.path}")
    named = [] if source in recipe_names() else ["--recipe", source]
    advice = shlex.join(["grb", "leaderboard", "build", str(store.path), *named, "-o", "page.html"])
    output.say(f"as a page: {advice}")
    if code := run_options.exit_code(outcome):
        raise typer.Exit(code)
