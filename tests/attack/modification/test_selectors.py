"""Picks against trying one pair after the other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attack.contexts import graph_of, random_graph, view_of
from grb.attack import AttackContext
from grb.attack.modification.base import SearchState
from grb.attack.modification.pairs import PairSpace
from grb.attack.modification.scores import Constant, Pairwise
from grb.attack.modification.selectors import Greedy, RandomBlocks, TopK, Uniform, accept, best, shuffled
from grb.threat import Modification


def ground_of(n: int, targets: Any, edges: int = 5, density: float = 0.3, seed: int = 0, **limits: Any) -> SearchState:
    graph = random_graph(n, density=density, seed=seed)
    return SearchState.of(AttackContext(view_of(graph, list(targets)), Modification(edges=edges, **limits)))


def one_by_one(state: SearchState, pairs: Tensor, count: int, disjoint: bool) -> list[tuple[int, int]]:
    room = [10**9] * state.clean.n if state.room is None else state.room.tolist()
    spare = [10**9] * state.clean.n if state.spare is None else state.spare.tolist()
    seen: set[int] = set()
    taken: list[tuple[int, int]] = []
    for u, v in pairs.T.tolist():
        dropped = bool(state.clean.adj.has(torch.tensor([[u], [v]])))
        fits = min(room[u], room[v]) > 0 and not (dropped and min(spare[u], spare[v]) <= 0)
        if len(taken) == count or not fits or (disjoint and {u, v} & seen):
            continue
        taken.append((u, v))
        seen |= {u, v}
        for node in (u, v):
            room[node] -= 1
            spare[node] -= dropped
    return taken


@given(
    n=st.integers(2, 16),
    seed=st.integers(0, 2**16),
    count=st.integers(0, 40),
    per_node=st.sampled_from([None, 0.5, 1.0]),
    isolate=st.booleans(),
    disjoint=st.booleans(),
)
def test_accepting_together_equals_one_after_the_other(
    n: int, seed: int, count: int, per_node: float | None, isolate: bool, disjoint: bool
) -> None:
    state = ground_of(n, range(n), edges=1000, seed=seed, per_node=per_node, allow_isolate=isolate)
    order = torch.randperm(state.space.count, generator=torch.Generator().manual_seed(seed))
    pairs = state.space.pairs(order)
    found = accept(state, pairs, count, disjoint=disjoint)
    assert [tuple(pair) for pair in found.T.tolist()] == one_by_one(state, pairs, count, disjoint)


class Table(Pairwise):
    """Scores that were written down, one per pair of nodes."""

    def __init__(self, values: Tensor) -> None:
        self.values = values

    def __call__(self, state: SearchState) -> Table:
        return self

    def adds(self, pairs: Tensor) -> Tensor:
        return self.values[pairs[0], pairs[1]]

    drops = adds


def table(n: int, seed: int, levels: int | None = None) -> Table:
    values = torch.rand(n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    values = values if levels is None else (values * levels).floor()
    return Table(values + values.T)


@given(
    n=st.integers(2, 16),
    seed=st.integers(0, 2**16),
    targets=st.integers(0, 16),
    count=st.integers(1, 20),
    allow=st.sampled_from([("add", "drop"), ("add",), ("drop",)]),
)
def test_the_best_pairs_are_the_best_of_all(n: int, seed: int, targets: int, count: int, allow: Any) -> None:
    state = ground_of(n, range(min(targets, n)), edges=50, seed=seed, allow=allow)
    scores = table(n, seed)
    found = best(state, scores, count, 2**24, -torch.inf, 7, torch.Generator())
    wanted = []
    for u in range(n):
        for v in range(u + 1, n):
            present = bool(state.clean.adj.has(torch.tensor([[u], [v]])))
            if u < targets and ("drop" if present else "add") in allow:
                wanted.append((float(scores.values[u, v]), (u, v)))
    wanted.sort(reverse=True)
    assert [tuple(sorted(pair)) for pair in found.pairs.T.tolist()] == [pair for _, pair in wanted[:count]]
    assert found.scores.tolist() == [score for score, _ in wanted[:count]]


@pytest.mark.parametrize("rows", [1, 2, 5, 100])
def test_ties_do_not_depend_on_the_size_of_blocks(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    state, scores = ground_of(14, range(9), edges=20), table(14, 3, levels=2)
    expected = best(state, scores, 12, 2**24, -torch.inf, 5, torch.Generator())
    monkeypatch.setattr("grb.attack.modification.selectors.BLOCK", rows * 14)
    found = best(state, scores, 12, 2**24, -torch.inf, 5, torch.Generator())
    assert torch.equal(found.pairs.sort(0).values, expected.pairs.sort(0).values)
    other = best(state, scores, 12, 2**24, -torch.inf, 6, torch.Generator())
    assert not torch.equal(found.pairs, other.pairs)


def test_only_what_is_above_counts() -> None:
    state, scores = ground_of(8, range(8), edges=100), table(8, 0)
    half = float(scores.values.median())
    found = Greedy(refresh=3, above=half)(state, scores, torch.Generator().manual_seed(0))
    pairs = torch.cat([found.edit.add, found.edit.drop], dim=1)
    high = sum(scores.values[u, v] > half for u in range(8) for v in range(u + 1, 8))
    assert pairs.shape[1] == high and (scores.values[pairs[0], pairs[1]] > half).all()


def test_no_pair_is_flipped_back() -> None:
    """Scores that like every edge best ask for the same edge again and again."""
    state = ground_of(6, range(6), edges=100)
    everything = Greedy(refresh=1)(state, Constant(), torch.Generator().manual_seed(0))
    assert everything.edit.add.shape[1] + everything.edit.drop.shape[1] == 15
    assert everything.adj.num_edges == 15 - state.clean.num_edges


@pytest.mark.parametrize("mode", ["add", "drop"])
def test_uniform_choice_is_uniform(mode: Any) -> None:
    """One flip in a graph of five nodes, two of them targets."""
    from scipy import stats

    graph = graph_of([(0, 1), (0, 2), (1, 3), (3, 4)], 5)
    state = SearchState.of(AttackContext(view_of(graph, [0, 1]), Modification(edges=1))).only(mode)
    seen = []
    for seed in range(1200):
        edit = Uniform()(state, Constant(), torch.Generator().manual_seed(seed)).edit
        seen.append(tuple((edit.add if mode == "add" else edit.drop).flatten().tolist()))
    wanted = [(0, 1), (0, 2), (1, 3)] if mode == "drop" else [(0, 3), (0, 4), (1, 2), (1, 4)]
    counts = [seen.count(pair) for pair in wanted]
    assert sum(counts) == 1200 and stats.chisquare(counts).pvalue > 0.001


def test_a_pool_smaller_than_the_pairs_is_drawn_from_them() -> None:
    state, scores = ground_of(20, range(20), edges=4, density=0.0), table(20, 1)
    found = TopK(pool=30)(state, scores, torch.Generator().manual_seed(0)).edit.add
    assert found.shape[1] == 4
    whole = TopK()(state, scores, torch.Generator().manual_seed(0)).edit.add
    assert scores.adds(found).sum() < scores.adds(whole).sum()


@pytest.mark.parametrize("rounds", [1, 3, 10, 50])
def test_blocks_share_the_budget_among_the_rounds(rounds: int) -> None:
    asked: list[int] = []

    class Spy(Table):
        def __call__(self, state: SearchState) -> Table:
            asked.append(state.left)
            return self

    state = ground_of(20, range(20), edges=10, density=0.1)
    edit = RandomBlocks(rounds=rounds, block=60)(state, Spy(table(20, 0).values), torch.Generator()).edit
    assert edit.add.shape[1] + edit.drop.shape[1] == 10
    assert len(asked) == min(rounds, 10) and asked[0] == 10 and asked == sorted(asked, reverse=True)


def test_shuffling_is_one_to_one_and_depends_on_the_salt() -> None:
    keys = torch.arange(100_000)
    assert len(shuffled(keys, 3).unique()) == len(keys)
    assert not torch.equal(shuffled(keys, 3).argsort(), shuffled(keys, 4).argsort())


def test_a_space_without_targets_is_empty() -> None:
    assert PairSpace.touching(5, torch.empty(0, dtype=torch.int64)).count == 0
    assert ground_of(5, []).drops.shape == (2, 0)
