from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import IO

import pytest

from grb.atomic import write_atomic
from grb.errors import DataError


def test_bytes_and_what_a_function_writes_appear_at_the_path(tmp_path: Path) -> None:
    assert write_atomic(tmp_path / "new" / "x.bin", b"bytes").read_bytes() == b"bytes"
    assert write_atomic(tmp_path / "new" / "x.bin", lambda stream: stream.write(b"other")).read_bytes() == b"other"


def test_write_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")

    def fail(stream: IO[bytes]) -> None:
        stream.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomic(path, fail)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x.bin"]

    def full(stream: IO[bytes]) -> None:
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match="No space left"):
        write_atomic(path, full)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["x.bin"]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which directory a handle is of")
def test_the_name_is_synced_after_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file whose directory is not synced can be gone after a power cut, and so can a directory that was made for it."""
    synced: list[tuple[bool, set[str]]] = []
    paths: list[Path] = []

    def fsync(handle: int) -> None:
        is_directory = stat.S_ISDIR(os.fstat(handle).st_mode)
        where = Path(os.readlink(f"/proc/self/fd/{handle}"))
        paths.append(where if is_directory else where.parent)
        synced.append((is_directory, set(os.listdir(paths[-1]))))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "a" / "b" / "x.bin", b"bytes")
    assert [each for each, _ in synced] == [True, True, False, True]
    assert set(paths[:2]) == {tmp_path, tmp_path / "a"}
    assert synced[-1][1] == {"x.bin"} and paths[-1] == tmp_path / "a" / "b"
