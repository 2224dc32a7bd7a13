"""Parts that every model shares: evaluation without side effects, dropout for one run, stages."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from grb.errors import DataError
from grb.graph import Graph, adjacency_from_edges
from grb.model.base import Model, Propagate, Rows, dropout_rate, evaluating, predict, run_stages, use_generator
from grb.model.layers import Dropout
from grb.model.torch import GCN


def graph() -> Graph:
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    return Graph(adjacency_from_edges([[0, 1], [1, 2]], 4)[0], x)


class Spy(nn.Module):
    """Records in which state it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 2))
        self.seen: list[tuple[bool, bool]] = []

    def prepare(self, adj: object) -> None:
        return None

    def forward(self, x: Tensor, op: object) -> Tensor:
        self.seen.append((self.training, torch.is_grad_enabled()))
        return x @ self.weight


def test_predict_asks_in_evaluation_mode_without_gradients() -> None:
    model = Spy()
    logits = predict(model, graph())
    assert model.seen == [(False, False)] and not logits.requires_grad
    assert isinstance(model, Model)


def test_evaluating_restores_every_modules_own_mode() -> None:
    model = GCN(3, 2, [4], dropout=0.5)
    model.train()
    model.drop.eval()
    with evaluating(model):
        assert not any(module.training for module in model.modules())
    assert model.training and not model.drop.training
    with pytest.raises(RuntimeError, match="inside"), evaluating(model):
        raise RuntimeError("inside")
    assert model.training and torch.is_grad_enabled()


def test_module_without_prepare_is_refused_with_advice() -> None:
    with pytest.raises(DataError, match="a Linear has no prepare"):
        predict(nn.Linear(3, 2), graph())


@pytest.mark.parametrize("wrong", ["64", [8, 0], [], [8.5], ["8"], None])
def test_hidden_widths_that_are_none_are_refused(wrong: object) -> None:
    with pytest.raises(DataError, match=r"hidden sizes are .*, but .* positive whole numbers .* needed"):
        GCN(3, 2, wrong)  # type: ignore[arg-type]


def test_hidden_widths_may_be_numpy_integers() -> None:
    assert GCN(3, 2, np.array([8, 4])).params["hidden_features"] == [8, 4]  # type: ignore[arg-type]


def test_dropout_rate_is_for_the_inside_only() -> None:
    model = nn.Sequential(Dropout(0.25), nn.Dropout(0.75), nn.Linear(2, 2))
    rates = lambda: [model[0].p, model[1].p]
    with dropout_rate(model, 0.5):
        assert rates() == [0.5, 0.5]
    assert rates() == [0.25, 0.75]
    with dropout_rate(model, None):
        assert rates() == [0.25, 0.75]
    with pytest.raises(RuntimeError, match="inside"), dropout_rate(model, 0.0):
        raise RuntimeError("inside")
    assert rates() == [0.25, 0.75]
    for bad in (-0.1, 1.0, float("nan")):
        with pytest.raises(DataError, match="dropout"), dropout_rate(model, bad):
            pass
    assert rates() == [0.25, 0.75]


def test_generator_reaches_every_dropout() -> None:
    model = GCN(3, 2, [4, 4], dropout=0.5).train()
    op = model.prepare(graph().adj)
    use_generator(model, torch.Generator().manual_seed(0))
    first = model(graph().x, op)
    use_generator(model, torch.Generator().manual_seed(0))
    assert torch.equal(first, model(graph().x, op))
    use_generator(model, None)
    assert model.drop.generator is None


def test_stages_by_hand() -> None:
    """Double, propagate the second tensor by the second operator, add."""
    first, second = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    stages = [
        Rows(lambda state: (state[0], 2 * state[0])),
        Propagate(slot=1, op=1),
        Propagate(slot=0, op=0),
        Rows(lambda state: (state[0] + state[1],)),
    ]
    x = torch.tensor([[1.0], [10.0]])
    got = run_stages(stages, x, [first, second])
    assert got.tolist() == [[10.0 + 22.0], [1.0 + 20.0]]
