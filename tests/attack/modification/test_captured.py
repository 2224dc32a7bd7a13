"""Modules of torch_geometric get gradients of edges from the closed form where that is theirs, and from autograd elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import grb
from attack.contexts import random_graph, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.modification import PRBCD
from grb.attack.modification.captured import Captured
from grb.attack.modification.gradient import Victim, _ByAutograd
from grb.graph import Adjacency
from grb.threat import Modification

pyg = pytest.importorskip("torch_geometric.nn")
# without isolated nodes, whose root of a degree of zero has no slope in torch_geometric
GRAPH = random_graph(24, density=0.3, seed=2)
PAIRS = torch.triu_indices(24, 24, 1)


def modules() -> dict[str, nn.Module]:
    d = GRAPH.num_features
    torch.manual_seed(0)

    class Propagated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.walk = nn.Linear(d, 3), pyg.APPNP(4, 0.1)

        def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
            return self.walk(self.linear(x), edge_index, edge_weight)

    return {
        "gcn": pyg.GCN(d, 8, 2, 3, dropout=0.5),
        "cached": pyg.SGConv(d, 3, K=2, cached=True),
        "tagcn": pyg.TAGConv(d, 3, K=2),
        "appnp": Propagated(),
        "sage": pyg.GraphSAGE(d, 8, 2, 3),
    }


@pytest.mark.parametrize("name", modules())
def test_gradients_equal_those_of_autograd(name: str) -> None:
    model = grb.wrap(modules()[name].eval().requires_grad_(False))
    if not model.has_edge_gradients:
        assert Captured.of(model, GRAPH.x) is None
        return
    victim = Victim(model, GRAPH, torch.arange(10))
    assert victim.closed_form and victim.captured is not None
    weights = torch.rand(GRAPH.adj.pattern.entries, generator=torch.Generator().manual_seed(3))
    weights = (weights + weights[GRAPH.adj.pattern.transposed[1]]) / 2
    for adj in (GRAPH.adj, Adjacency(GRAPH.adj.pattern, weights)):
        found, expected = victim.gradient(adj), _ByAutograd(victim, adj)
        torch.testing.assert_close(found.of(PAIRS), expected.of(PAIRS), rtol=1e-3, atol=1e-6)
        assert found.loss == pytest.approx(expected.loss, abs=1e-6) and found.kept == expected.kept


def test_a_module_with_attention_or_other_propagations_keeps_autograd() -> None:
    class Squared(nn.Module):
        """Propagates by GCN's operator, but its output depends on the weights in another way too."""

        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.GCNConv(GRAPH.num_features, 3)

        def forward(self, x: Any, edge_index: Any, edge_weight: Any = None) -> Any:
            total = 0.0 if edge_weight is None else edge_weight.square().sum()
            return self.conv(x, edge_index, edge_weight) * (1 + total)

    torch.manual_seed(0)
    for module in (pyg.GAT(GRAPH.num_features, 8, 2, 3), Squared()):
        assert Captured.of(grb.wrap(module.eval()), GRAPH.x) is None


def test_hooks_are_gone_and_an_attack_runs() -> None:
    module = modules()["gcn"].eval()
    context = AttackContext(view_of(GRAPH, range(10)), Modification(edges=3), grb.wrap(module), "white-box")
    result = run_attack(PRBCD(steps=4, search_space_size=60, max_final_samples=2), context, seed=0)
    assert result.steps[-1].accuracy <= 1 and not any("autograd" in note for note in result.notes)
    assert not any(layer._propagate_forward_hooks for layer in module.modules() if hasattr(layer, "propagate"))
