from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import refusal

pytest.importorskip("optuna", reason="needs optuna: pip install optuna")
QUICK = ("--dataset", "synth-tiny", "--trials", 2, "--epochs", 3)


def test_tune_shows_settings_writes_a_recipe_and_figures(grb, tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    space.write_text("lr: {choice: [0.01, 0.1]}")
    out = tmp_path / "tuned.yaml"
    done = grb("tune", "gcn", *QUICK, "--space", space, "-o", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "gcn" in done.stdout and "lr=" in done.stdout and "gcn 2/2" in done.stderr
    assert out.exists() and (tmp_path / "search-gcn.png").stat().st_size > 1000
    assert grb("run", out, "--plan", "--store", tmp_path / "store").exit_code == 0
    assert "consecutive" in refusal(grb("tune", "gcn", *QUICK, "--seeds", "0,2"))


def test_tune_as_json_resumes(grb_json, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'tune.db'}"
    (first,) = grb_json("tune", "mlp", *QUICK, "--storage", storage)
    (again,) = grb_json("tune", "mlp", *QUICK, "--storage", storage)
    assert first == again and len(first["trials"]) == 2


def test_bad_input(grb, tmp_path: Path) -> None:
    assert "searches use tpe" in refusal(grb("tune", "gcn", "--sampler", "grid"))
    assert "no dataset" in refusal(grb("tune", "gcn", "--dataset", "nothing"))
    assert "cannot read" in refusal(grb("tune", "gcn", "--dataset", "synth-tiny", "--space", tmp_path / "none.yaml"))
