"""Memory of JSON: bounded before it is parsed, and no bound that a sound record meets."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.pipeline.json_memory import FREE_MEMORY, JsonMemory, check_memory, memory_limit
from grb.pipeline.record import json_bytes, read_json


@given(st.lists(st.sampled_from([b"\n", b"\\", b"a", b'"', b"[", b","]), max_size=40).map(b"".join), st.data())
def test_blocks_count_like_the_whole(data: bytes, draw: st.DataObject) -> None:
    whole, parts = JsonMemory(), JsonMemory()
    whole.add(data)
    cut = draw.draw(st.integers(0, len(data)))
    again = draw.draw(st.integers(cut, len(data)))
    for block in (data[:cut], data[cut:again], data[again:]):
        parts.add(block)
    assert parts.bytes == whole.bytes
    assert whole.escaped == sum(len(line) for line in data.split(b"\n") if b"\\" in line)


def test_many_numbers_are_read_also_beside_a_text_that_is_not_ascii() -> None:
    """A certificate of 100,000 targets of a dataset with an accent in its title."""
    data = json_bytes({"title": "réseau", "budgets": [number % 5 - 1 for number in range(100_000)]})
    assert len(data) > FREE_MEMORY // 10 and b"\\u00e9" in data
    assert len(read_json(data)["budgets"]) == 100_000


@pytest.mark.parametrize(
    "value",
    [
        [[]] * 200_000,
        "é" * 500_000,
        "a" * 3_000_000 + "\U0001f600",
        ["a" * 100_000 + "\U0001f600"] * 20,
        [{"a": 0}] * 100_000,
        list(range(300_000)),
        {f"{number:x}": 0 for number in range(100_000)},
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_the_count_is_an_upper_bound(value: object, indent: int | None) -> None:
    data = json.dumps(value, indent=indent, separators=None if indent else (",", ":")).encode()
    count = JsonMemory()
    count.add(data)
    tracemalloc.start()
    try:
        json.loads(data.decode())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak + len(data) <= count.bytes + 2**16


def test_what_is_small_is_free_and_what_is_large_takes_ten_times_its_size() -> None:
    check_memory(b"[" * 1000)
    assert memory_limit(1) == FREE_MEMORY and memory_limit(10**6) == 10**7
    with pytest.raises(ValueError, match="would take"):
        check_memory(b"[[]" + b",[]" * 100_000 + b"]")
