"""Neighbour sampling: what a batch holds, and that all neighbours give what the whole graph gives."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from grb.dataset.splits import Random, Split
from grb.errors import DataError
from grb.graph import Adjacency, Graph, adjacency_from_edges
from grb.model.profiling import build_profiler, profiler
from grb.perturb import FullyConn
from grb.trainer.neighbours import SampledNodes, induced, sampled_nodes
from grb.trainer.profile import fit_profile


def made(n: int = 60, p: float = 0.08, seed: int = 0) -> Graph:
    source = nx.gnp_random_graph(n, p, seed=seed)
    edges = np.array(list(source.edges), dtype=np.int64).reshape(-1, 2).T
    x = torch.randn(n, 5, generator=torch.Generator().manual_seed(seed))
    y = (x[:, 0] > 0).long()
    return Graph(adjacency_from_edges(edges, n)[0], x, y)


@settings(max_examples=60)
@given(seed=st.integers(0, 99), p=st.sampled_from([0.0, 0.05, 0.3]), k=st.integers(1, 6), hops=st.integers(0, 3))
def test_drawn_nodes_are_within_the_hops_and_few(seed: int, p: float, k: int, hops: int) -> None:
    graph = made(40, p, seed)
    seeds = torch.tensor([3, 17, 5])
    found = sampled_nodes(graph.adj, seeds, k, hops, torch.Generator().manual_seed(seed))
    assert (found.diff() > 0).all() and set(seeds.tolist()) <= set(found.tolist())
    assert len(found) <= 3 * sum(k**hop for hop in range(hops + 1))
    source = nx.Graph(graph.adj.edges().T.tolist())
    source.add_nodes_from(range(40))
    near = set().union(*(nx.single_source_shortest_path_length(source, int(node), hops) for node in seeds))
    assert set(found.tolist()) <= near
    every = sampled_nodes(graph.adj, seeds, 40, hops, torch.Generator().manual_seed(seed))
    assert set(every.tolist()) == near


def test_the_edges_among_nodes_are_those_of_the_subgraph_with_their_weights() -> None:
    graph = made()
    low = torch.minimum(graph.adj.pattern.row_ids, graph.adj.pattern.indices)
    adj = Adjacency(graph.adj.pattern, 1.0 + low)
    nodes, scratch = torch.arange(0, 60, 2), torch.full((60,), -1)
    found, wanted = induced(adj, nodes, scratch), adj.subgraph(nodes)
    assert torch.equal(found.keys, wanted.keys) and torch.equal(found.values, wanted.values)
    assert (scratch == -1).all()


def test_with_all_neighbours_logits_within_reach_are_those_of_the_whole_graph() -> None:
    """GIN sums over neighbours, whose sums are whole up to the last hop."""
    graph = made()
    chosen = profiler("gin", collection=False, width=8, depth=2)
    model = build_profiler(chosen, 5, 1, pool=False, generator=torch.Generator().manual_seed(0)).eval()
    split = Random(60)(0)
    data = SampledNodes(model, graph, split, batch=4, neighbours=99)
    with torch.no_grad():
        whole = model(graph.x, model.prepare(graph.adj))
    logits, y = data.evaluated("test")
    torch.testing.assert_close(logits, whole[split.test["full"]])
    assert torch.equal(y, graph.y[split.test["full"]])


def test_batches_cover_the_training_nodes_once_and_change_with_the_epoch() -> None:
    graph, split = made(), Random(60)(0)
    model = build_profiler(profiler("gcn", collection=False, width=8, depth=2), 5, 1, pool=False)
    data = SampledNodes(model, graph, split, batch=10, neighbours=2)
    generator = torch.Generator().manual_seed(0)
    first, second = ([batch.y for batch in data.training(generator)] for _ in range(2))
    assert sum(map(len, first)) == len(split.train) and [len(part) for part in first[:-1]] == [10] * (len(first) - 1)
    assert sorted(torch.cat(first).tolist()) == sorted(graph.y[split.train].tolist())
    assert not torch.equal(torch.cat(first), torch.cat(second))
    assert torch.equal(data.evaluated("val")[0], data.evaluated("val")[0])


def test_it_learns_what_the_whole_graph_teaches_and_the_same_seed_gives_the_same() -> None:
    graph = made(300, 0.02)
    chosen = profiler("gcn", collection=False, width=16, depth=2, epochs=15, neighbours=3, batch=64)
    one, other = (fit_profile(graph, Random(300)(0), chosen, task="node", classes=2, seed=0) for _ in range(2))
    assert one.auroc == other.auroc > 0.8


def test_what_cannot_be_sampled_is_refused() -> None:
    with pytest.raises(DataError, match="leave out neighbours"):
        profiler("gcn", collection=True, neighbours=5)
    with pytest.raises(DataError, match="neighbours of a profiling model is 0"):
        profiler("gcn", collection=False, neighbours=0)
    graph, split = made(), Split(torch.arange(5), torch.arange(5, 9), {"full": torch.arange(9, 12)})
    chosen = profiler("gcn", collection=False, neighbours=5)
    with pytest.raises(DataError, match="leave out FullyConn"):
        fit_profile(FullyConn()(graph), split, chosen, task="node", classes=2, seed=0)
