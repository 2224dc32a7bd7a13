"""Limits of ``grb attack``: the papers', where the user has not given others, for every attack and difficulty."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from grb.cli.output import say
from grb.errors import DataError

if TYPE_CHECKING:
    from grb.attack.base import Attack
    from grb.dataset import Dataset
    from grb.threat import Injection, Modification, Threat

# which of the options below belong to which kind of attack
OWN = {"injection": ("nodes", "edges_per_node"), "modification": ("edges", "edge_ratio", "feature_nodes")}


@dataclass(frozen=True)
class Given:
    """What the user asked for; None where the papers' limits are to be used."""

    nodes: int | None = None
    edges_per_node: int | None = None
    edges: int | None = None
    edge_ratio: float | None = None
    feature_nodes: int | None = None
    feature_range: str | None = None


def threats(given: Given, attacks: Mapping[str, Attack], dataset: Dataset, mode: str) -> dict[tuple[str, str], Threat]:
    """The threat model of every attack and difficulty."""
    from grb.attack.build import scenario_of
    from grb.dataset import DIFFICULTIES

    scenarios = {name: scenario_of(attack) for name, attack in attacks.items()}
    _check(given, set(scenarios.values()), dataset)
    limits = None if given.feature_range is None else parse_range(given.feature_range)
    modes = [name for name in DIFFICULTIES if len(dataset.split.test.get(name, ()))] if mode == "all" else [mode]
    for name in modes:
        if not len(dataset.test_ids(name)):
            raise DataError(f"dataset '{dataset.name}' has no {name} test nodes to attack")
    make: dict[str, Callable[..., Threat]] = {"injection": _injection, "modification": _modification}
    found = {
        (kind, name): make[kind](given, limits, dataset, name) for kind in set(scenarios.values()) for name in modes
    }
    if "injection" in scenarios.values() and _inferred(given, dataset):
        say(
            f"the papers have no limits for '{dataset.name}': what is not given is inferred, nodes and edges as on grb-cora "
            "(7.5 % of the targets, 20 edges each), features within the range of the data"
        )
    return {(attack, name): found[kind, name] for attack, kind in scenarios.items() for name in modes}


def _check(given: Given, scenarios: set[str], dataset: Dataset) -> None:
    for kind, options in OWN.items():
        for option in options:
            value, word = getattr(given, option), "--" + option.replace("_", "-")
            if value is None:
                continue
            if kind not in scenarios:
                raise DataError(f"{word} is a limit of {kind} attacks, but none was named; leave it out")
            if option == "edge_ratio":
                if not (math.isfinite(value) and 0 <= value <= 1):
                    raise DataError(f"{word} is {value}, but 0 to 1 is possible, for instance 0.05")
            elif option == "edges":
                if value < 0:
                    raise DataError(f"{word} is {value}, but must not be negative")
            elif not 0 <= value <= dataset.num_nodes:
                raise DataError(
                    f"{word} is {value}, but 0 to {dataset.num_nodes} are possible, the nodes of {dataset.name}"
                )
    if given.edges is not None and given.edge_ratio is not None:
        raise DataError("--edges and --edge-ratio were both given; the second is the first as a share of all edges")


def _inferred(given: Given, dataset: Dataset) -> bool:
    from grb.attack.build import has_limits

    complete = None not in (given.nodes, given.edges_per_node, given.feature_range)
    return not complete and not has_limits(dataset.name) and dataset.task == "node"


def _injection(given: Given, limits: tuple[float, float] | None, dataset: Dataset, mode: str) -> Injection:
    from grb.attack.build import graph_limits, has_limits
    from grb.threat import Injection

    nodes, edges = given.nodes, given.edges_per_node
    if nodes is not None and edges is not None and limits is not None:
        return Injection(nodes, edges, limits)
    if dataset.task == "graph":
        preset = cast("Injection", graph_limits("injection", dataset))
    elif has_limits(dataset.name):
        preset = Injection.preset(dataset.name, mode)
    else:
        preset = Injection.inferred(len(dataset.test_ids(mode)), dataset.feature_range)
    return Injection(
        preset.nodes if nodes is None else nodes,
        preset.edges_per_node if edges is None else edges,
        limits or preset.feature_range,
    )


def _modification(given: Given, limits: tuple[float, float] | None, dataset: Dataset, mode: str) -> Modification:
    from grb.attack.build import graph_limits
    from grb.threat import Modification

    if dataset.task == "graph":
        threat = cast("Modification", graph_limits("modification", dataset))
        threat = replace(threat, feature_range=limits or dataset.feature_range)
    else:
        threat = Modification.preset(dataset.name, len(dataset.test_ids(mode)), limits or dataset.feature_range)
    if given.edges is not None:
        threat = replace(threat, edges=given.edges, edge_ratio=None)
    if given.edge_ratio is not None:
        threat = replace(threat, edge_ratio=given.edge_ratio)
    return threat if given.feature_nodes is None else replace(threat, feature_nodes=given.feature_nodes)


def parse_range(text: str) -> tuple[float, float]:
    """Lowest and highest feature from ``lo,hi``.

    >>> parse_range("-0.9, 1")
    (-0.9, 1.0)
    """
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise DataError(
            f"--feature-range is '{text}', but two finite numbers, the lower first, are needed, for instance -0.9,0.9"
        )
    return low, high


def expected_steps(attack: Attack, threat: Threat) -> int | None:
    """Steps of all rounds, for the ETA; None if the attack does not say."""
    from grb.attack.build import steps_of

    steps, nodes = steps_of(attack), getattr(threat, "nodes", None)
    if steps is None:
        return None
    if nodes is None:
        return steps
    batch = max(1, math.floor(getattr(attack, "sequential_step", 1.0) * nodes))
    return steps * math.ceil(nodes / batch)
