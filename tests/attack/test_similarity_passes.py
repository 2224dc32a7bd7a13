"""Models that weigh edges by similarity are attacked through the rows that change, and give the bits of whole passes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attack.contexts import context_of, random_graph
from grb.attack import run_attack
from grb.attack.incremental import Rewired, full_forward
from grb.attack.injection import FGSM
from grb.attack.similarity_passes import by_row
from grb.catalogue import resolve
from grb.defense.gnnguard import GCNGuard
from grb.graph import Adjacency, Graph, GraphEdit
from grb.model.base import GraphModel
from grb.model.layers import Linear

FEATURES, CLASSES = 6, 3
MODELS: list[tuple[str, dict[str, Any]]] = [
    ("gcnguard", {"hidden_features": [8, 8]}),
    ("gcnguard", {"hidden_features": [8]}),
    ("gatguard", {"hidden_features": [8, 8], "heads": 2}),
    ("egnnguard", {"hidden_features": [8, 8, 8]}),
    ("egnnguard", {"hidden_features": [8, 8], "layer_norm": True}),
]


def make(name: str, params: dict[str, Any], *, soft: bool = False) -> nn.Module:
    model: GraphModel = resolve("model", name)(
        FEATURES, CLASSES, **params, generator=torch.Generator().manual_seed(1)
    ).eval()
    return model.relaxations()["soft"] if soft else model.requires_grad_(False)


def wired(graph: Graph, new: int) -> GraphEdit:
    generator = torch.Generator().manual_seed(new)
    ends = torch.randint(graph.n // 2, (new, 4), generator=generator).flatten()  # half of the graph is not touched
    pairs = torch.stack([torch.arange(new).repeat_interleave(4) + graph.n, ends])
    if new > 2:
        pairs = torch.cat([pairs, torch.tensor([[graph.n], [graph.n + 1]])], dim=1)
    return GraphEdit(graph.n, add=pairs.unique(dim=1), new_x=torch.zeros(new, FEATURES))


def both(model: nn.Module, graph: Graph, new: int, targets: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Logits and gradients, by parts and by the whole graph."""
    edit = wired(graph, new)
    parts, incremental = Rewired(model, graph).forward(edit, targets)
    assert incremental
    whole = full_forward(model, graph.apply(edit), torch.arange(graph.n, graph.n + new), targets)
    found = []
    for forward in (parts, whole):
        x = torch.rand(new, FEATURES, generator=torch.Generator().manual_seed(new)).sub(0.3).requires_grad_()
        logits = forward(x)
        loss = nn.functional.cross_entropy(logits, torch.arange(len(targets)) % CLASSES)
        found.append((logits.detach(), torch.autograd.grad(loss, x)[0]))
    return found


@pytest.mark.parametrize(("name", "params"), MODELS)
@pytest.mark.parametrize("new", [1, 3, 9])
@pytest.mark.parametrize("soft", [False, True])
def test_logits_and_gradients_are_those_of_the_whole_graph(
    name: str, params: dict[str, Any], new: int, soft: bool
) -> None:
    graph = random_graph(40, density=0.06, features=FEATURES)
    for targets in (torch.tensor([0, 5, 39, 17]), torch.tensor([7, 3, 7]), torch.arange(40)):
        parts, whole = both(make(name, params, soft=soft), graph, new, targets)
        for own, expected in zip(parts, whole, strict=True):
            torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("name", "params"), MODELS)
def test_weighted_graphs_too(name: str, params: dict[str, Any]) -> None:
    graph = random_graph(40, density=0.06, features=FEATURES)
    rows, columns = graph.adj.pattern.row_ids.long(), graph.adj.pattern.indices.long()
    weighted = Graph(Adjacency(graph.adj.pattern, 0.5 + (rows * columns % 5) / 5), graph.x)
    for own, expected in zip(*both(make(name, params), weighted, 5, torch.arange(30)), strict=True):
        torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-7)


def test_attacks_do_not_say_that_passes_are_full_any_more() -> None:
    graph = random_graph(40, density=0.06, features=FEATURES)
    result = run_attack(FGSM(n_epoch=2), context_of(graph, range(10), make(*MODELS[0])), seed=0)
    assert result.notes == ()


class Claims(GCNGuard):
    """A model of others that says of itself that injected rows change nothing."""

    def similarity_layers(self) -> list[Any]:
        raise AssertionError("an attack asked a model of others for its layers")

    def forward(self, x: Tensor, op: Any) -> Tensor:
        return x @ torch.ones(FEATURES, CLASSES)


def test_models_of_others_are_not_asked() -> None:
    graph = random_graph(40, density=0.06, features=FEATURES)
    model = Claims(FEATURES, CLASSES, hidden_features=[8])
    _, incremental = Rewired(model, graph).forward(wired(graph, 3), torch.arange(4))
    assert not incremental


@pytest.mark.parametrize("rows", [0, 1, 3, 8])
def test_a_few_rows_get_the_bits_of_many(rows: int) -> None:
    linear = Linear(64, 32).requires_grad_(False)
    x = torch.randn(50, 64, generator=torch.Generator().manual_seed(0))
    (few,) = by_row(lambda state: (linear(state[0]),), (x[:rows],))
    assert torch.equal(few, linear(x)[:rows])
