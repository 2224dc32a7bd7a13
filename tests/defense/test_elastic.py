"""ElasticGNN by its incidence matrix, and its limits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from attack.contexts import random_graph
from grb.defense.elastic import ElasticGNN
from grb.errors import DataError
from grb.graph import Graph
from grb.model.base import predict
from grb.model.torch.appnp import APPNP


def model(**options: object) -> ElasticGNN:
    made = ElasticGNN(3, 4, [5], generator=torch.Generator().manual_seed(0), **options)  # type: ignore[arg-type]
    return made.double().eval().requires_grad_(False)


def sample() -> Graph:
    graph = random_graph(30, features=3, isolated=1)
    return Graph(graph.adj, graph.x.double())  # type: ignore[union-attr]


def incidence(graph: Graph) -> Tensor:
    rows, columns = graph.adj.edges()
    roots = (graph.adj.degrees + 1).double().rsqrt()
    b = torch.zeros(len(rows), graph.n, dtype=torch.float64)
    b[torch.arange(len(rows)), rows] = roots[rows]
    b[torch.arange(len(rows)), columns] = -roots[columns]
    return b


@pytest.mark.parametrize("norm", ["l21", "l1"])
@pytest.mark.parametrize(("lambda1", "lambda2"), [(0.2, 3.0), (3.0, 3.0), (0.5, 0.0)])
def test_steps_are_those_with_the_incidence_matrix(norm: str, lambda1: float, lambda2: float) -> None:
    graph = sample()
    h = predict(model(k=0), graph)
    b, gamma = incidence(graph), 1 / (1 + lambda2)
    hat = torch.eye(graph.n, dtype=torch.float64) - b.T @ b
    f, z = h, h.new_zeros(len(b), 4)
    for _ in range(10):
        y = gamma * h + (1 - gamma) * hat @ f
        z = z + b @ (y - gamma * b.T @ z) / (2 * gamma)
        if norm == "l1":
            z = z.clamp(-lambda1, lambda1)
        else:
            z = z * (lambda1 / z.norm(dim=1, keepdim=True).clamp_min(1e-12)).clamp(max=1)
        f = y - gamma * b.T @ z
    torch.testing.assert_close(predict(model(norm=norm, lambda1=lambda1, lambda2=lambda2), graph), f)


def test_many_steps_come_near_the_minimum() -> None:
    graph = sample()
    h, b = predict(model(k=0), graph), incidence(graph)

    def objective(f: Tensor) -> float:
        rough = b @ f
        return float(0.2 * rough.norm(dim=1).sum() + 0.5 * rough.square().sum() + 0.5 * (f - h).square().sum())

    found = predict(model(lambda1=0.2, lambda2=1.0, k=2000), graph)
    noise = torch.randn(found.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    assert objective(found) < objective(h)
    assert all(objective(found) < objective(found + step * noise) for step in (1e-3, -1e-3, 0.1, -0.1))


def test_without_lengths_it_is_appnp() -> None:
    graph = sample()
    own = model(lambda1=0.0, lambda2=3.0)
    other = APPNP(3, 4, [5], alpha=0.25).double().eval()
    other.load_state_dict(own.state_dict())
    torch.testing.assert_close(predict(own, graph), predict(other, graph))


def test_impossible_numbers_are_refused() -> None:
    for options in ({"lambda1": -1.0}, {"norm": "l3"}, {"k": -1}):
        with pytest.raises(DataError):
            ElasticGNN(3, 2, **options)  # type: ignore[arg-type]
