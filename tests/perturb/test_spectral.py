from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

from grb.errors import DataError
from grb.graph import CSR, Graph, Pattern, dense
from grb.perturb import FullyConn, HighPass, LowPass, MidPass, NodeDeg, hard_band, wavelet_bank
from perturb.graphs import collection_of, collections, few, graph_of, networks, nx_of, permuted

BANDS = (LowPass, MidPass, HighPass)


def bands(graph: Graph, **settings) -> list[torch.Tensor]:
    return [dense(band(**settings)(graph).x) for band in BANDS]


@pytest.mark.parametrize("name", ["hard", "wavelet"])
@few
@given(graph=collections())
def test_bands_add_up_to_the_features(name: str, graph: Graph) -> None:
    torch.testing.assert_close(sum(bands(graph, filter=name)), graph.x, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["hard", "wavelet"])
@few
@given(graph=collections())
def test_bands_follow_the_nodes_when_these_change_places(name: str, graph: Graph) -> None:
    moved, nodes = permuted(graph)
    for own, other in zip(bands(graph, filter=name), bands(moved, filter=name), strict=True):
        torch.testing.assert_close(own[nodes], other, rtol=0, atol=1e-4)


@few
@given(graph=collections())
def test_hard_bands_are_orthogonal_projections(graph: Graph) -> None:
    own = bands(graph, filter="hard")
    for place, band in enumerate(own):
        torch.testing.assert_close(hard_band(graph.with_features(band), place), band, rtol=0, atol=1e-4)
        torch.testing.assert_close(
            hard_band(graph.with_features(band), (place + 1) % 3), torch.zeros_like(band), rtol=0, atol=1e-4
        )


def plain_by_count(source: nx.Graph, x: np.ndarray) -> list[np.ndarray]:
    _, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(source).toarray())
    third = source.number_of_nodes() // 3
    parts = (vectors[:, :third], vectors[:, third : 2 * third], vectors[:, 2 * third :])
    return [part @ part.T @ x for part in parts]


def test_bands_of_distinct_eigenvalues_are_thirds_of_the_eigenvectors() -> None:
    source = nx.gnm_random_graph(14, 30, seed=3)
    assert np.diff(np.linalg.eigvalsh(nx.normalized_laplacian_matrix(source).toarray())).min() > 1e-3
    graph = graph_of(source)
    for compat in (None, "gtaxogym"):
        for own, expected in zip(bands(graph, filter="hard", compat=compat), plain_by_count(source, graph.x.numpy())):
            np.testing.assert_allclose(own, expected, atol=1e-5)


def test_collections_are_filtered_graph_by_graph() -> None:
    sources = [nx.gnm_random_graph(n, 2 * n, seed=n) for n in (9, 12, 9, 30)]
    graph = collection_of(sources)
    for place, source in enumerate(sources):
        single = graph.graphs(place, place + 1)
        start, stop = graph.ptr[place : place + 2]
        for own, alone, by_count in zip(bands(graph), bands(single), plain_by_count(source, single.x.numpy())):
            torch.testing.assert_close(own[start:stop], alone, rtol=0, atol=1e-5)
            np.testing.assert_allclose(alone, by_count, atol=1e-5)


def test_equal_eigenvalues_stay_together() -> None:
    """Of a complete graph all but the constant is one eigenspace, which a cut by count splits along any basis."""
    graph = graph_of(nx.complete_graph(9))
    low, mid, high = bands(graph, filter="hard")
    torch.testing.assert_close(low, graph.x.mean(0).expand_as(low), rtol=0, atol=1e-5)
    torch.testing.assert_close(mid, graph.x - graph.x.mean(0), rtol=0, atol=1e-5)
    assert high.abs().max() < 1e-5
    split = bands(graph, filter="hard", compat="gtaxogym")
    assert split[2].abs().max() > 0.1
    moved, nodes = permuted(graph, seed=1)
    assert not torch.allclose(split[1][nodes], bands(moved, filter="hard", compat="gtaxogym")[1], atol=1e-3)


def test_what_varies_nowhere_is_low() -> None:
    graph = graph_of(nx.empty_graph(6))
    low, mid, high = bands(graph, filter="hard")
    torch.testing.assert_close(low, graph.x)
    assert mid.abs().max() == high.abs().max() == 0
    for band in bands(graph, filter="hard", compat="gtaxogym"):  # where nothing is filtered at all
        torch.testing.assert_close(band, graph.x)


def test_two_nodes_have_a_low_and_a_high_band_and_are_left_alone_in_compat() -> None:
    graph = graph_of(nx.path_graph(2))
    low, mid, high = bands(graph, filter="hard")
    torch.testing.assert_close(low, graph.x.mean(0).expand(2, 3), rtol=0, atol=1e-6)
    torch.testing.assert_close(high, graph.x - graph.x.mean(0), rtol=0, atol=1e-6)
    assert mid.abs().max() == 0
    for band in bands(graph, filter="hard", compat="gtaxogym"):
        torch.testing.assert_close(band, graph.x)


@few
@given(source=networks(least=1))
def test_wavelets_equal_dense_powers(source: nx.Graph) -> None:
    graph = graph_of(source)
    degrees = np.maximum([d for _, d in source.degree()], 1)
    a = nx.to_numpy_array(source) / np.sqrt(np.outer(degrees, degrees))
    t = (np.eye(len(a)) + a) / 2
    x = graph.x.double().numpy()
    expected = [t @ t @ x, (t - t @ t) @ x, x - t @ x]
    for own, right in zip(bands(graph), expected, strict=True):
        np.testing.assert_allclose(own, right, atol=1e-5)
    t2 = t @ t
    expected = [t2 @ t2 @ x, (t2 - t2 @ t2) @ x, (t - t2) @ x, x - t @ x]
    for own, right in zip(wavelet_bank(graph, levels=2), expected, strict=True):
        np.testing.assert_allclose(own, right, atol=1e-5)


def test_an_isolated_node_is_a_quarter_low_a_quarter_mid_and_half_high() -> None:
    source = nx.path_graph(4)
    source.add_node("alone")
    graph = graph_of(source)
    for share, band in zip((0.25, 0.25, 0.5), bands(graph, filter="wavelet"), strict=True):
        torch.testing.assert_close(band[4], share * graph.x[4])


def test_sparse_features_stay_sparse_and_have_the_same_wavelets() -> None:
    graph = graph_of(nx.path_graph(40))
    graph = NodeDeg(encoding="range", sparse=True)(
        graph.with_features(CSR(Pattern(torch.arange(41), torch.arange(40), 40), torch.ones(40)))
    )
    wide = graph.with_features(CSR(Pattern(torch.arange(41), torch.arange(40), 40), torch.rand(40)))
    for band in BANDS:
        own = band()(wide).x
        assert isinstance(own, CSR)
        torch.testing.assert_close(dense(own), band()(wide.with_features(dense(wide.x))).x)


def test_complete_graphs_are_filtered_without_their_edges() -> None:
    graph = collection_of([nx.path_graph(5), nx.path_graph(8)])
    full = FullyConn()(graph)
    plain = collection_of([nx.complete_graph(5), nx.complete_graph(8)])
    for own, right in zip(bands(full, filter="wavelet"), bands(plain, filter="wavelet"), strict=True):
        torch.testing.assert_close(own, right)
    assert "pattern" not in full.adj.__dict__
    large = FullyConn()(graph_of(nx.empty_graph(60_000), width=1))
    assert LowPass(filter="wavelet")(large).x.shape == (60_000, 1)


def test_the_family_is_the_papers_unless_told() -> None:
    source = nx.gnm_random_graph(12, 20, seed=0)
    single, many = graph_of(source), collection_of([source])
    assert torch.equal(LowPass()(single).x, LowPass(filter="wavelet")(single).x)
    assert torch.equal(LowPass()(many).x, LowPass(filter="hard")(many).x)


def test_weights_do_not_count() -> None:
    graph = graph_of(nx.path_graph(5))
    weighted = Graph(type(graph.adj)(graph.adj.pattern, torch.rand(8)), graph.x)
    for name in ("hard", "wavelet"):
        assert torch.equal(LowPass(filter=name)(weighted).x, LowPass(filter=name)(graph).x)


def test_too_large_a_graph_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.perturb.spectral.LARGEST", 10)
    with pytest.raises(DataError, match="has 11 nodes.*up to 10; use filter='wavelet'"):
        LowPass(filter="hard")(graph_of(nx.path_graph(11)))
    with pytest.raises(DataError, match="filter is 'soft'"):
        LowPass(filter="soft")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="levels is 0"):
        wavelet_bank(graph_of(nx.path_graph(3)), levels=0)


def test_batches_are_split_where_they_would_be_large(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = collection_of([nx.gnm_random_graph(9, 16, seed=seed) for seed in range(7)])
    whole = bands(graph)
    monkeypatch.setattr("grb.perturb.spectral.BATCH", 200)
    for own, right in zip(bands(graph), whole, strict=True):
        torch.testing.assert_close(own, right)
    assert nx_of(graph).number_of_edges() == 7 * 16
