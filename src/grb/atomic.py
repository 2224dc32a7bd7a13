"""Files that appear whole or not at all, whatever happens to the process that writes them."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from grb.errors import DataError


def write_atomic(path: str | os.PathLike[str], content: bytes | Callable[[IO[bytes]], object]) -> Path:
    """Write a file beside its target, sync it, and rename it, so that no reader ever sees half of it.

    Args:
        path: The file; its directory is made if it is missing.
        content: The bytes, or a function that writes them to the stream it is given.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
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
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _cannot_write(path, error) from None
        raise
    return path


def size_of(path: Path) -> int:
    """Bytes of a file that may be read; a pipe or a device, whose reading may never end, is refused."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise DataError(f"{path} is a pipe or a device, but a regular file is needed")
    return found.st_size


def _cannot_write(path: Path, error: OSError) -> DataError:
    return DataError(f"cannot write {path}: {error.strerror}; choose another place")
