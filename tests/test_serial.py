from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb import serial
from grb.errors import DataError
from grb.serial import Count, Fraction


@dataclass(frozen=True)
class Inner:
    name: str
    share: Fraction = 0.5


@dataclass(frozen=True)
class Outer:
    inner: Inner
    kind: Literal["a", "b"]
    counts: tuple[Count, ...] = ()
    pair: tuple[str, float] | None = None
    by_name: Mapping[str, Inner] = field(default_factory=dict)
    anything: Any = None
    flag: bool = False


inners = st.builds(Inner, st.text(max_size=5), st.floats(0, 1))
outers = st.builds(
    Outer,
    inners,
    st.sampled_from(["a", "b"]),
    st.lists(st.integers(0, 2**60), max_size=3).map(tuple),
    st.none() | st.tuples(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False)),
    st.dictionaries(st.text(max_size=3), inners, max_size=2),
    st.none() | st.integers() | st.lists(st.text(max_size=2), max_size=2),
    st.booleans(),
)


@given(outers)
def test_values_come_back_from_json_as_they_were(value):
    text = json.dumps(serial.to_dict(value), allow_nan=False)
    assert serial.from_dict(Outer, json.loads(text), "an outer") == value


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "c"}, "kind: c is none of a, b"),
        ({"counts": [1, -1]}, "counts: a number from 0 to inf expected, got -1"),
        ({"counts": [2**63]}, "counts: a whole number of at most 63 bits expected, got one of 64"),
        ({"counts": [10**400]}, "a whole number of at most 63 bits expected, got one of 1329"),
        ({"counts": [True]}, "counts: int expected, got bool"),
        ({"counts": "12"}, "counts: a list expected"),
        ({"pair": ["x"]}, "pair: a list expected"),
        ({"pair": ["x", float("nan")]}, "a finite number expected"),
        ({"pair": ["x", "1"]}, "float expected, got str"),
        ({"inner": {"name": "x", "share": 1.5}}, "inner: share: a number from 0 to 1 expected"),
        ({"inner": {"share": 1.0}}, "inner: no field 'name'"),
        ({"inner": None}, "a mapping expected, got NoneType"),
        ({"flag": 1}, "flag: bool expected, got int"),
        ({"by_name": {"k": []}}, "by_name: a mapping expected, got list"),
        ({"other": 1}, "unknown field 'other'"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(changes, words):
    values = {"inner": {"name": "x", "share": 0.5}, "kind": "a", **changes}
    with pytest.raises(DataError) as refusal:
        serial.from_dict(Outer, values, "an outer")
    assert str(refusal.value).startswith("this is not an outer (") and words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_whole_number_is_a_float_but_no_text_is():
    assert serial.from_dict(Inner, {"name": "x", "share": 1}, "an inner").share == 1.0
    deep: Any = {}
    for _ in range(5000):
        deep = {"inner": deep}
    with pytest.raises(DataError):
        serial.from_dict(Outer, {"inner": deep, "kind": "a"}, "an outer")
