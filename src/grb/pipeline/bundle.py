"""Bundles: records and their artefacts in one zip file, which another machine verifies before it believes a byte."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from grb.atomic import size_of, write_atomic
from grb.errors import DataError
from grb.graph.files import FREE_BYTES, MAX_RATIO
from grb.pipeline.job import Job
from grb.pipeline.record import FORMAT, MAX_RECORD
from grb.pipeline.store import Store
from grb.pipeline.study import StudyInfo, closure

_NAME = re.compile(
    r"store\.json|records/[0-9a-f]{2}/[0-9a-f]{64}\.json|objects/[0-9a-f]{2}/[0-9a-f]{64}\.(npz|safetensors)"
)
MAX_BYTES = 16 * 2**30
_DATE = (1980, 1, 1, 0, 0, 0)


def pack(store: Store, path: str | Path, keys: Iterable[str] | None = None) -> int:
    """Write records with all that they need into one file; the same records give the same bytes.

    Args:
        store: The store with the records.
        path: The file to write.
        keys: Keys of the records; all of them if not given.

    Returns:
        Number of records in the file.
    """
    jobs: dict[str, Job] = {record.key: record.job for record in store.records()}
    chosen = sorted(jobs if keys is None else set(closure(jobs, keys)))
    if not chosen:
        raise DataError(f"{store.path} has no records to put into a bundle; run a recipe first")

    def write(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            _add(archive, "store.json", json.dumps({"format": FORMAT}).encode())
            written: set[str] = set()
            for key in chosen:
                record = store.read(key)
                _add(archive, f"records/{key[:2]}/{key}.json", store.record_path(key).read_bytes())
                for name in record.objects:
                    source = store.checked(record, name)
                    inside = source.relative_to(store.path).as_posix()
                    if inside not in written:
                        written.add(inside)
                        _add(archive, inside, source.read_bytes())

    write_atomic(path, write)
    return len(chosen)


def study_keys(store: Store, name: str) -> list[str]:
    """Keys of the studies of a name and of their scores, as far as the store has them."""
    found: list[str] = []
    for record in store.records():
        if record.job.kind == "study" and record.job.spec.name == name:
            scores = StudyInfo.from_dict(record.result).scores
            found += [record.key, *(key for key in scores if store.has(key))]
    if not found:
        raise DataError(f"{store.path} has no study '{name}'; `grb leaderboard {store.path}` shows what it has")
    return list(dict.fromkeys(found))


@contextmanager
def opened(path: str | Path) -> Iterator[Store]:
    """Open a bundle as a store in a temporary directory; file names are checked before anything is unpacked."""
    with tempfile.TemporaryDirectory(prefix="grb-bundle-") as folder:
        target = Path(folder) / "store"
        _unpack(Path(path), target)
        yield Store(target)


def merge(source: Store, target: Store, keys: Iterable[str] | None = None) -> int:
    """Copy records and artefacts that the target lacks, artefacts first; how many records. Verify the source before.

    Args:
        source: The store to copy from.
        target: The store to copy to.
        keys: Records to copy, with all that they need; all if None.
    """
    jobs = {record.key: record.job for record in source.records()}
    chosen = sorted(jobs if keys is None else set(closure(jobs, keys)))
    added = 0
    for record in map(source.read, chosen):
        if target.has(record.key):
            continue
        for name, entry in record.objects.items():
            target.put(source.find(record, name).read_bytes(), entry["suffix"])
        target.write(record)
        added += 1
    return added


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    info = zipfile.ZipInfo(name, date_time=_DATE)
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, data)


def _unpack(path: Path, target: Path) -> None:
    try:
        packed = size_of(path)
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            bad = next((info.filename for info in infos if not _NAME.fullmatch(info.filename)), None)
            if bad is not None:
                raise DataError(f"{path} holds '{bad[:80]}', which does not belong into a bundle")
            if len({info.filename for info in infos}) != len(infos):
                raise DataError(f"{path} holds a file twice; get it again")
            total = sum(info.file_size for info in infos)
            if total > MAX_BYTES or (total > FREE_BYTES and total > MAX_RATIO * packed):
                raise DataError(
                    f"{path} expands from {packed} to {total} bytes, but at most {MAX_RATIO}-fold and {MAX_BYTES} are unpacked"
                )
            for info in infos:
                if info.filename.endswith(".json") and info.file_size > MAX_RECORD:
                    raise DataError(
                        f"{path} holds a record of {info.file_size} bytes, but at most {MAX_RECORD} are read"
                    )
                destination = target / info.filename
                destination.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(info) as stream, destination.open("wb") as out:
                    left = info.file_size
                    while left > 0 and (block := stream.read(min(left, 2**20))):
                        out.write(block)
                        left -= len(block)
    except FileNotFoundError:
        raise DataError(f"no bundle {path}; `grb store copy STORE FILE.zip` writes one") from None
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a readable bundle ({str(error)[:80]}); get it again") from None
