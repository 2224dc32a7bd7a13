"""The blueprint with each convolution beside the layers of torch_geometric with the same weights, on a batch of graphs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric import nn as pyg

from grb.graph import CompleteAdjacency, Graph
from grb.model.profiling import build_profiler, profiler
from made_collections import edge_index, random_collection

MODELS = ["gcn", "gin", "gin-2l", "chebnet", "gatedgcn", "gcnii", "transformer", "gine"]


def set_linear(theirs: nn.Module, ours: nn.Module) -> None:
    with torch.no_grad():
        theirs.weight.copy_(ours.weight.T)  # type: ignore[union-attr,operator]
        if ours.bias is not None:
            theirs.bias.copy_(ours.bias)  # type: ignore[union-attr,operator]


def pyg_conv(name: str, ours: nn.Module, width: int) -> nn.Module:
    """torch_geometric's convolution with our weights, as a module of its own dtype."""
    if name == "gcn":
        conv = pyg.GCNConv(width, width, bias=ours.linear.bias is not None)
        set_linear_without_bias(conv.lin, ours.linear)
        if ours.linear.bias is not None:
            conv.bias.data.copy_(ours.linear.bias)
    elif name == "gine":
        inner = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        conv = pyg.GINEConv(inner, edge_dim=None if ours.edge is None else ours.edge.weight.shape[0])
        set_linear(inner[0], ours.inner)
        set_linear(inner[2], ours.outer)
        if ours.edge is not None:
            set_linear(conv.lin, ours.edge)
    elif name.startswith("gin"):
        inner = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        conv = pyg.GINConv(inner)  # draws new weights
        set_linear(inner[0], ours.inner)
        set_linear(inner[2], ours.outer)
    elif name == "chebnet":
        conv = pyg.ChebConv(width, width, K=2, bias=ours.linears[0].bias is not None)
        for theirs, own in zip(conv.lins, ours.linears, strict=True):
            set_linear_without_bias(theirs, own)
        if ours.linears[0].bias is not None:
            conv.bias.data.copy_(ours.linears[0].bias)
    elif name == "gatedgcn":
        conv = pyg.ResGatedGraphConv(width, width, bias=ours.bias is not None)
        set_linear(conv.lin_key, ours.key)
        set_linear(conv.lin_query, ours.query)
        set_linear(conv.lin_value, ours.value)
        set_linear_without_bias(conv.lin_skip, ours.skip)
        if ours.bias is not None:
            conv.bias.data.copy_(ours.bias)
    elif name == "transformer":
        conv = pyg.TransformerConv(width, width // ours.heads, heads=ours.heads)
        set_linear(conv.lin_key, ours.key)
        set_linear(conv.lin_query, ours.query)
        set_linear(conv.lin_value, ours.value)
        set_linear_without_bias(conv.lin_skip, ours.skip)
        conv.lin_skip.bias.data.zero_().add_(0.0 if ours.bias is None else ours.bias)
    else:
        conv = pyg.GCN2Conv(width, alpha=0.2)
        conv.weight1.data.copy_(ours.linear.weight)
    return conv


def set_linear_without_bias(theirs: nn.Module, ours: nn.Module) -> None:
    theirs.weight.data.copy_(ours.weight.T)  # type: ignore[union-attr,operator]


class Reference(nn.Module):
    """The paper's blueprint written out with torch's and torch_geometric's own layers."""

    def __init__(self, name: str, ours: nn.Module, width: int) -> None:
        super().__init__()
        self.name, self.pool = name, ours.pool
        self.first = nn.Linear(ours.in_features, width, bias=ours.first.bias is not None)
        set_linear(self.first, ours.first)
        self.convs = nn.ModuleList(pyg_conv(name, conv, width) for conv in ours.convs)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in ours.norms) if ours.norms is not None else None
        if self.norms is not None:
            for theirs, own in zip(self.norms, ours.norms, strict=True):
                theirs.weight.data.copy_(own.weight)
                theirs.bias.data.copy_(own.bias)
        self.hidden, self.last = nn.Linear(width, width), nn.Linear(width, ours.last.weight.shape[1])
        set_linear(self.hidden, ours.hidden)
        set_linear(self.last, ours.last)

    def ended(self, z: Tensor, place: int) -> Tensor:
        if self.norms is not None:
            z = self.norms[place](z)
        return functional.normalize(torch.relu(z), dim=1)

    def forward(self, x: Tensor, edges: Tensor, owner: Tensor, features: Tensor | None = None) -> Tensor:
        h = start = self.ended(self.first(x), 0)
        for place, conv in enumerate(self.convs):
            if self.name == "gine":
                # without edge features its own layers add zeros
                z = conv(h, edges, torch.zeros(edges.shape[1], h.shape[1]) if features is None else features)
            else:
                z = conv(h, start, edges) if self.name == "gcnii" else conv(h, edges)
            h = h + self.ended(z, place + 1)
        h = functional.normalize(h, dim=1)
        if self.pool:
            h = pyg.global_mean_pool(h, owner)
        return self.last(functional.normalize(torch.relu(self.hidden(h)), dim=1))


@pytest.mark.parametrize("kind", ["collection", "single", "complete"])
@pytest.mark.parametrize("name", MODELS)
def test_logits_and_gradients_are_those_of_torch_geometric(name: str, kind: str) -> None:
    graph = random_collection(graphs=4, seed=3, isolated=True)
    if kind == "complete":
        assert graph.ptr is not None
        graph = Graph(CompleteAdjacency(graph.ptr), graph.x, graph.y, graph.ptr)
    assert isinstance(graph.x, Tensor)
    chosen = profiler(name, collection=kind != "single", width=8)
    generator = torch.Generator().manual_seed(1)
    model = build_profiler(chosen, graph.num_features, 3, pool=kind != "single", generator=generator).double()
    reference = Reference(name, model, 8).double()
    x, theirs_x = graph.x.double().requires_grad_(), graph.x.double().requires_grad_()
    torch.set_default_dtype(torch.float64)
    try:
        ours = model(x, model.prepare(graph.adj), graph.ptr)
        theirs = reference(theirs_x, edge_index(graph), graph.owner)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)
    weights = torch.linspace(-1, 1, ours.numel(), dtype=torch.float64).reshape(ours.shape)
    (ours * weights).sum().backward()
    (theirs * weights).sum().backward()
    torch.testing.assert_close(x.grad, theirs_x.grad, rtol=1e-7, atol=1e-10)
    torch.testing.assert_close(model.first.weight.grad, reference.first.weight.grad.T, rtol=1e-7, atol=1e-10)
    if model.norms is not None:
        for own, other in zip(model.norms, reference.norms, strict=True):
            torch.testing.assert_close(own.weight.grad, other.weight.grad, rtol=1e-7, atol=1e-10)
            torch.testing.assert_close(own.running_var, other.running_var)
            torch.testing.assert_close(own.running_mean, other.running_mean)
    model.eval()
    reference.eval()
    with torch.no_grad():
        again = model(x, model.prepare(graph.adj), graph.ptr)
        torch.testing.assert_close(again, reference(theirs_x, edge_index(graph), graph.owner), rtol=1e-6, atol=1e-6)
