"""Attacks by name with the papers' settings: ``tdgia``, ``pgd``, or ``package.module:Class``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from grb.attack.base import Attack, without_paper_names
from grb.attack.injection.base import Limits
from grb.attack.modification.base import Limits as EdgeLimits
from grb.catalogue import entries, preset, resolve
from grb.dataset import Dataset
from grb.errors import DataError, UnknownName
from grb.threat import FeatureLimits, Injection, Modification, Threat, injection_table

# what attacks call the numbers that every iterative one has; the papers' names for attacks of other packages
OWN_NAMES = {"iterations": ("steps", "n_epoch"), "step": ("step_size", "epsilon", "lr")}


def build_attack(name: str, dataset: str, **changes: Any) -> Attack:
    """An attack with the papers' settings, for injections Table 12's; ``changes`` go to its constructor.

    ``iterations`` and ``step`` are understood by every iterative attack, whatever its own names for them are.
    """
    maker = resolve("attack", name)
    accepted = inspect.signature(maker).parameters
    # an attack's own preset, such as SPEIT's "kddcup", comes with its own step and iterations
    ours = changes.get("preset", "grb") == "grb" and scenario_of(maker) == "injection"
    ours = ours and getattr(maker, "paper_settings", True)
    table = _table(dataset) if ours else {}
    given = {**table, **{key: value for key, value in changes.items() if value is not None}}
    given = without_paper_names(given, accepted)
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
        known = open_parameters(maker)
        raise UnknownName(f"parameter of attack '{name}'", unknown[0], known, advice=f"Allowed: {', '.join(known)}.")
    attack: Attack = maker(**given)
    return attack


def open_parameters(maker: Any) -> list[str]:
    """What may be given to an attack by name: its own parameters but for limits, which are the threat model's."""
    accepted = list(inspect.signature(maker).parameters)
    general = [word for word, names in OWN_NAMES.items() if set(names) & set(accepted)]
    limits = {field.name for kind in (Limits, EdgeLimits) for field in fields(kind)}
    return [*general, *(name for name in accepted if name not in limits)]


def steps_of(attack: Any) -> int | None:
    """Number of optimisation steps of an attack, which its time depends on; None if it does not say."""
    found = next((getattr(attack, name) for name in OWN_NAMES["iterations"] if hasattr(attack, name)), None)
    return found if isinstance(found, int) else None


def scenario_of(attack: Any) -> str:
    """``injection`` or ``modification``: which threat model an attack, or its class, is made for."""
    return str(getattr(attack, "scenario", "injection"))


def default_threat(attack: Any, dataset: Dataset, mode: str) -> Threat:
    """The limits of an attack's scenario, see :func:`default_threat_model`."""
    return default_threat_model(scenario_of(attack), dataset, mode)


def default_threat_model(scenario: str, dataset: Dataset, mode: str, features: FeatureLimits = "paper") -> Threat:
    """The papers' limits of a scenario on the test nodes of a difficulty; those inferred for a dataset that they lack.

    Where graphs are classified they are ours, and every graph has them.

    Args:
        scenario: ``injection`` or ``modification``.
        dataset: What is attacked.
        mode: Difficulty.
        features: Range of injected features where the papers have limits, see :meth:`~grb.threat.Injection.preset`.
    """
    if dataset.task == "graph":
        return graph_limits(scenario, dataset)
    if scenario == "modification":
        return Modification.preset(dataset.name, len(dataset.test_ids(mode)), dataset.feature_range)
    if has_limits(dataset.name):
        return Injection.preset(dataset, mode, features=features)
    return Injection.inferred(len(dataset.test_ids(mode)), dataset.feature_range)


def submission_threats(scenario: str, dataset: Dataset, mode: str) -> list[Threat]:
    """The presets that an edit of others may keep to, the narrowest first: the papers', then the range of the data."""
    printed, own = (default_threat_model(scenario, dataset, mode, features) for features in ("paper", "data"))
    return [printed] if printed == own else [printed, own]


def preset_name(threat: Mapping[str, Any], dataset: Dataset, mode: str) -> str:
    """Which preset the limits of a record are.

    Args:
        threat: A threat model's ``to_dict()``.
        dataset: What was attacked.
        mode: Difficulty.

    Returns:
        ``paper`` (Table 12 as printed), ``data`` (its counts with the range of the data), ``default`` where there is only
        one preset, ``custom`` for any other limits.
    """
    tabled = threat["kind"] == "injection" and dataset.task == "node" and has_limits(dataset.name)
    names: tuple[FeatureLimits, ...] = ("paper", "data") if tabled else ("paper",)
    for name in names:
        if default_threat_model(threat["kind"], dataset, mode, name).to_dict() == dict(threat):
            return name if tabled else "default"
    return "custom"


def has_limits(dataset: str) -> bool:
    """Whether the papers have limits of injections into a dataset."""
    return not of_graphs(dataset) and bool(_table(dataset))


def of_graphs(dataset: str) -> bool:
    """Whether a dataset of the catalogue has graphs to classify."""
    entry = entries("dataset").get(dataset)
    return entry is not None and entry.group == "graphs"


def graph_limits(scenario: str, dataset: Dataset) -> Threat:
    """What an attacker may do to every graph of a collection, by default: 5 % of its edges, or one node with three edges.

    Features stay within the range of the dataset's own, and a modification may change those of one node.
    """
    limits = preset("graphs")["limits"]
    if scenario == "modification":
        return Modification(edge_ratio=limits["edge_ratio"], feature_nodes=1, feature_range=dataset.feature_range)
    return Injection(limits["nodes"], limits["edges_per_node"], dataset.feature_range)


def _table(dataset: str) -> dict[str, Any]:
    if of_graphs(dataset):
        own = preset("graphs")
        return {"iterations": own["iterations"], "step": own["step"]}
    try:
        row = injection_table(dataset)
    except UnknownName:
        return {}
    return {"iterations": row["iterations"], "step": row["step"]}
