"""Worker processes, each behind a pipe of its own: one that dies takes nothing with it but the task it was at."""

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
from grb.pipeline.family import GUARD, end_here, kill_group, resident_megabytes

# what a worker's maker gives: a function from a task's arguments to its plain value
Do = Callable[..., Any]
# brief tasks that wait in the pipe of a busy worker, so that it need not wait for us
AHEAD = 1
# workers in a row that may die before they are ready
STILLBORN = 5
JOIN = 5.0
# bytes of one message at most
MESSAGE = 2**20
_MAIN = threading.Lock()


@dataclass(frozen=True)
class Answer:
    """What became of a task.

    Args:
        task: Its name.
        value: What its function gave.
        exitcode: Of a worker that died; None if it gave a value.
        begun: Whether a worker that died was at this task; otherwise it was only next in line.
        late: Whether it was killed because it took too long.
        fat: Whether it was killed because it took too much memory.
    """

    task: str
    value: Any = None
    exitcode: int | None = None
    begun: bool = True
    late: bool = False
    fat: bool = False


class Crew(Protocol):
    """Whoever does tasks: processes of this machine, or a cluster."""

    one_machine: bool

    def takes(self, *, brief: bool = False, code: str = "") -> bool: ...

    def give(self, task: str, *arguments: Any, brief: bool = False, code: str = "") -> None: ...

    def answers(self, seconds: float) -> Iterator[Answer]: ...

    def close(self) -> None: ...


@dataclass
class _Member:
    process: Any
    pipe: Connection
    code: str
    tasks: deque[str] = field(default_factory=deque)
    brief: bool = True
    ready: bool = False
    since: float = 0.0
    said: bytes = b""


class Pool:
    """At most ``count`` processes at work, started when there is something to do, replaced when they die.

    Tasks with code of a user's say so by ``code``: a worker that has run some never does other tasks, for which it may be
    spoilt. As many workers again may wait for tasks of their own code.

    No lock and no queue is shared: a SIGKILL at any moment closes one pipe, which only its own worker used.

    Args:
        count: Processes at most.
        make: Called in every new worker with ``arguments``; gives the function that does tasks. Importable.
        preload: Modules that all workers need; imported once, before they are forked.
        timeout: Seconds from the begin of a task until its worker is killed.
        memory: Megabytes of a worker and its children at which it is killed; looked at from here, for a task may let
            no other thread of its worker run.
    """

    one_machine = True

    def __init__(
        self,
        count: int,
        make: Callable[..., Do],
        arguments: Sequence[Any] = (),
        *,
        preload: Sequence[str] = (),
        timeout: float | None = None,
        memory: float | None = None,
    ) -> None:
        self.count, self.make, self.arguments = count, make, arguments
        self.timeout, self.memory, self.looked = timeout, memory, 0.0
        # a server that has imported everything once forks workers in milliseconds, and holds no threads that a fork breaks
        self.context: Any = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
        if preload and hasattr(os, "fork"):
            self.context.set_forkserver_preload(list(preload))
        self.members: list[_Member] = []
        self.stillborn = 0

    def takes(self, *, brief: bool = False, code: str = "") -> bool:
        """Whether there is room for a task now."""
        return self._has_room() or (brief and self._behind(code) is not None)

    def give(self, task: str, *arguments: Any, brief: bool = False, code: str = "") -> None:
        """Hand a task to a worker without one, or put a brief one behind another brief one."""
        self._bury()
        member = (self._idle(code) or self._hire(code)) if self._has_room() else self._behind(code)
        assert member is not None, "there is no room for a task"
        if not member.tasks:
            member.brief, member.since = brief, time.monotonic()
        member.tasks.append(task)
        with suppress(OSError):  # it has died just now: its answer says so
            member.pipe.send(arguments)

    def answers(self, seconds: float) -> Iterator[Answer]:
        """What became of tasks, waiting at most so long for the first."""
        busy = [member for member in self.members if member.tasks]
        sources = [source for member in busy for source in (member.pipe, member.process.sentinel)]
        events = wait(sources, self._patience(seconds))
        for member in busy:
            if member.pipe in events or member.process.sentinel in events:
                yield from self._hear(member)
            if member.tasks and self._left(member) <= 0:
                yield from self._lost(member, late=True)
        if self.memory is not None and time.monotonic() - self.looked > GUARD:
            self.looked = time.monotonic()
            for member in [each for each in self.members if each.tasks]:
                if resident_megabytes(member.process.pid) > self.memory:
                    yield from self._lost(member, fat=True)

    def close(self) -> None:
        """Let every worker end; those with a task are killed."""
        for member in self.members:
            member.pipe.close()
            if member.tasks:
                _kill(member)
        for member in self.members:
            member.process.join(JOIN)
            if member.process.is_alive():
                _kill(member)
                member.process.join()
        self.members.clear()

    def _has_room(self) -> bool:
        return sum(bool(member.tasks) for member in self.members) < self.count

    def _idle(self, code: str) -> _Member | None:
        return next((member for member in self.members if not member.tasks and member.code == code), None)

    def _behind(self, code: str) -> _Member | None:
        """A worker whose brief task another one can wait behind."""
        fitting = (member for member in self.members if member.brief and member.code == code)
        return next((member for member in fitting if 0 < len(member.tasks) <= AHEAD), None)

    def _bury(self) -> None:
        """Forget workers that died while they had nothing to do."""
        for member in [each for each in self.members if not each.tasks and not each.process.is_alive()]:
            self._dismiss(member)

    def _hire(self, code: str) -> _Member:
        waiting = [member for member in self.members if not member.tasks]
        if waiting and len(self.members) >= 2 * self.count:
            self._dismiss(next((member for member in waiting if member.code), waiting[0]))
        ours, theirs = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(theirs, self.make, self.arguments), daemon=True)
        with _no_main_module(), _sheltered():
            process.start()
        theirs.close()
        self.members.append(_Member(process, ours, code))
        return self.members[-1]

    def _dismiss(self, member: _Member) -> None:
        self.members.remove(member)
        member.pipe.close()
        _kill(member)
        member.process.join()

    def _hear(self, member: _Member) -> Iterator[Answer]:
        try:
            for kind, value in _heard(member):  # what was said before a death counts
                member.since = time.monotonic()
                if kind == "done" and member.tasks:
                    yield Answer(member.tasks.popleft(), value)
                elif kind == "ready":
                    member.ready, self.stillborn = True, 0
                elif kind == "broken" and not member.ready:
                    raise DataError(f"a worker could not start: {value}")
        except (EOFError, OSError, TypeError, ValueError, RecursionError) as error:
            if isinstance(error, DataError):
                raise
            yield from self._lost(member)
        else:
            if member.tasks and not member.process.is_alive():
                yield from self._lost(member)

    def _lost(self, member: _Member, *, late: bool = False, fat: bool = False) -> Iterator[Answer]:
        self._dismiss(member)
        code = member.process.exitcode
        if not member.ready:
            self.stillborn += 1
            if self.stillborn >= STILLBORN:
                raise DataError(
                    f"{STILLBORN} workers in a row ended before they did anything (exit code {code}); "
                    "is there enough memory?"
                )
        for place, task in enumerate(member.tasks):
            begun = member.ready and place == 0
            yield Answer(task, exitcode=code, begun=begun, late=late and begun, fat=fat and begun)

    def _left(self, member: _Member) -> float:
        """Seconds until its task is late; a worker that is still starting has all the time."""
        if self.timeout is None or not member.ready:
            return float("inf")
        return member.since + self.timeout - time.monotonic()

    def _patience(self, seconds: float) -> float:
        return max(0.0, min([seconds, *(self._left(member) for member in self.members if member.tasks)]))


def _kill(member: _Member) -> None:
    """End a worker, if it has not ended, and whatever it has started."""
    kill_group(member.process.pid)
    member.process.kill()


def _tell(pipe: Connection, kind: str, value: Any) -> None:
    """A line of JSON to the parent: plain values only, which it can read without waiting for the rest or running any."""
    line = memoryview(json.dumps([kind, value]).encode() + b"\n")
    if os.name == "nt":
        pipe.send_bytes(line)
        return
    while line:
        line = line[os.write(pipe.fileno(), line) :]


def _heard(member: _Member) -> Iterator[tuple[str, Any]]:
    """All lines that a worker has told so far; a plug-in in it may have told something else."""
    while member.pipe.poll():
        data = member.pipe.recv_bytes() if os.name == "nt" else os.read(member.pipe.fileno(), MESSAGE)
        if not data:
            raise EOFError
        *lines, member.said = (member.said + data).split(b"\n")
        if len(member.said) > MESSAGE:
            raise ValueError("a message without an end")
        for line in lines:
            kind, value = json.loads(line)
            yield str(kind), value


def _serve(pipe: Connection, make: Callable[..., Do], arguments: Sequence[Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    with suppress(OSError):
        os.dup2(2, 1)  # whatever a user's code prints is not taken for our output
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own, which ends as one
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    try:
        do = make(*arguments)
    except Exception as error:
        _tell(pipe, "broken", " ".join(str(error).split())[:500])
        return
    multiprocessing.current_process().daemon = False  # a task may start processes, which end with its worker
    with suppress(EOFError, OSError):  # the parent has closed the pipe, or is gone
        _tell(pipe, "ready", None)
        while True:
            given = pipe.recv()
            _tell(pipe, "done", do(*given))
    end_here()  # nothing is left to clean up, and torch takes a tenth of a second for it


@contextmanager
def _sheltered() -> Iterator[None]:
    """What is started here does not hear a SIGTERM to our whole group: running tasks are to finish."""
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
    with _MAIN:
        own = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = own
