"""Two counts of one edit: with its graph, as before a score, and from the bytes of its file alone, as in a verification."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from grb.constraints import Constraints
from grb.errors import BudgetError
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.graph.files import read_npz
from grb.pipeline.edit_budget import check_edit
from grb.threat import Injection, Modification, Threat
from pipeline.hostile import npz_bytes

N, D = 8, 3
# a ring, so that edges to add and to drop are known
RING = torch.stack([torch.arange(N), (torch.arange(N) + 1) % N])
CHORDS = [(one, two) for one in range(N) for two in range(one + 2, N) if (one, two) != (0, N - 1)]
FEATURES = st.sampled_from([-1.0, -0.5, 0.0, 0.1, 0.5, 1.0])


def ring() -> Graph:
    return Graph(adjacency_from_edges(RING.numpy(), N)[0], torch.zeros(N, D))


def saved(edit: GraphEdit, **meta: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return edit.save(Path(folder) / "edit.npz", **meta).read_bytes()


@st.composite
def edits(draw: st.DrawFn) -> GraphEdit:
    """An edit that appends nodes, or changes edges and features, or both."""
    new = draw(st.sampled_from([0, 0, 0, 1, 2, 4]))
    pairs = st.tuples(st.integers(0, N + new - 1), st.integers(N, N + new - 1))
    joined = draw(st.lists(pairs, max_size=8)) if new else []
    chords = draw(st.lists(st.sampled_from(CHORDS), max_size=2))
    add = {(min(each), max(each)) for each in [*joined, *chords] if each[0] != each[1]}
    drop = draw(st.sets(st.integers(0, N - 1), max_size=2))
    ids = sorted(draw(st.sets(st.integers(0, N - 1), max_size=2)))
    rows = draw(st.lists(FEATURES, min_size=(new + len(ids)) * D, max_size=(new + len(ids)) * D))
    values = torch.tensor(rows).reshape(-1, D)
    return GraphEdit(
        N,
        torch.tensor(sorted(add), dtype=torch.int64).reshape(-1, 2).T,
        RING[:, sorted(drop)],
        values[:new] if new else None,
        torch.tensor(ids) if ids else None,
        values[new:] if ids else None,
    )


RANGES = st.sampled_from([(-1.0, 1.0), (-0.5, 0.5), (0.0, 0.1)])
THREATS = st.builds(Injection, st.integers(0, 4), st.integers(0, 5), RANGES) | st.builds(
    Modification,
    edges=st.integers(0, 6),
    allow=st.sampled_from([("add",), ("drop",), ("add", "drop")]),
    feature_nodes=st.integers(0, 2),
    feature_range=RANGES,
)


@given(edits(), THREATS)
def test_the_two_counts_agree_on_every_edit(edit: GraphEdit, threat: Threat) -> None:
    data = saved(edit)
    try:
        used = threat.check(ring(), edit)
    except BudgetError:
        used = None
    said = used if used is not None else _counted(data, threat)
    _, contradictions = check_edit("an edit", data, threat.to_dict(), said)
    assert bool(contradictions) == (used is None), (contradictions, used)


def _counted(data: bytes, threat: Threat) -> dict[str, Any]:
    """What a forger would write beside an edit beyond its limits: the right numbers."""
    from grb.pipeline.edit_budget import count_budget

    return dict(count_budget(read_npz("an edit", data=data), N, threat))


def test_nodes_that_are_removed_are_told() -> None:
    threat = Injection(1, 1, (0.0, 1.0))
    data = saved(GraphEdit(N, cut=2))
    _, sentences = check_edit("an edit", data, threat.to_dict(), {"nodes": 0, "edges": 0, "most_edges_per_node": 0})
    assert sentences == ["its edit removes 2 nodes, which no attack may"]


@pytest.mark.parametrize(
    ("graphs", "fine"), [(2.0, True), (1.0, False), (0, False), (-1, False), ("2", False), (9, False)]
)
def test_every_graph_of_a_collection_has_the_limits(graphs: Any, fine: bool) -> None:
    """Two nodes, where a graph may get one."""
    threat = Injection(1, 1, (0.0, 1.0))
    data = saved(GraphEdit(N, torch.tensor([[0, 1], [N, N + 1]]), new_x=torch.zeros(2, D)))
    said = {"nodes": 2, "edges": 2, "most_edges_per_node": 1, "graphs": graphs, "most_edges_per_graph": 1}
    _, sentences = check_edit("an edit", data, threat.to_dict(), said)
    assert bool(sentences) != fine


def test_arrays_that_an_edit_does_not_have_are_refused() -> None:
    arrays = read_npz("an edit", data=saved(GraphEdit(N)))
    meta = torch.tensor(list(json.dumps({"n": N, "format": 1, "cut": 0}).encode()), dtype=torch.uint8).numpy()
    with pytest.raises(Exception, match="unexpected array 'more'"):
        check_edit("an edit", npz_bytes({**arrays, "meta": meta, "more": meta}), Injection(0, 0, (0, 1)).to_dict(), {})


PRICED = Constraints(
    node_cost=1.0, edge_cost=0.5, cost=4.0, ranges=((0, 0.0, 0.5),), choices=((1, 0.0, 0.1),), connect=(0, 1)
)


@given(edits())
def test_constraints_are_checked_without_the_graph_as_well(edit: GraphEdit) -> None:
    """What a verification refuses, the check with the graph refuses; and it knows what an allowed edit costs."""
    kinds: tuple[Threat, ...] = (
        Injection(4, 9, (-1.0, 1.0), constraints=PRICED),
        Modification(edges=9, feature_nodes=2, feature_range=(-1.0, 1.0), constraints=PRICED),
    )
    for threat in kinds:
        try:
            used = {name: float(value) for name, value in threat.check(ring(), edit).items()}
        except BudgetError:
            continue
        assert check_edit("edit", saved(edit), threat.to_dict(), used)[1] == []
        sentences = check_edit("edit", saved(edit), threat.to_dict(), {**used, "cost": used["cost"] + 1})[1]
        assert any("its cost is" in sentence for sentence in sentences)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"connect": (5,)}, "at nodes that its constraints do not connect"),
        ({"ranges": ((0, 0.0, 0.5),)}, "values of column 0 beyond 0 to 0.5"),
        ({"choices": ((2, 0.0, 0.5),)}, "values of column 2"),
        ({"fixed": (7,)}, "name column 7"),
        ({"cost": 0.5, "node_cost": 1.0}, "allows 0.5"),
    ],
)
def test_an_edit_that_breaks_a_constraint_is_told(changes: dict[str, Any], words: str) -> None:
    edit = GraphEdit(N, torch.tensor([[0], [N]]), new_x=torch.ones(1, D))
    threat = Injection(1, 1, (0.0, 1.0), constraints=Constraints(**changes))
    said = {"nodes": 1, "edges": 1, "most_edges_per_node": 1, **({"cost": 1.0} if "cost" in changes else {})}
    (sentence,) = check_edit("edit", saved(edit), threat.to_dict(), said)[1]
    assert words in sentence
