"""Pools and edits of others whose files lie: one sentence, no traceback, no memory."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from grb.dataset.pool import read_clean, read_edit, read_pool
from grb.errors import DataError, GRBError

N, D = 20, 5
WRONG: tuple[Any, ...] = (
    *(np.array(np.nan), np.array([np.nan, np.nan]), np.array([np.inf, 1]), np.array(3), np.array([])),
    *(np.array([N, 10**10]), np.array([10**12, 10**12]), np.array([-1, D]), np.array([2**64 - 1] * 2, dtype=np.uint64)),
    *(np.array([-5] * N), np.array(["a", "b"]), np.array([True] * N), np.array([1 + 2j] * N), np.zeros((N, N))),
    *(np.array([np.nan] * N), np.array([1e300] * N), np.array(["2020-01-01"], dtype="M8[D]")),
)


def matrix(prefix: str, value: Any) -> dict[str, Any]:
    made = sp.csr_matrix(value)
    parts = {"data": made.data, "indices": made.indices, "indptr": made.indptr, "shape": np.array(made.shape)}
    return {f"{prefix}{name}": part for name, part in parts.items()}


def parts() -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A clean graph, an attacked adjacency and rows of injected nodes."""
    upper = np.triu(np.random.default_rng(0).random((N, N)) < 0.4, 1)
    adj = (upper | upper.T).astype(np.float32)
    clean = matrix("adj_", adj) | matrix("attr_", np.eye(N, D, dtype=np.float32)) | {"labels": np.arange(N) % 3}
    flipped = adj.copy()
    flipped[0, 1] = flipped[1, 0] = 1 - flipped[0, 1]
    rows = sp.csr_matrix((np.ones(2), ([0, 1], [3, 4])), shape=(2, N + 2))
    return clean, matrix("", flipped), matrix("", rows) | {"features": np.zeros((2, D), dtype=np.float32)}


def pool(folder: Path, **lists: Any) -> Path:
    clean, attacked, _ = parts()
    for name in ("clean", "splits", "nettack"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    np.savez(folder / "clean" / "g.npz", **clean)
    np.savez(folder / "nettack" / "g_nettack_adj_1.0.npz", **attacked)
    split = {"idx_train": [0, 1, 2, 3], "idx_val": [4, 5], "idx_test": [6, 7, 8, 9]}
    split |= {name: ids for name, ids in lists.items() if name in split}
    (folder / "splits" / "g_prognn_splits.json").write_text(json.dumps(split))
    targets = {"attacked_test_nodes": lists.get("targets", [6, 7])}
    (folder / "nettack" / "g_nettacked_nodes.json").write_text(json.dumps(targets))
    return folder


def test_arrays_that_lie_are_refused_in_one_sentence(tmp_path: Path) -> None:
    clean, attacked, rows = parts()
    np.savez(tmp_path / "clean.npz", **clean)
    graph = read_clean(tmp_path / "clean.npz").graph
    rng, refused = random.Random(0), 0
    for number in range(300):
        made = dict((clean, attacked, rows)[number % 3])
        for _ in range(rng.choice([1, 1, 2])):
            name = rng.choice(list(made))
            if rng.random() < 0.15 and len(made) > 1:
                del made[name]
            else:
                made[name] = rng.choice(WRONG)
        np.savez(tmp_path / "file.npz", **made)
        try:
            read_clean(tmp_path / "file.npz") if number % 3 == 0 else read_edit(tmp_path / "file.npz", graph)
        except GRBError as error:
            assert "\n" not in str(error) and len(str(error)) < 500
            refused += 1
    assert refused > 200


@pytest.mark.parametrize("name", ["idx_train", "idx_test", "targets"])
@pytest.mark.parametrize("ids", [[10**400], [-1], [N], [10**12], [True], [1.5], [None], "x", None, [[1]]])
def test_ids_outside_of_the_graph_are_refused(tmp_path: Path, name: str, ids: Any) -> None:
    """A negative id would count another node from the end, and nobody would see it."""
    with pytest.raises(DataError):
        read_pool(pool(tmp_path, **{name: ids}), "g")


def test_a_sound_pool_is_read(tmp_path: Path) -> None:
    found = read_pool(pool(tmp_path), "g")
    assert [graph.flips for graph in found.graphs] == [1] and found.graphs[0].targets.tolist() == [6, 7]  # type: ignore[union-attr]


def test_features_that_would_take_terabytes_are_refused(tmp_path: Path) -> None:
    """A star of 100,000 nodes without features would get one of its own for each."""
    n = 100_000
    star = sp.csr_matrix((np.ones(n - 1), (np.zeros(n - 1, dtype=int), np.arange(1, n))), shape=(n, n))
    np.savez_compressed(tmp_path / "star.npz", **matrix("adj_", star), labels=np.zeros(n, dtype=int))
    with pytest.raises(DataError, match="bytes of memory"):
        read_clean(tmp_path / "star.npz")
