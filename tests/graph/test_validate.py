"""Validators: what is repaired is repaired right, and what is hostile is refused before any tensor is built."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse as sp

from grb.errors import DataError
from grb.graph import Adjacency, Graph, adjacency_from_csr, adjacency_from_edges
from grb.graph.validate import check_features, check_ids, check_labels, check_ptr

Entry = tuple[int, int, float]
WEIGHTS = st.sampled_from([0.0, 0.25, 1.0, 1.0, 1.0, 2.0])


@st.composite
def raw_entries(draw: st.DrawFn) -> tuple[int, list[Entry], bool]:
    """Entries as a careless file has them: loops, duplicates, one direction, zeros, two weights for an edge."""
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    weighted = draw(st.booleans())
    one = st.tuples(node, node, WEIGHTS if weighted else st.just(1.0))
    entries = draw(st.lists(one, max_size=14))
    if draw(st.booleans()):  # often enough both directions are there
        entries += [(v, u, w) for u, v, w in entries]
    return n, entries, weighted


def reference(n: int, entries: list[Entry]) -> np.ndarray:
    """The symmetric simple adjacency by brute force: the largest weight of either direction, no loops."""
    full = np.zeros((n, n))
    for u, v, weight in entries:
        if u != v:
            full[u, v] = max(full[u, v], weight)
            full[v, u] = max(full[v, u], weight)
    return full


def needs_mending(entries: list[Entry]) -> bool:
    stored = {(u, v): weight for u, v, weight in entries}
    return (
        len(stored) < len(entries)
        or any(u == v or weight == 0 for u, v, weight in entries)
        or any(stored.get((v, u)) != weight for (u, v), weight in stored.items())
    )


def csr_arrays(n: int, entries: list[Entry]) -> tuple[list[int], list[int], list[float]]:
    rows: list[list[Entry]] = [[entry for entry in entries if entry[0] == row] for row in range(n)]
    indptr = [0, *np.cumsum([len(row) for row in rows]).tolist()]
    flat = [entry for row in rows for entry in row]
    return indptr, [entry[1] for entry in flat], [entry[2] for entry in flat]


def dense(adj: Adjacency) -> np.ndarray:
    full = np.zeros((adj.n, adj.n))
    values = np.ones(adj.pattern.entries) if adj.values is None else adj.values.numpy()
    full[adj.pattern.row_ids.numpy(), adj.pattern.indices.numpy()] = values
    return full


def check_invariants(adj: Adjacency) -> None:
    indptr, indices = adj.pattern.indptr.tolist(), adj.pattern.indices.tolist()
    assert len(indptr) == adj.n + 1 and indptr[0] == 0 and indptr[-1] == len(indices)
    for row in range(adj.n):
        columns = indices[indptr[row] : indptr[row + 1]]
        assert columns == sorted(set(columns)) and row not in columns
    full = dense(adj)
    assert (full == full.T).all()
    assert adj.pattern.symmetric and adj.pattern.indices.dtype == adj.pattern.indptr.dtype == torch.int32
    if adj.values is not None:
        assert adj.values.dtype == torch.float32 and not (adj.values == 1).all() and (adj.values > 0).all()


@given(raw_entries())
def test_canonicalise_gives_the_symmetric_simple_adjacency(raw: tuple[int, list[Entry], bool]) -> None:
    n, entries, weighted = raw
    indptr, indices, values = csr_arrays(n, entries)
    adj, notes = adjacency_from_csr(indptr, indices, values if weighted else None, (n, n), mode="canonicalise")
    assert (dense(adj) == reference(n, entries)).all()
    check_invariants(adj)
    assert bool(notes) == needs_mending(entries)
    assert adj.num_edges == (reference(n, entries) > 0).sum() // 2


@given(raw_entries())
def test_edge_lists_give_the_same_adjacency(raw: tuple[int, list[Entry], bool]) -> None:
    n, entries, weighted = raw
    edges = np.array([entry[:2] for entry in entries], dtype=np.int64).reshape(-1, 2).T
    values = np.array([entry[2] for entry in entries]) if weighted else None
    for directed in (False, True):
        adj, _ = adjacency_from_edges(edges, n, values=values, mode="canonicalise", directed=directed)
        assert (dense(adj) == reference(n, entries)).all()
        check_invariants(adj)


@given(raw_entries())
def test_strict_refuses_exactly_what_had_to_be_mended(raw: tuple[int, list[Entry], bool]) -> None:
    n, entries, weighted = raw
    indptr, indices, values = csr_arrays(n, entries)
    arguments = (indptr, indices, values if weighted else None, (n, n))
    if needs_mending(entries):
        with pytest.raises(DataError, match="canonicalise"):
            adjacency_from_csr(*arguments)
    else:
        adj, notes = adjacency_from_csr(*arguments)
        assert notes == [] and (dense(adj) == reference(n, entries)).all()


@given(raw_entries())
def test_a_canonical_adjacency_passes_strict_unchanged(raw: tuple[int, list[Entry], bool]) -> None:
    n, entries, weighted = raw
    indptr, indices, values = csr_arrays(n, entries)
    once, _ = adjacency_from_csr(indptr, indices, values if weighted else None, (n, n), mode="canonicalise")
    twice, notes = adjacency_from_csr(
        once.pattern.indptr.numpy(), once.pattern.indices.numpy(), once.values, (n, n), mode="strict"
    )
    assert notes == []
    assert torch.equal(once.pattern.indices, twice.pattern.indices)
    assert torch.equal(once.pattern.indptr, twice.pattern.indptr)
    assert (once.values is None) == (twice.values is None)


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([(0, 0, 1.0)], "1 self-loops dropped"),
        ([(0, 1, 1.0), (1, 0, 1.0), (0, 1, 1.0)], "1 duplicate entries merged"),
        ([(0, 1, 1.0)], "1 edges without their reverse made undirected"),
        ([(0, 1, 0.0), (1, 0, 0.0)], "2 stored zeros dropped"),
        ([(0, 1, 2.0), (1, 0, 3.0)], "1 edges with two different weights given the larger"),
    ],
)
def test_mending_is_counted(entries: list[Entry], said: str) -> None:
    indptr, indices, values = csr_arrays(3, entries)
    _, notes = adjacency_from_csr(indptr, indices, values, (3, 3), mode="canonicalise")
    assert len(notes) == 1 and said in notes[0]
    with pytest.raises(DataError, match=said.split(" ", 1)[0]):
        adjacency_from_csr(indptr, indices, values, (3, 3))


def test_weights_that_end_up_all_one_are_none() -> None:
    """Equal content has one form, whatever the file stored beside it."""
    plain = adjacency_from_csr([0, 1, 2], [1, 0], None, (2, 2))[0]
    looped = adjacency_from_csr([0, 2, 3], [0, 1, 0], [5.0, 1.0, 1.0], (2, 2), mode="canonicalise")[0]
    assert plain.values is None and looped.values is None


# a path of three nodes, and every way to break its arrays
GOOD: dict[str, Any] = {"indptr": [0, 1, 3, 4], "indices": [1, 0, 2, 1], "values": None, "shape": (3, 3)}
HOSTILE: dict[str, dict[str, Any]] = {
    "index beyond the matrix": {"indices": [1, 0, 1_000_000, 1]},
    "index equal to n": {"indices": [1, 0, 3, 1]},
    "negative index": {"indices": [1, 0, -1, 1]},
    "most negative index": {"indices": [1, 0, np.iinfo(np.int64).min, 1]},
    "uint64 index that wraps around": {"indices": np.array([1, 0, 2**64 - 1, 1], dtype=np.uint64)},
    "uint64 index of 2**63": {"indices": np.array([1, 0, 2**63, 1], dtype=np.uint64)},
    "Python integer beyond 64 bits": {"indices": [1, 0, 2**70, 1]},
    "float indices": {"indices": [1.0, 0.0, 2.0, 1.0]},
    "NaN index": {"indices": [1.0, 0.0, float("nan"), 1.0]},
    "boolean indices": {"indices": [True, False, True, True]},
    "text indices": {"indices": ["1", "0", "2", "1"]},
    "object indices": {"indices": np.array([1, 0, 2, 1], dtype=object)},
    "complex indices": {"indices": np.array([1, 0, 2, 1], dtype=complex)},
    "two-dimensional indices": {"indices": [[1, 0], [2, 1]]},
    "scalar indices": {"indices": 1},
    "indptr falls": {"indptr": [0, 3, 1, 4]},
    "indptr falls below zero": {"indptr": [0, -2, 3, 4]},
    "indptr does not start at zero": {"indptr": [1, 1, 3, 4]},
    "indptr ends too early": {"indptr": [0, 1, 3, 3]},
    "indptr ends too late": {"indptr": [0, 1, 3, 5]},
    "indptr is huge inside": {"indptr": [0, 2**62, 3, 4]},
    "indptr is too short": {"indptr": [0, 1, 4]},
    "indptr is too long": {"indptr": [0, 1, 3, 4, 4]},
    "indptr is empty": {"indptr": []},
    "float indptr": {"indptr": [0.0, 1.0, 3.0, 4.0]},
    "uint64 indptr": {"indptr": np.array([0, 2**63, 3, 4], dtype=np.uint64)},
    "NaN weight": {"values": [1.0, 1.0, float("nan"), 1.0]},
    "infinite weight": {"values": [1.0, 1.0, float("inf"), float("inf")]},
    "weight that float32 cannot hold": {"values": [1.0, 1.0, 1e300, 1e300]},
    "negative weight": {"values": [1.0, 1.0, -2.0, -2.0]},
    "complex weight": {"values": [1j, 1j, 1j, 1j]},
    "text weight": {"values": ["1", "1", "1", "1"]},
    "object weight": {"values": np.array([1, 1, 1, None], dtype=object)},
    "too few weights": {"values": [1.0]},
    "two-dimensional weights": {"values": [[1.0, 1.0, 1.0, 1.0]]},
    "not square": {"shape": (3, 4)},
    "one-dimensional shape": {"shape": (3,)},
    "three-dimensional shape": {"shape": (3, 3, 3)},
    "empty shape": {"shape": ()},
    "negative shape": {"shape": (-1, -1)},
    "huge shape": {"shape": (2**62, 2**62)},
    "shape beyond 64 bits": {"shape": (2**80, 2**80)},
    "shape of 2**31": {"shape": (2**31, 2**31)},
    "float shape": {"shape": (3.5, 3.5)},
    "NaN shape": {"shape": (float("nan"), float("nan"))},
    "text shape": {"shape": "33"},
}


@pytest.mark.parametrize("mode", ["strict", "canonicalise"])
@pytest.mark.parametrize("fault", HOSTILE)
def test_hostile_csr_is_refused_in_both_modes(fault: str, mode: Any) -> None:
    arguments = GOOD | HOSTILE[fault]
    with pytest.raises(DataError) as refusal:
        adjacency_from_csr(*arguments.values(), mode=mode)
    assert "\n" not in str(refusal.value)


def test_the_intact_csr_is_accepted() -> None:
    adj, notes = adjacency_from_csr(*GOOD.values())
    assert notes == [] and adj.edges().tolist() == [[0, 1], [1, 2]]


def test_weights_below_the_smallest_float_are_stored_zeros() -> None:
    values = [1.0, 1.0, 1e-60, 1e-60]
    with pytest.raises(DataError, match="2 stored zeros"):
        adjacency_from_csr([0, 1, 3, 4], [1, 0, 2, 1], values, (3, 3))
    adj, _ = adjacency_from_csr([0, 1, 3, 4], [1, 0, 2, 1], values, (3, 3), mode="canonicalise")
    assert adj.edges().tolist() == [[0], [1]]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, ">i4", ">i8"])
def test_every_integer_type_is_understood(dtype: Any) -> None:
    adj, _ = adjacency_from_csr(np.array([0, 1, 3, 4], dtype), np.array([1, 0, 2, 1], dtype), None, (3, 3))
    assert adj.edges().tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("n", [-1, 2**31, 2**40, 2**62, 2.5, float("nan"), "3", None])
def test_edge_list_with_an_impossible_number_of_nodes(n: Any) -> None:
    with pytest.raises(DataError):
        adjacency_from_edges(np.zeros((2, 0), dtype=np.int64), n)


@pytest.mark.parametrize(
    "edges",
    [[[0, 1]], [[0], [1], [2]], [0, 1], [[0.0], [1.0]], [[0], [3]], [[-1], [0]], [[True], [False]], [["0"], ["1"]]],
)
def test_hostile_edge_lists_are_refused(edges: Any) -> None:
    for mode in ("strict", "canonicalise"):
        with pytest.raises(DataError):
            adjacency_from_edges(edges, 3, mode=mode)  # type: ignore[arg-type]


def test_unknown_mode_is_refused() -> None:
    with pytest.raises(DataError, match="strict"):
        adjacency_from_edges([[0], [1]], 2, mode="lenient")  # type: ignore[arg-type]


def test_graph_without_nodes_and_without_edges() -> None:
    assert adjacency_from_csr([0], [], None, (0, 0))[0].n == 0
    assert adjacency_from_edges(np.zeros((2, 0)), 4)[0].degrees.tolist() == [0, 0, 0, 0]
    assert adjacency_from_csr([0, 0, 0], [], [], (2, 2))[0].num_edges == 0


SEGFAULT = """
import numpy as np
from scipy.sparse import csr_matrix
from grb.errors import DataError
from grb.graph import Graph, adjacency_from_csr

bad = csr_matrix((3, 3))
bad.indptr, bad.indices, bad.data = np.array([0, 1, 1, 1]), np.array([1_000_000_000]), np.ones(1)
for mode in ("strict", "canonicalise"):
    try:
        Graph.build(bad, np.ones((3, 2)), mode=mode)
    except DataError as error:
        print("refused:", error)
"""


def test_index_out_of_range_is_refused_and_not_a_crash() -> None:
    done = subprocess.run([sys.executable, "-c", SEGFAULT], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused: an edge names node 1000000000, but the graph has nodes 0 to 2") == 2


def test_inputs_are_not_changed_and_not_shared() -> None:
    indptr, indices, values = np.array([0, 1, 2]), np.array([1, 0]), np.array([2.0, 2.0], dtype=np.float32)
    x = np.ones((2, 3), dtype=np.float32)
    y, ids, ptr = np.array([0, 1]), np.array([1, 0]), np.array([0, 2])
    adj, _ = adjacency_from_csr(indptr, indices, values, (2, 2))
    made = [adj.pattern.indptr, adj.pattern.indices, adj.values, check_features(x, 2), check_labels(y, 2)]
    made += [check_ids(ids, 2, "ids"), check_ptr(ptr, 2), check_features(torch.from_numpy(x), 2)]
    before = [tensor.clone() for tensor in made if tensor is not None]
    for array in (indptr, indices, values, x, y, ids, ptr):
        array += 7
    assert all(torch.equal(a, b) for a, b in zip(before, [t for t in made if t is not None], strict=True))


def refuses(check: Callable[[], Any], words: str) -> None:
    with pytest.raises(DataError, match=words) as refusal:
        check()
    assert "\n" not in str(refusal.value)


def test_features() -> None:
    assert check_features([[1, 2], [3, 4]], 2).dtype == torch.float32
    assert check_features(np.ones((2, 3), dtype=">f8"), 2).tolist() == [[1.0] * 3] * 2
    assert check_features(np.ones((4, 2), order="F")[::2], 2).shape == (2, 2)
    refuses(lambda: check_features(np.ones((3, 2)), 2), r"\[3, 2\].*\[2, d\]")
    refuses(lambda: check_features(np.ones(2), 2), r"\[2\]")
    refuses(lambda: check_features([["a"], ["b"]], 2), "real numbers")
    refuses(lambda: check_features(np.ones((2, 1), dtype=complex), 2), "complex")
    refuses(lambda: check_features(np.array([[1, None], [2, 3]], dtype=object), 2), "object")
    refuses(lambda: check_features(np.array([[0.0, 1.0], [2.0, np.nan]]), 2), "feature 1 of node 1 is nan")
    refuses(lambda: check_features(np.array([[0.0, -np.inf], [2.0, 3.0]]), 2), "feature 1 of node 0 is -inf")
    with np.errstate(over="ignore"):
        refuses(lambda: check_features(np.array([[1e300]]), 1), "inf")


def test_labels() -> None:
    assert check_labels([0, -1, 2], 3).tolist() == [0, -1, 2]
    assert check_labels([[0, 1], [1, np.nan]], 2).dtype == torch.float32
    refuses(lambda: check_labels([0, 1], 3), r"\[2\].*\[3\]")
    refuses(lambda: check_labels([0.0, 1.5], 2), "integers")
    refuses(lambda: check_labels([0, -2], 2), "-2")
    refuses(lambda: check_labels([0, 7], 2, classes=7), "0 to 6")
    refuses(lambda: check_labels([[0, 2], [1, 0]], 2), "0, 1 or missing")
    refuses(lambda: check_labels(np.zeros((2, 1, 1)), 2), "shape")
    refuses(lambda: check_labels(np.array([0, 2**63], dtype=np.uint64), 2), "too large")


def test_ids() -> None:
    assert check_ids([2, 0], 3, "the set").tolist() == [2, 0]
    assert check_ids([], 0, "the set").shape == (0,)
    refuses(lambda: check_ids([0, 3], 3, "the set"), "the set names node 3")
    refuses(lambda: check_ids([-1], 3, "the set"), "-1")
    refuses(lambda: check_ids([1, 1], 3, "the set"), "twice")
    refuses(lambda: check_ids([0.0], 3, "the set"), "integers")
    refuses(lambda: check_ids([[0]], 3, "the set"), "list of node ids")


def test_boundaries() -> None:
    assert check_ptr([0, 2, 2, 5], 5).tolist() == [0, 2, 2, 5]
    for ptr in ([0], [1, 5], [0, 4], [0, 3, 2, 5], [], [0.0, 5.0], [[0, 5]]):
        refuses(lambda ptr=ptr: check_ptr(ptr, 5), "ptr")


def test_graph_is_built_from_any_scipy_format() -> None:
    matrix = sp.coo_matrix(([1.0, 1.0], ([0, 1], [1, 0])), shape=(3, 3))
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr"):
        graph, notes = Graph.build(matrix.asformat(form), np.ones((3, 1)))
        assert notes == [] and graph.adj.edges().tolist() == [[0], [1]]
    with pytest.raises(DataError, match="ndarray"):
        Graph.build(np.zeros((3, 3)), np.ones((3, 1)))
