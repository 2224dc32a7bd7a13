"""``grb reproduce``: a dataset's leaderboard, with the paper's numbers beside ours where it has them."""

from __future__ import annotations

from typing import Annotated

import typer

from grb.cli import studying
from grb.cli.options import Json, names
from grb.cli.run import finish
from grb.errors import UnknownName


def reproduce(
    dataset: Annotated[str, typer.Argument(help="grb-cora, synth-cora, ...", autocompletion=names("dataset"))],
    scenario: Annotated[str, typer.Option(help="injection, modification or corruption.")] = "injection",
    store: studying.StoreDir = None,
    quick: studying.Quick = False,
    victims: studying.Victims = None,
    repeats: studying.Repeats = None,
    modes: studying.Modes = None,
    shard: studying.Shard = None,
    workers: studying.Workers = None,
    timeout: studying.Timeout = None,
    memory: studying.Memory = None,
    dask: studying.Dask = None,
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
    made = studying.chosen(name, quick=quick, victims=victims, repeats=repeats, modes=modes)
    finish(name, made, studying.store_at(store), shard, workers, timeout, memory, dask, as_json)
