"""Splits by time: a model is trained on what was known first and tested on what came later."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np

from grb.dataset.tables import is_missing, is_number, shorten
from grb.errors import DataError

Array = np.ndarray[Any, Any]
# fractions of the nodes, earliest first
TRAIN, VAL = 0.6, 0.1


def as_times(cells: Sequence[Any], name: str) -> Array:
    """Numbers from a column of numbers or ISO dates, [n]; NaN where a cell is missing.

    >>> as_times(["2024-01-02", "2024-01-01", ""], "opened").argsort().tolist()
    [1, 0, 2]
    """
    texts = [str(cell).strip() for cell in cells]
    found = np.full(len(texts), np.nan)
    for place, text in enumerate(texts):
        if is_missing(text) or text == "NaT":
            continue
        found[place] = _as_number(text, name, place)
    return found


def _as_number(text: str, name: str, place: int) -> float:
    if is_number(text):
        return float(text)
    try:
        when = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise DataError(
            f"row {place + 1} has '{shorten(text)}' in the time column '{name}', but a number or a date such as 2024-05-31 "
            "is needed"
        ) from None
    zone = when if when.tzinfo is not None else when.replace(tzinfo=datetime.timezone.utc)
    return zone.timestamp()


def time_split(times: Array, usable: Array, *, train: float = TRAIN, val: float = VAL) -> dict[str, Array]:
    """Ids of ``train``, ``val`` and ``test`` by time, the earliest first; equal times are never torn apart.

    Args:
        times: A number per node, [n]; nodes without one (NaN) are in no part.
        usable: Which nodes have a label, [n] booleans.
        train: Fraction of the nodes to train on.
        val: Fraction to validate on.

    >>> parts = time_split(np.array([3.0, 1.0, 2.0, 2.0, 9.0]), np.ones(5, dtype=bool), train=0.4, val=0.2)
    >>> {part: ids.tolist() for part, ids in parts.items()}
    {'train': [1, 2, 3], 'val': [0], 'test': [4]}
    """
    if not (0 < train < 1 and 0 <= val < 1 and train + val < 1):
        raise DataError(f"train={train} and val={val} must be fractions that leave some nodes for the test")
    known = np.flatnonzero(usable & np.isfinite(times))
    ordered = np.sort(times[known])
    if not len(ordered) or ordered[0] == ordered[-1]:
        raise DataError("the time column has one time only, but earlier and later nodes are needed for a split")
    first = ordered[min(max(int(np.ceil(train * len(ordered))) - 1, 0), len(ordered) - 1)]
    second = max(first, ordered[min(max(int(np.ceil((train + val) * len(ordered))) - 1, 0), len(ordered) - 1)])
    own = times[known]
    parts = {
        "train": known[own <= first],
        "val": known[(own > first) & (own <= second)],
        "test": known[own > second],
    }
    if not len(parts["test"]):
        raise DataError(
            f"no node is later than the {100 * (train + val):g} % that train and validate; give a finer time column"
        )
    return parts
