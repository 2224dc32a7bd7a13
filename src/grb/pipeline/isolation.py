"""One call in a new process with limits of time and memory: submissions, and plug-ins below a worker of a cluster."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from grb.errors import DataError
from grb.pipeline.executor import Limits, ProcessExecutor, TaskResult
from grb.pipeline.process_tree import CHECK_SECONDS
from grb.pipeline.worker_main import Handler, JobOutcome, error_message, new_worker, run_job

# as for jobs: the server that forks workers imports them once, whoever is the first to need it
PRELOAD = ("grb.pipeline.worker", "torch._dynamo")


def call_isolated(call: Callable[..., Any], *arguments: Any, limits: Limits, what: str) -> Any:
    """Return what a function returns in a new process; whatever goes wrong there is a refusal here.

    Args:
        call: An importable function that returns JSON values, as JSON has them.
        arguments: Its arguments; small, for they go through a pipe.
        limits: Seconds and megabytes of this call.
        what: What is dealt with, for the refusal.
    """
    result = _run(_attempt, call, arguments, limits=limits)
    if exceeded := limits.exceeded(result):
        option = "--timeout" if result.timed_out else "--memory"
        raise DataError(f"{what} {exceeded}; if it may, allow more ({option})")
    if result.exitcode is not None:
        raise DataError(f"{what} killed its process (exit code {result.exitcode}); is there enough memory?")
    value, message = result.value
    if message:
        raise DataError(message)
    return value


def run_job_isolated(
    store: str,
    values: Mapping[str, Any],
    data_dir: str | None,
    *,
    limits: Limits,
    wanted: Callable[[], bool] = lambda: True,
) -> JobOutcome:
    """Do a job as :func:`~grb.pipeline.worker_main.run_job` does, in a new process that ends with all it has started.

    Args:
        store: Path of the store with its inputs, which gets its record.
        values: The job as JSON values.
        data_dir: Directory of datasets.
        limits: Seconds and megabytes of this job.
        wanted: Whether somebody still waits for the job; asked a few times a second.
    """
    start = time.perf_counter()
    multiprocessing.current_process().daemon = False  # workers of a cluster are daemons, which may not start processes
    result = _run(_attempt_job, store, dict(values), data_dir, limits=limits, wanted=wanted)
    seconds = time.perf_counter() - start
    if exceeded := limits.exceeded(result):
        return JobOutcome(seconds, f"it {exceeded}", "timeout" if result.timed_out else "memory")
    if not result.started:
        return JobOutcome(seconds, "nobody waits for it any more", "cancelled")
    if result.exitcode is not None:
        return JobOutcome(seconds, f"its process ended with exit code {result.exitcode}", "died")
    return JobOutcome.of(result.value)


def _run(
    call: Callable[..., Any], *arguments: Any, limits: Limits, wanted: Callable[[], bool] = lambda: True
) -> TaskResult:
    """The result of one task in a new process; not started if it was cancelled."""
    with worker_environment():
        executor = ProcessExecutor(1, _handler, preload=PRELOAD, limits=limits)
        try:
            executor.submit("call", call, arguments)
            while wanted():
                for result in executor.results(CHECK_SECONDS):
                    if result.exitcode is None or result.started:
                        return result
                    executor.submit("call", call, arguments)  # its worker never started; the executor counts these
            return TaskResult("call", started=False)
        finally:
            executor.close()


def _handler() -> Handler:
    return lambda call, arguments: call(*arguments)


def _attempt(call: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, str]:
    """A value, or the message of an error: errors of any class cross processes as text."""
    try:
        return call(*arguments), ""
    except Exception as error:
        return None, error_message(error)


def _attempt_job(store: str, values: Mapping[str, Any], data_dir: str | None) -> JobOutcome:
    return run_job(new_worker(store), values, data_dir)


@contextmanager
def worker_environment() -> Iterator[None]:
    """Set the environment of workers, which Python and torch read when they start.

    Workers do not spin while they wait, and find the same packages as this process, whose ``sys.path`` may be changed.
    """
    before = dict(os.environ)
    changes = {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}
    changes = {name: value for name, value in changes.items() if name not in before}
    changes["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    os.environ.update(changes)
    try:
        yield
    finally:
        for name in changes:
            os.environ.pop(name, None)
            if name in before:
                os.environ[name] = before[name]
