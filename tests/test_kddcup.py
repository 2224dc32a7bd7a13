"""The 29 submissions to KDD Cup 2020 under the competition's limits, on a generated graph of Aminer's size."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix, load_npz

from grb.errors import BudgetError, DataError
from grb.graph import CSR, Graph, GraphEdit, Pattern, adjacency_from_edges
from grb.graph.convert import injection_from_rows
from grb.graph.memory import peak_megabytes
from grb.threat import Injection
from helpers import find_dataset, needs_kddcup

LIMITS = Injection(nodes=500, edges_per_node=100, feature_range=(-2.0, 2.0))
WEIGHTED = {"DeepBlueAI": "1e+10", "cccn": "9", "sc": "2"}
NODES, EDGES, FEATURES = 659_574, 2_878_577, 100

FOLDER = find_dataset("KDDCup2020")
ENTRIES: list[dict[str, Any]] = [] if FOLDER is None else json.loads((FOLDER / "check.json").read_text())
NAMES = [entry["name"] for entry in ENTRIES]


@cache
def aminer_sized() -> Graph:
    """Random edges; the features are a sparse matrix without an entry, so that memory is O(edges)."""
    pairs = np.random.default_rng(0).integers(0, NODES, (2, EDGES))
    pairs = np.unique(np.sort(pairs[:, pairs[0] != pairs[1]], axis=0), axis=1)
    empty = Pattern(torch.zeros(NODES + 1, dtype=torch.int32), torch.empty(0, dtype=torch.int32), FEATURES)
    return Graph(adjacency_from_edges(pairs, NODES)[0], CSR(empty, torch.empty(0)))


def submission(name: str) -> tuple[csr_matrix, Any]:
    assert FOLDER is not None
    path = Path(FOLDER) / f"{name}.npz"
    with np.load(path, allow_pickle=False) as arrays:
        return load_npz(path), arrays["features"]


@needs_kddcup
@pytest.mark.parametrize("entry", ENTRIES, ids=NAMES)
def test_the_submissions_pass_but_for_those_with_edge_weights(entry: dict[str, Any]) -> None:
    name = entry["name"]
    adj, x = submission(name)
    if name in WEIGHTED:
        with pytest.raises(DataError, match="injected edges have a weight other than 1") as refusal:
            injection_from_rows(adj, x)
        sentence = str(refusal.value)
        assert f"largest: {WEIGHTED[name]})" in sentence and "\n" not in sentence and ". " not in sentence
        return
    edit = injection_from_rows(adj, x)
    used = LIMITS.check(aminer_sized(), edit)
    assert used["nodes"] == entry["n"] and used["most_edges_per_node"] == entry["max_deg"]
    assert used["edges"] == entry["nnz"] - entry["inj_inj"] // 2


@needs_kddcup
def test_three_of_them_have_edge_weights_and_26_pass() -> None:
    assert len(NAMES) == 29 and set(WEIGHTED) < set(NAMES)


@needs_kddcup
def test_every_limit_of_the_competition_is_exact() -> None:
    """The fullest submission uses all of it: one node, edge or step of float32 less is too little for it."""
    edit = injection_from_rows(*submission("ADVERSARIES"))
    below = float(np.nextafter(np.float32(2), np.float32(0)))
    for limits in (Injection(499, 100, (-2, 2)), Injection(500, 99, (-2, 2)), Injection(500, 100, (-2, below))):
        with pytest.raises(BudgetError, match="but the threat model allows"):
            limits.check(aminer_sized(), edit)


@needs_kddcup
def test_memory_is_proportional_to_the_edges() -> None:
    """Edges in both directions are 46 MB of int64; the dense features of the graph alone would be 264 MB."""
    graph, edit = aminer_sized(), injection_from_rows(*submission("SPEIT"))
    before = peak_megabytes()
    LIMITS.check(graph, edit)
    assert isinstance(edit, GraphEdit) and edit.nbytes < 2_000_000 and peak_megabytes() - before < 50
