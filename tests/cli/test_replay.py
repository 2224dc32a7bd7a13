from __future__ import annotations

from pathlib import Path

from dataset.test_pool import made_pool
from grb import GraphEdit, load_dataset

from .conftest import refusal


def test_edits_of_ours_are_replayed(grb, grb_json, tmp_path: Path):
    dataset = load_dataset("synth-tiny")
    file = GraphEdit(n=dataset.num_nodes, drop=dataset.graph.adj.edges()[:, ::2]).save(tmp_path / "half.npz")
    line = ("replay", file, "--dataset", "synth-tiny", "--epochs", "2", "--repeats", "2")
    (found,) = grb_json(*line, "--objective", "evasion,poisoning")
    assert [row["graph"] for row in found["rows"]] == ["", "half", "half"] and found["refused"] == {}
    assert len(found["rows"][1]["accuracy_runs"]) == 2
    done = grb(*line)
    assert done.stdout.startswith("gcn on synth-tiny: accuracy in %\n") and "half" in done.stdout
    single = grb(*line[:-1], "1").stdout
    assert "half" in single and "±" not in single and "+-" not in single  # one training has no deviation


def test_a_pool_is_replayed_and_what_is_refused_is_said(grb, grb_json, tmp_path: Path):
    folder = made_pool(tmp_path)
    (found,) = grb_json("replay", folder, "--attack", "nettack", "--epochs", "1", "--repeats", "1")
    assert found["dataset"] == "toy" and "target_accuracy" in found["rows"][1]
    assert "no graph of the attack 'x'" in refusal(grb("replay", folder, "--attack", "x"))
    assert "name their dataset with --dataset" in refusal(grb("replay", tmp_path / "none.npz"))
    assert "literature or grb" in refusal(grb("replay", folder, "--protocol", "x"))
