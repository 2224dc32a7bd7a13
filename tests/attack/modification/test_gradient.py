"""Gradients of edges against finite differences, autograd on dense matrices, and each other; in double precision."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from attack.modification.dense import double_gcn, double_graph, gcn_logits, matrix, pairs_of
from grb.attack.losses import Loss, cross_entropy, masked_cross_entropy, prob_margin, tanh_margin, typical_margin
from grb.attack.modification.gradient import Victim, _ByAutograd, of_propagated
from grb.attack.modification.low_rank_gradients import SCALINGS, Scaling, probe_graph
from grb.defense.gcnsvd import GCNSVD
from grb.defense.gnnguard import GCNGuard
from grb.defense.robustgcn import RobustGCN
from grb.errors import DataError
from grb.graph import Adjacency, Graph, normalise
from grb.model.torch import APPNP, GAT, GCN, GIN, MLP, SGC, SGCN, TAGCN, GraphSAGE

N = 12
PAIRS = torch.tensor(pairs_of(N)).T
MODELS: dict[str, nn.Module] = {
    "gcn": GCN(3, 4, hidden_features=[6, 5]),
    "gcn+ln, residual": GCN(3, 4, hidden_features=[6, 6], layer_norm=True, residual=True),
    "gat": GAT(3, 4, hidden_features=[6], heads=2),
    "gin": GIN(3, 4, hidden_features=[6]),
    "appnp": APPNP(3, 4, 6),
    "tagcn": TAGCN(3, 4, hidden_features=[6]),
    "graphsage": GraphSAGE(3, 4, hidden_features=[6], aggregate="mean"),
    "sgcn": SGCN(3, 4, hidden_features=[6, 6]),
    "sgc": SGC(3, 4),
    "r-gcn": RobustGCN(3, 4, hidden_features=[6]),
}


def drawn(model: nn.Module) -> nn.Module:
    model.reset_parameters(torch.Generator().manual_seed(1))  # type: ignore[operator]
    return model.double().eval().requires_grad_(False)


def weighted(graph: Graph, seed: int = 0) -> Adjacency:
    """The edges with weights between a half and one, as while PR-BCD moves them."""
    pattern = graph.adj.pattern
    low = torch.minimum(pattern.row_ids, pattern.indices) * graph.n + torch.maximum(pattern.row_ids, pattern.indices)
    table = torch.rand(graph.n**2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Adjacency(pattern, 0.5 + table[low.long()] / 2)


def with_weight(adj: Adjacency, u: int, v: int, change: float) -> Adjacency:
    pair = torch.tensor([[u], [v]])
    wide = adj if adj.has(pair) else adj.edited(pair, pair[:, :0], base=adj.n, n=adj.n)
    assert wide.values is not None
    values = wide.values.clone()
    places = torch.searchsorted(wide.keys, torch.tensor([u * adj.n + v, v * adj.n + u]))
    values[places] = (values[places] if adj.has(pair) else 0.0) + change
    return Adjacency(wide.pattern, values)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("relaxed", [False, True], ids=["whole edges", "weights"])
def test_gradients_equal_finite_differences(name: str, relaxed: bool) -> None:
    graph = double_graph(N)
    victim = Victim(drawn(MODELS[name]), graph, torch.arange(5), tanh_margin)
    adj = weighted(graph) if relaxed else graph.adj
    gradient = victim.gradient(adj)
    assert victim.closed_form == (name != "gat")
    found = gradient.of(PAIRS)
    step = 1e-6
    for place, (u, v) in list(enumerate(pairs_of(N)))[::5]:
        up, down = (victim.judge(with_weight(adj, u, v, change))[0] for change in (step, -step))
        assert float(found[place]) == pytest.approx((up - down) / (2 * step), abs=2e-7, rel=1e-5)
    assert gradient.loss == pytest.approx(victim.judge(adj)[0], abs=1e-12)
    assert gradient.kept == victim.judge(adj)[1]


@pytest.mark.parametrize("name", [name for name in MODELS if name != "gat"])
def test_the_closed_form_equals_autograd(name: str) -> None:
    graph = double_graph(N, isolated=2)
    victim = Victim(drawn(MODELS[name]), graph, torch.arange(4), tanh_margin)
    inside = PAIRS[:, (PAIRS < N - 2).all(0)]  # an isolated node has no derivative where degrees have no loop
    found = victim.gradient(graph.adj).of(inside)
    torch.testing.assert_close(found, _ByAutograd(victim, graph.adj).of(inside), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [cross_entropy, masked_cross_entropy, prob_margin, tanh_margin])
def test_the_closed_form_equals_dense_autograd(loss: Loss) -> None:
    graph, model, targets = double_graph(N, isolated=1), double_gcn(), torch.tensor([1, 5, 11])
    victim = Victim(model, graph, targets, loss)
    a = matrix(graph).requires_grad_()
    logits = gcn_logits(model, a, graph.x)[targets]  # type: ignore[arg-type]
    assert torch.equal(victim.labels, logits.argmax(1))
    (dense,) = torch.autograd.grad(loss(logits, victim.labels).mean(), a)
    found = victim.gradient(graph.adj).of(PAIRS)
    torch.testing.assert_close(found, (dense + dense.T)[PAIRS[0], PAIRS[1]], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", ["gcn", "gat", "r-gcn"])
@pytest.mark.parametrize("one_piece", [2**25, 0])
def test_blocks_hold_the_same_numbers(name: str, one_piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grb.attack.modification.low_rank_gradients.ONE_PIECE", one_piece)
    graph = double_graph(N)
    gradient = Victim(drawn(MODELS[name]), graph, torch.arange(5), tanh_margin).gradient(graph.adj)
    rows, columns = torch.tensor([3, 0, 7]), torch.arange(N)
    block = gradient.block(rows, columns)
    for at_once in (2**16, 4):
        for module in ("gradient", "low_rank_gradients"):
            monkeypatch.setattr(f"grb.attack.modification.{module}.PAIRS_AT_ONCE", at_once)
        for place, row in enumerate(rows.tolist()):
            others = columns[columns != row]
            found = gradient.of(torch.stack([torch.full_like(others, row), others]))
            torch.testing.assert_close(block[place, others], found)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_the_gradient_of_any_function_of_propagated_features(times: int) -> None:
    graph = double_graph(N, isolated=1)

    def curved(rows: Tensor) -> tuple[Tensor, float]:
        return (rows.sin() * torch.arange(1, N + 1).unsqueeze(1)).prod(1).sum(), 0.25

    a = matrix(graph).requires_grad_()
    loops = a + torch.eye(N, dtype=torch.float64)
    scale = loops.sum(1) ** -0.5
    rows = graph.x
    for _ in range(times):
        rows = (scale.unsqueeze(1) * loops * scale) @ rows
    assert isinstance(rows, Tensor) and isinstance(graph.x, Tensor)
    (dense,) = torch.autograd.grad(curved(rows)[0], a)
    found = of_propagated(graph.adj, graph.x, times, curved)
    torch.testing.assert_close(found.of(PAIRS), (dense + dense.T)[PAIRS[0], PAIRS[1]], rtol=1e-9, atol=1e-13)
    assert found.loss == pytest.approx(float(curved(rows)[0])) and found.kept == 0.25


def test_a_tiny_step_along_the_gradient_raises_the_loss() -> None:
    graph, model = double_graph(20), double_gcn()
    victim = Victim(model, graph, torch.arange(10))
    scores = victim.gradient(graph.adj).of(torch.tensor(pairs_of(20)).T)
    u, v = pairs_of(20)[int(scores.argmax())]
    assert victim.judge(with_weight(graph.adj, u, v, 1e-4))[0] > victim.judge(graph.adj)[0]


def test_every_scaling_is_told_from_the_others() -> None:
    probe = probe_graph(torch.float64)
    for left, right, loops in SCALINGS:
        op = normalise.scaled(probe, left=left, right=right, self_loops=loops)
        assert Scaling.of(op, probe) == Scaling(left, right, loops)
    assert Scaling.of(normalise.scaled(probe, left=-0.3, right=0.1), probe) is None
    assert Scaling.of("no operator", probe) is None


def test_a_model_that_sees_no_edges_has_gradient_zero() -> None:
    graph = double_graph(N)
    victim = Victim(drawn(MLP(3, 4, hidden_features=[5])), graph, torch.arange(5))
    assert not victim.gradient(graph.adj).of(PAIRS).any()
    assert not victim.gradient(graph.adj).block(torch.arange(3), torch.arange(N)).any()


def test_a_model_without_gradients_for_edges_is_refused_with_advice() -> None:
    graph = double_graph(N)
    model = drawn(GCNSVD(3, 4, hidden_features=[5], rank=3))
    plain = Graph(Adjacency(graph.adj.pattern), graph.x.float())  # type: ignore[union-attr]
    victim = Victim(model.float(), plain, torch.arange(5))
    with pytest.raises(DataError, match="a GCNSVD gives no gradients for edges; attack a surrogate"):
        victim.gradient(plain.adj).of(PAIRS)


def test_guarded_models_are_attacked_by_autograd() -> None:
    graph = double_graph(N)
    victim = Victim(drawn(GCNGuard(3, 4, hidden_features=[6])), graph, torch.arange(5))
    assert not victim.closed_form and victim.gradient(graph.adj).of(PAIRS).isfinite().all()


def test_the_scale_of_the_margin_is_that_of_the_clean_logits() -> None:
    graph, model = double_graph(N), double_gcn()
    for conv in model.convs:
        conv.linear.weight.mul_(4)  # type: ignore[union-attr, operator]
    victim = Victim(model, graph, torch.arange(N))
    clean: Tensor = victim.logits(graph.adj)
    top = clean.topk(2, dim=1).values
    median = float((top[:, 0] - top[:, 1]).median())
    assert median > 1 and typical_margin(clean, victim.labels) == pytest.approx(median)
    expected = partial(tanh_margin, scale=median)(clean, victim.labels)
    torch.testing.assert_close(victim.loss_of(clean, victim.labels), expected)
