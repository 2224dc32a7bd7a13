from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from grb.dataset.partition import Split
from grb.dataset.scheme import Folds, Predefined, Random, Scheme
from grb.errors import DataError

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
    assert "stratified" not in scheme.words
    assert len(scheme(3).test["full"]) == 2


def test_predefined_splits_take_turns() -> None:
    splits = [Split.build([0], [1], {"full": [2]}, 4), Split.build([1], [2], {"full": [3]}, 4)]
    scheme = Predefined(splits)
    assert [scheme(number) for number in range(3)] == [splits[0], splits[1], splits[0]]
    assert scheme.words != Predefined(splits[:1]).words


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
