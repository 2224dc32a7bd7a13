"""Parts that several test files share; import them with `from helpers import needs_grb_cora`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def find_dataset(relative: str) -> Path | None:
    """The first directory `relative` below a root of GRB_DATA, or None."""
    roots = (Path(root) for root in os.environ.get("GRB_DATA", "").split(os.pathsep) if root)
    return next((root / relative for root in roots if (root / relative).is_dir()), None)


needs_grb_cora = pytest.mark.skipif(
    find_dataset("GRB/grb-cora") is None,
    reason="needs the original grb-cora: no root of GRB_DATA holds GRB/grb-cora",
)

needs_kddcup = pytest.mark.skipif(
    find_dataset("KDDCup2020") is None,
    reason="needs the submissions to KDD Cup 2020: no root of GRB_DATA holds KDDCup2020",
)

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What is inside must not wait for ever."""

    def late(*_: object) -> None:
        raise AssertionError(f"it took more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
