"""What runs inside a worker process, here or on a cluster: jobs, and a guard that ends it when nobody needs it."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Mapping
from typing import Any

from grb.errors import GRBError
from grb.pipeline.family import GUARD, end_here
from grb.pipeline.job import Job
from grb.pipeline.pool import Do
from grb.pipeline.store import Store

# seconds of a job, and a sentence and its kind if it failed
Told = tuple[float, str, str]


def serve_store(store: str) -> Do:
    """In a new process of this machine: what does its jobs."""
    worker = new_worker(store)
    threading.Thread(target=guard, daemon=True).start()
    return lambda values, data_dir: attempt(worker, values, data_dir)


def new_worker(store: str) -> Any:
    """What does the jobs of a store in a process that is there for nothing else."""
    from grb.graph.memory import keep_memory
    from grb.pipeline.worker import Worker

    keep_memory()
    return Worker(Store(store))


def attempt(worker: Any, values: Mapping[str, Any], data_dir: str | None) -> Told:
    """Do a job: errors of any class cross processes as plain text."""
    start = time.perf_counter()
    try:
        worker.do(Job.from_plain(values, data_dir=data_dir))
    except BaseException as error:  # sys.exit in a plug-in ends its job, not more
        return time.perf_counter() - start, sentence_of(error), type(error).__name__
    return time.perf_counter() - start, "", ""


def sentence_of(error: BaseException) -> str:
    """An error as one short line that can be shown; it may be a plug-in's own, of any kind."""
    name = type(error).__name__
    try:
        words = str(error)
    except Exception:
        words = ""
    known = isinstance(error, GRBError | OSError | MemoryError)
    line = " ".join((words or name if known else f"{name}: {words}").split())[:500].removesuffix(":")
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def guard() -> None:
    """End this worker when its parent is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    while parent.is_alive():
        parent.join(GUARD)  # a pipe says when it ends, so that a zombie does not count as alive
    end_here()
