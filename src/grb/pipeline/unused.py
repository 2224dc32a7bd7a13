"""Files of a store that nobody needs any more: found without following links, removed without taking a job's artefact."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

# a claim that nobody has renewed for so long belongs to a process that is gone; a file that no record names yet may be new
STALE_SECONDS = 120.0
# between making a claim and writing into it lie microseconds
EMPTY_SECONDS = 5.0


def find_unused(root: Path, named: Collection[Path]) -> list[Path]:
    """Return the files of a store that no record names: artefacts of lost jobs, parts of killed writers, stale claims.

    Args:
        root: Directory of the store; whatever lies behind a symbolic link is not its own.
        named: Artefacts that records name.
    """
    loose = [path for path in _files(root / "objects") if path not in named]
    for folder in ("records", "failed", "attestations"):
        loose += _files(root / folder, suffix=".part")
    now = time.time()
    # the record of a young artefact may be on its way
    old = [path for path in loose if now - _modified(path, now) > STALE_SECONDS]
    return old + [path for path in _files(root / "claims") if is_stale(path)]


def remove_unused(paths: Iterable[Path]) -> int:
    """Remove files that :func:`find_unused` found, but none that a writer has taken up since; how many are gone.

    A writer makes its artefacts young before it writes their record. A file is moved away before its age is read once more: the
    writer either came before, then its file is put back, or comes too late, and refuses to write the record.
    """
    count = 0
    for path in paths:
        aside = path.with_name(f"{path.name}.removed.part")
        with suppress(OSError):
            os.replace(path, aside)
            claim, now = path.parent.name == "claims", time.time()
            if is_stale(aside) if claim else now - _modified(aside, now) > STALE_SECONDS:
                aside.unlink()
                count += 1
            else:
                os.replace(aside, path)
    return count


def is_stale(path: Path) -> bool:
    """Whether a claim is that of a process that is gone."""
    try:
        age, owner = time.time() - path.stat().st_mtime, path.read_text().split()
        if age > STALE_SECONDS or (len(owner) != 2 and age > EMPTY_SECONDS):
            return True
        if len(owner) != 2 or owner[0] != socket.gethostname():  # being written just now, or of another machine
            return False
        if os.name == "nt":  # where no signal only asks
            return False
        os.kill(int(owner[1]), 0)
    except (FileNotFoundError, ProcessLookupError):
        return True
    except (ValueError, OverflowError, OSError):  # not ours, or somebody else's process
        return False
    return False


def _files(folder: Path, *, suffix: str = "") -> Iterator[Path]:
    """Regular files below a directory whose names end so, sorted; none if it is a link itself."""
    if folder.is_symlink():
        return
    for place, inside, names in os.walk(folder):  # does not follow links
        inside.sort()
        for name in sorted(name for name in names if name.endswith(suffix)):
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _modified(path: Path, otherwise: float) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # gone by now
        return otherwise
