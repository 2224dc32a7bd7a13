"""What runs inside a worker process: the loop that answers tasks, the jobs of a store, and a watch over the parent."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from grb.errors import GRBError
from grb.pipeline.job import Job
from grb.pipeline.process_tree import CHECK_SECONDS, exit_group
from grb.pipeline.store import Store

# from a task's arguments to its JSON value
Handler = Callable[..., Any]


class JobOutcome(NamedTuple):
    """Seconds that a job took, and if it failed the error message and its kind."""

    seconds: float
    message: str = ""
    kind: str = ""

    @classmethod
    def of(cls, value: Any) -> JobOutcome:
        """Read back what a worker sent; a plug-in in it may have sent something else."""
        try:
            seconds, message, kind = value
            return cls(float(seconds), str(message), str(kind))
        except (TypeError, ValueError):
            return cls(0.0, "its worker sent nothing that can be understood", "died")


def error_message(error: BaseException) -> str:
    """Return an error as one short printable line; its class may be a plug-in's."""
    name = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = ""
    known = isinstance(error, GRBError | OSError | MemoryError)
    line = " ".join((text or name if known else f"{name}: {text}").split())[:500].removesuffix(":")
    return "".join(letter if letter.isprintable() else "?" for letter in line)


# jobs


def new_worker(store: str) -> Any:
    """Return what does the jobs of a store, in a process that does nothing else."""
    from grb.graph.memory import keep_memory
    from grb.pipeline.worker import Worker

    keep_memory()
    return Worker(Store(store))


def run_job(worker: Any, values: Mapping[str, Any], data_dir: str | None) -> JobOutcome:
    """Do a job; errors of any class become text, which is all that crosses processes."""
    start = time.perf_counter()
    try:
        worker.do(Job.from_message(values, data_dir=data_dir))
    except BaseException as error:  # sys.exit in a plug-in ends its job, not more
        return JobOutcome(time.perf_counter() - start, error_message(error), type(error).__name__)
    return JobOutcome(time.perf_counter() - start)


def store_handler(store: str) -> Handler:
    """Return the handler of a worker that does jobs of one store."""
    worker = new_worker(store)
    return lambda values, data_dir: run_job(worker, values, data_dir)


# tasks


def serve(pipe: Connection, make: Callable[..., Handler], arguments: Sequence[Any]) -> None:
    """Answer tasks from a pipe until the parent closes it: the main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    with suppress(OSError):
        os.dup2(2, 1)  # whatever a plug-in prints is not taken for our output
    if hasattr(os, "setsid"):
        os.setsid()  # a new group, which is ended as a whole
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        handler = make(*arguments)
    except Exception as error:
        _send(pipe, "broken", " ".join(str(error).split())[:500])
        return
    multiprocessing.current_process().daemon = False  # a task may start processes, which end with its worker
    with suppress(EOFError, OSError):  # the parent has closed the pipe, or has ended
        _send(pipe, "ready", None)
        while True:
            task = pipe.recv()
            _send(pipe, "done", handler(*task))
    exit_group()  # nothing is left to clean up, and torch takes a tenth of a second for it


def _send(pipe: Connection, kind: str, value: Any) -> None:
    """Send one line of JSON: JSON values only, which the parent can read without waiting for the rest or running any."""
    line = memoryview(json.dumps([kind, value]).encode() + b"\n")
    if os.name == "nt":
        pipe.send_bytes(line)
        return
    while line:
        line = line[os.write(pipe.fileno(), line) :]


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    while parent.is_alive():
        parent.join(CHECK_SECONDS)  # a pipe says when it ends, so that a zombie does not count as alive
    exit_group()
