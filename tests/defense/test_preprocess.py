from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score
from sklearn.metrics.pairwise import cosine_similarity
from torch import Tensor

import grb
from grb.defense.preprocess import Cosine, Jaccard, Preprocess, Pruning, Transform
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, adjacency_from_edges
from grb.graph.edit import sparse_features


def random_graph(n: int, d: int, seed: int) -> Graph:
    """Real features with many zeros; some rows are zero altogether."""
    rng = np.random.default_rng(seed)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((n, n)) < 0.4, 1)).T, n)
    x = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5) * (rng.random((n, 1)) < 0.8)
    return Graph(adj, torch.from_numpy(x.astype(np.float32)))


def edges(graph: Graph) -> set[tuple[int, int]]:
    return {(u, v) for u, v in graph.adj.edges().T.tolist()}


def dense(x: Tensor | CSR) -> Tensor:
    return x if isinstance(x, Tensor) else x @ torch.eye(x.shape[1])


@settings(max_examples=60)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 6),
    seed=st.integers(0, 999),
    threshold=st.sampled_from([0.0, 0.01, 0.3, 1.0]),
)
def test_pruning_agrees_with_sklearn_edge_by_edge(n: int, d: int, seed: int, threshold: float) -> None:
    graph = random_graph(n, d, seed)
    x = dense(graph.x).numpy()
    similarity = {
        Jaccard(threshold): lambda u, v: jaccard_score(x[u] > 0, x[v] > 0, zero_division=0.0),
        Cosine(threshold): lambda u, v: cosine_similarity(x[[u]], x[[v]]).item(),
    }
    for part, expected in similarity.items():
        left, sure = edges(part(graph)), 1e-6
        for u, v in edges(graph):
            value = expected(u, v)
            if abs(value - threshold) > sure:
                assert ((u, v) in left) == (value >= threshold)
        assert left <= edges(graph)


@pytest.mark.parametrize("part", [Jaccard(0.2), Cosine(0.2), Transform(), Transform("unit")], ids=str)
def test_sparse_features_are_treated_alike(part: Preprocess) -> None:
    graph = random_graph(40, 7, 0)
    x = dense(graph.x)
    sparse = part(Graph(graph.adj, sparse_features(x)))
    assert isinstance(sparse.x, CSR)
    assert edges(sparse) == edges(part(graph))
    torch.testing.assert_close(dense(sparse.x), dense(part(graph).x))


def test_jaccard_of_overlapping_and_of_empty_sets() -> None:
    adj, _ = adjacency_from_edges([[0, 2], [1, 3]], 4)
    graph = Graph(adj, torch.tensor([[1.0, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]]))
    similarity = Jaccard().similarity(graph)
    assert sorted(similarity.tolist()) == pytest.approx([0, 0, 1 / 3, 1 / 3])  # 0 / 0 counts as 0
    assert edges(Jaccard()(graph)) == {(0, 1)}
    assert edges(Jaccard(0.0)(graph)) == {(0, 1), (2, 3)}


def test_the_normalisation_of_the_papers_keeps_binary_sets_as_they_are() -> None:
    raw = (torch.rand(30, 12, generator=torch.Generator().manual_seed(0)) < 0.2).float()
    scaled = grb.graph.FeatureScale.fit("arctan", raw).apply(raw)
    adj = random_graph(30, 1, 1).adj
    torch.testing.assert_close(Jaccard().similarity(Graph(adj, scaled)), Jaccard().similarity(Graph(adj, raw)))


def test_pruned_graphs_are_valid_and_weights_go_with_their_edges() -> None:
    graph = random_graph(30, 5, 3)
    pattern = graph.adj.pattern
    weights = (pattern.row_ids.minimum(pattern.indices) * 100 + pattern.row_ids.maximum(pattern.indices)).float()
    left = Cosine(0.3)(Graph(Adjacency(pattern, weights), graph.x)).adj
    assert 0 < left.num_edges < graph.num_edges
    low, high = left.pattern.row_ids.minimum(left.pattern.indices), left.pattern.row_ids.maximum(left.pattern.indices)
    assert left.values is not None and torch.equal(left.values, (low * 100 + high).float())
    torch.testing.assert_close(left.edges(), adjacency_from_edges(left.edges(), 30)[0].edges())


def test_a_part_changes_neither_its_graph_nor_the_nodes() -> None:
    graph = random_graph(20, 4, 5)
    before = graph.fingerprint()
    for part in (Jaccard(0.5), Cosine(0.5), Transform()):
        assert part(graph).n == graph.n
    assert graph.fingerprint() == before


def test_cut_edges_get_no_gradient_and_others_theirs() -> None:
    adj, _ = adjacency_from_edges([[0, 1], [1, 2]], 3)
    values = torch.ones(4, requires_grad=True)
    x = torch.tensor([[1.0, 0], [1, 0.1], [0, -1]], requires_grad=True)
    left = Cosine()(Graph(Adjacency(adj.pattern, values), x))
    assert left.adj.values is not None
    (gradient,) = torch.autograd.grad((left.adj.values * 2).sum(), values)
    assert gradient.tolist() == [2, 2, 0, 0]  # 0-1 and back is left, 1-2 and back is cut
    assert left.x is x


def test_transformations_are_the_published_ones() -> None:
    x = torch.linspace(-3, 3, 13).unsqueeze(1)
    graph = Graph(adjacency_from_edges(np.zeros((2, 0), dtype=np.int64), 13)[0], x)
    expected = {
        "arctan": [2 * math.atan(v) / math.pi for v in x.flatten().tolist()],
        "tanh": [math.tanh(v) for v in x.flatten().tolist()],
        "sigmoid": [2 / (1 + math.exp(-v)) - 1 for v in x.flatten().tolist()],
        "unit": [0.0 if v == 0 else math.copysign(1, v) for v in x.flatten().tolist()],
    }
    for function, values in expected.items():
        assert dense(Transform(function)(graph).x).flatten().tolist() == pytest.approx(values, abs=1e-6)  # type: ignore[arg-type]


def test_bad_values_are_refused() -> None:
    with pytest.raises(DataError, match="threshold is 1.5, but a similarity is between 0 and 1"):
        Jaccard(1.5)
    with pytest.raises(DataError, match="function is 'cosine', but arctan, tanh, sigmoid, unit are known"):
        Transform("cosine")  # type: ignore[arg-type]
    assert issubclass(Jaccard, Pruning) and Jaccard().threshold == 0.01
