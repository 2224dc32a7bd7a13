"""The engine: a graph of jobs on the processes of this machine; whatever dies, the rest is finished."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from grb.errors import DataError, GRBError
from grb.pipeline.job import Job
from grb.pipeline.store import Store

EventKind = Literal["cached", "started", "done", "failed", "skipped", "retried", "elsewhere"]
# jobs handed out ahead for every worker, so that none waits for the parent
AHEAD = 2
# a job whose worker dies is tried so often
ATTEMPTS = 3
POLL = 0.2
RENEW = 20.0
# how often a worker looks at its own memory and whether its parent lives
GUARD = 0.25


@dataclass(frozen=True)
class Event:
    """Something that happened to a job."""

    kind: EventKind
    job: Job
    seconds: float = 0.0
    sentence: str = ""


@dataclass(frozen=True)
class Limits:
    """What jobs may use.

    Args:
        workers: Processes; 0 runs the jobs in this one.
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


@dataclass
class Outcome:
    """How a run ended."""

    done: int = 0
    cached: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: int = 0
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        return not self.failed and not self.skipped and not self.interrupted


def run(
    jobs: Iterable[Job],
    store: Store,
    *,
    limits: Limits = Limits(),  # noqa: B008
    on_event: Callable[[Event], None] = lambda event: None,
) -> Outcome:
    """Do all jobs that the store does not have yet, inputs first.

    Running again is resuming. A first interrupt lets running jobs finish, a second stops at once. A killed worker costs its
    job one more attempt; a job that fails takes only those with it that need it.
    """
    todo = _Todo(jobs, store, on_event)
    if todo.waiting:
        store.prepare()
        if limits.workers:
            _Pool(store, limits, todo).run()
        else:
            _here(store, todo)
    return todo.outcome


class _Todo:
    """Which jobs wait for which, and what became of them."""

    def __init__(self, jobs: Iterable[Job], store: Store, on_event: Callable[[Event], None]) -> None:
        self.store, self.on_event = store, on_event
        self.outcome = Outcome()
        listed = {job.key: job for job in jobs}
        self.waiting: dict[str, Job] = {}
        for key, job in listed.items():
            if store.has(key):
                self.outcome.cached += 1
                on_event(Event("cached", job))
            else:
                self.waiting[key] = job
        self.open: dict[str, set[str]] = {}
        self.users: dict[str, list[str]] = {}
        for key, job in self.waiting.items():
            needed = {need for need in job.needs if need in self.waiting}
            missing = [need for need in job.needs if need not in listed and not store.has(need)]
            if missing:
                raise DataError(f"{job.label} needs job {missing[0][:12]}, which is neither planned nor in the store")
            self.open[key] = needed
            for need in needed:
                self.users.setdefault(need, []).append(key)
        self.ready = [key for key in self.waiting if not self.open[key]]

    def finish(self, key: str, seconds: float, kind: EventKind = "done") -> None:
        job = self.waiting.pop(key)
        self.outcome.done += kind == "done"
        self.outcome.cached += kind == "elsewhere"
        self.on_event(Event(kind, job, seconds))
        for user in self.users.get(key, []):
            if user in self.open:
                self.open[user].discard(key)
                if not self.open[user] and user in self.waiting:
                    self.ready.append(user)

    def fail(self, key: str, sentence: str, *, kind: str) -> None:
        job = self.waiting.pop(key)
        self.outcome.failed[key] = sentence
        self.store.write_failure(job, sentence, kind=kind)
        self.on_event(Event("failed", job, sentence=sentence))
        for user in self.users.get(key, []):
            self._skip(user, job)

    def _skip(self, key: str, cause: Job) -> None:
        job = self.waiting.pop(key, None)
        if job is None:
            return
        self.outcome.skipped += 1
        self.on_event(Event("skipped", job, sentence=f"its input failed: {cause.label}"))
        for user in self.users.get(key, []):
            self._skip(user, cause)


def _here(store: Store, todo: _Todo) -> None:
    from grb.pipeline.work import Worker

    worker = Worker(store)
    while todo.ready:
        key = todo.ready.pop(0)
        job = todo.waiting[key]
        todo.on_event(Event("started", job))
        start = time.perf_counter()
        try:
            worker.do(job)
        except KeyboardInterrupt:
            todo.outcome.interrupted = True
            return
        except Exception as error:
            todo.fail(key, _sentence(error), kind=type(error).__name__)
        else:
            todo.finish(key, time.perf_counter() - start)


class _Pool:
    """Worker processes that come back when they die."""

    def __init__(self, store: Store, limits: Limits, todo: _Todo) -> None:
        self.store, self.limits, self.todo = store, limits, todo
        self.running: dict[Future[Any], str] = {}
        self.attempts: dict[str, int] = {}
        self.elsewhere: dict[str, float] = {}
        self.draining = False

    def run(self) -> None:
        from pebble import ProcessPool

        # a server that has imported everything once forks workers in milliseconds, and holds no threads that a fork breaks
        context = multiprocessing.get_context("forkserver" if hasattr(os, "fork") else "spawn")
        if hasattr(os, "fork"):
            context.set_forkserver_preload(["grb.pipeline.work"])
        arguments = [str(self.store.path.absolute()), os.getpid(), self.limits.memory]
        with _worker_environment():
            pool: Any = ProcessPool(
                max_workers=self.limits.workers, initializer=_start_worker, initargs=arguments, context=context
            )
            try:
                with _interrupts(self._interrupted), _renewing(self.store, self.running):
                    self._loop(pool)
            except BaseException:
                pool.stop()
                raise
            else:
                pool.stop() if self.todo.outcome.interrupted else pool.close()
            finally:
                for key in self.running.values():
                    self.store.release(key)
                pool.join()

    def _interrupted(self) -> None:
        if self.draining:
            raise KeyboardInterrupt
        self.draining = self.todo.outcome.interrupted = True

    def _loop(self, pool: Any) -> None:
        while self.running or (not self.draining and (self.todo.ready or self.elsewhere)):
            self._hand_out(pool)
            if not self.running:
                time.sleep(POLL)
                continue
            finished, _ = wait(list(self.running), timeout=POLL, return_when=FIRST_COMPLETED)
            for future in finished:
                self._take_back(future)

    def _hand_out(self, pool: Any) -> None:
        if self.draining:
            for future in list(self.running):
                if not future.running() and future.cancel():
                    self.store.release(self.running.pop(future))
            return
        self._look_elsewhere()
        while self.todo.ready and len(self.running) < (1 + AHEAD) * self.limits.workers:
            key = self.todo.ready.pop(0)
            job = self.todo.waiting[key]
            if self.store.has(key):
                self.todo.finish(key, 0.0, "elsewhere")
            elif not self.store.claim(key):
                self.elsewhere[key] = time.monotonic() + 1.0
            else:
                self.todo.on_event(Event("started", job))
                arguments = [job.plain(), job.data.data_dir]
                self.running[pool.schedule(_work, args=arguments, timeout=self.limits.timeout)] = key

    def _look_elsewhere(self) -> None:
        """Jobs that another run on this store has claimed: done by now, or free again?"""
        now = time.monotonic()
        for key in [key for key, due in self.elsewhere.items() if due <= now]:
            del self.elsewhere[key]
            self.todo.ready.append(key)

    def _take_back(self, future: Future[Any]) -> None:
        from pebble import ProcessExpired

        key = self.running.pop(future)
        try:
            seconds, sentence, kind = future.result()
        except TimeoutError:
            seconds, kind = 0.0, "timeout"
            sentence = f"it took more than {self.limits.timeout:g} seconds"
        except ProcessExpired as error:
            self.attempts[key] = self.attempts.get(key, 0) + 1
            if error.exitcode == OUT_OF_MEMORY and self.limits.memory is not None:
                sentence, kind = f"it took more than {self.limits.memory:g} MB of memory", "memory"
            else:
                sentence, kind = f"its worker died {self.attempts[key]} times", "died"
                if self.attempts[key] < ATTEMPTS:
                    self.store.release(key)
                    if not self.draining:
                        self.todo.on_event(Event("retried", self.todo.waiting[key], sentence="its worker died"))
                        self.todo.ready.insert(0, key)
                    return
            seconds = 0.0
        if sentence:
            self.todo.fail(key, sentence, kind=kind)
        else:
            self.todo.finish(key, seconds)
        self.store.release(key)


# what a worker that ate too much tells its parent
OUT_OF_MEMORY = 77
_worker: Any = None


def _start_worker(store: str, parent: int, memory: float | None) -> None:
    from grb.graph.memory import keep_memory
    from grb.pipeline.work import Worker

    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what an interrupt means
    keep_memory()
    _worker = Worker(Store(store))
    threading.Thread(target=_guard, args=(parent, memory), daemon=True).start()


def _work(values: Mapping[str, Any], data_dir: str | None) -> tuple[float, str, str]:
    """Seconds, and a sentence and its kind if the job failed: errors of any class cross processes as plain text."""
    start = time.perf_counter()
    try:
        _worker.do(Job.from_plain(values, data_dir=data_dir))
    except Exception as error:
        return time.perf_counter() - start, _sentence(error), type(error).__name__
    return time.perf_counter() - start, "", ""


def _guard(parent: int, memory: float | None) -> None:
    """End this worker when its parent is gone or its memory too large."""
    while True:
        time.sleep(GUARD)
        if not _alive(parent):
            os._exit(1)
        if memory is not None and resident_megabytes() > memory:
            os._exit(OUT_OF_MEMORY)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def resident_megabytes() -> float:
    """Memory of this process now; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except (OSError, ValueError, IndexError):
        return 0.0


def _sentence(error: BaseException) -> str:
    if isinstance(error, GRBError | OSError | MemoryError):
        return " ".join(str(error).split())[:500] or type(error).__name__
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


@contextmanager
def _worker_environment() -> Iterator[None]:
    """Workers do not spin while they wait; torch reads this when it starts, so it must be set before."""
    wanted = {"OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update({name: value for name, value in wanted.items() if before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


@contextmanager
def _interrupts(handle: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM come to ``handle``; only the main thread can listen."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: handle())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _renewing(store: Store, running: Mapping[Any, str]) -> Iterator[None]:
    """Keep the claims of running jobs fresh."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEW):
            store.renew(list(running.values()))

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
