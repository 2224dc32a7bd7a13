"""The threat models count, and refuse with the excess named."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import grb
from grb.catalogue import preset
from grb.errors import BudgetError, DataError, UnknownName
from grb.graph import Graph, GraphEdit, adjacency_from_edges
from grb.threat import Change, Injection, Modification, injected_degrees, injection_table, threat_from_dict
from helpers import needs_grb_cora

N, D = 6, 2
FREE = Injection(nodes=2, edges_per_node=3, feature_range=(-0.5, 0.9))


def ring(n: int = N) -> Graph:
    """0 - 1 - ... - n-1 - 0."""
    pairs = np.array([[i, (i + 1) % n] for i in range(n)]).T
    return Graph(adjacency_from_edges(pairs, n)[0], torch.zeros(n, D))


def edit(add: Any = (), drop: Any = (), *, new: int | torch.Tensor = 0, **more: Any) -> GraphEdit:
    def pairs(given: Any) -> torch.Tensor:
        return torch.tensor(list(given), dtype=torch.int64).reshape(-1, 2).T

    new_x = new if isinstance(new, torch.Tensor) else torch.zeros(new, D)
    return GraphEdit(**{"n": N, "add": pairs(add), "drop": pairs(drop), "new_x": new_x, **more})


def rows(value: float, count: int = 1, width: int = D) -> torch.Tensor:
    return torch.full((count, width), value)


# ---------------------------------------------------------------- injection


def test_an_allowed_injection_is_counted() -> None:
    used = FREE.check(ring(), edit([(0, 6), (3, 6), (6, 7)], new=2))
    assert used == {"nodes": 2, "edges": 3, "most_edges_per_node": 3}
    assert FREE.check(ring(), GraphEdit(n=N)) == {"nodes": 0, "edges": 0, "most_edges_per_node": 0}


REFUSED = {
    "too many nodes": (
        edit(new=3),
        "3 nodes are injected, but the threat model allows nodes=2",
    ),
    "too many edges": (
        edit([(0, 7), (1, 7), (2, 7), (3, 7)], new=2),
        "injected node 1 has 4 edges, but the threat model allows edges_per_node=3",
    ),
    "an edge between injected nodes counts at the first end": (
        edit([(0, 6), (1, 6), (2, 6), (6, 7)], new=2),
        "injected node 0 has 4 edges, but the threat model allows edges_per_node=3",
    ),
    "an edge between injected nodes counts at the second end": (
        edit([(0, 7), (1, 7), (2, 7), (6, 7)], new=2),
        "injected node 1 has 4 edges, but the threat model allows edges_per_node=3",
    ),
    "edges among original nodes": (
        edit([(0, 2), (0, 6)], new=1),
        "1 edges are added among original nodes, but an injection may add none",
    ),
    "dropped edges": (
        edit(drop=[(0, 1), (1, 2)]),
        "2 original edges are dropped, but an injection may drop none",
    ),
    "touched rows": (
        edit(set_ids=torch.tensor([4]), set_x=rows(0.0)),
        "features of 1 original nodes are changed, but an injection may change none",
    ),
    "too large": (
        edit(new=rows(0.9 + 2e-6)),
        "an injected feature is 0.900002",
    ),
    "too small": (
        edit(new=rows(-0.51)),
        "an injected feature is -0.50999999, but the threat model allows -0.5 to 0.9",
    ),
    "another number of nodes": (
        GraphEdit(n=7),
        "the edit is for a graph of 7 nodes, but the attacked one has 6",
    ),
    "another number of features": (
        edit(new=rows(0.0, width=3)),
        "the edit has 3 features per node, but the graph has 2",
    ),
    "cut nodes": (
        GraphEdit(n=N, cut=1),
        "1 nodes are removed, but no attack may remove any",
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_refusals_of_an_injection_name_the_excess(case: tuple[GraphEdit, str]) -> None:
    forbidden, sentence = case
    with pytest.raises(BudgetError) as caught:
        FREE.check(ring(), forbidden)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_features_that_are_no_numbers_are_refused_twice(value: float) -> None:
    with pytest.raises(DataError, match="must be finite"):
        edit(new=rows(value))
    behind = edit(new=rows(0.0))
    assert behind.new_x is not None
    behind.new_x[0, 1] = value  # behind the constructor's back
    with pytest.raises(BudgetError, match="an injected feature is NaN or infinite, but must be finite"):
        FREE.check(ring(), behind)


def test_duplicates_self_loops_and_unknown_ids_make_no_edit() -> None:
    for pairs, sentence in (
        ([(0, 6), (6, 0)], "twice"),
        ([(6, 6)], "with itself"),
        ([(0, 8)], "names node 8"),
        ([(-1, 6)], "names node -1"),
    ):
        with pytest.raises(DataError, match=sentence):
            edit(pairs, new=2)


@pytest.mark.parametrize("limit", [1e-30, 1e-7, 0.1, 0.9, 0.94, 1.0, 100.3, 12345.678])
def test_a_range_is_exact_once_it_is_rounded_as_features_are(limit: float) -> None:
    """float32 rounds 100.3 to 100.30000305: that is kept, the next number is not."""
    threat = Injection(1, 1, (-limit, limit))
    end = np.float32(limit)
    beyond = float(np.nextafter(end, np.float32(np.inf)))
    for sign in (-1, 1):
        threat.check(ring(), edit(new=rows(sign * math.inf).clamp(*threat.feature_range)))
        threat.check(ring(), edit(new=rows(sign * float(end))))
        with pytest.raises(BudgetError, match="an injected feature is"):
            threat.check(ring(), edit(new=rows(sign * beyond)))


def test_a_narrow_range_forgives_nothing() -> None:
    threat = Injection(1, 1, (0.0, 1e-7))
    with pytest.raises(
        BudgetError, match="an injected feature is 1.08999996e-06, but the threat model allows 0 to 1e-07"
    ):
        threat.check(ring(), edit(new=rows(1.09e-6)))
    with pytest.raises(BudgetError, match="an injected feature is -9.99999996e-13"):
        threat.check(ring(), edit(new=rows(-1e-12)))
    changed = Modification(edges=0, feature_nodes=1, feature_range=(0.0, 1e-7))
    with pytest.raises(BudgetError, match="a changed feature is 1.0"):
        changed.check(ring(), GraphEdit(6, set_ids=torch.tensor([0]), set_x=rows(1.01e-7)))


@pytest.mark.parametrize(
    "limits",
    [(-1, 1), (1, -1), (math.nan, 1), (1, math.nan), (math.inf, 1), (2.5, 1), (1, 0.5)],
)
def test_limits_that_are_no_counts_are_refused(limits: tuple[Any, Any]) -> None:
    """A limit of NaN would compare as never exceeded."""
    with pytest.raises(DataError, match="whole number"):
        Injection(*limits, (-1, 1))


@pytest.mark.parametrize("feature_range", [(1, -1), (math.nan, 1), (0, math.nan), (-math.inf, 1), (0, math.inf)])
def test_ranges_without_two_ends_are_refused(feature_range: tuple[float, float]) -> None:
    with pytest.raises(DataError, match="feature range"):
        Injection(1, 1, feature_range)
    with pytest.raises(DataError, match="feature range"):
        Modification(edges=1, feature_nodes=1, feature_range=feature_range)


def test_counts_from_numpy_are_counts() -> None:
    assert Injection(np.int64(2), np.int32(3), (-1, 1)).nodes == 2  # type: ignore[arg-type]


# ---------------------------------------------------------------- presets


# reference/grb_injection_attacks.csv: Tables 5 and 12 of the GRB paper
TABLE = """\
grb-cora,0.01,1000,20,20,20,60,20,-0.94,0.94,20,20,10
grb-citeseer,0.01,1000,30,30,30,90,20,-0.96,0.89,30,20,10
grb-flickr,0.01,2000,200,200,200,600,100,-0.47,0.99,200,100,10
grb-reddit,0.01,2000,500,500,500,1500,200,-0.98,0.99,500,200,10
grb-aminer,0.01,5000,500,500,500,1500,100,-0.93,0.93,500,100,10
"""


@pytest.mark.parametrize("line", TABLE.splitlines(), ids=lambda line: line.split(",")[0])
def test_presets_are_those_of_the_paper(line: str) -> None:
    name, step, iterations, *counts, edges, low, high, at_nodes, at_edges, at_steps = line.split(",")
    row = injection_table(name)
    assert (row["step"], row["iterations"]) == (float(step), int(iterations))
    assert row["training"] == {"nodes": int(at_nodes), "edges_per_node": int(at_edges), "steps": int(at_steps)}
    for mode, nodes in zip(("easy", "medium", "hard", "full"), counts, strict=True):
        assert Injection.preset(name, mode) == Injection(int(nodes), int(edges), (float(low), float(high)))


def test_preset_names() -> None:
    assert Injection.preset("synth-cora", "full") == Injection.preset("grb-cora", "full")
    assert Injection.preset("synth-tiny", "full").nodes == sum(
        Injection.preset("synth-tiny", mode).nodes for mode in ("easy", "medium", "hard")
    )
    with pytest.raises(UnknownName, match=r"'grb-corra'\. Did you mean 'grb-cora'\? Give a custom Injection"):
        Injection.preset("grb-corra", "full")
    with pytest.raises(UnknownName, match="Allowed: easy, medium, hard, full"):
        Injection.preset("grb-cora", "impossible")


def test_a_dataset_at_hand_has_the_range_of_its_own_features() -> None:
    dataset = grb.load_dataset("synth-tiny")
    low, high = dataset.feature_range
    own, printed = Injection.preset(dataset, "full"), Injection.preset(dataset, "full", features="paper")
    assert own.feature_range == (low, high) != (-0.9, 0.9) and own == Injection.preset(dataset, "full", features="data")
    assert printed == Injection.preset("synth-tiny", "full") == Injection(9, 5, (-0.9, 0.9))
    assert (own.nodes, own.edges_per_node) == (9, 5)
    with pytest.raises(DataError, match="features='data' needs a dataset, but got the name 'synth-tiny'"):
        Injection.preset("synth-tiny", "full", features="data")
    with pytest.raises(DataError, match="features is 'mine', but 'data' or 'paper' is needed"):
        Injection.preset(dataset, "full", features="mine")  # type: ignore[arg-type]


@needs_grb_cora
def test_injections_with_the_range_of_grb_cora_itself_are_legal() -> None:
    """Table 12 prints two decimals, which the features of grb-cora exceed at both ends."""
    dataset = grb.load_dataset("grb-cora")
    low, high = dataset.feature_range
    assert (low, high) == pytest.approx((-0.9406, 0.9430), abs=5e-5)
    assert isinstance(dataset.graph.x, torch.Tensor)
    extremes = torch.stack([dataset.graph.x.min(0).values, dataset.graph.x.max(0).values])
    made = GraphEdit(dataset.graph.n, new_x=extremes)
    assert Injection.preset(dataset, "full").check(dataset.graph, made)["nodes"] == 2
    with pytest.raises(BudgetError, match="an injected feature is -0.94056803, but the threat model allows -0.94 to"):
        Injection.preset(dataset, "full", features="paper").check(dataset.graph, made)


def test_limits_of_other_datasets_are_inferred_as_on_grb_cora() -> None:
    """20 nodes of 20 edges for 268 targets; small test sets get one node and no more edges than targets."""
    assert Injection.inferred(268, (-1.0, 2.0)) == Injection(20, 20, (-1.0, 2.0))
    assert Injection.inferred(40, (0.0, 1.0)).nodes == 3  # 0.075 * 40 is a hair below
    assert Injection.inferred(4, (0.0, 1.0)) == Injection(1, 4, (0.0, 1.0))
    assert Injection.inferred(0, (0.0, 1.0)) == Injection(0, 0, (0.0, 1.0))


def test_a_table_is_lent_as_a_copy() -> None:
    injection_table("grb-cora")["nodes"] = None
    assert preset("injection")["grb-cora"]["nodes"]["full"] == 60


# ---------------------------------------------------------------- modification


def test_an_allowed_modification_is_counted() -> None:
    threat = Modification(edges=3, feature_nodes=1, feature_range=(-1, 1))
    change = edit([(0, 2)], [(0, 1), (3, 4)], set_ids=torch.tensor([5]), set_x=rows(1.0))
    assert threat.check(ring(), change) == {"edges": 3, "feature_nodes": 1}
    assert Modification(edges=0).check(ring(), GraphEdit(n=N)) == {"edges": 0, "feature_nodes": 0}


FEATURE = {"set_ids": torch.tensor([1, 4]), "set_x": rows(0.0, 2)}
MODIFICATIONS: dict[str, tuple[Modification, GraphEdit, str]] = {
    "too many edges": (
        Modification(edges=2),
        edit([(0, 2)], [(0, 1), (3, 4)]),
        "3 edges are changed, but the threat model allows 2",
    ),
    "too large a share": (
        Modification(edge_ratio=0.34),
        edit([(0, 2)], [(0, 1), (3, 4)]),
        "3 edges are changed, but the threat model allows 2",
    ),
    "added though only drops are allowed": (
        Modification(edges=9, allow=("drop",)),
        edit([(0, 2)]),
        "1 edges: add, but the threat model allows only ['drop']",
    ),
    "dropped though only additions are allowed": (
        Modification(edges=9, allow={"add"}),
        edit(drop=[(0, 1)]),
        "1 edges: drop, but the threat model allows only ['add']",
    ),
    "too many at one node": (
        Modification(edges=9, per_node=0.9),
        edit([(0, 2)], [(0, 1)]),
        "2 edges of node 0 are changed, but its limit is 1",
    ),
    "injected nodes": (
        Modification(edges=9),
        edit([(0, 6)], new=1),
        "1 nodes are injected, but a modification may inject none",
    ),
    "features of too many nodes": (
        Modification(edges=9, feature_nodes=1, feature_range=(-1, 1)),
        edit(**FEATURE),
        "features of 2 nodes are changed, but the threat model allows 1",
    ),
    "features though none may change": (
        Modification(edges=9),
        edit(**FEATURE),
        "features of 2 nodes are changed, but the threat model allows 0",
    ),
    "features out of range": (
        Modification(edges=9, feature_nodes=2, feature_range=(-1, -0.5)),
        edit(**FEATURE),
        "a changed feature is 0, but the threat model allows -1 to -0.5",
    ),
    "an edge that is there already": (
        Modification(edges=9),
        edit([(0, 1)]),
        "edge [0, 1] is added, but the graph has it already",
    ),
    "an edge that is not there": (
        Modification(edges=9),
        edit(drop=[(0, 3)]),
        "edge [0, 3] is dropped, but the graph has no such edge",
    ),
    "another number of nodes": (
        Modification(edges=9),
        GraphEdit(n=7),
        "the edit is for a graph of 7 nodes, but the attacked one has 6",
    ),
    "another number of features": (
        Modification(edges=9, feature_nodes=1, feature_range=(-1, 1)),
        edit(set_ids=torch.tensor([0]), set_x=rows(0.0, width=5)),
        "the edit has 5 features per node, but the graph has 2",
    ),
    "cut nodes": (Modification(edges=9), GraphEdit(n=N, cut=2), "2 nodes are removed, but no attack may remove any"),
}


@pytest.mark.parametrize("case", MODIFICATIONS.values(), ids=MODIFICATIONS.keys())
def test_refusals_of_a_modification_name_the_excess(case: tuple[Modification, GraphEdit, str]) -> None:
    threat, forbidden, sentence = case
    with pytest.raises(BudgetError) as caught:
        threat.check(ring(), forbidden)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("edges", "ratio", "allowed"), [(100, 0.05, 5), (100, 0.29, 29), (10, 0.05, 0), (20, 0.05, 1), (39, 0.05, 1)]
)
def test_a_share_of_the_edges_is_rounded_down_but_not_by_rounding_errors(
    edges: int, ratio: float, allowed: int
) -> None:
    """0.29 * 100 is 28.999999999999996 in floating point."""
    assert Modification(edge_ratio=ratio).budget(ring(edges)) == allowed
    assert Modification(edges=allowed).budget(ring(edges)) == allowed


def test_the_limit_per_node_is_rounded_down() -> None:
    """Degree 2 everywhere in a ring: 0.5 allows one change at a node, 0.49 none, 1.0 two."""
    one, two = edit(drop=[(0, 1)]), edit([(0, 3)], [(0, 1)])
    Modification(edges=9, per_node=0.5).check(ring(), one)
    Modification(edges=9, per_node=1.0).check(ring(), two)
    for share, change in ((0.49, one), (0.99, two)):
        with pytest.raises(BudgetError, match="edges of node 0 are changed"):
            Modification(edges=9, per_node=share).check(ring(), change)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "either edges or edge_ratio"),
        ({"edges": 1, "edge_ratio": 0.1}, "either edges or edge_ratio"),
        ({"edges": -1}, "edges is -1, but must not be negative"),
        ({"edge_ratio": math.nan}, "edge_ratio is nan"),
        ({"edges": 1, "per_node": -0.5}, "per_node is -0.5"),
        ({"edges": 1, "feature_nodes": -1}, "feature_nodes is -1"),
        ({"edges": 1, "allow": ()}, "'add', 'drop' or both"),
        ({"edges": 1, "allow": ("flip",)}, "'add', 'drop' or both"),
        ({"edges": 1, "allow": "add"}, "'add', 'drop' or both"),
        ({"edges": 1, "feature_nodes": 2}, "needs a feature_range"),
    ],
)
def test_limits_that_make_no_sense_are_refused(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        Modification(**arguments)


# ---------------------------------------------------------------- properties


@st.composite
def injections(draw: st.DrawFn) -> tuple[Graph, GraphEdit, Injection]:
    n, new = draw(st.integers(1, 8)), draw(st.integers(0, 4))
    graph = random_ring(draw, n)
    every = [(u, v) for u in range(n + new) for v in range(max(u + 1, n if draw(st.integers(0, 9)) else 0), n + new)]
    chosen = draw(st.lists(st.sampled_from(every), unique=True, max_size=12)) if every else []
    chosen = [pair for pair in chosen if pair[1] >= n or not bool(graph.adj.has(torch.tensor(pair)[:, None])[0])]
    value = draw(st.sampled_from([0.0, 0.5, 0.5 + 5e-7, 0.5 + 3e-6, -0.25, -0.25 - 5e-7, -0.25 - 3e-6]))
    made = GraphEdit(n=n, add=torch.tensor(chosen, dtype=torch.int64).reshape(-1, 2).T, new_x=rows(value, new))
    return graph, made, Injection(draw(st.integers(0, 4)), draw(st.integers(0, 4)), (-0.25, 0.5))


def random_ring(draw: st.DrawFn, n: int) -> Graph:
    every = [(u, v) for u in range(n) for v in range(u + 1, n)]
    chosen = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    return Graph(adjacency_from_edges(np.array(chosen, dtype=np.int64).reshape(-1, 2).T, n)[0], torch.zeros(n, D))


def injection_excess(graph: Graph, made: GraphEdit, threat: Injection) -> bool:
    """Counted one by one, as slowly as possible."""
    pairs = made.add.T.tolist()
    values = [] if made.new_x is None else made.new_x.double().flatten().tolist()
    low, high = threat.feature_range
    return (
        any(u < graph.n and v < graph.n for u, v in pairs)
        or made.num_new > threat.nodes
        or any(sum(node in pair for pair in pairs) > threat.edges_per_node for node in range(graph.n, made.n_after))
        or any(not np.float32(low) <= value <= np.float32(high) for value in values)
    )


@given(injections())
def test_an_injection_is_allowed_exactly_when_a_slow_count_says_so(case: tuple[Graph, GraphEdit, Injection]) -> None:
    graph, made, threat = case
    if injection_excess(graph, made, threat):
        with pytest.raises(BudgetError):
            threat.check(graph, made)
    else:
        used = threat.check(graph, made)
        assert (used["nodes"], used["edges"]) == (made.num_new, made.add.shape[1])
        graph.apply(made)  # what is allowed can be done


@given(injections(), st.data())
def test_an_injection_made_too_large_by_hand_is_always_refused(
    case: tuple[Graph, GraphEdit, Injection], data: st.DataObject
) -> None:
    graph, made, _ = case
    most = max(injected_degrees(made).tolist(), default=0)
    low, high = -0.3, 0.6
    tight = [Injection(made.num_new - 1, most, (low, high))] if made.num_new else []
    tight += [Injection(made.num_new, most - 1, (low, high))] if most else []
    if made.new_x is not None:
        value = float(made.new_x[0, 0])
        tight += [
            Injection(made.num_new, most, (low, value - 1e-3)),
            Injection(made.num_new, most, (value + 1e-3, high)),
        ]
    for threat in tight:
        with pytest.raises(BudgetError):
            threat.check(graph, made)
    if graph.num_edges:
        pair = data.draw(st.sampled_from(graph.adj.edges().T.tolist()))
        dropping = GraphEdit(n=graph.n, drop=torch.tensor(pair)[:, None])
        with pytest.raises(BudgetError):
            Injection(9, 9, (-9, 9)).check(graph, dropping)


@st.composite
def modifications(draw: st.DrawFn) -> tuple[Graph, GraphEdit, Modification]:
    n = draw(st.integers(2, 8))
    graph = random_ring(draw, n)
    present = [tuple(pair) for pair in graph.adj.edges().T.tolist()]
    absent = [(u, v) for u in range(n) for v in range(u + 1, n) if (u, v) not in present]
    drop = draw(st.lists(st.sampled_from(present), unique=True, max_size=4)) if present else []
    add = draw(st.lists(st.sampled_from(absent), unique=True, max_size=4)) if absent else []
    ids = draw(st.lists(st.integers(0, n - 1), unique=True, max_size=2))
    made = GraphEdit(
        n=n,
        add=torch.tensor(add, dtype=torch.int64).reshape(-1, 2).T,
        drop=torch.tensor(drop, dtype=torch.int64).reshape(-1, 2).T,
        set_ids=torch.tensor(ids) if ids else None,
        set_x=rows(draw(st.sampled_from([0.0, 1.0, 1.5])), len(ids)) if ids else None,
    )
    share = draw(st.booleans())
    threat = Modification(
        edges=None if share else draw(st.integers(0, 8)),
        edge_ratio=draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])) if share else None,
        allow=draw(st.sampled_from([("add",), ("drop",), ("add", "drop")])),
        per_node=draw(st.sampled_from([None, 0.0, 0.5, 1.0, 2.0])),
        feature_nodes=draw(st.integers(0, 2)),
        feature_range=(-1, 1),
    )
    return graph, made, threat


def modification_excess(graph: Graph, made: GraphEdit, threat: Modification) -> bool:
    add, drop, old = made.add.T.tolist(), made.drop.T.tolist(), graph.adj.edges().T.tolist()
    allowed = threat.edges if threat.edges is not None else int(threat.edge_ratio * len(old))
    too_many = threat.per_node is not None and any(
        sum(node in pair for pair in add + drop) > int(threat.per_node * sum(node in pair for pair in old))
        for node in range(graph.n)
    )
    touched = [] if made.set_x is None else made.set_x.tolist()
    return bool(
        (add and "add" not in threat.allow)
        or (drop and "drop" not in threat.allow)
        or len(add) + len(drop) > allowed
        or too_many
        or len(touched) > threat.feature_nodes
        or any(abs(value) > 1 for row in touched for value in row)
    )


@given(modifications())
def test_a_modification_is_allowed_exactly_when_a_slow_count_says_so(
    case: tuple[Graph, GraphEdit, Modification],
) -> None:
    graph, made, threat = case
    if modification_excess(graph, made, threat):
        with pytest.raises(BudgetError):
            threat.check(graph, made)
    else:
        used = threat.check(graph, made)
        assert used["edges"] == made.add.shape[1] + made.drop.shape[1]
        graph.apply(made)


@pytest.mark.parametrize(
    "threat",
    [
        Injection(5, 3, (-1.0, 0.5)),
        Modification(edge_ratio=0.1),
        Modification(edges=7, allow=frozenset({"add"}), per_node=0.5),
        Modification(edges=7, feature_nodes=2, feature_range=(0.0, 1.0), allow_isolate=False),
    ],
)
def test_a_threat_model_comes_back_from_its_values(threat: Any) -> None:
    again = threat_from_dict(json.loads(json.dumps(threat.to_dict())))
    assert type(again) is type(threat)
    assert {**vars(again), "allow": None} == {**vars(threat), "allow": None}
    assert set(getattr(again, "allow", ())) == set(getattr(threat, "allow", ()))


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"kind": "theft"},
        {"kind": "injection"},
        {"kind": "injection", "nodes": "a", "edges_per_node": 1, "feature_range": [0, 1]},
        {"kind": "injection", "nodes": 1, "edges_per_node": 1, "feature_range": [0]},
        {"kind": "injection", "nodes": 1, "edges_per_node": 1, "feature_range": 5},
        {"kind": "injection", "nodes": 1, "edges_per_node": 1, "feature_range": ["a", "b"]},
        {"kind": "modification", "edges": 1, "edge_ratio": 0.1},
        {"kind": "modification", "edges": 1, "allow": 5},
        {"kind": "modification", "edges": 1, "colour": "red"},
    ],
)
def test_no_threat_model_comes_of_anything_else(values: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        threat_from_dict(values)


def test_the_values_of_a_threat_model_leave_defaults_out() -> None:
    assert Injection(3, 2, (0.0, 1.0)).to_dict() == {
        "kind": "injection",
        "nodes": 3,
        "edges_per_node": 2,
        "feature_range": [0.0, 1.0],
    }
    assert Modification(edges=7).to_dict() == {"kind": "modification", "edges": 7}
    both: frozenset[Change] = frozenset({"drop", "add"})
    assert Modification(edge_ratio=0.1, allow=both).to_dict()["allow"] == ["add", "drop"]


def test_queries_are_named_so_that_no_other_limit_is_taken_for_them() -> None:
    with pytest.raises(TypeError, match="positional"):
        Injection(4, 4, (0.0, 1.0), None, 7)  # type: ignore[misc]
    assert repr(Injection(4, 4, (0.0, 1.0))) == "Injection(nodes=4, edges_per_node=4, feature_range=(0.0, 1.0))"
    assert repr(Injection(4, 4, (0.0, 1.0), queries=7)).endswith("feature_range=(0.0, 1.0), queries=7)")
