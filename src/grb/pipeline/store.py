"""The store: one JSON record per job, artefacts by their sha256, written whole or not at all, by many writers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import tempfile
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grb.atomic import make_directory, sync_directory, write_atomic
from grb.errors import DataError, IntegrityError
from grb.pipeline.job import Job
from grb.pipeline.record import FORMAT, MAX_RECORD, SUBMISSION, SUFFIXES, Record, checked_key, is_key, json_bytes
from grb.pipeline.unused import find_unused, is_stale

if TYPE_CHECKING:
    from grb.pipeline.derived import DerivedChecks

MAX_MESSAGE = 400
MAX_STAMP = 1000
# almost every record is shorter, so that one call reads it
USUAL_RECORD = 2**16
# not waiting for a writer where somebody put a pipe in place of a record
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def _open(path: str, flags: int = 0) -> int:
    return os.open(path, _READ)


@dataclass(frozen=True)
class Problem:
    """One defect that :meth:`Store.verify` found, and the record that has it."""

    key: str
    message: str


class Store:
    """A directory of records and artefacts.

    ``records/ab/<key>.json`` is the truth; ``objects/ab/<sha256>.safetensors|npz`` are the artefacts that records name;
    ``failed/<key>.json`` holds why a job failed last; ``claims/<key>`` says which process computes it now; ``submitted/<key>``
    marks the records of submissions, so that they are found without reading all.

    Args:
        path: The directory; it is made when it is first written to.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._root = str(self.path)  # joined as text where there are many
        self._shared: dict[Any, Any] = {}
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is a file, but a store is a directory; choose another path")
        self._check_format()

    def _check_format(self) -> None:
        stamp = self.path / "store.json"
        if not stamp.exists():
            # another run may be writing its stamp just now
            names = {path.name for path in self.path.glob("*") if path.suffix != ".part"}
            if names and not names & {"store.json", "records"}:
                raise DataError(f"{self.path} is neither a store nor empty; give a store, or a new directory")
            return
        try:
            with open(stamp, "rb", opener=_open) as stream:
                data = stream.read(MAX_STAMP + 1)
            if len(data) > MAX_STAMP:
                raise ValueError(f"more than {MAX_STAMP} bytes")
            found = json.loads(data)["format"]
        except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
            raise DataError(f"{stamp} cannot be read ({str(error)[:80]}); it is not a store of grb") from None
        if found != FORMAT:
            old = isinstance(found, int) and found < FORMAT
            advice = "run the recipes again with a new store" if old else "update grb"
            raise DataError(f"{self.path} has store format {found}, but this version reads {FORMAT}; {advice}")

    def prepare(self) -> None:
        """Make the directory a store; everything that writes calls this first."""
        if not (self.path / "store.json").exists():
            write_atomic(self.path / "store.json", json_bytes({"format": FORMAT}))

    # records

    def record_path(self, key: str) -> Path:
        """Return the path of a record's file, whether it exists or not."""
        return Path(self._record_file(key))

    def _record_file(self, key: str) -> str:
        return f"{self._root}/records/{checked_key(key)[:2]}/{key}.json"

    def has(self, key: str) -> bool:
        """Whether the job of this key is done."""
        return os.path.exists(self._record_file(key))

    def read(self, key: str) -> Record:
        """Read a record; one that is missing, torn, not of this key or not what its kind holds is refused."""
        from grb.pipeline import gate  # a store is opened without what it imports

        record = Record.from_json(self.read_bytes(key), key=key, source=f"{key[:12]} of {self._root}")
        return gate.check_schema(record, self._shared)

    def read_bytes(self, key: str) -> bytes:
        """Read the bytes of a record's file."""
        path = self._record_file(key)
        try:
            return _read_record(path)
        except FileNotFoundError:
            raise DataError(f"no record {key[:12]} in {self.path}; run the recipe that makes it") from None
        except OSError as error:
            raise _unreadable(path, error) from None

    def write(self, record: Record) -> None:
        """Write a record, the last step of a job; one that could not be read again is refused."""
        from grb.pipeline import gate

        data = record.to_json()
        self._keep(gate.check_schema(record), data)

    def _keep(self, record: Record, data: bytes) -> None:
        self.prepare()
        for path in self.artefacts(record):
            try:
                os.utime(path)  # young again, so that nobody takes it for unused before the record is there
            except FileNotFoundError:
                raise IntegrityError(
                    f"artefact {path} of record {record.key[:12]} is missing; run the job again"
                ) from None
            except OSError as error:
                raise _unreadable(path, error) from None
        write_atomic(self.record_path(record.key), data)
        with contextlib.suppress(OSError):  # the record counts
            (self.path / "failed" / f"{record.key}.json").unlink(missing_ok=True)
        if record.job.spec.name == SUBMISSION:
            write_atomic(self.path / "submitted" / record.key, b"")

    def submitted(self) -> Iterator[Record]:
        """Iterate over the records of submissions."""
        return (self.read(name) for name in _names(f"{self._root}/submitted") if is_key(name) and self.has(name))

    def receive(self, key: str, data: bytes, *, trust_code: bool = False, checks: DerivedChecks | None = None) -> None:
        """Keep a record as another store wrote it, after :func:`grb.pipeline.gate.admit`; its artefacts must be here.

        Args:
            key: Key of the record.
            data: Content of its file.
            trust_code: Whether it may name code.
            checks: Checks of what it derives, if it is one of many; its inputs must be here.
        """
        from grb.pipeline import derived, gate

        path = self.record_path(key)
        record = gate.admit(Record.from_json(data, key=key, source=path), trust_code=trust_code)
        artefacts = {name: self.load(record, name) for name in record.objects}
        if contradictions := (checks or derived.DerivedChecks(self.read)).check(record, artefacts):
            raise IntegrityError(f"record {key[:12]} is not kept: {contradictions[0]}")
        self._keep(record, data)

    def contradictions(self, key: str) -> list[str]:
        """Return one sentence for every contradiction between a record, its artefacts and its inputs; see :meth:`verify`."""
        from grb.pipeline.derived import check_derived

        try:
            record = self.read(key)
            return check_derived(record, self.read, {name: self.load(record, name) for name in record.objects})
        except (IntegrityError, DataError) as error:
            return [str(error)]

    def keys(self) -> Iterator[str]:
        """Iterate over the keys of all records, in order."""
        for part in _names(f"{self._root}/records"):
            for name in _names(f"{self._root}/records/{part}"):
                if name.endswith(".json") and is_key(name[:-5]):
                    yield name[:-5]

    def records(self) -> Iterator[Record]:
        """Iterate over all records, in the order of their keys."""
        return map(self.read, self.keys())

    # failures

    def write_failure(self, job: Job, message: str, *, kind: str) -> None:
        """Keep the reason why a job failed."""
        self.prepare()
        values = {"key": job.key, "job": job.to_dict(), "kind": kind, "error": message}
        write_atomic(self.path / "failed" / f"{job.key}.json", json_bytes(values))

    def failures(self) -> list[dict[str, Any]]:
        """Return why jobs failed last; a damaged file is left out."""
        found = []
        for path in sorted((self.path / "failed").glob("*.json")):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                if self.has(path.stem):  # done since
                    continue
                values = json.loads(path.read_bytes())
                found.append({name: values[name] for name in ("key", "job", "kind", "error")})
        return found

    # artefacts

    def object_path(self, sha256: str, suffix: str) -> Path:
        """Return the path of an artefact's file, whether it exists or not."""
        if suffix not in SUFFIXES:
            raise DataError(f"an artefact ends in {' or '.join(SUFFIXES)}, not in '{suffix[:20]}'")
        return self.path / "objects" / checked_key(sha256)[:2] / f"{sha256}{suffix}"

    def put(self, data: bytes, suffix: str) -> dict[str, Any]:
        """Keep bytes under their sha256; what is there already is not written again."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.object_path(sha256, suffix)
        if not _refreshed(path, len(data)):
            self.prepare()
            write_atomic(path, data)
        return {"sha256": sha256, "bytes": len(data), "suffix": suffix}

    def take(self, write: Callable[[Path], Any], suffix: str) -> dict[str, Any]:
        """Keep the file that ``write`` makes, synced, at the path it is given; it is moved, not written twice."""
        self.prepare()
        fresh = self.path / "objects" / f"{uuid.uuid4().hex}{suffix}.part"
        try:
            fresh.parent.mkdir(parents=True, exist_ok=True)
            write(fresh)
            data = fresh.read_bytes()
            sha256 = hashlib.sha256(data).hexdigest()
            path = self.object_path(sha256, suffix)
            if not _refreshed(path, len(data)):
                make_directory(path.parent)
                os.replace(fresh, path)
                sync_directory(path.parent)
        except OSError as error:
            raise DataError(f"cannot write into {self.path}: {error.strerror}; choose another location") from None
        finally:
            fresh.unlink(missing_ok=True)
        return {"sha256": sha256, "bytes": len(data), "suffix": suffix}

    def find(self, record: Record, name: str) -> Path:
        """Return the path of an artefact of a record; one that is missing is refused."""
        try:
            entry = record.objects[name]
            path = self.object_path(entry["sha256"], entry["suffix"])
        except (KeyError, TypeError):
            raise IntegrityError(f"record {record.key[:12]} of {self.path} has no artefact '{name}'") from None
        if not path.exists():
            raise IntegrityError(
                f"artefact {path} of record {record.key[:12]} is missing; remove the record, run again"
            )
        return path

    def load(self, record: Record, name: str) -> bytes:
        """Read an artefact of a record, once; bytes of another size or sha256 than the record says are refused."""
        path, entry = self.find(record, name), record.objects[name]
        try:
            with open(path, "rb", buffering=0, opener=_open) as stream:
                # never more than the record says, whatever lies there
                data = stream.read(entry["bytes"] + 1) if os.fstat(stream.fileno()).st_size == entry["bytes"] else b""
        except OSError as error:
            raise _unreadable(path, error) from None
        if (hashlib.sha256(data).hexdigest(), len(data)) != (entry["sha256"], entry["bytes"]):
            raise IntegrityError(
                f"artefact '{name}' of record {record.key[:12]} has other bytes than its name says; remove {path} and "
                "the record, run again"
            )
        return data

    @contextlib.contextmanager
    def checked(self, record: Record, name: str) -> Iterator[Path]:
        """Give the path of a private copy of an artefact: nobody can change what was compared with its sha256."""
        with tempfile.TemporaryDirectory(prefix="grb-store-") as folder:
            copy = Path(folder) / self.find(record, name).name
            copy.write_bytes(self.load(record, name))
            yield copy

    # claims: two runs on one store do not compute the same job, unless one of them is gone

    def claim(self, key: str) -> bool:
        """Claim a job; False if another process has it."""
        path = self.path / "claims" / checked_key(key)
        for _ in range(2):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
                try:
                    os.write(handle, f"{socket.gethostname()} {os.getpid()}".encode())
                except OSError:
                    path.unlink(missing_ok=True)
                    raise
                finally:
                    os.close(handle)
                return True
            except FileExistsError:
                if not is_stale(path):
                    return False
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"cannot write {path}: {error.strerror}; the store must be writable") from None
        return False

    def renew(self, keys: Iterable[str]) -> None:
        """Keep claims fresh: these jobs are still being computed."""
        for key in keys:
            with contextlib.suppress(OSError):
                os.utime(self.path / "claims" / key)

    def release(self, key: str) -> None:
        """Give up a claim, so that others may take the job."""
        with contextlib.suppress(OSError):
            (self.path / "claims" / checked_key(key)).unlink(missing_ok=True)

    # maintenance

    def verify(self, *, on_record: Callable[[Record], object] | None = None) -> list[Problem]:
        """Check every record: its key and hash, its artefacts and inputs, its fields, and what it derives.

        The fields are those of its kind (:func:`grb.pipeline.gate.check_schema`), and nothing may contradict what it was made
        of (:mod:`grb.pipeline.derived`). Nothing that a record names is imported.

        Args:
            on_record: Called with every record that could be read; what it refuses is a problem of that record.
        """
        from grb.pipeline.derived import DerivedChecks

        problems: list[Problem] = []
        keys = list(self.keys())
        known, checks = set(keys), DerivedChecks(self.read)
        for key in keys:
            try:
                record = self.read(key)
                if on_record is not None:
                    on_record(record)
                artefacts = {name: self.load(record, name) for name in record.objects}
                for needed in record.job.needs:
                    if needed not in known:
                        problems.append(_problem(key, f"its input {needed[:12]} is not in the store"))
                problems += [_problem(key, message) for message in checks.check(record, artefacts)]
            except (IntegrityError, DataError) as error:
                problems.append(_problem(key, str(error)))
        problems += [_problem(key, message) for key, message in checks.disagreements()]
        return problems

    def garbage(self, named: Collection[Path] | None = None) -> list[Path]:
        """Return the files that no record names: artefacts of lost jobs, parts of killed writers, stale claims.

        Args:
            named: Artefacts that records name (:meth:`artefacts`), if all records were read already.
        """
        if named is None:
            named = {path for record in self.records() for path in self.artefacts(record)}
        return find_unused(self.path, named)

    def artefacts(self, record: Record) -> list[Path]:
        """Return the paths of all artefacts of a record, whether they exist or not."""
        return [self.object_path(entry["sha256"], entry["suffix"]) for entry in record.objects.values()]


def _problem(key: str, message: str) -> Problem:
    """A problem in one short line, whatever it quotes of the record."""
    return Problem(key, " ".join(message.split())[:MAX_MESSAGE])


def _refreshed(path: Path, size: int) -> bool:
    """Whether a file of this size is there; it counts as new, so that nobody takes it for unused."""
    try:
        os.utime(path)
        return path.stat().st_size == size
    except OSError:
        return False


def _read_record(path: str) -> bytes:
    """The bytes of a file, which may not be larger than a record; a pipe in its place is empty."""
    handle = _open(path)
    try:
        data = os.read(handle, USUAL_RECORD)
        if len(data) < USUAL_RECORD:
            return data
        if os.fstat(handle).st_size > MAX_RECORD:
            raise IntegrityError(f"record {path} is larger than {MAX_RECORD} bytes; it was not written by grb")
        with open(handle, "rb", buffering=0, closefd=False) as stream:
            return data + stream.read(MAX_RECORD)
    finally:
        os.close(handle)


def _names(folder: str) -> list[str]:
    """Names in a directory, sorted; none if there is no such directory."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error) from None


def _unreadable(path: str | Path, error: OSError) -> DataError:
    return DataError(f"{path} cannot be read: {error.strerror}; check the disk, or remove the record and run again")
