"""Attacks by name with the papers' settings: ``tdgia``, ``pgd``, or ``package.module:Class``."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any

from grb.attack.base import Attack
from grb.attack.injection.base import Limits
from grb.attack.modification.base import Limits as EdgeLimits
from grb.catalogue import canonical, resolve
from grb.dataset import Dataset
from grb.errors import DataError, UnknownName
from grb.threat import Injection, Modification, Threat, injection_table

# what attacks call the numbers that every iterative one has
OWN_NAMES = {"iterations": ("n_epoch",), "step": ("epsilon", "lr")}


def build_attack(name: str, dataset: str, **changes: Any) -> Attack:
    """An attack with the papers' settings, for injections Table 12's; ``changes`` go to its constructor.

    ``iterations`` and ``step`` are understood by every iterative attack, whatever its own names for them are.
    """
    maker = resolve("attack", name if ":" in name else canonical("attack", name))
    accepted = inspect.signature(maker).parameters
    # an attack's own preset, such as SPEIT's "kddcup", comes with its own step and iterations
    ours = changes.get("preset", "grb") == "grb" and scenario_of(maker) == "injection"
    table = _table(dataset) if ours else {}
    given = {**table, **{key: value for key, value in changes.items() if value is not None}}
    for general, names in OWN_NAMES.items():
        value = given.pop(general, None)
        own = next((own for own in names if own in accepted), None)
        if own is not None and value is not None and own not in given:
            given[own] = value
        elif own is None and general in changes and changes[general] is not None:
            raise DataError(f"attack '{name}' has no {general}; leave that out, or choose an attack that takes steps")
    kind = EdgeLimits if scenario_of(maker) == "modification" else Limits
    limits = sorted(set(given) & {field.name for field in fields(kind)})
    if limits:
        threat = "Modification" if kind is EdgeLimits else "Injection"
        raise DataError(f"{limits[0]} is a limit, and limits are the threat model's: give threat={threat}(...) instead")
    unknown = sorted(set(given) - set(accepted))
    if unknown:
        raise UnknownName(
            f"parameter of attack '{name}'", unknown[0], accepted, advice=f"Allowed: {', '.join(accepted)}."
        )
    attack: Attack = maker(**given)
    return attack


def scenario_of(attack: Any) -> str:
    """``injection`` or ``modification``: which threat model an attack, or its class, is made for."""
    return str(getattr(attack, "scenario", "injection"))


def default_threat(attack: Any, dataset: Dataset, mode: str) -> Threat:
    """The papers' limits for an attack on the test nodes of a difficulty."""
    if scenario_of(attack) == "modification":
        return Modification.preset(dataset.name, len(dataset.test_ids(mode)), dataset.feature_range)
    return Injection.preset(dataset.name, mode)


def _table(dataset: str) -> dict[str, Any]:
    try:
        row = injection_table(dataset)
    except UnknownName:
        return {}
    return {"iterations": row["iterations"], "step": row["step"]}
