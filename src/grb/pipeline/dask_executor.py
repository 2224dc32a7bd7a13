"""Jobs on a Dask cluster: the same graph of jobs, the same records, whoever computes them."""

from __future__ import annotations

import asyncio
import os
import queue
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grb._version import __version__
from grb.errors import DataError, require
from grb.pipeline.executor import Limits, TaskResult
from grb.pipeline.isolation import run_job_isolated
from grb.pipeline.job import Job
from grb.pipeline.process_tree import CHECK_SECONDS, children, resident_megabytes
from grb.pipeline.store import Store
from grb.pipeline.worker_main import JobOutcome, error_message, new_worker, run_job

_LOCAL = re.compile(r"local(?::([1-9][0-9]{0,3}))?")
# jobs in flight per thread of the cluster, so that none waits for us
PREFETCH, SHORT_PREFETCH = 2, 8
# seconds that a scheduler may take to answer, and a first worker to appear
CONNECT_TIMEOUT = 5.0
WORKER_TIMEOUT = 60.0
# files of a store by their path inside it
Parcel = dict[str, bytes]


@dataclass(frozen=True)
class _RunContext:
    """What every job of one run needs to know.

    Args:
        store: Path of the scheduler's store; a worker that finds ``token`` there uses it, any other one gets parcels.
        token: A claim that only this run has made.
        limits: Seconds per job and megabytes per worker.
        version: Version of grb, the same everywhere.
    """

    store: str
    token: str
    limits: Limits
    version: str = __version__


class DaskExecutor:
    """Executor on the workers of a Dask scheduler.

    A worker that sees the store, by a shared file system, reads and writes it. To any other one the inputs of a job are
    sent, and its record and artefacts are sent back and checked before they enter the store.

    Args:
        address: Address of a Dask scheduler (``tcp://127.0.0.1:8786``, ``tls://...``), or ``local`` or ``local:4`` for
            workers that are started on this machine's loopback, and stopped at the end.
        store: The store that gets the records.
        limits: Resources that a job may use.
        jobs: All jobs that will be submitted, for the devices that they need.
    """

    one_machine = False

    def __init__(self, address: str, store: Store, limits: Limits, jobs: Iterable[Job]) -> None:
        self.address, self.store = address, store
        self.distributed: Any = require("distributed", extra="dask", what="a cluster")
        self.devices = {job.device for job in jobs}
        self.run_context = _RunContext(str(store.path.absolute()), secrets.token_hex(32), limits, __version__)
        self.workers = limits.workers or 1
        self.shipping = False
        self.submitted: dict[str, tuple[tuple[Any, ...], str]] = {}
        self.futures: dict[str, Any] = {}
        self.finished: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.submissions = 0
        self.threads = (0.0, 0)
        self.last_worker_seen = time.monotonic()

    def __enter__(self) -> DaskExecutor:
        self.own: Any = None
        local = _LOCAL.fullmatch(self.address)
        if not local and "://" not in self.address:
            raise DataError(
                f"the cluster is '{self.address}', but tcp://HOST:PORT, tls://HOST:PORT, local or local:4 is needed"
            )
        try:
            self._connect(local)
        except Exception as error:  # the library has several errors for bytes that anybody may have sent
            self._end()
            raise DataError(
                f"no Dask scheduler answers at '{self.address}' ({error_message(error)[:80]}); start one with "
                "`dask scheduler --host 127.0.0.1 --no-dashboard --dashboard-address 127.0.0.1:0`, or use local"
            ) from None
        try:
            self._check_workers()
            self.store.claim(self.run_context.token)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _connect(self, local: re.Match[str] | None) -> None:
        if local:
            self.own = self.distributed.LocalCluster(
                n_workers=int(local[1] or self.workers),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",  # without it, its server of metrics listens on every address
                scheduler_kwargs={"dashboard": False},
                silence_logs=50,
                memory_limit=0,
            )
        else:
            with ThreadPoolExecutor(1) as thread:  # this one may have a loop of its own, as in a notebook
                thread.submit(asyncio.run, self._shake_hands()).result()
        self.client = self.distributed.Client(self.own or self.address, timeout=10, set_as_default=False)

    async def _shake_hands(self) -> None:
        """Try the address once: the client itself would wait forever for a server that listens and never answers."""
        arguments = self.distributed.Security().get_connection_args("client")
        answered = self.distributed.comm.connect(self.address, timeout=CONNECT_TIMEOUT, **arguments)
        comm = await asyncio.wait_for(answered, CONNECT_TIMEOUT)
        await comm.close()

    def _check_workers(self) -> None:
        """Wait for a worker, and see that all of them can do the jobs."""
        try:
            self.client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
        except (TimeoutError, OSError):
            raise DataError(
                f"the cluster at {self.address} has no worker; start one with `dask worker {self.address} --nthreads 1` "
                "and the --host that it may listen on"
            ) from None
        try:
            versions = set(self.client.run(_version).values())
        except ImportError as error:
            raise DataError(f"a worker of {self.address} cannot import grb ({error}); install it there") from None
        if versions != {__version__}:
            others = ", ".join(sorted(versions - {__version__}))
            raise DataError(f"workers of {self.address} have grb {others}, but here it is {__version__}; install one")
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        if self.devices - {"cpu"} and not any(worker["resources"].get("GPU") for worker in workers):
            raise DataError(
                f"the jobs need a GPU, but no worker of {self.address} has one to offer; start it with "
                '`dask worker --resources "GPU=1"`'
            )

    def __exit__(self, *error: object) -> None:
        self.store.release(self.run_context.token)
        if self.shipping:
            with suppress(Exception):
                self.client.run(_forget, self.run_context.token)
        self._end()

    def _end(self) -> None:
        for each in (getattr(self, "client", None), self.own):
            if each is not None:
                with suppress(Exception):
                    each.close(timeout=10)

    # the executor

    def has_room(self, *, short: bool = False, code: str = "") -> bool:
        """Whether a job can be submitted now."""
        self._count_threads()
        return len(self.futures) < self.threads[1] * (SHORT_PREFETCH if short else PREFETCH)

    def _count_threads(self) -> None:
        """Once a second: how many threads there are, and when there were some last."""
        now = time.monotonic()
        if now - self.threads[0] > 1.0:
            self.threads = now, sum(self.client.nthreads().values())
            self.store.renew([self.run_context.token])
            if self.threads[1]:
                self.last_worker_seen = now
            elif now - self.last_worker_seen > WORKER_TIMEOUT:
                raise DataError(
                    f"the cluster at {self.address} has no worker left; what is done is kept: start workers, and run "
                    "again to resume"
                )

    def submit(self, task: str, *arguments: Any, short: bool = False, code: str = "") -> None:
        """Send a job, with its inputs where no worker would find them."""
        values, data_dir = arguments
        self.submitted[task] = arguments, code
        self.submissions += 1
        job = Job.from_message(values)
        parcel = _pack(self.store, job.needs) if self.shipping else None
        future = self.client.submit(
            _run_task,
            self.run_context,
            dict(values),
            data_dir,
            parcel,
            bool(code),
            key=f"grb-{job.kind}-{task}-{self.submissions}",
            pure=False,
            resources=None if job.device == "cpu" else {"GPU": 1},
        )
        self.futures[task] = future
        future.add_done_callback(lambda done: self.finished.put((task, done)))

    def results(self, seconds: float) -> Iterator[TaskResult]:
        """Yield the results there are, after waiting for the first for up to ``seconds``."""
        if self.client.status != "running":
            raise DataError(f"the cluster at {self.address} is gone; what is done is kept: run again to resume")
        self._count_threads()
        try:
            found = [self.finished.get(timeout=seconds)]
        except queue.Empty:
            return
        while not self.finished.empty():
            found.append(self.finished.get())
        for task, future in found:
            if self.futures.get(task) is future:
                del self.futures[task]
                if (result := self._received(task, future)) is not None:
                    del self.submitted[task]
                    yield result

    def _received(self, task: str, future: Any) -> TaskResult | None:
        """The result of a job; None if it has to be sent again with its inputs."""
        if future.status != "finished":
            error = future.exception() if future.status == "error" else None
            if error is None or isinstance(error, self.distributed.KilledWorker):
                return TaskResult(task, exitcode=1, started=error is not None)
            return TaskResult(task, JobOutcome(0.0, error_message(error), type(error).__name__))
        outcome, parcel = future.result()
        if outcome is None:
            self.shipping = True
            arguments, code = self.submitted[task]
            self.submit(task, *arguments, code=code)
            return None
        if parcel is not None and not outcome.message:
            try:
                _unpack(self.store, parcel, {task})
            except Exception as error:
                outcome = JobOutcome(outcome.seconds, error_message(error), type(error).__name__)
        with suppress(OSError):
            _mark(self.store, self.run_context, task).unlink(missing_ok=True)
        return TaskResult(task, outcome)

    def close(self) -> None:
        """Cancel queued jobs; those that a worker is at end there."""
        self.client.cancel(list(self.futures.values()), force=True)
        self.futures.clear()


# in a worker of the cluster

_WORKERS = threading.local()


def _version() -> str:
    return __version__


def _forget(token: str) -> None:
    shutil.rmtree(_scratch(token), ignore_errors=True)


def _scratch(token: str) -> Path:
    return Path(tempfile.gettempdir()) / f"grb-{token[:32]}"


def _run_task(
    context: _RunContext, values: Mapping[str, Any], data_dir: str | None, parcel: Parcel | None, isolated: bool
) -> tuple[JobOutcome | None, Parcel | None]:
    """Do a job, one with third-party code in a new process; None instead of its outcome if its inputs are not here."""
    if context.version != __version__:
        message = f"this worker has grb {__version__}, but {context.version} is needed"
        return JobOutcome(0.0, message, "DataError"), None
    token = Path(context.store) / "claims" / context.token
    shared = token.exists()
    if not shared and parcel is None:
        return None, None
    worker = _worker_of(context.store if shared else str(_scratch(context.token)))
    job = Job.from_message(values)
    if not shared:
        assert parcel is not None
        _unpack(worker.store, parcel, job.needs)
    key = job.key
    with suppress(OSError):
        if cause := _mark(worker.store, context, key).read_text():
            return JobOutcome(0.0, cause, "limit"), None
    if isolated:
        wanted = token.exists if shared else lambda: True
        outcome = run_job_isolated(str(worker.store.path), values, data_dir, limits=context.limits, wanted=wanted)
    else:
        with _limited(worker.store, context, key):
            outcome = run_job(worker, values, data_dir)
    return outcome, None if shared or outcome.message else _pack(worker.store, [key])


def _worker_of(path: str) -> Any:
    """The worker of this thread for a store; it remembers datasets and models from job to job."""
    known: dict[str, Any] = _WORKERS.__dict__.setdefault("known", {})
    if path not in known:
        known.clear()
        known[path] = new_worker(path)
    return known[path]


@contextmanager
def _limited(store: Store, context: _RunContext, key: str) -> Iterator[None]:
    """End this process when a job exceeds a limit; a mark keeps other workers from trying it again."""
    limits = context.limits
    if limits.timeout is None and limits.memory is None:
        yield
        return
    over, end = threading.Event(), time.monotonic() + (limits.timeout or float("inf"))
    before = children(os.getpid())  # for instance what starts processes for plug-ins

    def watch() -> None:
        while not over.wait(CHECK_SECONDS):
            too_large = limits.memory is not None and resident_megabytes(ignored=before) > limits.memory
            now = TaskResult(key, timed_out=time.monotonic() > end, memory_exceeded=too_large)
            if exceeded := limits.exceeded(now):
                mark = _mark(store, context, key)
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.write_text(f"it {exceeded}")
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _mark(store: Store, context: _RunContext, key: str) -> Path:
    return store.path / "claims" / f"{key}.{context.token[:16]}"


# between stores


def _pack(store: Store, keys: Iterable[str]) -> Parcel:
    """Records and their artefacts."""
    parcel = {}
    for key in keys:
        record = store.read(key)
        for name in record.objects:
            path = store.find(record, name)
            parcel[path.relative_to(store.path).as_posix()] = path.read_bytes()
        path = store.record_path(key)
        parcel[path.relative_to(store.path).as_posix()] = path.read_bytes()
    return parcel


def _unpack(store: Store, parcel: Parcel, keys: Collection[str]) -> None:
    """Receive a parcel, artefacts first: every byte is checked against its name, every record against what was asked for.

    Args:
        store: The store that gets the records.
        parcel: What was sent.
        keys: Keys of the jobs whose records are expected; a record of any other job is refused.
    """
    expected = {f"records/{key[:2]}/{key}.json": key for key in keys}
    records = {name: data for name, data in parcel.items() if not name.startswith("objects/")}
    for name in records:
        if name not in expected:
            raise DataError(f"'{name[:90]}' was sent, which nobody asked for; its worker is not one of grb")
    for name, data in parcel.items():
        if name not in records:
            path = Path(name)
            if store.put(data, path.suffix)["sha256"] != path.stem:
                raise DataError(f"{path.name[:80]} came with other bytes than its name says")
    for name, data in records.items():
        if not store.has(expected[name]):
            # its key is the sha256 of a job that was planned here, so it names no other code than that one
            store.receive(expected[name], data, trust_code=True)
    missing = next((key for key in keys if not store.has(key)), None)
    if missing is not None:
        raise DataError(f"record {missing[:12]} was not sent; its worker is not one of grb")
