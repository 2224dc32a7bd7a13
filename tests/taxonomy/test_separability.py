"""Permutation tests of perturbations, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grb.errors import DataError
from grb.taxonomy import analyse, from_runs, holm, published, separability
from grb.taxonomy.separability import paired_p, unpaired_p

RNG = np.random.default_rng


@pytest.mark.parametrize("n", [3, 5, 8])
def test_the_paired_test_is_scipys_exact_one(n: int) -> None:
    a, b = RNG(n).normal(0.1, 1, n), RNG(n + 1).normal(0, 1, n)
    expected = stats.permutation_test(
        (a - b,),
        lambda x, axis: np.abs(x.mean(axis)),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        alternative="greater",
    )
    assert paired_p(a - b, 99, RNG(0)) == pytest.approx(expected.pvalue)


@pytest.mark.parametrize(("n", "m"), [(3, 4), (5, 5), (2, 7)])
def test_the_unpaired_test_is_scipys_exact_one(n: int, m: int) -> None:
    a, b = RNG(n).normal(0.5, 1, n), RNG(m).normal(0, 1, m)

    def apart(x, y, axis):
        return np.abs(x.mean(axis) - y.mean(axis))

    expected = stats.permutation_test((a, b), apart, vectorized=True, n_resamples=np.inf, alternative="greater")
    assert unpaired_p(a, b, 99, RNG(0)) == pytest.approx(expected.pvalue)


def test_many_runs_are_tested_by_draws_that_come_near_the_exact_p() -> None:
    normal = RNG(0).normal(0.4, 1, 20)
    drawn = paired_p(normal, 20000, RNG(1))
    assert drawn == pytest.approx(stats.ttest_1samp(normal, 0).pvalue, abs=0.03)
    a, b = normal[:12], RNG(3).normal(0, 1, 12)
    assert unpaired_p(a, b, 20000, RNG(1)) == pytest.approx(stats.ttest_ind(a, b).pvalue, abs=0.03)
    assert paired_p(np.full(20, 5.0), 99, RNG(0)) == pytest.approx(0.01)  # never 0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_and_keeps_their_order(values: list[float]) -> None:
    found = holm(values)
    assert all(corrected >= p for corrected, p in zip(found, values)) and max(found) <= 1
    assert min(found) == pytest.approx(min(1.0, len(values) * min(values)))
    for p, corrected in zip(values, found):
        assert all(other >= corrected for q, other in zip(values, found) if q > p)


def runs(count: int):
    """A dataset that loses under NoEdges and under nothing else, with a difficulty of its own for every fold."""
    rng = RNG(0)
    rows = []
    for seed in range(count):
        fold = 0.05 * rng.normal()
        for name, lost in (("-", 0.0), ("NoEdges", 0.1), ("LowPass", 0.0), ("NodeDeg", 0.0)):
            rows.append(("a", name, seed, 0.8 + fold - lost + 0.005 * rng.normal()))
    return from_runs(rows)


def test_pairs_of_runs_find_what_folds_hide() -> None:
    found = {row.perturbation: row for row in separability(runs(10))}
    assert found["NoEdges"].significant and not found["LowPass"].significant and not found["NodeDeg"].significant
    assert found["NoEdges"].p == 2 / 2**10 and found["NoEdges"].holm == pytest.approx(3 * 2 / 2**10)
    assert found["NoEdges"].difference == pytest.approx(-0.1, abs=0.01) and found["NoEdges"].paired


def test_three_runs_separate_nothing_and_a_note_says_so() -> None:
    assert not any(row.significant for row in separability(runs(3)))
    found = analyse(runs(3), draws=19)
    assert any("3 runs cannot show significance: 3 perturbations need 7 runs" in note for note in found.notes)
    enough = analyse(runs(7), draws=19)
    assert not any("cannot show" in note for note in enough.notes)
    (row,) = [each for each in enough.to_dict()["separability"] if each["perturbation"] == "NoEdges"]
    assert row["significant"] is True


def test_means_cannot_be_tested() -> None:
    with pytest.raises(DataError, match="means only"):
        separability(published("inductive").profiles)
    assert analyse(published("transductive").profiles, draws=5).separability == ()
