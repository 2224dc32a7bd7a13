"""Bundles: records and their artefacts in one zip file, which another machine verifies before it believes a byte."""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from grb.atomic import size_of, write_atomic
from grb.errors import DataError, IntegrityError
from grb.graph.files import ENTRY_BYTES, FREE_BYTES, FREE_ENTRIES, MAX_RATIO, ZIP_ENTRY
from grb.pipeline import gate
from grb.pipeline.attestation import add_attestation, attestations, read_envelope
from grb.pipeline.derived import DerivedChecks
from grb.pipeline.entry import entry_identity, record_name
from grb.pipeline.job import KINDS
from grb.pipeline.json_memory import FREE_MEMORY, JsonMemory, memory_limit
from grb.pipeline.record import FORMAT, MAX_RECORD, SUBMISSION, Record, checked_key, without_clocks
from grb.pipeline.store import Store
from grb.pipeline.study import StudyInfo, closure

_NAME = re.compile(
    r"store\.json|records/[0-9a-f]{2}/[0-9a-f]{64}\.json|objects/[0-9a-f]{2}/[0-9a-f]{64}\.(npz|safetensors)"
    r"|attestations/[0-9a-f]{64}\.json"
)
MAX_BYTES = 16 * 2**30
# records of ours are deflated to a third; edits and weights are almost as large as before, or else stored as they are
MAX_JSON_RATIO, FREE_JSON = 20, 2**20
MAX_OBJECT_RATIO, FREE_OBJECT = 2, 2**18
# values of all records together, by what JsonMemory counts for them: those of ours are 16 times a bundle without artefacts
MAX_VALUES_RATIO = 24
# an attestation holds its statement once more, as text
ATTESTATION_MEMORY = 10
_BLOCK = 2**18
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
    chosen = _chosen(store, keys)
    if not chosen:
        raise DataError(f"{store.path} has no records to put into a bundle; run a recipe first")

    def write(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            writer = _Writer(archive)
            writer.add("store.json", json.dumps({"format": FORMAT}).encode())
            written: set[str] = set()
            for key in chosen:
                record = store.read(key)
                writer.add(f"records/{key[:2]}/{key}.json", store.record_path(key).read_bytes())
                for name in record.objects:
                    inside = store.find(record, name).relative_to(store.path).as_posix()
                    if inside not in written:
                        written.add(inside)
                        writer.add(inside, store.load(record, name))
            for name, data in attestations(store):
                if read_envelope(data)[1].subjects.keys() <= set(chosen):  # never without the records it vouches for
                    writer.add(f"attestations/{name}.json", data)

    write_atomic(path, write)
    return len(chosen)


def _chosen(store: Store, keys: Iterable[str] | None) -> list[str]:
    """Keys of records with all that they need, in order; all of a store if None."""
    if keys is None:
        return list(store.keys())
    return sorted(set(closure({record.key: record.job for record in store.records()}, keys)))


def study_keys(store: Store, name: str) -> list[str]:
    """Keys of the studies of a name and of their scores and certificates, as far as the store has them."""
    found: list[str] = []
    for record in store.records():
        if record.job.kind == "study" and record.job.spec.name == name:
            measured = StudyInfo.from_dict(record.result).measured
            found += [record.key, *(key for key in measured if store.has(key))]
    if not found:
        raise DataError(f"{store.path} has no study '{name}'; `grb leaderboard {store.path}` shows what it has")
    return list(dict.fromkeys(found))


@contextmanager
def opened(path: str | Path, keys: Iterable[str] | None = None) -> Iterator[Store]:
    """Open a bundle as a store in a temporary directory; file names are checked before anything is unpacked.

    Args:
        path: The bundle.
        keys: Keys of the records to unpack, with all that they need and without attestations; everything if None.
    """
    with tempfile.TemporaryDirectory(prefix="grb-bundle-") as folder:
        target = Path(folder) / "store"
        _unpack(Path(path), target, keys)
        yield Store(target)


def merge(
    source: Store,
    target: Store,
    keys: Iterable[str] | None = None,
    *,
    trust_code: bool = False,
    on_note: Callable[[str], object] = lambda note: None,
) -> int:
    """Copy records, artefacts and attestations that the target lacks, artefacts first, after the source was verified.

    Nothing is copied if :meth:`grb.pipeline.store.Store.verify` finds a problem in the source, or if the two contradict each
    other: the same job with other results, or submissions that readers could not distinguish. Records that differ only in what
    clocks say are kept as the target has them.

    Args:
        source: The store to copy from.
        target: The store to copy to.
        keys: Records to copy, with all that they need; all if None.
        trust_code: Whether records may name code (:func:`grb.pipeline.gate.admit`).
        on_note: Called with a sentence about what was left out.

    Returns:
        Number of records that were copied.
    """
    chosen = _chosen(source, keys)
    kinds: dict[str, int] = {}
    wanted = {key for key in chosen if not target.has(key)}

    def admit(record: Record) -> None:
        if record.key in wanted:
            gate.admit(record, trust_code=trust_code)
            kinds[record.key] = KINDS.index(record.job.kind)

    if problems := source.verify(on_record=admit):
        raise IntegrityError(f"{source.path} is not copied: {problems[0].message} ({len(problems)} problems)")
    kept: set[str] = set()
    conflicts = list(_name_conflicts(source, target, chosen))
    for key in chosen:
        if key not in wanted and source.read_bytes(key) != target.read_bytes(key):
            kept.add(key)
            if (difference := _conflict(source.read(key), target.read(key))) is not None:
                conflicts.append(f"record {key[:12]} {difference}")
    if conflicts:
        listed = "; ".join(conflicts[:SHOWN]) + (
            f"; and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
        )
        raise IntegrityError(
            f"{len(conflicts)} records contradict those of {target.path}: {listed}; nothing was copied, "
            "`grb store verify --record KEY` on either side shows which is right"
        )
    checks = DerivedChecks(target.read)
    for key in sorted(
        kinds, key=kinds.__getitem__
    ):  # inputs first; and once more, because files may have been changed since
        record = source.read(key)
        for name, entry in record.objects.items():
            target.put(source.load(record, name), entry["suffix"])
        target.receive(key, source.read_bytes(key), trust_code=trust_code, checks=checks)
    if kept:
        on_note(f"{len(kept)} records were measured on both sides with equal results; those of {target.path} are kept")
    for name, data in attestations(source):
        subjects = read_envelope(data)[1].subjects
        if keys is not None and not subjects.keys() <= set(chosen):
            on_note(f"attestation {name[:12]} is left out, because some of its records are not copied")
        elif kept.isdisjoint(subjects):
            add_attestation(target, data)
        else:
            on_note(f"attestation {name[:12]} is left out, because some of its records were measured here too")
    return len(kinds)


# conflicts that a refusal names
SHOWN = 5


def _conflict(ours: Record, theirs: Record) -> str | None:
    """What two records of one job disagree about, clocks aside; None if nothing."""
    if {name: each["sha256"] for name, each in ours.objects.items()} != {
        name: each["sha256"] for name, each in theirs.objects.items()
    }:
        return "has other artefacts"
    if without_clocks(ours.measurement) != without_clocks(theirs.measurement):
        return "has another measurement"
    return None if without_clocks(ours.result) == without_clocks(theirs.result) else "has another result"


def _name_conflicts(source: Store, target: Store, keys: Iterable[str]) -> Iterator[str]:
    """Submissions of both sides that readers of one board could not distinguish."""
    there = [record.job for record in target.submitted()]
    for key in keys if there else ():
        job = source.read(key).job
        if job.spec.name != SUBMISSION:
            continue
        for other in there:
            if entry_identity(other) == entry_identity(job) and other.key != job.key:
                if record_name(other) != record_name(job):
                    yield f"'{record_name(job)[:64]}' and '{record_name(other)[:64]}' differ only by case or spaces"
                elif other.version == job.version:
                    yield f"both have another {job.kind} called '{record_name(job)[:64]}', version {job.version}"


@dataclass
class _Writer:
    """Writes the files of a bundle, deflated as far as a reader that looks after its memory takes it.

    Args:
        archive: The file.
        packed: Bytes that its entries take so far.
        values: What the values of its records take so far.
    """

    archive: zipfile.ZipFile
    packed: float = 0.0
    values: int = 0

    def add(self, name: str, data: bytes) -> None:
        """Write one file; the same files in the same order give the same bytes."""
        info = zipfile.ZipInfo(name, date_time=_DATE)
        packed = len(zlib.compress(data, 6)) * 0.95
        deflated = len(data) <= FREE_OBJECT or MAX_OBJECT_RATIO * packed > len(data)
        if name.endswith(".json"):
            count = JsonMemory()
            count.add(data)
            self.values += count.tokens
            # by itself, or because other files leave room: the limit is one of the whole bundle, and holds after every file
            room = self.values <= MAX_VALUES_RATIO * (self.packed + packed) and count.bytes <= FREE_MEMORY
            deflated = deflated and (count.tokens <= MAX_VALUES_RATIO * packed or room)
        self.packed += packed if deflated else len(data)
        info.compress_type = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
        self.archive.writestr(info, data)


def _unpack(path: Path, target: Path, keys: Iterable[str] | None = None) -> None:
    try:
        packed = size_of(path)
        _check_count(path, packed)
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            _check_entries(path, packed, infos)
            chosen = iter(infos) if keys is None else _needed(path, target, infos, keys)
            values = 0
            for info in chosen:
                values += _extract(path, packed, archive, info, target)
                if values > max(FREE_MEMORY, MAX_VALUES_RATIO * packed):
                    raise DataError(
                        f"{path} holds records whose values would take more than {values} bytes of memory, but a bundle of "
                        f"{packed} bytes may take {max(FREE_MEMORY, MAX_VALUES_RATIO * packed)}"
                    )
    except FileNotFoundError:
        raise DataError(f"no bundle {path}; `grb store copy STORE FILE.zip` writes one") from None
    except (zipfile.BadZipFile, zlib.error, OSError, RuntimeError, EOFError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} is not a readable bundle ({str(error)[:80]}); get it again") from None


def _extract(path: Path, packed: int, archive: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> int:
    """Write one file of a bundle, never more of it than its directory says; what its values take, for a record."""
    destination = target / info.filename
    destination.parent.mkdir(parents=True, exist_ok=True)
    count = JsonMemory() if info.filename.endswith(".json") else None
    with archive.open(info) as stream, destination.open("wb") as out:
        left = info.file_size
        while left > 0 and (block := stream.read(min(left, _BLOCK))):
            out.write(block)
            left -= len(block)
            if count is not None:
                count.add(block)
    if count is None:
        return 0
    _check_memory(path, packed, info, count)
    return count.tokens


def _needed(path: Path, target: Path, infos: list[zipfile.ZipInfo], keys: Iterable[str]) -> Iterator[zipfile.ZipInfo]:
    """The files of some records, of all that they need and of their artefacts; a record is read once it was extracted."""
    inside = {info.filename: info for info in infos}

    def entry(name: str, what: str) -> zipfile.ZipInfo:
        if name not in inside:
            raise DataError(f"{path} does not hold {what}; get it again")
        return inside[name]

    yield entry("store.json", "the format of its store")
    store, seen, waiting = Store(target), set[str](), list(keys)
    while waiting:
        key = checked_key(waiting.pop())
        if key in seen:
            continue
        seen.add(key)
        yield entry(f"records/{key[:2]}/{key}.json", f"record {key[:12]}")
        record = store.read(key)
        waiting.extend(record.job.needs)
        for name, each in record.objects.items():
            own = store.object_path(each["sha256"], each["suffix"]).relative_to(store.path).as_posix()
            if own not in seen:
                seen.add(own)
                yield entry(own, f"artefact '{name[:60]}' of record {key[:12]}")


def _check_count(path: Path, packed: int) -> None:
    """Refuse a bundle of very many very small files before its directory is read: every entry takes a kilobyte of memory."""
    count, end = 0, b""
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            count += (end + block).count(ZIP_ENTRY)
            end = block[1 - len(ZIP_ENTRY) :]
    if count > FREE_ENTRIES + packed // ENTRY_BYTES:
        raise DataError(f"{path} holds {count} files in {packed} bytes, which no bundle of grb does")


def _check_entries(path: Path, packed: int, infos: list[zipfile.ZipInfo]) -> None:
    """Refuse names that lead elsewhere, and sizes that no bundle of grb has."""
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
        if not info.filename.endswith(".json"):
            if info.file_size > max(FREE_OBJECT, MAX_OBJECT_RATIO * info.compress_size):
                raise DataError(
                    f"{path} holds an artefact that expands from {info.compress_size} to {info.file_size} bytes, but at "
                    f"most {MAX_OBJECT_RATIO}-fold is read"
                )
            continue
        if info.file_size > MAX_RECORD:
            raise DataError(f"{path} holds a record of {info.file_size} bytes, but at most {MAX_RECORD} are read")
        if info.file_size > max(FREE_JSON, MAX_JSON_RATIO * info.compress_size):
            raise DataError(
                f"{path} holds a record that expands from {info.compress_size} to {info.file_size} bytes, but at most "
                f"{MAX_JSON_RATIO}-fold is read"
            )


def _check_memory(path: Path, packed: int, info: zipfile.ZipInfo, count: JsonMemory) -> None:
    """Refuse a record that would take more memory than ten times the bundle."""
    needed = count.bytes
    if info.filename.startswith("attestations/"):
        needed = max(needed, ATTESTATION_MEMORY * info.file_size)
    if needed > memory_limit(packed):
        raise DataError(
            f"{path} holds a record of {info.file_size} bytes that would take {needed} bytes of memory, but a bundle of "
            f"{packed} bytes may take {memory_limit(packed)}"
        )
