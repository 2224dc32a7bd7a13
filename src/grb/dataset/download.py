"""Getting a dataset that is not on this machine: from mirrors over the network, or from a folder or archive that you have.

A dataset appears in the cache, ``$GRB_HOME/data/GRB/<name>``, only when all of its files are complete, have the size and
sha256 that ``presets/mirrors.yaml`` knows, can be read, and have the paper's statistics.
"""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from grb import catalogue
from grb.dataset import registry, storage
from grb.dataset.rebuild import rebuild
from grb.dataset.registry import SOURCES
from grb.dataset.transfer import (
    DownloadError,
    Known,
    Limits,
    Progress,
    Refused,
    Unreachable,
    check_address,
    download,
    host,
)
from grb.errors import DataError, IntegrityError, MissingDataset

log = logging.getLogger(__name__)

NOT_CHECKED = "not checked: no known hash"
MAX_ARCHIVE = 16 * 2**30
# as much as fits on a line or two
SHOWN = 4


@dataclass(frozen=True)
class FileReport:
    """One file of a dataset that was got."""

    file: str
    bytes: int
    sha256: str
    check: str


@dataclass(frozen=True)
class Obtained:
    """What came from where.

    Args:
        name: Name of the dataset.
        path: Its directory; None for an embedded one.
        source: Hosts, a directory, or why nothing had to be got.
        files: What was got; empty if nothing had to be.
    """

    name: str
    path: Path | None
    source: str
    files: tuple[FileReport, ...] = ()


def known(name: str) -> dict[str, Known]:
    """Size and sha256 of the files of a dataset, as far as they are known."""
    table = catalogue.preset("mirrors")["datasets"].get(name, {})
    return {file: Known(table.get(file, {}).get("size"), table.get(file, {}).get("sha256")) for file in registry.FILES}


def mirrors(name: str) -> dict[str, list[str]]:
    """Addresses of the files of a dataset in the order they are tried: ``$GRB_MIRROR``, then those that we know."""
    table = catalogue.preset("mirrors")["datasets"].get(name, {})
    base = os.environ.get("GRB_MIRROR", "").rstrip("/")
    try:
        if base:
            check_address(base)
    except Refused as refused:
        raise DataError(f"GRB_MIRROR is '{base[:80]}', but an https address is needed ({refused})") from None
    own = {file: [f"{base}/{name}/{file}"] if base else [] for file in registry.FILES}
    return {file: own[file] + list(table.get(file, {}).get("urls", [])) for file in registry.FILES}


def get(
    name: str,
    *,
    source: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> Obtained:
    """Make sure that a dataset is on this machine: what ``grb data get`` does.

    Args:
        name: A dataset of the catalogue.
        source: A folder or zip archive to take it from, instead of the network.
        force: Get it again even if it is here.
        progress: Called for every piece that arrives.
        limits: Limits of every download.
    """
    name = catalogue.canonical("dataset", name)
    if name not in registry.EMBEDDED:
        name = registry.FRESH.get(name, name)
    if name in registry.EMBEDDED:
        return Obtained(name, None, "embedded: there is nothing to get")
    if name in SOURCES:
        raise DataError(
            f"dataset '{name}' is read from raw files, which grb does not download. {registry.advice(name)}"
        )
    if not registry.has_files(name):
        raise DataError(f"dataset '{name}' belongs to a plug-in, which gets its files itself")
    if not force:
        try:
            return Obtained(name, registry.find(name), "already here")
        except MissingDataset:
            pass
    if source is not None:
        return install_from(name, source, force=force)
    if name in registry.REBUILT:
        path = rebuild(registry.REBUILT[name], force=force, progress=progress, limits=limits)
        return Obtained(name, path, "rebuilt from its public source under our own split", _reports(name, path))
    return fetch(name, force=force, progress=progress, limits=limits)


def obtain(name: str, missing: MissingDataset) -> Path:
    """The directory of a dataset that was not found, after getting it; otherwise ``missing`` with the reason.

    The archive of all datasets is left out: whoever loads a small one has not asked for gigabytes.
    """
    try:
        if name in registry.REBUILT:  # may need no network: its raw files may be here
            return rebuild(registry.REBUILT[name])
        if registry.offline():
            raise missing.because("GRB_OFFLINE forbids to download it.")
        log.info("%s Downloading it.", missing.what)
        done = fetch(name, archives=False)
    except MissingDataset:
        raise
    except DataError as error:
        why = error.tried if isinstance(error, DownloadError) else str(error)
        raise missing.because(f"Downloading it failed ({why}).") from None
    assert done.path is not None
    return done.path


def fetch(
    name: str,
    *,
    force: bool = False,
    archives: bool = True,
    progress: Progress | None = None,
    limits: Limits | None = None,
) -> Obtained:
    """Download a dataset into the cache.

    Args:
        name: One of those that ``presets/mirrors.yaml`` lists.
        force: Replace what the cache has.
        archives: Also try the archives that hold all datasets; they are large.
        progress: Called for every piece that arrives.
        limits: Limits of every file.
    """
    name = catalogue.canonical("dataset", name)
    if registry.offline():
        raise DownloadError(name, "GRB_OFFLINE forbids the network")
    limits = limits or Limits()
    tried: list[str] = []
    with storage.staged(name, force=force) as stage:
        hosts = _from_mirrors(name, stage, limits, progress, tried)
        if hosts is None and archives:
            hosts = _from_archives(name, stage, limits, progress, tried)
        if hosts is None:
            raise DownloadError(name, _summary(tried) or "no mirror is known")
        reports = _validated(name, stage)
    return Obtained(name, storage.cache_directory(name), ", ".join(dict.fromkeys(hosts)), reports)


def install_from(name: str, source: str | os.PathLike[str], *, force: bool = False) -> Obtained:
    """Copy a dataset into the cache from a folder (or a root of such, or a zip archive) and check it.

    Raises:
        IntegrityError: If a file is not the published one.
        DataError: If files are missing or broken.
    """
    name = catalogue.canonical("dataset", name)
    source = Path(source).expanduser()
    expected = known(name)
    with storage.staged(name, force=force) as stage:
        for file, stream in _opened(name, source):
            size, digest = _copy(stream, stage / file)
            problem = expected[file].problem(size, digest)
            if problem:
                raise IntegrityError(
                    f"{file} of {source} {problem}, so it is not the listed file; check where it comes from, or load "
                    "the folder as a custom dataset with Dataset.from_npz"
                )
        reports = _validated(name, stage)
    return Obtained(name, storage.cache_directory(name), str(source), reports)


def sha256(path: Path) -> str:
    """The sha256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while piece := stream.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _from_mirrors(
    name: str, stage: Path, limits: Limits, progress: Progress | None, tried: list[str]
) -> list[str] | None:
    """The hosts that gave the files; None as soon as one file cannot be had."""
    expected, dead = known(name), set[str]()
    hosts = []
    for file, urls in mirrors(name).items():
        for url in urls:
            if host(url) in dead:
                continue
            try:
                download(url, stage / file, known=expected[file], limits=limits, progress=progress)
                _check_readable(stage / file, expected[file])
            except Unreachable as refused:
                dead.add(host(url))
                tried.append(f"{host(url)} {refused}")
            except Refused as refused:
                tried.append(f"{host(url)}: {file} {refused}")
            else:
                hosts.append(host(url))
                break
        else:
            return None
    return hosts


def _check_readable(path: Path, expected: Known) -> None:
    """Without a known hash a file can still be seen to be cut or damaged, while there is another mirror to try."""
    if expected.sha256 is not None:
        return
    try:
        with zipfile.ZipFile(path) as archive:
            broken = archive.testzip()
    except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError, ValueError):
        broken = path.name
    if broken is not None:
        path.unlink(missing_ok=True)
        raise Refused("is cut off or damaged")


def _from_archives(
    name: str, stage: Path, limits: Limits, progress: Progress | None, tried: list[str]
) -> list[str] | None:
    archive = stage / "archive.zip"
    for url in catalogue.preset("mirrors")["archives"]:
        try:
            download(url, archive, limits=replace(limits, max_bytes=MAX_ARCHIVE), progress=progress)
            for file, stream in _opened(name, archive):
                _copy(stream, stage / file)
            _check_known(name, stage)
        except Unreachable as refused:
            tried.append(f"{host(url)} {refused}")
        except Refused as refused:
            tried.append(f"{host(url)}: the archive {refused}")
        except DataError as error:
            tried.append(f"{host(url)}: {error}".replace(str(archive), "the archive"))
        else:
            return [host(url)]
        finally:
            archive.unlink(missing_ok=True)
    return None


def _check_known(name: str, directory: Path) -> None:
    for file, expected in known(name).items():
        problem = expected.problem((directory / file).stat().st_size, sha256(directory / file))
        if problem:
            raise Refused(f"has another {file}, which {problem}")


def _opened(name: str, source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The four files of a dataset, open, from a folder or a zip archive."""
    if source.is_file():
        yield from _members(name, source)
        return
    places = [source, source / name, source / "GRB" / name]
    chosen = next((place for place in places if storage.is_complete(place)), None)
    if chosen is None:
        nearest = max(places, key=lambda place: sum((place / file).is_file() for file in registry.FILES))
        lacking = [file for file in registry.FILES if not (nearest / file).is_file()]
        raise DataError(f"{nearest} lacks {', '.join(lacking)} of dataset '{name}'; name a folder that has all of them")
    for file in registry.FILES:
        with _readable(chosen / file) as stream:
            yield file, stream


def _readable(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def _members(name: str, source: Path) -> Iterator[tuple[str, IO[bytes]]]:
    try:
        with zipfile.ZipFile(source) as archive:
            for file in registry.FILES:
                found = [info for info in archive.infolist() if f"/{info.filename}".endswith(f"/{name}/{file}")]
                if len(found) != 1:
                    raise DataError(f"{source} holds {len(found)} files {name}/{file}, but one is needed")
                with archive.open(found[0]) as stream:
                    yield file, stream
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise DataError(f"{source} is neither a folder nor a sound zip archive ({str(error)[:80]})") from None


def _copy(stream: IO[bytes], target: Path) -> tuple[int, str]:
    """Copy to a file that is synced; its size and sha256."""
    size, digest, limit = 0, hashlib.sha256(), Limits().max_bytes
    with target.open("wb") as copy:
        while piece := _piece(stream, target.name):
            size += len(piece)
            if size > limit:
                raise DataError(f"{target.name} has more than {limit} bytes")
            digest.update(piece)
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())
    return size, digest.hexdigest()


def _piece(stream: IO[bytes], file: str) -> bytes:
    try:
        return stream.read(1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise DataError(f"{file} is damaged in the archive ({str(error)[:80]})") from None


def _validated(name: str, stage: Path) -> tuple[FileReport, ...]:
    try:
        storage.check_directory(name, stage)
    except DataError as error:
        raise DataError(str(error).replace(f"{stage}{os.sep}", "")) from None
    return _reports(name, stage)


def _reports(name: str, directory: Path) -> tuple[FileReport, ...]:
    def report(file: str, expected: Known) -> FileReport:
        path = directory / file
        check = NOT_CHECKED if expected.sha256 is None else "sha256 as listed"
        return FileReport(file, path.stat().st_size, sha256(path), check)

    return tuple(report(file, expected) for file, expected in known(name).items())


def _summary(tried: list[str]) -> str:
    several = dict.fromkeys(tried)
    shown = list(several)[:SHOWN]
    return "; ".join(shown) + (f"; and {len(several) - SHOWN} more" if len(several) > SHOWN else "")
