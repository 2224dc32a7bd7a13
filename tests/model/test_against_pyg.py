"""Our operators against torch_geometric's with the same weights, on random graphs with isolated nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from grb.graph import Adjacency, adjacency_from_edges, normalise
from grb.model.torch import APPNP, GAT, SGC, GraphSAGE
from grb.model.torch.gat import GATConv
from grb.model.torch.gcn import GCNConv
from grb.model.torch.gin import GINConv
from grb.model.torch.graphsage import MeanConv
from grb.model.torch.tagcn import TAGConv

pyg = pytest.importorskip("torch_geometric.nn")
IN, OUT, N = 7, 5, 30


@pytest.fixture(params=range(4))
def case(request: pytest.FixtureRequest) -> tuple[Adjacency, Tensor, Tensor]:
    """Adjacency, both directions of its edges, features; the last three nodes are isolated."""
    rng = np.random.default_rng(request.param)
    upper = np.triu(rng.random((N - 3, N - 3)) < 0.12, 1)
    adj, _ = adjacency_from_edges(np.argwhere(upper).T, N)
    edge_index = torch.stack([adj.pattern.row_ids.long(), adj.pattern.indices.long()])
    return adj, edge_index, torch.from_numpy(rng.normal(size=(N, IN)).astype(np.float32))


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_gcn(case) -> None:
    adj, edge_index, x = case
    ours, theirs = GCNConv(IN, OUT), pyg.GCNConv(IN, OUT)
    theirs.lin.weight.copy_(ours.linear.weight.T)
    ours.linear.bias.uniform_()
    theirs.bias.copy_(ours.linear.bias)
    close(ours(x, normalise.gcn(adj)), theirs(x, edge_index))


@torch.no_grad()
@pytest.mark.parametrize("average", [False, True])
def test_gat(case, average: bool) -> None:
    adj, edge_index, x = case
    ours = GATConv(IN, OUT, heads=3, average=average, dropout=0.0)
    theirs = pyg.GATConv(IN, OUT, heads=3, concat=not average)
    theirs.lin.weight.copy_(ours.linear.weight.T)
    # PyG's source end sends, its destination end receives
    theirs.att_src.copy_(ours.right.unsqueeze(0))
    theirs.att_dst.copy_(ours.left.unsqueeze(0))
    op = GAT(IN, OUT, [4]).prepare(adj)
    close(ours(x, op), theirs(x, edge_index))


@torch.no_grad()
def test_gin(case) -> None:
    adj, edge_index, x = case
    ours = GINConv(IN, OUT).eval()
    ours.eps.fill_(0.3)
    net = torch.nn.Sequential(
        torch.nn.Linear(IN, OUT), torch.nn.ReLU(), torch.nn.Linear(OUT, OUT), ours.batch_norm, torch.nn.ReLU()
    )
    theirs = pyg.GINConv(net, eps=0.3).eval()  # draws the weights of its net anew, so copy afterwards
    ours.batch_norm.running_mean.uniform_()
    for mine, his in ((ours.first, net[0]), (ours.second, net[2])):
        his.weight.copy_(mine.weight.T)
        his.bias.copy_(mine.bias)
    close(ours(x, normalise.raw(adj)), theirs(x, edge_index))


@torch.no_grad()
def test_appnp(case) -> None:
    adj, edge_index, x = case
    ours = APPNP(IN, OUT, [6], alpha=0.1, k=7).eval()
    op = ours.prepare(adj)
    start = ours._predicted((x,))[0]
    close(ours(x, op), pyg.APPNP(K=7, alpha=0.1)(start, edge_index))


@torch.no_grad()
def test_appnp_approaches_the_personalised_pagerank_solution() -> None:
    adj, _ = adjacency_from_edges(np.array([[0, 1, 2, 0], [1, 2, 3, 3]]), 5)
    ours = APPNP(IN, OUT, [6], alpha=0.2, k=200).eval()
    x = torch.randn(5, IN, generator=torch.Generator().manual_seed(0))
    op = ours.prepare(adj)
    dense = op @ torch.eye(5)
    limit = 0.2 * torch.linalg.solve(torch.eye(5) - 0.8 * dense, ours._predicted((x,))[0])
    close(ours(x, op), limit)


@torch.no_grad()
def test_tag(case) -> None:
    adj, _, x = case
    ours, theirs = TAGConv(IN, OUT, k=3), pyg.TAGConv(IN, OUT, K=3, normalize=False)
    for hop, lin in enumerate(theirs.lins):
        lin.weight.copy_(ours.linear.weight[hop * IN : (hop + 1) * IN].T)
    ours.linear.bias.uniform_()
    theirs.bias.copy_(ours.linear.bias)
    op = normalise.gcn(adj)
    edge_index = torch.stack([op.pattern.row_ids.long(), op.pattern.indices.long()])
    close(ours(x, op), theirs(x, edge_index, op.values))


@torch.no_grad()
def test_mean_sage(case) -> None:
    adj, edge_index, x = case
    ours, theirs = MeanConv(IN, OUT), pyg.SAGEConv(IN, OUT)
    theirs.lin_l.weight.copy_(ours.neighbours.weight.T)
    theirs.lin_r.weight.copy_(ours.own.weight.T)
    ours.own.bias.uniform_()
    theirs.lin_l.bias.copy_(ours.own.bias)
    close(ours(x, GraphSAGE(IN, OUT, [4], aggregate="mean").prepare(adj)), theirs(x, edge_index))


@torch.no_grad()
def test_sgc(case) -> None:
    adj, edge_index, x = case
    ours, theirs = SGC(IN, OUT, k=3), pyg.SGConv(IN, OUT, K=3)
    theirs.lin.weight.copy_(ours.linear.weight.T)
    theirs.lin.bias.copy_(ours.linear.bias)
    close(ours(x, ours.prepare(adj)), theirs(x, edge_index))
