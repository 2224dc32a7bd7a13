"""The standard ensemble: what it returns is legal, the strongest of all that was tried, and the same for the same seed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from attack.contexts import random_graph, same_edit, view_of
from grb.attack import AttackContext, run_attack
from grb.attack.auto import ensemble
from grb.attack.auto.ensemble import EdgeAutoAttack, GraphAutoAttack, strength_over_cost
from grb.attack.auto.injection import MEMBERS
from grb.attack.auto.member import LEVELS, Member
from grb.attack.base import Trial
from grb.attack.injection import FGSM
from grb.attack.injection.composed import ComposedInjection
from grb.attack.modification import FGA
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.model.base import predict
from grb.model.torch import GCN
from grb.threat import Injection, Modification, Threat

GRAPH = random_graph(24, density=0.15)
THREATS: dict[str, Threat] = {"injection": Injection(2, 3, (-1.0, 1.0)), "modification": Modification(edges=3)}
QUICK = {
    "injection": (
        Member("weak", lambda level: FGSM(steps=1 + level, step_size=0.01)),
        Member("strong", lambda level: FGSM(steps=8, step_size=0.5)),
    ),
    "modification": (Member("greedy", lambda level: FGA()), Member("again", lambda level: FGA(refresh=1))),
}


def context_of(scenario: str, **more: Any) -> AttackContext:
    torch.manual_seed(0)
    model = more.pop("model", None) or GCN(GRAPH.num_features, 3).eval()
    return AttackContext(view_of(GRAPH, range(12)), more.pop("threat", THREATS[scenario]), model, "white-box", **more)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two members, so that a race takes no time; all of them race in tests/attack/auto/test_members.py."""
    chosen = {Injection: QUICK["injection"], Modification: QUICK["modification"]}
    monkeypatch.setattr(ensemble, "members", lambda context: chosen[type(context.threat)])


def kept(context: AttackContext, edit: GraphEdit) -> Tensor:
    assert context.model is not None
    clean = predict(context.model, context.graph)[context.targets].argmax(1)
    return predict(context.model, context.graph.apply(edit))[context.targets].argmax(1) == clean


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("scenario", THREATS)
def test_the_result_is_the_strongest_edit_that_was_tried(scenario: str) -> None:
    context = context_of(scenario)
    result = run_attack(GraphAutoAttack(), context, seed=0)
    assert {trial.name for trial in result.trials} == {"clean graph", *(each.name for each in QUICK[scenario])}
    assert max(trial.level for trial in result.trials) == LEVELS - 1
    accuracies = [trial.accuracy for trial in result.trials if trial.accuracy is not None]
    assert float(kept(context, result.edit).float().mean()) == pytest.approx(min(accuracies))
    assert result.envelope is not None and not (result.envelope & ~kept(context, result.edit)).any()
    best = [step.accuracy for step in result.steps]
    assert best == sorted(best, reverse=True), "the best so far never gets worse"
    assert same_edit(result.edit, run_attack(GraphAutoAttack(), context, seed=0).edit)


@pytest.mark.usefixtures("few")
def test_the_cost_of_every_trial_is_counted() -> None:
    result = run_attack(GraphAutoAttack(), context_of("injection"), seed=0)
    strong = [trial for trial in result.trials if trial.name == "strong"]
    # eight steps, the judgement of the last one, and the clean logits
    assert {(trial.forward, trial.backward) for trial in strong} == {(10, 8)}
    assert result.passes.forward >= sum(trial.forward for trial in result.trials)
    curve = list(strength_over_cost(result.trials))
    assert [left for _, left in curve] == sorted((left for _, left in curve), reverse=True)
    assert curve[-1][0] == pytest.approx(sum(trial.cpu_seconds for trial in result.trials))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("scenario", THREATS)
def test_edits_of_others_join_if_they_are_allowed(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A race whose own members do nothing returns the strongest edit of the pool that the limits allow."""
    context = context_of(scenario)
    good = run_attack(GraphAutoAttack(), context, seed=0).edit
    wide = replace(context, threat=Injection(9, 9, (-9.0, 9.0)) if scenario == "injection" else Modification(edges=40))
    beyond = run_attack(GraphAutoAttack(), wide, seed=0).edit
    idle = Member("idle", lambda level: lambda context, *, generator: GraphEdit(n=context.graph.n))
    monkeypatch.setattr(ensemble, "members", lambda context: (idle,))
    result = run_attack(GraphAutoAttack(pool=[beyond, good]), context, seed=0)
    assert same_edit(result.edit, good)
    refused = [trial for trial in result.trials if trial.name == "pool 0"]
    assert len(refused) == 1 and "threat model allows" in refused[0].error and refused[0].kept is None


class Masked(nn.Module):
    """A defense whose own gradients are zero, with the model behind it as the attacker's relaxation."""

    def __init__(self, inner: GCN) -> None:
        super().__init__()
        self.inner = inner

    def prepare(self, adj: Any) -> Any:
        return self.inner.prepare(adj)

    def forward(self, x: Tensor, adj: Any) -> Tensor:
        return (self.inner(x, adj) * 1e3).round() / 1e3

    def relaxations(self) -> dict[str, nn.Module]:
        return {"smooth": self.inner}


@pytest.mark.usefixtures("few")
def test_a_defense_is_attacked_through_its_relaxations_and_judged_itself() -> None:
    torch.manual_seed(0)
    inner = GCN(GRAPH.num_features, 3).eval()
    context = context_of("injection", model=Masked(inner).eval())
    result = run_attack(GraphAutoAttack(), context, seed=0)
    tried = [(trial.name.endswith("through smooth"), trial.accuracy) for trial in result.trials[1:]]
    through, direct = (
        min(left for own, left in tried if own is smooth and left is not None) for smooth in (True, False)
    )
    assert {trial.relaxation for trial in result.trials} == {"", "smooth"}
    assert through < direct and float(kept(context, result.edit).float().mean()) == through


def test_members_that_watch_the_model_run_through_its_relaxations_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    inner = GCN(GRAPH.num_features, 3).eval()
    model = Masked(inner).eval()
    judges: list[tuple[nn.Module, nn.Module | None]] = []

    def seen(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        judges.append((context.surrogate(), context.judge))
        return GraphEdit(n=context.graph.n)

    listed = (*QUICK["modification"], Member("watching", lambda level: seen, relaxed=True))
    monkeypatch.setattr(ensemble, "members", lambda context: listed)
    result = run_attack(GraphAutoAttack(), context_of("modification", model=model), seed=0)
    assert {trial.name for trial in result.trials if trial.name.startswith("watching")} == {"watching through smooth"}
    assert judges and all(lends is inner and judge is model for lends, judge in judges)
    plain = run_attack(GraphAutoAttack(), context_of("modification"), seed=0)
    assert not any(trial.name.startswith("watching") for trial in plain.trials)


class Stopped(Masked):
    """A defense whose outputs cannot be differentiated at all."""

    def forward(self, x: Tensor, adj: Any) -> Tensor:
        return self.inner(x, adj).detach()


@pytest.mark.usefixtures("few")
def test_a_defense_without_gradients_is_attacked_through_its_relaxations() -> None:
    torch.manual_seed(0)
    context = context_of("injection", model=Stopped(GCN(GRAPH.num_features, 3)).eval())
    result = run_attack(GraphAutoAttack(), context, seed=0)
    assert [bool(trial.error) for trial in result.trials[1:5]] == [True, True, False, False]
    assert float(kept(context, result.edit).float().mean()) < 1


def test_a_model_that_gives_outputs_alone_is_attacked_by_the_members_without_gradients() -> None:
    class Silent(Stopped):
        def relaxations(self) -> dict[str, nn.Module]:
            return {}

    torch.manual_seed(0)
    context = context_of("injection", model=Silent(GCN(GRAPH.num_features, 3)).eval())
    result = run_attack(GraphAutoAttack(), context, seed=0)
    ran = {trial.name for trial in result.trials if not trial.error}
    assert ran == {"clean graph", "random-search", "random-search continued"}
    assert float(kept(context, result.edit).float().mean()) < 1


class Failing(Masked):
    """A defense whose relaxations are of no use."""

    def __init__(self, inner: GCN, given: Any) -> None:
        super().__init__(inner)
        self.given = given

    def relaxations(self) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given


class Wrong(nn.Module):
    def forward(self, x: Tensor, adj: Any) -> Tensor:
        raise KeyError("nothing here")


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("given", [ValueError("no"), {"a": None}, 7, {"wrong": Wrong()}, {3: nn.Identity()}])
def test_relaxations_that_fail_are_reported_and_the_race_goes_on(given: Any) -> None:
    torch.manual_seed(0)
    inner = GCN(GRAPH.num_features, 3).eval()
    result = run_attack(GraphAutoAttack(), context_of("injection", model=Failing(inner, given).eval()), seed=0)
    failed = [trial for trial in result.trials if trial.error]
    assert failed and all("\n" not in trial.error for trial in failed)
    assert {trial.name for trial in failed} & {"relaxations", "strong through wrong", "strong through 3"}
    assert result.edit.num_new == 2


class Shifted(Masked):
    """A defense whose relaxation predicts another class than itself everywhere."""

    def relaxations(self) -> dict[str, nn.Module]:
        class Twin(Masked):
            def forward(self, x: Tensor, adj: Any) -> Tensor:
                return self.inner(x, adj).roll(1, dims=1)

        return {"shifted": Twin(self.inner)}


def test_entrants_through_a_relaxation_aim_at_the_labels_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    aimed = []

    def spy(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        aimed.append(context.aimed_labels(predict(context.surrogate(), context.graph)[context.targets]))
        return GraphEdit(n=context.graph.n)

    monkeypatch.setattr(ensemble, "members", lambda context: (Member("spy", lambda level: spy),))
    torch.manual_seed(0)
    context = context_of("injection", model=Shifted(GCN(GRAPH.num_features, 3)).eval())
    run_attack(GraphAutoAttack(), context, seed=0)
    assert len(aimed) >= 2 and all(torch.equal(each, aimed[0]) for each in aimed)


def test_members_that_fail_are_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: AttackContext, *, generator: torch.Generator) -> GraphEdit:
        raise DataError("this one gives no gradients")

    failing = Member("failing", lambda level: broken)
    monkeypatch.setattr(ensemble, "members", lambda context: (failing, QUICK["injection"][1]))
    result = run_attack(GraphAutoAttack(), context_of("injection"), seed=0)
    assert [trial.error for trial in result.trials if trial.name == "failing"] == ["this one gives no gradients"]
    assert result.edit.num_new == 2
    monkeypatch.setattr(ensemble, "members", lambda context: (failing,))
    with pytest.raises(DataError, match="none of the 1 attacks of the ensemble can attack a GCN"):
        run_attack(GraphAutoAttack(), context_of("injection"), seed=0)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("threat", [Injection(0, 3, (-1.0, 1.0)), Injection(3, 0, (-1.0, 1.0)), Modification(edges=0)])
def test_nothing_is_tried_where_nothing_is_allowed(threat: Threat) -> None:
    result = run_attack(GraphAutoAttack(), context_of("injection", threat=threat), seed=0)
    assert result.edit.is_empty and result.trials == () and result.envelope is None


@pytest.mark.usefixtures("few")
def test_true_labels_change_what_is_judged() -> None:
    context = context_of("injection")
    assert context.model is not None
    said = predict(context.model, GRAPH)[context.targets].argmax(1)
    wrong = (said + 1) % 3
    result = run_attack(GraphAutoAttack(), replace(context, true_labels=wrong), seed=0)
    assert result.labels == "true" and result.trials[0].accuracy == 0.0  # the clean graph already


@pytest.mark.usefixtures("few")
def test_a_race_is_over_when_nothing_is_left() -> None:
    context = context_of("injection")
    said = predict(context.surrogate(), GRAPH)[context.targets].argmax(1)
    result = run_attack(GraphAutoAttack(), replace(context, true_labels=(said + 1) % 3), seed=0)
    assert [trial.name for trial in result.trials] == ["clean graph"] and result.edit.is_empty


def test_the_edge_ensemble_is_the_same_attack_with_other_default_limits() -> None:
    assert GraphAutoAttack.scenario == "injection" and EdgeAutoAttack.scenario == "modification"
    # versions count apart: a change of one leaves the other's results
    assert (EdgeAutoAttack.version, GraphAutoAttack.version) == (2, 3)


def test_a_trial_is_json() -> None:
    trial = Trial("pgd", 1, 0.123456, 10, 9, torch.tensor([True, False]))
    assert trial.to_dict() == {
        "name": "pgd", "level": 1, "cpu_seconds": 0.1235, "forward": 10, "backward": 9, "error": "", "relaxation": "",
        "kept": 0.5,
    }  # fmt: skip


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("scenario", THREATS)
def test_every_trial_keeps_its_edit_so_that_an_evaluator_can_look_for_the_least(scenario: str) -> None:
    context = context_of(scenario)
    result = run_attack(GraphAutoAttack(), context, seed=0)
    for trial in result.trials:
        assert (trial.edit is None) == (trial.kept is None)
        if trial.edit is not None and trial.kept is not None:
            assert torch.equal(kept(context, trial.edit), trial.kept)
        assert "edit" not in trial.to_dict()
    assert any(each.edit is not None and same_edit(each.edit, result.edit) for each in result.trials)


@pytest.mark.parametrize("labels", ["predicted", "true"])
@pytest.mark.parametrize("seed", [0, 7])
def test_what_the_strongest_single_attack_finds_alone_is_an_edit_of_the_race(
    labels: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An evaluator who takes the least over all trials is never above ``composed-injection`` with the same seed."""
    reference = [each for each in MEMBERS if each.reference]
    assert [type(each.build(1)) for each in reference] == [ComposedInjection]
    monkeypatch.setattr(ensemble, "members", lambda context: (*QUICK["injection"], *reference))
    context = context_of("injection")
    if labels == "true":
        said = predict(context.surrogate(), GRAPH)[context.targets].argmax(1)
        said[::4] = (said[::4] + 1) % 3
        context = replace(context, true_labels=said)
    alone = run_attack(ComposedInjection(), context, seed=seed)
    race = run_attack(GraphAutoAttack(), context, seed=seed)
    same = [trial for trial in race.trials if trial.edit is not None and same_edit(trial.edit, alone.edit)]
    assert [trial.name for trial in same] == ["composed-injection"]


def test_a_reference_runs_although_its_probe_would_have_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    last = Member("idle", lambda level: lambda context, *, generator: GraphEdit(n=context.graph.n), reference=True)
    many = tuple(replace(QUICK["injection"][1], name=f"strong {number}") for number in range(9))
    monkeypatch.setattr(ensemble, "members", lambda context: (last, *many))
    result = run_attack(GraphAutoAttack(), context_of("injection"), seed=0)
    assert [trial.level for trial in result.trials if trial.name == "idle"] == [1]
