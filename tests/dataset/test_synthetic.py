from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grb.dataset import Dataset, load_dataset, synthetic
from grb.dataset.synthetic import PINNED, RECIPES, Arrays, Recipe, fingerprint, generate, make
from grb.errors import DataError, UnknownName

TESTS = ("index_test_easy", "index_test_medium", "index_test_hard")


@pytest.fixture(scope="module", params=sorted(RECIPES))
def named(request) -> tuple[str, Arrays]:
    return request.param, generate(request.param)


@pytest.fixture(scope="module")
def cora() -> Arrays:
    return generate("synth-cora")


def adjacency(arrays: Arrays) -> sp.csr_matrix:
    n = len(arrays.labels)
    return sp.csr_matrix((np.ones(len(arrays.indices)), arrays.indices, arrays.indptr), shape=(n, n))


def edge_homophily(arrays: Arrays) -> float:
    left = np.repeat(np.arange(len(arrays.labels)), np.diff(arrays.indptr))
    return float((arrays.labels[left] == arrays.labels[arrays.indices]).mean())


def assert_simple(arrays: Arrays, edges: int) -> None:
    adj = adjacency(arrays)
    dense_free = adj.copy()
    dense_free.sum_duplicates()
    assert adj.nnz == dense_free.nnz == 2 * edges
    assert (adj != adj.T).nnz == 0
    assert adj.diagonal().sum() == 0
    assert adj.has_sorted_indices


def test_graph_is_simple_and_has_the_exact_size(named):
    name, arrays = named
    recipe = RECIPES[name]
    assert_simple(arrays, recipe.edges)
    assert arrays.features.shape == (recipe.nodes, recipe.features)
    assert set(arrays.labels) == set(range(len(recipe.shares)))
    assert (np.diff(arrays.indptr) == 0).sum() == recipe.isolated


def test_types(named):
    _, arrays = named
    for field in dataclasses.fields(arrays):
        array = getattr(arrays, field.name)
        assert array.dtype == (np.float32 if field.name == "features" else np.int64), field.name
        assert array.flags.c_contiguous


def test_split_holds_every_node_once(named):
    _, arrays = named
    parts = [arrays.index_train, arrays.index_val, *(getattr(arrays, name) for name in TESTS)]
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(arrays.labels)))


def test_classes_are_in_every_part_that_models_need(named):
    _, arrays = named
    classes = set(arrays.labels)
    assert set(arrays.labels[arrays.index_train]) == set(arrays.labels[arrays.index_val]) == classes


def test_synth_cora_has_the_numbers_of_grb_cora(cora):
    assert len(cora.index_train) == 1608
    assert len(cora.index_val) == 268
    assert [len(getattr(cora, name)) for name in TESTS] == [268] * 3
    degrees = np.diff(cora.indptr)
    assert (np.diff(cora.indptr)[cora.index_test_easy] > 0).all()
    means = [degrees[getattr(cora, name)].mean() for name in TESTS]
    assert means == pytest.approx([1.53, 2.96, 5.23], abs=0.15)
    assert edge_homophily(cora) == pytest.approx(0.813, abs=0.01)
    assert np.sort(np.bincount(cora.labels) / 2680) == pytest.approx(
        [0.066, 0.081, 0.11, 0.13, 0.154, 0.157, 0.30], abs=0.02
    )


def test_synth_cora_has_the_triangles_of_grb_cora(cora):
    adj = adjacency(cora)
    degrees = np.diff(cora.indptr)
    transitivity = (adj @ adj).multiply(adj).sum() / (degrees * (degrees - 1)).sum()
    assert transitivity == pytest.approx(0.094, abs=0.01)


def test_synth_cora_features_have_the_range_of_grb_cora(cora):
    assert cora.features.min() == pytest.approx(-2.30)
    assert cora.features.max() == pytest.approx(2.40)
    assert cora.features.std() == pytest.approx(0.22, abs=0.01)
    standard = (cora.features - cora.features.mean()) / cora.features.std()
    assert np.abs(2 / np.pi * np.arctan(standard)).max() == pytest.approx(0.94, abs=0.005)


def test_features_alone_reach_two_thirds_by_nearest_centroid(cora):
    x = np.arctan((cora.features - cora.features.mean()) / cora.features.std())
    train, test = cora.index_train, np.concatenate([getattr(cora, name) for name in TESTS])
    centroids = np.stack([x[train][cora.labels[train] == label].mean(axis=0) for label in range(7)])
    distances = ((x[test, None] - centroids) ** 2).sum(axis=2)
    assert 0.62 <= (distances.argmin(axis=1) == cora.labels[test]).mean() <= 0.70


def test_features_are_rounded_so_that_the_hash_does_not_depend_on_blas(cora):
    scaled = cora.features.astype(np.float64) * 1e4
    assert np.abs(scaled - np.rint(scaled)).max() < 1e-2  # what float32 leaves of 4 decimals


def test_a_last_bit_of_difference_in_the_matrix_product_does_not_change_the_hash(monkeypatch):
    normal = synthetic._normal
    monkeypatch.setattr(synthetic, "_normal", lambda *args: normal(*args) * (1 + 4 * np.finfo(float).eps))
    assert fingerprint(make(RECIPES["synth-tiny"])) == PINNED["synth-tiny"]


def test_names_and_pins_agree():
    assert set(PINNED) == set(RECIPES)


def test_unknown_name_is_refused_with_a_hint():
    with pytest.raises(UnknownName, match="synth-cora"):
        generate("synth-corra")


def test_arrays_that_differ_from_the_pin_are_refused(monkeypatch):
    monkeypatch.setitem(PINNED, "synth-tiny", "0" * 64)
    with pytest.raises(DataError, match="synth-tiny came out with sha256 .* pinned"):
        generate("synth-tiny")


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Arrays)])
def test_fingerprint_sees_every_array(field):
    arrays = make(RECIPES["synth-tiny"])
    changed = getattr(arrays, field).copy()
    changed.flat[0] += 1
    assert fingerprint(dataclasses.replace(arrays, **{field: changed})) != fingerprint(arrays)


def test_another_seed_gives_another_graph():
    recipe = RECIPES["synth-tiny"]
    assert fingerprint(make(dataclasses.replace(recipe, seed=recipe.seed + 1))) != PINNED["synth-tiny"]


def test_streams_are_separate():
    recipe = RECIPES["synth-tiny"]
    base = make(recipe)
    other = make(dataclasses.replace(recipe, features=5, relabelled=0.9))
    for name in ("indptr", "indices", "index_train", *TESTS):
        assert np.array_equal(getattr(base, name), getattr(other, name)), name


@settings(max_examples=60)
@given(
    st.integers(10, 60),
    st.integers(0, 60),
    st.integers(1, 5),
    st.floats(0, 1),
    st.floats(0, 1),
    st.integers(0, 3),
    st.integers(0, 2**31),
)
def test_any_recipe_gives_an_exact_simple_graph_or_a_data_error(n, m, classes, homophily, closure, isolated, seed):
    shares = tuple(1.0 for _ in range(classes))
    recipe = Recipe(n, m, 3, shares, seed, homophily, closure=closure, isolated=isolated, rank=6, heaviest=8)
    try:
        arrays = make(recipe)
    except DataError as error:
        assert "edges fit" in str(error)
        return
    assert_simple(arrays, m)
    assert (np.diff(arrays.indptr) == 0).sum() >= isolated


def test_a_graph_that_cannot_hold_the_edges_is_refused():
    with pytest.raises(DataError, match="of 50 edges fit a graph of 10 connected nodes"):
        make(Recipe(nodes=10, edges=50, features=2, shares=(1.0,), seed=0, homophily=1.0, rank=2))


def test_one_community_has_no_outside():
    arrays = make(Recipe(nodes=100, edges=150, features=2, shares=(1.0,), seed=0, homophily=0.0, rank=2))
    assert np.diff(arrays.indptr).max() < 60  # without care every outside pick would be the last node


def test_the_collection_is_what_it_was() -> None:
    dataset = load_dataset("synth-graphs", mode="full")
    assert dataset.fingerprint() == "3daba6920bb8f263cf778cff724e3b2067ddeadb43dd56d2d26df0c4cde1621e"
    assert dataset.fingerprint() == Dataset("synth-graphs").fingerprint()
    assert dataset.synthetic and dataset.num_items == 200 and dataset.num_classes == 2
    assert dataset.scheme is not None and dataset.scheme.description.startswith("10 stratified folds")


def test_classes_of_the_collection_differ_in_edges_and_not_in_types() -> None:
    graph = load_dataset("synth-graphs").graph
    assert isinstance(graph.x, Tensor) and graph.y is not None and graph.ptr is not None
    types, owner = graph.x.argmax(1), graph.owner
    ends = graph.adj.edges()
    alike = (types[ends[0]] == types[ends[1]]).double()
    of_edges = graph.y[owner[ends[0]]]
    assert alike[of_edges == 0].mean() > alike[of_edges == 1].mean() + 0.2
    shares = torch.stack([graph.x[graph.y[owner] == label].mean(0) for label in (0, 1)])
    assert (shares[0] - shares[1]).abs().max() < 0.05
    degrees = [graph.adj.degrees[graph.y[owner] == label].double().mean() for label in (0, 1)]
    assert abs(degrees[0] - degrees[1]) < 0.05
