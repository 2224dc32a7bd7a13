"""Which features injected nodes get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attack.contexts import context_of, graph_of, random_graph, victim
from grb.attack import AttackContext, run_attack
from grb.attack.features import (
    ClippedOptimiser,
    FeatureRule,
    Objective,
    Range,
    SignAscent,
    SmoothMap,
    check_steps,
    gaussian,
)
from grb.attack.injection import FGSM, PGD, SPEIT, TDGIA, inject
from grb.attack.injection.edges import defective_edges, random_edges
from grb.attack.losses import smooth
from grb.errors import DataError
from grb.model.torch import SGC

NEW = torch.full((2, 3), torch.nan)  # two rows that no round before had


def drawn(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def adam(lr: float) -> Callable[[list[Tensor]], torch.optim.Optimizer]:
    return lambda variables: torch.optim.Adam(variables, lr=lr)


def objective(logits: Callable[[Tensor], Tensor], labels: Any = (0,), seen: list[Any] | None = None) -> Objective:
    """With the loss sum of the logits of other classes: raised by raising them."""
    log = [] if seen is None else seen
    return Objective(
        logits,
        torch.as_tensor(labels),
        lambda z, y: z.sum(1) - 2 * z.gather(1, y.unsqueeze(1)).squeeze(1),
        lambda loss, accuracy: log.append((loss, accuracy)),
    )


def towards(slopes: Tensor) -> Callable[[Tensor], Tensor]:
    """Logits (0, <slopes, x>): always classified as 0 or 1 by the sign."""

    def logits(x: Tensor) -> Tensor:
        value = (x * slopes).sum()
        return torch.stack([value * 0, value]).unsqueeze(0)

    return logits


RULES: dict[str, Callable[[int, int | None], FeatureRule]] = {
    "sign": lambda steps, patience: SignAscent(0.05, steps, patience=patience),
    "sign from noise": lambda steps, patience: SignAscent(0.05, steps, noise=0.1, patience=patience),
    "clipped adam": lambda steps, patience: ClippedOptimiser(adam(0.1), steps, patience),
    "smooth adam": lambda steps, patience: SmoothMap(adam(0.1), steps, patience),
}


@pytest.fixture(params=RULES.keys())
def rule(request: pytest.FixtureRequest) -> Callable[[int, int | None], FeatureRule]:
    return RULES[request.param]


SLOPES = torch.tensor([[1.0, -2.0, 0.5], [-1.0, 0.1, 3.0]])


@pytest.mark.parametrize("limits", [(-1.0, 1.0), (-0.47, 0.99), (0.25, 0.5), (-3.0, -1.0), (0.5, 0.5)])
def test_the_best_corner_of_any_range_is_found(rule: Callable[..., FeatureRule], limits: Range) -> None:
    x = rule(400, None)(objective(towards(SLOPES)), NEW, limits, drawn())
    corner = torch.where(SLOPES > 0, limits[1], limits[0])
    torch.testing.assert_close(x, corner, rtol=0, atol=2e-3 * (limits[1] - limits[0]))
    assert (x >= torch.tensor(limits[0])).all() and (x <= torch.tensor(limits[1])).all()
    assert not x.requires_grad


def test_zero_steps_return_the_start(rule: Callable[..., FeatureRule]) -> None:
    x = rule(0, None)(objective(towards(SLOPES)), NEW, (0.25, 0.5), drawn())
    assert x.shape == NEW.shape and (x >= 0.25).all() and (x <= 0.5).all()


def test_the_features_after_the_last_step_count(rule: Callable[..., FeatureRule]) -> None:
    """One step raises the loss, so its result is returned, not what it started from."""
    start = rule(0, None)(objective(towards(SLOPES)), NEW, (-1, 1), drawn())
    after = rule(1, None)(objective(towards(SLOPES)), NEW, (-1, 1), drawn())
    assert (after != start).all() and float((SLOPES * (after - start)).sum()) > 0


def test_the_best_iterate_is_kept_not_the_last(rule: Callable[..., FeatureRule]) -> None:
    """Accuracy is 0 only near the start, while the loss drives away from it."""
    start = rule(0, None)(objective(towards(SLOPES)), NEW, (-1, 1), drawn())

    def logits(x: Tensor) -> Tensor:
        value = (x * SLOPES).sum()
        near = (x.detach() - start).abs().max() < 0.12
        return torch.stack([value * 0 if near else value.detach() + 1, value]).unsqueeze(0) + (
            torch.tensor([0.0, 20.0]) if near else torch.zeros(2)
        )

    seen: list[Any] = []
    x = rule(30, None)(objective(logits, seen=seen), NEW, (-1, 1), drawn())
    accuracies = [accuracy for _, accuracy in seen]
    assert accuracies[0] == 0 and accuracies[-1] == 1
    last_good = accuracies.index(1) - 1
    assert last_good >= 1
    # the best of the good ones is the one with the highest loss: the last of them
    again = rule(last_good, None)(objective(towards(SLOPES)), NEW, (-1, 1), drawn())
    torch.testing.assert_close(x, again)


@given(st.integers(0, 12), st.sampled_from([(-1.0, 1.0), (-0.03, 0.99), (-0.05, 0.02)]), st.integers(0, 99))
def test_sign_steps_from_zero_are_multiples_of_epsilon(steps: int, limits: Range, seed: int) -> None:
    epsilon = 0.01
    slopes = torch.randn(2, 3, generator=drawn(seed))
    x = SignAscent(epsilon, steps)(objective(towards(slopes)), NEW, limits, drawn())
    assert x.abs().max() <= steps * epsilon + 1e-6
    clipped = (x == torch.tensor(limits[0])) | (x == torch.tensor(limits[1]))
    multiples = x / epsilon
    assert ((multiples - multiples.round()).abs()[~clipped] < 1e-3).all()


@pytest.mark.parametrize("steps", [1, 7, 60])
def test_a_linear_victim_is_attacked_along_the_difference_of_its_weights(steps: int) -> None:
    """Two classes, one target: x = clip(t eps sign(w_wrong - w_right))."""
    model = SGC(3, 2, k=1, generator=drawn(3))
    graph = graph_of([(0, 1)], 2, torch.tensor([[1.0, 0.5, -0.5], [0.2, 0.1, 0.4]]))
    context = context_of(graph, [0], model, nodes=1, edges=1, limits=(-0.2, 0.4))
    with torch.no_grad():
        right = int(model(graph.x, model.prepare(graph.adj))[0].argmax())
    direction = (model.linear.weight[:, 1 - right] - model.linear.weight[:, right]).sign()
    edit = run_attack(FGSM(epsilon=0.01, n_epoch=steps), context, seed=0).edit
    assert edit.new_x is not None
    torch.testing.assert_close(edit.new_x[0], (steps * 0.01 * direction).clamp(-0.2, 0.4), rtol=0, atol=1e-6)


def test_pgd_starts_at_noise_of_a_tenth_of_the_range() -> None:
    graph = random_graph(20, features=3)
    context = context_of(graph, range(10), victim("gcn", 2), nodes=400, edges=1, limits=(-0.5, 2.0))
    x = run_attack(PGD(n_epoch=0), context, seed=0).edit.new_x
    zero = run_attack(FGSM(n_epoch=0), context, seed=0).edit.new_x
    assert x is not None and zero is not None
    assert float(x.std()) == pytest.approx(0.2, rel=0.1) and abs(float(x.mean())) < 0.03
    assert not zero.any()


def test_gaussian_features_are_clipped() -> None:
    x = gaussian((2000, 2), 1.0, (-0.5, 3.0), drawn())
    assert float(x.min()) == -0.5 and float(x.max()) <= 3.0
    inside = x[x > -0.5]
    assert float((x == -0.5).float().mean()) == pytest.approx(0.3085, abs=0.03)  # P(N < -0.5)
    assert float(inside.mean()) == pytest.approx(0.509, abs=0.05)  # E[N | N > -0.5]


# ---------------------------------------------------------------- early stop


@pytest.mark.parametrize("patience", [1, 3, 10])
def test_patience_counts_steps_without_a_lower_accuracy(rule: Callable[..., FeatureRule], patience: int) -> None:
    seen: list[Any] = []
    steady = objective(lambda x: torch.stack([9 + x.sum() * 0, x.sum() * 0]).unsqueeze(0), seen=seen)
    rule(50, patience)(steady, NEW, (-1, 1), drawn())
    assert len(seen) == 1 + patience
    seen.clear()
    rule(50, None)(steady, NEW, (-1, 1), drawn())
    assert len(seen) == 50


def test_patience_starts_anew_with_every_lower_accuracy() -> None:
    accuracies = iter([1.0, 1.0, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0])
    seen: list[float] = []

    class Given(Objective):
        def __call__(self, features: Tensor) -> tuple[Tensor, float]:
            seen.append(next(accuracies))
            return features.sum() * 0, seen[-1]

    SignAscent(0.1, 50, patience=3)(Given(lambda x: x, NEW, smooth, lambda *step: None), NEW, (-1, 1), drawn())
    assert seen == [1.0, 1.0, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]


def test_early_stop_of_one_call_does_not_leak_into_the_next() -> None:
    """An MLP sees no neighbours: accuracy never falls, so every round of every call stops after 1 + 3 steps."""
    context = context_of(random_graph(20), range(10), victim("mlp", 3), nodes=5, edges=2)
    for attack in (FGSM(patience=3), PGD(patience=3), SPEIT(patience=3)):
        assert [len(run_attack(attack, context, seed=0).steps) for _ in range(2)] == [4, 4]
    tdgia = TDGIA(patience=3)
    assert [len(run_attack(tdgia, context, seed=0).steps) for _ in range(2)] == [5 * 4, 5 * 4]


# ---------------------------------------------------------------- rounds


def watched(rule: FeatureRule, rounds: list[Tensor]) -> FeatureRule:
    def call(objective: Objective, so_far: Tensor, limits: Range, generator: torch.Generator) -> Tensor:
        assert int(so_far.isnan().any(1).sum()) >= 1
        rounds.append(rule(objective, so_far, limits, generator))
        return rounds[-1]

    return call


def rounds_of(rule: FeatureRule, context: AttackContext, share: float) -> list[Tensor]:
    rounds: list[Tensor] = []
    inject(
        context, edges=defective_edges, features=watched(rule, rounds), generator=drawn(), loss=smooth, fraction=share
    )
    return rounds


def test_features_of_earlier_rounds_go_on_changing(rule: Callable[..., FeatureRule]) -> None:
    context = context_of(random_graph(20, seed=3), range(12), victim("gcn", 4).eval(), nodes=4, edges=3)
    rounds = rounds_of(rule(8, None), context, share=0.5)
    assert [len(x) for x in rounds] == [2, 4]
    moved = (rounds[1][:2] - rounds[0]).abs().max(1).values
    assert (moved > 0.01).all()


def test_earlier_rounds_start_where_they_ended(rule: Callable[..., FeatureRule]) -> None:
    context = context_of(random_graph(20, seed=3), range(12), victim("gcn", 4).eval(), nodes=4, edges=3)
    first = rounds_of(rule(0, None), context, share=0.5)
    torch.testing.assert_close(first[1][:2], first[0], rtol=0, atol=2e-3)


@pytest.mark.parametrize(("nodes", "share", "sizes"), [(4, 0.2, [1, 1, 1, 1]), (5, 0.5, [2, 2, 1]), (1, 0.01, [1])])
def test_rounds_are_at_least_one_node_and_end(nodes: int, share: float, sizes: list[int]) -> None:
    context = context_of(random_graph(12), range(6), victim("gcn", 2).eval(), nodes=nodes, edges=2)
    totals = [len(x) for x in rounds_of(SignAscent(0.1, 1), context, share)]
    assert [b - a for a, b in zip([0, *totals], totals, strict=False)] == sizes


def test_a_range_at_its_ends_does_not_freeze_the_smooth_map() -> None:
    """sin is flat at the ends of the range: a row that sits there must still be able to turn around."""
    so_far = torch.tensor([[1.0, -1.0, 1.0]])
    slopes = -so_far
    plain = SmoothMap(lambda variables: torch.optim.SGD(variables, lr=0.3), 60)  # Adam would blow up any slope
    x = plain(objective(towards(slopes)), so_far, (-1, 1), drawn())
    torch.testing.assert_close(x, -so_far, rtol=0, atol=1e-2)


def test_numbers_that_make_no_sense_are_refused() -> None:
    for bad in ({"n_epoch": -1}, {"lr": 0.0}, {"lr": float("nan")}, {"lr": float("inf")}, {"patience": -2}):
        with pytest.raises(DataError, match=f"{next(iter(bad))} is"):
            check_steps(**bad)
    check_steps(n_epoch=0, lr=1e-9, patience=None)
    for make in (
        lambda: FGSM(epsilon=0),
        lambda: PGD(n_epoch=-1),
        lambda: SPEIT(lr=-1.0),
        lambda: TDGIA(sequential_step=0.0),
        lambda: TDGIA(sequential_step=float("nan")),
        lambda: TDGIA(sequential_step=1.5),
    ):
        with pytest.raises(DataError):
            make()


def test_a_rule_of_edges_can_be_exchanged() -> None:
    context = context_of(random_graph(12), range(6), victim("gcn", 2), nodes=2, edges=2)
    other = FGSM(n_epoch=1, edges=defective_edges)
    assert other.edges is defective_edges and FGSM().edges is random_edges
    assert run_attack(other, context, seed=0).budget["edges"] == 4
