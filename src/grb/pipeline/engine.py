"""The engine: a graph of jobs on the processes of this machine; whatever dies, the rest is finished."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from grb.errors import DataError, GRBError
from grb.pipeline.job import Job
from grb.pipeline.pool import Answer, Crew, Pool
from grb.pipeline.serving import Told, sentence_of, serve_store
from grb.pipeline.store import Store

if TYPE_CHECKING:
    from grb.pipeline.worker import Worker

EventKind = Literal["cached", "started", "done", "failed", "skipped", "retried", "elsewhere", "finishing"]
# a job whose worker dies is tried so often
ATTEMPTS = 3
POLL = 0.2
RENEW = 20.0


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
    cluster: str | None = None,
    on_event: Callable[[Event], None] = lambda event: None,
    worker: Worker | None = None,
) -> Outcome:
    """Do all jobs that the store does not have yet, inputs first.

    Running again is resuming. A first interrupt lets running jobs finish, a second stops at once. A killed worker costs its
    job one more attempt; a job that fails takes only those with it that need it.

    Args:
        jobs: A graph of jobs.
        store: What is done, and where to write.
        limits: Processes of this machine, and what one job may use.
        cluster: Address of a Dask scheduler, or ``local``, instead of processes of this machine.
        on_event: Told of everything that happens.
        worker: Does the jobs in this process if ``limits`` ask for no others; one that reports epochs and steps, for instance.
    """
    todo = _Todo(jobs, store, on_event)
    if todo.waiting:
        store.prepare()
        if cluster is not None:
            from grb.pipeline.cluster import Cluster

            with Cluster(cluster, store, limits, todo.waiting.values()) as workers:
                _Master(store, limits, todo).run(workers)
        elif limits.workers:
            with worker_environment():
                _Master(store, limits, todo).run(_pool(store, limits, todo))
        else:
            _here(store, todo, worker)
    return todo.outcome


class _Todo:
    """Which jobs wait for which, and what became of them."""

    def __init__(self, jobs: Iterable[Job], store: Store, on_event: Callable[[Event], None]) -> None:
        self.store, self.on_event = store, on_event
        self.outcome = Outcome()
        self.listed = listed = {job.key: job for job in jobs}
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

    def code(self, job: Job) -> str:
        """Names of all code behind a job that is not ours, its models' included; empty if there is none."""
        names = set(job.third_party_code)
        for need in job.inputs.values():
            if need not in self.listed:
                with suppress(GRBError):  # the job itself will tell
                    self.listed[need] = self.store.read(need).job
            if need in self.listed:
                names |= self.listed[need].third_party_code
        return " ".join(sorted(names))

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


def _here(store: Store, todo: _Todo, worker: Worker | None) -> None:
    from grb.pipeline.worker import Worker

    worker = worker or Worker(store)
    running: list[Job] = []
    with _Interrupts(lambda: [todo.on_event(Event("finishing", job)) for job in running]) as interrupts:
        while todo.ready and not interrupts.asked:
            key = todo.ready.pop(0)
            running[:] = [todo.waiting[key]]
            todo.on_event(Event("started", running[0]))
            start = time.perf_counter()
            try:
                worker.do(running[0])
            except (Exception, SystemExit) as error:
                todo.fail(key, sentence_of(error), kind=type(error).__name__)
            else:
                todo.finish(key, time.perf_counter() - start)
    todo.outcome.interrupted = interrupts.asked


def _pool(store: Store, limits: Limits, todo: _Todo) -> Pool:
    """Processes of this machine for these jobs."""
    preload = ["grb.pipeline.worker"]
    if any(job.kind in ("fit", "profile") or "surrogate" in job.inputs for job in todo.waiting.values()):
        preload.append("torch._dynamo")  # imported by the first optimiser, which takes each worker seconds
    arguments = [str(store.path.absolute())]
    return Pool(limits.workers, serve_store, arguments, preload=preload, timeout=limits.timeout, memory=limits.memory)


class _Master:
    """Hands jobs to workers and takes back what became of them."""

    def __init__(self, store: Store, limits: Limits, todo: _Todo) -> None:
        self.store, self.limits, self.todo = store, limits, todo
        self.running: dict[str, Job] = {}
        self.attempts: dict[str, int] = {}
        self.elsewhere: dict[str, float] = {}
        self.interrupts = _Interrupts()

    def run(self, pool: Crew) -> None:
        try:
            with self.interrupts, _renewing(self.store, self.running):
                self._loop(pool)
        finally:
            pool.close()
            for key in self.running:
                self.store.release(key)

    def _loop(self, pool: Crew) -> None:
        draining = False
        while self.running or (not self.interrupts.asked and (self.todo.ready or self.elsewhere)):
            if not self.interrupts.asked:
                self._hand_out(pool)
            elif not draining:
                draining = self.todo.outcome.interrupted = True
                for job in self.running.values():
                    self.todo.on_event(Event("finishing", job))
            if self.running:
                for answer in pool.answers(POLL):
                    self._take_back(answer)
            elif not self.todo.ready:
                time.sleep(POLL)
        self.todo.outcome.interrupted = self.interrupts.asked

    def _hand_out(self, pool: Crew) -> None:
        self._look_elsewhere()
        while self._has_room(pool):
            key = self.todo.ready.pop(0)
            job = self.todo.waiting[key]
            if self.store.has(key):
                self.todo.finish(key, 0.0, "elsewhere")
            elif not self.store.claim(key):
                self.elsewhere[key] = time.monotonic() + 1.0
            else:
                self.running[key] = job
                pool.give(key, job.plain(), job.data.data_dir, brief=_brief(job), code=self.todo.code(job))
                self.todo.on_event(Event("started", job))

    def _has_room(self, pool: Crew) -> bool:
        """Whether the next job can be given; one in its last attempt has the machine for itself."""
        if not self.todo.ready:
            return False
        key = self.todo.ready[0]
        job = self.todo.waiting[key]
        last = any(self.attempts.get(each) == ATTEMPTS - 1 for each in (key, *self.running))
        if last and self.running and pool.one_machine:
            return False
        return pool.takes(brief=_brief(job), code=self.todo.code(job))

    def _look_elsewhere(self) -> None:
        """Jobs that another run on this store has claimed: done by now, or free again?"""
        now = time.monotonic()
        for key in [key for key, due in self.elsewhere.items() if due <= now]:
            del self.elsewhere[key]
            self.todo.ready.append(key)

    def _take_back(self, answer: Answer) -> None:
        key = answer.task
        job = self.running.pop(key)
        if answer.late:
            self.todo.fail(key, f"it took more than {self.limits.timeout:g} seconds", kind="timeout")
        elif answer.fat:
            self.todo.fail(key, f"it took more than {self.limits.memory:g} MB of memory", kind="memory")
        elif not answer.begun:
            self.todo.ready.insert(0, key)
        elif answer.exitcode is not None:
            self.attempts[key] = self.attempts.get(key, 0) + 1
            if self.attempts[key] < ATTEMPTS:
                last = self.attempts[key] == ATTEMPTS - 1
                sentence = "its worker died again; it will be tried alone" if last else "its worker died"
                self.todo.on_event(Event("retried", job, sentence=sentence))
                self.todo.ready.insert(0, key)
            else:
                self.todo.fail(key, f"its worker died {ATTEMPTS} times", kind="died")
        else:
            seconds, sentence, kind = _told(answer.value)
            if sentence:
                self.todo.fail(key, sentence, kind=kind)
            else:
                self.todo.finish(key, seconds)
        self.store.release(key)


def _told(value: Any) -> Told:
    """What a worker said of a job; a plug-in in it may have said something else."""
    try:
        seconds, sentence, kind = value
        return float(seconds), str(sentence), str(kind)
    except (TypeError, ValueError):
        return 0.0, "its worker told nothing that can be understood", "died"


def _brief(job: Job) -> bool:
    """Whether it may wait behind another one of its kind."""
    return job.kind == "score"


@contextmanager
def worker_environment() -> Iterator[None]:
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


class _Interrupts:
    """Ctrl-C and SIGTERM while inside: the first is only noted, the second is raised; only the main thread can listen."""

    def __init__(self, on_first: Callable[[], object] = lambda: None) -> None:
        self.asked = False
        self.on_first = on_first
        self.before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _hear(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.on_first()


@contextmanager
def _renewing(store: Store, running: Mapping[str, Job]) -> Iterator[None]:
    """Keep the claims of running jobs fresh."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEW):
            store.renew(list(running))

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
