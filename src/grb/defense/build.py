"""Defenses by name: ``gcn+ln``, ``r-gcn+at``, ``gatguard``, ``gat-jaccard+at-full``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grb.attack.base import Attack
from grb.attack.build import OWN_NAMES, build_attack, scenario_of, steps_of
from grb.defense.adversarial import AdversarialTraining, AttackedSelection, SelfTraining, Start, training_attack
from grb.defense.base import Training
from grb.errors import DataError
from grb.model.build import Settings, settings
from grb.names import ModelName
from grb.threat import Injection, Modification, injection_table, threat_from_dict

# where injected features start in each kind of adversarial training
STARTS: dict[str, Start] = {"at": "zero", "at-random": "random", "at-full": "full-range"}
FOR_ADVERSARIAL = ("attack", "threat", "start", "warm_up", "every", "loss", "select", "self_training")
# steps of an attack on edges within each epoch of training (Gosch et al. 2023)
INNER_STEPS = 20


def build_defense(name: str | ModelName, dataset: str, **changes: Any) -> Training:
    """A model's training with the papers' settings; ``+at`` adds GRB's adversarial training (Table 5).

    Args:
        name: A model, with ``+ln`` for its layer norm and ``+at`` for adversarial training. ``+at-random`` and
            ``+at-full`` are variants of it that start from random features and cover the whole range.
        dataset: Name of the dataset whose settings are used.
        changes: ``lr``, ``epochs``, ``patience``, ``weight_decay``, ``device``, ``on_epoch``; with ``+at`` also ``start``
            (``zero``, ``random`` or ``full-range``) or a custom ``attack`` (also by name), ``threat``, ``warm_up``, ``every``,
            ``loss`` and ``select`` (see :class:`~grb.defense.adversarial.AttackedSelection`) and ``self_training``
            (:class:`~grb.defense.adversarial.SelfTraining`); all else goes to the model.

    >>> build_defense("gcn+at", "grb-cora", epochs=500).settings.epochs
    500
    """
    name = ModelName.parse(name)
    if name.pooled:
        name = name.for_task("graph")  # refuses adversarial training
    named = settings(name, dataset)
    outer = {key: changes.pop(key) for key in ("device", "on_epoch", "weight_decay") if key in changes}
    given = {key: changes.pop(key) for key in FOR_ADVERSARIAL if key in changes}
    given = {key: value for key, value in given.items() if value is not None}
    chosen = named.override(**changes)
    if not named.adversarial:
        if given:
            raise DataError(f"{sorted(given)[0]} is for adversarial training, but '{named.model}' has none; add '+at'")
        return Training(settings=chosen, **outer)
    given |= _named_attack(given, named.model, dataset)
    start = _start(named, given.pop("start", None), own_attack="attack" in given)
    table: dict[str, Any] = {} if {"attack", "threat"} <= set(given) else _table_5(dataset, start)
    kind = AttackedSelection if {"loss", "select"} & set(given) else AdversarialTraining
    if given.pop("self_training", False):
        kind = SelfTraining
    return kind(settings=chosen, **(table | given | outer))


def _named_attack(given: Mapping[str, Any], model: str, dataset: str) -> dict[str, Any]:
    """The attack and the threat model of adversarial training where a recipe gives them as JSON values.

    An attack that modifies the graph may change 5 % of the training graph's edges if no threat model is given.
    """
    attack, threat = given.get("attack"), given.get("threat")
    found: dict[str, Any] = {}
    if isinstance(threat, Mapping):
        found["threat"] = threat_from_dict(dict(threat))
    if isinstance(attack, Mapping) and isinstance(attack.get("name"), str):
        params = {key: value for key, value in attack.items() if key != "name"}
        found["attack"] = _trained_against(attack["name"], dataset, params)
    elif isinstance(attack, str):
        found["attack"] = _trained_against(attack, dataset, {})
    elif attack is not None and not callable(attack):
        raise DataError(f"'{model}' got {attack!r:.60} as its attack, but a name of `grb ls attacks` is needed")
    made = found.get("attack")
    if made is not None and getattr(made, "objective", "evasion") != "evasion":
        raise DataError(f"'{model}' got an attack that poisons training data; choose one that attacks a trained model")
    if made is not None and threat is None and scenario_of(made) == "modification":
        found["threat"] = Modification(edge_ratio=0.05)
    return found


def _trained_against(name: str, dataset: str, params: dict[str, Any]) -> Attack:
    """An attack by name; one that changes edges takes 20 steps in every epoch if its number of steps is not given."""
    made = build_attack(name, dataset, **params)
    given = {"iterations", *OWN_NAMES["iterations"]} & set(params)
    if given or scenario_of(made) != "modification" or steps_of(made) is None:
        return made
    return build_attack(name, dataset, **params, iterations=INNER_STEPS)


def _start(named: Settings, asked: Start | None, *, own_attack: bool) -> Start:
    kind = ModelName.parse(named.model).adversarial_training or "at"
    if own_attack and (asked is not None or kind != "at"):
        raise DataError(
            f"'{named.model}' got a custom attack, which has its own start; use '+at' and leave 'start' out"
        )
    if asked is not None and kind != "at" and asked != STARTS[kind]:
        raise DataError(f"'{named.model}' starts from {STARTS[kind]}, but start is '{asked}'; use '+at' with 'start'")
    return asked or STARTS[kind]


def _table_5(dataset: str, start: Start) -> dict[str, Any]:
    row = injection_table(dataset)
    limits = row["training"]
    low, high = row["feature_range"]
    return {
        "attack": training_attack(start, row["step"], limits["steps"]),
        "threat": Injection(limits["nodes"], limits["edges_per_node"], (low, high)),
    }
