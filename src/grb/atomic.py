"""Files that appear whole or not at all, whatever happens to the process that writes them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from grb.errors import DataError


def write_atomic(path: str | os.PathLike[str], content: bytes | Callable[[IO[bytes]], object]) -> Path:
    """Write a file beside its target, sync it, rename it and sync the directory: no reader ever sees half of it.

    Args:
        path: The file; its directory is made if it is missing.
        content: The bytes, or a function that writes them to the stream it is given.
    """
    path = Path(path)
    try:
        make_directory(path.parent)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".part")
    except OSError as error:
        raise _cannot_write(path, error) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            if isinstance(content, bytes):
                stream.write(content)
            else:
                content(stream)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, 0o666 & ~umask)
        os.replace(name, path)
        sync_directory(path.parent)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from None
        raise
    return path


def make_directory(path: Path) -> None:
    """Make a directory with its parents, so that none of them is lost when the machine stops."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync_directory(each.parent)


def sync_directory(path: Path) -> None:
    """Write the names in a directory to the disk: a file whose name is lost is lost."""
    if os.name == "nt":  # directories cannot be opened there
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems sync no directories
            os.fsync(handle)
    finally:
        os.close(handle)


def size_of(path: Path) -> int:
    """Bytes of a file that may be read; a pipe or a device, whose reading may never end, is refused."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise DataError(f"{path} is a pipe or a device, but a regular file is needed")
    return found.st_size


def _cannot_write(path: Path, error: OSError) -> DataError:
    return DataError(f"cannot write {path}: {error.strerror}; choose another location")
