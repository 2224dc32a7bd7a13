"""GPR-GNN and ChebNetII against dense polynomials of the adjacency."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attack.contexts import random_graph
from grb.graph import Graph
from grb.model.base import predict
from grb.model.torch.chebnetii import ChebNetII
from grb.model.torch.gprgnn import GPRGNN


def sample() -> tuple[Graph, torch.Tensor]:
    graph = random_graph(20, features=3, isolated=1)
    adj = torch.zeros(20, 20, dtype=torch.float64)
    rows, columns = graph.adj.edges()
    adj[rows, columns] = adj[columns, rows] = 1
    return Graph(graph.adj, graph.x.double()), adj  # type: ignore[union-attr]


def test_gprgnn_is_a_sum_over_powers() -> None:
    graph, adj = sample()
    net = GPRGNN(3, 4, [5], k=4, coefficients="random", generator=torch.Generator().manual_seed(2)).double().eval()
    loops = adj + torch.eye(20, dtype=torch.float64)
    hat = loops * loops.sum(1).rsqrt()[:, None] * loops.sum(1).rsqrt()[None]
    h = net.linears[1](torch.relu(net.linears[0](graph.x)))
    expected = sum(g * torch.linalg.matrix_power(hat, k) @ h for k, g in enumerate(net.mixture.gamma))
    torch.testing.assert_close(predict(net, graph), expected.detach())  # type: ignore[union-attr]


def test_coefficients_start_as_the_papers_say() -> None:
    gamma = GPRGNN(3, 4).mixture.gamma
    assert gamma.detach().numpy() == pytest.approx([0.1 * 0.9**k for k in range(10)] + [0.9**10])
    drawn = GPRGNN(3, 4, coefficients="random", generator=torch.Generator().manual_seed(0)).mixture.gamma.detach()
    assert float(drawn.abs().sum()) == pytest.approx(1) and float(drawn.min()) < 0


def test_chebnetii_takes_its_values_at_the_nodes() -> None:
    """By the eigenvectors of the Laplacian and numpy's polynomial through the same points."""
    graph, adj = sample()
    net = ChebNetII(3, 4, [5], k=5).double().eval()
    values = np.array([0.3, 1.5, 0.0, 2.0, 0.7, 1.1])
    with torch.no_grad():
        net.filter.gamma.copy_(torch.from_numpy(values))
    roots = adj.sum(1).clamp_min(1).rsqrt()
    spectrum, vectors = np.linalg.eigh(-(adj * roots[:, None] * roots[None]).numpy())
    nodes = np.cos((np.arange(6) + 0.5) * np.pi / 6)
    response = np.polynomial.Polynomial.fit(nodes, values, 5)(spectrum)
    h = net.linears[1](torch.relu(net.linears[0](graph.x))).detach().numpy()
    expected = vectors @ (response[:, None] * (vectors.T @ h))
    # operators of unweighted graphs are made in float32
    np.testing.assert_allclose(predict(net, graph).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_numbers_of_parameters_on_cora() -> None:
    assert GPRGNN(302, 7).num_parameters == ChebNetII(302, 7).num_parameters == 19847 + 11
