from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from grb.dataset.view import View
from grb.defense.grand import GRAND, sharpened
from grb.errors import DataError
from grb.graph import Graph, adjacency_from_edges, normalise
from grb.model.base import predict, use_generator
from grb.trainer import fit


def random_graph(n: int = 20, d: int = 5) -> Graph:
    rng = np.random.default_rng(0)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((n, n)) < 0.2, 1)).T, n)
    return Graph(adj, torch.from_numpy(rng.normal(size=(n, d)).astype(np.float32)), torch.arange(n) % 3)


def grand(**params: float) -> GRAND:
    return GRAND(5, 3, [6], **params, generator=torch.Generator().manual_seed(0))  # type: ignore[arg-type]


def test_evaluation_is_the_perceptron_on_averaged_powers() -> None:
    graph, model = random_graph(), grand(k=3)
    assert isinstance(graph.x, Tensor)
    hat = normalise.gcn(graph.adj) @ torch.eye(graph.n)
    mean = sum(torch.linalg.matrix_power(hat, power) @ graph.x for power in range(4)) / 4
    expected = model.linears[1](torch.relu(model.linears[0](mean)))
    torch.testing.assert_close(predict(model, graph), expected)


@pytest.mark.parametrize("rate", [0.5, 0.3])
def test_dropped_nodes_keep_the_expectation_of_the_features(rate: float) -> None:
    model = grand(node_dropout=rate).train()
    use_generator(model, torch.Generator().manual_seed(1))
    factors = torch.stack([model.node_drop(torch.ones(400, 1)) for _ in range(200)])
    assert float(factors.mean()) == pytest.approx(1.0, abs=0.02)
    assert float((factors == 0).float().mean()) == pytest.approx(rate, abs=0.01)


def test_without_any_dropout_training_draws_are_the_evaluation() -> None:
    graph, model = random_graph(), grand(node_dropout=0.0, input_dropout=0.0, dropout=0.0, draws=2)
    model.train()
    draws = model(graph.x, model.prepare(graph.adj))
    assert draws.shape == (2, 20, 3)
    for draw in draws:
        torch.testing.assert_close(draw, predict(model, graph))


def test_dropping_rows_commutes_with_the_first_linear_map() -> None:
    """The order of the multiplications depends on the input dropout; a vanishing one must not change the result."""
    graph = random_graph()
    draws = []
    for rate in (0.0, 1e-9):
        model = grand(node_dropout=0.5, input_dropout=rate, dropout=0.0, draws=1).train()
        # draw the same nodes, whatever the input dropout draws afterwards
        use_generator(model, torch.Generator().manual_seed(3))
        draws.append(model(graph.x, model.prepare(graph.adj))[0])
    torch.testing.assert_close(*draws, rtol=1e-4, atol=1e-4)


def test_sharpening() -> None:
    torch.testing.assert_close(sharpened(torch.tensor([[0.6, 0.4]]), 0.5), torch.tensor([[9 / 13, 4 / 13]]))
    assert torch.isfinite(sharpened(torch.tensor([[1.0, 0.0]]), 0.01)).all()


def test_the_consistency_loss_is_the_definition_and_its_target_a_constant() -> None:
    model = grand(consistency=2.0, temperature=0.5)
    logits = torch.randn(4, 20, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    model._logits = logits
    loss = model.penalty()
    probs = torch.softmax(logits.detach(), -1).numpy().astype(np.float64)
    mean = probs.mean(0)
    sharp = mean**2 / (mean**2).sum(1, keepdims=True)
    expected = 2.0 * np.mean([np.mean(((draw - sharp) ** 2).sum(1)) for draw in probs])
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, logits)
    target = torch.from_numpy(sharp).float()
    again = logits.detach().clone().requires_grad_()
    by_hand = 2.0 * (torch.softmax(again, -1) - target).square().sum(-1).mean()
    torch.testing.assert_close(gradient, torch.autograd.grad(by_hand, again)[0])


def test_the_training_loss_is_the_mean_over_draws_plus_the_penalty() -> None:
    graph = random_graph()
    ids = torch.arange(graph.n)
    view = View(graph, ids, ids[:0], ids[:0], ids, 3, inductive=False)
    model = grand(draws=3)
    twin = grand(draws=3).train()
    result = fit(
        model,
        view,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.0),
        epochs=1,
        generator=torch.Generator().manual_seed(5),
    )
    use_generator(twin, torch.Generator().manual_seed(5))
    draws = twin(graph.x, twin.prepare(graph.adj))
    expected = torch.stack([functional.cross_entropy(draw, graph.y) for draw in draws]).mean() + twin.penalty()
    assert result.history[0].loss == pytest.approx(float(expected.detach()), rel=1e-6)


def test_bad_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="draws is 0"):
        grand(draws=0)
    with pytest.raises(DataError, match="temperature is 0"):
        grand(temperature=0)
