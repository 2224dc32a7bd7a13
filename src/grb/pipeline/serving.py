"""What runs inside a worker process, here or on a cluster: jobs, and a guard of its memory."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from grb.errors import GRBError
from grb.pipeline.job import Job
from grb.pipeline.pool import Do, end_here
from grb.pipeline.store import Store

# what a worker that ate too much tells its parent
OUT_OF_MEMORY = 77
# how often a worker looks at its own memory and whether its parent lives
GUARD = 0.25
# seconds of a job, and a sentence and its kind if it failed
Told = tuple[float, str, str]


def serve_store(store: str, memory: float | None) -> Do:
    """In a new process of this machine: what does its jobs."""
    from grb.graph.memory import keep_memory
    from grb.pipeline.work import Worker

    keep_memory()
    worker = Worker(Store(store))
    threading.Thread(target=guard, args=(memory,), daemon=True).start()
    return lambda values, data_dir: attempt(worker, values, data_dir)


def attempt(worker: Any, values: Mapping[str, Any], data_dir: str | None) -> Told:
    """Do a job: errors of any class cross processes as plain text."""
    start = time.perf_counter()
    try:
        worker.do(Job.from_plain(values, data_dir=data_dir))
    except BaseException as error:  # sys.exit in a plug-in ends its job, not more
        return time.perf_counter() - start, sentence_of(error), type(error).__name__
    return time.perf_counter() - start, "", ""


def sentence_of(error: BaseException) -> str:
    """An error as one short line."""
    if isinstance(error, GRBError | OSError | MemoryError):
        return " ".join(str(error).split())[:500] or type(error).__name__
    return " ".join(f"{type(error).__name__}: {error}".split())[:500].removesuffix(":")


def resident_megabytes() -> float:
    """Memory of this process and its children now; 0 where the system does not tell."""
    return sum(map(_resident, _family(os.getpid())))


def _family(pid: int) -> Iterator[int]:
    """A process and all that it has started, as far as they live."""
    yield pid
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in path.read_text().split():
                yield from _family(int(child))


def _resident(pid: int) -> float:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def guard(memory: float | None) -> None:
    """End this worker when its parent is gone or its memory too large."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    while True:
        parent.join(GUARD)  # a pipe says when it ends, so that a zombie does not count as alive
        if not parent.is_alive():
            end_here()
        guard_memory(memory)


def guard_memory(memory: float | None) -> None:
    """End this process if it has taken more than so many megabytes."""
    if memory is not None and resident_megabytes() > memory:
        os._exit(OUT_OF_MEMORY)
