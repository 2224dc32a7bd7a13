from __future__ import annotations

import networkx
import pytest

from grb import catalogue, load_dataset

from .conftest import refusal


def test_dataset_agrees_with_networkx(grb_json):
    facts = grb_json("info", "synth-tiny")["kinds"]["dataset"]
    dataset = load_dataset("synth-tiny")
    graph = networkx.from_scipy_sparse_array(dataset.adj)
    labels = dataset.labels.tolist()
    assert facts["synthetic"] is True
    assert (facts["nodes"], facts["edges"]) == (graph.number_of_nodes(), graph.number_of_edges())
    assert facts["components"] == networkx.number_connected_components(graph)
    assert facts["isolated_nodes"] == networkx.number_of_isolates(graph)
    assert facts["homophily"] == pytest.approx(
        sum(labels[u] == labels[v] for u, v in graph.edges) / graph.number_of_edges(), abs=1e-6
    )
    assert facts["fingerprint"] == dataset.fingerprint()
    assert facts["split"]["full"] == facts["split"]["easy"] + facts["split"]["medium"] + facts["split"]["hard"]
    easy = [graph.degree(node) for node in dataset.index_test_easy.tolist()]
    assert facts["mean_degrees"]["easy"] == pytest.approx(sum(easy) / len(easy))


def test_synthetic_datasets_are_labelled(grb):
    assert grb("info", "synth-tiny").stdout.startswith("dataset synth-tiny (synthetic)\n")


def test_absent_dataset_shows_the_papers_statistics(grb_json, monkeypatch, tmp_path):
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    facts = grb_json("info", "grb-cora")["kinds"]["dataset"]
    assert facts["where"].startswith("not on this machine")
    assert (facts["nodes"], facts["mean_degrees"]["easy"]) == (2680, 1.53)


@pytest.mark.parametrize("name", ["gcn", "gcn+ln"])
def test_model_has_the_parameters_that_the_paper_prints(grb_json, name):
    facts = grb_json("info", name)["kinds"]["model"]
    assert facts["parameters_on_grb_cora"] == catalogue.preset("models")["grb-cora"][name]["parameters"]


def test_model_explains_its_arguments_and_settings(grb, grb_json):
    facts = grb_json("info", "gcn")["kinds"]["model"]
    arguments = {row["name"]: row for row in facts["arguments"]}
    assert arguments["in_features"]["default"] == "needed"
    assert arguments["dropout"]["meaning"]
    assert "generator" not in arguments
    assert {row["dataset"] for row in facts["presets"]} >= {"grb-cora", "grb-flickr"}
    shown = grb("info", "gcn").stdout
    assert "hidden_features" in shown and "grb-flickr" in shown


@pytest.mark.parametrize("kind, name", [(kind, name) for kind in catalogue.kinds() for name in catalogue.KINDS[kind]])
def test_everything_catalogued_can_be_described(grb, kind, name, monkeypatch, tmp_path):
    if kind == "dataset":
        monkeypatch.setenv("GRB_DATA", str(tmp_path))  # the embedded ones and the paper's statistics: no files needed
    done = grb("info", name, "--kind", kind)
    assert done.exit_code == 0, done.stderr
    assert f"{kind} {name}" in done.stdout


def test_unknown_name(grb):
    done = grb("info", "grb-corra")
    assert done.exit_code == 2
    assert "Did you mean 'grb-cora'? `grb ls` shows all names." in refusal(done)


def test_properties_of_graphs_by_class_are_those_of_networkx(grb, grb_json):
    found = grb_json("info", "synth-graphs", "--by-class")["classes"]
    graph = load_dataset("synth-graphs").graph
    own = [graph.graphs(i, i + 1) for i in range(graph.num_graphs) if graph.y[i] == 1]
    triangles = [sum(networkx.triangles(networkx.Graph(each.adj.edges().T.tolist())).values()) / 3 for each in own]
    assert found["1"]["nodes"] == pytest.approx(sum(each.n for each in own) / len(own))
    assert found["1"]["triangles"] == pytest.approx(sum(triangles) / len(own))
    assert set(found) == {"0", "1"}
    shown = grb("info", "synth-graphs", "--by-class").stdout
    assert "clustering" in shown and f"{found['0']['nodes']:.3f}" in shown
    refused = grb("info", "synth-tiny", "--by-class")
    assert refused.exit_code == 2 and "need a collection of graphs" in refused.stderr
    assert "--by-class is for datasets" in grb("info", "gcn", "--by-class").stderr
