from __future__ import annotations

import pytest

from grb.pipeline import read_recipe

from .conftest import refusal


def test_a_dataset_is_reproduced_by_the_recipe_of_its_name(grb, tmp_path, monkeypatch):
    """The embedded one, quickly; no number of the paper stands beside synthetic ones."""
    done = grb("reproduce", "synth-tiny", "--quick", "--modes", "full", "--store", tmp_path / "store", "--workers", "0")
    assert done.exit_code == 0, done.stderr
    assert "synthetic" in done.stdout and "paper" not in done.stdout
    assert "jobs done, 0 were there already" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["grb-corra"], "Did you mean 'grb-cora'?"),
        (["synth-tiny-dance"], "no recipe 'synth-tiny-dance'"),
        (["synth-tiny", "--repeats", "0"], "--repeats is 0"),
    ],
)
def test_bad_input_is_one_sentence(grb, arguments, words):
    done = grb("reproduce", *arguments)
    assert done.exit_code == 2 and words in refusal(done)


def test_true_data_that_is_not_there_is_asked_for(grb, tmp_path, monkeypatch):
    monkeypatch.setenv("GRB_DATA", str(tmp_path))
    done = grb("reproduce", "grb-cora", "--store", tmp_path / "store")
    assert done.exit_code == 2 and "grb-cora" in refusal(done) and not (tmp_path / "store").exists()
    assert read_recipe("grb-cora").dataset == "grb-cora"
