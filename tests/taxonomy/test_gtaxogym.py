"""Result files of the paper's code: names, layout, and that they give what the package ships."""

from __future__ import annotations

import json

import numpy as np
import pytest

from grb import taxonomy
from grb.errors import DataError
from grb.taxonomy.gtaxogym import dataset_title, model_of, perturbation_title

NAMES = {
    "none": "-",
    "nopert": "-",
    "Fragmented-k1": "Frag-k1",
    "FullyConnected": "FullyConn",
    "NoFeatures": "NoNodeFtrs",
    "NodeDegree": "NodeDeg",
    "FiedlerFragmentation": "FiedlerFrag",
    "BandpassFiltering-lo": "LowPass",
    "pert_WaveletBankFiltering-mid": "MidPass",
    "pert_RandomNodeFeatures": "RandFtrs",
    "RandomEdgeRewire": "RandRewire",
    "noedges": "NoEdges",
    "HighPass": "HighPass",
    "MyOwn": "MyOwn",
}


def test_names_of_the_papers_code_are_read_as_the_papers() -> None:
    assert {name: perturbation_title(name) for name in NAMES} == NAMES
    assert dataset_title("PyG-CitationFull_Cora_ML") == "CF-CoraML" and dataset_title("nx_smallworld") == "Small-World"
    assert dataset_title("PyG-GNNBenchmarkDataset_MNIST") == "MNIST" and dataset_title("mine") == "mine"


def written(path, model: str = "GCN"):
    """The published inductive results in the layout of GTaxoGym, with rows of the other splits that must not count."""
    known = taxonomy.published("inductive").models[model]
    code = {"CIFAR10": "PyG-GNNBenchmarkDataset_CIFAR10", "D&D": "PyG-TUDataset_DD", "ogbg-molhiv": "OGB_ogbg-molhiv"}
    names = {title: name for name, title in NAMES.items() if name not in ("nopert", "noedges")} | {"-": "none"}
    rows = []
    for i, dataset in enumerate(known.datasets):
        scores = {"-": known.original[i], **dict(zip(known.perturbations, known.original[i] * known.ratio[i]))}
        for name, score in scores.items():
            for split, value in (("train", 0.99), ("val", 0.98), ("test", score)):
                if not np.isnan(value):
                    own = {"Dataset": code.get(dataset, dataset), "Perturbation": names.get(name, name), "Split": split}
                    rows.append({**own, "score-epoch": 3, "score-auc": float(value)})
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize(("file", "model"), [("graph_gcn_results.json", "GCN"), ("graph_cheb_results.json", "ChebNet")])
def test_result_files_are_read_as_means_of_the_test_split(tmp_path, file: str, model: str) -> None:
    models = taxonomy.read_models(written(tmp_path / file, model))
    found, known = models[model], taxonomy.published("inductive").models[model]
    assert found.datasets == known.datasets and found.perturbations == known.perturbations
    assert np.allclose(found.values, known.values, equal_nan=True) and found.runs is None and not found.single_run
    assert any("means over runs" in note for note in found.notes)


def test_models_are_known_by_the_name_of_the_file(tmp_path) -> None:
    for name, model in (("graph_gin_small_results.json", "GIN-2L"), ("graph_gcn2_results.json", "GCNII")):
        assert model_of(tmp_path / name) == model
    assert model_of(tmp_path / "node_results.json") == "GCN" and model_of(tmp_path / "mine.json") == ""


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([("a", "none", "train", 0.9)], "no result of the test split"),
        ([("a", "none", "test", 0.9)], "unperturbed datasets only"),
        ([("a", "none", "test", 0.9), ("a", "nopert", "test", 0.8)], "two test results of a under -"),
        ([("a", "none", "test", 0.9), ("a", "NoEdges", "test", "high")], "'high' for a under NoEdges"),
        ([("a", "none", "test", 90.0), ("a", "NoEdges", "test", 80.0)], "divide percentages by 100"),
    ],
)
def test_files_that_say_nothing_are_refused(tmp_path, rows, sentence: str) -> None:
    path = tmp_path / "graph_gcn_results.json"
    names = ("Dataset", "Perturbation", "Split", "score-auc")
    path.write_text(json.dumps([dict(zip(names, row)) for row in rows]))
    with pytest.raises(DataError, match=sentence):
        taxonomy.read_profiles(path)
    with pytest.raises(DataError, match="no settings to choose from"):
        taxonomy.read_profiles(path, where={"epochs": "3"})


def test_names_of_the_code_are_read_in_tables_of_runs_too(tmp_path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("dataset,perturbation,auroc\na,nopert,.8\na,NodeDegree,.4\na,pert_NoFeatures,.6\n")
    assert taxonomy.read_profiles(path).perturbations == ("NoNodeFtrs", "NodeDeg")
    path.write_text("dataset,none,BandpassFiltering-lo\na,.8,.4\n")
    assert taxonomy.read_profiles(path).row("a") == {"LowPass": -1.0}
