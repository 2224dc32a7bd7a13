"""Spectral scores against eigenvalues of the flipped graph, and the fast forms against all eigenvalues."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from scipy import stats
from torch import Tensor

from attack.contexts import graph_of, random_graph, view_of
from attack.modification.dense import flipped, matrix, pairs_of
from grb.attack import AttackContext, run_attack
from grb.attack.modification import NEA, STACK
from grb.attack.modification.base import SearchState
from grb.attack.modification.spectrum import FilterChange, WalkResidual, _component_vectors, _walk
from grb.dataset import load_dataset
from grb.graph import Graph
from grb.threat import Modification
from helpers import needs_grb_cora


def ground_of(graph: Graph, targets: object = None) -> SearchState:
    chosen = range(graph.n) if targets is None else targets
    return SearchState.of(AttackContext(view_of(graph, chosen), Modification(edges=5)))


def all_scores(graph: Graph, score: object) -> tuple[Tensor, Tensor]:
    """All pairs and their scores, by the list functions."""
    state = ground_of(graph)
    made = score(state)  # type: ignore[operator]
    pairs = torch.tensor(pairs_of(graph.n)).T
    present = graph.adj.has(pairs)
    found = torch.empty(pairs.shape[1], dtype=torch.float64)
    found[present], found[~present] = made.drops(pairs[:, present]), made.adds(pairs[:, ~present])
    return pairs, found


def walk(a: Tensor) -> Tensor:
    degrees = a.sum(1)
    scale = torch.where(degrees > 0, degrees.clamp_min(1e-9) ** -0.5, 0.0)
    return scale.unsqueeze(1) * a * scale


def square_sum(a: Tensor, loops: bool) -> float:
    return float(torch.linalg.eigvalsh(walk(a + torch.eye(len(a), dtype=a.dtype) if loops else a)).square().sum())


GRAPHS = {
    "random": random_graph(12, density=0.3, seed=4),
    "pieces and isolated": random_graph(12, density=0.1, isolated=3, seed=1),
    "star": graph_of([(0, leaf) for leaf in range(1, 12)], 12),
}


@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS.keys())
def test_stack_is_exact_for_every_pair(graph: Graph, loops: bool) -> None:
    a = matrix(graph)
    pairs, found = all_scores(graph, FilterChange("exact", loops))
    before = square_sum(a, loops) ** 0.5
    wanted = [abs(before - square_sum(flipped(a, u, v), loops) ** 0.5) for u, v in pairs.T.tolist()]
    torch.testing.assert_close(found, torch.tensor(wanted).double(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("n", [60, 500])
def test_stack_is_exact_on_larger_graphs(n: int) -> None:
    graph = random_graph(n, density=4 / n, isolated=2, seed=n)
    a = matrix(graph)
    pairs, found = all_scores(graph, FilterChange())
    before = square_sum(a, False) ** 0.5
    some = torch.randperm(pairs.shape[1], generator=torch.Generator().manual_seed(0))[:6].tolist()
    some += graph.adj.has(pairs).nonzero().flatten()[:4].tolist()
    for place in some:
        after = square_sum(flipped(a, *pairs[:, place].tolist()), False) ** 0.5
        assert float(found[place]) == pytest.approx(abs(before - after), abs=1e-9)


@pytest.mark.parametrize("loops", [False, True])
def test_the_first_order_of_stack_is_that_of_all_eigenvalues(loops: bool) -> None:
    graph = GRAPHS["random"]
    a = matrix(graph) + loops * torch.eye(12, dtype=torch.float64)
    values, vectors = torch.linalg.eigh(walk(a))
    u = vectors * (a.sum(1) ** -0.5).unsqueeze(1)
    pairs, found = all_scores(graph, FilterChange("first_order", loops))
    before = float(values.square().sum())
    for place, (i, j) in enumerate(pairs.T.tolist()):
        sign = 1 - 2 * matrix(graph)[i, j]
        moved = sign * (2 * u[i] * u[j] - values * (u[i] ** 2 + u[j] ** 2))
        change = float((2 * values * moved).sum())
        assert float(found[place]) == pytest.approx(abs(before**0.5 - max(before + change, 0) ** 0.5), abs=1e-9)


def walk_sum(x: Tensor) -> Tensor:
    return sum(x**power for power in range(1, 6))  # type: ignore[return-value]


def test_nea_moves_every_eigenvalue_to_first_order() -> None:
    """A weight changed by a millionth: eigenvalues move by a millionth of what the formula says."""
    graph = random_graph(12, density=0.4, seed=0)
    a = matrix(graph)
    assert (a.sum(1) > 0).all()
    values, vectors = torch.linalg.eigh(walk(a))
    u = vectors * (a.sum(1) ** -0.5).unsqueeze(1)
    for i, j in pairs_of(12)[::7]:
        sign = 1 - 2 * float(a[i, j])
        step = 1e-6
        moved = a.clone()
        moved[i, j] = moved[j, i] = a[i, j] + step * sign
        change = (torch.linalg.eigvalsh(walk(moved)) - values) / step
        formula = sign * (2 * u[i] * u[j] - values * (u[i] ** 2 + u[j] ** 2))
        torch.testing.assert_close(change, formula, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dim", [0, 3, 20])
def test_nea_by_hand(dim: int) -> None:
    """Brute force over all pairs of 12 nodes: move all eigenvalues, sort, leave out the largest, take the root."""
    graph = random_graph(12, density=0.4, seed=0)
    a = matrix(graph)
    values, vectors = torch.linalg.eigh(walk(a))
    u = vectors * (a.sum(1) ** -0.5).unsqueeze(1)
    pairs, found = all_scores(graph, WalkResidual(dim=dim, estimate="dense"))
    for place, (i, j) in enumerate(pairs.T.tolist()):
        sign = 1 - 2 * a[i, j]
        moved = values + sign * (2 * u[i] * u[j] - values * (u[i] ** 2 + u[j] ** 2))
        squares = walk_sum(moved).square().sort().values
        wanted = squares[: max(12 - dim, 0)].sum().sqrt()
        assert float(found[place]) == pytest.approx(float(wanted), abs=1e-9)


@pytest.mark.parametrize("n", [12, 200])
@pytest.mark.parametrize("pieces", [False, True])
def test_the_fast_form_is_the_derivative_over_all_eigenvalues(n: int, pieces: bool) -> None:
    """The linear change of the sum of squares but for the leading ones, from a full eigendecomposition."""
    graph = random_graph(n, density=(1.5 if pieces else 8) / n, isolated=n // 6 if pieces else 0, seed=n)
    dim = 5
    a = matrix(graph)
    degrees = a.sum(1)
    values, vectors = torch.linalg.eigh(walk(a))
    parts = _component_vectors(graph.adj)
    ones = values > 1 - 1e-9
    assert int(ones.sum()) == parts.shape[1]
    vectors[:, ones] = parts
    u = vectors * torch.where(degrees > 0, degrees.clamp_min(1e-9) ** -0.5, 0.0).unsqueeze(1)
    slope = sum(power * values ** (power - 1) for power in range(1, 6))
    h = 2 * walk_sum(values) * slope
    h[walk_sum(values).square().argsort(descending=True)[:dim] if parts.shape[1] <= dim else []] = 0.0
    pairs, found = all_scores(graph, WalkResidual(dim=dim, estimate="fast"))
    sign = torch.where(graph.adj.has(pairs), -1.0, 1.0).double()
    i, j = pairs
    wanted = sign * ((h * (2 * u[i] * u[j] - values * (u[i] ** 2 + u[j] ** 2))).sum(1))
    torch.testing.assert_close(found, wanted, atol=1e-4 * float(wanted.abs().max()), rtol=1e-3)


@pytest.mark.parametrize("score", [FilterChange(), FilterChange("first_order", True), WalkResidual(estimate="fast")])
def test_blocks_hold_the_same_numbers(score: object) -> None:
    graph = random_graph(30, density=0.15, isolated=2, seed=2)
    made = score(ground_of(graph))  # type: ignore[operator]
    rows, columns = torch.tensor([4, 0, 9]), torch.arange(10, 30)
    pairs = torch.stack([rows.repeat_interleave(20), columns.repeat(3)])
    torch.testing.assert_close(made.add_block(rows, columns).flatten(), made.adds(pairs))


@pytest.mark.parametrize(("n", "dim"), [(60, 6), (300, 32), (500, 32)])
def test_the_fast_ranking_is_that_of_all_eigenvalues(n: int, dim: int) -> None:
    graph = random_graph(n, density=5 / n, seed=n)
    estimates: tuple[Any, ...] = ("dense", "fast")
    made = [WalkResidual(dim=dim, estimate=estimate)(ground_of(graph)) for estimate in estimates]
    pairs = torch.tensor(pairs_of(n)).T
    present = graph.adj.has(pairs)
    some = torch.randperm(int((~present).sum()), generator=torch.Generator().manual_seed(0))[:2000]
    edges, absent = pairs[:, present], pairs[:, ~present][:, some]
    for which, each in (("drops", edges), ("adds", absent)):
        dense, fast = (getattr(scores, which)(each).numpy() for scores in made)
        assert stats.spearmanr(dense, fast).statistic >= 0.9, which


def test_flips_between_nodes_of_one_component_leave_eigenvalue_one_alone() -> None:
    graph = GRAPHS["pieces and isolated"]
    vectors = _component_vectors(graph.adj)
    op = _walk(graph.adj)
    torch.testing.assert_close(op @ vectors, vectors)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(vectors.shape[1], dtype=torch.float64))


def test_both_change_as_many_edges_as_they_may_even_if_all_nodes_are_targets() -> None:
    """The original changes 1 of 125: it lists edges in both directions and flips them back."""
    graph = random_graph(60, density=0.1, seed=0)
    for attack in (NEA(), STACK(), NEA(estimate="fast")):
        for allow in (("drop",), ("add",), ("add", "drop")):
            context = AttackContext(view_of(graph, range(60)), Modification(edges=25, allow=allow))  # type: ignore[arg-type]
            assert run_attack(attack, context, seed=0).budget["edges"] == 25


def test_scores_are_computed_anew_after_flips() -> None:
    graph = random_graph(40, density=0.1, seed=1)
    context = AttackContext(view_of(graph, range(20)), Modification(edges=10))
    once, often = (run_attack(STACK(refresh=refresh), context, seed=0).edit for refresh in (None, 1))
    a = matrix(graph)

    def moved(edit: object) -> float:
        after = matrix(graph.apply(edit))  # type: ignore[arg-type]
        return abs(square_sum(a, False) ** 0.5 - square_sum(after, False) ** 0.5)

    assert moved(often) >= moved(once)


@needs_grb_cora
@pytest.mark.slow
def test_the_fast_ranking_on_grb_cora() -> None:
    graph = load_dataset("grb-cora").graph
    state = ground_of(graph)
    absent = torch.randint(graph.n, (2, 4000), generator=torch.Generator().manual_seed(0))
    absent = absent[:, (absent[0] != absent[1]) & ~graph.adj.has(absent)]
    estimates: tuple[Any, ...] = ("dense", "fast")
    dense, fast = (WalkResidual(estimate=estimate)(state) for estimate in estimates)
    edges = graph.adj.edges()
    assert stats.spearmanr(dense.drops(edges).numpy(), fast.drops(edges).numpy()).statistic >= 0.9
    assert stats.spearmanr(dense.adds(absent).numpy(), fast.adds(absent).numpy()).statistic >= 0.9
