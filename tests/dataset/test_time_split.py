"""Splits by time against a sort by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb.dataset.time_split import as_times, time_split
from grb.errors import DataError


@given(st.lists(st.integers(0, 12), min_size=5, max_size=60).filter(lambda times: len(set(times)) > 4))
def test_no_test_node_is_earlier_than_a_training_node(times: list[int]) -> None:
    moments = np.array(times, dtype=float)
    try:
        parts = time_split(moments, np.ones(len(times), dtype=bool))
    except DataError as error:  # equal times at the end leave none for the test
        assert "finer time column" in str(error)
        return
    together = np.concatenate(list(parts.values()))
    assert sorted(together.tolist()) == list(range(len(times)))
    assert moments[parts["train"]].max() < moments[parts["test"]].min()
    if len(parts["val"]):
        assert moments[parts["train"]].max() < moments[parts["val"]].min() < moments[parts["test"]].min()
    assert len(parts["train"]) >= 0.6 * len(times)


def test_hidden_labels_and_missing_times_are_in_no_part() -> None:
    parts = time_split(np.array([1, 2, 3, 4, np.nan, 5.0]), np.array([1, 1, 1, 1, 1, 0], dtype=bool))
    assert sorted(np.concatenate(list(parts.values())).tolist()) == [0, 1, 2, 3]


def test_times_that_are_none_are_refused() -> None:
    with pytest.raises(DataError, match="row 2 has 'soon' in the time column 'when'"):
        as_times(["1", "soon"], "when")
    with pytest.raises(DataError, match="one time only"):
        time_split(np.ones(4), np.ones(4, dtype=bool))
    assert as_times(["2024-01-01T00:00:00Z", "2024-01-01"], "when").tolist() == [1704067200.0, 1704067200.0]
