from __future__ import annotations

from pathlib import Path

import grb as package
from grb.catalogue import entries
from grb.graph import GraphEdit

from .conftest import refusal


def test_edits_are_shown_to_every_detector(grb, grb_json, tmp_path: Path):
    dataset = package.load_dataset("synth-tiny")
    edit = package.run_attack("rnd", None, dataset).edit
    file = edit.save(tmp_path / "rnd.npz")
    found = grb_json("detect", file, "--dataset", "synth-tiny")
    assert [each["detector"] for each in found["results"]] == list(entries("detector"))
    assert found["results"][1]["nodes"]["auroc"] == package.detect("homophily", dataset, edit).auroc["nodes"]
    shown = grb("detect", tmp_path, "-d", "synth-tiny", "--detector", "degree").stdout
    assert "rnd" in shown and "degree" in shown and "homophily" not in shown


def test_an_edit_that_changes_nothing_has_no_curve_and_bad_input_is_refused(grb, tmp_path: Path):
    dataset = package.load_dataset("synth-tiny")
    file = GraphEdit(n=dataset.graph.n).save(tmp_path / "none.npz")
    assert "none" in grb("detect", file, "-d", "synth-tiny", "--detector", "degree").stdout
    assert "'joint'" in refusal(grb("detect", file, "-d", "synth-tiny", "--detector", "joinr"))
    assert "graphs to classify" in refusal(grb("detect", file, "-d", "synth-graphs", "--detector", "degree"))
    (tmp_path / "empty").mkdir()
    assert "no npz files" in refusal(grb("detect", tmp_path / "empty", "-d", "synth-tiny"))
