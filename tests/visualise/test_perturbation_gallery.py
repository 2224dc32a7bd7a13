"""One graph under all perturbations, and drawings without data."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from grb import visualise
from grb.dataset import load_dataset
from grb.errors import DataError
from grb.taxonomy import FEATURES, PAPER_ORDER


@pytest.fixture(scope="module")
def graph():
    return visualise.ball(load_dataset("synth-tiny").graph, 40)


@pytest.fixture(scope="module")
def gallery(graph):
    return visualise.perturbation_gallery(graph, generator=torch.Generator().manual_seed(0))


def test_a_ball_is_connected_and_as_large_as_asked_for(graph):
    assert graph.n == 40
    reached, border = {0}, [0]
    while border:
        border = [other for node in border for other in graph.adj.neighbours(node).tolist() if other not in reached]
        reached |= set(border)
    assert len(reached) == 40


def test_every_perturbation_of_the_paper_has_a_panel_and_changes_what_it_says(graph, gallery):
    assert [panel.title for panel in gallery.panels] == ["original", *PAPER_ORDER]
    original = gallery.panels[0]
    for panel in gallery.panels[1:]:
        same_edges = len(panel.edges) == len(original.edges) and (panel.edges == original.edges).all()
        if panel.title in FEATURES:
            assert panel.changes == "features" and same_edges and not np.array_equal(panel.values, original.values)
        else:
            assert panel.changes == "edges" and not same_edges, panel.title
    by_name = {panel.title: panel for panel in gallery.panels}
    assert len(by_name["NoEdges"].edges) == 0 and len(by_name["FullyConn"].edges) == 40 * 39 // 2
    assert len(set(by_name["Frag-k1"].values)) > len(set(by_name["Frag-k3"].values)) > 1
    assert set(by_name["NoNodeFtrs"].values) == {1.0}


def test_graphs_that_no_panel_can_show_are_refused():
    with pytest.raises(DataError, match="nodes"):
        visualise.perturbation_gallery(load_dataset("synth-cora").graph, generator=torch.Generator())


def test_they_are_drawn_without_a_store(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from grb.cli.app import app

    monkeypatch.setenv("GRB_HOME", str(tmp_path / "empty"))
    wanted = ["figures", "--only", "perturbations", "--only", "diagrams", "-o", str(tmp_path), "--dpi", "50", "--json"]
    done = CliRunner().invoke(app, wanted)
    assert done.exit_code == 0, done.stderr
    names = {path.name for path in tmp_path.glob("*.png")}
    assert names == {"perturbations.png", "scenario.png", "framework.png", "layer-norm.png"}
    assert len(json.loads(done.stdout)["files"]) == 4
