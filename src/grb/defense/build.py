"""Defenses by name: ``gcn+ln``, ``r-gcn+at``, ``gatguard``, ``gat-jaccard+at-full``."""

from __future__ import annotations

from typing import Any

from grb.catalogue import POOL, SUFFIXES, entries
from grb.defense.adversarial import AdversarialTraining, Start, training_attack
from grb.defense.base import Training
from grb.errors import DataError, UnknownName
from grb.model.build import Settings, for_task, settings, split_name
from grb.threat import Injection, injection_table

# where injected features start in each kind of adversarial training
STARTS: dict[str, Start] = {"at": "zero", "at-random": "random", "at-full": "full-range"}
FOR_ADVERSARIAL = ("attack", "threat", "start", "warm_up", "every")


def build_defense(name: str, dataset: str, **changes: Any) -> Training:
    """A model's training with the papers' settings; ``+at`` adds GRB's adversarial training (Table 5).

    Args:
        name: A model, with ``+ln`` for its layer norm and ``+at`` for adversarial training. ``+at-random`` and
            ``+at-full`` are variants of it that start from random features and cover the whole range.
        dataset: Whose settings to take.
        changes: ``lr``, ``epochs``, ``patience``, ``device``, ``on_epoch``; with ``+at`` also ``start`` (``zero``,
            ``random`` or ``full-range``) or an ``attack`` of your own, ``threat``, ``warm_up``, ``every``; everything
            else goes to the model.

    >>> build_defense("gcn+at", "grb-cora", epochs=500).settings.epochs
    500
    """
    named = settings(name, dataset)
    if split_name(name)[0].endswith(POOL):
        for_task(name, "graph")  # refuses adversarial training
    outer = {key: changes.pop(key) for key in ("device", "on_epoch") if key in changes}
    given = {key: changes.pop(key) for key in FOR_ADVERSARIAL if key in changes}
    given = {key: value for key, value in given.items() if value is not None}
    chosen = named.override(**changes)
    if not named.adversarial:
        if given:
            raise DataError(f"{sorted(given)[0]} is for adversarial training, but '{named.model}' has none; add '+at'")
        return Training(settings=chosen, **outer)
    start = _start(named, given.pop("start", None), own_attack="attack" in given)
    table: dict[str, Any] = {} if {"attack", "threat"} <= set(given) else _table_5(dataset, start)
    return AdversarialTraining(settings=chosen, **(table | given | outer))


def _start(named: Settings, asked: Start | None, *, own_attack: bool) -> Start:
    (kind,) = split_name(named.model)[1] & STARTS.keys()
    if own_attack and (asked is not None or kind != "at"):
        raise DataError(
            f"'{named.model}' got an attack of your own, which has its own start; use '+at' and leave 'start' out"
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


def with_defense(model: str | None, defense: str) -> str:
    """The name of a model with a defense on it; a defense that is a model of its own stands alone.

    >>> with_defense("gcn", "at"), with_defense("gcn+ln", "jaccard"), with_defense("gat", "guard")
    ('gcn+at', 'gcn-jaccard+ln', 'gatguard')
    >>> with_defense(None, "gatguard")
    'gatguard'
    """
    plain = defense.lower().removeprefix("+").removeprefix("-")
    if model is None:
        return _alone(plain)
    base, plus, rest = model.partition("+")
    if plain in SUFFIXES:
        return f"{model}+{plain}"
    if plain in entries("defense"):
        return f"{base}-{plain}{plus}{rest}"
    known = entries("model")
    for own in (f"{base.lower()}-{plain}", f"{base.lower()}{plain}"):  # gcn-svd, gcnguard
        if own in known:
            return f"{own}{plus}{rest}"
    own = _alone(plain)
    raise DataError(f"defense '{own}' is a model of its own and cannot be put on '{model}'; leave '{model}' out")


def _alone(defense: str) -> str:
    if defense in entries("defense"):
        raise DataError(f"defense '{defense}' goes on a model, but none is given; name one, for instance gcn")
    try:
        split_name(defense)
        return defense
    except UnknownName:
        known = [*entries("defense"), *entries("model")]
        raise UnknownName(
            "defense", defense, known, advice="`grb ls defenses` and `grb ls models` show all names."
        ) from None
