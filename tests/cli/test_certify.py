from __future__ import annotations

import pytest

from grb import load_dataset, save_model, train

from .conftest import refusal

FEW = ("--model-param", "epochs=15", "--model-param", "hidden_features=16")


def test_a_model_is_trained_and_certified(grb, grb_json, tmp_path):
    line = ("certify", "gcn+known", "--dataset", "synth-tiny", *FEW, "--store", tmp_path / "store")
    done = grb(*line)
    assert "accuracy in % that no attack can undercut, by number of injected nodes" in done.stdout
    assert "hears known nodes only" in done.stdout
    assert "with certainty" in done.stderr
    (found,) = grb_json(*line)["results"]
    assert found["certified_accuracy"] == found["clean_accuracy"] == found["curve"]["60"]
    assert found["unit"] == "injected nodes"
    assert len(found["budgets"]) == found["targets"]


def test_a_file_is_certified_by_several_certificates(grb_json, tmp_path):
    dataset = load_dataset("synth-tiny")
    path = save_model(train("gcn", dataset, epochs=5), tmp_path / "gcn.safetensors", dataset="synth-tiny")
    both = ("-c", "by-construction", "-c", "bi-smoothing", "--param", "samples=30", "--limit", "nodes=1")
    first, second = grb_json("certify", path, *both)["results"]
    assert "hears node" in first["refusal"]
    assert second["samples"] == 30
    assert second["model"].startswith("smoothed gcn")


def test_changed_edges(grb_json):
    line = ("--scenario", "modification", "--limit", "edges=2", "--param", "groups=6")
    (found,) = grb_json("certify", "gcn", "-d", "synth-tiny", *FEW, *line)["results"]
    assert (found["unit"], found["budget"]) == ("changed edges", 2)
    assert "'+hash-vote' trains it" in found["notes"][0]


def test_features_of_hijacked_nodes(grb_json, grb, tmp_path):
    line = ("--scenario", "modification", "--limit", "edges=0", "--limit", "feature_nodes=1", "--param", "samples=40")
    noise = ("--model-param", "p_drop=0", "--model-param", "sigma=1", "--store", tmp_path / "store")
    (found,) = grb_json("certify", "gcn+smooth", "-d", "synth-tiny", *FEW, *line, *noise)["results"]
    assert (found["certificate"], found["unit"], found["budget"]) == ("gaussian-smoothing", "hijacked nodes", 1)
    assert "narrow their limits" in found["notes"][-1]
    assert grb("store", "verify", tmp_path / "store").exit_code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("gcn",), "name the dataset with --dataset"),
        (("gcn", "-d", "synth-tiny", "--scenario", "poison"), "injection or modification is needed"),
        (("gcn", "-d", "synth-tiny", "-c", "hush-vote"), "no certificate 'hush-vote'"),
        (("gcn", "-d", "synth-tiny", "--param", "votes=3"), "does not take 'votes'"),
        (("gcn+known+smooth", "-d", "synth-tiny"), "keep one of them"),
        (("gcn.safetensors", "--seed", "1"), "trained already"),
        (("gcn-jaccard+known", "-d", "synth-tiny"), "has no stages"),
    ],
)
def test_bad_input_gets_one_sentence(grb, words, sentence):
    assert sentence in refusal(grb("certify", *words))


def test_rows_of_several_seeds_are_told_apart_and_what_they_share_is_said_once(grb):
    done = grb("certify", "gcn+hash-vote", "-d", "synth-tiny", *FEW, "--model-param", "divide=senders", "--seeds", "2")
    heads, _, *rows = done.stdout.splitlines()[1:]
    assert heads.split()[2:4] == ["seed", "targets"]
    assert [row.split("inside")[1].split()[0] for row in rows if "inside" in row] == ["0", "1"]
    assert done.stderr.count("every statement holds with certainty") == 1


def test_what_is_left_together_is_in_per_cent_as_its_table_is(grb, grb_json, tmp_path):
    line = ("certify", "gcn+hash-vote", "-d", "synth-tiny", *FEW, "--model-param", "divide=senders")
    line = (*line, "--limit", "nodes=2", "--store", tmp_path / "store")
    (found,) = grb_json(*line)["results"]
    (row,) = [text for text in grb(*line).stdout.splitlines() if " full " in text]
    assert row.split()[-2] == f"{100 * found['collective'] / found['targets']:.2f}"
