"""What ``plan``, ``run`` and ``reproduce`` share: options, the study, its progress and its end."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grb.cli import output
from grb.cli.options import check_counts, find_code
from grb.cli.progress import ProgressReporter
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Event, Outcome, Recipe, Spec, Store, Study

Quick = Annotated[bool, typer.Option("--quick", help="Run the recipe's small variant: fewer repeats and iterations.")]
Victims = Annotated[int | None, typer.Option(help="Number of trainings of every victim; 1 in the paper.")]
Repeats = Annotated[int | None, typer.Option(help="Number of random draws of every attack; 10 in the paper.")]
Difficulties = Annotated[
    str | None, typer.Option("--difficulty", "--modes", help="Difficulties to attack, for instance easy,full.")
]
Shard = Annotated[str | None, typer.Option(metavar="I/N", help="Run only the I-th of N parts, for several machines.")]
Workers = Annotated[int | None, typer.Option(help="Number of worker processes; the number of cores by default.")]
WorkerCounts = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help="Number of worker processes, the number of cores by default; with --plan several, as in 8,32,128.",
    ),
]
Timeout = Annotated[float | None, typer.Option(help="Maximum seconds of a job.")]
Memory = Annotated[float | None, typer.Option(help="Maximum megabytes of a worker.")]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: the address of its scheduler, or local, or local:4."),
]
LOOPBACK = ("127.", "localhost", "[::1]")


def _with_file(spec: Spec, folder: Path | None) -> Spec:
    """A defense whose file of weights is found beside the recipe that names it, or in this directory."""
    given = spec.params.get("weights")
    if not isinstance(given, str) or folder is None or Path(given).exists() or not (folder / given).exists():
        return spec
    return replace(spec, params={**spec.params, "weights": str(folder / given)})


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
    specs = (*recipe.defenses, *recipe.attacks, *recipe.white_box, *recipe.surrogates)
    beside = Path(source).parent if source.endswith((".yaml", ".yml")) else None
    custom = [name for name in recipe.metrics if not name.rpartition(":")[2].isdigit()]
    find_code([recipe.dataset, *(spec.name for spec in specs), *custom], beside)
    recipe = replace(recipe, defenses=tuple(_with_file(spec, beside) for spec in recipe.defenses))
    if quick:
        recipe = recipe.quickly()
    return recipe.changed(
        victims=victims, repeats=repeats, modes=[mode.strip() for mode in modes.split(",")] if modes else None
    )


def worker_counts(text: str | None, *, several: bool) -> list[int]:
    """The numbers of workers that an option names; none if it was not given."""
    if text is None:
        return []
    words = text.split(",")
    if not all(word.strip().lstrip("-").isdecimal() for word in words):
        raise DataError(f"--workers is '{text}', but a number is needed, or with --plan several, as in 8,32,128")
    if len(words) > 1 and not several:
        raise DataError(f"--workers is '{text}', but a run has one number of workers; several go with --plan")
    counts = [int(word) for word in words]
    if min(counts) < 0:
        raise DataError(f"workers is {min(counts)}, but 0 (in this process) or more are needed")
    return counts


def part(study: Study, shard: str | None) -> Study:
    """The study, or one shard of it."""
    if shard is None:
        return study
    index, _, count = shard.partition("/")
    if not (index.isdecimal() and count.isdecimal()):
        raise DataError(f"--shard is '{shard}', but two numbers as in 1/4 are needed")
    return study.shard(int(index), int(count))


@dataclass(frozen=True)
class Resources:
    """What a run may use of the machine, as the command line says it."""

    workers: int | None = None
    timeout: float | None = None
    memory: float | None = None
    dask: str | None = None

    @property
    def cores(self) -> int:
        """Number of processes at work."""
        return max(self.workers if self.workers is not None else os.cpu_count() or 1, 1)


def carry_out(study: Study, store: Store, resources: Resources, *, as_json: bool) -> Outcome:
    """Run what is missing, with a progress line or JSON events; the store knows the study from now on."""
    from grb.pipeline import Limits, run
    from grb.pipeline.estimate import seconds_of
    from grb.pipeline.job_times import remember

    workers = resources.workers if resources.workers is not None else os.cpu_count() or 1
    limits = Limits(workers, resources.timeout, resources.memory)
    _warn_of_cluster(resources.dask)
    with ProgressReporter(
        output.console(stderr=True),
        len(study.jobs),
        noun="job",
        costs={} if as_json else seconds_of(study, store),
        workers=resources.cores,
        as_json=as_json,
    ) as progress:
        done: list[str] = []

        def on_event(event: Event) -> None:
            progress.on_event(event)
            if event.kind == "done":
                done.append(event.job.key)

        outcome = run(study, store, limits=limits, cluster=resources.dask, on_event=on_event)
    if resources.dask is None:  # jobs of other machines say nothing about this one
        remember(store.read(key) for key in done if store.has(key))
    if outcome.failed:
        output.echo(
            f"{len(outcome.failed)} jobs failed and {outcome.skipped} wait for them; run again to try once more"
        )
    return outcome


def _warn_of_cluster(address: str | None) -> None:
    scheme, _, host = (address or "").partition("://")
    if host and scheme != "tls" and not host.startswith(LOOPBACK):
        output.echo(
            f"note: {address} is neither on this machine nor encrypted (tls://); whoever reaches it can run code"
        )


def exit_code(outcome: Outcome) -> int:
    """Exit code of a command that ended so."""
    if outcome.interrupted:
        return 130
    return 0 if outcome.complete else 1
