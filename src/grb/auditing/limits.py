"""What the attackers of an audit may do: threat models, or what differs from the default ones in the user's own words."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from grb.auditing.attacks import largest_threat
from grb.constraints import Constraints
from grb.dataset import Dataset, constraints_of
from grb.errors import DataError, GRBError, UnknownName
from grb.threat import Injection, Modification, Threat, change_threat

Given = Mapping[str, Threat | Mapping[str, Any]]


def check_threats(given: Any) -> None:
    """Refuse threats that are not by scenario, or of the other scenario."""
    if not isinstance(given, Mapping):
        raise DataError(
            f"threats is a {type(given).__name__}, but a mapping from scenario to limits is needed, as in "
            "{'injection': {'edges_per_node': 5}}"
        )
    for scenario, threat in given.items():
        if isinstance(threat, Mapping):
            continue
        if not isinstance(threat, Injection | Modification):
            raise DataError(
                f"the threat of {scenario} is a {type(threat).__name__}, but a threat model or a mapping such as "
                "{'edges_per_node': 5} is needed"
            )
        if isinstance(threat, Injection) != (scenario == "injection"):
            raise DataError(f"the threat of {scenario} is a {type(threat).__name__}; give the one of that scenario")


def threats_of(given: Given | None, dataset: Dataset) -> dict[str, Threat]:
    """Threat models by scenario.

    Args:
        given: Threat models, or mappings of what differs from the default one: its limits by name, and ``constraints`` with
            the arguments of :func:`~grb.dataset.constraints_of`.
        dataset: Its test nodes are the targets.
    """
    return {
        scenario: _changed(scenario, threat, dataset) if isinstance(threat, Mapping) else threat
        for scenario, threat in (given or {}).items()
    }


def _changed(scenario: str, changes: Mapping[str, Any], dataset: Dataset) -> Threat:
    limits = {name: value for name, value in changes.items() if name != "constraints"}
    threat = change_threat(largest_threat(scenario, dataset), limits)
    wanted = changes.get("constraints")
    if wanted is None or isinstance(wanted, Constraints):
        return replace(threat, constraints=wanted)
    own = [name for name in inspect.signature(constraints_of).parameters if name not in ("dataset", "others")]
    known = [
        *own,
        *(each.name for each in fields(Constraints) if each.name not in ("grids", "choices", "groups", *own)),
    ]
    if not isinstance(wanted, Mapping):
        raise DataError(
            f"constraints of {scenario} are a {type(wanted).__name__}, but a mapping is needed, as in fixed: [age]"
        )
    unknown = [str(name) for name in wanted if name not in known]
    if unknown:
        raise UnknownName("constraint", unknown[0], known, advice=f"Allowed: {', '.join(known)}.")
    try:
        return replace(threat, constraints=constraints_of(dataset, **wanted))
    except GRBError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(
            f"the constraints of {scenario} cannot be read ({reason}); write them as in ranges: {{amount: [0, 100]}}, "
            "fixed: [age], connect: targets"
        ) from None
