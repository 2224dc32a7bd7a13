"""Pro-GNN: its steps by hand, its weights in the box and tied to the nodes, memory and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import grb
from attack.contexts import graph_of, random_graph
from grb.defense.prognn import MOST_DENSE, ProGNN
from grb.defense.structure import (
    DenseStructure,
    SparseStructure,
    Weighting,
    most_similar,
    normalised,
    shrink_singular_values,
    upper,
)
from grb.errors import DataError
from grb.evaluator.blind import Question, blind_checks
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.graph.edit import sparse_features
from grb.model.base import EvaluationView, observing, predict
from grb.pipeline.recipe import recipe_from_dict
from grb.trainer import load_model, save_model

NOTHING = Weighting(sparsity=0, low_rank=0, task=0, smoothness=0, lr=0.1)
FORMS = ("dense", "sparse")


def no_task(op: Any) -> Tensor:
    raise AssertionError("the task has no weight")


def towards(pair: tuple[int, int]) -> Any:
    """A task whose loss falls with the weight of a pair."""

    def task(op: Any) -> Tensor:
        one = torch.zeros(op.shape[1], 1)
        one[pair[1]] = 1
        return -(op @ one)[pair[0], 0]

    return task


def weights_of(structure: DenseStructure | SparseStructure, n: int) -> Tensor:
    """All weights as a matrix."""
    if isinstance(structure, DenseStructure):
        return structure.matrix
    matrix = torch.zeros(n, n)
    matrix[structure.pairs[0], structure.pairs[1]] = structure.weights
    return matrix + matrix.T


def both(graph: Graph, how: Weighting, rank: int = 30) -> tuple[DenseStructure, SparseStructure]:
    """Both forms over all pairs of a graph."""
    pairs = upper(graph.n).nonzero().T
    start = graph.adj.has(pairs).float()
    return DenseStructure(graph.adj, graph.x, how), SparseStructure(pairs, start, graph.x, how, rank)


def test_without_any_strength_the_graph_stays_as_it_is() -> None:
    graph = random_graph(12)
    for structure in both(graph, NOTHING):
        before = structure.weights.clone()
        for _ in range(3):
            structure.step(no_task)
        assert torch.equal(structure.weights, before)


def test_the_proximal_step_shrinks_singular_values() -> None:
    u = torch.nn.functional.normalize(torch.randn(6, generator=torch.Generator().manual_seed(0)), dim=0)
    for sign in (1.0, -1.0):
        matrix = sign * 2.5 * torch.outer(u, u)
        torch.testing.assert_close(shrink_singular_values(matrix, 1.0), sign * 1.5 * torch.outer(u, u))
        torch.testing.assert_close(shrink_singular_values(matrix, 3.0), torch.zeros(6, 6), atol=1e-6, rtol=0)


@pytest.mark.parametrize("squared", [False, True])
def test_sparse_weights_of_all_pairs_take_the_steps_of_the_dense_matrix(squared: bool) -> None:
    graph = random_graph(20, features=4)
    how = Weighting(sparsity=0.02, low_rank=1.5, task=3.0, smoothness=0.05, lr=0.05, squared=squared)
    dense, sparse = both(graph, how)
    for _ in range(6):
        dense.step(towards((0, 1)))
        sparse.step(towards((0, 1)))
        torch.testing.assert_close(weights_of(sparse, 20), dense.matrix, rtol=1e-3, atol=1e-4)
    assert not torch.allclose(dense.matrix, dense.start, atol=0.05)


def test_a_truncated_spectrum_is_exact_for_a_graph_of_that_rank_and_never_collapses() -> None:
    # a complete bipartite graph has two singular values
    star = graph_of([(a, b) for a in range(3) for b in range(3, 7)], 7, torch.eye(7))
    pairs = upper(7).nonzero().T
    start = star.adj.has(pairs).float()
    exact = shrink_singular_values(weights_of(both(star, NOTHING)[0], 7), 0.5)
    truncated = SparseStructure(pairs, start, star.x, NOTHING, 2).shrunk(start, 0.5)
    torch.testing.assert_close(truncated, exact[upper(7)], atol=1e-5, rtol=1e-4)
    # eigenvalues of one size and different signs, in clusters
    ring = graph_of([(node, (node + 1) % 60) for node in range(60)], 60)
    for graph in (random_graph(40), ring):
        edges = graph.adj.edges()
        ones = torch.ones(edges.shape[1])
        kept = SparseStructure(edges, ones, graph.x, NOTHING, 3).shrunk(ones, 0.01)
        assert float(kept.min()) > 0.9 and float(kept.max()) <= 1 + 1e-5


def test_weights_stay_in_the_box_and_symmetric() -> None:
    graph = random_graph(15)
    for structure in both(graph, Weighting(sparsity=0.1, low_rank=2.0, task=50.0, smoothness=1.0, lr=0.2), rank=4):
        for _ in range(5):
            structure.step(towards((0, 1)))
            matrix = weights_of(structure, 15)
            assert float(matrix.min()) >= 0 and float(matrix.max()) <= 1
            assert torch.equal(matrix.diagonal(), torch.zeros(15))
            torch.testing.assert_close(matrix, matrix.T)


def test_the_gradient_of_the_smoothness_is_that_of_the_normalised_laplacian() -> None:
    graph = random_graph(9, features=3)
    how = Weighting(sparsity=0, low_rank=0, task=0, smoothness=1.0, lr=0.01)
    leaf = both(graph, how)[0].start.clone().requires_grad_()
    degrees = leaf.sum(1)
    scale = torch.diag((degrees + 1e-3).rsqrt())
    assert isinstance(graph.x, Tensor)
    torch.trace(graph.x.T @ scale @ (torch.diag(degrees) - leaf) @ scale @ graph.x).backward()
    assert leaf.grad is not None
    slope = (leaf.grad + leaf.grad.T) / 2
    expected = (leaf.detach() - 0.01 * slope).clamp(0, 1).fill_diagonal_(0)
    for structure in both(graph, how):
        structure.step(no_task)
        torch.testing.assert_close(weights_of(structure, 9), expected, rtol=1e-4, atol=1e-5)


def test_most_similar_nodes_are_found_once_per_pair() -> None:
    x = torch.tensor([[1.0, 0.0], [2.0, 0.1], [0.0, 1.0], [0.1, 3.0]])
    assert most_similar(x, 1).tolist() == [[0, 2], [1, 3]]
    assert most_similar(sparse_features(x), 1).tolist() == [[0, 2], [1, 3]]
    assert most_similar(x, 9).shape == (2, 6)


# the model


@pytest.fixture(scope="module")
def dataset() -> grb.Dataset:
    return grb.load_dataset("synth-tiny")


@pytest.fixture(scope="module", params=["dense", "sparse", "candidates"])
def model(request: pytest.FixtureRequest, dataset: grb.Dataset) -> ProGNN:
    chosen: dict[str, Any] = {"parametrisation": request.param, "rank": 8}
    if request.param == "candidates":
        chosen = {"parametrisation": "sparse", "rank": 8, "candidates": 2, "alpha": 0.0, "gamma": 30.0, "beta": 0.1}
    made = grb.train("pro-gnn", dataset, seed=0, epochs=30, train_mode="transductive", graph_lr=0.05, **chosen)
    assert isinstance(made, ProGNN)
    return made


def test_training_learns_weights_and_a_file_gives_them_back(
    model: ProGNN, dataset: grb.Dataset, tmp_path: Path
) -> None:
    assert model.learnt_pairs == len(model.weights) > 0
    assert bool((model.weights[model.linked] < 0.999).any())
    assert model.num_parameters == sum(
        p.numel() for p in ProGNN(dataset.num_features, dataset.num_classes).parameters()
    )
    loaded = load_model(save_model(model, tmp_path / "model.safetensors"))
    assert torch.equal(predict(loaded, dataset.graph), predict(model, dataset.graph))
    assert not torch.allclose(
        predict(model.relaxations()["unweighted"], dataset.graph), predict(model, dataset.graph), atol=1e-4
    )


def weights_on(model: ProGNN, graph: Graph) -> Tensor:
    """What every pair of a graph counts, [n, n]."""
    if model.parametrisation == "dense":
        return model._matrix(graph.adj, model.trained_ids(graph.n))
    adj = model._weighted(graph.adj, model.trained_ids(graph.n))
    matrix = torch.zeros(graph.n, graph.n)
    assert adj.values is not None
    matrix[adj.pattern.row_ids.long(), adj.pattern.indices.long()] = adj.values
    return matrix


def test_an_added_edge_counts_in_full_and_a_removed_one_not_at_all(model: ProGNN, dataset: grb.Dataset) -> None:
    graph = dataset.graph
    before = weights_on(model, graph)
    torch.testing.assert_close(before, before.T)
    drop = graph.adj.edges()[:, :3]
    add = torch.tensor([[0, 1], [graph.n - 1, graph.n - 2]])
    add = add[:, ~graph.adj.has(add)]
    edit = GraphEdit(n=graph.n, add=add, drop=drop)
    after = weights_on(model, graph.apply(edit))
    assert torch.equal(after[add[0], add[1]], torch.ones(add.shape[1]))
    assert torch.equal(after[drop[0], drop[1]], torch.zeros(3))
    touched = torch.zeros_like(before, dtype=torch.bool)
    for pairs in (add, drop):
        touched[pairs[0], pairs[1]] = touched[pairs[1], pairs[0]] = True
    torch.testing.assert_close(after[~touched], before[~touched])


def test_renumbered_nodes_have_the_same_weights_if_they_are_told(model: ProGNN, dataset: grb.Dataset) -> None:
    graph = dataset.graph
    order = torch.randperm(graph.n, generator=torch.Generator().manual_seed(1))
    view = EvaluationView.of(order[:5], graph.n)
    moved = EvaluationView(view.known[order], view.keys[order], order)
    told = predict(model, graph.subgraph(order), moved)
    torch.testing.assert_close(told, predict(model, graph)[order], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(predict(model, graph.subgraph(order)), predict(model, graph)[order], atol=1e-3)


def test_blind_checks_pass_and_only_our_own_model_hears_which_node_is_which(
    model: ProGNN, dataset: grb.Dataset, tmp_path: Path
) -> None:
    path = save_model(model, tmp_path / "model.safetensors")
    edit = grb.run_attack("dice", None, dataset, knowledge="transfer").edit
    known, generator = torch.zeros(dataset.num_nodes, dtype=torch.bool), torch.Generator().manual_seed(0)
    assert blind_checks(lambda: load_model(path), dataset, [edit], known, generator) == []
    asked = Question.of(dataset.graph, known, generator)
    assert asked.for_model(model).view.trained_ids is not None
    assert asked.for_model(grb.train("gcn", dataset, epochs=1)).view.trained_ids is None

    class Theirs(ProGNN):
        pass

    assert asked.for_model(Theirs(2, 2)).view.trained_ids is None


def test_a_smaller_graph_and_one_of_strangers_get_a_plain_gcn(model: ProGNN, dataset: grb.Dataset) -> None:
    part = dataset.graph.subgraph(torch.arange(50))
    plain = model.relaxations()["unweighted"]
    torch.testing.assert_close(predict(model, part), predict(plain, part))
    strangers = EvaluationView(torch.zeros(dataset.num_nodes, dtype=torch.bool), torch.arange(dataset.num_nodes))
    strangers = EvaluationView(strangers.known, strangers.keys, torch.full((dataset.num_nodes,), -1))
    torch.testing.assert_close(predict(model, dataset.graph, strangers), predict(plain, dataset.graph))


def test_an_injected_node_has_the_edges_it_has(model: ProGNN, dataset: grb.Dataset) -> None:
    edit = grb.run_attack("rnd", None, dataset, knowledge="transfer").edit
    graph = dataset.graph.apply(edit)
    weights = weights_on(model, graph)
    n = dataset.num_nodes
    assert torch.equal(weights[n:].sum(1), graph.adj.degrees[n:].float())
    torch.testing.assert_close(weights[:n, :n], weights_on(model, dataset.graph))


def test_gradients_of_edges_are_those_of_the_weights(model: ProGNN, dataset: grb.Dataset) -> None:
    """A white-box attacker sees a learnt weight as the slope of its edge."""
    from grb.graph import Adjacency

    graph = dataset.graph
    ones = torch.ones(graph.adj.pattern.entries, requires_grad=True)
    op = model.prepare(Adjacency(graph.adj.pattern, ones))
    rows = op @ torch.ones(graph.n, 1)
    (slope,) = torch.autograd.grad(rows.square().sum(), ones)
    assert slope.isfinite().all() and slope.any()


def test_the_same_seed_gives_the_same_weights(dataset: grb.Dataset) -> None:
    chosen: dict[str, Any] = {"epochs": 6, "train_mode": "transductive", "parametrisation": "sparse", "rank": 4}
    first, second = (grb.train("pro-gnn", dataset, seed=3, **chosen) for _ in range(2))
    assert all(
        torch.equal(a, b) for a, b in zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    )


# refusals


def test_inductive_training_is_refused_in_a_sentence(dataset: grb.Dataset) -> None:
    with pytest.raises(DataError, match="nodes that it never met; train it with train_mode 'transductive'"):
        grb.train("pro-gnn", dataset, epochs=2)
    with pytest.raises(DataError, match="add 'train_mode: transductive'"):
        recipe_from_dict(
            {
                "name": "r",
                "dataset": "synth-tiny",
                "defenses": ["pro-gnn"],
                "attacks": ["dice"],
                "scenario": "modification",
            }
        )


def test_a_dense_one_of_a_large_graph_is_refused_and_the_sparse_one_is_chosen() -> None:
    n = MOST_DENSE + 1
    ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    adj, _ = adjacency_from_edges(ring.numpy(), n)
    split = {"train": range(20), "val": range(20, 40), "test": range(40, 60)}
    big = grb.Dataset.from_arrays(adj, torch.eye(n, 3), torch.arange(n) % 2, split=split, name="ring")
    options: dict[str, Any] = {"epochs": 2, "train_mode": "transductive", "rank": 2}
    with pytest.raises(DataError, match=f"takes at most {MOST_DENSE} nodes; choose parametrisation 'sparse'"):
        grb.train("pro-gnn", big, parametrisation="dense", **options)
    model = grb.train("pro-gnn", big, **options)
    assert isinstance(model, ProGNN) and model.parametrisation == "sparse"
    # one weight per edge, and nothing of size n x n
    assert model.learnt_pairs == n and max(value.numel() for value in model.state_dict().values()) == 2 * n


@pytest.mark.parametrize("name", ["pro-gnn+known", "pro-gnn+hash-vote", "pro-gnn-jaccard"])
def test_nothing_goes_around_it(name: str, dataset: grb.Dataset) -> None:
    with pytest.raises(DataError, match="learns weights for the edges of its training graph"):
        grb.train(name, dataset, epochs=2, train_mode="transductive")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"alpha": -1.0}, "finite numbers of at least 0"),
        ({"graph_lr": 0.0}, "above 0 for graph_lr"),
        ({"inner_steps": 0}, "inner_steps is 0"),
        ({"variant": "mine"}, "variant is 'mine'"),
        ({"parametrisation": "half"}, "parametrisation is 'half'"),
    ],
)
def test_settings_out_of_range_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        ProGNN(3, 2, **options)


def test_weights_that_no_training_leaves_are_refused(model: ProGNN, dataset: grb.Dataset) -> None:
    kept = model.weights.clone()
    try:
        model.weights[0] = 2.0
        with pytest.raises(DataError, match="do not fit any graph"):
            predict(model, dataset.graph)
    finally:
        model.weights.copy_(kept)
    strange = EvaluationView(
        torch.ones(dataset.num_nodes, dtype=torch.bool),
        torch.arange(dataset.num_nodes),
        torch.arange(dataset.num_nodes) + 1,
    )
    with pytest.raises(DataError, match="did not have"), observing(model, strange):
        model.prepare(dataset.graph.adj)


def test_dense_normalisation_is_that_of_gcn() -> None:
    graph = random_graph(10)
    from grb.defense.structure import matrix_of
    from grb.graph import normalise

    eye = torch.eye(10)
    torch.testing.assert_close(normalised(matrix_of(graph.adj, torch.float32)) @ eye, normalise.gcn(graph.adj) @ eye)
