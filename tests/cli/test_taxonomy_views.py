from __future__ import annotations

import csv

import pytest

from grb.taxonomy import published

from .conftest import refusal

NAMES = ("NoEdges", "RandFtrs", "LowPass", "Frag-k1")


@pytest.fixture
def runs(tmp_path):
    """Runs of one published dataset that leave a tenth less than the published ones, and of one that nobody published."""
    table = published("inductive").profiles
    row = table.row("ENZYMES")
    path = tmp_path / "runs.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["dataset", "perturbation", "model", "seed", "auroc"])
        for seed in range(2):
            writer.writerow(["ENZYMES", "-", "gcn", seed, 0.9])
            writer.writerow(["mine", "-", "gcn", seed, 0.9])
            for name in NAMES:
                writer.writerow(["ENZYMES", name, "gcn", seed, 0.9 * 0.9 * 2 ** row[name]])
                writer.writerow(["mine", name, "gcn", seed, 0.8])
    return path


def test_runs_beside_the_published_results(grb, grb_json, runs, tmp_path):
    done = grb("taxonomy", "analyse", runs, "--against", "published", "-o", tmp_path / "table.csv")
    assert done.exit_code == 0, done.stderr
    assert "ENZYMES: AUROC 0.900 (2 runs), published 0.913" in done.stdout
    assert "correlation of 4 log2 ratios" in done.stderr and "left out: mine" in done.stderr
    with (tmp_path / "table.csv").open() as stream:
        assert [row["perturbation"] for row in csv.DictReader(stream)] == ["RandFtrs", "LowPass", "NoEdges", "Frag-k1"]
    told = grb_json("taxonomy", "analyse", runs, "--against", "published")
    assert told["correlation"] == pytest.approx(1) and told["placed"] == 1
    (own,) = told["datasets"]
    assert all(cell["left"] == pytest.approx(0.9 * cell["published"]) for cell in own["cells"])


def test_as_markdown(grb, runs):
    lines = grb("taxonomy", "analyse", runs, "--against", "published", "--format", "markdown").stdout.splitlines()
    assert lines[0] == "| | runs | original | RandFtrs | LowPass | NoEdges | Frag-k1 |"
    assert lines[2].startswith("| ENZYMES, ours | 2 | 0.900 |") and lines[3].startswith("| published | | 0.913 |")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--model", "gin"), "no model 'gin'"),
        (("--format", "svg"), "a format of figures"),
        (("--format", "markdown", "--json"), "both given"),
        (("--format", "latex"), "no format 'latex'"),
        (("--where", "epochs"), "a setting and its value are needed"),
        (("--where", "epochs=5"), "no setting 'epochs'"),
        (("-o", "table.txt"), "ends in .csv"),
    ],
)
def test_refusals_are_one_sentence(grb, runs, tmp_path, monkeypatch, options, sentence):
    monkeypatch.chdir(tmp_path)
    done = grb("taxonomy", "analyse", runs, "--against", "published", *options)
    assert done.exit_code == 2 and sentence in refusal(done)
    assert [path.name for path in tmp_path.iterdir()] == ["runs.csv"]


def test_a_file_that_is_not_there(grb, tmp_path):
    done = grb("taxonomy", "analyse", tmp_path / "nothing.jsonl", "--against", "published")
    assert done.exit_code == 2 and "no file" in refusal(done)
