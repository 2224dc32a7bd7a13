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
    told: dict[str, set[str]] = {"scenario": set(), "objective": set(), "train_mode": set()}
    for attack, defense, objective in scores:
        if defense.method.name not in NOT_COMPUTED:  # who sent a model trained it as he liked
            told["train_mode"].add(defense.train_mode)
        if attack is not None:  # on the clean graph, victims of all scenarios meet
            told["scenario"].add(attack.scenario)
            told["objective"].add(objective)
    for name, found in told.items():
        own = getattr(info, name)
        if other := sorted(found - {own}):
            yield f"its {name} is {short(own)}, but among its scores is one of {short(other[0])}"


def check_limits(info: StudyInfo, part: Part, threats: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence if a board says that it has other limits than its attacks had.

    Args:
        info: The study.
        part: One of its boards.
        threats: Threat models of the attacks on it, one of every difficulty, without those of submissions.
    """
    told = info.recipe.get("threat", {})
    changes = dict(told) if isinstance(told, Mapping) else {}
    if isinstance(changes.get("feature_range"), str) and changes["feature_range"] in get_args(FeatureLimits):
        del changes["feature_range"]  # what that is, the dataset tells
    if part.limit is not None:
        name, value = part.limit
        changes[name] = int(value) if value.is_integer() else value
    for given in threats:
        if not _changes_nothing(given, changes):
            yield f"its limits are {short(changes)}, but its scores are under {short(dict(given))}"
            return


def _changes_nothing(given: Mapping[str, Any], changes: Mapping[str, Any]) -> bool:
    try:
        threat = threat_from_dict(given)
        return change_threat(threat, changes) == threat
    except GRBError:
        return False
