"""What ``plan``, ``run`` and ``reproduce`` share: options, the study, its progress and its end."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grb.cli import output
from grb.cli.options import check_counts
from grb.cli.progress import clock
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.pipeline import Event, Outcome, Recipe, Store, Study

SIGN_OF_LIFE, SILENCE = 10.0, 30.0

Quick = Annotated[bool, typer.Option("--quick", help="Run the recipe's small variant: fewer repeats and iterations.")]
Victims = Annotated[int | None, typer.Option(help="Number of trainings of every victim; 1 in the paper.")]
Repeats = Annotated[int | None, typer.Option(help="Number of random draws of every attack; 10 in the paper.")]
Difficulties = Annotated[
    str | None, typer.Option("--difficulty", "--modes", help="Difficulties to attack, for instance easy,full.")
]
Shard = Annotated[str | None, typer.Option(metavar="I/N", help="Run only the I-th of N parts, for several machines.")]
Workers = Annotated[int | None, typer.Option(help="Number of worker processes; the number of cores by default.")]
Timeout = Annotated[float | None, typer.Option(help="Maximum seconds of a job.")]
Memory = Annotated[float | None, typer.Option(help="Maximum megabytes of a worker.")]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Run on a Dask cluster: the address of its scheduler, or local, or local:4."),
]
LOOPBACK = ("127.", "localhost", "[::1]")


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
    from grb.pipeline.provenance import provenance

    workers = resources.workers if resources.workers is not None else os.cpu_count() or 1
    limits = Limits(workers, resources.timeout, resources.memory)
    _warn_of_cluster(resources.dask)
    record = study.record(provenance(0.0, 0.0))
    if record is not None and not store.has(record.key):
        store.write(record)
    watch: _Events | _Progress = (
        _Events() if as_json else _Progress(seconds_of(study, store), len(study.jobs), resources.cores)
    )
    with watch:
        outcome = run(study.jobs.values(), store, limits=limits, cluster=resources.dask, on_event=watch.tell)
    if outcome.failed:
        output.say(f"{len(outcome.failed)} jobs failed and {outcome.skipped} wait for them; run again to try once more")
    return outcome


def _warn_of_cluster(address: str | None) -> None:
    scheme, _, host = (address or "").partition("://")
    if host and scheme != "tls" and not host.startswith(LOOPBACK):
        output.say(
            f"note: {address} is neither on this machine nor encrypted (tls://); whoever reaches it can run code"
        )


def exit_code(outcome: Outcome) -> int:
    if outcome.interrupted:
        return 130
    return 0 if outcome.complete else 1


class _Events:
    """One JSON object per line on stdout."""

    def __enter__(self) -> _Events:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def tell(self, event: Event) -> None:
        if event.kind == "cached":
            return
        value: dict[str, Any] = {"event": event.kind, "key": event.job.key, "job": event.job.label}
        if event.seconds:
            value["seconds"] = round(event.seconds, 3)
        if event.sentence:
            value["error"] = event.sentence
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


class _Progress:
    """A live bar on a terminal, a line now and then elsewhere; the ETA weighs jobs by what they should cost."""

    def __init__(self, seconds: dict[str, float], total: int, workers: int) -> None:
        self.seconds, self.total, self.workers = seconds, total, workers
        self.work = sum(seconds.values()) or 1.0
        self.finished = 0.0
        self.done = total - len(seconds)
        self.running: dict[str, str] = {}
        self.begin = self.told = time.monotonic()
        self.console = output.console(stderr=True)
        self.bar: Any = None
        self.over = threading.Event()

    def __enter__(self) -> _Progress:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            from rich.progress import BarColumn, Progress, TextColumn

            self.bar = Progress(
                TextColumn("{task.percentage:3.0f}%"),
                BarColumn(),
                TextColumn("{task.description}"),
                console=self.console,
            )
            self.bar.start()
            self.task = self.bar.add_task("", total=self.work)
        threading.Thread(target=self._keep_alive, daemon=True).start()
        return self

    def _keep_alive(self) -> None:
        """A word while long jobs run and nothing happens."""
        while not self.over.wait(SIGN_OF_LIFE / 2):
            if time.monotonic() - self.told > SILENCE:
                self._say()

    def __exit__(self, *error: object) -> None:
        self.over.set()
        if self.bar is not None:
            self.bar.stop()

    def tell(self, event: Event) -> None:
        key = event.job.key
        if event.kind == "started":
            self.running[key] = event.job.label
        elif event.kind in ("done", "failed", "skipped", "elsewhere"):
            self.running.pop(key, None)
            self.done += 1
            self.finished += self.seconds.get(key, 0.0)
        if event.kind == "failed":
            self.console.print(f"failed: {event.job.label}: {event.sentence}")
        if event.kind == "finishing":
            self.console.print(f"finishing {event.job.label}; Ctrl-C once more stops now")
        if self.bar is not None or time.monotonic() - self.told > SIGN_OF_LIFE:
            self._say()

    def _say(self) -> None:
        self.told = time.monotonic()
        if self.bar is not None:
            self.bar.update(self.task, completed=self.finished, description=self._words())
        else:
            self.console.print(self._words())

    def _words(self) -> str:
        passed = time.monotonic() - self.begin
        left = (
            passed * (self.work - self.finished) / self.finished
            if self.finished > 0.02 * self.work
            else (self.work - self.finished) / self.workers
        )
        now = next(iter(list(self.running.values())), "")
        return f"{self.done}/{self.total} jobs  ETA {clock(left)}  {now}"
