from __future__ import annotations

import json

import pytest

from .conftest import refusal


@pytest.fixture
def mine(tmp_path):
    """A ring of 20 nodes as edge lists, one node of it beside the ring, with a self-loop and a missing feature."""
    place = tmp_path / "mine"
    place.mkdir()
    edges = [(i, (i + 1) % 19) for i in range(19)] + [(3, 3)]
    (place / "edges.csv").write_text("source,target\n" + "".join(f"n{u},n{v}\n" for u, v in edges))
    rows = [f"n{i},{'' if i == 5 else i / 20},{'ab'[i % 2]}\n" for i in range(20)]
    (place / "nodes.csv").write_text("id,size,label\n" + "".join(rows))
    return place


def test_the_report_as_json(grb_json, mine):
    found = grb_json("data", "check", mine, "--missing", "mean")["datasets"][0]
    assert found["ok"] and found["name"] == "mine" and found["written"] is None
    assert found["input"]["self_loops"] == 1 and found["input"]["missing_features"] == 1
    assert found["facts"]["components"] == 2 and found["facts"]["class_counts"] == {"a": 10, "b": 10}
    assert {problem["option"]: problem["choice"] for problem in found["problems"]} == {
        "loops": "drop",
        "directed": "symmetrise",
        "missing": "mean",
        "components": "keep",
    }
    easy = found["injection_limits"]["easy"]
    assert easy == {"nodes": 1, "edges_per_node": 2, "feature_range": [0.0, pytest.approx(0.95)]}


def test_the_report_as_tables(grb, mine):
    done = grb("data", "check", mine, "--missing", "zero")
    assert done.exit_code == 0
    for words in (
        "1 self-loop",
        "--missing zero",
        "largest, refuse",
        "homophily",
        "train 12",
        "limits of an injection",
    ):
        assert words in done.stdout
    assert "note: edges.csv: the first line read as a header" in done.stderr


def test_what_is_refused_is_reported_all_the_same(grb, mine):
    done = grb("data", "check", mine, "--json")
    assert done.exit_code == 2
    (found,) = json.loads(done.stdout)["datasets"]
    assert not found["ok"] and found["facts"] == {}
    assert [problem["option"] for problem in found["problems"]] == ["loops", "directed", "missing", "components"]
    (line,) = done.stderr.splitlines()
    assert line == (
        "error: the input has 1 feature value NaN or infinite, which missing=refuse refuses; zero or mean would go on"
    )


def test_a_cleaned_dataset_is_written_and_used_by_its_path(grb, grb_json, mine, tmp_path):
    clean = tmp_path / "clean"
    options = ("--missing", "zero", "--components", "largest", "--split", "difficulty", "--seed", "3")
    found = grb_json("data", "check", mine, *options, "-o", clean)["datasets"][0]
    assert found["written"] == str(clean) and found["facts"]["nodes"] == 19
    again = grb_json("data", "check", clean)["datasets"][0]
    assert again["problems"] == [] and again["facts"]["split"] == found["facts"]["split"]
    done = grb("data", "check", mine, *options, "-o", clean)
    assert done.exit_code == 2 and "exists already" in refusal(done)


def test_names_of_the_catalogue_have_a_report_too(grb, grb_json):
    found = grb_json("data", "check", "synth-tiny")["datasets"][0]
    assert found["facts"]["nodes"] == 300 and found["injection_limits"]["full"]["nodes"] == 9
    drawn = grb_json("data", "check", "synth-tiny", "--split", "difficulty")["datasets"][0]
    assert drawn["facts"]["splitting"].startswith("easy, medium and hard by degree")
    assert json.loads(grb("--json", "data", "check", "synth-tiny").stdout)["ok"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["synth-tinny"], "Did you mean 'synth-tiny'?"),
        (["./nowhere"], "does not exist"),
        (["synth-tiny", "--components", "some"], "Allowed: keep, largest, refuse."),
        (["synth-tiny", "--dangling", "drop"], "--dangling is about text files"),
        (["synth-tiny", "--seed", "-1"], "--seed is -1"),
        (["synth-tiny", "synth-graphs", "-o", "x"], "--output takes one cleaned dataset, but there are 2"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(grb, words, sentence):
    done = grb("data", "check", *words)
    assert done.exit_code == 2 and sentence in refusal(done)


def test_a_malformed_row_is_named_by_its_line(grb, mine):
    (mine / "edges.csv").write_text("source,target\nn0,n1\nn1\n")
    done = grb("data", "check", mine)
    assert done.exit_code == 2
    assert refusal(done).startswith(f"line 3 of {mine / 'edges.csv'} has 1 column, but 2 are needed")


def test_an_attack_on_custom_data_says_that_its_limits_are_inferred(grb, mine, tmp_path):
    weights = tmp_path / "model.safetensors"
    clean = tmp_path / "clean"
    assert grb("data", "check", mine, "--missing", "zero", "-o", clean).exit_code == 0
    done = grb("train", "gcn", "--dataset", clean, "--param", "epochs=2", "-o", weights)
    assert done.exit_code == 0, done.stderr
    done = grb("attack", "rnd", "--model", weights, "--dataset", clean)
    assert done.exit_code == 0, done.stderr
    assert "no limits for 'clean': what is not given is inferred" in done.stderr
