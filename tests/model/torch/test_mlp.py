"""The baseline that sees no edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grb.graph import Graph, adjacency_from_edges
from grb.graph.edit import sparse_features
from grb.model.base import predict, run_stages
from grb.model.torch import MLP

N, D, CLASSES = 12, 5, 3


def graph(share: float) -> Graph:
    edges = np.argwhere(np.triu(np.random.default_rng(0).random((N, N)) < share, 1)).T
    x = np.random.default_rng(1).standard_normal((N, D))
    return Graph.build(adjacency_from_edges(edges, N)[0], x)[0]


@pytest.mark.parametrize("layer_norm", [False, True])
def test_edges_are_ignored(layer_norm: bool) -> None:
    model = MLP(D, CLASSES, [8, 8], layer_norm=layer_norm)
    assert torch.equal(predict(model, graph(0.0)), predict(model, graph(0.8)))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_logits_equal_torchs_own_layers(layer_norm: bool) -> None:
    model = MLP(D, CLASSES, [8, 6], layer_norm=layer_norm)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-1, 1, generator=torch.Generator().manual_seed(parameter.numel()))
    weights = dict(model.named_parameters())
    x = graph(0.3).x
    assert isinstance(x, Tensor)
    seen = predict(model, graph(0.3))
    for place in range(3):
        if layer_norm and place < 2:
            x = nn.functional.layer_norm(
                x, x.shape[1:], weights[f"norms.{place}.weight"], weights[f"norms.{place}.bias"]
            )
        names = [name for name in weights if f".{place}." in name and not name.startswith("norms")]
        weight, bias = sorted((weights[name] for name in names), key=lambda tensor: -tensor.dim())
        x = nn.functional.linear(x, weight.T, bias)
        x = torch.relu(x) if place < 2 else x
    torch.testing.assert_close(seen, x.detach(), rtol=1e-5, atol=1e-5)


def test_stages_equal_the_forward_pass() -> None:
    model = MLP(D, CLASSES, [8], dropout=0.5).eval()
    data = graph(0.3)
    assert isinstance(data.x, Tensor)
    stages = model.stages()
    assert stages is not None
    with torch.no_grad():
        staged = run_stages(stages, data.x, model.prepare(data.adj))
    torch.testing.assert_close(staged, predict(model, data))


def test_sparse_features_give_the_same_logits() -> None:
    data = graph(0.3)
    assert isinstance(data.x, Tensor)
    data = data.with_features(data.x.relu())
    assert isinstance(data.x, Tensor)
    model = MLP(D, CLASSES, [8])
    torch.testing.assert_close(predict(model, data.with_features(sparse_features(data.x))), predict(model, data))


def test_rows_do_not_depend_on_each_other() -> None:
    model = MLP(D, CLASSES, [8, 8]).eval()
    x = torch.randn(N, D, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (grad,) = torch.autograd.grad(model(x, None)[3].sum(), x)
    assert (grad.abs().sum(1) > 0).nonzero().flatten().tolist() == [3]
