"""An attack that breaks what is certified is exit code 3, wherever a store with both is read."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from grb.evaluator.measurement import pack_bits
from grb.pipeline import Store
from grb.pipeline.gate import content_of
from pipeline.parts import forge

RECIPE = """
dataset: synth-tiny
defenses: [gcn+known, {name: gcn+smooth, p_drop: 0.9, p_node: 0.8, samples: 20}]
attacks: [rnd]
certificates: [by-construction, {name: bi-smoothing, samples: 200}]
modes: [full]
repeats: 1
training: {epochs: 5, hidden_features: [8]}
threat: {nodes: 1, edges_per_node: 2}
memory: false
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A recipe, and a store in which it was run."""
    from typer.testing import CliRunner

    from grb.cli.app import app

    place = tmp_path_factory.mktemp("broken")
    (place / "certified.yaml").write_text(RECIPE)
    words = ["run", str(place / "certified.yaml"), "--store", str(place / "store"), "--workers", "0"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    return place / "certified.yaml", place / "store"


def lied(ran, tmp_path, certificate):
    """The store with a certificate of the defense itself that says that all its predictions are right and hold."""
    store = Store(shutil.copytree(ran[1], tmp_path / "store"))
    for record in store.records():
        if record.job.kind != "certify" or record.job.spec.name != certificate:
            continue
        own = content_of(record)
        if own.own_model and not own.refusal:
            sure = (max(60, *own.budgets),) * own.targets
            made = replace(own, correct=pack_bits([True] * own.targets), budgets=sure, collective=None)
            forge(store, {"format": 2, **record.to_dict(), "result": made.to_dict()})
    return store.path


def test_what_a_certain_certificate_contradicts_ends_every_command_with_3(grb, ran, tmp_path):
    recipe, honest = ran
    place = lied(ran, tmp_path, "by-construction")
    for words in (("run", recipe, "--store"), ("leaderboard",), ("store", "verify")):
        assert grb(*words, honest).exit_code == 0
        done = grb(*words, place)
        assert done.exit_code == 3, done.stderr
        assert "holds for them with certainty" in done.stderr


def test_what_is_wrong_in_new_samples_too_ends_with_3(grb, ran, tmp_path):
    recipe, honest = ran
    place = lied(ran, tmp_path, "bi-smoothing")
    for words in (("run", recipe, "--store"), ("store", "verify", "--rerun", 1)):
        assert grb(*words, honest).exit_code == 0
        done = grb(*words, place)
        assert done.exit_code == 3, done.stderr
        assert "also in 200 new samples" in done.stderr
    assert grb("leaderboard", place).exit_code == 0  # a table is shown without sampling anything
