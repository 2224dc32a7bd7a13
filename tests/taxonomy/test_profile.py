from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grb.errors import DataError, UnknownName
from grb.taxonomy import Profiles, from_auroc, from_runs

NAN = math.nan


def test_ratio_of_means_not_mean_of_ratios():
    runs = [("a", "-", 0, 0.5), ("a", "-", 1, 1.0), ("a", "NoEdges", 0, 0.5), ("a", "NoEdges", 1, 0.25)]
    assert from_runs(runs).values.tolist() == [[-1.0]]  # .375 / .75; the mean of ratios would be .625


@settings(max_examples=100)
@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)), min_size=1, max_size=6))
def test_half_the_auroc_is_minus_one_and_signs_tell_loss_from_gain(pairs):
    original, perturbed = np.array(pairs).T
    names = [f"d{place}" for place in range(len(pairs))]
    found = from_auroc(names, ["p"], original, perturbed[:, None])
    np.testing.assert_allclose(found.ratio[:, 0], perturbed / original, rtol=1e-12)
    assert ((found.values[:, 0] < 0) == (perturbed < original)).all()


def test_runs_are_sorted_by_dataset_and_in_the_papers_order_of_perturbations():
    rows = [
        (dataset, name, seed, 0.5)
        for dataset in "ba"
        for name in ("mine", "NoEdges", "RandFtrs", "-")
        for seed in (0, 1)
    ]
    found = from_runs(rows, model="gcn")
    assert found.datasets == ("a", "b")
    assert found.perturbations == ("RandFtrs", "NoEdges", "mine")
    assert found.runs.shape == (2, 4, 2) and found.paired.all() and found.model == "gcn"


def test_runs_with_other_seeds_are_not_paired():
    rows = [("a", "-", 0, 0.9), ("a", "-", 1, 0.8), ("a", "x", 0, 0.5), ("a", "x", 2, 0.6)]
    assert not from_runs(rows).paired.any()
    assert not from_runs([(dataset, name, None, auroc) for dataset, name, _, auroc in rows]).paired.any()


def test_runs_without_a_number_are_left_out_and_counted():
    rows = [("a", "-", 0, 0.9), ("a", "-", 1, 0.8), ("a", "x", 0, 0.5), ("a", "x", 1, NAN), ("a", "y", 0, NAN)]
    found = from_runs(rows)
    assert found.values[0, 0] == pytest.approx(math.log2(0.5 / 0.85))
    assert found.missing == [("a", "y")]
    assert "2 runs without a number left out" in found.notes
    assert "cells have between 1 and 2 runs" in found.notes


def test_one_run_per_cell_has_nothing_to_resample():
    assert from_runs([("a", "-", 0, 0.9), ("a", "x", 0, 0.5)]).runs is None


def test_a_dataset_without_unperturbed_score_is_left_out_and_named():
    found = from_auroc(["a", "b"], ["x"], [NAN, 0.8], [[0.5], [0.4]])
    assert found.datasets == ("b",) and found.original.tolist() == [0.8]
    assert found.notes == ("left out, because the unperturbed AUROC is missing: a",)
    with pytest.raises(DataError, match="no dataset has an AUROC of its unperturbed self"):
        from_auroc(["a"], ["x"], [NAN], [[0.5]])


@pytest.mark.parametrize(
    "value, sentence",
    [
        (0.0, "the AUROC of dataset 'a' under 'x' is 0, whose log2 ratio is not finite"),
        (-0.1, "is -0.1, but it must lie above 0 and at most at 1$"),
        (1.5, "is 1.5, but it must lie above 0 and at most at 1; divide percentages by 100"),
        (math.inf, "is inf, but it must lie above 0"),
    ],
)
def test_what_is_no_auroc_is_refused(value, sentence):
    with pytest.raises(DataError, match=sentence):
        from_auroc(["a"], ["x"], [0.9], [[value]])
    with pytest.raises(DataError, match="the AUROC of dataset 'a' under 'x'"):
        from_runs([("a", "-", 0, 0.9), ("a", "x", 0, 0.5), ("a", "x", 1, value)])


def test_two_runs_of_one_seed_are_refused():
    with pytest.raises(DataError, match="dataset 'a' under 'x' has two runs with seed 3"):
        from_runs([("a", "x", 3, 0.5), ("a", "x", 3, 0.6)])


@pytest.mark.parametrize(
    "datasets, names, values, sentence",
    [
        (("a", "a"), ("x",), [[0.0], [0.0]], "dataset 'a' occurs twice"),
        (("a",), ("x", "x"), [[0.0, 0.0]], "perturbation 'x' occurs twice"),
        (("a",), (), np.zeros((1, 0)), "there is no perturbation"),
        ((), ("x",), np.zeros((0, 1)), "there is no dataset"),
        (("a",), ("x",), [[0.0, 1.0]], r"shape \[1, 2\]"),
        (("a",), ("x",), [[-math.inf]], "the log2 ratio of dataset 'a' under 'x' is infinite"),
    ],
)
def test_profiles_that_contradict_themselves_are_refused(datasets, names, values, sentence):
    with pytest.raises(DataError, match=sentence):
        Profiles(datasets, names, np.array(values))


def test_select_and_without_keep_everything_in_step():
    rows = [
        (dataset, name, seed, 0.3 + 0.1 * i + 0.05 * j + 0.01 * seed)
        for i, dataset in enumerate("abc")
        for j, name in enumerate(["-", "x", "y"])
        for seed in (0, 1)
    ]
    found = from_runs(rows)
    part = found.select(["c", "a"], ["y"])
    assert (part.datasets, part.perturbations) == (("c", "a"), ("y",))
    assert part.values.tolist() == [[found.row("c")["y"]], [found.row("a")["y"]]]
    assert part.original.tolist() == [found.original[2], found.original[0]]
    np.testing.assert_array_equal(part.runs, found.runs[[2, 0]][:, [0, 2]])
    assert found.without("b", "x").datasets == ("a", "c")
    with pytest.raises(UnknownName, match="no dataset or perturbation 'z'"):
        found.without("z")
    with pytest.raises(UnknownName, match="no dataset 'z'"):
        found.row("z")
