"""Files that may come from anywhere: hostile ones are refused with one sentence, nothing of them is run."""

from __future__ import annotations

import io
import os
import pickle
import random
import resource
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grb.errors import DataError
from grb.graph.files import read_npz, write_npz
from helpers import needs_pipes, within

ARRAYS = {"a": np.arange(6).reshape(2, 3), "b": np.array([0.5, -1.0], dtype=np.float32)}


def npy(array: np.ndarray, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    raw = text.encode("latin1")
    raw += b" " * (-(len(raw) + 11) % 64) + b"\n"
    size = struct.pack("<H" if version == (1, 0) else "<I", len(raw))
    return b"\x93NUMPY" + bytes(version) + size + raw


def zipped(members: dict[str, bytes], *, compress: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compress) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


def refused(path: Path, words: str, **options: Any) -> str:
    with pytest.raises(DataError, match=words) as refusal:
        read_npz(path, **options)
    sentence = str(refusal.value)
    assert "\n" not in sentence and str(path) in sentence and len(sentence) < 500
    return sentence


class Canary:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.path),)


def test_round_trip(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "deep" / "er" / "x.npz", ARRAYS)
    for seen in (read_npz(path), dict(np.load(path, allow_pickle=False))):
        assert seen.keys() == ARRAYS.keys()
        for name, array in ARRAYS.items():
            assert seen[name].dtype == array.dtype and np.array_equal(seen[name], array)


@pytest.mark.parametrize(
    "array",
    [
        np.float64(3.5),
        np.zeros((0, 4)),
        np.zeros((3, 0, 2)),
        np.ones((3, 2), order="F"),
        np.arange(10)[::3],
        np.array([True, False]),
        np.arange(3, dtype=">i8"),
        np.array([], dtype=np.int8),
        np.array(["ab", "c"]),
    ],
)
def test_every_plain_array_survives(array: Any, tmp_path: Path) -> None:
    seen = read_npz(write_npz(tmp_path / "x.npz", {"x": array}))["x"]
    assert seen.shape == np.shape(array) and np.array_equal(seen, array)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(save: Any, tmp_path: Path) -> None:
    save(tmp_path / "x.npz", **ARRAYS)
    assert np.array_equal(read_npz(tmp_path / "x.npz")["a"], ARRAYS["a"])


def test_same_arrays_same_bytes(tmp_path: Path) -> None:
    one, two = write_npz(tmp_path / "1.npz", ARRAYS), write_npz(tmp_path / "2.npz", ARRAYS)
    assert one.read_bytes() == two.read_bytes()


NOT_NPZ: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "it is empty"),
    "web page": (b"<!DOCTYPE html><html><body>404</body></html>", "it is a web page"),
    "web page after white space": (b"\n\n  <html lang='en'>", "it is a web page"),
    "pickle": (pickle.dumps({"a": 1}), "pickle, which is never loaded"),
    "text": (b"a,b\n1,2\n", "not an npz"),
    "one npy": (npy(np.ones(3)), "not an npz"),
    "noise": (random.Random(0).randbytes(4096), "not an npz"),
    "gzip": (b"\x1f\x8b\x08\x00" + b"\x00" * 50, "not an npz"),
}


@pytest.mark.parametrize("kind", NOT_NPZ)
def test_other_files_are_refused_by_what_they_are(kind: str, tmp_path: Path) -> None:
    data, words = NOT_NPZ[kind]
    path = tmp_path / "x.npz"
    path.write_bytes(data)
    refused(path, words)


def test_missing_file_directory_and_path_below_a_file(tmp_path: Path) -> None:
    refused(tmp_path / "absent.npz", "no file")
    refused(tmp_path, "is a directory")
    below = tmp_path / "file"
    below.write_text("x")
    refused(below / "x.npz", "damaged")


@needs_pipes
def test_pipes_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.npz")
    with within(5):
        refused(tmp_path / "x.npz", "a regular file is needed")
        refused(Path("/dev/zero"), "a regular file is needed")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", ARRAYS)
    path.chmod(0)
    refused(path, "permission")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    data = write_npz(tmp_path / "x.npz", ARRAYS).read_bytes()
    path = tmp_path / "cut.npz"
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        refused(path, "cut.npz")
    path.write_bytes(data[:-1])
    refused(path, "cut.npz")


@pytest.mark.parametrize("extra", [b"x", b"\x00" * 100, b"<html>", b"PK\x05\x06"])
def test_junk_before_or_behind_is_refused(extra: bytes, tmp_path: Path) -> None:
    data = write_npz(tmp_path / "x.npz", ARRAYS).read_bytes()
    path = tmp_path / "junk.npz"
    for both in (data + extra, extra + data):
        path.write_bytes(both)
        refused(path, "junk.npz")


def test_junk_inside_an_array_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    path.write_bytes(zipped({"a.npy": npy(np.ones(3)) + b"more"}))
    refused(path, "declares shape")


def test_object_arrays_are_refused_and_nothing_is_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    array = np.array([Canary(canary)], dtype=object)
    path = tmp_path / "x.npz"
    np.savez(path, a=array, allow_pickle=True)
    refused(path, "Python objects")
    nested = np.zeros(1, dtype=[("x", "f4"), ("y", "O")])
    nested["y"][0] = Canary(canary)
    path.write_bytes(zipped({"a.npy": npy(nested, allow_pickle=True)}))
    refused(path, "Python objects")
    path.write_bytes(zipped({"a.npy": pickle.dumps(Canary(canary)), "a.pkl": pickle.dumps(Canary(canary))}))
    refused(path, "cannot be read")
    assert not canary.exists()


def test_writer_refuses_object_arrays_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        write_npz(tmp_path / "x.npz", {"a": np.array([None])})
    assert os.listdir(tmp_path) == []


def test_missing_extra_and_double_arrays(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", ARRAYS)
    assert "it holds a, b" in refused(path, "no array 'c'", required=["a", "c"])
    assert "allowed are a" in refused(path, "unexpected array 'b'", allowed=["a"])
    with pytest.warns(UserWarning, match="Duplicate"):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            archive.writestr("a.npy", npy(np.ones(1)))
            archive.writestr("a.npy", npy(np.zeros(1)))
    path.write_bytes(stream.getvalue())
    refused(path, "twice")
    path.write_bytes(zipped({"a": npy(np.ones(1)), "a.npy": npy(np.ones(1))}))
    refused(path, "twice")
    path.write_bytes(zipped({}))
    refused(path, "it holds nothing", required=["a"])


HEADERS: dict[str, str] = {
    "10^9 rows": "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000,), }",
    "overflowing shape": "{'descr': '<i8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    "shape beyond 64 bits": "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000000000000000000,), }",
    "negative shape": "{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }",
    "two negative sizes": "{'descr': '<i8', 'fortran_order': False, 'shape': (-1, -2), }",
    "float shape": "{'descr': '<i8', 'fortran_order': False, 'shape': (2.0,), }",
    "text shape": "{'descr': '<i8', 'fortran_order': False, 'shape': 'ab', }",
    "huge items": "{'descr': '|S1000000000', 'fortran_order': False, 'shape': (2,), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
    "unknown type": "{'descr': 'nonsense', 'fortran_order': False, 'shape': (2,), }",
    "not a dictionary": "[1, 2, 3]",
    "code": "__import__('os').mkdir('canary')",
    "open bracket": "{'descr': '<i8', 'shape': (((((",
    "unclosed text": "{'descr': '<i8",
    "nested without end": "(" * 5000,
    "missing key": "{'descr': '<i8', 'shape': (2,), }",
    "unknown key": "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), 'x': 1}",
    "empty": "",
}


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0), (9, 9)])
@pytest.mark.parametrize("kind", HEADERS)
def test_hostile_array_headers_are_refused(
    kind: str, version: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.npz"
    path.write_bytes(zipped({"a.npy": header(HEADERS[kind], version) + bytes(16)}))
    refused(path, "x.npz")
    assert not (tmp_path / "canary").exists()


def test_items_without_size_cannot_declare_a_huge_array(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for kind in ("|V0", "|S0", "<U0"):
        text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': (1000000000000,), }}"
        path.write_bytes(zipped({"a.npy": header(text)}))
        refused(path, "x.npz")


def test_bombs_are_refused_before_they_expand(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, a=np.zeros(200_000_000, dtype=np.uint8))
    assert path.stat().st_size < 300_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(path, "expands .*-fold, but at most 200-fold")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # KiB
    path = write_npz(tmp_path / "large.npz", {"a": np.zeros(1000)})
    refused(path, "declares 8128 bytes, but at most 5000", max_bytes=5000)


def test_small_constant_arrays_may_compress_well(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "x.npz", {"a": np.zeros((1000, 1000), dtype=np.float32)})
    assert path.stat().st_size * 200 < 4_000_000
    assert read_npz(path)["a"].shape == (1000, 1000)


def test_directory_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    """An entry that declares 1 KB and expands to 50 MB is read up to what it declares."""
    data = bytearray(zipped({"a.npy": npy(np.zeros(50_000_000, dtype=np.uint8))}))
    central = data.rfind(b"PK\x01\x02")
    data[central + 24 : central + 28] = struct.pack("<I", 1024)
    data[22:26] = struct.pack("<I", 1024)
    path = tmp_path / "x.npz"
    path.write_bytes(data)
    refused(path, "x.npz")


def test_encrypted_and_unknown_compression_are_refused(tmp_path: Path) -> None:
    data = zipped({"a.npy": npy(np.ones(3))})
    central = data.rfind(b"PK\x01\x02")
    path = tmp_path / "x.npz"
    for place, here, value in ((8, 6, 1), (10, 8, 99)):
        broken = bytearray(data)
        broken[central + place : central + place + 2] = struct.pack("<H", value)
        broken[here : here + 2] = struct.pack("<H", value)
        path.write_bytes(broken)
        refused(path, "damaged")


@pytest.mark.parametrize("compress", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
def test_random_damage_is_either_refused_or_harmless(compress: int, tmp_path: Path) -> None:
    """One to three bytes changed at random, 1500 times: a DataError, or plain arrays; nothing else escapes."""
    rng = random.Random(compress)
    good = zipped({f"{name}.npy": npy(array) for name, array in ARRAYS.items()}, compress=compress)
    path = tmp_path / "x.npz"
    refusals = 0
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(data)
        try:
            arrays = read_npz(path)
        except DataError:
            refusals += 1
        else:
            assert all(array.dtype.kind != "O" for array in arrays.values())
    assert refusals > 1000


def test_unwritable_target_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot write"):
        write_npz(tmp_path / "file" / "x.npz", ARRAYS)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="cannot write"):
        write_npz(tmp_path / "folder", ARRAYS)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"] and os.listdir(tmp_path / "folder") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_read_only_directory_leaves_nothing(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(DataError, match="Permission denied"):
            write_npz(tmp_path / "x.npz", ARRAYS)
        assert os.listdir(tmp_path) == []
    finally:
        tmp_path.chmod(0o755)


def test_written_file_has_the_usual_permissions(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = write_npz(tmp_path / "x.npz", ARRAYS)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_names_with_spaces_and_other_alphabets(tmp_path: Path) -> None:
    path = write_npz(tmp_path / "ein Graph" / "граф 图.npz", {"ключ": np.ones(2)})
    assert read_npz(path)["ключ"].tolist() == [1.0, 1.0]
