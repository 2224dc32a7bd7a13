"""The scheduler: a graph of jobs on processes of this machine or a cluster; whatever dies, the rest is finished."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from grb.errors import DataError, GRBError, IntegrityError
from grb.pipeline.executor import Executor, Limits, ProcessExecutor, TaskResult
from grb.pipeline.isolation import worker_environment
from grb.pipeline.job import Job
from grb.pipeline.provenance import provenance
from grb.pipeline.store import Store
from grb.pipeline.study import Study
from grb.pipeline.worker_main import JobOutcome, error_message, store_handler

if TYPE_CHECKING:
    from grb.pipeline.worker import Worker

EventKind = Literal["cached", "started", "done", "failed", "skipped", "retried", "elsewhere", "finishing"]
# how often a job is tried whose worker dies
MAX_ATTEMPTS = 3
POLL_SECONDS = 0.2
RENEW_SECONDS = 20.0


@dataclass(frozen=True)
class Event:
    """Something that happened to a job."""

    kind: EventKind
    job: Job
    seconds: float = 0.0
    message: str = ""


@dataclass
class Outcome:
    """How a run ended: numbers of jobs, and the error messages of those that failed by their keys."""

    done: int = 0
    cached: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    skipped: int = 0
    interrupted: bool = False

    @property
    def complete(self) -> bool:
        """Whether every job is done."""
        return not self.failed and not self.skipped and not self.interrupted


def run(
    jobs: Iterable[Job] | Study,
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
        jobs: The jobs, with those that they need unless the store has them; or a study, whose boards the store then knows.
        store: The store with what is done, which gets the records.
        limits: Processes of this machine, and what one job may use.
        cluster: Address of a Dask scheduler, or ``local``, instead of processes of this machine.
        on_event: Called with every event.
        worker: Does the jobs in this process if ``limits`` ask for no others; one that reports epochs and steps, for instance.
    """
    if isinstance(jobs, Study):
        record = jobs.record(provenance(0.0, 0.0))
        if record is not None and not store.has(record.key):
            store.write(record)
    graph = JobGraph(jobs.jobs.values() if isinstance(jobs, Study) else jobs, store, on_event)
    if graph.waiting:
        store.prepare()
        if cluster is not None:
            from grb.pipeline.dask_executor import DaskExecutor

            with DaskExecutor(cluster, store, limits, graph.waiting.values()) as executor:
                Scheduler(store, limits, graph).run(executor)
        elif limits.workers:
            with worker_environment():
                Scheduler(store, limits, graph).run(_processes(store, limits, graph))
        else:
            _run_here(store, graph, worker)
    return graph.outcome


class JobGraph:
    """Jobs that are not done yet, which of them wait for which, and how they ended."""

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

    def third_party_code(self, job: Job) -> str:
        """Return the names of all third-party code behind a job, its models' included; empty if there is none."""
        names = set(job.third_party_code)
        for need in job.inputs.values():
            if need not in self.listed:
                with suppress(GRBError):  # the job itself will fail
                    self.listed[need] = self.store.read(need).job
            if need in self.listed:
                names |= self.listed[need].third_party_code
        return " ".join(sorted(names))

    def accept(self, key: str, seconds: float) -> None:
        """Mark a job as done whose record holds; what code of others has part in is checked here, where it never ran.

        Such code could change whatever counts and measures in its own process.
        """
        wrong = self.store.contradictions(key) if self.third_party_code(self.waiting[key]) else []
        if wrong:
            self.store.record_path(key).unlink(missing_ok=True)
            self.fail(key, f"its record does not hold: {wrong[0]}", kind=IntegrityError.__name__)
        else:
            self.finish(key, seconds)

    def finish(self, key: str, seconds: float, kind: EventKind = "done") -> None:
        """Mark a job as done, which may make others ready."""
        job = self.waiting.pop(key)
        self.outcome.done += kind == "done"
        self.outcome.cached += kind == "elsewhere"
        self.on_event(Event(kind, job, seconds))
        for user in self.users.get(key, []):
            if user in self.open:
                self.open[user].discard(key)
                if not self.open[user] and user in self.waiting:
                    self.ready.append(user)

    def fail(self, key: str, message: str, *, kind: str) -> None:
        """Mark a job as failed, and skip those that need it."""
        job = self.waiting.pop(key)
        self.outcome.failed[key] = message
        self.store.write_failure(job, message, kind=kind)
        self.on_event(Event("failed", job, message=message))
        for user in self.users.get(key, []):
            self._skip(user, job)

    def _skip(self, key: str, cause: Job) -> None:
        job = self.waiting.pop(key, None)
        if job is None:
            return
        self.outcome.skipped += 1
        self.on_event(Event("skipped", job, message=f"its input failed: {cause.label}"))
        for user in self.users.get(key, []):
            self._skip(user, cause)


def _run_here(store: Store, graph: JobGraph, worker: Worker | None) -> None:
    from grb.pipeline.worker import Worker

    worker = worker or Worker(store)
    running: list[Job] = []
    with _Interrupts(lambda: [graph.on_event(Event("finishing", job)) for job in running]) as interrupts:
        while graph.ready and not interrupts.asked:
            # a score ends what somebody waits for
            key = min(graph.ready, key=lambda each: not _is_short(graph.waiting[each]))
            graph.ready.remove(key)
            running[:] = [graph.waiting[key]]
            graph.on_event(Event("started", running[0]))
            start = time.perf_counter()
            try:
                worker.do(running[0])
            except (Exception, SystemExit) as error:
                graph.fail(key, error_message(error), kind=type(error).__name__)
            else:
                graph.accept(key, time.perf_counter() - start)
    graph.outcome.interrupted = interrupts.asked


def _processes(store: Store, limits: Limits, graph: JobGraph) -> ProcessExecutor:
    """Processes of this machine for these jobs."""
    preload = ["grb.pipeline.worker"]
    if any(job.kind in ("fit", "profile") or "surrogate" in job.inputs for job in graph.waiting.values()):
        preload.append("torch._dynamo")  # imported by the first optimiser, which takes each worker seconds
    return ProcessExecutor(limits.workers, store_handler, [str(store.path.absolute())], preload=preload, limits=limits)


class Scheduler:
    """Submits the jobs of a graph to an executor and handles their results."""

    def __init__(self, store: Store, limits: Limits, graph: JobGraph) -> None:
        self.store, self.limits, self.graph = store, limits, graph
        self.running: dict[str, Job] = {}
        self.attempts: dict[str, int] = {}
        self.elsewhere: dict[str, float] = {}
        self.interrupts = _Interrupts()

    def run(self, executor: Executor) -> None:
        """Run until every job has ended or an interrupt was asked for; the executor is closed."""
        try:
            with self.interrupts, _renewing(self.store, self.running):
                self._loop(executor)
        finally:
            executor.close()
            for key in self.running:
                self.store.release(key)

    def _loop(self, executor: Executor) -> None:
        draining = False
        while self.running or (not self.interrupts.asked and (self.graph.ready or self.elsewhere)):
            if not self.interrupts.asked:
                self._submit_ready(executor)
            elif not draining:
                draining = self.graph.outcome.interrupted = True
                for job in self.running.values():
                    self.graph.on_event(Event("finishing", job))
            if self.running:
                for result in executor.results(POLL_SECONDS):
                    self._handle(result)
            elif not self.graph.ready:
                time.sleep(POLL_SECONDS)
        self.graph.outcome.interrupted = self.interrupts.asked

    def _submit_ready(self, executor: Executor) -> None:
        self._recheck_elsewhere()
        while self._has_room(executor):
            key = self.graph.ready.pop(0)
            job = self.graph.waiting[key]
            if self.store.has(key):
                self.graph.finish(key, 0.0, "elsewhere")
            elif not self.store.claim(key):
                self.elsewhere[key] = time.monotonic() + 1.0
            else:
                self.running[key] = job
                executor.submit(
                    key,
                    job.to_message(),
                    job.data.data_dir,
                    short=_is_short(job),
                    code=self.graph.third_party_code(job),
                )
                self.graph.on_event(Event("started", job))

    def _has_room(self, executor: Executor) -> bool:
        """Whether the next job can be submitted; one in its last attempt has the machine for itself."""
        if not self.graph.ready:
            return False
        key = self.graph.ready[0]
        job = self.graph.waiting[key]
        last = any(self.attempts.get(each) == MAX_ATTEMPTS - 1 for each in (key, *self.running))
        if last and self.running and executor.one_machine:
            return False
        return executor.has_room(short=_is_short(job), code=self.graph.third_party_code(job))

    def _recheck_elsewhere(self) -> None:
        """Jobs that another run on this store has claimed: done by now, or free again?"""
        now = time.monotonic()
        for key in [key for key, due in self.elsewhere.items() if due <= now]:
            del self.elsewhere[key]
            self.graph.ready.append(key)

    def _handle(self, result: TaskResult) -> None:
        key = result.task
        job = self.running.pop(key)
        if exceeded := self.limits.exceeded(result):
            self.graph.fail(key, f"it {exceeded}", kind="timeout" if result.timed_out else "memory")
        elif not result.started:
            self.graph.ready.insert(0, key)
        elif result.exitcode is not None:
            self._retry(job)
        else:
            outcome = JobOutcome.of(result.value)
            if outcome.message:
                self.graph.fail(key, outcome.message, kind=outcome.kind)
            else:
                self.graph.accept(key, outcome.seconds)
        self.store.release(key)

    def _retry(self, job: Job) -> None:
        """Try a job again whose worker died, a limited number of times."""
        attempts = self.attempts[job.key] = self.attempts.get(job.key, 0) + 1
        if attempts == MAX_ATTEMPTS:
            self.graph.fail(job.key, f"its worker died {MAX_ATTEMPTS} times", kind="died")
            return
        last = attempts == MAX_ATTEMPTS - 1
        message = "its worker died again; it will be tried alone" if last else "its worker died"
        self.graph.on_event(Event("retried", job, message=message))
        self.graph.ready.insert(0, job.key)


def _is_short(job: Job) -> bool:
    """Whether it may be queued behind another job of its kind."""
    return job.kind == "score"


class _Interrupts:
    """Ctrl-C and SIGTERM while inside: the first is only noted, the second is raised; only the main thread gets them."""

    def __init__(self, on_first: Callable[[], object] = lambda: None) -> None:
        self.asked = False
        self.on_first = on_first
        self.before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _receive(self, *_: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.on_first()


@contextmanager
def _renewing(store: Store, running: Mapping[str, Job]) -> Iterator[None]:
    """Keep the claims of running jobs fresh."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEW_SECONDS):
            store.renew(list(running))

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
