"""Edge features in a profiling model: torch_geometric's layers, batches, and what a model learns from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from grb.dataset import Dataset
from grb.dataset.splits import Folds
from grb.graph import Graph, adjacency_from_edges
from grb.graph.edge_features import with_edge_features
from grb.model.profiling import build_profiler, profiler
from grb.perturb import build_perturbation
from grb.trainer.batches import Collection
from grb.trainer.profile import fit_profile
from made_collections import edge_index, random_collection
from model.profiling.test_against_pyg import Reference


def with_random_features(graph: Graph, width: int) -> Graph:
    """Features that are the same in both directions."""
    rows = torch.randn(graph.adj.pattern.entries, width, generator=torch.Generator().manual_seed(7))
    return replace(graph, adj=with_edge_features(graph.adj, edge_index(graph), rows)[0])


@pytest.mark.parametrize("collection", [True, False])
def test_edge_features_enter_as_in_torch_geometric(collection: bool) -> None:
    graph = with_random_features(random_collection(graphs=4, seed=3, isolated=True), 3)
    chosen = profiler("gine", collection=collection, width=8)
    generator = torch.Generator().manual_seed(1)
    model = build_profiler(chosen, 5, 3, pool=collection, edge_features=3, generator=generator).double()
    torch.set_default_dtype(torch.float64)
    try:
        reference = Reference("gine", model, 8).double()
    finally:
        torch.set_default_dtype(torch.float32)
    features = graph.adj.features.double()
    adj = replace(graph.adj, features=features)
    ours = model(graph.x.double(), model.prepare(adj), graph.ptr)
    theirs = reference(graph.x.double(), edge_index(graph), graph.owner, features)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    ours.sum().backward()
    theirs.sum().backward()
    edge = model.convs[0].edge
    torch.testing.assert_close(edge.weight.grad, reference.convs[0].lin.weight.grad.T, rtol=1e-7, atol=1e-10)
    assert float(edge.weight.grad.abs().max()) > 0


def test_batches_carry_the_features_of_their_own_edges() -> None:
    graph = with_random_features(random_collection(graphs=6, seed=1), 2)
    model = build_profiler(profiler("gine", collection=True, width=4), 5, 3, pool=True, edge_features=2)
    ids = torch.tensor([4, 1, 3])
    batch = Collection.of(graph, model.prepare(graph.adj)).batch(ids)
    alone = graph.select(ids)
    assert torch.equal(batch.op.pattern.indices, alone.adj.pattern.indices)
    assert torch.equal(batch.op.features, alone.adj.features)


def bonds(graphs: int = 60) -> Dataset:
    """Cycles of six nodes that are alike but for marks on one edge or on four; what is to be told is which."""
    rng = np.random.default_rng(0)
    cycle = np.stack([np.arange(6), (np.arange(6) + 1) % 6])
    edges = np.concatenate([cycle + 6 * i for i in range(graphs)], axis=1)
    rows = np.zeros((6 * graphs, 2))
    y = np.arange(graphs) % 2
    for i in range(graphs):
        rows[6 * i + rng.permutation(6)[: 1 + 3 * y[i]], 1] = 1.0
    rows[:, 0] = 1 - rows[:, 1]
    adj, _ = adjacency_from_edges(edges, 6 * graphs)
    graph = Graph(
        with_edge_features(adj, edges, rows)[0],
        torch.ones(6 * graphs, 1),
        torch.from_numpy(y),
        torch.arange(0, 6 * graphs + 1, 6),
    )
    return Dataset.of_graph(graph, Folds(graph.y), name="bonds", task="graph")


def auroc(dataset: Dataset, model: str, perturbation: str) -> float:
    graph = build_perturbation(perturbation)(dataset.graph, torch.Generator().manual_seed(0))
    chosen = profiler(model, collection=True, epochs=30, lr=0.01, width=16, depth=2, batch=16)
    return fit_profile(graph, dataset.split, chosen, task="graph", classes=2, seed=0).auroc


def test_a_signal_in_edge_features_alone_is_found_and_lost() -> None:
    dataset = bonds()
    assert auroc(dataset, "gine", "original") == 1.0
    # marks that change places inside their graph are as many as before
    assert auroc(dataset, "gine", "RandEdgeFtrs") == 1.0
    assert auroc(dataset, "gine", "NoEdgeFtrs") == auroc(dataset, "gin", "original") == 0.5
