"""What ``plan``, ``run`` and ``reproduce`` share: options, the study, its progress and its end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output
from grb.cli.options import check_counts
from grb.cli.progress import ProgressReporter
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Outcome, Recipe, Store, Study

StoreDir = Annotated[
    Path | None, typer.Option("--store", help="Directory of records and artefacts; below GRB_HOME if not given.")
]
Quick = Annotated[bool, typer.Option("--quick", help="The recipe's small variant: fewer repeats and iterations.")]
Victims = Annotated[int | None, typer.Option(help="Trainings of every victim; 1 in the paper.")]
Repeats = Annotated[int | None, typer.Option(help="Draws of surrogate and edges per attack; 10 in the paper.")]
Modes = Annotated[str | None, typer.Option(help="Difficulties, for instance easy,full.")]
Shard = Annotated[str | None, typer.Option(metavar="I/N", help="Only the I-th of N parts, for several machines.")]
Workers = Annotated[int | None, typer.Option(help="Processes; as many as there are cores if not given.")]
Timeout = Annotated[float | None, typer.Option(help="Seconds per job.")]
Memory = Annotated[float | None, typer.Option(help="Megabytes per worker.")]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="On a Dask cluster: its scheduler's address, or local, or local:4."),
]
LOOPBACK = ("127.", "localhost", "[::1]")


def store_at(path: Path | None) -> Store:
    """The store at a path, or the one below GRB_HOME."""
    from grb.dataset import registry
    from grb.pipeline import Store

    return Store(path or registry.home() / "store")


def chosen(
    source: str,
    *,
    quick: bool = False,
    victims: int | None = None,
    repeats: int | None = None,
    modes: str | None = None,
) -> Recipe:
    """A recipe with the changes of the command line."""
    from grb.pipeline import read_recipe

    check_counts(victims=victims, repeats=repeats)
    recipe = read_recipe(source)
    if quick:
        recipe = recipe.quickly()
    return recipe.changed(
        victims=victims, repeats=repeats, modes=[mode.strip() for mode in modes.split(",")] if modes else None
    )


def part(study: Study, shard: str | None) -> Study:
    """The study, or one shard of it."""
    if shard is None:
        return study
    index, _, count = shard.partition("/")
    if not (index.isdecimal() and count.isdecimal()):
        raise DataError(f"--shard is '{shard}', but two numbers as in 1/4 are needed")
    return study.shard(int(index), int(count))


def carry_out(
    study: Study,
    store: Store,
    *,
    workers: int | None,
    timeout: float | None,
    memory: float | None,
    cluster: str | None = None,
    as_json: bool,
    seconds: dict[str, float] | None = None,
) -> Outcome:
    """Run what is missing, with a progress line or JSON events."""
    from grb.pipeline import Limits, run
    from grb.pipeline.estimate import seconds_of

    limits = Limits(workers if workers is not None else os.cpu_count() or 1, timeout, memory)
    if cluster is not None and "://" in cluster:
        scheme, _, host = cluster.partition("://")
        if scheme != "tls" and not host.startswith(LOOPBACK):
            output.say(
                f"note: {cluster} is neither on this machine nor encrypted (tls://); whoever reaches it can run code"
            )
    costs = {} if as_json else seconds_of(study, store) if seconds is None else seconds
    console, workers = output.console(stderr=True), max(limits.workers, 1)
    with ProgressReporter(
        console, len(study.jobs), noun="job", costs=costs, workers=workers, as_json=as_json
    ) as progress:
        outcome = run(study.jobs.values(), store, limits=limits, cluster=cluster, on_event=progress.on_event)
    if outcome.failed:
        output.say(f"{len(outcome.failed)} jobs failed and {outcome.skipped} wait for them; run again to try once more")
    return outcome


def exit_code(outcome: Outcome) -> int:
    if outcome.interrupted:
        return 130
    return 0 if outcome.complete else 1
