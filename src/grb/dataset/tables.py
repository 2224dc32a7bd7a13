"""Tables of text (CSV, TSV, also gzipped), read in columns; a row that cannot be read is named by its line."""

from __future__ import annotations

import csv
import gc
import gzip
import itertools
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from grb.errors import DataError

Array = np.ndarray[Any, Any]
# cells read at once: enough to be fast, little enough to hold
CELLS = 400_000
LONGEST_LINE = 2**24
DELIMITERS = ("\t", ",", ";", "|")
# common spellings of a missing value; "nan" is a number already
MISSING = ("", "na", "n/a", "null", "none", "nan", "?")


@dataclass(frozen=True)
class Table:
    """How a text file is laid out.

    Args:
        path: The file; ``.gz`` is unpacked.
        delimiter: Between cells; a space stands for any white space.
        header: Names of the columns in lower case, or None.
        start: Lines before the first row: comments (``#`` or ``%``) and the header.
        width: Cells of a row.
    """

    path: Path
    delimiter: str
    header: tuple[str, ...] | None
    start: int
    width: int

    def column(self, names: Collection[str]) -> int | None:
        """The column that has one of these names; None without it or without a header."""
        found = [at for at, name in enumerate(self.header or ()) if name in names]
        if len(found) > 1:
            one, other = (self.header or ())[found[0]], (self.header or ())[found[1]]
            raise DataError(f"{self.path} has columns '{one}' and '{other}', which mean the same; leave one out")
        return found[0] if found else None

    def chunks(self) -> Iterator[list[list[str]]]:
        """The rows, many at once and all of the same width; blank lines are left out."""
        size = max(1, CELLS // self.width)
        with _reader(self) as reader, _no_collection():
            while batch := list(itertools.islice(reader, size)):
                rows = [row for row in batch if row]
                if set(map(len, rows)) - {self.width}:
                    self.blame(self._raggedness)
                if rows:
                    yield rows

    def blame(self, fault: Callable[[list[str]], str | None]) -> None:
        """Raise for the first row in which ``fault`` finds one, with its line; the file is read again for it."""
        with _reader(self) as reader:
            for row in reader:
                problem = fault(row) if row else None
                if problem:
                    raise DataError(f"line {reader.line_num + self.start} of {self.path} {problem}")

    def _raggedness(self, row: list[str]) -> str | None:
        if len(row) == self.width:
            return None
        return f"has {len(row)} column{'s' * (len(row) != 1)}, but {self.width} are needed as in the first one"


def describe(path: Path, known: Collection[str], *, header: bool | None = None) -> Table:
    """Look at the first lines of a file.

    Args:
        path: A text file.
        known: Names of columns; a first line that has one of them is a header.
        header: Whether there is one; guessed if None: also a line without a number above a line with one.
    """
    with _text(path) as stream:
        lines = ((number, line) for number, line in enumerate(_short_lines(stream, path)) if line.strip())
        first_lines = list(itertools.islice(lines, 1000))
    rows = list(itertools.dropwhile(lambda each: each[1].lstrip().startswith(("#", "%")), first_lines))
    if not rows:
        raise DataError(f"{path} has no rows; one line per row is needed")
    first = rows[0][1]
    delimiter = next((each for each in DELIMITERS if each in first), " ")
    heads = [_cells(line, delimiter) for _, line in rows[:2]]
    if header is None:
        header = _is_header(heads, known)
    if header and len(rows) < 2:
        raise DataError(f"{path} has a header and no rows; one line per row is needed")
    start = rows[0][0] + int(header)
    names = tuple(cell.strip().lower() for cell in heads[0]) if header else None
    return Table(path, delimiter, names, start, len(heads[0]))


def _short_lines(stream: IO[str], path: Path) -> Iterator[str]:
    """Lines of a limited length: a file of one endless line is not read into memory."""
    number = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise DataError(f"line {number} of {path} has more than {LONGEST_LINE} characters; it is no table of rows")
        yield line


def _is_header(heads: Sequence[Sequence[str]], known: Collection[str]) -> bool:
    numbers = [any(is_number(cell) for cell in row) for row in heads]
    if not numbers[0] and any(cell.strip().lower() in known for cell in heads[0]):
        return True
    return len(heads) == 2 and numbers == [False, True]


def is_number(cell: str) -> bool:
    """Whether a cell is a number, NaN included.

    >>> is_number(" 1e-3"), is_number("nan"), is_number("u17")
    (True, True, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return True


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing value.

    >>> is_missing(" NA "), is_missing("0")
    (True, False)
    """
    return cell.strip().lower() in MISSING


def fast(table: Table, columns: Sequence[int] | None, dtype: type[np.generic]) -> Array | None:
    """Some columns (all if None) by numpy's own parser, [rows, columns]; None if a cell is no such number."""
    with _text(table.path) as stream:
        for _ in range(table.start):
            next(stream, None)
        delimiter = None if table.delimiter == " " else table.delimiter
        try:
            with warnings.catch_warnings(), np.errstate(over="ignore"):
                warnings.simplefilter("ignore")
                return np.loadtxt(
                    stream, dtype=dtype, delimiter=delimiter, usecols=columns, comments=None, ndmin=2, quotechar='"'
                )
        except UnicodeDecodeError:
            raise
        except ValueError:
            return None


def numbers(table: Table, columns: Sequence[int], what: str) -> Array:
    """Some columns as float32, [rows, columns]; missing cells are NaN, text is refused with its line."""
    if not columns:
        return np.zeros((sum(map(len, table.chunks())), 0), dtype=np.float32)
    found = fast(table, columns, np.float32)
    if found is not None:
        return found
    return np.concatenate([_parsed(table, rows, columns, what) for rows in table.chunks()])


def _parsed(table: Table, rows: list[list[str]], columns: Sequence[int], what: str) -> Array:
    cells = np.char.lower(np.char.strip(np.array([[row[column] for column in columns] for row in rows])))
    try:
        with np.errstate(over="ignore"):
            return np.where(np.isin(cells, MISSING), "nan", cells).astype(np.float32)
    except ValueError:
        table.blame(lambda row: _no_number(table, row, columns, what))
        raise


def _no_number(table: Table, row: list[str], columns: Sequence[int], what: str) -> str | None:
    for column in columns:
        if not is_missing(row[column]) and not is_number(row[column]):
            name = f"'{table.header[column]}'" if table.header else str(column + 1)
            return f"has '{shorten(row[column])}' in column {name}, but {what} are numbers"
    return None


def shorten(cell: str) -> str:
    """A cell, cut if it is too long for a sentence."""
    cell = cell.strip()
    return cell if len(cell) <= 40 else cell[:37] + "..."


def _cells(line: str, delimiter: str) -> list[str]:
    text = " ".join(line.split()) if delimiter == " " else line.strip("\r\n")
    try:
        return next(csv.reader([text], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return [text]


@contextmanager
def _text(path: Path) -> Iterator[IO[str]]:
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is no UTF-8 text (byte {error.start} of a block); save it as UTF-8") from None
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({str(error)[:80]}); get it again") from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without looking for garbage: millions of rows hold no cycles, and looking for some takes longer than reading them."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def _reader(table: Table) -> Iterator[Any]:
    with _text(table.path) as stream:
        for _ in range(table.start):
            next(stream, None)
        lines = (" ".join(line.split()) for line in stream) if table.delimiter == " " else stream
        reader = csv.reader(lines, delimiter=table.delimiter, skipinitialspace=True, strict=True)
        try:
            yield reader
        except csv.Error as error:
            raise DataError(f"line {reader.line_num + table.start} of {table.path} is no CSV ({error})") from None
