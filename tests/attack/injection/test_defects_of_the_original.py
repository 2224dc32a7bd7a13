"""What the original benchmark's injection attacks get wrong, one test each: none of it may come back."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from attack.contexts import context_of, degrees_of, random_graph, same_edit, victim
from grb.attack import Attack, AttackContext, run_attack
from grb.attack.injection import FGSM, PGD, RND, SPEIT, TDGIA, TargetState
from grb.attack.injection.edges import random_edges
from grb.errors import BudgetError, DataError
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.model.torch import GCN

GRAPH = random_graph(24, density=0.15, isolated=3)
GRADIENT: tuple[Attack, ...] = (FGSM(n_epoch=3), PGD(n_epoch=3), SPEIT(n_epoch=3), TDGIA(n_epoch=3))
ALL = (RND(), *GRADIENT)


def context(
    nodes: int = 4, edges: int = 3, targets: range = range(10), limits: tuple[float, float] = (-1, 1)
) -> AttackContext:
    return context_of(GRAPH, targets, victim("gcn", 4), nodes, edges, limits=limits)


def features(edit: GraphEdit) -> Tensor:
    assert edit.new_x is not None
    return edit.new_x


@pytest.mark.parametrize("attack", ALL)
def test_more_edges_than_targets_is_no_infinite_loop(attack: Attack) -> None:
    edit = run_attack(attack, context(nodes=4, edges=50, targets=range(3)), seed=0).edit
    assert degrees_of(edit) == [3] * 4


@pytest.mark.parametrize(("nodes", "step"), [(4, 0.2), (1, 0.2), (3, 0.001)])
def test_a_round_of_less_than_one_node_is_no_infinite_loop(nodes: int, step: float) -> None:
    assert int(nodes * step) == 0
    result = run_attack(TDGIA(n_epoch=1, sequential_step=step), context(nodes=nodes), seed=0)
    assert degrees_of(result.edit) == [3] * nodes and len(result.steps) == nodes


@pytest.mark.parametrize("attack", ALL)
@pytest.mark.parametrize("limits", [(-0.1, 0.9), (-0.47, 0.99), (0.2, 0.3)])
def test_the_lower_limit_is_not_ignored(attack: Attack, limits: tuple[float, float]) -> None:
    x = features(run_attack(attack, context(limits=limits), seed=0).edit)
    assert float(x.min()) >= limits[0] - 1e-7 and float(x.max()) <= limits[1] + 1e-7


def test_the_smooth_map_reaches_both_ends_of_an_asymmetric_range() -> None:
    x = features(run_attack(TDGIA(n_epoch=0), context(nodes=20, limits=(-0.1, 0.9)), seed=0).edit)
    assert float(x.min()) < -0.09 and float(x.max()) > 0.89
    assert float(x.mean()) == pytest.approx(0.4, abs=0.1)


def test_features_of_earlier_batches_are_not_frozen() -> None:
    """The first of two rounds alone, and both: the rows of the first round differ by more than rounding."""
    one = run_attack(TDGIA(n_epoch=20, lr=0.1, sequential_step=1.0), context(nodes=2), seed=0)
    both = run_attack(TDGIA(n_epoch=20, lr=0.1, sequential_step=0.5), context(nodes=4), seed=0)
    assert torch.equal(one.edit.add[:, one.edit.add[1] < 26], both.edit.add[:, both.edit.add[1] < 26])
    assert one.steps == both.steps[:20]
    moved = (features(both.edit)[:2] - features(one.edit)).abs().max(1).values
    assert (moved > 0.01).all()


@pytest.mark.parametrize("attack", [FGSM(n_epoch=1, epsilon=0.1), SPEIT(n_epoch=1, lr=0.1)])
def test_features_are_not_those_of_before_the_last_step(attack: Attack) -> None:
    assert features(run_attack(attack, context(), seed=0).edit).abs().max() == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("attack", [type(attack)(n_epoch=0) for attack in GRADIENT])
def test_no_steps_at_all_is_no_crash(attack: Attack) -> None:
    result = run_attack(attack, context(), seed=0)
    assert result.steps == () and features(result.edit).isfinite().all()


def test_early_stopping_still_works_in_later_batches_and_calls() -> None:
    """There the stopper is replaced by one with a patience of 1000 once it has stopped."""
    still = context_of(GRAPH, range(10), victim("mlp", 4), 4, 3)  # cannot be attacked through edges
    attack = TDGIA(n_epoch=500, patience=2, sequential_step=0.25)
    for _ in range(2):
        assert len(run_attack(attack, still, seed=0).steps) == 4 * (1 + 2)


@pytest.mark.parametrize("attack", ALL)
def test_a_second_call_is_not_changed_by_the_first(attack: Attack) -> None:
    alone = run_attack(attack, context(), seed=1).edit
    run_attack(attack, context(nodes=2, edges=1), seed=0)
    assert same_edit(alone, run_attack(attack, context(), seed=1).edit)


def test_pseudo_labels_have_no_dropout_in_them() -> None:
    model = GCN(3, 4, hidden_features=[16, 16], dropout=0.8, generator=torch.Generator().manual_seed(0)).train()
    seen: list[Tensor | None] = []

    def edges(site: TargetState, count: int, generator: torch.Generator) -> Tensor:
        seen.append(site.labels)
        return random_edges(site, count, generator)

    for _ in range(3):
        run_attack(FGSM(n_epoch=1, edges=edges), context_of(GRAPH, range(24), model), seed=0)
    expected = predict(model, GRAPH).argmax(1)
    assert all(labels is not None and torch.equal(labels, expected) for labels in seen)
    noisy = model(GRAPH.x, model.prepare(GRAPH.adj)).argmax(1)
    assert not torch.equal(noisy, expected)  # so the test would notice


def test_budgets_and_ranges_are_verified() -> None:
    """There nothing calls the checks; here an attack that ignores its limits does not get through."""

    def greedy(lent: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        return FGSM(n_epoch=1)(context(nodes=9, edges=9, limits=(-5, 5)), generator=generator)

    with pytest.raises(BudgetError, match="9 nodes are injected, but the threat model allows nodes=4"):
        run_attack(greedy, context(), seed=0)


def test_tdgia_is_sequential_and_topological_by_default() -> None:
    attack = TDGIA()
    assert attack.inject_mode == "tdgia" and attack.sequential_step == 0.2
    edit = run_attack(TDGIA(n_epoch=1), context(nodes=5, edges=2, targets=range(24)), seed=0).edit
    degrees = GRAPH.adj.degrees.long()
    reached = edit.add[0][edit.add[0] < 24]
    # ten edges to 24 targets: the thin ones, isolated nodes before all others
    assert {21, 22, 23} <= set(reached.tolist())
    assert float(degrees[reached].float().mean()) < float(degrees.float().mean()) - 1


def test_published_variants_of_tdgia_have_names() -> None:
    assert TDGIA() == TDGIA(lr=0.01, steps=1000, sequential_step=0.2, inject_mode="tdgia", opt="sin", threshold=4.0)
    config, cup, adaptive = (TDGIA(preset=name) for name in ("grb-config", "kddcup", "atdgia"))
    assert (config.inject_mode, config.sequential_step, config.lr) == ("random", 1.0, 0.01)
    assert (cup.lr, cup.steps, cup.inject_mode) == (1.0, 2000, "tdgia")
    assert (adaptive.inject_mode, adaptive.threshold) == ("atdgia", 5.0)
    assert TDGIA(preset="kddcup", lr=0.5, steps=3).lr == 0.5
    one = [run_attack(TDGIA(preset=name, n_epoch=2), context(), seed=0).edit for name in ("grb", "atdgia")]
    assert not same_edit(*one)
    with pytest.raises(DataError, match="preset is 'best', but one of grb, grb-config, kddcup, atdgia is needed"):
        TDGIA(preset="best")  # type: ignore[arg-type]


def test_few_targets_leave_no_injected_node_without_edges() -> None:
    """There 300 of 2000 edges were placed and 85 nodes stayed alone."""
    edit = run_attack(TDGIA(n_epoch=1, sequential_step=0.5), context(nodes=20, edges=5, targets=range(7)), seed=0).edit
    assert degrees_of(edit) == [5] * 20


@pytest.mark.parametrize("wiring", ["inter", "layers"])
def test_speit_wires_targets_wherever_they_are(wiring: str) -> None:
    """There both modes crash, and assume that the targets are the last nodes."""
    targets = [1, 4, 5, 12]
    attack = SPEIT(n_epoch=1, wiring=wiring)  # type: ignore[arg-type]
    edit = run_attack(attack, context_of(GRAPH, targets, victim("gcn", 4), 20, 3), seed=0).edit
    assert sorted(edit.add[0][edit.add[0] < 24].tolist()) == targets
    assert max(degrees_of(edit)) <= 3


def test_one_seed_decides_everything() -> None:
    for attack in ALL:
        assert same_edit(*(run_attack(attack, context(), seed=3).edit for _ in range(2)))


def test_the_first_tiny_step_raises_the_loss() -> None:
    for attack in (FGSM(n_epoch=2, epsilon=1e-4), PGD(n_epoch=2, epsilon=1e-4), SPEIT(n_epoch=2, lr=1e-4)):
        first, second = run_attack(attack, context(), seed=0).steps
        assert second.loss > first.loss and math.isfinite(second.loss)
