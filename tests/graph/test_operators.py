from __future__ import annotations

import pytest
import torch

from grb.errors import DataError
from grb.graph.operators import Complete, LowRank
from grb.graph.sparse import Op


def dense_complete(ptr: list[int], own: float, scale: list[float]) -> torch.Tensor:
    blocks = [torch.full((b - a, b - a), s) for a, b, s in zip(ptr, ptr[1:], scale, strict=False)]
    return torch.block_diag(*blocks) + own * torch.eye(ptr[-1])


@pytest.mark.parametrize("own", [0.0, -1.0])
def test_complete_equals_the_dense_matrix(own: float) -> None:
    ptr = [0, 3, 4, 9]
    scale = [0.5, 2.0, -1.0]
    op = Complete(torch.tensor(ptr), torch.tensor(scale), own)
    dense = dense_complete(ptr, own, scale)
    x = torch.randn(9, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(op @ x, dense @ x)
    torch.testing.assert_close(op.T @ x, dense.T @ x)
    torch.testing.assert_close(op @ x[:, 0], dense @ x[:, 0])
    ids = torch.tensor([8, 0, 3])
    torch.testing.assert_close(op.rows(ids) @ x, dense[ids] @ x)


def test_complete_gcn_is_the_mean_of_the_graph() -> None:
    x = torch.tensor([[1.0], [3.0], [10.0]])
    assert (Complete.gcn(torch.tensor([0, 2, 3])) @ x).flatten().tolist() == [2.0, 2.0, 10.0]


def test_complete_adjacency_leaves_a_node_itself_out() -> None:
    x = torch.tensor([[1.0], [3.0], [10.0]])
    assert (Complete.adjacency(torch.tensor([0, 2, 3])) @ x).flatten().tolist() == [3.0, 1.0, 0.0]


def test_complete_is_differentiable() -> None:
    op = Complete(torch.tensor([0, 2, 5]), torch.rand(2, dtype=torch.float64), -1.0)
    x = torch.rand(5, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda value: op @ value, (x,))


def test_low_rank_equals_the_dense_matrix() -> None:
    generator = torch.Generator().manual_seed(1)
    left, right, x = (torch.randn(*size, generator=generator) for size in ((6, 2), (5, 2), (5, 3)))
    op, dense = LowRank(left, right), left @ right.T
    torch.testing.assert_close(op @ x, dense @ x)
    torch.testing.assert_close(op.T @ torch.ones(6, 1), dense.T @ torch.ones(6, 1))
    torch.testing.assert_close(op.rows(torch.tensor([4, 1])) @ x, dense[[4, 1]] @ x)
    assert isinstance(op, Op)
    assert isinstance(Complete.gcn(torch.tensor([0, 1])), Op)


def test_low_rank_refuses_factors_that_do_not_fit() -> None:
    with pytest.raises(DataError, match=r"\[n, k\] and \[m, k\]"):
        LowRank(torch.ones(3, 2), torch.ones(3, 1))
