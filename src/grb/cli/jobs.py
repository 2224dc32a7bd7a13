"""What ``grb train`` and ``grb attack`` share: the same jobs that a recipe plans, done in this process, run by run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from grb._version import __version__
from grb.cli import output
from grb.cli.eval import dataset_line
from grb.cli.options import store_at
from grb.cli.progress import ProgressReporter

if TYPE_CHECKING:
    from grb.dataset import Dataset
    from grb.evaluator.measurement import Measurement
    from grb.pipeline import Event, Job, Store
    from grb.pipeline.planner import Planner

FAILED = 1


@dataclass
class Run:
    """One training or attack of a command: its jobs, and how they ended.

    Args:
        title: Short description, for progress.
        job: Key of the training or attack.
        scores: Keys of the scores, by the name of what is scored.
        error: Why it, or writing its files, failed.
    """

    title: str
    job: str
    scores: Mapping[str, str]
    error: str | None = None
    saved: str | None = None
    figures: list[str] = field(default_factory=list)

    @property
    def keys(self) -> set[str]:
        """Keys of all its jobs."""
        return {self.job, *self.scores.values()}


@contextmanager
def opened_store(path: Path | None) -> Iterator[Store]:
    """Yield the store at a path, where running again resumes, or one that is removed at the end."""
    if path is not None:
        yield store_at(path)
        return
    with tempfile.TemporaryDirectory(prefix="grb-") as folder:
        yield store_at(Path(folder) / "store")


def planner(dataset: Dataset, source: str, *, split: int | None, **settings: Any) -> Planner:
    """Return a planner for a dataset that was loaded from ``source``; ``settings`` are train_mode, threads and device."""
    from grb.dataset import dataset_reference
    from grb.pipeline import Recipe
    from grb.pipeline.job import DataRef
    from grb.pipeline.planner import Planner

    reference = dataset_reference(source, dataset)
    data = DataRef(reference, dataset.fingerprint(), split=split)
    recipe = Recipe("command", reference, train_mode=settings.pop("train_mode", "inductive"))
    return Planner(recipe, dataset, data, settings)


def do(
    jobs: Mapping[str, Job],
    store: Store,
    runs: Sequence[Run],
    dataset: Dataset,
    *,
    message: Callable[[Run], str],
    steps: Callable[[Job], int | None],
) -> bool:
    """Do the jobs of some runs that the store does not have, and report every run that is over; True if interrupted.

    Args:
        jobs: All jobs by key, inputs included.
        store: Where records go.
        runs: What is reported; a run whose jobs fail gets its ``error``.
        dataset: What it is about.
        message: Returns the result of a finished run in one line.
        steps: Returns the number of epochs or steps of a job, if it is known.
    """
    from grb.pipeline import Limits, run
    from grb.pipeline.worker import Worker

    console = output.console(stderr=True)
    console.print(dataset_line(dataset))
    done: set[str] = set()
    waiting = list(runs)
    with ProgressReporter(console, len(runs)) as progress:

        def on_event(event: Event) -> None:
            if event.kind == "started" and event.job.kind != "score":
                progress.start(event.job.label, steps(event.job))
            elif event.kind == "finishing":
                console.print(f"finishing {event.job.label}; Ctrl-C once more stops now")
            elif event.kind in ("done", "cached", "elsewhere"):
                done.add(event.job.key)
                for each in [each for each in waiting if each.keys <= done]:
                    waiting.remove(each)
                    progress.done(f"{each.title}: {message(each)}")

        worker = Worker(store, on_epoch=progress.epoch, on_step=progress.step)
        try:
            outcome = run(jobs.values(), store, limits=Limits(workers=0), on_event=on_event, worker=worker)
            failed, interrupted = outcome.failed, outcome.interrupted
        except KeyboardInterrupt:
            failed, interrupted = {}, True
        for each in waiting:
            each.error = next((text for key in each.keys if (text := _failure(key, jobs, failed))), None)
            if each.error:
                progress.done(f"{each.title}: FAILED: {each.error}")
    return interrupted


def _failure(key: str, jobs: Mapping[str, Job], failed: Mapping[str, str]) -> str | None:
    """Why a job has no record: it failed, or one that it needs did."""
    if key in failed:
        return failed[key]
    needs = jobs[key].needs if key in jobs else ()
    return next((text for need in needs if (text := _failure(need, jobs, failed))), None)


def end(runs: Sequence[Run], interrupted: bool) -> None:
    """End a command as its runs did."""
    if interrupted:
        raise KeyboardInterrupt
    if any(run.error for run in runs):
        raise typer.Exit(FAILED)


def measurement(store: Store, key: str) -> Measurement:
    """Return the measurement of a score."""
    from grb.evaluator.measurement import Measurement

    return Measurement.from_dict(store.read(key).measurement)


def header(dataset: Dataset, fingerprint: str, threads: int) -> dict[str, Any]:
    """Return what holds for all runs of a command, for JSON."""
    import torch

    from grb.evaluator.scoring import primary_metric

    return {
        "grb": __version__,
        "torch": torch.__version__,
        "dataset": {"name": dataset.name, "synthetic": dataset.synthetic, "fingerprint": fingerprint},
        "metric": primary_metric(dataset),
        "threads": threads,
    }


def show(
    result: Mapping[str, Any],
    title: str,
    headers: Sequence[str],
    cells: Callable[[Mapping[str, Any]], Sequence[Any]],
    *,
    numbers: Sequence[str],
    seeds: int,
    total: int,
    scored: bool = True,
) -> None:
    """Show the summary of a command as a table, with what failed and over how many seeds the means are.

    Args:
        result: What the command found: ``summary``, ``runs``, ``interrupted`` and ``metric``.
        title: What it is about.
        headers: Names of the columns.
        cells: Returns the cells of a row of the summary.
        numbers: Columns of numbers.
        seeds: Number of seeds.
        total: Number of planned runs.
        scored: Whether the table has scores, in per cent.
    """
    failed = any(row["failed"] for row in result["summary"])
    several = f", mean {output.plus_minus()} std of {seeds} seeds" if seeds > 1 else ""
    if result["interrupted"]:
        several = f", interrupted after {len(result['runs'])} of {total} runs"
    rows = [[*cells(row), *([f"{row['failed']} of {seeds}"] if failed else [])] for row in result["summary"]]
    heads = [*headers, *(["failed"] if failed else [])]
    said = f": {result['metric']} in %" if scored else ""
    output.table(f"{title}{said}{several}", heads, rows, numbers=[*numbers, "failed"])


def over(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean and standard deviation, which one value does not have."""
    from grb.metric import mean_std

    found = mean_std(list(values))
    return {"mean": float(found.mean), "std": float(found.std) if len(values) > 1 else None}


def percent(score: Mapping[str, float | None] | None) -> str | None:
    """Return mean and standard deviation of :func:`over` in per cent."""
    if score is None or score["mean"] is None:
        return None
    mean = f"{100 * score['mean']:.2f}"
    return mean if score["std"] is None else f"{mean}{output.plus_minus()}{100 * score['std']:.2f}"
