from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grb import metric
from grb.errors import DataError

NUMBERS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=30)


@given(NUMBERS)
def test_it_counts_the_pairs_in_their_true_order(rows: list[tuple[int, int]]) -> None:
    pairs = [(a, b) for a in rows for b in rows if a[1] > b[1]]
    scores, values = np.array(rows, dtype=float).T
    if not pairs:
        with pytest.raises(DataError, match="all values are the same"):
            metric.concordance(scores, values)
        return
    right = sum(1.0 if a[0] > b[0] else 0.5 if a[0] == b[0] else 0.0 for a, b in pairs)
    assert metric.concordance(scores, values) == pytest.approx(right / len(pairs))
    assert metric.concordance(-scores, values) == pytest.approx(1 - right / len(pairs))


def test_of_two_values_it_is_the_auroc() -> None:
    rng = np.random.default_rng(0)
    scores, y = rng.normal(size=200).round(1), rng.integers(0, 2, 200)
    assert metric.concordance(scores, y) == pytest.approx(metric.auroc(scores, y))


def test_what_has_no_order_is_refused() -> None:
    with pytest.raises(DataError, match="NaN or infinite"):
        metric.concordance([0.1, float("nan")], [1, 2])
    with pytest.raises(DataError, match="not two vectors"):
        metric.concordance([0.1, 0.2, 0.3], [1, 2])
