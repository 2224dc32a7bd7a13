"""Executors of tasks: worker processes, each behind its own pipe, so that one that dies loses only its current task."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from grb.errors import DataError
from grb.pipeline.process_tree import CHECK_SECONDS, kill_group, resident_megabytes
from grb.pipeline.worker_main import Handler, serve

# short tasks that are queued in the pipe of a busy worker, so that it need not wait for us
PREFETCH = 1
# workers in a row that may die before they are ready
MAX_FAILED_STARTS = 5
JOIN_SECONDS = 5.0
MAX_MESSAGE_BYTES = 2**20
_MAIN_LOCK = threading.Lock()


@dataclass(frozen=True)
class TaskResult:
    """The result of a task.

    Args:
        task: Name of the task.
        value: Return value of its function.
        exitcode: Exit code of a worker that died; None if it returned a value.
        started: Whether a worker that died was at this task; otherwise the task was still queued.
        timed_out: Whether it was killed because it took too long.
        memory_exceeded: Whether it was killed because it took too much memory.
    """

    task: str
    value: Any = None
    exitcode: int | None = None
    started: bool = True
    timed_out: bool = False
    memory_exceeded: bool = False


@dataclass(frozen=True)
class Limits:
    """Resources that jobs may use.

    Args:
        workers: Number of processes; 0 runs the jobs in this one.
        timeout: Seconds per job; None for no limit.
        memory: Megabytes per worker; None for no limit.
    """

    workers: int = 1
    timeout: float | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        if self.workers < 0:
            raise DataError(f"workers is {self.workers}, but 0 (in this process) or more are needed")
        for name in ("timeout", "memory"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise DataError(f"{name} is {value}, but must be positive")

    def exceeded(self, result: TaskResult) -> str:
        """Return which limit a task was killed for, as the end of a sentence; empty if it was not."""
        if result.timed_out:
            return f"took more than {self.timeout:g} seconds"
        return f"took more than {self.memory:g} MB of memory" if result.memory_exceeded else ""


class Executor(Protocol):
    """Whatever does tasks: processes of this machine, or a cluster.

    A ``short`` task may be queued behind another short one. ``code`` names third-party code that a task runs.
    """

    one_machine: bool

    def has_room(self, *, short: bool = False, code: str = "") -> bool:
        """Whether a task can be submitted now."""

    def submit(self, task: str, *arguments: Any, short: bool = False, code: str = "") -> None:
        """Start a task, or queue a short one."""

    def results(self, seconds: float) -> Iterator[TaskResult]:
        """Yield the results there are, after waiting for the first for up to ``seconds``."""

    def close(self) -> None:
        """Cancel what has not finished and free the workers."""


@dataclass
class WorkerProcess:
    """A process, our end of its pipe, and the tasks that it has been sent."""

    process: Any
    pipe: Connection
    code: str
    tasks: deque[str] = field(default_factory=deque)
    short: bool = True
    ready: bool = False
    since: float = 0.0
    received: bytes = b""

    def kill(self) -> None:
        """Kill the process, if it has not ended, and whatever it has started."""
        kill_group(self.process.pid)
        self.process.kill()

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Yield everything that was sent so far; a plug-in in the worker may have sent something else."""
        while self.pipe.poll():
            data = self.pipe.recv_bytes() if os.name == "nt" else os.read(self.pipe.fileno(), MAX_MESSAGE_BYTES)
            if not data:
                raise EOFError
            *lines, self.received = (self.received + data).split(b"\n")
            if len(self.received) > MAX_MESSAGE_BYTES:
                raise ValueError("a message without an end")
            for line in lines:
                kind, value = json.loads(line)
                yield str(kind), value


class ProcessExecutor:
    """Up to ``count`` busy processes, started when there is something to do, replaced when they die.

    A worker that has run third-party ``code`` never does tasks with other code, which may have changed its modules. As
    many idle workers again may be kept for further tasks with the same code.

    No lock and no queue is shared: a SIGKILL at any moment closes one pipe, which only its own worker used.

    Args:
        count: Maximum number of busy processes.
        make: Importable function that every new worker calls with ``arguments``; it returns the handler of tasks.
        preload: Modules that all workers need; imported once, before they are forked.
        limits: Seconds per task and megabytes of a worker with its children, after which it is killed; checked from
            here, for a task may let no other thread of its worker run.
    """

    one_machine = True

    def __init__(
        self,
        count: int,
        make: Callable[..., Handler],
        arguments: Sequence[Any] = (),
        *,
        preload: Sequence[str] = (),
        limits: Limits = Limits(),  # noqa: B008
    ) -> None:
        self.count, self.make, self.arguments, self.limits = count, make, arguments, limits
        self.memory_checked = 0.0
        # a server that has imported everything once forks workers in milliseconds, and holds no threads that a fork breaks
        self.context: Any = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
        if preload and hasattr(os, "fork"):
            self.context.set_forkserver_preload(list(preload))
        self.workers: list[WorkerProcess] = []
        self.failed_starts = 0

    def has_room(self, *, short: bool = False, code: str = "") -> bool:
        """Whether a worker is free, or a short task can be queued behind another one."""
        return self._below_count() or (short and self._queue(code) is not None)

    def submit(self, task: str, *arguments: Any, short: bool = False, code: str = "") -> None:
        """Send a task to an idle worker, or queue a short one behind another short one."""
        self._reap()
        worker = (self._idle(code) or self._spawn(code)) if self._below_count() else self._queue(code)
        assert worker is not None, "there is no room for a task"
        if not worker.tasks:
            worker.short, worker.since = short, time.monotonic()
        worker.tasks.append(task)
        with suppress(OSError):  # it has died just now: its result will say so
            worker.pipe.send(arguments)

    def results(self, seconds: float) -> Iterator[TaskResult]:
        """Yield the results there are, after waiting for the first for up to ``seconds``."""
        busy = [worker for worker in self.workers if worker.tasks]
        sources = [source for worker in busy for source in (worker.pipe, worker.process.sentinel)]
        events = wait(sources, max(0.0, min([seconds, *map(self._seconds_left, busy)])))
        for worker in busy:
            if worker.pipe in events or worker.process.sentinel in events:
                yield from self._receive(worker)
            if worker.tasks and self._seconds_left(worker) <= 0:
                yield from self._lose(worker, timed_out=True)
        if self.limits.memory is not None and time.monotonic() - self.memory_checked > CHECK_SECONDS:
            self.memory_checked = time.monotonic()
            for worker in [each for each in self.workers if each.tasks]:
                if resident_megabytes(worker.process.pid) > self.limits.memory:
                    yield from self._lose(worker, memory_exceeded=True)

    def close(self) -> None:
        """Let idle workers end and kill the busy ones."""
        for worker in self.workers:
            worker.pipe.close()
            if worker.tasks:
                worker.kill()
        for worker in self.workers:
            worker.process.join(JOIN_SECONDS)
            if worker.process.is_alive():
                worker.kill()
                worker.process.join()
        self.workers.clear()

    def _below_count(self) -> bool:
        return sum(bool(worker.tasks) for worker in self.workers) < self.count

    def _idle(self, code: str) -> WorkerProcess | None:
        return next((worker for worker in self.workers if not worker.tasks and worker.code == code), None)

    def _queue(self, code: str) -> WorkerProcess | None:
        """A worker at a short task, behind which another one can be queued."""
        fitting = (worker for worker in self.workers if worker.short and worker.code == code)
        return next((worker for worker in fitting if 0 < len(worker.tasks) <= PREFETCH), None)

    def _reap(self) -> None:
        """Remove workers that died while they were idle."""
        for worker in [each for each in self.workers if not each.tasks and not each.process.is_alive()]:
            self._terminate(worker)

    def _spawn(self, code: str) -> WorkerProcess:
        idle = [worker for worker in self.workers if not worker.tasks]
        if idle and len(self.workers) >= 2 * self.count:
            self._terminate(next((worker for worker in idle if worker.code), idle[0]))
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=serve, args=(theirs, self.make, self.arguments), daemon=True)
        with _no_main_module(), _sigterm_blocked():
            process.start()
        theirs.close()
        self.workers.append(WorkerProcess(process, ours, code))
        return self.workers[-1]

    def _terminate(self, worker: WorkerProcess) -> None:
        self.workers.remove(worker)
        worker.pipe.close()
        worker.kill()
        worker.process.join()

    def _receive(self, worker: WorkerProcess) -> Iterator[TaskResult]:
        try:
            for kind, value in worker.messages():  # what was sent before a death counts
                worker.since = time.monotonic()
                if kind == "done" and worker.tasks:
                    yield TaskResult(worker.tasks.popleft(), value)
                elif kind == "ready":
                    worker.ready, self.failed_starts = True, 0
                elif kind == "broken" and not worker.ready:
                    raise DataError(f"a worker could not start: {value}")
        except (EOFError, OSError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            yield from self._lose(worker)
        else:
            if worker.tasks and not worker.process.is_alive():
                yield from self._lose(worker)

    def _lose(
        self, worker: WorkerProcess, *, timed_out: bool = False, memory_exceeded: bool = False
    ) -> Iterator[TaskResult]:
        self._terminate(worker)
        code = worker.process.exitcode
        if not worker.ready:
            self.failed_starts += 1
            if self.failed_starts >= MAX_FAILED_STARTS:
                raise DataError(
                    f"{MAX_FAILED_STARTS} workers in a row ended before they did anything (exit code {code}); "
                    "is there enough memory?"
                )
        for index, task in enumerate(worker.tasks):
            started = worker.ready and index == 0
            yield TaskResult(task, None, code, started, timed_out and started, memory_exceeded and started)

    def _seconds_left(self, worker: WorkerProcess) -> float:
        """Seconds until its task times out; a worker that is still starting has no limit."""
        if self.limits.timeout is None or not worker.ready:
            return float("inf")
        return worker.since + self.limits.timeout - time.monotonic()


@contextmanager
def _sigterm_blocked() -> Iterator[None]:
    """A process started here does not get a SIGTERM to our whole group: running tasks are to finish."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which unblocks signals when it is started by somebody else
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _no_main_module() -> Iterator[None]:
    """Workers do not import the user's script: they need nothing of it, and one without a main guard would run again."""
    with _MAIN_LOCK:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
