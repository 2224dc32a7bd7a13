"""The store: one JSON record per job, artefacts by their sha256, written whole or not at all, by many writers."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import socket
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from grb.errors import DataError, IntegrityError
from grb.graph.files import write_atomic
from grb.pipeline.job import Job
from grb.pipeline.spec import digest

FORMAT = 1
# name of the spec of a job that nobody computed: its artefact was sent
SUBMISSION = "submission"
_KEY = re.compile(r"[0-9a-f]{64}")
_SUFFIXES = (".safetensors", ".npz")
# a claim that nobody has renewed for so long belongs to a process that is gone; a file that no record names yet may be new
STALE_SECONDS = 120.0
# between making a claim and writing into it lie microseconds
EMPTY_SECONDS = 5.0
# larger records were not written by grb
MAX_RECORD = 64 * 2**20


@dataclass(frozen=True)
class Record:
    """What a job gave: its result, its artefacts, and where it comes from."""

    key: str
    job: Job
    result: dict[str, Any]
    objects: dict[str, dict[str, Any]]
    provenance: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "key": self.key,
            "job": self.job.plain(),
            "result": self.result,
            "objects": self.objects,
            "provenance": self.provenance,
        }


@dataclass(frozen=True)
class Problem:
    """One thing that :meth:`Store.verify` found."""

    key: str
    sentence: str


class Store:
    """A directory of records and artefacts.

    ``records/ab/<key>.json`` is the truth; ``objects/ab/<sha256>.safetensors|npz`` are the artefacts that records name;
    ``failed/<key>.json`` tells why a job failed last; ``claims/<key>`` says who computes it now; ``submitted/<key>`` marks
    the records that came from outside, so that they are found without reading all.

    Args:
        path: The directory; made when first written to.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is a file, but a store is a directory; choose another place")
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
            found = json.loads(stamp.read_text())["format"]
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise DataError(f"{stamp} cannot be read ({str(error)[:80]}); it is not a store of grb") from None
        if found != FORMAT:
            raise DataError(f"{self.path} has store format {found}, but this version reads {FORMAT}; update grb")

    def prepare(self) -> None:
        """Make the directory a store; anything that writes does this first."""
        if not (self.path / "store.json").exists():
            _write_json(self.path / "store.json", {"format": FORMAT})

    # records

    def record_path(self, key: str) -> Path:
        return self.path / "records" / _checked_key(key)[:2] / f"{key}.json"

    def has(self, key: str) -> bool:
        return self.record_path(key).exists()

    def read(self, key: str) -> Record:
        """A record; one that is missing, torn or not of this key is refused."""
        path = self.record_path(key)
        try:
            if path.stat().st_size > MAX_RECORD:
                raise IntegrityError(f"record {path} is larger than {MAX_RECORD} bytes; it was not written by grb")
            data = path.read_bytes()
        except FileNotFoundError:
            raise DataError(f"no record {key[:12]} in {self.path}; run the recipe that makes it") from None
        except OSError as error:
            raise _unreadable(path, error) from None
        return _parsed(path, key, data)

    def write(self, record: Record) -> None:
        """Write a record: the last step of a job."""
        self.prepare()
        values = record.plain()
        _write_json(self.record_path(record.key), {**values, "sha256": digest(values)})
        with contextlib.suppress(OSError):  # the record counts
            (self.path / "failed" / f"{record.key}.json").unlink(missing_ok=True)
        if record.job.spec.name == SUBMISSION:
            write_atomic(self.path / "submitted" / record.key, lambda stream: None)

    def submitted(self) -> Iterator[Record]:
        """Records of what others have sent."""
        for path in sorted((self.path / "submitted").glob("*")):
            if _KEY.fullmatch(path.name) and self.has(path.name):
                yield self.read(path.name)

    def receive(self, key: str, data: bytes) -> None:
        """Keep a record as another store wrote it, after the checks of one that is read; its artefacts must be here."""
        path = self.record_path(key)
        record = _parsed(path, key, data)
        for name in record.objects:
            self.checked(record, name)
        self.prepare()
        write_atomic(path, lambda stream: _write(stream, data))

    def keys(self) -> Iterator[str]:
        """Keys of all records, in order."""
        folder = self.path / "records"
        for part in sorted(folder.iterdir()) if folder.is_dir() else []:
            for path in sorted(part.glob("*.json")):
                if _KEY.fullmatch(path.stem):
                    yield path.stem

    def records(self) -> Iterator[Record]:
        return (self.read(key) for key in self.keys())

    # failures

    def write_failure(self, job: Job, sentence: str, *, kind: str) -> None:
        self.prepare()
        _write_json(
            self.path / "failed" / f"{job.key}.json",
            {"key": job.key, "job": job.plain(), "kind": kind, "error": sentence},
        )

    def failures(self) -> list[dict[str, Any]]:
        """Why jobs failed last; a damaged file tells nothing and is left out."""
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
        if suffix not in _SUFFIXES:
            raise DataError(f"an artefact ends in {' or '.join(_SUFFIXES)}, not in '{suffix[:20]}'")
        return self.path / "objects" / _checked_key(sha256)[:2] / f"{sha256}{suffix}"

    def put(self, data: bytes, suffix: str) -> dict[str, Any]:
        """Keep bytes under their sha256; what is there already is not written again."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = self.object_path(sha256, suffix)
        if not _refreshed(path, len(data)):
            self.prepare()
            write_atomic(path, lambda stream: _write(stream, data))
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
                path.parent.mkdir(parents=True, exist_ok=True)
                os.replace(fresh, path)
        except OSError as error:
            raise DataError(f"cannot write into {self.path}: {error.strerror}; choose another place") from None
        finally:
            fresh.unlink(missing_ok=True)
        return {"sha256": sha256, "bytes": len(data), "suffix": suffix}

    def find(self, record: Record, name: str) -> Path:
        """Where an artefact of a record lies."""
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

    def checked(self, record: Record, name: str) -> Path:
        """The same, after a look at its bytes."""
        path = self.find(record, name)
        try:
            data = path.read_bytes()
        except OSError as error:
            raise _unreadable(path, error) from None
        if hashlib.sha256(data).hexdigest() != record.objects[name]["sha256"]:
            raise IntegrityError(
                f"artefact '{name}' of record {record.key[:12]} has other bytes than its name says; remove {path} and "
                "the record, run again"
            )
        return path

    # claims: two runs on one store do not compute the same job, unless one of them is gone

    def claim(self, key: str) -> bool:
        """Take a job; False if somebody else has it."""
        path = self.path / "claims" / _checked_key(key)
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
                if not _stale(path):
                    return False
                path.unlink(missing_ok=True)
            except OSError as error:
                raise DataError(f"cannot write {path}: {error.strerror}; the store must be writable") from None
        return False

    def renew(self, keys: Iterable[str]) -> None:
        """Tell others that these jobs are still being computed."""
        for key in keys:
            with contextlib.suppress(OSError):
                os.utime(self.path / "claims" / key)

    def release(self, key: str) -> None:
        with contextlib.suppress(OSError):
            (self.path / "claims" / _checked_key(key)).unlink(missing_ok=True)

    # house-keeping

    def verify(self, *, on_record: Any = None) -> list[Problem]:
        """Every record readable and of its key, every artefact there with the right bytes, every input present."""
        problems: list[Problem] = []
        known = set(self.keys())
        for key in sorted(known):
            try:
                record = self.read(key)
                for name in record.objects:
                    self.checked(record, name)
                for needed in record.job.needs:
                    if needed not in known:
                        problems.append(Problem(key, f"its input {needed[:12]} is not in the store"))
            except (IntegrityError, DataError) as error:
                problems.append(Problem(key, str(error)))
            if on_record is not None:
                on_record(key)
        return problems

    def garbage(self) -> list[Path]:
        """Files that no record names: artefacts of lost jobs, parts of killed writers, stale claims."""
        named = {
            self.object_path(entry["sha256"], entry["suffix"])
            for record in self.records()
            for entry in record.objects.values()
        }
        now = time.time()
        loose = [path for path in sorted((self.path / "objects").rglob("*")) if path.is_file() and path not in named]
        loose += [path for folder in ("records", "failed") for path in sorted((self.path / folder).rglob("*.part"))]
        claims = [path for path in sorted((self.path / "claims").glob("*")) if _stale(path)]
        # the record of a young artefact may be on its way
        return [path for path in loose if now - _modified(path, now) > STALE_SECONDS] + claims


def _parsed(path: Path, key: str, data: bytes) -> Record:
    try:
        values = json.loads(data, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"record {path} is damaged ({str(error)[:80]}); remove it and run again") from None
    return _record(path, key, values)


def _record(path: Path, key: str, values: Any) -> Record:
    try:
        job = Job.from_plain(values["job"])
        record = Record(
            str(values["key"]),
            job,
            dict(values["result"]),
            {str(name): _entry(entry) for name, entry in values["objects"].items()},
            dict(values["provenance"]),
        )
        told = values.get("sha256")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IntegrityError(f"record {path} is damaged ({str(error)[:80]}); remove it and run again") from None
    if record.key != key or job.key != key:
        raise IntegrityError(f"record {path} is of another job than its name says; remove it and run again")
    if told is not None and told != digest(record.plain()):
        raise IntegrityError(f"record {path} was changed after it was written; remove it and run again")
    return record


def _entry(values: Any) -> dict[str, Any]:
    if not (_KEY.fullmatch(values["sha256"]) and values["suffix"] in _SUFFIXES and values["bytes"] >= 0):
        raise ValueError(f"no artefact {str(values)[:40]}")
    return dict(values)


def _refreshed(path: Path, size: int) -> bool:
    """Whether a file of this size is there; it counts as new, so that nobody takes it for garbage."""
    try:
        os.utime(path)
        return path.stat().st_size == size
    except OSError:
        return False


def _modified(path: Path, otherwise: float) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone by now
        return otherwise


def _stale(path: Path) -> bool:
    try:
        age, words = time.time() - path.stat().st_mtime, path.read_text().split()
        if age > STALE_SECONDS or (len(words) != 2 and age > EMPTY_SECONDS):
            return True
        if len(words) != 2 or words[0] != socket.gethostname():  # being written just now, or of another machine
            return False
        if os.name == "nt":  # where no signal only asks
            return False
        os.kill(int(words[1]), 0)
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (ValueError, OverflowError, OSError):  # not ours, or somebody else's process
        return False
    return False


def _unreadable(path: Path, error: OSError) -> DataError:
    return DataError(
        f"{path} cannot be read: {error.strerror}; look after the disk, or remove the record and run again"
    )


def _write_json(path: Path, value: Any) -> None:
    data = (json.dumps(value, sort_keys=True, indent=1, allow_nan=False) + "\n").encode()
    write_atomic(path, lambda stream: _write(stream, data))


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(data)


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:20]} is no finite number")
    return value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _checked_key(key: Any) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise DataError(f"'{str(key)[:70]}' is no key; keys are 64 hexadecimal digits")
    return key
