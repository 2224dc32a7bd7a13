"""Checks of studies against the scores that they show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from grb.errors import GRBError
from grb.evaluator.measurement import AttackInfo, DefenseInfo
from grb.pipeline.edit_budget import short
from grb.pipeline.record import NOT_COMPUTED
from grb.pipeline.study import Part, StudyInfo
from grb.threat import FeatureLimits, change_threat, threat_from_dict

Role = tuple[AttackInfo | None, DefenseInfo, str]


def check_roles(info: StudyInfo, scores: Iterable[Role]) -> Iterator[str]:
    """Yield a sentence for everything that a study says of all its scores and one of them contradicts.

    Args:
        info: The study.
        scores: Attack, defense and objective of every score of it that is there.
    """
    named: dict[str, set[str]] = {"scenario": set(), "objective": set(), "train_mode": set()}
    for attack, defense, objective in scores:
        if defense.method.name not in NOT_COMPUTED:  # who sent a model trained it as he liked
            named["train_mode"].add(defense.train_mode)
        if attack is not None:  # on the clean graph, victims of all scenarios meet
            named["scenario"].add(attack.scenario)
            named["objective"].add(objective)
    for name, values in named.items():
        own = getattr(info, name)
        if other := sorted(values - {own}):
            yield f"its {name} is {short(own)}, but among its scores is one of {short(other[0])}"


def check_limits(info: StudyInfo, attacks: Mapping[str, AttackInfo], modes: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence if attacks on one board had different limits, or others than the board says.

    Args:
        info: The study.
        attacks: Attacks by the keys of their scores.
        modes: Difficulties by the same keys.
    """
    for part in info.parts:
        first: dict[str, tuple[str, dict[str, Any]]] = {}
        for key in part.scores:
            attack = attacks.get(key)
            if attack is None or attack.method.is_submission:  # whose limits may be narrower
                continue
            other, limits = first.setdefault(modes[key], (key, dict(attack.threat)))
            if limits != attack.threat:
                yield (
                    f"it puts scores {other[:12]} and {key[:12]} of {modes[key]} on one board, but their attacks have "
                    "different limits"
                )
                break
        changes = _recipe_limits(info, part)
        wrong = next((limits for _, limits in first.values() if not _changes_nothing(limits, changes)), None)
        if wrong is not None:
            yield f"its limits are {short(changes)}, but its scores are under {short(wrong)}"


def _recipe_limits(info: StudyInfo, part: Part) -> dict[str, Any]:
    """The limits of a board as far as its recipe names them."""
    limits = info.recipe.get("threat", {})
    changes = dict(limits) if isinstance(limits, Mapping) else {}
    if isinstance(changes.get("feature_range"), str) and changes["feature_range"] in get_args(FeatureLimits):
        del changes["feature_range"]  # which one that is depends on the dataset
    if part.limit is not None:
        name, value = part.limit
        changes[name] = int(value) if value.is_integer() else value
    return changes


def _changes_nothing(given: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    try:
        threat = threat_from_dict(given)
        return change_threat(threat, changes) == threat
    except GRBError:
        return False
