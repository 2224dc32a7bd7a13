"""Conformance checks for attacks, models, defenses and perturbations: those that grb's own methods pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from torch import nn

from grb.errors import DataError, GRBError, require
from grb.evaluator.rules import (
    RULES,
    Broken,
    Checks,
    Kind,
    attack_checks,
    defense_checks,
    model_checks,
    perturbation_checks,
)

_CHECKS: Mapping[Kind, Callable[[Any], Checks]] = {
    "attack": attack_checks,
    "model": model_checks,
    "defense": defense_checks,
    "perturbation": perturbation_checks,
}


@dataclass(frozen=True)
class Finding:
    """One rule, and what was found: an empty sentence if it is kept."""

    rule: str
    message: str = ""

    @property
    def kept(self) -> bool:
        """Whether the check passed."""
        return not self.message


class ConformanceError(GRBError, AssertionError):
    """A method breaks a rule; the message names both."""


def conformance(kind: Kind, method: Any) -> list[Finding]:
    """Check all rules for a kind of method; later ones are left out where the method does not run.

    Args:
        kind: ``attack``, ``model``, ``defense`` or ``perturbation``.
        method: An attack or perturbation (an instance or a class without needed arguments), a model's class that is called with
            ``in_features`` and ``out_features``, or a defense with ``fit(view, seed=...)``.
    """
    _need_kind(kind)
    if kind == "defense" and isinstance(method, type) and issubclass(method, nn.Module):
        message = f"{method.__name__} is the class of a model, which recipes train; check it as a model (--kind model)"
        return [Finding("can be made without arguments", message)]
    try:
        made = method() if isinstance(method, type) and kind != "model" else method
    except Exception as error:
        return [Finding("can be made without arguments", _message(error))]
    findings: list[Finding] = []
    for rule, check in zip(RULES[kind], _CHECKS[kind](made), strict=True):
        try:
            check()
            findings.append(Finding(rule))
        except Exception as error:
            findings.append(Finding(rule, _message(error)))
            if len(findings) == 1:  # it does not run
                break
    return findings


def _message(error: Exception) -> str:
    own = str(error) if isinstance(error, Broken | GRBError) else f"{type(error).__name__}: {error}"
    return own if isinstance(error, Broken) else " ".join(own.split())[:200]


def check_attack(attack: Any) -> None:
    """Raise a :class:`ConformanceError` that names every rule which an attack breaks."""
    _check("attack", attack)


def check_model(model: Callable[..., nn.Module]) -> None:
    """Raise a :class:`ConformanceError` that names every rule which a model's class breaks."""
    _check("model", model)


def check_defense(defense: Any) -> None:
    """Raise a :class:`ConformanceError` that names every rule which a defense breaks."""
    _check("defense", defense)


def check_perturbation(perturbation: Any) -> None:
    """Raise a :class:`ConformanceError` that names every rule which a perturbation breaks."""
    _check("perturbation", perturbation)


def _check(kind: Kind, method: Any) -> None:
    broken = [f"'{each.rule}': {each.message}" for each in conformance(kind, method) if not each.kept]
    if broken:
        raise ConformanceError(f"{kind} {_label(method)} breaks {'; '.join(broken)}")


def parametrize_with_checks(kind: Kind, methods: Iterable[Any]) -> Any:
    """A pytest decorator that makes one test of every rule for every method, as scikit-learn's of the same name.

    The decorated test has the argument ``check``, which it calls. The rules of one method are checked together, when its
    first test runs.

    Args:
        kind: ``attack``, ``model``, ``defense`` or ``perturbation``.
        methods: Methods as :func:`conformance` takes them.
    """
    pytest = require("pytest", extra="dev")
    _need_kind(kind)
    checks, ids = [], []
    for method in methods:
        found = cache(partial(conformance, kind, method))
        checks += [partial(_check_rule, found, f"{kind} {_label(method)}", rule) for rule in RULES[kind]]
        ids += [f"{_label(method)}: {rule}" for rule in RULES[kind]]
    return pytest.mark.parametrize("check", checks, ids=ids)


def _check_rule(found: Callable[[], list[Finding]], name: str, rule: str) -> None:
    findings = {each.rule: each for each in found()}
    own = findings.get(rule) or next(each for each in findings.values() if not each.kept)
    if not own.kept:
        raise ConformanceError(f"{name} breaks '{own.rule}': {own.message}")


def _need_kind(kind: str) -> None:
    if kind not in RULES:
        raise DataError(f"kind is '{kind}', but {', '.join(RULES)} are those with rules")


def _label(method: Any) -> str:
    return str(getattr(method, "__name__", None) or type(method).__name__)
