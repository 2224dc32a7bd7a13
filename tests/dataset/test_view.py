"""Views: nobody sees what the paper forbids, by construction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse as sp
from torch import Tensor

from grb.dataset import Dataset, View
from grb.errors import DataError, UnknownName
from grb.graph import Graph, adjacency_from_edges
from helpers import needs_grb_cora

N = 40
TRAIN, VAL, EASY, HARD = np.arange(0, 20), np.arange(20, 26), np.arange(26, 33), np.arange(33, 40)
SPLIT = {"train": TRAIN[::-1], "val": VAL, "easy": EASY, "hard": HARD}
TEST = np.r_[EASY, HARD]


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    upper = np.triu(rng.random((N, N)) < 0.2, 1)
    return upper | upper.T, rng.standard_normal((N, 4)), rng.integers(0, 3, N)


def dataset(adj: np.ndarray, x: np.ndarray, y: np.ndarray, **options: Any) -> Dataset:
    return Dataset.from_arrays(sp.csr_matrix(adj.astype(float)), x, y, split=SPLIT, **options)


def same_view(a: View, b: View) -> bool:
    tensors = ("train", "val", "targets", "nodes")
    return a.graph.fingerprint() == b.graph.fingerprint() and all(
        torch.equal(getattr(a, name), getattr(b, name)) for name in tensors
    )


def test_defender_sees_no_test_node() -> None:
    adj, x, y = arrays()
    view = dataset(adj, x, y).defender_view()
    seen = np.r_[TRAIN, VAL]
    assert view.nodes.tolist() == seen.tolist() and view.graph.n == len(seen)
    assert not set(view.nodes.tolist()) & set(TEST.tolist())
    assert len(view.targets) == 0 and view.inductive
    full = np.zeros((len(seen), len(seen)), dtype=bool)
    full[tuple(view.graph.adj.edges().numpy())] = True
    assert (full | full.T == adj[np.ix_(seen, seen)]).all()
    assert isinstance(view.graph.x, Tensor)
    np.testing.assert_allclose(view.graph.x.numpy(), x[seen], rtol=1e-6)
    assert view.labels.tolist() == y[seen].tolist()
    assert view.nodes[view.train].tolist() == TRAIN.tolist() and view.nodes[view.val].tolist() == VAL.tolist()


def changed(what: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same arrays except for something that only concerns test nodes."""
    adj, x, y = (array.copy() for array in arrays())
    rng = np.random.default_rng(1)
    if what == "labels":
        y[TEST] = (y[TEST] + 1) % 3
    elif what == "features":
        x[TEST] = 100 * rng.standard_normal((len(TEST), 4))
    elif what == "edges":
        block = np.triu(rng.random((N, N)) < 0.5, 1)
        block |= block.T
        inside = np.ix_(TEST, np.arange(N))
        adj[inside] = block[inside]
        adj[:, TEST] = adj[TEST, :].T
    elif what == "order":
        order = np.arange(N)
        order[TEST] = rng.permutation(TEST)
        adj, x, y = adj[np.ix_(order, order)], x[order], y[order]
    return adj, x, y


@pytest.mark.parametrize("what", ["labels", "features", "edges", "order"])
def test_defender_view_does_not_depend_on_test_nodes(what: str) -> None:
    before, after = dataset(*arrays()), dataset(*changed(what))
    assert before.fingerprint() != after.fingerprint()
    assert same_view(before.defender_view(), after.defender_view())
    assert before.defender_view().num_classes == after.defender_view().num_classes


def test_training_graph_holds_training_nodes_alone() -> None:
    adj, x, y = arrays()
    view = dataset(adj, x, y).defender_view()
    graph, ids = view.training_graph()
    assert graph.n == len(TRAIN) and ids.tolist() == list(range(len(TRAIN)))
    assert graph.num_edges == np.triu(adj[np.ix_(TRAIN, TRAIN)]).sum()
    assert graph.y is not None and graph.y.tolist() == y[TRAIN].tolist()


@pytest.mark.parametrize("mode", ["easy", "hard", "full"])
def test_attacker_sees_the_whole_graph_and_no_test_label(mode: str) -> None:
    adj, x, y = arrays()
    made = dataset(adj, x, y)
    view = made.attacker_view(mode)
    assert view.graph.n == N and view.graph.num_edges == made.num_edges
    assert view.labels[torch.from_numpy(TEST)].tolist() == [-1] * len(TEST)
    assert view.labels[: len(TRAIN) + len(VAL)].tolist() == y[: len(TRAIN) + len(VAL)].tolist()
    assert sorted(view.targets.tolist()) == {"easy": EASY, "hard": HARD, "full": TEST}[mode].tolist()
    assert made.labels.tolist() == y.tolist()


def test_attacker_view_does_not_depend_on_test_labels() -> None:
    before, after = dataset(*arrays()), dataset(*changed("labels"))
    for mode in ("easy", "hard", "full"):
        assert same_view(before.attacker_view(mode), after.attacker_view(mode))
    assert same_view(before.transductive_view(), after.transductive_view())


def test_attacker_view_takes_the_mode_of_the_dataset() -> None:
    made = dataset(*arrays(), mode="easy")
    assert made.attacker_view().targets.tolist() == EASY.tolist()
    with pytest.raises(UnknownName):
        made.attacker_view("harder")
    with pytest.raises(DataError, match="no medium test set"):
        made.attacker_view("medium")


def test_transductive_view_trains_on_the_whole_graph_without_test_labels() -> None:
    view = dataset(*arrays()).transductive_view()
    graph, ids = view.training_graph()
    assert graph.n == N and sorted(ids.tolist()) == TRAIN.tolist() and not view.inductive
    assert (view.labels[torch.from_numpy(TEST)] == -1).all()


def test_labels_of_several_per_node_are_hidden_too() -> None:
    adj, x, _ = arrays()
    labels = np.random.default_rng(0).integers(0, 2, (N, 4))
    view = dataset(adj, x, labels).attacker_view("full")
    assert (view.labels[torch.from_numpy(TEST)] == -1).all()


def test_a_view_of_a_graph_without_labels_says_so() -> None:
    graph = Graph(adjacency_from_edges([[0], [1]], 2)[0], torch.ones(2, 1))
    none = torch.empty(0, dtype=torch.int64)
    with pytest.raises(DataError, match="no labels"):
        View(graph, none, none, none, torch.arange(2), 2).labels


@needs_grb_cora
def test_views_of_grb_cora() -> None:
    made = Dataset("grb-cora", mode="easy")
    defender, attacker = made.defender_view(), made.attacker_view()
    test = made.with_mode("full").index_test
    assert not torch.isin(defender.nodes, test).any() and defender.graph.n == 1608 + 268
    assert (defender.labels >= 0).all()
    assert (attacker.labels[test] == -1).all() and len(attacker.targets) == 268
