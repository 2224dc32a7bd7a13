from __future__ import annotations

import os
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
