"""Edits as CSV and as networkx graphs, by the user's own ids."""

from __future__ import annotations

import csv

import pytest
import torch

from grb.dataset.original_names import OriginalNames
from grb.errors import DataError
from grb.graph import GraphEdit


def edit() -> GraphEdit:
    return GraphEdit(
        n=4,
        add=torch.tensor([[0, 2], [4, 3]]),
        drop=torch.tensor([[0], [1]]),
        new_x=torch.tensor([[0.5, -1.0]]),
        set_ids=torch.tensor([3]),
        set_x=torch.tensor([[1.0, 2.0]]),
    )


def test_every_change_is_a_row(tmp_path) -> None:
    names = OriginalNames(["a", "b", "=c", "d"], None, ["amount", "age"])
    with edit().to_csv(tmp_path / "edit.csv", names).open(newline="", encoding="utf-8") as stream:
        header, *rows = list(csv.reader(stream))
    assert header == ["change", "source", "target", "feature", "value"]
    assert rows == [
        ["add", "a", "injected-0", "", ""],
        ["add", "'=c", "d", "", ""],  # no formula for a spreadsheet
        ["drop", "a", "b", "", ""],
        ["inject", "injected-0", "", "amount", "0.5"],
        ["inject", "injected-0", "", "age", "-1.0"],
        ["set", "d", "", "amount", "1.0"],
        ["set", "d", "", "age", "2.0"],
    ]
    plain = edit().to_csv(tmp_path / "plain.csv").read_text(encoding="utf-8")
    assert "add,0,injected-0,," in plain and "drop,0,1,," in plain


def test_changed_edges_as_a_graph() -> None:
    graph = edit().to_networkx(OriginalNames(["a", "b", "c", "d"]))
    assert dict(graph.edges) == {
        ("injected-0", "a"): {"change": "add"},
        ("d", "c"): {"change": "add"},
        ("a", "b"): {"change": "drop"},
    }
    assert graph.nodes["injected-0"] == {"injected": True, "x": [0.5, -1.0]}
    assert graph.nodes["d"]["x"] == [1.0, 2.0] and not graph.nodes["a"]["injected"]
    assert GraphEdit(n=2).to_networkx().number_of_nodes() == 0
    with pytest.raises(DataError, match="2 names of nodes, but the edit is for a graph of 4"):
        edit().to_networkx(OriginalNames(["a", "b"]))
