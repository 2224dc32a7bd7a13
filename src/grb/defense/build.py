"""Defenses by name: ``gcn+ln``, ``r-gcn+at``, ``gatguard``."""

from __future__ import annotations

from typing import Any

from grb.attack.injection import FGSM
from grb.defense.adversarial import AdversarialTraining
from grb.defense.base import Training
from grb.model.build import settings
from grb.threat import Injection, injection_table


def build_defense(name: str, dataset: str, **changes: Any) -> Training:
    """A model's training with the papers' settings; ``+at`` adds GRB's adversarial training (Table 5).

    Args:
        name: A model, with ``+ln`` for its layer norm and ``+at`` for adversarial training.
        dataset: Whose settings to take.
        changes: ``lr``, ``epochs``, ``patience``, ``device``, ``on_epoch``; with ``+at`` also ``attack``, ``threat``,
            ``warm_up``, ``every``; everything else goes to the model.
    """
    named = settings(name, dataset)
    outer = {key: changes.pop(key) for key in ("device", "on_epoch") if key in changes}
    extra = {
        key: changes.pop(key)
        for key in ("attack", "threat", "warm_up", "every")
        if named.adversarial and key in changes
    }
    chosen = named.override(**changes)
    if not named.adversarial:
        return Training(settings=chosen, **outer)
    given = {key: value for key, value in extra.items() if value is not None}
    table: dict[str, Any] = {} if {"attack", "threat"} <= set(given) else _table_5(dataset)
    return AdversarialTraining(settings=chosen, **(table | given | outer))


def _table_5(dataset: str) -> dict[str, Any]:
    row = injection_table(dataset)
    limits = row["training"]
    low, high = row["feature_range"]
    return {
        "attack": FGSM(epsilon=row["step"], n_epoch=limits["steps"]),
        "threat": Injection(limits["nodes"], limits["edges_per_node"], (low, high)),
    }
