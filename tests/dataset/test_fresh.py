from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.attack.build import default_threat_model
from grb.dataset import Dataset, load_dataset
from grb.dataset.fresh import _balanced, fresh
from grb.dataset.raw_arrays import RawArrays
from grb.errors import DataError
from helpers import needs_grb_cora


def caves(count: int = 30, size: int = 6, classes: int = 3) -> RawArrays:
    """Cliques of one class each, in a ring."""
    graph = nx.connected_caveman_graph(count, size)
    y = np.repeat(np.arange(count) % classes, size)
    return RawArrays("caves", count * size, np.array(graph.edges).T, y, x=np.ones((count * size, 2), dtype=np.float32))


def test_the_test_graph_shares_neither_nodes_nor_edges_with_the_training_graph() -> None:
    dataset = Dataset.from_raw(fresh(caves()))
    test = torch.zeros(dataset.num_nodes, dtype=torch.bool)
    test[dataset.split.test["full"]] = True
    pattern = dataset.graph.adj.pattern
    assert torch.equal(test[pattern.row_ids.long()], test[pattern.indices.long()])
    known = torch.cat([dataset.split.train, dataset.split.val])
    assert not test[known].any() and len(known) + int(test.sum()) == dataset.num_nodes


def test_communities_are_cut_off_as_a_whole_and_classes_stay_balanced() -> None:
    raw = caves()
    split = fresh(raw).splits[0]
    test = np.concatenate([split[name] for name in ("easy", "medium", "hard")])
    inside = np.isin(np.arange(raw.n), test).reshape(30, 6)
    assert np.mean(inside.all(1) | ~inside.any(1)) > 0.9  # Louvain may give the node that links two cliques to either
    shares = np.bincount(raw.y[test], minlength=3) / len(test)
    assert np.abs(shares - 1 / 3).max() < 0.1 and 0.2 < len(test) / raw.n < 0.4


def test_harder_targets_have_more_neighbours_inside_the_test_graph() -> None:
    dataset = load_dataset("synth-cora-fresh")
    degrees = dataset.graph.adj.degrees
    easy, medium, hard = (degrees[dataset.split.test[name]].float() for name in ("easy", "medium", "hard"))
    assert easy.max() <= medium.min() and medium.max() <= hard.min()


def test_equal_seeds_give_equal_graphs_and_others_do_not() -> None:
    first, again, other = (Dataset.from_raw(fresh(caves(), seed=seed)).fingerprint() for seed in (0, 0, 1))
    assert first == again != other


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), min_size=4, max_size=40))
def test_no_single_move_of_a_community_brings_the_classes_nearer(pieces: list[tuple[int, int]]) -> None:
    numbers = np.repeat(np.arange(len(pieces)), [size for size, _ in pieces])
    y = np.repeat([label for _, label in pieces], [size for size, _ in pieces])
    inside = _balanced(numbers, y, 0.3)
    classes = np.unique(y)
    wanted = {label: round(0.3 * float((y == label).sum())) for label in classes}

    def distance(mask: np.ndarray) -> int:
        return sum(abs(wanted[label] - int((mask & (y == label)).sum())) for label in classes)

    found = distance(inside)
    for number in range(len(pieces)):
        moved = np.where(numbers == number, ~inside, inside)
        assert distance(moved) >= found


def test_a_collection_and_several_labels_have_no_fresh_graph() -> None:
    with pytest.raises(DataError, match="a single graph with one class per node is needed"):
        fresh(RawArrays("two", 4, np.zeros((2, 0), dtype=np.int64), np.array([0, 1]), sizes=[2, 2]))


def test_a_graph_of_one_community_is_refused() -> None:
    clique = np.array(nx.complete_graph(8).edges).T
    with pytest.raises(DataError, match="too few communities"):
        fresh(RawArrays("clique", 8, clique, np.zeros(8, dtype=np.int64)))


def test_a_fresh_graph_keeps_the_limits_of_its_origin() -> None:
    dataset = load_dataset("synth-cora-fresh")
    threat = default_threat_model("injection", dataset, "full")
    assert (threat.nodes, threat.edges_per_node) == (60, 20) and dataset.synthetic


@needs_grb_cora
def test_the_fresh_graph_of_grb_cora_has_balanced_classes() -> None:
    dataset = load_dataset("grb-cora-fresh")
    test, train = (np.bincount(dataset.labels[ids]) / len(ids) for ids in (dataset.index_test, dataset.index_train))
    assert np.abs(test - train).max() < 0.03 and 750 < dataset.num_test < 850
