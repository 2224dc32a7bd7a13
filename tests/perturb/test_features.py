from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from scipy.stats import kstest

from grb.errors import DataError
from grb.graph import CSR, dense
from grb.perturb import NodeDeg, NoNodeFtrs, RandFtrs
from grb.perturb.base import Streams
from perturb.graphs import collection_of, collections, few, generator, graph_of


@few
@given(collections())
def test_constant_features_are_one_column_of_ones(graph) -> None:
    assert torch.equal(NoNodeFtrs()(graph).x, torch.ones(graph.n, 1))


@few
@given(collections(least=1))
def test_degrees_of_a_collection_have_columns_up_to_the_largest_of_all_graphs(graph) -> None:
    x = NodeDeg()(graph).x
    assert x.shape == (graph.n, int(graph.adj.degrees.max()) + 1)
    assert x.argmax(1).tolist() == graph.adj.degrees.tolist()
    assert (x.sum(1) == 1).all() and (x.max(1).values == 1).all()


def test_degrees_of_a_single_graph_have_a_column_for_each_that_occurs() -> None:
    star = nx.star_graph(5)
    star.add_node("alone, in the middle of the order")
    star.add_edge(6, 7)
    star.add_node("alone, at the end")  # a row of zeros in GTaxoGym
    graph = graph_of(star)
    expected = np.eye(3)[[2, 1, 1, 1, 1, 1, 0, 1, 1, 0]]
    assert NodeDeg()(graph).x.tolist() == expected.tolist()
    assert NodeDeg(encoding="range")(graph).x.shape[1] == 6


def test_large_degrees_share_a_column_under_a_cap() -> None:
    graph = collection_of([nx.star_graph(30), nx.star_graph(9)])
    x = NodeDeg(cap=4)(graph).x
    assert x.shape[1] == 5 and x[0, 4] == x[31, 4] == 1


def test_sparse_degrees_are_the_same_matrix() -> None:
    graph = collection_of([nx.star_graph(30), nx.path_graph(3)])
    sparse = NodeDeg(sparse=True)(graph).x
    assert isinstance(sparse, CSR)
    assert torch.equal(dense(sparse), NodeDeg(sparse=False)(graph).x)


def test_wide_degrees_are_sparse_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.perturb.features.DENSE", 100)
    assert isinstance(NodeDeg()(graph_of(nx.star_graph(60)), None).x, torch.Tensor) is False
    assert isinstance(NodeDeg()(graph_of(nx.star_graph(10)), None).x, torch.Tensor)


def test_random_features_are_uniform_and_differ_between_graphs() -> None:
    graph = collection_of([nx.path_graph(400), nx.path_graph(400)])
    x = RandFtrs()(graph, generator()).x.flatten()
    assert x.shape == (800,) and x.abs().max() <= 1
    assert kstest(x.numpy(), "uniform", args=(-1, 2)).pvalue > 0.01
    assert (x[:400] != x[400:]).all()
    assert abs(np.corrcoef(x[:400], x[400:])[0, 1]) < 0.15


def test_compat_gives_node_i_of_every_graph_the_same_number() -> None:
    graph = collection_of([nx.path_graph(7), nx.path_graph(4)])
    x = RandFtrs(compat="gtaxogym")(graph, generator()).x
    assert torch.equal(x[:4], x[7:]) and len(x[:7].unique()) == 7


def test_a_graph_has_the_same_numbers_whatever_stands_behind_it() -> None:
    one = collection_of([nx.path_graph(5), nx.path_graph(3)])
    other = collection_of([nx.path_graph(5), nx.complete_graph(9), nx.path_graph(2)])
    assert torch.equal(RandFtrs()(one, generator(4)).x[:5], RandFtrs()(other, generator(4)).x[:5])


def test_streams_are_uniform_for_every_graph_place_and_salt() -> None:
    count = 5000
    zeros, numbers = np.zeros(count, dtype=np.int64), np.arange(count)
    streams = Streams(3)
    for values in (
        streams.uniform(zeros, numbers),
        streams.uniform(numbers, zeros),
        np.concatenate([streams.uniform(zeros[:1], zeros[:1], salt) for salt in range(2000)]),
        np.concatenate([Streams(key).uniform(zeros[:1], zeros[:1]) for key in range(2000)]),
    ):
        assert kstest(values, "uniform").pvalue > 0.01
        assert abs(np.corrcoef(values[1:], values[:-1])[0, 1]) < 0.06
    pairs = streams.uniform(zeros, numbers), streams.uniform(zeros, numbers, 1), streams.uniform(zeros + 1, numbers)
    assert np.abs(np.corrcoef(pairs) - np.eye(3)).max() < 0.05


def test_bad_settings_are_refused() -> None:
    with pytest.raises(DataError, match="encoding is 'onehot'"):
        NodeDeg(encoding="onehot")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="cap is 0"):
        NodeDeg(cap=0)
    with pytest.raises(DataError, match="compat is 'old'"):
        RandFtrs(compat="old")  # type: ignore[arg-type]
