"""Reading and writing npz files that may come from anywhere.

A reader here never unpickles, looks at the declared sizes before it allocates, and answers every
broken file with one sentence. A writer never leaves a half-written file (:mod:`grb.atomic`).
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np

from grb.atomic import size_of, write_atomic
from grb.errors import DataError

MAX_BYTES = 8 * 2**30
MAX_RATIO = 200
# a file below this size may expand by any ratio: constant arrays of small graphs compress very well
FREE_BYTES = 64 * 2**20
# the largest expansion of an edit: with what is counted beside it, it takes less than ten times its file
MAX_EDIT_RATIO, FREE_EDIT_BYTES = 4, 2 * 2**20
# size of a zip file's end record, which is the last thing in an npz file
_END_BYTES = 22
# arrays up to this size are read at once
SMALL_BYTES = 2**20
# how an entry of a zip file's directory begins; with its name and content it takes more bytes than this
ZIP_ENTRY = b"PK\1\2"
FREE_ENTRIES, ENTRY_BYTES = 1000, 256


def read_npz(
    path: str | os.PathLike[str],
    *,
    required: Iterable[str] = (),
    allowed: Iterable[str] | None = None,
    max_bytes: int = MAX_BYTES,
    max_ratio: int = MAX_RATIO,
    free_bytes: int = FREE_BYTES,
    data: bytes | None = None,
    only: Iterable[str] | None = None,
) -> dict[str, np.ndarray[Any, Any]]:
    """All arrays of an npz file, none of them an object array.

    Args:
        path: The file.
        required: Names that must be present.
        allowed: If given, any other name is refused.
        max_bytes: Refuse a file whose arrays declare more than this in total.
        max_ratio: Refuse a file whose arrays are more than this number of times larger than it, beyond ``free_bytes``.
        free_bytes: Arrays of up to this number of bytes are read from a file of any size.
        data: Content of the file if it has been read already; the file itself is not opened then.
        only: If given, no other array is looked at; files of others hold object arrays beside those that matter.
    """
    path = Path(path)
    required = list(required)
    try:
        packed = size_of(path) if data is None else len(data)
        if data is not None and data.count(ZIP_ENTRY) > FREE_ENTRIES + packed // ENTRY_BYTES:
            raise DataError(f"{path} holds {data.count(ZIP_ENTRY)} arrays in {packed} bytes, which no file of grb does")
        with path.open("rb") if data is None else io.BytesIO(data) as stream, zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
            _check_ends(path, archive, stream)
            _check_sizes(path, infos, packed, max_bytes, max_ratio, free_bytes)
            names = [info.filename.removesuffix(".npy") for info in infos]
            _check_names(path, names, required, allowed)
            wanted = set(names if only is None else only)
            return {
                name: _read_array(path, archive, info)
                for name, info in zip(names, infos, strict=True)
                if name in wanted
            }
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"no file {path}; check the path") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a directory, but an npz file is needed") from None
    except PermissionError:
        raise DataError(f"{path} cannot be read: permission denied") from None
    except zipfile.BadZipFile:
        with path.open("rb") if data is None else io.BytesIO(data) as stream:
            head = stream.read(512)
        raise DataError(f"{path} is not an npz file ({_looks_like(head)}); get it again or check the path") from None
    except (EOFError, OSError, NotImplementedError, RuntimeError, ValueError, zlib.error, struct.error) as error:
        raise DataError(f"{path} is damaged ({str(error)[:100]}); get it again") from None


def _check_ends(path: Path, archive: zipfile.ZipFile, stream: IO[bytes]) -> None:
    """zipfile reads over bytes in front of and behind an archive; a file that carries any is not what was published."""
    start = min((info.header_offset for info in archive.infolist()), default=archive.start_dir)
    stream.seek(-_END_BYTES, os.SEEK_END)
    tail = stream.read(4)
    if start != 0 or tail != b"PK\5\6":
        raise DataError(f"{path} has other bytes in front of or behind its arrays; get it again")


def _check_sizes(
    path: Path, infos: list[zipfile.ZipInfo], size: int, max_bytes: int, max_ratio: int, free_bytes: int
) -> None:
    total = sum(info.file_size for info in infos)
    packed = min(sum(info.compress_size for info in infos), size)  # entries may claim the same bytes
    if total > max_bytes:
        raise DataError(f"{path} declares {total} bytes, but at most {max_bytes} are read")
    if total > free_bytes and total > max_ratio * max(packed, 1):
        raise DataError(
            f"{path} expands {total // max(packed, 1)}-fold, but at most {max_ratio}-fold is read; "
            "numpy.savez writes arrays as they are"
        )


def _check_names(path: Path, names: list[str], required: list[str], allowed: Iterable[str] | None) -> None:
    if len(set(names)) != len(names):
        raise DataError(f"{path} holds an array twice")
    missing = [name for name in required if name not in names]
    if missing:
        raise DataError(f"{path} has no array '{missing[0]}'; it holds {', '.join(sorted(names)[:8]) or 'nothing'}")
    if allowed is not None:
        extra = sorted(set(names) - set(allowed))
        if extra:
            raise DataError(
                f"{path} has an unexpected array '{extra[0][:60]}'; allowed are {', '.join(sorted(allowed))}"
            )


def _read_array(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray[Any, Any]:
    try:
        with archive.open(info) as stream:
            if info.file_size <= SMALL_BYTES:
                return _small_array(path, info, stream.read())
            _check_header(path, info, stream)
        with archive.open(info) as stream:
            return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    except (ValueError, TypeError, SyntaxError, OverflowError, MemoryError, TokenError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"array '{info.filename[:60]}' of {path} cannot be read ({str(error)[:100]})") from None


def _small_array(path: Path, info: zipfile.ZipInfo, data: bytes) -> np.ndarray[Any, Any]:
    """An array that was read at once; parsing its header takes longer than all else, and headers of edits repeat."""
    start = 10 + int.from_bytes(data[8:10], "little")
    if data[6:8] != b"\x01\x00" or start > len(data):
        stream = io.BytesIO(data)
        _check_header(path, info, stream)
        stream.seek(0)
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    shape, fortran, dtype = _parsed_header(data[:start])
    _check_shape(path, info, shape, dtype, len(data) - start)
    values = np.ndarray(shape, dtype, bytearray(data), start, order="F" if fortran else "C")
    return values if values.flags.aligned else values.copy()


@lru_cache(maxsize=256)
def _parsed_header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    stream = io.BytesIO(header)
    np.lib.format.read_magic(stream)
    return np.lib.format.read_array_header_1_0(stream)


def _check_header(path: Path, info: zipfile.ZipInfo, stream: IO[bytes]) -> None:
    """The header's shape must say exactly the bytes that follow it, so that a huge shape allocates nothing."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    _check_shape(path, info, shape, dtype, info.file_size - stream.tell())


def _check_shape(path: Path, info: zipfile.ZipInfo, shape: tuple[int, ...], dtype: np.dtype[Any], held: int) -> None:
    if dtype.hasobject:
        raise DataError(f"array '{info.filename[:60]}' of {path} holds Python objects; only plain numbers are read")
    count = 1
    for size in shape:
        count *= int(size)
    if min(shape, default=0) < 0 or not dtype.itemsize or count * dtype.itemsize != held:
        raise DataError(
            f"array '{info.filename[:60]}' of {path} declares shape {shape} of {dtype}, but holds {held} bytes"
        )


def _looks_like(head: bytes) -> str:
    head = head.lstrip().lower()
    if not head:
        return "it is empty"
    if head.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return "it is a web page"
    if head.startswith(b"\x80"):
        return "it looks like a pickle, which is never loaded"
    return "its zip directory is missing or cut off"


def write_npz(
    path: str | os.PathLike[str], arrays: Mapping[str, np.ndarray[Any, Any]], *, free_bytes: int | None = None
) -> Path:
    """Write arrays to an npz file, byte for byte the same for the same arrays.

    Args:
        path: The file.
        arrays: Arrays by name.
        free_bytes: If the arrays have more bytes in all, they are written as they are, so that a reader can tell from the
            size of the file what it takes; None deflates arrays of any size.
    """
    plain = free_bytes is not None and sum(np.asarray(array).nbytes for array in arrays.values()) > free_bytes

    def write(stream: IO[bytes]) -> None:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in arrays.items():
                # a fixed date, because the bytes are hashed
                info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
                info.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
                with archive.open(info, "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)

    return write_atomic(path, write)
