"""GCN against a stack of torch_geometric layers with the same weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from grb.errors import DataError
from grb.graph import Adjacency, Graph, adjacency_from_edges
from grb.graph.edit import sparse_features
from grb.model.base import predict, run_stages
from grb.model.torch import GCN

N, D, CLASSES = 25, 9, 4


def graph(seed: int = 0, *, weighted: bool = False) -> Graph:
    """Random, the last four nodes isolated."""
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((N - 4, N - 4)) < 0.15, 1)).T
    weights = rng.uniform(0.5, 2, edges.shape[1]) if weighted else None
    adj = adjacency_from_edges(edges, N, values=weights)[0]
    return Graph.build(adj, rng.standard_normal((N, D)), rng.integers(0, CLASSES, N))[0]


def model(hidden: list[int], **options: bool) -> GCN:
    made = GCN(D, CLASSES, hidden, generator=torch.Generator().manual_seed(0), **options)  # type: ignore[arg-type]
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if parameter.dim() == 1:  # biases and norms away from zero and one, so that a lost one shows
                parameter.add_(torch.rand(parameter.shape, generator=torch.Generator().manual_seed(len(name))))
    return made.eval()


def by_pyg(ours: GCN, adj: Adjacency, x: Tensor) -> Tensor:
    """The paper's architecture from torch_geometric's and torch's parts, with the weights of ours."""
    edges = torch.stack([adj.pattern.row_ids.long(), adj.pattern.indices.long()])
    weights = dict(ours.named_parameters())
    layers = len(ours.convs)
    for place in range(layers):
        weight, bias = weights[f"convs.{place}.linear.weight"], weights[f"convs.{place}.linear.bias"]
        if f"norms.{place}.weight" in weights:
            x = nn.functional.layer_norm(
                x, x.shape[1:], weights[f"norms.{place}.weight"], weights[f"norms.{place}.bias"]
            )
        conv = GCNConv(weight.shape[0], weight.shape[1])
        conv.lin.weight.data, conv.bias.data = weight.detach().T.contiguous(), bias.detach()
        x = conv(x, edges, adj.values)
        if place < layers - 1:
            x = torch.relu(x)
    return x.detach()


@pytest.mark.parametrize("hidden", [[8], [16, 5], [6, 6, 20]])
@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_logits_equal_a_pyg_stack(hidden: list[int], layer_norm: bool, weighted: bool) -> None:
    data, ours = graph(weighted=weighted), model(hidden, layer_norm=layer_norm)
    assert isinstance(data.x, Tensor)
    torch.testing.assert_close(predict(ours, data), by_pyg(ours, data.adj, data.x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("layer_norm", "parameters"), [(False, 28167), (True, 29027)])
def test_number_of_parameters_of_table_6(layer_norm: bool, parameters: int) -> None:
    assert GCN(302, 7, [64, 64, 64], layer_norm=layer_norm).num_parameters == parameters


@pytest.mark.parametrize("layer_norm", [False, True])
def test_stages_equal_the_forward_pass(layer_norm: bool) -> None:
    data, ours = graph(), model([16, 5], layer_norm=layer_norm)
    assert isinstance(data.x, Tensor)
    stages = ours.stages()
    assert stages is not None
    with torch.no_grad():
        staged = run_stages(stages, data.x, ours.prepare(data.adj))
    torch.testing.assert_close(staged, predict(ours, data), rtol=1e-5, atol=1e-6)


def test_renumbered_nodes_get_renumbered_logits() -> None:
    data, ours = graph(), model([16, 5])
    order = torch.randperm(N, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(predict(ours, data.subgraph(order)), predict(ours, data)[order], rtol=1e-5, atol=1e-6)


def test_logits_of_a_component_do_not_depend_on_another() -> None:
    one, two = graph(0), graph(1)
    assert isinstance(one.x, Tensor) and isinstance(two.x, Tensor)
    edges = np.concatenate([one.adj.edges().numpy(), two.adj.edges().numpy() + N], axis=1)
    both = Graph.build(adjacency_from_edges(edges, 2 * N)[0], torch.cat([one.x, two.x]))[0]
    ours = model([8])
    torch.testing.assert_close(predict(ours, both)[:N], predict(ours, one), rtol=1e-5, atol=1e-6)


def test_gradients_reach_features_and_only_within_reach() -> None:
    """Two convolutions: the gradient of one node's logit is zero at nodes more than two steps away."""
    path = adjacency_from_edges([[0, 1, 2, 3], [1, 2, 3, 4]], 5)[0]
    ours = model([8])
    x = torch.randn(5, D, generator=torch.Generator().manual_seed(0)).requires_grad_()
    (grad,) = torch.autograd.grad(ours(x, ours.prepare(path))[0].sum(), x)
    reached = grad.abs().sum(1) > 0
    assert reached.tolist() == [True, True, True, False, False]


def test_sparse_features_give_the_same_logits() -> None:
    data = graph()
    assert isinstance(data.x, Tensor)
    data = data.with_features(data.x.relu())
    assert isinstance(data.x, Tensor)
    for layer_norm in (False, True):
        ours = model([16, 5], layer_norm=layer_norm)
        sparse = predict(ours, data.with_features(sparse_features(data.x)))
        torch.testing.assert_close(sparse, predict(ours, data), rtol=1e-5, atol=1e-6)


def test_remembered_first_product_changes_nothing() -> None:
    data, ours = graph(), model([16, 5])
    assert isinstance(data.x, Tensor)
    op = ours.prepare(data.adj)
    with torch.no_grad():
        kept = ours(data.x, op.remembering(data.x))
        torch.testing.assert_close(kept, ours(data.x, op), rtol=1e-5, atol=1e-6)


def test_dropout_acts_in_training_alone() -> None:
    data = graph()
    ours = GCN(D, CLASSES, [16], dropout=0.5)
    op = ours.prepare(data.adj)
    ours.train()
    assert not torch.equal(ours(data.x, op), ours(data.x, op))
    ours.eval()
    assert torch.equal(ours(data.x, op), ours(data.x, op))


def test_hidden_widths() -> None:
    assert GCN(D, CLASSES, 8, n_layers=3).params["hidden_features"] == [8, 8]
    for bad in ({"hidden_features": []}, {"hidden_features": [8, 0]}, {"hidden_features": [8], "n_layers": 3}):
        with pytest.raises(DataError):
            GCN(D, CLASSES, **bad)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="dropout"):
        GCN(D, CLASSES, [8], dropout=1.0)


def test_weights_come_from_the_generator() -> None:
    def drawn(seed: int) -> Tensor:
        made = GCN(D, CLASSES, [8], generator=torch.Generator().manual_seed(seed))
        return torch.cat([parameter.detach().flatten() for parameter in made.parameters()])

    assert torch.equal(drawn(1), drawn(1)) and not torch.equal(drawn(1), drawn(2))
