"""Graph transformers: attention over all nodes in linear time, which certificates refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

import grb
from grb.certificate import run_certificate
from grb.certificate.build import build_certificate
from grb.certificate.result import NotCertifiable
from grb.errors import DataError
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.model.attention import GlobalAttention, kernel_attention, simple_attention
from grb.model.base import predict
from grb.model.torch.gps import GPS
from grb.model.torch.sgformer import SGFormer
from grb.threat import Injection, Modification

MODELS = [SGFormer, GPS]


def rows(n: int = 7, width: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n, width, generator=generator, dtype=torch.float64) for _ in range(3))  # type: ignore[return-value]


def test_simple_attention_is_the_formula_with_all_pairs() -> None:
    q, k, v = rows()
    weights = (q / q.norm()) @ (k / k.norm()).T / 7
    whole = torch.eye(7, dtype=torch.float64) + weights
    torch.testing.assert_close(simple_attention(q, k, v), (whole @ v) / (1 + weights.sum(1, keepdim=True)))


@pytest.mark.parametrize("heads", [1, 2])
def test_kernel_attention_is_the_formula_with_all_pairs(heads: int) -> None:
    q, k, v = rows()
    parts = []
    for own in (slice(4 * h // heads, 4 * (h + 1) // heads) for h in range(heads)):
        weights = (torch.nn.functional.elu(q[:, own]) + 1) @ (torch.nn.functional.elu(k[:, own]) + 1).T
        parts.append(weights @ v[:, own] / weights.sum(1, keepdim=True))
    torch.testing.assert_close(kernel_attention(q, k, v, heads), torch.cat(parts, 1))


@pytest.mark.parametrize("make", MODELS)
def test_an_injected_node_without_edges_reaches_everybody(make: type[SGFormer] | type[GPS]) -> None:
    adj, _ = adjacency_from_edges(np.array([[0, 1], [1, 2]]), 5)
    graph = Graph(adj, torch.randn(5, 3, generator=torch.Generator().manual_seed(1)))
    model = make(3, 2, [4], generator=torch.Generator().manual_seed(2)).eval()
    attacked = graph.apply(GraphEdit(n=5, new_x=torch.full((1, 3), 4.0)))
    assert ((predict(model, attacked)[:5] - predict(model, graph)).abs().amax(1) > 1e-4).all()


@pytest.mark.parametrize("name", ["sgformer", "gps"])
def test_certificates_about_injected_nodes_and_known_senders_are_refused(name: str) -> None:
    dataset = grb.load_dataset("synth-tiny")
    model = grb.train(name, dataset, epochs=2, hidden_features=[8])
    threat = Injection(2, 2, dataset.feature_range)
    for certificate in ("by-construction", "hash-vote", "bi-smoothing"):
        with pytest.raises(NotCertifiable, match="attention over all nodes"):
            run_certificate(build_certificate(certificate), model, dataset, threat)
    with pytest.raises(NotCertifiable, match="attention over all nodes"):
        run_certificate(build_certificate("by-construction"), model, dataset, Modification(edges=1))
    with pytest.raises(DataError, match="cannot be restricted to known senders"):
        grb.train(f"{name}+known", dataset, epochs=1)
    with pytest.raises(DataError, match="cannot hear senders of one group alone"):
        grb.train(f"{name}+hash-vote", dataset, epochs=1, divide="senders")


def test_settings_that_make_no_sense_are_refused() -> None:
    with pytest.raises(DataError, match="a divisor of the width 6"):
        GlobalAttention(6, 4)
    with pytest.raises(DataError, match="alpha is 2"):
        SGFormer(3, 2, [4], alpha=2.0)


@pytest.mark.parametrize("make", MODELS)
def test_memory_is_linear_in_the_number_of_nodes(make: type[SGFormer] | type[GPS]) -> None:
    """A matrix of nodes by nodes would take 40 GB here."""
    n = 100_000
    ends = np.stack([np.arange(n - 1), np.arange(1, n)])
    adj, _ = adjacency_from_edges(ends, n)
    model = make(4, 2, [8]).eval()
    assert predict(model, Graph(adj, torch.ones(n, 4))).shape == (n, 2)
