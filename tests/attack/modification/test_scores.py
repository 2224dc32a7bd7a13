"""Scores of single pairs against brute force: every pair of graphs of twelve nodes."""

from __future__ import annotations

from functools import partial
from typing import Any

import networkx as nx
import pytest
import torch
from torch import Tensor

from attack.contexts import random_graph, view_of
from attack.modification.dense import double_gcn, double_graph, gcn_logits, matrix, pairs_of
from grb.attack import AttackContext
from grb.attack.losses import tanh_margin, typical_margin
from grb.attack.modification.base import PairScores, SearchState
from grb.attack.modification.centrality import betweenness, degree, eigenvector
from grb.attack.modification.scores import ByGradient, Central, Constant, Labels
from grb.graph import Adjacency, Graph
from grb.threat import Modification

N = 12
PAIRS = torch.tensor(pairs_of(N)).T


def ground_of(graph: Graph) -> SearchState:
    return SearchState.of(AttackContext(view_of(graph, range(N)), Modification(edges=5)))


def of_every_pair(graph: Graph, scores: PairScores) -> dict[tuple[int, int], float]:
    """Asked one kind at a time, and for absent pairs by blocks too, which must agree."""
    found: dict[tuple[int, int], float] = {}
    present = graph.adj.has(PAIRS)
    for pairs, ask in ((PAIRS[:, present], scores.drops), (PAIRS[:, ~present], scores.adds)):
        found |= dict(zip(map(tuple, pairs.T.tolist()), ask(pairs).tolist(), strict=True))
    block = scores.add_block(torch.arange(N), torch.arange(N))
    for u, v in PAIRS[:, ~present].T.tolist():
        assert float(block[u, v]) == pytest.approx(found[u, v], rel=1e-9, abs=1e-12)
    return found


GRAPHS = [random_graph(N, density=0.3, seed=4), random_graph(N, density=0.1, isolated=3, seed=1)]


@pytest.mark.parametrize("graph", GRAPHS, ids=["random", "pieces"])
def test_the_random_score_prefers_nothing(graph: Graph) -> None:
    assert set(of_every_pair(graph, Constant()(ground_of(graph))).values()) == {0.0}


@pytest.mark.parametrize("graph", GRAPHS, ids=["random", "pieces"])
def test_labels_allow_edges_inside_a_class_to_go_and_pairs_between_classes_to_come(graph: Graph) -> None:
    y = torch.arange(N) % 3
    edges = {tuple(pair) for pair in graph.adj.edges().T.tolist()}
    for (u, v), score in of_every_pair(graph, Labels(y)(ground_of(graph))).items():
        internal, external = u % 3 == v % 3 and (u, v) in edges, u % 3 != v % 3 and (u, v) not in edges
        assert score == (0.0 if internal or external else -torch.inf)


@pytest.mark.parametrize("graph", GRAPHS, ids=["random", "pieces"])
@pytest.mark.parametrize("kind", ["degree", "betweenness", "eigenvector"])
@pytest.mark.parametrize("sign", [1, -1], ids=["descend", "ascend"])
def test_central_scores_are_sums_over_both_ends(graph: Graph, kind: str, sign: int) -> None:
    """Centralities by networkx; by dense eigenvectors of every component for the last."""
    plain = nx.from_numpy_array(matrix(graph).numpy())
    ours: dict[str, Any] = {"degree": degree, "betweenness": betweenness, "eigenvector": eigenvector}
    if kind == "eigenvector":
        theirs = {}
        for part in nx.connected_components(plain):
            nodes = sorted(part)
            vector = torch.linalg.eigh(matrix(graph)[nodes][:, nodes])[1][:, -1].abs() * (len(nodes) / N) ** 0.5
            theirs |= dict(zip(nodes, vector.tolist(), strict=True))
    else:
        theirs = dict(plain.degree()) if kind == "degree" else nx.betweenness_centrality(plain, normalized=False)
    scores = Central(sign * ours[kind](graph))(ground_of(graph))
    for (u, v), score in of_every_pair(graph, scores).items():
        wanted = sign * (theirs[u] + theirs[v])
        # the complement is ranked the other way round
        assert score == pytest.approx(wanted if plain.has_edge(u, v) else -wanted, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("isolated", [0, 2])
def test_gradient_scores_are_what_a_small_part_of_each_flip_gains(isolated: int) -> None:
    """Every pair moved by a millionth of its flip on a dense matrix, in double precision."""
    graph, model, targets = double_graph(N, isolated=isolated), double_gcn(), torch.tensor([0, 4, 11])
    view = view_of(graph, targets.tolist())
    a, x = matrix(graph), graph.x
    assert isinstance(x, Tensor)
    clean = gcn_logits(model, a, x)[targets]
    labels = clean.argmax(1)
    loss = partial(tanh_margin, scale=typical_margin(clean, labels))

    def raised(b: Tensor) -> float:
        return float(loss(gcn_logits(model, b, x)[targets], labels).mean())

    context = AttackContext(view, Modification(edges=3), model)
    found = of_every_pair(graph, ByGradient(context)(SearchState.of(context)))
    step = 1e-6
    for (u, v), score in found.items():
        sign = 1 - 2 * float(a[u, v])
        ends = []
        for change in (step, -step):
            b = a.clone()
            b[u, v] = b[v, u] = a[u, v] + sign * change
            ends.append(raised(b))
        assert score == pytest.approx((ends[0] - ends[1]) / (2 * step), abs=1e-7)


def test_gradient_scores_of_weighted_edges_are_those_of_the_whole_edge() -> None:
    """Half the weight, half the change."""
    graph, model = double_graph(N), double_gcn()
    half = Graph(Adjacency(graph.adj.pattern, torch.full((graph.adj.pattern.entries,), 0.5).double()), graph.x)
    context = AttackContext(view_of(half, range(5)), Modification(edges=3), model)
    scores = ByGradient(context)(SearchState.of(context))
    edges = half.adj.edges()
    torch.testing.assert_close(scores.drops(edges), -0.5 * scores.gradient.of(edges))  # type: ignore[attr-defined]
