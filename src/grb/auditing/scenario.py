"""One scenario of an audit: the budget curve with its breaking point, transfers, and the nodes that fall first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from grb.attack.base import AttackContext
from grb.auditing import attacks, curve, findings
from grb.auditing.steps import Steps
from grb.certificate.base import run_certificate
from grb.certificate.build import build_certificate, default_certificate
from grb.defense import build_defense
from grb.errors import DataError, GRBError
from grb.graph import GraphEdit
from grb.metric import get_all
from grb.model.hash_vote import HashVote
from grb.pipeline.spec import jsonable
from grb.threat import Threat

REFINEMENTS = {"quick": 2, "standard": 4, "thorough": 6}
# versions of the projections onto constraints, and of the injections that quick audits try on large graphs
PROJECTION = 2
LARGE_PROBES = 2
# nodes that are attacked one by one to see how little it takes
LOCAL = {"quick": 0, "standard": 5, "thorough": 20}


def attack_scenario(
    run: Steps,
    scenario: str,
    budgets: Sequence[int] | None,
    threat: Threat | None,
    threshold: float,
    surrogates: Sequence[str],
) -> dict[str, Any]:
    """One budget curve with everything that belongs to it."""
    limits = threat or attacks.largest_threat(scenario, run.dataset)
    listed = sorted(set(budgets)) if budgets else attacks.default_budgets(limits, run.dataset)
    if not listed:
        raise DataError(
            f"the {scenario} scenario allows nothing on {len(run.dataset.index_test)} targets; give budgets"
        )
    limits = attacks.with_budget(limits, listed[-1])
    found: dict[int, dict[str, Any]] = {}
    edits: dict[int, GraphEdit] = {}
    logits: dict[int, Tensor] = {0: run.victim.clean}

    def value_at(budget: int) -> float:
        if budget == 0:
            return curve.value_of(run.metric, run.victim.clean[run.dataset.index_test], run.labels())
        if budget not in found:
            run.say(f"{scenario}: {curve.counted(budget, attacks.UNITS[scenario])}")
            smaller = {each: edits[each] for each in sorted(edits) if each < budget}
            smaller = dict(list(smaller.items())[-1:])
            own = attacks.with_budget(limits, budget)
            found[budget], edits[budget] = _attacked(run, scenario, own, smaller)
            logits[budget] = run.logits(edits[budget])
        return float(found[budget]["value"])

    for budget in listed:
        value_at(budget)
    curve.refine([0, *listed], value_at, threshold, most=REFINEMENTS.get(run.effort, 2))
    tried = [0, *sorted(found)]
    values = [value_at(budget) for budget in tried]
    ids, y = run.dataset.index_test, run.labels()
    resampled = curve.bootstrap(run.metric, [logits[budget][ids] for budget in tried], y, seed=run.seed)
    lowest = curve.running_minimum(values)
    spread = np.minimum.accumulate(resampled, axis=1) if len(resampled) else resampled
    points = []
    for place, budget in enumerate(tried):
        low, high = curve.interval(spread[:, place]) if len(spread) else (lowest[place],) * 2
        own = found.get(budget, {"attack": "none", "trials": []})
        points.append(
            {
                "budget": budget,
                "value": lowest[place],
                "measured": values[place],
                "low": low,
                "high": high,
                **_rest(own),
            }
        )
    last = tried[-1]
    worst = min(tried, key=lambda budget: (value_at(budget), -budget))
    point = curve.breaking_point(tried, values, resampled, threshold)
    unit = attacks.UNITS[scenario]
    return {
        "scenario": scenario,
        "unit": unit,
        "threat": limits.to_dict(),
        "limits": limits,
        "logits": logits[worst],
        "values": run.values(logits[worst]),
        "points": points,
        "monotone": curve.MONOTONE,
        "breaking_point": point.to_dict(),
        "sentence": point.sentence(run.metric.name, unit),
        "transfers": [_transfer(run, scenario, each, limits) for each in surrogates]
        if not run.victim.black_box
        else [],
        "random": _random(found.get(last)),
        "collateral": _collateral(run, logits[worst]),
        "vulnerable": findings.vulnerable_nodes(run.dataset, run.victim.clean, [(b, logits[b]) for b in tried[1:]]),
        "local": _local(run, scenario, limits),
        "used": findings.used_nodes(run.dataset, edits[worst]) if worst else [],
        "certified": _certified(run, limits, tried),
    }


def _rest(found: Mapping[str, Any]) -> dict[str, Any]:
    return {"attack": found["attack"], "trials": list(found["trials"])}


def _attacked(
    run: Steps, scenario: str, threat: Threat, pool: Mapping[int, GraphEdit]
) -> tuple[dict[str, Any], GraphEdit]:
    def make() -> tuple[Any, GraphEdit]:
        view = run.dataset.attacker_view()
        context = AttackContext(view, threat, run.victim.model, "white-box")
        listed = attacks.candidates(scenario, run.effort, context, black_box=run.victim.black_box, queries=run.queries)
        best = attacks.strongest(
            listed,
            run.dataset,
            run.victim.model,
            threat,
            run.metric,
            seed=run.seed,
            pool=list(pool.values()),
            queries=run.queries,
        )
        return {"value": best.value, "attack": best.attack, "trials": list(best.trials)}, best.edit

    asked: dict[str, Any] = {} if run.queries is None else {"queries": run.queries}
    if threat.constraints is not None:
        asked["projection"] = PROJECTION
    if scenario == "injection" and run.effort == "quick" and run.dataset.num_nodes > attacks.LARGE:
        asked["probes"] = LARGE_PROBES
    parts = run.key(step="attack", scenario=scenario, threat=jsonable(threat.to_dict()), pool=list(pool), **asked)
    value, edit = run.cache.step(parts, make)
    assert edit is not None
    # a kept edit comes from a file: it is counted once more
    threat.check(run.dataset.graph, edit, run.dataset.index_test)
    return value, edit


def _transfer(run: Steps, scenario: str, surrogate: str, threat: Threat) -> dict[str, Any]:
    """The metric under an edit that was made on another model, which the attacker trains himself."""

    def make() -> tuple[Any, GraphEdit | None]:
        run.say(f"{scenario}: transfer from {surrogate}")
        try:
            own = build_defense(surrogate, run.dataset.name, epochs=200, patience=30)
            other = own.fit(run.dataset.defender_view(), seed=run.seed + 1000)
            context = AttackContext(run.dataset.attacker_view(), threat, other, "transfer")
            listed = attacks.candidates(scenario, "quick", context, black_box=False)[:1]
            best = attacks.strongest(
                listed, run.dataset, other, threat, run.metric, seed=run.seed, victim=run.victim.model
            )
        except GRBError as error:
            return {"surrogate": surrogate, "value": None, "reason": str(error)[:200]}, None
        return {"surrogate": surrogate, "value": best.value, "attack": best.attack, "reason": ""}, best.edit

    parts = run.key(step="transfer", scenario=scenario, surrogate=surrogate, threat=jsonable(threat.to_dict()))
    found: dict[str, Any] = run.cache.step(parts, make)[0]
    return found


def _local(run: Steps, scenario: str, threat: Threat) -> list[dict[str, Any]]:
    """How little it takes against single nodes: those that the model is right about and least sure of, one by one."""
    count = LOCAL.get(run.effort, 0)
    if not count or run.victim.black_box or run.dataset.num_nodes > attacks.LARGE:
        return []
    ids, y = run.dataset.index_test, run.labels()
    rows = run.victim.clean[ids].double()
    sure = rows.gather(1, y[:, None]).squeeze(1) - rows.scatter(1, y[:, None], -torch.inf).max(1).values
    right = (sure > 0).nonzero().flatten()
    chosen = right[sure[right].argsort()][:count]
    found = []
    for at in chosen.tolist():
        node = int(ids[at])

        def make(node: int = node) -> tuple[Any, None]:
            alone = replace(run, dataset=run.dataset.with_targets([node]))
            for budget in (1, 2, 4, 8):
                own = attacks.with_budget(threat, budget)
                context = AttackContext(alone.dataset.attacker_view(), own, run.victim.model, "white-box")
                listed = attacks.candidates(scenario, "quick", context, black_box=False)[:2]
                accuracy = get_all("accuracy")["accuracy"]
                try:
                    best = attacks.strongest(listed, alone.dataset, run.victim.model, own, accuracy, seed=run.seed)
                except GRBError:
                    return None, None
                if best.value < 1:
                    return budget, None
            return None, None

        run.say(f"{scenario}: node {run.dataset.names.of_nodes([node])[0]} alone")
        parts = run.key(step="local", scenario=scenario, node=node, threat=jsonable(threat.to_dict()))
        found.append({"node": run.dataset.names.of_nodes([node])[0], "budget": run.cache.step(parts, make)[0]})
    return found


def _certified(run: Steps, threat: Threat, budgets: Sequence[int]) -> list[dict[str, Any]] | None:
    """What no edit can undercut, by budget: where this very model has a certificate, and the metric counts right targets."""
    counts = run.metric.name == "accuracy" or run.metric.name.startswith("recall:")
    model = run.victim.model
    name = default_certificate(model, threat)
    if not counts or (name == "hash-vote" and not isinstance(model, HashVote)):
        return None  # a vote around the model would be another model
    y = run.labels()
    if run.metric.label is not None and not bool((y == run.metric.label).all()):
        return None

    def make() -> tuple[Any, None]:
        try:
            # with the keys that the attacked graphs are scored with
            found = run_certificate(build_certificate(name), model, run.dataset, replace(threat, constraints=None))
        except GRBError as error:
            run.say(f"no certificate: {error}")
            return None, None
        if not found.own_model:
            return None, None
        values = found.curve(budgets)
        return [{"budget": budget, "value": values[budget], "certificate": name} for budget in budgets], None

    parts = run.key(step="certificate", name=name, threat=jsonable(threat.to_dict()), budgets=list(budgets))
    certified: list[dict[str, Any]] | None = run.cache.step(parts, make)[0]
    return certified


def _random(found: Mapping[str, Any] | None) -> float | None:
    trials = [] if found is None else found["trials"]
    return next((trial["value"] for trial in trials if trial["attack"] == "random" and "value" in trial), None)


def _collateral(run: Steps, attacked: Tensor) -> dict[str, float]:
    """Accuracy of the test nodes that are no targets, before and after; empty if all are."""
    tests = run.whole.index_test
    rest = tests[~torch.isin(tests, run.dataset.index_test)]
    if not len(rest):
        return {}
    y = run.whole.labels[rest]
    return {
        "clean_accuracy": float((run.victim.clean[rest].argmax(1) == y).double().mean()),
        "accuracy": float((attacked[rest].argmax(1) == y).double().mean()),
    }
