"""Link prediction: what is held out is never seen, and what can be predicted is."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from grb.errors import DataError
from grb.graph import Graph, adjacency_from_edges
from grb.model.profiling import profiler
from grb.perturb import FullyConn, NoEdges, NoNodeFtrs
from grb.trainer.links import draw_pairs, fit_links, mean_reciprocal_rank, split_links, without_pairs
from made_collections import random_collection

SMALL = {"width": 16, "epochs": 60, "depth": 2}


def communities(seed: int = 0) -> Graph:
    """Two groups, joined inside only, with features that say which."""
    source = nx.stochastic_block_model([40, 40], [[0.2, 0.002], [0.002, 0.2]], seed=seed)
    edges = np.array(list(source.edges)).T
    x = torch.randn(80, 6, generator=torch.Generator().manual_seed(seed))
    x[:40, 0] += 4
    return Graph(adjacency_from_edges(edges, 80)[0], x)


def keys(pairs: torch.Tensor) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in pairs.T.tolist()}


def test_edges_are_divided_and_none_that_is_asked_about_is_in_the_graph() -> None:
    graph = communities()
    split = split_links(graph, 0)
    every, seen = keys(graph.adj.edges()), keys(split.message.adj.edges())
    train = keys(split.train)
    held = {part: keys(getattr(split, part)[:, split.labels(part) == 1]) for part in ("val", "test")}
    others = {part: keys(getattr(split, part)[:, split.labels(part) == 0]) for part in ("val", "test")}
    assert seen | train | held["val"] | held["test"] == every
    assert len(seen) + len(train) + len(held["val"]) + len(held["test"]) == len(every)
    assert len(held["test"]) == len(others["test"]) == int(0.2 * len(every))
    assert not (others["val"] | others["test"]) & every and not others["val"] & others["test"]
    assert all(u != v for u, v in others["val"] | others["test"])
    assert keys(split_links(graph, 0).test) == keys(split.test) != keys(split_links(graph, 1).test)


def test_pairs_that_are_no_edges_are_distinct_even_if_there_are_hardly_any() -> None:
    edges = torch.tensor(sorted(u * 6 + v for u, v in nx.complete_graph(6).edges if (u, v) != (1, 4)))
    assert draw_pairs(6, edges, 1, torch.Generator().manual_seed(0)).tolist() == [[1], [4]]
    with pytest.raises(DataError, match="2 pairs that are no edges are needed, but the graph has only 1"):
        draw_pairs(6, edges, 2, torch.Generator())


def test_communities_are_predicted_from_features_or_from_edges_but_not_from_nothing() -> None:
    split = split_links(communities(), 0)
    chosen = profiler("gcn", collection=False, **SMALL)
    whole = fit_links(split, chosen, seed=0)
    bare = fit_links(split, chosen, seed=0, perturb=NoEdges())
    assert whole.auroc > 0.65 and bare.auroc > 0.65
    nothing = fit_links(split, chosen, seed=0, perturb=lambda graph: NoEdges()(NoNodeFtrs()(graph)))
    assert nothing.auroc == 0.5  # equal rows, equal logits
    again = fit_links(split, chosen, seed=0)
    assert again.history == whole.history and fit_links(split, chosen, seed=1).history != whole.history


def test_a_perturbation_cannot_bring_back_what_is_asked_about() -> None:
    graph = communities()
    split = split_links(graph, 0)
    cheat = without_pairs(graph, split.scored)
    assert not keys(cheat.adj.edges()) & keys(split.scored)
    chosen = profiler("gcn", collection=False, **{**SMALL, "epochs": 4})
    honest, cheating = fit_links(split, chosen, seed=0), fit_links(split, chosen, seed=0, perturb=lambda _: graph)
    assert honest.history == cheating.history
    with pytest.raises(DataError, match="FullyConn is not for link prediction"):
        fit_links(split, chosen, seed=0, perturb=FullyConn())


def test_neighbours_are_not_silently_left_out() -> None:
    with pytest.raises(DataError, match="leave out neighbours"):
        fit_links(split_links(communities(), 0), profiler("gcn", collection=False, neighbours=3), seed=0)


def test_what_has_no_links_to_predict_is_refused() -> None:
    with pytest.raises(DataError, match="needs a single graph"):
        split_links(random_collection(graphs=4, seed=0, classes=2), 0)
    with pytest.raises(DataError, match="has 3 edges, but at least 20"):
        split_links(Graph(adjacency_from_edges(np.array([[0, 1, 2], [1, 2, 3]]), 4)[0], torch.ones(4, 1)), 0)


def test_reciprocal_ranks_by_hand() -> None:
    y = torch.tensor([1, 1, 0, 0, 0])
    assert mean_reciprocal_rank(torch.tensor([5.0, 2.5, 3.0, 2.0, 1.0]), y) == pytest.approx((1 + 1 / 2) / 2)
    assert mean_reciprocal_rank(torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0]), y) == pytest.approx(1 / 2.5)
    with pytest.raises(DataError, match="at least one edge"):
        mean_reciprocal_rank(torch.ones(2), torch.zeros(2))
