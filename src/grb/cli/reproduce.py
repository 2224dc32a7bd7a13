"""``grb reproduce``: a dataset's leaderboard, with the paper's numbers beside ours where it has them."""

from __future__ import annotations

from typing import Annotated

import typer

from grb.cli import run_options
from grb.cli.options import Json, names
from grb.cli.run import finish
from grb.errors import UnknownName


def reproduce(
    dataset: Annotated[str, typer.Argument(help="grb-cora, synth-cora, ...", autocompletion=names("dataset"))],
    scenario: Annotated[str, typer.Option(help="injection, modification or corruption.")] = "injection",
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
    """Train, attack and evaluate what a dataset's leaderboard needs, and show it; running again resumes.

    \b
    Examples:
      grb reproduce synth-cora             needs no download
      grb reproduce grb-cora --quick       the paper's table in minutes
      grb reproduce grb-cora --victims 5   with intervals over trainings
    """
    from grb.pipeline import recipe_names

    name = dataset if scenario == "injection" else f"{dataset}-{scenario}"
    if name not in recipe_names():
        raise UnknownName(
            "leaderboard of", name, recipe_names(), advice="`grb ls recipes` shows all; `grb run` takes a file."
        )
    made = run_options.chosen(name, quick=quick, victims=victims, repeats=repeats, modes=modes)
    finish(name, made, run_options.store_at(store), shard, workers, timeout, memory, dask, as_json)
