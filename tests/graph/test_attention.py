"""Edge softmax and attention against dense formulas."""

from __future__ import annotations

import pytest
import torch

from grb.graph import CSR, Pattern
from grb.graph.attention import attend, edge_softmax, gather_columns, gather_rows


@pytest.fixture
def pattern() -> Pattern:
    """Rows of 2, 0, 3 and 1 entries over five columns."""
    return Pattern(torch.tensor([0, 2, 2, 5, 6]), torch.tensor([1, 4, 0, 2, 3, 2]), 5)


def test_gathers(pattern: Pattern) -> None:
    a, b = torch.arange(8.0).view(4, 2), torch.arange(10.0).view(5, 2)
    assert torch.equal(gather_rows(pattern, a), a[[0, 0, 2, 2, 2, 3]])
    assert torch.equal(gather_columns(pattern, b), b[[1, 4, 0, 2, 3, 2]])


def test_softmax_sums_to_one_in_every_row_and_survives_large_scores(pattern: Pattern) -> None:
    scores = torch.tensor([[1e4, -1e4], [1e4, 1e4], [0.0, -300.0], [1.0, -300.0], [2.0, -300.0], [5.0, 0.0]])
    alpha = edge_softmax(pattern, scores)
    assert torch.isfinite(alpha).all()
    torch.testing.assert_close(alpha[:2].sum(0), torch.ones(2))
    torch.testing.assert_close(alpha[2:5, 0], torch.softmax(scores[2:5, 0], 0))
    assert alpha[5].tolist() == [1.0, 1.0]


def test_attend_equals_dense_attention(pattern: Pattern) -> None:
    generator = torch.Generator().manual_seed(0)
    alpha, x = torch.rand(6, 3, generator=generator), torch.rand(5, 3, 4, generator=generator)
    dense = torch.zeros(4, 5, 3)
    dense[[0, 0, 2, 2, 2, 3], [1, 4, 0, 2, 3, 2]] = alpha
    torch.testing.assert_close(attend(pattern, alpha, x), torch.einsum("ijh,jhd->ihd", dense, x))


@pytest.mark.parametrize("heads", [1, 3])
def test_attend_gives_the_bits_of_one_product_per_head(heads: int) -> None:
    """On a symmetric pattern, whose transpose is the pattern itself while its weights are not symmetric."""
    ring = torch.tensor([[0, 1, 4], [0, 1, 2], [1, 2, 3], [2, 3, 4], [0, 3, 4]])
    pattern = Pattern(torch.arange(0, 16, 3), ring.flatten(), 5, symmetric=True)
    generator = torch.Generator().manual_seed(0)
    alpha = torch.rand(15, heads, generator=generator).requires_grad_()
    x = torch.rand(5, heads, 4, generator=generator).requires_grad_()
    weights = torch.rand(5, heads, 4, generator=generator)
    plain = torch.stack([CSR(pattern, alpha[:, head].contiguous()) @ x[:, head] for head in range(heads)], dim=1)
    expected = torch.autograd.grad((plain * weights).sum(), (alpha, x))
    together = attend(pattern, alpha, x)
    found = torch.autograd.grad((together * weights).sum(), (alpha, x))
    assert torch.equal(together, plain)
    assert all(torch.equal(own, other) for own, other in zip(found, expected, strict=True))


def test_gradients(pattern: Pattern) -> None:
    generator = torch.Generator().manual_seed(0)

    def leaf(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, dtype=torch.float64).requires_grad_()

    def loss(left: torch.Tensor, right: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        scores = torch.tanh(gather_rows(pattern, left) + gather_columns(pattern, right))
        return attend(pattern, edge_softmax(pattern, scores), x).sin()

    assert torch.autograd.gradcheck(loss, (leaf(4, 2), leaf(5, 2), leaf(5, 2, 3)))
    assert torch.autograd.gradgradcheck(loss, (leaf(4, 2), leaf(5, 2), leaf(5, 2, 3)))


def test_a_pattern_without_entries_works() -> None:
    empty = Pattern(torch.zeros(4, dtype=torch.int64), torch.empty(0, dtype=torch.int64), 2)
    alpha = edge_softmax(empty, torch.empty(0, 2))
    assert attend(empty, alpha, torch.ones(2, 2, 3)).abs().sum() == 0
