from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from grb.defense import softmedian
from grb.defense.softmedian import SoftMedian, median_rows, personalised_pagerank, soft_median
from grb.errors import DataError
from grb.graph import CSR, Adjacency, Graph, Pattern, adjacency_from_edges, normalise
from grb.model.base import predict


def star(x: list[float], weights: list[float] | None = None) -> tuple[CSR, Tensor]:
    """One row with every value as a neighbour."""
    pattern = Pattern(torch.tensor([0, len(x)]), torch.arange(len(x)), len(x))
    return CSR(pattern, torch.tensor(weights or [1.0] * len(x))), torch.tensor(x).unsqueeze(1)


def test_between_the_sum_and_the_median() -> None:
    op, x = star([0.0, 1.0, 10.0])
    found = [float(soft_median(op, x, temperature)) for temperature in (1e9, 1e-3, 1.0)]
    assert found == pytest.approx([11.0, 3.0, 2.196], abs=1e-3)


def brute_force(op: CSR, x: Tensor, temperature: float) -> Tensor:
    """Row by row, as the definition reads."""
    rows = []
    for row in (op @ torch.eye(op.shape[1], dtype=x.dtype)).unbind():
        near = row.nonzero().flatten()
        values, weights = x[near], row[near]
        median = []
        for dimension in range(x.shape[1]):
            order = values[:, dimension].argsort()
            reached = weights[order].cumsum(0) >= weights.sum() * (0.5 - 1e-6)
            median.append(values[order[int(reached.nonzero()[0])], dimension])
        apart = (torch.stack(median) - values).norm(dim=1)
        soft = torch.softmax(-apart / (temperature * x.shape[1] ** 0.5), 0)
        rows.append(weights.sum() / (soft * weights).sum() * (soft * weights) @ values)
    return torch.stack(rows)


@settings(max_examples=60)
@given(
    n=st.integers(1, 12), d=st.integers(1, 4), seed=st.integers(0, 999), temperature=st.sampled_from([0.2, 0.5, 3.0])
)
def test_agrees_with_the_definition_row_by_row(n: int, d: int, seed: int, temperature: float) -> None:
    rng = np.random.default_rng(seed)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((n, n)) < 0.4, 1)).T, n)
    op = normalise.gcn(Adjacency(adj.pattern, torch.ones(adj.pattern.entries, dtype=torch.float64)))
    x = torch.from_numpy(np.round(rng.normal(size=(n, d)), 1))  # rounded, so that there are ties
    torch.testing.assert_close(soft_median(op, x, temperature), brute_force(op, x, temperature))


def test_many_dimensions_are_sorted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((30, 30)) < 0.2, 1)).T, 30)
    op, x = normalise.gcn(adj), torch.randn(30, 7, generator=torch.Generator().manual_seed(0))
    assert op.values is not None
    at_once = median_rows(op.pattern, op.values, x)
    monkeypatch.setattr(softmedian, "BLOCK", 2 * op.pattern.entries)
    assert torch.equal(median_rows(op.pattern, op.values, x), at_once)


def test_one_neighbour_of_any_size_cannot_move_the_others_far() -> None:
    """The breakdown point that a sum does not have."""
    moved = [float(soft_median(*star([0.0, 0.1, 0.2, far]), 0.5)) for far in (10.0, 1e6)]
    assert abs(moved[1] - moved[0]) < 0.1 and abs(moved[1]) < 2


def test_entries_of_weight_zero_do_not_count() -> None:
    with_zero = soft_median(*star([0.0, 1.0, 10.0, 0.5], [1.0, 1.0, 1.0, 0.0]), 1.0)
    torch.testing.assert_close(with_zero, soft_median(*star([0.0, 1.0, 10.0]), 1.0))


def test_gradients_equal_finite_differences() -> None:
    rng = np.random.default_rng(1)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((9, 9)) < 0.4, 1)).T, 9)
    x = torch.from_numpy(rng.normal(size=(9, 3))).requires_grad_()
    hat = normalise.gcn(Adjacency(adj.pattern, torch.ones(adj.pattern.entries, dtype=torch.float64)))
    assert hat.values is not None
    weights = (hat.values + 0.01 * torch.from_numpy(rng.random(hat.pattern.entries))).requires_grad_()

    def function(x: Tensor, weights: Tensor) -> Tensor:
        return soft_median(CSR(hat.pattern, weights), x, 0.5)

    assert torch.autograd.gradcheck(function, (x, weights), eps=1e-7, atol=1e-5)


def test_personalised_pagerank_is_the_inverse_cut_to_its_largest_entries() -> None:
    rng = np.random.default_rng(2)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((40, 40)) < 0.1, 1)).T, 40)
    hat = (normalise.gcn(adj) @ torch.eye(40)).double()
    exact = 0.15 * torch.linalg.inv(torch.eye(40, dtype=torch.float64) - 0.85 * hat)
    found = (personalised_pagerank(adj, 0.15, 8) @ torch.eye(40)).double()
    assert (found > 0).sum(1).max() <= 8
    torch.testing.assert_close(found.sum(1), torch.ones(40, dtype=torch.float64))
    for row, expected in zip(found, exact, strict=True):
        near = row.nonzero().flatten()
        assert float(expected[near].min()) >= float(expected.topk(min(8, len(near))).values[-1]) - 2e-3
        torch.testing.assert_close(row[near], expected[near] / expected[near].sum(), rtol=0, atol=5e-3)


def test_the_diffused_variant_trains_on_its_own_neighbourhoods() -> None:
    rng = np.random.default_rng(3)
    adj, _ = adjacency_from_edges(np.argwhere(np.triu(rng.random((20, 20)) < 0.2, 1)).T, 20)
    graph = Graph(adj, torch.from_numpy(rng.normal(size=(20, 4)).astype(np.float32)))
    models = [
        SoftMedian(4, 3, [5], teleport=share, generator=torch.Generator().manual_seed(0)) for share in (None, 0.15)
    ]
    plain, diffused = (predict(model, graph) for model in models)
    assert torch.isfinite(diffused).all() and not torch.allclose(plain, diffused)
    assert models[0].stages() is not None and models[1].stages() is None


@pytest.mark.parametrize(
    "bad", [{"temperature": 0.0}, {"teleport": 1.0}, {"teleport": 0.0}, {"neighbours": 0}], ids=str
)
def test_bad_numbers_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(DataError, match=f"{next(iter(bad))} is"):
        SoftMedian(4, 3, [5], **bad)  # type: ignore[arg-type]
