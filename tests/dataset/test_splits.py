from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.model_selection import StratifiedKFold

from grb.dataset.splits import Folds, Predefined, Random, Scheme, Split, difficulty_split
from grb.errors import DataError
from helpers import find_dataset, needs_grb_cora

LABELS = torch.arange(60) % 3


def parts(split: Split) -> list[list[int]]:
    return [split.train.tolist(), split.val.tolist(), split.test["full"].tolist()]


def test_fold_i_tests_and_the_next_one_validates_as_in_the_published_results() -> None:
    theirs = [test for _, test in StratifiedKFold(10, shuffle=True, random_state=123).split(LABELS, LABELS)]
    for number in (0, 4, 9):
        split = Folds(LABELS)(number)
        assert split.test["full"].tolist() == theirs[number].tolist()
        assert split.val.tolist() == theirs[(number + 1) % 10].tolist()
        assert len(split.train) == 48


def test_every_item_is_tested_once_and_classes_are_even() -> None:
    tests = [Folds(LABELS)(number).test["full"] for number in range(10)]
    assert sorted(torch.cat(tests).tolist()) == list(range(60))
    assert all(LABELS[test].bincount().tolist() == [2, 2, 2] for test in tests)


def test_folds_are_drawn_anew_when_all_have_had_their_turn() -> None:
    assert parts(Folds(LABELS)(10)) != parts(Folds(LABELS)(0))
    assert parts(Folds(LABELS)(10)) == parts(Folds(LABELS, seed=124)(0))


def test_folds_of_several_labels_are_not_stratified() -> None:
    scheme = Folds((torch.arange(40).reshape(20, 2) % 2).float())
    assert "stratified" not in scheme.description
    assert len(scheme(3).test["full"]) == 2


def test_predefined_splits_take_turns() -> None:
    splits = [Split.build([0], [1], {"full": [2]}, 4), Split.build([1], [2], {"full": [3]}, 4)]
    scheme = Predefined(splits)
    assert [scheme(number) for number in range(3)] == [splits[0], splits[1], splits[0]]
    assert scheme.description != Predefined(splits[:1]).description


@pytest.mark.parametrize(
    ("scheme", "number", "words"),
    [
        (Folds(LABELS), 3, "fold 3 of 0 to 9"),
        (Folds(LABELS), 10, "fold 0 of 0 to 9, drawn anew from seed 124"),
        (Predefined([Split.build([0], [1], {"full": [2]}, 4)]), 1, "predefined split 0 of 0 to 0, once more"),
        (Random(60), 7, "random split of seed 7"),
    ],
)
def test_a_number_is_told_in_words(scheme: Scheme, number: int, words: str) -> None:
    assert scheme.about(number) == words


@given(st.integers(10, 300), st.integers(0, 2**31))
def test_random_splits_hold_every_item_once(items: int, number: int) -> None:
    split = Random(items)(number)
    assert sorted(np.concatenate([np.array(part) for part in parts(split)]).tolist()) == list(range(items))
    assert len(split.train) == int(0.8 * items) and len(split.val) == int(0.1 * items)
    assert parts(split) == parts(Random(items)(number))


@pytest.mark.parametrize("scheme", [Folds(LABELS), Random(60)])
def test_numbers_give_different_splits(scheme: Scheme) -> None:
    assert parts(scheme(0)) != parts(scheme(1))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Folds(LABELS[:5]), "10 folds of 5 items"),
        (lambda: Folds(torch.arange(20))(0), "no class has 10 items"),
        (lambda: Random(9), "9 items are too few"),
        (lambda: Random(20)(-1), "must be 0 or more"),
        (lambda: Predefined([]), "no predefined splits"),
    ],
)
def test_what_cannot_be_split_is_refused(make, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        make()


TESTS = ("index_test_easy", "index_test_medium", "index_test_hard")

degree_vectors = hnp.arrays(np.int64, st.integers(10, 300), elements=st.integers(0, 40))
seeds = st.integers(0, 2**32 - 1)


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(seed))


@given(degree_vectors, seeds)
def test_every_node_is_in_exactly_one_sorted_part(degrees, seed):
    split = difficulty_split(degrees, generator(seed))
    assert sorted(np.concatenate(list(split.values()))) == list(range(len(degrees)))
    for part in split.values():
        assert part.dtype == np.int64
        assert (np.diff(part) > 0).all()


@given(degree_vectors, seeds)
def test_sizes_are_the_rounded_down_shares_and_validation_takes_the_rest(degrees, seed):
    n = len(degrees)
    split = difficulty_split(degrees, generator(seed))
    assert len(split["index_train"]) == 6 * n // 10
    assert [len(split[name]) for name in TESTS] == [n // 10] * 3
    assert len(split["index_val"]) == n - 6 * n // 10 - 3 * (n // 10)


@given(degree_vectors, seeds)
def test_no_easier_test_node_has_more_neighbours_than_a_harder_one(degrees, seed):
    split = difficulty_split(degrees, generator(seed))
    easy, medium, hard = (degrees[split[name]] for name in TESTS)
    assert easy.max() <= medium.min()
    assert medium.max() <= hard.min()


@given(degree_vectors, seeds)
def test_equal_seed_gives_equal_split_and_input_is_untouched(degrees, seed):
    before = degrees.copy()
    first, second = (difficulty_split(degrees, generator(seed)) for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert np.array_equal(before, degrees)


def test_the_lowest_and_highest_twentieth_is_never_tested():
    degrees = np.arange(100)[::-1].copy()  # node v has rank 99 - v, so ranks 0-4 and 95-99 are set aside
    tested = set()
    for seed in range(200):
        split = difficulty_split(degrees, generator(seed))
        tested |= {int(node) for name in TESTS for node in split[name]}
    assert tested == set(range(5, 95))


def test_ties_are_broken_by_chance_and_not_by_id():
    easy = np.concatenate([difficulty_split(np.ones(100), generator(s))["index_test_easy"] for s in range(200)])
    assert len(np.unique(easy)) == 100
    assert 40 < easy.mean() < 60


@pytest.mark.parametrize(("n", "sizes"), [(2680, (1608, 268, 268)), (3191, (1914, 320, 319))])
def test_sizes_of_the_shipped_datasets(n, sizes):
    split = difficulty_split(np.arange(n), generator(0))
    assert tuple(len(split[name]) for name in ("index_train", "index_val", "index_test_hard")) == sizes


@pytest.mark.parametrize("n", range(10))
def test_a_graph_too_small_for_five_parts_is_refused_in_words(n):
    with pytest.raises(DataError, match=f"cannot split {n} nodes"):
        difficulty_split(np.zeros(n, np.int64), generator(0))


def test_ten_nodes_are_enough():
    assert [len(part) for part in difficulty_split(np.zeros(10), generator(0)).values()] == [6, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("degrees", "message"),
    [
        (np.zeros((10, 10)), "vector"),
        (np.full(20, np.nan), "finite"),
        (np.full(20, np.inf), "finite"),
        (np.full(20, -1), ">= 0"),
        (np.array(["a"] * 20), "numbers"),
    ],
)
def test_degrees_that_are_no_degrees_are_refused(degrees, message):
    with pytest.raises(DataError, match=message):
        difficulty_split(degrees, generator(0))


@given(
    st.integers(0, 60),
    st.floats(-1, 2) | st.just(float("nan")),
    st.floats(-1, 2) | st.just(float("inf")),
    st.floats(-1, 2),
)
def test_any_shares_give_a_valid_split_or_a_data_error(n, train, test, cut):
    try:
        split = difficulty_split(np.arange(n), generator(0), train=train, test=test, cut=cut)
    except DataError:
        return
    assert sorted(np.concatenate(list(split.values()))) == list(range(n))
    assert all(len(part) for part in split.values())


@needs_grb_cora
@pytest.mark.parametrize(("name", "table"), [("grb-cora", (1.53, 2.96, 5.23)), ("grb-citeseer", (1.01, 1.74, 3.82))])
def test_mean_degrees_on_the_true_graphs_are_those_of_the_paper(name, table):
    folder = find_dataset(f"GRB/{name}")
    if folder is None:
        pytest.skip(f"needs the true {name}")
    with np.load(folder / "adj.npz") as file:
        degrees = np.diff(file["indptr"])
    splits = [difficulty_split(degrees, generator(seed)) for seed in range(20)]
    means = np.mean([[degrees[split[part]].mean() for part in TESTS] for split in splits], axis=0)
    assert (np.abs(means - table) <= (0.05, 0.05, 0.1)).all(), means
