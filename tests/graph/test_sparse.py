"""The sparse kernel against dense matrices and scipy."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse as sp
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Op, Pattern, adjacency_from_edges, sampled_product
from grb.graph.sparse import row_sums


def pattern_of(mask: np.ndarray, *, index: torch.dtype = torch.int32, symmetric: bool = False) -> Pattern:
    """The pattern of the true entries of a boolean matrix, row by row."""
    rows, columns = mask.shape
    indptr = [0]
    indices: list[int] = []
    for row in range(rows):
        indices += [column for column in range(columns) if mask[row, column]]
        indptr.append(len(indices))
    return Pattern(torch.tensor(indptr, dtype=index), torch.tensor(indices, dtype=index), columns, symmetric)


def dense_of(pattern: Pattern, values: Tensor | None, dtype: torch.dtype = torch.float64) -> Tensor:
    """The matrix written out, entry by entry."""
    full = torch.zeros(pattern.shape, dtype=dtype)
    for row in range(pattern.shape[0]):
        for place in range(int(pattern.indptr[row]), int(pattern.indptr[row + 1])):
            full[row, int(pattern.indices[place])] = 1.0 if values is None else values[place].to(dtype)
    return full


def random_pattern(rows: int, columns: int, share: float, seed: int) -> Pattern:
    return pattern_of(np.random.default_rng(seed).random((rows, columns)) < share)


def undirected(n: int, share: float, seed: int) -> tuple[Pattern, Tensor, Tensor]:
    """A symmetric pattern, its undirected edges [2, m], and for every entry the place of its edge."""
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < share, 1)
    edges = torch.from_numpy(np.argwhere(upper).T.copy())
    pattern = pattern_of(upper | upper.T, symmetric=True)
    place = {(int(u), int(v)): k for k, (u, v) in enumerate(edges.T)}
    entry = [place[min(u, v), max(u, v)] for u, v in zip(pattern.row_ids.tolist(), pattern.indices.tolist())]
    return pattern, edges, torch.tensor(entry, dtype=torch.int64)


SHAPES = [(5, 5), (7, 3), (3, 7), (1, 1), (1, 6), (6, 1), (0, 4), (4, 0), (0, 0)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_product_equals_dense_product(shape: tuple[int, int], share: float, weighted: bool, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(1)
    pattern = random_pattern(*shape, share, seed=2)
    values = torch.randn(pattern.entries, generator=generator, dtype=dtype) if weighted else None
    x = torch.randn(shape[1], 4, generator=generator, dtype=dtype)
    got = CSR(pattern, values) @ x
    assert got.dtype == dtype and got.shape == (shape[0], 4)
    torch.testing.assert_close(got, dense_of(pattern, values, dtype) @ x)


@given(
    rows=st.integers(0, 8),
    columns=st.integers(0, 8),
    width=st.integers(0, 3),
    share=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_product_and_transpose_equal_scipy(rows: int, columns: int, width: int, share: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    pattern = random_pattern(rows, columns, share, seed)
    values = draw.standard_normal(pattern.entries)
    reference = sp.csr_array((values, pattern.indices.numpy(), pattern.indptr.numpy()), shape=pattern.shape)
    op = CSR(pattern, torch.from_numpy(values))
    x, z = draw.standard_normal((columns, width)), draw.standard_normal((rows, width))
    np.testing.assert_allclose((op @ torch.from_numpy(x)).numpy(), reference @ x, atol=1e-12)
    np.testing.assert_allclose((op.T @ torch.from_numpy(z)).numpy(), reference.T @ z, atol=1e-12)
    np.testing.assert_allclose((op.T.T @ torch.from_numpy(x)).numpy(), reference @ x, atol=1e-12)


def test_rows_without_entries_give_zero() -> None:
    pattern = Pattern(torch.tensor([0, 0, 2, 2]), torch.tensor([0, 1]), columns=2)
    got = CSR(pattern, torch.tensor([2.0, 3.0])) @ torch.tensor([[1.0], [10.0]])
    assert got.tolist() == [[0.0], [32.0], [0.0]]


def test_vector_is_multiplied_as_a_vector() -> None:
    pattern = random_pattern(4, 3, 0.6, seed=0)
    x = torch.tensor([1.0, 2.0, 3.0])
    got = CSR(pattern) @ x
    assert got.shape == (4,)
    torch.testing.assert_close(got, dense_of(pattern, None, torch.float32) @ x)


def test_features_of_width_zero() -> None:
    pattern = random_pattern(4, 3, 0.6, seed=0)
    assert (CSR(pattern) @ torch.zeros(3, 0)).shape == (4, 0)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
def test_both_index_types_work(index: torch.dtype) -> None:
    mask = np.random.default_rng(0).random((5, 6)) < 0.5
    pattern = pattern_of(mask, index=index)
    x = torch.randn(6, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(CSR(pattern) @ x, torch.from_numpy(mask).float() @ x)
    back, place = pattern.transposed
    assert back.indices.dtype == back.indptr.dtype == index
    assert place.shape == (pattern.entries,)


def layouts(n: int, width: int) -> dict[str, Tensor]:
    wide = torch.randn(n, 2 * width, generator=torch.Generator().manual_seed(0))
    return {
        "columns of a wider tensor": wide[:, :width],
        "every other column": wide[:, ::2],
        "transposed": torch.randn(width, n, generator=torch.Generator().manual_seed(1)).T,
        "one row expanded": wide[:1, :width].expand(n, width),
        "every other row": torch.randn(2 * n, width, generator=torch.Generator().manual_seed(2))[::2],
    }


@pytest.mark.parametrize("layout", layouts(1, 1))
def test_product_with_strided_features(layout: str) -> None:
    pattern = random_pattern(9, 6, 0.5, seed=3)
    values = torch.randn(pattern.entries, generator=torch.Generator().manual_seed(3))
    x = layouts(6, 5)[layout]
    torch.testing.assert_close(CSR(pattern, values) @ x, dense_of(pattern, values, torch.float32) @ x)


def test_double_features_with_single_values() -> None:
    pattern = random_pattern(5, 5, 0.5, seed=1)
    values = torch.rand(pattern.entries, generator=torch.Generator().manual_seed(1)).requires_grad_()
    x = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    got = CSR(pattern, values) @ x
    assert got.dtype == torch.float64
    got.sum().backward()
    assert values.grad is not None and values.grad.dtype == torch.float32
    assert x.grad is not None and x.grad.dtype == torch.float64


def test_sizes_that_differ_are_refused() -> None:
    op = CSR(random_pattern(3, 4, 0.5, seed=0))
    with pytest.raises(DataError, match=r"\[3, 4\].*\[3, 2\]"):
        op @ torch.ones(3, 2)
    with pytest.raises(DataError):
        op.T @ torch.ones(4, 2)


def test_csr_is_an_op() -> None:
    assert isinstance(CSR(random_pattern(2, 2, 1.0, seed=0)), Op)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 6), (3, 0), (0, 3)])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_gradients_of_first_and_second_order(shape: tuple[int, int], share: float) -> None:
    pattern = random_pattern(*shape, share, seed=5)
    generator = torch.Generator().manual_seed(5)
    values = torch.randn(pattern.entries, dtype=torch.float64, generator=generator).requires_grad_()
    x = torch.randn(shape[1], 2, dtype=torch.float64, generator=generator).requires_grad_()

    def product(values: Tensor, x: Tensor) -> Tensor:
        return CSR(pattern, values) @ x

    def transposed(values: Tensor, z: Tensor) -> Tensor:
        return CSR(pattern, values).T @ z

    z = torch.randn(shape[0], 2, dtype=torch.float64, generator=generator).requires_grad_()
    assert torch.autograd.gradcheck(product, (values, x))
    assert torch.autograd.gradgradcheck(product, (values, x))
    assert torch.autograd.gradcheck(transposed, (values, z))
    assert torch.autograd.gradgradcheck(transposed, (values, z))


def test_gradient_for_values_alone_and_for_features_alone() -> None:
    pattern = random_pattern(4, 5, 0.5, seed=7)
    generator = torch.Generator().manual_seed(7)
    values = torch.randn(pattern.entries, dtype=torch.float64, generator=generator)
    x = torch.randn(5, 3, dtype=torch.float64, generator=generator)
    assert torch.autograd.gradcheck(lambda v: CSR(pattern, v) @ x, values.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda f: CSR(pattern, values) @ f, x.clone().requires_grad_())
    assert torch.autograd.gradcheck(lambda f: CSR(pattern) @ f, x.clone().requires_grad_())


@pytest.mark.parametrize("symmetric", [False, True])
def test_symmetric_operator_has_the_gradients_of_the_dense_one(symmetric: bool) -> None:
    """One weight per undirected edge feeds two entries; all derivatives are the dense ones."""
    pattern, edges, entry = undirected(7, 0.5, seed=11)
    generator = torch.Generator().manual_seed(11)
    weights = torch.rand(edges.shape[1], dtype=torch.float64, generator=generator)
    x = torch.randn(7, 3, dtype=torch.float64, generator=generator)
    direction = torch.randn(weights.shape, dtype=torch.float64, generator=generator)

    def loss(weights: Tensor, x: Tensor, sparse: bool) -> Tensor:
        if sparse:
            op = CSR(pattern, weights[entry], symmetric=symmetric)
            hidden = torch.tanh(op @ x)
            return (op.T @ hidden).pow(3).sum()
        full = torch.zeros(7, 7, dtype=torch.float64).index_put((edges[0], edges[1]), weights)
        full = full + full.T
        return (full @ torch.tanh(full @ x)).pow(3).sum()

    results = []
    for sparse in (True, False):
        w, f = weights.clone().requires_grad_(), x.clone().requires_grad_()
        value = loss(w, f, sparse)
        grad_w, grad_f = torch.autograd.grad(value, (w, f), create_graph=True)
        second = torch.autograd.grad((grad_w * direction).sum() + grad_f.pow(2).sum(), (w, f))
        results.append([value.detach(), grad_w.detach(), grad_f.detach(), *second])
    for ours, dense in zip(*results, strict=True):
        torch.testing.assert_close(ours, dense, rtol=1e-9, atol=1e-9)


def test_symmetric_operator_is_its_own_transpose() -> None:
    pattern, _, _ = undirected(5, 0.6, seed=1)
    op = CSR(pattern, torch.ones(pattern.entries), symmetric=True)
    assert op.T is op
    assert pattern.transposed[0] is pattern


def test_transposed_pattern_leads_back() -> None:
    pattern = random_pattern(6, 4, 0.4, seed=2)
    flipped, order = pattern.transposed
    again, back = flipped.transposed
    assert torch.equal(again.indptr, pattern.indptr) and torch.equal(again.indices, pattern.indices)
    assert torch.equal(order[back], torch.arange(pattern.entries))
    torch.testing.assert_close(dense_of(flipped, None), dense_of(pattern, None).T)


@pytest.mark.parametrize("ids", [[2], [4, 0, 3], [], [1, 1, 5], list(range(6))])
@pytest.mark.parametrize("weighted", [False, True])
def test_block_of_rows(ids: list[int], weighted: bool) -> None:
    pattern = random_pattern(6, 4, 0.5, seed=4)
    values = torch.randn(pattern.entries, generator=torch.Generator().manual_seed(4)) if weighted else None
    chosen = torch.tensor(ids, dtype=torch.int64)
    op = CSR(pattern, values)
    block = op.rows(chosen)
    assert block.shape == (len(ids), 4)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(block @ x, dense_of(pattern, values, torch.float32)[chosen] @ x)
    torch.testing.assert_close(block @ x, (op @ x)[chosen])
    z = torch.randn(len(ids), 2, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(block.T @ z, dense_of(pattern, values, torch.float32)[chosen].T @ z)


def test_block_of_rows_is_differentiable_in_the_values() -> None:
    pattern = random_pattern(5, 5, 0.5, seed=6)
    ids = torch.tensor([3, 0])
    x = torch.randn(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    values = torch.rand(pattern.entries, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: CSR(pattern, v).rows(ids) @ x, values)


@pytest.mark.parametrize("shape", [(5, 4), (3, 3), (0, 2), (2, 0)])
@pytest.mark.parametrize("width", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sampled_product_equals_dense(shape: tuple[int, int], width: int, dtype: torch.dtype) -> None:
    pattern = random_pattern(*shape, 0.5, seed=8)
    generator = torch.Generator().manual_seed(8)
    a = torch.randn(shape[0], width, generator=generator, dtype=dtype)
    b = torch.randn(shape[1], width, generator=generator, dtype=dtype)
    got = sampled_product(pattern, a, b)
    expected = (a @ b.T)[pattern.row_ids.long(), pattern.indices.long()]
    torch.testing.assert_close(got, expected)


def test_sampled_product_gradients_of_first_and_second_order() -> None:
    pattern = random_pattern(4, 5, 0.5, seed=9)
    generator = torch.Generator().manual_seed(9)
    a = torch.randn(4, 2, dtype=torch.float64, generator=generator).requires_grad_()
    b = torch.randn(5, 2, dtype=torch.float64, generator=generator).requires_grad_()
    assert torch.autograd.gradcheck(lambda a, b: sampled_product(pattern, a, b), (a, b))
    assert torch.autograd.gradgradcheck(lambda a, b: sampled_product(pattern, a, b), (a, b))


def test_row_sums() -> None:
    pattern = Pattern(torch.tensor([0, 2, 2, 3]), torch.tensor([0, 1, 1]), columns=2)
    assert row_sums(pattern, None).tolist() == [2.0, 0.0, 1.0]
    assert row_sums(pattern, torch.tensor([0.5, 2.0, 4.0])).tolist() == [2.5, 0.0, 4.0]
    values = torch.rand(3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: row_sums(pattern, v), values)


def remembering_op() -> tuple[CSR, Tensor, Tensor]:
    pattern = random_pattern(5, 5, 0.6, seed=10)
    values = torch.rand(pattern.entries, generator=torch.Generator().manual_seed(10))
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(10))
    return CSR(pattern, values).remembering(x), x, dense_of(pattern, values, torch.float32)


def test_remembered_product_is_computed_once() -> None:
    op, x, dense = remembering_op()
    first = op.known_product(x)
    assert first is not None
    torch.testing.assert_close(first, dense @ x)
    assert op.known_product(x) is first


def test_remembered_product_is_not_stale_after_a_change_in_place() -> None:
    op, x, dense = remembering_op()
    op.known_product(x)
    x.mul_(2)
    torch.testing.assert_close(op.known_product(x), dense @ x)
    assert op.values is not None
    op.values.mul_(3)
    torch.testing.assert_close(op.known_product(x), 3 * dense @ x)


def test_other_tensors_are_not_remembered_and_do_not_evict() -> None:
    op, x, _ = remembering_op()
    kept = op.known_product(x)
    assert op.known_product(torch.relu(x)) is None
    assert op.known_product(x.clone()) is None
    op @ torch.relu(x)
    assert op.known_product(x) is kept


def test_nothing_is_remembered_where_gradients_are_needed() -> None:
    op, x, _ = remembering_op()
    assert op.values is not None
    assert CSR(op.pattern, op.values.clone().requires_grad_()).remembering(x).known_product(x) is None
    wanted = x.clone().requires_grad_()
    assert CSR(op.pattern, op.values).remembering(wanted).known_product(wanted) is None
    assert CSR(op.pattern, op.values).known_product(x) is None


def test_remembering_leaves_the_operator_as_it_is() -> None:
    op, x, dense = remembering_op()
    plain = CSR(op.pattern, op.values)
    plain.remembering(x)
    assert plain.known_product(x) is None
    torch.testing.assert_close(op @ x, dense @ x)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**31))
def test_same_bits_every_time(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, 200, (2, 1500), generator=generator)
    adj = adjacency_from_edges(edges.numpy(), 200, mode="canonicalise")[0]
    values = torch.rand(adj.pattern.entries, generator=generator).requires_grad_()
    x = torch.randn(200, 33, generator=generator).requires_grad_()

    def run() -> tuple[Tensor, ...]:
        y = CSR(adj.pattern, values) @ x
        return (y, *torch.autograd.grad(y.pow(2).sum(), (values, x)))

    for once, twice in zip(run(), run(), strict=True):
        assert torch.equal(once, twice)


def test_adjoint_identity() -> None:
    """<S x, z> = <x, S' z> for a large random matrix, in double precision."""
    matrix = sp.random_array((300, 200), density=0.05, rng=np.random.default_rng(0), format="csr")
    pattern = Pattern(torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), 200)
    op = CSR(pattern, torch.from_numpy(matrix.data))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 4, dtype=torch.float64, generator=generator)
    z = torch.randn(300, 4, dtype=torch.float64, generator=generator)
    assert float(((op @ x) * z).sum()) == pytest.approx(float((x * (op.T @ z)).sum()), rel=1e-12)


@pytest.mark.parametrize("symmetric", [False, True])
def test_operators_leave_memory_with_their_last_name(symmetric: bool) -> None:
    """One that held itself would stay until all garbage is looked for: gigabytes in an attack on a large graph."""
    pattern = Pattern(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), 2, symmetric=symmetric)
    op = CSR(pattern, torch.ones(2), symmetric)
    assert torch.equal((op.T @ torch.eye(2)), (op.T.T @ torch.eye(2)).T)
    left = [weakref.ref(each) for each in (pattern, op, op.T, pattern.transposed[0])]
    gc.disable()
    try:
        del pattern, op
        assert [each() for each in left] == [None] * 4
    finally:
        gc.enable()
