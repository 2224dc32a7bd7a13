"""Laws of edits on random graphs, and the edits that are refused."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from grb.errors import DataError
from grb.graph import CSR, Graph, GraphEdit, adjacency_from_edges
from grb.graph.edit import sparse_features

D = 3


def graph_of(n: int, edges: set[tuple[int, int]], x: Tensor, y: list[int] | None = None, ptr: Any = None) -> Graph:
    pairs = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2).T
    return Graph.build(adjacency_from_edges(pairs, n)[0], x, y, ptr=ptr)[0]


def random_rows(rng: np.random.Generator, count: int) -> Tensor:
    """Distinct with certainty from any other draw, so that a replaced row is a changed row."""
    return torch.from_numpy(rng.standard_normal((count, D)).astype(np.float32))


def random_graph(rng: np.random.Generator, n: int, *, labelled: bool) -> Graph:
    upper = np.triu(rng.random((n, n)) < rng.random(), 1)
    edges = {(int(u), int(v)) for u, v in np.argwhere(upper)}
    return graph_of(n, edges, random_rows(rng, n), rng.integers(0, 3, n).tolist() if labelled else None)


def random_edit(rng: np.random.Generator, graph: Graph, *, cuts: bool, mixed: bool) -> GraphEdit:
    """An edit that fits: absent pairs added (to injected nodes too), edges dropped, rows replaced, nodes cut."""
    n = graph.n
    cut = int(rng.integers(0, n + 1)) if cuts and rng.random() < 0.5 else 0
    new = int(rng.integers(0, 4)) if rng.random() < 0.6 and (mixed or not cut) else 0
    base = n - cut
    present = {(u, v) for u, v in graph.adj.edges().T.tolist()}
    total = base + new
    pairs = [(u, v) for u in range(total) for v in range(u + 1, total)]
    share = rng.random() * 0.6
    add = [pair for pair in pairs if pair not in present or pair[1] >= base]
    add = [pair for pair in add if rng.random() < share]
    drop = [pair for pair in sorted(present) if pair[1] < base and rng.random() < share]
    changed = [node for node in range(base) if rng.random() < 0.3]
    rng.shuffle(add)
    flipped = [(v, u) if rng.random() < 0.5 else (u, v) for u, v in add]
    return GraphEdit(
        n=n,
        add=torch.tensor(flipped, dtype=torch.int64).reshape(-1, 2).T,
        drop=torch.tensor(drop, dtype=torch.int64).reshape(-1, 2).T,
        new_x=random_rows(rng, new) if new else None,
        set_ids=torch.tensor(changed) if changed else None,
        set_x=random_rows(rng, len(changed)) if changed else None,
        cut=cut,
    )


@dataclass(frozen=True)
class Case:
    graph: Graph
    first: GraphEdit
    later: GraphEdit


@st.composite
def cases(draw: st.DrawFn, *, cuts: bool = True, mixed: bool = True, labelled: bool = False) -> Case:
    """A graph and two edits, one for it and one for what the first leaves.

    ``mixed`` edits cut nodes and append others, which then have the ids of those that went; `then` makes such.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    graph = random_graph(rng, draw(st.integers(0, 8)), labelled=labelled)
    first = random_edit(rng, graph, cuts=cuts, mixed=mixed)
    return Case(graph, first, random_edit(rng, graph.apply(first), cuts=cuts, mixed=mixed))


def same(a: Tensor | None, b: Tensor | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or (a.dtype == b.dtype and torch.equal(a, b)))


def equal(a: GraphEdit, b: GraphEdit) -> bool:
    """Equal as values: every array with its type, and both numbers of nodes."""
    arrays = ("add", "drop", "new_x", "set_ids", "set_x")
    return a.n == b.n and a.cut == b.cut and all(same(getattr(a, name), getattr(b, name)) for name in arrays)


def written_out(graph: Graph) -> tuple[set[tuple[int, int]], Tensor]:
    assert isinstance(graph.x, Tensor)
    return {(u, v) for u, v in graph.adj.edges().T.tolist()}, graph.x


def applied_by_hand(graph: Graph, edit: GraphEdit) -> tuple[set[tuple[int, int]], Tensor]:
    """What the edit means, with sets and rows."""
    edges, x = written_out(graph)
    edges = {(u, v) for u, v in edges if v < edit.base}
    edges -= {(u, v) for u, v in edit.drop.T.tolist()}
    edges |= {(u, v) for u, v in edit.add.T.tolist()}
    rows = list(x[: edit.base])
    if edit.set_ids is not None and edit.set_x is not None:
        for node, row in zip(edit.set_ids.tolist(), edit.set_x, strict=True):
            rows[node] = row
    rows += [] if edit.new_x is None else list(edit.new_x)
    return edges, torch.stack(rows) if rows else x[:0]


@given(cases())
def test_apply_means_what_it_says(case: Case) -> None:
    after = case.graph.apply(case.first)
    edges, x = applied_by_hand(case.graph, case.first)
    assert written_out(after)[0] == edges
    assert torch.equal(written_out(after)[1], x)
    assert after.n == case.first.n_after
    for row in range(after.n):
        columns = after.adj.neighbours(row).tolist()
        assert columns == sorted(set(columns)) and row not in columns
    assert after.adj.pattern.symmetric


@given(cases(mixed=False))
def test_between_a_graph_and_its_edited_self_is_the_edit(case: Case) -> None:
    assert equal(GraphEdit.between(case.graph, case.graph.apply(case.first)), case.first)
    assert GraphEdit.between(case.graph, case.graph).is_empty


@given(cases())
def test_inverse_leads_back(case: Case) -> None:
    inverse = case.first.inverse(case.graph)
    back = case.graph.apply(case.first).apply(inverse)
    assert back.fingerprint() == case.graph.fingerprint()


@given(cases(mixed=False))
def test_inverse_of_the_inverse_is_the_edit(case: Case) -> None:
    after = case.graph.apply(case.first)
    assert equal(case.first.inverse(case.graph).inverse(after), case.first)


@given(cases(cuts=False, labelled=True))
def test_inverse_brings_labels_back_where_nothing_was_cut(case: Case) -> None:
    back = case.graph.apply(case.first).apply(case.first.inverse(case.graph))
    assert back.fingerprint() == case.graph.fingerprint()


@given(cases())
def test_then_is_one_after_the_other(case: Case) -> None:
    steps = case.graph.apply(case.first).apply(case.later)
    at_once = case.graph.apply(case.first.then(case.later))
    assert at_once.fingerprint() == steps.fingerprint()


@given(cases(labelled=True, cuts=False))
def test_then_is_one_after_the_other_with_labels(case: Case) -> None:
    steps = case.graph.apply(case.first).apply(case.later)
    assert case.graph.apply(case.first.then(case.later)).fingerprint() == steps.fingerprint()


@given(cases())
def test_edit_then_its_inverse_changes_nothing(case: Case) -> None:
    around = case.first.then(case.first.inverse(case.graph))
    assert case.graph.apply(around).fingerprint() == case.graph.fingerprint()


@given(cases())
def test_then_is_associative_in_effect(case: Case) -> None:
    after = case.graph.apply(case.first).apply(case.later)
    third = random_edit(np.random.default_rng(after.num_edges), after, cuts=True, mixed=True)
    left = case.first.then(case.later).then(third)
    right = case.first.then(case.later.then(third))
    assert case.graph.apply(left).fingerprint() == case.graph.apply(right).fingerprint()


@given(cases())
def test_saved_edits_load_equal_and_have_the_same_bytes(case: Case) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        one, two = Path(folder, "one.npz"), Path(folder, "two.npz")
        case.first.save(one, attack="rnd", seed=3)
        loaded, meta = GraphEdit.load_with_meta(one)
        assert equal(loaded, case.first)
        assert meta["attack"] == "rnd" and meta["seed"] == 3
        loaded.save(two, seed=3, attack="rnd")
        assert one.read_bytes() == two.read_bytes()


@given(cases(labelled=True))
def test_nothing_given_is_changed(case: Case) -> None:
    graph, edit = case.graph, case.first
    x, add = written_out(graph)[1].clone(), edit.add.clone()
    before = graph.fingerprint()
    new_x = None if edit.new_x is None else edit.new_x.clone()
    set_x = None if edit.set_x is None else edit.set_x.clone()
    edit.then(case.later)
    edit.inverse(graph)
    graph.apply(edit)
    assert graph.fingerprint() == before and torch.equal(written_out(graph)[1], x)
    assert torch.equal(edit.add, add) and same(edit.new_x, new_x) and same(edit.set_x, set_x)


@given(cases())
def test_sparse_features_are_edited_like_dense_ones(case: Case) -> None:
    graph = case.graph.with_features(sparse_features(written_out(case.graph)[1]))
    after = graph.apply(case.first)
    dense = written_out(case.graph.apply(case.first))[1]
    seen = after.x @ torch.eye(D) if isinstance(after.x, CSR) else after.x
    assert torch.equal(seen, dense)
    assert graph.apply(GraphEdit.between(graph, after)).fingerprint() == after.fingerprint()


def path_graph(**options: Any) -> Graph:
    """0 - 1 - 2 - 3, and node 4 alone."""
    return graph_of(5, {(0, 1), (1, 2), (2, 3)}, torch.arange(15.0).reshape(5, D), **options)


def pairs(*edges: tuple[int, int]) -> Tensor:
    return torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T


def test_an_edit_by_hand() -> None:
    edit = GraphEdit(n=5, add=pairs((5, 0), (4, 2)), drop=pairs((2, 1)), new_x=torch.ones(1, D))
    after = path_graph(y=[0, 1, 2, 0, 1]).apply(edit)
    assert after.adj.edges().T.tolist() == [[0, 1], [0, 5], [2, 3], [2, 4]]
    assert after.y is not None and after.y.tolist() == [0, 1, 2, 0, 1, -1]
    assert edit.num_new == 1 and edit.n_after == 6 and not edit.is_empty
    assert edit.nbytes == 2 * 2 * 8 + 2 * 8 + D * 4
    assert repr(edit) == "GraphEdit(n=5, add=2, drop=1, new=1, set=0)"


def test_empty_edit_changes_nothing() -> None:
    graph = path_graph()
    assert GraphEdit(n=5).is_empty
    assert graph.apply(GraphEdit(n=5)).fingerprint() == graph.fingerprint()
    assert GraphEdit(n=5, new_x=torch.empty(0, D)).new_x is None
    assert GraphEdit(n=5, set_ids=torch.empty(0, dtype=torch.int64), set_x=torch.empty(0, D)).is_empty


def test_features_are_kept_as_float32() -> None:
    edit = GraphEdit(n=5, new_x=torch.full((1, D), 0.1, dtype=torch.float64))
    assert edit.new_x is not None and edit.new_x.dtype == torch.float32
    rows = torch.full((1, D), 0.1, dtype=torch.float64)
    both = GraphEdit(n=5, set_ids=torch.tensor([1]), set_x=rows).then(
        GraphEdit(n=5, set_ids=torch.tensor([2]), set_x=rows.half())
    )
    assert both.set_x is not None and both.set_x.dtype == torch.float32


def test_minus_zero_is_zero() -> None:
    """-0.0 equals 0.0, so `between` sees no difference and the fingerprint must not either."""
    graph = graph_of(2, set(), torch.zeros(2, D))
    edit = GraphEdit(n=2, set_ids=torch.tensor([0]), set_x=-torch.zeros(1, D))
    assert GraphEdit.between(graph, graph.apply(edit)).is_empty
    assert graph.apply(edit).fingerprint() == graph.fingerprint()


def test_gradients_pass_through_apply_to_injected_features() -> None:
    rows = torch.randn(2, D, requires_grad=True)
    after = path_graph().apply(GraphEdit(n=5, add=pairs((0, 5)), new_x=rows))
    assert isinstance(after.x, Tensor)
    (grad,) = torch.autograd.grad(after.x.pow(2).sum(), rows)
    torch.testing.assert_close(grad, 2 * rows.detach())


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an edge twice": ({"add": pairs((0, 2), (0, 2))}, r"\[0, 2\] twice"),
    "an edge twice in both directions": ({"add": pairs((0, 2), (2, 0))}, "twice"),
    "a drop twice": ({"drop": pairs((0, 1), (1, 0))}, "twice"),
    "a self-loop": ({"add": pairs((3, 3))}, "node 3 with itself"),
    "a self-loop of an injected node": ({"add": pairs((5, 5)), "new_x": torch.ones(1, D)}, "itself"),
    "an id beyond the nodes": ({"add": pairs((0, 5))}, "names node 5"),
    "an id beyond the injected nodes": ({"add": pairs((0, 6)), "new_x": torch.ones(1, D)}, "names node 6"),
    "a negative id": ({"add": pairs((0, -1))}, "names node -1"),
    "dropping an injected node's edge": ({"drop": pairs((0, 5)), "new_x": torch.ones(1, D)}, "names node 5"),
    "dropping a cut node's edge": ({"drop": pairs((3, 4)), "cut": 1}, "names node 4"),
    "adding and dropping an edge": ({"add": pairs((0, 1)), "drop": pairs((1, 0))}, "both adds and drops"),
    "float pairs": ({"add": torch.ones(2, 1)}, "integer pairs"),
    "boolean pairs": ({"add": torch.tensor([[True], [False]])}, "integer pairs"),
    "complex pairs": ({"add": torch.ones(2, 1, dtype=torch.complex64)}, "integer pairs"),
    "pairs on their side": ({"add": torch.zeros(3, 2, dtype=torch.int64)}, r"\[3, 2\]"),
    "flat pairs": ({"add": torch.tensor([0, 2])}, r"\[2\]"),
    "NaN features": ({"new_x": torch.full((1, D), float("nan"))}, "NaN or infinite"),
    "infinite features": ({"new_x": torch.full((1, D), float("inf"))}, "NaN or infinite"),
    "features that float32 cannot hold": ({"new_x": torch.full((1, D), 1e300, dtype=torch.float64)}, "NaN or infinite"),
    "integer features": ({"new_x": torch.ones(1, D, dtype=torch.int64)}, "float rows"),
    "flat features": ({"new_x": torch.ones(D)}, "float rows"),
    "NaN in a replaced row": (
        {"set_ids": torch.tensor([0]), "set_x": torch.full((1, D), float("nan"))},
        "set_x holds NaN",
    ),
    "ids without rows": ({"set_ids": torch.tensor([0])}, "go together"),
    "rows without ids": ({"set_x": torch.ones(1, D)}, "go together"),
    "more ids than rows": ({"set_ids": torch.tensor([0, 1]), "set_x": torch.ones(1, D)}, "one integer id per row"),
    "a row twice": ({"set_ids": torch.tensor([1, 1]), "set_x": torch.ones(2, D)}, "distinct"),
    "a row of an unknown node": ({"set_ids": torch.tensor([5]), "set_x": torch.ones(1, D)}, "0 to 4"),
    "a row of a cut node": ({"set_ids": torch.tensor([4]), "set_x": torch.ones(1, D), "cut": 1}, "0 to 3"),
    "a mask instead of ids": ({"set_ids": torch.tensor([True, False]), "set_x": torch.ones(2, D)}, "integer id"),
    "more cut than there are": ({"cut": 6}, "cuts 6"),
    "a negative cut": ({"cut": -1}, "cuts -1"),
    "a negative number of nodes": ({"n": -1}, "-1"),
    "too many nodes": ({"n": 2**31}, "2147483647"),
    "too many new nodes": ({"new_x": torch.empty(2**31 - 5, 0)}, "2147483647"),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_impossible_edits_cannot_be_made(fault: str) -> None:
    arguments, words = REFUSED[fault]
    with pytest.raises(DataError, match=words) as refusal:
        GraphEdit(**{"n": 5} | arguments)
    assert "\n" not in str(refusal.value)


UNFIT: dict[str, tuple[GraphEdit, str]] = {
    "adds an existing edge": (GraphEdit(n=5, add=pairs((2, 1))), r"adds edge \[1, 2\].*already"),
    "drops an absent edge": (GraphEdit(n=5, drop=pairs((0, 2))), r"drops edge \[0, 2\].*no such"),
    "other number of nodes": (GraphEdit(n=4), "4 nodes.*5"),
    "other number of features": (GraphEdit(n=5, new_x=torch.ones(1, D + 1)), "4 features.*3"),
    "replaced rows of another width": (GraphEdit(n=5, set_ids=torch.tensor([0]), set_x=torch.ones(1, 1)), "1 features"),
}


@pytest.mark.parametrize("fault", UNFIT)
def test_edits_that_do_not_fit_the_graph_are_refused(fault: str) -> None:
    edit, words = UNFIT[fault]
    with pytest.raises(DataError, match=words):
        path_graph().apply(edit)


def collection() -> Graph:
    """Two graphs: 0 - 1 - 2, and 3 - 4."""
    return graph_of(5, {(0, 1), (1, 2), (3, 4)}, torch.ones(5, D), ptr=[0, 3, 5])


def test_edits_stay_inside_the_graphs_of_a_collection() -> None:
    graph = collection()
    after = graph.apply(GraphEdit(n=5, add=pairs((0, 2)), drop=pairs((3, 4))))
    assert after.ptr is not None and after.ptr.tolist() == [0, 3, 5]
    assert after.adj.edges().T.tolist() == [[0, 1], [0, 2], [1, 2]]
    with pytest.raises(DataError, match=r"joins two graphs.*\[2, 3\]"):
        graph.apply(GraphEdit(n=5, add=pairs((0, 2), (2, 3))))
    with pytest.raises(DataError, match="collection"):
        graph.apply(GraphEdit(n=5, new_x=torch.ones(1, D)))
    with pytest.raises(DataError, match="collection"):
        graph.apply(GraphEdit(n=5, cut=1))


def test_later_edit_must_fit_what_the_earlier_leaves() -> None:
    with pytest.raises(DataError, match="5 nodes.*6"):
        GraphEdit(n=5, new_x=torch.ones(1, D)).then(GraphEdit(n=5))


def test_between_graphs_of_other_width_is_refused() -> None:
    with pytest.raises(DataError, match="3 and 1 features"):
        GraphEdit.between(path_graph(), graph_of(5, set(), torch.ones(5, 1)))


def kddcup_pair(rounded: Tensor) -> tuple[Graph, Graph]:
    """A clean graph, and the attacked one as a competition's file holds it: the original rows in another precision."""
    clean = graph_of(4, {(0, 1), (1, 2), (2, 3)}, torch.linspace(-1.7, 1.6, 12).view(4, 3))
    edges = {(0, 1), (1, 2), (2, 3), (0, 4), (3, 4), (4, 5)}
    return clean, graph_of(6, edges, torch.cat([rounded, torch.full((2, 3), 2.0)]))


def test_rounded_original_rows_are_unchanged_within_a_named_tolerance_only() -> None:
    clean = kddcup_pair(torch.zeros(4, 3))[0]
    assert isinstance(clean.x, Tensor)
    _, attacked = kddcup_pair(clean.x.half().float())
    edit = GraphEdit.between(clean, attacked, tolerance=1e-3)
    assert edit.set_ids is None and edit.num_new == 2 and edit.add.T.tolist() == [[0, 4], [3, 4], [4, 5]]
    exact = GraphEdit.between(clean, attacked)
    assert exact.set_ids is not None and exact.set_ids.tolist() == [0, 1, 2, 3]
    moved = clean.x.half().float()
    moved[2, 1] += 0.0011
    found = GraphEdit.between(clean, kddcup_pair(moved)[1], tolerance=1e-3)
    assert found.set_ids is not None and found.set_ids.tolist() == [2]
    assert found.set_x is not None and torch.equal(found.set_x[0], moved[2])


def test_a_tolerance_forgives_no_edge_no_weight_and_no_nan() -> None:
    clean = kddcup_pair(torch.zeros(4, 3))[0]
    missing = graph_of(4, {(0, 1), (1, 2)}, clean.x)  # type: ignore[arg-type]
    assert GraphEdit.between(clean, missing, tolerance=9.0).drop.T.tolist() == [[2, 3]]
    with pytest.raises(DataError, match="weights"):
        GraphEdit.between(weighted(1.0, 1.0), weighted(1.0, 1.0 + 1e-6), tolerance=9.0)
    holed = Graph(clean.adj, torch.full((4, 3), torch.nan))
    with pytest.raises(DataError, match="NaN"):
        GraphEdit.between(clean, holed, tolerance=9.0)


@pytest.mark.parametrize("tolerance", [-1e-9, float("nan"), float("inf")])
def test_a_tolerance_that_is_no_number_is_refused(tolerance: float) -> None:
    with pytest.raises(DataError, match="tolerance is .*, but a finite number"):
        GraphEdit.between(path_graph(), path_graph(), tolerance=tolerance)


def weighted(*weights: float) -> Graph:
    edges = np.array([[0, 1], [1, 2]])
    return Graph.build(adjacency_from_edges(edges, 3, values=np.array(weights))[0], torch.ones(3, D))[0]


def test_weights_survive_edits_and_are_never_lost_in_silence() -> None:
    graph = weighted(2.0, 3.0)
    edit = GraphEdit(n=3, add=pairs((0, 2)))
    after = graph.apply(edit)
    assert after.adj.values is not None
    assert after.adj.values.tolist() == [2.0, 1.0, 2.0, 3.0, 1.0, 3.0]
    assert equal(GraphEdit.between(graph, after), edit)
    assert after.apply(edit.inverse(graph)).fingerprint() == graph.fingerprint()
    with pytest.raises(DataError, match="weights"):
        GraphEdit.between(weighted(2.0, 3.0), weighted(2.0, 4.0))
    with pytest.raises(DataError, match="weights"):
        GraphEdit(n=3, drop=pairs((0, 1))).inverse(graph)


def stored(**changes: np.ndarray) -> dict[str, np.ndarray]:
    meta = json.dumps({"format": 1, "n": 5, "cut": 0}).encode()
    arrays = {
        "add": np.array([[0], [2]]),
        "drop": np.zeros((2, 0), dtype=np.int64),
        "new_x": np.zeros((0, 0), dtype=np.float32),
        "set_ids": np.zeros(0, dtype=np.int64),
        "set_x": np.zeros((0, 0), dtype=np.float32),
        "meta": np.frombuffer(meta, dtype=np.uint8),
    }
    return arrays | changes


def text(value: Any) -> np.ndarray:
    raw = value if isinstance(value, str) else json.dumps(value)
    return np.frombuffer(raw.encode(), dtype=np.uint8)


HOSTILE_FILES: dict[str, dict[str, np.ndarray]] = {
    "float edges": {"add": np.array([[0.0], [2.0]])},
    "edges on their side": {"add": np.zeros((3, 2), dtype=np.int64)},
    "uint64 edge that wraps around": {"add": np.array([[0], [2**64 - 1]], dtype=np.uint64)},
    "edge out of range": {"add": np.array([[0], [5]])},
    "an edge twice": {"add": np.array([[0, 2], [2, 0]])},
    "a self-loop": {"add": np.array([[1], [1]])},
    "NaN features": {"new_x": np.array([[np.nan]], dtype=np.float32)},
    "features that float32 cannot hold": {"new_x": np.array([[1e300]])},
    "complex features": {"new_x": np.array([[1j]])},
    "integer features": {"new_x": np.ones((1, 1), dtype=np.int64)},
    "flat features": {"new_x": np.ones(3, dtype=np.float32)},
    "ids without rows": {"set_ids": np.array([1])},
    "rows without ids": {"set_x": np.ones((1, 3), dtype=np.float32)},
    "float ids": {"set_ids": np.array([1.0]), "set_x": np.ones((1, 3), dtype=np.float32)},
    "meta is no JSON": {"meta": text("n=5")},
    "meta is a list": {"meta": text([1, 5, 0])},
    "meta is nested without end": {"meta": text("[" * 100_000)},
    "meta is not UTF-8": {"meta": np.array([0xFF, 0xFE], dtype=np.uint8)},
    "meta is a float array": {"meta": np.ones(3)},
    "meta has no n": {"meta": text({"format": 1, "cut": 0})},
    "n is a float": {"meta": text({"format": 1, "n": 5.0, "cut": 0})},
    "n is true": {"meta": text({"format": 1, "n": True, "cut": 0})},
    "n is text": {"meta": text({"format": 1, "n": "5", "cut": 0})},
    "n is negative": {"meta": text({"format": 1, "n": -5, "cut": 0})},
    "n is huge": {"meta": text({"format": 1, "n": 10**30, "cut": 0})},
    "cut is larger than n": {"meta": text({"format": 1, "n": 5, "cut": 6})},
    "cut is negative": {"meta": text({"format": 1, "n": 5, "cut": -1})},
    "format of the future": {"meta": text({"format": 2, "n": 5, "cut": 0})},
    "labels in the file": {"labels": np.zeros(5)},
}


@pytest.mark.parametrize("fault", HOSTILE_FILES)
def test_hostile_edit_files_are_refused(fault: str, tmp_path: Path) -> None:
    path = tmp_path / "edit.npz"
    np.savez(path, **stored(**HOSTILE_FILES[fault]))
    with pytest.raises(DataError, match=r"edit\.npz") as refusal, np.errstate(over="ignore"):
        GraphEdit.load(path)
    assert len(str(refusal.value)) < 600 and "\n" not in str(refusal.value)


def test_intact_edit_file_is_read_whoever_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "edit.npz"
    for save in (np.savez, np.savez_compressed):
        save(path, **stored())
        assert GraphEdit.load(path).add.tolist() == [[0], [2]]


@pytest.mark.parametrize("name", ["add", "drop", "new_x", "set_ids", "set_x", "meta"])
def test_missing_array_is_named(name: str, tmp_path: Path) -> None:
    arrays = stored()
    del arrays[name]
    np.savez(tmp_path / "edit.npz", **arrays)
    with pytest.raises(DataError, match=f"no array '{name}'"):
        GraphEdit.load(tmp_path / "edit.npz")


def test_meta_cannot_hold_nan_or_replace_the_layout(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        GraphEdit(n=5).save(tmp_path / "edit.npz", score=float("nan"))
    assert os.listdir(tmp_path) == []
    GraphEdit(n=5).save(tmp_path / "edit.npz", score=0.5)
    assert GraphEdit.load_with_meta(tmp_path / "edit.npz")[1] == {"format": 1, "n": 5, "cut": 0, "score": 0.5}
