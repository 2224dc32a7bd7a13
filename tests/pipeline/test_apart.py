from __future__ import annotations

import os
import time

import pytest

from grb.errors import DataError
from grb.pipeline import Limits
from grb.pipeline.apart import apart


def refuse(sentence: str) -> None:
    raise DataError(sentence)


def eat(megabytes: int) -> None:
    """So much memory for a while."""
    held = b"x" * (megabytes * 2**20)
    time.sleep(20)
    del held


def test_a_call_gives_its_value_from_another_process() -> None:
    assert apart(os.getpid, limits=Limits(), what="a call") != os.getpid()
    assert apart(divmod, 7, 2, limits=Limits(timeout=60, memory=4000), what="a call") == [3, 1]


def test_what_a_call_refuses_is_refused_here() -> None:
    with pytest.raises(DataError, match=r"^no such thing$"):
        apart(refuse, "no such thing", limits=Limits(), what="a call")
    with pytest.raises(DataError, match="ZeroDivisionError"):
        apart(divmod, 1, 0, limits=Limits(), what="a call")


def test_time_and_memory_end_a_call() -> None:
    start = time.monotonic()
    with pytest.raises(DataError, match=r"^a call took more than 0\.5 seconds"):
        apart(time.sleep, 60, limits=Limits(timeout=0.5), what="a call")
    with pytest.raises(DataError, match="^a call took more than 900 MB"):
        apart(eat, 1200, limits=Limits(memory=900), what="a call")
    assert time.monotonic() - start < 30


def test_a_call_that_dies_takes_nothing_with_it() -> None:
    with pytest.raises(DataError, match="exit code 3"):
        apart(os._exit, 3, limits=Limits(), what="a call")
