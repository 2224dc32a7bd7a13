"""Weisfeiler-Lehman features of alternatives are those of the edited graphs, and refine as the definition says."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from attack.contexts import random_graph
from grb.attack.modification.weisfeiler_lehman import wl_features
from grb.graph import Adjacency, Graph

NONE = torch.empty(2, 0, dtype=torch.int64)


def refined(adj: Adjacency, types: list[int], rounds: int) -> list[tuple[object, ...]]:
    """Labels of every round as nested tuples, by the definition."""
    labels: list[object] = list(types)
    told = list(labels)
    for _ in range(rounds):
        labels = [
            (labels[v], tuple(sorted(map(repr, (labels[u] for u in adj.neighbours(v).tolist()))))) for v in range(adj.n)
        ]
        told += labels
    return [(number // adj.n, repr(label)) for number, label in enumerate(told)]


def one_hot(n: int, seed: int) -> Tensor:
    types = torch.randint(3, (n,), generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.one_hot(types, 3).float()


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 9), st.sampled_from([0.0, 0.3, 0.8]), st.integers(0, 999), st.integers(0, 3))
def test_labels_are_equal_where_subtrees_are(n: int, density: float, seed: int, rounds: int) -> None:
    graph = random_graph(n, density=density, seed=seed)
    x = one_hot(n, seed)
    found = wl_features(graph.adj, x, NONE, NONE[0], 1, rounds).labels[0].tolist()
    wanted = refined(graph.adj, x.argmax(1).tolist(), rounds)
    assert len(found) == (rounds + 1) * n
    assert len(set(found)) == len(set(wanted)) == len(set(zip(found, wanted, strict=True)))


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 9), st.integers(0, 999), st.booleans(), st.data())
def test_an_alternative_has_the_features_of_the_edited_graph(
    n: int, seed: int, typed: bool, data: st.DataObject
) -> None:
    graph = random_graph(n, density=0.4, seed=seed)
    x = one_hot(n, seed) if typed else graph.x
    every = torch.combinations(torch.arange(n)).T
    chosen = data.draw(st.lists(st.sets(st.integers(0, every.shape[1] - 1), max_size=3), min_size=1, max_size=4))
    flips = [every[:, sorted(own)] for own in chosen]
    groups = torch.arange(len(flips)).repeat_interleave(torch.tensor([own.shape[1] for own in flips]))
    together = wl_features(graph.adj, x, torch.cat(flips, dim=1), groups, len(flips), 2)
    for number, own in enumerate(flips):
        there = graph.adj.has(own)
        adj = graph.adj.edited(own[:, ~there], own[:, there], base=n, n=n)
        alone = wl_features(adj, x, NONE, NONE[0], 1, 2)
        assert torch.equal(together.labels[number], alone.labels[0])
        assert torch.allclose(together.means[number], alone.means[0])
        if not typed:
            assert torch.allclose(alone.means[0], torch.cat(propagated_means(Graph(adj, graph.x), 2)))
        else:
            assert alone.means.shape[1] == 0


def propagated_means(graph: Graph, rounds: int) -> list[Tensor]:
    """Node by node, as the definition has it."""
    assert isinstance(graph.x, Tensor)
    x, means = graph.x.double(), []
    for _ in range(rounds):
        heard = [x[graph.adj.neighbours(v)].mean(0) if len(graph.adj.neighbours(v)) else x[v] for v in range(graph.n)]
        x = 0.5 * (x + torch.stack(heard))
        means.append(x.mean(0))
    return means


def test_labels_are_counted_and_unknown_ones_left_out() -> None:
    graph = random_graph(6, density=0.5)
    found = wl_features(graph.adj, torch.ones(6, 1), NONE, NONE[0], 1, 1)
    known = found.labels[0].unique()
    counts = found.counts(known)[0]
    assert counts.tolist() == [float((found.labels[0] == label).sum()) for label in known]
    assert found.counts(known[1:])[0].tolist() == counts[1:].tolist() and found.counts(known[:0]).shape == (1, 0)
