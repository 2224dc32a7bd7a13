"""Columns of words as numbers: one column of 0 and 1 for every word, named after it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from grb.dataset.tables import Table, is_missing, is_number

Array = np.ndarray[Any, Any]
# more different words are names or sentences, not categories
MOST = 50
# rows that decide whether a column holds words
LOOKED_AT = 1000


def split_numeric(table: Table, columns: Sequence[int]) -> tuple[list[int], list[list[str]]]:
    """Columns of numbers, and the cells of columns of words.

    A column holds words if no cell of its first rows is a number. With more than :data:`MOST` different words, or nearly as
    many as rows, it is no category; it stays with the numbers, where its first cell is refused with its line.
    """
    first = list(itertools.islice(itertools.chain.from_iterable(table.chunks()), LOOKED_AT))
    words = [at for at in columns if _is_words([row[at] for row in first])]
    if not words:
        return list(columns), []
    cells: dict[int, list[str]] = {at: [] for at in words}
    for rows in table.chunks():
        for at in words:
            cells[at].extend([row[at].strip() for row in rows])
    few = {at: own for at, own in cells.items() if len(set(own)) <= min(MOST, max(2, len(own) // 2))}
    return [at for at in columns if at not in few], [few[at] for at in columns if at in few]


def _is_words(cells: Sequence[str]) -> bool:
    given = [cell for cell in cells if not is_missing(cell)]
    return bool(given) and not any(is_number(cell) for cell in given)


def encode(columns: Sequence[Sequence[Any]], names: Sequence[str]) -> tuple[Array, list[str]]:
    """One column per word, [rows, words], with names such as ``country=DE``; a missing cell is all zero.

    >>> encode([["DE", "FR", "", "DE"]], ["country"])[0].tolist(), encode([["DE", "FR"]], ["country"])[1]
    ([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]], ['country=DE', 'country=FR'])
    """
    parts, titles = [], []
    for name, cells in zip(names, columns, strict=True):
        own = np.array([str(cell).strip() for cell in cells])
        for word in sorted({str(word) for word in own if not is_missing(str(word))}):
            parts.append((own == word).astype(np.float32))
            titles.append(f"{name}={word}")
    rows = len(columns[0]) if columns else 0
    return (np.stack(parts, axis=1) if parts else np.zeros((rows, 0), dtype=np.float32)), titles
