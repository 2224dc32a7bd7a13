"""Pools of attacked graphs: those of others by the counts that are published with them, and small ones made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from grb.dataset import Dataset, load_dataset
from grb.dataset.pool import read_adjacency, read_clean, read_edit, read_names, read_pool, read_split
from grb.errors import DataError
from grb.graph import GraphEdit
from grb.graph.convert import to_scipy
from helpers import find_dataset

FOLDER = find_dataset("Perturbed/ProGNN")
needs_prognn = pytest.mark.skipif(
    FOLDER is None, reason="needs Pro-GNN's graphs: no root of GRB_DATA holds Perturbed/ProGNN"
)


@needs_prognn
@pytest.mark.parametrize("name", ["cora", "citeseer", "polblogs"])
def test_flips_of_others_are_counted_exactly(name: str) -> None:
    assert FOLDER is not None
    counts = json.loads((FOLDER / "check.json").read_text())
    pool = read_pool(FOLDER, name)
    assert not pool.refused and len(pool.graphs) == 10
    for graph in pool.graphs:
        known = counts[f"{graph.name}.npz"]
        assert (graph.flips, graph.edit.add.shape[1]) == (known["flips"], known["added"])
        assert pool.dataset.graph.num_edges == known["clean_E"] and pool.dataset.graph.n == known["shape"]
        if graph.attack == "meta":
            assert graph.rate is not None and graph.flips == int(graph.rate * known["clean_E"] + 1e-9)
        assert (graph.targets is not None) == (graph.attack == "nettack")


@needs_prognn
def test_flips_of_cora_ml_are_counted_against_the_graph_of_another_file() -> None:
    assert FOLDER is not None
    counts = json.loads((FOLDER / "check.json").read_text())
    other = find_dataset("Certificates")
    if other is None:
        pytest.skip("needs cora_ml: no root of GRB_DATA holds Certificates")
    with np.load(other / "cora_ml_binary_lcc.npz", allow_pickle=False) as arrays:
        edges, count = arrays["A"], len(arrays["y"])
    adj = sp.csr_matrix((np.ones(edges.shape[1]), edges), shape=(count, count))
    clean = Dataset.from_arrays(adj, np.ones((count, 1)), np.zeros(count, dtype=np.int64))
    for rate in ("0.05", "0.1", "0.15", "0.2", "0.25"):
        edit, _ = read_adjacency(FOLDER / "meta" / f"cora_ml_meta_adj_{rate}.npz", clean.graph)
        known = counts[f"cora_ml_meta_adj_{rate}.npz"]
        assert edit.add.shape[1] + edit.drop.shape[1] == known["flips"] and edit.add.shape[1] == known["added"]


@needs_prognn
@pytest.mark.skipif(find_dataset("Planetoid") is None, reason="needs PubMed: no root of GRB_DATA holds Planetoid")
def test_flips_of_pubmed_are_counted_against_planetoid() -> None:
    """Its clean graph is not in the pool; that of Planetoid has its 44,324 edges, of which one attacked file drops five."""
    assert FOLDER is not None
    clean = load_dataset("planetoid-pubmed").graph
    files = [(f"meta/pubmed_meta_adj_{rate}.npz", int(rate * 44_324)) for rate in (0.05, 0.1, 0.15, 0.2, 0.25)]
    for file, flips in [*files, ("nettack/pubmed_nettack_adj_1.0.npz", 186)]:
        edit, _ = read_adjacency(FOLDER / file, clean)
        assert edit.add.shape[1] + edit.drop.shape[1] == flips and edit.drop.shape[1] == (5 if "0.25" in file else 0)


def made_pool(folder: Path) -> Path:
    """Two components, the larger of 5 nodes; an attacked graph of it with one edge more and one less."""
    adj = sp.lil_matrix((8, 8))
    for u, v in [(1, 2), (2, 3), (3, 4), (4, 6), (0, 5)]:
        adj[u, v] = 1
    csr, x = adj.tocsr(), sp.identity(8, format="csr")
    arrays: dict[str, Any] = {"labels": np.arange(8) % 2, "idx_to_node": np.array([{}], dtype=object)}
    for prefix, matrix in (("adj", csr), ("attr", x)):
        arrays |= {f"{prefix}_{key}": getattr(matrix, key) for key in ("data", "indices", "indptr")}
        arrays[f"{prefix}_shape"] = np.array(matrix.shape)
    for part in ("clean", "splits", "meta", "nettack"):
        (folder / part).mkdir()
    np.savez(folder / "clean" / "toy.npz", **arrays)
    (folder / "splits" / "toy_prognn_splits.json").write_text(
        json.dumps({"idx_train": [0, 1], "idx_val": [2], "idx_test": [3, 4]})
    )
    clean = read_clean(folder / "clean" / "toy.npz", read_split(folder / "splits" / "toy_prognn_splits.json"))
    edit = GraphEdit(n=5, add=torch.tensor([[0], [4]]), drop=torch.tensor([[1], [2]]))
    attacked = to_scipy(clean.graph.apply(edit).adj)
    sp.save_npz(folder / "meta" / "toy_meta_adj_0.5.npz", attacked)
    sp.save_npz(folder / "nettack" / "toy_nettack_adj_2.0.npz", attacked)
    (folder / "nettack" / "toy_nettacked_nodes.json").write_text(json.dumps({"attacked_test_nodes": [4]}))
    return folder


def test_a_pool_is_the_largest_component_and_its_edits(tmp_path: Path) -> None:
    pool = read_pool(made_pool(tmp_path), "toy")
    graph = pool.dataset.graph
    assert graph.n == 5 and graph.num_edges == 4 and pool.dataset.split.train.tolist() == [0, 1]
    assert torch.equal(graph.x, torch.eye(8)[[1, 2, 3, 4, 6]])  # type: ignore[arg-type]
    meta, nettack = pool.graphs
    assert (meta.attack, meta.rate, meta.flips, meta.targets) == ("meta", 0.5, 2, None)
    assert nettack.targets is not None and nettack.targets.tolist() == [4]
    assert meta.edit.add.tolist() == [[0], [4]] and meta.edit.drop.tolist() == [[1], [2]]


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    folder = made_pool(tmp_path)
    with pytest.raises(DataError, match="no clean graph 'toi'; it has toy"):
        read_pool(folder, "toi")
    clean = read_pool(folder, "toy").dataset.graph
    sp.save_npz(folder / "meta" / "toy_meta_adj_0.9.npz", sp.identity(4, format="csr"))
    pool = read_pool(folder, "toy")
    assert "shape [4, 4], but the clean graph has 5" in pool.refused["toy_meta_adj_0.9.npz"]
    (folder / "bad.json").write_text("[1")
    with pytest.raises(DataError, match="is no JSON"):
        read_split(folder / "bad.json")
    (folder / "bad.json").write_text('{"idx_train": [true]}')
    with pytest.raises(DataError, match="no list of ids 'idx_train'"):
        read_split(folder / "bad.json")
    np.savez(
        folder / "odd.npz",
        data=np.ones(2),
        indices=np.array([0, 99]),
        indptr=np.array([0, 2, 2, 2, 2, 2]),
        shape=np.array([5, 5]),
    )
    with pytest.raises(DataError):
        read_edit(folder / "odd.npz", clean)
    np.savez(folder / "other.npz", a=np.ones(2))
    with pytest.raises(DataError, match="an edit or an attacked adjacency is needed"):
        read_edit(folder / "other.npz", clean)
    (folder / "text.npz").write_text("x")
    with pytest.raises(DataError, match="is not an npz file"):
        read_names(folder / "text.npz")


def test_an_archive_of_a_strange_version_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "edit.npz"
    np.savez(path, a=np.ones(2))
    content = bytearray(path.read_bytes())
    content[content.rindex(b"PK\1\2") + 6] = 98  # the version that is needed to read the entry
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match="is damaged"):
        read_names(path)


def test_every_layout_gives_the_same_edit(tmp_path: Path) -> None:
    dataset = load_dataset("synth-tiny")
    graph, n = dataset.graph, dataset.graph.n
    drop = graph.adj.edges()[:, :2]
    edit = GraphEdit(n=n, drop=drop)
    sp.save_npz(tmp_path / "adj.npz", to_scipy(graph.apply(edit).adj))
    edit.save(tmp_path / "edit.npz")
    for name in ("adj", "edit"):
        found, _ = read_edit(tmp_path / f"{name}.npz", graph)
        assert torch.equal(found.drop, drop) and not found.add.numel()
    rows = sp.csr_matrix((np.ones(3), ([0, 0, 1], [4, 9, 2])), shape=(2, n + 2))
    x = np.zeros((2, graph.num_features), dtype=np.float32)
    np.savez(
        tmp_path / "kdd.npz",
        data=rows.data,
        indices=rows.indices,
        indptr=rows.indptr,
        shape=np.array(rows.shape),
        features=x,
        format=b"csr",
    )
    found, _ = read_edit(tmp_path / "kdd.npz", graph)
    assert found.num_new == 2 and found.add.shape[1] == 3
