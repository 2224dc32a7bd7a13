"""Pairs by number: every pair once, and uniform draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from scipy import stats

from attack.contexts import graph_of
from grb.attack.modification import pairs as module
from grb.attack.modification.pairs import PairSpace, contains, positions_of, without


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 12])
def test_every_pair_with_an_end_has_one_number(n: int) -> None:
    for count in range(n + 1):
        ends = torch.randperm(n, generator=torch.Generator().manual_seed(count))[:count]
        space = PairSpace.touching(n, ends)
        pairs = space.pairs(torch.arange(space.count))
        found = [tuple(sorted(pair)) for pair in pairs.T.tolist()]
        wanted = [pair for pair in itertools.combinations(range(n), 2) if set(pair) & set(ends.tolist())]
        assert sorted(found) == wanted
        assert space.numbers(pairs).tolist() == list(range(space.count)) == space.numbers(pairs.flip(0)).tolist()
        assert all(first in ends for first in pairs[0])


def test_all_pairs_are_those_of_the_upper_triangle() -> None:
    space = PairSpace.everywhere(4)
    assert space.pairs(torch.arange(6)).T.tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]


@pytest.mark.parametrize("n", [659_574, 50_000_000])
def test_numbers_beyond_the_precision_of_roots(n: int) -> None:
    space = PairSpace.everywhere(n)
    numbers = torch.randint(space.count, (20_000,), generator=torch.Generator().manual_seed(0))
    rows = torch.randint(n - 1, (1000,), generator=torch.Generator().manual_seed(1))
    starts = space.numbers(torch.stack([rows, rows + 1]))
    for each in (numbers, starts, starts - (starts > 0).long(), torch.tensor([0, space.count - 1])):
        pairs = space.pairs(each)
        assert (pairs[0] < pairs[1]).all() and (pairs[1] < n).all() and (pairs[0] >= 0).all()
        assert torch.equal(space.numbers(pairs), each)


def test_many_ascending_numbers_take_the_other_way_to_the_same_cells() -> None:
    space = PairSpace.touching(40, torch.tensor([5, 9, 11]))
    numbers = torch.arange(space.count)
    assert len(numbers) > 8 * space.ends
    assert torch.equal(space.cells(numbers), torch.cat([space.cells(part) for part in numbers.split(10)], dim=1))


def test_pairs_outside_have_no_number() -> None:
    space = PairSpace.touching(5, torch.tensor([4]))
    assert space.numbers(torch.tensor([[0, 0, 4], [1, 4, 2]])).tolist()[0] == -1
    assert (space.numbers(torch.tensor([[0, 4], [4, 2]])) >= 0).all()


def test_edges_of_a_graph() -> None:
    graph = graph_of([(0, 1), (1, 2), (2, 3)], 4)
    space = PairSpace.touching(4, torch.tensor([3]))
    assert space.pairs(space.edges(graph.adj)).T.tolist() == [[3, 2]]


@pytest.mark.parametrize(("shuffled", "marked"), [(2**20, 0), (0, 0), (0, 32)], ids=["by keys", "sorted", "marked"])
def test_draws_are_uniform(shuffled: int, marked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three of six pairs: each of the twenty sets equally often."""
    monkeypatch.setattr(module, "SHUFFLED", shuffled)
    monkeypatch.setattr(module, "MARKED", marked)
    space, generator = PairSpace.everywhere(4), torch.Generator().manual_seed(0)
    seen = [tuple(space.draw(3, generator).tolist()) for _ in range(4000)]
    counts = [seen.count(each) for each in itertools.combinations(range(6), 3)]
    assert sum(counts) == 4000 and stats.chisquare(counts).pvalue > 0.001


def test_marked_draws_are_those_of_sorted_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHUFFLED", 0)
    space, taken = PairSpace.everywhere(60), torch.arange(0, 1770, 3)
    draws = []
    for each in (32, 0):
        monkeypatch.setattr(module, "MARKED", each)
        draws.append(space.draw(300, torch.Generator().manual_seed(1), taken))
    assert torch.equal(*draws)


@pytest.mark.parametrize("size", [0, 1, 7, 40, 1000])
@pytest.mark.parametrize("threshold", [0, 2**20])
@pytest.mark.parametrize("marked", [0, 32])
def test_draws_leave_out_what_is_taken(size: int, threshold: int, marked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHUFFLED", threshold)
    monkeypatch.setattr(module, "MARKED", marked)
    space = PairSpace.everywhere(14)
    taken = torch.arange(0, space.count, 2)
    drawn = space.draw(size, torch.Generator().manual_seed(0), taken)
    assert len(drawn) == min(size, space.count - len(taken)) == len(set(drawn.tolist()))
    assert not set(drawn.tolist()) & set(taken.tolist()) and (drawn.diff() > 0).all()


def test_lists_in_ascending_order() -> None:
    numbers, some = torch.tensor([1, 4, 6, 9]), torch.tensor([9, 2, 4])
    assert contains(numbers, some).tolist() == [True, False, True]
    assert positions_of(numbers, some).tolist() == [3, 1]
    assert without(numbers, some).tolist() == [1, 6]
    none = torch.empty(0, dtype=torch.int64)
    assert not contains(none, some).any() and without(none, some).tolist() == [] and not len(positions_of(none, some))
    assert np.array_equal(without(numbers, none).numpy(), numbers.numpy())
