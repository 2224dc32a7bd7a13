"""Jobs on a Dask cluster: the same graph of jobs, the same records, whoever computes them."""

from __future__ import annotations

import os
import queue
import re
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb._version import __version__
from grb.errors import DataError, require
from grb.pipeline.alone import attempt_alone
from grb.pipeline.family import GUARD, resident_megabytes
from grb.pipeline.job import Job
from grb.pipeline.pool import Answer
from grb.pipeline.serving import Told, attempt, new_worker, sentence_of
from grb.pipeline.store import Store

if TYPE_CHECKING:
    from grb.pipeline.engine import Limits

_LOCAL = re.compile(r"local(?::([1-9][0-9]{0,3}))?")
# jobs in flight per thread of the cluster, so that none waits for us
AHEAD, BRIEF_AHEAD = 2, 8
# seconds that a first worker may take to appear
PATIENCE = 60.0
# files of a store by their path inside it
Parcel = dict[str, bytes]


@dataclass(frozen=True)
class _Order:
    """What every job of one run needs to know.

    Args:
        store: Where the master's store lies; a worker that finds ``token`` there uses it, any other one gets parcels.
        token: A claim that only this run has made.
        timeout: Seconds per job.
        memory: Megabytes per worker.
        version: Of grb, the same everywhere.
    """

    store: str
    token: str
    timeout: float | None
    memory: float | None
    version: str


class Cluster:
    """Workers of a Dask scheduler, as the engine wants them.

    A worker that sees the master's store, by a shared file system, reads and writes it. To any other one the inputs of a
    job are sent, and its record and artefacts are sent back and checked before they enter the store.

    Args:
        address: Of a scheduler (``tcp://127.0.0.1:8786``, ``tls://...``), or ``local`` or ``local:4`` for workers that
            are started on this machine's loopback, and stopped at the end.
        store: The master's.
        limits: What a job may use.
        jobs: All that will be given, for what they ask of workers.
    """

    one_machine = False

    def __init__(self, address: str, store: Store, limits: Limits, jobs: Iterable[Job]) -> None:
        self.address, self.store = address, store
        self.distributed: Any = require("distributed", extra="dask", what="a cluster")
        self.devices = {job.device for job in jobs}
        self.order = _Order(
            str(store.path.absolute()), secrets.token_hex(32), limits.timeout, limits.memory, __version__
        )
        self.workers = limits.workers or 1
        self.shipping = False
        self.given: dict[str, tuple[tuple[Any, ...], str]] = {}
        self.futures: dict[str, Any] = {}
        self.finished: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self.numbers = 0
        self.room = (0.0, 0)
        self.manned = time.monotonic()

    def __enter__(self) -> Cluster:
        self.own: Any = None
        local = _LOCAL.fullmatch(self.address)
        if not local and "://" not in self.address:
            raise DataError(
                f"the cluster is '{self.address}', but tcp://HOST:PORT, tls://HOST:PORT, local or local:4 is needed"
            )
        try:
            self._connect(local)
        except (OSError, ValueError, RuntimeError, TimeoutError, ImportError) as error:
            self._end()
            raise DataError(
                f"no Dask scheduler answers at '{self.address}' ({sentence_of(error)[:80]}); start one with "
                "`dask scheduler --host 127.0.0.1 --no-dashboard --dashboard-address 127.0.0.1:0`, or use local"
            ) from None
        try:
            self._meet()
            self.store.claim(self.order.token)
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
        self.client = self.distributed.Client(self.own or self.address, timeout=10, set_as_default=False)

    def _meet(self) -> None:
        """Wait for a worker, and see that all of them can do the jobs."""
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
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
        self.store.release(self.order.token)
        if self.shipping:
            with suppress(Exception):
                self.client.run(_forget, self.order.token)
        self._end()

    def _end(self) -> None:
        for each in (getattr(self, "client", None), self.own):
            if each is not None:
                with suppress(Exception):
                    each.close(timeout=10)

    # what the engine asks for

    def takes(self, *, brief: bool = False, code: str = "") -> bool:
        """Whether there is room for a job now."""
        self._look()
        return len(self.futures) < self.room[1] * (BRIEF_AHEAD if brief else AHEAD)

    def _look(self) -> None:
        """Once a second: how many threads there are, and when there were some last."""
        now = time.monotonic()
        if now - self.room[0] > 1.0:
            self.room = now, sum(self.client.nthreads().values())
            self.store.renew([self.order.token])
            if self.room[1]:
                self.manned = now
            elif now - self.manned > PATIENCE:
                raise DataError(
                    f"the cluster at {self.address} has no worker left; what is done is kept: start workers, and run "
                    "again to resume"
                )

    def give(self, task: str, *arguments: Any, brief: bool = False, code: str = "") -> None:
        """Send a job, with its inputs where no worker would find them."""
        values, data_dir = arguments
        self.given[task] = arguments, code
        self.numbers += 1
        job = Job.from_plain(values)
        parcel = _packed(self.store, job.needs) if self.shipping else None
        future = self.client.submit(
            _serve,
            self.order,
            dict(values),
            data_dir,
            parcel,
            bool(code),
            key=f"grb-{job.kind}-{task}-{self.numbers}",
            pure=False,
            resources=None if job.device == "cpu" else {"GPU": 1},
        )
        self.futures[task] = future
        future.add_done_callback(lambda done: self.finished.put((task, done)))

    def answers(self, seconds: float) -> Iterator[Answer]:
        """What became of jobs, waiting at most so long for the first."""
        if self.client.status != "running":
            raise DataError(f"the cluster at {self.address} is gone; what is done is kept: run again to resume")
        self._look()
        try:
            found = [self.finished.get(timeout=seconds)]
        except queue.Empty:
            return
        while not self.finished.empty():
            found.append(self.finished.get())
        for task, future in found:
            if self.futures.get(task) is future:
                del self.futures[task]
                if (answer := self._heard(task, future)) is not None:
                    del self.given[task]
                    yield answer

    def _heard(self, task: str, future: Any) -> Answer | None:
        """An answer; None if the job has to be sent again with its inputs."""
        if future.status != "finished":
            error = future.exception() if future.status == "error" else None
            if error is None or isinstance(error, self.distributed.KilledWorker):
                return Answer(task, exitcode=1, begun=error is not None)
            return Answer(task, (0.0, sentence_of(error), type(error).__name__))
        told, parcel = future.result()
        if told is None:
            self.shipping = True
            given, code = self.given[task]
            self.give(task, *given, code=code)
            return None
        if parcel is not None and not told[1]:
            try:
                _unpacked(self.store, parcel)
            except Exception as error:
                told = (told[0], sentence_of(error), type(error).__name__)
        with suppress(OSError):
            _mark(self.store, self.order, task).unlink(missing_ok=True)
        return Answer(task, told)

    def close(self) -> None:
        """Forget jobs that wait; those that a worker is at end there."""
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


def _serve(
    order: _Order, values: Mapping[str, Any], data_dir: str | None, parcel: Parcel | None, alone: bool
) -> tuple[Told | None, Parcel | None]:
    """Do a job, one with a user's code alone; None instead of what became of it if its inputs are not here."""
    if order.version != __version__:
        return (0.0, f"this worker has grb {__version__}, but {order.version} is needed", "DataError"), None
    token = Path(order.store) / "claims" / order.token
    shared = token.exists()
    if not shared and parcel is None:
        return None, None
    worker = _worker_of(order.store if shared else str(_scratch(order.token)))
    if not shared:
        assert parcel is not None
        _unpacked(worker.store, parcel)
    key = Job.from_plain(values).key
    with suppress(OSError):
        if cause := _mark(worker.store, order, key).read_text():
            return (0.0, cause, "limit"), None
    if alone:
        told = attempt_alone(
            worker.store, values, data_dir, timeout=order.timeout, memory=order.memory, claim=token if shared else None
        )
    else:
        with _watched(worker.store, order, key):
            told = attempt(worker, values, data_dir)
    return told, None if shared or told[1] else _packed(worker.store, [key])


def _worker_of(path: str) -> Any:
    """The worker of this thread for a store; it remembers datasets and models from job to job."""
    known: dict[str, Any] = _WORKERS.__dict__.setdefault("known", {})
    if path not in known:
        known.clear()
        known[path] = new_worker(path)
    return known[path]


@contextmanager
def _watched(store: Store, order: _Order, key: str) -> Iterator[None]:
    """End this process when a job takes too long or too much; a mark keeps others from trying it again."""
    if order.timeout is None and order.memory is None:
        yield
        return
    over, end = threading.Event(), time.monotonic() + (order.timeout or float("inf"))

    def watch() -> None:
        while not over.wait(GUARD):
            cause = ""
            if time.monotonic() > end:
                cause = f"it took more than {order.timeout:g} seconds"
            elif order.memory is not None and resident_megabytes() > order.memory:
                cause = f"it took more than {order.memory:g} MB of memory"
            if cause:
                mark = _mark(store, order, key)
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.write_text(cause)
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def _mark(store: Store, order: _Order, key: str) -> Path:
    return store.path / "claims" / f"{key}.{order.token[:16]}"


# between stores


def _packed(store: Store, keys: Iterable[str]) -> Parcel:
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


def _unpacked(store: Store, parcel: Parcel) -> None:
    """Take a parcel in, artefacts first; every byte is checked against its name."""
    for name, data in sorted(parcel.items()):
        path = Path(name)
        if path.parts[0] == "objects":
            if store.put(data, path.suffix)["sha256"] != path.stem:
                raise DataError(f"{path.name[:80]} came with other bytes than its name says")
        elif not store.has(path.stem):
            store.receive(path.stem, data)
