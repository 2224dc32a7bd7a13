"""``grb plan``: what a recipe will run, what is done already, and what the rest will cost."""

from __future__ import annotations

from typing import Annotated

import typer

from grb.cli import output, run_options
from grb.cli.options import Json
from grb.cli.progress import duration


def plan(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (`grb ls recipes`) or a YAML file.")],
    store: run_options.StoreDir = None,
    quick: run_options.Quick = False,
    victims: run_options.Victims = None,
    repeats: run_options.Repeats = None,
    modes: run_options.Modes = None,
    shard: run_options.Shard = None,
    workers: run_options.Workers = None,
    as_json: Json = False,
) -> None:
    """Show the jobs of a recipe: how many, how many are done, and the time, memory and disk of the rest.

    \b
    Examples:
      grb plan synth-cora
      grb plan grb-cora --victims 5 --store results
    """
    import os

    from grb.pipeline import plan_study
    from grb.pipeline.estimate import estimate

    place = run_options.store_at(store)
    made = run_options.chosen(recipe, quick=quick, victims=victims, repeats=repeats, modes=modes)
    study = run_options.part(plan_study(made), shard)
    lines = estimate(study, place)
    cores = max(workers if workers is not None else os.cpu_count() or 1, 1)
    seconds = sum(line.seconds for line in lines)
    if as_json:
        output.print_json(
            {
                "recipe": made.name,
                "dataset": made.dataset,
                "store": str(place.path),
                "jobs": [vars(line) for line in lines],
                "cpu_seconds": seconds,
                "workers": cores,
                "measurements": len(study.places),
            }
        )
        return
    rows = [
        [
            line.kind,
            line.jobs,
            line.cached,
            line.jobs - line.cached,
            ("" if line.measured else "~") + duration(line.seconds),
            f"{line.bytes / 2**20:.1f}",
            f"{line.megabytes:.0f}" if line.jobs > line.cached else "-",
        ]
        for line in lines
    ]
    headers = ["jobs", "all", "done", "to do", "CPU time", "disk MB", "memory MB"]
    output.table(made.title or made.name, headers, rows, numbers=headers[1:])
    sure = all(line.measured for line in lines)
    output.say(
        f"about {duration(seconds / cores)} on {cores} workers"
        + ("" if sure else "; ~ is guessed from the dataset's size")
        + f"; store: {place.path}"
    )
