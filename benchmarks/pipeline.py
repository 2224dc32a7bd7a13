"""What does the pipeline cost beyond the work itself?

Scores of tiny models are computed in a plain loop, then by the engine: in this process, in one worker process, and by one
worker of a Dask cluster. Of the engine's time per job, what each record says that its work took and one fsync, measured
before and after on a file of the same size, are taken off; the rest is overhead, per batch of 25 jobs: the median, and the
best, because other programs only ever add. In memory an fsync is free, so that the rest is seen best there. Then: planning
the paper's largest table, and making a board of what was scored.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import torch
from common import TINY, row

from grb.errors import MissingDataset
from grb.pipeline import Job, Limits, Store, Study, build_board, plan_study, read_recipe, run
from grb.pipeline.bundle import merge
from grb.pipeline.recipe import parse_recipe
from grb.pipeline.worker import Worker

RECIPE = "dataset: synth-tiny\nattacks: [rnd]\nrepeats: {repeats}\ntraining: {{epochs: 1}}\n"
# jobs in which a worker loads the dataset and warms up
FIRST, BATCH = (1, 2) if TINY else (20, 25)
MEMORY = Path("/dev/shm")


def fsync_seconds(folder: Path, size: int, count: int = 40) -> float:
    """Median seconds to write and sync a file of this size under a new name."""
    found = []
    for number in range(count):
        path = folder / f"probe-{number}"
        start = time.perf_counter()
        with path.open("wb") as stream:
            stream.write(bytes(size))
            stream.flush()
            os.fsync(stream.fileno())
        found.append(time.perf_counter() - start)
        path.unlink()
    return statistics.median(found)


def loop_seconds(jobs: list[Job], store: Store) -> float:
    """Seconds per job of nothing but the work."""
    worker = Worker(store)
    for job in jobs[:FIRST]:
        worker.compute(job)
    start = time.perf_counter()
    for job in jobs[FIRST:]:
        worker.compute(job)
    return (time.perf_counter() - start) / (len(jobs) - FIRST)


def run_times(jobs: list[Job], store: Store, workers: int, cluster: str | None) -> list[tuple[float, float]]:
    """Seconds per job from end to end, and of the work alone, in batches; without the first few jobs."""
    ends: list[tuple[float, str]] = []
    run(
        jobs,
        store,
        limits=Limits(workers=workers),
        cluster=cluster,
        on_event=lambda event: ends.append((time.perf_counter(), event.job.key)) if event.kind == "done" else None,
    )
    assert len(ends) == len(jobs)
    work = [store.read(key).provenance["seconds"] for _, key in ends]
    return [
        ((ends[first + BATCH][0] - ends[first][0]) / BATCH, sum(work[first + 1 : first + BATCH + 1]) / BATCH)
        for first in range(FIRST, len(ends) - BATCH, BATCH)
    ]


def overhead(study: Study, folder: Path, workers: int, cluster: str | None = None) -> None:
    inputs, store = Store(folder / "inputs"), Store(folder / "scores")
    scores = [job for job in study.jobs.values() if job.kind == "score"]
    run([job for job in study.jobs.values() if job.kind != "score"], inputs, limits=Limits(workers=0))
    merge(inputs, store)
    loop = loop_seconds(scores, inputs)
    before = fsync_seconds(folder, 1000)
    batches = run_times(scores, store, workers, cluster)
    size = store.record_path(scores[0].key).stat().st_size
    fsync = (before + fsync_seconds(folder, size)) / 2
    beyond = [total - work - fsync for total, work in batches]
    row(
        question="overhead per job",
        place="memory" if folder.is_relative_to(MEMORY) else "disk",
        workers=f"dask {workers}" if cluster else workers,
        jobs=len(scores),
        loop_ms=1000 * loop,
        work_ms=1000 * statistics.median(work for _, work in batches),
        total_ms=1000 * statistics.median(total for total, _ in batches),
        fsync_ms=1000 * fsync,
        beyond_ms=1000 * statistics.median(beyond),
        best_beyond_ms=1000 * min(beyond),
    )
    if workers and not cluster:
        start = time.perf_counter()
        build_board(study, store)
        row(question="board", jobs=len(scores), seconds=time.perf_counter() - start)


def planning(name: str) -> None:
    try:
        plan_study(read_recipe(name))  # the dataset is read from disk, all modules are imported
    except MissingDataset:
        return
    start = time.perf_counter()
    study = plan_study(read_recipe(name))
    row(question=f"plan {name}", jobs=len(study.jobs), seconds=time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=40, help="of the attack; each gives 8 scores")
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="on the disk whose fsync counts")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    study = plan_study(parse_recipe(RECIPE.format(repeats=arguments.repeats), name="overhead"))
    for place in (arguments.directory, *([MEMORY] if MEMORY.is_dir() and not TINY else [])):
        for workers in (0,) if TINY else (0, 1):
            with tempfile.TemporaryDirectory(dir=place) as folder:
                overhead(study, Path(folder), workers)
    if not TINY:  # a cluster takes seconds to start
        with tempfile.TemporaryDirectory(dir=arguments.directory) as folder:
            overhead(study, Path(folder), 1, "local:1")
    planning("grb-cora")


if __name__ == "__main__":
    main()
