"""What an edit uses of its threat model, counted from the bytes of its file without torch and without the graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from grb.constraints import SLACK, Constraints
from grb.errors import DataError
from grb.graph.files import FREE_EDIT_BYTES, MAX_EDIT_RATIO, read_npz
from grb.pipeline.json_memory import check_memory
from grb.threat import Injection, Modification, Threat, threat_from_dict

Array = np.ndarray[Any, Any]
MAX_EDIT_BYTES = 2**31
MAX_META = 2**20
# columns or rows that are counted at a time
_BLOCK = 2**16
ARRAYS = ("add", "drop", "new_x", "set_ids", "set_x", "meta")


def check_edit(
    name: object, data: bytes, threat: Mapping[str, Any], said: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Count what an edit uses, compare it with what a record says and with the limits that need no graph.

    Args:
        name: What to call the edit in a refusal.
        data: Content of its file.
        threat: Threat model of the attack as plain values.
        said: Budget that the record says was used.

    Returns:
        What the file says about itself, and one sentence for every contradiction.
    """
    arrays = read_npz(
        str(name),
        required=ARRAYS,
        allowed=ARRAYS,
        max_bytes=MAX_EDIT_BYTES,
        max_ratio=MAX_EDIT_RATIO,
        free_bytes=FREE_EDIT_BYTES,
        data=data,
    )
    try:
        if arrays["meta"].nbytes > MAX_META:
            raise ValueError(f"more than {MAX_META} bytes")
        check_memory(arrays["meta"].tobytes())
        meta = json.loads(arrays["meta"].tobytes())
        nodes = int(meta["n"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"meta of {name} cannot be read ({str(error)[:60]})") from None
    limits = threat_from_dict(threat)
    used = count_budget(arrays, nodes, limits)
    sentences = [
        f"its budget of {name} is {said.get(name)}, but its edit uses {count}"
        for name, count in used.items()
        if said.get(name) != count
    ]
    known = {*used, "graphs", "most_edges_per_graph"}
    if limits.constraints is not None:
        sentences += _check_constraints(arrays, nodes, limits.constraints, said)
        known |= {"cost"} if limits.constraints.cost is not None else set()
    sentences += [f"its budget has {str(name)[:40]}, which nobody counts" for name in said if name not in known]
    if meta.get("cut"):
        sentences.append(f"its edit removes {short(meta['cut'])} nodes, which no attack may")
    # in a collection every graph has the limits
    graphs = said.get("graphs", 1)
    if isinstance(graphs, bool) or not isinstance(graphs, int | float) or not 0 <= graphs <= max(nodes, 1):
        sentences.append(f"its edit is of {short(graphs)} graphs, but its graph has {nodes} nodes")
    else:
        sentences += _excess(arrays, nodes, limits, used, int(graphs))
    return meta, sentences


def count_budget(arrays: Mapping[str, Array], nodes: int, threat: Threat) -> dict[str, int]:
    """Count what an edit uses, as :meth:`grb.threat.Injection.check` and :meth:`grb.threat.Modification.check` do.

    Args:
        arrays: Arrays of the edit's file.
        nodes: Number of nodes of the graph before the edit.
        threat: Kind of threat model.
    """
    add, drop = arrays["add"], arrays["drop"]
    if isinstance(threat, Modification):
        return {"edges": add.shape[1] + drop.shape[1], "feature_nodes": len(arrays["set_ids"])}
    new = len(arrays["new_x"])
    return {"nodes": new, "edges": add.shape[1], "most_edges_per_node": _most_ends(add.ravel(), nodes)}


def _most_ends(ends: Array, nodes: int) -> int:
    """How often the most frequent of the new nodes is an end; memory follows from the edges, not from what ids they name."""
    new = ends[ends >= nodes]
    new.sort()
    starts = np.flatnonzero(np.concatenate([[True], new[1:] != new[:-1]])) if len(new) else np.zeros(0, dtype=np.int64)
    return int(np.diff(starts, append=len(new)).max()) if len(new) else 0


def _blocks(rows: Array) -> Iterator[Array]:
    return (rows[start : start + _BLOCK] for start in range(0, len(rows), _BLOCK))


def _excess(
    arrays: Mapping[str, Array], nodes: int, threat: Threat, used: Mapping[str, int], graphs: int
) -> Iterator[str]:
    if isinstance(threat, Injection):
        allowed = {"nodes": threat.nodes * graphs, "most_edges_per_node": threat.edges_per_node}
        if arrays["drop"].size or len(arrays["set_ids"]) or (arrays["add"].size and arrays["add"].max(0).min() < nodes):
            yield "its edit changes the original graph, which an injection may not"
        rows, bounds = arrays["new_x"], threat.feature_range
    else:
        allowed = {"feature_nodes": threat.feature_nodes * graphs}
        if threat.edges is not None:
            allowed["edges"] = threat.edges * graphs
        if len(arrays["new_x"]):
            yield "its edit injects nodes, which a modification may not"
        for kind in ("add", "drop"):
            if arrays[kind].size and kind not in threat.allow:
                yield f"its edit has edges to {kind}, which its threat model forbids"
        rows, bounds = arrays["set_x"], threat.feature_range or (-np.inf, np.inf)
    for name, limit in allowed.items():
        if used[name] > limit:
            yield f"its edit uses {name}={used[name]}, but its threat model allows {limit}"
    if rows.size:
        # in float32, as features are used and as limits are compared with them
        low, high, lowest, highest = (
            float(np.float32(each)) for each in (rows.min(), rows.max(), bounds[0], bounds[1])
        )
        if not (lowest <= low and high <= highest):
            allows = f"its threat model allows {bounds[0]:g} to {bounds[1]:g}"
            yield f"its edit has features from {low:.9g} to {high:.9g}, but {allows}"


def _check_constraints(
    arrays: Mapping[str, Array], nodes: int, constraints: Constraints, said: Mapping[str, Any]
) -> Iterator[str]:
    """What constraints say without the graph: ranges and choices of columns, ids of ends, and cost."""
    connect = constraints.connect
    if isinstance(connect, tuple) and not all(
        np.isin(ends[ends < nodes], connect).all() for ends in _blocks(arrays["add"].ravel())
    ):
        yield "its edit has new edges at nodes that its constraints do not connect"
    for rows in (arrays["new_x"], arrays["set_x"]):
        if not rows.size:
            continue
        beyond = [column for column in constraints.columns if column >= rows.shape[1]]
        if beyond:
            yield f"its constraints name column {beyond[0]}, but its edit has {rows.shape[1]} features"
            return
        for column, low, high in constraints.ranges:
            if not all(_within(own, low, high) for own in _blocks(rows[:, column])):
                yield f"its edit has values of column {column} beyond {low:g} to {high:g}, which its constraints forbid"
        for first, *values in constraints.choices:
            if not all(_chosen(own, np.array(values)) for own in _blocks(rows[:, int(first)])):
                yield f"its edit has values of column {int(first)} that its constraints do not choose from"
    if constraints.cost is None:
        return
    cost, fixed = said.get("cost"), len(arrays["new_x"]) * constraints.node_cost
    fixed += (arrays["add"].shape[1] + arrays["drop"].shape[1]) * constraints.edge_cost
    most = fixed + arrays["set_x"].size * constraints.feature_cost  # which features differ, only the graph tells
    if (
        isinstance(cost, bool)
        or not isinstance(cost, int | float)
        or not fixed * (1 - 1e-9) <= cost <= most * (1 + 1e-9)
    ):
        yield f"its cost is {short(cost)}, but its edit costs {fixed:g}{'' if most == fixed else f' to {most:g}'}"
    elif "graphs" not in said and cost > constraints.cost * (1 + 1e-9):  # in a collection every graph has the limit
        yield f"its edit costs {cost:g}, but its threat model allows {constraints.cost:g}"


def _within(own: Array, low: float, high: float) -> bool:
    slack = SLACK * np.maximum(np.abs(own), 1)
    return bool(((own >= low - slack) & (own <= high + slack)).all())


def _chosen(own: Array, values: Array) -> bool:
    nearest = np.full(len(own), np.inf)
    for value in values:
        nearest = np.minimum(nearest, np.abs(own - value))
    return bool((nearest <= SLACK * np.maximum(np.abs(own), 1)).all())


def short(value: Any) -> str:
    """Return a value as a sentence shows it."""
    return ascii(value)[:60]
