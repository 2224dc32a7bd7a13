from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks.scalable import SIZES, named_graph, scale_graph
from hypothesis import given, settings
from hypothesis import strategies as st

from grb.dataset.synthetic import Arrays, fingerprint
from grb.errors import DataError, UnknownName


def homophily_of(arrays: Arrays) -> float:
    left = np.repeat(np.arange(len(arrays.labels)), np.diff(arrays.indptr))
    return float((arrays.labels[left] == arrays.labels[arrays.indices]).mean())


def assert_simple(arrays: Arrays, nodes: int, edges: int) -> None:
    left = np.repeat(np.arange(nodes), np.diff(arrays.indptr))
    pairs = left * nodes + arrays.indices
    assert len(arrays.labels) == nodes
    assert len(pairs) == 2 * edges
    assert (np.diff(pairs) > 0).all()  # sorted, no duplicates
    assert (left != arrays.indices).all()
    assert np.array_equal(np.sort(arrays.indices * nodes + left), pairs)  # symmetric


@settings(max_examples=100)
@given(
    nodes=st.integers(10, 400),
    mean=st.floats(0, 12),
    features=st.integers(1, 40),
    classes=st.integers(1, 9),
    homophily=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_counts_are_exact_or_refused(nodes, mean, features, classes, homophily, seed):
    edges = min(int(nodes * mean / 2), nodes * (nodes - 1) // 2)
    try:
        arrays = scale_graph(nodes, edges, features, classes, seed, homophily=homophily)
    except DataError as error:
        assert "edges fit" in str(error)
        assert mean > 1
        return
    assert_simple(arrays, nodes, edges)
    assert arrays.features.shape == (nodes, features)
    assert arrays.features.dtype == np.float32
    assert np.isfinite(arrays.features).all()
    assert arrays.labels.max() < classes


@pytest.mark.parametrize("name", ["cora", "citeseer"])
def test_named_sizes_are_exact(name):
    size = SIZES[name]
    arrays = named_graph(name)
    assert_simple(arrays, size.nodes, size.edges)
    assert arrays.features.shape[1] == size.features
    assert len(np.unique(arrays.labels)) == size.classes


@pytest.mark.slow
@pytest.mark.parametrize("name", ["flickr", "aminer", "reddit"])
def test_large_named_sizes_are_exact(name):
    size = SIZES[name]
    arrays = named_graph(name)
    assert_simple(arrays, size.nodes, size.edges)
    assert arrays.features.shape[1] == size.features
    assert homophily_of(arrays) == pytest.approx(size.homophily, abs=0.03)


def test_equal_seed_equal_arrays_and_other_seed_other_arrays():
    first, second, other = (fingerprint(scale_graph(500, 1500, 8, 4, seed)) for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize("asked", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_homophily_is_near_what_was_asked(asked):
    assert homophily_of(scale_graph(5000, 20_000, 2, 5, 0, homophily=asked)) == pytest.approx(asked, abs=0.03)


def test_degrees_have_a_heavy_tail_and_no_node_is_left_alone():
    degrees = np.sort(np.diff(scale_graph(20_000, 80_000, 1, 5, 0).indptr))
    assert degrees[0] >= 1
    assert degrees[-1] > 15 * degrees.mean()  # a Poisson graph of mean 8 ends near 2.5 times its mean
    assert degrees[-200:].sum() > 0.08 * degrees.sum()  # the busiest hundredth; 0.02 in a Poisson graph


def test_a_smaller_exponent_gives_heavier_hubs():
    light, heavy = (np.diff(scale_graph(5000, 20_000, 1, 5, 0, tail=tail).indptr) for tail in (3.0, 2.0))
    assert np.sort(heavy)[-50:].sum() > np.sort(light)[-50:].sum()


def test_features_tell_the_classes_apart():
    arrays = scale_graph(2000, 6000, 64, 4, 0)
    x, train, test = arrays.features, arrays.index_train, arrays.index_val
    centroids = np.stack([x[train][arrays.labels[train] == label].mean(axis=0) for label in range(4)])
    accuracy = (((x[test, None] - centroids) ** 2).sum(axis=2).argmin(axis=1) == arrays.labels[test]).mean()
    assert accuracy > 0.6


def test_communities_hold_together():
    arrays = scale_graph(3000, 9000, 1, 3, 0, homophily=1.0)
    adj = sp.csr_matrix((np.ones(len(arrays.indices)), arrays.indices, arrays.indptr), shape=(3000, 3000))
    count, part = sp.csgraph.connected_components(adj)
    assert count < 30
    for label in range(3):  # no inter-class edge, and one giant component per class
        assert np.bincount(part[arrays.labels == label]).max() > 0.95 * (arrays.labels == label).sum()


def test_memory_stays_within_a_small_multiple_of_the_result():
    tracemalloc.start()
    try:
        arrays = scale_graph(30_000, 150_000, 128, 5, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * sum(array.nbytes for array in vars(arrays).values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": 0}, "classes"),
        ({"nodes": 9}, "cannot split 9 nodes"),
        ({"edges": -1}, "between 0 and"),
        ({"edges": 10**9}, "between 0 and"),
        ({"features": 0}, "at least 1 feature"),
        ({"classes": 0}, "classes"),
        ({"homophily": 1.5}, "homophily"),
        ({"homophily": float("nan")}, "homophily"),
    ],
)
def test_numbers_out_of_range_are_refused(change, message):
    numbers = {"nodes": 100, "edges": 20, "features": 3, "classes": 2, "seed": 0}
    with pytest.raises(DataError, match=message):
        scale_graph(**{**numbers, **change})


def test_unknown_size_is_refused_with_a_hint():
    with pytest.raises(UnknownName, match="reddit"):
        named_graph("redit")
